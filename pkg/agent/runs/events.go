package runs

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/answers"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// consumeAnswers takes away the intents that a run's journal just took up. What came while nothing
// waited for it counts for nothing, and that is said by whoever takes it away: a cache that is behind
// still shows what was taken up and is gone. asked is the plan as it was when it was looked at: what
// came since is for the next look.
func (c *Controller) consumeAnswers(ctx context.Context, l *store.CachedRun, asked *corev1.ConfigMap, sig workflow.Signals) error {
	cm := asked
	if cm == nil {
		return nil
	}
	in, gone := annotations.Intent(cm.Annotations), map[string]string{}
	for key, ask := range map[string]intent.RunRef{annotations.Abort: in.Abort, annotations.Resume: in.Resume, annotations.Approve: in.Approve, annotations.Reject: in.Reject} {
		if ask.For(l.Run.Name) {
			gone[key] = cm.Annotations[key]
		}
	}
	if len(gone) == 0 {
		return nil
	}
	since, err := c.Status.RemoveHandled(ctx, cm, gone)
	if err != nil {
		c.memory.answered.NoteRemaining(cm, gone)
		return err
	}
	c.memory.answered.Note(cm.UID, since, gone)
	if said := gone[annotations.Resume]; said != "" && sig.Resume == nil && !answers.Resumed(l.Journal, in.Resume, in.Actors["resume"]) {
		c.Telemetry.Events.Eventf(cm, corev1.EventTypeWarning, "ResumeIgnored", "Run %s was not suspended when it was asked to resume", document.Cut(said, 512))
	}
	for key, ask := range map[string]intent.RunRef{annotations.Approve: in.Approve, annotations.Reject: in.Reject} {
		if said := gone[key]; said != "" && !answers.Given(l.Journal, ask) {
			c.Telemetry.Events.Eventf(cm, corev1.EventTypeWarning, "AnswerIgnored", "%s: %s is ignored: nothing waits for that answer", key, said)
		}
	}
	return nil
}

// recordQuestions sends an Event for each step that began to ask a person.
func (c *Controller) recordQuestions(l *store.CachedRun, was, is run.Journal) {
	for _, rec := range is.Steps {
		before := was.Record(rec.Path)
		if rec.Type == plan.TypeApproval && rec.Phase == run.StepRunning && rec.Message != "" && (before == nil || before.Message == "") {
			c.recordQuestion(l, rec.Message)
		}
	}
}

// recordQuestion sends the Event of a run that asks a person.
func (c *Controller) recordQuestion(l *store.CachedRun, message string) {
	if cm := c.Stores.Documents.Plan(l.PlanKey()); cm != nil {
		c.Telemetry.Events.Eventf(cm, corev1.EventTypeNormal, "ApprovalNeeded", "Run %s %s", l.Run.Name, message)
	}
}

// aboutRun is what Events of a run are about: its plan, as long as that is there.
func (c *Controller) aboutRun(l *store.CachedRun) *corev1.ConfigMap {
	if cm := c.Stores.Documents.Plan(l.PlanKey()); cm != nil {
		return cm
	}
	return l.Object
}

// recordStart sends the Event of a run that began.
func (c *Controller) recordStart(l *store.CachedRun) {
	c.Telemetry.Events.Eventf(c.aboutRun(l), corev1.EventTypeNormal, "RunStarted", "Run %s (%s) started", l.Run.Name, l.Run.Request.Said())
}

// recordEnd sends the Event of a run's end.
func (c *Controller) recordEnd(l *store.CachedRun, j run.Journal) {
	kind := corev1.EventTypeNormal
	if j.Phase == run.Failed || j.CleanupFailed() {
		kind = corev1.EventTypeWarning
	}
	c.recordLeftovers(l, j)
	c.Telemetry.Events.Eventf(c.aboutRun(l), kind, "Run"+string(j.Phase), "Run %s (%s): %s", l.Run.Name, l.Run.Request.Said(), document.Cut(j.Message, 512))
	c.Telemetry.Log.Info("run ended", "plan", l.PlanKey().String(), "run", l.Run.Name, "phase", string(j.Phase), "reason", l.Run.Request.Why(), "message", j.Message)
	c.Telemetry.Notify.RunEnded(l.PlanKey(), l.Run, j)
}

// recordLeftovers sends an Event for what a run did not put back, for the first of many.
func (c *Controller) recordLeftovers(l *store.CachedRun, j run.Journal) {
	const most = 5 // a guess: the run names all of them
	told := 0
	for _, rec := range j.Steps {
		if rec.Restored != run.RestoreFailed || told == most {
			continue
		}
		told++
		c.Telemetry.Events.Eventf(c.aboutRun(l), corev1.EventTypeWarning, "NotPutBack", "Run %s, step %s: %s", l.Run.Name, rec.Path, document.Cut(rec.RestoreMessage, 512))
	}
}
