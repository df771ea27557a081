// Package lifecycle says which of Kubernetes' lifecycle conditions a node has, by what its
// requests and the rollouts of runs are at.
package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// Type is the type of a condition on a node's status, as KEP-5683 names it.
type Type string

// The lifecycle conditions of a node.
const (
	Planned     Type = "MaintenancePlanned"    // somebody is to have the node, and has not got it yet
	Draining    Type = "DrainInProgress"       // from the cordon to the last pod
	Drained     Type = "Drained"               // what the drain asks is met, until the node is released
	Maintenance Type = "MaintenanceInProgress" // a requestor has the node, or a rollout works on it
)

// Types are all lifecycle conditions, in the order in which a node comes through them.
func Types() []Type { return []Type{Planned, Draining, Drained, Maintenance} }

// Why a condition is True.
const (
	ReasonRequested = "MaintenanceRequested"
	ReasonRollout   = "RolloutPlanned"
	ReasonWindow    = "MaintenanceWindow" // requested, and the node's window is closed
	ReasonStarted   = "DrainStarted"
	ReasonBlocked   = "DrainBlocked"
	ReasonCompleted = "DrainCompleted"
	ReasonHanded    = "HandedOver"
	ReasonAtWork    = "RolloutAtWork"
	ReasonFailed    = "RequestorFailed"
)

// Why a condition is False.
const (
	ReasonIncomplete = "DrainIncomplete"     // onTimeout skip left pods on the node
	ReasonBegun      = "MaintenanceStarted"  // what was planned has begun
	ReasonCancelled  = "MaintenanceCanceled" // nobody is to have the node any more
	ReasonDrainEnded = "DrainEnded"          // given up, failed or withdrawn
	ReasonReleased   = "NodeReleased"
	ReasonOver       = "MaintenanceEnded" // nobody works on the node any more, and it is not released yet
)

// Condition is one condition of a node.
type Condition struct {
	Type            Type
	True            bool
	Reason, Message string
	Foreign         bool // as it stands: somebody else set it
	Unknown         bool // as it stands: the API server does not tell any more who set it
}

// Facts is what is known of a node.
type Facts struct {
	Node  nodes.Node
	Works []Work // of the runs that are at work
}

// claim is somebody for whom a condition is True.
type claim struct{ reason, name, text string }

// Changes are the conditions to be written, given those that stand, and those that stay as
// somebody else set them. A condition that never was True is not written to be False, but
// for the one of a drain that left pods.
func (f Facts) Changes(have []Condition) (change, left []Condition) {
	wanted := f.wanted(have)
	for _, t := range Types() {
		at := slices.IndexFunc(have, func(c Condition) bool { return c.Type == t })
		is := Condition{Type: t}
		if at >= 0 {
			is = have[at]
		}
		want, set := wanted[t]
		if !set && is.True {
			want, set = Condition{Type: t, Reason: endOf(t, wanted, f)}, true
		}
		switch {
		case !set || is.True == want.True && is.Reason == want.Reason && is.Message == want.Message:
		case is.True && f.foreign(is):
			if want.True {
				left = append(left, is)
			}
		default:
			change = append(change, want)
		}
	}
	return change, left
}

// Ends are the conditions of ours, as they end where nobody looks after the node any more.
func (f Facts) Ends(have []Condition) []Condition {
	var out []Condition
	for _, is := range have {
		switch {
		case !is.True || f.foreign(is):
		case is.Type == Planned:
			out = append(out, Condition{Type: is.Type, Reason: ReasonCancelled})
		default:
			out = append(out, Condition{Type: is.Type, Reason: ReasonReleased})
		}
	}
	return out
}

// foreign says whether somebody else set a condition that is True. Where the API server does
// not tell, it is ours by what it says: our reason, with the words that we write for it. Words
// that are not always the same have to name those who have to do with the node.
func (f Facts) foreign(is Condition) bool {
	if !is.Unknown {
		return is.Foreign
	}
	names, text, said := strings.Cut(is.Message, ": ")
	switch {
	case !said || !slices.Contains(reasonsOf(is.Type), is.Reason):
		return true
	case text == textOf(is.Reason):
		return false
	}
	known := f.names()
	for name := range strings.SplitSeq(names, ", ") {
		if !slices.Contains(known, name) {
			return true
		}
	}
	return false
}

// reasonsOf are the reasons for which we set a condition to True.
func reasonsOf(t Type) []string {
	switch t {
	case Planned:
		return []string{ReasonRequested, ReasonRollout, ReasonWindow}
	case Draining:
		return []string{ReasonStarted, ReasonBlocked}
	case Drained:
		return []string{ReasonCompleted}
	case Maintenance:
		return []string{ReasonHanded, ReasonAtWork, ReasonFailed}
	}
	return nil
}

// names are those who have to do with the node, as messages name them.
func (f Facts) names() []string {
	var out []string
	for _, a := range f.Node.Asked {
		out = append(out, a.Request.Requestor)
	}
	for _, w := range f.Works {
		out = append(out, nodes.ClaimantName(w.Claimant))
	}
	if f.Node.Cordon != nil {
		for _, by := range f.Node.Cordon.By {
			out = append(out, nodes.ClaimantName(by))
		}
	}
	return out
}

// wanted are the conditions that hold, by type.
func (f Facts) wanted(have []Condition) map[Type]Condition {
	out := map[Type]Condition{}
	draining := f.draining()
	for t, list := range map[Type][]claim{Planned: f.planned(), Draining: draining, Maintenance: f.inProgress()} {
		if len(list) > 0 {
			out[t] = conditionOf(t, list)
		}
	}
	if c, ok := f.drained(have); ok && len(draining) == 0 {
		out[Drained] = c
	}
	return out
}

// conditionOf is True for the first of the claims, and names all.
func conditionOf(t Type, list []claim) Condition {
	first := list[0]
	var names []string
	for _, c := range list {
		if !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return Condition{Type: t, True: true, Reason: first.reason, Message: messageOf(names, cmp.Or(first.text, textOf(first.reason)))}
}

func messageOf(names []string, text string) string {
	return document.Cut(strings.Join(names, ", ")+": "+document.OneLine(text), document.MaxMessage)
}

// textOf is what a reason says where nothing more is known.
func textOf(reason string) string {
	switch reason {
	case ReasonRequested, ReasonRollout:
		return "waits for the node"
	case ReasonStarted:
		return "pods are leaving"
	case ReasonCompleted:
		return "pods have left"
	case ReasonIncomplete:
		return "pods that were to leave are still there"
	case ReasonHanded:
		return "has the node"
	case ReasonAtWork:
		return "works on the node"
	case ReasonFailed:
		return "failed, and keeps the node"
	}
	return "blocked"
}

// endOf is why a condition holds no more.
func endOf(t Type, wanted map[Type]Condition, f Facts) string {
	held := f.Node.Cordon != nil
	switch {
	case t == Planned && (held || wanted[Draining].True || wanted[Maintenance].True):
		return ReasonBegun
	case t == Planned:
		return ReasonCancelled
	case t == Draining && wanted[Drained].True:
		return ReasonCompleted
	case t == Draining && wanted[Drained].Reason != "":
		return wanted[Drained].Reason
	case t == Draining:
		return ReasonDrainEnded
	case t == Drained && wanted[Draining].True:
		return wanted[Draining].Reason
	case t == Maintenance && held:
		return ReasonOver
	}
	return ReasonReleased
}

// planned are those who are to have the node, and whose turn has not come.
func (f Facts) planned() []claim {
	var out []claim
	for _, a := range f.Node.Asked {
		if a.Gone || a.Fault != "" || a.Status == nil || a.Status.Ended != nil {
			continue
		}
		if a.Status.Phase != nodes.Pending && a.Status.Phase != nodes.Scheduled {
			continue
		}
		c := claim{reason: ReasonRequested, name: a.Request.Requestor}
		if gate := f.Node.Gate; !gate.Permitted {
			c.reason, c.text = ReasonWindow, notBefore(gate.Opens, gate.Reason)
		}
		out = append(out, c)
	}
	return append(out, f.works(func(w Work) (claim, bool) { return f.plannedBy(w), w.Planned })...)
}

// plannedBy is what is planned for a run: its own window and that of the node have to be open.
func (f Facts) plannedBy(w Work) claim {
	closed, opens, why := w.Closed != "", w.Opens, w.Closed
	if gate := f.Node.Gate; !gate.Permitted && (!closed || later(gate.Opens, opens)) {
		closed, opens, why = true, gate.Opens, gate.Reason
	}
	if !closed || w.Begun {
		return claim{reason: ReasonRollout}
	}
	return claim{reason: ReasonWindow, text: notBefore(opens, why)}
}

// later says whether an instant is after another, as far as they are known.
func later(a, b *time.Time) bool { return a != nil && (b == nil || a.After(*b)) }

func notBefore(opens *time.Time, why string) string {
	if opens == nil {
		return why
	}
	return fmt.Sprintf("not before %s: %s", opens.UTC().Format(time.RFC3339), why)
}

// draining are those for whom pods leave the node.
func (f Facts) draining() []claim {
	var out []claim
	for _, a := range f.Node.Asked {
		if a.Gone || a.Status == nil || a.Request.Drain == nil || a.Request.Cordon && !f.Node.Unschedulable {
			continue
		}
		switch a.Status.Phase {
		case nodes.Cordoning, nodes.WaitingForPods, nodes.Draining:
		default:
			continue
		}
		c := claim{reason: ReasonStarted, name: a.Request.Requestor}
		if b := a.Status.Blocked; b != nil {
			c.reason, c.text = ReasonBlocked, b.Text
		}
		out = append(out, c)
	}
	return append(out, f.works(func(w Work) (claim, bool) {
		if w.Blocked {
			return claim{reason: ReasonBlocked, text: w.Why}, w.Draining
		}
		return claim{reason: ReasonStarted}, w.Draining
	})...)
}

// inProgress are those who have the node, or work on it.
func (f Facts) inProgress() []claim {
	var out []claim
	for _, a := range f.Node.Asked {
		if a.Gone || a.Status == nil {
			continue
		}
		switch a.Status.Phase {
		case nodes.Ready, nodes.Uncordoned:
			out = append(out, claim{reason: ReasonHanded, name: a.Request.Requestor})
		case nodes.RequestorFailed:
			out = append(out, claim{reason: ReasonFailed, name: a.Request.Requestor})
		}
	}
	return append(out, f.works(func(w Work) (claim, bool) { return claim{reason: ReasonAtWork}, w.AtWork })...)
}

func (f Facts) works(of func(Work) (claim, bool)) []claim {
	var out []claim
	for _, w := range f.Works {
		if c, holds := of(w); holds {
			c.name = nodes.ClaimantName(w.Claimant)
			out = append(out, c)
		}
	}
	return out
}

// drained says whether the pods have left for those who have the node; ok is false where
// nothing is known of a drain. A run that has ended tells nothing any more: what was said
// of its drain then holds until the node is released.
func (f Facts) drained(have []Condition) (c Condition, ok bool) {
	record := f.Node.Cordon
	if record == nil || record.Undone || !f.Node.Unschedulable {
		return f.drainedOpen()
	}
	names := make([]string, len(record.By))
	for i, by := range record.By {
		names[i] = nodes.ClaimantName(by)
	}
	if left, known := f.left(record); known {
		return drainedFor(names, left), true
	}
	for _, h := range have {
		if h.Type == Drained && !f.foreign(h) && h.True {
			return h, true
		}
	}
	return Condition{}, false
}

func drainedFor(names []string, left bool) Condition {
	if left {
		return Condition{Type: Drained, Reason: ReasonIncomplete, Message: messageOf(names, textOf(ReasonIncomplete))}
	}
	return Condition{Type: Drained, True: true, Reason: ReasonCompleted, Message: messageOf(names, textOf(ReasonCompleted))}
}

// left says whether a drain left pods for those who have the node now. Drains for others, who
// had it before, do not count.
func (f Facts) left(record *nodes.Cordon) (left, known bool) {
	for _, a := range f.Node.Asked {
		of, is := leftFor(a, record.Drained)
		left, known = left || of, known || is
	}
	for _, by := range record.By {
		var last *Work
		for i, w := range f.Works {
			if w.Claimant == by && (w.Drained || w.Incomplete) && w.of(record) && (last == nil || !w.Since.Before(last.Since)) {
				last = &f.Works[i]
			}
		}
		if last != nil {
			left, known = left || last.Incomplete, true
		}
	}
	if !known && len(record.Drained) > 0 { // of those who have it nothing is known: what has left has left
		return !slices.ContainsFunc(record.Drained, func(p nodes.Drained) bool { return !p.Left }), true
	}
	return left, known
}

// leftFor says whether the drain for a request that has its node left pods; where passes on record are
// about its pods they say so, else its status.
func leftFor(a nodes.Asked, passes []nodes.Drained) (left, known bool) {
	if a.Gone || a.Request.Drain == nil || a.Status == nil || a.Status.Phase != nodes.Ready && a.Status.Phase != nodes.RequestorFailed {
		return false, false
	}
	for _, p := range passes {
		switch {
		case !p.Includes(*a.Request.Drain):
		case !p.Left:
			return false, true
		default:
			left = true
		}
	}
	return left || a.Status.Left, left || a.Status.Drained != ""
}

// drainedOpen is the drain of requests that have the node without a cordon.
func (f Facts) drainedOpen() (Condition, bool) {
	var names []string
	left := false
	for _, a := range f.Node.Asked {
		if of, known := leftFor(a, nil); known && !a.Request.Cordon {
			names, left = append(names, a.Request.Requestor), left || of
		}
	}
	if len(names) == 0 {
		return Condition{}, false
	}
	return drainedFor(names, left), true
}
