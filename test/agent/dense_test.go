package agent_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// denseList is a list of so many bytes, in which each two are a value.
func denseList(bytes int) string { return "[0" + strings.Repeat(",0", bytes/2) + "]" }

// Documents that are small and hold many values take tens of times their bytes as they are
// understood. Many of them together leave the agent within its memory.
func TestManyDenseHibernatePlansFillNoAgent(t *testing.T) {
	const plans = 150
	x := newCrashes(t)
	x.prepare("theirs")
	for i := range plans {
		text := "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  schedule:\n    timezone: UTC\n    offHours:\n    - {start: \"20:00\", end: \"06:00\", daysOfWeek: [MON, TUE]}\n" +
			"  targets:\n  - name: fn\n    type: function\n    parameters: {endpoint: 'fn.theirs:9443', input: {a: " + denseList(38_000) + "}}\n"
		cm := annotations.NewHibernatePlan("theirs", fmt.Sprintf("dense-%d", i), text, "")
		if _, err := x.admin.CoreV1().ConfigMaps("theirs").Create(x.ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	x.staysSmall("the plans are looked at", func() (bool, string) {
		all, err := x.admin.CoreV1().ConfigMaps("theirs").List(x.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindHibernatePlan})
		if err != nil {
			return false, err.Error()
		}
		phases := map[string]int{}
		for _, cm := range all.Items {
			phases[cm.Annotations[annotations.StatusPhase]]++
		}
		return phases[""] == 0 && len(all.Items) == plans, fmt.Sprint(phases, all.Items[0].Annotations)
	})
}

// staysSmall fails if an agent comes near its limit before something holds, and in the half
// minute after it.
func (x *crashes) staysSmall(what string, holds func() (bool, string)) {
	x.t.Helper()
	if runtime.GOOS != "linux" {
		x.t.Skip("an agent's memory is read from /proc")
	}
	x.t.Setenv("GOMEMLIMIT", "230MiB") // nine tenths of the manifest's limit, as the agent sets it itself
	began := time.Now()
	p := x.direct()
	defer p.Kill()
	peak, rests, done := int64(0), int64(0), make(chan struct{})
	go func() {
		defer close(done)
		eventually(x.t, x.ctx, what, holds)
		began = time.Now()
		time.Sleep(30 * time.Second)
	}()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-time.After(20 * time.Millisecond):
		}
		rests = memory(x.t, p)
		peak = max(peak, rests)
	}
	x.t.Logf("%s; the agent had %d MiB of its own at most, and has %d MiB half a minute later (%s)", what, peak>>20, rests>>20, time.Since(began).Round(time.Second))
	if peak > 200<<20 {
		x.t.Errorf("it had %d MiB", peak>>20)
	}
}
