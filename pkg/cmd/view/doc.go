// Package view holds the values that commands show: a plan, a run, a node, its claims, a drain, and
// whether change is permitted. It uses the core and has no client, so that everything that has the
// objects (a command, a page) shows the same.
package view
