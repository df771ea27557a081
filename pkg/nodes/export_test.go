package nodes

import (
	"slices"
)

// Apply is the node as it is when the step has been written.
func (s Step) Apply(n Node) Node {
	n.Asked = slices.DeleteFunc(slices.Clone(n.Asked), func(a Asked) bool {
		return a.Gone && slices.Contains(s.Remove, a.Request.Requestor)
	})
	for i := range n.Asked {
		if status, changed := s.Statuses[n.Asked[i].Request.Requestor]; changed {
			n.Asked[i].Status = &status
		}
	}
	if s.Unschedulable != nil {
		n.Unschedulable = *s.Unschedulable
	}
	if s.CordonChanged {
		n.Cordon = s.Cordon
	}
	if s.Progress != nil {
		n.Progress = *s.Progress
	}
	if s.Behavior != nil {
		n.Behavior = *s.Behavior
	}
	if s.Conditions != nil {
		n.Conditions = *s.Conditions
	}
	return n
}

// Granted are turns in which each of the claimants gets the node.
func Granted(claimants ...string) Turns {
	turns := Turns{}
	for _, c := range claimants {
		turns[c] = Turn{Granted: true}
	}
	return turns
}
