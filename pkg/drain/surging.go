package drain

import (
	"slices"
	"time"
)

// computedFor is how long a budget may take to count a replacement that has become Ready (a guess).
const computedFor = 10 * time.Second

// SurgeAgain is after how many surges of a pod that were impossible the next is tried: somebody may
// have made room, and nobody says so. The pauses double up to an hour (a guess).
func SurgeAgain(failed int) time.Duration {
	return min(5*time.Minute<<min(max(failed-1, 0), 10), time.Hour)
}

// makesRoom is another pod whose replacement is on its way under a budget that lets nobody go now,
// and covers p, too. One replica more lets one pod go at a time: p goes by it later, or gets a
// replacement of its own then.
func (d *decider) makesRoom(p Pod) (other string) {
	if !NeedsReplacement(p, d.view.Budgets) {
		return ""
	}
	over := Of(p, d.view.Budgets)
	for _, j := range d.leaving {
		if j.UID != p.UID && !j.Deleting && d.surges(j.Pod) && len(Of(j.Pod, over)) > 0 {
			return j.Pod.String()
		}
	}
	return ""
}

// surges says whether a pod's replacement is on its way, or was asked for just now.
func (d *decider) surges(p Pod) bool {
	if slices.ContainsFunc(d.decision.Requests.Surge, func(o Pod) bool { return o.UID == p.UID }) {
		return true
	}
	r, begun := d.view.Replacements[p.UID]
	switch {
	case !begun || r.Impossible || r.Behind || !r.Unneeded.IsZero():
		return false
	case r.Ready:
		counted := r.ReadyAt.Add(computedFor)
		d.wake(counted)
		return d.view.Now.Before(counted)
	}
	return true
}
