package source

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/calendar"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Nothing of a policy was so before it was made: no window, and no time in which nothing was permitted.
func TestTheCalendarOfAClusterHasNothingOfAPolicyBeforeItWasMade(t *testing.T) {
	made := time.Date(2026, 11, 20, 12, 30, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		spec string
		want []string
	}{
		"windows":     {"{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{start: '10:00', end: '11:00'}, {start: '12:00', end: '13:00'}, {start: '14:00', end: '15:00'}]}}", []string{"policy shop/night: window [11-20 12:30, 11-20 13:00)", "policy shop/night: window [11-20 14:00, 11-20 15:00)"}},
		"restrictive": {"{strategy: Restrictive}", []string{"policy shop/night: freeze [11-20 12:30, *): Restrictive"}},
	} {
		t.Run(name, func(t *testing.T) {
			night := cmdtest.Policy("night", c.spec)
			night.CreationTimestamp.Time = made
			_, k := clusterOf(t, "shop", cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"), night)
			w, err := ReadCluster(t.Context(), telling(&bytes.Buffer{}), k, "")
			if err != nil {
				t.Fatal(err)
			}
			a := Agenda{World: w, Now: cmdtest.Now(), From: made.Add(-3 * time.Hour), To: made.Add(210 * time.Minute)}
			if err := a.Gather(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range a.Entries {
				got = append(got, line(e))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What cannot be read of the past is not what nobody looked at.
func TestTheCalendarSaysWhatCannotBeReadOfThePast(t *testing.T) {
	at := cmdtest.Now().Add(-2 * time.Hour)
	book := func() *corev1.ConfigMap { return cmdtest.Ledger(ledger.Ledger{Watermark: cmdtest.Now()}) }
	archive, err := annotations.ArchiveObject("shop", "orders", "u-orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ledgers []*corev1.ConfigMap
		want    string
		said    bool
	}{
		"none":                      {nil, "the agent has not looked at it", false},
		"one that forgot it":        {[]*corev1.ConfigMap{book()}, "how it ended is not kept", false},
		"one that is cut short":     {[]*corev1.ConfigMap{cmdtest.CutShort(book())}, "how it ended cannot be read", true},
		"an archive that is":        {[]*corev1.ConfigMap{book(), cmdtest.CutShort(archive)}, "how it ended cannot be read", true},
		"one without its signature": {[]*corev1.ConfigMap{cmdtest.Unsigned(book())}, "how it ended is not kept", true},
	} {
		t.Run(name, func(t *testing.T) {
			world := []runtime.Object{cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"), cmdtest.Plan("orders", "triggers: {schedules: [{cron: '0 22 * * *'}]}", func(cm *corev1.ConfigMap) { cm.CreationTimestamp.Time = at.Add(-time.Hour) })}
			for _, cm := range c.ledgers {
				world = append(world, cm)
			}
			_, k := clusterOf(t, "shop", world...)
			var said bytes.Buffer
			w, err := ReadCluster(t.Context(), telling(&said), k, "")
			if err != nil {
				t.Fatal(err)
			}
			a := Agenda{World: w, Now: cmdtest.Now(), From: at, To: cmdtest.Now()}
			if err := a.Gather(); err != nil || len(a.Entries) != 1 || a.Entries[0].Note != c.want {
				t.Errorf("%+v, %v", a.Entries, err)
			}
			if is := strings.Count(said.String(), "warning: the ledger of plan shop/orders "); is != map[bool]int{true: 1}[c.said] {
				t.Errorf("%d warnings: %s", is, said.String())
			}
		})
	}
}

// TestTheCalendarOfAClusterTellsHowThePastEnded, and has nothing before a plan was made.
func TestTheCalendarOfAClusterTellsHowThePastEnded(t *testing.T) {
	at := func(clock string) *time.Time {
		v, err := time.Parse(time.RFC3339, "2026-11-20T"+clock+":00Z")
		if err != nil {
			t.Fatal(err)
		}
		return &v
	}
	made := func(cm *corev1.ConfigMap) { cm.CreationTimestamp.Time = *at("16:30") }
	entries := []ledger.Entry{
		{Slot: at("17:00"), Result: run.Ran, Run: "a", Outcome: &ledger.Outcome{Phase: run.Succeeded, Duration: document.Duration{Duration: 3 * time.Minute}}},
		{Slot: at("18:00"), Result: run.Ran, Run: "b", Outcome: &ledger.Outcome{Phase: run.Failed, Step: "migrate", Message: "exit code 1"}},
		{Slot: at("20:00"), Result: run.Missed, Reason: "deadline", First: at("19:00"), Last: at("20:00"), Count: 2},
		{Slot: at("21:00"), Result: run.Skipped, Reason: "paused"},
	}
	_, k := clusterOf(t, "shop", cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"),
		cmdtest.Plan("orders", "triggers: {schedules: [{cron: '0 * * * *'}]}", made), cmdtest.Plan("unseen", "triggers: {schedules: [{cron: '0 23 * * *'}]}", made),
		cmdtest.Ledger(ledger.Ledger{Watermark: *at("22:30"), Recent: entries, Open: []ledger.Entry{{Slot: at("22:00"), Result: run.Open, Run: "c"}}}),
		cmdtest.Sleeper("nights", "schedule: {timezone: UTC, offHours: [{start: '16:00', end: '18:00'}, {start: '19:00', end: '20:00'}]}", made),
		cmdtest.LedgerOf("nights", ledger.Ledger{Watermark: *at("22:30"), Recent: []ledger.Entry{{Slot: at("19:00"), Result: run.Ran, Slept: []ledger.Slept{{Resources: 2}, {Resources: 1}}}}}))
	w, err := ReadCluster(t.Context(), telling(&bytes.Buffer{}), k, "")
	if err != nil {
		t.Fatal(err)
	}
	a := Agenda{World: w, Now: cmdtest.Now(), From: *at("12:00"), To: cmdtest.Now().Add(90 * time.Minute)}
	if err := a.Gather(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range a.Entries {
		text := line(e)
		if e.Failed {
			text += " !"
		}
		got = append(got, text)
	}
	want := []string{
		"plan shop/orders: slot 11-20 17:00: Succeeded in 3m0s", "plan shop/orders: slot 11-20 18:00: Failed at migrate: exit code 1 !",
		"plan shop/orders: slot 11-20 19:00 idle: Missed: deadline !", "plan shop/orders: slot 11-20 20:00 idle: Missed: deadline !", "plan shop/orders: slot 11-20 21:00 idle: Skipped: paused",
		"plan shop/orders: slot 11-20 22:00: its run is not over: c", "plan shop/orders: slot 11-20 23:00 idle: the agent has not looked at it",
		"plan shop/orders: slot 11-21 00:00", "plan shop/orders: slot 11-21 01:00",
		"plan shop/unseen: slot 11-20 23:00 idle: the agent has not looked at it",
		"hibernate-plan shop/nights: sleep [11-20 16:30, 11-20 18:00)", "hibernate-plan shop/nights: sleep [11-20 19:00, 11-20 20:00): 3 resources slept",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What slept in a sleep that was longer than its off-hours stands on the last entry of it alone.
func TestWhatTheCalendarOfAClusterTellsOfPastNights(t *testing.T) {
	night := func(day int) *time.Time { return new(time.Date(2026, 11, day, 20, 0, 0, 0, time.UTC)) }
	ran := func(day int) ledger.Entry { return ledger.Entry{Slot: night(day), Result: run.Ran} }
	over := func(e ledger.Entry, slept ...ledger.Slept) ledger.Entry {
		e.Slept, e.EndedAt = slept, new(e.Slot.Add(10*time.Hour))
		return e
	}
	skipped := ledger.Entry{Slot: night(19), Result: run.Skipped, Reason: "skipped"}
	for _, c := range []struct {
		name, skip string
		entries    []ledger.Entry
		want       []string
	}{
		{"what slept, and nothing", "", []ledger.Entry{over(ran(17), ledger.Slept{Resources: 5}), over(ran(18)), skipped}, []string{": 5 resources slept", ": nothing slept (does not sleep)", ": Skipped: skipped (does not sleep)"}},
		{"one sleep over several nights", "", []ledger.Entry{ran(17), ran(18), over(ran(19), ledger.Slept{Resources: 1})}, []string{"", "", ": 1 resource slept"}},
		{"one that goes on", "", []ledger.Entry{over(ran(17), ledger.Slept{Resources: 1}), ran(18), ran(19)}, []string{": 1 resource slept", "", ""}},
		{"all that comes is skipped now", "true", []ledger.Entry{over(ran(17), ledger.Slept{Resources: 5}), over(ran(18)), skipped}, []string{": 5 resources slept", ": nothing slept (does not sleep)", ": Skipped: skipped (does not sleep)"}},
		{"all is skipped until an instant to come", "until:2026-11-23T00:00:00Z", []ledger.Entry{over(ran(17), ledger.Slept{Resources: 5}), over(ran(18)), over(ran(19), ledger.Slept{Resources: 2})}, []string{": 5 resources slept", ": nothing slept (does not sleep)", ": 2 resources slept"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			made := func(cm *corev1.ConfigMap) {
				cm.CreationTimestamp.Time = night(17).Add(-time.Hour)
				if c.skip != "" {
					cm.Annotations[annotations.Skip] = c.skip
				}
			}
			_, k := clusterOf(t, "shop", cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"),
				cmdtest.Sleeper("nights", "schedule: {timezone: UTC, offHours: [{start: '20:00', end: '06:00'}]}", made), cmdtest.LedgerOf("nights", ledger.Ledger{Watermark: cmdtest.Now(), Recent: c.entries}))
			w, err := ReadCluster(t.Context(), telling(&bytes.Buffer{}), k, "")
			if err != nil {
				t.Fatal(err)
			}
			a := Agenda{World: w, Now: cmdtest.Now(), From: *night(17), To: *night(20)}
			if err := a.Gather(); err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for i, text := range c.want {
				want = append(want, fmt.Sprintf("hibernate-plan shop/nights: sleep [11-%d 20:00, 11-%d 06:00)%s", 17+i, 18+i, text))
			}
			for _, e := range a.Entries {
				got = append(got, line(e)+map[bool]string{true: " (does not sleep)"}[e.Idle])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A sleep that was a dry run is drawn as one in which nothing slept.
func TestTheCalendarCallsASleepThatWasDrySo(t *testing.T) {
	at := cmdtest.Now()
	p := past{bySlot: map[int64]ledger.Entry{at.Unix(): {Slot: &at, Result: run.Ran, DryRun: true, StartedAt: &at}}}
	got := calendar.Entry{Kind: calendar.Sleep, Start: at}
	p.note(&got)
	if diff := cmp.Diff(calendar.Entry{Kind: calendar.Sleep, Start: at, Note: "dry run", Idle: true}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A dry run that failed changed nothing: it is no failed maintenance.
func TestTheCalendarCallsADryRunSo(t *testing.T) {
	at := cmdtest.Now()
	p := past{bySlot: map[int64]ledger.Entry{at.Unix(): {Slot: &at, Result: run.Ran, DryRun: true, Outcome: &ledger.Outcome{Phase: run.Failed, Step: "s", Message: "no such object"}}}}
	got := calendar.Entry{Kind: calendar.Slot, Start: at}
	p.note(&got)
	if diff := cmp.Diff(calendar.Entry{Kind: calendar.Slot, Start: at, Note: "dry run: Failed at s: no such object"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
