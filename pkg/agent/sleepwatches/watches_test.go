package sleepwatches

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// gallery is an API server of which only watches are asked.
type gallery struct {
	*Watches
	mu      sync.Mutex
	streams map[string]*watch.RaceFreeFakeWatcher // by resource/namespace
	refused bool
	queue   *queue.Queue
}

func inGallery(t *testing.T, story func(ctx context.Context, g *gallery)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &gallery{streams: map[string]*watch.RaceFreeFakeWatcher{}, queue: queue.New(queue.Config{Now: time.Now})}
		defer g.queue.ShutDown()
		scheme := runtime.NewScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		fake := metadatafake.NewSimpleMetadataClient(scheme)
		fake.PrependWatchReactor("*", func(a clienttesting.Action) (bool, watch.Interface, error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.refused {
				return true, nil, errors.New("forbidden")
			}
			stream := watch.NewRaceFreeFake()
			g.streams[a.GetResource().Resource+"/"+a.GetNamespace()] = stream
			return true, stream, nil
		})
		fake.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			return false, nil, nil
		})
		g.Watches = New(func(client.Account) (metadata.Interface, error) { return fake, nil }, g.queue)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		story(ctx, g)
	})
}

// news are the plans that are to be looked at for what changed in a second.
func (g *gallery) news() []string {
	time.Sleep(time.Second)
	synctest.Wait()
	var out []string
	for g.queue.Len() > 0 {
		plan, _ := g.queue.Get()
		out = append(out, plan.Name)
		g.queue.Done(plan)
	}
	slices.Sort(out)
	return out
}

func (g *gallery) changes(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.streams[key].Modify(&metav1.PartialObjectMetadata{})
}

func kindsOf(namespace string, resources ...string) []executors.Watch {
	var out []executors.Watch
	for _, r := range resources {
		out = append(out, executors.Watch{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: r}, Namespace: namespace})
	}
	return out
}

func accountIn(namespace string) client.Account {
	return client.Account{Namespace: namespace, Name: "maint-runner"}
}

func planNamed(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func TestPlansHearOfWhatTheirTargetsSelect(t *testing.T) {
	inGallery(t, func(ctx context.Context, g *gallery) {
		expect := func(when string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, g.news()); diff != "" {
				t.Errorf("%s: %s", when, diff)
			}
		}
		g.mu.Lock() // nothing is listed until it was asked
		stands := g.Keep(ctx, planNamed("a"), "apps", accountIn("shop"), executors.Clients{}, kindsOf("shop", "deployments", "statefulsets"))
		g.mu.Unlock()
		if stands {
			t.Error("what was only just asked for stands already")
		}
		expect("what stands may have missed something", "a")
		g.Keep(ctx, planNamed("b"), "apps", accountIn("shop"), executors.Clients{}, kindsOf("shop", "deployments"))
		if g.Count() != 2 {
			t.Errorf("%d watches: plans of one account share them", g.Count())
		}
		for range 5 {
			g.changes("deployments/shop")
		}
		expect("changes that come together are one", "a", "b")
		g.changes("statefulsets/shop")
		expect("of what one selects", "a")
		if !g.Keep(ctx, planNamed("a"), "apps", accountIn("shop"), executors.Clients{}, kindsOf("shop", "deployments")) || g.Count() != 1 {
			t.Errorf("%d watches once one is not needed any more", g.Count())
		}
		g.Keep(ctx, planNamed("a"), "more", accountIn("shop"), executors.Clients{}, kindsOf("shop", "deployments"))
		g.Drop(planNamed("a"), "apps")
		g.changes("deployments/shop")
		expect("another target of it still looks", "a", "b")
		g.Drop(planNamed("a"), "")
		g.changes("deployments/shop")
		expect("it is gone", "b")
		g.Drop(planNamed("b"), "")
		if g.Count() != 0 {
			t.Errorf("%d watches of nobody", g.Count())
		}
	})
}

func TestAWatchThatEndsIsOpenedAnew(t *testing.T) {
	inGallery(t, func(ctx context.Context, g *gallery) {
		list := kindsOf("shop", "deployments")
		g.Keep(ctx, planNamed("a"), "apps", accountIn("shop"), executors.Clients{}, list)
		g.news()
		g.mu.Lock()
		g.refused = true
		g.streams["deployments/shop"].Stop()
		g.mu.Unlock()
		if diff := cmp.Diff([]string{"a"}, g.news()); diff != "" {
			t.Errorf("what it misses from now on is looked at: %s", diff)
		}
		if g.Keep(ctx, planNamed("a"), "apps", accountIn("shop"), executors.Clients{}, list) {
			t.Error("a watch that was refused stands")
		}
		g.mu.Lock()
		g.refused = false
		g.mu.Unlock()
		time.Sleep(refusedPause)
		g.news()
		if !g.Keep(ctx, planNamed("a"), "apps", accountIn("shop"), executors.Clients{}, list) {
			t.Error("it is not opened anew")
		}
		g.news()
		time.Sleep(silence)
		if diff := cmp.Diff([]string{"a"}, g.news()); diff != "" {
			t.Errorf("one that is silent is doubted: %s", diff)
		}
	})
}

func TestOneNamespaceHoldsSoManyWatchesAndNoMore(t *testing.T) {
	inGallery(t, func(ctx context.Context, g *gallery) {
		var all []string
		for i := range maxWatches + 10 {
			all = append(all, fmt.Sprintf("kind%d", i))
		}
		g.Keep(ctx, planNamed("a"), "apps", accountIn("shop"), executors.Clients{}, kindsOf("shop", all...))
		g.news()
		if g.Count() != maxWatches || g.Keep(ctx, planNamed("a"), "apps", accountIn("shop"), executors.Clients{}, kindsOf("shop", all...)) {
			t.Errorf("%d watches, and all is said to be seen", g.Count())
		}
		g.Keep(ctx, types.NamespacedName{Namespace: "other", Name: "b"}, "apps", accountIn("other"), executors.Clients{}, kindsOf("other", "deployments"))
		if g.Count() != maxWatches+1 {
			t.Errorf("%d watches: another namespace has its own", g.Count())
		}
	})
}
