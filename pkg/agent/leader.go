package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

var errLeaseLost = errors.New("the lease was lost: another agent leads") //nolint:gochecknoglobals // a sentinel for errors.Is

// lead waits for the lease and works while it is held.
func (a *Agent) lead(ctx context.Context) error {
	if !a.options.LeaderElect {
		a.metrics.leading.Set(1)
		defer a.metrics.leading.Set(0)
		a.work(ctx)
		return nil
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: a.options.Namespace, Name: annotations.LeaseName},
		Client:     a.kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: a.options.Identity},
	}
	done := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &fencedLock{LeaseLock: lock, agent: a}, LeaseDuration: a.options.LeaseDuration, RenewDeadline: a.options.RenewDeadline, RetryPeriod: a.options.RetryPeriod,
		ReleaseOnCancel: true, Name: annotations.LeaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer close(done)
				a.log.Info("leading", "identity", a.options.Identity)
				a.metrics.leading.Set(1)
				a.work(ctx)
			},
			OnStoppedLeading: func() { a.metrics.leading.Set(0) },
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	elector.Run(ctx)
	if ctx.Err() == nil {
		a.die(errLeaseLost)
	}
	if a.lookingSince().IsZero() {
		return nil
	}
	<-done
	return nil
}

// fencedLock tells the fence when the lease was renewed, by the time before the
// request was sent: the API server may have counted from there.
type fencedLock struct {
	*resourcelock.LeaseLock
	agent *Agent
}

// Create is resourcelock.Interface's.
func (l *fencedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := l.agent.now()
	err := l.LeaseLock.Create(ctx, r)
	l.renewed(err, sent, r)
	return err
}

// Update is resourcelock.Interface's.
func (l *fencedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := l.agent.now()
	err := l.LeaseLock.Update(ctx, r)
	l.renewed(err, sent, r)
	return err
}

func (l *fencedLock) renewed(err error, sent time.Time, r resourcelock.LeaderElectionRecord) {
	if err == nil && r.HolderIdentity == l.agent.options.Identity {
		l.agent.fence.renew(sent)
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
