package hibernate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// A ReplicaSet that no Deployment has sleeps by itself; one of a Deployment follows it.
func TestABareReplicaSetSleepsAndWakesAsItWas(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.deployment("web", 1)
	sets, labels := l.admin.AppsV1().ReplicaSets(l.ns), map[string]string{"app": "bare"}
	_, err := sets.Create(l.ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: appsv1.ReplicaSetSpec{
		Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}}},
	}}, metav1.CreateOptions{})
	l.must(err)
	has := func(want int32) {
		l.eventually(fmt.Sprintf("the ReplicaSet has %d pods", want), func() (bool, string) {
			rs, err := sets.Get(l.ctx, "bare", metav1.GetOptions{})
			l.must(err)
			return *rs.Spec.Replicas == want && rs.Status.ReadyReplicas == want, fmt.Sprint(rs.Status)
		})
	}
	has(2)
	l.sleeper("nights", workloads())
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	l.phaseOf("nights", hibernate.Hibernated, "")
	has(0)
	var ids []string
	for _, r := range l.restoreData("nights", "apps").Resources {
		ids = append(ids, r.ID)
	}
	if got, want := strings.Join(ids, " "), "deployments.apps/"+l.ns+"/web replicasets.apps/"+l.ns+"/bare"; got != want {
		t.Errorf("recorded are %s, want %s", got, want)
	}
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.phaseOf("nights", hibernate.Active, "")
	has(2)
}

// All that a CronJob missed while it slept is one Job when it wakes.
func TestACronJobDoesNotMakeUpForTheWholeNight(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.cronJob("report")
	crons := l.admin.BatchV1().CronJobs(l.ns)
	now := time.Now().UTC()
	_, err := crons.Patch(l.ctx, "report", types.MergePatchType, []byte(fmt.Sprintf(`{"spec":{"schedule":"%d * * * *","timeZone":"Etc/UTC","concurrencyPolicy":"Allow"}}`, now.Add(-3*time.Minute).Minute())), metav1.PatchOptions{})
	l.must(err)
	l.sleeper("nights", workloads())
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	l.phaseOf("nights", hibernate.Hibernated, "")
	_, err = crons.Patch(l.ctx, "report", types.MergePatchType, []byte(fmt.Sprintf(`{"status":{"lastScheduleTime":%q}}`, now.Add(-12*time.Hour).Format(time.RFC3339))), metav1.PatchOptions{}, "status")
	l.must(err)
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.phaseOf("nights", hibernate.Active, "")
	newest := now.Add(-3 * time.Minute).Truncate(time.Minute)
	l.eventually("the CronJob is at the newest time that it missed", func() (bool, string) {
		cron, err := crons.Get(l.ctx, "report", metav1.GetOptions{})
		l.must(err)
		last := cron.Status.LastScheduleTime
		return last != nil && !last.Time.Before(newest), fmt.Sprint(last)
	})
	jobs, err := l.admin.BatchV1().Jobs(l.ns).List(l.ctx, metav1.ListOptions{})
	l.must(err)
	if len(jobs.Items) != 1 {
		t.Errorf("it made %d Jobs: %v", len(jobs.Items), names(jobs.Items))
	}
}

func names(jobs []batchv1.Job) []string {
	var out []string
	for _, j := range jobs {
		out = append(out, j.Name)
	}
	return out
}

// What failed before the agent died counts for the one that follows.
func TestFailedAttemptsAreCountedOnByTheNextAgent(t *testing.T) {
	l := newLab(t)
	l.runner(rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch"}})
	l.deployment("orders", 3)
	l.sleeper("nights", strings.Replace(workloads(), "type: workload}", "type: workload, parameters: {kinds: [Deployment]}}", 1))
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	attempts := func(n int) hibernate.Record {
		var r *hibernate.Record
		l.eventually(fmt.Sprintf("%d attempts have failed", n), func() (bool, string) {
			r = l.restoreData("nights", "apps")
			return r != nil && r.Attempts >= n, fmt.Sprintf("%+v", r)
		})
		return *r
	}
	first := attempts(1)
	world.process.Kill()
	l.must(world.launch())
	second := attempts(2)
	if first.Attempts != 1 || second.Attempts != 2 || !strings.Contains(second.Message, "forbidden") {
		t.Errorf("attempts are %d and then %d: %s", first.Attempts, second.Attempts, second.Message)
	}
	if first.NotBefore == nil || time.Now().Before(*first.NotBefore) {
		t.Errorf("the next agent does not wait until %v", first.NotBefore)
	}
	roles := l.admin.RbacV1().Roles(l.ns)
	role, err := roles.Get(l.ctx, "maint-runner", metav1.GetOptions{})
	l.must(err)
	role.Rules = sleepRights()
	_, err = roles.Update(l.ctx, role, metav1.UpdateOptions{})
	l.must(err)
	l.annotate("nights", map[string]string{annotations.Trigger: "again"})
	l.phaseOf("nights", hibernate.Hibernated, "")
}

func TestARunHasAPlanAwakeWhileItWorks(t *testing.T) {
	l := newLab(t)
	l.runner(append(sleepRights(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "patch"}})...)
	l.deployment("orders", 3)
	now := time.Now().UTC()
	l.sleeper("nights", fmt.Sprintf("schedule: {offHours: [{start: %q, end: %q}]}\ntargets: [{name: apps, type: workload}]\n", now.Add(-2*time.Minute).Format("15:04"), now.Add(time.Hour).Format("15:04")))
	l.phaseOf("nights", hibernate.Hibernated, "")
	run := l.worksDuring("wake", 3)
	l.phaseOf("nights", hibernate.Active, "")
	l.annotate("upgrade", map[string]string{annotations.Resume: run})
	l.phaseOf("nights", hibernate.Hibernated, "")
	if got := l.annotationsOf("nights")[annotations.HoldState]; got != "" || l.replicas("orders") != 0 {
		t.Errorf("the run has ended: held %q, orders has %d", got, l.replicas("orders"))
	}
}

// Somebody mends with the built plugin what a workload wakes to, and the agent takes it.
func TestRestoreDataIsEditedByTheBuiltPlugin(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.deployment("orders", 3)
	l.sleeper("nights", workloads())
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	l.phaseOf("nights", hibernate.Hibernated, "")
	editor := filepath.Join(t.TempDir(), "editor")
	l.must(os.WriteFile(editor, []byte("#!/bin/sh\nexec sed -i -e 's/replicas: 3/replicas: 2/' -e 's/\"replicas\":3/\"replicas\":2/' \"$1\"\n"), 0o700))
	t.Setenv("EDITOR", editor)
	t.Setenv("KUBE_EDITOR", editor)
	admin, err := world.cluster.KubeconfigFile("admin", world.cluster.AdminConfig())
	l.must(err)
	code, out, err := harness.Plugin(l.ctx, world.plugin, admin, "restore", "edit", "nights", "apps", "-n", l.ns)
	l.must(err)
	if want := "configmap/" + annotations.RestoreName("nights", "apps") + " edited: deployments.apps/" + l.ns + "/orders"; code != 0 || !strings.Contains(out, want) {
		t.Fatalf("exit code %d, %q, want %q", code, out, want)
	}
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.phaseOf("nights", hibernate.Active, "")
	l.eventually("it wakes to what was edited", func() (bool, string) { return l.replicas("orders") == 2, fmt.Sprint(l.replicas("orders")) })
}

// Restore data that somebody makes immutable cannot be written on: it is written anew, and what
// sleeps by it wakes.
func TestWhatSleepsByImmutableRestoreDataWakes(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.deployment("web", 2)
	l.sleeper("nights", workloads())
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	l.phaseOf("nights", hibernate.Hibernated, "")
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, annotations.RestoreName("nights", "apps"), types.MergePatchType, []byte(`{"immutable":true}`), metav1.PatchOptions{})
	l.must(err)
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.phaseOf("nights", hibernate.Active, "")
	if n := l.replicas("web"); n != 2 {
		t.Errorf("web has %d replicas", n)
	}
	l.eventually("its restore data is gone", func() (bool, string) { return l.restoreData("nights", "apps") == nil, "" })
}
