package knob

import (
	"slices"
	"strings"
)

// Object is an object by its kind and name.
type Object struct{ Group, Kind, Namespace, Name string }

// Owner is an object whose controller manages another object from Git.
type Owner struct {
	APIVersion, Kind string
	Namespaces       []string // where it may be, the likeliest first
	Anywhere         bool     // or in any other: its mark does not say where
	Name             string
	Knob             Knob
	// Doubtful says that the mark of it is others', too: it is the owner if it says so itself.
	Doubtful bool
}

// String is the owner as people say it: Kustomization/apps.
func (o Owner) String() string { return o.Kind + "/" + o.Name }

// The namespaces in which Argo CD is installed by its own manifests and by OpenShift's.
const (
	argoNamespace      = "argocd"
	openshiftNamespace = "openshift-gitops"
)

// refresh is the annotation that asks Argo CD to look at an Application. It takes it away
// when it has looked, and has set on foot what it decided to do.
const refresh = "argocd.argoproj.io/refresh"

// helmRelease is the kind whose controller says that it is at something from its first look
// on, also while it only waits for a chart, and that it has seen a suspension.
const helmRelease = "HelmRelease"

// Owners are who manages an object from Git, by its labels and annotations: Flux marks
// what it applies with the name and namespace of its Kustomization or HelmRelease, Argo CD
// with a tracking id, or a label with the Application's name. A mark of another object, that
// came along with a copy, does not count.
func Owners(of Object, labels, annotations map[string]string) []Owner {
	var out []Owner
	for _, flux := range []struct{ group, version, kind string }{
		{"helm.toolkit.fluxcd.io", "v2", helmRelease},
		{"kustomize.toolkit.fluxcd.io", "v1", "Kustomization"},
	} {
		name, namespace := labels[flux.group+"/name"], labels[flux.group+"/namespace"]
		if name == "" || namespace == "" || len(out) > 0 { // what a chart renders is the release's, whatever label came along
			continue
		}
		apiVersion := flux.group + "/" + flux.version
		k, _ := named(Flux, apiVersion, flux.kind)
		out = append(out, Owner{APIVersion: apiVersion, Kind: flux.kind, Namespaces: []string{namespace}, Name: name, Knob: k})
	}
	if argo, marked := application(of, labels, annotations); marked {
		out = append(out, argo)
	}
	return out
}

// application is the Argo CD Application that marked an object.
func application(of Object, labels, annotations map[string]string) (Owner, bool) {
	const apiVersion, kind = "argoproj.io/v1alpha1", "Application"
	out := Owner{APIVersion: apiVersion, Kind: kind}
	out.Knob, _ = named(ArgoCD, apiVersion, kind)
	if id := annotations["argocd.argoproj.io/tracking-id"]; id != "" {
		app, object, _ := strings.Cut(id, ":")
		if object != trackingID(of) || app == "" {
			return Owner{}, false
		}
		out.Name, out.Namespaces, out.Anywhere = app, []string{argoNamespace, openshiftNamespace}, true
		if namespace, name, apart := strings.Cut(app, "_"); apart { // of an Application outside of Argo CD's own namespace
			out.Name, out.Namespaces, out.Anywhere = name, []string{namespace}, false
		}
		return out, true
	}
	for _, key := range []string{"argocd.argoproj.io/instance", "app.kubernetes.io/instance"} {
		if name := labels[key]; name != "" {
			out.Name, out.Namespaces, out.Doubtful = name, []string{argoNamespace, openshiftNamespace}, true
			return out, true
		}
	}
	return Owner{}, false
}

// trackingID is an object in a tracking id: group/Kind:namespace/name.
func trackingID(o Object) string { return o.Group + "/" + o.Kind + ":" + o.Namespace + "/" + o.Name }

// Owns says whether an owner's own status names an object. Of Flux, whose marks are never
// others', nothing has to be said.
func (o Owner) Owns(owner map[string]any, object Object) bool {
	if o.Knob.Name != ArgoCD {
		return true
	}
	status, _ := owner["status"].(map[string]any)
	resources, _ := status["resources"].([]any)
	return slices.ContainsFunc(resources, func(r any) bool {
		named, _ := r.(map[string]any)
		return object == Object{Group: text(named, "group"), Kind: text(named, "kind"), Namespace: text(named, "namespace"), Name: text(named, "name")}
	})
}

// Busy says what an owner's controller is at, which it ends though it is told to hold
// still; empty: nothing.
func (o Owner) Busy(owner map[string]any) string {
	if o.Knob.Name == ArgoCD {
		// what is asked for is written as an operation first, and taken away at its end
		if owner["operation"] != nil || text(owner, "status", "operationState", "phase") == "Running" {
			return "a sync is under way"
		}
		return ""
	}
	if o.Kind == helmRelease && seen(owner) {
		return ""
	}
	status, _ := owner["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		is, _ := c.(map[string]any)
		if is["type"] == "Reconciling" && is["status"] == "True" && is["reason"] == "Progressing" {
			return "it is being applied"
		}
	}
	return ""
}

// RefreshRequest is the annotation that has an owner's controller say that it has looked, and its
// value; empty: it says so by itself. Argo CD decides to sync by the Application as it was
// when it began to look, which takes as long as a repository takes to render.
func (o Owner) RefreshRequest() (key, value string) {
	if o.Knob.Name != ArgoCD {
		return "", ""
	}
	return refresh, "normal"
}

// RefreshPending says whether an owner's controller was asked and has not looked since.
func (o Owner) RefreshPending(owner map[string]any) bool {
	key, _ := o.RefreshRequest()
	return key != "" && text(owner, "metadata", "annotations", key) != ""
}

// seen says whether a controller has looked at an owner as it is specified now. One object
// is looked at once at a time, so that nothing is under way from before.
func seen(owner map[string]any) bool {
	meta, _ := owner["metadata"].(map[string]any)
	status, _ := owner["status"].(map[string]any)
	return meta["generation"] != nil && meta["generation"] == status["observedGeneration"]
}
