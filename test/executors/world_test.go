// Package executors_test runs every executor against a real API server.
package executors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	exechttp "github.com/kubectl-maint/kubectl-maint/pkg/executors/http"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// house is a namespace on the real API server, and accounts in it.
type house struct {
	ns      string
	config  *rest.Config
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	mapper  meta.RESTMapper

	accounts map[string]string // rights → account
	worlds   atomic.Int64
}

func newHouse(t *testing.T) *house {
	t.Helper()
	c := cluster.Shared(t)
	h := &house{config: c.AdminConfig(), accounts: map[string]string{}}
	var err error
	if h.kube, err = kubernetes.NewForConfig(h.config); err != nil {
		t.Fatal(err)
	}
	if h.dynamic, err = dynamic.NewForConfig(h.config); err != nil {
		t.Fatal(err)
	}
	h.ns = c.Namespace(t)
	h.installApps(t)
	groups, err := restmapper.GetAPIGroupResources(h.kube.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	h.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	return h
}

const appCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apps.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: App, plural: apps, singular: app}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {replicas: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {replicas: {type: integer}}}
`

// installApps makes the cluster serve a kind of somebody else's.
func (h *house) installApps(t *testing.T) {
	t.Helper()
	crds := h.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	_, err := crds.Create(t.Context(), object(t, appCRD), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	apps := h.dynamic.Resource(appsGVR())
	eventually(t, "Apps are served", func(ctx context.Context) (bool, error) {
		_, err := apps.Namespace(h.ns).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
}

func appsGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "apps"}
}

func deploymentsGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
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

// properties are what an executor gets for a step's YAML.
func properties[T any](t *testing.T, text string) *T {
	t.Helper()
	var raw any
	out := new(T)
	if _, faults := document.Decode([]byte(text), &raw); len(faults) > 0 {
		t.Fatal(faults)
	}
	if faults := document.DecodeValue(raw, "properties", nil, false, out); len(faults) > 0 {
		t.Fatal(faults)
	}
	return out
}

func eventually(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// connect gives clients that act as an account with exactly these rights.
func (h *house) connect(t *testing.T, rights []conformance.Right, wrap conformance.Wrap) (executors.Clients, string) {
	t.Helper()
	account := h.account(t, rights)
	config := rest.CopyConfig(h.config)
	config.Impersonate.UserName = "system:serviceaccount:" + h.ns + ":" + account
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return wrap(rt) })
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client := exechttp.NewClient(exechttp.Rules{Allow: []string{"127.0.0.1/32"}})
	t.Cleanup(client.CloseIdleConnections)
	return executors.Clients{Kube: kube, Dynamic: dyn, Mapper: h.mapper, HTTP: client, Config: config}, account
}

// account is one with a Role of exactly these rights, in force.
func (h *house) account(t *testing.T, rights []conformance.Right) string {
	t.Helper()
	key := fmt.Sprint(rights)
	if name, ok := h.accounts[key]; ok {
		return name
	}
	name := fmt.Sprintf("maint-runner-%d", len(h.accounts))
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, r := range rights {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: []string{r.Verb}})
	}
	if _, err := h.kube.RbacV1().Roles(h.ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: h.ns, Name: name}},
	}
	if _, err := h.kube.RbacV1().RoleBindings(h.ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range rights {
		eventually(t, "the Role is in force", func(ctx context.Context) (bool, error) { return h.may(ctx, name, r) })
	}
	h.accounts[key] = name
	return name
}

func (h *house) may(ctx context.Context, account string, r conformance.Right) (bool, error) {
	resource, sub, _ := strings.Cut(r.Resource, "/")
	user := "system:serviceaccount:" + h.ns + ":" + account
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: []string{"system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: h.ns, Verb: r.Verb, Group: r.Group, Resource: resource, Subresource: sub},
	}}
	answer, err := h.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return err == nil && answer.Status.Allowed, err
}

// rights are verbs on one resource.
func rights(group, resource string, verbs ...string) []conformance.Right {
	out := make([]conformance.Right, len(verbs))
	for i, verb := range verbs {
		out[i] = conformance.Right{Verb: verb, Group: group, Resource: resource}
	}
	return out
}

// call is a step's first pass in this house. Each has a run of its own.
func (h *house) call(properties any) executors.Call {
	return executors.Call{
		Run: fmt.Sprintf("maint-run-orders-%d", h.worlds.Add(1)), Plan: executors.PlanRef{Name: "orders", Namespace: h.ns, Manager: annotations.PlanManager(h.ns, "orders")}, Path: "work", Attempt: 1,
		Now: time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC), Properties: properties,
	}
}

// thing is an object of a world.
type thing struct {
	h    *house
	name string
	in   dynamic.ResourceInterface
	ref  plan.ResourceRef
}

// thing creates an object under a name of its own.
func (h *house) thing(t *testing.T, gvr schema.GroupVersionResource, text string) *thing {
	t.Helper()
	u := object(t, text)
	th := &thing{h: h, name: fmt.Sprintf("orders-%d", h.worlds.Add(1)), in: h.dynamic.Resource(gvr).Namespace(h.ns)}
	u.SetName(th.name)
	th.ref = plan.ResourceRef{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: th.name}
	if _, err := th.in.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = th.in.Delete(ctx, th.name, metav1.DeleteOptions{})
	})
	return th
}

// deployment is paused, so that its controller writes status and makes no pods.
func (h *house) deployment(t *testing.T) *thing {
	t.Helper()
	return h.thing(t, deploymentsGVR(), `
apiVersion: apps/v1
kind: Deployment
metadata: {labels: {app: orders, tier: silver}}
spec:
  paused: true
  replicas: 3
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec: {containers: [{name: web, image: "example.org/web:1", env: [{name: MODE, value: normal}]}]}
`)
}

func (h *house) app(t *testing.T) *thing {
	t.Helper()
	return h.thing(t, appsGVR(), `{apiVersion: example.org/v1, kind: App, spec: {replicas: 2, size: 1, hosts: [a, b], keep: {me: true}}}`)
}

func (th *thing) read(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	u, err := th.in.Get(t.Context(), th.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// state is one part of the object as text.
func (th *thing) state(path ...string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		v, _, err := unstructured.NestedFieldNoCopy(th.read(t).Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// merge changes the object as somebody with every right.
func (th *thing) merge(patch string, subresources ...string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		b, err := yaml.YAMLToJSON([]byte(patch))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := th.in.Patch(t.Context(), th.name, types.MergePatchType, b, metav1.PatchOptions{FieldManager: "somebody"}, subresources...); err != nil {
			t.Fatal(err)
		}
	}
}

func (th *thing) remove(t *testing.T) {
	t.Helper()
	if err := th.in.Delete(t.Context(), th.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, th.name+" is gone", func(ctx context.Context) (bool, error) {
		_, err := th.in.Get(ctx, th.name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

// world is one around an object: its state, and somebody who changes it.
func (th *thing) world(properties any, meddle string, state ...string) conformance.Backend {
	return conformance.Backend{
		Call: th.h.call(properties), Connect: th.h.connect, State: th.state(state...), Remove: th.remove,
		Touch: th.merge(`{metadata: {annotations: {touched: "yes"}}}`), Meddle: th.merge(meddle),
	}
}

func yamlOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
