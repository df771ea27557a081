package agent

import (
	"slices"
	"strings"
	"sync"
)

func sortRuns(rs []*liveRun) {
	slices.SortFunc(rs, func(a, b *liveRun) int {
		if c := a.run.Request.At.Compare(b.run.Request.At); c != 0 {
			return c
		}
		return strings.Compare(a.object.Name, b.object.Name)
	})
}

// locks say which started run holds a target or occupies its plan. They are
// rebuilt from the runs themselves, so a restart loses nothing.
type locks struct {
	mu     sync.Mutex
	holder map[string]string
}

// take gives all the names to a run, or none and the name of who holds one.
func (l *locks) take(run string, names []string) (held, by string) {
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

// free gives back all that a run holds, and says what it was.
func (l *locks) free(run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, h := range l.holder {
		if h == run {
			delete(l.holder, name)
		}
	}
}
