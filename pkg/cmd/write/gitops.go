package write

import (
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// substituteAnnotation with the value disabled, as an annotation or a label, keeps Flux from
// substituting variables in an object.
const substituteAnnotation = "kustomize.toolkit.fluxcd.io/substitute"

// gitOpsFaults are unwanted changes that tools would make to the documents.
func gitOpsFaults(g source.GitOps, docs []source.Document) []source.Fault {
	var out []source.Fault
	for _, made := range g.Hashed {
		out = append(out, source.Fault{
			File: made.File, Line: made.Line, Path: "configMapGenerator",
			Message: fmt.Sprintf("%s gets a hash behind its name, so that each edit is another document, without the history, the slots and the intents of the one before: write generatorOptions: {disableNameSuffixHash: true}", made.Name),
		})
	}
	for _, d := range docs {
		if f, eaten := substituted(g, d); eaten {
			out = append(out, f)
		}
		if chart := g.Chart(d.File); chart != "" && strings.Contains(d.Text, "{{") {
			out = append(out, source.Fault{File: d.File, Line: d.LineAt("{{"), Message: fmt.Sprintf("Helm expands {{…}} before anybody reads it: lint what 'helm template %s' makes of it", chart)})
		}
	}
	return out
}

// substituted is the fault of a document with ${…} that Flux would substitute.
func substituted(g source.GitOps, d source.Document) (source.Fault, bool) {
	if d.Object == nil || !strings.Contains(d.Text, "${") {
		return source.Fault{}, false
	}
	if d.Object.Annotations[substituteAnnotation] == "disabled" || d.Object.Labels[substituteAnnotation] == "disabled" {
		return source.Fault{}, false
	}
	for _, s := range g.Substitutes {
		if s.Applies(d.File) {
			return source.Fault{
				File: d.File, Line: d.LineAt("${"),
				Message: fmt.Sprintf("Flux takes ${…} for a variable of its own, since Kustomization %s has postBuild: put the annotation %s: disabled on this ConfigMap", s.Name, substituteAnnotation),
			}, true
		}
	}
	return source.Fault{}, false
}

// helmHints adds to the faults of Helm templates what to lint instead.
func helmHints(g source.GitOps, found []source.Fault, files []source.File) {
	text := map[string]string{}
	for _, f := range files {
		text[f.Path] = string(f.Text)
	}
	for i, f := range found {
		if f.Path == "" && strings.Contains(text[f.File], "{{") && !strings.Contains(f.Message, "{{") {
			chart := g.Chart(f.File)
			if chart == "" {
				chart = "CHART"
			}
			found[i].Message += fmt.Sprintf("; is it a template of Helm? Lint what 'helm template %s' makes of it", chart)
		}
	}
}

// ownerWarnings name the plans whose changes of their target a GitOps tool would undo.
func ownerWarnings(g source.GitOps, docs []source.Document) []source.Fault {
	if len(g.Owners) == 0 {
		return nil
	}
	var out []source.Fault
	for _, d := range docs {
		if d.Kind != annotations.KindPlan {
			continue
		}
		spec, _ := plan.Parse([]byte(d.Text), d.Name)
		step, moves := view.MovesTarget(spec)
		if !moves {
			continue
		}
		lines, _ := document.Decode([]byte(d.Text), &plan.Document{})
		out = append(out, source.Fault{
			File: d.File, Line: d.LineOf(document.Fault{Line: lines.Line("spec.target")}), Path: "spec.target",
			Message: fmt.Sprintf("step %s changes %s; where a %s keeps that as Git has it, it undoes the change while the run lives: holdOwners: true suspends it meanwhile", step.Name, spec.Target, strings.Join(g.Owners, " or ")),
		})
	}
	return out
}
