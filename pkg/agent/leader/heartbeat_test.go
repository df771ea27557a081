package leader

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// Without an election no lease tells of a restored backup: the heartbeat's own version does.
func TestAHeartbeatNoticesAStateThatWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		var version atomic.Int64
		version.Store(100)
		answers := func(action clienttesting.Action) (bool, runtime.Object, error) {
			cm := action.(clienttesting.CreateAction).GetObject().(*corev1.ConfigMap).DeepCopy()
			cm.ResourceVersion = strconv.FormatInt(version.Add(1), 10)
			return true, cm, nil
		}
		kube.PrependReactor("create", "configmaps", answers)
		kube.PrependReactor("update", "configmaps", answers)
		told := make(chan [2]uint64, 10)
		ctx, cancel := context.WithCancel(t.Context())
		go Heartbeat{
			Kube: kube, Namespace: "maint-system", Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Rewound: func(was, is uint64) { told <- [2]uint64{was, is} },
		}.Run(ctx)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(told) > 0 {
			t.Errorf("it tells %v of a state that goes on", <-told)
		}
		was := version.Swap(50)
		time.Sleep(heartbeatInterval)
		synctest.Wait()
		if len(told) != 1 {
			t.Fatalf("it tells %d times", len(told))
		}
		if got := <-told; got != [2]uint64{uint64(was), 51} { //nolint:gosec // a small number
			t.Errorf("it tells %v", got)
		}
		cancel()
		synctest.Wait()
	})
}

// Whether false actors are refused is said once it is known; until then what the agent before
// this one knew stands there.
func TestAHeartbeatSaysWhetherActorsAreTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		var knows atomic.Value
		knows.Store("")
		beat := Heartbeat{Kube: kube, Namespace: "maint-system", Now: time.Now, Log: slog.New(slog.DiscardHandler), Actors: func() string { return knows.Load().(string) }}
		says := func(want string, there bool) {
			t.Helper()
			synctest.Wait()
			cm, err := kube.CoreV1().ConfigMaps("maint-system").Get(t.Context(), annotations.HeartbeatName, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, is := cm.Data[annotations.HeartbeatActors]; got != want || is != there {
				t.Errorf("it says %q (%t), want %q (%t)", got, is, want, there)
			}
		}
		lead := func() (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			go beat.Run(ctx)
			return cancel
		}
		stop := lead()
		says("", false)
		knows.Store(annotations.ActorsVerified)
		time.Sleep(heartbeatInterval)
		says(annotations.ActorsVerified, true)
		stop()
		knows.Store("")
		stop = lead()
		time.Sleep(2 * heartbeatInterval)
		says(annotations.ActorsVerified, true)
		knows.Store(annotations.ActorsUnverified)
		time.Sleep(heartbeatInterval)
		says(annotations.ActorsUnverified, true)
		stop()
		synctest.Wait()
	})
}

// An agent that has no configuration hears from the heartbeat of the one before whether there was one.
func TestAHeartbeatSaysHowTheConfigurationStands(t *testing.T) {
	kube := fake.NewClientset()
	var before []string
	is := annotations.ConfigurationPresent
	beat := Heartbeat{Kube: kube, Namespace: "maint-system", Now: time.Now, Log: slog.New(slog.DiscardHandler), Configuration: func(was string) string {
		before = append(before, was)
		return is
	}}
	for _, is = range []string{annotations.ConfigurationPresent, annotations.ConfigurationLost, ""} {
		cm, err := beat.write(t.Context(), nil)
		if said, there := cm.Data[annotations.HeartbeatConfiguration]; err != nil || said != is || there != (is != "") {
			t.Errorf("%q is said as %q: %v", is, said, err)
		}
	}
	if want := []string{"", annotations.ConfigurationPresent, annotations.ConfigurationLost}; !slices.Equal(before, want) {
		t.Errorf("it was asked with %q", before)
	}
}
