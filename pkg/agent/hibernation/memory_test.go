package hibernation

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// densePlan is a plan of some 39 KB in which each two bytes are a value.
func densePlan(i int) *corev1.ConfigMap {
	text := "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  schedule:\n    timezone: UTC\n    offHours:\n    - {start: \"20:00\", end: \"06:00\", daysOfWeek: [MON]}\n" +
		"  targets:\n  - name: fn\n    type: function\n    parameters: {endpoint: 'fn.shop:9443', input: {a: [0" + strings.Repeat(",0", 19_000) + "]}}\n"
	cm := annotations.NewHibernatePlan(shop, fmt.Sprintf("dense-%d", i), text, "")
	cm.UID = types.UID(cm.Name)
	return cm
}

// Plans that are small and hold many values take tens of times their bytes as they are read:
// what is kept of many of them follows their texts.
func TestManyDensePlansTakeTheMemoryOfTheirTexts(t *testing.T) {
	_, accounts := agenttest.New(t).Connect()
	c := New(Config{Accounts: accounts})
	plans := make([]*corev1.ConfigMap, 150)
	for i := range plans {
		plans[i] = densePlan(i)
	}
	before := heap()
	for _, cm := range plans {
		if known := c.known(keyOf(cm), cm); len(known.faults) > 0 {
			t.Fatal(known.faults)
		}
	}
	grown := heap() - before
	t.Logf("150 plans of %d KB take %d MB as they are kept", len(plans[0].Data[annotations.DataPlan])>>10, grown>>20)
	if grown > 2*maxParsedWeight {
		t.Errorf("they take %d MB", grown>>20)
	}
	runtime.KeepAlive(plans)
	runtime.KeepAlive(c)
}

// heap is what lives in memory.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far below
}
