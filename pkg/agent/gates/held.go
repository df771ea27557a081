package gates

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
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

// forget drops what is known of an object that is gone.
func (w *gateWatch) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.problems, name)
	_, bare, _ := strings.Cut(name, "/")
	delete(w.rights, cmp.Or(bare, name))
	if h := w.seen[name]; h != nil {
		delete(w.seen, name)
		w.wrote.Forget(h.uid)
	}
}

// leave notes why nothing can be done with an object, and says whether that is news.
func (w *gateWatch) leave(name, problem string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := w.problems[name] != problem
	w.problems[name] = problem
	return news
}

// mayAsk says whether objects may be asked for again now: each time all of the watch is listed.
func (w *gateWatch) mayAsk(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(w.asked.Add(queue.ResyncPeriod)) {
		return false
	}
	w.asked = now
	return true
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
// one by different accounts, and labels do not tell groups apart. What an account that may not write
// them makes of them is shown only where no other looks.
func (g *Controller) Objects() []*HeldObject {
	g.mu.Lock()
	watches := slices.Collect(maps.Values(g.watches))
	g.mu.Unlock()
	slices.SortFunc(watches, func(a, b *gateWatch) int { return strings.Compare(a.id, b.id) })
	var readOnly []*gateWatch
	watches = slices.DeleteFunc(watches, func(w *gateWatch) bool {
		last := w.readOnly()
		if last {
			readOnly = append(readOnly, w)
		}
		return last
	})
	known := map[string]bool{}
	var out []*HeldObject
	for _, w := range append(watches, readOnly...) {
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
	gate := g.Stores.Gates.Ask(q)
	if gate == nil {
		gate = schedule.NewGate(schedule.GateSpec{})
	}
	return store.Subject{
		Kind: w.kind.Kind, System: o.Labels[annotations.LabelSystem], Verdict: gate.Verdict, Uses: q.Gates,
		Strategy: g.Stores.Gates.SubjectStrategy(q),
	}
}
