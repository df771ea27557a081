package gates

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// annotated puts a Kustomization with an annotation of so many bytes.
func (w *world) annotated(name, key string, size int) {
	w.Helper()
	w.cluster.Put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"namespace": "shop", "name": name, "annotations": map[string]any{key: strings.Repeat("x", size)}},
		"spec":     map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "repo"}},
	}})
}

// What gates keep of their objects is what they read, and bounded for each namespace: nobody fills the
// agent's memory by large objects, and what is left is said and left as it is.
func TestGatesKeepSoMuchOfTheirObjectsAndNoMore(t *testing.T) {
	const size = 110 << 10
	for _, c := range []struct {
		name, key string
		most      int // MiB that are kept
		left      bool
	}{
		{"an annotation that is never read", "maint.dev/big", 1, false},
		{"one that is read", annotations.Reason(annotations.ChangeStrategy), maxKeptOfNamespace >> 20, true},
		{"one that the agent writes anew", annotations.StatusBehavior, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				for i := range 170 {
					w.annotated(fmt.Sprintf("app-%d", i), c.key, size)
				}
				w.policy("closed", "{strategy: Restrictive, gates: ["+fluxGate+"]}")
				w.begins()
				w.after(10 * time.Minute)
				closed := 0
				for i := range 170 {
					if w.suspended(fmt.Sprintf("app-%d", i)) == true {
						closed++
					}
				}
				if kept := w.gates.set.budget.all; kept > c.most<<20+170*2*perObject || (closed == 170) == c.left || closed == 0 {
					t.Errorf("%d bytes are kept, and %d of 170 are closed", kept, closed)
				}
				said := fmt.Sprint(w.gates.Condition(types.NamespacedName{Namespace: "shop", Name: "closed"}))
				if strings.Contains(said, "the gates of the policies of namespace shop keep more than 16 MiB") != c.left {
					t.Errorf("the policy says %s", said)
				}
				for i := range 170 {
					w.cluster.Delete("kustomizations", "shop", fmt.Sprintf("app-%d", i))
				}
				if w.after(0); w.gates.set.budget.all != 0 {
					t.Errorf("of objects that are gone %d bytes are counted", w.gates.set.budget.all)
				}
			})
		})
	}
}

// What is left for want of room is taken in once there is some, and nothing that is held is forgotten.
func TestWhatGatesLeftIsTakenInOnceThereIsRoom(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 170 {
			w.annotated(fmt.Sprintf("app-%d", i), annotations.Reason(annotations.ChangeStrategy), 110<<10)
		}
		w.policy("closed", "{strategy: Restrictive, gates: ["+fluxGate+"]}")
		w.begins()
		closed := func() (n int) {
			for i := range 170 {
				if u := w.cluster.Get("kustomizations", "shop", fmt.Sprintf("app-%d", i)); u != nil && w.suspended(u.GetName()) == true {
					n++
				}
			}
			return n
		}
		some := closed()
		for i, gone := 0, 0; i < 170 && gone < 85; i++ {
			if w.suspended(fmt.Sprintf("app-%d", i)) == true {
				w.cluster.Delete("kustomizations", "shop", fmt.Sprintf("app-%d", i))
				gone++
			}
		}
		w.after(10 * time.Minute)
		if now := closed(); some >= 170 || now != 85 {
			t.Errorf("%d were closed, and %d of the 85 that stay", some, now)
		}
	})
}

// What an admin's gates keep is counted by whose the objects are: a tenant who makes theirs large takes
// nothing from others, and what no tenant writes has no bound but for one object.
func TestWhatTheGatesOfTheAgentsNamespaceKeepIsCountedByTheirObjects(t *testing.T) {
	b := newMemoryBudget("maint-system")
	watch := func(namespace string) *gateWatch {
		w := &gateWatch{key: informer.Key{As: types.NamespacedName{Namespace: namespace, Name: "runner"}}}
		b.open(w)
		return w
	}
	object := func(namespace string, i, size int) *gateObject {
		o := &gateObject{}
		o.Namespace, o.Name, o.UID = namespace, fmt.Sprintf("o-%d", i), types.UID(fmt.Sprint(namespace, i))
		o.Annotations = map[string]string{annotations.Reason(annotations.ChangeStrategy): strings.Repeat("x", size)}
		return o
	}
	whole := func(w *gateWatch, namespace string, size int) (n int) {
		for i := range 400 {
			if b.keep(w, object(namespace, i, size)).tooMuch == "" {
				n++
			}
		}
		return n
	}
	admin, tenant := watch("maint-system"), watch("hostile")
	for what, c := range map[string]struct {
		got  int
		full bool
	}{
		"a tenant's objects, by the admin's gates":    {whole(admin, "hostile", 100<<10), false},
		"another's, by the same":                      {whole(admin, "shop", 10<<10), true},
		"the tenant's own gates":                      {whole(tenant, "hostile", 100<<10), false},
		"what is in no namespace":                     {whole(admin, "", 100<<10), true},
		"objects that are too large, of no namespace": {400 - whole(watch("maint-system"), "", 200<<10), true},
	} {
		if (c.got == 400) != c.full {
			t.Errorf("%s: %d", what, c.got)
		}
	}
	if b.all > maxKeptOfNamespace+400*2*perObject || b.byNamespace["maint-system/hostile"] > maxKeptOfNamespace+400*2*perObject {
		t.Errorf("%d and %v are counted", b.all, b.byNamespace)
	}
	b.drop(admin)
	b.drop(tenant)
	if b.all != 0 || len(b.byNamespace) > 0 {
		t.Errorf("when they have ended, %d and %v are counted", b.all, b.byNamespace)
	}
}

// A watch that ends gives back what it kept.
func TestAGateThatIsTakenOutGivesItsRoomBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.annotated("app", annotations.StatusBehavior, 1<<10)
		w.policy("closed", "{strategy: Permissive, gates: ["+fluxGate+"]}")
		w.begins()
		if w.gates.set.budget.all == 0 {
			t.Error("nothing is counted")
		}
		w.policy("closed", "{strategy: Permissive}")
		if w.after(10 * time.Minute); w.gates.set.budget.all != 0 || len(w.gates.set.budget.byNamespace) > 0 {
			t.Errorf("%d bytes are counted of watches that ended", w.gates.set.budget.all)
		}
	})
}
