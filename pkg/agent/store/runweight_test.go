package store

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// denseRun is a live run of a plan of some 37 KB in which each few bytes are a value, or of
// a plan whose steps answered so.
func denseRun(t *testing.T, i int, inPlan, inJournal bool) *corev1.ConfigMap {
	t.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: hold, type: suspend}\n"
	if inPlan {
		text += "  - {name: p, type: patch-object, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: x}, patchType: merge, patch: {data: {a: [0" + strings.Repeat(",{a: 0}", 5_000) + "]}}}}\n"
	}
	spec, faults := plan.Parse([]byte(text), "p")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	j := run.Journal{Phase: run.Running, Section: plan.SectionSteps, Steps: []run.Record{{Path: "hold", Type: "suspend", Phase: run.StepRunning, Attempt: 1}}}
	for s := 0; inJournal && s < 4; s++ {
		answer := make([]any, 5_000)
		for i := range answer {
			answer[i] = map[string]any{"a": int64(i)}
		}
		j.Steps = append(j.Steps, run.Record{Path: fmt.Sprint("ask-", s), Type: "webhook", Phase: run.StepSucceeded, Outputs: map[string]any{"body": answer}})
	}
	r := run.Run{Namespace: "ns", Plan: fmt.Sprint("p", i), PlanUID: "u", Request: run.Request{Kind: run.ByToken, Token: "t"}, Spec: spec.Defaulted()}
	r.Name = annotations.RunName(r.Plan, r.PlanUID, r.Request)
	cm, err := annotations.RunObject(r, j)
	if err != nil {
		t.Fatal(err)
	}
	cm.ResourceVersion, cm.UID = "5", types.UID(r.Name)
	return agenttest.Signed(t, cm)
}

// Runs that are small and hold many values take tens of times their bytes as they are read:
// what is kept of many of them follows their texts.
func TestManyDenseRunsTakeTheMemoryOfTheirTexts(t *testing.T) {
	for name, c := range map[string]struct {
		runs              int
		inPlan, inJournal bool
	}{
		"plans that hold many values":        {runs: 100, inPlan: true},
		"steps that answered by many values": {runs: 40, inJournal: true},
	} {
		t.Run(name, func(t *testing.T) {
			rs, objects := NewRuns(agenttest.Keys()), make([]*corev1.ConfigMap, c.runs)
			for i := range objects {
				objects[i] = denseRun(t, i, c.inPlan, c.inJournal)
			}
			before := agenttest.Heap()
			for _, cm := range objects {
				rs.Observe(cm)
			}
			all := rs.Filter(func(l *LiveRun) bool { return l.Broken == nil })
			grown := agenttest.Heap() - before
			t.Logf("%d live runs take %d MiB beside their texts", len(all), grown>>20)
			if len(all) != c.runs || grown > 48<<20 {
				t.Errorf("%d of %d runs take %d MiB", len(all), c.runs, grown>>20)
			}
			runtime.KeepAlive(rs)
		})
	}
}

// What was let go is read again: the state that was asked for, and no other.
func TestARunThatWasLetGoIsReadAgain(t *testing.T) {
	for name, dense := range map[string]bool{"a small one": false, "a dense one": true} {
		t.Run(name, func(t *testing.T) {
			rs := NewRuns(agenttest.Keys())
			first := denseRun(t, 0, dense, dense)
			rs.Observe(first)
			k := types.NamespacedName{Namespace: first.Namespace, Name: first.Name}
			before, whole := rs.Live(k), rs.Get(k)
			if rs.Get(k) != whole {
				t.Error("what is kept is read twice")
			}
			j := whole.Journal
			j.Steps = append([]run.Record{}, j.Steps...)
			j.Steps[0].Message = "later"
			later, err := annotations.WithJournal(first, j)
			if err != nil {
				t.Fatal(err)
			}
			later.ResourceVersion = "6"
			rs.Observe(agenttest.Signed(t, later))
			pushOut(t, rs, k)
			if got := rs.Get(k); got.Broken != nil || got.Journal.Steps[0].Message != "later" || !reflect.DeepEqual(got.Run, whole.Run) || !reflect.DeepEqual(got.Journal.Steps[1:], j.Steps[1:]) {
				t.Errorf("it is another: %v, %+v", got.Broken, got.Journal.Steps[0])
			}
			if got := rs.ReadWhole(before); got.Object != first || !reflect.DeepEqual(got.Journal, whole.Journal) {
				t.Error("a look from before shows what came after it")
			}
			if got := rs.Get(k); got.Object.ResourceVersion != "6" {
				t.Error("the older state took the place of the newer one")
			}
			pushOut(t, rs, k)
			rs.Observe(first) // an echo
			rs.Gone(k, 7)
			if got := rs.OrphansOf(rs.ReadWhole(before).PlanKey()); len(got) != 1 || got[0].Journal.Steps[0].Message != "later" || rs.parsed.Contains(k) || rs.Get(k) != nil {
				t.Errorf("when it is gone: %d orphans", len(got))
			}
		})
	}
}

// pushOut has a run let go of what was read of it.
func pushOut(t *testing.T, rs *Runs, k types.NamespacedName) {
	t.Helper()
	for i := 1; rs.parsed.Contains(k); i++ {
		if i > maxParsedRuns+1 {
			t.Fatal("it stays")
		}
		other := types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("other-", i)}
		rs.parsed.Keep(other, maxParsedRunsWeight/2, &CachedRun{})
	}
}

// A rollout over many nodes may weigh more than all that is kept: alone it is read once.
func TestOneHeavyRunAloneIsReadOnce(t *testing.T) {
	rs, light := NewRuns(agenttest.Keys()), denseRun(t, 1, false, false)
	heavy := &CachedRun{Object: denseRun(t, 0, false, false)}
	heavy.Journal.Steps = make([]run.Record, 2*maxParsedRunsWeight/perRecord)
	rs.Put(heavy)
	if rs.Get(heavy.Key()) != heavy {
		t.Error("it is read again each time")
	}
	rs.Observe(light)
	if rs.parsed.Contains(heavy.Key()) || !rs.parsed.Contains(keyOf(light)) {
		t.Error("beside others it stays")
	}
}
