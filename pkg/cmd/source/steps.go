package source

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// WithDashHints explains how to refer to a step with a dash in its name: CEL reads steps.scale-down
// as a subtraction, of unknown names or, worse, of known ones.
func WithDashHints(d string, spec plan.Spec, faults document.Faults) document.Faults {
	var names []string
	EachStep(spec, func(_ string, s plan.Step) {
		if strings.Contains(s.Name, "-") {
			names = append(names, regexp.QuoteMeta(s.Name))
		}
	})
	if len(names) == 0 {
		return faults
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) }) // its faults are reported already
	dashed := regexp.MustCompile(`\bsteps\.(` + strings.Join(names, "|") + `)\b`)
	lines, _ := document.Decode([]byte(d), &plan.Document{}) // its faults are among the faults already
	eachText(spec, func(path, text string) {
		if m := dashed.FindStringSubmatch(text); m != nil {
			faults = hint(faults, document.Fault{Path: path, Line: lines.Line(path), Message: fmt.Sprintf("a step whose name has a dash is written steps['%s']", m[1])})
		}
	})
	return faults
}

// hint adds to the fault of a path, or is a fault of its own.
func hint(faults document.Faults, h document.Fault) document.Faults {
	i := slices.IndexFunc(faults, func(f document.Fault) bool { return f.Path == h.Path })
	if i < 0 {
		return append(faults, h)
	}
	faults = slices.Clone(faults)
	faults[i].Message += "; " + h.Message
	return faults
}

// EachStep visits every step of a plan, nested ones included.
func EachStep(spec plan.Spec, visit func(path string, s plan.Step)) {
	WalkSteps("spec.steps", spec.Steps, visit)
	WalkSteps("spec.onFailure", spec.OnFailure, visit)
	WalkSteps("spec.finally", spec.Finally, visit)
}

// WalkSteps visits the steps of a list, nested ones included, with their paths.
func WalkSteps(list string, steps []plan.Step, visit func(path string, s plan.Step)) {
	for i, s := range steps {
		path := fmt.Sprintf("%s[%d]", list, i)
		visit(path, s)
		WalkSteps(path+".properties.steps", heldBy(s), visit)
	}
}

// heldBy are the nested steps in the properties of a step.
func heldBy(s plan.Step) []plan.Step {
	list, is := s.Properties["steps"].([]any)
	if !is || s.Type != plan.TypeGroup && !plan.IsLoop(s.Type) {
		return nil
	}
	var held struct {
		Steps []plan.Step `json:"steps"`
	}
	if faults := document.DecodeValue(map[string]any{"steps": list}, "", nil, true, &held); len(faults) > 0 {
		return nil // reported already
	}
	return held.Steps
}

// EachExpression visits every expression in the steps of a plan, also the ${…} in their properties.
func EachExpression(spec plan.Spec, visit func(path, expression string)) {
	eachText(spec, func(path, text string) {
		if !strings.Contains(text, "${") {
			visit(path, text)
			return
		}
		for _, expression := range expr.InText(text) {
			visit(path, expression)
		}
	})
}

// eachText visits every text that may contain CEL.
func eachText(spec plan.Spec, visit func(path, text string)) {
	EachStep(spec, func(path string, s plan.Step) {
		visit(path+".if", s.If)
		eachString(path+".properties", s.Own(), func(path, text string) {
			if strings.Contains(text, "${") || strings.HasSuffix(path, ".until") {
				visit(path, text)
			}
		})
	})
}

func eachString(path string, v any, visit func(path, text string)) {
	switch v := v.(type) {
	case string:
		visit(path, v)
	case map[string]any:
		for key, item := range v {
			eachString(path+"."+key, item, visit)
		}
	case []any:
		for i, item := range v {
			eachString(fmt.Sprintf("%s[%d]", path, i), item, visit)
		}
	}
}
