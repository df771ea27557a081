package drain

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// Budget is what a drain has to know of a PodDisruptionBudget.
type Budget struct {
	Namespace, Name string
	Version         uint64                  // resourceVersion
	Selector        *selector.LabelSelector // nil picks no pod, an empty one all of the namespace
	MinAvailable    string                  // as written: 2, 50%; empty where it is not
	MaxUnavailable  string
	AlwaysAllow     bool // unhealthyPodEvictionPolicy; false is IfHealthyBudget, the default
	Current         bool // the status speaks of the specification as it is
	SyncFailed      string
	Allowed         int // status.disruptionsAllowed
	CurrentHealthy  int
	DesiredHealthy  int
	ExpectedPods    int
	// Disrupted are the pods, by name, whose eviction the budget counts and whose
	// deletion its controller has not seen, each with the instant of the eviction.
	Disrupted map[string]time.Time
	TooLarge  bool // its selector is not kept, see Bounded
}

// Key is namespace/name.
func (b Budget) Key() string { return b.Namespace + "/" + b.Name }

// Covers says whether a pod counts for the budget.
func (b Budget) Covers(p Pod) bool {
	return b.Namespace == p.Namespace && (b.TooLarge || b.Selector != nil && b.Selector.Matches(p.Labels))
}

// Of are the budgets that cover a pod, by key.
func Of(p Pod, budgets []Budget) []Budget {
	var out []Budget
	for _, b := range budgets {
		if b.Covers(p) {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b Budget) int { return cmp.Compare(a.Key(), b.Key()) })
	return out
}

// Need is what the eviction of a pod needs of its budget.
type Need int

// The needs, as the API server sees them (pkg/registry/core/pod/storage/eviction.go).
const (
	NeedNothing Need = iota // it does not count, or no longer
	NeedRoom                // one of the disruptions that are allowed
	NeedSync                // that the controller looks at the budget again
)

// NeedOf is what evicting p needs of b. Pods that wait, have finished or are
// being deleted pass every budget; one that is not Ready passes a budget that
// always allows it, or whose others are enough.
func NeedOf(p Pod, b Budget) Need {
	switch {
	case p.Finished() || p.Deleting || p.Phase == "Pending":
		return NeedNothing
	case !p.Ready && b.AlwaysAllow:
		return NeedNothing
	case !p.Ready && b.CurrentHealthy >= b.DesiredHealthy && b.DesiredHealthy > 0:
		return NeedNothing
	case !b.Current || b.Allowed < 0:
		return NeedSync
	}
	return NeedRoom
}

// NeedsReplacement says that a pod may leave only once there is one more: one of its budgets
// lets nobody go now. A budget that counts the pod as gone is not tight for it.
func NeedsReplacement(p Pod, budgets []Budget) bool {
	return slices.ContainsFunc(Of(p, budgets), func(b Budget) bool {
		_, counted := b.disrupted(p)
		return NeedOf(p, b) == NeedRoom && b.Allowed <= 0 && !counted
	})
}

// Claim is an eviction that was asked for and may still take of a budget.
type Claim struct {
	Pod      string // name
	Accepted bool
	Deleted  uint64 // version of the pod as it was first seen being deleted, or gone; 0: not seen
}

// Shows says whether the budget's status already counts a claim. It does when it
// names the pod, or was written after the pod was marked as deleted: by then the
// controller had taken the pod off that list.
func (b Budget) Shows(c Claim) bool {
	_, named := b.Disrupted[c.Pod]
	return named || c.Deleted > 0 && b.Version > c.Deleted
}

// When an eviction was cut off, by the API server's own count (DeletionTimeout of
// the disruption controller): it forgets it after two minutes.
const (
	cutOffAfter = 5 * time.Second // the pod should have been seen being deleted by then
	cutOffUntil = time.Minute     // past it, the controller may be about to forget
)

// disrupted is when p was let go, if the budget counts it as gone; not an earlier
// pod of its name.
func (b Budget) disrupted(p Pod) (at time.Time, counted bool) {
	at, named := b.Disrupted[p.Name]
	return at, named && !p.Created.After(at)
}

// cutOff says that p was to be evicted, and the API server ended, or was left,
// between its two writes: the budget counts p as gone, and nobody has deleted it.
// Evicting it again would need room once more; to delete it is what is left to do.
// again is when that may be so, where it is too early to say.
func (b Budget) cutOff(p Pod, now time.Time) (yes bool, again time.Time) {
	at, counted := b.disrupted(p)
	if !counted || p.Deleting {
		return false, time.Time{}
	}
	if now.Before(at.Add(cutOffAfter)) {
		return false, at.Add(cutOffAfter)
	}
	return now.Before(at.Add(cutOffUntil)), time.Time{}
}

// Remaining is how many more pods may be asked for, beside what is claimed.
func Remaining(b Budget, claims []Claim) int {
	room := b.Allowed
	for _, c := range claims {
		if !b.Shows(c) {
			room--
		}
	}
	return max(room, 0)
}
