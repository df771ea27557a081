package plans

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

func TestWhatIsKeptOfAnEndedRunDecidesHowLongItStays(t *testing.T) {
	meta := func(name, phase string, age time.Duration) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: "u", ResourceVersion: "7", CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
			Labels: map[string]string{annotations.LabelPlan: "orders", annotations.LabelPhase: phase},
		}}
	}
	h, a := store.NewHistory(), &Controller{Config: Config{Now: time.Now}}
	for _, m := range []*metav1.PartialObjectMetadata{meta("old", "Succeeded", 3*time.Hour), meta("new", "Succeeded", time.Hour), meta("bad", "Failed", time.Hour)} {
		slim, err := store.SlimEndedRun(agenttest.Keys())(m)
		if err != nil {
			t.Fatal(err)
		}
		if name, err := cache.MetaNamespaceKeyFunc(slim); err != nil || name != "shop/"+m.Name {
			t.Errorf("a cache calls it %q, %v", name, err)
		}
		h.Put(slim.(*store.EndedRun))
		h.Put(slim.(*store.EndedRun)) // seen again
	}
	all := h.Of(types.NamespacedName{Namespace: "shop", Name: "orders"})
	if len(all) != 3 {
		t.Fatalf("%d runs are kept, want 3", len(all))
	}
	if gone := a.beyond(all[:2], 1, 24*time.Hour); len(gone) != 1 || gone[0].Name != "old" {
		t.Errorf("beyond a limit of one: %+v", gone)
	}
	if gone := a.beyond(all[:2], 5, 2*time.Hour); len(gone) != 1 || gone[0].Name != "old" {
		t.Errorf("older than two hours: %+v", gone)
	}
	for _, r := range all {
		h.Drop(r)
	}
	if len(h.Runs) != 0 {
		t.Errorf("kept after all are gone: %v", h.Runs)
	}
}

func TestOfRunsOfOneSecondTheLastToEndStays(t *testing.T) {
	made := metav1.NewTime(time.Now().Truncate(time.Second))
	var runs []*store.EndedRun
	for _, version := range []string{"102", "99", "101", "100"} {
		slim, err := store.SlimEndedRun(agenttest.Keys())(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: version, UID: types.UID(version), ResourceVersion: version, CreationTimestamp: made,
		}})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, slim.(*store.EndedRun))
	}
	a := &Controller{Config: Config{Now: time.Now}}
	var gone []string
	for _, r := range a.beyond(runs, 2, time.Hour) {
		gone = append(gone, r.Name)
	}
	if !slices.Equal(gone, []string{"100", "99"}) {
		t.Errorf("beyond a limit of two: %q", gone)
	}
}
