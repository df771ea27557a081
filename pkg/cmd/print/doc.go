// Package print says values in lines, tables and colours, for people and as -o asks.
package print
