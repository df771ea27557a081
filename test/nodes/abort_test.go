package nodes_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// A drain that aborts ends in time also where a budget keeps it from its cordon for good: a request is
// given up, and the run of a rollout ends.
func TestADrainThatAbortsEndsThoughItNeverHadItsCordon(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	l.pool("gpu", "node-0")
	l.deployment("held", 2, only("gpu"))
	l.budget("held", intstr.FromInt32(0))
	l.request("node-0", "os", `{"drain":{"timeout":"5s","onTimeout":"abort"}}`)
	l.eventually("the request is given up", func() (bool, string) {
		s, _ := l.status("node-0", "os")
		return s.Phase == nodes.Pending && s.Ended != nil && s.Ended.Why == nodes.EndAborted && strings.Contains(s.Reason, l.ns+"/held"), s.Reason
	})
	l.schedulable("node-0", true)
	l.release("node-0", "os")
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - name: roll\n    type: for-each-node\n    properties:\n      selector: {matchLabels: {pool: gpu}}\n      steps:\n" +
		"      - {name: drain, type: drain, properties: {timeout: 5s, onTimeout: abort}}\n      - {name: uncordon, type: uncordon}\n"
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "gpu", text, ""), metav1.CreateOptions{})
	l.must(err)
	l.trigger("gpu", "one")
	if j := l.ends("gpu", 1); j.Phase != run.Failed || !strings.Contains(fmt.Sprint(j.End), l.ns+"/held") {
		t.Errorf("the run ended %s: %+v", j.Phase, j.End)
	}
	l.schedulable("node-0", true)
}
