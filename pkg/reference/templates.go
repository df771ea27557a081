// Package reference finds what a plan names in other documents, its step templates and its
// connectors, and says what is wrong with their use.
package reference

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// UseTemplates finds the templates that a spec's steps name, those in templates
// too, and says what is wrong with their use. find gives nil for one that is not
// there.
func UseTemplates(s plan.Spec, find func(name string) *plan.Template) (map[string]plan.TemplateSpec, document.Faults) {
	u := templateUse{context: s.Context(), find: find, used: map[string]plan.TemplateSpec{}}
	for _, section := range plan.Sections(s) {
		u.steps("spec."+string(section.Name), section.Steps, nil)
	}
	if n := u.count; n > plan.MaxSteps*2 && len(u.faults) == 0 {
		u.faults = append(u.faults, document.Fault{Path: "spec.steps", Message: fmt.Sprintf("with their templates they are %d; at most %d are run", n, plan.MaxSteps*2)})
	}
	return u.used, u.faults
}

type templateUse struct {
	context string
	find    func(name string) *plan.Template
	used    map[string]plan.TemplateSpec
	faults  document.Faults
	count   int
}

func (u *templateUse) fault(path, format string, args ...any) {
	u.faults = append(u.faults, document.Fault{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (u *templateUse) steps(list string, steps []plan.Step, within []string) {
	for i, s := range steps {
		path := fmt.Sprintf("%s[%d]", list, i)
		if u.count++; u.count > plan.MaxSteps*2 {
			return
		}
		name, is := strings.CutPrefix(s.Type, plan.TemplatePrefix)
		if !is {
			u.steps(path+".properties.steps", plan.Tree{}.Children(s), within)
			continue
		}
		u.template(path, name, s, within)
	}
}

func (u *templateUse) template(path, name string, s plan.Step, within []string) {
	if slices.Contains(within, name) {
		u.fault(path+".type", "template %q stands for itself through %s", name, strings.Join(within, ", "))
		return
	}
	t := u.find(name)
	switch {
	case t == nil:
		u.fault(path+".type", "there is no step template %q", document.Cut(name, 100))
		return
	case len(t.Faults) > 0:
		u.fault(path+".type", "step template %q is not valid: %s", name, t.Faults[0])
		return
	}
	contexts := t.Contexts
	if len(contexts) == 0 {
		contexts = []string{plan.ContextInteractive}
	}
	if !slices.Contains(contexts, u.context) {
		u.fault(path+".type", "step template %q is permitted in %s plans, not in %s ones", name, strings.Join(contexts, ", "), u.context)
	}
	u.parameters(path, name, s, t.Spec)
	u.used[name] = t.Spec
	if len(within) < plan.MaxDepth {
		u.steps(path+"("+name+").steps", t.Spec.Steps, append(slices.Clone(within), name))
		return
	}
	u.fault(path+".type", "is too deep: steps may hold steps %d times", plan.MaxDepth)
}

// parameters checks what a step gives a template. A value that holds an
// expression is checked when it has been evaluated.
func (u *templateUse) parameters(path, name string, s plan.Step, t plan.TemplateSpec) {
	known := map[string]plan.TemplateParameter{}
	for _, p := range t.Parameters {
		known[p.Name] = p
		if _, given := s.Properties[p.Name]; !given && p.Required && p.Default == nil {
			u.fault(path+".properties."+p.Name, "is missing: template %q needs it", name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		p, ok := known[key]
		switch text, is := s.Properties[key].(string); {
		case !ok:
			u.fault(path+".properties."+key, "template %q has no such parameter; it has %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case is && expr.IsTemplate(text):
		default:
			if word := p.Fits(s.Properties[key]); word != "" {
				u.fault(path+".properties."+key, "must be %s", word)
			}
		}
	}
}
