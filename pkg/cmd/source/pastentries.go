package source

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/calendar"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// past is the recorded past of a plan in a cluster; the zero value is for a plan in a file.
type past struct {
	created time.Time
	bySlot  map[int64]ledger.Entry // single entries by their slot's second
	folded  []ledger.Entry         // entries for several slots, from First to Last
	seen    time.Time              // slots up to here have ended; zero: the agent has not seen the plan
	hidden  bool                   // there is a ledger that cannot be read
	unread  bool                   // the same, or its older entries cannot be read
	asleep  time.Time              // since when it sleeps, by its status; zero: it does not
}

func pastOf(cm *corev1.ConfigMap, kept view.Ledger) past {
	p := past{created: cm.CreationTimestamp.Time, bySlot: map[int64]ledger.Entry{}, hidden: kept.Hidden(), unread: kept.Unread != nil}
	p.asleep, _ = time.Parse(time.RFC3339, cm.Annotations[annotations.StatusAsleep]) // zero without one
	closed := kept.Closed
	if kept.Head != nil {
		p.seen, closed = kept.Head.Watermark, slices.Concat(closed, kept.Head.Open)
	}
	for _, e := range closed {
		switch {
		case e.Count > 1 && e.First != nil && e.Last != nil:
			p.folded = append(p.folded, e)
		case e.Slot != nil:
			p.bySlot[e.Slot.Unix()] = e
		}
	}
	return p
}

// after is from when on entries exist: not before the creation of the plan.
func (p past) after(from time.Time) time.Time {
	if p.created.After(from) {
		return p.created
	}
	return from
}

// covers says whether an instant is in the recorded past.
func (p past) covers(at, now time.Time) bool { return !p.created.IsZero() && at.Before(now) }

// note adds to a past entry how it ended, as far as that is recorded.
func (p past) note(e *calendar.Entry) {
	found, ok := p.find(e.Start)
	if !ok {
		if e.Note == "" && e.Kind == calendar.Slot {
			e.Idle, e.Note = p.unrecorded(e.Start)
		}
		return
	}
	if e.Kind == calendar.Sleep && found.Result == run.Ran && found.DryRun {
		e.Note, e.Idle = view.JoinNote(e.Note, view.DryRun), true
		return
	}
	if e.Kind == calendar.Sleep && found.Result == run.Ran {
		if text := sleptWords(found); text != "" {
			e.Note, e.Idle = view.JoinNote(e.Note, text), len(found.Slept) == 0
		}
		return
	}
	e.Note = pastWords(found)
	e.Idle = found.Result == run.Skipped || found.Result == run.Missed
	e.Failed = !found.DryRun && (found.Result == run.Missed || found.Outcome != nil && found.Outcome.Phase == run.Failed)
	if found.DryRun {
		e.Note = view.DryRun + ": " + e.Note
	}
}

// unrecorded says of a slot without an entry what is known, and whether nothing began at it.
func (p past) unrecorded(at time.Time) (idle bool, note string) {
	switch {
	case !p.hidden && at.After(p.seen):
		return true, "the agent has not looked at it"
	case p.unread:
		return false, "how it ended cannot be read"
	}
	return false, "how it ended is not kept"
}

func (p past) find(at time.Time) (ledger.Entry, bool) {
	if e, ok := p.bySlot[at.Unix()]; ok {
		return e, true
	}
	for _, e := range p.folded {
		if !at.Before(*e.First) && !at.After(*e.Last) {
			return e, true
		}
	}
	return ledger.Entry{}, false
}

// pastWords say how a slot ended, on one line: Failed at migrate: exit code 1.
func pastWords(e ledger.Entry) string {
	switch o := e.Outcome; {
	case e.Result == run.Ran && o != nil && o.Phase != run.Succeeded:
		step := ""
		if o.Step != "" {
			step = " at " + o.Step
		}
		return string(o.Phase) + step + view.Colon(o.Message)
	case e.Result == run.Ran && o != nil:
		return fmt.Sprintf("%s in %s%s", o.Phase, o.Duration.Round(time.Second), view.Colon(o.Message))
	case e.Result == run.Open:
		return "its run is not over" + view.Prefix(": ", e.Run)
	}
	return string(e.Result) + view.Colon(cmp.Or(e.Kept(), e.Reason))
}

// sleptWords say what slept; empty: not known yet, or noted on the last entry of a longer sleep.
func sleptWords(e ledger.Entry) string {
	switch {
	case len(e.Slept) > 0:
	case e.EndedAt != nil:
		return "nothing slept"
	default:
		return ""
	}
	n := 0
	for _, s := range e.Slept {
		n += s.Resources
	}
	return view.Counted(n, "resource") + " slept"
}
