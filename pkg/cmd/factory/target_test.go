package factory_test

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// The targets of many plans are found as those of one are, with few requests: a name of a resource
// that is guessed wrongly, kinds without a namespace, rights to get and none to list.
func TestTargetsThatSkipPlans(t *testing.T) {
	for _, c := range []struct {
		name       string
		kind       metav1.APIResource
		namespaces int
		each       int             // plans in each namespace
		forbids    map[string]bool // "get gateways", "list": of all namespaces
		connector  bool
		requests   int // for metadata
		found      int // the rest could not be read
	}{
		{name: "one", kind: deployments(), namespaces: 1, each: 1, requests: 1, found: 1},
		{name: "ten, one by one", kind: deployments(), namespaces: 2, each: 5, requests: 10, found: 10},
		{name: "eleven of a namespace", kind: deployments(), namespaces: 1, each: 11, requests: 1, found: 11},
		{name: "in three namespaces", kind: deployments(), namespaces: 3, each: 4, requests: 3, found: 12},
		{name: "in four", kind: deployments(), namespaces: 4, each: 3, requests: 1, found: 12},
		{name: "in four, which may not be listed", kind: deployments(), namespaces: 4, each: 3, forbids: map[string]bool{"list": true}, requests: 1},
		{name: "without a namespace", kind: metav1.APIResource{Name: "nodes", Kind: "Node"}, namespaces: 2, each: 2, requests: 8, found: 4},
		{name: "many without a namespace", kind: metav1.APIResource{Name: "nodes", Kind: "Node"}, namespaces: 4, each: 3, requests: 1, found: 12},
		{name: "a plural that nobody guesses", kind: metav1.APIResource{Name: "gateways", Kind: "Gateway", Namespaced: true}, namespaces: 1, each: 2, requests: 4, found: 2},
		{name: "and of what is guessed the account is told nothing", kind: metav1.APIResource{Name: "gateways", Kind: "Gateway", Namespaced: true}, namespaces: 1, each: 2, forbids: map[string]bool{"get gatewaies": true}, requests: 4, found: 2},
		{name: "of another cluster", kind: deployments(), namespaces: 1, each: 1, connector: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			gvk := "example.org/v1"
			o := cmdtest.NewCluster(t, nil)
			o.Kube.Resources = []*metav1.APIResourceList{{GroupVersion: gvk, APIResources: []metav1.APIResource{c.kind}}}
			scheme := metadatafake.NewTestScheme()
			if err := metav1.AddMetaToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			known := metadatafake.NewSimpleMetadataClient(scheme)
			plans, want := map[types.NamespacedName]plan.Spec{}, map[types.NamespacedName]string{}
			for n := range c.namespaces {
				for i := range c.each {
					at := types.NamespacedName{Namespace: fmt.Sprint("ns-", n), Name: fmt.Sprint("p-", i)}
					object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: gvk, Kind: c.kind.Kind}}
					object.Name, object.Annotations = at.Name, map[string]string{}
					if c.kind.Namespaced {
						object.Namespace = at.Namespace
					}
					skip := annotations.Mirror("mirror.maint.dev", at.Name, "skip")
					want[at] = ""
					if i == 0 {
						object.Annotations[skip], want[at] = "true", skip
					}
					if err := known.Tracker().Create(schema.FromAPIVersionAndKind(gvk, "").GroupVersion().WithResource(c.kind.Name), object, object.Namespace); err != nil && !apierrors.IsAlreadyExists(err) {
						t.Fatal(err)
					}
					spec := plan.Spec{Target: &plan.ObjectRef{APIVersion: gvk, Kind: c.kind.Kind, Name: at.Name}}
					if c.connector {
						spec.ConnectorRef = &connector.Reference{}
					}
					plans[at] = spec
				}
			}
			requests := 0
			known.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
				requests++
				if c.forbids[a.GetVerb()+" "+a.GetResource().Resource] || c.forbids[a.GetVerb()] && a.GetNamespace() == "" {
					return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
				}
				if a.GetNamespace() != "" && !c.kind.Namespaced { // the API server has no such path
					return true, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), "")
				}
				return false, nil, nil
			})
			k := &factory.Cluster{Kube: o.Kube, Metadata: known}
			got := k.TargetSkips(t.Context(), plans)
			if requests != c.requests || len(got) != c.found || c.found > 0 && !maps.Equal(got, want) {
				t.Errorf("%d requests, found %v, want %v", requests, got, want)
			}
			for at, spec := range plans {
				cm := &corev1.ConfigMap{}
				cm.Namespace, cm.Name = at.Namespace, at.Name
				if one := k.TargetSkip(t.Context(), cm, spec); !c.connector && one != want[at] || c.connector && one != "" {
					t.Errorf("of %s alone %q, want %q", at, one, want[at])
				}
			}
		})
	}
}

func deployments() metav1.APIResource {
	return metav1.APIResource{Name: "deployments", Kind: "Deployment", Namespaced: true}
}
