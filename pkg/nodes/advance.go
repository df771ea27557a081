package nodes

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// Advance says the one next thing to do about a node: each request moves by one
// phase at most, and what is written of all of them is one patch. Turns are
// Ranking.Turns of a ranking of this very view of the node; without them nothing
// begins, and all that has begun goes on.
//
// Pending to Scheduled is the ranker's grant, and Scheduled turns back when the
// gate closes before the cordon: the cordon is the start of change. From then on
// the gate is not asked. Requests that share the node wait for each other's pods
// before anything is drained, and become Ready in one write. A second drain
// follows where the first did not ask for all; only then begin the others' Since
// and timeout.
//
// A removed request takes its status with it. With the last one that wants the
// node cordoned goes the record, and the node is uncordoned where the record says
// that it was schedulable before and that nobody has uncordoned it since. Where
// the ranker gives the node to the next one in the same pass, the cordon stays.
//
// An uncordon by somebody else is written into the record. Who was Ready is
// Uncordoned, the other phases stay, the drain stops, nothing is cordoned again; a
// second cordon by somebody else is theirs, and the requests go on under it with a
// drain that begins anew. An uncordon and a
// cordon between two looks are seen by the field managers that the node names.
//
// A drain that is out of time and aborts gives up the requests that said so, also where
// something kept it from its cordon all that time, and
// releaseExpired those that are not Ready past maxNodeMaintenanceTime: phase
// Pending, with the reason, the slot freed and our cordon undone, and not tried
// again until the value of the annotation is another one. A value that cannot be
// read makes its request Invalid where nothing was begun for it; where something
// was, the request stays where it is, without a drain: what the requestor has, it
// has until the annotation is gone.
func Advance(n Node, turns Turns, limits Limits, now time.Time) Step {
	if n.Deleting {
		return Step{}
	}
	w := begin(n, turns, limits, now)
	w.notice()
	w.expire()
	w.endSlots()
	w.readDrain()
	w.abortBlocked()
	w.yieldOrResume()
	w.start()
	w.move()
	w.recordCordon()
	w.explain()
	return w.result()
}

// work is one pass over a node.
type work struct {
	node   Node
	turns  Turns
	limits Limits
	now    time.Time
	states []*requestState // of requests that stand
	gone   []*Asked
	record *Cordon // as it will be
	step   Step
	soon   soonest
}

// requestState is a request with its status as it will be.
type requestState struct {
	*Asked
	was  Phase
	next Status
}

func (s *requestState) name() string { return s.Request.Requestor }

// unmoved says whether the phase is still the recorded one.
func (s *requestState) unmoved() bool { return s.was == s.next.Phase }

func (s *requestState) to(p Phase, now time.Time) {
	if s.next.Phase != p {
		s.next.Phase, s.next.Since, s.next.Progress, s.next.Blocked = p, now, nil, nil
	}
}

// leave gives the node back. Its age stays, and with it its rank.
func (s *requestState) leave(now time.Time) {
	s.to(Pending, now)
	s.next.Started, s.next.Yielded, s.next.Drained, s.next.Left, s.next.Note, s.next.Overdue, s.next.SlotOver = nil, nil, "", false, "", false, false
}

func (s *requestState) end(why, reason string, now time.Time) {
	s.leave(now)
	s.next.Reason = reason + "; not tried again until the request changes"
	s.next.Ended = &End{Why: why, Value: s.Request.Identity}
}

func begin(n Node, turns Turns, limits Limits, now time.Time) *work {
	n.Asked = slices.Clone(n.Asked)
	w := &work{node: n, turns: turns, limits: limits, now: stamp(now), soon: soonest{now: now}}
	w.step.Statuses = map[string]Status{}
	if n.Cordon != nil {
		record := *n.Cordon
		record.Before = record.Before || n.Taken.By != ""
		w.record = &record
	}
	for i := range w.node.Asked {
		a := &w.node.Asked[i]
		if a.Gone {
			w.release(a)
			continue
		}
		w.states = append(w.states, w.newState(a))
	}
	return w
}

// release lets a removed request go.
func (w *work) release(a *Asked) {
	w.gone = append(w.gone, a)
	w.step.Remove = append(w.step.Remove, a.Request.Requestor)
	if w.node.phase(a).Holds() {
		w.say(a.Request.Requestor, false, "Released", "the request was removed; its requestor has the node no more")
	} else if a.Status != nil {
		w.say(a.Request.Requestor, false, "Withdrawn", "the request was removed before it had the node")
	}
}

// newState begins with the status as recorded, with what a lost or changed one must say.
func (w *work) newState(a *Asked) *requestState {
	s := &requestState{Asked: a, was: w.node.phase(a)}
	switch {
	case a.Status == nil || a.Status.Ended != nil && !a.ended():
		s.next = Status{Phase: s.was, Since: w.now, Asked: w.now, Node: w.node.UID}
	default:
		s.next = *a.Status
	}
	if s.next.Asked.IsZero() {
		s.next.Asked = s.next.Since
	}
	if s.was.Holds() && s.next.Started == nil {
		s.next.Started = &w.now
	}
	begun := s.was.Holds() && (s.was != Scheduled || w.node.cordonedBy(s.name()))
	switch {
	case a.Fault != "" && !begun:
		if s.was != Invalid {
			w.say(s.name(), true, "Invalid", "the request cannot be read: "+document.OneLine(a.Fault))
		}
		s.leave(w.now)
		s.next.Ended = nil
		if s.to(Invalid, w.now); s.was == Invalid {
			s.next.Since = a.Status.Since
		}
	case s.was == Invalid:
		s.to(Pending, w.now)
	}
	return s
}

// holding are the requests that have the node.
func (w *work) holding() []*requestState {
	return slices.DeleteFunc(slices.Clone(w.states), func(s *requestState) bool { return !s.next.Phase.Holds() })
}

// cordoned are the requests that have the node and stand in the record.
func (w *work) cordoned() bool {
	return slices.ContainsFunc(w.holding(), func(s *requestState) bool { return w.node.cordonedBy(s.name()) })
}

// frozen says that somebody else uncordoned the node under those who have it.
func (w *work) frozen() bool { return w.record != nil && w.record.Undone && w.cordoned() }

// notice sees what somebody else did to our cordon.
func (w *work) notice() {
	if w.record == nil || !w.cordoned() {
		return
	}
	switch {
	case w.node.Taken.By != "" && !w.node.Cordon.Before && !w.record.Undone:
		w.taken()
	case !w.node.Unschedulable && !w.record.Undone:
		w.record.Undone, w.record.Drained = true, nil // pods may have come
		for _, s := range w.holding() {
			if s.next.Phase.preparing() {
				s.next.Drained = ""
			}
		}
		w.say("", true, "UncordonedByOthers", "the node was uncordoned while "+w.holderNames()+" had it; that is left as it is, and nothing more is drained")
	case w.node.Unschedulable && w.record.Undone:
		w.record.Undone, w.record.Before = false, true
		for _, s := range w.holding() {
			if s.next.Phase == Draining {
				s.again(w.now) // a word about the drain before is about other pods
			}
		}
		w.say("", false, "CordonedByOthers", "the node was cordoned again; "+w.holderNames()+" goes on, and the node stays cordoned afterwards")
	}
}

// taken sees that somebody else cordoned the node between two looks. Where it was
// open before, pods may have come: it is drained again.
func (w *work) taken() {
	w.say("", false, "CordonedByOthers", "the node was cordoned by "+w.node.Taken.By+" too, while "+w.holderNames()+" had it; it stays cordoned afterwards")
	if !w.node.Taken.Opened {
		return
	}
	w.record.Drained = nil
	for _, s := range w.holding() {
		switch {
		case s.next.Phase == Draining:
			s.again(w.now)
		case s.next.Phase == Ready && s.Request.Drain != nil && s.Fault == "":
			s.next.Drained = ""
			s.to(Cordoning, w.now)
		case s.next.Phase.preparing():
			s.next.Drained = ""
		}
	}
}

func (w *work) holderNames() string {
	var names []string
	for _, s := range w.holding() {
		names = append(names, s.name())
	}
	return some(names)
}

// expire reports and, where the config says so, gives up what takes too long.
func (w *work) expire() {
	for _, s := range w.holding() {
		if w.limits.MaxTime <= 0 {
			s.next.Overdue = false
			continue
		}
		due := s.next.Started.Add(w.limits.MaxTime)
		if w.soon.add(due) {
			s.next.Overdue = false
			continue
		}
		if !s.next.Overdue {
			s.next.Overdue = true
			w.say(s.name(), true, "Overdue", "has the node for longer than maxNodeMaintenanceTime "+w.limits.MaxTime.String())
		}
		if w.limits.ReleaseExpired && s.next.Phase.preparing() && !s.Request.Failed && s.Fault == "" {
			reason := "released: not Ready after maxNodeMaintenanceTime " + w.limits.MaxTime.String()
			w.say(s.name(), true, "Expired", reason)
			s.end(EndExpired, reason, w.now)
		}
	}
}

// order is the drain that the requests need which are Draining, as far as they can have one together.
func (w *work) order() (pass, bool) {
	if w.frozen() || w.yielded() {
		return pass{}, false
	}
	return w.pass()
}

// pass is that drain, whether or not it may run.
func (w *work) pass() (pass, bool) {
	var members []member
	for _, s := range w.states {
		if s.was == Draining && s.unmoved() && s.Fault == "" && !w.fulfilled(s) {
			members = append(members, member{Asked: s.Asked, since: s.next.Since})
		}
	}
	return passing(members)
}

// fulfilled says whether what a request asks to leave has left.
func (w *work) fulfilled(s *requestState) bool {
	return w.record.fulfills(s.Request.Drain, s.next.Drained)
}

func (w *work) key(p pass) string { return orderKey(w.node.UID, p.options, p.since) }

// readDrain takes in that the drain is done, or gave up.
func (w *work) readDrain() {
	p, ordered := w.order()
	if !ordered || w.node.Drain.Key != w.key(p) {
		return
	}
	switch {
	case w.node.Drain.State == SessionDone:
		w.drained(p)
	case w.node.Drain.State == SessionAborted && p.options.OnTimeout == drain.TimeoutAbort:
		w.aborted(p)
	}
}

// drained notes what has left. A drain ends without pods that come back again and again, whatever its
// onTimeout: who asked for it is not drained again because of them.
func (w *work) drained(p pass) {
	done := drain.PassOf(p.options, w.node.Drain.Left > 0)
	through := func(o drain.Options) bool {
		return done.Covers(o) || p.options.OnTimeout != drain.TimeoutSkip && done.Includes(o)
	}
	if w.record != nil && !w.record.Undone && w.node.Unschedulable {
		w.record.Drained = drain.Remember(w.record.Drained, done)
	}
	for _, s := range w.states {
		switch {
		case !p.has(s.Asked):
		case through(*s.Request.Drain):
			s.next.Drained, s.next.Left, s.next.Progress, s.next.Note = drainIdentity(s.Request.Drain), done.Left, nil, document.Cut(w.node.Drain.Note, maxBlock)
			w.say(s.name(), false, "Drained", cmp.Or(w.node.Drain.Text, "the pods have left"))
		default:
			s.again(w.now) // it does not leave what another one left
		}
	}
}

func (w *work) aborted(p pass) {
	for _, s := range w.states {
		switch {
		case !p.has(s.Asked):
		case s.Request.Drain.OnTimeout == drain.TimeoutAbort:
			w.abort(s, p.options.Timeout, cmp.Or(w.node.Drain.Text, w.node.Drain.Block.Text, s.Preview.Text))
		default:
			s.again(w.now)
		}
	}
}

func (w *work) abort(s *requestState, after *document.Duration, why string) {
	reason := "the drain was aborted after " + after.String()
	if why != "" {
		reason += ": " + why
	}
	w.say(s.name(), true, "Aborted", reason)
	s.end(EndAborted, reason, w.now)
}

// again begins another pass. Since always moves, so that the order has a new key.
func (s *requestState) again(now time.Time) {
	s.next.Since, s.next.Progress = later(now, s.next.Since.Add(time.Second)), nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// start gives the node to those whose turn it is.
func (w *work) start() {
	for _, s := range w.states {
		if s.next.Phase != Pending || s.next.Ended != nil || s.Fault != "" || !w.turns[s.name()].Granted {
			continue
		}
		if !w.node.Gate.Permitted || w.node.blocked(s.Asked) || !w.admits(s) {
			continue
		}
		s.to(Scheduled, w.now)
		s.next.Started = &w.now
		w.say(s.name(), false, "Scheduled", "its turn for the node has come")
	}
}

// admits asks again what the ranker asked: a ranking of another view does no harm.
func (w *work) admits(s *requestState) bool {
	if w.node.uncordonedByOthers() || w.yielded() {
		return false
	}
	present := w.holding()
	if len(present) == 0 {
		return true
	}
	asked, phases := make([]*Asked, 0, len(present)), map[*Asked]Phase{}
	for _, p := range present {
		asked = append(asked, p.Asked)
		phases[p.Asked] = p.next.Phase
	}
	return w.node.joins(s.Asked, asked, func(a *Asked) Phase { return phases[a] })
}

func (w *work) say(requestor string, warning bool, reason, message string) {
	w.step.Events = append(w.step.Events, Event{Requestor: requestor, Warning: warning, Reason: reason, Message: document.Cut(message, maxReason)})
}

// soonest keeps the first of the instants that are still to come.
type soonest struct {
	now   time.Time
	first *time.Time
}

// add says whether an instant is still to come.
func (s *soonest) add(at time.Time) bool {
	if !at.After(s.now) {
		return false
	}
	if s.first == nil || at.Before(*s.first) {
		s.first = &at
	}
	return true
}
