package freezes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// reconcile publishes what is frozen in a namespace, and says when that changes.
func (c *Controller) reconcile(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	o, there, err := c.Stores.Namespaces.GetByKey(k.Name)
	if err != nil || !there || o.(*metav1.PartialObjectMetadata).DeletionTimestamp != nil {
		c.forget(k.Name)
		return time.Time{}, err
	}
	is := o.(*metav1.PartialObjectMetadata).Annotations[annotations.StatusFrozen]
	all, wake, ready := c.frozen(ctx, k.Name, is)
	if !ready { // nothing is opened because the agent does not know yet
		return time.Time{}, nil
	}
	text, left := annotations.FrozenText(all)
	c.warnOfLeftOut(k.Name, left)
	if text == is || c.Scope.DryRun {
		c.note(k.Name, publication{text: text})
		return wake, nil
	}
	err = c.write(ctx, k.Name, text)
	switch {
	case err == nil:
		c.note(k.Name, publication{text: text})
		return wake, nil
	case apierrors.IsNotFound(err):
		return time.Time{}, nil // the watch will say so
	}
	c.note(k.Name, publication{text: is, err: err})
	if client.IsRejectedForGood(err) || apierrors.IsForbidden(err) {
		c.Log.Warn("what is frozen could not be published", "namespace", k.Name, "error", err.Error())
		c.unpublished(ctx, k.Name, is, all, err)
		return queue.Soonest(wake, c.Now().Add(queue.ResyncPeriod)), nil
	}
	return time.Time{}, err
}

// unpublished says that what is frozen could not be published. Where somebody has filled the
// annotations of the namespace, what takes no more room than what stands there is written instead:
// otherwise what was open before would stay so.
func (c *Controller) unpublished(ctx context.Context, namespace, is string, all []annotations.Frozen, refused error) {
	counts := c.shorter(ctx, namespace, is, all, refused)
	c.warn(namespace, "FreezesNotPublished", "the list of frozen objects could not be written on the namespace; "+counts+": "+refused.Error())
}

// shorter writes what has room in place of what stands there, and returns what counts now.
func (c *Controller) shorter(ctx context.Context, namespace, is string, all []annotations.Frozen, refused error) string {
	former := "the former list still counts"
	if is == "" {
		former = "there was none before, so nothing is frozen"
	}
	short, left := annotations.FrozenTextWithin(all, len(is))
	if !apierrors.IsInvalid(refused) || short == is || len(short) > len(is) {
		return former
	}
	if err := c.write(ctx, namespace, short); err != nil {
		c.Log.Warn("what is frozen could not be published in fewer words", "namespace", namespace, "error", err.Error())
		return former
	}
	c.note(namespace, publication{text: short, err: refused})
	if slices.ContainsFunc(left, func(f annotations.Frozen) bool { return !f.Open }) {
		return "a shorter list is there instead, and all labelled objects that it does not name count as frozen"
	}
	return "a shorter list is there instead"
}

// warnOfLeftOut says what becomes of the objects that are not named on a namespace.
func (c *Controller) warnOfLeftOut(namespace string, left []annotations.Frozen) {
	if len(left) == 0 {
		return
	}
	what := "their policies permit change now; once one of them does not, all of them count as frozen"
	if slices.ContainsFunc(left, func(f annotations.Frozen) bool { return !f.Open }) {
		what = "they count as frozen, whatever their policies say"
	}
	c.warn(namespace, "TooManyFreezes", fmt.Sprintf("%d labelled objects have no room in %s: %s", len(left), annotations.StatusFrozen, what))
}

// note keeps what was done about a namespace; where that is news, runs that wait for it hear so.
func (c *Controller) note(namespace string, p publication) {
	c.mu.Lock()
	was := c.published[namespace]
	c.published[namespace] = p
	if p.text == "" && p.err == nil {
		delete(c.published, namespace)
	}
	c.mu.Unlock()
	if was.text == p.text && (was.err == nil) == (p.err == nil) {
		return
	}
	c.wakeRuns(func(l *store.LiveRun) bool { return l.Object.Namespace == namespace })
}

// wakeRuns has those runs look again that may wait for their targets to be frozen.
func (c *Controller) wakeRuns(match func(*store.LiveRun) bool) {
	for _, l := range c.Stores.Runs.Filter(func(l *store.LiveRun) bool { return freezes(l) && match(l) }) {
		c.WakeRun(l.Key())
	}
}

func (c *Controller) forget(namespace string) { c.note(namespace, publication{}) }

func (c *Controller) write(ctx context.Context, namespace, text string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotations.StatusFrozen: status.OrNull(text)}}})
	if err != nil {
		return fmt.Errorf("write what is frozen in %s: %w", namespace, err)
	}
	_, err = c.Clients.Meta.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Patch(ctx, namespace, types.MergePatchType, body, client.PatchOptions())
	if err != nil {
		return fmt.Errorf("write what is frozen in %s: %w", namespace, err)
	}
	return nil
}

// frozen is what there is to say of a namespace, and when that changes. What was said of
// a kind whose objects are not known yet goes on.
func (c *Controller) frozen(ctx context.Context, namespace, said string) (all []annotations.Frozen, wake time.Time, ready bool) {
	c.mu.Lock()
	asked := c.asked
	c.mu.Unlock()
	if !asked {
		return nil, time.Time{}, false
	}
	now := c.Now()
	kinds := c.watched()
	whole, coming := known(kinds)
	for _, f := range annotations.ParseFrozen(said) {
		if f.Run == "" && slices.Contains(coming, f.Resource) {
			all = append(all, f)
		}
	}
	for _, resource := range whole {
		for _, m := range kinds[resource].in(namespace) {
			f, changes := c.verdict(m, now)
			f.Resource = resource.GroupResource().String()
			all, wake = append(all, f), queue.Soonest(wake, changes)
		}
	}
	for _, l := range c.Stores.Runs.Filter(func(l *store.LiveRun) bool {
		return freezes(l) && l.Object.Namespace == namespace && l.Journal.Phase == run.Running
	}) {
		f, why := c.target(ctx, l)
		switch {
		case f != nil:
			all = append(all, *f)
		case why != "":
			c.warn(namespace, "TargetNotFrozen", fmt.Sprintf("the target of run %s is not frozen: %s", l.Object.Name, why))
		default: // it could not be asked: what was said goes on
			all, wake = append(all, heldBy(l.Object.Name, said)...), queue.Soonest(wake, now.Add(time.Second))
		}
	}
	return all, wake, true
}

// heldBy is what a namespace says of a run's target.
func heldBy(run, said string) []annotations.Frozen {
	return slices.DeleteFunc(annotations.ParseFrozen(said), func(f annotations.Frozen) bool { return f.Run != run })
}

// verdict is what the policy of a labelled object says now, and when that changes. A
// policy that is missing or broken permits nothing, as everywhere.
func (c *Controller) verdict(m *metav1.PartialObjectMetadata, now time.Time) (f annotations.Frozen, changes time.Time) {
	v := c.Stores.Gates.Ask(c.question(m)).Verdict(now)
	f = annotations.Frozen{Name: m.Name, Open: v.Permitted}
	if again := policy.AskAgain(v, now); again != nil {
		changes = *again
	}
	if v.Permitted {
		f.Until = v.Until
	}
	return f, changes
}

// question are the policies that an object's label names: of its own namespace and of the
// agent's, both of which count where both are there, since a tenant's own takes nothing from
// what an admin froze. Its namespace binds it beside.
func (c *Controller) question(m *metav1.PartialObjectMetadata) policy.Query {
	own := policy.PolicyRef{Name: m.Labels[annotations.LabelFreeze], Namespace: m.Namespace}
	shared := policy.PolicyRef{Name: own.Name, Namespace: c.Scope.Namespace}
	_, hasOwn := c.Stores.Gates.State(own.Namespace, own.Name)
	_, hasShared := c.Stores.Gates.State(shared.Namespace, shared.Name)
	q := policy.Query{Namespace: m.Namespace}
	if hasOwn || !hasShared {
		q.Gates = append(q.Gates, own)
	}
	if hasShared && own.Namespace != shared.Namespace {
		q.Gates = append(q.Gates, shared)
	}
	return q
}
