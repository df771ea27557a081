package hibernation

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// A plan that is read anew at each look is decided as one that is kept: through its night, an
// edit in it, and its end.
func TestAPlanOfWhichNothingIsKeptIsDecidedAlike(t *testing.T) {
	for name, most := range map[string]int{"kept": maxParsedWeight, "forgotten": 0} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.agent.memory.mu.Lock()
				w.agent.memory.parsed = store.NewParsed[*parsedPlan](maxParsed, most)
				w.agent.memory.mu.Unlock()
				w.until("01:01")
				w.sleeps()
				if kept := w.agent.memory.parsed.Len(); (kept == 0) != (most == 0) {
					t.Errorf("%d are kept", kept)
				}
				w.until("03:01")
				w.awake()
				w.until("25:01")
				w.sleeps()
				w.plan("description: another\n" + oneToThree + apps)
				w.until("26:00")
				w.sleeps()
				w.is("Hibernated: 1 of 1 targets sleep")
				w.api.Delete("configmaps", shop, "nights")
				w.until("26:30")
				w.awake()
				w.closed()
			})
		})
	}
}

// The label of the account belongs to what a plan is read from: whoever sets it right changes
// no word of the text.
func TestAPlanIsReadAnewWhereItsLabelIsAnother(t *testing.T) {
	play(t, func(w *world) {
		w.plan(oneToThree + "serviceAccountName: other\n" + apps)
		c := w.begins().Controller
		cm := w.api.ConfigMap(shop, "nights")
		if known := c.known(keyOf(cm), cm); len(known.faults) == 0 {
			t.Fatal("the label names no account, and the text does")
		}
		cm.Labels[annotations.LabelServiceAccount] = "other"
		if known := c.known(keyOf(cm), cm); len(known.faults) > 0 {
			t.Error(known.faults)
		}
	})
}
