package nodes

// Demand says what the requests on a node have of it: whether one is being carried out or
// has the node, and whether one waits for its turn, for a window, or for somebody to take
// out of its drain's way what no waiting moves. A request that nobody begins as it stands
// (its value is broken, its requestor failed, it was given up) wants nothing.
func (n *Node) Demand() (atWork, waits bool) {
	for _, a := range n.Asked {
		works, waiting := a.wants()
		atWork, waits = atWork || works, waits || waiting
	}
	return atWork, waits
}

// Waiting are the requestors of whose requests Demand says that they wait.
func (n *Node) Waiting() []string {
	var out []string
	for _, a := range n.Asked {
		if _, waits := a.wants(); waits {
			out = append(out, a.Request.Requestor)
		}
	}
	return out
}

func (a Asked) wants() (atWork, waits bool) {
	switch {
	case a.Gone:
		return false, false
	case a.Status == nil:
		return false, a.Fault == ""
	case a.Status.Ended != nil, a.Status.Phase == Invalid, a.Status.Phase == RequestorFailed:
		return false, false
	case a.Status.Phase == Pending, a.Status.Blocked != nil && a.Status.Blocked.Permanent:
		return false, true
	}
	return true, false
}
