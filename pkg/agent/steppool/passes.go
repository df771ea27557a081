package steppool

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// longWait is after which time what was asked before a step began is asked again before its first
// pass (a guess: about as long as a live look at policies and pauses counts).
const longWait = 2 * time.Second

// begun is an attempt of a step that the journal says has begun, and of which no pass has come as far
// as its executor.
type begun struct {
	attempt int
	at      time.Time
}

// Began notes the steps that begin by a journal that was just written. What a process before this one
// wrote is not known: its pass may have been made.
func (p *Pool) Began(k types.NamespacedName, was, is run.Journal, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, path := range is.Begins(was) {
		p.begun[store.StepKey{Run: k, Path: path}] = begun{is.Record(path).Attempt, now}
	}
}

// Passes notes that a pass of an attempt comes to its executor: what is done after it is work that has
// begun. It says whether this is the first, and has waited so long, for its place or for another
// cluster, that what holds runs is to be asked again.
func (p *Pool) Passes(s store.StepKey, attempt int, now time.Time) (waitedLong bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, is := p.begun[s]
	delete(p.begun, s)
	return is && b.attempt == attempt && now.Sub(b.at) >= longWait
}

// HeldBack says whether a step that has begun, and of which nothing was done, would not begin now.
func HeldBack(r run.Run, j run.Journal, path string, now time.Time, sig workflow.Signals) bool {
	after, _ := workflow.Advance(r, Again(j, path, now), now, sig)
	rec := after.Record(path)
	return rec == nil || rec.Phase != run.StepRunning || rec.NotBefore != nil
}

// Again is a journal by which a step asks once more what holds it, as another attempt does.
func Again(j run.Journal, path string, now time.Time) run.Journal {
	j.Steps = slices.Clone(j.Steps)
	if rec := j.Record(path); rec != nil && rec.Phase == run.StepRunning && plan.SectionOf(path) == plan.SectionSteps {
		rec.NotBefore = new(now.UTC())
	}
	return j
}

// WithOutcomes is a run with what came of its passes in its journal, not yet written, and how many
// they are. What belongs to another attempt is of no use any more.
func (p *Pool) WithOutcomes(l *store.CachedRun) (*store.CachedRun, int) {
	outcomes := p.Outcomes(l.Key())
	j := l.Journal
	for _, o := range outcomes {
		if j.Attempt(o.Step.Path) == o.Attempt {
			j = o.Note(j)
		}
	}
	return &store.CachedRun{Object: l.Object, Run: l.Run, Journal: j}, len(outcomes)
}
