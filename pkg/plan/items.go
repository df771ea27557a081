package plan

import "slices"

// ItemOf is the item of the innermost loop that a path lies in.
func (r Run) ItemOf(j Journal, path string) (Item, ForEachProperties, bool) {
	chain := r.Tree().chain(path)
	for i := len(chain) - 1; i >= 0; i-- {
		if chain[i].item == "" {
			continue
		}
		rec := j.Record(chain[i].path)
		if rec == nil {
			return Item{}, ForEachProperties{}, false
		}
		for _, item := range rec.Items {
			if item.Segment() == chain[i].item {
				return item, ForEachProperties{APIVersion: rec.ItemVersion, Kind: rec.ItemKind}, true
			}
		}
	}
	return Item{}, ForEachProperties{}, false
}

// ItemsDone are the items of a loop that its batches have done, the present one
// with them. Of those that failed nobody asks whether it holds what was done.
func (r Run) ItemsDone(j Journal, path string) []Item {
	rec := j.Record(path)
	if rec == nil || !rec.Listed {
		return nil
	}
	step, _ := r.Tree().Find(path)
	ends := loopBatches(step, len(rec.Items))
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
