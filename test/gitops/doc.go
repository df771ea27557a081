// Package gitops runs the product beside real GitOps controllers: an hour of pushes, by
// Flux's kustomize-controller, to a repository that holds plans, policies and their targets.
package gitops
