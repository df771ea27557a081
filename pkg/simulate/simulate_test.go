package simulate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/simulate"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

type row struct {
	name    string
	span    simulate.Span
	plan    simulate.Plan
	outages []simulate.Span
	want    []string
}

func check(t *testing.T, book *policy.Resolver, rows []row) {
	t.Helper()
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			got := said(t, simulate.Scenario{Plans: []simulate.Plan{c.plan}, Resolver: book, Span: c.span, Outages: c.outages})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func outage(from, to string) []simulate.Span { return []simulate.Span{span(from, to)} }

func TestASlotIsInTheSpanWithItsStartAndNotWithItsEnd(t *testing.T) {
	hourly := nightly(cron("0 * * * *"))
	check(t, nil, []row{
		{"whole hours", span("01:00", "03:00"), hourly, nil, []string{"01:00 Ran", "02:00 Ran"}},
		{"between them", span("01:30", "02:30"), hourly, nil, []string{"02:00 Ran"}},
		{"a part of a second late", simulate.Span{From: day("01:00").Add(time.Millisecond), To: day("03:00")}, hourly, nil, []string{"02:00 Ran"}},
		{"two schedules that meet are one slot", span("01:00", "02:30"), nightly(cron("0 * * * *", "*/30 * * * *")), nil, []string{"01:00 Ran", "01:30 Ran", "02:00 Ran"}},
		{"a plan without schedules", span("01:00", "03:00"), nightly(cron()), nil, nil},
	})
}

func TestAfterAnOutage(t *testing.T) {
	every20 := cron("*/20 * * * *")
	check(t, nil, []row{
		{"latest: the newest runs at once", span("01:00", "02:20"), nightly(every20), outage("01:10", "02:10"), []string{"01:00 Ran", "01:20 Missed(superseded)", "01:40 Missed(superseded)", "02:00 Ran at 02:10"}},
		{"all: each runs, in order", span("01:00", "02:20"), nightly(every20, catchUp(plan.CatchUpAll)), outage("01:10", "02:10"), []string{"01:00 Ran", "01:20 Ran at 02:10", "01:40 Ran at 02:10", "02:00 Ran at 02:10"}},
		{"all: one after the other", span("01:00", "02:10"), nightly(every20, catchUp(plan.CatchUpAll), holds("15m")), outage("01:16", "02:11"), []string{"01:00 Ran", "01:20 Ran at 02:11", "01:40 Ran at 02:26", "02:00 Ran at 02:41"}},
		{"all: but not past its deadline", span("01:00", "02:20"), nightly(every20, catchUp(plan.CatchUpAll), deadline("45m")), outage("01:10", "02:10"), []string{"01:00 Ran", "01:20 Missed(deadline)", "01:40 Ran at 02:10", "02:00 Ran at 02:10"}},
		{"none", span("01:00", "02:25"), nightly(every20, catchUp(plan.CatchUpNone)), outage("01:10", "02:10"), []string{"01:00 Ran", "01:20 Missed(catch-up)", "01:40 Missed(catch-up)", "02:00 Missed(catch-up)", "02:20 Ran"}},
		{"a slot at the end of the outage is on time", span("01:00", "02:20"), nightly(every20, catchUp(plan.CatchUpNone)), outage("01:10", "02:00"), []string{"01:00 Ran", "01:20 Missed(catch-up)", "01:40 Missed(catch-up)", "02:00 Ran"}},
		{"Queue: what waited before it keeps its turn, and what fell due in it does not", span("01:00", "03:40"), nightly(cron("0 * * * *", "30 2 * * *"), holds("150m"), longest("3h"), withPolicy(plan.Queue), deadline("20h")), outage("02:10", "02:40"), []string{"01:00 Ran", "02:00 Ran at 03:30", "02:30 Missed(superseded)", "03:00 Ran at 06:00"}},
		{"a slot at its beginning is not", span("02:00", "02:20"), nightly(every20), outage("02:00", "02:15"), []string{"02:00 Ran at 02:15"}},
		{"too late by then", span("01:00", "03:00"), nightly(deadline("10m")), outage("01:30", "02:11"), []string{"02:00 Missed(deadline)"}},
		{"just in time", span("01:00", "03:00"), nightly(deadline("10m")), outage("01:30", "02:10"), []string{"02:00 Ran at 02:10"}},
		{"an outage beyond the end", span("01:00", "02:30"), nightly(), outage("01:30", "02:45"), []string{"02:00 Ran at 02:45"}},
		{"one that began before", span("01:00", "02:30"), nightly(), outage("00:00", "02:15"), []string{"02:00 Ran at 02:15"}},
		{"one that was over before", span("01:00", "02:30"), nightly(), outage("00:00", "01:00"), []string{"02:00 Ran"}},
		{"two that overlap", span("01:00", "03:00"), nightly(), append(outage("01:30", "02:10"), span("02:05", "02:20")), []string{"02:00 Ran at 02:20"}},
		{"one with nothing in it still makes a new agent", span("01:00", "03:00"), nightly(catchUp(plan.CatchUpNone)), outage("01:30", "01:40"), []string{"02:00 Ran"}},
		{"what ran through it is busy only while it worked", span("01:00", "02:30"), nightly(every20, holds("25m")), outage("01:10", "02:10"), []string{"01:00 Ran", "01:20 Skipped(busy)", "01:40 Skipped(busy)", "02:00 Skipped(busy)", "02:20 Ran"}},
	})
}

func TestWhileARunIsAtWork(t *testing.T) {
	hourly := cron("0 * * * *")
	always := "note: plan shop/p: nobody resumes step hold here: it lasts until maxDuration 2h30m0s"
	check(t, nil, []row{
		{"Forbid", span("01:00", "05:00"), nightly(hourly, holds("90m"), longest("3h")), nil, []string{"01:00 Ran", "02:00 Skipped(busy)", "03:00 Ran", "04:00 Skipped(busy)"}},
		{"what ends as the slot falls due is still at work", span("01:00", "04:00"), nightly(hourly, holds("1h"), longest("2h")), nil, []string{"01:00 Ran", "02:00 Skipped(busy)", "03:00 Ran"}},
		{"what its limit ends then, too", span("01:00", "04:00"), nightly(hourly, holds("2h"), longest("1h")), nil, []string{"01:00 Ran", "02:00 Skipped(busy)", "03:00 Ran"}},
		{"under Queue the slot waits for that moment", span("01:00", "04:00"), nightly(hourly, holds("1h"), longest("2h"), withPolicy(plan.Queue)), nil, []string{"01:00 Ran", "02:00 Ran at 02:00", "03:00 Ran at 03:00"}},
		{"it comes too late for a deadline that ends then", span("01:00", "03:00"), nightly(hourly, holds("80m"), longest("2h"), withPolicy(plan.Queue), deadline("20m")), nil, []string{"01:00 Ran", "02:00 Missed(deadline)"}},
		{"under Replace it takes the place", span("01:00", "04:00"), nightly(hourly, holds("1h"), longest("2h"), withPolicy(plan.Replace)), nil, []string{"01:00 Ran", "02:00 Ran", "03:00 Ran"}},
		{"Allow", span("01:00", "03:00"), nightly(hourly, holds("90m"), longest("3h"), withPolicy(plan.Allow)), nil, []string{"01:00 Ran", "02:00 Ran"}},
		{"Allow, on one target", span("01:00", "03:00"), nightly(hourly, holds("90m"), longest("3h"), withPolicy(plan.Allow), target), nil, []string{"01:00 Ran", "02:00 Ran at 02:30"}},
		{"Replace", span("01:00", "04:00"), nightly(hourly, holds("90m"), longest("3h"), withPolicy(plan.Replace)), nil, []string{"01:00 Ran", "02:00 Ran", "03:00 Ran"}},
		{"Replace waits for the cleanup", span("01:00", "03:00"), nightly(hourly, holds("90m"), longest("3h"), withPolicy(plan.Replace), spec(func(s *plan.Spec) { s.Finally = []plan.Step{suspend("after", "5m")} })), nil, []string{"01:00 Ran", "02:00 Ran at 02:05"}},
		{"Queue", span("01:00", "04:00"), nightly(hourly, holds("90m"), longest("3h"), withPolicy(plan.Queue), deadline("2h")), nil, []string{"01:00 Ran", "02:00 Ran at 02:30", "03:00 Ran at 04:00"}},
		{"Queue, and too late", span("01:00", "03:00"), nightly(hourly, holds("90m"), longest("3h"), withPolicy(plan.Queue), deadline("20m")), nil, []string{"01:00 Ran", "02:00 Missed(deadline)"}},
		{"a suspend without a duration lasts until maxDuration", span("01:00", "05:00"), nightly(hourly, holds(""), longest("150m")), nil, []string{"01:00 Ran", "02:00 Skipped(busy)", "03:00 Skipped(busy)", "04:00 Ran", always}},
		{"or until its timeout", span("01:00", "04:00"), nightly(hourly, holds(""), spec(func(s *plan.Spec) { s.Steps[0].Timeout = coretest.Duration("10m") })), nil, []string{"01:00 Ran", "02:00 Ran", "03:00 Ran", "note: plan shop/p: nobody resumes step hold here: it lasts until its timeout 10m0s"}},
		{"of two limits that are the same, the run's is named", span("01:00", "03:00"), nightly(hourly, holds(""), longest("10m"), spec(func(s *plan.Spec) { s.Steps[0].Timeout = coretest.Duration("10m") })), nil, []string{"01:00 Ran", "02:00 Ran", "note: plan shop/p: nobody resumes step hold here: it lasts until maxDuration 10m0s"}},
		{"of a dry run nobody is told who resumes it", span("01:00", "03:00"), nightly(hourly, holds(""), spec(func(s *plan.Spec) { s.DryRun = true })), nil, []string{"01:00 Ran", "02:00 Ran"}},
		{"two suspends add up", span("01:00", "04:00"), nightly(hourly, spec(func(s *plan.Spec) {
			s.Steps = []plan.Step{suspend("a", "31m"), suspend("b", "31m")}
			s.MaxDuration = coretest.Duration("2h")
		})), nil, []string{"01:00 Ran", "02:00 Skipped(busy)", "03:00 Ran"}},
		{"a dry run holds nothing", span("01:00", "03:00"), nightly(hourly, holds("90m"), spec(func(s *plan.Spec) { s.DryRun = true })), nil, []string{"01:00 Ran", "02:00 Ran"}},
		{"a duration that is a template", span("01:00", "04:00"), nightly(hourly, holds("${run.parameters.hold}"), longest("3h"), spec(func(s *plan.Spec) {
			hold := "90m"
			s.Parameters = []plan.Parameter{{Name: "hold", Default: &hold}}
		})), nil, []string{"01:00 Ran", "02:00 Skipped(busy)", "03:00 Ran"}},
	})
}

func TestWindows(t *testing.T) {
	hourly := cron("0 * * * *")
	check(t, windows("02:30", "04:30"), []row{
		{"closed until after the deadline", span("00:00", "02:00"), nightly(cron("0 1 * * *"), inWindow), nil, []string{"01:00 Missed(window)"}},
		{"opens within the deadline", span("00:00", "03:00"), nightly(inWindow), nil, []string{"02:00 Ran at 02:30"}},
		{"opens as the deadline ends", span("00:00", "03:00"), nightly(inWindow, deadline("30m")), nil, []string{"02:00 Ran at 02:30"}},
		{"a newer slot takes its place", span("01:00", "04:00"), nightly(hourly, inWindow, deadline("3h")), nil, []string{"01:00 Missed(superseded)", "02:00 Ran at 02:30", "03:00 Ran"}},
		{"newer slots take their places, one after another", span("00:00", "03:00"), nightly(hourly, inWindow, deadline("3h")), nil, []string{"00:00 Missed(superseded)", "01:00 Missed(superseded)", "02:00 Ran at 02:30"}},
		{"the span ends while it waits", span("01:00", "02:10"), nightly(inWindow), nil, []string{"02:00 Ran at 02:30"}},
		{"its end is not in it", span("00:00", "23:00"), nightly(cron("30 4 * * *"), inWindow), nil, []string{"04:30 Missed(window)"}},
		{"a run that waits for its window is not busy", span("01:00", "03:00"), nightly(cron("0 2 * * *", "15 2 * * *"), inWindow, withPolicy(plan.Forbid)), nil, []string{"02:00 Missed(superseded)", "02:15 Ran at 02:30"}},
		{"wait: what is held counts nowhere", span("03:00", "23:00"), nightly(cron("0 4 * * *", "0 5 * * *", "0 7 * * *"), inWindow, onClose(plan.CloseWait), longest("2h"), spec(func(s *plan.Spec) {
			s.Steps = []plan.Step{suspend("a", "45m"), suspend("b", "1h")}
		})), nil, []string{"04:00 Ran", "05:00 Skipped(busy)", "07:00 Skipped(busy)"}},
		{"abort: the run ends at its next step", span("03:00", "23:00"), nightly(cron("0 4 * * *", "0 5 * * *"), inWindow, onClose(plan.CloseAbort), longest("2h"), spec(func(s *plan.Spec) {
			s.Steps = []plan.Step{suspend("a", "45m"), suspend("b", "1h")}
		})), nil, []string{"04:00 Ran", "05:00 Missed(window)"}},
		{"finish: nobody looks", span("03:00", "23:00"), nightly(cron("0 4 * * *", "0 5 * * *"), inWindow, longest("2h"), spec(func(s *plan.Spec) {
			s.Steps = []plan.Step{suspend("a", "45m"), suspend("b", "1h")}
		})), nil, []string{"04:00 Ran", "05:00 Skipped(busy)"}},
		{"a bypass opens it for a while", span("00:00", "02:00"), nightly(hourly, inWindow, deadline("1m"), withIntent(func(i *intent.Intent) {
			until := day("00:30")
			i.Bypass = intent.Bypass{Until: &until, Reason: "urgent"}
		})), nil, []string{"00:00 Ran", "01:00 Missed(window)"}},
		{"the plan's own stanza", span("00:00", "02:00"), nightly(hourly, inWindow, deadline("1m"), withIntent(func(i *intent.Intent) {
			until := day("00:30")
			i.Stanza = policy.StanzaText{Strategy: schedule.PermissiveUntil, Until: &until}
		})), nil, []string{"00:00 Ran", "01:00 Missed(window)"}},
		{"a policy that is not there", span("01:00", "03:00"), nightly(spec(func(s *plan.Spec) { s.Policies = []policy.PolicyRef{{Name: "nigth"}} })), nil, []string{"02:00 Missed(not-ready)"}},
		{"without a slot it waits for its window without end", span("05:00", "06:00"), nightly(cron(), inWindow, spec(func(s *plan.Spec) { s.Triggers.OnCreate = true })), nil, []string{
			"note: plan shop/p: the run by create still waits at the end: waits for its window, which opens at 2026-03-11T02:30:00Z (policy night: outside of the windows)",
		}},
		{"jitter counts in the deadline", span("00:00", "03:00"), nightly(cron("0 1 * * *"), jitter("1h"), deadline("89m"), inWindow), nil, []string{"01:00 Ran at 02:30"}},
	})
}

func TestANamespaceThatIsClosedHoldsStepsOfRunsThatBegan(t *testing.T) {
	book := policy.NewResolver("")
	opens := day("03:00")
	book.PutNamespace("shop", policy.StanzaText{Strategy: schedule.RestrictiveUntil, Until: &opens})
	letThrough := withIntent(func(i *intent.Intent) {
		until := day("00:30")
		i.Bypass = intent.Bypass{Until: &until, Reason: "urgent"}
	})
	check(t, book, []row{
		{"until it opens, and the time counts nowhere", span("00:00", "06:00"), nightly(cron("0 0-5 * * *"), letThrough, longest("90m"), spec(func(s *plan.Spec) {
			s.Steps = []plan.Step{suspend("a", "45m"), suspend("b", "40m")}
		})), nil, []string{"00:00 Ran", "01:00 Skipped(busy)", "02:00 Skipped(busy)", "03:00 Skipped(busy)", "04:00 Ran", "05:00 Skipped(busy)"}},
	})
}

func TestPauseAndSkip(t *testing.T) {
	hourly := cron("0 * * * *")
	until := day("02:30")
	check(t, nil, []row{
		{"paused until an instant", span("01:00", "04:00"), nightly(hourly, withIntent(func(i *intent.Intent) { i.Pause = schedule.Pause{On: true, Until: &until} })), nil, []string{"01:00 Skipped(paused)", "02:00 Skipped(paused)", "03:00 Ran"}},
		{"its namespace is paused", span("01:00", "03:00"), nightly(hourly, func(p *simulate.Plan) { p.Pauses = []schedule.Pause{{On: true}} }), nil, []string{"01:00 Skipped(paused)", "02:00 Skipped(paused)"}},
		{"the next one", span("01:00", "04:00"), nightly(hourly, withIntent(func(i *intent.Intent) { i.Skip.Next = true })), nil, []string{"01:00 Skipped(skip)", "02:00 Ran", "03:00 Ran"}},
		{"until an instant", span("01:00", "04:00"), nightly(hourly, withIntent(func(i *intent.Intent) { i.Skip.Until = &until })), nil, []string{"01:00 Skipped(skip)", "02:00 Skipped(skip)", "03:00 Ran"}},
		{"slots by name", span("01:00", "04:00"), nightly(hourly, withIntent(func(i *intent.Intent) { i.Skip.Slots = []time.Time{day("01:00"), day("03:00")} })), nil, []string{"01:00 Skipped(skip)", "02:00 Ran", "03:00 Skipped(skip)"}},
		{"all", span("01:00", "03:00"), nightly(hourly, withIntent(func(i *intent.Intent) { i.Skip.All = true })), nil, []string{"01:00 Skipped(skip)", "02:00 Skipped(skip)"}},
		{"what was skipped in an outage, among others", span("01:00", "04:10"), nightly(hourly, catchUp(plan.CatchUpAll), deadline("3h"), withIntent(func(i *intent.Intent) { i.Skip.Slots = []time.Time{day("01:00"), day("03:00")} })), outage("00:30", "04:30"), []string{"01:00 Skipped(skip)", "02:00 Ran at 04:30", "03:00 Skipped(skip)", "04:00 Ran at 04:30"}},
	})
}

func TestClockChanges(t *testing.T) {
	check(t, nil, []row{
		{"in a gap, at the first instant after it", simulate.Span{From: at("2026-03-08 00:00"), To: at("2026-03-09 00:00")}, nightly(cron("30 2 * * *"), zone("America/New_York")), nil, []string{"07:00 Ran"}},
		{"in an overlap, once", simulate.Span{From: at("2026-11-01 00:00"), To: at("2026-11-02 00:00")}, nightly(cron("30 1 * * *"), zone("America/New_York")), nil, []string{"05:30 Ran"}},
		{"hourly follows real time", simulate.Span{From: at("2026-11-01 04:00"), To: at("2026-11-01 08:00")}, nightly(cron("30 * * * *"), zone("America/New_York")), nil, []string{"04:30 Ran", "05:30 Ran", "06:30 Ran", "07:30 Ran"}},
		{"an outage over the gap", simulate.Span{From: at("2026-03-08 00:00"), To: at("2026-03-09 00:00")}, nightly(cron("*/30 1,2 * * *"), zone("America/New_York")), []simulate.Span{{From: at("2026-03-08 06:10"), To: at("2026-03-08 07:20")}}, []string{"06:00 Ran", "06:30 Missed(superseded)", "07:00 Ran at 07:20"}},
	})
}

func TestJitterDelaysTheStartAndNotTheSlot(t *testing.T) {
	p := nightly(jitter("1h"))
	delay := trigger.Jitter("shop", "p", time.Hour)
	if delay == 0 {
		t.Fatal("the name p has no jitter: take another")
	}
	out, err := simulate.Run(simulate.Scenario{Plans: []simulate.Plan{p}, Span: span("01:00", "03:00"), NameOf: nameOf})
	if err != nil {
		t.Fatal(err)
	}
	slot, started := day("02:00"), day("02:00").Add(delay)
	want := []simulate.Entry{{Namespace: "shop", Plan: "p", Slot: &slot, Zone: "UTC", Result: run.Ran, Reason: "schedule", Run: "p-10T0200", StartedAt: &started, At: started.Add(time.Millisecond)}}
	if diff := cmp.Diff(want, out.Entries); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPlansThatMeet(t *testing.T) {
	first, second := nightly(named("a"), target, holds("20m")), nightly(named("b"), target)
	far := nightly(named("c"), target)
	far.Namespace = "stock"
	got := said(t, simulate.Scenario{Plans: []simulate.Plan{far, second, first}, Span: span("01:00", "03:00")})
	if diff := cmp.Diff([]string{"a 02:00 Ran", "b 02:00 Ran at 02:20", "c 02:00 Ran"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	replaces := nightly(named("b"), target, cron("2,5,8 2 * * *"), withPolicy(plan.Replace))
	got = said(t, simulate.Scenario{Plans: []simulate.Plan{first, replaces}, Span: span("01:00", "03:00")})
	if diff := cmp.Diff([]string{"a 02:00 Ran", "b 02:02 Missed(superseded)", "b 02:05 Missed(superseded)", "b 02:08 Ran at 02:20"}, got); diff != "" {
		t.Errorf("under Replace (-want +got):\n%s", diff)
	}
	second = nightly(named("b"), target, deadline("10m"))
	got = said(t, simulate.Scenario{Plans: []simulate.Plan{first, second}, Span: span("01:00", "03:00")})
	if diff := cmp.Diff([]string{"a 02:00 Ran", "b 02:00 Missed(lock)"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	dry := spec(func(s *plan.Spec) { s.DryRun = true })
	got = said(t, simulate.Scenario{Plans: []simulate.Plan{nightly(named("a"), target, dry, holds("20m")), nightly(named("b"), target, dry), nightly(named("c"), target)}, Span: span("01:00", "03:00")})
	if diff := cmp.Diff([]string{"a 02:00 Ran", "b 02:00 Ran", "c 02:00 Ran"}, got); diff != "" {
		t.Errorf("beside dry runs (-want +got):\n%s", diff)
	}
}

func TestRunsWithoutASlot(t *testing.T) {
	onCreate := spec(func(s *plan.Spec) { s.Triggers.OnCreate = true })
	check(t, nil, []row{
		{"at creation", span("01:00", "03:00"), nightly(onCreate), nil, []string{"no slot Ran at 01:00", "02:00 Ran"}},
		{"after an outage", span("01:00", "03:00"), nightly(onCreate), outage("00:00", "01:30"), []string{"no slot Ran at 01:30", "02:00 Ran"}},
		{"at the instant of a slot it comes before that", span("02:00", "03:00"), nightly(onCreate, withPolicy(plan.Allow)), nil, []string{"no slot Ran at 02:00", "02:00 Ran"}},
		{"nor after one that it keeps from running, which ends first", span("02:00", "04:00"), nightly(onCreate, holds("30m"), longest("1h")), nil, []string{"no slot Ran at 02:00", "02:00 Skipped(busy)"}},
		{"still at work at the end it waits for nothing", span("01:00", "01:30"), nightly(cron(), onCreate, holds("2h"), longest("3h")), nil, []string{"no slot Ran at 01:00"}},
		{"a token in a file is recorded, not run", span("01:00", "03:00"), nightly(withIntent(func(i *intent.Intent) { i.Token = "x" })), nil, []string{"02:00 Ran"}},
	})
}

// The ledger folds what is alike and keeps 200 entries; a simulation lists each slot.
func TestALongSimulationListsEachSlot(t *testing.T) {
	week := simulate.Span{From: at("2026-01-01 00:00"), To: at("2026-01-08 00:00")}
	for name, p := range map[string]simulate.Plan{
		"what ran":          nightly(cron("*/5 * * * *")),
		"what did not":      nightly(cron("*/5 * * * *"), withIntent(func(i *intent.Intent) { i.Pause.On = true })),
		"what no agent saw": nightly(cron("*/5 * * * *"), catchUp(plan.CatchUpNone)),
	} {
		s := simulate.Scenario{Plans: []simulate.Plan{p}, Span: week, NameOf: nameOf}
		if strings.HasSuffix(name, "saw") {
			s.Outages = []simulate.Span{{From: at("2026-01-02 00:01"), To: at("2026-01-06 00:01")}}
		}
		out, err := simulate.Run(s)
		if err != nil || len(out.Entries) != 7*24*12 {
			t.Fatalf("%s: %d entries, %v", name, len(out.Entries), err)
		}
		for i, e := range out.Entries {
			if want := week.From.Add(time.Duration(i) * 5 * time.Minute); !e.Slot.Equal(want) {
				t.Fatalf("%s: entry %d is of %s, not of %s", name, i, e.Slot, want)
			}
		}
	}
}

func TestASpecThatNobodyValidatedIsRefused(t *testing.T) {
	_, err := simulate.Run(simulate.Scenario{Plans: []simulate.Plan{nightly(cron("soon"))}, Span: span("01:00", "02:00"), NameOf: nameOf})
	if err == nil || !strings.Contains(err.Error(), "plan shop/p: ") {
		t.Error(err)
	}
}
