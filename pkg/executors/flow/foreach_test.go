package flow

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// apps is a call that reaches objects of kind App, each with what its spec says.
func apps(specs map[string]map[string]any) executors.Call {
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "App"}
	var objects []runtime.Object
	for name, spec := range specs {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetGroupVersionKind(kind)
		u.SetName(name)
		u.SetNamespace("shop")
		objects = append(objects, u)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, meta.RESTScopeNamespace)
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{{Group: "example.org", Version: "v1", Resource: "apps"}: "AppList"}, objects...)
	return executors.Call{Plan: executors.PlanRef{Namespace: "shop"}, Clients: executors.Clients{Mapper: mapper, Dynamic: client}}
}

func TestWhenSaysWhichObjectsALoopTakes(t *testing.T) {
	specs := map[string]map[string]any{"a": {"version": "1.2"}, "b": {"version": "1.4"}, "c": {"version": "1.3"}, "new": {}}
	of := func(names ...string) []run.Item {
		items := []run.Item{}
		for _, name := range names {
			items = append(items, run.Item{Name: name})
		}
		return items
	}
	for name, c := range map[string]struct {
		when, order string
		items       []run.Item
		says        string
		reason      string
	}{
		"without it, all of them":              {items: of("a", "b", "c", "new"), says: "takes 4 of kind App"},
		"those for which it holds":             {when: "has(each.spec.version) && each.spec.version in ['1.2', '1.3']", items: of("a", "c"), says: "takes 2 of 4 of kind App"},
		"none":                                 {when: "each.metadata.name == 'z'", items: of(), says: "takes 0 of 4 of kind App"},
		"a field that one of them lacks":       {when: "each.spec.version in ['1.2', '1.3']", reason: "BadCondition", says: "when, for new: each.spec.version in ['1.2', '1.3']: no such key: version"},
		"an expression that yields no boolean": {when: "each.metadata.name", reason: "BadCondition", says: "when, for a: each.metadata.name: must give true or false"},
		"one that an expression has broken":    {when: "each.spec.version ==", reason: "BadProperties", says: `when: "each.spec.version ==" does not compile`},
		"an order that an expression yields":   {order: "largest", reason: "BadProperties", says: `order: must be name, oldest or newest, is "largest"`},
	} {
		t.Run(name, func(t *testing.T) {
			call := apps(specs)
			call.Properties = &plan.ForEachProperties{APIVersion: "example.org/v1", Kind: "App", When: c.when, Order: c.order}
			out := Lister{}.Pass(t.Context(), call)
			if diff := cmp.Diff(c.items, out.Listing.Items); diff != "" || out.Reason != c.reason || !strings.HasPrefix(out.Message, c.says) || out.Permanent != (c.reason != "") {
				t.Errorf("%s\n%+v", diff, out)
			}
		})
	}
}

// A pass that was cut off before its expressions were evaluated says nothing of the objects: it is made again.
func TestALoopThatIsCutOffBeforeItsTurnIsMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		properties plan.ForEachProperties
		recorded   executors.Recorded
	}{
		"when":  {plan.ForEachProperties{APIVersion: "example.org/v1", Kind: "App", When: "each.spec.version == '1.2'"}, executors.Recorded{}},
		"until": {plan.ForEachProperties{APIVersion: "example.org/v1", Kind: "App", Until: "object.spec.version == '1.2'"}, executors.Recorded{Listed: true, ItemVersion: "example.org/v1", ItemKind: "App", Items: []run.Item{{Name: "a"}}}},
	} {
		ctx, cut := context.WithCancel(t.Context())
		ctx = executors.WithEvaluation(ctx, func(ctx context.Context, _ func()) error { cut(); return ctx.Err() })
		call := apps(map[string]map[string]any{"a": {"version": "1.2"}})
		call.Properties, call.Recorded = &c.properties, c.recorded
		if out := (Lister{}).Pass(ctx, call); out.State != executors.NotYet || out.WakeAt.IsZero() {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// The kind of the objects may be an expression, of which the journal keeps what it was.
func TestUntilAsksTheObjectsThatWereListed(t *testing.T) {
	call := apps(map[string]map[string]any{"a": {"version": "1.2"}})
	call.Recorded = executors.Recorded{Listed: true, ItemVersion: "example.org/v1", ItemKind: "App", Items: []run.Item{{Name: "a"}}}
	call.Properties = &plan.ForEachProperties{APIVersion: "v1", Kind: "Widget", Until: "object.spec.version == '1.2'"}
	if out := (Lister{}).Pass(t.Context(), call); out.State != executors.Done || out.Message != "object.spec.version == '1.2' holds for 1 objects" {
		t.Errorf("%+v", out)
	}
}

func TestUntilNamesTheObjectsForWhichItCannotBeEvaluated(t *testing.T) {
	const until = "object.status.readyReplicas == 2"
	var found look
	with := func(status map[string]any) answer {
		return ask(t.Context(), until, &unstructured.Unstructured{Object: map[string]any{"status": status}})
	}
	found.at("ready", with(map[string]any{"readyReplicas": int64(2)}))
	found.at("shop:starting", with(map[string]any{"readyReplicas": int64(1)}))
	found.at("shop:fresh", with(map[string]any{}))
	got := found.message(until, 3)
	for _, want := range []string{"does not hold yet for 2 of 3: shop:starting, shop:fresh", "cannot be evaluated for shop:fresh", "no such key: readyReplicas"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}
