package store

import (
	"slices"
	"sync"
)

// Locks say which started run holds a target or occupies its plan. They are
// rebuilt from the runs themselves, so a restart loses nothing.
type Locks struct {
	mu        sync.Mutex
	holder    map[string]string
	held      map[string][]string // by run: it is asked at each act
	mayChange map[string]bool     // by run
}

// NewLocks are held by nobody.
func NewLocks() *Locks {
	return &Locks{holder: map[string]string{}, held: map[string][]string{}, mayChange: map[string]bool{}}
}

// TargetLock is what a run holds that may change a target: no run of any namespace that may
// change it works at the same time.
func TargetLock(uid string) string { return "target/" + uid }

// TargetLockOfReaders is the same among runs that may not change it: they keep nobody else from it.
func TargetLockOfReaders(uid string) string { return "target-of-readers/" + uid }

// TargetLockIn is the same for all runs of one namespace.
func TargetLockIn(namespace, uid string) string { return "target-in/" + namespace + "/" + uid }

// MayChange says whether a run may change its target. It is asked once; as long as there is no
// answer, the run counts as one that may. One that may not gives back what it holds as such.
func (l *Locks) MayChange(run, targetUID string, ask func() (bool, error)) bool {
	l.mu.Lock()
	may, known := l.mayChange[run]
	l.mu.Unlock()
	if known {
		return may
	}
	may, err := ask()
	if err != nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mayChange[run] = may
	if name := TargetLock(targetUID); !may && l.holder[name] == run {
		delete(l.holder, name)
		l.held[run] = slices.DeleteFunc(l.held[run], func(held string) bool { return held == name })
	}
	return may
}

// Acquire gives all the names to a run, or none and the name of who holds one.
func (l *Locks) Acquire(run string, names []string) (held, by string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		if h, taken := l.holder[name]; taken && h != run {
			return name, h
		}
	}
	for _, name := range names {
		if l.holder[name] != run {
			l.holder[name], l.held[run] = run, append(l.held[run], name)
		}
	}
	return "", ""
}

// Holds says whether a run holds anything.
func (l *Locks) Holds(run string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held[run]) > 0
}

// Release gives back all that a run holds.
func (l *Locks) Release(run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mayChange, run)
	for _, name := range l.held[run] {
		delete(l.holder, name)
	}
	delete(l.held, run)
}
