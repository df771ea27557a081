package runs

import (
	"context"
	"encoding/json"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/steppool"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

const found = `{"uid":"d","replicas":3}`

func refused(reason string) executors.Outcome { return executors.Fail(reason, "may not patch") }

func TestWhatStepsFoundIsPutBack(t *testing.T) {
	for name, c := range map[string]struct {
		answers  []answer // of the restore
		plain    bool
		phase    run.Phase
		restored string
		message  string
		restores int
		event    string
	}{
		"it is put back":                            {phase: run.Succeeded, restored: run.RestoreDone, restores: 1},
		"somebody changed it since":                 {answers: []answer{is(executors.Outcome{State: executors.Done, Reason: executors.ReasonChangedMeanwhile})}, phase: run.Succeeded, restored: run.RestoreChanged, restores: 1},
		"it is gone":                                {answers: []answer{is(executors.Outcome{State: executors.Done, Reason: executors.ReasonGone})}, phase: run.Succeeded, restored: run.RestoreGone, restores: 1},
		"another run puts it back":                  {answers: []answer{is(executors.Outcome{State: executors.Done, Reason: executors.ReasonHanded})}, phase: run.Succeeded, restored: run.RestoreHanded, restores: 1},
		"it cannot be for now":                      {answers: []answer{fails("no answer"), done()}, phase: run.Succeeded, restored: run.RestoreDone, restores: 2},
		"it takes two passes":                       {answers: []answer{notYet(time.Second), done()}, phase: run.Succeeded, restored: run.RestoreDone, restores: 2},
		"somebody wrote between its read and write": {answers: []answer{is(executors.Fail(executors.ReasonConflict, "written since")), done()}, phase: run.Succeeded, restored: run.RestoreDone, restores: 2},
		"the right comes back":                      {answers: []answer{is(refused(executors.ReasonForbidden)), is(refused(executors.ReasonForbidden)), done()}, phase: run.Succeeded, restored: run.RestoreDone, restores: 3},
		"it can never be": {
			answers: []answer{is(executors.Refuse("Immutable", "the field cannot be changed"))}, phase: run.Failed, restored: run.RestoreFailed, restores: 1,
			message: "put back replicas of " + found + ": the field cannot be changed", event: "Warning NotPutBack nightly: Run maint-run-nightly-1, step down: put back replicas of",
		},
		"its type cannot": {plain: true, phase: run.Failed, restored: run.RestoreFailed, message: "steps of type scale cannot be restored", event: "Warning NotPutBack nightly"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+down+"\n", func(w *world) {
				w.steps.does("pass down", gives(found))
				w.steps.does("restore down", c.answers...)
				w.steps.plain["scale"] = c.plain
				w.plays()
				w.after(3 * time.Minute)
				w.ends(c.phase, "")
				rec := w.record("down")
				if rec.Restored != c.restored || !strings.Contains(rec.RestoreMessage, c.message) {
					t.Errorf("restored %q: %q, want %q: %q", rec.Restored, rec.RestoreMessage, c.restored, c.message)
				}
				if n := w.count("restore down"); n != c.restores {
					t.Errorf("tried %d times, want %d: %q", n, c.restores, w.story())
				}
				if c.event != "" {
					w.wantEvent(c.event)
				}
			})
		})
	}
}

func TestWhatStepsFoundIsPutBackTheLastFirst(t *testing.T) {
	for name, given := range map[string]func(w *world){
		"when all went well":  func(*world) {},
		"after a failed step": func(w *world) { w.steps.does("pass hook", fails("no answer")) },
		"after an abort": func(w *world) {
			w.steps.does("pass hook", hangs)
			time.AfterFunc(10*time.Second, func() { w.cluster.Annotate(shop, nightly, annotations.Abort, runName) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+down+"\n- "+lowerToo+"\n- "+hook+"}\n"+tell, func(w *world) {
				w.steps.does("pass down", gives(found))
				w.steps.does("pass lower", gives(`{"uid":"c"}`))
				given(w)
				w.plays()
				story := strings.Join(w.acts(), ",")
				if !strings.HasSuffix(story, "restore lower#1,restore down#1,pass finally/tell#1") {
					t.Errorf("it did %s", story)
				}
			})
		})
	}
}

// A restore that is refused without end leaves it said, and the run ends.
func TestARestoreThatIsRefusedEndsWithItsTime(t *testing.T) {
	inWorld(t, "steps:\n- "+down+"\n", func(w *world) {
		w.steps.does("pass down", gives(found))
		w.steps.does("restore down", is(refused(executors.ReasonDenied)))
		w.plays()
		ends := w.journal().SectionAt.Add(15 * time.Minute).Format(time.RFC3339)
		if got := w.record("down").Waits; !strings.HasSuffix(got, "put back replicas of "+found+": may not patch; cleanup waits for it until "+ends) {
			t.Errorf("it waits for %q", got)
		}
		w.after(20 * time.Minute)
		w.ends(run.Failed, "may not patch")
		if n := w.count("restore down"); n < 10 || n > 60 {
			t.Errorf("it was tried %d times", n)
		}
	})
}

func TestWhatAStepLeftWorkingIsEnded(t *testing.T) {
	for name, c := range map[string]struct {
		answers []answer
		plain   bool
		given   func(w *world)
		stops   int
		said    string
	}{
		"at once":                       {stops: 1},
		"once it can be":                {answers: []answer{fails("no answer"), fails("no answer"), done()}, stops: 3},
		"or it is said after a minute":  {answers: []answer{fails("no answer")}, stops: 30, said: "no answer"},
		"where its type can be stopped": {plain: true},
		"unless it was never started": {given: func(w *world) {
			w.steps.does("pass hook", func(ctx context.Context, call executors.Call) executors.Outcome { return executors.Outcome{} })
		}, stops: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+hook+", timeout: 10s}\n", func(w *world) {
				w.steps.does("pass hook", notYet(time.Hour))
				w.steps.does("stop hook", c.answers...)
				w.steps.plain["webhook"] = c.plain
				if c.given != nil {
					c.given(w)
				}
				w.plays()
				w.after(20 * time.Minute)
				w.ends(run.Failed, "10s")
				if n := w.count("stop hook"); n != c.stops && (c.said == "" || n < 20) {
					t.Errorf("it was tried %d times, want %d", n, c.stops)
				}
				if rec := w.record("hook"); rec.Stopping || !strings.Contains(rec.Message, c.said) {
					t.Errorf("the step says %q", rec.Message)
				}
			})
		})
	}
}

// A right that is missing is waited for longer than an API server that is away.
func TestWhatMayNotBeEndedIsEndedOnceItMay(t *testing.T) {
	inWorld(t, "steps:\n- "+hook+", timeout: 10s}\n", func(w *world) {
		w.cluster.Put(configMap("job", nil))
		w.cluster.Deny(runner, "patch", "configmaps")
		w.steps.does("pass hook", notYet(time.Hour))
		w.steps.stopper = func(ctx context.Context, call executors.Call) error {
			_, err := call.Clients.Kube.CoreV1().ConfigMaps(shop).Patch(ctx, "job", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
			return err
		}
		w.begins("a")
		w.after(5 * time.Minute)
		if got := w.record("hook").Waits; !strings.Contains(got, "what it left working cannot be ended: ") {
			t.Errorf("it waits for %q", got)
		}
		w.cluster.Allow(runner, "patch", "configmaps")
		w.after(time.Minute)
		w.ends(run.Failed, "10s")
		if got := w.cluster.ConfigMap(shop, "job").Data["a"]; got != "b" {
			t.Errorf("it was not ended: %q", got)
		}
	})
}

func TestALeaseIsKeptUntilItsRunEnds(t *testing.T) {
	keeps := func(_ context.Context, call executors.Call) executors.Outcome {
		return executors.Outcome{State: executors.Done, WakeAt: call.Now.Add(30 * time.Second)}
	}
	for name, c := range map[string]struct {
		keeping   []answer
		releasing []answer
		keeps     int // in five minutes
		releases  int
	}{
		"it is renewed when it says":               {[]answer{keeps}, nil, 10, 1},
		"a renewal that fails is tried again soon": {[]answer{fails("no answer")}, nil, 19, 1},
		"what cannot be given back is tried again": {[]answer{keeps}, []answer{fails("no answer"), notYet(time.Second), is(refused(executors.ReasonForbidden)), done()}, 10, 4},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+hook+"}\n- "+hold+"\n", func(w *world) {
				w.steps.does("pass hook", keeps)
				w.steps.does("keep hook", c.keeping...)
				w.steps.does("release hook", c.releasing...)
				w.plays()
				w.after(4*time.Minute + 15*time.Second)
				if n := w.count("keep hook"); n < c.keeps-1 || n > c.keeps+1 {
					t.Errorf("it was kept %d times, want about %d", n, c.keeps)
				}
				w.says(annotations.Resume, runName)
				w.after(time.Minute)
				w.ends(run.Succeeded, "")
				if n := w.count("release hook"); n != c.releases {
					t.Errorf("it was given back %d times, want %d", n, c.releases)
				}
			})
		})
	}
}

func TestWhatARefusalMeansForAStep(t *testing.T) {
	refusal := func(o executors.Outcome) []answer { return []answer{is(o)} }
	forbidden := func(state executors.State, reason string) executors.Outcome {
		o := refused(reason)
		o.State, o.Permanent = state, state == executors.Failed
		return o
	}
	for name, c := range map[string]struct {
		section string
		answers []answer
		early   run.StepPhase // after 20 seconds
		waits   string        // what is said then
		end     run.StepPhase // after 40 minutes
	}{
		"a right that is missing is believed after half a minute": {
			answers: refusal(forbidden(executors.Failed, executors.ReasonForbidden)), early: run.StepRunning, waits: "unless that is so by 2000-01-01T00:00:30Z, the step fails", end: run.StepFailed,
		},
		"a right that comes in time is no failure": {
			answers: []answer{is(forbidden(executors.Failed, executors.ReasonForbidden)), is(forbidden(executors.Failed, executors.ReasonForbidden)), done()}, early: run.StepSucceeded, end: run.StepSucceeded,
		},
		"so is one of a step that records what is there first": {
			answers: []answer{func(_ context.Context, call executors.Call) executors.Outcome {
				if len(call.Recorded.Before) == 0 {
					return executors.Outcome{State: executors.Record, Before: json.RawMessage("3")}
				}
				o := forbidden(executors.Failed, executors.ReasonForbidden)
				o.Anew = true
				return o
			}},
			early: run.StepRunning, waits: "unless that is so by 2000-01-01T00:00:30Z, the step fails", end: run.StepFailed,
		},
		"an admission's no is a failed attempt": {
			answers: refusal(forbidden(executors.Failed, executors.ReasonDenied)), early: run.StepFailed, end: run.StepFailed,
		},
		"what says nothing of the account is never believed": {
			answers: append(slicesOf(40, is(forbidden(executors.NotYet, executors.ReasonForbidden))), done()), early: run.StepRunning, end: run.StepSucceeded,
		},
		"a refusal that cannot be told yet fails after half a minute": {
			answers: refusal(forbidden(executors.NotYet, executors.ReasonDenied)), early: run.StepRunning, end: run.StepFailed,
		},
		"cleanup waits for the right": {
			section: "finally", answers: append(slicesOf(20, is(forbidden(executors.Failed, executors.ReasonForbidden))), done()), early: run.StepRunning, waits: "cleanup waits for it until 20", end: run.StepSucceeded,
		},
		"and for an admission, until its time is over": {
			section: "finally", answers: refusal(forbidden(executors.Failed, executors.ReasonDenied)), early: run.StepRunning, end: run.StepFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec, path := oneHook, "hook"
			if c.section != "" {
				spec, path = "steps:\n- "+hook+"}\n"+tell, "finally/tell"
			}
			inWorld(t, spec, func(w *world) {
				w.steps.does("pass "+path, c.answers...)
				w.begins("a")
				w.after(20 * time.Second)
				if rec := w.record(path); rec.Phase != c.early || !strings.Contains(rec.Waits, c.waits) {
					t.Errorf("after 20s it is %s, and waits for %q; want %s, %q", rec.Phase, rec.Waits, c.early, c.waits)
				}
				w.after(40 * time.Minute)
				if rec := w.record(path); rec.Phase != c.end || rec.Waits != "" {
					t.Errorf("in the end it is %s, and waits for %q; want %s", rec.Phase, rec.Waits, c.end)
				}
			})
		})
	}
}

// A plan's status is written again when what it says of its run is written, however
// long that write takes.
func TestThePlanSaysForWhatItsRunWaits(t *testing.T) {
	inWorld(t, "steps:\n- "+hook+"}\n- {name: hold, type: suspend}\n", func(w *world) {
		lacks := refused(executors.ReasonForbidden)
		lacks.State = executors.NotYet
		w.steps.does("pass hook", is(lacks), is(lacks), is(lacks), done())
		w.cluster.Before(journalWrites(), func() { // its start; then what it waits for
			w.cluster.Before(journalWrites(), func() { time.Sleep(3 * time.Second) })
		})
		w.begins("a")
		w.after(40 * time.Minute)
		w.agent.plans.mu.Lock()
		defer w.agent.plans.mu.Unlock()
		said := w.agent.plans.waits
		if len(said) > 0 && said[0] == "" { // the status of its start, where no later one took that one's place
			said = said[1:]
		}
		if len(said) != 2 || !strings.HasPrefix(said[0], "step hook waits: ") || said[1] != "" {
			t.Errorf("the plan says %q", w.agent.plans.waits)
		}
	})
}

func slicesOf(n int, a answer) []answer {
	out := make([]answer, n)
	for i := range out {
		out[i] = a
	}
	return out
}

func TestAnAccountThatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		returns bool
		phase   run.Phase
		message string
	}{
		"is a failure of the step": {false, run.Failed, "the ServiceAccount maint-runner does not exist in namespace shop"},
		"is waited for in cleanup": {true, run.Succeeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := oneHook
			if c.returns {
				spec = oneHook + tell
			}
			inWorld(t, spec, func(w *world) {
				w.steps.does("pass finally/tell", notYet(40*time.Second), done())
				if c.returns {
					w.begins("a")
					w.after(time.Second)
				}
				w.cluster.Delete("serviceaccounts", shop, "maint-runner")
				if !c.returns {
					w.begins("a")
				}
				w.after(3 * time.Minute)
				if c.returns {
					if got := w.journal().Notice(); !strings.Contains(got, "does not exist") {
						t.Errorf("the run says %q", got)
					}
					w.cluster.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "maint-runner"}})
					w.after(time.Minute)
				}
				w.ends(c.phase, c.message)
			})
		})
	}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}, Data: data}
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"} //nolint:gochecknoglobals // a name

// watching waits for what it watches, and for nothing else.
func watching(name string) answer {
	return is(executors.Outcome{State: executors.NotYet, Watch: &executors.Watch{Resource: configMaps, Namespace: shop, Name: name}})
}

func TestAStepIsWokenByWhatItWatches(t *testing.T) {
	for name, c := range map[string]struct {
		moves func(w *world)
		again int // passes by that
	}{
		"its object changes":           {func(w *world) { w.cluster.Annotate(shop, "ready", "a", "b") }, 1},
		"another object changes":       {func(w *world) { w.cluster.Annotate(shop, "other", "a", "b") }, 0},
		"its object is deleted":        {func(w *world) { w.cluster.Delete("configmaps", shop, "ready") }, 1},
		"somebody of the agent's says": {func(w *world) { w.agent.Steps.Wake(stepOf("look")) }, 1},
		"all are woken that are meant": {func(w *world) { w.agent.Steps.WakeAll(func(s store.StepKey) bool { return s == stepOf("look") }) }, 1},
		"others are woken":             {func(w *world) { w.agent.Steps.WakeAll(func(s store.StepKey) bool { return s.Path == "other" }) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+look+"\n", func(w *world) {
				w.cluster.Put(configMap("ready", nil), configMap("other", nil))
				w.steps.does("pass look", watching("ready"))
				w.begins("a")
				w.after(10 * time.Second)
				if w.agent.WatchCount() != 1 {
					t.Fatalf("%d watches", w.agent.WatchCount())
				}
				before := w.count("pass look")
				c.moves(w)
				w.after(10 * time.Second)
				if n := w.count("pass look") - before; n != c.again {
					t.Errorf("%d passes more, want %d", n, c.again)
				}
				w.steps.does("pass look", done())
				w.agent.Steps.Wake(stepOf("look"))
				w.after(time.Second)
				w.ends(run.Succeeded, "")
				for _, watch := range w.cluster.Watches() {
					if strings.HasPrefix(watch, "maint-runner") {
						t.Errorf("still watched: %s", watch)
					}
				}
			})
		})
	}
}

// A watch that is silent for long is doubted: the step looks by itself.
func TestAStepWhoseWatchIsSilentLooksAllTheSame(t *testing.T) {
	inWorld(t, "steps:\n- "+look+"\n", func(w *world) {
		w.cluster.Put(configMap("ready", nil))
		w.steps.does("pass look", watching("ready"))
		w.begins("a")
		w.after(10 * time.Second)
		before := w.count("pass look")
		w.after(10 * time.Minute)
		if n := w.count("pass look") - before; n < 8 || n > 30 {
			t.Errorf("%d passes in ten minutes", n)
		}
	})
}

func TestAWatchThatIsRefusedIsTheStepsFailureInTime(t *testing.T) {
	for name, c := range map[string]struct {
		allowed bool
		phase   run.Phase
		message string
	}{
		"the right never comes":   {false, run.Failed, `serviceaccount shop/maint-runner may not watch configmaps "ready": grant watch on configmaps to it`},
		"the right comes in time": {true, run.Succeeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+look+"\n", func(w *world) {
				w.cluster.Put(configMap("ready", nil))
				w.cluster.Deny(runner, "watch", "configmaps")
				w.steps.does("pass look", watching("ready"))
				w.begins("a")
				w.after(15 * time.Second)
				if got := w.record("look").Waits; !strings.Contains(got, "may not watch configmaps") {
					t.Errorf("it waits for %q", got)
				}
				if c.allowed {
					w.cluster.Allow(runner, "watch", "configmaps")
					w.steps.does("pass look", watching("ready"), done())
				}
				w.after(2 * time.Minute)
				if c.allowed {
					w.cluster.Annotate(shop, "ready", "a", "b")
					w.after(time.Second)
				}
				w.ends(c.phase, c.message)
			})
		})
	}
}

// What moves many times within the least time between two looks is looked at once.
func TestLooksThatCostArePausedBetween(t *testing.T) {
	inWorld(t, "steps:\n- "+look+"\n", func(w *world) {
		w.cluster.Put(configMap("ready", nil))
		w.steps.does("pass look", is(executors.Outcome{State: executors.NotYet, Watch: &executors.Watch{
			Resource: configMaps, Namespace: shop, Name: "ready", Every: 10 * time.Second,
		}}))
		w.begins("a")
		w.after(30 * time.Second)
		before := w.count("pass look")
		for i := range 20 {
			w.cluster.Annotate(shop, "ready", "a", strings.Repeat("b", i+1))
			w.after(time.Second)
		}
		if n := w.count("pass look") - before; n < 1 || n > 3 {
			t.Errorf("%d looks in twenty seconds", n)
		}
	})
}

func stepOf(path string) store.StepKey {
	return store.StepKey{Run: types.NamespacedName{Namespace: shop, Name: runName}, Path: path}
}

func parallel(n int) string {
	var steps []string
	for i := range n {
		steps = append(steps, at("{name: s%d, type: webhook, timeout: 10m, properties: {url: 'https://hooks.test'}}", i))
	}
	return "steps:\n- {name: both, type: step-group, properties: {mode: parallel, steps: [" + strings.Join(steps, ", ") + "]}}\n"
}

func TestStepsSideBySideDoNotWaitForEachOther(t *testing.T) {
	inWorld(t, parallel(3), func(w *world) {
		w.steps.does("pass both/s0", hangs)
		w.plays()
		if w.record("both/s1").Phase != run.StepSucceeded || w.record("both/s2").Phase != run.StepSucceeded || w.record("both/s0").Phase != run.StepRunning {
			t.Errorf("the journal says %+v", w.journal().Steps)
		}
		w.says(annotations.Abort, runName)
		w.after(time.Minute)
		w.ends(run.Aborted, "")
		if n := w.count("stop both/s0"); n != 1 {
			t.Errorf("what hung was stopped %d times", n)
		}
	})
}

// A namespace has a few of the places for passes beside the workers.
func TestPassesBesideTheWorkersAreBounded(t *testing.T) {
	const places = steppool.MaxOwn
	inWorld(t, parallel(places+4), func(w *world) {
		for i := range places + 4 {
			w.steps.does(at("pass both/s%d", i), hangs)
		}
		w.plays()
		if n := w.count("pass both/"); n != places {
			t.Errorf("%d are under way, want %d", n, places)
		}
		w.after(20 * time.Minute) // in which they time out, and the others come
		if n := w.count("pass both/"); n < places {
			t.Errorf("%d were done", n)
		}
		w.ends(run.Failed, "")
	})
}

// A step whose expressions wait for their turn when its run is aborted has not failed, and one whose agent ends
// then is made by the next agent.
func TestAStepThatIsCutOffBeforeItsTurnHasNotFailed(t *testing.T) {
	const steps = "steps:\n- {name: first, type: webhook, properties: {url: \"https://${'one'}\"}}\n- {name: second, type: webhook, properties: {url: \"https://${'two'}\"}}\n"
	for name, c := range map[string]struct {
		cut   func(w *world)
		phase run.Phase
		step  run.StepPhase
	}{
		"the run is aborted": {func(w *world) { w.says(annotations.Abort, runName) }, run.Aborted, run.StepFailed},
		"the agent ends":     {func(w *world) { w.agent.stop(); w.after(time.Minute); w.cpu = nil; w.begins("b") }, run.Succeeded, run.StepSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, steps, func(w *world) {
				var used time.Duration
				w.cpu = func() time.Duration { used += 2 * time.Second; return used }
				w.begins("a")
				w.after(5 * time.Second)
				if w.record("first").Phase != run.StepSucceeded || w.record("second").Phase != run.StepRunning || w.count("pass second") != 0 {
					t.Fatalf("the journal says %+v", w.journal().Steps)
				}
				c.cut(w)
				w.after(time.Minute)
				if rec := w.record("second"); rec.Phase != c.step || rec.Reason == "BadTemplate" {
					t.Errorf("its step: %+v", rec)
				}
				w.ends(c.phase, "")
			})
		})
	}
}

// Steps that wait for a place take no goroutine, and end with their run.
func TestAnAbortEndsStepsThatWaitForAPlace(t *testing.T) {
	const all = 90
	inWorld(t, parallel(all), func(w *world) {
		for i := range all {
			w.steps.does(at("pass both/s%d", i), hangs)
		}
		w.begins("a")
		before := runtime.NumGoroutine()
		w.after(time.Minute)
		if n, under := runtime.NumGoroutine()-before, len(w.stepsInMemory()); under != all || n > 2*steppool.MaxOwn {
			t.Errorf("%d are under way or wait, and take %d goroutines", under, n)
		}
		w.says(annotations.Abort, runName)
		w.after(time.Minute)
		w.ends(run.Aborted, "")
		if n, left := w.count("pass both/"), w.stepsInMemory(); n != steppool.MaxOwn || len(left) > 0 {
			t.Errorf("%d were made, want %d; still in memory are %v", n, steppool.MaxOwn, left)
		}
	})
}

// What holds a run is asked again where a step comes to its first pass long after it began: behind
// others of its namespace that hang.
func TestWhatHoldsARunIsAskedAgainBeforeAStepThatHasWaitedForItsPlace(t *testing.T) {
	waits := strings.Replace(parallel(2), "steps:\n", "steps:\n- {name: hold, type: suspend, properties: {duration: 30s}}\n", 1)
	for name, c := range map[string]struct {
		meanwhile func(w *world)
		goesOn    func(w *world)
		sent      int
	}{
		"nothing came meanwhile": {meanwhile: func(*world) {}, goesOn: func(*world) {}, sent: 2},
		"its namespace was frozen": {
			meanwhile: func(w *world) { w.namespaceSays(shop, annotations.ChangeStrategy, "Restrictive") },
			goesOn:    func(w *world) { w.namespaceSays(shop, annotations.ChangeStrategy, "") },
		},
		"the plan was paused": {
			meanwhile: func(w *world) { w.says(annotations.Pause, "true") },
			goesOn:    func(w *world) { w.says(annotations.Pause, "") },
		},
		"the whole cluster was paused": {
			meanwhile: func(w *world) { w.annotateNamespace(annotations.DefaultNamespace, "true") },
			goesOn:    func(w *world) { w.annotateNamespace(annotations.DefaultNamespace, "") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, waits, func(w *world) {
				w.begins("a")
				w.after(time.Second)
				freed := make(chan struct{})
				for i := range steppool.MaxOwn {
					other := store.StepKey{Run: types.NamespacedName{Namespace: shop, Name: "other"}, Path: strconv.Itoa(i)}
					w.agent.Steps.Start(w.Context(), other, workflow.ActPass, 1, func(context.Context) { <-freed })
				}
				w.after(time.Minute)
				if rec := w.record("both/s0"); rec.Phase != run.StepRunning {
					t.Fatalf("it waits for no place: %+v", rec)
				}
				c.meanwhile(w)
				w.after(time.Minute)
				close(freed)
				w.after(time.Minute)
				if n := w.count("pass both/"); n != c.sent {
					t.Errorf("%d were sent: %+v", n, w.record("both/s0"))
				}
				if j := w.journal(); c.sent == 0 && (j.HeldSince == nil || j.Message == "") {
					t.Errorf("it is held since %v: %q", j.HeldSince, j.Message)
				}
				c.goesOn(w)
				w.after(time.Minute)
				if n := w.count("pass both/"); n != 2 || w.record("both/s0").Attempt != 1 {
					t.Errorf("when they may go on: %d were sent: %+v", n, w.record("both/s0"))
				}
				w.ends(run.Succeeded, "")
			})
		})
	}
}

func TestADrainThatIsBlockedIsSaidOnce(t *testing.T) {
	blocked := func(_ context.Context, call executors.Call) executors.Outcome {
		return executors.Outcome{State: executors.NotYet, WakeAt: call.Now.Add(10 * time.Second), Message: "a budget lets no pod go", Memory: []byte(`{"nodes":{"n1":{"blocked":true}},"blocked":["n1"]}`)}
	}
	inWorld(t, "steps:\n- {name: empty, type: drain, timeout: 10m, properties: {node: n1}}\n", func(w *world) {
		w.steps.does("pass empty", blocked)
		w.begins("a")
		w.after(time.Second)
		w.agent.DrainBlocked(w.agent.Stores.Runs.ReadWhole(w.agent.Stores.Runs.Filter(all)[0]), "empty", []string{"n1"}, "a budget lets no pod go")
		w.after(time.Second)
		w.wantEvent("Warning DrainBlocked nightly: Run maint-run-nightly-1, step empty: a budget lets no pod go")
		if len(w.told) != 1 || !strings.HasPrefix(w.told[0], "DrainBlocked ") {
			t.Errorf("the sinks were told %q", w.told)
		}
		if w.nodes.enqueued == 0 {
			t.Error("the nodes were not looked at")
		}
	})
}

func TestAFailedRunIsToldToTheSinks(t *testing.T) {
	inWorld(t, oneHook, func(w *world) {
		w.steps.does("pass hook", fails("no answer"))
		w.plays()
		w.wantEvent("Warning RunFailed nightly: ")
		if len(w.told) != 1 || w.told[0] != "RunFailed "+runName {
			t.Errorf("the sinks were told %q", w.told)
		}
	})
}

func TestAnActIsAskedOfTheExecutorWithWhatItMayKnow(t *testing.T) {
	inWorld(t, "steps:\n- "+down+"\n- "+hook+", retry: {limit: 1, backoff: 1s}}\n", func(w *world) {
		w.steps.does("pass down", gives(found))
		w.steps.does("pass hook", is(executors.Outcome{State: executors.NotYet, WakeAt: time.Now().Add(time.Second), Memory: []byte(`{"n":1}`)}), fails("no"), done())
		w.plays()
		call := w.steps.last("hook")
		if call.Run != runName || call.Plan.Name != nightly || call.Plan.Namespace != shop || call.Plan.Account != "maint-runner" || call.Attempt != 2 || call.IdempotencyKey() != runName+"/hook" {
			t.Errorf("the call is %+v", call)
		}
		if got := call.Plan.Manager; got != annotations.PlanManager(shop, nightly) {
			t.Errorf("its manager is %s", got)
		}
		if call := w.steps.last("down"); string(call.Recorded.Before) != found {
			t.Errorf("what it found is %s", call.Recorded.Before)
		}
	})
}

// The configuration may have changed since the plan was taken up, or the run began.
func TestAStepThatTheConfigurationDeniesFailsWhenItIsToActAndCleanupGoesOn(t *testing.T) {
	inWorld(t, "steps:\n- {name: hold, type: suspend}\n- "+hook+"}\nfinally:\n- {name: over, type: webhook, properties: {url: https://example.org/over}}\n", func(w *world) {
		w.plays()
		w.denied = []string{"webhook"}
		w.says(annotations.Resume, runName)
		w.after(time.Minute)
		w.did("pass finally/over#1")
		w.ends(run.Failed, "does not allow steps of type webhook")
	})
}

func TestAFailedCleanupIsToldWhateverTheEndIs(t *testing.T) {
	inWorld(t, "steps:\n- "+hold+"\nfinally:\n- {name: up, type: webhook, properties: {url: 'https://x'}}\n", func(w *world) {
		w.steps.does("pass finally/up", is(executors.Refuse("NotFound", "answered 404")))
		time.AfterFunc(10*time.Second, func() { w.cluster.Annotate(shop, nightly, annotations.Abort, runName) })
		w.plays()
		w.after(3 * time.Minute)
		w.ends(run.Aborted, "")
		w.wantEvent("Warning RunAborted nightly")
		entry := w.ledger().Recent[0].Outcome
		if words := "; finally/up failed: answered 404"; !strings.HasSuffix(w.journal().Message, words) || !strings.HasSuffix(entry.Message, words) {
			t.Errorf("the run says %q, its entry %q", w.journal().Message, entry.Message)
		}
		if left := w.ledger().Left; len(left) != 1 || left[0].Step != "finally/up" {
			t.Errorf("left over is %+v", left)
		}
	})
}
