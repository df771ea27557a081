package runs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

const restartKey = "ops/restart"

func labelPatch() agenttest.When {
	return agenttest.When{User: "maint-runner", Verb: "patch", Resource: "configmaps", Name: "orders"}
}

// byLabel plays a run that a label on its target asked for.
func byLabel(t *testing.T, story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cm := configMap("orders", nil)
		cm.UID, cm.Labels = "target-uid", map[string]string{restartKey: "now", "app": "orders"}
		w.cluster.Put(cm)
		w.asked(target+"triggers: {labels: ["+restartKey+"]}\n"+oneHook, func(r *run.Run) {
			r.TargetUID = "target-uid"
			r.Request = run.Request{Kind: run.ByLabel, Label: restartKey, Value: "now", TargetUID: "target-uid", Ordinal: 3, At: time.Now().UTC()}
		})
		story(w)
	})
}

func TestARunThatALabelAskedForEndsOnceTheLabelIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		given   func(w *world)
		stays   bool   // the label
		handled string // the number that the target bears
		acts    []string
		phase   run.Phase
	}{
		"it is taken away by the plan's account": {handled: "3", acts: []string{"pass hook#1"}, phase: run.Succeeded},
		"somebody wrote on the target meanwhile": {
			given: func(w *world) {
				w.cluster.Before(labelPatch(), func() { w.cluster.Annotate(shop, "orders", "a", "b") })
			}, handled: "3", acts: []string{"pass hook#1"}, phase: run.Succeeded,
		},
		"the reply is lost": {
			given: func(w *world) { w.cluster.LoseReply(labelPatch(), 1) }, handled: "3", acts: []string{"pass hook#1"}, phase: run.Succeeded,
		},
		"somebody asked again with another value": {
			given: func(w *world) {
				w.cluster.Before(labelPatch(), func() {
					w.cluster.Edit("configmaps", shop, "orders", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{restartKey: "again"}) })
				})
			}, stays: true, acts: []string{"pass hook#1"}, phase: run.Succeeded,
		},
		"it was taken away before the run began": {
			given: func(w *world) {
				w.cluster.Edit("configmaps", shop, "orders", func(u *unstructured.Unstructured) { u.SetLabels(nil) })
			}, handled: "3", phase: run.Aborted,
		},
		"the target is gone": {given: func(w *world) { w.cluster.Delete("configmaps", shop, "orders") }, phase: run.Aborted},
		"the request was handled before": {
			given: func(w *world) { w.cluster.Annotate(shop, "orders", annotations.Handled(restartKey), "3") }, stays: true, handled: "3", phase: run.Aborted,
		},
		"the target goes right before the label does": {
			given: func(w *world) {
				w.cluster.Before(labelPatch(), func() { w.cluster.Delete("configmaps", shop, "orders") })
			}, acts: []string{"pass hook#1"}, phase: run.Succeeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			byLabel(t, func(w *world) {
				if c.given != nil {
					c.given(w)
				}
				w.plays()
				w.endsAs(runName, c.phase, "")
				w.did(c.acts...)
				cm := w.cluster.ConfigMap(shop, "orders")
				if cm == nil {
					return
				}
				if _, stays := cm.Labels[restartKey]; stays != c.stays {
					t.Errorf("the label stays: %t, want %t", stays, c.stays)
				}
				if got := cm.Annotations[annotations.Handled(restartKey)]; got != c.handled {
					t.Errorf("handled is %q, want %q", got, c.handled)
				}
			})
		})
	}
}

func TestALabelWaitsForItsAccountAndNoLongerThanACleanupDoes(t *testing.T) {
	for name, back := range map[string]bool{"it comes back": true, "it never comes back": false} {
		t.Run(name, func(t *testing.T) {
			byLabel(t, func(w *world) {
				account := w.cluster.Get("serviceaccounts", shop, "maint-runner")
				w.steps.does("pass hook", func(context.Context, executors.Call) executors.Outcome {
					w.cluster.Delete("serviceaccounts", shop, "maint-runner")
					time.Sleep(21 * time.Second) // that it was there is believed no longer
					return executors.Outcome{State: executors.Done}
				})
				w.plays()
				w.after(time.Minute)
				j := w.journal()
				if j.Phase != run.Running || !strings.Contains(j.Waits, "the label ops/restart cannot be taken away: ") || !strings.Contains(j.Waits, "the ServiceAccount maint-runner does not exist") {
					t.Errorf("it is %s, and waits for %q", j.Phase, j.Waits)
				}
				if back {
					w.cluster.Put(account)
				}
				w.after(20 * time.Minute)
				cm := w.cluster.ConfigMap(shop, "orders")
				if _, stays := cm.Labels[restartKey]; stays == back {
					t.Errorf("the label stays: %t", stays)
				}
				message := ""
				if !back {
					message = "the label ops/restart stays: the ServiceAccount maint-runner does not exist"
				}
				w.endsAs(runName, run.Succeeded, message)
			})
		})
	}
}

func TestALabelThatMayNotBeTakenAwayHoldsTheRunUp(t *testing.T) {
	byLabel(t, func(w *world) {
		w.cluster.Deny(runner, "patch", "configmaps")
		w.plays()
		w.after(5 * time.Minute)
		if j := w.journal(); j.Phase != run.Running || !strings.Contains(j.Waits, "the label ops/restart cannot be taken away: ") {
			t.Errorf("it is %s, and waits for %q", j.Phase, j.Waits)
		}
		said := slices.DeleteFunc(w.events.All(), func(e string) bool {
			return !strings.HasPrefix(e, "Warning LabelStays nightly: Run maint-run-nightly-1 cannot end: ")
		})
		if len(said) != 1 {
			t.Errorf("said %q", said)
		}
		if _, open := w.ledger().OpenEntry(runName); !open {
			t.Error("its entry is closed, and the label would ask for another run")
		}
		w.cluster.Allow(runner, "patch", "configmaps")
		w.after(2 * time.Minute)
		w.ends(run.Succeeded, "")
		if j := w.journal(); j.Waits != "" {
			t.Errorf("it still waits for %q", j.Waits)
		}
	})
}

// other plays a run of another plan that the same label asks for, and that waits at a suspend.
func (w *world) otherByLabel(ordinal int64) run.Run {
	w.Helper()
	other := run.Run{
		APIVersion: "maint.dev/v1alpha1", Kind: "Run", Name: otherRun, Namespace: shop, Plan: "other", PlanUID: "other-uid", TargetUID: "target-uid",
		Spec:    plan.Spec{Target: &plan.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Name: "orders"}, Steps: []plan.Step{{Name: "hold", Type: "suspend"}}}.Defaulted(),
		Request: run.Request{Kind: run.ByLabel, Label: restartKey, Value: "now", TargetUID: "target-uid", Ordinal: ordinal, At: time.Now().UTC().Add(time.Second)},
	}
	cm := annotations.NewPlan(shop, "other", planOf(target+"triggers: {labels: ["+restartKey+"]}\n"+oneHook), "")
	cm.UID = types.UID("other-uid")
	w.cluster.Put(cm)
	w.claim(other)
	return other
}

const otherRun = "maint-run-other-0"

// Each plan counts its own requests, so the same one may have another number with each.
func TestTheLabelOfTwoPlansGoesWithTheLastRun(t *testing.T) {
	for name, ordinal := range map[string]int64{"of one number": 3, "the last has a lower one": 1, "the last has a higher one": 7} {
		t.Run(name, func(t *testing.T) {
			byLabel(t, func(w *world) {
				w.knowsLabel()
				other := w.otherByLabel(ordinal)
				w.put(other, workflow.NewJournal(other))
				w.plays()
				w.ends(run.Succeeded, "")
				if _, stays := w.cluster.ConfigMap(shop, "orders").Labels[restartKey]; !stays {
					t.Error("the label went with the first run")
				}
				if w.cluster.ConfigMap(shop, "orders").Annotations[annotations.Handled(restartKey)] != "" {
					t.Error("it is called handled")
				}
				if j := w.journalOf(otherRun); j.Phase != run.Running {
					t.Fatalf("the other run is %s: %s", j.Phase, j.Message)
				}
				w.cluster.Annotate(shop, "other", annotations.Resume, otherRun)
				w.after(time.Minute)
				cm := w.cluster.ConfigMap(shop, "orders")
				if _, stays := cm.Labels[restartKey]; stays {
					t.Error("the label stays")
				}
				if got, want := cm.Annotations[annotations.Handled(restartKey)], strconv.FormatInt(max(3, ordinal), 10); got != want {
					t.Errorf("handled is %q, want %q: to a plan with a higher number the next label would not be news", got, want)
				}
			})
		})
	}
}

// A claim whose run is still to be made needs the label as much as a run does.
func TestTheLabelStaysForAClaimOfAnotherPlan(t *testing.T) {
	byLabel(t, func(w *world) {
		other := w.otherByLabel(1)
		w.plays()
		w.ends(run.Succeeded, "")
		if _, stays := w.cluster.ConfigMap(shop, "orders").Labels[restartKey]; !stays {
			t.Fatal("the label went, and the other plan's run would be void")
		}
		w.put(other, workflow.NewJournal(other))
		w.after(time.Minute)
		w.cluster.Annotate(shop, "other", annotations.Resume, otherRun)
		w.after(time.Minute)
		w.endsElsewhere(otherRun, run.Succeeded)
		if cm := w.cluster.ConfigMap(shop, "orders"); cm.Labels[restartKey] != "" || cm.Annotations[annotations.Handled(restartKey)] != "1" {
			t.Errorf("it has labels %v and annotations %v", cm.Labels, cm.Annotations)
		}
	})
}

// What another plan has still to claim, because it is paused, say, it claims once it may: the label
// stays for it, but for no plan that never comes to it.
func TestTheLabelStaysForAPlanThatHasStillToClaimIt(t *testing.T) {
	const onTheSame = target + "triggers: {labels: [" + restartKey + "]}\n" + oneHook
	knows := func(s ledger.LabelState) map[string]ledger.LabelState {
		return map[string]ledger.LabelState{restartKey: s}
	}
	for name, c := range map[string]struct {
		spec   string
		ready  string // the target that it was ready with
		labels map[string]ledger.LabelState
		phase  string // that the agent published
		gone   bool   // it has no ledger
		stays  bool
	}{
		"it has claimed nothing yet":                   {spec: onTheSame, ready: "target-uid", stays: true},
		"it was ready before its target was made anew": {spec: onTheSame, ready: "before", stays: true},
		"it has answered an earlier label":             {spec: onTheSame, ready: "target-uid", labels: knows(ledger.LabelState{TargetUID: "target-uid", Claimed: 2, Value: "now", Removed: true}), stays: true},
		"it has answered another value":                {spec: onTheSame, ready: "target-uid", labels: knows(ledger.LabelState{TargetUID: "target-uid", Claimed: 3, Value: "then"}), stays: true},
		"it has answered this one":                     {spec: onTheSame, ready: "target-uid", labels: knows(ledger.LabelState{TargetUID: "target-uid", Claimed: 3, Value: "now"})},
		"it never was ready":                           {spec: onTheSame},
		"it was never seen":                            {spec: onTheSame, gone: true},
		"it is not valid":                              {spec: onTheSame + "steps: []\n", ready: "target-uid"},
		"the agent says that it is not valid":          {spec: onTheSame, ready: "target-uid", phase: "Invalid"},
		"no label asks it":                             {spec: target + "triggers: {labels: [ops/other]}\n" + oneHook, ready: "target-uid"},
		"it is about an object of another cluster":     {spec: "connectorRef: {kind: K8SCluster, name: stg}\n" + onTheSame, ready: "elsewhere"},
		"it is about an object of another group":       {spec: strings.Replace(onTheSame, "apiVersion: v1", "apiVersion: example.org/v1", 1), ready: "elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			byLabel(t, func(w *world) {
				w.knowsLabel()
				cm := annotations.NewPlan(shop, "other", planOf(c.spec), "")
				cm.UID, cm.Annotations = types.UID("other-uid"), map[string]string{annotations.StatusPhase: c.phase}
				w.cluster.Put(cm)
				if !c.gone {
					w.putLedger("other", ledger.Ledger{PlanUID: "other-uid", TargetReady: c.ready, Labels: c.labels})
				}
				w.plays()
				w.ends(run.Succeeded, "")
				if _, stays := w.cluster.ConfigMap(shop, "orders").Labels[restartKey]; stays != c.stays {
					t.Errorf("the label stays: %t, want %t", stays, c.stays)
				}
			})
		})
	}
}

// Wherever the agent dies, both runs begin, and the last takes the label away.
func TestTwoPlansOnOneLabelSurviveTheAgent(t *testing.T) {
	for _, arrives := range []bool{false, true} {
		for at := range 14 {
			t.Run(fmt.Sprintf("write %d, which arrives: %t", at, arrives), func(t *testing.T) {
				byLabel(t, func(w *world) {
					w.knowsLabel()
					other := w.otherByLabel(1)
					w.put(other, workflow.NewJournal(other))
					w.cluster.DieAt(at, arrives)
					w.begins("a")
					w.after(time.Minute)
					w.cluster.Reconnect()
					w.begins("b")
					w.after(time.Minute)
					w.cluster.Annotate(shop, "other", annotations.Resume, otherRun)
					w.after(time.Minute)
					w.ends(run.Succeeded, "")
					w.endsElsewhere(otherRun, run.Succeeded)
					if cm := w.cluster.ConfigMap(shop, "orders"); cm.Labels[restartKey] != "" || cm.Annotations[annotations.Handled(restartKey)] != "3" {
						t.Errorf("it has labels %v and annotations %v", cm.Labels, cm.Annotations)
					}
				})
			})
		}
	}
}

// knowsLabel has the plan's ledger know the request by its label, as its claim left it.
func (w *world) knowsLabel() {
	w.Helper()
	led := w.ledger()
	led.Labels = map[string]ledger.LabelState{restartKey: {TargetUID: "target-uid", Claimed: 3, Value: "now"}}
	w.putLedger(nightly, led)
}

// endsElsewhere fails unless a run of another plan has ended so.
func (w *world) endsElsewhere(name string, phase run.Phase) {
	w.Helper()
	if j := w.journalOf(name); j.Phase != phase {
		w.Errorf("run %s is %s: %q", name, j.Phase, j.Message)
	}
}

func node(name string, unschedulable bool) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name, "uid": name + "-uid"}, "spec": map[string]any{}}}
	if unschedulable {
		_ = unstructured.SetNestedField(u.Object, true, "spec", "unschedulable")
	}
	return u
}

// anew is a node that was created again under its name.
func anew(name string, unschedulable bool) *unstructured.Unstructured {
	u := node(name, unschedulable)
	u.SetUID("another-uid")
	return u
}

const afterDrain = "steps:\n- {name: for-nodes, type: for-each-node, properties: {selector: {matchLabels: {pool: a}}, steps: [{name: empty, type: drain}, " + hook + "}]}}\n"

// What was closed for a step must be closed when the step begins.
func TestAStepAfterADrainLooksWhetherTheNodeIsStillClosed(t *testing.T) {
	for name, c := range map[string]struct {
		node    *unstructured.Unstructured // nil: it is gone
		given   func(w *world)
		phase   run.StepPhase
		message string
	}{
		"it is":                     {node: node("n1", true), phase: run.StepSucceeded},
		"it is gone":                {phase: run.StepSucceeded},
		"it was made anew, closed":  {node: anew("n1", true), phase: run.StepSucceeded},
		"it was made anew, open":    {node: anew("n1", false), phase: run.StepFailed, message: "Node/n1 was deleted and created again after it was drained: pods may have come, so this step does not run"},
		"somebody opened it":        {node: node("n1", false), phase: run.StepFailed, message: "Node/n1 was uncordoned by somebody else (seen at "},
		"it may not be read":        {node: node("n1", true), given: func(w *world) { w.cluster.Deny(runner, "get", "nodes") }, phase: run.StepFailed, message: "to see whether it is still cordoned"},
		"it cannot be read for now": {node: node("n1", true), given: func(w *world) { w.cluster.Fail(agenttest.When{User: "maint-runner", Resource: "nodes"}, 3) }, phase: run.StepSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, afterDrain, func(w *world) {
				w.steps.does("pass for-nodes", listing("n1"))
				w.nodes.states = map[string]map[string]workflow.NodeState{"for-nodes": {"n1": {Granted: true}}}
				if c.node != nil {
					w.cluster.Put(c.node)
				}
				if c.given != nil {
					c.given(w)
				}
				w.plays()
				w.after(5 * time.Minute)
				j := w.journal()
				if rec := j.Record("for-nodes"); rec.Phase != c.phase || !strings.Contains(j.Message+rec.Message, c.message) && !strings.Contains(j.Message, c.message) {
					t.Errorf("the rollout is %s: %q, run %q; want %s: %q", rec.Phase, rec.Message, j.Message, c.phase, c.message)
				}
			})
		})
	}
}

// A step that closes a node again does so with one that was made anew; on one that is gone, or that
// registered itself closed, all run.
func TestWhichStepsRunOnANodeThatIsNoLongerTheDrainedOne(t *testing.T) {
	for kind, open := range map[string]run.StepPhase{
		"drain, properties: {}":  run.StepSucceeded,
		"cordon, properties: {}": run.StepSucceeded,
		"uncordon":               run.StepSucceeded,
		"delete-object, properties: {resource: {apiVersion: v1, kind: Node, name: n1}}": run.StepFailed,
		"wait, properties: {condition: Ready}":                                          run.StepFailed,
	} {
		for at, want := range map[*unstructured.Unstructured]run.StepPhase{nil: run.StepSucceeded, anew("n1", true): run.StepSucceeded, anew("n1", false): open} {
			inWorld(t, "steps:\n- {name: for-nodes, type: for-each-node, properties: {selector: {matchLabels: {pool: a}}, steps: [{name: empty, type: drain}, {name: then, type: "+kind+"}]}}\n", func(w *world) {
				w.steps.does("pass for-nodes", listing("n1"))
				w.nodes.states = map[string]map[string]workflow.NodeState{"for-nodes": {"n1": {Granted: true}}}
				if at != nil {
					w.cluster.Put(at)
				}
				w.plays()
				w.after(5 * time.Minute)
				if rec := w.journal().Record("for-nodes"); rec.Phase != want {
					t.Errorf("%s (there: %t): %s: %q, want %s", kind, at != nil, rec.Phase, rec.Message, want)
				}
			})
		}
	}
}

func TestTheTurnsOfNodesAreKeptWhenARunEnds(t *testing.T) {
	for name, c := range map[string]struct {
		given func(w *world)
		kept  bool
	}{
		"with the plan": {kept: true},
		"unless it is a rehearsal": {given: func(w *world) {
			r, j, err := annotations.ReadRun(w.cluster.ConfigMap(shop, runName))
			if err != nil {
				w.Fatal(err)
			}
			r.Request.DryRun = true
			w.put(r, j)
		}},
		"unless somebody else has an object of that name": {given: func(w *world) {
			w.cluster.Put(configMap(annotations.NodeTurnsName(nightly, planUID), map[string]string{"a": "b"}))
		}},
		"after a conflict": {given: func(w *world) {
			w.cluster.Refuse(agenttest.When{User: "agent", Verb: "create", Name: ""}, 1, 409, "it was made meanwhile")
		}, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, afterDrain, func(w *world) {
				w.steps.does("pass for-nodes", listing("n1"))
				w.nodes.states = map[string]map[string]workflow.NodeState{"for-nodes": {"n1": {Granted: true}}}
				w.cluster.Put(node("n1", true))
				if c.given != nil {
					c.given(w)
				}
				w.plays()
				w.after(5 * time.Minute)
				w.ends(run.Succeeded, "")
				kept := false
				if cm := w.cluster.ConfigMap(shop, annotations.NodeTurnsName(nightly, planUID)); cm != nil {
					turns, err := annotations.ReadNodeTurns(cm, planUID)
					kept = err == nil && len(turns) == 1
				}
				if kept != c.kept {
					t.Errorf("kept: %t, want %t", kept, c.kept)
				}
			})
		})
	}
}

// A rollout is told which nodes had their turn: by the ledger, and by other runs at work.
func TestARolloutKnowsWhoseTurnItWas(t *testing.T) {
	inWorld(t, afterDrain, func(w *world) {
		before := time.Now().UTC().Add(-time.Hour)
		turns := func(name string) run.Journal {
			return run.Journal{Phase: run.Running, Section: plan.SectionSteps, StartedAt: &before, Steps: []run.Record{{
				Path: "for-nodes", Type: plan.TypeForEachNode, Phase: run.StepSucceeded, ItemKind: "Node", Items: []run.Item{{Name: name, Phase: run.StepSucceeded, At: &before}},
			}}}
		}
		cm, err := annotations.NodeTurnsObject(shop, nightly, planUID, turns("n7").Turns(before))
		if err != nil {
			t.Fatal(err)
		}
		w.cluster.Put(agenttest.Signed(t, cm))
		other := w.another(run.Running, func(r *run.Run) { r.Spec.ConcurrencyPolicy = plan.Allow })
		j := turns("n8")
		j.Steps = append(j.Steps, run.Record{Path: "hold", Type: "suspend", Phase: run.StepRunning, Attempt: 1})
		w.put(other, j)
		r, mine, err := annotations.ReadRun(w.cluster.ConfigMap(shop, runName))
		if err != nil {
			t.Fatal(err)
		}
		r.Spec.ConcurrencyPolicy = plan.Allow
		w.put(r, mine)
		w.steps.does("pass for-nodes", listing("n1"))
		w.plays()
		if got := w.steps.last("for-nodes").Nodes.Earlier; len(got) != 2 {
			t.Errorf("it is told of %v", got)
		}
		if got := w.steps.last("for-nodes/n1/empty").Nodes.Earlier; got != nil {
			t.Errorf("a step that lists none is told of %v", got)
		}
	})
}

// The object of the same name in the plan's own cluster is nobody's business.
func TestALabelOnAnotherClusterIsTakenAwayThere(t *testing.T) {
	for name, away := range map[string]bool{"at once": false, "when that answers again": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, far := newWorld(t), agenttest.New(t)
				w.cluster.ConnectTo(far)
				labelled := func() *corev1.ConfigMap {
					cm := configMap("orders", nil)
					cm.UID, cm.Labels = "target-uid", map[string]string{restartKey: "now"}
					return cm
				}
				w.cluster.Put(labelled(), stgSecret())
				far.Put(labelled())
				w.asked("connectorRef: {kind: K8SCluster, name: stg}\n"+target+"triggers: {labels: ["+restartKey+"]}\n"+oneHook, func(r *run.Run) {
					r.Connectors = map[string]connector.Connector{"K8SCluster/stg": {Cluster: &connector.ClusterSpec{K8S: &connector.Kubernetes{KubeconfigRef: connector.KubeconfigRef{Name: "stg"}}}}}
					r.TargetUID = w.markOn(*r, "target-uid")
					r.Request = run.Request{Kind: run.ByLabel, Label: restartKey, Value: "now", TargetUID: r.TargetUID, Ordinal: 3, At: time.Now().UTC()}
				})
				mend := func() {}
				if away {
					mend = far.Refuse(onTheTarget(), agenttest.Always, 503, "away")
				}
				w.begins("a")
				w.after(time.Minute)
				if j := w.journal(); away && (j.Phase.Ended() || !strings.Contains(j.Waits, "cannot be taken away: take the label "+restartKey+" away: K8SCluster stg: away")) {
					w.Errorf("while its cluster is away it is %s and waits for %q", j.Phase, j.Waits)
				}
				mend()
				w.after(2 * time.Minute)
				if j := w.journal(); j.Phase != run.Succeeded {
					w.Errorf("it ended %s", j.Phase)
				}
				there, here := far.ConfigMap(shop, "orders"), w.cluster.ConfigMap(shop, "orders")
				if _, stays := there.Labels[restartKey]; stays || there.Annotations[annotations.Handled(restartKey)] != "3" {
					w.Errorf("there it is %v %v", there.Labels, there.Annotations)
				}
				if _, stays := here.Labels[restartKey]; !stays {
					w.Error("it was taken away here")
				}
			})
		})
	}
}

func onTheTarget() agenttest.When {
	return agenttest.When{Verb: "patch", Resource: "configmaps", Name: "orders"}
}

func stgSecret() *corev1.Secret {
	const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
clusters: [{name: k, cluster: {server: "https://api.stg.test:6443"}}], users: [{name: u, user: {token: t}}]}`
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "stg"}, Data: map[string][]byte{"kubeconfig": []byte(kubeconfig)}}
}

// markOn is a uid as the agent tells it apart on the cluster of a run's target.
func (w *world) markOn(r run.Run, uid types.UID) string {
	w.Helper()
	_, accounts := w.cluster.Connect()
	from, err := accounts.Access(w.Context(), client.Account{Namespace: shop, Name: "maint-runner"}, "", client.ClusterOf(&connector.Reference{Kind: connector.K8SCluster, Name: "stg"}, r.Connectors))
	if err != nil {
		w.Fatal(err)
	}
	return string(from.Where().UID(uid))
}
