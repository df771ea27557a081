package hibernate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// sleepRights are those of an account whose workloads sleep.
func sleepRights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "replicasets"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale", "statefulsets/scale", "replicasets/scale"}, Verbs: []string{"get", "patch"}},
		{APIGroups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{"keda.sh"}, Resources: []string{"scaledobjects"}, Verbs: []string{"get", "list", "watch", "patch"}},
	}
}

// sleeper makes a HibernatePlan, and waits until the agent has taken it up.
func (l *lab) sleeper(name, spec string) *corev1.ConfigMap {
	l.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  " + strings.ReplaceAll(strings.Trim(spec, "\n"), "\n", "\n  ")
	cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewHibernatePlan(l.ns, name, text, ""), metav1.CreateOptions{})
	l.must(err)
	l.eventually(name+" is taken up", func() (bool, string) {
		a := l.annotationsOf(name)
		return a[annotations.StatusObserved] == annotations.Observed(cm), fmt.Sprint(a)
	})
	return cm
}

func (l *lab) annotationsOf(name string) map[string]string {
	l.Helper()
	cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return cm.Annotations
}

// phase waits until a plan is in a phase, and says something of it.
func (l *lab) phaseOf(name string, phase hibernate.Phase, says string) map[string]string {
	l.Helper()
	var a map[string]string
	l.eventually(fmt.Sprintf("%s is %s, and says %q", name, phase, says), func() (bool, string) {
		a = l.annotationsOf(name)
		return a[annotations.StatusPhase] == string(phase) && strings.Contains(a[annotations.StatusMessage], says), fmt.Sprint(a)
	})
	return a
}

// restoreData is what is recorded of a target; nil: nothing.
func (l *lab) restoreData(plan, target string) *hibernate.Record {
	l.Helper()
	cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, annotations.RestoreName(plan, target), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	l.must(err)
	r, err := annotations.ReadRestore(cm)
	l.must(err)
	return &r
}

func (l *lab) cronJob(name string) {
	l.Helper()
	_, err := l.admin.BatchV1().CronJobs(l.ns).Create(l.ctx, &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}},
		}}}},
	}, metav1.CreateOptions{})
	l.must(err)
}

func (l *lab) suspended(name string) bool {
	l.Helper()
	cron, err := l.admin.BatchV1().CronJobs(l.ns).Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return cron.Spec.Suspend != nil && *cron.Spec.Suspend
}

func (l *lab) scaleTo(name string, replicas int) {
	l.Helper()
	_, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, name, types.MergePatchType, []byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)), metav1.PatchOptions{}, "scale")
	l.must(err)
}

// workloads is a plan whose off-hours are days away, whatever the day: its stories say when
// it sleeps.
func workloads() string {
	day := strings.ToUpper(time.Now().AddDate(0, 0, 3).Weekday().String()[:3])
	return fmt.Sprintf(`
schedule: {timezone: Asia/Jakarta, offHours: [{start: "20:00", end: "06:00", daysOfWeek: [%s]}]}
targets: [{name: apps, type: workload}]
`, day)
}

func TestANamespaceSleepsAndWakesAsItWas(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.deployment("orders", 3)
	l.deployment("idle", 0)
	l.cronJob("report")
	l.sleeper("nights", workloads())
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	l.phaseOf("nights", hibernate.Hibernated, "1 of 1 targets sleep")
	if l.replicas("orders") != 0 || !l.suspended("report") {
		t.Errorf("orders has %d, report suspended: %t", l.replicas("orders"), l.suspended("report"))
	}
	r := l.restoreData("nights", "apps")
	if r == nil || len(r.Resources) != 2 || r.State != hibernate.Asleep {
		t.Fatalf("recorded is %+v", r)
	}

	made := time.Now()
	l.newDeployment("batch", 2)
	l.eventually("what is made while it sleeps sleeps, too", func() (bool, string) { return l.replicas("batch") == 0, fmt.Sprint(l.replicas("batch")) })
	if took := time.Since(made); took > 30*time.Second {
		t.Errorf("it took %s: a watch should have said so", took)
	}
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.phaseOf("nights", hibernate.Active, "")
	l.eventually("all is as it was", func() (bool, string) {
		return l.replicas("orders") == 3 && l.replicas("idle") == 0 && l.replicas("batch") == 2 && !l.suspended("report"),
			fmt.Sprint(l.replicas("orders"), l.replicas("idle"), l.replicas("batch"), l.suspended("report"))
	})
	l.eventually("the restore data has served", func() (bool, string) { return l.restoreData("nights", "apps") == nil, "" })
	a := l.phaseOf("nights", hibernate.Active, "")
	if got := annotations.ReadTargets(a[annotations.StatusTargets]); len(got) != 1 || got[0].State != hibernate.Awake {
		t.Errorf("targets %s", a[annotations.StatusTargets])
	}
}

func TestOffHoursStandInTheLedgerWithWhatSlept(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.deployment("orders", 3)
	now := time.Now().UTC()
	begin, end := now.Add(-2*time.Minute).Truncate(time.Minute), now.Add(time.Hour)
	l.sleeper("nights", fmt.Sprintf(`
schedule: {offHours: [{start: "%s", end: "%s"}]}
healthChecks: [{resource: {apiVersion: apps/v1, kind: Deployment, name: orders}}]
targets: [{name: apps, type: workload}]
`, begin.Format("15:04"), end.Format("15:04")))
	l.phaseOf("nights", hibernate.Hibernated, "")
	time.Sleep(1500 * time.Millisecond) // whole seconds are counted
	l.annotate("nights", map[string]string{annotations.Skip: "next"})
	l.phaseOf("nights", hibernate.Active, "these off-hours are skipped")
	l.eventually("what slept is in the ledger", func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, annotations.LedgerName("nights", l.uidOf("nights")), metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		led, err := annotations.ReadLedger(cm, l.uidOf("nights"))
		l.must(err)
		e := led.Recent
		return len(e) == 1 && e[0].Result == run.Ran && e[0].Slot.Equal(begin) && len(e[0].Slept) == 1 && e[0].Slept[0].Kind == "Deployment" && e[0].Slept[0].Hours > 0,
			cm.Data[annotations.DataLedger]
	})
	if l.replicas("orders") != 3 {
		t.Errorf("orders has %d", l.replicas("orders"))
	}
	l.annotate("nights", map[string]string{annotations.Skip: ""})
	l.phaseOf("nights", hibernate.Hibernated, "")
}

func TestARunHasAPlanSleepWhileItWorks(t *testing.T) {
	l := newLab(t)
	l.runner(append(sleepRights(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "patch"}})...)
	l.deployment("orders", 3)
	l.sleeper("nights", workloads())
	run := l.worksDuring("hibernate", 0)
	l.phaseOf("nights", hibernate.Hibernated, "")
	l.annotate("upgrade", map[string]string{annotations.Resume: run})
	l.phaseOf("nights", hibernate.Active, "")
	l.eventually("all is as it was", func() (bool, string) {
		return l.replicas("orders") == 3 && l.annotationsOf("nights")[annotations.HoldState] == "", fmt.Sprint(l.replicas("orders"))
	})
}

// worksDuring has a run hold nights asleep or awake, and waits until it works while orders has so
// many replicas. It returns the run.
func (l *lab) worksDuring(stepType string, replicas int32) (run string) {
	l.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: hold, type: " + stepType + ", properties: {plan: nights}}\n  - {name: work, type: suspend}\n"
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "upgrade", text, ""), metav1.CreateOptions{})
	l.must(err)
	l.eventually("the plan is taken up", func() (bool, string) {
		a := l.annotationsOf("upgrade")
		return a[annotations.StatusObserved] != "", fmt.Sprint(a)
	})
	l.annotate("upgrade", map[string]string{annotations.Trigger: "t"})
	l.eventually(fmt.Sprintf("the run works while orders has %d", replicas), func() (bool, string) {
		runs, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindRun})
		l.must(err)
		if len(runs.Items) != 1 {
			return false, fmt.Sprintf("%d runs", len(runs.Items))
		}
		run = runs.Items[0].Name
		progress := runs.Items[0].Annotations[annotations.StatusProgress]
		return strings.Contains(progress, `"work"`) && l.replicas("orders") == replicas, progress + l.annotationsOf("nights")[annotations.StatusMessage]
	})
	return run
}

func (l *lab) uidOf(plan string) string {
	l.Helper()
	cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, plan, metav1.GetOptions{})
	l.must(err)
	return string(cm.UID)
}

func TestWhatSomebodyChangesWhileItSleepsIsTheirs(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.deployment("orders", 3)
	l.deployment("web", 2)
	l.sleeper("nights", workloads())
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	l.phaseOf("nights", hibernate.Hibernated, "")
	l.scaleTo("orders", 5)
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.phaseOf("nights", hibernate.Active, "")
	if l.replicas("orders") != 5 || l.replicas("web") != 2 {
		t.Errorf("orders has %d, web %d", l.replicas("orders"), l.replicas("web"))
	}
}

func TestAPlanThatIsDeletedWhileItSleepsWakesFirst(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.deployment("orders", 3)
	l.sleeper("nights", workloads())
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	l.phaseOf("nights", hibernate.Hibernated, "")
	l.must(l.admin.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, "nights", metav1.DeleteOptions{}))
	l.eventually("it is awake", func() (bool, string) { return l.replicas("orders") == 3, fmt.Sprint(l.replicas("orders")) })
	l.eventually("the restore data has served", func() (bool, string) { return l.restoreData("nights", "apps") == nil, "" })
}

func TestTwoSleepsInARowKeepWhatWasBeforeTheFirst(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.deployment("orders", 3)
	l.sleeper("nights", workloads())
	for _, state := range []string{"asleep", "awake", "asleep", "awake", "asleep"} { // without a wait between
		l.annotate("nights", map[string]string{annotations.HoldState: state})
		time.Sleep(200 * time.Millisecond)
	}
	l.phaseOf("nights", hibernate.Hibernated, "")
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.phaseOf("nights", hibernate.Active, "")
	if l.replicas("orders") != 3 {
		t.Errorf("orders has %d", l.replicas("orders"))
	}
}

func TestAPlanWithoutRightsSaysSoAndTouchesNothing(t *testing.T) {
	l := newLab(t)
	l.runner(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	l.deployment("orders", 3)
	l.sleeper("nights", workloads()+"behavior: {retries: 0}\n")
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	l.phaseOf("nights", hibernate.InError, "cannot list resource")
	if l.replicas("orders") != 3 {
		t.Errorf("orders has %d", l.replicas("orders"))
	}
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.phaseOf("nights", hibernate.Active, "")
}

func TestARecordThatSomebodyForgedWakesNothing(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.deployment("orders", 3)
	l.sleeper("nights", workloads())
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	l.phaseOf("nights", hibernate.Hibernated, "")
	name := annotations.RestoreName("nights", "apps")
	cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	cm.Data[annotations.DataRestore] = strings.Replace(cm.Data[annotations.DataRestore], `"replicas":3`, `"replicas":300`, 1)
	_, err = l.admin.CoreV1().ConfigMaps(l.ns).Update(l.ctx, cm, metav1.UpdateOptions{})
	l.must(err)
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.phaseOf("nights", hibernate.InError, "changed after the agent had signed it")
	if l.replicas("orders") != 0 {
		t.Errorf("orders has %d", l.replicas("orders"))
	}
}
