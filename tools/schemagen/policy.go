package main

import (
	"github.com/invopop/jsonschema"

	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

func policySchema(s source) (*jsonschema.Schema, error) {
	e := reflectAll(s, &policy.PolicyDocument{})
	e.envelope("PolicyDocument", "Policy", "Policy of kubectl maint (policy.yaml)")
	e.gates()
	e.words("PolicySpec.strategy", "Permissive", "Restrictive", "MaintenanceSchedule")
	e.words("Recurrence.frequency", "Daily", "Weekly", "Monthly", "Yearly")
	e.words("MonthlyRecurrence.by", "Date", "Day")
	e.words("YearlyRecurrence.by", "Date", "Day")
	e.span("DailyRecurrence.interval", 1, 730)
	e.span("WeeklyRecurrence.interval", 1, 26)
	e.span("MonthlyDates.interval", 1, 11)
	e.span("MonthlyDays.interval", 1, 11)
	e.replace("YearlyDates.month", monthSchema())
	e.replace("YearlyDays.month", monthSchema())
	for path, example := range map[string]string{
		"MaintenanceSchedule.timezone": "Europe/Berlin", "Permit.startTime": "22:00", "Permit.duration": "8h",
		"Window.start": "22:00", "Window.end": "06:00", "Window.cron": "0 22 * * 5", "Exclusion.fromDate": "2026-12-18", "Exclusion.untilDate": "2027-01-04",
	} {
		e.at(path).Examples = []any{example}
	}
	return e.done()
}

// monthSchema is a month by its name or its number.
func monthSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "integer", Minimum: number(1), Maximum: number(12)}}}
}

func calendarSchema(s source) (*jsonschema.Schema, error) {
	e := reflectAll(s, &policy.CalendarDocument{})
	e.envelope("CalendarDocument", "Calendar", "Calendar of kubectl maint (calendar.yaml)")
	e.at("CalendarEntry.from").Examples = []any{"2026-12-24"}
	return e.done()
}

// gates shapes the gates of a policy. Whether a knob fits a kind, and a path an
// object, the validator says.
func (e *editor) gates() {
	most := uint64(policy.MaxGates)
	e.at("PolicySpec.gates").MaxItems = &most
	e.dnsLabel("GateRule.namespace")
	for _, field := range []string{"GateRule.apiVersion", "GateRule.kind"} {
		one := uint64(1)
		e.at(field).MinLength = &one
	}
	e.at("GateRule").Not = &jsonschema.Schema{Required: []string{"name", "selector"}}
	e.words("SelectorRequirement.operator", "In", "NotIn", "Exists", "DoesNotExist")
	scalar := &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}, {Type: "null"}}}
	fields := jsonschema.NewProperties()
	fields.Set("path", &jsonschema.Schema{Type: "string", Description: "A JSON pointer, or names joined by dots.", Examples: []any{"/spec/paused"}})
	fields.Set("closed", scalar)
	fields.Set("open", scalar)
	e.replace("GateRule.knob", &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		{Type: "string", Enum: anyList(knob.Names())},
		{Type: "object", Properties: fields, Required: []string{"path", "closed", "open"}, AdditionalProperties: jsonschema.FalseSchema},
	}})
}
