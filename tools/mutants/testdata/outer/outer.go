// Package outer tries the package within it by its own tests, for the tests of mutants.
package outer

import "github.com/kubectl-maint/kubectl-maint/tools/mutants/testdata/outer/inner"

// Digit is whether a number has one digit.
func Digit(n int) bool { return inner.Within(n, 0, 10) }
