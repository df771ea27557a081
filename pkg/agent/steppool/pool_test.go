package steppool

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// What a step watches may move at any point of a look at it.
func TestAStepWhoseObjectMovesIsLookedAtAgain(t *testing.T) {
	s, rec := store.StepKey{Run: types.NamespacedName{Namespace: "shop", Name: "run"}, Path: "wait"}, &run.Record{Path: "wait", Phase: run.StepRunning, Attempt: 1}
	for name, c := range map[string]struct {
		at   string
		want bool // it rests
	}{
		"it does not move":                               {"", true},
		"it moves before the look begins":                {"before", true}, // which sees it
		"it moves while the look is under way":           {"during", false},
		"it moves before the answer of the look is used": {"after", false},
		"it moves while the step rests":                  {"resting", false},
	} {
		t.Run(name, func(t *testing.T) {
			rung := 0
			p := New(func(types.NamespacedName) { rung++ }, queue.NewEvaluations(time.Now, nil))
			moves := func(now string) {
				if now == c.at {
					p.Wake(s)
				}
			}
			moves("before")
			_, end := p.Begin(context.Background(), s, workflow.ActPass, 1)
			moves("during")
			end()
			moves("after")
			p.Complete(Outcome{Step: s, Wait: &Wait{Record: *rec}})
			moves("resting")
			if _, rests := p.Waits(s, rec, time.Now()); rests != c.want {
				t.Errorf("rests: %t, want %t", rests, c.want)
			}
			if told := c.at != ""; told != (rung == 1) {
				t.Errorf("the run was rung %d times", rung)
			}
			p.Forget(s.Run)
			if len(p.waiting)+len(p.woken) > 0 {
				t.Errorf("keeps %v %v of a run that is over", p.waiting, p.woken)
			}
		})
	}
}

// Looks that cost have a pause between them: what moves meanwhile is looked at
// together, and not lost.
func TestAStepWhoseLooksCostIsNotLookedAtAtEveryMove(t *testing.T) {
	s, rec := store.StepKey{Run: types.NamespacedName{Namespace: "shop", Name: "run"}, Path: "until"}, &run.Record{Path: "until", Phase: run.StepRunning, Attempt: 1}
	p, now := New(func(types.NamespacedName) {}, queue.NewEvaluations(time.Now, nil)), time.Now()
	least := now.Add(time.Second)
	p.Complete(Outcome{Step: s, Wait: &Wait{Record: *rec, Wake: now.Add(time.Minute), Least: least}})
	for _, at := range []time.Duration{0, 300 * time.Millisecond, 999 * time.Millisecond} {
		p.Wake(s)
		if until, rests := p.Waits(s, rec, now.Add(at)); !rests || !until.Equal(least) {
			t.Errorf("after %s: rests %t until %s", at, rests, until)
		}
	}
	if _, rests := p.Waits(s, rec, least); rests {
		t.Error("what moved is lost")
	}
	p.Complete(Outcome{Step: s, Wait: &Wait{Record: *rec, Least: least}})
	p.Wake(s)
	changed := *rec
	changed.Attempt = 2
	if _, rests := p.Waits(s, &changed, now); rests {
		t.Error("another attempt waits for the pause of the one before")
	}
}

// keyOf is the step of a run.
func keyOf(namespace, of string, n int) store.StepKey {
	return store.StepKey{Run: types.NamespacedName{Namespace: namespace, Name: of}, Path: strconv.Itoa(n)}
}

// Passes that wait for a place are cut off together with those that have one: the place
// that comes free is nobody's.
func TestAPassThatIsCutOffTakesNoPlace(t *testing.T) {
	k, end := types.NamespacedName{Namespace: "shop", Name: "run"}, func(end func()) func(*Pool) { return func(*Pool) { end() } }
	for name, c := range map[string]struct {
		cut func(stop func()) func(*Pool)
		run bool // a pass of another run begins then
	}{
		"its run is to end":           {func(func()) func(*Pool) { return func(p *Pool) { p.Cancel(k) } }, true},
		"its step is at work no more": {func(func()) func(*Pool) { return func(p *Pool) { p.CancelStale(k, run.Journal{}) } }, true},
		"its run is let go":           {func(func()) func(*Pool) { return func(p *Pool) { p.Forget(k) } }, true},
		"another agent leads":         {end, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				p, began, other := New(func(types.NamespacedName) {}, queue.NewEvaluations(time.Now, nil)), atomic.Int64{}, atomic.Bool{}
				for i := range 16 * MaxOwn {
					p.Start(ctx, keyOf("shop", "run", i), workflow.ActPass, 1, func(ctx context.Context) {
						began.Add(1)
						<-ctx.Done()
					})
				}
				p.Start(ctx, keyOf("shop", "other", 0), workflow.ActPass, 1, func(context.Context) { other.Store(true) })
				synctest.Wait()
				if n := p.Count(k); n != 16*MaxOwn || other.Load() {
					t.Errorf("%d are under way or wait; the other began: %t", n, other.Load())
				}
				c.cut(stop)(p)
				p.WaitAll()
				if n := began.Load(); n != MaxOwn || other.Load() != c.run {
					t.Errorf("%d passes began, want %d; that of another run: %t", n, MaxOwn, other.Load())
				}
				if p.taken > 0 || p.turns.Waiting() > 0 || len(p.executing) > 0 {
					t.Errorf("keeps %d places, %d that wait, %v", p.taken, p.turns.Waiting(), p.executing)
				}
			})
		})
	}
}

// A tenant may have tens of thousands of steps that wait for the places of its namespace. They take no
// goroutine and little memory, keep nobody else waiting, and each begins when there is a place.
func TestStepsThatWaitForAPlaceTakeNextToNothing(t *testing.T) {
	const waiting = 30_000
	synctest.Test(t, func(t *testing.T) {
		p := New(func(types.NamespacedName) {}, queue.NewEvaluations(time.Now, nil))
		var most, now, all atomic.Int64
		holds := func(ctx context.Context) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			all.Add(1)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
		heap, goroutines := agenttest.Heap(), runtime.NumGoroutine()
		for i := range waiting {
			p.Start(t.Context(), keyOf("shop", "run-"+strconv.Itoa(i/100), i), workflow.ActPass, 1, holds)
		}
		synctest.Wait()
		grown, more := agenttest.Heap()-heap, runtime.NumGoroutine()-goroutines
		t.Logf("%d steps that wait take %d KiB and %d goroutines", waiting, grown>>10, more)
		if grown > waiting*1024 || more > 2*MaxOwn {
			t.Errorf("they take %d KiB and %d goroutines", grown>>10, more)
		}
		var theirs atomic.Bool
		p.Start(t.Context(), keyOf("bank", "run", 0), workflow.ActPass, 1, func(context.Context) { theirs.Store(true) })
		p.Start(t.Context(), keyOf("shop", "run-0", waiting), workflow.ActStop, 1, func(context.Context) { all.Add(1) })
		synctest.Wait()
		if !theirs.Load() || all.Load() != MaxOwn+1 {
			t.Errorf("another namespace's step began: %t; %d of this one's, with what stops a step", theirs.Load(), all.Load())
		}
		began := time.Now()
		p.WaitAll()
		if took, want := time.Since(began), waiting/MaxOwn*time.Second; took != want || all.Load() != waiting+1 || most.Load() != MaxOwn {
			t.Errorf("after %s, want %s, %d had begun, %d of them at once", took, want, all.Load(), most.Load())
		}
		runtime.KeepAlive(p)
	})
}

// All namespaces together have a limit, too, and who has the fewest places gets the next.
func TestNamespacesGetThePlacesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(func(types.NamespacedName) {}, queue.NewEvaluations(time.Now, nil))
		var now, most atomic.Int64
		for i := range 10 {
			for tenant := range 40 {
				p.Start(t.Context(), keyOf("tenant-"+strconv.Itoa(tenant), "run", i), workflow.ActPass, 1, func(context.Context) {
					most.Store(max(most.Load(), now.Add(1)))
					defer now.Add(-1)
					time.Sleep(time.Duration(1+i+tenant) * time.Second)
				})
			}
		}
		synctest.Wait()
		began, waited := time.Now(), time.Duration(-1)
		p.Start(t.Context(), keyOf("shop", "run", 0), workflow.ActPass, 1, func(context.Context) { waited = time.Since(began) })
		p.WaitAll()
		if most.Load() != maxExecutions || waited < 0 || waited > time.Second {
			t.Errorf("%d at once, want %d; a namespace that had none got a place after %s", most.Load(), maxExecutions, waited)
		}
	})
}
