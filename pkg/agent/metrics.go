package agent

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/metrics"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
)

// exportTroubles has the metrics say what is wrong with which object.
func (a *Agent) exportTroubles() {
	a.metrics.CountTroubles(metrics.Troubles{
		Leading:      func() bool { return !a.lookingSince().IsZero() },
		Plans:        a.controllers.plans.Troubles,
		Hibernations: a.controllers.hibernation.Troubles,
		Slept:        a.controllers.hibernation.Slept,
		Drains:       a.blockedDrains,
		Gates:        a.controllers.gates.Enforced,
		Now:          a.options.Now,
	})
}

// blockedDrains are those of steps at work, as their runs remember them.
func (a *Agent) blockedDrains() []metrics.BlockedDrain {
	live := a.memory.runs.Filter(func(l *store.LiveRun) bool { return l.Broken == nil && !l.Head.Request.DryRun })
	var out []metrics.BlockedDrain
	for _, l := range live {
		for _, rec := range l.Journal.Steps {
			m := rec.Draining()
			for _, t := range append(m.Nodes, m.Elsewhere...) {
				if t.Blocked || t.Yielded {
					out = append(out, metrics.BlockedDrain{Namespace: l.Object.Namespace, Plan: l.Head.Plan, Node: t.Name})
				}
			}
		}
	}
	return out
}
