package runs

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// What a run took up may be seen once more: in a cache that is behind, or because it could not be
// taken away. It was not in vain.
func TestWhatARunTookUpIsNotCalledIgnored(t *testing.T) {
	takes := agenttest.When{User: "agent", Verb: "patch", Resource: "configmaps", Name: nightly}
	for name, c := range map[string]struct{ spec, key, value string }{
		"a resume":                          {"steps:\n- " + hold + "\n" + tell, annotations.Resume, runName},
		"a resume of a step":                {"steps:\n- " + hold + "\n" + tell, annotations.Resume, runName + "/hold"},
		"a resume of a step within another": {"steps:\n- {name: all, type: step-group, properties: {steps: [" + hold + "]}}\n" + tell, annotations.Resume, runName + "/hold"},
		"an approval of a step":             {"steps:\n- {name: ask, type: approval}\n" + tell, annotations.Approve, runName + "/ask"},
		"a rejection of a step":             {"steps:\n- {name: ask, type: approval}\n" + tell, annotations.Reject, runName + "/ask"},
		"an approval of the run":            {"requiresApproval: true\n" + oneHook + tell, annotations.Approve, runName},
		"a rejection of the run":            {"requiresApproval: true\n" + oneHook + tell, annotations.Reject, runName},
		"an abort":                          {"steps:\n- " + hold + "\n" + tell, annotations.Abort, runName},
	} {
		for how, then := range map[string]func(w *world){
			"the watch is behind": func(w *world) {
				w.cluster.Before(takes, func() { w.cluster.StallWatches("configmaps") })
			},
			"it cannot be taken away": func(w *world) { w.cluster.Fail(takes, 1) },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				inWorld(t, c.spec, func(w *world) {
					w.plays()
					then(w)
					w.says(c.key, c.value)
					w.after(5 * time.Minute)
					for _, e := range w.events.All() {
						if strings.Contains(e, "Ignored") {
							t.Errorf("it said %q", e)
						}
					}
					if j := w.journal(); !j.Phase.Ended() {
						t.Errorf("the run is %s: %s", j.Phase, j.Message)
					}
				})
			})
		}
	}
}

// A second resume that comes while nothing waits for it is told, whatever the first one did.
func TestAResumeThatNothingWaitsForIsToldAfterOneThatWasTakenUp(t *testing.T) {
	inWorld(t, "steps:\n- "+hold+"\n- "+hook+", timeout: 5m}\n", func(w *world) {
		w.steps.does("pass hook", notYet(2*time.Minute), done())
		w.plays()
		w.says(annotations.Resume, runName)
		w.after(time.Minute)
		w.says(annotations.Actor(annotations.Resume), "jane")
		w.says(annotations.Resume, runName)
		w.after(5 * time.Minute)
		w.wantEvent("Warning ResumeIgnored nightly: Run maint-run-nightly-1 was not suspended")
	})
}

// One resume ends one suspend, also where the cache still shows it when the next one begins, and where it
// cannot be taken off the plan for a while. Once it is, another one ends the next.
func TestAResumeIsTakenUpOnce(t *testing.T) {
	takes := agenttest.When{User: "agent", Verb: "patch", Resource: "configmaps", Name: nightly}
	for name, c := range map[string]struct{ spec, waits string }{
		"among the steps": {"steps:\n- {name: one, type: suspend}\n- {name: two, type: suspend}\n", "two"},
		"of the cleanup":  {"steps:\n- " + hook + "}\nfinally:\n- {name: one, type: suspend}\n- {name: two, type: suspend}\n", "finally/two"},
	} {
		for how, then := range map[string]func(w *world){
			"the watch is behind": func(w *world) {
				w.cluster.Before(takes, func() { w.cluster.StallWatches("configmaps") })
			},
			"it cannot be taken away":           func(w *world) { w.cluster.Fail(takes, 3) },
			"somebody writes on the plan again": func(w *world) { w.cluster.Refuse(takes, 10, http.StatusConflict, "it was written on") },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				inWorld(t, c.spec, func(w *world) {
					w.plays()
					then(w)
					w.says(annotations.Resume, runName)
					w.after(time.Minute)
					if rec := w.record(c.waits); rec.Phase != run.StepRunning || rec.Resumed != nil {
						t.Fatalf("step %s is %s, resumed by %v", c.waits, rec.Phase, rec.Resumed)
					}
					if how != "it cannot be taken away" {
						return
					}
					w.says(annotations.Resume, runName)
					w.after(time.Minute)
					w.ends(run.Succeeded, "")
				})
			})
		}
	}
}

// What may not be written on the plan keeps the answer there, and no run from its cleanup.
func TestARunEndsThoughItsAnswerStaysOnThePlan(t *testing.T) {
	inWorld(t, "steps:\n- {name: one, type: suspend}\nfinally:\n- "+hook+"}\n", func(w *world) {
		w.plays()
		w.cluster.Refuse(agenttest.When{User: "agent", Verb: "patch", Resource: "configmaps", Name: nightly}, 1000, http.StatusUnprocessableEntity, "not by you")
		w.says(annotations.Resume, runName)
		w.after(5 * time.Minute)
		w.ends(run.Succeeded, "")
	})
}
