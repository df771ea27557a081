package nodes

// Wanted says what the requests on a node have of it: whether one is being carried out or
// has the node, and whether one waits for its turn, for a window, or for somebody to take
// out of its drain's way what no waiting moves. A request that nobody begins as it stands
// (its value is broken, its requestor failed, it was given up) wants nothing.
func (n *Node) Wanted() (atWork, waits bool) {
	for _, a := range n.Asked {
		switch {
		case a.Gone:
		case a.Status == nil:
			waits = waits || a.Fault == ""
		case a.Status.Ended != nil, a.Status.Phase == Invalid, a.Status.Phase == RequestorFailed:
		case a.Status.Phase == Pending, a.Status.Blocked != nil && a.Status.Blocked.Permanent:
			waits = true
		default:
			atWork = true
		}
	}
	return atWork, waits
}
