package plans

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/targets"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// readinessCheck is what a live look at a plan's readiness found.
type readinessCheck struct {
	ready  trigger.Readiness
	by     blocker // what keeps it from being ready; the zero value: its target
	target *trigger.Target
}

// decide asks the pure core, first as if the plan were ready; only when
// something would start, or nothing is known yet, is readiness looked up live.
func (c *Controller) decide(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *store.CachedPlan, f *trigger.Facts) (trigger.Decision, error) {
	d := trigger.Decide(*f)
	if len(f.Plan.Faults) > 0 || !f.Ready.OK {
		return d, nil
	}
	remembered := known.Spec.Target == nil || d.Ledger.TargetReady != "" // that it was once ready, for the time when it is not
	if len(d.Claims) == 0 && known.Readiness.Done && known.Readiness.Ready.OK && remembered {
		c.blockers.leave(k)
		return d, nil
	}
	newest := ""
	if n := len(d.Claims); n > 0 {
		newest = f.NameOf(d.Claims[n-1])
	}
	if c.stillNotReady(k, informer.VersionOf(cm), known, newest, f.Now) {
		f.Ready = known.Readiness.Ready
		return trigger.Decide(*f), nil
	}
	check, err := c.readiness(ctx, k, known, f)
	if err != nil {
		return d, err
	}
	c.noteReadiness(k, known, &check, f.Now)
	known.Readiness.Version, known.Readiness.Newest = informer.VersionOf(cm), newest
	f.Ready = check.ready
	if f.Target == nil {
		f.Target = check.target
	}
	d = trigger.Decide(*f)
	if f.Target != nil && f.Ready.OK && d.Ledger.TargetReady != f.Target.UID {
		d.Ledger.TargetReady, d.Changed = f.Target.UID, true
	}
	return d, nil
}

// stillNotReady says whether a plan that was not ready need not be looked at live:
// nothing has been heard of what it waits for, nobody wrote on it but us, no other
// run would begin, and the time to ask all the same has not come.
func (c *Controller) stillNotReady(k types.NamespacedName, version uint64, known *store.CachedPlan, newest string, now time.Time) bool {
	last := known.Readiness
	if !last.Done || last.Ready.OK || !now.Before(last.Ready.Again) || newest != "" && newest != last.Newest {
		return false
	}
	if version != last.Version && version != known.Written.Version {
		return false
	}
	_, settled := c.blockers.waits(k)
	return settled
}

// noteReadiness keeps what was found. A plan that is not ready waits for news, and
// is looked at again after a while where there is none.
func (c *Controller) noteReadiness(k types.NamespacedName, known *store.CachedPlan, check *readinessCheck, began time.Time) {
	looks := 0
	if check.ready.OK {
		c.blockers.leave(k)
		if len(known.Spec.Triggers.Labels) == 0 {
			c.Watches.Targets.Drop(k)
		}
	} else {
		c.blockers.wait(k, check.by, began)
		looks = known.Readiness.Failures + 1
		check.ready.Again = c.Now().Add(c.blockers.pause(check.by, c.Watches.Targets.IsWatched(k), looks-1))
	}
	known.Readiness = store.ReadinessCheck{Done: true, Ready: check.ready, Failures: looks}
}

// readiness asks whether a run of the plan could start: its account is there,
// may do what the end of a run needs, and its target is there and was ready.
func (c *Controller) readiness(ctx context.Context, k types.NamespacedName, known *store.CachedPlan, f *trigger.Facts) (readinessCheck, error) {
	w := client.Account{Namespace: k.Namespace, Name: plan.Account(known.Spec)}
	missing, err := c.missingAccount(ctx, w)
	if err != nil {
		return readinessCheck{}, err
	}
	if missing != "" {
		return readinessCheck{ready: notReadyYet(run.ReasonNotReady, missing), by: blocker{who: w}}, nil
	}
	if known.Spec.Target == nil {
		return readinessCheck{ready: trigger.Readiness{OK: true}}, nil
	}
	if f.Target == nil {
		return c.liveTarget(ctx, k, w, known, f)
	}
	return c.targetRights(ctx, w, known)
}

// targetRights asks whether the plan may end what its target's labels ask for.
func (c *Controller) targetRights(ctx context.Context, w client.Account, known *store.CachedPlan) (readinessCheck, error) {
	target := known.Spec.Target
	on := known.Cluster()
	refused, err := client.Ask(ctx, c.Clients.Accounts, w, "", on, func(ctx context.Context, from client.ClusterAccess) (string, error) {
		mapping, err := from.Resolve(target.APIVersion, target.Kind)
		if err != nil {
			return "", kindError{err}
		}
		for _, verb := range []string{"get", "patch"} {
			if refused, err := from.Refused(ctx, verb, mapping.Resource, target.Name); refused != "" || err != nil {
				return refused, err
			}
		}
		return "", nil
	})
	var kind kindError
	switch {
	case on != nil && err != nil:
		return readinessCheck{ready: notReadyYet(run.ReasonTarget, err.Error())}, nil
	case errors.As(err, &kind):
		return readinessCheck{ready: notReadyYet(run.ReasonTarget, err.Error()), by: kindBlocker(target)}, nil
	case err != nil:
		return readinessCheck{}, err
	case refused != "" && on != nil: // nobody here hears of rights there
		return readinessCheck{ready: notReadyYet(run.ReasonNotReady, refused)}, nil
	case refused != "":
		return readinessCheck{ready: notReadyYet(run.ReasonNotReady, refused), by: blocker{who: w}}, nil
	}
	return readinessCheck{ready: trigger.Readiness{OK: true}}, nil
}

// kindError is a kind that was not found.
type kindError struct{ error }

// Unwrap is why.
func (e kindError) Unwrap() error { return e.error }

// missingAccount says that an account is not there. The first plan of an account
// asks for all that wait for it.
func (c *Controller) missingAccount(ctx context.Context, w client.Account) (string, error) {
	if c.blockers.missing(w) {
		return client.MissingMessage(w), nil
	}
	return c.Clients.Accounts.Missing(ctx, w)
}

func notReadyYet(reason, message string) trigger.Readiness {
	return trigger.Readiness{Reason: reason, Message: message}
}

func kindBlocker(ref *plan.ObjectRef) blocker {
	return blocker{kind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)}
}

// liveTarget looks at the target of a plan without label triggers. One that is
// not there or was never ready is watched until it is, where the account may.
func (c *Controller) liveTarget(ctx context.Context, k types.NamespacedName, w client.Account, known *store.CachedPlan, f *trigger.Facts) (readinessCheck, error) {
	ref, on := *known.Spec.Target, known.Cluster()
	object, err := c.readTarget(ctx, w, known)
	var gone targets.GoneError
	var unreadable targets.UnreadableError
	switch {
	case errors.As(err, &gone):
		c.awaitTarget(ctx, k, w, known, 0, f.Now)
		return readinessCheck{ready: notReadyYet(run.ReasonTarget, gone.Error())}, nil
	case err != nil && on != nil: // the plan says so, and looks again: its slots go on meanwhile
		return readinessCheck{ready: notReadyYet(run.ReasonTarget, err.Error())}, nil
	case apierrors.IsForbidden(err):
		return readinessCheck{ready: notReadyYet(run.ReasonTarget, err.Error()), by: blocker{who: w}}, nil
	case client.UnknownKind(err), errors.As(err, &unreadable):
		return readinessCheck{ready: notReadyYet(run.ReasonTarget, err.Error()), by: kindBlocker(&ref)}, nil
	case err != nil:
		return readinessCheck{}, err
	}
	if object.NotReady != "" && (f.State.Ledger == nil || f.State.Ledger.TargetReady != string(object.ObjectID())) {
		c.awaitTarget(ctx, k, w, known, informer.Version(object.ResourceVersion), f.Now)
		return readinessCheck{ready: notReadyYet(run.ReasonTarget, fmt.Sprintf("%s was never ready yet: %s", ref, object.NotReady))}, nil
	}
	noteAnnotations(k, known, object, f)
	return readinessCheck{ready: trigger.Readiness{OK: true}, target: object.Facts(nil)}, nil
}

// targetKey is how a plan's target is watched. Where its kind is not known yet it is not.
func (c *Controller) targetKey(ctx context.Context, w client.Account, known *store.CachedPlan) (targets.Key, error) {
	target := known.Spec.Target
	return client.Ask(ctx, c.Clients.Accounts, w, "", known.Cluster(), func(_ context.Context, from client.ClusterAccess) (targets.Key, error) {
		mapping, err := from.Resolve(target.APIVersion, target.Kind)
		if err != nil {
			return targets.Key{}, err
		}
		return targets.Key{Account: w, Resource: mapping.Resource, Cluster: mapping.Scope.Name() != meta.RESTScopeNameNamespace, Where: from.Where()}, nil
	})
}

// awaitTarget has the plan looked at again as soon as its target is no longer at a
// version; 0 is a target that is not there. It waits before the watch is there, so
// that nothing that the watch says is lost.
func (c *Controller) awaitTarget(ctx context.Context, k types.NamespacedName, w client.Account, known *store.CachedPlan, version uint64, began time.Time) {
	c.blockers.wait(k, blocker{}, began)
	key, err := c.targetKey(ctx, w, known)
	if err != nil {
		return // it is asked for again all the same
	}
	key.Names = true
	c.Watches.Targets.Await(ctx, k, key, *known.Spec.Target, version)
}

// labelTarget looks at the target of a plan with label triggers, through a watch.
func (c *Controller) labelTarget(ctx context.Context, k types.NamespacedName, known *store.CachedPlan, f *trigger.Facts) {
	if len(known.Spec.Triggers.Labels) == 0 || known.Spec.Target == nil {
		if waits, _ := c.blockers.waits(k); !waits {
			c.Watches.Targets.Drop(k)
		}
		return
	}
	w, on := client.Account{Namespace: k.Namespace, Name: plan.Account(known.Spec)}, known.Cluster()
	key, err := c.targetKey(ctx, w, known)
	if err != nil {
		by := kindBlocker(known.Spec.Target)
		if on != nil {
			by = blocker{}
		}
		f.Ready = c.waitFor(k, by, notReadyYet(run.ReasonTarget, err.Error()), f.Now)
		return
	}
	tw := c.Watches.Targets.Keep(ctx, k, key, known.Spec.Target.Name)
	namespace := k.Namespace
	if key.Cluster {
		namespace = ""
	}
	object, failure := tw.Get(namespace, known.Spec.Target.Name)
	if failure != "" && on == nil { // of an account that is not there everything is forbidden
		if missing, err := c.missingAccount(ctx, w); err == nil && missing != "" {
			f.Ready = c.waitFor(k, blocker{who: w}, notReadyYet(run.ReasonNotReady, missing), f.Now)
			return
		}
	}
	if object != nil && c.Watches.Targets.Expectations().Stale(object.ObjectID(), object.ResourceVersion) {
		object = c.liveObject(ctx, w, known, object)
	}
	switch {
	case failure != "" && on != nil:
		f.Ready = c.waitFor(k, blocker{}, notReadyYet(run.ReasonTarget, failure), f.Now)
	case failure != "":
		f.Ready = c.waitFor(k, blocker{who: w}, notReadyYet(run.ReasonTarget, failure), f.Now)
	case object == nil:
		c.blockers.leave(k)
		f.Ready = notReadyYet(run.ReasonTarget, targets.GoneError{Ref: *known.Spec.Target}.Error())
	default:
		f.Target = object.Facts(known.Spec.Triggers.Labels)
		noteAnnotations(k, known, object, f)
		if object.NotReady != "" && (f.State.Ledger == nil || f.State.Ledger.TargetReady != f.Target.UID) {
			c.blockers.leave(k)
			f.Ready = notReadyYet(run.ReasonTarget, fmt.Sprintf("%s was never ready yet: %s", known.Spec.Target, object.NotReady))
		}
	}
}

// liveObject is a target as it is now; as it was seen last where it cannot be read.
func (c *Controller) liveObject(ctx context.Context, w client.Account, known *store.CachedPlan, seen *targets.Object) *targets.Object {
	live, err := c.readTarget(ctx, w, known)
	if err != nil {
		return seen
	}
	return live
}

// readTarget reads a plan's target live.
func (c *Controller) readTarget(ctx context.Context, w client.Account, known *store.CachedPlan) (*targets.Object, error) {
	return client.Ask(ctx, c.Clients.Accounts, w, "", known.Cluster(), func(ctx context.Context, from client.ClusterAccess) (*targets.Object, error) {
		u, err := targets.Read(ctx, from, *known.Spec.Target)
		if err != nil {
			return nil, err
		}
		return targets.Slim(u, from.Where()), nil
	})
}

// waitFor is for what is found without a request: whatever wakes the plan may look
// again.
func (c *Controller) waitFor(k types.NamespacedName, by blocker, ready trigger.Readiness, began time.Time) trigger.Readiness {
	c.blockers.wait(k, by, began)
	ready.Again = began.Add(c.blockers.pause(by, false, 0))
	return ready
}

// noteAnnotations notes whether the plan's mirror stands on its target, and lets the target's users
// skip the plan's slots there.
func noteAnnotations(k types.NamespacedName, known *store.CachedPlan, object *targets.Object, f *trigger.Facts) {
	known.Mirror.Seen = annotations.MirroredOn(object.Annotations, known.Spec.MirrorPrefix, k.Name)
	if annotations.SkippedOn(object.Annotations, known.Spec.MirrorPrefix, k.Name) {
		f.Plan.Intent.Skip.All = true
	}
}
