package run_test

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestTheStepAtWork(t *testing.T) {
	j := run.Journal{Phase: run.Running, Steps: []run.Record{
		{Path: "dump", Type: "webhook", Phase: run.StepSucceeded}, {Path: "ask", Type: "approval", Phase: run.StepRunning}, {Path: "switch", Type: "webhook", Phase: run.StepPending},
	}}
	if got := run.ProgressOf(j).AtWork(); got != "ask 2/3" {
		t.Errorf("%q", got)
	}
	if got := run.ProgressOf(run.Journal{}).AtWork(); got != "" {
		t.Errorf("of nothing %q", got)
	}
}

func TestWhatSuspendsARun(t *testing.T) {
	of := func(edit func(*run.Journal)) run.Journal {
		j := run.Journal{Phase: run.Running, Steps: []run.Record{{Path: "a", Type: "webhook", Phase: run.StepRunning}}}
		edit(&j)
		return j
	}
	at := time.Now()
	for name, c := range map[string]struct {
		edit func(*run.Journal)
		want bool
	}{
		"a step at work":       {func(*run.Journal) {}, false},
		"a suspend":            {func(j *run.Journal) { j.Steps[0].Type = "suspend" }, true},
		"one that was resumed": {func(j *run.Journal) { j.Steps[0].Type, j.Steps[0].Resumed = "suspend", &intent.Actor{} }, false},
		"an approval":          {func(j *run.Journal) { j.Steps[0].Type = "approval" }, true},
		"a pause or a window":  {func(j *run.Journal) { j.HeldSince = &at }, true},
		"not once it ends":     {func(j *run.Journal) { j.HeldSince, j.End = &at, &run.End{} }, false},
		"not before it begins": {func(j *run.Journal) { j.HeldSince, j.Phase = &at, run.Pending }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := of(c.edit).Suspended(); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}
