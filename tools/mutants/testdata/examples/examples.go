// Package examples has a bound that few examples meet, for the tests of mutants.
package examples

// Large says whether a number is at least fifty.
func Large(n int) bool { return n >= 50 }
