package nodes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// mend deletes a budget, and says by when that has to be noticed.
func (l *lab) mend(budget string, within time.Duration, what string, holds func() (bool, string)) {
	l.Helper()
	l.must(l.admin.PolicyV1().PodDisruptionBudgets(l.ns).Delete(l.ctx, budget, deleteNow()))
	began := time.Now()
	l.eventually(what, holds)
	if took := time.Since(began); took > within {
		l.Errorf("%s: only after %s", what, took)
	}
}

func TestADeadlockIsNamedBeforeTheCordonOfARolloutAndTheTurnGoesOn(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	b := newBench(t)
	l.pool("gpu", "node-0")
	l.deployment("held", 2, only("gpu"))
	l.budget("held", intstr.FromInt32(0))
	l.pool("gpu", "node-1")
	l.roll("gpu", "", b)
	l.eventually("the next node is at work", func() (bool, string) {
		_, there, _ := b.now()
		return slices.Equal(there, []string{"node-1"}), fmt.Sprint(there)
	})
	l.schedulable("node-0", true)
	l.eventually("an Event names the deadlock", func() (bool, string) {
		got := strings.Join(l.events(l.ns, "gpu", nodes.EventBlocked), "\n")
		return strings.Contains(got, "node-0") && strings.Contains(got, l.ns+"/held"), got
	})
	b.letGo()
	l.eventually("the run says what it waits for", func() (bool, string) {
		m := l.journals("gpu")[0].Record("roll").Message
		return strings.Contains(m, "node-0 Blocked: ") && strings.Contains(m, l.ns+"/held"), m
	})
	l.schedulable("node-0", true)
	l.mend("held", 5*time.Second, "the mended budget is noticed", func() (bool, string) {
		n := l.node("node-0")
		return n.Spec.Unschedulable || l.journals("gpu")[0].Phase.Ended(), fmt.Sprint(annotations.OfNode(n.Annotations))
	})
	if j := l.ends("gpu", 1); j.Phase != run.Succeeded {
		t.Errorf("the run ended %s: %+v", j.Phase, j.End)
	}
}

// A step before the drain may free the way, so that the node is taken; the drain is
// looked at before its cordon all the same.
func TestADeadlockIsNamedBeforeTheCordonBehindAnotherStep(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	b := newBench(t)
	b.letGo()
	l.pool("gpu", "node-0")
	l.deployment("held", 2, only("gpu"))
	l.budget("held", intstr.FromInt32(0))
	text := fmt.Sprintf("apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - name: roll\n    type: for-each-node\n    properties:\n      selector: {matchLabels: {pool: gpu}}\n      steps:\n"+
		"      - {name: work, type: webhook, properties: {url: \"%s/x\"}}\n      - {name: drain, type: drain}\n      - {name: uncordon, type: uncordon}\n", b.URL)
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "gpu", text, ""), metav1.CreateOptions{})
	l.must(err)
	l.trigger("gpu", "one")
	l.eventually("the step says what is in its way", func() (bool, string) {
		for _, j := range l.journals("gpu") {
			if rec := j.Record("roll/node-0/drain"); rec != nil {
				return strings.Contains(rec.Message, l.ns+"/held") && strings.Contains(rec.Message, "not cordoned"), rec.Message
			}
		}
		return false, ""
	})
	l.schedulable("node-0", true)
	l.mend("held", 5*time.Second, "the mended budget is noticed", func() (bool, string) {
		return l.node("node-0").Spec.Unschedulable || l.journals("gpu")[0].Phase.Ended(), ""
	})
	if j := l.ends("gpu", 1); j.Phase != run.Succeeded {
		t.Errorf("the run ended %s: %+v", j.Phase, j.End)
	}
}

func TestARequestWhoseDrainCouldNotEndTakesNoNodeOver(t *testing.T) {
	l := newLab(t, unlimited)
	l.label("node-7", "pool", "seven")
	l.deployment("web", 2, only("seven"))
	l.budget("web", intstr.FromInt32(0))
	l.request("node-7", "first", `{"drain":false}`)
	l.phase("node-7", "first", nodes.Ready)
	l.request("node-7", "second", "{}")
	l.eventually("second is told what is in its way", func() (bool, string) {
		s, _ := l.status("node-7", "second")
		return s.Phase == nodes.Pending && s.Blocked != nil && s.Blocked.Permanent && strings.Contains(s.Reason, l.ns+"/web"), s.Reason
	})
	l.release("node-7", "first")
	l.gone("node-7", "first")
	l.schedulable("node-7", true)
	if s, _ := l.status("node-7", "second"); s.Phase != nodes.Pending {
		t.Errorf("second took the node over: %s", s)
	}
	l.mend("web", 5*time.Second, "the mended budget is noticed", func() (bool, string) {
		s, _ := l.status("node-7", "second")
		return s.Phase != nodes.Pending, s.Reason
	})
	l.phase("node-7", "second", nodes.Ready)
}
