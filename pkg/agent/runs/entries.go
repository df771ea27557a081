package runs

import (
	"context"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

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
