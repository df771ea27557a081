package reference

import (
	"maps"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// CheckTree says whether the steps of a snapshot can be walked: none holds itself, and
// there are no more of them, and none deeper, than a plan may have. It is quick, for
// whoever only shows a run.
func CheckTree(s plan.Spec, templates map[string]plan.TemplateSpec) document.Faults {
	if faults := tooDeep(s, templates); len(faults) > 0 {
		return faults
	}
	_, faults := UseTemplates(s, func(name string) *plan.Template {
		t, there := templates[name]
		if !there {
			return nil
		}
		return &plan.Template{Spec: t, Contexts: []string{plan.ContextMaintenance, plan.ContextInteractive}}
	})
	return faults
}

// tooDeep are the steps whose properties are nested deeper than a document may be:
// nothing walks those.
func tooDeep(s plan.Spec, templates map[string]plan.TemplateSpec) (faults document.Faults) {
	look := func(path string, steps []plan.Step) {
		for i, step := range steps {
			if document.TooDeep(step.Properties) {
				faults = append(faults, document.Fault{Path: document.Index(path, i) + ".properties", Message: "are nested too deep"})
			}
		}
	}
	for _, section := range plan.Sections(s) {
		look("spec."+string(section.Name), section.Steps)
	}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		look("templates."+name+".spec.steps", templates[name].Steps)
	}
	return faults
}
