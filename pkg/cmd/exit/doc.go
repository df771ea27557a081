// Package exit holds the exit codes of the contract, the errors that carry them, and
// the faults of a command line that are told all at once. It knows nothing of ours.
package exit
