package executors_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func configMapsGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

func TestApplyToWhatIsThereConforms(t *testing.T) {
	h := newHouse(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "apply-object"), Rights: rights("example.org", "apps", "get", "patch"),
		New: func(t *testing.T) conformance.Backend {
			a := h.app(t)
			p := fmt.Sprintf(`
object: {apiVersion: example.org/v1, kind: App, metadata: {name: %s}, spec: {mode: maintenance, window: {open: true}}}
remove: [/spec/keep/me, /spec/never]
`, a.name)
			w := a.world(properties[plan.ApplyProperties](t, p), "{}", "spec")
			w.Remove, w.Meddle = nil, nil
			return w
		},
	})
}

func TestApplyThatCreatesConforms(t *testing.T) {
	h := newHouse(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "apply-object"), Rights: rights("", "configmaps", "get", "create", "patch"),
		New: func(t *testing.T) conformance.Backend {
			th := h.nothing(configMapsGVR())
			p := fmt.Sprintf(`{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {mode: maintenance}}}`, th.name)
			return conformance.Backend{Call: h.call(properties[plan.ApplyProperties](t, p)), Connect: h.connect, State: th.stateOrAbsence("data")}
		},
	})
}

// nothing is a name of an object that is not there.
func (h *house) nothing(gvr schema.GroupVersionResource) *thing {
	return &thing{h: h, name: fmt.Sprintf("orders-%d", h.worlds.Add(1)), in: h.dynamic.Resource(gvr).Namespace(h.ns)}
}

// stateOrAbsence is as state, for an object that comes or goes.
func (th *thing) stateOrAbsence(path ...string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		if _, err := th.in.Get(t.Context(), th.name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return "absent"
		}
		return th.state(path...)(t)
	}
}

func TestAnApplyNamesTheOwnersOfWhatItWouldTake(t *testing.T) {
	h := newHouse(t)
	d := h.deployment(t)
	d.merge(`{spec: {replicas: 4, minReadySeconds: 3}}`)(t) // as somebody
	p := fmt.Sprintf(`{object: {apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {replicas: 7, minReadySeconds: 9}}}`, d.name)
	call := h.as(t, h.call(properties[plan.ApplyProperties](t, p)), rights("apps", "deployments", "get", "patch"))
	refused(t, pass(t, "apply-object", &call), true, "FieldConflict", "Deployment/"+d.name, `spec.replicas belongs to "somebody"`, "spec.minReadySeconds", "force: true")
	if got := d.state("spec", "replicas")(t); got != "4" {
		t.Errorf("the refused apply made it %s", got)
	}
	call.Properties.(*plan.ApplyProperties).Force = true
	out := pass(t, "apply-object", &call)
	if got := d.state("spec", "replicas")(t); out.State != executors.Done || got != "7" || !strings.Contains(out.Message, "spec.replicas: 4 → 7") {
		t.Errorf("with force it is %s: %+v", got, out)
	}
}

func TestWhatAnApplyReports(t *testing.T) {
	h := newHouse(t)
	th := h.nothing(configMapsGVR())
	p := fmt.Sprintf(`{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {mode: maintenance}}}`, th.name)
	call := h.as(t, h.call(properties[plan.ApplyProperties](t, p)), rights("", "configmaps", "get", "create", "patch"))
	rehearsal := call
	rehearsal.DryRun = true
	dry := pass(t, "apply-object", &rehearsal)
	if text, _ := dry.Outputs["difference"].(string); !strings.Contains(text, `data.mode: absent → "maintenance"`) || !strings.Contains(dry.Message, text) {
		t.Errorf("the dry run shows %+v", dry)
	}
	out := pass(t, "apply-object", &call)
	live := th.read(t)
	want := map[string]any{"name": th.name, "namespace": h.ns, "uid": string(live.GetUID()), "resourceVersion": live.GetResourceVersion(), "created": true}
	if fmt.Sprint(out.Outputs) != fmt.Sprint(want) || len(out.Changed) != 1 || out.Changed[0].What != "created" {
		t.Errorf("%+v, want %v", out, want)
	}
	if fields := live.GetManagedFields(); len(fields) != 1 || fields[0].Manager != call.Plan.Manager || fields[0].Operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("its fields belong to %+v", fields)
	}
	again := h.as(t, h.call(call.Properties), rights("", "configmaps", "get", "create", "patch"))
	out = pass(t, "apply-object", &again)
	want["created"] = false
	if fmt.Sprint(out.Outputs) != fmt.Sprint(want) || len(out.Changed) != 0 {
		t.Errorf("another run's apply of the same: %+v, want %v", out, want)
	}
}

func TestAnApplyTakesOwnershipOfWhatIsSoAlready(t *testing.T) {
	h := newHouse(t)
	a := h.app(t)
	p := fmt.Sprintf(`{object: {apiVersion: example.org/v1, kind: App, metadata: {name: %s}, spec: {size: 1}}}`, a.name)
	call := h.as(t, h.call(properties[plan.ApplyProperties](t, p)), rights("example.org", "apps", "get", "patch"))
	first, second := pass(t, "apply-object", &call), pass(t, "apply-object", &call)
	if len(first.Changed) != 1 || first.Changed[0].What != "field owners" || len(second.Changed) != 0 {
		t.Errorf("first %+v, then %+v", first, second)
	}
}

func TestAppliesThatCanNeverBeRight(t *testing.T) {
	h := newHouse(t)
	granted := rights("", "configmaps", "get", "create", "patch")
	for name, c := range map[string]struct {
		properties string
		words      []string
	}{
		"a null that a template yielded":         {`{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: null}}}`, []string{"object.data.a is null", "remove"}},
		"a null in a list":                       {`{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, finalizers: [a, null]}}}`, []string{"object.metadata.finalizers[1] is null"}},
		"an object without a name":               {`{object: {apiVersion: v1, kind: ConfigMap, metadata: {generateName: x}}}`, []string{"metadata.name"}},
		"a field of the API server's":            {`{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, resourceVersion: "1"}}}`, []string{"object.metadata.resourceVersion"}},
		"what is no pointer":                     {`{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}, remove: [data]}`, []string{"remove", `"data"`}},
		"a pointer to the object's identity":     {`{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}, remove: [/metadata/name]}`, []string{"/metadata/name cannot go"}},
		"a field that is applied and removed":    {`{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}, remove: [/data/a]}`, []string{"/data/a is in object, too"}},
		"an object that the API server does not": {`{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: X_Y}}}`, []string{"X_Y"}},
	} {
		t.Run(name, func(t *testing.T) {
			call := h.as(t, h.call(properties[plan.ApplyProperties](t, c.properties)), granted)
			refused(t, pass(t, "apply-object", &call), true, executors.ReasonInvalid, c.words...)
		})
	}
}

func TestRemovalsOfFieldsThatTheAPIServerFillsIn(t *testing.T) {
	h := newHouse(t)
	d := h.deployment(t)
	p := fmt.Sprintf(`{object: {apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}}, remove: [/spec/replicas, /spec/template/spec/containers/0/env, "/metadata/labels/app"]}`, d.name)
	call := h.as(t, h.call(properties[plan.ApplyProperties](t, p)), rights("apps", "deployments", "get", "patch"))
	out := pass(t, "apply-object", &call)
	if got := d.state("spec", "replicas")(t); got != "1" || strings.Contains(d.state("spec")(t), "MODE") || d.state("metadata", "labels")(t) != `{"tier":"silver"}` {
		t.Fatalf("replicas are %s: %+v", got, out)
	}
	if out := pass(t, "apply-object", &call); len(out.Changed) > 0 {
		t.Errorf("the second time changed %v", out.Changed)
	}
}

func TestAClusterScopedObjectGetsNoNamespace(t *testing.T) {
	h := newHouse(t)
	call := h.as(t, h.call(properties[plan.ApplyProperties](t, fmt.Sprintf(`{object: {apiVersion: v1, kind: Namespace, metadata: {name: %s, namespace: ignored, labels: {a: b}}}}`, h.ns))), nil)
	h.grantNamespaces(t, call.Plan.Account)
	var out executors.Outcome
	eventuallyDone(t, "the ClusterRole is in force", func() bool {
		out = pass(t, "apply-object", &call)
		return out.State == executors.Done
	})
	if out.Outputs["namespace"] != "" || out.Outputs["name"] != h.ns {
		t.Errorf("%+v", out)
	}
}

func TestAnAppliedSecretIsNotShown(t *testing.T) {
	h := newHouse(t)
	th := h.nothing(schema.GroupVersionResource{Version: "v1", Resource: "secrets"})
	p := fmt.Sprintf(`{object: {apiVersion: v1, kind: Secret, metadata: {name: %s}, stringData: {token: hush}}}`, th.name)
	call := h.as(t, h.call(properties[plan.ApplyProperties](t, p)), rights("", "secrets", "get", "create", "patch"))
	rehearsal := call
	rehearsal.DryRun = true
	for _, out := range []executors.Outcome{pass(t, "apply-object", &rehearsal), pass(t, "apply-object", &call)} {
		if text := fmt.Sprint(out); out.State != executors.Done || strings.Contains(text, "hush") || strings.Contains(text, "aHVzaA") {
			t.Errorf("%+v", out)
		}
	}
	if got := th.state("data", "token")(t); got != `"aHVzaA=="` {
		t.Errorf("the token is %s", got)
	}
}
