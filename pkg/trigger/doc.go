// Package trigger decides when a plan runs: which slots, labels, tokens and changes
// make a run, and which of the runs that wait may start.
//
// Of the core it may import everything but simulate and calendar.
package trigger
