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

// Document is a plan: the text under the key plan.yaml.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       Spec   `json:"spec"`
}

// Spec is what somebody wants done, and when.
type Spec struct {
	Description string     `json:"description,omitempty"` // for people
	Target      *ObjectRef `json:"target,omitempty"`      // the object that the plan is about; one run at a time per target
	// the cluster of the target and of all steps; a step with one of its own is on that; default: the plan's own cluster
	ConnectorRef               *connector.Reference `json:"connectorRef,omitempty"`
	Triggers                   Triggers             `json:"triggers,omitzero"`                    // when a run begins; without any, only when somebody triggers one
	Policies                   []policy.PolicyRef   `json:"policies,omitempty"`                   // all of them must permit a start
	ServiceAccountName         string               `json:"serviceAccountName,omitempty"`         // the account in the plan's namespace as which everything is done
	StartDeadline              *document.Duration   `json:"startDeadline,omitempty"`              // a slot that has not started so long after its time is Missed
	CatchUp                    CatchUp              `json:"catchUp,omitempty"`                    // which slots run that fell due while no agent was at work
	ConcurrencyPolicy          ConcurrencyPolicy    `json:"concurrencyPolicy,omitempty"`          // what a slot does that falls due while a run of the plan lives
	MaxDuration                *document.Duration   `json:"maxDuration,omitempty"`                // from the first step; a run that takes longer fails and is cleaned up
	RequiresApproval           bool                 `json:"requiresApproval,omitempty"`           // a run waits until somebody approves it
	ApprovalTimeout            *document.Duration   `json:"approvalTimeout,omitempty"`            // how long an approval is waited for
	OnWindowClose              OnWindowClose        `json:"onWindowClose,omitempty"`              // what a run does when its window closes
	OnDrift                    OnDrift              `json:"onDrift,omitempty"`                    // what a run does when somebody else changes what its steps changed
	HoldOwners                 bool                 `json:"holdOwners,omitempty"`                 // suspend the Flux or Argo CD object that manages the target, while a run lives
	FreezeTarget               bool                 `json:"freezeTarget,omitempty"`               // while a run lives, nobody else may change the target; takes the admission policies
	MirrorPrefix               string               `json:"mirrorPrefix,omitempty"`               // of the annotations on the target that say how the plan stands
	Parameters                 []Parameter          `json:"parameters,omitempty"`                 // texts that a trigger may give, as ${run.parameters.NAME}
	RetryLimit                 int                  `json:"retryLimit,omitempty"`                 // how often a failed run begins again from its failed step; default 0
	SuccessfulRunsHistoryLimit *int                 `json:"successfulRunsHistoryLimit,omitempty"` // Succeeded runs that are kept
	FailedRunsHistoryLimit     *int                 `json:"failedRunsHistoryLimit,omitempty"`     // runs that are kept of those that ended otherwise
	DryRun                     bool                 `json:"dryRun,omitempty"`                     // runs of the plan change nothing and say what they would change
	Steps                      []Step               `json:"steps"`                                // one after another; after a failure the rest is skipped
	OnFailure                  []Step               `json:"onFailure,omitempty"`                  // steps that run only after a failure
	Finally                    []Step               `json:"finally,omitempty"`                    // steps that always run at the end
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
	OnCreate  bool       `json:"onCreate,omitempty"`  // one run when the plan is first seen
	Schedules []Schedule `json:"schedules,omitempty"` // a run for each slot
	Labels    []string   `json:"labels,omitempty"`    // keys; a run begins when one is put on the target, and the run takes it away at its end
	Watch     []Watch    `json:"watch,omitempty"`     // a run when objects change
}

// Schedule is one of cron, rrule and at, in a time zone.
type Schedule struct {
	Cron     string             `json:"cron,omitempty"`     // five fields: minute, hour, day of month, month, day of week
	RRule    string             `json:"rrule,omitempty"`    // a recurrence rule of RFC 5545
	At       string             `json:"at,omitempty"`       // once, at that time in the time zone
	Timezone string             `json:"timezone,omitempty"` // an IANA name, default UTC
	DTStart  string             `json:"dtstart,omitempty"`  // of an rrule: where it begins
	ExDate   []string           `json:"exdate,omitempty"`   // of an rrule: instants that are left out
	Jitter   *document.Duration `json:"jitter,omitempty"`   // starts are spread over so long, up to 24h; the same for a slot every time
}

// Watch asks for a run when objects of a kind change.
type Watch struct {
	APIVersion string                  `json:"apiVersion"`          // of the objects
	Kind       string                  `json:"kind"`                // of the objects
	Namespace  string                  `json:"namespace,omitempty"` // default: the plan's; "*": all that the account may see
	Selector   *selector.LabelSelector `json:"selector,omitempty"`  // default: all objects of the kind
	Fields     []string                `json:"fields,omitempty"`    // JSONPaths whose values count; default: the whole object without its status
	Events     []string                `json:"events,omitempty"`    // create, update, delete; default: all three
	When       string                  `json:"when,omitempty"`      // CEL over object and oldObject; a change for which it is false asks for no run
}

// Parameter is an input of a run, given by the trigger.
type Parameter struct {
	Name        string  `json:"name"`                  // expressions read it as ${run.parameters.NAME}
	Default     *string `json:"default,omitempty"`     // where the trigger gives none
	Description string  `json:"description,omitempty"` // for people
}

// Step is one piece of work.
type Step struct {
	Name       string             `json:"name"`                 // unique in the plan
	Type       string             `json:"type"`                 // what the step does, or template/NAME
	If         string             `json:"if,omitempty"`         // CEL over run, plan and steps, or always; default: nothing before it failed
	DependsOn  []string           `json:"dependsOn,omitempty"`  // in a parallel group: steps of the group that must have ended before
	Timeout    *document.Duration `json:"timeout,omitempty"`    // of the step with all its attempts; default: none
	Retry      *Retry             `json:"retry,omitempty"`      // default: one attempt
	OnRestart  string             `json:"onRestart,omitempty"`  // of exec: what becomes of a command whose end was not seen; default fail
	Requires   []Requirement      `json:"requires,omitempty"`   // objects that the step can read as required.NAME
	Disruptive *bool              `json:"disruptive,omitempty"` // false: it also runs while the window is closed
	// the cluster that the step works on, with the steps in it; default: that of the plan
	ConnectorRef *connector.Reference `json:"connectorRef,omitempty"`
	Properties   map[string]any       `json:"properties,omitempty"` // by type
	// Inner are the steps that stand in the properties of a step that holds others,
	// read once.
	Inner []Step `json:"-"`
}

// Misplaced is where a field belongs that a step does not have: among its properties, where its type has
// one of that name.
func (s *Step) Misplaced(field string) string {
	t, known := StepTypeNamed(s.Type)
	if !known || !document.HasField(t.New(), field) {
		return ""
	}
	return "properties." + field
}

// Retry says how often a step is tried again after its first attempt.
type Retry struct {
	Limit      int                `json:"limit,omitempty"`      // attempts after the first
	Backoff    *document.Duration `json:"backoff,omitempty"`    // the first wait, which doubles; default 10s
	MaxBackoff *document.Duration `json:"maxBackoff,omitempty"` // the longest wait; default 5m
}

// Requirement is an object that a step is handed as required.<name>.
type Requirement struct {
	Name        string            `json:"name"`                  // expressions read it as required.NAME
	APIVersion  string            `json:"apiVersion"`            // of the objects
	Kind        string            `json:"kind"`                  // of the objects
	Namespace   string            `json:"namespace,omitempty"`   // default: the plan's
	ObjectName  string            `json:"objectName,omitempty"`  // one object; or matchLabels
	MatchLabels map[string]string `json:"matchLabels,omitempty"` // all objects with these labels
	Required    bool              `json:"required,omitempty"`    // the step fails where there is none
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

// Defaulted is the spec with every default of the contract filled in, but for the
// maxDuration of one that names templates: Tree.Defaulted has that.
func (s Spec) Defaulted() Spec {
	s.ServiceAccountName = cmp.Or(s.ServiceAccountName, policy.DefaultServiceAccount)
	s.CatchUp = cmp.Or(s.CatchUp, CatchUpLatest)
	s.ConcurrencyPolicy = cmp.Or(s.ConcurrencyPolicy, Forbid)
	s.OnWindowClose = cmp.Or(s.OnWindowClose, CloseFinish)
	s.OnDrift = cmp.Or(s.OnDrift, DriftHold)
	s.MirrorPrefix = cmp.Or(s.MirrorPrefix, DefaultMirrorPrefix)
	s.StartDeadline = orDuration(s.StartDeadline, DefaultStartDeadline)
	if t := (Tree{Spec: s}); !t.RollsOut() && !t.usesTemplates() { // a template may roll out: Tree.Defaulted
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
