package policy

import (
	"cmp"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// The states of a Behavior.
const (
	ChangesPaused   = "ChangesPaused"
	ChangesUnpaused = "ChangesUnpaused"
)

// ReasonPaused is the reason of a condition ChangesPaused that a pause causes.
const ReasonPaused = "Paused"

// MaxHistory is how many past stretches a Behavior keeps.
const MaxHistory = 5

const (
	mostReason = 256 // bytes of a reason, beside what follows
	// endNotKnown is the reason of a Next whose end was not found yet.
	endNotKnown = "until when is not known yet"
)

// Behavior is what an object's status says of the permission to change it: now,
// next, and what was.
type Behavior struct {
	Current Period   `json:"current"`
	Next    *Period  `json:"next,omitempty"`
	History []Period `json:"history,omitempty"` // newest first
}

// Period is a time without change in the answer. StartTime is absent where it always was so, or where
// that is not known yet; EndTime where it never changes, or, as the reason says then, where that is not known.
type Period struct {
	State     string            `json:"state"`
	Strategy  schedule.Strategy `json:"strategy,omitempty"`
	StartTime *time.Time        `json:"startTime,omitempty"`
	EndTime   *time.Time        `json:"endTime,omitempty"`
	Reason    string            `json:"reason,omitempty"`
}

// Advance is the behavior that follows from a verdict: where the present stretch is
// another than before, the old one goes into the history, ended now at the latest.
func (b *Behavior) Advance(v schedule.Verdict, strategy schedule.Strategy, now time.Time) Behavior {
	next := Behavior{Current: Period{State: stateName(v.Permitted), Strategy: strategy, StartTime: v.Since, EndTime: v.Until, Reason: document.Cut(v.Reason, mostReason)}}
	if v.Next != nil {
		next.Next = &Period{State: stateName(v.Next.Permitted), StartTime: &v.Next.Start, EndTime: v.Next.End}
		if v.Next.Later {
			next.Next.Reason = endNotKnown
		}
	}
	if v.Later != "" {
		next.Current.Reason += schedule.NotKnownYet
	}
	if b == nil || b.Current.State == "" {
		return next
	}
	next.History = b.History
	was := b.Current
	if goesOn(was, next.Current) {
		next.Current.StartTime = cmp.Or(was.StartTime, next.Current.StartTime)
		return next
	}
	if next.Current.StartTime == nil && !v.Unfinished { // somebody said so just now
		next.Current.StartTime = new(now.Truncate(time.Second).UTC())
	}
	was.Reason = strings.TrimSuffix(was.Reason, schedule.NotKnownYet)
	if was.EndTime == nil || was.EndTime.After(now) {
		was.EndTime = new(now.Truncate(time.Second).UTC())
	}
	next.History = append([]Period{was}, b.History...)
	if len(next.History) > MaxHistory {
		next.History = next.History[:MaxHistory]
	}
	return next
}

// goesOn says whether what was published is of the same stretch as what is now.
func goesOn(was, is Period) bool {
	began := is.StartTime == nil || schedule.SameInstant(was.StartTime, is.StartTime)
	if was.StartTime == nil && is.StartTime != nil { // it was not known yet
		began = was.EndTime == nil || is.StartTime.Before(*was.EndTime)
	}
	return began && was.State == is.State && was.Strategy == is.Strategy &&
		strings.TrimSuffix(was.Reason, schedule.NotKnownYet) == strings.TrimSuffix(is.Reason, schedule.NotKnownYet)
}

// Verdict is what was published, as far as it was: at which instant does not matter, and
// whether it was ready is not in it.
func (b Behavior) Verdict() schedule.Verdict {
	reason, later := strings.CutSuffix(b.Current.Reason, schedule.NotKnownYet)
	v := schedule.Verdict{
		Permitted: b.Current.State == ChangesUnpaused, Ready: true, Reason: reason,
		Since: b.Current.StartTime, Until: b.Current.EndTime,
	}
	if later {
		v.Later = schedule.NotKnownYet
	}
	if n := b.Next; n != nil && n.StartTime != nil {
		v.Next = &schedule.Following{Permitted: n.State == ChangesUnpaused, Start: *n.StartTime, End: n.EndTime, Later: n.Reason == endNotKnown}
	}
	return v
}

func stateName(permitted bool) string {
	if permitted {
		return ChangesUnpaused
	}
	return ChangesPaused
}

// AskAgain is when what a verdict says may be another: where something is looked for later, soon; nil: it
// does not change by itself.
func AskAgain(v schedule.Verdict, now time.Time) *time.Time {
	soon := now.Add(schedule.SearchAgain)
	if v.Unfinished && (v.Until == nil || soon.Before(*v.Until)) {
		return &soon
	}
	return v.Until
}
