package check

import (
	"fmt"
	"slices"
	"time"
)

// Memory is what is left of a plan's ledger at the end: its head, and the archive
// of its older entries, as the API server has them.
type Memory struct {
	Plan string // namespace/name
	UID  string
	Head string // ledger.json
	Old  string // ledger.json of the archive; empty: none
}

// edge is how near to an edit a slot may count for either side: edits are dated by
// whole seconds.
const edge = 2 * time.Second

// schedule is what the checkers understand of triggers: instants, and every minute.
type schedule struct {
	Cron string    `json:"cron"`
	At   time.Time `json:"at"`
}

func schedulesOf(text string) []schedule {
	var doc struct {
		Spec struct {
			Triggers struct {
				Schedules []schedule `json:"schedules"`
			} `json:"triggers"`
		} `json:"spec"`
	}
	if unmarshalYAML(text, &doc) != nil {
		return nil
	}
	return doc.Spec.Triggers.Schedules
}

// between are the slots of a plan's text after one instant and up to another.
func between(text string, from, to time.Time) []time.Time {
	var out []time.Time
	for _, s := range schedulesOf(text) {
		if !s.At.IsZero() && s.At.After(from) && !s.At.After(to) {
			out = append(out, s.At.UTC())
		}
		if s.Cron == "" {
			continue
		}
		for at := from.Truncate(time.Minute).Add(time.Minute); !at.After(to); at = at.Add(time.Minute) {
			out = append(out, at.UTC())
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return slices.CompactFunc(out, time.Time.Equal)
}

// texts are the versions of a plan between which its text, its uid or its being
// there changed.
func texts(all []version) []version {
	return slices.CompactFunc(slices.Clone(all), func(a, b version) bool { return a.text == b.text && a.uid == b.uid && a.gone == b.gone })
}

// due are the slots that a plan owed, and those that it may have owed since an edit
// was too near to tell.
func due(all []version, uid string, until time.Time) (sure, doubtful []time.Time) {
	edits := texts(all)
	for i, v := range edits {
		if v.uid != uid || v.gone {
			continue
		}
		next, sent := until.Add(edge), until.Add(edge)
		if i+1 < len(edits) {
			next, sent = edits[i+1].at, edits[i+1].sent
		}
		for _, at := range between(v.text, v.sent.Add(-edge), next.Add(edge)) {
			if at.After(v.at.Add(edge)) && at.Before(sent.Add(-edge)) {
				sure = append(sure, at)
			} else {
				doubtful = append(doubtful, at)
			}
		}
	}
	return distinct(sure), distinct(doubtful)
}

func distinct(all []time.Time) []time.Time {
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal)
}

// Slots finds slots that ended more than once, or not at all, and ends of slots
// that no schedule had. until is when the ledgers were read.
func Slots(h History, memories []Memory, until time.Time) []Finding {
	known := plans(h.writes())
	var out []Finding
	for _, m := range memories {
		head, ok := readLedger(m.Head)
		old, fine := readLedger(m.Old)
		if !ok || m.Old != "" && !fine {
			out = append(out, Finding{Checker: "slots", What: fmt.Sprintf("the ledger of %s cannot be read", m.Plan)})
			continue
		}
		sure, doubtful := due(known[m.Plan], m.UID, until.Add(-2*edge))
		out = append(out, ends(m.Plan, slices.Concat(old.Recent, head.Recent, head.Open), sure, doubtful)...)
	}
	return out
}

// ends compares the ends in a ledger with the slots that were due.
func ends(plan string, entries []entry, sure, doubtful []time.Time) []Finding {
	var out []Finding
	count, folded := map[int64]int{}, 0
	for _, e := range entries {
		switch {
		case e.Slot == nil:
		case e.Count > 1:
			folded += e.Count
			for _, at := range slices.Concat(sure, doubtful) {
				if e.First != nil && e.Last != nil && !at.Before(*e.First) && !at.After(*e.Last) && count[at.Unix()] == 0 && !single(entries, at) {
					count[at.Unix()]++
				}
			}
		default:
			count[e.Slot.Unix()]++
		}
	}
	for _, at := range sure {
		if n := count[at.Unix()]; n != 1 {
			out = append(out, Finding{Checker: "slots", What: fmt.Sprintf("slot %s of %s has %d ends, want 1", at.Format(time.RFC3339), plan, n)})
		}
	}
	for _, e := range entries {
		if e.Slot == nil || e.Count > 1 {
			continue
		}
		if !slices.ContainsFunc(slices.Concat(sure, doubtful), e.Slot.Equal) {
			out = append(out, Finding{Checker: "slots", What: fmt.Sprintf("%s has an end (%s %s) of slot %s, which no schedule had", plan, e.Result, e.Reason, e.Slot.Format(time.RFC3339))})
		} else if count[e.Slot.Unix()] > 1 && !slices.ContainsFunc(sure, e.Slot.Equal) {
			out = append(out, Finding{Checker: "slots", What: fmt.Sprintf("slot %s of %s has %d ends", e.Slot.Format(time.RFC3339), plan, count[e.Slot.Unix()])})
		}
	}
	return out
}

// single says whether a slot has an entry of its own.
func single(entries []entry, at time.Time) bool {
	return slices.ContainsFunc(entries, func(e entry) bool { return e.Slot != nil && e.Count <= 1 && e.Slot.Equal(at) })
}
