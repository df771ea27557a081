package function

import (
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// maxResults is how many of a function's results are kept (a guess: nobody reads a longer list).
const maxResults = 20

// answer is what a function returned, without secrets.
type answer struct {
	fatal   string // the message of its fatal result
	notes   []string
	outputs map[string]any
	results []any
}

func fatal(r *fnv1.RunFunctionResponse) bool {
	return slices.ContainsFunc(r.GetResults(), func(r *fnv1.Result) bool {
		return r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL
	})
}

// read turns the fields of output into outputs of the step, and adds the results where output has
// no field of that name.
func (c *conversation) read(r *fnv1.RunFunctionResponse) answer {
	var a answer
	a.outputs = c.output(r)
	for _, result := range r.GetResults() {
		severity := severityOf(result)
		message := document.Cut(c.mask.Text(result.GetMessage()), document.MaxMessage)
		if severity == "fatal" && a.fatal == "" {
			a.fatal = message
			if message == "" {
				a.fatal = "it does not say why"
			}
		}
		if len(a.results) == maxResults {
			continue
		}
		a.notes = append(a.notes, severity+": "+message)
		kept := map[string]any{"severity": severity, "message": message}
		if result.Reason != nil {
			kept["reason"] = document.Cut(c.mask.Text(result.GetReason()), document.MaxMessage)
		}
		a.results = append(a.results, kept)
	}
	if _, taken := a.outputs["results"]; len(a.results) > 0 && !taken {
		if a.outputs == nil {
			a.outputs = map[string]any{}
		}
		a.outputs["results"] = a.results
	}
	return a
}

// output is a function's output; nil: it has none.
func (c *conversation) output(r *fnv1.RunFunctionResponse) map[string]any {
	if r.GetOutput() == nil {
		return nil
	}
	out, _ := c.mask.Value(expr.Whole(r.GetOutput().AsMap())).(map[string]any)
	return out
}

// severityOf is the word for a severity. An unknown one counts as a warning, so that somebody looks
// at it.
func severityOf(r *fnv1.Result) string {
	switch r.GetSeverity() {
	case fnv1.Severity_SEVERITY_FATAL:
		return "fatal"
	case fnv1.Severity_SEVERITY_NORMAL:
		return "normal"
	}
	return "warning"
}
