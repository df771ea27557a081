package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

func TestDeletingARunAbortsItThroughItsFinally(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 2)
	cm := l.plan("orders-weekly", story)
	l.seen("orders-weekly")
	l.setLabel("orders", `"now"`)
	r := l.running("orders-weekly", "hold")
	l.must(l.admin.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, r.run.Name, metav1.DeleteOptions{}))
	l.eventually("the run is gone", func() (bool, string) {
		_, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, r.run.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	l.asBefore("orders", 2)
	if got := l.hooks.Keys("/" + l.ns + "/over"); len(got) != 1 {
		t.Errorf("finally was delivered as %v", got)
	}
	l.eventually("its entry is closed", func() (bool, string) {
		ledger := l.ledger(cm)
		return len(ledger.Open) == 0 && ledger.Totals[run.Ran] == 1, fmt.Sprintf("%+v", ledger)
	})
}

func TestDeletingThePlanAbortsItsRunAndNothingIsCollectedBefore(t *testing.T) {
	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(propagation), func(t *testing.T) {
			l := newLab(t)
			l.runner()
			l.deployment("orders", 2)
			l.plan("orders-weekly", story)
			l.seen("orders-weekly")
			l.setLabel("orders", `"now"`)
			r := l.running("orders-weekly", "hold")
			l.must(l.admin.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, "orders-weekly", metav1.DeleteOptions{PropagationPolicy: &propagation}))
			l.eventually("finally ran", func() (bool, string) { return len(l.hooks.Keys("/"+l.ns+"/over")) == 1, "" })
			l.eventually("the garbage collector took the history with the plan", func() (bool, string) {
				list, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind})
				l.must(err)
				return len(list.Items) == 0, fmt.Sprint(len(list.Items), " left, the run was ", r.run.Name)
			})
			l.asBefore("orders", 2)
		})
	}
}

func TestDeletingTheNamespaceIsNotHeldUpByALiveRun(t *testing.T) {
	l := newLab(t)
	l.runner()
	cm := l.plan("holds", holding)
	l.seen("holds")
	l.trigger("holds", "t")
	r := l.running("holds", "hold")
	forged := forgedRun(l, cm, "forged", l.hooked("/forged")) // nor by one that does not count
	l.forge(forged, workflow.NewJournal(forged).Start(cm.CreationTimestamp.UTC()))
	l.saidToBeBroken(forged.Name, "carries no signature")
	l.must(l.admin.CoreV1().Namespaces().Delete(l.ctx, l.ns, metav1.DeleteOptions{}))
	l.eventually("the namespace is gone", func() (bool, string) {
		ns, err := l.admin.CoreV1().Namespaces().Get(l.ctx, l.ns, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, ""
		}
		return false, fmt.Sprint(ns.Status)
	})
	l.eventually("an Event tells what was cut off", func() (bool, string) {
		events, err := l.admin.CoreV1().Events(metav1.NamespaceDefault).List(l.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + l.ns})
		l.must(err)
		for _, e := range events.Items {
			if e.Reason == "RunCutOff" {
				return true, ""
			}
		}
		return false, fmt.Sprint(len(events.Items), " events, the run was ", r.run.Name)
	})
}

func TestARunTornFromItsFinalizerEndsItsEntryAndDoesNotStartAgain(t *testing.T) {
	l := newLab(t)
	l.runner()
	cm := l.plan("torn", "steps: [{name: hold, type: suspend}]")
	l.seen("torn")
	l.trigger("torn", "t")
	r := l.running("torn", "hold")
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, r.run.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	l.must(err)
	if err := l.admin.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, r.run.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	l.eventually("its entry is closed", func() (bool, string) {
		ledger := l.ledger(cm)
		return len(ledger.Open) == 0 && ledger.Totals[run.Ran] == 1, fmt.Sprintf("%+v", ledger)
	})
	l.annotate("torn", map[string]string{"example.org/touched": "x"})
	l.seen("torn")
	if runs := l.runs("torn"); len(runs) != 0 {
		t.Errorf("it was started again: %s", describeRuns(runs))
	}
}

func TestHistoryIsKeptToItsLimits(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("many", "successfulRunsHistoryLimit: 1"+quick)
	l.seen("many")
	for n := range 4 {
		l.trigger("many", fmt.Sprint(n))
		l.eventually("run "+fmt.Sprint(n)+" was sent", func() (bool, string) { return len(l.hooks.Keys("/"+l.ns+"/call")) == n+1, "" })
	}
	l.eventually("one run is left", func() (bool, string) {
		n := len(l.runs("many"))
		return n == 1, fmt.Sprint(n)
	})
}

func TestAnObjectOfTheLedgersNameThatIsNotOursMakesThePlanInvalid(t *testing.T) {
	l := newLab(t)
	l.runner()
	cm := l.plan("squatted", quick, func(cm *corev1.ConfigMap) { cm.Annotations = map[string]string{annotations.Pause: "true"} })
	l.seen("squatted")
	name := annotations.LedgerName("squatted", string(cm.UID))
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{})
	l.must(err)
	l.annotate("squatted", map[string]string{annotations.Pause: "", annotations.Trigger: "t"})
	l.eventually("the plan is invalid", func() (bool, string) {
		now := l.seen("squatted")
		return now.Annotations[annotations.StatusPhase] == string(trigger.PhaseInvalid), now.Annotations[annotations.StatusMessage]
	})
	if n := len(l.runs("squatted")); n != 0 {
		t.Errorf("%d runs were started", n)
	}
}

func TestForbidRecordsASlotThatFallsDueDuringARunAsBusy(t *testing.T) {
	l := newLab(t)
	l.runner()
	first := time.Now().Add(3 * time.Second).UTC().Truncate(time.Second)
	second := first.Add(3 * time.Second)
	cm := l.plan("busy", fmt.Sprintf("triggers: {schedules: [{at: %q}, {at: %q}]}", first.Format(time.RFC3339), second.Format(time.RFC3339))+holding)
	r := l.running("busy", "hold")
	l.eventually("the second slot is recorded", func() (bool, string) {
		ledger := l.ledger(cm)
		return len(ledger.Recent) == 1 && ledger.Recent[0].Reason == run.ReasonBusy && ledger.Recent[0].Slot.Equal(second), fmt.Sprintf("%+v", ledger.Recent)
	})
	l.annotate("busy", map[string]string{annotations.Resume: r.run.Name})
	l.ended("busy", 1)
}

func TestReplaceEndsTheOldRunThroughItsFinally(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("replaces", "concurrencyPolicy: Replace"+holding)
	l.seen("replaces")
	l.trigger("replaces", "one")
	first := l.running("replaces", "hold")
	l.trigger("replaces", "two")
	l.eventually("the second run holds", func() (bool, string) {
		for _, r := range l.runs("replaces") {
			if r.run.Request.Token == "two" && r.journal.Phase == run.Running {
				l.annotate("replaces", map[string]string{annotations.Resume: r.run.Name})
				return true, ""
			}
		}
		return false, ""
	})
	for _, r := range l.ended("replaces", 2) {
		if r.run.Name == first.run.Name && r.journal.Phase != run.Replaced {
			t.Errorf("the first run ended %s", r.journal.Phase)
		}
	}
	if keys := l.hooks.Keys("/" + l.ns + "/over"); len(keys) != 2 {
		t.Errorf("finally ran for %v", keys)
	}
}

func TestADryRunEndsNoRunUnderReplace(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("replaces", "concurrencyPolicy: Replace"+holding)
	l.seen("replaces")
	l.trigger("replaces", "one")
	first := l.running("replaces", "hold")
	l.expect(l.maint("trigger", "replaces", "--dry-run"), 0)
	l.eventually("the dry run waits for the other", func() (bool, string) {
		for _, r := range l.runs("replaces") {
			if r.run.Request.DryRun {
				return r.journal.Waiting == run.WaitQueue, r.journal.Message
			}
		}
		return false, "there is none"
	})
	l.expect(l.maint("resume", first.run.Name), 0, "resumed")
	for _, r := range l.ended("replaces", 2) {
		if r.journal.Phase != run.Succeeded {
			t.Errorf("run %s (dry: %t) ended %s: %s", r.run.Name, r.run.Request.DryRun, r.journal.Phase, r.journal.Message)
		}
	}
}

func TestTwoPlansOnOneTargetRunOneAfterTheOtherAndTheLastTakesTheLabel(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 1)
	l.plan("one", story)
	l.plan("two", story)
	l.seen("one")
	l.seen("two")
	l.setLabel("orders", `"go"`)
	for range 2 {
		var running runState
		l.eventually("one of them holds", func() (bool, string) {
			for _, name := range []string{"one", "two"} {
				for _, r := range l.runs(name) {
					if rec := recordOf(r.journal, "hold"); rec.Phase == run.StepRunning && rec.Resumed == nil {
						running = r
						return true, ""
					}
				}
			}
			return false, ""
		})
		other := map[string]string{"one": "two", "two": "one"}[running.run.Plan]
		for _, r := range l.runs(other) {
			if r.journal.Phase == run.Running {
				t.Errorf("both plans work on one target")
			}
		}
		l.annotate(running.run.Plan, map[string]string{annotations.Resume: running.run.Name})
		l.ended(running.run.Plan, 1)
	}
	l.asBefore("orders", 1)
	l.ended("one", 1)
	l.ended("two", 1)
}

func TestALabelWaitsForThePlanThatIsPaused(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 1)
	l.plan("one", story)
	l.plan("two", story)
	l.seen("one")
	l.seen("two")
	l.annotate("two", map[string]string{annotations.Pause: "true"})
	l.eventually("the agent knows of the pause", func() (bool, string) { // by another watch than of the label
		a := l.seen("two").Annotations
		return strings.Contains(a[annotations.StatusConditions], "ChangesPaused"), a[annotations.StatusConditions]
	})
	l.setLabel("orders", `"go"`)
	first := l.running("one", "hold")
	l.annotate("one", map[string]string{annotations.Resume: first.run.Name})
	l.ended("one", 1)
	if n := len(l.runs("two")); n > 0 {
		t.Fatalf("the paused plan has %d runs", n)
	}
	l.annotate("two", map[string]string{annotations.Pause: ""})
	second := l.running("two", "hold")
	l.annotate("two", map[string]string{annotations.Resume: second.run.Name})
	l.ended("two", 1)
	l.asBefore("orders", 1)
	l.ended("one", 1)
}

func TestARunThatCannotBeReadIsLeftAloneAndItsEventCounted(t *testing.T) {
	l := newLab(t)
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "maint-run-garbled-x", Labels: map[string]string{
			annotations.LabelKind: annotations.KindRun, annotations.LabelPlan: "garbled", annotations.LabelPhase: string(run.Pending),
		}},
		Data: map[string]string{annotations.DataRun: "{", annotations.DataJournal: "{"},
	}
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, cm, metav1.CreateOptions{})
	l.must(err)
	n := 0
	l.eventually("one Event counts its sightings", func() (bool, string) {
		n++
		l.annotate("maint-run-garbled-x", map[string]string{"example.org/touched": fmt.Sprint(n)})
		events, err := l.admin.CoreV1().Events(l.ns).List(l.ctx, metav1.ListOptions{FieldSelector: "reason=RunBroken"})
		l.must(err)
		return len(events.Items) == 1 && events.Items[0].Count > 1, fmt.Sprint(len(events.Items), " events")
	})
	object, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "maint-run-garbled-x", metav1.GetOptions{})
	l.must(err)
	if object.Data[annotations.DataRun] != "{" {
		t.Errorf("it was changed: %v", object.Data)
	}
}

func TestTheTargetsUsersSeeHowThePlanStands(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 1)
	slot := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	l.plan("weekly", fmt.Sprintf("mirrorPrefix: workflow-activity.oam.dev\ntarget: {apiVersion: apps/v1, kind: Deployment, name: orders}\ntriggers: {schedules: [{at: %q}]}", slot.Format(time.RFC3339))+holding)
	mirror := func(want map[string]string) func() (bool, string) {
		return func() (bool, string) {
			d, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, "orders", metav1.GetOptions{})
			l.must(err)
			for suffix, value := range want {
				if d.Annotations["workflow-activity.oam.dev/weekly-"+suffix] != value {
					return false, fmt.Sprint(d.Annotations)
				}
			}
			return true, ""
		}
	}
	l.eventually("the next run is told", mirror(map[string]string{"next-run": slot.Format(time.RFC3339), "status": ""}))
	l.trigger("weekly", "t")
	r := l.running("weekly", "hold")
	began := r.journal.StartedAt.UTC().Format(time.RFC3339)
	l.eventually("it is said to be suspended", mirror(map[string]string{"status": "suspended", "last-run": began, "step": "hold 1/2"}))
	l.annotate("weekly", map[string]string{annotations.Abort: r.run.Name})
	l.ended("weekly", 1)
	l.eventually("it is said to have failed", mirror(map[string]string{"status": "failed", "last-run": began, "step": ""}))
	l.must(l.admin.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, "weekly", metav1.DeleteOptions{}))
	l.eventually("nothing is said of a plan that is gone", mirror(map[string]string{"status": "", "last-run": "", "next-run": "", "step": ""}))
}

func TestTheTargetsUsersSkipAPlan(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 1)
	d, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, "orders", types.MergePatchType, []byte(`{"metadata":{"annotations":{"mirror.maint.dev/weekly-skip":"true"}}}`), metav1.PatchOptions{})
	l.must(err)
	l.observed(d)
	slot := time.Now().Add(3 * time.Second).UTC().Truncate(time.Second)
	cm := l.plan("weekly", fmt.Sprintf("target: {apiVersion: apps/v1, kind: Deployment, name: orders}\ntriggers: {schedules: [{at: %q}]}", slot.Format(time.RFC3339))+quick)
	l.eventually("the slot is skipped", func() (bool, string) {
		l.seen("weekly")
		ledger := l.ledger(cm)
		return len(ledger.Recent) == 1 && ledger.Recent[0].Result == run.Skipped && ledger.Recent[0].Reason == run.ReasonSkip, fmt.Sprintf("%+v", ledger)
	})
	l.trigger("weekly", "t") // a token overrides it
	l.ended("weekly", 1)
}

func TestATargetThatMayNotBeWrittenToIsTold(t *testing.T) {
	l := newLab(t)
	l.runner(deploymentRightsWithout("patch"))
	l.deployment("orders", 1)
	l.plan("weekly", "target: {apiVersion: apps/v1, kind: Deployment, name: orders}"+quick)
	l.seen("weekly")
	l.trigger("weekly", "t")
	if end := l.ended("weekly", 1)[0]; end.journal.Phase != run.Succeeded {
		t.Errorf("the run ended %s", end.journal.Phase)
	}
	l.eventually("the plan says so", func() (bool, string) {
		said := l.seen("weekly").Annotations[annotations.StatusConditions]
		return strings.Contains(said, "Mirrored") && strings.Contains(said, "system:serviceaccount:"+l.ns+":maint-runner"), said
	})
}

func TestARunThatAPauseHoldsBetweenTwoStepsGoesOnWhenItIsResumed(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("gated", twoSteps)
	l.seen("gated")
	l.trigger("gated", "t")
	r := l.running("gated", "hold")
	l.annotate("gated", map[string]string{annotations.Pause: "true"})
	l.annotate("gated", map[string]string{annotations.Resume: r.run.Name})
	l.eventually("it is held", func() (bool, string) {
		runs := l.runs("gated")
		return len(runs) == 1 && runs[0].journal.Steps[0].Phase == run.StepSucceeded && strings.Contains(runs[0].journal.Message, "paused"), describeRuns(runs)
	})
	l.annotate("gated", map[string]string{annotations.Pause: ""})
	if end := l.ended("gated", 1)[0]; end.journal.Phase != run.Succeeded {
		t.Errorf("it ended %s", end.journal.Phase)
	}
}

func TestPlansOfTwoNamespacesOnOneNodeWaitForEachOther(t *testing.T) {
	first := newLab(t)
	second := first.beside()
	name := "node-" + first.ns
	_, err := first.admin.CoreV1().Nodes().Create(first.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	first.must(err)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}}}
	_, err = first.admin.RbacV1().ClusterRoles().Create(first.ctx, role, metav1.CreateOptions{})
	first.must(err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(first.ctx)
		_ = first.admin.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
		_ = first.admin.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{})
	})
	for _, l := range []*lab{first, second} {
		l.runner()
		_, err = l.admin.RbacV1().ClusterRoleBindings().Create(l.ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + l.ns}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: l.ns, Name: "maint-runner"}},
		}, metav1.CreateOptions{})
		l.must(err)
		t.Cleanup(func() {
			_ = l.admin.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(l.ctx), name+"-"+l.ns, metav1.DeleteOptions{})
		})
		l.plan("reboot", "target: {apiVersion: v1, kind: Node, name: "+name+"}"+holding)
		l.seen("reboot")
	}
	first.eventually("the account sees the node", func() (bool, string) {
		said := first.seen("reboot").Annotations[annotations.StatusConditions]
		return !strings.Contains(said, `"NotReady"`), said
	})
	first.trigger("reboot", "t")
	r := first.running("reboot", "hold")
	second.trigger("reboot", "t")
	second.waiting("reboot", run.WaitLock)
	first.annotate("reboot", map[string]string{annotations.Resume: r.run.Name})
	first.ended("reboot", 1)
	second.running("reboot", "hold")
}
