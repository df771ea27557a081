package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/simulate"
)

func at(text string) time.Time {
	t, err := time.ParseInLocation("2006-01-02 15:04", text, time.UTC)
	if err != nil {
		panic(err)
	}
	return t
}

func day(clock string) time.Time { return at("2026-03-10 " + clock) }

func span(from, to string) simulate.Span { return simulate.Span{From: day(from), To: day(to)} }

func nameOf(planName, _ string, r run.Request) string {
	if r.Slot == nil {
		return planName + "-" + string(r.Kind)
	}
	return planName + "-" + r.Slot.UTC().Format("02T1504")
}

type edit func(*simulate.Plan)

// nightly is a valid plan: one step, which is done at once, at 02:00 UTC.
func nightly(edits ...edit) simulate.Plan {
	p := simulate.Plan{Namespace: "shop", Name: "p"}
	p.Spec.Triggers.Schedules = []plan.Schedule{{Cron: "0 2 * * *"}}
	p.Spec.Steps = []plan.Step{{Name: "call", Type: "webhook"}}
	for _, e := range edits {
		e(&p)
	}
	p.Spec = p.Spec.Defaulted()
	return p
}

func spec(change func(*plan.Spec)) edit { return func(p *simulate.Plan) { change(&p.Spec) } }

func withIntent(change func(*intent.Intent)) edit {
	return func(p *simulate.Plan) { change(&p.Intent) }
}

func named(name string) edit { return func(p *simulate.Plan) { p.Name = name } }

func cron(texts ...string) edit {
	return spec(func(s *plan.Spec) {
		s.Triggers.Schedules = nil
		for _, text := range texts {
			s.Triggers.Schedules = append(s.Triggers.Schedules, plan.Schedule{Cron: text})
		}
	})
}

func zone(name string) edit {
	return spec(func(s *plan.Spec) { s.Triggers.Schedules[0].Timezone = name })
}

func jitter(d string) edit {
	return spec(func(s *plan.Spec) { s.Triggers.Schedules[0].Jitter = coretest.Duration(d) })
}

func withPolicy(p plan.ConcurrencyPolicy) edit {
	return spec(func(s *plan.Spec) { s.ConcurrencyPolicy = p })
}

func catchUp(c plan.CatchUp) edit { return spec(func(s *plan.Spec) { s.CatchUp = c }) }

func deadline(d string) edit {
	return spec(func(s *plan.Spec) { s.StartDeadline = coretest.Duration(d) })
}

func longest(d string) edit { return spec(func(s *plan.Spec) { s.MaxDuration = coretest.Duration(d) }) }

func onClose(c plan.OnWindowClose) edit { return spec(func(s *plan.Spec) { s.OnWindowClose = c }) }

// holds makes the plan's step one that takes its time; empty: for ever.
func holds(d string) edit {
	return spec(func(s *plan.Spec) { s.Steps = []plan.Step{suspend("hold", d)} })
}

func suspend(name, d string) plan.Step {
	s := plan.Step{Name: name, Type: "suspend"}
	if d != "" {
		s.Properties = map[string]any{"duration": d}
	}
	return s
}

func target(p *simulate.Plan) {
	p.Spec.Target = &plan.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "orders"}
}

// windows is a resolver with the policy "night", open every day from start to end.
func windows(start, end string) *policy.Resolver {
	b := policy.NewResolver("")
	b.PutPolicy(policy.State{Namespace: "shop", Name: "night", Spec: policy.PolicySpec{
		Strategy:            schedule.MaintenanceScheduled,
		MaintenanceSchedule: &schedule.MaintenanceSchedule{Windows: []schedule.Window{{Start: start, End: end}}},
	}})
	return b
}

func inWindow(p *simulate.Plan) { p.Spec.Policies = []policy.PolicyRef{{Name: "night"}} }

// said is entries as people read them: day and time of the slot, result, reason,
// and when it started where that is later.
func said(t *testing.T, s simulate.Scenario) []string {
	t.Helper()
	s.NameOf = nameOf
	out, err := simulate.Run(s)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range out.Entries {
		lines = append(lines, line(e, len(s.Plans) > 1))
	}
	for _, n := range out.Notes {
		lines = append(lines, "note: "+n)
	}
	return lines
}

func line(e simulate.Entry, withPlan bool) string {
	var b strings.Builder
	if withPlan {
		b.WriteString(e.Plan + " ")
	}
	if e.Slot == nil {
		b.WriteString("no slot ")
	} else {
		b.WriteString(e.Slot.Format("15:04 "))
	}
	b.WriteString(string(e.Result))
	if e.Result != run.Ran {
		fmt.Fprintf(&b, "(%s)", e.Reason)
	}
	if e.StartedAt != nil && (e.Slot == nil || !e.StartedAt.Equal(*e.Slot)) {
		b.WriteString(" at " + e.StartedAt.Format("15:04"))
	}
	return b.String()
}
