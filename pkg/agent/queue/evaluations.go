package queue

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// What the expressions of one namespace's documents may take of the agent, in microseconds of CPU time
// (guesses): half a second at once, and then a tenth of a core. A usual one takes 0.2 ms.
const (
	evaluateAtOnce    = 500_000
	evaluatePerSecond = 100_000
)

// Evaluations has the expressions of a namespace's documents evaluated one at a time, and bounds what they
// take of the agent, so that nobody's conditions keep it from the plans of others.
type Evaluations struct {
	*budgets
	cpu func() time.Duration

	turnsMu sync.Mutex
	turns   map[string]*turn
}

// turn is that of a namespace, as long as somebody has or wants it.
type turn struct {
	sync.Mutex
	wanted int
}

// NewEvaluations has evaluated nothing yet. cpu is the CPU time of the thread that calls it; nil: what
// is evaluated is not counted.
func NewEvaluations(now func() time.Time, cpu func() time.Duration) *Evaluations {
	return &Evaluations{budgets: newBudgets(now, evaluateAtOnce, evaluatePerSecond), cpu: cpu, turns: map[string]*turn{}}
}

// RefilledIn is after how long expressions of a namespace may be evaluated; zero: they may now.
func (e *Evaluations) RefilledIn(namespace string) time.Duration {
	if left := e.left(namespace); left <= 0 {
		return time.Duration(1-left) * time.Second / evaluatePerSecond
	}
	return 0
}

// Evaluate evaluates expressions once the namespace may; the error is that of a context that ends before.
func (e *Evaluations) Evaluate(ctx context.Context, namespace string, evaluate func()) error {
	for {
		pause := e.RefilledIn(namespace)
		if pause == 0 {
			break
		}
		refilled := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			refilled.Stop()
			return context.Cause(ctx)
		case <-refilled.C:
		}
	}
	e.Measure(namespace, evaluate)
	return nil
}

// Measure evaluates expressions once no others of the namespace are, and takes from its budget what that
// took.
func (e *Evaluations) Measure(namespace string, evaluate func()) {
	if e.cpu == nil {
		evaluate()
		return
	}
	defer e.enter(namespace)()
	runtime.LockOSThread() // whose time is read
	defer runtime.UnlockOSThread()
	began := e.cpu()
	defer func() { e.spend(namespace, int((e.cpu() - began).Microseconds())) }()
	evaluate()
}

// enter waits for a namespace's turn; leave ends it.
func (e *Evaluations) enter(namespace string) (leave func()) {
	e.turnsMu.Lock()
	one := e.turns[namespace]
	if one == nil {
		one = &turn{}
		e.turns[namespace] = one
	}
	one.wanted++
	e.turnsMu.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		e.turnsMu.Lock()
		defer e.turnsMu.Unlock()
		if one.wanted--; one.wanted == 0 {
			delete(e.turns, namespace)
		}
	}
}
