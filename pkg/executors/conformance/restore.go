package conformance

import (
	"bytes"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

func (c Case) recordsFirst(t *testing.T) {
	var w wire
	s := c.begin(t, w.wrap)
	initial := s.state(t)
	first := s.toRecord(t)
	if writes := w.writes(); len(writes) > 0 || s.state(t) != initial {
		t.Fatalf("before it recorded anything it wrote %v", writes)
	}
	// The record was lost: the same call asks for the same record.
	kept := s.call.Recorded.Before
	s.call.Recorded.Before = nil
	if second := s.toRecord(t); !bytes.Equal(second, first) {
		t.Errorf("the same look recorded %s, then %s", first, second)
	}
	s.call.Recorded.Before = kept
	// After the effect, a pass with the record leaves it alone; else record fails.
	s.finish(t)
	s.finish(t)
}

// toRecord makes passes until something is recorded.
func (s *step) toRecord(t *testing.T) []byte {
	t.Helper()
	for range 200 {
		switch out := s.pass(t); out.State {
		case executors.Record:
			return out.Before
		case executors.Done, executors.Failed:
			t.Fatalf("nothing was recorded: %+v", out)
		}
	}
	t.Fatal("nothing was recorded in 200 passes")
	return nil
}

func (c Case) restores(t *testing.T) {
	s := c.begin(t, nil)
	initial := s.state(t)
	s.finish(t)
	out := s.restore(t)
	if got := s.state(t); got != initial || out.Reason != "" || len(out.Changed) == 0 {
		t.Errorf("restored to %s (%s %s, listed %v), want %s", got, out.Reason, out.Message, out.Changed, initial)
	}
	var w wire
	s.connect(t, c.Rights, w.wrap)
	if out := s.restore(t); out.Reason != "" || len(w.writes()) > 0 {
		t.Errorf("the second restore wrote %v: %+v", w.writes(), out)
	}
	if got := s.state(t); got != initial {
		t.Errorf("the second restore changed the state to %s", got)
	}
}

func (c Case) leavesWhatChanged(t *testing.T) {
	s := c.begin(t, nil)
	if s.world.Meddle == nil {
		t.Skip("nobody can change what it changed")
	}
	s.finish(t)
	s.world.Meddle(t)
	theirs := s.state(t)
	out := s.restore(t)
	if got := s.state(t); got != theirs || out.Reason != executors.ReasonChangedMeanwhile {
		t.Errorf("restore made %s of %s: %s %s", got, theirs, out.Reason, out.Message)
	}
	if again := s.restore(t); again.Reason != executors.ReasonChangedMeanwhile {
		t.Errorf("a second restore says %s %s", again.Reason, again.Message)
	}
}

func (c Case) releases(t *testing.T) {
	s := c.begin(t, nil)
	if s.world.Remove == nil {
		t.Skip("it works on no object")
	}
	s.finish(t)
	s.world.Remove(t)
	if out := s.restore(t); out.Reason != executors.ReasonGone {
		t.Errorf("restore of what is gone says %s %s", out.Reason, out.Message)
	}
}

func (c Case) restoresNothing(t *testing.T) {
	s := c.begin(t, nil)
	initial := s.state(t)
	s.restore(t) // not even a record
	s.toRecord(t)
	var w wire
	s.connect(t, c.Rights, w.wrap)
	if out := s.restore(t); out.Reason != "" || len(w.writes()) > 0 || s.state(t) != initial {
		t.Errorf("wrote %v: %+v", w.writes(), out)
	}
}

func (c Case) restoresThroughCrashes(t *testing.T) {
	for name, reaches := range map[string]bool{"the request is lost": false, "its answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, n int) bool {
				s := c.begin(t, nil)
				initial := s.state(t)
				s.finish(t)
				w := death(n, reaches)
				s.connect(t, c.Rights, w.wrap)
				if out := c.Executor.(executors.Restorer).Restore(t.Context(), s.call); out.State == executors.Failed {
					t.Errorf("a lost request failed the restore: %s", out.Message)
				}
				died := w.count() > n
				s.connect(t, c.Rights, nil)
				s.restore(t)
				if got := s.state(t); got != initial {
					t.Errorf("restored to %s, want %s", got, initial)
				}
				return died
			})
		})
	}
}

func (c Case) stops(t *testing.T) {
	stopper := c.Executor.(executors.Stopper)
	s := c.begin(t, nil)
	initial := s.state(t)
	if err := stopper.Stop(t.Context(), s.call); err != nil {
		t.Errorf("stop before anything was begun: %v", err)
	}
	for s.pass(t).State != executors.NotYet {
	}
	for range 2 {
		if err := stopper.Stop(t.Context(), s.call); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	if got := s.state(t); got != initial {
		t.Errorf("after stop the state is %s, want %s", got, initial)
	}
}
