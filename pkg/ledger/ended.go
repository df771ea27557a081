package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// EndedSince are the entries that ended without a run since an earlier state of the ledger (nil:
// since there was none), in order: one for each result, reason and cause. Its Slot is that of the
// last one, and Count how many they are. Dry runs are not among them: they count nowhere.
func (l Ledger) EndedSince(was *Ledger) []Entry {
	var known, out []Entry
	if was != nil {
		known = was.Recent
	}
	for i, e := range l.Recent {
		n := max(e.Count, 1)
		if i < len(known) { // the last of them may have taken in others since
			n -= max(known[i].Count, 1)
			if e.Run == known[i].Run { // the run of an earlier one
				e.Run, e.Outcome = "", nil
			}
		}
		if n <= 0 || e.DryRun || e.Result == run.Ran {
			continue
		}
		e.Slot, e.First, e.Last, e.Count = cmp.Or(e.Last, e.Slot), nil, nil, n
		same := slices.IndexFunc(out, func(o Entry) bool {
			return alike(o, e) && (o.Slot == nil) == (e.Slot == nil) && (o.Run == "") == (e.Run == "")
		})
		if same < 0 {
			out = append(out, e)
			continue
		}
		e.Count += out[same].Count
		out[same] = e
	}
	return out
}

// Kept is what kept the run of an entry from starting, as people are told; empty: that is not known.
func (e Entry) Kept() string {
	if e.Outcome != nil && e.Outcome.Message != "" {
		return e.Outcome.Message
	}
	return e.Said
}

// Why is the reason of an entry, and who or what gave it, where that is known: skip by jane: CHG-1.
func (e Entry) Why() string {
	switch {
	case e.Said == "":
		return e.Reason
	case strings.HasPrefix(e.Said, e.Reason):
		return e.Said
	}
	return e.Reason + " (" + e.Said + ")"
}
