package run

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// What a pending run waits for.
const (
	WaitWindow   = "window"
	WaitApproval = "approval"
	WaitQueue    = "queue"
	WaitLock     = "lock"
	WaitJitter   = "jitter"
	WaitPause    = "pause"
	WaitClock    = "clock"     // its clock is in doubt; an earlier version wrote queue
	WaitNotReady = "not-ready" // what it needs cannot be read; an earlier version wrote queue
)

// Start is the journal of a run that begins now.
func (j Journal) Start(now time.Time) Journal {
	j.Phase, j.Waiting, j.Message, j.Section = Running, "", "", plan.SectionSteps
	j.StartedAt = new(now.UTC())
	return j
}

// EndUnstarted is the journal of a run whose wait ends without a start: neither
// onFailure nor finally runs, for nothing was done.
func (j Journal) EndUnstarted(end End, now time.Time) Journal {
	j.Steps = append([]Record(nil), j.Steps...)
	for i := range j.Steps {
		j.Steps[i].Phase, j.Steps[i].Attempt = StepSkipped, 0
	}
	j.End, j.Section, j.Message, j.Waiting = &end, plan.SectionClosing, end.Message, ""
	return j
}

// Finish is the journal of a run that is over.
func (j Journal) Finish(now time.Time) Journal {
	j.Phase, j.FinishedAt, j.Waits = Failed, new(now.UTC()), ""
	if j.End != nil {
		j.Phase, j.Message = j.End.Phase, j.Ending()
	}
	if j.Phase == Succeeded && j.Message == "" {
		j.Message = document.Cut("all steps are done"+j.emptyRollouts(), document.MaxMessage)
	}
	return j
}

// Finished is the run's journal when the run is over. That of a dry run says so, for
// its message stands where nothing else does.
func (r Run) Finished(j Journal, now time.Time) Journal {
	j = j.Finish(now)
	if text := j.ForeignChanges(); text != "" {
		j.Message = j.withMore(j.Message, text, document.MaxMessage)
	}
	switch {
	case !r.Request.DryRun:
	case j.Phase == Succeeded:
		j.Message = document.Cut("dry run, nothing was changed: "+j.Message, document.MaxMessage)
	default:
		j.Message = document.Cut("dry run: "+j.Message, document.MaxMessage)
	}
	return j
}

// ReasonTornAway is how a run ends whose object was taken away against its finalizer.
const ReasonTornAway = "TornAway"

// RestoresAt says whether a step puts back what it found when its run ends.
func (r Run) RestoresAt(path string) bool {
	step, _ := r.Tree().Find(path)
	return plan.Restores(step)
}

// EndsWithWork says whether something would have been done at a run's end; of a run
// whose text is not known, it may have been.
func (r Run) EndsWithWork(j Journal) bool {
	if len(r.Spec.Steps) == 0 {
		return true
	}
	holdsNodes := slices.ContainsFunc(j.Steps, func(rec Record) bool { return rec.Type == plan.TypeCordon || rec.Type == plan.TypeDrain })
	return holdsNodes || len(r.Spec.OnFailure)+len(r.Spec.Finally) > 0
}

// WithoutOutputs is a journal without outputs of so many bytes, the largest first: what
// outgrows its place goes with a mark, and the run goes on.
func (j Journal) WithoutOutputs(bytes int) Journal {
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

// CapOutputs keeps the journal within its caps: a step's outputs that are too
// large, or that no longer fit in the run's share, are replaced by a mark.
func CapOutputs(j *Journal) {
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

// BeginsStep says whether a step, or another attempt of one, is to begin by this journal
// that was not at work by an earlier one.
func (j Journal) BeginsStep(was Journal) bool { return len(j.Begins(was)) > 0 }

// Begins are the paths of these steps. What cleans up waits for nobody.
func (j Journal) Begins(was Journal) (paths []string) {
	if j.Section != plan.SectionSteps && j.Section != "" {
		return nil
	}
	before := make(map[string]Record, len(was.Steps))
	for _, rec := range was.Steps {
		if rec.Phase == StepRunning {
			before[rec.Path] = rec
		}
	}
	for _, rec := range j.Steps {
		b, ran := before[rec.Path]
		if rec.Phase == StepRunning && (!ran || b.Attempt != rec.Attempt || b.NotBefore != nil && rec.NotBefore == nil) {
			paths = append(paths, rec.Path)
		}
	}
	return paths
}

// Attempt is the present attempt of a step; 0 where the journal knows none.
func (j Journal) Attempt(path string) int {
	if rec := j.Record(path); rec != nil {
		return rec.Attempt
	}
	return 0
}

// AtWork says whether an attempt of a step is at work.
func (j Journal) AtWork(path string, attempt int) bool {
	rec := j.Record(path)
	return rec != nil && rec.Phase == StepRunning && rec.Attempt == attempt
}

// Untouched says whether a step that has begun waits for what somebody has to give, and has done nothing yet.
func (r Record) Untouched() bool {
	return r.Waits != "" && r.Before == nil && r.Memory == nil && len(r.Changed) == 0
}

// Idle says whether nothing was done yet of the step at a path that has begun. Of what cleans up none is: it
// waits for nobody.
func (j Journal) Idle(path string) bool {
	rec := j.Record(path)
	return rec != nil && rec.Untouched() && plan.SectionOf(path) == plan.SectionSteps
}

// BetweenSteps says whether a run has no step at work, or holds steps that may
// begin, or be tried again, beside those at work: where it does not go on, a pause or a gate holds it.
func (j Journal) BetweenSteps() bool {
	if j.Section != plan.SectionSteps {
		return false
	}
	beside := func(r Record) bool {
		return r.Phase == StepRunning && (plan.IsLoop(r.Type) || r.NotBefore != nil || r.Waits != "") || r.Phase == StepPending && strings.Contains(r.Path, "/")
	}
	return slices.ContainsFunc(j.Steps, beside) || !slices.ContainsFunc(j.Steps, func(r Record) bool { return r.Phase == StepRunning })
}

// The ends of a restore.
const (
	RestoreDone    = "done"
	RestoreChanged = "changed" // somebody changed it meanwhile; theirs stays
	RestoreGone    = "gone"
	RestoreHanded  = "handed" // another run set it since, and puts it back
	RestoreFailed  = "failed"
)
