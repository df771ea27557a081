// Package steppool knows which passes over the steps of runs are under way, what has come of
// them, and which steps rest.
package steppool

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// ErrCanceled is why a pass was cut off whose run is to end, or whose step is at work no more.
var ErrCanceled = errors.New("the run was asked to end") //nolint:gochecknoglobals // a cause for errors.Is

// How many passes may be under way: by the workers themselves, half of which always go on
// with runs, and beside them, where each is a goroutine and a request or two (guesses).
const (
	maxInline     = 64
	maxExecutions = 256
)

// MaxOwn is how many of each a namespace has (a guess), so that many hanging servers of one
// tenant hold nobody else up.
const MaxOwn = 16

// Outcome is what an act on a step came to: how the journal notes it, and, where
// the step has to wait, until when.
type Outcome struct {
	Step    store.StepKey
	Attempt int
	Note    func(run.Journal) run.Journal // nil: nothing to write down
	Wait    *Wait
	Watch   *executors.Watch
	Clients executors.Clients
}

// Wait is a step that waits: until an instant, until what it watches moves, or
// until its record in the journal says something else.
type Wait struct {
	Record run.Record
	Wake   time.Time // zero: only when something changes
	Least  time.Time // what changes sooner is looked at then
	woken  bool
}

// Pool knows what is under way, what has come of it, and which steps rest. All
// of it is in memory: what is lost with the process is found by another pass.
type Pool struct {
	enqueue     func(types.NamespacedName)
	evaluations *queue.Evaluations
	inline      *executors.Shares // of passes by the workers themselves
	group       sync.WaitGroup

	mu        sync.Mutex
	turns     *queue.Turns[*execution] // of passes beside the workers, and those that wait for a place
	taken     int                      // places of passes beside the workers
	executing map[types.NamespacedName]map[string]*execution
	finished  map[types.NamespacedName][]Outcome
	waiting   map[store.StepKey]*Wait
	woken     map[store.StepKey]bool // what it watches moved since its last pass began
	begun     map[store.StepKey]begun
}

// execution is a pass that is under way, or waits for a place: then it has no context and no goroutine,
// for one tenant may have tens of thousands of them.
type execution struct {
	step    store.StepKey
	act     workflow.Act
	attempt int
	ctx     context.Context //nolint:containedctx // of the pass, while it waits
	do      func(context.Context)
	cancel  context.CancelCauseFunc // nil: it waits
}

// New has nothing under way. The expressions of passes are evaluated by evaluations.
func New(enqueue func(types.NamespacedName), evaluations *queue.Evaluations) *Pool {
	return &Pool{enqueue: enqueue, evaluations: evaluations, turns: queue.NewTurns[*execution](MaxOwn), inline: executors.NewShares(maxInline, MaxOwn), executing: map[types.NamespacedName]map[string]*execution{}, finished: map[types.NamespacedName][]Outcome{}, waiting: map[store.StepKey]*Wait{}, woken: map[store.StepKey]bool{}, begun: map[store.StepKey]begun{}}
}

// WaitAll waits until all that is done beside the workers has ended.
func (p *Pool) WaitAll() { p.group.Wait() }

// TakeInline is a place for a pass by a worker itself, if one is free.
func (p *Pool) TakeInline(namespace string) (leave func(), free bool) {
	return p.inline.Take(namespace)
}

// Start has a pass made beside the workers when it has a place: one namespace leaves room for the
// others, and what undoes, ends or keeps something up waits for nobody. A pass that is cut off while it
// waits is not made.
func (p *Pool) Start(ctx context.Context, s store.StepKey, act workflow.Act, attempt int, do func(context.Context)) {
	f := &execution{step: s, act: act, attempt: attempt, ctx: ctx, do: do}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(f)
	if act != workflow.ActPass {
		p.begin(f, func() {})
		return
	}
	p.turns.Add(s.Run.Namespace, f)
	p.fill()
}

// fill begins passes that wait while there are places. The lock is held.
func (p *Pool) fill() {
	for p.taken < maxExecutions {
		f, ok := p.turns.Next()
		if !ok {
			return
		}
		if f.ctx.Err() != nil { // the agent ends, or leads no more
			p.turns.Leave(f.step.Run.Namespace)
			p.forget(f)
			continue
		}
		p.taken++
		p.begin(f, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.taken--
			p.turns.Leave(f.step.Run.Namespace)
			p.fill()
		})
	}
}

// begin makes a pass beside the workers, and has its run looked at afterwards. The lock is held.
func (p *Pool) begin(f *execution, leave func()) {
	ctx, end := p.open(f)
	do := f.do
	f.ctx, f.do = nil, nil
	p.group.Go(func() {
		defer p.enqueue(f.step.Run)
		defer end()
		defer leave()
		do(ctx)
	})
}

// Begin notes that a pass is under way that a worker makes itself, so that it can be cut short.
func (p *Pool) Begin(ctx context.Context, s store.StepKey, act workflow.Act, attempt int) (context.Context, func()) {
	f := &execution{step: s, act: act, attempt: attempt, ctx: ctx}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(f)
	return p.open(f)
}

// open is the context of a pass that begins. The lock is held.
func (p *Pool) open(f *execution) (context.Context, func()) {
	ctx, leave := client.WithPass(f.ctx, f.step.Run.Namespace)
	ctx, f.cancel = context.WithCancelCause(ctx)
	ctx = executors.WithEvaluation(ctx, func(ctx context.Context, expressions func()) error {
		return p.evaluations.Evaluate(ctx, f.step.Run.Namespace, expressions)
	})
	delete(p.woken, f.step) // this pass will see it
	return ctx, func() {
		f.cancel(nil)
		leave()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.forget(f)
	}
}

// note has a pass known. The lock is held.
func (p *Pool) note(f *execution) {
	if p.executing[f.step.Run] == nil {
		p.executing[f.step.Run] = map[string]*execution{}
	}
	p.executing[f.step.Run][f.step.Path] = f
}

// forget has a pass known no more. The lock is held.
func (p *Pool) forget(f *execution) {
	of := p.executing[f.step.Run]
	if of[f.step.Path] == f {
		delete(of, f.step.Path)
	}
	if len(of) == 0 {
		delete(p.executing, f.step.Run)
	}
}

// cutOff ends those of a run's passes that are unwanted: what waits for a place is not made. The lock is
// held throughout, so that none of them takes the place that another leaves.
func (p *Pool) cutOff(k types.NamespacedName, unwanted func(*execution) bool) {
	waits := false
	for _, f := range p.executing[k] {
		switch {
		case !unwanted(f):
		case f.cancel == nil:
			waits = true
		default:
			f.cancel(ErrCanceled)
		}
	}
	if !waits { // all that wait in the namespace are gone through only where it is worth it
		return
	}
	p.turns.Drop(k.Namespace, func(f *execution) bool {
		drops := f.step.Run == k && unwanted(f)
		if drops {
			p.forget(f)
		}
		return drops
	})
}

// IsExecuting says whether a pass over a step is under way or waits for a place, or came to something that
// the journal does not hold yet: the run is enqueued then.
func (p *Pool) IsExecuting(s store.StepKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.executing[s.Run][s.Path] != nil || slices.ContainsFunc(p.finished[s.Run], func(o Outcome) bool { return o.Step == s })
}

// Count is how many passes of a run are under way.
func (p *Pool) Count(k types.NamespacedName) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.executing[k])
}

// Cancel ends what is under way for a run that is to end; what was done or not is
// found by the next pass.
func (p *Pool) Cancel(k types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutOff(k, func(*execution) bool { return true })
}

// CancelStale ends what is under way for steps that are at work no more.
func (p *Pool) CancelStale(k types.NamespacedName, j run.Journal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutOff(k, func(f *execution) bool {
		return f.act == workflow.ActPass && !j.AtWork(f.step.Path, f.attempt)
	})
}

// Complete takes in what came of an act. A step whose object moved while the act looked
// at it does not rest: the act may have seen it as it was before, and nothing else
// will say that it moved.
func (p *Pool) Complete(o Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, o.Step)
	if o.Wait != nil {
		o.Wait.woken = p.woken[o.Step]
		p.waiting[o.Step] = o.Wait
	}
	delete(p.woken, o.Step)
	if o.Note != nil {
		p.finished[o.Step.Run] = append(p.finished[o.Step.Run], o)
	}
}

// RequeueBy has a step that waits look again at an instant, if not sooner.
func (p *Pool) RequeueBy(s store.StepKey, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.waiting[s]; r != nil {
		r.Wake = queue.Soonest(r.Wake, at)
	}
}

// Outcomes are those of a run that no journal holds yet.
func (p *Pool) Outcomes(k types.NamespacedName) []Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Outcome(nil), p.finished[k]...)
}

// ForgetOutcomes forgets the outcomes that the journal holds now.
func (p *Pool) ForgetOutcomes(k types.NamespacedName, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished[k] = p.finished[k][min(n, len(p.finished[k])):]; len(p.finished[k]) == 0 {
		delete(p.finished, k)
	}
}

// Waits says whether a step waits, and until when.
func (p *Pool) Waits(s store.StepKey, rec *run.Record, now time.Time) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.waiting[s]
	if r == nil || rec == nil {
		return time.Time{}, false
	}
	if r.woken && now.Before(r.Least) && sameState(r.Record, *rec) {
		return r.Least, true
	}
	if r.woken || !r.Wake.IsZero() && !now.Before(r.Wake) || !sameState(r.Record, *rec) {
		delete(p.waiting, s)
		return time.Time{}, false
	}
	return r.Wake, true
}

// sameState says whether two records ask the same of an executor.
func sameState(a, b run.Record) bool {
	a.Message, b.Message, a.Waits, b.Waits = "", "", "", ""
	return reflect.DeepEqual(a, b)
}

// Wake wakes a step whose object changed.
func (p *Pool) Wake(s store.StepKey) {
	p.mu.Lock()
	if r := p.waiting[s]; r != nil {
		r.woken = true
	} else {
		p.woken[s] = true
	}
	p.mu.Unlock()
	p.enqueue(s.Run)
}

// WakeAll wakes the steps at work for which match is true.
func (p *Pool) WakeAll(match func(store.StepKey) bool) {
	p.mu.Lock()
	var all []store.StepKey
	for s := range p.waiting {
		all = append(all, s)
	}
	for run, flights := range p.executing {
		for path := range flights {
			all = append(all, store.StepKey{Run: run, Path: path})
		}
	}
	p.mu.Unlock()
	for _, s := range all {
		if match(s) {
			p.Wake(s)
		}
	}
}

// Forget drops all that is known of a run.
func (p *Pool) Forget(k types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutOff(k, func(*execution) bool { return true })
	delete(p.finished, k)
	for s := range p.waiting {
		if s.Run == k {
			delete(p.waiting, s)
		}
	}
	for s := range p.woken {
		if s.Run == k {
			delete(p.woken, s)
		}
	}
	maps.DeleteFunc(p.begun, func(s store.StepKey, _ begun) bool { return s.Run == k })
}
