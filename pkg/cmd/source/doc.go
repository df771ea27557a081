// Package source reads documents from files or the cluster: both become the same Set, about which
// the same core gives the same answers.
package source
