package plan

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// RunPhase is where a run stands.
type RunPhase string

// The phases of a run. The last four are its ends.
const (
	RunPending   RunPhase = "Pending"
	RunRunning   RunPhase = "Running"
	RunSucceeded RunPhase = "Succeeded"
	RunFailed    RunPhase = "Failed"
	RunAborted   RunPhase = "Aborted"
	RunReplaced  RunPhase = "Replaced"
)

// Ended says whether the phase is one of a run's ends.
func (p RunPhase) Ended() bool {
	return p == RunSucceeded || p == RunFailed || p == RunAborted || p == RunReplaced
}

// TriggerKind is what asked for a run.
type TriggerKind string

// The kinds of triggers.
const (
	BySchedule TriggerKind = "schedule"
	ByLabel    TriggerKind = "label"
	ByToken    TriggerKind = "manual"
	ByCreation TriggerKind = "create"
)

// Request is what asked for a run: its identity, and what was said with it.
// The identity alone names the run, so that the same request is one run however
// often it is seen.
type Request struct {
	Kind TriggerKind `json:"kind"`

	Slot     *time.Time `json:"slot,omitempty"`     // schedule: the instant, UTC
	Local    string     `json:"local,omitempty"`    // schedule: slot identity, wall-clock time with offset, and zone
	Schedule int        `json:"schedule,omitempty"` // schedule: index in the plan

	Label     string `json:"label,omitempty"`     // label: the key
	Value     string `json:"value,omitempty"`     // label: its value when the request was seen
	TargetUID string `json:"targetUID,omitempty"` // label: the object it stood on
	Ordinal   int64  `json:"ordinal,omitempty"`   // label: number of the request on that object and key
	Owner     string `json:"owner,omitempty"`     // label: field manager that applied it declaratively, if one did

	Token string `json:"token,omitempty"` // manual

	At            time.Time         `json:"at"`                      // when the request was seen
	Reason        string            `json:"reason,omitempty"`        // manual: what the person said
	Actor         string            `json:"actor,omitempty"`         // manual: who, as far as known
	Parameters    map[string]string `json:"parameters,omitempty"`    // manual
	DryRun        bool              `json:"dryRun,omitempty"`        // manual, or the plan's
	OutsideWindow bool              `json:"outsideWindow,omitempty"` // manual
}

// Identity is what makes a request the same request, for one plan.
func (r Request) Identity(planUID string) string {
	switch r.Kind {
	case BySchedule:
		return fmt.Sprintf("%s|schedule|%s", planUID, r.Local)
	case ByLabel:
		return fmt.Sprintf("%s|label|%s|%s|%d", planUID, r.TargetUID, r.Label, r.Ordinal)
	case ByToken:
		return fmt.Sprintf("%s|manual|%s", planUID, r.Token)
	default:
		return fmt.Sprintf("%s|%s", planUID, r.Kind)
	}
}

// Why is the reason as the ledger and ${run.reason} spell it.
func (r Request) Why() string {
	switch {
	case r.Kind == ByLabel:
		return "label:" + r.Label
	case r.Kind == ByToken && r.Reason != "":
		return r.Reason
	}
	return string(r.Kind)
}

// ScheduledAt is the slot, or the instant of the request for a run without one.
func (r Request) ScheduledAt() time.Time {
	if r.Slot != nil {
		return *r.Slot
	}
	return r.At
}

// Run is the fixed part of one execution: what was asked, and the plan as it
// was then. It stands in the run's run.yaml and never changes.
type Run struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"` // Run
	Name       string  `json:"name"`
	Namespace  string  `json:"namespace"`
	Plan       string  `json:"plan"`
	PlanUID    string  `json:"planUID"`
	Request    Request `json:"request"`
	TargetUID  string  `json:"targetUID,omitempty"` // the object that the run holds
	Spec       Spec    `json:"spec"`                // snapshot, with defaults
}

// Section is the part of a run that is being worked on.
type Section string

// The sections of a run, in the order in which they run. Restores put back what
// steps with restoreAfter found; they come before finally, so that finally's
// messages speak of a world that is as it was.
const (
	SectionSteps     Section = "steps"
	SectionOnFailure Section = "onFailure"
	SectionRestore   Section = "restore"
	SectionFinally   Section = "finally"
	SectionClosing   Section = "closing" // the trigger label goes, the ledger's entry is closed
)

// Journal is the part of a run that changes; it stands in journal.json.
type Journal struct {
	Phase       RunPhase   `json:"phase"`
	Waiting     string     `json:"waiting,omitempty"` // Pending: window, approval, queue, lock, jitter
	Message     string     `json:"message,omitempty"`
	Section     Section    `json:"section,omitempty"`
	StartedAt   *time.Time `json:"startedAt,omitempty"`   // of the first step
	FinishedAt  *time.Time `json:"finishedAt,omitempty"`  // of the run
	SectionAt   *time.Time `json:"sectionAt,omitempty"`   // when the present cleanup section began
	End         *End       `json:"end,omitempty"`         // decided when the steps are through
	Passed      *Actor     `json:"passed,omitempty"`      // who let it start although its gate was closed
	HeldSince   *time.Time `json:"heldSince,omitempty"`   // the gate closed between two steps, and the run waits
	HeldSeconds int64      `json:"heldSeconds,omitempty"` // of earlier holds: they do not count in maxDuration
	Steps       []Record   `json:"steps,omitempty"`
	Truncated   bool       `json:"truncated,omitempty"` // outputs were cut to fit
}

// End is how a run ends, decided before its cleanup begins.
type End struct {
	Phase   RunPhase `json:"phase"`
	Reason  string   `json:"reason,omitempty"` // StepFailed, Timeout, Aborted, Interrupted, …
	Message string   `json:"message,omitempty"`
	Actor   string   `json:"actor,omitempty"`
	Step    string   `json:"step,omitempty"`
	Result  Result   `json:"result,omitempty"` // of a run that never started: how its entry ends
}

// StepPhase is where a step stands.
type StepPhase string

// The phases of a step.
const (
	StepPending   StepPhase = "Pending"
	StepRunning   StepPhase = "Running"
	StepSucceeded StepPhase = "Succeeded"
	StepFailed    StepPhase = "Failed"
	StepSkipped   StepPhase = "Skipped"
)

// Ended says whether nothing more happens in the step.
func (p StepPhase) Ended() bool {
	return p == StepSucceeded || p == StepFailed || p == StepSkipped
}

// Record is what the journal knows of one step. Path is the step's name, with
// its section before it outside steps: finally/scale-up.
type Record struct {
	Path           string          `json:"path"`
	Type           string          `json:"type"`
	Phase          StepPhase       `json:"phase"`
	Attempt        int             `json:"attempt,omitempty"` // 1 for the first
	StartedAt      *time.Time      `json:"startedAt,omitempty"`
	AttemptAt      *time.Time      `json:"attemptAt,omitempty"`  // start of this attempt
	NotBefore      *time.Time      `json:"notBefore,omitempty"`  // the next attempt waits until then
	ResumeAt       *time.Time      `json:"resumeAt,omitempty"`   // suspend with a duration
	FinishedAt     *time.Time      `json:"finishedAt,omitempty"` //
	Reason         string          `json:"reason,omitempty"`
	Message        string          `json:"message,omitempty"`
	Outputs        map[string]any  `json:"outputs,omitempty"`
	Before         json.RawMessage `json:"before,omitempty"` // what was there, to restore
	Resumed        *Actor          `json:"resumed,omitempty"`
	Restored       string          `json:"restored,omitempty"`       // done, changed, gone or failed
	RestoreMessage string          `json:"restoreMessage,omitempty"` // of the restore; Message stays the step's own
	Stopping       bool            `json:"stopping,omitempty"`       // its work in the cluster is still to be ended
	Changed        []Change        `json:"changed,omitempty"`
}

// UnmarshalJSON keeps the whole numbers in outputs whole, so that a step after a
// crash reads the same as it would have before.
func (r *Record) UnmarshalJSON(b []byte) error {
	type plain Record
	if err := unmarshalWhole(b, (*plain)(r)); err != nil {
		return err
	}
	expr.Whole(r.Outputs)
	return nil
}

// Actor is who asked for something, and why.
type Actor struct {
	Name     string    `json:"name,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`
	Verified bool      `json:"verified,omitempty"`
}

// Change is one object that a step changed.
type Change struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	What       string `json:"what"`
}

// Caps of what a journal keeps, fixed by the contract.
const (
	MaxStepOutput = 64 << 10
	MaxRunOutput  = 512 << 10
	MaxMessage    = 1024
)
