// Package simulate is the agent without a cluster: it puts plans and policies
// before the functions that the agent asks (trigger.Decide, trigger.Admit,
// workflow.Advance, hibernate.Decide, offwindow.Pass), keeps their ledgers and runs in memory, and lets a virtual clock
// jump from one instant at which something may happen to the next. It knows no
// rules of its own; what it stands in for is the cluster around the core.
package simulate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Span is a time from an instant, which belongs to it, to another, which does not.
type Span struct{ From, To time.Time }

// Plan is a plan without faults, with what its annotations ask for.
type Plan struct {
	Namespace, Name string
	Spec            plan.Spec // with defaults
	Intent          intent.Intent
	Pauses          []schedule.Pause // of its namespace and of the cluster
	// Templates are the step templates that the spec names. One that is missing
	// counts as done at once.
	Templates map[string]plan.TemplateSpec
}

func (p Plan) key() string { return p.Namespace + "/" + p.Name }

// Scenario is what there is, and for how long it is watched. The plans are created
// just before Span begins, so that a slot at its first instant counts. During an
// outage nobody looks; the agent that comes after it has been looking since its
// end.
type Scenario struct {
	Plans    []Plan
	Sleepers []Sleeper
	Resolver *policy.Resolver // nil: there are no policies
	Span
	Outages []Span
	// NameOf names the run that answers a request, as annotations.RunName does.
	NameOf func(planName, planUID string, r run.Request) string
}

// Entry is what the ledger of a plan says of one slot, or of one run without a
// slot. Entries are not folded: there is one for each.
type Entry struct {
	Namespace, Plan string
	Slot            *time.Time // nil for a run without one
	Zone            string     // of the slot's schedule
	Result          run.Result
	Reason          string
	Run             string
	StartedAt       *time.Time // where it ran, or fell asleep
	WokenAt         *time.Time // of a sleep that is over
	At              time.Time  // when it was recorded; zero where the run is still at work at the end
}

// when is what entries are ordered by: the slot, or what comes nearest to one.
func (e Entry) when() time.Time {
	switch {
	case e.Slot != nil:
		return *e.Slot
	case e.StartedAt != nil:
		return *e.StartedAt
	}
	return e.At
}

// Outcome is what came of a scenario.
type Outcome struct {
	Entries []Entry  // of the slots in the span, by slot, then by plan
	Notes   []string // what a reader would not guess
}

// Run runs a scenario. The clock goes on past the end of the span until each of
// the span's slots has its entry: one may still wait for its window, or fall into
// an outage that ends later. It fails on what no valid plan brings about.
func Run(s Scenario) (Outcome, error) {
	c, err := newCluster(s)
	if err != nil {
		return Outcome{}, err
	}
	if err := c.play(); err != nil {
		return Outcome{}, err
	}
	c.stillAtWork()
	out := Outcome{Notes: append(notes(s.Plans), c.waiting()...)}
	for _, one := range s.Sleepers {
		entries, err := runSleep(s, one)
		if err != nil {
			return Outcome{}, err
		}
		c.entries = append(c.entries, entries...)
	}
	for _, e := range c.entries {
		if at := e.when(); !at.Before(s.From) && at.Before(s.To) {
			out.Entries = append(out.Entries, e)
		}
	}
	slices.SortStableFunc(out.Entries, func(a, b Entry) int {
		return cmp.Or(a.when().Compare(b.when()), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Plan, b.Plan), withSlot(a)-withSlot(b))
	})
	return out, nil
}

// withSlot puts a run without a slot before the slot of its instant.
func withSlot(e Entry) int {
	if e.Slot == nil {
		return 0
	}
	return 1
}

// notes are about what nobody does in a simulation, and what is not there.
func notes(plans []Plan) []string {
	var out []string
	note := func(p Plan, format string, args ...any) {
		out = append(out, "plan "+p.key()+": "+fmt.Sprintf(format, args...))
	}
	for _, p := range plans {
		if len(p.Spec.Triggers.Watch) > 0 {
			note(p, "nothing changes here: its watch triggers ask for no run")
		}
		r := run.Run{Spec: p.Spec, Templates: p.Templates}
		for _, rec := range workflow.NewJournal(r).Steps {
			step, _ := r.Tree().Find(rec.Path)
			switch {
			case plan.IsLoop(rec.Type):
				note(p, "step %s finds no objects here: it counts as done at once", rec.Path)
			case rec.Type == "suspend" && step.Properties["duration"] == nil && !p.Spec.DryRun && plan.SectionOf(rec.Path) == plan.SectionSteps:
				note(p, "nobody resumes step %s here: it lasts until %s", rec.Path, lasts(r, rec.Path))
			}
		}
	}
	return out
}

// lasts is the limit that ends a step: its own, that of a step around it, or the
// run's, whichever is shortest.
func lasts(r run.Run, path string) string {
	shortest, what := time.Duration(math.MaxInt64), "the simulation ends"
	if most := r.Tree().Defaulted().MaxDuration; most != nil {
		shortest, what = most.Duration, "maxDuration "+most.Duration.String()
	}
	for at := path; ; at = at[:strings.LastIndex(at, "/")] {
		if step, ok := r.Tree().Find(at); ok && step.Timeout != nil && step.Timeout.Duration < shortest {
			shortest, what = step.Timeout.Duration, "its timeout "+step.Timeout.String()
			if at != path {
				what = "the timeout " + step.Timeout.String() + " of step " + at
			}
		}
		if !strings.Contains(at, "/") {
			return what
		}
	}
}
