package informer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// shelf is an API server's ConfigMaps as a listWatch sees them, with watches that
// break as told.
type shelf struct {
	mu      sync.Mutex
	version int
	maps    map[string]*corev1.ConfigMap
	silent  bool  // watches say nothing
	failing error // of every request
	lists   int
	asked   *int // counts requests in vain
	open    []*watch.FakeWatcher
}

func (s *shelf) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing != nil {
		s.vain()
		return nil, s.failing
	}
	s.lists++
	out := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
	for _, cm := range s.maps {
		out.Items = append(out.Items, *cm.DeepCopy())
	}
	return out, nil
}

func (s *shelf) watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing != nil {
		s.vain()
		return nil, s.failing
	}
	w := watch.NewFakeWithChanSize(100, false)
	s.open = append(s.open, w)
	return w, nil
}

func (s *shelf) vain() {
	if s.asked != nil {
		*s.asked++
	}
}

// put writes a ConfigMap; an empty value deletes it.
func (s *shelf) put(name, value string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(s.version)}, Data: map[string]string{"v": value}}
	kind := watch.Modified
	switch value {
	case "":
		kind = watch.Deleted
		delete(s.maps, name)
	default:
		s.maps[name] = cm
	}
	if n := len(s.open); n > 0 && !s.silent {
		s.open[n-1].Action(kind, cm.DeepCopy())
	}
	return s.version
}

func (s *shelf) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// informed is an informer over a shelf.
func informed(t *testing.T, s *shelf, quiet time.Duration) *Cache {
	t.Helper()
	from := NewListWatch(&corev1.ConfigMap{})
	from.ListFunc, from.WatchFunc, from.silence = s.list, s.watch, quiet
	c := NewCache(from, "kind", func(o any) (any, error) { return o, nil })
	c.Handle(func(any) {}, func(any) {})
	go c.Informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), c.Informer.HasSynced, c.Synced) {
		t.Fatal("the informer did not begin")
	}
	return c
}

func (c *Cache) content() string {
	out := map[string]string{}
	for _, o := range c.Informer.GetStore().List() {
		cm := o.(*corev1.ConfigMap)
		out[cm.Name] = cm.Data["v"]
	}
	return fmt.Sprint(out)
}

func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	end := time.After(limit)
	for !holds() {
		select {
		case <-end:
			t.Fatalf("%s: not within %s", what, limit)
		case <-time.After(time.Millisecond):
		}
	}
}

func newShelf() *shelf {
	return &shelf{version: 10, maps: map[string]*corev1.ConfigMap{}}
}

func TestACacheReachesWhatAWatchThatHangsDoesNotShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.put("a", "1")
		s.put("b", "1")
		c := informed(t, s, time.Hour)
		within(t, 5*time.Second, "a watch is open", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.open) == 1 })
		s.set(func() { s.silent = true })
		s.put("a", "2")
		s.put("b", "")
		now := s.put("c", "1")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := c.Reach(ctx, uint64(now)); err != nil {
			t.Fatal(err)
		}
		if got, want := c.content(), "map[a:2 c:1]"; got != want {
			t.Errorf("the cache has %s, want %s", got, want)
		}
		if c.handled.version(types.NamespacedName{Namespace: "ns", Name: "a"}) == 0 || c.handled.version(types.NamespacedName{Namespace: "ns", Name: "b"}) != 0 || c.handled.version(types.NamespacedName{Namespace: "ns", Name: "c"}) != uint64(now) {
			t.Errorf("the handler has not taken in what the cache has: %v", c.handled.in["ns"])
		}
		if err := c.Reach(ctx, uint64(now)); err != nil || s.lists != 2 {
			t.Errorf("%d lists, %v; what was reached is not listed again", s.lists, err)
		}
	})
}

// A watch that is behind with what others write is left to it: a list of all that they wrote would
// only delay it. One that shows nothing is doubted.
func TestAWatchThatIsBehindIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		others bool
		took   time.Duration
		lists  int
	}{
		"it shows what others write": {true, 5 * time.Second, 1},
		"it shows nothing":           {false, time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf()
				s.put("a", "1")
				cached := informed(t, s, time.Hour)
				time.Sleep(time.Second)
				s.set(func() { s.silent = true })
				wanted := uint64(s.put("a", "2"))
				if c.others {
					go func() {
						for i := range 10 {
							time.Sleep(500 * time.Millisecond)
							s.open[0].Modify(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "others", Name: "x", UID: "x", ResourceVersion: strconv.Itoa(100 + i)}})
						}
						s.open[0].Modify(s.maps["a"].DeepCopy())
					}()
				}
				began := time.Now()
				if err := cached.Await(t.Context(), 1000, time.Second, func() bool {
					return cached.ShowsIn("ns", map[string]uint64{"a": wanted}, func(string) bool { return true })
				}); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < c.took || took > c.took+time.Second || s.lists != c.lists {
					t.Errorf("it took %s and %d lists, want %s and %d", took, s.lists, c.took, c.lists)
				}
			})
		})
	}
}

// From the same version on the watch would come to the event that cannot be read again and
// again: what is there is listed.
func TestAnEventThatCannotBeReadIsReadFromAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.put("a", "1")
		c := informed(t, s, time.Hour)
		within(t, 5*time.Second, "a watch is open", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.open) == 1 })
		s.set(func() { s.silent = true })
		s.put("a", "2")
		s.set(func() {
			s.open[0].Error(apierrors.NewClientErrorReporter(500, "GET", cannotDecode).AsObject(errors.New("unable to decode an event from the watch stream: it is too large")))
			s.silent = false
		})
		within(t, 5*time.Second, "what was written is seen", func() bool { return c.content() == "map[a:2]" })
		s.set(func() {
			if s.lists != 2 {
				t.Errorf("%d lists", s.lists)
			}
		})
	})
}

// What is kept of an object may depend on what has changed since: it is shown again, and
// the others are not.
func TestAnObjectIsHandedOnAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.put("a", "1")
		s.put("b", "1")
		var mu sync.Mutex
		seen, mark := map[string]int{}, "x"
		from := NewListWatch(&corev1.ConfigMap{})
		from.ListFunc, from.WatchFunc, from.silence = s.list, s.watch, time.Hour
		c := NewCache(from, "kind", func(o any) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			if cm, is := o.(*corev1.ConfigMap); is {
				seen[cm.Name]++
				cm.Data = map[string]string{"v": mark}
			}
			return o, nil
		})
		c.Handle(func(any) {}, func(any) {})
		go c.Informer.RunWithContext(t.Context())
		synctest.Wait()
		mu.Lock()
		mark = "y"
		clear(seen)
		mu.Unlock()
		from.Again(types.NamespacedName{Namespace: "ns", Name: "a"})
		from.Again(types.NamespacedName{Namespace: "ns", Name: "not there"})
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if c.content() != "map[a:y b:x]" || seen["a"] != 1 || seen["b"] != 0 {
			t.Errorf("the cache has %s; seen %v", c.content(), seen)
		}
	})
}

// Of an API server that was put back from a backup nothing is taken in, for what is kept is
// of a time that never was. Its version is older then, or, where it was made to go on from a
// higher one, that of an object is.
func TestAStateThatWentBackIsTold(t *testing.T) {
	old := func(name, version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: version}, Data: map[string]string{"v": "old"}}
	}
	for name, c := range map[string]struct {
		change func(s *shelf)
		told   [2]uint64
		has    string
	}{
		"an older version":               {func(s *shelf) { s.version, s.maps = 5, nil }, [2]uint64{14, 5}, "map[a:1 b:1]"},
		"an older object":                {func(s *shelf) { s.version, s.maps["a"] = 1000, old("a", "9") }, [2]uint64{11, 9}, "map[a:1 b:1]"},
		"one that was seen to go":        {func(s *shelf) { s.version, s.maps["c"] = 1000, old("c", "13") }, [2]uint64{15, 13}, "map[a:1 b:1]"},
		"not one that is new":            {func(s *shelf) { s.version, s.maps["c"] = 1000, old("c", "15") }, [2]uint64{}, "map[a:1 b:1 c:old]"},
		"not one that was written since": {func(s *shelf) { s.version, s.maps["a"] = 1000, old("a", "15") }, [2]uint64{}, "map[a:old b:1]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf()
				s.put("a", "1")
				s.put("b", "1")
				var told [2]uint64
				from := NewListWatch(&corev1.ConfigMap{})
				from.ListFunc, from.WatchFunc, from.silence, from.Rewound = s.list, s.watch, time.Hour, func(was, is uint64) { told = [2]uint64{was, is} }
				cached := NewCache(from, "kind", func(o any) (any, error) { return o, nil })
				cached.Handle(func(any) {}, func(any) {})
				go cached.Informer.RunWithContext(t.Context())
				synctest.Wait()
				s.put("c", "1")
				s.put("c", "")
				synctest.Wait()
				s.set(func() { c.change(s) })
				from.Relist()
				time.Sleep(time.Minute)
				synctest.Wait()
				if told != c.told || cached.content() != c.has {
					t.Errorf("told %v, want %v; the cache has %s", told, c.told, cached.content())
				}
			})
		})
	}
}

// A watch that has not broken shows nothing of a state that went back.
func TestABarrierTellsAStateThatWentBack(t *testing.T) {
	for name, c := range map[string]struct {
		version int
		told    [2]uint64
	}{
		"older":         {9, [2]uint64{11, 9}},
		"as old":        {11, [2]uint64{}},
		"newer":         {12, [2]uint64{}},
		"not a version": {0, [2]uint64{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf()
				c0 := informed(t, s, time.Hour)
				s.put("a", "1")
				synctest.Wait()
				var told [2]uint64
				c0.From.Rewound = func(was, is uint64) { told = [2]uint64{was, is} }
				s.set(func() { s.version = c.version })
				err := c0.ReachLatest(t.Context())
				if told != c.told || errors.Is(err, errRewound) != (told != [2]uint64{}) {
					t.Errorf("told %v, want %v; %v", told, c.told, err)
				}
			})
		})
	}
}

// What is written while the newest state is read is shown at a newer version than that.
func TestABarrierTellsNothingOfWhatIsWrittenMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		c := informed(t, s, time.Hour)
		c.From.Rewound = func(was, is uint64) { t.Errorf("from %d back to %d", was, is) }
		c.From.ListFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			out, err := s.list(ctx, o)
			s.put("a", "1")
			time.Sleep(time.Second)
			return out, err
		}
		if err := c.ReachLatest(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An API server that has just started refuses everybody: however long it was away before, it
// is asked again soon.
func TestAServerThatWasAwayAndRefusesForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		c := informed(t, s, time.Hour)
		within(t, 5*time.Second, "a watch is open", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.open) > 0 })
		s.set(func() {
			s.failing = apierrors.NewServiceUnavailable("away")
			s.open[0].Error(&apierrors.NewResourceExpired("the server began anew").ErrStatus)
			s.silent = true
		})
		time.Sleep(time.Minute)
		s.set(func() { s.failing = apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil) })
		time.Sleep(5 * time.Second)
		s.put("a", "1")
		s.set(func() { s.failing, s.silent = nil, false })
		within(t, 7*time.Second, "what was written meanwhile is seen", func() bool { return c.content() == "map[a:1]" })
	})
}

// A reflector may give a watch up and begin another, which is handed all anew.
func TestAWatchThatIsBegunAnewIsNoStateThatWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.put("a", "1")
		from := NewListWatch(&corev1.ConfigMap{})
		from.ListFunc, from.WatchFunc, from.silence = s.list, s.watch, time.Hour
		from.Rewound = func(was, is uint64) { t.Errorf("from %d back to %d", was, is) }
		for range 2 {
			w, err := from.WatchWithContext(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []watch.EventType{watch.Added, watch.Bookmark} {
				select {
				case e := <-w.ResultChan():
					if e.Type != want {
						t.Errorf("it hands on %v, want %s", e, want)
					}
				case <-time.After(time.Minute):
					t.Fatalf("no %s within a minute", want)
				}
			}
			w.Stop()
			synctest.Wait()
		}
	})
}

func TestAWatchThatIsSilentForTooLongIsDoubted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		c := informed(t, s, 50*time.Millisecond)
		within(t, 5*time.Second, "a watch is open", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.open) > 0 })
		s.set(func() { s.silent = true })
		s.put("a", "1")
		within(t, 5*time.Second, "the change is seen", func() bool { return c.content() == "map[a:1]" })
	})
}

func TestAServerThatIsAwayAgainAndAgainIsAskedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		c := informed(t, s, time.Hour)
		for i := range 4 {
			within(t, 5*time.Second, "a watch is open", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.open) > i })
			asked := 0
			s.set(func() {
				s.failing = apierrors.NewServiceUnavailable("starting")
				s.asked = &asked
				s.open[i].Error(&apierrors.NewResourceExpired("the server began anew").ErrStatus)
				s.silent = true
			})
			within(t, 10*time.Second, "it is asked in vain", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return asked > 3 })
			value := strconv.Itoa(i)
			s.put("a", value)
			s.set(func() { s.failing, s.silent = nil, false })
			within(t, 2*time.Second, "what was written meanwhile is seen", func() bool { return c.content() == "map[a:"+value+"]" })
		}
	})
}

func TestThePauseOfAServerThatIsAwayStaysShort(t *testing.T) {
	for failed := 1; failed < 100; failed++ {
		if d := Backoff(failed, apierrors.NewServiceUnavailable("x")); d > time.Second {
			t.Fatalf("after %d failures: %s", failed, d)
		}
		if d := Backoff(failed, apierrors.NewForbidden(corev1.Resource("pods"), "x", nil)); d > longestBackoff {
			t.Fatalf("after %d refusals: %s", failed, d)
		}
	}
	if d := Backoff(30, apierrors.NewForbidden(corev1.Resource("pods"), "x", nil)); d < longestBackoff/3 {
		t.Errorf("who is refused for long is asked again after %s", d)
	}
}
