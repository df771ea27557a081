// Package offline holds the commands that play documents over a time: a calendar of them,
// and what the agent would decide.
package offline
