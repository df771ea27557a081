package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// PolicyDocument is the envelope of a policy as it stands under policy.yaml.
type PolicyDocument struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Spec       PolicySpec `json:"spec"`
}

// PolicySpec says when change is permitted.
type PolicySpec struct {
	Strategy            schedule.Strategy             `json:"strategy"`
	MaintenanceSchedule *schedule.MaintenanceSchedule `json:"maintenanceSchedule,omitempty"`
	Gates               []GateRule                    `json:"gates,omitempty"`
	ServiceAccountName  string                        `json:"serviceAccountName,omitempty"`
}

// GateRule names objects of another controller that the policy holds, and by
// which knob.
type GateRule struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Name       string         `json:"name,omitempty"`
	Namespace  string         `json:"namespace,omitempty"`
	Selector   *LabelSelector `json:"selector,omitempty"`
	Knob       any            `json:"knob"` // a name, or {path, closed, open}
}

// CalendarDocument is a Calendar written in YAML; its spec is the list of dates.
// The list may also stand alone, without an envelope.
type CalendarDocument struct {
	APIVersion string                   `json:"apiVersion"`
	Kind       string                   `json:"kind"`
	Spec       []schedule.CalendarEntry `json:"spec"`
}

// anyCalendar stands in for every calendar where only a document's own words
// are judged.
func anyCalendar(string, string) (*schedule.Calendar, bool) { return &schedule.Calendar{}, true }

// ParsePolicy reads a policy and reports all its faults. Whether the calendars
// that it names are there is not asked.
func ParsePolicy(text []byte) (PolicySpec, Faults) {
	var doc PolicyDocument
	d, faults := decode(text, &doc)
	if d.lines == nil {
		return doc.Spec, faults
	}
	v := newValidator(d, faults)
	v.envelope(doc.APIVersion, doc.Kind, "Policy")
	s := doc.Spec
	v.strategy(s)
	if s.ServiceAccountName != "" && !dnsSubdomain(s.ServiceAccountName) {
		v.fault("spec.serviceAccountName", "%q is no name of a ServiceAccount", Cut(s.ServiceAccountName, 100))
	}
	v.gates(s.Gates)
	return s, v.faults.told()
}

func (v *validator) envelope(apiVersion, kind, want string) {
	if apiVersion != APIVersion {
		v.fault("apiVersion", "must be %s, is %q", APIVersion, apiVersion)
	}
	if kind != want {
		v.fault("kind", "must be %s, is %q", want, kind)
	}
}

func (v *validator) strategy(s PolicySpec) {
	known := []schedule.Strategy{schedule.Permissive, schedule.Restrictive, schedule.MaintenanceScheduled}
	switch {
	case v.broken["spec"], v.broken["spec.strategy"]:
	case s.Strategy == "":
		v.fault("spec.strategy", "is missing; write Permissive, Restrictive or MaintenanceSchedule")
		return
	case !slices.Contains(known, s.Strategy):
		message := fmt.Sprintf("%q is no strategy of a policy; write Permissive, Restrictive or MaintenanceSchedule", Cut(string(s.Strategy), 100))
		if slices.Contains([]schedule.Strategy{schedule.ByPolicy, schedule.PermissiveUntil, schedule.RestrictiveUntil}, s.Strategy) {
			message += "; " + string(s.Strategy) + " is for annotations alone"
		}
		v.fault("spec.strategy", "%s", message)
		return
	}
	if s.MaintenanceSchedule == nil {
		return
	}
	if _, err := schedule.ParseMaintenanceSchedule(s.MaintenanceSchedule, anyCalendar); err != nil {
		for _, f := range schedule.Faults(schedule.Under("spec.maintenanceSchedule", err)) {
			v.fieldFault(f)
		}
	}
}

// fieldFault is a fault that the time core found, at its path in the document.
func (v *validator) fieldFault(f *schedule.FieldError) {
	message := f.Message
	if f.Value != "" {
		message = fmt.Sprintf("%q: %s", Cut(f.Value, 100), f.Message)
	}
	v.fault(f.Field, "%s", message)
}

// ParseCalendarYAML reads a Calendar written in YAML. A faulty entry is reported
// and the others count; the Calendar is nil where the text as a whole cannot be
// read.
func ParseCalendarYAML(text []byte) (*schedule.Calendar, Faults) {
	root, faults := parseOne(text)
	if len(faults) > 0 {
		return nil, faults
	}
	path, prefix := "", ""
	var list []schedule.CalendarEntry
	var d decoder
	v := &validator{}
	if describe(root) == "a list" {
		d, faults = decode(text, &list)
		v = newValidator(d, faults)
	} else {
		var doc CalendarDocument
		d, faults = decode(text, &doc)
		v = newValidator(d, faults)
		v.envelope(doc.APIVersion, doc.Kind, "Calendar")
		list, path, prefix = doc.Spec, "spec", "spec"
	}
	if d.lines == nil || d.broken[path] || prefix != "" && list == nil {
		if prefix != "" && d.lines != nil && !d.broken[path] {
			v.fault("spec", "is missing: the list of dates, each {from, until?, reason?}")
		}
		return nil, v.faults.told()
	}
	calendar, err := schedule.ParseCalendarEntries(list)
	for _, f := range schedule.Faults(err) {
		f := *f
		f.Field = prefix + f.Field
		v.fieldFault(&f)
	}
	return calendar, v.faults.told()
}

// ParseCalendarICS reads a Calendar written as iCalendar. A line that is not
// understood is reported and the others count.
func ParseCalendarICS(text []byte) (*schedule.Calendar, Faults) {
	if len(text) > MaxDocumentBytes {
		return nil, Faults{{Message: fmt.Sprintf("the document has %d bytes; at most %d are allowed", len(text), MaxDocumentBytes)}}
	}
	calendar, err := schedule.ParseICalendar(string(text))
	return calendar, lineFaults(err).told()
}

func lineFaults(err error) Faults {
	if err == nil {
		return nil
	}
	var line *schedule.LineError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out Faults
		for _, one := range joined.Unwrap() {
			out = append(out, lineFaults(one)...)
		}
		return out
	}
	if errors.As(err, &line) {
		return Faults{{Line: line.Line, Message: strings.TrimPrefix(err.Error(), fmt.Sprintf("line %d: ", line.Line))}}
	}
	return Faults{{Message: err.Error()}}
}
