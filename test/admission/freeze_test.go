package admission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// deployment makes one, without a controller that would run it.
func (l *lab) deployment(name string, labels map[string]string) {
	l.Helper()
	app := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: app},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/c:1"}}}},
	}}
	_, err := world.admin.AppsV1().Deployments(l.ns).Create(l.ctx, d, metav1.CreateOptions{})
	l.must(err)
}

// publish has the namespace say what is frozen, as the agent does, and waits until the
// API server's own view of the namespace is as new.
func (l *lab) publish(text string) {
	l.Helper()
	l.deploymentOnce("probe")
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotations.StatusFrozen: text + ",deployments.apps/probe=frozen"}}})
	l.must(err)
	_, err = world.as(withMasters(agent())).CoreV1().Namespaces().Patch(l.ctx, l.ns, types.MergePatchType, body, metav1.PatchOptions{})
	l.must(err)
	l.must(eventuallyErr(l.ctx, func() error {
		if _, err := patchesDeployment("probe", `{"spec":{"replicas":7}}`)(l, world.as(admin())); err == nil {
			return fmt.Errorf("the namespace is not seen to say %s", text)
		}
		return nil
	}))
}

func (l *lab) deploymentOnce(name string) {
	l.Helper()
	if _, err := world.admin.AppsV1().Deployments(l.ns).Get(l.ctx, name, metav1.GetOptions{}); err != nil {
		l.deployment(name, nil)
	}
}

func patchesDeployment(name, body string, sub ...string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return k.AppsV1().Deployments(l.ns).Patch(l.ctx, name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, sub...)
	}
}

// forges changes a Deployment by an update that says of its fields that they were set at
// an instant of the asker's choice.
func forges(name string, at time.Time) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		d, err := k.AppsV1().Deployments(l.ns).Get(l.ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		d.Spec.Replicas = new(int32(9))
		for i := range d.ManagedFields {
			d.ManagedFields[i].Time = &metav1.Time{Time: at}
		}
		return k.AppsV1().Deployments(l.ns).Update(l.ctx, d, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	}
}

// autoscalerOf is a HorizontalPodAutoscaler that scales something up.
func autoscalerOf(name, kind, target string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: kind, Name: target}, MinReplicas: new(int32(9)), MaxReplicas: 9,
	}}
}

func (l *lab) autoscaler(name, kind, target string) {
	l.Helper()
	_, err := world.admin.AutoscalingV2().HorizontalPodAutoscalers(l.ns).Create(l.ctx, autoscalerOf(name, kind, target), metav1.CreateOptions{})
	l.must(err)
}

func autoscales(kind, target string) request { return autoscalesIn("apps/v1", kind, target) }

// autoscalesIn is autoscales for a kind of another group or version.
func autoscalesIn(version, kind, target string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		scaler := autoscalerOf("new", kind, target)
		scaler.Spec.ScaleTargetRef.APIVersion = version
		return k.AutoscalingV2().HorizontalPodAutoscalers(l.ns).Create(l.ctx, scaler, metav1.CreateOptions{DryRun: dry})
	}
}

// turnsAutoscaler has the autoscaler that is there scale something else.
func turnsAutoscaler(target string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		body := fmt.Sprintf(`{"spec":{"scaleTargetRef":{"name":%q}}}`, target)
		return k.AutoscalingV1().HorizontalPodAutoscalers(l.ns).Patch(l.ctx, "scaler", types.MergePatchType, []byte(body), metav1.PatchOptions{DryRun: dry})
	}
}

func (l *lab) statefulSet(name string, labels map[string]string) {
	l.Helper()
	app := map[string]string{"app": name}
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: app},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/c:1"}}}},
	}}
	_, err := world.admin.AppsV1().StatefulSets(l.ns).Create(l.ctx, s, metav1.CreateOptions{})
	l.must(err)
}

// patchesSet patches the status of a StatefulSet.
func patchesSet(name, body string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return k.AppsV1().StatefulSets(l.ns).Patch(l.ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{DryRun: dry}, "status")
	}
}

func scales(name string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		to := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.ns}, Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
		return k.AppsV1().Deployments(l.ns).UpdateScale(l.ctx, name, to, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	}
}

func deletesDeployment(name string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return nil, k.AppsV1().Deployments(l.ns).Delete(l.ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	}
}

func deletesAllDeployments() request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return nil, k.AppsV1().Deployments(l.ns).DeleteCollection(l.ctx, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{LabelSelector: annotations.LabelFreeze})
	}
}

// What the agent has published on the namespace is frozen for everybody but runs and the
// cluster's own controllers.
func TestFrozenObjectsAreNotChanged(t *testing.T) {
	l := newLab(t)
	label := map[string]string{annotations.LabelFreeze: "year-end"}
	for _, name := range []string{"web", "api", "late", "held", "free"} {
		l.deployment(name, label)
	}
	l.statefulSet("db", label)
	l.statefulSet("target", nil)
	l.autoscaler("scaler", "Deployment", "free")
	settings := l.given(plain("settings", labelled(annotations.LabelFreeze, "year-end")))
	l.deployment("pet", label)
	owner := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"settings","uid":%q,"blockOwnerDeletion":true}]}}`, settings.UID)
	_, err := world.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, "pet", types.StrategicMergePatchType, []byte(owner), metav1.PatchOptions{})
	l.must(err)
	l.bind("edit", editor())
	hour, past := time.Now().UTC().Add(time.Hour).Format(time.RFC3339), time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)
	l.publish("deployments.apps/web=frozen,deployments.apps/api=open/" + hour + ",deployments.apps/late=open/" + past +
		",deployments.apps/held=run/maint-run-orders-aaaaaaaaaa,configmaps/settings=frozen,statefulsets.apps/db=frozen,deployments.apps/pet=frozen,rollouts.argoproj.io/web=frozen,proxies.example.org/web=frozen,statefulsets.apps/target=run/maint-run-orders-aaaaaaaaaa")
	const frozen = "is frozen by the policy of its label"
	const owned = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"mine","uid":"11111111-1111-1111-1111-111111111111"}]}}`
	const rollback = `{"metadata":{"annotations":{"deprecated.deployment.rollback.to":"1"}}}`
	const scaled, annotated, unlabelled = `{"spec":{"replicas":3}}`, `{"metadata":{"annotations":{"a":"b"}}}`, `{"metadata":{"labels":{"maint.dev/freeze":null}}}`
	run, other := runOf(l.ns), runOf(l.ns)
	other.extra = map[string][]string{"maint.dev/run": {"maint-run-other-aaaaaaaaaa"}}
	run.extra = map[string][]string{"maint.dev/run": {"maint-run-orders-aaaaaaaaaa"}}
	stranger := account("elsewhere", "maint-runner")
	stranger.extra = run.extra
	controller := account("kube-system", "deployment-controller")

	l.table([]row{
		{name: "an editor does not change it", who: editor(), asks: patchesDeployment("web", scaled), denied: frozen},
		{name: "nor an admin of the cluster", who: admin(), asks: patchesDeployment("web", scaled), denied: frozen},
		{name: "nor scales it", who: admin(), asks: scales("web"), denied: frozen},
		{name: "nor by a patch", who: admin(), asks: patchesDeployment("web", scaled, "scale"), denied: frozen},
		{name: "nor deletes it", who: admin(), asks: deletesDeployment("web"), denied: frozen},
		{name: "nor all of them", who: admin(), asks: deletesAllDeployments(), denied: "maint-freeze"},
		{name: "nor takes its label off", who: admin(), asks: patchesDeployment("web", unlabelled), denied: frozen},
		{name: "nor another thing of kube-system", who: withMasters(account("kube-system", "helm-controller")), asks: patchesDeployment("web", scaled), denied: frozen},
		{name: "nor the data of a ConfigMap", who: admin(), asks: patches("settings", `{"data":{"x":"y"}}`), denied: frozen},
		{name: "nor gives it an owner that takes it along", who: editor(), asks: patchesDeployment("web", owned), denied: frozen},
		{name: "nor has the cluster roll it back", who: editor(), asks: patchesDeployment("web", rollback), denied: frozen},
		{name: "while its status does not take that", who: admin(), asks: patchesDeployment("web", rollback, "status"), stored: map[string]string{"deprecated.deployment.rollback.to": ""}},
		{name: "nor rolls a run's target back", who: admin(), asks: patchesDeployment("held", rollback), denied: "nobody but the run"},
		{name: "one that is open is rolled back", who: editor(), asks: patchesDeployment("api", rollback)},
		{name: "nor has the cluster scale it, by an autoscaler", who: editor(), asks: autoscales("Deployment", "web"), denied: frozen},
		{name: "nor by one that names the kind in lower case", who: editor(), asks: autoscales("deployment", "web"), denied: frozen},
		{name: "nor by one that names another version", who: editor(), asks: autoscalesIn("apps/v1beta2", "deployment", "web"), denied: frozen},
		{name: "nor a kind that was added to what can be frozen", who: editor(), asks: autoscalesIn("argoproj.io/v1alpha1", "Rollout", "web"), denied: frozen},
		{name: "nor one whose plural is not known", who: editor(), asks: autoscalesIn("example.org/v1", "Proxy", "web"), denied: frozen},
		{name: "nor by one that is there", who: admin(), asks: turnsAutoscaler("web"), denied: frozen},
		{name: "nor has a run's target scaled", who: admin(), asks: autoscales("Deployment", "held"), denied: "nobody but the run"},
		{name: "nor that of a kind in lower case", who: admin(), asks: autoscales("deployment", "held"), denied: "nobody but the run"},
		{name: "an autoscaler of something else is created", who: editor(), asks: autoscales("Deployment", "free")},
		{name: "so is one of another kind by that name", who: editor(), asks: autoscales("StatefulSet", "web")},
		{name: "so is one of another group", who: editor(), asks: autoscalesIn("example.com/v1", "Deployment", "web")},
		{name: "a run creates one", who: withMasters(run), asks: autoscales("Deployment", "web")},
		{name: "nor takes its label off by its status", who: admin(), asks: patchesSet("db", `{"metadata":{"labels":{"maint.dev/freeze":null}}}`), denied: "maint-freeze-status"},
		{name: "nor gives it an owner there", who: admin(), asks: patchesSet("db", owned), denied: "maint-freeze-status"},
		{name: "nor gives a run's target one there", who: admin(), asks: patchesSet("target", owned), denied: "nobody but the run maint-run-orders-aaaaaaaaaa"},
		{name: "nor does another run", who: withMasters(other), asks: patchesSet("target", owned), denied: "nobody but the run"},
		{name: "the run itself does", who: withMasters(run), asks: patchesSet("target", owned)},
		{name: "a controller says how it is", who: admin(), asks: patchesSet("db", `{"status":{"replicas":1}}`)},
		{name: "and how a run's target is", who: admin(), asks: patchesSet("target", `{"status":{"replicas":1}}`)},
		{name: "an annotation is no change", who: admin(), asks: patchesDeployment("web", annotated)},
		{name: "the cluster's own controllers go on", who: withMasters(controller), asks: patchesDeployment("web", scaled)},
		{name: "but have it owned by nobody", who: withMasters(controller), asks: patchesDeployment("web", owned), denied: frozen},
		{name: "nor by one more", who: withMasters(controller), asks: patchesDeployment("pet", owned), denied: frozen},
		{name: "nor when they ask as one", who: withMasters(person{name: "system:kube-controller-manager"}), asks: patchesDeployment("web", owned), denied: frozen},
		{name: "nor have a run's target owned", who: withMasters(controller), asks: patchesDeployment("held", owned), denied: "nobody but the run"},
		{name: "while they have what is open owned", who: withMasters(controller), asks: patchesDeployment("api", owned)},
		{name: "they change what is owned", who: withMasters(controller), asks: patchesDeployment("pet", scaled)},
		{name: "and say that it holds its owner up no more", who: withMasters(controller), asks: patchesDeployment("pet", strings.ReplaceAll(owner, "true", "false"))},
		{name: "and take the owner off", who: withMasters(controller), asks: patchesDeployment("pet", `{"metadata":{"ownerReferences":null}}`)},
		{name: "a run's step passes", who: withMasters(run), asks: patchesDeployment("web", scaled)},
		{name: "and scales", who: withMasters(run), asks: scales("web")},
		{name: "its account by itself does not", who: withMasters(account(l.ns, "maint-runner")), asks: patchesDeployment("web", scaled), denied: frozen},

		{name: "while the policy permits it is changed", who: editor(), asks: patchesDeployment("api", scaled)},
		{name: "and scaled", who: editor(), asks: scales("api")},
		{name: "and deleted", who: editor(), asks: deletesDeployment("api")},
		{name: "from the end of that on it is not, though nobody says so", who: editor(), asks: patchesDeployment("late", scaled), denied: frozen},
		{name: "of a scale nobody knows the time: the agent's word holds", who: editor(), asks: scales("late")},
		{name: "nor of a deletion", who: editor(), asks: deletesDeployment("late")},
		{name: "an instant that the asker makes up is not believed", who: admin(), asks: forges("late", time.Now().Add(-2*time.Hour)), denied: frozen},

		{name: "a run's target is not changed", who: admin(), asks: patchesDeployment("held", scaled), denied: "nobody but the run maint-run-orders-aaaaaaaaaa"},
		{name: "nor by another run", who: withMasters(other), asks: patchesDeployment("held", scaled), denied: "nobody but the run"},
		{name: "nor by one of its name from elsewhere", who: withMasters(stranger), asks: patchesDeployment("held", scaled), denied: "nobody but the run"},
		{name: "it changes it itself", who: withMasters(run), asks: patchesDeployment("held", scaled)},

		{name: "what the agent says nothing of is open", who: editor(), asks: patchesDeployment("free", scaled)},
	})
}

// Bindings that were deleted and are created again enforce what the agent says then: a freeze,
// and its end.
func TestAFreezeFollowsAfterItsBindingsAreMadeAnew(t *testing.T) {
	l := newLab(t)
	l.deployment("web", map[string]string{annotations.LabelFreeze: "year-end"})
	l.bind("edit", editor())
	l.publish("deployments.apps/web=frozen")
	const frozen = "is frozen by the policy of its label"
	change := func() error {
		_, err := patchesDeployment("web", `{"spec":{"replicas":3}}`)(l, world.as(editor()))
		return err
	}
	refused := func() error {
		if err := change(); err == nil || !strings.Contains(err.Error(), frozen) {
			return fmt.Errorf("a change of what is frozen: %v", err)
		}
		return nil
	}
	l.must(eventuallyErr(l.ctx, refused))
	found, err := readBindings(l.ctx, world.admin)
	l.must(err)
	all := func(string) bool { return true }
	l.Cleanup(func() { // also where the test ends early: others are about freezes, too
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := found.keep(ctx, all); err != nil {
			l.Fatal(err)
		}
	})
	l.must(found.keep(l.ctx, func(policy string) bool { return !strings.HasPrefix(policy, "maint-freeze") }))
	l.must(eventuallyErr(l.ctx, change))
	l.must(found.keep(l.ctx, all))
	l.must(eventuallyErr(l.ctx, refused))
	l.publish("deployments.apps/web=open")
	l.must(eventuallyErr(l.ctx, change))
}

const freezingPlan = `
apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  target: {apiVersion: v1, kind: ConfigMap, name: app}
  freezeTarget: true
  steps:
  - {name: mark, type: annotate, properties: {operation: add, annotations: {example.org/marked: "yes"}}}
  - {name: hold, type: suspend}
`

// policyDocument is a policy year-end that permits change.
func policyDocument(ns string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "year-end", Namespace: ns, Labels: map[string]string{annotations.LabelKind: annotations.KindPolicy}},
		Data:       map[string]string{"policy.yaml": "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: Permissive}\n"},
	}
}

func TestLabelledObjectsThatThereIsNoRoomForAreFrozen(t *testing.T) {
	l := newLab(t)
	l.deployment("web", map[string]string{annotations.LabelFreeze: "year-end"})
	l.deployment("api", map[string]string{annotations.LabelFreeze: "year-end"})
	l.deployment("free", nil)
	l.autoscaler("scaler", "Deployment", "api")
	l.bind("edit", editor())
	l.publish("*=full,deployments.apps/api=open")
	const frozen, scaled = "is frozen by the policy of its label", `{"spec":{"replicas":3}}`
	l.table([]row{
		{name: "one that is not named is not changed", who: editor(), asks: patchesDeployment("web", scaled), denied: frozen},
		{name: "nor scaled", who: editor(), asks: scales("web"), denied: frozen},
		{name: "nor deleted", who: editor(), asks: deletesDeployment("web"), denied: frozen},
		{name: "nor scaled by an autoscaler", who: editor(), asks: autoscales("Deployment", "web"), denied: frozen},
		{name: "nor by one that is there", who: editor(), asks: turnsAutoscaler("web"), denied: frozen},
		{name: "one that is named is as it is named", who: editor(), asks: patchesDeployment("api", scaled)},
		{name: "and is scaled by an autoscaler", who: editor(), asks: autoscales("Deployment", "api")},
		{name: "so is what cannot be frozen", who: editor(), asks: autoscales("ReplicationController", "web")},
		{name: "one without the label is changed", who: editor(), asks: patchesDeployment("free", scaled)},
		{name: "and deleted", who: editor(), asks: deletesDeployment("free")},
	})
}

// Where only objects whose policies permit change had no room, they stay open: until the
// first of their windows ends, also when nobody is there to say so.
func TestObjectsThatThereIsNoRoomForAreOpenWhileTheirPoliciesAre(t *testing.T) {
	const frozen, scaled = "is frozen by the policy of its label", `{"spec":{"replicas":3}}`
	for name, c := range map[string]struct {
		until  time.Duration
		denied string
	}{"before the first of them closes": {time.Hour, ""}, "after": {-time.Hour, frozen}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.deployment("web", map[string]string{annotations.LabelFreeze: "year-end"})
			l.deployment("free", nil)
			l.autoscaler("scaler", "Deployment", "free")
			l.bind("edit", editor())
			l.publish("*=open/" + time.Now().Add(c.until).UTC().Format(time.RFC3339) + ",deployments.apps/api=frozen")
			l.table([]row{
				{name: "one that is not named is changed", who: editor(), asks: patchesDeployment("web", scaled), denied: c.denied},
				{name: "and scaled by an autoscaler", who: editor(), asks: autoscales("Deployment", "web"), denied: c.denied},
				{name: "and by one that is there", who: editor(), asks: turnsAutoscaler("web"), denied: c.denied},
				{name: "and scaled", who: editor(), asks: scales("web")},
				{name: "and deleted", who: editor(), asks: deletesDeployment("web")},
				{name: "one without the label is changed", who: editor(), asks: patchesDeployment("free", scaled)},
			})
		})
	}
}

// An agent publishes what policies and runs freeze, and takes it back.
func TestAnAgentFreezes(t *testing.T) {
	w := newTown(t)
	w.given(plain("app"))
	w.deployment("web", map[string]string{annotations.LabelFreeze: "year-end"})
	change := func(ctx context.Context) error {
		_, err := world.as(editor()).AppsV1().Deployments(w.ns).Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	edit := func(ctx context.Context) error {
		_, err := patches("app", `{"data":{"x":"y"}}`)(w.lab, world.as(editor()))
		return err
	}
	refused := func(what string, ask func(context.Context) error) {
		t.Helper()
		w.until(what+" is refused", func() error {
			if ask(w.ctx) == nil {
				return fmt.Errorf("%s is allowed", what)
			}
			return nil
		})
	}
	allowed := func(what string, ask func(context.Context) error) {
		t.Helper()
		w.until(what+" is allowed", func() error { return ask(w.ctx) })
	}
	refused("a change, while the policy of the label is missing,", change)

	_, err := world.as(nsAdmin()).CoreV1().ConfigMaps(w.ns).Create(w.ctx, policyDocument(w.ns), metav1.CreateOptions{})
	w.must(err)
	allowed("a change", change)
	w.does(nsAdmin(), "freeze", "year-end", "--for", "1h", "--reason", "year end")
	refused("a change", change)
	w.does(nsAdmin(), "allow", "year-end", "--for", "1h", "--reason", "CHG-1")
	allowed("a change", change)

	_, err = world.as(editor()).CoreV1().ConfigMaps(w.ns).Create(w.ctx, annotations.NewPlan(w.ns, "orders", freezingPlan, ""), metav1.CreateOptions{})
	w.must(err)
	allowed("an edit before a run", edit)
	before := w.runs()
	w.does(editor(), "trigger", "orders")
	name := w.new(before)
	w.holds(name)
	if err := edit(w.ctx); err == nil {
		t.Error("the target of a run that has done its first step is changed")
	}
	w.does(editor(), "resume", name)
	w.ends(name, run.Succeeded)
	allowed("an edit after it", edit)
}

const sleepingPlan = `
apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  steps:
  - {name: sleep, type: hibernate, properties: {plan: nights}}
  - {name: hold, type: suspend}
`

// What sleeps when the freeze begins is woken: that puts back what was. It does not fall asleep
// while it is frozen.
func TestWhatSleepsIsWokenThroughAFreeze(t *testing.T) {
	w := newTown(t)
	runner := account(w.ns, "maint-runner")
	w.role(runner, rule("batch", "cronjobs", nil, "get", "list", "watch", "patch"), rule("maint.dev", "plans", []string{"nights"}, "override"))
	w.must(world.may(w.ctx, runner, w.ns, "override", "maint.dev", "plans", "nights"))
	maps := world.as(nsAdmin()).CoreV1().ConfigMaps(w.ns)
	_, err := maps.Create(w.ctx, policyDocument(w.ns), metav1.CreateOptions{})
	w.must(err)
	w.nights(map[string]string{annotations.LabelFreeze: "year-end"})
	_, err = maps.Create(w.ctx, annotations.NewPlan(w.ns, "orders", sleepingPlan, ""), metav1.CreateOptions{})
	w.must(err)
	suspended := func() bool {
		is, err := world.admin.BatchV1().CronJobs(w.ns).Get(w.ctx, "report", metav1.GetOptions{})
		w.must(err)
		return is.Spec.Suspend != nil && *is.Spec.Suspend
	}
	change := func(who person) error {
		_, err := world.as(who).BatchV1().CronJobs(w.ns).Patch(w.ctx, "report", types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{DryRun: dry})
		return err
	}
	w.until("a change is allowed", func() error { return change(editor()) })
	before := w.runs()
	w.does(editor(), "trigger", "orders")
	name := w.new(before)
	w.holds(name)
	if !suspended() {
		t.Fatal("it does not sleep")
	}
	w.does(nsAdmin(), "freeze", "year-end", "--for", "1h", "--reason", "year end")
	w.until("a change is refused", func() error {
		for _, who := range []person{editor(), runner} {
			if change(who) == nil {
				return fmt.Errorf("%s may change it", who.name)
			}
		}
		return nil
	})
	w.does(editor(), "resume", name)
	w.ends(name, run.Succeeded)
	w.until("it is awake", func() error {
		if suspended() {
			return fmt.Errorf("of it the plan says %v", w.get("nights").Annotations)
		}
		return nil
	})
	_, err = maps.Patch(w.ctx, "nights", types.MergePatchType, []byte(annotationPatch([]string{annotations.HoldState, "asleep"})), metav1.PatchOptions{})
	w.must(err)
	w.until("its plan says that it is frozen", func() error {
		said := w.get("nights").Annotations
		for _, text := range said {
			if strings.Contains(text, "is frozen by the policy of its label") {
				return nil
			}
		}
		return fmt.Errorf("it says %v", said)
	})
	if suspended() {
		t.Error("it fell asleep while it was frozen")
	}
}

// Whoever may patch a namespace, and has no verb on plans, fills its annotations so that nothing
// longer can be written there: what is open now does not stay so.
func TestAFreezeHoldsOnANamespaceWithoutRoom(t *testing.T) {
	w := newTown(t)
	w.deployment("web", map[string]string{annotations.LabelFreeze: "year-end"})
	change := func() error {
		_, err := world.as(editor()).AppsV1().Deployments(w.ns).Patch(w.ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	_, err := world.as(nsAdmin()).CoreV1().ConfigMaps(w.ns).Create(w.ctx, policyDocument(w.ns), metav1.CreateOptions{})
	w.must(err)
	w.until("it says that web may be changed", func() error {
		is, err := world.admin.CoreV1().Namespaces().Get(w.ctx, w.ns, metav1.GetOptions{})
		if said := is.Annotations[annotations.StatusFrozen]; err == nil && said != "deployments.apps/web=open" {
			err = fmt.Errorf("it says %q", said)
		}
		return err
	})
	w.until("a change is allowed", change)

	space, err := world.admin.CoreV1().Namespaces().Get(w.ctx, w.ns, metav1.GetOptions{})
	w.must(err)
	room := annotations.MaxBytes - annotations.Bytes(space.Annotations) - len("example.org/x")
	fill := func(value string) {
		t.Helper()
		_, err := world.as(namespaceOwner()).CoreV1().Namespaces().Patch(w.ctx, w.ns, types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.org/x":`+value+`}}}`), metav1.PatchOptions{})
		w.must(err)
	}
	fill(`"` + strings.Repeat("y", room) + `"`)
	w.does(nsAdmin(), "freeze", "year-end", "--for", "1h", "--reason", "year end")
	w.until("a change is refused", func() error {
		if change() != nil {
			return nil
		}
		is, err := world.admin.CoreV1().Namespaces().Get(w.ctx, w.ns, metav1.GetOptions{})
		w.must(err)
		return fmt.Errorf("it is allowed, and the namespace with %d bytes of annotations says %q", annotations.Bytes(is.Annotations), is.Annotations[annotations.StatusFrozen])
	})
	events, err := world.admin.CoreV1().Events(w.ns).List(w.ctx, metav1.ListOptions{FieldSelector: "reason=FreezesNotPublished"})
	w.must(err)
	if len(events.Items) == 0 {
		t.Error("nobody is told")
	}
	fill("null")
	w.does(nsAdmin(), "allow", "year-end", "--for", "1h", "--reason", "CHG-1")
	w.until("with room again a change is allowed", change)
}
