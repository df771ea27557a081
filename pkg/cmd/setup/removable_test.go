package setup

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
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
	for _, u := range append(all, objectIn(o.namespace, "coordination.k8s.io/v1", "Lease", "")) {
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

// A key that is not there cannot be kept.
func TestUninstallSpeaksOfTheKeyWhereThereIsOne(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: annotations.KeyName}}
	for name, c := range map[string]struct {
		there   []runtime.Object
		removed int
		want    string
	}{
		"there is a key":        {[]runtime.Object{namespace, key}, 1, "namespace other stays, with everything else in it and with Secret maint-agent-key: "},
		"there is none":         {[]runtime.Object{namespace}, 1, "namespace other stays, with everything else in it\n"},
		"there was no agent":    {[]runtime.Object{namespace}, 0, "no agent is installed in namespace other: there is nothing to remove\n"},
		"an agent left its key": {[]runtime.Object{namespace, key}, 0, "no agent is installed in namespace other: there is nothing to remove\nnamespace other stays, with everything else in it and with Secret maint-agent-key: "},
		"the namespace is gone": {nil, 1, "there is no namespace other: nothing is left in it\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			o := &uninstallOptions{Factory: factory.New(factory.Env{IOStreams: genericiooptions.IOStreams{Out: io.Discard, ErrOut: &said}}), namespace: "other", removed: c.removed}
			if err := o.leftovers(t.Context(), &factory.Cluster{Kube: fake.NewClientset(c.there...)}); err != nil {
				t.Fatal(err)
			}
			got := said.String()
			if !strings.HasPrefix(got, c.want) || strings.HasSuffix(c.want, "\n") && got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}
