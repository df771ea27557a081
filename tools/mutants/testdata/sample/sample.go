// Package sample has an operator of each kind, for the tests of mutants.
package sample

// More is no operation of a program, so it has no switch.
const More = 2 + 1

// Name joins texts, which cannot be subtracted.
func Name(a, b string) string { return a + b }

// Within has a bound that its tests do not look at, and one that they do.
func Within(n, from, to int) bool {
	return n >= from &&
		n < to
}

// Sum adds what is wanted of two numbers.
func Sum(a, b int, both bool) int {
	if !both || b == 0 {
		return a
	}
	return a + b
}
