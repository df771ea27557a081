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
	enqueue func(types.NamespacedName)
	slots   *executors.Shares // of passes beside the workers
	inline  *executors.Shares // of passes by the workers themselves
	group   sync.WaitGroup

	mu        sync.Mutex
	executing map[types.NamespacedName]map[string]*execution
	finished  map[types.NamespacedName][]Outcome
	waiting   map[store.StepKey]*Wait
	woken     map[store.StepKey]bool // what it watches moved since its last pass began
	begun     map[store.StepKey]begun
}

type execution struct {
	act     workflow.Act
	attempt int
	cancel  context.CancelCauseFunc
}

// New has nothing under way.
func New(enqueue func(types.NamespacedName)) *Pool {
	return &Pool{enqueue: enqueue, slots: executors.NewShares(maxExecutions, MaxOwn), inline: executors.NewShares(maxInline, MaxOwn), executing: map[types.NamespacedName]map[string]*execution{}, finished: map[types.NamespacedName][]Outcome{}, waiting: map[store.StepKey]*Wait{}, woken: map[store.StepKey]bool{}, begun: map[store.StepKey]begun{}}
}

// Go has f done beside the workers.
func (p *Pool) Go(f func()) { p.group.Go(f) }

// WaitAll waits until all that is done beside the workers has ended.
func (p *Pool) WaitAll() { p.group.Wait() }

// TakeInline is a place for a pass by a worker itself, if one is free.
func (p *Pool) TakeInline(namespace string) (leave func(), free bool) {
	return p.inline.Take(namespace)
}

// Acquire waits until a pass may be made: one namespace leaves room for the others,
// and what undoes, ends or keeps something up waits for nobody.
func (p *Pool) Acquire(ctx context.Context, namespace string, act workflow.Act) (leave func(), ok bool) {
	if act != workflow.ActPass {
		return func() {}, true
	}
	if leave, ok = p.slots.Wait(ctx, namespace); !ok {
		return nil, false
	}
	// The place may be that of a pass that was cut off a moment ago: whoever cuts off
	// several has come to this one, too, before it is looked at.
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		leave()
		return nil, false
	}
	return leave, true
}

// Begin notes that a pass is under way, so that it can be cut short.
func (p *Pool) Begin(ctx context.Context, s store.StepKey, act workflow.Act, attempt int) (context.Context, func()) {
	ctx, leave := client.WithPass(ctx, s.Run.Namespace)
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.executing[s.Run] == nil {
		p.executing[s.Run] = map[string]*execution{}
	}
	f := &execution{act: act, attempt: attempt, cancel: cancel}
	p.executing[s.Run][s.Path] = f
	delete(p.woken, s) // this pass will see it
	return ctx, func() {
		cancel(nil)
		leave()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.executing[s.Run][s.Path] == f {
			delete(p.executing[s.Run], s.Path)
		}
		if len(p.executing[s.Run]) == 0 {
			delete(p.executing, s.Run)
		}
	}
}

// IsExecuting says whether a pass over a step is under way, or came to something that
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
	for _, f := range p.executing[k] {
		f.cancel(ErrCanceled)
	}
}

// CancelStale ends what is under way for steps that are at work no more.
func (p *Pool) CancelStale(k types.NamespacedName, j run.Journal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for path, f := range p.executing[k] {
		rec := j.Record(path)
		if f.act == workflow.ActPass && (rec == nil || rec.Phase != run.StepRunning || rec.Attempt != f.attempt) {
			f.cancel(ErrCanceled)
		}
	}
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
	for _, f := range p.executing[k] {
		f.cancel(ErrCanceled)
	}
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
