package hibernation

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
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

// Of a ledger that somebody deleted nothing is made up: neither that nobody was there, nor what slept.
func TestADeletedLedgerInventsNoNights(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		deleted := func() {
			w.agent.stop()
			w.api.Delete("configmaps", shop, ledgerOfNights(w))
			w.begins()
			w.after(time.Minute)
		}
		w.until("52:00")
		deleted()
		w.ledger()
		w.until("76:00")
		w.ledger("4 01:00 Ran since 4 01:00")
		w.agent.stop()
		was := w.api.ConfigMap(shop, "nights")
		w.api.DeleteAtOnce("configmaps", shop, "nights")
		w.until("77:00")
		again := annotations.NewHibernatePlan(shop, "nights", planText(oneToThree+apps), "")
		again.Annotations = was.Annotations
		w.api.Put(again)
		w.until("100:00")
		w.begins()
		w.after(time.Minute)
		w.ledger("5 01:00 Missed catch-up") // it was made with what the first one had said, and nobody was there
		deleted()
		w.ledger()
	})
}

// A quota that is full when a plan is made is said, and nothing falls asleep. The nights until there
// is room are missed, and not forgotten, whoever leads.
func TestAFirstLedgerThatAQuotaRefusesIsSaidAndTheNightsAreMissed(t *testing.T) {
	for name, anew := range map[string]bool{"with one agent": false, "with another agent": true} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.deployment("orders", "apps", 3)
				full := w.api.Refuse(agenttest.When{Verb: "create", Resource: "configmaps"}, agenttest.Always, 403, "exceeded quota: q")
				w.plan(oneToThree + apps)
				w.begins()
				w.until("01:30")
				w.has("orders 3")
				w.is("Invalid: its ledger cannot be written, so nothing falls asleep: ")
				w.until("04:00")
				if anew {
					w.begins()
				}
				full()
				w.until("04:02")
				w.is("Active: awake")
				w.ledger("1 01:00 Missed catch-up")
				w.until("25:30")
				w.has("orders 0")
				w.until("28:00")
				w.has("orders 3")
				w.ledger("1 01:00 Missed catch-up", "2 01:00 Ran since 2 01:00")
			})
		})
	}
}
