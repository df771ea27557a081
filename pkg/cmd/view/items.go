package view

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// LedgerItem is one entry for scripts, see docs/cli.md.
type LedgerItem struct {
	Plan      string     `json:"plan"`
	Slot      *time.Time `json:"slot,omitempty"`
	Result    string     `json:"result"`
	Reason    string     `json:"reason,omitempty"`
	Run       string     `json:"run,omitempty"`
	Actor     string     `json:"actor,omitempty"`
	Verified  bool       `json:"verified,omitempty"` // somebody checked the actor's name
	Said      string     `json:"said,omitempty"`     // who kept a slot from running, and why
	DryRun    bool       `json:"dryRun,omitempty"`
	StartedAt *time.Time `json:"startedAt,omitempty"`
	At        time.Time  `json:"at"`
	First     *time.Time `json:"first,omitempty"`
	Last      *time.Time `json:"last,omitempty"`
	Count     int64      `json:"count,omitempty"`
	// Slept is what slept in a past off-window.
	Slept []ledger.Slept `json:"slept,omitempty"`
	// Outcome is how the run ended or, of an open entry, its state.
	Outcome *ledger.Outcome `json:"outcome,omitempty"`
	// LedgerBegunAnew is when the ledger was begun in place of one that is lost: what was before is not
	// known.
	LedgerBegunAnew *time.Time `json:"ledgerBegunAnew,omitempty"`
}

// NewLedgerItem is an entry of a plan's ledger for scripts.
func NewLedgerItem(namespace, plan string, e ledger.Entry) LedgerItem {
	return LedgerItem{
		Plan: namespace + "/" + plan, Slot: e.Slot, Result: string(e.Result), Reason: e.Reason, Run: e.Run, Actor: e.Actor, Verified: e.Verified, Said: e.Said,
		DryRun: e.DryRun, StartedAt: e.StartedAt, At: e.At, First: e.First, Last: e.Last, Count: e.Count, Slept: e.Slept, Outcome: e.Outcome,
	}
}

// EntryAt is the instant that an entry of a ledger is about.
func EntryAt(e ledger.Entry) time.Time {
	switch {
	case e.Slot != nil:
		return *e.Slot
	case e.StartedAt != nil:
		return *e.StartedAt
	}
	return e.At
}

// EntryUntil is the last instant that an entry tells of: of several slots in one the last, and when
// the run of a slot ended, or its entry was written.
func EntryUntil(e ledger.Entry) time.Time {
	at := EntryAt(e)
	for _, later := range []*time.Time{&e.At, e.Last} {
		if later != nil && later.After(at) {
			at = *later
		}
	}
	return at
}

// Slot is one slot for scripts, see docs/cli.md.
type Slot struct {
	UTC      string `json:"utc"`
	Local    string `json:"local"`
	Schedule int    `json:"schedule"`
	Note     string `json:"note"`
}

// Began is the slot's instant, in UTC and RFC 3339.
func (s Slot) Began() string { return s.UTC }

// NextSlots are the slots from an instant on, that instant included.
func NextSlots(set schedule.Set, from time.Time, count int) []Slot {
	items := []Slot{}
	from = from.Add(-time.Nanosecond)
	for range count {
		slot, ok := set.Next(from)
		if !ok {
			break
		}
		items = append(items, Slot{UTC: slot.At.UTC().Format(time.RFC3339), Local: instant.LocalStamp(slot), Schedule: slot.Index, Note: slot.Note})
		from = slot.At
	}
	return items
}

// Window is one window for scripts, see docs/cli.md.
type Window struct {
	Start string `json:"start,omitempty"` // absent if it was always open
	End   string `json:"end,omitempty"`   // absent if it does not close, or if that is not known yet: the note says so
	Note  string `json:"note"`
}

// Began is when the window opens, in UTC and RFC 3339; empty if it was always open.
func (w Window) Began() string { return w.Start }
