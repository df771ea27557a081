package hibernation

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// skewed has the API server's clock be ahead of the agent's, or behind.
func (w *world) skewed(by time.Duration) { w.skew.Store(int64(by)) }

func (w *world) doubts(want bool) {
	w.Helper()
	if got := w.said(annotations.StatusConditions); strings.Contains(got, `"ClockDoubt","status":"True"`) != want {
		w.Errorf("at %s its conditions are %s", time.Now().UTC().Format("15:04"), got)
	}
}

// unread has somebody write a plan that cannot be read.
func (w *world) unread() {
	w.api.Edit("configmaps", shop, "nights", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "spec: {}", "data", annotations.DataPlan)
	})
}

// While the clock is in doubt no sleep begins, whichever clock is right, and no slot ends.
// Once it is corrected the level decides.
func TestNoSleepBeginsWhileTheClockIsInDoubt(t *testing.T) {
	for name, by := range map[string]time.Duration{"the agent is behind": 10 * time.Minute, "the agent is ahead": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.skewed(by)
				w.until("01:30")
				w.awake()
				w.is("Active: does not fall asleep: the clocks are apart")
				w.doubts(true)
				w.skewed(0)
				w.until("01:32")
				w.sleeps()
				w.doubts(false)
				w.until("03:01")
				w.awake()
				w.closed()
			})
		})
	}
}

// What sleeps wakes when either clock says so.
func TestDoubtAboutTheClockKeepsNothingAsleep(t *testing.T) {
	for name, c := range map[string]struct {
		spec   string
		asleep string // until then, by the agent's clock
		awake  string
		by     time.Duration
		edit   func(w *world)
	}{
		"the agent is behind":            {oneToThree + apps, "02:49", "02:52", 10 * time.Minute, nil},
		"the agent is ahead":             {oneToThree + apps, "02:59", "03:01", -10 * time.Minute, nil},
		"an exception has expired there": {"schedule: {offHours: [{start: \"01:00\", end: \"01:30\"}]}\nexceptions: [{type: extend, validFrom: 2000-01-01T00:00:00Z, validUntil: 2000-01-01T02:40:00Z, offHours: [{start: \"01:00\", end: \"05:00\"}]}]\n" + apps, "02:29", "02:32", 10 * time.Minute, nil},
		"a hold has ended there": {"schedule: {offHours: [{start: \"01:00\", end: \"01:30\"}]}\n" + apps, "02:39", "02:42", 20 * time.Minute, func(w *world) {
			w.says(annotations.HoldUntil, "2000-01-01T03:00:00Z")
			w.says(annotations.HoldState, "asleep")
		}},
		"and of a plan that cannot be read then": {oneToThree + apps, "02:49", "02:52", 10 * time.Minute, func(w *world) { w.unread() }},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, c.spec, func(w *world) {
				w.until("01:10")
				w.sleeps()
				if c.edit != nil {
					c.edit(w)
				}
				w.skewed(c.by)
				w.until(c.asleep)
				w.sleeps()
				w.until(c.awake)
				w.awake()
			})
		})
	}
}

// A sleep that ends in doubt is in the ledger with what slept, and no off-window is passed by
// a clock that jumps.
func TestAClockThatJumpsPassesNoSlots(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:10")
		w.skewed(-24 * time.Hour)
		w.until("03:10")
		w.awake()
		w.closed()
		w.until("27:30") // the agent's clock has a night that has not come yet
		w.awake()
		l, err := w.agent.Stores.Ledgers.Get(w.Context(), types.NamespacedName{Namespace: shop, Name: "nights"}, string(w.api.ConfigMap(shop, "nights").UID))
		if err != nil || l == nil || len(l.Recent) != 1 || len(l.Recent[0].Slept) != 1 {
			t.Errorf("%v: the ledger has %+v", err, l)
		}
	})
}

// A pause that a clock far ahead has written keeps nothing asleep once the clock is right.
func TestAPauseOfAWrongClockIsNotBelieved(t *testing.T) {
	now := time.Date(2026, 3, 4, 6, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		until time.Time
		waits bool
	}{"soon": {now.Add(time.Minute), true}, "over": {now, false}, "in a day": {now.Add(24 * time.Hour), false}} {
		if got := (hibernate.Record{NotBefore: &c.until}).Waits(now); got != c.waits {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A clock that is behind by less than what leaves it in doubt says all of a new plan before that was
// made: it is the plan's own all the same, and is not said anew in each look.
func TestAPlanThatIsMadeByAClockAheadIsWrittenOnce(t *testing.T) {
	for _, ahead := range []time.Duration{time.Second, time.Minute, 4 * time.Minute} {
		t.Run(ahead.String(), func(t *testing.T) {
			play(t, func(w *world) {
				w.skewed(ahead)
				w.begins()
				cm := annotations.NewHibernatePlan(shop, "nights", planText(oneToThree+apps), "")
				cm.CreationTimestamp = metav1.NewTime(time.Now().Add(ahead).UTC().Truncate(time.Second))
				w.api.Put(cm)
				w.after(10 * time.Second)
				w.is("Active: awake")
				was := w.said(annotations.StatusConditions)
				w.api.ClearLog()
				w.after(20 * time.Second)
				w.says(annotations.HoldState, "awake")
				if is := w.said(annotations.StatusConditions); is[:strings.Index(is, "Ready")] != was[:strings.Index(was, "Ready")] {
					t.Errorf("the conditions are %s, and were %s", is, was)
				}
				if wrote := w.api.Log(); len(wrote) > 3 {
					t.Errorf("the agent wrote %q", wrote)
				}
			})
		})
	}
}
