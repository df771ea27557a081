package write

import (
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/gitops"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// gitOpsFaults are unwanted changes that tools would make to the documents.
func gitOpsFaults(g gitops.Tools, docs []source.Document) []source.Fault {
	var out []source.Fault
	for _, made := range g.Hashed {
		out = append(out, source.Fault{
			File: made.File, Line: made.Line, Path: "configMapGenerator",
			Message: fmt.Sprintf("%s gets a hash added to its name, so each edit makes another document, without the history, the slots and the intents of the one before: write generatorOptions: {disableNameSuffixHash: true}", made.Name),
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
	by, remedy, found := substitution(g, d)
	if !found {
		return source.Fault{}, false
	}
	return source.Fault{
		File: d.File, Line: d.LineAt("${"),
		Message: fmt.Sprintf("Flux takes ${…} for a variable of its own, since Kustomization %s has postBuild: %s", by.Name, remedy),
	}, true
}

// substitution is the Kustomization that replaces variables in a document, and what keeps it from
// that. A file without a manifest becomes a ConfigMap by a generator, if at all.
func substitution(g gitops.Tools, d source.Document) (by gitops.Substitution, remedy string, found bool) {
	if d.Object != nil {
		if d.Object.Annotations[gitops.SubstituteAnnotation] == "disabled" || d.Object.Labels[gitops.SubstituteAnnotation] == "disabled" {
			return by, "", false
		}
		by, found = g.SubstitutedBy(d.File)
		return by, fmt.Sprintf("put the annotation %s: disabled on this ConfigMap", gitops.SubstituteAnnotation), found
	}
	for _, made := range g.GeneratorsOf(d.File) {
		if by, found = g.SubstitutedBy(made.File); found && !made.Verbatim {
			return by, fmt.Sprintf("give configMapGenerator %s in %s the options: {annotations: {%s: disabled}}", made.Name, made.File, gitops.SubstituteAnnotation), true
		}
	}
	return by, "", false
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

// undoneByGitOps says that a GitOps tool would undo what a plan's steps change of its target; empty: none is
// known to.
func undoneByGitOps(g gitops.Tools, p source.Plan, templates map[string]plan.TemplateSpec) string {
	owners := g.OwnersOf(p.Source.File)
	if len(owners) == 0 {
		return ""
	}
	step, moves := gitops.MovesTarget(plan.Tree{Spec: p.Spec, Templates: templates})
	if !moves {
		return ""
	}
	return fmt.Sprintf("step %s changes %s; if %s manages that from Git, it undoes the change during the run: holdOwners: true suspends it meanwhile", step.Name, p.Spec.Target, strings.Join(articled(owners), " or "))
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
