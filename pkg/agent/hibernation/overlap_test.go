package hibernation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// scales has a run scale a Deployment and hold it, as a step with restoreAfter does; end puts it back
// where nobody has scaled it since, and ends the run.
func (w *world) scales(name string, from, to int64) (end func()) {
	w.Helper()
	uid := string(w.api.Get("deployments", shop, name).GetUID())
	holder := executors.Holder{Run: "load-test-0100", Path: "grow", Before: []byte(fmt.Sprintf(
		`{"uid":%q,"subresource":"scale","changes":[{"path":[{"key":"spec"},{"key":"replicas"}],"before":%d,"after":%d}]}`, uid, from, to))}
	w.held.Store(map[string][]executors.Holder{uid: {holder}})
	w.scale(name, to)
	w.after(time.Second)
	return func() {
		w.Helper()
		if strings.Contains(w.replicas(), fmt.Sprintf("%s %d", name, to)) {
			w.scale(name, from)
		}
		holder.Over = time.Now()
		w.held.Store(map[string][]executors.Holder{uid: {holder}})
		w.after(time.Second)
	}
}

// What a run has changed of what sleeps is put back by the run, as it slept. Only then it is woken as
// it was before the sleep, whatever the run had made of it.
func TestWhatARunHoldsWakesAfterTheRun(t *testing.T) {
	for name, to := range map[string]int64{"it has another scale": 1, "it has the scale from before the sleep": 3} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.until("02:30")
				w.sleeps()
				w.until("02:59")
				end, unpacked := w.scales("orders", 0, to), w.unpacked.Load()
				w.until("03:30")
				if n := w.unpacked.Load() - unpacked; n > 1 { // while it still sleeps
					t.Errorf("what runs recorded is unpacked %d times for those that wait for them", n)
				}
				w.has(fmt.Sprintf("orders %d, web 2", to))
				w.is("WakingUp: 0 of 1 targets are awake; apps waits: run load-test-0100 has changed orders, and puts it back at its end: only then it wakes")
				if says := w.said(annotations.StatusConditions); !strings.Contains(says, "run load-test-0100 has changed orders") {
					t.Errorf("the conditions are %s", says)
				}
				end()
				w.after(time.Minute)
				w.awake()
				w.is("Active: ")
				w.closed()
			})
		})
	}
}

func TestWhatARunHeldWakesThoughTheAgentIsAnotherBy(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("02:30")
		end := w.scales("orders", 0, 1)
		w.until("03:10")
		w.begins()
		w.until("03:20")
		w.has("orders 1, web 2")
		end()
		w.begins()
		w.after(time.Minute)
		w.awake()
		w.closed()
	})
}

// What a person scales up in the night is theirs, though a run held it before.
func TestWhatAPersonStartsInTheNightWaitsForNoRun(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		w.scales("orders", 0, 1)()
		w.scale("orders", 5)
		w.until("03:10")
		w.has("orders 5, web 2")
		w.is("Active: ")
	})
}

// What a run has changed before the sleep wakes as the run will put it back: to what the run found,
// once that is over, and else to what the run made of it.
func TestWhatARunChangedBeforeTheSleepWakesAsItWasBeforeTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		ends string
		want string
	}{
		"it ends in the night": {"02:00", "orders 3, web 2"},
		"it ends afterwards":   {"04:00", "orders 5, web 2"},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.beds.workloads = true
				w.until("00:50")
				end := w.scales("orders", 3, 5)
				w.until("01:30")
				w.sleeps()
				w.until(c.ends)
				if c.ends < "03:00" {
					end()
					w.sleeps()
				}
				w.until("03:30")
				if c.ends > "03:00" {
					w.has("orders 5, web 2")
					end()
				}
				w.after(time.Minute)
				w.awake()
				w.closed()
			})
		})
	}
}

// A timeout counts from when what a run held may wake.
func TestWhatWaitedForARunHasItsTimeToWake(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("02:30")
		end := w.scales("orders", 0, 1)
		w.until("05:00")
		w.beds.goes("wake orders", "not yet")
		end()
		w.after(5 * time.Second)
		if r := w.record("apps"); r == nil || strings.Contains(r.Message, "it is not awake after") {
			t.Errorf("the record is %+v", r)
		}
		w.beds.goes("wake orders", "")
		w.after(10 * time.Minute)
		w.awake()
	})
}
