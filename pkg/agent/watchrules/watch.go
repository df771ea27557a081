package watchrules

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
)

// ruleKey tells open watches apart: rules that look at the same share one.
type ruleKey struct {
	who       client.Account
	resource  schema.GroupVersionResource
	namespace string // empty: all, or of the cluster
	selector  string
}

func (k ruleKey) String() string {
	s := k.resource.GroupResource().String()
	if k.namespace != "" {
		s += " in namespace " + k.namespace
	}
	return s
}

// ruleObject is a watched object on its way to the rules, and what is kept of it
// afterwards: who it is.
type ruleObject struct {
	metav1.ObjectMeta
	body    run.Body           // until it was told
	writers []watchrule.Writer // the same
	ours    bool               // written by the agent itself
}

func ruleObjectOf(u *unstructured.Unstructured) *ruleObject {
	o := &ruleObject{ours: agentWrote(u)}
	o.Name, o.Namespace, o.UID, o.ResourceVersion = u.GetName(), u.GetNamespace(), u.GetUID(), u.GetResourceVersion()
	if o.ours {
		return o
	}
	for _, m := range u.GetManagedFields() {
		if m.Time != nil {
			o.writers = append(o.writers, watchrule.Writer{Manager: m.Manager, Subresource: m.Subresource, At: m.Time.Unix()})
		}
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	o.body = u.Object
	return o
}

// agentWrote knows the objects by which the agent keeps its books and tells of
// its work.
func agentWrote(u *unstructured.Unstructured) bool {
	switch u.GetKind() {
	case "ConfigMap":
		return annotations.AgentWrites(u.GetLabels()[annotations.LabelKind])
	case "Event":
		source, _, _ := unstructured.NestedString(u.Object, "source", "component")
		reporter, _, _ := unstructured.NestedString(u.Object, "reportingComponent")
		controller, _, _ := unstructured.NestedString(u.Object, "reportingController")
		return source == annotations.ManagerAgent || reporter == annotations.ManagerAgent || controller == annotations.ManagerAgent
	}
	return false
}

func (o *ruleObject) asObservation() watchrule.Observation {
	return watchrule.Observation{UID: string(o.UID), Namespace: o.Namespace, Name: o.Name, Version: informer.Version(o.ResourceVersion), Body: o.body, Writers: o.writers}
}

// ruleWatch is one open watch.
type ruleWatch struct {
	key      ruleKey
	informer cache.SharedIndexInformer
	heard    cache.ResourceEventHandlerRegistration
	client   dynamic.ResourceInterface
	ctx      context.Context //nolint:containedctx // of the watch itself: it ends with it
	stop     context.CancelFunc
	mu       sync.Mutex
	users    map[interest]*subscription
	failure  string
}

// interest is a rule of a plan.
type interest struct {
	plan types.NamespacedName
	rule string
}

// openRule starts a watch as the account, for its first user.
func (r *Controller) openRule(ctx context.Context, k ruleKey, user interest, wp *subscription) (*ruleWatch, error) {
	c, err := r.Accounts.Clients(k.who, "")
	if err != nil {
		return nil, err
	}
	w := &ruleWatch{key: k, users: map[interest]*subscription{user: wp}, client: c.Dynamic.Resource(k.resource)}
	if k.namespace != "" {
		w.client = c.Dynamic.Resource(k.resource).Namespace(k.namespace)
	}
	w.ctx, w.stop = context.WithCancel(ctx)
	from := informer.NewLongListWatch(&unstructured.Unstructured{}, func(err error) { r.answered(w, err) })
	from.ListFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		o.LabelSelector = k.selector
		return w.client.List(ctx, o)
	}
	from.WatchFunc = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.LabelSelector = k.selector
		return w.client.Watch(ctx, o)
	}
	keep := func(o any) (any, error) {
		if u, ok := o.(*unstructured.Unstructured); ok {
			return w.objectOf(u), nil
		}
		return o, nil
	}
	w.informer, w.heard = informer.New(from, keep, r.handler(w))
	go w.informer.RunWithContext(w.ctx)
	return w, nil
}

// answered notes whether the account may look. A right that comes later shows by
// itself: the watch is tried again and again.
func (r *Controller) answered(w *ruleWatch, err error) {
	failure := ""
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		failure = fmt.Sprintf("the ServiceAccount %s may not list and watch %s, which its watch triggers need: grant list and watch on them to it (%s)", w.key.who.Name, w.key, err)
	case apierrors.IsNotFound(err):
		failure = fmt.Sprintf("the cluster does not serve %s (any more): %s", w.key, err)
	case err != nil:
		return // it does not answer now; that is no news of ours
	}
	w.mu.Lock()
	news := w.failure != failure
	w.failure = failure
	var users []interest
	for user := range w.users {
		users = append(users, user)
	}
	w.mu.Unlock()
	for _, user := range users {
		if news {
			r.Plans.Add(user.plan)
		}
	}
}

// objectOf is what the rules are told of an object. One whose deletion nobody saw
// comes with its name alone, without a kind: it is as it was when it was last seen.
func (w *ruleWatch) objectOf(u *unstructured.Unstructured) *ruleObject {
	if u.GetKind() != "" {
		return ruleObjectOf(u)
	}
	was, found, err := w.informer.GetStore().GetByKey(cache.NewObjectName(u.GetNamespace(), u.GetName()).String())
	if object, ok := was.(*ruleObject); err == nil && found && ok && object.UID == u.GetUID() {
		return object
	}
	object := ruleObjectOf(u)
	object.body = nil
	return object
}

func (w *ruleWatch) failed() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure
}

// listed are the uids that the watch shows.
func (w *ruleWatch) listed() map[string]bool {
	out := map[string]bool{}
	for _, o := range w.informer.GetStore().List() {
		if object, ok := o.(*ruleObject); ok {
			out[string(object.UID)] = true
		}
	}
	return out
}

// each hands on what the API server has of what is watched, in pages, until it is
// told that it is enough.
func (w *ruleWatch) each(ctx context.Context, see func(*ruleObject) bool) error {
	for next := ""; ; {
		page, err := w.client.List(ctx, metav1.ListOptions{LabelSelector: w.key.selector, Limit: informer.PageSize, Continue: next})
		if err != nil {
			return err
		}
		for i := range page.Items {
			if !see(ruleObjectOf(&page.Items[i])) {
				return nil
			}
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

// ask looks one object up, live: by a list, since that is the right that the
// account has. Nil is one that is not there.
func (w *ruleWatch) ask(ctx context.Context, all dynamic.NamespaceableResourceInterface, o watchrule.Where) (*unstructured.Unstructured, error) {
	var from dynamic.ResourceInterface = all
	if o.Namespace != "" {
		from = all.Namespace(o.Namespace)
	}
	list, err := from.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", o.Name).String()})
	if err != nil {
		return nil, fmt.Errorf("look for %s %s: %w", w.key.resource.GroupResource(), o.Name, err)
	}
	for i := range list.Items {
		if string(list.Items[i].GetUID()) == o.UID {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// keyOf is the watch that a rule of a plan needs.
func (r *Controller) keyOf(w client.Account, rule plan.Watch) (ruleKey, error) {
	mapping, err := r.Accounts.Resolve(rule.APIVersion, rule.Kind)
	if err != nil {
		return ruleKey{}, err
	}
	k := ruleKey{who: w, resource: mapping.Resource, namespace: w.Namespace}
	switch {
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace || rule.Namespace == plan.AllNamespaces:
		k.namespace = metav1.NamespaceAll
	case rule.Namespace != "":
		k.namespace = rule.Namespace
	}
	if rule.Selector == nil {
		return k, nil
	}
	k.selector, err = executors.Selector(*rule.Selector)
	return k, err
}
