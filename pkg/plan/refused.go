package plan

import (
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// maxRefused bounds what a ledger keeps of the API server's words.
const maxRefused = 256

// Refuse notes on an open claim why the API server does not take its run now;
// empty words take the note away.
func (l Ledger) Refuse(run, why string) Ledger {
	l.Open = slices.Clone(l.Open)
	for i := range l.Open {
		if l.Open[i].Run == run {
			l.Open[i].Refused = Cut(why, maxRefused)
		}
	}
	return l
}

// refused are the claims whose runs the API server does not take now.
func (d *decider) refused() []Entry {
	var out []Entry
	for _, e := range d.out.Ledger.Open {
		alive := slices.ContainsFunc(d.f.Live, func(l Live) bool { return l.Name == e.Run })
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
				d.write(d.out.Ledger.Close(e.Run, Missed, ReasonRefused, nil, d.f.Now))
			}
			d.wakeAt(late)
		case e.Kind == ByLabel && d.labelWithdrawn(*e.Request):
			d.write(d.out.Ledger.Close(e.Run, Skipped, ReasonAborted, nil, d.f.Now))
		}
	}
}

// labelWithdrawn says whether the target shows that a request was taken back.
func (d *decider) labelWithdrawn(r Request) bool {
	t := d.f.Target
	if t == nil || t.UID != r.TargetUID || t.Version != 0 && t.Version < d.out.Ledger.Labels[r.Label].Version {
		return false
	}
	have, present := t.Labels[r.Label]
	return !present || have.Value != r.Value
}

// supersedeRefused gives up the slots whose runs are refused when a newer one falls
// due.
func (d *decider) supersedeRefused() {
	for _, e := range d.refused() {
		if e.Slot != nil {
			d.write(d.out.Ledger.Close(e.Run, Missed, ReasonSuperseded, nil, d.f.Now))
		}
	}
}

// sayRefused says of the oldest such claim what it waits for.
func (d *decider) sayRefused() {
	for _, e := range d.refused() {
		d.out.Refused = asking(*e.Request) + " waits: the API server does not take its run: " + e.Refused
		d.waiting = d.out.Refused
		return
	}
}

// asking names what asked for a run.
func asking(r Request) string {
	switch r.Kind {
	case ByLabel:
		return "label " + r.Label
	case ByWatch:
		return "the change of " + r.ObjectKind + "/" + r.Name
	case BySchedule:
		return "the slot " + r.Slot.UTC().Format(time.RFC3339)
	case ByCreation:
		return "the run at creation"
	}
	return "the trigger"
}
