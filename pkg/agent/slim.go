package agent

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// Bounds of what is kept of an object's metadata, in bytes (guesses: parameters of a trigger
// may have 16 KiB, and the largest status, that of 50 targets that sleep, stays below 64).
// Whoever may write ConfigMaps in a namespace may write a megabyte there, into each of them.
const (
	maxAnnotation  = 64 << 10
	maxAnnotations = 96 << 10
	maxOfOthers    = 4 << 10 // for annotations, labels, finalizers and owners each
	maxEdits       = 16      // entries of managedFields
)

// slimRun keeps of a run that does not count no more than why. A run is written as it is kept,
// so what others have put on it stays as long as it is small.
func (a *Agent) slimRun(o any) (any, error) {
	if cm, ok := o.(*corev1.ConfigMap); ok {
		a.keys.Empty(cm)
		if weightOfForeign(cm.Annotations) > maxOfOthers {
			dropForeign(cm.Annotations)
		}
		a.boundMetadata(&cm.ObjectMeta)
	}
	return store.Strip(o)
}

// slimNamespace keeps of a namespace's annotations those of ours: nobody looks at others.
func (a *Agent) slimNamespace(o any) (any, error) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		dropForeign(m.Annotations)
		frozen := m.Annotations[annotations.StatusFrozen]
		ours := frozen != "" && len(frozen) <= annotations.MaxFrozenBytes // what it has been told to refuse is read again
		if ours {
			delete(m.Annotations, annotations.StatusFrozen)
		}
		a.boundMetadata(&m.ObjectMeta)
		if ours {
			m.Annotations[annotations.StatusFrozen] = frozen
		}
	}
	return store.Strip(o)
}

// boundMetadata takes out of an object's metadata what is beyond its bounds. In the place of a
// value of ours stands a text of its length: whoever reads it finds a fault, and says so.
func (a *Agent) boundMetadata(m *metav1.ObjectMeta) {
	a.boundAnnotations(m.Annotations)
	if weightOfForeign(m.Labels) > maxOfOthers {
		dropForeign(m.Labels)
	}
	finalizers, owners := 0, 0
	for _, f := range m.Finalizers {
		finalizers += len(f)
	}
	if finalizers > maxOfOthers {
		m.Finalizers = slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return !annotations.IsProjectKey(f) })
	}
	for _, o := range m.OwnerReferences {
		owners += len(o.APIVersion) + len(o.Kind) + len(o.Name) + len(o.UID)
	}
	if owners > maxOfOthers {
		m.OwnerReferences = nil
	}
}

// boundEdits keeps of very many entries the newest one: when a document was last edited is all
// that is asked.
func boundEdits(m *metav1.ObjectMeta) {
	if len(m.ManagedFields) <= maxEdits {
		return
	}
	newest := slices.MaxFunc(m.ManagedFields, func(x, y metav1.ManagedFieldsEntry) int {
		switch {
		case x.Time == nil || y.Time != nil && x.Time.Before(y.Time):
			return -1
		case y.Time == nil || y.Time.Before(x.Time):
			return 1
		}
		return 0
	})
	m.ManagedFields = []metav1.ManagedFieldsEntry{newest}
}

func (a *Agent) boundAnnotations(on map[string]string) {
	weight := 0
	for k, v := range on {
		if len(v) > maxAnnotation {
			on[k] = a.caches.placeholder.Of(len(v))
			v = ""
		}
		weight += len(k) + len(v)
	}
	if weight <= maxAnnotations {
		return
	}
	read := annotationsRead()
	maps.DeleteFunc(on, func(k, _ string) bool { return !read[k] })
	weight = 0
	for _, k := range slices.SortedFunc(maps.Keys(on), func(x, y string) int { return cmp.Or(len(on[x])-len(on[y]), cmp.Compare(x, y)) }) {
		if weight += len(k) + len(on[k]); weight > maxAnnotations {
			on[k] = a.caches.placeholder.Of(len(on[k]))
		}
	}
}

func dropForeign(m map[string]string) {
	maps.DeleteFunc(m, func(k, _ string) bool { return !annotations.IsProjectKey(k) })
}

func weightOfForeign(m map[string]string) (n int) {
	for k, v := range m {
		if !annotations.IsProjectKey(k) {
			n += len(k) + len(v)
		}
	}
	return n
}

// annotationsRead are the annotations of documents, runs and namespaces that are ever read. Whoever
// fills an object with others of ours has these alone kept.
func annotationsRead() map[string]bool {
	read := map[string]bool{annotations.TriggerOptions: true, annotations.HoldUntil: true}
	for _, intent := range []string{
		annotations.Pause, annotations.Skip, annotations.Trigger, annotations.Bypass, annotations.Approve, annotations.Reject,
		annotations.Resume, annotations.Abort, annotations.Retry, annotations.HoldState, annotations.ChangeStrategy,
	} {
		read[intent], read[annotations.Actor(intent)], read[annotations.Reason(intent)] = true, true, true
	}
	for _, key := range []string{
		annotations.ChangePolicy, annotations.PermissiveUntil, annotations.RestrictiveUntil, annotations.PermittedContexts,
		annotations.StatusPhase, annotations.StatusMessage, annotations.StatusLastRun, annotations.StatusLastRunName, annotations.StatusLastResult,
		annotations.StatusLastSuccess, annotations.StatusDryRun, annotations.StatusRuns, annotations.StatusNextRun, annotations.StatusObserved,
		annotations.StatusTrigger, annotations.StatusConditions, annotations.StatusProgress, annotations.StatusMirrored, annotations.StatusBehavior,
		annotations.StatusPermitted, annotations.StatusGate, annotations.StatusWatching, annotations.StatusToldAhead, annotations.StatusFrozen,
		annotations.StatusSignature, annotations.StatusTargets, annotations.StatusWakes, annotations.StatusSleeps, annotations.StatusAsleep,
		annotations.StatusOverall, annotations.StatusLastTransition, annotations.StatusHold,
	} {
		read[key] = true
	}
	return read
}
