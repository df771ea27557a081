package write

import (
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/gitops"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// gitOpsFaults are unwanted changes that tools would make to the documents.
func gitOpsFaults(g gitops.Tools, docs []source.Document) []source.Fault {
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
func substituted(g gitops.Tools, d source.Document) (source.Fault, bool) {
	if !strings.Contains(d.Text, "${") {
		return source.Fault{}, false
	}
	if d.Object == nil {
		return substitutedFile(g, d)
	}
	if d.Object.Annotations[gitops.SubstituteAnnotation] == "disabled" || d.Object.Labels[gitops.SubstituteAnnotation] == "disabled" {
		return source.Fault{}, false
	}
	for _, s := range g.Substitutes {
		if s.Applies(d.File) {
			return source.Fault{
				File: d.File, Line: d.LineAt("${"),
				Message: fmt.Sprintf("Flux takes ${…} for a variable of its own, since Kustomization %s has postBuild: put the annotation %s: disabled on this ConfigMap", s.Name, gitops.SubstituteAnnotation),
			}, true
		}
	}
	return source.Fault{}, false
}

// substitutedFile is the fault of a file of which a configMapGenerator makes a ConfigMap.
func substitutedFile(g gitops.Tools, d source.Document) (source.Fault, bool) {
	for _, made := range g.GeneratorsOf(d.File) {
		if made.Verbatim {
			continue
		}
		for _, s := range g.Substitutes {
			if s.Applies(made.File) {
				return source.Fault{
					File: d.File, Line: d.LineAt("${"),
					Message: fmt.Sprintf("Flux takes ${…} for a variable of its own, since Kustomization %s has postBuild: give configMapGenerator %s in %s the options: {annotations: {%s: disabled}}", s.Name, made.Name, made.File, gitops.SubstituteAnnotation),
				}, true
			}
		}
	}
	return source.Fault{}, false
}

// helmHints adds to the faults of Helm templates what to lint instead.
func helmHints(g gitops.Tools, found []source.Fault, files []source.File) {
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

// ownerWarning says that a GitOps tool would undo what a plan's steps change of its target.
func ownerWarning(g gitops.Tools, p source.Plan, templates map[string]plan.TemplateSpec) (source.Fault, bool) {
	owners := g.OwnersOf(p.Source.File)
	if len(owners) == 0 {
		return source.Fault{}, false
	}
	step, moves := view.MovesTarget(plan.Tree{Spec: p.Spec, Templates: templates})
	if !moves {
		return source.Fault{}, false
	}
	lines, _ := document.Decode([]byte(p.Source.Text), &plan.Document{})
	return source.Fault{
		File: p.Source.File, Line: p.Source.LineOf(document.Fault{Line: lines.Line("spec.target")}), Path: "spec.target",
		Message: fmt.Sprintf("step %s changes %s; where %s keeps that as Git has it, it undoes the change while the run lives: holdOwners: true suspends it meanwhile", step.Name, p.Spec.Target, strings.Join(articled(owners), " or ")),
	}, true
}

// articled are kinds as they stand in a sentence: a Kustomization, an Application.
func articled(kinds []string) []string {
	out := make([]string, len(kinds))
	for i, kind := range kinds {
		out[i] = "a " + kind
		if strings.HasPrefix(kind, "A") {
			out[i] = "an " + kind
		}
	}
	return out
}
