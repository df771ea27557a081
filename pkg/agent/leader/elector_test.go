package leader

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// replica is one of an agent's, and what became of it.
type replica struct {
	*Elector
	stop func()

	mu   sync.Mutex
	said []string
}

func (r *replica) say(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, what)
}

func (r *replica) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.said)
}

// stands has a replica take part. What it does when it leads ends linger after it was
// told to.
func stands(t *testing.T, api *agenttest.Cluster, identity string, elect bool, linger time.Duration) *replica {
	t.Helper()
	conn, _ := api.Connect()
	r := &replica{}
	r.Elector = New(Config{
		Kube: conn.Kube, Namespace: "maint-system", Identity: identity, Elect: elect, Fence: client.NewFence(LeaseDuration, time.Now), Log: slog.New(slog.DiscardHandler), Now: time.Now,
		LeaseDuration: LeaseDuration, RenewDeadline: RenewDeadline, RetryPeriod: RetryPeriod,
		Leads: func(is bool) {
			if is {
				r.say("leads")
			} else {
				r.say("leads no more")
			}
		},
		Lost: func(error) { r.say("lost") },
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := r.Run(ctx, func(ctx context.Context) {
			r.say("works")
			<-ctx.Done()
			time.Sleep(linger)
			r.say("has worked")
		})
		if err != nil {
			t.Error(err)
		}
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	return r
}

func expect(t *testing.T, what string, r *replica, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := r.heard(); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestAnAgentWithoutReplicasWorksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stands(t, agenttest.New(t), "a", false, 0)
		expect(t, "at once", r, "leads", "works")
		r.stop()
		expect(t, "at its end", r, "leads", "works", "has worked", "leads no more")
	})
}

func TestAnAgentThatEndsGivesItsLeaseAwayAfterItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := agenttest.New(t)
		first := stands(t, api, "first", true, 500*time.Millisecond)
		time.Sleep(5 * time.Second)
		second := stands(t, api, "second", true, 0)
		time.Sleep(30 * time.Second)
		expect(t, "the first", first, "leads", "works")
		expect(t, "the second meanwhile", second)
		gone := time.Now()
		first.stop()
		if first.Fence.Valid() {
			t.Error("the fence of the first lets something pass")
		}
		if took := time.Since(gone); took < 500*time.Millisecond || took > 2*time.Second {
			t.Errorf("it ended after %s", took)
		}
		time.Sleep(time.Second)
		expect(t, "the second a second later", second, "leads no more", "leads", "works") // the first of them when its wait ended
		second.stop()
	})
}

// Its machine sleeps, or the API server forgets it: the lease says another's name.
func TestALeaderWhoseLeaseAnotherHasEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := agenttest.New(t)
		r := stands(t, api, "first", true, 0)
		time.Sleep(5 * time.Second)
		api.Edit("leases", "maint-system", annotations.LeaseName, func(u *unstructured.Unstructured) {
			spec := u.Object["spec"].(map[string]any)
			spec["holderIdentity"], spec["leaseTransitions"] = "other", int64(7)
			spec["renewTime"] = metav1.NowMicro().UTC().Format("2006-01-02T15:04:05.000000Z")
		})
		time.Sleep(2 * RetryPeriod) // with its first renewal, and not only when it gives up
		synctest.Wait()
		if got := r.heard(); !slices.Contains(got, "lost") || r.Fence.Valid() {
			t.Errorf("it says %q, its fence is open: %t", got, r.Fence.Valid())
		}
		r.stop()
	})
}

// Nobody else has led: the work goes on where it was, behind a fence that was closed
// meanwhile.
// setBack has the lease as it was before, as after a restored backup.
func setBack(api *agenttest.Cluster, was *unstructured.Unstructured) {
	api.Edit("leases", "maint-system", annotations.LeaseName, func(u *unstructured.Unstructured) {
		u.Object["spec"] = was.Object["spec"]
	})
}

func TestALeaderWhoseLeaseWasPutBackFromABackupEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := agenttest.New(t)
		r := stands(t, api, "first", true, 0)
		time.Sleep(5 * time.Second)
		was := api.Get("leases", "maint-system", annotations.LeaseName)
		time.Sleep(time.Minute)
		expect(t, "meanwhile", r, "leads", "works")
		setBack(api, was)
		time.Sleep(2 * RetryPeriod)
		synctest.Wait()
		if got := r.heard(); !slices.Contains(got, "lost") || r.Fence.Valid() {
			t.Errorf("it says %q, its fence is open: %t", got, r.Fence.Valid())
		}
		r.stop()
	})
}

func TestALeaseThatIsOlderThanAStandbySawIsTold(t *testing.T) {
	lease := func(uid types.UID, version string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
	}
	for name, c := range map[string]struct {
		then, stored *coordinationv1.Lease
		told         int
	}{
		"older":                                {lease("a", "9"), lease("a", "9"), 1},
		"older, and written since":             {lease("a", "8"), lease("a", "9"), 1},
		"older, from a cache that is":          {lease("a", "9"), lease("a", "10"), 0},
		"older, and nobody says what is there": {lease("a", "9"), nil, 0}, // the watch begins anew
		"older, and made anew since":           {lease("a", "9"), lease("b", "12"), 0},
		"the same":                             {lease("a", "10"), nil, 0},
		"newer":                                {lease("a", "11"), nil, 0},
		"another object":                       {lease("b", "9"), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			told := 0
			l := leaseWatch{tenure: &tenure{Elector: New(Config{Lost: func(error) { told++ }})}, read: func(context.Context) (*coordinationv1.Lease, error) {
				if c.stored == nil {
					return nil, errors.New("away")
				}
				return c.stored, nil
			}}
			l.saw(t.Context(), lease("a", "10"))
			if goesOn := l.saw(t.Context(), c.then); told != c.told || goesOn != (name != "older, and nobody says what is there") {
				t.Errorf("told %d times; the watch goes on: %t", told, goesOn)
			}
		})
	}
}

// An API server that has just started refuses everybody for a while: the lease is followed
// again as soon as the elector could have it.
func TestALeaseIsFollowedSoonAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := agenttest.New(t)
		api.Put(agenttest.Object(t, `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: maint-system, name: maint-agent}, spec: {holderIdentity: other, leaseDurationSeconds: 15, renewTime: "2000-01-01T00:00:00.000000Z"}}`))
		renew := func(by string) {
			api.Edit("leases", "maint-system", annotations.LeaseName, func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), "spec", "renewTime")
				_ = unstructured.SetNestedField(u.Object, by, "spec", "holderIdentity")
			})
		}
		api.Refuse(agenttest.When{Verb: "watch", Resource: "leases"}, 20, http.StatusForbidden, "the roles are not read yet")
		r := stands(t, api, "second", true, 0)
		for range 25 {
			time.Sleep(time.Second)
			renew("other")
		}
		expect(t, "meanwhile", r)
		renew("")
		time.Sleep(10 * time.Millisecond)
		expect(t, "then", r, "leads no more", "leads", "works")
		r.stop()
	})
}

func TestALeaderGoesOnWhenTheAPIServerIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := agenttest.New(t)
		r := stands(t, api, "first", true, 0)
		time.Sleep(5 * time.Second)
		mend := api.Refuse(agenttest.When{Resource: "leases"}, agenttest.Always, http.StatusServiceUnavailable, "away")
		time.Sleep(LeaseDuration + 2*time.Second)
		if r.Fence.Valid() {
			t.Error("its fence is open although its lease has run out")
		}
		mend()
		time.Sleep(5 * time.Second)
		expect(t, "then", r, "leads", "works", "leads no more", "leads")
		if !r.Fence.Valid() {
			t.Error("its fence is closed although it leads")
		}
		r.stop()
	})
}

func TestAHeartbeatSaysWhoLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := agenttest.New(t)
		conn, _ := api.Connect()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go Heartbeat{Kube: conn.Kube, Namespace: "maint-system", Identity: "first", Version: "v1", Pod: "maint-system/agent-1", Now: time.Now, Log: slog.New(slog.DiscardHandler)}.Run(ctx)
		for at, want := range []string{"2000-01-01T00:00:00Z", "2000-01-01T00:00:05Z", "2000-01-01T00:00:05Z", "2000-01-01T00:00:15Z", "2000-01-01T00:00:20Z", "2000-01-01T00:00:25Z"} {
			synctest.Wait()
			cm := api.ConfigMap("maint-system", annotations.HeartbeatName)
			if cm.Data["heartbeat"] != want || cm.Data["version"] != "v1" || cm.Data["identity"] != "first" || cm.Data["pod"] != "maint-system/agent-1" {
				t.Errorf("beat %d says %v, want %s", at, cm.Data, want)
			}
			if at == 1 {
				api.Refuse(agenttest.When{Verb: "update", Resource: "configmaps"}, 1, http.StatusServiceUnavailable, "away")
			}
			if at == 3 { // somebody wrote on it
				cm.Annotations = map[string]string{"a": "b"}
				if _, err := conn.Kube.CoreV1().ConfigMaps("maint-system").Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
					t.Error(err)
				}
			}
			if at == 4 { // or took it away
				if err := conn.Kube.CoreV1().ConfigMaps("maint-system").Delete(ctx, annotations.HeartbeatName, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(heartbeatInterval)
		}
	})
}
