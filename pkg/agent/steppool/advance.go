package steppool

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// AdvancesAt is when a run that has conditions may be advanced, where the expressions of its namespace have
// taken too much; zero: now.
func (p *Pool) AdvancesAt(l *store.CachedRun, now time.Time) time.Time {
	pause := p.evaluations.RefilledIn(l.Key().Namespace)
	if pause == 0 || !hasConditions(l.Run) {
		return time.Time{}
	}
	return now.Add(pause)
}

// Advance is workflow.Advance of a run, from a journal. Conditions are evaluated in the turn of its
// namespace.
func (p *Pool) Advance(l *store.CachedRun, from run.Journal, now time.Time, sig workflow.Signals) (j run.Journal, next workflow.Action) {
	if !hasConditions(l.Run) {
		return workflow.Advance(l.Run, from, now, sig)
	}
	p.evaluations.Measure(l.Key().Namespace, func() { j, next = workflow.Advance(l.Run, from, now, sig) })
	return j, next
}

// hasConditions says whether an expression decides which steps of a run are done.
func hasConditions(r run.Run) (found bool) {
	r.Tree().Walk(func(s plan.Step) { found = found || s.If != "" && s.If != plan.IfAlways })
	return found
}
