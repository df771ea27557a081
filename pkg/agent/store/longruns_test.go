//go:build !race

package store

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Each of a loop's steps has a record of its own for each item: of many that have ended
// lists look at none, and a loop over nodes keeps its items.
func TestManyRunsOfLongLoopsTakeTheMemoryOfTheirTexts(t *testing.T) {
	spec, faults := plan.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: hold, type: suspend}\n"), "p")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	j := run.Journal{Phase: run.Running, Section: plan.SectionSteps}
	for loop := range 10 {
		rec := run.Record{Path: fmt.Sprint("roll-", loop), Type: plan.TypeForEach, Phase: run.StepSucceeded, Attempt: 1, Listed: true}
		if loop == 9 {
			rec.Phase = run.StepRunning
		}
		for i := range plan.MaxItems {
			rec.Items = append(rec.Items, run.Item{Name: fmt.Sprint("item-", i), Phase: run.StepSucceeded})
		}
		j.Steps = append(j.Steps, rec)
		for i := range plan.MaxItems {
			j.Steps = append(j.Steps, run.Record{Path: fmt.Sprintf("roll-%d/item-%d/mark", loop, i), Type: "annotate", Phase: run.StepSucceeded, Attempt: 1, Message: "is done", Changed: []run.Change{{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprint("item-", i), What: "annotated"}}})
		}
	}
	j.Steps = append(j.Steps, run.Record{Path: "hold", Type: "suspend", Phase: run.StepRunning, Attempt: 1})
	rs, objects := NewRuns(agenttest.Keys()), make([]*corev1.ConfigMap, 8)
	for i := range objects {
		r := run.Run{Namespace: "ns", Plan: fmt.Sprint("p", i), PlanUID: "u", Request: run.Request{Kind: run.ByToken, Token: "t"}, Spec: spec.Defaulted()}
		r.Name = annotations.RunName(r.Plan, r.PlanUID, r.Request)
		cm, err := annotations.RunObject(r, j)
		if err != nil {
			t.Fatal(err)
		}
		cm.ResourceVersion, cm.UID = "5", types.UID(r.Name)
		objects[i] = agenttest.Signed(t, cm)
	}
	before := agenttest.Heap()
	for _, cm := range objects {
		rs.Observe(cm)
	}
	all := rs.Filter(func(l *LiveRun) bool { return l.Broken == nil })
	grown := agenttest.Heap() - before
	t.Logf("%d live runs of %d records take %d MiB beside their texts", len(all), len(j.Steps), grown>>20)
	if len(all) != len(objects) || grown > 48<<20 {
		t.Errorf("%d of %d runs take %d MiB", len(all), len(objects), grown>>20)
	}
	if got, want := run.ProgressOf(all[0].Journal), run.ProgressOf(j); got != want || !all[0].Journal.Suspended() {
		t.Errorf("of one is told %+v, not %+v", got, want)
	}
	runtime.KeepAlive(rs)
}

// What a person gave along with a trigger is for the run's steps, and for no list.
func TestManyRunsWithManyParametersTakeTheMemoryOfTheirTexts(t *testing.T) {
	rs, objects := NewRuns(agenttest.Keys()), make([]*corev1.ConfigMap, 700)
	for i := range objects {
		r := run.Run{Namespace: "ns", Plan: fmt.Sprint("p", i), PlanUID: "u", Request: run.Request{Kind: run.ByToken, Token: "t", Parameters: map[string]string{}}, Spec: plan.Spec{Steps: []plan.Step{{Name: "hold", Type: "suspend"}}}.Defaulted()}
		for n := range 1_000 {
			r.Request.Parameters[fmt.Sprint("p", n)] = "v"
		}
		r.Name = annotations.RunName(r.Plan, r.PlanUID, r.Request)
		cm, err := annotations.RunObject(r, run.Journal{Phase: run.Pending})
		if err != nil {
			t.Fatal(err)
		}
		cm.ResourceVersion, cm.UID = "5", types.UID(r.Name)
		objects[i] = agenttest.Signed(t, cm)
	}
	before := agenttest.Heap()
	for _, cm := range objects {
		rs.Observe(cm)
	}
	all := rs.Filter(func(l *LiveRun) bool { return l.Broken == nil })
	grown := agenttest.Heap() - before
	t.Logf("%d live runs take %d MiB beside their texts", len(all), grown>>20)
	if len(all) != len(objects) || grown > 48<<20 {
		t.Errorf("%d of %d runs take %d MiB", len(all), len(objects), grown>>20)
	}
	if got := rs.ReadWhole(all[0]).Run.Request.Parameters; len(got) != 1_000 {
		t.Errorf("of one %d parameters are read", len(got))
	}
	runtime.KeepAlive(rs)
}
