package write

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// completeStep offers the types of steps after NAME=, and after a type its required fields.
func completeStep(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	head, rest, typed := strings.Cut(word, ",")
	name, kind, named := strings.Cut(head, "=")
	if !named {
		return nil, directive
	}
	var out []string
	if !typed {
		for _, t := range plan.StepTypes() {
			out = append(out, name+"="+t.Name)
		}
	} else if t, known := plan.StepTypeNamed(kind); known {
		before := word[:strings.LastIndex(word, ",")+1]
		for _, field := range t.Required {
			if !strings.HasPrefix(rest, field+"=") && !strings.Contains(rest, ","+field+"=") {
				out = append(out, before+field+"=")
			}
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return !strings.HasPrefix(s, word) }), directive
}

// parseSteps parses the steps of a flag.
func (o *scheduleOptions) parseSteps(flag string, texts []string) []plan.Step {
	var out []plan.Step
	for _, text := range texts {
		step, err := o.parseStep(text)
		if err != nil {
			o.faults.Add("%s %s", flag, err)
			continue
		}
		out = append(out, step)
	}
	return out
}

// parseStep parses a step as JSON, or as NAME=TYPE,key=value,….
func (o *scheduleOptions) parseStep(text string) (plan.Step, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return jsonStep(text)
	}
	head, rest, _ := strings.Cut(text, ",")
	name, kind, ok := strings.Cut(head, "=")
	if !ok {
		return plan.Step{}, fmt.Errorf("%q: begin with NAME=TYPE, like hold=suspend,duration=10m", text)
	}
	step := plan.Step{Name: name, Type: kind, Properties: map[string]any{}}
	for pair := range strings.SplitSeq(rest, ",") {
		if pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return step, fmt.Errorf("%q: %q must be key=value; a value with a comma needs the step as JSON", text, pair)
		}
		if err := o.setField(&step, key, value); err != nil {
			return step, fmt.Errorf("%q: %w", text, err)
		}
	}
	if len(step.Properties) == 0 {
		step.Properties = nil
	}
	return step, nil
}

func jsonStep(text string) (plan.Step, error) {
	var step plan.Step
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	d.UseNumber() // 0 stays 0, not 0.0
	if err := d.Decode(&step); err != nil {
		return step, fmt.Errorf("%q: %w", text, err)
	}
	return step, nil
}

// setField sets a field of a step: few are the step's own, the others are properties of its type.
func (o *scheduleOptions) setField(step *plan.Step, key, text string) error {
	if strings.HasPrefix(step.Type, plan.TemplatePrefix) && key != "if" && key != "timeout" { // a template defines its own parameters
		step.Properties[key] = scalarOf(text)
		return nil
	}
	switch key {
	case "if":
		step.If = text
		return nil
	case "timeout":
		if step.Type != "webhook" && step.Type != plan.TypeApproval { // theirs are for one delivery, and for the question
			d, err := document.ParseDuration(text)
			step.Timeout = &d
			return err
		}
	case "resource", "object":
		ref, err := o.resource(text)
		step.Properties[key] = map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind, "name": ref.Name}
		return err
	case "selector":
		labels, err := labelsOf(text)
		step.Properties[key] = map[string]any{"matchLabels": labels}
		return err
	case "labels", "annotations":
		keys, _ := step.Properties[key].([]any)
		step.Properties[key] = append(keys, text)
		return nil
	}
	outer, inner, nested := strings.Cut(key, ".")
	if !nested {
		step.Properties[key] = scalarOf(text)
		return nil
	}
	sub, ok := step.Properties[outer].(map[string]any)
	if !ok {
		sub = map[string]any{}
		step.Properties[outer] = sub
	}
	if slices.Contains([]string{"labels", "annotations", "headers"}, outer) {
		sub[inner] = text // their values are strings in any case
		return nil
	}
	sub[inner] = scalarOf(text)
	return nil
}

// labelsOf parses the single label of a short selector.
func labelsOf(text string) (map[string]any, error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return nil, fmt.Errorf("selector=%s: write it like selector=app=orders; more than one label needs the step as JSON", text)
	}
	return map[string]any{key: value}, nil
}

// scalarOf parses true, false and numbers.
func scalarOf(s string) any {
	if s == "true" || s == "false" {
		return s == "true"
	}
	if n := json.Number(s); s != "" && json.Valid([]byte(s)) && strings.Trim(s, "0123456789+-.eE") == "" {
		return n
	}
	return s
}

// groupResource is a kind as people write it, for discovery: plurals, singulars, short names, and
// certificates.cert-manager.io.
func groupResource(kind string) schema.GroupVersionResource {
	return schema.ParseGroupResource(strings.ToLower(kind)).WithVersion("")
}
