package watchrule_test

import (
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// clock reads "02:30" as an instant of the tests' day, 5 December 2026, a
// Saturday; "+1 02:30" is the day after.
func clock(text string) time.Time {
	day := 5
	if rest, ok := strings.CutPrefix(text, "+1 "); ok {
		day, text = 6, rest
	}
	layout := "15:04"
	if strings.Count(text, ":") == 2 {
		layout = "15:04:05"
	}
	at, err := time.Parse(layout, text)
	if err != nil {
		panic(err)
	}
	return time.Date(2026, 12, day, at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
}

func on(text string) *time.Time {
	at := clock(text)
	return &at
}

// facts are those of a plan that was made at midnight, is known since, and has
// nothing to do: every edit is what a case differs in.
func facts(now string, edits ...func(*trigger.Facts)) trigger.Facts {
	spec := plan.Spec{Steps: []plan.Step{{Name: "pause", Type: "suspend"}}}.Defaulted()
	f := trigger.Facts{
		Now: clock(now), LookingSince: clock("00:00"), Namespace: "shop", Name: "orders", UID: "uid",
		CreatedAt: clock("00:00"), EditedAt: clock("00:00"), Spec: spec, Ready: trigger.Readiness{OK: true},
		Ledger: &ledger.Ledger{PlanUID: "uid", Watermark: clock("00:00"), Created: true},
		NameOf: nameOf,
	}
	for _, edit := range edits {
		edit(&f)
	}
	if f.Ledger != nil && f.Ledger.Schedules == nil {
		f.Ledger.Schedules = f.Spec.Triggers.Schedules
	}
	return f
}

func nameOf(r run.Request) string { return strings.TrimPrefix(r.Identity("uid"), "uid|") }

type edit = func(*trigger.Facts)

func skip(s intent.Skip) edit { return func(f *trigger.Facts) { f.Intent.Skip = s } }

func paused(s schedule.Pause) edit { return func(f *trigger.Facts) { f.Intent.Pause = s } }

func notReady(reason string) edit {
	return func(f *trigger.Facts) { f.Ready = trigger.Readiness{Reason: reason, Message: "not yet"} }
}
