package nodemaintenance

import (
	"errors"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
)

// Nodes are handed out only on policies and pauses as they stand in the cluster. What has a node
// goes on, and is given back, whatever they are.
func TestNoNodeIsHandedOutOnWhatIsOver(t *testing.T) {
	for name, why := range map[string]error{"what was seen is over": queue.ErrConflict, "nobody answers": errors.New("no answer")} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(node("a", asked("gpu", noDrain)), node("b"), node("c"))
				w.limits.MaxParallelOperations = 5
				a := w.lead()
				w.pass(10 * time.Second)
				w.expect("as long as it is sure", "a cordoned for gpu, gpu Ready", "b open", "c open")
				w.doubtsGates(why)
				w.edit("b", asked("os", noDrain))
				s := w.live("roll", drainStep("drain"))
				turn := func() bool { granted, _ := a.Turn(s, "c", nil); return granted }
				turn()
				w.pass(10 * time.Second)
				w.expect("when it is not", "a cordoned for gpu, gpu Ready", "b open, os new", "c open")
				if turn() {
					t.Error("a plan is given a node")
				}
				w.edit("a", withdraw("gpu"))
				w.pass(10 * time.Second)
				w.expect("when it is given back", "a open", "b open, os new", "c open")
				w.doubtsGates(nil)
				w.pass(10 * time.Second)
				w.expect("when it is sure again", "a open", "b cordoned for os, os Ready", "c open")
				if !turn() {
					t.Error("no plan is given a node any more")
				}
			})
		})
	}
}

// What is asked of the API server before a node is handed out is not asked at each look.
func TestALookThatHandsOutNothingConfirmsNothing(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", "{}")), node("b", asked("os", noDrain)))
		a := w.lead()
		w.pass(10 * time.Second)
		w.mu.Lock()
		asked := w.checks
		w.mu.Unlock()
		if asked == 0 || asked > 3 {
			t.Errorf("it was asked %d times for one node", asked)
		}
		for range 20 {
			a.Enqueue()
			w.pass(time.Second)
		}
		if w.mu.Lock(); w.checks != asked {
			t.Errorf("it was asked %d times more", w.checks-asked)
		}
		w.mu.Unlock()
	})
}
