package nodes_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// tale is a story over nodes that is played again and again while the agent is
// killed at one of its writes:
//
//	node-0  bios wants it alone, and waits for a pod to finish; then nic has it
//	node-1  was cordoned by a human; os wants it
//	node-2  fw wants it, waits for a pod that never finishes, and gives up
//	node-3, node-4  a plan rolls through them: drain, webhook, uncordon
//	node-5  takes what is under a budget and has to leave node-0
type tale struct {
	*lab
	o     *observer
	hooks *harness.Receiver
	held  types.UID // the pod for which fw waits in vain

	mu     sync.Mutex // guards what follows: the observer looks at it too
	told   bool       // between the first word of the story and its last
	first  bool       // node-0 has been cordoned
	ready  map[string]bool
	gone   map[string]bool
	writes []string
}

// wishes are the requests of the story, by node.
func wishes() map[string]map[string]string {
	return map[string]map[string]string{
		"node-0": {"bios": `{"waitFor":{"podSelector":"app=batch"}}`, "nic": `{"shared":true}`},
		"node-1": {"os": `{"reason":"patches"}`},
		"node-2": {"fw": `{"waitFor":{"podSelector":"app=hold"}}`},
	}
}

func newTale(t *testing.T) *tale {
	t.Helper()
	x := &tale{lab: newLab(t, unlimited)}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	t.Cleanup(cancel)
	x.ctx = ctx
	t.Cleanup(func() { world.proxy.At(nil) })
	var err error
	x.hooks, err = harness.NewReceiver(nil)
	x.must(err)
	t.Cleanup(x.hooks.Close)
	x.roller()
	x.pool("roll", "node-3", "node-4")
	for i := range 5 {
		x.deployment(fmt.Sprintf("sits-%d", i), 2, sits(fmt.Sprintf("node-%d", i)))
	}
	x.cordon("node-1", true)
	x.deployment("quorum", 4, sits("node-0", "node-5"))
	x.budget("quorum", intstr.FromInt32(1))
	_, err = x.admin.CoreV1().ConfigMaps(x.ns).Create(x.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	x.must(err)
	x.held = x.pod("hold", "node-2").UID
	x.o = observe(x.ctx, t, x.admin, x.ns)
	x.o.mu.Lock()
	x.o.visit = x.sawNode
	x.o.mu.Unlock()
	return x
}

// sits pins a Deployment's pods to nodes.
func sits(nodes ...string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes}}}},
		}}}
	}
}

// pod creates a pod on a node that something owns and nobody brings back.
func (x *tale) pod(app, node string) *corev1.Pod {
	x.Helper()
	owner, err := x.admin.CoreV1().ConfigMaps(x.ns).Get(x.ctx, "owner", metav1.GetOptions{})
	x.must(err)
	yes := true
	p, err := x.admin.CoreV1().Pods(x.ns).Create(x.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: app + "-", Labels: map[string]string{"app": app},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}},
	}, metav1.CreateOptions{})
	x.must(err)
	return p
}

// sawNode finds, at each event of a node, a cordon that is wrong or missing.
func (x *tale) sawNode(n *corev1.Node) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.told {
		return
	}
	on := n.Annotations
	switch {
	case n.Name == "node-1" && !n.Spec.Unschedulable:
		x.o.fault("node-1", "was uncordoned, though a human had cordoned it before: %v", annotations.OfNode(on))
	case n.Name != "node-1" && n.Spec.Unschedulable && on[annotations.StatusCordoned] == "":
		x.o.fault(n.Name, "was cordoned without a record: %v", annotations.OfNode(on))
	case n.Name == "node-0" && n.Spec.Unschedulable:
		x.first = true
	case n.Name == "node-0" && x.first && len(annotations.Requests(on)) > 0:
		x.o.fault(n.Name, "was uncordoned between two requests: %v", annotations.OfNode(on))
	}
}

// begin puts everything back to where the story starts, and tells its first words.
func (x *tale) begin(play int) {
	x.Helper()
	x.mu.Lock()
	x.ready, x.gone, x.first, x.writes = map[string]bool{}, map[string]bool{}, false, nil
	x.mu.Unlock()
	x.cordon("node-1", false)
	x.cordon("node-5", true)
	for _, name := range x.podsOn("node-5") {
		x.must(x.admin.CoreV1().Pods(x.ns).Delete(x.ctx, name, metav1.DeleteOptions{}))
	}
	x.eventually("all pods are back", func() (bool, string) {
		list, err := x.admin.CoreV1().Pods(x.ns).List(x.ctx, metav1.ListOptions{})
		x.must(err)
		ready := 0
		for _, p := range list.Items {
			if p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning && p.Spec.NodeName != "node-5" {
				ready++
			}
		}
		b, err := x.admin.PolicyV1().PodDisruptionBudgets(x.ns).Get(x.ctx, "quorum", metav1.GetOptions{})
		x.must(err)
		return ready == 5*2+4+1 && b.Status.DisruptionsAllowed == 1, fmt.Sprintf("%d of 15 are, the budget allows %d", ready, b.Status.DisruptionsAllowed)
	})
	x.cordon("node-5", false)
	x.cordon("node-1", true)
	x.pod("batch", "node-0")
	x.o.said() // what was wrong while all was put back, was the test's
	x.o.mu.Lock()
	x.o.left = map[string]string{}
	x.o.mu.Unlock()
	x.mu.Lock()
	x.told = true
	x.mu.Unlock()
	for node, of := range wishes() {
		values := map[string]any{}
		for requestor, value := range of {
			values[annotations.RequestPrefix+requestor] = value
		}
		x.annotate(node, values)
	}
	text := fmt.Sprintf(`apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  steps:
  - name: roll
    type: for-each-node
    properties:
      selector: {matchLabels: {pool: roll}}
      steps:
      - {name: drain, type: drain}
      - {name: work, type: webhook, properties: {url: "%s/%d/${node.metadata.name}"}}
      - {name: uncordon, type: uncordon}
`, x.hooks.URL, play)
	_, err := x.admin.CoreV1().ConfigMaps(x.ns).Create(x.ctx, annotations.NewPlan(x.ns, rolls(play), text, ""), metav1.CreateOptions{})
	x.must(err)
}

func rolls(play int) string { return fmt.Sprintf("roll-%d", play) }

// goOn does what the people of the story would do now, and says whether it is at its
// end, or how it stands.
func (x *tale) goOn(play int) (over bool, now string) {
	x.Helper()
	open := []string{}
	asked := wishes()
	for i := range fleet {
		node := fmt.Sprintf("node-%d", i)
		n := x.node(node)
		for requestor := range asked[node] {
			name := requestor + " on " + node
			s, there := nodes.ParseStatus(n.Annotations[annotations.StatusRequestPrefix+requestor])
			switch {
			case x.gone[name]:
			case s.Phase == nodes.WaitingForPods && requestor == "bios":
				x.finish("batch")
			case s.Phase == nodes.WaitingForPods && requestor == "fw":
				x.gone[name] = true
				x.release(node, requestor)
			case s.Phase == nodes.Ready:
				x.ready[name], x.gone[name] = true, true
				x.release(node, requestor)
			}
			if there || !x.gone[name] {
				open = append(open, fmt.Sprintf("%s: %s %s", name, s.Phase, s.Reason))
			}
		}
		if len(annotations.OfNode(n.Annotations)) > 0 && len(open) == 0 {
			open = append(open, fmt.Sprintf("%s: %v", node, annotations.OfNode(n.Annotations)))
		}
	}
	cm, err := x.admin.CoreV1().ConfigMaps(x.ns).Get(x.ctx, rolls(play), metav1.GetOptions{})
	x.must(err)
	if cm.Annotations[annotations.StatusObserved] != "" && cm.Annotations[annotations.Trigger] == "" {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"go"}}}`, annotations.Trigger)
		_, err = x.admin.CoreV1().ConfigMaps(x.ns).Patch(x.ctx, cm.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		x.must(err)
	}
	all := x.journals(cm.Name)
	if len(all) == 0 || !all[0].Phase.Ended() || cm.Annotations[annotations.StatusPhase] != string(trigger.PhaseIdle) || cm.Annotations[annotations.StatusLastRunName] == "" {
		open = append(open, fmt.Sprintf("the rollout: %s, %d runs", cm.Annotations[annotations.StatusPhase], len(all)))
	}
	return len(open) == 0, strings.Join(open, "; ")
}

// finish ends the pods of an app as they would by themselves.
func (x *tale) finish(app string) {
	x.Helper()
	list, err := x.admin.CoreV1().Pods(x.ns).List(x.ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	x.must(err)
	for _, p := range list.Items {
		if p.Status.Phase == corev1.PodRunning {
			_, err := x.admin.CoreV1().Pods(x.ns).Patch(x.ctx, p.Name, types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
			x.must(err)
		}
	}
}

// point is where the agent is killed: at its n-th write, before it is sent on, or
// after it with the reply lost. None is 0.
type point struct {
	n    int
	lost bool
}

// play plays the story once, and says where the agent was killed; empty: it was not.
func (x *tale) play(play int, at point) (where string) {
	x.Helper()
	x.begin(play)
	killed := make(chan struct{})
	victim, seen := x.agent, 0
	var once sync.Once
	world.proxy.At(func(req *http.Request, answered bool) bool {
		if answered != at.lost || !x.counted(req) {
			return true
		}
		x.mu.Lock()
		seen++
		x.writes = append(x.writes, req.Method+" "+req.URL.Path)
		hit := seen == at.n
		x.mu.Unlock()
		if hit {
			once.Do(func() {
				where = fmt.Sprintf("write %d (reply lost: %t): %s %s", at.n, at.lost, req.Method, req.URL.Path)
				victim.Kill()
				close(killed)
			})
		}
		return !hit
	})
	limit := time.After(60 * time.Second)
	for gone := killed; ; {
		over, now := x.goOn(play)
		if over {
			break
		}
		select {
		case <-gone:
			gone = nil
			x.start()
		case <-limit:
			x.Fatalf("killed at %q: the story does not end: %s", where, now)
		case <-time.After(25 * time.Millisecond):
		}
	}
	world.proxy.At(nil)
	return where
}

// counted says whether a write is one of the story's: leases and Events are not.
func (x *tale) counted(req *http.Request) bool {
	path := req.URL.Path
	return strings.HasPrefix(path, "/api/v1/nodes/") || strings.Contains(path, "/namespaces/"+x.ns+"/") && !strings.Contains(path, "/events")
}

// check finds what a kill must not have changed.
func (x *tale) check(play int, where string) {
	x.Helper()
	wrong := func(format string, args ...any) {
		x.Helper()
		x.Errorf("play %d, killed at %q: %s", play, where, fmt.Sprintf(format, args...))
	}
	for _, name := range []string{"bios on node-0", "nic on node-0", "os on node-1"} {
		if !x.ready[name] {
			wrong("%s was never Ready", name)
		}
	}
	for i := range fleet {
		n := x.node(fmt.Sprintf("node-%d", i))
		if on := annotations.OfNode(n.Annotations); n.Spec.Unschedulable != (n.Name == "node-1") || len(on) > 0 {
			wrong("%s is left with unschedulable=%v, %v", n.Name, n.Spec.Unschedulable, on)
		}
	}
	if all := x.journals(rolls(play)); len(all) != 1 || all[0].Phase != run.Succeeded {
		wrong("the rollout has %d runs: %+v", len(all), all)
	}
	for _, node := range []string{"node-3", "node-4"} {
		if keys := x.hooks.Keys(fmt.Sprintf("/%d/%s", play, node)); len(keys) != 1 {
			wrong("the webhook for %s was sent with the keys %v, want one", node, keys)
		}
	}
	x.o.mu.Lock()
	left := map[string]int{}
	for pod, node := range x.o.left {
		if left[node]++; !slices.Contains([]string{"node-0", "node-1", "node-3", "node-4"}, node) {
			wrong("pod %s left %s, which was not to be drained", pod, node)
		}
	}
	x.o.mu.Unlock()
	for node, least := range map[string]int{"node-0": 2, "node-1": 2, "node-3": 2, "node-4": 2} {
		if left[node] < least {
			wrong("%d pods left %s, at least %d were there", left[node], node, least)
		}
	}
	if p, err := x.admin.CoreV1().Pods(x.ns).List(x.ctx, metav1.ListOptions{LabelSelector: "app=hold"}); err != nil || len(p.Items) != 1 || p.Items[0].UID != x.held {
		wrong("the pod that fw waited for is not there any more (%v)", err)
	}
	for _, fault := range x.o.said() {
		wrong("%s", fault)
	}
	x.mu.Lock()
	x.told = false
	x.mu.Unlock()
	x.must(x.admin.CoreV1().ConfigMaps(x.ns).Delete(x.ctx, rolls(play), metav1.DeleteOptions{}))
}

// TestAKillAtAWriteChangesNothingOfTheNodesEnd plays the story through once, then
// with a kill at each of a spread of its writes, before them and after them in turn;
// with MAINT_TEST_ALL at all of them, both ways.
func TestAKillAtAWriteChangesNothingOfTheNodesEnd(t *testing.T) {
	x := newTale(t)
	begun := time.Now()
	x.play(0, point{})
	writes := slices.Clone(x.writes)
	x.check(0, "")
	once := time.Since(begun)
	if t.Failed() {
		t.Fatal("the story does not end well without a kill")
	}
	t.Logf("%d writes in %s:\n%s", len(writes), once.Round(100*time.Millisecond), strings.Join(writes, "\n"))
	stride := 1
	if os.Getenv(playAll) == "" {
		const plays = 20
		stride = max(1, 2*len(writes)/plays) | 1 // odd, so that both ways are tried
	}
	var tried []string
	for i := 0; i < 2*len(writes); i += stride {
		at := point{n: i/2 + 1, lost: i%2 == 1}
		where := x.play(i+1, at)
		x.check(i+1, where)
		if where != "" {
			tried = append(tried, where)
		}
	}
	t.Logf("killed at %d of %d points in %s, %d events seen", len(tried), 2*len(writes), time.Since(begun).Round(100*time.Millisecond), x.o.events)
	if len(tried) < 16 {
		t.Errorf("only %d points were tried", len(tried))
	}
	if os.Getenv("MAINT_TEST_LOG") != "" {
		t.Log(strings.Join(tried, "\n"))
	}
}
