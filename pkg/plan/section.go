package plan

import (
	"slices"
	"strings"
)

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

// Section is the part of a run that is being worked on.
type Section string

// The sections of a run, in the order in which they run. Restores put back what
// steps with restoreAfter found; they come before finally, so that finally's
// messages speak of a world that is as it was.
const (
	SectionSteps     Section = "steps"
	SectionOnFailure Section = "onFailure"
	SectionRestore   Section = "restore"
	SectionFinally   Section = "finally"
	SectionClosing   Section = "closing" // the trigger label goes, the ledger's entry is closed
)
