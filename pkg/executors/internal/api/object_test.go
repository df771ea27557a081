package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// world is what a call reaches: Deployments, and Nodes that are in no namespace.
func world(objects ...runtime.Object) (executors.Call, *dynamicfake.FakeDynamicClient) {
	call := calling("patch", "get")
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "apps", Version: "v1", Resource: "deployments"}: "DeploymentList",
	}, objects...)
	call.Clients.Mapper, call.Clients.Dynamic = mapper, client
	return call, client
}

// Which object a reference of a plan means.
func TestWhichObjectAReferenceMeans(t *testing.T) {
	for _, c := range []struct {
		name string
		ref  plan.ResourceRef
		want api.Action
		says string // the object
		err  string
	}{
		{"one of the plan's namespace", plan.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, api.Action{Verb: "get", Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: "ops", Name: "web"}, "Deployment/web", ""},
		{"one of another namespace", plan.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, api.Action{Verb: "get", Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: "shop", Name: "web"}, "Deployment/web", ""},
		{"one of no namespace, whatever is written", plan.ResourceRef{APIVersion: "v1", Kind: "Node", Namespace: "shop", Name: "a"}, api.Action{Verb: "get", Resource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, Name: "a"}, "Node/a", ""},
		{"one of a kind that is not served", plan.ResourceRef{APIVersion: "example.org/v1", Kind: "Widget", Name: "w"}, api.Action{}, "", "Widget/w: the cluster serves no kind Widget in example.org/v1; is its CRD installed?"},
		{"one of no apiVersion", plan.ResourceRef{APIVersion: "a/b/c", Kind: "Widget", Name: "w"}, api.Action{}, "", `Widget/w: "a/b/c" is no apiVersion`},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, _ := world()
			o, err := api.Resolve(call, c.ref)
			if said(err) != c.err || api.IsUnknownKind(err) != (c.ref.Kind == "Widget" && c.ref.APIVersion == "example.org/v1") {
				t.Fatalf("%v", err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(c.want, o.Action("get", "")); diff != "" || o.String() != c.says {
				t.Errorf("%s (-want +got):\n%s", o, diff)
			}
		})
	}
}

func deployment(call executors.Call, t *testing.T) api.Object {
	t.Helper()
	o, err := api.Resolve(call, plan.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

const web = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ops, name: web, uid: u1, resourceVersion: "7"}, spec: {replicas: 3}}`

// Every patch carries the uid and the version that were read, whatever its own metadata say.
func TestAPatchIsOfWhatWasRead(t *testing.T) {
	for _, c := range []struct {
		name string
		p    api.Patch
		want string // the body; empty: it is refused
		err  string
		sub  string
		dry  bool
	}{
		{"a merge patch", api.Patch{Type: types.MergePatchType, Body: map[string]any{"spec": map[string]any{"replicas": 1}}}, `{"metadata":{"resourceVersion":"7","uid":"u1"},"spec":{"replicas":1}}`, "", "", false},
		{"one with metadata of its own", api.Patch{Type: types.MergePatchType, Body: map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}, "uid": "other"}}}, `{"metadata":{"labels":{"a":"b"},"resourceVersion":"7","uid":"u1"}}`, "", "", false},
		{"one of a subresource", api.Patch{Type: types.MergePatchType, Subresource: "scale", Body: map[string]any{}}, `{"metadata":{"resourceVersion":"7","uid":"u1"}}`, "", "scale", false},
		{"a dry run", api.Patch{Type: types.MergePatchType, DryRun: true, Body: map[string]any{}}, `{"metadata":{"resourceVersion":"7","uid":"u1"}}`, "", "", true},
		{"a JSON patch", api.Patch{Type: types.JSONPatchType, Body: []any{map[string]any{"op": "remove", "path": "/spec/paused"}}}, `[{"op":"replace","path":"/metadata/uid","value":"u1"},{"op":"replace","path":"/metadata/resourceVersion","value":"7"},{"op":"remove","path":"/spec/paused"}]`, "", "", false},
		{"metadata that are no object", api.Patch{Type: types.MergePatchType, Body: map[string]any{"metadata": "x"}}, "", "patch: metadata must be an object", "", false},
		{"a text", api.Patch{Type: types.MergePatchType, Body: "x"}, "", "patch: must be an object or a list of operations, is string", "", false},
		{"what JSON cannot say", api.Patch{Type: types.MergePatchType, Body: map[string]any{"f": func() {}}}, "", "patch of Deployment/web: json: unsupported type: func()", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, client := world()
			var sent []clienttesting.PatchActionImpl
			client.PrependReactor("patch", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) {
				sent = append(sent, a.(clienttesting.PatchActionImpl))
				return true, agenttest.Object(t, web), nil
			})
			given, _ := json.Marshal(c.p.Body)
			_, err := deployment(call, t).Patch(t.Context(), agenttest.Object(t, web), c.p)
			if said(err) != c.err {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(sent) != 0 {
					t.Errorf("sent all the same: %v", sent)
				}
				return
			}
			if len(sent) != 1 {
				t.Fatalf("sent %v", sent)
			}
			got := sent[0]
			if string(got.GetPatch()) != c.want || got.GetSubresource() != c.sub || got.PatchOptions.FieldManager != "maint-plan-x" || slices.Equal(got.PatchOptions.DryRun, []string{metav1.DryRunAll}) != c.dry {
				t.Errorf("sent %s to %q as %+v", got.GetPatch(), got.GetSubresource(), got.PatchOptions)
			}
			if after, _ := json.Marshal(c.p.Body); string(after) != string(given) {
				t.Errorf("the caller's own became %s", after)
			}
		})
	}
}

// An apply carries what was read, if something was: then it creates nothing.
func TestAnApplyIsOfWhatWasRead(t *testing.T) {
	body := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": 1}}
	for _, c := range []struct {
		name  string
		read  bool
		apply api.Apply
		want  string
		force bool
		dry   bool
	}{
		{"nothing was there", false, api.Apply{Body: body}, `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":1}}`, false, false},
		{"something was", true, api.Apply{Body: body, Force: true}, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"resourceVersion":"7","uid":"u1"},"spec":{"replicas":1}}`, true, false},
		{"a dry run", true, api.Apply{Body: body, DryRun: true}, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"resourceVersion":"7","uid":"u1"},"spec":{"replicas":1}}`, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, client := world()
			var sent clienttesting.PatchActionImpl
			client.PrependReactor("patch", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) {
				sent = a.(clienttesting.PatchActionImpl)
				return true, agenttest.Object(t, web), nil
			})
			var was *unstructured.Unstructured
			if c.read {
				was = agenttest.Object(t, web)
			}
			if _, err := deployment(call, t).Apply(t.Context(), was, c.apply); err != nil {
				t.Fatal(err)
			}
			var got, want map[string]any
			if err := errors.Join(json.Unmarshal(sent.GetPatch(), &got), json.Unmarshal([]byte(c.want), &want)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			o := sent.PatchOptions
			if o.FieldManager != "maint-plan-x" || (o.Force != nil && *o.Force) != c.force || (len(o.DryRun) > 0) != c.dry {
				t.Errorf("%+v", o)
			}
		})
	}
}

// The API server's 404 for a path names no object, that for an object does.
func TestMissingIsNotUnserved(t *testing.T) {
	object := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a")
	path := apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "page not found", 0, false)
	bare := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound}}
	for _, c := range []struct {
		name              string
		err               error
		missing, unserved bool
	}{
		{"an object", object, true, false},
		{"an object, behind other words", fmt.Errorf("get: %w", object), true, false},
		{"a path", path, false, true},
		{"a status without details", bare, false, true},
		{"another answer", apierrors.NewBadRequest("x"), false, false},
		{"no error", nil, false, false},
	} {
		if api.IsMissing(c.err) != c.missing || api.IsUnserved(c.err) != c.unserved {
			t.Errorf("%s: missing %t, unserved %t", c.name, api.IsMissing(c.err), api.IsUnserved(c.err))
		}
	}
}

// Objects are read page by page, to the last or until there are more than were asked for.
func TestObjectsAreReadPageByPage(t *testing.T) {
	pages := [][]string{{"a", "b"}, {"c", "d"}, {"e"}}
	for _, c := range []struct {
		name string
		most int
		stop string // at which the reader has enough
		fail bool   // the second page
		want []string
		n    int
	}{
		{"all of them", 100, "", false, []string{"a", "b", "c", "d", "e"}, 5},
		{"no more pages once there are too many", 3, "", false, []string{"a", "b", "c", "d"}, 4},
		{"as many as were asked for are not too many", 4, "", false, []string{"a", "b", "c", "d", "e"}, 5},
		{"until the reader has enough", 100, "c", false, []string{"a", "b", "c"}, 2},
		{"a page that fails", 100, "", true, []string{"a", "b"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, client := world()
			var asked []string
			client.PrependReactor("list", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) {
				o := a.(clienttesting.ListActionImpl).ListOptions
				asked = append(asked, fmt.Sprintf("%s|%d|%s", o.LabelSelector, o.Limit, o.Continue))
				page := len(asked) - 1
				if c.fail && page == 1 {
					return true, nil, apierrors.NewInternalError(errors.New("etcd is away"))
				}
				list := &unstructured.UnstructuredList{Object: map[string]any{"kind": "DeploymentList", "apiVersion": "apps/v1"}}
				for _, name := range pages[page] {
					list.Items = append(list.Items, *agenttest.Object(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, labels: {app: web}}}`, name)))
				}
				if page < len(pages)-1 {
					list.SetContinue(fmt.Sprint("page", page+1))
				}
				return true, list, nil
			})
			enough := errors.New("enough")
			var got []string
			n, err := deployment(call, t).Each(t.Context(), "app=web", c.most, func(u *unstructured.Unstructured) error {
				got = append(got, u.GetName())
				if u.GetName() == c.stop {
					return enough
				}
				return nil
			})
			if !slices.Equal(got, c.want) || n != c.n {
				t.Errorf("saw %q, counted %d", got, n)
			}
			if errors.Is(err, enough) != (c.stop != "") || apierrors.IsInternalError(err) != c.fail {
				t.Errorf("%v", err)
			}
			for page, text := range asked {
				next := ""
				if page > 0 {
					next = fmt.Sprint("page", page)
				}
				if want := "app=web|500|" + next; text != want {
					t.Errorf("asked %q, want %q", text, want)
				}
			}
		})
	}
}

// A condition counts if it speaks of the object as it is.
func TestConditions(t *testing.T) {
	for _, c := range []struct {
		name, object string
		is           bool
		why          string
	}{
		{"True", `{status: {conditions: [{type: Other, status: "False"}, {type: Ready, status: "True"}]}}`, true, "condition Ready is True"},
		{"False says why", `{status: {conditions: [{type: Ready, status: "False", message: no pods}]}}`, false, "condition Ready is False: no pods"},
		{"Unknown is not True", `{status: {conditions: [{type: Ready, status: Unknown}]}}`, false, "condition Ready is Unknown"},
		{"it is not there", `{status: {conditions: [{type: Other, status: "True"}]}}`, false, "condition Ready is not there yet"},
		{"there are none", `{}`, false, "condition Ready is not there yet"},
		{"of the generation before", `{metadata: {generation: 3}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`, false, "condition Ready speaks of generation 2, the object is at 3"},
		{"of this generation", `{metadata: {generation: 3}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 3}]}}`, true, "condition Ready is True"},
		{"of a status of the generation before", `{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}}`, false, "condition Ready speaks of generation 2, the object is at 3"},
		{"of a status of this generation", `{metadata: {generation: 3}, status: {observedGeneration: 3, conditions: [{type: Ready, status: "True"}]}}`, true, "condition Ready is True"},
		{"of a status that is behind, whatever the condition says", `{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", observedGeneration: 3}]}}`, false, "condition Ready speaks of generation 2, the object is at 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := agenttest.Object(t, `{kind: X, apiVersion: v1}`)
			for key, value := range agenttest.Object(t, c.object[:1]+"kind: X, apiVersion: v1, "+c.object[1:]).Object {
				u.Object[key] = value
			}
			if is, why := api.Condition(u, "Ready"); is != c.is || why != c.why {
				t.Errorf("%t %q", is, why)
			}
		})
	}
}

// Who would put a field back that stands in Git.
func TestWhichGitOpsControllerOwnsAField(t *testing.T) {
	for _, c := range []struct{ name, manager, fields, want string }{
		{"Flux owns it", "kustomize-controller", `{"f:spec":{"f:replicas":{}}}`, "kustomize-controller"},
		{"Argo CD owns it", "argocd-controller", `{"f:spec":{"f:replicas":{}}}`, "argocd-controller"},
		{"Flux owns another", "kustomize-controller", `{"f:spec":{"f:image":{}}}`, ""},
		{"a person owns it", "kubectl-edit", `{"f:spec":{"f:replicas":{}}}`, ""},
		{"a field of a longer name", "flux", `{"f:spec":{"f:replicasMax":{}}}`, ""},
	} {
		o := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: c.manager}, {Manager: c.manager, FieldsV1: metav1.NewFieldsV1(c.fields)}}}
		if got := api.GitOpsOwner(o, "replicas"); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// A controller that owns a neighbour of a field puts back nothing of that field.
func TestWhichGitOpsControllerOwnsAFieldBelowAnother(t *testing.T) {
	for _, c := range []struct{ name, fields, want string }{
		{"it owns it", `{"f:spec":{"f:limits":{".":{},"f:cpu":{},"f:memory":{}}}}`, "flux"},
		{"it owns the one beside it", `{"f:spec":{"f:limits":{".":{},"f:memory":{}}}}`, ""},
		{"it owns all of it", `{"f:spec":{"f:limits":{}}}`, "flux"},
		{"it owns one of that name elsewhere", `{"f:spec":{"f:cpu":{},"f:limits":{"f:memory":{}}}}`, ""},
		{"it owns another", `{"f:spec":{"f:weight":{}}}`, ""},
	} {
		o := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "flux", FieldsV1: metav1.NewFieldsV1(c.fields)}}}
		if got := api.GitOpsOwner(o, "limits", "cpu"); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// Who owns the fields that an apply may not change, in the API server's own words.
func TestWhoOwnsWhatAnApplyMayNotChange(t *testing.T) {
	conflict := func(causes ...metav1.StatusCause) error {
		err := apierrors.NewApplyConflict(causes, "Apply failed")
		return fmt.Errorf("patch: %w", err)
	}
	manager := func(field, by string) metav1.StatusCause {
		return metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: field, Message: `conflict with "` + by + `" using apps/v1`}
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"two fields", conflict(manager(".spec.replicas", "hpa"), manager(".spec.paused", "eva")), `spec.replicas belongs to "hpa" using apps/v1, spec.paused belongs to "eva" using apps/v1`},
		{"causes of another type are none", conflict(metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "x"}), ""},
		{"a version that is old", apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("modified")), ""},
		{"no details", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict}}, ""},
		{"another answer with such causes", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Reason: metav1.StatusReasonBadRequest, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{manager("x", "y")}}}}, ""},
		{"no error", nil, ""},
	} {
		if got := api.OwnersOf(c.err); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// What is written of objects in a run, and what is watched of them.
func TestWhatARunNotesOfAnObject(t *testing.T) {
	call, _ := world()
	o := deployment(call, t)
	if got := o.Change("scaled"); got.APIVersion != "apps/v1" || got.Kind != "Deployment" || got.Namespace != "ops" || got.Name != "web" || got.What != "scaled" {
		t.Errorf("%+v", got)
	}
	if w := o.Watch(""); w.Name != "web" || w.Namespace != "ops" || w.Resource.Resource != "deployments" {
		t.Errorf("of one: %+v", w)
	}
	if w := o.Named("").Watch("app=web"); w.Name != "" || w.Selector != "app=web" {
		t.Errorf("of a selection: %+v", w)
	}
	if a := o.AllNamespaces(call).Action("list", ""); a.Namespace != "" || a.Resource.Resource != "deployments" {
		t.Errorf("everywhere: %s", a)
	}
	if out := api.Waiting(o.Watch(""), "for %s", o); out.State != executors.NotYet || out.Reason != "Waiting" || out.Message != "for Deployment/web" || out.Watch.Name != "web" {
		t.Errorf("%+v", out)
	}
}

func TestASelectorThatNobodyCanRead(t *testing.T) {
	if got, err := api.Selector(selector.LabelSelector{MatchLabels: map[string]string{"app": "web"}}); got != "app=web" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	_, err := api.Selector(selector.LabelSelector{MatchExpressions: []selector.SelectorRequirement{{Key: "a", Operator: "Near"}}})
	if out := api.Outcome(context.Background(), calling(), err); !out.Permanent || out.Reason != executors.ReasonInvalid {
		t.Errorf("%+v", out)
	}
}

// What objects of one name there are, what is created and what is deleted: each error says
// what was asked for.
func TestErrorsOfObjectsSayWhatWasAskedFor(t *testing.T) {
	call, client := world()
	broken := apierrors.NewInternalError(errors.New("etcd is away"))
	client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, broken })
	o := deployment(call, t)
	for want, err := range map[string]error{
		`get deployments.apps "web" in namespace ops`:       second(o.Get(t.Context(), "")),
		`get deployments.apps/scale "web" in namespace ops`: second(o.Get(t.Context(), "scale")),
		`create deployments.apps "web" in namespace ops`:    second(o.Create(t.Context(), agenttest.Object(t, web))),
		`delete deployments.apps "web" in namespace ops`:    o.Delete(t.Context(), metav1.DeleteOptions{}),
		`list deployments.apps "web" in namespace ops`:      second(o.ListNamed(t.Context())),
	} {
		if got := said(err); got != want+": "+broken.Error() {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if _, err := o.List(t.Context(), ""); !apierrors.IsInternalError(err) {
		t.Errorf("%v", err)
	}
}

func second[T any](_ T, err error) error { return err }
