package workflow_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// pending is a run that waits for its start, and standing what surrounds it:
// everything is in order, and a case shows what is not.
func pending(r run.Request) run.Run {
	return run.Run{Name: "r", Namespace: "shop", Plan: "orders", PlanUID: "uid", Request: r, Spec: plan.Spec{}.Defaulted()}
}

func standing(now string, edits ...func(*trigger.AdmissionFacts)) trigger.AdmissionFacts {
	s := trigger.AdmissionFacts{Now: clock(now), EntryOpen: true}
	for _, e := range edits {
		e(&s)
	}
	return s
}

// verdictOf is an admission in a word.
func verdictOf(a trigger.Admission) string {
	switch {
	case a.Start:
		return "start"
	case a.Void:
		return "void"
	case a.Ends():
		return fmt.Sprintf("%s(%s)", a.Result, a.Reason)
	}
	got := "wait " + a.Waiting
	if !a.Until.IsZero() {
		got += " until " + a.Until.Format("15:04:05")
	}
	return got
}

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

func duration(text string) *document.Duration {
	d, err := document.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return &d
}

func slotAt(t string) run.Request {
	return run.Request{Kind: run.BySchedule, Slot: on(t), Local: clock(t).Format(time.RFC3339) + "[UTC]", At: clock(t)}
}

func repeat(line func(int) string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = line(i)
	}
	return out
}
