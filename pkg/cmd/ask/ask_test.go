package ask_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

const (
	weekly = "triggers: {schedules: [{cron: '0 2 * * 6', timezone: America/New_York}]}"
	actor  = "Jane@example.com"
)

// row is a command line on plan orders, what it printed, and what it changed of the
// plan's annotations.
type row struct {
	name   string
	line   string // its words; what stands between ' is one
	spec   string // of the plan, beside its step
	notes  []string
	world  []runtime.Object // beside the plan and an agent that runs
	before func(*cmdtest.Cluster)
	code   int
	out    string
	err    string
	wrote  map[string]string // annotations that are new or another; empty: gone
}

func (r row) run(t *testing.T) {
	t.Helper()
	p := cmdtest.Plan("orders", r.spec, cmdtest.Noting(r.notes...))
	before := maps.Clone(p.Annotations)
	world := append([]runtime.Object{p}, r.world...)
	if !slices.ContainsFunc(r.world, func(o runtime.Object) bool {
		cm, is := o.(*corev1.ConfigMap)
		return is && cm.Labels[annotations.LabelKind] == annotations.KindHeartbeat
	}) {
		world = append(world, cmdtest.Agent())
	}
	o := cmdtest.NewCluster(t, cmd.Run, world...)
	if r.before != nil {
		r.before(o)
	}
	o.Line(r.line).Is(t, cmdtest.Printed{Code: r.code, Out: r.out, Err: r.err})
	if diff := cmp.Diff(r.wrote, cmdtest.Changed(before, o.Notes("orders"))); diff != "" {
		t.Errorf("what it wrote on the plan (-want +got):\n%s", diff)
	}
}

func runRows(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) { synctest.Test(t, r.run) }) // a --timeout passes when nothing else is left to do
	}
}

// noAgent is a heartbeat from an hour ago.
func noAgent() *corev1.ConfigMap {
	cm := cmdtest.Agent()
	cm.Data["heartbeat"] = "2026-11-20T23:00:00Z"
	return cm
}

const missing = "error: the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'; nothing was asked\n"

// signed is an intent with who gave it, and why.
func signed(intent, value, reason string) map[string]string {
	out := map[string]string{intent: value, annotations.Actor(intent): actor}
	if reason != "" {
		out[annotations.Reason(intent)] = reason
	}
	return out
}

const noZone = "error: --timezone: timezone: \"Europe/Berln\": is not a time zone of the IANA database 2025c; did you mean Europe/Berlin?\n"

// days are the slots at half past two in Berlin of some days of November 2026, a line each.
func days(from, to int) string {
	var out strings.Builder
	for d := from; d <= to; d++ {
		fmt.Fprintf(&out, "  %s 02:30 CET (2026-11-%02dT01:30:00Z)\n", time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC).Format("Mon 2006-01-02"), d)
	}
	return out.String()
}

// minutes are the first slots of a plan that runs each minute, a line each.
func minutes(n int) string {
	var out strings.Builder
	for m := 1; m <= n; m++ {
		at := time.Date(2026, 11, 21, 0, m, 0, 0, time.UTC)
		fmt.Fprintf(&out, "  %s UTC (%s)\n", at.Format("Mon 2006-01-02 15:04"), at.Format(time.RFC3339))
	}
	return out.String()
}

func TestSkip(t *testing.T) {
	const one, two = "2026-11-21T07:00:00Z", "2026-11-28T07:00:00Z"
	runRows(t, []row{
		{name: "the next slot, said in the plan's zone and in UTC", spec: weekly, line: "skip orders --next 1 --reason 'release week'", out: "plan/orders skips Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)\n", wrote: signed(annotations.Skip, one, "release week")},
		{name: "the next two", spec: weekly, line: "skip orders --next 2", out: "plan/orders skips Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)\nplan/orders skips Sat 2026-11-28 02:00 EST (2026-11-28T07:00:00Z)\n", wrote: signed(annotations.Skip, one+","+two, "")},
		{name: "the next passes over one that is skipped", spec: weekly, notes: []string{annotations.Skip, one}, line: "skip orders --next 1", out: "plan/orders skips Sat 2026-11-28 02:00 EST (2026-11-28T07:00:00Z)\n", err: "plan/orders also skips Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z), as was asked before; 'kubectl maint unskip orders' takes all of it back\n", wrote: signed(annotations.Skip, one+","+two, "")},
		{name: "the next, beside one that stands there as next", spec: weekly, notes: []string{annotations.Skip, "next"}, line: "skip orders --slot 'sat 02:00'", out: "plan/orders skips Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)\n", wrote: signed(annotations.Skip, one, "")},
		{name: "until a time before the next one, which comes after the pause", spec: weekly, notes: []string{annotations.Skip, "next", annotations.Pause, "2026-11-25T00:00:00Z"}, line: "skip orders --until 2026-11-24", code: 3, err: "error: the slot Sat 2026-11-28 02:00 EST (2026-11-28T07:00:00Z), later than --until, is skipped already; 'kubectl maint unskip orders' takes that back first\n"},
		{name: "beside a next after a pause without an end", spec: weekly, notes: []string{annotations.Skip, "next", annotations.Pause, "true"}, line: "skip orders --until 2026-12-24", code: 3, err: "error: plan orders skips the first slot after its pause already; 'kubectl maint unskip orders' takes that back first\n"},
		{name: "a slot by its time in another zone", spec: weekly, line: "skip orders --slot 'sat 08:00' --timezone Europe/Berlin", out: "plan/orders skips Sat 2026-11-21 08:00 CET (2026-11-21T07:00:00Z)\n", wrote: signed(annotations.Skip, one, "")},
		{name: "all before a time", spec: weekly, line: "skip orders --until 2026-12-10", out: "plan/orders skips 3 slots before Thu 2026-12-10 00:00 EST (2026-12-10T05:00:00Z)\n  Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)\n  Sat 2026-11-28 02:00 EST (2026-11-28T07:00:00Z)\n  Sat 2026-12-05 02:00 EST (2026-12-05T07:00:00Z)\n", wrote: signed(annotations.Skip, "until:2026-12-10T05:00:00Z", "")},
		{name: "many before a time: the first ten are named", spec: "triggers: {schedules: [{cron: '30 2 * * *', timezone: Europe/Berlin}]}", line: "skip orders --until 2027-04-02 --dry-run", out: "plan/orders skips 132 slots before Fri 2027-04-02 00:00 CEST (2027-04-01T22:00:00Z) (dry run)\n" + days(21, 30) + "  and 122 more\n"},
		{name: "more before a time than are counted", spec: "triggers: {schedules: [{cron: '* * * * *'}]}", line: "skip orders --until 2026-11-28T00:00:00Z --dry-run", out: "plan/orders skips more than 10000 slots before Sat 2026-11-28 00:00 UTC (2026-11-28T00:00:00Z) (dry run)\n" + minutes(10) + "  and more than 9990 more\n"},
		{name: "as many before a time as are counted", spec: "triggers: {schedules: [{cron: '* * * * *'}]}", line: "skip orders --until 2026-11-27T22:41:00Z --dry-run", out: "plan/orders skips 10000 slots before Fri 2026-11-27 22:41 UTC (2026-11-27T22:41:00Z) (dry run)\n" + minutes(10) + "  and 9990 more\n"},
		{name: "before a time: a slot that a clock change moves says so", spec: "triggers: {schedules: [{cron: '30 2 28 3 *', timezone: Europe/Berlin}]}", line: "skip orders --until 2027-04-02", out: "plan/orders skips 1 slot before Fri 2027-04-02 00:00 CEST (2027-04-01T22:00:00Z)\n  Sun 2027-03-28 03:00 CEST (2027-03-28T01:00:00Z), clocks go forward over it: the first instant after the gap\n", wrote: signed(annotations.Skip, "until:2027-04-01T22:00:00Z", "")},
		{name: "none before a time", spec: weekly, line: "skip orders --until 1h", out: "plan/orders skips 0 slots before Fri 2026-11-20 20:00 EST (2026-11-21T01:00:00Z)\n", wrote: signed(annotations.Skip, "until:2026-11-21T01:00:00Z", "")},
		{name: "the next, told in a zone that there is not", spec: weekly, line: "skip orders --next 1 --timezone Europe/Berln", code: 2, err: noZone},
		{name: "all, in a zone that there is not", spec: weekly, line: "skip orders --all --timezone Europe/Berln", code: 2, err: noZone},
		{name: "a time with its zone, and another one that there is not", spec: weekly, line: "skip orders --slot 2026-11-21T07:00:00Z --timezone Europe/Berln", code: 2, err: noZone},
		{name: "all", spec: weekly, line: "skip orders --all", out: "plan/orders skips all slots until 'kubectl maint unskip orders'\n", wrote: signed(annotations.Skip, "true", "")},
		{name: "all of a plan without slots: its labels wait", line: "skip orders --all", out: "plan/orders skips all slots until 'kubectl maint unskip orders'\n", wrote: signed(annotations.Skip, "true", "")},
		{name: "a trial on the client writes nothing", spec: weekly, line: "skip orders --all --dry-run", out: "plan/orders skips all slots until 'kubectl maint unskip orders' (dry run)\n"},
		{name: "somebody else skips meanwhile: both stand", spec: weekly, line: "skip orders --next 1", before: func(o *cmdtest.Cluster) {
			o.Conflicts("configmaps", func() { o.Stores("configmaps", cmdtest.Plan("orders", weekly, cmdtest.Noting(annotations.Skip, one))) })
		}, out: "plan/orders skips Sat 2026-11-28 02:00 EST (2026-11-28T07:00:00Z)\n", err: "plan/orders also skips Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z), as was asked before; 'kubectl maint unskip orders' takes all of it back\n", wrote: signed(annotations.Skip, one+","+two, "")},
		{name: "no slot at that time", spec: weekly, line: "skip orders --slot 'sun 02:00'", code: 2, err: "error: --slot: the plan has no slot at Sun 2026-11-22 02:00 EST (2026-11-22T07:00:00Z); the next after it is Sat 2026-11-28 02:00 EST (2026-11-28T07:00:00Z)\n"},
		{name: "a slot that has passed, and one that never comes", spec: weekly, line: "skip orders --slot 2026-11-14T07:00:00Z --slot 'sun 02:00'", code: 2, err: "error: --slot: Sat 2026-11-14 02:00 EST (2026-11-14T07:00:00Z) has passed\nerror: --slot: the plan has no slot at Sun 2026-11-22 02:00 EST (2026-11-22T07:00:00Z); the next after it is Sat 2026-11-28 02:00 EST (2026-11-28T07:00:00Z)\n"},
		{name: "a schedule that is over", spec: "triggers: {schedules: [{at: '2020-01-01T00:00:00Z'}]}", line: "skip orders --next 1", code: 2, err: "error: the plan has no coming slot\n"},
		{name: "a slot after the last one", spec: "triggers: {schedules: [{at: '2020-01-01T00:00:00Z'}]}", line: "skip orders --slot 2027-01-01", code: 2, err: "error: --slot: the plan has no slot at Fri 2027-01-01 00:00 UTC (2027-01-01T00:00:00Z), nor after it\n"},
		{name: "until a time that has passed", spec: weekly, line: "skip orders --until 2026-11-01", code: 2, err: "error: --until: Sun 2026-11-01 00:00 EDT (2026-11-01T04:00:00Z) has passed\n"},
		{name: "until a time before a slot that is skipped", spec: weekly, notes: []string{annotations.Skip, two}, line: "skip orders --until 2026-11-25", code: 3, err: "error: the slot Sat 2026-11-28 02:00 EST (2026-11-28T07:00:00Z), later than --until, is skipped already; 'kubectl maint unskip orders' takes that back first\n"},
		{name: "until a time before the next slot, which stands there as next", spec: weekly, notes: []string{annotations.Skip, "next", annotations.Actor(annotations.Skip), "joe", annotations.Reason(annotations.Skip), "release week"}, line: "skip orders --until tomorrow", code: 3, err: "error: the slot Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z), later than --until, is skipped already, by joe (unverified): release week; 'kubectl maint unskip orders' takes that back first\n"},
		{name: "until a time after the next slot, which stands there as next", spec: weekly, notes: []string{annotations.Skip, "next"}, line: "skip orders --until 2026-11-25", out: "plan/orders skips 1 slot before Wed 2026-11-25 00:00 EST (2026-11-25T05:00:00Z)\n  Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)\n", wrote: signed(annotations.Skip, "until:2026-11-25T05:00:00Z", "")},
		{name: "until a time before the one until which all are skipped", spec: weekly, notes: []string{annotations.Skip, "until:2027-01-04T00:00:00Z", annotations.Actor(annotations.Skip), "joe"}, line: "skip orders --until 2026-11-25", code: 3, err: "error: all slots before Sun 2027-01-03 19:00 EST (2027-01-04T00:00:00Z), later than --until, are skipped already, by joe (unverified); 'kubectl maint unskip orders' takes that back first\n"},
		{name: "until a time after the one until which all are skipped", spec: weekly, notes: []string{annotations.Skip, "until:2026-11-25T05:00:00Z"}, line: "skip orders --until 2026-12-10", out: "plan/orders skips 3 slots before Thu 2026-12-10 00:00 EST (2026-12-10T05:00:00Z)\n  Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)\n  Sat 2026-11-28 02:00 EST (2026-11-28T07:00:00Z)\n  Sat 2026-12-05 02:00 EST (2026-12-05T07:00:00Z)\n", wrote: signed(annotations.Skip, "until:2026-12-10T05:00:00Z", "")},
		{name: "one more beside all before a time", spec: weekly, notes: []string{annotations.Skip, "until:2026-12-10T05:00:00Z"}, line: "skip orders --next 1", code: 3, err: "error: plan orders skips all slots before Thu 2026-12-10 00:00 EST (2026-12-10T05:00:00Z) already; 'kubectl maint unskip orders' takes that back first\n"},
		{name: "one more beside all", spec: weekly, notes: []string{annotations.Skip, "all"}, line: "skip orders --next 1", code: 3, err: "error: plan orders skips all slots already; 'kubectl maint unskip orders' takes that back first\n"},
		{name: "a plan without a schedule", line: "skip orders --next 1", code: 1, err: "error: plan orders has no schedule, so there are no slots to skip; --all makes its labels wait\n"},
		{name: "more slots than an annotation may name", spec: "triggers: {schedules: [{cron: '* * * * *'}]}", notes: []string{annotations.Skip, one}, line: "skip orders --next 100", code: 1, err: "error: 101 slots cannot be named one by one: use --until\n"},
		{name: "a plan with a fault", spec: "triggers: {schedules: [{cron: 'soon'}]}", line: "skip orders --next 1", code: 1, err: "error: plan orders is not valid:\nerror: line 1: spec.triggers.schedules[0].cron: has 1 fields; write five: minute hour day-of-month month day-of-week, such as \"0 2 * * 6\"\n"},
		{name: "no plan of that name", line: "skip order --next 1", code: 1, err: "error: there is no plan \"order\" in namespace shop; did you mean \"orders\"?\n"},
		{name: "who may not write", spec: weekly, line: "skip orders --all", before: func(o *cmdtest.Cluster) { o.Forbids("patch", "configmaps", "") }, code: 1, err: "Error from server (Forbidden): write to shop/orders: configmaps is forbidden: not for you; the ClusterRole edit in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"},
	})
}

func TestUnskip(t *testing.T) {
	const one, two = "2026-11-21T07:00:00Z", "2026-11-28T07:00:00Z"
	skipping := func(value string) []string {
		return []string{annotations.Skip, value, annotations.Actor(annotations.Skip), "joe", annotations.Reason(annotations.Skip), "release week"}
	}
	gone := map[string]string{annotations.Skip: "", annotations.Actor(annotations.Skip): "", annotations.Reason(annotations.Skip): ""}
	runRows(t, []row{
		{name: "told in a zone that there is not", spec: weekly, notes: skipping(one), line: "unskip orders --timezone Europe/Berln", code: 2, err: noZone},
		{name: "all slots", spec: weekly, notes: skipping("all"), line: "unskip orders", out: "plan/orders no longer skips all slots\n", wrote: gone},
		{name: "named slots", spec: weekly, notes: skipping(one + "," + two), line: "unskip orders", out: "plan/orders no longer skips Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z), Sat 2026-11-28 02:00 EST (2026-11-28T07:00:00Z)\n", wrote: gone},
		{name: "one of two slots: the other stays, with who skipped it", spec: weekly, notes: skipping(one + "," + two), line: "unskip orders --slot 'sat 02:00'", out: "plan/orders no longer skips Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)\n", wrote: map[string]string{annotations.Skip: two}},
		{name: "the last slot", spec: weekly, notes: skipping(one), line: "unskip orders --slot 'sat 02:00'", out: "plan/orders no longer skips Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)\n", wrote: gone},
		{name: "in another zone", spec: weekly, notes: skipping(one), line: "unskip orders --slot 'sat 08:00' --timezone Europe/Berlin", out: "plan/orders no longer skips Sat 2026-11-21 08:00 CET (2026-11-21T07:00:00Z)\n", wrote: gone},
		{name: "a slot that is not skipped by name", spec: weekly, notes: skipping("all"), line: "unskip orders --slot 'sat 02:00'", code: 1, err: "error: the plan does not skip Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z) by name: its skip is all, which 'kubectl maint unskip orders' takes back\n"},
		{name: "what has passed", spec: weekly, notes: skipping("until:2026-11-14T07:00:00Z"), line: "unskip orders", out: "plan/orders no longer skips what has passed already\n", wrote: gone},
		{name: "nothing is skipped", spec: weekly, line: "unskip orders", out: "plan/orders skips nothing\n"},
		{name: "a trial", spec: weekly, notes: skipping("all"), line: "unskip orders --dry-run=client", out: "plan/orders no longer skips all slots (dry run)\n"},
		{name: "a slot that is no time", spec: weekly, line: "unskip orders --slot soon", code: 2, err: "error: \"soon\" is no time: write it like 2026-12-24T18:00:00Z, 2h, 30d, 08:00, \"tomorrow 08:00\", \"sat 02:00\" or \"2026-12-24 18:00\"\n"},
		{name: "no plan is named", line: "unskip", code: 2, err: "error: PLAN is missing; --help shows examples\n"},
	})
}
