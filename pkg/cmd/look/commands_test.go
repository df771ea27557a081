package look_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const (
	daily  = "triggers: {schedules: [{cron: '0 2 * * *', timezone: Europe/Berlin}]}"
	gated  = daily + ", policies: [{name: night}]"
	nights = "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{start: '22:00', end: '02:00'}]}}"
)

func objects(list ...runtime.Object) []runtime.Object { return list }

// seen is a plan as the agent has looked at it, with what it published.
func seen(name, spec string, pairs ...string) *corev1.ConfigMap {
	return cmdtest.Plan(name, spec, func(cm *corev1.ConfigMap) {
		cm.CreationTimestamp.Time = cmdtest.Now().Add(-48 * time.Hour)
		cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm)
		cm.Annotations[annotations.StatusPhase] = "Idle"
	}, cmdtest.Noting(pairs...))
}

// policed is a policy as the agent has looked at it.
func policed(name, spec string) *corev1.ConfigMap {
	cm := cmdtest.Policy(name, spec)
	cm.Annotations = map[string]string{
		annotations.StatusPermitted: "true", annotations.StatusConditions: `[{"type":"Ready","status":"True"}]`,
		annotations.StatusBehavior: `{"current":{"state":"ChangesUnpaused","endTime":"2026-11-22T00:00:00Z"}}`,
		annotations.StatusObserved: annotations.Observed(cm),
	}
	return cm
}

// live is run maint-run-orders-a of plan orders.
func live(records ...run.Record) *corev1.ConfigMap {
	return cmdtest.RunObject(cmdtest.RunOf(records...), "maint-run-orders-a")
}

func asked() *corev1.ConfigMap {
	r := cmdtest.RunOf()
	r.Run.Request = run.Request{Kind: run.ByToken, Actor: "jane", Reason: "trying it", At: *cmdtest.Before(time.Hour)}
	return cmdtest.RunObject(r, "maint-run-orders-a")
}

func pending(waiting, message string) *corev1.ConfigMap {
	return cmdtest.RunObject(cmdtest.PendingRun(func(r *view.Run) {
		slot := cmdtest.Now().Add(-10 * time.Minute)
		r.Run.Request = run.Request{Kind: run.BySchedule, Slot: &slot}
		r.Run.Spec.RequiresApproval = false
		r.Journal.Waiting, r.Journal.Message = waiting, message
	}), "maint-run-orders-a")
}

func ended(name string, phase run.Phase, at time.Duration, records ...run.Record) *corev1.ConfigMap {
	r := cmdtest.RunOf(records...)
	r.Journal.Phase, r.Journal.StartedAt, r.Journal.FinishedAt = phase, cmdtest.Before(at), cmdtest.Before(at-5*time.Minute)
	return cmdtest.RunObject(r, name)
}

// conditions are the annotations with one that the agent published.
func conditions(kind, status, message string) []string {
	return []string{annotations.StatusConditions, `[{"type":"` + kind + `","status":"` + status + `","message":"` + message + `"}]`}
}

// gates is a policy that permits nothing, and what the agent says of its gates.
func gates(name, status, message string) *corev1.ConfigMap {
	return noted(cmdtest.Policy(name, "{strategy: Restrictive}"), conditions("Gates", status, message)...)
}

// row is a command line, the cluster beside an agent that runs, and what it printed.
type row struct {
	name   string
	line   string
	world  []runtime.Object
	before func(*cmdtest.Cluster)
	code   int
	out    string
	err    string
}

func runRows(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, append(objects(cmdtest.Agent(), cmdtest.Namespace("maint-system")), r.world...)...)
			if r.before != nil {
				r.before(o)
			}
			o.Line(r.line).Is(t, cmdtest.Printed{Code: r.code, Out: r.out, Err: r.err})
		})
	}
}

func TestCheck(t *testing.T) {
	heldPolicy := cmdtest.Policy("held", nights)
	cmdtest.Noting(annotations.Pause, "true")(heldPolicy)
	world := objects(cmdtest.Namespace("shop"), cmdtest.Policy("night", nights), cmdtest.Policy("shut", "{strategy: Restrictive}"), seen("orders", gated), seen("free", ""), seen("lost", "policies: [{name: ghost}]"), cmdtest.Node("a"))
	runRows(t, []row{
		{name: "a policy in its window", line: "check night", world: world, out: "policy/night: change is permitted (in a window)\nsince Fri 2026-11-20 22:00 UTC (2026-11-20T22:00:00Z)\nuntil Sat 2026-11-21 02:00 UTC (2026-11-21T02:00:00Z), in 2h0m\nthen not permitted until Sat 2026-11-21 22:00 UTC (2026-11-21T22:00:00Z)\n"},
		{name: "a policy outside of it", line: "check night --at 'sat 12:00'", world: world, code: 3, err: "at Sat 2026-11-21 12:00 UTC (2026-11-21T12:00:00Z)\n", out: "policy/night: change is not permitted (outside of the windows)\nsince Sat 2026-11-21 02:00 UTC (2026-11-21T02:00:00Z)\nuntil Sat 2026-11-21 22:00 UTC (2026-11-21T22:00:00Z), in 10h0m\nthen permitted until Sun 2026-11-22 02:00 UTC (2026-11-22T02:00:00Z)\n"},
		{name: "for a script that wants no words", line: "check night -q", world: world},
		{name: "a policy that is named as a plan", line: "check plan/night", world: world, code: 1, err: "error: shop/night is a policy and no plan; see 'kubectl maint list'\n"},
		{name: "for a script that wants no words, and no", line: "check shut -q", world: world, code: 3},
		{name: "for a machine", line: "check shut -o json", world: world, code: 3, out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","kind":"Verdict","permitted":false,"reason":"policy shut: Restrictive","nextChangeETA":-1,"permissiveRemaining":0}`)},
		{name: "for a machine, at a time", line: "check night --at 'sat 12:00' -o name", world: world, code: 3, err: "at Sat 2026-11-21 12:00 UTC (2026-11-21T12:00:00Z)\n", out: "policy/night\n"},
		{name: "for a script that wants no words, at a time", line: "check night --at 'sat 12:00' -q", world: world, code: 3},
		{name: "a policy that is paused outside of its window", line: "check held --at 'sat 12:00'", world: append(world, heldPolicy), code: 3, err: "at Sat 2026-11-21 12:00 UTC (2026-11-21T12:00:00Z)\n", out: "policy/held: change is not permitted (paused)\nsince Sat 2026-11-21 02:00 UTC (2026-11-21T02:00:00Z)\nuntil somebody changes it\n"},
		{name: "a policy that is paused in its window", line: "check held", world: append(world, heldPolicy), code: 3, out: "policy/held: change is not permitted (paused)\nuntil somebody changes it\n"},
		{name: "a policy whose pause is not understood", line: "check held", world: append(world, noted(heldPolicy.DeepCopy(), annotations.Pause, "maybe")), code: 3, out: "policy/held: change is not permitted (paused (maint.dev/pause: \"maybe\" is not understood))\nuntil somebody changes it\n"},
		{name: "a plan that is paused outside of its window", line: "check stopped --at 'sat 12:00'", world: append(world, seen("stopped", gated, annotations.Pause, "2026-11-21T15:00:00Z")), code: 3, err: "at Sat 2026-11-21 12:00 CET (2026-11-21T11:00:00Z)\n", out: "plan/stopped: change is not permitted (paused until Sat 2026-11-21 16:00 CET)\nsince Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\nuntil Sat 2026-11-21 23:00 CET (2026-11-21T22:00:00Z), in 11h0m\nthen permitted until Sun 2026-11-22 03:00 CET (2026-11-22T02:00:00Z)\n"},
		{name: "a plan without a policy", line: "check free", world: world, out: "plan/free: change is permitted (no strategy is set)\nuntil somebody changes it\n"},
		{name: "a plan that is invalid", line: "check odd", world: append(world, seen("odd", "startDeadline: soon")), err: "warning: the plan is invalid, so it starts nothing: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d; apart from that, this is the answer for it\n", out: "plan/odd: change is permitted (no strategy is set)\nuntil somebody changes it\n"},
		{name: "a plan that the agent calls invalid", line: "check odd", world: append(world, seen("odd", "", conditions("Valid", "False", "there is no step template hush")...)), err: "warning: the plan is invalid, so it starts nothing: there is no step template hush; apart from that, this is the answer for it\n", out: "plan/odd: change is permitted (no strategy is set)\nuntil somebody changes it\n"},
		{name: "a plan that is invalid, for a script that wants no words", line: "check odd -q", world: append(world, seen("odd", "startDeadline: soon"))},
		{name: "a plan of which it is hidden whether its namespace is frozen", line: "check free", world: objects(cmdtest.Namespace("shop"), cmdtest.Plan("free", "")), before: func(o *cmdtest.Cluster) { o.Forbids("get", "namespaces", "") }, code: 3, out: "plan/free: whether change is permitted is not known (namespace: whether it is frozen cannot be read)\nuntil that can be read, or the agent says it\n", err: "warning: read namespace shop: namespaces is forbidden: not for you; whether it is frozen is not known, so nothing is permitted\n"},
		{name: "a plan whose policy is not there", line: "check lost", world: world, code: 3, out: "plan/lost: change is not permitted (policy ghost: not ready: there is no such policy in namespace shop)\nuntil that is mended\n"},
		{name: "a node", line: "check a", world: world, out: "node/a: change is permitted (no strategy is set)\nuntil somebody changes it\n"},
		{name: "no such thing", line: "check ghost", world: world, code: 1, err: "error: there is no plan or policy \"ghost\" in namespace shop; see 'kubectl maint list'; nor is there a node of that name\n"},
		{name: "a time that is none, and a format that is none", line: "check night --at soon -o xml", code: 2, err: "error: -o must be json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is \"xml\"\nerror: --at: \"soon\" is no time: write it like 2026-12-24T18:00:00Z, 2h, 30d, 08:00, \"tomorrow 08:00\", \"sat 02:00\" or \"2026-12-24 18:00\"\n"},
	})
}

func TestNext(t *testing.T) {
	world := objects(cmdtest.Namespace("shop"), cmdtest.Policy("night", nights), cmdtest.Policy("shut", "{strategy: Restrictive}"), cmdtest.Policy("open", "{strategy: Permissive}"), seen("orders", gated), seen("free", ""),
		seen("noon", "triggers: {schedules: [{cron: '0 12 * * *'}]}, policies: [{name: night}]"), seen("skips", daily, annotations.Skip, "next"), seen("paused", daily, annotations.Pause, "2026-11-22T00:00:00Z"), seen("broken", "startDeadline: soon"), seen("lost", daily+", policies: [{name: ghost}]"))
	runRows(t, []row{
		{name: "the slots of a plan", line: "next orders --count 2", world: world, out: "LOCAL                      UTC                        SCHEDULE    NOTE\nSat 2026-11-21 02:00 CET   Sat 2026-11-21 01:00 UTC   0 2 * * *   -\nSun 2026-11-22 02:00 CET   Sun 2026-11-22 01:00 UTC   0 2 * * *   -\n"},
		{name: "for a machine", line: "next orders --count 1 -o json", world: world, out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"utc":"2026-11-21T01:00:00Z","local":"2026-11-21T02:00:00+01:00","schedule":0,"note":""}],"kind":"SlotList"}`)},
		{name: "from an instant, which counts", line: "next orders --count 1 --from 2026-12-24T01:00:00Z -o json", world: world, err: "from Thu 2026-12-24 02:00 CET (2026-12-24T01:00:00Z)\n", out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"utc":"2026-12-24T01:00:00Z","local":"2026-12-24T02:00:00+01:00","schedule":0,"note":""}],"kind":"SlotList"}`)},
		{name: "slots that find the window closed", line: "next noon --count 1 -o json", world: world, out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"utc":"2026-11-21T12:00:00Z","local":"2026-11-21T12:00:00Z","schedule":0,"note":"window closed until 2026-11-21T22:00:00Z, too late: its slot is Missed at 2026-11-21T13:00:00Z (policy night: outside of the windows)"}],"kind":"SlotList"}`)},
		{name: "slots whose policy is not there", line: "next lost --count 1 -o json", world: world, out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"utc":"2026-11-21T01:00:00Z","local":"2026-11-21T02:00:00+01:00","schedule":0,"note":"policy not ready (policy ghost: not ready: there is no such policy in namespace shop)"}],"kind":"SlotList"}`)},
		{name: "the next slot is skipped", line: "next skips --count 2", world: world, out: "LOCAL                      UTC                        SCHEDULE    NOTE\nSat 2026-11-21 02:00 CET   Sat 2026-11-21 01:00 UTC   0 2 * * *   skipped\nSun 2026-11-22 02:00 CET   Sun 2026-11-22 01:00 UTC   0 2 * * *   -\n"},
		{name: "the plan is paused for a while", line: "next paused --count 2", world: world, out: "LOCAL                      UTC                        SCHEDULE    NOTE\nSat 2026-11-21 02:00 CET   Sat 2026-11-21 01:00 UTC   0 2 * * *   paused\nSun 2026-11-22 02:00 CET   Sun 2026-11-22 01:00 UTC   0 2 * * *   -\n"},
		{name: "whose namespace is paused, by whom and why", line: "next orders --count 1 -o json", world: append(world[1:], cmdtest.Namespace("shop", annotations.Pause, "true", annotations.Actor(annotations.Pause), "jane", annotations.Reason(annotations.Pause), "launch")), out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"utc":"2026-11-21T01:00:00Z","local":"2026-11-21T02:00:00+01:00","schedule":0,"note":"namespace shop is paused by jane (unverified): launch"}],"kind":"SlotList"}`)},
		{name: "whose namespace is frozen, by whom and why", line: "next orders --count 1 -o json", world: append(world[1:], cmdtest.Namespace("shop", annotations.ChangeStrategy, "Restrictive", annotations.Actor(annotations.ChangeStrategy), "jane")), out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"utc":"2026-11-21T01:00:00Z","local":"2026-11-21T02:00:00+01:00","schedule":0,"note":"window closed, does not open by itself (namespace: Restrictive by jane (unverified))"}],"kind":"SlotList"}`)},
		{name: "beside an agent that is silent", line: "next orders --count 1", world: world, before: func(o *cmdtest.Cluster) {
			silent := cmdtest.Agent()
			silent.Data["heartbeat"] = "2026-11-20T23:00:00Z"
			o.Stores("configmaps", silent)
		}, out: "LOCAL                      UTC                        SCHEDULE    NOTE\nSat 2026-11-21 02:00 CET   Sat 2026-11-21 01:00 UTC   0 2 * * *   -\n", err: "warning: the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'\n"},
		{name: "a plan without slots", line: "next free", world: world, err: "no slot is to come: the plan has no schedule, or its last one is past\n"},
		{name: "a plan with a fault", line: "next broken", world: world, code: 1, err: "error: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n"},
		{name: "the windows of a policy, the open one first", line: "next night --count 2", world: world, out: "OPENS                      CLOSES                     UTC                                                    NOTE\nFri 2026-11-20 22:00 UTC   Sat 2026-11-21 02:00 UTC   Fri 2026-11-20 22:00 UTC to Sat 2026-11-21 02:00 UTC   -\nSat 2026-11-21 22:00 UTC   Sun 2026-11-22 02:00 UTC   Sat 2026-11-21 22:00 UTC to Sun 2026-11-22 02:00 UTC   -\n"},
		{name: "the windows for a machine", line: "next night --count 1 -o json", world: world, out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"start":"2026-11-20T22:00:00Z","end":"2026-11-21T02:00:00Z","note":""}],"kind":"WindowList"}`)},
		{
			name: "windows that something excluded cuts short, on which side", line: "next audited --count 2", world: append(world[:len(world):len(world)], cmdtest.Policy("audited", strings.Replace(nights, "windows:", "exclude: [{fromDate: '2026-11-22', reason: audit}], windows:", 1))),
			out: "OPENS                      CLOSES                     UTC                                                    NOTE\nFri 2026-11-20 22:00 UTC   Sat 2026-11-21 02:00 UTC   Fri 2026-11-20 22:00 UTC to Sat 2026-11-21 02:00 UTC   -\nSat 2026-11-21 22:00 UTC   Sun 2026-11-22 00:00 UTC   Sat 2026-11-21 22:00 UTC to Sun 2026-11-22 00:00 UTC   after it: policy audited: excluded: audit\n",
		},
		{
			name: "the same for a machine", line: "next audited --from 2026-11-22T12:00:00Z --count 1 -o json", world: append(world[:len(world):len(world)], cmdtest.Policy("audited", strings.Replace(nights, "windows:", "exclude: [{fromDate: '2026-11-22', reason: audit}], windows:", 1))),
			out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"start":"2026-11-23T00:00:00Z","end":"2026-11-23T02:00:00Z","note":"policy audited: excluded: audit"}],"kind":"WindowList"}`), err: "from Sun 2026-11-22 12:00 UTC (2026-11-22T12:00:00Z)\n",
		},
		{
			name: "windows that a freeze took, by whom and why", line: "next icy --count 2", world: append(world[:len(world):len(world)], policyWith("shop", "icy", frozen("2026-11-23T00:00:00Z", "jane", "stocktaking")...)),
			out: "OPENS                      CLOSES                     UTC                                                    NOTE\nMon 2026-11-23 00:00 UTC   Mon 2026-11-23 02:00 UTC   Mon 2026-11-23 00:00 UTC to Mon 2026-11-23 02:00 UTC   before it: policy icy: RestrictiveUntil Mon 2026-11-23 00:00 UTC by jane (unverified): stocktaking\nMon 2026-11-23 22:00 UTC   Tue 2026-11-24 02:00 UTC   Mon 2026-11-23 22:00 UTC to Tue 2026-11-24 02:00 UTC   -\n",
		},
		{name: "the same for a machine", line: "next icy --count 1 -o jsonpath={.items[0].note}", world: append(world[:len(world):len(world)], policyWith("shop", "icy", frozen("2026-11-23T00:00:00Z", "jane", "stocktaking")...)), out: "policy icy: RestrictiveUntil 2026-11-23T00:00:00Z by jane (unverified): stocktaking"},
		{name: "windows that a pause took", line: "next still --count 1 -o jsonpath={.items[0].start}{.items[0].note}", world: append(world[:len(world):len(world)], policyWith("shop", "still", annotations.Pause, "2026-11-23T00:00:00Z", annotations.Actor(annotations.Pause), "jane", annotations.Reason(annotations.Pause), "audit")), out: "2026-11-23T00:00:00Zpaused until 2026-11-23T00:00:00Z by jane (unverified): audit"},
		{
			name: "who opened a policy for a time", line: "next wide --count 2", world: append(world[:len(world):len(world)], policyWith("shop", "wide", annotations.ChangeStrategy, "PermissiveUntil", annotations.PermissiveUntil, "2026-11-21T12:00:00Z", annotations.Actor(annotations.ChangeStrategy), "jane", annotations.Reason(annotations.ChangeStrategy), "CHG-2")),
			out: "OPENS                      CLOSES                     UTC                                                    NOTE\nalways open                Sat 2026-11-21 12:00 UTC   … to Sat 2026-11-21 12:00 UTC                          permitted: policy wide: PermissiveUntil Sat 2026-11-21 12:00 UTC by jane (unverified): CHG-2\nSat 2026-11-21 22:00 UTC   Sun 2026-11-22 02:00 UTC   Sat 2026-11-21 22:00 UTC to Sun 2026-11-22 02:00 UTC   -\n",
		},
		{name: "asked about a time after that, in the window that follows it", line: "next wide --count 1 --from 2026-11-22T01:00:00Z -o jsonpath={.items[0].note}", world: append(world[:len(world):len(world)], policyWith("shop", "wide", annotations.ChangeStrategy, "PermissiveUntil", annotations.PermissiveUntil, "2026-11-22T00:00:00Z")), err: "from Sun 2026-11-22 01:00 UTC (2026-11-22T01:00:00Z)\n", out: "permitted: policy wide: PermissiveUntil 2026-11-22T00:00:00Z"},
		{name: "windows in a pause of the whole cluster", line: "next night --count 3 -o 'jsonpath={range .items[*]}{.start}={.note};{end}'", world: world, before: func(o *cmdtest.Cluster) {
			o.Stores("namespaces", cmdtest.Namespace("maint-system", annotations.Pause, "2026-11-21T23:00:00Z", annotations.Actor(annotations.Pause), "root"))
		}, out: "2026-11-20T22:00:00Z=the whole cluster is paused until 2026-11-21T23:00:00Z by root (unverified);2026-11-21T22:00:00Z=the whole cluster is paused until 2026-11-21T23:00:00Z by root (unverified);2026-11-22T22:00:00Z=;"},
		{name: "from a time on the clocks of the policy, which are not the user's", line: "next night --count 1 --from 'sat 23:00' -o json", world: world, err: "from Sat 2026-11-21 23:00 UTC (2026-11-21T23:00:00Z)\n", out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"start":"2026-11-21T22:00:00Z","end":"2026-11-22T02:00:00Z","note":""}],"kind":"WindowList"}`)},
		{name: "a policy that is always open", line: "next open", world: world, out: "OPENS         CLOSES           UTC   NOTE\nalways open   does not close   -     -\n"},
		{name: "a policy that never is", line: "next shut", world: world, err: "no window is to come: policy shut: Restrictive\n"},
		{name: "never a window, for a machine", line: "next shut -o json", world: world, out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[],"kind":"WindowList"}`)},
		{name: "two names and a format that is none", line: "next -f plan.yaml a b --count 0 -o xml --from soon", code: 2, err: "error: give one NAME, not 2\nerror: --from: \"soon\" is no time: write it like 2026-12-24T18:00:00Z, 2h, 30d, 08:00, \"tomorrow 08:00\", \"sat 02:00\" or \"2026-12-24 18:00\"\nerror: --count must be from 1 to 10000, is 0\nerror: -o must be json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is \"xml\"\n"},
	})
}

func TestNextAndCheckOfFiles(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{"a.yaml": cmdtest.PlanOf("orders", "maint.dev/skip: '2026-11-21T01:00:00Z'", gated) + cmdtest.PolicyOf("night", "", nights), "bad.yaml": cmdtest.Manifest("suspend", "suspnd")})
	for _, c := range []struct {
		name string
		args []string
		want cmdtest.Printed
	}{
		{"slots of the only plan", []string{"next", "-f", "a.yaml", "--count", "2"}, cmdtest.Printed{Out: "LOCAL                      UTC                        SCHEDULE    NOTE\nSat 2026-11-21 02:00 CET   Sat 2026-11-21 01:00 UTC   0 2 * * *   skipped\nSun 2026-11-22 02:00 CET   Sun 2026-11-22 01:00 UTC   0 2 * * *   -\n"}},
		{"windows of a policy by name", []string{"next", "-f", "a.yaml", "policy/night", "--count", "1", "-o", "json"}, cmdtest.Printed{Out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"start":"2026-11-20T22:00:00Z","end":"2026-11-21T02:00:00Z","note":""}],"kind":"WindowList"}`)}},
		{"no file", []string{"next", "-f", "ghost.yaml"}, cmdtest.Printed{Code: 1, Err: "error: the path \"ghost.yaml\" does not exist\n"}},
		{"a name that the files do not hold", []string{"next", "-f", "a.yaml", "ghost"}, cmdtest.Printed{Code: 1, Err: "error: the files hold no plan or policy \"ghost\"\n"}},
		{"a verdict", []string{"check", "-f", "a.yaml", "-q", "--at", "sat 12:00"}, cmdtest.Printed{Code: 3}},
		{"a verdict of files with faults is an error", []string{"check", "-f", "bad.yaml"}, cmdtest.Printed{Code: 1, Err: "error: bad.yaml:14: spec.steps[0].type: unknown step type \"suspnd\"; did you mean \"suspend\"?\n"}},
	} {
		t.Run(c.name, func(t *testing.T) { cmdtest.Offline(t, cmd.Run, "", c.args...).Is(t, c.want) })
	}
}

func TestList(t *testing.T) {
	ops := seen("roll", "")
	ops.Namespace = "ops"
	world := objects(seen("orders", daily+", target: {apiVersion: apps/v1, kind: Deployment, name: orders}", annotations.StatusNextRun, "2026-11-21T01:00:00Z", annotations.StatusLastRun, "2026-11-20T01:00:00Z", annotations.StatusLastResult, "Succeeded"), seen("broken", "startDeadline: soon"), ops)
	runRows(t, []row{
		{name: "the plans of the namespace", line: "list", world: world, out: "NAME     KIND   PHASE     NEXT                       RESULT      AGE\nbroken   Plan   Invalid   <none>                     <none>      2d\norders   Plan   Idle      Sat 2026-11-21 02:00 CET   Succeeded   2d\n"},
		{name: "of all namespaces", line: "list -A --no-headers", world: world, out: "ops    roll     Plan   Idle      <none>                     <none>      2d\nshop   broken   Plan   Invalid   <none>                     <none>      2d\nshop   orders   Plan   Idle      Sat 2026-11-21 02:00 CET   Succeeded   2d\n"},
		{name: "with all columns", line: "list -o wide", world: world, out: "NAME     KIND   PHASE     NEXT                       LAST                       RESULT      AGE   TARGET              MESSAGE\nbroken   Plan   Invalid   <none>                     <none>                     <none>      2d    <none>              line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\norders   Plan   Idle      Sat 2026-11-21 02:00 CET   Fri 2026-11-20 02:00 CET   Succeeded   2d    Deployment/orders   <none>\n"},
		{name: "names", line: "list -o name", world: world, out: "configmap/broken\nconfigmap/orders\n"},
		{name: "by a path", line: "list -o jsonpath={.items[*].metadata.name}", world: world, out: "broken orders"},
		{name: "none", line: "list", err: "No resources found in shop namespace.\n"},
		{name: "policies", line: "list policies", world: objects(policed("night", "{strategy: Permissive}"), cmdtest.Policy("odd", "{strategy: Sometimes}")), out: "NAME    STRATEGY     PERMITTED   UNTIL                      READY    AGE\nnight   Permissive   true        Sun 2026-11-22 01:00 CET   True     <unknown>\nodd     Sometimes    <none>      <none>                     <none>   <unknown>\n"},
		{name: "runs", line: "list runs", world: objects(live()), out: "NAME                 PHASE     STARTED                    TOOK   AGE\nmaint-run-orders-a   Running   Sat 2026-11-21 00:00 CET   1h0m   <unknown>\n"},
		{name: "a run that a person asked for", line: "list runs --no-headers -o wide", world: objects(asked()), out: "maint-run-orders-a   orders   Running   jane (unverified; reason: trying it)   Sat 2026-11-21 00:00 CET   1h0m   <unknown>   <none>\n"},
		{name: "calendars", line: "list calendar", world: objects(cmdtest.Map(annotations.KindCalendar, "holidays", annotations.DataDates, "[{from: soon}]")), out: "NAME       VALID    AGE\nholidays   <none>   <unknown>\n"},
		{name: "templates, none", line: "list templates", err: "No resources found in shop namespace.\n"},
		{name: "who asks for nodes", line: "list requests", world: objects(cmdtest.Node("a", cmdtest.Asked("gpu", "")), cmdtest.Node("b")), out: "NODE   FOR   PHASE     LEFT     AGE\na      gpu   Pending   <none>   <none>\n"},
		{name: "their names", line: "list requests -o name", world: objects(cmdtest.Node("a", cmdtest.Asked("gpu", "")), cmdtest.Node("b")), out: "node/a\n"},
		{name: "nobody asks for nodes", line: "list requests", world: objects(cmdtest.Node("b")), err: "No resources found\n"},
		{name: "nobody asks, for a script", line: "list requests -o jsonpath={.kind}:{.items}", world: objects(cmdtest.Node("b")), out: "NodeRequestList:[]"},
		{name: "the documents, decoded", line: "list -o 'jsonpath={.apiVersion} {.kind}{range .items[*]}\n{.kind} {.metadata.namespace}/{.metadata.name} {.status.phase} {.status.next} {.status.lastResult} {.spec.triggers.schedules[0].cron} {.spec.target.name} {.faults}{end}'", world: world, out: "maint.dev/v1alpha1 DocumentList\nPlan shop/broken Invalid     [\"line 1: spec.startDeadline: \\\"soon\\\" is no duration: write it like 90s, 15m, 1h30m or 30d\"]\nPlan shop/orders Idle 2026-11-21T01:00:00Z Succeeded 0 2 * * * orders "},
		{name: "by columns of one's own", line: "list -A -o custom-columns=NS:.metadata.namespace,NAME:.metadata.name,CRON:.spec.triggers.schedules[*].cron", world: world, out: "NS     NAME     CRON\nops    roll     <none>\nshop   broken   <none>\nshop   orders   0 2 * * *\n"},
		{name: "policies whose gates do not hold", line: "list policies -o wide", world: objects(noted(gates("night", "False", "no right"), annotations.StatusMessage, "change is not permitted")), out: "NAME    STRATEGY      PERMITTED   UNTIL    READY    AGE         MESSAGE\nnight   Restrictive   <none>      <none>   <none>   <unknown>   its gates do not hold: no right; change is not permitted\n"},
		{name: "policies, decoded", line: "list policies -o 'jsonpath={range .items[*]}{.kind} {.metadata.name} {.spec.strategy} {.status.strategy} {.status.permitted} {.status.behavior.current.endTime}\n{end}'", world: objects(policed("night", "{strategy: Permissive}")), out: "Policy night Permissive Permissive true 2026-11-22T00:00:00Z\n"},
		{name: "a calendar's dates", line: "list calendars -o jsonpath={.items[0].spec.dates[0].from}", world: objects(cmdtest.Map(annotations.KindCalendar, "holidays", annotations.DataDates, "[{from: 2026-12-24}]")), out: "2026-12-24"},
		{name: "runs, decoded", line: "list runs -o 'jsonpath={.kind} {.items[0].kind} {.items[0].plan} {.items[0].phase}'", world: objects(live()), out: "RunList RunStatus orders Running"},
		{name: "requests, decoded", line: "list requests -o custom-columns=NODE:.node,FOR:.for,PHASE:.phase --no-headers", world: objects(cmdtest.Node("a", cmdtest.Asked("gpu", ""))), out: "a     gpu   Pending\n"},
		{name: "no document, for a script", line: "list -o json", out: "{\n    \"apiVersion\": \"maint.dev/v1alpha1\",\n    \"items\": [],\n    \"kind\": \"DocumentList\"\n}\n"},
		{name: "what is not listed", line: "list pods", code: 2, err: "error: \"pods\" is not listed: it must be one of plans, policies, calendars, templates, runs, requests\n"},
		{name: "none in the cluster", line: "list -A", err: "No resources found\n"},
		{name: "who may not list all namespaces", line: "list -A", before: func(o *cmdtest.Cluster) { o.Forbids("list", "configmaps", "") }, code: 1, err: "Error from server (Forbidden): list plans: configmaps is forbidden: not for you; -n NAMESPACE asks for one namespace alone\n"},
		{name: "who may not list", line: "list", before: func(o *cmdtest.Cluster) { o.Forbids("list", "configmaps", "") }, code: 1, err: "Error from server (Forbidden): list plans: configmaps is forbidden: not for you; the ClusterRole view in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"},
	})
}

// What people look at fits a screen with names as people give them; the rest is in -o wide.
func TestAListOfUsualNamesFitsAScreen(t *testing.T) {
	told := []string{annotations.StatusNextRun, "2026-11-21T01:00:00Z", annotations.StatusLastRun, "2026-11-20T01:00:00Z", annotations.StatusLastResult, "Succeeded", annotations.StatusWakes, "2026-11-21T05:00:00Z", annotations.StatusPhase, "Hibernated"}
	run := cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-nightly-abcdefghij")
	run.CreationTimestamp.Time = *cmdtest.Before(time.Hour)
	sleeper := cmdtest.Sleeper("staging-sleeps", "{schedule: {timezone: UTC, offHours: [{start: '20:00', end: '06:00'}]}, targets: [{name: a, type: noop}]}", cmdtest.Noting(told...))
	sleeper.CreationTimestamp.Time = *cmdtest.Before(48 * time.Hour)
	sleeper.Annotations[annotations.StatusObserved] = annotations.Observed(sleeper)
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), seen("orders-nightly", daily, told...), sleeper, run)
	for _, what := range []string{"plans", "runs"} {
		got := o.Maint("list", what)
		for line := range strings.Lines(got.Out) {
			if wide := len(strings.TrimRight(line, "\n")); wide > 100 {
				t.Errorf("list %s: %d columns: %s", what, wide, line)
			}
		}
		if !strings.Contains(got.Out, "2026-11-21 0") || got.Err != "" {
			t.Errorf("%+v", got)
		}
	}
}

func TestStatus(t *testing.T) {
	stale := cmdtest.Agent()
	stale.Data["heartbeat"] = "2026-11-20T23:00:00Z"
	away := func(o *cmdtest.Cluster) { o.Stores("configmaps", stale) }
	ops := seen("roll", "")
	ops.Namespace = "ops"
	world := objects(cmdtest.Namespace("shop"), seen("orders", daily), seen("broken", "startDeadline: soon"), seen("reports", "", annotations.StatusPhase, "Running", annotations.StatusMessage, "run x"), ops, live(cmdtest.Record("call", "webhook", run.StepRunning)))
	runRows(t, []row{
		{name: "a namespace: runs on top, then what needs eyes", line: "status", world: world, out: "Needs somebody:\n  broken  is invalid, so it starts nothing: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n    'kubectl maint describe broken'\n\nshop/maint-run-orders-a  Running for 1h0m, 0 of 1 steps done\n  ▶ call  webhook  Running       60s\n\nPLAN      PHASE     NEXT                              LAST   MESSAGE\nreports   Running   -                                 -      run x\nbroken    Invalid   -                                 -      line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\norders    Idle      Sat 2026-11-21 02:00 CET (1h0m)   -      -\n"},
		{name: "all namespaces", line: "status -A", world: world, out: "Needs somebody:\n  shop/broken  is invalid, so it starts nothing: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n    'kubectl maint -n shop describe broken'\n\nshop/maint-run-orders-a  Running for 1h0m, 0 of 1 steps done\n  ▶ call  webhook  Running       60s\n\nNAMESPACE   PLAN      PHASE     NEXT                              LAST   MESSAGE\nshop        reports   Running   -                                 -      run x\nshop        broken    Invalid   -                                 -      line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\nops         roll      Idle      -                                 -      -\nshop        orders    Idle      Sat 2026-11-21 02:00 CET (1h0m)   -      -\n"},
		{name: "plans with labels", line: "status -l maint.dev/kind=plan,team=a -o name", world: append(objects(cmdtest.Plan("mine", "", func(cm *corev1.ConfigMap) { cm.Labels["team"] = "a" })), world...), out: "plan/mine\n"},
		{name: "labels and a name", line: "status -l team=a orders", code: 2, err: "error: -l and names exclude each other: give one or the other\n"},
		{name: "no plans with such labels", line: "status -l team=other", err: "No resources found in shop namespace.\nno plans with the labels team=other in namespace shop\n"},
		{name: "a namespace without plans", line: "status", world: objects(cmdtest.Namespace("shop")), err: "No resources found in shop namespace.\nno plans in namespace shop; 'kubectl maint new' asks for what one needs, 'kubectl maint schedule' writes one\n"},
		{name: "a namespace that is paused", line: "status", world: objects(cmdtest.Namespace("shop", annotations.Pause, "2026-11-22T00:00:00Z"), seen("orders", "")), out: "Needs somebody:\n  namespace shop  is paused until Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z), in 24h0m\n    'kubectl maint resume --all'\n\nPLAN     PHASE   NEXT   LAST   MESSAGE\norders   Idle    -      -      -\n"},
		{name: "a plan", line: "status orders", world: world, out: "Plan:   orders in namespace shop\nPhase:  Idle\nNext:   Sat 2026-11-21 02:00 CET (2026-11-21T01:00:00Z), in 1h0m\n\nRun maint-run-orders-a  Running for 1h0m, 0 of 1 steps done\n  ▶ call  webhook  Running       60s\n"},
		{name: "a run and a plan", line: "status orders-a reports", world: world, out: "Run maint-run-orders-a  Running for 1h0m, 0 of 1 steps done\n  ▶ call  webhook  Running       60s\n\nPlan:   reports in namespace shop\nPhase:  Running: run x\n"},
		{name: "without an agent: said first, and not an error", line: "status orders-a", world: world, before: away, err: "warning: the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'\n", out: "the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'\n\nRun maint-run-orders-a  Running for 1h0m, 0 of 1 steps done\n  ▶ call  webhook  Running       60s\n"},
		{name: "where nobody may look for the agent", line: "status orders-a", world: world, before: func(o *cmdtest.Cluster) { o.Forbids("get", "configmaps", "maint-system") }, out: "could not look whether the agent runs: configmaps is forbidden: not for you\n\nRun maint-run-orders-a  Running for 1h0m, 0 of 1 steps done\n  ▶ call  webhook  Running       60s\n"},
		{name: "no such thing", line: "status ghost", world: objects(cmdtest.Namespace("shop")), code: 1, err: "error: there is no plan or policy or run \"ghost\" in namespace shop; the namespace has none: choose another with -n, or see all with 'kubectl maint list -A'; nor is there a node of that name\n"},
		{name: "who may not list", line: "status", before: func(o *cmdtest.Cluster) { o.Forbids("list", "configmaps", "") }, code: 1, err: "Error from server (Forbidden): list plans: configmaps is forbidden: not for you; the ClusterRole view in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"},
		{name: "who may not list, and would watch", line: "status -w", before: func(o *cmdtest.Cluster) { o.Forbids("list", "configmaps", "") }, code: 1, err: "Error from server (Forbidden): watch ConfigMaps: configmaps is forbidden: not for you; the ClusterRole view in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"},
	})
}

func TestWhy(t *testing.T) {
	held := cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepPending))
	held.Journal.HeldSince, held.Journal.Message = cmdtest.Before(time.Minute), "waits for its window"
	kept := cmdtest.Ledger(ledger.Ledger{
		Last:   &ledger.LastRun{Name: "maint-run-orders-z", Phase: run.Succeeded, EndedAt: *cmdtest.Before(time.Hour)},
		Recent: []ledger.Entry{{Result: run.Ran, Run: "maint-run-orders-z", At: *cmdtest.Before(time.Hour), Outcome: &ledger.Outcome{Phase: run.Succeeded, Message: "what step tag found was not put back: it changed"}}},
	})
	failed := cmdtest.Ledger(ledger.Ledger{
		Last:   &ledger.LastRun{Name: "maint-run-orders-z", Phase: run.Failed, EndedAt: *cmdtest.Before(time.Hour)},
		Recent: []ledger.Entry{{Result: run.Ran, Run: "maint-run-orders-z", At: *cmdtest.Before(time.Hour), Outcome: &ledger.Outcome{Phase: run.Failed, Step: "dump", Message: "no disk"}}},
	})
	left := cmdtest.Ledger(ledger.Ledger{Left: []ledger.Leftover{{Run: "maint-run-orders-z", Step: "down", Message: "replicas: forbidden"}}})
	stale := cmdtest.Agent()
	stale.Data["heartbeat"] = "2026-11-20T23:00:00Z"
	pausedPolicy, brokenPolicy := cmdtest.Policy("shut", "{strategy: Permissive}"), cmdtest.Policy("odd", "{strategy: Sometimes}")
	cmdtest.Noting(annotations.Pause, "true")(brokenPolicy)
	cmdtest.Noting(annotations.Pause, "true")(pausedPolicy)
	of := func(cm *corev1.ConfigMap, more ...runtime.Object) []runtime.Object {
		return append(objects(cmdtest.Namespace("shop"), cm), more...)
	}
	runRows(t, []row{
		{name: "nothing is in the way", line: "why orders", world: of(seen("orders", daily)), out: "nothing is in the way\nnext slot: Sat 2026-11-21 02:00 CET (2026-11-21T01:00:00Z), in 1h0m\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "a manual plan", line: "why orders", world: of(seen("orders", "")), out: "nothing is in the way\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "its last run succeeded, and did not put all back", line: "why orders", world: of(seen("orders", ""), kept), out: "nothing is in the way\nits last run maint-run-orders-z succeeded: what step tag found was not put back: it changed\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "labels that ask", line: "why orders", world: of(seen("orders", "target: {apiVersion: apps/v1, kind: Deployment, name: web}, triggers: {labels: [a.org/upgrade]}"), cmdtest.Deployment("web")), out: "nothing is in the way\nput a label on Deployment/web to ask for a run: a.org/upgrade\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "no agent", line: "why orders", world: of(seen("orders", "")), before: func(o *cmdtest.Cluster) { o.Stores("configmaps", stale) }, err: "warning: the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'\n", out: "1. no agent is at work: the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'\n   nothing starts until it runs; requests by pause, skip, freeze, hibernate and wake are kept; trigger, approve, reject, abort of a run, retry, rollback and drain refuse\n"},
		{name: "a fault", line: "why orders", world: of(seen("orders", "startDeadline: soon")), code: 3, out: "1. the plan is invalid: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n   fix it; 'kubectl maint lint -f FILE' tells all faults\nnext slot: nothing runs while the plan is invalid\n"},
		{name: "a fault that the agent alone sees", line: "why orders", world: of(seen("orders", "", conditions("Valid", "False", "there is no step template hush")...)), code: 3, out: "1. the plan is invalid: there is no step template hush\n   fix it; 'kubectl maint describe orders' tells all\n"},
		{name: "what is not ready", line: "why orders", world: of(seen("orders", "", conditions("Ready", "False", "ServiceAccount maint-runner is not there")...)), code: 3, out: "1. the plan is not ready: ServiceAccount maint-runner is not there\n   it goes on by itself when that is there; 'kubectl maint doctor orders' checks all that it needs\n"},
		{name: "a run that somebody changed", line: "why orders", world: of(seen("orders", "", conditions("RunStuck", "True", "run r is left alone: it was changed; sign it with 'kubectl maint -n shop adopt run/r'")...)), code: 3, out: "1. run r is left alone: it was changed; sign it with 'kubectl maint -n shop adopt run/r'\n   if you sign it, nothing is lost; if you remove its finalizer by hand, it puts nothing back\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "a run that cannot be written", line: "why orders", world: of(seen("orders", "", conditions("RunStuck", "True", "the run is immutable")...)), code: 3, out: "1. the run is immutable\n   fix or remove what refuses it; an immutable ConfigMap can only be deleted, and its finalizer removed by hand\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "a run that waits for another one", line: "why orders", world: of(seen("orders", "", conditions("RunStuck", "True", "run r cannot go on: it waits for run q, which holds the same target")...)), code: 3, out: "1. run r cannot go on: it waits for run q, which holds the same target\n   it goes on by itself when that run has ended\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "a pause, above it and its own, and a skip", line: "why orders", world: objects(cmdtest.Namespace("shop", annotations.Pause, "true"), seen("orders", daily, annotations.Pause, "true", annotations.Actor(annotations.Pause), "joe", annotations.Skip, "true", annotations.Actor(annotations.Skip), "ann", annotations.Reason(annotations.Skip), "month end")), code: 3, out: "1. the plan is paused until resumed, by joe (unverified)\n   'kubectl maint resume orders'\n2. namespace shop is paused until resumed\n   'kubectl maint resume --all'\n3. slots are skipped: all slots, until 'unskip', by ann (unverified): month end\n   'kubectl maint unskip orders'\nnext slot: none, since all slots are paused or skipped\n"},
		{name: "a window that opens by itself", line: "why noon", world: of(seen("noon", "policies: [{name: night}]"), cmdtest.Policy("night", nights)), out: "nothing is in the way\nby hand: 'kubectl maint trigger noon'\n"},
		{name: "a slot outside of its window", line: "why noon", world: of(seen("noon", "triggers: {schedules: [{cron: '0 12 * * *'}]}, policies: [{name: night}]"), cmdtest.Policy("night", nights)), out: "nothing is in the way\nnext slot: Sat 2026-11-21 12:00 UTC (2026-11-21T12:00:00Z), in 12h0m, outside of its window, which opens at Sat 2026-11-21 22:00 UTC (2026-11-21T22:00:00Z), too late: its slot is Missed at Sat 2026-11-21 13:00 UTC (2026-11-21T13:00:00Z) (policy night: outside of the windows)\nby hand: 'kubectl maint trigger noon'\n"},
		{name: "a slot of a plan that is shut for good", line: "why orders", world: of(seen("orders", daily+", policies: [{name: shut}]"), cmdtest.Policy("shut", "{strategy: Restrictive}")), code: 3, out: "1. change is not permitted: policy shut: Restrictive\n   it stays so until somebody changes it; or 'kubectl maint trigger orders --outside-window --reason …'\nnext slot: Sat 2026-11-21 02:00 CET (2026-11-21T01:00:00Z), in 1h0m, outside of its window, which does not open by itself (policy shut: Restrictive)\n"},
		{name: "a freeze of its own that ends", line: "why orders", world: of(seen("orders", "", annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, "2026-11-22T00:00:00Z")), code: 3, out: "1. change is not permitted: RestrictiveUntil Sun 2026-11-22 01:00 CET\n   permitted from Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z), in 24h0m; or 'kubectl maint freeze orders --end'; or 'kubectl maint trigger orders --outside-window --reason …'\n"},
		{name: "its namespace is frozen, which binds every run", line: "why orders", world: objects(cmdtest.Namespace("shop", annotations.ChangeStrategy, "Restrictive"), seen("orders", "")), code: 3, out: "1. change is not permitted: namespace: Restrictive\n   it stays so until somebody changes it\n"},
		{name: "a trigger waits for a run", line: "why orders", world: of(seen("orders", "", annotations.Trigger, "new"), cmdtest.Ledger(ledger.Ledger{}), asked()), code: 3, out: "run maint-run-orders-a is at work: Running for 1h0m, 0 of 0 steps done\n1. the trigger waits for run maint-run-orders-a\n   it begins when that run has ended; 'kubectl maint describe maint-run-orders-a' shows how far it is\n"},
		{name: "its namespace is frozen for a while", line: "why orders", world: objects(cmdtest.Namespace("shop", annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, "2026-11-22T00:00:00Z"), seen("orders", "")), code: 3, out: "1. change is not permitted: namespace: RestrictiveUntil Sun 2026-11-22 01:00 CET\n   permitted from Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z), in 24h0m; or 'kubectl maint freeze namespace/shop --end'\n"},
		{name: "a freeze of its own, of a plan whose runs need a parameter", line: "why orders", world: of(seen("orders", "parameters: [{name: size}], policies: [{name: shut}]"), cmdtest.Policy("shut", "{strategy: Restrictive}")), code: 3, out: "1. change is not permitted: policy shut: Restrictive\n   it stays so until somebody changes it; or 'kubectl maint trigger orders --param size=… --outside-window --reason …'\n"},
		{name: "its policy is paused", line: "why orders", world: of(seen("orders", "policies: [{name: night}]"), policyWith("shop", "night", annotations.Pause, "true")), code: 3, out: "1. change is not permitted: policy night: paused\n   it stays so until somebody changes it; or 'kubectl maint resume policy/night'; or 'kubectl maint trigger orders --outside-window --reason …'\n"},
		{name: "a run that waits for its policy, which is paused", line: "why orders", world: of(seen("orders", ""), pending(run.WaitWindow, "waits for its window, which does not open by itself (policy night: paused)")), code: 3, out: "1. run maint-run-orders-a waits for its window, which does not open by itself (policy night: paused)\n   it starts when change is permitted; after Sat 2026-11-21 01:50 CET (2026-11-21T00:50:00Z) its slot is Missed\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "a closed window", line: "why orders", world: of(seen("orders", "policies: [{name: shut}]"), cmdtest.Policy("shut", "{strategy: Restrictive}")), code: 3, out: "1. change is not permitted: policy shut: Restrictive\n   it stays so until somebody changes it; or 'kubectl maint trigger orders --outside-window --reason …'\n"},
		{name: "a policy that is not there", line: "why orders", world: of(seen("orders", "policies: [{name: ghost}]")), code: 3, out: "1. change is not permitted: policy ghost: not ready: there is no such policy in namespace shop\n   fix or create the policy; or 'kubectl maint trigger orders --outside-window --reason …'\n"},
		{name: "what an earlier run left", line: "why orders", world: of(seen("orders", ""), left), code: 3, out: "1. not put back by run maint-run-orders-z, step down: replicas: forbidden\n   look at it, and then acknowledge it: 'kubectl maint resume maint-run-orders-z'\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "a run at work", line: "why orders", world: of(seen("orders", ""), live(cmdtest.Record("call", "webhook", run.StepRunning))), out: "run maint-run-orders-a is at work: Running for 1h0m, 0 of 1 steps done\nthe next run begins when it has ended: slots that fall due before are Skipped (busy), and triggers wait\n"},
		{name: "a run at work, beside which others may be", line: "why orders", world: of(seen("orders", "concurrencyPolicy: Allow"), live(cmdtest.Record("call", "webhook", run.StepRunning))), out: "run maint-run-orders-a is at work: Running for 1h0m, 0 of 1 steps done\nnothing is in the way\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "a run at work, behind which others queue", line: "why orders", world: of(seen("orders", "concurrencyPolicy: Queue"), live(cmdtest.Record("call", "webhook", run.StepRunning))), out: "run maint-run-orders-a is at work: Running for 1h0m, 0 of 1 steps done\nthe next run begins when it has ended: slots that fall due before wait, and so do triggers\n"},
		{name: "a trigger that nobody takes up, since no agent runs", line: "why orders", world: of(seen("orders", "", annotations.Trigger, "new", annotations.Actor(annotations.Trigger), "joe"), cmdtest.Ledger(ledger.Ledger{})), before: func(o *cmdtest.Cluster) { o.Stores("configmaps", stale) }, err: "warning: the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'\n", out: "1. no agent is at work: the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'\n   nothing starts until it runs; requests by pause, skip, freeze, hibernate and wake are kept; trigger, approve, reject, abort of a run, retry, rollback and drain refuse\nwhat waits: a trigger that the agent has not handled yet, by joe (unverified); 'kubectl maint abort " + annotations.RunName("orders", "u-orders", run.Request{Kind: run.ByToken, Token: "new"}) + "' takes it back\n"},
		{name: "a run whose plan was deleted", line: "why orders-a", world: objects(cmdtest.Namespace("shop"), live(cmdtest.Record("call", "webhook", run.StepRunning))), code: 3, err: "error: the plan orders of run maint-run-orders-a was deleted: the agent ends the run with its restore and finally; see 'kubectl maint status maint-run-orders-a'\n"},
		{name: "one that has ended", line: "why orders-a", world: objects(cmdtest.Namespace("shop"), ended("maint-run-orders-a", run.Failed, time.Hour)), code: 1, err: "error: run maint-run-orders-a has ended, and its plan orders was deleted: see 'kubectl maint describe maint-run-orders-a'\n"},
		{name: "a run that waits for its window", line: "why orders", world: of(seen("orders", ""), pending(run.WaitWindow, "waits for its window")), code: 3, out: "1. run maint-run-orders-a waits for its window\n   it starts by itself then; after Sat 2026-11-21 01:50 CET (2026-11-21T00:50:00Z) its slot is Missed\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "a run that asks", line: "why orders", world: of(seen("orders", ""), cmdtest.RunObject(cmdtest.PendingRun(), "maint-run-orders-a")), code: 3, out: "1. run maint-run-orders-a will wait for approval\n   'kubectl maint approve maint-run-orders-a' or 'kubectl maint reject maint-run-orders-a'\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "a run that is held", line: "why orders", world: of(seen("orders", ""), cmdtest.RunObject(held, "maint-run-orders-a")), code: 3, out: "1. run maint-run-orders-a is held between two steps: waits for its window\n   it goes on by itself then; 'kubectl maint abort maint-run-orders-a' ends it\n"},
		{name: "a run that is suspended", line: "why orders-a", world: of(seen("orders", ""), live(cmdtest.Record("hold", "suspend", run.StepRunning))), code: 3, out: "run maint-run-orders-a is at work: Running for 1h0m, 0 of 1 steps done\n1. run maint-run-orders-a is suspended at step hold\n   'kubectl maint resume maint-run-orders-a'\n"},
		{name: "its last run failed", line: "why orders", world: of(seen("orders", ""), failed, ended("maint-run-orders-z", run.Failed, time.Hour)), out: "its last run maint-run-orders-z failed Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z), 1h0m ago, in step dump: no disk\n   see 'kubectl maint describe maint-run-orders-z'; 'kubectl maint retry maint-run-orders-z' runs it once more\nnothing keeps the next run from starting\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "its last run failed, for a script", line: "why orders -o jsonpath={.standing[0]}", world: of(seen("orders", ""), failed, ended("maint-run-orders-z", run.Failed, time.Hour)), out: "its last run maint-run-orders-z failed Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z), in step dump: no disk"},
		{name: "its last run failed, and its slots are skipped", line: "why orders", world: of(seen("orders", "", annotations.Skip, "true"), failed, ended("maint-run-orders-z", run.Failed, time.Hour)), code: 3, out: "its last run maint-run-orders-z failed Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z), 1h0m ago, in step dump: no disk\n   see 'kubectl maint describe maint-run-orders-z'; 'kubectl maint retry maint-run-orders-z' runs it once more\n1. slots are skipped: all slots, until 'unskip'\n   'kubectl maint unskip orders'\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "its last run failed, and nothing may begin", line: "why orders", world: of(seen("orders", "", annotations.Pause, "true"), failed, ended("maint-run-orders-z", run.Failed, time.Hour)), code: 3, out: "its last run maint-run-orders-z failed Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z), 1h0m ago, in step dump: no disk\n   see 'kubectl maint describe maint-run-orders-z'\n1. the plan is paused until resumed\n   'kubectl maint resume orders'\n"},
		{name: "a skip that is not understood", line: "why orders", world: of(seen("orders", "", annotations.Skip, "next tuesday")), code: 3, out: "1. annotation maint.dev/skip: \"next tuesday\" is not understood: write true, next, until:<instant> or RFC 3339 slots; all slots are skipped until it is mended\n   write it anew, or take it away\n2. slots are skipped: all slots, until 'unskip'\n   'kubectl maint unskip orders'\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "a pause that is not understood", line: "why orders", world: of(seen("orders", "", annotations.Pause, "garbage")), code: 3, out: "1. annotation maint.dev/pause: \"garbage\" is neither true nor an RFC 3339 instant like 2026-12-01T06:00:00Z; it pauses until it is removed\n   write it anew, or take it away\n2. the plan is paused until resumed\n   'kubectl maint resume orders'\n"},
		{name: "a label that a tool applied again, of a plan whose runs need a parameter", line: "why orders", world: of(seen("orders", "parameters: [{name: size}]", conditions("TriggerLabelReturns", "True", "the label a.org/upgrade came back")...)), code: 3, out: "1. the label a.org/upgrade came back\n   it stays so until somebody changes it; 'kubectl maint trigger orders --param size=…' asks without the label\nby hand: 'kubectl maint trigger orders --param size=…'\n"},
		{name: "a label that a tool applied again", line: "why orders", world: of(seen("orders", "target: {apiVersion: apps/v1, kind: Deployment, name: web}, triggers: {labels: [a.org/upgrade, a.org/dump]}", conditions("TriggerLabelReturns", "True", "the label a.org/upgrade came back with the same value from the tool that applies it; that is no request: take it out of its source, or change its value")...), cmdtest.Deployment("web")), code: 3, out: "1. the label a.org/upgrade came back with the same value from the tool that applies it; that is no request: take it out of its source, or change its value\n   it stays so until somebody changes it; 'kubectl maint trigger orders' asks without the label\nput a label on Deployment/web to ask for a run: a.org/dump\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "a run that has ended stands for its plan", line: "why orders-a", world: of(seen("orders", ""), ended("maint-run-orders-a", run.Failed, time.Hour)), out: "run maint-run-orders-a of plan orders: Failed after 5m0s\nnothing keeps the next run from starting\nby hand: 'kubectl maint trigger orders'\n"},
		{name: "a run that has failed, after which another succeeded, for a script", line: "why orders-a -o jsonpath={.standing[0]}", world: of(seen("orders", ""), ended("maint-run-orders-a", run.Failed, time.Hour), kept), out: "run maint-run-orders-a of plan orders: Failed after 5m0s"},
		{name: "a run that has failed, for a script, at a terminal", line: "why orders-a --color always -o jsonpath={.standing}", world: of(seen("orders", ""), ended("maint-run-orders-a", run.Failed, time.Hour)), out: "[\"run maint-run-orders-a of plan orders: Failed after 5m0s\"]"},
		{name: "a pause, and a policy that is broken", line: "why orders", world: objects(cmdtest.Namespace("shop"), cmdtest.Policy("odd", "{strategy: Sometimes}"), seen("orders", "policies: [{name: odd}]", annotations.Pause, "true")), code: 3, out: "1. the plan is paused until resumed\n   'kubectl maint resume orders'\n2. change is not permitted: policy odd: not ready: line 1: spec.strategy: \"Sometimes\" is no strategy of a policy; write Permissive, Restrictive or MaintenanceSchedule\n   fix or create the policy\n"},
		{name: "a policy that is paused and broken", line: "why odd", world: objects(brokenPolicy), code: 3, out: "policy/odd: change is not permitted (not ready: line 1: spec.strategy: \"Sometimes\" is no strategy of a policy; write Permissive, Restrictive or MaintenanceSchedule)\nuntil that is mended\nit is paused as well: fix the policy, then end the pause with 'kubectl maint resume policy/odd'\n"},
		{name: "a policy that is paused", line: "why shut", world: objects(pausedPolicy), code: 3, out: "policy/shut: change is not permitted (paused)\nuntil somebody changes it\nto end the pause: 'kubectl maint resume policy/shut'\n"},
		{name: "a policy", line: "why shut", world: objects(cmdtest.Policy("shut", "{strategy: Restrictive}")), code: 3, out: "policy/shut: change is not permitted (Restrictive)\nuntil somebody changes it\nto permit it for a while: 'kubectl maint allow policy/shut --for 2h --reason …'\n"},
		{name: "a policy whose gates do not hold", line: "why shut", world: objects(gates("shut", "False", "the ServiceAccount maint-runner may not list deployments.apps")), code: 3, out: "policy/shut: change is not permitted (Restrictive)\nuntil somebody changes it\nits gates do not hold: the ServiceAccount maint-runner may not list deployments.apps\nto permit it for a while: 'kubectl maint allow policy/shut --for 2h --reason …'\n"},
		{name: "a policy whose gates hold", line: "why shut", world: objects(gates("shut", "True", "2 objects: 1 closed, 1 open")), code: 3, out: "policy/shut: change is not permitted (Restrictive)\nuntil somebody changes it\nits gates hold: 2 objects: 1 closed, 1 open\nto permit it for a while: 'kubectl maint allow policy/shut --for 2h --reason …'\n"},
		{name: "its gates, for scripts", line: "why shut -o 'jsonpath={.standing}'", world: objects(gates("shut", "False", "no")), code: 3, out: "[\"its gates do not hold: no\"]"},
		{name: "no agent, and whether its namespace is frozen is hidden", line: "why orders", world: of(seen("orders", "")), before: func(o *cmdtest.Cluster) { o.Stores("configmaps", stale); o.Forbids("get", "namespaces", "") }, code: 3, out: "1. no agent is at work: the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'\n   nothing starts until it runs; requests by pause, skip, freeze, hibernate and wake are kept; trigger, approve, reject, abort of a run, retry, rollback and drain refuse\n2. whether change is permitted is not known: namespace: whether it is frozen cannot be read\n   ask for the right to read that; without it, this command uses what a running agent has published\n", err: "warning: the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'\nwarning: read namespace shop: namespaces is forbidden: not for you; whether it is frozen is not known, so nothing is permitted\n"},
		{name: "the same of a HibernatePlan", line: "why office", world: objects(cmdtest.Namespace("shop"), cmdtest.Sleeper("office", "schedule: {offHours: [{start: '20:00', end: '06:00'}]}")), before: func(o *cmdtest.Cluster) { o.Stores("configmaps", stale); o.Forbids("get", "namespaces", "") }, code: 3, out: "\nit is to be asleep: off-hours\n1. no agent is at work: the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'\n   nothing starts until it runs; requests by pause, skip, freeze, hibernate and wake are kept; trigger, approve, reject, abort of a run, retry, rollback and drain refuse\n2. no sleep may begin: namespace: whether it is frozen cannot be read\n   ask for the right to read that; without it, this command uses what a running agent has published\nby hand: 'kubectl maint wake office --for 2h'\n", err: "warning: the agent in namespace maint-system was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'\nwarning: read namespace shop: namespaces is forbidden: not for you; whether it is frozen is not known, so nothing is permitted\n"},
		{name: "a slip of the pen in a run's name", line: "why orders-abcdefghjk", world: objects(cmdtest.Namespace("shop"), seen("orders", ""), cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-abcdefghij")), code: 1, err: "error: there is no plan or policy or run \"orders-abcdefghjk\" in namespace shop; did you mean \"orders-abcdefghij\"?\n"},
		{name: "a slip of the pen in a HibernatePlan's name", line: "why ofice", world: objects(cmdtest.Namespace("shop"), cmdtest.Sleeper("office", "")), code: 1, err: "error: there is no plan or policy or run \"ofice\" in namespace shop; did you mean \"office\"?\n"},
		{name: "no such thing", line: "why ghost", world: objects(cmdtest.Namespace("shop")), code: 1, err: "error: there is no plan or policy or run \"ghost\" in namespace shop; the namespace has none: choose another with -n, or see all with 'kubectl maint list -A'; nor is there a node of that name\n"},
	})
}

func TestDescribe(t *testing.T) {
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}, InvolvedObject: corev1.ObjectReference{UID: "u-orders"}, Type: "Normal", Reason: "RunStarted", Message: "run x\nbegan", LastTimestamp: metav1.Time{Time: *cmdtest.Before(time.Minute)}}
	l := cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{
		{Result: run.Ran, Reason: "CHG-1", Run: "maint-run-orders-z", DryRun: true, At: *cmdtest.Before(time.Hour)},
		{Result: run.Ran, Reason: "CHG-2", Run: "maint-run-orders-y", At: *cmdtest.Before(time.Hour), Outcome: &ledger.Outcome{Phase: run.Failed, Step: "dump", Message: "no\ndisk", Duration: document.Duration{Duration: 3 * time.Second}}},
		{Result: run.Ran, Reason: "CHG-3", Run: "maint-run-orders-x", At: *cmdtest.Before(time.Hour), Outcome: &ledger.Outcome{Phase: run.Succeeded, Message: "while it ran jane changed it"}},
	}})
	past := cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepFailed))
	past.Journal.Phase, past.Journal.FinishedAt = run.Failed, cmdtest.Before(time.Minute)
	ended := cmdtest.RunObject(past, "maint-run-orders-a")
	const isNode = "error: node/worker-1: this command takes no node; 'kubectl maint status node/worker-1' shows it, and 'kubectl maint why node/worker-1' why nothing happens to it\n"
	runRows(t, []row{
		{name: "a plan", line: "describe orders", world: objects(cmdtest.Namespace("shop"), seen("orders", ""), l, event), out: "Plan:   orders in namespace shop\nPhase:  Idle\n\nHistory (all of it: 'kubectl maint history orders'):\n  Sat 2026-11-21 00:00 CET  Ran (dry run)  CHG-1  maint-run-orders-z\n  Sat 2026-11-21 00:00 CET  Ran  CHG-2  maint-run-orders-y  Failed after 3s, step dump: no; disk\n  Sat 2026-11-21 00:00 CET  Ran  CHG-3  maint-run-orders-x  Succeeded: while it ran jane changed it\n\nEvents:\n  60s ago  Normal  RunStarted: run x; began\n\nDocument:\n  {apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {steps: [{name: hold, type: suspend}], }}\n"},
		{name: "a plan with a fault, and a run", line: "describe orders orders-a", world: objects(cmdtest.Namespace("shop"), seen("orders", "startDeadline: soon"), live(cmdtest.Record("call", "webhook", run.StepRunning))), out: "Plan:   orders in namespace shop\nPhase:  Invalid: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\nNext:   nothing runs while the plan is invalid\n\nRun maint-run-orders-a  Running for 1h0m, 0 of 1 steps done\n  ▶ call  webhook  Running       60s\n\nFaults:\n  line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n\nDocument:\n  {apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {steps: [{name: hold, type: suspend}], startDeadline: soon}}\n\nRun:        maint-run-orders-a in namespace shop\nPlan:       orders\nPhase:      Running for 1h0m, 0 of 1 steps done\nAsked for:  Mon 0001-01-01 00:53:28 LMT (0001-01-01T00:00:00Z)\nRuns as:    ServiceAccount maint-runner\nStarted:    Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z)\n\nSteps:\n  ▶ call  webhook  Running       60s\n"},
		{name: "a plan and its newest run, which ended", line: "describe orders", world: objects(cmdtest.Namespace("shop"), seen("orders", ""), ended), out: "Plan:   orders in namespace shop\nPhase:  Idle\n\nDocument:\n  {apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {steps: [{name: hold, type: suspend}], }}\n\nRun:        maint-run-orders-a in namespace shop\nPlan:       orders\nPhase:      Failed after 59m0s\nAsked for:  Mon 0001-01-01 00:53:28 LMT (0001-01-01T00:00:00Z)\nRuns as:    ServiceAccount maint-runner\nStarted:    Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z)\nEnded:      Sat 2026-11-21 00:59 CET (2026-11-20T23:59:00Z)\n\nSteps:\n  ✗ call  webhook  Failed         5s\n"},
		{name: "a node by its name alone", line: "describe worker-1", world: objects(cmdtest.Namespace("shop"), cmdtest.Node("worker-1")), code: 2, err: isNode},
		{name: "a node by its name alone, for scripts", line: "describe worker-1 -o json", world: objects(cmdtest.Namespace("shop"), cmdtest.Node("worker-1")), code: 2, err: isNode},
		{name: "a node that may not be read", line: "describe worker-1", world: objects(cmdtest.Namespace("shop"), cmdtest.Node("worker-1")), before: func(o *cmdtest.Cluster) { o.Forbids("get", "nodes", "") }, code: 1, err: "error: there is no plan or policy or run \"worker-1\" in namespace shop; the namespace has none: choose another with -n, or see all with 'kubectl maint list -A'\n"},
		{name: "no such thing", line: "describe ghost", world: objects(cmdtest.Namespace("shop")), code: 1, err: "error: there is no plan or policy or run \"ghost\" in namespace shop; the namespace has none: choose another with -n, or see all with 'kubectl maint list -A'\n"},
	})
}

func TestLogs(t *testing.T) {
	printed := cmdtest.Record("call", "exec", run.StepSucceeded, func(rec *run.Record) { rec.Outputs = map[string]any{"stdout": "hello\n"} })
	counted := cmdtest.Record("count", "function", run.StepSucceeded, cmdtest.Message("3 objects"), func(rec *run.Record) { rec.Outputs = map[string]any{"objects": 3} })
	runRows(t, []row{
		{name: "what its steps printed", line: "logs orders-a", world: objects(live(printed, counted)), out: "==> call (exec, Succeeded)\nhello\n\n==> count (function, Succeeded)\n3 objects\nobjects: 3\n"},
		{name: "of one step", line: "logs orders-a --step count", world: objects(live(printed, counted)), out: "==> count (function, Succeeded)\n3 objects\nobjects: 3\n"},
		{name: "of a step that there is not", line: "logs orders-a --step ghost", world: objects(live(printed)), code: 1, err: "error: run maint-run-orders-a has no step \"ghost\"; it has call\n"},
		{name: "of a run that has not begun", line: "logs orders-a", world: objects(pending(run.WaitWindow, "waits for its window")), err: "no step has begun: the run is Pending, waits for its window\n"},
		{name: "of a run that has ended, followed: its exit code", line: "logs orders-a -f", world: objects(ended("maint-run-orders-a", run.Failed, time.Hour, printed)), code: 4, out: "==> call (exec, Succeeded)\nhello\n", err: "error: run maint-run-orders-a ended Failed\n"},
		{name: "of no run", line: "logs orders-a", world: objects(cmdtest.Namespace("shop")), code: 1, err: "error: there is no run or plan \"orders-a\" in namespace shop; the namespace has none: choose another with -n, or see all with 'kubectl maint list -A'\n"},
	})
}

// What is followed ends with the run, or with whoever looks.
func TestLogsThatAreFollowed(t *testing.T) {
	hello := func(phase run.StepPhase, text string) run.Record {
		return cmdtest.Record("call", "exec", phase, func(rec *run.Record) { rec.Outputs = map[string]any{"stdout": text} })
	}
	first := cmdtest.Record("first", "exec", run.StepSucceeded, cmdtest.Message("begun"))
	for _, c := range []struct {
		name string
		then func(o *cmdtest.Cluster) // when the first step was said
		want cmdtest.Printed
	}{
		{"until it succeeds", func(o *cmdtest.Cluster) {
			o.Stores("configmaps", ended("maint-run-orders-a", run.Succeeded, time.Hour, first, hello(run.StepSucceeded, "hello")))
		}, cmdtest.Printed{Out: "==> first (exec, Succeeded)\nbegun\n\n==> call (exec, Succeeded)\nhello\n"}},
		{"until it is taken away", func(o *cmdtest.Cluster) { o.Deletes("configmaps", "maint-run-orders-a") }, cmdtest.Printed{Code: 1, Out: "==> first (exec, Succeeded)\nbegun\n", Err: "error: run maint-run-orders-a is no longer kept\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := cmdtest.NewCluster(t, cmd.Run, live(first, hello(run.StepRunning, "hel")))
				o.Told(map[string]func(){"==> first": cmdtest.Later(func() { c.then(o) })})
				o.Maint("logs", "orders-a", "-f").Is(t, c.want)
			})
		})
	}
}
