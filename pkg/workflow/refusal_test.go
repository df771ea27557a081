package workflow

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestARefusalIsFinalWhenItWasSaidTwiceHalfAMinuteApart(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		at    []time.Duration
		final bool
	}{
		"once":                          {at: []time.Duration{0}},
		"twice at once":                 {at: []time.Duration{0, time.Second}},
		"a moment before half a minute": {at: []time.Duration{0, 30*time.Second - 1}},
		"twice, half a minute apart":    {at: []time.Duration{0, 30 * time.Second}, final: true},
		"often, and still after it":     {at: []time.Duration{0, 2 * time.Second, 10 * time.Second, time.Minute}, final: true},
	} {
		t.Run(name, func(t *testing.T) {
			var r Refusal
			final := false
			for i, after := range c.at {
				if final {
					t.Fatalf("final before the refusal at %s", after)
				}
				r, final = r.Again(start.Add(after))
				if r.Times != i+1 || !r.Since.Equal(start) {
					t.Errorf("%+v", r)
				}
			}
			if final != c.final {
				t.Errorf("final is %t", final)
			}
		})
	}
}

func TestPausesAfterRefusalsGrowToHalfAMinuteAndMeetTheVerdict(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := Refusal{Since: start, Times: 1}
	for since, want := range map[time.Duration]time.Duration{
		0: 2 * time.Second, 10 * time.Second: 5 * time.Second, 28 * time.Second: 2 * time.Second, 30 * time.Second: 15 * time.Second, time.Hour: 30 * time.Second,
	} {
		now := start.Add(since)
		if got := r.VerdictAt(now).Sub(now); got != want {
			t.Errorf("after %s the pause is %s, not %s", since, got, want)
		}
	}
}

func TestAnAttemptWaitsAsLongAsWasAskedFor(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ asked, want time.Duration }{
		"nobody asked":              {want: 10 * time.Second},
		"for less than the backoff": {asked: 3 * time.Second, want: 10 * time.Second},
		"for more":                  {asked: 4 * time.Minute, want: 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r := run.Run{Spec: plan.Spec{Steps: []plan.Step{{Name: "a", Type: "webhook", Retry: &plan.Retry{Limit: 3}, Timeout: &document.Duration{Duration: 2 * time.Minute}}}}}
			j, _ := Advance(r, NewJournal(r).Start(start), start, Signals{})
			rep := StepResult{Failed: true, Reason: "Status", Message: "503"}
			if c.asked > 0 {
				until := start.Add(c.asked)
				rep.NotBefore = &until
			}
			j = Note(r, j, "a", rep, start)
			if got := j.Record("a").NotBefore.Sub(start); got != c.want {
				t.Errorf("the next attempt waits %s, not %s", got, c.want)
			}
			j, m := Advance(r, j, start.Add(time.Second), Signals{})
			if want := min(c.want, 2*time.Minute); m.Act != ActWait || m.WakeAt.Sub(start) != want {
				t.Errorf("act %d, wakes after %s and not %s", m.Act, m.WakeAt.Sub(start), want)
			}
			if j, _ = Advance(r, j, start.Add(2*time.Minute), Signals{}); j.Record("a").Reason != "Timeout" {
				t.Errorf("the step's timeout does not bound it: %+v", j.Record("a"))
			}
		})
	}
}

func TestTheDeadlineOfAWaitNamesWhatItWaitedFor(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for kind, want := range map[string]string{
		"wait":    "did not end within its timeout 1m0s; it waited: Node/a: condition Rolled is not there",
		"webhook": "did not end within its timeout 1m0s",
	} {
		r := run.Run{Spec: plan.Spec{Steps: []plan.Step{{Name: "a", Type: kind, Timeout: &document.Duration{Duration: time.Minute}}}}}
		j, _ := Advance(r, NewJournal(r).Start(start), start, Signals{})
		j = Note(r, j, "a", StepResult{Message: "Node/a: condition Rolled is not there"}, start)
		j, _ = Advance(r, j, start.Add(time.Minute), Signals{})
		if rec := j.Record("a"); rec.Reason != "Timeout" || rec.Message != want {
			t.Errorf("%s: %s, %q, want %q", kind, rec.Reason, rec.Message, want)
		}
	}
}

func TestWhatWaitsForARightSaysSoAndItsDeadlineNamesIt(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := run.Run{Spec: plan.Spec{
		Steps:   []plan.Step{{Name: "a", Type: "scale", Properties: map[string]any{"restoreAfter": true}, Timeout: &document.Duration{Duration: time.Minute}}},
		Finally: []plan.Step{{Name: "b", Type: "scale"}},
	}}
	j, _ := Advance(r, NewJournal(r).Start(start), start, Signals{})
	j = Note(r, j, "a", StepResult{Before: []byte(`{}`), Seen: Seen{Waits: "grant patch" + FailsBy(start)}}, start)
	if got := j.Notice(); got != "step a waits: grant patch; unless that is so by 2026-03-01T12:00:00Z, the step fails" {
		t.Errorf("the run says %q", got)
	}
	at := start.Add(time.Minute)
	j, m := Advance(r, j, at, Signals{})
	if rec := j.Record("a"); rec.Reason != "Timeout" || rec.Message != "did not end within its timeout 1m0s; it waited: grant patch" || m.Act != ActStop {
		t.Fatalf("%+v, act %d", rec, m.Act)
	}
	j, m = Advance(r, NoteStop(NoteWaits(j, "a", "stop"), "a", nil), at, Signals{})
	if m.Act != ActRestore || j.Notice() != "" {
		t.Fatalf("act %d, %q", m.Act, j.Notice())
	}
	j = NoteWaits(j, "a", "grant patch again"+CleanupWaitsUntil(at))
	if got := j.Notice(); got != "step a waits: grant patch again; cleanup waits for it until 2026-03-01T12:01:00Z" {
		t.Errorf("the run says %q", got)
	}
	j, m = Advance(r, j, at.Add(plan.DefaultCleanupDuration), Signals{})
	if rec := j.Record("a"); rec.Restored != run.RestoreFailed || rec.RestoreMessage != "was not restored within 15m0s; it waited: grant patch again" || rec.Waits != "" || m.Path != "finally/b" {
		t.Errorf("%+v, then %s", rec, m.Path)
	}
	j = Note(r, j, "finally/b", StepResult{Seen: Seen{Waits: "create the account"}}, at.Add(plan.DefaultCleanupDuration))
	j, _ = Advance(r, j, at.Add(2*plan.DefaultCleanupDuration), Signals{})
	if rec := j.Record("finally/b"); rec.Reason != "Timeout" || rec.Message != "finally did not end within 15m0s; it waited: create the account" {
		t.Errorf("%+v", rec)
	}
}
