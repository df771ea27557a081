package knob

import "strings"

// Source is the object that a gated object is fed from.
type Source struct{ Group, Kind, Namespace, Name string }

// Source is what must be read besides the object to know whether a change waits
// for it: Flux keeps on fetching what a suspended object does not apply.
func (k Knob) Source(object map[string]any) (Source, bool) {
	if k.Name != Flux {
		return Source{}, false
	}
	s := Source{Group: "source.toolkit.fluxcd.io", Namespace: text(object, "metadata", "namespace")}
	if namespace, name, ok := strings.Cut(text(object, "status", "helmChart"), "/"); ok && k.kind == "HelmRelease" {
		s.Kind, s.Namespace, s.Name = "HelmChart", namespace, name
		return s, true
	}
	field := "sourceRef"
	if k.kind == "HelmRelease" {
		field = "chartRef"
	}
	s.Kind, s.Name = text(object, "spec", field, "kind"), text(object, "spec", field, "name")
	if namespace := text(object, "spec", field, "namespace"); namespace != "" {
		s.Namespace = namespace
	}
	return s, s.Kind != "" && s.Name != "" && (k.kind == "Kustomization" || k.kind == "HelmRelease")
}

// Pending says whether the object's controller would change something if it
// could: where the object tells it. source is nil where there is none, or where
// it cannot be read.
func (k Knob) Pending(object, source map[string]any) bool {
	switch k.Name {
	case Flux:
		revision := text(source, "status", "artifact", "revision")
		return revision != "" && !applied(object, revision)
	case ArgoCD:
		return text(object, "status", "sync", "status") == "OutOfSync"
	case MachineConfigPool:
		want, have := text(object, "spec", "configuration", "name"), text(object, "status", "configuration", "name")
		return want != "" && want != have
	}
	return false
}

// applied says whether a Flux object has taken up a revision of its source. A
// HelmRelease names the version of a chart, with a part of the digest behind it
// where it came from a registry, and the digest beside it.
func applied(object map[string]any, revision string) bool {
	if have := text(object, "status", "lastAppliedRevision"); have != "" {
		return have == revision
	}
	attempted, digest := text(object, "status", "lastAttemptedRevision"), text(object, "status", "lastAttemptedRevisionDigest")
	if _, of, ok := strings.Cut(revision, "@"); ok && digest != "" {
		return of == digest
	}
	return attempted == revision
}
