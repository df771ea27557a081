// Package transition says how the targets of a HibernatePlan are all together, how far they have
// come, and since when each of them, and the plan, is as it is.
package transition

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Overall is the state of all targets in one word. What needs somebody comes first: Failed,
// then Aborted. It is Running while some are at work, or not all have come as far as the
// others. Skipped ones do not count beside others. Without targets it is empty.
func Overall(list []hibernate.TargetStatus) hibernate.State {
	count := map[hibernate.State]int{}
	for _, t := range list {
		count[t.State]++
	}
	for _, first := range []hibernate.State{hibernate.Failed, hibernate.Aborted, hibernate.Running} {
		if count[first] > 0 {
			return first
		}
	}
	for _, all := range []hibernate.State{hibernate.Pending, hibernate.Asleep, hibernate.Awake} {
		switch count[all] {
		case 0:
		case len(list) - count[hibernate.Skipped]:
			return all
		default:
			return hibernate.Running
		}
	}
	if len(list) == 0 {
		return ""
	}
	return hibernate.Skipped
}

// Progress is how many of a plan's targets are where their operation leads.
type Progress struct {
	Operation hibernate.Operation `json:"operation"`
	Done      int                 `json:"done"`  // asleep, or awake
	Total     int                 `json:"total"` // those that were skipped do not count
	Percent   int                 `json:"percent"`
}

// ProgressOf counts targets. They wake once none is to sleep.
func ProgressOf(list []hibernate.TargetStatus) Progress {
	p, there := Progress{Operation: hibernate.Wake}, hibernate.Awake
	counts := func(t hibernate.TargetStatus) bool { return t.State != hibernate.Skipped }
	if slices.ContainsFunc(list, func(t hibernate.TargetStatus) bool {
		older := t.Operation == "" && t.State == hibernate.Asleep // an older agent wrote it
		return counts(t) && (t.Operation == hibernate.Shutdown || older)
	}) {
		p.Operation, there = hibernate.Shutdown, hibernate.Asleep
	}
	for _, t := range list {
		if counts(t) {
			p.Total++
		}
		if t.State == there {
			p.Done++
		}
	}
	if p.Total > 0 {
		p.Percent = 100 * p.Done / p.Total
	}
	return p
}

// String is the progress as status.maint.dev/progress holds it; empty where there are no targets.
func (p Progress) String() string {
	text, err := json.Marshal(p)
	if err != nil || p.Total == 0 {
		return ""
	}
	return string(text)
}

// Targets are the states of targets, each with the instant since which it has its state; was
// is what was said of them before. The instant of a target that goes on as it was stays.
func Targets(was, is []hibernate.TargetStatus, now time.Time) []hibernate.TargetStatus {
	out := slices.Clone(is)
	for i := range out {
		t := &out[i]
		at := slices.IndexFunc(was, func(w hibernate.TargetStatus) bool { return w.Target == t.Target })
		switch {
		case at >= 0 && was[at].State == t.State && was[at].LastTransition != nil:
			t.LastTransition = was[at].LastTransition
		case recorded(*t) != nil:
			t.LastTransition = recorded(*t)
		case at < 0 || was[at].State != t.State:
			t.LastTransition = new(now.UTC().Truncate(time.Second))
		}
	}
	return out
}

// recorded is the instant that the restore data has of the present state; nil: it has none.
func recorded(t hibernate.TargetStatus) *time.Time {
	switch t.State {
	case hibernate.Pending:
		return nil
	case hibernate.Running:
		return t.StartedAt
	}
	return t.FinishedAt
}

// Plan is since when a plan has its phase, as RFC 3339 says it: since before where it had that
// phase already. Empty: nobody has seen it begin.
func Plan(was, is hibernate.Phase, since string, now time.Time) string {
	if was == is {
		return since
	}
	return now.UTC().Format(time.RFC3339)
}
