package run_test

import (
	"slices"
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

func TestTheOutlineOfAJournal(t *testing.T) {
	done := []run.Item{{Name: "a", Phase: run.StepSucceeded}, {Name: "b", Phase: run.StepSucceeded}}
	now := []run.Item{{Name: "a", Phase: run.StepSucceeded}, {Name: "b", Phase: run.StepRunning}}
	through := func(path string) run.Record {
		return run.Record{Path: path, Type: "annotate", Phase: run.StepSucceeded}
	}
	drifted, waits := through("second/a/mark"), through("first/b/mark")
	drifted.Drift, waits.Waits = &run.Drift{}, "until its account may patch"
	j := run.Journal{Phase: run.Running, Steps: []run.Record{
		through("dump"),
		{Path: "first", Type: "for-each", Phase: run.StepSucceeded, Items: done},
		through("first/a/mark"), waits,
		{Path: "nodes", Type: "for-each-node", Phase: run.StepSucceeded, Items: done},
		through("nodes/a/drain"),
		{Path: "second", Type: "for-each", Phase: run.StepRunning, Items: now},
		drifted,
		{Path: "second/b/mark", Type: "annotate", Phase: run.StepRunning},
		through("second/a/test"),
		{Path: "group", Type: "group", Phase: run.StepSucceeded},
		through("group/one"),
	}}
	got := j.Outline()
	var paths []string
	for _, rec := range got.Steps {
		paths = append(paths, rec.Path)
	}
	if want := []string{"dump", "first", "first/b/mark", "nodes", "second", "second/a/mark", "second/b/mark", "group", "group/one"}; !slices.Equal(paths, want) {
		t.Errorf("it keeps %q", paths)
	}
	if len(j.Steps) != 12 || len(j.Steps[1].Items) != 2 || len(got.Steps[1].Items) != 0 || len(got.Steps[3].Items) != 2 || len(got.Steps[4].Items) != 2 {
		t.Errorf("of %+v it keeps %+v", j.Steps, got.Steps)
	}
	if was, is := run.ProgressOf(j), run.ProgressOf(got); was != is {
		t.Errorf("its progress is %+v, not %+v", is, was)
	}
	if j.Notice() != got.Notice() || j.Suspended() != got.Suspended() || j.DriftMessage() != got.DriftMessage() {
		t.Errorf("it says %q, not %q", got.Notice(), j.Notice())
	}
}

// The drains of nodes that a rollout is at work on are told by how they ended.
func TestTheOutlineKeepsTheDrainsOfNodesAtWork(t *testing.T) {
	now := []run.Item{{Name: "a", Phase: run.StepSucceeded}, {Name: "b", Phase: run.StepRunning}}
	drained := func(path string) run.Record {
		return run.Record{Path: path, Type: "drain", Phase: run.StepSucceeded}
	}
	j := run.Journal{Phase: run.Running, Steps: []run.Record{
		{Path: "before", Type: "for-each-node", Phase: run.StepFailed, Items: now}, // it was cut off
		drained("before/a/drain"), drained("before/b/drain"),
		{Path: "roll", Type: "for-each-node", Phase: run.StepRunning, Items: now},
		drained("roll/a/drain"), drained("roll/b/drain"),
		{Path: "each", Type: "for-each", Phase: run.StepRunning, Items: now},
		drained("each/a/drain"), drained("each/b/drain"),
	}}
	var paths []string
	for _, rec := range j.Outline().Steps {
		paths = append(paths, rec.Path)
	}
	if want := []string{"before", "roll", "roll/b/drain", "each"}; !slices.Equal(paths, want) {
		t.Errorf("it keeps %q, want %q", paths, want)
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
