// Package leader has one replica work at a time, and says that it lives.
package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

var errLeaseLost = errors.New("the lease was lost: another agent leads") //nolint:gochecknoglobals // a sentinel for errors.Is

var errWentBack = errors.New("the lease is older than it was, as after a restored backup: the agent begins anew") //nolint:gochecknoglobals // a sentinel for errors.Is

// The timing of the lease. A leader that is gone is replaced when its lease has run
// out, which a standby sees by a watch; where that is broken, up to two retries later:
// each waits up to 2.2 times its period. A leader that cannot renew changes nothing
// once the lease has run out by its own clock, which began earlier than anybody else's;
// it goes on when it learns that nobody else has led.
const (
	LeaseDuration = 8 * time.Second
	RenewDeadline = 6 * time.Second
	RetryPeriod   = time.Second
)

// longestLease is the longest lease that an agent of any version holds: after an upgrade
// the leader may be of one before.
const longestLease = 15 * time.Second

// Config is what an election needs.
type Config struct {
	Kube      kube.Interface
	Namespace string // of the lease
	Identity  string // of this process, unique among its replicas
	Elect     bool   // false: this is the one replica
	Fence     *client.Fence
	Log       *slog.Logger
	Now       func() time.Time

	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	Leads func(is bool) // hears whether the lease is held
	Lost  func(error)   // hears that another agent leads: the process is to end
}

// Elector waits for the lease and works while it is held.
type Elector struct{ Config }

// New takes part in no election yet.
func New(c Config) *Elector { return &Elector{c} }

// Run waits for the lease and works while it is held.
func (e *Elector) Run(ctx context.Context, work func(ctx context.Context)) error {
	if !e.Elect {
		e.Leads(true)
		defer e.Leads(false)
		work(ctx)
		return nil
	}
	t := &tenure{Elector: e, process: ctx, work: work, done: make(chan struct{})}
	for ctx.Err() == nil {
		if err := t.stand(ctx); err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
	}
	if t.began.Load() {
		<-t.done
	}
	return nil
}

// tenure is the work of one leader. An API server that is away for longer than the
// lease interrupts it; it ends when another agent has led, or with the process.
type tenure struct {
	*Elector
	process context.Context //nolint:containedctx // the work outlives an election that could not be renewed
	work    func(ctx context.Context)
	began   atomic.Bool
	ended   atomic.Pointer[resourcelock.LeaderElectionRecord] // a lease that was seen to run out
	wrote   atomic.Pointer[time.Time]                         // when we renewed the lease last, as it says
	done    chan struct{}                                     // closed when the work has ended
}

// stand takes part in the election until the lease could not be renewed, or may be
// had at once.
func (t *tenure) stand(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	standing, leads := context.WithCancel(ctx)
	defer leads()
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: t.Namespace, Name: annotations.LeaseName},
		Client:     t.Kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: t.Identity},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &fencedLock{LeaseLock: lock, tenure: t}, LeaseDuration: t.LeaseDuration, RenewDeadline: t.RenewDeadline, RetryPeriod: t.RetryPeriod,
		ReleaseOnCancel: true, Name: annotations.LeaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				leads()
				t.begin()
			},
			OnStoppedLeading: func() { t.Leads(false) },
			OnNewLeader:      t.sawLeader,
		},
	})
	if err != nil {
		return err
	}
	if !t.began.Load() {
		go newLeaseWatch(t).await(standing, cancel)
	}
	elector.Run(ctx)
	return nil
}

// begin works, or goes on with the work that an API server interrupted which was away.
func (t *tenure) begin() {
	t.Leads(true)
	if t.began.Swap(true) {
		t.Log.Info("leading on: nobody else has led meanwhile", "identity", t.Identity)
		return
	}
	defer close(t.done)
	t.Log.Info("leading", "identity", t.Identity)
	t.work(t.process)
}

// leaseOf is how long a lease is believed to last. Whoever may write the object may write any
// duration: a longer one would keep every agent from leading, and with a shorter one a standby
// would lead while the fence of the leader is still open.
func (t *tenure) leaseOf(r *resourcelock.LeaderElectionRecord) time.Duration {
	said := time.Duration(r.LeaseDurationSeconds) * time.Second
	return max(t.LeaseDuration, min(said, longestLease))
}

// sawLeader ends an agent that led when another one does.
func (t *tenure) sawLeader(identity string) {
	if t.began.Load() && identity != "" && identity != t.Identity {
		t.Fence.Close()
		t.Lost(errLeaseLost)
	}
}

// sawRenewed notices a lease of our own that we had renewed later than it says.
func (t *tenure) sawRenewed(r *resourcelock.LeaderElectionRecord) {
	wrote := t.wrote.Load()
	if wrote != nil && r.HolderIdentity == t.Identity && wrote.Sub(r.RenewTime.Time) > time.Second {
		t.Fence.Close()
		t.Lost(errWentBack)
	}
}

// leaseMargin is how long after the end of a lease a standby leaves it alone, so that
// what its holder sent in the last moment has arrived (a guess).
const leaseMargin = 500 * time.Millisecond

// leaseWatch follows the lease for a standby, which otherwise asks once in a while.
type leaseWatch struct {
	tenure *tenure
	read   func(ctx context.Context) (*coordinationv1.Lease, error) // as it stands in etcd
	held   bool                                                     // it was seen in somebody's hand
	uid    types.UID                                                // of the lease that was seen last, and its version
	at     uint64
}

func newLeaseWatch(t *tenure) *leaseWatch {
	return &leaseWatch{tenure: t, read: func(ctx context.Context) (*coordinationv1.Lease, error) {
		return t.Kube.CoordinationV1().Leases(t.Namespace).Get(ctx, annotations.LeaseName, metav1.GetOptions{})
	}}
}

// await has a standby ask for the lease as soon as it may be had: when its holder
// gives it away, or has let it run out.
func (l *leaseWatch) await(ctx context.Context, ask func()) {
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", annotations.LeaseName).String()}
	for failed := 1; ctx.Err() == nil; failed++ {
		w, err := l.tenure.Kube.CoordinationV1().Leases(l.tenure.Namespace).Watch(ctx, only)
		if err == nil {
			failed = 0
			if l.follow(ctx, w) {
				ask()
				return
			}
		}
		informer.Sleep(ctx, min(informer.Backoff(failed+1, err), l.tenure.RetryPeriod)) // the elector asks as often, also while it is refused
	}
}

// follow says whether the lease may be had; otherwise the watch has ended. How long a
// lease was not renewed is counted within one watch: while the API server was away its
// holder could not renew, and is to have the first word.
func (l *leaseWatch) follow(ctx context.Context, w watch.Interface) bool {
	defer w.Stop()
	var last *resourcelock.LeaderElectionRecord
	end := time.NewTimer(time.Hour)
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-end.C:
			if last == nil {
				continue
			}
			l.tenure.ended.Store(last)
			return true
		case event, open := <-w.ResultChan():
			lease, is := event.Object.(*coordinationv1.Lease)
			if !open || !is {
				return false
			}
			if !l.saw(ctx, lease) {
				return false
			}
			last = resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
			switch {
			case event.Type == watch.Deleted:
				last = nil
			case last.HolderIdentity == "" && l.held:
				return true
			case last.HolderIdentity == "":
				last = nil
			default:
				l.held = true
				end.Reset(l.tenure.leaseOf(last) + leaseMargin)
			}
		}
	}
}

// saw notices a lease that is older than it was. Of several API servers one may begin a watch
// with what it had a moment ago: what stands in etcd decides. It says whether the watch is of use:
// not where nobody says what stands there.
func (l *leaseWatch) saw(ctx context.Context, lease *coordinationv1.Lease) bool {
	version := informer.VersionOf(lease)
	if lease.UID == l.uid && version > 0 && version < l.at {
		now, err := l.read(ctx)
		if err != nil {
			return false
		}
		if now.UID != l.uid || informer.VersionOf(now) >= l.at {
			return true
		}
		l.tenure.Lost(errWentBack)
	}
	l.uid, l.at = lease.UID, version
	return true
}

// fencedLock tells the fence when the lease was renewed, by the time before the
// request was sent: the API server may have counted from there.
type fencedLock struct {
	*resourcelock.LeaseLock
	tenure *tenure
}

// Get is resourcelock.Interface's. A lease that is known to have run out is nobody's:
// the elector would count anew from when it sees it.
func (l *fencedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.LeaseLock.Get(ctx)
	if err == nil { // the elector would tell only when it gives up
		l.tenure.sawLeader(r.HolderIdentity)
		l.tenure.sawRenewed(r)
		r.LeaseDurationSeconds = int(l.tenure.leaseOf(r) / time.Second)
	}
	if ended := l.tenure.ended.Load(); err == nil && ended != nil && sameTerm(r, ended) && r.RenewTime.Equal(&ended.RenewTime) {
		r.HolderIdentity = ""
	}
	return r, raw, err
}

// sameTerm says whether a lease is in the same hand as it was.
func sameTerm(a, b *resourcelock.LeaderElectionRecord) bool {
	return a.HolderIdentity == b.HolderIdentity && a.LeaderTransitions == b.LeaderTransitions
}

// Create is resourcelock.Interface's.
func (l *fencedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := l.tenure.Now()
	err := l.LeaseLock.Create(ctx, r)
	l.renewed(err, sent, r)
	return err
}

// Update is resourcelock.Interface's.
func (l *fencedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == "" {
		if err := l.release(); err != nil {
			return err
		}
	}
	sent := l.tenure.Now()
	err := l.LeaseLock.Update(ctx, r)
	l.renewed(err, sent, r)
	return err
}

var errKept = errors.New("the lease is kept: the agent goes on") //nolint:gochecknoglobals // a sentinel for errors.Is

// releaseTimeout is how long an agent that ends waits for what it is doing, before it gives
// the lease away (a guess: what is under way is cut off at once).
const releaseTimeout = time.Second

// release shuts the fence before the lease is given away. An agent that does not end
// gives nothing away: its work may go on when the API server is back.
func (l *fencedLock) release() error {
	if l.tenure.process.Err() == nil {
		return errKept
	}
	if l.tenure.began.Load() {
		limit := time.NewTimer(releaseTimeout)
		defer limit.Stop()
		select {
		case <-l.tenure.done:
		case <-limit.C:
		}
	}
	l.tenure.Fence.Close()
	return nil
}

func (l *fencedLock) renewed(err error, sent time.Time, r resourcelock.LeaderElectionRecord) {
	if err != nil || r.HolderIdentity != l.tenure.Identity {
		return
	}
	l.tenure.wrote.Store(&r.RenewTime.Time)
	l.tenure.Fence.Renew(sent, r.LeaderTransitions)
	if l.tenure.Fence.Closed() && l.tenure.Elect {
		l.tenure.Lost(errLeaseLost)
	}
}
