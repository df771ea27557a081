package drain

// Returns knows pods that keep landing on the node they were evicted from. The
// zero value has seen nothing.
type Returns struct {
	vacated map[string][]int // by owner: how often those that left had come back
	of      map[string]int   // by uid, of those that are there
}

// Arrived notes a pod that appeared on the node after the drain began, and says how
// often its like came back by now.
func (r *Returns) Arrived(p Pod) int {
	left := r.vacated[p.ownerKey()]
	if len(left) == 0 {
		return 0
	}
	times := left[len(left)-1] + 1
	r.vacated[p.ownerKey()] = left[:len(left)-1]
	if r.of == nil {
		r.of = map[string]int{}
	}
	r.of[p.UID] = times
	return times
}

// Left notes a pod that had to leave, and begins to.
func (r *Returns) Left(p Pod) {
	if r.vacated == nil {
		r.vacated = map[string][]int{}
	}
	r.vacated[p.ownerKey()] = append(r.vacated[p.ownerKey()], r.of[p.UID])
	delete(r.of, p.UID)
}

// Counts are how often each pod that is there came back, by uid.
func (r *Returns) Counts() map[string]int { return r.of }
