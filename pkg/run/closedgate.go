package run

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// ClosedGate is a gate that is closed for a run.
type ClosedGate struct {
	Reason   string
	NotReady bool
	Later    bool       // when it opens is looked for later, as the Reason says
	Opens    *time.Time // when it opens, as far as is known
	Since    *time.Time // since when it is closed; nil: it always was
	Until    time.Time  // when to ask again; zero: only when a document changes
	Deadline time.Time  // after it the slot that waits is Missed; zero: what waits does so without end
}

// TooLate says that the gate opens only after the slot that waits for it is Missed.
func (h ClosedGate) TooLate() bool {
	return !h.NotReady && h.Opens != nil && !h.Deadline.IsZero() && h.Opens.After(h.Deadline)
}

// StaysClosed is what is said of a window of which nobody knows when it opens.
const StaysClosed = "which does not open by itself"

// TooLate is said of a window that opens after the slot that waits for it is Missed; the time of that follows.
const TooLate = "too late: its slot is Missed at "

// Message says why a run waits, and for how long.
func (h ClosedGate) Message() string {
	if h.NotReady {
		return h.Reason
	}
	return "waits for " + h.window(func(at time.Time) string { return at.UTC().Format(time.RFC3339) })
}

// window says when the window opens that the gate is closed outside of. clock writes an instant.
func (h ClosedGate) window(clock func(time.Time) string) string {
	switch {
	case h.Later:
		return "its window (" + h.Reason + ")"
	case h.Opens == nil:
		return "its window, " + StaysClosed + " (" + h.Reason + ")"
	case h.TooLate():
		return "its window, which opens at " + clock(*h.Opens) + ", " + TooLate + clock(h.Deadline) + " (" + h.Reason + ")"
	}
	return "its window, which opens at " + clock(*h.Opens) + " (" + h.Reason + ")"
}

// Then says of a start to come, at which the gate is closed, how it lies to its window.
// clock writes an instant.
func (h ClosedGate) Then(clock func(time.Time) string) string {
	if h.NotReady {
		return "and whether change is permitted then is not known (" + h.Reason + ")"
	}
	return "outside of " + h.window(clock)
}

// BypassedBy says who let a run start although its gate, asked without any bypass,
// is closed; nil where it is open.
func BypassedBy(g *schedule.Gate, r Request, in intent.Intent, now time.Time) *intent.Actor {
	if g == nil || g.Verdict(now).Permitted {
		return nil
	}
	if r.OutsideWindow {
		return &intent.Actor{Name: r.Actor, Reason: r.Reason, At: now.UTC(), Verified: r.Verified}
	}
	if in.Bypass.Run == "" && in.Bypass.Until == nil {
		return nil
	}
	return &intent.Actor{Name: in.Actors["bypass"].Name, Reason: in.Bypass.Reason, At: now.UTC(), Verified: in.Actors["bypass"].Verified}
}

// AllowedBy says who let a run start, or go on, by permitting change up to an instant; nil: its gate is open
// without that, or its own request lets it through.
func AllowedBy(g *schedule.Gate, r Request, now time.Time) *intent.Actor {
	if g == nil || r.OutsideWindow {
		return nil
	}
	said, allowed := g.AllowedBy(now)
	if !allowed {
		return nil
	}
	by := intent.ActorSaid(said)
	by.At = now.UTC()
	return &by
}

// Opened are those who permitted change up to an instant, where it would not be permitted without that: by the
// gate of a plan, and by its namespace alone.
type Opened struct{ Plan, Namespace *intent.Actor }

// By is who permitted what asks the gate of the plan, that of the namespace alone, or both; nil: it would
// begin without them.
func (o Opened) By(plan, namespace bool) *intent.Actor {
	switch {
	case plan && o.Plan != nil:
		return o.Plan
	case namespace:
		return o.Namespace
	}
	return nil
}

// ClosedFor asks a gate for a run: nil where it may start. One that a bypass names
// passes.
func ClosedFor(g *schedule.Gate, run string, bypass intent.Bypass, now time.Time) *ClosedGate {
	if g == nil || bypass.Run != "" && bypass.Run == run {
		return nil
	}
	v := g.Verdict(now)
	if v.Permitted {
		return nil
	}
	h := &ClosedGate{Reason: v.Why(), NotReady: !v.Ready, Later: v.Later != "", Opens: v.Until, Since: v.Since} // what follows a closed stretch is open
	if again := policy.AskAgain(v, now); again != nil {
		h.Until = *again
	}
	return h
}
