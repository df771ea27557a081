// Package view holds what commands show as values: a plan, a run, a node, who claims it,
// what a drain would do, and whether change is permitted. It asks the core and has no
// client, so that whoever has the objects (a command, a page) shows the same.
package view
