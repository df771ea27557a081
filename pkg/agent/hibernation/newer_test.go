package hibernation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// newer has an object be one of a newer version, and begins an agent of this one. What it
// returns fails unless the object is as it was, and makes it one of this version again.
func (w *world) newer(name string) (mend func()) {
	w.Helper()
	w.api.Rewrite(shop, name, func(cm *corev1.ConfigMap) { cm.Data[annotations.DataFormat] = "2" })
	was := w.api.ConfigMap(shop, name)
	w.begins()
	return func() {
		w.Helper()
		if diff := cmp.Diff(was, w.api.ConfigMap(shop, name)); diff != "" {
			w.Errorf("%s was written (-before +after):\n%s", name, diff)
		}
		w.api.Rewrite(shop, name, func(cm *corev1.ConfigMap) { delete(cm.Data, annotations.DataFormat) })
	}
}

// saysNewer fails unless the plan says in this phase that something is of a newer version.
func (w *world) saysNewer(phase, name string) {
	w.Helper()
	w.is(phase + ": ")
	if got := w.phase(); !strings.Contains(got, shop+"/"+name+" was written by a newer version") {
		w.Errorf("the plan says %q", got)
	}
}

func TestWhatSleepsStaysAsleepWhileItsRestoreDataIsOfANewerFormat(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		w.sleeps()
		name := annotations.RestoreName("nights", "apps")
		mend := w.newer(name)
		w.until("04:00")
		w.sleeps()
		w.saysNewer("Error", name)
		w.wantEvent("Warning ")
		mend()
		w.until("04:30")
		w.awake()
		w.closed()
	})
}

func TestNothingFallsAsleepByAPlanWhoseLedgerIsOfANewerFormat(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		name := annotations.LedgerName("nights", string(w.api.ConfigMap(shop, "nights").UID))
		mend := w.newer(name)
		w.until("01:30")
		w.awake()
		w.saysNewer("Invalid", name)
		w.wantEvent("Warning ")
		mend()
		w.until("01:40")
		w.sleeps()
	})
}

// What is put back when its time comes is known from the restore data alone.
func TestWhatSleepsWakesThoughThePlansLedgerIsOfANewerFormat(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		w.sleeps()
		mend := w.newer(annotations.LedgerName("nights", string(w.api.ConfigMap(shop, "nights").UID)))
		w.until("02:30")
		w.sleeps()
		w.until("03:30")
		w.awake()
		w.closed()
		mend()
	})
}
