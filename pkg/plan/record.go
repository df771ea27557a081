package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Report is what a pass over a step said, in the plan's own words.
type Report struct {
	Done      bool // the effect is there
	Failed    bool // the attempt failed
	Permanent bool // and no other attempt can mend it
	Reason    string
	Message   string
	Outputs   map[string]any
	Before    json.RawMessage // to be kept before the effect
	ResumeAt  *time.Time      // to be kept: the absolute end of a suspend
	Changed   []Change
	Memory    json.RawMessage // replaces what is remembered; nil leaves it
	NodeSeen  bool            // the node was found closed, and the step has begun
	KeepAt    *time.Time      // done, and a lease to renew then
	NotBefore *time.Time      // failed: somebody asked for no attempt before it
	Waits     string          // not done yet: what is missing that somebody has to give, a right or a quota
	// Listed says that Items are the objects that a for-each takes.
	Listed                bool
	Items                 []Item
	ItemVersion, ItemKind string
}

// Note writes a pass's report into the journal. A failed attempt that may be
// tried again gets its next attempt in the same journal, so that outcome and
// intent are one write.
func Note(r Run, j Journal, path string, rep Report, now time.Time) Journal {
	j.Steps = append([]Record(nil), j.Steps...)
	rec := j.Record(path)
	if rec == nil || rec.Phase != StepRunning {
		return j
	}
	tree := r.Tree()
	step, _ := tree.Find(path)
	if rep.Before != nil && rec.Before == nil {
		rec.Before = rep.Before
	}
	if rep.ResumeAt != nil && rec.ResumeAt == nil {
		rec.ResumeAt = new(rep.ResumeAt.UTC())
	}
	if rep.Message != "" {
		rec.Message = Cut(rep.Message, MaxMessage)
	}
	rec.Changed = mergeChanges(rec.Changed, rep.Changed)
	rec.Waits = Cut(rep.Waits, MaxMessage)
	if rep.NodeSeen {
		rec.NodeSeen = rec.Attempt
	}
	if rep.Memory != nil {
		rec.Memory = rep.Memory
	}
	if IsLoop(step.Type) && (rep.Listed || rep.Done || rep.Failed) {
		j.WorkedAt = new(now.UTC()) // it looked until now, and has no end for it
	}
	switch {
	case rep.Listed && !rec.Listed && tree.keeps(step)*len(rep.Items)*restoredBytes > maxRestored:
		fail(rec, step, Report{Permanent: true, Reason: "TooMany", Message: ""}, now)
		rec.Message = fmt.Sprintf("takes %d objects, and what their steps are to restore does not fit into one run: narrow the selector, or use restoreAfter less", len(rep.Items))
	case rep.Listed && !rec.Listed:
		rec.Listed, rec.Items, rec.ItemVersion, rec.ItemKind = true, once(rep.Items), rep.ItemVersion, rep.ItemKind
	case rep.Done && step.Type == TypeForEach: // what the batch did holds
		rec.Batch++
	case rep.Done:
		rec.KeepAt = rep.KeepAt
		rec.Phase, rec.Reason, rec.FinishedAt, rec.NotBefore = StepSucceeded, rep.Reason, new(now.UTC()), nil
		rec.Outputs = rep.Outputs
	case rep.Failed:
		fail(rec, step, rep, now)
	}
	capOutputs(&j)
	return j
}

// once is a list without what stands in it twice: a step's path stands for one
// object.
func once(items []Item) []Item {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(items), func(i Item) bool {
		twice := seen[i.Segment()]
		seen[i.Segment()] = true
		return twice
	})
}

func fail(rec *Record, step Step, rep Report, now time.Time) {
	rec.Reason = rep.Reason
	rec.Outputs = rep.Outputs
	if rep.Permanent || step.Retry == nil || rec.Attempt-rec.Base > step.Retry.Limit {
		rec.Phase, rec.FinishedAt, rec.NotBefore = StepFailed, new(now.UTC()), nil
		return
	}
	if !restores(step) {
		rec.Before = nil // what was recorded belonged to the failed attempt alone
	}
	next := now.Add(Backoff(*step.Retry, rec.Attempt-rec.Base))
	if rep.NotBefore != nil && rep.NotBefore.After(next) {
		next = *rep.NotBefore
	}
	rec.Attempt++
	rec.NotBefore, rec.AttemptAt = new(next.UTC()), new(next.UTC())
}

// Backoff is the wait before the attempt after the given one (1 for the first):
// it doubles from backoff to maxBackoff.
func Backoff(r Retry, attempt int) time.Duration {
	wait, longest := r.Backoff.Or(DefaultRetryBackoff), r.MaxBackoff.Or(DefaultMaxBackoff)
	for range attempt - 1 {
		if wait >= longest/2 {
			return longest
		}
		wait *= 2
	}
	return min(wait, longest)
}

// NoteStop writes down that an abandoned step leaves nothing working; or, with
// an error, that this could not be done and somebody has to look.
func NoteStop(j Journal, path string, err error) Journal {
	return with(j, path, func(rec *Record) {
		rec.Stopping, rec.Waits = false, ""
		if err != nil {
			rec.Message = Cut(rec.Message+"; what it left working could not be ended: "+err.Error(), MaxMessage)
		}
	})
}

// NoteKeep writes down how a lease was renewed. A renewal that failed is tried
// again at the instant given.
func NoteKeep(j Journal, path string, memory json.RawMessage, next time.Time, message string) Journal {
	return with(j, path, func(rec *Record) {
		rec.KeepAt = new(next.UTC())
		if memory != nil {
			rec.Memory = memory
		}
		if message != "" {
			rec.Message = Cut(message, MaxMessage)
		}
	})
}

// NoteRelease writes down that a lease was given back.
func NoteRelease(j Journal, path, message string) Journal {
	return with(j, path, func(rec *Record) {
		rec.KeepAt, rec.Waits = nil, ""
		if message != "" {
			rec.Message = Cut(message, MaxMessage)
		}
	})
}

// NoteRestore writes down how a restore ended.
func NoteRestore(j Journal, path, how, message string, changed []Change) Journal {
	return with(j, path, func(rec *Record) {
		rec.Restored, rec.Waits = how, ""
		rec.Changed = mergeChanges(rec.Changed, changed)
		rec.RestoreMessage = Cut(message, MaxMessage)
	})
}

// NoteWaits writes down what somebody has to give before a step can be stopped, put
// back or given back: a right, an account, a quota.
func NoteWaits(j Journal, path, waits string) Journal {
	return with(j, path, func(rec *Record) { rec.Waits = Cut(waits, MaxMessage) })
}

func with(j Journal, path string, edit func(*Record)) Journal {
	j.Steps = append([]Record(nil), j.Steps...)
	for i := range j.Steps {
		if j.Steps[i].Path == path {
			edit(&j.Steps[i])
		}
	}
	return j
}

func mergeChanges(have, more []Change) []Change {
	out := append([]Change(nil), have...)
	for _, c := range more {
		known := false
		for _, h := range out {
			known = known || h == c
		}
		if !known && len(out) < 50 { // a guess: more is a list nobody reads
			out = append(out, c)
		}
	}
	return out
}

// Bounds of what a loop's items leave to be restored after it.
const (
	restoredBytes = 700     // of one record (a guess: twice what a scale leaves)
	maxRestored   = 2 << 20 // in one run; they stand compressed, about a fifth of it
)

// Shrunk is a journal without outputs of so many bytes, the largest first: what
// outgrows its place goes with a mark, and the run goes on.
func (j Journal) Shrunk(bytes int) Journal {
	j.Steps = append([]Record(nil), j.Steps...)
	for bytes > 0 {
		largest, size := -1, 0
		for i, rec := range j.Steps {
			if b, err := json.Marshal(rec.Outputs); err == nil && len(b) > max(size, 64) {
				largest, size = i, len(b)
			}
		}
		if largest < 0 {
			break
		}
		j.Steps[largest].Outputs, j.Truncated = map[string]any{"truncated": true}, true
		bytes -= size - 20
	}
	for i := range j.Steps { // the rest is words, and goes only where it must
		if rec := &j.Steps[i]; bytes > 0 && rec.Phase.Ended() {
			bytes -= len(rec.Message) + 100*len(rec.Changed)
			rec.Message, rec.Changed, j.Truncated = "", nil, true
		}
	}
	return j
}

// capOutputs keeps the journal within its caps: a step's outputs that are too
// large, or that no longer fit in the run's share, are replaced by a mark.
func capOutputs(j *Journal) {
	total := 0
	for i := range j.Steps {
		if j.Steps[i].Outputs == nil {
			continue
		}
		b, err := json.Marshal(j.Steps[i].Outputs)
		if err != nil || len(b) > MaxStepOutput || total+len(b) > MaxRunOutput {
			j.Steps[i].Outputs = map[string]any{"truncated": true}
			j.Truncated = true
			continue
		}
		total += len(b)
	}
}

// Begins says whether a step, or another attempt of one, is to begin by this journal
// that was not at work by an earlier one. What cleans up waits for nobody.
func (j Journal) Begins(was Journal) bool {
	if j.Section != SectionSteps && j.Section != "" {
		return false
	}
	before := make(map[string]int, len(was.Steps))
	for _, rec := range was.Steps {
		if rec.Phase == StepRunning {
			before[rec.Path] = rec.Attempt
		}
	}
	return slices.ContainsFunc(j.Steps, func(rec Record) bool {
		attempt, ran := before[rec.Path]
		return rec.Phase == StepRunning && (!ran || attempt != rec.Attempt)
	})
}
