package runs

import (
	"context"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// unpublished freezes nothing yet.
type unpublished struct{}

func (unpublished) Holds(context.Context, *store.CachedRun) (held bool, why string) {
	return false, ""
}

// How long a run is at work says nothing of how long it waits: with another leader, what is frozen is
// published anew.
func TestHowLongARunWaitsForItsTargetToBeFrozen(t *testing.T) {
	now := time.Now()
	c := &Controller{Config: Config{Freezes: unpublished{}, Now: func() time.Time { return now }}}
	for name, age := range map[string]time.Duration{"one that begins": 0, "an old one": time.Hour} {
		l := &store.CachedRun{
			Run:     run.Run{Spec: plan.Spec{FreezeTarget: true, Target: &plan.ObjectRef{}}},
			Journal: run.Journal{Phase: run.Running, Section: plan.SectionSteps, StartedAt: new(now.Add(-age))},
		}
		if got := c.untilFrozen(t.Context(), l).Sub(now); got != freezeDelay {
			t.Errorf("%s looks again after %s", name, got)
		}
	}
}
