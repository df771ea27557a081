package plans

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// refusedRuns remember when claims whose runs the API server does not take are
// tried again. The claims themselves, and why, stand in their plans' ledgers: a new
// leader tries them at once.
type refusedRuns struct {
	mu     sync.Mutex
	byPlan map[types.NamespacedName]map[string]refusedRun
}

type refusedRun struct {
	refusal workflow.Refusal
	next    time.Time
	text    string // hash of the plan that was refused: another text may be taken
}

// next is when the run of a claim is tried again; zero: now.
func (r *refusedRuns) next(k types.NamespacedName, run, text string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.byPlan[k][run]; found.text == text {
		return found.next
	}
	return time.Time{}
}

// again notes another refusal. final says that it was said for half a minute.
func (r *refusedRuns) again(k types.NamespacedName, run, text string, now time.Time) (next time.Time, final bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byPlan[k] == nil {
		r.byPlan[k] = map[string]refusedRun{}
	}
	found := r.byPlan[k][run]
	found.refusal, final = found.refusal.Again(now)
	found.next, found.text = found.refusal.RetryAt(now), text
	r.byPlan[k][run] = found
	return found.next, final
}

// keep forgets what is claimed no more.
func (r *refusedRuns) keep(k types.NamespacedName, open []ledger.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for run := range r.byPlan[k] {
		if !slices.ContainsFunc(open, func(e ledger.Entry) bool { return e.Run == run }) {
			delete(r.byPlan[k], run)
		}
	}
	if len(r.byPlan[k]) == 0 {
		delete(r.byPlan, k)
	}
}
