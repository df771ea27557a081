// Package instant reads times as people write them, and shows them on the clocks of a
// zone and in UTC. It knows plan and schedule.
package instant
