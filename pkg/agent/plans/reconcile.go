package plans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Reconcile decides over one plan: facts in, verdict out, ledger first, runs
// second, everything else last.
func (c *Controller) Reconcile(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	defer c.Stores.Runs.Quota.Next(k.Namespace) // who was woken may leave room
	on := c.Stores.Documents.Basis(k)
	cm := c.Stores.Documents.Plan(k)
	c.Runner.PlanChanged(k, cm)
	if cm != nil {
		c.Stores.Plans.Of(cm).NoteResume(cm.Annotations[annotations.Resume], c.Now())
	}
	if err := c.Runner.CloseOrphans(ctx, k); err != nil {
		return time.Time{}, err
	}
	if cm == nil || cm.DeletionTimestamp != nil || c.Stores.Documents.Terminating(k.Namespace) {
		return time.Time{}, c.leave(ctx, k, cm)
	}
	known := c.Stores.Plans.Of(cm)
	c.lookAgainAtSharing(k)
	facts, err := c.facts(ctx, k, cm, known)
	if err != nil {
		return c.cannotDecide(ctx, cm, known, err)
	}
	decision, decided, err := c.decideWithinQuota(ctx, k, cm, known, &facts)
	if err != nil {
		return time.Time{}, err
	}
	if !decided {
		c.Queue.Add(k)
		return time.Time{}, nil
	}
	if len(decision.Claims) > 0 || facts.State.Ledger == nil && decision.Changed { // on an old state nothing is claimed, and no ledger is made
		if unchanged, err := c.Stores.Documents.Confirm(ctx, k, on); err != nil || !unchanged {
			c.Queue.Add(k)
			return time.Time{}, err
		}
	}
	c.Stores.Gates.Waiting(k, decision.Status.WaitsToAct)
	noted, err := c.Watches.Rules.Note(ctx, k, facts, &decision)
	if err != nil {
		return time.Time{}, err
	}
	if decision.Changed {
		if err := c.Stores.Ledgers.Put(ctx, k, string(cm.UID), facts.State.Ledger, decision.Ledger); err != nil {
			err = errors.Join(err, noted(ctx, false))
			if client.IsRejectedForGood(err) || facts.State.Ledger == nil && client.IsRefusedByAdmission(err) { // the first may be one too many for a quota
				return c.cannotDecide(ctx, cm, known, fmt.Errorf("%w: %s: %w", errLedger, ledger.Unwritten, err))
			}
			return time.Time{}, err
		}
		c.recordEnds(cm, facts.State.Ledger, decision.Ledger)
		if decision.Status.NotRun != "" {
			c.recordNotRun(cm, decision.Status.NotRun)
		}
	}
	c.troubles.note(k, decision.Ledger)
	if err := noted(ctx, true); err != nil {
		return time.Time{}, err
	}
	return c.followUp(ctx, k, cm, known, facts, decision)
}

// followUp does what follows from a decision once the ledger has it: runs first, everything else last.
func (c *Controller) followUp(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *store.CachedPlan, facts trigger.Facts, decision trigger.Decision) (time.Time, error) {
	retry, err := c.createRuns(ctx, k, cm, known, facts, decision)
	if err != nil {
		return time.Time{}, err
	}
	decision.Wake = queue.Soonest(decision.Wake, retry)
	for _, name := range slices.Concat(decision.Replace, decision.Supersede) {
		c.EnqueueRun(types.NamespacedName{Namespace: k.Namespace, Name: name})
	}
	if err := c.consume(ctx, cm, facts, decision); err != nil {
		return time.Time{}, err
	}
	if len(decision.Claims) > 0 { // its start, or its wait, is what the status will say
		c.Queue.AddAfter(k, status.Delay)
		return decision.Wake, nil
	}
	c.mirror(c.Watches.Rules.WritesFor(ctx, k), k, known, status.Current(cm, &known.Written), facts, decision)
	if err := c.publish(ctx, cm, known, facts, decision); err != nil {
		return time.Time{}, err
	}
	leftAgain, err := c.leftAsItWas(ctx, k, cm, known, decision.Ledger)
	if err != nil {
		return time.Time{}, err
	}
	return queue.Soonest(decision.Wake, known.Mirror.Again, leftAgain, c.notifyAhead(ctx, cm, known, facts, decision)), c.prune(ctx, k, string(cm.UID), known.Spec)
}

// lookAgainAtSharing has the other plans say whether they share their target.
func (c *Controller) lookAgainAtSharing(k types.NamespacedName) {
	for _, other := range c.Stores.Plans.SharingChanged() {
		if other != k {
			c.Queue.Add(other)
		}
	}
}

// errLedger is a ledger that the API server does not take: somebody made it immutable, or a quota is full.
var errLedger = errors.New("nothing of this plan starts or ends")

// cannotDecide says on the plan why its ledger cannot be read or written.
func (c *Controller) cannotDecide(ctx context.Context, cm *corev1.ConfigMap, known *store.CachedPlan, reason error) (time.Time, error) {
	if !errors.Is(reason, annotations.ErrForeign) && !errors.Is(reason, annotations.ErrNewer) && !errors.Is(reason, errLedger) {
		return time.Time{}, reason
	}
	facts := trigger.Facts{Now: c.Now(), Plan: trigger.Plan{Faults: document.Faults{{Message: reason.Error()}}, Spec: known.Spec}}
	return c.Now().Add(time.Minute), c.publish(ctx, cm, known, facts, trigger.Decide(facts))
}

// facts gathers what the decision looks at.
func (c *Controller) facts(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *store.CachedPlan) (trigger.Facts, error) {
	uid := string(cm.UID)
	f := trigger.Facts{
		Now: c.Now(), LeadingSince: c.Scope.LeadingSince(),
		Plan: trigger.Plan{
			Namespace: k.Namespace, Name: k.Name, UID: uid,
			CreatedAt: cm.CreationTimestamp.Time, EditedAt: annotations.EditedAt(&cm.ObjectMeta), Spec: known.Spec, Faults: known.Faults,
			Intent: c.Stores.Documents.Intent(cm),
		},
		State: trigger.State{ResumeSeen: known.Resume.At}, Pauses: c.Stores.Documents.Pauses(k.Namespace), Ready: trigger.Readiness{OK: true}, ClockDoubt: c.Clients.ClockDoubt(),
		NameOf: func(r run.Request) string { return annotations.RunName(k.Name, uid, r) },
	}
	f.Plan.Faults = append(slices.Clone(f.Plan.Faults), c.templateFaults(k.Namespace, known)...)
	f.Plan.Templates = known.Templates
	if len(f.Plan.Faults) == 0 {
		f.Plan.Faults = c.connectorFaults(k.Namespace, known)
	}
	for _, denied := range c.deniedSteps(k.Namespace, run.Run{Spec: known.Spec, Templates: known.Templates}) {
		f.Plan.Faults = append(slices.Clone(f.Plan.Faults), document.Fault{Path: "spec.steps", Message: denied})
	}
	f.Doubted.From, f.Doubted.Until = c.Clients.Doubted()
	f.Plan.Spec.DryRun = f.Plan.Spec.DryRun || c.Scope.DryRun
	for _, l := range c.Stores.Runs.OfPlan(k) {
		if l.Broken == nil && l.Head.PlanUID == uid {
			f.Live = append(f.Live, l.ActiveRun())
		}
	}
	ledger, err := c.Stores.Ledgers.Get(ctx, k, uid)
	if err != nil {
		return f, err
	}
	f.State.Ledger = ledger
	f.Gate = c.Stores.Gates.Of(&known.Gate, f.Plan.Intent.Query(cm.Namespace, known.Spec.Policies))
	c.noteGate(k, cm, known, ledger, append(slices.Clone(f.Pauses), f.Plan.Intent.Pause))
	if err := c.noteEarlier(ctx, k, &f); err != nil {
		return f, err
	}
	if err := c.noteLost(ctx, k, cm, &f); err != nil {
		return f, err
	}
	f.State.Handled = cm.Annotations[annotations.StatusTrigger]
	if token := f.Plan.Intent.Token; f.State.LedgerLost && token != "" && token != f.State.Handled {
		answered, err := c.answered(ctx, k, cm, f.NameOf(run.Request{Kind: run.ByToken, Token: token}))
		if err != nil {
			return f, err
		}
		if answered {
			f.State.Handled = token
		}
	}
	if len(f.Plan.Faults) == 0 {
		c.labelTarget(ctx, k, known, &f)
		return f, c.Watches.Rules.Observe(ctx, cm, known, &f)
	}
	c.Watches.Rules.Drop(k)
	c.Watches.Targets.Drop(k)
	c.blockers.leave(k)
	return f, nil
}

// noteLost says of a plan without a ledger that it had one: its status says so, or one that does not
// count is there, or a run, which a ledger always precedes.
func (c *Controller) noteLost(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, f *trigger.Facts) error {
	if f.State.Ledger != nil {
		return nil
	}
	forged, err := c.Stores.Ledgers.Lost(ctx, k, f.Plan.UID)
	if err != nil {
		return err
	}
	here := forged || len(f.Live) > 0
	f.State.LedgerLost = here || wasDecided(cm)
	f.State.Copied = !here && c.isCopied(cm)
	return nil
}

// isCopied says whether the status of a plan came with it: from a backup, or from what it was copied of.
func (c *Controller) isCopied(cm *corev1.ConfigMap) bool {
	return status.IsCopied(cm.Annotations[annotations.StatusConditions], cm.CreationTimestamp.Time, c.Clients.Ahead())
}

// wasDecided says whether an agent has decided over a plan before, and so gave it a
// ledger: what it says of a plan that is not valid it says without one.
func wasDecided(cm *corev1.ConfigMap) bool {
	said := cm.Annotations[annotations.StatusNextRun] + cm.Annotations[annotations.StatusLastRun] + cm.Annotations[annotations.StatusTrigger]
	return said != "" || cm.Annotations[annotations.StatusObserved] != "" && cm.Annotations[annotations.StatusPhase] != string(trigger.PhaseInvalid)
}

// answered says whether the token of a plan whose ledger is lost asks for nothing any more: its
// status came with the plan, or the run that it asked for is there, of which an agent that died
// had not said so in the status yet.
func (c *Controller) answered(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, name string) (bool, error) {
	if c.isCopied(cm) { // the token was never seen on this plan
		return true, nil
	}
	switch _, err := c.Clients.Kube.CoreV1().ConfigMaps(k.Namespace).Get(ctx, name, metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read run %s, that a lost ledger may have known: %w", name, err)
	}
	return true, nil
}

// noteGate tells metrics of the plan.
func (c *Controller) noteGate(k types.NamespacedName, cm *corev1.ConfigMap, known *store.CachedPlan, l *ledger.Ledger, pauses []schedule.Pause) {
	if len(known.Faults) > 0 {
		c.Stores.Gates.Forget(k)
		return
	}
	o := c.Stores.Gates.Subject(known.Gate.Query, known.Gate.Gate)
	if longest := schedule.LongestPause(pauses...); longest.On {
		below := o.Verdict
		o.Verdict = func(at time.Time) schedule.Verdict { return longest.Verdict(at, below, below) }
	}
	o.Kind, o.System = "Plan", cm.Labels[annotations.LabelSystem]
	if l != nil && l.Last != nil && l.Last.StartedAt != nil {
		o.LastStart = *l.Last.StartedAt
	}
	c.Stores.Gates.Note(k, o)
}

// deniedSteps says of each step that the agent's configuration does not allow it in a
// namespace, also of those that other steps and templates hold.
func (c *Controller) deniedSteps(namespace string, r run.Run) (found []string) {
	denied := c.Settings().Denied(namespace)
	if len(denied) == 0 {
		return nil
	}
	r.Tree().Walk(func(s plan.Step) {
		why := fmt.Sprintf("step %s is of type %s, which the agent's configuration does not allow in namespace %s", s.Name, s.Type, namespace)
		if slices.Contains(denied, s.Type) && !slices.Contains(found, why) { // a template may be used twice
			found = append(found, why)
		}
	})
	return found
}

// createRuns makes sure that every open entry has its run: the ones claimed just
// now, and those whose creation an earlier agent did not live to see. One that the
// API server does not take holds up no other; retry is when it is tried again. A run
// that was made and taken away since is not made again.
func (c *Controller) createRuns(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *store.CachedPlan, f trigger.Facts, d trigger.Decision) (retry time.Time, err error) {
	if len(f.Plan.Faults) > 0 || f.ClockDoubt != "" {
		return time.Time{}, nil
	}
	c.refused.keep(k, d.Ledger.Open)
	size := c.sizeOfRun(cm, known)
	for _, e := range trigger.Unstarted(d.Ledger, f.Live) {
		if c.Stores.Runs.IsOrphan(types.NamespacedName{Namespace: k.Namespace, Name: e.Run}) {
			continue
		}
		if l := c.Stores.Runs.Live(types.NamespacedName{Namespace: k.Namespace, Name: e.Run}); l != nil && l.Broken != nil {
			continue // it is there, is left alone, and said so
		}
		if phase, made := store.WasMade(cm, e.Run); made {
			err = errors.Join(err, c.closeTaken(ctx, k, cm, e, phase))
			continue
		}
		if next := c.refused.next(k, e.Run, known.Observed); c.Now().Before(next) {
			retry = queue.Soonest(retry, next)
			continue
		}
		if !c.mayTry(k, size, e, d) {
			continue
		}
		next, failed := c.createRun(ctx, k, cm, f, known, e)
		retry, err = queue.Soonest(retry, next), errors.Join(err, failed)
	}
	if err == nil { // else it goes on with them, whatever the others do
		c.countPending(k, size, &d.Ledger, f.Live)
	}
	return retry, err
}

func (c *Controller) createRun(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, f trigger.Facts, known *store.CachedPlan, e ledger.Entry) (retry time.Time, err error) {
	r, ok, err := c.newRun(ctx, k, cm, f, known.Templates, known.Connectors, e)
	if err != nil || !ok {
		return time.Time{}, err
	}
	journal := workflow.NewJournal(r)
	object, err := annotations.RunObject(r, journal)
	if err != nil {
		return time.Time{}, err
	}
	if err := c.Stores.Keys.Sign(object); err != nil {
		return time.Time{}, err
	}
	maps := c.Clients.Kube.CoreV1().ConfigMaps(k.Namespace)
	made, err := maps.Create(ctx, object, client.CreateOptions())
	switch {
	case apierrors.IsAlreadyExists(err):
		return time.Time{}, c.adopt(ctx, k, e)
	case err != nil && !c.Stores.Documents.Terminating(k.Namespace) && client.IsRejected(err):
		return c.refuseRun(ctx, k, cm, known, e, err)
	case err != nil:
		return time.Time{}, fmt.Errorf("create run %s/%s: %w", k.Namespace, e.Run, err)
	}
	made.ManagedFields = nil
	l := &store.CachedRun{Object: made, Run: r, Journal: journal}
	c.Stores.Runs.Put(l)
	c.EnqueueRun(l.Key())
	c.recordAsOf(cm, r)
	if e.Refused == "" {
		return time.Time{}, nil
	}
	return time.Time{}, c.Stores.Ledgers.Edit(ctx, k, string(cm.UID), func(l ledger.Ledger) ledger.Ledger { return l.Refuse(e.Run, "") })
}

// adopt goes on with a run that an earlier agent created. One that has ended
// leaves only its entry to be closed.
func (c *Controller) adopt(ctx context.Context, k types.NamespacedName, e ledger.Entry) error {
	cm, err := c.Clients.Kube.CoreV1().ConfigMaps(k.Namespace).Get(ctx, e.Run, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read run %s/%s: %w", k.Namespace, e.Run, err)
	}
	run, journal, err := c.Stores.Runs.Read(cm)
	if err != nil {
		return fmt.Errorf("%w: %w", annotations.ErrForeign, err)
	}
	if !journal.Phase.Ended() {
		cm.ManagedFields = nil
		l := &store.CachedRun{Object: cm, Run: run, Journal: journal}
		c.Stores.Runs.Put(l)
		c.EnqueueRun(l.Key())
		return nil
	}
	if e.Request != nil && run.Request.Label != "" && !run.Request.SameLabel(*e.Request) { // before an earlier ledger was lost
		c.Queue.Add(k)
		return c.Stores.Ledgers.Edit(ctx, k, run.PlanUID, func(l ledger.Ledger) ledger.Ledger { return l.TakeBack(run.Name, run.Request) })
	}
	return c.Stores.Ledgers.Edit(ctx, k, run.PlanUID, func(l ledger.Ledger) ledger.Ledger { return l.CloseRun(run, journal, c.Now()) })
}
