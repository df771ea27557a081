package function

import (
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// maxResults is how many of a function's results are kept. A guess: more are a
// list that nobody reads.
const maxResults = 20

// answer is what a function said, without its secrets.
type answer struct {
	fatal   string // what its fatal result says
	notes   []string
	outputs map[string]any
}

func fatal(r *fnv1.RunFunctionResponse) bool {
	return slices.ContainsFunc(r.GetResults(), func(r *fnv1.Result) bool {
		return r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL
	})
}

// read makes the fields of output the step's outputs, and puts the results
// beside them where output has nothing of that name.
func (c *conversation) read(r *fnv1.RunFunctionResponse) answer {
	var a answer
	if output := r.GetOutput(); output != nil {
		a.outputs, _ = c.mask.Value(expr.Whole(output.AsMap())).(map[string]any)
	}
	if r.GetDesired().GetComposite().GetResource() != nil {
		a.notes = append(a.notes, "its desired.composite was ignored: an operation has no composite resource")
	}
	var results []any
	for _, result := range r.GetResults() {
		severity := severityOf(result)
		message := document.Cut(c.mask.Text(result.GetMessage()), document.MaxMessage)
		if severity == "fatal" && a.fatal == "" {
			a.fatal = message
			if message == "" {
				a.fatal = "it does not say why"
			}
		}
		if len(results) == maxResults {
			continue
		}
		a.notes = append(a.notes, severity+": "+message)
		kept := map[string]any{"severity": severity, "message": message}
		if result.Reason != nil {
			kept["reason"] = document.Cut(c.mask.Text(result.GetReason()), document.MaxMessage)
		}
		results = append(results, kept)
	}
	if _, taken := a.outputs["results"]; len(results) > 0 && !taken {
		if a.outputs == nil {
			a.outputs = map[string]any{}
		}
		a.outputs["results"] = results
	}
	return a
}

// severityOf is the word for a severity. One that we do not know is a warning:
// somebody should look at it.
func severityOf(r *fnv1.Result) string {
	switch r.GetSeverity() {
	case fnv1.Severity_SEVERITY_FATAL:
		return "fatal"
	case fnv1.Severity_SEVERITY_NORMAL:
		return "normal"
	}
	return "warning"
}
