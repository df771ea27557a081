package nodes

import "slices"

// NodeProgress is the value of status.maint.dev/progress on a node: how far it is on
// the way to those who asked for it. It is absent where nothing is on the way.
type NodeProgress struct {
	Step Phase    `json:"step"` // the furthest phase of them: Scheduled, Cordoning, WaitingForPods or Draining
	For  []string `json:"for"`  // requestors, sorted
	*PodCount
}

// PodCount is how many pods have left, or finished. It is absent where they have not
// been counted.
type PodCount struct {
	Done    int `json:"done"`
	Total   int `json:"total"` // 0: not known how many there were
	Left    int `json:"left"`
	Percent int `json:"percent"` // of Total
}

// String is the progress as the annotation holds it.
func (p NodeProgress) String() string { return compact(p) }

// progress is how far the node is, by what the statuses are about to say; empty:
// nothing is on the way. It changes with them alone, and so no more often.
func (w *work) progress() string {
	var p NodeProgress
	order := []Phase{Scheduled, Cordoning, WaitingForPods, Draining}
	for _, s := range w.states {
		if !s.next.Phase.preparing() {
			continue
		}
		p.For = append(p.For, s.name())
		further := slices.Index(order, s.next.Phase) - slices.Index(order, p.Step)
		if further > 0 {
			p.Step, p.PodCount = s.next.Phase, nil
		}
		if s.next.Progress != nil && further >= 0 {
			p.PodCount = s.next.Progress.count()
		}
	}
	if len(p.For) == 0 {
		return ""
	}
	slices.Sort(p.For)
	return p.String()
}

func (p Progress) count() *PodCount {
	c := &PodCount{Total: p.Total, Left: p.Left, Done: max(p.Total-p.Left, 0)}
	if p.Total > 0 {
		c.Percent = 100 * c.Done / p.Total
	}
	return c
}
