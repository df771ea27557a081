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
// of the agent's namespace are the admin's, and their objects are whose namespace it is: each namespace
// has its own part there, beside what all keep, so that nobody takes another's.
type memoryBudget struct {
	agent string // the agent's namespace

	mu          sync.Mutex
	all         int
	byNamespace map[string]int                       // by the name of a part
	byWatch     map[*gateWatch]map[string]keptObject // by the name of the object; nil where a watch has ended
}

type keptObject struct {
	uid    types.UID
	part   string
	weight int
}

// part is the part that an object counts for; empty: none. What is in no namespace no tenant writes.
func (b *memoryBudget) part(w *gateWatch, o *gateObject) string {
	switch namespace := w.key.As.Namespace; {
	case namespace != b.agent:
		return namespace
	case o.Namespace == "":
		return ""
	}
	return b.agent + "/" + o.Namespace
}

// shares says whether what a watch keeps counts among what all keep: but for the admin's it does.
func (b *memoryBudget) shares(w *gateWatch) bool { return w.key.As.Namespace != b.agent }

// full says whether a part would have too much with so many bytes more, and whether all would with so
// many. The lock is held.
func (b *memoryBudget) full(w *gateWatch, part string, more, all int) (ofPart, ofAll bool) {
	if part == "" {
		return false, false
	}
	return b.byNamespace[part]+more > maxKeptOfNamespace, b.shares(w) && b.all+all > maxKept
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
	switch memory := o.Annotations[annotations.StatusGate]; {
	case o.weight > maxKeptOfObject: // there will never be room for it, and nobody waits for that
		small.Annotations = map[string]string{}
	case len(memory) <= perObject: // whoever lets go of it waits until there is room
		small.Annotations = map[string]string{annotations.StatusGate: memory}
	}
	b.note(w, small, weightOf(small))
	return small
}

// refusal says why not all of an object is kept; empty: it is. The lock is held.
func (b *memoryBudget) refusal(w *gateWatch, o *gateObject) string {
	part, more := b.part(w, o), o.weight-b.byWatch[w][w.keyOf(o).Name].weight
	what := w.kind.Kind + "/" + o.Name
	ofPart, ofAll := b.full(w, part, more, more)
	switch {
	case o.weight > maxKeptOfObject:
		return fmt.Sprintf("%s has labels, maint.dev annotations and gated fields of more than %d KiB together, so it is neither closed nor opened: remove some", what, maxKeptOfObject>>10)
	case ofPart && !b.shares(w):
		return fmt.Sprintf("the gates of the policies of namespace %s keep more than %d MiB of the objects of namespace %s, so that %s and others are neither closed nor opened: name fewer objects, smaller ones, or fewer fields", b.agent, maxKeptOfNamespace>>20, o.Namespace, what)
	case ofPart:
		return fmt.Sprintf("the gates of the policies of namespace %s keep more than %d MiB of their objects, so that %s and others are neither closed nor opened: name fewer objects, smaller ones, or fewer fields", part, maxKeptOfNamespace>>20, what)
	case ofAll:
		return fmt.Sprintf("the gates of all namespaces keep more than %d MiB of their objects, so that %s and others are neither closed nor opened: name fewer objects, smaller ones, or fewer fields", maxKept>>20, what)
	}
	return ""
}

// fitting are those of a watch's objects of which only the identity is kept, and for all of which
// together there is room now.
func (b *memoryBudget) fitting(w *gateWatch, objects []any) []*gateObject {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*gateObject
	more, all := map[string]int{}, 0
	for _, one := range objects {
		o, is := one.(*gateObject)
		if !is || o.tooMuch == "" || o.weight > maxKeptOfObject {
			continue
		}
		part := b.part(w, o)
		if ofPart, ofAll := b.full(w, part, more[part]+o.weight, all+o.weight); ofPart || ofAll {
			continue
		}
		more[part], all = more[part]+o.weight, all+o.weight
		out = append(out, o)
	}
	return out
}

// note is called with the lock held. Of a watch that has ended nothing is counted: its objects go.
func (b *memoryBudget) note(w *gateWatch, o *gateObject, weight int) {
	kept := b.byWatch[w]
	if kept == nil {
		return
	}
	name := w.keyOf(o).Name
	part := b.part(w, o)
	b.count(w, part, weight-kept[name].weight)
	if kept[name] = (keptObject{o.UID, part, weight}); weight == 0 {
		delete(kept, name)
	}
}

func (b *memoryBudget) count(w *gateWatch, part string, by int) {
	if part == "" {
		return
	}
	if b.shares(w) {
		b.all += by
	}
	if b.byNamespace[part] += by; b.byNamespace[part] == 0 {
		delete(b.byNamespace, part)
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
		b.count(w, kept.part, -kept.weight)
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
