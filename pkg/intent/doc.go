// Package intent holds what people ask of an object by its annotations, already read.
//
// Of the core it imports schedule, document and policy.
package intent
