package gates

import (
	"fmt"
	"sync"
)

// Bounds of what gates keep of their objects (guesses: a sixteenth and a fifth of what the agent may
// take in its manifest). Each watch keeps its own part of an object, and whoever names an object in a
// policy may have made it as large as the API server takes it.
const (
	maxKeptOfNamespace = 16 << 20
	maxKept            = 48 << 20
	perObject          = 1 << 10
	perValue           = 64
)

// memoryBudget is what the watches of each namespace's policies keep of their objects, in bytes.
type memoryBudget struct {
	mu          sync.Mutex
	all         int
	byNamespace map[string]int
	byWatch     map[*gateWatch]map[string]int // by the name of the object
}

func newMemoryBudget() *memoryBudget {
	return &memoryBudget{byNamespace: map[string]int{}, byWatch: map[*gateWatch]map[string]int{}}
}

// keep is what is kept of an object: all of it where there is room, else its identity.
func (b *memoryBudget) keep(w *gateWatch, o *gateObject) *gateObject {
	b.mu.Lock()
	defer b.mu.Unlock()
	namespace, name := w.key.As.Namespace, w.keyOf(o).Name
	weight, was := weightOf(o), b.byWatch[w][name]
	whose, most := "", 0
	switch {
	case b.byNamespace[namespace]+weight-was > maxKeptOfNamespace:
		whose, most = "the policies of namespace "+namespace, maxKeptOfNamespace
	case b.all+weight-was > maxKept:
		whose, most = "all policies together", maxKept
	default:
		b.note(w, name, weight)
		return o
	}
	why := fmt.Sprintf("the gates of %s keep more than %d MiB of their objects, so that %s and others are neither closed nor opened: name fewer objects, smaller ones, or fewer fields", whose, most>>20, w.kind.Kind+"/"+o.Name)
	small := &gateObject{tooMuch: why}
	small.Name, small.Namespace, small.UID, small.ResourceVersion = o.Name, o.Namespace, o.UID, o.ResourceVersion
	b.note(w, name, weightOf(small))
	return small
}

// note is called with the lock held.
func (b *memoryBudget) note(w *gateWatch, name string, weight int) {
	if b.byWatch[w] == nil {
		b.byWatch[w] = map[string]int{}
	}
	by := weight - b.byWatch[w][name]
	if b.byWatch[w][name] = weight; weight == 0 {
		delete(b.byWatch[w], name)
	}
	b.all += by
	if b.byNamespace[w.key.As.Namespace] += by; b.byNamespace[w.key.As.Namespace] == 0 {
		delete(b.byNamespace, w.key.As.Namespace)
	}
}

// forget gives back what was kept of an object that is gone.
func (b *memoryBudget) forget(w *gateWatch, o *gateObject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(w, w.keyOf(o).Name, 0)
}

// drop gives back all that a watch kept.
func (b *memoryBudget) drop(w *gateWatch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.byWatch[w] {
		b.note(w, name, 0)
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
