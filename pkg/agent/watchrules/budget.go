package watchrules

import "sync"

// Bounds of what the rules of several plans keep of their objects for `when`, beside
// plan.MaxWatchedBytes of each plan (guesses: an eighth and a quarter of what the agent may
// take in its manifest).
const (
	maxKeptOfNamespace = 32 << 20
	maxKept            = 64 << 20
)

// memoryBudget is what all rules keep of their objects.
type memoryBudget struct {
	mu          sync.Mutex
	all         int
	byNamespace map[string]int
}

// change notes that a plan keeps so many bytes more, or less. Where that is too much, it
// says whose it is, and how much they may keep.
func (k *memoryBudget) change(namespace string, by int) (whose string, most int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all += by
	if k.byNamespace[namespace] += by; k.byNamespace[namespace] == 0 {
		delete(k.byNamespace, namespace)
	}
	switch {
	case by <= 0:
		return "", 0
	case k.byNamespace[namespace] > maxKeptOfNamespace:
		return "the plans of a namespace", maxKeptOfNamespace
	case k.all > maxKept:
		return "all plans", maxKept
	}
	return "", 0
}

// account notes what a plan's rules keep now. A rule that makes it too much is closed, which
// its plan has to say. The subscription is locked.
func (r *Controller) account(wp *subscription, id string) (closed bool) {
	if wp.dropped {
		return false
	}
	note := func() (whose string, most int) {
		by := wp.tracker.Kept() - wp.kept
		wp.kept += by
		return r.budget.change(wp.key.Namespace, by)
	}
	whose, most := note()
	if whose == "" {
		return false
	}
	wp.tracker.StopRule(id, whose, most)
	note()
	return true
}

// forget gives back what a plan's rules kept.
func (r *Controller) forget(wp *subscription) {
	wp.mu.Lock()
	defer wp.mu.Unlock()
	if !wp.dropped {
		r.budget.change(wp.key.Namespace, -wp.kept)
		wp.dropped, wp.kept = true, 0
	}
}
