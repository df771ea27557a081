package function_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/functiontest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// pipelineOf is a step that calls functions in plaintext, named a, b, and so on.
func pipelineOf(endpoints ...string) executors.Call {
	call := callOf("")
	p := &plan.PipelineProperties{}
	for i, endpoint := range endpoints {
		p.Functions = append(p.Functions, plan.PipelineFunction{Name: string(rune('a' + i)), Endpoint: endpoint, TLS: &plan.FunctionTLS{Insecure: true}, Input: map[string]any{"n": int64(i)}})
	}
	call.Properties = p
	return call
}

func pipeline(c executors.Call) *plan.PipelineProperties {
	return c.Properties.(*plan.PipelineProperties)
}

// applied are the objects that a call writes, as kind/name=data.
func applied(call *executors.Call) *[]string {
	var all []string
	call.Clients.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch := a.(clienttesting.PatchAction)
		if patch.GetPatchType() != types.ApplyPatchType {
			return false, nil, nil
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(patch.GetPatch()); err != nil {
			return true, nil, err
		}
		all = append(all, fmt.Sprintf("%s/%s=%v", u.GetKind(), u.GetName(), u.Object["data"]))
		u.SetResourceVersion("2")
		return true, u, nil
	})
	return &all
}

// adding is a function that adds a ConfigMap to what is desired, and its name to the context.
func adding(t *testing.T, name string, results ...*fnv1.Result) functiontest.Function {
	t.Helper()
	return func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		seen := r.GetContext().GetFields()["seen"].GetStringValue()
		desired := r.GetDesired()
		if desired.Resources == nil {
			desired.Resources = map[string]*fnv1.Resource{}
		}
		config, err := structpb.NewStruct(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"after": seen}})
		if err != nil {
			return nil, err
		}
		desired.Resources[name] = &fnv1.Resource{Resource: config}
		handed, err := structpb.NewStruct(map[string]any{"seen": seen + name})
		if err != nil {
			return nil, err
		}
		output, err := structpb.NewStruct(map[string]any{"n": r.GetInput().GetFields()["n"].GetNumberValue(), "desired": len(desired.GetResources())})
		if err != nil {
			return nil, err
		}
		return &fnv1.RunFunctionResponse{Desired: desired, Context: handed, Output: output, Results: results}, nil
	}
}

func TestAFunctionIsHandedWhatTheOneBeforeDesires(t *testing.T) {
	warns := &fnv1.Result{Severity: fnv1.Severity_SEVERITY_WARNING, Message: "nearly full"}
	call := pipelineOf(functiontest.Serve(t, adding(t, "x")), functiontest.Serve(t, adding(t, "y", warns)), functiontest.Serve(t, adding(t, "z")))
	wrote := applied(&call)
	out := function.Pipeline{}.Pass(t.Context(), call)
	ends(t, out, executors.Done, false, "", "pipeline of 3 functions succeeded", "created ConfigMap/x, created ConfigMap/y, created ConfigMap/z", "b: warning: nearly full")
	if diff := cmp.Diff([]string{"ConfigMap/x=map[after:]", "ConfigMap/y=map[after:x]", "ConfigMap/z=map[after:xy]"}, *wrote); diff != "" {
		t.Error(diff)
	}
	said := func(n, desired int64) map[string]any {
		return map[string]any{"output": map[string]any{"n": n, "desired": desired}}
	}
	second := said(1, 2)
	second["results"] = []any{map[string]any{"severity": "warning", "message": "nearly full"}}
	if diff := cmp.Diff(map[string]any{"a": said(0, 1), "b": second, "c": said(2, 3)}, out.Outputs); diff != "" {
		t.Error(diff)
	}
	if len(out.Changed) != 3 {
		t.Errorf("lists %v", out.Changed)
	}
}

// What the last function leaves out is not desired, whoever wanted it before.
func TestOnlyWhatTheLastFunctionDesiresIsApplied(t *testing.T) {
	call := pipelineOf(functiontest.Serve(t, adding(t, "x")), functiontest.Serve(t, said(&fnv1.RunFunctionResponse{})))
	wrote := applied(&call)
	ends(t, function.Pipeline{}.Pass(t.Context(), call), executors.Done, false, "", "pipeline of 2 functions succeeded")
	if len(*wrote) > 0 {
		t.Errorf("applied %q", *wrote)
	}
}

func TestAFatalResultOfAnyFunctionAppliesNothing(t *testing.T) {
	fatal := &fnv1.Result{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "no room"}
	for name, where := range map[string]int{"the first": 0, "one in between": 1, "the last": 2} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			var endpoints []string
			for i := range 3 {
				var results []*fnv1.Result
				if i == where {
					results = append(results, fatal)
				}
				answer := adding(t, string(rune('x'+i)), results...)
				endpoints = append(endpoints, functiontest.Serve(t, func(ctx context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
					calls.Add(1)
					return answer(ctx, r)
				}))
			}
			call := pipelineOf(endpoints...)
			wrote := applied(&call)
			out := function.Pipeline{}.Pass(t.Context(), call)
			ends(t, out, executors.Failed, false, "FunctionFatal", "function "+string(rune('a'+where))+" at "+endpoints[where]+" failed: no room")
			if len(*wrote) > 0 || calls.Load() != int32(where)+1 || len(out.Outputs) != where+1 {
				t.Errorf("applied %q, %d calls, kept %v", *wrote, calls.Load(), out.Outputs)
			}
		})
	}
}

// A function requires for itself alone, and what it required at last is kept.
func TestEachFunctionOfAPipelineRequiresForItself(t *testing.T) {
	requires := &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
		"one": {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchName{MatchName: "b"}},
		"all": {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"app": "orders"}}}},
	}}
	var rounds, others atomic.Int32
	first := functiontest.Serve(t, func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rounds.Add(1)
		return &fnv1.RunFunctionResponse{Desired: r.GetDesired(), Requirements: requires}, nil
	})
	second := functiontest.Serve(t, func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		others.Store(int32(len(r.GetRequiredResources())))
		return &fnv1.RunFunctionResponse{Desired: r.GetDesired()}, nil
	})
	out := function.Pipeline{}.Pass(t.Context(), pipelineOf(first, second))
	ends(t, out, executors.Done, false, "")
	if rounds.Load() != 2 || others.Load() != 0 {
		t.Errorf("the first was called %d times, the second saw %d requirements", rounds.Load(), others.Load())
	}
	want := map[string]any{"a": map[string]any{"requirements": map[string]any{
		"one": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "matchName": "b"},
		"all": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "matchLabels": map[string]any{"app": "orders"}},
	}}, "b": map[string]any{}}
	if diff := cmp.Diff(want, out.Outputs); diff != "" {
		t.Error(diff)
	}
}

// What one function is given, no other sees; and what another repeats of it, nobody reads.
func TestCredentialsOfAPipelineStayWithTheirFunction(t *testing.T) {
	first := functiontest.Serve(t, func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		token := string(r.GetCredentials()["cloud"].GetCredentialData().GetData()["token"])
		handed, err := structpb.NewStruct(map[string]any{"token": strings.TrimSpace(token)})
		return &fnv1.RunFunctionResponse{Context: handed}, err
	})
	var given atomic.Int32
	second := functiontest.Serve(t, func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		given.Store(int32(len(r.GetCredentials())))
		return &fnv1.RunFunctionResponse{Output: r.GetContext(), Results: []*fnv1.Result{{Message: "it is " + r.GetContext().GetFields()["token"].GetStringValue()}}}, nil
	})
	call := pipelineOf(first, second)
	pipeline(call).Functions[0].Credentials = []plan.FunctionCredential{{Name: "cloud", SecretName: "cloud"}}
	out := function.Pipeline{}.Pass(t.Context(), call)
	ends(t, out, executors.Done, false, "", "it is ***")
	if text := fmt.Sprint(out); strings.Contains(text, "hush") || given.Load() != 0 {
		t.Errorf("%s; the second was given %d credentials", text, given.Load())
	}
}

// The words of one function do not take those of the others away.
func TestALongOutputOfAFunctionIsLeftOutAlone(t *testing.T) {
	long := functiontest.Serve(t, said(&fnv1.RunFunctionResponse{Output: fields(t, `{"text": "`+strings.Repeat("x", 70_000)+`"}`)}))
	out := function.Pipeline{}.Pass(t.Context(), pipelineOf(long, functiontest.Serve(t, adding(t, "x"))))
	if diff := cmp.Diff(map[string]any{"truncated": true}, out.Outputs["a"]); diff != "" || fmt.Sprint(out.Outputs["b"]) != "map[output:map[desired:1 n:1]]" {
		t.Errorf("kept %.200s %s", fmt.Sprint(out.Outputs), diff)
	}
}

func TestAPipelineThatIsNotCalled(t *testing.T) {
	var calls atomic.Int32
	endpoint := functiontest.Serve(t, func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		calls.Add(1)
		return &fnv1.RunFunctionResponse{}, nil
	})
	dry := pipelineOf(endpoint, "fn.example.org:9443")
	pipeline(dry).Functions[1].Endpoint, pipeline(dry).Functions[1].FunctionRef = "", &plan.FunctionRef{Name: "resize"}
	dry.DryRun = true
	ends(t, function.Pipeline{}.Pass(t.Context(), dry), executors.Done, false, "", "dry run: would call function a at "+endpoint+", function b; none was called")
	missing := pipelineOf(endpoint, endpoint)
	pipeline(missing).Functions[1].Credentials = []plan.FunctionCredential{{Name: "aws", SecretName: "never"}}
	ends(t, function.Pipeline{}.Pass(t.Context(), missing), executors.Failed, true, executors.ReasonNotFound, `secrets "never"`)
	if calls.Load() != 0 {
		t.Errorf("the first function was called %d times before the second was known to be callable", calls.Load())
	}
	refused := pipelineOf(endpoint, "169.254.169.254:80")
	ends(t, function.Pipeline{}.Pass(t.Context(), refused), executors.Failed, true, "Outbound", "function b at 169.254.169.254:80", "metadata")
}

// Functions that together take longer than a pass has fail, and do not begin the same pass forever.
func TestAPipelineThatTakesLongerThanAPass(t *testing.T) {
	slow := functiontest.Serve(t, func(ctx context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
		return &fnv1.RunFunctionResponse{Desired: r.GetDesired()}, ctx.Err()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 1900*time.Millisecond)
	defer cancel()
	call := pipelineOf(slow, slow, slow)
	for i := range pipeline(call).Functions {
		pipeline(call).Functions[i].Timeout = &document.Duration{Duration: time.Second}
	}
	ends(t, function.Pipeline{}.Pass(ctx, call), executors.Failed, false, "Timeout")
	if ctx.Err() != nil {
		t.Error("it fails only when the pass is over, and nobody would hear of it")
	}
}

// revision is one of a function that Crossplane has installed.
func revision(version, function, name, state, endpoint string, number int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": "FunctionRevision", "spec": map[string]any{"desiredState": state, "revision": number},
		"status": map[string]any{"endpoint": endpoint},
	}}
	u.SetName(name)
	u.SetLabels(map[string]string{"pkg.crossplane.io/package": function})
	return u
}

// installed is a step that calls an installed function, where there are these revisions.
func installed(name, version string, tls *plan.FunctionTLS, revisions ...*unstructured.Unstructured) executors.Call {
	call := callOf("")
	props(call).FunctionRef, props(call).TLS = &plan.FunctionRef{Name: name}, tls
	mapper := meta.NewDefaultRESTMapper(nil)
	kinds := map[schema.GroupVersionResource]string{}
	if version != "" {
		gv, _ := schema.ParseGroupVersion(version)
		mapper.Add(gv.WithKind("FunctionRevision"), meta.RESTScopeRoot)
		kinds[gv.WithResource("functionrevisions")] = "FunctionRevisionList"
	}
	var objects []runtime.Object
	for _, r := range revisions {
		objects = append(objects, r)
	}
	call.Clients.Mapper, call.Clients.Dynamic = mapper, dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
	return call
}

func TestWhereAnInstalledFunctionIs(t *testing.T) {
	const v1, v1beta1 = "pkg.crossplane.io/v1", "pkg.crossplane.io/v1beta1"
	at := functiontest.Serve(t, said(&fnv1.RunFunctionResponse{}))
	nowhere := "dns:///127.0.0.1:1"
	for name, c := range map[string]struct {
		version   string
		revisions []*unstructured.Unstructured
		final     bool
		reason    string // empty: it is called
		words     []string
	}{
		"where its active revision says": {version: v1, revisions: []*unstructured.Unstructured{
			revision(v1, "resize", "resize-1", "Inactive", nowhere, 1), revision(v1, "resize", "resize-2", "Active", "dns:///"+at, 2), revision(v1, "other", "other-3", "Active", nowhere, 3),
		}},
		"in the form of older versions":      {version: v1beta1, revisions: []*unstructured.Unstructured{revision(v1beta1, "resize", "resize-1", "Active", at, 1)}},
		"where the newest of two active is":  {version: v1, revisions: []*unstructured.Unstructured{revision(v1, "resize", "resize-2", "Active", "dns:///"+at, 2), revision(v1, "resize", "resize-1", "Active", nowhere, 1)}},
		"nowhere, as it is not installed":    {version: v1, revisions: []*unstructured.Unstructured{revision(v1, "other", "other-1", "Active", nowhere, 1)}, reason: "FunctionNotReady", words: []string{"function resize is not installed"}},
		"nowhere, as no revision is active":  {version: v1, revisions: []*unstructured.Unstructured{revision(v1, "resize", "resize-1", "Inactive", nowhere, 1)}, reason: "FunctionNotReady", words: []string{"function resize has no active FunctionRevision"}},
		"nowhere, as it does not listen yet": {version: v1, revisions: []*unstructured.Unstructured{revision(v1, "resize", "resize-1", "Active", "", 1)}, reason: "FunctionNotReady", words: []string{"resize-1 has no status.endpoint"}},
		"nowhere, as there is no Crossplane": {final: true, reason: executors.ReasonUnknownKind, words: []string{"FunctionRevision", "pkg.crossplane.io/v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := pass(t, installed("resize", c.version, &plan.FunctionTLS{Insecure: true}, c.revisions...))
			if c.reason == "" {
				ends(t, out, executors.Done, false, "", "function resize at "+at+" succeeded")
			} else {
				ends(t, out, executors.Failed, c.final, c.reason, c.words...)
			}
		})
	}
}
