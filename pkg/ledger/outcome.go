package ledger

import (
	"maps"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Bounds of what an entry keeps of its run: a ledger holds 200 of them in two objects.
const (
	maxOutcomeMessage = 256 // bytes
	maxOutcomeWords   = 128 // bytes of a name, of a reason that somebody gave
	maxOverrides      = 8
	maxParameters     = 16
)

// Outcome is how the run of an entry ended. It outlives the run's object.
type Outcome struct {
	Phase    run.Phase         `json:"phase"`
	Reason   string            `json:"reason,omitempty"` // StepFailed, Timeout, Interrupted, Aborted, …
	Step     string            `json:"step,omitempty"`   // path of the step that failed
	Message  string            `json:"message,omitempty"`
	Duration document.Duration `json:"duration"` // from the first step; 0s of a run that never had one
	// Parameters are the names of those that were given; their values are not kept.
	Parameters []string   `json:"parameters,omitempty"`
	Overrides  []Override `json:"overrides,omitempty"`
	// MoreOverrides is how many there were beyond those.
	MoreOverrides int64 `json:"moreOverrides,omitempty"`
	Nodes         int64 `json:"nodes,omitempty"` // that its rollouts went through with success
}

// The decisions of people that an outcome keeps.
const (
	OverrideApproved      = "approved"       // the run, or a step of it
	OverrideRejected      = "rejected"       // the run, or a step of it
	OverrideBypass        = "bypass"         // it started through a closed gate
	OverrideOutsideWindow = "outside-window" // its request asked to run outside of the window
	OverrideAllowed       = "allowed"        // it started or went on through a gate that somebody had opened for a time
	OverrideAborted       = "aborted"
	OverrideResumed       = "resumed"
)

// Override is what somebody decided about a run.
type Override struct {
	What     string `json:"what"`
	Step     string `json:"step,omitempty"`
	Actor    string `json:"actor,omitempty"`
	Verified bool   `json:"verified,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// At is when; nil: that is not known, or an older agent wrote this.
	At *time.Time `json:"at,omitempty"`
}

// Said is the decision in words: who, and why. Of one who let the run pass its gate, it is said also
// that nobody knows them.
func (o Override) Said(what string) string {
	by := intent.Actor{Name: o.Actor, Verified: o.Verified, Reason: o.Reason}
	if slices.Contains([]string{OverrideBypass, OverrideOutsideWindow, OverrideAllowed}, o.What) {
		return by.SaidOrUnknown(what)
	}
	return by.Said(what)
}

// OutcomeOf is what an entry keeps of a run; of one that lives, how it stands.
func OutcomeOf(r run.Run, j run.Journal) Outcome {
	end := time.Time{}
	if j.FinishedAt != nil {
		end = *j.FinishedAt
	}
	out := *outcomeOf(r, j, end)
	if !j.Phase.Ended() {
		out.Phase, out.Message = j.Phase, document.Cut(j.Notice(), maxOutcomeMessage)
	}
	return out
}

// outcomeOf is what an entry keeps of a run that is over.
func outcomeOf(r run.Run, j run.Journal, now time.Time) *Outcome {
	out := &Outcome{Phase: j.Phase, Message: document.Cut(j.Message, maxOutcomeMessage)}
	out.Overrides, out.MoreOverrides = overridesOf(r, j)
	if j.End != nil {
		out.Phase, out.Reason, out.Step = j.End.Phase, j.End.Reason, j.End.Step
		out.Message = j.Summary(failureOf(j), maxOutcomeMessage)
	}
	for _, turn := range j.Turns(now) {
		if turn.Success != 0 {
			out.Nodes++
		}
	}
	if j.FinishedAt != nil { // the ledger is written a little later
		now = *j.FinishedAt
	}
	if j.StartedAt != nil {
		out.Duration = rounded(now.Sub(*j.StartedAt))
	}
	names := slices.Sorted(maps.Keys(r.Request.Parameters))
	for _, name := range names[:min(len(names), maxParameters)] {
		out.Parameters = append(out.Parameters, document.Cut(name, maxOutcomeWords))
	}
	return out
}

// failureOf is the message of the step that failed, or of the run's end. A step that
// succeeded, and whose effect somebody changed, does not say why the run ended.
func failureOf(j run.Journal) string {
	if rec := j.Record(j.End.Step); j.End.Step != "" && rec != nil && rec.Message != "" && rec.Phase != run.StepSucceeded {
		return rec.Message
	}
	return j.End.Message
}

// rounded drops what nobody reads: below a second of what took longer.
func rounded(d time.Duration) document.Duration {
	if d < 0 { // the clock went back
		return document.Duration{}
	}
	if d < time.Second {
		return document.Duration{Duration: d.Round(time.Millisecond)}
	}
	return document.Duration{Duration: d.Round(time.Second)}
}

func overridesOf(r run.Run, j run.Journal) (out []Override, more int64) {
	note := func(what, step string, a *intent.Actor) {
		switch {
		case a == nil:
			return
		case len(out) == maxOverrides:
			more++
			return
		}
		o := Override{
			What: what, Step: document.Cut(step, maxOutcomeWords), Actor: document.Cut(a.Name, maxOutcomeWords), Verified: a.Verified,
			Reason: document.Cut(a.Reason, maxOutcomeWords),
		}
		if !a.At.IsZero() {
			o.At = new(a.At.UTC())
		}
		out = append(out, o)
	}
	note(OverrideApproved, "", j.Approved)
	if !askedItself(r.Request, j.Passed) {
		note(OverrideBypass, "", j.Passed)
	}
	note(OverrideAllowed, "", j.Allowed)
	if r.Request.OutsideWindow {
		note(OverrideOutsideWindow, "", &intent.Actor{Name: r.Request.Actor, Reason: r.Request.Reason, Verified: r.Request.Verified, At: r.Request.At})
	}
	note(endedBy(j.End))
	for i := range j.Steps {
		rec := &j.Steps[i]
		note(OverrideResumed, rec.Path, rec.Resumed)
		if rec.Approval != nil {
			note(answered(rec.Approval), rec.Path, &rec.Approval.Actor)
		}
	}
	for _, by := range acceptedDrift(j) {
		note(OverrideResumed, "", by)
	}
	return out, more
}

// endedBy is who aborted or rejected a run; nil: nobody.
func endedBy(end *run.End) (what, step string, by *intent.Actor) {
	switch {
	case end == nil:
	case end.By != nil && end.Reason == run.ReasonRejected:
		return OverrideRejected, "", end.By
	case end.By != nil:
		return OverrideAborted, "", end.By
	case end.Actor != "" && end.Phase == run.Aborted: // an older agent wrote this
		return OverrideAborted, "", &intent.Actor{Name: end.Actor}
	}
	return "", "", nil
}

// acceptedDrift are those who resumed a run in spite of what somebody changed, each once, where no
// suspend ended by it.
func acceptedDrift(j run.Journal) (out []*intent.Actor) {
	for i := range j.Steps {
		list, _ := j.Steps[i].Drift.AcceptedChanges()
		for _, d := range list {
			if d.Accepted == nil { // nobody writes this
				continue
			}
			by := *d.Accepted
			same := func(a *intent.Actor) bool { return a.At.Equal(by.At) }
			ended := func(r run.Record) bool { return r.Resumed != nil && r.Resumed.At.Equal(by.At) }
			if !slices.ContainsFunc(j.Steps, ended) && !slices.ContainsFunc(out, same) {
				out = append(out, &by)
			}
		}
	}
	return out
}

// askedItself says whether it is the run's own request that let it through its gate: asking to run
// outside of the window and doing so is one decision.
func askedItself(r run.Request, passed *intent.Actor) bool {
	return r.OutsideWindow && passed != nil && passed.Name == r.Actor && passed.Reason == r.Reason
}

func answered(a *run.Approval) string {
	if a.Approved {
		return OverrideApproved
	}
	return OverrideRejected
}
