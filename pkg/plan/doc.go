// Package plan holds the documents Plan and StepTemplate, the types of steps, what is
// wrong with any of them, and the tree that a plan's steps are.
//
// Of the core it imports schedule, expr, document, selector, policy and drain.
package plan
