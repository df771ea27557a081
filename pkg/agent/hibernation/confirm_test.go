package hibernation

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// pauses has somebody pause the namespace.
func (w *world) pauses() {
	w.api.Edit("namespaces", "", shop, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{annotations.Pause: "true"}) })
}

// Nothing falls asleep on what a watch that hangs has shown.
func TestNothingFallsAsleepOnWhatIsOver(t *testing.T) {
	for name, happens := range map[string]func(w *world){
		"the plan is restricted": func(w *world) {
			w.api.StallWatches("configmaps")
			w.api.Annotate(shop, "nights", annotations.ChangeStrategy, "Restrictive")
		},
		"the namespace is paused": func(w *world) {
			w.api.StallWatches("namespaces")
			w.pauses()
		},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.until("00:59")
				w.after(58 * time.Second)
				happens(w)
				w.until("01:02")
				w.awake()
			})
		})
	}
	t.Run("a target is added to a sleep", func(t *testing.T) {
		night(t, oneToThree+apps, func(w *world) {
			w.deployment("store", "db", 1)
			w.until("01:30")
			w.api.StallWatches("namespaces")
			w.pauses()
			w.plan(oneToThree + appsAndDB)
			w.until("01:32")
			w.has("orders 0, store 1, web 0")
		})
	})
}

// Without an answer nothing falls asleep, and what sleeps wakes.
func TestWakingAsksForNoConfirmation(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		refuse := func() (mend func()) {
			return w.api.Refuse(agenttest.When{User: "agent", Verb: "list", Resource: "configmaps"}, agenttest.Always, 500, "no")
		}
		mend := refuse()
		w.until("01:10")
		w.awake()
		mend()
		w.until("02:00")
		w.sleeps()
		w.after(55 * time.Minute)
		asked := w.api.Asked(agenttest.When{User: "agent", Verb: "list"})
		refuse()
		w.until("03:05")
		w.awake()
		if now := w.api.Asked(agenttest.When{User: "agent", Verb: "list"}); now != asked {
			t.Errorf("it was asked %d times", now-asked)
		}
	})
}
