package run

import (
	"fmt"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

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

// Outline is the journal without the records of items that are through, and without the
// items of loops that have ended: progress, and what the run waits for, are told the same
// without them. What is told of nodes stays, also how the drains of those at work ended.
func (j Journal) Outline() Journal {
	loops, working := j.outerLoops(), j.itemsAtWork()
	var steps []Record // no longer than what stays
	for _, rec := range j.Steps {
		told := rec.Waits != "" || rec.Drift != nil || rec.Type == plan.TypeForEachNode
		if rec.Phase.Ended() && !told {
			item := itemIn(loops, rec.Path)
			if item != "" && (rec.Type != plan.TypeDrain || !working[item]) {
				continue
			}
			rec.Items = nil
		}
		steps = append(steps, rec)
	}
	j.Steps = steps
	return j
}

// itemsAtWork are the paths of the nodes that rollouts are at work on.
func (j Journal) itemsAtWork() map[string]bool {
	out := map[string]bool{}
	for i := range j.Steps {
		rec := &j.Steps[i]
		if rec.Type != plan.TypeForEachNode || rec.Phase != StepRunning {
			continue
		}
		for _, item := range rec.Items {
			if item.Phase == StepRunning {
				out[rec.Path+"/"+item.Segment()] = true
			}
		}
	}
	return out
}

// AtWork is the step at work, and which of all it is: backup 2/5; empty: none is.
func (p Progress) AtWork() string {
	if p.Step == "" {
		return ""
	}
	return fmt.Sprintf("%s %d/%d", p.Step, min(p.Done+1, p.Total), p.Total)
}

// Suspended says whether a run that has begun waits for a person or for its window.
func (j Journal) Suspended() bool {
	if j.Phase != Running || j.End != nil {
		return false
	}
	return j.HeldSince != nil || slices.ContainsFunc(j.Steps, func(r Record) bool {
		return r.Phase == StepRunning && (r.Type == "suspend" && r.Resumed == nil || r.Type == plan.TypeApproval && r.Approval == nil)
	})
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
