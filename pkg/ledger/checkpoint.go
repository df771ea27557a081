package ledger

import (
	"maps"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Kept says of which rules the shards of a ledger are to keep marks.
func (l Ledger) Kept(rule string) bool { return l.Rules[rule].Started }

// Checkpoint is what the ledger keeps of one object that a rule watches: the state
// that was last handled. A claim's ordinal never exceeds the version of the state
// it is for, and a mark begins with its version for ordinal: so an object, or a
// rule, that is forgotten and comes back never uses the name of a run again.
type Checkpoint struct {
	Digest  string `json:"d"`
	Ordinal int64  `json:"n,omitempty"` // of the last claim
	Version uint64 `json:"v,omitempty"` // the object's resourceVersion, as a number
	Foreign int64  `json:"t,omitempty"` // the second in which somebody else last wrote
	Mine    int64  `json:"m,omitempty"` // the second in which a run of the plan last wrote
	Name    string `json:"o,omitempty"` // namespace/name
	Earned  int64  `json:"e,omitempty"` // the second by which the object's runs are earned that it had
}

// What one object, or one label on a target, may have of runs: so many at once, and then one in so long (guesses: a
// controller that settles writes a few times; two plans that start each other by what
// they write never end).
const (
	WatchBurst  = 30
	WatchPeriod = time.Minute
)

// What one plan may have of runs for all changes together (guesses: what a rule selects may
// change all at once, and then rests; two plans that watch what the other makes never do).
const (
	PlanBurst  = 300
	PlanPeriod = 10 * time.Second
)

// Pace says whether a change of the object may have a run now, and if not, when: each run
// is earned in a period, and as many may be had before as make a burst. after is the mark
// of the claim.
func (c Checkpoint) Pace(now time.Time) (after Checkpoint, again time.Time, may bool) {
	c.Earned, again, may = pace(c.Earned, now, WatchBurst, WatchPeriod)
	return c, again, may
}

// Pace says the same of a label on a target.
func (s LabelState) Pace(now time.Time) (earned int64, again time.Time, may bool) {
	return pace(s.Earned, now, WatchBurst, WatchPeriod)
}

// Pace says the same of the plan, whichever object has changed.
func (l Ledger) Pace(now time.Time) (after Ledger, again time.Time, may bool) {
	l.Earned, again, may = pace(l.Earned, now, PlanBurst, PlanPeriod)
	return l, again, may
}

func pace(earned int64, now time.Time, burst int, period time.Duration) (after int64, again time.Time, may bool) {
	next := max(earned, now.Unix()) + int64(period.Seconds())
	if again = time.Unix(next, 0).Add(-time.Duration(burst) * period); again.After(now) {
		return earned, again, false
	}
	return next, time.Time{}, true
}

// ObjectCheckpoint is a mark with its place, or the word that nothing is to be kept there.
type ObjectCheckpoint struct {
	Rule string `json:"rule"`
	UID  string `json:"uid"`
	Checkpoint
	Gone bool `json:"gone,omitempty"`
}

// RuleState is what the ledger knows of a rule.
type RuleState struct {
	Started bool `json:"started,omitempty"` // what was there at first is recorded
}

// Shard is a part of a plan's marks, by rule and uid.
type Shard map[string]map[string]Checkpoint

// WithCheckpoints notes marks beside the head, in one write with whatever else changes
// there. Whoever reads takes them before those of the shards.
func (l Ledger) WithCheckpoints(seen ...ObjectCheckpoint) Ledger {
	l.Seen = slices.Clone(l.Seen)
	for _, s := range seen {
		i := slices.IndexFunc(l.Seen, s.SamePlace)
		if i < 0 {
			l.Seen = append(l.Seen, s)
			continue
		}
		l.Seen[i] = s
	}
	return l
}

// SamePlace says whether both are about one object of one rule.
func (s ObjectCheckpoint) SamePlace(o ObjectCheckpoint) bool {
	return s.Rule == o.Rule && s.UID == o.UID
}

// PruneRules takes out what belongs to rules that are not the plan's any more, and
// says whether that was anything. The shards follow; until they do, nobody reads
// from them what is of no rule here.
func (l Ledger) PruneRules(ids []string) (Ledger, bool) {
	foreign := func(id string) bool { return !slices.Contains(ids, id) }
	before := len(l.Rules) + len(l.Seen)
	l.Rules = maps.Clone(l.Rules)
	maps.DeleteFunc(l.Rules, func(id string, _ RuleState) bool { return foreign(id) })
	l.Seen = slices.DeleteFunc(slices.Clone(l.Seen), func(s ObjectCheckpoint) bool { return foreign(s.Rule) })
	return l, len(l.Rules)+len(l.Seen) != before
}

// WithStarted notes that what a rule found at first is recorded.
func (l Ledger) WithStarted(rule string) Ledger {
	l.Rules = maps.Clone(l.Rules)
	if l.Rules == nil {
		l.Rules = map[string]RuleState{}
	}
	l.Rules[rule] = RuleState{Started: true}
	return l
}

// Flushed is the ledger without the marks that stand unchanged in the stored
// one, which may go to the shards: what is not stored yet belongs to the claim
// that it is written with.
func (l Ledger) Flushed(stored Ledger) (Ledger, []ObjectCheckpoint) {
	var out []ObjectCheckpoint
	left := slices.DeleteFunc(slices.Clone(l.Seen), func(s ObjectCheckpoint) bool {
		durable := slices.Contains(stored.Seen, s)
		if durable {
			out = append(out, s)
		}
		return durable
	})
	l.Seen = left
	return l, out
}

// Checkpoints are all marks of a started rule, those of the head before those of the
// shards.
func (l Ledger) Checkpoints(rule string, shards []Shard) map[string]Checkpoint {
	out := map[string]Checkpoint{}
	for _, shard := range shards {
		maps.Copy(out, shard[rule])
	}
	for _, s := range l.Seen {
		switch {
		case s.Rule != rule:
		case s.Gone:
			delete(out, s.UID)
		default:
			out[s.UID] = s.Checkpoint
		}
	}
	return out
}

// MergeCheckpoints takes marks into shards, in place of those of the same objects, and
// says which shards changed. Of rules that are not among the kept nothing stays,
// nor of those that begin anew but for what is given now. The shards that were
// given are not changed.
func MergeCheckpoints(shards []Shard, seen []ObjectCheckpoint, kept func(rule string) bool, anew []string) ([]Shard, []bool) {
	m := merger{changed: make([]bool, len(shards)), sizes: make([]int, len(shards))}
	for i, shard := range shards {
		m.take(i, shard, func(rule string) bool { return kept(rule) && !slices.Contains(anew, rule) })
	}
	for _, s := range seen {
		if kept(s.Rule) {
			m.put(s)
		}
	}
	return m.shards, m.changed
}

type merger struct {
	shards  []Shard
	changed []bool
	sizes   []int
}

func (m *merger) take(i int, shard Shard, keep func(string) bool) {
	own := Shard{}
	for rule, marks := range shard {
		if !keep(rule) {
			m.changed[i] = true
			continue
		}
		own[rule] = maps.Clone(marks)
		for uid, mark := range marks {
			m.sizes[i] += sizeOf(uid, mark)
		}
	}
	m.shards = append(m.shards, own)
}

func (m *merger) put(s ObjectCheckpoint) {
	at := slices.IndexFunc(m.shards, func(shard Shard) bool { _, there := shard[s.Rule][s.UID]; return there })
	switch {
	case at < 0 && s.Gone:
		return
	case at < 0:
		at = m.room(sizeOf(s.UID, s.Checkpoint))
	case !s.Gone && m.shards[at][s.Rule][s.UID] == s.Checkpoint:
		return
	}
	m.changed[at] = true
	if s.Gone {
		m.sizes[at] -= sizeOf(s.UID, m.shards[at][s.Rule][s.UID])
		delete(m.shards[at][s.Rule], s.UID)
		return
	}
	if m.shards[at][s.Rule] == nil {
		m.shards[at][s.Rule] = map[string]Checkpoint{}
	}
	m.shards[at][s.Rule][s.UID] = s.Checkpoint
	m.sizes[at] += sizeOf(s.UID, s.Checkpoint)
}

// room is the first shard that has it, or a new one.
func (m *merger) room(size int) int {
	for i, used := range m.sizes {
		if used+size <= plan.MaxShard {
			return i
		}
	}
	m.shards, m.changed, m.sizes = append(m.shards, Shard{}), append(m.changed, true), append(m.sizes, 0)
	return len(m.shards) - 1
}

// sizeOf is the most bytes that a mark takes as JSON.
func sizeOf(uid string, m Checkpoint) int { return len(uid) + len(m.Digest) + len(m.Name) + 110 }
