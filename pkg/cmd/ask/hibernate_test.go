package ask_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// At the tests' now it is Friday 19:00 in New York: the off-hours of office have begun an
// hour ago, those of lunch come at noon.
const (
	office = "schedule: {timezone: America/New_York, offHours: [{start: '18:00', end: '06:00', daysOfWeek: [MON, TUE, WED, THU, FRI]}]}"
	lunch  = "schedule: {timezone: America/New_York, offHours: [{start: '12:00', end: '13:00'}]}"
	shut   = "{strategy: Restrictive}"
)

// sleepRow is a command line on HibernatePlan office, what it printed, and what it changed
// of the plan's annotations.
type sleepRow struct {
	row
	edit func(*corev1.ConfigMap)
}

func (r sleepRow) run(t *testing.T) {
	t.Helper()
	if r.spec == "" {
		r.spec = office
	}
	p := cmdtest.Sleeper("office", r.spec, cmdtest.Noting(r.notes...))
	before := maps.Clone(p.Annotations)
	world := append([]runtime.Object{p, cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system")}, r.world...)
	if r.edit == nil {
		world = append(world, cmdtest.Agent())
	} else {
		agent := cmdtest.Agent()
		r.edit(agent)
		world = append(world, agent)
	}
	o := cmdtest.NewCluster(t, cmd.Run, world...)
	if r.before != nil {
		r.before(o)
	}
	o.Line(r.line).Is(t, cmdtest.Printed{Code: r.code, Out: r.out, Err: r.err})
	if diff := cmp.Diff(r.wrote, cmdtest.Changed(before, o.Notes("office"))); diff != "" {
		t.Errorf("what it wrote on the plan (-want +got):\n%s", diff)
	}
}

func runSleepRows(t *testing.T, rows []sleepRow) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) { synctest.Test(t, r.run) })
	}
}

// held is a hold with who gave it.
func held(state, until, reason string) map[string]string {
	out := signed(annotations.HoldState, state, reason)
	if until != "" {
		out[annotations.HoldUntil] = until
	}
	return out
}

func stale(cm *corev1.ConfigMap) { cm.Data["heartbeat"] = "2026-11-20T23:00:00Z" }

const stalled = "the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'"

func TestHibernateAndWake(t *testing.T) {
	holdNotes := []string{annotations.HoldState, "awake", annotations.HoldUntil, "2026-11-21T02:00:00Z", annotations.Actor(annotations.HoldState), "joe", annotations.Reason(annotations.HoldState), "late"}
	runSleepRows(t, []sleepRow{
		{row: row{name: "awake for a while: the night goes on after it", line: "wake office --for 2h --reason 'late release'", out: "hibernate-plan/office held awake until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n  then it falls asleep by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\n", wrote: held("awake", "2026-11-21T02:00:00Z", "late release")}},
		{row: row{name: "awake until the morning, in the plan's zone", line: "wake office --until 'sat 08:00'", out: "hibernate-plan/office held awake until Sat 2026-11-21 08:00 EST (2026-11-21T13:00:00Z)\n  then it stays awake by its schedule; it sleeps next from Mon 2026-11-23 18:00 EST (2026-11-23T23:00:00Z) on\n", wrote: held("awake", "2026-11-21T13:00:00Z", "")}},
		{row: row{name: "awake until a time in another zone", line: "wake office --until 'sat 08:00' --timezone Europe/Berlin", out: "hibernate-plan/office held awake until Sat 2026-11-21 08:00 CET (2026-11-21T07:00:00Z)\n  then it falls asleep by its schedule until Sat 2026-11-21 12:00 CET (2026-11-21T11:00:00Z)\n", wrote: held("awake", "2026-11-21T07:00:00Z", "")}},
		{row: row{name: "awake until somebody releases it", line: "wake office", out: "hibernate-plan/office held awake until released with 'kubectl maint wake office --release'\n  its schedule is ignored until then\n", wrote: held("awake", "", "")}},
		{row: row{name: "asleep by day", spec: lunch, line: "hibernate office --for 3h", out: "hibernate-plan/office held asleep until Fri 2026-11-20 22:00 EST (2026-11-21T03:00:00Z)\n  then it wakes; it sleeps next from Sat 2026-11-21 12:00 EST (2026-11-21T17:00:00Z) on\n", wrote: held("asleep", "2026-11-21T03:00:00Z", "")}},
		{row: row{name: "asleep into the off-hours", line: "hibernate office --for 3h", out: "hibernate-plan/office held asleep until Fri 2026-11-20 22:00 EST (2026-11-21T03:00:00Z)\n  then it sleeps on by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\n", wrote: held("asleep", "2026-11-21T03:00:00Z", "")}},
		{row: row{name: "a hold takes the place of one that stands", notes: holdNotes, line: "hibernate office", out: "hibernate-plan/office held asleep until released with 'kubectl maint wake office --release'\n  its schedule is ignored until then\n", wrote: map[string]string{annotations.HoldState: "asleep", annotations.HoldUntil: "", annotations.Actor(annotations.HoldState): actor, annotations.Reason(annotations.HoldState): ""}}},
		{row: row{name: "the same hold again changes nothing", notes: holdNotes, line: "wake office --for 2h", out: "hibernate-plan/office unchanged: held awake until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n  then it falls asleep by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\n"}},
		{row: row{name: "released: the schedule decides", notes: holdNotes, line: "wake office --release", out: "hibernate-plan/office released, was held awake until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n  it sleeps by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\n", wrote: map[string]string{annotations.HoldState: "", annotations.HoldUntil: "", annotations.Actor(annotations.HoldState): "", annotations.Reason(annotations.HoldState): ""}}},
		{row: row{name: "released by the other command, into a skip", notes: append([]string{annotations.Skip, "2026-11-20T23:00:00Z"}, holdNotes...), line: "hibernate office --release", out: "hibernate-plan/office released, was held awake until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z)\n  it is awake by its schedule (these off-hours are skipped); it sleeps next from Mon 2026-11-23 18:00 EST (2026-11-23T23:00:00Z) on\n", wrote: map[string]string{annotations.HoldState: "", annotations.HoldUntil: "", annotations.Actor(annotations.HoldState): "", annotations.Reason(annotations.HoldState): ""}}},
		{row: row{name: "released without a hold", line: "wake office --release", out: "hibernate-plan/office was not held\n  it sleeps by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\n"}},
		{row: row{name: "a hold that was not understood is taken away", notes: []string{annotations.HoldState, "sleeping"}, line: "wake office --release", out: "hibernate-plan/office released\n  it sleeps by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\n", wrote: map[string]string{annotations.HoldState: ""}}},
		{row: row{name: "a trial", line: "wake office --dry-run", out: "hibernate-plan/office held awake until released with 'kubectl maint wake office --release' (dry run)\n  its schedule is ignored until then\n"}},
		{row: row{name: "somebody else writes meanwhile", line: "wake office", before: func(o *cmdtest.Cluster) {
			o.Conflicts("configmaps", func() {
				o.Stores("configmaps", cmdtest.Sleeper("office", office, cmdtest.Noting(annotations.Pause, "true")))
			})
		}, out: "hibernate-plan/office held awake until released with 'kubectl maint wake office --release'\n  its schedule is ignored until then\n", wrote: map[string]string{annotations.HoldState: "awake", annotations.Actor(annotations.HoldState): actor, annotations.Pause: "true"}}},
		{row: row{name: "two by name", world: objects(cmdtest.Sleeper("lunch", lunch)), line: "wake hibernate-plan/lunch plan/office --for 1h", out: "hibernate-plan/lunch held awake until Fri 2026-11-20 20:00 EST (2026-11-21T01:00:00Z)\n  then it stays awake by its schedule; it sleeps next from Sat 2026-11-21 12:00 EST (2026-11-21T17:00:00Z) on\nhibernate-plan/office held awake until Fri 2026-11-20 20:00 EST (2026-11-21T01:00:00Z)\n  then it falls asleep by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\n", wrote: held("awake", "2026-11-21T01:00:00Z", "")}},
		{row: row{name: "all of the namespace, which is asked about", line: "hibernate --all", code: 2, err: "error: put office in namespace shop to sleep: give --yes, since nobody can be asked here\n"}},
		{row: row{name: "all of the namespace", line: "hibernate --all --yes --for 3h", out: "hibernate-plan/office held asleep until Fri 2026-11-20 22:00 EST (2026-11-21T03:00:00Z)\n  then it sleeps on by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\n", wrote: held("asleep", "2026-11-21T03:00:00Z", "")}},
		{row: row{name: "those with a label, of which there are none", line: "wake -l team=red", code: 1, err: "error: no HibernatePlans found in namespace shop\n"}},
		{row: row{name: "those with a label in all namespaces, of which there are none", line: "wake -l team=red -A", code: 1, err: "error: no HibernatePlans found\n"}},
		{row: row{name: "all namespaces without labels", line: "wake office -A", code: 2, err: "error: -A needs -l\n"}},
		{row: row{name: "those of all namespaces, which is asked about", line: "hibernate -l maint.dev/kind -A", code: 2, err: "error: put shop/office to sleep: give --yes, since nobody can be asked here\n"}},
		{row: row{name: "those of all namespaces", line: "hibernate -l maint.dev/kind -A --yes --for 3h", out: "hibernate-plan/shop/office held asleep until Fri 2026-11-20 22:00 EST (2026-11-21T03:00:00Z)\n  then it sleeps on by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\n", wrote: held("asleep", "2026-11-21T03:00:00Z", "")}},
		{row: row{name: "of two names one means nothing: nothing is written", line: "wake office ghost", code: 1, err: "error: there is no HibernatePlan \"ghost\" in namespace shop; see 'kubectl maint list'\n"}},
		{row: row{name: "a plan that runs and does not sleep", world: objects(cmdtest.Plan("orders", "")), line: "wake orders", code: 1, err: "error: shop/orders is a plan and no HibernatePlan; see 'kubectl maint list'\n"}},
		{row: row{name: "who may not write", line: "wake office", before: func(o *cmdtest.Cluster) { o.Forbids("patch", "configmaps", "") }, code: 1, err: "Error from server (Forbidden): write to shop/office: configmaps is forbidden: not for you; the ClusterRole edit in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"}},
		{row: row{name: "a paused plan: the hold stands, and is told to wait", notes: []string{annotations.Pause, "2026-11-22T00:00:00Z"}, line: "hibernate office", err: "plan office: paused until Sat 2026-11-21 19:00 EST (2026-11-22T00:00:00Z), in 24h0m; it keeps its present state meanwhile: 'kubectl maint resume office' ends that\n", out: "hibernate-plan/office held asleep until released with 'kubectl maint wake office --release'\n  its schedule is ignored until then\n", wrote: held("asleep", "", "")}},
		{row: row{name: "a paused plan, for who would wait", notes: []string{annotations.Pause, "true"}, line: "wake office --wait", code: 3, err: "error: plan office: paused until resumed; it keeps its present state meanwhile: 'kubectl maint resume office' ends that; nothing was asked (without --wait the request is kept, and is carried out as soon as it can be)\n"}},
		{row: row{name: "the cluster is paused, for who would wait", before: func(o *cmdtest.Cluster) {
			o.Stores("namespaces", cmdtest.Namespace("maint-system", annotations.Pause, "true", annotations.Actor(annotations.Pause), "joe", annotations.Reason(annotations.Pause), "incident 8"))
		}, line: "wake office --wait", code: 3, err: "error: plan office: the whole cluster is paused until resumed, by joe (unverified): incident 8; it keeps its present state meanwhile: 'kubectl maint resume --all -A' ends that; nothing was asked (without --wait the request is kept, and is carried out as soon as it can be)\n"}},
		{row: row{name: "a policy that permits no sleep", world: objects(cmdtest.Policy("shut", shut)), spec: office + ", policies: [{name: shut}]", line: "hibernate office --wait", code: 3, err: "error: plan office: no sleep may begin now: policy shut: Restrictive; nothing was asked (without --wait the request is kept, and is carried out as soon as it can be)\n"}},
		{row: row{name: "a policy keeps nothing asleep", world: objects(cmdtest.Policy("shut", shut)), spec: office + ", policies: [{name: shut}]", line: "wake office", out: "hibernate-plan/office held awake until released with 'kubectl maint wake office --release'\n  its schedule is ignored until then\n", wrote: held("awake", "", "")}},
		{row: row{name: "a plan that only rehearses", spec: office + ", dryRun: true", line: "hibernate office --dry-run", err: "plan office: it is a dry run (spec.dryRun): nothing is put to sleep\n", out: "hibernate-plan/office held asleep until released with 'kubectl maint wake office --release' (dry run)\n  its schedule is ignored until then\n"}},
		{row: row{name: "a plan with a fault puts nothing to sleep", spec: "schedule: {offHours: []}", line: "hibernate office", code: 1, err: "error: plan office is not valid, so it puts nothing to sleep:\nerror: line 1: spec.schedule.offHours: is empty; write for instance [{start: \"20:00\", end: \"06:00\"}]\n"}},
		{row: row{name: "of two, one with a fault: the other is asked", world: objects(cmdtest.Sleeper("broken", "schedule: {offHours: []}")), line: "hibernate broken office --for 3h", code: 1, out: "hibernate-plan/office held asleep until Fri 2026-11-20 22:00 EST (2026-11-21T03:00:00Z)\n  then it sleeps on by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\n", err: "error: plan broken is not valid, so it puts nothing to sleep:\nerror: line 1: spec.schedule.offHours: is empty; write for instance [{start: \"20:00\", end: \"06:00\"}]\n", wrote: held("asleep", "2026-11-21T03:00:00Z", "")}},
		{row: row{name: "a plan with a fault can be woken", spec: "schedule: {offHours: []}", line: "wake office", out: "hibernate-plan/office held awake until released with 'kubectl maint wake office --release'\n", err: "plan office is not valid: when it sleeps next is not known (line 1: spec.schedule.offHours: is empty; write for instance [{start: \"20:00\", end: \"06:00\"}])\n", wrote: held("awake", "", "")}},
		{row: row{name: "no agent: it is done later", line: "wake office", err: "warning: " + stalled + "; what is asked here is done when one is back\n", out: "hibernate-plan/office held awake until released with 'kubectl maint wake office --release'\n  its schedule is ignored until then\n", wrote: held("awake", "", "")}, edit: stale},
		{row: row{name: "no agent, for who would wait", line: "wake office --wait", code: 5, err: "error: " + stalled + "; nothing was asked\n"}, edit: stale},
		{row: row{name: "all that is wrong at once", line: "hibernate --for 2h --until sat --release --reason x --wait --dry-run --timeout -1s", code: 2, err: "error: PLAN is missing; or give -l or --all\nerror: give one of --for, --until and --release\nerror: --wait: a dry run changes nothing that could be waited for\nerror: --timeout must not be negative\n"}},
		{row: row{name: "a reason for a release", line: "wake office --release --reason x", code: 2, err: "error: --reason is for a hold, and --release ends the hold\n"}},
		{row: row{name: "a time that has passed", line: "wake office --until 2026-11-20", code: 2, err: "error: --until: Fri 2026-11-20 00:00 EST (2026-11-20T05:00:00Z) has passed\n"}},
		{row: row{name: "a time that has passed on the user's clocks and not on the plan's", line: "wake office --until '2026-11-21 00:30'", out: "hibernate-plan/office held awake until Sat 2026-11-21 00:30 EST (2026-11-21T05:30:00Z)\n  then it falls asleep by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\n", wrote: held("awake", "2026-11-21T05:30:00Z", "")}},
		{row: row{name: "a time that has passed on the clocks of one plan: nothing is written for the other", world: objects(cmdtest.Sleeper("east", east)), line: "wake office east --until '2026-11-21 08:00'", code: 2, err: "error: east: --until: Sat 2026-11-21 08:00 JST (2026-11-20T23:00:00Z) has passed\n"}},
		{row: row{name: "a while, in a zone that there is not", line: "wake office --for 2h --timezone Europe/Berln", code: 2, err: noZone}},
		{row: row{name: "no length", line: "wake office --for 0s", code: 2, err: "error: --for: must be more than nothing, is 0s\n"}},
	})
}

func targets(list ...hibernate.TargetStatus) string { return annotations.Targets(list) }

func target(name string, state hibernate.State, message string) hibernate.TargetStatus {
	return hibernate.TargetStatus{Target: name, Executor: "noop", State: state, Message: message}
}

// The agent's words before it has taken in a hold are those of another time.
func TestHibernateWaits(t *testing.T) {
	says := func(hold, phase, message string, list ...hibernate.TargetStatus) func(*corev1.ConfigMap) {
		return cmdtest.Noting(annotations.StatusHold, hold, annotations.StatusPhase, phase, annotations.StatusMessage, message, annotations.StatusTargets, targets(list...))
	}
	const stands = "hibernate-plan/office held asleep until released with 'kubectl maint wake office --release'\n  its schedule is ignored until then\n"
	for _, c := range []struct {
		name  string
		line  string
		first func(*corev1.ConfigMap)
		steps []func(*corev1.ConfigMap) // what the agent says, a second after each line that speaks of the plan
		gone  bool
		code  int
		out   string
		err   string
	}{
		{
			name: "until all targets sleep", first: says("", "Active", "awake"), line: "hibernate office --wait",
			steps: []func(*corev1.ConfigMap){says("asleep", "Hibernating", "0 of 1 targets sleep", target("apps", hibernate.Running, "")), says("asleep", "Hibernated", "1 of 1 targets sleep", target("apps", hibernate.Asleep, ""))},
			out:   stands + "T plan office: Active: awake\nT office: target apps: Running\nT plan office: Hibernating: 0 of 1 targets sleep\nT office: target apps: Asleep\nT plan office: Hibernated: 1 of 1 targets sleep\n",
		},
		{
			name: "for a script standard output has the name alone", first: says("", "Active", "awake"), line: "hibernate office --wait -o name",
			steps: []func(*corev1.ConfigMap){says("asleep", "Hibernated", "1 of 1 targets sleep", target("apps", hibernate.Asleep, ""))},
			out:   "configmap/office\n", err: "T plan office: Active: awake\nT office: target apps: Asleep\nT plan office: Hibernated: 1 of 1 targets sleep\n",
		},
		{
			name: "what it said before the hold does not count", first: says("", "Error", "old"), line: "hibernate office --wait",
			steps: []func(*corev1.ConfigMap){says("asleep", "Hibernated", "1 of 1 targets sleep", target("apps", hibernate.Asleep, ""))},
			out:   stands + "T plan office: Error: old\nT office: target apps: Asleep\nT plan office: Hibernated: 1 of 1 targets sleep\n",
		},
		{
			name: "a target that fails", first: says("", "Active", ""), line: "hibernate office --wait", code: 4,
			steps: []func(*corev1.ConfigMap){says("asleep", "Error", "apps failed: no", target("apps", hibernate.Failed, "no"))},
			out:   stands + "T plan office: Active\nT office: target apps: Failed: no\nT plan office: Error: apps failed: no\n", err: "error: plan office: Error: apps failed: no\n",
		},
		{
			name: "one of several fails, and the rest sleeps", first: says("", "Active", ""), line: "hibernate office --wait", code: 4,
			steps: []func(*corev1.ConfigMap){says("asleep", "Hibernated", "1 of 2 targets sleep", target("apps", hibernate.Asleep, ""), target("db", hibernate.Aborted, "apps has failed"))},
			out:   stands + "T plan office: Active\nT office: target apps: Asleep\nT office: target db: Aborted: apps has failed\nT plan office: Hibernated: 1 of 2 targets sleep\n", err: "error: plan office: Hibernated, but target db has aborted: apps has failed\n",
		},
		{
			name: "nobody takes it up", first: says("", "Active", ""), line: "hibernate office --wait", code: 5,
			out: stands + "T plan office: Active\n", err: "error: the agent does not handle the request to plan office, which is kept: it waits for the API server, is too old, or does not watch namespace shop; 'kubectl maint doctor' shows its version, and 'kubectl maint install --apply --namespace maint-system' upgrades it\n",
		},
		{
			name: "the time is over", first: says("", "Active", ""), line: "hibernate office --wait --timeout 5s", code: 124,
			out: stands + "T plan office: Active\n", err: "error: --timeout passed: the request is kept, and goes on without you; see 'kubectl maint status office'\n",
		},
		{
			name: "the plan is deleted", first: says("", "Active", ""), line: "hibernate office --wait", gone: true, code: 1,
			out: stands + "T plan office: Active\n", err: "error: deleted meanwhile: office\n",
		},
		{
			name: "released in the off-hours: until it sleeps", first: cmdtest.Noting(annotations.HoldState, "awake", annotations.StatusHold, "awake", annotations.StatusPhase, "Active"), line: "wake office --release --wait",
			steps: []func(*corev1.ConfigMap){says("", "Hibernated", "")},
			out:   "hibernate-plan/office released, was held awake\n  it sleeps by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\nT plan office: Active\nT plan office: Hibernated\n",
		},
		{
			name: "a trigger, until what failed is done", first: says("", "Error", "apps failed: no", target("apps", hibernate.Failed, "no")), line: "trigger office --wait", code: 0,
			steps: []func(*corev1.ConfigMap){func(cm *corev1.ConfigMap) {
				cmdtest.Noting(annotations.StatusTrigger, cm.Annotations[annotations.Trigger])(cm)
				says("", "Hibernated", "1 of 1 targets sleep", target("apps", hibernate.Asleep, ""))(cm)
			}},
			out: "T office: target apps: Failed: no\nT plan office: Error: apps failed: no\nT office: target apps: Asleep\nT plan office: Hibernated: 1 of 1 targets sleep\n", err: "hibernate-plan/office is tried again: apps\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Sleeper("office", office, c.first), cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"))
				go func() {
					for _, step := range c.steps {
						cmdtest.Later(func() {
							cm := cmdtest.Sleeper("office", office)
							maps.Copy(cm.Annotations, o.Notes("office"))
							step(cm)
							o.Stores("configmaps", cm)
						})()
					}
					if c.gone {
						cmdtest.Later(func() { o.Deletes("configmaps", "office") })()
					}
				}()
				got := o.Maint(strings.Fields(c.line)...)
				for _, text := range []*string{&got.Out, &got.Err} {
					*text = strings.ReplaceAll(*text, "2026-11-21T00:00:00Z plan", "T plan")
					*text = strings.ReplaceAll(*text, "2026-11-21T00:00:00Z office", "T office")
				}
				got.Is(t, cmdtest.Printed{Code: c.code, Out: c.out, Err: c.err})
			})
		})
	}
}

func TestOtherIntentsOnHibernatePlans(t *testing.T) {
	const tonight, monday, tuesday = "2026-11-20T23:00:00Z", "2026-11-23T23:00:00Z", "2026-11-24T23:00:00Z"
	failed := []string{annotations.StatusPhase, "Error", annotations.StatusTargets, targets(target("apps", hibernate.Failed, "no"), target("db", hibernate.Aborted, "apps has failed"))}
	runSleepRows(t, []sleepRow{
		{row: row{name: "paused until a time in its zone", line: "pause office --until 'mon 06:00'", out: "hibernate-plan/office paused until Mon 2026-11-23 06:00 EST (2026-11-23T11:00:00Z)\n", wrote: signed(annotations.Pause, "2026-11-23T11:00:00Z", "")}},
		{row: row{name: "resumed: the present hour decides", notes: []string{annotations.Pause, "true"}, line: "resume office", out: "hibernate-plan/office resumed\n  it sleeps by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\n", wrote: map[string]string{annotations.Pause: ""}}},
		{row: row{name: "resumed into a hold", notes: []string{annotations.Pause, "true", annotations.HoldState, "awake"}, line: "resume hibernate-plan/office", out: "hibernate-plan/office resumed\n  held awake until released with 'kubectl maint wake office --release'; its schedule is ignored until then\n", wrote: map[string]string{annotations.Pause: ""}}},
		{row: row{name: "of a namespace that is not paused, those that are paused themselves", notes: []string{annotations.Pause, "true"}, line: "resume --all", out: "namespace shop was not paused\n", err: "still paused themselves: shop/office\n"}},
		{row: row{name: "the next off-window is the one that it is in", line: "skip office --next 1 --reason 'late release'", out: "hibernate-plan/office skips Fri 2026-11-20 18:00 EST (2026-11-20T23:00:00Z), which has begun: what sleeps wakes\n", wrote: signed(annotations.Skip, tonight, "late release")}},
		{row: row{name: "which wakes nothing while it is held asleep", notes: []string{annotations.HoldState, "asleep"}, line: "skip office --next 1", out: "hibernate-plan/office skips Fri 2026-11-20 18:00 EST (2026-11-20T23:00:00Z), which has begun; it is held asleep all the same until 'kubectl maint wake office --release'\n", wrote: signed(annotations.Skip, tonight, "")}},
		{row: row{name: "nor while it is paused", notes: []string{annotations.Pause, "true"}, line: "skip office --next 1", out: "hibernate-plan/office skips Fri 2026-11-20 18:00 EST (2026-11-20T23:00:00Z), which has begun: what sleeps wakes after 'kubectl maint resume office'\n", wrote: signed(annotations.Skip, tonight, "")}},
		{row: row{name: "and those after it", line: "skip office --next 3", out: "hibernate-plan/office skips Fri 2026-11-20 18:00 EST (2026-11-20T23:00:00Z), which has begun: what sleeps wakes\nhibernate-plan/office skips Mon 2026-11-23 18:00 EST (2026-11-23T23:00:00Z)\nhibernate-plan/office skips Tue 2026-11-24 18:00 EST (2026-11-24T23:00:00Z)\n", wrote: signed(annotations.Skip, tonight+","+monday+","+tuesday, "")}},
		{row: row{name: "by day the next is that of the evening", spec: lunch, line: "skip office --next 1", out: "hibernate-plan/office skips Sat 2026-11-21 12:00 EST (2026-11-21T17:00:00Z)\n", wrote: signed(annotations.Skip, "2026-11-21T17:00:00Z", "")}},
		{row: row{name: "one by its start", line: "skip office --slot 'mon 18:00'", out: "hibernate-plan/office skips Mon 2026-11-23 18:00 EST (2026-11-23T23:00:00Z)\n", wrote: signed(annotations.Skip, monday, "")}},
		{row: row{name: "the present one by its start", line: "skip office --slot 2026-11-20T23:00:00Z", out: "hibernate-plan/office skips Fri 2026-11-20 18:00 EST (2026-11-20T23:00:00Z), which has begun: what sleeps wakes\n", wrote: signed(annotations.Skip, tonight, "")}},
		{row: row{name: "one that does not start then", line: "skip office --slot 'mon 20:00'", code: 2, err: "error: --slot: the plan has no off-window at Mon 2026-11-23 20:00 EST (2026-11-24T01:00:00Z); the next after it is Tue 2026-11-24 18:00 EST (2026-11-24T23:00:00Z)\n"}},
		{row: row{name: "one that is over", line: "skip office --slot 2026-11-19T23:00:00Z", code: 2, err: "error: --slot: Thu 2026-11-19 18:00 EST (2026-11-19T23:00:00Z) has passed\n"}},
		{row: row{name: "all before a time", line: "skip office --until 2026-11-25", out: "hibernate-plan/office skips 3 off-windows before Wed 2026-11-25 00:00 EST (2026-11-25T05:00:00Z)\n  Fri 2026-11-20 18:00 EST (2026-11-20T23:00:00Z), which has begun: what sleeps wakes\n  Mon 2026-11-23 18:00 EST (2026-11-23T23:00:00Z)\n  Tue 2026-11-24 18:00 EST (2026-11-24T23:00:00Z)\n", wrote: signed(annotations.Skip, "until:2026-11-25T05:00:00Z", "")}},
		{row: row{name: "all", line: "skip office --all", out: "hibernate-plan/office skips all off-windows until 'kubectl maint unskip office'\n", wrote: signed(annotations.Skip, "true", "")}},
		{row: row{name: "one more beside one that stands there as next", notes: []string{annotations.Skip, "next"}, line: "skip office --slot 'mon 18:00'", out: "hibernate-plan/office skips Mon 2026-11-23 18:00 EST (2026-11-23T23:00:00Z)\n", wrote: signed(annotations.Skip, tonight+","+monday, "")}},
		{row: row{name: "unskipped", notes: []string{annotations.Skip, monday}, line: "unskip office", out: "hibernate-plan/office no longer skips Mon 2026-11-23 18:00 EST (2026-11-23T23:00:00Z)\n", wrote: map[string]string{annotations.Skip: ""}}},
		{row: row{name: "unskipped altogether", notes: []string{annotations.Skip, "true"}, line: "unskip office", out: "hibernate-plan/office no longer skips all off-windows\n", wrote: map[string]string{annotations.Skip: ""}}},
		{row: row{name: "a plan with a fault skips nothing", spec: "schedule: {offHours: []}", line: "skip office --next 1", code: 1, err: "error: plan office is not valid:\nerror: line 1: spec.schedule.offHours: is empty; write for instance [{start: \"20:00\", end: \"06:00\"}]\n"}},
		{row: row{name: "a trigger where nothing has failed", notes: []string{annotations.StatusPhase, "Hibernated", annotations.StatusMessage, "1 of 1 targets sleep"}, line: "trigger office", code: 3, err: "error: nothing of plan office has failed (Hibernated: 1 of 1 targets sleep), so there is nothing to try again; 'kubectl maint hibernate office' or 'kubectl maint wake office' overrides its schedule\n"}},
		{row: row{name: "a trigger with what is for runs", notes: failed, line: "trigger office --param a=b --outside-window --reason x --dry-run", code: 2, err: "error: --dry-run is for the run of a plan; office is a HibernatePlan: only its failed targets are tried again\nerror: --outside-window is for the run of a plan; office is a HibernatePlan: only its failed targets are tried again\nerror: --param is for the run of a plan; office is a HibernatePlan: only its failed targets are tried again\n"}},
		{row: row{name: "a trigger of a paused plan, for who would wait", notes: append([]string{annotations.Pause, "true"}, failed...), line: "trigger office --wait", code: 3, err: "error: plan office is paused until somebody resumes it; nothing was asked (without --wait what failed begins when the pause ends)\n"}},
		{row: row{name: "a trigger without an agent", notes: failed, line: "trigger office", code: 5, err: "error: " + stalled + "; nothing was asked\n"}, edit: stale},
		{row: row{name: "a trigger of a plan with a fault", spec: "schedule: {offHours: []}", line: "trigger office", code: 1, err: "error: plan office is not valid, so that nothing would be tried:\nerror: line 1: spec.schedule.offHours: is empty; write for instance [{start: \"20:00\", end: \"06:00\"}]\n"}},
		{row: row{name: "a retry is for runs", line: "retry office", code: 1, err: "error: shop/office is a HibernatePlan and no run or plan; a HibernatePlan has no runs: 'kubectl maint describe office' shows its targets, and 'kubectl maint trigger office' tries again what failed of them\n"}},
	})
}

func TestATriggerHasWhatFailedTriedAgain(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Sleeper("office", office, cmdtest.Noting(annotations.StatusTargets, targets(target("apps", hibernate.Failed, "no"), target("db", hibernate.Asleep, "")))))
	o.Maint("trigger", "office", "--reason", "the disk is back").Is(t, cmdtest.Printed{Out: "hibernate-plan/office is tried again: apps\n"})
	notes := o.Notes("office")
	if len(notes[annotations.Trigger]) != 36 || notes[annotations.Actor(annotations.Trigger)] != actor || notes[annotations.Reason(annotations.Trigger)] != "the disk is back" {
		t.Errorf("%v", notes)
	}
}

func TestCompletionOffersHibernatePlansThatAVerbCanActOn(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Plan("orders", ""), cmdtest.Sleeper("office", office), cmdtest.Sleeper("asleep", office, cmdtest.Noting(annotations.HoldState, "asleep")), cmdtest.Sleeper("paused", office, cmdtest.Noting(annotations.Pause, "true")), cmdtest.Sleeper("failed", office, cmdtest.Noting(annotations.StatusPhase, "Error")))
	for verb, want := range map[string]string{
		"hibernate": "failed office paused", "wake": "asleep failed office paused", "pause": "asleep failed office orders", "resume": "paused",
		"skip": "asleep failed office orders paused", "unskip": "", "trigger": "failed orders", "next": "asleep failed office orders paused", "check": "orders",
	} {
		got := o.Maint("__complete", verb, "")
		var names []string
		for line := range strings.SplitSeq(got.Out, "\n") {
			if line != "" && !strings.HasPrefix(line, ":") {
				names = append(names, line)
			}
		}
		slices.Sort(names) // shells sort them
		if text := strings.Join(names, " "); got.Code != 0 || text != want {
			t.Errorf("%s: %d, %q, want %q", verb, got.Code, text, want)
		}
	}
}
