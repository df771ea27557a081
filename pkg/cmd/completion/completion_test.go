package completion_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestCompletionOffersNames(t *testing.T) {
	began := cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepRunning), cmdtest.Record("check", "health-check", run.StepPending))
	began.Run.Plan = "orders"
	o := cmdtest.NewCluster(t, nil, cmdtest.Plan("orders", "parameters: [{name: mode}, {name: size}]"), cmdtest.Plan("reports", ""), cmdtest.Namespace("shop"), cmdtest.Namespace("ops"), cmdtest.Policy("night", "{}"), cmdtest.Node("a"), cmdtest.Node("b"),
		cmdtest.RunObject(began, "maint-run-orders-a"), cmdtest.RunObject(cmdtest.PendingRun(), "maint-run-orders-b"))
	f := factory.NewFor(env(), o.Connected())
	notA := func(m metav1.ObjectMeta) bool { return m.Name != "a" }
	for _, c := range []struct {
		name      string
		completer completion.Func
		given     []string
		word      string
		want      []string
	}{
		{name: "plans", completer: completion.Plans(f, nil), want: []string{"orders", "reports"}},
		{name: "plans that are not given yet", completer: completion.Plans(f, nil), given: []string{"orders"}, want: []string{"reports"}},
		{name: "plans to keep", completer: completion.Plans(f, func(m metav1.ObjectMeta) bool { return m.Name == "orders" }), want: []string{"orders"}},
		{name: "documents of two kinds", completer: completion.Kinds(f, annotations.KindPlan, annotations.KindPolicy), want: []string{"night", "orders", "reports"}},
		{name: "with their kind before them", completer: completion.Kinds(f, annotations.KindPlan, annotations.KindPolicy), word: "policy/", want: []string{"policy/night"}},
		{name: "with their kind before them, which are not given yet", completer: completion.Kinds(f, annotations.KindPlan, annotations.KindPolicy), word: "plan/", given: []string{"plan/orders"}, want: []string{"plan/reports"}},
		{name: "as objects of any kind", completer: completion.Kinds(f, annotations.KindPlan, annotations.KindPolicy), word: "cm/n", want: []string{"cm/night"}},
		{name: "of a kind that the command does not take", completer: completion.Plans(f, nil), word: "policy/"},
		{name: "runs of a phase", completer: completion.Runs(f, run.Pending), want: []string{"maint-run-orders-b"}},
		{name: "runs of the plan that is named", completer: completion.RunsOfPlan(f, run.Pending, run.Running), given: []string{"plan/orders"}, want: []string{"maint-run-orders-a", "maint-run-orders-b"}},
		{name: "runs of another plan", completer: completion.RunsOfPlan(f, run.Pending, run.Running), given: []string{"reports"}},
		{name: "runs before a plan is named", completer: completion.RunsOfPlan(f, run.Pending), want: []string{"maint-run-orders-b"}},
		{name: "nodes", completer: completion.Nodes(f, nil), want: []string{"a", "b"}},
		{name: "nodes to keep", completer: completion.Nodes(f, notA), want: []string{"b"}},
		{name: "nodes as they are written", completer: completion.Nodes(f, nil), word: "nodes/", want: []string{"nodes/a", "nodes/b"}},
		{name: "nodes that begin so", completer: completion.Nodes(f, nil), word: "b", want: []string{"b"}},
		{name: "nodes that are not given yet, however they are written", completer: completion.Nodes(f, nil), given: []string{"node/a"}, want: []string{"b"}},
		{name: "namespaces", completer: completion.Namespaces(f), want: []string{"ops", "shop"}},
		{name: "namespaces that begin so", completer: completion.Namespaces(f), word: "sh", want: []string{"shop"}},
		{name: "parameters of the plan", completer: completion.Parameters(f), given: []string{"orders"}, want: []string{"mode=", "size="}},
		{name: "parameters that begin so", completer: completion.Parameters(f), given: []string{"orders"}, word: "mo", want: []string{"mode="}},
		{name: "parameters of no plan: nothing", completer: completion.Parameters(f), given: []string{"ghost"}},
		{name: "parameters before a plan is named: nothing", completer: completion.Parameters(f)},
		{name: "steps of a run", completer: completion.Steps(f), given: []string{"orders-a"}, want: []string{"call", "check"}},
		{name: "steps of the newest run of a plan", completer: completion.Steps(f), given: []string{"plan/orders"}, word: "a", want: []string{"ask"}},
		{name: "names from a table", completer: completion.Plans(tables(f, nil), nil), word: "a", want: []string{"a"}},
		{name: "names from a table that are not given yet", completer: completion.Plans(tables(f, nil), nil), word: "co", given: []string{"b"}, want: []string{"configmaps shop maint.dev/kind=plan"}},
		{name: "what is kept needs the metadata", completer: completion.Plans(tables(f, nil), func(metav1.ObjectMeta) bool { return true }), want: []string{"c", "configmaps shop maint.dev/kind=plan"}},
		{name: "of what few begin with, the metadata of those", completer: completion.Plans(tables(f, nil), func(metav1.ObjectMeta) bool { return true }), word: "b", want: []string{"b of configmaps shop maint.dev/kind=plan"}},
		{name: "with their kind before them", completer: completion.Plans(tables(f, nil), func(metav1.ObjectMeta) bool { return true }), word: "plan/b", want: []string{"plan/b of configmaps shop maint.dev/kind=plan,maint.dev/kind in (plan,hibernate-plan)"}},
		{name: "of what many begin with, all metadata", completer: completion.Plans(tables(f, nil), func(metav1.ObjectMeta) bool { return true }), word: "c", want: []string{"c", "configmaps shop maint.dev/kind=plan"}},
		{name: "one of few whose metadata is refused: nothing", completer: completion.Plans(tables(f, nil), func(metav1.ObjectMeta) bool { return true }), word: "refused"},
		{name: "metadata that is refused: nothing", completer: completion.Plans(tables(f, errors.New("no")), func(metav1.ObjectMeta) bool { return true })},
		{name: "a table that is refused: nothing", completer: completion.Plans(tables(f, errors.New("no")), nil)},
		{name: "both", completer: completion.Both(completion.Plans(f, nil), completion.Nodes(f, nil)), want: []string{"orders", "reports", "a", "b"}},
		{name: "without a cluster: nothing", completer: completion.Plans(broken(t), nil)},
		{name: "without a cluster: no nodes", completer: completion.Nodes(broken(t), nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := &cobra.Command{}
			cmd.SetContext(t.Context())
			got, directive := c.completer(cmd, c.given, c.word)
			if diff := cmp.Diff(c.want, got); diff != "" || directive&cobra.ShellCompDirectiveNoFileComp == 0 {
				t.Errorf("directive %d (-want +got):\n%s", directive, diff)
			}
		})
	}
}

// broken has a kubeconfig that cannot be read.
func broken(t *testing.T) *factory.Factory {
	f := factory.New(env())
	*f.Config.KubeConfig = t.TempDir()
	return f
}

func TestNodesThatSomethingIsSaidOf(t *testing.T) {
	for _, c := range []struct {
		name                 string
		node                 *corev1.Node
		maintained, governed bool
	}{
		{"a node that nobody speaks of", cmdtest.Node("a"), false, false},
		{"one that is asked for", cmdtest.Node("a", cmdtest.Asked("gpu", "")), true, false},
		{"one that is being released", cmdtest.Node("a", cmdtest.Noted(annotations.StatusRequestPrefix+"gpu", "{}")), true, false},
		{"one that is cordoned for a plan", cmdtest.Node("a", cmdtest.Noted(annotations.StatusCordoned, "{}")), true, false},
		{"one with a policy", cmdtest.Node("a", cmdtest.Noted(annotations.ChangePolicy, "maint-system/night")), false, true},
		{"one that is paused", cmdtest.Node("a", cmdtest.Noted(annotations.Pause, "true")), false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if m, g := completion.Maintained(c.node.ObjectMeta), completion.Governed(c.node.ObjectMeta); m != c.maintained || g != c.governed {
				t.Errorf("maintained %v, governed %v", m, g)
			}
		})
	}
}

// tables answers with the names a, b, nine that begin with c and one whose metadata is refused, with
// the metadata of c or of the one that is named, and with what was asked for.
func tables(f *factory.Factory, err error) *factory.Factory {
	k, _ := f.Connect()
	other := *k
	other.Cached = &kube.Cached{
		Names: func(_ context.Context, resource, namespace, selector string) ([]string, error) {
			return []string{"a", "b", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "refused", resource + " " + namespace + " " + selector}, err
		},
		Metadata: func(_ context.Context, resource, namespace string, of kube.Some) ([]metav1.ObjectMeta, error) {
			asked := resource + " " + namespace + " " + of.Selector
			switch of.Name {
			case "":
				return []metav1.ObjectMeta{{Name: "c"}, {Name: asked}}, err
			case "refused":
				return nil, errors.New("no")
			}
			return []metav1.ObjectMeta{{Name: of.Name + " of " + asked}}, err
		},
	}
	return factory.NewFor(f.Env, &other)
}

func env() factory.Env {
	return factory.Env{Name: "kubectl maint", Now: cmdtest.Now, Zone: "Europe/Berlin"}
}
