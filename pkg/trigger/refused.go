package trigger

import (
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// refused are the claims whose runs the API server does not take now.
func (d *decider) refused() []ledger.Entry {
	var out []ledger.Entry
	for _, e := range d.out.Ledger.Open {
		alive := slices.ContainsFunc(d.f.Live, func(l ActiveRun) bool { return l.Name == e.Run })
		if e.Refused != "" && e.Request != nil && !alive {
			out = append(out, e)
		}
	}
	return out
}

// occupying is how many claims take up the plan: one whose run is refused waits
// without it, so that it holds up nobody else for ever.
func (d *decider) occupying() int { return len(d.out.Ledger.Open) - len(d.refused()) }

// giveUpRefused ends the claims that need wait no longer: a slot's when its deadline
// has passed, a label's when the label was taken away. The others wait without end.
func (d *decider) giveUpRefused() {
	for _, e := range d.refused() {
		switch {
		case e.Slot != nil:
			late := d.tooLateAt(schedule.Slot{At: *e.Slot, Index: e.Request.Schedule})
			if !d.f.Now.Before(late) {
				d.write(d.out.Ledger.Close(e.Run, run.Missed, run.ReasonRefused, nil, d.f.Now))
			}
			d.wakeAt(late)
		case e.Kind == run.ByLabel && d.labelWithdrawn(*e.Request):
			d.write(d.out.Ledger.Close(e.Run, run.Skipped, run.ReasonAborted, nil, d.f.Now))
		}
	}
}

// labelWithdrawn says whether the target shows that a request was taken back.
func (d *decider) labelWithdrawn(r run.Request) bool {
	t := d.f.Target
	if t == nil || t.UID != r.TargetUID || t.Version != 0 && t.Version < d.out.Ledger.Labels[r.Label].Version {
		return false
	}
	have, present := t.Labels[r.Label]
	return !present || have.Value != r.Value
}

// supersedeRefused gives up the slots whose runs are refused when a newer one falls
// due.
func (d *decider) supersedeRefused(newer run.Request) {
	for _, e := range d.refused() {
		if e.Slot != nil && mayYield(*e.Request, newer) {
			d.write(d.out.Ledger.Close(e.Run, run.Missed, run.ReasonSuperseded, nil, d.f.Now))
		}
	}
}

// sayRefused says of the oldest such claim what it waits for.
func (d *decider) sayRefused() {
	for i, e := range d.refused() {
		d.acts = d.acts || !e.Request.DryRun
		if i == 0 && d.isWithinQuota(asking(*e.Request), e.Request.DryRun) { // else it is not even tried
			d.out.Status.Refused = asking(*e.Request) + " waits: the API server refuses its run: " + e.Refused
			d.waiting = d.out.Status.Refused
		}
	}
}

// asking names what asked for a run.
func asking(r run.Request) string {
	switch r.Kind {
	case run.ByLabel:
		return "label " + r.Label
	case run.ByWatch:
		return "the change of " + r.ObjectKind + "/" + r.Name
	case run.BySchedule:
		return "the slot " + r.Slot.UTC().Format(time.RFC3339)
	case run.ByCreation:
		return "the run at creation"
	}
	return "the trigger"
}
