// Package instant parses times as people write them, and formats them for a zone and for UTC. It
// imports document, exit and schedule.
package instant
