package queue

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// shares bound how many keys of one namespace are looked at at once. What is beyond waits
// here, and keeps no worker.
type shares struct {
	most int

	mu      sync.Mutex
	atWork  map[string]int
	waiting map[string][]types.NamespacedName // the longest first
	waits   map[types.NamespacedName]bool     // the same, whatever their namespace
	granted map[types.NamespacedName]bool     // a place was handed over to it
}

func newShares(most int) *shares {
	return &shares{most: most, atWork: map[string]int{}, waiting: map[string][]types.NamespacedName{}, waits: map[types.NamespacedName]bool{}, granted: map[types.NamespacedName]bool{}}
}

// enter says whether a key may be looked at now. If not it waits for a place of its
// namespace.
func (s *shares) enter(k types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.granted[k]:
		delete(s.granted, k)
		return true
	case s.atWork[k.Namespace] < s.most:
		s.atWork[k.Namespace]++
		return true
	case !s.waits[k]:
		s.waits[k] = true
		s.waiting[k.Namespace] = append(s.waiting[k.Namespace], k)
	}
	return false
}

// count is how many keys wait here.
func (s *shares) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waits)
}

// leave gives a place back, or hands it over to the key that has waited longest: that one is
// to be enqueued, and nobody overtakes it meanwhile.
func (s *shares) leave(namespace string) (next types.NamespacedName, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if list := s.waiting[namespace]; len(list) > 0 {
		if s.waiting[namespace] = list[1:]; len(list) == 1 {
			delete(s.waiting, namespace)
		}
		delete(s.waits, list[0])
		s.granted[list[0]] = true
		return list[0], true
	}
	if s.atWork[namespace]--; s.atWork[namespace] == 0 {
		delete(s.atWork, namespace)
	}
	return types.NamespacedName{}, false
}
