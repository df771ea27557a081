package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
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

func slotAt(t string) run.Request {
	return run.Request{Kind: run.BySchedule, Slot: on(t), Local: clock(t).Format(time.RFC3339) + "[UTC]", At: clock(t)}
}

// runOf is a run of a plan as it is written, at 02:00.
func runOf(t testing.TB, spec string) run.Run {
	t.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
	parsed, faults := plan.Parse([]byte(text), "orders")
	if len(faults) > 0 {
		t.Fatalf("%s\nof\n%s", faults.Error(), text)
	}
	return run.Run{Name: "r", Namespace: "shop", Plan: "orders", PlanUID: "uid", Request: slotAt("02:00"), Spec: parsed.Defaulted()}
}
