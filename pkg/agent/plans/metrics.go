package plans

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// troubles remember what is wrong with plans, for the metrics: of the few that have
// something, so that the others cost nothing.
type troubles struct {
	mu sync.Mutex
	of map[types.NamespacedName]ledger.Trouble
}

func (t *troubles) note(k types.NamespacedName, l ledger.Ledger) {
	found := l.Trouble()
	t.mu.Lock()
	defer t.mu.Unlock()
	if found == (ledger.Trouble{}) {
		delete(t.of, k)
		return
	}
	if t.of == nil {
		t.of = map[types.NamespacedName]ledger.Trouble{}
	}
	t.of[k] = found
}

func (t *troubles) drop(k types.NamespacedName) { t.note(k, ledger.Ledger{}) }

// Troubles are the plans with which something is wrong.
func (c *Controller) Troubles() map[types.NamespacedName]ledger.Trouble {
	c.troubles.mu.Lock()
	defer c.troubles.mu.Unlock()
	return maps.Clone(c.troubles.of)
}
