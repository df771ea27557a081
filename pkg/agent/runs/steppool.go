package runs

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

var errCanceled = errors.New("the run was asked to end") //nolint:gochecknoglobals // a cause for errors.Is

// How many passes may be under way: by the workers themselves, half of which always go on
// with runs, and beside them, where each is a goroutine and a request or two (guesses). A
// namespace has a few of each, so that many hanging servers of one tenant hold nobody
// else up.
const (
	maxInline     = 64
	maxExecutions = 256
	maxOwn        = 16
)

// unwatchedPause is how often a step looks that waits for what is not watched (a guess).
const unwatchedPause = 15 * time.Second

// retryDelay is when a pass that could not even be made is tried again.
const retryDelay = 2 * time.Second

// outcome is what an act on a step came to: how the journal notes it, and, where
// the step has to wait, until when.
type outcome struct {
	step    store.StepKey
	attempt int
	note    func(run.Journal) run.Journal // nil: nothing to write down
	wait    *stepWait
	watch   *executors.Watch
	clients executors.Clients
}

// stepWait is a step that waits: until an instant, until what it watches moves, or
// until its record in the journal says something else.
type stepWait struct {
	record run.Record
	wake   time.Time // zero: only when something changes
	least  time.Time // what changes sooner is looked at then
	woken  bool
}

// StepPool knows what is under way, what has come of it, and which steps rest. All
// of it is in memory: what is lost with the process is found by another pass.
type StepPool struct {
	enqueue func(types.NamespacedName)
	slots   *executors.Shares // of passes beside the workers
	inline  *executors.Shares // of passes by the workers themselves
	group   sync.WaitGroup

	mu        sync.Mutex
	executing map[types.NamespacedName]map[string]*execution
	finished  map[types.NamespacedName][]outcome
	waiting   map[store.StepKey]*stepWait
	woken     map[store.StepKey]bool // what it watches moved since its last pass began
}

type execution struct {
	act     workflow.Act
	attempt int
	cancel  context.CancelCauseFunc
}

// NewStepPool has nothing under way.
func NewStepPool(enqueue func(types.NamespacedName)) *StepPool {
	return &StepPool{enqueue: enqueue, slots: executors.NewShares(maxExecutions, maxOwn), inline: executors.NewShares(maxInline, maxOwn), executing: map[types.NamespacedName]map[string]*execution{}, finished: map[types.NamespacedName][]outcome{}, waiting: map[store.StepKey]*stepWait{}, woken: map[store.StepKey]bool{}}
}

// acquire waits until a pass may be made: one namespace leaves room for the others,
// and what undoes, ends or keeps something up waits for nobody.
func (p *StepPool) acquire(ctx context.Context, namespace string, act workflow.Act) (leave func(), ok bool) {
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

// begin notes that a pass is under way, so that it can be cut short.
func (p *StepPool) begin(ctx context.Context, s store.StepKey, act workflow.Act, attempt int) (context.Context, func()) {
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

// isExecuting says whether a pass over a step is under way, or came to something that
// the journal does not hold yet: the run is enqueued then.
func (p *StepPool) isExecuting(s store.StepKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.executing[s.Run][s.Path] != nil || slices.ContainsFunc(p.finished[s.Run], func(o outcome) bool { return o.step == s })
}

// count is how many passes of a run are under way.
func (p *StepPool) count(k types.NamespacedName) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.executing[k])
}

// Cancel ends what is under way for a run that is to end; what was done or not is
// found by the next pass.
func (p *StepPool) Cancel(k types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.executing[k] {
		f.cancel(errCanceled)
	}
}

// cancelStale ends what is under way for steps that are at work no more.
func (p *StepPool) cancelStale(k types.NamespacedName, j run.Journal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for path, f := range p.executing[k] {
		rec := j.Record(path)
		if f.act == workflow.ActPass && (rec == nil || rec.Phase != run.StepRunning || rec.Attempt != f.attempt) {
			f.cancel(errCanceled)
		}
	}
}

// complete takes in what came of an act. A step whose object moved while the act looked
// at it does not rest: the act may have seen it as it was before, and nothing else
// will say that it moved.
func (p *StepPool) complete(o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, o.step)
	if o.wait != nil {
		o.wait.woken = p.woken[o.step]
		p.waiting[o.step] = o.wait
	}
	delete(p.woken, o.step)
	if o.note != nil {
		p.finished[o.step.Run] = append(p.finished[o.step.Run], o)
	}
}

// lookBy has a step that waits look again at an instant, if not sooner.
func (p *StepPool) lookBy(s store.StepKey, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.waiting[s]; r != nil {
		r.wake = queue.Soonest(r.wake, at)
	}
}

// outcomes are those of a run that no journal holds yet.
func (p *StepPool) outcomes(k types.NamespacedName) []outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]outcome(nil), p.finished[k]...)
}

// noted forgets the outcomes that the journal holds now.
func (p *StepPool) noted(k types.NamespacedName, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished[k] = p.finished[k][min(n, len(p.finished[k])):]; len(p.finished[k]) == 0 {
		delete(p.finished, k)
	}
}

// waits says whether a step waits, and until when.
func (p *StepPool) waits(s store.StepKey, rec *run.Record, now time.Time) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.waiting[s]
	if r == nil || rec == nil {
		return time.Time{}, false
	}
	if r.woken && now.Before(r.least) && sameState(r.record, *rec) {
		return r.least, true
	}
	if r.woken || !r.wake.IsZero() && !now.Before(r.wake) || !sameState(r.record, *rec) {
		delete(p.waiting, s)
		return time.Time{}, false
	}
	return r.wake, true
}

// sameState says whether two records ask the same of an executor.
func sameState(a, b run.Record) bool {
	a.Message, b.Message, a.Waits, b.Waits = "", "", "", ""
	return reflect.DeepEqual(a, b)
}

// Wake wakes a step whose object changed.
func (p *StepPool) Wake(s store.StepKey) {
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
func (p *StepPool) WakeAll(match func(store.StepKey) bool) {
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

// forget drops all that is known of a run.
func (p *StepPool) forget(k types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.executing[k] {
		f.cancel(errCanceled)
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
}

// launch does an act beside the workers, and enqueues the run when something came of
// it.
func (c *Controller) launch(ctx context.Context, l *store.CachedRun, m workflow.Action) {
	s, live := stepKey(l, m), &store.LiveRun{Object: l.Object}
	attempt := attemptOf(l.Journal, m.Path)
	inner, end := c.Steps.begin(ctx, s, m.Act, attempt)
	m.Step = plan.Step{} // many may wait for a place: they hold no run as a whole
	c.Steps.group.Go(func() {
		defer c.Queue.Add(s.Run)
		defer end()
		if leave, ok := c.Steps.acquire(inner, s.Run.Namespace, m.Act); ok {
			defer leave()
		} else {
			return
		}
		l, m := c.Stores.Runs.ReadWhole(live), m
		if l.Broken != nil {
			return // the next look at the run says so
		}
		m.Step, _ = l.Run.Tree().Find(m.Path)
		c.complete(ctx, l, c.guardedAct(inner, l, m, s, attempt))
	})
}

// complete takes in what came of an act, and opens the watch that it asks for: in this
// order, for the watch wakes the step at once.
// taken says that its run still lives: else there is nothing more to be done for it.
func (c *Controller) complete(ctx context.Context, l *store.CachedRun, o outcome) (taken bool) {
	if c.Stores.Runs.Live(l.Key()) == nil {
		return false
	}
	c.Steps.complete(o)
	if o.watch != nil && !c.watches.Keep(ctx, o.step, l.Account(), o.clients, *o.watch) {
		pause := unwatchedPause
		if o.step.Look {
			pause = unwatchedLook
		}
		c.Steps.lookBy(o.step, c.Now().Add(pause))
	}
	if c.Stores.Runs.Live(l.Key()) == nil { // it was let go while this was taken in
		c.watches.DropRun(l.Key())
		c.Steps.forget(l.Key())
		return false
	}
	return true
}

// guardedAct is an act whose errors, and whose panics, are tried again later.
func (c *Controller) guardedAct(ctx context.Context, l *store.CachedRun, m workflow.Action, s store.StepKey, attempt int) (out outcome) {
	later := func(err error) outcome {
		if ctx.Err() == nil {
			c.Telemetry.Log.Warn("will try again", "run", s.Run.String(), "step", s.Path, "error", err.Error())
		}
		rec := l.Journal.Record(s.Path)
		if rec == nil {
			return outcome{step: s}
		}
		o := c.later(rec, c.Now().Add(executors.RetryAfter(err)))
		o.step = s
		return o
	}
	defer func() {
		if p := recover(); p != nil {
			c.Telemetry.Metrics.Panicked()
			out = later(fmt.Errorf("internal error over step %s: %v", s.Path, p))
		}
	}()
	o, err := c.act(ctx, l, m)
	if err != nil {
		return later(err)
	}
	o.step, o.attempt = s, attempt
	return o
}

func attemptOf(j run.Journal, path string) int {
	if rec := j.Record(path); rec != nil {
		return rec.Attempt
	}
	return 0
}

func stepKey(l *store.CachedRun, m workflow.Action) store.StepKey {
	return store.StepKey{Run: l.Key(), Path: m.Path, Look: m.Act == workflow.ActLook}
}

// dispatch does what a move asks for. One act alone is done at once, and its
// outcome goes into the next write; acts side by side run beside the workers.
// more says that an outcome is there to be written.
func (c *Controller) dispatch(ctx context.Context, l *store.CachedRun, next workflow.Action) (wake time.Time, more bool, err error) {
	var acts []workflow.Action
	moves := next.All()
	beside := len(moves)
	for _, m := range moves {
		s := stepKey(l, m)
		if m.Act == workflow.ActWait || c.Steps.isExecuting(s) {
			wake = queue.Soonest(wake, m.WakeAt)
			continue
		}
		if until, rests := c.Steps.waits(s, l.Journal.Record(m.Path), c.Now()); rests {
			if s.Look {
				beside--
			}
			wake = queue.Soonest(wake, m.WakeAt, until)
			continue
		}
		acts = append(acts, m)
	}
	// Nothing may begin beside it, but in a rollout, where another node may be granted.
	if beside == 1 && len(acts) == 1 && c.Steps.count(l.Key()) == 0 && !l.RollsOut() {
		if leave, free := c.Steps.inline.Take(l.Key().Namespace); free {
			defer leave()
			return c.doNow(ctx, l, acts[0])
		}
	}
	for _, m := range acts {
		c.launch(ctx, l, m)
		wake = queue.Soonest(wake, m.WakeAt)
	}
	return wake, false, nil
}

func (c *Controller) doNow(ctx context.Context, l *store.CachedRun, m workflow.Action) (time.Time, bool, error) {
	s := stepKey(l, m)
	o, cut, err := c.actNow(ctx, l, m, s)
	if cut && err != nil { // the next look at the run decides
		return c.Now(), false, nil
	}
	if err != nil {
		return time.Time{}, false, err
	}
	if !c.complete(ctx, l, o) {
		return time.Time{}, false, queue.ErrConflict
	}
	if o.note != nil {
		return time.Time{}, true, nil
	}
	if o.wait != nil {
		return queue.Soonest(m.WakeAt, o.wait.wake), false, nil
	}
	return c.Now(), false, nil
}

// actNow does an act, and says whether it was cut off. Where the act panics, it is under
// way no more all the same: else nothing would be done about its step ever again.
func (c *Controller) actNow(ctx context.Context, l *store.CachedRun, m workflow.Action, s store.StepKey) (o outcome, cut bool, err error) {
	attempt := attemptOf(l.Journal, m.Path)
	inner, end := c.Steps.begin(ctx, s, m.Act, attempt)
	defer end()
	o, err = c.act(inner, l, m)
	o.step, o.attempt = s, attempt
	return o, errors.Is(context.Cause(inner), errCanceled), err
}

// withOutcomes is a run with what came of its passes in its journal, not yet
// written. What belongs to another attempt is of no use any more.
func (c *Controller) withOutcomes(l *store.CachedRun) (*store.CachedRun, int) {
	outcomes := c.Steps.outcomes(l.Key())
	j := l.Journal
	for _, o := range outcomes {
		if attemptOf(j, o.step.Path) == o.attempt {
			j = o.note(j)
		}
	}
	return &store.CachedRun{Object: l.Object, Run: l.Run, Journal: j}, len(outcomes)
}
