package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// drains is a drainer that notes what it is asked for, and says what a test has it say.
type drains struct {
	says    map[string]executors.DrainStatus // by node; none: it works
	ordered []executors.DrainOrder
	stopped []string
}

func (d *drains) Ensure(_ context.Context, o executors.DrainOrder) executors.DrainStatus {
	d.ordered = append(d.ordered, o)
	if st, has := d.says[o.Node]; has {
		return st
	}
	return executors.DrainStatus{Reason: executors.DrainWorking, Message: "0 of 2 pods have left"}
}

func (d *drains) Stop(node, by string)            { d.stopped = append(d.stopped, node+" of "+by) }
func (d *drains) Keep(func(node, by string) bool) {}
func (d *drains) AwaitRequests()                  {}
func (d *drains) Unswept() []string               { return nil }
func (d *drains) Unreplaced(string, string, time.Time) map[string]drain.Replacement {
	return nil
}

func (d *drains) ForCluster(string, executors.Clients) (executors.Drainer, bool) {
	return d, true
}

func (d *drains) Sweep(context.Context, executors.Clients, string, string, func(string) bool) (int, error) {
	return 0, nil
}

// draining is a step of type drain in its world.
type draining struct {
	*cluster
	drains *drains
	call   executors.Call
}

func newDraining(t *testing.T, p *plan.DrainProperties, list ...*corev1.Node) *draining {
	s := &draining{cluster: newCluster(t, list...), drains: &drains{says: map[string]executors.DrainStatus{}}}
	s.call = s.step(p)
	s.call.Nodes.Drainer = s.drains
	s.call.Nodes.Turn = func(string) (bool, string) { return true, "" }
	s.call.Nodes.Resume = func(string) (bool, string) { return true, "" }
	return s
}

// pass is one, with what it asks to be remembered remembered.
func (s *draining) pass() executors.Outcome {
	s.Helper()
	out := Drains{}.Pass(s.Context(), s.call)
	if out.Memory != nil {
		s.call.Recorded.Memory = out.Memory
	}
	return out
}

// end is the pass after those that only record something.
func (s *draining) end() executors.Outcome {
	s.Helper()
	for range 3 {
		if out := s.pass(); out.State != executors.Record {
			return out
		}
	}
	s.Fatal("it records without end")
	return executors.Outcome{}
}

// begin is the pass that writes down what the step is about.
func (s *draining) begin() {
	s.Helper()
	if out := s.pass(); out.State != executors.Record {
		s.Fatalf("it does not begin: %+v", out)
	}
}

func (s *draining) remembers() run.DrainMemory {
	s.Helper()
	var m run.DrainMemory
	if err := json.Unmarshal(s.call.Recorded.Memory, &m); err != nil {
		s.Fatal(err)
	}
	return m
}

func ofNode(name string, o drain.Options) *plan.DrainProperties {
	return &plan.DrainProperties{NodeProperties: plan.NodeProperties{Node: name}, Options: o}
}

func ofPool(o drain.Options) *plan.DrainProperties {
	return &plan.DrainProperties{NodeProperties: plan.NodeProperties{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"pool": "gpu"}}}, Options: o}
}

func doneWith(o drain.Outcome) executors.DrainStatus {
	return executors.DrainStatus{Done: true, Reason: executors.DrainDone, Outcome: o, Message: o.String()}
}

func states() map[executors.State]string {
	return map[executors.State]string{executors.NotYet: "not yet", executors.Record: "record", executors.Done: "done", executors.Failed: "failed"}
}

// outcome is one in a line.
func outcome(o executors.Outcome) string {
	word := states()[o.State]
	if o.Permanent {
		word += " for good"
	}
	return strings.TrimSpace(word + " " + o.Reason + ": " + o.Message)
}

// Nothing is cordoned before it is written down which nodes are meant.
func TestADrainStepWritesDownItsNodesFirst(t *testing.T) {
	s := newDraining(t, ofPool(drain.Options{}), nodeNamed("b"), nodeNamed("a"), nodeNamed("other", func(n *corev1.Node) { n.Labels["pool"] = "cpu" }))
	out := s.pass()
	if got := outcome(out); got != "record : about to drain 2 nodes" || s.writes != 0 || len(s.drains.ordered) != 0 {
		t.Errorf("%s, %d writes, ordered %v", got, s.writes, s.drains.ordered)
	}
	want := run.DrainMemory{Attempt: 1, Since: s.call.Now, Nodes: []run.DrainTarget{{Name: "a", UID: "uid-a"}, {Name: "b", UID: "uid-b"}}}
	if diff := cmp.Diff(want, s.remembers()); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
}

// What a step orders of the drainer is what its properties say, from when its turn came.
func TestWhatADrainStepOrders(t *testing.T) {
	options := drain.Options{Force: true, OnTimeout: drain.TimeoutSkip, GracePeriod: lasting(time.Second)}
	for _, c := range []struct {
		name   string
		dryRun bool
		how    string
	}{
		{"the node is cordoned, then drained", false, "shut for [plan:ops/roll]"},
		{"in a dry run nothing is written", true, "open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newDraining(t, ofNode("a", options), nodeNamed("a"))
			s.call.DryRun = c.dryRun
			s.begin()
			began := s.call.Now
			s.call.Now = began.Add(time.Hour) // it waited for its turn
			out := s.pass()
			if got := outcome(out); got != "not yet Draining: Node/a: 0 of 2 pods have left" || !out.WakeAt.Equal(s.call.Now.Add(15*time.Second)) {
				t.Errorf("%s until %s", got, out.WakeAt)
			}
			want := []executors.DrainOrder{{Node: "a", NodeUID: "uid-a", By: mine, Options: options, Since: s.call.Now, Manager: "maint-plan-x", DryRun: c.dryRun}}
			got := slices.Clone(s.drains.ordered)
			for i := range got {
				got[i].Clients = executors.Clients{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("ordered (-want +got):\n%s", diff)
			}
			if how(s.node("a")) != c.how || s.remembers().Nodes[0].Cordoned != !c.dryRun {
				t.Errorf("it is %s, remembered %+v", how(s.node("a")), s.remembers())
			}
			s.call.Now = s.call.Now.Add(time.Hour)
			s.pass()
			if last := s.drains.ordered[len(s.drains.ordered)-1]; !last.Since.Equal(began.Add(time.Hour)) {
				t.Errorf("a later pass has it begin at %s", last.Since)
			}
		})
	}
}

// How a step ends by how its drains end.
func TestHowADrainStepEnds(t *testing.T) {
	evicted, left := drain.Outcome{Evicted: 2}, drain.Outcome{Evicted: 1, Left: 1, LeftPods: []drain.RemainingPod{{Pod: "shop/web-2", Why: "its budget"}}}
	timedOut := executors.DrainStatus{Done: true, Reason: executors.DrainTimedOut, Outcome: left, Message: left.String()}
	aborted := executors.DrainStatus{Aborted: true, Reason: executors.DrainTimedOut, Outcome: drain.Outcome{Left: 2}, Message: "time is over, and the drain is given up: 0 evicted, 2 left"}
	forbidden := executors.DrainStatus{Reason: executors.DrainForbidden, Message: "0 of 2 pods have left; not allowed to create pods/eviction", Right: rightOf("create pods/eviction", "shop")}
	unnamed := executors.DrainStatus{Reason: executors.DrainForbidden, Message: "cannot read pods and budgets"}
	for _, c := range []struct {
		name    string
		options drain.Options
		says    map[string]executors.DrainStatus
		may     bool // by a review
		want    string
		how     string // node a then
		changed int
		stopped int
	}{
		{"all are drained", drain.Options{}, map[string]executors.DrainStatus{"a": doneWith(evicted), "b": doneWith(drain.Outcome{})}, true, "done : Node/a: 2 evicted; Node/b: 0 evicted", "shut for [plan:ops/roll]", 2, 2},
		{"one is at work: it is told first", drain.Options{}, map[string]executors.DrainStatus{"a": doneWith(evicted)}, true, "not yet Draining: Node/b: 0 of 2 pods have left; Node/a: 2 evicted", "shut for [plan:ops/roll]", 0, 0},
		{"pods are left, and that is not what was asked", drain.Options{}, map[string]executors.DrainStatus{"a": timedOut, "b": doneWith(evicted)}, true, "failed TimedOut: Node/a: 1 evicted, 1 left: shop/web-2 (its budget); Node/b: 2 evicted", "shut for [plan:ops/roll]", 0, 2},
		{"pods are left, as was asked", drain.Options{OnTimeout: drain.TimeoutSkip}, map[string]executors.DrainStatus{"a": timedOut, "b": doneWith(evicted)}, true, "done : Node/a: 1 evicted, 1 left: shop/web-2 (its budget); Node/b: 2 evicted", "shut for [plan:ops/roll]", 2, 2},
		{"one is aborted: all are stopped, and uncordoned", drain.Options{OnTimeout: drain.TimeoutAbort}, map[string]executors.DrainStatus{"a": doneWith(evicted), "b": aborted}, true, "failed for good TimedOut: Node/b: time is over, and the drain is given up: 0 evicted, 2 left; Node/a: 2 evicted; our cordon is undone", "open", 0, 4},
		{"a right is missing", drain.Options{}, map[string]executors.DrainStatus{"a": forbidden}, false, "failed for good Forbidden: Node/a: 0 of 2 pods have left; not allowed to create pods/eviction", "shut for [plan:ops/roll]", 0, 0},
		{"a right is missing, says an answer; the account has it, says a review", drain.Options{}, map[string]executors.DrainStatus{"a": forbidden}, true, "not yet Forbidden: Node/a: 0 of 2 pods have left; not allowed to create pods/eviction", "shut for [plan:ops/roll]", 0, 0},
		{"a right is missing, and nobody knows which", drain.Options{}, map[string]executors.DrainStatus{"b": unnamed}, true, "failed for good Forbidden: Node/b: cannot read pods and budgets", "shut for [plan:ops/roll]", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newDraining(t, ofPool(c.options), nodeNamed("a"), nodeNamed("b"))
			s.begin()
			s.drains.says, s.may = c.says, c.may
			out := s.end()
			if got := outcome(out); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if got := how(s.node("a")); got != c.how {
				t.Errorf("node a is %s", got)
			}
			if len(out.Changed) != c.changed || len(s.drains.stopped) != c.stopped {
				t.Errorf("changed %v, stopped %v", out.Changed, s.drains.stopped)
			}
			if ended := out.State == executors.Done || out.State == executors.Failed && out.Reason == executors.DrainTimedOut; ended {
				b, _ := json.Marshal(out.Outputs["nodes"])
				var outputs map[string]drain.Outcome
				if err := json.Unmarshal(b, &outputs); err != nil || !cmp.Equal(outputs["a"], c.says["a"].Outcome) {
					t.Errorf("outputs %v, %v", out.Outputs, err)
				}
			}
			if out.State == executors.NotYet && !out.WakeAt.Equal(s.call.Now.Add(relook)) {
				t.Errorf("looked at again at %s", out.WakeAt)
			}
		})
	}
}

// Past fifty nodes a step's outputs are how many there were.
func TestOutputsOfManyNodesAreTheirNumber(t *testing.T) {
	outputs := map[string]any{}
	for i := range 50 {
		outputs[fmt.Sprint(i)] = i
	}
	if got, all := bounded(outputs).(map[string]any); !all || len(got) != 50 {
		t.Errorf("of fifty: %v", got)
	}
	outputs["one more"] = 1
	if got := bounded(outputs); got != 51 {
		t.Errorf("of fifty-one: %v", got)
	}
}

// What happens to a node while it is drained.
func TestWhatHappensToANodeWhileItIsDrained(t *testing.T) {
	for _, c := range []struct {
		name    string
		happens func(*draining)
		want    string
		how     string // empty: it is not there
		stopped bool
	}{
		{"nothing", func(*draining) {}, "not yet Draining: Node/a: 0 of 2 pods have left", "shut for [plan:ops/roll]", false},
		{
			"somebody uncordons it: it is left so, and the next attempt knows", func(s *draining) { s.edit("a", func(n *corev1.Node) { n.Spec.Unschedulable = false }) },
			"failed Uncordoned: Node/a was uncordoned by somebody else during the drain: it is left so; cordon it again for another attempt", "open for [plan:ops/roll]", true,
		},
		{
			"somebody uncordons it and takes the record off: it is cordoned anew", func(s *draining) {
				s.edit("a", func(n *corev1.Node) {
					n.Spec.Unschedulable = false
					delete(n.Annotations, annotations.StatusCordoned)
				})
			},
			"not yet Draining: Node/a: 0 of 2 pods have left", "shut for [plan:ops/roll]", false,
		},
		{
			"it is deleted", func(s *draining) { s.remove("a") },
			"failed for good Gone: Node/a was deleted while it was drained", "", true,
		},
		{
			"it is deleted, and another of its name joins: that is cordoned and drained, too", func(s *draining) {
				s.remove("a")
				if err := s.kube.Tracker().Add(nodeNamed("a", func(n *corev1.Node) { n.UID = "uid-a-2" })); err != nil {
					s.Fatal(err)
				}
			},
			"not yet Draining: Node/a: 0 of 2 pods have left", "shut for [plan:ops/roll]", true,
		},
		{
			"another plan wants it cordoned too", func(s *draining) {
				s.edit("a", recorded(true, nodes.Cordon{By: []string{"plan:ops/other", mine}}))
			},
			"not yet Draining: Node/a: 0 of 2 pods have left", "shut for [plan:ops/other plan:ops/roll]", false,
		},
		{
			"its record becomes unreadable", func(s *draining) {
				s.edit("a", func(n *corev1.Node) { n.Annotations[annotations.StatusCordoned] = "?" })
			},
			`failed for good Invalid: Node/a: status.maint.dev/cordoned is "?": remove the annotation once you know whether the node shall be schedulable`, "shut", false,
		},
		{
			"the API server does not answer", func(s *draining) {
				s.kube.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewInternalError(fmt.Errorf("etcd is away"))
				})
			},
			"not yet Unavailable: the API server does not answer as it should: get nodes \"a\": Internal error occurred: etcd is away", "shut for [plan:ops/roll]", false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newDraining(t, ofNode("a", drain.Options{}), nodeNamed("a"))
			s.begin()
			s.pass()
			c.happens(s)
			if got := outcome(s.pass()); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if s.is("a") != c.how {
				t.Errorf("it is %q", s.is("a"))
			}
			if stopped := slices.Contains(s.drains.stopped, "a of "+mine); stopped != c.stopped {
				t.Errorf("stopped: %t", stopped)
			}
		})
	}
}

// Which nodes a drain is about is written down at its beginning: a label that is taken off
// or put on since, by a kubelet say, frees none and adds none.
func TestANodeWhoseLabelsChangeInMidDrain(t *testing.T) {
	pool := func(n *corev1.Node) { n.Labels = map[string]string{"pool": "gpu"} }
	out := func(n *corev1.Node) { n.Labels = nil }
	s := newDraining(t, ofPool(drain.Options{}), nodeNamed("a", pool), nodeNamed("b", pool), nodeNamed("c", out))
	s.begin()
	s.edit("a", out)
	s.pass()
	s.edit("b", out)
	s.edit("c", pool)
	s.pass()
	for node, want := range map[string]string{"a": "shut for [plan:ops/roll]", "b": "shut for [plan:ops/roll]", "c": "open"} {
		if got := s.is(node); got != want {
			t.Errorf("%s is %s, want %s", node, got, want)
		}
	}
	if m := s.remembers(); len(m.Nodes) != 2 || m.Nodes[0].Name != "a" || m.Nodes[1].Name != "b" {
		t.Errorf("it remembers %+v", m.Nodes)
	}
}

func (c *cluster) remove(name string) {
	c.Helper()
	if err := c.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", name); err != nil {
		c.Fatal(err)
	}
}

// is how a node stands; empty where it is not there.
func (c *cluster) is(name string) string {
	if _, err := c.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", name); err != nil {
		return ""
	}
	return how(c.node(name))
}

// An attempt after one whose cordon somebody undid does not cordon against that person; one
// whose predecessor never cordoned does.
func TestTheNextAttemptOfADrain(t *testing.T) {
	for _, c := range []struct {
		name   string
		before run.DrainTarget
		node   func(*corev1.Node)
		want   string
		how    string
	}{
		{
			"the node was uncordoned since the last attempt",
			run.DrainTarget{UID: "uid-a", Cordoned: true},
			recorded(false, nodes.Cordon{By: []string{mine}, At: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}),
			"failed Uncordoned: Node/a was uncordoned by somebody else during the drain: it is left so; cordon it again for another attempt", "open for [plan:ops/roll]",
		},
		{
			"the last attempt never cordoned it",
			run.DrainTarget{UID: "uid-a"},
			recorded(false, nodes.Cordon{By: []string{mine}, At: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}),
			"not yet Draining: Node/a: 0 of 2 pods have left", "shut for [plan:ops/roll]",
		},
		{
			"the last attempt cordoned another node of the name",
			run.DrainTarget{UID: "uid-old", Cordoned: true},
			recorded(false, nodes.Cordon{By: []string{mine}, At: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}),
			"not yet Draining: Node/a: 0 of 2 pods have left", "shut for [plan:ops/roll]",
		},
		{
			"this attempt cordoned it, its answer was lost, and somebody uncordoned it",
			run.DrainTarget{UID: "uid-a"},
			recorded(false, nodes.Cordon{By: []string{mine}, At: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}),
			"failed Uncordoned: Node/a was uncordoned by somebody else during the drain: it is left so; cordon it again for another attempt", "open for [plan:ops/roll]",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.before.Name = "a"
			s := newDraining(t, ofNode("a", drain.Options{}), nodeNamed("a", c.node))
			s.call.Attempt = 2
			s.call.Recorded.Memory = memory(executors.Call{}, run.DrainMemory{Attempt: 1, Nodes: []run.DrainTarget{c.before}})
			s.begin()
			if m := s.remembers(); m.Attempt != 2 || m.Nodes[0].Cordoned != (c.before.Cordoned && c.before.UID == "uid-a") {
				t.Errorf("remembered %+v", m)
			}
			if got := outcome(s.pass()); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if got := s.is("a"); got != c.how {
				t.Errorf("it is %s", got)
			}
		})
	}
}

// Before its turn a node is not cordoned, and what is in its way for good is told.
func TestADrainStepWaitsForItsTurn(t *testing.T) {
	const inTheWay = "shop/job cannot leave"
	for _, c := range []struct {
		name    string
		blocked string // before its cordon
		rollout bool   // the node is that of a rollout, which has a slot
		want    string
		target  run.DrainTarget
		yields  []string
	}{
		{"another has the slot", "", false, "not yet Draining: Node/a: waits its turn behind node b", run.DrainTarget{}, nil},
		{"something stands in its way for good", inTheWay, false, "not yet Draining: Node/a: Blocked: shop/job cannot leave; the node is not cordoned, and others have their turn", run.DrainTarget{Blocked: true, Why: inTheWay}, nil},
		{"the same of a rollout's node: others may have its slot", inTheWay, true, "not yet Draining: Node/a: Blocked: shop/job cannot leave; the node is not cordoned, and others have their turn", run.DrainTarget{Blocked: true, Why: inTheWay, Yielded: true}, []string{"a blocked true " + inTheWay}},
		{"a rollout's node that merely waits keeps it", "", true, "not yet Draining: Node/a: waits its turn behind node b", run.DrainTarget{}, []string{"a blocked false "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newDraining(t, ofNode("a", drain.Options{}), nodeNamed("a"))
			s.begin()
			var yields []string
			s.call.Nodes.Turn = func(node string) (bool, string) { return false, "waits its turn behind node b" }
			s.call.Nodes.Blocked = func(string) string { return c.blocked }
			s.call.Nodes.Yield = func(node string, block nodes.Block) bool {
				yields = append(yields, fmt.Sprintf("%s blocked %t %s", node, block.Permanent, block.Text))
				return block.Permanent
			}
			if c.rollout {
				s.call.Nodes.Current = "a"
			}
			if got := outcome(s.pass()); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			c.target.Name, c.target.UID = "a", "uid-a"
			if diff := cmp.Diff(c.target, s.remembers().Nodes[0]); diff != "" {
				t.Errorf("remembered (-want +got):\n%s", diff)
			}
			if s.writes != 0 || len(s.drains.ordered) != 0 || !slices.Equal(yields, c.yields) {
				t.Errorf("%d writes, ordered %v, yields %q", s.writes, s.drains.ordered, yields)
			}
		})
	}
}

// A turn that was given once is not asked for again: its node is cordoned.
func TestATurnIsAskedForOnce(t *testing.T) {
	s := newDraining(t, ofNode("a", drain.Options{}), nodeNamed("a"))
	s.begin()
	s.pass()
	s.call.Nodes.Turn = func(string) (bool, string) {
		t.Error("asked again")
		return false, ""
	}
	if got := outcome(s.pass()); got != "not yet Draining: Node/a: 0 of 2 pods have left" {
		t.Error(got)
	}
}

// A drain that is blocked for good gives its slot to those who wait, and goes on when it
// may. Its node stays cordoned.
func TestADrainThatYieldsItsSlot(t *testing.T) {
	blocked := executors.DrainStatus{Reason: executors.DrainBlocked, Message: "0 of 1 pods have left", Blocks: []drain.Block{
		{Pods: []string{"shop/job"}, Count: 1, Permanent: true, Refused: true, Why: "no controller", Remedy: "delete it"},
		{Pods: []string{"shop/web"}, Count: 1, Why: "a rollout"},
	}}
	const why = "shop/job cannot leave until somebody changes something: no controller; delete it"
	s := newDraining(t, ofNode("a", drain.Options{}), nodeNamed("a"))
	s.drains.says["a"] = blocked
	s.begin()
	var lasting []nodes.Block
	s.call.Nodes.Yield = func(_ string, is nodes.Block) bool {
		lasting = append(lasting, is)
		return is.Permanent && len(lasting) > 1
	}
	said := func(want string) run.DrainTarget {
		t.Helper()
		if got := outcome(s.pass()); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if got := s.is("a"); got != "shut for [plan:ops/roll]" {
			t.Errorf("it is %s", got)
		}
		return s.remembers().Nodes[0]
	}
	if m := said("not yet Draining: Node/a: 0 of 1 pods have left"); m.Yielded || !m.Blocked || len(s.drains.stopped) != 0 {
		t.Errorf("nobody else waits: %+v", m)
	}
	const text = "not yet Draining: Node/a: Blocked for good: " + why + "; others have its turn meanwhile: the node stays cordoned, and goes on first once nothing is in the way"
	if m := said(text); !m.Yielded || m.Why != why || !slices.Equal(s.drains.stopped, []string{"a of " + mine}) {
		t.Errorf("others wait: %+v, stopped %v", m, s.drains.stopped)
	}
	if told := (nodes.Block{Permanent: true, Text: why}); !slices.Equal(lasting, []nodes.Block{told, told}) {
		t.Errorf("blocked for good: %v", lasting)
	}
	ordered := len(s.drains.ordered)
	s.call.Nodes.Resume = func(string) (bool, string) { return false, "" }
	if m := said(text); !m.Yielded { // an agent that has not looked yet says what the one before saw
		t.Errorf("%+v", m)
	}
	s.call.Nodes.Blocked = func(string) string { return "" }
	s.call.Nodes.Resume = func(string) (bool, string) { return false, "waits its turn behind node b" }
	said("not yet Draining: Node/a: yielded its slot while it was blocked; goes on first: waits its turn behind node b")
	s.call.Nodes.Blocked = func(string) string { return "shop/other cannot leave" }
	said("not yet Draining: Node/a: Blocked for good: shop/other cannot leave; others have its turn meanwhile: the node stays cordoned, and goes on first once nothing is in the way")
	if len(s.drains.ordered) != ordered {
		t.Errorf("meanwhile it ordered %v", s.drains.ordered[ordered:])
	}
	s.call.Nodes.Resume = func(string) (bool, string) { return true, "" }
	delete(s.drains.says, "a")
	if m := said("not yet Draining: Node/a: 0 of 2 pods have left"); m.Yielded || m.Why != "" || m.Blocked {
		t.Errorf("goes on: %+v", m)
	}
}

// The time of a drain that yielded goes on: abort undoes its cordon also then.
func TestTheTimeOfADrainThatYieldedIsOver(t *testing.T) {
	for _, c := range []struct {
		name      string
		onTimeout drain.OnTimeout
		after     time.Duration
		want      string
		how       string
	}{
		{"abort, a moment before", drain.TimeoutAbort, 5*time.Minute - time.Second, "not yet Draining: Node/a: yielded its slot while it was blocked; goes on first: behind b", "shut for [plan:ops/roll]"},
		{"abort", drain.TimeoutAbort, 5 * time.Minute, "failed for good TimedOut: Node/a: the drain was blocked for good, and its time is over; our cordon is undone", "open"},
		{"retry", drain.TimeoutRetry, time.Hour, "not yet Draining: Node/a: yielded its slot while it was blocked; goes on first: behind b", "shut for [plan:ops/roll]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newDraining(t, ofNode("a", drain.Options{OnTimeout: c.onTimeout}), nodeNamed("a", recorded(true, nodes.Cordon{By: []string{mine}})))
			s.call.Recorded.Memory = memory(executors.Call{}, run.DrainMemory{Attempt: 1, Nodes: []run.DrainTarget{{Name: "a", UID: "uid-a", Cordoned: true, Yielded: true, Since: s.call.Now}}})
			s.call.Now = s.call.Now.Add(c.after)
			s.call.Nodes.Resume = func(string) (bool, string) { return false, "behind b" }
			if got := outcome(s.end()); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if got := s.is("a"); got != c.how {
				t.Errorf("it is %s", got)
			}
		})
	}
}

// A drain that aborts does so in time also where something keeps it from its cordon for good.
func TestADrainThatIsBlockedBeforeItsCordonAbortsInTime(t *testing.T) {
	const told = "not yet Draining: Node/a: Blocked: shop/job cannot leave; the node is not cordoned, and others have their turn; given up at 2026-11-21T00:05:00Z"
	start := func(t *testing.T, o drain.Options) (*draining, *string) {
		s := newDraining(t, ofNode("a", o), nodeNamed("a"))
		s.begin()
		inTheWay := "shop/job cannot leave"
		s.call.Nodes.Turn = func(string) (bool, string) { return false, "behind b" }
		s.call.Nodes.Blocked = func(string) string { return inTheWay }
		return s, &inTheWay
	}
	abort := drain.Options{OnTimeout: drain.TimeoutAbort}
	t.Run("its step fails then, and nothing was cordoned", func(t *testing.T) {
		s, _ := start(t, abort)
		if got := outcome(s.pass()); got != told {
			t.Errorf("%s\nwant %s", got, told)
		}
		s.call.Now = s.call.Now.Add(5*time.Minute - time.Second)
		out := s.pass()
		if got := outcome(out); got != told || !out.WakeAt.Equal(s.call.Now.Add(time.Second)) {
			t.Errorf("%s, looks again at %s", got, out.WakeAt)
		}
		s.call.Now = s.call.Now.Add(time.Second)
		const want = "failed for good TimedOut: Node/a: the drain was blocked for good before its cordon, and its time is over: shop/job cannot leave; nothing was cordoned"
		if got := outcome(s.end()); got != want || s.is("a") != "open" || s.writes != 0 {
			t.Errorf("%s\nwant %s\nit is %s, %d writes", got, want, s.is("a"), s.writes)
		}
	})
	t.Run("a rollout's node whose slot others have", func(t *testing.T) {
		s, _ := start(t, abort)
		s.call.Nodes.Current, s.call.Nodes.Yield = "a", func(_ string, block nodes.Block) bool { return block.Permanent }
		s.call.Nodes.Resume = func(string) (bool, string) { return false, "behind b" }
		s.pass()
		s.call.Now = s.call.Now.Add(time.Minute)
		if got := outcome(s.pass()); got != told || !s.remembers().Nodes[0].Yielded {
			t.Errorf("%s\nwant %s", got, told)
		}
		s.call.Now = s.call.Now.Add(4 * time.Minute)
		if got := outcome(s.end()); !strings.HasPrefix(got, "failed for good TimedOut: ") {
			t.Error(got)
		}
	})
	t.Run("its time stands still while a requestor has the node", func(t *testing.T) {
		s, _ := start(t, abort)
		s.pass()
		s.call.Now = s.call.Now.Add(2 * time.Minute)
		s.edit("a", recorded(true, nodes.Cordon{By: []string{"gpu"}}))
		still := strings.TrimSuffix(told, "; given up at 2026-11-21T00:05:00Z")
		for _, later := range []time.Duration{0, time.Hour} {
			s.call.Now = s.call.Now.Add(later)
			if got := outcome(s.pass()); got != still {
				t.Errorf("%s\nwant %s", got, still)
			}
		}
		s.edit("a", func(n *corev1.Node) { n.Spec.Unschedulable, n.Annotations = false, nil })
		if got, want := outcome(s.pass()), still+"; given up at 2026-11-21T01:05:00Z"; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		s.call.Now = s.call.Now.Add(3 * time.Minute)
		if got := outcome(s.end()); !strings.HasPrefix(got, "failed for good TimedOut: ") {
			t.Error(got)
		}
	})
	t.Run("what another plan left cordoned is no requestor's", func(t *testing.T) {
		s, _ := start(t, abort)
		s.edit("a", recorded(true, nodes.Cordon{By: []string{"plan:ops/other"}}))
		if got := outcome(s.pass()); got != told {
			t.Errorf("%s\nwant %s", got, told)
		}
	})
	t.Run("its time ends with the block", func(t *testing.T) {
		s, inTheWay := start(t, abort)
		s.pass()
		*inTheWay, s.call.Now = "", s.call.Now.Add(4*time.Minute)
		s.pass()
		*inTheWay, s.call.Now = "shop/job cannot leave", s.call.Now.Add(4*time.Minute)
		if got := outcome(s.pass()); !strings.HasPrefix(got, "not yet Draining: ") {
			t.Error(got)
		}
	})
	for name, o := range map[string]drain.Options{"no limit": {OnTimeout: drain.TimeoutAbort, Timeout: &document.Duration{}}, "retry": {}} {
		t.Run(name+" waits without end", func(t *testing.T) {
			s, _ := start(t, o)
			s.pass()
			s.call.Now = s.call.Now.Add(time.Hour)
			if got := outcome(s.pass()); got != strings.TrimSuffix(told, "; given up at 2026-11-21T00:05:00Z") {
				t.Error(got)
			}
		})
	}
}

// What a budget forbids for now is remembered with its text, too: the node says that its drain is blocked.
func TestADrainRemembersWhatIsInItsWay(t *testing.T) {
	s := newDraining(t, ofNode("a", drain.Options{}), nodeNamed("a"))
	s.begin()
	now := drain.Block{Pods: []string{"shop/web"}, Count: 1, Budgets: []string{"shop/web"}, Why: "a replica is not Ready", Remedy: "wait"}
	lasting := drain.Block{Pods: []string{"shop/db"}, Count: 1, Permanent: true, Why: "two budgets", Remedy: "change one"}
	for _, c := range []struct {
		blocks []drain.Block
		want   run.DrainTarget
	}{
		{nil, run.DrainTarget{}},
		{[]drain.Block{now}, run.DrainTarget{Why: now.String()}},
		{[]drain.Block{lasting, now}, run.DrainTarget{Blocked: true, Why: lasting.String() + "; " + now.String()}},
		{nil, run.DrainTarget{}},
	} {
		s.drains.says["a"] = executors.DrainStatus{Reason: executors.DrainWorking, Blocks: c.blocks}
		s.pass()
		c.want.Name, c.want.UID, c.want.Cordoned, c.want.Since = "a", "uid-a", true, s.call.Now.UTC()
		if diff := cmp.Diff(c.want, s.remembers().Nodes[0]); diff != "" {
			t.Errorf("remembered (-want +got):\n%s", diff)
		}
	}
}

// An abort that breaks off in the middle goes on, by whoever leads then: it cordons nothing again, has
// nothing drained, and leaves each node as it was found.
func TestAnAbortOfSeveralNodesGoesOnWhereItBrokeOff(t *testing.T) {
	const said = "Node/c: time is over; Node/b: 0 of 2 pods have left; Node/a: 0 of 2 pods have left"
	for name, cluster := range map[string]string{"here": "", "on another cluster": "west"} {
		t.Run(name, func(t *testing.T) {
			s := newDraining(t, ofPool(drain.Options{OnTimeout: drain.TimeoutAbort}), nodeNamed("a"), nodeNamed("b", shut), nodeNamed("c"))
			s.call.Clients.Cluster = cluster
			s.begin()
			s.pass()
			s.drains.says["c"] = executors.DrainStatus{Aborted: true, Reason: executors.DrainTimedOut, Message: "time is over"}
			if got := outcome(s.pass()); got != "record : "+said || s.is("a") == "open" {
				t.Fatalf("%s, a is %s", got, s.is("a"))
			}
			s.loses = true // the answer to the first uncordon
			if got := outcome(s.pass()); !strings.HasPrefix(got, "not yet Unavailable: ") || s.is("a") != "open" {
				t.Fatalf("%s, a is %s", got, s.is("a"))
			}
			s.drains = &drains{} // another agent, that knows of no drain
			s.call.Nodes.Drainer = s.drains
			if got := outcome(s.pass()); got != "failed for good TimedOut: "+said+"; our cordon is undone" {
				t.Error(got)
			}
			if got := s.is("a") + ", " + s.is("b") + ", " + s.is("c"); got != "open, shut, open" || len(s.drains.ordered) > 0 {
				t.Errorf("they are %s, ordered %v", got, s.drains.ordered)
			}
			m := s.remembers()
			if m.Aborting != nil || slices.ContainsFunc(append(m.Nodes, m.Elsewhere...), func(n run.DrainTarget) bool { return n.Cordoned }) {
				t.Errorf("remembered %+v", m)
			}
		})
	}
}

// A missing right is found before anything waits or is cordoned.
func TestADrainStepWithoutTheRightToChangeNodes(t *testing.T) {
	s := newDraining(t, ofPool(drain.Options{}), nodeNamed("a"), nodeNamed("b"))
	s.may = false
	if got := outcome(s.pass()); got != `failed for good Forbidden: serviceaccount ops/maint-runner may not patch nodes "a": grant patch on nodes to it` {
		t.Error(got)
	}
	s.call.DryRun = true
	if got := outcome(s.pass()); got != "record : about to drain 2 nodes" {
		t.Errorf("a dry run needs none: %s", got)
	}
}

// Stop ends the drains of the nodes that were written down, and of no others.
func TestAStepThatIsStoppedStopsItsDrains(t *testing.T) {
	for name, c := range map[string]struct {
		memory json.RawMessage
		want   []string
	}{
		"after it began":       {memory(executors.Call{}, run.DrainMemory{Attempt: 1, Nodes: []run.DrainTarget{{Name: "a"}, {Name: "b"}}}), []string{"a of " + mine, "b of " + mine}},
		"before it began":      {nil, nil},
		"with nothing to read": {json.RawMessage(`[`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDraining(t, ofPool(drain.Options{}), nodeNamed("a"))
			s.call.Recorded.Memory = c.memory
			if err := (Drains{}).Stop(t.Context(), s.call); err != nil || !slices.Equal(s.drains.stopped, c.want) {
				t.Errorf("stopped %v, %v", s.drains.stopped, err)
			}
		})
	}
}

// A review asks for what a request needs, part by part.
func TestTheRightThatARequestNeeds(t *testing.T) {
	for verb, want := range map[string]authorizationv1.ResourceAttributes{
		"create pods/eviction":       {Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: "shop"},
		"delete pods":                {Verb: "delete", Resource: "pods", Namespace: "shop"},
		"get persistentvolumeclaims": {Verb: "get", Resource: "persistentvolumeclaims", Namespace: "shop"},
	} {
		if diff := cmp.Diff(want, *rightOf(verb, "shop")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", verb, diff)
		}
	}
}

// Of many texts the first five are said, and how many more there are.
func TestALongListIsCutShort(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "0", 5: "0; 1; 2; 3; 4", 6: "0; 1; 2; 3; 4; and 1 more", 40: "0; 1; 2; 3; 4; and 35 more"} {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprint(i))
		}
		if got := joined(all); got != want {
			t.Errorf("of %d: %q", n, got)
		}
	}
}
