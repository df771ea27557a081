package executors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func appsOf(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
}

// rollout is an object that rolls pods out, of which nobody runs any.
func (h *house) rollout(t *testing.T, kind, spec string) *thing {
	t.Helper()
	return h.thing(t, appsOf(strings.ToLower(kind)+"s"), fmt.Sprintf(`
apiVersion: apps/v1
kind: %s
spec:
  selector: {matchLabels: {app: "%d"}}
  template:
    metadata: {labels: {app: "%d"}}
    spec: {containers: [{name: web, image: "example.org/web:1"}]}
%s`, kind, h.worlds.Load(), h.worlds.Load(), spec))
}

// observed waits until the object's controller has seen its last change.
func (th *thing) observed(t *testing.T) {
	t.Helper()
	eventually(t, th.name+" is observed", func(ctx context.Context) (bool, error) {
		u, err := th.in.Get(ctx, th.name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		return seen >= u.GetGeneration(), nil
	})
}

func TestRestartConforms(t *testing.T) {
	h := newHouse(t)
	for kind, spec := range map[string]string{"Deployment": "  replicas: 0", "StatefulSet": "  replicas: 0\n  serviceName: x", "DaemonSet": ""} {
		t.Run(kind, func(t *testing.T) {
			conformance.Run(t, conformance.Case{
				Executor: executor(t, "restart"), Rights: rights("apps", strings.ToLower(kind)+"s", "get", "list", "watch", "patch"),
				New: func(t *testing.T) conformance.Backend {
					th := h.rollout(t, kind, spec)
					th.observed(t)
					return conformance.Backend{
						Call:    h.call(properties[plan.RestartProperties](t, fmt.Sprintf(`{resource: %s}`, yamlOf(t, th.ref)))),
						Connect: h.connect, State: th.state("metadata", "generation"), Remove: th.remove,
						Touch:  th.merge(`{metadata: {annotations: {touched: "yes"}}}`),
						Settle: func(t *testing.T, _ *executors.Call) { th.observed(t) },
					}
				},
			})
		})
	}
}

func restartRights(resource string) []conformance.Right {
	return rights("apps", resource, "get", "list", "watch", "patch")
}

func TestARestartUnderTheRealController(t *testing.T) {
	h := newHouse(t)
	d := h.rollout(t, "Deployment", "  replicas: 2")
	h.readyPods(t, d, 2)
	call := h.as(t, h.call(&plan.RestartProperties{Resource: d.ref}), restartRights("deployments"))
	out := remembering(t, "restart", &call)
	want := executors.Watch{Resource: deploymentsGVR(), Namespace: h.ns, Name: d.name}
	if out.State != executors.NotYet || out.Watch == nil || *out.Watch != want || out.Message == "" {
		t.Fatalf("%+v, want a watch on %+v", out, want)
	}
	if mark := d.state("spec", "template", "metadata", "annotations")(t); !strings.Contains(mark, call.Run+"/work#1") {
		t.Errorf("its template carries %s", mark)
	}
	eventually(t, "the restart is through", func(ctx context.Context) (bool, error) {
		h.makeReady(ctx)
		out = remembering(t, "restart", &call)
		return out.State != executors.NotYet, nil
	})
	if out.State != executors.Done || len(out.Changed) != 1 || !strings.Contains(out.Message, "2 pods are updated and available") {
		t.Errorf("%+v", out)
	}
	call.Attempt = 2
	remembering(t, "restart", &call)
	if mark := d.state("spec", "template", "metadata", "annotations")(t); !strings.Contains(mark, call.Run+"/work#2") {
		t.Errorf("another attempt is no other restart: %s", mark)
	}
}

// remembering is pass for an executor with a memory.
func remembering(t *testing.T, stepType string, call *executors.Call) executors.Outcome {
	t.Helper()
	for range 50 {
		out := executor(t, stepType).Pass(t.Context(), *call)
		if out.Memory != nil {
			call.Recorded.Memory = out.Memory
		}
		if out.Before != nil && call.Recorded.Before == nil {
			call.Recorded.Before = out.Before
		}
		again := out.State == executors.NotYet && out.WakeAt.Equal(call.Now)
		if out.State != executors.Record && !again {
			return out
		}
	}
	t.Fatal("nothing but looking again")
	return executors.Outcome{}
}

// readyPods waits for a rollout while playing kubelet for its pods.
func (h *house) readyPods(t *testing.T, th *thing, want int64) {
	t.Helper()
	eventually(t, "the pods are available", func(ctx context.Context) (bool, error) {
		h.makeReady(ctx)
		u, err := th.in.Get(ctx, th.name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		n, _, _ := unstructured.NestedInt64(u.Object, "status", "availableReplicas")
		return n == want, nil
	})
}

// makeReady plays kubelet for every pod of the namespace once: those that are
// to go go, the others are ready.
func (h *house) makeReady(ctx context.Context) {
	pods, err := h.kube.CoreV1().Pods(h.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil {
			now := int64(0)
			_ = h.kube.CoreV1().Pods(h.ns).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
			continue
		}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		if _, err := h.kube.CoreV1().Pods(h.ns).UpdateStatus(ctx, &p, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
			return
		}
	}
}

func TestARestartThatIsTakenBackFails(t *testing.T) {
	h := newHouse(t)
	d := h.rollout(t, "Deployment", "  replicas: 1")
	call := h.as(t, h.call(&plan.RestartProperties{Resource: d.ref}), restartRights("deployments"))
	if out := remembering(t, "restart", &call); out.State != executors.NotYet {
		t.Fatalf("%+v", out)
	}
	d.merge(`{spec: {template: {metadata: {annotations: {` + annotations.RestartedBy + `: null}}}}}`)(t)
	refused(t, remembering(t, "restart", &call), false, "Reverted", annotations.RestartedBy, "another controller")
}

func TestARestartOfAnObjectThatIsCreatedAnewFails(t *testing.T) {
	h := newHouse(t)
	d := h.rollout(t, "Deployment", "  replicas: 1")
	call := h.as(t, h.call(&plan.RestartProperties{Resource: d.ref}), restartRights("deployments"))
	if out := remembering(t, "restart", &call); out.State != executors.NotYet {
		t.Fatalf("%+v", out)
	}
	text := d.read(t)
	d.remove(t)
	text.SetResourceVersion("")
	text.SetUID("")
	unstructured.RemoveNestedField(text.Object, "spec", "template", "metadata", "annotations")
	if _, err := d.in.Create(t.Context(), text, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	refused(t, remembering(t, "restart", &call), true, executors.ReasonReplaced, "created again")
}

func TestRestartsThatWouldNeverEnd(t *testing.T) {
	h := newHouse(t)
	for name, c := range map[string]struct {
		kind, spec, reason string
		words              []string
	}{
		"of a paused Deployment":          {"Deployment", "  paused: true", "Paused", []string{"kubectl rollout resume deployment/"}},
		"of a StatefulSet with OnDelete":  {"StatefulSet", "  serviceName: x\n  updateStrategy: {type: OnDelete}", "OnDelete", []string{"RollingUpdate"}},
		"of a DaemonSet with OnDelete":    {"DaemonSet", "  updateStrategy: {type: OnDelete}", "OnDelete", []string{"RollingUpdate"}},
		"of a StatefulSet that keeps all": {"StatefulSet", "  serviceName: x\n  replicas: 2\n  updateStrategy: {rollingUpdate: {partition: 2}}", "Partitioned", []string{"partition 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			th := h.rollout(t, c.kind, c.spec)
			call := h.as(t, h.call(&plan.RestartProperties{Resource: th.ref}), restartRights(strings.ToLower(c.kind)+"s"))
			refused(t, remembering(t, "restart", &call), true, c.reason, append(c.words, th.name)...)
		})
	}
	app := h.app(t)
	call := h.as(t, h.call(&plan.RestartProperties{Resource: app.ref}), restartRights("deployments"))
	refused(t, remembering(t, "restart", &call), true, executors.ReasonInvalid, "Deployment, StatefulSet or DaemonSet")
}
