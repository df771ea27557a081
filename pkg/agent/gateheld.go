package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// heldObject is a gated object as it was last left.
type heldObject struct {
	gated
	namespace, name string
	uid             types.UID
	closed, pending bool
}

// undone counts how often somebody opened what was closed, so that two that
// undo each other do not do so as fast as they can.
type undone struct {
	times int
	last  time.Time
}

// patience is how long an object that was opened against its gate is left so,
// and how long it takes until that is forgotten (guesses).
const (
	patience = 5 * time.Minute
	forgiven = 15 * time.Minute
)

func (u undone) next() time.Time {
	if u.times < 2 { // a person's single attempt is answered at once
		return u.last
	}
	return u.last.Add(min(time.Second<<min(u.times, 10), patience))
}

// patience is until when an object is left open that somebody keeps opening.
func (w *gateWatch) patience(o *gateObject, v knob.Verdict, now time.Time) time.Time {
	if v.What != knob.ClosesAgain {
		return time.Time{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.undone[o.UID]
	if now.Sub(u.last) > forgiven {
		u.times = 0
	}
	if next := u.next(); u.times > 0 && next.After(now) {
		return next
	}
	w.undone[o.UID] = undone{times: u.times + 1, last: now}
	return time.Time{}
}

// fight says that an object does not stay closed; a reason that was found before
// is kept.
func (w *gateWatch) fight(o *gateObject) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.problems[storeKey(o.Namespace, o.Name)]; known != "" {
		return known
	}
	return fmt.Sprintf("%s/%s is opened by somebody again and again, and closed again later and later: does what applies it say otherwise?", w.mapping.GroupVersionKind.Kind, o.Name)
}

// forget drops what is known of an object that is gone.
func (w *gateWatch) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.problems, name)
	if h := w.seen[name]; h != nil {
		delete(w.seen, name)
		w.wrote.forget(h.uid)
		delete(w.undone, h.uid)
	}
}

// note keeps how an object was left, and says whether that is news.
func (w *gateWatch) note(name string, h *heldObject, problem string) bool {
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

// objects are the gated objects for the metrics, each once: two policies may hold
// one by different accounts, and labels do not tell groups apart.
func (g *gatekeeper) objects() []*heldObject {
	g.mu.Lock()
	watches := slices.Collect(maps.Values(g.watches))
	g.mu.Unlock()
	slices.SortFunc(watches, func(a, b *gateWatch) int { return strings.Compare(a.id, b.id) })
	known := map[string]bool{}
	var out []*heldObject
	for _, w := range watches {
		w.mu.Lock()
		for name, h := range w.seen {
			if id := h.kind + " " + name; !known[id] && len(h.uses) > 0 {
				known[id] = true
				out = append(out, h)
			}
		}
		w.mu.Unlock()
	}
	return out
}

// value is what change_pending says of the object.
func (h *heldObject) value() int {
	switch {
	case !h.pending:
		return pendingNone
	case h.closed:
		return pendingBlocked
	}
	return pendingInitiated
}

// gated is an object as metrics show it.
func (g *gatekeeper) gated(w *gateWatch, o *gateObject, q policy.Question) gated {
	gate := g.agent.gates.ask(q)
	if gate == nil {
		gate = schedule.NewGate(schedule.GateSpec{})
	}
	return gated{
		kind: w.mapping.GroupVersionKind.Kind, system: o.Labels[annotations.LabelSystem], verdict: gate.Verdict, uses: q.Gates,
		strategy: func(now time.Time) schedule.Strategy { return g.agent.gates.book.Strategy(q, now) },
	}
}
