package agent_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// forgedRun is a run of the lab's namespace that somebody made up.
func forgedRun(l *lab, of *corev1.ConfigMap, token string, steps ...plan.Step) run.Run {
	return harness.ForgedRun(l.ns, of, token, steps...)
}

// forge writes a run as a tenant would: without the agent's key.
func (l *lab) forge(r run.Run, j run.Journal) {
	l.Helper()
	l.write(r, j, func(*corev1.ConfigMap) {})
}

// forgeSigned writes one that somebody signed who has the agent's key: what it holds is
// checked all the same.
func (l *lab) forgeSigned(r run.Run, j run.Journal) {
	l.Helper()
	l.write(r, j, func(cm *corev1.ConfigMap) { l.must(keyring(l.ctx, l.T, l.admin).Sign(cm)) })
}

func (l *lab) write(r run.Run, j run.Journal, sign func(*corev1.ConfigMap)) {
	l.Helper()
	cm, err := annotations.RunObject(r, j)
	l.must(err)
	cm.Namespace = l.ns
	sign(cm)
	_, err = l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, cm, metav1.CreateOptions{})
	l.must(err)
}

// neighbour is another namespace of the same test.
func (l *lab) neighbour() *lab {
	return &lab{T: l.T, ctx: l.ctx, admin: l.admin, ns: world.cluster.Namespace(l.T), hooks: l.hooks}
}

func (l *lab) saidToBeBroken(name, why string) {
	l.eventually("run "+name+" is said to be broken", func() (bool, string) {
		events, err := l.admin.CoreV1().Events(l.ns).List(l.ctx, metav1.ListOptions{FieldSelector: "reason=RunBroken,involvedObject.name=" + name})
		l.must(err)
		for _, e := range events.Items {
			if strings.Contains(e.Message, why) {
				return true, ""
			}
		}
		return false, fmt.Sprint(events.Items)
	})
}

// A template that stands for itself in what a run holds overflowed the agent's stack,
// which nothing recovers: one ConfigMap of a tenant ended maintenance for everybody.
func TestARunThatSomebodyWroteWithATemplateThatHoldsItselfEndsNoAgent(t *testing.T) {
	l := newLab(t)
	l.runner()
	cm := l.plan("orders", holding)
	again := plan.Step{Name: "again", Type: "template/loop"}
	r := forgedRun(l, cm, "forged", again)
	r.Templates = map[string]plan.TemplateSpec{"loop": {Steps: []plan.Step{again}}}
	l.forgeSigned(r, run.Journal{Phase: run.Running, Section: plan.SectionSteps, Steps: []run.Record{{Path: "again", Type: again.Type, Phase: run.StepPending}}})
	l.saidToBeBroken(r.Name, "stands for itself")
	l.plan("beside", holding)
	l.seen("beside")
	l.trigger("beside", "after it")
	l.running("beside", "hold")
}

// A run counts for the plan of its own namespace alone, whatever it says of itself.
func TestARunThatSomebodyWroteForAnotherNamespacesPlanDoesNothing(t *testing.T) {
	theirs := newLab(t)
	theirs.runner()
	victim := theirs.plan("orders", "triggers: {schedules: [{cron: '0 3 1 1 *'}]}"+holding)
	theirs.seen("orders")

	l := theirs.neighbour()
	l.runner()
	hook := plan.Step{Name: "hook", Type: "webhook", Properties: map[string]any{"url": world.hooks.URL + "/forged"}}
	r := forgedRun(l, victim, "forged", hook)
	l.forgeSigned(r, workflow.NewJournal(r).Start(victim.CreationTimestamp.UTC()))
	l.eventually("it ends, as one whose plan is not there", func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, r.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, ""
		}
		l.must(err)
		return run.Phase(cm.Labels[annotations.LabelPhase]).Ended(), cm.Data[annotations.DataJournal]
	})
	for _, d := range world.hooks.Deliveries() {
		if strings.HasSuffix(d.Path, "/forged") {
			t.Error("a step of it was done")
		}
	}
	list, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindLedger})
	l.must(err)
	for _, cm := range list.Items {
		t.Errorf("a ledger was written where there is no plan: %v", cm.Data)
	}
	theirs.trigger("orders", "after it")
	theirs.running("orders", "hold")
	ledger, err := theirs.admin.CoreV1().ConfigMaps(theirs.ns).Get(theirs.ctx, annotations.LedgerName("orders", string(victim.UID)), metav1.GetOptions{})
	theirs.must(err)
	if strings.Contains(ledger.Data[annotations.DataLedger], r.Name) {
		t.Errorf("the forged run stands in their ledger: %s", ledger.Data[annotations.DataLedger])
	}
}
