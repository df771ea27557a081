package doctor_test

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

// serving has the API server know one more kind.
func serving(apiVersion, kind string, namespaced bool) func(*cmdtest.Cluster) {
	plural, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind))
	return func(o *cmdtest.Cluster) {
		o.Kube.Resources = append(o.Kube.Resources, &metav1.APIResourceList{GroupVersion: apiVersion, APIResources: []metav1.APIResource{{Name: plural.Resource, Kind: kind, Namespaced: namespaced}}})
	}
}

// A Helm chart sets the label by which Argo CD may mark, too, and Argo CD may be in two namespaces.
func TestDoctorOfAnOwnerThatMayBe(t *testing.T) {
	const before = "ok       the agent finds the plan valid and ready\nok       the target Deployment/orders is there\nok       ServiceAccount shop/maint-runner is there\nok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\n"
	const user = "system:serviceaccount:shop:maint-runner"
	const lacks = user + " may not get, list, watch, patch applications.argoproj.io"
	world := func(labels, annotations map[string]string) []runtime.Object {
		d := cmdtest.Deployment("orders")
		d.Labels, d.Annotations = labels, annotations
		return installed(seen("holdOwners: true, target: {apiVersion: apps/v1, kind: Deployment, name: orders}"), d)
	}
	chart := world(map[string]string{"app.kubernetes.io/instance": "shop"}, nil)
	tracked := world(nil, map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/orders"})
	application := serving("argoproj.io/v1alpha1", "Application", true)
	seenIn := func(namespace string) func(*cmdtest.Cluster) {
		return func(o *cmdtest.Cluster) {
			application(o)
			o.Others = []runtime.Object{&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "argoproj.io/v1alpha1", Kind: "Application"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"}}}
		}
	}
	in := func(namespaces ...string) func(authorizationv1.ResourceAttributes) bool {
		return func(a authorizationv1.ResourceAttributes) bool {
			for _, namespace := range append(namespaces, "shop") {
				if a.Namespace == namespace {
					return true
				}
			}
			return false
		}
	}
	grant := func(namespace string) string {
		return "grant it: 'kubectl -n " + namespace + " create role maint:shop:maint-runner:applications.argoproj.io --verb=get,list,watch,patch --resource=applications.argoproj.io --dry-run=client -o yaml | kubectl -n " + namespace + " auth reconcile -f -' and 'kubectl -n " + namespace + " create rolebinding maint:shop:maint-runner:applications.argoproj.io --role=maint:shop:maint-runner:applications.argoproj.io --serviceaccount=shop:maint-runner --dry-run=client -o yaml | kubectl -n " + namespace + " auth reconcile -f -'\n"
	}
	has := func(namespace string) string {
		return "ok       " + user + " has the rights of step hold-owners on Application/shop, if it is in namespace " + namespace + " and manages Deployment/orders from Git\n"
	}
	hides := func(namespace string) string {
		return "unknown  whether step hold-owners suspends Application/shop of namespace " + namespace + ", which may manage Deployment/orders from Git: " + lacks + " there; if it does, " + grant(namespace)
	}
	blind := "amiss    " + user + " may not get applications.argoproj.io in namespace argocd or openshift-gitops, where step hold-owners looks whether Application/shop manages Deployment/orders from Git\n         " + grant("argocd")
	reads := func(a authorizationv1.ResourceAttributes) bool { return a.Namespace == "shop" || a.Verb == "get" }
	diagnose(t, []diagnosis{
		{name: "a chart where there is no Argo CD", line: "doctor orders", world: chart, may: in(), out: before + "ok       no GitOps owner of Deployment/orders was found, so step hold-owners has none to suspend\n"},
		{name: "a chart, and an account that may in both namespaces", line: "doctor orders", world: chart, before: application, out: before + has("argocd") + has("openshift-gitops")},
		{name: "in the one, and not in the other", line: "doctor orders", world: chart, before: application, may: in("openshift-gitops"), out: before + hides("argocd") + has("openshift-gitops")},
		{name: "in none, so that the step fails", line: "doctor orders", world: chart, before: application, may: in(), code: 1, err: oneProblem, out: before + blind},
		{name: "the Application is in the other", line: "doctor orders", world: chart, before: seenIn("openshift-gitops"), may: in("openshift-gitops"), out: before + has("openshift-gitops")},
		{
			name: "an account that may only look", line: "doctor orders", world: chart, before: seenIn("argocd"), may: reads,
			out: before + "unknown  whether step hold-owners suspends Application/shop of namespace argocd, which may manage Deployment/orders from Git: " + user + " may not list, watch, patch applications.argoproj.io there; if it does, " + grant("argocd"),
		},
		{name: "a mark that does not say where", line: "doctor orders", world: tracked, before: application, may: in("argocd"), out: before + has("argocd") + hides("openshift-gitops")},
		{name: "a mark that does not say where, and an account that may nothing", line: "doctor orders", world: tracked, before: application, may: in(), code: 1, err: oneProblem, out: before + blind},
		{name: "and the Application is seen", line: "doctor orders", world: tracked, before: seenIn("openshift-gitops"), may: in("openshift-gitops"), out: before + "ok       " + user + " has the rights of step hold-owners on Application/shop of namespace openshift-gitops, which manages Deployment/orders from Git\n"},
		{
			name: "where the account may nothing", line: "doctor orders", world: tracked, before: seenIn("openshift-gitops"), may: in("argocd"), code: 1, err: oneProblem,
			out: before + "amiss    " + lacks + ", and step hold-owners suspends Application/shop of namespace openshift-gitops, which manages Deployment/orders from Git\n         " + grant("openshift-gitops"),
		},
	})
}
