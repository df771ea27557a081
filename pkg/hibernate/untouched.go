package hibernate

import (
	"cmp"
	"slices"
	"strings"
)

// Why a resource is left alone. What was changed while it slept is so only while it differs.
const (
	stoppedBefore = "somebody stopped it before it could be put to sleep"
	changedAsleep = "somebody changed it while it slept"
	putsBack      = " puts it back again and again"
)

// takeBack ends that a resource is left alone which was changed while it slept, once that is undone,
// as by a run at its end: only the record knows what is to be put back.
func (r *Resource) takeBack(undone bool) {
	if undone && (r.Left == changedAsleep || strings.HasSuffix(r.Left, putsBack)) {
		r.AwakeAt, r.Left, r.LeftAt = cmp.Or(r.AwakeAt, r.LeftAt), "", nil
	}
}

// Untouched is the record of a step with a mark at those of which for certain nothing was
// done: neither by this step, as ids say, nor by any before it. The step takes the mark off
// before its effects, so that whoever dies there may have done it.
func (s Step) Untouched(before Record, ids []string) Record {
	r := s.Record
	r.Resources = slices.Clone(r.Resources)
	was, now := placesOf(before.Resources), placesOf(r.Resources)
	due := make(map[string]Due, len(s.Due))
	for _, d := range s.Due {
		due[d.ID] = d
	}
	for _, id := range ids {
		d, asked := due[id]
		at, i := was.of(d.Seen), now.of(d.Seen)
		if asked && d.Seen.Awake && i >= 0 && (at < 0 || before.Resources[at].Untouched) {
			r.Resources[i].Untouched = true
		}
	}
	return r
}
