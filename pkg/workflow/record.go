package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// StepResult is what a pass over a step said, in the plan's own words.
type StepResult struct {
	Done      bool // the effect is there
	Failed    bool // the attempt failed
	Permanent bool // and no other attempt can mend it
	Reason    string
	Message   string
	Outputs   map[string]any
	Before    json.RawMessage // to be kept before the effect
	Anew      bool            // what was kept is over: Before, or nothing, takes its place
	ResumeAt  *time.Time      // to be kept: the absolute end of a suspend
	Changed   []run.Change
	Memory    json.RawMessage // replaces what is remembered; nil leaves it
	KeepAt    *time.Time      // done, and a lease to renew then
	NotBefore *time.Time      // failed: somebody asked for no attempt before it
	Items     ItemList
	Seen      Seen
}

// Seen is what a pass saw besides.
type Seen struct {
	NodeSeen bool   // the node was found closed, and the step has begun
	Waits    string // not done yet: what is missing that somebody has to give, a right or a quota
}

// ItemList is the objects that a for-each takes.
type ItemList struct {
	// Listed says that Items are the objects that a for-each takes.
	Listed           bool
	List             []run.Item
	APIVersion, Kind string
}

// Note writes a pass's report into the journal. A failed attempt that may be
// tried again gets its next attempt in the same journal, so that outcome and
// intent are one write.
func Note(r run.Run, j run.Journal, path string, rep StepResult, now time.Time) run.Journal {
	j.Steps = append([]run.Record(nil), j.Steps...)
	rec := j.Record(path)
	if rec == nil || rec.Phase != run.StepRunning {
		return j
	}
	tree := r.Tree()
	step, _ := tree.Find(path)
	if rep.Anew || rep.Before != nil && rec.Before == nil {
		rec.Before = rep.Before
	}
	if rep.ResumeAt != nil && rec.ResumeAt == nil {
		rec.ResumeAt = new(rep.ResumeAt.UTC())
	}
	if rep.Message != "" {
		rec.Message = document.Cut(document.OneLine(rep.Message), document.MaxMessage)
	}
	rec.Changed = mergeChanges(rec.Changed, rep.Changed)
	rec.Waits = document.Cut(document.OneLine(rep.Seen.Waits), document.MaxMessage)
	if rep.Seen.NodeSeen {
		rec.NodeSeen = rec.Attempt
	}
	if rep.Memory != nil {
		rec.Memory = rep.Memory
	}
	if plan.IsLoop(step.Type) && (rep.Items.Listed || rep.Done || rep.Failed) {
		j.WorkedAt = new(now.UTC()) // it looked until now, and has no end for it
	}
	switch {
	case rep.Items.Listed && !rec.Listed && tree.Keeps(step)*len(rep.Items.List)*restoredBytes > maxRestored:
		fail(&j, rec, step, StepResult{Permanent: true, Reason: "TooMany", Message: ""}, now)
		rec.Message = fmt.Sprintf("takes %d objects, and what their steps are to restore does not fit into one run: narrow the selector, or use restoreAfter less", len(rep.Items.List))
	case rep.Items.Listed && !rec.Listed:
		rec.Listed, rec.Items, rec.ItemVersion, rec.ItemKind = true, once(rep.Items.List), rep.Items.APIVersion, rep.Items.Kind
	case rep.Done && step.Type == plan.TypeForEach: // what the batch did holds
		rec.Batch++
	case rep.Done:
		rec.KeepAt = rep.KeepAt
		rec.Phase, rec.Reason, rec.FinishedAt, rec.NotBefore = run.StepSucceeded, rep.Reason, new(now.UTC()), nil
		rec.Outputs = rep.Outputs
	case rep.Failed:
		fail(&j, rec, step, rep, now)
	}
	run.CapOutputs(&j)
	return j
}

// once is a list without what stands in it twice: a step's path stands for one
// object.
func once(items []run.Item) []run.Item {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(items), func(i run.Item) bool {
		twice := seen[i.Segment()]
		seen[i.Segment()] = true
		return twice
	})
}

// Bounds of how often a run tries again. Retries of a group multiply those of what it
// holds, and each is two writes. MaxRetries is a guess: a plan that means well needs far fewer.
const (
	MaxRetries      = 10_000 // of all steps of a run together
	shortestBackoff = time.Second
)

func fail(j *run.Journal, rec *run.Record, step plan.Step, rep StepResult, now time.Time) {
	rec.Reason = rep.Reason
	rec.Outputs = rep.Outputs
	over := rep.Permanent || step.Retry == nil || rec.Attempt-rec.Base > step.Retry.Limit
	if !over && j.Retried >= MaxRetries {
		over = true
		rec.Message = document.Cut(fmt.Sprintf("not tried again, since the steps of this run were tried again %d times already: %s", j.Retried, rec.Message), document.MaxMessage)
	}
	if over {
		rec.Phase, rec.FinishedAt, rec.NotBefore = run.StepFailed, new(now.UTC()), nil
		endHold(rec)
		return
	}
	if !plan.Restores(step) {
		rec.Before = nil // what was recorded belonged to the failed attempt alone
	}
	next := now.Add(Backoff(*step.Retry, rec.Attempt-rec.Base))
	if rep.NotBefore != nil && rep.NotBefore.After(next) {
		next = *rep.NotBefore
	}
	rec.Attempt++
	j.Retried++
	rec.NotBefore, rec.AttemptAt = new(next.UTC()), new(next.UTC())
}

// endHold ends the hold of a HibernatePlan with the step that has failed: Stop gives it back, so that
// no lease of an earlier round is left to renew. A step that remembers nothing holds nothing.
func endHold(rec *run.Record) {
	if (rec.Type == plan.TypeHibernate || rec.Type == plan.TypeWake) && rec.Memory != nil {
		rec.Stopping, rec.KeepAt = true, nil
	}
}

// Backoff is the wait before the attempt after the given one (1 for the first):
// it doubles from backoff to maxBackoff, and is a second at least.
func Backoff(r plan.Retry, attempt int) time.Duration {
	wait, longest := r.Backoff.Or(plan.DefaultRetryBackoff), r.MaxBackoff.Or(plan.DefaultMaxBackoff)
	for range attempt - 1 {
		if wait >= longest/2 {
			return max(longest, shortestBackoff)
		}
		wait *= 2
	}
	return max(min(wait, longest), shortestBackoff)
}

// NoteStop writes down that an abandoned step leaves nothing working; or, with
// an error, that this could not be done and somebody has to look.
func NoteStop(j run.Journal, path string, err error) run.Journal {
	return with(j, path, func(rec *run.Record) {
		rec.Stopping, rec.Waits = false, ""
		if err != nil {
			rec.Message = document.Cut(rec.Message+"; what it left working could not be ended: "+document.OneLine(err.Error()), document.MaxMessage)
		}
	})
}

// NoteKeep writes down how a lease was renewed. A renewal that failed is tried
// again at the instant given.
func NoteKeep(j run.Journal, path string, memory json.RawMessage, next time.Time, message string) run.Journal {
	return with(j, path, func(rec *run.Record) {
		rec.KeepAt = new(next.UTC())
		if memory != nil {
			rec.Memory = memory
		}
		if message != "" {
			rec.Message = document.Cut(document.OneLine(message), document.MaxMessage)
		}
	})
}

// NoteRelease writes down that a lease was given back.
func NoteRelease(j run.Journal, path, message string) run.Journal {
	return with(j, path, func(rec *run.Record) {
		rec.KeepAt, rec.Waits = nil, ""
		if message != "" {
			rec.Message = document.Cut(document.OneLine(message), document.MaxMessage)
		}
	})
}

// NoteRestore writes down how a restore ended.
func NoteRestore(j run.Journal, path, how, message string, changed []run.Change) run.Journal {
	return with(j, path, func(rec *run.Record) {
		rec.Restored, rec.Waits = how, ""
		rec.Changed = mergeChanges(rec.Changed, changed)
		rec.RestoreMessage = document.Cut(message+rec.Drift.DuringRun(), document.MaxMessage)
	})
}

// NoteWaits writes down what somebody has to give before a step can be stopped, put
// back or given back: a right, an account, a quota.
func NoteWaits(j run.Journal, path, waits string) run.Journal {
	return with(j, path, func(rec *run.Record) { rec.Waits = document.Cut(waits, document.MaxMessage) })
}

func with(j run.Journal, path string, edit func(*run.Record)) run.Journal {
	j.Steps = append([]run.Record(nil), j.Steps...)
	for i := range j.Steps {
		if j.Steps[i].Path == path {
			edit(&j.Steps[i])
		}
	}
	return j
}

// maxChanges is how many changed resources a step lists (a guess: more is a list that
// nobody reads).
const maxChanges = 50

func mergeChanges(have, more []run.Change) []run.Change {
	out := append([]run.Change(nil), have...)
	for _, c := range more {
		if !slices.Contains(out, c) && len(out) < maxChanges {
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
