package factory

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// NoRetry says why a run cannot be retried, whatever else of its plan is active; empty: it can. l is
// its plan's ledger, nil if there is none. The agent goes by the same rule.
func (e Env) NoRetry(r view.Run, l *ledger.Ledger) string {
	anew := e.Suggest().Ask(r.Run.Plan, r.Run.Request.AsOf, FlagsAsAsked(r.Run.Request))
	switch p := r.Journal.Phase; {
	case !p.Ended():
		return fmt.Sprintf("run %s is %s: only a Failed or Aborted run can be retried; %s shows how far it is", r.Run.Name, p, e.Suggest().StatusOf(r.Run.Name))
	case p != run.Failed && p != run.Aborted:
		return fmt.Sprintf("run %s is %s: only a Failed or Aborted run can be retried; ask for a new one with %s", r.Run.Name, p, anew)
	case r.Journal.StartedAt == nil:
		return fmt.Sprintf("run %s never started: ask for a new one with %s", r.Run.Name, anew)
	case r.Run.Request.DryRun:
		return fmt.Sprintf("run %s was a dry run, which changed nothing that a retry could repeat: ask for a new one with %s", r.Run.Name, anew)
	case l != nil && l.Last != nil && l.Last.Name != r.Run.Name:
		return fmt.Sprintf("run %s is not the newest of its plan: that is %s (%s)", r.Run.Name, l.Last.Name, l.Last.Phase)
	}
	return ""
}

// GivenFlags is remedy.Given.
func GivenFlags(f *pflag.FlagSet, but ...string) string { return remedy.Given(f, but...) }

// FlagsAsAsked is remedy.AsAsked of a request.
func FlagsAsAsked(r run.Request) string { return remedy.AsAsked(r.AsOf, r.Parameters, r.DryRun) }
