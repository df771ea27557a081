package hibernation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
)

// slotsAtOnce bounds how many off-windows are passed in one look, after a long outage.
const slotsAtOnce = 500

// slotFacts are what the end of an off-window rests on.
type slotFacts struct {
	now     time.Time
	uid     string
	created time.Time
	digest  string // of when the plan sleeps
	table   *hibernate.Timetable
	skip    intent.Skip
	skipBy  intent.Actor
	begun   time.Time // when the sleep began that there is; zero: there is none
	woken   time.Time // when all of it was awake again; zero: it is not yet
	// seen is the off-window that the plan was last seen in, and why it did not sleep then;
	// empty, in a dry run: it would have.
	seen   time.Time
	reason string
	cause  ledger.Cause // who gave that reason
	dryRun bool
}

// passSlots records what became of the off-windows up to now, each once: of one that is not
// over, that its sleep has begun; of one that is, why nothing slept. With changed the
// ledger is to be written.
func passSlots(stored *ledger.Ledger, f slotFacts) (l ledger.Ledger, changed bool) {
	if stored == nil {
		l, changed = ledger.Ledger{PlanUID: f.uid, Watermark: f.created.UTC(), Timetable: f.digest}, true
	} else {
		l = *stored
	}
	if l.Timetable != f.digest { // what the earlier schedule owed is nothing: only the level counts
		l.Timetable, l.Watermark, changed = f.digest, queue.Latest(l.Watermark, f.now.UTC()), true
	}
	if l.NextSlot != nil && !f.skip.Next {
		l.NextSlot, changed = nil, true
	}
	n := 0
	for w := range f.table.Windows(l.Watermark) {
		if w.Start.After(f.now) || n == slotsAtOnce {
			break
		}
		n++
		if f.skip.Next && l.NextSlot == nil && w.End.After(f.now) {
			l.NextSlot, changed = new(w.Start.UTC()), true
		}
		if l.HasSlot(w.Start) {
			continue
		}
		entry, over := f.entry(l, w)
		if !over {
			break
		}
		if entry.Result == "" {
			continue
		}
		l, changed = l.Record(entry), true
		l.Watermark = queue.Latest(l.Watermark, w.Start.UTC())
	}
	return l, changed
}

// entry is what became of an off-window; false: it may still sleep in it. Of one that began
// before the plan was made, nothing was owed.
func (f slotFacts) entry(l ledger.Ledger, w hibernate.Window) (ledger.Entry, bool) {
	e := ledger.Entry{Slot: new(w.Start.UTC()), Local: f.table.Slot(w.Start), Kind: run.BySchedule, DryRun: f.dryRun, At: f.now.UTC()}
	over := !w.End.IsZero() && !w.End.After(f.now)
	switch {
	case !f.begun.IsZero() && (!over || f.begun.Before(w.End)) && (f.woken.IsZero() || w.Start.Before(f.woken)):
		e.Result, e.StartedAt = run.Ran, new(queue.Latest(f.begun, w.Start).UTC())
		return e, true
	case !over || w.Start.Before(f.created):
		return ledger.Entry{}, over
	case f.dryRun && f.seen.Equal(w.Start) && f.reason == "":
		e.Result, e.StartedAt = run.Ran, new(w.Start.UTC())
		return e, true
	}
	var by ledger.Cause
	e.Result, e.Reason, by = f.why(l, w)
	return e.By(by), true
}

// why says why nothing slept in an off-window that is over.
func (f slotFacts) why(l ledger.Ledger, w hibernate.Window) (run.Result, string, ledger.Cause) {
	reason, by := run.ReasonCatchUp, ledger.Cause{}
	switch {
	case f.seen.Equal(w.Start):
		reason, by = cmp.Or(f.reason, reason), f.cause // it was a dry run until now
	case l.NextSlot != nil && l.NextSlot.Equal(w.Start): // nobody knows who that was
		reason = run.ReasonSkip
	case !f.skip.Next && f.skip.Covers(w.Start): // whoever wrote it when: it is what has it skipped
		reason, by = run.ReasonSkip, ledger.CauseBy(f.skipBy, "skip")
	}
	if reason == run.ReasonSkip || reason == run.ReasonPaused || reason == run.ReasonHold {
		return run.Skipped, reason, by
	}
	return run.Missed, reason, by
}

// digestOf tells apart when plans sleep.
func digestOf(s hibernate.Spec) (string, error) {
	text, err := json.Marshal([]any{s.Schedule, s.Exceptions})
	if err != nil {
		return "", fmt.Errorf("the schedule of a plan: %w", err)
	}
	return annotations.Hash10(string(text)), nil
}

// ledger is the plan's, as it stands. A plan that cannot be read needs it for what sleeps.
func (c *Controller) ledger(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *cachedPlan, sleeps bool) (*ledger.Ledger, error) {
	if cm == nil || known.table == nil && !sleeps {
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
	l, changed := ledger.Ledger{PlanUID: f.uid, Watermark: f.created.UTC()}, false
	switch {
	case slots:
		l, changed = passSlots(v.ledger, f)
	case v.ledger != nil:
		l = *v.ledger
	}
	if l, changed = v.withSleep(l, changed, f, d); changed {
		if err := c.Stores.Ledgers.Put(ctx, k, f.uid, v.ledger, l); err != nil {
			return err
		}
		v.ledger = &l
	}
	if !slots {
		return nil
	}
	known.window, known.reason, known.cause = time.Time{}, "", ledger.Cause{}
	if v.want.Level.Asleep {
		known.window = v.want.Level.Since
		known.reason, known.cause = v.awakeBecause(f.dryRun)
	}
	if c.Scope.DryRun {
		return nil
	}
	return c.useSkip(ctx, cm, v)
}

// slotFacts are what the ledger rests on now.
func (c *Controller) slotFacts(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *cachedPlan, v view, d hibernate.Decision) (slotFacts, error) {
	f := slotFacts{
		now: c.Clock.Now(), uid: string(cm.UID), created: cm.CreationTimestamp.Time,
		table: known.table, skip: v.intent.Skip, skipBy: v.intent.Actors["skip"], seen: known.window, reason: known.reason, cause: known.cause, begun: v.began(d), woken: wokenAt(v.facts.Records),
		dryRun: (c.Scope.DryRun || known.spec.DryRun) && len(v.facts.Records) == 0,
	}
	lost, err := c.Stores.Ledgers.Lost(ctx, k, f.uid)
	if err != nil {
		return f, err
	}
	if lost { // nothing from before is made up
		f.created = f.now
	}
	if f.table != nil {
		f.digest, err = digestOf(known.spec)
	}
	return f, err
}

// withSleep is a ledger with the sleep that there is, or with the hours of the one that is over.
func (v view) withSleep(l ledger.Ledger, changed bool, f slotFacts, d hibernate.Decision) (ledger.Ledger, bool) {
	switch {
	case f.begun.IsZero():
		return l, changed
	case len(d.Closed) == 0 && len(v.facts.Blocked)+len(v.facts.Missing) > 0: // what does not count may be of an earlier instant
		return l, changed
	case len(d.Closed) == 0:
		l, began := l.SleepBegan(f.begun)
		return l, changed || began
	}
	ended := f.now
	if !f.woken.IsZero() {
		ended = f.woken
	}
	for _, r := range v.facts.Records {
		ended = queue.Latest(ended, r.Snapshot.BeganAt)
	}
	return l.RecordSlept(f.begun, savings.SleptIn(v.facts.Records, f.now), ended), true
}

// wokenAt is when the last of some targets was awake again; zero: one is not.
func wokenAt(records []hibernate.Record) time.Time {
	var last time.Time
	for _, r := range records {
		if r.Operation != hibernate.Wake || r.State != hibernate.Awake || r.FinishedAt == nil {
			return time.Time{}
		}
		last = queue.Latest(last, *r.FinishedAt)
	}
	return last
}

// awakeBecause is why nothing sleeps in off-hours, in the ledger's words; empty, in a dry
// run: it would.
func (v view) awakeBecause(dryRun bool) (string, ledger.Cause) {
	switch {
	case v.want.By == hibernate.ByHold && !v.want.Asleep:
		return run.ReasonHold, ledger.CauseBy(v.intent.Actors["hold-state"], "hold")
	case v.want.By == hibernate.BySkip:
		return run.ReasonSkip, ledger.CauseBy(v.intent.Actors["skip"], "skip")
	case v.paused != "":
		return run.ReasonPaused, ledger.Cause{Said: v.paused}
	case v.facts.Forbidden != "":
		return run.ReasonWindow, ledger.Cause{Said: v.facts.Forbidden}
	case dryRun:
		return "", ledger.Cause{}
	}
	return run.ReasonNotReady, ledger.Cause{}
}

// useSkip takes a skip of the next off-window away once that is over.
func (c *Controller) useSkip(ctx context.Context, cm *corev1.ConfigMap, v view) error {
	l := v.ledger
	if l == nil || l.NextSlot == nil || !v.intent.Skip.Next || v.want.Level.Asleep && l.NextSlot.Equal(v.want.Level.Since) {
		return nil
	}
	err := c.Status.RemoveIntents(ctx, cm, map[string]string{annotations.Skip: cm.Annotations[annotations.Skip]}, "")
	if errors.Is(err, queue.ErrConflict) {
		return err
	}
	if err != nil {
		return fmt.Errorf("take the used skip off plan %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	return nil
}
