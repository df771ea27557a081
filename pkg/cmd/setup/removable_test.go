package setup

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// installedObject is one of an installation in namespace maint-system.
func installedObject(version, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
	u.SetName(name)
	u.SetNamespace(namespace)
	return u
}

func TestWhatUninstallPrintsIsWhatItWouldRemove(t *testing.T) {
	const ours = "maint-system"
	role := installedObject("rbac.authorization.k8s.io/v1", "ClusterRole", "", annotations.AgentName)
	binding := installedObject("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", annotations.AgentName)
	binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": annotations.AgentName, "namespace": ours}}
	deployment := installedObject("apps/v1", "Deployment", ours, annotations.AgentName)
	elsewhere := installedObject("apps/v1", "Deployment", "ops", annotations.AgentName)
	namespace := installedObject("v1", "Namespace", "", ours)
	heartbeat := installedObject("v1", "ConfigMap", ours, annotations.HeartbeatName)
	lease := installedObject("coordination.k8s.io/v1", "Lease", ours, annotations.LeaseName)
	for _, c := range []struct {
		name   string
		there  []*unstructured.Unstructured
		others []string
		want   []string
	}{
		{name: "an installation: the namespace stays", there: []*unstructured.Unstructured{namespace, role, binding, deployment, heartbeat, lease}, want: []string{"deployment/maint-agent", "clusterrolebinding/maint-agent", "clusterrole/maint-agent", "configmap/maint-agent-status", "lease/maint-agent"}},
		{name: "what an agent of another namespace needs stays", there: []*unstructured.Unstructured{role, binding, deployment, elsewhere}, others: []string{"ops"}, want: []string{"deployment/maint-agent", "clusterrolebinding/maint-agent"}},
		{name: "no installation", there: []*unstructured.Unstructured{namespace, elsewhere}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &uninstallOptions{Factory: factory.New(factory.Env{Version: "v0.1.0"}), namespace: ours}
			client, mapper := fakeOf(t, o, c.there)
			items, err := o.standing(t.Context(), &applier{client: client, mapper: mapper}, c.others)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range items {
				got = append(got, named(&items[i]))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() != "get" }) {
				t.Errorf("it does more than to look: %v", client.Actions())
			}
		})
	}
}

// fakeOf is an API server that knows every kind of an installation, and holds some objects.
func fakeOf(t *testing.T, o *uninstallOptions, there []*unstructured.Unstructured) (*dynamicfake.FakeDynamicClient, meta.RESTMapper) {
	t.Helper()
	all, err := o.removable()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, u := range append(all, o.own("coordination.k8s.io/v1", "Lease", "")) {
		scope := meta.RESTScopeNamespace
		if u.GetNamespace() == "" {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(u.GroupVersionKind(), scope)
	}
	objects := make([]runtime.Object, len(there))
	for i, u := range there {
		objects[i] = u.DeepCopy()
	}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{}, objects...), mapper
}
