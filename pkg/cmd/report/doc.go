// Package report holds the commands that evaluate ledgers: how slots and runs ended, and what
// slept.
package report
