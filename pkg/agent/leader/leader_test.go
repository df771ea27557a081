package leader

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// leaseWorld is a lease in the hand of another agent, and a standby beside it.
type leaseWorld struct {
	t       *testing.T
	kube    *fake.Clientset
	watches []*watch.RaceFreeFakeWatcher
	broken  bool // watches that are opened show nothing
	seconds int32
	tenure  *tenure
	led     time.Time
}

func newLeaseWorld(t *testing.T, ctx context.Context) *leaseWorld {
	t.Helper()
	w := &leaseWorld{t: t, kube: fake.NewClientset(), seconds: int32(LeaseDuration / time.Second)}
	w.kube.PrependWatchReactor("leases", func(clienttesting.Action) (bool, watch.Interface, error) {
		f := watch.NewRaceFreeFake()
		if w.broken {
			return true, f, nil
		}
		w.watches = append(w.watches, f)
		o, err := w.kube.Tracker().Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "maint-system", annotations.LeaseName)
		if err == nil {
			f.Add(o.DeepCopyObject())
		}
		return true, f, nil
	})
	e := New(Config{
		Kube: w.kube, Namespace: "maint-system", Identity: "standby", Elect: true, Fence: client.NewFence(LeaseDuration, time.Now), Log: slog.New(slog.DiscardHandler), Now: time.Now,
		LeaseDuration: LeaseDuration, RenewDeadline: RenewDeadline, RetryPeriod: RetryPeriod, Leads: func(bool) {}, Lost: func(error) {},
	})
	w.tenure = &tenure{Elector: e, process: ctx, done: make(chan struct{}), work: func(ctx context.Context) {
		w.led = time.Now()
		<-ctx.Done()
	}}
	return w
}

// write has the lease say who holds it, renewed now.
func (w *leaseWorld) write(holder string, shown bool) {
	w.t.Helper()
	synctest.Wait()
	now, seconds, transitions := metav1.NowMicro(), w.seconds, int32(3)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: annotations.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now, LeaseTransitions: &transitions},
	}
	leases := coordinationv1.SchemeGroupVersion.WithResource("leases")
	var err error
	if _, missing := w.kube.Tracker().Get(leases, "maint-system", annotations.LeaseName); missing != nil {
		err = w.kube.Tracker().Create(leases, lease, "maint-system")
	} else {
		err = w.kube.Tracker().Update(leases, lease, "maint-system")
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if shown {
		w.show(lease)
	}
}

func (w *leaseWorld) show(lease runtime.Object) {
	for _, f := range w.watches {
		if !f.IsStopped() {
			f.Modify(lease.DeepCopyObject())
		}
	}
}

// stand has the standby take part until ctx ends.
func (w *leaseWorld) stand(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.tenure.stand(ctx); err != nil {
			w.t.Error(err)
			return
		}
	}
}

func TestAStandbyLeadsAsSoonAsTheLeaseHasRunOut(t *testing.T) {
	for name, test := range map[string]struct {
		released   bool // by its holder, in place of dying
		broken     bool // the standby's watch shows nothing
		least, max time.Duration
	}{
		"the holder died":                      {least: LeaseDuration, max: LeaseDuration + leaseMargin + 100*time.Millisecond},
		"the holder gave it away":              {released: true, max: 100 * time.Millisecond},
		"the holder died, the watch is broken": {broken: true, least: LeaseDuration, max: LeaseDuration + 2*22*RetryPeriod/10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				w := newLeaseWorld(t, ctx)
				w.broken = test.broken
				w.write("leader", false)
				stood := make(chan struct{})
				go func() {
					defer close(stood)
					w.stand(ctx)
				}()
				for range 13 {
					time.Sleep(time.Second)
					w.write("leader", true)
				}
				gone := time.Now()
				if test.released {
					w.write("", true)
				}
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if took := w.led.Sub(gone); w.led.IsZero() || took < test.least || took > test.max {
					t.Errorf("it led %s after the last renewal, want %s to %s", took, test.least, test.max)
				}
				for i, f := range w.watches {
					if !f.IsStopped() {
						t.Errorf("watch %d of the lease is open while the agent leads", i)
					}
				}
				cancel()
				<-stood
			})
		})
	}
}

// The watch hangs, its standby believes the lease to have run out, and its holder has
// renewed it all the while.
func TestALeaseThatWasRenewedUnseenIsLeftToItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newLeaseWorld(t, ctx)
		w.write("leader", false)
		stood := make(chan struct{})
		go func() {
			defer close(stood)
			w.stand(ctx)
		}()
		for range 60 {
			time.Sleep(time.Second)
			w.write("leader", false)
		}
		synctest.Wait()
		if !w.led.IsZero() {
			t.Errorf("it led beside the holder")
		}
		if w.tenure.ended.Load() == nil {
			t.Error("the watch was believed")
		}
		cancel()
		<-stood
	})
}

// Somebody who may write the lease says that a ghost holds it, and for how long.
func TestALeaseLastsNoLongerThanAnyAgentsAndNoShorterThanOurs(t *testing.T) {
	for name, test := range map[string]struct {
		seconds    int32
		broken     bool // the standby's watch shows nothing
		least, max time.Duration
	}{
		"for 68 years":                      {seconds: math.MaxInt32, least: longestLease, max: longestLease + leaseMargin + 100*time.Millisecond},
		"for 68 years, the watch is broken": {seconds: math.MaxInt32, broken: true, least: longestLease, max: longestLease + 3*22*RetryPeriod/10},
		"as an agent of a version before":   {seconds: 15, least: 15 * time.Second, max: 15*time.Second + leaseMargin + 100*time.Millisecond},
		"for a second":                      {seconds: 1, least: LeaseDuration, max: LeaseDuration + leaseMargin + 100*time.Millisecond},
		"for a second, the watch is broken": {seconds: 1, broken: true, least: LeaseDuration, max: LeaseDuration + 3*22*RetryPeriod/10},
		"for less than nothing":             {seconds: -1, broken: true, least: LeaseDuration, max: LeaseDuration + 3*22*RetryPeriod/10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				w := newLeaseWorld(t, ctx)
				w.broken, w.seconds = test.broken, test.seconds
				w.write("ghost", false)
				gone := time.Now()
				stood := make(chan struct{})
				go func() {
					defer close(stood)
					w.stand(ctx)
				}()
				time.Sleep(time.Minute)
				synctest.Wait()
				if took := w.led.Sub(gone); w.led.IsZero() || took < test.least || took > test.max {
					t.Errorf("it led %s after the last renewal, want %s to %s", took, test.least, test.max)
				}
				cancel()
				<-stood
			})
		})
	}
}
