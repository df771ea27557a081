package node_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// in puts a pod, or a budget, into another namespace.
func in(namespace string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Namespace = namespace } }

func budgetIn(namespace, app string, healthy int32) *policyv1.PodDisruptionBudget {
	b := cmdtest.BudgetOf(app, 2, healthy, 2, healthy)
	b.Namespace = namespace
	return b
}

// forbidsBudgets refuses to list the budgets of some namespaces; of all at once is "".
func forbidsBudgets(o *cmdtest.Cluster, namespaces ...string) {
	o.Kube.PrependReactor("list", "poddisruptionbudgets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		for _, namespace := range namespaces {
			if a.GetNamespace() == namespace {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, "", errors.New("not for you"))
			}
		}
		return false, nil, nil
	})
}

// A forecast that left out the budgets of a namespace would promise a drain that never ends.
func TestDrainPlanReadsTheBudgetsThatItMay(t *testing.T) {
	world := func() []runtime.Object {
		return []runtime.Object{
			cmdtest.Node("a"), cmdtest.Node("b"), cmdtest.Agent(), cmdtest.Pod("web-1", "a"), cmdtest.Pod("db-1", "a", in("data")), cmdtest.Pod("db-2", "b", in("data")),
			budgetIn("data", "db", 2), budgetIn("elsewhere", "web", 2),
		}
	}
	const blocked = "node/a  blocked until somebody changes something: 2 pods would leave, 0 would stay\n  would be evicted: data/db-1\n  would be evicted: shop/web-1\n" +
		"  blocked for good: data/db-1 by budget data/db: minAvailable is 2, and there are 2 pods\n    lower it, write maxUnavailable: 1 instead, or run one more replica\n"
	for _, c := range []struct {
		name, line string
		forbids    []string
		code       int
		out, err   string
		lists      int // of budgets
	}{
		{name: "all at once: that of another namespace is not for its pods", line: "drain a --plan", code: 3, out: blocked, lists: 1},
		{name: "by namespace, where all at once are refused", line: "drain a --plan", forbids: []string{""}, code: 3, out: blocked, lists: 3},
		{name: "of two nodes each namespace once", line: "drain a b --plan -o name", forbids: []string{""}, code: 3, out: "node/a\nnode/b\n", lists: 3},
		{name: "those of one namespace are refused: no forecast", line: "drain a --plan", forbids: []string{"", "data"}, code: 1, err: "Error from server (Forbidden): list the budgets of namespace data: poddisruptionbudgets.policy is forbidden: not for you\n", lists: 2},
		{name: "those of a namespace without pods on it are not asked for", line: "drain b --plan -o name", forbids: []string{"", "shop"}, code: 3, out: "node/b\n", lists: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, world()...)
			forbidsBudgets(o, c.forbids...)
			o.Line(c.line).Is(t, cmdtest.Printed{Code: c.code, Out: c.out, Err: c.err})
			lists := 0
			for _, a := range o.Kube.Actions() {
				if a.Matches("list", "poddisruptionbudgets") {
					lists++
				}
			}
			if lists != c.lists {
				t.Errorf("it listed budgets %d times, want %d", lists, c.lists)
			}
		})
	}
}

// Of several nodes one that will not be given ends nothing for the others, and is told at the end.
func TestDrainWaitsForAllOfItsNodes(t *testing.T) {
	withdrawn := func(n *corev1.Node) { n.Annotations = map[string]string{} }
	ready := func(o *cmdtest.Cluster, name string) {
		o.Become(name, cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane}, Drained: []nodes.Drained{{}}}), cmdtest.Stood(cmdtest.Jane, nodes.Ready, "the node is its requestor's"))
	}
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"), cmdtest.Node("b"))
	o.Told(map[string]func(){
		"node b: requested":     func() { o.Become("a", withdrawn) },
		"node a: not asked for": func() { ready(o, "b") },
	})
	got := o.Maint("drain", "a", "b", "--yes", "--wait")
	got.Is(t, cmdtest.Printed{
		Code: 1, Out: "2026-11-21T00:00:00Z node a: requested; the agent has not looked at it yet\n2026-11-21T00:00:00Z node b: requested; the agent has not looked at it yet\n2026-11-21T00:00:00Z node a: not asked for\n2026-11-21T00:00:00Z node b: Ready: the node is its requestor's\n",
		Err: "node/a requested for " + cmdtest.Jane + "\nnode/b requested for " + cmdtest.Jane + "\nerror: node a: somebody took the request of " + cmdtest.Jane + " back\n",
	})
}

// What may not be written is an error that names the node, and what was written before it stands.
func TestDrainAndReleaseWithoutTheRightToWrite(t *testing.T) {
	for _, c := range []struct {
		line string
		node *corev1.Node
	}{
		{"drain a --yes", cmdtest.Node("a")},
		{"release a", cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "{}"))},
	} {
		o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), c.node)
		o.Forbids("patch", "nodes", "")
		got := o.Line(c.line)
		if got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, "(Forbidden)") || !strings.Contains(got.Err, "node a") {
			t.Errorf("%s: %+v", c.line, got)
		}
		o.Has("a", c.node.Annotations)
	}
}

func TestReleaseRefusesACommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"release a -l pool=gpu":            "error: -l and names exclude each other\n",
		"release -l pool=gpu --all":        "error: --all excludes names and -l\n",
		"release a --timeout 5s":           "error: --timeout is for --wait\n",
		"release a --wait --timeout -5s":   "error: --timeout must not be negative\n",
		"release a --requestor X":          "error: --requestor: \"X\" is no name of a requestor: 2 to 63 lower-case letters, digits, - and ., a letter or digit first and last\n",
		"release --requestor X --wait a b": "error: --requestor: \"X\" is no name of a requestor: 2 to 63 lower-case letters, digits, - and ., a letter or digit first and last\n",
	} {
		cmdtest.Offline(t, cmd.Run, "", strings.Fields(line)...).Is(t, cmdtest.Printed{Code: 2, Err: want})
	}
}
