// Package flow holds the executors that hold up a run, or list what its loops take, and change nothing
// outside of it.
package flow

import (
	"context"
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Suspender executes the step type suspend: it holds the run for a while, or
// until somebody resumes it, whichever comes first. It needs no right.
type Suspender struct{}

// Pass compares the recorded end with the call's instant. The end is recorded as an instant before
// the wait begins, so that neither a crash nor a slow pass moves it.
func (Suspender) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.SuspendProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	switch {
	case call.DryRun:
		return executors.Outcome{State: executors.Done, Message: "dry run: would hold the run " + holding(p)}
	case call.Recorded.Resumed:
		return executors.Outcome{State: executors.Done, Reason: "Resumed", Message: "resumed"}
	case p.Duration == nil:
		return executors.Outcome{State: executors.NotYet, Reason: "Suspended", Message: "held until somebody resumes it: " + intent.Command(call.Plan.Namespace, "resume", call.Run)}
	case call.Recorded.ResumeAt == nil:
		at := call.Now.Add(p.Duration.Duration).UTC()
		return executors.Outcome{State: executors.Record, ResumeAt: &at, Message: "held until " + at.Format(time.RFC3339)}
	case call.Now.Before(*call.Recorded.ResumeAt):
		return executors.Outcome{State: executors.NotYet, Reason: "Suspended", WakeAt: *call.Recorded.ResumeAt, Message: "held until " + call.Recorded.ResumeAt.Format(time.RFC3339)}
	}
	return executors.Outcome{State: executors.Done, Message: fmt.Sprintf("held for %s", p.Duration)}
}

func holding(p *plan.SuspendProperties) string {
	if p.Duration == nil {
		return "until somebody resumes it"
	}
	return "for " + p.Duration.String()
}
