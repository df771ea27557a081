package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestWhatSomebodyAnsweredAndNoAgentHasTakenUp(t *testing.T) {
	const name = "maint-run-p-x"
	hold := func(rec *run.Record) { rec.ResumeAt = cmdtest.After(time.Hour) }
	asks := func() view.Run { return cmdtest.AskingOf(cmdtest.Asking("ask"), cmdtest.Asking("g/sure")) }
	suspended := func() view.Run { return cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning, hold)) }
	but := func(r view.Run, edit func(*view.Run)) view.Run {
		edit(&r)
		return r
	}
	deleted := func(r *view.Run) { r.Deleted = *cmdtest.Before(time.Hour) }
	by := func(key, value string) map[string]string {
		return map[string]string{key: value, annotations.Actor(key): "jane", annotations.Reason(key): "CHG-4"}
	}
	const taken = " by jane (unverified): CHG-4; no agent has taken that up yet"
	for _, c := range []struct {
		name  string
		run   view.Run
		notes map[string]string
		said  string
		open  []string
	}{
		{"nothing is said", cmdtest.PendingRun(), nil, "", []string{name}},
		{"a run is approved", cmdtest.PendingRun(), by(annotations.Approve, name), "approved" + taken, nil},
		{"a run is rejected", cmdtest.PendingRun(), by(annotations.Reject, name), "rejected" + taken, nil},
		{"another run is approved", cmdtest.PendingRun(), by(annotations.Approve, name+"y"), "", []string{name}},
		{"a step of a run that asks itself is approved", cmdtest.PendingRun(), by(annotations.Approve, name+"/ask"), "", []string{name}},
		{"what the agent has taken up", but(cmdtest.PendingRun(), func(r *view.Run) { r.Journal.Approved = &intent.Actor{Name: "jane"} }), by(annotations.Approve, name), "", nil},
		{"a step is approved", asks(), by(annotations.Approve, name+"/ask"), "step ask: approved" + taken, []string{name + "/g/sure"}},
		{"a step is rejected by its name alone", asks(), by(annotations.Reject, name+"/sure"), "step g/sure: rejected" + taken, []string{name + "/ask"}},
		{"the run is approved, of which steps ask", asks(), by(annotations.Approve, name), "", []string{name + "/ask", name + "/g/sure"}},
		{"a run is aborted, and asks nobody any more", asks(), by(annotations.Abort, name), "aborted" + taken, nil},
		{"an abort that is at work", but(asks(), func(r *view.Run) { r.Journal.End = &run.End{Phase: run.Aborted} }), by(annotations.Abort, name), "", []string{name + "/ask", name + "/g/sure"}},
		{"a suspend is resumed", suspended(), by(annotations.Resume, name), "resumed" + taken, nil},
		{"nothing is there to resume", cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepRunning)), by(annotations.Resume, name), "", nil},
		{"it was deleted", but(asks(), deleted), by(annotations.Approve, name), "being aborted: it was deleted at 2026-11-20T23:00:00Z; no agent has taken that up yet", nil},
		{"it was deleted, and the agent is ending it", but(suspended(), func(r *view.Run) {
			deleted(r)
			r.Journal.End = &run.End{Phase: run.Aborted}
		}), nil, "", nil},
		{"it has ended", but(suspended(), func(r *view.Run) { r.Journal.Phase = run.Succeeded }), by(annotations.Abort, name), "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run.Run.PlanUID = "u-p"
			got := view.Answered(c.run, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u-p", Annotations: c.notes}})
			if got.AnswersSaid() != c.said {
				t.Errorf("%q, want %q", got.AnswersSaid(), c.said)
			}
			if diff := cmp.Diff(c.open, view.Questions(got)); diff != "" {
				t.Errorf("what is still asked (-want +got):\n%s", diff)
			}
			other := view.Answered(c.run, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u-other", Annotations: c.notes}})
			if other.AnswersSaid() != "" && c.run.Deleted.IsZero() {
				t.Errorf("another plan of that name: %q", other.AnswersSaid())
			}
		})
	}
}
