package nodemaintenance

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// wakes are the steps that were woken since it was asked last.
func (w *world) wakes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, s := range w.woken {
		out = append(out, s.String())
	}
	w.woken = nil
	slices.Sort(out)
	return slices.Compact(out)
}

// enqueued are the runs that were enqueued since it was asked last.
func (w *world) enqueued() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, k := range w.rung {
		out = append(out, k.Name)
	}
	w.rung = nil
	slices.Sort(out)
	return slices.Compact(out)
}

// end has the run of a plan end.
func (w *world) end(s store.StepKey) { w.runs.Drop(s.Run, 0) }

func TestADrainOutsideOfARolloutHasItsTurn(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"), node("b"))
		a := w.lead()
		first, second := w.live("first", drainStep("drain")), w.live("second", drainStep("drain"))
		turn := func(s store.StepKey, node string) bool { granted, _ := a.Turn(s, node, nil); return granted }
		if turn(first, "a") {
			w.Error("it is given a node before anybody looked")
		}
		w.pass(time.Second)
		if got, want := w.wakes(), []string{first.String()}; !slices.Equal(got, want) || !turn(first, "a") {
			w.Errorf("woken %q, want %q; its turn: %t", got, want, turn(first, "a"))
		}
		turn(second, "b")
		w.pass(time.Second)
		if granted, why := a.Turn(second, "b", nil); granted || !strings.Contains(why, "turn") {
			w.Errorf("the second has its turn: %t, %q", granted, why)
		}
		w.live("first", drainStep("drain", drainTarget("a"))) // its journal says so now
		w.pass(time.Second)
		if turn(second, "b") {
			w.Error("the second has its turn while the first drains")
		}
		w.wakes()
		w.live("first", drainStep("drain", run.DrainTarget{Name: "a", Cordoned: true, Drained: true}))
		a.Enqueue()
		w.pass(time.Second)
		if got := w.wakes(); !slices.Contains(got, second.String()) || !turn(second, "b") {
			w.Errorf("when the first has drained: woken %q; its turn: %t", got, turn(second, "b"))
		}
		w.end(first)
		w.end(second)
		turn(store.StepKey{Run: second.Run, Path: "other"}, "a")
		w.pass(time.Second)
		if len(a.state.demand.wants) > 0 {
			w.Errorf("keeps %v of runs that have ended", a.state.demand.wants)
		}
	})
}

// A drain waits since its journal says so, whoever led when it began to wait.
func TestADrainKeepsItsPlaceWhenAnotherAgentLeads(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"), node("b"))
		a := w.lead()
		waits := func(plan string, since time.Duration, node string) store.StepKey {
			return w.live(plan, drainStepSince("drain", time.Now().Add(-since), run.DrainTarget{Name: node}))
		}
		older, younger := waits("older", time.Hour, "b"), waits("younger", time.Minute, "a")
		turn := func(s store.StepKey, node string) bool { granted, _ := a.Turn(s, node, nil); return granted }
		turn(younger, "a")
		turn(older, "b")
		w.pass(time.Second)
		if turn(younger, "a") || !turn(older, "b") {
			w.Errorf("the turn is the younger's: %t, the older's: %t", turn(younger, "a"), turn(older, "b"))
		}
	})
}

func TestAPlanAndARequestorHaveANodeOneAfterTheOther(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"))
		a := w.lead()
		s := w.live("roll", drainStep("drain"))
		a.Turn(s, "a", nil)
		w.pass(time.Second)
		w.live("roll", drainStep("drain", drainTarget("a")))
		w.edit("a", asked("gpu", noDrain))
		w.pass(3 * time.Second)
		w.expect("while the plan has it", "a open, gpu Pending")
		w.end(s)
		a.Enqueue()
		w.pass(3 * time.Second)
		w.expect("when the plan has ended", "a cordoned for gpu, gpu Ready")
	})
}

// A node on which the steps of a rollout failed counts as unavailable. Whoever uncordons one that
// they cordoned has it in service again; where no step cordons, nothing but the run tells of it.
func TestANodeOnWhichARolloutFailedIsUnavailable(t *testing.T) {
	rolls := func(step plan.Step) plan.Spec {
		inner := plan.Step{Name: "all", Type: plan.TypeGroup, Inner: []plan.Step{step}}
		return plan.Spec{Steps: []plan.Step{{Name: "roll", Type: plan.TypeForEachNode, Inner: []plan.Step{inner}}}}
	}
	drains, reboots := rolls(plan.Step{Name: "drain", Type: plan.TypeDrain}), rolls(plan.Step{Name: "reboot", Type: "job"})
	left := recorded(nodes.Cordon{By: []string{"plan:shop/kernel"}, Node: "uid-a"})
	for name, c := range map[string]struct {
		node *corev1.Node
		spec plan.Spec
		want string
	}{
		"it is cordoned for the plan":    {node("a", cordoned, left), drains, "b open, gpu Pending"},
		"somebody has uncordoned it":     {node("a"), drains, "b cordoned for gpu, gpu Ready"},
		"no step of the rollout cordons": {node("a"), reboots, "b open, gpu Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.limits = nodes.NodeLimits{MaxParallelOperations: 2, MaxUnavailable: int64(1)}
				w.api.Put(c.node, node("b"))
				a := w.lead()
				w.liveWith("kernel", c.spec, rollout("roll", run.Item{Name: "a", Phase: run.StepFailed}))
				w.edit("b", asked("gpu", noDrain))
				a.Enqueue()
				w.pass(3 * time.Second)
				if got := w.picture(); !slices.Contains(got, c.want) {
					w.Errorf("%q, want %q", got, c.want)
				}
			})
		})
	}
}

// rolls has a run at a rollout that would take some nodes next.
func (w *world) rolls(a *agent, planName string, most int, o *drain.Options, names ...string) store.StepKey {
	var items []run.Item
	for _, name := range names {
		items = append(items, run.Item{Name: name})
	}
	s := w.live(planName, rollout("roll", items...))
	a.Want(s.Run, []workflow.NodeDemand{{Path: "roll", Nodes: names, Most: most, Drain: o}})
	return s
}

func TestWhatARolloutIsToldOfItsNodes(t *testing.T) {
	for name, c := range map[string]struct {
		nodes  []*corev1.Node
		limits int // maxParallelOperations
		most   int
		wants  []string
		scope  string // the one namespace that is watched
		change func(w *world)
		want   map[string]workflow.NodeState
	}{
		"it is given as many as the limits allow, in its own order": {
			nodes: []*corev1.Node{node("a"), node("b")}, limits: 1, most: 2, wants: []string{"b", "a"},
			want: map[string]workflow.NodeState{"a": {Why: "waits its turn"}, "b": {Granted: true}},
		},
		"it is given no more than it begins at once": {
			nodes: []*corev1.Node{node("a"), node("b")}, limits: 2, most: 1, wants: []string{"a", "b"},
			want: map[string]workflow.NodeState{"a": {Granted: true}, "b": {}},
		},
		"a node without room for pods is said": {
			nodes: []*corev1.Node{node("a", cordoned)}, limits: 0, most: 1, wants: []string{"a"},
			want: map[string]workflow.NodeState{"a": {Unavailable: true, Why: "maxParallelOperations is 0"}},
		},
		"a node that an earlier run left cordoned is said": {
			nodes: []*corev1.Node{node("a", cordoned, recorded(nodes.Cordon{By: []string{"plan:shop/roll"}, Node: "uid-a"}))}, limits: 0, most: 1, wants: []string{"a"},
			want: map[string]workflow.NodeState{"a": {Unavailable: true, Abandoned: true, Why: "maxParallelOperations is 0"}},
		},
		"a node that is not there is gone": {
			nodes: []*corev1.Node{node("a")}, limits: 1, most: 1, wants: []string{"b"},
			want: map[string]workflow.NodeState{"b": {Gone: true, Why: "is not seen by the agent"}},
		},
		"an agent that is not answered does not take it for gone": {
			nodes: []*corev1.Node{node("a")}, limits: 1, most: 1, wants: []string{"b"},
			change: func(w *world) {
				w.api.Refuse(agenttest.When{Verb: "get", Resource: "nodes"}, agenttest.Always, 500, "broken")
			},
			want: map[string]workflow.NodeState{"b": {Why: "is not seen by the agent"}},
		},
		"an agent of one namespace takes none for gone": {
			limits: 1, most: 1, wants: []string{"b"}, scope: "shop",
			want: map[string]workflow.NodeState{"b": {Why: "is not seen by the agent"}},
		},
		"a node that is paused waits": {
			nodes: []*corev1.Node{node("a", annotated(annotations.Pause, "true"))}, limits: 1, most: 1, wants: []string{"a"},
			want: map[string]workflow.NodeState{"a": {Why: "the node is paused"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				for _, n := range c.nodes {
					w.api.Put(n)
				}
				w.limits.MaxParallelOperations, w.scope.WatchNamespace = c.limits, c.scope
				if c.change != nil {
					c.change(w)
				}
				a := w.lead()
				s := w.rolls(a, "roll", c.most, nil, c.wants...)
				w.pass(2 * time.Second)
				got := a.States(s.Run)["roll"]
				for node, state := range got {
					if !strings.Contains(state.Why, c.want[node].Why) {
						w.Errorf("of %s it is said %q, want %q in it", node, state.Why, c.want[node].Why)
					}
					state.Why = c.want[node].Why
					got[node] = state
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					w.Errorf("-want +got:\n%s", diff)
				}
				if got := w.enqueued(); !slices.Equal(got, []string{"run-roll"}) {
					w.Errorf("enqueued %q", got)
				}
				a.Enqueue()
				w.pass(2 * time.Second)
				if got := w.enqueued(); len(got) > 0 {
					w.Errorf("enqueued %q although there is no news", got)
				}
			})
		})
	}
}

func TestWhatARolloutDoesNotWantAnyMoreIsAnothers(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"), node("b"))
		a := w.lead()
		first := w.rolls(a, "first", 1, nil, "a")
		w.pass(time.Second)
		second := w.rolls(a, "second", 1, nil, "b")
		w.pass(time.Second)
		granted := func(s store.StepKey, node string) bool { return a.States(s.Run)["roll"][node].Granted }
		if !granted(first, "a") || granted(second, "b") {
			w.Fatalf("first %t, second %t", granted(first, "a"), granted(second, "b"))
		}
		a.Want(first.Run, []workflow.NodeDemand{{Path: "roll", Nodes: []string{"a"}, Most: 1}}) // the same
		a.Want(first.Run, nil)
		if granted(first, "a") {
			w.Error("it has what it does not want")
		}
		w.pass(time.Second)
		if !granted(second, "b") {
			w.Error("the other one did not get the slot")
		}
	})
}

// Pods that would never leave keep a plan from a node, before anything is cordoned.
func TestAPlansDrainIsLookedAtBeforeItsCordon(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"), pod("web-1", "a"), budget("web", false))
		a := w.lead()
		o := &drain.Options{}
		s := w.rolls(a, "roll", 1, o, "a")
		w.pass(2 * time.Second)
		if state := a.States(s.Run)["roll"]["a"]; state.Granted || !strings.Contains(state.Why, "shop/web") {
			w.Errorf("it is told %+v", state)
		}
		if len(w.blocked) != 1 || !strings.HasPrefix(w.blocked[0], "roll a: ") {
			w.Errorf("said %q", w.blocked)
		}
		if ok, why := a.Preflight(w.Context(), s, "a", o); ok || !strings.Contains(why, "shop/web") {
			w.Errorf("the step may cordon it: %t, %q", ok, why)
		}
		if got := a.BlockedBy(s, "a", o); !strings.Contains(got, "shop/web") {
			w.Errorf("blocked by %q", got)
		}
		looks := w.api.Asked(agenttest.When{User: "maint-runner", Resource: "pods"})
		if others := w.api.Asked(agenttest.When{User: "agent", Resource: "pods"}); looks == 0 || others > 0 {
			w.Errorf("the pods were asked for %d times as the plan's account, %d times as the agent", looks, others)
		}
		w.api.Put(budget("web", true))
		w.pass(3 * time.Second)
		if state := a.States(s.Run)["roll"]["a"]; !state.Granted {
			w.Errorf("when the budget was mended it is told %+v", state)
		}
		if ok, why := a.Preflight(w.Context(), s, "a", o); !ok || a.BlockedBy(s, "a", o) != "" {
			w.Errorf("when it was mended: %t, %q", ok, why)
		}
	})
}

// What an agent before us found in the way of a drain holds until somebody has looked again.
func TestWhatBlockedADrainIsRememberedUntilTheNextLook(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"))
		a := w.lead()
		s := w.live("roll", drainStep("drain", run.DrainTarget{Name: "a", Blocked: true, Why: "shop/web cannot leave"}))
		o := &drain.Options{OnTimeout: drain.TimeoutAbort}
		if got := a.BlockedBy(s, "a", o); got != "shop/web cannot leave" {
			w.Errorf("before any look: blocked by %q", got)
		}
		if ok, _ := a.Preflight(w.Context(), s, "a", o); ok || a.BlockedBy(s, "a", o) == "" {
			w.Errorf("during the look: %t, blocked by %q", ok, a.BlockedBy(s, "a", o))
		}
		w.pass(time.Second)
		if ok, why := a.Preflight(w.Context(), s, "a", o); !ok || a.BlockedBy(s, "a", o) != "" {
			w.Errorf("after the look: %t, %q", ok, why)
		}
	})
}

// A bypass on a node lets the run that it names have it, and nobody else; that is written down.
func TestABypassOnANodeLetsOneRunPass(t *testing.T) {
	const name = "maint-run-roll-1"
	restrictive := annotated(annotations.ChangeStrategy, "Restrictive")
	for what, c := range map[string]struct {
		node              []func(*corev1.Node)
		everywhere        bool // a pause of the whole cluster
		bare              bool // a drain outside of a rollout
		granted, recorded bool
	}{
		"no bypass":                 {node: []func(*corev1.Node){restrictive}},
		"it names the run":          {node: []func(*corev1.Node){restrictive, annotated(annotations.Bypass, name+": urgent"), annotated(annotations.Actor(annotations.Bypass), "jane")}, granted: true, recorded: true},
		"a drain of the run":        {node: []func(*corev1.Node){restrictive, annotated(annotations.Bypass, name+": urgent"), annotated(annotations.Actor(annotations.Bypass), "jane")}, bare: true, granted: true, recorded: true},
		"it names another run":      {node: []func(*corev1.Node){restrictive, annotated(annotations.Bypass, "maint-run-roll-2: urgent")}},
		"it needs none":             {node: []func(*corev1.Node){annotated(annotations.Bypass, name+": urgent")}, granted: true},
		"a pause of the node holds": {node: []func(*corev1.Node){restrictive, annotated(annotations.Pause, "true"), annotated(annotations.Bypass, name+": urgent")}},
		"a pause of all holds":      {node: []func(*corev1.Node){restrictive, annotated(annotations.Bypass, name+": urgent")}, everywhere: true},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(node("a", c.node...))
				if c.everywhere {
					w.paused(schedule.Pause{On: true})
				}
				a := w.lead()
				step := rollout("roll", run.Item{Name: "a"})
				if c.bare {
					step = drainStep("roll", run.DrainTarget{Name: "a"})
				}
				l := &store.CachedRun{
					Object:  &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: "1", Labels: map[string]string{annotations.LabelPlan: "roll"}}},
					Run:     run.Run{Name: name, Namespace: "shop", Plan: "roll", PlanUID: "plan-uid"},
					Journal: run.Journal{Phase: run.Running, Steps: []run.Record{step}},
				}
				w.runs.Put(l)
				s := store.StepKey{Run: l.Key(), Path: "roll"}
				if c.bare {
					a.Turn(s, "a", nil)
				} else {
					a.Want(s.Run, []workflow.NodeDemand{{Path: "roll", Nodes: []string{"a"}, Most: 1}})
				}
				w.pass(2 * time.Second)
				state := a.States(s.Run)["roll"]["a"]
				granted := state.Granted
				if c.bare {
					granted, _ = a.Turn(s, "a", nil)
				}
				if granted != c.granted || (state.Passed != nil) != c.recorded || w.times("a", "GateBypassed") != len(w.said("a")) || (w.times("a", "GateBypassed") == 1) != c.recorded {
					w.Errorf("granted %t, recorded %+v, said %q", granted, state.Passed, w.said("a"))
				}
				if c.recorded && (state.Passed.Name != "jane" || state.Passed.Reason != "urgent") {
					w.Errorf("recorded %+v", state.Passed)
				}
			})
		})
	}
}

// A node whose own window closes before the work on it would be through is not given.
func TestARolloutDoesNotBeginWhatWouldNotFitTheWindowOfItsNode(t *testing.T) {
	play(t, func(w *world) {
		closes := time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339)
		w.api.Put(node("a", annotated(annotations.ChangeStrategy, "PermissiveUntil"), annotated(annotations.PermissiveUntil, closes)))
		a := w.lead()
		s := w.live("kernel", rollout("roll", run.Item{Name: "a"}))
		a.Want(s.Run, []workflow.NodeDemand{{Path: "roll", Nodes: []string{"a"}, Most: 1, Needs: 20 * time.Minute}})
		w.pass(2 * time.Second)
		if state := a.States(s.Run)["roll"]["a"]; state.Granted || !strings.Contains(state.Why, "it would take about 20m0s, and the node's window closes at "+closes) {
			w.Errorf("it is told %+v", state)
		}
		fits := w.live("other", rollout("roll", run.Item{Name: "a"}))
		a.Want(fits.Run, []workflow.NodeDemand{{Path: "roll", Nodes: []string{"a"}, Most: 1, Needs: 5 * time.Minute}})
		w.pass(2 * time.Second)
		if state := a.States(fits.Run)["roll"]["a"]; !state.Granted {
			w.Errorf("what fits is told %+v", state)
		}
	})
}

// As long as nobody knows what is in the way of a plan's drain, it is said why; and that is not long.
func TestAPlanHearsWhyItsPodsCannotBeRead(t *testing.T) {
	const why = "its pods could not be read before its drain: list the pods of node a: no"
	play(t, func(w *world) {
		w.api.Put(node("a"), pod("web-1", "a"), budget("web", false))
		w.api.Refuse(agenttest.When{Resource: "pods"}, agenttest.Always, http.StatusForbidden, "no")
		a := w.lead()
		o := &drain.Options{}
		s := w.live("roll", drainStep("drain"))
		a.Turn(s, "a", o)
		w.pass(20 * time.Second)
		if granted, got := a.Turn(s, "a", o); granted || got != why {
			t.Errorf("its turn: %t, %q", granted, got)
		}
		if ok, got := a.Preflight(w.Context(), s, "a", o); ok || got != why {
			t.Errorf("before its cordon: %t, %q", ok, got)
		}
		w.pass(15 * time.Second)
		if granted, got := a.Turn(s, "a", o); !granted {
			t.Errorf("after half a minute: %q", got)
		}
	})
}

func TestAPreflightWaitsForItsLook(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"))
		a := w.lead()
		s, other := w.live("roll", drainStep("drain")), store.StepKey{Run: types.NamespacedName{Name: "none"}}
		for what, c := range map[string]struct {
			step  store.StepKey
			ahead *drain.Options
			want  bool
		}{
			"a step that drains nothing":         {s, nil, true},
			"a step of a run that is not there":  {other, &drain.Options{}, true},
			"pods that have not been looked at":  {s, &drain.Options{}, false},
			"other options are another question": {s, &drain.Options{Force: true}, false},
		} {
			if ok, why := a.Preflight(w.Context(), c.step, "a", c.ahead); ok != c.want {
				w.Errorf("%s: %t, %q", what, ok, why)
			}
		}
		w.pass(time.Second)
		if ok, why := a.Preflight(w.Context(), s, "a", &drain.Options{}); !ok {
			w.Errorf("after the look: %q", why)
		}
		if got := w.wakes(); !slices.Equal(got, []string{s.String()}) {
			w.Errorf("woken %q", got)
		}
		if a.BlockedBy(s, "a", nil)+a.BlockedBy(other, "a", &drain.Options{}) != "" {
			w.Error("blocked by something")
		}
	})
}

// hasNode is the drain step of plan roll that has got node a and cordoned it.
func (w *world) hasNode(a *agent) store.StepKey {
	s := w.live("roll", drainStep("drain"))
	a.Turn(s, "a", nil)
	w.pass(time.Second)
	w.edit("a", func(n *corev1.Node) {
		cordoned(n)
		recorded(nodes.Cordon{By: []string{"plan:shop/roll"}})(n)
	})
	return s
}

// webBlocks is what a drain says that budget shop/web blocks.
func webBlocks() nodes.Block {
	return nodes.Block{Permanent: true, Text: "shop/web permits none"}
}

func TestAPlansDrainThatIsBlockedForGoodYieldsItsSlot(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"), pod("web-1", "a"), node("b"))
		a := w.lead()
		o := &drain.Options{}
		s := w.hasNode(a)
		w.live("roll", drainStep("drain", drainTarget("a")))
		w.api.Put(budget("web", false))
		if a.Stalled(s, "a", o, webBlocks()) {
			w.Error("it yields although nobody waits")
		}
		w.edit("b", asked("gpu", noDrain))
		w.wakes()
		w.pass(3 * time.Second)
		if got := w.wakes(); !slices.Equal(got, []string{s.String()}) {
			w.Errorf("woken %q", got)
		}
		if !a.Stalled(s, "a", o, webBlocks()) {
			w.Error("it does not yield")
		}
		w.live("roll", drainStep("drain", run.DrainTarget{Name: "a", Yielded: true, Why: "shop/web permits none"}))
		a.Enqueue()
		w.pass(3 * time.Second)
		w.expect("when it has yielded", "a cordoned for plan:shop/roll", "b cordoned for gpu, gpu Ready")
		if granted, why := a.Turn(s, "a", o); granted || !strings.Contains(why, "shop/web") {
			w.Errorf("it has its turn: %t, %q", granted, why)
		}
		w.api.Put(budget("web", true))
		w.edit("b", withdraw("gpu"))
		w.pass(3 * time.Second)
		if granted, why := a.Turn(s, "a", o); !granted {
			w.Errorf("when the budget was mended: %q", why)
		}
	})
}

func TestAPlansDrainThatYieldedStaysSoWhileItsPodsCannotBeRead(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"), pod("web-1", "a"), node("b"))
		a := w.lead()
		o := &drain.Options{}
		s := w.hasNode(a)
		w.live("roll", drainStep("drain", drainTarget("a")))
		w.api.Put(budget("web", false))
		w.edit("b", asked("gpu", noDrain))
		a.Stalled(s, "a", o, webBlocks())
		w.pass(3 * time.Second)
		if !a.Stalled(s, "a", o, webBlocks()) {
			w.Error("it does not yield")
		}
		w.live("roll", drainStep("drain", run.DrainTarget{Name: "a", Yielded: true, Why: "shop/web permits none"}))
		a.Enqueue()
		w.pass(3 * time.Second)
		letGo := w.api.Refuse(agenttest.When{Resource: "pods"}, agenttest.Always, http.StatusGatewayTimeout, "too late")
		w.edit("b", withdraw("gpu"))
		w.pass(3 * previewTTL)
		if granted, why := a.Turn(s, "a", o); granted || !strings.Contains(why, "shop/web") {
			w.Errorf("it has its turn: %t, %q", granted, why)
		}
		letGo()
		w.api.Put(budget("web", true))
		w.pass(2 * previewTTL)
		if granted, why := a.Turn(s, "a", o); !granted {
			w.Errorf("when the budget was mended: %q", why)
		}
	})
}

// While its pods cannot be read, what a drain of a plan said itself is what stands in its way; and that
// counts no more once the budget has moved.
func TestAPlansDrainWhosePodsCannotBeReadSaysItselfWhatIsInItsWay(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"), pod("web-1", "a"), node("b"))
		a := w.lead()
		o := &drain.Options{}
		s := w.hasNode(a)
		target := drainTarget("a")
		target.Since = a.Now()
		w.live("roll", drainStep("drain", target))
		w.pass(time.Second)
		w.api.Refuse(agenttest.When{Resource: "pods"}, agenttest.Always, http.StatusGatewayTimeout, "too late")
		w.edit("b", asked("gpu", noDrain))
		a.Stalled(s, "a", o, webBlocks())
		w.pass(3 * time.Second)
		if !a.Stalled(s, "a", o, webBlocks()) {
			w.Error("it does not yield")
		}
		target.Yielded, target.Why = true, webBlocks().Text
		w.live("roll", drainStep("drain", target))
		w.edit("b", withdraw("gpu"))
		w.pass(3 * previewTTL)
		if granted, why := a.Turn(s, "a", o); granted || !strings.Contains(why, webBlocks().Text) {
			w.Errorf("it has its turn: %t, %q", granted, why)
		}
		w.pass(mostUnread)
		if granted, why := a.Turn(s, "a", o); !granted {
			w.Errorf("when nobody has seen the block for long: %q", why)
		}
	})
}

func TestAPlansDrainThatYieldedGoesOnWhenItsBudgetHasMovedAndNobodyCanLook(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"), pod("web-1", "a"), budget("web", false), node("b"))
		a := w.lead()
		o := &drain.Options{}
		s := w.hasNode(a)
		w.live("roll", drainStep("drain", drainTarget("a")))
		w.edit("b", asked("gpu", noDrain))
		a.Stalled(s, "a", o, webBlocks())
		w.pass(3 * time.Second)
		if !a.Stalled(s, "a", o, webBlocks()) {
			w.Error("it does not yield")
		}
		w.live("roll", drainStep("drain", run.DrainTarget{Name: "a", Yielded: true, Why: webBlocks().Text}))
		w.edit("b", withdraw("gpu"))
		w.pass(10 * time.Second)
		w.api.Refuse(agenttest.When{Resource: "pods"}, agenttest.Always, http.StatusGatewayTimeout, "too late")
		w.pass(5 * previewTTL)
		if granted, why := a.Turn(s, "a", o); granted || !strings.Contains(why, "shop/web") {
			w.Errorf("it has its turn: %t, %q", granted, why)
		}
		w.api.Put(budget("web", true))
		w.pass(10 * time.Second)
		if granted, why := a.Turn(s, "a", o); !granted {
			w.Errorf("when its budget has moved: %q", why)
		}
	})
}

func TestAPlansDrainOfAPodThatNeverCompletesHoldsNoSlotOnceTimeIsOver(t *testing.T) {
	play(t, func(w *world) {
		waits := func(p *corev1.Pod) { p.Annotations = map[string]string{annotations.DrainHow: drain.HowWaitCompleted} }
		w.api.Put(node("a"), pod("web-1", "a", waits), node("b"))
		a := w.lead()
		o := &drain.Options{}
		s := w.hasNode(a)
		target := drainTarget("a")
		target.Cordoned, target.Since = true, a.Now()
		w.live("roll", drainStep("drain", target))
		w.pass(drain.DefaultDrainTimeout + time.Second)
		w.edit("b", asked("gpu", noDrain))
		a.Stalled(s, "a", o, webBlocks())
		w.pass(3 * time.Second)
		if !a.Stalled(s, "a", o, webBlocks()) {
			w.Error("it does not yield")
		}
		target.Yielded, target.Why = true, "web-1 has not completed"
		w.live("roll", drainStep("drain", target))
		w.edit("b", withdraw("gpu"))
		w.pass(2 * previewTTL)
		if granted, why := a.Turn(s, "a", o); granted || !strings.Contains(why, "shop/web-1") {
			w.Errorf("it has its turn: %t, %q", granted, why)
		}
		w.api.Put(pod("web-1", "a", waits, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
		w.pass(2 * previewTTL)
		if granted, why := a.Turn(s, "a", o); !granted {
			w.Errorf("when it has completed: %q", why)
		}
	})
}

func TestADrainThatIsNotBlockedAnyMoreHasNotStalled(t *testing.T) {
	play(t, func(w *world) {
		a := w.lead()
		s := w.live("roll", drainStep("drain", drainTarget("a")))
		a.Stalled(s, "a", &drain.Options{}, webBlocks())
		if len(a.state.demand.stalled) != 1 {
			w.Fatalf("%d have stalled", len(a.state.demand.stalled))
		}
		a.Stalled(s, "a", &drain.Options{}, nodes.Block{})
		if len(a.state.demand.stalled) != 0 {
			w.Error("it has stalled still")
		}
		a.Stalled(s, "a", &drain.Options{}, webBlocks())
		w.end(s)
		a.Enqueue()
		w.pass(time.Second)
		if len(a.state.demand.stalled) != 0 {
			w.Error("it has stalled although its run has ended")
		}
	})
}

func TestADrainThatMovesWakesTheStepsOfItsPlanAlone(t *testing.T) {
	play(t, func(w *world) {
		a := w.lead()
		s := w.live("roll", drainStep("drain", drainTarget("a")))
		w.live("other", drainStep("drain", drainTarget("a")))
		a.drains.changed("a", "plan:shop/roll")
		if got := w.wakes(); !slices.Equal(got, []string{s.String()}) {
			w.Errorf("woken %q", got)
		}
	})
}

func TestAnUncordonThatWasSeenIsRemembered(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", cordoned))
		a := w.lead()
		w.pass(time.Second)
		if at := a.OpenedAt("a"); !at.IsZero() {
			w.Errorf("it was opened at %s", at)
		}
		now := time.Now()
		w.edit("a", func(n *corev1.Node) { n.Spec.Unschedulable = false })
		w.pass(time.Second)
		if at := a.OpenedAt("a"); !at.Equal(now) {
			w.Errorf("it was opened at %s", at)
		}
		w.edit("a", cordoned)
		w.pass(time.Second)
		if at := a.OpenedAt("a"); !at.IsZero() {
			w.Errorf("it is cordoned again, and was opened at %s", at)
		}
	})
}

func TestNodesThatAreGoneAreAskedForLive(t *testing.T) {
	for name, c := range map[string]struct {
		scope string
		away  bool
		want  map[string]bool
	}{
		"one that is not there is gone":                {want: map[string]bool{"b": true}},
		"an agent that is not answered knows of none":  {away: true, want: map[string]bool{"b": false}},
		"an agent that watches no nodes knows of none": {scope: "shop", want: map[string]bool{}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(node("a"))
				w.scope.WatchNamespace = c.scope
				a := w.lead()
				if c.away {
					w.api.Refuse(agenttest.When{Verb: "get", Resource: "nodes"}, agenttest.Always, 500, "broken")
				}
				got := a.Gone(w.Context(), run.NodeTurns{"a": {}, "b": {}})
				if diff := cmp.Diff(c.want, got); diff != "" {
					w.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

func TestWhatSurgesLeftIsGivenBack(t *testing.T) {
	refused := apierrors.NewForbidden(corev1.Resource("deployments"), "", nil)
	for name, c := range map[string]struct {
		left   int
		err    error
		until  time.Duration // err is what is answered; zero: always
		dryRun bool
		want   int // sweeps of each of the two in two minutes
	}{
		"once, where nothing is left":                            {want: 1},
		"again, while something is left":                         {left: 1, want: 4},
		"again, while it cannot be looked at":                    {err: errors.New("broken"), want: 4},
		"for half a minute, where it may not be looked at":       {err: refused, want: 3},
		"again, where an API server that starts refused it once": {err: refused, until: 15 * time.Second, want: 2},
		"again, while something is left that may not be changed": {left: 1, err: refused, want: 4},
		"never by an agent that rehearses":                       {dryRun: true},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(node("a", asked("gpu", "{}")), node("b"))
				w.limits.MaxParallelOperations = 2
				w.plans = map[types.NamespacedName]client.Account{{Namespace: "shop", Name: "roll"}: {Namespace: "shop", Name: "maint-runner"}}
				w.live("roll", drainStep("drain", drainTarget("b")))
				w.scope.DryRun = c.dryRun
				a := w.lead()
				a.drains.mu.Lock()
				a.drains.left, a.drains.sweepErr = c.left, c.err
				a.drains.mu.Unlock()
				if c.until > 0 {
					w.pass(c.until)
					a.drains.mu.Lock()
					a.drains.sweepErr = nil
					a.drains.mu.Unlock()
				}
				w.pass(2*time.Minute - c.until)
				if diff := cmp.Diff(append([]string(nil), slices.Repeat([]string{"requests but a", "plan:shop/roll but b"}, c.want)...), a.drains.swept); diff != "" {
					w.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// What cannot be given back is tried again less and less, and what drains gave up on later, too.
func TestSweepsOfSurgesPauseLongerAndLonger(t *testing.T) {
	play(t, func(w *world) {
		w.plans = map[types.NamespacedName]client.Account{{Namespace: "shop", Name: "roll"}: {Namespace: "shop", Name: "maint-runner"}}
		a := w.lead()
		swept := func(left int, unswept ...string) int {
			a.drains.mu.Lock()
			defer a.drains.mu.Unlock()
			n := len(a.drains.swept)
			a.drains.swept, a.drains.left, a.drains.unswept = nil, left, unswept
			return n
		}
		swept(1)
		w.pass(85 * time.Second) // after 10, 20, 40 and 80 seconds
		if n := swept(1); n != 2*4 {
			w.Errorf("%d sweeps at first", n)
		}
		w.pass(time.Hour)
		if n := swept(0); n < 2*11 || n > 2*14 {
			w.Errorf("%d sweeps in an hour", n)
		}
		w.pass(10 * time.Minute)
		swept(0)
		w.pass(10 * time.Minute)
		if n := swept(0, "plan:shop/roll", "plan:shop/gone"); n != 0 {
			w.Errorf("%d sweeps where nothing is left", n)
		}
		w.pass(time.Minute)
		if diff := cmp.Diff([]string{"plan:shop/roll"}, a.drains.swept); diff != "" {
			w.Errorf("after a drain gave up: -want +got:\n%s", diff)
		}
	})
}

func TestWhatMetricsShowOfNodes(t *testing.T) {
	soon := dawn().Add(time.Hour).Format(time.RFC3339)
	for name, c := range map[string]struct {
		node     *corev1.Node
		shown    bool
		system   string
		permits  bool
		strategy string
		ends     bool // by itself
	}{
		"a node of which nothing is said is not shown":    {node: node("a")},
		"one with a request is":                           {node: node("a", asked("gpu", noDrain)), shown: true, system: "worker-nodes", permits: true, strategy: "Permissive"},
		"one that is paused permits nothing":              {node: node("a", annotated(annotations.Pause, "true")), shown: true, system: "worker-nodes", strategy: "Restrictive"},
		"one that is paused until then permits nothing":   {node: node("a", annotated(annotations.Pause, soon)), shown: true, system: "worker-nodes", strategy: "Restrictive", ends: true},
		"one whose stanza is restrictive permits nothing": {node: node("a", annotated(annotations.ChangeStrategy, "Restrictive")), shown: true, system: "worker-nodes", strategy: "Restrictive"},
		"one of the control plane is shown as that":       {node: node("a", asked("gpu", noDrain), labelled(controlPlane()[0], "")), shown: true, system: "control-plane", permits: true, strategy: "Permissive"},
		"a label of its own says what it belongs to":      {node: node("a", asked("gpu", noDrain), labelled(annotations.LabelSystem, "edge")), shown: true, system: "edge", permits: true, strategy: "Permissive"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(c.node)
				a := w.lead()
				w.pass(time.Second)
				book := a.Config.Gates.Store
				o, shown := book.Subjects()[types.NamespacedName{Name: "a"}]
				if shown != c.shown {
					w.Fatalf("shown: %t", shown)
				}
				if shown {
					now := time.Now()
					if v := o.Verdict(now); o.System != c.system || v.Permitted != c.permits || string(o.Strategy(now)) != c.strategy {
						w.Errorf("it is of %s, permits %t, strategy %s", o.System, v.Permitted, o.Strategy(now))
					}
					if until := o.Verdict(now).Until; (until != nil) != c.ends {
						w.Errorf("until %v", until)
					}
				}
				w.api.Delete("nodes", "", "a")
				w.pass(time.Second)
				if left := book.Subjects(); len(left) > 0 {
					w.Errorf("a node that is gone is shown: %v", left)
				}
			})
		})
	}
}

func TestWhatMetricsShowOfTheWorkOnANode(t *testing.T) {
	play(t, func(w *world) {
		w.limits.MaxParallelOperations = int64(1)
		w.api.Put(node("a", asked("gpu", `{}`)))
		w.api.Put(node("b", annotated(annotations.ChangeStrategy, "Permissive")))
		a := w.lead()
		shows := func(when string, want map[string]int) {
			w.Helper()
			w.pass(time.Second)
			got := map[string]int{}
			for k, o := range a.Config.Gates.Store.Subjects() {
				got[k.Name] = o.Pending
			}
			if diff := cmp.Diff(want, got); diff != "" {
				w.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		shows("a drains", map[string]int{"a": store.PendingInitiated, "b": store.PendingNone})
		w.edit("b", asked("gpu", `{}`))
		shows("b waits for its turn", map[string]int{"a": store.PendingInitiated, "b": store.PendingBlocked})
		a.drains.done("a")
		shows("a is its requestor's", map[string]int{"a": store.PendingInitiated, "b": store.PendingBlocked})
		w.edit("a", withdraw("gpu"))
		w.pass(time.Second)
		shows("b drains, and a is nobody's", map[string]int{"b": store.PendingInitiated})
	})
	play(t, func(w *world) {
		w.scope.DryRun = true
		w.api.Put(node("a", asked("gpu", `{}`)))
		a := w.lead()
		w.pass(time.Second)
		if o := a.Config.Gates.Store.Subjects()[types.NamespacedName{Name: "a"}]; o == nil || o.Pending != store.PendingNone {
			w.Errorf("an agent that carries nothing out shows %+v", o)
		}
	})
}

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func TestWhatIsKnownOfTheAgentsOwnReplicas(t *testing.T) {
	own := func(name, on string) *corev1.Pod {
		p := pod(name, on)
		p.Namespace, p.Labels = "maint-system", map[string]string{annotations.AgentLabel: annotations.AgentName}
		return p
	}
	for name, c := range map[string]struct {
		pods []*corev1.Pod
		deny bool
		want drain.Agent
	}{
		"a node without one":                     {pods: []*corev1.Pod{pod("web-1", "a"), own("agent-1", "b")}},
		"a node with the only one":               {pods: []*corev1.Pod{own("agent-1", "a")}, want: drain.Agent{Pod: "maint-system/agent-1"}},
		"a node with one, and one is on another": {pods: []*corev1.Pod{own("agent-1", "a"), own("agent-2", "b")}, want: drain.Agent{Pod: "maint-system/agent-1", Elsewhere: drain.ReadyElsewhere}},
		"the others cannot be looked at":         {pods: []*corev1.Pod{own("agent-1", "a"), own("agent-2", "b")}, deny: true, want: drain.Agent{Pod: "maint-system/agent-1", Unknown: "forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.scope.Pod = "maint-system/agent-1"
				var here []drain.Pod
				for _, p := range c.pods {
					w.api.Put(p)
					if p.Spec.NodeName == "a" {
						here = append(here, annotations.DrainPod(p))
					}
				}
				a := w.lead()
				if c.deny {
					w.api.Deny("", "list", "pods")
					w.api.Deny("", "watch", "pods")
				}
				got := a.pods.ownReplicas(w.Context(), "a", here)
				if c.want.Unknown != "" && strings.Contains(got.Unknown, c.want.Unknown) {
					got.Unknown = c.want.Unknown
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					w.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

func TestRequestsThatAreNotCarriedOutTakeNobodysTurn(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"of an agent that rehearses":           func(w *world) { w.scope.DryRun = true },
		"of an agent that may not write nodes": func(w *world) { w.api.Deny("", "patch", "nodes") },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(node("a", asked("gpu", `{"priority":1000,"drain":false}`)), node("b"))
				change(w)
				a := w.lead()
				w.pass(40 * time.Second)
				s := w.live("roll", drainStep("drain"))
				a.Turn(s, "b", nil)
				w.pass(2 * time.Second)
				if granted, why := a.Turn(s, "b", nil); !granted {
					w.Errorf("the plan has not its turn: %q", why)
				}
			})
		})
	}
}
