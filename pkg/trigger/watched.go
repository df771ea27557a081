package trigger

import (
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
)

// watched claims the changes of watched objects, the longest waiting first. What
// cannot be claimed waits in place, and only the latest state of an object does.
func (d *decider) watched() {
	for _, o := range d.f.Watched {
		what := "the change of " + o.Kind + "/" + o.Name
		if d.f.Plan.Intent.Skip.HoldsLabels(d.f.Now) {
			d.wait(d.f.Plan.Spec.DryRun, "%s waits: skipped", what)
			return
		}
		if d.openWatch(o) {
			continue
		}
		if !d.mayClaim(what, d.f.Plan.Spec.DryRun) {
			return
		}
		mark, again, may := o.Checkpoint.Pace(d.f.Now)
		if !may {
			d.wait(d.f.Plan.Spec.DryRun, "%s waits until %s: the object changes again and again, and has had %d runs one after another; from here on it has one in %s", what, again.UTC().Format(time.RFC3339), ledger.WatchBurst, ledger.WatchPeriod)
			d.wakeAt(again)
			continue
		}
		if !d.pacedPlan(what) {
			return
		}
		o.Checkpoint = mark
		d.write(d.out.Ledger.WithCheckpoints(ledger.ObjectCheckpoint{Rule: o.Rule, UID: o.UID, Checkpoint: o.Checkpoint, Gone: o.Event == plan.EventDelete}))
		d.claim(watchRequest(o, d.f))
	}
}

// pacedPlan says whether the plan may have one more run by a label or by what it watches, and
// notes that it has.
func (d *decider) pacedPlan(what string) bool {
	paced, again, may := d.out.Ledger.Pace(d.f.Now)
	if !may {
		d.wait(d.f.Plan.Spec.DryRun, "%s waits until %s: labels and watched changes of this plan have had %d runs one after another; from here on they have one in %s", what, again.UTC().Format(time.RFC3339), ledger.PlanBurst, ledger.PlanPeriod)
		if len(d.f.Plan.Spec.Triggers.Watch) > 0 {
			d.waiting += ". Plans that watch what each other makes never end by themselves"
		}
		d.wakeAt(again)
		return false
	}
	d.write(paced)
	return true
}

// watchRequest is the request that an observed change makes.
func watchRequest(o watchrule.Observed, f Facts) run.Request {
	return run.Request{
		Kind: run.ByWatch, Rule: o.Rule, APIVersion: o.APIVersion, ObjectKind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID,
		Event: o.Event, Ordinal: o.Checkpoint.Ordinal, Body: o.Body, At: f.Now.UTC(), DryRun: f.Plan.Spec.DryRun,
	}
}

// openWatch says whether an earlier change of the object has a claim whose run
// has not begun: until it has, the newer one waits, and is the only one that does.
func (d *decider) openWatch(o watchrule.Observed) bool {
	return slices.ContainsFunc(d.out.Ledger.Open, func(e ledger.Entry) bool {
		if e.Request == nil || e.Request.Rule != o.Rule || e.Request.UID != o.UID {
			return false
		}
		return !slices.ContainsFunc(d.f.Live, func(l ActiveRun) bool { return l.Name == e.Run && l.Phase != run.Pending })
	})
}
