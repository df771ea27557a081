// Package print prints values as lines and tables for people, and in the formats of -o.
package print
