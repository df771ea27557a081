package store

import (
	"sync"
)

// Locks say which started run holds a target or occupies its plan. They are
// rebuilt from the runs themselves, so a restart loses nothing.
type Locks struct {
	mu     sync.Mutex
	holder map[string]string
}

// NewLocks are held by nobody.
func NewLocks() *Locks { return &Locks{holder: map[string]string{}} }

// Take gives all the names to a run, or none and the name of who holds one.
func (l *Locks) Take(run string, names []string) (held, by string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		if h, taken := l.holder[name]; taken && h != run {
			return name, h
		}
	}
	for _, name := range names {
		l.holder[name] = run
	}
	return "", ""
}

// Free gives back all that a run holds, and says what it was.
func (l *Locks) Free(run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, h := range l.holder {
		if h == run {
			delete(l.holder, name)
		}
	}
}
