package informer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// setWorld is a cluster with two ConfigMaps, and members that look at them.
type setWorld struct {
	*testing.T
	api      *agenttest.Cluster
	accounts *client.Impersonator
	*informer.Set
	ctx  context.Context //nolint:containedctx // of the story
	mu   sync.Mutex
	told []string
}

const looker = "system:serviceaccount:shop:maint-runner"

func inSet(t *testing.T, most int, story func(w *setWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &setWorld{T: t, api: agenttest.New(t)}
		two(w.api)
		_, w.accounts = w.api.Connect()
		w.Set = informer.NewSet(informer.Bound{Max: most, Of: "tests", Advice: "look at less"})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		w.ctx = ctx
		story(w)
	})
}

func maps() informer.Key {
	return informer.Key{As: types.NamespacedName(accountOf()), Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Namespace: "shop"}
}

func refusal(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("it may not: %w", err)
	}
	return nil
}

// kept lists, and keeps whole objects; noticed keeps nothing.
func (w *setWorld) kept(k informer.Key) informer.Source {
	s := w.noticed(k)
	s.Keep = func(o runtime.Object, _ any) any { return &struct{ metav1.Object }{o.(*unstructured.Unstructured)} }
	return s
}

func (w *setWorld) noticed(k informer.Key) informer.Source {
	return informer.Source{Refusal: refusal, Open: func() (*informer.ListWatch, error) {
		c, err := w.accounts.Clients(client.Account(k.As), "")
		return k.Objects(c.Dynamic), err
	}}
}

func (w *setWorld) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

func (w *setWorld) member(who, of string) informer.Member {
	return informer.Member{
		Name: of,
		Changed: func(o any, gone bool) {
			name := "something"
			if m, is := o.(metav1.Object); is {
				name = m.GetName()
			}
			if gone {
				name += " gone"
			}
			w.note("%s: %s", who, name)
		},
		Established: func() { w.note("%s: standing", who) },
	}
}

func (w *setWorld) join(k informer.Key, source informer.Source, who, of string) *informer.Use {
	w.Helper()
	u, err := w.Join(w.ctx, k, source, w.member(who, of))
	if err != nil {
		w.Fatal(err)
	}
	return u
}

// expect is what the members were told within a time, each once, in order of words.
func (w *setWorld) expect(within time.Duration, when string, want ...string) {
	w.Helper()
	time.Sleep(within)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.told
	w.told = nil
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		w.Errorf("%s: told %q, want %q", when, got, want)
	}
}

func TestMembersThatAskForTheSameShareAWatch(t *testing.T) {
	inSet(t, 0, func(w *setWorld) {
		letGo := w.api.Hold(agenttest.When{Verb: "list", Resource: "configmaps"}, agenttest.Always)
		all, one := w.join(maps(), w.kept(maps()), "all", ""), w.join(maps(), w.kept(maps()), "one", "a")
		if all.Late || !one.Late || all.Synced() {
			t.Errorf("late %t and %t, synced %t before anything was listed", all.Late, one.Late, all.Synced())
		}
		letGo()
		w.expect(time.Second, "at first", "all: a", "all: b", "all: standing", "one: a", "one: standing")
		other := maps()
		other.Variant = "other"
		alone := w.join(other, w.kept(other), "alone", "")
		w.expect(time.Second, "another variant", "alone: a", "alone: b", "alone: standing")
		if n := w.Count(); n != 2 || len(w.api.Watches()) != 2 {
			t.Errorf("%d watches, open %q", n, w.api.Watches())
		}
		alone.Leave()
		late := w.join(maps(), w.kept(maps()), "late", "b")
		if !late.Late || !late.Synced() || late.Get("shop", "b") == nil || late.Get("shop", "none") != nil || len(late.Kept()) != 2 {
			t.Errorf("who joins late finds %v", late.Kept())
		}
		w.api.Put(configMap("b", "run", "2"))
		w.api.Delete("configmaps", "shop", "a")
		w.expect(time.Second, "each hears of its own", "all: a gone", "all: b", "late: b", "one: a gone")
		all.Leave()
		one.Leave()
		one.Leave()
		w.api.Put(configMap("b", "run", "3"))
		w.expect(time.Second, "who has left hears no more", "late: b")
		late.Leave()
		w.expect(time.Second, "the last one ends it")
		if n := w.Count(); n != 0 || len(w.api.Watches()) != 0 {
			t.Errorf("%d watches, open %q, that nobody needs", n, w.api.Watches())
		}
	})
}

func TestAMemberThatJoinsWhileItIsListedHearsOfAll(t *testing.T) {
	inSet(t, 0, func(w *setWorld) {
		letGo := w.api.Hold(agenttest.When{Verb: "list", Resource: "configmaps"}, 1)
		w.join(maps(), w.kept(maps()), "first", "")
		w.expect(time.Second, "before the answer")
		second := w.join(maps(), w.kept(maps()), "second", "")
		if second.Synced() {
			t.Error("what was not answered is synced")
		}
		letGo()
		w.expect(time.Second, "then", "first: a", "first: b", "first: standing", "second: a", "second: b", "second: standing")
	})
}

func TestAMemberLeavesWhileItIsTold(t *testing.T) {
	inSet(t, 0, func(w *setWorld) {
		var mu sync.Mutex
		var u *informer.Use
		seen := 0
		mu.Lock()
		u, err := w.Join(w.ctx, maps(), w.kept(maps()), informer.Member{Changed: func(any, bool) {
			mu.Lock()
			defer mu.Unlock()
			seen++
			u.Leave()
		}})
		mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		w.expect(time.Second, "nobody else")
		if seen != 1 || w.Count() != 0 || len(w.api.Watches()) != 0 {
			t.Errorf("told of %d objects, %d watches, open %q", seen, w.Count(), w.api.Watches())
		}
		again := w.join(maps(), w.kept(maps()), "again", "b")
		u.Leave() // of the one that has ended
		w.expect(time.Second, "it is opened anew", "again: b", "again: standing")
		if again.Late || w.Count() != 1 {
			t.Errorf("late %t, %d watches", again.Late, w.Count())
		}
	})
}

func TestOneNamespaceHasSoManyWatchesAndNoMore(t *testing.T) {
	inSet(t, 2, func(w *setWorld) {
		variant := func(namespace, name string) informer.Key {
			k := maps()
			k.As.Namespace, k.Variant = namespace, name
			return k
		}
		first := w.join(variant("shop", "1"), w.noticed(maps()), "one", "")
		w.join(variant("shop", "2"), w.noticed(maps()), "two", "")
		w.join(variant("shop", "2"), w.noticed(maps()), "shared", "")
		w.join(variant("other", "3"), w.noticed(maps()), "elsewhere", "")
		_, err := w.Join(w.ctx, variant("shop", "3"), w.noticed(maps()), w.member("three", ""))
		full := new(informer.FullError)
		if !errors.As(err, &full) || err.Error() != "namespace shop has 2 watches of tests open, as many as one may: look at less" {
			t.Errorf("one more: %v", err)
		}
		first.Leave()
		w.join(variant("shop", "3"), w.noticed(maps()), "three", "")
		if n := w.Count(); n != 3 {
			t.Errorf("%d watches", n)
		}
	})
}

func TestWhatCannotBeOpenedIsNotCounted(t *testing.T) {
	inSet(t, 1, func(w *setWorld) {
		broken := informer.Source{Open: func() (*informer.ListWatch, error) { return nil, errors.New("no client") }}
		if _, err := w.Join(w.ctx, maps(), broken, w.member("one", "")); err == nil || err.Error() != "no client" {
			t.Errorf("%v", err)
		}
		w.join(maps(), w.kept(maps()), "one", "a")
		w.expect(time.Second, "then", "one: a", "one: standing")
	})
}

func TestARefusalIsToldOnceAndUntilItIsOver(t *testing.T) {
	inSet(t, 0, func(w *setWorld) {
		mend := w.api.Refuse(agenttest.When{Verb: "list", Resource: "configmaps"}, agenttest.Always, http.StatusServiceUnavailable, "away")
		u := w.join(maps(), w.kept(maps()), "one", "a")
		w.expect(time.Minute, "a server that is away says nothing of rights")
		w.api.Deny(looker, "list", "configmaps")
		mend()
		w.expect(time.Minute, "it is refused", "one: standing")
		if err := u.Refusal(); err == nil || !strings.HasPrefix(err.Error(), "it may not: ") || u.Synced() {
			t.Errorf("%v, synced %t", err, u.Synced())
		}
		w.expect(time.Hour, "that is no news for an hour")
		asked := w.api.Asked(agenttest.When{Resource: "configmaps"})
		w.Retry(types.NamespacedName{Namespace: "shop", Name: "other"})
		w.expect(0, "the rights of another have changed")
		if n := w.api.Asked(agenttest.When{Resource: "configmaps"}); n != asked {
			t.Errorf("asked %d times for the rights of another", n-asked)
		}
		w.api.Allow(looker, "list", "configmaps")
		w.Retry(maps().As)
		w.expect(200*time.Millisecond, "its rights were mended", "one: a", "one: standing")
		if err := u.Refusal(); err != nil || !u.Synced() {
			t.Errorf("%v, synced %t", err, u.Synced())
		}
	})
}

// An API server that has just started refuses everybody: what was seen before counts meanwhile, and
// that a right is missing is told only when it was refused for a while.
func TestARefusalIsTheWantOfARightOnceItLasts(t *testing.T) {
	inSet(t, 0, func(w *setWorld) {
		source := w.kept(maps())
		source.RefusalTimeout = 30 * time.Second
		trouble := func(u *informer.Use) string {
			if err := u.Trouble(); err != nil {
				return err.Error()
			}
			return ""
		}
		w.api.Deny(looker, "list", "configmaps")
		u := w.join(maps(), source, "one", "a")
		w.expect(29*time.Second, "it is refused", "one: standing")
		if got := trouble(u); !strings.HasPrefix(got, "configmaps in namespace shop cannot be read yet: ") || u.Refusal() == nil {
			t.Errorf("at first: %q, %v", got, u.Refusal())
		}
		w.expect(2*time.Second, "it lasts", "one: standing")
		if got := trouble(u); !strings.HasPrefix(got, "it may not: ") {
			t.Errorf("then: %q", got)
		}
		w.api.Allow(looker, "list", "configmaps")
		w.Retry(maps().As)
		w.expect(time.Second, "its rights were mended", "one: a", "one: standing")
		if got := trouble(u); got != "" {
			t.Errorf("when its rights were mended: %q", got)
		}
		w.api.Deny(looker, "list", "configmaps")
		w.api.StallWatches("configmaps")
		w.expect(informer.LongSilence+5*time.Second, "it is refused again", "one: standing")
		if got := trouble(u); got != "" || u.Refusal() == nil {
			t.Errorf("what was seen before does not count: %q, %v", got, u.Refusal())
		}
		w.expect(31*time.Second, "and that lasts", "one: standing")
		if got := trouble(u); !strings.HasPrefix(got, "it may not: ") {
			t.Errorf("then: %q", got)
		}
	})
}

// A watch that is refused says so once, and not every ten seconds in the log.
func TestARefusalFillsNoLog(t *testing.T) {
	inSet(t, 0, func(w *setWorld) {
		var said strings.Builder
		w.ctx = klog.NewContext(w.ctx, logr.FromSlogHandler(slog.NewTextHandler(&said, nil)))
		w.api.Deny(looker, "list", "configmaps")
		w.join(maps(), w.kept(maps()), "one", "a")
		w.expect(5*time.Minute, "it is refused", "one: standing")
		if said.Len() > 0 {
			w.Errorf("the log:\n%s", said.String())
		}
	})
}

func TestASourceSaysHowLongARefusalIsLeft(t *testing.T) {
	inSet(t, 0, func(w *setWorld) {
		w.api.Deny(looker, "list", "configmaps")
		source := w.kept(maps())
		source.Pause = informer.ExponentialBackoff(time.Minute, 4*time.Minute)
		w.join(maps(), source, "one", "a")
		w.expect(time.Second, "at first", "one: standing")
		for _, want := range []int{1, 1, 1, 0, 1} { // after 1, 3 and 7 minutes, and then every four
			asked := w.api.Asked(agenttest.When{Resource: "configmaps"})
			time.Sleep(map[int]time.Duration{1: 4 * time.Minute, 0: time.Minute}[want])
			if n := w.api.Asked(agenttest.When{Resource: "configmaps"}) - asked; (n > 0) != (want > 0) {
				t.Errorf("asked %d times, want %d", n, want)
			}
		}
	})
}

func TestAWatchThatIsSilentIsDoubted(t *testing.T) {
	for name, c := range map[string]struct {
		source func(*setWorld) informer.Source
		first  []string
		then   []string
	}{
		"it keeps objects": {func(w *setWorld) informer.Source { return w.kept(maps()) }, []string{"one: a", "one: b", "one: standing"}, []string{"one: a"}},
		"it keeps nothing": {func(w *setWorld) informer.Source { return w.noticed(maps()) }, []string{"one: something"}, []string{"one: something"}},
	} {
		t.Run(name, func(t *testing.T) {
			inSet(t, 0, func(w *setWorld) {
				u := w.join(maps(), c.source(w), "one", "")
				w.expect(time.Second, "at first", c.first...)
				w.api.StallWatches("configmaps")
				w.api.Put(configMap("a", "plan", "2"))
				w.expect(informer.LongSilence-2*time.Second, "it is believed")
				w.expect(5*time.Second, "what it has missed", c.then...)
				if !u.Synced() {
					t.Error("it does not stand")
				}
			})
		})
	}
}

// Where nothing is kept the account needs no right to list.
func TestWhoKeepsNothingIsToldThatSomethingMayHaveChanged(t *testing.T) {
	inSet(t, 0, func(w *setWorld) {
		w.api.Deny(looker, "list", "configmaps")
		first := w.join(maps(), w.noticed(maps()), "first", "")
		w.expect(time.Second, "it stands", "first: something")
		w.join(maps(), w.noticed(maps()), "second", "a")
		w.expect(0, "since who joins has looked before", "second: something")
		w.api.Put(configMap("b", "run", "2"))
		w.expect(time.Second, "then", "first: something", "second: something")
		if !first.Synced() || first.Refusal() != nil || w.api.Asked(agenttest.When{Verb: "list", Resource: "configmaps"}) != 0 {
			t.Errorf("synced %t, %v", first.Synced(), first.Refusal())
		}
	})
}

func TestAWatchOfNothingThatIsNeverAnsweredIsDoubted(t *testing.T) {
	inSet(t, 0, func(w *setWorld) {
		w.api.Hold(agenttest.When{Verb: "watch", Resource: "configmaps"}, 1)
		u := w.join(maps(), w.noticed(maps()), "one", "")
		w.expect(kube.AnswerWithin-time.Second, "it may be slow")
		if u.Synced() {
			t.Error("what was not answered stands")
		}
		w.expect(5*time.Second, "it is opened anew", "one: something")
		if !u.Synced() {
			t.Error("it does not stand")
		}
	})
}

func TestWhatIsKeptMayDependOnWhatWasKept(t *testing.T) {
	inSet(t, 0, func(w *setWorld) {
		source := w.kept(maps())
		source.Keep = func(o runtime.Object, was any) any {
			u := o.(*unstructured.Unstructured)
			if had, is := was.(*unstructured.Unstructured); is && u.GetKind() == "" { // nobody saw that it was deleted
				return had
			}
			return u
		}
		var mu sync.Mutex
		var lost, told []string
		source.Delivered = func(o any) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, o.(metav1.Object).GetName())
		}
		_, err := w.Join(w.ctx, maps(), source, informer.Member{Changed: func(o any, gone bool) {
			mu.Lock()
			defer mu.Unlock()
			if u := o.(*unstructured.Unstructured); gone {
				lost = append(lost, u.GetName()+" "+u.GetKind())
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.api.StallWatches("configmaps")
		w.api.Delete("configmaps", "shop", "a")
		time.Sleep(2 * informer.LongSilence)
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(lost, []string{"a ConfigMap"}) || len(told) != 3 {
			t.Errorf("lost %q, told %q", lost, told)
		}
	})
}

func TestWhatIsWatchedIsReadUntilItIsEnough(t *testing.T) {
	inSet(t, 0, func(w *setWorld) {
		u := w.join(maps(), w.kept(maps()), "one", "a")
		synctest.Wait() // its own list is not the one that is refused
		for want := 1; want <= 2; want++ {
			seen := 0
			err := u.List(w.ctx, func(runtime.Object) bool { seen++; return seen < want })
			if err != nil || seen != want {
				t.Errorf("saw %d, want %d, %v", seen, want, err)
			}
		}
		w.api.Refuse(agenttest.When{Verb: "list"}, 1, http.StatusServiceUnavailable, "away")
		if err := u.List(w.ctx, func(runtime.Object) bool { return true }); err == nil {
			t.Error("no answer is taken for one")
		}
	})
}

func TestMembersComeAndGoAtOnce(t *testing.T) {
	inSet(t, 8, func(w *setWorld) {
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				for range 20 {
					k := maps()
					k.Variant = fmt.Sprint(i % 4)
					u := w.join(k, w.kept(k), "one", []string{"", "a", "b"}[i%3])
					w.api.Put(configMap("a", "plan", fmt.Sprint(i)))
					_, _, _ = u.Synced(), u.Kept(), u.Refusal()
					time.Sleep(time.Duration(i) * time.Millisecond)
					w.Retry(k.As)
					u.Leave()
				}
			})
		}
		group.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		if n := w.Count(); n != 0 || len(w.api.Watches()) != 0 {
			t.Errorf("%d watches, open %q", n, w.api.Watches())
		}
	})
}
