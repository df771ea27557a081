package freezes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/admissionread"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// labelledKind watches the objects of a kind that are labelled with a policy.
type labelledKind struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

// followPolicy watches the kinds that the admission policy looks at: it alone says what
// is enforced.
func (c *Controller) followPolicy(ctx context.Context) {
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", annotations.FreezePolicyName).String()}
	var policies cache.SharedIndexInformer
	take := func() { c.takeUp(ctx, policies.GetStore().List()) }
	answers := admissionread.ReadAccess{Now: c.Now}
	from := informer.ForMany(&admissionv1.ValidatingAdmissionPolicy{}, c.Clients.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies(), named, func(err error) {
		switch answers.Observe(err) {
		case admissionread.Denied:
			c.takeUp(ctx, nil)
		case admissionread.Restored: // a list tells nothing of what it told before
			take()
		}
	})
	policies, heard := informer.New(from, keepAll, cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { take() }, UpdateFunc: func(any, any) { take() }, DeleteFunc: func(any) { take() },
	})
	go informer.Run(ctx, policies)
	if cache.WaitForCacheSync(ctx.Done(), heard.HasSynced) {
		take() // also where there is none
	}
}

func keepAll(o any) (any, error) { return o, nil }

// takeUp watches what the policies name, and nothing else any more.
func (c *Controller) takeUp(ctx context.Context, policies []any) {
	wanted, more := wantedKinds(policies)
	if len(more) > 0 {
		c.Log.Warn("the admission policy of freezes names more kinds than are watched: objects of the rest are not frozen by their labels", "policy", annotations.FreezePolicyName, "watched", maxKinds, "more", len(more))
	}
	c.mu.Lock()
	c.unwatched = more
	news := !c.asked || c.installed != (len(policies) > 0)
	c.asked, c.installed = true, len(policies) > 0
	for resource, kind := range c.kinds {
		if !wanted[resource] {
			kind.stop()
			delete(c.kinds, resource)
			news = true
		}
	}
	for resource := range wanted {
		if c.kinds[resource] == nil {
			c.kinds[resource] = c.open(ctx, resource)
			news = true
		}
	}
	c.mu.Unlock()
	if news {
		c.EnqueueAll()
		c.wakeRuns(func(*store.LiveRun) bool { return true })
	}
}

// maxKinds is how many kinds are watched (a guess: the policy that is installed names a dozen, and
// each is a watch over the whole cluster).
const maxKinds = 50

// Condition says which kinds are not watched; none: all are, or none has to be.
func (c *Controller) Condition() []metav1.Condition {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unwatched) == 0 {
		return nil
	}
	names := make([]string, len(c.unwatched))
	for i, resource := range c.unwatched {
		names[i] = resource.GroupResource().String()
	}
	return []metav1.Condition{{
		Type: status.ConditionFreezes, Status: metav1.ConditionFalse, Reason: "TooManyKinds",
		Message: document.Cut(fmt.Sprintf("the admission policy %s names more than the %d kinds that are watched, so the label %s freezes no object of these %d: %s", annotations.FreezePolicyName, maxKinds, annotations.LabelFreeze, len(names), strings.Join(names, ", ")), 4*document.MaxMessage),
	}}
}

// wantedKinds are the kinds that policies look at, and those that are left out, in an order.
func wantedKinds(policies []any) (wanted map[schema.GroupVersionResource]bool, more []schema.GroupVersionResource) {
	wanted = map[schema.GroupVersionResource]bool{}
	for _, o := range policies {
		for _, resource := range enforcedKinds(o.(*admissionv1.ValidatingAdmissionPolicy)) {
			wanted[resource] = true
		}
	}
	all := slices.SortedFunc(maps.Keys(wanted), compareKinds) // the same ones each time
	more = all[min(len(all), maxKinds):]
	for _, resource := range more {
		delete(wanted, resource)
	}
	return wanted, more
}

func compareKinds(a, b schema.GroupVersionResource) int {
	return strings.Compare(a.String(), b.String())
}

// enforcedKinds are the kinds whose updates a policy looks at.
func enforcedKinds(p *admissionv1.ValidatingAdmissionPolicy) []schema.GroupVersionResource {
	var kinds []schema.GroupVersionResource
	if p.Spec.MatchConstraints == nil {
		return nil
	}
	for _, rule := range p.Spec.MatchConstraints.ResourceRules {
		if len(rule.APIVersions) == 0 || rule.APIVersions[0] == "*" {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if group != "*" && !strings.ContainsAny(resource, "/*") {
					kinds = append(kinds, schema.GroupVersionResource{Group: group, Version: rule.APIVersions[0], Resource: resource})
				}
			}
		}
	}
	return kinds
}

// open begins to watch a kind; its namespaces are looked at once it is known whole. It is
// no member of an informer.Set, which bounds what tenants choose to watch: these kinds are
// those of the cluster's admission policy, watched once each with the agent's own rights,
// and looked up by namespace, which a Set does not do.
func (c *Controller) open(ctx context.Context, resource schema.GroupVersionResource) *labelledKind {
	ctx, stop := context.WithCancel(ctx)
	seen := func(o any) {
		if gone, is := o.(cache.DeletedFinalStateUnknown); is {
			o = gone.Obj
		}
		if m, is := o.(*metav1.PartialObjectMetadata); is {
			c.enqueue(m.Namespace)
		}
	}
	var watch cache.SharedIndexInformer
	told := c.sayUnwatched(resource, func() bool { return watch.HasSynced() })
	from := informer.ForMany(&metav1.PartialObjectMetadata{}, c.Clients.Meta.Resource(resource), metav1.ListOptions{LabelSelector: annotations.LabelFreeze}, told)
	watch, heard := informer.New(from, slim, cache.ResourceEventHandlerFuncs{
		AddFunc: seen, UpdateFunc: func(was, is any) {
			if labelOf(was) != labelOf(is) {
				seen(is)
			}
		}, DeleteFunc: seen,
	})
	if err := watch.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}); err != nil {
		c.Log.Error("labelled objects cannot be looked up by namespace", "resource", resource.String(), "error", err.Error())
	}
	go informer.Run(ctx, watch)
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), heard.HasSynced) {
			c.EnqueueAll()
		}
	}()
	return &labelledKind{informer: watch, stop: stop}
}

// sayUnwatched says that a kind cannot be watched: once, until it can or something else is the matter.
func (c *Controller) sayUnwatched(resource schema.GroupVersionResource, known func() bool) func(error) {
	said := ""
	return func(err error) {
		was := said
		if said = ""; err != nil {
			said = err.Error()
		}
		if said == "" || said == was {
			return
		}
		lost := "no freeze of them is published"
		if known() {
			lost = "changes of their labels are not seen"
		}
		c.Log.Warn("labelled objects cannot be watched: "+lost+" until they can", "resource", resource.String(), "error", said)
	}
}

func labelOf(o any) string {
	return o.(*metav1.PartialObjectMetadata).Labels[annotations.LabelFreeze]
}

// slim keeps an object's name and its policy.
func slim(o any) (any, error) {
	m, is := o.(*metav1.PartialObjectMetadata)
	if !is {
		return o, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, DeletionTimestamp: m.DeletionTimestamp,
		Labels: map[string]string{annotations.LabelFreeze: m.Labels[annotations.LabelFreeze]},
	}}, nil
}

// in are the labelled objects of a namespace.
func (k *labelledKind) in(namespace string) []*metav1.PartialObjectMetadata {
	found, err := k.informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil
	}
	var all []*metav1.PartialObjectMetadata
	for _, o := range found {
		all = append(all, o.(*metav1.PartialObjectMetadata))
	}
	return all
}

// enforced says whether the admission policy looks at a kind. A run's target is named, whether its kind is
// watched or not.
func (c *Controller) enforced(of schema.GroupResource) bool {
	c.mu.Lock()
	more := c.unwatched
	c.mu.Unlock()
	if slices.ContainsFunc(more, func(r schema.GroupVersionResource) bool { return r.GroupResource() == of }) {
		return true
	}
	for resource := range c.watched() {
		if resource.GroupResource() == of {
			return true
		}
	}
	return false
}

// watched are the kinds that are watched now.
func (c *Controller) watched() map[schema.GroupVersionResource]*labelledKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[schema.GroupVersionResource]*labelledKind, len(c.kinds))
	for resource, kind := range c.kinds {
		all[resource] = kind
	}
	return all
}

// known are those of the kinds whose objects are known, in an order, and those whose
// objects are not all known yet.
func known(kinds map[schema.GroupVersionResource]*labelledKind) (whole []schema.GroupVersionResource, coming []string) {
	for resource, kind := range kinds {
		if kind.informer.HasSynced() {
			whole = append(whole, resource)
		} else {
			coming = append(coming, resource.GroupResource().String())
		}
	}
	slices.SortFunc(whole, compareKinds)
	return whole, coming
}
