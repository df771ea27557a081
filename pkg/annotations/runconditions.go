package annotations

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// runConditions are what a run's journal says as conditions: Approved where somebody is asked to
// approve the run, or was, and Succeeded once it has ended. Empty where there is nothing to say.
func runConditions(created time.Time, j run.Journal) (string, error) {
	var out []metav1.Condition
	say := func(kind, reason, message string, is bool, at time.Time) {
		status := map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[is]
		out = append(out, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: document.Cut(document.OneLine(message), document.MaxMessage), LastTransitionTime: metav1.NewTime(at.UTC())})
	}
	ended := created
	if j.FinishedAt != nil {
		ended = *j.FinishedAt
	}
	switch {
	case j.Approved != nil:
		say("Approved", "Approved", j.Approved.Said("approved"), true, j.Approved.At)
	case j.End != nil && j.End.Reason == run.ReasonRejected:
		say("Approved", "Rejected", j.Message, false, ended)
	case j.Phase == run.Pending && j.Waiting == run.WaitApproval:
		say("Approved", "NotYet", j.Message, false, created)
	}
	if j.Phase.Ended() {
		say("Succeeded", string(j.Phase), j.Message, j.Phase == run.Succeeded, ended)
	}
	if len(out) == 0 {
		return "", nil
	}
	b, err := json.Marshal(out)
	return string(b), err
}
