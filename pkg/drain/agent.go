package drain

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// LastOrder is the order of the pod that leaves after all others.
const LastOrder = math.MaxInt32

// OtherReplica is how another replica of the agent stands on another node.
type OtherReplica int

// How it stands.
const (
	NoneElsewhere  OtherReplica = iota
	ComesElsewhere              // it starts, or is about to be made
	ReadyElsewhere
)

// Agent is what a drain knows of the agent's own replicas: with the last of them
// goes whoever drains, and where none can start again, nobody is left to give the
// node back. The zero value is no agent.
type Agent struct {
	Pod       string // namespace/name of the replica on the node that leaves last, if any
	Elsewhere OtherReplica
	Unknown   string // why it is not known how the others stand; they count as none
}

// AgentOn says which of the agent's replicas leaves a node last: the one that
// drains, or else the first Ready one. own is its namespace/name where it is known.
func AgentOn(node, own string, replicas []Pod, now time.Time) Agent {
	var a Agent
	var here []Pod
	for _, p := range replicas {
		if p.Node == node && !p.Deleting && !p.Finished() {
			here = append(here, p)
		}
		a.Elsewhere = max(a.Elsewhere, elsewhere(p, node, now))
	}
	slices.SortFunc(here, func(a, b Pod) int {
		return cmp.Or(boolFirst(a.String() == own, b.String() == own), boolFirst(a.Ready, b.Ready), cmp.Compare(a.String(), b.String()))
	})
	if len(here) == 0 {
		return Agent{}
	}
	if len(here) > 1 { // the others leave before it, and are made again
		a.Elsewhere = max(a.Elsewhere, ComesElsewhere)
	}
	a.Pod = here[0].String()
	return a
}

func elsewhere(p Pod, node string, now time.Time) OtherReplica {
	switch {
	case p.Finished():
	case p.Deleting && p.Node == node: // its successor is about to be made
		return ComesElsewhere
	case p.Deleting || p.Node == node:
	case p.Ready && p.Node != "":
		return ReadyElsewhere
	case p.Unschedulable || p.Trouble != "":
	case now.Sub(p.Created) < unreadyFor:
		return ComesElsewhere
	}
	return NoneElsewhere
}

func boolFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// WithAgent is the judge that leaves the agent's last replica for the end.
func (j Judge) WithAgent(a Agent) Judge {
	j.agent = a
	return j
}

// agents is the verdict on the agent's own pod, where any other would be evicted.
func (j Judge) agents(v Verdict) Verdict {
	v.Own, v.Order, v.Surge = true, LastOrder, false
	switch {
	case j.agent.Unknown != "":
		return Verdict{Do: Skip, Own: true, Why: "the agent's own pod stays: whether another replica of it is Ready on another node is not known: " + j.agent.Unknown}
	case j.agent.Elsewhere == ReadyElsewhere:
		v.Why = "the agent's own pod leaves last"
	case j.agent.Elsewhere == ComesElsewhere:
		v.Do, v.Why = Await, "the agent's own pod leaves last, once another replica of it is Ready on another node"
	default:
		return Verdict{Do: Skip, Own: true, Why: "the agent's own pod stays: no other replica of it is Ready on another node"}
	}
	return v
}
