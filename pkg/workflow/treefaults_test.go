package workflow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Each row is a fault that was there once.
func TestNestedRunsKeepTheirWord(t *testing.T) {
	group := func(more string, steps ...string) string {
		return "{name: g, type: step-group" + more + ", properties: {steps: [" + strings.Join(steps, ", ") + "]}}"
	}
	inner := func(steps ...string) string {
		return strings.Replace(loopOf("", steps...), "name: roll", "name: in", 1)
	}
	scale := "{name: x, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: d}, replicas: 0, restoreAfter: true}}"
	ask := "{name: ask, type: approval}"
	reject := func(s *stage) { s.sig.Reject = &workflow.Answer{Step: "ask", Actor: intent.Actor{Name: "jane"}} }
	rejected := permanent("Rejected")
	for _, c := range []struct {
		name, spec string
		edits      []func(*stage)
		acts       []string
		ends       map[string]string
	}{
		{
			name: "a step that a group had no time for is done by the run's retry, and not passed over",
			spec: "retryLimit: 1\nsteps: [" + group(", timeout: 5m", coretest.Hook("a"), coretest.Hook("b")) + "]",
			edits: []func(*stage){when("g/a", func(s *stage) {
				s.now = coretest.Clock("02:05")
				s.j = workflow.Note(s.run, s.j, "g/a", workflow.StepResult{Done: true}, s.now)
			})},
			acts: []string{"wait until 02:05:10", "g/b #1"},
			ends: map[string]string{"g": "Succeeded", "g/a": "Succeeded", "g/b": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "what depends on a step that is tried again asks its condition again",
			spec:  "retryLimit: 1\nsteps: [" + parallel(0, coretest.Hook("a"), coretest.Hook("b", "dependsOn: [a]", `if: "steps.a.phase == 'Succeeded'"`)) + "]",
			edits: []func(*stage){script("g/a", failed("Boom"), workflow.StepResult{Done: true})},
			acts:  []string{"g/a #1", "wait until 02:00:11", "g/a #2", "g/b #1"},
			ends:  map[string]string{"g": "Succeeded", "g/a": "Succeeded", "g/b": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "a loop that is picked anew goes on with its attempts",
			spec:  "retryLimit: 1\nsteps: [" + coretest.Hook("a") + ", " + strings.Replace(loopOf("", coretest.Hook("x", "retry: {limit: 1, backoff: 1s}")), "type: for-each", "type: for-each, if: always", 1) + "]",
			edits: []func(*stage){script("a", failed("Boom"), workflow.StepResult{Done: true}), script("roll", picks("i")), script("roll/i/x", failed("Boom"), workflow.StepResult{Done: true})},
			acts:  []string{"a #1", "roll #1", "roll/i/x #1", "wait until 02:00:04", "roll/i/x #2", "wait until 02:00:15", "a #2", "roll #2", "roll/i/x #3"},
			ends:  map[string]string{"a": "Succeeded", "roll": "Succeeded", "END": "Succeeded "},
		},
		{
			name: "and so does a loop within an item that is tried again",
			spec: "retryLimit: 1\nsteps: [" + loopOf("", inner(coretest.Hook("x", "retry: {limit: 1, backoff: 1s}")), coretest.Hook("y")) + "]",
			edits: []func(*stage){
				script("roll", picks("o")), script("roll/o/in", picks("i")), script("roll/o/in/i/x", failed("Boom"), workflow.StepResult{Done: true}), script("roll/o/y", failed("Boom"), workflow.StepResult{Done: true}),
			},
			acts: []string{"roll #1", "roll/o/in #1", "roll/o/in/i/x #1", "wait until 02:00:04", "roll/o/in/i/x #2", "roll/o/y #1", "wait until 02:00:16", "roll/o/in #3", "roll/o/in/i/x #3", "roll/o/y #3"},
			ends: map[string]string{"roll": "Succeeded", "END": "Succeeded "},
		},
		{
			name: "a loop that was cut off within an item is begun anew with it",
			spec: "retryLimit: 1\nsteps: [" + strings.Replace(loopOf("", inner(coretest.Hook("x"))), "type: for-each", "type: for-each, timeout: 5m", 1) + "]",
			edits: []func(*stage){
				script("roll", picks("o")), script("roll/o/in", picks("i")), script("roll/o/in/i/x", notYet, workflow.StepResult{Done: true}),
			},
			acts: []string{"roll #1", "roll/o/in #1", "roll/o/in/i/x #1", "stop roll/o/in/i/x", "wait until 02:05:10", "roll/o/in #2", "roll/o/in/i/x #2"},
			ends: map[string]string{"roll": "Succeeded", "END": "Succeeded "},
		},
		{
			name: "and counts on from the attempt in which it was cut off",
			spec: "retryLimit: 1\nsteps: [" + strings.Replace(loopOf("", inner(coretest.Hook("x", "retry: {limit: 1, backoff: 1s}"))), "type: for-each", "type: for-each, timeout: 5m", 1) + "]",
			edits: []func(*stage){
				script("roll", picks("o")), script("roll/o/in", picks("i")), script("roll/o/in/i/x", failed("Boom"), notYet, workflow.StepResult{Done: true}),
			},
			acts: []string{"roll #1", "roll/o/in #1", "roll/o/in/i/x #1", "wait until 02:00:04", "roll/o/in/i/x #2", "stop roll/o/in/i/x", "wait until 02:05:10", "roll/o/in #2", "roll/o/in/i/x #3"},
			ends: map[string]string{"roll": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "what a person rejected is not asked again by a group's retry",
			spec:  "steps: [" + group(", retry: {limit: 3, backoff: 1s}", ask) + "]",
			edits: []func(*stage){when("g/ask", reject), script("g/ask", workflow.StepResult{ResumeAt: coretest.On("+1 02:00")}, rejected)},
			acts:  []string{"g/ask #1"},
			ends:  map[string]string{"g": "Failed", "g/ask": "Failed", "END": "Failed StepFailed"},
		},
		{
			name:  "nor by the run's retry where it stood in a loop",
			spec:  "retryLimit: 3\nsteps: [" + loopOf(", onError: continue", ask) + "]",
			edits: []func(*stage){when("roll/i/ask", reject), script("roll", picks("i")), script("roll/i/ask", workflow.StepResult{ResumeAt: coretest.On("+1 02:00")}, rejected)},
			acts:  []string{"roll #1", "roll/i/ask #1"},
			ends:  map[string]string{"roll": "Failed", "END": "Failed StepFailed"},
		},
		{
			name: "a group whose template is not in the run is no success",
			spec: "steps: [{name: t, type: template/gone}]",
			acts: nil,
			ends: map[string]string{"t": "Failed", "END": "Failed StepFailed"},
		},
		{
			name:  "objects whose names and namespaces look alike are told apart",
			spec:  "steps: [" + loopOf("", coretest.Hook("x")) + "]",
			edits: []func(*stage){script("roll", workflow.StepResult{Items: workflow.ItemList{Listed: true, List: []run.Item{{Name: "a:b"}, {Name: "b", Namespace: "a"}, {Name: "b", Namespace: "a"}}}})},
			acts:  []string{"roll #1", "roll/:a:b/x #1", "roll/a:b/x #1"},
			ends:  map[string]string{"roll": "Succeeded", "END": "Succeeded "},
		},
		{
			name: "one that depends on a group that is out of time does not wait for ever",
			spec: "steps: [{name: g, type: step-group, properties: {mode: parallel, steps: [" + coretest.Hook("c", "dependsOn: [h]", "if: always") + ", {name: h, type: step-group, timeout: 5m, properties: {steps: [" + coretest.Hook("a") + ", " + coretest.Hook("b") + "]}}]}}]",
			edits: []func(*stage){when("g/h/a", func(s *stage) {
				s.now = coretest.Clock("02:05")
				s.j = workflow.Note(s.run, s.j, "g/h/a", workflow.StepResult{Done: true}, s.now)
			})},
			acts: []string{"g/c #1"},
			ends: map[string]string{"g": "Failed", "g/c": "Succeeded", "g/h": "Failed", "g/h/a": "Succeeded", "g/h/b": "Skipped", "END": "Failed StepFailed"},
		},
		{
			name: "an approval in finally waits 15 minutes",
			spec: "steps: [" + coretest.Hook("a") + "]\nfinally: [" + group("", ask, coretest.Hook("b")) + ", " + coretest.Hook("z") + "]",
			edits: []func(*stage){
				script("finally/g/ask", workflow.StepResult{ResumeAt: coretest.On("+1 02:00")}, notYet),
			},
			acts: []string{"a #1", "finally/g/ask #1", "stop finally/g/ask"},
			ends: map[string]string{"a": "Succeeded", "finally/g": "Failed", "finally/g/ask": "Failed", "finally/g/b": "Skipped", "finally/z": "Skipped", "END": "Failed CleanupFailed"},
		},
		{
			name:  "what is found first is put back, whatever was tried again between",
			spec:  "retryLimit: 1\nsteps: [" + loopOf("", scale, coretest.Hook("y")) + "]",
			edits: []func(*stage){script("roll", picks("i")), script("roll/i/x", before(`"first"`), workflow.StepResult{Done: true}), script("roll/i/y", failed("Boom"), workflow.StepResult{Done: true})},
			acts:  []string{"roll #1", "roll/i/x #1", "roll/i/y #1", "wait until 02:00:14", "roll/i/x #2", "roll/i/y #2", "restore roll/i/x"},
			ends:  map[string]string{"roll": "Succeeded", "roll/i/x": "Succeeded", "END": "Succeeded "},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := played(t, coretest.RunOf(t, c.spec), c.edits...)
			if diff := cmp.Diff(c.acts, s.acts); diff != "" {
				t.Errorf("acts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.ends, endsOf(s.j)); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
		})
	}
}

// begun is a run up to its n-th look, with what its steps say.
func begun(t testing.TB, spec string, looks int, edits ...func(*stage)) *stage {
	t.Helper()
	r := coretest.RunOf(t, spec)
	s := &stage{t: t, run: r, now: coretest.Clock("02:00"), j: workflow.NewJournal(r).Start(coretest.Clock("02:00")), script: map[string][]workflow.StepResult{}, at: map[string]func(*stage){}, restore: run.RestoreDone}
	for _, e := range edits {
		e(s)
	}
	for range looks {
		s.look()
	}
	return s
}

// look is one look, and what it asks for done.
func (s *stage) look() workflow.Action {
	j, m := workflow.Advance(s.run, s.j, s.now, s.sig)
	s.j = j
	s.did(m)
	return m
}

// advance is a look at an instant, of which nothing is done.
func (s *stage) advance(now string) workflow.Action {
	s.now = coretest.Clock(now)
	j, m := workflow.Advance(s.run, s.j, s.now, s.sig)
	s.j = j
	return m
}

func (s *stage) done(path string) {
	s.j = workflow.Note(s.run, s.j, path, workflow.StepResult{Done: true}, s.now)
}

func closedSince(t string) *run.ClosedGate {
	since := coretest.Clock(t)
	return &run.ClosedGate{Reason: "closed", Since: &since, Until: coretest.Clock("+1 08:00")}
}

func TestWhatCountsNowhereIsCountedOnce(t *testing.T) {
	ask := "{name: ask, type: approval}"
	t.Run("what works beside a question counts", func(t *testing.T) {
		s := begun(t, "maxDuration: 2h\nsteps: ["+parallel(0, ask, coretest.Hook("a"))+"]", 0)
		s.advance("02:00")
		s.now = coretest.Clock("02:50")
		s.done("g/a")
		s.advance("02:50")
		if since := s.j.HeldSince; since == nil || !since.Equal(coretest.Clock("02:50")) {
			t.Errorf("held since %v", since)
		}
	})
	t.Run("what works in a loop's item counts, also when the item is through", func(t *testing.T) {
		s := begun(t, "maxDuration: 2h\nsteps: ["+loopOf("", coretest.Hook("x"))+"]", 1, script("roll", picks("a", "b")))
		s.advance("02:00")
		s.sig.Hold = closedSince("02:05")
		s.now = coretest.Clock("02:50")
		s.done("roll/a/x")
		if m := s.advance("02:50"); m.Act != workflow.ActWait || s.j.HeldSince == nil || !s.j.HeldSince.Equal(coretest.Clock("02:50")) {
			t.Errorf("%+v, held since %v", m, s.j.HeldSince)
		}
	})
	t.Run("what a loop looks at counts", func(t *testing.T) {
		s := begun(t, "maxDuration: 2h\nsteps: ["+loopOf(", batches: [1], until: 'true'", coretest.Hook("x"))+"]", 1, script("roll", picks("a", "b")))
		s.advance("02:00")
		s.done("roll/a/x")
		s.sig.Hold = closedSince("02:05")
		s.advance("02:10")
		s.now = coretest.Clock("02:50")
		s.done("roll")
		if s.advance("02:50"); s.j.HeldSince == nil || !s.j.HeldSince.Equal(coretest.Clock("02:50")) {
			t.Errorf("held since %v", s.j.HeldSince)
		}
	})
	t.Run("also where it could not look, and tries again", func(t *testing.T) {
		s := begun(t, "maxDuration: 2h\nsteps: ["+parallel(0, ask, strings.Replace(loopOf("", coretest.Hook("x")), "type: for-each", "type: for-each, retry: {limit: 1, backoff: 5m}", 1))+"]", 0)
		s.advance("02:00")
		s.now = coretest.Clock("02:50")
		s.j = workflow.Note(s.run, s.j, "g/roll", failed("Unreadable"), s.now)
		if s.advance("02:50"); s.j.HeldSince == nil || !s.j.HeldSince.Equal(coretest.Clock("02:50")) {
			t.Errorf("held since %v", s.j.HeldSince)
		}
	})
	t.Run("a loop that looks behind a closed gate runs out of time", func(t *testing.T) {
		s := begun(t, "maxDuration: 1h\nsteps: ["+loopOf(", batches: [1], until: 'true'", coretest.Hook("x"))+"]", 1, script("roll", picks("a", "b")))
		s.advance("02:00")
		s.done("roll/a/x")
		s.sig.Hold = closedSince("02:05")
		s.advance("02:10")
		if s.advance("03:01"); s.j.End == nil || s.j.End.Reason != "Timeout" {
			t.Errorf("end %+v", s.j.End)
		}
	})
	t.Run("what begins although a gate is closed is in time", func(t *testing.T) {
		s := begun(t, "maxDuration: 1h\nsteps: ["+coretest.Hook("a")+", "+coretest.Hook("b")+", "+loopOf("", coretest.Hook("x"))+"]", 0)
		s.advance("02:00")
		s.done("a")
		s.sig.Hold = closedSince("02:05")
		if s.advance("03:01"); s.j.End == nil || s.j.End.Reason != "Timeout" || s.j.Record("b").StartedAt != nil {
			t.Errorf("end %+v, b %+v", s.j.End, s.j.Record("b"))
		}
	})
	t.Run("a group's timeout does not run behind the gate", func(t *testing.T) {
		s := begun(t, "onWindowClose: wait\nsteps: [{name: g, type: step-group, timeout: 30m, properties: {steps: ["+coretest.Hook("a")+", "+coretest.Hook("b")+"]}}]", 1)
		s.sig.Hold = closedSince("02:00:01")
		if m := s.advance("06:00"); m.Act != workflow.ActWait || s.j.Record("g").Phase != run.StepRunning {
			t.Fatalf("nobody looked: %+v %s", m, phases(s.j))
		}
		if m := s.advance("07:00"); m.Act != workflow.ActWait || !m.WakeAt.Equal(coretest.Clock("+1 08:00")) {
			t.Errorf("%+v %s", m, phases(s.j))
		}
		s.sig.Hold = nil
		if m := s.advance("08:00"); m.Path != "g/b" || !m.WakeAt.After(coretest.Clock("08:29")) || m.WakeAt.After(coretest.Clock("08:31")) {
			t.Errorf("%+v %s", m, phases(s.j))
		}
		if s.advance("08:31"); s.j.Record("g").Reason != "Timeout" {
			t.Errorf("%s", phases(s.j))
		}
	})
	t.Run("a run that is tried again is held no more", func(t *testing.T) {
		s := begun(t, "retryLimit: 1\nsteps: ["+ask+"]", 0)
		s.advance("02:00")
		s.advance("03:00")
		s.j = workflow.Note(s.run, s.j, "ask", permanent("ApprovalExpired"), s.now)
		if s.advance("03:00"); s.j.RetryAt == nil || s.j.HeldSince != nil || s.j.HeldSeconds != 3600 {
			t.Errorf("retry at %v, held since %v for %d", s.j.RetryAt, s.j.HeldSince, s.j.HeldSeconds)
		}
	})
	t.Run("who waits for an answer is not woken all the time, however little time is left", func(t *testing.T) {
		s := begun(t, "maxDuration: 1h\nsteps: ["+coretest.Hook("a")+", "+ask+"]", 0)
		s.advance("02:00")
		s.now = coretest.Clock("03:00").Add(-time.Millisecond)
		s.done("a")
		if _, m := workflow.Advance(s.run, s.j, s.now, s.sig); m.Path != "ask" || !m.WakeAt.IsZero() {
			t.Errorf("%+v", m)
		}
	})
}

func TestAdvanceLeavesTheJournalThatItIsGiven(t *testing.T) {
	s := begun(t, "steps: ["+loopOf("", coretest.Hook("x"))+"]", 1, script("roll", picks("a", "b")))
	s.advance("02:00")
	was := document.Clone(s.j)
	workflow.Advance(s.run, s.j, coretest.Clock("02:01"), workflow.Signals{Abort: &run.End{Phase: run.Aborted, Reason: "Aborted"}})
	if diff := cmp.Diff(was, s.j); diff != "" {
		t.Error(diff)
	}
}

func TestOneActOnAStepAtATime(t *testing.T) {
	count := func(m workflow.Action, path string) (n int) {
		for _, m := range m.All() {
			if m.Path == path && m.Act != workflow.ActWait {
				n++
			}
		}
		return n
	}
	t.Run("what stands in groups is stopped once", func(t *testing.T) {
		s := begun(t, "steps: [{name: g, type: step-group, properties: {steps: [{name: h, type: step-group, properties: {steps: ["+coretest.Hook("a", "timeout: 5m")+"]}}]}}]", 0)
		s.advance("02:00")
		if n := count(s.advance("02:05"), "g/h/a"); n != 1 {
			t.Errorf("%d times", n)
		}
	})
	t.Run("a lease that its step takes anew is not renewed beside it", func(t *testing.T) {
		silence := "{name: quiet, type: silence, properties: {alertmanager: 'https://am.example.org', matchers: [{name: a, value: b}]}}"
		s := begun(t, "steps: [{name: g, type: step-group, retry: {limit: 1, backoff: 30m}, properties: {steps: ["+coretest.Hook("a")+", {name: h, type: step-group, if: always, properties: {steps: ["+silence+"]}}]}}]", 3,
			script("g/a", failed("Boom"), workflow.StepResult{Done: true}), script("g/h/quiet", workflow.StepResult{Done: true, KeepAt: coretest.On("02:05")}))
		if n := count(s.advance("02:20"), "g/h/quiet"); n != 1 {
			t.Errorf("while it waits: %d acts", n)
		}
		s.advance("02:31")
		s.done("g/a")
		if m := s.advance("02:31"); count(m, "g/h/quiet") != 1 || m.Act != workflow.ActPass {
			t.Errorf("%+v", m)
		}
	})
}

func TestAPlaceInAGroupIsFreeOnceWhatHeldItIsStopped(t *testing.T) {
	s := begun(t, "steps: ["+parallel(1, coretest.Hook("a", "timeout: 5m"), coretest.Hook("b"))+"]", 0)
	s.advance("02:00")
	if m := s.advance("02:05"); m.Act != workflow.ActStop || s.j.Record("g/b").Phase != run.StepPending {
		t.Errorf("%+v: %s", m, phases(s.j))
	}
	s.j = workflow.NoteStop(s.j, "g/a", nil)
	if m := s.advance("02:05"); m.Path != "g/b" {
		t.Errorf("%+v: %s", m, phases(s.j))
	}
}

func TestAStepThatGoesOnTakesOnePlaceInAGroup(t *testing.T) {
	s := begun(t, "steps: ["+parallel(3, coretest.Hook("a"), coretest.Hook("b"), coretest.Hook("c"), coretest.Hook("d"), coretest.Hook("e"))+"]", 0)
	s.advance("02:00")
	s.done("g/a")
	s.advance("02:01")
	if d, e := s.j.Record("g/d").Phase, s.j.Record("g/e").Phase; d != run.StepRunning || e != run.StepPending {
		t.Errorf("of two that are left d is %s, e is %s: %s", d, e, phases(s.j))
	}
}

func TestWhatTheGateHoldsTakesNoPlaceInAGroup(t *testing.T) {
	s := begun(t, "onWindowClose: wait\nsteps: ["+parallel(1, coretest.Hook("z", "disruptive: false"), coretest.Hook("a"), coretest.Hook("b", "disruptive: false"))+"]", 1)
	s.sig.Hold = closedSince("02:00")
	if m := s.advance("02:01"); m.Act != workflow.ActPass || m.Path != "g/b" {
		t.Errorf("%+v: %s", m, phases(s.j))
	}
}

func TestLeasesAreGivenBackByAnAgentThatComesLate(t *testing.T) {
	silence := "{name: quiet, type: silence, properties: {alertmanager: 'https://am.example.org', matchers: [{name: a, value: b}]}}"
	s := begun(t, "steps: ["+silence+"]", 1, script("quiet", workflow.StepResult{Done: true, KeepAt: coretest.On("02:05")}))
	if m := s.advance("02:01"); m.Act != workflow.ActRelease {
		t.Fatalf("%+v", m)
	}
	s.sig.LeadingSince = coretest.Clock("02:04")
	if m := s.advance("02:04:30"); m.Act != workflow.ActRelease {
		t.Errorf("it came back at 02:04: %+v", m)
	}
	if m := s.advance("02:05:30"); m.Act != workflow.ActClose || !strings.Contains(s.j.Record("quiet").Message, "expires by itself") {
		t.Errorf("a minute later: %+v", m)
	}
}

func TestALeaseIsNotRenewedWhileOthersAreGivenBack(t *testing.T) {
	silence := func(name string) string {
		return "{name: " + name + ", type: silence, properties: {alertmanager: 'https://am.example.org', matchers: [{name: a, value: b}]}}"
	}
	leased := func(path string) func(*stage) {
		return script(path, workflow.StepResult{Done: true, KeepAt: coretest.On("02:05")})
	}
	s := begun(t, "steps: ["+silence("one")+", "+silence("two")+"]", 2, leased("one"), leased("two"))
	for _, m := range s.advance("02:05").All() {
		if m.Act == workflow.ActKeep {
			t.Errorf("%s is renewed beside", m.Path)
		}
	}
}

func TestARenewalKeepsWhatItDoesNotSay(t *testing.T) {
	j := run.Journal{Steps: []run.Record{{Path: "quiet", Message: "silenced", Memory: []byte(`"id"`)}}}
	kept := workflow.NoteKeep(j, "quiet", nil, coretest.Clock("02:05"), "").Record("quiet")
	if kept.Message != "silenced" || string(kept.Memory) != `"id"` || !kept.KeepAt.Equal(coretest.Clock("02:05")) {
		t.Errorf("%+v", kept)
	}
	told := workflow.NoteKeep(j, "quiet", []byte(`"other"`), coretest.Clock("02:05"), "refused").Record("quiet")
	if told.Message != "refused" || string(told.Memory) != `"other"` {
		t.Errorf("%+v", told)
	}
}

func TestTheTimeOfACleanupCountsFromItsBeginWhileAnAgentLooks(t *testing.T) {
	clock := coretest.Clock
	stopped := func(stopping bool, finished *time.Time) []run.Record {
		return []run.Record{{Path: "a", Phase: run.StepFailed, Stopping: stopping, FinishedAt: finished}}
	}
	for name, c := range map[string]struct {
		steps   []run.Record
		section *time.Time
		looking string
		from    string
	}{
		"a section": {section: new(clock("02:10")), looking: "01:00", from: "02:10"},
		"a section, and an agent that came later": {section: new(clock("02:10")), looking: "02:30", from: "02:30"},
		"no section yet":                {looking: "01:00", from: "01:00"},
		"a step that is stopped":        {steps: stopped(true, new(clock("02:05"))), section: new(clock("02:10")), looking: "01:00", from: "02:05"},
		"a step that has ended":         {steps: stopped(false, new(clock("02:05"))), section: new(clock("02:10")), looking: "01:00", from: "02:10"},
		"a step whose end is not known": {steps: stopped(true, nil), section: new(clock("02:10")), looking: "01:00", from: "02:10"},
	} {
		t.Run(name, func(t *testing.T) {
			j := run.Journal{Steps: c.steps, SectionAt: c.section}
			if got, want := workflow.CleanupEnds(j, "a", clock(c.looking)), clock(c.from).Add(plan.DefaultCleanupDuration); !got.Equal(want) {
				t.Errorf("it ends at %s, want %s", got, want)
			}
		})
	}
}

func TestUntilIsAskedOfWhatDidNotFail(t *testing.T) {
	s := begun(t, "steps: ["+loopOf(", until: 'true', onError: continue", coretest.Hook("x"))+"]", 3, script("roll", picks("a", "b")), script("roll/a/x", failed("Boom")))
	got := s.run.ItemsDone(s.j, "roll")
	if len(got) != 1 || got[0].Name != "b" {
		t.Errorf("%+v of %+v", got, s.j.Record("roll").Items)
	}
}

func TestALoopTellsOfItsFirstFailures(t *testing.T) {
	names := coretest.Repeat(func(i int) string { return fmt.Sprintf("i%d", i) }, 200)
	edits := []func(*stage){script("roll", picks(names...))}
	for _, name := range names {
		edits = append(edits, script("roll/"+name+"/x", failed(strings.Repeat("m", 500))))
	}
	s := begun(t, "steps: ["+loopOf(", onError: continue, maxConcurrency: 100", coretest.Hook("x"))+"]", 10, edits...)
	size, told := 0, 0
	for _, item := range s.j.Record("roll").Items {
		if size += len(item.Message); item.Message != "" {
			told++
		}
	}
	if told != 50 || size > 50*210 || s.j.Record("roll").Phase != run.StepFailed {
		t.Errorf("%d bytes of %d items, %s", size, told, phases(s.j))
	}
}

func TestAJournalThatLacksAStepStopsWhatIsAtWork(t *testing.T) {
	s := begun(t, "steps: ["+parallel(0, coretest.Hook("a"), coretest.Hook("b"))+"]", 0)
	s.advance("02:00")
	s.j.Steps = s.j.Steps[:2]
	if m := s.advance("02:01"); m.Act != workflow.ActStop || m.Path != "g/a" || s.j.End == nil || s.j.End.Reason != "JournalBroken" {
		t.Errorf("%+v: %s", m, phases(s.j))
	}
}

func TestProgressOfSteps(t *testing.T) {
	s := begun(t, "steps: ["+coretest.Hook("a")+", {name: g, type: step-group, properties: {steps: ["+coretest.Hook("b")+", "+loopOf("", coretest.Hook("x"), coretest.Hook("y"))+"]}}, "+coretest.Hook("z")+"]", 7, script("g/roll", picks("i1", "i2", "i3", "i4")))
	s.advance("02:01")
	want := run.Progress{Step: "g/roll/i3/x", Done: 2, Total: 4, Percent: 62}
	if diff := cmp.Diff(want, run.ProgressOf(s.j)); diff != "" {
		t.Errorf("%s\n%s", diff, phases(s.j))
	}
}
