package runs

import (
	"strings"
	"testing"
	"testing/synctest"
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

// A plan that makes its lost ledger anew claims the runs that live: none of them ends before.
func TestARunEndsOnceItsLostLedgerIsMadeAnew(t *testing.T) {
	for name, c := range map[string]struct {
		spec   string
		ends   func(w *world)
		phase  run.Phase
		result run.Result
		held   bool // the ledger is in memory when it goes
	}{
		"it was deleted": {
			spec: "steps:\n- " + down + "\n- " + hold, phase: run.Aborted, result: run.Ran,
			ends: func(w *world) { w.cluster.Delete("configmaps", shop, runName) },
		},
		"it is aborted": {
			spec: "steps:\n- " + down + "\n- " + hold, phase: run.Aborted, result: run.Ran,
			ends: func(w *world) { w.says(annotations.Abort, runName) },
		},
		"it is aborted before it begins": {
			spec: "requiresApproval: true\nsteps:\n- " + hold, phase: run.Aborted, result: run.Skipped,
			ends: func(w *world) { w.says(annotations.Abort, runName) },
		},
		"its ledger goes while it is held in memory": {
			spec: "steps:\n- " + down + "\n- " + hold, phase: run.Aborted, result: run.Ran,
			ends: func(w *world) { w.says(annotations.Abort, runName) },
			held: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, c.spec, func(w *world) {
				lose := func() { w.cluster.DeleteAtOnce("configmaps", shop, annotations.LedgerName(nightly, planUID)) }
				w.plays()
				if !c.held {
					w.agent.stop()
				}
				lose()
				c.ends(w)
				if !c.held {
					w.begins("b")
				}
				w.after(20 * time.Second)
				if j := w.journal(); j.Phase.Ended() {
					t.Fatalf("without a ledger it is %s", j.Phase)
				}
				r, _, err := annotations.ReadRun(w.cluster.ConfigMap(shop, runName))
				if err != nil {
					t.Fatal(err)
				}
				w.makesLedger(ledger.Ledger{PlanUID: planUID}.Claim(runName, r.Request, ""))
				w.after(5 * time.Second)
				if got := w.ledger(); len(got.Open) > 0 || len(got.Recent) != 1 || got.Recent[0].Result != c.result || got.Recent[0].Outcome.Phase != c.phase {
					t.Errorf("the ledger has %+v, %+v", got.Open, got.Recent)
				}
			})
		})
	}
}

// A plan that is invalid makes no ledger.
func TestARunWhoseLedgerNobodyMakesAnewEndsWithoutIt(t *testing.T) {
	inWorld(t, "steps:\n- "+down+"\n- "+hold, func(w *world) {
		w.plays()
		w.agent.stop()
		w.cluster.DeleteAtOnce("configmaps", shop, annotations.LedgerName(nightly, planUID))
		w.says(annotations.Abort, runName)
		w.begins("b")
		w.after(time.Minute)
		if j := w.journal(); j.Phase.Ended() {
			t.Errorf("while its plan may still make one, it is %s", j.Phase)
		}
		w.says(annotations.StatusPhase, "Invalid")
		w.after(time.Minute)
		if j := w.journal(); j.Phase != run.Aborted || w.cluster.ConfigMap(shop, annotations.LedgerName(nightly, planUID)) != nil {
			t.Errorf("it is %s: %s", j.Phase, j.Message)
		}
	})
}

// What is not to begin any more waits for no ledger that a plan does not make.
func TestAPendingRunWhoseLedgerNobodyMakesAnewEndsWhereItIsNotToBegin(t *testing.T) {
	slot := func(at time.Time) func(r *run.Run) {
		return func(r *run.Run) {
			r.Request = run.Request{Kind: run.BySchedule, Slot: &at, Local: at.Format(time.RFC3339) + "[UTC]", At: at}
		}
	}
	for name, c := range map[string]struct {
		spec  string
		newer bool // a run of a newer slot is at work
		want  string
	}{
		"a newer slot takes its place": {spec: "concurrencyPolicy: Replace\nrequiresApproval: true\n" + oneHook, newer: true, want: "a newer slot takes its place"},
		"nobody approves it in time":   {spec: "requiresApproval: true\napprovalTimeout: 2m\n" + oneHook, want: "nobody approved or rejected it"},
		"it may begin":                 {spec: oneHook},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.asked(c.spec, slot(time.Now().UTC()))
				if c.want != "" {
					w.begins("a")
					w.after(time.Minute)
					w.agent.stop()
				}
				if c.newer {
					w.another(run.Running, func(r *run.Run) {
						slot(time.Now().UTC().Add(time.Second))(r)
					})
				}
				w.cluster.DeleteAtOnce("configmaps", shop, annotations.LedgerName(nightly, planUID))
				w.cluster.Annotate(shop, nightly, annotations.StatusPhase, "Invalid")
				w.begins("b")
				w.after(5 * time.Minute)
				if j := w.journal(); j.Phase.Ended() != (c.want != "") || !strings.HasPrefix(j.Message, c.want) || j.StartedAt != nil {
					t.Errorf("it is %s: %q", j.Phase, j.Message)
				}
				w.did()
				w.agent.stop()
			})
		})
	}
}
