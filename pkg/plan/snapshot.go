package plan

import (
	"maps"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// CheckSnapshot says what is wrong with a plan as a run holds it, as Parse says it of
// the document: a run's object can be written by whoever may write ConfigMaps in its
// namespace. CheckTree has to have found nothing. Paths of a template's faults begin with
// templates and its name. Where a template may be used was judged when the snapshot was
// taken.
func CheckSnapshot(s Spec, templates map[string]TemplateSpec) document.Faults {
	v := &validator{document.NewChecker()}
	v.spec(s)
	faults := v.Faults()
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		t := &validator{document.NewChecker()}
		t.template(templates[name])
		for _, f := range t.Faults() {
			f.Path = "templates." + name + "." + f.Path
			faults = append(faults, f)
		}
	}
	return faults
}

// CheckTree says whether the steps of a snapshot can be walked: none holds itself, and
// there are no more of them, and none deeper, than a plan may have. It is quick, for
// whoever only shows a run.
func CheckTree(s Spec, templates map[string]TemplateSpec) document.Faults {
	if faults := tooDeep(s, templates); len(faults) > 0 {
		return faults
	}
	_, faults := UseTemplates(s, func(name string) *Template {
		t, there := templates[name]
		if !there {
			return nil
		}
		return &Template{Spec: t, Contexts: []string{ContextMaintenance, ContextInteractive}}
	})
	return faults
}

// tooDeep are the steps whose properties are nested deeper than a document may be:
// nothing walks those.
func tooDeep(s Spec, templates map[string]TemplateSpec) (faults document.Faults) {
	look := func(path string, steps []Step) {
		for i, step := range steps {
			if document.TooDeep(step.Properties) {
				faults = append(faults, document.Fault{Path: document.Index(path, i) + ".properties", Message: "are nested too deep"})
			}
		}
	}
	for _, section := range Sections(s) {
		look("spec."+string(section.Name), section.Steps)
	}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		look("templates."+name+".spec.steps", templates[name].Steps)
	}
	return faults
}
