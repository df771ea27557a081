package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// cluster holds nodes, and compares versions and uids as an API server does.
type cluster struct {
	*testing.T
	kube      *fake.Clientset
	version   int
	writes    int
	loses     bool   // the answer to the next write
	meanwhile func() // before the next write
	may       bool
}

func newCluster(t *testing.T, list ...*corev1.Node) *cluster {
	c := &cluster{T: t, kube: fake.NewClientset(), version: 10, may: true}
	for _, n := range list {
		if err := c.kube.Tracker().Add(n); err != nil {
			t.Fatal(err)
		}
	}
	c.kube.PrependReactor("patch", "nodes", c.patch)
	c.kube.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: c.may}}, nil
	})
	return c
}

func (c *cluster) patch(a clienttesting.Action) (bool, runtime.Object, error) {
	if somebody := c.meanwhile; somebody != nil {
		c.meanwhile = nil
		somebody()
	}
	p := a.(clienttesting.PatchActionImpl)
	live := c.node(p.GetName())
	var meant struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(p.GetPatch(), &meant); err != nil {
		return true, nil, err
	}
	if meant.Metadata.UID != live.UID || meant.Metadata.ResourceVersion != live.ResourceVersion {
		return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), live.Name, errors.New("the object has been modified"))
	}
	if len(p.PatchOptions.DryRun) > 0 {
		return true, live, nil
	}
	done, o, err := clienttesting.ObjectReaction(c.kube.Tracker())(a)
	if err != nil {
		return done, o, err
	}
	c.writes++
	c.edit(live.Name, func(*corev1.Node) {})
	if c.loses {
		c.loses = false
		return true, nil, io.ErrUnexpectedEOF
	}
	return done, o, nil
}

func (c *cluster) node(name string) *corev1.Node {
	c.Helper()
	o, err := c.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", name)
	if err != nil {
		c.Fatal(err)
	}
	return o.(*corev1.Node).DeepCopy()
}

// edit changes a node as somebody else does: it is of another version then.
func (c *cluster) edit(name string, change func(*corev1.Node)) {
	n := c.node(name)
	change(n)
	c.version++
	n.ResourceVersion = strconv.Itoa(c.version)
	if err := c.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) step(properties any) executors.Call {
	return executors.Call{
		Run: "maint-run-roll-a", Plan: executors.PlanRef{Name: "roll", Namespace: "ops", Account: "maint-runner", Manager: "maint-plan-x"}, Path: "take", Attempt: 1,
		Properties: properties, Now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Clients: executors.Clients{Kube: c.kube},
	}
}

const mine = "plan:ops/roll"

// nodeNamed is a schedulable node with label pool=gpu.
func nodeNamed(name string, edits ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Labels: map[string]string{"pool": "gpu"}, Annotations: map[string]string{}}}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func shut(n *corev1.Node) { n.Spec.Unschedulable = true }

// recorded is a node with a record of our cordon, cordoned or not.
func recorded(unschedulable bool, c nodes.Cordon) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Unschedulable = unschedulable
		n.Annotations[annotations.StatusCordoned] = c.String()
	}
}

// how is a node as it stands: schedulable or not, for whom, and how it was before.
func how(n *corev1.Node) string {
	word := "open"
	if n.Spec.Unschedulable {
		word = "shut"
	}
	if c, read := nodes.ParseCordon(n.Annotations[annotations.StatusCordoned]); read && c != nil {
		word += fmt.Sprintf(" for %v", c.By)
		if c.Before {
			word += ", as before"
		}
	}
	return word
}

func TestCordonAndUncordon(t *testing.T) {
	one := plan.NodeProperties{Node: "a"}
	both := func(by ...string) nodes.Cordon { return nodes.Cordon{By: by} }
	for _, c := range []struct {
		name   string
		do     executors.Executor
		node   func(*corev1.Node)
		want   string // how it stands then
		said   string
		writes int
	}{
		{"cordon of a node", Cordoner{}, nil, "shut for [plan:ops/roll]", "Node/a is cordoned", 1},
		{"cordon of one that somebody cordoned: that is remembered", Cordoner{}, shut, "shut for [plan:ops/roll], as before", "Node/a is cordoned", 1},
		{"cordon of one that another plan has", Cordoner{}, recorded(true, both("plan:ops/other")), "shut for [plan:ops/other plan:ops/roll]", "Node/a is cordoned", 1},
		{"cordon of one that it has: nothing is written", Cordoner{}, recorded(true, both(mine)), "shut for [plan:ops/roll]", "Node/a is cordoned", 0},
		{"uncordon of a node that it cordoned", Uncordoner{}, recorded(true, both(mine)), "open", "Node/a is schedulable again", 1},
		{"uncordon of one that was cordoned before", Uncordoner{}, recorded(true, nodes.Cordon{By: []string{mine}, Before: true}), "shut", "Node/a stays cordoned: it was before", 1},
		{"uncordon of one that another plan wants", Uncordoner{}, recorded(true, both("plan:ops/other", mine)), "shut for [plan:ops/other]", "Node/a stays cordoned: plan:ops/other wants it so", 1},
		{"uncordon of one that somebody uncordoned", Uncordoner{}, recorded(false, both(mine)), "open", "Node/a is schedulable", 1},
		{"uncordon of one that a person cordoned", Uncordoner{}, shut, "shut", "Node/a stays cordoned: it was not this plan that cordoned it", 0},
		{"uncordon of one that nobody cordoned", Uncordoner{}, nil, "open", "Node/a is schedulable", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := func() (*cluster, executors.Call) {
				n := nodeNamed("a")
				if c.node != nil {
					c.node(n)
				}
				k := newCluster(t, n)
				return k, k.step(&plan.CordonProperties{NodeProperties: one})
			}
			k, call := begin()
			out := c.do.Pass(t.Context(), call)
			if got := how(k.node("a")); out.State != executors.Done || out.Message != c.said || got != c.want || k.writes != c.writes || len(out.Changed) != c.writes {
				t.Errorf("%+v, it is %s after %d writes", out, got, k.writes)
			}
			if c.do.Pass(t.Context(), call); how(k.node("a")) != c.want || k.writes != c.writes {
				t.Errorf("after a second time it is %s, %d writes", how(k.node("a")), k.writes)
			}

			k, call = begin()
			was := how(k.node("a"))
			call.DryRun = true
			if out := c.do.Pass(t.Context(), call); out.Message != "dry run: "+c.said || how(k.node("a")) != was || k.writes != 0 || len(out.Changed) != 0 {
				t.Errorf("a dry run: %+v, it is %s", out, how(k.node("a")))
			}
			if c.writes == 0 {
				return
			}

			k, call = begin()
			k.loses = true
			out = c.do.Pass(t.Context(), call)
			if out.State != executors.NotYet || out.Reason != executors.ReasonUnavailable {
				t.Errorf("without an answer: %+v", out)
			}
			if out = c.do.Pass(t.Context(), call); out.State != executors.Done || how(k.node("a")) != c.want || k.writes != 1 {
				t.Errorf("again: %+v, it is %s after %d writes", out, how(k.node("a")), k.writes)
			}

			k, call = begin()
			k.meanwhile = func() { k.edit("a", func(n *corev1.Node) { n.Labels["team"] = "x" }) }
			if out = c.do.Pass(t.Context(), call); out.State != executors.NotYet || out.Reason != executors.ReasonConflict || k.writes != 0 {
				t.Errorf("somebody was faster: %+v", out)
			}
			if out = c.do.Pass(t.Context(), call); out.State != executors.Done || how(k.node("a")) != c.want || k.node("a").Labels["team"] != "x" {
				t.Errorf("again: %+v, it is %s", out, how(k.node("a")))
			}
		})
	}
}

func TestCordonsThatAreRefused(t *testing.T) {
	named := func(name string) any { return &plan.CordonProperties{NodeProperties: plan.NodeProperties{Node: name}} }
	picking := func(pool string) any {
		return &plan.CordonProperties{NodeProperties: plan.NodeProperties{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"pool": pool}}}}
	}
	forbids := func(verb string) func(*cluster) {
		return func(k *cluster) {
			k.may = false
			k.kube.PrependReactor(verb, "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "a", fmt.Errorf("User %q cannot %s resource %q", "system:serviceaccount:ops:maint-runner", verb, "nodes"))
			})
		}
	}
	for _, c := range []struct {
		name       string
		node       func(*corev1.Node)
		properties any
		before     func(*cluster)
		reason     string
		said       string
	}{
		{"properties of another type", nil, &plan.ScaleProperties{}, nil, executors.ReasonInvalid, "step take: properties are *plan.ScaleProperties, not *plan.CordonProperties"},
		{"neither a node nor a selector", nil, named(""), nil, executors.ReasonInvalid, "step take names no node: write node or selector"},
		{"a node that is not there", nil, named("ghost"), nil, executors.ReasonNotFound, `get nodes "ghost": there is no such object`},
		{"a selector that picks none", nil, picking("cpu"), nil, executors.ReasonNotFound, `the selector "pool=cpu" picks no node`},
		{"a record that nobody can read", func(n *corev1.Node) { n.Annotations[annotations.StatusCordoned] = "yes" }, named("a"), nil, executors.ReasonInvalid, `Node/a: status.maint.dev/cordoned is "yes": remove the annotation once you know whether the node shall be schedulable`},
		{"one that somebody uncordoned while a requestor has it", recorded(false, nodes.Cordon{By: []string{"gpu"}, Undone: true}), named("a"), nil, "Uncordoned", "Node/a was uncordoned by somebody else while gpu has it: it is left so"},
		{"without the right to read", nil, named("a"), forbids("get"), executors.ReasonForbidden, `serviceaccount ops/maint-runner may not get nodes "a": grant get on nodes to it`},
		{"without the right to list", nil, picking("gpu"), forbids("list"), executors.ReasonForbidden, `serviceaccount ops/maint-runner may not list nodes: grant list on nodes to it`},
		{"without the right to write", nil, named("a"), forbids("patch"), executors.ReasonForbidden, `serviceaccount ops/maint-runner may not patch nodes "a": grant patch on nodes to it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := nodeNamed("a")
			if c.node != nil {
				c.node(n)
			}
			k := newCluster(t, n)
			was := how(k.node("a"))
			if c.before != nil {
				c.before(k)
			}
			out := Cordoner{}.Pass(t.Context(), k.step(c.properties))
			if out.State != executors.Failed || !out.Permanent || out.Reason != c.reason || out.Message != c.said || how(k.node("a")) != was {
				t.Errorf("%+v", out)
			}
		})
	}
}

// Of several nodes, those that were written before it broke off are done.
func TestCordonOfSeveralNodesGoesOnWhereItBrokeOff(t *testing.T) {
	k := newCluster(t, nodeNamed("a"), nodeNamed("b"), nodeNamed("c"))
	call := k.step(&plan.CordonProperties{NodeProperties: plan.NodeProperties{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"pool": "gpu"}}}})
	k.meanwhile = func() { // the first goes through, the answer to the second is lost
		k.meanwhile = func() { k.loses = true }
	}
	out := Cordoner{}.Pass(t.Context(), call)
	if out.State != executors.NotYet || len(out.Changed) != 1 || out.Changed[0].Name != "a" {
		t.Fatalf("%+v", out)
	}
	out = Cordoner{}.Pass(t.Context(), call)
	if out.State != executors.Done || out.Message != "Node/a is cordoned; Node/b is cordoned; Node/c is cordoned" || k.writes != 3 {
		t.Errorf("%+v after %d writes", out, k.writes)
	}
	for _, name := range []string{"a", "b", "c"} {
		if got := how(k.node(name)); got != "shut for [plan:ops/roll]" {
			t.Errorf("%s is %s", name, got)
		}
	}
}

// A node that a run closed, or came to, may be gone when it is to be uncordoned: then that is done.
func TestUncordonOfANodeThatIsGone(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes executors.Nodes
		want  string
	}{
		{"of the rollout", executors.Nodes{Current: "ghost"}, "done : Node/ghost is gone: there is nothing to uncordon"},
		{"that the run closed", executors.Nodes{Closed: []run.DrainTarget{{Name: "ghost", UID: "uid-ghost"}}}, "done : Node/ghost is gone: there is nothing to uncordon"},
		{"that nobody knows", executors.Nodes{Current: "a", Closed: []run.DrainTarget{{Name: "a", UID: "uid-a"}}}, `failed for good NotFound: get nodes "ghost": there is no such object`},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newCluster(t, nodeNamed("a"))
			call := k.step(&plan.CordonProperties{NodeProperties: plan.NodeProperties{Node: "ghost"}})
			call.Nodes = c.nodes
			if got := outcome(Uncordoner{}.Pass(t.Context(), call)); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// Labels of nodes change in the middle of a run: what it closed by a selector it opens by that.
func TestUncordonBySelectorOpensWhatTheRunClosedByIt(t *testing.T) {
	other := func(n *corev1.Node) { n.Labels["pool"] = "cpu" }
	ours, theirs := recorded(true, nodes.Cordon{By: []string{mine}}), recorded(true, nodes.Cordon{By: []string{"plan:ops/other"}})
	k := newCluster(t, nodeNamed("a", ours), nodeNamed("b", ours, other), nodeNamed("again", ours, other), nodeNamed("shared", theirs, other), nodeNamed("never", ours, other))
	call := k.step(&plan.CordonProperties{NodeProperties: plan.NodeProperties{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"pool": "gpu"}}}})
	for name, uid := range map[string]string{"a": "uid-a", "b": "uid-b", "again": "uid-of-before", "shared": "uid-shared", "gone": "uid-gone"} {
		call.Nodes.Closed = append(call.Nodes.Closed, run.DrainTarget{Name: name, UID: uid})
	}
	out := Uncordoner{}.Pass(t.Context(), call)
	if out.State != executors.Done || out.Message != "Node/a is schedulable again; Node/b is schedulable again" {
		t.Errorf("%+v", out)
	}
	for name, want := range map[string]string{"a": "open", "b": "open", "again": "shut for [plan:ops/roll]", "shared": "shut for [plan:ops/other]", "never": "shut for [plan:ops/roll]"} {
		if got := how(k.node(name)); got != want {
			t.Errorf("node %s is %s, want %s", name, got, want)
		}
	}
	k.edit("a", other)
	if again := (Uncordoner{}).Pass(t.Context(), call); again.State != executors.Done || again.Message != "no node is left that it could open" || k.writes != 2 {
		t.Errorf("a second time: %+v, %d writes", again, k.writes)
	}
	call.Nodes.Closed = nil
	if none := (Uncordoner{}).Pass(t.Context(), call); none.Reason != executors.ReasonNotFound {
		t.Errorf("a selector that picks nothing, of a run that closed nothing: %+v", none)
	}
}

// The run was aborted while the cordon was on the way: what the uncordon finds open may be closed later.
func TestAnUncordonWaitsForACordonThatMayStillArrive(t *testing.T) {
	k := newCluster(t, nodeNamed("a"))
	call := k.step(&plan.CordonProperties{NodeProperties: plan.NodeProperties{Node: "a"}})
	call.Nodes.InterruptedAt = call.Now
	out := Uncordoner{}.Pass(t.Context(), call)
	if until := call.Now.Add(executors.LateRequest); out.State != executors.NotYet || !out.WakeAt.Equal(until) || k.writes != 0 {
		t.Fatalf("%+v, %d writes", out, k.writes)
	}
	over := call
	over.Now = out.WakeAt
	if out := (Uncordoner{}).Pass(t.Context(), over); out.State != executors.Done || out.Message != "Node/a is schedulable" {
		t.Errorf("it never came: %+v", out)
	}
	if out := (Cordoner{}).Pass(t.Context(), call); out.State != executors.Done {
		t.Fatalf("%+v", out)
	}
	if out := (Uncordoner{}).Pass(t.Context(), over); out.State != executors.Done || k.node("a").Spec.Unschedulable {
		t.Errorf("it came: %+v, %s", out, how(k.node("a")))
	}
}
