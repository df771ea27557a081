package executors_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func unwrapped(rt http.RoundTripper) http.RoundTripper { return rt }

// as is the call with clients of an account that has these rights.
func (h *house) as(t *testing.T, call executors.Call, rights []conformance.Right) executors.Call {
	t.Helper()
	call.Clients, call.Plan.Account = h.connect(t, rights, unwrapped)
	return call
}

// pass calls an executor until it has more to say than "again".
func pass(t *testing.T, stepType string, call *executors.Call) executors.Outcome {
	t.Helper()
	for range 50 {
		out := executor(t, stepType).Pass(t.Context(), *call)
		switch {
		case out.State == executors.Record:
			call.Recorded.Before = out.Before
		case out.Reason != executors.ReasonConflict:
			return out
		}
	}
	t.Fatal("nothing but conflicts")
	return executors.Outcome{}
}

func refused(t *testing.T, out executors.Outcome, permanent bool, reason string, words ...string) {
	t.Helper()
	if out.State != executors.Failed || out.Permanent != permanent || out.Reason != reason {
		t.Errorf("ends as %+v, want %s, permanent %t", out, reason, permanent)
	}
	for _, word := range words {
		if !strings.Contains(out.Message, word) {
			t.Errorf("%q does not say %q", out.Message, word)
		}
	}
}

func TestPatchesThatCanNeverBeRight(t *testing.T) {
	h := newHouse(t)
	both := append(rights("example.org", "apps", "get", "patch"), rights("apps", "deployments", "get", "patch")...)
	app, deployment := h.app(t), h.deployment(t)
	for name, c := range map[string]struct {
		properties string
		reason     string
		words      []string
	}{
		"a strategic patch of a custom resource": {fmt.Sprintf(`{resource: %s, patch: {spec: {size: 2}}}`, yamlOf(t, app.ref)), "Invalid", []string{"App/" + app.name, "no strategic merge patch", "patchType: merge or json"}},
		"a kind that is not served":              {`{resource: {apiVersion: example.org/v1, kind: Ap, name: x}, patch: {spec: {size: 2}}}`, "UnknownKind", []string{"Ap/x", "example.org/v1"}},
		"an apiVersion that is not served":       {`{resource: {apiVersion: example.org/v9, kind: App, name: x}, patch: {spec: {size: 2}}}`, "UnknownKind", []string{"example.org/v9"}},
		"a value that the API refuses":           {fmt.Sprintf(`{resource: %s, patch: {spec: {replicas: -1}}}`, yamlOf(t, deployment.ref)), "Invalid", []string{"spec.replicas", "-1"}},
		"a JSON patch of what is not there":      {fmt.Sprintf(`{resource: %s, patchType: json, patch: [{op: remove, path: /spec/never}]}`, yamlOf(t, app.ref)), "Invalid", []string{"patch[0]", "/spec/never"}},
		"a JSON patch whose test does not hold":  {fmt.Sprintf(`{resource: %s, patchType: json, patch: [{op: test, path: /spec/size, value: 99}, {op: replace, path: /spec/size, value: 1}]}`, yamlOf(t, app.ref)), "Invalid", []string{"patch[0]", "/spec/size"}},
		"a patch without metadata":               {fmt.Sprintf(`{resource: %s, patchType: merge, patch: {metadata: null}}`, yamlOf(t, app.ref)), "Invalid", []string{"metadata must be an object"}},
	} {
		t.Run(name, func(t *testing.T) {
			call := h.as(t, h.call(properties[plan.PatchProperties](t, c.properties)), both)
			refused(t, pass(t, "patch-object", &call), true, c.reason, c.words...)
		})
	}
}

func TestAPatchThatSomebodyOvertookIsNotAppliedTwice(t *testing.T) {
	h := newHouse(t)
	app := h.app(t)
	p := fmt.Sprintf(`{resource: %s, patchType: json, patch: [{op: add, path: /spec/hosts/-, value: c}]}`, yamlOf(t, app.ref))
	call := h.as(t, h.call(properties[plan.PatchProperties](t, p)), rights("example.org", "apps", "get", "patch"))
	if out := pass(t, "patch-object", &call); out.State != executors.Done {
		t.Fatalf("%+v", out)
	}
	app.merge(`{spec: {hosts: [a, b, c, d]}}`)(t)
	refused(t, pass(t, "patch-object", &call), true, executors.ReasonChangedMeanwhile, "spec.hosts")
	if got := app.state("spec", "hosts")(t); got != `["a","b","c","d"]` {
		t.Errorf("the list is %s", got)
	}
}

func TestRestoreLeavesNeighboursAlone(t *testing.T) {
	h := newHouse(t)
	d := h.deployment(t)
	p := fmt.Sprintf(`{resource: %s, restoreAfter: true, patch: {spec: {template: {spec: {containers: [{name: web, image: "example.org/web:2"}]}}, minReadySeconds: 5}}}`, yamlOf(t, d.ref))
	call := h.as(t, h.call(properties[plan.PatchProperties](t, p)), rights("apps", "deployments", "get", "patch"))
	if out := pass(t, "patch-object", &call); out.State != executors.Done {
		t.Fatalf("%+v", out)
	}
	// A sidecar in front, and another opinion on one of the two fields.
	sidecar := []byte(`{"spec":{"minReadySeconds":9,"template":{"spec":{"containers":[{"name":"a-sidecar","image":"example.org/s:1"}]}}}}`)
	if _, err := d.in.Patch(t.Context(), d.name, types.StrategicMergePatchType, sidecar, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	out := executor(t, "patch-object").(executors.Restorer).Restore(t.Context(), call)
	for out.State == executors.NotYet {
		out = executor(t, "patch-object").(executors.Restorer).Restore(t.Context(), call)
	}
	if out.Reason != executors.ReasonChangedMeanwhile || !strings.Contains(out.Message, "spec.minReadySeconds") {
		t.Errorf("%+v, want the field that somebody changed", out)
	}
	spec := d.state("spec")(t)
	for _, part := range []string{`"image":"example.org/web:1"`, `"image":"example.org/s:1"`, `"minReadySeconds":9`} {
		if !strings.Contains(spec, part) {
			t.Errorf("%s does not hold %s", spec, part)
		}
	}
}

func TestAnObjectThatWasCreatedAnewIsLeftAlone(t *testing.T) {
	h := newHouse(t)
	d := h.deployment(t)
	call := h.call(properties[plan.LabelProperties](t, `{operation: add, labels: {maintenance: "true"}}`))
	call.Target.Object = &plan.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: d.name}
	call.Target.UID = "another"
	call = h.as(t, call, rights("apps", "deployments", "get", "patch"))
	refused(t, pass(t, "label", &call), true, executors.ReasonReplaced, "created again")
}

func TestSecretsAreNotWrittenDown(t *testing.T) {
	h := newHouse(t)
	s := h.thing(t, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, `{apiVersion: v1, kind: Secret, stringData: {token: hush}}`)
	granted := rights("", "secrets", "get", "patch")
	withRestore := h.as(t, h.call(properties[plan.PatchProperties](t, fmt.Sprintf(`{resource: %s, restoreAfter: true, patch: {data: {token: bmV3}}}`, yamlOf(t, s.ref)))), granted)
	refused(t, pass(t, "patch-object", &withRestore), true, "SecretNotKept", "never done")
	plain := h.as(t, h.call(properties[plan.PatchProperties](t, fmt.Sprintf(`{resource: %s, patch: {data: {token: bmV3}}}`, yamlOf(t, s.ref)))), granted)
	plain.DryRun = true
	dry := pass(t, "patch-object", &plain)
	plain.DryRun = false
	real := pass(t, "patch-object", &plain)
	for _, out := range []executors.Outcome{dry, real} {
		if out.State != executors.Done || !strings.Contains(out.Message, "data.token") || strings.Contains(fmt.Sprint(out), "aHVzaA==") || strings.Contains(fmt.Sprint(out), "bmV3") {
			t.Errorf("%+v", out)
		}
	}
	if got := s.state("data", "token")(t); got != `"bmV3"` {
		t.Errorf("the token is %s", got)
	}
}

func TestObjectsElsewhere(t *testing.T) {
	h, other := newHouse(t), newHouse(t)
	cm := other.thing(t, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, `{apiVersion: v1, kind: ConfigMap}`)
	ref := cm.ref
	ref.Namespace = other.ns
	label := func(ref plan.ResourceRef) executors.Call {
		return h.call(&plan.LabelProperties{Operation: "add", Labels: map[string]any{"a": "b"}, Object: &ref})
	}
	t.Run("a right in the plan's namespace is none in another", func(t *testing.T) {
		call := h.as(t, label(ref), rights("", "configmaps", "get", "patch"))
		refused(t, pass(t, "label", &call), true, executors.ReasonForbidden, "in namespace "+other.ns, h.ns+"/"+call.Plan.Account, "get on configmaps")
	})
	t.Run("a cluster-scoped object has no namespace", func(t *testing.T) {
		call := h.as(t, label(plan.ResourceRef{APIVersion: "v1", Kind: "Namespace", Name: h.ns, Namespace: "ignored"}), nil)
		out := pass(t, "label", &call)
		refused(t, out, true, executors.ReasonForbidden, fmt.Sprintf("get namespaces %q:", h.ns))
		h.grantNamespaces(t, call.Plan.Account)
		eventually(t, "the ClusterRole is in force", func(context.Context) (bool, error) {
			return pass(t, "label", &call).State == executors.Done, nil
		})
	})
}

// grantNamespaces lets an account label its own namespace, and no other.
func (h *house) grantNamespaces(t *testing.T, account string) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: h.ns}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{h.ns}, Verbs: []string{"get", "patch"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: h.ns}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: h.ns},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: h.ns, Name: account}},
	}
	if _, err := h.kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = h.kube.RbacV1().ClusterRoleBindings().Delete(ctx, h.ns, metav1.DeleteOptions{})
		_ = h.kube.RbacV1().ClusterRoles().Delete(ctx, h.ns, metav1.DeleteOptions{})
	})
}

func TestAKindWithoutScaleSaysSo(t *testing.T) {
	h := newHouse(t)
	cm := h.thing(t, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, `{apiVersion: v1, kind: ConfigMap}`)
	call := h.as(t, h.call(properties[plan.ScaleProperties](t, fmt.Sprintf(`{resource: %s, replicas: 0}`, yamlOf(t, cm.ref)))), rights("", "configmaps/scale", "get", "patch"))
	refused(t, pass(t, "scale", &call), true, "Invalid", "no scale subresource")
}

func TestAQuotaIsNoMissingRight(t *testing.T) {
	h := newHouse(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}}}
	if _, err := h.kube.CoreV1().ResourceQuotas(h.ns).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota is counted", func(ctx context.Context) (bool, error) {
		q, err := h.kube.CoreV1().ResourceQuotas(h.ns).Get(ctx, "none", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0, err
	})
	call := h.as(t, h.call(&plan.JobProperties{Image: "example.org/a:1"}), jobRights())
	refused(t, pass(t, "job", &call), false, executors.ReasonDenied, "quota")
}

func jobRights() []conformance.Right {
	return append(rights("batch", "jobs", "get", "list", "watch", "create", "delete"), rights("", "pods", "list")...)
}

// jobOf is the one Job of a call's run.
func (h *house) jobOf(t *testing.T, call executors.Call) batchv1.Job {
	t.Helper()
	list, err := h.kube.BatchV1().Jobs(h.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range list.Items {
		if strings.HasPrefix(j.Annotations["maint.dev/job-of"], call.Run+"/") {
			return j
		}
	}
	t.Fatal("there is no Job")
	return batchv1.Job{}
}

func TestAJobUnderTheRealController(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]executors.State{corev1.PodSucceeded: executors.Done, corev1.PodFailed: executors.Failed} {
		t.Run(string(phase), func(t *testing.T) {
			h := newHouse(t)
			call := h.as(t, h.call(&plan.JobProperties{Image: "example.org/a:1", Command: []string{"true"}}), jobRights())
			if _, err := h.kube.CoreV1().ServiceAccounts(h.ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: call.Plan.Account}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if out := pass(t, "job", &call); out.State != executors.NotYet || out.Watch == nil || out.Watch.Resource.Resource != "jobs" {
				t.Fatalf("%+v, want a watch on the Job", out)
			}
			h.endPod(t, phase)
			var out executors.Outcome
			eventually(t, "the Job ends", func(context.Context) (bool, error) {
				out = pass(t, "job", &call)
				return out.State != executors.NotYet, nil
			})
			if out.State != want || out.Permanent || !strings.Contains(out.Message, "grant get on pods/log to") {
				t.Errorf("%+v", out)
			}
			if j := h.jobOf(t, call); j.Labels["maint.dev/plan"] != "orders" || j.Labels["maint.dev/step"] != "work" || len(j.Name) > 63 {
				t.Errorf("the Job cannot be found: %+v", j.ObjectMeta)
			}
		})
	}
}

// endPod plays kubelet for the only pod of the namespace.
func (h *house) endPod(t *testing.T, phase corev1.PodPhase) {
	t.Helper()
	eventually(t, "the pod ends", func(ctx context.Context) (bool, error) {
		pods, err := h.kube.CoreV1().Pods(h.ns).List(ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items) == 0 {
			return false, err
		}
		pods.Items[0].Status.Phase = phase
		_, err = h.kube.CoreV1().Pods(h.ns).UpdateStatus(ctx, &pods.Items[0], metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}

func TestAJobThatSomebodyDeletesIsNotRunAgain(t *testing.T) {
	h := newHouse(t)
	call := h.as(t, h.call(&plan.JobProperties{Image: "example.org/a:1"}), jobRights())
	if out := pass(t, "job", &call); out.State != executors.NotYet {
		t.Fatalf("%+v", out)
	}
	job := h.jobOf(t, call)
	now := metav1.DeletePropagationBackground
	if err := h.kube.BatchV1().Jobs(h.ns).Delete(t.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: &now}); err != nil {
		t.Fatal(err)
	}
	refused(t, pass(t, "job", &call), false, "Deleted", job.Name)
}

func TestAJobOfSomebodyElseIsLeftAlone(t *testing.T) {
	h := newHouse(t)
	call := h.as(t, h.call(&plan.JobProperties{Image: "example.org/a:1"}), jobRights())
	if out := pass(t, "job", &call); out.State != executors.NotYet {
		t.Fatalf("%+v", out)
	}
	job := h.jobOf(t, call)
	strip := []byte(`{"metadata":{"annotations":{"maint.dev/job-of":null}}}`)
	if _, err := h.kube.BatchV1().Jobs(h.ns).Patch(t.Context(), job.Name, types.MergePatchType, strip, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	refused(t, pass(t, "job", &call), true, "NotOurs", job.Name)
	if err := executor(t, "job").(executors.Stopper).Stop(t.Context(), call); err == nil || !strings.Contains(err.Error(), "not created by this step") {
		t.Errorf("stop of somebody's Job says %v", err)
	}
}

func TestAWaitForWhatIsNotThereYet(t *testing.T) {
	h := newHouse(t)
	ref := plan.ResourceRef{APIVersion: "example.org/v1", Kind: "App", Name: "later"}
	call := h.as(t, h.call(&plan.WaitProperties{Resource: ref, Until: "object.spec.size == 1"}), rights("example.org", "apps", "get", "list", "watch"))
	out := pass(t, "wait", &call)
	want := executors.Watch{Resource: appsGVR(), Namespace: h.ns, Name: "later"}
	if out.State != executors.NotYet || out.Watch == nil || *out.Watch != want || !out.WakeAt.IsZero() {
		t.Fatalf("%+v, want a watch on %+v", out, want)
	}
	u := object(t, `{apiVersion: example.org/v1, kind: App, metadata: {name: later}, spec: {size: 1}}`)
	if _, err := h.dynamic.Resource(appsGVR()).Namespace(h.ns).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if out := pass(t, "wait", &call); out.State != executors.Done {
		t.Errorf("%+v", out)
	}
}

func TestAnAgentThatMayNotActAsTheAccountSaysSo(t *testing.T) {
	h := newHouse(t)
	d := h.deployment(t)
	// The agent's place is taken by an account that may do nothing.
	weak, account := h.connect(t, nil, func(rt http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("Impersonate-User", "system:serviceaccount:"+h.ns+":nobody")
			r.Header.Set("Impersonate-Group", "nobody")
			return rt.RoundTrip(r)
		})
	})
	call := h.call(&plan.LabelProperties{Operation: "add", Labels: map[string]any{"a": "b"}, Object: &d.ref})
	call.Clients, call.Plan.Account = weak, account
	out := pass(t, "label", &call)
	if out.State != executors.NotYet || out.Reason != executors.ReasonForbidden || !strings.Contains(out.Message, "get deployments.apps") || !strings.Contains(out.Message, ":nobody") {
		t.Errorf("a refusal of somebody else than the account is waited for, and told: %+v", out)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAStopWithoutTheRightSaysWhich(t *testing.T) {
	h := newHouse(t)
	call := h.as(t, h.call(&plan.JobProperties{Image: "example.org/a:1"}), rights("batch", "jobs", "get", "list", "watch", "create"))
	if out := pass(t, "job", &call); out.State != executors.NotYet {
		t.Fatalf("%+v", out)
	}
	err := executor(t, "job").(executors.Stopper).Stop(t.Context(), call)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "delete jobs.batch") {
		t.Errorf("stop says %v", err)
	}
}
