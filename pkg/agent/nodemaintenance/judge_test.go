package nodemaintenance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
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
		"a look that did not fail ends what was said of others":         {was: preview{block: blocked, failed: workflow.Refusal{Since: now, Times: 2}}, found: preview{}},
		"a look that failed, and nothing is known":                      {found: preview{failed: workflow.Refusal{Since: now, Times: 1}}, unknown: true},
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

// What was known before a look that failed counts, but not without end: while a drain does not run,
// nobody else could say that nothing is in its way any more.
func TestWhatCountsAfterALookThatFailed(t *testing.T) {
	now := time.Now()
	blocked := nodes.Block{Permanent: true, Text: "shop/web"}
	known := func(change ...func(*preview)) preview {
		p := preview{at: now.Add(-time.Minute), found: now.Add(-time.Minute), block: blocked, budgets: []string{"shop/web"}}
		for _, f := range change {
			f(&p)
		}
		return p
	}
	fails := func(p *preview) { p.failed = workflow.Refusal{Since: now.Add(-workflow.RefusalTimeout), Times: 2} }
	moved := func(p *preview) { p.changed = true }
	for name, c := range map[string]struct {
		was     preview
		drain   nodeDrain
		block   nodes.Block
		unknown bool
	}{
		"what was found before":                           {was: known(), block: blocked},
		"what was found before, for half a minute":        {was: known(fails), block: blocked},
		"its budget has moved":                            {was: known(moved), block: blocked},
		"its budget has moved, and no look says more":     {was: known(moved, fails)},
		"it moved during the look":                        {was: known(fails, func(p *preview) { p.moved = []string{"shop/web"} })},
		"another moved during the look":                   {was: known(fails, func(p *preview) { p.moved = []string{"shop/db"} }), block: blocked},
		"nobody has seen it for long":                     {was: known(fails, func(p *preview) { p.found = now.Add(-mostUnread) })},
		"its drain says so now":                           {was: known(fails, moved), drain: nodeDrain{known: blocked, runs: true}, block: blocked},
		"nobody has looked, its status says so":           {drain: nodeDrain{known: blocked}, block: blocked},
		"it counts no more, its status says so still":     {was: preview{at: now.Add(-time.Minute), final: true, failed: workflow.Refusal{Since: now.Add(-time.Hour), Times: 9}}, drain: nodeDrain{known: blocked}},
		"nothing is known":                                {unknown: true},
		"nothing is known, and nobody waits any more":     {was: preview{failed: workflow.Refusal{Since: now.Add(-workflow.RefusalTimeout), Times: 1}}},
		"nothing was in the way, as the look before said": {was: preview{at: now.Add(-time.Minute)}, unknown: true},
	} {
		found := preview{at: now.Add(time.Second), found: now.Add(time.Second)}
		if found.keepsOf(&c.was, c.drain, now); found.block != c.block || found.unknown() != c.unknown {
			t.Errorf("%s: unknown %t, block %+v", name, found.unknown(), found.block)
		}
	}
}

func TestOfAnythingButItsOwnKindNothingIsTakenAway(t *testing.T) {
	other := &corev1.Secret{}
	for what, slim := range map[string]func(any) (any, error){"nodes": SlimNode, "pods": slimPod} {
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
