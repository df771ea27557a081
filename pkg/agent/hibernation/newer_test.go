package hibernation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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

// newerLedger has the plan's ledger be of a newer version.
func (w *world) newerLedger() (mend func()) {
	w.Helper()
	return w.newer(annotations.LedgerName("nights", string(w.api.ConfigMap(shop, "nights").UID)))
}

// What slept stays recorded until the ledger can hold it, and nothing falls asleep anew.
func TestWhatSleptIsRecordedOnceThePlansLedgerCanBeReadAgain(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		w.sleeps()
		mend := w.newerLedger()
		w.until("02:30")
		w.sleeps()
		w.is("Hibernated: 1 of 1 targets sleep; its ledger cannot be read")
		for _, clock := range []string{"03:30", "25:30", "27:30"} {
			w.until(clock)
			w.awake()
			w.is("Invalid: its ledger cannot be read")
		}
		mend()
		w.until("27:40")
		w.awake()
		w.closed()
		w.ledger("1 01:00 Ran since 1 01:00", "2 01:00 Missed catch-up")
		l, err := w.agent.Stores.Ledgers.Get(w.Context(), types.NamespacedName{Namespace: shop, Name: "nights"}, string(w.api.ConfigMap(shop, "nights").UID))
		if err != nil || len(l.Recent[0].Slept) != 1 || int(l.Recent[0].Slept[0].Hours+0.5) != 4 || l.Recent[0].EndedAt.Format("15:04") != "03:00" {
			t.Errorf("%v: it says %+v", err, l)
		}
	})
}

// What people hold and the schedule still count where only the ledger, or the plan, cannot be read.
func TestWhatSomebodyHoldsAsleepSleepsOnThoughSomethingCannotBeRead(t *testing.T) {
	for name, happens := range map[string]func(w *world){
		"the ledger is newer":     func(w *world) { w.newerLedger() },
		"the plan cannot be read": func(w *world) { w.unread() },
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.says(annotations.HoldState, "asleep")
				w.after(time.Minute)
				w.sleeps()
				happens(w)
				w.until("05:00")
				w.sleeps()
				if got := w.phase(); strings.Contains(got, "plan cannot be read") && name == "the ledger is newer" {
					t.Errorf("it says %q", got)
				}
				w.says(annotations.HoldState, "")
				w.after(time.Minute)
				w.awake()
			})
		})
	}
}

// A hold that ends before the night does, and one that begins in it, keep the night's end.
func TestAHoldOfAPlanThatCannotBeReadKeepsItsEnd(t *testing.T) {
	for name, c := range map[string]struct{ until, released, asleep, wakes, awake string }{
		"before the night's":     {"2000-01-01T02:00:00Z", "", "02:30", "2000-01-01T03:00:00Z", "03:10"},
		"after the night's":      {"2000-01-01T04:00:00Z", "", "03:30", "2000-01-01T04:00:00Z", "04:10"},
		"until it is taken away": {"", "02:00", "02:30", "2000-01-01T03:00:00Z", "03:10"},
		"and taken away before":  {"2000-01-01T04:00:00Z", "02:00", "02:30", "2000-01-01T03:00:00Z", "03:10"},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.until("01:30")
				w.unread()
				w.says(annotations.HoldUntil, c.until)
				w.says(annotations.HoldState, "asleep")
				if c.released != "" {
					w.until(c.released)
					w.says(annotations.HoldState, "")
					w.says(annotations.HoldUntil, "")
				}
				w.until(c.asleep)
				w.sleeps()
				if got := w.said(annotations.StatusWakes); got != c.wakes {
					t.Errorf("it is to wake at %q, want %q", got, c.wakes)
				}
				w.until(c.awake)
				w.awake()
				w.closed()
			})
		})
	}
}
