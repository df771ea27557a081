package ledger

import (
	"errors"
	"maps"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// ErrOlder is a ledger that somebody put in the place of a newer one.
var ErrOlder = errors.New("an older ledger of the plan was put back")

// IsOlder says whether a ledger as it was read is older than one of the same plan that the reader knows: neither the
// watermark nor the number of its writes goes back. Versions before this one do not count them.
func (l Ledger) IsOlder(known Ledger) bool {
	return l.PlanUID == known.PlanUID && (l.Watermark.Before(known.Watermark) || l.Writes > 0 && l.Writes < known.Writes)
}

// WithPast is a ledger in place of an older one that was put back: what is claimed, seen and done stays as it is known.
// One that was begun anew takes over what the older one tells of the time before.
func (l Ledger) WithPast(older Ledger) Ledger {
	l.Totals, l.Outcomes, l.Writes = most(l.Totals, older.Totals), most(l.Outcomes, older.Outcomes), max(l.Writes, older.Writes)
	if l.BegunAnew == nil { // what the older one tells stands here or in the archive
		return l
	}
	before := slices.DeleteFunc(slices.Clone(older.Recent), func(e Entry) bool { return !e.At.Before(*l.BegunAnew) })
	l.Recent = joined(before, l.Recent)
	if l.Last == nil {
		l.Last = older.Last
	}
	tokens := slices.DeleteFunc(slices.Clone(older.Tokens), l.KnowsToken)
	l.Tokens = slices.Concat(tokens, l.Tokens) // the newest last
	l.Tokens = l.Tokens[max(len(l.Tokens)-MaxTokens, 0):]
	return l
}

// most has of each count the larger one: totals never shrink.
func most[K run.Result | run.Phase](a, b map[K]int64) map[K]int64 {
	out := maps.Clone(a)
	for k, n := range b {
		if out == nil {
			out = map[K]int64{}
		}
		out[k] = max(out[k], n)
	}
	return out
}
