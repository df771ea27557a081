//go:build !race

package hibernation

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
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
	c := New(Config{Clients: Clients{Accounts: accounts}})
	plans := make([]*corev1.ConfigMap, 150)
	for i := range plans {
		plans[i] = densePlan(i)
	}
	before := agenttest.Heap()
	for _, cm := range plans {
		if known := c.known(keyOf(cm), cm); len(known.faults) > 0 {
			t.Fatal(known.faults)
		}
	}
	grown := agenttest.Heap() - before
	t.Logf("150 plans of %d KB take %d MB as they are kept", len(plans[0].Data[annotations.DataPlan])>>10, grown>>20)
	if grown > 2*maxParsedWeight {
		t.Errorf("they take %d MB", grown>>20)
	}
	runtime.KeepAlive(plans)
	runtime.KeepAlive(c)
}

// What sleeps has the whole plan in the restore data of each target.
func TestRestoreDataOfManyDensePlansTakesTheMemoryOfItsTexts(t *testing.T) {
	r := newRecords(nil, agenttest.Keys())
	spec, faults := annotations.HibernatePlan(densePlan(0))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	objects := make([]*corev1.ConfigMap, 150)
	for i := range objects {
		spec.ServiceAccountName = fmt.Sprint("runner-", i) // each another plan
		objects[i] = denseRestore(t, i, spec)
	}
	before := agenttest.Heap()
	for _, cm := range objects {
		r.observe(cm)
	}
	asleep, grown := r.sleeping()["function"], agenttest.Heap()-before
	t.Logf("restore data of 150 plans takes %d MB beside its texts", grown>>20)
	if grown > 2*maxParsedWeight || asleep != len(objects) {
		t.Errorf("it takes %d MB, and %d sleep", grown>>20, asleep)
	}
	for _, cm := range objects {
		got := r.get(keyOf(cm))
		want, err := annotations.ReadRestore(cm)
		if err != nil || !reflect.DeepEqual(got.record, want) {
			t.Fatalf("what is read again is another: %v", err)
		}
	}
	runtime.KeepAlive(objects)
}

// denseRestore is what the target of a dense plan is put back from.
func denseRestore(t *testing.T, i int, spec hibernate.Spec) *corev1.ConfigMap {
	t.Helper()
	now := time.Unix(1000, 0).UTC()
	cm, err := annotations.RestoreObject(shop, hibernate.Record{
		Plan: fmt.Sprintf("dense-%d", i), PlanUID: "u", Cycle: "c", Target: "fn", Executor: "function", Operation: hibernate.Shutdown, State: hibernate.Asleep,
		Snapshot: hibernate.Snapshot{Spec: spec, BeganAt: now}, Resources: []hibernate.Resource{{ID: "fn", Before: []byte("{}"), CapturedAt: now, AsleepAt: &now}},
	})
	if err != nil {
		t.Fatal(err)
	}
	cm.ResourceVersion, cm.UID = "5", types.UID(cm.Name)
	return agenttest.Signed(t, cm)
}
