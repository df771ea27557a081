// Package restore holds the commands for restore data, that is, the state of sleeping resources
// before their sleep: list, show and edit.
package restore
