package cmdtest

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// AskingOf is a running run whose records may ask for approval.
func AskingOf(records ...run.Record) view.Run { return RunOf(records...) }

// Asking is the record of an approval that waits.
func Asking(path string) run.Record { return Record(path, plan.TypeApproval, run.StepRunning) }

// PendingRun waits for approval before it begins.
func PendingRun(edits ...func(*view.Run)) view.Run {
	r := RunOf(Record("ask", plan.TypeApproval, run.StepPending))
	r.Journal.Phase, r.Journal.StartedAt, r.Run.Spec.RequiresApproval = run.Pending, nil, true
	for _, edit := range edits {
		edit(&r)
	}
	return r
}

// ErrText is what an error says; empty for none.
func ErrText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Now is the time in tests.
func Now() time.Time { return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) }

// Before is an instant so long before the tests' now.
func Before(d time.Duration) *time.Time {
	at := Now().Add(-d)
	return &at
}

// After is an instant so long after the tests' now.
func After(d time.Duration) *time.Time { return Before(-d) }

// RunOf is a running run with the given records.
func RunOf(records ...run.Record) view.Run {
	return view.Run{
		Run:     run.Run{Name: "maint-run-p-x", Namespace: "shop", Plan: "p"},
		Journal: run.Journal{Phase: run.Running, StartedAt: Before(time.Hour), Steps: records},
	}
}

// Record is the record of a step in a phase; if it has begun, a minute ago.
func Record(path, kind string, phase run.StepPhase, edits ...func(*run.Record)) run.Record {
	rec := run.Record{Path: path, Type: kind, Phase: phase, Attempt: 1}
	if phase != run.StepPending && phase != run.StepSkipped {
		rec.StartedAt = Before(time.Minute)
	}
	if phase.Ended() && rec.StartedAt != nil {
		rec.FinishedAt = Before(time.Minute - 5*time.Second)
	}
	for _, edit := range edits {
		edit(&rec)
	}
	return rec
}

// Message has a record say something.
func Message(text string) func(*run.Record) {
	return func(rec *run.Record) { rec.Message = text }
}

// Outputs are what the step gave.
func Outputs(values map[string]any) func(*run.Record) {
	return func(r *run.Record) { r.Outputs = values }
}

// Looping has a record hold items.
func Looping(items ...run.Item) func(*run.Record) {
	return func(rec *run.Record) { rec.Listed, rec.Items = true, items }
}
