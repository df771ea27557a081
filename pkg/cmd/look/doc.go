// Package look holds the commands that show what is, was and will be, and write nothing.
package look
