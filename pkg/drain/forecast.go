package drain

import (
	"cmp"
	"slices"
	"time"
)

// Forecast is what a drain would do.
type Forecast struct {
	Groups  []Group        `json:"groups,omitempty"` // in order; the next begins when the last has left
	Skipped []RemainingPod `json:"skipped,omitempty"`
	Refused []RemainingPod `json:"refused,omitempty"`
	Blocks  []Block        `json:"blocks,omitempty"`

	Warnings string   `json:"warnings,omitempty"` // as kubectl drain prints them
	Errors   []string `json:"errors,omitempty"`   // as kubectl drain prints them

	Total int `json:"total"` // pods that would have to leave
}

// Group are pods that leave together.
type Group struct {
	Order  int      `json:"order"`
	Evict  []string `json:"evict,omitempty"`
	Await  []string `json:"await,omitempty"`  // these leave by finishing
	Surge  []string `json:"surge,omitempty"`  // these leave when a replacement is Ready
	Leaves []string `json:"leaves,omitempty"` // these are being deleted already
}

// Possible says that nothing stands in the drain's way that would not go by itself.
func (f Forecast) Possible() bool { return len(f.Refused) == 0 && !stuck(f.Blocks) }

// Forecast is what a drain of these pods under these budgets would do, if
// nothing changed. It names at most fifty pods of each kind.
func (j Judge) Forecast(pods []Pod, budgets []Budget, now time.Time) Forecast {
	judged := j.All(pods)
	f := Forecast{Blocks: Blocks(judged, budgets, j.late, now)}
	f.Warnings, f.Errors = Words(judged)
	f.Blocks = append(f.Blocks, j.unreplaced(judged)...)
	groups := map[int]*Group{}
	for _, j := range judged {
		if j.Do != Skip {
			f.Total++
		}
		switch j.Do {
		case Skip:
			f.Skipped = append(f.Skipped, RemainingPod{j.Pod.String(), j.Reason()})
		case Refuse:
			f.Refused = append(f.Refused, RemainingPod{j.Pod.String(), j.Reason()})
		case Evict, Await:
			if groups[j.Verdict.Order] == nil {
				groups[j.Verdict.Order] = &Group{Order: j.Verdict.Order}
			}
			groups[j.Verdict.Order].add(j)
		}
	}
	f.Skipped, f.Refused = stays(f.Skipped), stays(f.Refused)
	for _, g := range groups {
		f.Groups = append(f.Groups, Group{Order: g.Order, Evict: named(g.Evict), Await: named(g.Await), Surge: named(g.Surge), Leaves: named(g.Leaves)})
	}
	slices.SortFunc(f.Groups, func(a, b Group) int { return cmp.Compare(a.Order, b.Order) })
	return f
}

// unreplaced are the blocks of pods whose replacements failed.
func (j Judge) unreplaced(judged []Judged) (blocks []Block) {
	for _, p := range judged {
		if r, failed := j.failed[p.UID]; failed && p.Surge && !p.Deleting {
			blocks = append(blocks, r.block(p.Pod))
		}
	}
	return blocks
}

func (g *Group) add(j Judged) {
	list := &g.Evict
	switch {
	case j.Deleting:
		list = &g.Leaves
	case j.Do == Await:
		list = &g.Await
	case j.Surge:
		list = &g.Surge
	}
	*list = append(*list, j.Pod.String())
}
