package hibernation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/offwindow"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
	"github.com/kubectl-maint/kubectl-maint/pkg/transition"
)

// digestOf tells apart when plans sleep.
func digestOf(s hibernate.Spec) (string, error) {
	text, err := json.Marshal([]any{s.Schedule, s.Exceptions})
	if err != nil {
		return "", fmt.Errorf("the schedule of a plan: %w", err)
	}
	return annotations.Hash10(string(text)), nil
}

// ledger is the plan's, as it stands. A plan that cannot be read needs it for what sleeps, and for the
// tokens that were handled.
func (c *Controller) ledger(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *cachedPlan, needed bool) (*ledger.Ledger, error) {
	if cm == nil || known.table == nil && !needed {
		return nil, nil
	}
	return c.Stores.Ledgers.Get(ctx, k, string(cm.UID))
}

// record brings the plan's ledger up to now, and takes a skip away that is used up. The end of a
// sleep is recorded also if no off-window can be: the plan cannot be read, or the clock is in
// doubt.
func (c *Controller) record(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *cachedPlan, v view, d hibernate.Decision) error {
	slots := known.table != nil && v.doubt == ""
	if cm == nil || v.newer != "" || !slots && len(d.Closed) == 0 {
		return nil
	}
	f, err := c.slotFacts(ctx, k, cm, known, v, d)
	if err != nil {
		return err
	}
	l, changed := ledger.Ledger{PlanUID: f.UID, Watermark: f.Created.UTC()}, false
	switch {
	case slots:
		l, changed = offwindow.Pass(v.ledger, f)
	case v.ledger != nil:
		l = *v.ledger
	}
	l, changed = v.withTokens(l, changed)
	if l, changed = v.withSleep(l, changed, f, d); changed {
		if err := c.Stores.Ledgers.Put(ctx, k, f.UID, v.ledger, l); err != nil {
			return err
		}
	}
	if !slots || c.Scope.DryRun {
		return nil
	}
	return c.useSkip(ctx, cm, l, f)
}

// firstLedger makes the ledger of a plan before its status, which tells later that it had one. While it
// is refused, as by a quota, the plan does not fall asleep: what it misses is recorded afterwards.
func (c *Controller) firstLedger(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *cachedPlan, v *view) error {
	if cm == nil || known.table == nil || v.doubt != "" || v.ledger != nil || v.newer != "" {
		return nil
	}
	f, err := c.slotFacts(ctx, k, cm, known, *v, hibernate.Decision{})
	if err != nil {
		return err
	}
	l := offwindow.First(f)
	if err = c.Stores.Ledgers.Put(ctx, k, f.UID, nil, l); err == nil {
		v.ledger = &l
	} else if client.IsRejectedForGood(err) || client.IsRefusedByAdmission(err) {
		v.withoutLedger("written", err)
		v.again, err = queue.Soonest(v.again, c.Clock.Now().Add(time.Minute)), nil
	}
	return err
}

// slotFacts are what the ledger rests on now.
func (c *Controller) slotFacts(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *cachedPlan, v view, d hibernate.Decision) (offwindow.Facts, error) {
	f := offwindow.Facts{
		Now: c.Clock.Now(), UID: string(cm.UID), Created: cm.CreationTimestamp.Time,
		Table: known.table, Skip: v.intent.Skip, SkipBy: v.intent.Actors["skip"], Begun: v.began(d), Woken: transition.WokenAt(v.facts.Records),
		DryRun: (c.Scope.DryRun || known.spec.DryRun) && len(v.facts.Records) == 0,
	}
	f.Awake = offwindow.Obstacles{Want: v.want, Paused: v.paused, Forbidden: v.facts.Forbidden, Actors: v.intent.Actors, DryRun: f.DryRun}.Awake()
	lost, err := c.Stores.Ledgers.Lost(ctx, k, f.UID)
	if err != nil {
		return f, err
	}
	f.Lost = lost || v.ledger == nil && c.wasDecided(cm)
	if f.Table != nil {
		f.Timetable, err = digestOf(known.spec)
	}
	return f, err
}

// wasDecided says whether an agent has decided over a plan before, and so gave it a ledger. Without
// one it speaks of a plan that cannot be read, or while the clock is in doubt.
func (c *Controller) wasDecided(cm *corev1.ConfigMap) bool {
	phase, conditions := cm.Annotations[annotations.StatusPhase], cm.Annotations[annotations.StatusConditions]
	doubted := meta.IsStatusConditionTrue(status.Read(conditions), status.ConditionClockDoubt)
	said := phase != "" && phase != string(hibernate.Invalid) && !doubted
	return (said || cm.Annotations[annotations.StatusTargets] != "") && !status.IsCopied(conditions, cm.CreationTimestamp.Time, c.Clock.Ahead())
}

// withTokens is a ledger that knows the tokens which ask for nothing any more. One that asks now is
// among them once the status names it: until then what it acknowledges may not have been written.
func (v view) withTokens(l ledger.Ledger, changed bool) (ledger.Ledger, bool) {
	tokens := []string{v.handled}
	if !v.facts.Retry {
		tokens = append(tokens, v.intent.Token)
	}
	for _, token := range tokens {
		if token != "" && !l.KnowsToken(token) {
			l, changed = l.WithToken(token), true
		}
	}
	return l, changed
}

// withSleep is a ledger with the sleep that there is, or with the hours of the one that is over.
func (v view) withSleep(l ledger.Ledger, changed bool, f offwindow.Facts, d hibernate.Decision) (ledger.Ledger, bool) {
	switch {
	case f.Begun.IsZero():
		return l, changed
	case len(d.Closed) == 0 && len(v.facts.Blocked)+len(v.facts.Missing) > 0: // what does not count may be of an earlier instant
		return l, changed
	case len(d.Closed) == 0:
		l, began := l.SleepBegan(f.Begun)
		return l, changed || began
	}
	ended := f.Now
	if !f.Woken.IsZero() {
		ended = f.Woken
	}
	for _, r := range v.facts.Records {
		ended = queue.Latest(ended, r.Snapshot.BeganAt)
	}
	return l.RecordSlept(f.Begun, savings.SleptIn(v.facts.Records, f.Now), ended), true
}

// useSkip takes away what is used up of a skip: its off-windows are over, and in the ledger.
func (c *Controller) useSkip(ctx context.Context, cm *corev1.ConfigMap, l ledger.Ledger, f offwindow.Facts) error {
	left, used := offwindow.UsedUp(l, f)
	if !used {
		return nil
	}
	err := c.Status.RemoveIntents(ctx, cm, map[string]string{annotations.Skip: cm.Annotations[annotations.Skip]}, annotations.FormatSkip(left))
	if errors.Is(err, queue.ErrConflict) {
		return err
	}
	if err != nil {
		return fmt.Errorf("take the used skip off plan %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	return nil
}
