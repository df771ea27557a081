package runs

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// ledgerLostError says that a run has a plan without a ledger. The plan claims the runs that live when
// it makes it anew: one that ended before that would be known nowhere, or be claimed after its end
// by a plan that had just looked.
type ledgerLostError struct {
	lasts bool // for half a minute
}

// Error is error's.
func (ledgerLostError) Error() string {
	return "its plan's ledger is lost and is still to be made anew"
}

// ledgerLost notes that a look at a run found its plan without a ledger: once in each look.
func (c *Controller) ledgerLost(l *store.CachedRun, now time.Time) ledgerLostError {
	_, lasts := c.memory.refusals.Record(store.StepKey{Run: l.Key()}, now)
	return ledgerLostError{lasts: lasts}
}

// awaitLedger is ledgerLostError until a plan has made its ledger anew. A plan that is invalid makes
// none: a run that only has to be written down ends without it, half a minute later.
func (c *Controller) awaitLedger(ctx context.Context, l *store.CachedRun, now time.Time) error {
	led, err := c.Stores.Ledgers.Get(ctx, l.PlanKey(), l.Run.PlanUID)
	if err != nil || led != nil || !c.hasPlan(l) {
		return err
	}
	phase := c.Stores.Documents.Plan(l.PlanKey()).Annotations[annotations.StatusPhase]
	if lost := c.ledgerLost(l, now); !lost.lasts || phase != string(trigger.PhaseInvalid) {
		return lost
	}
	return nil
}

// ledgerAwaited is when a run whose plan has no ledger is looked at again, and, after half a minute, what
// the plan says of it.
func (c *Controller) ledgerAwaited(k types.NamespacedName, lost ledgerLostError) (wake time.Time, stuck string) {
	if l := c.Stores.Runs.Live(k); l != nil {
		c.Plans.Add(l.PlanKey())
	}
	if lost.lasts {
		return c.Now().Add(heldDelay), lost.Error()
	}
	return c.Now().Add(time.Second), ""
}

// hasPlan says whether a run's plan is there and stays: otherwise its ledger goes, too.
func (c *Controller) hasPlan(l *store.CachedRun) bool {
	cm := c.Stores.Documents.Plan(l.PlanKey())
	return cm != nil && string(cm.UID) == l.Run.PlanUID && cm.DeletionTimestamp == nil
}

// closeEntry gives a run its end in its plan's ledger, and notes there whether its label is gone.
func (c *Controller) closeEntry(ctx context.Context, l *store.CachedRun, removed bool, now time.Time) error {
	unknown := false
	err := c.Stores.Ledgers.Edit(ctx, l.PlanKey(), l.Run.PlanUID, func(led ledger.Ledger) ledger.Ledger {
		unknown = !led.IsOpen(l.Run.Name) && !led.Knows(l.Run)
		led = led.CloseRun(l.Run, l.Journal, now)
		if removed {
			led = led.LabelTaken(l.Run.Request)
		}
		return led
	})
	if err == nil { // what was held of it may have been older than its loss
		err = c.awaitLedger(ctx, l, now)
	}
	if err != nil || !unknown {
		return err
	}
	archived, err := c.Stores.Ledgers.Archived(ctx, l.PlanKey(), l.Run.PlanUID) // after the head: entries go from there to here
	if err != nil {
		return err
	}
	return c.Stores.Ledgers.Edit(ctx, l.PlanKey(), l.Run.PlanUID, func(led ledger.Ledger) ledger.Ledger {
		return led.CloseUnclaimed(l.Run, l.Journal, archived, now)
	})
}

// holders are what a step may know of the others that hold an object.
func (c *Controller) holders(l *store.CachedRun, path string) func(mark string) []executors.Holder {
	return func(mark string) []executors.Holder { return c.Stores.Runs.Holds.Of(mark, l.Key(), path) }
}

// found says what a step found, for a message; empty where nobody can tell.
func (c *Controller) found(stepType string, before json.RawMessage) string {
	executor, _ := c.Executor(stepType)
	if finder, ok := executor.(executors.Finder); ok && before != nil {
		return finder.Found(before)
	}
	return ""
}

// toPutBack says what was to be put back, and why it is not.
func (c *Controller) toPutBack(m workflow.Action, rec *run.Record, why string) string {
	if found := c.found(m.Step.Type, rec.Before); found != "" && why != "" {
		return "put back " + found + ": " + why
	}
	return why
}
