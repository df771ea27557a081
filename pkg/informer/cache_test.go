package informer_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// world is a cluster and a cache of its ConfigMaps.
type world struct {
	*testing.T
	api *agenttest.Cluster
	*informer.Cache

	mu     sync.Mutex
	events []string
}

func play(t *testing.T, before func(*agenttest.Cluster), story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, api: agenttest.New(t)}
		before(w.api)
		conn, _ := w.api.Connect()
		w.Cache = agenttest.ConfigMaps(conn, "", func(o any) (any, error) { return o, nil })
		note := func(how string) func(any) {
			return func(o any) {
				m := o.(metav1.Object)
				w.mu.Lock()
				defer w.mu.Unlock()
				w.events = append(w.events, how+" "+m.GetLabels()[annotations.LabelKind]+" "+m.GetName())
			}
		}
		w.Handle(note("saw"), note("lost"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Informer.RunWithContext(ctx)
		story(w)
	})
}

func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// heard is what the handler was told since it was asked last, in order.
func (w *world) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.events
	w.events = nil
	slices.Sort(out)
	return out
}

func (w *world) expect(when string, want ...string) {
	w.Helper()
	if got := w.heard(); !slices.Equal(got, want) {
		w.Errorf("%s: heard %q, want %q", when, got, want)
	}
}

func configMap(name, kind, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{annotations.LabelKind: kind}}, Data: map[string]string{"v": value}}
}

// two are two ConfigMaps, and the account that looks at them.
func two(api *agenttest.Cluster) {
	api.Put(
		configMap("a", "plan", "1"), configMap("b", "run", "1"),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: accountOf().Namespace, Name: accountOf().Name}},
	)
}

// However a watch fails, what happened meanwhile is heard, and nothing twice.
func TestWhatHappensWhileAWatchFailsIsHeard(t *testing.T) {
	watch := agenttest.When{Verb: "watch", Resource: "configmaps"}
	list := agenttest.When{Verb: "list", Resource: "configmaps"}
	for name, c := range map[string]struct {
		fails func(api *agenttest.Cluster)
		max   time.Duration
	}{
		"it works":             {func(*agenttest.Cluster) {}, 0},
		"it says nothing more": {func(api *agenttest.Cluster) { api.StallWatches("configmaps") }, 10 * time.Second},
		"its version is too old": {func(api *agenttest.Cluster) {
			api.StallWatches("configmaps")
			api.Refuse(watch, 1, http.StatusGone, "too old")
		}, 12 * time.Second},
		"it is refused for a while": {func(api *agenttest.Cluster) {
			api.StallWatches("configmaps")
			api.Refuse(watch, 3, http.StatusServiceUnavailable, "away")
		}, 15 * time.Second},
		"the connection breaks": {func(api *agenttest.Cluster) { api.StallWatches("configmaps"); api.Fail(watch, 3) }, 15 * time.Second},
		"the list fails too":    {func(api *agenttest.Cluster) { api.StallWatches("configmaps"); api.Fail(list, 3) }, 15 * time.Second},
		"it is never answered":  {func(api *agenttest.Cluster) { api.StallWatches("configmaps"); api.Hold(watch, 1) }, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, two, func(w *world) {
				w.after(time.Second)
				w.expect("at first", "saw plan a", "saw run b")
				c.fails(w.api)
				w.api.Put(configMap("a", "plan", "2"), configMap("c", "run", "1"))
				w.api.Delete("configmaps", "shop", "b")
				w.after(c.max)
				w.expect("then", "lost run b", "saw plan a", "saw run c")
				w.after(time.Minute)
				w.expect("and later")
			})
		})
	}
}

func TestAnotherObjectOfANameIsLostAndSeen(t *testing.T) {
	play(t, two, func(w *world) {
		w.after(time.Second)
		w.heard()
		w.api.StallWatches("configmaps")
		w.api.Delete("configmaps", "shop", "a")
		w.api.Put(configMap("a", "plan", "3"))
		w.after(10 * time.Second)
		w.expect("then", "lost plan a", "saw plan a")
	})
}

func TestAnObjectThatBecomesAnotherKindIsLostAsTheOne(t *testing.T) {
	play(t, two, func(w *world) {
		w.after(time.Second)
		w.heard()
		plans, others, policies := w.ChangedIn("shop", "run"), w.ChangedIn("shop", "plan"), w.ChangedIn("shop", "plan", "run")
		w.api.Put(configMap("a", "policy", "1"))
		w.after(time.Second)
		w.expect("then", "lost plan a", "saw policy a")
		if w.ChangedIn("shop", "run") == plans || w.ChangedIn("shop", "plan") == others || w.ChangedIn("shop", "plan", "run") == policies || w.ChangedIn("shop", "policy", "run") == policies {
			w.Error("a change is not told of the one kind and of the other")
		}
		if w.ChangedIn("shop", "plan", "policy") > others || w.ChangedIn("stage") != 0 {
			w.Errorf("told of what has not changed: of runs %d, of another namespace %d", w.ChangedIn("shop", "plan", "policy"), w.ChangedIn("stage"))
		}
	})
}

func TestABarrierIsReachedWhenAllIsTakenIn(t *testing.T) {
	play(t, two, func(w *world) {
		w.after(time.Second)
		w.api.StallWatches("configmaps")
		w.api.Put(configMap("c", "run", "1"))
		w.api.Delete("configmaps", "shop", "b")
		began := time.Now()
		if err := w.ReachLatest(w.Context()); err != nil {
			w.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			w.Errorf("it took %s", took)
		}
		a, c := types.NamespacedName{Namespace: "shop", Name: "a"}, types.NamespacedName{Namespace: "shop", Name: "c"}
		there := map[string]uint64{"a": w.Version(a), "c": w.Version(c)}
		all, plans := func(string) bool { return true }, func(kind string) bool { return kind == "plan" }
		newer, less := map[string]uint64{"a": w.Version(a) + 1, "c": w.Version(c)}, map[string]uint64{"a": w.Version(a)}
		shows := func(there map[string]uint64, ours func(string) bool) bool { return w.ShowsIn("shop", there, ours) }
		if !shows(there, all) || shows(newer, all) || shows(less, all) || !shows(less, plans) || w.Version(types.NamespacedName{Namespace: "shop", Name: "b"}) != 0 {
			w.Errorf("shows what is there: %t; something newer: %t; less: %t; less of another kind: %t", shows(there, all), shows(newer, all), shows(less, all), shows(less, plans))
		}
		if !w.ShowsIn("stage", nil, all) || w.ShowsIn("stage", there, all) {
			w.Error("it shows in one namespace what is in another")
		}
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		if err := w.Reach(ctx, 1<<40); err == nil {
			w.Error("what nobody has written is reached")
		}
	})
}

func TestABarrierThatCannotBeReadIsAnError(t *testing.T) {
	play(t, two, func(w *world) {
		w.after(time.Second)
		w.api.Refuse(agenttest.When{Verb: "list"}, 1, http.StatusServiceUnavailable, "away")
		if err := w.ReachLatest(w.Context()); err == nil {
			w.Error("no answer is taken for one")
		}
	})
}

// A watch for an account is asked for rarely: who is refused waits longer and longer,
// and a server that sends no bookmarks is not taken for dead again and again.
func TestAWatchForAnAccountCostsLittle(t *testing.T) {
	const runner = "system:serviceaccount:shop:maint-runner"
	for name, c := range map[string]struct {
		before func(*agenttest.Cluster)
		lists  int // within an hour, at most
		told   string
	}{
		"it is refused":      {func(api *agenttest.Cluster) { api.Deny(runner, "list", "configmaps") }, 260, "forbidden"},
		"nothing ever moves": {func(*agenttest.Cluster) {}, 12, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := agenttest.New(t)
				two(api)
				c.before(api)
				_, accounts := api.Connect()
				m, err := accounts.Metadata(accountOf())
				if err != nil {
					t.Fatal(err)
				}
				var mu sync.Mutex
				told := ""
				from := informer.NewLongListWatch(&metav1.PartialObjectMetadata{}, func(err error) {
					mu.Lock()
					defer mu.Unlock()
					if told = ""; err != nil {
						told = err.Error()
					}
				})
				maps := m.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("shop")
				from.ListFunc, from.WatchFunc = listOf(maps), maps.Watch
				seen := 0
				all, heard := informer.New(from, func(o any) (any, error) { return o, nil }, cache.ResourceEventHandlerFuncs{AddFunc: func(any) { mu.Lock(); defer mu.Unlock(); seen++ }})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go all.RunWithContext(ctx)
				time.Sleep(time.Hour)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if n := api.Asked(agenttest.When{Verb: "list", Resource: "configmaps"}); n > c.lists {
					t.Errorf("listed %d times in an hour, want at most %d", n, c.lists)
				}
				if (told == "") != (c.told == "") || !strings.Contains(told, c.told) || heard.HasSynced() != (c.told == "") {
					t.Errorf("told %q, synced %t, saw %d", told, heard.HasSynced(), seen)
				}
			})
		})
	}
}

func TestTextsAreKeptOnceUpToABound(t *testing.T) {
	w := informer.NewInterner()
	if w.Keys(nil) != nil {
		t.Error("no map became one")
	}
	first := w.Keys(map[string]string{"a": "1"})
	if got := w.Keys(map[string]string{"a": "2"}); got["a"] != "2" || first["a"] != "1" {
		t.Errorf("%v, %v", first, got)
	}
	for range 10 {
		if got := w.Intern("text"); got != "text" {
			t.Errorf("%q", got)
		}
	}
}

func TestAVersionIsANumberOrNone(t *testing.T) {
	for text, want := range map[string]uint64{"12": 12, "": 0, "x": 0, "-1": 0, "18446744073709551616": 0} {
		if got := informer.Version(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func accountOf() client.Account { return client.Account{Namespace: "shop", Name: "maint-runner"} }

func listOf(from metadata.ResourceInterface) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return from.List(ctx, o) }
}
