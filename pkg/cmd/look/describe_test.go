package look

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestDescribeTellsWhatSurroundsARun(t *testing.T) {
	fast := "fast"
	r := cmdtest.RunOf(cmdtest.Record("patch", "patch-object", run.StepSucceeded, cmdtest.Outputs(map[string]any{"difference": "- replicas: 1\n+ replicas: 2\n"}), func(rec *run.Record) {
		rec.Changed = []run.Change{{Kind: "Deployment", Name: "orders", What: "spec.replicas"}}
	}))
	r.Run.Request = run.Request{Kind: run.ByToken, At: *cmdtest.Before(2 * time.Hour), Actor: "joe", Reason: "CHG-2", DryRun: true, Parameters: map[string]string{"size": "2"}}
	r.Run.Spec = plan.Spec{RetryLimit: 3, Parameters: []plan.Parameter{{Name: "mode", Default: &fast}, {Name: "size"}, {Name: "unset"}}}
	r.Journal.Approved = &intent.Actor{Name: "jane", Reason: "CHG-1", At: *cmdtest.Before(time.Hour)}
	r.Journal.Passed = &intent.Actor{Name: "ops", Reason: "urgent"}
	r.Journal.Retries = 1
	o := &describeOptions{Factory: &factory.Factory{Env: factory.Env{Now: cmdtest.Now, Zone: "Europe/Berlin"}}}
	want := `Run:         maint-run-p-x in namespace shop
Plan:        p
Phase:       Running (dry run) for 1h0m, 1 of 1 steps done
Asked by:    joe (unverified; reason: CHG-2)
Asked for:   Fri 2026-11-20 23:00 CET (2026-11-20T22:00:00Z)
Runs as:     ServiceAccount maint-runner
Parameters:  mode=fast, size=2
Approved:    Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z) by jane (unverified): CHG-1
Gate:        closed; let through by ops (unverified): urgent
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
