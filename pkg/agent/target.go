package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// targetObject is what is kept of a target: enough to see requests and
// readiness, and nothing of what it holds.
type targetObject struct {
	metav1.ObjectMeta
	ready string // why it is not ready; empty: it is
}

// facts are a target as the decisions look at it.
func (t *targetObject) facts(keys []string) *plan.Target {
	out := &plan.Target{UID: string(t.UID), Labels: map[string]plan.TargetLabel{}, Handled: map[string]int64{}}
	for _, k := range keys {
		if value, present := t.Labels[k]; present {
			out.Labels[k] = plan.TargetLabel{Value: value, Owner: annotations.DeclaredBy(&t.ObjectMeta, k)}
		}
		if n, err := strconv.ParseInt(t.Annotations[annotations.Handled(k)], 10, 64); err == nil {
			out.Handled[k] = n
		}
	}
	return out
}

func slimTarget(u *unstructured.Unstructured) *targetObject {
	t := &targetObject{ready: notReady(u)}
	t.Name, t.Namespace, t.UID, t.ResourceVersion = u.GetName(), u.GetNamespace(), u.GetUID(), u.GetResourceVersion()
	t.Labels, t.ManagedFields, t.DeletionTimestamp = u.GetLabels(), u.GetManagedFields(), u.GetDeletionTimestamp()
	t.Annotations = map[string]string{}
	for k, v := range u.GetAnnotations() {
		if strings.HasPrefix(k, annotations.StatusPrefix) || strings.HasSuffix(k, annotations.MirrorSkip) {
			t.Annotations[k] = v
		}
	}
	return t
}

// notReady says why an object is not ready yet: by its replicas where it has
// such, by its Ready condition where it has one, else it is ready by being there.
func notReady(u *unstructured.Unstructured) string {
	if observed, found, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); found && observed < u.GetGeneration() {
		return "its controller has not seen its newest generation"
	}
	if want, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); found {
		have, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
		if have < want {
			return fmt.Sprintf("%d of %d replicas are ready", have, want)
		}
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Ready" && m["status"] != "True" {
			return "its condition Ready is " + fmt.Sprint(m["status"])
		}
	}
	return ""
}

// errGone says that a target is not there.
type errGone struct{ ref plan.ObjectRef }

func (e errGone) Error() string { return e.ref.String() + " does not exist" }

// resolve finds the resource of a kind.
func (a *Agent) resolve(apiVersion, kind string) (*meta.RESTMapping, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, fmt.Errorf("apiVersion %q: %w", apiVersion, err)
	}
	mapping, err := a.accounts.mapping(gv.WithKind(kind).GroupKind(), gv.Version)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("look up kind %s of %s: %w", kind, apiVersion, err)
	}
	if err != nil {
		return nil, fmt.Errorf("kind %s of %s is not known to this cluster: %w", kind, apiVersion, err)
	}
	return mapping, nil
}

// readTarget reads a target live, as the plan's account.
func (a *Agent) readTarget(ctx context.Context, w who, ref plan.ObjectRef) (*unstructured.Unstructured, error) {
	from, err := a.targetClient(w, "", ref)
	if err != nil {
		return nil, err
	}
	u, err := from.Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		gone, asked := a.isGone(err, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		if gone {
			return nil, errGone{ref}
		}
		err = errors.Join(err, asked)
	}
	if err != nil {
		return nil, fmt.Errorf("read the target %s as %s: %w", ref, w.user(), err)
	}
	return u, nil
}

// isGone says whether a 404 means that an object is not there. One that names no
// object speaks of its kind, and an API server that starts says so of kinds that it
// has not read yet: it is asked once more.
func (a *Agent) isGone(err error, kind schema.GroupVersionKind) (bool, error) {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		if details := answer.Status().Details; details != nil && details.Name != "" {
			return true, nil
		}
	}
	return a.accounts.gone(kind)
}

// unknownKind says whether the API server told that it serves no such kind.
func unknownKind(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if meta.IsNoMatchError(err) {
			return true
		}
	}
	return false
}

// targetWatches watch the targets of plans with label triggers: one watch for
// all targets of a kind in a namespace that one account looks at.
type targetWatches struct {
	agent *Agent
	mu    sync.Mutex
	open  map[watchKey]*targetWatch
	plans map[key]watchKey
	wrote ownWrites // on targets
}

type watchKey struct {
	who      who
	resource schema.GroupVersionResource
	cluster  bool
}

type targetWatch struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	plans    map[key]string // and the name of their target
	mu       sync.Mutex
	failure  string
}

// keep makes sure that a plan's target is watched, and by nothing it no longer
// needs.
func (t *targetWatches) keep(ctx context.Context, pk key, wk watchKey, name string) *targetWatch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, have := t.plans[pk]; have && old != wk {
		t.leave(pk)
	}
	w := t.open[wk]
	if w == nil {
		w = t.start(ctx, wk)
		t.open[wk] = w
	}
	w.mu.Lock()
	w.plans[pk] = name
	w.mu.Unlock()
	t.plans[pk] = wk
	return w
}

// drop ends a plan's interest.
func (t *targetWatches) drop(pk key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(pk)
}

func (t *targetWatches) leave(pk key) {
	wk, have := t.plans[pk]
	if !have {
		return
	}
	delete(t.plans, pk)
	w := t.open[wk]
	w.mu.Lock()
	delete(w.plans, pk)
	empty := len(w.plans) == 0
	w.mu.Unlock()
	if empty {
		w.stop()
		delete(t.open, wk)
	}
}

func (t *targetWatches) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

func (t *targetWatches) start(ctx context.Context, wk watchKey) *targetWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &targetWatch{stop: cancel, plans: map[key]string{}}
	c, err := t.agent.accounts.clients(wk.who, "")
	if err != nil {
		w.failure = err.Error()
		return w
	}
	namespace := wk.who.namespace
	if wk.cluster {
		namespace = metav1.NamespaceAll
	}
	from := asAccount(c.Dynamic.Resource(wk.resource).Namespace(namespace), func(err error) {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			w.fail(fmt.Sprintf("the ServiceAccount %s may not list and watch %s in namespace %s, which its label triggers need: %s", wk.who.name, wk.resource.GroupResource(), wk.who.namespace, err))
			w.each("", t.agent.ringPlan)
		}
	})
	w.informer = cache.NewSharedIndexInformer(from, from.example, 0, cache.Indexers{})
	t.wire(w)
	go w.informer.RunWithContext(ctx)
	return w
}

func (t *targetWatches) wire(w *targetWatch) {
	must(w.informer.SetTransform(func(o any) (any, error) {
		if u, ok := o.(*unstructured.Unstructured); ok {
			return slimTarget(u), nil
		}
		return o, nil
	}))
	_, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { t.changed(w, o) },
		UpdateFunc: func(_, o any) { t.changed(w, o) },
		DeleteFunc: func(o any) { t.changed(w, o) },
	})
	must(err)
}

// must is for calls that fail only when they are made too late, which is ours
// to know.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (t *targetWatches) changed(w *targetWatch, o any) {
	if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	if obj, ok := o.(*targetObject); ok {
		w.fail("")
		w.each(obj.Name, t.agent.ringPlan)
	}
}

func (w *targetWatch) fail(message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure = message
}

// each visits the plans whose target has the name; an empty name is all.
func (w *targetWatch) each(name string, visit func(key)) {
	w.mu.Lock()
	var hit []key
	for pk, target := range w.plans {
		if name == "" || target == name {
			hit = append(hit, pk)
		}
	}
	w.mu.Unlock()
	for _, pk := range hit {
		visit(pk)
	}
}

// get is the target as last seen, or why it is not seen.
func (w *targetWatch) get(namespace, name string) (*targetObject, string) {
	w.mu.Lock()
	failure := w.failure
	w.mu.Unlock()
	if failure != "" {
		return nil, failure
	}
	if w.informer == nil || !w.informer.HasSynced() {
		return nil, "its target has not been read yet"
	}
	k := name
	if namespace != "" {
		k = namespace + "/" + name
	}
	o, found, err := w.informer.GetStore().GetByKey(k)
	if err != nil || !found {
		return nil, ""
	}
	return o.(*targetObject), ""
}
