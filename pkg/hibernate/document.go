// Package hibernate holds the document HibernatePlan and decides what follows from it: what
// is to be asleep now, in which order its targets fall asleep and wake, and what has to be
// written down of each resource before it is touched.
package hibernate

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Document is a HibernatePlan: the text under the key plan.yaml.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       Spec   `json:"spec"`
}

// Spec says what sleeps, and when.
type Spec struct {
	Schedule           Schedule           `json:"schedule"`
	Exceptions         []Exception        `json:"exceptions,omitempty"` // what changes the schedule for a while
	Execution          Execution          `json:"execution,omitzero"`
	Behavior           Behavior           `json:"behavior,omitzero"`
	Policies           []policy.PolicyRef `json:"policies,omitempty"`           // they gate falling asleep, never waking
	HealthChecks       []any              `json:"healthChecks,omitempty"`       // what must be well after a wake
	KeepSnapshots      *int               `json:"keepSnapshots,omitempty"`      // default 3
	DryRun             bool               `json:"dryRun,omitempty"`             // nothing is put to sleep; the agent says what it would do
	ServiceAccountName string             `json:"serviceAccountName,omitempty"` // as which all targets are reached; default maint-runner
	Targets            []Target           `json:"targets"`                      // what sleeps, in the order in which it falls asleep
}

// Schedule is when the plan's targets sleep.
type Schedule struct {
	Timezone string               `json:"timezone,omitempty"` // IANA, default UTC
	OffHours []schedule.OffHours  `json:"offHours"`           // when they sleep: each of them counts
	Exclude  []schedule.Exclusion `json:"exclude,omitempty"`  // whole days on which nothing sleeps
}

// ExceptionType is what an exception does to the schedule while it is valid.
type ExceptionType string

// The types of exceptions, in the order in which they apply.
const (
	Replace ExceptionType = "replace" // its off-hours count instead of the plan's
	Extend  ExceptionType = "extend"  // its off-hours count, too
	Suspend ExceptionType = "suspend" // in its off-hours nothing sleeps; without any, never
)

// Exception changes the schedule from ValidFrom until before ValidUntil.
type Exception struct {
	Type       ExceptionType       `json:"type"`
	ValidFrom  string              `json:"validFrom"` // RFC 3339
	ValidUntil string              `json:"validUntil"`
	OffHours   []schedule.OffHours `json:"offHours,omitempty"`
	LeadTime   *document.Duration  `json:"leadTime,omitempty"` // suspend: before it, no sleep begins
	Reason     string              `json:"reason,omitempty"`
}

// Execution says in which order targets fall asleep; they wake in the reverse.
type Execution struct {
	Strategy Strategy `json:"strategy,omitzero"`
	Stages   []Stage  `json:"stages,omitempty"` // of Staged; here or in the strategy
}

// StrategyType is an order of targets.
type StrategyType string

// The orders of targets.
const (
	Sequential StrategyType = "Sequential" // as they are listed; the default
	Parallel   StrategyType = "Parallel"
	DAG        StrategyType = "DAG"
	Staged     StrategyType = "Staged"
)

// Strategy is the order of targets, and how many are at work at once.
type Strategy struct {
	Type           StrategyType `json:"type,omitempty"`
	MaxConcurrency *int         `json:"maxConcurrency,omitempty"` // of Parallel and DAG; none is all
	Dependencies   []Dependency `json:"dependencies,omitempty"`
	Stages         []Stage      `json:"stages,omitempty"`
}

// Dependency has From shut down before To, and woken after it.
type Dependency struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Stage is a set of targets that fall asleep before those of the next stage.
type Stage struct {
	Name           string   `json:"name,omitempty"`
	Parallel       bool     `json:"parallel,omitempty"`
	MaxConcurrency *int     `json:"maxConcurrency,omitempty"`
	Targets        []string `json:"targets"`
}

// Mode is what a failed target does to the others.
type Mode string

// What a failed target does to the others.
const (
	Strict     Mode = "Strict"     // nothing else begins; the default
	BestEffort Mode = "BestEffort" // what depends on it is aborted, the rest goes on
)

// Behavior says what becomes of failures.
type Behavior struct {
	Mode     Mode  `json:"mode,omitempty"`
	Retries  *int  `json:"retries,omitempty"`  // per target, default 3
	FailFast *bool `json:"failFast,omitempty"` // accepted, and warned of: mode says it
}

// Target is something that sleeps.
type Target struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// ConnectorRef is the connector by which the target is reached.
	ConnectorRef *connector.Reference `json:"connectorRef,omitempty"`
	Parameters   map[string]any       `json:"parameters,omitempty"`
}

// What counts where nothing is said.
const (
	DefaultRetries = 3
	MostRetries    = 20
	MaxTargets     = 50 // of one plan
	MaxExceptions  = 50
	MaxOffHours    = 50       // of the schedule, and of all exceptions together
	MaxExclusions  = 400      // days of a year, and some
	MaxReason      = 1024     // bytes of an exception's reason
	MaxBytes       = 64 << 10 // of the document: each target's restore data holds it
	MaxNamespaces  = 200      // of a target
	MaxKinds       = 50       // of a target, and in its order
)

// Retries is how often a target's operation is tried again.
func (s Spec) Retries() int {
	if s.Behavior.Retries == nil {
		return DefaultRetries
	}
	return *s.Behavior.Retries
}

// DefaultKeepSnapshots is how many snapshots of a database are kept.
const DefaultKeepSnapshots = 3

// Snapshots is how many snapshots that the plan has made of a database are kept.
func (s Spec) Snapshots() int {
	if s.KeepSnapshots == nil {
		return DefaultKeepSnapshots
	}
	return *s.KeepSnapshots
}

// BestEffort says whether a failed target leaves those alone that do not depend on it.
func (s Spec) BestEffort() bool { return s.Behavior.Mode == BestEffort }

// Account is the ServiceAccount as which targets are reached.
func (s Spec) Account() string {
	if s.ServiceAccountName == "" {
		return policy.DefaultServiceAccount
	}
	return s.ServiceAccountName
}

// Parse reads a HibernatePlan and reports all its faults.
func Parse(text []byte) (Spec, document.Faults) {
	var doc Document
	if n := len(text); n > MaxBytes {
		return doc.Spec, document.Faults{{Message: fmt.Sprintf("the document has %d bytes; a HibernatePlan may have at most %d: make several of it", n, MaxBytes)}}
	}
	c, ok := document.Read(text, &doc)
	if !ok {
		return doc.Spec, c.Faults()
	}
	v := &validator{c}
	v.Envelope(doc.APIVersion, doc.Kind, "HibernatePlan")
	v.spec(doc.Spec)
	return doc.Spec, c.Faults()
}

// CheckSnapshot says what is wrong with a plan as a record of the agent's holds it: what
// was valid once may not be for this version.
func CheckSnapshot(s Spec) document.Faults {
	v := &validator{document.NewChecker()}
	v.spec(s)
	return v.Faults()
}

type validator struct{ *document.Checker }

func (v *validator) spec(s Spec) {
	v.schedule(s.Schedule)
	v.exceptions(s)
	v.targets(s.Targets)
	v.execution(s)
	v.behavior(s.Behavior)
	v.policies(s.Policies)
	v.healthChecks(s.HealthChecks)
	if s.KeepSnapshots != nil && (*s.KeepSnapshots < 1 || *s.KeepSnapshots > 100) {
		v.Fault("spec.keepSnapshots", "must be from 1 to 100, is %d", *s.KeepSnapshots)
	}
	if s.ServiceAccountName != "" && !document.DNSSubdomain(s.ServiceAccountName) {
		v.Fault("spec.serviceAccountName", "%q is no name of a ServiceAccount", document.Cut(s.ServiceAccountName, 100))
	}
}

// noCalendars: hibernation knows none beyond what stands in the plan.
func noCalendars(string, string) (*schedule.Calendar, bool) { return nil, false }

// few says whether a list is short enough to be read.
func (v *validator) few(path string, n, most int) bool {
	if n > most {
		v.Fault(path, "has %d; at most %d are read", n, most)
	}
	return n <= most
}

func (v *validator) schedule(s Schedule) {
	if !v.few("spec.schedule.offHours", len(s.OffHours), MaxOffHours) || !v.few("spec.schedule.exclude", len(s.Exclude), MaxExclusions) {
		return
	}
	for i, e := range s.Exclude {
		if e.Calendar != nil {
			v.Fault(fmt.Sprintf("spec.schedule.exclude[%d].calendar", i), "is for policies; write fromDate and untilDate")
			return
		}
	}
	if _, err := schedule.ParseOffHours(s.Timezone, s.OffHours, s.Exclude, noCalendars); err != nil {
		v.scheduleFaults("spec.schedule", err)
	}
}

func (v *validator) scheduleFaults(path string, err error) {
	for _, f := range schedule.Faults(schedule.Under(path, err)) {
		v.FieldFault(f)
	}
}

func (v *validator) exceptions(s Spec) {
	if len(s.Exceptions) > MaxExceptions {
		v.Fault("spec.exceptions", "has %d; at most %d are read", len(s.Exceptions), MaxExceptions)
		return
	}
	hours := 0
	for i, e := range s.Exceptions {
		hours += len(e.OffHours)
		if n := len(e.Reason); n > MaxReason {
			v.Fault(fmt.Sprintf("spec.exceptions[%d].reason", i), "has %d bytes; at most %d are read", n, MaxReason)
		}
	}
	if !v.few("spec.exceptions, all of their offHours together,", hours, MaxOffHours) {
		return
	}
	spans := make([]*validity, len(s.Exceptions))
	for i, e := range s.Exceptions {
		path := fmt.Sprintf("spec.exceptions[%d]", i)
		v.exceptionType(path, e)
		v.Positive(path+".leadTime", e.LeadTime)
		if e.LeadTime != nil && e.Type != Suspend {
			v.Fault(path+".leadTime", "is for a suspend: before it, no sleep begins")
		}
		if len(e.OffHours) > 0 || e.Type != Suspend {
			if _, err := schedule.ParseOffHours(zoneOf(s.Schedule.Timezone), e.OffHours, nil, noCalendars); err != nil {
				v.scheduleFaults(path, err)
			}
		}
		spans[i] = v.validity(path, e)
	}
	for i, a := range spans {
		for j, b := range spans[:i] {
			if a != nil && b != nil && s.Exceptions[i].Type == s.Exceptions[j].Type && a.from.Before(b.until) && b.from.Before(a.until) {
				v.Fault(fmt.Sprintf("spec.exceptions[%d]", i), "is valid at the same time as spec.exceptions[%d], which is a %s, too", j, s.Exceptions[j].Type)
			}
		}
	}
}

// zoneOf is a zone that can be read: of one that cannot its own fault is told, once.
func zoneOf(name string) string {
	if _, err := schedule.LoadZone(name); err != nil {
		return "UTC"
	}
	return name
}

func (v *validator) exceptionType(path string, e Exception) {
	if e.Type == "" {
		v.Fault(path+".type", "is missing; write replace, extend or suspend")
		return
	}
	document.OneOf(v.Checker, path+".type", e.Type, Replace, Extend, Suspend)
}

// validity is from when until when an exception counts.
type validity struct{ from, until time.Time }

func (v *validator) validity(path string, e Exception) *validity {
	from, ok := v.instant(path+".validFrom", e.ValidFrom)
	until, ok2 := v.instant(path+".validUntil", e.ValidUntil)
	if !ok || !ok2 {
		return nil
	}
	if !from.Before(until) {
		v.Fault(path+".validUntil", "is not after validFrom")
		return nil
	}
	return &validity{from, until}
}

func (v *validator) instant(path, text string) (time.Time, bool) {
	if text == "" {
		v.Fault(path, "is missing: an instant such as 2026-12-24T00:00:00Z")
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		v.Fault(path, "%q is no instant; write it as 2026-12-24T00:00:00Z or with an offset such as +07:00", document.Cut(text, 100))
	}
	return at, err == nil
}

func (v *validator) behavior(b Behavior) {
	document.OneOf(v.Checker, "spec.behavior.mode", b.Mode, Strict, BestEffort)
	if b.Retries != nil && (*b.Retries < 0 || *b.Retries > MostRetries) {
		v.Fault("spec.behavior.retries", "must be from 0 to %d, is %d", MostRetries, *b.Retries)
	}
}

func (v *validator) policies(refs []policy.PolicyRef) {
	if len(refs) > plan.MaxPolicies {
		v.Fault("spec.policies", "names %d; at most %d are asked", len(refs), plan.MaxPolicies)
	}
	for i, ref := range refs {
		path := fmt.Sprintf("spec.policies[%d]", i)
		if !document.DNSLabel(ref.Name) {
			v.Fault(path+".name", "%q cannot name a policy", document.Cut(ref.Name, 100))
		}
		if ref.Namespace != "" && !document.DNSLabel(ref.Namespace) {
			v.Fault(path+".namespace", "%q cannot name a namespace", document.Cut(ref.Namespace, 100))
		}
	}
}

// HealthTimeout is how long health checks may fail before that is an error. They go on.
const HealthTimeout = 15 * time.Minute

// Checks are the health checks of a valid plan: pointers to the properties of a
// health-check step.
func (s Spec) Checks() []any {
	health, _ := plan.StepTypeNamed("health-check")
	var out []any
	for _, one := range s.HealthChecks {
		values, is := one.(map[string]any)
		props := health.New()
		if is && len(document.DecodeValue(values, "", nil, false, props)) == 0 {
			out = append(out, props)
		}
	}
	return out
}

func (v *validator) healthChecks(checks []any) {
	health, _ := plan.StepTypeNamed("health-check")
	if len(checks) > plan.MaxSteps {
		v.Fault("spec.healthChecks", "has %d; at most %d are asked", len(checks), plan.MaxSteps)
		return
	}
	for i, one := range checks {
		path := fmt.Sprintf("spec.healthChecks[%d]", i)
		props := health.New()
		if faults, _ := v.Value(one, path, props); len(faults) == 0 {
			health.Check(props, v.Below(path))
		}
	}
}

func (v *validator) targets(targets []Target) {
	switch {
	case v.Broken("spec.targets"):
		return
	case len(targets) == 0:
		v.Fault("spec.targets", "is empty: what is to sleep")
	case len(targets) > MaxTargets:
		v.Fault("spec.targets", "has %d; at most %d are put to sleep by one plan", len(targets), MaxTargets)
		return
	}
	seen := map[string]bool{}
	for i, t := range targets {
		path := fmt.Sprintf("spec.targets[%d]", i)
		switch {
		case t.Name == "":
			v.Fault(path+".name", "is missing")
		case !document.DNSLabel(t.Name):
			v.Fault(path+".name", "%q cannot name a target: at most %d characters of a-z, 0-9 and '-'", document.Cut(t.Name, 100), document.MaxNameLength)
		case seen[t.Name]:
			v.Fault(path+".name", "%q appears twice", t.Name)
		}
		seen[t.Name] = true
		v.target(path, t)
	}
}

// target checks what a target's type asks for.
func (v *validator) target(path string, t Target) {
	kind, known := TypeNamed(t.Type)
	switch {
	case t.Type == "":
		v.Fault(path+".type", "is missing; there are %s", typeNames())
		return
	case !known:
		v.Fault(path+".type", "%s", unknownType(t.Type))
		return
	}
	v.connector(path+".connectorRef", kind, t.ConnectorRef)
	params := kind.New()
	faults, _ := v.Value(map[string]any(nonNil(t.Parameters)), path+".parameters", params)
	if len(faults) == 0 && kind.Check != nil {
		kind.Check(params, v.Below(path+".parameters"))
	}
}

func nonNil(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

func (v *validator) connector(path string, kind TargetType, ref *connector.Reference) {
	switch {
	case ref == nil && kind.Needs != "":
		v.Fault(path, "is missing: a target of type %s is reached by a %s", kind.Name, kind.Needs)
	case ref == nil:
	case !slices.Contains(kind.Takes, ref.Kind):
		v.Fault(path+".kind", "a target of type %s takes no %q", kind.Name, document.Cut(ref.Kind, 100))
	case !document.DNSLabel(ref.Name):
		v.Fault(path+".name", "%q cannot name a connector", document.Cut(ref.Name, 100))
	}
}
