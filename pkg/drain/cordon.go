package drain

import (
	"slices"
	"time"
)

// Cordon is the record of who of us wants a node cordoned, and how it was
// before. It stands on the node, written in the same patch as the cordon.
type Cordon struct {
	By     []string  `json:"by"`     // claimants: a requestor, or plan:<namespace>/<name>
	Before bool      `json:"before"` // it was cordoned before the first of us came
	At     time.Time `json:"at"`     // of the first claim
	Undone bool      `json:"undone"` // somebody else uncordoned it since: what cordon there is now is not ours
}

// Claimed says whether a claimant stands in the record.
func (c Cordon) Claimed(by string) bool { return slices.Contains(c.By, by) }

// Claim is the record with one more claimant. Where nobody of us claims the node,
// or somebody uncordoned it since, it remembers how the node is found; claiming
// twice is claiming once.
func (c Cordon) Claim(by string, unschedulable bool, now time.Time) Cordon {
	if len(c.By) == 0 || !unschedulable {
		c = Cordon{By: c.By, Before: unschedulable, At: now}
	}
	if !c.Claimed(by) {
		c.By = append(slices.Clone(c.By), by)
		slices.Sort(c.By)
	}
	return c
}

// Release is the record without a claimant, and whether the node is to be made
// schedulable: nobody of us wants it cordoned any more, it was not so before, and
// nobody else took the cordon over. A record without claimants is to be removed.
func (c Cordon) Release(by string) (left Cordon, uncordon bool) {
	if !c.Claimed(by) {
		return c, false
	}
	c.By = slices.DeleteFunc(slices.Clone(c.By), func(other string) bool { return other == by })
	return c, len(c.By) == 0 && !c.Before && !c.Undone
}
