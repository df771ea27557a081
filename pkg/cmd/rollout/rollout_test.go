package rollout_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/rollout"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const claimant = "plan:shop/p"

// rolls is a run that goes through nodes, at most two of them away at once.
func rolls(items ...run.Item) view.Run {
	rec := cmdtest.Record("roll", plan.TypeForEachNode, run.StepRunning)
	rec.Items, rec.Listed, rec.Message = items, true, "1 of 4 are done, 2 left; waits: enough of its nodes are away already: a (failed here), b"
	r := cmdtest.RunOf(rec)
	r.Run.Spec.Steps = []plan.Step{{Name: "roll", Type: plan.TypeForEachNode, Properties: map[string]any{"maxUnavailable": 2, "onError": "continue", "steps": []any{}}}}
	return r
}

func cordoned(by ...string) func(*corev1.Node) { return cmdtest.CordonedFor(nodes.Cordon{By: by}) }

func unschedulable(n *corev1.Node) { n.Spec.Unschedulable = true }

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }

func held(requestor string) []func(*corev1.Node) {
	return []func(*corev1.Node){cmdtest.Asked(requestor, "{}"), cmdtest.Stood(requestor, nodes.Ready, ""), cordoned(requestor)}
}

func TestWhoTakesThePlacesOfARolloutAndWhatFreesEach(t *testing.T) {
	a, b, c := run.Item{Name: "a", Phase: run.StepFailed, Message: "no disk"}, run.Item{Name: "b"}, run.Item{Name: "c"}
	failed := cmdtest.Node("a", cordoned(claimant))
	just := cmdtest.Now()
	for _, row := range []struct {
		name  string
		items []run.Item
		fleet []*corev1.Node
		said  string // empty: it has room, or frees a place itself
		hand  string
		stuck bool
	}{
		{"a failed node and a requestor that is Ready", []run.Item{a, b, c}, []*corev1.Node{failed, cmdtest.Node("b", held("gpu")...), cmdtest.Node("c")}, "a (its steps failed), b (requestor gpu has it (Ready))", "'kubectl uncordon a', or 'kubectl maint release b --requestor gpu'", true},
		{"a failed node that another plan has, too", []run.Item{a, b, c}, []*corev1.Node{cmdtest.Node("a", cordoned(claimant, "plan:shop/other")), cmdtest.Node("b", held("gpu")...), cmdtest.Node("c")}, "a (its steps failed), b (requestor gpu has it (Ready))", "'kubectl maint why node/a', or 'kubectl maint release b --requestor gpu'", true},
		{"a failed node that another cluster has, too", []run.Item{a, b, c}, []*corev1.Node{cmdtest.Node("a", cordoned(claimant, nodes.PlanElsewhere("shop", "roll", "7b"))), cmdtest.Node("b", held("gpu")...), cmdtest.Node("c")}, "a (its steps failed), b (requestor gpu has it (Ready))", "'kubectl uncordon a' once it is given back by plan shop/roll of another cluster, or 'kubectl maint release b --requestor gpu'", true},
		{"what somebody cordoned", []run.Item{a, b, c}, []*corev1.Node{failed, cmdtest.Node("b", unschedulable), cmdtest.Node("c")}, "a (its steps failed), b (somebody cordoned it)", "'kubectl uncordon a', or 'kubectl uncordon b'", true},
		{"another plan's node comes back", []run.Item{a, b, c}, []*corev1.Node{failed, cmdtest.Node("b", cordoned("plan:shop/other")), cmdtest.Node("c")}, "a (its steps failed), b (plan shop/other has it)", "'kubectl uncordon a'", false},
		{"two that are not Ready", []run.Item{a, b, c}, []*corev1.Node{cmdtest.Node("a", notReady), cmdtest.Node("b", notReady), cmdtest.Node("c")}, "a (it is not Ready), b (it is not Ready)", "it goes on by itself when one of them comes back", false},
		{"a place is free", []run.Item{a, b, c}, []*corev1.Node{failed, cmdtest.Node("b"), cmdtest.Node("c")}, "", "", false},
		{"those that are left are away already: they cost nothing", []run.Item{a, b}, []*corev1.Node{failed, cmdtest.Node("b", held("gpu")...)}, "", "", false},
		{"one is at work", []run.Item{a, {Name: "b", Phase: run.StepRunning}, c}, []*corev1.Node{failed, cmdtest.Node("b", cordoned(claimant)), cmdtest.Node("c")}, "", "", false},
		{"of what an earlier run left, all but one place", []run.Item{{Name: "a"}, b, c}, []*corev1.Node{failed, cmdtest.Node("b", cordoned(claimant)), cmdtest.Node("c")}, "", "", false},
		{"the last one that is done is gone", []run.Item{{Name: "a", Phase: run.StepSucceeded, At: &just}, b, c}, []*corev1.Node{cmdtest.Node("b", held("gpu")...), cmdtest.Node("c")}, "", "", false},
		{"nodes may not be read", []run.Item{a, b, c}, nil, "", "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := rolls(row.items...)
			full := rollout.Of(r, row.fleet, cmdtest.Now().Add(time.Second), remedy.Commands{Name: "kubectl maint"})
			if row.said == "" {
				if len(full) > 0 {
					t.Errorf("%+v", full)
				}
				return
			}
			want := "step roll of run maint-run-p-x begins no other node, since all its places are taken: " + row.said
			if len(full) != 1 || full[0].Said(r) != want || full[0].Remedy() != row.hand || full[0].Stuck() != row.stuck {
				t.Errorf("%+v: %q, %q", full, full[0].Said(r), full[0].Remedy())
			}
		})
	}
}

func TestWhatFreesAPlaceNamesTheCluster(t *testing.T) {
	r := rolls(run.Item{Name: "a", Phase: run.StepFailed}, run.Item{Name: "b"}, run.Item{Name: "c"})
	fleet := []*corev1.Node{cmdtest.Node("a", cordoned(claimant)), cmdtest.Node("b", unschedulable), cmdtest.Node("c")}
	full := rollout.Of(r, fleet, cmdtest.Now().Add(time.Second), remedy.Commands{Name: "kubectl maint", Namespace: "shop", ClusterFlags: "--context prod"})
	const want = "'kubectl --context prod uncordon a', or 'kubectl --context prod uncordon b'"
	if len(full) != 1 || full[0].Remedy() != want {
		t.Errorf("%+v", full)
	}
}

// Whoever looks at the plan is told, and somebody is asked.
func TestARolloutWhosePlacesAreTakenNeedsSomebody(t *testing.T) {
	r := rolls(run.Item{Name: "a", Phase: run.StepFailed}, run.Item{Name: "b"}, run.Item{Name: "c"})
	orders := cmdtest.Plan("orders", "")
	o := cmdtest.NewCluster(
		t, cmd.Run, cmdtest.Agent(), orders, cmdtest.Ledger(ledger.Ledger{}), cmdtest.RunObject(r, "maint-run-orders-a"),
		cmdtest.Node("a", cordoned("plan:shop/orders")), cmdtest.Node("b", held("gpu")...), cmdtest.Node("c"),
	)
	const said = "step roll of run maint-run-orders-a begins no other node, since all its places are taken: a (its steps failed), b (requestor gpu has it (Ready))\n"
	const hand = "'kubectl uncordon a', or 'kubectl maint release b --requestor gpu'\n"
	if got := o.Line("why orders"); got.Code != 3 || !strings.Contains(got.Out, "1. "+said+"   "+hand) || strings.Contains(got.Out, "why NODE") {
		t.Errorf("%+v", got)
	}
	if got := o.Line("status"); !strings.Contains(got.Out, "Needs somebody:\n  orders  "+said+"    "+hand) {
		t.Errorf("%+v", got)
	}
	o.Forbids("list", "nodes", "")
	if got := o.Line("why orders"); got.Code != 3 || !strings.Contains(got.Out, "waits: enough of its nodes are away already: a (failed here), b\n") {
		t.Errorf("%+v", got)
	}
}

// Nodes are looked at where a run of the plan may have cordoned some, wherever in it the step stands.
func TestWhichPlansMayLeaveNodesCordoned(t *testing.T) {
	drain := plan.Step{Name: "out", Type: plan.TypeDrain, Properties: map[string]any{"node": "a"}}
	group := plan.Step{Name: "both", Type: "step-group", Properties: map[string]any{"steps": []any{map[string]any{"name": "out", "type": "drain", "properties": map[string]any{"node": "a"}}}}}
	for name, c := range map[string]struct {
		spec plan.Spec
		may  bool
	}{
		"a drain":       {plan.Spec{Steps: []plan.Step{drain}}, true},
		"in a group":    {plan.Spec{Steps: []plan.Step{group}}, true},
		"in its end":    {plan.Spec{Steps: []plan.Step{{Name: "call", Type: "webhook"}}, Finally: []plan.Step{drain}}, true},
		"in a template": {plan.Spec{Steps: []plan.Step{{Name: "call", Type: plan.TemplatePrefix + "out"}}}, true},
		"nowhere":       {plan.Spec{Steps: []plan.Step{{Name: "call", Type: "webhook"}}}, false},
	} {
		object := cmdtest.Plan("p", "")
		left := rollout.LeftCordoned(view.Plan{Object: object, Spec: c.spec}, func() ([]*corev1.Node, error) {
			return []*corev1.Node{cmdtest.Node("a", unschedulable, cordoned(claimant)), cmdtest.Node("b", unschedulable, cordoned("somebody"))}, nil
		})
		if got := len(left) == 1 && left[0].Name == "a"; got != c.may {
			t.Errorf("%s: %v", name, left)
		}
	}
}
