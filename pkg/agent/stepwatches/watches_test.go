package stepwatches

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// tower watches objects of a cluster in memory for steps.
type tower struct {
	*testing.T
	*Watches
	cluster  *agenttest.Cluster
	accounts *client.Impersonator

	mu    sync.Mutex
	woken []string
}

func inTower(t *testing.T, story func(ctx context.Context, w *tower)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &tower{T: t, cluster: agenttest.New(t)}
		w.cluster.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "runner"}})
		_, w.accounts = w.cluster.Connect()
		w.Watches = New(func(s store.StepKey) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.woken = append(w.woken, s.Path)
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		story(ctx, w)
	})
}

func step(namespace, run, path string) store.StepKey {
	return store.StepKey{Run: types.NamespacedName{Namespace: namespace, Name: run}, Path: path}
}

// keeps watches a ConfigMap for a step, and says whether it is watched.
func (w *tower) keeps(ctx context.Context, s store.StepKey, name string) bool {
	w.Helper()
	account := client.Account{Namespace: s.Run.Namespace, Name: "runner"}
	as, err := w.accounts.Clients(account, s.Run.Name)
	if err != nil {
		w.Fatal(err)
	}
	return w.Keep(ctx, s, account, as, executors.Watch{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: s.Run.Namespace, Name: name})
}

// news are the steps that were woken since it was last asked.
func (w *tower) news() []string {
	time.Sleep(time.Second)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.woken
	w.woken = nil
	slices.Sort(out)
	return slices.Compact(out)
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestOneNamespaceOpensSoManyWatchesAndNoMore(t *testing.T) {
	nth := func(i int) (store.StepKey, string) { return step("shop", "r", fmt.Sprint("s", i)), fmt.Sprint("c", i) }
	for name, c := range map[string]struct {
		open   int // steps that watch before
		before func(w *tower)
		asks   store.StepKey
		object string
		want   bool
		count  int
	}{
		"nobody else watches":                      {asks: step("shop", "r", "a"), object: "x", want: true, count: 1},
		"there is room for one":                    {open: maxOpen - 1, asks: step("shop", "r", "a"), object: "x", want: true, count: maxOpen},
		"there are as many as may be":              {open: maxOpen, asks: step("shop", "r", "a"), object: "x", count: maxOpen},
		"more were asked for":                      {open: maxOpen + 9, asks: step("shop", "r", "a"), object: "x", count: maxOpen},
		"another run of the namespace":             {open: maxOpen, asks: step("shop", "q", "a"), object: "x", count: maxOpen},
		"another namespace":                        {open: maxOpen, asks: step("other", "r", "a"), object: "x", want: true, count: maxOpen + 1},
		"another step of the run, the same object": {open: maxOpen, asks: step("shop", "r", "a"), object: "c1", want: true, count: maxOpen},
		"a step that has its watch":                {open: maxOpen, asks: step("shop", "r", "s1"), object: "c1", want: true, count: maxOpen},
		"a step that has one of another object":    {open: maxOpen, asks: step("shop", "r", "s1"), object: "x", count: maxOpen - 1},
		"another step was let go": {
			open: maxOpen, before: func(w *tower) { w.Drop(step("shop", "r", "s3")) },
			asks: step("shop", "r", "a"), object: "x", want: true, count: maxOpen,
		},
		"the run of the others was let go": {
			open: maxOpen, before: func(w *tower) { w.DropRun(types.NamespacedName{Namespace: "shop", Name: "r"}) },
			asks: step("shop", "q", "a"), object: "x", want: true, count: 1,
		},
		"a run of that name elsewhere was let go": {
			open: maxOpen, before: func(w *tower) { w.DropRun(types.NamespacedName{Namespace: "other", Name: "r"}) },
			asks: step("shop", "q", "a"), object: "x", count: maxOpen,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTower(t, func(ctx context.Context, w *tower) {
				for i := range c.open {
					s, object := nth(i)
					w.keeps(ctx, s, object)
				}
				if c.before != nil {
					c.before(w)
				}
				if got := w.keeps(ctx, c.asks, c.object); got != c.want || w.Count() != c.count {
					t.Errorf("it is watched: %t; %d watches, want %d", got, w.Count(), c.count)
				}
			})
		})
	}
}

func TestWhichStepsAreWoken(t *testing.T) {
	inTower(t, func(ctx context.Context, w *tower) {
		w.cluster.Put(configMap("shop", "x"), configMap("shop", "y"))
		w.keeps(ctx, step("shop", "r", "a"), "x")
		w.keeps(ctx, step("shop", "r", "b"), "y")
		w.keeps(ctx, step("shop", "q", "c"), "x")
		for _, c := range []struct {
			what    string
			happens func()
			want    []string
		}{
			{"each, once its watch stands", func() {}, []string{"a", "b", "c"}},
			{"nothing happens", func() { time.Sleep(time.Minute) }, nil},
			{"an object changes", func() { w.cluster.Annotate("shop", "x", "k", "v") }, []string{"a", "c"}},
			{"one is asked for again", func() { w.keeps(ctx, step("shop", "r", "a"), "x") }, nil},
			{"another object is asked for", func() { w.keeps(ctx, step("shop", "r", "a"), "y") }, []string{"a"}},
			{"the one before changes", func() { w.cluster.Annotate("shop", "x", "k", "w") }, []string{"c"}},
			{"the other one changes", func() { w.cluster.Annotate("shop", "y", "k", "w") }, []string{"a", "b"}},
			{"a run is let go", func() {
				w.DropRun(types.NamespacedName{Namespace: "shop", Name: "r"})
				w.cluster.Annotate("shop", "y", "k", "z")
			}, nil},
		} {
			c.happens()
			if diff := cmp.Diff(c.want, w.news()); diff != "" {
				t.Errorf("%s: woken (-want +got):\n%s", c.what, diff)
			}
		}
	})
}

func TestAWatchThatIsRefusedWakesItsStepAndIsItsFailure(t *testing.T) {
	inTower(t, func(ctx context.Context, w *tower) {
		w.cluster.Deny("system:serviceaccount:shop:runner", "watch", "configmaps")
		s := step("shop", "r", "a")
		w.keeps(ctx, s, "x")
		if diff := cmp.Diff([]string{"a"}, w.news()); diff != "" {
			t.Errorf("woken (-want +got):\n%s", diff)
		}
		as, err := w.accounts.Clients(client.Account{Namespace: "shop", Name: "runner"}, "r")
		if err != nil {
			t.Fatal(err)
		}
		failed := w.Failure(ctx, s, as, time.Now())
		if want := `serviceaccount shop/runner may not watch configmaps "x"`; failed == nil || !strings.Contains(failed.Message, want) {
			t.Errorf("failed: %+v, want %q", failed, want)
		}
		if other := w.Failure(ctx, step("shop", "r", "b"), as, time.Now()); other != nil {
			t.Errorf("a step that watches nothing failed: %+v", other)
		}
	})
}
