package agent_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// A tenant fills a namespace with the largest documents and runs that the API server
// takes. An agent that starts then reads them all, within its memory, and works for
// others.
func TestTheLargestObjectsOfATenantFillNoAgent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("an agent's memory is read from /proc")
	}
	x := newCrashes(t)
	x.prepare("theirs")
	kinds := []string{annotations.KindPlan, annotations.KindPolicy, annotations.KindRun, annotations.KindGate}
	for i := range 200 {
		kind := kinds[i%len(kinds)]
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("large-%d", i), Labels: map[string]string{annotations.LabelKind: kind, annotations.LabelPhase: "Running"}},
			Data:       map[string]string{annotations.DataPlan: "spec: |\n" + strings.Repeat("  steps and steps\n", 50_000)},
		}
		if kind == annotations.KindPolicy {
			cm.Data = map[string]string{annotations.DataPolicy: cm.Data[annotations.DataPlan]}
		}
		if _, err := x.admin.CoreV1().ConfigMaps("theirs").Create(x.ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOMEMLIMIT", "230MiB") // nine tenths of the manifest's limit, as the agent sets it itself
	began := time.Now()
	p := x.direct()
	defer p.Kill()
	peak, done := int64(0), make(chan struct{})
	go func() {
		defer close(done)
		x.goesOn("theirs")
	}()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-time.After(20 * time.Millisecond):
		}
		peak = max(peak, memory(t, p))
	}
	t.Logf("after %s another tenant's plan had run; the agent had %d MiB of its own at most", time.Since(began).Round(time.Second), peak>>20)
	if peak > 256<<20 {
		t.Errorf("it had %d MiB", peak>>20)
	}
}
