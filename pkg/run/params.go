package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// KnownParams are the parameters of the template that the step at a path stands in, as far as
// they follow from what the journal knows. unknown says of each other one why it does not: what
// it is made of is read by steps alone, or is not of its type. Outside of templates there are
// none.
func (r Run) KnownParams(j Journal, path string) (params map[string]any, unknown map[string]error) {
	step, at, in := r.Tree().TemplateOf(path)
	if !in {
		return nil, nil
	}
	outer, _ := r.KnownParams(j, at)
	vars := VarsAt(r, j, at, Inputs{Params: outer})
	unknown = map[string]error{}
	params, _ = r.Tree().Params(step, nil) // defaults fit: the validator saw to it
	for name, given := range step.Properties {
		delete(params, name)
		value, err := expr.Expand(expr.Whole(document.Clone(map[string]any{name: given})), vars)
		if err != nil {
			unknown[name] = err
			continue
		}
		one, err := r.Tree().Params(step, value.(map[string]any))
		if err != nil {
			unknown[name] = err
			continue
		}
		if value, is := one[name]; is {
			params[name] = value
		}
	}
	return params, unknown
}

// Condition is whether a condition of the step at a path holds, over what the journal knows.
func (r Run) Condition(j Journal, path, text string) (bool, error) {
	var params map[string]any
	var unknown map[string]error
	if strings.Contains(text, "params") {
		params, unknown = r.KnownParams(j, path)
	}
	vars := VarsAt(r, j, path, Inputs{Params: params})
	ok, err := expr.Bool(text, vars)
	if err == nil || len(unknown) == 0 {
		return ok, err
	}
	for _, read := range expr.Paths(text, "params", slices.Sorted(maps.Keys(vars))...) {
		if why := unknown[read[0]]; why != nil {
			return false, fmt.Errorf("params.%s is not known to a condition: %w", read[0], why)
		}
	}
	return ok, err
}
