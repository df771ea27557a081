package runs

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// rivals are two runs that may not work at once: the one of the story begins at the second second,
// and another one, that stays at a suspend, a second later.
func rivals(t *testing.T, samePlan bool, story func(w *world, other string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, now := newWorld(t), time.Now().UTC()
		w.asked("concurrencyPolicy: Queue\n"+oneHook, func(r *run.Run) {
			r.TargetUID, r.Request.At = "target-uid", now.Add(2*time.Second)
		})
		other := w.another(run.Pending, func(r *run.Run) {
			r.Request.At = now.Add(3 * time.Second)
			if !samePlan {
				r.Plan, r.PlanUID, r.TargetUID = "other", "other-uid", "target-uid"
			}
		})
		w.begins("a")
		w.after(1500 * time.Millisecond)
		story(w, other.Name)
	})
}

func (w *world) phasesAre(when string, of run.Phase, other string, otherOf run.Phase) {
	w.Helper()
	if mine, theirs := w.journal(), w.journalOf(other); mine.Phase != of || theirs.Phase != otherOf {
		w.Errorf("%s they are %s (%s) and %s (%s), want %s and %s", when, mine.Phase, mine.Message, theirs.Phase, theirs.Message, of, otherOf)
	}
}

// A start whose reply is lost, and that the watch does not show, may have come: nobody else begins.
func TestAStartWhoseReplyIsLostKeepsOthersFromItsTargetAndItsPlan(t *testing.T) {
	for name, samePlan := range map[string]bool{"its target": false, "its plan": true} {
		t.Run(name, func(t *testing.T) {
			rivals(t, samePlan, func(w *world, other string) {
				w.steps.does("pass hook", notYet(time.Minute), done())
				w.cluster.StallWatches("configmaps")
				w.cluster.LoseReply(journalWrites(), 1)
				w.cluster.Fail(journalWrites(), 1)
				w.cluster.Refuse(journalWrites(), 2, 429, "too many")
				w.after(2 * time.Second)
				w.phasesAre("while nothing is known", run.Running, other, run.Pending)
				w.after(30 * time.Second)
				w.phasesAre("once it is read again", run.Running, other, run.Pending)
				w.did("pass hook#1")
				if said := w.journalOf(other).Message; !strings.HasPrefix(said, "waits for run "+runName) {
					w.Errorf("the other one %q", said)
				}
				w.after(5 * time.Minute)
				w.phasesAre("at the end", run.Succeeded, other, run.Running)
			})
		})
	}
}

// What a start that failed for certain held is free, and so is what a run holds that has to wait.
func TestAStartThatDoesNotComeLetsOthersGo(t *testing.T) {
	for name, given := range map[string]func(w *world){
		"it is refused": func(w *world) { w.cluster.Refuse(journalWrites(), agenttest.Always, 422, "data: Too long") },
		"it is refused after a try that was not answered": func(w *world) {
			w.cluster.Fail(journalWrites(), 1)
			w.cluster.Refuse(journalWrites(), agenttest.Always, 422, "data: Too long")
		},
		"somebody pauses it before the next try": func(w *world) {
			mend := w.cluster.Fail(journalWrites(), agenttest.Always)
			time.AfterFunc(2*time.Second, func() {
				w.cluster.Annotate(shop, nightly, annotations.Pause, "true")
				mend()
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			rivals(t, false, func(w *world, other string) {
				given(w)
				w.after(time.Minute)
				w.phasesAre("after a minute", run.Pending, other, run.Running)
			})
		})
	}
}

// The start of an agent that leads no more may come after the next one has begun another run.
func TestARunThatIsFoundAtWorkWaitsForTheOneThatHoldsItsTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.asked(oneHook, func(r *run.Run) { r.TargetUID = "target-uid" })
		other := w.another(run.Running, func(r *run.Run) { r.Plan, r.PlanUID, r.TargetUID = "other", "other-uid", "target-uid" })
		w.plays()
		w.phasesAre("at first", run.Pending, other.Name, run.Running)
		w.put(r, workflow.NewJournal(r).Start(time.Now()))
		w.after(time.Minute)
		w.phasesAre("when its start has come", run.Running, other.Name, run.Running)
		w.did()
		w.stuckIs("run " + runName + " cannot go on: it waits for run " + other.Name + ", which holds the same target")
		w.cluster.Annotate(shop, "other", annotations.Resume, other.Name)
		w.after(time.Minute)
		w.ends(run.Succeeded, "")
		w.did("pass hook#1")
		w.stuckIs("")
	})
}

// An agent that begins knows what runs hold that are at work, before any other begins.
func TestANewAgentKnowsWhatRunsAtWorkHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.asked(oneHook, func(r *run.Run) { r.TargetUID = "target-uid" })
		other := w.another(run.Running, func(r *run.Run) { r.Plan, r.PlanUID, r.TargetUID = "other", "other-uid", "target-uid" })
		w.plays()
		w.begins("b")
		w.after(time.Second)
		w.phasesAre("under the next agent", run.Pending, other.Name, run.Running)
		if !w.agent.Stores.Locks.Holds(types.NamespacedName{Namespace: shop, Name: other.Name}.String()) {
			t.Error("the run at work holds nothing")
		}
	})
}
