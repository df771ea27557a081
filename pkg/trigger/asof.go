package trigger

import (
	"fmt"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Earlier is what was found of an earlier run whose snapshot is to run again.
type Earlier struct {
	Name    string  // as it was asked for
	Run     run.Run // where it may run again
	Refused string  // why it may not; empty: it may
}

// AsOf names the earlier run that the next claim needs; empty: none. Whoever decides
// looks for it, and puts what was found into Earlier.
func (f Facts) AsOf() string {
	if o := f.Plan.Intent.Asked; o.AsOf != "" && o.Token == f.Plan.Intent.Token && (f.State.Ledger == nil || !f.State.Ledger.KnowsToken(o.Token)) {
		return o.AsOf
	}
	if f.State.Ledger == nil || f.State.Ledger.Last == nil || f.Plan.Intent.Retry != (intent.RunRef{Run: f.State.Ledger.Last.Name}) || f.State.Ledger.KnowsToken(retryToken(f.State.Ledger.Last.Name)) {
		return ""
	}
	return f.State.Ledger.Last.Request.AsOf
}

// CheckEarlier says why a run of the plan may not run again; empty: it may. Account and
// target stay those of the plan as it stands: who may ask for a run may not choose
// another account by it, and the claim holds the target that the plan has now.
func (f Facts) CheckEarlier(r run.Run, j run.Journal) string {
	was, is := plan.Account(r.Spec), plan.Account(f.Plan.Spec)
	switch {
	case r.Plan != f.Plan.Name:
		return fmt.Sprintf("run %s is of plan %s", r.Name, r.Plan)
	case r.PlanUID != f.Plan.UID:
		return fmt.Sprintf("run %s is of an earlier plan of that name, which was deleted", r.Name)
	case !j.Phase.Ended():
		return fmt.Sprintf("run %s has not ended", r.Name)
	case was != is:
		return fmt.Sprintf("run %s worked as ServiceAccount %s, and the plan now names %s: a rollback does not change the account", r.Name, was, is)
	case said(r.Spec.Target) != said(f.Plan.Spec.Target):
		return fmt.Sprintf("run %s was about %s, and the plan now is about %s: a rollback does not change the target", r.Name, said(r.Spec.Target), said(f.Plan.Spec.Target))
	}
	if step := f.unasked(r); step != "" {
		return fmt.Sprintf("the steps of the plan now ask for approval (%s), and those of run %s do not ask as they do: set requiresApproval: true on the plan, so that the rollback itself waits for an approval, or name a run that asks", step, r.Name)
	}
	return ""
}

func said(target *plan.ObjectRef) string {
	if target == nil {
		return "no target"
	}
	return target.APIVersion + " " + target.String()
}

// SpecAsOf is what an earlier run did, under the rules of the plan as it stands: which
// requests run, when change is permitted, who approves, and how long history is kept are
// not taken from the run. Else whoever may ask for a run could undo a gate or an approval.
func SpecAsOf(now, earlier plan.Spec) plan.Spec {
	out := now
	out.Description, out.Parameters, out.MaxDuration, out.RetryLimit = earlier.Description, earlier.Parameters, earlier.MaxDuration, earlier.RetryLimit
	out.OnDrift, out.HoldOwners, out.FreezeTarget = earlier.OnDrift, earlier.HoldOwners, earlier.FreezeTarget
	out.Steps, out.OnFailure, out.Finally = earlier.Steps, earlier.OnFailure, earlier.Finally
	return out
}

// RunAsOf is the run of a claim that goes back to an earlier run: what that did, with the
// templates and the watched object that it had.
func (f Facts) RunAsOf(e ledger.Entry, earlier run.Run) run.Run {
	f.Plan.Spec = SpecAsOf(f.Plan.Spec, earlier.Spec)
	r := f.NewRun(e, earlier.Templates)
	r.Watched = earlier.Watched
	return r
}

// goBack gives a request what it takes from the earlier run that it names. Where that may
// not run again, the request ends without a run: it is not left to hold up the next one.
func (d *decider) goBack(r *run.Request) bool {
	e := d.f.State.Earlier
	switch {
	case e == nil || e.Name != r.AsOf: // nobody has looked for it yet
		d.wait(r.DryRun, "the rollback waits until run %s is looked for", r.AsOf)
		return false
	case e.Refused == "":
		r.Parameters = e.Run.Request.Parameters
		return true
	}
	d.write(d.out.Ledger.WithToken(r.Token).NotRun(d.f.NameOf(*r), *r, run.ReasonRefused, e.Refused, d.f.Now))
	d.out.Status.NotRun = e.Refused
	return false
}
