package gates

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// Bounds of what gates keep of their objects (guesses: a sixteenth and a fifth of what the agent may
// take in its manifest). Each watch keeps its own part of an object, and whoever names an object in a
// policy may have made it as large as the API server takes it.
const (
	maxKeptOfNamespace = 16 << 20
	maxKept            = 48 << 20
	maxKeptOfObject    = 128 << 10
	perObject          = 1 << 10
	perValue           = 64
)

// memoryBudget is what the watches of each namespace's policies keep of their objects, in bytes. Those
// of the agent's namespace are the admin's: what they keep of one object is bounded, and no more.
type memoryBudget struct {
	agent string // the agent's namespace

	mu          sync.Mutex
	all         int
	byNamespace map[string]int
	byWatch     map[*gateWatch]map[string]keptObject // by the name of the object; nil where a watch has ended
}

type keptObject struct {
	uid    types.UID
	weight int
}

func newMemoryBudget(agent string) *memoryBudget {
	return &memoryBudget{agent: agent, byNamespace: map[string]int{}, byWatch: map[*gateWatch]map[string]keptObject{}}
}

// open begins to count what a watch keeps.
func (b *memoryBudget) open(w *gateWatch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byWatch[w] = map[string]keptObject{}
}

// keep is what is kept of an object: all of it where there is room, else its identity, and what it
// remembers of its gates.
func (b *memoryBudget) keep(w *gateWatch, o *gateObject) *gateObject {
	b.mu.Lock()
	defer b.mu.Unlock()
	o.weight = weightOf(o)
	if o.tooMuch = b.refusal(w, o); o.tooMuch == "" {
		b.note(w, o, o.weight)
		return o
	}
	small := &gateObject{tooMuch: o.tooMuch, weight: o.weight}
	small.Name, small.Namespace, small.UID, small.ResourceVersion = o.Name, o.Namespace, o.UID, o.ResourceVersion
	if memory := o.Annotations[annotations.StatusGate]; len(memory) <= perObject { // what it holds is still let go of, or waited for
		small.Annotations = map[string]string{annotations.StatusGate: memory}
	}
	b.note(w, small, weightOf(small))
	return small
}

// refusal says why not all of an object is kept; empty: it is. The lock is held.
func (b *memoryBudget) refusal(w *gateWatch, o *gateObject) string {
	namespace, more := w.key.As.Namespace, o.weight-b.byWatch[w][w.keyOf(o).Name].weight
	what := w.kind.Kind + "/" + o.Name
	switch {
	case o.weight > maxKeptOfObject:
		return fmt.Sprintf("%s has labels, annotations of ours and a gate of more than %d KiB together, and is neither closed nor opened: take some away", what, maxKeptOfObject>>10)
	case namespace == b.agent:
		return ""
	case b.byNamespace[namespace]+more > maxKeptOfNamespace:
		return fmt.Sprintf("the gates of the policies of namespace %s keep more than %d MiB of their objects, so that %s and others are neither closed nor opened: name fewer objects, smaller ones, or fewer fields", namespace, maxKeptOfNamespace>>20, what)
	case b.all+more > maxKept:
		return fmt.Sprintf("the gates of all namespaces keep more than %d MiB of their objects, so that %s and others are neither closed nor opened: name fewer objects, smaller ones, or fewer fields", maxKept>>20, what)
	}
	return ""
}

// fits says whether there is room now for an object of which only its identity is kept.
func (b *memoryBudget) fits(w *gateWatch, o *gateObject) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refusal(w, o) == ""
}

// note is called with the lock held. Of a watch that has ended nothing is counted: its objects go.
func (b *memoryBudget) note(w *gateWatch, o *gateObject, weight int) {
	kept := b.byWatch[w]
	if kept == nil {
		return
	}
	name := w.keyOf(o).Name
	by := weight - kept[name].weight
	if kept[name] = (keptObject{o.UID, weight}); weight == 0 {
		delete(kept, name)
	}
	b.count(w.key.As.Namespace, by)
}

func (b *memoryBudget) count(namespace string, by int) {
	if namespace == b.agent {
		return
	}
	b.all += by
	if b.byNamespace[namespace] += by; b.byNamespace[namespace] == 0 {
		delete(b.byNamespace, namespace)
	}
}

// forget gives back what was kept of an object that is gone. Another of its name may be kept already.
func (b *memoryBudget) forget(w *gateWatch, o *gateObject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byWatch[w][w.keyOf(o).Name].uid == o.UID {
		b.note(w, o, 0)
	}
}

// drop gives back all that a watch kept.
func (b *memoryBudget) drop(w *gateWatch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, kept := range b.byWatch[w] {
		b.count(w.key.As.Namespace, -kept.weight)
	}
	delete(b.byWatch, w)
}

// weightOf is about how many bytes an object takes.
func weightOf(o *gateObject) int {
	sum := perObject + len(o.Name) + len(o.tooMuch) + weightOfValue(o.fields)
	for _, m := range []map[string]string{o.Labels, o.Annotations} {
		for key, value := range m {
			sum += perValue + len(key) + len(value)
		}
	}
	return sum
}

func weightOfValue(value any) int {
	sum := perValue
	switch v := value.(type) {
	case string:
		sum += len(v)
	case []any:
		for _, item := range v {
			sum += weightOfValue(item)
		}
	case map[string]any:
		for key, item := range v {
			sum += len(key) + weightOfValue(item)
		}
	}
	return sum
}
