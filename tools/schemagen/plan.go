package main

import (
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func planSchema(s source) (*jsonschema.Schema, error) {
	var properties []any
	for _, t := range plan.StepTypes() {
		properties = append(properties, t.New())
	}
	e := reflectAll(s, &plan.Document{}, properties...)
	e.envelope("Document", "Plan", "Plan of kubectl maint (plan.yaml)")
	if err := e.defaults("Spec", plan.Spec{}.Defaulted()); err != nil {
		return nil, err
	}
	e.limits()
	e.notYet()
	e.schedules()
	e.steps()
	e.headers()
	e.keys("LabelProperties", "labels")
	e.keys("AnnotateProperties", "annotations")
	e.patch()
	e.oneOf("WaitProperties", "condition", "until")
	e.oneOf("JobProperties", "template", "image")
	e.words("WebhookProperties.method", "GET", "POST", "PUT", "PATCH", "DELETE")
	e.span("ScaleProperties.replicas", 0, 1_000_000)
	for _, t := range plan.StepTypes() {
		e.templates(nameOf(t.New()))
	}
	return e.done()
}

// limits are those of plan's validator.
func (e *editor) limits() {
	most, least := uint64(plan.MaxSteps), uint64(1)
	e.at("Spec.steps").MinItems = &least
	for _, section := range []string{"steps", "onFailure", "finally"} {
		e.at("Spec." + section).MaxItems = &most
	}
	e.span("Spec.successfulRunsHistoryLimit", 0, 100)
	e.span("Spec.failedRunsHistoryLimit", 0, 100)
	e.span("Retry.limit", 0, 100)
	e.dnsLabel("Step.name")
	e.dnsLabel("PolicyRef.name")
	e.at("Triggers.labels").UniqueItems = true
}

// notYet are fields of the contract that this version refuses to be asked for.
// The tests compare the list with what the validator says.
func (e *editor) notYet() {
	none, empty := uint64(0), "Not available in this version."
	for path, s := range map[string]*jsonschema.Schema{
		"Triggers.watch":        {Type: "array", MaxItems: &none},
		"Spec.requiresApproval": {Const: false},
		"Spec.freezeTarget":     {Const: false},
		"Spec.retryLimit":       {Const: 0},
		"Step.dependsOn":        {Type: "array", MaxItems: &none},
		"Step.requires":         {Type: "array", MaxItems: &none},
		"Step.onRestart":        {Const: ""},
	} {
		s.Description = empty
		e.at(path)
		e.replace(path, s)
	}
	for _, name := range []string{"Watch", "LabelSelector", "SelectorRequirement", "Requirement"} {
		delete(e.schema.Definitions, name)
	}
}

func (e *editor) schedules() {
	e.oneOf("Schedule", "cron", "rrule", "at")
	for field, example := range map[string]string{"cron": "0 2 * * 6", "rrule": "FREQ=MONTHLY;BYDAY=1SU;BYHOUR=2;BYMINUTE=0", "at": "2027-01-02T03:00:00", "timezone": "Europe/Berlin"} {
		e.at("Schedule." + field).Examples = []any{example}
	}
}

// steps ties each step's properties to its type.
func (e *editor) steps() {
	step := e.at("Step")
	e.at("Step.disruptive").Default = true
	e.at("Step.if").Examples = []any{plan.IfAlways, "steps['backup'].phase == 'Succeeded'"}
	var names []string
	for _, t := range plan.StepTypes() {
		names = append(names, t.Name)
		name := nameOf(t.New())
		e.at(name).Required = t.Required
		then := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
		then.Properties.Set("properties", &jsonschema.Schema{Ref: "#/$defs/" + name})
		if len(t.Required) > 0 || slices.Contains([]string{"job"}, t.Name) {
			then.Required = []string{"properties"}
		}
		step.AllOf = append(step.AllOf, &jsonschema.Schema{If: typeIs(t.Name), Then: then})
	}
	e.words("Step.type", names...)
}

func typeIs(name string) *jsonschema.Schema {
	is := &jsonschema.Schema{Properties: jsonschema.NewProperties(), Required: []string{"type"}}
	is.Properties.Set("type", &jsonschema.Schema{Const: name})
	return is
}

func (e *editor) words(path string, words ...string) { e.at(path).Enum = anyList(words) }

// headers may be written short, as a string.
func (e *editor) headers() {
	e.oneOf("HeaderValue", "value", "secretKeyRef")
	long := *e.at("HeaderValue")
	e.schema.Definitions["HeaderValue"] = &jsonschema.Schema{
		Description: long.Description,
		OneOf:       []*jsonschema.Schema{{Type: "string"}, &long},
	}
	long.Description = ""
}

// keys to add are a map, keys to remove a list.
func (e *editor) keys(name, field string) {
	e.words(name+".operation", "add", "remove")
	some := uint64(1)
	text := &jsonschema.Schema{Type: "string"}
	for operation, keys := range map[string]*jsonschema.Schema{
		"add":    {Type: "object", MinProperties: &some, AdditionalProperties: text},
		"remove": {Type: "array", MinItems: &some, Items: text},
	} {
		is := &jsonschema.Schema{Properties: jsonschema.NewProperties(), Required: []string{"operation"}}
		is.Properties.Set("operation", &jsonschema.Schema{Const: operation})
		then := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
		then.Properties.Set(field, keys)
		e.at(name).AllOf = append(e.at(name).AllOf, &jsonschema.Schema{If: is, Then: then})
	}
	slices.SortFunc(e.at(name).AllOf, byOperation)
}

func byOperation(a, b *jsonschema.Schema) int {
	operation := func(s *jsonschema.Schema) string {
		is, _ := s.If.Properties.Get("operation")
		return is.Const.(string)
	}
	if operation(a) < operation(b) {
		return -1
	}
	return 1
}

// patch is a list of operations with patchType json, an object otherwise.
func (e *editor) patch() {
	e.words("PatchProperties.patchType", "strategic", "merge", "json")
	e.at("PatchProperties.patchType").Default = "strategic"
	json := &jsonschema.Schema{Properties: jsonschema.NewProperties(), Required: []string{"patchType"}}
	json.Properties.Set("patchType", &jsonschema.Schema{Const: "json"})
	list := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	list.Properties.Set("patch", &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "object", Required: []string{"op", "path"}}})
	object := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	object.Properties.Set("patch", &jsonschema.Schema{Type: "object"})
	d := e.at("PatchProperties")
	d.If, d.Then, d.Else = json, list, object
}
