package factory

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/serverstate"
)

// What ails an agent that never ran is said also where it is installed in another namespace.
func TestAnAgentThatNeverRanIsFoundWhereItIsInstalled(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "maint-agent-1", Labels: map[string]string{"app.kubernetes.io/name": "maint-agent"}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}},
	}
	f := &Factory{Env: Env{Now: time.Now}}
	s, err := f.Agent(t.Context(), &Cluster{Kube: fake.NewClientset(pod)})
	want := "the agent that is installed in namespace ops has not run yet: see 'kubectl -n ops get pods'; pod maint-agent-1: ImagePullBackOff"
	if err != nil || s.Namespace != "ops" || s.Missing != want {
		t.Errorf("it says %q of namespace %q, %v", s.Missing, s.Namespace, err)
	}
}

// Anybody may make such pods and Deployments in a namespace of their own.
func TestAnAgentThatNoPolicyNamesIsNotFound(t *testing.T) {
	label := map[string]string{"app.kubernetes.io/name": "maint-agent"}
	named := func(policy, namespace string) *admissionv1.ValidatingAdmissionPolicy {
		return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy}, Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConditions: []admissionv1.MatchCondition{{Name: "agent", Expression: "request.userInfo.username == 'system:serviceaccount:" + namespace + ":maint-agent'"}}}}
	}
	objects := []runtime.Object{named(annotations.AgentPolicy, annotations.DefaultNamespace), named("maint-intents", "ops")}
	for _, namespace := range []string{"tenant", "ops"} {
		objects = append(objects,
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "maint-agent-1", Labels: label}},
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "maint-agent", Labels: label}})
	}
	f, k := &Factory{Env: Env{Now: time.Now}}, &Cluster{Kube: fake.NewClientset(objects...)}
	if s, err := f.Agent(t.Context(), k); err != nil || s.Namespace != annotations.DefaultNamespace || !s.Absent {
		t.Errorf("it says %q of namespace %q, %v", s.Missing, s.Namespace, err)
	}
	if got := k.OtherAgents(t.Context(), annotations.DefaultNamespace); !slices.Equal(got, []string{"ops"}) {
		t.Errorf("others are in %v", got)
	}
}

// One minute of beats, one of silence, one in which nothing can be read, and beats again.
func TestWhoFollowsTheAgentHearsThatItFallsSilentAndIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		minute := func() int { return int(time.Since(begun) / time.Minute) }
		kube, reads := fake.NewClientset(), atomic.Int32{}
		kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			reads.Add(1)
			at := time.Now().Truncate(5 * time.Second)
			switch minute() {
			case 1:
				at = begun.Add(time.Minute)
			case 2:
				return true, nil, errors.New("no connection")
			}
			return true, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.HeartbeatName},
				Data:       map[string]string{"version": "v0.1.0", "heartbeat": at.UTC().Format(time.RFC3339)},
			}, nil
		})
		changed := make(chan struct{}, 1)
		a := (&Factory{Env: Env{Now: time.Now}}).FollowAgent(t.Context(), &Cluster{Kube: kube}, changed)
		if s, err := a.State(); err != nil || s.Missing != "" || s.Version != "v0.1.0" {
			t.Fatalf("at first: %+v, %v", s, err)
		}
		time.Sleep(59 * time.Second)
		if n := reads.Load(); n > 4 {
			t.Errorf("the heartbeat was read %d times in a minute in which all was well", n)
		}
		<-changed
		if s, _ := a.State(); s.Missing == "" || time.Since(begun) < 90*time.Second || time.Since(begun) > 95*time.Second {
			t.Errorf("after %s it says %q", time.Since(begun), s.Missing)
		}
		<-changed
		if s, err := a.State(); err != nil || s.Missing != "" || minute() != 3 {
			t.Errorf("after %s it says %q, %v", time.Since(begun), s.Missing, err)
		}
	})
}

// Whether an agent runs is known again soon after one request that was lost, and who shows it is told.
func TestOneLostRequestIsNoSilentAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube, reads := fake.NewClientset(), atomic.Int32{}
		kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			if reads.Add(1) == 1 {
				return true, nil, errors.New("connection reset by peer")
			}
			return true, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.HeartbeatName},
				Data:       map[string]string{"version": "v0.1.0", "heartbeat": time.Now().UTC().Format(time.RFC3339)},
			}, nil
		})
		begun, changed := time.Now(), make(chan struct{}, 1)
		a := (&Factory{Env: Env{Now: time.Now}}).FollowAgent(t.Context(), &Cluster{Kube: kube}, changed)
		if _, err := a.State(); !errors.Is(err, errUnknownAgent) {
			t.Fatalf("after the lost request: %v", err)
		}
		<-changed
		if s, err := a.State(); err != nil || s.Version != "v0.1.0" || time.Since(begun) > 6*time.Second {
			t.Errorf("after %s: %+v, %v", time.Since(begun), s, err)
		}
	})
}

// Who may not read the heartbeat does not ask for it every few seconds.
func TestAHeartbeatThatMayNotBeReadIsSeldomAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube, reads := fake.NewClientset(), atomic.Int32{}
		kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			reads.Add(1)
			return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), annotations.HeartbeatName, nil)
		})
		a := (&Factory{Env: Env{Now: time.Now}}).FollowAgent(t.Context(), &Cluster{Kube: kube}, make(chan struct{}, 1))
		time.Sleep(59 * time.Second)
		if _, err := a.State(); err == nil || reads.Load() > 2 {
			t.Errorf("read %d times in a minute, %v", reads.Load(), err)
		}
	})
}

// The API server is away for 40 seconds from the 20th on. What the heartbeat says then is old,
// and no word on the agent.
func TestAnAgentIsNotSilentWhileNobodyCouldWrite(t *testing.T) {
	for name, alive := range map[string]bool{"the agent lives": true, "the agent died meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, clock := time.Now(), &serverstate.State{}
				server := clock.RoundTripper(serverstate.RoundTripFunc(func(*http.Request) (*http.Response, error) {
					if at := time.Since(begun); at >= 20*time.Second && at < time.Minute {
						return nil, errors.New("connection refused")
					}
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}}, nil
				}))
				kube := fake.NewClientset()
				kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
					if _, err := server.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil)); err != nil { //nolint:bodyclose // there is none
						return true, nil, err
					}
					beat := time.Now()
					if at := beat.Sub(begun); at >= 20*time.Second && (!alive || at < 70*time.Second) {
						beat = begun.Add(19 * time.Second)
					}
					return true, &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.HeartbeatName},
						Data:       map[string]string{"version": "v0.1.0", "heartbeat": beat.UTC().Format(time.RFC3339)},
					}, nil
				})
				a := (&Factory{Env: Env{Now: time.Now}}).FollowAgent(t.Context(), &Cluster{Kube: kube, clock: clock}, make(chan struct{}, 1))
				var silent time.Duration
				for time.Since(begun) < 2*time.Minute {
					time.Sleep(time.Second)
					if s, _ := a.State(); s.Missing != "" && silent == 0 {
						silent = time.Since(begun).Round(time.Second)
					}
				}
				switch {
				case alive && silent != 0:
					t.Errorf("called silent after %s", silent)
				case !alive && (silent < 90*time.Second || silent > 100*time.Second):
					t.Errorf("called silent after %s; its API server was back after 60 s", silent)
				}
			})
		})
	}
}

// A request that is lost is no outage; one of ten seconds is told once, and its end too.
func TestWhoWaitsIsToldThatTheAPIServerDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, clock := time.Now(), &serverstate.State{}
		server := clock.RoundTripper(serverstate.RoundTripFunc(func(*http.Request) (*http.Response, error) {
			switch second := int(time.Since(begun) / time.Second); {
			case second == 2:
				return nil, errors.New("connection reset by peer")
			case second >= 10 && second < 15:
				return nil, errors.New("connection refused")
			case second >= 15 && second < 20: // the proxy before it is there already
				return &http.Response{StatusCode: http.StatusServiceUnavailable}, nil
			}
			return &http.Response{StatusCode: http.StatusOK}, nil
		}))
		var said bytes.Buffer
		f := &Factory{Env: Env{Now: time.Now, Zone: "Europe/Berlin", IOStreams: genericiooptions.IOStreams{ErrOut: &said}}}
		a := f.WatchAgent(&Cluster{Kube: fake.NewClientset(beatOf(begun)), clock: clock})
		for range 25 {
			_, _ = server.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil)) //nolint:bodyclose // there is none
			if err := a.Check(t.Context(), "it goes on"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		at := func(second int) string {
			return instant.Local(begun.Add(time.Duration(second)*time.Second), "Europe/Berlin")
		}
		want := "warning: since " + at(10) + " the API server does not answer, and what is shown may be old: connection refused\n" +
			"warning: the API server answers again (" + at(20) + ")\n"
		if said.String() != want {
			t.Errorf("said:\n%swant:\n%s", said.String(), want)
		}
	})
}

// beatOf is the heartbeat of an agent that was seen at a time.
func beatOf(at time.Time) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.HeartbeatName},
		Data:       map[string]string{"version": "v0.1.0", "heartbeat": at.UTC().Format(time.RFC3339)},
	}
}

// A dead agent's Lease tells before its silence would, however wrong its clock is; one that misses
// beats and renews its Lease lives.
func TestALeaseThatNobodyRenewsTellsThatTheAgentIsDead(t *testing.T) {
	for name, c := range map[string]struct {
		clock           time.Duration // of the agent, ahead of ours
		beats           time.Duration // until when there are beats
		renews          time.Duration // until when its Lease is renewed
		holder          string        // of the Lease after that; empty: it was given back
		soonest, latest time.Duration // it is told between; zero: it is not
	}{
		"it dies":                               {beats: 33 * time.Second, renews: 33 * time.Second, holder: "one", soonest: 45 * time.Second, latest: 63 * time.Second},
		"it dies, and its clock is ahead":       {clock: time.Minute, beats: 33 * time.Second, renews: 33 * time.Second, holder: "one", soonest: 45 * time.Second, latest: 63 * time.Second},
		"it dies, and its clock is behind":      {clock: -20 * time.Second, beats: 33 * time.Second, renews: 33 * time.Second, holder: "one", soonest: 38 * time.Second, latest: 63 * time.Second},
		"it ends, and gives its Lease back":     {beats: 33 * time.Second, renews: 33 * time.Second, soonest: 45 * time.Second, latest: 63 * time.Second},
		"its clock is behind, and it lives":     {clock: -20 * time.Second, beats: time.Hour, renews: time.Hour, holder: "one"},
		"its clock is ahead, and it lives":      {clock: time.Minute, beats: time.Hour, renews: time.Hour, holder: "one"},
		"it misses beats, and renews its Lease": {beats: 33 * time.Second, renews: time.Hour, holder: "one", soonest: 60 * time.Second, latest: 66 * time.Second},
		"another has its Lease":                 {beats: 33 * time.Second, renews: 33 * time.Second, holder: "two", soonest: 60 * time.Second, latest: 66 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				until := func(d time.Duration) time.Time { // what it wrote last, by its clock
					return begun.Add(min(time.Since(begun), d)).Add(c.clock)
				}
				kube := fake.NewClientset()
				kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.HeartbeatName},
						Data:       map[string]string{"version": "v0.1.0", "identity": "one", "heartbeat": until(c.beats).Truncate(5 * time.Second).UTC().Format(time.RFC3339)},
					}, nil
				})
				kube.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
					holder := "one"
					if time.Since(begun) > c.renews {
						holder = c.holder
					}
					renewed := metav1.NewMicroTime(until(c.renews))
					return true, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed}}, nil
				})
				changed := make(chan struct{}, 1)
				a := (&Factory{Env: Env{Now: time.Now}}).FollowAgent(t.Context(), &Cluster{Kube: kube}, changed)
				if s, err := a.State(); err != nil || s.Missing != "" {
					t.Fatalf("at first: %+v, %v", s, err)
				}
				late := time.After(3 * time.Minute)
				select {
				case <-changed:
					s, err := a.State()
					if took := time.Since(begun); err != nil || s.Missing == "" || took < c.soonest || took > c.latest {
						t.Errorf("after %s: %q, %v", took, s.Missing, err)
					}
				case <-late:
					if c.latest != 0 {
						t.Error("it is not told")
					}
				}
			})
		})
	}
}
