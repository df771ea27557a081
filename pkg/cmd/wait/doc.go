// Package wait is the command that waits for a state, for runbooks: its exit code is the answer.
package wait
