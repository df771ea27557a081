package main

import (
	"context"
	"math/rand/v2"
	"syscall"
	"time"
)

// faults break things, one after the other, until ctx ends: one of them processes,
// another what lies between them.
type faults struct {
	*world
	random *rand.Rand
}

type fault struct {
	weight int
	name   string
	do     func(context.Context, *replica)
}

// seconds are a time between two bounds, by the seed.
func (f *faults) seconds(from, to float64) time.Duration {
	return time.Duration((from + (to-from)*f.random.Float64()) * float64(time.Second))
}

func (f *faults) processes() []fault {
	return []fault{
		{4, "kill -9", func(_ context.Context, r *replica) { r.current().Kill() }},
		{2, "SIGTERM", func(_ context.Context, r *replica) { _ = syscall.Kill(r.current().PID(), syscall.SIGTERM) }},
		{4, "SIGSTOP past the lease", func(ctx context.Context, r *replica) { f.freeze(ctx, r, f.seconds(16, 22)) }},
		{2, "SIGSTOP within the lease", func(ctx context.Context, r *replica) { f.freeze(ctx, r, f.seconds(2, 9)) }},
		{3, "kill -9 of the API server", func(ctx context.Context, _ *replica) { f.restartAPI(ctx, f.seconds(0, 6)) }},
		{2, "SIGSTOP of the API server", func(ctx context.Context, _ *replica) {
			f.freezePart(ctx, f.cluster.FreezeAPIServer, f.seconds(2, 12))
		}},
		{2, "kill -9 of etcd", func(ctx context.Context, _ *replica) { f.restartEtcd(ctx) }},
		{2, "SIGSTOP of etcd", func(ctx context.Context, _ *replica) { f.freezePart(ctx, f.cluster.FreezeEtcd, f.seconds(1, 9)) }},
		{3, "the standby goes deaf, and the leader dies", f.deafHeir},
	}
}

func (f *faults) network() []fault {
	return []fault{
		{2, "cut", func(ctx context.Context, r *replica) {
			f.spell(ctx, r, f.seconds(1, 8), func(w *weather) { w.cut = true })
		}},
		{2, "delay", func(ctx context.Context, r *replica) {
			d := f.seconds(0.1, 1.5)
			f.spell(ctx, r, f.seconds(4, 15), func(w *weather) { w.delay = d })
		}},
		{2, "half-closed answers", func(ctx context.Context, r *replica) {
			f.spell(ctx, r, f.seconds(3, 10), func(w *weather) { w.halfClose = 0.3 })
		}},
		{3, "swallowed answers", func(ctx context.Context, r *replica) {
			f.spell(ctx, r, f.seconds(3, 12), func(w *weather) { w.swallow = 0.3 })
		}},
		{3, "late deliveries", func(ctx context.Context, r *replica) {
			by := f.seconds(2, 20)
			f.spell(ctx, r, f.seconds(3, 10), func(w *weather) { w.late, w.lateBy = 0.3, by })
		}},
		{3, "watches stall", func(ctx context.Context, r *replica) {
			r.proxy.stallOpen()
			pause(ctx, f.seconds(5, 40))
			r.proxy.thawWatches()
		}},
		{2, "watches stall, new ones too", func(ctx context.Context, r *replica) {
			r.proxy.set(func(w *weather) { w.stall = true })
			r.proxy.stallOpen()
			pause(ctx, f.seconds(5, 25))
			r.proxy.thawWatches()
		}},
	}
}

// run does one fault after the other, with calm between them.
func (f *faults) run(ctx context.Context, who string, all []fault, calm time.Duration) {
	total := 0
	for _, x := range all {
		total += x.weight
	}
	for pause(ctx, calm/2+time.Duration(f.random.Int64N(int64(calm)))) {
		r := f.replicas[f.random.IntN(2)]
		roll := f.random.IntN(total)
		for _, x := range all {
			if roll -= x.weight; roll >= 0 {
				continue
			}
			if r.current() == nil {
				break
			}
			f.say(who, "%s (%s)", x.name, r.name)
			x.do(ctx, r)
			f.say(who, "%s (%s) is over", x.name, r.name)
			break
		}
	}
}

// spell is weather for a while.
func (f *faults) spell(ctx context.Context, r *replica, length time.Duration, change func(*weather)) {
	r.proxy.set(change)
	pause(ctx, length)
	r.proxy.set(func(w *weather) { *w = weather{} })
}

func (f *faults) freeze(ctx context.Context, r *replica, length time.Duration) {
	p := r.current()
	if err := p.Freeze(); err != nil {
		return
	}
	pause(ctx, length)
	_ = p.Thaw()
}

func (f *faults) freezePart(ctx context.Context, freeze func() (func() error, error), length time.Duration) {
	f.api.Lock()
	defer f.api.Unlock()
	thaw, err := freeze()
	if err != nil {
		f.say("process", "%v", err)
		return
	}
	pause(ctx, length)
	if err := thaw(); err != nil {
		f.say("process", "%v", err)
	}
}

func (f *faults) restartAPI(ctx context.Context, down time.Duration) {
	f.api.Lock()
	defer f.api.Unlock()
	f.cluster.StopAPIServer()
	pause(ctx, down)
	if err := f.cluster.StartAPIServer(context.WithoutCancel(ctx)); err != nil {
		f.say("process", "the API server does not come back: %v", err)
	}
}

func (f *faults) restartEtcd(ctx context.Context) {
	f.api.Lock()
	defer f.api.Unlock()
	if err := f.cluster.RestartEtcd(context.WithoutCancel(ctx)); err != nil {
		f.say("process", "etcd does not come back: %v", err)
	}
}

// deafHeir stalls the watches of the replica that does not lead, waits until runs
// have ended without it, and kills the leader.
func (f *faults) deafHeir(ctx context.Context, _ *replica) {
	leader, err := f.leader(ctx)
	if err != nil {
		return
	}
	heir := f.other(leader)
	heir.proxy.stallOpen()
	pause(ctx, f.seconds(8, 20))
	leader.hold(true)
	leader.current().Kill()
	pause(ctx, f.seconds(18, 25))
	leader.hold(false)
	heir.proxy.thawWatches()
}
