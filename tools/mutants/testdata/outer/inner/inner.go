// Package inner has no tests of its own.
package inner

// Within is whether a number is at least from and below to.
func Within(n, from, to int) bool { return n >= from && n < to }
