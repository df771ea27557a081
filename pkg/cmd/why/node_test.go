package why

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/claims"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// asking about node a among others, each of which may be changed.
func question(limits nodes.NodeLimits, list ...*corev1.Node) nodeQuestion {
	l, err := nodes.LimitsOf(limits)
	if err != nil {
		panic(err)
	}
	q := nodeQuestion{node: "a", agent: factory.AgentState{Namespace: "maint-system"}, world: nodes.ClusterState{Now: cmdtest.Now(), Limits: l}, gates: map[string]claims.Node{}}
	for _, n := range list {
		facts := annotations.Node(n)
		facts.Gate = nodes.Gate{Permitted: true}
		q.gates[n.Name] = claims.Node{Verdict: func(time.Time) schedule.Verdict { return schedule.Verdict{Permitted: true, Ready: true} }}
		for i := range facts.Asked {
			facts.Asked[i].Preview = facts.Asked[i].Remembered()
		}
		q.world.Nodes = append(q.world.Nodes, facts)
	}
	return q
}

func (q nodeQuestion) with(edit func(*nodeQuestion)) nodeQuestion {
	edit(&q)
	return q
}

func closedBy(reason string, next *time.Time) func(*nodeQuestion) {
	return gate(nodes.Gate{Reason: reason, Next: next})
}

// lets has a bypass on a node name a run.
func lets(node, name string) func(*nodeQuestion) {
	return func(q *nodeQuestion) {
		one := q.gates[node]
		one.Intent.Bypass.Run = name
		q.gates[node] = one
	}
}

func gate(g nodes.Gate) func(*nodeQuestion) {
	return func(q *nodeQuestion) {
		q.world.Nodes[0].Gate = g
		q.gates["a"] = claims.Node{Verdict: func(time.Time) schedule.Verdict {
			return schedule.Verdict{Permitted: g.Permitted, Ready: true, Reason: g.Reason, Until: g.Next, Cause: g.Cause}
		}}
	}
}

func rolls(items ...run.Item) func(*nodeQuestion) {
	return func(q *nodeQuestion) {
		rec := cmdtest.Record("roll", plan.TypeForEachNode, run.StepRunning)
		rec.Items, rec.Listed, rec.Message = items, true, "1 of 3 are done, 1 left; soaks until noon"
		r := cmdtest.RunOf(rec)
		q.stepClaims = append(q.stepClaims, view.StepClaims([]view.Run{r})...)
	}
}

// drains is a drain step outside of any rollout.
func drains(targets ...run.DrainTarget) func(*nodeQuestion) {
	return drainsSince(time.Time{}, targets...)
}

func drainsSince(since time.Time, targets ...run.DrainTarget) func(*nodeQuestion) {
	return func(q *nodeQuestion) {
		rec := cmdtest.Record("drain", plan.TypeDrain, run.StepRunning)
		memory, err := json.Marshal(run.DrainMemory{Attempt: 1, Since: since, Nodes: targets})
		if err != nil {
			panic(err)
		}
		rec.Memory = memory
		q.stepClaims = append(q.stepClaims, view.StepClaims([]view.Run{cmdtest.RunOf(rec)})...)
	}
}

func Held(requestor string, phase nodes.Phase, reason string, edits ...func(*nodes.Status)) []func(*corev1.Node) {
	return []func(*corev1.Node){cmdtest.Asked(requestor, "{}"), cmdtest.Stood(requestor, phase, reason, edits...), cmdtest.CordonedFor(nodes.Cordon{By: []string{requestor}})}
}

func TestWhyANodeIsNotGivenToWhoAsks(t *testing.T) {
	identity := func(value string) string {
		r, err := nodes.Parse("gpu", value)
		if err != nil {
			t.Fatal(err)
		}
		return r.Identity
	}
	const config = "in the agent's configuration (ConfigMap maint-system/maint-agent)"
	release := func(node, requestor string) string {
		return "'kubectl maint release " + node + " --requestor " + requestor + "'"
	}
	for _, c := range []struct {
		name string
		q    nodeQuestion
		want string
	}{
		{"nobody asks", question(nodes.NodeLimits{}, cmdtest.Node("a")), ""},
		{"its turn has come", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", ""))), "gpu: its turn has come: the agent takes it up as soon as it can"},
		{
			"no agent", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", ""))).with(func(q *nodeQuestion) { q.agent.Missing = "no agent runs" }),
			"gpu: its turn has come: the agent takes it up as soon as it can\n1. no agent is at work: no agent runs → nothing starts until it runs; requests by pause, skip, freeze, hibernate and wake are kept; trigger, approve, reject, abort of a run, retry, rollback and drain refuse",
		},
		{
			"all places are taken", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", "")), cmdtest.Node("b", Held("other", nodes.Ready, "")...)),
			"1. gpu: waits its turn: 0 before it (maxParallelOperations 1); in maintenance: b → its turn comes when one of them is released; or raise spec.nodes.maxParallelOperations " + config,
		},
		{
			"a higher priority comes first", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", "")), cmdtest.Node("b", cmdtest.Asked("disk", `{"priority":5}`))),
			"1. gpu: waits its turn: 0 before it (maxParallelOperations 1) → its turn comes when one of them is released; or raise spec.nodes.maxParallelOperations " + config,
		},
		{
			"a higher priority that is blocked does not", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", "")), cmdtest.Node("b", cmdtest.Asked("disk", `{"priority":5}`), cmdtest.Stood("disk", nodes.Pending, "Blocked: shop/db-0 cannot leave; the node is not cordoned, and others have their turn", cmdtest.ForGood("shop/db-0 cannot leave")))),
			"gpu: its turn has come: the agent takes it up as soon as it can",
		},
		{
			"an aborted run left it cordoned", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/p"}}))),
			"1. it is cordoned for plan shop/p since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago, and no run of that plan has it now: one that failed or was aborted left it cordoned → the plan's next run goes on with it and uncordons it, if it has such a step; or 'kubectl uncordon a'",
		},
		{
			"a plan that is gone left it cordoned", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/p"}}))).with(func(q *nodeQuestion) { q.gone = []string{"plan:shop/p"} }),
			"1. it is cordoned for plan shop/p since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago, and there is no such plan any more → nobody else uncordons it: 'kubectl uncordon a'",
		},
		{
			"a plan that is gone left it cordoned, and somebody drains it", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", "{}"), cmdtest.Stood("gpu", nodes.Draining, "2 pods are left", cmdtest.Progress(2, 5)), cmdtest.CordonedFor(nodes.Cordon{By: []string{"gpu", "plan:shop/p"}}))).with(func(q *nodeQuestion) { q.gone = []string{"plan:shop/p"} }),
			"gpu: Draining for 10m0s: 2 pods are left\n1. it is cordoned for plan shop/p since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago, and there is no such plan any more → nobody else uncordons it: 'kubectl uncordon a' once it is given back by gpu",
		},
		{
			"an aborted run left it cordoned, and a live one has it", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:ops/q", "plan:shop/p"}}))).with(func(q *nodeQuestion) { q.runs = map[string]string{"plan:ops/q": "maint-run-q-x"} }),
			"plan ops/q: cordoned for it; its run maint-run-q-x goes on\n1. it is cordoned for plan shop/p since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago, and no run of that plan has it now: one that failed or was aborted left it cordoned → the plan's next run goes on with it and uncordons it, if it has such a step; or 'kubectl uncordon a' once it is given back by plan ops/q",
		},
		{
			"somebody else cordoned it", question(nodes.NodeLimits{}, cmdtest.Node("a", func(n *corev1.Node) { n.Spec.Unschedulable = true })).with(func(q *nodeQuestion) {
				q.cordoners = []annotations.CordonWriter{{Manager: "kubectl", At: cmdtest.Now().Add(-10 * time.Minute)}}
			}),
			"cordoned, not by us, but by kubectl at Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago: it stays so after any maintenance; 'kubectl uncordon a' opens it",
		},
		{
			"nobody says who cordoned it", question(nodes.NodeLimits{}, cmdtest.Node("a", func(n *corev1.Node) { n.Spec.Unschedulable = true })),
			"cordoned, not by us: it stays so after any maintenance; 'kubectl uncordon a' opens it",
		},
		{
			"a run that goes on has it cordoned", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/p"}}))).with(func(q *nodeQuestion) { q.runs = map[string]string{"plan:shop/p": "maint-run-p-x"} }),
			"plan shop/p: cordoned for it; its run maint-run-p-x goes on",
		},
		{
			"an earlier run left it cordoned, and the new one waits", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/p"}})), cmdtest.Node("b", Held("other", nodes.Ready, "")...)).with(func(q *nodeQuestion) { q.runs = map[string]string{"plan:shop/p": "maint-run-p-x"} }).with(rolls(run.Item{Name: "a"})),
			"plan shop/p: cordoned for it; its run maint-run-p-x goes on\n1. plan shop/p (run maint-run-p-x, step roll): waits its turn: 0 before it (maxParallelOperations 1); in maintenance: b → its turn comes when one of them is released; or raise spec.nodes.maxParallelOperations " + config,
		},
		{
			"a run says that it drains another, whose record does not know it", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", "")), cmdtest.Node("b")).with(drains(run.DrainTarget{Name: "b", Cordoned: true})),
			"gpu: its turn has come: the agent takes it up as soon as it can",
		},
		{
			"a plan of another cluster has it", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{nodes.PlanElsewhere("shop", "p", "7b")}}))),
			"plan shop/p of another cluster: cordoned for it since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago; the agent there goes on with the node, and uncordons it",
		},
		{
			"a plan drains another", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", "")), cmdtest.Node("b", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/p"}}))).with(drains(run.DrainTarget{Name: "b", Cordoned: true})),
			"1. gpu: waits its turn: 0 before it (maxParallelOperations 1); in maintenance: b → its turn comes when one of them is released; or raise spec.nodes.maxParallelOperations " + config,
		},
		{
			"a plan has drained another", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", "")), cmdtest.Node("b")).with(drains(run.DrainTarget{Name: "b", Cordoned: true, Drained: true})),
			"gpu: its turn has come: the agent takes it up as soon as it can",
		},
		{
			"a plan drains it", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", ""), cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/p"}})), cmdtest.Node("b")).with(drains(run.DrainTarget{Name: "a", Cordoned: true})),
			"plan shop/p (run maint-run-p-x, step drain): at work\n1. gpu: the node is plan:shop/p's; waits until it is released → it goes on by itself when that is through with the node",
		},
		{
			"a plan's drain waits for its turn", question(nodes.NodeLimits{}, cmdtest.Node("a"), cmdtest.Node("b", Held("other", nodes.Ready, "")...)).with(drains(run.DrainTarget{Name: "a"})),
			"1. plan shop/p (run maint-run-p-x, step drain): waits its turn: 0 before it (maxParallelOperations 1); in maintenance: b → its turn comes when one of them is released; or raise spec.nodes.maxParallelOperations " + config,
		},
		{
			"a plan's drain that waits longer than a request comes first", question(nodes.NodeLimits{}, cmdtest.Node("a"), cmdtest.Node("b", cmdtest.Asked("gpu", ""), cmdtest.Stood("gpu", nodes.Pending, "", func(s *nodes.Status) { s.Asked = cmdtest.Now().Add(-time.Minute) }))).with(drainsSince(cmdtest.Now().Add(-5*time.Minute), run.DrainTarget{Name: "a"})),
			"1. plan shop/p (run maint-run-p-x, step drain) has not begun it → it comes when its rollout gets to it",
		},
		{
			"a plan's drain that waits less long does not", question(nodes.NodeLimits{}, cmdtest.Node("a"), cmdtest.Node("b", cmdtest.Asked("gpu", ""), cmdtest.Stood("gpu", nodes.Pending, "", func(s *nodes.Status) { s.Asked = cmdtest.Now().Add(-5 * time.Minute) }))).with(drainsSince(cmdtest.Now().Add(-time.Minute), run.DrainTarget{Name: "a"})),
			"1. plan shop/p (run maint-run-p-x, step drain): waits its turn: 0 before it (maxParallelOperations 1) → its turn comes when one of them is released; or raise spec.nodes.maxParallelOperations " + config,
		},
		{
			"pods that never leave are in the way of a plan's drain", question(nodes.NodeLimits{}, cmdtest.Node("a")).with(drains(run.DrainTarget{Name: "a", Blocked: true, Why: "shop/db-0 cannot leave"})),
			"1. plan shop/p (run maint-run-p-x, step drain): Blocked: shop/db-0 cannot leave; the node is not cordoned, and others have their turn → 'kubectl maint drain a --plan' shows all that blocks it",
		},
		{
			"nothing at all begins", question(nodes.NodeLimits{MaxParallelOperations: 0}, cmdtest.Node("a", cmdtest.Asked("gpu", ""))),
			"1. gpu: maxParallelOperations is 0: no maintenance of nodes begins → set spec.nodes.maxParallelOperations " + config + " to at least 1",
		},
		{
			"enough nodes are away", question(nodes.NodeLimits{MaxUnavailable: "50%"}, cmdtest.Node("a", cmdtest.Asked("gpu", "")), cmdtest.Node("b", func(n *corev1.Node) { n.Spec.Unschedulable = true })),
			"1. gpu: maxUnavailable 50% of 2 nodes is 1, and 1 are unavailable or about to be → it goes on when enough nodes take pods again; or raise spec.nodes.maxUnavailable " + config,
		},
		{
			"the zone is full", question(nodes.NodeLimits{MaxParallelOperations: 5, ZoneLimit: 1}, cmdtest.Node("a", cmdtest.Asked("gpu", ""), cmdtest.Zoned("west")), cmdtest.Node("b", append(Held("other", nodes.Ready, ""), cmdtest.Zoned("west"))...)),
			"1. gpu: zone west already has 1 of 1: b → it goes on when one of them is released; or raise spec.nodes.zoneLimit " + config,
		},
		{
			"the window is closed", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", ""))).with(closedBy("policy night: outside of the windows", cmdtest.After(2*time.Hour))),
			"1. gpu: policy night: outside of the windows → permitted from Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m; or 'kubectl maint allow node/a --for 2h --reason …'",
		},
		{
			"a rollout waits for a window", question(nodes.NodeLimits{}, cmdtest.Node("a"), cmdtest.Node("b", Held("gpu", nodes.Ready, "")...)).with(rolls(run.Item{Name: "a"})).with(closedBy("policy night: outside of the windows", cmdtest.After(2*time.Hour))),
			"1. plan shop/p (run maint-run-p-x, step roll): policy night: outside of the windows → permitted from Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m; or 'kubectl maint allow node/a --for 2h --reason …'",
		},
		{
			"a bypass on the node lets the rollout pass", question(nodes.NodeLimits{}, cmdtest.Node("a")).with(rolls(run.Item{Name: "a"})).with(closedBy("policy night: outside of the windows", cmdtest.After(2*time.Hour))).with(lets("a", "maint-run-p-x")),
			"1. plan shop/p (run maint-run-p-x, step roll) has not begun it: 1 of 3 are done, 1 left; soaks until noon → it comes when its rollout gets to it",
		},
		{
			"a rollout waits for the end of a freeze", question(nodes.NodeLimits{}, cmdtest.Node("a")).with(rolls(run.Item{Name: "a"})).with(gate(nodes.Gate{Reason: "RestrictiveUntil 2026-11-21T02:00:00Z by jane: audit", Next: cmdtest.After(2 * time.Hour), Cause: schedule.Cause{Kind: schedule.CauseFreeze}})),
			"1. plan shop/p (run maint-run-p-x, step roll): RestrictiveUntil Sat 2026-11-21 03:00 CET by jane: audit → permitted from Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m; or 'kubectl maint freeze node/a --end'",
		},
		{
			"a policy that reads like a freeze", question(nodes.NodeLimits{}, cmdtest.Node("a")).with(rolls(run.Item{Name: "a"})).with(closedBy("RestrictiveUntil 2026-11-21T02:00:00Z by jane: audit", cmdtest.After(2*time.Hour))),
			"1. plan shop/p (run maint-run-p-x, step roll): RestrictiveUntil Sat 2026-11-21 03:00 CET by jane: audit → permitted from Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m; or 'kubectl maint allow node/a --for 2h --reason …'",
		},
		{
			"the node is paused", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", ""))).with(gate(nodes.GateWith(schedule.Pause{On: true}, nil, cmdtest.Now()))),
			"1. gpu: the node is paused → it stays so until somebody changes it; or 'kubectl maint resume node/a'",
		},
		{
			"the cluster is paused", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", ""))).with(gate(*nodes.ClosedBy([]schedule.Pause{{On: true}}, cmdtest.Now()))),
			"1. gpu: the whole cluster is paused → it stays so until somebody changes it; or 'kubectl maint resume --all -A'",
		},
		{
			"its drain could not end", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", ""), cmdtest.Stood("gpu", nodes.Pending, "Blocked: shop/db-0 cannot leave; the node is not cordoned, and others have their turn", cmdtest.ForGood("shop/db-0 cannot leave")))),
			"1. gpu: Blocked: shop/db-0 cannot leave; the node is not cordoned, and others have their turn → 'kubectl maint drain a --plan' shows all that blocks it; or ask with --on-timeout skip or force",
		},
		{
			"a pod on it may not leave", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", `{"drain":{"onTimeout":"force"}}`), cmdtest.Stood("gpu", nodes.Pending, "Blocked: shop/odd cannot leave", func(s *nodes.Status) {
				s.Blocked = &nodes.Block{Permanent: true, Refused: true, Text: "shop/odd cannot leave"}
			}))),
			"1. gpu: Blocked: shop/odd cannot leave; the node is not cordoned, and others have their turn → 'kubectl maint drain a --plan' shows all that blocks it; or ask with --on-timeout skip, which leaves those pods on the node",
		},
		{
			"its drain could not end, and has no limit", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", `{"drain":{"timeout":"0s"}}`), cmdtest.Stood("gpu", nodes.Pending, "Blocked: shop/db-0 cannot leave", cmdtest.ForGood("shop/db-0 cannot leave")))),
			"1. gpu: Blocked: shop/db-0 cannot leave; the node is not cordoned, and others have their turn → 'kubectl maint drain a --plan' shows all that blocks it; or ask with a --drain-timeout, and --on-timeout skip or force",
		},
		{
			"its drain leaves what does not leave", question(nodes.NodeLimits{}, cmdtest.Node("a", append(Held("gpu", nodes.Draining, "1 of 2 pods are left; tries until 2026-11-21T00:20:00Z", cmdtest.ForGood("shop/db-0 cannot leave")), cmdtest.Asked("gpu", `{"drain":{"onTimeout":"skip","timeout":"30m"}}`))...)),
			"gpu: Draining for 10m0s: 1 of 2 pods are left; tries until Sat 2026-11-21 01:20 CET\n1. gpu is blocked: shop/db-0 cannot leave → it tries until Sat 2026-11-21 01:20 CET, then leaves the pods that are still there and is Ready; 'kubectl maint drain a --plan' shows all that blocks it",
		},
		{
			"its drain is blocked for now", question(nodes.NodeLimits{}, cmdtest.Node("a", Held("gpu", nodes.Draining, "1 of 2 pods are left; Blocked for now: shop/db-0 cannot leave", func(s *nodes.Status) {
				s.Blocked = &nodes.Block{Text: "shop/db-0 cannot leave"}
			})...)),
			"gpu: Draining for 10m0s: 1 of 2 pods are left; Blocked for now: shop/db-0 cannot leave\n1. gpu is blocked for now: shop/db-0 cannot leave → it goes on by itself when that is over; 'kubectl maint drain a --plan' shows all that blocks it",
		},
		{
			"its drain does not end", question(nodes.NodeLimits{}, cmdtest.Node("a", Held("gpu", nodes.Draining, "1 of 2 pods are left; Blocked for good: shop/db-0 cannot leave", cmdtest.ForGood("shop/db-0 cannot leave"))...)),
			"gpu: Draining for 10m0s: 1 of 2 pods are left; Blocked for good: shop/db-0 cannot leave\n1. gpu is blocked for good: shop/db-0 cannot leave → 'kubectl maint drain a --plan' shows all that blocks it",
		},
		{
			"it waits behind another one on the node", question(nodes.NodeLimits{}, cmdtest.Node("a", append(Held("disk", nodes.Ready, "the node is its requestor's"), cmdtest.Asked("gpu", ""))...)),
			"disk: Ready for 10m0s: the node is its requestor's\n1. gpu: the node is disk's; waits until it is released → " + release("a", "disk") + " gives it back",
		},
		{
			"its requestor failed", question(nodes.NodeLimits{}, cmdtest.Node("a", append(Held("gpu", nodes.RequestorFailed, "no disk"), cmdtest.Asked("gpu", `{"failed":true}`))...)),
			"gpu: RequestorFailed for 10m0s: no disk\n1. gpu failed, and keeps the node out → it goes on when gpu has corrected its request; " + release("a", "gpu") + " gives the node back",
		},
		{
			"it was given up", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", "{}"), cmdtest.Stood("gpu", nodes.Pending, "the drain was aborted after 5m0s", func(s *nodes.Status) { s.Ended = &nodes.End{Why: nodes.EndAborted, Value: identity("{}")} }))),
			"1. gpu: the drain was aborted after 5m0s → " + release("a", "gpu") + ", then ask again; or ask for something else",
		},
		{
			"it cannot be read", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", "["))),
			"1. gpu: the request cannot be read: this is no JSON: unexpected EOF → fix the annotation request.maint.dev/gpu on node a",
		},
		{
			"somebody uncordoned it", question(nodes.NodeLimits{}, cmdtest.Node("a", append(Held("gpu", nodes.Draining, "somebody uncordoned the node"), cmdtest.CordonedFor(nodes.Cordon{By: []string{"gpu"}, Undone: true}), func(n *corev1.Node) { n.Spec.Unschedulable = false })...)),
			"gpu: Draining for 10m0s: somebody uncordoned the node\n1. somebody uncordoned the node while gpu had it: nothing more is drained → 'kubectl cordon a' lets it go on; " + release("a", "gpu") + " gives it back",
		},
		{
			"the node goes away", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", ""), func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: cmdtest.Now()} })),
			"1. gpu: the node is being deleted → nothing: there will be no such node",
		},
		{
			"a request that was taken back", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Stood("gpu", nodes.Ready, ""))),
			"gpu: being released, was Ready",
		},
		{
			"the limits may not be read", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", ""), cmdtest.Stood("gpu", nodes.Pending, "zone west is full")), cmdtest.Node("b", Held("other", nodes.Ready, "")...)).with(func(q *nodeQuestion) { q.rules.unread = errors.New("not for you") }),
			"1. gpu: Pending: zone west is full (the limits are not known here: not for you) → its turn comes when one of them is released; or raise spec.nodes.maxParallelOperations " + config,
		},
		{
			"the agent may not write nodes", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", "")), cmdtest.Node("b", cmdtest.Asked("disk", `{"priority":5}`))).with(func(q *nodeQuestion) { q.rules.withheld = "the agent may not patch nodes" }),
			"1. gpu: the agent may not patch nodes → " + release("a", "gpu") + " takes it back",
		},
		{
			"requests that are not carried out take no run's turn", question(nodes.NodeLimits{}, cmdtest.Node("a"), cmdtest.Node("b", Held("gpu", nodes.Ready, "")...)).with(rolls(run.Item{Name: "a"})).with(func(q *nodeQuestion) { q.rules.withheld = "the agent may not patch nodes" }),
			"1. plan shop/p (run maint-run-p-x, step roll) has not begun it: 1 of 3 are done, 1 left; soaks until noon → it comes when its rollout gets to it",
		},
		{
			"the agent's clock is in doubt", question(nodes.NodeLimits{}, cmdtest.Node("a")).with(rolls(run.Item{Name: "a"})).with(func(q *nodeQuestion) {
				q.rules.doubt, q.shut = "the clocks differ", &nodes.Gate{Reason: "the clocks differ"}
			}),
			"1. plan shop/p (run maint-run-p-x, step roll): the clocks differ → it goes on when the clocks of the agent and the API server agree again",
		},
		{
			"a rollout would not be through before the window closes", question(nodes.NodeLimits{}, cmdtest.Node("a")).with(rolls(run.Item{Name: "a"})).with(gate(nodes.Gate{Permitted: true, Next: cmdtest.After(time.Hour)})).with(func(q *nodeQuestion) { q.stepClaims[0].Needs = 2 * time.Hour }),
			"1. plan shop/p (run maint-run-p-x, step roll): it would take about 2h0m0s, and the node's window closes at Sat 2026-11-21 02:00 CET → it begins once the window is long enough for the step's estimate; or 'kubectl maint allow node/a --for 2h --reason …'",
		},
		{
			"the agent leaves the run alone for which it is cordoned", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/p"}}))).with(func(q *nodeQuestion) { q.alone = map[string]string{"plan:shop/p": "maint-run-p-x"} }),
			"1. it is cordoned for plan shop/p since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago, and the agent leaves its run maint-run-p-x alone → 'kubectl maint -n shop why maint-run-p-x' says why; or 'kubectl uncordon a'",
		},
		{
			"a rollout has it", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", ""))).with(rolls(run.Item{Name: "a", Phase: run.StepRunning})),
			"plan shop/p (run maint-run-p-x, step roll): at work\n1. gpu: the node is plan:shop/p's; waits until it is released → it goes on by itself when that is through with the node",
		},
		{
			"a rollout failed on it", question(nodes.NodeLimits{}, cmdtest.Node("a")).with(rolls(run.Item{Name: "a", Phase: run.StepFailed, Message: "no disk"})),
			"1. plan shop/p (run maint-run-p-x, step roll) failed here, and left the node as it is: no disk → fix it; the next run of the plan goes on with it, or 'kubectl uncordon a'",
		},
		{
			"a rollout is still to take it", question(nodes.NodeLimits{}, cmdtest.Node("a"), cmdtest.Node("b")).with(rolls(run.Item{Name: "b", Phase: run.StepSucceeded}, run.Item{Name: "a"})),
			"1. plan shop/p (run maint-run-p-x, step roll) has not begun it: 1 of 3 are done, 1 left; soaks until noon → it comes when its rollout gets to it",
		},
		{
			"a rollout waits for a place", question(nodes.NodeLimits{}, cmdtest.Node("a"), cmdtest.Node("b", Held("gpu", nodes.Ready, "")...)).with(rolls(run.Item{Name: "a"})),
			"1. plan shop/p (run maint-run-p-x, step roll): waits its turn: 0 before it (maxParallelOperations 1); in maintenance: b → its turn comes when one of them is released; or raise spec.nodes.maxParallelOperations " + config,
		},
		{
			"a rollout of other nodes takes the place", question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", "")), cmdtest.Node("b")).with(rolls(run.Item{Name: "b", Phase: run.StepRunning})),
			"1. gpu: waits its turn: 0 before it (maxParallelOperations 1); in maintenance: b → its turn comes when one of them is released; or raise spec.nodes.maxParallelOperations " + config,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := c.q.answer(aView())
			got := append([]string{}, answer.standing...)
			for i, found := range answer.obstacles {
				got = append(got, string(rune('1'+i))+". "+found.what+" → "+found.remedy)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The agent says in the reason alone that a drain is blocked. These are its words,
// from the core that writes them.
func TestHowTheAgentSaysThatADrainIsBlocked(t *testing.T) {
	q := question(nodes.NodeLimits{}, cmdtest.Node("a", cmdtest.Asked("gpu", "")))
	n := q.world.Nodes[0]
	n.Asked[0].Preview = nodes.Block{Permanent: true, Text: "shop/db-0 cannot leave"}
	q.world.Nodes[0] = n
	status := nodes.Advance(n, nodes.Rank(q.world).Turns("a"), q.world.Limits, cmdtest.Now()).Statuses["gpu"]
	n.Asked[0].Status = &status
	if got := n.Asked[0].Remembered(); got != n.Asked[0].Preview {
		t.Errorf("%+v, from %q", got, status.Reason)
	}

	facts := annotations.Node(cmdtest.Node("a", Held("gpu", nodes.Draining, "")...))
	order := nodes.Advance(facts, nil, q.world.Limits, cmdtest.Now()).Drain
	if order == nil {
		t.Fatal("no drain is ordered")
	}
	facts.Drain = nodes.Session{State: nodes.SessionRunning, Key: order.Key, Left: 1, Total: 2, Block: nodes.Block{Permanent: true, Text: "shop/db-0 cannot leave"}}
	status = nodes.Advance(facts, nil, q.world.Limits, cmdtest.Now()).Statuses["gpu"]
	if text, blocked := view.BlockedForGood(status); !blocked || text != "shop/db-0 cannot leave" {
		t.Errorf("%q, from %q", text, status.Reason)
	}
}
