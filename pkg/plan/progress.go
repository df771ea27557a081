package plan

import "strings"

// Progress is how far a run has come, for a status line.
type Progress struct {
	Step    string `json:"step,omitempty"` // the one at work
	Done    int    `json:"done"`
	Total   int    `json:"total"`
	Percent int    `json:"percent"`
}

// ProgressOf counts a journal's steps. Restores do not count: they belong to
// the steps that they undo.
func ProgressOf(j Journal) Progress {
	var p Progress
	for _, r := range j.Steps {
		p.Total++
		if r.Phase.Ended() {
			p.Done++
		} else if r.Phase == StepRunning && p.Step == "" {
			p.Step = r.Path
		}
	}
	if p.Total > 0 {
		p.Percent = 100 * p.Done / p.Total
	}
	return p
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
	if !found {
		return SectionSteps
	}
	return Section(head)
}
