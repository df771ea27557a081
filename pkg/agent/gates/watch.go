package gates

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// gateObject is what is kept of a gated object: its identity, its labels, our
// annotations, and the fields that its knob speaks of.
type gateObject struct {
	metav1.ObjectMeta
	fields  map[string]any
	foreign bool // somebody else wrote what is in the knob's field
	// controller is the object that made it, as people say it; empty: none did.
	controller string
	// tooMuch is why no more than its identity is kept, so that its gate does not work; empty: all is.
	tooMuch string
	weight  int // about how many bytes all of it takes
}

func slimGated(u *unstructured.Unstructured, k knob.Knob) *gateObject {
	o := &gateObject{fields: knob.Pick(u.Object, append(k.Keep(), []string{"metadata", "namespace"})...), foreign: k.WrittenByOthers(u.Object, annotations.ManagerAgent)}
	o.Name, o.Namespace, o.UID, o.ResourceVersion = u.GetName(), u.GetNamespace(), u.GetUID(), u.GetResourceVersion()
	o.Labels, o.DeletionTimestamp = u.GetLabels(), u.GetDeletionTimestamp()
	if c := metav1.GetControllerOfNoCopy(u); c != nil {
		o.controller = c.Kind + "/" + c.Name
	}
	o.Annotations = map[string]string{}
	all := u.GetAnnotations()
	for _, key := range readOfGated() {
		if value, there := all[key]; there {
			o.Annotations[key] = value
		}
	}
	return o
}

// readOfGated are the annotations of a gated object that are ever read: whoever may annotate it may
// put anything beside them.
func readOfGated() []string {
	return []string{
		annotations.ChangeStrategy, annotations.ChangePolicy, annotations.PermissiveUntil, annotations.RestrictiveUntil, annotations.Actor(annotations.ChangeStrategy), annotations.Reason(annotations.ChangeStrategy),
		annotations.StatusGate, annotations.StatusPermitted, annotations.StatusBehavior, annotations.StatusConditions,
	}
}

// gateWatch watches the objects of a kind in a namespace as one account, for one
// knob. Whatever policies of the account name such objects share it.
type gateWatch struct {
	id     string
	key    informer.Key
	kind   schema.GroupVersionKind
	knob   knob.Knob
	client dynamic.ResourceInterface
	use    *informer.Use

	mu       sync.Mutex
	policies map[types.NamespacedName][]policy.GateEntry
	problems map[string]string
	seen     map[string]*HeldObject
	wrote    store.Expectations
	inFlight int              // objects being looked at
	asked    time.Time        // when objects were asked for again
	rights   map[string]right // by the name of an object; without a name: for all that it watches
}

// newGateWatch is not opened yet.
func newGateWatch(w client.Account, m *meta.RESTMapping, at string, k knob.Knob) *gateWatch {
	closed, _ := json.Marshal(k.Closed)
	id := strings.Join([]string{w.User(), m.Resource.String(), at, k.Name, k.Pointer(), string(closed)}, "|")
	return &gateWatch{
		id: id, key: informer.Key{As: types.NamespacedName(w), Resource: m.Resource, Namespace: at, Variant: id}, kind: m.GroupVersionKind, knob: k,
		policies: map[types.NamespacedName][]policy.GateEntry{}, problems: map[string]string{}, seen: map[string]*HeldObject{}, rights: map[string]right{},
	}
}

// account is who looks, and who writes.
func (w *gateWatch) account() client.Account { return client.Account(w.key.As) }

// open starts a watch.
func (g *Controller) open(ctx context.Context, w *gateWatch) error {
	c, err := g.Clients.Accounts.Clients(w.account(), "")
	if err != nil {
		return err
	}
	g.set.budget.open(w)
	w.client = c.Dynamic.Resource(w.key.Resource).Namespace(w.key.Namespace)
	source := informer.Source{
		Open: func() (*informer.ListWatch, error) { return w.key.Objects(c.Dynamic), nil },
		Keep: func(o runtime.Object, _ any) any {
			if u, ok := o.(*unstructured.Unstructured); ok {
				return g.set.budget.keep(w, slimGated(u, w.knob))
			}
			return o
		},
		Refusal: w.refusal, RefusalTimeout: workflow.RefusalTimeout,
	}
	w.use, err = g.set.Join(ctx, w.key, source, informer.Member{
		Changed: func(o any, gone bool) {
			if object, ok := o.(*gateObject); ok && gone {
				g.set.budget.forget(w, object)
			}
			g.changed(w, o)
		},
		Established: func() { g.enqueuePolicies(w) },
	})
	if err != nil {
		g.set.budget.drop(w)
	}
	return err
}

// refusal says that the account may not look.
func (w *gateWatch) refusal(err error) error {
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("the ServiceAccount %s of namespace %s may not list and watch %s: grant list, watch and patch on them to it (%w)", w.key.As.Name, w.key.As.Namespace, w.key, err)
}

func (g *Controller) changed(w *gateWatch, o any) {
	if object, ok := o.(*gateObject); ok {
		g.Queue.Add(w.keyOf(object))
	}
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

// keyOf is what stands in the queue for an object.
func (w *gateWatch) keyOf(o *gateObject) types.NamespacedName {
	return types.NamespacedName{Namespace: w.id, Name: cache.NewObjectName(o.Namespace, o.Name).String()}
}

// get is an object as last seen; nil where there is none.
func (w *gateWatch) get(name string) *gateObject {
	n, err := cache.ParseObjectName(name)
	if err != nil {
		return nil
	}
	o, _ := w.use.Get(n.Namespace, n.Name).(*gateObject)
	return o
}

// holding counts the objects that a policy still holds by the watch's knob, but
// for those that are another watch's to see to. settled is false while that
// cannot be said.
func (w *gateWatch) holding(policy types.NamespacedName, elsewhere func(*gateObject) bool) (n int, settled bool) {
	w.mu.Lock()
	settled = w.inFlight == 0 && w.use.Refusal() == nil && w.use.Synced()
	w.mu.Unlock()
	for _, o := range w.use.Kept() {
		object := o.(*gateObject)
		memory, _ := knob.ReadMemory(object.Annotations[annotations.StatusGate])
		if slices.Contains(memory[w.knob.Pointer()].By, policy.String()) && !elsewhere(object) {
			n++
		}
		settled = settled && (object.tooMuch == "" || object.Annotations != nil) && !w.wrote.Stale(object.UID, object.ResourceVersion)
	}
	return n, settled
}

// sameField says whether two watches work the same field of the same objects.
func (w *gateWatch) sameField(v *gateWatch) bool {
	return w.sameObjects(v) && w.knob.Pointer() == v.knob.Pointer()
}

// sameObjects says whether two watches look at the same objects, by whatever field.
func (w *gateWatch) sameObjects(v *gateWatch) bool {
	return w.key.Resource.GroupResource() == v.key.Resource.GroupResource() && w.key.Namespace == v.key.Namespace
}

// addInFlight counts the objects that are being looked at.
func (w *gateWatch) addInFlight(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight += n
}
