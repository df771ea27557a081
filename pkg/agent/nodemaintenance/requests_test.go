package nodemaintenance

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // values of these tests
	}
	return b
}

// What becomes of nodes that are left to the agent for a while.
func TestRequestsForNodes(t *testing.T) {
	for name, c := range map[string]struct {
		nodes  []*corev1.Node
		limits nodes.NodeLimits
		change func(w *world) // before the agent leads
		want   []string
	}{
		"a request that asks for no drain gets its node cordoned": {
			nodes: []*corev1.Node{node("a", asked("gpu", noDrain)), node("b")},
			want:  []string{"a cordoned for gpu, gpu Ready", "b open"},
		},
		"a request waits for its drain": {
			nodes: []*corev1.Node{node("a", asked("gpu", "{}"))},
			want:  []string{"a cordoned for gpu, gpu Draining"},
		},
		"a request that wants no cordon gets none": {
			nodes: []*corev1.Node{node("a", asked("gpu", `{"drain":false,"cordon":false}`))},
			want:  []string{"a open, gpu Ready"},
		},
		"a request that cannot be read is said to be invalid, and takes no slot": {
			nodes: []*corev1.Node{node("a", asked("gpu", "{")), node("b", asked("os", noDrain))},
			want:  []string{"a open, gpu Invalid", "b cordoned for os, os Ready"},
		},
		"two requestors, one slot: the older one gets it": {
			nodes: []*corev1.Node{
				node("a", asked("gpu", noDrain), status("gpu", nodes.Status{Phase: nodes.Pending, Asked: dawn().Add(-time.Minute)})),
				node("b", asked("os", noDrain), status("os", nodes.Status{Phase: nodes.Pending, Asked: dawn().Add(-2 * time.Minute)})),
			},
			want: []string{"a open, gpu Pending", "b cordoned for os, os Ready"},
		},
		"two requestors, two slots: both have their nodes": {
			nodes:  []*corev1.Node{node("a", asked("gpu", noDrain)), node("b", asked("os", noDrain)), node("c")},
			limits: nodes.NodeLimits{MaxParallelOperations: 2},
			want:   []string{"a cordoned for gpu, gpu Ready", "b cordoned for os, os Ready", "c open"},
		},
		"two nodes of one zone wait for one another": {
			nodes: []*corev1.Node{
				node("a", asked("gpu", noDrain), zone("z1")), node("b", asked("gpu", noDrain), zone("z1")), node("c", asked("gpu", noDrain), zone("z2")),
			},
			limits: nodes.NodeLimits{MaxParallelOperations: 3, ZoneLimit: 1},
			want:   []string{"a cordoned for gpu, gpu Ready", "b open, gpu Pending", "c cordoned for gpu, gpu Ready"},
		},
		"a node that is not ready costs the budget": {
			nodes: []*corev1.Node{
				node("a", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }), node("b", asked("gpu", noDrain)),
			},
			limits: nodes.NodeLimits{MaxUnavailable: 1},
			want:   []string{"a open", "b open, gpu Pending"},
		},
		"nothing begins while the whole cluster is paused": {
			nodes:  []*corev1.Node{node("a", asked("gpu", noDrain))},
			change: func(w *world) { w.pauses = []schedule.Pause{{}, {On: true}} },
			want:   []string{"a open, gpu Pending"},
		},
		"nothing begins while the clock is doubted": {
			nodes:  []*corev1.Node{node("a", asked("gpu", noDrain))},
			change: func(w *world) { w.doubt = "the clocks are apart" },
			want:   []string{"a open, gpu Pending"},
		},
		"nothing begins on a node that is paused": {
			nodes: []*corev1.Node{node("a", asked("gpu", noDrain), annotated(annotations.Pause, "true")), node("b", asked("gpu", noDrain))},
			want:  []string{"a open, gpu Pending", "b cordoned for gpu, gpu Ready"},
		},
		"nothing begins on a node whose window is closed": {
			nodes: []*corev1.Node{node("a", asked("gpu", noDrain), annotated(annotations.ChangeStrategy, "Restrictive"))},
			want:  []string{"a open, gpu Pending"},
		},
		"a rehearsing agent writes nothing": {
			nodes:  []*corev1.Node{node("a", asked("gpu", noDrain))},
			change: func(w *world) { w.scope.DryRun = true },
			want:   []string{"a open, gpu new"},
		},
		"a node that is cordoned for a plan at work is left alone": {
			nodes:  []*corev1.Node{node("a", cordoned, recorded(nodes.Cordon{By: []string{"plan:shop/roll"}}))},
			change: func(w *world) { w.live("roll", drainStep("drain", drainTarget("a"))) },
			want:   []string{"a cordoned for plan:shop/roll"},
		},
		"the record of plans alone goes from a node that somebody opened": {
			nodes: []*corev1.Node{node("a", recorded(nodes.Cordon{By: []string{"plan:shop/roll"}}))},
			want:  []string{"a open"},
		},
		"it stays while the plan has the node": {
			nodes:  []*corev1.Node{node("a", recorded(nodes.Cordon{By: []string{"plan:shop/roll"}}))},
			change: func(w *world) { w.live("roll", drainStep("drain", drainTarget("a"))) },
			want:   []string{"a open for plan:shop/roll"},
		},
		"a status without a request goes": {
			nodes: []*corev1.Node{node("a", status("gpu", nodes.Status{Phase: nodes.Pending}))},
			want:  []string{"a open"},
		},
		"a node of another uid under the name has been drained of nothing": {
			nodes: []*corev1.Node{node("a", asked("gpu", "{}"), status("gpu", nodes.Status{Phase: nodes.Ready, Node: "another", Drained: "x"}))},
			want:  []string{"a cordoned for gpu, gpu Draining"},
		},
		"a node that is being deleted is not begun": {
			nodes: []*corev1.Node{node("a", asked("gpu", noDrain), func(n *corev1.Node) {
				n.Finalizers, n.DeletionTimestamp = []string{"example.org/x"}, &metav1.Time{Time: dawn()}
			})},
			want: []string{"a open, gpu new"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				for _, n := range c.nodes {
					w.api.Put(n)
				}
				w.limits = c.limits
				if c.change != nil {
					c.change(w)
				}
				w.lead()
				w.pass(5 * time.Second)
				w.expect("after five seconds", c.want...)
				w.api.ClearLog()
				w.pass(time.Minute)
				if got := w.api.Log(); len(got) > 0 {
					w.Errorf("writes in a minute in which nothing happened: %q", got)
				}
			})
		})
	}
}

// dawn is when the clock of a synctest bubble begins.
func dawn() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

func zone(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = name }
}

func TestARequestFromItsBeginToItsEnd(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"), node("b", cordoned))
		a := w.lead()
		w.edit("a", asked("gpu", `{"reason":"driver"}`))
		w.pass(2 * time.Second)
		w.expect("while pods leave", "a cordoned for gpu, gpu Draining", "b cordoned")
		if got, want := a.drains.running(), []string{"a requests"}; !slices.Equal(got, want) {
			w.Errorf("drains %q, want %q", got, want)
		}
		a.drains.done("a")
		w.pass(2 * time.Second)
		w.expect("when they have left", "a cordoned for gpu, gpu Ready", "b cordoned")
		w.edit("a", asked("gpu", `{"reason":"driver","failed":true}`))
		w.pass(2 * time.Second)
		w.expect("when its requestor failed", "a cordoned for gpu, gpu RequestorFailed", "b cordoned")
		w.edit("a", withdraw("gpu"))
		w.pass(2 * time.Second)
		w.expect("when its requestor gave it back", "a open", "b cordoned")
		want := []string{"Scheduled", "Cordoned", "Draining", "Drained", "Ready", "RequestorFailed", "Released", "Uncordoned"}
		if diff := cmp.Diff(want, w.said("a")); diff != "" {
			w.Errorf("Events, -want +got:\n%s", diff)
		}
		if got := w.patches("b"); got > 0 {
			w.Errorf("the other node was patched %d times", got)
		}
	})
}

// Who asks for a node may perhaps not read what closes it: it is told on the node, while somebody
// asks, and not written again while nothing changes.
func TestARequestedNodeTellsWhatItsGateSays(t *testing.T) {
	play(t, func(w *world) {
		opens := dawn().Add(time.Hour)
		w.api.Put(node("a", annotated(annotations.ChangeStrategy, "RestrictiveUntil"), annotated(annotations.RestrictiveUntil, opens.Format(time.RFC3339)), annotated(annotations.Reason(annotations.ChangeStrategy), "launch")), node("b", asked("gpu", noDrain)))
		w.lead()
		told := func(when, want string) {
			w.Helper()
			got := w.node("a").Annotations[annotations.StatusBehavior]
			if !strings.Contains(got, want) || (got == "") != (want == "") {
				w.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		w.pass(2 * time.Second)
		told("while nobody asks", "")
		w.edit("a", asked("os", noDrain))
		w.pass(2 * time.Second)
		told("while it is closed", `{"current":{"state":"ChangesPaused","strategy":"Restrictive","endTime":"2000-01-01T01:00:00Z","reason":"RestrictiveUntil 2000-01-01T01:00:00Z: launch"}`)
		before := w.patches("a")
		w.pass(30 * time.Minute)
		if got := w.patches("a"); got != before {
			w.Errorf("%d writes while nothing changed", got-before)
		}
		w.paused(schedule.Pause{Of: annotations.WholeCluster, On: true})
		w.pass(2 * time.Minute)
		told("while the cluster is paused", `"reason":"the whole cluster is paused`)
		w.paused()
		w.edit("a", func(n *corev1.Node) {
			delete(n.Annotations, annotations.ChangeStrategy)
			delete(n.Annotations, annotations.RestrictiveUntil)
		})
		w.pass(2 * time.Minute)
		told("when nothing stands there any more", "")
		w.edit("a", annotated(annotations.ChangeStrategy, "Restrictive"))
		w.pass(2 * time.Second)
		told("when it is closed again", `{"current":{"state":"ChangesPaused","strategy":"Restrictive"`)
		w.edit("a", withdraw("os"))
		w.pass(2 * time.Second)
		told("when nobody asks any more", "")
		if got := w.node("b").Annotations[annotations.StatusBehavior]; got != "" {
			w.Errorf("the other node says %q", got)
		}
	})
}

func TestWhatEndsADrain(t *testing.T) {
	for name, c := range map[string]struct {
		value string
		do    func(w *world, a *agent)
		want  string
		runs  bool // the drain goes on
	}{
		"a request that is deleted in mid-drain uncordons what we cordoned": {
			do: func(w *world, _ *agent) { w.edit("a", withdraw("gpu")) }, want: "a open",
		},
		"a person's uncordon stops it, and is not undone": {
			do:   func(w *world, _ *agent) { w.edit("a", func(n *corev1.Node) { n.Spec.Unschedulable = false }) },
			want: "a open for gpu (undone), gpu Draining",
		},
		"with the second cordon by a person it goes on": {
			do: func(w *world, _ *agent) {
				w.edit("a", func(n *corev1.Node) { n.Spec.Unschedulable = false })
				w.pass(2 * time.Second)
				w.edit("a", cordoned)
			},
			want: "a cordoned for gpu, gpu Draining", runs: true,
		},
		"and that cordon stays when the request goes": {
			do: func(w *world, _ *agent) {
				w.edit("a", func(n *corev1.Node) { n.Spec.Unschedulable = false })
				w.pass(2 * time.Second)
				w.edit("a", cordoned)
				w.pass(2 * time.Second)
				w.edit("a", withdraw("gpu"))
			},
			want: "a cordoned",
		},
		"a drain that is out of time gives the node back, where that is asked": {
			value: `{"drain":{"onTimeout":"abort"}}`,
			do: func(_ *world, a *agent) {
				a.drains.say("a", executors.DrainStatus{Aborted: true, Reason: executors.DrainTimedOut, Total: 2, Left: 1})
			},
			want: "a open, gpu Pending",
		},
		"a value that cannot be read any more keeps the node, and drains nothing": {
			do: func(w *world, _ *agent) { w.edit("a", asked("gpu", "{")) }, want: "a cordoned for gpu, gpu Draining",
		},
		"a drain that says nothing new goes on": {
			do: func(_ *world, a *agent) {
				a.drains.say("a", executors.DrainStatus{Reason: executors.DrainWorking, Total: 2, Left: 2})
			},
			want: "a cordoned for gpu, gpu Draining", runs: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				value := c.value
				if value == "" {
					value = "{}"
				}
				w.api.Put(node("a", asked("gpu", value)))
				a := w.lead()
				w.pass(3 * time.Second)
				w.expect("before", "a cordoned for gpu, gpu Draining")
				c.do(w, a)
				w.pass(3 * time.Second)
				w.expect("after it", c.want)
				if runs := len(a.drains.running()) > 0; runs != c.runs {
					w.Errorf("the drain runs: %t, want %t", runs, c.runs)
				}
			})
		})
	}
}

func TestAPersonsCordonIsKept(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", cordoned, asked("gpu", noDrain)))
		w.lead()
		w.pass(3 * time.Second)
		w.expect("while it is the requestor's", "a cordoned for gpu, gpu Ready")
		w.edit("a", withdraw("gpu"))
		w.pass(3 * time.Second)
		w.expect("when it was given back", "a cordoned")
	})
}

func TestWritesOfNodesThatGoWrong(t *testing.T) {
	patch := agenttest.When{Verb: "patch", Resource: "nodes", Name: "a"}
	done := []string{"Scheduled", "Cordoned", "Ready"}
	for name, c := range map[string]struct {
		fault  func(*agenttest.Cluster)
		after  time.Duration
		want   string
		events []string
	}{
		"a reply that was lost is looked for, and what was written is said once": {
			fault: func(api *agenttest.Cluster) { api.LoseReply(patch, 1) }, after: 3 * time.Second, want: "a cordoned for gpu, gpu Ready", events: done,
		},
		"a request that was lost is made again after a pause": {
			fault: func(api *agenttest.Cluster) { api.Fail(patch, 1) }, after: 4 * time.Second, want: "a cordoned for gpu, gpu Ready", events: done,
		},
		"an API server that is away is left alone for two seconds": {
			fault: func(api *agenttest.Cluster) { api.Refuse(patch, 1, 503, "starting") }, after: 1900 * time.Millisecond, want: "a open, gpu new",
		},
		"and asked again after them": {
			fault: func(api *agenttest.Cluster) { api.Refuse(patch, 1, 503, "starting") }, after: 4 * time.Second, want: "a cordoned for gpu, gpu Ready", events: done,
		},
		"a node that the API server does not take is left alone for longer": {
			fault: func(api *agenttest.Cluster) { api.Refuse(patch, 1, 422, "invalid") }, after: 20 * time.Second, want: "a open, gpu new", events: []string{"NodeNotWritten"},
		},
		"a write that is never answered ends after ten seconds": {
			fault: func(api *agenttest.Cluster) { api.Hold(patch, 1) }, after: 16 * time.Second, want: "a cordoned for gpu, gpu Ready", events: done,
		},
		"a request that is withdrawn right before its write is not carried out": {
			fault: func(api *agenttest.Cluster) {
				api.Before(patch, func() {
					api.Edit("nodes", "", "a", func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{}) })
				})
			},
			after: 4 * time.Second, want: "a open",
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(node("a", asked("gpu", noDrain)))
				c.fault(w.api)
				w.lead()
				w.pass(c.after)
				w.expect("then", c.want)
				if diff := cmp.Diff(c.events, w.said("a")); diff != "" {
					w.Errorf("Events, -want +got:\n%s", diff)
				}
			})
		})
	}
}

// A kubelet may fill the annotations of its own node, so that nothing more can be written there.
func TestANodeThatCannotBeWrittenKeepsNobodyElseFromATurn(t *testing.T) {
	told := func(phase nodes.Phase) func(*corev1.Node) {
		return status("gpu", nodes.Status{Phase: phase, Asked: dawn().Add(-time.Minute), Since: dawn().Add(-time.Minute)})
	}
	for name, c := range map[string]struct {
		first *corev1.Node
		said  string
	}{
		"that has just been asked for": {first: node("a", asked("gpu", `{"drain":false,"priority":10}`)), said: "new"},
		"that waits":                   {first: node("a", asked("gpu", `{"drain":false,"priority":10}`), told(nodes.Pending)), said: "Pending"},
		"that was told to be next":     {first: node("a", asked("gpu", `{"drain":false,"priority":10}`), told(nodes.Scheduled)), said: "Scheduled"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(c.first, node("b", asked("os", noDrain)))
				mend := w.api.Refuse(agenttest.When{Verb: "patch", Resource: "nodes", Name: "a"}, agenttest.Always, 422, "metadata.annotations: Too long: may not be more than 262144 bytes")
				w.lead()
				w.pass(10 * time.Second)
				w.expect("while it cannot be written", "a open, gpu "+c.said, "b cordoned for os, os Ready")
				w.pass(10 * time.Minute)
				if got := w.said("a"); !slices.Equal(got, []string{"NodeNotWritten"}) {
					t.Errorf("Events %q, want it said once", got)
				}
				if got := w.patches("a"); got > 25 {
					t.Errorf("%d writes were tried in ten minutes", got)
				}
				mend()
				w.pass(time.Minute)
				w.expect("when it can be written, but another has the slot", "a open, gpu Pending", "b cordoned for os, os Ready")
				w.edit("b", withdraw("os"))
				w.pass(time.Minute)
				w.expect("when the slot is free", "a cordoned for gpu, gpu Ready", "b open")
			})
		})
	}
}

// It may also do so after the node was cordoned.
func TestANodeThatCannotBeWrittenAnyMoreKeepsNobodyElseFromATurn(t *testing.T) {
	for name, c := range map[string]struct {
		value string
		given func(w *world, a *agent) // what is to be written on the node, and cannot
		keeps string                   // how the node stays
		ends  string                   // how it is at the end
	}{
		"while it is drained": {
			value: "{}", given: func(_ *world, a *agent) { a.drains.done("a") }, keeps: "a cordoned for gpu, gpu Draining", ends: "a cordoned for gpu, gpu Ready",
		},
		"while it waits for pods": {
			value: `{"waitFor":{"podSelector":"app=web"}}`, given: func(w *world, _ *agent) { w.api.Delete("pods", "shop", "web-1") }, keeps: "a cordoned for gpu, gpu WaitingForPods", ends: "a cordoned for gpu, gpu Ready",
		},
		"when its request is removed": {
			value: "{}", given: func(w *world, _ *agent) { w.edit("a", withdraw("gpu")) }, keeps: "a cordoned for gpu, gpu Draining", ends: "a open",
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(node("a", asked("gpu", c.value)), pod("web-1", "a"))
				first := w.lead()
				w.pass(13 * time.Second)
				w.expect("before", c.keeps)
				mend := w.api.Refuse(agenttest.When{Verb: "patch", Resource: "nodes", Name: "a"}, agenttest.Always, 422, "metadata.annotations: Too long: may not be more than 262144 bytes")
				w.api.Put(node("b", asked("os", noDrain)))
				c.given(w, first)
				w.pass(10 * time.Second)
				w.expect("while it cannot be written", c.keeps, "b cordoned for os, os Ready")
				if got := first.drains.running(); len(got) != 0 {
					t.Errorf("it drains still: %q", got)
				}
				w.pass(10 * time.Minute)
				if got := w.times("a", eventNotWritten); got != 1 {
					t.Errorf("it is said %d times: %q", got, w.said("a"))
				}
				if got := w.patches("a"); got > 30 {
					t.Errorf("%d writes were tried in ten minutes", got)
				}
				first.stop()
				second := w.lead()
				w.pass(time.Minute)
				w.expect("with another agent", c.keeps, "b cordoned for os, os Ready")
				mend()
				w.pass(time.Minute)
				w.edit("b", withdraw("os"))
				w.pass(15 * time.Second)
				second.drains.done("a")
				w.pass(time.Minute)
				w.expect("when it can be written, and the slot is free", c.ends, "b open")
			})
		})
	}
}

// It has its slot again when one is free, and not before.
func TestANodeThatCanBeWrittenAgainWaitsForASlot(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", "{}")))
		a := w.lead()
		w.pass(13 * time.Second)
		mend := w.api.Refuse(agenttest.When{Verb: "patch", Resource: "nodes", Name: "a"}, agenttest.Always, 422, "metadata.annotations: Too long")
		w.api.Put(node("b", asked("os", noDrain)))
		a.drains.done("a")
		w.pass(10 * time.Second)
		mend()
		w.pass(time.Minute)
		w.expect("while another has the slot", "a cordoned for gpu, gpu Draining", "b cordoned for os, os Ready")
		if s := w.status("a", "gpu"); s.Yielded == nil || !slices.Contains(w.said("a"), "DrainYielded") {
			t.Errorf("it does not say that others have its slot: %s, %q", s, w.said("a"))
		}
		full := w.api.Refuse(agenttest.When{Verb: "patch", Resource: "nodes", Name: "a"}, agenttest.Always, 422, "metadata.annotations: Too long")
		w.edit("b", withdraw("os"))
		w.api.Put(node("c", asked("os", noDrain)))
		w.pass(time.Minute)
		w.expect("when it is filled once more", "a cordoned for gpu, gpu Draining", "b open", "c cordoned for os, os Ready")
		full()
		w.edit("c", withdraw("os"))
		w.pass(time.Minute)
		a.drains.done("a")
		w.pass(10 * time.Second)
		w.expect("at the end", "a cordoned for gpu, gpu Ready", "b open", "c open")
	})
}

func TestAConflictIsReadAgainAndNotOverwritten(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"))
		w.lead()
		w.pass(time.Second)
		w.edit("a", asked("gpu", noDrain))
		letGo := w.api.Hold(agenttest.When{Verb: "patch", Resource: "nodes", Name: "a"}, 1)
		w.pass(100 * time.Millisecond)
		w.api.StallWatches("nodes") // nor does the watch show it
		w.edit("a", annotated("people.maint.dev/note", "mine"))
		letGo()
		w.pass(3 * time.Second)
		w.expect("then", "a cordoned for gpu, gpu Ready")
		if got := w.node("a").Annotations["people.maint.dev/note"]; got != "mine" {
			w.Errorf("what the person wrote is %q", got)
		}
		if tried, read := w.patches("a"), w.api.Asked(agenttest.When{Verb: "get", Resource: "nodes", Name: "a"}); tried != 4 || read != 1 {
			w.Errorf("%d patches and %d reads, want one in vain, a read, and three", tried, read)
		}
	})
}

// What the agent wrote stands above what a watch shows that is behind.
func TestAWatchThatIsBehindDoesNotHideWhatTheAgentWrote(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"), node("b"))
		w.lead()
		w.pass(time.Second)
		w.edit("a", asked("gpu", noDrain))
		w.edit("b", asked("os", noDrain))
		w.pass(10 * time.Millisecond)
		w.api.StallWatches("nodes")
		w.pass(3 * time.Second)
		w.expect("while it shows nothing", "a cordoned for gpu, gpu Ready", "b open, os Pending")
		if got := w.patches("a"); got != 3 {
			w.Errorf("%d patches, want three: each of the version that the one before left", got)
		}
	})
}

func TestANodeWhoseWriteIsSlowHoldsUpNobodyElse(t *testing.T) {
	play(t, func(w *world) {
		w.limits = nodes.NodeLimits{MaxParallelOperations: 2}
		w.api.Put(node("a", asked("gpu", noDrain)), node("b", asked("os", noDrain)), node("c", asked("os", noDrain)))
		w.api.Hold(agenttest.When{Verb: "patch", Resource: "nodes", Name: "a"}, agenttest.Always)
		w.lead()
		w.pass(8 * time.Second)
		// The slot of the node whose write is under way counts as taken.
		w.expect("while it is under way", "a open, gpu new", "b cordoned for os, os Ready", "c open, os Pending")
	})
}

func TestARefusalIsBelievedAfterHalfAMinute(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", noDrain)), node("b"))
		w.api.Deny("", "patch", "nodes")
		w.lead()
		w.pass(20 * time.Second)
		if got := w.conditions(); len(got) != 0 {
			w.Errorf("after twenty seconds: conditions %q", got)
		}
		w.pass(25 * time.Second)
		if got := w.conditions(); !slices.Equal(got, []string{"NodesForbidden"}) {
			w.Errorf("after 45 seconds: conditions %q", got)
		}
		w.api.Allow("", "patch", "nodes")
		w.pass(time.Minute)
		w.expect("when the right is there", "a cordoned for gpu, gpu Ready", "b open")
		if got := w.conditions(); len(got) != 0 {
			w.Errorf("when the right is there: conditions %q", got)
		}
	})
}

func TestARefusalIsForgottenOnceNobodyAsks(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", noDrain)))
		w.api.Deny("", "patch", "nodes")
		w.lead()
		w.pass(time.Minute)
		w.edit("a", withdraw("gpu"))
		w.pass(2 * time.Second)
		if got := w.conditions(); len(got) != 0 {
			w.Errorf("conditions %q", got)
		}
	})
}

func TestANodeThatIsGoneFreesItsSlot(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", "{}")), node("b", asked("gpu", noDrain)))
		a := w.lead()
		w.pass(3 * time.Second)
		w.expect("before", "a cordoned for gpu, gpu Draining", "b open, gpu Pending")
		w.api.Delete("nodes", "", "a")
		w.pass(3 * time.Second)
		w.expect("after", "b cordoned for gpu, gpu Ready")
		if got := a.drains.running(); len(got) != 0 {
			w.Errorf("drains %q", got)
		}
	})
}

// A node that is deleted while its write is under way is not asked for again.
func TestAWriteOfANodeThatIsGoneEndsThere(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", noDrain)))
		letGo := w.api.Hold(agenttest.When{Verb: "patch", Resource: "nodes", Name: "a"}, 1)
		w.lead()
		w.pass(time.Second)
		w.api.StallWatches("nodes")
		w.api.Delete("nodes", "", "a")
		letGo()
		w.pass(30 * time.Second)
		if got := w.patches("a"); got > 6 {
			w.Errorf("%d patches of a node that is not there", got)
		}
	})
}

// An agent that dies is followed by another one, which knows what stands on the nodes
// and no more.
func TestTheNextLeaderGoesOnFromTheRecord(t *testing.T) {
	for _, after := range []string{"Scheduled", "Cordoning", "Draining"} {
		t.Run("it dies after the node was "+after, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(node("a"), node("b", asked("os", noDrain)))
				w.edit("b", status("os", nodes.Status{Phase: nodes.Pending, Asked: dawn().Add(time.Hour)}))
				w.edit("a", asked("gpu", "{}"))
				first := w.lead()
				for string(w.status("a", "gpu").Phase) != after {
					w.pass(time.Millisecond)
				}
				// What follows never comes.
				mend := w.api.Fail(agenttest.When{Verb: "patch", Resource: "nodes", Name: "a"}, agenttest.Always)
				w.pass(4 * time.Second)
				if got := string(w.status("a", "gpu").Phase); got != after {
					w.Fatalf("it is %s", got)
				}
				first.stop()
				mend()
				before := w.status("a", "gpu")
				second := w.lead()
				w.pass(4 * time.Second)
				w.expect("then", "a cordoned for gpu, gpu Draining", "b open, os Pending")
				if order := second.drains.sessions["a requests"]; order.NodeUID != "uid-a" || order.Since.Before(before.Since) {
					w.Errorf("it drains %+v", order)
				}
				if now := w.status("a", "gpu"); after == "Draining" && !now.Since.Equal(before.Since) {
					w.Errorf("the drain's time began again: %s, was %s", now.Since, before.Since)
				}
				second.drains.done("a")
				w.pass(3 * time.Second)
				w.expect("at the end", "a cordoned for gpu, gpu Ready", "b open, os Pending")
				w.edit("a", withdraw("gpu"))
				w.pass(3 * time.Second)
				w.expect("and after it", "a open", "b cordoned for os, os Ready")
			})
		})
	}
}

func TestADrainThatIsBlockedForGoodYieldsItsSlot(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", "{}")), pod("web-1", "a"))
		a := w.lead()
		w.pass(3 * time.Second)
		w.pass(10 * time.Second)
		w.api.Put(budget("web", false))
		a.drains.say("a", executors.DrainStatus{
			Reason: executors.DrainBlocked, Total: 1, Left: 1,
			Blocks: []drain.Block{{Permanent: true, Budgets: []string{"shop/web"}, Pods: []string{"shop/web-1"}, Why: "the budget permits none"}},
		})
		w.pass(3 * time.Second)
		if s := w.status("a", "gpu"); s.Blocked == nil || !s.Blocked.Permanent || s.Yielded != nil {
			w.Errorf("while nobody else waits: %s", s)
		}
		w.api.Put(node("b", asked("os", noDrain)))
		w.pass(5 * time.Second)
		w.expect("when somebody waits", "a cordoned for gpu, gpu Draining", "b cordoned for os, os Ready")
		if s := w.status("a", "gpu"); s.Yielded == nil {
			w.Errorf("it did not say that it yielded: %s", s)
		}
		if got := a.drains.running(); len(got) != 0 {
			w.Errorf("it drains still: %q", got)
		}
		w.api.Put(budget("web", true))
		a.drains.done("a")
		w.edit("b", withdraw("os"))
		w.pass(5 * time.Second)
		w.expect("when the budget was mended", "a cordoned for gpu, gpu Ready", "b open")
		for _, reason := range []string{"DrainBlocked", "DrainYielded", "DrainResumed"} {
			if !slices.Contains(w.said("a"), reason) {
				w.Errorf("no Event %s in %q", reason, w.said("a"))
			}
		}
	})
}

func TestAPodThatNeverCompletesHoldsNoSlotOnceTimeIsOver(t *testing.T) {
	play(t, func(w *world) {
		waits := func(p *corev1.Pod) { p.Annotations = map[string]string{annotations.DrainHow: drain.HowWaitCompleted} }
		w.api.Put(node("a", asked("gpu", `{"drain":{"timeout":"2m"}}`)), pod("web-1", "a", waits), node("b", asked("os", noDrain)))
		a := w.lead()
		w.pass(5 * time.Second)
		a.drains.say("a", executors.DrainStatus{
			Reason: executors.DrainWorking, Total: 1, Left: 1,
			Pods: []drain.Progress{{Pod: "shop/web-1", State: drain.Waiting, Why: "until it has completed"}},
		})
		w.pass(nodes.ProgressEvery + time.Second)
		w.expect("while it has time", "a cordoned for gpu, gpu Draining", "b open, os Pending")
		if s := w.status("a", "gpu"); !strings.Contains(s.Reason, "shop/web-1 waits: until it has completed") || s.Blocked != nil {
			w.Errorf("it does not name the pod: %s", s)
		}
		w.pass(2 * time.Minute)
		a.drains.say("a", executors.DrainStatus{
			Reason: executors.DrainBlocked, Total: 1, Left: 1,
			Blocks: []drain.Block{{Permanent: true, Pods: []string{"shop/web-1"}, Count: 1, Why: "it has not completed"}},
		})
		w.pass(5 * time.Second)
		w.expect("when time is over", "a cordoned for gpu, gpu Draining", "b cordoned for os, os Ready")
		if s := w.status("a", "gpu"); s.Yielded == nil || !strings.Contains(s.Reason, "shop/web-1") {
			w.Errorf("it did not yield: %s", s)
		}
		w.edit("b", withdraw("os"))
		w.pass(3 * previewTTL)
		if s := w.status("a", "gpu"); s.Yielded == nil || len(a.drains.running()) > 0 {
			w.Errorf("it took its slot back though the pod is still there: %s", s)
		}
		w.api.Put(pod("web-1", "a", waits, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
		a.drains.done("a")
		w.pass(2 * previewTTL)
		w.expect("when it has completed", "a cordoned for gpu, gpu Ready", "b open")
	})
}

func TestADrainWhosePodCannotBeReplacedYieldsItsSlot(t *testing.T) {
	play(t, func(w *world) {
		surges := func(p *corev1.Pod) { p.Annotations = map[string]string{annotations.DrainHow: drain.HowSurge} }
		w.api.Put(node("a", asked("gpu", "{}")), pod("web-1", "a", surges))
		a := w.lead()
		w.pass(10 * time.Second)
		uid := string(w.api.Get("pods", "shop", "web-1").GetUID())
		failed := drain.Replacement{Impossible: true, Why: "no replacement became Ready", Remedy: "make room"}
		a.drains.fail("a "+requestsClaimant, map[string]drain.Replacement{uid: failed})
		a.drains.say("a", executors.DrainStatus{
			Reason: executors.DrainBlocked, Total: 1, Left: 1,
			Blocks: []drain.Block{{Permanent: true, Pods: []string{"shop/web-1"}, Count: 1, Why: failed.Why, Remedy: failed.Remedy}},
		})
		w.pass(3 * time.Second)
		w.api.Put(node("b", asked("os", noDrain)))
		w.pass(5 * time.Second)
		w.expect("when somebody waits", "a cordoned for gpu, gpu Draining", "b cordoned for os, os Ready")
		w.edit("b", withdraw("os"))
		w.pass(3 * previewTTL)
		if s := w.status("a", "gpu"); s.Yielded == nil || !strings.Contains(s.Reason, "no replacement became Ready") || len(a.drains.running()) > 0 {
			w.Errorf("it did not yield, or took its slot back: %s", s)
		}
		a.drains.fail("a "+requestsClaimant, nil)
		a.drains.done("a")
		w.pass(2 * previewTTL)
		w.expect("when it is tried again", "a cordoned for gpu, gpu Ready", "b open")
	})
}

// A look that fails finds nothing, and takes nothing back: what was known still counts, and where
// nothing is known the drain waits for another look, and not for ever.
func TestALookAtPodsThatFailsIsNoVerdict(t *testing.T) {
	tooLate := func(w *world, times int) (mend func()) {
		return w.api.Refuse(agenttest.When{Resource: "pods"}, times, http.StatusGatewayTimeout, "too late")
	}
	blocked := func(w *world, when string) {
		w.Helper()
		w.expect(when, "a open, gpu Pending")
		if s := w.status("a", "gpu"); s.Blocked == nil || !strings.Contains(s.Blocked.Text, "shop/web") {
			w.Errorf("%s: it is %s", when, s)
		}
	}
	begin := func(w *world) { w.api.Put(node("a", asked("gpu", "{}")), pod("web-1", "a"), budget("web", false)) }
	t.Run("a block that is known stays", func(t *testing.T) {
		play(t, func(w *world) {
			begin(w)
			w.lead()
			w.pass(5 * time.Second)
			blocked(w, "at first")
			mend := tooLate(w, agenttest.Always)
			w.pass(5 * previewTTL)
			blocked(w, "while looks fail")
			mend()
			w.pass(2 * previewTTL)
			blocked(w, "when pods can be read again")
			w.api.Put(budget("web", true))
			w.pass(10 * time.Second)
			w.expect("when the budget was mended", "a cordoned for gpu, gpu Draining")
		})
	})
	t.Run("until a budget in its way moves", func(t *testing.T) {
		play(t, func(w *world) {
			begin(w)
			w.lead()
			w.pass(5 * time.Second)
			tooLate(w, agenttest.Always)
			w.pass(5 * time.Second)
			w.api.Put(budget("web", true))
			w.pass(20 * time.Second)
			blocked(w, "at first")
			w.pass(20 * time.Second)
			w.expect("after half a minute", "a cordoned for gpu, gpu Draining")
		})
	})
	t.Run("and for some time", func(t *testing.T) {
		play(t, func(w *world) {
			begin(w)
			w.lead()
			w.pass(5 * time.Second)
			tooLate(w, agenttest.Always)
			w.pass(mostUnread - previewTTL)
			blocked(w, "at first")
			w.pass(3 * previewTTL)
			w.expect("then", "a cordoned for gpu, gpu Draining")
		})
	})
	t.Run("one that an agent before us found, too", func(t *testing.T) {
		play(t, func(w *world) {
			begin(w)
			first := w.lead()
			w.pass(5 * time.Second)
			tooLate(w, agenttest.Always)
			first.stop()
			w.lead()
			w.pass(5 * previewTTL)
			blocked(w, "of another agent")
		})
	})
	t.Run("the first look is repeated", func(t *testing.T) {
		play(t, func(w *world) {
			begin(w)
			tooLate(w, 2) // a stream, and a list
			w.lead()
			w.pass(5 * time.Second)
			blocked(w, "after another look")
		})
	})
	for name, c := range map[string]struct {
		code  int
		times int
		says  string // why nobody knows yet
	}{
		"one refusal is no verdict, as of an API server that begins": {http.StatusForbidden, 2, ""},
		"without the right":               {http.StatusForbidden, agenttest.Always, "its pods could not be read before its drain: list the pods of node a: "},
		"of an API server that is broken": {http.StatusInternalServerError, agenttest.Always, "its pods could not be read before its drain: list the pods of node a: "},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				begin(w)
				w.api.Refuse(agenttest.When{Resource: "pods"}, c.times, c.code, "not now")
				w.lead()
				w.pass(25 * time.Second)
				if c.says == "" {
					blocked(w, "after another look")
					return
				}
				w.expect("at first", "a open, gpu Pending")
				if s := w.status("a", "gpu"); !strings.Contains(s.Reason, c.says) || !strings.Contains(s.Reason, "not now") {
					w.Errorf("it is %s", s)
				}
				w.pass(10 * time.Second)
				w.expect("after half a minute", "a cordoned for gpu, gpu Draining")
			})
		})
	}
}

func TestWhatStandsInTheWayForGoodIsSaidBeforeAnyCordon(t *testing.T) {
	for name, mend := range map[string]func(w *world){
		"a budget that was changed is noticed by its watch": func(w *world) { w.api.Put(budget("web", true)) },
		"a budget that was deleted is, too":                 func(w *world) { w.api.Delete("poddisruptionbudgets", "shop", "web") },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(node("a", asked("gpu", "{}")), pod("web-1", "a"), budget("web", false))
				a := w.lead()
				w.pass(5 * time.Second)
				w.expect("while it stands in the way", "a open, gpu Pending")
				if s := w.status("a", "gpu"); s.Blocked == nil || !strings.Contains(s.Blocked.Text, "shop/web") {
					w.Errorf("it does not say what stands in the way: %s", s)
				}
				if n := w.watches("poddisruptionbudgets"); n != 1 {
					w.Errorf("%d watches on budgets", n)
				}
				mend(w)
				w.pass(5 * time.Second)
				w.expect("when it was mended", "a cordoned for gpu, gpu Draining")
				a.drains.done("a")
				w.edit("a", withdraw("gpu"))
				w.pass(5 * time.Second)
				if n := w.watches("poddisruptionbudgets"); n != 0 {
					w.Errorf("%d watches on budgets, though nobody is blocked", n)
				}
			})
		})
	}
}

func TestPodsThatCannotBeLookedAtAreNoObstacle(t *testing.T) {
	for _, what := range []string{"pods", "poddisruptionbudgets"} {
		t.Run(what, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(node("a", asked("gpu", "{}")), pod("web-1", "a"), budget("web", false))
				w.api.Refuse(agenttest.When{Resource: what}, agenttest.Always, 500, "broken")
				w.lead()
				w.pass(35 * time.Second)
				w.expect("the drain itself says what is in its way", "a cordoned for gpu, gpu Draining")
			})
		})
	}
}

func TestPodsThatARequestWaitsFor(t *testing.T) {
	yes := true
	finished := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	daemon := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "logs", UID: "ds", Controller: &yes}}
	}
	other := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} }
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", `{"drain":false,"waitFor":{"podSelector":"app=web"}}`)), node("b"))
		w.api.Put(pod("web-1", "a"), pod("web-2", "a", finished), pod("web-3", "a", daemon), pod("web-4", "a", other), pod("web-5", "b"))
		w.lead()
		w.pass(3 * time.Second)
		w.expect("while one works", "a cordoned for gpu, gpu WaitingForPods", "b open")
		if s := w.status("a", "gpu"); s.Progress == nil || s.Progress.Left != 1 || !strings.Contains(s.Reason, "shop/web-1") {
			w.Errorf("it waits for %s", s)
		}
		if n := w.watches("pods"); n != 1 {
			w.Errorf("%d watches on pods", n)
		}
		w.api.Delete("pods", "shop", "web-1")
		w.pass(3 * time.Second)
		w.expect("when it is gone", "a cordoned for gpu, gpu Ready", "b open")
		if n := w.watches("pods"); n != 0 {
			w.Errorf("%d watches on pods that nobody counts", n)
		}
	})
}

func TestAnAgentThatEndsLeavesNothingRunning(t *testing.T) {
	play(t, func(w *world) {
		w.limits = nodes.NodeLimits{MaxParallelOperations: 3}
		w.api.Put(node("a", asked("gpu", "{}")), node("b", asked("gpu", `{"waitFor":{}}`)), node("c", asked("gpu", "{}")))
		w.api.Put(pod("web-1", "b"), pod("web-2", "c"), budget("web", false))
		a := w.lead()
		w.pass(5 * time.Second)
		w.expect("before", "a cordoned for gpu, gpu Draining", "b open, gpu Pending", "c open, gpu Pending")
		a.stop()
		w.pass(time.Second)
		if got, watches := a.drains.running(), len(w.api.Watches()); len(got) > 0 || watches > 0 {
			w.Errorf("drains %q, %d watches", got, watches)
		}
	})
}

// One broken object must not take the agent down.
func TestAPanicOverNodesIsCounted(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", noDrain)))
		var broken atomic.Bool
		broken.Store(true)
		w.lead(func(c *Config) {
			doubt := c.Gates.ClockDoubt
			c.Gates.ClockDoubt = func() string {
				if broken.Load() {
					panic("broken")
				}
				return doubt()
			}
		})
		w.pass(2 * time.Second)
		w.expect("while it is broken", "a open, gpu new")
		broken.Store(false)
		w.pass(time.Minute)
		w.expect("when it is mended", "a cordoned for gpu, gpu Ready")
	})
}

// The next requestor of a node takes it over without an uncordon, unless its drain could
// not end.
func TestWhoWaitsForAHeldNode(t *testing.T) {
	for name, c := range map[string]struct {
		permits bool
		want    string
	}{
		"one whose drain could end takes it over": {true, "a cordoned for os, os Draining"},
		"one whose drain could not does not":      {false, "a open, os Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(node("a", asked("gpu", noDrain)), pod("web-1", "a"), budget("web", c.permits))
				w.lead()
				w.pass(2 * time.Second)
				w.edit("a", asked("os", "{}"))
				w.pass(3 * time.Second)
				w.expect("while it is held", "a cordoned for gpu, gpu Ready, os Pending")
				w.edit("a", withdraw("gpu"))
				w.pass(3 * time.Second)
				w.expect("when it was given back", c.want)
				if opened := slices.Contains(w.said("a"), "Uncordoned"); opened == c.permits {
					w.Errorf("it was uncordoned: %t", opened)
				}
			})
		})
	}
}

// A drain that aborts is given up in time also where it never had its cordon, whoever leads then.
func TestARequestThatIsBlockedBeforeItsCordonIsAbortedInTime(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", `{"drain":{"timeout":"5m","onTimeout":"abort"}}`)), pod("web-1", "a"), budget("web", false))
		first := w.lead()
		w.pass(4 * time.Minute)
		if got := w.status("a", "gpu"); got.Phase != nodes.Pending || got.Blocked == nil || got.Ended != nil || !strings.Contains(got.Reason, "given up at") {
			w.Errorf("before: %s", got)
		}
		first.stop()
		w.lead()
		w.pass(59 * time.Second)
		if got := w.status("a", "gpu"); got.Ended != nil {
			w.Errorf("too early: %s", got)
		}
		w.pass(3 * time.Second)
		w.expect("then", "a open, gpu Pending")
		if got := w.status("a", "gpu"); got.Ended == nil || got.Ended.Why != nodes.EndAborted {
			w.Errorf("then: %s", got)
		}
		if got := w.times("a", "Aborted") + w.times("a", "Cordoned"); got != 1 {
			w.Errorf("said %q", w.said("a"))
		}
	})
}
