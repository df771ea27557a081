package function_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/functiontest"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/http"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// callOf is a step that calls a function in plaintext, in a namespace with two
// ConfigMaps and a Secret.
func callOf(endpoint string, secrets ...*corev1.Secret) executors.Call {
	secrets = append(secrets, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cloud"},
		Data:       map[string][]byte{"token": []byte("hush-hush\n")},
	})
	var held []runtime.Object
	for _, s := range secrets {
		held = append(held, s)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	kinds := map[schema.GroupVersionResource]string{
		{Version: "v1", Resource: "configmaps"}: "ConfigMapList", {Version: "v1", Resource: "nodes"}: "NodeList",
	}
	return executors.Call{
		Run: "run-1", Plan: executors.PlanRef{Name: "orders", Namespace: "shop", Account: "maint-runner", Manager: "maint"}, Path: "call", Attempt: 1,
		Now: time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC),
		Properties: &plan.FunctionProperties{
			Endpoint: endpoint, TLS: &plan.FunctionTLS{Insecure: true},
			Input: map[string]any{"apiVersion": "example.org/v1", "kind": "Input", "replicas": int64(3)},
		},
		Clients: executors.Clients{
			Kube: fake.NewSimpleClientset(held...), Mapper: mapper, Dial: http.NewDialer(http.Rules{Allow: []string{"127.0.0.1/32"}}),
			Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds,
				object("ConfigMap", "shop", "a"), object("ConfigMap", "shop", "b"), object("ConfigMap", "elsewhere", "c"), object("Node", "", "n1")),
		},
	}
}

func props(c executors.Call) *plan.FunctionProperties { return c.Properties.(*plan.FunctionProperties) }

func object(kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{"app": "orders"})
	return u
}

func fields(t *testing.T, text string) *structpb.Struct {
	t.Helper()
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return s
}

func pass(t *testing.T, call executors.Call) executors.Outcome {
	t.Helper()
	return function.Runner{}.Pass(t.Context(), call)
}

func ends(t *testing.T, out executors.Outcome, state executors.State, permanent bool, reason string, words ...string) {
	t.Helper()
	if out.State != state || out.Permanent != permanent || out.Reason != reason {
		t.Errorf("ends as %+v, want state %d, %s, permanent %t", out, state, reason, permanent)
	}
	for _, word := range words {
		if !strings.Contains(out.Message, word) {
			t.Errorf("%q does not say %q", out.Message, word)
		}
	}
}

// said is an answer that a function gives to everything.
func said(r *fnv1.RunFunctionResponse) functiontest.Function {
	return func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) { return r, nil }
}

func TestAFunctionSeesWhatItIsGiven(t *testing.T) {
	var saw []*fnv1.RunFunctionRequest
	endpoint := functiontest.Serve(t, func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		saw = append(saw, r)
		return &fnv1.RunFunctionResponse{}, nil
	})
	call := callOf(endpoint)
	props(call).Credentials = []plan.FunctionCredential{{Name: "aws", SecretName: "cloud"}}
	call.Objects.Required = map[string][]map[string]any{"db": {object("ConfigMap", "shop", "a").Object}, "none": nil}
	call.Objects.Watched = object("Node", "", "n1").Object
	ends(t, pass(t, call), executors.Done, false, "", "function at "+endpoint+" succeeded")
	ends(t, pass(t, call), executors.Done, false, "")

	node := fields(t, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"app": "orders"}}}`)
	config := fields(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop", "labels": {"app": "orders"}}}`)
	resources := map[string]*fnv1.Resources{
		"db": {Items: []*fnv1.Resource{{Resource: config}}}, "none": {},
		"ops.crossplane.io/watched-resource": {Items: []*fnv1.Resource{{Resource: node}}},
	}
	want := &fnv1.RunFunctionRequest{
		Meta: &fnv1.RequestMeta{Tag: saw[0].GetMeta().GetTag(), Capabilities: []fnv1.Capability{
			fnv1.Capability_CAPABILITY_CAPABILITIES, fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES,
			fnv1.Capability_CAPABILITY_CREDENTIALS, fnv1.Capability_CAPABILITY_CONDITIONS,
		}},
		Observed: &fnv1.State{}, Desired: &fnv1.State{},
		Input: fields(t, `{"apiVersion": "example.org/v1", "kind": "Input", "replicas": 3}`),
		Credentials: map[string]*fnv1.Credentials{"aws": {Source: &fnv1.Credentials_CredentialData{
			CredentialData: &fnv1.CredentialData{Data: map[string][]byte{"token": []byte("hush-hush\n")}},
		}}},
		RequiredResources: resources, ExtraResources: resources,
	}
	if diff := cmp.Diff(want, saw[0], protocmp.Transform()); diff != "" || len(want.GetMeta().GetTag()) != 64 {
		t.Error(diff)
	}
	if diff := cmp.Diff(saw[0], saw[1], protocmp.Transform()); diff != "" {
		t.Errorf("the same step asks differently the second time: %s", diff)
	}
}

func TestATagIsOfOneStepAndWhatItShows(t *testing.T) {
	var tags []string
	endpoint := functiontest.Serve(t, func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		tags = append(tags, r.GetMeta().GetTag())
		return &fnv1.RunFunctionResponse{}, nil
	})
	for _, differ := range []func(*executors.Call){
		func(*executors.Call) {},
		func(c *executors.Call) { c.Run = "run-2" },
		func(c *executors.Call) { c.Path = "again" },
		func(c *executors.Call) { props(*c).Input["replicas"] = int64(4) },
		func(c *executors.Call) { c.Objects.Watched = object("Node", "", "n1").Object },
	} {
		call := callOf(endpoint)
		differ(&call)
		pass(t, call)
	}
	if slices.Sort(tags); len(slices.Compact(tags)) != 5 {
		t.Errorf("five different questions have the tags %q", tags)
	}
}

func TestRequirementsAreFetchedAndTheFunctionIsCalledAgain(t *testing.T) {
	elsewhere := "elsewhere"
	wants := map[string]*fnv1.ResourceSelector{
		"by name":    {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchName{MatchName: "b"}},
		"absent":     {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchName{MatchName: "z"}},
		"elsewhere":  {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchName{MatchName: "c"}, Namespace: &elsewhere},
		"by labels":  {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"app": "orders"}}}},
		"all":        {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{}}},
		"no labels":  {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"app": "x"}}}},
		"a node":     {ApiVersion: "v1", Kind: "Node", Match: &fnv1.ResourceSelector_MatchName{MatchName: "n1"}, Namespace: &elsewhere},
		"some nodes": {ApiVersion: "v1", Kind: "Node", Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{}}},
	}
	want := map[string]string{
		"given": "shop/a", "by name": "shop/b", "absent": "", "elsewhere": "elsewhere/c", "by labels": "shop/a shop/b",
		"all": "shop/a shop/b", "no labels": "", "a node": "/n1", "some nodes": "/n1",
	}
	for name, requirements := range map[string]*fnv1.Requirements{
		"as functions of today require":     {Resources: wants},
		"as functions of yesterday require": {ExtraResources: wants},
		"in both spellings":                 {Resources: wants, ExtraResources: map[string]*fnv1.ResourceSelector{"by name": wants["absent"], "all": wants["all"]}},
	} {
		t.Run(name, func(t *testing.T) {
			var contexts []string
			var saw, sawOld map[string]string
			endpoint := functiontest.Serve(t, func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				contexts = append(contexts, r.GetContext().GetFields()["round"].GetStringValue())
				saw, sawOld = namesOf(r.GetRequiredResources()), namesOf(r.GetExtraResources())
				return &fnv1.RunFunctionResponse{
					Requirements: requirements, Context: fields(t, fmt.Sprintf(`{"round": "after %d"}`, len(contexts))), Output: fields(t, `{"fine": true}`),
				}, nil
			})
			call := callOf(endpoint)
			call.Objects.Required = map[string][]map[string]any{"given": {object("ConfigMap", "shop", "a").Object}}
			out := pass(t, call)
			ends(t, out, executors.Done, false, "")
			if diff := cmp.Diff([]string{"", "after 1"}, contexts); diff != "" {
				t.Errorf("the contexts of its calls: %s", diff)
			}
			if diff := cmp.Diff(want, saw); diff != "" {
				t.Errorf("required_resources: %s", diff)
			}
			if diff := cmp.Diff(want, sawOld); diff != "" {
				t.Errorf("extra_resources: %s", diff)
			}
			if diff := cmp.Diff(map[string]any{"fine": true}, out.Outputs); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func namesOf(all map[string]*fnv1.Resources) map[string]string {
	out := map[string]string{}
	for name, resources := range all {
		var names []string
		for _, item := range resources.GetItems() {
			u := unstructured.Unstructured{Object: item.GetResource().AsMap()}
			names = append(names, u.GetNamespace()+"/"+u.GetName())
		}
		out[name] = strings.Join(names, " ")
	}
	return out
}

// wanderer requires another object at each call, until it was called often
// enough.
func wanderer(calls *atomic.Int32, until int32) functiontest.Function {
	return func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		n := min(calls.Add(1), until)
		return &fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
			"next": {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchName{MatchName: fmt.Sprint("m", n)}},
		}}}, nil
	}
}

func TestAFunctionIsCalledAgainFiveTimesAtMost(t *testing.T) {
	var calls atomic.Int32
	ends(t, pass(t, callOf(functiontest.Serve(t, wanderer(&calls, 5)))), executors.Done, false, "")
	if calls.Load() != 6 {
		t.Errorf("one that settles at its fifth call was called %d times, want 6", calls.Load())
	}
	calls.Store(0)
	ends(t, pass(t, callOf(functiontest.Serve(t, wanderer(&calls, 100)))), executors.Failed, true, "RequirementsUnstable", "called 6 times", "next")
	if calls.Load() != 6 {
		t.Errorf("one that never settles was called %d times, want 6", calls.Load())
	}
}

func TestRequirementsThatCannotBeMet(t *testing.T) {
	for name, c := range map[string]struct {
		selector *fnv1.ResourceSelector
		reason   string
		words    []string
	}{
		"one that picks nothing": {&fnv1.ResourceSelector{ApiVersion: "v1", Kind: "ConfigMap"}, "Invalid", []string{"requirements.resources.it", "match_name", "match_labels"}},
		"one without a kind":     {&fnv1.ResourceSelector{ApiVersion: "v1", Match: &fnv1.ResourceSelector_MatchName{MatchName: "a"}}, "Invalid", []string{"kind"}},
		"an unknown kind":        {&fnv1.ResourceSelector{ApiVersion: "v1", Kind: "Thing", Match: &fnv1.ResourceSelector_MatchName{MatchName: "a"}}, "UnknownKind", []string{"Thing/a", "v1"}},
		"a label that is none": {&fnv1.ResourceSelector{ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchLabels{
			MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"a": "b c"}},
		}}, "Invalid", []string{"match_labels", "b c"}},
	} {
		t.Run(name, func(t *testing.T) {
			requires := &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{"it": c.selector}}
			call := callOf(functiontest.Serve(t, said(&fnv1.RunFunctionResponse{Requirements: requires})))
			ends(t, pass(t, call), executors.Failed, true, c.reason, c.words...)
		})
	}
}

func TestWhatBecomesOfAnAnswer(t *testing.T) {
	tired := "Tired"
	warning := &fnv1.Result{Severity: fnv1.Severity_SEVERITY_WARNING, Message: "slow disk", Reason: &tired}
	normal := &fnv1.Result{Severity: fnv1.Severity_SEVERITY_NORMAL, Message: "all moved"}
	strange := &fnv1.Result{Severity: 9, Message: "from the future"}
	fatal := &fnv1.Result{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "no such volume"}
	kept := []any{
		map[string]any{"severity": "warning", "message": "slow disk", "reason": "Tired"}, map[string]any{"severity": "normal", "message": "all moved"},
	}
	for name, c := range map[string]struct {
		answer  *fnv1.RunFunctionResponse
		failed  bool
		words   []string
		outputs map[string]any
	}{
		"nothing": {answer: &fnv1.RunFunctionResponse{}},
		"output becomes the step's": {
			answer: &fnv1.RunFunctionResponse{Output: fields(t, `{"snapshot": "s-1", "size": 3, "share": 0.5, "deep": {"list": [1]}}`)},
			outputs: map[string]any{
				"snapshot": "s-1", "size": int64(3), "share": 0.5, "deep": map[string]any{"list": []any{int64(1)}},
			},
		},
		"results stand beside the output": {
			answer: &fnv1.RunFunctionResponse{Output: fields(t, `{"a": 1}`), Results: []*fnv1.Result{warning, normal}},
			words:  []string{"warning: slow disk", "normal: all moved"}, outputs: map[string]any{"a": int64(1), "results": kept},
		},
		"an output's own results stay": {
			answer: &fnv1.RunFunctionResponse{Output: fields(t, `{"results": "mine"}`), Results: []*fnv1.Result{warning}},
			words:  []string{"warning: slow disk"}, outputs: map[string]any{"results": "mine"},
		},
		"an unknown severity is a warning": {
			answer: &fnv1.RunFunctionResponse{Results: []*fnv1.Result{strange}}, words: []string{"warning: from the future"},
			outputs: map[string]any{"results": []any{map[string]any{"severity": "warning", "message": "from the future"}}},
		},
		"a fatal result fails the step": {
			answer: &fnv1.RunFunctionResponse{Results: []*fnv1.Result{warning, fatal}}, failed: true, words: []string{"no such volume"},
			outputs: map[string]any{"results": append(slices.Clone(kept[:1]), map[string]any{"severity": "fatal", "message": "no such volume"})},
		},
		"a fatal result ends it, whatever else is required or desired": {
			answer: &fnv1.RunFunctionResponse{
				Results: []*fnv1.Result{fatal}, Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{"x": {}}},
				Requirements: &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{"x": {}}},
			},
			failed: true, outputs: map[string]any{"results": []any{map[string]any{"severity": "fatal", "message": "no such volume"}}},
		},
		"a composite is ignored with a word": {
			answer: &fnv1.RunFunctionResponse{Desired: &fnv1.State{Composite: &fnv1.Resource{Resource: fields(t, `{"kind": "X"}`)}}},
			words:  []string{"desired.composite was ignored"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := pass(t, callOf(functiontest.Serve(t, said(c.answer))))
			if c.failed {
				ends(t, out, executors.Failed, false, "FunctionFatal", c.words...)
			} else {
				ends(t, out, executors.Done, false, "", c.words...)
			}
			if diff := cmp.Diff(c.outputs, out.Outputs); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCredentialsAreNeverShown(t *testing.T) {
	secret := "hush-hush"
	coded := base64.StdEncoding.EncodeToString([]byte(secret + "\n"))
	told := "token " + secret + " as " + coded
	leaky := &fnv1.RunFunctionResponse{
		Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_NORMAL, Message: told, Reason: &told}},
		Output:  fields(t, fmt.Sprintf(`{"echo": %q, %q: ["%s"]}`, told, secret, secret)),
	}
	fatal := &fnv1.RunFunctionResponse{Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL, Message: strings.Repeat("x", document.MaxMessage-30) + told}}}
	unnamed := &fnv1.RunFunctionResponse{Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{secret: {}}}}
	for name, f := range map[string]functiontest.Function{
		"in results and output": said(leaky), "in a fatal result": said(fatal), "in the name of what is desired": said(unnamed),
		"in an error": func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
			return nil, status.Error(codes.Internal, told)
		},
	} {
		t.Run(name, func(t *testing.T) {
			call := callOf(functiontest.Serve(t, f))
			props(call).Credentials = []plan.FunctionCredential{{Name: "aws", SecretName: "cloud"}}
			b, err := json.Marshal(pass(t, call))
			if err != nil {
				t.Fatal(err)
			}
			for _, form := range []string{secret[:6], coded[:6]} {
				if strings.Contains(string(b), form) {
					t.Errorf("%s shows %q", b, form)
				}
			}
			if !strings.Contains(string(b), "***") {
				t.Errorf("%s does not say that something was hidden", b)
			}
		})
	}
}

func TestWhatAnErrorMeans(t *testing.T) {
	for code, permanent := range map[codes.Code]bool{
		codes.Unavailable: false, codes.Unknown: false, codes.Internal: false, codes.Aborted: false, codes.ResourceExhausted: false,
		codes.InvalidArgument: true, codes.PermissionDenied: true, codes.Unauthenticated: true, codes.Unimplemented: true, codes.FailedPrecondition: true,
	} {
		t.Run(code.String(), func(t *testing.T) {
			endpoint := functiontest.Serve(t, func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return nil, status.Error(code, "not like this")
			})
			ends(t, pass(t, callOf(endpoint)), executors.Failed, permanent, code.String(), "function at "+endpoint, "not like this")
		})
	}
}

// A function that serves v1beta1 alone is called by that, in each round of its requirements.
func TestAFunctionOfTheOlderVersion(t *testing.T) {
	var rounds atomic.Int32
	endpoint := functiontest.ServeOld(t, func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rounds.Add(1)
		return &fnv1.RunFunctionResponse{
			Output: fields(t, fmt.Sprintf(`{"saw": %d}`, len(r.GetExtraResources()))),
			Requirements: &fnv1.Requirements{ExtraResources: map[string]*fnv1.ResourceSelector{
				"b": {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchName{MatchName: "b"}},
			}},
		}, nil
	})
	out := pass(t, callOf(endpoint))
	ends(t, out, executors.Done, false, "")
	if diff := cmp.Diff(map[string]any{"saw": int64(1)}, out.Outputs); diff != "" || rounds.Load() != 2 {
		t.Errorf("called %d times %s", rounds.Load(), diff)
	}
}

func TestWhatIsTooLarge(t *testing.T) {
	big := strings.Repeat("x", function.MaxSize)
	var calls atomic.Int32
	endpoint := functiontest.Serve(t, func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		calls.Add(1)
		return &fnv1.RunFunctionResponse{Results: []*fnv1.Result{{Message: big}}}, nil
	})
	ends(t, pass(t, callOf(endpoint)), executors.Failed, true, "TooLarge", "answer is larger than 4194304 bytes")
	call := callOf(endpoint)
	props(call).Input["big"] = big
	ends(t, pass(t, call), executors.Failed, true, "TooLarge", "cannot be asked", "4194304 are the most")
	if calls.Load() != 1 {
		t.Errorf("called %d times, want once: the second request is too large to be sent", calls.Load())
	}
}

// Two bytes on the wire become a hundred in memory: an answer of many small values is
// refused before it is read, however few bytes it has.
func TestAnAnswerOfTooManyFields(t *testing.T) {
	for n, reason := range map[int]string{function.MaxFields: "TooLarge", function.MaxFields / 4: ""} {
		list := make([]*structpb.Value, n)
		for i := range list {
			list[i] = structpb.NewBoolValue(true)
		}
		endpoint := functiontest.Serve(t, func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
			return &fnv1.RunFunctionResponse{Output: &structpb.Struct{Fields: map[string]*structpb.Value{"all": structpb.NewListValue(&structpb.ListValue{Values: list})}}}, nil
		})
		out := pass(t, callOf(endpoint))
		if reason != "" {
			ends(t, out, executors.Failed, true, reason, "more than 50000 fields", "answer with less")
		} else if out.State != executors.Done {
			t.Errorf("%d values: %v %s", n, out.State, out.Message)
		}
	}
}

func TestAFunctionThatHangs(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	slow := functiontest.Serve(t, func(ctx context.Context, _ *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	for name, c := range map[string]struct {
		endpoint string
		tls      *plan.FunctionTLS
	}{
		"before it answers":     {slow, &plan.FunctionTLS{Insecure: true}},
		"before it speaks":      {silent.Addr().String(), &plan.FunctionTLS{Insecure: true}},
		"before it is verified": {silent.Addr().String(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			call := callOf(c.endpoint)
			props(call).TLS, props(call).Timeout = c.tls, &document.Duration{Duration: 100 * time.Millisecond}
			ends(t, pass(t, call), executors.Failed, false, "Timeout", c.endpoint, "no answer within 100ms")
		})
	}
	t.Run("longer than the pass has", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		ends(t, function.Runner{}.Pass(ctx, callOf(slow)), executors.Failed, false, "Timeout")
		if ctx.Err() != nil {
			t.Error("it fails only when the pass is over, and nobody would hear of it")
		}
	})
	t.Run("when the agent stops, nobody failed", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		ends(t, function.Runner{}.Pass(ctx, callOf(slow)), executors.NotYet, false, "Interrupted")
	})
}

func TestWhomItMayCall(t *testing.T) {
	var calls atomic.Int32
	endpoint := functiontest.Serve(t, func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		calls.Add(1)
		return &fnv1.RunFunctionResponse{}, nil
	})
	call := callOf(endpoint)
	call.Clients.Dial = http.NewDialer(http.Rules{})
	ends(t, pass(t, call), executors.Failed, true, "Outbound", endpoint, "loopback", "outbound.allow")
	call.Clients.Dial = http.NewDialer(http.Rules{Allow: []string{"127.0.0.1"}, Deny: []string{"127.0.0.1"}})
	ends(t, pass(t, call), executors.Failed, true, "Outbound", "outbound.deny")
	call.Clients.Dial = nil
	ends(t, pass(t, call), executors.Failed, true, "Outbound", "outbound rules")
	dry := callOf(endpoint)
	dry.DryRun = true
	ends(t, pass(t, dry), executors.Done, false, "", "dry run: would call function at "+endpoint, "not called")
	metadata := callOf("169.254.169.254:80")
	ends(t, pass(t, metadata), executors.Failed, true, "Outbound", "metadata")
	if calls.Load() != 0 {
		t.Errorf("the function was called %d times", calls.Load())
	}
}

func TestNobodyThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := listener.Addr().String()
	listener.Close()
	ends(t, pass(t, callOf(endpoint)), executors.Failed, false, "Network", endpoint, "refused")
	ends(t, pass(t, callOf("fn.example.org")), executors.Failed, true, "Invalid", "endpoint", "fn.example.org", "9443")
	missing := callOf(endpoint)
	props(missing).Credentials = []plan.FunctionCredential{{Name: "aws", SecretName: "never"}}
	ends(t, pass(t, missing), executors.Failed, true, executors.ReasonNotFound, `secrets "never"`)
}

func TestDesiresThatCanNeverBeRight(t *testing.T) {
	config := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`
	for name, c := range map[string]struct {
		desired map[string]string
		reason  string
		words   []string
	}{
		"no name":            {map[string]string{"it": `{"apiVersion": "v1", "kind": "ConfigMap"}`}, "Invalid", []string{"desired.resources.it", "metadata.name"}},
		"no kind":            {map[string]string{"it": `{"apiVersion": "v1", "metadata": {"name": "a"}}`}, "Invalid", []string{"desired.resources.it", "no kind"}},
		"metadata of a text": {map[string]string{"it": `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": "a"}`}, "Invalid", []string{"metadata.name"}},
		"an unknown kind":    {map[string]string{"it": `{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}}`}, "UnknownKind", []string{"Thing/a"}},
		"a copy of an object": {map[string]string{
			"it": `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [{"manager": "x"}]}}`,
		}, "Invalid", []string{"desired.resources.it", "managedFields"}},
		"one object twice": {map[string]string{"it": config, "that": config}, "Invalid", []string{`"it"`, `"that"`, "ConfigMap/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			desired := &fnv1.State{Resources: map[string]*fnv1.Resource{}}
			for key, text := range c.desired {
				desired.Resources[key] = &fnv1.Resource{Resource: fields(t, text)}
			}
			call := callOf(functiontest.Serve(t, said(&fnv1.RunFunctionResponse{Desired: desired})))
			ends(t, pass(t, call), executors.Failed, true, c.reason, c.words...)
		})
	}
}
