package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// TemplateDocument is a step template: the text under the key step.yaml.
type TemplateDocument struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Spec       TemplateSpec `json:"spec"`
}

// TemplateSpec are steps with parameters: ${params.<name>}.
type TemplateSpec struct {
	Description string              `json:"description,omitempty"`
	Parameters  []TemplateParameter `json:"parameters,omitempty"`
	Steps       []Step              `json:"steps"`
}

// TemplateParameter is one parameter of a template.
type TemplateParameter struct {
	Name        string `json:"name"`
	Type        string `json:"type,omitempty"` // string (default), number, integer, boolean, object, array
	Default     any    `json:"default,omitempty"`
	Required    bool   `json:"required,omitempty"`
	Description string `json:"description,omitempty"`
}

// Params are the values of a template's parameters where a step uses it: what is
// given, and the defaults of the others.
func (t Tree) Params(s Step, given map[string]any) (map[string]any, error) {
	name := strings.TrimPrefix(s.Type, TemplatePrefix)
	out := map[string]any{}
	for _, p := range t.Templates[name].Parameters {
		value, have := given[p.Name]
		if !have && p.Default != nil {
			value, have = document.Clone(map[string]any{"v": p.Default})["v"], true
		}
		if !have {
			continue
		}
		if word := p.fits(value); word != "" {
			return nil, fmt.Errorf("parameter %s of template %s must be %s, is %T", p.Name, name, word, value)
		}
		out[p.Name] = value
	}
	return out, nil
}

// fits is empty when a value has the parameter's type, and else the type's word.
func (p TemplateParameter) fits(v any) string {
	ok, word := false, p.Type
	switch p.Type {
	case "", "string":
		_, ok = v.(string)
		word = "string"
	case "integer":
		_, ok = v.(int64)
	case "number":
		_, whole := v.(int64)
		_, float := v.(float64)
		ok = whole || float
	case "boolean":
		_, ok = v.(bool)
	case "object":
		_, ok = v.(map[string]any)
	case "array":
		_, ok = v.([]any)
	}
	if ok {
		return ""
	}
	return "of type " + word
}

// ParseTemplate reads a step template's text and reports everything wrong with it.
func ParseTemplate(text []byte, name string) (TemplateSpec, document.Faults) {
	var doc TemplateDocument
	c, ok := document.Read(text, &doc)
	if !ok {
		return doc.Spec, c.Faults()
	}
	v := &validator{c}
	v.Envelope(doc.APIVersion, doc.Kind, "StepTemplate")
	if name != "" && !document.DNSLabel(name) {
		v.Fault("metadata.name", "%q cannot name a template: at most %d characters of a-z, 0-9 and '-'", document.Cut(name, 100), document.MaxNameLength)
	}
	if v.template(doc.Spec) {
		doc.Spec.Steps = opened(doc.Spec.Steps)
	}
	return doc.Spec, c.Faults()
}

// template checks what a template says; false: there are so many steps that none was
// looked at.
func (v *validator) template(t TemplateSpec) bool {
	v.templateParameters(t.Parameters)
	if len(t.Steps) == 0 {
		v.Fault("spec.steps", "is empty: a template needs a step")
	}
	if n := countSteps(t.Steps); n > MaxSteps {
		v.Fault("spec.steps", "a template may have %d steps, this one has %d", MaxSteps, n)
		return false
	}
	v.steps("spec.steps", t.Steps, place{section: SectionSteps, template: true}, map[string]string{})
	return true
}

func (v *validator) templateParameters(ps []TemplateParameter) {
	seen := map[string]bool{}
	for i, p := range ps {
		path := fmt.Sprintf("spec.parameters[%d]", i)
		if !labelName().MatchString(p.Name) {
			v.Fault(path+".name", "%q cannot name a parameter: letters, digits, '-', '_' and '.'", document.Cut(p.Name, 100))
		}
		if seen[p.Name] {
			v.Fault(path+".name", "%q appears twice", p.Name)
		}
		seen[p.Name] = true
		if !slices.Contains([]string{"", "string", "number", "integer", "boolean", "object", "array"}, p.Type) {
			v.Fault(path+".type", "must be string, number, integer, boolean, object or array, is %q", document.Cut(p.Type, 100))
			continue
		}
		if p.Default != nil {
			if word := p.fits(expr.Whole(p.Default)); word != "" {
				v.Fault(path+".default", "must be %s", word)
			}
		}
	}
}

// The contexts in which a plan runs: interactive is one that only people start.
const (
	ContextMaintenance = "maintenance"
	ContextInteractive = "interactive"
)

// Context is the context of a plan.
func (s Spec) Context() string {
	if t := s.Triggers; len(t.Schedules)+len(t.Labels)+len(t.Watch) == 0 {
		return ContextInteractive
	}
	return ContextMaintenance
}

// Template is a step template as it stands in the cluster or in files.
type Template struct {
	Spec     TemplateSpec
	Faults   document.Faults
	Contexts []string // where it is permitted; none said: interactive
}

// UseTemplates finds the templates that a spec's steps name, those in templates
// too, and says what is wrong with their use. find gives nil for one that is not
// there.
func UseTemplates(s Spec, find func(name string) *Template) (map[string]TemplateSpec, document.Faults) {
	u := templateUse{context: s.Context(), find: find, used: map[string]TemplateSpec{}}
	for _, section := range Sections(s) {
		u.steps("spec."+string(section.Name), section.Steps, nil)
	}
	if n := u.count; n > MaxSteps*2 && len(u.faults) == 0 {
		u.faults = append(u.faults, document.Fault{Path: "spec.steps", Message: fmt.Sprintf("with their templates they are %d; at most %d are run", n, MaxSteps*2)})
	}
	return u.used, u.faults
}

type templateUse struct {
	context string
	find    func(name string) *Template
	used    map[string]TemplateSpec
	faults  document.Faults
	count   int
}

func (u *templateUse) fault(path, format string, args ...any) {
	u.faults = append(u.faults, document.Fault{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (u *templateUse) steps(list string, steps []Step, within []string) {
	for i, s := range steps {
		path := fmt.Sprintf("%s[%d]", list, i)
		if u.count++; u.count > MaxSteps*2 {
			return
		}
		name, is := strings.CutPrefix(s.Type, TemplatePrefix)
		if !is {
			u.steps(path+".properties.steps", s.inner(), within)
			continue
		}
		u.template(path, name, s, within)
	}
}

func (u *templateUse) template(path, name string, s Step, within []string) {
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
		contexts = []string{ContextInteractive}
	}
	if !slices.Contains(contexts, u.context) {
		u.fault(path+".type", "step template %q is permitted in %s plans, not in %s ones", name, strings.Join(contexts, ", "), u.context)
	}
	u.parameters(path, name, s, t.Spec)
	u.used[name] = t.Spec
	if len(within) < MaxDepth {
		u.steps(path+"("+name+").steps", t.Spec.Steps, append(slices.Clone(within), name))
		return
	}
	u.fault(path+".type", "is too deep: steps may hold steps %d times", MaxDepth)
}

// parameters checks what a step gives a template. A value that holds an
// expression is checked when it has been evaluated.
func (u *templateUse) parameters(path, name string, s Step, t TemplateSpec) {
	known := map[string]TemplateParameter{}
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
			if word := p.fits(s.Properties[key]); word != "" {
				u.fault(path+".properties."+key, "must be %s", word)
			}
		}
	}
}
