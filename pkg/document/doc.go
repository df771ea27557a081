// Package document reads the YAML documents of the project, strictly: what every one
// of them has in common, their durations, names and shares, and the faults that are
// told of one. It knows none of them.
//
// Of the core it imports schedule and expr.
package document
