package coretest

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// SlotAt is the request of a schedule's slot.
func SlotAt(t string) run.Request {
	return run.Request{Kind: run.BySchedule, Slot: On(t), Local: Clock(t).Format(time.RFC3339) + "[UTC]", At: Clock(t)}
}

// NewRun is a run at 02:00 of a plan with three webhooks, a, b and c; an edit is what a
// case differs in.
func NewRun(edits ...func(*plan.Spec)) run.Run {
	s := plan.Spec{Steps: []plan.Step{{Name: "a", Type: "webhook"}, {Name: "b", Type: "webhook"}, {Name: "c", Type: "webhook"}}}
	for _, e := range edits {
		e(&s)
	}
	return of(s)
}

// RunOf is a run at 02:00 of a plan as it is written.
func RunOf(t testing.TB, spec string) run.Run {
	t.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
	parsed, faults := plan.Parse([]byte(text), "orders")
	if len(faults) > 0 {
		t.Fatalf("%s\nof\n%s", faults.Error(), text)
	}
	return of(parsed)
}

func of(s plan.Spec) run.Run {
	return run.Run{Name: "r", Namespace: "shop", Plan: "orders", PlanUID: "uid", Request: SlotAt("02:00"), Spec: s.Defaulted()}
}

// Hook is a valid webhook step in one line of YAML, with more of its fields.
func Hook(name string, more ...string) string {
	return "{name: " + name + ", type: webhook, properties: {url: 'https://example.org'}" + strings.Join(append([]string{""}, more...), ", ") + "}"
}

// Record is what a journal holds of a step; empty if that is nothing.
func Record(j run.Journal, path string) run.Record {
	for _, r := range j.Steps {
		if r.Path == path {
			return r
		}
	}
	return run.Record{}
}
