// Package cmdtest holds what the tests of the commands start from: a cluster in memory,
// builders that start valid, and a command line that is run. Only tests import it.
package cmdtest
