package plans

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
)

// blockedWorld is blockers with answers that a test gives.
type blockedWorld struct {
	*blockers
	asked  atomic.Int64
	answer atomic.Value
	mu     sync.Mutex
	rang   map[types.NamespacedName]int
}

func newBlockedWorld() *blockedWorld {
	w := &blockedWorld{rang: map[types.NamespacedName]int{}}
	w.answer.Store("no")
	w.blockers = newBlockers(time.Now, func(k types.NamespacedName) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.rang[k]++
	})
	w.news = func(blocker) {}
	w.ask = func(context.Context, blocker, string) (string, error) {
		w.asked.Add(1)
		return w.answer.Load().(string), nil
	}
	return w
}

func (w *blockedWorld) rings() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, times := range w.rang {
		n += times
	}
	clear(w.rang)
	return n
}

func TestOneQuestionIsAskedForAllPlansThatWaitForItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBlockedWorld()
		ctx, stop := context.WithCancel(t.Context())
		defer func() {
			stop()
			synctest.Wait()
		}()
		go w.work(ctx)
		by := blocker{who: client.Account{Namespace: "shop", Name: "maint-runner"}}
		for i := range 10_000 {
			w.wait(types.NamespacedName{Namespace: "shop", Name: fmt.Sprint(i)}, by, time.Now())
		}
		time.Sleep(time.Minute)
		if n := w.asked.Load(); n > 41 {
			t.Errorf("asked %d times in a minute, want at most 41", n)
		}
		w.rings() // the first answer may be younger than what they saw
		for i := range 10_000 {
			w.wait(types.NamespacedName{Namespace: "shop", Name: fmt.Sprint(i)}, by, time.Now())
		}
		w.answer.Store("yes")
		time.Sleep(2 * time.Second)
		if n := w.rings(); n != 10_000 {
			t.Errorf("%d plans were looked at within two seconds of another answer, want all", n)
		}
		for i := range 10_000 {
			w.leave(types.NamespacedName{Namespace: "shop", Name: fmt.Sprint(i)})
		}
		time.Sleep(2 * time.Second)
		before := w.asked.Load()
		time.Sleep(time.Minute)
		if n := w.asked.Load() - before; n != 0 {
			t.Errorf("asked %d times though nobody waits", n)
		}
	})
}

func TestManyQuestionsAreAskedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBlockedWorld()
		ctx, stop := context.WithCancel(t.Context())
		defer func() {
			stop()
			synctest.Wait()
		}()
		go w.work(ctx)
		for i := range 1000 {
			ns := fmt.Sprint(i)
			w.wait(types.NamespacedName{Namespace: ns, Name: "p"}, blocker{who: client.Account{Namespace: ns, Name: "maint-runner"}}, time.Now())
		}
		time.Sleep(2 * time.Minute)
		before := w.asked.Load()
		time.Sleep(10 * time.Minute)
		if n := w.asked.Load() - before; n > 10*60*10 {
			t.Errorf("1000 questions were asked %d times in ten minutes, want at most ten a second", n)
		}
	})
}

func TestWhatNobodyMendsForLongIsAskedForLessOftenWhereThereIsMuchOfIt(t *testing.T) {
	for _, row := range []struct {
		open       int
		soon, late time.Duration
	}{
		{1, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{5, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{20, 2 * time.Second, 6 * time.Second},
		{50, 5 * time.Second, 15 * time.Second},
		{200, 20 * time.Second, 30 * time.Second},
		{500, 50 * time.Second, 50 * time.Second},
	} {
		w := newBlockedWorld()
		now := time.Now()
		w.now = func() time.Time { return now }
		by := blocker{who: client.Account{Namespace: "0", Name: "maint-runner"}}
		for i := range row.open {
			ns := fmt.Sprint(i)
			w.wait(types.NamespacedName{Namespace: ns, Name: "p"}, blocker{who: client.Account{Namespace: ns, Name: "maint-runner"}}, now)
		}
		if got := w.interval(by); got != row.soon {
			t.Errorf("one of %d is asked about every %s, want %s", row.open, got, row.soon)
		}
		now = now.Add(2 * time.Minute)
		if got := w.interval(by); got != row.late {
			t.Errorf("one of %d that is old is asked about every %s, want %s", row.open, got, row.late)
		}
	}
}

func TestAnAnswerThatCameBetweenALookAndItsWaitIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBlockedWorld()
		ctx, stop := context.WithCancel(t.Context())
		defer func() {
			stop()
			synctest.Wait()
		}()
		go w.work(ctx)
		by := blocker{who: client.Account{Namespace: "shop", Name: "maint-runner"}}
		w.wait(types.NamespacedName{Namespace: "shop", Name: "first"}, by, time.Now())
		time.Sleep(time.Minute)
		looked := time.Now()
		w.answer.Store("yes")
		time.Sleep(2 * time.Second)
		w.rings()
		w.wait(types.NamespacedName{Namespace: "shop", Name: "late"}, by, looked)
		if n := w.rings(); n != 1 {
			t.Errorf("rang %d times, want once", n)
		}
		if _, settled := w.waits(types.NamespacedName{Namespace: "shop", Name: "late"}); settled {
			t.Error("it is taken for looked at")
		}
	})
}

func TestNewsDuringALookIsNotMissed(t *testing.T) {
	w, k, began := newBlockedWorld(), types.NamespacedName{Namespace: "shop", Name: "p"}, time.Now()
	w.wait(k, blocker{}, began)
	w.changed(k) // the look goes on
	w.wait(k, blocker{}, began)
	if _, settled := w.waits(k); settled {
		t.Error("it is taken for looked at")
	}
	w.wait(k, blocker{}, time.Now().Add(time.Second))
	if _, settled := w.waits(k); !settled {
		t.Error("it is looked at again and again")
	}
}

func TestPlansThatAreNotReadyAreLookedAtTwiceASecondAltogether(t *testing.T) {
	w := newBlockedWorld()
	for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second} {
		if got := w.pause(blocker{}, false, i); got < want || got > want+want/8 {
			t.Errorf("pause after %d looks: %s, want %s", i+1, got, want)
		}
	}
	for i := range 5000 {
		w.wait(types.NamespacedName{Namespace: "shop", Name: fmt.Sprint(i)}, blocker{}, time.Now())
	}
	if got, want := w.pause(blocker{}, false, 0), 2500*time.Second; got < want || got > want+want/8 {
		t.Errorf("pause of one of 5000: %s, want %s", got, want)
	}
	if got, want := w.pause(blocker{}, true, 0), 10_000*time.Second; got < want || got > want+want/8 {
		t.Errorf("pause of one of 5000 whose targets are watched: %s, want %s", got, want)
	}
}

func TestRulesInAnotherOrderAreTheSame(t *testing.T) {
	a := authorizationv1.ResourceRule{Verbs: []string{"get"}, Resources: []string{"pods"}}
	b := authorizationv1.ResourceRule{Verbs: []string{"get"}, Resources: []string{"pods"}, ResourceNames: []string{"x"}}
	digest := func(rules ...authorizationv1.ResourceRule) string {
		d, err := client.RulesDigest(rules)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if digest(a, b) != digest(b, a) {
		t.Error("the order counts")
	}
	if digest(a, b) == digest(a) {
		t.Error("a rule more does not count")
	}
}
