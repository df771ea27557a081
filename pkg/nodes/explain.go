package nodes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// ProgressEvery is the least time between two writes of a node's progress.
const ProgressEvery = 10 * time.Second

const maxReason = 1000 // bytes of a reason

// explain writes into each status the sentence for a person.
func (w *work) explain() {
	order := w.drainNow()
	w.step.Drain = order
	for _, s := range w.seats {
		if s.next.Ended != nil {
			continue // its reason was written when it was given up
		}
		reason, progress := w.reason(s, order)
		if reason == "" {
			continue // nothing new is known
		}
		if s.next.Overdue {
			reason += "; past maxNodeMaintenanceTime " + w.limits.MaxTime.String()
		}
		w.tell(s, plan.Cut(reason, maxReason), progress)
	}
}

// tell writes a reason and a progress, but progress not more often than allowed.
func (w *work) tell(s *seat, reason string, progress *Progress) {
	old := s.next.Progress
	counted := old != nil && progress != nil && s.unmoved()
	if counted && reason == s.next.Reason && old.Left == progress.Left && old.Total == progress.Total {
		return
	}
	if counted && s.Status != nil && s.Status.Overdue == s.next.Overdue && w.soon.add(old.At.Add(ProgressEvery)) {
		return
	}
	s.next.Reason, s.next.Progress = reason, progress
}

func (w *work) reason(s *seat, order *Drain) (string, *Progress) {
	phase := s.next.Phase
	switch {
	case s.Fault != "" && phase.Holds():
		return "the request cannot be read any more; it keeps the node, and nothing is drained: " + oneLine(s.Fault), nil
	case s.Fault != "":
		return oneLine(s.Fault), nil
	case phase == Pending:
		return w.pendingReason(s), nil
	case phase == RequestorFailed:
		return or(s.Request.Reason, "its requestor failed") + "; the node is kept out until the request is mended or removed", nil
	case w.frozen():
		return "somebody uncordoned the node; nothing more is drained until it is cordoned again, or the request is removed", nil
	}
	switch phase {
	case Scheduled:
		return "is next to have the node", nil
	case Cordoning:
		return w.cordoningReason(s), nil
	case WaitingForPods:
		return w.waitingReason(s)
	case Draining:
		return w.drainingReason(s, order)
	}
	return "the node is its requestor's" + colon(s.Request.Reason), nil
}

func (w *work) pendingReason(s *seat) string {
	switch {
	case w.blocked(s.Asked):
		return blockedText(s.Preview)
	case !w.Gate.Permitted:
		if w.Gate.Next != nil {
			w.soon.add(*w.Gate.Next)
		}
		return closedText(w.Gate)
	case w.turns[s.name()].Wait != "":
		return w.turns[s.name()].Wait
	case w.turns == nil && s.unmoved() && s.next.Reason != "":
		return ""
	}
	return "waits for its turn"
}

func (w *work) cordoningReason(s *seat) string {
	switch {
	case w.fulfilled(s) && s.unmoved():
		return "what it asks to leave has left; " + w.mates(s)
	case s.unmoved() && w.hasMates(s):
		return "is to be drained; " + w.mates(s)
	case !s.Request.Cordon:
		return "the node stays schedulable, as asked"
	}
	return "the node takes no new pods"
}

func (w *work) hasMates(s *seat) bool {
	return slices.ContainsFunc(w.seats, func(o *seat) bool { return o != s && o.next.Phase.preparing() })
}

// mates are those with whom a seat becomes Ready.
func (w *work) mates(s *seat) string {
	var names []string
	for _, o := range w.seats {
		if o != s && o.next.Phase.preparing() {
			names = append(names, o.name())
		}
	}
	if len(names) == 0 {
		return "is about to be Ready"
	}
	return "becomes Ready together with " + some(names)
}

func (w *work) waitingReason(s *seat) (string, *Progress) {
	over, late := w.waited(s)
	switch {
	case late:
		return "waited " + s.Request.WaitFor.Timeout.String() + " for its pods; " + w.mates(s), nil
	case over:
		return "its pods have finished; " + w.mates(s), nil
	case !s.Pods.Known:
		return "pods are being counted", nil
	}
	return "waits for " + podsText(s.Pods), &Progress{Left: s.Pods.Left, At: w.now}
}

func podsText(p Pods) string {
	if !p.Known {
		return "pods that were not counted"
	}
	return fmt.Sprintf("%d unfinished pods%s", p.Left, colon(some(p.Some)))
}

func (w *work) drainingReason(s *seat, order *Drain) (string, *Progress) {
	switch {
	case w.fulfilled(s):
		return "drained; " + w.mates(s), nil
	case order != nil && w.Drain.Key == order.Key && w.Drain.State == SessionRunning:
	case s.unmoved() && s.next.Progress != nil:
		return "", nil // a drain that was lost begins again
	default:
		return "pods are about to leave", nil
	}
	parts := []string{fmt.Sprintf("%d of %d pods are left", w.Drain.Left, w.Drain.Total)}
	if endless(order.Options, order.Since, w.now) {
		parts = append(parts, "takes longer than "+order.Options.Timeout.String())
	}
	if text := w.Drain.Block.Text; text != "" {
		kind := "for now"
		if w.Drain.Block.Permanent {
			kind = "for good"
		}
		parts = append(parts, "Blocked "+kind+": "+text)
	}
	return strings.Join(parts, "; "), &Progress{Left: w.Drain.Left, Total: w.Drain.Total, At: w.now}
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// result is the step with only what differs from what is recorded.
func (w *work) result() Step {
	for _, s := range w.seats {
		if s.Status == nil || s.next.String() != s.Status.String() {
			w.step.Statuses[s.name()] = s.next
		}
		if s.next.Phase == WaitingForPods && s.Fault == "" && s.Request.WaitFor != nil {
			w.step.Watch = append(w.step.Watch, Watch{Requestor: s.name(), PodSelector: s.Request.WaitFor.PodSelector})
		}
	}
	if !sameRecord(w.record, w.Cordon) {
		w.step.CordonChanged, w.step.Cordon = true, w.record
	}
	w.step.Next = w.soon.first
	return w.step
}

func sameRecord(a, b *Cordon) bool {
	return (a == nil) == (b == nil) && (a == nil || a.String() == b.String())
}
