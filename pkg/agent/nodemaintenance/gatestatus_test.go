package nodemaintenance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// conditionsOf are a node's conditions, as TYPE=STATUS (REASON) message.
func (w *world) conditionsOf(name string) string {
	w.Helper()
	text := w.node(name).Annotations[annotations.StatusConditions]
	if text == "" {
		return ""
	}
	var list []metav1.Condition
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		w.Fatalf("conditions of node %s: %v", name, err)
	}
	var out []string
	for _, c := range list {
		if c.LastTransitionTime.IsZero() {
			w.Errorf("condition %s of node %s does not say since when", c.Type, name)
		}
		out = append(out, fmt.Sprintf("%s=%s (%s) %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(out, "; ")
}

func (w *world) sees(what, got, want string) {
	w.Helper()
	if got != want {
		w.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestANodeWithAStanzaOrARequestHasConditions(t *testing.T) {
	const nobody = "; ChangesPending=False (Nothing) nobody waits for the node"
	play(t, func(w *world) {
		opens := dawn().Add(time.Hour)
		w.api.Put(node("a", annotated(annotations.ChangeStrategy, "RestrictiveUntil"), annotated(annotations.RestrictiveUntil, opens.Format(time.RFC3339))), node("b"))
		first := w.lead()
		w.pass(2 * time.Second)
		const closed = "ChangesPaused=True (Restrictive) RestrictiveUntil 2000-01-01T01:00:00Z"
		w.sees("closed", w.conditionsOf("a"), closed+nobody)
		w.edit("a", asked("gpu", noDrain))
		w.live("roll", rollout("nodes", run.Item{Name: "a"}, run.Item{Name: "b"}))
		first.Enqueue()
		w.pass(2 * time.Second)
		w.sees("closed, and wanted", w.conditionsOf("a"), closed+"; ChangesPending=True (Waits) wanted by gpu, plan:shop/roll")
		before := w.patches("a")
		w.pass(30 * time.Minute)
		first.stop()
		w.lead()
		w.pass(10 * time.Minute)
		if got := w.patches("a"); got != before {
			w.Errorf("%d writes while nothing changed, also under another leader", got-before)
		}
		w.runs.Drop(w.live("roll").Run, 0)
		w.paused(schedule.Pause{Of: annotations.WholeCluster, On: true})
		w.pass(time.Minute)
		w.sees("while the cluster is paused", w.conditionsOf("a"), "ChangesPaused=True (Paused) the whole cluster is paused; ChangesPending=True (Waits) wanted by gpu")
		w.paused()
		w.pass(30 * time.Minute)
		w.sees("when it has opened", w.conditionsOf("a"), "ChangesPaused=False (Permissive) RestrictiveUntil 2000-01-01T01:00:00Z is over"+nobody)
		w.edit("a", withdraw("gpu"))
		w.pass(2 * time.Second)
		w.sees("of its stanza alone", w.conditionsOf("a"), "ChangesPaused=False (Permissive) RestrictiveUntil 2000-01-01T01:00:00Z is over"+nobody)
		w.edit("a", func(n *corev1.Node) {
			delete(n.Annotations, annotations.ChangeStrategy)
			delete(n.Annotations, annotations.RestrictiveUntil)
		})
		w.pass(2 * time.Second)
		w.sees("without a stanza", w.conditionsOf("a"), "")
		w.sees("of a node of which nobody said anything", w.conditionsOf("b"), "")
		w.doubts("clocks differ")
		w.edit("b", annotated(annotations.Pause, "true"))
		w.pass(2 * time.Second)
		w.sees("while the clock is in doubt", w.conditionsOf("b"), "")
		w.doubts("")
		w.pass(time.Minute)
		w.sees("paused", w.conditionsOf("b"), "ChangesPaused=True (Paused) the node is paused"+nobody)
	})
}

// Whoever may not read the agent's namespace is told by the node whether a plan's drain may begin.
func TestANodeThatAPlansDrainWantsTellsWhatItsGateSays(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a"), node("b"), node("c"))
		a := w.lead()
		s := w.live("drains", drainStep("drain", run.DrainTarget{Name: "a"}))
		w.live("rolls", rollout("nodes", run.Item{Name: "b"}, run.Item{Name: "c", Phase: run.StepRunning}))
		told := func(when, name, want string) {
			w.Helper()
			got := w.node(name).Annotations[annotations.StatusBehavior]
			if !strings.Contains(got, want) || (got == "") != (want == "") {
				w.Errorf("%s: node %s says %q, want %q", when, name, got, want)
			}
		}
		a.Enqueue()
		w.pass(2 * time.Second)
		const free = `{"current":{"state":"ChangesUnpaused","strategy":"Permissive","reason":"no strategy is set"}}`
		told("while it waits", "a", free)
		told("while a rollout has it", "c", free)
		told("while a rollout has still to come to it", "b", "")
		before := w.patches("a")
		w.pass(10 * time.Minute)
		if got := w.patches("a"); got != before {
			w.Errorf("%d writes while nothing changed", got-before)
		}
		w.paused(schedule.Pause{Of: annotations.WholeCluster, On: true})
		w.pass(time.Minute)
		told("while the cluster is paused", "a", `"reason":"the whole cluster is paused`)
		w.end(s)
		a.Enqueue()
		w.pass(2 * time.Second)
		told("when its run has ended", "a", "")
		w.sees("conditions without a stanza", w.conditionsOf("a"), "")
	})
}

func TestWhatIsToldOfANodeGoesWhenNobodyWantsIt(t *testing.T) {
	const left = `{"current":{"state":"ChangesPaused","strategy":"Restrictive","reason":"Restrictive"}}`
	for name, c := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"by an agent that leads":               {func(*world) {}, ""},
		"by an agent that rehearses, nothing":  {func(w *world) { w.scope.DryRun = true }, left},
		"of an agent that may not write nodes": {func(w *world) { w.api.Deny("", "patch", "nodes") }, left},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(node("a", annotated(annotations.StatusBehavior, left), annotated(annotations.StatusConditions, "[]")), node("b", annotated(annotations.Pause, "true")))
				c.change(w)
				w.lead()
				w.pass(2 * time.Minute)
				w.sees("its behavior", w.node("a").Annotations[annotations.StatusBehavior], c.want)
				if got := w.patches("a") + w.patches("b"); got > 12 {
					w.Errorf("%d writes within two minutes", got)
				}
				if got := w.conditions(); len(got) > 0 {
					w.Errorf("maintenance is said to be held back, though nobody asks: %q", got)
				}
			})
		})
	}
}

// A window that opens for many nodes at once is told by a bounded number of writes at a time.
func TestWhatIsToldOfManyNodesHoldsUpNobody(t *testing.T) {
	if b := newStatusBudget(map[string]*nodeWriting{"a": {step: nodes.Step{Conditions: new("x")}}, "b": {step: nodes.Step{CordonChanged: true}}}, 2); !b.allows(nodes.Step{Behavior: new("")}) || b.allows(nodes.Step{Behavior: new("")}) || !b.allows(nodes.Step{Behavior: new(""), CordonChanged: true}) {
		t.Error("two at a time, and as many as need be of those that do more")
	}
	play(t, func(w *world) {
		for i := range 3 * statusWrites {
			w.api.Put(node(fmt.Sprintf("n%03d", i), annotated(annotations.ChangeStrategy, "Restrictive")))
		}
		w.lead()
		w.pass(5 * time.Second)
		for i := range 3 * statusWrites {
			if name := fmt.Sprintf("n%03d", i); !strings.Contains(w.conditionsOf(name), "ChangesPaused=True") || w.patches(name) != 1 {
				w.Errorf("node %s says %q after %d writes", name, w.conditionsOf(name), w.patches(name))
			}
		}
	})
}
