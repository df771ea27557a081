package nodes_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// A node is uncordoned between its drain and its reboot: the reboot does not run.
func TestStepsAfterTheDrainDoNotRunOnANodeThatSomebodyUncordoned(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	b, reboot := newBench(t), newBench(t)
	reboot.letGo()
	l.pool("gpu", "node-0")
	text := fmt.Sprintf(`apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  steps:
  - name: roll
    type: for-each-node
    properties:
      selector: {matchLabels: {pool: gpu}}
      steps:
      - {name: drain, type: drain}
      - {name: work, type: webhook, properties: {url: "%s/${node.metadata.name}", timeout: 2m}, timeout: 3m}
      - {name: reboot, type: webhook, properties: {url: "%s/${node.metadata.name}"}, retry: {limit: 3, backoff: 1s}}
      - {name: uncordon, type: uncordon}
`, b.URL, reboot.URL)
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "gpu", text, ""), metav1.CreateOptions{})
	l.must(err)
	l.trigger("gpu", "one")
	l.eventually("node-0 is at work", func() (bool, string) { _, there, _ := b.now(); return len(there) == 1, fmt.Sprint(there) })
	l.cordon("node-0", false)
	b.letGo()
	j := l.ends("gpu", 1)
	if asked, _, _ := reboot.now(); len(asked) > 0 {
		t.Errorf("rebooted %v, which was uncordoned", asked)
	}
	for _, want := range []string{"node-0", "was uncordoned by", " at 20", "does not run"} {
		if j.Phase != run.Failed || !strings.Contains(j.End.Message, want) {
			t.Errorf("the run ended %s: %+v, which lacks %q", j.Phase, j.End, want)
		}
	}
	l.schedulable("node-0", true)
	l.trigger("gpu", "two") // and the next run drains it again
	if j := l.ends("gpu", 2); j.Phase != run.Succeeded {
		t.Errorf("the second run ended %s: %+v", j.Phase, j.End)
	}
	if asked, _, _ := reboot.now(); len(asked) != 1 {
		t.Errorf("rebooted %v", asked)
	}
}

// The same outside of a rollout: what cleans up goes on, and a node that the plan opens
// by a patch of its own stops nothing.
func TestStepsAfterABareDrainDoNotRunOnANodeThatSomebodyUncordoned(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	b, reboot, told := newBench(t), newBench(t), newBench(t)
	reboot.letGo()
	told.letGo()
	l.pool("gpu", "node-0")
	text := func(opening string) string {
		return fmt.Sprintf(`apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  steps:
  - {name: drain, type: drain, properties: {selector: {matchLabels: {pool: gpu}}}}
  - {name: work, type: webhook, properties: {url: "%s/work", timeout: 2m}, timeout: 3m}
%s  - {name: reboot, type: webhook, properties: {url: "%s/node-0"}, retry: {limit: 3, backoff: 1s}}
  finally:
  - {name: told, type: webhook, properties: {url: "%s/told"}}
  - {name: uncordon, type: uncordon, properties: {selector: {matchLabels: {pool: gpu}}}}
`, b.URL, opening, reboot.URL, told.URL)
	}
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "gpu", text(""), ""), metav1.CreateOptions{})
	l.must(err)
	l.trigger("gpu", "one")
	l.eventually("the work has begun", func() (bool, string) { _, there, _ := b.now(); return len(there) == 1, fmt.Sprint(there) })
	l.cordon("node-0", false)
	b.letGo()
	j := l.ends("gpu", 1)
	if asked, _, _ := reboot.now(); len(asked) > 0 {
		t.Errorf("rebooted %v, which was uncordoned", asked)
	}
	for _, want := range []string{"step reboot failed: Node/node-0 was uncordoned by", " at 20", "does not run"} {
		if j.Phase != run.Failed || !strings.Contains(j.End.Message, want) {
			t.Errorf("the run ended %s: %+v, which lacks %q", j.Phase, j.End, want)
		}
	}
	if asked, _, _ := told.now(); len(asked) != 1 {
		t.Errorf("its finally did not run: %v", asked)
	}
	opening := `  - {name: open, type: patch-object, properties: {resource: {apiVersion: v1, kind: Node, name: node-0}, patchType: merge, patch: {spec: {unschedulable: false}}}}
`
	_, err = l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "opens", text(opening), ""), metav1.CreateOptions{})
	l.must(err)
	l.trigger("opens", "one")
	if j := l.ends("opens", 1); j.Phase != run.Succeeded {
		t.Errorf("the run of the plan that opens its node itself ended %s: %+v", j.Phase, j.End)
	}
	if asked, _, _ := reboot.now(); len(asked) != 1 {
		t.Errorf("rebooted %v", asked)
	}
}

func TestARequestIsNotReadyOnANodeThatSomebodyUncordoned(t *testing.T) {
	l := newLab(t, unlimited)
	before := len(l.events(metav1.NamespaceDefault, "node-2", "UncordonedByOthers")) // of other tests' requests
	l.request("node-2", "os", "{}")
	l.phase("node-2", "os", nodes.Ready)
	l.cordon("node-2", false)
	if s := l.phase("node-2", "os", nodes.Uncordoned); !strings.Contains(s.Reason, "somebody uncordoned the node") {
		t.Errorf("its reason is %q", s.Reason)
	}
	l.eventually("an Event says so", func() (bool, string) {
		got := l.events(metav1.NamespaceDefault, "node-2", "UncordonedByOthers")
		return len(got) == before+1, fmt.Sprint(got)
	})
	l.schedulable("node-2", true)
	l.cordon("node-2", true)
	l.phase("node-2", "os", nodes.Ready)
	l.release("node-2", "os")
	l.gone("node-2", "os")
	l.schedulable("node-2", false) // the last cordon was somebody else's
}
