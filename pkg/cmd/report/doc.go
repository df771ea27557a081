// Package report holds the commands that tell what ledgers remember: how slots and runs
// ended, and what slept.
package report
