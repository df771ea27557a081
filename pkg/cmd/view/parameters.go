package view

import (
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// CheckParameters tells which parameters of a run are missing, or are none of its plan.
func CheckParameters(spec plan.Spec, given map[string]string, f *exit.Faults) {
	var names []string
	for _, p := range spec.Parameters {
		names = append(names, p.Name)
		if _, ok := given[p.Name]; !ok && p.Default == nil {
			f.Add("the plan's parameter %s has no default: give --param %s=…", p.Name, p.Name)
		}
	}
	for name := range given {
		if slices.Contains(names, name) {
			continue
		}
		if len(names) == 0 {
			f.Add("--param %s: the plan has no parameters", name)
			continue
		}
		f.Add("--param %s: the plan has no such parameter; it has %s", name, strings.Join(names, ", "))
	}
	slices.Sort(*f)
}
