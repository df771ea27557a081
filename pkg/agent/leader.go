package agent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

var errLeaseLost = errors.New("the lease was lost: another agent leads") //nolint:gochecknoglobals // a sentinel for errors.Is

// The timing of the lease. A leader that is gone is replaced when its lease has run
// out, which a standby sees by a watch; where that is broken, up to two retries later:
// each waits up to 2.2 times its period. A leader that cannot renew changes nothing
// once the lease has run out by its own clock, which began earlier than anybody else's;
// it goes on when it learns that nobody else has led.
const (
	leaseDuration = 8 * time.Second
	renewDeadline = 6 * time.Second
	retryPeriod   = time.Second
)

// lead waits for the lease and works while it is held.
func (a *Agent) lead(ctx context.Context) error {
	if !a.options.LeaderElect {
		a.metrics.leading.Set(1)
		defer a.metrics.leading.Set(0)
		a.work(ctx)
		return nil
	}
	t := &tenure{agent: a, process: ctx, work: a.work, done: make(chan struct{})}
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
	agent   *Agent
	process context.Context //nolint:containedctx // the work outlives an election that could not be renewed
	work    func(ctx context.Context)
	began   atomic.Bool
	ended   atomic.Pointer[resourcelock.LeaderElectionRecord] // a lease that was seen to run out
	done    chan struct{}                                     // closed when the work has ended
}

// stand takes part in the election until the lease could not be renewed, or may be
// had at once.
func (t *tenure) stand(ctx context.Context) error {
	a := t.agent
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	standing, leads := context.WithCancel(ctx)
	defer leads()
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: a.options.Namespace, Name: annotations.LeaseName},
		Client:     a.kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: a.options.Identity},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &fencedLock{LeaseLock: lock, tenure: t}, LeaseDuration: a.options.LeaseDuration, RenewDeadline: a.options.RenewDeadline, RetryPeriod: a.options.RetryPeriod,
		ReleaseOnCancel: true, Name: annotations.LeaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				leads()
				t.begin()
			},
			OnStoppedLeading: func() { a.metrics.leading.Set(0) },
			OnNewLeader:      t.sawLeader,
		},
	})
	if err != nil {
		return err
	}
	if !t.began.Load() {
		go (&leaseWatch{tenure: t}).await(standing, cancel)
	}
	elector.Run(ctx)
	return nil
}

// begin works, or goes on with the work that an API server interrupted which was away.
func (t *tenure) begin() {
	a := t.agent
	a.metrics.leading.Set(1)
	if t.began.Swap(true) {
		a.log.Info("leading on: nobody else has led meanwhile", "identity", a.options.Identity)
		return
	}
	defer close(t.done)
	a.log.Info("leading", "identity", a.options.Identity)
	t.work(t.process)
}

// sawLeader ends an agent that led when another one does.
func (t *tenure) sawLeader(identity string) {
	if t.began.Load() && identity != "" && identity != t.agent.options.Identity {
		t.agent.fence.Close()
		t.agent.die(errLeaseLost)
	}
}

// leaseMargin is how long after the end of a lease a standby leaves it alone, so that
// what its holder sent in the last moment has arrived (a guess).
const leaseMargin = 500 * time.Millisecond

// leaseWatch follows the lease for a standby, which otherwise asks once in a while.
type leaseWatch struct {
	tenure *tenure
	held   bool // it was seen in somebody's hand
}

// await has a standby ask for the lease as soon as it may be had: when its holder
// gives it away, or has let it run out.
func (l *leaseWatch) await(ctx context.Context, ask func()) {
	a := l.tenure.agent
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", annotations.LeaseName).String()}
	for failed := 1; ctx.Err() == nil; failed++ {
		w, err := a.kube.CoordinationV1().Leases(a.options.Namespace).Watch(ctx, only)
		if err == nil {
			failed = 0
			if l.follow(ctx, w) {
				ask()
				return
			}
		}
		informer.Sleep(ctx, informer.Backoff(failed+1, err))
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
				end.Reset(time.Duration(last.LeaseDurationSeconds)*time.Second + leaseMargin)
			}
		}
	}
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
	sent := l.tenure.agent.now()
	err := l.LeaseLock.Create(ctx, r)
	l.renewed(err, sent, r)
	return err
}

// Update is resourcelock.Interface's.
func (l *fencedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == "" {
		if err := l.letGo(); err != nil {
			return err
		}
	}
	sent := l.tenure.agent.now()
	err := l.LeaseLock.Update(ctx, r)
	l.renewed(err, sent, r)
	return err
}

var errKept = errors.New("the lease is kept: the agent goes on") //nolint:gochecknoglobals // a sentinel for errors.Is

// lastActs is how long an agent that ends waits for what it is doing, before it gives
// the lease away (a guess: what is under way is cut off at once).
const lastActs = time.Second

// letGo shuts the fence before the lease is given away. An agent that does not end
// gives nothing away: its work may go on when the API server is back.
func (l *fencedLock) letGo() error {
	if l.tenure.process.Err() == nil {
		return errKept
	}
	if l.tenure.began.Load() {
		limit := time.NewTimer(lastActs)
		defer limit.Stop()
		select {
		case <-l.tenure.done:
		case <-limit.C:
		}
	}
	l.tenure.agent.fence.Close()
	return nil
}

func (l *fencedLock) renewed(err error, sent time.Time, r resourcelock.LeaderElectionRecord) {
	a := l.tenure.agent
	if err != nil || r.HolderIdentity != a.options.Identity {
		return
	}
	a.fence.Renew(sent, r.LeaderTransitions)
	if a.fence.Closed() && a.options.LeaderElect {
		a.die(errLeaseLost)
	}
}

// beatEvery is how often the leader says that it lives.
const beatEvery = 30 * time.Second

// beat keeps the ConfigMap by which every user can see that an agent runs, and
// which version it is.
func (a *Agent) beat(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		if err := a.sayAlive(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("could not write the heartbeat", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (a *Agent) sayAlive(ctx context.Context) error {
	maps := a.kube.CoreV1().ConfigMaps(a.options.Namespace)
	data := map[string]string{"version": a.options.Version, "identity": a.options.Identity, "heartbeat": a.now().UTC().Format(time.RFC3339)}
	if a.options.Pod != "" {
		data["pod"] = a.options.Pod
	}
	cm, err := maps.Get(ctx, annotations.HeartbeatName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: annotations.HeartbeatName, Labels: map[string]string{annotations.LabelKind: annotations.KindHeartbeat}}, Data: data}
		_, err = maps.Create(ctx, cm, client.CreateOptions())
		return err
	}
	if err != nil {
		return err
	}
	cm.Data = data
	_, err = maps.Update(ctx, cm, client.UpdateOptions())
	return err
}
