package main

import (
	"math"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func planSchema(s source) (*jsonschema.Schema, error) {
	e := reflectAll(s, &plan.Document{}, properties()...)
	e.envelope("Document", "Plan", "Plan of kubectl maint (plan.yaml)")
	if err := e.defaults("Spec", plan.Spec{}.Defaulted()); err != nil {
		return nil, err
	}
	e.limits()
	e.schedules()
	e.watches()
	e.allSteps()
	e.at("Spec").AllOf = append(e.at("Spec").AllOf, connectorOf(connector.K8SCluster))
	return e.done()
}

func templateSchema(s source) (*jsonschema.Schema, error) {
	e := reflectAll(s, &plan.TemplateDocument{}, properties()...)
	e.envelope("TemplateDocument", "StepTemplate", "StepTemplate of kubectl maint (step.yaml)")
	most, least := uint64(plan.MaxSteps), uint64(1)
	e.at("TemplateSpec.steps").MinItems, e.at("TemplateSpec.steps").MaxItems = &least, &most
	e.words("TemplateParameter.type", "string", "number", "integer", "boolean", "object", "array")
	e.allSteps()
	return e.done()
}

// properties are those of all step types.
func properties() []any {
	var out []any
	for _, t := range plan.StepTypes() {
		out = append(out, t.New())
	}
	return out
}

// allSteps is what both documents say of steps.
func (e *editor) allSteps() {
	e.steps()
	e.headers()
	e.keys("LabelProperties", "labels")
	e.keys("AnnotateProperties", "annotations")
	e.patch()
	e.oneOf("WaitProperties", "condition", "until")
	e.oneOf("JobProperties", "template", "image")
	e.oneOf("HealthProperties", "resource", "selector", "all")
	e.oneOf("FunctionProperties", "endpoint", "functionRef")
	e.oneOf("PipelineFunction", "endpoint", "functionRef")
	e.dnsLabel("PipelineFunction.name")
	e.oneOf("Requirement", "objectName", "matchLabels")
	e.words("WebhookProperties.method", "GET", "POST", "PUT", "PATCH", "DELETE")
	e.words("DeleteProperties.propagationPolicy", "Background", "Foreground", "Orphan")
	e.words("BackupProperties.method", plan.MethodVolumeSnapshot, plan.MethodVelero, plan.MethodRDSSnapshot)
	e.words("GroupProperties.mode", "sequential", "parallel")
	e.words("ForEachProperties.order", "name", "oldest", "newest")
	e.words("ForEachProperties.onError", "stop", "continue")
	e.words("SelectorRequirement.operator", "In", "NotIn", "Exists", "DoesNotExist")
	e.words("Step.onRestart", "fail", "retry")
	e.span("ScaleProperties.replicas", 0, 1_000_000)
	e.span("GroupProperties.maxConcurrency", 1, plan.MaxSteps)
	e.span("ForEachProperties.maxConcurrency", 1, plan.MaxSteps)
	e.span("Retry.limit", 0, 100)
	e.dnsLabel("Step.name")
	e.dnsLabel("Reference.name")
	e.words("Reference.kind", connector.K8SCluster, connector.CloudProvider)
	e.clouds()
	e.batches()
	e.nodes()
	some := uint64(1)
	for _, list := range []string{"GroupProperties.steps", "ForEachProperties.steps", "ForEachNodeProperties.steps", "SilenceProperties.matchers", "NotificationProperties.sinks", "ExecProperties.command"} {
		e.at(list).MinItems = &some
	}
	most := uint64(plan.MaxFunctions)
	e.at("PipelineProperties.functions").MinItems, e.at("PipelineProperties.functions").MaxItems = &some, &most
	for _, t := range plan.StepTypes() {
		if !holdsSteps(t.Name) { // the engine itself reads theirs
			e.templates(nameOf(t.New()))
		}
	}
}

func holdsSteps(name string) bool { return name == plan.TypeGroup || plan.IsLoop(name) }

// batches are numbers of objects, or shares of them.
func (e *editor) batches() {
	e.at("ForEachProperties.batches").Items = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{Type: "integer", Minimum: number(1)}, {Type: "string", Pattern: "^([1-9][0-9]?|100)%$"},
	}}
}

// nodes are said by name or by a selector, never by both.
func (e *editor) nodes() {
	for _, name := range []string{"CordonProperties", "DrainProperties"} {
		e.at(name).Not = &jsonschema.Schema{Required: []string{"node", "selector"}}
	}
	e.share("ForEachNodeProperties.maxUnavailable")
	e.span("ForEachNodeProperties.canary", 0, plan.MaxItems)
	e.words("ForEachNodeProperties.order", "oldest-first", "name")
	e.words("ForEachNodeProperties.onError", "stop", "continue")
}

// share is a number of things, or a share of them.
func (e *editor) share(path string) {
	const digits = "([0-9]{1,9}|([0-9]|[1-9][0-9]|100)%)"
	e.replace(path, &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{Type: "integer", Minimum: number(0), Maximum: number(math.MaxInt32)}, {Type: "string", Pattern: "^" + digits + "$"},
	}})
}

func (e *editor) watches() {
	e.at("Watch").Required = []string{"apiVersion", "kind"}
	e.at("Watch.events").Items = &jsonschema.Schema{Type: "string", Enum: anyList([]string{"create", "update", "delete"})}
	e.at("Watch.when").Examples = []any{"object.spec.size > oldObject.spec.size"}
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
	e.span("Spec.retryLimit", 0, 100)
	e.dnsLabel("PolicyRef.name")
	e.at("Triggers.labels").UniqueItems = true
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
		if len(t.Required) > 0 || slices.Contains([]string{"job", "health-check", plan.TypeFunction}, t.Name) {
			then.Required = []string{"properties"}
		}
		step.AllOf = append(step.AllOf, &jsonschema.Schema{If: typeIs(t.Name), Then: then})
	}
	kind := e.at("Step.type")
	kind.Type = ""
	kind.AnyOf = []*jsonschema.Schema{
		{Type: "string", Enum: anyList(names)},
		{Type: "string", Pattern: "^" + plan.TemplatePrefix + strings.TrimPrefix(namePattern, "^")},
	}
}

// clouds says which steps work in an account of a cloud. All others, and plans, work on a
// cluster.
func (e *editor) clouds() {
	is := typeIs(plan.TypeBackup)
	method := &jsonschema.Schema{Properties: jsonschema.NewProperties(), Required: []string{"method"}}
	method.Properties.Set("method", &jsonschema.Schema{Const: plan.MethodRDSSnapshot})
	is.Properties.Set("properties", method)
	is.Required = append(is.Required, "properties")
	cloud := connectorOf(connector.CloudProvider)
	cloud.Required = []string{"connectorRef"}
	step := e.at("Step")
	step.AllOf = append(step.AllOf, &jsonschema.Schema{If: is, Then: cloud, Else: connectorOf(connector.K8SCluster)})
}

// connectorOf is something whose connector, if it has one, is of a kind.
func connectorOf(kind string) *jsonschema.Schema {
	ref := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	ref.Properties.Set("kind", &jsonschema.Schema{Const: kind})
	out := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	out.Properties.Set("connectorRef", ref)
	return out
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
