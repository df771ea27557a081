package ledger_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// claimed is a ledger with one open entry, whose run is run-1.
func claimed() ledger.Ledger {
	return ledger.Ledger{PlanUID: "uid"}.Claim("run-1", coretest.SlotAt("02:00"), "")
}

func TestARunThatWasTakenAwayWhileNobodyLookedIsNotMadeAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		started bool
		result  run.Result
		reason  string
		last    run.Phase
		left    int
	}{
		{"its first step had begun: it ran, and nobody knows how far", true, run.Ran, "schedule", run.Aborted, 1},
		{"it had not begun: taking it away was an abort", false, run.Skipped, run.ReasonAborted, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := claimed()
			started := coretest.On("02:00")
			if !c.started {
				started = nil
			}
			l = l.Taken(l.Open[0], started, coretest.Clock("02:30"))
			if len(l.Open) != 0 || len(l.Recent) != 1 || l.Recent[0].Result != c.result || l.Recent[0].Reason != c.reason || len(l.Left) != c.left {
				t.Errorf("open %d, entry %+v, left %+v", len(l.Open), l.Recent, l.Left)
			}
			if c.last != "" && (l.Last == nil || l.Last.Phase != c.last || l.Last.Name != "run-1") {
				t.Errorf("last %+v", l.Last)
			}
			if again := l.Taken(ledger.Entry{Run: "run-1"}, started, coretest.Clock("02:31")); len(again.Recent) != 1 {
				t.Errorf("closed twice: %+v", again.Recent)
			}
		})
	}
}

// left is the ledger after a run whose steps could not be put back.
func left(paths ...string) ledger.Ledger {
	l := claimed()
	r := coretest.NewRun()
	r.Name = "run-1"
	j := run.Journal{Phase: run.Running, StartedAt: coretest.On("02:00"), End: &run.End{Phase: run.Aborted}}
	for _, path := range paths {
		j.Steps = append(j.Steps, run.Record{Path: path, Type: "scale", Phase: run.StepSucceeded, Before: []byte(`{"uid":"u"}`), Restored: run.RestoreFailed, RestoreMessage: "spec.replicas of Deployment/orders stays 0, was 7: forbidden"})
	}
	return l.Finish(r, j, coretest.Clock("02:30"))
}

func TestWhatARunDidNotPutBackIsKeptUntilSomebodyKnowsOrItIsAsItWas(t *testing.T) {
	l := left("a", "b")
	message := l.LeftMessage()
	for _, want := range []string{"run run-1, step a", "spec.replicas of Deployment/orders stays 0, was 7: forbidden", "and 1 more", "kubectl maint resume run-1"} {
		if !strings.Contains(message, want) {
			t.Errorf("%q lacks %q", message, want)
		}
	}
	if l = l.PutBack("run-1", "a"); len(l.Left) != 1 || l.Left[0].Step != "b" {
		t.Errorf("after one is as it was: %+v", l.Left)
	}
	f := trigger.Facts{
		Now: coretest.Clock("03:00"), LookingSince: coretest.Clock("01:00"), Namespace: "shop", Name: "orders", UID: "uid", CreatedAt: coretest.Clock("01:00"), Spec: coretest.NewRun().Spec,
		Ready: trigger.Readiness{OK: true}, Ledger: &l, NameOf: func(run.Request) string { return "x" }, Intent: intent.Intent{Resume: intent.RunRef{Run: "another"}}, ResumeSeen: coretest.Clock("02:45"),
	}
	f.Ledger.Watermark = coretest.Clock("02:59")
	if d := trigger.Decide(f); len(d.Ledger.Left) != 1 {
		t.Errorf("another run's resume acknowledges it: %+v", d.Ledger.Left)
	}
	f.Intent.Resume.Run, f.ResumeSeen = "run-1", coretest.Clock("02:29")
	if d := trigger.Decide(f); len(d.Ledger.Left) != 1 {
		t.Errorf("a resume that was meant for the run's suspend acknowledges what it left: %+v", d.Ledger.Left)
	}
	f.ResumeSeen = coretest.Clock("02:31")
	d := trigger.Decide(f)
	if !d.Changed || len(d.Ledger.Left) != 0 || d.Ledger.LeftMessage() != "" {
		t.Errorf("acknowledged: changed %t, %+v", d.Changed, d.Ledger.Left)
	}
	if diff := cmp.Diff(1, len(l.Left)); diff != "" {
		t.Errorf("the ledger that was decided on changed (-want +got):\n%s", diff)
	}
}

func TestWhatIsLeftIsBounded(t *testing.T) {
	paths := coretest.Repeat(func(i int) string { return "s" + strings.Repeat("x", i) }, 25)
	l := left(paths...)
	if len(l.Left) != 10 || !strings.Contains(l.Left[9].Message, "and 15 more of this run") {
		t.Errorf("%d: %+v", len(l.Left), l.Left)
	}
}

func TestWhatATornRunLeavesIsOnlyWhatItWouldHaveDoneAtItsEnd(t *testing.T) {
	const scale = "{name: s, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0"
	before := []byte(`{"uid":"u"}`)
	for _, c := range []struct {
		name, spec string
		kind       string
		before     []byte
		want       []string
	}{
		{"a step that puts back", "steps: [" + scale + ", restoreAfter: true}}]", "scale", before, []string{"s"}},
		{"a step that only remembers what it found", "steps: [" + scale + "}}]", "scale", before, nil},
		{"nothing begun, nothing to clean up", "steps: [" + coretest.Hook("s") + "]", "webhook", nil, nil},
		{"a cleanup that did not run", "steps: [" + coretest.Hook("s") + "]\nfinally: [" + coretest.Hook("f") + "]", "webhook", nil, []string{""}},
		{"a node that it cordoned", "steps: [{name: s, type: cordon, properties: {node: n}}]", plan.TypeCordon, nil, []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := coretest.RunOf(t, c.spec)
			r.Name = "run-1"
			j := run.Journal{Phase: run.Running, StartedAt: coretest.On("02:00"), End: &run.End{Phase: run.Aborted, Reason: run.TornAway}}
			j.Steps = []run.Record{{Path: "s", Type: c.kind, Phase: run.StepSucceeded, Before: c.before}}
			var got []string
			for _, left := range claimed().Finish(r, j, coretest.Clock("02:30")).Left {
				got = append(got, left.Step)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
