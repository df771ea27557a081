// Package wait is the command that waits for something, for runbooks: the exit code is the
// answer.
package wait
