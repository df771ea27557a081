// Package factory makes the clients of the commands, finds what a name on the command line means, and writes
// intent as annotations. Commands embed a Factory: their streams, their clock and their clients.
package factory
