package cmd

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func TestDescribeTellsWhatSurroundsARun(t *testing.T) {
	fast := "fast"
	r := aRunOf(record("patch", "patch-object", plan.StepSucceeded, outputs(map[string]any{"difference": "- replicas: 1\n+ replicas: 2\n"}), func(rec *plan.Record) {
		rec.Changed = []plan.Change{{Kind: "Deployment", Name: "orders", What: "spec.replicas"}}
	}))
	r.run.Request = plan.Request{Kind: plan.ByToken, At: *before(2 * time.Hour), Actor: "joe", DryRun: true, Parameters: map[string]string{"size": "2"}}
	r.run.Spec = plan.Spec{RetryLimit: 3, Parameters: []plan.Parameter{{Name: "mode", Default: &fast}, {Name: "size"}, {Name: "unset"}}}
	r.journal.Approved = &plan.Actor{Name: "jane", Reason: "CHG-1", At: *before(time.Hour)}
	r.journal.Passed = &plan.Actor{Name: "ops", Reason: "urgent"}
	r.journal.Retries = 1
	o := &describeOptions{cli: &cli{Env: Env{Now: saturday, Zone: "Europe/Berlin"}}}
	want := `Run:         maint-run-p-x in namespace shop
Plan:        p
Phase:       Running for 60m0s, 1 of 1 steps done
Asked by:    manual of joe
Asked for:   Fri 2026-11-20 23:00 CET (2026-11-20T22:00:00Z)
Runs as:     ServiceAccount maint-runner
Parameters:  mode=fast, size=2
Approved:    Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z) by jane (unverified): CHG-1
Gate:        let through although it was closed by ops (unverified): urgent
Started:     Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z)
Retries:     1 of 3
Dry run:     nothing outside the run itself was changed

Steps:
  ✓ patch  patch-object  Succeeded      5s

Would change:
  step patch:
    - replicas: 1
    + replicas: 2

Changed:
  Deployment/orders: spec.replicas (step patch)`
	if diff := cmp.Diff(want, strings.Join(o.runLines(r), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHistorySaysWhoAnswered(t *testing.T) {
	entry := plan.Entry{Run: "maint-run-p-x"}
	approved, rejected := aRunOf(), aRunOf()
	approved.journal.Phase, approved.journal.FinishedAt, approved.journal.Approved = plan.RunSucceeded, before(0), &plan.Actor{Name: "jane"}
	rejected.journal = plan.Journal{Phase: plan.RunAborted, End: &plan.End{Reason: plan.ReasonRejected, Message: "rejected by joe (unverified): no"}}
	for want, r := range map[string]aRun{"Succeeded after 60m0s, approved by jane (unverified)": approved, "Aborted, rejected by joe (unverified): no": rejected, "Running": aRunOf()} {
		if got := outcome(entry, []aRun{r}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
