package admission_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// behind is a town whose agent sees the API server through something, with its own rights.
func behind(t *testing.T, what func(own *rest.Config, kubeconfig string) (func(), error)) *town {
	t.Helper()
	if err := world.build(); err != nil {
		t.Fatal(err)
	}
	w := &town{lab: newLab(t)}
	own, err := world.cluster.ServiceAccountConfig(w.ctx, annotations.DefaultNamespace, annotations.AgentName)
	w.must(err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	stop, err := what(own, path)
	w.must(err)
	t.Cleanup(stop)
	w.agent, err = harness.StartAgent(world.agent, path)
	w.must(err)
	t.Cleanup(func() { _ = w.agent.Stop() })
	w.must(harness.Runner(w.ctx, world.admin, w.ns, rule("", "configmaps", nil, "get", "list", "watch", "patch")))
	return w
}

// configured waits until the agent's configuration has a condition that says something, or
// none of its type.
func (w *town) configured(kind, says string) {
	w.Helper()
	w.until("the configuration says of "+kind+": "+says, func() error {
		cm, err := world.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(w.ctx, annotations.AgentConfigName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		have := cm.Annotations[annotations.StatusConditions]
		if says == "" && strings.Contains(have, "\"Valid\"") && !strings.Contains(have, kind) || says != "" && strings.Contains(have, kind) && strings.Contains(have, says) {
			return nil
		}
		return fmt.Errorf("%q", have)
	})
}

func (w *town) ready() int {
	w.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, "http://"+w.agent.Address()+"/readyz", nil)
	w.must(err)
	resp, err := http.DefaultClient.Do(req)
	w.must(err)
	w.must(resp.Body.Close())
	return resp.StatusCode
}

// A clock that is ten minutes behind is said on the configuration and on plans; nothing starts,
// and goes on when it is right again.
func TestAClockThatIsBehindIsSaidAndHoldsRunsUp(t *testing.T) {
	var ahead atomic.Int64
	w := behind(t, func(own *rest.Config, path string) (func(), error) {
		return harness.OtherClock(own, path, func() time.Duration { return time.Duration(ahead.Load()) })
	})
	maps := world.admin.CoreV1().ConfigMaps(w.ns)
	_, err := maps.Create(w.ctx, plain("app"), metav1.CreateOptions{})
	w.must(err)
	_, err = maps.Create(w.ctx, annotations.NewPlan(w.ns, "orders", quickText, ""), metav1.CreateOptions{})
	w.must(err)
	w.takesUp()
	ahead.Store(int64(10 * time.Minute))
	w.configured("ClockDoubt", "nothing starts until that is corrected")
	if code := w.ready(); code != http.StatusOK { // what sleeps wakes all the same
		t.Errorf("the agent is not ready: %d", code)
	}
	_, err = maps.Patch(w.ctx, "orders", types.MergePatchType, []byte(annotationPatch([]string{annotations.Trigger, "t"})), metav1.PatchOptions{})
	w.must(err)
	w.until("the plan says so, too", func() error {
		if have := w.get("orders").Annotations[annotations.StatusConditions]; !strings.Contains(have, "ClockDoubt") {
			return fmt.Errorf("%q", have)
		}
		return nil
	})
	if runs := w.runs(); len(runs) > 0 {
		t.Errorf("it runs: %v", runs)
	}
	ahead.Store(0)
	w.configured("ClockDoubt", "")
	w.ends(w.new(nil), run.Succeeded)
}

// On an API server without admission policies an agent works, and says what is missing.
func TestAnAgentWithoutAdmissionPoliciesSaysSo(t *testing.T) {
	w := behind(t, harness.Older)
	w.configured("TokenConfined", "Kubernetes 1.30")
	if code := w.ready(); code != http.StatusOK {
		t.Errorf("the agent is not ready: %d", code)
	}
	w.until("its heartbeat says that actors are unverified", func() error {
		beat, err := world.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(w.ctx, annotations.HeartbeatName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := beat.Data[annotations.HeartbeatActors]; got != annotations.ActorsUnverified {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
}
