package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

func veleroBackups() foreign {
	return foreign{"velero.io", "v1", "Backup", "backups"}
}

// works are the steps that make, delete, restart, run and save. THERE is what says where, OWN
// what the objects are called by.
const works = `
- {name: make, type: apply-object, THERE properties: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: OWN-new}, data: {by: "${run.name}"}}}}
- {name: delete, type: delete-object, THERE properties: {resource: {apiVersion: v1, kind: ConfigMap, name: OWN-old}}}
- {name: restart, type: restart, THERE properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: OWN}}}
- {name: work, type: job, THERE properties: {image: example.org/none, command: [work]}}
- {name: snapshot, type: backup, THERE properties: {method: volume-snapshot, selector: {matchLabels: {of: OWN}}}}
- {name: save, type: backup, THERE properties: {method: velero, veleroNamespace: NAMESPACE}}
`

func (r *remoteLab) works(there, own string) string {
	return strings.NewReplacer("THERE", there, "OWN", own, "NAMESPACE", r.ns).Replace(works)
}

// worksOn is what the steps work on, which both clusters have.
const worksOn = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: OWN-old}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: OWN-data, labels: {of: OWN}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: OWN}, spec: {replicas: 2, selector: {matchLabels: {app: OWN}}, template: {metadata: {labels: {app: OWN}}, spec: {containers: [{name: c, image: example.org/none}]}}}}
`

// newWorks has the other cluster serve what backups are made with, and both have what the
// steps of some plans work on.
func newWorks(t *testing.T, plans ...string) (r *remoteLab, there dynamic.Interface) {
	t.Helper()
	r = newRemoteLab(t)
	there, err := dynamic.NewForConfig(elsewhere.cluster.AdminConfig())
	r.must(err)
	for _, kind := range []foreign{volumeSnapshots(), veleroBackups()} {
		r.must(harness.Apply(r.ctx, elsewhere.cluster.AdminConfig(), "", []byte(kind.definition()), nil))
		r.eventually(kind.kind+"s are served there", func() (bool, string) {
			_, err := there.Resource(kind.gvr()).Namespace(r.ns).List(r.ctx, metav1.ListOptions{})
			return err == nil, fmt.Sprint(err)
		})
	}
	for _, name := range plans {
		text := []byte(strings.ReplaceAll(worksOn, "OWN", name))
		r.must(harness.Apply(r.ctx, elsewhere.cluster.AdminConfig(), r.ns, text, nil))
		r.must(harness.Apply(r.ctx, world.cluster.AdminConfig(), r.ns, text, nil))
	}
	return r, there
}

// looks are the rights to see all that the steps work on, and does those to do it.
func looks() []rbacv1.PolicyRule {
	see := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "pods", "persistentvolumeclaims"}, Verbs: see},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: see},
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: see},
		{APIGroups: []string{"snapshot.storage.k8s.io"}, Resources: []string{"volumesnapshots"}, Verbs: see},
		{APIGroups: []string{"velero.io"}, Resources: []string{"backups"}, Verbs: see},
	}
}

func does() []rbacv1.PolicyRule {
	return append(looks(),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"batch", "snapshot.storage.k8s.io", "velero.io"}, Resources: []string{"jobs", "volumesnapshots", "backups"}, Verbs: []string{"create"}})
}

// play is what the controllers would do there: pods are replaced, Jobs end, and backups can be
// used.
func (r *remoteLab) play(there dynamic.Interface) {
	r.Helper()
	deployments, err := r.there.AppsV1().Deployments(r.ns).List(r.ctx, metav1.ListOptions{})
	r.must(err)
	for _, d := range deployments.Items {
		if n := *d.Spec.Replicas; d.Status.ObservedGeneration != d.Generation {
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpdatedReplicas: n}
			_, _ = r.there.AppsV1().Deployments(r.ns).UpdateStatus(r.ctx, &d, metav1.UpdateOptions{}) // a conflict is tried again
		}
	}
	jobs, err := r.there.BatchV1().Jobs(r.ns).List(r.ctx, metav1.ListOptions{})
	r.must(err)
	for _, j := range jobs.Items {
		if len(j.Status.Conditions) > 0 {
			continue
		}
		now := metav1.Now()
		j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1}
		for _, c := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		_, err := r.there.BatchV1().Jobs(r.ns).UpdateStatus(r.ctx, &j, metav1.UpdateOptions{})
		r.must(err)
	}
	for kind, status := range map[foreign]string{volumeSnapshots(): `{"status":{"readyToUse":true}}`, veleroBackups(): `{"status":{"phase":"Completed"}}`} {
		in := there.Resource(kind.gvr()).Namespace(r.ns)
		list, err := in.List(r.ctx, metav1.ListOptions{})
		r.must(err)
		for _, u := range list.Items {
			_, err := in.Patch(r.ctx, u.GetName(), types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
			r.must(err)
		}
	}
}

// objects are those of the namespace that steps may have touched, with their versions.
func (r *remoteLab) objects(of kubernetes.Interface) map[string]string {
	r.Helper()
	out := map[string]string{}
	maps, err := of.CoreV1().ConfigMaps(r.ns).List(r.ctx, metav1.ListOptions{LabelSelector: "!maint.dev/kind"})
	r.must(err)
	for _, o := range maps.Items {
		out["ConfigMap/"+o.Name] = o.ResourceVersion
	}
	deployments, err := of.AppsV1().Deployments(r.ns).List(r.ctx, metav1.ListOptions{})
	r.must(err)
	for _, o := range deployments.Items {
		out["Deployment/"+o.Name] = o.ResourceVersion
	}
	jobs, err := of.BatchV1().Jobs(r.ns).List(r.ctx, metav1.ListOptions{})
	r.must(err)
	for _, o := range jobs.Items {
		out["Job/"+o.Name] = o.ResourceVersion
	}
	delete(out, "ConfigMap/kube-root-ca.crt")
	return out
}

// Whatever a step makes, deletes, restarts, runs or saves by a connector, of its own or of its
// plan, is on that cluster, with the rights there; here nothing is touched, though objects have
// the same names.
func TestStepsMakeDeleteRestartRunAndSaveOnAnotherCluster(t *testing.T) {
	r, there := newWorks(t, "step", "whole")
	r.runner(readsKubeconfig()) // and nothing else here
	r.connector()
	r.secret(r.kubeconfig(r.token("maint", does()...)))
	const connector = "connectorRef: {kind: K8SCluster, name: stg}"
	here := r.objects(r.admin)
	r.plan("step", "steps:"+r.works(connector+",", "step"))
	r.plan("whole", connector+"\nsteps:"+r.works("", "whole"))
	for _, name := range []string{"step", "whole"} {
		r.seen(name)
		r.trigger(name, "1")
	}
	for _, name := range []string{"step", "whole"} {
		r.eventually(name+" ends", func() (bool, string) {
			r.play(there)
			runs := r.runs(name)
			return len(runs) == 1 && runs[0].journal.Phase.Ended() && len(runs[0].object.Finalizers) == 0, fmt.Sprint(len(runs))
		})
		end := r.succeeded(name)
		for step, object := range map[string]string{"make": "ConfigMap/" + name + "-new", "delete": "ConfigMap/" + name + "-old", "restart": "Deployment/" + name, "work": "Job/", "snapshot": "VolumeSnapshot/", "save": "Backup/"} {
			rec := recordOf(end.journal, step)
			if len(rec.Changed) != 1 || rec.Changed[0].Cluster != "stg" || !strings.HasPrefix(rec.Changed[0].Kind+"/"+rec.Changed[0].Name, object) || !strings.HasPrefix(rec.Message, "on K8SCluster stg: ") {
				t.Errorf("%s: what %s changed is %+v: %s", name, step, rec.Changed, rec.Message)
			}
		}
		r.doneThere(there, name, end)
	}
	if diff := cmp.Diff(here, r.objects(r.admin)); diff != "" {
		t.Errorf("here (-was +is):\n%s", diff)
	}
}

// doneThere checks what the steps of a plan left on the other cluster.
func (r *remoteLab) doneThere(there dynamic.Interface, name string, end runState) {
	r.Helper()
	made, err := r.there.CoreV1().ConfigMaps(r.ns).Get(r.ctx, name+"-new", metav1.GetOptions{})
	r.must(err)
	if made.Data["by"] != end.run.Name {
		r.Errorf("%s: it made %v", name, made.Data)
	}
	if _, left := r.objects(r.there)["ConfigMap/"+name+"-old"]; left {
		r.Errorf("%s: what it was to delete is there", name)
	}
	d, err := r.there.AppsV1().Deployments(r.ns).Get(r.ctx, name, metav1.GetOptions{})
	r.must(err)
	if d.Generation != 2 || len(d.Spec.Template.Annotations) != 1 {
		r.Errorf("%s: it restarted %d times: %v", name, d.Generation-1, d.Spec.Template.Annotations)
	}
	snapshots, err := there.Resource(volumeSnapshots().gvr()).Namespace(r.ns).List(r.ctx, metav1.ListOptions{LabelSelector: "maint.dev/plan=" + name})
	r.must(err)
	if len(snapshots.Items) != 1 || !strings.Contains(fmt.Sprint(snapshots.Items[0].Object["spec"]), "persistentVolumeClaimName:"+name+"-data") {
		r.Errorf("%s: its snapshots are %v", name, snapshots.Items)
	}
	backups, err := there.Resource(veleroBackups().gvr()).Namespace(r.ns).List(r.ctx, metav1.ListOptions{LabelSelector: "maint.dev/plan=" + name})
	r.must(err)
	if len(backups.Items) != 1 {
		r.Errorf("%s: its backups are %v", name, backups.Items)
	}
}

// Rights here are none there: a step fails with the right that the other cluster's account
// lacks, and nothing is done on either.
func TestAStepOnAnotherClusterNamesTheRightThatIsMissingThere(t *testing.T) {
	r, _ := newWorks(t, "bare")
	r.runner(append(does(), readsKubeconfig())...)
	r.connector()
	r.secret(r.kubeconfig(r.token("maint", looks()...)))
	lines := strings.Split(strings.TrimSpace(r.works("connectorRef: {kind: K8SCluster, name: stg},", "bare")), "\n")
	here, over := r.objects(r.admin), r.objects(r.there)
	r.plan("bare", "steps:\n- name: all\n  type: step-group\n  properties:\n    mode: parallel\n    steps:\n    "+strings.Join(lines, "\n    "))
	r.seen("bare")
	r.trigger("bare", "1")
	end := r.ended("bare", 1)[0]
	for step, right := range map[string]string{
		"make": "patch configmaps", "delete": "delete configmaps", "restart": "patch deployments.apps", "work": "create jobs.batch",
		"snapshot": "create volumesnapshots.snapshot.storage.k8s.io", "save": "create backups.velero.io",
	} {
		rec := recordOf(end.journal, "all/"+step)
		if rec.Phase != run.StepFailed || !strings.Contains(rec.Message, "on K8SCluster stg: the account of K8SCluster stg may not "+right) {
			t.Errorf("%s ended %s: %s", step, rec.Phase, rec.Message)
		}
	}
	for name, is := range map[string]bool{"here": cmp.Equal(here, r.objects(r.admin)), "there": cmp.Equal(over, r.objects(r.there))} {
		if !is {
			t.Errorf("something was changed %s", name)
		}
	}
}
