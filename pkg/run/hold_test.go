package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// gateUntil is closed before an instant and open from there on.
func gateUntil(t time.Time) *schedule.Gate {
	return schedule.NewGate(schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.RestrictiveUntil, Until: &t}})
}

func TestAClosedGateHoldsARunUnlessItWasLetThrough(t *testing.T) {
	now, opens := coretest.Clock("02:00"), coretest.Clock("03:00")
	gate := gateUntil(opens)
	h := run.ClosedFor(gate, "r", intent.Bypass{}, now)
	if h == nil || h.NotReady || !h.Until.Equal(opens) || !strings.Contains(h.Message(), "opens at "+opens.UTC().Format(time.RFC3339)) {
		t.Fatalf("hold: %+v", h)
	}
	for name, passes := range map[string]*run.ClosedGate{
		"no gate":        run.ClosedFor(nil, "r", intent.Bypass{}, now),
		"it is open":     run.ClosedFor(gate, "r", intent.Bypass{}, opens),
		"a bypass of it": run.ClosedFor(gate, "r", intent.Bypass{Run: "r"}, now),
	} {
		if passes != nil {
			t.Errorf("%s: it is held: %+v", name, passes)
		}
	}
	if run.ClosedFor(gate, "r", intent.Bypass{Run: "another"}, now) == nil {
		t.Error("a bypass of another run lets it through")
	}
	if by := run.PassedBy(gate, run.Request{OutsideWindow: true, Actor: "ann", Reason: "fire"}, intent.Intent{}, now); by == nil || by.Name != "ann" || by.Reason != "fire" {
		t.Errorf("let through by %+v", by)
	}
	if by := run.PassedBy(gate, run.Request{OutsideWindow: true}, intent.Intent{}, opens); by != nil {
		t.Errorf("an open gate was passed by %+v", by)
	}
}
