package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// gateUntil is closed before an instant and open from there on.
func gateUntil(t time.Time) *schedule.Gate {
	return schedule.NewGate(schedule.GateSpec{Own: schedule.Stanza{Strategy: schedule.RestrictiveUntil, Until: &t}})
}

func TestAClosedGateHoldsARunUnlessItWasLetThrough(t *testing.T) {
	now, opens := clock("02:00"), clock("03:00")
	gate := gateUntil(opens)
	h := plan.HeldBy(gate, "r", plan.Bypass{}, now)
	if h == nil || h.NotReady || !h.Until.Equal(opens) || !strings.Contains(h.Message(), "opens at "+opens.UTC().Format(time.RFC3339)) {
		t.Fatalf("hold: %+v", h)
	}
	for name, passes := range map[string]*plan.Hold{
		"no gate":        plan.HeldBy(nil, "r", plan.Bypass{}, now),
		"it is open":     plan.HeldBy(gate, "r", plan.Bypass{}, opens),
		"a bypass of it": plan.HeldBy(gate, "r", plan.Bypass{Run: "r"}, now),
	} {
		if passes != nil {
			t.Errorf("%s: it is held: %+v", name, passes)
		}
	}
	if plan.HeldBy(gate, "r", plan.Bypass{Run: "another"}, now) == nil {
		t.Error("a bypass of another run lets it through")
	}
	if by := plan.PassedBy(gate, plan.Request{OutsideWindow: true, Actor: "ann", Reason: "fire"}, plan.Intent{}, now); by == nil || by.Name != "ann" || by.Reason != "fire" {
		t.Errorf("let through by %+v", by)
	}
	if by := plan.PassedBy(gate, plan.Request{OutsideWindow: true}, plan.Intent{}, opens); by != nil {
		t.Errorf("an open gate was passed by %+v", by)
	}
}

func TestAPendingRunWaitsForItsWindowUpToItsDeadline(t *testing.T) {
	r := run(func(s *plan.Spec) { s.StartDeadline = &plan.Duration{Duration: 30 * time.Minute} })
	hold := &plan.Hold{Reason: "closed", Until: clock("03:00")}
	a := plan.Admit(r, plan.Standing{Now: clock("02:00"), EntryOpen: true, Hold: hold})
	if a.Start || a.Waiting != plan.WaitWindow || !a.Until.Equal(clock("02:30").Add(time.Nanosecond)) {
		t.Errorf("in time: %+v", a)
	}
	late := clock("02:30").Add(time.Nanosecond)
	if a = plan.Admit(r, plan.Standing{Now: late, EntryOpen: true, Hold: hold}); a.Result != plan.Missed || a.Reason != plan.ReasonWindow {
		t.Errorf("too late: %+v", a)
	}
	hold.NotReady = true
	if a = plan.Admit(r, plan.Standing{Now: late, EntryOpen: true, Hold: hold}); a.Result != plan.Missed || a.Reason != plan.ReasonNotReady {
		t.Errorf("too late, and its policy is not ready: %+v", a)
	}
	r.Request = plan.Request{Kind: plan.ByToken, Token: "t", At: clock("02:00")}
	if a = plan.Admit(r, plan.Standing{Now: clock("23:00"), EntryOpen: true, Hold: hold}); a.Waiting != plan.WaitWindow {
		t.Errorf("a request without a slot does not wait: %+v", a)
	}
}

func TestAWindowThatClosesHoldsTheNextDisruptiveStepAndCountsNowhere(t *testing.T) {
	gentle := false
	r := run(func(s *plan.Spec) {
		s.OnWindowClose, s.MaxDuration = plan.CloseWait, &plan.Duration{Duration: 30 * time.Minute}
		s.Steps[1].Disruptive = &gentle
	})
	closed := plan.Signals{Hold: &plan.Hold{Reason: "closed", Until: clock("05:00")}}
	j := plan.NewJournal(r).Start(clock("02:00"))
	next := func(at string, sig plan.Signals) plan.Move {
		t.Helper()
		var m plan.Move
		j, m = plan.Advance(r, j, clock(at), sig)
		return m
	}
	done := func(at, path string) { j = plan.Note(r, j, path, plan.Report{Done: true}, clock(at)) }
	if m := next("02:00", plan.Signals{}); m.Path != "a" {
		t.Fatalf("first: %+v", m)
	}
	done("02:10", "a")
	if m := next("02:10", closed); m.Act != plan.ActPass || m.Path != "b" {
		t.Fatalf("a step that disrupts nothing is held: %+v", m)
	}
	done("02:11", "b")
	m := next("02:11", closed)
	if m.Act != plan.ActWait || !m.WakeAt.Equal(clock("05:00")) || j.HeldSince == nil || j.Steps[2].Phase != plan.StepPending {
		t.Fatalf("behind a closed gate: %+v %+v", m, j)
	}
	if m = next("04:59", closed); m.Act != plan.ActWait || j.End != nil {
		t.Fatalf("the wait counts in maxDuration: %+v %+v", m, j.End)
	}
	if m = next("05:00", plan.Signals{}); m.Act != plan.ActPass || m.Path != "c" || j.HeldSince != nil || j.HeldSeconds != int64((2*time.Hour+49*time.Minute).Seconds()) {
		t.Fatalf("once it opens: %+v held %d s", m, j.HeldSeconds)
	}
	if m = next("05:18", plan.Signals{}); m.Act != plan.ActPass {
		t.Fatalf("29 of 30 minutes were used: %+v", m)
	}
	if m = next("05:20", plan.Signals{}); j.End == nil || j.End.Reason != "Timeout" {
		t.Fatalf("31 of 30 minutes were used: %+v", m)
	}
}

func TestAWindowThatClosesEndsARunThatSaysSo(t *testing.T) {
	closed := plan.Signals{Hold: &plan.Hold{Reason: "closed", Until: clock("05:00")}}
	r := run(func(s *plan.Spec) { s.OnWindowClose = plan.CloseAbort })
	j, m := plan.Advance(r, plan.NewJournal(r).Start(clock("02:00")), clock("02:00"), closed)
	if m.Act != plan.ActClose || j.End == nil || j.End.Result != plan.Missed || j.End.Reason != plan.ReasonWindow || j.StartedAt != nil {
		t.Errorf("before its first step: %+v %+v", m, j.End)
	}
	j, _ = plan.Advance(r, plan.NewJournal(r).Start(clock("02:00")), clock("02:00"), plan.Signals{})
	j = plan.Note(r, j, "a", plan.Report{Done: true}, clock("02:01"))
	j, m = plan.Advance(r, j, clock("02:02"), closed)
	if m.Act != plan.ActClose || j.End == nil || j.End.Phase != plan.RunAborted || j.End.Reason != "WindowClosed" || j.Steps[1].Phase != plan.StepSkipped {
		t.Errorf("between two steps: %+v %+v", m, j.End)
	}
	r.Spec.OnWindowClose = plan.CloseFinish
	j, _ = plan.Advance(r, plan.NewJournal(r).Start(clock("02:00")), clock("02:00"), closed)
	if j.Steps[0].Phase != plan.StepRunning {
		t.Errorf("what has started may finish: %+v", j.Steps[0])
	}
}

func TestAPolicyThatIsNotReadyHoldsEverythingButWhatIsAskedForOutsideIt(t *testing.T) {
	unready := schedule.NewGate(schedule.GateSpec{Policies: []*schedule.Policy{schedule.PolicyNotReady("p", "it is broken")}})
	f := plan.Facts{
		Now: clock("02:00"), LookingSince: clock("01:00"), Namespace: "shop", Name: "orders", UID: "uid", CreatedAt: clock("01:00"),
		Spec: run().Spec, Ready: plan.Readiness{OK: true}, Gate: unready, Ledger: &plan.Ledger{PlanUID: "uid", Watermark: clock("01:00"), Created: true},
		Intent: plan.Intent{Token: "t"}, NameOf: func(r plan.Request) string { return "run-" + r.Token },
	}
	d := plan.Decide(f)
	if len(d.Claims) != 0 || d.Ready.OK || d.Phase != plan.PhaseWaiting || !strings.Contains(d.Message, "it is broken") {
		t.Errorf("claims %v, ready %+v, %s: %s", d.Claims, d.Ready, d.Phase, d.Message)
	}
	f.Intent.Asked = plan.TriggerOptions{Token: "t", OutsideWindow: true, Reason: "fire"}
	if d = plan.Decide(f); len(d.Claims) != 1 || !d.Claims[0].OutsideWindow {
		t.Errorf("claims %v", d.Claims)
	}
	f.Intent.Asked.Token = "another"
	if d = plan.Decide(f); len(d.Claims) != 0 {
		t.Errorf("the options of another trigger let it through: %v", d.Claims)
	}
}

func TestTheTimeBehindAGateCountsNowhereWhoeverWasLooking(t *testing.T) {
	since := clock("02:05")
	hold := &plan.Hold{Reason: "closed", Since: &since, Until: clock("08:00")}
	r := run(func(s *plan.Spec) {
		s.OnWindowClose, s.MaxDuration = plan.CloseWait, &plan.Duration{Duration: time.Hour}
	})
	begin := func() plan.Journal {
		j, _ := plan.Advance(r, plan.NewJournal(r).Start(clock("02:00")), clock("02:00"), plan.Signals{})
		return plan.Note(r, j, "a", plan.Report{Done: true}, clock("02:01"))
	}
	t.Run("a pause came first", func(t *testing.T) {
		j, m := plan.Advance(r, begin(), clock("02:06"), plan.Signals{Held: "paused", Hold: hold})
		if m.Act != plan.ActWait || j.HeldSince == nil || j.Message != "paused" {
			t.Fatalf("%+v, held since %v, %q", m, j.HeldSince, j.Message)
		}
		if j, _ = plan.Advance(r, j, clock("07:00"), plan.Signals{Held: "paused", Hold: hold}); j.End != nil {
			t.Errorf("it ended: %+v", j.End)
		}
	})
	t.Run("nobody looked when it closed", func(t *testing.T) {
		j, m := plan.Advance(r, begin(), clock("06:00"), plan.Signals{Hold: hold})
		if j.End != nil || m.Act != plan.ActWait || j.HeldSince == nil || !j.HeldSince.Equal(since) {
			t.Fatalf("%+v, held since %v, end %+v", m, j.HeldSince, j.End)
		}
		if j, m = plan.Advance(r, j, clock("08:00"), plan.Signals{}); j.End != nil || m.Path != "b" {
			t.Errorf("once it opens: %+v, end %+v", m, j.End)
		}
	})
	t.Run("nobody looked, and it was late already", func(t *testing.T) {
		late := clock("04:00")
		j, _ := plan.Advance(r, begin(), clock("06:00"), plan.Signals{Hold: &plan.Hold{Reason: "closed", Since: &late, Until: clock("08:00")}})
		if j.End == nil || j.End.Reason != "Timeout" {
			t.Errorf("end %+v", j.End)
		}
	})
	t.Run("an abort ends the hold, too", func(t *testing.T) {
		j, _ := plan.Advance(r, begin(), clock("02:06"), plan.Signals{Hold: hold})
		j, _ = plan.Advance(r, j, clock("02:07"), plan.Signals{Hold: hold, Abort: &plan.End{Phase: plan.RunAborted, Reason: "Aborted"}})
		if j.HeldSince != nil || strings.Contains(j.Message, "window") {
			t.Errorf("held since %v, %q", j.HeldSince, j.Message)
		}
	})
	t.Run("doubt holds a run that would end at the window's end", func(t *testing.T) {
		r := r
		r.Spec.OnWindowClose = plan.CloseAbort
		j, m := plan.Advance(r, begin(), clock("02:06"), plan.Signals{Hold: &plan.Hold{Reason: "not there yet", NotReady: true}})
		if j.End != nil || m.Act != plan.ActWait {
			t.Errorf("%+v, end %+v", m, j.End)
		}
	})
	t.Run("who lets it go on is written down", func(t *testing.T) {
		j, _ := plan.Advance(r, begin(), clock("02:06"), plan.Signals{Passed: &plan.Actor{Name: "ann", Reason: "fire"}})
		if j.Passed == nil || j.Passed.Name != "ann" {
			t.Errorf("passed: %+v", j.Passed)
		}
	})
}

func TestAPauseInMidRunCountsNowhere(t *testing.T) {
	r := run(func(s *plan.Spec) { s.MaxDuration = &plan.Duration{Duration: 30 * time.Minute} })
	paused := plan.Signals{Held: "paused: no new step begins"}
	begin := func() plan.Journal {
		j, _ := plan.Advance(r, plan.NewJournal(r).Start(clock("02:00")), clock("02:00"), plan.Signals{})
		return j
	}
	ends := func(j plan.Journal, at string) plan.Journal {
		return plan.Note(r, j, "a", plan.Report{Done: true}, clock(at))
	}
	t.Run("from the end of the step at work until it is resumed", func(t *testing.T) {
		j, m := plan.Advance(r, begin(), clock("02:05"), paused)
		if j.HeldSince != nil || m.Act != plan.ActPass {
			t.Fatalf("the step at work goes on, and its time counts: %+v, held since %v", m, j.HeldSince)
		}
		j, m = plan.Advance(r, ends(j, "02:10"), clock("02:10"), paused)
		if m.Act != plan.ActWait || j.HeldSince == nil || !j.HeldSince.Equal(clock("02:10")) || j.Message != paused.Held {
			t.Fatalf("%+v, held since %v, %q", m, j.HeldSince, j.Message)
		}
		if !m.WakeAt.IsZero() {
			t.Errorf("it wakes at %s, and nothing is to be done before somebody resumes it", m.WakeAt)
		}
		if j, _ = plan.Advance(r, j, clock("+1 02:10"), paused); j.End != nil {
			t.Fatalf("after a day: %+v", j.End)
		}
		j, m = plan.Advance(r, j, clock("+1 02:10"), plan.Signals{})
		if j.End != nil || m.Path != "b" || j.HeldSeconds != 24*3600 || j.Message != "" {
			t.Fatalf("%+v, held for %d s, %q, end %+v", m, j.HeldSeconds, j.Message, j.End)
		}
		if j, _ = plan.Advance(r, j, clock("+1 02:29"), plan.Signals{}); j.End != nil {
			t.Errorf("29 of 30 minutes were used: %+v", j.End)
		}
		if j, _ = plan.Advance(r, j, clock("+1 02:30"), plan.Signals{}); j.End == nil || j.End.Reason != "Timeout" {
			t.Errorf("30 of 30 minutes were used: %+v", j.End)
		}
	})
	t.Run("also where nobody looked when it was paused", func(t *testing.T) {
		j, m := plan.Advance(r, ends(begin(), "02:10"), clock("09:00"), paused)
		if j.End != nil || m.Act != plan.ActWait || j.HeldSince == nil || !j.HeldSince.Equal(clock("02:10")) {
			t.Errorf("%+v, held since %v, end %+v", m, j.HeldSince, j.End)
		}
	})
	t.Run("a step's own timeout goes on", func(t *testing.T) {
		r := r
		r.Spec.Steps = append([]plan.Step(nil), r.Spec.Steps...)
		r.Spec.Steps[0].Timeout = duration("5m")
		j, _ := plan.Advance(r, plan.NewJournal(r).Start(clock("02:00")), clock("02:00"), plan.Signals{})
		if j, _ = plan.Advance(r, j, clock("02:06"), paused); j.Record("a").Reason != "Timeout" {
			t.Errorf("a: %+v", j.Record("a"))
		}
	})
	t.Run("an abort ends it all the same", func(t *testing.T) {
		j, _ := plan.Advance(r, ends(begin(), "02:10"), clock("02:10"), paused)
		sig := paused
		sig.Abort = &plan.End{Phase: plan.RunAborted, Reason: "Aborted", Message: "by jane"}
		j, m := plan.Advance(r, j, clock("02:20"), sig)
		if j.End == nil || j.End.Reason != "Aborted" || m.Act != plan.ActClose || j.HeldSince != nil {
			t.Errorf("%+v, end %+v, held since %v", m, j.End, j.HeldSince)
		}
	})
}

func TestManyStanzasAreNotMadeExpensiveByEachOther(t *testing.T) {
	b := plan.NewBook("maint-system")
	for i := range 40 {
		next := plan.PolicyRef{Name: "p" + strings.Repeat("x", i+1)}
		put(t, b, "shop", "p"+strings.Repeat("x", i), "strategy: Permissive", plan.StanzaText{Strategy: schedule.ByPolicy, Policies: []plan.PolicyRef{next, next}})
	}
	began := time.Now()
	b.Gate(plan.Question{Namespace: "shop", Policies: []plan.PolicyRef{{Name: "p"}}}).Verdict(began)
	if took := time.Since(began); took > time.Second {
		t.Errorf("40 policies that name each other twice took %s", took)
	}
}
