package queue

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
)

func key() types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: "plan"} }

// looks works on one key for an hour, and gives the instants of the looks at it, since
// the first. Each answer is one look's; the last is that of all that follow.
func looks(t *testing.T, answers ...func() (time.Duration, error)) (at []time.Duration, panics int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{Name: "test", Now: time.Now, Log: slog.New(slog.DiscardHandler), OnPanic: func() { panics++ }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		q.Add(key())
		start := time.Now()
		q.Work(ctx, 3, func(_ context.Context, k types.NamespacedName) (time.Time, error) {
			if k != key() {
				t.Errorf("looks at %s", k)
			}
			answer := answers[min(len(at), len(answers)-1)]
			at = append(at, time.Since(start))
			wake, err := answer()
			if wake == 0 {
				return time.Time{}, err
			}
			return time.Now().Add(wake), err
		})
	})
	return at, panics
}

func rests() (time.Duration, error)   { return 0, nil }
func wakes() (time.Duration, error)   { return 25 * time.Minute, nil }
func fails() (time.Duration, error)   { return 0, errors.New("no") }
func fenced() (time.Duration, error)  { return 0, client.ErrFenced }
func away() (time.Duration, error)    { return 0, io.ErrUnexpectedEOF }
func collide() (time.Duration, error) { return 0, ErrConflict }
func breaks() (time.Duration, error)  { panic("oh") }

func TestWhenAKeyIsLookedAtAgain(t *testing.T) {
	for name, c := range map[string]struct {
		answers     []func() (time.Duration, error)
		least, most int           // looks within an hour
		second      time.Duration // the latest instant of the second; zero: there is none
		panics      bool
	}{
		"when somebody adds it":                         {answers: []func() (time.Duration, error){rests}, least: 1, most: 1},
		"when it says":                                  {answers: []func() (time.Duration, error){wakes}, least: 3, most: 3, second: 25 * time.Minute},
		"soon after a failure, and later and later":     {answers: []func() (time.Duration, error){fails}, least: 100, most: 150, second: 100 * time.Millisecond},
		"soon after a conflict":                         {answers: []func() (time.Duration, error){collide, rests}, least: 2, most: 2, second: 100 * time.Millisecond},
		"after a panic, which is counted":               {answers: []func() (time.Duration, error){breaks, rests}, least: 2, most: 2, second: 100 * time.Millisecond, panics: true},
		"without growing pauses while the fence stands": {answers: []func() (time.Duration, error){fenced}, least: 3000, most: 8000, second: time.Second},
		"without growing pauses while nobody answers":   {answers: []func() (time.Duration, error){away}, least: 3000, most: 8000, second: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			at, panics := looks(t, c.answers...)
			if len(at) < c.least || len(at) > c.most {
				t.Errorf("looked at %d times", len(at))
			}
			if c.second > 0 && (len(at) < 2 || at[1] > c.second) {
				t.Errorf("the second look came at %v, want it by %s", at[:min(2, len(at))], c.second)
			}
			if (panics > 0) != c.panics {
				t.Errorf("%d panics", panics)
			}
		})
	}
}

// What succeeds once begins with short pauses again.
func TestPausesBeginAnewAfterASuccess(t *testing.T) {
	soon := func() (time.Duration, error) { return time.Second, nil }
	at, _ := looks(t, fails, fails, fails, fails, soon, fails, rests)
	if grown, anew := at[4]-at[3], at[6]-at[5]; grown <= 4*anew {
		t.Errorf("after four failures it paused for %s, after a success and one for %s", grown, anew)
	}
}

// turns work on keys that take a second each, and give the instants at which each was done
// and how many of one namespace were looked at at once.
func turns(t *testing.T, share int, keys ...string) (done map[string]time.Duration, most map[string]int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{Name: "test", Now: time.Now, Log: slog.New(slog.DiscardHandler), OnPanic: func() {}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, k := range keys {
			namespace, name, _ := strings.Cut(k, "/")
			q.Add(types.NamespacedName{Namespace: namespace, Name: name})
		}
		var mu sync.Mutex
		start, atWork := time.Now(), map[string]int{}
		done, most = map[string]time.Duration{}, map[string]int{}
		q.WorkInShares(ctx, 4, share, func(_ context.Context, k types.NamespacedName) (time.Time, error) {
			count := func(n int) {
				mu.Lock()
				defer mu.Unlock()
				atWork[k.Namespace] += n
				most[k.Namespace] = max(most[k.Namespace], atWork[k.Namespace])
			}
			count(1)
			defer count(-1)
			q.Add(types.NamespacedName{Namespace: k.Namespace, Name: "a1"}) // again and again, as who writes in a loop
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			if _, again := done[k.String()]; !again {
				done[k.String()] = time.Since(start)
			}
			if k.Name == "breaks" {
				panic("oh")
			}
			return time.Time{}, nil
		})
	})
	return done, most
}

func TestOneNamespaceHasAShareOfTheWorkers(t *testing.T) {
	keys := []string{"a/a1", "a/a2", "a/a3", "a/breaks", "a/a4", "a/a5", "b/b1", "c/c1"}
	done, most := turns(t, 2, keys...)
	if most["a"] != 2 {
		t.Errorf("%d of one namespace were looked at at once, want 2", most["a"])
	}
	if done["b/b1"] != time.Second || done["c/c1"] != time.Second {
		t.Errorf("the others waited until %s and %s for one that has more than its share", done["b/b1"], done["c/c1"])
	}
	for _, k := range keys {
		if at, is := done[k]; !is || at > 10*time.Second {
			t.Errorf("%s was done at %s (%t), and all of its namespace need six seconds at most, and what is added meanwhile", k, at, is)
		}
	}
	if _, all := turns(t, 4, keys[:6]...); all["a"] != 4 {
		t.Errorf("%d at once where one namespace may have all workers", all["a"])
	}
}

// Several namespaces that have many keys take no worker from one that has few.
func TestManyKeysOfSomeNamespacesDelayNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		tenants, workers int
	}{
		"one of them":            {tenants: 1, workers: 4},
		"as many as workers":     {tenants: 4, workers: 4},
		"more than workers":      {tenants: 40, workers: 4},
		"some, and one worker":   {tenants: 3, workers: 1},
		"more than all the time": {tenants: 300, workers: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New(Config{Name: "test", Now: time.Now, Log: slog.New(slog.DiscardHandler), OnPanic: func() {}})
				for tenant := range c.tenants {
					for i := range 100 {
						q.Add(types.NamespacedName{Namespace: "tenant-" + strconv.Itoa(tenant), Name: strconv.Itoa(i)})
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				var done sync.WaitGroup
				looked, before := make(chan int, 1), atomic.Int64{}
				done.Go(func() {
					q.WorkInShares(ctx, c.workers, Share(c.workers), func(ctx context.Context, k types.NamespacedName) (time.Time, error) {
						if k.Namespace == "victim" {
							looked <- int(before.Load())
						}
						before.Add(1)
						select {
						case <-ctx.Done():
						case <-time.After(time.Second):
						}
						return time.Time{}, nil
					})
				})
				time.Sleep(1500 * time.Millisecond)
				began := before.Load()
				q.Add(types.NamespacedName{Namespace: "victim", Name: "nightly"})
				ahead, most := <-looked-int(began), c.tenants+c.workers
				t.Logf("%d looks came first", ahead)
				if ahead > most {
					t.Errorf("%d looks of others came first, want %d at most", ahead, most)
				}
				cancel()
				done.Wait()
			})
		})
	}
}

// What waits for a worker of its namespace is to be looked at, too.
func TestAQueueCountsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{Name: "test", Now: time.Now, Log: slog.New(slog.DiscardHandler), OnPanic: func() {}})
		for i := range 10 {
			q.Add(types.NamespacedName{Namespace: "a", Name: strconv.Itoa(i)})
		}
		if n := q.Len(); n != 10 {
			t.Errorf("%d are to be looked at before anybody looks", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			q.WorkInShares(ctx, 4, 2, func(context.Context, types.NamespacedName) (time.Time, error) {
				time.Sleep(time.Second)
				return time.Time{}, nil
			})
		}()
		time.Sleep(100 * time.Millisecond)
		if n := q.Len(); n != 8 {
			t.Errorf("%d are to be looked at while two are, want 8", n)
		}
		time.Sleep(10 * time.Second)
		if n := q.Len(); n != 0 {
			t.Errorf("%d are left", n)
		}
		cancel()
		<-done
	})
}

func TestTheSoonestAndTheLatestOfInstants(t *testing.T) {
	a, b := time.Unix(1, 0), time.Unix(2, 0)
	if !Soonest(time.Time{}, b, a, time.Time{}).Equal(a) || !Soonest().IsZero() || !Soonest(time.Time{}).IsZero() {
		t.Error("an instant that is not set counts, or the soonest is not taken")
	}
	if !Latest(a, b).Equal(b) || !Latest(b, a).Equal(b) {
		t.Error("the latest is not taken")
	}
}
