package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// publish writes a plan's status where it differs from what stands there.
func (a *Agent) publish(ctx context.Context, cm *corev1.ConfigMap, known *store.CachedPlan, f trigger.Facts, d trigger.Decision) error {
	live := a.runs.OfPlan(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	news, err := a.status.Write(ctx, cm, &known.Written, func(have map[string]string) map[string]string {
		want := a.planStatus(have, known, f, d)
		want[annotations.StatusRuns] = store.FormatRuns(live)
		return want
	})
	a.record(live, err)
	if news {
		a.tellPlan(cm, known, f, d)
	}
	return err
}

func (a *Agent) planStatus(have map[string]string, known *store.CachedPlan, f trigger.Facts, d trigger.Decision) map[string]string {
	want := map[string]string{
		annotations.StatusPhase:    string(d.Phase),
		annotations.StatusMessage:  document.Cut(a.message(f, d), document.MaxMessage),
		annotations.StatusObserved: known.Observed,
		annotations.StatusNextRun:  nextRun(d),
	}
	if n := len(d.Ledger.Tokens); n > 0 {
		want[annotations.StatusTrigger] = d.Ledger.Tokens[n-1]
	}
	want[annotations.StatusBehavior] = have[annotations.StatusBehavior]
	switch {
	case d.Window != nil:
		want[annotations.StatusBehavior] = status.Behavior(have[annotations.StatusBehavior], *d.Window, a.gates.Strategy(known.Gate.Question, f.Now), f.Now)
	case f.Gate == nil:
		want[annotations.StatusBehavior] = ""
	}
	a.lastRun(want, f, d)
	want[annotations.StatusMirrored] = known.Mirror.Digest
	want[annotations.StatusWatching] = a.rules.Watching(types.NamespacedName{Namespace: f.Namespace, Name: f.Name})
	want[annotations.StatusConditions] = status.Conditions(have[annotations.StatusConditions], a.conditions(known, f, d), f.Now)
	return want
}

// message adds to the decision's sentence what nobody may overlook.
func (a *Agent) message(f trigger.Facts, d trigger.Decision) string {
	if left := d.Ledger.LeftMessage(); left != "" {
		d.Message = "not put back by " + left + "; " + d.Message
	}
	if stuck := a.runs.StuckOf(types.NamespacedName{Namespace: f.Namespace, Name: f.Name}); stuck != "" {
		d.Message = stuck + "; " + d.Message
	}
	if len(f.Faults) > 1 {
		return fmt.Sprintf("%s (and %d more: kubectl maint lint)", d.Message, len(f.Faults)-1)
	}
	if len(f.Intent.Faults) > 0 {
		return d.Message + "; " + f.Intent.Faults[0].String()
	}
	return d.Message
}

func nextRun(d trigger.Decision) string {
	if d.Next == nil {
		return ""
	}
	return d.Next.At.UTC().Format(time.RFC3339)
}

func (a *Agent) lastRun(want map[string]string, f trigger.Facts, d trigger.Decision) {
	if last := d.Ledger.Last; last != nil {
		want[annotations.StatusLastRunName], want[annotations.StatusLastResult] = last.Name, string(last.Phase)
		want[annotations.StatusLastRun] = status.Instant(last.StartedAt)
		want[annotations.StatusLastSuccess] = status.Instant(last.SuccessAt)
	}
	for _, l := range f.Live {
		if l.Phase == run.Running {
			want[annotations.StatusLastRunName], want[annotations.StatusLastResult] = l.Name, string(l.Phase)
			want[annotations.StatusLastRun] = status.Instant(l.StartedAt)
		}
	}
}

// tellPlan sends an Event when a plan's phase became another.
func (a *Agent) tellPlan(cm *corev1.ConfigMap, known *store.CachedPlan, f trigger.Facts, d trigger.Decision) {
	was := known.Phase
	known.Phase = d.Phase
	if d.Phase == trigger.PhaseInvalid && was != d.Phase {
		a.events.Event(cm, corev1.EventTypeWarning, "PlanInvalid", document.Cut(f.Faults.Error(), document.MaxMessage))
	}
	if len(d.Returned) > 0 {
		a.events.Eventf(cm, corev1.EventTypeWarning, "TriggerLabelReturns", "The label %s came back from the tool that applies it; no run was started", d.Returned[0])
	}
}

// tellEnds sends an Event for slots that ended without a run just now.
func (a *Agent) tellEnds(cm *corev1.ConfigMap, was *ledger.Ledger, now ledger.Ledger) {
	if was == nil || len(now.Recent) == 0 {
		return
	}
	e := now.Recent[len(now.Recent)-1]
	if e.Slot == nil || e.Run != "" && e.Reason != run.ReasonRefused { // what had a run tells of itself
		return
	}
	if n := now.Totals[run.Missed] - was.Totals[run.Missed]; n > 0 {
		a.events.Eventf(cm, corev1.EventTypeWarning, "SlotMissed", "%d slot(s) missed up to %s: %s", n, status.Instant(e.Slot), e.Reason)
		a.herald.SlotMissed(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}, n, e)
	}
	if n := now.Totals[run.Skipped] - was.Totals[run.Skipped]; n > 0 {
		a.events.Eventf(cm, corev1.EventTypeNormal, "SlotSkipped", "%d slot(s) skipped up to %s: %s", n, status.Instant(e.Slot), e.Reason)
	}
}

// consume removes the intents that are used up: skips that met their slots and
// a retry that was taken up or means nothing.
func (a *Agent) consume(ctx context.Context, cm *corev1.ConfigMap, f trigger.Facts, d trigger.Decision) error {
	gone := map[string]string{}
	left := ""
	if d.Skip != nil {
		left = annotations.FormatSkip(*d.Skip)
		gone[annotations.Skip] = cm.Annotations[annotations.Skip]
	}
	if trigger.RetryHandled(d.Ledger, f.Intent.Retry) && len(f.Faults) == 0 {
		gone[annotations.Retry] = cm.Annotations[annotations.Retry]
	}
	for in, ask := range map[string]intent.RunRef{annotations.Abort: f.Intent.Abort, annotations.Resume: f.Intent.Resume, annotations.Approve: f.Intent.Approve, annotations.Reject: f.Intent.Reject} {
		if ask.Run != "" && !lives(f, d, ask.Run) {
			gone[in] = cm.Annotations[in]
			if in == annotations.Resume && f.Ledger != nil && f.Ledger.LeftBy(ask.Run, f.ResumeSeen) {
				a.events.Eventf(cm, corev1.EventTypeNormal, "LeftoversAcknowledged", "What run %s did not put back is known: %s", ask.Run, f.Intent.Actors["resume"].Said("acknowledged"))
				continue
			}
			a.events.Eventf(cm, corev1.EventTypeWarning, "IntentIgnored", "%s: %s counts for nothing: no such run lives", in, document.Cut(gone[in], 200))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return a.status.RemoveIntents(ctx, cm, gone, left)
}

// lives says whether a run is there or is going to be.
func lives(f trigger.Facts, d trigger.Decision, run string) bool {
	_, open := d.Ledger.OpenEntry(run)
	return open || slices.ContainsFunc(f.Live, func(l trigger.ActiveRun) bool { return l.Name == run })
}

// tell takes away the intents that a run's journal just took up. A resume that
// came while nothing waited for it counts for nothing, and that is said. asked is
// the plan as it was when it was looked at: what came since is for the next look.
func (a *Agent) tell(ctx context.Context, l *store.CachedRun, asked *corev1.ConfigMap, sig workflow.Signals) error {
	cm := asked
	if cm == nil {
		return nil
	}
	in, gone := annotations.Intent(cm.Annotations), map[string]string{}
	if in.Abort.For(l.Run.Name) {
		gone[annotations.Abort] = cm.Annotations[annotations.Abort]
	}
	if in.Resume.For(l.Run.Name) {
		gone[annotations.Resume] = cm.Annotations[annotations.Resume]
		if sig.Resume == nil {
			a.events.Eventf(cm, corev1.EventTypeWarning, "ResumeIgnored", "Run %s was not suspended when it was asked to resume", l.Run.Name)
		}
	}
	for key, ask := range map[string]intent.RunRef{annotations.Approve: in.Approve, annotations.Reject: in.Reject} {
		if !ask.For(l.Run.Name) {
			continue
		}
		gone[key] = cm.Annotations[key]
		if !heeded(l.Journal, ask) {
			a.events.Eventf(cm, corev1.EventTypeWarning, "AnswerIgnored", "%s: %s counts for nothing: nobody waits for it", key, cm.Annotations[key])
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return a.status.RemoveHandled(ctx, cm, gone)
}

// heeded says whether an approval or a rejection was taken up.
func heeded(j run.Journal, ask intent.RunRef) bool {
	if ask.Step == "" {
		return j.Approved != nil || j.End != nil && j.End.Reason == run.ReasonRejected
	}
	return slices.ContainsFunc(j.Steps, func(r run.Record) bool {
		return r.Approval != nil && (r.Path == ask.Step || strings.HasSuffix(r.Path, "/"+ask.Step))
	})
}

// tellQuestions sends an Event for each step that began to ask a person.
func (a *Agent) tellQuestions(l *store.CachedRun, was, is run.Journal) {
	for _, rec := range is.Steps {
		before := was.Record(rec.Path)
		if rec.Type == plan.TypeApproval && rec.Phase == run.StepRunning && rec.Message != "" && (before == nil || before.Message == "") {
			a.tellAsks(l, rec.Message)
		}
	}
}

// tellAsks sends the Event of a run that asks a person.
func (a *Agent) tellAsks(l *store.CachedRun, message string) {
	if cm := a.docs.Plan(l.PlanKey()); cm != nil {
		a.events.Eventf(cm, corev1.EventTypeNormal, "ApprovalNeeded", "Run %s %s", l.Run.Name, message)
	}
}

// aboutRun is what Events of a run are about: its plan, as long as that is there.
func (a *Agent) aboutRun(l *store.CachedRun) *corev1.ConfigMap {
	if cm := a.docs.Plan(l.PlanKey()); cm != nil {
		return cm
	}
	return l.Object
}

// tellEnd sends the Event of a run's end.
func (a *Agent) tellEnd(l *store.CachedRun, j run.Journal) {
	kind := corev1.EventTypeNormal
	if j.Phase == run.Failed || j.NotPutBack() > 0 {
		kind = corev1.EventTypeWarning
	}
	a.tellLeft(l, j)
	a.events.Eventf(a.aboutRun(l), kind, "Run"+string(j.Phase), "Run %s (%s): %s", l.Run.Name, l.Run.Request.Why(), document.Cut(j.Message, 512))
	a.log.Info("run ended", "plan", l.PlanKey().String(), "run", l.Run.Name, "phase", string(j.Phase), "reason", l.Run.Request.Why(), "message", j.Message)
	a.herald.RunEnded(l.PlanKey(), l.Run, j)
}

// tellLeft sends an Event for what a run did not put back, for the first of many.
func (a *Agent) tellLeft(l *store.CachedRun, j run.Journal) {
	const most = 5 // a guess: the run names all of them
	told := 0
	for _, rec := range j.Steps {
		if rec.Restored != run.RestoreFailed || told == most {
			continue
		}
		told++
		a.events.Eventf(a.aboutRun(l), corev1.EventTypeWarning, "NotPutBack", "Run %s, step %s: %s", l.Run.Name, rec.Path, document.Cut(rec.RestoreMessage, 512))
	}
}

// changeConditions say whether a gated plan may change something, and whether it
// wants to.
func changeConditions(f trigger.Facts, d trigger.Decision) []metav1.Condition {
	if d.Window == nil {
		return nil
	}
	paused := metav1.Condition{Type: policy.ChangesPaused, Status: metav1.ConditionTrue, Reason: "Restrictive", Message: document.Cut(d.Window.Reason, document.MaxMessage)}
	switch {
	case d.Phase == trigger.PhasePaused:
		paused.Reason, paused.Message = "Paused", d.Message
	case d.Window.Permitted:
		paused.Status, paused.Reason = metav1.ConditionFalse, "Permissive"
	}
	pending := metav1.Condition{Type: "ChangesPending", Status: metav1.ConditionFalse, Reason: "Nothing", Message: "no run waits"}
	if d.Waiting != "" {
		pending.Status, pending.Reason, pending.Message = metav1.ConditionTrue, "Waits", document.Cut(d.Waiting, document.MaxMessage)
	}
	for _, l := range f.Live {
		if l.Held || l.Phase == run.Pending && l.Waiting != "" && l.Waiting != run.WaitJitter {
			pending.Status, pending.Reason, pending.Message = metav1.ConditionTrue, "RunWaits", document.Cut("run "+l.Name+": "+l.Message, document.MaxMessage)
		}
	}
	return []metav1.Condition{paused, pending}
}

func (a *Agent) conditions(known *store.CachedPlan, f trigger.Facts, d trigger.Decision) []metav1.Condition {
	valid := metav1.Condition{Type: "Valid", Status: metav1.ConditionTrue, Reason: "Understood", Message: "the plan is valid"}
	if len(f.Faults) > 0 {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, "Faults", document.Cut(f.Faults.Error(), 4*document.MaxMessage)
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", Message: "a run can start"}
	switch {
	case len(f.Faults) > 0:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Invalid", "the plan is not valid"
	case !d.Ready.OK:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "NotReady", d.Ready.Message
	case f.Unwatched != "":
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "NotWatching", document.Cut(f.Unwatched, document.MaxMessage)
	}
	out := append([]metav1.Condition{valid, ready}, changeConditions(f, d)...)
	out = append(out, mirrorCondition(known)...)
	if d.Refused != "" {
		out = append(out, metav1.Condition{Type: "RunRefused", Status: metav1.ConditionTrue, Reason: "NotTaken", Message: document.Cut(d.Refused, document.MaxMessage)})
	}
	if stuck := a.runs.StuckOf(types.NamespacedName{Namespace: f.Namespace, Name: f.Name}); stuck != "" {
		out = append(out, metav1.Condition{Type: "RunStuck", Status: metav1.ConditionTrue, Reason: "NotWritten", Message: document.Cut(stuck, document.MaxMessage)})
	}
	for _, l := range f.Live {
		if l.Stays != "" {
			out = append(out, metav1.Condition{Type: "TriggerLabelStays", Status: metav1.ConditionTrue, Reason: "Refused", Message: document.Cut("run "+l.Name+" cannot end: "+l.Stays, document.MaxMessage)})
			break
		}
	}
	if left := d.Ledger.LeftMessage(); left != "" {
		out = append(out, metav1.Condition{Type: "Restored", Status: metav1.ConditionFalse, Reason: "NotPutBack", Message: document.Cut(left, document.MaxMessage)})
	}
	if f.ClockDoubt != "" {
		out = append(out, metav1.Condition{Type: "ClockDoubt", Status: metav1.ConditionTrue, Reason: "ClocksDiffer", Message: f.ClockDoubt})
	}
	if len(f.Intent.Faults) > 0 {
		out = append(out, metav1.Condition{Type: "IntentUnderstood", Status: metav1.ConditionFalse, Reason: "NotUnderstood", Message: f.Intent.Faults.Error()})
	}
	if len(d.Returned) > 0 {
		out = append(out, metav1.Condition{
			Type: "TriggerLabelReturns", Status: metav1.ConditionTrue, Reason: "AppliedAgain",
			Message: fmt.Sprintf("the label %s came back with the same value from the tool that applies it; that is no request: take it out of its source, or change its value", d.Returned[0]),
		})
	}
	return out
}
