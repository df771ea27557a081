// Package run holds one execution of a plan: what asked for it, the plan as it was
// then, the journal of what was done, and what expressions may speak of.
//
// Of the core it imports plan and what stands below that.
package run
