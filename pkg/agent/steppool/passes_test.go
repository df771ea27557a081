package steppool

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// What holds runs is asked again before the first pass of an attempt that this process began, where
// that has waited long; any other is of work that has begun.
func TestBeforeWhichPassesIsAskedAgain(t *testing.T) {
	k, began := types.NamespacedName{Namespace: "shop", Name: "r"}, time.Date(2026, 3, 2, 22, 0, 0, 0, time.UTC)
	s := store.StepKey{Run: k, Path: "hook"}
	journal := func(attempt int) run.Journal {
		return run.Journal{Steps: []run.Record{{Path: "hook", Phase: run.StepRunning, Attempt: attempt}}}
	}
	for name, c := range map[string]struct {
		before  func(p *Pool)
		attempt int
		after   time.Duration
		want    bool
	}{
		"the first, after a minute":            {attempt: 1, after: time.Minute, want: true},
		"the first, at once":                   {attempt: 1, after: time.Second},
		"the second":                           {before: func(p *Pool) { p.Passes(s, 1, began) }, attempt: 1, after: time.Minute},
		"one of another attempt":               {attempt: 2, after: time.Minute},
		"one of a run that was let go":         {before: func(p *Pool) { p.Forget(k) }, attempt: 1, after: time.Minute},
		"the first of the attempt after it":    {before: func(p *Pool) { p.Passes(s, 1, began); p.Began(k, journal(1), journal(2), began) }, attempt: 2, after: time.Minute, want: true},
		"one after a write that began no step": {before: func(p *Pool) { p.Passes(s, 1, began); p.Began(k, journal(1), journal(1), began) }, attempt: 1, after: time.Minute},
	} {
		p := New(func(types.NamespacedName) {}, queue.NewEvaluations(time.Now, nil))
		p.Began(k, run.Journal{}, journal(1), began)
		if c.before != nil {
			c.before(p)
		}
		if got := p.Passes(s, c.attempt, began.Add(c.after)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
