package nodes_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// A person opens a node that is held and cordons it again before the agent looks.
func TestACordonOfAPersonThatNobodySawIsLeft(t *testing.T) {
	l := newLab(t, unlimited)
	l.request("node-2", "os", "{}")
	l.phase("node-2", "os", nodes.Ready)
	l.must(l.agent.Freeze())
	l.cordon("node-2", false)
	l.cordon("node-2", true)
	l.must(l.agent.Thaw())
	l.eventually("the cordon is known to be theirs", func() (bool, string) {
		c, _ := nodes.ParseCordon(l.node("node-2").Annotations[annotations.StatusCordoned])
		return c != nil && c.Before, l.node("node-2").Annotations[annotations.StatusCordoned]
	})
	l.phase("node-2", "os", nodes.Ready)
	if got := l.events(metav1.NamespaceDefault, "node-2", "CordonedByOthers"); len(got) != 1 || !strings.Contains(got[0], "someone") {
		t.Errorf("events %q", got)
	}
	l.release("node-2", "os")
	l.gone("node-2", "os")
	l.schedulable("node-2", false)
}

func TestACordonOfAPersonThatNobodySawIsLeftByARollout(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	b := newBench(t)
	l.pool("gpu", "node-2")
	l.roll("gpu", "", b)
	l.eventually("node-2 is at work", func() (bool, string) { _, there, _ := b.now(); return len(there) == 1, "" })
	l.agent.Kill()
	l.cordon("node-2", false)
	l.cordon("node-2", true)
	b.letGo()
	l.start()
	if j := l.ends("gpu", 1); j.Phase != run.Succeeded {
		t.Errorf("the run ended %s: %+v", j.Phase, j.End)
	}
	l.schedulable("node-2", false)
}

// opened collects what a watch shows of a node that takes pods.
func (l *lab) opened(name string) (seen func() []string) {
	l.Helper()
	list, err := l.admin.CoreV1().Nodes().List(l.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	l.must(err)
	w, err := l.admin.CoreV1().Nodes().Watch(l.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: list.ResourceVersion})
	l.must(err)
	l.Cleanup(w.Stop)
	return func() []string {
		l.Helper()
		var out []string
		l.label(name, "seen", "all")
		for e := range w.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			switch {
			case !ok:
				l.Fatalf("watch of %s: %+v", name, e)
			case n.Labels["seen"] == "all":
				l.edit(name, map[string]any{"metadata": map[string]any{"labels": map[string]any{"seen": nil}}})
				return out
			case !n.Spec.Unschedulable:
				out = append(out, fmt.Sprint(annotations.OfNode(n.Annotations)))
			}
		}
		l.Fatalf("the watch of %s ended", name)
		return nil
	}
}

func TestANodeGoesFromARequestorToAPlanWithoutAnUncordon(t *testing.T) {
	for name, steps := range map[string]string{
		"a rollout": "  - {name: roll, type: for-each-node, properties: {selector: {matchLabels: {pool: gpu}}, steps: [{name: drain, type: drain}, {name: work, type: webhook, properties: {url: \"URL/node-4\", timeout: 2m}}, {name: back, type: uncordon}]}}\n",
		"a drain":   "  - {name: drain, type: drain, properties: {node: node-4}}\n  - {name: work, type: webhook, properties: {url: \"URL/node-4\", timeout: 2m}}\n  - {name: back, type: uncordon, properties: {node: node-4}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "{nodes: {maxParallelOperations: 1}, outbound: {allow: [127.0.0.1]}}")
			l.roller()
			b := newBench(t)
			l.pool("gpu", "node-4")
			l.request("node-4", "os", "{}")
			l.phase("node-4", "os", nodes.Ready)
			text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n" + strings.ReplaceAll(steps, "URL", b.URL)
			_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "gpu", text, ""), metav1.CreateOptions{})
			l.must(err)
			l.trigger("gpu", "one")
			l.eventually("the plan waits for the node", func() (bool, string) {
				for _, j := range l.journals("gpu") {
					for _, rec := range j.Steps {
						if strings.Contains(rec.Message, "the node is os's") {
							return true, ""
						}
					}
				}
				return false, fmt.Sprint(l.journals("gpu"))
			})
			opened := l.opened("node-4")
			l.release("node-4", "os")
			l.eventually("the plan is at work", func() (bool, string) { _, there, _ := b.now(); return len(there) == 1, "" })
			if got := opened(); len(got) > 0 {
				t.Errorf("node-4 took pods in between: %v", got)
			}
			l.gone("node-4", "os")
			if c, _ := nodes.ParseCordon(l.node("node-4").Annotations[annotations.StatusCordoned]); c == nil || c.Handed != nil || c.Before {
				t.Errorf("the record is %v", c)
			}
			b.letGo()
			if j := l.ends("gpu", 1); j.Phase != run.Succeeded {
				t.Errorf("the run ended %s: %+v", j.Phase, j.End)
			}
			l.schedulable("node-4", true)
		})
	}
}
