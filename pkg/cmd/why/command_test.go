package why_test

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/why"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// A requestor that may read its node, or nodes, and nothing of the agent's namespace is told what
// the agent says; and that a right is missing once, where it changes the answer.
func TestWhyOfANodeForWhomeverMayReadLittle(t *testing.T) {
	const closed = `{"current":{"state":"ChangesPaused","reason":"policy night: Restrictive"}}`
	shut := cmdtest.Node("shut", append(why.Held("gpu", nodes.Pending, "policy night: Restrictive"), cmdtest.Noted(annotations.ChangePolicy, "maint-system/night"), cmdtest.Noted(annotations.StatusBehavior, closed))...)
	verdict := "node/shut: change is not permitted (policy night: Restrictive, says the agent)\nuntil somebody changes it\n"
	allow := "'kubectl maint allow node/shut --for 2h --reason …'"
	little := func() *cmdtest.Cluster {
		o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), shut, cmdtest.Node("full", why.Held("os", nodes.Pending, "waits its turn")...), cmdtest.Node("mine", why.Held("gpu", nodes.Ready, "")...))
		o.Forbids("list", "configmaps", "maint-system")
		return o
	}
	word := "warning: read the policies of namespace maint-system: configmaps is forbidden: not for you; the answer that the agent published is used\n"
	o := little()
	o.Forbids("get", "configmaps", "maint-system") // also the heartbeat: nobody knows whether the agent runs
	got := o.Maint("why", "shut")
	if got.Code != 3 || strings.Contains(got.Err, "maxUnavailable") {
		t.Errorf("the limits decide nothing of it: %+v", got)
	}
	if got := o.Maint("why", "full"); got.Code != 3 || strings.Count(got.Err, "warning: the limits maxParallelOperations, maxUnavailable and zoneLimit are not known") != 1 {
		t.Errorf("the limits decide: %+v", got)
	}
	o = little()
	o.Forbids("list", "nodes", "")
	o.Maint("why", "shut").Is(t, cmdtest.Printed{
		Code: 3, Err: word + "warning: list nodes: nodes is forbidden: not for you; only what the agent wrote about the requests is known\n",
		Out: verdict + "1. gpu: Pending for 10m0s: policy night: Restrictive\n   it goes on by itself then; 'kubectl maint release shut --requestor gpu' takes it back\nto permit it for a while: " + allow + "\n",
	})
	if got := o.Maint("why", "mine"); got.Code != 0 || !strings.Contains(got.Out, "gpu: Ready for 10m0s\nnothing is in the way\n") {
		t.Errorf("a node that was handed over: %+v", got)
	}
}

// A freeze ends by itself, or with the command that ends it: nothing is to be permitted over it.
func TestWhyOfANodeThatIsFrozen(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a", cmdtest.Asked("gpu", ""), cmdtest.Noted(annotations.ChangeStrategy, "RestrictiveUntil"), cmdtest.Noted(annotations.RestrictiveUntil, "2026-11-21T02:00:00Z")))
	o.Maint("why", "a", "-n", "shop").Is(t, cmdtest.Printed{Code: 3, Out: `node/a: change is not permitted (RestrictiveUntil Sat 2026-11-21 03:00 CET)
until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m
then permitted
1. gpu: RestrictiveUntil Sat 2026-11-21 03:00 CET
   permitted from Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m; or 'kubectl maint freeze node/a --end'
to end the freeze: 'kubectl maint freeze node/a --end'
`})
}

// Scripts compare answers: what they get has instants, and nothing that is another with each of them.
func TestWhyForScriptsHasInstantsAndNoAges(t *testing.T) {
	frozen := cmdtest.Noting(annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, "2026-11-21T02:00:00Z")
	paused := cmdtest.Noting(annotations.Pause, "2026-11-21T04:00:00Z")
	lunch := "schedule: {offHours: [{start: '12:00', end: '13:00'}]}"
	for name, c := range map[string]struct {
		object *corev1.ConfigMap
		line   string
		code   int
		want   string
	}{
		"a plan whose slot comes": {object: cmdtest.Plan("orders", "triggers: {schedules: [{cron: '0 2 * * *'}]}"), want: "[2026-11-21T02:00:00Z] next slot: Sat 2026-11-21 02:00 UTC (2026-11-21T02:00:00Z)"},
		"a frozen plan":           {object: cmdtest.Plan("orders", "", frozen), code: 3, want: "2026-11-21T02:00:00Z permitted from Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z); or 'kubectl maint freeze orders --end'"},
		"a paused plan":           {object: cmdtest.Plan("orders", "", paused), code: 3, want: "2026-11-21T04:00:00Z"},
		"a HibernatePlan":         {object: cmdtest.Sleeper("office", lunch), line: "why office", want: "[2026-11-21T12:00:00Z] it is to sleep Sat 2026-11-21 12:00 UTC (2026-11-21T12:00:00Z)"},
		"a frozen node":           {object: cmdtest.Plan("orders", ""), line: "why node/a", code: 3, want: "2026-11-21T02:00:00Z permitted from Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z); or 'kubectl maint freeze node/a --end'"},
	} {
		t.Run(name, func(t *testing.T) {
			node := cmdtest.Node("a", cmdtest.Asked("gpu", ""), cmdtest.Noted(annotations.ChangeStrategy, "RestrictiveUntil"), cmdtest.Noted(annotations.RestrictiveUntil, "2026-11-21T02:00:00Z"))
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), c.object, node)
			got := o.Line(cmp.Or(c.line, "why orders") + " -o 'go-template={{range .inTheWay}}{{.until}} {{.remedy}}{{end}}[{{.nextAt}}] {{range .next}}{{.}}{{end}}'")
			if got.Code != c.code || !strings.Contains(got.Out, c.want) {
				t.Errorf("%+v\nwant %s", got, c.want)
			}
			ages := regexp.MustCompile(`\b(\d+[dhms])+ ago|\b(in|for) \d+[dhms]`)
			if all := o.Line(cmp.Or(c.line, "why orders") + " -o json"); ages.MatchString(strings.ReplaceAll(all.Out, "--for 2h", "")) {
				t.Errorf("it has ages: %s", all.Out)
			}
		})
	}
}

// What an aborted run left cordoned is in nobody's way, and to be known.
func TestWhyOfAPlanWhoseRunLeftNodesCordoned(t *testing.T) {
	roll := cmdtest.Plan("roll", "", func(cm *corev1.ConfigMap) {
		cm.Data[annotations.DataPlan] = "{apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {steps: [{name: roll, type: for-each-node, properties: {steps: [{name: drain, type: drain}]}}]}}"
	})
	world := []*corev1.Node{cmdtest.Node("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/roll"}})), cmdtest.Node("b", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/other"}})), cmdtest.Node("c")}
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), roll, world[0], world[1], world[2])
	const left = "node a is left cordoned for it since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago: its next run goes on with the node, or 'kubectl uncordon a'"
	const asks = "by hand: 'kubectl maint trigger roll'\n"
	o.Maint("why", "roll").Is(t, cmdtest.Printed{Out: "nothing is in the way\n" + left + "\n" + asks})
	if got := o.Maint("why", "roll", "-o", "jsonpath={.standing[0]}"); got.Out != strings.Replace(left, ", 10m0s ago", "", 1) {
		t.Errorf("%+v", got)
	}
	o.Become("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:ops/roll", "plan:shop/roll"}}))
	shared := strings.Replace(left, ", or 'kubectl uncordon a'", "; see 'kubectl maint why node/a'", 1)
	o.Maint("why", "roll").Is(t, cmdtest.Printed{Out: "nothing is in the way\n" + shared + "\n" + asks})
	o.Forbids("list", "nodes", "")
	o.Maint("why", "roll").Is(t, cmdtest.Printed{Out: "nothing is in the way\n" + asks})
}

// A slot that was Missed since another run held the target leaves nothing behind that is in the
// way: it is told which run that was.
func TestWhyOfAPlanWhoseSlotsAreMissedByALock(t *testing.T) {
	at := func(minute int) *time.Time {
		slot := cmdtest.Now().Add(time.Duration(minute) * time.Minute)
		return &slot
	}
	missed := func(slot *time.Time, reason string) ledger.Entry {
		held := "did not start within startDeadline 30s: run bank/maint-run-holds-a held the same target"
		return ledger.Entry{Kind: run.BySchedule, Slot: slot, Result: run.Missed, Reason: reason, Run: "maint-run-orders-a", At: *slot, Outcome: &ledger.Outcome{Phase: run.Aborted, Message: held}}
	}
	const told = "its last slot, Sat 2026-11-21 00:58 CET (2026-11-20T23:58:00Z), 2m0s ago, was Missed (lock): did not start within startDeadline 30s: " +
		"run bank/maint-run-holds-a held the same target; a longer startDeadline lets the next one wait for longer"
	byHand := ledger.Entry{Kind: run.ByToken, Result: run.Ran, Run: "maint-run-orders-b", At: *at(-1)}
	for name, c := range map[string]struct {
		recent []ledger.Entry
		want   string
	}{
		"the newest slot":                  {[]ledger.Entry{missed(at(-3), run.ReasonLock), missed(at(-2), run.ReasonLock)}, told},
		"and a run that was asked for":     {[]ledger.Entry{missed(at(-2), run.ReasonLock), byHand}, told},
		"one that was Missed for another":  {[]ledger.Entry{missed(at(-3), run.ReasonLock), missed(at(-2), run.ReasonDeadline)}, ""},
		"one that ran since":               {[]ledger.Entry{missed(at(-3), run.ReasonLock), {Kind: run.BySchedule, Slot: at(-2), Result: run.Ran, At: *at(-2)}}, ""},
		"a plan that never had a slot yet": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Plan("orders", ""), cmdtest.Ledger(ledger.Ledger{Recent: c.recent}))
			got := o.Maint("why", "orders")
			if lines := strings.Split(got.Out, "\n"); lines[0] != "nothing is in the way" || (c.want != "") != strings.Contains(got.Out, "(lock)") || c.want != "" && lines[1] != c.want {
				t.Errorf("%+v", got)
			}
			if got := o.Maint("why", "orders", "-o", "jsonpath={.standing[*]}"); got.Out != strings.Replace(c.want, ", 2m0s ago", "", 1) {
				t.Errorf("for scripts: %+v", got)
			}
		})
	}
}

// Only a bypass lets a run start in a namespace that is closed: it is named with the run.
func TestWhyOfARunThatItsNamespaceHolds(t *testing.T) {
	r := cmdtest.PendingRun(func(r *view.Run) {
		r.Run.Spec.RequiresApproval, r.Journal.Waiting, r.Journal.Message = false, run.WaitWindow, "waits for its window, which opens at 2026-11-21T02:00:00Z (namespace: RestrictiveUntil 2026-11-21T02:00:00Z)"
	})
	frozen := cmdtest.Namespace("shop", annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, "2026-11-21T02:00:00Z")
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), frozen, cmdtest.Plan("orders", ""), cmdtest.Ledger(ledger.Ledger{}), cmdtest.RunObject(r, "maint-run-orders-a"))
	const remedy = "; or 'kubectl maint freeze namespace/shop --end'; or the annotation maint.dev/bypass: \"maint-run-orders-a: REASON\" on the plan, which lets that run start\n"
	if got := o.Maint("why", "orders"); got.Code != 3 || !strings.Contains(got.Out, remedy) {
		t.Errorf("%+v", got)
	}
}

// Whoever may write ConfigMaps may fill the annotations of a plan: what the agent says of it is old.
func TestWhyOfAPlanWhoseAnnotationsAreFull(t *testing.T) {
	full := cmdtest.Plan("orders", "", func(cm *corev1.ConfigMap) {
		if cm.Annotations == nil {
			cm.Annotations = map[string]string{}
		}
		cm.Annotations["example.org/large"] = ""
		cm.Annotations["example.org/large"] = strings.Repeat("y", annotations.MaxBytes-annotations.Bytes(cm.Annotations))
	})
	got := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), full).Maint("why", "orders")
	const want = "1. the annotations of the plan have 262144 of at most 262144 bytes: the API server refuses what the agent writes there; its slots still run, but its status is not up to date\n" +
		"   remove what fills them: the largest is example.org/large with "
	if got.Code != 3 || !strings.Contains(got.Out, want) {
		t.Errorf("%+v", got)
	}
}

// Somebody, its kubelet perhaps, may fill the annotations of a node: the agent can write nothing there.
func TestWhyOfANodeWhoseAnnotationsAreFull(t *testing.T) {
	filled := func(name string, bytes int, change ...func(*corev1.Node)) *corev1.Node {
		n := cmdtest.Node(name, append(change, cmdtest.Noted("example.org/small", "x"), cmdtest.Noted("example.org/large", ""))...)
		n.Annotations["example.org/large"] = strings.Repeat("y", bytes-annotations.Bytes(n.Annotations))
		return n
	}
	for name, c := range map[string]struct {
		node *corev1.Node
		full bool
	}{
		"before it has its turn":                 {filled("a", annotations.MaxBytes-20, cmdtest.Asked("gpu", "")), true},
		"and to the last byte":                   {filled("a", annotations.MaxBytes, cmdtest.Asked("gpu", "")), true},
		"while it is drained":                    {filled("a", annotations.MaxBytes-20, why.Held("gpu", nodes.Draining, "2 of 3 pods are left")...), true},
		"with room for what is to be written":    {filled("a", annotations.MaxBytes-1000, cmdtest.Asked("gpu", "")), false},
		"when its requestor has it":              {filled("a", annotations.MaxBytes, why.Held("gpu", nodes.Ready, "")...), false},
		"without a request":                      {filled("a", annotations.MaxBytes), false},
		"when its request was removed meanwhile": {filled("a", annotations.MaxBytes, cmdtest.Stood("gpu", nodes.Pending, "")), false},
	} {
		t.Run(name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Configured("{maxParallelOperations: 2}"), c.node)
			has := annotations.Bytes(c.node.Annotations)
			want := fmt.Sprintf("1. the annotations of the node have %d of at most 262144 bytes: the API server refuses what the agent writes there, and others have its turn\n"+
				"   remove what fills them: the largest is example.org/large with %d bytes; the agent tries again every half minute\n", has, len(c.node.Annotations["example.org/large"]))
			for _, may := range []string{"all nodes", "one node"} {
				if may == "one node" {
					o.Forbids("list", "nodes", "")
				}
				got := o.Maint("why", "a")
				if strings.Contains(got.Out, want) != c.full || c.full && got.Code != 3 {
					t.Errorf("for whom may read %s, %+v", may, got)
				}
			}
		})
	}
}

func TestWhyOfANode(t *testing.T) {
	night := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: "night", Labels: map[string]string{annotations.LabelKind: annotations.KindPolicy}},
		Data:       map[string]string{annotations.DataPolicy: "{apiVersion: maint.dev/v1alpha1, kind: Policy, spec: {strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{start: '02:00', end: '04:00'}]}}}"},
	}
	o := cmdtest.NewCluster(
		t, cmd.Run, cmdtest.Agent(), cmdtest.Configured("{maxParallelOperations: 2}"), night, cmdtest.Node("free"), cmdtest.Node("ready", why.Held(cmdtest.Jane, nodes.Ready, "")...),
		cmdtest.Node("closed", cmdtest.Asked("gpu", ""), cmdtest.Noted(annotations.ChangePolicy, "maint-system/night")), cmdtest.Node("new", cmdtest.Asked("gpu", "")),
		cmdtest.Node("late", cmdtest.Asked("gpu", "")), cmdtest.Node("paused", cmdtest.Asked("gpu", ""), cmdtest.Noted(annotations.Pause, "true")),
	)
	o.Maint("why", "free").Is(t, cmdtest.Printed{Code: 0, Out: "node/free: change is permitted (no strategy is set)\nuntil somebody changes it\nnobody asks for it: 'kubectl maint drain free' does\n", Err: ""})
	o.Maint("why", "ready").Is(t, cmdtest.Printed{Code: 0, Out: "node/ready: change is permitted (no strategy is set)\nuntil somebody changes it\n" + cmdtest.Jane + ": Ready for 10m0s\nnothing is in the way\n", Err: ""})
	o.Maint("why", "late").Is(t, cmdtest.Printed{Code: 0, Out: "node/late: change is permitted (no strategy is set)\nuntil somebody changes it\ngpu: its turn has come: the agent takes it up as soon as it can\nthe agent has not looked at the request yet: if that stays so, it is too old, or watches only one namespace; see 'kubectl maint doctor'\n", Err: ""})
	o.Maint("why", "node/new").Is(t, cmdtest.Printed{Code: 3, Out: "node/new: change is permitted (no strategy is set)\nuntil somebody changes it\n" +
		"1. gpu: waits its turn: 0 before it (maxParallelOperations 2); in maintenance: ready\n   its turn comes when one of them is released; or raise spec.nodes.maxParallelOperations in the agent's configuration (ConfigMap maint-system/maint-agent)\n", Err: ""})
	o.Maint("why", "closed").Is(t, cmdtest.Printed{Code: 3, Out: `node/closed: change is not permitted (policy night: outside of the windows)
since Fri 2026-11-20 05:00 CET (2026-11-20T04:00:00Z)
until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m
then permitted until Sat 2026-11-21 05:00 CET (2026-11-21T04:00:00Z)
1. gpu: policy night: outside of the windows
   permitted from Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m; or 'kubectl maint allow node/closed --for 2h --reason …'
to permit it for a while: 'kubectl maint allow node/closed --for 2h --reason …'
`, Err: ""})
	if got := o.Maint("why", "paused"); got.Code != 3 || !strings.HasSuffix(got.Out, "\nto end the pause: 'kubectl maint resume node/paused'\n") || !strings.Contains(got.Out, "1. gpu: the node is paused\n   it stays so until somebody changes it; or 'kubectl maint resume node/paused'\n") {
		t.Errorf("%+v", got)
	}
}

// Whoever may not read the namespace has the agent's word, and that says when the window opens.
func TestATenantIsToldWhenAPublishedWindowOpens(t *testing.T) {
	orders := cmdtest.Plan("orders", "triggers: {schedules: [{cron: '0 3 * * *'}]}, policies: [{name: weekends}]", cmdtest.Noting(
		annotations.StatusBehavior, `{"current":{"state":"ChangesUnpaused","strategy":"ByPolicy","startTime":"2026-11-20T20:00:00Z","endTime":"2026-11-21T01:00:00Z","reason":"policy weekends: PermissiveUntil 2026-11-21T01:00:00Z by jane"},"next":{"state":"ChangesPaused","startTime":"2026-11-21T01:00:00Z","endTime":"2026-11-21T03:30:00Z"}}`,
	))
	orders.Annotations[annotations.StatusObserved] = annotations.Observed(orders)
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), orders, cmdtest.Ledger(ledger.Ledger{Watermark: cmdtest.Now()}), cmdtest.Policy("weekends", "{strategy: Permissive}"))
	o.Forbids("get", "namespaces", "")
	for line, want := range map[string]string{
		"next orders --count 1":    "window closed until Sat 2026-11-21 03:30 UTC (not permitted then, says the agent)",
		"why orders":               "outside of its window, which opens at Sat 2026-11-21 03:30 UTC (2026-11-21T03:30:00Z) (not permitted then, says the agent)",
		"calendar --to 2026-11-22": "not permitted then, says the agent",
	} {
		got := o.Line(line)
		if !strings.Contains(got.Out, want) || strings.Contains(got.Out, "does not open by itself") || strings.Contains(got.Out, "not permitted then: not permitted then") {
			t.Errorf("%s:\n%s%s", line, got.Out, got.Err)
		}
	}
	if got := o.Line("report --last 24h"); strings.Contains(got.Err, "nothing is permitted") || !strings.Contains(got.Err, "how many windows were used is not known for sure") {
		t.Errorf("%+v", got)
	}
}

// What the agent has not found yet is not told as never.
func TestATenantIsToldThatAnOpeningIsNotKnownYet(t *testing.T) {
	const (
		paused  = `{"current":{"state":"ChangesPaused","strategy":"ByPolicy","reason":"policy night: outside of the windows; when that changes is not known yet"}}`
		said    = "policy night: outside of the windows, says the agent; when that changes is not known yet: the agent limits its searches for each namespace; it tries again in a minute"
		unknown = "\n   whether it opens by itself is not known yet"
	)
	noting := func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		cmdtest.Noting(annotations.StatusBehavior, paused, annotations.StatusObserved, annotations.Observed(cm))(cm)
		return cm
	}
	policies := "policies: [{name: night, namespace: maint-system}]"
	orders := noting(cmdtest.Plan("orders", policies+", triggers: {schedules: [{cron: '0 3 * * *'}]}"))
	asleep := noting(cmdtest.Sleeper("late", policies+", schedule: {offHours: [{start: '00:00', end: '23:00'}]}"))
	awake := noting(cmdtest.Sleeper("soon", policies+", schedule: {offHours: [{start: '03:00', end: '06:00'}]}"))
	waits := cmdtest.PendingRun(func(r *view.Run) {
		r.Run.Spec.RequiresApproval, r.Journal.Waiting, r.Journal.Message = false, run.WaitWindow, "waits for its window ("+said+")"
	})
	node := cmdtest.Node("a", cmdtest.Asked("gpu", ""), cmdtest.Stood("gpu", nodes.Pending, ""), cmdtest.Noted(annotations.ChangePolicy, "maint-system/night"), cmdtest.Noted(annotations.StatusBehavior, paused))
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), orders, asleep, awake, node, cmdtest.Ledger(ledger.Ledger{Watermark: cmdtest.Now()}), cmdtest.RunObject(waits, "maint-run-orders-a"))
	o.Forbids("list", "configmaps", annotations.DefaultNamespace)
	for line, want := range map[string]string{
		"check orders":             "plan/orders: change is not permitted (policy night: outside of the windows, says the agent)\n" + strings.TrimPrefix(schedule.NotKnownYet, "; ") + ": the agent limits",
		"check orders -o json":     `"nextChangeETA": -2`,
		"next orders --count 1":    "window closed (" + said + ")",
		"status orders":            said,
		"why orders":               "change is not permitted: " + said + unknown,
		"why maint-run-orders-a":   "waits for its window (" + said + ")\n   it starts when change is permitted",
		"why late":                 "no sleep may begin: " + said + unknown,
		"why soon":                 said + unknown,
		"next soon --count 1":      "not known yet whether it begins: window closed (" + said + ")",
		"why node/a":               "1. gpu: " + said + unknown,
		"why node/a -o json":       "change is not permitted: " + said,
		"calendar --to 2026-11-22": "when that changes is not known yet",
		"trigger orders":           "the run waits for its window, of which it is not known yet when it opens (" + said + ")",
	} {
		got := o.Line(line)
		for _, never := range []string{"until somebody changes it", "does not open by itself", `"nextChangeETA": -1`} {
			if strings.Contains(got.Out+got.Err, never) {
				t.Errorf("%s says %q:\n%s%s", line, never, got.Out, got.Err)
			}
		}
		if !strings.Contains(got.Out+got.Err, want) {
			t.Errorf("%s: not %q:\n%s%s", line, want, got.Out, got.Err)
		}
	}
}

// A dry run looks like one wherever it is told of, and what it keeps out can be let in.
func TestADryRunIsToldAsOne(t *testing.T) {
	const name = "maint-run-orders-a"
	atWork := cmdtest.RunOf(cmdtest.Record("roll", "for-each-node", run.StepRunning), cmdtest.Record("ready", "wait", run.StepSucceeded, cmdtest.Message("dry run: not waited for: Node/nc-2: condition Rolled is not there yet")))
	atWork.Run.Request.At, atWork.Run.Request.DryRun = *cmdtest.Before(time.Hour), true
	shut := cmdtest.PendingRun(func(r *view.Run) {
		r.Run.Spec.RequiresApproval, r.Run.Request.DryRun, r.Journal.Waiting, r.Journal.Message = false, true, run.WaitWindow, "waits for its window, which opens at 2026-11-21T21:00:00Z (policy night)"
	})
	abort := "'kubectl maint abort " + name + "' ends"
	for _, c := range []struct {
		name  string
		run   view.Run
		notes []string
		want  map[string][]string
	}{
		{"at work", atWork, nil, map[string][]string{
			"why orders":     {"dry run " + name + " is at work: Running (dry run) for 1h0m", abort + " the dry run, which changes nothing"},
			"status":         {"shop/" + name + "  Running (dry run) for 1h0m"},
			"status orders":  {"Run " + name + "  Running (dry run) for 1h0m"},
			"status " + name: {"Run " + name + "  Running (dry run) for 1h0m"},
		}},
		{"in the way of a trigger", atWork, []string{annotations.Trigger, "new"}, map[string][]string{
			"why orders": {"1. the trigger waits for dry run " + name, abort + " it, which changes nothing"},
		}},
		{"it waits for its window", shut, nil, map[string][]string{
			"why orders": {"dry run " + name + " waits for its window"},
			"status":     {"Pending (dry run), waits for its window"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			orders := cmdtest.Plan("orders", "", cmdtest.Noting(c.notes...))
			orders.Annotations[annotations.StatusObserved] = annotations.Observed(orders)
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), orders, cmdtest.Ledger(ledger.Ledger{}), cmdtest.RunObject(c.run, name))
			for line, words := range c.want {
				got := o.Line(line)
				for _, word := range words {
					if !strings.Contains(got.Out, word) {
						t.Errorf("%s does not say %q:\n%s", line, word, got.Out)
					}
				}
			}
		})
	}
}

// A slot that is due stands where its plan is explained, until it has run or is Missed.
func TestASlotThatIsDueAndWaitsIsShown(t *testing.T) {
	orders := cmdtest.Plan("orders", "triggers: {schedules: [{cron: '50 * * * *'}]}, policies: [{name: ghost}]")
	orders.Annotations[annotations.StatusObserved] = annotations.Observed(orders)
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), orders, cmdtest.Ledger(ledger.Ledger{Watermark: *cmdtest.Before(20 * time.Minute)}))
	const due = "Fri 2026-11-20 23:50 UTC (2026-11-20T23:50:00Z), 10m0s ago, waits: policy ghost: not ready: there is no such policy in namespace shop; it is Missed at Sat 2026-11-21 00:50 UTC (2026-11-21T00:50:00Z)"
	if got := o.Line("why orders"); !strings.Contains(got.Out, "due slot: "+due+"\n") {
		t.Errorf("%+v", got)
	}
	if got := o.Line("status orders"); !strings.Contains(got.Out, due+"\n") {
		t.Errorf("%+v", got)
	}
	unready := orders.DeepCopy()
	unready.Annotations[annotations.StatusConditions] = `[{"type":"Ready","status":"False","reason":"Target","message":"Deployment/web does not exist"}]`
	unready.Data[annotations.DataPlan] = strings.ReplaceAll(unready.Data[annotations.DataPlan], ", policies: [{name: ghost}]", "")
	unready.Annotations[annotations.StatusObserved] = annotations.Observed(unready)
	o.Stores("configmaps", unready)
	if got := o.Line("why orders"); !strings.Contains(got.Out, "waits: Deployment/web does not exist; it is Missed at ") {
		t.Errorf("%+v", got)
	}
}

// Whoever answered while no agent acts is told so, and nobody is asked once more.
func TestAnAnswerThatNoAgentHasTakenUp(t *testing.T) {
	const name, said = "maint-run-orders-a", " by jane (unverified): CHG-4; no agent has taken that up yet"
	asking := cmdtest.PendingRun(func(r *view.Run) {
		r.Journal.Waiting, r.Journal.Message = run.WaitApproval, "waits for approval: 'kubectl maint -n shop approve "+name+"'"
	})
	step := cmdtest.AskingOf(cmdtest.Record("ask", "approval", run.StepRunning, cmdtest.Message("waits for approval: 'kubectl maint -n shop approve "+name+"/ask'")))
	hold := cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning))
	for _, c := range []struct {
		name string
		run  view.Run
		key  string
		ref  string
		want string
	}{
		{"a run is approved", asking, annotations.Approve, name, "approved" + said},
		{"a run is rejected", asking, annotations.Reject, name, "rejected" + said},
		{"a step is approved", step, annotations.Approve, name + "/ask", "step ask: approved" + said},
		{"a suspend is resumed", hold, annotations.Resume, name, "resumed" + said},
		{"a run is aborted that asks", asking, annotations.Abort, name, "aborted" + said},
		{"a run is aborted that holds", hold, annotations.Abort, name, "aborted" + said},
	} {
		t.Run(c.name, func(t *testing.T) {
			orders := cmdtest.Plan("orders", "", cmdtest.Noting(c.key, c.ref, annotations.Actor(c.key), "jane", annotations.Reason(c.key), "CHG-4"))
			orders.Annotations[annotations.StatusObserved] = annotations.Observed(orders)
			orders.Annotations[annotations.StatusPhase], orders.Annotations[annotations.StatusMessage] = "Waiting", "run "+name+" waits for 'kubectl maint -n shop approve "+name+"'"
			o := cmdtest.NewCluster(t, cmd.Run, orders, cmdtest.Ledger(ledger.Ledger{}), cmdtest.RunObject(c.run, name))
			for _, line := range []string{"why orders", "why " + name, "status", "status orders", "status " + name, "describe " + name} {
				got := o.Line(line)
				if !strings.Contains(got.Out, c.want) {
					t.Errorf("%s does not say it:\n%s", line, got.Out)
				}
				for _, verb := range []string{"approve ", "reject ", "resume "} {
					if strings.Contains(got.Out, "kubectl maint -n shop "+verb) || strings.Contains(got.Out, "kubectl maint "+verb) {
						t.Errorf("%s asks once more to %s:\n%s", line, verb, got.Out)
					}
				}
			}
			if got := o.Line("why orders"); got.Code != 3 || !strings.Contains(got.Out, "it is kept until an agent does; nobody has to say it again") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// The agent looks at a plan's account and target when a run is to begin: why looks itself, with the
// rights of whoever asks.
func TestWhyOfAPlanThatLostWhatItNeeds(t *testing.T) {
	world := func() *cmdtest.Cluster {
		plan := cmdtest.Plan("orders", "target: {apiVersion: apps/v1, kind: Deployment, name: web}")
		return cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), plan, cmdtest.Ledger(ledger.Ledger{}), cmdtest.Deployment("web"))
	}
	const doctor = "\n   it goes on by itself when that is there; 'kubectl maint doctor orders' checks all that it needs\n"
	o := world()
	o.Maint("why", "orders").Is(t, cmdtest.Printed{Out: "nothing is in the way\nby hand: 'kubectl maint trigger orders'\n"})
	if err := o.Kube.AppsV1().Deployments("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.Maint("why", "orders").Is(t, cmdtest.Printed{Code: 3, Out: "1. no run can begin: Deployment/web does not exist" + doctor})
	o.Deletes("serviceaccounts", "maint-runner")
	const account = "the ServiceAccount maint-runner does not exist in namespace shop"
	o.Maint("why", "orders").Is(t, cmdtest.Printed{Code: 3, Out: "1. no run can begin: " + account + doctor + "2. no run can begin: Deployment/web does not exist" + doctor})
	for _, line := range []string{"status orders", "describe orders"} {
		if got := o.Line(line); !strings.Contains(got.Out, "\nCannot run:") || !strings.Contains(got.Out, account) || !strings.Contains(got.Out, "Deployment/web does not exist\n") {
			t.Errorf("%s: %+v", line, got)
		}
		if got := o.Line(line + " -o jsonpath={.needs[*].what}"); got.Out != "can begin no run: "+account+" can begin no run: Deployment/web does not exist" {
			t.Errorf("%s: %+v", line, got)
		}
	}
	o = world()
	o.Forbids("get", "serviceaccounts", "")
	o.Maint("why", "orders").Is(t, cmdtest.Printed{
		Out: "nothing is in the way\nby hand: 'kubectl maint trigger orders'\n",
		Err: "warning: whether all that the plan needs is there is not known: read the ServiceAccount maint-runner: serviceaccounts is forbidden: not for you\n",
	})
}

// The command that is proposed is taken: it has the parameters that a run of the plan needs.
func TestATriggerByHandIsProposedWithWhatItNeeds(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Plan("orders", "parameters: [{name: depth}, {name: mode, default: full}, {name: size}]"), cmdtest.Ledger(ledger.Ledger{}))
	o.Maint("why", "orders").Is(t, cmdtest.Printed{Out: "nothing is in the way\nby hand: 'kubectl maint trigger orders --param depth=… --param size=…'\n"})
}

// What the agent says of itself on its configuration holds for every node.
func TestWhyOfANodeSaysWhatTheAgentSaysOfItself(t *testing.T) {
	for name, c := range map[string]struct{ condition, want string }{
		"it may not write nodes":    {`{"type":"NodesForbidden","status":"True","message":"the agent may not patch nodes"}`, "1. gpu: the agent may not patch nodes\n"},
		"it is to change nothing":   {`{"type":"DryRun","status":"True","message":"it runs with --dry-run"}`, "1. gpu: it runs with --dry-run\n"},
		"its clock is in doubt":     {`{"type":"ClockDoubt","status":"True","message":"the clocks differ"}`, "1. gpu: the clocks differ\n"},
		"it says that all is well":  {`{"type":"Valid","status":"True","message":"in force"}`, "gpu: its turn has come"},
		"it was so, and is no more": {`{"type":"NodesForbidden","status":"False","message":"the agent may not patch nodes"}`, "gpu: its turn has come"},
	} {
		t.Run(name, func(t *testing.T) {
			config := cmdtest.Configured("{}")
			config.Annotations = map[string]string{annotations.StatusConditions: "[" + c.condition + "]"}
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), config, cmdtest.Node("a", cmdtest.Asked("gpu", "")))
			if got := o.Maint("why", "node/a"); !strings.Contains(got.Out, c.want) {
				t.Errorf("%+v", got)
			}
			o.Forbids("list", "nodes", "")
			if strings.HasPrefix(c.want, "1. ") {
				if got := o.Maint("why", "node/a"); got.Code != 3 || !strings.Contains(got.Out, c.want) {
					t.Errorf("to whoever may not list nodes it says %+v", got)
				}
			}
		})
	}
}

func TestWhyOfANodeThatSomebodyCordonedSaysSoToWhomeverMayReadLittle(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a", func(n *corev1.Node) { n.Spec.Unschedulable = true }))
	o.Forbids("list", "nodes", "")
	if got := o.Maint("why", "node/a"); got.Code != 0 || !strings.Contains(got.Out, "cordoned, not by us: it stays so after any maintenance; 'kubectl uncordon a' opens it\nnothing is in the way\n") {
		t.Errorf("%+v", got)
	}
}

// What a GitOps tool undoes of a template's steps it undoes of the plan.
func TestWhyWarnsOfWhoUndoesWhatAStepChanges(t *testing.T) {
	const target = "target: {apiVersion: apps/v1, kind: Deployment, name: orders}, "
	const scales = "name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0}"
	document := func(kind, spec string) string {
		return "{apiVersion: maint.dev/v1alpha1, kind: " + kind + ", spec: {" + spec + "}}"
	}
	template := cmdtest.Plan("hush", "", func(cm *corev1.ConfigMap) {
		cm.Labels[annotations.LabelKind], cm.Data = annotations.KindStepTemplate, map[string]string{annotations.DataTemplate: document("StepTemplate", "steps: [{"+scales+"}]")}
	})
	for name, c := range map[string]struct {
		spec string
		step string
	}{
		"its own step":         {target + "steps: [{" + scales + "}]", "down"},
		"a step of a template": {target + "steps: [{name: quiet, type: template/hush}]", "down"},
		"it holds the tool":    {target + "holdOwners: true, steps: [{name: quiet, type: template/hush}]", ""},
		"it may change":        {target + "onDrift: ignore, steps: [{name: quiet, type: template/hush}]", ""},
	} {
		owned := cmdtest.Deployment("orders")
		owned.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
		p := cmdtest.Plan("orders", "", func(cm *corev1.ConfigMap) { cm.Data[annotations.DataPlan] = document("Plan", c.spec) })
		got := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), p, template, owned).Maint("why", "orders")
		said := strings.Contains(got.Err, "manages Deployment/orders from Git, and may undo what step ")
		if said != (c.step != "") || said && !strings.Contains(got.Err, c.step) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
