package annotations

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// runConditions are what a run's journal says as conditions: Approved where somebody is asked to
// approve the run, or was, and Succeeded once it has ended. Empty where there is nothing to say.
func runConditions(created metav1.Time, j run.Journal) (string, error) {
	var out []metav1.Condition
	switch rejected := j.End != nil && j.End.Reason == run.ReasonRejected; {
	case j.Approved != nil:
		out = append(out, metav1.Condition{
			Type: "Approved", Status: metav1.ConditionTrue, Reason: "Approved", LastTransitionTime: metav1.NewTime(j.Approved.At.UTC()),
			Message: j.Approved.Said("approved"),
		})
	case rejected:
		out = append(out, metav1.Condition{Type: "Approved", Status: metav1.ConditionFalse, Reason: "Rejected", Message: j.Message})
	case j.Phase == run.Pending && j.Waiting == run.WaitApproval:
		out = append(out, metav1.Condition{Type: "Approved", Status: metav1.ConditionFalse, Reason: "NotYet", Message: j.Message})
	}
	if j.Phase.Ended() {
		succeeded := metav1.Condition{Type: "Succeeded", Status: metav1.ConditionFalse, Reason: string(j.Phase), Message: j.Message}
		if j.Phase == run.Succeeded {
			succeeded.Status = metav1.ConditionTrue
		}
		out = append(out, succeeded)
	}
	if len(out) == 0 {
		return "", nil
	}
	for i := range out {
		out[i].Message = document.Cut(out[i].Message, document.MaxMessage)
		switch {
		case !out[i].LastTransitionTime.IsZero():
		case j.FinishedAt != nil:
			out[i].LastTransitionTime = metav1.NewTime(j.FinishedAt.UTC())
		default:
			out[i].LastTransitionTime = created
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("write conditions: %w", err)
	}
	return string(b), nil
}
