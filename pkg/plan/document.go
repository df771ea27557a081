// Package plan holds the nouns of maintenance (documents, slots' ends, runs and
// their journals) and the verdicts over them. It is plain Go: it takes values
// and an instant and returns what should happen; it never reads a clock, an
// environment or a cluster.
package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// APIVersion is the version every document begins with.
const APIVersion = "maint.dev/v1alpha1"

// Limits of documents, fixed by the contract in docs/documents.md.
const (
	MaxDocumentBytes = 256 << 10
	MaxNameLength    = 63
	MaxSteps         = 100
	MaxPolicies      = 16 // of one object (a guess: nobody reads more reasons)
)

// Defaults of a plan, fixed by the contract.
const (
	DefaultServiceAccount  = "maint-runner"
	DefaultStartDeadline   = time.Hour
	DefaultMaxDuration     = time.Hour
	DefaultApprovalTimeout = 24 * time.Hour
	DefaultCleanupDuration = 15 * time.Minute
	DefaultHistoryLimit    = 3
	DefaultMirrorPrefix    = "mirror.maint.dev"
	DefaultRetryBackoff    = 10 * time.Second
	DefaultMaxBackoff      = 5 * time.Minute
)

// Document is the envelope of a plan as it stands under the key plan.yaml.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       Spec   `json:"spec"`
}

// Spec is what somebody wants done, and when.
type Spec struct {
	Description                string            `json:"description,omitempty"`
	Target                     *ObjectRef        `json:"target,omitempty"`
	Triggers                   Triggers          `json:"triggers,omitzero"`
	Policies                   []PolicyRef       `json:"policies,omitempty"`
	ServiceAccountName         string            `json:"serviceAccountName,omitempty"`
	StartDeadline              *Duration         `json:"startDeadline,omitempty"`
	CatchUp                    CatchUp           `json:"catchUp,omitempty"`
	ConcurrencyPolicy          ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	MaxDuration                *Duration         `json:"maxDuration,omitempty"`
	RequiresApproval           bool              `json:"requiresApproval,omitempty"`
	ApprovalTimeout            *Duration         `json:"approvalTimeout,omitempty"`
	OnWindowClose              OnWindowClose     `json:"onWindowClose,omitempty"`
	FreezeTarget               bool              `json:"freezeTarget,omitempty"`
	MirrorPrefix               string            `json:"mirrorPrefix,omitempty"`
	Parameters                 []Parameter       `json:"parameters,omitempty"`
	RetryLimit                 int               `json:"retryLimit,omitempty"`
	SuccessfulRunsHistoryLimit *int              `json:"successfulRunsHistoryLimit,omitempty"`
	FailedRunsHistoryLimit     *int              `json:"failedRunsHistoryLimit,omitempty"`
	DryRun                     bool              `json:"dryRun,omitempty"`
	Steps                      []Step            `json:"steps"`
	OnFailure                  []Step            `json:"onFailure,omitempty"`
	Finally                    []Step            `json:"finally,omitempty"`
}

// ObjectRef names one object in the plan's namespace, or a cluster-scoped one.
type ObjectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// String is the reference as people say it: Deployment/orders.
func (r ObjectRef) String() string { return r.Kind + "/" + r.Name }

// PolicyRef names a policy in the plan's namespace, or in the agent's.
type PolicyRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// Triggers are the reasons for which a run begins. None at all means manual only.
type Triggers struct {
	OnCreate  bool       `json:"onCreate,omitempty"`
	Schedules []Schedule `json:"schedules,omitempty"`
	Labels    []string   `json:"labels,omitempty"`
	Watch     []Watch    `json:"watch,omitempty"`
}

// Schedule is one of cron, rrule and at, in a time zone.
type Schedule struct {
	Cron     string    `json:"cron,omitempty"`
	RRule    string    `json:"rrule,omitempty"`
	At       string    `json:"at,omitempty"`
	Timezone string    `json:"timezone,omitempty"`
	DTStart  string    `json:"dtstart,omitempty"`
	ExDate   []string  `json:"exdate,omitempty"`
	Jitter   *Duration `json:"jitter,omitempty"`
}

// Watch asks for a run when objects of a kind change.
type Watch struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Namespace  string         `json:"namespace,omitempty"`
	Selector   *LabelSelector `json:"selector,omitempty"`
	Fields     []string       `json:"fields,omitempty"`
	Events     []string       `json:"events,omitempty"`
	When       string         `json:"when,omitempty"`
}

// LabelSelector has the shape and meaning of metav1.LabelSelector.
type LabelSelector struct {
	MatchLabels      map[string]string     `json:"matchLabels,omitempty"`
	MatchExpressions []SelectorRequirement `json:"matchExpressions,omitempty"`
}

// SelectorRequirement is one expression of a LabelSelector.
type SelectorRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// Parameter is an input of a run, given by the trigger.
type Parameter struct {
	Name        string  `json:"name"`
	Default     *string `json:"default,omitempty"`
	Description string  `json:"description,omitempty"`
}

// Step is one piece of work.
type Step struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	If         string         `json:"if,omitempty"`
	DependsOn  []string       `json:"dependsOn,omitempty"`
	Timeout    *Duration      `json:"timeout,omitempty"`
	Retry      *Retry         `json:"retry,omitempty"`
	OnRestart  string         `json:"onRestart,omitempty"`
	Requires   []Requirement  `json:"requires,omitempty"`
	Disruptive *bool          `json:"disruptive,omitempty"`
	Properties map[string]any `json:"properties,omitempty"`
	// Inner are the steps that stand in the properties of a step that holds others,
	// read once.
	Inner []Step `json:"-"`
}

// Retry says how often a step is tried again after its first attempt.
type Retry struct {
	Limit      int       `json:"limit,omitempty"`
	Backoff    *Duration `json:"backoff,omitempty"`
	MaxBackoff *Duration `json:"maxBackoff,omitempty"`
}

// Requirement is an object that a step is handed as required.<name>.
type Requirement struct {
	Name        string            `json:"name"`
	APIVersion  string            `json:"apiVersion"`
	Kind        string            `json:"kind"`
	Namespace   string            `json:"namespace,omitempty"`
	ObjectName  string            `json:"objectName,omitempty"`
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	Required    bool              `json:"required,omitempty"`
}

// CatchUp says what happens to slots that fell due while no agent looked.
type CatchUp string

// The values of catchUp.
const (
	CatchUpLatest CatchUp = "latest"
	CatchUpAll    CatchUp = "all"
	CatchUpNone   CatchUp = "none"
)

// ConcurrencyPolicy says what a slot does that falls due while a run lives.
type ConcurrencyPolicy string

// The values of concurrencyPolicy.
const (
	Forbid  ConcurrencyPolicy = "Forbid"
	Allow   ConcurrencyPolicy = "Allow"
	Replace ConcurrencyPolicy = "Replace"
	Queue   ConcurrencyPolicy = "Queue"
)

// OnWindowClose says what a run does when its window closes.
type OnWindowClose string

// The values of onWindowClose.
const (
	CloseFinish OnWindowClose = "finish"
	CloseWait   OnWindowClose = "wait"
	CloseAbort  OnWindowClose = "abort"
)

// Duration is a Go duration in a document: "90s", "1h30m", and days as "30d".
type Duration struct{ time.Duration }

// ParseDuration reads a Go duration or a whole number of days ("30d").
func ParseDuration(s string) (Duration, error) {
	var days int64
	if n, err := fmt.Sscanf(s, "%dd", &days); err == nil && n == 1 && fmt.Sprintf("%dd", days) == s {
		if days < 0 || days > 36500 {
			return Duration{}, fmt.Errorf("%q is out of range: 0d to 36500d", s)
		}
		return Duration{time.Duration(days) * 24 * time.Hour}, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return Duration{}, fmt.Errorf("%q is no duration: write it like 90s, 15m, 1h30m or 30d", s)
	}
	return Duration{d}, nil
}

// UnmarshalText lets decoders read a duration from a string.
func (d *Duration) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDuration(string(b))
	return err
}

// MarshalText writes a duration as it is read.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Or is the duration, or the default where none is given.
func (d *Duration) Or(def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	return d.Duration
}

// Defaulted is the spec with every default of the contract filled in. Runs
// snapshot this form, so that a later version's defaults cannot change a run
// in flight.
func (s Spec) Defaulted() Spec {
	s.ServiceAccountName = cmp.Or(s.ServiceAccountName, DefaultServiceAccount)
	s.CatchUp = cmp.Or(s.CatchUp, CatchUpLatest)
	s.ConcurrencyPolicy = cmp.Or(s.ConcurrencyPolicy, Forbid)
	s.OnWindowClose = cmp.Or(s.OnWindowClose, CloseFinish)
	s.MirrorPrefix = cmp.Or(s.MirrorPrefix, DefaultMirrorPrefix)
	s.StartDeadline = orDuration(s.StartDeadline, DefaultStartDeadline)
	if !(Tree{Spec: s}).rollsOut() { // nodes take the windows that they take
		s.MaxDuration = orDuration(s.MaxDuration, DefaultMaxDuration)
	}
	s.ApprovalTimeout = orDuration(s.ApprovalTimeout, DefaultApprovalTimeout)
	s.SuccessfulRunsHistoryLimit = orInt(s.SuccessfulRunsHistoryLimit, DefaultHistoryLimit)
	s.FailedRunsHistoryLimit = orInt(s.FailedRunsHistoryLimit, DefaultHistoryLimit)
	return s
}

func orDuration(d *Duration, def time.Duration) *Duration {
	if d == nil {
		return &Duration{def}
	}
	return d
}

func orInt(n *int, def int) *int {
	if n == nil {
		return &def
	}
	return n
}

// UnmarshalJSON keeps the whole numbers in properties whole: by encoding/json
// alone they would be floats, and those of more than 53 bits others.
func (s *Step) UnmarshalJSON(b []byte) error {
	type plain Step
	if err := unmarshalWhole(b, (*plain)(s)); err != nil {
		return err
	}
	expr.Whole(s.Properties)
	*s = opened([]Step{*s})[0]
	return nil
}

func unmarshalWhole(b []byte, out any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return dec.Decode(out)
}

// Clone is a deep copy of any value that survives JSON.
func Clone[T any](v T) T {
	var out T
	b, err := json.Marshal(v)
	if err == nil {
		err = unmarshalWhole(b, &out)
	}
	if m, ok := any(out).(map[string]any); ok {
		expr.Whole(m)
	}
	if err != nil {
		panic(fmt.Sprintf("plan.Clone of %T: %v", v, err)) // our own types always survive
	}
	return out
}
