package plan

import (
	"cmp"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// Bounds of a document.
const (
	MaxSteps     = 100
	MaxPolicies  = 16 // of one object (a guess: nobody reads more reasons)
	MaxSchedules = 50 // of one plan, each with at most one slot in a minute
)

// Defaults of a plan, fixed by the contract.
const (
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
	Description string     `json:"description,omitempty"`
	Target      *ObjectRef `json:"target,omitempty"`
	// ConnectorRef is the cluster of the target and of all steps; the nearest one counts.
	ConnectorRef               *connector.Reference `json:"connectorRef,omitempty"`
	Triggers                   Triggers             `json:"triggers,omitzero"`
	Policies                   []policy.PolicyRef   `json:"policies,omitempty"`
	ServiceAccountName         string               `json:"serviceAccountName,omitempty"`
	StartDeadline              *document.Duration   `json:"startDeadline,omitempty"`
	CatchUp                    CatchUp              `json:"catchUp,omitempty"`
	ConcurrencyPolicy          ConcurrencyPolicy    `json:"concurrencyPolicy,omitempty"`
	MaxDuration                *document.Duration   `json:"maxDuration,omitempty"`
	RequiresApproval           bool                 `json:"requiresApproval,omitempty"`
	ApprovalTimeout            *document.Duration   `json:"approvalTimeout,omitempty"`
	OnWindowClose              OnWindowClose        `json:"onWindowClose,omitempty"`
	OnDrift                    OnDrift              `json:"onDrift,omitempty"`
	HoldOwners                 bool                 `json:"holdOwners,omitempty"`
	FreezeTarget               bool                 `json:"freezeTarget,omitempty"`
	MirrorPrefix               string               `json:"mirrorPrefix,omitempty"`
	Parameters                 []Parameter          `json:"parameters,omitempty"`
	RetryLimit                 int                  `json:"retryLimit,omitempty"`
	SuccessfulRunsHistoryLimit *int                 `json:"successfulRunsHistoryLimit,omitempty"`
	FailedRunsHistoryLimit     *int                 `json:"failedRunsHistoryLimit,omitempty"`
	DryRun                     bool                 `json:"dryRun,omitempty"`
	Steps                      []Step               `json:"steps"`
	OnFailure                  []Step               `json:"onFailure,omitempty"`
	Finally                    []Step               `json:"finally,omitempty"`
}

// ObjectRef names one object in the plan's namespace, or a cluster-scoped one.
type ObjectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// String is the reference as people say it: Deployment/orders.
func (r ObjectRef) String() string { return r.Kind + "/" + r.Name }

// TargetSaid is the target as people say it, with its cluster where that is another; empty
// without a target.
func (s Spec) TargetSaid() string {
	switch {
	case s.Target == nil:
		return ""
	case s.ConnectorRef != nil:
		return s.Target.String() + " on " + s.ConnectorRef.Name
	}
	return s.Target.String()
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
	Cron     string             `json:"cron,omitempty"`
	RRule    string             `json:"rrule,omitempty"`
	At       string             `json:"at,omitempty"`
	Timezone string             `json:"timezone,omitempty"`
	DTStart  string             `json:"dtstart,omitempty"`
	ExDate   []string           `json:"exdate,omitempty"`
	Jitter   *document.Duration `json:"jitter,omitempty"`
}

// Watch asks for a run when objects of a kind change.
type Watch struct {
	APIVersion string                  `json:"apiVersion"`
	Kind       string                  `json:"kind"`
	Namespace  string                  `json:"namespace,omitempty"`
	Selector   *selector.LabelSelector `json:"selector,omitempty"`
	Fields     []string                `json:"fields,omitempty"`
	Events     []string                `json:"events,omitempty"`
	When       string                  `json:"when,omitempty"`
}

// Parameter is an input of a run, given by the trigger.
type Parameter struct {
	Name        string  `json:"name"`
	Default     *string `json:"default,omitempty"`
	Description string  `json:"description,omitempty"`
}

// Step is one piece of work.
type Step struct {
	Name       string             `json:"name"`
	Type       string             `json:"type"`
	If         string             `json:"if,omitempty"`
	DependsOn  []string           `json:"dependsOn,omitempty"`
	Timeout    *document.Duration `json:"timeout,omitempty"`
	Retry      *Retry             `json:"retry,omitempty"`
	OnRestart  string             `json:"onRestart,omitempty"`
	Requires   []Requirement      `json:"requires,omitempty"`
	Disruptive *bool              `json:"disruptive,omitempty"`
	// ConnectorRef is the cluster that the step works on, and the steps that it holds.
	ConnectorRef *connector.Reference `json:"connectorRef,omitempty"`
	Properties   map[string]any       `json:"properties,omitempty"`
	// Inner are the steps that stand in the properties of a step that holds others,
	// read once.
	Inner []Step `json:"-"`
}

// Retry says how often a step is tried again after its first attempt.
type Retry struct {
	Limit      int                `json:"limit,omitempty"`
	Backoff    *document.Duration `json:"backoff,omitempty"`
	MaxBackoff *document.Duration `json:"maxBackoff,omitempty"`
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

// OnDrift says what a run does when somebody changes what it holds.
type OnDrift string

// What a run does then.
const (
	DriftHold   OnDrift = "hold" // the default: no further step begins until it is as the run left it, or somebody resumes
	DriftFail   OnDrift = "fail"
	DriftIgnore OnDrift = "ignore"
)

// OnWindowClose says what a run does when its window closes.
type OnWindowClose string

// The values of onWindowClose.
const (
	CloseFinish OnWindowClose = "finish"
	CloseWait   OnWindowClose = "wait"
	CloseAbort  OnWindowClose = "abort"
)

// Defaulted is the spec with every default of the contract filled in. Runs
// snapshot this form, so that a later version's defaults cannot change a run
// in flight.
func (s Spec) Defaulted() Spec {
	s.ServiceAccountName = cmp.Or(s.ServiceAccountName, policy.DefaultServiceAccount)
	s.CatchUp = cmp.Or(s.CatchUp, CatchUpLatest)
	s.ConcurrencyPolicy = cmp.Or(s.ConcurrencyPolicy, Forbid)
	s.OnWindowClose = cmp.Or(s.OnWindowClose, CloseFinish)
	s.OnDrift = cmp.Or(s.OnDrift, DriftHold)
	s.MirrorPrefix = cmp.Or(s.MirrorPrefix, DefaultMirrorPrefix)
	s.StartDeadline = orDuration(s.StartDeadline, DefaultStartDeadline)
	if !(Tree{Spec: s}).RollsOut() { // nodes take the windows that they take
		s.MaxDuration = orDuration(s.MaxDuration, DefaultMaxDuration)
	}
	s.ApprovalTimeout = orDuration(s.ApprovalTimeout, DefaultApprovalTimeout)
	s.SuccessfulRunsHistoryLimit = orInt(s.SuccessfulRunsHistoryLimit, DefaultHistoryLimit)
	s.FailedRunsHistoryLimit = orInt(s.FailedRunsHistoryLimit, DefaultHistoryLimit)
	if s.HoldOwners && len(s.written()) == len(s.Steps) {
		s.Steps = append([]Step{holdingOwners()}, s.Steps...)
	}
	return s
}

// ownersTimeout is how long a run waits for the target's owner to be suspended, and for what
// that was applying just then (a guess: longer than most applies take).
const ownersTimeout = 10 * time.Minute

// holdingOwners is the step that holdOwners puts before all others.
func holdingOwners() Step {
	return Step{Name: TypeHoldOwners, Type: TypeHoldOwners, Timeout: &document.Duration{Duration: ownersTimeout}, Properties: map[string]any{"restoreAfter": true}}
}

// written are the steps without the one that holdOwners puts before them.
func (s Spec) written() []Step {
	if s.HoldOwners && len(s.Steps) > 0 && s.Steps[0].Name == TypeHoldOwners && s.Steps[0].Type == TypeHoldOwners {
		return s.Steps[1:]
	}
	return s.Steps
}

func orDuration(d *document.Duration, def time.Duration) *document.Duration {
	if d == nil {
		return &document.Duration{Duration: def}
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
	if err := document.Unmarshal(b, (*plain)(s)); err != nil {
		return err
	}
	expr.Whole(s.Properties)
	*s = opened([]Step{*s})[0]
	return nil
}
