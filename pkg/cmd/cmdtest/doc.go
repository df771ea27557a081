// Package cmdtest holds fixtures for tests of commands: a cluster in memory, builders that start
// valid, and the runner of command lines. Only tests import it.
package cmdtest
