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
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

var errLeaseLost = errors.New("the lease was lost: another agent leads") //nolint:gochecknoglobals // a sentinel for errors.Is

// The timing of the lease. A leader that is gone is replaced when its lease has run
// out, up to two retries later: each waits up to 2.2 times its period. A leader that
// cannot renew changes nothing once the lease has run out by its own clock, which began
// earlier than anybody else's; it goes on when it learns that nobody else has led.
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
	t := &tenure{agent: a, process: ctx, done: make(chan struct{})}
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
	began   atomic.Bool
	done    chan struct{} // closed when the work has ended
}

// stand takes part in the election until the lease could not be renewed, or may be
// had at once.
func (t *tenure) stand(ctx context.Context) error {
	a := t.agent
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: a.options.Namespace, Name: annotations.LeaseName},
		Client:     a.kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: a.options.Identity},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &fencedLock{LeaseLock: lock, tenure: t}, LeaseDuration: a.options.LeaseDuration, RenewDeadline: a.options.RenewDeadline, RetryPeriod: a.options.RetryPeriod,
		ReleaseOnCancel: true, Name: annotations.LeaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { t.begin() },
			OnStoppedLeading: func() { a.metrics.leading.Set(0) },
			OnNewLeader:      t.sawLeader,
		},
	})
	if err != nil {
		return err
	}
	if !t.began.Load() {
		go t.awaitRelease(ctx, cancel)
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
	a.work(t.process)
}

// sawLeader ends an agent that led when another one does.
func (t *tenure) sawLeader(identity string) {
	if t.began.Load() && identity != "" && identity != t.agent.options.Identity {
		t.agent.fence.close()
		t.agent.die(errLeaseLost)
	}
}

// awaitRelease has a standby ask for the lease at once when its holder gives it away,
// in place of when it would ask the next time.
func (t *tenure) awaitRelease(ctx context.Context, now func()) {
	leases, held := t.agent.kube.CoordinationV1().Leases(t.agent.options.Namespace), false
	for failed := 1; ctx.Err() == nil; failed++ {
		w, err := leases.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", annotations.LeaseName).String()})
		if err != nil {
			sleep(ctx, pause(failed, err))
			continue
		}
		for event := range w.ResultChan() {
			lease, is := event.Object.(*coordinationv1.Lease)
			if failed = 0; !is {
				continue
			}
			free := lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == ""
			if free && held && !t.began.Load() {
				w.Stop()
				now()
				return
			}
			held = held || !free
		}
		sleep(ctx, pause(failed+1, nil))
	}
}

// fencedLock tells the fence when the lease was renewed, by the time before the
// request was sent: the API server may have counted from there.
type fencedLock struct {
	*resourcelock.LeaseLock
	tenure *tenure
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
	l.tenure.agent.fence.close()
	return nil
}

func (l *fencedLock) renewed(err error, sent time.Time, r resourcelock.LeaderElectionRecord) {
	a := l.tenure.agent
	if err != nil || r.HolderIdentity != a.options.Identity {
		return
	}
	a.fence.renew(sent, r.LeaderTransitions)
	if a.fence.over() && a.options.LeaderElect {
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
		_, err = maps.Create(ctx, cm, createOptions())
		return err
	}
	if err != nil {
		return err
	}
	cm.Data = data
	_, err = maps.Update(ctx, cm, updateOptions())
	return err
}
