package hibernation

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
)

// slowPasses are the targets whose pass is not over: none has two at a time.
type slowPasses struct {
	group sync.WaitGroup
	mu    sync.Mutex
	at    map[passOf]bool
}

type passOf struct {
	plan   types.NamespacedName
	target string
}

func (s *slowPasses) begin(plan types.NamespacedName, target string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := passOf{plan, target}
	if s.at[one] {
		return false
	}
	if s.at == nil {
		s.at = map[passOf]bool{}
	}
	s.at[one] = true
	return true
}

func (s *slowPasses) end(plan types.NamespacedName, target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, passOf{plan, target})
}

// passResults are what came of passes until somebody took it.
type passResults struct {
	mu     sync.Mutex
	again  time.Time
	faults []error
	closed bool
}

// add takes in what came of a pass; false: it is too late for that.
func (r *passResults) add(again time.Time, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.again = queue.Soonest(r.again, again)
	r.faults = append(r.faults, err)
	return true
}

func (r *passResults) taken() (time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.again, errors.Join(r.faults...)
}
