package trigger

import (
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Unstarted are the claims of a ledger that no run stands for: those made just now,
// and those whose run nobody lived to create.
func Unstarted(l ledger.Ledger, live []ActiveRun) []ledger.Entry {
	var out []ledger.Entry
	for _, e := range l.Open {
		if e.Request != nil && !slices.ContainsFunc(live, func(r ActiveRun) bool { return r.Name == e.Run }) {
			out = append(out, e)
		}
	}
	return out
}

// NewRun is the run of a claim: the plan as it is now, with the templates that it
// names. The object whose change asked for it is for the caller to add.
func (f Facts) NewRun(e ledger.Entry, templates map[string]plan.TemplateSpec) run.Run {
	r := run.Run{
		APIVersion: document.APIVersion, Kind: "Run", Name: e.Run, Namespace: f.Plan.Namespace, Plan: f.Plan.Name, PlanUID: f.Plan.UID,
		Request: *e.Request, TargetUID: e.TargetUID, Spec: plan.Tree{Spec: f.Plan.Spec, Templates: templates}.Defaulted(), Templates: templates,
	}
	r.Request.Body = nil // it stands in Watched
	return r
}

// Admitted is the journal of a pending run after the answer: it ends, is approved,
// starts, or says what it waits for. Of a run that is void it stays as it is.
func Admitted(j run.Journal, a Admission, now time.Time) run.Journal {
	switch {
	case a.Void:
	case a.Ends():
		j = j.EndUnstarted(run.End{Phase: run.Aborted, Result: a.Result, Reason: a.Reason, Message: a.Message, Said: a.Said, By: a.By}, now)
	case a.Approve != nil:
		j.Approved, j.Waiting, j.Message = a.Approve, "", a.Approve.Said("approved")
	case a.Start:
		j = j.Start(now)
	default:
		j.Waiting, j.Message = a.Waiting, a.Message
	}
	return j
}
