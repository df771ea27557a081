// Package restore holds the commands for restore data: what sleeping resources were before
// they were put to sleep, to be listed, shown and mended.
package restore
