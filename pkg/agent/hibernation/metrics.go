package hibernation

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/transition"
)

// troubles remember what is wrong with HibernatePlans, for the metrics.
type troubles struct {
	mu sync.Mutex
	of map[types.NamespacedName]transition.Trouble
}

func (t *troubles) note(k types.NamespacedName, found transition.Trouble) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !found.Overdue.IsZero() && !t.of[k].Overdue.IsZero() {
		found.Overdue = t.of[k].Overdue // what is overdue stays so since it first was
	}
	if found == (transition.Trouble{}) {
		delete(t.of, k)
		return
	}
	if t.of == nil {
		t.of = map[types.NamespacedName]transition.Trouble{}
	}
	t.of[k] = found
}

func (t *troubles) drop(k types.NamespacedName) { t.note(k, transition.Trouble{}) }

// Troubles are the plans with which something is wrong.
func (c *Controller) Troubles() map[types.NamespacedName]transition.Trouble {
	c.troubles.mu.Lock()
	defer c.troubles.mu.Unlock()
	return maps.Clone(c.troubles.of)
}
