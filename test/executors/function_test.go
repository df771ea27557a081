package executors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/functiontest"
	exechttp "github.com/kubectl-maint/kubectl-maint/pkg/executors/http"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// dialing gives clients that may also dial a function on this machine.
func (h *house) dialing(t *testing.T, rights []conformance.Right, wrap conformance.Wrap) (executors.Clients, string) {
	t.Helper()
	clients, account := h.connect(t, rights, wrap)
	clients.Dial = exechttp.NewDialer(exechttp.Rules{Allow: []string{"127.0.0.1/32"}})
	return clients, account
}

// calling is a step that calls a function, as an account with these rights.
func (h *house) calling(t *testing.T, f functiontest.Function, rights []conformance.Right) executors.Call {
	t.Helper()
	call := h.call(&plan.FunctionProperties{Endpoint: functiontest.Serve(t, f), TLS: &plan.FunctionTLS{Insecure: true}})
	call.Clients, call.Plan.Account = h.dialing(t, rights, unwrapped)
	return call
}

// desires is a function that always wants the same.
func desires(t *testing.T, objects map[string]string) functiontest.Function {
	t.Helper()
	desired := &fnv1.State{Resources: map[string]*fnv1.Resource{}}
	for name, text := range objects {
		desired.Resources[name] = &fnv1.Resource{Resource: structOf(t, text)}
	}
	return func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		return &fnv1.RunFunctionResponse{Desired: desired}, nil
	}
}

func structOf(t *testing.T, text string) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(object(t, text).Object)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// configMap is the data of a ConfigMap as text, empty for one that is not there.
func (h *house) configMap(t *testing.T, name string) string {
	t.Helper()
	cm, err := h.kube.CoreV1().ConfigMaps(h.ns).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(cm.Data)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFunctionConforms(t *testing.T) {
	h := newHouse(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}, StringData: map[string]string{"token": "s3cret"}}
	if _, err := h.kube.CoreV1().Secrets(h.ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	granted := rights("", "secrets", "get")
	granted = append(granted, rights("apps", "deployments", "get", "list")...)
	granted = append(granted, rights("", "configmaps", "get", "patch", "create")...)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "function"), Rights: granted, Repeats: true,
		New: func(t *testing.T) conformance.Backend {
			d := h.deployment(t)
			settled := &atomic.Int64{}
			call := h.call(&plan.FunctionProperties{
				TLS: &plan.FunctionTLS{Insecure: true}, Credentials: []plan.FunctionCredential{{Name: "cloud", SecretName: "cloud"}},
				Endpoint: functiontest.Serve(t, counting(t, d.name, settled)),
			})
			return conformance.Backend{
				Call: call, Connect: h.dialing, Effects: func(*testing.T) int { return int(settled.Load()) },
				State: func(t *testing.T) string { return h.configMap(t, d.name) },
			}
		},
	})
}

// What a pipeline does is done once, wherever it is cut off.
func TestPipelineConforms(t *testing.T) {
	h := newHouse(t)
	granted := rights("apps", "deployments", "get", "list")
	granted = append(granted, rights("", "secrets", "get")...)
	granted = append(granted, rights("", "configmaps", "get", "patch", "create")...)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}, StringData: map[string]string{"token": "s3cret"}}
	if _, err := h.kube.CoreV1().Secrets(h.ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	passes := func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		return &fnv1.RunFunctionResponse{Desired: r.GetDesired(), Context: r.GetContext()}, nil
	}
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "pipeline"), Rights: granted, Repeats: true,
		New: func(t *testing.T) conformance.Backend {
			d := h.deployment(t)
			settled := &atomic.Int64{}
			call := h.call(&plan.PipelineProperties{Functions: []plan.PipelineFunction{
				{Name: "count", TLS: &plan.FunctionTLS{Insecure: true}, Credentials: []plan.FunctionCredential{{Name: "cloud", SecretName: "cloud"}}, Endpoint: functiontest.Serve(t, counting(t, d.name, settled))},
				{Name: "pass", TLS: &plan.FunctionTLS{Insecure: true}, Endpoint: functiontest.Serve(t, passes)},
			}})
			return conformance.Backend{
				Call: call, Connect: h.dialing, Effects: func(*testing.T) int { return int(settled.Load()) },
				State: func(t *testing.T) string { return h.configMap(t, d.name) },
			}
		},
	})
}

// counting is a function that looks at a Deployment, by name and by label, and
// wants its replicas written into a ConfigMap.
func counting(t *testing.T, name string, settled *atomic.Int64) functiontest.Function {
	requires := &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
		"it": {ApiVersion: "apps/v1", Kind: "Deployment", Match: &fnv1.ResourceSelector_MatchName{MatchName: name}},
		"all": {ApiVersion: "apps/v1", Kind: "Deployment", Match: &fnv1.ResourceSelector_MatchLabels{
			MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"app": "orders"}},
		}},
	}}
	return func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		answer := &fnv1.RunFunctionResponse{Requirements: requires}
		it, token := r.GetRequiredResources()["it"].GetItems(), r.GetCredentials()["cloud"].GetCredentialData().GetData()["token"]
		if len(it) == 0 || string(token) != "s3cret" || len(r.GetRequiredResources()["all"].GetItems()) == 0 {
			return answer, nil
		}
		settled.Add(1)
		replicas := it[0].GetResource().GetFields()["spec"].GetStructValue().GetFields()["replicas"].GetNumberValue()
		answer.Desired = &fnv1.State{Resources: map[string]*fnv1.Resource{
			"count": {Resource: structOf(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {replicas: "%v"}}`, name, replicas))},
		}}
		return answer, nil
	}
}

func TestAFunctionAppliesWhatItDesires(t *testing.T) {
	h := newHouse(t)
	granted := append(rights("", "configmaps", "get", "patch", "create"), rights("example.org", "apps", "get", "patch", "create")...)
	app := h.app(t)
	call := h.calling(t, desires(t, map[string]string{
		"b": `{apiVersion: v1, kind: ConfigMap, metadata: {name: plans}, data: {size: "5"}}`,
		"a": fmt.Sprintf(`{apiVersion: example.org/v1, kind: App, metadata: {name: %s}, spec: {window: {open: true}}}`, app.name),
	}), granted)
	first := pass(t, "function", &call)
	if first.State != executors.Done {
		t.Fatalf("%+v", first)
	}
	want := []run.Change{
		{APIVersion: "example.org/v1", Kind: "App", Namespace: h.ns, Name: app.name, What: "applied"},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: h.ns, Name: "plans", What: "created"},
	}
	if fmt.Sprint(first.Changed) != fmt.Sprint(want) {
		t.Errorf("lists %v, want %v", first.Changed, want)
	}
	for _, word := range []string{"applied App/" + app.name, "created ConfigMap/plans"} {
		if !strings.Contains(first.Message, word) {
			t.Errorf("%q does not say %q", first.Message, word)
		}
	}
	if owner := ownerOf(app.read(t)); owner != call.Plan.Manager {
		t.Errorf("the App's last manager is %q, want the plan's %q", owner, call.Plan.Manager)
	}
	second := pass(t, "function", &call)
	if len(second.Changed) > 0 || !strings.Contains(second.Message, "as desired already: App/"+app.name+", ConfigMap/plans") {
		t.Errorf("the second time it ends as %+v, want nothing changed", second)
	}
	app.merge(`{metadata: {annotations: {somebody: was here}}}`)(t)
	if third := pass(t, "function", &call); len(third.Changed) > 0 {
		t.Errorf("after somebody else's write it lists %v as its own", third.Changed)
	}
}

// ownerOf is the manager that applied to an object.
func ownerOf(u *unstructured.Unstructured) string {
	for _, entry := range u.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			return entry.Manager
		}
	}
	return ""
}

func TestAFunctionDoesNotTakeWhatOthersOwn(t *testing.T) {
	h := newHouse(t)
	app := h.app(t)
	app.merge(`{spec: {size: 3}}`)(t) // as somebody
	f := desires(t, map[string]string{
		"it":  fmt.Sprintf(`{apiVersion: example.org/v1, kind: App, metadata: {name: %s}, spec: {size: 7}}`, app.name),
		"an1": `{apiVersion: v1, kind: ConfigMap, metadata: {name: before-it}}`,
	})
	call := h.calling(t, f, append(rights("", "configmaps", "get", "patch", "create"), rights("example.org", "apps", "get", "patch")...))
	out := pass(t, "function", &call)
	refused(t, out, true, "FieldConflict", "desired.resources.it", "App/"+app.name, "spec.size", `"somebody"`, "force: true")
	if len(out.Changed) != 1 || out.Changed[0].Name != "before-it" {
		t.Errorf("lists %v, want what it changed before", out.Changed)
	}
	if got := app.state("spec", "size")(t); got != "3" {
		t.Errorf("the size is %s", got)
	}
	call.Properties.(*plan.FunctionProperties).Force = true
	if out := pass(t, "function", &call); out.State != executors.Done || app.state("spec", "size")(t) != "7" {
		t.Errorf("with force it ends as %+v, the size is %s", out, app.state("spec", "size")(t))
	}
}

func TestAFunctionActsWithThePlansRights(t *testing.T) {
	h := newHouse(t)
	wantsSecrets := func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		return &fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
			"all": {ApiVersion: "v1", Kind: "Secret", Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{}}},
		}}}, nil
	}
	call := h.calling(t, wantsSecrets, nil)
	account := "serviceaccount " + h.ns + "/" + call.Plan.Account
	refused(t, pass(t, "function", &call), true, executors.ReasonForbidden, account, "list secrets", "grant list on secrets")

	elsewhere := desires(t, map[string]string{"it": `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}`})
	call = h.calling(t, elsewhere, rights("", "configmaps", "get", "patch", "create"))
	refused(t, pass(t, "function", &call), true, executors.ReasonForbidden, "configmaps", "in namespace kube-system")

	node := desires(t, map[string]string{"it": `{apiVersion: v1, kind: Node, metadata: {name: n1, namespace: ignored}}`})
	call = h.calling(t, node, rights("", "configmaps", "get"))
	refused(t, pass(t, "function", &call), true, executors.ReasonForbidden, `get nodes "n1": grant get on nodes`)
}

func TestWhatTheAPIServerRefusesOfADesire(t *testing.T) {
	h := newHouse(t)
	d := h.deployment(t)
	wrong := desires(t, map[string]string{"it": fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {replicas: -1}}`, d.name)})
	call := h.calling(t, wrong, rights("apps", "deployments", "get", "patch"))
	call.Properties.(*plan.FunctionProperties).Force = true
	refused(t, pass(t, "function", &call), true, "Invalid", "spec.replicas", "-1")
	copied := d.read(t)
	copied.SetManagedFields(nil)
	copied.SetResourceVersion("1")
	stale := desires(t, map[string]string{"it": yamlOf(t, copied.Object)})
	call = h.calling(t, stale, rights("apps", "deployments", "get", "patch"))
	call.Properties.(*plan.FunctionProperties).Force = true
	refused(t, executor(t, "function").Pass(t.Context(), call), false, executors.ReasonConflict, "desired.resources.it", "Deployment/"+d.name)
}
