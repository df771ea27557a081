package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/simulate"
)

// nights is a HibernatePlan that sleeps every night from 20:00 to 06:00 UTC.
func nights(edits ...func(*simulate.Sleeper)) simulate.Sleeper {
	s := simulate.Sleeper{Namespace: "shop", Name: "n", Spec: hibernate.Spec{
		Schedule: hibernate.Schedule{OffHours: []schedule.OffHours{{Start: "20:00", End: "06:00"}}},
		Targets:  []hibernate.Target{{Name: "db", Type: "noop"}, {Name: "apps", Type: "noop"}},
	}}
	for _, e := range edits {
		e(&s)
	}
	return s
}

func heldUntil(asleep bool, until string) func(*simulate.Sleeper) {
	return func(s *simulate.Sleeper) {
		s.Hold = hibernate.Hold{On: true, Asleep: asleep}
		if until != "" {
			s.Hold.Until = new(at(until))
		}
	}
}

func saidOfSleep(t *testing.T, s simulate.Scenario) []string {
	t.Helper()
	out, err := simulate.Run(s)
	if err != nil {
		t.Fatal(err)
	}
	short := func(at *time.Time) string {
		if at == nil {
			return "-"
		}
		return at.Format("02T15:04")
	}
	var lines []string
	for _, e := range out.Entries {
		lines = append(lines, fmt.Sprintf("%s %s(%s) %s %s", short(e.Slot), e.Result, e.Reason, short(e.StartedAt), short(e.WokenAt)))
	}
	return lines
}

// The span is of two days from Tuesday 2026-03-10 12:00 on: two nights begin in it.
func TestWhatSleeps(t *testing.T) {
	paused := func(until string) func(*simulate.Sleeper) {
		return func(s *simulate.Sleeper) { s.Pauses = []schedule.Pause{{On: true, Until: new(at(until))}} }
	}
	skips := func(skip intent.Skip) func(*simulate.Sleeper) {
		return func(s *simulate.Sleeper) { s.Intent.Skip = skip }
	}
	gated := func(s *simulate.Sleeper) { s.Spec.Policies = []policy.PolicyRef{{Name: "night"}} }
	except := func(e hibernate.Exception) func(*simulate.Sleeper) {
		return func(s *simulate.Sleeper) { s.Spec.Exceptions = []hibernate.Exception{e} }
	}
	const night1, night2 = "10T20:00 Ran(schedule) 10T20:00 11T06:00", "11T20:00 Ran(schedule) 11T20:00 12T06:00"
	for _, c := range []struct {
		name    string
		plan    simulate.Sleeper
		book    *policy.Resolver
		outages []simulate.Span
		want    []string
	}{
		{name: "both nights, the second to its end", plan: nights(), want: []string{night1, night2}},
		{name: "many targets, one after the other, fall asleep and wake at once", plan: nights(func(s *simulate.Sleeper) {
			s.Spec.Targets = nil
			for i := range 6 {
				s.Spec.Targets = append(s.Spec.Targets, hibernate.Target{Name: fmt.Sprint("t", i), Type: "noop"})
			}
		}), want: []string{night1, night2}},
		{name: "one is skipped by its start", plan: nights(skips(intent.Skip{Slots: []time.Time{at("2026-03-10 20:00")}})), want: []string{"10T20:00 Skipped(skip) - -", night2}},
		{name: "the next is skipped, and no other", plan: nights(skips(intent.Skip{Next: true})), want: []string{"10T20:00 Skipped(skip) - -", night2}},
		{name: "all are skipped", plan: nights(skips(intent.Skip{All: true})), want: []string{"10T20:00 Skipped(skip) - -", "11T20:00 Skipped(skip) - -"}},
		{name: "held awake into the first night", plan: nights(heldUntil(false, "2026-03-10 22:00")), want: []string{"10T20:00 Ran(schedule) 10T22:00 11T06:00", night2}},
		{name: "held awake over it", plan: nights(heldUntil(false, "2026-03-11 07:00")), want: []string{"10T20:00 Skipped(hold) - -", night2}},
		{name: "held asleep by day", plan: nights(heldUntil(true, "2026-03-10 15:00")), want: []string{"- Ran(hold) 10T12:00 10T15:00", night1, night2}},
		{name: "held asleep into the night, which is one sleep", plan: nights(heldUntil(true, "2026-03-10 21:00")), want: []string{"- Ran(hold) 10T12:00 11T06:00", "10T20:00 Ran(schedule) 10T20:00 11T06:00", night2}},
		{name: "held asleep for good", plan: nights(heldUntil(true, "")), want: []string{"- Ran(hold) 10T12:00 -", "10T20:00 Ran(schedule) 10T20:00 -", "11T20:00 Ran(schedule) 11T20:00 -"}},
		{name: "paused over the first night", plan: nights(paused("2026-03-11 08:00")), want: []string{"10T20:00 Skipped(paused) - -", night2}},
		{name: "paused without an end", plan: nights(func(s *simulate.Sleeper) { s.Pauses = []schedule.Pause{{On: true}} }), want: []string{"10T20:00 Skipped(paused) - -", "11T20:00 Skipped(paused) - -"}},
		{name: "held asleep, and paused", plan: nights(heldUntil(true, ""), func(s *simulate.Sleeper) { s.Pauses = []schedule.Pause{{On: true}} }), want: []string{"10T20:00 Skipped(paused) - -", "11T20:00 Skipped(paused) - -"}},
		{name: "a pause that ends in it", plan: nights(paused("2026-03-11 01:00")), want: []string{"10T20:00 Ran(schedule) 11T01:00 11T06:00", night2}},
		{name: "a policy lets it begin later, and never wakes it", plan: nights(gated), book: windows("23:00", "02:00"), want: []string{"10T20:00 Ran(schedule) 10T23:00 11T06:00", "11T20:00 Ran(schedule) 11T23:00 12T06:00"}},
		{name: "a policy that is closed all night", plan: nights(gated), book: windows("10:00", "11:00"), want: []string{"10T20:00 Missed(window) - -", "11T20:00 Missed(window) - -"}},
		{name: "an exclusion is awake", plan: nights(func(s *simulate.Sleeper) {
			s.Spec.Schedule.Exclude = []schedule.Exclusion{{FromDate: "2026-03-11"}}
		}), want: []string{"10T20:00 Ran(schedule) 10T20:00 11T00:00", "12T00:00 Ran(schedule) 12T00:00 12T06:00"}},
		{name: "an extension sleeps, too", plan: nights(except(hibernate.Exception{Type: hibernate.Extend, ValidFrom: "2026-03-10T00:00:00Z", ValidUntil: "2026-03-11T00:00:00Z", OffHours: []schedule.OffHours{{Start: "14:00", End: "15:00"}}})), want: []string{"10T14:00 Ran(schedule) 10T14:00 10T15:00", night1, night2}},
		{name: "before a suspend none begins", plan: nights(except(hibernate.Exception{Type: hibernate.Suspend, ValidFrom: "2026-03-10T21:00:00Z", ValidUntil: "2026-03-11T12:00:00Z", LeadTime: coretest.Duration("2h")})), want: []string{"10T20:00 Missed(window) - -", night2}},
		{name: "nobody looks while one begins", plan: nights(), outages: []simulate.Span{{From: at("2026-03-10 19:00"), To: at("2026-03-11 02:00")}}, want: []string{"10T20:00 Ran(schedule) 11T02:00 11T06:00", night2}},
		{name: "nobody looks all night", plan: nights(), outages: []simulate.Span{{From: at("2026-03-10 19:00"), To: at("2026-03-11 09:00")}}, want: []string{"10T20:00 Missed(catch-up) - -", night2}},
		{name: "nobody looks all night, which is skipped", plan: nights(skips(intent.Skip{Slots: []time.Time{at("2026-03-10 20:00")}})), outages: []simulate.Span{{From: at("2026-03-10 19:00"), To: at("2026-03-11 09:00")}}, want: []string{"10T20:00 Skipped(skip) - -", night2}},
		{name: "nobody looks any more in a night that is held awake", plan: nights(heldUntil(false, "2026-03-11 07:00")), outages: []simulate.Span{{From: at("2026-03-10 23:00"), To: at("2026-03-11 09:00")}}, want: []string{"10T20:00 Skipped(hold) - -", night2}},
		{name: "nobody looks when it is to wake: it is made up for", plan: nights(), outages: []simulate.Span{{From: at("2026-03-11 05:00"), To: at("2026-03-11 09:00")}}, want: []string{"10T20:00 Ran(schedule) 10T20:00 11T09:00", night2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := saidOfSleep(t, simulate.Scenario{Sleepers: []simulate.Sleeper{c.plan}, Resolver: c.book, NameOf: nameOf, Outages: c.outages, Span: simulate.Span{From: at("2026-03-10 12:00"), To: at("2026-03-12 12:00")}})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What begins in the span is followed to its end, and what began before it is not told.
func TestASpanThatBeginsAndEndsInANight(t *testing.T) {
	gated := func(s *simulate.Sleeper) { s.Spec.Policies = []policy.PolicyRef{{Name: "night"}} }
	for _, c := range []struct {
		name     string
		plan     simulate.Sleeper
		book     *policy.Resolver
		outages  []simulate.Span
		from, to string
		want     []string
	}{
		{name: "it ends in a sleep", plan: nights(), from: "2026-03-10 12:00", to: "2026-03-10 23:00", want: []string{"10T20:00 Ran(schedule) 10T20:00 11T06:00"}},
		{name: "it ends as one would begin", plan: nights(), from: "2026-03-10 12:00", to: "2026-03-10 20:00"},
		{name: "it ends before one may begin", plan: nights(gated), book: windows("23:00", "02:00"), from: "2026-03-10 12:00", to: "2026-03-10 21:00", want: []string{"10T20:00 Ran(schedule) 10T23:00 11T06:00"}},
		{name: "it ends before one that may not", plan: nights(gated), book: windows("10:00", "11:00"), from: "2026-03-10 12:00", to: "2026-03-10 21:00", want: []string{"10T20:00 Missed(window) - -"}},
		{name: "it ends in an outage", plan: nights(), outages: []simulate.Span{{From: at("2026-03-10 19:00"), To: at("2026-03-11 02:00")}}, from: "2026-03-10 12:00", to: "2026-03-10 23:00", want: []string{"10T20:00 Ran(schedule) 11T02:00 11T06:00"}},
		{name: "it begins as one does", plan: nights(), from: "2026-03-10 20:00", to: "2026-03-11 12:00", want: []string{"10T20:00 Ran(schedule) 10T20:00 11T06:00"}},
		{name: "it begins in one", plan: nights(), from: "2026-03-10 23:00", to: "2026-03-11 23:00", want: []string{"11T20:00 Ran(schedule) 11T20:00 12T06:00"}},
		{name: "it begins in a hold", plan: nights(heldUntil(true, "2026-03-10 15:00")), from: "2026-03-10 12:00", to: "2026-03-10 14:00", want: []string{"- Ran(hold) 10T12:00 10T15:00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := saidOfSleep(t, simulate.Scenario{Sleepers: []simulate.Sleeper{c.plan}, Resolver: c.book, NameOf: nameOf, Outages: c.outages, Span: simulate.Span{From: at(c.from), To: at(c.to)}})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What never ends is told as if nothing slept in it to its end.
func TestAnOffWindowWithoutAnEnd(t *testing.T) {
	long := func(s *simulate.Sleeper) {
		s.Spec.Schedule = hibernate.Schedule{OffHours: []schedule.OffHours{{Start: "00:00", End: "12:00"}, {Start: "12:00", End: "24:00"}}, Exclude: []schedule.Exclusion{{FromDate: "2026-03-10"}}}
	}
	paused := func(s *simulate.Sleeper) { s.Pauses = []schedule.Pause{{On: true}} }
	for name, c := range map[string]struct {
		plan simulate.Sleeper
		want string
	}{
		"asleep": {nights(long), "11T00:00 Ran(schedule) 11T00:00 -"},
		"paused": {nights(long, paused), "11T00:00 Skipped(paused) - -"},
		"closed": {nights(long, func(s *simulate.Sleeper) { s.Spec.Policies = []policy.PolicyRef{{Name: "gone"}} }), "11T00:00 Missed(window) - -"},
	} {
		got := saidOfSleep(t, simulate.Scenario{Sleepers: []simulate.Sleeper{c.plan}, Resolver: windows("10:00", "11:00"), NameOf: nameOf, Span: simulate.Span{From: at("2026-03-10 12:00"), To: at("2026-03-12 12:00")}})
		if diff := cmp.Diff([]string{c.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// One look records only so many: those after it are recorded in the next ones.
func TestAnOutageOfYears(t *testing.T) {
	skipped := nights(func(s *simulate.Sleeper) { s.Intent.Skip.Slots = []time.Time{at("2027-12-24 20:00")} })
	lines := saidOfSleep(t, simulate.Scenario{Sleepers: []simulate.Sleeper{skipped}, NameOf: nameOf, Outages: []simulate.Span{{From: at("2026-03-11 12:00"), To: at("2029-03-10 12:00")}}, Span: simulate.Span{From: at("2026-03-10 12:00"), To: at("2029-03-11 12:00")}})
	counts := map[string]int{}
	for _, l := range lines {
		_, said, _ := strings.Cut(l, " ")
		counts[strings.SplitN(said, " ", 2)[0]]++
	}
	if diff := cmp.Diff(map[string]int{"Ran(schedule)": 2, "Skipped(skip)": 1, "Missed(catch-up)": 1094}, counts); diff != "" || lines[0] != "10T20:00 Ran(schedule) 10T20:00 11T06:00" {
		t.Errorf("%s, the first is %s", diff, lines[0])
	}
}

// Each off-window of a span has one entry, whatever holds, skips and outages there are.
func TestEveryOffWindowHasOneEntry(t *testing.T) {
	for i, plan := range []simulate.Sleeper{nights(), nights(heldUntil(false, "2026-04-01 21:00")), nights(heldUntil(true, "2026-04-10 21:00"))} {
		lines := saidOfSleep(t, simulate.Scenario{Sleepers: []simulate.Sleeper{plan}, NameOf: nameOf, Outages: []simulate.Span{{From: at("2026-03-20 21:00"), To: at("2026-03-25 03:00")}}, Span: simulate.Span{From: at("2026-03-10 12:00"), To: at("2026-05-09 12:00")}})
		slots := 0
		for _, l := range lines {
			if !strings.HasPrefix(l, "-") {
				slots++
			}
		}
		if slots != 60 {
			t.Errorf("%d: %d entries for 60 nights", i, slots)
		}
	}
}
