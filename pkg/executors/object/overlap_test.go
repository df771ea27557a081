package object

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
)

// field is one object with replicas, and the steps of several runs that set them.
type field struct {
	t        *testing.T
	replicas int64
	now      time.Time
	records  []executors.Holder // newest first, as the agent hands them over
}

func (f *field) live() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "u"}, "spec": map[string]any{"replicas": f.replicas}}}
}

func (f *field) call(run string) executors.Call {
	f.now = f.now.Add(time.Second)
	return executors.Call{Run: run, Path: "scale", Now: f.now, Objects: executors.Objects{Holders: func(string) []executors.Holder {
		return slices.DeleteFunc(slices.Clone(f.records), func(h executors.Holder) bool { return h.Run == run })
	}}}
}

// begin is a step of a run: it records, then it sets.
func (f *field) begin(run string, to int64) {
	live := f.live()
	w := write{live: live, restoreAfter: true, patch: api.Patch{Type: types.MergePatchType, Body: map[string]any{"spec": map[string]any{"replicas": to}}}}
	w.changes = changesBetween(live.Object, set(live.Object, replicasPath(), raw(to, true), 0).(map[string]any))
	if changes := overlapping(f.call(run), w); len(changes) > 0 {
		b, err := json.Marshal(record{UID: "u", Changes: changes})
		if err != nil {
			f.t.Fatal(err)
		}
		f.records = slices.Insert(f.records, 0, executors.Holder{Run: run, Path: "scale", Before: b})
	}
	f.replicas = to
}

// end puts back what a run found. Where its outcome is lost it looks as if it had
// not been done.
func (f *field) end(run string, lost bool) {
	for i, h := range f.records {
		var rec record
		if h.Run != run || !h.Over.IsZero() {
			continue
		}
		if err := json.Unmarshal(h.Before, &rec); err != nil {
			f.t.Fatal(err)
		}
		changes, _ := effectiveChanges(f.call(run), &rec)
		restored, _, _ := putBack(f.live().Object, changes)
		v, _, _ := lookup(restored, replicasPath())
		f.replicas = v.(int64)
		if !lost {
			f.records[i].Over = f.now
		}
	}
}

func permutations(of []string) (out [][]string) {
	if len(of) == 0 {
		return [][]string{nil}
	}
	for i, first := range of {
		rest := append(slices.Clone(of[:i]), of[i+1:]...)
		for _, p := range permutations(rest) {
			out = append(out, append([]string{first}, p...))
		}
	}
	return out
}

func TestRunsThatOverlapOnAFieldLeaveItAsItWasBeforeAllOfThem(t *testing.T) {
	for _, sets := range [][]int64{{0, 0}, {0, 1}, {0, 7}, {0, 1, 2}, {0, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 1, 1}, {1, 0, 7}} {
		var runs []string
		for i := range sets {
			runs = append(runs, string(rune('A'+i)))
		}
		for _, order := range permutations(runs) {
			for _, redone := range permutations(runs) { // after a crash whoever is looked at first
				for crash := range len(order) + 1 { // the last so many outcomes are lost with it
					name := fmt.Sprintf("set to %v, ended %v, the last %d of them again as %v", sets, order, crash, redone)
					f := &field{t: t, replicas: 7, now: time.Unix(1000, 0)}
					for i, to := range sets {
						f.begin(runs[i], to)
					}
					for i, run := range order {
						f.end(run, i >= len(order)-crash)
					}
					for _, run := range redone {
						f.end(run, false)
					}
					if f.replicas != 7 {
						t.Errorf("%s: %d replicas", name, f.replicas)
					}
				}
			}
		}
	}
}

// What somebody recorded of an object of another cluster is not spoken of, whoever hands it
// over: it may say any uid.
func TestARecordOfAnotherClusterStandsBelowNothing(t *testing.T) {
	f := &field{t: t, replicas: 3, now: time.Unix(1000, 0)}
	far, err := json.Marshal(record{UID: "u", Server: "s", Changes: []change{{Path: replicasPath(), Before: raw(int64(999), true), After: raw(int64(3), true)}}})
	if err != nil {
		t.Fatal(err)
	}
	f.records = []executors.Holder{{Run: "far", Path: "scale", Before: far}}
	f.begin("A", 0)
	f.records[len(f.records)-1].Over = f.now
	if f.end("A", false); f.replicas != 3 {
		t.Errorf("%d replicas were put back, want 3", f.replicas)
	}
}

func TestARunThatEndsLeavesWhatOneOnTopOfItHolds(t *testing.T) {
	f := &field{t: t, replicas: 7, now: time.Unix(1000, 0)}
	f.begin("A", 0)
	f.begin("B", 0)
	if f.end("A", false); f.replicas != 0 {
		t.Errorf("B wants 0 until its own end, and A put back %d", f.replicas)
	}
	if f.end("B", false); f.replicas != 7 {
		t.Errorf("after both: %d", f.replicas)
	}
	f.begin("C", 3)
	f.begin("D", 4)
	f.end("C", false)
	f.replicas = 5 // somebody
	if f.end("D", false); f.replicas != 5 {
		t.Errorf("somebody's change does not stay: %d", f.replicas)
	}
	f.begin("E", 9)
	f.end("E", false)
	f.replicas = 9 // somebody, later
	f.begin("F", 1)
	if f.end("F", false); f.replicas != 9 {
		t.Errorf("what somebody set after a run's end is taken for the run's: %d", f.replicas)
	}
}
