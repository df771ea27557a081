package offwindow

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Obstacles are what may keep a plan awake in its off-hours.
type Obstacles struct {
	Want      hibernate.DesiredState
	Paused    schedule.Pause          // that holds; off: none does
	Forbidden string                  // why no sleep may begin; empty: one may
	Actors    map[string]intent.Actor // who stands behind each intent, by its name
	DryRun    bool
}

// Awake is the off-window that the plan is in, and why nothing sleeps; nil: it is in none.
func (o Obstacles) Awake() *ledger.Awake {
	if !o.Want.Level.Asleep {
		return nil
	}
	reason, by := o.because()
	return &ledger.Awake{Slot: o.Want.Level.Since, Reason: reason, By: by}
}

// because is why nothing sleeps, in the ledger's words; empty, in a dry run: it would.
func (o Obstacles) because() (string, ledger.Cause) {
	switch {
	case o.Want.By == hibernate.ByHold && !o.Want.Asleep:
		return run.ReasonHold, ledger.CauseBy(o.Actors["hold-state"], "hold")
	case o.Want.By == hibernate.BySkip:
		return run.ReasonSkip, ledger.CauseBy(o.Actors["skip"], "skip")
	case o.Paused.On:
		return run.ReasonPaused, ledger.Cause{Said: o.Paused.Said()}
	case o.Forbidden != "":
		return run.ReasonWindow, ledger.Cause{Said: o.Forbidden}
	case o.DryRun:
		return "", ledger.Cause{}
	}
	return run.ReasonNotReady, ledger.Cause{}
}
