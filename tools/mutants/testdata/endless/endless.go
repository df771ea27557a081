// Package endless has a loop that a change makes endless, for the tests of mutants.
package endless

// Down counts down to zero, and says in how many steps.
func Down(n int) (steps int) {
	for n > 0 {
		n = n - 1
		steps++
	}
	return steps
}
