package gates

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// gateObject is what is kept of a gated object: its identity, its labels, our
// annotations, and the fields that its knob speaks of.
type gateObject struct {
	metav1.ObjectMeta
	fields  map[string]any
	foreign bool // somebody else wrote what is in the knob's field
}

func slimGated(u *unstructured.Unstructured, k knob.Knob) *gateObject {
	o := &gateObject{fields: knob.Pick(u.Object, append(k.Keep(), []string{"metadata", "namespace"})...), foreign: k.Foreign(u.Object, annotations.ManagerAgent)}
	o.Name, o.Namespace, o.UID, o.ResourceVersion = u.GetName(), u.GetNamespace(), u.GetUID(), u.GetResourceVersion()
	o.Labels, o.DeletionTimestamp = u.GetLabels(), u.GetDeletionTimestamp()
	o.Annotations = map[string]string{}
	for key, value := range u.GetAnnotations() {
		if strings.HasPrefix(key, annotations.StatusPrefix) || strings.HasPrefix(key, annotations.IntentPrefix) {
			o.Annotations[key] = value
		}
	}
	return o
}

// gateWatch watches the objects of a kind in a namespace as one account, for one
// knob. Whatever policies of the account name such objects share it.
type gateWatch struct {
	id       string
	who      client.Account
	mapping  *meta.RESTMapping
	at       string // namespace; empty for kinds of the cluster
	knob     knob.Knob
	client   dynamic.ResourceInterface
	informer cache.SharedIndexInformer
	stop     context.CancelFunc

	mu       sync.Mutex
	policies map[types.NamespacedName][]policy.GateEntry
	failure  string // why it cannot list or watch
	problems map[string]string
	seen     map[string]*HeldObject
	wrote    store.Expectations
	backoffs map[types.UID]backoff
	inFlight int // objects being looked at
}

// watchID tells watches apart: who looks at what, by which knob.
func watchID(w client.Account, m *meta.RESTMapping, at string, k knob.Knob) string {
	closed, _ := json.Marshal(k.Closed)
	return strings.Join([]string{w.User(), m.Resource.String(), at, k.Name, k.Pointer(), string(closed)}, "|")
}

// open starts a watch.
func (g *Controller) open(ctx context.Context, w *gateWatch) error {
	c, err := g.Accounts.Clients(w.who, "")
	if err != nil {
		return err
	}
	w.client = c.Dynamic.Resource(w.mapping.Resource)
	if w.at != "" {
		w.client = c.Dynamic.Resource(w.mapping.Resource).Namespace(w.at)
	}
	ctx, w.stop = context.WithCancel(ctx)
	w.policies, w.problems, w.seen = map[types.NamespacedName][]policy.GateEntry{}, map[string]string{}, map[string]*HeldObject{}
	w.backoffs = map[types.UID]backoff{}
	from := informer.ForResource(c.Dynamic.Resource(w.mapping.Resource).Namespace(w.at), func(err error) {
		switch {
		case err == nil: // whatever was wrong is over, though nothing may have changed
			g.failed(w, "")
		case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err):
			g.failed(w, fmt.Sprintf("the ServiceAccount %s of namespace %s may not list and watch %s: grant list, watch and patch on them to it (%s)", w.who.Name, w.who.Namespace, w.what(), err))
		}
	})
	keep := func(o any) (any, error) {
		if u, ok := o.(*unstructured.Unstructured); ok {
			return slimGated(u, w.knob), nil
		}
		return o, nil
	}
	w.informer, _ = informer.New(from, keep, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { g.changed(w, o) },
		UpdateFunc: func(_, o any) { g.changed(w, o) },
		DeleteFunc: func(o any) { g.changed(w, o) },
	})
	go w.informer.RunWithContext(ctx)
	return nil
}

// what is what the watch looks at, as RBAC says it.
func (w *gateWatch) what() string {
	s := w.mapping.Resource.GroupResource().String()
	if w.at != "" {
		s += " in namespace " + w.at
	}
	return s
}

func (g *Controller) failed(w *gateWatch, message string) {
	w.mu.Lock()
	news := w.failure != message
	w.failure = message
	w.mu.Unlock()
	if news {
		g.enqueuePolicies(w)
	}
}

func (g *Controller) changed(w *gateWatch, o any) {
	if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	object, ok := o.(*gateObject)
	if !ok {
		return
	}
	g.failed(w, "")
	g.Queue.Add(types.NamespacedName{Namespace: w.id, Name: cache.NewObjectName(object.Namespace, object.Name).String()})
}

// enqueuePolicies has the policies of a watch looked at, once for what happens in a
// short time.
func (g *Controller) enqueuePolicies(w *gateWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.policies {
		g.Policies.AddAfter(k, status.Delay)
	}
}

// get is an object as last seen; nil where there is none.
func (w *gateWatch) get(name string) *gateObject {
	o, found, err := w.informer.GetStore().GetByKey(name)
	if err != nil || !found {
		return nil
	}
	return o.(*gateObject)
}

// holding counts the objects that a policy still holds by the watch's knob, but
// for those that are another watch's to see to. settled is false while that
// cannot be said.
func (w *gateWatch) holding(policy types.NamespacedName, elsewhere func(*gateObject) bool) (n int, settled bool) {
	w.mu.Lock()
	settled = w.inFlight == 0 && w.failure == "" && w.informer.HasSynced()
	w.mu.Unlock()
	for _, o := range w.informer.GetStore().List() {
		object := o.(*gateObject)
		memory, _ := knob.ReadMemory(object.Annotations[annotations.StatusGate])
		if slices.Contains(memory[w.knob.Pointer()].By, policy.String()) && !elsewhere(object) {
			n++
		}
		settled = settled && !w.wrote.Stale(object.UID, object.ResourceVersion)
	}
	return n, settled
}

// sameField says whether two watches work the same field of the same objects.
func (w *gateWatch) sameField(v *gateWatch) bool {
	return w.mapping.Resource.GroupResource() == v.mapping.Resource.GroupResource() && w.at == v.at && w.knob.Pointer() == v.knob.Pointer()
}

// addInFlight counts the objects that are being looked at.
func (w *gateWatch) addInFlight(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight += n
}
