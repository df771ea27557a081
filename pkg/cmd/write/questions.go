package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// question is one about a step: what is asked, in which form it is answered, and what the answer
// sets.
type question struct {
	what, form string
	otherwise  string // the meaning of an empty answer; empty: there has to be one
	set        func(step *plan.Step, answer string) error
}

// questions are those about a step of a type. A type without questions of its own is asked for what
// it requires.
func (o *newOptions) questions(kind plan.StepType) []question {
	switch kind.Name {
	case "label":
		return o.keyQuestions("labels")
	case "annotate":
		return o.keyQuestions("annotations")
	case plan.TypeHoldOwners:
		held := o.objectQuestion("object", "the object whose owner in Git is suspended")
		return []question{{what: held.what, form: held.form, otherwise: held.otherwise, set: func(s *plan.Step, answer string) error {
			s.Properties["restoreAfter"] = true
			return held.set(s, answer)
		}}}
	case "suspend":
		return []question{o.optional("duration", "like 10m", "until somebody resumes the run")}
	case "wait":
		return []question{o.objectQuestion("resource", "the object"), {what: "what is waited for", form: "a condition like Available, or CEL like object.status.readyReplicas > 1", set: setWait}}
	case "job":
		return []question{o.property("image", "like busybox:1.37"), {what: "command", form: "words, like sh -c date", otherwise: "that of the image", set: setWords("command")}}
	case "health-check":
		return []question{{what: "what has to be healthy", form: "KIND/NAME, a label KEY=VALUE, or all", set: o.setHealthy}}
	case "exec":
		return []question{{what: "pod", form: "its name, or a label KEY=VALUE", set: setPod}, {what: "command", form: "words, like pg_dump orders", set: setWords("command")}}
	case plan.TypeBackup:
		return []question{o.property("method", "volume-snapshot or velero"), {what: "what", form: "a label KEY=VALUE; for volume-snapshot also the name of a StatefulSet, Deployment or claim", set: setBackup}}
	case plan.TypeFunction:
		return []question{{what: "function", form: functionForm, set: func(s *plan.Step, answer string) error {
			maps.Copy(s.Properties, functionOf(answer))
			return nil
		}}}
	case plan.TypePipeline:
		return []question{{what: "functions", form: "in their order, each " + functionForm + ": resize,check=fn.example.org:9443", set: setFunctions}}
	case plan.TypeApproval:
		return []question{o.optional("message", "what is asked", "nothing in particular")}
	case plan.TypeCordon, plan.TypeDrain, plan.TypeUncordon:
		return []question{{what: "which nodes", form: "the name of a node, or a label KEY=VALUE", set: o.setNodes}}
	}
	return o.requiredQuestions(kind)
}

// requiredQuestions ask for the properties that a type requires.
func (o *newOptions) requiredQuestions(kind plan.StepType) []question {
	var out []question
	for _, property := range kind.Required {
		q := o.property(property, propertyForms()[property])
		switch property {
		case "resource":
			q = o.objectQuestion(property, property)
		case "object", "patch", "steps":
			q.set = setJSON(property)
		case "sinks":
			q.set = setList(property)
		case "matchers":
			q.set = setMatchers
		}
		out = append(out, q)
	}
	return out
}

// propertyForms are the forms of properties that are written alike in all types.
func propertyForms() map[string]string {
	return map[string]string{
		"replicas": "a number", "url": "like https://example.org/hook", "alertmanager": "its URL, like http://alertmanager.monitoring:9093",
		"patch": `JSON, like {"spec":{"paused":true}}`, "object": `a manifest in JSON, like {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`,
		"query": "of PromQL, like sum(rate(errors[5m]))", "condition": "like < 0.01", "message": "a text", "sinks": "names of the agent's configuration, like ops,chat",
		"matchers": "labels of alerts, like alertname=Down,team=web", "plan": "the name of a HibernatePlan",
		"apiVersion": "like apps/v1", "kind": "like Deployment", "steps": `JSON, like [{"name":"hold","type":"suspend"}]`,
	}
}

// property asks for one that is set as in --step.
func (o *newOptions) property(name, form string) question {
	return question{what: name, form: form, set: func(s *plan.Step, answer string) error { return o.setField(s, name, answer) }}
}

func (o *newOptions) optional(name, form, otherwise string) question {
	q := o.property(name, form)
	q.otherwise = otherwise
	return q
}

// objectQuestion asks for an object, and offers the plan's target.
func (o *newOptions) objectQuestion(property, what string) question {
	q := o.property(property, "KIND/NAME or APIVERSION/KIND/NAME, like Deployment/orders")
	q.what = what
	if set := q.set; o.flags.target != "" {
		q.otherwise = o.flags.target
		q.set = func(s *plan.Step, answer string) error {
			if answer == "" {
				answer = o.flags.target
			}
			return set(s, answer)
		}
	}
	return q
}

// keyQuestions ask for labels or annotations that are added or removed.
func (o *newOptions) keyQuestions(property string) []question {
	operation := o.property("operation", "add or remove")
	set := operation.set
	operation.set = func(s *plan.Step, answer string) error {
		if answer != "add" && answer != "remove" {
			return fmt.Errorf("%q is neither add nor remove", answer)
		}
		return set(s, answer)
	}
	keys := question{what: property, form: "KEY=VALUE,… to add, KEY,… to remove", set: func(s *plan.Step, answer string) error {
		if s.Properties["operation"] == "remove" {
			return setList(property)(s, answer)
		}
		added := map[string]any{}
		for pair := range strings.SplitSeq(answer, ",") {
			key, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			added[key] = value
		}
		s.Properties[property] = added
		return nil
	}}
	return []question{operation, keys, o.objectQuestion("object", "the object")}
}

func setJSON(property string) func(*plan.Step, string) error {
	return func(s *plan.Step, answer string) error {
		var value any
		if err := json.Unmarshal([]byte(answer), &value); err != nil {
			return fmt.Errorf("%s is no JSON: %w", document.Cut(answer, longestGone), err)
		}
		s.Properties[property] = value
		return nil
	}
}

func setList(property string) func(*plan.Step, string) error {
	return func(s *plan.Step, answer string) error {
		list := []any{}
		for one := range strings.SplitSeq(answer, ",") {
			list = append(list, strings.TrimSpace(one))
		}
		s.Properties[property] = list
		return nil
	}
}

func setWords(property string) func(*plan.Step, string) error {
	return func(s *plan.Step, answer string) error {
		if strings.ContainsAny(answer, "\"'`\\") {
			return errors.New("quotes are not read here: give words without them, or the whole step as JSON when its type is asked for")
		}
		if words := strings.Fields(answer); len(words) > 0 {
			s.Properties[property] = words
		}
		return nil
	}
}

func setWait(s *plan.Step, answer string) error {
	if regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`).MatchString(answer) {
		s.Properties["condition"] = answer
		return nil
	}
	s.Properties["until"] = answer
	return nil
}

func (o *newOptions) setHealthy(s *plan.Step, answer string) error {
	switch {
	case answer == "all":
		s.Properties["all"] = true
		return nil
	case strings.Contains(answer, "="): // the key of a label may hold a slash, too
		return o.setField(s, "selector", answer)
	}
	return o.setField(s, "resource", answer)
}

func (o *newOptions) setNodes(s *plan.Step, answer string) error {
	if strings.Contains(answer, "=") {
		return o.setField(s, "selector", answer)
	}
	s.Properties["node"] = answer
	return nil
}

func setPod(s *plan.Step, answer string) error {
	if !strings.Contains(answer, "=") {
		s.Properties["pod"] = map[string]any{"name": answer}
		return nil
	}
	labels, err := labelsOf(answer)
	s.Properties["pod"] = map[string]any{"matchLabels": labels}
	return err
}

func setBackup(s *plan.Step, answer string) error {
	if !strings.Contains(answer, "=") {
		s.Properties["component"] = answer
		return nil
	}
	labels, err := labelsOf(answer)
	s.Properties["selector"] = map[string]any{"matchLabels": labels}
	return err
}

// functionForm is how a function is given: one with a port is an endpoint.
const functionForm = "HOST:PORT, like fn.example.org:9443, or the name of an installed Crossplane function"

// functionOf are the properties that say which function is called.
func functionOf(answer string) map[string]any {
	if strings.Contains(answer, ":") {
		return map[string]any{"endpoint": answer}
	}
	return map[string]any{"functionRef": map[string]any{"name": answer}}
}

// setFunctions reads NAME=FUNCTION,…; a function without a name has that of its host, or its own.
func setFunctions(s *plan.Step, answer string) error {
	list := []any{}
	for one := range strings.SplitSeq(answer, ",") {
		name, where, named := strings.Cut(strings.TrimSpace(one), "=")
		if !named {
			where = name
			name, _, _ = strings.Cut(name, ":")
			name, _, _ = strings.Cut(name, ".")
		}
		function := functionOf(where)
		function["name"] = name
		list = append(list, function)
	}
	s.Properties["functions"] = list
	return nil
}

func setMatchers(s *plan.Step, answer string) error {
	list := []any{}
	for pair := range strings.SplitSeq(answer, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok {
			return fmt.Errorf("%q: write it like alertname=Down", pair)
		}
		list = append(list, map[string]any{"name": name, "value": value})
	}
	s.Properties["matchers"] = list
	return nil
}

// stepText is a step in a format of --step; about a bare type, questions are asked.
func (o *newOptions) stepText(ctx context.Context, answer string) (string, error) {
	if strings.HasPrefix(answer, "{") {
		return answer, nil
	}
	head, _, more := strings.Cut(answer, ",")
	if strings.Contains(head, "=") {
		return answer, nil
	}
	kind, known := plan.StepTypeNamed(head)
	if !known {
		return "", errors.New(plan.UnknownType(head))
	}
	name := stepName(head, len(o.flags.steps))
	if more { // TYPE,key=value,… wants no more than a name
		return name + "=" + answer, nil
	}
	step := plan.Step{Name: name, Type: head, Properties: map[string]any{}}
	for _, q := range o.questions(kind) {
		if err := o.askAbout(ctx, &step, q); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(step)
	return string(text), err
}

// askAbout asks one question about a step.
func (o *newOptions) askAbout(ctx context.Context, step *plan.Step, q question) error {
	what := "  " + q.what
	if q.form != "" {
		what += " (" + q.form + ")"
	}
	return o.ask(ctx, what, q.otherwise, func(answer string) error {
		explain := fmt.Sprintf("%s explain plan.spec.steps.%s", o.Name, step.Type)
		switch {
		case answer == "?":
			return fmt.Errorf("'%s' says what it takes", explain)
		case answer == "" && q.otherwise == "":
			return fmt.Errorf("%s needs it: see %s", step.Type, explain)
		case answer == "" && q.otherwise != o.flags.target:
			return nil
		}
		before := maps.Clone(step.Properties)
		err := q.set(step, answer)
		if err != nil { // of an answer that is refused, nothing stays
			step.Properties = before
		}
		return err
	})
}
