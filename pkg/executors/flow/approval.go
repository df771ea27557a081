package flow

import (
	"context"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Approver executes the step type approval: it holds the run until somebody approves or rejects, or
// its time is over. It needs no right: whoever may annotate the plan may answer.
type Approver struct{}

// Pass reads the answer from the journal. The end of the wait is recorded as an instant before the
// wait begins.
func (Approver) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.ApprovalProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	limit := p.Timeout.Or(plan.DefaultApprovalTimeout)
	switch answer := call.Recorded.Approval; {
	case call.DryRun:
		return executors.Outcome{State: executors.Done, Message: "dry run: would ask for approval"}
	case answer != nil && answer.Approved:
		return executors.Outcome{State: executors.Done, Reason: "Approved", Message: answer.Said("approved"), Outputs: said(answer)}
	case answer != nil:
		return executors.Refuse("Rejected", "%s", answer.Said("rejected"))
	case call.Recorded.ResumeAt == nil:
		at := call.Now.Add(limit).UTC()
		return executors.Outcome{State: executors.Record, ResumeAt: &at, Message: asks(call, p, at)}
	case call.Now.Before(*call.Recorded.ResumeAt):
		return executors.Outcome{State: executors.NotYet, Reason: "Waiting", WakeAt: *call.Recorded.ResumeAt, Message: asks(call, p, *call.Recorded.ResumeAt)}
	}
	return executors.Refuse("ApprovalExpired", "nobody approved or rejected until %s", call.Recorded.ResumeAt.Format(time.RFC3339))
}

func said(a *run.Approval) map[string]any {
	return map[string]any{"by": a.Name, "reason": a.Reason, "verified": a.Verified}
}

func asks(call executors.Call, p *plan.ApprovalProperties, until time.Time) string {
	text := "waits for approval until " + until.Format(time.RFC3339)
	if p.Message != "" {
		text += ": " + p.Message
	}
	command := " (" + intent.Command(call.Plan.Namespace, "approve", call.Run+"/"+call.Path) + ")"
	return document.Cut(text, document.MaxMessage-len(command)) + command
}
