// Package agentconfig holds the agent's configuration: the document and what is wrong
// with one.
//
// Of the core it imports plan, for the types of steps, and what stands below that.
package agentconfig
