package plan

import (
	"slices"
	"strings"
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
		if r.Phase == StepRunning && (p.Step == "" || below(r.Path, p.Step)) {
			p.Step = r.Path
		}
		if r.holds() && !IsLoop(r.Type) || itemIn(loops, r.Path) != "" {
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

// StepPath is where a step stands in its run.
func StepPath(section Section, name string) string {
	if section == SectionSteps {
		return name
	}
	return string(section) + "/" + name
}

// SectionOf is the section that a path lies in.
func SectionOf(path string) Section {
	head, _, found := strings.Cut(path, "/")
	if section := Section(head); found && slices.Contains(otherSections(), section) {
		return section
	}
	return SectionSteps
}

// otherSections are those whose name begins the paths of their steps.
func otherSections() []Section {
	return []Section{SectionOnFailure, SectionRestore, SectionFinally, SectionClosing}
}
