package object

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// world is an API server in memory for the objects of one namespace. It has what a fake
// client lacks and steps rely on: versions and uids that are compared, dry runs that
// keep nothing, the scale of a Deployment, and answers that get lost.
type world struct {
	*testing.T
	objects map[string]*unstructured.Unstructured // by kind/name
	version int
	writes  int // that were kept
	// Each of these is for the next request of its verb, and then no more.
	refuse    map[string]error  // instead of doing it
	lose      map[string]bool   // it is done, and the answer never comes
	meanwhile map[string]func() // somebody is faster
	may       bool              // what the account hears when it asks about a right
}

func newWorld(t *testing.T, objects ...string) *world {
	w := &world{T: t, objects: map[string]*unstructured.Unstructured{}, version: 10, refuse: map[string]error{}, lose: map[string]bool{}, meanwhile: map[string]func(){}, may: true}
	for _, text := range objects {
		w.put(text)
	}
	return w
}

// put stores an object as somebody else does, in the place of one of its name.
func (w *world) put(text string) {
	u := &unstructured.Unstructured{Object: parse(w.T, text)}
	w.version++
	u.SetNamespace("shop")
	u.SetResourceVersion(strconv.Itoa(w.version))
	if u.GetUID() == "" {
		u.SetUID("u")
	}
	w.objects[u.GetKind()+"/"+u.GetName()] = u
}

// edit changes an object as somebody else does.
func (w *world) edit(key, patch string) {
	u := w.objects[key]
	merged, err := jsonpatch.MergePatch(raw(u.Object, true), raw(parse(w.T, patch), true))
	if err != nil {
		w.Fatal(err)
	}
	w.keep(key, merged)
}

func (w *world) keep(key string, text []byte) *unstructured.Unstructured {
	w.version++
	u := &unstructured.Unstructured{Object: decode(text).(map[string]any)}
	u.SetResourceVersion(strconv.Itoa(w.version))
	w.objects[key] = u
	return u.DeepCopy()
}

// editBy is an edit by a field manager, which the API server notes down.
func (w *world) editBy(manager, key, patch string) {
	w.edit(key, patch)
	u := w.objects[key]
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw(fieldsOf(parse(w.T, patch)), true)))}})
}

// fieldsOf is a map in the format of FieldsV1.
func fieldsOf(m map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range m {
		below, _ := value.(map[string]any)
		out["f:"+key] = fieldsOf(below)
	}
	return out
}

// field is what stands at a path, as JSON; empty for nothing.
func (w *world) field(key string, path ...string) string {
	u := w.objects[key]
	if u == nil {
		return "gone"
	}
	v, found, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	if !found {
		return ""
	}
	return string(raw(v, true))
}

func resources() map[string]schema.GroupVersionKind {
	return map[string]schema.GroupVersionKind{
		"deployments": {Group: "apps", Version: "v1", Kind: "Deployment"}, "secrets": {Version: "v1", Kind: "Secret"}, "configmaps": {Version: "v1", Kind: "ConfigMap"}, "apps": {Group: "example.org", Version: "v1", Kind: "App"},
		"applications":   {Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"},
		"kustomizations": {Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
	}
}

func (w *world) clients() executors.Clients {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}})
	lists := map[schema.GroupVersionResource]string{}
	for resource, kind := range resources() {
		mapper.AddSpecific(kind, kind.GroupVersion().WithResource(resource), kind.GroupVersion().WithResource(strings.ToLower(kind.Kind)), meta.RESTScopeNamespace)
		lists[kind.GroupVersion().WithResource(resource)] = kind.Kind + "List"
	}
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	dynamic.PrependReactor("*", "*", w.answer)
	kube := fake.NewClientset()
	kube.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: w.may}}, nil
	})
	return executors.Clients{Dynamic: dynamic, Kube: kube, Mapper: mapper}
}

func (w *world) answer(a clienttesting.Action) (bool, runtime.Object, error) {
	verb := a.GetVerb()
	if somebody := w.meanwhile[verb]; somebody != nil {
		delete(w.meanwhile, verb)
		somebody()
	}
	if err := w.refuse[verb]; err != nil {
		delete(w.refuse, verb)
		return true, nil, err
	}
	writes := w.writes
	u, err := w.do(a)
	if w.lose[verb] && w.writes > writes { // not of a dry run
		delete(w.lose, verb)
		return true, nil, io.ErrUnexpectedEOF
	}
	if u == nil { // not a nil in an interface
		return true, nil, err
	}
	return true, u, err
}

func (w *world) do(a clienttesting.Action) (*unstructured.Unstructured, error) {
	name := a.(interface{ GetName() string }).GetName()
	key := resources()[a.GetResource().Resource].Kind + "/" + name
	live := w.objects[key]
	if live == nil {
		return nil, apierrors.NewNotFound(a.GetResource().GroupResource(), name)
	}
	switch a := a.(type) {
	case clienttesting.PatchAction:
		return w.patch(key, live, a.(clienttesting.PatchActionImpl))
	case clienttesting.DeleteActionImpl:
		return nil, w.remove(key, live, a)
	}
	if a.GetSubresource() == "scale" {
		return scaleOf(live), nil
	}
	return live.DeepCopy(), nil
}

func scaleOf(live *unstructured.Unstructured) *unstructured.Unstructured {
	s := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": map[string]any{}}}
	s.SetName(live.GetName())
	s.SetUID(live.GetUID())
	s.SetResourceVersion(live.GetResourceVersion())
	if n, found, _ := unstructured.NestedInt64(live.Object, "spec", "replicas"); found && n != 0 {
		_ = unstructured.SetNestedField(s.Object, n, "spec", "replicas")
	}
	return s
}

func (w *world) patch(key string, live *unstructured.Unstructured, a clienttesting.PatchActionImpl) (*unstructured.Unstructured, error) {
	var after []byte
	var err error
	before := raw(live.Object, true)
	switch a.GetPatchType() {
	case types.StrategicMergePatchType:
		if live.GetKind() != "Deployment" {
			return nil, apierrors.NewGenericServerResponse(415, "patch", a.GetResource().GroupResource(), a.GetName(), "", 0, true)
		}
		after, err = strategicpatch.StrategicMergePatch(before, a.GetPatch(), appsv1.Deployment{})
	case types.JSONPatchType:
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(a.GetPatch()); err == nil {
			after, err = patch.Apply(before)
		}
	default:
		after, err = jsonpatch.MergePatch(before, a.GetPatch())
	}
	if err != nil {
		return nil, apierrors.NewInvalid(live.GroupVersionKind().GroupKind(), a.GetName(), nil)
	}
	got := &unstructured.Unstructured{Object: decode(after).(map[string]any)}
	if got.GetUID() != live.GetUID() || got.GetResourceVersion() != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(a.GetResource().GroupResource(), a.GetName(), errors.New("the object has been modified"))
	}
	switch {
	case len(a.PatchOptions.DryRun) > 0 || string(raw(got.Object, true)) == string(before):
	default:
		w.writes++
		got = w.keep(key, after)
	}
	if a.GetSubresource() == "scale" {
		return scaleOf(got), nil
	}
	return got, nil
}

func (w *world) remove(key string, live *unstructured.Unstructured, a clienttesting.DeleteActionImpl) error {
	if p := a.DeleteOptions.Preconditions; p != nil && p.UID != nil && *p.UID != live.GetUID() {
		return apierrors.NewConflict(a.GetResource().GroupResource(), a.GetName(), errors.New("the UID in the precondition does not match"))
	}
	if len(a.DeleteOptions.DryRun) > 0 {
		return nil
	}
	w.writes++
	if len(live.GetFinalizers()) > 0 {
		live = live.DeepCopy()
		live.SetDeletionTimestamp(&metav1.Time{Time: now()})
		w.keep(key, raw(live.Object, true))
		return nil
	}
	delete(w.objects, key)
	return nil
}

func now() time.Time { return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) }

// step is a call of plan orders with properties.
func (w *world) step(properties any) executors.Call {
	return executors.Call{
		Run: "maint-run-orders-a", Plan: executors.PlanRef{Name: "orders", Namespace: "shop", Account: "maint-runner", Manager: "maint-plan-x"}, Path: "change", Attempt: 1,
		Properties: properties, Now: now(), Clients: w.clients(),
	}
}

// pass calls an executor once, and journals what it asks to record.
func (w *world) pass(e executors.Executor, call *executors.Call) executors.Outcome {
	out := e.Pass(w.Context(), *call)
	if out.Anew || out.State == executors.Record && len(call.Recorded.Before) == 0 {
		call.Recorded.Before = out.Before
	}
	return out
}

// end passes until there is an end, or something to wait for.
func (w *world) end(e executors.Executor, call *executors.Call) executors.Outcome {
	w.Helper()
	for range 10 {
		if out := w.pass(e, call); out.State != executors.Record && (out.State != executors.NotYet || out.WakeAt.After(call.Now) || out.Watch != nil) {
			return out
		}
	}
	w.Fatal("it does not come to an end")
	return executors.Outcome{}
}

// said is an outcome on one line.
func said(out executors.Outcome) string {
	state := map[executors.State]string{executors.NotYet: "not yet", executors.Record: "record", executors.Done: "done", executors.Failed: "failed"}[out.State]
	if out.Permanent {
		state = "refused"
	}
	if out.Reason != "" {
		state += " " + out.Reason
	}
	return state + ": " + out.Message
}

func forbidden(verb, resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "orders", fmt.Errorf("User %q cannot %s resource %q", "system:serviceaccount:shop:maint-runner", verb, resource))
}
