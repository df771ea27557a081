package nodes

import (
	"cmp"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// A drain that is blocked for good after its cordon yields its slot, if the limits
// allow it and another waits that needs nothing but a slot. The drain stops; its
// node stays cordoned, and counts as unavailable and in its zone. Once nothing
// stands in its way any more, it is the first to get a slot again.
//
// Both are decided by the same preview of the node's pods: one that still stands in
// the way keeps a yielded node from its slot, and one that does not keeps a node
// from yielding. So two blocked nodes cannot hand one slot back and forth.
//
// A node on which nothing can be written yields whatever the limits allow: whoever
// fills its annotations would have the slot for as long as he likes.

// stopped says whether nothing can be written on the node, and nobody works on it yet.
func (n *Node) stopped() bool {
	return n.Gate.Stops != "" && !slices.ContainsFunc(n.Asked, func(a Asked) bool { return !a.Gone && n.phase(&a).given() })
}

// yielded says whether the requests that have the node gave up their slot.
func (n *Node) yielded() bool {
	return n.stopped() || slices.ContainsFunc(n.Asked, func(a Asked) bool { return !a.Gone && n.phase(&a).preparing() && a.Status.yielded() })
}

func (s *Status) yielded() bool { return s != nil && s.Yielded != nil }

// stalled says whether the drain of those who have the node runs, is blocked for
// good, and would neither leave nor delete the pods in its way.
func (n *Node) stalled(standing []*Asked) bool {
	if n.Cordon == nil || n.Cordon.Undone || !n.Unschedulable {
		return false
	}
	var members []member
	ours := false
	for _, a := range standing {
		if !n.phase(a).preparing() {
			return false
		}
		ours = ours || n.cordonedBy(a.Request.Requestor)
		if a.Status != nil && a.Status.Phase == Draining && a.Fault == "" && !n.fulfilled(a) {
			members = append(members, member{Asked: a, since: a.Status.Since})
		}
	}
	p, runs := passing(members)
	return ours && runs && n.Drain.State == SessionRunning && n.Drain.Block.holds(p.options) &&
		n.Drain.Key == orderKey(n.UID, p.options, p.since) && n.obstructed(standing)
}

// obstructed says whether a look at the pods found one in the way that never leaves.
func (n *Node) obstructed(standing []*Asked) bool {
	return slices.ContainsFunc(standing, func(a *Asked) bool { return a.Fault == "" && n.blocked(a) })
}

// noteYield decides whether a node has yielded its slot: all who have it did. One that is to be
// released, and cannot be written, has too.
func (s *site) noteYield() {
	if s.leaving && !s.stopped() || s.resuming || len(s.standing)+len(s.holds) == 0 && !s.leaving {
		return
	}
	s.yielded = (len(s.standing) == 0 || s.Node.yielded()) && !slices.ContainsFunc(s.holds, func(h Hold) bool { return !h.Yielded })
}

// yieldedBy says whether a step of a plan that has the node yielded its slot.
func (s *site) yieldedBy(claimant, step string) bool {
	is := func(h Hold) bool { return h.Claimant == claimant && h.Step == step }
	return slices.ContainsFunc(s.holds, is) && !slices.ContainsFunc(s.holds, func(h Hold) bool { return is(h) && !h.Yielded })
}

// mayYield says whether a node may give its slot to others.
func (s *site) mayYield() bool {
	switch {
	case s.yielded || s.resuming || s.leaving || s.Deleting || len(s.standing)+len(s.holds) == 0:
		return false
	case len(s.standing) > 0 && !s.stalled(s.standing):
		return false
	}
	return !slices.ContainsFunc(s.holds, func(h Hold) bool { return !h.Yielded && !h.Stalled })
}

// makeRoom has blocked nodes yield their slots to one that needs nothing else. It
// does so for one at a time: who else waits is looked at when that is written.
func (r *ranker) makeRoom(e *entry) {
	need := 1 - r.slots
	if !r.world.Limits.Yield || len(r.out.Yields) > 0 {
		return
	}
	var from []*site
	for _, s := range r.sites {
		if s != e.site && len(from) < need && s.mayYield() {
			from = append(from, s)
		}
	}
	if len(from) < need {
		return
	}
	for _, s := range from {
		r.out.Yields = append(r.out.Yields, s.Name)
		for _, a := range s.standing {
			r.turns(s.Name)[a.Request.Requestor] = Turn{Yield: true}
		}
	}
}

// resumption is that of the requests on a node which yielded its slot.
func (r *ranker) resumption(s *site) *entry {
	if !s.yielded || len(s.standing) == 0 {
		return nil
	}
	claimant := s.present()
	switch {
	case s.Deleting:
		return nil
	case s.stopped():
		r.fix(s.Name, claimant, "", said(WaitClosed, s.Gate.Stops))
		return nil
	case s.uncordonedByOthers():
		r.fix(s.Name, claimant, "", said(WaitUncordoned, "somebody uncordoned the node while it was held; it goes on when it is cordoned again"))
		return nil
	case r.world.Limits.Yield && s.obstructed(s.standing):
		i := slices.IndexFunc(s.standing, func(a *Asked) bool { return s.blocked(a) })
		r.fix(s.Name, claimant, "", said(WaitBlocked, YieldedText(s.standing[i].Preview)))
		return nil
	}
	return &entry{site: s, claimant: claimant, asked: s.standing[0], resumes: true, since: s.standing[0].since(r.world.Now)}
}

// resume gives a node its slot back. It is unavailable and counts in its zone
// already. Where other work of the claimant has begun on it, it has its slot.
func (r *ranker) resume(e *entry) {
	wait, none := r.none()
	if !none && e.yielded && r.slots <= 0 {
		r.makeRoom(e)
		wait, none = r.turn(e), true
	}
	if none {
		r.wait(e, wait)
		for _, a := range e.standing {
			r.turns(e.Name)[a.Request.Requestor] = Turn{Wait: wait.Lasting}
		}
		return
	}
	if e.yielded {
		r.slots--
	}
	r.out.Grants = append(r.out.Grants, Grant{Node: e.Name, Claimant: e.claimant, Step: e.step})
	for _, a := range e.standing {
		r.turns(e.Name)[a.Request.Requestor] = Turn{Resume: true}
	}
}

// YieldedText says why a node that yielded its slot does not go on.
func YieldedText(b Block) string {
	return "Blocked for good: " + cmp.Or(b.Text, "pods would not leave") + "; others have its turn meanwhile: the node stays cordoned, and goes on first once nothing is in the way"
}

// yielded says whether those who have the node gave up its slot.
func (w *work) yielded() bool {
	return slices.ContainsFunc(w.holding(), func(s *requestState) bool { return s.next.Yielded != nil })
}

// turned says whether the ranking has something for those who have the node.
func (w *work) turned(is func(Turn) bool) bool {
	return slices.ContainsFunc(w.holding(), func(s *requestState) bool { return is(w.turns[s.name()]) })
}

// yieldOrResume gives up the slot of a drain that is blocked for good, or goes on with the drain.
func (w *work) yieldOrResume() {
	switch yielded := w.yielded(); {
	case yielded && w.turned(func(t Turn) bool { return t.Resume }):
		for _, s := range w.holding() {
			s.next.Yielded = nil
		}
		w.say("", false, "DrainResumed", "nothing is in the way of the drain for "+w.holderNames()+" any more, or a slot is free again: it goes on")
	case yielded:
		w.abortYielded()
	case w.node.stopped() && len(w.holding()) > 0:
		w.yield("the API server refused what the agent writes on the node, so that others have its turn")
	case w.turned(func(t Turn) bool { return t.Yield }) && w.mayYield():
		w.yield("the drain for " + w.holderNames() + " is blocked for good, and others wait: they have its turn")
	}
}

// yield gives up the slot of those who have the node.
func (w *work) yield(why string) {
	for _, s := range w.holding() {
		s.next.Yielded = &w.now
	}
	w.say("", false, "DrainYielded", why+"; the node stays cordoned, and goes on first once nothing is in the way")
}

// mayYield asks again what the ranker asked.
func (w *work) mayYield() bool {
	standing, leaving := w.node.holders()
	moved := slices.ContainsFunc(w.holding(), func(s *requestState) bool { return !s.unmoved() })
	return !leaving && !moved && !w.frozen() && w.node.stalled(standing)
}

// abortYielded ends a drain in time that aborts: nobody else looks at its clock while it does not run.
func (w *work) abortYielded() {
	p, is := w.pass()
	if !is || p.options.OnTimeout != drain.TimeoutAbort {
		return
	}
	if at, ends := drain.Deadline(p.options, p.since); ends && !w.soon.add(at) {
		w.aborted(p)
	}
}

// yieldedReason is what is said of a request on a node that yielded its slot.
func (w *work) yieldedReason(s *requestState) word {
	switch wait := w.turns[s.name()].Wait; {
	case w.node.blocked(s.Asked):
		return word{reason: YieldedText(s.Preview), blocked: s.Preview}
	case wait != "":
		return word{reason: "yielded its slot while its drain was blocked: " + wait}
	}
	return word{reason: "yielded its slot while its drain was blocked; goes on first"}
}
