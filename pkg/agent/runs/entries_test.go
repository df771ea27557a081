package runs

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// The ledger with the claim of a run is lost, and the run itself counts: somebody adopted it.
func TestTheEndOfARunWhoseClaimIsLostIsRecordedOnce(t *testing.T) {
	slot := time.Date(1999, 12, 31, 23, 0, 0, 0, time.UTC)
	ended := ledger.Entry{Slot: &slot, Kind: run.BySchedule, Result: run.Ran, Run: runName, Outcome: &ledger.Outcome{Phase: run.Succeeded}}
	for name, c := range map[string]struct {
		led      ledger.Ledger
		archived []ledger.Entry
		forged   bool // the archive is not the agent's
		want     int
	}{
		"nothing knows it":                                  {want: 1},
		"an old state of it was put back":                   {led: ledger.Ledger{Recent: []ledger.Entry{ended}}, want: 1},
		"its entry is in the archive":                       {archived: []ledger.Entry{ended}},
		"an archive that does not count says that it ended": {archived: []ledger.Entry{ended}, forged: true, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+hold, func(w *world) {
				_, j, err := annotations.ReadRun(w.cluster.ConfigMap(shop, runName))
				if err != nil {
					t.Fatal(err)
				}
				r := w.asked("steps:\n- "+hold, func(r *run.Run) {
					r.Request = run.Request{Kind: run.BySchedule, Slot: &slot, At: time.Now().UTC()}
				})
				w.put(r, j.Start(time.Now()))
				c.led.PlanUID = planUID
				w.putLedger(nightly, c.led)
				if c.archived != nil {
					cm, err := annotations.ArchiveObject(shop, nightly, planUID, c.archived)
					if err != nil {
						t.Fatal(err)
					}
					if !c.forged {
						cm = agenttest.Signed(w, cm)
					}
					w.cluster.Put(cm)
				}
				w.plays()
				w.stuckIs("no open entry")
				w.says(annotations.Abort, runName)
				w.after(time.Minute)
				w.ends(run.Aborted, "")
				once := w.ledger().Recent
				if len(once) != c.want {
					t.Fatalf("the ledger has %+v", once)
				}
				if c.want == 1 && len(c.led.Recent) == 0 && (once[0].Run != runName || once[0].Kind != run.BySchedule || !once[0].Slot.Equal(slot) || once[0].Outcome.Phase != run.Aborted) {
					t.Errorf("it ended as %+v", once[0])
				}
				w.cluster.DeleteAtOnce("configmaps", shop, runName)
				w.put(r, j.Start(time.Now()))
				w.after(time.Minute)
				w.says(annotations.Abort, "")
				w.says(annotations.Abort, runName)
				w.after(time.Minute)
				w.ends(run.Aborted, "")
				if again := w.ledger(); len(again.Recent) != c.want {
					t.Errorf("its close is repeated: %+v", again.Recent)
				}
			})
		})
	}
}
