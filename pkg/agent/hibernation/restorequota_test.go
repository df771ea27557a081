package hibernation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// longPlan is a plan of 10 targets, each of which writes down all of it: 80 KiB.
func longPlan() string {
	var b strings.Builder
	b.WriteString("schedule:\n  offHours: [{start: \"01:00\", end: \"03:00\"}]\n  exclude:\n")
	for range 10 {
		fmt.Fprintf(&b, "  - {fromDate: 1999-01-01, untilDate: 1999-01-02, reason: %s}\n", strings.Repeat("x", 700))
	}
	b.WriteString("targets:\n")
	for i := range 10 {
		fmt.Fprintf(&b, "- {name: t%d, type: noop}\n", i)
	}
	return b.String()
}

func TestANamespaceHasSoMuchRestoreDataAndNoMore(t *testing.T) {
	night(t, longPlan(), func(w *world) {
		const most = 512 << 10
		w.agent.records.most = most
		for i := range 9 {
			cm := w.api.ConfigMap(shop, "nights").DeepCopy()
			cm.ObjectMeta = metav1.ObjectMeta{Namespace: shop, Name: fmt.Sprintf("more-%d", i), Labels: cm.Labels}
			w.api.Put(cm)
		}
		w.until("01:02")
		held := restoreBytes(w)
		if held < most/2 || held > most+64<<10 {
			t.Errorf("%d KiB of restore data stand there, of %d", held>>10, most>>10)
		}
		refused := 0
		for i := range 9 {
			said := w.api.ConfigMap(shop, fmt.Sprintf("more-%d", i)).Annotations[annotations.StatusMessage]
			if strings.Contains(said, "does not fall asleep: its restore data would take") {
				refused++
			}
		}
		if refused == 0 || refused > 6 {
			t.Errorf("%d of 9 plans say that they find no room", refused)
		}
		w.until("03:30")
		if left := restoreBytes(w); left != 0 {
			t.Errorf("%d bytes of restore data are left", left)
		}
	})
}

func restoreBytes(w *world) int {
	held := 0
	for _, name := range w.api.Names("configmaps") {
		cm := w.api.ConfigMap(shop, strings.TrimPrefix(name, shop+"/"))
		if cm != nil && cm.Labels[annotations.LabelKind] == annotations.KindRestore {
			held += annotations.SizeOf(cm)
		}
	}
	return held
}

func TestWhatIsFoundBeyondTheRoomIsNotRecorded(t *testing.T) {
	r := newRecords(nil, nil)
	c := &Controller{records: r}
	k := keyOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "nights"}})
	big := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "big"}, Data: map[string]string{"x": strings.Repeat("x", mostRestore-10)}}
	r.byKey[keyOf(big)] = &stored{object: big}
	before := hibernate.Record{Operation: hibernate.Shutdown}
	after := before
	after.Resources = []hibernate.Resource{{ID: "deployments.apps/shop/web"}}
	if c.overQuota(k, before, after) == "" {
		t.Error("it is recorded beyond the room that there is")
	}
	if why := c.overQuota(k, after, after); why != "" {
		t.Errorf("what is recorded already is refused: %s", why)
	}
	before.Operation = hibernate.Wake
	if why := c.overQuota(k, before, after); why != "" {
		t.Errorf("waking is refused: %s", why)
	}
	k.Namespace = "another"
	before.Operation = hibernate.Shutdown
	if why := c.overQuota(k, before, after); why != "" {
		t.Errorf("another namespace is refused: %s", why)
	}
}

func TestWhatMayOutgrowItsConfigMapIsNotRecorded(t *testing.T) {
	c := &Controller{records: newRecords(nil, nil)}
	k := keyOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "nights"}})
	before := hibernate.Record{Operation: hibernate.Shutdown}
	after := before
	for i := range 4 {
		after.Resources = append(after.Resources, hibernate.Resource{ID: fmt.Sprint("fn-", i), Before: json.RawMessage(`"` + strings.Repeat("x", 250<<10) + `"`)})
	}
	if why := c.overQuota(k, before, after); !strings.HasSuffix(why, "make several targets of it") {
		t.Errorf("it is recorded: %q", why)
	}
	if why := c.overQuota(k, after, after); why != "" {
		t.Errorf("what is recorded already is refused: %s", why)
	}
	before.Operation = hibernate.Wake
	if why := c.overQuota(k, before, after); why != "" {
		t.Errorf("waking is refused: %s", why)
	}
}
