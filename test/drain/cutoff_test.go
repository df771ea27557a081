package drain_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// cutOff leaves a pod as an eviction leaves it that ends between the API server's
// two writes: counted by its budget, and not deleted.
func (w *world) cutOff(t *testing.T, budget, pod string) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		b, err := w.kube.PolicyV1().PodDisruptionBudgets(w.ns).Get(t.Context(), budget, metav1.GetOptions{})
		if err != nil {
			return err
		}
		b.Status.DisruptionsAllowed--
		b.Status.DisruptedPods = map[string]metav1.Time{pod: metav1.Now()}
		_, err = w.kube.PolicyV1().PodDisruptionBudgets(w.ns).UpdateStatus(t.Context(), b, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// half is a world whose node has three pods under a budget of one, of which the
// first was about to be evicted.
func half(t *testing.T) (*world, []corev1.Pod) {
	t.Helper()
	w := crowded(t, 3)
	pods := w.running(t, "web", 3)
	w.cutOff(t, "web", pods[0].Name)
	return w, pods
}

func TestAnEvictionThatWasCutOffIsFinished(t *testing.T) {
	w, _ := half(t)
	o := w.observe(t)
	d := w.drainer(t, w.client(t, nil))
	st := d.until(t, w.nodes[0], drain.Options{}, "drained", ended)
	if took := time.Since(d.since); took > time.Minute || took < 4*time.Second || st.Outcome.Evicted != 3 || st.Outcome.Forced != 0 {
		t.Errorf("after %s: %+v", took, st.Outcome)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.least["web"] < 2 {
		t.Errorf("%d healthy at one time", o.least["web"])
	}
}

func TestAnEvictionThatWasCutOffIsWaitedForByWhoMayNotDelete(t *testing.T) {
	w, pods := half(t)
	broken := &wire{}
	kube := w.client(t, broken.wrap)
	broken.fault = func(r *http.Request, _ string, _ int, send func() (*http.Response, error)) (*http.Response, error) {
		if r.Method == http.MethodDelete {
			resp := status(http.StatusForbidden, "")
			resp.Request = r
			return resp, nil
		}
		return send()
	}
	d := w.drainer(t, kube)
	st := d.until(t, w.nodes[0], drain.Options{Timeout: seconds(0)}, "explained", func(st executors.DrainStatus) bool {
		return blocked(st) && strings.Contains(fmt.Sprint(st.Blocks), "the eviction of "+pods[0].Name+" was cut off")
	})
	if st.Reason == executors.DrainForbidden || st.Blocks[0].Permanent {
		t.Errorf("%+v", st)
	}
	// The disruption controller forgets it in time; here somebody helps it.
	b, err := w.kube.PolicyV1().PodDisruptionBudgets(w.ns).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.Status.DisruptedPods = nil
	b.Status.DisruptionsAllowed = 1
	if _, err := w.kube.PolicyV1().PodDisruptionBudgets(w.ns).UpdateStatus(t.Context(), b, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if st := d.until(t, w.nodes[0], drain.Options{Timeout: seconds(0)}, "drained", ended); st.Outcome.Evicted != 3 {
		t.Errorf("%+v", st.Outcome)
	}
}

// A drain that is stopped breaks off no eviction: its answer comes, and the budget
// counts no pod that stays.
func TestAStoppedDrainLetsItsRequestsEnd(t *testing.T) {
	w := crowded(t, 2)
	broken, under, stopped, answered := &wire{}, make(chan struct{}), make(chan struct{}), make(chan error, 9)
	kube := w.client(t, broken.wrap)
	broken.fault = func(r *http.Request, _ string, _ int, send func() (*http.Response, error)) (*http.Response, error) {
		close(under)
		<-stopped
		time.Sleep(300 * time.Millisecond) // it takes its time
		resp, err := send()
		answered <- r.Context().Err()
		return resp, err
	}
	d := w.drainer(t, kube)
	d.Ensure(t.Context(), d.order(w.nodes[0], drain.Options{}))
	<-under
	d.Stop(w.nodes[0], "test")
	begun := time.Now()
	close(stopped)
	d.AwaitRequests()
	if err := <-answered; err != nil || time.Since(begun) < 200*time.Millisecond {
		t.Errorf("the request ended with %v, and it was waited for %s", err, time.Since(begun))
	}
	eventually(t, "one pod has left, and the budget counts none that stays", func(ctx context.Context) bool {
		b, err := w.kube.PolicyV1().PodDisruptionBudgets(w.ns).Get(ctx, "web", metav1.GetOptions{})
		return err == nil && len(b.Status.DisruptedPods) == 0 && b.Status.DisruptionsAllowed == 1 && len(w.on(t, w.nodes[0])) == 1
	})
}
