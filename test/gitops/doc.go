// Package gitops runs the product beside the controllers of Flux themselves: an hour of
// pushes to a repository that holds plans, policies and their targets, and versions of a
// chart that does.
package gitops
