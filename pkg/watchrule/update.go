package watchrule

import (
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// LedgerUpdate is what a look at a plan writes of its watch rules, beside what was
// decided. What is for the shards is written first, then the head, and then the
// shards lose what no rule needs: whoever dies in between leaves marks in two
// places, or in none that is read, and never a claim without its mark.
type LedgerUpdate struct {
	Ledger  ledger.Ledger
	Changed bool                      // the head has to be written
	Shards  []ledger.ObjectCheckpoint // to be in the shards before
	Anew    []string                  // rules that begin: the shards lose what they held of them
	Prune   bool                      // the shards hold what is of no rule any more
	lazy    []ledger.ObjectCheckpoint
	stored  ledger.Ledger
}

// Keeps says of which rules the shards are to keep marks before the head is
// written: until then, those of the stored one count.
func (b LedgerUpdate) Keeps(rule string) bool { return b.Ledger.Kept(rule) || b.stored.Kept(rule) }

// Update works out what is to be written with a decision that rests on a stored
// ledger: the ledger that it made, whether it changed it, and whether claims are in
// it. What nobody waits for goes along with something else, or where it is due.
func (t *Tracker) Update(stored *ledger.Ledger, next ledger.Ledger, changed, claims, due bool) LedgerUpdate {
	if stored == nil {
		stored = &ledger.Ledger{}
	}
	b := LedgerUpdate{Ledger: next, Changed: changed, stored: *stored}
	ids := make([]string, len(t.rules))
	for i, r := range t.rules {
		ids[i] = r.id
	}
	if l, pruned := b.Ledger.PruneRules(ids); pruned {
		b.Ledger, b.Changed, b.Prune = l, true, stored.Shards > 0
	}
	if len(stored.Seen) > plan.MaxSeen {
		b.Ledger, b.Shards = b.Ledger.Flushed(*stored)
		b.Changed = true
	}
	if due || b.Changed {
		b.lazy = t.Unwritten(claims)
		b.place(*stored)
	}
	return b
}

// place puts what is to be written lazily where it belongs: beside the head while
// there is room, or where its object stands there already.
func (b *LedgerUpdate) place(stored ledger.Ledger) {
	few := len(b.Ledger.Seen)+len(b.lazy) <= plan.MaxSeen
	for _, s := range b.lazy {
		if slices.ContainsFunc(b.Ledger.Seen, func(h ledger.ObjectCheckpoint) bool { return h.SamePlace(s) && h.Ordinal > s.Ordinal }) {
			continue // it was claimed just now
		}
		if few || slices.ContainsFunc(slices.Concat(stored.Seen, b.Ledger.Seen), s.SamePlace) {
			b.Ledger, b.Changed = b.Ledger.WithCheckpoints(s), true
			continue
		}
		b.Shards = append(b.Shards, s)
	}
}

// UpdateStart adds the start of a rule: what it found is recorded before it counts as
// started. A rule that cannot start yet is left alone.
func (t *Tracker) UpdateStart(b *LedgerUpdate, id string) {
	found, ok := t.Start(id)
	if !ok {
		return
	}
	b.Shards, b.Anew = append(b.Shards, found...), append(b.Anew, id)
	b.Ledger, b.Changed = b.Ledger.WithStarted(id), true
}

// Recorded takes note that a booking, and the claims in it, were written; or, with
// false, that they were not, or that nobody knows. It says whether what came
// meanwhile asks for another look.
func (t *Tracker) Recorded(b LedgerUpdate, claims []run.Request, written bool) Urgency {
	all := UrgencyNone
	for _, id := range b.Anew {
		all = max(all, t.Started(id, written))
	}
	if !written {
		claims, b.lazy = nil, nil
	}
	all = max(all, t.Decided(claims, slices.Concat(b.Ledger.Seen, b.Shards)))
	t.Written(b.lazy)
	return all
}
