package main

import (
	"maps"
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// hibernateSchema reads its own rooms: its types have names that plans have, too.
func hibernateSchema(s source) (*jsonschema.Schema, error) {
	health, _ := plan.StepTypeNamed("health-check")
	more := []any{health.New()}
	for _, t := range hibernate.TargetTypes() {
		more = append(more, t.New())
	}
	e := reflectAll(s, &hibernate.Document{}, more...)
	e.envelope("Document", "HibernatePlan", "HibernatePlan of kubectl maint (plan.yaml)")
	e.sleep()
	e.order()
	e.targets()
	e.oneOf("HealthProperties", "resource", "selector", "all")
	e.at("Spec.healthChecks").Items = &jsonschema.Schema{Ref: "#/$defs/HealthProperties"}
	e.words("SelectorRequirement.operator", "In", "NotIn", "Exists", "DoesNotExist")
	e.dnsLabel("PolicyRef.name")
	e.span("Spec.keepSnapshots", 1, 100)
	e.span("Behavior.retries", 0, hibernate.MostRetries)
	e.at("Behavior.retries").Default = hibernate.DefaultRetries
	return e.done()
}

// sleep is when a plan's targets sleep.
func (e *editor) sleep() {
	some, most := uint64(1), uint64(hibernate.MaxExceptions)
	e.at("Schedule.offHours").MinItems = &some
	e.at("Spec.exceptions").MaxItems = &most
	for path, examples := range map[string][]any{
		"Schedule.timezone": {"Asia/Jakarta"}, "OffHours.start": {"20:00", "Fri 20:00"}, "OffHours.end": {"06:00", "Mon 06:00"},
		"OffHours.daysOfWeek": {[]string{"MON", "TUE", "WED", "THU", "FRI"}}, "Exclusion.fromDate": {"2026-12-24"}, "Exclusion.untilDate": {"2027-01-04"},
		"Exception.validFrom": {"2026-12-24T00:00:00Z"}, "Exception.validUntil": {"2027-01-04T00:00:00Z"},
	} {
		e.at(path).Examples = examples
	}
	e.at("Exclusion").Description = "Exclusion takes whole days out of the sleep, from FromDate up to, but without, UntilDate; without UntilDate, FromDate alone."
	e.at("Exclusion").Properties.Delete("calendar") // calendars are for policies
	delete(e.schema.Definitions, "CalendarRef")
}

// order is that of targets.
func (e *editor) order() {
	one := number(1)
	for _, path := range []string{"Strategy.maxConcurrency", "Stage.maxConcurrency"} {
		e.at(path).Minimum = one
	}
	some := uint64(1)
	e.at("Stage.targets").MinItems = &some
	for _, path := range []string{"Dependency.from", "Dependency.to"} {
		e.dnsLabel(path)
	}
}

// targets ties each target's parameters to its type.
func (e *editor) targets() {
	some, most := uint64(1), uint64(hibernate.MaxTargets)
	e.at("Spec.targets").MinItems, e.at("Spec.targets").MaxItems = &some, &most
	e.dnsLabel("Target.name")
	e.dnsLabel("Reference.name")
	e.words("Reference.kind", connector.CloudProvider, connector.K8SCluster)
	target := e.at("Target")
	var names []string
	for _, t := range hibernate.TargetTypes() {
		names = append(names, t.Name)
		then := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
		then.Properties.Set("parameters", &jsonschema.Schema{Ref: "#/$defs/" + nameOf(t.New())})
		if t.Needs != "" {
			then.Required = []string{"connectorRef", "parameters"}
		}
		if len(t.Takes) > 0 {
			ref := jsonschema.NewProperties()
			ref.Set("kind", &jsonschema.Schema{Enum: anyList(t.Takes)})
			then.Properties.Set("connectorRef", &jsonschema.Schema{Properties: ref})
		}
		target.AllOf = append(target.AllOf, &jsonschema.Schema{If: typeIs(t.Name), Then: then})
	}
	e.words("Target.type", names...)
	e.workloads()
	e.selectors()
	e.functions()
	for _, field := range []string{"failShutdown", "failWakeUp"} {
		e.at("NoopParameters." + field).Minimum = number(0)
	}
}

// selectors of an account's resources never are empty.
func (e *editor) selectors() {
	some := uint64(1)
	e.at("CloudSelector").AnyOf = []*jsonschema.Schema{{Required: []string{"ids"}}, {Required: []string{"tags"}}}
	e.at("CloudSelector.ids").MinItems, e.at("CloudSelector.tags").MinProperties = &some, &some
	e.at("CloudSelector.tags").Examples = []any{map[string]string{"env": "stg"}}
	e.at("NodeGroups").AnyOf = []*jsonschema.Schema{{Required: []string{"names"}}, {Required: []string{"tags"}}}
	e.at("NodeGroups.names").MinItems, e.at("NodeGroups.tags").MinProperties = &some, &some
	e.computeKinds()
	e.words("NodeGroups.strategy", hibernate.ScaleToZero)
	e.words("ASGParameters.strategy", hibernate.ScaleToZero, hibernate.StopInstances)
}

// computeKinds of a cluster of EKS are those that the mode says, or that are written.
func (e *editor) computeKinds() {
	e.words("ComputePolicy.mode", hibernate.BothKinds, hibernate.KarpenterNodes, hibernate.ManagedNodeGroups)
	e.words("NodePools.strategy", hibernate.DeleteNodes)
	kinds := uint64(2)
	order := e.at("ComputePolicy.order")
	order.Items = &jsonschema.Schema{Type: "string", Enum: anyList([]string{hibernate.KarpenterNodes, hibernate.ManagedNodeGroups})}
	order.MaxItems, order.UniqueItems = &kinds, true
	groups, pools := []string{"managedNodeGroups"}, []string{"karpenter"}
	modes := map[string]*jsonschema.Schema{
		hibernate.BothKinds:         {Required: groups},
		hibernate.KarpenterNodes:    {Not: &jsonschema.Schema{Required: groups}},
		hibernate.ManagedNodeGroups: {Required: groups, Not: &jsonschema.Schema{Required: pools}},
	}
	params := e.at("EKSParameters")
	for _, mode := range slices.Sorted(maps.Keys(modes)) {
		params.AllOf = append(params.AllOf, &jsonschema.Schema{If: modeIs(mode), Then: modes[mode]})
	}
	params.AnyOf = []*jsonschema.Schema{{Required: groups}, {Required: pools}, modeIs(hibernate.KarpenterNodes)}
}

func modeIs(mode string) *jsonschema.Schema {
	word, policy := jsonschema.NewProperties(), jsonschema.NewProperties()
	word.Set("mode", &jsonschema.Schema{Const: mode})
	policy.Set("computePolicy", &jsonschema.Schema{Properties: word, Required: []string{"mode"}})
	return &jsonschema.Schema{Properties: policy, Required: []string{"computePolicy"}}
}

// functions get the fields of their input that the agent writes from nobody else.
func (e *editor) functions() {
	own := &jsonschema.Schema{}
	for _, field := range hibernate.OwnInput() {
		own.AnyOf = append(own.AnyOf, &jsonschema.Schema{Required: []string{field}})
	}
	e.at("FunctionParameters.input").Not = own
}

// workloads are named by their kind, or as {apiVersion, kind}.
func (e *editor) workloads() {
	var known []string
	for _, k := range hibernate.KnownKinds() {
		known = append(known, k.Kind)
	}
	long := jsonschema.NewProperties()
	long.Set("apiVersion", &jsonschema.Schema{Type: "string", Examples: []any{"apps.example.org/v1"}})
	long.Set("kind", &jsonschema.Schema{Type: "string"})
	e.at("WorkloadParameters.kinds").Items = &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		{Type: "string", Enum: anyList(known)},
		{Type: "object", Properties: long, Required: []string{"apiVersion", "kind"}, AdditionalProperties: jsonschema.FalseSchema},
	}}
	e.at("WorkloadParameters").Not = &jsonschema.Schema{Required: []string{"namespaces", "namespaceSelector"}}
	e.at("WorkloadParameters.floor").Minimum = number(0)
}
