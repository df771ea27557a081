package hibernation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
)

// An agent that follows another one counts from when the resources fell asleep.
func TestHowLongTheResourcesOfATargetHaveSlept(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		slept := func() []savings.Sleep { return w.agent.Slept() }
		if got := slept(); len(got) > 0 {
			t.Errorf("awake, it slept %+v", got)
		}
		w.until("01:30")
		w.begins()
		w.until("02:30")
		got := slept()
		if len(got) != 1 || got[0].Plan != "nights" || got[0].Namespace != shop || len(got[0].Slept) != 1 {
			t.Fatalf("it slept %+v", got)
		}
		one := got[0].Slept[0]
		one.Hours = float64(int(one.Hours*10+0.5)) / 10 // it took seconds to fall asleep
		if diff := cmp.Diff(ledger.Slept{Target: "apps", Executor: "noop", Kind: "noop", Resources: 2, Hours: 3, UnitHours: one.UnitHours}, one); diff != "" {
			t.Error(diff)
		}
		w.until("03:10")
		if got := slept(); len(got) > 0 {
			t.Errorf("awake again, it slept %+v", got)
		}
	})
}
