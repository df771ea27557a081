// Package setup holds the commands around the agent itself: its manifests and versions.
package setup
