package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// ProgressEvery is the least time between two writes of a node's progress.
const ProgressEvery = 10 * time.Second

// Bounds of what is said, in bytes (guesses: somebody reads it in a terminal).
const maxReason, maxBlock = 1000, 500

// explain writes into each status the sentence for a person.
func (w *work) explain() {
	order := w.drainNow()
	w.step.Drain = order
	for _, s := range w.states {
		if s.next.Ended != nil {
			continue // its reason was written when it was given up
		}
		said := w.reason(s, order)
		if said.reason == "" {
			continue // nothing new is known
		}
		if s.LookFailed != "" && (s.next.Phase == Pending || s.next.Phase == Draining) {
			said.reason += "; " + s.LookFailed
		}
		if s.next.Overdue {
			said.reason += "; past maxNodeMaintenanceTime " + w.limits.MaxTime.String()
		}
		if s.next.SlotOver {
			said.reason += "; others have its slot: it does not drain, and maxTimeWithoutDrain " + w.limits.WithoutDrain.String() + " is over"
		}
		said.reason = document.Cut(said.reason, maxReason)
		w.setReason(s, said)
	}
}

// word is what is said of a request.
type word struct {
	reason   string // empty: nothing new is known
	blocked  Block
	howLong  string // of a drain that is under way and blocked
	progress *Progress
}

// setReason writes a word into a status, but its progress not more often than allowed.
// What will not end by waiting is said in an Event too, once.
func (w *work) setReason(s *requestState, said word) {
	old := s.next.Progress
	counted := old != nil && said.progress != nil && s.unmoved()
	if counted && said.reason == s.next.Reason && old.Left == said.progress.Left && old.Total == said.progress.Total {
		return
	}
	was := s.next.Blocked
	stuck := said.blocked.Permanent && (was == nil || !was.Permanent)
	if counted && !stuck && s.Status != nil && s.Status.Overdue == s.next.Overdue && w.soon.add(old.At.Add(ProgressEvery)) {
		return
	}
	s.next.Reason, s.next.Progress, s.next.Blocked = said.reason, said.progress, nil
	if said.blocked != (Block{}) {
		blocked := said.blocked
		blocked.Text = document.Cut(blocked.Text, maxBlock)
		s.next.Blocked = &blocked
	}
	if stuck {
		w.say(s.name(), true, EventBlocked, "the drain is blocked "+cmp.Or(said.howLong, "for good")+": "+said.blocked.Text)
	}
}

// EventBlocked is the reason of the Event about a drain that no waiting ends.
const EventBlocked = "DrainBlocked"

func (w *work) reason(s *requestState, order *Drain) word {
	phase := s.next.Phase
	switch {
	case s.Fault != "" && phase.Holds():
		return word{reason: "the request cannot be read any more; it keeps the node, and nothing is drained: " + document.OneLine(s.Fault)}
	case s.Fault != "":
		return word{reason: document.OneLine(s.Fault)}
	case phase == Pending && w.node.blocked(s.Asked):
		return w.blockedReason(s)
	case phase == Pending:
		return word{reason: w.pendingReason(s)}
	case phase == RequestorFailed:
		return word{reason: cmp.Or(s.Request.Reason, "its requestor failed") + w.keptOut()}
	case phase == Uncordoned:
		return word{reason: "somebody uncordoned the node while its requestor had it: it is not Ready any more, pods may come; cordon it, and it is drained again, or remove the request"}
	case w.frozen():
		return word{reason: "somebody uncordoned the node; nothing more is drained until it is cordoned again, or the request is removed"}
	case phase.preparing() && w.yielded():
		return w.yieldedReason(s)
	}
	switch phase {
	case Scheduled:
		return word{reason: "is next to have the node"}
	case Cordoning:
		return word{reason: w.cordoningReason(s)}
	case WaitingForPods:
		return w.waitingReason(s)
	case Draining:
		return w.drainingReason(s, order)
	}
	said := "the requestor has the node" + colon(s.Request.Reason)
	if s.next.Note != "" {
		said += "; " + s.next.Note
	}
	return word{reason: said}
}

// keptOut says what becomes of a node whose requestor failed.
func (w *work) keptOut() string {
	if w.frozen() {
		return "; somebody uncordoned the node, so pods may come; that is left as it is"
	}
	return "; the node is kept out until the request is corrected or removed"
}

func (w *work) pendingReason(s *requestState) string {
	switch {
	case !w.node.Gate.Permitted:
		if w.node.Gate.Next != nil {
			w.soon.add(*w.node.Gate.Next)
		}
		return closedText(w.node.Gate)
	case w.turns[s.name()].Wait != "":
		return w.turns[s.name()].Wait
	case w.turns == nil && s.unmoved() && s.next.Reason != "":
		return ""
	}
	return "waits for its turn"
}

func (w *work) cordoningReason(s *requestState) string {
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

func (w *work) hasMates(s *requestState) bool {
	return slices.ContainsFunc(w.states, func(o *requestState) bool { return o != s && o.next.Phase.preparing() })
}

// mates are those with whom a request becomes Ready.
func (w *work) mates(s *requestState) string {
	var names []string
	for _, o := range w.states {
		if o != s && o.next.Phase.preparing() {
			names = append(names, o.name())
		}
	}
	if len(names) == 0 {
		return "is about to be Ready"
	}
	return "becomes Ready together with " + some(names)
}

func (w *work) waitingReason(s *requestState) word {
	over, late := w.waited(s)
	switch {
	case late:
		return word{reason: "waited " + s.Request.WaitFor.Timeout.String() + " for its pods; " + w.mates(s)}
	case over:
		return word{reason: "its pods have finished; " + w.mates(s)}
	case !s.Pods.Known:
		return word{reason: "pods are being counted"}
	}
	return word{reason: "waits for " + podsText(s.Pods), progress: &Progress{Left: s.Pods.Left, At: w.now}}
}

func podsText(p Pods) string {
	if !p.Known {
		return "pods that were not counted"
	}
	return fmt.Sprintf("%d unfinished pods%s", p.Left, colon(some(p.Some)))
}

func (w *work) drainingReason(s *requestState, order *Drain) word {
	switch {
	case w.fulfilled(s):
		return word{reason: "drained; " + w.mates(s)}
	case order != nil && w.node.Drain.Key == order.Key && w.node.Drain.State == SessionRunning && (!w.node.Drain.Uncounted || w.node.Drain.Block.Text != ""):
	case s.unmoved() && s.next.Progress != nil:
		return word{} // a drain that was lost begins again
	default:
		return word{reason: "pods are about to leave"}
	}
	said, parts := word{blocked: w.node.Drain.Block}, []string{"pods are not counted yet"}
	if !w.node.Drain.Uncounted {
		parts = []string{fmt.Sprintf("%d of %d pods are left", w.node.Drain.Left, w.node.Drain.Total)}
		said.progress = &Progress{Left: w.node.Drain.Left, Total: w.node.Drain.Total, At: w.now}
	}
	if w.node.Drain.Waits != "" {
		parts = append(parts, w.node.Drain.Waits)
	}
	if endless(order.Options, order.Since, w.now) {
		parts = append(parts, "takes longer than "+order.Options.Timeout.String())
	}
	then := order.Options.Ending(order.Since, w.now)
	if then != "" {
		parts = append(parts, then)
	}
	if b := w.node.Drain.Block; b.Text != "" {
		said.howLong = order.Options.HowLong(b.Permanent, b.Refused, order.Since, w.now)
		how := " " + said.howLong
		if then != "" && strings.HasPrefix(said.howLong, "until ") { // that end is told already
			how = ""
		}
		parts = append(parts, "Blocked"+how+": "+b.Text)
	}
	said.reason = strings.Join(parts, "; ")
	return said
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// result is the step with only what differs from what is recorded.
func (w *work) result() Step {
	for _, s := range w.states {
		if s.Status == nil || s.next.String() != s.Status.String() {
			w.step.Statuses[s.name()] = s.next
		}
		if s.next.Phase == WaitingForPods && s.Fault == "" && s.Request.WaitFor != nil {
			w.step.Watch = append(w.step.Watch, Watch{Requestor: s.name(), PodSelector: s.Request.WaitFor.PodSelector})
		}
	}
	if !sameRecord(w.record, w.node.Cordon) || w.node.Foreign {
		w.step.CordonChanged, w.step.Cordon = true, w.record
	}
	if want := w.progress(); want != w.node.Progress {
		w.step.Progress = &want
	}
	w.step.Next = w.soon.first
	return w.step
}

func sameRecord(a, b *Cordon) bool {
	return (a == nil) == (b == nil) && (a == nil || a.String() == b.String())
}
