//go:build race

package hibernation

// mostCrashes is at how many writes of a long story an agent dies under the race detector,
// with which a story takes ten times as long: where it dies is shown without it.
const mostCrashes = 2
