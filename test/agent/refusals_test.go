package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// grant replaces what the namespace's maint-runner may do.
func (l *lab) grant(rules ...rbacv1.PolicyRule) {
	l.Helper()
	role, err := l.admin.RbacV1().Roles(l.ns).Get(l.ctx, "maint-runner", metav1.GetOptions{})
	l.must(err)
	role.Rules = rules
	_, err = l.admin.RbacV1().Roles(l.ns).Update(l.ctx, role, metav1.UpdateOptions{})
	l.must(err)
}

// says waits until the status message of an object holds some words.
func (l *lab) says(name string, words ...string) {
	l.Helper()
	began := time.Now()
	l.eventually(name+" says "+strings.Join(words, " and "), func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		text := cm.Annotations[annotations.StatusMessage]
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false, text
			}
		}
		return true, text
	})
	if took := time.Since(began); took > 20*time.Second {
		l.Errorf("%s said so after %s", name, took)
	}
}

// deny has a ValidatingAdmissionPolicy refuse updates of a resource in the test's
// namespace where an expression is false; lift takes it away.
func (l *lab) deny(name string, rule admissionv1.Rule, operations []admissionv1.OperationType, expression, message string) (lift func()) {
	l.Helper()
	name = l.ns + "-" + name
	api := l.admin.AdmissionregistrationV1()
	fail, all := admissionv1.Fail, admissionv1.MatchPolicyType("Equivalent")
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail,
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": l.ns}}, MatchPolicy: &all,
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{Operations: operations, Rule: rule}}},
		},
		Validations: []admissionv1.Validation{{Expression: expression, Message: message}},
	}}
	_, err := api.ValidatingAdmissionPolicies().Create(l.ctx, policy, metav1.CreateOptions{})
	l.must(err)
	_, err = api.ValidatingAdmissionPolicyBindings().Create(l.ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	l.must(err)
	lift = func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = api.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = api.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	}
	l.Cleanup(lift)
	return lift
}

func scaleRule() admissionv1.Rule {
	return admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments", "deployments/scale"}}
}

func scaleRights() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"get", "patch"}}
}

func (l *lab) replicas(name string) int32 {
	l.Helper()
	d, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return *d.Spec.Replicas
}

func TestAMissingRightIsToldAtOnceAndOneThatComesInTimeIsNoFailure(t *testing.T) {
	l := newLab(t)
	l.runner(configMapRights("get"))
	l.deployment("orders", 1)
	cm := l.plan("late", `
steps:
- {name: ready, type: wait, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, until: "object.status.readyReplicas == 1"}}
- {name: hold, type: suspend}
`)
	l.seen("late")
	l.trigger("late", "t")
	r := l.running("late", "ready")
	l.says(r.run.Name, "step ready waits", "may not get deployments.apps", "grant get on deployments.apps")
	l.says(cm.Name, "run "+r.run.Name+" is at work", "grant get on deployments.apps")
	l.grant(deploymentRights())
	l.running("late", "hold")
	l.eventually("the plan speaks of the right no more", func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "late", metav1.GetOptions{})
		l.must(err)
		text := cm.Annotations[annotations.StatusMessage]
		return strings.Contains(text, r.run.Name) && !strings.Contains(text, "grant get"), text
	})
	l.annotate("late", map[string]string{annotations.Resume: r.run.Name})
	end := l.ended("late", 1)[0]
	if end.journal.Phase != run.Succeeded || end.journal.Record("ready").Waits != "" {
		t.Errorf("%+v", end.journal)
	}
}

const restoring = `
steps:
- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0, restoreAfter: true}}
- {name: hold, type: suspend}
finally:
- {name: tell, type: label, properties: {operation: add, labels: {told: "yes"}, object: {apiVersion: v1, kind: ConfigMap, name: over}}}
`

// held starts a run of the plan above and brings it to its suspend.
func (l *lab) held(name string) runState {
	l.Helper()
	l.runner(scaleRights(), configMapRights("get", "patch"))
	l.deployment("orders", 3)
	l.configMap("over", nil, nil)
	l.plan(name, restoring)
	l.seen(name)
	l.trigger(name, "t")
	return l.running(name, "hold")
}

func TestARestoreAndFinallyWaitForRightsThatAreGivenBack(t *testing.T) {
	l := newLab(t)
	r := l.held("back")
	l.grant(configMapRights("get"))
	l.annotate("back", map[string]string{annotations.Abort: r.run.Name})
	l.says(r.run.Name, "step down waits", "deployments.apps/scale", "cleanup waits for it")
	if n := l.replicas("orders"); n != 0 {
		t.Fatalf("%d replicas", n)
	}
	until := l.runs("back")[0].journal.SectionAt.Add(15 * time.Minute).UTC()
	l.says(r.run.Name, "cleanup waits for it until "+until.Format(time.RFC3339))
	l.expect(l.maint("wait", r.run.Name, "--timeout", "3s"), 124, "step down: Succeeded, and waits: put back spec.replicas: 3 ", "cleanup waits for it until "+instant.Local(until.Truncate(time.Second), "Europe/Berlin"))
	l.expect(l.maint("status"), 0, "Needs somebody:", "step down, waits: ", "doctor back'")
	l.expect(l.maint("doctor", "back"), 1, "scale", "grant it")
	l.grant(scaleRights(), configMapRights("get"))
	l.says(r.run.Name, "step finally/tell waits", "patch on configmaps", "cleanup waits for it")
	l.grant(scaleRights(), configMapRights("get", "patch"))
	end := l.ended("back", 1)[0]
	if rec := end.journal.Record("down"); l.replicas("orders") != 3 || rec.Restored != run.RestoreDone || end.journal.Phase != run.Aborted || end.journal.Record("finally/tell").Phase != run.StepSucceeded {
		t.Errorf("%d replicas, %+v", l.replicas("orders"), end.journal)
	}
}

func TestARestoreWaitsForItsAccount(t *testing.T) {
	l := newLab(t)
	r := l.held("account")
	l.grant(configMapRights("get", "patch")) // that an account is there is believed for a while
	l.must(l.admin.CoreV1().ServiceAccounts(l.ns).Delete(l.ctx, "maint-runner", metav1.DeleteOptions{}))
	l.annotate("account", map[string]string{annotations.Abort: r.run.Name})
	l.says(r.run.Name, "step down waits", "deployments.apps/scale")
	l.eventually("it waits for its account", func() (bool, string) {
		message := l.runs("account")[0].journal.Notice()
		return strings.Contains(message, "the ServiceAccount maint-runner does not exist") && strings.Contains(message, "cleanup waits for it"), message
	})
	l.grant(scaleRights(), configMapRights("get", "patch"))
	_, err := l.admin.CoreV1().ServiceAccounts(l.ns).Create(l.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "maint-runner"}}, metav1.CreateOptions{})
	l.must(err)
	end := l.ended("account", 1)[0]
	if l.replicas("orders") != 3 || end.journal.Record("finally/tell").Phase != run.StepSucceeded {
		t.Errorf("%d replicas, %+v", l.replicas("orders"), end.journal)
	}
}

func TestARestoreWaitsForAnAdmissionPolicyThatRefusesIt(t *testing.T) {
	l := newLab(t)
	r := l.held("policy")
	lift := l.deny("scale", scaleRule(), []admissionv1.OperationType{admissionv1.Update}, "false", "no change before the audit")
	l.eventually("the policy is in force", func() (bool, string) {
		_, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, "orders", types.MergePatchType, []byte(`{"metadata":{"labels":{"probe":"1"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil, fmt.Sprint(err)
	})
	l.annotate("policy", map[string]string{annotations.Abort: r.run.Name})
	l.says(r.run.Name, "step down waits", "no change before the audit", "cleanup waits for it")
	lift()
	end := l.ended("policy", 1)[0]
	if rec := end.journal.Record("down"); l.replicas("orders") != 3 || rec.Restored != run.RestoreDone {
		t.Errorf("%d replicas, %+v", l.replicas("orders"), end.journal)
	}
}

func TestAStepThatAnAdmissionPolicyRefusesIsTriedAgainByItsRetry(t *testing.T) {
	l := newLab(t)
	l.runner(configMapRights("get", "patch"))
	l.configMap("over", nil, nil)
	lift := l.deny("labels", admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		[]admissionv1.OperationType{admissionv1.Update}, "object.metadata.name != 'over'", "over is frozen")
	l.eventually("the policy is in force", func() (bool, string) {
		_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, "over", types.MergePatchType, []byte(`{"metadata":{"labels":{"probe":"1"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil, fmt.Sprint(err)
	})
	l.plan("frozen", `
steps:
- name: mark
  type: label
  retry: {limit: 20, backoff: 1s, maxBackoff: 1s}
  properties: {operation: add, labels: {told: "yes"}, object: {apiVersion: v1, kind: ConfigMap, name: over}}
`)
	l.seen("frozen")
	l.trigger("frozen", "t")
	l.eventually("its step was denied", func() (bool, string) {
		for _, r := range l.runs("frozen") {
			if rec := r.journal.Record("mark"); rec.Reason == "Denied" && strings.Contains(rec.Message, "over is frozen") && rec.Attempt > 1 {
				return true, ""
			}
		}
		return false, ""
	})
	lift()
	if end := l.ended("frozen", 1)[0]; end.journal.Phase != run.Succeeded {
		t.Errorf("%+v", end.journal)
	}
}

// An API server that starts answers 403 to everybody until it has read its roles.
func TestRestartsOfTheAPIServerFailNoStepAndNoRestore(t *testing.T) {
	x := newCrashes(t)
	agent := x.agent()
	defer agent.Kill()
	l := &lab{T: t, ctx: x.ctx, admin: x.admin, ns: "restarts", hooks: x.hooks}
	_, err := x.admin.CoreV1().Namespaces().Create(x.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.ns}}, metav1.CreateOptions{})
	l.must(err)
	l.runner(scaleRights(), configMapRights("get", "list", "watch", "patch"))
	const n = 12
	for i := range n {
		l.deployment(fmt.Sprintf("d-%d", i), 3)
		name := fmt.Sprintf("p-%d", i)
		l.plan(name, fmt.Sprintf(`
steps:
- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: d-%d}, replicas: 0, restoreAfter: true}}
- {name: wait, type: wait, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: go-%d}, until: "object.data.go == 'yes'"}}
finally:
- {name: tell, type: label, properties: {operation: add, labels: {told: "yes"}, object: {apiVersion: v1, kind: ConfigMap, name: go-%d}}}
`, i, i, i))
		l.seen(name)
		l.trigger(name, "t")
	}
	for i := range n {
		l.running(fmt.Sprintf("p-%d", i), "wait")
	}
	for round := range 4 {
		for i := round * n / 4; i < (round+1)*n/4; i++ { // their restores and finally fall into the restart
			_, err := x.admin.CoreV1().ConfigMaps(l.ns).Create(x.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("go-%d", i)}, Data: map[string]string{"go": "yes"}}, metav1.CreateOptions{})
			l.must(err)
		}
		l.must(x.c.RestartAPIServer(x.ctx))
	}
	for i := range n {
		end := l.ended(fmt.Sprintf("p-%d", i), 1)[0]
		if end.journal.Phase != run.Succeeded || l.replicas(fmt.Sprintf("d-%d", i)) != 3 {
			t.Errorf("p-%d ended %s: %s; %+v", i, end.journal.Phase, end.journal.Message, end.journal.Steps)
		}
	}
	if t.Failed() {
		t.Log(agent.Log())
	}
}

// full forbids new ConfigMaps in the namespace by a quota; lift takes it away.
func (l *lab) full() (lift func()) {
	l.Helper()
	quotas := l.admin.CoreV1().ResourceQuotas(l.ns)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": *zero()}}}
	_, err := quotas.Create(l.ctx, quota, metav1.CreateOptions{})
	l.must(err)
	l.eventually("the quota is in force", func() (bool, string) {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}
		_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil, fmt.Sprint(err)
	})
	return func() { l.must(quotas.Delete(l.ctx, "few", metav1.DeleteOptions{})) }
}

func TestATokenWhoseRunAQuotaRefusesWaitsAndSaysForWhat(t *testing.T) {
	l := newLab(t)
	l.runner()
	cm := l.plan("quota", quick)
	l.seen("quota")
	lift := l.full()
	l.trigger("quota", "t")
	l.says("quota", "the trigger waits", "the API server refuses its run", "exceeded quota: few")
	l.expect(l.maint("why", "quota"), 3, "the trigger waits", "exceeded quota: few")
	l.expect(l.maint("status", "quota"), 0, "exceeded quota: few")
	if c := condition(t, l.seen("quota").Annotations, "RunRefused"); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "exceeded quota") {
		t.Errorf("%+v", c)
	}
	l.toldOnce("RunRefused", "quota")
	if open := l.ledger(cm).Open; len(open) != 1 {
		t.Errorf("claimed: %+v", open)
	}
	lift()
	if end := l.ended("quota", 1)[0]; end.journal.Phase != run.Succeeded {
		t.Errorf("%+v", end.journal)
	}
	l.eventually("nothing is said of it any more", func() (bool, string) {
		text := l.seen("quota").Annotations[annotations.StatusConditions]
		return !strings.Contains(text, "RunRefused"), text
	})
}

// toldOnce checks that there is one Event of a reason about an object, sent once.
func (l *lab) toldOnce(reason, about string) {
	l.Helper()
	l.eventually("the Event "+reason, func() (bool, string) {
		events, err := l.admin.CoreV1().Events(l.ns).List(l.ctx, metav1.ListOptions{FieldSelector: "reason=" + reason + ",involvedObject.name=" + about})
		l.must(err)
		return len(events.Items) == 1 && events.Items[0].Count <= 1, fmt.Sprint(len(events.Items))
	})
}

func TestASlotWhoseRunAQuotaRefusesRunsWithinItsDeadlineOrIsMissed(t *testing.T) {
	l := newLab(t)
	l.runner()
	slot := time.Now().Add(12 * time.Second).UTC().Truncate(time.Second)
	spec := func(deadline string) string {
		return fmt.Sprintf("triggers: {schedules: [{at: %q, timezone: UTC}]}\nstartDeadline: %s\n%s", slot.UTC().Format(time.RFC3339), deadline, strings.TrimLeft(quick, "\n"))
	}
	short, long := l.plan("short", spec("5s")), l.plan("long", spec("10m"))
	l.seen("short")
	l.seen("long")
	for _, cm := range []*corev1.ConfigMap{short, long} { // their ledgers are there before the quota is
		l.ledger(cm)
	}
	lift := l.full()
	l.eventually("the slot with the short deadline is Missed(refused)", func() (bool, string) {
		ledger := l.ledger(short)
		return len(ledger.Recent) == 1 && ledger.Recent[0].Result == run.Missed && ledger.Recent[0].Reason == run.ReasonRefused, fmt.Sprintf("%+v", ledger)
	})
	if e := l.ledger(short).Recent[0]; e.At.Before(slot.Add(5 * time.Second)) {
		t.Errorf("it ended at %s, its deadline is %s", e.At, slot.Add(5*time.Second))
	}
	if open := l.ledger(long).Open; len(open) != 1 || open[0].Refused == "" {
		t.Errorf("the slot with the long one: %+v", l.ledger(long))
	}
	lift()
	if end := l.ended("long", 1)[0]; end.journal.Phase != run.Succeeded {
		t.Errorf("%+v", end.journal)
	}
}

func TestALabelThatAnAdmissionPolicyKeepsIsToldAndTakenWhenItMay(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 1)
	l.plan("stays", "target: {apiVersion: apps/v1, kind: Deployment, name: orders}\ntriggers: {labels: [example.org/go]}\n"+strings.TrimLeft(quick, "\n"))
	l.seen("stays")
	_, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, "orders", types.MergePatchType, []byte(`{"metadata":{"labels":{"example.org/go":"1"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	l.must(err)
	lift := l.deny("label", admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}}, []admissionv1.OperationType{admissionv1.Update},
		"!has(oldObject.metadata.labels) || !('example.org/go' in oldObject.metadata.labels) || has(object.metadata.labels) && 'example.org/go' in object.metadata.labels", "the label stays for the audit")
	probe := l.deployment("probe", 1)
	l.eventually("the policy is in force", func() (bool, string) {
		_, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, probe.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"example.org/go":"1"}}}`), metav1.PatchOptions{})
		l.must(err)
		_, err = l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, probe.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"example.org/go":null}}}`), metav1.PatchOptions{})
		return err != nil, fmt.Sprint(err)
	})
	_, err = l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, "orders", types.MergePatchType, []byte(`{"metadata":{"labels":{"example.org/go":"1"}}}`), metav1.PatchOptions{})
	l.must(err)
	l.says("stays", "cannot be taken away", "the label stays for the audit")
	r := l.runs("stays")[0]
	l.says(r.run.Name, "the label example.org/go cannot be taken away", "the label stays for the audit")
	if c := condition(t, l.seen("stays").Annotations, "TriggerLabelStays"); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "the label stays for the audit") {
		t.Errorf("%+v", c)
	}
	l.toldOnce("LabelStays", "stays")
	lift()
	if end := l.ended("stays", 1)[0]; end.journal.Phase != run.Succeeded || end.journal.Waits != "" {
		t.Errorf("%+v", end.journal)
	}
}

func TestATokenThatComesAfterTheLedgerIsLostRuns(t *testing.T) {
	l := newLab(t)
	l.runner()
	cm := l.plan("lost", quick)
	l.seen("lost")
	l.trigger("lost", "first")
	l.ended("lost", 1)
	l.eventually("the status knows the token", func() (bool, string) {
		got := l.seen("lost").Annotations[annotations.StatusTrigger]
		return got == "first", got
	})
	l.must(l.admin.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, annotations.LedgerName(cm.Name, string(cm.UID)), metav1.DeleteOptions{}))
	l.trigger("lost", "second")
	l.ended("lost", 2)
	never := l.plan("never", quick)
	l.seen("never")
	l.must(l.admin.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, annotations.LedgerName(never.Name, string(never.UID)), metav1.DeleteOptions{}))
	l.trigger("never", "first")
	l.ended("never", 1)
}
