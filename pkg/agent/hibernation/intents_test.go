package hibernation

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// What is used up of a skip is taken away, once its off-hours are over and in the ledger.
func TestASkipThatIsPastIsTakenAway(t *testing.T) {
	for name, c := range map[string]struct {
		skip   string
		stays  map[string]string
		ledger []string
	}{
		"slots": {
			"2000-01-01T01:00:00Z,2000-01-02T01:00:00Z",
			map[string]string{"02:50": "2000-01-01T01:00:00Z,2000-01-02T01:00:00Z", "03:10": "2000-01-02T01:00:00Z", "27:10": ""},
			[]string{"1 01:00 Skipped skip x2"},
		},
		"until an instant in off-hours": {
			"until:2000-01-01T02:00:00Z",
			map[string]string{"01:30": "until:2000-01-01T02:00:00Z", "02:50": "until:2000-01-01T02:00:00Z", "27:10": ""},
			[]string{"1 01:00 Skipped skip", "2 01:00 Ran since 2 01:00"},
		},
		"until an instant between them": {"until:2000-01-01T12:00:00Z", map[string]string{"11:50": "until:2000-01-01T12:00:00Z", "12:10": ""}, []string{"1 01:00 Skipped skip"}},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.says(annotations.Actor(annotations.Skip), "jane")
				w.says(annotations.Skip, c.skip)
				for _, clock := range []string{"01:30", "02:50", "03:10", "11:50", "12:10", "27:10"} {
					w.until(clock)
					if want, asked := c.stays[clock]; asked && w.said(annotations.Skip) != want {
						t.Errorf("at %s there stands %q, want %q", clock, w.said(annotations.Skip), want)
					}
					if clock == "02:50" {
						w.awake()
					}
					if clock == "12:10" && name == "until an instant between them" {
						break
					}
				}
				if by := w.said(annotations.Actor(annotations.Skip)); by != "" {
					t.Errorf("%s still stands behind it", by)
				}
				w.ledger(c.ledger...)
			})
		})
	}
}

// A pause or a skip that is not understood holds, and is said; the plan itself is valid.
func TestAnIntentThatIsNotUnderstoodHoldsAndIsSaid(t *testing.T) {
	for key, c := range map[string]struct{ value, is, says string }{
		annotations.Pause: {"no", "Suspended: paused", `\"no\" is neither true nor an RFC 3339 instant`},
		annotations.Skip:  {"tomorrow", "Active: awake: these off-hours are skipped", `\"tomorrow\" is not understood`},
	} {
		t.Run(key, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.says(key, c.value)
				w.until("01:30")
				w.awake()
				w.is(c.is)
				got := w.said(annotations.StatusConditions)
				if !strings.Contains(got, `"type":"IntentUnderstood","status":"False"`) || !strings.Contains(got, c.says) || !strings.Contains(got, `"type":"Valid","status":"True"`) {
					t.Errorf("its conditions are %s", got)
				}
				w.says(key, "")
				if got := w.said(annotations.StatusConditions); strings.Contains(got, "IntentUnderstood") {
					t.Errorf("its conditions still are %s", got)
				}
				w.sleeps()
			})
		})
	}
}

// A dry run that begins while it sleeps puts nothing else to sleep, and wakes what sleeps.
func TestADryRunThatBeginsWhileItSleepsPutsNothingElseToSleep(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.deployment("data", "db", 1)
		w.until("01:30")
		if got, want := w.said(annotations.StatusProgress), `{"operation":"shutdown","done":1,"total":1,"percent":100}`; got != want {
			t.Errorf("its progress is %s, want %s", got, want)
		}
		w.plan(oneToThree + appsAndDB + "dryRun: true\n")
		w.deployment("late", "apps", 2)
		w.until("02:30")
		w.has("data 1, late 2, orders 0, web 0")
		w.is("Hibernated: 1 of 1 targets sleep")
		w.until("03:10")
		w.has("data 1, late 2, orders 3, web 2")
		w.closed()
		if got, want := w.said(annotations.StatusProgress), `{"operation":"wake","done":1,"total":1,"percent":100}`; got != want {
			t.Errorf("its progress is %s, want %s", got, want)
		}
	})
}

// Why nothing slept is known also to an agent that begins when the off-hours are over.
func TestWhyNothingSleptIsKnownToTheNextAgent(t *testing.T) {
	for key, c := range map[string]struct{ value, want string }{
		annotations.HoldState: {"awake", "1 01:00 Skipped hold"},
		annotations.Pause:     {"true", "1 01:00 Skipped paused"},
	} {
		t.Run(key, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.says(key, c.value)
				w.until("01:01")
				w.api.ClearLog()
				w.until("02:59")
				if wrote := w.api.Log(); len(wrote) > 0 {
					t.Errorf("the agent wrote %q", wrote)
				}
				w.agent.stop()
				w.until("03:00")
				w.begins()
				w.until("03:10")
				w.ledger(c.want)
			})
		})
	}
}

// A token asks once, however often it comes back, and one that the plan came with asks nothing.
func TestATokenAsksOnce(t *testing.T) {
	play(t, func(w *world) {
		w.deployment("orders", "apps", 3)
		w.beds.goes("shutdown orders", "no")
		w.plan(oneToThree + "behavior: {retries: 0}\n" + apps)
		w.api.Annotate(shop, "nights", annotations.Trigger, "came")
		w.begins()
		w.until("01:10")
		tried := func(want int, when string) {
			t.Helper()
			if r := w.record("apps"); r == nil || r.AttemptsBefore+r.Attempts != want {
				t.Errorf("%s: %+v, want %d attempts; the plan says %s", when, r, want, w.phase())
			}
		}
		tried(1, "with the token that it came with")
		w.says(annotations.Trigger, "a")
		tried(2, "a new one")
		w.says(annotations.Trigger, "b")
		tried(3, "another")
		w.says(annotations.Trigger, "a")
		tried(3, "the first again")
		w.begins()
		w.says(annotations.Trigger, "came")
		tried(3, "that which it came with, before another agent")
		w.says(annotations.Trigger, "b")
		tried(3, "the second again")
	})
}
