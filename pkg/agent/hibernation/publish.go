package hibernation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/restoredata"
	"github.com/kubectl-maint/kubectl-maint/pkg/transition"
)

func isThere(err error) bool { return apierrors.IsAlreadyExists(err) }

// publish says on the plan how it is.
func (c *Controller) publish(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *cachedPlan, v view, d hibernate.Decision) error {
	if cm == nil {
		return nil
	}
	phase, message := phaseOf(v, d)
	standing := status.Current(cm, &known.written)
	list, was := c.targets(k, annotations.ReadTargets(standing[annotations.StatusTargets]), v, d), hibernate.Phase(standing[annotations.StatusPhase])
	_, err := c.Status.WriteOver(ctx, cm, &known.written, func(have map[string]string) map[string]string {
		want := map[string]string{
			annotations.StatusPhase: string(phase), annotations.StatusMessage: document.Cut(message, document.MaxMessage),
			annotations.StatusObserved: annotations.Observed(cm), annotations.StatusTargets: annotations.Targets(list),
			annotations.StatusOverall: string(transition.Overall(list)), annotations.StatusProgress: transition.ProgressOf(list).String(), annotations.StatusLastTransition: transition.Plan(was, phase, have[annotations.StatusLastTransition], c.Clock.Now()),
			annotations.StatusAsleep: transition.AsleepSince(v.facts.Records, d.Closed), annotations.StatusWakes: "", annotations.StatusSleeps: "", annotations.StatusBehavior: have[annotations.StatusBehavior], annotations.StatusHold: annotations.FormatHold(v.hold), annotations.StatusConditions: conditions(c.ownConditions(cm, have), v, phase, message, c.Clock.Now()),
		}
		switch {
		case v.policy.none: // nothing stands before it any more
			want[annotations.StatusBehavior] = ""
		case v.policy.verdict != nil:
			want[annotations.StatusBehavior] = status.Behavior(have[annotations.StatusBehavior], *v.policy.verdict, v.policy.strategy, c.Clock.Now())
		}
		if v.intent.Token != "" {
			want[annotations.StatusTrigger] = v.intent.Token
		}
		if v.facts.Sleep && v.wakes != nil && (phase == hibernate.Hibernated || phase == hibernate.Hibernating) {
			want[annotations.StatusWakes] = v.wakes.UTC().Format(time.RFC3339)
		}
		if at := v.sleeps(known); at != nil {
			want[annotations.StatusSleeps] = at.UTC().Format(time.RFC3339)
		}
		return want
	})
	if err == nil && was != phase {
		c.reportPhase(cm, was, phase, message)
	}
	return err
}

// phaseOf is the phase as people see it.
func phaseOf(v view, d hibernate.Decision) (hibernate.Phase, string) {
	switch {
	case v.newer != "" && d.Phase == hibernate.Active:
		return hibernate.Invalid, v.newer
	case v.newer != "":
		d.Message += "; " + v.newer
	case len(v.faults) > 0 && len(v.facts.Records) == 0 && d.Phase != hibernate.InError:
		return hibernate.Invalid, v.faults[0].String()
	case len(v.faults) > 0 && len(v.facts.Records) == 0:
		d.Message += "; " + v.faults[0].String()
	case d.Phase == hibernate.Active && v.paused.On:
		return hibernate.Suspended, v.paused.Said()
	case d.Phase == hibernate.Active && v.want.By == hibernate.BySchedule && v.want.Level.Suspended:
		return hibernate.Suspended, v.why
	case d.Phase == hibernate.Active && d.Message == "" && v.unready != "":
		return hibernate.Active, "awake, and cannot fall asleep: " + v.unready
	case d.Phase == hibernate.Active && d.Message == "":
		return hibernate.Active, "awake: " + v.why
	case d.Phase == hibernate.Hibernated && v.unready != "":
		d.Message += "; " + v.unready
	case d.Phase == hibernate.WakingUp:
		d.Message += restoredata.WaitMessages(v.facts.Records)
	}
	if v.paused.On {
		return d.Phase, v.paused.Said() + "; " + d.Message
	}
	return d.Phase, cmp.Or(d.Message, v.why)
}

// targets are the targets' states. What was woken stands as Awake until the next sleep.
func (c *Controller) targets(k types.NamespacedName, standing []hibernate.TargetStatus, v view, d hibernate.Decision) []hibernate.TargetStatus {
	list := map[string]hibernate.TargetStatus{}
	for _, t := range standing {
		if !t.MaySleep() || v.facts.Blocked[t.Target] != "" || slices.Contains(v.facts.Missing, t.Target) || slices.Contains(d.Closed, t.Target) {
			list[t.Target] = t
		}
	}
	for _, r := range v.facts.Records {
		list[r.Target] = r.Status()
	}
	for _, s := range c.records.of(k) {
		if s.broken == nil {
			list[s.record.Target] = s.record.Status()
		}
	}
	var out []hibernate.TargetStatus
	for _, t := range v.facts.Spec.Targets {
		if one, there := list[t.Name]; there {
			out = append(out, one)
			delete(list, t.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if v.recorded(name) || slices.Contains(v.facts.Missing, name) || v.facts.Blocked[name] != "" {
			out = append(out, list[name])
		}
	}
	return transition.Targets(standing, out, c.Clock.Now())
}

func (v view) recorded(target string) bool {
	return slices.ContainsFunc(v.facts.Records, func(r hibernate.Record) bool { return r.Target == target })
}

// ownConditions are those that an agent gave this very plan: what a copy brought along is of another.
func (c *Controller) ownConditions(cm *corev1.ConfigMap, have map[string]string) string {
	text := have[annotations.StatusConditions]
	if status.IsCopied(text, cm.CreationTimestamp.Time, c.Clock.Ahead()) {
		return ""
	}
	return text
}

// conditions are Valid and Ready, as they stand on every document, and what else is to be known.
func conditions(have string, v view, phase hibernate.Phase, message string, now time.Time) string {
	valid := metav1.Condition{Type: "Valid", Status: metav1.ConditionTrue, Reason: "Understood", Message: "the plan is valid"}
	if len(v.faults) > 0 {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, "Invalid", document.Cut(v.faults.Error(), document.MaxMessage)
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: string(phase), Message: document.Cut(message, document.MaxMessage)}
	switch {
	case phase == hibernate.InError || phase == hibernate.Invalid:
		ready.Status = metav1.ConditionFalse
	case v.unready != "":
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "NotReady", document.Cut(v.unready, document.MaxMessage)
	}
	all := []metav1.Condition{valid, ready}
	if v.paused.On { // whatever it does: those who may not read the pauses above it go by that
		all = append(all, metav1.Condition{Type: policy.ChangesPaused, Status: metav1.ConditionTrue, Reason: policy.ReasonPaused, Message: document.Cut(v.paused.Said(), document.MaxMessage)})
	}
	if v.doubt != "" {
		all = append(all, status.ClockDoubt(v.doubt))
	}
	if faults := v.misunderstood(); len(faults) > 0 {
		all = append(all, metav1.Condition{Type: "IntentUnderstood", Status: metav1.ConditionFalse, Reason: "NotUnderstood", Message: document.Cut(faults.Error(), document.MaxMessage)})
	}
	return status.Conditions(have, all, now)
}

// misunderstood is what of people's intents was not understood; options of a trigger are for plans.
func (v view) misunderstood() document.Faults {
	return slices.DeleteFunc(slices.Clone(v.intent.Faults), func(f document.Fault) bool { return f.Path == annotations.TriggerOptions })
}

// reportPhase has an Event say what became of a plan.
func (c *Controller) reportPhase(cm *corev1.ConfigMap, was, is hibernate.Phase, message string) {
	kind := corev1.EventTypeNormal
	if is == hibernate.InError || is == hibernate.Invalid {
		kind = corev1.EventTypeWarning
	}
	if was == "" && is == hibernate.Active {
		return
	}
	c.Telemetry.Events.Event(cm, kind, map[hibernate.Phase]string{
		hibernate.Active: "Awake", hibernate.Hibernating: "FallsAsleep", hibernate.Hibernated: "Hibernated", hibernate.WakingUp: "WakesUp",
		hibernate.Suspended: "Suspended", hibernate.InError: "HibernationFailed", hibernate.Invalid: "Invalid",
	}[is], document.Cut(message, document.MaxMessage))
	c.Telemetry.Log.Info("hibernation", "plan", cm.Namespace+"/"+cm.Name, "phase", string(is), "why", message)
}

// reportChange has an Event say what became of a target that failed, and of what is left alone.
func (c *Controller) reportChange(k types.NamespacedName, was, is hibernate.Record) {
	cm := c.Stores.Documents.Any(k)
	c.Telemetry.Log.Info("hibernation target", "plan", k.String(), "target", is.Target, "operation", string(is.Operation), "state", string(is.State), "attempts", is.Attempts, "why", is.Message)
	if cm == nil {
		return
	}
	if is.Attempts > was.Attempts {
		c.Telemetry.Events.Eventf(cm, corev1.EventTypeWarning, "TargetFailed", "%s of target %s failed (attempt %d): %s", is.Operation, is.Target, is.Attempts, is.Message)
	}
	if why := restoredata.UnreadableMessage(is); why != "" && restoredata.UnreadableMessage(was) == "" {
		c.Telemetry.Events.Event(cm, corev1.EventTypeWarning, "TargetFailed", why)
	}
	for i, res := range is.Resources {
		left := i < len(was.Resources) && was.Resources[i].Left != ""
		switch {
		case res.Left != "" && !left:
			c.Telemetry.Events.Eventf(cm, corev1.EventTypeWarning, "ResourceLeft", "%s of target %s is left alone until the next sleep: %s", res.ID, is.Target, res.Left)
		case res.Left == "" && left && res.RestoredAt == nil && res.ID == was.Resources[i].ID:
			c.Telemetry.Events.Eventf(cm, corev1.EventTypeNormal, "ResourceBack", "%s of target %s is as the sleep left it again: it wakes with the others", res.ID, is.Target)
		}
	}
}

// rehearse says what would happen, resource by resource, and touches nothing.
func (c *Controller) rehearse(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *cachedPlan, v view) (time.Time, error) {
	if cm == nil {
		return time.Time{}, nil
	}
	d := c.rehearsal(ctx, k, v)
	err := c.publish(ctx, k, cm, known, v, d)
	return queue.Soonest(v.again, c.Clock.Now().Add(sleepPause)), errors.Join(err, c.record(ctx, k, cm, known, v, d))
}

// rehearsal is what would be decided. What slept before the agent began to rehearse sleeps on.
func (c *Controller) rehearsal(ctx context.Context, k types.NamespacedName, v view) hibernate.Decision {
	d := hibernate.Decision{Phase: hibernate.Active}
	switch decided := hibernate.Decide(v.facts); {
	case len(v.facts.Records)+len(v.facts.Blocked)+len(v.facts.Missing) > 0:
		d.Phase, d.Message = decided.Phase, decided.Message
	case !v.facts.Sleep:
		d.Message = "it would be awake: " + v.why
	case v.facts.Forbidden != "":
		d.Message = "it would not fall asleep: " + v.facts.Forbidden
	default:
		d.Message = "it would put to sleep " + c.list(ctx, k, v)
	}
	d.Message = "dry run: " + d.Message
	return d
}

// list names what the targets of a plan select, and what is wrong with them.
func (c *Controller) list(ctx context.Context, k types.NamespacedName, v view) string {
	var out []string
	for _, t := range v.facts.Spec.Targets {
		r := hibernate.Record{Plan: k.Name, Target: t.Name, Executor: t.Type, Operation: hibernate.Shutdown, Snapshot: hibernate.Snapshot{Spec: v.facts.Spec}}
		out = append(out, t.Name+": "+c.selected(ctx, k, r, t))
	}
	return strings.Join(out, "; ")
}

func (c *Controller) selected(ctx context.Context, k types.NamespacedName, r hibernate.Record, t hibernate.Target) string {
	sleeper, known := c.Executors.Sleepers[t.Type]
	if !known {
		return "there is no executor of type " + t.Type
	}
	call, failure, err := c.call(ctx, k, &r, t)
	if err != nil || failure != "" {
		return cmp.Or(failure, fmt.Sprint(err))
	}
	seen, err := sleeper.Observe(executors.WithNamespace(ctx, k.Namespace), call)
	if err != nil {
		return said(call, err.Error(), err)
	}
	var ids []string
	for _, d := range r.ToSleep(seen, c.Clock.Now()).Due {
		ids = append(ids, d.ID)
	}
	if len(ids) == 0 {
		return "nothing"
	}
	return strings.Join(ids, ", ")
}
