// Package agenttest is a cluster in memory for the tests of the agent's rooms: an API
// server behind an http.RoundTripper. It opens no socket, so it stands in a
// testing/synctest bubble; the agent's own clients talk to it as they do to a real one,
// with versions, conflicts, finalizers, watches and accounts.
package agenttest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// Cluster is an API server and what it holds.
type Cluster struct {
	t       testing.TB
	mu      sync.Mutex
	version int64
	kinds   []Kind
	objects map[objectKey]*unstructured.Unstructured
	changes []change // since the beginning, for watches that begin later
	watches map[*watcher]bool
	denied  map[right]bool
	faults  []*fault
	death   *death // of the agent; nil: it lives
	log     []string
	asked   []Request         // whatever became of them
	far     http.RoundTripper // what kubeconfigs lead to; nil: nothing does
}

// ConnectTo has every kubeconfig lead to another cluster, from the next Connect on.
func (c *Cluster) ConnectTo(far http.RoundTripper) { c.far = far }

// objectKey names an object: a resource may stand in several groups.
type objectKey struct{ group, resource, namespace, name string }

// change is one write: nil is an object that was not there before, or is not any more.
type change struct {
	key     objectKey
	version int64
	was, is *unstructured.Unstructured
}

// right is what somebody may not do.
type right struct{ user, verb, resource string }

// New is a cluster that holds nothing.
func New(t testing.TB) *Cluster {
	return &Cluster{
		t: t, version: 100, kinds: builtIn(), objects: map[objectKey]*unstructured.Unstructured{}, watches: map[*watcher]bool{}, denied: map[right]bool{},
	}
}

// Put makes objects what they are given as: new ones, or others in the place of those
// that are there. It is somebody else's write, and not in the log.
func (c *Cluster) Put(objects ...runtime.Object) {
	c.t.Helper()
	for _, o := range objects {
		u := c.unstructured(o)
		kind, known := c.kindOf(u.GetAPIVersion(), u.GetKind())
		if !known {
			c.t.Fatalf("the cluster serves no kind %s of %s", u.GetKind(), u.GetAPIVersion())
		}
		c.mu.Lock()
		k := objectKey{kind.Group, kind.Resource, u.GetNamespace(), u.GetName()}
		c.born(u, c.objects[k])
		c.keep(k, u)
		c.mu.Unlock()
	}
}

func (c *Cluster) unstructured(o runtime.Object) *unstructured.Unstructured {
	c.t.Helper()
	if u, is := o.(*unstructured.Unstructured); is {
		return u.DeepCopy()
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		c.t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: fields}
	if u.GetKind() == "" {
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			c.t.Fatal(err)
		}
		u.SetGroupVersionKind(kinds[0])
	}
	return u
}

// born gives an object what the API server gives it.
func (c *Cluster) born(u, was *unstructured.Unstructured) {
	if was != nil {
		u.SetUID(was.GetUID())
		u.SetCreationTimestamp(was.GetCreationTimestamp())
		return
	}
	if u.GetUID() == "" {
		u.SetUID(types.UID("uid-" + strconv.FormatInt(c.version+1, 10)))
	}
	created := u.GetCreationTimestamp()
	if created.IsZero() {
		u.SetCreationTimestamp(metav1.NewTime(time.Now().UTC().Truncate(time.Second)))
	}
}

// keep stores an object, and tells the watches; nil removes it. What is written as it
// stands is no change.
func (c *Cluster) keep(k objectKey, u *unstructured.Unstructured) {
	was := c.objects[k]
	if u != nil && was != nil && same(was, u) {
		u.SetResourceVersion(was.GetResourceVersion())
		return
	}
	c.version++
	if u == nil {
		delete(c.objects, k)
	} else {
		u.SetResourceVersion(strconv.FormatInt(c.version, 10))
		c.objects[k] = u.DeepCopy()
	}
	made := change{key: k, version: c.version, was: was, is: c.objects[k]}
	c.changes = append(c.changes, made)
	for w := range c.watches {
		w.deliver(made)
	}
}

func same(a, b *unstructured.Unstructured) bool {
	bare := func(u *unstructured.Unstructured) string {
		u = u.DeepCopy()
		u.SetResourceVersion("")
		text, _ := json.Marshal(u.Object)
		return string(text)
	}
	return bare(a) == bare(b)
}

// Edit has somebody else change an object.
func (c *Cluster) Edit(resource, namespace, name string, edit func(*unstructured.Unstructured)) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	k, u := c.find(resource, namespace, name)
	if u == nil {
		c.t.Fatalf("there is no %s %s/%s", resource, namespace, name)
	}
	edit(u)
	c.keep(k, u)
}

// EditEach has somebody else change all objects of a namespace whose names begin alike, at once.
func (c *Cluster) EditEach(resource, namespace, prefix string, edit func(*unstructured.Unstructured)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.objects {
		if k.resource == resource && k.namespace == namespace && strings.HasPrefix(k.name, prefix) {
			_, u := c.find(resource, namespace, k.name)
			edit(u)
			c.keep(k, u)
		}
	}
}

// Annotate has somebody else annotate a ConfigMap; an empty value takes the annotation
// away.
func (c *Cluster) Annotate(namespace, name, key, value string) {
	c.t.Helper()
	c.Edit("configmaps", namespace, name, func(u *unstructured.Unstructured) {
		all := u.GetAnnotations()
		if all == nil {
			all = map[string]string{}
		}
		if all[key] = value; value == "" {
			delete(all, key)
		}
		u.SetAnnotations(all)
	})
}

// Delete has somebody delete an object: one with finalizers stays until they are gone.
func (c *Cluster) Delete(resource, namespace, name string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	k, u := c.find(resource, namespace, name)
	if u == nil {
		c.t.Fatalf("there is no %s %s/%s", resource, namespace, name)
	}
	c.remove(k, u)
}

// DeleteAtOnce removes an object whatever finalizers it has.
func (c *Cluster) DeleteAtOnce(resource, namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, u := c.find(resource, namespace, name); u != nil {
		c.keep(k, nil)
	}
}

func (c *Cluster) remove(k objectKey, u *unstructured.Unstructured) {
	if len(u.GetFinalizers()) == 0 {
		c.keep(k, nil)
		return
	}
	if u.GetDeletionTimestamp() == nil {
		now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
		u.SetDeletionTimestamp(&now)
		c.keep(k, u)
	}
}

// find is a copy of an object by its resource alone.
func (c *Cluster) find(resource, namespace, name string) (objectKey, *unstructured.Unstructured) {
	for k, u := range c.objects {
		if k.resource == resource && k.namespace == namespace && k.name == name {
			return k, u.DeepCopy()
		}
	}
	return objectKey{}, nil
}

// Get is an object as it stands; nil where it is not there.
func (c *Cluster) Get(resource, namespace, name string) *unstructured.Unstructured {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, u := c.find(resource, namespace, name)
	return u
}

// ConfigMap is a ConfigMap as it stands; nil where it is not there.
func (c *Cluster) ConfigMap(namespace, name string) *corev1.ConfigMap {
	c.t.Helper()
	u := c.Get("configmaps", namespace, name)
	if u == nil {
		return nil
	}
	var cm corev1.ConfigMap
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &cm); err != nil {
		c.t.Fatal(err)
	}
	return &cm
}

// Names are the objects of a resource, in order.
func (c *Cluster) Names(resource string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for k := range c.objects {
		if k.resource == resource {
			out = append(out, k.namespace+"/"+k.name)
		}
	}
	slices.Sort(out)
	return out
}

// Deny takes a right from an account. All others are everybody's.
func (c *Cluster) Deny(user, verb, resource string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied[right{user, verb, resource}] = true
}

// Allow gives a right back.
func (c *Cluster) Allow(user, verb, resource string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.denied, right{user, verb, resource})
}

// Note writes something that a test's fakes did into the log, among the requests.
func (c *Cluster) Note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf(format, args...))
}

// Log are the requests that changed something, as "account verb resource namespace/name",
// and what was noted, in their order. The agent itself is "agent".
func (c *Cluster) Log() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

// ClearLog forgets what was logged.
func (c *Cluster) ClearLog() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = nil
}

// Watches are the resources that are watched now, each with who watches it.
func (c *Cluster) Watches() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for w := range c.watches {
		out = append(out, w.request.who()+" "+w.request.Resource)
	}
	slices.Sort(out)
	return out
}

// listed are the objects of a resource that a request picks, in order.
func (c *Cluster) listed(r Request) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for k, u := range c.objects {
		if r.picks(k, u) {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// eventFor is how a change looks to a watch that picks some objects only.
func eventFor(r Request, made change) (watch.EventType, *unstructured.Unstructured) {
	before, now := r.picks(made.key, made.was), r.picks(made.key, made.is)
	switch {
	case now && before:
		return watch.Modified, made.is
	case now:
		return watch.Added, made.is
	case before:
		gone := made.was.DeepCopy()
		if made.is != nil {
			gone = made.is.DeepCopy()
		}
		gone.SetResourceVersion(strconv.FormatInt(made.version, 10))
		return watch.Deleted, gone
	}
	return "", nil
}

// merge is a JSON merge patch.
func merge(into, patch map[string]any) map[string]any {
	out := maps.Clone(into)
	if out == nil {
		out = map[string]any{}
	}
	for field, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(out, field)
		case map[string]any:
			have, _ := out[field].(map[string]any)
			out[field] = merge(have, value)
		default:
			out[field] = value
		}
	}
	return out
}
