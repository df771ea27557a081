package nodes_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// bench is where the nodes of a rollout are worked on: a webhook for each, which
// holds until it is let go.
type bench struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string        // nodes in the order in which they came
	there  map[string]bool // at work now
	most   int
	open   bool
	wakes  chan struct{}
	broken map[string]bool
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{there: map[string]bool{}, wakes: make(chan struct{}), broken: map[string]bool{}}
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(func() { b.letGo(); b.Close() })
	return b
}

func (b *bench) serve(w http.ResponseWriter, r *http.Request) {
	node := strings.TrimPrefix(r.URL.Path, "/")
	b.mu.Lock()
	b.asked = append(b.asked, node)
	b.there[node] = true
	b.most = max(b.most, len(b.there))
	broken := b.broken[node]
	b.mu.Unlock()
	select {
	case <-b.wakes:
	case <-r.Context().Done():
	}
	b.mu.Lock()
	delete(b.there, node)
	b.mu.Unlock()
	if broken {
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (b *bench) letGo() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		b.open = true
		close(b.wakes)
	}
}

func (b *bench) now() (asked, there []string, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for node := range b.there {
		there = append(there, node)
	}
	slices.Sort(there)
	return slices.Clone(b.asked), there, b.most
}

// roller gives the namespace a maint-runner that may drain nodes.
func (l *lab) roller() {
	l.Helper()
	l.runner("roller",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"get"}})
}

// runner gives the namespace a maint-runner that may do so much in the whole cluster.
func (l *lab) runner(as string, rules ...rbacv1.PolicyRule) {
	l.Helper()
	l.must(harness.Runner(l.ctx, l.admin, l.ns))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: as + "-" + l.ns}, Rules: rules}
	_, err := l.admin.RbacV1().ClusterRoles().Create(l.ctx, role, metav1.CreateOptions{})
	l.must(err)
	_, err = l.admin.RbacV1().ClusterRoleBindings().Create(l.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "maint-runner", Namespace: l.ns}},
	}, metav1.CreateOptions{})
	l.must(err)
}

// roll creates a plan with one for-each-node and triggers it.
func (l *lab) roll(name, properties string, b *bench) {
	l.Helper()
	text := fmt.Sprintf(`apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  steps:
  - name: roll
    type: for-each-node
    properties:
      selector: {matchLabels: {pool: %s}}
      %s
      steps:
      - {name: drain, type: drain}
      - {name: work, type: webhook, properties: {url: "%s/${node.metadata.name}", timeout: 2m}, timeout: 3m}
      - {name: uncordon, type: uncordon}
`, name, properties, b.URL)
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, name, text, ""), metav1.CreateOptions{})
	l.must(err)
	l.trigger(name, "one")
}

// trigger asks for a run once the plan is taken up.
func (l *lab) trigger(name, token string) {
	l.Helper()
	l.eventually("plan "+name+" is taken up", func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		return cm.Annotations[annotations.StatusObserved] != "", fmt.Sprint(cm.Annotations)
	})
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotations.Trigger, token)
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	l.must(err)
}

// journals are those of a plan's runs, the oldest first.
func (l *lab) journals(name string) []run.Journal {
	l.Helper()
	list, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=run," + annotations.LabelPlan + "=" + name})
	l.must(err)
	slices.SortFunc(list.Items, func(a, b corev1.ConfigMap) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	var out []run.Journal
	for i := range list.Items {
		_, j, err := annotations.ReadRun(&list.Items[i])
		l.must(err)
		out = append(out, j)
	}
	slices.SortStableFunc(out, func(a, b run.Journal) int { // creation counts whole seconds
		switch {
		case a.StartedAt == nil && b.StartedAt == nil:
			return 0
		case a.StartedAt == nil: // it has not begun yet
			return 1
		case b.StartedAt == nil:
			return -1
		}
		return a.StartedAt.Compare(*b.StartedAt)
	})
	return out
}

// ends waits until the n-th run of a plan has ended.
func (l *lab) ends(name string, n int) run.Journal {
	l.Helper()
	var got run.Journal
	l.within(60, fmt.Sprintf("run %d of %s ends", n, name), func() (bool, string) {
		all := l.journals(name)
		if len(all) < n {
			return false, fmt.Sprint(len(all), " runs")
		}
		got = all[n-1]
		text := ""
		for _, rec := range got.Steps {
			text += fmt.Sprintf("%s %s %s %s; ", rec.Path, rec.Phase, rec.Reason, rec.Message)
		}
		return got.Phase.Ended(), string(got.Phase) + " " + text
	})
	return got
}

func (l *lab) pool(name string, members ...string) {
	l.Helper()
	for _, n := range members {
		l.label(n, "pool", name)
	}
}

func TestARolloutGoesThroughItsNodes(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	b := newBench(t)
	l.pool("gpu", "node-0", "node-1", "node-2", "node-3")
	l.deployment("web", 16)
	l.roll("gpu", "maxUnavailable: 50%", b)
	l.eventually("the canary is at work", func() (bool, string) { asked, _, _ := b.now(); return len(asked) == 1, fmt.Sprint(asked) })
	if n := l.node("node-0"); !n.Spec.Unschedulable || len(l.podsOn("node-0")) > 0 {
		t.Errorf("the canary node-0 is worked on before it is drained")
	}
	b.letGo()
	if j := l.ends("gpu", 1); j.Phase != run.Succeeded {
		t.Fatalf("the run ended %s: %+v", j.Phase, j.End)
	}
	asked, _, most := b.now()
	slices.Sort(asked)
	if want := []string{"node-0", "node-1", "node-2", "node-3"}; !slices.Equal(asked, want) || most > 2 {
		t.Errorf("worked on %v, %d at once; want each of %v once, and 2 at most", asked, most, want)
	}
	for _, n := range []string{"node-0", "node-1", "node-2", "node-3"} {
		l.schedulable(n, true)
		l.eventually("nothing is left behind on "+n, func() (bool, string) {
			on := annotations.OfNode(l.node(n).Annotations)
			return len(on) == 0, fmt.Sprint(on)
		})
	}
}

func TestANodeWhoseStepsFailedStaysCordonedAndKeepsNobodyFromTheirTurn(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	b := newBench(t)
	b.broken["node-0"] = true
	b.letGo()
	l.pool("gpu", "node-0", "node-1")
	l.roll("gpu", "canary: 0", b)
	j := l.ends("gpu", 1)
	if j.Phase != run.Failed || !strings.Contains(j.End.Message, "node-0") {
		t.Fatalf("the run ended %s: %+v", j.Phase, j.End)
	}
	l.schedulable("node-0", false)
	l.schedulable("node-1", true)
	l.prints("status", "Needs somebody:", "node node-0  is left cordoned for plan "+l.ns+"/gpu, and no run of that plan has it now", "why node/node-0'", "gpu  its last run", "in step roll")
	l.prints("status -A", "node node-0  is left cordoned for plan "+l.ns+"/gpu")
	l.prints("why node/node-0", "it is cordoned for plan "+l.ns+"/gpu since", "one that failed or was aborted left it cordoned", "'kubectl uncordon node-0'")
	b.mu.Lock()
	b.broken = map[string]bool{}
	b.mu.Unlock()
	l.trigger("gpu", "two")
	if j := l.ends("gpu", 2); j.Phase != run.Succeeded {
		t.Fatalf("the second run ended %s: %+v", j.Phase, j.End)
	}
	l.schedulable("node-0", true)
	if asked, _, _ := b.now(); !slices.Equal(asked, []string{"node-0", "node-1", "node-0"}) {
		t.Errorf("worked on %v", asked)
	}
	l.prints("report --last 1h -o jsonpath={.plans[0].failed},{.plans[0].succeeded},{.plans[0].nodes}", "1,1,2")
	code, out, err := harness.Plugin(l.ctx, world.plugin, world.config, "-n", l.ns, "status")
	if l.must(err); code != 0 || strings.Contains(out, "node-0") || strings.Contains(out, "Needs somebody") {
		t.Errorf("status still names it, code %d:\n%s", code, out)
	}
}

// Runs are pruned, and a canary that always fails stays cordoned under a limit of
// one: who had the oldest turn comes first all the same.
func TestOldestFirstHoldsBetweenRunsThatArePruned(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	b := newBench(t)
	for _, n := range []string{"node-0", "node-1", "node-2"} {
		b.broken[n] = true
	}
	b.letGo()
	l.pool("gpu", "node-0", "node-1", "node-2")
	l.roll("gpu", "", b)
	for i := range 4 {
		if i > 0 {
			l.trigger("gpu", fmt.Sprint("again-", i))
		}
		if j := l.ends("gpu", 1); j.Phase != run.Failed {
			t.Fatalf("run %d ended %s: %+v", i, j.Phase, j.End)
		}
		l.prune()
	}
	if asked, _, _ := b.now(); !slices.Equal(asked, []string{"node-0", "node-1", "node-2", "node-0"}) {
		t.Errorf("worked on %v, not one after another", asked)
	}
	turns := func() run.NodeTurns {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "gpu", metav1.GetOptions{})
		l.must(err)
		kept, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, annotations.NodeTurnsName("gpu", string(cm.UID)), metav1.GetOptions{})
		l.must(err)
		out, err := annotations.ReadNodeTurns(kept, string(cm.UID))
		l.must(err)
		return out
	}
	if got := turns(); len(got) != 3 || got["node-1"].Success != 0 {
		t.Errorf("remembered: %v", got)
	}
	l.tidy()
	b.mu.Lock()
	b.broken = map[string]bool{}
	b.mu.Unlock()
	l.pool("gpu", "node-1", "node-2")
	l.trigger("gpu", "mended")
	if j := l.ends("gpu", 1); j.Phase != run.Succeeded {
		t.Fatalf("the run of mended nodes ended %s: %+v", j.Phase, j.End)
	}
	if got := turns(); got["node-1"].Success == 0 || got["node-0"].Success != 0 {
		t.Errorf("remembered: %v", got)
	}
}

// prune takes away the runs that have ended.
func (l *lab) prune() {
	l.Helper()
	l.must(l.admin.CoreV1().ConfigMaps(l.ns).DeleteCollection(l.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=run"}))
	l.eventually("the runs are gone", func() (bool, string) { n := len(l.journals("gpu")); return n == 0, fmt.Sprint(n) })
}

// Two rollouts of one run, side by side over the same nodes: each node is worked on
// by one of them at once.
func TestRolloutsSideBySideNeverShareANode(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	b := newBench(t)
	l.pool("gpu", "node-0", "node-1")
	each := func(name string) string {
		return fmt.Sprintf(`
      - name: %s
        type: for-each-node
        properties:
          selector: {matchLabels: {pool: gpu}}
          canary: 0
          maxUnavailable: 2
          steps:
          - {name: %s-drain, type: drain}
          - {name: %s-work, type: webhook, properties: {url: "%s/${node.metadata.name}", timeout: 2m}, timeout: 3m}
          - {name: %s-uncordon, type: uncordon}`, name, name, name, b.URL, name)
	}
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - name: both\n    type: step-group\n    properties:\n      mode: parallel\n      steps:" + each("x") + each("y") + "\n"
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "gpu", text, ""), metav1.CreateOptions{})
	l.must(err)
	l.trigger("gpu", "one")
	l.eventually("both nodes are at work", func() (bool, string) { _, there, _ := b.now(); return len(there) == 2, fmt.Sprint(there) })
	time.Sleep(time.Second) // long enough for a second worker on a node to come
	if asked, _, _ := b.now(); len(asked) != 2 {
		t.Errorf("worked on %v at once", asked)
	}
	b.letGo()
	if j := l.ends("gpu", 1); j.Phase != run.Succeeded {
		t.Fatalf("the run ended %s: %+v", j.Phase, j.End)
	}
	asked, _, _ := b.now()
	slices.Sort(asked)
	if want := []string{"node-0", "node-0", "node-1", "node-1"}; !slices.Equal(asked, want) {
		t.Errorf("worked on %v", asked)
	}
}

func TestRequestsAndRolloutsShareTheLimits(t *testing.T) {
	l := newLab(t, "{nodes: {maxParallelOperations: 2}, outbound: {allow: [127.0.0.1]}}")
	l.roller()
	b := newBench(t)
	l.pool("gpu", "node-0", "node-1", "node-2")
	l.request("node-6", "os", "{}")
	l.phase("node-6", "os", nodes.Ready)
	l.roll("gpu", "canary: 0\n      maxUnavailable: 3", b)
	l.eventually("one node is at work", func() (bool, string) { _, there, _ := b.now(); return len(there) == 1, fmt.Sprint(there) })
	l.request("node-7", "os", "{}")
	l.eventually("node-7 is told why it waits", func() (bool, string) {
		s, _ := l.status("node-7", "os")
		return s.Phase == nodes.Pending && strings.Contains(s.Reason, "maxParallelOperations"), s.Reason
	})
	l.eventually("the run is told why the rest waits", func() (bool, string) {
		m := l.journals("gpu")[0].Record("roll").Message
		return strings.Contains(m, "maxParallelOperations"), m
	})
	l.release("node-6", "os")
	l.eventually("the free place is taken", func() (bool, string) {
		_, there, _ := b.now()
		s, _ := l.status("node-7", "os")
		return len(there) == 2 || s.Phase == nodes.Ready, fmt.Sprint(there, s)
	})
	b.letGo()
	if j := l.ends("gpu", 1); j.Phase != run.Succeeded {
		t.Fatalf("the run ended %s: %+v", j.Phase, j.End)
	}
	l.phase("node-7", "os", nodes.Ready)
	if _, _, most := b.now(); most > 2 {
		t.Errorf("%d nodes were worked on at once", most)
	}
}

func TestADrainStepOutsideOfARolloutWaitsForItsTurn(t *testing.T) {
	l := newLab(t, "{nodes: {maxParallelOperations: 1}}")
	l.roller()
	l.request("node-6", "os", "{}")
	l.phase("node-6", "os", nodes.Ready)
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: drain, type: drain, properties: {node: node-8}}\n  - {name: uncordon, type: uncordon, properties: {node: node-8}}\n"
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "one", text, ""), metav1.CreateOptions{})
	l.must(err)
	l.trigger("one", "x")
	l.eventually("the run waits for its turn", func() (bool, string) {
		all := l.journals("one")
		if len(all) == 0 || all[0].Record("drain") == nil {
			return false, "no run"
		}
		return true, ""
	})
	time.Sleep(500 * time.Millisecond) // long enough for a cordon that is wrong to be seen
	l.schedulable("node-8", true)
	l.release("node-6", "os")
	if j := l.ends("one", 1); j.Phase != run.Succeeded {
		t.Fatalf("the run ended %s: %+v", j.Phase, j.End)
	}
	l.schedulable("node-8", true)
}

func TestAnAbortedRolloutLeavesNobodyAtWork(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	b := newBench(t)
	l.pool("gpu", "node-9", "node-10")
	l.deployment("held", 2, only("gpu"), func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{"maint.dev/drain": "wait-completed"} // and they never are
	})
	l.roll("gpu", "", b)
	l.eventually("the drain waits for the pods", func() (bool, string) {
		all := l.journals("gpu")
		for _, j := range all {
			for _, rec := range j.Steps {
				if strings.HasSuffix(rec.Path, "/drain") && strings.Contains(rec.Message, "held") {
					return true, ""
				}
			}
		}
		return false, fmt.Sprint(len(all))
	})
	list, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=run"})
	l.must(err)
	l.must(l.admin.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, list.Items[0].Name, deleteNow()))
	l.eventually("the run is gone", func() (bool, string) { n := len(l.journals("gpu")); return n == 0, fmt.Sprint(n) })
	if n := len(l.podsOn("node-9")) + len(l.podsOn("node-10")); n != 2 {
		t.Errorf("%d of 2 pods are there", n)
	}
}
