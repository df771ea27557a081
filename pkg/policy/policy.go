package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// DefaultServiceAccount is whom plans and policies act as that name nobody.
const DefaultServiceAccount = "maint-runner"

// PolicyRef names a policy in the plan's namespace, or in the agent's.
type PolicyRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// PolicyDocument is a policy: the text under the key policy.yaml.
type PolicyDocument struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Spec       PolicySpec `json:"spec"`
}

// PolicySpec says when change is permitted.
type PolicySpec struct {
	Strategy            schedule.Strategy             `json:"strategy"`                      // when change is permitted: always, never, or in windows
	MaintenanceSchedule *schedule.MaintenanceSchedule `json:"maintenanceSchedule,omitempty"` // its windows, less what is excluded
	Gates               []GateRule                    `json:"gates,omitempty"`               // other controllers that are held outside of the windows
	ServiceAccountName  string                        `json:"serviceAccountName,omitempty"`  // the account by which gates work, default maint-runner
}

// GateRule names objects of another controller that the policy holds, and by
// which knob.
type GateRule struct {
	APIVersion string                  `json:"apiVersion"`
	Kind       string                  `json:"kind"`
	Name       string                  `json:"name,omitempty"`
	Namespace  string                  `json:"namespace,omitempty"`
	Selector   *selector.LabelSelector `json:"selector,omitempty"`
	Knob       any                     `json:"knob"` // a name, or {path, closed, open}
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

// Parse reads a policy and reports all its faults. Whether the calendars
// that it names are there is not asked.
func Parse(text []byte) (PolicySpec, document.Faults) {
	var doc PolicyDocument
	c, ok := document.Read(text, &doc)
	if !ok {
		return doc.Spec, c.Faults()
	}
	v := &policyChecker{c}
	v.Envelope(doc.APIVersion, doc.Kind, "Policy")
	s := doc.Spec
	v.strategy(s)
	if s.ServiceAccountName != "" && !document.DNSSubdomain(s.ServiceAccountName) {
		v.Fault("spec.serviceAccountName", "%q is no name of a ServiceAccount", document.Cut(s.ServiceAccountName, 100))
	}
	v.gates(s.Gates)
	return s, c.Faults()
}

// policyChecker checks a policy.
type policyChecker struct{ *document.Checker }

func (v *policyChecker) strategy(s PolicySpec) {
	known := []schedule.Strategy{schedule.Permissive, schedule.Restrictive, schedule.MaintenanceScheduled}
	switch {
	case v.Broken("spec"), v.Broken("spec.strategy"):
	case s.Strategy == "":
		v.Fault("spec.strategy", "is missing; write Permissive, Restrictive or MaintenanceSchedule")
		return
	case !slices.Contains(known, s.Strategy):
		message := fmt.Sprintf("%q is no strategy of a policy; write Permissive, Restrictive or MaintenanceSchedule", document.Cut(string(s.Strategy), 100))
		if slices.Contains([]schedule.Strategy{schedule.ByPolicy, schedule.PermissiveUntil, schedule.RestrictiveUntil}, s.Strategy) {
			message += "; " + string(s.Strategy) + " is for annotations alone"
		}
		v.Fault("spec.strategy", "%s", message)
		return
	}
	if s.MaintenanceSchedule == nil {
		return
	}
	if _, err := schedule.ParseMaintenanceSchedule(s.MaintenanceSchedule, anyCalendar); err != nil {
		for _, f := range schedule.Faults(schedule.Under("spec.maintenanceSchedule", err)) {
			v.FieldFault(f)
		}
	}
}

// ParseCalendarYAML reads a Calendar written in YAML. A faulty entry is reported
// and the others count; the Calendar is nil where the text as a whole cannot be
// read.
func ParseCalendarYAML(text []byte) (*schedule.Calendar, document.Faults) {
	isList, faults := document.IsList(text)
	if len(faults) > 0 {
		return nil, faults
	}
	path := ""
	var list []schedule.CalendarEntry
	var c *document.Checker
	var ok bool
	if isList {
		c, ok = document.Read(text, &list)
	} else {
		var doc CalendarDocument
		c, ok = document.Read(text, &doc)
		c.Envelope(doc.APIVersion, doc.Kind, "Calendar")
		list, path = doc.Spec, "spec"
	}
	if !ok || c.Broken(path) || path != "" && list == nil {
		if path != "" && ok && !c.Broken(path) {
			c.Fault("spec", "is missing: the list of dates, each {from, until?, reason?}")
		}
		return nil, c.Faults()
	}
	calendar, err := schedule.ParseCalendarEntries(list)
	for _, f := range schedule.Faults(err) {
		f := *f
		f.Field = path + f.Field
		c.FieldFault(&f)
	}
	return calendar, c.Faults()
}

// ParseCalendarICS reads a Calendar written as iCalendar. A line that is not
// understood is reported and the others count.
func ParseCalendarICS(text []byte) (*schedule.Calendar, document.Faults) {
	if len(text) > document.MaxDocumentBytes {
		return nil, document.Faults{{Message: fmt.Sprintf("the document has %d bytes; at most %d are allowed", len(text), document.MaxDocumentBytes)}}
	}
	calendar, err := schedule.ParseICalendar(string(text))
	return calendar, lineFaults(err).Limited()
}

func lineFaults(err error) document.Faults {
	if err == nil {
		return nil
	}
	var line *schedule.LineError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out document.Faults
		for _, one := range joined.Unwrap() {
			out = append(out, lineFaults(one)...)
		}
		return out
	}
	if errors.As(err, &line) {
		return document.Faults{{Line: line.Line, Message: strings.TrimPrefix(err.Error(), fmt.Sprintf("line %d: ", line.Line))}}
	}
	return document.Faults{{Message: err.Error()}}
}
