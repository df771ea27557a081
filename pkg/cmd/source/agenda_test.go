package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/calendar"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// in reads manifests from standard input, as a command does.
func in(t *testing.T, manifests ...string) (Set, string) {
	t.Helper()
	c, said := reader(strings.Join(manifests, "---\n"))
	w, err := Read(c, []string{"-"})
	if err != nil {
		t.Fatal(err)
	}
	return w, said.String()
}

// line is an entry as a person would note it; an open bound is a star.
func line(e calendar.Entry) string {
	const short = "01-02 15:04"
	from, to := e.Start.UTC().Format(short), e.End.UTC().Format(short)
	if e.Unbegun {
		from = "*"
	}
	if e.Unending {
		to = "*"
	}
	if e.Kind == calendar.Slot {
		idle := ""
		if e.Idle {
			idle = " idle"
		}
		return strings.TrimSuffix(fmt.Sprintf("%s: slot %s%s: %s", e.Owner, from, idle, e.Note), ": ")
	}
	word := map[calendar.Kind]string{calendar.Window: "window", calendar.Freeze: "freeze", calendar.Sleep: "sleep"}[e.Kind]
	return strings.TrimSuffix(fmt.Sprintf("%s: %s [%s, %s): %s", e.Owner, word, from, to, e.Note), ": ")
}

// entries are those between the tests' now, Saturday, and Monday.
func entries(t *testing.T, w Set) []string {
	t.Helper()
	a := Agenda{World: w, Now: cmdtest.Now(), From: cmdtest.Now(), To: cmdtest.Now().Add(48 * time.Hour)}
	if err := a.Gather(); err != nil {
		t.Fatal(err)
	}
	out := slices.Clone(a.Warnings)
	for _, e := range a.Entries {
		out = append(out, line(e))
	}
	return out
}

const (
	window     = "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{start: '22:00', end: '02:00'}]}}"
	shopClosed = "exclude: [{fromDate: 2026-11-22, untilDate: 2026-11-23, reason: stocktaking}]"
	twice      = "triggers: {schedules: [{cron: '0 1,12 * * *'}]}"
)

func namespaceOf(notes string) string {
	return "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop, annotations: {" + notes + "}}\n"
}

func TestAgendaIsWhatTheDocumentsComeTo(t *testing.T) {
	windows := []string{"policy shop/night: window [11-20 22:00, 11-21 02:00)", "policy shop/night: window [11-21 22:00, 11-22 02:00)", "policy shop/night: window [11-22 22:00, 11-23 02:00)"}
	for _, c := range []struct {
		name  string
		files []string
		want  []string
	}{
		{"a policy's windows, with their true bounds", []string{cmdtest.PolicyOf("night", "", window)}, windows},
		{"an exclusion cuts a window short and is a freeze of its own", []string{cmdtest.PolicyOf("night", "", strings.Replace(window, "windows:", shopClosed+", windows:", 1))}, []string{
			windows[0], "policy shop/night: window [11-21 22:00, 11-22 00:00): cut short by stocktaking",
			"policy shop/night: freeze [11-22 00:00, 11-23 00:00): stocktaking",
		}},
		{"two exclusions that say the same are one", []string{cmdtest.PolicyOf("night", "", strings.Replace(window, "windows:", strings.Replace(shopClosed, "]", ", {fromDate: 2026-11-22, untilDate: 2026-11-23, reason: stocktaking}]", 1)+", windows:", 1))}, []string{
			windows[0], "policy shop/night: window [11-21 22:00, 11-22 00:00): cut short by stocktaking",
			"policy shop/night: freeze [11-22 00:00, 11-23 00:00): stocktaking",
		}},
		{"a policy that is always open", []string{cmdtest.PolicyOf("open", "", "{strategy: Permissive}")}, []string{"policy shop/open: window [*, *)"}},
		{"a policy that is always closed", []string{cmdtest.PolicyOf("shut", "", "{strategy: Restrictive}")}, []string{"policy shop/shut: freeze [*, *): Restrictive"}},
		{"a policy that is frozen for a while", []string{cmdtest.PolicyOf("night", "maint.dev/change-strategy: RestrictiveUntil, maint.dev/restrictive-until: '2026-11-22T06:00:00Z'", window)}, []string{
			windows[2], "policy shop/night: freeze [*, 11-22 06:00): RestrictiveUntil",
		}},
		{"a policy that is opened for a while", []string{cmdtest.PolicyOf("night", "maint.dev/change-strategy: PermissiveUntil, maint.dev/permissive-until: '2026-11-22T06:00:00Z'", window)}, []string{
			"policy shop/night: window [*, 11-22 06:00): PermissiveUntil 2026-11-22T06:00:00Z", windows[2],
		}},
		{"a policy that is paused", []string{cmdtest.PolicyOf("night", "maint.dev/pause: '2026-11-21T12:00:00Z'", window)}, []string{
			windows[1], windows[2], "policy shop/night: freeze [*, 11-21 12:00): paused",
		}},
		{"a policy whose calendar is not there permits nothing", []string{cmdtest.PolicyOf("night", "", strings.Replace(window, "windows:", "exclude: [{calendar: {name: holidays}}], windows:", 1))}, []string{
			"policy shop/night: freeze [*, *): not ready: maintenanceSchedule.exclude[0].calendar: \"holidays\": there is no such Calendar document",
		}},
		{"a plan's slots", []string{cmdtest.PlanOf("orders", "", twice)}, []string{
			"plan shop/orders: slot 11-21 01:00", "plan shop/orders: slot 11-21 12:00", "plan shop/orders: slot 11-22 01:00", "plan shop/orders: slot 11-22 12:00",
		}},
		{"a slot outside of the windows, and why", []string{cmdtest.PolicyOf("night", "", window), cmdtest.PlanOf("orders", "", "policies: [{name: night}], triggers: {schedules: [{cron: '0 1,12 21 * *'}]}")}, []string{
			windows[0], windows[1], windows[2],
			"plan shop/orders: slot 11-21 01:00", "plan shop/orders: slot 11-21 12:00 idle: not permitted then: policy night: outside of the windows",
		}},
		{"a slot whose run starts after its jitter, when the window is closed", []string{cmdtest.PolicyOf("night", "", window), cmdtest.PlanOf("orders", "", "policies: [{name: night}], triggers: {schedules: [{cron: '50 1 21 * *', jitter: 1h}]}")}, append(slices.Clone(windows),
			"plan shop/orders: slot 11-21 01:50 idle: not permitted then: policy night: outside of the windows")},
		{"a slot whose run starts after its jitter, when the window is open", []string{cmdtest.PolicyOf("night", "", window), cmdtest.PlanOf("orders", "", "policies: [{name: night}], triggers: {schedules: [{cron: '50 21 21 * *', jitter: 1h}]}")}, append(slices.Clone(windows),
			"plan shop/orders: slot 11-21 21:50: starts 28m14s later (jitter)")},
		{"a slot that waits for its window", []string{cmdtest.PolicyOf("night", "", window), cmdtest.PlanOf("orders", "", "policies: [{name: night}], triggers: {schedules: [{cron: '30 21 21 * *'}]}")}, append(slices.Clone(windows),
			"plan shop/orders: slot 11-21 21:30: waits for its window, and starts at 2026-11-21T22:00:00Z (policy night: outside of the windows)")},
		{"a slot that is Missed before its window opens", []string{cmdtest.PolicyOf("night", "", window), cmdtest.PlanOf("orders", "", "policies: [{name: night}], startDeadline: 20m, triggers: {schedules: [{cron: '30 21 21 * *'}]}")}, append(slices.Clone(windows),
			"plan shop/orders: slot 11-21 21:30 idle: not permitted then: policy night: outside of the windows")},
		{"of slots that wait for one window, the last one starts", []string{cmdtest.PolicyOf("night", "", window), cmdtest.PlanOf("orders", "maint.dev/skip: '2026-11-21T21:50:00Z'", "policies: [{name: night}], triggers: {schedules: [{cron: '30,40,50 21 21 * *'}]}")}, append(slices.Clone(windows),
			"plan shop/orders: slot 11-21 21:30 idle: not permitted then: policy night: outside of the windows; a later slot takes its place",
			"plan shop/orders: slot 11-21 21:40: waits for its window, and starts at 2026-11-21T22:00:00Z (policy night: outside of the windows)",
			"plan shop/orders: slot 11-21 21:50 idle: skipped")},
		{"a paused plan, and who said why", []string{cmdtest.PlanOf("orders", "maint.dev/pause: 'true', reason.maint.dev/pause: release week", "triggers: {schedules: [{cron: '0 1 21 * *'}]}")}, []string{
			"plan shop/orders: freeze [*, *): paused: release week", "plan shop/orders: slot 11-21 01:00 idle: the plan is paused: release week",
		}},
		{"a slot after the end of a pause", []string{cmdtest.PlanOf("orders", "maint.dev/pause: '2026-11-21T06:00:00Z'", "triggers: {schedules: [{cron: '0 1,12 21 * *'}]}")}, []string{
			"plan shop/orders: freeze [*, 11-21 06:00): paused", "plan shop/orders: slot 11-21 01:00 idle: the plan is paused", "plan shop/orders: slot 11-21 12:00",
		}},
		{"a pause that is over is nothing", []string{cmdtest.PlanOf("orders", "maint.dev/pause: '2026-11-20T06:00:00Z'", "triggers: {schedules: [{cron: '0 1 21 * *'}]}")}, []string{"plan shop/orders: slot 11-21 01:00"}},
		{"a slot that is skipped by name", []string{cmdtest.PlanOf("orders", "maint.dev/skip: '2026-11-21T12:00:00Z'", "triggers: {schedules: [{cron: '0 1,12 21 * *'}]}")}, []string{
			"plan shop/orders: slot 11-21 01:00", "plan shop/orders: slot 11-21 12:00 idle: skipped",
		}},
		{"a plan that is frozen", []string{cmdtest.PlanOf("orders", "maint.dev/change-strategy: Restrictive", "triggers: {schedules: [{cron: '0 1 21 * *'}]}")}, []string{
			"plan shop/orders: freeze [*, *): Restrictive", "plan shop/orders: slot 11-21 01:00 idle: not permitted then: Restrictive",
		}},
		{"a paused namespace stands above its plans", []string{namespaceOf("maint.dev/pause: 'true'"), cmdtest.PlanOf("orders", "", "triggers: {schedules: [{cron: '0 1 21 * *'}]}")}, []string{
			"namespace shop: freeze [*, *): paused", "plan shop/orders: slot 11-21 01:00 idle: namespace shop is paused",
		}},
		{"the paused namespace of the agent stands above all plans", []string{strings.Replace(namespaceOf("maint.dev/pause: 'true', actor.maint.dev/pause: jane"), "shop", "maint-system", 1), cmdtest.PlanOf("orders", "", "triggers: {schedules: [{cron: '0 1 21 * *'}]}")}, []string{
			"namespace maint-system: freeze [*, *): the whole cluster is paused by jane (unverified)", "namespace shop: freeze [*, *): the whole cluster is paused by jane (unverified)", "plan shop/orders: slot 11-21 01:00 idle: the whole cluster is paused by jane (unverified)",
		}},
		{"who closed a policy, a plan and their namespace, and why", []string{
			namespaceOf("maint.dev/pause: 'true', actor.maint.dev/pause: jane, reason.maint.dev/pause: audit, maint.dev/change-strategy: RestrictiveUntil, maint.dev/restrictive-until: '2026-11-21T06:00:00Z', actor.maint.dev/change-strategy: joe, reason.maint.dev/change-strategy: go-live"),
			cmdtest.PolicyOf("night", "maint.dev/pause: 'true', actor.maint.dev/pause: ann, reason.maint.dev/pause: storm, maint.dev/change-strategy: Restrictive, actor.maint.dev/change-strategy: bob, reason.maint.dev/change-strategy: end of year", window),
			cmdtest.PlanOf("orders", "maint.dev/pause: 'true', actor.maint.dev/pause: eve, maint.dev/change-strategy: RestrictiveUntil, maint.dev/restrictive-until: '2026-11-22T00:00:00Z', reason.maint.dev/change-strategy: CHG-1", ""),
		}, []string{
			"namespace shop: freeze [*, 11-21 06:00): RestrictiveUntil by joe (unverified): go-live",
			"namespace shop: freeze [*, *): paused by jane (unverified): audit",
			"policy shop/night: freeze [*, *): Restrictive by bob (unverified): end of year",
			"policy shop/night: freeze [*, *): paused by ann (unverified): storm",
			"plan shop/orders: freeze [*, 11-22 00:00): RestrictiveUntil: CHG-1",
			"plan shop/orders: freeze [*, *): paused by eve (unverified)",
		}},
		{"a frozen namespace", []string{namespaceOf("maint.dev/change-strategy: RestrictiveUntil, maint.dev/restrictive-until: '2026-11-21T06:00:00Z'"), cmdtest.PlanOf("orders", "", "triggers: {schedules: [{cron: '0 1,12 21 * *'}]}")}, []string{
			"namespace shop: freeze [*, 11-21 06:00): RestrictiveUntil",
			"plan shop/orders: slot 11-21 01:00 idle: not permitted then: namespace: RestrictiveUntil 2026-11-21T06:00:00Z", "plan shop/orders: slot 11-21 12:00",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := in(t, c.files...)
			if diff := cmp.Diff(c.want, entries(t, w)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAgendaSkipsTheVeryNextSlotFromNow(t *testing.T) {
	slot := func(at, why string) string {
		return strings.TrimSuffix("plan shop/orders: slot "+at+" idle: "+why, " idle: ")
	}
	for _, c := range []struct {
		name, pause string
		now, from   int // hours from midnight
		want        []string
	}{
		{name: "from before now", now: 6, want: []string{slot("11-21 01:00", ""), slot("11-21 12:00", "skipped"), slot("11-22 01:00", "")}},
		{name: "from now, which is a slot", now: 12, from: 12, want: []string{slot("11-21 12:00", "skipped"), slot("11-22 01:00", ""), slot("11-22 12:00", "")}},
		{name: "from a time to come: the next one is before it", from: 6, want: []string{slot("11-21 12:00", ""), slot("11-22 01:00", ""), slot("11-22 12:00", "")}},
		{name: "the next one is that after a pause", pause: "2026-11-21T12:00:00Z", want: []string{slot("11-21 01:00", "the plan is paused"), slot("11-21 12:00", "skipped"), slot("11-22 01:00", "")}},
		{name: "of a pause without an end there is no next one", pause: "true", want: []string{slot("11-21 01:00", "the plan is paused"), slot("11-21 12:00", "the plan is paused"), slot("11-22 01:00", "the plan is paused")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := in(t, cmdtest.PlanOf("orders", "maint.dev/pause: '"+c.pause+"'", twice))
			w.Plans[0].Intent.Skip.Next = true // a file may not hold that
			at := func(hours int) time.Time { return cmdtest.Now().Add(time.Duration(hours) * time.Hour) }
			a := Agenda{World: w, Now: at(c.now), From: at(c.from), To: at(48)}
			if err := a.Gather(); err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, e := range a.Entries {
				if e.Kind == calendar.Slot && len(got) < len(c.want) {
					got = append(got, line(e))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Days of a calendar that touch are told apart by their names.
func TestAgendaTellsHolidaysApart(t *testing.T) {
	holidays := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: holidays, namespace: shop, labels: {maint.dev/kind: calendar}}\ndata:\n  calendar.yaml: |\n" +
		"    {apiVersion: maint.dev/v1alpha1, kind: Calendar, spec: [{from: 2026-11-21, reason: fair}, {from: 2026-11-22, reason: all souls}]}\n"
	w, _ := in(t, holidays, cmdtest.PolicyOf("night", "", strings.Replace(window, "windows:", "exclude: [{calendar: {name: holidays}}], windows:", 1)))
	got := slices.DeleteFunc(entries(t, w), func(s string) bool { return !strings.Contains(s, "freeze") })
	want := []string{"policy shop/night: freeze [11-21 00:00, 11-22 00:00): fair", "policy shop/night: freeze [11-22 00:00, 11-23 00:00): all souls"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAgendaLeavesOutWhatNobodyWouldRead(t *testing.T) {
	w, _ := in(t, cmdtest.PlanOf("orders", "", "triggers: {schedules: [{cron: '* * * * *'}]}"))
	a := Agenda{World: w, Now: cmdtest.Now(), From: cmdtest.Now(), To: cmdtest.Now().AddDate(0, 0, 9)}
	if err := a.Gather(); err != nil {
		t.Fatal(err)
	}
	want := []string{"plan shop/orders has more than 12000 slots: those from 2026-11-29T08:00:00Z on are left out; ask for a shorter time with --to"}
	if diff := cmp.Diff(want, a.Warnings); diff != "" || len(a.Entries) != 12000 {
		t.Errorf("%d entries; warnings (-want +got):\n%s", len(a.Entries), diff)
	}
}

func TestAgendaSaysWhatClocksAndJitterDoToASlot(t *testing.T) {
	march := time.Date(2027, 3, 28, 0, 0, 0, 0, time.UTC) // clocks go from 02:00 to 03:00
	for _, c := range []struct{ name, schedule, want string }{
		{"it falls into the gap", "cron: '30 2 * * *', timezone: Europe/Berlin", "plan shop/orders: slot 03-28 01:00: clocks go forward over it: the first instant after the gap"},
		{"it begins a while later", "cron: '30 4 * * *', jitter: 10m", "plan shop/orders: slot 03-28 04:30: starts 8m14s later (jitter)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := in(t, cmdtest.PlanOf("orders", "", "triggers: {schedules: [{"+c.schedule+"}]}"))
			a := Agenda{World: w, Now: march, From: march, To: march.Add(24 * time.Hour)}
			if err := a.Gather(); err != nil {
				t.Fatal(err)
			}
			if len(a.Entries) != 1 || line(a.Entries[0]) != c.want {
				t.Errorf("%+v, %s", a.Entries, line(a.Entries[0]))
			}
		})
	}
}

// Exclusions are drawn where they decide: of a policy that has a schedule, and no fault.
func TestAgendaDrawsTheExclusionsThatDecide(t *testing.T) {
	w, _ := in(t, cmdtest.PolicyOf("night", "", strings.Replace(window, "windows:", shopClosed+", windows:", 1)))
	for name, c := range map[string]struct {
		edit func(*policy.State)
		want int
	}{
		"its schedule decides":        {func(*policy.State) {}, 1},
		"another strategy does":       {func(p *policy.State) { p.Spec.Strategy = schedule.Permissive }, 0},
		"it has no schedule":          {func(p *policy.State) { p.Spec.MaintenanceSchedule = nil }, 0},
		"it has a fault":              {func(p *policy.State) { p.Faults = document.Faults{{Message: "x"}} }, 0},
		"it has a fault and no words": {func(p *policy.State) { p.Faults, p.Spec.MaintenanceSchedule = document.Faults{{}}, nil }, 0},
	} {
		p := w.policies[0]
		c.edit(&p)
		a := Agenda{World: w, Now: cmdtest.Now(), From: cmdtest.Now(), To: cmdtest.Now().Add(48 * time.Hour)}
		if got := a.excluded(calendar.Owner{Kind: "policy", Name: p.Name}, p); len(got) != c.want {
			t.Errorf("%s: %d exclusions, want %d", name, len(got), c.want)
		}
	}
}
