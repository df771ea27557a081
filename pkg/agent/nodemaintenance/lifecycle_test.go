package nodemaintenance

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// lifecycle are the lifecycle conditions of a node, as TYPE STATUS REASON.
func (w *world) lifecycle(name string) []string {
	w.Helper()
	out := []string{}
	for _, c := range w.node(name).Status.Conditions {
		if c.Type != corev1.NodeReady {
			out = append(out, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
		}
	}
	slices.Sort(out)
	return out
}

func (w *world) conditionsAre(when, name string, want ...string) {
	w.Helper()
	if diff := cmp.Diff(append([]string{}, want...), w.lifecycle(name)); diff != "" {
		w.Errorf("%s, conditions of %s, -want +got:\n%s", when, name, diff)
	}
}

// statusWrites is how often the status of a node was written.
func (w *world) statusWrites(name string) int {
	return w.api.Asked(agenttest.When{Verb: "patch", Resource: "nodes/status", Name: name})
}

func TestARequestIsSeenInTheConditionsOfItsNode(t *testing.T) {
	play(t, func(w *world) {
		until := time.Now().Add(time.Hour)
		w.api.Put(node("a", asked("gpu", "{}"), annotated(annotations.Pause, until.UTC().Format(time.RFC3339))), node("b", asked("os", "{}")), node("c"))
		a := w.lead()
		w.pass(time.Second)
		w.conditionsAre("while the node is paused", "a", "MaintenancePlanned True MaintenanceWindow")
		w.conditionsAre("while it drains", "b", "DrainInProgress True DrainStarted")
		w.edit("a", func(n *corev1.Node) { delete(n.Annotations, annotations.Pause) })
		w.pass(time.Second)
		w.conditionsAre("while another has the slot", "a", "MaintenancePlanned True MaintenanceRequested")
		a.drains.done("b")
		w.pass(time.Second)
		w.conditionsAre("when it is handed over", "b", "DrainInProgress False DrainCompleted", "Drained True DrainCompleted", "MaintenanceInProgress True HandedOver")
		if c := w.node("b").Status.Conditions[1]; c.Message != "os: pods have left" && c.Message != "" || c.LastTransitionTime.IsZero() || c.LastHeartbeatTime.IsZero() {
			w.Errorf("a condition is %+v", c)
		}
		writes := w.statusWrites("b")
		w.pass(5 * time.Minute)
		if got := w.statusWrites("b"); got != writes {
			w.Errorf("%d writes while nothing happened", got-writes)
		}
		w.edit("b", withdraw("os"))
		w.pass(time.Second)
		w.conditionsAre("when it is released", "b", "DrainInProgress False DrainCompleted", "Drained False NodeReleased", "MaintenanceInProgress False NodeReleased")
		w.conditionsAre("whose turn it is now", "a", "DrainInProgress True DrainStarted", "MaintenancePlanned False MaintenanceStarted")
		w.edit("a", withdraw("gpu"))
		w.pass(time.Second)
		w.conditionsAre("that was given up", "a", "DrainInProgress False DrainEnded", "MaintenancePlanned False MaintenanceStarted")
		w.conditionsAre("of whom nobody asks", "c")
	})
}

func TestARolloutIsSeenInTheConditionsOfItsNodes(t *testing.T) {
	play(t, func(w *world) {
		ours := nodes.Cordon{By: []string{nodes.PlanClaimant("shop", "kernel")}, At: time.Now().UTC()}
		w.api.Put(node("a"), node("b"), node("c"))
		a := w.lead()
		at := func(steps ...run.Record) {
			w.live("kernel", steps...)
			a.Enqueue()
			w.pass(time.Second)
		}
		working := run.Item{Name: "a", Phase: run.StepRunning}
		at(rollout("roll", working, run.Item{Name: "b"}), drainStep("roll/a/drain", run.DrainTarget{Name: "a"}))
		w.conditionsAre("whose turn has not come", "b", "MaintenancePlanned True RolloutPlanned")
		w.conditionsAre("whose drain is to cordon it", "a", "MaintenancePlanned True RolloutPlanned")
		w.edit("a", func(n *corev1.Node) { cordoned(n); recorded(ours)(n) })
		at(rollout("roll", working, run.Item{Name: "b"}), drainStep("roll/a/drain", run.DrainTarget{Name: "a", Cordoned: true, Why: "shop/web cannot leave for now"}))
		w.conditionsAre("while its drain is blocked", "a", "DrainInProgress True DrainBlocked", "MaintenanceInProgress True RolloutAtWork", "MaintenancePlanned False MaintenanceStarted")
		drained := drainStep("roll/a/drain", run.DrainTarget{Name: "a", Cordoned: true, Drained: true, Since: time.Now().UTC()})
		drained.Phase = run.StepSucceeded
		at(rollout("roll", working, run.Item{Name: "b"}), drained, run.Record{Path: "roll/a/reboot", Type: "job", Phase: run.StepRunning})
		w.conditionsAre("while its Job is at work", "a", "DrainInProgress False DrainCompleted", "Drained True DrainCompleted", "MaintenanceInProgress True RolloutAtWork", "MaintenancePlanned False MaintenanceStarted")
		w.runs.Drop(w.live("kernel").Run, 0)
		a.Enqueue()
		w.pass(time.Second)
		w.conditionsAre("that a run left cordoned", "a", "DrainInProgress False DrainCompleted", "Drained True DrainCompleted", "MaintenanceInProgress False MaintenanceEnded", "MaintenancePlanned False MaintenanceStarted")
		w.conditionsAre("that a run did not reach", "b", "MaintenancePlanned False MaintenanceCanceled")
		w.edit("a", func(n *corev1.Node) { n.Spec.Unschedulable = false; delete(n.Annotations, annotations.StatusCordoned) })
		w.pass(time.Second)
		w.conditionsAre("that somebody released", "a", "DrainInProgress False DrainCompleted", "Drained False NodeReleased", "MaintenanceInProgress False MaintenanceEnded", "MaintenancePlanned False MaintenanceStarted")
	})
}

// What a rollout is to do is not before the windows of its run and of the node are open.
func TestTheConditionOfANodeSaysWhenARolloutMayBegin(t *testing.T) {
	play(t, func(w *world) {
		run1, own := time.Now().Add(time.Hour).UTC(), time.Now().Add(2*time.Hour).UTC()
		w.api.Put(node("a"), node("b", annotated(annotations.Pause, own.Format(time.RFC3339))))
		a := w.lead()
		at := func(window *run.WindowWait) {
			roll := rollout("roll", run.Item{Name: "a"}, run.Item{Name: "b"})
			roll.Window = window
			w.live("kernel", roll)
			a.Enqueue()
			w.pass(time.Second)
		}
		says := func(when, name, want string) {
			for _, c := range w.node(name).Status.Conditions {
				if got := c.Reason + " " + c.Message; c.Type == "MaintenancePlanned" && got != want {
					w.Errorf("%s, %s: %s\nwant %s", when, name, got, want)
				}
			}
		}
		at(&run.WindowWait{Why: "outside of the windows", Opens: &run1})
		says("closed", "a", "MaintenanceWindow plan shop/kernel: not before "+run1.Format(time.RFC3339)+": outside of the windows")
		says("closed", "b", "MaintenanceWindow plan shop/kernel: not before "+own.Format(time.RFC3339)+": the node is paused")
		at(nil)
		says("when that of the run is open", "a", "RolloutPlanned plan shop/kernel: waits for the node")
		w.pass(2 * time.Hour)
		says("when the pause is over", "b", "RolloutPlanned plan shop/kernel: waits for the node")
	})
}

// Whatever an agent had written when it died, the next one takes back what is so no more.
func TestNoConditionIsLeftTrueByAnAgentThatDied(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", noDrain)))
		first := w.lead()
		w.pass(time.Second)
		w.conditionsAre("before", "a", "MaintenanceInProgress True HandedOver")
		first.stop()
		w.edit("a", withdraw("gpu"))
		w.pass(time.Minute)
		w.lead()
		w.pass(time.Second)
		w.conditionsAre("after", "a", "MaintenanceInProgress False NodeReleased")
	})
}

func TestAConditionThatSomebodyElseSetIsLeftAndSaid(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "MaintenanceInProgress", Status: corev1.ConditionTrue, Reason: "Theirs"})
		}))
		w.lead()
		w.pass(time.Second)
		if got := w.conditions(); len(got) > 0 {
			w.Errorf("before anybody asks: %q", got)
		}
		w.edit("a", asked("gpu", noDrain))
		w.pass(time.Second)
		w.expect("then", "a cordoned for gpu, gpu Ready")
		w.conditionsAre("then", "a", "MaintenanceInProgress True Theirs")
		if got := w.conditions(); !slices.Equal(got, []string{conditionsLeft}) {
			w.Errorf("then: %q", got)
		}
		w.edit("a", withdraw("gpu"))
		w.pass(time.Second)
		w.conditionsAre("when it is released", "a", "MaintenanceInProgress True Theirs")
		if got := w.conditions(); len(got) > 0 {
			w.Errorf("when it is released: %q", got)
		}
	})
}

func TestWithoutTheRightNoConditionIsWrittenAndThatIsSaid(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", noDrain)), node("b"))
		w.api.Deny("", "patch", "nodes/status")
		w.lead()
		w.pass(20 * time.Second)
		w.expect("the node is handed over all the same", "a cordoned for gpu, gpu Ready", "b open")
		if got := w.conditions(); len(got) > 0 {
			w.Errorf("after twenty seconds: %q", got)
		}
		w.pass(time.Minute)
		if got := w.conditions(); !slices.Equal(got, []string{conditionsForbidden}) {
			w.Errorf("after a minute: %q", got)
		}
		tried := w.statusWrites("a")
		w.pass(time.Minute)
		if got := w.statusWrites("a") - tried; got > 3 {
			w.Errorf("tried %d times in a minute", got)
		}
		w.conditionsAre("without the right", "a")
		w.api.Allow("", "patch", "nodes/status")
		w.pass(time.Minute)
		w.conditionsAre("with the right", "a", "MaintenanceInProgress True HandedOver")
		if got := w.conditions(); len(got) > 0 {
			w.Errorf("with the right: %q", got)
		}
	})
}

func TestWhatBecomesOfAWriteOfConditions(t *testing.T) {
	status := agenttest.When{Verb: "patch", Resource: "nodes/status", Name: "a"}
	for name, fault := range map[string]func(w *world){
		"its reply is lost":             func(w *world) { w.api.LoseReply(status, 1) },
		"the API server is away":        func(w *world) { w.api.Fail(status, 1) },
		"the API server is starting":    func(w *world) { w.api.Refuse(status, 1, 503, "starting") },
		"its rights are not loaded yet": func(w *world) { w.api.Refuse(status, 1, 403, "starting") },
		"it is never answered":          func(w *world) { w.api.Hold(status, 1) },
		"somebody writes first": func(w *world) {
			w.api.Before(status, func() { w.edit("a", annotated("people.example.org/note", "mine")) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(node("a", asked("gpu", noDrain)))
				fault(w)
				w.lead()
				w.pass(30 * time.Second)
				w.expect("then", "a cordoned for gpu, gpu Ready")
				if got := w.lifecycle("a"); !slices.Contains(got, "MaintenanceInProgress True HandedOver") {
					w.Errorf("conditions %q", got)
				}
			})
		})
	}
}

func TestNoConditionIsWrittenWhereNothingIsCarriedOut(t *testing.T) {
	play(t, func(w *world) {
		w.scope.DryRun = true
		w.api.Put(node("a", asked("gpu", noDrain)), node("b"))
		a := w.lead()
		w.live("kernel", rollout("roll", run.Item{Name: "b"}))
		a.Enqueue()
		w.pass(time.Minute)
		w.conditionsAre("of a request", "a")
		w.conditionsAre("of a rollout", "b")
	})
}

// A rollout over many nodes writes one condition on each, and a request does not wait for that.
func TestManyConditionsKeepNobodyWaiting(t *testing.T) {
	play(t, func(w *world) {
		items := []run.Item{}
		for i := range 300 {
			name := fmt.Sprintf("n%03d", i)
			w.api.Put(node(name))
			items = append(items, run.Item{Name: name})
		}
		w.api.Put(node("z", asked("gpu", noDrain)))
		w.paused(schedule.Pause{})
		w.api.Hold(agenttest.When{Verb: "patch", Resource: "nodes/status"}, agenttest.Always)
		a := w.lead()
		w.live("kernel", rollout("roll", items...))
		a.Enqueue()
		w.pass(8 * time.Second)
		if got := w.picture(); !slices.Contains(got, "z cordoned for gpu, gpu Ready") {
			w.Errorf("%q", got[len(got)-1])
		}
	})
}

// That the right is missing is known also while the only node that shows it is being written.
func TestARefusalOfConditionsOutlastsAnotherWriteOfTheNode(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", noDrain)))
		w.api.Deny("", "patch", "nodes/status")
		a := w.lead()
		w.pass(80 * time.Second)
		w.api.Hold(agenttest.When{Verb: "patch", Resource: "nodes", Name: "a"}, agenttest.Always)
		w.edit("a", asked("os", noDrain))
		w.pass(time.Second)
		a.Enqueue()
		w.pass(time.Second)
		if got := w.conditions(); !slices.Equal(got, []string{conditionsForbidden}) {
			t.Errorf("conditions %q", got)
		}
	})
}

// An admin who does not want them has those of ours ended, and no other written.
func TestLifecycleConditionsThatAreSwitchedOff(t *testing.T) {
	play(t, func(w *world) {
		theirs := func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "MaintenanceInProgress", Status: corev1.ConditionTrue, Reason: "Theirs"})
		}
		w.api.Put(node("a", asked("gpu", noDrain)), node("b"), node("c", theirs))
		var off atomic.Bool
		a := w.lead(func(c *Config) { c.Settings.Lifecycle = func() bool { return !off.Load() } })
		w.pass(time.Second)
		w.conditionsAre("while they are wanted", "a", "MaintenanceInProgress True HandedOver")
		off.Store(true)
		a.Enqueue()
		w.pass(time.Second)
		w.conditionsAre("when they are not", "a", "MaintenanceInProgress False NodeReleased")
		w.conditionsAre("that somebody else set", "c", "MaintenanceInProgress True Theirs")
		w.edit("b", asked("os", noDrain))
		w.pass(time.Minute)
		w.conditionsAre("of another request", "b")
		writes := w.statusWrites("a")
		w.pass(5 * time.Minute)
		if got := w.statusWrites("a"); got != writes {
			w.Errorf("%d writes while nothing happened", got-writes)
		}
		off.Store(false)
		a.Enqueue()
		w.pass(time.Second)
		w.conditionsAre("when they are wanted again", "a", "MaintenanceInProgress True HandedOver")
	})
}

// What is asked for and not built is said, and breaks nothing.
func TestPoolsThatAreNotPausedAreSaid(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", noDrain)))
		w.limits.PauseMachineConfig = true
		w.lead()
		w.pass(time.Second)
		w.expect("the node is handed over all the same", "a cordoned for gpu, gpu Ready")
		if got := w.conditions(); !slices.Equal(got, []string{"MachineConfigPoolsNotPaused"}) {
			w.Errorf("the configuration says %q", got)
		}
	})
}
