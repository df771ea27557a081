package admission_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Flux applies as a cluster-admin, or as an account of the tenant's that is bound to
// edit. It compares a dry run with what stands there: any difference is drift.
func TestFluxAppliesPlansAndSeesNoDrift(t *testing.T) {
	l := newLab(t)
	for name, who := range map[string]person{"as cluster-admin": account("flux-system", "kustomize-controller"), "as an account bound to edit": account(l.ns, "flux")} {
		t.Run(name, func(t *testing.T) {
			l := &lab{T: t, ctx: l.ctx, ns: l.ns}
			k := world.as(who)
			flux := func(cm *corev1.ConfigMap, dryRun ...string) metav1.Object {
				t.Helper()
				got, err := apply(l, k, "kustomize-controller", cm, dryRun)
				l.must(err)
				return got
			}
			inGit := document(annotations.KindPlan, "from-git", labelled("kustomize.toolkit.fluxcd.io/name", "apps"), annotated("maint.dev/pause", "true", "maint.dev/change-policy", "weekends"))
			flux(inGit)
			l.agentSays("from-git", annotations.StatusPhase, "Paused")
			before := l.get("from-git")
			l.same(before, flux(inGit, metav1.DryRunAll))
			l.same(before, flux(inGit))
			if who := before.Annotations["actor.maint.dev/pause"]; who == "" {
				t.Error("nobody stands behind the pause")
			}

			delete(inGit.Annotations, "maint.dev/pause")
			inGit.Data["plan.yaml"] += "# edited\n"
			flux(inGit)
			after := l.get("from-git")
			want := map[string]string{"maint.dev/change-policy": "weekends", "actor.maint.dev/change-policy": who.name, "actor.maint.dev/change-strategy": who.name, annotations.StatusPhase: "Paused"}
			if diff := cmp.Diff(want, after.Annotations); diff != "" {
				t.Errorf("the pause goes with its actor, and the status stays (-want +got):\n%s", diff)
			}
			l.same(after, flux(inGit, metav1.DryRunAll))
			l.must(k.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, "from-git", metav1.DeleteOptions{})) // prune
		})
	}
}

// Argo CD applies as kubectl does, by a patch of three ways, or replaces where it is
// told to. It compares what is in Git with the same fields of what stands there.
func TestArgoCDSyncsPlans(t *testing.T) {
	l := newLab(t)
	k := world.as(account("argocd", "argocd-application-controller"))
	inGit := document(annotations.KindPlan, "from-git", annotated("argocd.argoproj.io/tracking-id", "shop:/ConfigMap:shop/from-git", "maint.dev/pause", "true"), labelled("app.kubernetes.io/instance", "shop"))
	_, err := k.CoreV1().ConfigMaps(l.ns).Create(l.ctx, lastApplied(l, inGit), metav1.CreateOptions{})
	l.must(err)
	l.agentSays("from-git", annotations.StatusPhase, "Paused")
	l.clientSide(k, inGit)

	delete(inGit.Annotations, "maint.dev/pause")
	inGit.Annotations["argocd.argoproj.io/tracking-id"] = "shop2:/ConfigMap:shop/from-git"
	inGit.Data["plan.yaml"] += "# edited\n"
	l.clientSide(k, inGit)
	got := l.get("from-git")
	if _, paused := got.Annotations["maint.dev/pause"]; paused || got.Data["plan.yaml"] != inGit.Data["plan.yaml"] || got.Annotations[annotations.StatusPhase] != "Paused" {
		t.Errorf("after a sync stands %v %v", got.Annotations, got.Data)
	}

	replaced, err := k.CoreV1().ConfigMaps(l.ns).Update(l.ctx, lastApplied(l, inGit), metav1.UpdateOptions{})
	l.must(err)
	if _, there := replaced.Annotations[annotations.StatusPhase]; there {
		t.Error("a replace keeps a status that is not in Git: this test shows nothing")
	}
	l.must(k.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, "from-git", metav1.DeleteOptions{}))
}

const lastAppliedKey = "kubectl.kubernetes.io/last-applied-configuration"

// lastApplied is what client-side apply creates.
func lastApplied(l *lab, cm *corev1.ConfigMap) *corev1.ConfigMap {
	l.Helper()
	cm = cm.DeepCopy()
	b, err := json.Marshal(cm)
	l.must(err)
	cm.Annotations[lastAppliedKey] = string(b)
	return cm
}

// clientSide is a patch of three ways, of what was applied, what shall be, and what is.
func (l *lab) clientSide(k kubernetes.Interface, cm *corev1.ConfigMap) {
	l.Helper()
	live := l.get(cm.Name)
	current, err := json.Marshal(live)
	l.must(err)
	modified, err := json.Marshal(lastApplied(l, cm))
	l.must(err)
	meta, err := strategicpatch.NewPatchMetaFromStruct(corev1.ConfigMap{})
	l.must(err)
	patch, err := strategicpatch.CreateThreeWayMergePatch([]byte(live.Annotations[lastAppliedKey]), modified, current, meta, true)
	l.must(err)
	_, err = k.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, cm.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "argocd-controller"})
	l.must(err)
}

// agentSays has the agent write a status.
func (l *lab) agentSays(name string, pairs ...string) {
	l.Helper()
	_, err := world.as(agent()).CoreV1().ConfigMaps(l.ns).Patch(l.ctx, name, types.MergePatchType, []byte(annotationPatch(pairs)), metav1.PatchOptions{FieldManager: annotations.ManagerAgent})
	l.must(err)
}

func (l *lab) get(name string) *corev1.ConfigMap {
	l.Helper()
	cm, err := world.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return cm
}

// same says that nothing was written, and nothing would be.
func (l *lab) same(before *corev1.ConfigMap, after metav1.Object) {
	l.Helper()
	cm, _ := after.(*corev1.ConfigMap)
	if diff := cmp.Diff(before.Annotations, cm.Annotations); diff != "" || before.ResourceVersion != cm.ResourceVersion {
		l.Errorf("drift: version %s, then %s; annotations (-before +after):\n%s", before.ResourceVersion, cm.ResourceVersion, diff)
	}
}

// Deleting a plan takes its history along, or lets it be, however it is asked for.
func TestTheGarbageCollectorGoesOn(t *testing.T) {
	for name, want := range map[metav1.DeletionPropagation]bool{metav1.DeletePropagationBackground: false, metav1.DeletePropagationForeground: false, metav1.DeletePropagationOrphan: true} {
		t.Run(string(name), func(t *testing.T) {
			l := newLab(t)
			orders := l.given(document(annotations.KindPlan, "orders"))
			l.given(document(annotations.KindLedger, ledgerOf, labelled(annotations.LabelPlan, "orders"), owned("orders", orders.UID)))
			l.must(world.as(editor()).CoreV1().ConfigMaps(l.ns).Delete(l.ctx, "orders", metav1.DeleteOptions{PropagationPolicy: &name}))
			l.must(eventuallyErr(l.ctx, func() error { return l.gone("orders") }))
			l.must(eventuallyErr(l.ctx, func() error {
				cm, err := world.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, ledgerOf, metav1.GetOptions{})
				switch {
				case want && err == nil && len(cm.OwnerReferences) == 0, !want && apierrors.IsNotFound(err):
					return nil
				}
				return fmt.Errorf("the ledger: %v, owners %v", err, cm.OwnerReferences)
			}))
		})
	}
}

func (l *lab) gone(name string) error {
	_, err := world.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s is there (%v)", name, err)
}

// A namespace with documents and records of all kinds is deleted.
func TestANamespaceIsDeletedWithAllThatIsOurs(t *testing.T) {
	l := newLab(t)
	orders := l.given(document(annotations.KindPlan, "orders", annotated("maint.dev/pause", "true", annotations.StatusPhase, "Paused")))
	of := labelled(annotations.LabelPlan, "orders")
	l.given(document(annotations.KindRun, endedRun, of, owned("orders", orders.UID)))
	l.given(document(annotations.KindLedger, ledgerOf, of, owned("orders", orders.UID)))
	l.given(document(annotations.KindGate, gateOf))
	l.must(world.admin.CoreV1().Namespaces().Delete(l.ctx, l.ns, metav1.DeleteOptions{}))
	l.must(eventuallyErr(l.ctx, func() error {
		_, err := world.admin.CoreV1().Namespaces().Get(l.ctx, l.ns, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace is there (%v)", err)
	}))
}

const nightsText = `apiVersion: maint.dev/v1alpha1
kind: HibernatePlan
spec:
  schedule: {timezone: UTC, offHours: [{start: "03:00", end: "03:01", daysOfWeek: [MON]}]}
  targets: [{name: jobs, type: workload, parameters: {kinds: [CronJob]}}]
`

// So is one in which the agent is at work: a run lives, and a HibernatePlan sleeps. Both have
// finalizers, which the agent takes off; what slept is kept with the agent.
func TestANamespaceIsDeletedInWhichTheAgentIsAtWork(t *testing.T) {
	w := newTown(t)
	w.role(account(w.ns, "maint-runner"), rule("batch", "cronjobs", nil, "get", "list", "watch", "patch"))
	w.must(world.may(w.ctx, account(w.ns, "maint-runner"), w.ns, "patch", "batch", "cronjobs", "report"))
	w.writes(plain("app"), strings.Replace(storyText, "  requiresApproval: true\n", "", 1))
	w.takesUp()
	w.does(editor(), "trigger", "orders")
	live := w.new(nil)
	w.holds(live)
	w.sleeps()
	restore := annotations.RestoreName("nights", "jobs")
	for name, finalizer := range map[string]string{live: annotations.Finalizer, restore: annotations.RestoreFinalizer} {
		if got := w.get(name).Finalizers; !slices.Contains(got, finalizer) {
			t.Fatalf("%s has finalizers %v: this test shows nothing", name, got)
		}
	}
	copied := restoreCopies(w)
	w.namespaceGoes()
	if got := restoreCopies(w); got != copied+1 {
		t.Errorf("the agent's namespace has %d ConfigMaps of what slept, and had %d before", got, copied)
	}
}

// sleeps gives the namespace a CronJob, and a HibernatePlan by which it sleeps.
func (w *town) sleeps() {
	w.Helper()
	w.nights(nil)
	_, err := world.as(nsAdmin()).CoreV1().ConfigMaps(w.ns).Patch(w.ctx, "nights", types.MergePatchType, []byte(annotationPatch([]string{annotations.HoldState, "asleep"})), metav1.PatchOptions{})
	w.must(err)
	w.until("it sleeps", func() error {
		if said := w.get("nights").Annotations; said[annotations.StatusPhase] != string(hibernate.Hibernated) {
			return fmt.Errorf("%v", said)
		}
		return nil
	})
}

// nights gives the namespace a CronJob, and a HibernatePlan for it.
func (w *town) nights(labels map[string]string) {
	w.Helper()
	job := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "report", Labels: labels}, Spec: batchv1.CronJobSpec{Schedule: "0 3 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "example.org/c:1"}}}},
	}}}}
	_, err := world.admin.BatchV1().CronJobs(w.ns).Create(w.ctx, job, metav1.CreateOptions{})
	w.must(err)
	_, err = world.as(editor()).CoreV1().ConfigMaps(w.ns).Create(w.ctx, annotations.NewHibernatePlan(w.ns, "nights", nightsText, ""), metav1.CreateOptions{})
	w.must(err)
}

// restoreCopies counts the restore data in the agent's own namespace.
func restoreCopies(w *town) int {
	w.Helper()
	list, err := world.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).List(w.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindRestore})
	w.must(err)
	return len(list.Items)
}
