//go:build linux

package e2enode

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

func TestANodeIsDrainedAndGivenBack(t *testing.T) {
	const replicas = 3
	w := start(t)
	w.agent()
	w.deployment("web", replicas)
	for _, d := range []struct {
		by              string
		drain, giveBack func(*world)
		asks            func(harness.AuditEvent) bool
		most            int // requests per pod; 0: it is not for us to say
	}{
		{
			by:       "by the agent",
			drain:    func(w *world) { w.ask("new disks") },
			giveBack: (*world).release,
			asks:     func(e harness.AuditEvent) bool { return e.User.Username == harness.AgentUser },
			most:     2,
		},
		{
			by:       "by kubectl, to compare",
			drain:    func(w *world) { w.kubectl("drain", w.node.Name, "--timeout="+patience.String()) },
			giveBack: func(w *world) { w.kubectl("uncordon", w.node.Name) },
			asks:     func(e harness.AuditEvent) bool { return strings.HasPrefix(e.UserAgent, "kubectl/") },
		},
	} {
		t.Run(d.by, func(t *testing.T) {
			w := w.in(t)
			pods := w.waitReady("web", replicas)
			said := w.follow(pods[0])
			w.requests.next(t)

			began := time.Now()
			d.drain(w)
			took := time.Since(began)

			if took < ends || took >= grace {
				t.Errorf("the drain took %s; want at least %s, which the containers need, and less than %s, after which they are killed", took, ends, grace)
			}
			if got := <-said; !slices.Contains(got, "done") {
				t.Errorf("the container said %q; want that it came to its own end", got)
			}
			for _, pod := range pods {
				if w.exists(pod) {
					t.Errorf("pod %s is still there after the drain", pod.Name)
				}
			}
			asked := aboutPods(w.requests.next(t), d.asks)
			t.Logf("it took %s and %d requests about pods for %d of them: %s", took.Round(time.Millisecond), len(asked), replicas, strings.Join(asked, ", "))
			if d.most > 0 && len(asked) > d.most*replicas {
				t.Errorf("%d requests about %d pods; want at most %d for each, however long they take", len(asked), replicas, d.most)
			}

			w.is("cordoned", func(n *corev1.Node) bool { return n.Spec.Unschedulable })
			d.giveBack(w)
			w.is("as it was", untouched)
			w.waitReady("web", replicas)
		})
	}
}

// ask has the agent drain the node, and returns when it is ours.
func (w *world) ask(reason string) {
	w.t.Helper()
	w.kubectl("maint", "drain", w.node.Name, "--reason", reason, "--wait", "--timeout="+patience.String(), "--yes")
}

// release gives the node back.
func (w *world) release() {
	w.t.Helper()
	w.kubectl("maint", "release", w.node.Name, "--wait", "--timeout="+patience.String())
}

// aboutPods are somebody's requests about pods, in words.
func aboutPods(all []harness.AuditEvent, asks func(harness.AuditEvent) bool) []string {
	var out []string
	for _, e := range all {
		if asks(e) && e.Object.Resource == "pods" {
			out = append(out, e.Verb+" "+e.What())
		}
	}
	return out
}
