package plans

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// blocker is one thing that keeps plans from being ready: the rights and the
// existence of an account, or a kind that is not served. The zero value stands for
// a plan's own target, which no other plan need ask about.
type blocker struct {
	who  client.Account
	kind schema.GroupVersionKind
}

// blockers ask about what keeps plans from being ready: one question for all plans
// that wait for the same answer. When the answer is another one, the plans are
// looked at again.
type blockers struct {
	ask     func(ctx context.Context, by blocker, last string) (answer string, err error)
	news    func(by blocker) // what was remembered of it is to be forgotten
	enqueue func(types.NamespacedName)
	now     func() time.Time

	queue workqueue.TypedDelayingInterface[blocker]
	mu    sync.Mutex
	open  map[blocker]*openBlocker
	plans map[types.NamespacedName]*blockedPlan
	dark  map[types.NamespacedName]workflow.Refusal // plans whose mirror cannot be written

	leaving leavingMirrors
}

type openBlocker struct {
	plans   map[types.NamespacedName]bool
	began   time.Time
	answer  string
	changed time.Time // when the answer became another one
}

// blockedPlan is a plan that is not ready.
type blockedPlan struct {
	by    blocker
	stale bool      // there was news: it has to be looked at live
	news  time.Time // when there last was
}

// How often a question is asked (guesses). Few are asked often enough that an
// answer is noticed within two seconds; all together are asked ten times a second
// at most, which costs the agent a percent of a core, and a third of that after a
// minute.
const (
	blockerPause   = 1500 * time.Millisecond
	blockerShare   = 100 * time.Millisecond
	blockerLong    = time.Minute // what nobody has mended for so long is asked for less often, where it is one of many
	blockerRarer   = 3
	blockerLast    = 30 * time.Second
	blockerTimeout = 10 * time.Second
	blockerWorkers = 4
)

// How often a plan that is not ready is looked at live though nothing says that
// something has changed (guesses): soon at first, later every half minute, and two
// plans a second at most, however many there are: that takes half a percent of a
// core.
const (
	firstLook    = 2 * time.Second
	blockedShare = 500 * time.Millisecond
	longestPause = 90 * time.Minute
	askedFor     = 4 // times rarer is what a question is asked about for all, or is watched
)

// mostLooks is after how many looks the pauses no longer grow.
const mostLooks = 4

func newBlockers(now func() time.Time, enqueue func(types.NamespacedName)) *blockers {
	return &blockers{
		now: now, enqueue: enqueue, open: map[blocker]*openBlocker{}, plans: map[types.NamespacedName]*blockedPlan{}, dark: map[types.NamespacedName]workflow.Refusal{},
		leaving: leavingMirrors{byPlan: map[types.NamespacedName][]leavingMirror{}},
		queue:   workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[blocker]{Name: "blockers"}),
	}
}

// wait notes what a plan waits for, as it was found by a look that began at an
// instant.
func (b *blockers) wait(k types.NamespacedName, by blocker, looked time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &blockedPlan{by: by}
	if was := b.plans[k]; was != nil {
		if was.by != by {
			b.forget(k, was.by)
		}
		p.news, p.stale = was.news, !was.news.IsZero() && !was.news.Before(looked) // the look may have been too early
	}
	b.plans[k] = p
	if by == (blocker{}) {
		return
	}
	o := b.open[by]
	if o == nil {
		o = &openBlocker{plans: map[types.NamespacedName]bool{}, began: b.now()}
		b.open[by] = o
		b.queue.Add(by)
	}
	o.plans[k] = true
	if !o.changed.IsZero() && !o.changed.Before(looked) { // the same
		p.stale = true
		b.enqueue(k)
	}
}

// leave ends a plan's wait.
func (b *blockers) leave(k types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.plans[k]; p != nil {
		b.forget(k, p.by)
		delete(b.plans, k)
	}
}

// drop forgets a plan that is gone.
func (b *blockers) drop(k types.NamespacedName) {
	b.leave(k)
	b.unmirrored(k, false)
}

func (b *blockers) forget(k types.NamespacedName, by blocker) {
	if o := b.open[by]; o != nil {
		delete(o.plans, k) // the last one's question is dropped when its turn comes
	}
}

// waits says whether a plan waits, and whether nothing is new since it was looked at.
func (b *blockers) waits(k types.NamespacedName) (waits, settled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.plans[k]
	return p != nil, p != nil && !p.stale
}

// changed says that there is news for a plan: it is looked at live.
func (b *blockers) changed(k types.NamespacedName) {
	b.outdate(k)
	b.enqueue(k)
}

// outdate has the next look at a plan be a live one.
func (b *blockers) outdate(k types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.plans[k]; p != nil {
		p.stale, p.news = true, b.now()
	}
}

// pause is how long a plan that was looked at as many times is left alone; heard says
// that its target is watched.
func (b *blockers) pause(by blocker, heard bool, looks int) time.Duration {
	b.mu.Lock()
	share, longest := time.Duration(len(b.plans))*blockedShare, longestPause
	b.mu.Unlock()
	if heard || by != (blocker{}) {
		looks, share, longest = mostLooks, share*askedFor, longest*askedFor
	}
	pause := min(max(min(firstLook<<min(looks, mostLooks), queue.ResyncPeriod), share), longest)
	return pause + rand.N(pause/8) //nolint:gosec // spreads load
}

// unmirrored notes whether a plan's mirror cannot be written, and says when to try
// again: soon at first, since a lost connection is there again within seconds, then
// as rarely as plans that are not ready are looked at.
func (b *blockers) unmirrored(k types.NamespacedName, is bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !is {
		delete(b.dark, k)
		return 0
	}
	now := b.now()
	refused, _ := b.dark[k].Again(now)
	b.dark[k] = refused
	return min(max(refused.RetryAt(now).Sub(now), time.Duration(len(b.dark))*blockedShare), longestPause)
}

// work asks until ctx ends.
func (b *blockers) work(ctx context.Context) {
	var group sync.WaitGroup
	for range blockerWorkers {
		group.Go(func() {
			for {
				by, stop := b.queue.Get()
				if stop {
					return
				}
				b.check(ctx, by)
				b.queue.Done(by)
			}
		})
	}
	<-ctx.Done()
	b.queue.ShutDown()
	group.Wait()
}

// check asks one question, where somebody still waits for its answer.
func (b *blockers) check(ctx context.Context, by blocker) {
	last, waited := b.last(by)
	if !waited {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, blockerTimeout)
	defer cancel()
	if answer, err := b.ask(ctx, by, last); err == nil {
		b.answered(by, answer)
	}
	b.queue.AddAfter(by, b.interval(by))
}

func (b *blockers) last(by blocker) (answer string, waited bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.open[by]
	if o == nil {
		return "", false
	}
	if len(o.plans) == 0 {
		delete(b.open, by)
		return "", false
	}
	return o.answer, true
}

// answered looks at the plans again where the answer is another one; the first
// answer may be younger than what the plans have seen.
func (b *blockers) answered(by blocker, answer string) {
	b.mu.Lock()
	o := b.open[by]
	if o == nil || o.answer == answer {
		b.mu.Unlock()
		return
	}
	o.answer, o.changed = answer, b.now()
	var waiting []types.NamespacedName
	for k := range o.plans {
		waiting = append(waiting, k)
	}
	b.mu.Unlock()
	b.news(by)
	for _, k := range waiting {
		b.changed(k)
	}
}

// interval is when a question is asked again.
func (b *blockers) interval(by blocker) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	share := time.Duration(len(b.open)) * blockerShare
	if o := b.open[by]; o != nil && b.now().Sub(o.began) > blockerLong {
		share = max(share, min(share*blockerRarer, blockerLast))
	}
	return max(blockerPause, share)
}

// missing says whether an account was not there when it was last asked about: all
// its plans need not ask.
func (b *blockers) missing(w client.Account) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.open[blocker{who: w}]
	return o != nil && len(o.plans) > 0 && o.answer == client.AccountMissing
}
