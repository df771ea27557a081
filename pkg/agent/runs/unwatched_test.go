package runs

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/steppool"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// manyWatch has as many steps of a run watch an object each, as an account of a namespace.
func (w *world) manyWatch(namespace string, n int) (leave func()) {
	w.Helper()
	account := client.Account{Namespace: namespace, Name: "maint-runner"}
	clients, err := w.agent.Clients.Accounts.Clients(account, "maint-run-other")
	if err != nil {
		w.Fatal(err)
	}
	for i := range n {
		what := executors.Watch{Resource: configMaps, Namespace: namespace, Name: fmt.Sprint("c", i)}
		w.agent.watches.Keep(w.Context(), stepOf(fmt.Sprint("other-", i)), account, clients, what)
	}
	return func() {
		for i := range n {
			w.agent.watches.Drop(stepOf(fmt.Sprint("other-", i)))
		}
	}
}

// mostWatches is how many watches of steps one namespace may have open: see stepwatches.
const mostWatches = 128

func TestAStepBeyondTheWatchesOfItsNamespaceLooksByItself(t *testing.T) {
	for name, c := range map[string]struct {
		in      string
		watches int // of other steps
		open    int // with that of the step, if it has one
		alone   int // passes in a minute, in which nothing changes
	}{
		"nobody else watches":               {in: shop, open: 1},
		"there is room for one":             {in: shop, watches: mostWatches - 1, open: mostWatches},
		"there are as many as may be":       {in: shop, watches: mostWatches, open: mostWatches, alone: 4},
		"others ask for more than they get": {in: shop, watches: mostWatches + 9, open: mostWatches, alone: 4},
		"another namespace has them all":    {in: "other", watches: mostWatches + 9, open: mostWatches + 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+look+"\n", func(w *world) {
				w.cluster.Put(configMap("ready", nil))
				w.steps.does("pass look", notYet(5*time.Second), watching("ready"))
				w.begins("a")
				w.after(time.Second)
				leave := w.manyWatch(c.in, c.watches)
				w.after(9 * time.Second)
				if n := w.agent.WatchCount(); n != c.open {
					t.Errorf("%d watches are open, want %d", n, c.open)
				}
				passes := func() int {
					before := w.count("pass look")
					w.after(time.Minute)
					return w.count("pass look") - before
				}
				if n := passes(); n != c.alone {
					t.Errorf("it looks %d times by itself, want %d", n, c.alone)
				}
				leave()
				w.after(unwatchedPause)
				if n := passes(); n != 0 || w.agent.WatchCount() != 1 {
					t.Errorf("the others are gone, and it looks %d times by itself; %d watches", n, w.agent.WatchCount())
				}
				w.steps.does("pass look", done())
				w.cluster.Annotate(shop, "ready", "a", "b")
				w.after(time.Second)
				w.ends(run.Succeeded, "")
			})
		})
	}
}

func TestWhatIsNotWatchedIsLookedAtNowAndThen(t *testing.T) {
	for name, c := range map[string]struct {
		full bool
		look bool          // at what a step did, and not a step that waits
		wake time.Duration // that the step asked for; 0: none
		want time.Duration
	}{
		"a step that waits":                        {full: true, want: unwatchedPause},
		"a step that waits for less":               {full: true, wake: time.Second, want: time.Second},
		"a step that waits for more":               {full: true, wake: time.Hour, want: unwatchedPause},
		"what a step did":                          {full: true, look: true, want: unwatchedLook},
		"a step whose watch stands":                {},
		"a step whose watch stands, and an hour":   {wake: time.Hour, want: time.Hour},
		"what a step did, where its watch stands":  {look: true},
		"what a step did, and is looked at anyway": {full: true, look: true, wake: time.Second, want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+look+"\n", func(w *world) {
				w.cluster.Put(configMap("ready", nil))
				w.steps.does("pass look", notYet(time.Hour))
				w.begins("a")
				w.after(time.Second)
				l := w.agent.Stores.Runs.Get(stepOf("look").Run)
				clients, err := w.agent.Clients.Accounts.Clients(l.Account(), runName)
				if err != nil {
					t.Fatal(err)
				}
				s := stepOf("look")
				s.DriftCheck = c.look
				wait := &steppool.Wait{Record: *l.Journal.Record("look")}
				if c.wake > 0 {
					wait.Wake = time.Now().Add(c.wake)
				}
				what := executors.Watch{Resource: configMaps, Namespace: shop, Name: "ready"}
				if c.full {
					w.manyWatch(shop, mostWatches)
				} else if !w.agent.watches.Keep(w.Context(), s, l.Account(), clients, what) {
					t.Fatal("the watch is refused")
				}
				synctest.Wait() // a watch that has come to stand wakes its step
				if !w.agent.complete(w.Context(), l, steppool.Outcome{Step: s, Wait: wait, Watch: &what, Clients: clients}) {
					t.Fatal("the run is gone")
				}
				var got time.Duration
				if until, _ := w.agent.Steps.Waits(s, l.Journal.Record("look"), time.Now()); !until.IsZero() {
					got = time.Until(until)
				}
				if got != c.want {
					t.Errorf("it looks again in %s, want %s", got, c.want)
				}
			})
		})
	}
}

// An API server that has just started refuses everybody: that an account may not watch what a step
// did is noted only when it was said twice, half a minute apart.
func TestARefusalToWatchWhatAStepDidIsNotedOnceItLasts(t *testing.T) {
	for name, c := range map[string]struct {
		refused time.Duration
		want    bool
	}{
		"for a moment":          {10 * time.Second, false},
		"for longer than that":  {time.Hour, true},
		"until after the event": {40 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+look+"\n", func(w *world) {
				w.cluster.Put(configMap("ready", nil))
				w.steps.does("pass look", notYet(time.Hour))
				w.begins("a")
				w.after(time.Second)
				l := w.agent.Stores.Runs.Get(stepOf("look").Run)
				clients, err := w.agent.Clients.Accounts.Clients(l.Account(), runName)
				if err != nil {
					t.Fatal(err)
				}
				s, is, noted := stepOf("look"), false, 0
				s.DriftCheck = true
				w.cluster.Deny(runner, "list", "configmaps")
				w.cluster.Deny(runner, "watch", "configmaps")
				time.AfterFunc(c.refused, func() {
					w.cluster.Allow(runner, "list", "configmaps")
					w.cluster.Allow(runner, "watch", "configmaps")
				})
				what := executors.Watch{Resource: configMaps, Namespace: shop, Name: "ready"}
				for range 60 { // a look every two seconds
					if !w.agent.watches.Keep(w.Context(), s, l.Account(), clients, what) {
						t.Fatal("there is no room")
					}
					w.after(2 * time.Second)
					now, _ := w.agent.unwatched(w.Context(), s, clients, is)
					if now && !is {
						noted++
					}
					is = now
				}
				if is != c.want || noted > 1 || noted == 0 == (c.refused > 30*time.Second) {
					t.Errorf("noted %d times, in the end %t", noted, is)
				}
			})
		})
	}
}
