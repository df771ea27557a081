// Package knob knows how other controllers are told to hold still: where the
// switch of each stands on an object, and what a gate writes there. It takes
// values and says what follows; it knows no client and no clock.
package knob

import (
	"strings"
)

// Names of the knobs that are known by name.
const (
	Flux              = "flux"
	ArgoCD            = "argocd"
	Deployment        = "deployment"
	MachineConfigPool = "machineconfigpool"
	ClusterAPI        = "cluster-api"
	Crossplane        = "crossplane"
	KubeVela          = "kubevela"
)

// Names are the knobs that are known by name.
func Names() []string {
	return []string{Flux, ArgoCD, Deployment, MachineConfigPool, ClusterAPI, Crossplane, KubeVela}
}

// Knob is the switch of a controller on an object: a field, and the value in it
// that makes the controller leave the object alone.
type Knob struct {
	Name   string   // empty for {path, closed, open}
	Path   []string // of the field, from the object's top
	Closed Value    // what a gate writes to close it

	kind string // of the objects it is for
}

// Fault is something wrong with a knob as a document spells it.
type Fault struct {
	Field   string // below knob; empty: the knob itself
	Message string
}

// Parse reads a knob for objects of a kind: a name, or {path, closed, open}.
func Parse(spelled any, apiVersion, kind string) (Knob, []Fault) {
	switch s := spelled.(type) {
	case string:
		return named(s, apiVersion, kind)
	case map[string]any:
		return custom(s, kind)
	case nil:
		return Knob{}, []Fault{{Message: "is missing; known are " + strings.Join(Names(), ", ") + ", or {path, closed, open}"}}
	}
	return Knob{}, []Fault{{Message: "must be a name or {path, closed, open}; known names are " + strings.Join(Names(), ", ")}}
}

// named is a knob by its name. Where a controller has several switches, the one
// is taken that loses nothing and works in every version:
//
//   - Argo CD: spec.syncPolicy.automated is taken out and put back as it was,
//     with syncPolicy where nothing else is in it.
//     automated.enabled is unknown to older versions, which drop it in silence;
//     the skip-reconcile annotation also stops the status, by which alone is
//     seen that change waits.
//   - Cluster API: spec.paused on a Cluster, which holds all that belongs to it;
//     the annotation, whatever its value, on any other object of it.
//   - KubeVela: a label, not an annotation (github.com/kubevela/pkg, LabelPause).
func named(name, apiVersion, kind string) (Knob, []Fault) {
	k := Knob{Name: name, kind: kind, Closed: Value{true}}
	group, _, _ := strings.Cut(apiVersion, "/")
	wants, fits := "", true
	switch name {
	case Flux:
		k.Path = []string{"spec", "suspend"}
		wants, fits = "kinds of the groups *.toolkit.fluxcd.io", strings.HasSuffix(group, ".toolkit.fluxcd.io")
	case ArgoCD:
		k.Path, k.Closed = []string{"spec", "syncPolicy", "automated"}, Value{}
		wants, fits = "Application of argoproj.io", group == "argoproj.io" && kind == "Application"
	case Deployment:
		k.Path = []string{"spec", "paused"}
		wants, fits = "Deployment of apps", group == "apps" && kind == "Deployment"
	case MachineConfigPool:
		k.Path = []string{"spec", "paused"}
		wants, fits = "MachineConfigPool of machineconfiguration.openshift.io", group == "machineconfiguration.openshift.io" && kind == "MachineConfigPool"
	case ClusterAPI:
		k.Path = []string{"spec", "paused"}
		if group != "cluster.x-k8s.io" || kind != "Cluster" {
			k.Path, k.Closed = []string{"metadata", "annotations", "cluster.x-k8s.io/paused"}, Value{"true"}
		}
		wants, fits = "kinds of the groups cluster.x-k8s.io and *.cluster.x-k8s.io", group == "cluster.x-k8s.io" || strings.HasSuffix(group, ".cluster.x-k8s.io")
	case Crossplane:
		k.Path, k.Closed = []string{"metadata", "annotations", "crossplane.io/paused"}, Value{"true"}
	case KubeVela:
		k.Path, k.Closed = []string{"metadata", "labels", "controller.core.oam.dev/pause"}, Value{"true"}
		wants, fits = "kinds of core.oam.dev", group == "core.oam.dev"
	default:
		return Knob{}, []Fault{{Message: "is no knob; known are " + strings.Join(Names(), ", ") + ", or {path, closed, open}"}}
	}
	if !fits && apiVersion != "" && kind != "" {
		return Knob{}, []Fault{{Message: name + " is for " + wants + ", not for " + kind + " of " + apiVersion}}
	}
	return k, nil
}

// IsClosedValue says whether a value in the knob's field makes the controller hold
// still, whoever wrote it.
func (k Knob) IsClosedValue(v Value) bool {
	switch {
	case k.Name == ArgoCD:
		automated, isMap := v.V.(map[string]any)
		return v.Absent() || isMap && automated["enabled"] == false
	case k.Name == ClusterAPI && k.Path[0] == "metadata":
		return !v.Absent()
	}
	return v.Equal(k.Closed)
}

// Pointer is the knob's field as a JSON pointer.
func (k Knob) Pointer() string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, field := range k.Path {
		b.WriteString("/" + escape.Replace(field))
	}
	return b.String()
}

// Keep are the fields that the knob needs of an object, apart from its identity,
// labels and our own annotations.
func (k Knob) Keep() [][]string {
	out := [][]string{k.Path}
	switch k.Name {
	case Flux:
		out = append(out, []string{"spec", "sourceRef"}, []string{"spec", "chartRef"}, []string{"status", "lastAppliedRevision"},
			[]string{"status", "helmChart"}, []string{"status", "lastAttemptedRevision"}, []string{"status", "lastAttemptedRevisionDigest"})
	case ArgoCD: // what stands beside the knob says what is taken out with it
		out = [][]string{k.Path[:len(k.Path)-1], {"status", "sync", "status"}}
	case MachineConfigPool:
		out = append(out, []string{"spec", "configuration", "name"}, []string{"status", "configuration", "name"})
	}
	return out
}
