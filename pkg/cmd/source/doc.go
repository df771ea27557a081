// Package source is where documents come from, files or the cluster: both become the
// same Set, of which the same core answers the same.
package source
