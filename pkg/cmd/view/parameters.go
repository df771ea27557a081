package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// ParametersToGive are the flags without which trigger refuses, each with a space before it: the parameters
// of a plan that have no default.
func ParametersToGive(spec plan.Spec) (flags string) {
	for _, p := range spec.Parameters {
		if p.Default == nil {
			flags += " --param " + intent.Word(p.Name) + "=" + intent.Unsaid
		}
	}
	return flags
}

// ParameterFaults say which parameters of a run are missing, or are none of its plan.
func ParameterFaults(spec plan.Spec, given map[string]string) (out []string) {
	var names []string
	for _, p := range spec.Parameters {
		names = append(names, p.Name)
		if _, ok := given[p.Name]; !ok && p.Default == nil {
			out = append(out, fmt.Sprintf("the plan's parameter %s has no default: give --param %s=…", p.Name, p.Name))
		}
	}
	for name := range given {
		if slices.Contains(names, name) {
			continue
		}
		if len(names) == 0 {
			out = append(out, fmt.Sprintf("--param %s: the plan has no parameters", name))
			continue
		}
		out = append(out, fmt.Sprintf("--param %s: the plan has no such parameter; it has %s", name, strings.Join(names, ", ")))
	}
	slices.Sort(out)
	return out
}
