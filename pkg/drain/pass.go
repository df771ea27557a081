package drain

import "slices"

// Pass is one drain that is done: which pods it was about.
type Pass struct {
	Options
	Left bool `json:"left,omitempty"` // it left some: by onTimeout skip, or since they came back again and again
}

// PassOf is what a drain with such options was about, without its rules for time.
func PassOf(o Options, left bool) Pass {
	o.Timeout, o.GracePeriod, o.PodTimeout, o.OnTimeout = nil, nil, nil, ""
	return Pass{Options: o, Left: left}
}

// Covers says whether a pass that is done was about all pods that o asks to
// leave: "no more than was drained". How long each may take and what happens then
// does not count, as the pods are gone; where some were left, it
// covers only those who would have left them too.
func (p Pass) Covers(o Options) bool {
	if p.Left && o.OnTimeout != TimeoutSkip {
		return false
	}
	return p.Includes(o)
}

// maxPasses bounds the record of what has left a node. Passes that another covers
// are not kept, so more than this need that many requests with different pods; one
// that is forgotten is drained again, which finds nothing.
const maxPasses = 10

// Remember adds a pass to those that are done.
func Remember(passes []Pass, d Pass) []Pass {
	if slices.ContainsFunc(passes, func(p Pass) bool { return p.Includes(d.Options) && (!p.Left || d.Left) }) {
		return passes
	}
	kept := slices.DeleteFunc(slices.Clone(passes), func(p Pass) bool { return d.Includes(p.Options) && (!d.Left || p.Left) })
	kept = append(kept, d)
	return kept[max(len(kept)-maxPasses, 0):]
}
