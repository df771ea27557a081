package plan

import (
	"maps"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// CheckSnapshot says what is wrong with a plan as a run holds it, as Parse says it of
// the document: a run's object can be written by whoever may write ConfigMaps in its
// namespace. reference.CheckTree has to have found nothing. Paths of a template's faults begin with
// templates and its name. Where a template may be used was judged when the snapshot was
// taken.
func CheckSnapshot(s Spec, templates map[string]TemplateSpec) document.Faults {
	v := &validator{Checker: document.NewChecker(), snapshot: true}
	v.spec(s)
	faults := v.Faults()
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		t := &validator{Checker: document.NewChecker(), snapshot: true}
		t.template(templates[name])
		for _, f := range t.Faults() {
			f.Path = "templates." + name + "." + f.Path
			faults = append(faults, f)
		}
	}
	return faults
}
