package nodes_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// notified starts an agent that tells a server of the test what it sees.
func notified(t *testing.T, on string) (*lab, *harness.Receiver) {
	t.Helper()
	desk, err := harness.NewReceiver(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(desk.Close)
	l := newLab(t, `{nodes: {maxParallelOperations: 100%}, outbound: {allow: [127.0.0.1]}, notifications: {sinks: [{name: desk, urlSecretRef: {name: maint-sinks, key: url}}], on: [`+on+`]}}`)
	secrets := l.admin.CoreV1().Secrets(annotations.DefaultNamespace)
	_, err = secrets.Create(l.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "maint-sinks"}, StringData: map[string]string{"url": "generic+" + desk.URL + "/told?template=json"}}, metav1.CreateOptions{})
	l.must(err)
	t.Cleanup(func() { l.must(secrets.Delete(l.ctx, "maint-sinks", metav1.DeleteOptions{})) })
	return l, desk
}

// events are the messages of a reason about an object.
func (l *lab) events(namespace, name, reason string) []string {
	l.Helper()
	list, err := l.admin.CoreV1().Events(namespace).List(l.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name + ",reason=" + reason})
	l.must(err)
	var out []string
	for _, e := range list.Items {
		out = append(out, e.Message)
	}
	return out
}

func TestADrainThatIsBlockedForGoodIsToldOnceAndShowsHowFarItIs(t *testing.T) {
	l, desk := notified(t, "DrainBlocked")
	told := func(what string, n int) {
		t.Helper()
		l.eventually("the sink is told of "+what, func() (bool, string) {
			var got []string
			for _, d := range desk.Deliveries() {
				if strings.Contains(d.Body, what) {
					got = append(got, d.Body)
				}
			}
			return len(got) == n, strings.Join(got, "\n")
		})
	}
	l.label("node-3", "pool", "three")
	l.deployment("web", 2, only("three"))
	l.deployment("late", 2, only("three"))
	// It is not known before the cordon: the budget comes during the drain.
	l.request("node-3", "os", `{"waitFor":{"podSelector":"app=late"}}`)
	l.phase("node-3", "os", nodes.WaitingForPods)
	l.eventually("the pods that it waits for are counted", func() (bool, string) {
		got := l.node("node-3").Annotations[annotations.StatusProgress]
		return got == `{"step":"WaitingForPods","for":["os"],"done":0,"total":0,"left":2,"percent":0}`, got
	})
	l.budget("web", intstr.FromInt32(0))
	l.must(l.admin.AppsV1().Deployments(l.ns).Delete(l.ctx, "late", deleteNow()))
	l.eventually("the drain is blocked for good", func() (bool, string) {
		s, _ := l.status("node-3", "os")
		return s.Phase == nodes.Draining && s.Blocked != nil && s.Blocked.Permanent && strings.Contains(s.Blocked.Text, l.ns+"/web"), s.String()
	})
	progress := l.node("node-3").Annotations[annotations.StatusProgress]
	if !strings.Contains(progress, `"step":"Draining"`) || !strings.Contains(progress, `"left":2`) {
		t.Errorf("progress %q", progress)
	}
	told("node-3", 1)
	l.prints("status", "Needs somebody:", "node node-3  Draining for os: ", l.ns+"/web", "why node/node-3'")
	l.prints("why node/node-3", "os is blocked for good: ", l.ns+"/web", "drain node-3 --plan'")
	if got := l.events(metav1.NamespaceDefault, "node-3", nodes.EventBlocked); len(got) == 0 || !strings.HasPrefix(got[0], "os: the drain is blocked for good: ") {
		t.Errorf("events %q", got)
	}
	l.must(l.agent.Stop())
	l.start() // what was told stands in the status
	l.must(l.admin.PolicyV1().PodDisruptionBudgets(l.ns).Delete(l.ctx, "web", deleteNow()))
	l.phase("node-3", "os", nodes.Ready)
	if got, there := l.node("node-3").Annotations[annotations.StatusProgress]; there {
		t.Errorf("progress %q, and it is Ready", got)
	}
	told("node-3", 1)

	// The same for a plan's drain.
	l.label("node-4", "pool", "four")
	l.deployment("held", 2, only("four"))
	l.budget("held", intstr.FromInt32(0))
	l.roller()
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: drain, type: drain, properties: {node: node-4}}\n  - {name: uncordon, type: uncordon, properties: {node: node-4}}\n"
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "upgrade", text, ""), metav1.CreateOptions{})
	l.must(err)
	l.trigger("upgrade", "one")
	told("node-4", 1)
	l.prints("status", "Needs somebody:", "step drain: the drain of node node-4 is blocked until somebody changes something: ", l.ns+"/held", "drain node-4 --plan'")
	l.prints("why node/node-4", l.ns+"/held")
	if got := l.events(l.ns, "upgrade", nodes.EventBlocked); len(got) != 1 || !strings.Contains(got[0], l.ns+"/held") {
		t.Errorf("events %q", got)
	}
	l.must(l.admin.PolicyV1().PodDisruptionBudgets(l.ns).Delete(l.ctx, "held", deleteNow()))
	if j := l.ends("upgrade", 1); j.Phase != run.Succeeded {
		t.Errorf("the run ended %s: %+v", j.Phase, j.End)
	}
	told("node-4", 1)
}
