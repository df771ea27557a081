package print

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/transition"
)

// Kinds of values for scripts. Their shapes are documented in docs/cli.md and are stable.
const (
	KindPlanStatus          = "PlanStatus"
	KindHibernatePlanStatus = "HibernatePlanStatus"
	KindRunStatus           = "RunStatus"
	KindNodeStatus          = "NodeStatus"
	KindStatusList          = "StatusList"
)

// Identity names the object of a value.
type Identity struct {
	Namespace         string       `json:"namespace,omitempty"`
	Name              string       `json:"name"`
	UID               string       `json:"uid,omitempty"`
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`
}

func identityOf(m metav1.ObjectMeta) Identity {
	id := Identity{Namespace: m.Namespace, Name: m.Name, UID: string(m.UID)}
	if !m.CreationTimestamp.IsZero() {
		id.CreationTimestamp = &m.CreationTimestamp
	}
	return id
}

// NeedValue is what needs somebody.
type NeedValue struct {
	What   string `json:"what"`
	Remedy string `json:"remedy"`
}

func needValues(needs []Need) []NeedValue {
	out := []NeedValue{}
	for _, n := range needs {
		out = append(out, NeedValue{n.What, n.Remedy})
	}
	return out
}

// PlanStatus is the status of a plan. Its last four fields are only for describe.
type PlanStatus struct {
	Metadata   Identity             `json:"metadata"`
	Phase      string               `json:"phase"`
	Message    string               `json:"message"`
	Observed   bool                 `json:"observed"` // the agent has seen this version
	Target     string               `json:"target,omitempty"`
	Paused     *schedule.Pause      `json:"paused,omitempty"`
	Skip       string               `json:"skip,omitempty"`      // as its annotation says
	SkippedBy  string               `json:"skippedBy,omitempty"` // the annotation by which the target's users skip it
	Permission *schedule.Verdict    `json:"permission,omitempty"`
	Next       *time.Time           `json:"next,omitempty"`
	Due        *view.DueValue       `json:"due,omitempty"`    // a slot whose time has come and that waits
	DryRun     bool                 `json:"dryRun,omitempty"` // its runs change nothing
	Last       *ledger.LastRun      `json:"last,omitempty"`
	Totals     map[run.Result]int64 `json:"totals,omitempty"`
	Outcomes   map[run.Phase]int64  `json:"outcomes,omitempty"` // of the runs that started, by how they ended
	Active     []RunStatus          `json:"active"`
	Needs      []NeedValue          `json:"needs"`
	Conditions []metav1.Condition   `json:"conditions,omitempty"`
	Faults     []string             `json:"faults,omitempty"`
	Spec       *plan.Spec           `json:"spec,omitempty"`
	History    []ledger.Entry       `json:"history,omitempty"`
	Events     []EventValue         `json:"events,omitempty"`
	NewestRun  *RunStatus           `json:"newestRun,omitempty"` // in full; only for describe
}

// EventValue is an Event about an object.
type EventValue struct {
	At      time.Time `json:"at"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
}

// PlanValue is a plan for scripts. more are needs that are not seen on the plan itself.
func (v Printer) PlanValue(p view.Plan, more ...Need) PlanStatus {
	out := PlanStatus{
		Metadata: identityOf(p.Object.ObjectMeta), Observed: p.Observed(), Permission: p.Decision.Status.Window,
		SkippedBy: p.Skipped, Due: p.Due(), DryRun: p.Spec.DryRun, Active: []RunStatus{}, Needs: needValues(append(v.PlanNeeds(p), more...)), Conditions: view.Conditions(p.Object),
	}
	out.Phase, out.Message = p.Phase()
	if p.Spec.Target != nil {
		out.Target = p.Spec.Target.String()
	}
	if p.Intent.Pause.Holds(v.Now) {
		out.Paused = &p.Intent.Pause
	}
	if s := p.Intent.Skip; s.All || s.Next || s.Until != nil || len(s.Slots) > 0 {
		out.Skip = annotations.FormatSkip(s)
	}
	if p.Decision.Status.Next != nil {
		out.Next = &p.Decision.Status.Next.At
	}
	if p.Ledger != nil {
		out.Last, out.Totals, out.Outcomes = p.Ledger.Last, p.Ledger.Totals, p.Ledger.Outcomes
	}
	for _, r := range p.Active {
		out.Active = append(out.Active, RunValue(r))
	}
	for _, f := range p.Faults {
		out.Faults = append(out.Faults, f.String())
	}
	return out
}

// RunStatus is the status of a run. Its last three fields are only for describe.
type RunStatus struct {
	Metadata    Identity          `json:"metadata"`
	Plan        string            `json:"plan"`
	Phase       run.Phase         `json:"phase"`
	Waiting     string            `json:"waiting,omitempty"` // window, approval, queue, lock, jitter
	Message     string            `json:"message"`
	Reason      string            `json:"reason"` // of the request
	Actor       string            `json:"actor,omitempty"`
	Verified    bool              `json:"verified,omitempty"` // somebody checked the actor's name
	AsOf        string            `json:"asOf,omitempty"`     // the run that a rollback goes back to
	DryRun      bool              `json:"dryRun,omitempty"`
	RequestedAt time.Time         `json:"requestedAt"`
	Slot        *time.Time        `json:"slot,omitempty"`
	StartedAt   *time.Time        `json:"startedAt,omitempty"`
	FinishedAt  *time.Time        `json:"finishedAt,omitempty"`
	Approved    *intent.Actor     `json:"approved,omitempty"`
	End         *run.End          `json:"end,omitempty"`
	Questions   []string          `json:"questions,omitempty"` // RUN or RUN/STEP that wait for approval
	NotPutBack  []string          `json:"notPutBack,omitempty"`
	Steps       []StepStatus      `json:"steps"`
	Needs       []NeedValue       `json:"needs,omitempty"` // of a run that is named, or whose plan is gone
	Parameters  map[string]string `json:"parameters,omitempty"`
	Spec        *plan.Spec        `json:"spec,omitempty"`
	Changed     []run.Change      `json:"changed,omitempty"`
	Events      []EventValue      `json:"events,omitempty"`
}

// StepStatus is the status of a step.
type StepStatus struct {
	Path       string         `json:"path"`
	Type       string         `json:"type"`
	Phase      run.StepPhase  `json:"phase"`
	Attempt    int            `json:"attempt,omitempty"`
	StartedAt  *time.Time     `json:"startedAt,omitempty"`
	FinishedAt *time.Time     `json:"finishedAt,omitempty"`
	Reason     string         `json:"reason,omitempty"`
	Message    string         `json:"message,omitempty"`
	Waits      string         `json:"waits,omitempty"`
	Outputs    map[string]any `json:"outputs,omitempty"` // only for describe
}

// RunValue is a run for scripts.
func RunValue(r view.Run, needs ...Need) RunStatus {
	j, q := r.Journal, r.Run.Request
	out := RunStatus{
		Metadata: Identity{Namespace: r.Run.Namespace, Name: r.Run.Name}, Plan: r.Run.Plan, Phase: j.Phase, Waiting: j.Waiting, Message: j.Notice(),
		Reason: q.Why(), Actor: q.Actor, Verified: q.Verified, AsOf: q.AsOf, DryRun: q.DryRun, RequestedAt: q.At, Slot: q.Slot, StartedAt: j.StartedAt, FinishedAt: j.FinishedAt,
		Approved: j.Approved, End: j.End, Questions: view.Questions(r), NotPutBack: view.NotPutBack(r), Steps: []StepStatus{}, Needs: needValues(needs),
	}
	for _, rec := range j.Steps {
		out.Steps = append(out.Steps, StepStatus{
			Path: rec.Path, Type: rec.Type, Phase: rec.Phase, Attempt: rec.Attempt, StartedAt: rec.StartedAt, FinishedAt: rec.FinishedAt,
			Reason: rec.Reason, Message: rec.Message, Waits: rec.Waits,
		})
	}
	return out
}

// RunInFull is a run for scripts with everything that is known of it.
func RunInFull(r view.Run, needs ...Need) RunStatus {
	out := RunValue(r, needs...)
	out.Parameters, out.Spec = r.Run.Request.Parameters, &r.Run.Spec
	for i, rec := range r.Journal.Steps {
		out.Steps[i].Outputs = rec.Outputs
		out.Changed = append(out.Changed, rec.Changed...)
	}
	return out
}

// HoldValue is a hold of a HibernatePlan.
type HoldValue struct {
	State string     `json:"state"` // awake or asleep
	Until *time.Time `json:"until,omitempty"`
}

// HibernatePlanStatus is the status of a HibernatePlan. Its last three fields are only for
// describe.
type HibernatePlanStatus struct {
	Metadata Identity `json:"metadata"`
	Phase    string   `json:"phase"`
	Message  string   `json:"message"`
	// Overall is the combined state of all targets, and LastTransition since when the plan has its
	// phase.
	Overall        hibernate.State          `json:"overall,omitempty"`
	LastTransition *time.Time               `json:"lastTransition,omitempty"`
	Observed       bool                     `json:"observed"`
	Asleep         bool                     `json:"asleep"` // the agent says that something of it sleeps
	Since          *time.Time               `json:"since,omitempty"`
	SleepsAt       *time.Time               `json:"sleepsAt,omitempty"`
	WakesAt        *time.Time               `json:"wakesAt,omitempty"`
	DryRun         bool                     `json:"dryRun,omitempty"` // nothing is put to sleep
	Hold           *HoldValue               `json:"hold,omitempty"`
	Paused         *schedule.Pause          `json:"paused,omitempty"`
	Targets        []hibernate.TargetStatus `json:"targets"`
	Needs          []NeedValue              `json:"needs"`
	Conditions     []metav1.Condition       `json:"conditions,omitempty"`
	Faults         []string                 `json:"faults,omitempty"`
	Slept          []SleptValue             `json:"slept,omitempty"` // for a single plan: in the last 30 days
	Spec           *hibernate.Spec          `json:"spec,omitempty"`
	History        []ledger.Entry           `json:"history,omitempty"`
	Events         []EventValue             `json:"events,omitempty"`
}

// SleptValue is how long the resources of one kind of a target slept.
type SleptValue struct {
	Target    string  `json:"target"`
	Executor  string  `json:"executor"`
	Kind      string  `json:"kind"`      // of the resources
	Resources int     `json:"resources"` // the most that slept at the same time
	Sleeps    int     `json:"sleeps"`
	Hours     float64 `json:"hours"` // of all resources together
}

// SleptValues are how long the resources of a HibernatePlan slept, for scripts.
func SleptValues(rows []savings.Row) []SleptValue {
	var out []SleptValue
	for _, r := range rows {
		out = append(out, SleptValue{Target: r.Target, Executor: r.Executor, Kind: r.Kind, Resources: r.Resources, Sleeps: r.Sleeps, Hours: r.Hours})
	}
	return out
}

// SleeperValue is a HibernatePlan for scripts.
func (v Printer) SleeperValue(s view.Sleeper) HibernatePlanStatus {
	out := HibernatePlanStatus{
		Metadata: identityOf(s.Object.ObjectMeta), Observed: s.Observed(), Asleep: s.Asleep(), Since: s.Instant(annotations.StatusAsleep),
		Overall: transition.Overall(s.Targets()), LastTransition: s.Instant(annotations.StatusLastTransition),
		SleepsAt: s.FallsAsleepAt(v.Now), WakesAt: s.WakesAt(v.Now), DryRun: s.Spec.DryRun,
		Targets: append([]hibernate.TargetStatus{}, s.Targets()...), Needs: needValues(v.SleeperNeeds(s)), Conditions: view.Conditions(s.Object),
	}
	out.Phase, out.Message = s.Phase()
	if s.Hold.Holds(v.Now) {
		out.Hold = &HoldValue{State: map[bool]string{true: "asleep", false: "awake"}[s.Hold.Asleep], Until: s.Hold.Until}
	}
	if p := s.Pause(v.Now); p.On {
		out.Paused = &p
	}
	for _, f := range s.Faults {
		out.Faults = append(out.Faults, f.String())
	}
	return out
}

// ClaimValue is a claim on a node, or a request for it.
type ClaimValue struct {
	For     string     `json:"for"`
	Phase   string     `json:"phase"`
	Since   *time.Time `json:"since,omitempty"`
	Left    string     `json:"left,omitempty"` // pods: left/total
	Reason  string     `json:"reason,omitempty"`
	Blocked bool       `json:"blocked,omitempty"` // its drain is blocked for good
}

// NodeStatus is the status of a node.
type NodeStatus struct {
	Metadata      Identity          `json:"metadata"`
	Unschedulable bool              `json:"unschedulable"`
	Permission    *schedule.Verdict `json:"permission,omitempty"` // for a single node
	Claims        []ClaimValue      `json:"claims"`
	Needs         []NeedValue       `json:"needs"`
}

// NodeValue is a node for scripts, with who has it or asks for it.
func (v Printer) NodeValue(n *corev1.Node, claims []view.NodeClaim, needs []Need) NodeStatus {
	out := NodeStatus{Metadata: identityOf(n.ObjectMeta), Unschedulable: n.Spec.Unschedulable, Claims: []ClaimValue{}, Needs: needValues(needs)}
	for _, c := range claims {
		out.Claims = append(out.Claims, claimValue(c))
	}
	return out
}

func claimValue(c view.NodeClaim) ClaimValue {
	value := ClaimValue{For: c.By, Phase: c.Phase, Left: c.Left, Reason: c.Reason, Blocked: c.Blocked}
	if !c.Since.IsZero() {
		value.Since = &c.Since
	}
	return value
}
