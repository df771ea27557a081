package watchrules

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// ruleObject is a watched object on its way to the rules, and what is kept of it
// afterwards: who it is.
type ruleObject struct {
	metav1.ObjectMeta
	body    run.Body           // until it was told
	writers []watchrule.Writer // the same
	ours    bool               // written by the agent itself
	later   bool               // there was no room for its body: it is read when it is told
	release func()             // gives its room back; nil: it takes none
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

func (o *ruleObject) where(rule string) watchrule.ObjectKey {
	return watchrule.ObjectKey{Rule: rule, UID: string(o.UID), Namespace: o.Namespace, Name: o.Name}
}

func (o *ruleObject) asObservation() watchrule.Observation {
	return watchrule.Observation{UID: string(o.UID), Namespace: o.Namespace, Name: o.Name, Version: informer.Version(o.ResourceVersion), Body: o.body, Writers: o.writers}
}

// source opens a watch as the account. Of an object that was told the watch itself keeps no
// more than who it is.
func (r *Controller) source(k informer.Key) informer.Source {
	return informer.Source{
		Open: func() (*informer.ListWatch, error) {
			c, err := r.Accounts.Clients(client.Account(k.As), "")
			if err != nil {
				return nil, err
			}
			return k.Objects(c.Dynamic), nil
		},
		Keep: func(o runtime.Object, was any) any { return r.backlog.keep(keepRule(o, was)) },
		Delivered: func(o any) {
			if object, ok := o.(*ruleObject); ok {
				object.told()
			}
		},
		Refusal: func(err error) error { return refusal(k, err) }, RefusalTimeout: workflow.RefusalTimeout,
		Pause: func(failed int, err error) time.Duration {
			if isTooLarge(err) { // all that is before it is read each time
				return tooLargePause
			}
			return informer.Backoff(failed, err)
		},
	}
}

// tooLargePause is how often a list is tried again in which an object is too large (a guess:
// whoever mends it waits no longer than this).
const tooLargePause = 30 * time.Second

// refusal says that the account may not look. A right that comes later shows by itself: the
// watch is tried again and again.
func refusal(k informer.Key, err error) error {
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return fmt.Errorf("the ServiceAccount %s may not list and watch %s, which its watch triggers need: grant list and watch on them to it (%w)", k.As.Name, k, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the cluster does not serve %s (any more): %w", k, err)
	}
	var large *executors.TooLargeError
	if errors.As(err, &large) { // alone: what is around it says another thing each time
		return large
	}
	return nil // it does not answer now; that is no news of ours
}

// keepRule is what the rules are told of an object. One whose deletion nobody saw comes with
// its name alone, without a kind: it is as it was when it was last seen.
func keepRule(o runtime.Object, was any) any {
	u, is := o.(*unstructured.Unstructured)
	if !is {
		return o
	}
	if seen, known := was.(*ruleObject); u.GetKind() == "" && known && seen.UID == u.GetUID() {
		return seen
	}
	object := ruleObjectOf(u)
	if u.GetKind() == "" {
		object.body = nil
	}
	return object
}

// listed are the uids that a watch shows.
func listed(use *informer.Use) map[string]bool {
	out := map[string]bool{}
	for _, o := range use.Kept() {
		if object, ok := o.(*ruleObject); ok {
			out[string(object.UID)] = true
		}
	}
	return out
}

// lookUp reads one object, live: by a list, since that is the right that the account has.
// Nil is one that is not there, or that the labels do not pick.
func lookUp(ctx context.Context, as dynamic.Interface, resource schema.GroupVersionResource, labels string, o watchrule.ObjectKey) (*unstructured.Unstructured, error) {
	list, err := as.Resource(resource).Namespace(o.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels, FieldSelector: fields.OneTermEqualSelector("metadata.name", o.Name).String()})
	if err != nil {
		return nil, fmt.Errorf("look for %s %s: %w", resource.GroupResource(), o.Name, err)
	}
	for i := range list.Items {
		if string(list.Items[i].GetUID()) == o.UID {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// keyOf is the watch that a rule of a plan needs.
func (r *Controller) keyOf(w client.Account, rule plan.Watch) (informer.Key, error) {
	mapping, err := r.Accounts.Resolve(rule.APIVersion, rule.Kind)
	if err != nil {
		return informer.Key{}, err
	}
	k := informer.Key{As: types.NamespacedName(w), Resource: mapping.Resource, Namespace: w.Namespace}
	switch {
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace || rule.Namespace == plan.AllNamespaces:
		k.Namespace = metav1.NamespaceAll
	case rule.Namespace != "":
		k.Namespace = rule.Namespace
	}
	if rule.Selector == nil {
		return k, nil
	}
	k.Labels, err = executors.Selector(*rule.Selector)
	return k, err
}
