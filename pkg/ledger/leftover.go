package ledger

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Leftover is something that an ended run did not put back, or a step of its cleanup
// that failed. The ledger keeps it until it is as it was, or somebody says that they
// know; a failed step of a cleanup also until a later run succeeds.
type Leftover struct {
	Run     string          `json:"run"`
	Step    string          `json:"step,omitempty"`
	Message string          `json:"message"`
	Account string          `json:"account,omitempty"` // whom the step acted as
	Type    string          `json:"type,omitempty"`    // of the step
	Before  json.RawMessage `json:"before,omitempty"`  // what it found, to look whether it is so again
	At      time.Time       `json:"at"`
	Cleanup bool            `json:"cleanup,omitempty"` // a step of onFailure or finally failed
}

// Said is what was not done, and by which run and step, as people are told.
func (o Leftover) Said() string {
	what := "not put back by run "
	if o.Cleanup {
		what = "not cleaned up by run "
	}
	what += o.Run
	if o.Step != "" {
		what += ", step " + o.Step
	}
	return what + ": " + o.Message
}

// Bounds of what is left over, per plan (guesses: a ledger's head stays small, and
// who has ten things to look after looks at the run).
const (
	maxLeftovers     = 10
	maxLeftoverBytes = 1 << 10
	maxLeftoverText  = 256
)

// leftovers are what a run that had started and ends now did not put back.
func leftovers(r run.Run, j run.Journal, now time.Time) []Leftover {
	var out []Leftover
	torn := j.End != nil && j.End.Reason == run.ReasonTornAway
	for _, rec := range j.Steps {
		if rec.FailedCleanup() { // nobody can tell by looking whether it was made good
			out = append(out, Leftover{Run: r.Name, Step: rec.Path, Message: document.Cut(rec.Message, maxLeftoverText), Type: rec.Type, At: now.UTC(), Cleanup: true})
		}
		open := torn && rec.Before != nil && rec.Restored == "" && rec.Phase != run.StepPending && rec.Phase != run.StepSkipped && r.RestoresAt(rec.Path)
		if rec.Restored != run.RestoreFailed && !open {
			continue
		}
		l := Leftover{Run: r.Name, Step: rec.Path, Message: document.Cut(cmp.Or(rec.RestoreMessage, notPutBack(rec.Before)), maxLeftoverText), Account: plan.Account(r.Spec), Type: rec.Type, At: now.UTC()}
		if _, elsewhere := r.Tree().ConnectorAt(rec.Path); len(rec.Before) <= maxLeftoverBytes && !elsewhere { // nobody looks at another cluster for ever: people say that they know
			l.Before = rec.Before
		}
		out = append(out, l)
	}
	if torn && !slices.ContainsFunc(out, func(o Leftover) bool { return !o.Cleanup }) && r.EndsWithWork(j) {
		out = append(out, Leftover{Run: r.Name, Message: document.Cut("its cleanup did not run: "+tornMessage, maxLeftoverText), At: now.UTC()})
	}
	return out
}

const tornMessage = "the run's object was removed against its finalizer"

// notPutBack says of a step of a run that was torn away to what it is to be restored, first of all: what is long
// loses its end.
func notPutBack(before json.RawMessage) string {
	if was := foundText(before); was != "" {
		return was + ", and was not put back: " + tornMessage
	}
	return "was not put back: " + tornMessage
}

// withLeftovers adds what a run left, the newest last. Beyond the bound the oldest
// of them go: their runs said so in their own Events and messages.
func (l Ledger) withLeftovers(more []Leftover) Ledger {
	if len(more) == 0 {
		return l
	}
	l = l.withoutCleanup(func(o Leftover) bool {
		return slices.ContainsFunc(more, func(m Leftover) bool { return m.Cleanup && m.Step == o.Step })
	})
	l.Left = append(slices.Clone(l.Left), more[:min(len(more), maxLeftovers)]...)
	l.Left = l.Left[max(len(l.Left)-maxLeftovers, 0):]
	if n := len(more) - maxLeftovers; n > 0 {
		last := &l.Left[len(l.Left)-1]
		last.Message = document.Cut(fmt.Sprintf("%s (and %d more of this run)", last.Message, n), maxLeftoverText)
	}
	return l
}

// withoutCleanup forgets failed steps of cleanups: a later run made them good, or failed there
// again.
func (l Ledger) withoutCleanup(these func(Leftover) bool) Ledger {
	l.Left = slices.DeleteFunc(slices.Clone(l.Left), func(o Leftover) bool { return o.Cleanup && these(o) })
	return l
}

// by says whether a run left it, or, where one is named by its path or its own name, a step of it.
func (o Leftover) by(run, step string) bool {
	return o.Run == run && (step == "" || intent.RunRef{Step: step}.Names(o.Step))
}

// Acknowledge forgets what a run left, or, where one is named, a step of it: somebody knows.
func (l Ledger) Acknowledge(run, step string) Ledger {
	l.Left = slices.DeleteFunc(slices.Clone(l.Left), func(o Leftover) bool { return o.by(run, step) })
	return l
}

// PutBack forgets one thing that turned out to be as it was.
func (l Ledger) PutBack(run, step string) Ledger {
	l.Left = slices.DeleteFunc(slices.Clone(l.Left), func(o Leftover) bool { return o.Run == run && o.Step == step && !o.Cleanup })
	return l
}

// LeftBy says whether a run, or a step of it, had left something by an instant that nobody has
// acknowledged.
func (l Ledger) LeftBy(run, step string, at time.Time) bool {
	return run != "" && slices.ContainsFunc(l.Left, func(o Leftover) bool { return o.by(run, step) && o.At.Before(at) })
}

// LeftMessage names what was left by the plan's runs, which are in its namespace, in one
// sentence; empty when nothing was.
func (l Ledger) LeftMessage(namespace string) string {
	if len(l.Left) == 0 {
		return ""
	}
	first := l.Left[0]
	text, hand := first.Said(), "restore it by hand, or acknowledge it: "
	if first.Cleanup {
		hand = "do it by hand, and acknowledge it: "
	}
	if n := len(l.Left) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text + "; " + hand + intent.Command(namespace, "resume", first.Run)
}

// CloseRemoved is the end of a claim whose run was made and is not there any more, while
// nobody looked: what it had done is not known, so that it is not done again.
// started is when its first step began, as far as that is known.
func (l Ledger) CloseRemoved(e Entry, started *time.Time, now time.Time) Ledger {
	if started == nil {
		return l.Close(e.Run, run.Skipped, run.ReasonAborted, nil, now)
	}
	r := run.Run{Name: e.Run}
	if e.Request != nil {
		r.Request = *e.Request
	}
	return l.Finish(r, run.Journal{Phase: run.Running, StartedAt: started, End: &run.End{Phase: run.Aborted, Reason: run.ReasonTornAway, Message: tornMessage}}, now)
}
