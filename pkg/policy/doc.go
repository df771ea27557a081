// Package policy holds the documents that say when change is allowed (Policy and
// Calendar), the rules of their gates, and the resolver, which answers what follows
// from all of them for one object.
//
// Of the core it imports schedule, expr, knob, document and selector.
package policy
