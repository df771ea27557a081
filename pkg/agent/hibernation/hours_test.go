package hibernation

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// recorded are the hours that the plan's ledger says its resources slept.
func (w *world) recorded() float64 {
	w.Helper()
	l, err := w.agent.Stores.Ledgers.Get(w.Context(), types.NamespacedName{Namespace: shop, Name: "nights"}, string(w.api.ConfigMap(shop, "nights").UID))
	if err != nil || l == nil {
		w.Fatal(err, l)
	}
	hours := 0.0
	for _, e := range l.Recent {
		for _, s := range e.Slept {
			hours += s.Hours
		}
	}
	return hours
}

// slept fails unless so many hours are recorded, but for the seconds that the agent takes.
func (w *world) slept(want float64) {
	w.Helper()
	if got := w.recorded(); math.Abs(got-want) > 0.1 {
		w.Errorf("at %s the ledger says that they slept %.2f hours, want %.2f", time.Now().UTC().Format("2 15:04"), got, want)
	}
}

func ledgerOfNights(w *world) string {
	return annotations.LedgerName("nights", string(w.api.ConfigMap(shop, "nights").UID))
}

// A plan that cannot be read wakes at its time, and what slept is in its ledger.
func TestWhatSleptByAPlanThatCannotBeReadIsRecorded(t *testing.T) {
	for name, skew := range map[string]time.Duration{"": 0, ", with a clock in doubt": -10 * time.Minute} {
		t.Run("it cannot be read"+name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.until("01:30")
				w.unread()
				w.skewed(skew)
				w.until("03:10")
				w.awake()
				w.closed()
				w.slept(4)
			})
		})
	}
}

// Hours that could not be recorded are recorded later, once.
func TestNoHoursAreLostWithTheLedgersWrite(t *testing.T) {
	for name, happens := range map[string]func(w *world) (mend func()){
		"it is refused": func(w *world) func() {
			return w.api.Refuse(agenttest.When{Verb: "update", Name: ledgerOfNights(w)}, agenttest.Always, 403, "a policy")
		},
		"it cannot be read": func(w *world) func() {
			w.begins()
			w.after(time.Second)
			w.agent.Stores.Ledgers.Forget()
			return w.api.Refuse(agenttest.When{Verb: "get", Name: ledgerOfNights(w)}, agenttest.Always, 403, "a policy")
		},
		"its reply is lost": func(w *world) func() {
			w.api.LoseReply(agenttest.When{Verb: "update", Name: ledgerOfNights(w)}, 1)
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.until("02:59")
				mend := happens(w)
				w.until("03:20")
				w.awake()
				mend()
				w.until("03:50")
				w.closed()
				w.slept(4)
			})
		})
	}
	t.Run("it is refused until it sleeps again", func(t *testing.T) {
		night(t, oneToThree+apps, func(w *world) {
			w.until("02:59")
			mend := w.api.Refuse(agenttest.When{Verb: "update", Name: ledgerOfNights(w)}, agenttest.Always, 403, "a policy")
			w.until("03:01")
			w.awake()
			w.agent.stop()
			w.until("25:10")
			mend()
			w.begins()
			w.until("27:30")
			w.closed()
			w.slept(4 + 2*110.0/60)
		})
	})
}

// Whatever line an agent dies on, and however late the next one comes, the hours that the
// resources were asleep are in the ledger, once.
func TestWhereverAnAgentDiesHoursAreCountedOnce(t *testing.T) {
	const points = 7
	writes := 0
	night(t, oneToThree+apps, func(w *world) {
		w.until("02:59")
		w.api.ClearLog()
		w.until("03:10")
		writes = len(w.api.Log())
	})
	for back, end := range map[string]int{"03:25": 4, "25:35": 27} { // by day, and in the next night
		for at := 0; at < writes; at += (writes + points - 1) / points {
			for name, arrives := range map[string]bool{"does not arrive": false, "arrives unheard": true} {
				t.Run(fmt.Sprintf("write %d of %d %s, back at %s", at+1, writes, name, back), func(t *testing.T) {
					night(t, oneToThree+apps, func(w *world) {
						w.until("02:59")
						w.api.DieAt(at, arrives)
						w.until("03:05")
						w.agent.stop()
						w.api.Reconnect()
						asleep := 2 * 2.0 // until three
						for minute := 185; minute < end*60+30; minute += 10 {
							clock := fmt.Sprintf("%02d:%02d", minute/60, minute%60)
							w.until(clock)
							asleep += float64(strings.Count(w.replicas(), " 0")) / 6
							if clock == back {
								w.begins()
							}
						}
						w.until(fmt.Sprintf("%d:40", end))
						w.awake()
						w.closed()
						if got := w.recorded(); math.Abs(got-asleep) > 1.1 { // what was asked to wake is not counted while nobody asks again
							t.Errorf("the ledger says that they slept %.2f hours, and they were asleep for %.2f", got, asleep)
						}
					})
				})
			}
		}
	}
}
