package cmd

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// withDashHints says, where an expression speaks of a step whose name has a
// dash, how that is written: CEL reads steps.scale-down as a subtraction, and
// finds either an unknown name or, worse, a known one.
func withDashHints(document string, spec plan.Spec, faults plan.Faults) plan.Faults {
	var names []string
	eachStep(spec, func(_ string, s plan.Step) {
		if strings.Contains(s.Name, "-") {
			names = append(names, regexp.QuoteMeta(s.Name))
		}
	})
	if len(names) == 0 {
		return faults
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) }) // the longest that fits is meant
	dashed := regexp.MustCompile(`\bsteps\.(` + strings.Join(names, "|") + `)\b`)
	lines, _ := plan.Decode([]byte(document), &plan.Document{}) // its faults are among the faults already
	eachExpression(spec, func(path, text string) {
		if m := dashed.FindStringSubmatch(text); m != nil {
			faults = hint(faults, plan.Fault{Path: path, Line: lines.Line(path), Message: fmt.Sprintf("a step whose name has a dash is written steps['%s']", m[1])})
		}
	})
	return faults
}

// hint adds to the fault of a path, or is one.
func hint(faults plan.Faults, h plan.Fault) plan.Faults {
	i := slices.IndexFunc(faults, func(f plan.Fault) bool { return f.Path == h.Path })
	if i < 0 {
		return append(faults, h)
	}
	faults = slices.Clone(faults)
	faults[i].Message += "; " + h.Message
	return faults
}

func eachStep(spec plan.Spec, visit func(path string, s plan.Step)) {
	for _, section := range []struct {
		path  string
		steps []plan.Step
	}{{"spec.steps", spec.Steps}, {"spec.onFailure", spec.OnFailure}, {"spec.finally", spec.Finally}} {
		for i, s := range section.steps {
			visit(fmt.Sprintf("%s[%d]", section.path, i), s)
		}
	}
}

// eachExpression visits every text in which CEL may stand.
func eachExpression(spec plan.Spec, visit func(path, text string)) {
	eachStep(spec, func(path string, s plan.Step) {
		visit(path+".if", s.If)
		eachString(path+".properties", s.Properties, func(path, text string) {
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
