package notify

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// said is what stands on a plan of what was told ahead.
type said struct {
	told    string
	refuses error
}

func (d *said) claim(told string) error {
	if d.refuses == nil {
		d.told = told
	}
	return d.refuses
}

func TestWhatComesIsToldOnce(t *testing.T) {
	night := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	orders := types.NamespacedName{Namespace: "shop", Name: "orders"}
	type look struct {
		at, coming time.Time
		anew       bool // by an agent that has just begun to lead
		refuses    error
		again      time.Time
		told       string
	}
	before := func(d time.Duration) time.Time { return night.Add(-d) }
	for name, c := range map[string]struct {
		before time.Duration
		looks  []look
	}{
		"nobody wants to know":          {looks: []look{{at: before(time.Minute), coming: night}}},
		"too early":                     {before: 30 * time.Minute, looks: []look{{at: before(time.Hour), coming: night, again: before(30 * time.Minute)}}},
		"when it is due, and once":      {before: 30 * time.Minute, looks: []look{{at: before(30 * time.Minute), coming: night, told: "Plan shop/orders runs in 30m"}, {at: before(29 * time.Minute), coming: night}}},
		"late":                          {before: 2 * time.Hour, looks: []look{{at: before(time.Hour), coming: night, told: "Plan shop/orders runs in 1h"}}},
		"another instant is told again": {before: time.Hour, looks: []look{{at: before(30 * time.Minute), coming: night, told: "Plan shop/orders runs in 30m"}, {at: before(30 * time.Minute), coming: night.Add(5 * time.Minute), told: "Plan shop/orders runs in 35m"}}},
		"it is past":                    {before: time.Hour, looks: []look{{at: night, coming: night}}},
		"nothing comes":                 {before: time.Hour, looks: []look{{at: night}}},
		"its predecessor has told of it": {before: 30 * time.Minute, looks: []look{
			{at: before(30 * time.Minute), coming: night, told: "Plan shop/orders runs in 30m"},
			{at: before(19 * time.Minute), coming: night, anew: true},
			{at: before(18 * time.Minute), coming: night},
		}},
		"it fell due while nobody led": {before: 30 * time.Minute, looks: []look{
			{at: before(time.Hour), coming: night, again: before(30 * time.Minute)},
			{at: before(20 * time.Minute), coming: night, anew: true, told: "Plan shop/orders runs in 20m"},
			{at: before(19 * time.Minute), coming: night},
			{at: before(18 * time.Minute), coming: night, anew: true},
		}},
		"it fell due while nobody led, and has begun": {before: 30 * time.Minute, looks: []look{
			{at: before(time.Hour), coming: night, again: before(30 * time.Minute)},
			{at: night.Add(time.Minute), coming: night, anew: true},
		}},
		"somebody wrote on the document meanwhile": {before: 30 * time.Minute, looks: []look{
			{at: before(30 * time.Minute), coming: night, refuses: errors.New("conflict"), again: before(30 * time.Minute).Add(claimPause)},
			{at: before(29 * time.Minute), coming: night, told: "Plan shop/orders runs in 29m"},
		}},
		"a slot that was moved nearer": {before: 30 * time.Minute, looks: []look{
			{at: before(19 * time.Minute), coming: night.Add(time.Hour), again: night.Add(30 * time.Minute)},
			{at: before(15 * time.Minute), coming: night, told: "Plan shop/orders runs in 15m"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			settings := agentconfig.AgentConfig{}
			if c.before > 0 {
				settings.Notifications.Before = &document.Duration{Duration: c.before}
			}
			h, on := newTestNotifier(&fakeExecutor{}, settings, false), &said{}
			for i, l := range c.looks {
				if l.anew {
					h = newTestNotifier(&fakeExecutor{}, settings, false)
				}
				h.Now, on.refuses = func() time.Time { return l.at }, l.refuses
				again := h.Ahead("Plan", Upcoming{About: orders, What: "runs", At: l.coming, Words: "x", Announced: on.told, Claim: on.claim})
				got := ""
				if len(h.queue) > 0 {
					n, _ := h.next(t.Context())
					got = n.title
				}
				if !again.Equal(l.again) || got != l.told {
					t.Errorf("look %d: told %q, again at %v", i, got, again)
				}
			}
		})
	}
}

func TestAnAgentThatOnlyRehearsesTellsNobodyAhead(t *testing.T) {
	now := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	settings := agentconfig.AgentConfig{Notifications: agentconfig.Notifications{Before: &document.Duration{Duration: time.Hour}}}
	h := newTestNotifier(&fakeExecutor{}, settings, true)
	h.Now = func() time.Time { return now }
	if again := h.Ahead("Plan", Upcoming{What: "runs", At: now.Add(time.Minute)}); !again.IsZero() || len(h.queue)+len(h.own) > 0 {
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
