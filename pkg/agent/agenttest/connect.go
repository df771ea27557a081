package agenttest

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// Connect gives the agent's own clients, and those of accounts.
func (c *Cluster) Connect() (*client.Connection, *client.Impersonator) {
	c.t.Helper()
	conn, err := client.Connect(client.Config{
		Rest: &rest.Config{Host: "http://cluster.test", Transport: c}, Version: "test", Lease: 15 * time.Second, Now: time.Now, OnAnswer: func(string, string) {},
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
