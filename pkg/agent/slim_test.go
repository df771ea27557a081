package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// heldBy is how many bytes an object's metadata and data hold that are its own: a text of our
// placeholder is there once for all.
func heldBy(a *Agent, cm *corev1.ConfigMap) (n int) {
	for _, m := range []map[string]string{cm.Annotations, cm.Labels, cm.Data} {
		for k, v := range m {
			if n += len(k); v != a.caches.placeholder.Of(len(v)) {
				n += len(v)
			}
		}
	}
	for _, f := range cm.Finalizers {
		n += len(f)
	}
	for _, o := range cm.OwnerReferences {
		n += len(o.Name)
	}
	for _, f := range cm.ManagedFields {
		n += len(f.Manager)
	}
	return n
}

// Whoever fills the metadata of ConfigMaps does not fill the agent's memory.
func TestWhatIsKeptOfMetadataHasABound(t *testing.T) {
	long := func(n int) string { return strings.Repeat("y", n) }
	many := func(key string, n int, value string) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprintf("%s%d", key, i)] = value
		}
		return out
	}
	fillings := map[string]func(m *metav1.ObjectMeta){
		"a foreign annotation":      func(m *metav1.ObjectMeta) { m.Annotations = map[string]string{"junk": long(255_000)} },
		"an unknown one of ours":    func(m *metav1.ObjectMeta) { m.Annotations = map[string]string{"maint.dev/junk": long(255_000)} },
		"many unknown ones of ours": func(m *metav1.ObjectMeta) { m.Annotations = many("maint.dev/a", 12_000, "12345678") },
		"an intent":                 func(m *metav1.ObjectMeta) { m.Annotations = map[string]string{annotations.Skip: long(255_000)} },
		"several of a size that may be": func(m *metav1.ObjectMeta) {
			for _, key := range []string{annotations.Skip, annotations.Trigger, annotations.StatusMessage, annotations.StatusConditions, annotations.TriggerOptions} {
				m.Annotations[key] = long(50_000)
			}
		},
		"labels":     func(m *metav1.ObjectMeta) { maps.Copy(m.Labels, many("example.org/", 3000, long(63))) },
		"finalizers": func(m *metav1.ObjectMeta) { m.Finalizers = slices.Repeat([]string{"example.org/" + long(60)}, 4000) },
		"owners": func(m *metav1.ObjectMeta) {
			m.OwnerReferences = slices.Repeat([]metav1.OwnerReference{{Name: long(250)}}, 3000)
		},
		"managers": func(m *metav1.ObjectMeta) {
			m.ManagedFields = slices.Repeat([]metav1.ManagedFieldsEntry{{Manager: long(120), Time: &metav1.Time{Time: time.Unix(1, 0)}}}, 4000)
		},
	}
	kinds := []string{annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindCalendar, annotations.KindStepTemplate, annotations.KindConnector, annotations.KindGate, annotations.KindAgentConfig, annotations.KindRun, annotations.KindRestore}
	play(t, func(w *world) {
		a := w.withKey(w.built())
		for what, fill := range fillings {
			for _, kind := range kinds {
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "orders", Labels: map[string]string{annotations.LabelKind: kind}, Annotations: map[string]string{}}}
				fill(&cm.ObjectMeta)
				keep := a.slimDocument
				if kind == annotations.KindRun || kind == annotations.KindRestore {
					keep = a.slimRun
				}
				if _, err := keep(cm); err != nil {
					t.Fatal(err)
				}
				if held := heldBy(a, cm); held > maxAnnotations+3*maxOfOthers {
					t.Errorf("%s of a %s takes %d bytes", what, kind, held)
				}
				if cm.Labels[annotations.LabelKind] != kind {
					t.Errorf("%s of a %s takes its label", what, kind)
				}
			}
		}
	})
}

// What is taken out of an intent is a fault, and not a text that nobody has written.
func TestAnIntentBeyondItsBoundIsAFault(t *testing.T) {
	play(t, func(w *world) {
		a := w.built()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{annotations.LabelKind: annotations.KindPlan}, Annotations: map[string]string{annotations.Pause: "true", annotations.Skip: strings.Repeat(" ", 255_000)}}}
		if _, err := a.slimDocument(cm); err != nil {
			t.Fatal(err)
		}
		if in := annotations.Intent(cm.Annotations); !in.Pause.On || len(in.Faults) != 1 || in.Faults[0].Path != annotations.Skip {
			t.Errorf("%+v", in)
		}
	})
}

// A run is written as it is kept: what others put on it stays, as long as it is small.
func TestARunKeepsSmallAnnotationsOfOthers(t *testing.T) {
	play(t, func(w *world) {
		a := w.withKey(w.built())
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{annotations.LabelKind: annotations.KindRun}, Annotations: map[string]string{"example.org/note": "x"}}}
		if _, err := a.slimRun(cm); err != nil || cm.Annotations["example.org/note"] != "x" {
			t.Errorf("%v (%v)", cm.Annotations, err)
		}
	})
}

func TestWhatIsKeptOfANamespaceIsOurs(t *testing.T) {
	play(t, func(w *world) {
		a := w.built()
		m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: shop, Annotations: map[string]string{annotations.Pause: "true", annotations.StatusFrozen: "x", "example.org/note": "y"}}}
		if _, err := a.slimNamespace(m); err != nil || len(m.Annotations) != 2 || m.Annotations[annotations.Pause] != "true" {
			t.Errorf("%v (%v)", m.Annotations, err)
		}
	})
}

// What a namespace has been told to refuse is read again by the agent, as long as it may be.
func TestWhatANamespaceRefusesIsKeptWhole(t *testing.T) {
	a := &Agent{}
	long := strings.Repeat("y", annotations.MaxFrozenBytes)
	for text, kept := range map[string]bool{long: true, long + "y": false} {
		m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{annotations.StatusFrozen: text, annotations.Pause: "true", "example.org/junk": long}}}
		if _, err := a.slimNamespace(m); err != nil {
			t.Fatal(err)
		}
		if got := m.Annotations; (got[annotations.StatusFrozen] == text) != kept || got[annotations.Pause] != "true" || got["example.org/junk"] != "" {
			t.Errorf("of %d bytes %d are kept", len(text), len(got[annotations.StatusFrozen]))
		}
	}
}
