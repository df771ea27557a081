package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// Plan is a plan with everything about it.
type Plan struct {
	Object   *corev1.ConfigMap
	Spec     plan.Spec
	Faults   document.Faults
	Intent   intent.Intent
	Decision trigger.Decision // the core's decision now
	Active   []Run
	Ledger   *ledger.Ledger
	Kept     Ledger   // what is known of Ledger, its head
	Deleting bool     // its namespace is being deleted: nothing begins in it
	Gone     []string // what does not exist of what its next run needs, where somebody looked
	Skipped  string   // the annotation by which its target's users skip it, where somebody looked; empty: they do not
	Silent   bool     // no agent is at work: what it published is as it was then
	Now      time.Time
	facts    trigger.Facts
}

// NamespaceGoes says that nothing begins in a namespace that somebody has deleted.
const NamespaceGoes = "the namespace is being deleted"

// CannotRun is what keeps any run of the plan from beginning, beside what the agent says.
func (p Plan) CannotRun() []string {
	if p.Deleting {
		return []string{NamespaceGoes}
	}
	return p.Gone
}

// OnlyDry says that the plan only runs dry; empty: it does not.
func (p Plan) OnlyDry() string {
	if !p.Spec.DryRun {
		return ""
	}
	return "it only runs dry (spec.dryRun): its runs change nothing"
}

// Invalid is the first fault of a plan, or what only the agent can see: its templates, its
// configuration; empty: it is valid.
func (p Plan) Invalid() string {
	if len(p.Faults) > 0 {
		return p.Faults[0].String() + AndMore(len(p.Faults)-1)
	}
	return Invalid(p.Object)
}

// Invalid is why the agent calls this version of a plan invalid; empty: it does not.
func Invalid(cm *corev1.ConfigMap) string {
	fault, _ := FindCondition(Plan{Object: cm}.Conditions(), "Valid", metav1.ConditionFalse)
	return fault
}

// Observed says whether the agent has seen this version of the plan.
func (p Plan) Observed() bool {
	return p.Object.Annotations[annotations.StatusObserved] == annotations.Observed(p.Object)
}

// Published is a status that the agent wrote.
func (p Plan) Published(key string) string { return p.Object.Annotations[key] }

// Around is what stands around a plan.
type Around struct {
	Pauses   []schedule.Pause // above it
	Gate     *schedule.Gate   // nil: nothing stands between the plan and its runs
	Deleting bool             // its namespace is being deleted
	Silent   bool             // no agent is at work
	Read     *PlanDocument    // its document, if it has been read; nil: NewPlan reads it
}

// PlanDocument is a plan's document as it was read.
type PlanDocument struct {
	Spec   plan.Spec
	Faults document.Faults
}

// ReadDocument reads the document of a plan.
func ReadDocument(cm *corev1.ConfigMap) *PlanDocument {
	var d PlanDocument
	d.Spec, d.Faults = annotations.Plan(cm)
	return &d
}

// NewPlan describes a plan: the same pure decision that the agent makes, on the same facts.
func NewPlan(cm *corev1.ConfigMap, kept Ledger, live []Run, around Around, now time.Time) Plan {
	p := Plan{Object: cm, Intent: annotations.Intent(cm.Annotations), Ledger: kept.Head, Kept: kept, Deleting: around.Deleting, Silent: around.Silent, Now: now}
	for _, r := range live {
		p.Active = append(p.Active, Answered(r, cm))
	}
	if around.Read == nil {
		around.Read = ReadDocument(cm)
	}
	p.Spec, p.Faults = around.Read.Spec, around.Read.Faults
	f := trigger.Facts{
		Now: now, LeadingSince: cm.CreationTimestamp.Time,
		Plan: trigger.Plan{
			Namespace: cm.Namespace, Name: cm.Name, UID: string(cm.UID),
			CreatedAt: cm.CreationTimestamp.Time, EditedAt: annotations.EditedAt(&cm.ObjectMeta), Spec: p.Spec.Defaulted(), Faults: p.Faults,
			Intent: p.Intent,
		},
		Pauses: around.Pauses, Ready: trigger.Readiness{OK: true}, State: trigger.State{Ledger: kept.Head},
		Gate:   around.Gate,
		NameOf: func(r run.Request) string { return annotations.RunName(cm.Name, string(cm.UID), r) },
	}
	for _, r := range live {
		if LeftAlone(cm, r.Run.Name) == "" { // else the agent does not count it
			f.Live = append(f.Live, trigger.ActiveRunOf(r.Run, r.Journal))
		}
	}
	if why, unready := FindCondition(p.Conditions(), "Ready", metav1.ConditionFalse); unready && (f.Gate == nil || f.Gate.Verdict(now).Ready) { // else the gate says so
		f.Ready = trigger.Readiness{Reason: run.ReasonNotReady, Message: why}
	}
	p.facts = f
	p.decide()
	return p
}

func (p *Plan) decide() {
	p.Decision = trigger.Decide(p.facts)
	if due := p.overdue(); due != nil {
		p.Decision.Status.Due = due
	}
	if p.Kept.Hidden() || p.Deleting || p.Invalid() != "" { // which of its slots have had their run is not known, or none has one
		p.Decision.Status.Next, p.Decision.Status.Due = nil, nil
	}
}

// overdue is a slot whose time has come while no agent is at work; nil: none, or an agent is. What else it
// waits for is known when there is one.
func (p *Plan) overdue() *trigger.DueSlot {
	if !p.Silent {
		return nil
	}
	f := p.facts
	f.Gate, f.Ready = nil, trigger.Readiness{OK: true}
	for _, r := range trigger.Decide(f).Claims {
		if r.Kind == run.BySchedule && r.Slot != nil {
			deadline := trigger.StartsAt(f.Plan.Spec, f.Plan.Namespace, f.Plan.Name, *r.Slot, r.Schedule).Add(f.Plan.Spec.StartDeadline.Or(plan.DefaultStartDeadline))
			return &trigger.DueSlot{Slot: schedule.Slot{At: *r.Slot, Index: r.Schedule}, Why: "waits for the agent", Missed: deadline}
		}
	}
	return nil
}

// DueValue is a slot whose time has come and that waits, for scripts.
type DueValue struct {
	Slot   time.Time `json:"slot"`
	Why    string    `json:"why,omitempty"`
	Missed time.Time `json:"missed"`
}

// Due is a slot whose time has come and that waits, for scripts; nil: none does.
func (p Plan) Due() *DueValue {
	if due := p.Decision.Status.Due; due != nil {
		return &DueValue{due.At, due.Why, due.Missed.Truncate(time.Second)}
	}
	return nil
}

// SkipBy has all slots of the plan skipped by an annotation of its target; empty: none does.
func (p *Plan) SkipBy(annotation string) {
	if p.Skipped = annotation; annotation != "" {
		p.facts.Plan.Intent.Skip.All = true
		p.decide()
	}
}

// TargetSkip is the annotation by which a target's users skip a plan; empty: they do not.
func TargetSkip(name string, spec plan.Spec, target map[string]string) string {
	prefix := spec.Defaulted().MirrorPrefix
	if !annotations.SkippedOn(target, prefix, name) {
		return ""
	}
	return annotations.Mirror(prefix, name, strings.TrimPrefix(annotations.MirrorSkip, "-"))
}

// SkipSaid says which annotation of the target it is; empty: none.
func SkipSaid(annotation string, spec plan.Spec) string {
	if annotation == "" {
		return ""
	}
	return "by the annotation " + annotation + " on " + spec.TargetSaid()
}

// Pause is the one of the pauses of the plan, and above it, that lasts longest; off if none is on.
func (p Plan) Pause(now time.Time) schedule.Pause {
	return holding(now, append(slices.Clone(p.facts.Pauses), p.Intent.Pause)...)
}

// Phase is a plan's phase: the agent's, if it has seen this version.
func (p Plan) Phase() (phase, message string) {
	if len(p.Faults) > 0 {
		return string(trigger.PhaseInvalid), fmt.Sprintf("%s%s", p.Faults[0], AndMore(len(p.Faults)-1))
	}
	if !p.Observed() {
		return "Unseen", "the agent has not looked at this version of the plan yet"
	}
	for _, r := range p.Active {
		if said := r.AnswersSaid(); said != "" { // what the agent last said was before that
			return p.Published(annotations.StatusPhase), "run " + r.Run.Name + ": " + said
		}
	}
	if phase, message, is := p.pausedSince(); is {
		return phase, message
	}
	return p.Published(annotations.StatusPhase), p.upToDate(AgentMessage(p.Object, p.Ledger))
}

// pausedSince is the phase of a plan that was paused, or resumed, while no agent is at work: what the agent
// published is older than that. Everything else that a plan is, only the agent decides.
func (p Plan) pausedSince() (phase, message string, is bool) {
	now := p.Decision.Status
	was := trigger.Phase(p.Published(annotations.StatusPhase))
	calm := func(phase trigger.Phase) bool { return phase == trigger.PhaseIdle || phase == trigger.PhasePaused }
	return string(now.Phase), now.Message, p.Silent && was != now.Phase && calm(was) && calm(now.Phase) && p.Invalid() == "" && !p.Deleting
}

// upToDate is the agent's message, but for one of a next run whose time has come since.
func (p Plan) upToDate(message string) string {
	at, err := time.Parse(time.RFC3339, p.Published(annotations.StatusNextRun))
	if err != nil || p.Now.IsZero() || !at.Before(p.Now) || !strings.HasPrefix(message, trigger.NextRun) {
		return message
	}
	return "its slot " + at.UTC().Format(time.RFC3339) + " has come, and the agent has not looked at it yet"
}

// AgentMessage is the agent's message about a plan. A message that it waits for a trigger is outdated when
// there is a trigger that the agent has not handled.
func AgentMessage(cm *corev1.ConfigMap, l *ledger.Ledger) string {
	if message := cm.Annotations[annotations.StatusMessage]; message == "" || cm.Annotations[annotations.StatusPhase] != string(trigger.PhaseIdle) || !TokenPending(cm, l) {
		return message
	}
	return "a trigger waits that the agent has not taken up yet"
}

// IntentFaults are the faults of a plan's annotations.
func IntentFaults(p Plan) []string {
	var out []string
	for _, f := range p.Intent.Faults {
		out = append(out, f.String())
	}
	return out
}

// Conditions are those that the agent published on a document.
func Conditions(cm *corev1.ConfigMap) []metav1.Condition { return ConditionsIn(cm.Annotations) }

// ConditionsIn are those that the agent published in the annotations of an object.
func ConditionsIn(a map[string]string) []metav1.Condition {
	var list []metav1.Condition
	if err := json.Unmarshal([]byte(a[annotations.StatusConditions]), &list); err != nil {
		return nil
	}
	return list
}

// FindCondition says whether there is a condition with such a status, and returns its message.
func FindCondition(list []metav1.Condition, kind string, status metav1.ConditionStatus) (message string, is bool) {
	for _, c := range list {
		if c.Type == kind && c.Status == status {
			return c.Message, true
		}
	}
	return "", false
}

// Conditions are those that the agent published for this version of the plan.
func (p Plan) Conditions() []metav1.Condition {
	if !p.Observed() {
		return nil
	}
	return Conditions(p.Object)
}

// GatesOf is the published state of a policy's gates: held, or what is wrong. Both are empty if it
// has none.
func GatesOf(cm *corev1.ConfigMap) (held, wrong string) {
	for _, c := range Conditions(cm) {
		switch {
		case c.Type != "Gates":
		case c.Status == metav1.ConditionTrue:
			held = c.Message
		default:
			wrong = c.Message
		}
	}
	return held, wrong
}

// TokenHandled says whether the token on a plan has been handled.
func TokenHandled(cm *corev1.ConfigMap, l *ledger.Ledger) bool {
	token := cm.Annotations[annotations.Trigger]
	return token == cm.Annotations[annotations.StatusTrigger] || l != nil && l.KnowsToken(token)
}

// AskedRun is the name of the run that a plan's trigger asks for.
func AskedRun(cm *corev1.ConfigMap) string {
	return annotations.RunName(cm.Name, string(cm.UID), run.Request{Kind: run.ByToken, Token: cm.Annotations[annotations.Trigger]})
}

// TokenPending says whether a trigger waits for the agent.
func TokenPending(cm *corev1.ConfigMap, l *ledger.Ledger) bool {
	return cm.Annotations[annotations.Trigger] != "" && !TokenHandled(cm, l)
}
