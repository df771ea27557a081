package nodes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// daemonSet runs one pod on each node of a pool.
func (l *lab) daemonSet(name, pool string) {
	l.Helper()
	labels := map[string]string{"app": name}
	_, err := l.admin.AppsV1().DaemonSets(l.ns).Create(l.ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{NodeSelector: map[string]string{"pool": pool}, Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}},
		}},
	}, metav1.CreateOptions{})
	l.must(err)
	l.eventually("the DaemonSet's pod is there", func() (bool, string) {
		d, err := l.admin.AppsV1().DaemonSets(l.ns).Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		return d.Status.NumberReady > 0, fmt.Sprint(d.Status.NumberReady)
	})
}

// claim makes a PersistentVolume and the claim that it is bound to.
func (l *lab) claim(name string) {
	l.Helper()
	size, class := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, ""
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: l.ns},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:               &corev1.ObjectReference{Namespace: l.ns, Name: name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
		},
	}
	_, err := l.admin.CoreV1().PersistentVolumes().Create(l.ctx, volume, metav1.CreateOptions{})
	l.must(err)
	_, err = l.admin.CoreV1().PersistentVolumeClaims(l.ns).Create(l.ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, VolumeName: l.ns, AccessModes: volume.Spec.AccessModes, Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	l.must(err)
}

func TestADrainPastItsTimeDeletesWhatItMayAndLeavesDaemonSets(t *testing.T) {
	l := newLab(t, unlimited)
	l.label("node-4", "pool", "four")
	l.daemonSet("logs", "four")
	l.claim("data")
	l.deployment("stuck", 2, only("four"))
	l.deployment("mover", 1, only("four"), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})
	l.budget("stuck", intstr.FromInt32(0))
	l.request("node-4", "os", `{"drain":{"timeout":"2s","onTimeout":"force","waitForVolumes":true}}`)
	l.phase("node-4", "os", nodes.Ready)
	if left := l.podsOn("node-4"); len(left) != 1 {
		t.Errorf("the DaemonSet's pod alone should be left: %v", left)
	}
}

func TestASurgeBringsTheReplacementFirst(t *testing.T) {
	l := newLab(t, unlimited)
	_, err := l.admin.RbacV1().ClusterRoleBindings().Create(l.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "maint-surge"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "maint-surge"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "maint-agent", Namespace: annotations.DefaultNamespace}},
	}, metav1.CreateOptions{})
	l.must(err)
	t.Cleanup(func() { _ = l.admin.RbacV1().ClusterRoleBindings().Delete(l.ctx, "maint-surge", deleteNow()) })
	l.pool("two", "node-10", "node-11")
	l.deployment("single", 1, only("two"), func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{annotations.DrainHow: "surge"}
	})
	from := "node-10"
	if len(l.podsOn(from)) == 0 {
		from = "node-11"
	}
	one := intstr.FromInt32(1)
	_, err = l.admin.PolicyV1().PodDisruptionBudgets(l.ns).Create(l.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "single"}, // it never lets the only pod go; with a second it does
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "single"}}},
	}, metav1.CreateOptions{})
	l.must(err)
	l.request(from, "os", "{}")
	l.phase(from, "os", nodes.Ready)
	var d *appsv1.Deployment
	l.eventually("the replicas are as they were", func() (bool, string) {
		d, err = l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, "single", metav1.GetOptions{})
		l.must(err)
		return *d.Spec.Replicas == 1, fmt.Sprint(*d.Spec.Replicas)
	})
	if len(d.Annotations[annotations.StatusPrefix+"surge"]) > 0 {
		t.Errorf("this was left behind: %v", d.Annotations)
	}
}

// The account may not evict. The step says so at once and fails after half a minute;
// an account that is given the right in that time goes on.
func TestADrainWhoseAccountMayNotEvictFailsUnlessTheRightComesInTime(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	roles := l.admin.RbacV1().ClusterRoles()
	role, err := roles.Get(l.ctx, "roller-"+l.ns, metav1.GetOptions{})
	l.must(err)
	all := role.Rules
	role.Rules = slices.DeleteFunc(slices.Clone(all), func(r rbacv1.PolicyRule) bool { return r.Resources[0] == "pods/eviction" })
	role, err = roles.Update(l.ctx, role, metav1.UpdateOptions{})
	l.must(err)
	l.pool("lone", "node-2")
	l.deployment("web", 1, only("lone"))
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: drain, type: drain, properties: {node: node-2}}\n  - {name: uncordon, type: uncordon, properties: {node: node-2}}\n"
	_, err = l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "late", text, ""), metav1.CreateOptions{})
	l.must(err)
	l.trigger("late", "one")
	l.within(90, "the run fails", func() (bool, string) {
		all := l.journals("late")
		return len(all) == 1 && all[0].Phase.Ended(), fmt.Sprintf("%+v", all)
	})
	j := l.ends("late", 1)
	if end := j.End; j.Phase != run.Failed || end == nil || !strings.Contains(fmt.Sprint(end), "create pods/eviction") {
		t.Errorf("the run ended %s: %+v", j.Phase, end)
	}
	if took := j.FinishedAt.Sub(*j.StartedAt); took < workflow.RefusalTimeout || took > 90*time.Second {
		t.Errorf("it failed after %s", took)
	}
	l.trigger("late", "two")
	l.eventually("what is missing is said", func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "late", metav1.GetOptions{})
		l.must(err)
		return strings.Contains(cm.Annotations[annotations.StatusMessage], "create pods/eviction") && cm.Annotations[annotations.StatusPhase] == string(trigger.PhaseRunning), fmt.Sprint(cm.Annotations)
	})
	role.Rules = all
	_, err = roles.Update(l.ctx, role, metav1.UpdateOptions{})
	l.must(err)
	if j := l.ends("late", 2); j.Phase != run.Succeeded {
		t.Errorf("the second run ended %s: %+v", j.Phase, j.End)
	}
}
