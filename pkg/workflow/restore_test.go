package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// mayRestore judges a restore that is about to be done: what came after its step
// is back already, and no more of a loop's items are under way than were at work.
func (w *ranger) mayRestore(path string) {
	for _, rec := range w.durable.Steps {
		open := rec.Before != nil && rec.Restored == "" && rec.Path != path && w.g.spot(rec.Path).bush.step.Properties["restoreAfter"] == true
		if open && w.comesFirst(rec.Path, path) {
			w.fail("%s is put back before %s, which came after it", path, rec.Path)
		}
	}
}

// comesFirst says whether what a step found is to be put back before what another
// one found.
func (w *ranger) comesFirst(this, other string) bool {
	if plan.SectionOf(this) != plan.SectionOf(other) {
		return plan.SectionOf(this) == plan.SectionOnFailure
	}
	x, y := w.g.way(this), w.g.way(other)
	for i := range min(len(x), len(y)) {
		switch {
		case x[i].item != y[i].item: // of a loop: batch by batch
			return w.batch(x[i-1], x[i].item) > w.batch(y[i-1], y[i].item)
		case x[i].bush != y[i].bush && x[i].side:
			return dependsOn(x[i].siblings, x[i].bush.step.Name, y[i].bush.step.Name)
		case x[i].bush != y[i].bush:
			return slices.Index(x[i].siblings, x[i].bush) > slices.Index(x[i].siblings, y[i].bush)
		}
	}
	return false
}

// batch is the number of an item's batch, below all for one that is listed no more.
func (w *ranger) batch(loop spot, item string) int {
	rec := w.durable.Record(loop.path)
	if rec == nil { // of a loop in an item that is through: what it listed is not known any more
		return -1
	}
	for i, it := range rec.Items {
		if it.Segment() == item {
			return batchStarts(loop.bush, len(rec.Items))[i]
		}
	}
	return -1
}

func dependsOn(list []*bush, name, other string) bool {
	for _, b := range list {
		if b.step.Name != name {
			continue
		}
		for _, on := range b.step.DependsOn {
			if on == other || dependsOn(list, on, other) {
				return true
			}
		}
	}
	return false
}

// putBack is what a restore comes to.
func (w *ranger) putBack(m workflow.Action, rec run.Record) func(run.Journal) run.Journal {
	w.mayRestore(m.Path)
	fate := 9
	if !w.quiet {
		fate = w.draw(12, "restore")
	}
	switch fate {
	case 0:
		return func(j run.Journal) run.Journal {
			return workflow.NoteRestore(j, m.Path, run.RestoreFailed, "Boom", nil)
		}
	case 1:
		after := rec
		after.Waits = "Forbidden"
		w.resting[m.Path] = rest{until: w.now.Add(2 * time.Minute), record: after}
		return func(j run.Journal) run.Journal { return workflow.NoteWaits(j, m.Path, "Forbidden") }
	}
	w.world[m.Path] = asText(rec.Before)
	return func(j run.Journal) run.Journal { return workflow.NoteRestore(j, m.Path, run.RestoreDone, "", nil) }
}

func TestRestoresComeInTheReverseOrderOfSteps(t *testing.T) {
	scale := func(name string, more ...string) string {
		return "{name: " + name + ", type: scale" + strings.Join(append([]string{""}, more...), ", ") + ", properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: d}, replicas: 0, restoreAfter: true}}"
	}
	for _, c := range []struct {
		name, spec string
		items      map[string][]string
		waits      map[string]bool // what cannot be put back yet
		want       []string        // what is put back at once, look by look
	}{
		{
			"steps in order come back one by one", "steps: [" + scale("a") + ", " + scale("b") + "]", nil, nil,
			[]string{"b", "a"},
		},
		{
			"a loop's items come back side by side, as many as were at work, and of each the last step first",
			"steps: [" + loopOf(", maxConcurrency: 2", scale("x"), scale("y")) + "]",
			map[string][]string{"roll": {"i", "j", "k"}},
			nil,
			[]string{"roll/k/y roll/j/y", "roll/k/x roll/j/x", "roll/i/y", "roll/i/x"},
		},
		{
			"a loop that took one at a time puts back one at a time, the last first",
			"steps: [" + loopOf("", scale("x")) + "]",
			map[string][]string{"roll": {"i", "j"}},
			nil,
			[]string{"roll/j/x", "roll/i/x"},
		},
		{
			"no batch before the one after it",
			"steps: [" + loopOf(", batches: [1], maxConcurrency: 3", scale("x")) + "]",
			map[string][]string{"roll": {"i", "j", "k"}},
			nil,
			[]string{"roll/k/x roll/j/x", "roll/i/x"},
		},
		{
			"steps side by side come back so, but for what others depend on",
			"steps: [" + parallel(0, scale("a"), coretest.Hook("w", "dependsOn: [a]"), scale("b", "dependsOn: [w]"), scale("c")) + "]", nil, nil,
			[]string{"g/c g/b", "g/a"},
		},
		{
			"no more of them at once than were at work",
			"steps: [" + parallel(2, scale("a"), scale("b"), scale("c")) + "]", nil, nil,
			[]string{"g/c g/b", "g/a"},
		},
		{
			"one that has to wait keeps the others from nothing, and its own earlier steps wait for it",
			"steps: [" + loopOf("", scale("x"), scale("y")) + "]",
			map[string][]string{"roll": {"i", "j"}},
			map[string]bool{"roll/j/y": true},
			[]string{"roll/j/y", "roll/j/y roll/i/y", "roll/j/y roll/i/x", "roll/j/y", "roll/j/x"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &player{run: coretest.RunOf(t, c.spec), items: c.items, effects: map[string]int{}, restored: map[string]int{}, waits: c.waits}
			if got := p.play(t); !strings.HasSuffix(got, " Succeeded") && len(c.waits) == 0 {
				t.Error(got)
			}
			if diff := cmp.Diff(c.want, slices.Compact(p.together)); diff != "" {
				t.Errorf("put back together (-want +got):\n%s", diff)
			}
		})
	}
}

// Time runs out for what has to wait. What it held up is tried once all the same,
// and the run names what it left.
func TestARestoreThatCannotBeDoneHoldsNothingUpForGood(t *testing.T) {
	scale := "{name: %s, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: d}, replicas: 0, restoreAfter: true}}"
	p := &player{
		run:     coretest.RunOf(t, "steps: ["+fmt.Sprintf(scale, "a")+", "+fmt.Sprintf(scale, "b")+"]\nfinally: ["+coretest.Hook("f")+"]"),
		effects: map[string]int{}, restored: map[string]int{}, waits: map[string]bool{"b": true},
	}
	if got, want := p.play(t), "a=Succeeded~done b=Succeeded~failed finally/f=Succeeded Failed(CleanupFailed)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := p.durable.Record("b").RestoreMessage; got != "was not restored within 15m0s; it waited: Forbidden" {
		t.Errorf("b: %q", got)
	}
	if got := p.durable.Message; !strings.Contains(got, "b") || !strings.Contains(got, "Forbidden") {
		t.Errorf("the run says %q", got)
	}
}
