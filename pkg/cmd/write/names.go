package write

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// UnknownNames are names in a plan's expressions that no run has: a step or a parameter that does
// not exist, a misspelt field of run. Its step would fail in the night.
func UnknownNames(d source.Document) []source.Fault {
	if d.Kind != annotations.KindPlan {
		return nil
	}
	spec, _ := plan.Parse([]byte(d.Text), d.Name)
	lines, _ := document.Decode([]byte(d.Text), &plan.Document{})
	known := namesOf(spec)
	var out []source.Fault
	source.EachExpression(spec, func(path, text string) {
		for _, what := range known.unknown(text) {
			out = append(out, source.Fault{File: d.File, Line: d.LineOf(document.Fault{Line: lines.Line(path)}), Path: path, Message: what})
		}
	})
	return out
}

// names are the names that expressions may use.
type names struct {
	values     map[string]any // those of a run in which nothing has happened yet
	steps      []string
	parameters []string
	ofStep     []string // fields of a step
}

func namesOf(spec plan.Spec) names {
	// A run with one step that has ended, so that every name exists.
	journal := run.Journal{Steps: []run.Record{{Path: "any"}}, End: &run.End{}}
	n := names{values: run.Vars(run.Run{}, journal, nil)}
	if step, is := n.values["steps"].(map[string]any)["any"].(map[string]any); is {
		n.ofStep = slices.Collect(maps.Keys(step))
	}
	source.EachStep(spec, func(_ string, s plan.Step) { n.steps = append(n.steps, s.Name) })
	for _, p := range spec.Parameters {
		n.parameters = append(n.parameters, p.Name)
	}
	return n
}

// unknown names the unknown names in an expression.
func (n names) unknown(text string) []string {
	roots := append(slices.Sorted(maps.Keys(n.values)), "object")
	var out []string
	report := func(what string) {
		if what != "" && !slices.Contains(out, what) {
			out = append(out, what)
		}
	}
	for _, path := range expr.Paths(text, "steps", roots...) {
		report(n.step(path))
	}
	for _, root := range []string{"run", "plan", "context"} {
		for _, path := range expr.Paths(text, root, roots...) {
			report(n.field(root, path))
		}
	}
	return out
}

func (n names) step(path []string) string {
	switch {
	case !slices.Contains(n.steps, path[0]):
		return missing(fmt.Sprintf("steps[%q]: the plan has no step of this name", path[0]), path[0], n.steps)
	case len(path) > 1 && !slices.Contains(n.ofStep, path[1]):
		return missing(fmt.Sprintf("%s: a step has no such field", strings.Join(append([]string{"steps"}, path[:2]...), ".")), path[1], n.ofStep)
	}
	return ""
}

func (n names) field(root string, path []string) string {
	fields, _ := n.values[root].(map[string]any)
	switch _, known := fields[path[0]]; {
	case !known:
		return missing(fmt.Sprintf("%s.%s: there is no such value", root, path[0]), path[0], slices.Collect(maps.Keys(fields)))
	case root == "run" && path[0] == "parameters" && len(path) > 1 && !slices.Contains(n.parameters, path[1]):
		return missing(fmt.Sprintf("run.parameters.%s: the plan declares no such parameter", path[1]), path[1], n.parameters)
	}
	return ""
}

func missing(what, name string, there []string) string {
	if like, ok := document.Nearest(name, there); ok {
		return fmt.Sprintf("%s; did you mean %q?", what, like)
	}
	return what
}
