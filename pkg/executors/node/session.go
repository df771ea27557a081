package node

import (
	"context"
	"errors"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/follow"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/surge"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// session is one drain. Its goroutine decides whenever it is woken; all fields below awake are
// guarded by the drainer's mutex.
type session struct {
	d    *Drainer
	life life

	order      executors.DrainOrder
	status     executors.DrainStatus
	ended      bool // Done or Aborted: nothing more is sent
	seen       seen
	sent       sent
	departed   departures
	held       bool // in the last decision, a budget held pods back
	returns    drain.Returns
	still      stillness
	daemonSets map[string]known
	surges     surges
	pending    map[string]string // volumes that must be detached → pod
	notice     notice
}

// life is how long a session lasts, and what wakes it.
type life struct {
	ctx    context.Context // the session's lifetime: decisions and watches end with it
	cancel context.CancelFunc
	sends  context.Context // of its requests: ends stopFor after the lifetime
	awake  chan struct{}
	lease  *time.Timer // ends the session unless it is ensured in time; nil: it has no lease
}

// seen are the pods of the node, as far as they could be read.
type seen struct {
	synced     bool
	err        error // of the last read
	pods       map[string]drain.Pod
	namespaces map[string]bool
	mustLeave  map[string]bool // at the last decision
}

// sent are the requests to remove pods and their answers, by uid of the pod.
type sent struct {
	asked     map[string]drain.Asked
	tries     map[string]int
	limbo     map[string]drain.Pod // gone while a request for it was in flight
	busy      int                  // in flight
	forbidden string
	right     *authorizationv1.ResourceAttributes // that forbidden speaks of
	// mayNotDelete says that the account may not delete pods: an eviction that was cut off is then
	// not finished, but waited for.
	mayNotDelete bool
}

// stillness is for how long nothing has moved.
type stillness struct {
	settle time.Time // until when pods that tolerate the cordon may still return
	since  time.Time // zero: something moves
	stuck  bool      // long enough to count as blocked
}

// surges are the replacements that pods get before they leave.
type surges struct {
	of      map[string]drain.Replacement    // by uid of the pod
	open    int                             // that are not undone yet
	going   map[string]chan struct{}        // closed when the pod of a surge begins to go
	extra   map[string][]surge.ExtraReplica // by uid of a pod: what to undo when it has left
	looked  bool                            // for replacements that an earlier drain of the node left
	undoing map[string]string               // by Deployment: what was said of the last attempt
	kept    map[string]string               // by Deployment: why a replica was not removed; some are named
	unnamed int                             // of which that is not kept
}

// notice is the next call of OnChange, and what the last one was for.
type notice struct {
	timer  *time.Timer // nil: no call is due
	at     time.Time
	told   string
	reason string
}

// departures are the pods that left, and how.
type departures struct{ evicted, forced, gone []string }

// known says whether a DaemonSet exists.
type known struct {
	asking bool
	there  bool
	err    error
	again  time.Time
}

func newSession(d *Drainer, order executors.DrainOrder) *session {
	ctx, cancel := context.WithCancel(d.ctx)
	sends, cut := context.WithCancel(context.WithoutCancel(d.ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(stopFor, cut) })
	s := &session{
		d: d, life: life{ctx: ctx, cancel: cancel, sends: sends, awake: make(chan struct{}, 1)}, order: order,
		seen:       seen{pods: map[string]drain.Pod{}, namespaces: map[string]bool{}, mustLeave: map[string]bool{}},
		sent:       sent{asked: map[string]drain.Asked{}, tries: map[string]int{}, limbo: map[string]drain.Pod{}},
		surges:     surges{of: map[string]drain.Replacement{}, going: map[string]chan struct{}{}, extra: map[string][]surge.ExtraReplica{}, undoing: map[string]string{}, kept: map[string]string{}},
		daemonSets: map[string]known{}, pending: map[string]string{},
		status: executors.DrainStatus{Reason: executors.DrainListing, Message: "looking at the pods of node " + order.Node},
	}
	if at, ok := drain.Deadline(order.Options, order.Since); ok {
		s.status.Deadline = at
	}
	s.surges.looked = d.config.Elsewhere
	if d.config.Lease > 0 {
		s.life.lease = time.AfterFunc(d.config.Lease, s.expire)
	}
	return s
}

// extend renews the session's lease.
func (s *session) extend() {
	if s.life.lease != nil {
		s.life.lease.Reset(s.d.config.Lease)
	}
}

// expire ends a session whose lease is over.
func (s *session) expire() {
	s.alive(func() { s.d.end(s) })
}

// start watches the node's pods and begins to decide.
func (s *session) start() {
	kept := follow.Kept[*corev1.Pod, drain.Pod]{
		Turn: annotations.DrainPod, Key: func(p drain.Pod) string { return p.UID },
		Set:      func(p drain.Pod) { s.alive(func() { s.came(p, p.Version) }) },
		Gone:     func(p drain.Pod) { s.alive(func() { s.left(p) }) },
		Replaced: func(all []drain.Pod) { s.alive(func() { s.replaced(all) }) },
	}
	from := podsOn(s.order.Clients.Kube, s.order.Node, s.heard)
	go follow.Keep(s.life.ctx, s.d.config.Elsewhere, from, kept)
	go s.run()
}

func (s *session) alive(f func()) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.life.ctx.Err() == nil {
		f()
		s.wake()
	}
}

// wake has the session decide again; waking twice is waking once.
func (s *session) wake() {
	select {
	case s.life.awake <- struct{}{}:
	default:
	}
}

// kube are the clients of the last order.
func (s *session) kube() kube.Interface {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.order.Clients.Kube
}

// heard notes whether the pods can be read.
func (s *session) heard(err error) {
	if s.life.ctx.Err() != nil {
		return
	}
	s.alive(func() { s.seen.err = err })
}

// came notes a pod as it is now; since is the version from which on it was being deleted, if it is.
func (s *session) came(p drain.Pod, since uint64) {
	old, known := s.seen.pods[p.UID]
	if !known && s.seen.synced {
		s.returns.Arrived(p)
	}
	if p.Deleting && !old.Deleting {
		s.d.budgets.deleted(p.UID, since)
		s.begins(p.UID)
		if s.seen.mustLeave[p.UID] { // its replacement may appear before it is gone
			s.goes(p)
		}
	}
	s.seen.pods[p.UID] = p
}

// goes notes that a pod that has to leave is terminating.
func (s *session) goes(p drain.Pod) {
	if !s.d.config.Elsewhere || len(s.departed.evicted)+len(s.departed.gone) < follow.MostObjects {
		s.returns.Left(p)
	}
	s.linger(p)
}

// linger waits for the replacement of a pod that tolerates the cordon.
func (s *session) linger(p drain.Pod) {
	if p.Tolerates && s.seen.mustLeave[p.UID] && p.Controller != nil {
		s.still.settle = s.d.config.Now().Add(settleFor)
	}
}

// left notes that a pod is gone, and whether that was our doing.
func (s *session) left(p drain.Pod) {
	old, known := s.seen.pods[p.UID]
	if !known {
		return
	}
	delete(s.seen.pods, p.UID)
	s.removeFor(p.UID)
	s.d.budgets.deleted(p.UID, p.Version)
	s.begins(p.UID)
	if s.seen.mustLeave[p.UID] && !old.Deleting {
		s.goes(p)
	}
	s.linger(old)
	asked := s.sent.asked[p.UID]
	if asked.Answer == drain.InFlight { // its answer decides
		s.sent.limbo[p.UID] = old
		return
	}
	s.account(old, asked, asked.Answer == drain.Accepted || asked.Answer == drain.Failed && asked.Unclear)
}

// account counts a pod that is gone.
func (s *session) account(p drain.Pod, asked drain.Asked, ours bool) {
	delete(s.sent.asked, p.UID)
	delete(s.sent.tries, p.UID)
	delete(s.surges.of, p.UID)
	delete(s.d.failed, p.UID)
	must := s.seen.mustLeave[p.UID]
	delete(s.seen.mustLeave, p.UID)
	if s.d.config.Elsewhere && len(s.departed.forced)+len(s.departed.evicted)+len(s.departed.gone) >= follow.MostObjects {
		return // what another cluster reports may be endless
	}
	switch {
	case ours && asked.Deleted:
		s.departed.forced = append(s.departed.forced, p.String())
	case ours:
		s.departed.evicted = append(s.departed.evicted, p.String())
	case must:
		s.departed.gone = append(s.departed.gone, p.String())
	}
}

// replaced compares all pods with those that were seen before. A list does not say when a pod was
// deleted, only that it was after it was last seen: its budget may have counted it since, and may
// never be written again.
func (s *session) replaced(all []drain.Pod) {
	there := map[string]bool{}
	for _, p := range all {
		there[p.UID] = true
		since := p.Version
		if before, known := s.seen.pods[p.UID]; known {
			since = before.Version
		}
		s.came(p, since)
	}
	for uid, p := range s.seen.pods {
		if !there[uid] {
			s.left(p)
		}
	}
	s.seen.synced = true
}

// run decides until the session ends.
func (s *session) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.life.ctx.Done():
			return
		case <-s.life.awake:
		case <-timer.C:
		}
		wake := s.pass()
		timer.Stop()
		if !wake.IsZero() {
			timer.Reset(max(0, wake.Sub(s.d.config.Now())))
		}
	}
}

// pass looks, decides, records the requests that it is about to make, and makes them.
func (s *session) pass() time.Time {
	s.d.mu.Lock()
	requests, wake := s.decide()
	s.d.mu.Unlock()
	for _, r := range requests {
		if r.surge {
			go s.surge(r.pod, r.going)
		} else {
			go s.send(r)
		}
	}
	return wake
}

func (s *session) decide() ([]request, time.Time) {
	if s.ended || s.life.ctx.Err() != nil {
		return nil, time.Time{}
	}
	now := s.d.config.Now()
	if pods, budgets := unread(s.seen.err, s.seen.synced), unread(s.d.readErr, s.d.budgets.synced); pods != nil || budgets != nil {
		s.unreadable(pods, budgets)
		return nil, now.Add(lookAgain)
	}
	if !s.seen.synced || !s.d.budgets.synced {
		return nil, time.Time{}
	}
	again, ready := s.findDaemonSets(now)
	if !ready {
		return nil, again
	}
	if s.order.DryRun {
		s.rehearse(s.view(now))
		return nil, time.Time{}
	}
	if !s.surges.looked {
		s.surges.looked = true
		s.surges.open++
		go s.undoSurges()
	}
	view := s.view(now) // after the look has begun: a node without pods is not drained before the look is over
	dec := drain.Decide(view)
	if dec.Done {
		s.awaitVolumes(&dec, now)
	}
	requests := s.take(view, dec, now)
	s.held = len(dec.Held)+len(dec.Blocks) > 0
	s.d.wakeAll(s.d.budgets.wait(s, dec.Waits))
	s.d.wakeAll(s.d.budgets.line(s, dec.Lines))
	settled := s.standstill(dec, now)
	s.report(view, dec)
	return requests, earliest(earliest(dec.Wake, again), settled)
}

// unread is why something is not known. What was listed is, though it may not be watched.
func unread(err error, synced bool) error {
	if synced && !errors.Is(err, follow.ErrTooMuch) {
		return nil
	}
	return err
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// judge gives the verdicts of this drain.
func (s *session) judge(now time.Time) drain.Judge {
	judge := drain.NewJudge(s.order.Options, func(namespace, name string) (bool, error) {
		k := s.daemonSets[namespace+"/"+name]
		return k.there, k.err
	})
	if s.d.config.Elsewhere {
		judge = judge.WithoutSurge()
	}
	return judge.WithAgent(s.agent(now))
}

// view is everything that the decision rests on.
func (s *session) view(now time.Time) drain.View {
	s.seen.namespaces = map[string]bool{}
	pods := make([]drain.Pod, 0, len(s.seen.pods))
	for _, p := range s.seen.pods {
		s.seen.namespaces[p.Namespace] = true
		pods = append(pods, p)
	}
	budgets := s.d.budgets.in(s.seen.namespaces)
	judge := s.judge(now)
	v := drain.View{
		Now: now, Since: s.order.Since, Options: s.order.Options, Judged: judge.All(pods),
		Budgets: budgets, Room: s.d.budgets.room(s, budgets, now), Turns: s.d.budgets.turns(s, budgets),
		Asked: s.sent.asked, Returned: s.returns.Counts(), Replacements: s.surges.of,
		Slots: min(perNode-s.sent.busy, overall-s.d.busy), Unanswered: len(s.sent.limbo) + s.surges.open, Settle: s.still.settle,
		MayDelete: !s.sent.mayNotDelete,
	}
	for _, j := range v.Judged {
		if j.Do == drain.Skip {
			delete(s.seen.mustLeave, j.UID)
		} else {
			s.seen.mustLeave[j.UID] = true
		}
	}
	return v
}
