package nodes

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// move takes each request one phase on.
func (w *work) move() {
	for _, s := range w.states {
		if s.next.Phase.given() && s.unmoved() {
			w.serve(s)
		}
	}
	if w.frozen() || w.yielded() {
		return
	}
	for _, s := range w.states {
		if s.was == Scheduled && s.unmoved() && s.Fault == "" {
			w.cordonOrTurnBack(s)
		}
	}
	w.together()
}

// serve follows what a requestor says of its own work.
func (w *work) serve(s *requestState) {
	switch {
	case s.Fault != "":
	case s.Request.Failed && s.was != RequestorFailed:
		s.to(RequestorFailed, w.now)
		w.say(s.name(), true, "RequestorFailed", cmp.Or(s.Request.Reason, "its requestor failed")+"; the node is kept out")
	case s.Request.Failed:
	case w.frozen() && w.node.cordonedBy(s.name()):
		s.to(Uncordoned, w.now)
	case s.was == Uncordoned: // pods may have come: the node is drained again
		s.next.Drained = ""
		s.to(Cordoning, w.now)
	case !w.fulfilled(s):
		s.to(Cordoning, w.now)
		w.say(s.name(), false, "AsksForMore", "the request asks for more than was drained; it is drained again")
	case s.was == RequestorFailed:
		s.to(Ready, w.now)
		w.say(s.name(), false, "Ready", "its requestor works again")
	default:
		s.next.Drained = drainIdentity(s.Request.Drain)
	}
}

// cordonOrTurnBack begins the change, unless the gate closed since the grant. A
// request that took over another's cordon has begun.
func (w *work) cordonOrTurnBack(s *requestState) {
	if !w.node.cordonedBy(s.name()) && (!w.node.Gate.Permitted || w.node.blocked(s.Asked)) {
		s.leave(w.now)
		return
	}
	s.to(Cordoning, w.now)
}

// together moves those who prepare: all of them wait for pods before any drains, and all are Ready at once.
func (w *work) together() {
	var group []*requestState
	settled, fulfilled := true, true
	for _, s := range w.states {
		if !s.next.Phase.preparing() || s.Fault != "" {
			continue
		}
		group = append(group, s)
		settled = w.drainable(s) && settled
		fulfilled = w.fulfilled(s) && fulfilled
	}
	switch {
	case !settled:
	case fulfilled:
		for _, s := range group {
			w.ready(s)
		}
	default:
		w.drain(group)
	}
}

// drainable says whether a request is cordoned and waits for no pods: it may be drained.
func (w *work) drainable(s *requestState) bool {
	switch {
	case !s.unmoved() || s.was == Scheduled:
		return false
	case !w.node.inForce(s.Asked):
		return s.was == Draining // the record was lost; recordCordon makes it anew
	case s.was == Cordoning && s.Request.WaitFor != nil:
		s.to(WaitingForPods, w.now)
		return false
	case s.was == WaitingForPods:
		over, _ := w.waited(s)
		return over
	}
	return true
}

// waited says whether a request need not wait for pods any more, and whether that is
// because its time is over.
func (w *work) waited(s *requestState) (over, late bool) {
	wait := s.Request.WaitFor
	if wait == nil || s.Pods.Known && s.Pods.Left == 0 {
		return true, false
	}
	if wait.Timeout <= 0 || w.soon.add(s.next.Since.Add(wait.Timeout)) {
		return false, false
	}
	return true, true
}

func (w *work) ready(s *requestState) {
	w.passWait(s)
	s.next.Drained = drainIdentity(s.Request.Drain)
	if s.Request.Failed {
		s.to(RequestorFailed, w.now)
		w.say(s.name(), true, "RequestorFailed", cmp.Or(s.Request.Reason, "its requestor failed")+"; the node is kept out")
		return
	}
	s.to(Ready, w.now)
	w.say(s.name(), false, "Ready", "the requestor has the node")
}

// passWait says so where a wait for pods ended by its timeout.
func (w *work) passWait(s *requestState) {
	if s.was != WaitingForPods {
		return
	}
	if _, late := w.waited(s); late {
		w.say(s.name(), true, "WaitTimedOut", "waited "+s.Request.WaitFor.Timeout.String()+" for "+podsText(s.Pods)+"; goes on without")
	}
}

// drain puts into the present pass whom it covers, or begins the next one.
func (w *work) drain(group []*requestState) {
	p, running := w.order()
	for _, m := range p.others {
		w.stateOf(m.Asked).to(Cordoning, w.now) // its value changed: it waits for a pass of its own
	}
	if running {
		for _, s := range group {
			if s.next.Phase != Draining && s.unmoved() && !w.fulfilled(s) && p.options.Includes(*s.Request.Drain) {
				w.depart(s, later(w.now, p.since.Add(time.Second)))
			}
		}
		return
	}
	var members []member
	for _, s := range group {
		if !w.fulfilled(s) {
			members = append(members, member{Asked: s.Asked, since: w.now})
		}
	}
	p, _ = passing(members)
	for _, m := range p.members {
		w.depart(w.stateOf(m.Asked), w.now)
	}
}

func (w *work) depart(s *requestState, since time.Time) {
	w.passWait(s)
	s.to(Draining, w.now)
	s.next.Since = since
	w.say(s.name(), false, "Draining", "pods leave the node")
}

func (w *work) stateOf(a *Asked) *requestState {
	return w.states[slices.IndexFunc(w.states, func(s *requestState) bool { return s.Asked == a })]
}

// recordCordon says for whom the node is cordoned from now on, and with that whether it is.
func (w *work) recordCordon() {
	by := w.claimants()
	switch {
	case len(by) == 0 && w.record == nil:
	case len(by) == 0:
		w.uncordon()
	case w.record == nil || w.stale():
		w.record = &Cordon{By: by, Node: w.node.UID, Before: w.node.Unschedulable, At: w.now}
		w.cordon()
	default:
		w.record.By = by
		if !slices.ContainsFunc(by, IsPlan) {
			w.record.Handed = nil
		}
	}
}

// claimants are those who want the node cordoned from now on.
func (w *work) claimants() (by []string) {
	if w.record != nil {
		for _, c := range w.record.By {
			if IsPlan(c) && !w.stale() && !w.forsaken(c) {
				by = append(by, c)
			}
		}
	}
	var next []string
	for _, s := range w.holding() {
		switch {
		case s.Fault == "" && !s.Request.Cordon:
		case w.node.cordonedBy(s.name()):
			by = append(by, s.name())
		case s.Fault != "":
		case s.next.Phase == Scheduled:
			next = append(next, s.name())
		default:
			by = append(by, s.name())
		}
	}
	if len(by) == 0 && w.record != nil && !w.record.Undone && w.node.Unschedulable {
		by = next // no uncordon between two requests
		if len(by) == 0 {
			by = w.handTo()
		}
	}
	return sortedSet(by)
}

// handTo are the plans that get the node as its last request goes: it stays cordoned for them, so that no
// pods come in between. The record says that they have not claimed it themselves yet.
func (w *work) handTo() (by []string) {
	for claimant, turn := range w.turns {
		if IsPlan(claimant) && turn.has() {
			by = append(by, claimant)
		}
	}
	if by = sortedSet(by); len(by) > 0 {
		w.record.Handed = &w.now
		w.say("", false, "KeptCordoned", "the node stays cordoned for "+some(by)+", which is next to have it")
	}
	return by
}

// has says whether a plan has a node, or is about to.
func (t Turn) has() bool { return t.Granted || t.Next }

// claimWithin is how long a node is kept cordoned for a plan that does not have it
// after all (a guess: its turn is taken back where pods are in its way).
const claimWithin = 30 * time.Second

// forsaken says that a plan for which the node was kept does not take it.
func (w *work) forsaken(claimant string) bool {
	if w.record.Handed == nil || w.turns[claimant].has() {
		return false
	}
	return !w.soon.add(w.record.Handed.Add(claimWithin))
}

// stale says that plans alone stand in the record, and that the node is
// schedulable all the same: who cordons it now begins anew, as Cordon.With does.
func (w *work) stale() bool {
	return w.record != nil && !w.node.Unschedulable && !w.node.uncordonedByOthers() && w.wantsCordon()
}

func (w *work) wantsCordon() bool {
	return slices.ContainsFunc(w.holding(), func(s *requestState) bool {
		return s.Fault == "" && s.Request.Cordon && s.next.Phase != Scheduled
	})
}

func (w *work) cordon() {
	if w.node.Unschedulable {
		w.say("", false, "KeptCordoned", "the node was cordoned already, and stays so afterwards")
		return
	}
	w.step.Unschedulable = new(true)
	w.say("", false, "Cordoned", "for "+some(w.record.By))
}

func (w *work) uncordon() {
	switch {
	case !w.node.Unschedulable || w.record.Undone:
	case w.record.Before:
		w.say("", false, "LeftCordoned", "the node was cordoned before, and stays so")
	default:
		w.step.Unschedulable = new(false)
		w.say("", false, "Uncordoned", "nobody asks for the node any more")
	}
	w.record = nil
}

// drainNow is the order for a drain whose intent stands in the recorded statuses
// and stays: it is carried out only then.
func (w *work) drainNow() *Drain {
	p, ok := w.order()
	if !ok {
		return nil
	}
	requestors := make([]string, 0, len(p.members))
	for _, m := range p.members {
		if m.Status.yielded() || !m.Status.Since.Equal(m.since) || !w.node.inForce(m.Asked) {
			return nil
		}
		requestors = append(requestors, m.Request.Requestor)
	}
	if at, ends := drain.Deadline(p.options, p.since); ends {
		w.soon.add(at)
	}
	return &Drain{Key: w.key(p), Options: p.options, Since: p.since, Requestors: sortedSet(requestors)}
}

// endless says that a drain goes on past its timeout.
func endless(o drain.Options, since, now time.Time) bool {
	at, ends := drain.Deadline(o, since)
	return o.OnTimeout == drain.TimeoutRetry && ends && !now.Before(at)
}
