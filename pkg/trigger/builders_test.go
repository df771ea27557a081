package trigger_test

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func newRun(edits ...func(*plan.Spec)) run.Run {
	s := plan.Spec{Steps: []plan.Step{{Name: "a", Type: "webhook"}, {Name: "b", Type: "webhook"}, {Name: "c", Type: "webhook"}}}
	for _, e := range edits {
		e(&s)
	}
	return run.Run{Name: "r", Namespace: "shop", Plan: "orders", PlanUID: "uid", Request: slotAt("02:00"), Spec: s.Defaulted()}
}

func record(j run.Journal, path string) run.Record {
	for _, r := range j.Steps {
		if r.Path == path {
			return r
		}
	}
	return run.Record{}
}

func repeat(line func(int) string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = line(i)
	}
	return out
}
