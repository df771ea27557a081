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
	"k8s.io/apimachinery/pkg/types"

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

// Each bound is the most that is kept.
func TestWhatIsKeptOfMetadataReachesItsBound(t *testing.T) {
	y := func(n int) string { return strings.Repeat("y", n) }
	const note, limit = "example.org/note", "maint.dev/limit"
	var a Agent
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "orders"} // 17 bytes
	for name, c := range map[string]struct {
		most int // of the text of which more is not kept
		fill func(m *metav1.ObjectMeta, text string)
		kept func(m metav1.ObjectMeta, text string) bool
	}{
		"an annotation": {
			maxAnnotation, func(m *metav1.ObjectMeta, text string) { m.Annotations = map[string]string{note: text} },
			func(m metav1.ObjectMeta, text string) bool { return m.Annotations[note] == text },
		},
		"all annotations": {
			maxAnnotations - maxAnnotation - len("a") - len(note),
			func(m *metav1.ObjectMeta, text string) {
				m.Annotations = map[string]string{"a": y(maxAnnotation), note: text}
			},
			func(m metav1.ObjectMeta, text string) bool { return m.Annotations[note] == text },
		},
		"all that are read": {
			maxAnnotations - maxAnnotation - len(annotations.Skip) - len(annotations.Pause),
			func(m *metav1.ObjectMeta, text string) {
				m.Annotations = map[string]string{annotations.Skip: y(maxAnnotation), annotations.Pause: text, note: y(100)}
			},
			func(m metav1.ObjectMeta, text string) bool {
				return m.Annotations[annotations.Skip] == y(maxAnnotation) && m.Annotations[annotations.Pause] == text
			},
		},
		"labels of others": {
			maxOfOthers - len(note), func(m *metav1.ObjectMeta, text string) { m.Labels = map[string]string{note: text, limit: y(9)} },
			func(m metav1.ObjectMeta, text string) bool { return m.Labels[note] == text },
		},
		"finalizers": {
			maxOfOthers - 2*len(note), func(m *metav1.ObjectMeta, text string) { m.Finalizers = []string{note, text, note} },
			func(m metav1.ObjectMeta, _ string) bool { return len(m.Finalizers) == 3 },
		},
		"owners": {
			maxOfOthers - 2*17, func(m *metav1.ObjectMeta, text string) {
				long := owner
				long.UID = types.UID(text)
				m.OwnerReferences = []metav1.OwnerReference{owner, long}
			},
			func(m metav1.ObjectMeta, _ string) bool { return len(m.OwnerReferences) == 2 },
		},
	} {
		for more := range 2 {
			m := metav1.ObjectMeta{}
			text := y(c.most + more)
			c.fill(&m, text)
			a.boundMetadata(&m)
			if kept := c.kept(m, text); kept != (more == 0) {
				t.Errorf("%s: kept with %d more than may be: %t", name, more, kept)
			}
		}
	}
}

func TestOfVeryManyEditsTheNewestIsKept(t *testing.T) {
	edit := func(at int64) metav1.ManagedFieldsEntry {
		if at == 0 {
			return metav1.ManagedFieldsEntry{}
		}
		return metav1.ManagedFieldsEntry{Time: &metav1.Time{Time: time.Unix(at, 0)}}
	}
	for name, c := range map[string]struct {
		filling int64
		edits   map[int]int64
		want    int64
	}{
		"the first":                 {1, map[int]int64{0: 5, 8: 4}, 5},
		"the last":                  {1, map[int]int64{8: 4, maxEdits: 5}, 5},
		"one between":               {1, map[int]int64{3: 4, 8: 5, 12: 4}, 5},
		"the only one with a time":  {0, map[int]int64{8: 5}, 5},
		"the first, others without": {0, map[int]int64{0: 5, 8: 4}, 5},
		"the last, others without":  {0, map[int]int64{8: 4, maxEdits: 5}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			m := metav1.ObjectMeta{}
			for i := range maxEdits + 1 {
				at, ok := c.edits[i]
				if !ok {
					at = c.filling
				}
				m.ManagedFields = append(m.ManagedFields, edit(at))
			}
			some := metav1.ObjectMeta{ManagedFields: m.ManagedFields[:maxEdits]}
			boundEdits(&some)
			boundEdits(&m)
			if len(some.ManagedFields) != maxEdits || len(m.ManagedFields) != 1 || m.ManagedFields[0].Time.Unix() != c.want {
				t.Errorf("of %d are kept %d, and of one more %+v", maxEdits, len(some.ManagedFields), m.ManagedFields)
			}
		})
	}
}

func TestARunKeepsAnnotationsOfOthersUpToABound(t *testing.T) {
	play(t, func(w *world) {
		a := w.withKey(w.built())
		for more := range 2 {
			text := strings.Repeat("y", maxOfOthers-len("example.org/note")+more)
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{annotations.LabelKind: annotations.KindRun}, Annotations: map[string]string{"example.org/note": text}}}
			if _, err := a.slimRun(cm); err != nil || (cm.Annotations["example.org/note"] == text) != (more == 0) {
				t.Errorf("with %d more than may be %d bytes are kept (%v)", more, len(cm.Annotations["example.org/note"]), err)
			}
		}
	})
}
