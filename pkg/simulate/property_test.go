package simulate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/simulate"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

func anyOf[T any](t *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, label)
}

// drawPlan is any plan whose time and order may go wrong.
func drawPlan(t *rapid.T, name string) simulate.Plan {
	p := nightly(named(name),
		cron(rapid.SliceOfN(rapid.SampledFrom([]string{"*/7 * * * *", "*/20 * * * *", "0 * * * *", "30 1-3 * * *", "0 2 * * *"}), 1, 2).Draw(t, "cron")...),
		zone(anyOf(t, "zone", "", "Europe/Berlin")),
		catchUp(anyOf(t, "catchUp", plan.CatchUpLatest, plan.CatchUpAll, plan.CatchUpNone)),
		withPolicy(anyOf(t, "policy", plan.Forbid, plan.Allow, plan.Replace, plan.Queue)),
		deadline(anyOf(t, "deadline", "0s", "1m", "15m", "1h", "6h")),
		longest(anyOf(t, "longest", "10m", "2h")),
		onClose(anyOf(t, "onClose", plan.CloseFinish, plan.CloseWait, plan.CloseAbort)))
	p.Spec.Steps = nil
	for _, name := range []string{"a", "b"} {
		p.Spec.Steps = append(p.Spec.Steps, suspend(name, anyOf(t, "hold", "0s", "5m", "20m", "70m", "")))
	}
	if mode := anyOf(t, "group", "", "sequential", "parallel"); mode != "" {
		p.Spec.Steps = []plan.Step{group("g", mode, p.Spec.Steps...)}
	}
	if rapid.Bool().Draw(t, "finally") {
		p.Spec.Finally = []plan.Step{suspend("after", anyOf(t, "after", "5m", "40m"))}
	}
	if d := anyOf(t, "jitter", "", "1m", "30m", "3h"); d != "" {
		jitter(d)(&p)
	}
	if rapid.Bool().Draw(t, "target") {
		target(&p)
	}
	if rapid.Bool().Draw(t, "window") {
		inWindow(&p)
	}
	p.Spec.Triggers.OnCreate = rapid.Bool().Draw(t, "onCreate")
	drawIntent(t, &p)
	return p
}

func drawIntent(t *rapid.T, p *simulate.Plan) {
	until := drawInstant(t, "until")
	switch anyOf(t, "intent", "", "", "pause", "namespace", "next", "until", "slots", "bypass") {
	case "pause":
		p.Intent.Pause = schedule.Pause{On: true, Until: &until}
	case "namespace":
		p.Pauses = []schedule.Pause{{On: true, Until: &until}}
	case "next":
		p.Intent.Skip.Next = true
	case "until":
		p.Intent.Skip.Until = &until
	case "slots":
		p.Intent.Skip.Slots = []time.Time{day("02:00"), day("03:00"), day("03:20")}
	case "bypass":
		p.Intent.Bypass = intent.Bypass{Until: &until, Reason: "urgent"}
	}
}

// drawInstant is an instant of the night in which Berlin's clocks go forward, or
// of another.
func drawInstant(t *rapid.T, label string) time.Time {
	return night().Add(time.Duration(rapid.IntRange(0, 12*60).Draw(t, label)) * time.Minute)
}

func night() time.Time { return at("2026-03-28 20:00") }

func drawScenario(t *rapid.T) simulate.Scenario {
	s := simulate.Scenario{Resolver: windows("23:30", "02:15"), NameOf: nameOf}
	s.From, s.To = night(), night().Add(time.Duration(rapid.IntRange(1, 12*60).Draw(t, "minutes"))*time.Minute)
	for _, name := range []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "plans")] {
		s.Plans = append(s.Plans, drawPlan(t, name))
	}
	for range rapid.IntRange(0, 2).Draw(t, "outages") {
		from := drawInstant(t, "outage")
		s.Outages = append(s.Outages, simulate.Span{From: from, To: from.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "long")) * time.Minute)})
	}
	return s
}

// Every slot of the span has exactly one entry, in order, and nothing that ran
// did so when it may not.
func TestEverySlotHasOneEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		out, err := simulate.Run(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := simulate.Run(s)
		if diff := cmp.Diff(out, again); diff != "" || err != nil {
			t.Fatalf("another time: %v\n%s", err, diff)
		}
		for _, p := range s.Plans {
			if diff := cmp.Diff(slotsOf(t, p, s.Span), entriesOf(out, p)); diff != "" {
				t.Fatalf("the slots of %s (-want +got):\n%s", p.Name, diff)
			}
		}
		for i, e := range out.Entries {
			if i > 0 && e.Slot != nil && out.Entries[i-1].Slot != nil && e.Slot.Before(*out.Entries[i-1].Slot) {
				t.Fatalf("entry %d is out of order", i)
			}
			judge(t, s, e)
			inTheWay(t, s, out, e)
		}
	})
}

func slotsOf(t *rapid.T, p simulate.Plan, span simulate.Span) []time.Time {
	set, err := plan.ParseSchedules(p.Spec.Triggers.Schedules)
	if err != nil {
		t.Fatal(err)
	}
	var out []time.Time
	for slot, ok := set.Next(span.From.Add(-time.Second)); ok && slot.At.Before(span.To); slot, ok = set.Next(slot.At) {
		out = append(out, slot.At)
	}
	return out
}

func entriesOf(out simulate.Outcome, p simulate.Plan) []time.Time {
	var slots []time.Time
	for _, e := range out.Entries {
		if e.Plan == p.Name && e.Slot != nil {
			slots = append(slots, *e.Slot)
		}
	}
	return slots
}

func planOf(s simulate.Scenario, e simulate.Entry) simulate.Plan {
	return s.Plans[slices.IndexFunc(s.Plans, func(p simulate.Plan) bool { return p.Name == e.Plan })]
}

// endOf is when a run ended, or an instant beyond everything.
func endOf(s simulate.Scenario, e simulate.Entry) time.Time {
	if e.At.IsZero() {
		return s.To.Add(1000 * time.Hour)
	}
	return e.At
}

func judge(t *rapid.T, s simulate.Scenario, e simulate.Entry) {
	p := planOf(s, e)
	e.At = endOf(s, e)
	for _, o := range s.Outages {
		if !e.At.Before(o.From) && e.At.Before(o.To) {
			t.Fatalf("%s is recorded at %s, in an outage", line(e, true), e.At)
		}
		if at := e.StartedAt; at != nil && !at.Before(o.From) && at.Before(o.To) {
			t.Fatalf("%s starts in an outage", line(e, true))
		}
	}
	if (e.Result == run.Ran) != (e.StartedAt != nil) || e.Result == run.Open || e.Reason == "" {
		t.Fatalf("%+v", e)
	}
	if e.Slot != nil && e.At.Before(*e.Slot) {
		t.Fatalf("%s is recorded at %s, before its time", line(e, true), e.At)
	}
	if e.StartedAt == nil {
		return
	}
	at := *e.StartedAt
	if p.Intent.Pause.Holds(at) || len(p.Pauses) > 0 && p.Pauses[0].Holds(at) {
		t.Fatalf("%s starts in a pause", line(e, true))
	}
	bypassed := p.Intent.Bypass.Until != nil && at.Before(*p.Intent.Bypass.Until)
	if len(p.Spec.Policies) > 0 && !bypassed && !s.Resolver.Policy("shop", "night").Verdict(at).Permitted {
		t.Fatalf("%s starts at %s, outside of its window", line(e, true), at)
	}
	if e.Slot == nil {
		return
	}
	begins := trigger.StartsAt(p.Spec, p.Namespace, p.Name, *e.Slot, index(t, p, *e.Slot))
	if at.Before(begins) || at.After(begins.Add(p.Spec.StartDeadline.Duration)) {
		t.Fatalf("%s starts at %s", line(e, true), at)
	}
	if !p.Intent.Skip.Next && p.Intent.Skip.Covers(*e.Slot) {
		t.Fatalf("%s is to be skipped", line(e, true))
	}
}

func index(t *rapid.T, p simulate.Plan, at time.Time) int {
	set, err := plan.ParseSchedules(p.Spec.Triggers.Schedules)
	if err != nil {
		t.Fatal(err)
	}
	slot, _ := set.Last(at)
	return slot.Index
}

// inTheWay judges an entry beside the others: who holds a plan or a target holds
// it alone, and only what was held was busy.
func inTheWay(t *rapid.T, s simulate.Scenario, out simulate.Outcome, e simulate.Entry) {
	p := planOf(s, e)
	e.At = endOf(s, e)
	atWork := false
	for _, other := range out.Entries {
		if other.StartedAt == nil || other.Run == e.Run {
			continue
		}
		other.At = endOf(s, other)
		same := other.Plan == e.Plan && p.Spec.ConcurrencyPolicy != plan.Allow
		if p.Spec.Target != nil && planOf(s, other).Spec.Target != nil {
			same = true
		}
		if at := e.StartedAt; same && at != nil && other.StartedAt.Before(*at) && at.Before(other.At) {
			t.Fatalf("%s starts while %s is at work", line(e, true), line(other, true))
		}
		if e.Slot != nil && other.Plan == e.Plan && !other.StartedAt.After(e.At) && !other.At.Before(*e.Slot) {
			atWork = true
		}
	}
	// What starts only after the span is not told of, and who waits for a lock is busy.
	told := p.Spec.Target == nil && !p.Spec.Triggers.OnCreate && p.Spec.Triggers.Schedules[0].Jitter == nil
	if e.Reason == run.ReasonBusy && (p.Spec.ConcurrencyPolicy != plan.Forbid || told && !atWork) {
		t.Fatalf("%s, and nothing was at work", line(e, true))
	}
}
