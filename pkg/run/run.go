package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Phase is where a run stands.
type Phase string

// The phases of a run. The last four are its ends.
const (
	Pending   Phase = "Pending"
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
	Aborted   Phase = "Aborted"
	Replaced  Phase = "Replaced"
)

// Ended says whether the phase is one of a run's ends.
func (p Phase) Ended() bool {
	return p == Succeeded || p == Failed || p == Aborted || p == Replaced
}

// TriggerKind is what asked for a run.
type TriggerKind string

// The kinds of triggers.
const (
	BySchedule TriggerKind = "schedule"
	ByLabel    TriggerKind = "label"
	ByToken    TriggerKind = "manual"
	ByCreation TriggerKind = "create"
	ByWatch    TriggerKind = "watch"
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
	Ordinal   int64  `json:"ordinal,omitempty"`   // label, watch: number of the request on that object and key, or rule
	Owner     string `json:"owner,omitempty"`     // label: field manager that applied it declaratively, if one did

	Rule       string          `json:"rule,omitempty"`       // watch: identity of the rule
	APIVersion string          `json:"apiVersion,omitempty"` // watch: of the object, with the four below
	ObjectKind string          `json:"objectKind,omitempty"`
	Namespace  string          `json:"namespace,omitempty"`
	Name       string          `json:"name,omitempty"`
	UID        string          `json:"uid,omitempty"`
	Event      string          `json:"event,omitempty"` // watch: create, update or delete
	Body       json.RawMessage `json:"body,omitempty"`  // watch: of an object that is gone, until its run holds it

	Token string `json:"token,omitempty"` // manual

	At            time.Time         `json:"at"`                      // when the request was seen
	Reason        string            `json:"reason,omitempty"`        // manual: what the person said
	Actor         string            `json:"actor,omitempty"`         // manual: who, as far as known
	Verified      bool              `json:"verified,omitempty"`      // manual: the actor is who asked
	Parameters    map[string]string `json:"parameters,omitempty"`    // manual
	DryRun        bool              `json:"dryRun,omitempty"`        // manual, or the plan's
	OutsideWindow bool              `json:"outsideWindow,omitempty"` // manual
	AsOf          string            `json:"asOf,omitempty"`          // manual: the earlier run whose snapshot this one has
}

// Identity is what makes a request the same request, for one plan.
func (r Request) Identity(planUID string) string {
	switch r.Kind {
	case BySchedule:
		return fmt.Sprintf("%s|schedule|%s", planUID, r.Local)
	case ByLabel:
		return fmt.Sprintf("%s|label|%s|%s|%d", planUID, r.TargetUID, r.Label, r.Ordinal)
	case ByWatch:
		return fmt.Sprintf("%s|watch|%s|%s|%d", planUID, r.Rule, r.UID, r.Ordinal)
	case ByToken:
		return fmt.Sprintf("%s|manual|%s", planUID, r.Token)
	default:
		return fmt.Sprintf("%s|%s", planUID, r.Kind)
	}
}

// SameLabel says whether two requests, of one plan or of two, are for the same value of a label on
// the same object.
func (r Request) SameLabel(o Request) bool {
	return r.Kind == ByLabel && o.Kind == ByLabel && r.Label == o.Label && r.TargetUID == o.TargetUID && r.Value == o.Value
}

// Why is the reason as the ledger and ${run.reason} spell it.
func (r Request) Why() string {
	switch {
	case r.Kind == ByLabel:
		return "label:" + r.Label
	case r.Kind == ByWatch:
		return "watch:" + r.ObjectKind + "/" + r.Name
	case r.Kind == ByToken && r.Reason != "":
		return r.Reason
	case r.AsOf != "":
		return "rollback"
	}
	return string(r.Kind)
}

// Who is who asked for the run, marked where nobody has checked the name; empty: not known.
func (r Request) Who() string { return intent.Actor{Name: r.Actor, Verified: r.Verified}.Who() }

// AskedBy is who or what asked for the run, for people: a person with the reason that they gave.
func (r Request) AskedBy() string {
	if r.Kind != ByToken {
		return r.Why()
	}
	who := cmp.Or(r.Actor, string(r.Kind))
	var notes []string
	if r.Actor != "" && !r.Verified {
		notes = append(notes, "unverified")
	}
	if r.Reason != "" {
		notes = append(notes, "reason: "+r.Reason)
	}
	if len(notes) > 0 {
		who += " (" + strings.Join(notes, "; ") + ")"
	}
	if r.AsOf != "" {
		who += ", as of run " + r.AsOf
	}
	return who
}

// Said is the reason in words for people: a rollback and a dry run are named as such.
func (r Request) Said() string {
	text := r.Why()
	if r.AsOf != "" {
		text += ", as of run " + r.AsOf
	}
	if r.DryRun {
		text += ", dry run"
	}
	return text
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
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"` // Run
	Name       string    `json:"name"`
	Namespace  string    `json:"namespace"`
	Plan       string    `json:"plan"`
	PlanUID    string    `json:"planUID"`
	Request    Request   `json:"request"`
	TargetUID  string    `json:"targetUID,omitempty"` // the object that the run holds
	Spec       plan.Spec `json:"spec"`                // snapshot, with defaults
	Watched    Body      `json:"watched,omitempty"`   // the object whose change asked for the run, as it was when the run was made
	// Templates are the step templates that the spec names, as they were then.
	Templates map[string]plan.TemplateSpec `json:"templates,omitempty"`
	// Connectors are those that the steps name, as they were then, by Reference.Key.
	Connectors map[string]connector.Connector `json:"connectors,omitempty"`
}

// Compare is the order in which runs that wait for one place are looked at: by the time of their
// request, then by name.
func Compare(a, b Run) int {
	return cmp.Or(a.Request.At.Compare(b.Request.At), strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
}

// Tree is what the run does.
func (r Run) Tree() plan.Tree { return plan.Tree{Spec: r.Spec, Templates: r.Templates} }

// Head is the run without what it does: who it is, what asked for it and under which rules
// it lives. It takes little memory however large the plan is.
func (r Run) Head() Run {
	r.Templates, r.Connectors, r.Watched, r.Request.Body, r.Request.Parameters = nil, nil, nil, nil, nil
	r.Spec.Description, r.Spec.Triggers, r.Spec.Parameters = "", plan.Triggers{}, nil
	r.Spec.Steps, r.Spec.OnFailure, r.Spec.Finally = nil, nil, nil
	return r
}

// Journal is the part of a run that changes; it stands in journal.json.
type Journal struct {
	Phase       Phase         `json:"phase"`
	Waiting     string        `json:"waiting,omitempty"` // Pending: window, approval, queue, lock, jitter, pause, clock, not-ready
	Message     string        `json:"message,omitempty"`
	Section     plan.Section  `json:"section,omitempty"`
	StartedAt   *time.Time    `json:"startedAt,omitempty"`   // of the first step
	FinishedAt  *time.Time    `json:"finishedAt,omitempty"`  // of the run
	SectionAt   *time.Time    `json:"sectionAt,omitempty"`   // when the present cleanup section began
	End         *End          `json:"end,omitempty"`         // decided when the steps are through
	Approved    *intent.Actor `json:"approved,omitempty"`    // who approved the run
	Retries     int           `json:"retries,omitempty"`     // of the run, from its failed step
	RetryAt     *time.Time    `json:"retryAt,omitempty"`     // the present one begins then
	Retried     int           `json:"retried,omitempty"`     // how often its steps were tried again, all together
	Passed      *intent.Actor `json:"passed,omitempty"`      // who let it start although its gate was closed
	Allowed     *intent.Actor `json:"allowed,omitempty"`     // who permitted change for a time, without which its gate was closed at its start
	HeldSince   *time.Time    `json:"heldSince,omitempty"`   // the gate closed between two steps, and the run waits
	HeldSeconds int64         `json:"heldSeconds,omitempty"` // of earlier holds: they do not count in maxDuration
	WorkedAt    *time.Time    `json:"workedAt,omitempty"`    // it worked until then, where no step's record says so: no hold began earlier
	Steps       []Record      `json:"steps,omitempty"`
	Leader      string        `json:"leader,omitempty"`    // the agent that does what follows: another one writes itself down before it does anything
	Waits       string        `json:"waits,omitempty"`     // closing: for what it needs to take its trigger label away
	Truncated   bool          `json:"truncated,omitempty"` // outputs were cut to fit
	Packed      int           `json:"packed,omitempty"`    // as it is stored: records that have ended and stand beside it, compressed
}

// Notice is what is to be said of the run now: of a step that cannot go on unless
// somebody gives it something, or else the run's own message.
func (j Journal) Notice() string {
	switch {
	case j.Phase.Ended():
		return j.Message
	case j.Waits != "":
		return j.Waits
	}
	for _, rec := range j.Steps {
		if rec.Waits != "" {
			return document.Cut("step "+rec.Path+" waits: "+rec.Waits, document.MaxMessage)
		}
	}
	if text := j.DriftMessage(); text != "" && j.HeldSince == nil && j.End == nil {
		return text
	}
	return j.Message
}

// End is how a run ends, decided before its cleanup begins.
type End struct {
	Phase   Phase  `json:"phase"`
	Reason  string `json:"reason,omitempty"` // StepFailed, Timeout, Aborted, Interrupted, …
	Message string `json:"message,omitempty"`
	Actor   string `json:"actor,omitempty"`
	Step    string `json:"step,omitempty"`
	Result  Result `json:"result,omitempty"` // of a run that never started: how its entry ends
	Said    string `json:"said,omitempty"`   // of a run that never started: what kept it from that, in words
	// By is who aborted or rejected it, when and why; nil: nobody, or an older agent wrote this.
	By *intent.Actor `json:"by,omitempty"`
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
	Waits          string          `json:"waits,omitempty"` // for a right, an account or an admission; of the step or of its cleanup
	Outputs        map[string]any  `json:"outputs,omitempty"`
	Before         json.RawMessage `json:"before,omitempty"` // what was there, to restore
	Resumed        *intent.Actor   `json:"resumed,omitempty"`
	Restored       string          `json:"restored,omitempty"`       // done, changed, gone or failed
	RestoreMessage string          `json:"restoreMessage,omitempty"` // of the restore; Message stays the step's own
	Base           int             `json:"base,omitempty"`           // attempts before the present round; retries count from there
	Memory         json.RawMessage `json:"memory,omitempty"`         // what the executor remembers
	Approval       *Approval       `json:"approval,omitempty"`       // what a person said to an approval
	KeepAt         *time.Time      `json:"keepAt,omitempty"`         // a lease to renew then
	Listed         bool            `json:"listed,omitempty"`         // for-each: its items are known
	Items          []Item          `json:"items,omitempty"`          // for-each
	ItemVersion    string          `json:"itemVersion,omitempty"`    // for-each: apiVersion of its items
	ItemKind       string          `json:"itemKind,omitempty"`       // for-each
	Batch          int             `json:"batch,omitempty"`          // for-each: batches that are through
	ItemBase       int             `json:"itemBase,omitempty"`       // for-each: attempts of its items' steps before they were listed
	Window         *WindowWait     `json:"window,omitempty"`         // for-each-node: what its other nodes wait for
	HeldBefore     int64           `json:"heldBefore,omitempty"`     // of a step that holds others: heldSeconds when it began
	NodeSeen       int             `json:"nodeSeen,omitempty"`       // in a rollout: the attempt whose first pass found the node closed
	Stopping       bool            `json:"stopping,omitempty"`       // its work in the cluster is still to be ended
	Drift          *Drift          `json:"drift,omitempty"`          // somebody changed what the step left
	Unwatched      bool            `json:"unwatched,omitempty"`      // the account may not watch what the step left
	Unchecked      string          `json:"unchecked,omitempty"`      // why what the step left cannot be read
	Changed        []Change        `json:"changed,omitempty"`
}

// WindowWait is a closed gate, or a pause, that keeps a for-each-node from its next node.
type WindowWait struct {
	Why   string     `json:"why"`
	Opens *time.Time `json:"opens,omitempty"` // nil: that is not known
}

// Holds says whether the step holds other steps.
func (r Record) Holds() bool { return plan.Step{Type: r.Type}.Holds() }

// Attempts is the last attempt of the step, and of what a loop's items tried.
func (r Record) Attempts() int {
	last := max(r.Base, r.Attempt, r.ItemBase)
	for _, item := range r.Items {
		last = max(last, item.Attempts)
	}
	return last
}

// Item is one object of a for-each.
type Item struct {
	Name      string     `json:"n"`
	Namespace string     `json:"ns,omitempty"` // where it is not the plan's
	UID       string     `json:"u,omitempty"`  // until it is done
	Phase     StepPhase  `json:"p,omitempty"`  // empty: not begun
	Attempts  int        `json:"a,omitempty"`  // of its steps, in rounds before the present one
	Message   string     `json:"m,omitempty"`  // why it failed
	At        *time.Time `json:"t,omitempty"`  // when a node was through
}

// Segment is the item as a part of its steps' paths. A name may hold a colon, a
// namespace may not: such a name stands behind one even without a namespace.
func (i Item) Segment() string {
	if i.Namespace != "" || strings.Contains(i.Name, ":") {
		return visible(i.Namespace) + ":" + visible(i.Name)
	}
	return visible(i.Name)
}

// visible is a name with codes for what cannot be seen, since paths are printed and typed: %0A for a
// line break. Names in Kubernetes have no percent sign, so that no two become one.
func visible(name string) string {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError || r == '%' }
	if !strings.ContainsFunc(name, hidden) {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		if hidden(r) {
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Approval is what a person said.
type Approval struct {
	Approved bool `json:"approved"`
	intent.Actor
}

// UnmarshalJSON keeps the whole numbers in outputs whole, so that a step after a
// crash reads the same as it would have before.
func (r *Record) UnmarshalJSON(b []byte) error {
	type plain Record
	if err := document.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	expr.Whole(r.Outputs)
	return nil
}

// Change is one object that a step changed.
type Change struct {
	Cluster    string `json:"cluster,omitempty"` // name of the connector; empty: the plan's own cluster
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
)
