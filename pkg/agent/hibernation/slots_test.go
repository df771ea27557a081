package hibernation

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

func at(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC) }

func TestWhichOffWindowIsSkipped(t *testing.T) {
	next := intent.Skip{Next: true}
	met := &ledger.Ledger{NextSlot: new(at(2, 20))}
	for name, c := range map[string]struct {
		stored *ledger.Ledger
		skip   intent.Skip
		want   bool
	}{
		"nothing":                         {nil, intent.Skip{}, false},
		"the next, without a ledger":      {nil, next, true},
		"the next, not met yet":           {&ledger.Ledger{}, next, true},
		"the next is this one":            {met, next, true},
		"the next was another":            {&ledger.Ledger{NextSlot: new(at(1, 20))}, next, false},
		"the next was another, this, too": {&ledger.Ledger{NextSlot: new(at(1, 20))}, intent.Skip{Next: true, Slots: []time.Time{at(2, 20)}}, true},
		"all":                             {met, intent.Skip{All: true}, true},
	} {
		if got := c.stored.NamedSkip(c.skip).Covers(at(2, 20)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
