package executors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func kustomizationsGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
}

func applicationsGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
}

// newGitHouse is a house whose cluster serves the kinds of Flux and Argo CD.
func newGitHouse(t *testing.T) *house {
	t.Helper()
	h := newHouse(t)
	crds := h.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for gvr, kind := range map[schema.GroupVersionResource]string{kustomizationsGVR(): "Kustomization", applicationsGVR(): "Application"} {
		crd := object(t, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[4]s, plural: %[1]s, singular: %[5]s}
  versions:
  - {name: %[3]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, gvr.Resource, gvr.Group, gvr.Version, kind, strings.ToLower(kind)))
		if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		eventually(t, kind+" is served", func(ctx context.Context) (bool, error) {
			_, err := h.dynamic.Resource(gvr).Namespace(h.ns).List(ctx, metav1.ListOptions{})
			return err == nil, nil
		})
	}
	groups, err := restmapper.GetAPIGroupResources(h.kube.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	h.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	return h
}

// owned is a Deployment that a Kustomization keeps, and a step that suspends that.
func (h *house) owned(t *testing.T, spec string) (owner *thing, w conformance.Backend) {
	t.Helper()
	owner = h.thing(t, kustomizationsGVR(), "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, spec: "+spec+"}")
	d := h.deployment(t)
	d.merge(fmt.Sprintf("{metadata: {labels: {kustomize.toolkit.fluxcd.io/name: %s, kustomize.toolkit.fluxcd.io/namespace: %s}}}", owner.name, h.ns))(t)
	w = owner.world(properties[plan.HoldOwnersProperties](t, "{restoreAfter: true}"), "{spec: {suspend: false}}", "spec")
	w.Call.Target.Object = &plan.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: d.name}
	w.Call.Target.UID = string(d.read(t).GetUID())
	w.Remove = func(t *testing.T) {
		t.Helper()
		d.remove(t)
		owner.remove(t)
	}
	return owner, w
}

func ownerRights() []conformance.Right {
	return append(rights("apps", "deployments", "get"), append(rights("kustomize.toolkit.fluxcd.io", "kustomizations", "get", "patch"), rights("argoproj.io", "applications", "get", "patch")...)...)
}

func TestHoldOwnersConforms(t *testing.T) {
	h := newGitHouse(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "hold-owners"),
		Rights:   append(rights("apps", "deployments", "get"), rights("kustomize.toolkit.fluxcd.io", "kustomizations", "get", "patch")...),
		New: func(t *testing.T) conformance.Backend {
			_, w := h.owned(t, "{prune: true}")
			return w
		},
	})
}

func TestAnOwnerIsSuspendedAndGivenBackAsItWas(t *testing.T) {
	h := newGitHouse(t)
	for name, c := range map[string]struct{ spec, while string }{
		"one that is open":                   {spec: `{"prune":true}`, while: `{"prune":true,"suspend":true}`},
		"one that says so":                   {spec: `{"suspend":false}`, while: `{"suspend":true}`},
		"one that somebody suspended before": {spec: `{"suspend":true}`, while: `{"suspend":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			owner, w := h.owned(t, c.spec)
			call := h.as(t, w.Call, ownerRights())
			finish(t, &call)
			if got := owner.state("spec")(t); got != c.while {
				t.Errorf("while the run lives it is %s", got)
			}
			if d := driftOf(t, call); d != nil {
				t.Errorf("nobody changed anything, and it says %s", d.Said())
			}
			if out := executor(t, "hold-owners").(executors.Restorer).Restore(t.Context(), call); out.State != executors.Done {
				t.Fatalf("%+v", out)
			}
			if got := owner.state("spec")(t); got != c.spec {
				t.Errorf("afterwards it is %s", got)
			}
		})
	}
}

// finish passes until the step is done.
func finish(t *testing.T, call *executors.Call) executors.Outcome {
	t.Helper()
	var out executors.Outcome
	for range 4 {
		if out = pass(t, "hold-owners", call); out.State == executors.Done {
			return out
		}
	}
	t.Fatalf("it is not done: %+v", out)
	return out
}

func TestAnOwnerThatIsAtWorkIsWaitedFor(t *testing.T) {
	h := newGitHouse(t)
	owner, w := h.owned(t, "{prune: true}")
	call := h.as(t, w.Call, ownerRights())
	owner.merge(`{status: {conditions: [{type: Reconciling, status: "True", reason: Progressing}]}}`)(t)
	pass(t, "hold-owners", &call)
	out := pass(t, "hold-owners", &call)
	if out.State != executors.NotYet || out.Watch == nil || !strings.Contains(out.Message, "is suspended; waits: it is being applied") {
		t.Errorf("%+v", out)
	}
	owner.merge(`{status: {conditions: [{type: Reconciling, status: "True", reason: ProgressingWithRetry}]}}`)(t)
	finish(t, &call)
}

func TestAnApplicationOfArgoCDIsHeldByItsSyncPolicy(t *testing.T) {
	h := newGitHouse(t)
	const synced = `{"syncPolicy":{"automated":{"prune":true,"selfHeal":true},"syncOptions":["CreateNamespace=false"]}}`
	app := h.thing(t, applicationsGVR(), "{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: "+synced+"}")
	d := h.deployment(t)
	id := func(app, of string) string {
		return fmt.Sprintf(`{metadata: {annotations: {argocd.argoproj.io/tracking-id: "%s_%s:apps/Deployment:%s/%s"}}}`, h.ns, app, h.ns, of)
	}
	w := d.world(properties[plan.HoldOwnersProperties](t, "{restoreAfter: true}"), "{}")
	w.Call.Target.Object = &plan.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: d.name}

	d.merge(id(app.name, "another"))(t)
	call := h.as(t, w.Call, ownerRights())
	if out := finish(t, &call); !strings.Contains(out.Message, "no GitOps owner of") || app.state("spec")(t) != synced {
		t.Errorf("a mark of another object counts: %+v", out)
	}

	d.merge(id(app.name, d.name))(t)
	call = h.as(t, w.Call, ownerRights())
	if out := pass(t, "hold-owners", &call); out.State != executors.NotYet || !strings.Contains(out.Message, "its controller has not looked at it since") {
		t.Errorf("%+v", out)
	}
	app.looks(t)
	finish(t, &call)
	if got := app.state("spec")(t); got != `{"syncPolicy":{"syncOptions":["CreateNamespace=false"]}}` {
		t.Errorf("while the run lives it is %s", got)
	}
	// another run holds it, too, and gives it back after the first
	other := h.as(t, w.Call, ownerRights())
	other.Run, other.Recorded.Before = "maint-run-orders-other", nil
	other.Objects.Holders = func(string) []executors.Holder {
		return []executors.Holder{{Run: call.Run, Path: call.Path, Before: call.Recorded.Before}}
	}
	finish(t, &other)
	call.Objects.Holders = func(string) []executors.Holder {
		return []executors.Holder{{Run: other.Run, Path: other.Path, Before: other.Recorded.Before}}
	}
	restorer := executor(t, "hold-owners").(executors.Restorer)
	if out := restorer.Restore(t.Context(), call); out.State != executors.Done || app.state("spec")(t) == synced {
		t.Errorf("%+v, and it is %s", out, app.state("spec")(t))
	}
	other.Objects.Holders = nil
	if out := restorer.Restore(t.Context(), other); out.State != executors.Done || app.state("spec")(t) != synced {
		t.Errorf("%+v, and it is %s", out, app.state("spec")(t))
	}
}

// looks is Argo CD, which takes away that it was asked to look.
func (th *thing) looks(t *testing.T) {
	t.Helper()
	if got := th.read(t).GetAnnotations()["argocd.argoproj.io/refresh"]; got != "normal" {
		t.Errorf("Argo CD is not asked to look: %q", got)
	}
	th.merge(`{metadata: {annotations: {argocd.argoproj.io/refresh: null}}}`)(t)
}

// driftOf is what somebody changed of the owner that is held.
func driftOf(t *testing.T, call executors.Call) *run.Drift {
	t.Helper()
	found, _, err := executor(t, "hold-owners").(executors.Drifter).Drift(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	return found.Drift
}

func TestAnOwnerThatSomebodyResumesIsDrift(t *testing.T) {
	h := newGitHouse(t)
	for _, spec := range []string{"{prune: true}", "{suspend: true}"} {
		owner, w := h.owned(t, spec)
		call := h.as(t, w.Call, ownerRights())
		finish(t, &call)
		owner.merge("{spec: {suspend: false}}")(t)
		if d := driftOf(t, call); d == nil || !strings.HasPrefix(d.Said(), "somebody changed spec.suspend of Kustomization/"+owner.name+" from true to false") {
			t.Errorf("%s: it says %+v", spec, d)
		}
	}
}

func TestAnOwnerThatCannotBeToldIsNotGuessed(t *testing.T) {
	h := newGitHouse(t)
	for name, c := range map[string]struct{ marks, want string }{
		"no marks":                              {"{}", "Done: no GitOps owner of Deployment/"},
		"of one that is gone":                   {"{labels: {kustomize.toolkit.fluxcd.io/name: gone, kustomize.toolkit.fluxcd.io/namespace: NS}}", "Done: no GitOps owner of Deployment/"},
		"of a kind that the cluster has not":    {"{labels: {helm.toolkit.fluxcd.io/name: web, helm.toolkit.fluxcd.io/namespace: NS}}", "Done: no GitOps owner of Deployment/"},
		"of one that may not be looked at":      {"{labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux-system}}", `may not get kustomizations.kustomize.toolkit.fluxcd.io "apps" in namespace flux-system`},
		"of an Application that may be anybody": {"{labels: {app.kubernetes.io/instance: web}}", `may not get applications.argoproj.io "web" in namespace argocd`},
	} {
		t.Run(name, func(t *testing.T) {
			d := h.deployment(t)
			d.merge("{metadata: " + strings.ReplaceAll(c.marks, "NS", h.ns) + "}")(t)
			w := d.world(properties[plan.HoldOwnersProperties](t, "{restoreAfter: true}"), "{}")
			w.Call.Target.Object = &plan.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: d.name}
			call := h.as(t, w.Call, ownerRights())
			out := pass(t, "hold-owners", &call)
			got := "Done: " + out.Message
			if out.State != executors.Done {
				got = out.Reason + ": " + out.Message
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
