package plan

import (
	"fmt"
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
		if word := p.Fits(value); word != "" {
			return nil, fmt.Errorf("parameter %s of template %s must be %s, is %T", p.Name, name, word, value)
		}
		out[p.Name] = value
	}
	return out, nil
}

// Fits is empty when a value has the parameter's type, and else the type's word.
func (p TemplateParameter) Fits(v any) string {
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
	v := &validator{Checker: c}
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
			if word := p.Fits(expr.Whole(p.Default)); word != "" {
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
