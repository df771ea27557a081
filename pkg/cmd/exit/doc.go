// Package exit holds the exit codes of the contract, the errors that carry them, and the faults of
// a command line, which are reported all at once. It imports no other package of ours.
package exit
