package conformance

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

func (c Case) twiceIsOnce(t *testing.T) {
	s := c.begin(t, nil)
	initial := s.state(t)
	out := s.finish(t)
	after := s.state(t)
	if !c.Idle && (after == initial || len(out.Changed) == 0) {
		t.Errorf("done without a change (listed: %v), the state is %s", out.Changed, after)
	}
	if c.Idle && (after != initial || len(out.Changed) > 0) {
		t.Errorf("a step without effect changed %s to %s (listed: %v)", initial, after, out.Changed)
	}
	var w wire
	s.connect(t, append(append([]Right{}, c.Rights...), c.Courtesies...), w.wrap)
	s.finish(t)
	if writes := w.writes(); len(writes) > 0 && !c.Repeats {
		t.Errorf("the second time wrote %v", writes)
	}
	if again := s.state(t); again != after {
		t.Errorf("the second time changed %s to %s", after, again)
	}
}

func (c Case) survivesCrashes(t *testing.T) {
	reference := c.begin(t, nil)
	reference.finish(t)
	want := reference.state(t)
	for name, reaches := range map[string]bool{"the request is lost": false, "its answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, n int) bool {
				w := death(n, reaches)
				s := c.begin(t, w.wrap)
				died := s.runUntil(t, func() bool { return w.count() > n })
				s.connect(t, append(append([]Right{}, c.Rights...), c.Courtesies...), nil)
				s.finish(t)
				if got := s.state(t); got != want {
					t.Errorf("after a crash the state is %s, want %s", got, want)
				}
				if got := s.effects(t); got != 1 && !c.Repeats {
					t.Errorf("after a crash the effect happened %d times", got)
				}
				return died
			})
		})
	}
}

// runUntil makes passes as run does, until stop says that the agent died in the last pass, whose
// outcome was then lost; false when the step was done before.
func (s *step) runUntil(t *testing.T, stop func() bool) bool {
	t.Helper()
	for range 200 {
		call := s.call
		out := s.c.Executor.Pass(t.Context(), s.call)
		if stop() {
			s.call = call
			return true
		}
		switch s.remember(out); out.State {
		case executors.Done:
			return false
		case executors.Failed:
			t.Fatalf("failed: %s: %s", out.Reason, out.Message)
		case executors.Record:
			s.record(t, out)
		}
		if out.WakeAt.After(s.call.Now) {
			s.call.Now = out.WakeAt
		}
		s.settle(t, out)
	}
	t.Fatal("not done after 200 passes")
	return false
}

func (c Case) outlivesTheAPIServer(t *testing.T) {
	troubles := []int{http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 0}
	each(t, func(t *testing.T, n int) bool {
		var w wire
		w.on = func(i int, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			switch code := troubles[n%len(troubles)]; {
			case i != n && i != n+1: // client-go itself retries some of these
				return send()
			case code == 0:
				return nil, errLost
			default:
				return refuse(r, code), nil
			}
		}
		s := c.begin(t, w.wrap)
		s.runThroughTrouble(t)
		return w.count() > n
	})
}

// runThroughTrouble runs to the end and checks each outcome on the way.
func (s *step) runThroughTrouble(t *testing.T) {
	t.Helper()
	for range 200 {
		now := s.call.Now
		out := s.pass(t)
		switch {
		case out.State == executors.Done:
			return
		case out.State == executors.Failed:
			t.Fatalf("an API server in trouble failed the step: %s: %s", out.Reason, out.Message)
		case out.Reason == executors.ReasonUnavailable && !out.WakeAt.Equal(now.Add(2*time.Second)):
			t.Fatalf("looks again at %s, want 2s after %s", out.WakeAt, now)
		}
		s.settle(t, out)
	}
	t.Fatal("not done after 200 passes")
}

func (c Case) obeysCancellation(t *testing.T) {
	each(t, func(t *testing.T, n int) bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var w wire
		w.on = func(i int, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if i < n {
				return send()
			}
			cancel()
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		s := c.begin(t, w.wrap)
		for range 200 {
			ended := make(chan executors.Outcome, 1)
			go func() { ended <- s.c.Executor.Pass(ctx, s.call) }()
			var out executors.Outcome
			select {
			case out = <-ended:
			case <-time.After(promptLimit):
				t.Fatalf("still at work %s after it was cancelled", promptLimit)
			}
			if ctx.Err() != nil {
				if out.State == executors.Failed {
					t.Errorf("a cancelled pass failed: %s: %s", out.Reason, out.Message)
				}
				return true
			}
			if out.State == executors.Done || out.State == executors.Failed {
				return false
			}
			if s.remember(out); out.State == executors.Record {
				s.record(t, out)
			}
			if out.WakeAt.After(s.call.Now) {
				s.call.Now = out.WakeAt
			}
			s.settle(t, out)
		}
		t.Fatal("not done after 200 passes")
		return false
	})
}

func (c Case) rehearses(t *testing.T) {
	var w wire
	s := c.begin(t, w.wrap)
	s.call.DryRun = true
	initial, effects := s.state(t), 0
	if s.world.Effects != nil {
		effects = s.world.Effects(t)
	}
	out := s.pass(t)
	for range 20 { // a conflict with a controller is retried
		if out.Reason != executors.ReasonConflict {
			break
		}
		out = s.pass(t)
	}
	if out.State != executors.Done || !strings.Contains(out.Message, "dry run") || len(out.Changed) > 0 {
		t.Errorf("a dry run ends as %+v", out)
	}
	if writes := w.writes(); len(writes) > 0 || s.state(t) != initial {
		t.Errorf("a dry run wrote %v, the state is %s", writes, s.state(t))
	}
	if s.world.Effects != nil && s.world.Effects(t) != effects {
		t.Error("a dry run had an effect")
	}
}

func (c Case) namesMissingRights(t *testing.T) {
	for i, missing := range c.Rights {
		t.Run(missing.Verb+" "+missing.resource(), func(t *testing.T) {
			var w wire
			s := &step{c: c, world: c.New(t)}
			s.call = s.world.Call
			rights := append(append([]Right{}, c.Rights[:i]...), c.Rights[i+1:]...)
			s.connect(t, rights, w.wrap)
			initial := s.state(t)
			out := s.run(t)
			if out.State != executors.Failed || !out.Permanent || out.Reason != executors.ReasonForbidden {
				t.Fatalf("without the right it ends as %+v", out)
			}
			account := "serviceaccount " + s.call.Plan.Namespace + "/" + s.call.Plan.Account
			for _, word := range []string{missing.Verb + " ", missing.resource(), account, "grant " + missing.Verb + " on " + missing.resource()} {
				if !strings.Contains(out.Message, word) {
					t.Errorf("%q does not say %q", out.Message, word)
				}
			}
			if got := s.state(t); got != initial {
				t.Errorf("without the right it changed %s to %s", initial, got)
			}
		})
	}
}

func (c Case) doesWithoutCourtesies(t *testing.T) {
	if len(c.Courtesies) == 0 {
		t.Skip("it uses nothing that it could do without")
	}
	s := &step{c: c, world: c.New(t)}
	s.call = s.world.Call
	s.connect(t, c.Rights, nil)
	out := s.finish(t)
	if !strings.Contains(out.Message, "grant ") {
		t.Errorf("%q does not say what could be granted", out.Message)
	}
}

func (c Case) missesItsObject(t *testing.T) {
	s := c.begin(t, nil)
	if s.world.Remove == nil {
		t.Skip("it works on no object")
	}
	s.world.Remove(t)
	out := s.pass(t)
	switch {
	case c.Deletes:
		if out.State != executors.Done || out.Reason != executors.ReasonNotFound || len(out.Changed) > 0 {
			t.Errorf("an absent object is not what it wants: %+v", out)
		}
	case c.Waits && (out.State != executors.NotYet || out.Watch == nil):
		t.Errorf("an absent object is not waited for: %+v", out)
	case !c.Waits && (out.State != executors.Failed || !out.Permanent || out.Reason != executors.ReasonNotFound):
		t.Errorf("an absent object is %+v, want a permanent NotFound", out)
	}
}

func (c Case) outlivesConflicts(t *testing.T) {
	probe := c.begin(t, nil)
	if probe.world.Touch == nil {
		t.Skip("nobody else writes to its object")
	}
	var w wire
	var s *step
	touched := false
	w.on = func(_ int, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if r.Method == http.MethodPatch && r.URL.Query().Get("dryRun") == "" && !touched {
			touched = true
			s.world.Touch(t)
		}
		return send()
	}
	s = c.begin(t, w.wrap)
	conflicts := 0
	for range 200 {
		out := s.pass(t)
		if out.Reason == executors.ReasonConflict {
			conflicts++
			if out.State != executors.NotYet || out.WakeAt.After(s.call.Now) {
				t.Fatalf("a conflict is %+v, want another look at once", out)
			}
		}
		if out.State == executors.Failed {
			t.Fatalf("a conflict failed the step: %s: %s", out.Reason, out.Message)
		}
		if out.State == executors.Done {
			break
		}
		s.settle(t, out)
	}
	if conflicts == 0 {
		t.Error("a write between read and write was no conflict: the write carries no resourceVersion")
	}
}
