package factory_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func clusterOf(t *testing.T, objects ...runtime.Object) (*cmdtest.Cluster, *factory.Cluster) {
	o := cmdtest.NewCluster(t, nil, objects...)
	return o, &factory.Cluster{Kube: o.Kube, Metadata: o.Connected().Metadata, Namespace: "shop"}
}

func factoryOf() *factory.Factory {
	return factory.New(factory.Env{Name: "kubectl maint", Now: cmdtest.Now, Zone: "Europe/Berlin"})
}

// Whether a node might have the name does not change what is known of a run that is gone.
func TestARunThatIsGoneIsKnown(t *testing.T) {
	kept := cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{{Run: "maint-run-orders-x", Result: run.Ran, Outcome: &ledger.Outcome{Phase: run.Succeeded}}}})
	for name, forbids := range map[string]string{"nodes are read": "", "nodes may not be read": "nodes"} {
		o, k := clusterOf(t, cmdtest.Node("maint-run-orders-y"), cmdtest.Plan("orders", ""), kept)
		if forbids != "" {
			o.Forbids("get", forbids, "")
		}
		_, err := k.Find(t.Context(), "maint-run-orders-x", annotations.KindPlan, annotations.KindRun)
		if gone := (*factory.GoneRunError)(nil); !errors.As(err, &gone) || gone.Entry.Outcome.Phase != run.Succeeded || strings.Contains(err.Error(), "node") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatANameFinds(t *testing.T) {
	world := []runtime.Object{cmdtest.Plan("orders", ""), cmdtest.Plan("both", ""), cmdtest.Policy("night", "{}"), cmdtest.Node("worker-1"), cmdtest.Node("both"), cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-a")}
	for _, c := range []struct {
		name, arg string
		forbids   string // getting
		want      string
		code      int
		err       string
	}{
		{name: "a plan", arg: "orders", want: "configmap orders"},
		{name: "a plan by its kind", arg: "plan/both", want: "configmap both"},
		{name: "a policy by its kind", arg: "policy/night", want: "configmap night"},
		{name: "a ConfigMap, as kubectl prints it", arg: "configmap/orders", want: "configmap orders"},
		{name: "a node", arg: "worker-1", want: "node worker-1"},
		{name: "a node by its kind", arg: "node/both", want: "node both"},
		{name: "nodes, as people write it", arg: "nodes/worker-1", want: "node worker-1"},
		{name: "no, as kubectl abbreviates it", arg: "no/worker-1", want: "node worker-1"},
		{name: "two of one name", arg: "both", code: 2, err: "both is a plan in namespace shop, and a node: write plan/both or node/both"},
		{name: "a plan that is no node", arg: "plan/worker-1", code: 1, err: `there is no plan "worker-1" in namespace shop; see 'kubectl maint list'`},
		{name: "a policy by the kind of all documents", arg: "cm/night", want: "configmap night"},
		{name: "a plan that is no policy", arg: "policy/orders", code: 1, err: "shop/orders is a plan and no policy; see 'kubectl maint list policies'"},
		{name: "a policy that is no plan", arg: "Plans/night", code: 1, err: "shop/night is a policy and no plan; see 'kubectl maint list'"},
		{name: "a plan that is of the other kind", arg: "hibernate-plan/orders", code: 1, err: "shop/orders is a plan and no HibernatePlan; see 'kubectl maint list'"},
		{name: "a run, which is not asked for", arg: "run/orders-a", code: 1, err: "shop/maint-run-orders-a is a run and no plan or policy; see 'kubectl maint list'"},
		{name: "no policy of that name", arg: "policy/nigh", code: 1, err: `there is no policy "nigh" in namespace shop; did you mean "night"?`},
		{name: "nothing", arg: "ghost", code: 1, err: `there is no plan or policy "ghost" in namespace shop; see 'kubectl maint list'; nor is there a node of that name`},
		{name: "what begins alike is suggested", arg: "nightly", code: 1, err: `there is no plan or policy "nightly" in namespace shop; did you mean "night"?`},
		{name: "what shares three letters is suggested", arg: "ordinal", code: 1, err: `there is no plan or policy "ordinal" in namespace shop; did you mean "orders"?`},
		{name: "a slip of the pen in a node's name", arg: "worker-11", code: 1, err: `there is no plan or policy "worker-11" in namespace shop; see 'kubectl maint list'; or did you mean node/worker-1?`},
		{name: "no node", arg: "node/ghost", code: 1, err: `there is no node "ghost"; 'kubectl get nodes' shows which there are`},
		{name: "a node with a slip of the pen", arg: "node/worker-11", code: 1, err: `there is no node "worker-11"; did you mean "worker-1"?`},
		{name: "who may not read nodes, and names nothing else", arg: "worker-1", forbids: "nodes", code: 1, err: `there is no plan or policy "worker-1" in namespace shop; see 'kubectl maint list' (you may not read nodes: whether it is one is not known)`},
		{name: "who may not read nodes means a plan", arg: "both", forbids: "nodes", want: "configmap both"},
		{name: "who may not read nodes, and names one", arg: "node/worker-1", forbids: "nodes", code: 1, err: "read node worker-1: nodes is forbidden: not for you"},
		{name: "who may not read plans", arg: "plan/orders", forbids: "configmaps", code: 1, err: "read plan orders: configmaps is forbidden: not for you"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, k := clusterOf(t, world...)
			if c.forbids != "" {
				o.Forbids("get", c.forbids, "")
			}
			found, err := k.Find(t.Context(), c.arg, annotations.KindPlan, annotations.KindPolicy)
			got := ""
			switch {
			case err != nil:
			case found.Node != nil:
				got = "node " + found.Node.Name
			case found.Document != nil:
				got = "configmap " + found.Document.Name
			}
			if err = exit.Coded(t.Context(), err); got != c.want || cmdtest.ErrText(err) != c.err || exit.CodeOf(err) != c.code {
				t.Errorf("%q, %d, %v", got, exit.CodeOf(err), err)
			}
		})
	}
}

// Nodes are listed for a guess alone: not where the answer is another one.
func TestNodesAreNotListedForWhatIsNoQuestionOfNames(t *testing.T) {
	o, k := clusterOf(t)
	o.Forbids("get", "configmaps", "")
	k.Cached = &kube.Cached{Names: func(_ context.Context, resource, _, _ string) ([]string, error) {
		t.Errorf("all %s were listed", resource)
		return nil, nil
	}}
	if _, err := k.Find(t.Context(), "worker-1", annotations.KindPlan); cmdtest.ErrText(err) != "read plan worker-1: configmaps is forbidden: not for you" {
		t.Error(err)
	}
}

// Five hundred runs, whose names come first, hide no plan, and of thousands of objects only names are asked for.
func TestTheNearestOfVeryManyNames(t *testing.T) {
	o, k := clusterOf(t)
	o.Forbids("list", "*", "")
	k.Cached = &kube.Cached{Names: func(_ context.Context, resource, _, selector string) ([]string, error) {
		var names []string
		for i := range 501 {
			switch {
			case resource == "nodes":
				names = append(names, fmt.Sprintf("a-%03d", i))
			case selector == annotations.LabelKind+"="+annotations.KindRun:
				names = append(names, fmt.Sprintf("maint-run-backup-%010d", i))
			}
		}
		switch {
		case resource == "nodes":
			names = append(names, "worker-1", "worker-2")
		case selector == annotations.LabelKind+" in (plan,policy)":
			names = append(names, "backup-db", "orders")
		}
		return names, nil
	}}
	for _, c := range []struct{ name, arg, want string }{
		{"a plan", "ordres", `there is no plan or policy or run "ordres" in namespace shop; did you mean "orders"?`},
		{"a plan whose runs begin as it does", "backup", `there is no plan or policy or run "backup" in namespace shop; did you mean "backup-db"?`},
		{"a run", "maint-run-backup-0000009500", `there is no plan or policy or run "maint-run-backup-0000009500" in namespace shop; did you mean "maint-run-backup-0000000500"?`},
		{"a run without its prefix", "bakcup-0000000500", `there is no plan or policy or run "bakcup-0000000500" in namespace shop; did you mean "backup-0000000500"?`},
	} {
		_, err := k.Document(t.Context(), c.arg, annotations.KindPlan, annotations.KindPolicy, annotations.KindRun)
		if cmdtest.ErrText(err) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := k.Find(t.Context(), "node/wroker-2"); cmdtest.ErrText(err) != `there is no node "wroker-2"; did you mean "worker-2"?` {
		t.Error(err)
	}
}

// Who lacks a right to read is told what to ask for; what only quotes the error goes without.
func TestWhoMayNotReadIsToldWhatWouldHelp(t *testing.T) {
	o, k := clusterOf(t)
	for _, verb := range []string{"get", "list"} {
		o.Forbids(verb, "configmaps", "")
		o.Forbids(verb, "nodes", "")
	}
	_, document := k.Plan(t.Context(), "orders")
	_, plans := k.Plans(t.Context(), "shop", "")
	_, everywhere := k.Plans(t.Context(), "", "")
	_, nodes := k.Nodes(t.Context(), "")
	for _, c := range []struct {
		err  error
		want string
	}{
		{document, "Error from server (Forbidden): read plan orders: configmaps is forbidden: not for you; the ClusterRole view in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may"},
		{plans, "Error from server (Forbidden): list plans: configmaps is forbidden: not for you; the ClusterRole view in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may"},
		{everywhere, "Error from server (Forbidden): list plans: configmaps is forbidden: not for you; -n NAMESPACE asks for one namespace alone"},
		{nodes, "Error from server (Forbidden): list nodes: nodes is forbidden: not for you; a ClusterRole with get, list and watch on nodes would let you; 'kubectl auth can-i --list' shows what you may"},
	} {
		if got := strings.Join(exit.Lines(c.err, ""), "\n"); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// Who lacks a right to write is told so, too.
func TestWhoMayNotWriteIsToldWhatWouldHelp(t *testing.T) {
	o, k := clusterOf(t, cmdtest.Plan("orders", ""), cmdtest.Node("a"))
	for _, resource := range []string{"configmaps", "nodes"} {
		o.Forbids("patch", resource, "")
	}
	o.Forbids("get", "secrets", "")
	cm, err := k.Plan(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	pause := factory.Change{annotations.Pause: factory.Value("true")}
	plan := k.Annotate(t.Context(), cm, &factory.DryRun{}, func(*corev1.ConfigMap) (factory.Change, error) { return pause, nil })
	_, node := k.AnnotateNode(t.Context(), cmdtest.Node("a"), &factory.DryRun{}, func(*corev1.Node) (factory.Change, error) { return pause, nil })
	_, key := factoryOf().Keyring(t.Context(), k)
	for _, c := range []struct {
		err  error
		want string
	}{
		{plan, "Error from server (Forbidden): write to shop/orders: configmaps is forbidden: not for you; the ClusterRole edit in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may"},
		{node, "Error from server (Forbidden): write to node a: nodes is forbidden: not for you; a ClusterRole with patch on nodes would let you; 'kubectl auth can-i --list' shows what you may"},
		{key, "Error from server (Forbidden): read the agent's key: secrets is forbidden: not for you; a Role with get on secrets in namespace maint-system would let you; 'kubectl -n maint-system auth can-i --list' shows what you may"},
	} {
		if got := strings.Join(exit.Lines(c.err, ""), "\n"); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

func TestADocumentOfAnotherKindSaysWhatItIs(t *testing.T) {
	_, k := clusterOf(t, cmdtest.Policy("night", "{}"), cmdtest.Plan("orders", ""))
	if _, err := k.Plan(t.Context(), "night"); cmdtest.ErrText(err) != "shop/night is a policy and no plan; see 'kubectl maint list'" {
		t.Error(err)
	}
	for kind, want := range map[string]string{
		annotations.KindRun:    "shop/orders is a plan and no run; see 'kubectl maint list runs'",
		annotations.KindPolicy: "shop/orders is a plan and no policy; see 'kubectl maint list policies'",
	} {
		if _, err := k.Document(t.Context(), "orders", kind); cmdtest.ErrText(err) != want {
			t.Error(err)
		}
	}
	_, missing := clusterOf(t)
	if _, err := missing.Plan(t.Context(), "night"); !errors.As(err, new(factory.NotFoundError)) || !strings.HasSuffix(err.Error(), "in namespace shop: there is no such namespace; 'kubectl get namespaces' shows which there are") {
		t.Error(err)
	}
	_, empty := clusterOf(t, cmdtest.Namespace("shop"))
	if _, err := empty.Plan(t.Context(), "night"); !errors.As(err, new(factory.NotFoundError)) || !strings.HasSuffix(err.Error(), "the namespace has none: choose another with -n, or see all with 'kubectl maint list -A'") {
		t.Error(err)
	}
}

func TestNodesNamed(t *testing.T) {
	world := []runtime.Object{cmdtest.Node("b", cmdtest.Zoned("x")), cmdtest.Node("a", cmdtest.Zoned("x")), cmdtest.Node("c"), cmdtest.Node("worker-1"), cmdtest.Node("worker-2")}
	for _, c := range []struct {
		name     string
		names    []string
		selector string
		forbids  string // verb
		want     string
		err      string
	}{
		{name: "by name, in order and each once", names: []string{"c", "node/a", "a"}, want: "a c"},
		{name: "by labels", selector: corev1.LabelTopologyZone + "=x", want: "a b"},
		{name: "all", want: "a b c worker-1 worker-2"},
		{name: "labels that pick none", selector: "pool=gpu", err: "-l pool=gpu picks no node; 'kubectl get nodes --show-labels' shows which there are"},
		{name: "one that is not there", names: []string{"a", "x"}, err: `there is no node "x"; 'kubectl get nodes' shows which there are; nothing was done`},
		{name: "two that are not there", names: []string{"y", "a", "x"}, err: "there are no nodes x, y; 'kubectl get nodes' shows which there are; nothing was done"},
		{name: "two that are misspelt", names: []string{"wroker-2", "wroker-1"}, err: `there are no nodes wroker-1, wroker-2; did you mean "worker-1", "worker-2"?; nothing was done`},
		{name: "two, of which one is misspelt", names: []string{"ghost", "wroker-1"}, err: `there are no nodes ghost, wroker-1; did you mean "worker-1"?; 'kubectl get nodes' shows which there are; nothing was done`},
		{name: "who may not read", names: []string{"a"}, forbids: "get", err: "read node a: nodes is forbidden: not for you"},
		{name: "who may not list", forbids: "list", err: "list nodes: nodes is forbidden: not for you"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, k := clusterOf(t, world...)
			if c.forbids != "" {
				o.Forbids(c.forbids, "nodes", "")
			}
			list, err := k.NodesNamed(t.Context(), c.names, c.selector)
			var names []string
			for _, n := range list {
				names = append(names, n.Name)
			}
			if got := strings.Join(names, " "); got != c.want || cmdtest.ErrText(err) != c.err {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// An intent on a node is decided on the node as it stands when it is written.
func TestAnIntentOnANode(t *testing.T) {
	patch := func(err error) func(*cmdtest.Cluster) {
		return func(o *cmdtest.Cluster) {
			o.Kube.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		}
	}
	conflict := apierrors.NewConflict(corev1.Resource("nodes"), "a", errors.New("it has been modified"))
	invalid := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), "a", nil)
	for _, c := range []struct {
		name   string
		mode   string
		before func(*cmdtest.Cluster)
		asked  int
		want   string // the annotation after it
		err    string
	}{
		{name: "it is written", asked: 1, want: "true"},
		{name: "a trial on the client writes nothing", mode: "client", asked: 1},
		{name: "somebody else wrote first: it is decided again", before: func(o *cmdtest.Cluster) {
			o.Conflicts("nodes", func() { o.Stores("nodes", cmdtest.Node("a", cmdtest.Noted("other", "x"))) })
		}, asked: 2, want: "true"},
		{name: "the node was deleted meanwhile", before: func(o *cmdtest.Cluster) {
			o.Conflicts("nodes", func() {
				if err := o.Kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", "a"); err != nil {
					o.Error(err)
				}
			})
		}, asked: 1, err: "node a was deleted, or created again, meanwhile: look at it and ask again"},
		{name: "the node was created again meanwhile", before: func(o *cmdtest.Cluster) {
			o.Conflicts("nodes", func() { o.Stores("nodes", cmdtest.Node("a", func(n *corev1.Node) { n.UID = "another" })) })
		}, asked: 1, err: "node a was deleted, or created again, meanwhile: look at it and ask again"},
		{name: "admission says no", before: patch(invalid), asked: 1, err: "write to node a: Node \"a\" is invalid"},
		{name: "who may not write", before: func(o *cmdtest.Cluster) { o.Forbids("patch", "nodes", "") }, asked: 1, err: "write to node a: nodes is forbidden: not for you"},
		{name: "who may not read again", before: func(o *cmdtest.Cluster) { patch(conflict)(o); o.Forbids("get", "nodes", "") }, asked: 1, err: "read again what somebody changed meanwhile: nodes is forbidden: not for you"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, k := clusterOf(t, cmdtest.Node("a"))
			if c.before != nil {
				c.before(o)
			}
			asked := 0
			_, err := k.AnnotateNode(t.Context(), cmdtest.Node("a"), &factory.DryRun{Mode: c.mode}, func(*corev1.Node) (factory.Change, error) {
				asked++
				return factory.Change{annotations.Pause: factory.Value("true")}, nil
			})
			if asked != c.asked || cmdtest.ErrText(err) != c.err {
				t.Fatalf("asked %d times, %v", asked, err)
			}
			if c.err == "" {
				want := map[string]string{}
				if c.want != "" {
					want[annotations.Pause] = c.want
				}
				if c.asked == 2 {
					want["other"] = "x"
				}
				o.Has("a", want)
			}
		})
	}
}

func TestRunsAreFoundByTheirPlan(t *testing.T) {
	at := func(name string, age time.Duration) *corev1.ConfigMap {
		r := cmdtest.RunOf()
		r.Run.Request.At = *cmdtest.Before(age)
		return cmdtest.RunObject(r, name)
	}
	ended := cmdtest.RunOf()
	ended.Journal.Phase, ended.Run.Request.At = run.Succeeded, *cmdtest.Before(3 * time.Hour)
	broken := at("maint-run-orders-x", time.Hour)
	broken.Data = nil
	o, k := clusterOf(t, at("maint-run-orders-b", time.Hour), at("maint-run-orders-a", 2*time.Hour), cmdtest.RunObject(ended, "maint-run-orders-c"), broken, cmdtest.RollsThrough(t, ""))
	names := func(ask func() ([]string, error)) string {
		got, err := ask()
		return strings.TrimSpace(strings.Join(got, " ") + " " + cmdtest.ErrText(err))
	}
	list := func(namespace, plan string, more ...string) func() ([]string, error) {
		return func() (out []string, err error) {
			runs, err := k.Runs(t.Context(), namespace, plan, more...)
			for _, r := range runs {
				out = append(out, r.Run.Name)
			}
			return out, err
		}
	}
	active := func() (out []string, err error) {
		runs, unseen, err := k.ActiveRuns(t.Context())
		for _, r := range runs {
			out = append(out, r.Run.Name)
		}
		if unseen.Some {
			out = append(out, "and others than in "+unseen.But)
		}
		return out, err
	}
	got := []string{names(list("shop", "orders")), names(list("shop", "orders", factory.ActiveOnly)), names(list("", "roll")), names(active)}
	o.Forbids("list", "configmaps", "shop")
	got = append(got, names(list("shop", "orders")))
	o2, k2 := clusterOf(t, at("maint-run-orders-a", 0), cmdtest.RollsThrough(t, ""))
	k = k2
	o2.Kube.PrependReactor("list", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetNamespace() == "", nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil)
	})
	got = append(got, names(active))
	want := []string{
		"maint-run-orders-c maint-run-orders-a maint-run-orders-b", "maint-run-orders-a maint-run-orders-b", "maint-run-roll-x", "maint-run-roll-x maint-run-orders-a maint-run-orders-b",
		"list runs: configmaps is forbidden: not for you", "maint-run-orders-a and others than in shop",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLedgers(t *testing.T) {
	cm := cmdtest.Plan("orders", "")
	head := cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{{Run: "new", Result: run.Ran}}})
	archive := cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{{Run: "old", Result: run.Ran}}})
	archive.Name = annotations.ArchiveName("orders", "u-orders")
	foreign := head.DeepCopy()
	foreign.Labels = nil
	for _, c := range []struct {
		name    string
		objects []runtime.Object
		forbids bool
		want    string // runs of the archive and of the ledger
		err     string
	}{
		{name: "none yet"},
		{name: "one", objects: []runtime.Object{head}, want: "new"},
		{name: "one with an archive", objects: []runtime.Object{head, archive}, want: "old new"},
		{name: "somebody else's object of its name", objects: []runtime.Object{foreign}, err: "shop/" + head.Name + " is not ours: it lacks the label maint.dev/kind: ledger; delete or rename it"},
		{name: "who may not read", forbids: true, err: "read the ledger of orders: configmaps is forbidden: not for you"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, k := clusterOf(t, c.objects...)
			if c.forbids {
				o.Forbids("get", "configmaps", "")
			}
			kept, err := k.Ledger(t.Context(), cm)
			var runs []string
			for _, e := range kept.Closed {
				runs = append(runs, e.Run)
			}
			if got := strings.Join(runs, " "); got != c.want || cmdtest.ErrText(err) != c.err {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	o, k := clusterOf(t, head)
	o.Forbids("list", "configmaps", "")
	if _, err := k.Ledgers(t.Context(), "shop"); cmdtest.ErrText(err) != "list ledgers: configmaps is forbidden: not for you" {
		t.Error(err)
	}
}

func TestTheAgentIsFoundWhereverItRuns(t *testing.T) {
	elsewhere := cmdtest.Agent()
	elsewhere.Namespace = "tools"
	holder, since := elsewhere.Data["identity"], metav1.NewMicroTime(cmdtest.Now())
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "tools", Name: annotations.LeaseName}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &since, RenewTime: &since}}
	for _, c := range []struct {
		name, named string
		objects     []runtime.Object
		want        string
		missing     bool
	}{
		{name: "in the usual namespace", objects: []runtime.Object{cmdtest.Agent()}, want: "maint-system"},
		{name: "in another one", objects: []runtime.Object{elsewhere, lease}, want: "tools"},
		{name: "in one that is named", named: "tools", objects: []runtime.Object{elsewhere, cmdtest.Agent()}, want: "tools"},
		{name: "not in the one that is named", named: "ops", objects: []runtime.Object{elsewhere}, want: "ops", missing: true},
		{name: "nowhere", want: "maint-system", missing: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, k := clusterOf(t, c.objects...)
			f := factoryOf()
			f.AgentNamespace = c.named
			s, err := f.Agent(t.Context(), k)
			if err != nil || s.Namespace != c.want || (s.Missing != "") != c.missing {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

func TestErrorsOfTheAPIServerInWords(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api/v1/nodes?limit=1", Err: errors.New("connection refused")}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"none", nil, ""},
		{"it cannot be reached", refused, "list nodes: the API server at https://10.0.0.1:6443 cannot be reached: connection refused; 'kubectl cluster-info' tries it, 'kubectl config get-contexts' lists others"},
		{"interrupted on the way", &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api", Err: context.Canceled}, `list nodes: Get "https://10.0.0.1:6443/api": context canceled`},
		{"forbidden", apierrors.NewForbidden(corev1.Resource("nodes"), "", nil), "list nodes: nodes is forbidden: <nil>"},
		{"no time left", fmt.Errorf("client rate limiter Wait returned an error: %w", context.DeadlineExceeded), "list nodes: no time was left to ask the API server"},
		{"anything else", errors.New("etcd is full"), "list nodes: etcd is full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := cmdtest.ErrText(new(factory.Cluster).Explain("list nodes", c.err)); got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestWhoActsMayBeUnknown(t *testing.T) {
	o, k := clusterOf(t)
	if got := k.Actor(t.Context()); got != "Jane@example.com" {
		t.Error(got)
	}
	o.Forbids("create", "selfsubjectreviews", "")
	if got := k.Actor(t.Context()); got != "" {
		t.Error(got)
	}
}

func TestDryRun(t *testing.T) {
	for _, c := range []struct {
		flags  []string
		fault  string
		mark   string
		client bool
		sent   []string
	}{
		{flags: nil},
		{flags: []string{"--dry-run=none"}},
		{flags: []string{"--dry-run"}, mark: " (dry run)", client: true},
		{flags: []string{"--dry-run=client"}, mark: " (dry run)", client: true},
		{flags: []string{"--dry-run=server"}, mark: " (server dry run)", sent: []string{metav1.DryRunAll}},
		{flags: []string{"--dry-run=true"}, fault: `--dry-run: "true" is not one of none, client, server`},
	} {
		t.Run(fmt.Sprint(c.flags), func(t *testing.T) {
			var d factory.DryRun
			cmd := &cobra.Command{}
			d.AddFlag(cmd)
			if err := cmd.ParseFlags(c.flags); err != nil {
				t.Fatal(err)
			}
			var faults exit.Faults
			d.Check(&faults)
			got := []any{strings.Join(faults, ""), d.Mark(), d.Client(), d.Options().DryRun, d.Options().FieldManager}
			if diff := cmp.Diff([]any{c.fault, c.mark, c.client, c.sent, annotations.ManagerCLI}, got); diff != "" && c.fault == "" || c.fault != got[0] {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// stages is a command that fails at one of its stages.
type stages struct {
	fails string
	err   error
	ran   []string
}

func (s *stages) at(stage string) error {
	s.ran = append(s.ran, stage)
	if s.fails == stage {
		return s.err
	}
	return nil
}

func (s *stages) Complete(*cobra.Command, []string) error { return s.at("complete") }
func (s *stages) Validate() error                         { return s.at("validate") }
func (s *stages) Run(context.Context) error               { return s.at("run") }

func TestACommandRunsInThreeStages(t *testing.T) {
	for _, c := range []struct {
		name, fails string
		err         error
		ran         string
		code        int
	}{
		{"all goes well", "", nil, "complete validate run", 0},
		{"what is asked for cannot be completed", "complete", errors.New("no"), "complete", 1},
		{"the command line is wrong", "validate", exit.Faults{"PLAN is missing"}.Err(), "complete validate", 2},
		{"it fails", "run", errors.New("no"), "complete validate run", 1},
		{"it is not permitted", "run", exit.Errorf(3, "not now"), "complete validate run", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &stages{fails: c.fails, err: c.err}
			cmd := &cobra.Command{RunE: factory.RunE(s), SilenceErrors: true, SilenceUsage: true}
			cmd.SetArgs(nil)
			err := cmd.ExecuteContext(t.Context())
			if got := strings.Join(s.ran, " "); got != c.ran || exit.CodeOf(err) != c.code {
				t.Errorf("ran %s, %d", got, exit.CodeOf(err))
			}
		})
	}
}

func TestOneName(t *testing.T) {
	for _, c := range []struct {
		args        []string
		want, fault string
	}{
		{[]string{"orders"}, "orders", ""}, {nil, "", "PLAN is missing; --help shows examples"}, {[]string{"a", "b"}, "", "one PLAN at a time, not 2"}, {[]string{""}, "", "one PLAN at a time, not 1"},
	} {
		var f exit.Faults
		if got := factory.OneName(c.args, "PLAN", &f); got != c.want || strings.Join(f, "") != c.fault {
			t.Errorf("%q: %q, %v", c.args, got, f)
		}
	}
}

func TestConnect(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	const text = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c, namespace: shop}}]\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, want, err string
	}{
		{"a kubeconfig with a namespace", config, "shop", ""},
		{"one that is not there", filepath.Join(t.TempDir(), "none"), "", "no cluster is configured: there is no kubeconfig FOLDER; set KUBECONFIG to an existing file, or give --kubeconfig; 'kubectl config get-contexts' shows what kubectl finds"},
		{"a folder", t.TempDir(), "", "read kubeconfig: error loading config file \"FOLDER\": read FOLDER: is a directory; 'kubectl config get-contexts' shows what kubectl finds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", c.path)
			k, err := factoryOf().Connect()
			if strings.ReplaceAll(cmdtest.ErrText(err), c.path, "FOLDER") != c.err || err == nil && k.Namespace != c.want {
				t.Errorf("%+v, %v", k, err)
			}
		})
	}
	t.Setenv("KUBECONFIG", config)
	for given, want := range map[string]string{"": "'kubectl maint describe x'", "shop": "'kubectl maint describe x'", "ops": "'kubectl maint -n ops describe x'"} {
		f := factoryOf()
		f.Name, *f.Config.Namespace = "kubectl maint", given
		if _, err := f.Connect(); err != nil || f.Suggest().Describe("x") != want || f.Suggest().Install() != "'kubectl maint install --apply'" {
			t.Errorf("-n %q: %s, want %s; %v", given, f.Suggest().Describe("x"), want, err)
		}
	}
	if err := factoryOf().NoCluster(clientcmd.NewEmptyConfigError("")); err.Error() != "no cluster is configured: set KUBECONFIG or give --kubeconfig" {
		t.Error(err)
	}
	if err := factoryOf().NoCluster(errors.New("line 3: no YAML")); err.Error() != "read kubeconfig: line 3: no YAML; 'kubectl config get-contexts' shows what kubectl finds" {
		t.Error(err)
	}
	f := factoryOf()
	f.Name, *f.Config.Context, *f.Config.KubeConfig = "kubectl maint", "a", config
	if _, err := f.Connect(); err != nil || f.Suggest().Describe("x") != "'kubectl maint --context a --kubeconfig "+config+" describe x'" || f.Suggest().Lint() != "'kubectl maint lint -f FILE'" {
		t.Errorf("another cluster: %s, %s; %v", f.Suggest().Describe("x"), f.Suggest().Lint(), err)
	}
	as := factoryOf()
	as.Name, *as.Config.KubeConfig, *as.Config.Impersonate, *as.Config.ImpersonateUID, *as.Config.ImpersonateGroup = "kubectl maint", config, "jane doe", "7", []string{"team:red", "b c"}
	const who = `--as jane\ doe --as-group b\ c --as-group team:red --as-uid 7 --kubeconfig `
	if _, err := as.Connect(); err != nil || as.Suggest().Describe("x") != "'kubectl maint "+who+config+" describe x'" || as.Suggest().Get("nodes") != "'kubectl "+who+config+" get nodes'" || as.Suggest().Contexts() != "'kubectl --kubeconfig "+config+" config get-contexts'" {
		t.Errorf("another user: %s, %s; %v", as.Suggest().Describe("x"), as.Suggest().Get("nodes"), err)
	}
	spaced := filepath.Join(t.TempDir(), "my config")
	if err := os.WriteFile(spaced, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f = factoryOf()
	f.Name, *f.Config.KubeConfig = "kubectl maint", spaced
	if _, err := f.Connect(); err != nil || f.Suggest().Describe("x") != "'kubectl maint --kubeconfig "+strings.ReplaceAll(spaced, " ", `\ `)+" describe x'" {
		t.Errorf("a name that a shell would take apart: %s; %v", f.Suggest().Describe("x"), err)
	}
}

func TestOfflineDefaults(t *testing.T) {
	f := factoryOf()
	if f.OfflineAgent() != "maint-system" || f.OfflineNamespace() != "default" {
		t.Errorf("%s, %s", f.OfflineAgent(), f.OfflineNamespace())
	}
	*f.Config.Namespace, f.AgentNamespace = "shop", "tools"
	if f.OfflineAgent() != "tools" || f.OfflineNamespace() != "shop" {
		t.Errorf("%s, %s", f.OfflineAgent(), f.OfflineNamespace())
	}
}

func TestANodeThatIsNearlyThereIsSuggested(t *testing.T) {
	for _, c := range []struct{ name, asked, want string }{
		{"one letter too much", "node-00", `there is no node "node-00"; did you mean "node-0"?; nothing was done`},
		{"one letter for another", "node-x", `there is no node "node-x"; did you mean "node-0"?; nothing was done`},
		{"nothing alike", "worker", `there is no node "worker"; 'kubectl get nodes' shows which there are; nothing was done`},
		{"too short to be like anything", "x", `there is no node "x"; 'kubectl get nodes' shows which there are; nothing was done`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, k := clusterOf(t, cmdtest.Node("node-0"), cmdtest.Node("a"))
			if _, err := k.NodesNamed(t.Context(), []string{c.asked}, ""); cmdtest.ErrText(err) != c.want {
				t.Errorf("said %q", cmdtest.ErrText(err))
			}
		})
	}
}

// client-go would look for a cluster on this machine, and say that its port is refused.
func TestAKubeconfigThatNamesNoClusterIsNamed(t *testing.T) {
	missing, empty := filepath.Join(t.TempDir(), "missing"), filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const next = "; set KUBECONFIG to an existing file, or give --kubeconfig; 'kubectl config get-contexts' shows what kubectl finds"
	for files, want := range map[string]string{
		missing:               "no cluster is configured: there is no kubeconfig " + missing + next,
		empty:                 "no cluster is configured: no current context names a cluster in kubeconfig " + empty + next,
		missing + ":" + empty: "no cluster is configured: no current context names a cluster in kubeconfig " + empty + next,
	} {
		t.Setenv("KUBECONFIG", files)
		if _, err := factoryOf().Connect(); cmdtest.ErrText(err) != want {
			t.Errorf("KUBECONFIG=%s: %v", files, err)
		}
	}
	f := factoryOf()
	*f.Config.APIServer = "http://localhost:8080"
	if _, err := f.Connect(); err != nil {
		t.Errorf("a server that was asked for: %v", err)
	}
}

// kubectl proxy serves where client-go would look by itself.
func TestACurrentContextMayNameTheProxyOfThisMachine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	const text = "apiVersion: v1\nkind: Config\n%s" +
		"contexts: [{name: proxy, context: {cluster: here}}, {name: none, context: {}}, {name: bare, context: {cluster: bare}}]\n" +
		"clusters: [{name: here, cluster: {server: 'http://localhost:8080'}}, {name: bare, cluster: {}}]\n"
	refused := "no cluster is configured: no current context names a cluster in kubeconfig " + file + "; set KUBECONFIG to an existing file, or give --kubeconfig; 'kubectl config get-contexts' shows what kubectl finds"
	for name, c := range map[string]struct{ current, context, cluster, master, want string }{
		"the current context":                  {current: "proxy"},
		"a context that was asked for":         {current: "bare", context: "proxy"},
		"a cluster that was asked for":         {cluster: "here"},
		"the environment":                      {master: "http://localhost:8080"},
		"the current context is of no cluster": {current: "none", want: refused},
		"its cluster has no server":            {current: "bare", want: refused},
		"one that was asked for has none":      {current: "proxy", cluster: "bare", want: refused},
		"there is no current context":          {want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			current := ""
			if c.current != "" {
				current = "current-context: " + c.current + "\n"
			}
			if err := os.WriteFile(file, fmt.Appendf(nil, text, current), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("KUBECONFIG", file)
			t.Setenv("KUBERNETES_MASTER", c.master)
			f := factoryOf()
			*f.Config.Context, *f.Config.ClusterName = c.context, c.cluster
			if _, err := f.Connect(); cmdtest.ErrText(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}
