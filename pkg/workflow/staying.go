package workflow

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// maxSpokenOf is how many bytes of outputs of other steps stay of an item that is through, so that
// an effect in it can be looked after (a guess).
const maxSpokenOf = 2 << 10

// staying are the records of finished items that stay: of steps that hold something, or whose effect
// is looked after, with what their properties speak of. in says whether a path lies in a finished
// item.
func (a *advance) staying(in func(path string) bool) map[string]bool {
	stay, watched := map[string]bool{}, 0
	watches := !a.run.Request.DryRun
	for i := range a.j.Steps {
		rec := &a.j.Steps[i]
		looked := watches && watched < maxLooks && a.isLookedAfter(rec)
		if looked {
			watched++
		}
		switch {
		case !in(rec.Path):
		case a.keeps(rec):
			stay[rec.Path] = true
		case looked:
			others, size := a.spokenOf(rec.Path, in)
			if size > maxSpokenOf {
				break
			}
			for _, path := range append(others, rec.Path) {
				stay[path] = true
			}
		}
	}
	return stay
}

// isLookedAfter says whether what a step did is looked at while the run lives.
func (a *advance) isLookedAfter(rec *run.Record) bool {
	if rec.Phase != run.StepSucceeded || rec.Before == nil && !plan.KeepsEffect(rec.Type) {
		return false // so that few are looked up in the tree
	}
	return Holding(a.find(rec.Path), *rec)
}

// spokenOf are the steps of the same item that a step's properties speak of, and the loops between, which
// know its object: without them the properties cannot be evaluated. size is what their outputs take.
func (a *advance) spokenOf(path string, in func(path string) bool) (paths []string, size int) {
	words, item := map[string]bool{}, ""
	for _, l := range a.tree.Chain(path) {
		if at := l.Path + "/" + l.Item; l.Item != "" && item == "" && in(at+"/") {
			item = at
		}
		b, err := json.Marshal(l.Step.Own()) // of a template, what it is given
		if err != nil || !strings.Contains(string(b), "steps") {
			continue
		}
		for _, word := range strings.FieldsFunc(string(b), func(r rune) bool { return r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			words[word] = true
		}
	}
	for i := range a.j.Steps {
		rec := &a.j.Steps[i]
		name := rec.Path[strings.LastIndexByte(rec.Path, '/')+1:]
		switch {
		case rec.Path == path || item == "" || !plan.Below(rec.Path, item):
		case plan.IsLoop(rec.Type) && plan.Below(path, rec.Path):
			paths = append(paths, rec.Path)
		case words[name]:
			if b, err := json.Marshal(rec.Outputs); err == nil {
				size += len(b)
			}
			paths = append(paths, rec.Path)
		}
	}
	return paths, size
}

// slim is a record that stays for looks alone: what was done is told no more.
func slim(rec run.Record) run.Record {
	rec.Before, rec.Memory, rec.Message, rec.Approval, rec.AttemptAt = nil, nil, "", nil, nil
	return rec
}
