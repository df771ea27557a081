package agenttest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// host is the address by which a cluster is asked; there is none.
const host = "http://cluster.test"

// Connect gives the agent's own clients, and those of accounts.
func (c *Cluster) Connect() (*client.Connection, *client.Impersonator) {
	c.t.Helper()
	conn, err := client.Connect(client.Config{
		Rest: &rest.Config{Host: host, Transport: c}, Version: "test", Lease: 15 * time.Second, Now: time.Now, OnAnswer: func(string, string) {},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	nowhere := &http.Client{Transport: client.RoundTripper(func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("nothing is outside of the cluster: %s", r.URL)
	})}
	outside := client.External{HTTP: func() *http.Client { return nowhere }}
	if c.far != nil {
		outside.Remote = func(*rest.Config) (http.RoundTripper, error) { return c.far, nil }
	}
	return conn, conn.Impersonate(outside)
}

// Clients are those of an executor: typed ones, those of any object, and the kinds that the
// cluster serves.
func (c *Cluster) Clients() executors.Clients {
	c.t.Helper()
	config := &rest.Config{Host: host, Transport: c, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	typed, errTyped := kube.NewForConfig(config)
	objects, errObjects := dynamic.NewForConfig(config)
	if err := errors.Join(errTyped, errObjects); err != nil {
		c.t.Fatal(err)
	}
	return executors.Clients{Kube: typed, Dynamic: objects, Mapper: c.mapper()}
}

func (c *Cluster) mapper() meta.RESTMapper {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := meta.NewDefaultRESTMapper(nil)
	for _, k := range c.kinds {
		scope := meta.RESTScopeRoot
		if k.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		out.Add(schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}, scope)
	}
	return out
}

// Object is an object as it is written in YAML or JSON. It needs no apiVersion.
func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return u
}

// ConfigMaps is a cache of ConfigMaps with some labels, as the agent's own. It is not
// begun.
func ConfigMaps(conn *client.Connection, selector string, keep cache.TransformFunc) *informer.Cache {
	from := informer.ForClient(&corev1.ConfigMap{}, conn.Kube.CoreV1().ConfigMaps(""), metav1.ListOptions{LabelSelector: selector})
	from.Labels, from.Words = [2]string{annotations.LabelKind, annotations.LabelPlan}, informer.NewInterner()
	return informer.NewCache(from, annotations.LabelKind, keep)
}

// Metadata is a cache of the metadata of objects, as the agent's own. It is not begun.
func Metadata(conn *client.Connection, resource string, keep cache.TransformFunc) *informer.Cache {
	objects := conn.Meta.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource})
	from := informer.ForClient(&metav1.PartialObjectMetadata{}, objects, metav1.ListOptions{})
	return informer.NewCache(from, annotations.LabelKind, keep)
}

// Events are those that were recorded, as "Warning RunFailed plan: message".
type Events struct {
	mu  sync.Mutex
	all []string
}

// All are those that were recorded, in their order.
func (e *Events) All() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// Event is record.EventRecorder's.
func (e *Events) Event(about runtime.Object, kind, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, fmt.Sprintf("%s %s %s: %s", kind, reason, nameOf(about), message))
}

// Eventf is record.EventRecorder's.
func (e *Events) Eventf(about runtime.Object, kind, reason, message string, args ...any) {
	e.Event(about, kind, reason, fmt.Sprintf(message, args...))
}

// AnnotatedEventf is record.EventRecorder's.
func (e *Events) AnnotatedEventf(about runtime.Object, _ map[string]string, kind, reason, message string, args ...any) {
	e.Event(about, kind, reason, fmt.Sprintf(message, args...))
}

func nameOf(about runtime.Object) string {
	if ref, is := about.(*corev1.ObjectReference); is {
		return ref.Name
	}
	m, err := meta.Accessor(about)
	if err != nil {
		return err.Error()
	}
	return m.GetName()
}
