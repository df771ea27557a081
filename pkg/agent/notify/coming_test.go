package notify

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

func TestWhatComesIsToldOnce(t *testing.T) {
	night := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	orders := types.NamespacedName{Namespace: "shop", Name: "orders"}
	type look struct {
		at, coming time.Time
		again      time.Time
		told       string
	}
	before := func(d time.Duration) time.Time { return night.Add(-d) }
	for name, c := range map[string]struct {
		before  time.Duration
		since   time.Time
		created time.Time
		looks   []look
	}{
		"nobody wants to know":           {looks: []look{{at: before(time.Minute), coming: night}}},
		"too early":                      {before: 30 * time.Minute, looks: []look{{at: before(time.Hour), coming: night, again: before(30 * time.Minute)}}},
		"when it is due, and once":       {before: 30 * time.Minute, looks: []look{{at: before(30 * time.Minute), coming: night, told: "Plan shop/orders runs in 30m"}, {at: before(29 * time.Minute), coming: night}}},
		"late":                           {before: 2 * time.Hour, looks: []look{{at: before(time.Hour), coming: night, told: "Plan shop/orders runs in 1h"}}},
		"another instant is told again":  {before: time.Hour, looks: []look{{at: before(30 * time.Minute), coming: night, told: "Plan shop/orders runs in 30m"}, {at: before(30 * time.Minute), coming: night.Add(5 * time.Minute), told: "Plan shop/orders runs in 35m"}}},
		"it is past":                     {before: time.Hour, looks: []look{{at: night, coming: night}}},
		"nothing comes":                  {before: time.Hour, looks: []look{{at: night}}},
		"its predecessor has told of it": {before: 30 * time.Minute, since: before(20 * time.Minute), looks: []look{{at: before(19 * time.Minute), coming: night}, {at: before(18 * time.Minute), coming: night}}},
		"a document that is younger than the agent's lead": {before: 30 * time.Minute, since: before(20 * time.Minute), created: before(15 * time.Minute), looks: []look{{at: before(15 * time.Minute), coming: night, told: "Plan shop/orders runs in 15m"}}},
		"a slot that was moved nearer":                     {before: 30 * time.Minute, since: before(20 * time.Minute), looks: []look{{at: before(19 * time.Minute), coming: night.Add(time.Hour), again: night.Add(30 * time.Minute)}, {at: before(15 * time.Minute), coming: night, told: "Plan shop/orders runs in 15m"}}},
	} {
		t.Run(name, func(t *testing.T) {
			settings := agentconfig.AgentConfig{}
			if c.before > 0 {
				settings.Notifications.Before = &document.Duration{Duration: c.before}
			}
			h := newTestNotifier(&fakeExecutor{}, settings, false)
			h.Since = func() time.Time { return c.since }
			for i, l := range c.looks {
				h.Now = func() time.Time { return l.at }
				again := h.Ahead("Plan", Coming{About: orders, What: "runs", At: l.coming, Created: c.created, Words: "x"})
				got := ""
				if len(h.queue) > 0 {
					n, _ := h.next(t.Context())
					got = n.title
				}
				if !again.Equal(l.again) || got != l.told {
					t.Errorf("look %d: told %q, again at %v", i, got, again)
				}
			}
			h.Forget(orders)
			if len(h.told) > 0 {
				t.Errorf("kept %v", h.told)
			}
		})
	}
}

func TestAnAgentThatOnlyRehearsesTellsNobodyAhead(t *testing.T) {
	now := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	settings := agentconfig.AgentConfig{Notifications: agentconfig.Notifications{Before: &document.Duration{Duration: time.Hour}}}
	h := newTestNotifier(&fakeExecutor{}, settings, true)
	h.Now = func() time.Time { return now }
	if again := h.Ahead("Plan", Coming{What: "runs", At: now.Add(time.Minute)}); !again.IsZero() || len(h.queue)+len(h.own) > 0 {
		t.Errorf("again %v", again)
	}
}

func TestWordsForATime(t *testing.T) {
	for d, want := range map[time.Duration]string{30 * time.Minute: "30m", time.Hour: "1h", 65 * time.Minute: "1h5m", 40 * time.Second: "40s", 90 * time.Second: "1m30s", 24 * time.Hour: "24h"} {
		if got := words(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
