package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// runState is a live run.
type runState struct {
	run     run.Run
	journal run.Journal
	plan    *planState
	item    *item
}

func (r *runState) fact() trigger.ActiveRun { return trigger.ActiveRunOf(r.run, r.journal) }

// moment is how much later than it may a run begins, as in a cluster (a guess): what lasts
// until a slot falls due, or until a deadline, is still at work then.
const moment = time.Millisecond

// look moves one run as far as it goes now.
func (c *cluster) look(r *runState) (time.Time, error) {
	if r.journal.Phase == run.Pending && r.journal.Section != plan.SectionClosing {
		return c.admit(r)
	}
	return c.move(r)
}

func (c *cluster) admit(r *runState) (time.Time, error) {
	verdict := trigger.Admit(r.run, c.standing(r))
	if verdict.Void {
		return time.Time{}, fmt.Errorf("run %s: %s", r.run.Name, verdict.Message)
	}
	was, at := r.journal, c.now
	if verdict.Start {
		at = at.Add(moment)
	}
	r.journal = trigger.Admitted(was, verdict, at)
	switch {
	case verdict.Ends():
		return c.move(r)
	case verdict.Approve != nil:
		return c.admit(r)
	case verdict.Start:
		c.enqueue(r.plan.item)
		return at, nil
	}
	if was.Waiting != verdict.Waiting || was.Message != verdict.Message {
		c.enqueue(r.plan.item)
		if verdict.Waiting != run.WaitJitter { // under Replace, the one at work gives way now, and what waits
			for _, other := range r.plan.live {
				c.enqueue(other.item)
			}
		}
	}
	return verdict.Until, nil
}

// standing is what surrounds a pending run. Whoever is asked approves at once.
func (c *cluster) standing(r *runState) trigger.AdmissionFacts {
	p := r.plan
	s := trigger.AdmissionFacts{
		Now: c.now, Paused: p.paused(c.now), Superseded: trigger.Superseded(r.run, r.journal.Waiting, p.siblings()), Target: p.target, Hold: c.hold(r),
		Approved: r.journal.Approved != nil, Approve: &intent.Actor{At: c.now},
	}
	_, s.EntryOpen = p.ledger.OpenEntry(r.run.Name)
	for _, other := range c.live[p.Namespace] {
		itsPlan, itsTarget := trigger.Holds(other.run, other.journal.Phase, r.run)
		if itsPlan {
			s.PlanBusy = other.run.Name
		}
		if itsTarget {
			s.LockedBy = other.run.Name
		}
	}
	return s
}

func (c *cluster) hold(r *runState) *run.ClosedGate {
	return run.ClosedFor(r.plan.gate, r.run.Name, r.plan.Intent.Bypass, c.now)
}

// paused is the pause that stands, in words; empty: none does.
func (p *planState) paused(now time.Time) string {
	if s := schedule.LongestPause(append([]schedule.Pause{p.Intent.Pause}, p.Pauses...)...); s.Holds(now) {
		return s.Said()
	}
	return ""
}

// siblings are the live runs of a plan.
func (p *planState) siblings() []trigger.ActiveRun {
	out := make([]trigger.ActiveRun, len(p.live))
	for i, r := range p.live {
		out[i] = r.fact()
	}
	return out
}

// signals are what is asked of a started run.
func (c *cluster) signals(r *runState) workflow.Signals {
	sig := workflow.SignalsOf(r.plan.Intent, r.run, r.journal, r.plan.Pauses, c.now)
	sig.LeadingSince, sig.Hold, sig.Replace = c.since, c.hold(r), trigger.Yields(r.run, r.plan.siblings())
	sig.Namespace = run.ClosedFor(r.plan.above, r.run.Name, r.plan.Intent.Bypass, c.now)
	return sig
}

// move advances a run until it waits or ends.
func (c *cluster) move(r *runState) (time.Time, error) {
	sig := c.signals(r)
	for range mostLooks {
		journal, next := workflow.Advance(r.run, r.journal, c.now, sig)
		r.journal = journal
		if next.Act == workflow.ActClose {
			c.close(r)
			return time.Time{}, nil
		}
		var wake time.Time
		acted := false
		for _, m := range next.All() {
			until, done := c.act(r, m)
			acted = acted || done
			wake = schedule.Earliest(wake, until)
		}
		if !acted {
			return wake, nil
		}
	}
	return time.Time{}, fmt.Errorf("run %s does not come to rest", r.run.Name)
}

// act does one act and writes down what came of it; or it says until when there
// is nothing to do.
func (c *cluster) act(r *runState, m workflow.Action) (wake time.Time, done bool) {
	switch m.Act {
	case workflow.ActPass:
		report, wake, done := c.pass(r, m)
		if !done {
			return wake, false
		}
		r.journal = workflow.Note(r.run, r.journal, m.Path, report, c.now)
	case workflow.ActStop:
		r.journal = workflow.NoteStop(r.journal, m.Path, nil)
	case workflow.ActRestore:
		r.journal = workflow.NoteRestore(r.journal, m.Path, run.RestoreDone, "", nil)
	case workflow.ActKeep:
		r.journal = workflow.NoteKeep(r.journal, m.Path, nil, c.now.Add(leaseRenewal), "")
	case workflow.ActRelease:
		r.journal = workflow.NoteRelease(r.journal, m.Path, "")
	default:
		return m.WakeAt, false
	}
	return time.Time{}, true
}

// leaseRenewal is how often what a step holds as a lease is renewed here (a guess: it
// changes no slot).
const leaseRenewal = 5 * time.Minute

// pass stands in for the executors: what a step does is done at once, but for a
// suspend, which takes its time. A loop finds nothing to loop over, for no
// cluster says what is there. Without a report there is an instant to wait for.
func (c *cluster) pass(r *runState, m workflow.Action) (report workflow.StepResult, wake time.Time, done bool) {
	switch {
	case plan.IsLoop(m.Step.Type):
		return workflow.StepResult{Items: workflow.ItemList{Listed: true}}, wake, true
	case r.run.Request.DryRun:
		return workflow.StepResult{Done: true}, wake, true
	}
	switch m.Step.Type {
	case "suspend":
		return c.passSuspend(r, m)
	case "silence", plan.TypeHibernate, plan.TypeWake:
		next := c.now.Add(leaseRenewal).UTC()
		return workflow.StepResult{Done: true, KeepAt: &next}, wake, true
	}
	return workflow.StepResult{Done: true}, wake, true
}

// passSuspend holds a run as the executor of that type does.
func (c *cluster) passSuspend(r *runState, m workflow.Action) (report workflow.StepResult, wake time.Time, done bool) {
	p, failed := c.suspend(r, m)
	resume := r.journal.Record(m.Path).ResumeAt
	switch {
	case failed != "":
		return workflow.StepResult{Failed: true, Permanent: true, Reason: "BadProperties", Message: failed}, wake, true
	case p.Duration == nil:
		return workflow.StepResult{}, m.WakeAt, false
	case resume == nil:
		until := c.now.Add(p.Duration.Duration).UTC()
		return workflow.StepResult{ResumeAt: &until}, wake, true
	case c.now.Before(*resume):
		if !m.WakeAt.IsZero() && m.WakeAt.Before(*resume) {
			return workflow.StepResult{}, m.WakeAt, false
		}
		return workflow.StepResult{}, *resume, false
	}
	return workflow.StepResult{Done: true}, wake, true
}

// suspend reads a suspend's properties, with every ${…} evaluated.
func (c *cluster) suspend(r *runState, m workflow.Action) (p plan.SuspendProperties, failed string) {
	if text, is := m.Step.Properties["duration"].(string); is && !expr.IsTemplate(text) {
		d, err := document.ParseDuration(text)
		if err != nil {
			return p, err.Error()
		}
		p.Duration = &d
		return p, ""
	}
	if len(m.Step.Properties) == 0 {
		return p, ""
	}
	expanded, err := r.expanded(m.Step, m.Path)
	if err != nil {
		return p, err.Error()
	}
	faults := document.DecodeValue(expanded, "properties", nil, false, &p)
	return p, faults.Error()
}

// expanded are the properties of the step at a path; in a template they may speak
// of its parameters, which may speak of those of the template around it.
func (r *runState) expanded(s plan.Step, path string) (map[string]any, error) {
	var seen run.Inputs
	if step, at, in := r.run.Tree().TemplateOf(path); in {
		given, err := r.expanded(step, at)
		if err != nil {
			return nil, err
		}
		if seen.Params, err = r.run.Tree().Params(step, given); err != nil {
			return nil, err
		}
	}
	if s.Properties == nil {
		return map[string]any{}, nil
	}
	out, err := expr.Expand(expr.Whole(document.Clone(s.Properties)), run.VarsAt(r.run, r.journal, path, seen))
	if err != nil {
		return nil, err
	}
	return out.(map[string]any), nil
}

// close ends a run: its entry is closed, and whoever waited for it is enqueued.
func (c *cluster) close(r *runState) {
	p := r.plan
	ledger := p.ledger.CloseRun(r.run, r.journal, c.now)
	e := ledger.Recent[len(ledger.Recent)-1]
	c.entries = append(c.entries, p.entry(e, r.run.Request.Slot, p.zone(r.run.Request)))
	ledger, _ = ledger.Overflow()
	p.ledger = &ledger
	without := func(list []*runState) []*runState {
		return slices.DeleteFunc(slices.Clone(list), func(other *runState) bool { return other == r })
	}
	p.live, c.live[p.Namespace] = without(p.live), without(c.live[p.Namespace])
	r.item.dead = true
	inOrder := func(a, b *runState) int { return run.Compare(a.run, b.run) }
	for _, other := range slices.SortedFunc(slices.Values(c.live[p.Namespace]), inOrder) {
		if other.journal.Phase == run.Pending {
			c.enqueue(other.item)
		}
	}
	c.enqueue(p.item)
}
