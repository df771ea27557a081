package print

import (
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// shownItems is how many items of a loop are named; further ones are counted.
const shownItems = 10

// stepLine is one line of a run's steps: a step, or an item of a loop.
type stepLine struct {
	depth                    int
	name, kind, took, detail string
	phase                    run.StepPhase
	bare                     bool // an item: it has no phase to print
	// rest is a line that counts what is not shown.
	rest bool
	left bool // something was not restored
}

// stepTree are a run's records by their parents.
type stepTree struct {
	Printer
	run   view.Run
	under map[string][]run.Record
	lines []stepLine
}

// StepLines are a run's steps, one line each, with their children below them.
func (v Printer) StepLines(r view.Run) []string {
	t := stepTree{Printer: v, run: r, under: map[string][]run.Record{}}
	for _, rec := range r.Journal.Steps {
		holder := holderOf(r.Journal, rec.Path)
		t.under[holder] = append(t.under[holder], rec)
	}
	t.steps("", "", 0)
	return v.aligned(t.lines)
}

// holderOf is the path of a step's parent; empty: it has none. There may be an item between them.
func holderOf(j run.Journal, path string) string {
	for {
		i := strings.LastIndex(path, "/")
		if i < 0 {
			return ""
		}
		if path = path[:i]; j.Record(path) != nil {
			return path
		}
	}
}

// steps adds the children of a step.
func (t *stepTree) steps(holder, prefix string, depth int) {
	for _, rec := range t.under[holder] {
		name, within := strings.CutPrefix(rec.Path, prefix)
		if !within {
			continue
		}
		t.lines = append(t.lines, stepLine{depth: depth, name: name, kind: rec.Type, phase: rec.Phase, took: t.stepTime(rec), detail: t.stepDetail(t.run, rec), left: rec.Restored == run.RestoreFailed})
		if plan.IsLoop(rec.Type) {
			t.items(rec, depth+1)
			continue
		}
		t.steps(rec.Path, rec.Path+"/", depth+1)
	}
}

// items adds the items that need attention: running ones with their steps, failed ones, and those
// with something unrestored.
func (t *stepTree) items(loop run.Record, depth int) {
	named := t.notable(loop)
	for _, item := range named[:min(len(named), shownItems)] {
		t.lines = append(t.lines, stepLine{depth: depth, name: item.Segment(), phase: item.Phase, detail: t.AgentText(item.Message), bare: true})
		t.steps(loop.Path, loop.Path+"/"+item.Segment()+"/", depth+1)
	}
	if more := len(named) - shownItems; more > 0 {
		t.lines = append(t.lines, stepLine{depth: depth, name: fmt.Sprintf("and %d more", more), rest: true})
	}
}

func (t *stepTree) notable(loop run.Record) []run.Item {
	var atWork, failed, left []run.Item
	for _, item := range loop.Items {
		switch {
		case item.Phase == run.StepRunning:
			atWork = append(atWork, item)
		case item.Phase == run.StepFailed:
			failed = append(failed, item)
		case t.unrestored(loop, item):
			left = append(left, item)
		}
	}
	return append(append(atWork, failed...), left...)
}

// unrestored says whether a step of an item did not restore what it found.
func (t *stepTree) unrestored(loop run.Record, item run.Item) bool {
	for _, rec := range t.under[loop.Path] {
		if strings.HasPrefix(rec.Path, loop.Path+"/"+item.Segment()+"/") && rec.Restored != "" && rec.Restored != run.RestoreDone {
			return true
		}
	}
	return false
}

// aligned aligns the lines in columns.
func (v Printer) aligned(list []stepLine) []string {
	width, typeWidth := 0, 0
	for _, l := range list {
		typeWidth = max(typeWidth, len(l.kind))
		if !l.bare && !l.rest {
			width = max(width, 2*l.depth+len(l.name))
		}
	}
	lines := make([]string, len(list))
	for i, l := range list {
		l.detail = document.OneLine(l.detail) // a table row is one line
		name := strings.Repeat("  ", l.depth)
		switch {
		case l.rest:
			name += v.Dim("… " + l.name)
		case l.bare:
			name += v.lineMark(l) + " " + l.name + view.Colon(l.detail)
		default:
			pad := width - 2*l.depth
			name += fmt.Sprintf("%s %-*s  %-*s  %-9s  %6s  %s", v.lineMark(l), pad, l.name, typeWidth, l.kind, l.phase, l.took, l.detail)
		}
		lines[i] = strings.TrimRight(name, " ")
	}
	return lines
}

// loopCount is the progress of a loop; empty before its items are known.
func loopCount(rec run.Record) string {
	if !plan.IsLoop(rec.Type) || !rec.Listed {
		return ""
	}
	done, failed, atWork := 0, 0, 0
	for _, item := range rec.Items {
		switch item.Phase {
		case run.StepSucceeded:
			done++
		case run.StepFailed:
			failed++
		case run.StepRunning:
			atWork++
		}
	}
	text := fmt.Sprintf("%d of %d done", done, len(rec.Items))
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	if atWork == 0 && done+failed > 0 { // between two batches it may wait for until
		if _, rest, counted := strings.Cut(rec.Message, " are done, "); counted { // the message counts, too
			return text + ", " + rest
		}
		text += view.Colon(rec.Message)
	}
	return text
}
