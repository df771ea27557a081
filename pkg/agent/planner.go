package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// document is a plan's ConfigMap as the watch last showed it, or as it was read live
// since.
func (a *Agent) document(k types.NamespacedName) *corev1.ConfigMap {
	var cm *corev1.ConfigMap
	if o, found, err := a.documents.GetStore().GetByKey(k.String()); err == nil && found {
		cm = o.(*corev1.ConfigMap)
	}
	if cm = a.fresh.document(k, cm); cm != nil && cm.Labels[annotations.LabelKind] == annotations.KindPlan {
		return cm
	}
	return nil
}

// syncPlan decides over one plan: facts in, verdict out, ledger first, runs
// second, everything else last.
func (a *Agent) syncPlan(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	on := a.basis(k)
	cm := a.document(k)
	for _, l := range a.runs.ofPlan(k) {
		if a.interests(cm, l) {
			if l.journal.End == nil && a.signals(l).Abort != nil {
				a.passes.cutFor(l.key())
			}
			a.ringRun(l.key())
		}
	}
	if cm != nil {
		a.plans.of(cm).noteResume(cm.Annotations[annotations.Resume], a.now())
	}
	if err := a.closeTorn(ctx, k); err != nil {
		return time.Time{}, err
	}
	if cm == nil || cm.DeletionTimestamp != nil || a.terminating(k.Namespace) {
		a.targets.drop(k)
		a.blockers.drop(k)
		a.rules.drop(k)
		if cm == nil {
			a.plans.drop(k)
		}
		return time.Time{}, nil
	}
	known := a.plans.of(cm)
	facts, err := a.facts(ctx, k, cm, known)
	if err != nil {
		return a.cannotDecide(ctx, cm, known, err)
	}
	decision, err := a.decide(ctx, k, cm, known, &facts)
	if err != nil {
		return time.Time{}, err
	}
	if len(decision.Claims) > 0 || facts.Ledger == nil && decision.Changed { // on an old state nothing is claimed, and no ledger is made
		if sure, err := a.sure(ctx, k, on); err != nil || !sure {
			a.ringPlan(k)
			return time.Time{}, err
		}
	}
	a.gates.waiting(k, decision.Waiting != "")
	noted, err := a.rules.note(ctx, k, facts, &decision)
	if err != nil {
		return time.Time{}, err
	}
	if decision.Changed {
		if err := a.ledgers.put(ctx, k, string(cm.UID), facts.Ledger, decision.Ledger); err != nil {
			err = errors.Join(err, noted(ctx, false))
			if neverTaken(err) {
				return a.cannotDecide(ctx, cm, known, fmt.Errorf("%w: its ledger cannot be written: %w", errLedger, err))
			}
			return time.Time{}, err
		}
		a.metrics.SlotsEnded(facts.Ledger, decision.Ledger)
		a.tellEnds(cm, facts.Ledger, decision.Ledger)
	}
	if err := noted(ctx, true); err != nil {
		return time.Time{}, err
	}
	retry, err := a.createRuns(ctx, k, cm, known, facts, decision)
	if err != nil {
		return time.Time{}, err
	}
	decision.Wake = queue.Soonest(decision.Wake, retry)
	for _, name := range slices.Concat(decision.Replace, decision.Supersede) {
		a.ringRun(types.NamespacedName{Namespace: k.Namespace, Name: name})
	}
	if err := a.consume(ctx, cm, facts, decision); err != nil {
		return time.Time{}, err
	}
	if len(decision.Claims) > 0 { // its start, or its wait, is what the status will say
		a.planQueue.AddAfter(k, settle)
		return decision.Wake, nil
	}
	a.mirror(a.rules.as(ctx, k), k, known, standingStatus(cm, &known.written), facts, decision)
	if err := a.publish(ctx, cm, known, facts, decision); err != nil {
		return time.Time{}, err
	}
	leftAgain, err := a.leftAsItWas(ctx, k, cm, known, decision.Ledger)
	if err != nil {
		return time.Time{}, err
	}
	return queue.Soonest(decision.Wake, known.mirrored.again, leftAgain), a.prune(ctx, k, string(cm.UID), known.spec)
}

// interests says whether a plan's change may concern one of its runs: it is
// gone, or an intent names the run.
func (a *Agent) interests(cm *corev1.ConfigMap, l *liveRun) bool {
	if cm == nil || cm.DeletionTimestamp != nil || string(cm.UID) != l.run.PlanUID || l.journal.Phase == run.RunPending {
		return true
	}
	in := annotations.Intent(cm.Annotations)
	return in.Abort.For(l.run.Name) || in.Resume.For(l.run.Name) || in.Approve.For(l.run.Name) || in.Reject.For(l.run.Name) || betweenSteps(l.journal)
}

// betweenSteps says whether a run has no step at work, or holds steps that may
// begin beside those at work: where it does not go on, a pause or a gate holds it.
func betweenSteps(j run.Journal) bool {
	beside := func(r run.Record) bool {
		return r.Phase == run.StepRunning && plan.IsLoop(r.Type) || r.Phase == run.StepPending && strings.Contains(r.Path, "/")
	}
	if j.Section == plan.SectionSteps && slices.ContainsFunc(j.Steps, beside) {
		return true
	}
	return j.Section == plan.SectionSteps && !slices.ContainsFunc(j.Steps, func(r run.Record) bool { return r.Phase == run.StepRunning })
}

// errLedger is a ledger that the API server does not take: somebody made it immutable.
var errLedger = errors.New("nothing of this plan starts or ends")

// cannotDecide says on the plan why its ledger cannot be read or written.
func (a *Agent) cannotDecide(ctx context.Context, cm *corev1.ConfigMap, known *knownPlan, reason error) (time.Time, error) {
	if !errors.Is(reason, annotations.ErrForeign) && !errors.Is(reason, errLedger) {
		return time.Time{}, reason
	}
	facts := trigger.Facts{Now: a.now(), Faults: document.Faults{{Message: reason.Error()}}, Spec: known.spec}
	return a.now().Add(time.Minute), a.publish(ctx, cm, known, facts, trigger.Decide(facts))
}

// facts gathers what the decision looks at.
func (a *Agent) facts(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *knownPlan) (trigger.Facts, error) {
	uid := string(cm.UID)
	f := trigger.Facts{
		Now: a.now(), LookingSince: a.lookingSince(), Namespace: k.Namespace, Name: k.Name, UID: uid,
		CreatedAt: cm.CreationTimestamp.Time, EditedAt: annotations.EditedAt(&cm.ObjectMeta), Spec: known.spec, Faults: known.faults,
		Intent: annotations.Intent(cm.Annotations), ResumeSeen: known.resume.at, Pauses: a.pauses(k.Namespace), Ready: trigger.Readiness{OK: true}, ClockDoubt: a.clock.Doubt(),
		NameOf: func(r run.Request) string { return annotations.RunName(k.Name, uid, r) },
	}
	f.Faults = append(slices.Clone(f.Faults), a.templateFaults(k.Namespace, known)...)
	if denied := a.deniedSteps(k.Namespace, known); denied != "" {
		f.Faults = append(slices.Clone(f.Faults), document.Fault{Path: "spec.steps", Message: denied})
	}
	f.Spec.DryRun = f.Spec.DryRun || a.options.DryRun
	for _, l := range a.runs.ofPlan(k) {
		if l.broken == nil && l.run.PlanUID == uid {
			f.Live = append(f.Live, l.live())
		}
	}
	ledger, err := a.ledgers.get(ctx, k, uid)
	if err != nil {
		return f, err
	}
	f.Ledger = ledger
	f.Gate = a.gates.of(&known.gate, f.Intent.Query(cm.Namespace, known.spec.Policies))
	a.noteGate(k, cm, known, ledger)
	f.LedgerLost, f.Handled = ledger == nil && wasDecided(cm), cm.Annotations[annotations.StatusTrigger]
	if len(f.Faults) == 0 {
		a.labelTarget(ctx, k, known, &f)
		return f, a.rules.observe(ctx, cm, known, &f)
	}
	a.rules.drop(k)
	a.targets.drop(k)
	a.blockers.leave(k)
	return f, nil
}

// wasDecided says whether an agent has decided over a plan before, and so gave it a
// ledger: what it says of a plan that is not valid it says without one.
func wasDecided(cm *corev1.ConfigMap) bool {
	said := cm.Annotations[annotations.StatusNextRun] + cm.Annotations[annotations.StatusLastRun] + cm.Annotations[annotations.StatusTrigger]
	return said != "" || cm.Annotations[annotations.StatusObserved] != "" && cm.Annotations[annotations.StatusPhase] != string(trigger.PhaseInvalid)
}

// noteGate tells metrics of the plan.
func (a *Agent) noteGate(k types.NamespacedName, cm *corev1.ConfigMap, known *knownPlan, l *ledger.Ledger) {
	if len(known.faults) > 0 {
		a.gates.forget(k)
		return
	}
	o := a.gates.gated(known.gate.question, known.gate.gate)
	o.kind, o.system = "Plan", cm.Labels[annotations.LabelSystem]
	if l != nil && l.Last != nil && l.Last.StartedAt != nil {
		o.lastStart = *l.Last.StartedAt
	}
	a.gates.note(k, o)
}

// deniedSteps says which step the agent's configuration does not allow in a
// namespace, also among those that other steps and templates hold.
func (a *Agent) deniedSteps(namespace string, known *knownPlan) string {
	denied := a.config.Spec().Denied(namespace)
	if len(denied) == 0 {
		return ""
	}
	found := ""
	r := run.Run{Spec: known.spec, Templates: known.templates}
	r.Tree().Walk(func(s plan.Step) {
		if found == "" && slices.Contains(denied, s.Type) {
			found = fmt.Sprintf("step %s is of type %s, which the agent's configuration does not allow in namespace %s", s.Name, s.Type, namespace)
		}
	})
	return found
}

// pauses are the switches above a plan: its namespace's, and the cluster's,
// which stands on the agent's own namespace.
func (a *Agent) pauses(namespace string) []schedule.Switch {
	var out []schedule.Switch
	for _, name := range []string{namespace, a.options.Namespace} {
		o, found, err := a.namespaces.GetStore().GetByKey(name)
		if err != nil || !found {
			continue
		}
		out = append(out, annotations.Intent(map[string]string{annotations.Pause: o.(*metav1.PartialObjectMetadata).Annotations[annotations.Pause]}).Pause)
	}
	return out
}

// createRuns makes sure that every open entry has its run: the ones claimed just
// now, and those whose creation an earlier agent did not live to see. One that the
// API server does not take holds up no other; retry is when it is tried again. A run
// that was made and taken away since is not made again.
func (a *Agent) createRuns(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *knownPlan, f trigger.Facts, d trigger.Decision) (retry time.Time, err error) {
	if len(f.Faults) > 0 || f.ClockDoubt != "" {
		return time.Time{}, nil
	}
	a.refusedRuns.keep(k, d.Ledger.Open)
	for _, e := range d.Ledger.Open {
		if e.Request == nil || a.runs.isTorn(types.NamespacedName{Namespace: k.Namespace, Name: e.Run}) || slices.ContainsFunc(f.Live, func(l trigger.Live) bool { return l.Name == e.Run }) {
			continue
		}
		if l := a.runs.get(types.NamespacedName{Namespace: k.Namespace, Name: e.Run}); l != nil && l.broken != nil {
			continue // it is there, is left alone, and said so
		}
		if phase, made := wasMade(cm, e.Run); made {
			err = errors.Join(err, a.taken(ctx, k, cm, e, phase))
			continue
		}
		if next := a.refusedRuns.next(k, e.Run, known.observed); a.now().Before(next) {
			retry = queue.Soonest(retry, next)
			continue
		}
		next, failed := a.createRun(ctx, k, cm, f.Spec, known, e)
		retry, err = queue.Soonest(retry, next), errors.Join(err, failed)
	}
	return retry, err
}

func (a *Agent) createRun(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, spec plan.Spec, known *knownPlan, e ledger.Entry) (retry time.Time, err error) {
	watched, err := a.rules.watched(ctx, k, client.Account{Namespace: k.Namespace, Name: plan.Account(spec)}, *e.Request)
	if err != nil {
		return time.Time{}, err
	}
	r := run.Run{
		APIVersion: document.APIVersion, Kind: "Run", Name: e.Run, Namespace: k.Namespace, Plan: k.Name, PlanUID: string(cm.UID),
		Request: *e.Request, TargetUID: e.TargetUID, Spec: spec, Templates: known.templates, Watched: watched,
	}
	r.Request.Body = nil
	journal := workflow.NewJournal(r)
	object, err := annotations.RunObject(r, journal)
	if err != nil {
		return time.Time{}, err
	}
	maps := a.kube.CoreV1().ConfigMaps(k.Namespace)
	made, err := maps.Create(ctx, object, client.CreateOptions())
	switch {
	case apierrors.IsAlreadyExists(err):
		return time.Time{}, a.adopt(ctx, k, e)
	case err != nil && !a.terminating(k.Namespace) && notTaken(err):
		return a.refuseRun(ctx, k, cm, known, e, err)
	case err != nil:
		return time.Time{}, fmt.Errorf("create run %s/%s: %w", k.Namespace, e.Run, err)
	}
	made.ManagedFields = nil
	l := &liveRun{object: made, run: r, journal: journal}
	a.runs.put(l)
	a.ringRun(l.key())
	if e.Refused == "" {
		return time.Time{}, nil
	}
	return time.Time{}, a.ledgers.edit(ctx, k, string(cm.UID), func(l ledger.Ledger) ledger.Ledger { return l.Refuse(e.Run, "") })
}

// adopt goes on with a run that an earlier agent created. One that has ended
// leaves only its entry to be closed.
func (a *Agent) adopt(ctx context.Context, k types.NamespacedName, e ledger.Entry) error {
	cm, err := a.kube.CoreV1().ConfigMaps(k.Namespace).Get(ctx, e.Run, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read run %s/%s: %w", k.Namespace, e.Run, err)
	}
	run, journal, err := annotations.ReadRun(cm)
	if err != nil {
		return fmt.Errorf("%w: %w", annotations.ErrForeign, err)
	}
	if !journal.Phase.Ended() {
		cm.ManagedFields = nil
		l := &liveRun{object: cm, run: run, journal: journal}
		a.runs.put(l)
		a.ringRun(l.key())
		return nil
	}
	return a.ledgers.edit(ctx, k, run.PlanUID, func(l ledger.Ledger) ledger.Ledger { return closeEntry(l, run, journal, a.now()) })
}

// closeEntry gives a run's claim its end.
func closeEntry(l ledger.Ledger, r run.Run, j run.Journal, now time.Time) ledger.Ledger {
	if j.StartedAt != nil {
		return l.Finish(r, j, now)
	}
	result, reason := run.Skipped, run.ReasonAborted
	if j.End != nil && j.End.Result != "" {
		result, reason = j.End.Result, j.End.Reason
	}
	return l.Close(r.Name, result, reason, nil, now)
}
