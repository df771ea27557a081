package store

import (
	"fmt"
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

// runOfSize is an active run whose plan has about so many bytes and whose journal has so many records, as a
// watch decodes it: no text of it is shared with another.
func runOfSize(t *testing.T, i, size, records int) *corev1.ConfigMap {
	t.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: hold, type: suspend}\n"
	if size > 0 {
		text += "  - {name: p, type: patch-object, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: x}, patchType: merge, patch: {data: {a: " + strings.Repeat("x", size) + "}}}}\n"
	}
	spec, faults := plan.Parse([]byte(text), "p")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	j := run.Journal{Phase: run.Running, Section: plan.SectionSteps, Steps: []run.Record{{Path: "hold", Type: "suspend", Phase: run.StepRunning, Attempt: 1}}}
	for s := range records {
		j.Steps = append(j.Steps, run.Record{Path: fmt.Sprint("s-", s), Type: "webhook", Phase: run.StepSucceeded, Attempt: 1})
	}
	r := run.Run{Namespace: "ns", Plan: "p", PlanUID: "u", Request: run.Request{Kind: run.ByToken, Token: fmt.Sprint("t", i)}, Spec: spec.Defaulted()}
	r.Name = annotations.RunName(r.Plan, r.PlanUID, r.Request)
	cm, err := annotations.RunObject(r, j)
	if err != nil {
		t.Fatal(err)
	}
	cm.ResourceVersion, cm.UID = "5", types.UID(r.Name)
	written, err := agenttest.Signed(t, cm).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	read := new(corev1.ConfigMap)
	if err := read.Unmarshal(written); err != nil {
		t.Fatal(err)
	}
	return read
}

// The bound on the active runs of a namespace is one on memory only if what is counted is what they take.
func TestWhatIsCountedOfActiveRunsIsWhatTheyTake(t *testing.T) {
	for name, c := range map[string]struct{ runs, size, records int }{
		"of large plans":         {20, 240 << 10, 0},
		"of small plans":         {300, 0, 0},
		"of plans of many steps": {200, 0, 30},
	} {
		t.Run(name, func(t *testing.T) {
			before, rs := agenttest.Heap(), NewRuns(agenttest.Keys())
			for i := range c.runs {
				rs.Observe(runOfSize(t, i, c.size, c.records))
			}
			rs.parsed.cache.Purge() // it has a bound of its own
			taken, counted := agenttest.Heap()-before, int64(rs.Quota.Used("ns"))
			t.Logf("%d runs take %d KiB, and count as %d KiB", c.runs, taken>>10, counted>>10)
			if counted < taken*3/4 || counted > taken*3/2 {
				t.Errorf("%d runs take %d KiB, and count as %d KiB", c.runs, taken>>10, counted>>10)
			}
			runtime.KeepAlive(rs)
		})
	}
}

// What is counted stands for what is kept, whatever happens to runs.
func TestWhatIsCountedFollowsWhatIsKept(t *testing.T) {
	k := keyOf(runOfSize(t, 0, 0, 0))
	small, large, later := runOfSize(t, 0, 0, 0), runOfSize(t, 0, 20_000, 0), runOfSize(t, 0, 0, 0)
	large.ResourceVersion, later.ResourceVersion = "6", "7"
	stub := small.DeepCopy()
	stub.ResourceVersion, stub.Annotations[annotations.StatusSignature] = "6", "x"
	agenttest.Keys().Empty(stub)
	again := small.DeepCopy()
	again.ResourceVersion = "6"
	other := runOfSize(t, 1, 0, 0)
	observe := func(cm *corev1.ConfigMap) func(rs *Runs) { return func(rs *Runs) { rs.Observe(cm) } }
	put := func(cm *corev1.ConfigMap) func(rs *Runs) {
		return func(rs *Runs) { rs.Put((&LiveRun{Object: cm}).whole(nil)) }
	}
	gone := func(rs *Runs) { rs.Gone(k, 9) }
	closed := func(rs *Runs) { rs.OrphanClosed(k) }
	drop := func(rs *Runs) { rs.Drop(k, 9) }
	for name, c := range map[string]struct {
		does []func(rs *Runs)
		want []*corev1.ConfigMap // that count
	}{
		"it is seen":                               {[]func(*Runs){observe(small)}, []*corev1.ConfigMap{small}},
		"it is seen twice, as in a new list":       {[]func(*Runs){observe(small), observe(small.DeepCopy())}, []*corev1.ConfigMap{small}},
		"two are seen":                             {[]func(*Runs){observe(small), observe(other)}, []*corev1.ConfigMap{small, other}},
		"it grows":                                 {[]func(*Runs){observe(small), observe(large)}, []*corev1.ConfigMap{large}},
		"it shrinks":                               {[]func(*Runs){observe(large), observe(later)}, []*corev1.ConfigMap{later}},
		"an older state is seen":                   {[]func(*Runs){observe(large), observe(small)}, []*corev1.ConfigMap{large}},
		"we write it, and the watch shows it":      {[]func(*Runs){put(large), observe(large.DeepCopy())}, []*corev1.ConfigMap{large}},
		"we write over it":                         {[]func(*Runs){observe(small), put(large)}, []*corev1.ConfigMap{large}},
		"somebody writes over it":                  {[]func(*Runs){observe(small), observe(stub)}, []*corev1.ConfigMap{stub}},
		"it counts again, with another key":        {[]func(*Runs){observe(stub), observe(again)}, []*corev1.ConfigMap{again}},
		"it ends":                                  {[]func(*Runs){observe(large), drop}, nil},
		"it ends, and an echo comes after that":    {[]func(*Runs){observe(small), drop, observe(large)}, nil},
		"it vanishes: it is kept until it is told": {[]func(*Runs){observe(large), gone}, []*corev1.ConfigMap{large}},
		"it vanishes, and is told":                 {[]func(*Runs){observe(large), gone, closed}, nil},
		"it vanishes, and comes back":              {[]func(*Runs){observe(small), gone, closed, observe(large)}, []*corev1.ConfigMap{large}},
		"it comes back before it is told":          {[]func(*Runs){observe(small), gone, observe(large), closed}, []*corev1.ConfigMap{large}},
		"it ends, and is gone":                     {[]func(*Runs){observe(large), drop, gone, closed}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rs := NewRuns(agenttest.Keys())
			for _, do := range c.does {
				do(rs)
			}
			want := 0
			for _, cm := range c.want {
				alone := NewRuns(agenttest.Keys())
				alone.Observe(cm)
				want += alone.Live(keyOf(cm)).bytes()
			}
			if got := rs.Quota.Used("ns"); got != want {
				t.Errorf("it counts %d bytes, want %d", got, want)
			}
		})
	}
}
