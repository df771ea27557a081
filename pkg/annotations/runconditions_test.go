package annotations

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestARunSaysAsConditionsWhetherItWasApprovedAndHowItEnded(t *testing.T) {
	created := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)
	ended := created.Add(time.Hour)
	ann := &intent.Actor{Name: "ann", Reason: "looked at", At: created.Add(time.Minute), Verified: true}
	const ready = `{"type":"Succeeded","status":"True","lastTransitionTime":"2026-12-01T03:00:00Z","reason":"Succeeded","message":"2 steps"}`
	for name, c := range map[string]struct {
		journal run.Journal
		want    string
	}{
		"waits for a window": {run.Journal{Phase: run.Pending, Waiting: run.WaitWindow, Message: "closed"}, ""},
		"works":              {run.Journal{Phase: run.Running}, ""},
		"waits for approval": {
			run.Journal{Phase: run.Pending, Waiting: run.WaitApproval, Message: "waits for approval"},
			`[{"type":"Approved","status":"False","lastTransitionTime":"2026-12-01T02:00:00Z","reason":"NotYet","message":"waits for approval"}]`,
		},
		"works, approved": {
			run.Journal{Phase: run.Running, Approved: ann},
			`[{"type":"Approved","status":"True","lastTransitionTime":"2026-12-01T02:01:00Z","reason":"Approved","message":"approved by ann: looked at"}]`,
		},
		"succeeded": {run.Journal{Phase: run.Succeeded, FinishedAt: &ended, Message: "2 steps"}, "[" + ready + "]"},
		"succeeded, approved": {
			run.Journal{Phase: run.Succeeded, FinishedAt: &ended, Message: "2 steps", Approved: ann},
			`[{"type":"Approved","status":"True","lastTransitionTime":"2026-12-01T02:01:00Z","reason":"Approved","message":"approved by ann: looked at"},` + ready + "]",
		},
		"failed": {
			run.Journal{Phase: run.Failed, FinishedAt: &ended, Message: "step one: gone"},
			`[{"type":"Succeeded","status":"False","lastTransitionTime":"2026-12-01T03:00:00Z","reason":"Failed","message":"step one: gone"}]`,
		},
		"rejected": {
			run.Journal{Phase: run.Aborted, FinishedAt: &ended, Message: "rejected by ann", End: &run.End{Reason: run.ReasonRejected}},
			`[{"type":"Approved","status":"False","lastTransitionTime":"2026-12-01T03:00:00Z","reason":"Rejected","message":"rejected by ann"},` +
				`{"type":"Succeeded","status":"False","lastTransitionTime":"2026-12-01T03:00:00Z","reason":"Aborted","message":"rejected by ann"}]`,
		},
	} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "maint-run-x", CreationTimestamp: metav1.NewTime(created), Labels: map[string]string{LabelKind: KindRun},
			Annotations: map[string]string{StatusConditions: "of another journal"},
		}}
		out, err := WithJournal(cm, c.journal)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := out.Annotations[StatusConditions]; got != c.want {
			t.Errorf("%s: the conditions are\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
