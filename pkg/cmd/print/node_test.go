package print

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// nodeOf is what is known of node a, behind which no policy stands.
func nodeOf(edits ...func(*corev1.Node)) view.Node {
	n := cmdtest.Node("a", edits...)
	book := policy.NewResolver("maint-system")
	in := annotations.Intent(n.Annotations)
	return view.Node{Node: annotations.Node(n), Subject: view.NewSubject("node", "", "a", "Europe/Berlin", book.Gate(in.Query("", nil)))}
}

func TestThePictureOfANode(t *testing.T) {
	const open = "Window:    open (no strategy is set)"
	ten := "since Sat 2026-11-21 00:50 CET (2026-11-20T23:50:00Z), 10m0s ago"
	rolled := nodeOf()
	rolled.StepClaims = []view.StepClaim{{Run: cmdtest.RunOf(), Path: "roll", Node: "a", Phase: run.StepFailed, Message: "no disk"}}
	cordonedFor := func(phase run.StepPhase) view.Node {
		n := nodeOf(cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/p"}}))
		n.StepClaims = []view.StepClaim{{Run: cmdtest.RunOf(), Path: "roll", Node: "a", Phase: phase, Message: "no disk"}}
		return n
	}
	for _, c := range []struct {
		name string
		node view.Node
		want []string
	}{
		{"nobody asks for it", nodeOf(), []string{"Node:      a  Ready", "Requests:  nobody asks for it", open}},
		{"in a zone, not ready and being deleted", nodeOf(cmdtest.Zoned("b"), func(n *corev1.Node) {
			n.Status.Conditions, n.DeletionTimestamp = nil, &metav1.Time{Time: cmdtest.Now()}
		}), []string{"Node:      a  NotReady, is being deleted", "Zone:      b", "Requests:  nobody asks for it", open}},
		{"cordoned by somebody", nodeOf(func(n *corev1.Node) { n.Spec.Unschedulable = true }), []string{"Node:      a  Ready, unschedulable", "Cordoned:  not by us: it stays so after any maintenance; 'kubectl uncordon a' opens it", "Requests:  nobody asks for it", open}},
		{"cordoned by somebody who is known", func() view.Node {
			n := nodeOf(func(n *corev1.Node) { n.Spec.Unschedulable = true })
			n.Cordoners = []annotations.CordonWriter{{Manager: "kubectl", At: cmdtest.Now().Add(-10 * time.Minute)}}
			return n
		}(), []string{"Node:      a  Ready, unschedulable", "Cordoned:  not by us, but by kubectl at " + strings.TrimPrefix(ten, "since ") + ": it stays so after any maintenance; 'kubectl uncordon a' opens it", "Requests:  nobody asks for it", open}},
		{"cordoned for two", nodeOf(cmdtest.CordonedFor(nodes.Cordon{By: []string{"gpu", "plan:ops/roll"}})), []string{
			"Node:      a  Ready, unschedulable", "Cordoned:  for gpu, plan ops/roll, " + ten, "           it was schedulable before, and stays as it is: no run of plan ops/roll goes on with it; the plan's next run does, or 'kubectl uncordon a'", "Requests:  nobody asks for it", open,
		}},
		{"cordoned for a plan that is gone", func() view.Node {
			n := nodeOf(cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:ops/roll"}}))
			n.Gone = []string{"plan:ops/roll"}
			return n
		}(), []string{
			"Node:      a  Ready, unschedulable", "Cordoned:  for plan ops/roll, " + ten, "           it was schedulable before, and stays as it is: there is no plan ops/roll any more, and nobody else uncordons it: 'kubectl uncordon a'", "Requests:  nobody asks for it", open,
		}},
		{"cordoned for a plan that is gone, and for a drain", func() view.Node {
			n := nodeOf(cmdtest.Asked("gpu", ""), cmdtest.Stood("gpu", nodes.Draining, "2 pods are left"), cmdtest.CordonedFor(nodes.Cordon{By: []string{"gpu", "plan:ops/roll"}}))
			n.Gone = []string{"plan:ops/roll"}
			return n
		}(), []string{
			"Node:      a  Ready, unschedulable", "Cordoned:  for gpu, plan ops/roll, " + ten, "           it was schedulable before, and stays as it is: there is no plan ops/roll any more, and nobody else uncordons it: 'kubectl uncordon a' once it is given back by gpu", "Requests:  gpu  Draining for 10m0s: 2 pods are left", open,
		}},
		{"cordoned for a plan without a run, and for a drain", nodeOf(cmdtest.Asked("gpu", ""), cmdtest.Stood("gpu", nodes.Draining, "2 pods are left"), cmdtest.CordonedFor(nodes.Cordon{By: []string{"gpu", "plan:ops/roll"}})), []string{
			"Node:      a  Ready, unschedulable", "Cordoned:  for gpu, plan ops/roll, " + ten, "           it was schedulable before, and stays as it is: no run of plan ops/roll goes on with it; the plan's next run does, or 'kubectl uncordon a' once it is given back by gpu", "Requests:  gpu  Draining for 10m0s: 2 pods are left", open,
		}},
		{"cordoned for a requestor", nodeOf(cmdtest.CordonedFor(nodes.Cordon{By: []string{"gpu"}})), []string{
			"Node:      a  Ready, unschedulable", "Cordoned:  for gpu, " + ten, "           it was schedulable before, and is again when the last one leaves", "Requests:  nobody asks for it", open,
		}},
		{"cordoned for a run that failed on it", cordonedFor(run.StepFailed), []string{
			"Node:      a  Ready, unschedulable", "Cordoned:  for plan shop/p, " + ten, "           it was schedulable before, and stays as it is: no run of plan shop/p goes on with it; the plan's next run does, or 'kubectl uncordon a'", "Requests:  nobody asks for it", "Rollouts:  plan shop/p (run maint-run-p-x, step roll)  failed, and left as it is: no disk", open,
		}},
		{"cordoned for a run that the agent leaves alone", func() view.Node {
			n := nodeOf(cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:ops/roll"}}))
			n.Alone = map[string]string{"plan:ops/roll": "maint-run-roll-x"}
			return n
		}(), []string{
			"Node:      a  Ready, unschedulable", "Cordoned:  for plan ops/roll, " + ten, "           it was schedulable before, and stays as it is: the agent leaves run maint-run-roll-x of plan ops/roll alone; 'kubectl maint -n ops why maint-run-roll-x' says why, or 'kubectl uncordon a'", "Requests:  nobody asks for it", open,
		}},
		{"cordoned for a run that is at work on it", cordonedFor(run.StepRunning), []string{
			"Node:      a  Ready, unschedulable", "Cordoned:  for plan shop/p, " + ten, "           it was schedulable before, and is again when the last one leaves", "Requests:  nobody asks for it", "Rollouts:  plan shop/p (run maint-run-p-x, step roll)  at work", open,
		}},
		{"cordoned, and it was before", nodeOf(cmdtest.CordonedFor(nodes.Cordon{By: []string{"gpu"}, Before: true})), []string{
			"Node:      a  Ready, unschedulable", "Cordoned:  for gpu, " + ten, "           it was cordoned before, and stays so afterwards", "Requests:  nobody asks for it", open,
		}},
		{"uncordoned by somebody", nodeOf(cmdtest.CordonedFor(nodes.Cordon{By: []string{"gpu"}, Undone: true}), func(n *corev1.Node) { n.Spec.Unschedulable = false }), []string{
			"Node:      a  Ready", "Cordoned:  for gpu, " + ten, "           somebody uncordoned it since: that is left as it is", "Requests:  nobody asks for it", open,
		}},
		{"with pods that are counted", nodeOf(cmdtest.Asked("gpu", ""), cmdtest.Stood("gpu", nodes.WaitingForPods, "waits for app=important", cmdtest.Progress(2, 5))), []string{
			"Node:      a  Ready", "Requests:  gpu  WaitingForPods for 10m0s: waits for app=important (2/5 pods left)", open,
		}},
		{"that the agent has not looked at", nodeOf(cmdtest.Asked("gpu", "")), []string{"Node:      a  Ready", "Requests:  gpu  requested; the agent has not looked at it yet", open}},
		{"being released", nodeOf(cmdtest.Stood("gpu", nodes.Ready, "")), []string{"Node:      a  Ready", "Requests:  gpu  being released, was Ready", open}},
		{"that a rollout left", rolled, []string{"Node:      a  Ready", "Requests:  nobody asks for it", "Rollouts:  plan shop/p (run maint-run-p-x, step roll)  failed, and left as it is: no disk", open}},
		{"frozen for a while", nodeOf(cmdtest.Noted(annotations.ChangeStrategy, "RestrictiveUntil"), cmdtest.Noted(annotations.RestrictiveUntil, "2026-11-21T06:00:00Z")), []string{
			"Node:      a  Ready", "Requests:  nobody asks for it", "Window:    closed until Sat 2026-11-21 07:00 CET (2026-11-21T06:00:00Z), in 6h0m (RestrictiveUntil Sat 2026-11-21 07:00 CET)",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, offlineView().NodeLines(c.node)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheCellsOfANodeThatIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		claim view.NodeClaim
		want  []string
	}{
		{view.NodeClaim{Node: "a", By: "gpu", Phase: "Draining", Left: "3/12", Reason: "two\nlines", Since: *cmdtest.Before(time.Hour)}, []string{"a", "gpu", "Draining", "1h0m", "3/12", "two; lines"}},
		{view.NodeClaim{Node: "worker-10", By: "plan ops/roll", Phase: "Running"}, []string{"worker-10", "plan ops/roll", "Running", "", "", ""}},
	} {
		if diff := cmp.Diff(c.want, offlineView().ClaimCells(c.claim)); diff != "" || len(c.want) != len(ClaimColumns()) {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestANodeInPlainLines(t *testing.T) {
	for _, c := range []struct {
		name string
		node view.Node
		want []Update
	}{
		{"nobody asks", nodeOf(), []Update{{Of: "node/a", Text: "node a: nobody asks for it"}}},
		{"one asks", nodeOf(cmdtest.Asked("gpu", ""), cmdtest.Stood("gpu", nodes.Pending, "waits its turn")), []Update{{Of: "node/a/gpu", Text: "node a: gpu: Pending: waits its turn"}}},
		{"one is tried until an instant", nodeOf(cmdtest.Asked("gpu", ""), cmdtest.Stood("gpu", nodes.Pending, "tries until 2026-11-21T00:20:00Z")), []Update{{Of: "node/a/gpu", Text: "node a: gpu: Pending: tries until Sat 2026-11-21 01:20 CET"}}},
		{"a plan left it cordoned", nodeOf(cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:ops/roll"}})), []Update{{Of: "node/a/plan ops/roll", Text: "node a: plan ops/roll: Cordoned: no run of that plan has it now"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, atNow().NodeUpdates(c.node)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAForecastForPeople(t *testing.T) {
	wait := drain.Block{Pods: []string{"shop/b-0"}, Budgets: []string{"shop/b"}, Why: "one pod is not Ready", Remedy: "it goes by itself"}
	for _, c := range []struct {
		name     string
		forecast drain.Forecast
		want     []string
	}{
		{"nothing leaves", drain.Forecast{}, []string{"node/a  possible: 0 pods would leave, 0 would stay"}},
		{"one leaves, one stays", drain.Forecast{Total: 1, Groups: []drain.Group{{Evict: []string{"shop/b-0"}}}, Skipped: []drain.RemainingPod{{Pod: "kube-system/proxy", Why: "DaemonSet"}}}, []string{
			"node/a  possible: 1 pod would leave, 1 would stay", "  would be evicted: shop/b-0", "  stays: kube-system/proxy (DaemonSet)",
		}},
		{"in two orders, in every way", drain.Forecast{Total: 6, Groups: []drain.Group{
			{Order: 0, Evict: []string{"shop/b-0"}, Surge: []string{"shop/c-0"}},
			{Order: 5, Await: []string{"shop/d-0"}, Leaves: []string{"shop/e-0"}},
			{Order: drain.LastOrder, Evict: []string{"maint-system/agent-0"}, Await: []string{"maint-system/agent-1"}},
		}}, []string{
			"node/a  possible: 6 pods would leave, 0 would stay", "  order 0, would be evicted: shop/b-0", "  order 0, would be replaced, then evicted: shop/c-0", "  order 5, would be left to finish: shop/d-0", "  order 5, shuts down already: shop/e-0",
			"  last, would be evicted: maint-system/agent-0 (the agent's own pod; another replica is Ready elsewhere)",
			"  last: maint-system/agent-1 (the agent's own pod; it is evicted once another replica is Ready elsewhere, and stays where none can be)",
		}},
		{"after some waiting", drain.Forecast{Total: 1, Blocks: []drain.Block{wait}}, []string{
			"node/a  possible, after some waiting: 1 pod would leave, 0 would stay", "  blocked for now: shop/b-0 by budget shop/b: one pod is not Ready", "    it goes by itself",
		}},
		{"never", drain.Forecast{Total: 2, Blocks: []drain.Block{{Permanent: true, Pods: []string{"shop/b-0"}, Count: 2, Budgets: []string{"shop/b"}, Why: "maxUnavailable: 0", Remedy: "raise it"}}}, []string{
			"node/a  blocked until somebody changes something: 2 pods would leave, 0 would stay", "  blocked for good: shop/b-0 and 1 more by budget shop/b: maxUnavailable: 0", "    raise it",
		}},
		{"pods that are refused, with what helps, and others", drain.Forecast{
			Total: 1, Refused: []drain.RemainingPod{{Pod: "shop/x", Why: "no controller"}, {Pod: "shop/y", Why: "emptyDir"}},
			Blocks: []drain.Block{{Permanent: true, Pods: []string{"shop/x"}, Count: 1, Why: "no controller", Remedy: "use --force"}},
		}, []string{
			"node/a  blocked until somebody changes something: 1 pod would leave, 0 would stay", "  refused: shop/x (no controller)", "    use --force", "  refused: shop/y (emptyDir)",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, offlineView().ForecastLines(view.NewForecast("a", c.forecast))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// printed is what a list of two plans looks like with some flags.
func printed(t *testing.T, flags ...string) string {
	t.Helper()
	o := NewOutput()
	cmd := &cobra.Command{}
	o.AddFlags(cmd)
	if err := cmd.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	var faults exit.Faults
	if o.Check(&faults); len(faults) > 0 {
		return strings.Join(faults, "\n")
	}
	planOf := func(cm *corev1.ConfigMap) view.Plan { return view.Plan{Object: cm} }
	table := NewTable(Column{Name: "Plan"}, Column{Name: "Phase"}, Column{Name: "Message", Wide: true})
	orders, reports := cmdtest.Plan("orders", ""), cmdtest.Plan("reports", "")
	AddRow(table, orders, "orders", "Idle", "")
	AddRow(table, reports, "reports", "", "none")
	var out bytes.Buffer
	values := func() ([]Value, error) {
		return []Value{DocumentValue(orders, planOf, nil, cmdtest.Now()), DocumentValue(reports, planOf, nil, cmdtest.Now())}, nil
	}
	if err := o.Print(&out, table, KindDocumentList, values); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestListsArePrintedAsKubectlPrintsThem(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
		want  string
	}{
		{"as a table", nil, "PLAN      PHASE\norders    Idle\nreports   <none>\n"},
		{"with all columns", []string{"-o", "wide"}, "PLAN      PHASE    MESSAGE\norders    Idle     <none>\nreports   <none>   none\n"},
		{"without headers", []string{"--no-headers"}, "orders    Idle\nreports   <none>\n"},
		{"names", []string{"-o", "name"}, "configmap/orders\nconfigmap/reports\n"},
		{"by a path", []string{"-o", "jsonpath={.items[*].metadata.name}"}, "orders reports"},
		{"by columns of one's own", []string{"-o", "custom-columns=N:.metadata.name,S:.metadata.namespace"}, "N         S\norders    shop\nreports   shop\n"},
		{"by a template", []string{"-o", "go-template={{len .items}}"}, "2"},
		{"by no format of ours", []string{"-o", "xml"}, "-o must be one of custom-columns, custom-columns-file, go-template, go-template-file, json, jsonpath, jsonpath-as-json, jsonpath-file, kyaml, name, template, templatefile, wide, yaml, is \"xml\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, printed(t, c.flags...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, format := range []string{"json", "yaml"} {
		if got := printed(t, "-o", format); !strings.Contains(got, "orders") || !strings.Contains(got, "kind: DocumentList") && !strings.Contains(got, `"kind": "DocumentList"`) {
			t.Errorf("%s: %s", format, got)
		}
	}
}

func TestListsOfOurOwnValues(t *testing.T) {
	slot := cmdtest.Now()
	values := func() ([]Value, error) {
		return []Value{{Kind: "Ledger", Body: view.LedgerItem{Plan: "shop/orders", Slot: &slot, Result: "Ran", At: slot}}}, nil
	}
	o := NewOutput()
	cmd := &cobra.Command{}
	o.AddFlags(cmd)
	if err := cmd.ParseFlags([]string{"-o", "jsonpath={.apiVersion} {.kind} {.items[0].plan} {.items[0].slot}"}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := o.Print(&out, NewTable(), "LedgerList", values); err != nil || out.String() != "maint.dev/v1alpha1 LedgerList shop/orders 2026-11-21T00:00:00Z" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
