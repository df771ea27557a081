package runs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

func TestWhatComesNextIsWrittenBeforeItIsDone(t *testing.T) {
	inWorld(t, "steps:\n- "+hook+"}\n- "+down+"\n"+tell, func(w *world) {
		w.steps.does("pass down", gives(`{"uid":"d","replicas":3}`))
		w.plays()
		w.ends(run.Succeeded, "all steps are done")
		want := []string{
			"journal", "shown", "pass hook#1",
			"journal", "pass down#1",
			"journal", "pass down#1",
			"journal", "restore down#1",
			"journal", "pass finally/tell#1",
			"journal", "ledger", "journal",
		}
		if got := w.story(); !slices.Equal(got, want) {
			t.Errorf("the story is %q, want %q", got, want)
		}
		w.wantEvent("Normal RunStarted nightly: Run maint-run-nightly-1 (manual) started")
		w.wantEvent("Normal RunSucceeded nightly: Run maint-run-nightly-1 (manual): all steps are done")
	})
}

func TestADryRunSaysThatItIsOne(t *testing.T) {
	inWorld(t, oneHook, func(w *world) {
		r, j, err := annotations.ReadRun(w.cluster.ConfigMap(shop, runName))
		if err != nil {
			w.Fatal(err)
		}
		r.Request.DryRun = true
		w.put(r, j)
		w.plays()
		w.ends(run.Succeeded, "dry run, nothing was changed: all steps are done")
		w.wantEvent("Normal RunStarted nightly: Run maint-run-nightly-1 (manual, dry run) started")
		w.wantEvent("Normal RunSucceeded nightly: Run maint-run-nightly-1 (manual, dry run): dry run, nothing was changed: all steps are done")
		if got := w.cluster.ConfigMap(shop, runName).Annotations[annotations.StatusDryRun]; got != "true" {
			w.Errorf("the object is marked %q", got)
		}
	})
}

// An agent that changes nothing leaves a run that does to one that may go on with it.
func TestAnAgentThatChangesNothingLeavesALiveRunAlone(t *testing.T) {
	inWorld(t, oneHook, func(w *world) {
		w.dryRun = true
		w.plays()
		w.did()
		if got := w.journal().Phase; got != run.Pending {
			t.Errorf("it is %s", got)
		}
		w.dryRun = false
		w.plays()
		w.ends(run.Succeeded, "all steps are done")
	})
}

func TestARunBeginsOnlyOnceItsPlanShowsIt(t *testing.T) {
	inWorld(t, oneHook, func(w *world) {
		w.silent = true
		w.plays()
		w.did()
		if got := w.journal().Phase; got != run.Running {
			t.Fatalf("it is %s", got)
		}
		w.agent.plans.shows(w.agent.Stores.Runs.Filter(all)[0].PlanKey())
		w.after(time.Second)
		w.did("pass hook#1")
		w.ends(run.Succeeded, "")
	})
}

const twoHooks = "steps:\n- {name: first, type: webhook, properties: {url: 'https://hooks.test'}}\n- {name: second, type: webhook, properties: {url: 'https://hooks.test'}}\n"

func TestHowARunEnds(t *testing.T) {
	for name, c := range map[string]struct {
		spec    string
		given   func(w *world) // before the agent begins
		then    func(w *world) // after a minute
		phase   run.Phase
		message string
		closed  string // its entry
		acts    []string
	}{
		"when all steps are done it has succeeded": {
			spec: twoHooks, phase: run.Succeeded, message: "all steps are done", closed: "Ran manual", acts: []string{"pass first#1", "pass second#1"},
		},
		"a step that fails ends it, and its cleanup runs": {
			spec: twoHooks + "onFailure:\n- {name: sorry, type: webhook, properties: {url: 'https://hooks.test'}}\n" + tell, given: func(w *world) { w.steps.does("pass first", fails("no answer")) },
			phase: run.Failed, message: "no answer", closed: "Ran manual", acts: []string{"pass first#1", "pass onFailure/sorry#1", "pass finally/tell#1"},
		},
		"a step is tried again as often as its plan says": {
			spec: "steps:\n- " + hook + ", retry: {limit: 2, backoff: 1s}}\n", given: func(w *world) { w.steps.does("pass hook", fails("one"), fails("two"), done()) },
			phase: run.Succeeded, closed: "Ran manual", acts: []string{"pass hook#1", "pass hook#2", "pass hook#3"},
		},
		"what no other attempt can mend is tried once": {
			spec: "steps:\n- " + hook + ", retry: {limit: 2, backoff: 1s}}\n", given: func(w *world) { w.steps.does("pass hook", is(executors.Refuse("Gone", "there is no such hook"))) },
			phase: run.Failed, message: "there is no such hook", closed: "Ran manual", acts: []string{"pass hook#1"},
		},
		"a step that takes too long is stopped": {
			spec: "steps:\n- " + hook + ", timeout: 10s}\n", given: func(w *world) { w.steps.does("pass hook", notYet(time.Hour)) },
			phase: run.Failed, message: "10s", closed: "Ran manual", acts: []string{"pass hook#1", "stop hook#1"},
		},
		"a pass that does not come back is cut off by the timeout of its step": {
			spec: "steps:\n- " + hook + ", timeout: 10s}\n", given: func(w *world) { w.steps.does("pass hook", hangs) },
			phase: run.Failed, message: "10s", closed: "Ran manual", acts: []string{"pass hook#1", "stop hook#1"},
		},
		"a run that takes too long ends by its cleanup": {
			spec:  "maxDuration: 20s\nsteps:\n- " + hold + "\n" + tell,
			phase: run.Failed, message: "20s", closed: "Ran manual", acts: []string{"pass finally/tell#1"},
		},
		"it is aborted by its name": {
			spec: "steps:\n- " + hold + "\n" + tell, then: func(w *world) { w.says(annotations.Abort, runName) },
			phase: run.Aborted, message: "aborted", closed: "Ran manual", acts: []string{"pass finally/tell#1"},
		},
		"an abort that names another run is not for it": {
			spec: "steps:\n- {name: hold, type: suspend, properties: {duration: 2m}}\n", then: func(w *world) { w.says(annotations.Abort, "maint-run-nightly-2") },
			phase: run.Succeeded, closed: "Ran manual",
		},
		"an abort cuts off what is under way": {
			spec: oneHook + tell, given: func(w *world) { w.steps.does("pass hook", hangs) }, then: func(w *world) { w.says(annotations.Abort, runName) },
			phase: run.Aborted, closed: "Ran manual", acts: []string{"pass hook#1", "stop hook#1", "pass finally/tell#1"},
		},
		"to delete its object is to abort it": {
			spec: "steps:\n- " + hold + "\n" + tell, then: func(w *world) { w.cluster.Delete("configmaps", shop, runName) },
			phase: "", closed: "Ran manual", acts: []string{"pass finally/tell#1"},
		},
		"a suspend waits for somebody to resume it": {
			spec: "steps:\n- " + hold + "\n- " + hook + "}\n", then: func(w *world) { w.says(annotations.Resume, runName) },
			phase: run.Succeeded, closed: "Ran manual", acts: []string{"pass hook#1"},
		},
		"a type that this agent does not know fails": {
			spec: oneHook, given: func(w *world) { w.steps.unknown["webhook"] = true },
			phase: run.Failed, message: "this agent cannot run steps of type webhook", closed: "Ran manual",
		},
		"a step that panics is tried again, and ends by its timeout": {
			spec: "steps:\n- {name: both, type: step-group, properties: {mode: parallel, steps: [{name: a, type: webhook, timeout: 5s, properties: {url: 'https://hooks.test'}}, {name: b, type: webhook, properties: {url: 'https://hooks.test'}}]}}\n",
			given: func(w *world) {
				w.steps.does("pass both/a", func(context.Context, executors.Call) executors.Outcome { panic("oh") })
			},
			phase: run.Failed, message: "both/a", closed: "Ran manual",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, c.spec, func(w *world) {
				if c.given != nil {
					c.given(w)
				}
				w.plays()
				if c.then != nil {
					c.then(w)
				}
				w.after(5 * time.Minute)
				switch {
				case c.phase != "":
					w.ends(c.phase, c.message)
				case w.cluster.ConfigMap(shop, runName) != nil:
					t.Error("its object is still there")
				}
				if got := w.closed(); got != c.closed {
					t.Errorf("its entry ended %q, want %q", got, c.closed)
				}
				if c.acts != nil {
					w.did(c.acts...)
				}
				if len(w.agent.Stores.Runs.Filter(all)) > 0 || w.agent.WatchCount() > 0 || len(w.stepsInMemory()) > 0 {
					t.Error("something is kept of it in memory")
				}
			})
		})
	}
}

func TestARunThatIsPausedBeginsNoStep(t *testing.T) {
	for name, pause := range map[string]func(w *world, value string){
		"its plan":          func(w *world, value string) { w.says(annotations.Pause, value) },
		"its namespace":     func(w *world, value string) { w.annotateNamespace(shop, value) },
		"the whole cluster": func(w *world, value string) { w.annotateNamespace(annotations.DefaultNamespace, value) },
		"a gate, in the end": func(w *world, value string) {
			w.says(annotations.ChangeStrategy, map[string]string{"true": "Restrictive"}[value])
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "onWindowClose: wait\nsteps:\n- {name: hold, type: suspend, properties: {duration: 30s}}\n- "+hook+"}\n", func(w *world) {
				w.begins("a")
				w.after(time.Second)
				pause(w, "true")
				w.after(10 * time.Minute)
				w.did()
				if j := w.journal(); j.Record("hold").Phase != run.StepSucceeded || j.Phase != run.Running {
					t.Fatalf("hold is %s in a run that is %s", j.Record("hold").Phase, j.Phase)
				}
				pause(w, "")
				w.after(time.Minute)
				w.did("pass hook#1")
				w.ends(run.Succeeded, "")
			})
		})
	}
}

// What the namespace says is asked before each step of a run at work, whatever its plan says
// of its own window; what it cleans up is not held.
func TestARunInANamespaceThatIsClosedMeanwhileBeginsNoStep(t *testing.T) {
	const cleans = "steps:\n- {name: hold, type: suspend, properties: {duration: 30s}}\n- " + hook + "}\nfinally: [{name: fin, type: webhook, properties: {url: 'https://h.example.org'}}]\n"
	for name, c := range map[string]struct {
		closes func(w *world)
		said   string
		opens  func(w *world)
		did    []string
		passed string
		phase  run.Phase
	}{
		"until somebody opens it": {
			closes: func(w *world) { w.namespaceSays(shop, annotations.ChangeStrategy, "Restrictive") }, said: "namespace: Restrictive",
			opens: func(w *world) { w.namespaceSays(shop, annotations.ChangeStrategy, "") }, did: []string{"pass hook#1", "pass finally/fin#1"}, phase: run.Succeeded,
		},
		"until an instant": {
			closes: func(w *world) {
				w.namespaceSays(shop, annotations.RestrictiveUntil, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
				w.namespaceSays(shop, annotations.ChangeStrategy, "RestrictiveUntil")
			}, said: "waits for its window, which opens at ",
			opens: func(w *world) { w.after(time.Hour) }, did: []string{"pass hook#1", "pass finally/fin#1"}, phase: run.Succeeded,
		},
		"and somebody lets the run through": {
			closes: func(w *world) { w.namespaceSays(shop, annotations.ChangeStrategy, "Restrictive") }, said: "namespace: Restrictive",
			opens: func(w *world) {
				w.says(annotations.Actor(annotations.Bypass), "ann")
				w.says(annotations.Bypass, runName+": fire")
			}, did: []string{"pass hook#1", "pass finally/fin#1"}, passed: "ann", phase: run.Succeeded,
		},
		"and it is aborted: it cleans up": {
			closes: func(w *world) { w.namespaceSays(shop, annotations.ChangeStrategy, "Restrictive") }, said: "namespace: Restrictive",
			opens: func(w *world) { w.says(annotations.Abort, runName) }, did: []string{"pass finally/fin#1"}, phase: run.Aborted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cleans, func(w *world) {
				w.begins("a")
				w.after(time.Second)
				c.closes(w)
				w.after(10 * time.Minute)
				w.did()
				j := w.journal()
				if j.Record("hold").Phase != run.StepSucceeded || j.Phase != run.Running || j.HeldSince == nil || !strings.Contains(j.Message, c.said) {
					t.Fatalf("hold is %s in a run that is %s, held since %v: %q", j.Record("hold").Phase, j.Phase, j.HeldSince, j.Message)
				}
				c.opens(w)
				w.after(time.Minute)
				w.did(c.did...)
				w.ends(c.phase, "")
				if p := w.journal().Passed; c.passed != "" && (p == nil || p.Name != c.passed) || c.passed == "" && p != nil {
					t.Errorf("passed: %+v", p)
				}
			})
		})
	}
}

// A step that waits for its next attempt begins nothing while its namespace is frozen, or all is paused.
func TestAStepIsNotTriedAgainWhileChangeIsHeld(t *testing.T) {
	for name, holds := range map[string]func(w *world, on bool){
		"its namespace is frozen": func(w *world, on bool) {
			w.namespaceSays(shop, annotations.ChangeStrategy, map[bool]string{true: "Restrictive"}[on])
		},
		"its plan is paused": func(w *world, on bool) { w.says(annotations.Pause, map[bool]string{true: "true"}[on]) },
		"the whole cluster is paused": func(w *world, on bool) {
			w.annotateNamespace(annotations.DefaultNamespace, map[bool]string{true: "true"}[on])
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+hook+", timeout: 30m, retry: {limit: 5, backoff: 1m}}\n", func(w *world) {
				w.steps.does("pass hook", fails("no latch"), done())
				w.begins("a")
				w.after(time.Second)
				holds(w, true)
				w.after(10 * time.Hour)
				w.did("pass hook#1")
				if j := w.journal(); j.Phase != run.Running || j.HeldSince == nil || j.Message == "" {
					t.Fatalf("it is %s, held since %v: %q", j.Phase, j.HeldSince, j.Message)
				}
				holds(w, false)
				w.after(time.Minute)
				w.did("pass hook#1", "pass hook#2")
				w.ends(run.Succeeded, "")
			})
		})
	}
}

// Nothing was done of a step that waits for a right. What holds it since is asked of the API server: a cache
// may be behind.
func TestAStepThatWaitedForARightBeginsNothingThatIsHeldSince(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		held bool
		did  []string
	}{
		"a step":            {spec: "steps:\n- " + hook + ", timeout: 30m}\n", held: true, did: []string{"pass hook#1"}},
		"a step of cleanup": {spec: "steps:\n- {name: ask, type: approval, timeout: 1s}\nfinally:\n- " + hook + "}\n", did: []string{"pass finally/hook#1", "pass finally/hook#1"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, c.spec, func(w *world) {
				for _, path := range []string{"hook", "finally/hook"} {
					w.steps.does("pass "+path, is(refused(executors.ReasonForbidden)), done())
				}
				w.begins("a")
				w.after(1500 * time.Millisecond)
				w.cluster.StallWatches("namespaces")
				w.namespaceSays(shop, annotations.ChangeStrategy, "Restrictive")
				w.after(time.Minute)
				w.did(c.did...)
				if j := w.journal(); j.Phase.Ended() == c.held || (j.HeldSince != nil) != c.held {
					t.Errorf("it is %s, held since %v: %q", j.Phase, j.HeldSince, j.Message)
				}
			})
		})
	}
}

func TestWhetherAPendingRunMayStart(t *testing.T) {
	slot := func(r *run.Run) {
		at := time.Now().UTC()
		r.Request = run.Request{Kind: run.BySchedule, Slot: &at, Local: at.Format(time.RFC3339) + "[UTC]", At: at}
	}
	for name, c := range map[string]struct {
		spec    string
		edit    func(*run.Run)
		given   func(w *world)
		waiting string // what it waits for, in the first minute
		said    string
		then    func(w *world)
		phase   run.Phase // in the end
		closed  string
	}{
		"nothing stands in its way": {spec: oneHook, phase: run.Succeeded, closed: "Ran manual"},
		"its plan is paused": {
			spec: oneHook, given: func(w *world) { w.cluster.Annotate(shop, nightly, annotations.Pause, "true") }, waiting: run.WaitPause,
			then: func(w *world) { w.says(annotations.Pause, "") }, phase: run.Succeeded, closed: "Ran manual",
		},
		"its gate is closed": {
			spec: oneHook, given: func(w *world) { w.cluster.Annotate(shop, nightly, annotations.ChangeStrategy, "Restrictive") }, waiting: run.WaitWindow,
			then: func(w *world) { w.says(annotations.ChangeStrategy, "") }, phase: run.Succeeded, closed: "Ran manual",
		},
		"its gate is closed, and it need not ask it": {
			spec: oneHook, edit: func(r *run.Run) { r.Request.OutsideWindow = true },
			given: func(w *world) { w.cluster.Annotate(shop, nightly, annotations.ChangeStrategy, "Restrictive") }, phase: run.Succeeded, closed: "Ran manual",
		},
		"the clock is doubted": {
			spec: oneHook, given: func(w *world) { w.doubt.Store("the clock is an hour behind") }, waiting: run.WaitClock, said: "an hour behind",
			then: func(w *world) { w.doubt.Store("") }, phase: run.Succeeded, closed: "Ran manual",
		},
		"somebody has to approve it": {
			spec: "requiresApproval: true\n" + oneHook, waiting: run.WaitApproval, said: "approve",
			then: func(w *world) { w.says(annotations.Approve, runName) }, phase: run.Succeeded, closed: "Ran manual",
		},
		"a newer slot of its plan waits for approval, too, and takes its place": {
			spec: "concurrencyPolicy: Replace\nrequiresApproval: true\n" + oneHook, edit: slot, given: func(w *world) {
				w.another(run.Pending, func(r *run.Run) {
					slot(r)
					r.Spec.RequiresApproval, r.Request.Slot = true, new(r.Request.Slot.Add(time.Second))
				})
			}, phase: run.Aborted, closed: "Missed superseded",
		},
		"somebody rejects it": {
			spec: "requiresApproval: true\n" + oneHook, waiting: run.WaitApproval,
			then: func(w *world) { w.says(annotations.Reject, runName) }, phase: run.Aborted, closed: "Skipped rejected",
		},
		"nobody approves it in time": {
			spec: "requiresApproval: true\napprovalTimeout: 10m\n" + oneHook, waiting: run.WaitApproval,
			then: func(w *world) { w.after(10 * time.Minute) }, phase: run.Aborted, closed: "Missed approval",
		},
		"it is aborted before": {
			spec: oneHook, given: func(w *world) { w.cluster.Annotate(shop, nightly, annotations.Pause, "true") }, waiting: run.WaitPause,
			then: func(w *world) { w.says(annotations.Abort, runName) }, phase: run.Aborted, closed: "Skipped aborted",
		},
		"its slot waits too long": {
			spec: "startDeadline: 5m\n" + oneHook, edit: slot, given: func(w *world) { w.cluster.Annotate(shop, nightly, annotations.ChangeStrategy, "Restrictive") }, waiting: run.WaitWindow,
			then: func(w *world) { w.after(5 * time.Minute) }, phase: run.Aborted, closed: "Missed window",
		},
		"another run of its plan is at work": {
			spec: "concurrencyPolicy: Queue\n" + oneHook, given: func(w *world) { w.another(run.Running, func(*run.Run) {}) }, waiting: run.WaitQueue, said: "maint-run-nightly-0",
			then: func(w *world) { w.says(annotations.Resume, "maint-run-nightly-0") }, phase: run.Succeeded, closed: "Ran manual",
		},
		"another run of its plan is at work for too long": {
			spec: "concurrencyPolicy: Forbid\nstartDeadline: 1m\n" + oneHook, edit: slot, given: func(w *world) { w.another(run.Running, func(*run.Run) {}) }, phase: run.Aborted, closed: "Missed deadline",
		},
		"another run of its plan is at work, and gives way": {
			spec: "concurrencyPolicy: Replace\n" + oneHook, given: func(w *world) { w.another(run.Running, func(*run.Run) {}) }, phase: run.Succeeded, closed: "Ran manual",
		},
		"a dry run of its plan is at work": {
			spec: "concurrencyPolicy: Forbid\n" + oneHook, given: func(w *world) { w.another(run.Running, w.rehearses) }, phase: run.Succeeded, closed: "Ran manual",
		},
		"a dry run of another plan holds its target": {
			spec: oneHook, edit: func(r *run.Run) { r.TargetUID = "target" }, given: func(w *world) {
				w.another(run.Running, func(r *run.Run) {
					w.rehearses(r)
					r.Plan, r.PlanUID, r.TargetUID = "other", "other-uid", "target"
				})
			}, phase: run.Succeeded, closed: "Ran manual",
		},
		"it is dry, and so is the run of another plan on its target": {
			spec: oneHook, edit: func(r *run.Run) {
				isDry(r)
				r.TargetUID = "target"
			}, given: func(w *world) {
				w.another(run.Running, func(r *run.Run) {
					w.rehearses(r)
					r.Plan, r.PlanUID, r.TargetUID = "other", "other-uid", "target"
				})
			}, phase: run.Succeeded, closed: "Ran manual",
		},
		"it is dry, and another plan's run holds its target": {
			spec: oneHook, edit: func(r *run.Run) {
				isDry(r)
				r.TargetUID = "target"
			}, waiting: run.WaitLock, said: "maint-run-nightly-0",
			given: func(w *world) {
				w.another(run.Running, func(r *run.Run) { r.Plan, r.PlanUID, r.TargetUID = "other", "other-uid", "target" })
			},
			then: func(w *world) {
				w.cluster.Annotate(shop, "other", annotations.Resume, "maint-run-nightly-0")
			}, phase: run.Succeeded, closed: "Ran manual",
		},
		"it is dry, and a run of its plan that would give way to another is at work": {
			spec: "concurrencyPolicy: Replace\n" + oneHook, edit: isDry, given: func(w *world) { w.another(run.Running, func(*run.Run) {}) }, waiting: run.WaitQueue, said: "maint-run-nightly-0",
			then: func(w *world) { w.says(annotations.Resume, "maint-run-nightly-0") }, phase: run.Succeeded, closed: "Ran manual",
		},
		"another plan's run holds its target": {
			spec: oneHook, edit: func(r *run.Run) { r.TargetUID = "target" }, waiting: run.WaitLock, said: "maint-run-nightly-0",
			given: func(w *world) {
				w.another(run.Running, func(r *run.Run) { r.Plan, r.PlanUID, r.TargetUID = "other", "other-uid", "target" })
			},
			then: func(w *world) {
				w.cluster.Annotate(shop, "other", annotations.Resume, "maint-run-nightly-0")
			}, phase: run.Succeeded, closed: "Ran manual",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.asked(c.spec, func(r *run.Run) {
					if c.edit != nil {
						c.edit(r)
					}
				})
				if c.given != nil {
					c.given(w)
				}
				w.plays()
				if j := w.journal(); c.waiting != "" && (j.Phase != run.Pending || j.Waiting != c.waiting || !strings.Contains(j.Message, c.said)) {
					t.Errorf("it is %s and waits for %q: %q; want %q: %q", j.Phase, j.Waiting, j.Message, c.waiting, c.said)
				}
				if c.then != nil {
					w.did()
					c.then(w)
					w.after(2 * time.Minute)
				}
				w.ends(c.phase, "")
				if got := w.closed(); got != c.closed {
					t.Errorf("its entry ended %q, want %q", got, c.closed)
				}
			})
		})
	}
}

// A run on an object of the cluster excludes the runs of other namespaces only where both may
// change the object; otherwise whoever may look at it could keep all others from it.
func TestWhoHoldsATargetOfTheCluster(t *testing.T) {
	const bank = "bank"
	mine, theirs := "system:serviceaccount:shop:maint-runner", "system:serviceaccount:bank:maint-runner"
	onlyReads := func(user string, verbs ...string) func(w *world) {
		return func(w *world) {
			for _, verb := range append(verbs, "patch", "update", "delete") {
				w.cluster.Deny(user, verb, "nodes")
			}
		}
	}
	for name, c := range map[string]struct {
		namespace string
		phase     run.Phase
		given     func(w *world)
		waits     string // for whom; empty: for nobody
	}{
		"another namespace's run that may change it":                        {bank, run.Running, func(*world) {}, "bank/maint-run-nightly-0"},
		"another namespace's run that may only read it":                     {bank, run.Running, onlyReads(theirs), ""},
		"another namespace's run that may only read it, and begins with it": {bank, run.Pending, onlyReads(theirs), ""},
		"another namespace's run, and this one may only read it":            {bank, run.Running, onlyReads(mine), ""},
		"another namespace's run, and neither may do more than read it": {bank, run.Running, func(w *world) {
			onlyReads(mine)(w)
			onlyReads(theirs)(w)
		}, "bank/maint-run-nightly-0"},
		"another namespace's run of whose rights nothing is known": {bank, run.Running, onlyReads(theirs, "get"), "bank/maint-run-nightly-0"},
		"a run of the same namespace that may only read it":        {shop, run.Running, onlyReads(mine), "maint-run-nightly-0"},
		"another namespace's run, while the API server says nothing of rights": {bank, run.Running, func(w *world) {
			onlyReads(theirs)(w)
			w.cluster.Refuse(agenttest.When{Verb: "create", Resource: "selfsubjectaccessreviews"}, agenttest.Always, 503, "starting")
		}, "bank/maint-run-nightly-0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.tenant(bank)
				node := &plan.ObjectRef{APIVersion: "v1", Kind: "Node", Name: "node-0"}
				w.asked(oneHook, func(r *run.Run) { r.TargetUID, r.Spec.Target = "node-uid", node })
				w.another(c.phase, func(r *run.Run) {
					r.Namespace, r.Plan, r.PlanUID, r.TargetUID, r.Spec.Target = c.namespace, "other", "other-uid", "node-uid", node
				})
				c.given(w)
				w.plays()
				if c.waits == "" {
					w.ends(run.Succeeded, "")
				} else if j := w.journal(); j.Waiting != run.WaitLock || !strings.Contains(j.Message, c.waits) {
					t.Errorf("it is %s and waits for %q: %q; want it to wait for the lock of %s", j.Phase, j.Waiting, j.Message, c.waits)
				}
			})
		})
	}
}

// Each run's rights are asked for once, however often others look at it.
func TestTheRightsOfARunThatHoldsATargetAreAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.tenant("bank")
		node := &plan.ObjectRef{APIVersion: "v1", Kind: "Node", Name: "node-0"}
		w.asked(oneHook, func(r *run.Run) { r.TargetUID, r.Spec.Target = "node-uid", node })
		w.another(run.Running, func(r *run.Run) {
			r.Namespace, r.Plan, r.PlanUID, r.TargetUID, r.Spec.Target = "bank", "other", "other-uid", "node-uid", node
		})
		w.plays()
		for range 20 {
			w.agent.Queue.Add(types.NamespacedName{Namespace: shop, Name: runName})
			w.after(time.Second)
		}
		if got := w.cluster.Asked(agenttest.When{Verb: "create", Resource: "selfsubjectaccessreviews"}); got != 2 {
			t.Errorf("%d reviews, want one for each run", got)
		}
	})
}

// tenant is another namespace with an account of its own.
func (w *world) tenant(namespace string) {
	w.cluster.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "maint-runner"}})
}

func (w *world) annotateNamespace(name, value string) {
	w.cluster.Edit("namespaces", "", name, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{annotations.Pause: value}) })
	synctest.Wait()
}

// namespaceSays sets an annotation of a namespace, beside the others; empty takes it away.
func (w *world) namespaceSays(name, key, value string) {
	w.cluster.Edit("namespaces", "", name, func(u *unstructured.Unstructured) {
		notes := u.GetAnnotations()
		if notes == nil {
			notes = map[string]string{}
		}
		notes[key] = value
		if value == "" {
			delete(notes, key)
		}
		u.SetAnnotations(notes)
	})
	synctest.Wait()
}

func isDry(r *run.Run) { r.Request.DryRun = true }

// rehearses makes a run a dry run that takes its time.
func (w *world) rehearses(r *run.Run) {
	w.steps.does("pass long", notYet(time.Hour))
	isDry(r)
	r.Spec.Steps = []plan.Step{{Name: "long", Type: "webhook", Properties: map[string]any{"url": "https://example.org"}}}
}

// another puts an older run beside the one of the story, at a suspend if it has no steps.
func (w *world) another(phase run.Phase, edit func(*run.Run)) run.Run {
	w.Helper()
	r := run.Run{
		APIVersion: document.APIVersion, Kind: "Run", Name: "maint-run-nightly-0", Namespace: shop, Plan: nightly, PlanUID: planUID,
		Request: run.Request{Kind: run.ByToken, Token: "before", At: time.Now().UTC().Add(-time.Hour)},
	}
	edit(&r)
	if r.Plan == nightly {
		r.Spec.ConcurrencyPolicy = w.specOf().ConcurrencyPolicy
	}
	if r.Spec.Steps == nil {
		r.Spec.Steps = []plan.Step{{Name: "hold", Type: "suspend"}}
	}
	r.Spec = r.Spec.Defaulted()
	if r.Plan != nightly {
		cm := annotations.NewPlan(r.Namespace, r.Plan, "", "")
		cm.UID = types.UID(r.PlanUID)
		w.cluster.Put(cm)
	}
	w.claim(r)
	j := workflow.NewJournal(r)
	if phase == run.Running {
		j = j.Start(time.Now())
	}
	w.put(r, j)
	return r
}

func (w *world) specOf() plan.Spec {
	r, _, err := annotations.ReadRun(w.cluster.ConfigMap(shop, runName))
	if err != nil {
		w.Fatal(err)
	}
	return r.Spec
}

func TestARunWhoseRequestAnotherHasAnsweredIsTakenAway(t *testing.T) {
	inWorld(t, oneHook, func(w *world) {
		led, err := annotations.LedgerObject(shop, nightly, ledger.Ledger{PlanUID: planUID})
		if err != nil {
			t.Fatal(err)
		}
		w.cluster.Put(agenttest.Signed(t, led))
		w.plays()
		w.did()
		w.ends(run.Aborted, "another run has answered this request")
		if got := w.closed(); got != "" {
			t.Errorf("it left an entry: %s", got)
		}
	})
}

func TestARunWhosePlanIsGoneEndsByItsCleanup(t *testing.T) {
	for name, then := range map[string]func(w *world){
		"it is deleted": func(w *world) { w.cluster.Delete("configmaps", shop, nightly) },
		"it was made anew": func(w *world) {
			w.cluster.Delete("configmaps", shop, nightly)
			cm := annotations.NewPlan(shop, nightly, "", "")
			cm.UID = "another"
			w.cluster.Put(cm)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+hold+"\n"+tell, func(w *world) {
				w.plays()
				then(w)
				w.after(time.Minute)
				w.ends(run.Aborted, "its plan was deleted")
				w.did("pass finally/tell#1")
			})
		})
	}
}

func TestWhatIsSaidToARunIsTakenAwayOnceItIsHeard(t *testing.T) {
	for name, c := range map[string]struct {
		spec, key, value string
		stays            bool
		event            string
	}{
		"an abort":                          {"steps:\n- " + hold + "\n", annotations.Abort, runName, false, "Normal RunAborted"},
		"a resume":                          {"steps:\n- " + hold + "\n", annotations.Resume, runName, false, "Normal RunSucceeded"},
		"a resume of the step":              {"steps:\n- " + hold + "\n", annotations.Resume, runName + "/hold", false, "Normal RunSucceeded"},
		"a resume of another step":          {"steps:\n- " + hold + "\n", annotations.Resume, runName + "/nonsense", true, ""},
		"a resume of what is not suspended": {"steps:\n- " + hook + ", timeout: 5m}\n", annotations.Resume, runName, false, "Warning ResumeIgnored nightly: Run maint-run-nightly-1 was not suspended"},
		"an approval of a step":             {"steps:\n- {name: ask, type: approval}\n", annotations.Approve, runName + "/ask", false, "Normal RunSucceeded"},
		"a rejection of a step":             {"steps:\n- {name: ask, type: approval}\n", annotations.Reject, runName + "/ask", false, "Warning RunFailed"},
		"an approval that nobody waits for": {"steps:\n- " + hook + ", timeout: 5m}\n", annotations.Approve, runName, false, "Warning AnswerIgnored nightly: maint.dev/approve: maint-run-nightly-1 is ignored"},
		"an abort of another run":           {"steps:\n- " + hold + "\n", annotations.Abort, "maint-run-nightly-2", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, c.spec, func(w *world) {
				w.steps.does("pass hook", notYet(2*time.Minute), done())
				w.plays()
				w.says(c.key, c.value)
				w.after(5 * time.Minute)
				if _, stays := w.cluster.ConfigMap(shop, nightly).Annotations[c.key]; stays != c.stays {
					t.Errorf("stays: %t, want %t", stays, c.stays)
				}
				if c.event != "" {
					w.wantEvent(c.event)
				}
			})
		})
	}
}

func TestAStepThatAsksSaysSoOnce(t *testing.T) {
	inWorld(t, "steps:\n- {name: ask, type: approval, properties: {message: may I go on}}\n", func(w *world) {
		w.plays()
		w.after(10 * time.Minute)
		n := 0
		for _, e := range w.events.All() {
			if strings.HasPrefix(e, "Normal ApprovalNeeded nightly: Run maint-run-nightly-1 waits for approval") && strings.Contains(e, "may I go on") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("asked %d times in %q", n, w.events.All())
		}
	})
}

func TestAGateIsPassedWhereSomebodyLetsTheRunThrough(t *testing.T) {
	inWorld(t, oneHook, func(w *world) {
		w.cluster.Annotate(shop, nightly, annotations.ChangeStrategy, "Restrictive")
		w.cluster.Annotate(shop, nightly, annotations.Bypass, runName+": urgent")
		w.plays()
		w.ends(run.Succeeded, "")
		w.wantEvent("Warning GateBypassed nightly: Run maint-run-nightly-1 (manual) started although change is not permitted: let through by somebody unknown: urgent")
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.asked(oneHook, func(r *run.Run) { r.Request.DryRun = true })
		w.cluster.Annotate(shop, nightly, annotations.ChangeStrategy, "Restrictive")
		w.cluster.Annotate(shop, nightly, annotations.Bypass, runName+": urgent")
		w.plays()
		w.ends(run.Succeeded, "")
		w.wantEvent("Warning GateBypassed nightly: Run maint-run-nightly-1 (manual, dry run) started although change is not permitted: let through by somebody unknown: urgent")
	})
}

// A namespace binds also a run that was asked for outside of its window: that starts by a bypass,
// and says by whose.
func TestWhoseBypassLetARunOutsideOfItsWindowThrough(t *testing.T) {
	for name, c := range map[string]struct {
		closes func(w *world)
		want   string
	}{
		"its namespace is closed": {func(w *world) { w.namespaceSays(shop, annotations.ChangeStrategy, "Restrictive") }, "ann"},
		"its own gate is closed":  {func(w *world) { w.cluster.Annotate(shop, nightly, annotations.ChangeStrategy, "Restrictive") }, "jane"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.asked(oneHook, func(r *run.Run) {
					r.Request.OutsideWindow, r.Request.Actor, r.Request.Reason = true, "jane", "must"
				})
				c.closes(w)
				w.cluster.Annotate(shop, nightly, annotations.Actor(annotations.Bypass), "ann")
				w.cluster.Annotate(shop, nightly, annotations.Bypass, runName+": fire")
				w.plays()
				w.ends(run.Succeeded, "")
				if by := w.journal().Passed; by == nil || by.Name != c.want {
					t.Errorf("let through by %+v", by)
				}
				w.wantEvent("Warning GateBypassed nightly: Run maint-run-nightly-1 (must) started although change is not permitted: let through by " + c.want)
			})
		})
	}
}

// What a run waits for is written, and asked, once.
func TestAWaitIsWrittenOnce(t *testing.T) {
	for name, c := range map[string]struct {
		spec  string
		given func(w *world)
		asks  int
	}{
		"for its window":  {oneHook, func(w *world) { w.cluster.Annotate(shop, nightly, annotations.ChangeStrategy, "Restrictive") }, 0},
		"for an approval": {"requiresApproval: true\n" + oneHook, func(*world) {}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, c.spec, func(w *world) {
				c.given(w)
				w.plays()
				for range 20 {
					w.agent.Queue.Add(w.agent.Stores.Runs.Filter(all)[0].Key())
					w.after(time.Minute)
				}
				if n := w.count("journal"); n != 1 {
					t.Errorf("it was written %d times", n)
				}
				asked := 0
				for _, e := range w.events.All() {
					if strings.HasPrefix(e, "Normal ApprovalNeeded nightly: Run "+runName) {
						asked++
					}
				}
				if asked != c.asks {
					t.Errorf("it asked %d times in %q", asked, w.events.All())
				}
			})
		})
	}
}

// The watch shows a newer state between a look at a run and what follows from it.
func TestNothingIsDoneOnAStateThatARunHasMovedOnFrom(t *testing.T) {
	inWorld(t, oneHook, func(w *world) {
		w.steps.does("pass hook", notYet(time.Hour))
		w.plays()
		held := w.agent.Stores.Runs.Filter(all)[0]
		was := *w.agent.Stores.Runs.ReadWhole(held)
		was.Object = was.Object.DeepCopy()
		was.Object.ResourceVersion = "1"
		was.Journal.Leader = "" // the one change since: nothing is left to be written
		acts := len(w.story())
		if _, err := w.agent.reconcileLive(w.Context(), &was); !errors.Is(err, queue.ErrConflict) || len(w.story()) != acts {
			t.Errorf("it does %q: %v", w.story()[acts:], err)
		}
		if _, err := w.agent.reconcileLive(w.Context(), w.agent.Stores.Runs.ReadWhole(held)); err != nil {
			t.Errorf("as it is now: %v", err)
		}
	})
}
