package view_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// said is a run in which everything that somebody did is said to be known.
func said(phase run.Phase) view.Run {
	jane := func() *intent.Actor { return &intent.Actor{Name: "jane", Verified: true} }
	asked := cmdtest.Record("ask", "approval", run.StepSucceeded)
	asked.Approval, asked.Resumed, asked.Drift = &run.Approval{Actor: *jane(), Approved: true}, jane(), &run.Drift{Accepted: jane()}
	r := cmdtest.RunOf(asked, cmdtest.Record("plain", "suspend", run.StepSucceeded))
	r.Run.Request.Verified, r.Journal.Phase, r.Journal.Approved, r.Journal.Passed, r.Journal.Message = true, phase, jane(), jane(), "done"
	r.Journal.End = &run.End{Phase: run.Aborted, By: jane()}
	return r
}

func count(verified []*bool) (n int) {
	for _, v := range verified {
		if *v {
			n++
		}
	}
	return n
}

// What a tenant made up is no run of the agent's: one that lives is left alone, and of one
// that has ended nobody is known to have done anything.
func TestWhatTheAgentCannotHaveWritten(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*corev1.ConfigMap)
		why  string
	}{
		"as the agent writes it": {func(*corev1.ConfigMap) {}, ""},
		"without a signature":    {func(cm *corev1.ConfigMap) { delete(cm.Annotations, annotations.StatusSignature) }, "no signature"},
		"with something else":    {func(cm *corev1.ConfigMap) { cm.Annotations[annotations.StatusSignature] = "signed, jane" }, "cannot be read"},
		"changed since":          {func(cm *corev1.ConfigMap) { cm.Data["more"] = "x" }, "changed after"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, phase := range []run.Phase{run.Pending, run.Running} {
				cm := cmdtest.RunObject(said(phase), "maint-run-orders-a")
				c.edit(cm)
				if _, err := view.ReadRun(cm); (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
					t.Errorf("one that is %s: %v", phase, err)
				}
			}
			cm := cmdtest.RunObject(said(run.Succeeded), "maint-run-orders-a")
			c.edit(cm)
			r, err := view.ReadRun(cm)
			if err != nil {
				t.Fatal(err)
			}
			if known := count(r.Verified()); c.why == "" && (known != 7 || r.Journal.Message != "done") {
				t.Errorf("of one that the agent wrote %d are known, and it says %q", known, r.Journal.Message)
			} else if c.why != "" && (known != 0 || !strings.Contains(r.Journal.Message, "not known to be the agent's record") || !strings.HasSuffix(r.Journal.Message, "; done")) {
				t.Errorf("of one that has ended %d are known, and it says %q", known, r.Journal.Message)
			}
		})
	}
}

func TestWhoIsKnownInALedger(t *testing.T) {
	l := ledger.Ledger{
		Open:   []ledger.Entry{{Request: &run.Request{Verified: true}}, {}},
		Recent: []ledger.Entry{{Outcome: &ledger.Outcome{Overrides: []ledger.Override{{Verified: true}, {}}}}},
	}
	places := view.LedgerVerified(&l)
	if count(places) != 2 || len(places) != 3 {
		t.Errorf("it finds %d of %d", count(places), len(places))
	}
	view.Doubt(places)
	if l.Open[0].Request.Verified || l.Recent[0].Outcome.Overrides[0].Verified {
		t.Error("they are still known")
	}
}
