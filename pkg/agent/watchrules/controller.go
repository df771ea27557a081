// Package watchrules watches what plans' watch triggers name, as the plans' accounts.
package watchrules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
)

// flushDelay is how long a mark that nobody waits for may stay unwritten (a guess: a
// crash in that time is told by managedFields, or looks at the change again).
const flushDelay = 10 * time.Second

// judgeDelay is after how long, at least, changes are judged that could not be, since the conditions of the
// namespace had taken too much, and longDelay from when on the plan says so (guesses).
const (
	judgeDelay = 100 * time.Millisecond
	longDelay  = 10 * time.Second
)

// evaluator evaluates the conditions of a namespace's rules.
type evaluator struct {
	evaluations *queue.Evaluations
	namespace   string
}

// Left is watchrule.Evaluator's.
func (e evaluator) Left() bool { return e.evaluations.RefilledIn(e.namespace) == 0 }

// Evaluate is watchrule.Evaluator's.
func (e evaluator) Evaluate(condition func()) { e.evaluations.Measure(e.namespace, condition) }

// maxLookups is how many objects are looked up in one look at a plan (a guess: so
// many requests hold nothing up).
const maxLookups = 50

// Controller watch what plans' watch triggers name, as the plans' accounts. What
// is seen is judged by watchrule.Tracker; an event enqueues the plan only where it may
// ask for a run.
type Controller struct {
	Config
	watches *informer.Set
	mu      sync.Mutex
	plans   map[types.NamespacedName]*subscription
	backlog *backlog
	budget  memoryBudget

	refusals *store.Refusals[hiddenObject]
}

// subscription is a plan with watch rules, as long as it is looked at.
type subscription struct {
	key     types.NamespacedName
	uid     string
	text    string                 // of the plan, as it was when its rules were last taken up
	rules   map[string]*openedRule // by id; of the plan's worker alone
	flushed time.Time              // the same
	mu      sync.Mutex
	tracker *watchrule.Tracker
	kept    int       // bytes of objects, as they were noted last
	dropped bool      // it is looked at no more
	doubt   time.Time // until then a lost answer is in doubt
	early   time.Time // until then, what was written before the tracker was there

	unread   map[unreadableKey]unreadable // what its rules could not be told of
	readNext time.Time                    // when that is tried again; of the plan's worker alone
}

// openedRule is a rule and the watch that it listens to.
type openedRule struct {
	watch    *informer.Use // nil: none is needed, or it could not be opened
	late     bool          // it joined a watch that had told others already
	compared bool          // with what the ledger knew
	trouble  string
	failed   time.Time // when its condition was last said to fail
	untold   int       // how often it has failed since
}

// Config is what rules are watched with.
type Config struct {
	Accounts *client.Impersonator
	Ledgers  *store.Ledgers
	Runs     *store.Runs
	Plans    interface { // that are to be looked at
		Add(types.NamespacedName)
		AddAfter(types.NamespacedName, time.Duration)
	}
	Evaluations *queue.Evaluations // of conditions
	Events      record.EventRecorder
	Log         *slog.Logger
	Now         func() time.Time
}

// New watches nothing yet.
func New(c Config) *Controller {
	bound := informer.Bound{Max: maxOpen, Of: "watch rules", Advice: "let rules share kind, namespace and selector, or spread the plans over namespaces"}
	return &Controller{Config: c, watches: informer.NewSet(bound), plans: map[types.NamespacedName]*subscription{}, backlog: newBacklog(), budget: memoryBudget{byNamespace: map[string]int{}}, refusals: store.NewRefusals[hiddenObject]()}
}

// Count is how many watches are open.
func (r *Controller) Count() int { return r.watches.Count() }

// of is a plan that has watch rules, or nil.
func (r *Controller) of(k types.NamespacedName) *subscription {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plans[k]
}

// Drop ends a plan's watches.
func (r *Controller) Drop(k types.NamespacedName) {
	wp := r.of(k)
	if wp == nil {
		return
	}
	for id := range wp.rules {
		r.close(wp, id)
	}
	r.forget(wp)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.plans, k)
}

// Observe looks through a plan's watches: it fills in the changes that ask for a
// run, and why a rule sees nothing.
func (r *Controller) Observe(ctx context.Context, cm *corev1.ConfigMap, known *store.CachedPlan, f *trigger.Facts) error {
	k := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
	rules := known.Spec.Triggers.Watch
	if len(rules) == 0 && (f.State.Ledger == nil || len(f.State.Ledger.Rules) == 0) {
		r.Drop(k)
		return nil
	}
	wp, err := r.take(ctx, k, known, f, cm.Data[annotations.DataPlan])
	if err != nil {
		return err
	}
	w := client.Account{Namespace: k.Namespace, Name: plan.Account(known.Spec)}
	for _, rule := range rules {
		r.keep(ctx, wp, w, rule, plan.RuleID(rule, known.Spec.MirrorPrefix))
	}
	r.readAgain(ctx, wp, f.Now)
	if err := r.confirm(ctx, wp); err != nil {
		return err
	}
	wp.mu.Lock()
	defer wp.mu.Unlock()
	if f.State.Ledger != nil {
		wp.tracker.Overlay(f.State.Ledger.Seen)
	}
	wp.tracker.SetUncertainty(wp.doubts(f.Now))
	var all bool
	if f.Watched, all = wp.tracker.Candidates(evaluator{r.Evaluations, k.Namespace}); !all {
		pause := r.Evaluations.RefilledIn(k.Namespace)
		if pause >= longDelay {
			f.Unwatched = fmt.Sprintf("the conditions of the watch rules in namespace %s take more of the agent's CPU than they may: changes are looked at later", k.Namespace)
		}
		r.Plans.AddAfter(k, max(judgeDelay, min(4*pause, pause+2*time.Second))) // many plans may wait, and one look serves one of them
	}
	r.account(wp, "") // what was handled or forgotten
	for _, rule := range rules {
		id := plan.RuleID(rule, known.Spec.MirrorPrefix)
		f.Unwatched = cmp.Or(f.Unwatched, wp.rules[id].trouble, wp.unseen(rule, id))
	}
	r.recordFailures(cm, wp, f.Now)
	return nil
}

// failurePause is how often a rule is said to fail: each change of what it watches may have it do so.
const failurePause = time.Minute

// recordFailures sends an Event of each rule that its condition fails, and for how many changes that was not said.
func (r *Controller) recordFailures(cm *corev1.ConfigMap, wp *subscription, now time.Time) {
	for _, failure := range wp.tracker.Failures() {
		o := wp.rules[failure.Rule]
		if o == nil { // it is gone since
			continue
		}
		if now.Before(o.failed.Add(failurePause)) {
			o.untold++
			continue
		}
		more := ""
		if o.untold > 0 {
			more = fmt.Sprintf("; %d more changes since the last such Event started none either", o.untold)
		}
		o.failed, o.untold = now, 0
		r.Events.Eventf(cm, corev1.EventTypeWarning, "WatchConditionFailed", "The %s of %s/%s started no run, its condition cannot be evaluated: %s%s", failure.Event, failure.Kind, failure.Name, document.Cut(failure.Err.Error(), 512), more)
	}
}

// take is the plan's tracker, with what the ledger knows of its rules. Rules that
// the plan no longer has are closed; those that were beyond a limit are tried again
// when its text has changed.
func (r *Controller) take(ctx context.Context, k types.NamespacedName, known *store.CachedPlan, f *trigger.Facts, text string) (*subscription, error) {
	wp := r.of(k)
	if wp != nil && wp.uid != f.Plan.UID {
		r.Drop(k)
		wp = nil
	}
	fresh := wp == nil
	if fresh {
		wp = &subscription{key: k, uid: f.Plan.UID, rules: map[string]*openedRule{}, unread: map[unreadableKey]unreadable{}, early: f.Now.Add(doubtful)}
		wp.tracker = watchrule.NewTracker(f.Plan.UID, annotations.PlanManager(k.Namespace, k.Name), annotations.ManagerAgent)
	}
	if wp.text != text {
		r.reopen(wp)
		wp.text = text
	}
	wanted, anew := map[string]bool{}, false
	for _, rule := range known.Spec.Triggers.Watch {
		id := plan.RuleID(rule, known.Spec.MirrorPrefix)
		wanted[id] = true
		anew = anew || wp.rules[id] == nil
	}
	for id := range wp.rules {
		if !wanted[id] {
			r.close(wp, id)
		}
	}
	wp.mu.Lock()
	wp.tracker.SetRules(known.Spec.Triggers.Watch, known.Spec.MirrorPrefix)
	wp.mu.Unlock()
	if anew {
		if err := r.load(ctx, wp, wanted, f); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plans[k] = wp
	return wp, nil
}

// reopen forgets the rules that were beyond a limit.
func (r *Controller) reopen(wp *subscription) {
	for id := range wp.rules {
		wp.mu.Lock()
		full := wp.tracker.Full(id) != ""
		if full {
			wp.tracker.Forget(id)
		}
		wp.mu.Unlock()
		if full {
			r.close(wp, id)
		}
	}
}

// load hands the tracker what the ledger knows of rules that were not looked at
// yet.
func (r *Controller) load(ctx context.Context, wp *subscription, wanted map[string]bool, f *trigger.Facts) error {
	marks := map[string]map[string]ledger.Checkpoint{}
	if f.State.Ledger != nil {
		found, lost, err := r.Ledgers.Checkpoints(ctx, wp.key, wp.uid, *f.State.Ledger)
		if err != nil {
			return err
		}
		if lost {
			r.Log.Warn("a part of what a plan has seen is gone: what is there is recorded anew", "plan", wp.key.String())
			if f.State.Ledger, err = r.Ledgers.Get(ctx, wp.key, wp.uid); err != nil {
				return err
			}
		}
		marks = found
	}
	wp.mu.Lock()
	defer wp.mu.Unlock()
	for id := range wanted {
		if wp.rules[id] != nil {
			continue
		}
		wp.rules[id] = &openedRule{}
		if have, started := marks[id]; started {
			wp.tracker.Load(id, have)
		}
	}
	return nil
}

// keep makes sure that a rule listens to the watch that it needs. One that is
// beyond a limit needs none.
func (r *Controller) keep(ctx context.Context, wp *subscription, w client.Account, rule plan.Watch, id string) {
	o := wp.rules[id]
	if r.full(wp, id) {
		return
	}
	k, err := r.keyOf(w, rule)
	if err != nil {
		o.trouble = fmt.Sprintf("the watch of %s: %s", rule, err)
		return
	}
	if o.watch != nil && o.watch.Key() != k {
		r.leave(wp, id)
	}
	if o.watch == nil {
		if err := r.listen(ctx, wp, id, k); err != nil {
			o.trouble = err.Error()
			return
		}
	}
	o.trouble = ""
	if trouble := o.watch.Trouble(); trouble != nil {
		o.trouble = blind(rule, trouble)
	}
	if o.trouble != "" || o.compared || !o.watch.Synced() {
		return
	}
	if err := r.catchUp(ctx, wp, id); err != nil {
		o.trouble = err.Error()
		r.Plans.AddAfter(wp.key, flushDelay)
		return
	}
	if r.full(wp, id) {
		return
	}
	there := listed(o.watch)
	wp.mu.Lock()
	defer wp.mu.Unlock()
	wp.tracker.NoteListed(id, func(uid string) bool { return there[uid] })
	o.compared = true
}

// full takes a rule that is beyond a limit off its watch, and says whether it is.
func (r *Controller) full(wp *subscription, id string) bool {
	wp.mu.Lock()
	full := wp.tracker.Full(id)
	wp.mu.Unlock()
	if full == "" {
		return false
	}
	r.leave(wp, id)
	wp.rules[id].trouble = full
	return true
}

// maxOpen is how many watches are open for the plans of one namespace (a guess: three
// plans that use all their rules).
const maxOpen = 64

// listen opens a watch, or joins one that is open. A rule that a watch is too much for leaves
// it here and now: the last one ends it before it has read the rest.
func (r *Controller) listen(ctx context.Context, wp *subscription, id string, k informer.Key) error {
	wp.mu.Lock() // nothing is told before it is known what may be left
	defer wp.mu.Unlock()
	var use *informer.Use
	use, err := r.watches.Join(ctx, k, r.source(k), informer.Member{
		Established: func() { r.Plans.Add(wp.key) },
		Changed: func(o any, gone bool) {
			object, ok := o.(*ruleObject)
			if !ok || object.ours {
				return
			}
			if object.later && !gone {
				fresh, leave, why := r.read(ctx, k, object)
				if fresh == nil {
					r.missed(wp, id, object, why)
					return
				}
				defer leave()
				object = fresh
			}
			wp.mu.Lock()
			urgency := wp.hear(id, object, gone)
			if r.account(wp, id) {
				urgency = watchrule.UrgencyNow
			}
			if wp.tracker.Full(id) != "" {
				use.Leave()
			}
			wp.mu.Unlock()
			r.enqueue(wp, urgency)
		},
	})
	if err != nil {
		return err
	}
	wp.rules[id].watch, wp.rules[id].late = use, use.Late
	return nil
}

// hear tells a rule of an object.
func (wp *subscription) hear(id string, o *ruleObject, gone bool) watchrule.Urgency {
	urgency := watchrule.UrgencyNone
	if wp.miss(o.where(id), nil) { // the plan says so no more
		urgency = watchrule.UrgencyNow
	}
	if gone {
		return max(urgency, wp.tracker.NoteMissing(id, string(o.UID), o.body))
	}
	return max(urgency, wp.tracker.Observe(id, o.asObservation()))
}

// missed notes that a rule cannot be told of an object, which its plan has to say; without an
// error there is nothing to tell.
func (r *Controller) missed(wp *subscription, id string, o *ruleObject, why error) {
	wp.mu.Lock()
	news := wp.tracker.Full(id) == "" && wp.miss(o.where(id), why)
	wp.mu.Unlock()
	if news {
		r.Plans.Add(wp.key)
	}
}

// catchUp shows a rule that joined late what its watch has told already: the
// watch keeps no bodies.
func (r *Controller) catchUp(ctx context.Context, wp *subscription, id string) error {
	o := wp.rules[id]
	if !o.late {
		return nil
	}
	err := o.watch.List(ctx, func(listed runtime.Object) bool {
		u, is := listed.(*unstructured.Unstructured)
		if !is || agentWrote(u) {
			return true
		}
		wp.mu.Lock()
		defer wp.mu.Unlock()
		wp.tracker.Observe(id, ruleObjectOf(u).asObservation())
		r.account(wp, id)
		return wp.tracker.Full(id) == ""
	})
	if err != nil {
		return fmt.Errorf("list what %s shows: %w", o.watch.Key(), err)
	}
	o.late = false
	return nil
}

func (r *Controller) enqueue(wp *subscription, s watchrule.Urgency) {
	switch s {
	case watchrule.UrgencyNow:
		r.Plans.Add(wp.key)
	case watchrule.UrgencyLater:
		r.Plans.AddAfter(wp.key, flushDelay)
	}
}

// close ends a rule's interest, and forgets it.
func (r *Controller) close(wp *subscription, id string) {
	r.leave(wp, id)
	delete(wp.rules, id)
}

// leave takes a rule off the watch that it listens to; the last one ends it.
func (r *Controller) leave(wp *subscription, id string) {
	o := wp.rules[id]
	if o == nil || o.watch == nil {
		return
	}
	o.watch.Leave()
	o.watch, o.late, o.compared = nil, false, false
	wp.mu.Lock()
	defer wp.mu.Unlock()
	maps.DeleteFunc(wp.unread, func(k unreadableKey, _ unreadable) bool { return k.rule == id })
}

// confirm asks about objects that a watch no longer shows: deleted, or out of the
// selection.
func (r *Controller) confirm(ctx context.Context, wp *subscription) error {
	wp.mu.Lock()
	asked := wp.tracker.Unconfirmed()
	wp.mu.Unlock()
	for i, o := range asked {
		if i == maxLookups {
			r.Plans.AddAfter(wp.key, 5*time.Second) // some may stay unanswered for long
			return nil
		}
		if wp.rules[o.Rule].watch == nil {
			continue
		}
		k := wp.rules[o.Rule].watch.Key()
		c, err := r.Accounts.Clients(client.Account(k.As), "")
		if err != nil {
			return err
		}
		found, err := lookUp(ctx, c.Dynamic, k.Resource, "", o)
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			continue // the watch itself will say so
		}
		if err != nil && !isTooLarge(err) {
			return err
		}
		wp.mu.Lock()
		if wp.miss(o, err); err == nil {
			wp.tracker.Confirm(o, found != nil)
		}
		wp.mu.Unlock()
	}
	return nil
}

// Note adds to a decision what is to be kept of the plan's watches, and writes
// what goes to the shards. What it returns is to be told whether the ledger was
// written.
func (r *Controller) Note(ctx context.Context, k types.NamespacedName, f trigger.Facts, d *trigger.Decision) (func(ctx context.Context, written bool) error, error) {
	wp := r.of(k)
	if wp == nil || len(f.Plan.Faults) > 0 || f.ClockDoubt != "" {
		return func(context.Context, bool) error { return nil }, nil
	}
	wp.mu.Lock()
	due := f.Now.Sub(wp.flushed) >= flushDelay
	b := wp.tracker.Update(f.State.Ledger, d.Ledger, d.Changed, len(d.Claims) > 0, due)
	for id, o := range wp.rules {
		if o.compared && o.trouble == "" && len(wp.unreadOf(id)) == 0 { // what is there at first is recorded whole
			wp.tracker.UpdateStart(&b, id)
		}
	}
	wp.mu.Unlock()
	if b.Changed || len(b.Shards) > 0 {
		wp.flushed = f.Now
	}
	if len(b.Shards)+len(b.Anew) > 0 {
		was := b.Ledger.Shards
		if err := r.Ledgers.MergeCheckpoints(ctx, k, wp.uid, &b.Ledger, b.Keeps, b.Shards, b.Anew); err != nil {
			r.booked(wp, b, nil, false)
			return nil, err
		}
		b.Changed = b.Changed || b.Ledger.Shards != was
	}
	d.Ledger, d.Changed = b.Ledger, b.Changed
	return func(ctx context.Context, written bool) error {
		r.booked(wp, b, d.Claims, written)
		if !written || !b.Prune {
			return nil
		}
		ledger := b.Ledger
		return r.Ledgers.MergeCheckpoints(ctx, k, wp.uid, &ledger, ledger.Kept, nil, nil)
	}, nil
}

func (r *Controller) booked(wp *subscription, b watchrule.LedgerUpdate, claims []run.Request, written bool) {
	wp.mu.Lock()
	defer wp.mu.Unlock()
	r.enqueue(wp, wp.tracker.Recorded(b, claims, written))
	if len(wp.tracker.Unwritten(false)) > 0 {
		r.Plans.AddAfter(wp.key, flushDelay)
	}
}

// doubts are whose writes may still come to light at an instant. An earlier
// agent's, and those that were under way when the plan was taken up, may show in
// the watch after the list that did not have them.
func (wp *subscription) doubts(now time.Time) watchrule.Uncertainty {
	switch {
	case now.Before(wp.doubt):
		return watchrule.DoubtLost
	case now.Before(wp.early):
		return watchrule.DoubtEarly
	}
	return watchrule.NoDoubt
}

// Watching is how many objects a plan watches, as its status says it.
func (r *Controller) Watching(k types.NamespacedName) string {
	wp := r.of(k)
	if wp == nil {
		return ""
	}
	wp.mu.Lock()
	defer wp.mu.Unlock()
	return fmt.Sprint(wp.tracker.Watching())
}

// Watched is the object that a request is about: as it was last seen, or, where
// its rule keeps no objects or this agent has not seen it, as it is read now.
func (r *Controller) Watched(ctx context.Context, k types.NamespacedName, w client.Account, req run.Request) (run.Body, error) {
	if req.Kind != run.ByWatch || req.Event == plan.EventDelete {
		return req.Watched(nil), nil
	}
	if wp := r.of(k); wp != nil {
		wp.mu.Lock()
		body := wp.tracker.Body(req.Rule, req.UID)
		wp.mu.Unlock()
		if body != nil {
			return req.Watched(body), nil
		}
	}
	rule := plan.Watch{APIVersion: req.APIVersion, Kind: req.ObjectKind, Namespace: req.Namespace}
	rk, err := r.keyOf(w, rule)
	if client.UnknownKind(err) {
		return req.Watched(nil), nil // the kind is gone, and the object with it
	}
	if err != nil {
		return nil, err
	}
	c, err := r.Accounts.Clients(w, "")
	if err != nil {
		return nil, err
	}
	found, err := lookUp(ctx, c.Dynamic, rk.Resource, "", watchrule.ObjectKey{UID: req.UID, Namespace: req.Namespace, Name: req.Name})
	gone := err == nil && found == nil
	if apierrors.IsNotFound(err) {
		var asked error
		gone, asked = r.Accounts.KindGone(schema.FromAPIVersionAndKind(req.APIVersion, req.ObjectKind))
		err = errors.Join(err, asked)
	}
	switch {
	case isTooLarge(err):
		body := req.Watched(nil)
		body["truncated"] = true
		return body, nil
	case gone || err != nil && r.hidden(ctx, c, k, rk, req, err):
		return req.Watched(nil), nil
	case err != nil:
		return nil, err
	}
	r.refusals.Clear(hiddenObject{k, req.Rule, req.UID})
	return req.Watched(found.Object), nil
}

// hiddenObject is an object of a request that its account may not read.
type hiddenObject struct {
	plan      types.NamespacedName
	rule, uid string
}

// hidden says whether an account may not read the object of a request any more,
// which is believed when it was said for half a minute.
func (r *Controller) hidden(ctx context.Context, c executors.Clients, k types.NamespacedName, rk informer.Key, req run.Request, refusal error) bool {
	asked := executors.Asked{As: client.Account(rk.As).User(), Right: authorizationv1.ResourceAttributes{
		Verb: "list", Group: rk.Resource.Group, Version: rk.Resource.Version, Resource: rk.Resource.Resource, Namespace: req.Namespace, Name: req.Name,
	}}
	out, is := executors.Refused(ctx, c.Kube, r.Now(), asked, refusal)
	of := hiddenObject{k, req.Rule, req.UID}
	if !is || out.Reason != executors.ReasonForbidden || !out.Permanent {
		r.refusals.Clear(of)
		return false
	}
	_, final := r.refusals.Record(of, r.Now())
	if final {
		r.refusals.Clear(of)
	}
	return final
}
