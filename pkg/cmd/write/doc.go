// Package write holds the commands that write plans and check documents.
package write
