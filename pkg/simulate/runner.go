package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// runState is a live run.
type runState struct {
	run     plan.Run
	journal plan.Journal
	plan    *planState
	bell    *bell
}

func (r *runState) fact() plan.Live { return plan.LiveOf(r.run, r.journal) }

// look moves one run as far as it goes now.
func (c *cluster) look(r *runState) (time.Time, error) {
	if r.journal.Phase == plan.RunPending && r.journal.Section != plan.SectionClosing {
		return c.admit(r)
	}
	return c.move(r)
}

func (c *cluster) admit(r *runState) (time.Time, error) {
	verdict := plan.Admit(r.run, c.standing(r))
	switch {
	case verdict.Void:
		return time.Time{}, fmt.Errorf("run %s: %s", r.run.Name, verdict.Message)
	case verdict.Ends():
		r.journal = r.journal.EndBefore(plan.End{Phase: plan.RunAborted, Result: verdict.Result, Reason: verdict.Reason, Message: verdict.Message}, c.now)
		return c.move(r)
	case verdict.Start:
		r.journal = r.journal.Start(c.now)
		if r.run.TargetUID != "" {
			c.holders[r.run.TargetUID] = r
		}
		c.ring(r.plan.bell)
		return c.move(r)
	}
	if r.journal.Waiting != verdict.Waiting || r.journal.Message != verdict.Message {
		r.journal.Waiting, r.journal.Message = verdict.Waiting, verdict.Message
		c.ring(r.plan.bell)
		for _, other := range r.plan.live { // under Replace, the one at work gives way now
			if verdict.Waiting == plan.WaitQueue && other != r {
				c.ring(other.bell)
			}
		}
	}
	return verdict.Until, nil
}

// standing is what surrounds a pending run.
func (c *cluster) standing(r *runState) plan.Standing {
	p := r.plan
	s := plan.Standing{Now: c.now, Paused: p.paused(c.now), Superseded: plan.Overtaken(r.run, r.journal.Waiting, p.siblings()), Target: p.target, Hold: c.hold(r)}
	_, s.EntryOpen = p.ledger.OpenEntry(r.run.Name)
	for _, other := range p.live {
		if other != r && other.journal.Phase == plan.RunRunning && r.run.Spec.ConcurrencyPolicy != plan.Allow {
			s.PlanBusy = other.run.Name
		}
	}
	if holder := c.holders[r.run.TargetUID]; holder != nil && holder != r {
		s.LockedBy = holder.run.Name
	}
	return s
}

func (c *cluster) hold(r *runState) *plan.Hold {
	return plan.HeldBy(r.plan.gate, r.run.Name, r.plan.Intent.Bypass, c.now)
}

func (p *planState) paused(now time.Time) bool {
	return slices.ContainsFunc(append([]plan.Switch{p.Intent.Pause}, p.Pauses...), func(s plan.Switch) bool { return s.Holds(now) })
}

// siblings are the live runs of a plan.
func (p *planState) siblings() []plan.Live {
	out := make([]plan.Live, len(p.live))
	for i, r := range p.live {
		out[i] = r.fact()
	}
	return out
}

// signals are what is asked of a started run.
func (c *cluster) signals(r *runState) plan.Signals {
	sig := plan.Signals{LookingSince: c.since, Hold: c.hold(r), Replace: plan.GivesWay(r.run, r.plan.siblings())}
	if r.plan.paused(c.now) {
		sig.Held = "paused: no new step begins"
	}
	return sig
}

// move advances a run until it waits or ends.
func (c *cluster) move(r *runState) (time.Time, error) {
	sig := c.signals(r)
	for range mostLooks {
		journal, next := plan.Advance(r.run, r.journal, c.now, sig)
		r.journal = journal
		switch next.Act {
		case plan.ActWait:
			return next.WakeAt, nil
		case plan.ActPass:
			report, wake := c.pass(r, next)
			if !wake.IsZero() {
				return wake, nil
			}
			r.journal = plan.Note(r.run, journal, next.Path, report, c.now)
		case plan.ActStop:
			r.journal = plan.NoteStop(journal, next.Path, nil)
		case plan.ActRestore:
			r.journal = plan.NoteRestore(journal, next.Path, plan.RestoreDone, "", nil)
		case plan.ActClose:
			c.close(r)
			return time.Time{}, nil
		}
	}
	return time.Time{}, fmt.Errorf("run %s does not come to rest", r.run.Name)
}

// pass stands in for the executors: what a step does is done at once, but for a
// suspend, which takes its time as the executor of that type lets it. It returns
// a report, or the instant to wait for.
func (c *cluster) pass(r *runState, m plan.Move) (plan.Report, time.Time) {
	if m.Step.Type != "suspend" || r.run.Request.DryRun {
		return plan.Report{Done: true}, time.Time{}
	}
	p, failed := c.suspend(r, m.Step)
	i := slices.IndexFunc(r.journal.Steps, func(rec plan.Record) bool { return rec.Path == m.Path })
	resume := r.journal.Steps[i].ResumeAt
	switch {
	case failed != "":
		return plan.Report{Failed: true, Permanent: true, Reason: "BadProperties", Message: failed}, time.Time{}
	case p.Duration == nil:
		return plan.Report{}, m.WakeAt
	case resume == nil:
		until := c.now.Add(p.Duration.Duration).UTC()
		return plan.Report{ResumeAt: &until}, time.Time{}
	case c.now.Before(*resume):
		if !m.WakeAt.IsZero() && m.WakeAt.Before(*resume) {
			return plan.Report{}, m.WakeAt
		}
		return plan.Report{}, *resume
	}
	return plan.Report{Done: true}, time.Time{}
}

// suspend reads a suspend's properties, with every ${…} evaluated.
func (c *cluster) suspend(r *runState, s plan.Step) (p plan.SuspendProperties, failed string) {
	if text, is := s.Properties["duration"].(string); is && !expr.IsTemplate(text) {
		d, err := plan.ParseDuration(text)
		if err != nil {
			return p, err.Error()
		}
		p.Duration = &d
		return p, ""
	}
	if len(s.Properties) == 0 {
		return p, ""
	}
	expanded, err := expr.Expand(plan.Clone(s.Properties), plan.Vars(r.run, r.journal, nil))
	if err != nil {
		return p, err.Error()
	}
	if faults := plan.DecodeValue(expanded, "properties", nil, false, &p); len(faults) > 0 {
		return p, faults.Error()
	}
	return p, ""
}

// close ends a run: its entry is closed, and whoever waited for it is rung.
func (c *cluster) close(r *runState) {
	p := r.plan
	ledger := closed(*p.ledger, r, c.now)
	e := ledger.Recent[len(ledger.Recent)-1]
	c.entries = append(c.entries, p.entry(e, e.Slot, p.zone(r.run.Request)))
	ledger, _ = ledger.Overflow()
	p.ledger = &ledger
	without := func(list []*runState) []*runState {
		return slices.DeleteFunc(slices.Clone(list), func(other *runState) bool { return other == r })
	}
	p.live, c.live[p.Namespace] = without(p.live), without(c.live[p.Namespace])
	if c.holders[r.run.TargetUID] == r {
		delete(c.holders, r.run.TargetUID)
	}
	r.bell.dead = true
	for _, other := range c.live[p.Namespace] {
		if other.journal.Phase == plan.RunPending {
			c.ring(other.bell)
		}
	}
	c.ring(p.bell)
}

// closed is the ledger with the end of a run's claim, as the agent writes it.
func closed(l plan.Ledger, r *runState, now time.Time) plan.Ledger {
	if r.journal.StartedAt != nil {
		return l.Finish(r.run, r.journal, now)
	}
	result, reason := plan.Skipped, plan.ReasonAborted
	if end := r.journal.End; end != nil && end.Result != "" {
		result, reason = end.Result, end.Reason
	}
	return l.Close(r.run.Name, result, reason, nil, now)
}
