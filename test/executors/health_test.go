package executors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const readyStatus = `{status: {conditions: [{type: Ready, status: "True"}]}}`

// healthWorld is one around an object that becomes healthy when it is settled.
func healthWorld(t *testing.T, th *thing, text string, settle func(*testing.T)) conformance.Backend {
	t.Helper()
	return conformance.Backend{
		Call: th.h.call(properties[plan.HealthProperties](t, text)), Connect: th.h.connect, State: th.state("spec"), Remove: th.remove,
		Settle: func(t *testing.T, _ *executors.Call) { settle(t) },
	}
}

func TestHealthCheckOfOneConforms(t *testing.T) {
	h := newHouse(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "health-check"), Rights: rights("example.org", "apps", "get", "list", "watch"), Idle: true,
		New: func(t *testing.T) conformance.Backend {
			a := h.app(t)
			return healthWorld(t, a, fmt.Sprintf(`{resource: %s}`, yamlOf(t, a.ref)), a.merge(readyStatus, "status"))
		},
	})
}

func TestHealthCheckOfASelectionConforms(t *testing.T) {
	h := newHouse(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "health-check"), Rights: rights("example.org", "apps", "list", "watch"), Idle: true,
		New: func(t *testing.T) conformance.Backend {
			a := h.app(t)
			a.merge(`{metadata: {labels: {world: ` + a.name + `}}}`)(t)
			return healthWorld(t, a, `{selector: {apiVersion: example.org/v1, kind: App, matchLabels: {world: `+a.name+`}}}`, a.merge(readyStatus, "status"))
		},
	})
}

func TestHealthCheckOfAllWorkloadsConforms(t *testing.T) {
	h := newHouse(t)
	needed := append(rights("apps", "deployments", "list", "watch"), rights("apps", "statefulsets", "list")...)
	needed = append(append(needed, rights("apps", "daemonsets", "list")...), rights("batch", "jobs", "list")...)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "health-check"), Rights: needed, Idle: true,
		New: func(t *testing.T) conformance.Backend {
			d := h.rollout(t, "Deployment", "  replicas: 1\n  paused: true")
			d.observed(t)
			d.merge(`{metadata: {labels: {world: ` + d.name + `}}}`)(t)
			w := healthWorld(t, d, `{selector: {matchExpressions: [{key: world, operator: In, values: [`+d.name+`]}]}}`, func(t *testing.T) {
				d.merge(`{spec: {replicas: 0}}`)(t)
				d.observed(t)
			})
			w.State = d.state("spec", "template", "spec")
			return w
		},
	})
}

// checkHealth is one look by somebody who may see everything in the house.
func (h *house) checkHealth(t *testing.T, text string) executors.Outcome {
	t.Helper()
	granted := append(rights("apps", "*", "get", "list", "watch"), rights("batch", "jobs", "get", "list", "watch")...)
	granted = append(append(granted, rights("example.org", "apps", "get", "list", "watch")...), rights("", "configmaps", "get", "list", "watch")...)
	call := h.as(t, h.call(properties[plan.HealthProperties](t, text)), granted)
	return executor(t, "health-check").Pass(t.Context(), call)
}

func TestWhatAHealthCheckWatches(t *testing.T) {
	h := newHouse(t)
	a := h.app(t)
	h.rollout(t, "Deployment", "  replicas: 1")
	now := h.call(nil).Now
	for name, c := range map[string]struct {
		properties string
		watch      executors.Watch
		wake       time.Time
	}{
		"one object":             {fmt.Sprintf(`{resource: %s}`, yamlOf(t, a.ref)), executors.Watch{Resource: appsGVR(), Namespace: h.ns, Name: a.name}, time.Time{}},
		"the objects of a kind":  {`{selector: {apiVersion: example.org/v1, kind: App, matchExpressions: [{key: x, operator: DoesNotExist}]}}`, executors.Watch{Resource: appsGVR(), Namespace: h.ns, Selector: "!x"}, time.Time{}},
		"workloads of all kinds": {`{all: true}`, executors.Watch{Resource: deploymentsGVR(), Namespace: h.ns}, now.Add(5 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			out := h.checkHealth(t, c.properties)
			if out.State != executors.NotYet || out.Watch == nil || *out.Watch != c.watch || !out.WakeAt.Equal(c.wake) || !strings.Contains(out.Message, "not yet: ") {
				t.Errorf("%+v, want a watch on %+v until %s", out, c.watch, c.wake)
			}
		})
	}
}

func TestWhatAHealthCheckSays(t *testing.T) {
	h := newHouse(t)
	cm := h.thing(t, configMapsGVR(), `{apiVersion: v1, kind: ConfigMap}`)
	fresh := h.app(t)
	if out := h.checkHealth(t, fmt.Sprintf(`{resource: %s}`, yamlOf(t, cm.ref))); out.State != executors.Done || fmt.Sprint(out.Outputs) != "map[healthy:1 total:1]" {
		t.Errorf("a kind without status: %+v", out)
	}
	if out := h.checkHealth(t, fmt.Sprintf(`{resource: %s}`, yamlOf(t, fresh.ref))); out.State != executors.NotYet || !strings.Contains(out.Message, "has no status yet") {
		t.Errorf("an object whose controller has not spoken: %+v", out)
	}
	refused(t, h.checkHealth(t, `{selector: {apiVersion: example.org/v1, kind: App, matchLabels: {no: body}}}`), true, executors.ReasonNotFound, "App with the labels no=body in namespace "+h.ns)
	refused(t, h.checkHealth(t, `{all: true}`), true, executors.ReasonNotFound, "Deployment, StatefulSet, DaemonSet, Job")
	refused(t, h.checkHealth(t, `{}`), true, executors.ReasonInvalid, "resource, selector and all")
	refused(t, h.checkHealth(t, `{resource: {apiVersion: v1, kind: ConfigMap, name: never}}`), true, executors.ReasonNotFound, "never")
}

func TestAJobThatFailedFailsTheCheck(t *testing.T) {
	h := newHouse(t)
	job := func(meta string) *thing {
		return h.thing(t, jobsGVR(), `{apiVersion: batch/v1, kind: Job, metadata: `+meta+`, spec: {managedBy: test.maint.dev/nobody, template: {spec: {restartPolicy: Never, containers: [{name: a, image: "example.org/a:1"}]}}}}`)
	}
	cron := h.thing(t, schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}, `{apiVersion: batch/v1, kind: CronJob, spec: {suspend: true, schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "example.org/a:1"}]}}}}}}`)
	own, scheduled, other := job(`{annotations: {maint.dev/job-of: another}}`), job(`{ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: `+cron.name+`, uid: `+string(cron.read(t).GetUID())+`, controller: true}]}`), job(`{}`)
	now := metav1.Now().UTC().Format(time.RFC3339)
	for _, th := range []*thing{own, scheduled, other} {
		th.merge(`{status: {startTime: "`+now+`", conditions: [{type: FailureTarget, status: "True", lastTransitionTime: "`+now+`"}, {type: Failed, status: "True", reason: BackoffLimitExceeded, lastTransitionTime: "`+now+`"}]}}`, "status")(t)
	}
	out := h.checkHealth(t, `{all: true}`)
	refused(t, out, false, "JobFailed", "Job/"+other.name, "BackoffLimitExceeded", "0 of 1 healthy")
	if strings.Contains(out.Message, own.name) || strings.Contains(out.Message, scheduled.name) || fmt.Sprint(out.Outputs) != "map[healthy:0 total:1]" {
		t.Errorf("Jobs that pass count: %+v", out)
	}
}

func TestNodesAreCheckedByTheirRules(t *testing.T) {
	h := newHouse(t)
	name := h.ns
	nodes := h.dynamic.Resource(nodesGVR())
	u := object(t, `{apiVersion: v1, kind: Node, metadata: {name: `+name+`}, spec: {unschedulable: true}}`)
	if _, err := nodes.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) })
	th := &thing{h: h, name: name, in: nodes}
	th.merge(`{status: {conditions: [{type: Ready, status: "True"}]}}`, "status")(t)
	call := h.call(&plan.HealthProperties{Selector: &plan.ObjectSelector{APIVersion: "v1", Kind: "Node", MatchLabels: map[string]string{"x": "y"}}})
	call.Clients = executors.Clients{Kube: h.kube, Dynamic: h.dynamic, Mapper: h.mapper}
	refused(t, executor(t, "health-check").Pass(t.Context(), call), true, executors.ReasonNotFound, "Node with the labels x=y")
	call.Properties = &plan.HealthProperties{Resource: &plan.ResourceRef{APIVersion: "v1", Kind: "Node", Name: name}}
	out := executor(t, "health-check").Pass(t.Context(), call)
	if out.State != executors.Done || !strings.Contains(out.Message, "Node/"+name+" is cordoned") {
		t.Errorf("%+v", out)
	}
}

func jobsGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
}

func nodesGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
}
