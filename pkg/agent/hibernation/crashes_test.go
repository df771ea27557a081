//go:build !race

package hibernation

// mostCrashes is at how many writes of a long story an agent dies.
const mostCrashes = 14
