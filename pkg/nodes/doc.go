// Package nodes decides who may have which node for maintenance, and what becomes
// of a request. It is pure: facts and an instant come in, verdicts go out.
//
// A pass of the agent reads every node with Read, asks Rank who is next, and then
// asks Advance, node by node, for the one next write: statuses, cordon record and
// spec.unschedulable together, in one patch that holds the resourceVersion that
// was read. A crash is before that patch or after it, and everything that must
// outlive it stands in the node's annotations.
package nodes
