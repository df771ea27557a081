package hibernate

import "slices"

const stoppedBefore = "somebody stopped it before it could be put to sleep" // why it is left alone

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
