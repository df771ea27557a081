// Package instant parses times as people write them, and formats them for a zone and for UTC. It
// imports plan and schedule.
package instant
