package queue

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// thread is a clock of CPU time that moves with what is evaluated.
type thread struct{ atomic.Int64 }

func (t *thread) time() time.Duration { return time.Duration(t.Load()) }

func (t *thread) works(d time.Duration) func() { return func() { t.Add(int64(d)) } }

func TestExpressionsOfANamespaceTakeATenthOfACore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busy thread
		e, began := NewEvaluations(time.Now, busy.time), time.Now()
		for range 20 {
			if err := e.Evaluate(t.Context(), "shop", busy.works(50*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began).Round(100 * time.Millisecond); took != 4500*time.Millisecond { // half a second is there at first
			t.Errorf("a second of work took %s", took)
		}
		if pause := e.RefilledIn("shop").Round(time.Millisecond); pause != 500*time.Millisecond {
			t.Errorf("the next one waits for %s", pause)
		}
		if e.RefilledIn("bank") != 0 {
			t.Error("another namespace waits")
		}
		cut, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the run was aborted")
		cancel(why)
		if err := e.Evaluate(cut, "shop", func() { t.Error("it is evaluated after its end") }); !errors.Is(err, why) {
			t.Errorf("cut off: %v", err)
		}
		if time.Sleep(time.Hour); e.RefilledIn("shop") != 0 || e.left("shop") != evaluateAtOnce {
			t.Errorf("after an hour %d are left", e.left("shop"))
		}
	})
}

func TestExpressionsOfANamespaceAreEvaluatedOneAtATime(t *testing.T) {
	e, within, most := NewEvaluations(time.Now, func() time.Duration { return 0 }), atomic.Int64{}, atomic.Int64{}
	other, ended := make(chan struct{}), make(chan struct{})
	for range 8 {
		go func() {
			e.Measure("shop", func() {
				most.Store(max(most.Load(), within.Add(1)))
				<-other
				within.Add(-1)
			})
			ended <- struct{}{}
		}()
	}
	e.Measure("bank", func() { close(other) }) // waits for nobody's
	for range 8 {
		<-ended
	}
	if most.Load() != 1 || len(e.turns) != 0 {
		t.Errorf("%d at a time, and %d turns are kept", most.Load(), len(e.turns))
	}
}

// What is evaluated and panics is counted, and keeps nobody from the turn.
func TestAnExpressionThatPanicsLeavesTheTurn(t *testing.T) {
	var busy thread
	e := NewEvaluations(time.Now, busy.time)
	func() {
		defer func() { _ = recover() }()
		e.Measure("shop", func() { busy.works(time.Second)(); panic("broken") })
	}()
	e.Measure("shop", func() {})
	if e.RefilledIn("shop") == 0 || len(e.turns) != 0 {
		t.Errorf("%d are left, %d turns", e.left("shop"), len(e.turns))
	}
}
