package run

import (
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// ItemOf is the item of the innermost loop that a path lies in.
func (r Run) ItemOf(j Journal, path string) (Item, plan.ForEachProperties, bool) {
	chain := r.Tree().Chain(path)
	for i := len(chain) - 1; i >= 0; i-- {
		if chain[i].Item == "" {
			continue
		}
		rec := j.Record(chain[i].Path)
		if rec == nil {
			return Item{}, plan.ForEachProperties{}, false
		}
		for _, item := range rec.Items {
			if item.Segment() == chain[i].Item {
				return item, plan.ForEachProperties{APIVersion: rec.ItemVersion, Kind: rec.ItemKind}, true
			}
		}
	}
	return Item{}, plan.ForEachProperties{}, false
}

// ItemsDone are the items of a loop that its batches have done, the present one
// with them. Of those that failed nobody asks whether it holds what was done.
func (r Run) ItemsDone(j Journal, path string) []Item {
	rec := j.Record(path)
	if rec == nil || !rec.Listed {
		return nil
	}
	step, _ := r.Tree().Find(path)
	ends := LoopBatches(step, len(rec.Items))
	done := rec.Items[:ends[min(rec.Batch, len(ends)-1)]]
	failed := func(i Item) bool { return i.Phase == StepFailed }
	if slices.ContainsFunc(done, failed) {
		done = slices.DeleteFunc(slices.Clone(done), failed)
	}
	return done
}

// Record is what the journal knows of the step at a path; nil when nothing.
func (j Journal) Record(path string) *Record {
	for i := range j.Steps {
		if j.Steps[i].Path == path {
			return &j.Steps[i]
		}
	}
	return nil
}

// LoopBatches are the ends of the batches in which a loop takes its items.
func LoopBatches(step plan.Step, n int) []int {
	list, _ := step.Properties["batches"].([]any)
	return plan.BatchEnds(list, n)
}

// SegmentIn is the item of a loop that a path lies in; empty when it lies in none.
func SegmentIn(loop, path string) string {
	if !plan.Below(path, loop) {
		return ""
	}
	segment, _, _ := strings.Cut(path[len(loop)+1:], "/")
	return segment
}

// NoNodesMessage is what a rollout without nodes says.
const NoNodesMessage = "its selector picks no node: nothing was done"

// emptyRollouts names the rollouts of a run that picked no node, for its message:
// that all steps are done is no news of nodes then.
func (j Journal) emptyRollouts() string {
	text := ""
	for _, rec := range j.Steps {
		if rec.Type == plan.TypeForEachNode && rec.Phase == StepSucceeded && rec.Message == NoNodesMessage {
			text += "; " + rec.Path + ": " + NoNodesMessage
		}
	}
	return text
}
