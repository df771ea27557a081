package hibernation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// lateWindow is a policy that permits change until 01:20.
func (w *world) lateWindow() {
	w.Helper()
	spec, faults := policy.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{start: '00:00', end: '01:20'}]}}\n"))
	if len(faults) > 0 {
		w.Fatal(faults)
	}
	w.agent.Stores.Gates.Change(func(b *policy.Resolver) { b.PutPolicy(policy.State{Namespace: shop, Name: "late", Spec: spec}) })
}

// TestWhatBeginsInASleepWaitsForItsPolicies: a sleep that is under way opens no other target to
// whoever may edit the plan.
func TestWhatBeginsInASleepWaitsForItsPolicies(t *testing.T) {
	const late = "policies: [{name: late}]\n"
	t.Run("a target that is added while it sleeps", func(t *testing.T) {
		night(t, oneToThree+apps+late, func(w *world) {
			w.lateWindow()
			w.deployment("store", "db", 1)
			w.until("01:10")
			w.has("orders 0, store 1, web 0")
			w.until("01:30")
			w.plan(oneToThree + appsAndDB + late)
			w.until("02:00")
			w.has("orders 0, store 1, web 0")
			w.until("03:10")
			w.has("orders 3, store 1, web 2")
		})
	})
	t.Run("a target that woke before the others", func(t *testing.T) {
		night(t, oneToThree+appsAndDB+late, func(w *world) {
			w.lateWindow()
			w.deployment("store", "db", 1)
			w.until("01:10")
			w.has("orders 0, store 0, web 0")
			w.beds.goes("wake orders", "no")
			w.says(annotations.HoldState, "awake")
			w.until("01:30")
			w.has("orders 0, store 1, web 2")
			w.says(annotations.HoldState, "asleep")
			w.until("02:00")
			w.has("orders 0, store 1, web 0")
			w.beds.goes("wake orders", "")
			w.until("03:10")
			w.has("orders 0, store 1, web 0")
			w.says(annotations.HoldState, "")
			w.until("03:20")
			w.has("orders 3, store 1, web 2")
		})
	})
}

// TestTargetsThatAreAddedWhileItSleepsHaveNoMoreRoomThanOthers: plans that begin with one target
// fill their namespace no further than those that have all of theirs from the start.
func TestTargetsThatAreAddedWhileItSleepsHaveNoMoreRoomThanOthers(t *testing.T) {
	short := longPlan()[:strings.Index(longPlan(), "targets:\n")] + "targets:\n- {name: t0, type: noop}\n"
	night(t, short, func(w *world) {
		const most = 256 << 10
		w.agent.records.most = most
		w.until("01:02")
		for i := range 9 {
			cm := w.api.ConfigMap(shop, "nights").DeepCopy()
			cm.Name, cm.UID, cm.ResourceVersion, cm.Annotations = fmt.Sprintf("more-%d", i), "", "", nil
			w.api.Put(cm)
		}
		w.until("01:10")
		for i := range 9 {
			w.api.Put(annotations.NewHibernatePlan(shop, fmt.Sprintf("more-%d", i), planText(longPlan()), ""))
		}
		w.until("01:20")
		if held := restoreBytes(w); held < most/4 || held > most+64<<10 {
			t.Errorf("%d KiB of restore data stand there, of %d", held>>10, most>>10)
		}
		w.until("03:30")
		if left := restoreBytes(w); left != 0 {
			t.Errorf("%d bytes of restore data are left", left)
		}
	})
}
