package hibernation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/offwindow"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/transition"
)

// cachedPlan is what is known about a plan in one look at it.
type cachedPlan struct {
	*planMemory
	*parsedPlan
}

// parsedPlan is a plan's text as it was understood. It follows from what it was read from,
// and may be forgotten at any time.
type parsedPlan struct {
	from   textOf
	spec   hibernate.Spec
	faults document.Faults
	table  *hibernate.Timetable // nil: the plan cannot be read
}

// textOf tells apart what plans are read from.
type textOf struct {
	uid      types.UID
	observed string // hash of the text
	account  string // that a label names
	parts    int    // of the object's data
}

func textOfPlan(cm *corev1.ConfigMap) textOf {
	return textOf{uid: cm.UID, observed: annotations.Observed(cm), account: cm.Labels[annotations.LabelServiceAccount], parts: len(cm.Data)}
}

// planMemory is what is kept of a plan as long as it is the same object.
type planMemory struct {
	uid     types.UID
	written status.Written
	health  health
	// unready is why nothing of it could be put to sleep or woken, as it was last known.
	unready string
}

// reconcile looks at one plan: records first, then what follows for each target.
func (c *Controller) reconcile(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	on, cm := c.Stores.Documents.Basis(k), c.Stores.Documents.HibernatePlan(k)
	if cm != nil && cm.DeletionTimestamp != nil {
		cm = nil
	}
	stored, copies := c.records.of(k), c.records.copies(k)
	if cm == nil && len(stored)+len(copies) == 0 {
		c.troubles.drop(k)
		c.forget(k)
		return time.Time{}, nil
	}
	if c.Stores.Documents.Terminating(k.Namespace) {
		return time.Time{}, c.rescue(ctx, k, append(stored, copies...))
	}
	var notRenewed error
	if !c.Scope.DryRun {
		notRenewed = c.renew(ctx, k, cm)
		if apierrors.HasStatusCause(notRenewed, corev1.NamespaceTerminatingCause) { // with Roles alone no namespace is watched
			return time.Time{}, c.rescue(ctx, k, append(c.records.of(k), c.records.copies(k)...))
		}
		if notRenewed != nil && (errors.Is(notRenewed, queue.ErrConflict) || c.records.onlyCopied(k)) {
			return c.requeueSoon(notRenewed)
		}
		stored = c.records.of(k)
	}
	known := c.known(k, cm)
	slots, err := c.ledger(ctx, k, cm, known, len(stored) > 0 || cm != nil && cm.Annotations[annotations.Trigger] != "")
	newer := errors.Is(err, annotations.ErrNewer)
	if err != nil && !newer && len(stored) == 0 {
		return time.Time{}, err
	}
	c.records.sleptLast(k, cm, slots)
	stored, closing := c.closeEarlier(ctx, c.records.of(k))
	if closing != nil {
		return c.requeueSoon(closing)
	}
	v := c.view(k, cm, known, stored, slots)
	if newer {
		v.withoutLedger("read", err)
		v.again, err = queue.Soonest(v.again, c.Clock.Now().Add(time.Minute)), nil
	}
	defer c.records.release(k)
	if unmade := c.firstLedger(ctx, k, cm, known, &v); unmade != nil && len(stored) == 0 {
		return c.requeueSoon(unmade)
	}
	c.readiness(ctx, k, known, &v)
	if c.Scope.DryRun || known.spec.DryRun && len(stored) == 0 && cm != nil {
		return c.rehearse(ctx, k, cm, known, v)
	}
	if err := c.confirmMissing(ctx, k, cm, v.facts.Missing); err != nil {
		return c.requeueSoon(err)
	}
	c.blockRelabelled(k, &v)
	d, err := c.decide(ctx, k, known, &v, err)
	c.beginAfter(k, v, d)
	if slices.ContainsFunc(d.Write, v.begins) { // waking waits for nothing
		if err := c.Stores.Documents.ConfirmSoon(ctx, k, on); err != nil {
			return c.unconfirmed(k, v.again, err), nil
		}
	}
	c.troubles.note(k, transition.TroubleOf(v.facts, v.want, d))
	if err := c.apply(ctx, k, stored, d); err != nil {
		return c.requeueSoon(c.sayUnwritten(ctx, k, cm, known, v, d, err))
	}
	again, err := c.conclude(ctx, k, cm, known, stored, v, d, err)
	if err = errors.Join(err, notRenewed); errors.Is(err, queue.ErrConflict) {
		again, err = c.Clock.Now().Add(100*time.Millisecond), nil
	}
	v.again = queue.Soonest(v.again, c.notifyAhead(ctx, k, cm, known, v))
	return queue.Soonest(queue.Soonest(again, d.Again), v.again), err
}

// decide says what follows for each target, with the health of what woke where that is asked for. err is
// why there is no ledger: it stands whatever the checks say, since without one no sleep can be recorded.
func (c *Controller) decide(ctx context.Context, k types.NamespacedName, known *cachedPlan, v *view, err error) (hibernate.Decision, error) {
	d := hibernate.Decide(v.facts)
	if !d.Check {
		known.health = health{}
		return d, err
	}
	var unchecked error
	if known.health, unchecked = c.check(ctx, k, v.facts.Spec, cycleOf(v.facts.Records)); unchecked != nil {
		return d, errors.Join(err, unchecked)
	}
	v.facts.Health.Healthy, v.facts.Health.Unhealthy = known.health.healthy, known.health.why
	v.again = queue.Soonest(v.again, c.Clock.Now().Add(healthPause))
	return hibernate.Decide(v.facts), err
}

// conclude publishes what was decided and written, enters sleeps that ended in the ledger, and then has
// targets sleep and wake. err is what failed so far, and is told with what fails here.
func (c *Controller) conclude(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *cachedPlan, stored []*stored, v view, d hibernate.Decision, err error) (time.Time, error) {
	untold := c.publish(ctx, k, cm, known, v, d)
	if untold != nil || v.newer != "" {
		d.Closed = nil // its status still says that it sleeps, or its ledger cannot say that it slept
	}
	if err = errors.Join(err, c.record(ctx, k, cm, known, v, d)); err != nil {
		d.Closed = nil // how long it slept is recorded there alone
	}
	again, failed := c.finish(ctx, k, stored, d) // what sleeps wakes, whatever could not be said, or written anew
	return again, errors.Join(failed, untold, err)
}

// notifyAhead tells sinks of a sleep that comes, and returns when it is to be told.
func (c *Controller) notifyAhead(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *cachedPlan, v view) time.Time {
	if cm == nil {
		return time.Time{}
	}
	coming := notify.Upcoming{
		About: k, What: "sleeps", Announced: status.AnnouncedAhead(cm, &known.written),
		Claim: func(told string) error {
			return c.Status.Claim(ctx, cm, &known.written, annotations.StatusToldAhead, told)
		},
	}
	if at := v.sleeps(known); at != nil && !v.paused.On && !known.spec.DryRun {
		coming.At, coming.Words = *at, "It is to be put to sleep at "+at.UTC().Format(time.RFC3339)+": "+targetNames(known.spec)
		coming.CannotBegin("is to sleep", v.unready)
	}
	return c.Telemetry.Notify.Ahead("HibernatePlan", coming)
}

func targetNames(s hibernate.Spec) string {
	var names []string
	for _, t := range s.Targets {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// requeueSoon looks again at what somebody else wrote meanwhile.
func (c *Controller) requeueSoon(err error) (time.Time, error) {
	if errors.Is(err, queue.ErrConflict) {
		return c.Clock.Now().Add(100 * time.Millisecond), nil
	}
	return time.Time{}, err
}

func (c *Controller) forget(k types.NamespacedName) {
	c.watches.Drop(k, "")
	c.records.forget(k)
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	delete(c.memory.plans, k)
	c.memory.parsed.Remove(k)
}

// known is a plan as it is now; of one that is gone, what was kept beside its text. Reading
// may take its time, and holds up nobody else: one worker looks at a plan at a time.
func (c *Controller) known(k types.NamespacedName, cm *corev1.ConfigMap) *cachedPlan {
	c.memory.mu.Lock()
	memory := c.memory.plans[k]
	parsed, kept := c.memory.parsed.Get(k)
	c.memory.mu.Unlock()
	if cm == nil {
		if memory == nil {
			memory = &planMemory{}
		}
		return &cachedPlan{memory, &parsedPlan{}}
	}
	if memory == nil || memory.uid != cm.UID {
		memory = &planMemory{uid: cm.UID}
	}
	weight := 0
	if from := textOfPlan(cm); !kept || parsed.from != from {
		weight = store.WeightOf(cm.Data[annotations.DataPlan])
		parsed = c.memory.parsed.Read(weight, func() *parsedPlan { return parse(cm) })
	}
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	c.memory.plans[k] = memory
	if weight > 0 {
		c.memory.parsed.Keep(k, weight, parsed)
	}
	return &cachedPlan{memory, parsed}
}

func parse(cm *corev1.ConfigMap) *parsedPlan {
	p := &parsedPlan{from: textOfPlan(cm)}
	p.spec, p.faults = annotations.HibernatePlan(cm)
	if len(p.faults) > 0 {
		return p
	}
	table, err := hibernate.NewTimetable(p.spec)
	if err != nil {
		p.faults = document.Faults{{Message: err.Error()}}
		return p
	}
	p.table = table
	return p
}

// view is what is known of a plan at one instant.
type view struct {
	facts  hibernate.Facts
	want   hibernate.DesiredState
	hold   hibernate.Hold
	paused schedule.Pause // that holds longest; off: none does
	intent intent.Intent
	why    string
	faults document.Faults
	again  time.Time
	wakes  *time.Time // when what sleeps is to wake; nil: that is not known
	// handled is the trigger's token that the plan's status names as handled.
	handled string
	doubt   string // why the clock is not to be trusted; empty: it is
	// unready is why nothing could be put to sleep or woken; empty: it can be, as far as known.
	unready string
	ledger  *ledger.Ledger // nil: there is none yet
	newer   string         // why the ledger cannot be read that a newer version wrote, or not be made; empty: it can be
	policy  policyVerdict
}

// policyVerdict is what policies say of falling asleep now.
type policyVerdict struct {
	none     bool              // nothing stands before it
	gate     *schedule.Gate    // nil: there is none, or it was not asked for
	verdict  *schedule.Verdict // its verdict now
	strategy schedule.Strategy
}

// view puts together what a decision rests on.
func (c *Controller) view(k types.NamespacedName, cm *corev1.ConfigMap, known *cachedPlan, stored []*stored, slots *ledger.Ledger) view {
	now := c.Clock.Now()
	v := view{ledger: slots, facts: hibernate.Facts{Now: now.UTC(), Namespace: k.Namespace, Plan: k.Name, Spec: known.spec, Blocked: map[string]string{}}, faults: known.faults}
	spec, standing := known.spec, map[string]string{}
	if cm == nil {
		spec = snapshotOf(stored)
	} else {
		standing = status.Current(cm, &known.written)
	}
	listed := annotations.ReadTargets(standing[annotations.StatusTargets])
	for _, s := range stored {
		if s.broken != nil {
			v.facts.Blocked[targetName(k, spec, listed, s)] = whyBroken(k, s)
			continue
		}
		v.facts.Records = append(v.facts.Records, s.record)
	}
	if h := known.health; h.cycle != "" && h.cycle == cycleOf(v.facts.Records) {
		v.facts.Health.Healthy, v.facts.Health.Unhealthy = h.healthy, h.why
	}
	if cm == nil { // it is gone: what sleeps is woken
		v.why, v.facts.Health.Healthy = "the plan is gone", true
		v.fromSnapshots()
		return v
	}
	v.facts.UID = string(cm.UID)
	v.intent = c.Stores.Documents.Intent(cm)
	var faults document.Faults
	v.hold, faults = annotations.ReadHold(cm.Annotations)
	v.faults = append(slices.Clone(v.faults), faults...)
	v.pause(now, append(c.Stores.Documents.Pauses(k.Namespace), v.intent.Pause))
	v.facts.Retry = v.asks(standing)
	other := c.otherClock(&v, now)
	v.missing(k, stored, listed)
	if known.table == nil {
		v.unreadable(now, other)
		return v
	}
	v.take(known.table.DesiredState(now, v.overrides()))
	c.ask(k, &v, known)
	if v.facts.Sleep {
		v.facts.Forbidden = v.forbidden()
		c.deny(k, &v)
		c.room(k, &v)
	}
	if v.doubt != "" {
		v.doubtful(known.table.DesiredState(other, v.overrides()))
	}
	v.facts.Keep = v.facts.Keep || known.spec.DryRun && v.facts.Sleep // what slept before sleeps on, and nothing else falls asleep
	return v
}

// snapshotOf is a plan that is gone, as it was recorded.
func snapshotOf(all []*stored) hibernate.Spec {
	for _, s := range all {
		if s.broken == nil {
			return s.record.Snapshot.Spec
		}
	}
	return hibernate.Spec{}
}

// cycleOf names the sleep that there is; empty: there is none.
func cycleOf(records []hibernate.Record) string {
	for _, r := range records {
		return r.Cycle
	}
	return ""
}

// fromSnapshots takes the plan from what was recorded of it.
func (v *view) fromSnapshots() {
	for _, r := range v.facts.Records {
		v.facts.Spec = r.Snapshot.Spec
	}
}

// withoutLedger has nothing fall asleep by a plan whose ledger cannot be read or made: its slots are not
// known. What sleeps stays so as long as its schedule and people say.
func (v *view) withoutLedger(what string, why error) {
	v.newer = fmt.Sprintf("its ledger cannot be %s, so nothing falls asleep: %v", what, why)
	v.faults = append(slices.Clone(v.faults), document.Fault{Message: v.newer})
	v.facts.Forbidden = v.newer
}

// unreadable is a plan that cannot be read: nothing falls asleep by it. What sleeps wakes when
// it was to, or when a hold that keeps it asleep longer ends, or when somebody holds it awake:
// by either clock.
func (v *view) unreadable(now, other time.Time) {
	v.fromSnapshots()
	v.why = "the plan cannot be read"
	held := v.hold.Asleep && v.hold.Holds(now) && v.hold.Holds(other)
	if !v.hold.Asleep && (v.hold.Holds(now) || v.hold.Holds(other)) {
		v.why += "; " + intent.Held(false)
		return
	}
	for _, r := range v.facts.Records {
		if at := r.Snapshot.WakeAt; at != nil && now.Before(*at) && other.Before(*at) {
			v.facts.Sleep, v.facts.Until, v.wakes = true, at, at
			v.again = queue.Soonest(v.again, *at)
		}
	}
	if held && len(v.facts.Records) > 0 {
		v.why += "; " + intent.Held(true)
		v.heldAsleep()
	}
	v.facts.Keep = v.facts.Keep || v.facts.Sleep
}

// heldAsleep is a plan that cannot be read, and that sleeps until its hold and its night are
// over. The night's end stays recorded: it counts again when somebody takes the hold away.
func (v *view) heldAsleep() {
	v.facts.Sleep = true
	end := v.hold.Until
	if end != nil {
		v.again = queue.Soonest(v.again, *end)
	}
	if end == nil || v.wakes == nil || end.After(*v.wakes) {
		v.wakes = end
	}
}

func (v *view) pause(now time.Time, all []schedule.Pause) {
	if longest := schedule.LongestPause(all...); longest.Holds(now) {
		v.paused = longest
	}
	for _, p := range all {
		if p.On && p.Until != nil && p.Until.After(now) {
			v.again = queue.Soonest(v.again, *p.Until)
		}
	}
	if until := v.intent.Skip.Until; until != nil && until.After(now) { // it is taken away then
		v.again = queue.Soonest(v.again, *until)
	}
	v.facts.Keep = v.paused.On
}

// take takes in how the targets should be.
func (v *view) take(want hibernate.DesiredState) {
	v.want, v.why = want, want.Why
	v.facts.Sleep, v.facts.Until, v.wakes = want.Asleep, want.Until, want.Until
	v.again = queue.Soonest(v.again, want.Again)
	began := want.Level.Since
	if !want.Level.Asleep { // somebody holds it asleep
		began = v.facts.Now
	}
	v.facts.Cycle = v.facts.Plan + "-" + began.UTC().Format(time.RFC3339)
	for _, r := range v.facts.Records { // the cycle that there is goes on
		v.facts.Cycle = r.Cycle
	}
	if v.paused.On {
		v.why = "paused: " + v.why
	}
}

// sleeps is when a plan that does not sleep falls asleep next; nil: it does not, or that is not known.
func (v view) sleeps(known *cachedPlan) *time.Time {
	if known.table == nil || v.newer != "" {
		return nil
	}
	course := offwindow.NewTimeline(known.table, v.overrides(), v.policy.gate, v.facts.Now)
	switch {
	case v.paused.On && len(v.facts.Records) == 0:
		return course.Paused(v.paused, false).At
	case v.paused.On || v.facts.Sleep || v.facts.Until == nil:
		return nil
	}
	return course.After(v.want).At
}

// overrides are what people ask of it; a skip of the next off-window means the one that the ledger names.
func (v view) overrides() hibernate.Overrides {
	return hibernate.Overrides{Hold: v.hold, Skip: v.ledger.NamedSkip(v.intent.Skip)}
}

// ask takes in what policies say now, and when they say something else.
func (c *Controller) ask(k types.NamespacedName, v *view, known *cachedPlan) {
	q := v.intent.Query(k.Namespace, known.spec.Policies)
	gate := c.Stores.Gates.Ask(q)
	if v.policy.none = gate == nil; v.policy.none {
		return
	}
	now := c.Clock.Now()
	v.policy.gate = gate
	v.policy.verdict, v.policy.strategy = new(gate.Verdict(now)), c.Stores.Gates.Strategy(q, now)
	if until := policy.AskAgain(*v.policy.verdict, now); until != nil {
		v.again = queue.Soonest(v.again, *until)
	}
}

// forbidden says why no sleep may begin: its lead time, or a policy. What somebody holds
// asleep still waits for policies, and so does a target that is added while others sleep.
func (v *view) forbidden() string {
	switch {
	case v.want.Forbidden != "":
		return v.want.Forbidden
	case v.policy.verdict != nil && !v.policy.verdict.Permitted:
		return v.policy.verdict.Reason
	}
	return ""
}

// asks says whether a trigger asks for what failed to be tried at once: with another token than the
// last that were handled, and than the one that the plan came with.
func (v *view) asks(standing map[string]string) bool {
	v.handled = standing[annotations.StatusTrigger]
	token, first := v.intent.Token, v.ledger == nil && standing[annotations.StatusPhase] == ""
	return token != "" && !first && token != v.handled && (v.ledger == nil || !v.ledger.KnowsToken(token))
}

// missing are targets of which something slept and whose records are gone: neither do they count, nor
// is there one that does not. Who triggers the plan says that they were seen to.
func (v *view) missing(k types.NamespacedName, stored []*stored, listed []hibernate.TargetStatus) {
	if v.facts.Retry {
		return
	}
	for _, t := range listed {
		if t.MaySleep() && among(stored, annotations.RestoreName(k.Name, t.Target)) == nil {
			v.facts.Missing = append(v.facts.Missing, document.Cut(t.Target, document.MaxNameLength))
		}
	}
}

// unconfirmed is when to look again at a plan of which nothing may begin yet: soon, after no pauses
// that grow, since what sleeps of it has its time to wake.
func (c *Controller) unconfirmed(k types.NamespacedName, again time.Time, why error) time.Time {
	pause := 100 * time.Millisecond
	if !errors.Is(why, queue.ErrConflict) {
		c.Telemetry.Log.Warn("nothing falls asleep yet", "plan", k.String(), "error", why.Error())
		pause = 5 * time.Second
	}
	return queue.Soonest(again, c.Clock.Now().Add(pause))
}

// begins says whether a record that is to be written has its target begin to sleep, or come to its
// turn.
func (v view) begins(is hibernate.Record) bool {
	if is.Operation != hibernate.Shutdown || is.State == hibernate.Skipped {
		return false
	}
	at := slices.IndexFunc(v.facts.Records, func(was hibernate.Record) bool { return was.Target == is.Target })
	return at < 0 || v.facts.Records[at].Operation != is.Operation || is.State == hibernate.Running && v.facts.Records[at].State != hibernate.Running
}

// apply writes what was decided on, before anything of it is done.
func (c *Controller) apply(ctx context.Context, k types.NamespacedName, stored []*stored, d hibernate.Decision) error {
	for _, r := range d.Write {
		if _, err := c.write(ctx, k, among(stored, annotations.RestoreName(r.Plan, r.Target)), r); err != nil {
			return err
		}
	}
	return nil
}

// finish goes on with what is at work, and takes away what has served: only now, since
// the plan's status says that it is awake.
func (c *Controller) finish(ctx context.Context, k types.NamespacedName, stored []*stored, d hibernate.Decision) (time.Time, error) {
	var faults []error
	for _, s := range stored {
		if s.broken == nil && slices.Contains(d.Closed, s.record.Target) {
			faults = append(faults, c.records.close(ctx, s))
			c.watches.Drop(k, s.record.Target)
		}
	}
	again, err := c.passes(ctx, k, d.Acts)
	return again, errors.Join(append(faults, err)...)
}
