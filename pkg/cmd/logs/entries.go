package logs

import (
	"io"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// entry is output of a step for scripts, see docs/cli.md.
type entry struct {
	Namespace  string        `json:"namespace"`
	Run        string        `json:"run"`
	Plan       string        `json:"plan"`
	Step       string        `json:"step"`
	Type       string        `json:"type"`
	Phase      run.StepPhase `json:"phase"`
	Attempt    int           `json:"attempt,omitempty"`
	StartedAt  *time.Time    `json:"startedAt,omitempty"`
	FinishedAt *time.Time    `json:"finishedAt,omitempty"`
	Text       string        `json:"text"`
}

func (e entry) value() print.Value {
	return print.Value{Kind: "LogEntry", Name: e.Step, Body: e}
}

// sameStep says whether two entries are of the same attempt of a step.
func (e entry) sameStep(other entry) bool {
	return e.Step == other.Step && e.Attempt == other.Attempt && e.Phase == other.Phase
}

// entries print the output of steps for scripts: as a list at the end, or one by one.
type entries struct {
	out    *print.Values
	run    view.Run
	stream bool
	list   []entry
}

func (e *entries) say(to io.Writer, rec run.Record, text string) error {
	next := entry{
		Namespace: e.run.Run.Namespace, Run: e.run.Run.Name, Plan: e.run.Run.Plan, Step: rec.Path, Type: rec.Type,
		Phase: rec.Phase, Attempt: rec.Attempt, StartedAt: rec.StartedAt, FinishedAt: rec.FinishedAt, Text: text,
	}
	if e.stream {
		return e.out.Emit(to, next.value())
	}
	if n := len(e.list); n > 0 && e.list[n-1].sameStep(next) { // the next line of a job's log
		e.list[n-1].Text += "\n" + text
		return nil
	}
	e.list = append(e.list, next)
	return nil
}

// finish prints the list; a stream is printed already.
func (e *entries) finish(to io.Writer) error {
	if e.stream {
		return nil
	}
	items := make([]print.Value, len(e.list))
	for i, one := range e.list {
		items[i] = one.value()
	}
	return e.out.PrintList(to, "LogEntryList", items)
}
