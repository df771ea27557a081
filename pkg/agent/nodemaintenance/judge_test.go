package nodemaintenance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

func TestWhetherANodeIsAsAStepWritesIt(t *testing.T) {
	yes, progress, behavior := true, "p", "b"
	ready := nodes.Status{Phase: nodes.Ready}
	full := nodes.Step{
		Statuses: map[string]nodes.Status{"gpu": ready}, Remove: []string{"os"}, Unschedulable: &yes, CordonChanged: true, Cordon: &nodes.Cordon{By: []string{"gpu"}}, Progress: &progress, Behavior: &behavior,
	}
	as := func(change ...func(*corev1.Node)) *nodeObject {
		all := append([]func(*corev1.Node){cordoned, status("gpu", ready), recorded(*full.Cordon), annotated("status.maint.dev/progress", progress), annotated("status.maint.dev/behavior", behavior)}, change...)
		return nodeOf(node("a", all...))
	}
	for name, c := range map[string]struct {
		node *nodeObject
		step nodes.Step
		want bool
	}{
		"all of it":                {as(), full, true},
		"another status":           {as(status("gpu", nodes.Status{Phase: nodes.Pending})), full, false},
		"a status that was to go":  {as(status("os", ready)), full, false},
		"another record":           {as(recorded(nodes.Cordon{By: []string{"os"}})), full, false},
		"no cordon":                {as(func(n *corev1.Node) { n.Spec.Unschedulable = false }), full, false},
		"another progress":         {as(annotated("status.maint.dev/progress", "q")), full, false},
		"another behavior":         {as(annotated("status.maint.dev/behavior", "c")), full, false},
		"a record that was to go":  {as(), nodes.Step{CordonChanged: true}, false},
		"what nobody wrote counts": {nodeOf(node("a")), nodes.Step{}, true},
	} {
		if got := shows(c.node, c.step); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A look at pods lasts, and budgets move meanwhile.
func TestWhatALookAtPodsFoundIsKeptOrLookedForAgain(t *testing.T) {
	now := time.Now()
	blocked := nodes.Block{Permanent: true, Text: "shop/web"}
	for name, c := range map[string]struct {
		was, found preview
		watched    time.Time
		stale      bool
		block      nodes.Block
		unknown    bool
	}{
		"it is believed":                           {found: preview{block: blocked, budgets: []string{"shop/web"}}, block: blocked},
		"its budget moved during the look":         {was: preview{moved: []string{"shop/web"}}, found: preview{block: blocked, budgets: []string{"shop/web"}}, block: blocked, stale: true},
		"another budget moved during the look":     {was: preview{moved: []string{"shop/db"}}, found: preview{block: blocked, budgets: []string{"shop/web"}}, block: blocked},
		"the watch on budgets began after it":      {watched: now.Add(time.Second), found: preview{block: blocked}, block: blocked, stale: true},
		"nothing is in the way, so nothing is old": {watched: now.Add(time.Second), found: preview{}},
		"a budget that is not computed yet says what it said before": {
			was: preview{block: blocked, budgets: []string{"shop/web"}}, found: preview{unsettled: true}, block: blocked,
		},
		"a budget that is not computed yet, and blocks whatever comes of that": {
			was: preview{block: nodes.Block{Permanent: true, Text: "before"}}, found: preview{unsettled: true, block: blocked}, block: blocked,
		},
		"a budget that is not computed yet, and nothing was in the way": {was: preview{}, found: preview{unsettled: true}},
		"a look that failed says what was known before": {
			was: preview{block: blocked, budgets: []string{"shop/web"}}, found: preview{failed: 1}, block: blocked, stale: true,
		},
		"one after another that failed, too, says it until the next look is due": {
			was: preview{block: blocked, failed: mostLooks}, found: preview{failed: 1}, block: blocked,
		},
		"a look that failed, and nothing is known":              {found: preview{failed: 1}, stale: true, unknown: true},
		"the second that failed":                                {was: preview{failed: 1}, found: preview{failed: 1}, stale: true, unknown: true},
		"the last that failed: the drain goes on":               {was: preview{failed: mostLooks - 1}, found: preview{failed: 1}},
		"a look that did not fail ends what was said of others": {was: preview{block: blocked, failed: 2}, found: preview{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newNodePods(Config{Now: func() time.Time { return now }}, func() {}, func(string) {})
			p.watched = c.watched
			k := previewKey{node: "a", requestor: "gpu"}
			p.previews[k] = &c.was
			c.found.at = now.Add(time.Hour) // no look follows within this test
			p.storePreview(k, &c.found, now)
			if got := p.previews[k]; got.stale != c.stale || got.block != c.block || got.unknown() != c.unknown {
				t.Errorf("stale %t, unknown %t, block %+v", got.stale, got.unknown(), got.block)
			}
		})
	}
}

func TestOfAnythingButItsOwnKindNothingIsTakenAway(t *testing.T) {
	other := &corev1.Secret{}
	for what, slim := range map[string]func(any) (any, error){"nodes": SlimNode, "pods": slimPod, "budgets": slimBudget} {
		if got, err := slim(other); got != any(other) || err != nil {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
}

// Nodes tell their heartbeat all the time, which is no news.
func TestWhatIsNewsOfANode(t *testing.T) {
	now := metav1.Now()
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		news   bool
	}{
		"a heartbeat":                    {func(n *corev1.Node) { n.ResourceVersion, n.Status.Conditions[0].LastHeartbeatTime = "9", now }, false},
		"somebody else's label":          {func(n *corev1.Node) { n.Labels["pool"] = "gpu" }, false},
		"a cordon":                       {cordoned, true},
		"that it is not ready":           {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		"that it is being deleted":       {func(n *corev1.Node) { n.DeletionTimestamp = &now }, true},
		"that it is another of its name": {func(n *corev1.Node) { n.UID = "another" }, true},
		"a request":                      {asked("gpu", "{}"), true},
		"another zone":                   {zone("z2"), true},
	} {
		if got := !nodeOf(node("a", zone("z1"))).same(nodeOf(node("a", zone("z1"), c.change))); got != c.news {
			t.Errorf("%s: news %t, want %t", name, got, c.news)
		}
	}
}
