// Package conformance tests what every executor promises: it is safe to call twice and to kill
// anywhere, it reports missing rights, and a dry run has no effect. It needs a real API server,
// since conflicts, rights and dry runs are what it tests. Only tests import it.
package conformance

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// Right is one verb on one resource; a subresource follows a slash.
type Right struct{ Verb, Group, Resource string }

func (r Right) resource() string {
	name, sub, _ := strings.Cut(r.Resource, "/")
	if r.Group != "" {
		name += "." + r.Group
	}
	if sub != "" {
		name += "/" + sub
	}
	return name
}

// Wrap puts a transport between a client and the API server.
type Wrap func(http.RoundTripper) http.RoundTripper

// Case is one executor with one kind of step.
type Case struct {
	Executor executors.Executor
	// Rights are those that the step needs, each of them; Courtesies are rights that it uses and
	// can do without.
	Rights, Courtesies []Right
	// New makes a separate world in which the step has not run yet. All worlds of one case are
	// alike.
	New func(t *testing.T) Backend
	// Waits: an object that is absent is waited for.
	Waits bool
	// Deletes: an object that is absent is as the step wants it.
	Deletes bool
	// Repeats: after a crash the effect may happen again, under the same key.
	Repeats bool
	// Idle: the step changes nothing in the cluster.
	Idle bool
}

// Backend is where a step runs. A nil function means that the case has no such thing.
type Backend struct {
	Call executors.Call // without clients and account
	// Connect gives clients that act as an account with exactly these rights,
	// and the account's name.
	Connect func(t *testing.T, rights []Right, wrap Wrap) (executors.Clients, string)
	// State is everything that the step may change, as text, without names that differ between
	// worlds.
	State func(t *testing.T) string
	// Settle lets happen what the step waits for.
	Settle func(t *testing.T, call *executors.Call)
	// Touch changes another part of the object, Meddle the part that the step changed.
	Touch, Meddle func(t *testing.T)
	// Remove deletes the object.
	Remove func(t *testing.T)
	// Effects counts how often the effect happened.
	Effects func(t *testing.T) int
}

// promptLimit is the limit for anything that should be prompt, on a busy machine.
const promptLimit = 10 * time.Second

// Run runs every test that applies to an executor.
func Run(t *testing.T, c Case) {
	t.Run("a step that is done twice is done once", c.twiceIsOnce)
	t.Run("a crash at any request loses and repeats nothing", c.survivesCrashes)
	t.Run("an API server that fails is no failed attempt", c.outlivesTheAPIServer)
	t.Run("a pass that is cancelled returns", c.obeysCancellation)
	t.Run("a dry run leaves the world as it is", c.rehearses)
	t.Run("a missing right is named with its resource and account", c.namesMissingRights)
	t.Run("courtesies that are not granted do not fail it", c.doesWithoutCourtesies)
	t.Run("an object that is not there", c.missesItsObject)
	t.Run("a conflict is no failed attempt", c.outlivesConflicts)
	if _, ok := c.Executor.(executors.Restorer); ok {
		t.Run("what was there is recorded before the effect, and only once", c.recordsFirst)
		t.Run("restore puts back what was there, twice is fine", c.restores)
		t.Run("restore leaves what somebody changed", c.leavesWhatChanged)
		t.Run("restore of what is gone is done", c.releases)
		t.Run("restore before the effect changes nothing", c.restoresNothing)
		t.Run("a crash in restore loses nothing", c.restoresThroughCrashes)
	}
	if _, ok := c.Executor.(executors.Stopper); ok {
		t.Run("stop ends what is under way, twice is fine", c.stops)
	}
}

// step is one step in its world, with what the journal would hold of it.
type step struct {
	c       Case
	world   Backend
	call    executors.Call
	settled bool
}

// begin makes a world and connects to it with all rights.
func (c Case) begin(t *testing.T, wrap Wrap) *step {
	t.Helper()
	s := &step{c: c, world: c.New(t)}
	s.call = s.world.Call
	s.connect(t, append(append([]Right{}, c.Rights...), c.Courtesies...), wrap)
	return s
}

func (s *step) connect(t *testing.T, rights []Right, wrap Wrap) {
	t.Helper()
	if wrap == nil {
		wrap = func(rt http.RoundTripper) http.RoundTripper { return rt }
	}
	s.call.Clients, s.call.Plan.Account = s.world.Connect(t, rights, wrap)
}

func (s *step) state(t *testing.T) string {
	t.Helper()
	if s.world.State == nil {
		return ""
	}
	return s.world.State(t)
}

func (s *step) effects(t *testing.T) int {
	t.Helper()
	if s.world.Effects == nil {
		return 1
	}
	return s.world.Effects(t)
}

// pass makes one call, and treats its outcome as the agent does.
func (s *step) pass(t *testing.T) executors.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := s.c.Executor.Pass(ctx, s.call)
	if out.Anew {
		s.call.Recorded.Before = nil
	}
	switch s.remember(out); out.State {
	case executors.Record:
		s.record(t, out)
	case executors.NotYet:
		if out.WakeAt.After(s.call.Now) {
			s.call.Now = out.WakeAt
		}
	}
	return out
}

// remember keeps the last Memory, as the journal does.
func (s *step) remember(out executors.Outcome) {
	if out.Memory != nil {
		s.call.Recorded.Memory = out.Memory
	}
}

// record keeps the first of each record, as the journal does.
func (s *step) record(t *testing.T, out executors.Outcome) {
	t.Helper()
	if out.Memory == nil && (out.Before == nil || s.call.Recorded.Before != nil) && (out.ResumeAt == nil || s.call.Recorded.ResumeAt != nil) {
		t.Fatalf("asks to record again what is recorded: %+v", out)
	}
	if s.call.Recorded.Before == nil {
		s.call.Recorded.Before = out.Before
	}
	if s.call.Recorded.ResumeAt == nil {
		s.call.Recorded.ResumeAt = out.ResumeAt
	}
}

// run makes passes until the step is done or failed, and settles the world where the step waits.
func (s *step) run(t *testing.T) executors.Outcome {
	t.Helper()
	var out executors.Outcome
	for range 200 {
		out = s.pass(t)
		if out.State == executors.Done || out.State == executors.Failed {
			return out
		}
		s.settle(t, out)
	}
	t.Fatalf("not done after 200 passes: %+v", out)
	return out
}

func (s *step) settle(t *testing.T, out executors.Outcome) {
	t.Helper()
	waits := out.State == executors.NotYet && out.Reason != executors.ReasonConflict && out.Reason != executors.ReasonUnavailable
	if waits && !s.settled && s.world.Settle != nil {
		s.world.Settle(t, &s.call)
		s.settled = true
	}
}

// finish runs the step to its end, which must be success.
func (s *step) finish(t *testing.T) executors.Outcome {
	t.Helper()
	out := s.run(t)
	if out.State != executors.Done {
		t.Fatalf("failed: %s: %s", out.Reason, out.Message)
	}
	if out.Message == "" {
		t.Error("done without a word")
	}
	return out
}

// restore calls Restore until it is done.
func (s *step) restore(t *testing.T) executors.Outcome {
	t.Helper()
	restorer := s.c.Executor.(executors.Restorer)
	for range 200 {
		out := restorer.Restore(t.Context(), s.call)
		switch out.State {
		case executors.NotYet:
			continue
		case executors.Done:
			return out
		}
		t.Fatalf("restore failed: %s: %s", out.Reason, out.Message)
	}
	t.Fatal("restore is not done after 200 calls")
	return executors.Outcome{}
}
