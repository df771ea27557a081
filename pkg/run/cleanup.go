package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Failed says whether a step failed. Of a cleanup, one whose time was over before it began has failed,
// too: what it would have undone stays.
func (r Record) Failed() bool {
	return r.Phase == StepFailed || r.Phase == StepSkipped && r.Reason == "Timeout" && plan.SectionOf(r.Path) != plan.SectionSteps
}

// FailedCleanup says whether this is a step of onFailure or finally that failed. A step within another
// is told by that one.
func (r Record) FailedCleanup() bool {
	section := plan.SectionOf(r.Path)
	return section != plan.SectionSteps && strings.Count(r.Path, "/") == 1 && r.Failed()
}

// CleanupFailed says whether a restore, or a step of onFailure or finally, failed.
func (j Journal) CleanupFailed() bool { return len(j.cleanupFailures()) > 0 }

// Bounds of what a run's message says of its cleanup (guesses: the steps name the rest).
const (
	maxCleanupText = 128
	maxCleanupTold = 3
)

// cleanupFailures are what of a run's cleanup failed, each in words.
func (j Journal) cleanupFailures() (out []string) {
	if restores := j.failedRestores(); restores != "" {
		out = append(out, restores)
	}
	steps := 0
	for i := range j.Steps {
		if rec := &j.Steps[i]; rec.FailedCleanup() {
			if steps++; steps <= maxCleanupTold {
				out = append(out, fmt.Sprintf("%s failed: %s", rec.Path, document.Cut(rec.Message, maxCleanupText)))
			}
		}
	}
	if more := steps - maxCleanupTold; more > 0 {
		out = append(out, fmt.Sprintf("and %d more steps of the cleanup", more))
	}
	return out
}

// failedRestores says which restores failed, and why the first did; empty: none failed.
func (j Journal) failedRestores() string {
	var failed []*Record
	for i := range j.Steps {
		if j.Steps[i].Restored == RestoreFailed {
			failed = append(failed, &j.Steps[i])
		}
	}
	if len(failed) == 0 {
		return ""
	}
	path, why := failed[0].Path, document.Cut(failed[0].RestoreMessage, 2*maxCleanupText)
	if len(failed) == 1 {
		return fmt.Sprintf("what step %s found was not put back: %s", path, why)
	}
	return fmt.Sprintf("what %d steps found was not put back, of step %s: %s", len(failed), path, why)
}

// NotCleaned says what of a run's cleanup failed that its end does not name; empty: nothing.
func (j Journal) NotCleaned() string {
	var out []string
	for _, text := range j.cleanupFailures() {
		if j.End == nil || !strings.Contains(j.End.Message, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

// Ending says how a run ends, with what of its cleanup failed so far. With that it is half as long as
// a message may be, so that an Event has all of it.
func (j Journal) Ending() string {
	if !j.CleanupFailed() {
		return document.Cut(j.End.Message, document.MaxMessage)
	}
	return j.WithCleanup(j.End.Message, document.MaxMessage/2)
}

// WithCleanup is a sentence about a run's end in so many bytes, with what of the cleanup failed: however
// long the sentence is, that is told.
func (j Journal) WithCleanup(text string, most int) string {
	return j.withMore(text, j.NotCleaned(), most)
}

// Summary is WithCleanup, and what others did meanwhile: all that is kept of a run's end.
func (j Journal) Summary(text string, most int) string {
	j.Message = text // what this says already is not said again
	more := slices.DeleteFunc([]string{j.NotCleaned(), j.ForeignChanges()}, func(s string) bool { return s == "" })
	return j.withMore(text, strings.Join(more, "; "), most)
}

func (j Journal) withMore(text, more string, most int) string {
	more = document.Cut(more, max(most/2, most-len(text)-len("; ")))
	if more == "" || text == "" {
		return document.Cut(text+more, most)
	}
	return document.Cut(text, most-len(more)-len("; ")) + "; " + more
}
