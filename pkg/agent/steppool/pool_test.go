package steppool

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
			p := New(func(types.NamespacedName) { rung++ })
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
	p, now := New(func(types.NamespacedName) {}), time.Now()
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

// Passes that wait for a place are cut off together with those that have one: the place
// that comes free is nobody's.
func TestAPassThatIsCutOffTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, k := New(func(types.NamespacedName) {}), types.NamespacedName{Namespace: "shop", Name: "run"}
		var began atomic.Int64
		for i := range 16 * MaxOwn {
			ctx, end := p.Begin(t.Context(), store.StepKey{Run: k, Path: strconv.Itoa(i)}, workflow.ActPass, 1)
			go func() {
				defer end()
				if leave, ok := p.Acquire(ctx, "shop", workflow.ActPass); ok {
					defer leave()
					began.Add(1)
					<-ctx.Done()
				}
			}()
		}
		synctest.Wait()
		p.CancelStale(k, run.Journal{})
		synctest.Wait()
		if n := began.Load(); n != MaxOwn {
			t.Errorf("%d passes began, want %d", n, MaxOwn)
		}
		if _, ok := p.Acquire(t.Context(), "shop", workflow.ActPass); !ok || p.Count(k) > 0 {
			t.Error("a place or a pass is kept")
		}
	})
}
