package gates

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// HeldObject is a gated object as it was last left.
type HeldObject struct {
	store.Subject
	Namespace, Name string
	uid             types.UID
	closed, wanted  bool
}

// backoff counts how often somebody opened what was closed, so that two that
// undo each other do not do so as fast as they can.
type backoff struct {
	times int
	last  time.Time
}

// maxBackoff is how long an object that was opened against its gate is left so,
// and how long it takes until that is forgotten (guesses).
const (
	maxBackoff   = 5 * time.Minute
	backoffReset = 15 * time.Minute
)

func (u backoff) next() time.Time {
	if u.times < 2 { // a person's single attempt is answered at once
		return u.last
	}
	return u.last.Add(min(time.Second<<min(u.times, 10), maxBackoff))
}

// backoffUntil is until when an object is left open that somebody keeps opening.
func (w *gateWatch) backoffUntil(o *gateObject, v knob.Verdict, now time.Time) time.Time {
	if v.Action != knob.ClosesAgain {
		return time.Time{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.backoffs[o.UID]
	if now.Sub(u.last) > backoffReset {
		u.times = 0
	}
	if next := u.next(); u.times > 0 && next.After(now) {
		return next
	}
	w.backoffs[o.UID] = backoff{times: u.times + 1, last: now}
	return time.Time{}
}

// contested says that an object does not stay closed; a reason that was found before
// is kept.
func (w *gateWatch) contested(o *gateObject) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.problems[cache.NewObjectName(o.Namespace, o.Name).String()]; known != "" {
		return known
	}
	return fmt.Sprintf("%s/%s is opened by somebody again and again, and the agent closes it after longer and longer pauses: is it set otherwise in what is applied, as from Git?", w.kind.Kind, o.Name)
}

// forget drops what is known of an object that is gone.
func (w *gateWatch) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.problems, name)
	if h := w.seen[name]; h != nil {
		delete(w.seen, name)
		w.wrote.Forget(h.uid)
		delete(w.backoffs, h.uid)
	}
}

// note keeps how an object was left, and says whether that is news.
func (w *gateWatch) note(name string, h *HeldObject, problem string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.seen[name]
	news := was == nil || was.closed != h.closed || w.problems[name] != problem
	w.seen[name] = h
	if delete(w.problems, name); problem != "" {
		w.problems[name] = problem
	}
	return news
}

// Objects are the gated objects for the metrics, each once: two policies may hold
// one by different accounts, and labels do not tell groups apart.
func (g *Controller) Objects() []*HeldObject {
	g.mu.Lock()
	watches := slices.Collect(maps.Values(g.watches))
	g.mu.Unlock()
	slices.SortFunc(watches, func(a, b *gateWatch) int { return strings.Compare(a.id, b.id) })
	known := map[string]bool{}
	var out []*HeldObject
	for _, w := range watches {
		w.mu.Lock()
		for name, h := range w.seen {
			if id := h.Kind + " " + name; !known[id] && len(h.Uses) > 0 {
				known[id] = true
				out = append(out, h)
			}
		}
		w.mu.Unlock()
	}
	return out
}

// Pending is what change_pending says of the object.
func (h *HeldObject) Pending() int {
	switch {
	case !h.wanted:
		return store.PendingNone
	case h.closed:
		return store.PendingBlocked
	}
	return store.PendingInitiated
}

// gated is an object as metrics show it.
func (g *Controller) gated(w *gateWatch, o *gateObject, q policy.Query) store.Subject {
	gate := g.Gates.Ask(q)
	if gate == nil {
		gate = schedule.NewGate(schedule.GateSpec{})
	}
	return store.Subject{
		Kind: w.kind.Kind, System: o.Labels[annotations.LabelSystem], Verdict: gate.Verdict, Uses: q.Gates,
		Strategy: g.Gates.SubjectStrategy(q),
	}
}
