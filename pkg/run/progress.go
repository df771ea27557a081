package run

import "github.com/kubectl-maint/kubectl-maint/pkg/plan"

// Progress is how far a run has come, for a status line.
type Progress struct {
	Step    string `json:"step,omitempty"` // the one at work
	Done    int    `json:"done"`
	Total   int    `json:"total"`
	Percent int    `json:"percent"`
}

// ProgressOf counts a journal's steps. One that holds others counts as those do, a
// loop as one step of which its items are shares. Restores do not count: they
// belong to the steps that they undo.
func ProgressOf(j Journal) Progress {
	var p Progress
	shares, loops := 0.0, j.outerLoops()
	for i := range j.Steps {
		r := &j.Steps[i]
		if r.Phase == StepRunning && (p.Step == "" || plan.Below(r.Path, p.Step)) {
			p.Step = r.Path
		}
		if r.Holds() && !plan.IsLoop(r.Type) || itemIn(loops, r.Path) != "" {
			continue
		}
		p.Total++
		if r.Phase.Ended() {
			p.Done++
			shares++
		} else if n := len(r.Items); n > 0 {
			shares += float64(r.itemsEnded()) / float64(n)
		}
	}
	if p.Total > 0 {
		p.Percent = int(100 * shares / float64(p.Total))
	}
	return p
}

func (r *Record) itemsEnded() int {
	n := 0
	for _, item := range r.Items {
		if item.Phase.Ended() {
			n++
		}
	}
	return n
}
