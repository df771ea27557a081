package coretest

import (
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// Edit is what a case's facts differ in from those that have nothing to do.
type Edit = func(*trigger.Facts)

// Facts are those of a plan that was made at midnight, is known since, and has
// nothing to do.
func Facts(now string, edits ...Edit) trigger.Facts {
	spec := plan.Spec{Steps: []plan.Step{{Name: "pause", Type: "suspend"}}}.Defaulted()
	f := trigger.Facts{
		Now: Clock(now), LeadingSince: Clock("00:00"), Plan: trigger.Plan{
			Namespace: "shop", Name: "orders", UID: "uid",
			CreatedAt: Clock("00:00"), EditedAt: Clock("00:00"), Spec: spec,
		}, Ready: trigger.Readiness{OK: true},
		State:  trigger.State{Ledger: &ledger.Ledger{PlanUID: "uid", Watermark: Clock("00:00"), Created: true}},
		NameOf: NameOf,
	}
	for _, edit := range edits {
		edit(&f)
	}
	if f.State.Ledger != nil && f.State.Ledger.Schedules == nil {
		f.State.Ledger.Schedules = f.Plan.Spec.Triggers.Schedules
	}
	return f
}

// NameOf names a run after what asked for it.
func NameOf(r run.Request) string { return strings.TrimPrefix(r.Identity("uid"), "uid|") }

// Skip has a user skip slots.
func Skip(s intent.Skip) Edit { return func(f *trigger.Facts) { f.Plan.Intent.Skip = s } }

// Paused has a user pause the plan.
func Paused(s schedule.Pause) Edit { return func(f *trigger.Facts) { f.Plan.Intent.Pause = s } }

// NotReady is a plan that cannot run now.
func NotReady(reason string) Edit {
	return func(f *trigger.Facts) { f.Ready = trigger.Readiness{Reason: reason, Message: "not yet"} }
}
