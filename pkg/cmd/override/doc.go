// Package override holds the commands that permit or forbid change until a time, whatever the windows
// say.
package override
