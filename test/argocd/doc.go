// Package argocd runs the product beside the application controller of Argo CD itself, with
// its repository server: an hour of pushes to a repository of Git that holds plans, policies
// and their targets, runs that hold the Application of their target, and runs that do not.
//
// Argo CD takes long to build, so it runs only where it is asked to: `make argocd-test`,
// which sets MAINT_ARGOCD=1. Asked, it never skips.
package argocd
