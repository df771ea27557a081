package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// decide asks the core about one plan and does what it says, in the order in
// which the agent does: the ledger, the runs, the items, the intents.
func (c *cluster) decide(p *planState) (time.Time, error) {
	for _, r := range p.live { // as the agent does: a run that waits may be let go by what its plan is told
		if r.journal.Phase == run.Pending || r.journal.HeldSince != nil {
			c.enqueue(r.item)
		}
	}
	d := trigger.Decide(c.facts(p))
	if d.Status.Phase == trigger.PhaseInvalid {
		return time.Time{}, fmt.Errorf("plan %s: %s", p.key(), d.Status.Message)
	}
	if err := c.note(p, d); err != nil {
		return time.Time{}, fmt.Errorf("plan %s: %w", p.key(), err)
	}
	ledger, _ := d.Ledger.Overflow()
	p.ledger = &ledger
	c.createRuns(p)
	for _, r := range p.live {
		if slices.Contains(slices.Concat(d.Replace, d.Supersede), r.run.Name) {
			c.enqueue(r.item)
		}
	}
	if d.Skip != nil { // what is left of the annotation, which is news
		p.Intent.Skip = *d.Skip
		c.enqueue(p.item)
	}
	return d.Wake, nil
}

// facts are what the agent would gather: nothing is amiss, and the target is
// there and carries no label.
func (c *cluster) facts(p *planState) trigger.Facts {
	f := trigger.Facts{
		Now: c.now, LeadingSince: c.since,
		Plan: trigger.Plan{
			Namespace: p.Namespace, Name: p.Name, UID: p.uid, CreatedAt: p.created, EditedAt: p.created,
			Spec: p.Spec, Intent: p.Intent,
		},
		Pauses: p.Pauses, Ready: trigger.Readiness{OK: true}, Gate: p.gate, Target: p.target, State: trigger.State{Ledger: p.ledger},
		NameOf: func(r run.Request) string { return c.scenario.NameOf(p.Name, p.uid, r) },
	}
	f.Live = p.siblings()
	return f
}

// createRuns makes the runs of the claims that have none yet.
func (c *cluster) createRuns(p *planState) {
	f := c.facts(p)
	for _, e := range trigger.Unstarted(*p.ledger, f.Live) {
		one := f.NewRun(e, p.Templates)
		r := &runState{run: one, journal: workflow.NewJournal(one), plan: p}
		r.item = &item{run: true, look: func() (time.Time, error) { return c.look(r) }}
		p.live = append(p.live, r)
		c.live[p.Namespace] = append(c.live[p.Namespace], r)
		c.enqueue(r.item)
	}
}

// note keeps the entries of the slots that a decision ended without a run. The
// ledger folds them, so the slots that its watermark passed are told one by one.
func (c *cluster) note(p *planState, d trigger.Decision) error {
	var was ledger.Ledger
	was.Watermark = p.created
	if p.ledger != nil {
		was = *p.ledger
	}
	ended := added(was.Recent, d.Ledger.Recent)
	if len(ended) == 0 {
		return nil
	}
	for from := was.Watermark; ; {
		slot, ok := p.set.Next(from)
		if !ok || slot.At.After(d.Ledger.Watermark) {
			break
		}
		from = slot.At
		if slices.ContainsFunc(d.Claims, func(r run.Request) bool { return r.Slot != nil && r.Slot.Equal(slot.At) }) {
			continue
		}
		if len(ended) == 0 {
			return fmt.Errorf("the slot %s has no entry", slot.Wall)
		}
		c.entries = append(c.entries, p.entry(ended[0], &slot.At, slot.Zone))
		if ended[0].Count--; ended[0].Count == 0 {
			ended = ended[1:]
		}
	}
	if len(ended) > 0 {
		return errors.New("the ledger has entries of more slots than its watermark has passed")
	}
	return nil
}

// added are the entries that a ledger has beyond what it had; Count says of how
// many slots each is.
func added(was, is []ledger.Entry) []ledger.Entry {
	var out []ledger.Entry
	if n := len(was); n > 0 {
		if grown := max(is[n-1].Count, 1) - max(was[n-1].Count, 1); grown > 0 {
			e := is[n-1]
			e.Count, e.Run = grown, "" // that was of another slot
			out = append(out, e)
		}
	}
	for _, e := range is[len(was):] {
		e.Count = max(e.Count, 1)
		out = append(out, e)
	}
	return out
}

func (p *planState) entry(e ledger.Entry, slot *time.Time, zone string) Entry {
	if e.StartedAt != nil {
		e.StartedAt = new(e.StartedAt.Add(-moment))
	}
	return Entry{
		Namespace: p.Namespace, Plan: p.Name, Slot: slot, Zone: zone, Result: e.Result, Reason: e.Reason, Run: e.Run, StartedAt: e.StartedAt, At: e.At,
	}
}

// zone is the zone of the schedule that a slot is of.
func (p *planState) zone(r run.Request) string {
	switch {
	case r.Slot == nil:
		return ""
	case p.Spec.Triggers.Schedules[r.Schedule].Timezone == "":
		return "UTC"
	}
	return p.Spec.Triggers.Schedules[r.Schedule].Timezone
}
