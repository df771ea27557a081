package offwindow_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/offwindow"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// A hold comes first, then a skip, then a pause, then what forbids a sleep to begin.
func TestWhyNothingSleeps(t *testing.T) {
	night := hibernate.Level{Asleep: true, Since: at(2, 20)}
	joe, ann := intent.Actor{Name: "joe"}, intent.Actor{Name: "ann", Verified: true}
	held := hibernate.DesiredState{Level: night, By: hibernate.ByHold}
	skipped := hibernate.DesiredState{Level: night, By: hibernate.BySkip}
	wanted := hibernate.DesiredState{Level: night, By: hibernate.BySchedule, Asleep: true}
	for name, c := range map[string]struct {
		o    offwindow.Obstacles
		want *ledger.Awake
	}{
		"it is outside of the off-hours": {offwindow.Obstacles{Want: hibernate.DesiredState{By: hibernate.ByHold}, Forbidden: "closed"}, nil},
		"held awake, and all else":       {offwindow.Obstacles{Want: held, Paused: schedule.Pause{On: true}, Forbidden: "closed"}, &ledger.Awake{Reason: run.ReasonHold, By: ledger.CauseBy(joe, "hold")}},
		"skipped, and all else":          {offwindow.Obstacles{Want: skipped, Paused: schedule.Pause{On: true}, Forbidden: "closed"}, &ledger.Awake{Reason: run.ReasonSkip, By: ledger.CauseBy(ann, "skip")}},
		"paused, and forbidden":          {offwindow.Obstacles{Want: wanted, Paused: schedule.Pause{On: true, By: " by ann"}, Forbidden: "closed"}, &ledger.Awake{Reason: run.ReasonPaused, By: ledger.Cause{Said: "paused by ann"}}},
		"held asleep, and forbidden":     {offwindow.Obstacles{Want: hibernate.DesiredState{Level: night, By: hibernate.ByHold, Asleep: true}, Forbidden: "closed"}, &ledger.Awake{Reason: run.ReasonWindow, By: ledger.Cause{Said: "closed"}}},
		"forbidden, in a dry run":        {offwindow.Obstacles{Want: wanted, Forbidden: "closed", DryRun: true}, &ledger.Awake{Reason: run.ReasonWindow, By: ledger.Cause{Said: "closed"}}},
		"a dry run would sleep":          {offwindow.Obstacles{Want: wanted, DryRun: true}, &ledger.Awake{}},
		"nothing stands before it":       {offwindow.Obstacles{Want: wanted}, &ledger.Awake{Reason: run.ReasonNotReady}},
	} {
		if c.want != nil {
			c.want.Slot = at(2, 20)
		}
		c.o.Actors = map[string]intent.Actor{"hold-state": joe, "skip": ann}
		if diff := diff(c.want, c.o.Awake()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
