package hibernation

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Without its ledger no sleep can be recorded, however well what woke is.
func TestADecisionKeepsTheErrorOfTheLedger(t *testing.T) {
	unread := errors.New("the ledger cannot be read")
	for name, c := range map[string]struct {
		checks []any
		sick   string
		err    error
		closed int
	}{
		"no health checks, a ledger that cannot be read":        {err: unread, closed: 1},
		"checks that pass, a ledger that cannot be read":        {checks: []any{map[string]any{"all": true}}, err: unread, closed: 1},
		"checks that do not pass, a ledger that cannot be read": {checks: []any{map[string]any{"all": true}}, sick: "orders is not ready", err: unread},
		"checks that pass, and a ledger":                        {checks: []any{map[string]any{"all": true}}, closed: 1},
		"checks that do not pass, and a ledger":                 {checks: []any{map[string]any{"all": true}}, sick: "orders is not ready"},
		"no health checks, and a ledger":                        {closed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.begins()
				w.sick.Store(c.sick)
				v := view{facts: hibernate.Facts{
					Now: time.Now().UTC(), Namespace: shop, Plan: "nights", Spec: hibernate.Spec{HealthChecks: c.checks, Targets: []hibernate.Target{{Name: "apps", Type: hibernate.TypeNoop}}},
					Records: []hibernate.Record{{Plan: "nights", Target: "apps", Cycle: "nights-1", Operation: hibernate.Wake, State: hibernate.Awake}},
				}}
				known := &cachedPlan{&planMemory{}, &parsedPlan{}}
				d, err := w.agent.decide(w.Context(), types.NamespacedName{Namespace: shop, Name: "nights"}, known, &v, c.err)
				if !errors.Is(err, c.err) || c.err == nil && err != nil {
					t.Errorf("the error is %v, want %v", err, c.err)
				}
				if len(d.Closed) != c.closed {
					t.Errorf("it lets go of the records of %q, want %d", d.Closed, c.closed)
				}
			})
		})
	}
}
