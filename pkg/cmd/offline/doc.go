// Package offline holds the commands that look at documents over time: a calendar, and a simulation
// of the agent.
package offline
