package plans

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// publish writes a plan's status where it differs from what stands there.
func (c *Controller) publish(ctx context.Context, cm *corev1.ConfigMap, known *store.CachedPlan, f trigger.Facts, d trigger.Decision) error {
	live := c.Stores.Runs.OfPlan(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	news, err := c.Status.Write(ctx, cm, &known.Written, func(have map[string]string) map[string]string {
		want := c.planStatus(have, known, f, d)
		want[annotations.StatusRuns] = store.FormatRuns(live)
		return want
	})
	c.letRunsAct(live, err)
	if news {
		c.recordPhase(cm, known, f, d)
	}
	return err
}

func (c *Controller) planStatus(have map[string]string, known *store.CachedPlan, f trigger.Facts, d trigger.Decision) map[string]string {
	want := map[string]string{
		annotations.StatusPhase:    string(d.Status.Phase),
		annotations.StatusMessage:  document.Cut(c.message(f, d), document.MaxMessage),
		annotations.StatusObserved: known.Observed,
		annotations.StatusNextRun:  nextRun(d),
	}
	if want[annotations.StatusTrigger] = trigger.HandledToken(d.Ledger, f.Plan.Intent.Token); f.State.Ledger == nil && !d.Changed {
		want[annotations.StatusTrigger] = have[annotations.StatusTrigger] // while there is no ledger, it alone knows
	}
	want[annotations.StatusBehavior] = have[annotations.StatusBehavior]
	switch {
	case d.Status.Window != nil:
		want[annotations.StatusBehavior] = status.Behavior(have[annotations.StatusBehavior], *d.Status.Window, c.Stores.Gates.Strategy(known.Gate.Query, f.Now), f.Now)
	case f.Gate == nil:
		want[annotations.StatusBehavior] = ""
	}
	c.lastRun(want, f, d)
	want[annotations.StatusMirrored] = known.Mirror.Digest
	want[annotations.StatusWatching] = c.Watches.Rules.Watching(types.NamespacedName{Namespace: f.Plan.Namespace, Name: f.Plan.Name})
	want[annotations.StatusConditions] = status.Conditions(have[annotations.StatusConditions], c.conditions(known, f, d), f.Now)
	return want
}

// message adds to the decision's sentence what nobody may overlook.
func (c *Controller) message(f trigger.Facts, d trigger.Decision) string {
	if left := d.Ledger.LeftMessage(f.Plan.Namespace); left != "" {
		d.Status.Message = left + "; " + d.Status.Message
	}
	if stuck := c.Stores.Runs.StuckOf(types.NamespacedName{Namespace: f.Plan.Namespace, Name: f.Plan.Name}); stuck != "" {
		d.Status.Message = stuck + "; " + d.Status.Message
	}
	if len(f.Plan.Faults) > 1 {
		// lint does not know what only the agent sees: templates, connectors, its configuration
		return fmt.Sprintf("%s (and %d more: %s)", d.Status.Message, len(f.Plan.Faults)-1, intent.Command(f.Plan.Namespace, "describe", f.Plan.Name))
	}
	if len(f.Plan.Intent.Faults) > 0 {
		return d.Status.Message + "; " + f.Plan.Intent.Faults[0].String()
	}
	return d.Status.Message
}

func nextRun(d trigger.Decision) string {
	if d.Status.Next == nil {
		return ""
	}
	return d.Status.Next.At.UTC().Format(time.RFC3339)
}

func (c *Controller) lastRun(want map[string]string, f trigger.Facts, d trigger.Decision) {
	if last := d.Ledger.Last; last != nil {
		want[annotations.StatusLastRunName], want[annotations.StatusLastResult] = last.Name, string(last.Phase)
		want[annotations.StatusLastRun] = status.Instant(last.StartedAt)
		want[annotations.StatusLastSuccess] = status.Instant(last.SuccessAt)
	}
	for _, l := range f.Live {
		if l.Phase == run.Running && !l.Request.DryRun {
			want[annotations.StatusLastRunName], want[annotations.StatusLastResult] = l.Name, string(l.Phase)
			want[annotations.StatusLastRun] = status.Instant(l.StartedAt)
		}
	}
}

// slotWords are a slot in its zone and in UTC, once where these are the same.
func slotWords(wall, zone, utc string) string {
	if wall == utc {
		return wall + " " + zone
	}
	return fmt.Sprintf("%s %s (%s)", wall, zone, utc)
}

// notifyAhead tells sinks of a slot that comes, and returns when it is to be told.
func (c *Controller) notifyAhead(ctx context.Context, cm *corev1.ConfigMap, known *store.CachedPlan, f trigger.Facts, d trigger.Decision) time.Time {
	k := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
	coming := notify.Upcoming{
		About: k, What: "runs", Announced: status.AnnouncedAhead(cm, &known.Written),
		Claim: func(told string) error {
			return c.Status.Claim(ctx, cm, &known.Written, annotations.StatusToldAhead, told)
		},
	}
	sayComing(&coming, f, d)
	return c.Telemetry.Notify.Ahead("Plan", coming)
}

// sayComing fills in when the next slot of a plan is and what is to be said of it; nothing where none comes
// that would change anything.
func sayComing(coming *notify.Upcoming, f trigger.Facts, d trigger.Decision) {
	next := d.Status.Next
	if next == nil || f.Plan.Spec.DryRun || d.Status.Phase == trigger.PhasePaused {
		return
	}
	coming.At, coming.Words = next.At, "Its slot is at "+slotWords(next.Wall, next.Zone, status.Instant(&next.At))
	ready := d.Status.Ready
	if f.Gate != nil && !ready.ByPolicy { // else that it is not ready says it
		starts := trigger.StartsAt(f.Plan.Spec, f.Plan.Namespace, f.Plan.Name, next.At, next.Index)
		if v := f.Gate.Verdict(starts); !v.Permitted {
			coming.Words += "; change is not permitted then (" + v.Reason + "): it waits for that, and its slot is missed after its start deadline"
		}
	}
	if !ready.OK {
		coming.CannotBegin("has its slot", ready.Message)
	}
}

// recordPhase sends an Event when a plan's phase became another.
func (c *Controller) recordPhase(cm *corev1.ConfigMap, known *store.CachedPlan, f trigger.Facts, d trigger.Decision) {
	was := known.Phase
	known.Phase = d.Status.Phase
	if d.Status.Phase == trigger.PhaseInvalid && was != d.Status.Phase {
		c.Telemetry.Events.Event(cm, corev1.EventTypeWarning, "PlanInvalid", document.Cut(f.Plan.Faults.Error(), document.MaxMessage))
	}
	if len(d.Returned) > 0 {
		c.Telemetry.Events.Eventf(cm, corev1.EventTypeWarning, "TriggerLabelReturns", "The label %s came back from the tool that applies it; no run was started", d.Returned[0])
	}
}

// recordEnds counts the slots that ended without a run just now, and sends Events for them.
func (c *Controller) recordEnds(cm *corev1.ConfigMap, was *ledger.Ledger, now ledger.Ledger) {
	ended := now.EndedSince(was)
	c.Telemetry.Metrics.SlotsEnded(ended)
	if was == nil {
		return
	}
	for _, e := range ended {
		switch {
		case e.Slot == nil || e.Run != "" && e.Reason != run.ReasonRefused: // what had a run tells of itself
		case e.Result == run.Missed:
			c.Telemetry.Events.Eventf(cm, corev1.EventTypeWarning, "SlotMissed", "%d slot(s) missed up to %s: %s", e.Count, status.Instant(e.Slot), e.Why())
			c.Telemetry.Notify.SlotMissed(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}, e)
		case e.Result == run.Skipped:
			c.Telemetry.Events.Eventf(cm, corev1.EventTypeNormal, "SlotSkipped", "%d slot(s) skipped up to %s: %s", e.Count, status.Instant(e.Slot), e.Why())
		}
	}
}

// consume removes the intents that are used up: skips that met their slots and
// a retry that was taken up or means nothing.
func (c *Controller) consume(ctx context.Context, cm *corev1.ConfigMap, f trigger.Facts, d trigger.Decision) error {
	gone := map[string]string{}
	left := ""
	if d.Skip != nil {
		left = annotations.FormatSkip(*d.Skip)
		gone[annotations.Skip] = cm.Annotations[annotations.Skip]
	}
	if trigger.RetryHandled(d.Ledger, f.Plan.Intent.Retry) && len(f.Plan.Faults) == 0 {
		gone[annotations.Retry] = cm.Annotations[annotations.Retry]
		if f.Plan.Intent.Retry.Step != "" {
			c.Telemetry.Events.Eventf(cm, corev1.EventTypeWarning, "IntentIgnored", "%s: %s is ignored: a run is tried again as a whole, not one of its steps", annotations.Retry, document.Cut(gone[annotations.Retry], 200))
		}
	}
	for in, ask := range map[string]intent.RunRef{annotations.Abort: f.Plan.Intent.Abort, annotations.Resume: f.Plan.Intent.Resume, annotations.Approve: f.Plan.Intent.Approve, annotations.Reject: f.Plan.Intent.Reject} {
		if ask.Run != "" && !lives(f, d, ask.Run) {
			gone[in] = cm.Annotations[in]
			if in == annotations.Resume && f.State.Ledger != nil && f.State.Ledger.LeftBy(ask.Run, ask.Step, f.State.ResumeSeen) {
				c.Telemetry.Events.Eventf(cm, corev1.EventTypeNormal, "LeftoversAcknowledged", "Somebody knows what %s did not put back: %s", ask.Said(), f.Plan.Intent.Actors["resume"].Said("acknowledged"))
				continue
			}
			c.Telemetry.Events.Eventf(cm, corev1.EventTypeWarning, "IntentIgnored", "%s: %s is ignored: there is no such active run", in, document.Cut(gone[in], 200))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return c.Status.RemoveIntents(ctx, cm, gone, left)
}

// lives says whether a run is there or is going to be.
func lives(f trigger.Facts, d trigger.Decision, run string) bool {
	_, open := d.Ledger.OpenEntry(run)
	return open || slices.ContainsFunc(f.Live, func(l trigger.ActiveRun) bool { return l.Name == run })
}

// changeConditions say whether a gated plan may change something, and whether it
// wants to; and of every plan whether it is paused, whatever its run is at: those who may
// not read the pauses above it go by that.
func changeConditions(f trigger.Facts, d trigger.Decision) []metav1.Condition {
	paused := metav1.Condition{Type: policy.ChangesPaused, Status: metav1.ConditionTrue, Reason: policy.ReasonPaused, Message: document.Cut(d.Status.Paused, document.MaxMessage)}
	switch v := d.Status.Window; {
	case v == nil && d.Status.Paused == "":
		return nil
	case v == nil:
		return []metav1.Condition{paused}
	case d.Status.Paused != "":
	case v.Permitted:
		paused.Status, paused.Reason, paused.Message = metav1.ConditionFalse, "Permissive", document.Cut(v.Reason, document.MaxMessage)
	default:
		paused.Reason, paused.Message = "Restrictive", document.Cut(v.Reason, document.MaxMessage)
	}
	pending := metav1.Condition{Type: "ChangesPending", Status: metav1.ConditionFalse, Reason: "Nothing", Message: "no run waits"}
	if d.Status.Waiting != "" {
		pending.Status, pending.Reason, pending.Message = metav1.ConditionTrue, "Waits", document.Cut(d.Status.Waiting, document.MaxMessage)
	}
	for _, l := range f.Live {
		if l.Held || l.Phase == run.Pending && l.Waiting != "" && l.Waiting != run.WaitJitter {
			pending.Status, pending.Reason, pending.Message = metav1.ConditionTrue, "RunWaits", document.Cut("run "+l.Name+": "+l.Message, document.MaxMessage)
		}
	}
	return []metav1.Condition{paused, pending}
}

func (c *Controller) conditions(known *store.CachedPlan, f trigger.Facts, d trigger.Decision) []metav1.Condition {
	valid := metav1.Condition{Type: "Valid", Status: metav1.ConditionTrue, Reason: "Understood", Message: "the plan is valid"}
	if len(f.Plan.Faults) > 0 {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, "Faults", document.Cut(f.Plan.Faults.Error(), 4*document.MaxMessage)
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", Message: "a run can start"}
	switch {
	case len(f.Plan.Faults) > 0:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Invalid", "the plan is not valid"
	case !d.Status.Ready.OK:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "NotReady", d.Status.Ready.Message
	case f.Unwatched != "":
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "NotWatching", document.Cut(f.Unwatched, document.MaxMessage)
	}
	out := append([]metav1.Condition{valid, ready}, changeConditions(f, d)...)
	out = append(out, mirrorCondition(known)...)
	if d.Status.Refused != "" {
		out = append(out, metav1.Condition{Type: "RunRefused", Status: metav1.ConditionTrue, Reason: "NotTaken", Message: document.Cut(d.Status.Refused, document.MaxMessage)})
	}
	if why := c.Stores.Runs.StuckOf(types.NamespacedName{Namespace: f.Plan.Namespace, Name: f.Plan.Name}); why != "" { // it has its own bound
		out = append(out, metav1.Condition{Type: "RunStuck", Status: metav1.ConditionTrue, Reason: "NotWritten", Message: why})
	}
	for _, l := range f.Live {
		if l.Stays != "" {
			out = append(out, metav1.Condition{Type: "TriggerLabelStays", Status: metav1.ConditionTrue, Reason: "Refused", Message: document.Cut("run "+l.Name+" cannot end: "+l.Stays, document.MaxMessage)})
			break
		}
	}
	if left := d.Ledger.LeftMessage(f.Plan.Namespace); left != "" {
		out = append(out, metav1.Condition{Type: "Restored", Status: metav1.ConditionFalse, Reason: "NotPutBack", Message: document.Cut(left, document.MaxMessage)})
	}
	if f.ClockDoubt != "" {
		out = append(out, status.ClockDoubt(f.ClockDoubt))
	}
	if other := c.Stores.Plans.SharesTarget(types.NamespacedName{Namespace: f.Plan.Namespace, Name: f.Plan.Name}); other != "" {
		out = append(out, metav1.Condition{
			Type: "SharedTarget", Status: metav1.ConditionTrue, Reason: "AnotherPlan",
			Message: fmt.Sprintf("%s is also the target of plan %s: runs that may change it work one at a time", known.Spec.TargetSaid(), other),
		})
	}
	if len(f.Plan.Intent.Faults) > 0 {
		out = append(out, metav1.Condition{Type: "IntentUnderstood", Status: metav1.ConditionFalse, Reason: "NotUnderstood", Message: f.Plan.Intent.Faults.Error()})
	}
	if len(d.Returned) > 0 {
		out = append(out, metav1.Condition{
			Type: "TriggerLabelReturns", Status: metav1.ConditionTrue, Reason: "AppliedAgain",
			Message: fmt.Sprintf("the label %s came back with the same value from the tool that applies it; that is no request: take it out of its source, or change its value", d.Returned[0]),
		})
	}
	return out
}
