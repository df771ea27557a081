package executors_test

import (
	"context"
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/builtin"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func executor(t *testing.T, name string) executors.Executor {
	t.Helper()
	e, ok := builtin.Executors().For(name)
	if !ok {
		t.Fatalf("no executor for %s", name)
	}
	return e
}

func TestEveryStepTypeHasAnExecutor(t *testing.T) {
	for _, s := range plan.StepTypes() {
		if !s.Structure {
			executor(t, s.Name)
		}
	}
}

func TestLabelConforms(t *testing.T) {
	h := newHouse(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "label"), Rights: rights("apps", "deployments", "get", "patch"),
		New: func(t *testing.T) conformance.Backend {
			d := h.deployment(t)
			w := d.world(properties[plan.LabelProperties](t, `{operation: add, labels: {maintenance: "true", tier: gold}, restoreAfter: true}`),
				`{metadata: {labels: {maintenance: theirs, tier: theirs}}}`, "metadata", "labels")
			w.Call.Target.Object = &plan.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: d.name}
			w.Call.Target.UID = string(d.read(t).GetUID())
			return w
		},
	})
}

func TestRemovingLabelsConforms(t *testing.T) {
	h := newHouse(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "label"), Rights: rights("apps", "deployments", "get", "patch"),
		New: func(t *testing.T) conformance.Backend {
			d := h.deployment(t)
			p := fmt.Sprintf(`{operation: remove, labels: [tier, never-there], restoreAfter: true, object: %s}`, yamlOf(t, d.ref))
			return d.world(properties[plan.LabelProperties](t, p), `{metadata: {labels: {tier: theirs}}}`, "metadata", "labels")
		},
	})
}

func TestAnnotateConforms(t *testing.T) {
	h := newHouse(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "annotate"), Rights: rights("", "configmaps", "get", "patch"),
		New: func(t *testing.T) conformance.Backend {
			cm := h.thing(t, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, `{apiVersion: v1, kind: ConfigMap}`)
			p := fmt.Sprintf(`{operation: add, annotations: {example.org/pause: "a b\nc"}, restoreAfter: true, object: %s}`, yamlOf(t, cm.ref))
			w := cm.world(properties[plan.AnnotateProperties](t, p), `{metadata: {annotations: {example.org/pause: theirs}}}`, "metadata", "annotations")
			w.Touch = cm.merge(`{data: {touched: "yes"}}`)
			return w
		},
	})
}

func TestStrategicPatchConforms(t *testing.T) {
	h := newHouse(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "patch-object"), Rights: rights("apps", "deployments", "get", "patch"),
		New: func(t *testing.T) conformance.Backend {
			d := h.deployment(t)
			p := fmt.Sprintf(`
resource: %s
restoreAfter: true
patch:
  spec:
    minReadySeconds: 7
    template:
      metadata: {annotations: {drained: "true"}}
      spec: {containers: [{name: web, env: [{name: MODE, value: maintenance}, {name: EXTRA, value: "1"}]}]}
`, yamlOf(t, d.ref))
			return d.world(properties[plan.PatchProperties](t, p), `
spec:
  minReadySeconds: 9
  template:
    metadata: {annotations: {drained: theirs}}
    spec: {containers: [{name: web, image: "example.org/web:1", env: [{name: MODE, value: theirs}, {name: EXTRA, value: theirs}]}]}
`, "spec")
		},
	})
}

func TestMergePatchOfACustomResourceConforms(t *testing.T) {
	h := newHouse(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "patch-object"), Rights: rights("example.org", "apps", "get", "patch"),
		New: func(t *testing.T) conformance.Backend {
			a := h.app(t)
			p := fmt.Sprintf(`{resource: %s, patchType: merge, restoreAfter: true, patch: {spec: {size: 5, keep: null, window: {open: true}}}}`, yamlOf(t, a.ref))
			return a.world(properties[plan.PatchProperties](t, p), `{spec: {size: 6, keep: {me: false}, window: {open: false}}}`, "spec")
		},
	})
}

func TestJSONPatchConforms(t *testing.T) {
	h := newHouse(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "patch-object"), Rights: rights("example.org", "apps", "get", "patch"),
		New: func(t *testing.T) conformance.Backend {
			a := h.app(t)
			p := fmt.Sprintf(`{resource: %s, patchType: json, restoreAfter: true, patch: [{op: test, path: /spec/size, value: 1}, {op: add, path: /spec/hosts/-, value: c}, {op: remove, path: /spec/size}]}`, yamlOf(t, a.ref))
			return a.world(properties[plan.PatchProperties](t, p), `{spec: {size: 6, hosts: [z]}}`, "spec")
		},
	})
}

func TestAppendingWithoutRestoreConforms(t *testing.T) {
	h := newHouse(t)
	c := conformance.Case{
		Executor: withoutRestore{executor(t, "patch-object")}, Rights: rights("example.org", "apps", "get", "patch"),
		New: func(t *testing.T) conformance.Backend {
			a := h.app(t)
			p := fmt.Sprintf(`{resource: %s, patchType: json, patch: [{op: add, path: /spec/hosts/-, value: c}]}`, yamlOf(t, a.ref))
			return a.world(properties[plan.PatchProperties](t, p), "{}", "spec")
		},
	}
	conformance.Run(t, c)
}

// withoutRestore is an executor as the agent uses it for a step without
// restoreAfter.
type withoutRestore struct{ executors.Executor }

func TestScaleConforms(t *testing.T) {
	h := newHouse(t)
	for kind, c := range map[string]struct {
		group, resource string
		thing           func(*testing.T) *thing
	}{
		"of a Deployment": {"apps", "deployments/scale", h.deployment}, "of a custom resource": {"example.org", "apps/scale", h.app},
	} {
		t.Run(kind, func(t *testing.T) {
			conformance.Run(t, conformance.Case{
				Executor: executor(t, "scale"), Rights: rights(c.group, c.resource, "get", "patch"),
				New: func(t *testing.T) conformance.Backend {
					th := c.thing(t)
					p := fmt.Sprintf(`{resource: %s, replicas: 0, restoreAfter: true}`, yamlOf(t, th.ref))
					return th.world(properties[plan.ScaleProperties](t, p), `{spec: {replicas: 4}}`, "spec", "replicas")
				},
			})
		})
	}
}

func TestWaitConforms(t *testing.T) {
	h := newHouse(t)
	for name, c := range map[string]struct{ property, status string }{
		"for a condition":     {"condition: Ready", `{status: {conditions: [{type: Ready, status: "True"}]}}`},
		"for an expression":   {"until: object.status.done == true", `{status: {done: true}}`},
		"over a whole object": {"until: object.status.done && object.spec.size == 1", `{status: {done: true}}`},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, conformance.Case{
				Executor: executor(t, "wait"), Rights: rights("example.org", "apps", "get", "list", "watch"), Waits: true, Idle: true,
				New: func(t *testing.T) conformance.Backend {
					a := h.app(t)
					met := a.merge(c.status, "status")
					return conformance.Backend{
						Call:    h.call(properties[plan.WaitProperties](t, fmt.Sprintf("resource: %s\n%s", yamlOf(t, a.ref), c.property))),
						Connect: h.connect, State: a.state("spec"), Remove: a.remove,
						Settle: func(t *testing.T, _ *executors.Call) { met(t) },
					}
				},
			})
		})
	}
}

func TestSuspendConforms(t *testing.T) {
	h := newHouse(t)
	for name, text := range map[string]string{"for a while": "duration: 10m", "until somebody resumes": "{}"} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, conformance.Case{
				Executor: executor(t, "suspend"), Idle: true,
				New: func(t *testing.T) conformance.Backend {
					return conformance.Backend{
						Call: h.call(properties[plan.SuspendProperties](t, text)), Connect: h.connect,
						Settle: func(_ *testing.T, c *executors.Call) { c.Recorded.Resumed = c.Recorded.ResumeAt == nil },
					}
				},
			})
		})
	}
}

func TestWebhookConforms(t *testing.T) {
	h := newHouse(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hook"}, StringData: map[string]string{"token": "Bearer s3cret"}}
	if _, err := h.kube.CoreV1().Secrets(h.ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "webhook"), Rights: rights("", "secrets", "get"), Idle: true, Repeats: true,
		New: func(t *testing.T) conformance.Backend {
			keys := &atomic.Int64{}
			call := h.call(nil)
			server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
				if r.Header.Get("Authorization") != "Bearer s3cret" || r.Header.Get("Idempotency-Key") != call.Run+"/work" {
					w.WriteHeader(nethttp.StatusBadRequest)
					return
				}
				keys.Add(1)
			}))
			t.Cleanup(server.Close)
			call.Properties = &plan.WebhookProperties{
				URL: server.URL, Body: map[string]any{"text": "hello"},
				Headers: map[string]plan.HeaderValue{"Authorization": {SecretKeyRef: &document.SecretKeyRef{Name: "hook", Key: "token"}}},
			}
			return conformance.Backend{Call: call, Connect: h.connect, Effects: func(*testing.T) int { return int(keys.Load()) }}
		},
	})
}

func TestJobConforms(t *testing.T) {
	h := newHouse(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "job"), Rights: rights("batch", "jobs", "get", "list", "watch", "create"),
		Courtesies: append(rights("", "pods", "list"), append(rights("", "pods/log", "get"), rights("batch", "jobs", "delete")...)...),
		New: func(t *testing.T) conformance.Backend {
			// Nobody runs this Job but the test, which says how it ends.
			call := h.call(properties[plan.JobProperties](t, `
template: {managedBy: test.maint.dev/nobody, template: {spec: {containers: [{name: a, image: "example.org/a:1"}]}}}`))
			ours := func(t *testing.T) []batchv1.Job {
				t.Helper()
				list, err := h.kube.BatchV1().Jobs(h.ns).List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var out []batchv1.Job
				for _, j := range list.Items {
					if j.Annotations["maint.dev/job-of"] == call.Run+"/work#1" {
						out = append(out, j)
					}
				}
				return out
			}
			return conformance.Backend{
				Call: call, Connect: h.connect,
				State:   func(t *testing.T) string { return fmt.Sprintf("%d Jobs", len(ours(t))) },
				Effects: func(t *testing.T) int { return len(ours(t)) },
				Settle:  func(t *testing.T, _ *executors.Call) { h.succeed(t, ours(t)[0]) },
			}
		},
	})
}

// succeed writes the status of a Job that nobody else manages.
func (h *house) succeed(t *testing.T, j batchv1.Job) {
	t.Helper()
	now := metav1.Now()
	j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1}
	for _, c := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	if _, err := h.kube.BatchV1().Jobs(h.ns).UpdateStatus(context.WithoutCancel(t.Context()), &j, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
