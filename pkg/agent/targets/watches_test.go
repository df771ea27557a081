package targets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// world is a cluster with an App that plans are about.
type world struct {
	*testing.T
	api *agenttest.Cluster
	*Watches

	mu                       sync.Mutex
	added, changed, outdated []string
}

const runner = "system:serviceaccount:shop:maint-runner"

func play(t *testing.T, story func(ctx context.Context, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, api: agenttest.New(t)}
		w.api.Serve(agenttest.Kind{Group: "example.org", Version: "v1", Kind: "App", Resource: "apps", Namespaced: true}, agenttest.Kind{Group: "example.org", Version: "v1", Kind: "Site", Resource: "sites"})
		w.api.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "maint-runner", "namespace": "shop"}}})
		_, accounts := w.api.Connect()
		w.Watches = New(Config{
			Accounts: accounts, Plans: w,
			Changed: func(k types.NamespacedName) { w.note(&w.changed, k) }, Outdate: func(k types.NamespacedName) { w.note(&w.outdated, k) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		story(ctx, w)
	})
}

func (w *world) note(in *[]string, k types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*in = append(*in, k.Name)
}

// Add is PlanQueue's.
func (w *world) Add(k types.NamespacedName) { w.note(&w.added, k) }

// AddAfter is PlanQueue's.
func (w *world) AddAfter(k types.NamespacedName, _ time.Duration) { w.note(&w.added, k) }

// news are the plans that were enqueued, whose target has changed, and that are to be
// looked at live, since it was asked last.
func (w *world) news() (added, changed, outdated []string) {
	w.pass(100 * time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	sorted := func(list *[]string) []string {
		out := *list
		*list = nil
		slices.Sort(out)
		return slices.Compact(out)
	}
	return sorted(&w.added), sorted(&w.changed), sorted(&w.outdated)
}

func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func app(name string, fields ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "App", "metadata": map[string]any{"namespace": "shop", "name": name}}}
	for i := 0; i < len(fields); i += 2 {
		if err := unstructured.SetNestedField(u.Object, fields[i+1], strings.Split(fields[i].(string), ".")...); err != nil {
			panic(err)
		}
	}
	return u
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func labels() Key {
	return Key{Account: client.Account{Namespace: "shop", Name: "maint-runner"}, Resource: schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "apps"}}
}

func names() Key {
	k := labels()
	k.Names = true
	return k
}

func ref(name string) plan.ObjectRef {
	return plan.ObjectRef{APIVersion: "example.org/v1", Kind: "App", Name: name}
}

func (w *world) expect(when string, list []string, want ...string) {
	w.Helper()
	if !slices.Equal(list, want) {
		w.Errorf("%s: %q, want %q", when, list, want)
	}
}

func TestWhetherATargetIsReady(t *testing.T) {
	condition := func(kind, status string) []any { return []any{map[string]any{"type": kind, "status": status}} }
	for name, c := range map[string]struct {
		fields []any
		want   string
	}{
		"being there is enough for most":       {},
		"all replicas are ready":               {[]any{"spec.replicas", int64(2), "status.readyReplicas", int64(2)}, ""},
		"one replica is not ready":             {[]any{"spec.replicas", int64(2), "status.readyReplicas", int64(1)}, "1 of 2 replicas are ready"},
		"nothing is said of its replicas":      {[]any{"spec.replicas", int64(2)}, "0 of 2 replicas are ready"},
		"it shall have none":                   {[]any{"spec.replicas", int64(0)}, ""},
		"its controller is behind":             {[]any{"metadata.generation", int64(2), "status.observedGeneration", int64(1), "spec.replicas", int64(0)}, "its controller has not seen its newest generation"},
		"its condition says so":                {[]any{"status.conditions", condition("Ready", "True")}, ""},
		"its condition says no":                {[]any{"status.conditions", condition("Ready", "False")}, "its condition Ready is False"},
		"its condition does not know":          {[]any{"status.conditions", condition("Ready", "Unknown")}, "its condition Ready is Unknown"},
		"another condition says nothing of it": {[]any{"status.conditions", condition("Synced", "False")}, ""},
	} {
		if got := Slim(app("orders", c.fields...), client.ClusterIdentity{}).NotReady; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhatDecisionsLookAtOfATarget(t *testing.T) {
	u := app("orders")
	u.SetUID("uid")
	u.SetLabels(map[string]string{"go": "yes", "other": "1"})
	u.SetAnnotations(map[string]string{
		annotations.Handled("go"): "3", annotations.Handled("no"): "-1", annotations.Handled("word"): "x", annotations.Handled("huge"): "99999999999999999999",
		"kubectl.kubernetes.io/last-applied-configuration": "{}", "mirror.maint.dev/nightly-status": "running", "example.org/their-status": strings.Repeat("x", 1000),
	})
	slim := Slim(u, client.ClusterIdentity{})
	want := &trigger.Target{UID: "uid", Labels: map[string]trigger.TargetLabel{"go": {Value: "yes"}}, Handled: map[string]int64{"go": 3}}
	if diff := cmp.Diff(want, slim.Facts([]string{"go", "no", "word", "huge"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, kept := slim.Annotations["kubectl.kubernetes.io/last-applied-configuration"]; kept {
		t.Error("an annotation of somebody else is kept")
	}
	if !annotations.MirroredOn(slim.Annotations, "mirror.maint.dev", "nightly") || annotations.MirroredOn(slim.Annotations, "mirror.maint.dev", "daily") || slim.Annotations["example.org/their-status"] != "" {
		t.Errorf("of mirrors it keeps %q", slim.Annotations)
	}
}

func TestATargetThatIsReadLive(t *testing.T) {
	unreachable := func(err error) bool { var gone GoneError; return err != nil && !errors.As(err, &gone) }
	for name, c := range map[string]struct {
		ref    plan.ObjectRef
		change func(*agenttest.Cluster)
		is     func(error) bool
	}{
		"it is there":               {ref: ref("orders"), is: func(err error) bool { return err == nil }},
		"it is not there":           {ref: ref("other"), is: func(err error) bool { var gone GoneError; return errors.As(err, &gone) }},
		"its kind is not known":     {ref: plan.ObjectRef{APIVersion: "example.org/v1", Kind: "None", Name: "x"}, is: client.UnknownKind},
		"its apiVersion is no such": {ref: plan.ObjectRef{APIVersion: "a/b/c", Kind: "App", Name: "x"}, is: func(err error) bool { return err != nil }},
		"the account may not":       {ref: ref("orders"), change: func(api *agenttest.Cluster) { api.Deny(runner, "get", "apps") }, is: unreachable},
		"the API server does not answer": {ref: ref("orders"), change: func(api *agenttest.Cluster) {
			api.Refuse(agenttest.When{Resource: "apps"}, agenttest.Always, 503, "away")
		}, is: unreachable},
		"a 404 of its kind says nothing of it": {ref: ref("orders"), change: func(api *agenttest.Cluster) {
			api.Refuse(agenttest.When{Verb: "get", Resource: "apps"}, agenttest.Always, 404, "not read yet")
		}, is: unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(ctx context.Context, w *world) {
				w.api.Put(app("orders"))
				if c.change != nil {
					c.change(w.api)
				}
				from, err := w.Accounts.Access(ctx, labels().Account, "", nil)
				if err != nil {
					w.Fatal(err)
				}
				if _, err := Read(ctx, from, c.ref); !c.is(err) {
					w.Errorf("%v", err)
				}
			})
		})
	}
}

func TestTargetsOfLabelTriggersAreWatched(t *testing.T) {
	play(t, func(ctx context.Context, w *world) {
		w.api.Put(app("orders"), app("carts"))
		seen := w.Keep(ctx, named("p1"), labels(), "orders")
		if o, why := seen.Get("shop", "orders"); o == nil && why == "" {
			w.Errorf("before it is listed: %v, %q", o, why)
		}
		w.Keep(ctx, named("p2"), labels(), "carts")
		w.Keep(ctx, named("p3"), labels(), "none")
		added, _, _ := w.news()
		w.expect("when it has been listed, all plans are looked at", added, "p1", "p2", "p3")
		if o, why := seen.Get("shop", "orders"); o == nil || why != "" {
			w.Errorf("it is there: %v, %q", o, why)
		}
		if o, why := seen.Get("shop", "none"); o != nil || why != "" {
			w.Errorf("it is not there: %v, %q", o, why)
		}
		if n := w.Count(); n != 1 || len(w.api.Watches()) != 1 || !w.IsWatched(named("p1")) || w.IsWatched(named("p9")) {
			w.Errorf("%d watches, open %q", n, w.api.Watches())
		}
		w.api.Put(app("orders", "spec.size", int64(2)))
		_, changed, _ := w.news()
		w.expect("a change is its plans' alone", changed, "p1")
		w.api.Delete("apps", "shop", "carts")
		_, changed, _ = w.news()
		w.expect("a deletion is, too", changed, "p2")
		w.Keep(ctx, named("p1"), labels(), "carts") // the plan was edited
		w.api.Put(app("orders", "spec.size", int64(3)))
		_, changed, _ = w.news()
		w.expect("what a plan is not about any more", changed)
		for _, p := range []string{"p1", "p2", "p3", "p3"} {
			w.Drop(named(p))
		}
		w.pass(time.Second)
		if n := w.Count(); n != 0 || len(w.api.Watches()) != 0 {
			w.Errorf("%d watches, open %q, that nobody needs", n, w.api.Watches())
		}
	})
}

func TestAnAccountThatMayNotWatch(t *testing.T) {
	play(t, func(ctx context.Context, w *world) {
		w.api.Put(app("orders"))
		w.api.Deny(runner, "list", "apps")
		seen := w.Keep(ctx, named("p1"), labels(), "orders")
		added, _, _ := w.news()
		w.expect("its plans hear of it", added, "p1")
		if o, why := seen.Get("shop", "orders"); o != nil || !strings.HasPrefix(why, "apps.example.org in namespace shop cannot be read yet: ") || w.IsWatched(named("p1")) {
			w.Errorf("at once it is said: %v, %q", o, why)
		}
		w.pass(31 * time.Second)
		added, _, _ = w.news()
		w.expect("its plans hear that it lasts", added, "p1")
		if o, why := seen.Get("shop", "orders"); o != nil || !strings.Contains(why, "maint-runner may not list and watch apps.example.org") || w.IsWatched(named("p1")) {
			w.Errorf("it is said: %v, %q", o, why)
		}
		w.Retry(client.Account{Namespace: "shop", Name: "other"})
		w.api.Allow(runner, "list", "apps")
		w.Retry(client.Account{Namespace: "shop", Name: "maint-runner"})
		added, _, _ = w.news()
		w.expect("when its rights were mended", added, "p1")
		seen = w.Keep(ctx, named("p1"), labels(), "orders")
		if o, why := seen.Get("shop", "orders"); o == nil {
			w.Errorf("when its rights were mended: %q", why)
		}
	})
}

// An API server that begins says 404 of kinds that it has not read yet.
func TestATargetWhoseKindIsNotServed(t *testing.T) {
	play(t, func(ctx context.Context, w *world) {
		w.api.Put(app("orders"))
		serves := w.api.Refuse(agenttest.When{Resource: "apps"}, agenttest.Always, 404, "the server could not find the requested resource")
		seen := w.Keep(ctx, named("p1"), labels(), "orders")
		w.news()
		if o, why := seen.Get("shop", "orders"); o != nil || !strings.HasPrefix(why, "apps.example.org in namespace shop cannot be read yet: ") {
			w.Errorf("at once it is said: %v, %q", o, why)
		}
		w.pass(31 * time.Second)
		added, _, _ := w.news()
		w.expect("its plans hear that it lasts", added, "p1")
		if o, why := seen.Get("shop", "orders"); o != nil || !strings.HasPrefix(why, "this cluster does not serve apps.example.org, the kind of its target, any more: ") || w.IsWatched(named("p1")) {
			w.Errorf("it is said: %v, %q", o, why)
		}
		serves()
		w.pass(31 * time.Second)
		added, _, _ = w.news()
		w.expect("when it is served again", added, "p1")
		if o, why := seen.Get("shop", "orders"); o == nil {
			w.Errorf("when it is served again: %q", why)
		}
	})
}

func TestAwaitingATarget(t *testing.T) {
	for name, c := range map[string]struct {
		there    bool
		happens  func(w *world)
		changed  []string
		outdated []string
	}{
		"it comes":                      {happens: func(w *world) { w.api.Put(app("orders")) }, changed: []string{"p1"}},
		"another one comes":             {happens: func(w *world) { w.api.Put(app("carts")) }},
		"it was there before its watch": {there: true, happens: func(*world) {}, outdated: []string{"p1"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(ctx context.Context, w *world) {
				if c.there {
					w.api.Put(app("orders"))
				}
				w.Await(ctx, named("p1"), names(), ref("orders"), 0)
				w.news()
				c.happens(w)
				if c.there {
					w.Await(ctx, named("p1"), names(), ref("orders"), 0)
				}
				_, changed, outdated := w.news()
				w.expect("changed", changed, c.changed...)
				w.expect("to be looked at live", outdated, c.outdated...)
				if got := w.api.Watches(); !slices.Equal(got, []string{"maint-runner apps"}) {
					w.Errorf("watches %q", got)
				}
			})
		})
	}
}

// What only serves to notice a target sooner is given up where the account may not, and
// tried again after two minutes.
func TestAWatchThatIsNotNeededIsGivenUpWhereItIsRefused(t *testing.T) {
	play(t, func(ctx context.Context, w *world) {
		w.api.Deny(runner, "watch", "apps")
		w.Await(ctx, named("p1"), names(), ref("orders"), 0)
		added, _, _ := w.news()
		w.expect("its plan need not hear of it", added)
		asked := w.api.Asked(agenttest.When{Resource: "apps"})
		w.pass(time.Minute)
		w.Await(ctx, named("p1"), names(), ref("orders"), 0)
		w.pass(time.Second)
		if got := w.api.Asked(agenttest.When{Resource: "apps"}); got != asked {
			w.Errorf("asked %d times in the next minute", got-asked)
		}
		w.api.Allow(runner, "watch", "apps")
		w.pass(time.Minute)
		w.Await(ctx, named("p1"), names(), ref("orders"), 0)
		w.pass(time.Second)
		if !w.IsWatched(named("p1")) {
			w.Error("it is not tried again after two minutes")
		}
	})
}

func TestAClusterWideTargetIsFoundByItsNameAlone(t *testing.T) {
	play(t, func(ctx context.Context, w *world) {
		w.api.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Site", "metadata": map[string]any{"name": "main"}}})
		k := labels()
		k.Cluster, k.Resource.Resource = true, "sites"
		seen := w.Keep(ctx, named("p1"), k, "main")
		w.news()
		if o, why := seen.Get("", "main"); o == nil || seen.version() == 0 {
			w.Errorf("%v, %q, version %d", o, why, seen.version())
		}
		k.Names = true
		quick, none := w.Keep(ctx, named("p2"), k, "main"), w.Keep(ctx, named("p3"), k, "none")
		w.news()
		if quick.version() == 0 || none.version() != 0 {
			w.Errorf("its name is seen at %d, another at %d", quick.version(), none.version())
		}
	})
}

func TestOfWhatIsNoObjectNothingIsTakenAway(t *testing.T) {
	other := &metav1.Status{}
	if got := labels().slimWatched(other, nil); got != any(other) {
		t.Errorf("%v", got)
	}
}

func TestOneNamespaceOpensSoManyWatchesAndNoMore(t *testing.T) {
	play(t, func(ctx context.Context, w *world) {
		account := func(namespace string, i int) Key {
			k := names()
			k.Account = client.Account{Namespace: namespace, Name: fmt.Sprintf("runner-%d", i)}
			return k
		}
		keep := func(namespace string, i int) string {
			_, why := w.Keep(ctx, types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("p-%d", i)}, account(namespace, i), "orders").Get(namespace, "orders")
			return why
		}
		for i := range maxOpen {
			if why := keep("shop", i); strings.Contains(why, "as many as one may") {
				t.Fatalf("watch %d of %d: %s", i+1, maxOpen, why)
			}
		}
		if why := keep("shop", maxOpen); !strings.Contains(why, "namespace shop has 64 watches of targets open, as many as one may") {
			t.Errorf("one more: %q", why)
		}
		if why := keep("other", 0); strings.Contains(why, "as many as one may") {
			t.Errorf("another namespace: %s", why)
		}
		w.Drop(types.NamespacedName{Namespace: "shop", Name: "p-0"})
		w.pass(refusedPause)
		_ = keep("shop", maxOpen) // tries anew, and what was wrong stands until there is an answer
		w.pass(time.Second)
		if why := keep("shop", maxOpen); strings.Contains(why, "as many as one may") {
			t.Errorf("after another was closed: %s", why)
		}
	})
}
