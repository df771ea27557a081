package trigger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// pending is a run that waits for its start, and standing what surrounds it:
// everything is in order, and a case shows what is not.
func pending(r run.Request) run.Run {
	return run.Run{Name: "r", Namespace: "shop", Plan: "orders", PlanUID: "uid", Request: r, Spec: plan.Spec{}.Defaulted()}
}

func standing(now string, edits ...func(*trigger.AdmissionFacts)) trigger.AdmissionFacts {
	s := trigger.AdmissionFacts{Now: coretest.Clock(now), EntryOpen: true}
	for _, e := range edits {
		e(&s)
	}
	return s
}

func labelRequest() run.Request {
	return run.Request{Kind: run.ByLabel, Label: "k", Value: "v", TargetUID: "t", Ordinal: 3, At: coretest.Clock("02:00")}
}

func targetWith(uid string, handled int64, labels ...string) *trigger.Target {
	t := &trigger.Target{UID: uid, Labels: map[string]trigger.TargetLabel{}, Handled: map[string]int64{"k": handled}}
	for i := 0; i < len(labels); i += 2 {
		t.Labels[labels[i]] = trigger.TargetLabel{Value: labels[i+1]}
	}
	return t
}

// verdictOf is an admission in a word.
func verdictOf(a trigger.Admission) string {
	switch {
	case a.Start:
		return "start"
	case a.Void:
		return "void"
	case a.Ends():
		return fmt.Sprintf("%s(%s)", a.Result, a.Reason)
	}
	got := "wait " + a.Waiting
	if !a.Until.IsZero() {
		got += " until " + a.Until.Format("15:04:05")
	}
	return got
}

func TestAdmit(t *testing.T) {
	slot := pending(coretest.SlotAt("02:00"))
	label := pending(labelRequest())
	jittered := pending(coretest.SlotAt("02:00"))
	jittered.Spec.Triggers.Schedules = []plan.Schedule{{Cron: "0 2 * * *", Jitter: coretest.Duration("30m")}}
	start := trigger.StartsAt(jittered.Spec, "shop", "orders", coretest.Clock("02:00"), 0)
	type set = func(*trigger.AdmissionFacts)
	busy := func(s *trigger.AdmissionFacts) { s.PlanBusy = "other" }
	locked := func(s *trigger.AdmissionFacts) { s.LockedBy = "other" }
	paused := func(s *trigger.AdmissionFacts) { s.Paused = "paused" }
	doubt := func(s *trigger.AdmissionFacts) { s.Doubt.Why = "clocks differ" }
	doubted := func(from, until string) set {
		return func(s *trigger.AdmissionFacts) {
			s.Doubt.From, s.Doubt.Until = coretest.Clock(from), coretest.Clock(until)
		}
	}
	notReady := func(s *trigger.AdmissionFacts) { s.NotReady = "no account" }
	closed := func(s *trigger.AdmissionFacts) { s.EntryOpen = false }
	abort := func(s *trigger.AdmissionFacts) { s.Abort = &run.End{Phase: run.Aborted, Message: "aborted by jane"} }
	superseded := func(s *trigger.AdmissionFacts) { s.Superseded = true }
	target := func(tt *trigger.Target) set { return func(s *trigger.AdmissionFacts) { s.Target = tt } }
	for _, c := range []struct {
		name string
		run  run.Run
		s    trigger.AdmissionFacts
		want string
	}{
		{"nothing in its way", slot, standing("02:00"), "start"},
		{"at its deadline", slot, standing("03:00"), "start"},
		{"claimed in time, started too late (nobody was there)", slot, standing("03:00:01"), "Missed(deadline)"},
		{"a token has no deadline", pending(run.Request{Kind: run.ByToken, At: coretest.Clock("02:00")}), standing("+1 02:00"), "start"},
		{"its entry is not open", slot, standing("02:00", closed, abort), "void"},
		{"aborted", slot, standing("02:00", abort), "Skipped(aborted)"},
		{"aborted in doubt of the clock", slot, standing("02:00", abort, doubt), "Skipped(aborted)"},
		{"in doubt of the clock", slot, standing("02:00", doubt), "wait clock until 02:00:30"},
		{"in doubt of the clock nothing is recorded, not even a deadline", slot, standing("09:00", doubt), "wait clock until 09:00:30"},
		{"its deadline passed while the clock was in doubt", slot, standing("04:00", doubted("02:30", "03:30")), "Missed(clock)"},
		{"the same, whatever it waits for now", slot, standing("04:00", doubted("02:30", "03:30"), busy), "Missed(clock)"},
		{"its deadline passed before the clock was in doubt", slot, standing("04:00", doubted("03:30", "03:40")), "Missed(deadline)"},
		{"its deadline passed after the clock was in doubt", slot, standing("04:00", doubted("02:10", "02:20")), "Missed(deadline)"},
		{"the clock was in doubt, and it is in time", slot, standing("03:00", doubted("02:10", "02:50")), "start"},
		{"nor that another takes its place", slot, standing("02:00", doubt, superseded), "wait clock until 02:00:30"},
		{"superseded", slot, standing("02:00", superseded), "Missed(superseded)"},
		{"paused", slot, standing("02:00", paused), "wait pause until 03:00:00"},
		{"paused beyond its deadline", slot, standing("03:00:01", paused), "Skipped(paused)"},
		{"not ready", slot, standing("02:00", notReady), "wait not-ready until 02:00:30"},
		{"not ready beyond its deadline", slot, standing("03:00:01", notReady), "Missed(not-ready)"},
		{"another run of the plan is at work", slot, standing("02:00", busy), "wait queue until 03:00:00"},
		{"for too long", slot, standing("03:00:01", busy), "Missed(deadline)"},
		{"its target is held", slot, standing("02:00", locked), "wait lock until 03:00:00"},
		{"for too long ", slot, standing("03:00:01", locked), "Missed(lock)"},
		{"a token waits without end", pending(run.Request{Kind: run.ByToken, At: coretest.Clock("02:00")}), standing("+1 02:00", locked), "wait lock"},
		{"before its jitter is over", jittered, standing("02:00"), "wait jitter until " + start.Format("15:04:05")},
		{"after its jitter", jittered, standing(start.Format("15:04:05")), "start"},
		{"Forbid: another began before its jitter was over", jittered, standing(start.Format("15:04:05"), busy), "Skipped(busy)"},
		{"the deadline counts from slot and jitter", jittered, standing(start.Add(time.Hour).Format("15:04:05")), "start"},

		{"a label that is there", label, standing("02:00", target(targetWith("t", 2, "k", "v"))), "start"},
		{"a label with another value now", label, standing("02:00", target(targetWith("t", 2, "k", "w"))), "Skipped(aborted)"},
		{"a label that was taken away", label, standing("02:00", target(targetWith("t", 2))), "Skipped(aborted)"},
		{"a label that was taken away while paused", label, standing("02:00", target(targetWith("t", 2)), paused), "Skipped(aborted)"},
		{"its number is handled", label, standing("02:00", target(targetWith("t", 3, "k", "v"))), "Skipped(aborted)"},
		{"a higher number is handled", label, standing("02:00", target(targetWith("t", 9, "k", "v"))), "Skipped(aborted)"},
		{"another object of that name", label, standing("02:00", target(targetWith("t2", 0, "k", "v"))), "Skipped(aborted)"},
		{"its target is gone", label, standing("02:00", func(s *trigger.AdmissionFacts) { s.TargetGone = true }), "Skipped(aborted)"},
		{"its target may not be read", label, standing("02:00", notReady), "wait not-ready until 02:00:30"},
		{"a label run waits without end", label, standing("+1 02:00", target(targetWith("t", 2, "k", "v")), busy), "wait queue"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := trigger.Admit(c.run, c.s)
			got := verdictOf(a)
			if got != c.want {
				t.Errorf("%s, not %s (%s)", got, c.want, a.Message)
			}
			if !a.Start && a.Message == "" {
				t.Error("does not say why")
			}
			if !a.Until.IsZero() && !a.Until.After(c.s.Now) {
				t.Errorf("looks again at once, for ever: %s", a.Until)
			}
		})
	}
}

// Whoever looks later finds in the ledger which run it was that held the target, and who froze or
// paused what.
func TestASlotThatIsMissedNamesWhatKeptItFromItsStart(t *testing.T) {
	const late = "did not start within startDeadline 1h0m0s"
	const frozen, paused, unready = "RestrictiveUntil 2026-11-20T04:00:00Z by jane: CHG-1", "paused by jane: CHG-1", "account shop/orders may not get deployments"
	for name, c := range map[string]struct {
		at            string
		edit          func(*trigger.AdmissionFacts)
		message, said string
	}{
		"a lock":                  {"03:00:01", func(s *trigger.AdmissionFacts) { s.LockedBy = "bank/maint-run-holds-a" }, late + ": run bank/maint-run-holds-a held the same target", ""},
		"a freeze":                {"03:00:01", func(s *trigger.AdmissionFacts) { s.Hold = &run.ClosedGate{Reason: frozen} }, late + ": " + frozen, frozen},
		"a policy that is broken": {"03:00:01", func(s *trigger.AdmissionFacts) { s.Hold = &run.ClosedGate{Reason: unready, NotReady: true} }, late + ": " + unready, unready},
		"a pause":                 {"03:00:01", func(s *trigger.AdmissionFacts) { s.Paused = paused }, late + ": " + paused, paused},
		"an account":              {"03:00:01", func(s *trigger.AdmissionFacts) { s.NotReady = unready }, late + ": " + unready, unready},
		"another run of the plan": {"03:00:01", func(s *trigger.AdmissionFacts) { s.PlanBusy = "other" }, late, ""},
		"a newer slot":            {"02:30", func(s *trigger.AdmissionFacts) { s.Superseded = true }, "a newer slot takes its place", ""},
		"a newer slot in a freeze": {
			"02:30", func(s *trigger.AdmissionFacts) { s.Superseded, s.Hold = true, &run.ClosedGate{Reason: frozen} },
			"a newer slot takes its place: " + frozen, frozen,
		},
	} {
		a := trigger.Admit(pending(coretest.SlotAt("02:00")), standing(c.at, c.edit))
		if a.Message != c.message || a.Said != c.said {
			t.Errorf("%s: it says %q (%q), want %q (%q)", name, a.Message, a.Said, c.message, c.said)
		}
		if j := trigger.Admitted(run.Journal{}, a, coretest.Clock(c.at)); j.End.Said != c.said {
			t.Errorf("%s: its journal says %q", name, j.End.Said)
		}
	}
}

// A pending run of the plan nightly, on the object t, beside another one.
func TestWhatAnotherRunHolds(t *testing.T) {
	dry := func(r *run.Run) { r.Request.DryRun = true }
	otherPlan := func(r *run.Run) { r.PlanUID = "other" }
	otherTarget := func(r *run.Run) { r.TargetUID = "t2" }
	for name, c := range map[string]struct {
		pending, other func(*run.Run)
		phase          run.Phase
		plan, target   bool
	}{
		"it has its plan and its target":                 {nil, nil, run.Running, true, true},
		"it has not begun":                               {nil, nil, run.Pending, false, false},
		"it is over":                                     {nil, nil, run.Succeeded, false, false},
		"it has another target":                          {nil, otherTarget, run.Running, true, false},
		"it is of another plan":                          {nil, otherPlan, run.Running, false, true},
		"runs of the plan may overlap":                   {func(r *run.Run) { r.Spec.ConcurrencyPolicy = plan.Allow }, nil, run.Running, false, true},
		"neither has a target":                           {func(r *run.Run) { r.TargetUID = "" }, func(r *run.Run) { r.TargetUID = "" }, run.Running, true, false},
		"it is the run itself":                           {nil, func(r *run.Run) { r.Name = "mine" }, run.Running, false, false},
		"it has the same name in another namespace":      {nil, func(r *run.Run) { r.Name, r.Namespace, r.PlanUID = "mine", "bank", "other" }, run.Running, false, true},
		"it is dry, and this one is not":                 {nil, dry, run.Running, false, false},
		"both are dry: its plan is busy, its target not": {dry, dry, run.Running, true, false},
		"this one is dry":                                {dry, nil, run.Running, true, true},
	} {
		mine, other := coretest.NewRun(), coretest.NewRun()
		mine.Name, other.Name, mine.TargetUID, other.TargetUID = "mine", "other", "t", "t"
		for r, edit := range map[*run.Run]func(*run.Run){&mine: c.pending, &other: c.other} {
			if edit != nil {
				edit(r)
			}
		}
		if itsPlan, itsTarget := trigger.Holds(other, c.phase, mine); itsPlan != c.plan || itsTarget != c.target {
			t.Errorf("%s: plan %t, target %t", name, itsPlan, itsTarget)
		}
	}
}

// A label run ends only after its label is gone, and takes away only what
// started it.
func TestEndLabel(t *testing.T) {
	run := pending(labelRequest())
	for name, c := range map[string]struct {
		target *trigger.Target
		others trigger.LabelSharers
		want   trigger.LabelEnd
	}{
		"as it was":                                              {targetWith("t", 2, "k", "v"), trigger.LabelSharers{}, trigger.LabelEnd{Write: true, Remove: true, Number: 3}},
		"with another value: it stays":                           {targetWith("t", 2, "k", "w"), trigger.LabelSharers{}, trigger.LabelEnd{}},
		"taken away: the number counts":                          {targetWith("t", 2), trigger.LabelSharers{}, trigger.LabelEnd{Write: true, Number: 3}},
		"numbered before a crash":                                {targetWith("t", 3, "k", "v"), trigger.LabelSharers{}, trigger.LabelEnd{}},
		"a later request was handled":                            {targetWith("t", 4, "k", "v"), trigger.LabelSharers{}, trigger.LabelEnd{}},
		"another plan still needs it":                            {targetWith("t", 2, "k", "v"), trigger.LabelSharers{Need: true, Highest: 5}, trigger.LabelEnd{}},
		"the last of two plans, whose number was the lower one":  {targetWith("t", 2, "k", "v"), trigger.LabelSharers{Highest: 5}, trigger.LabelEnd{Write: true, Remove: true, Number: 5}},
		"the last of two plans, whose number was the higher one": {targetWith("t", 2, "k", "v"), trigger.LabelSharers{Highest: 1}, trigger.LabelEnd{Write: true, Remove: true, Number: 3}},
		"another object of that name":                            {targetWith("t2", 2, "k", "v"), trigger.LabelSharers{}, trigger.LabelEnd{}},
		"no target":                                              {nil, trigger.LabelSharers{}, trigger.LabelEnd{}},
	} {
		if diff := cmp.Diff(c.want, trigger.EndLabel(run, c.target, c.others)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := trigger.EndLabel(pending(coretest.SlotAt("02:00")), targetWith("t", 0, "k", "v"), trigger.LabelSharers{}); got != (trigger.LabelEnd{}) {
		t.Errorf("a run without a label touches one: %+v", got)
	}
}

func TestARunGivesWayOnlyToOneThatWaitsForNothingElse(t *testing.T) {
	old := coretest.NewRun(func(s *plan.Spec) { s.ConcurrencyPolicy = plan.Replace })
	newer := func(waiting string) []trigger.ActiveRun {
		return []trigger.ActiveRun{{Name: old.Name, Phase: run.Running, Request: old.Request}, {Name: "new", Phase: run.Pending, Waiting: waiting, Request: coretest.SlotAt("03:00")}}
	}
	for waiting, want := range map[string]bool{run.WaitQueue: true, run.WaitWindow: false, run.WaitJitter: false, run.WaitPause: false, run.WaitClock: false, run.WaitNotReady: false, "": false} {
		if got := trigger.Yields(old, newer(waiting)); got != want {
			t.Errorf("to one that waits for %q: %t", waiting, got)
		}
	}
	for name, other := range map[string]trigger.ActiveRun{
		"itself":                   {Name: old.Name, Phase: run.Pending, Waiting: run.WaitQueue, Request: coretest.SlotAt("03:00")},
		"one that runs":            {Name: "new", Phase: run.Running, Waiting: run.WaitQueue, Request: coretest.SlotAt("03:00")},
		"itself, while both run":   {Name: old.Name, Phase: run.Running, Request: old.Request},
		"an earlier one that runs": {Name: "earlier", Phase: run.Running, Waiting: run.WaitQueue, Request: coretest.SlotAt("01:00")},
	} {
		if trigger.Yields(old, []trigger.ActiveRun{other}) {
			t.Errorf("to %s it gives way", name)
		}
	}
	if !trigger.Yields(old, []trigger.ActiveRun{{Name: "same", Phase: run.Pending, Waiting: run.WaitQueue, Request: old.Request}}) {
		t.Error("to one of the same time it does not give way")
	}
	old.Spec.ConcurrencyPolicy = plan.Queue
	if trigger.Yields(old, newer(run.WaitQueue)) {
		t.Error("under Queue it gives way")
	}
	if trigger.Yields(old, []trigger.ActiveRun{{Name: "earlier", Phase: run.Pending, Waiting: run.WaitQueue, Request: coretest.SlotAt("01:00")}}) {
		t.Error("to an earlier one it gives way")
	}
	if !trigger.Superseded(old, run.WaitWindow, newer("")) || trigger.Superseded(old, run.WaitQueue, newer(run.WaitQueue)) {
		t.Error("only a slot that waits for its window is overtaken")
	}
}

// A dry run has no effect on a run that changes something.
func TestADryRunTakesNoPlace(t *testing.T) {
	for name, c := range map[string]struct {
		old, newer, yields, superseded bool // the runs are dry; and what becomes of the old one
	}{
		"a run gives way to another":          {yields: true, superseded: true},
		"not to a dry run":                    {newer: true},
		"a dry run gives way to another":      {old: true, newer: true, yields: true, superseded: true},
		"and to a run that changes something": {old: true, yields: true, superseded: true},
	} {
		old, slot := coretest.NewRun(func(s *plan.Spec) { s.ConcurrencyPolicy = plan.Replace }), coretest.SlotAt("03:00")
		old.Request.DryRun, slot.DryRun = c.old, c.newer
		others := []trigger.ActiveRun{{Name: "new", Phase: run.Pending, Waiting: run.WaitQueue, Request: slot}}
		if got := trigger.Yields(old, others); got != c.yields {
			t.Errorf("%s: at work, %t", name, got)
		}
		if got := trigger.Superseded(old, run.WaitWindow, others); got != c.superseded {
			t.Errorf("%s: before its window, %t", name, got)
		}
	}
}

// Under Replace a slot that has not begun is done by the newer one. One that waits for its jitter is
// not: where that is longer than the time between two slots, none would ever begin.
func TestUnderReplaceANewerSlotTakesThePlaceOfOneThatWaits(t *testing.T) {
	old := coretest.NewRun(func(s *plan.Spec) { s.ConcurrencyPolicy = plan.Replace })
	newer := func(phase run.Phase, waiting string) []trigger.ActiveRun {
		return []trigger.ActiveRun{{Name: "new", Phase: phase, Waiting: waiting, Request: coretest.SlotAt("03:00")}}
	}
	for waiting, want := range map[string]bool{run.WaitApproval: true, run.WaitLock: true, run.WaitQueue: true, run.WaitWindow: true, run.WaitJitter: false, "": false} {
		if got := trigger.Superseded(old, waiting, newer(run.Pending, run.WaitApproval)); got != want {
			t.Errorf("it waits for %q: superseded %t", waiting, got)
		}
	}
	for name, c := range map[string]struct {
		others []trigger.ActiveRun
		want   bool
	}{
		"a newer one that runs":                 {newer(run.Running, ""), true},
		"a newer one that waits for its jitter": {newer(run.Pending, run.WaitJitter), false},
		"a newer one that nobody has looked at": {newer(run.Pending, ""), false},
		"an older one":                          {[]trigger.ActiveRun{{Name: "older", Phase: run.Pending, Waiting: run.WaitApproval, Request: coretest.SlotAt("01:00")}}, false},
		"a newer request that is no slot":       {[]trigger.ActiveRun{{Name: "asked", Phase: run.Pending, Waiting: run.WaitQueue, Request: run.Request{Kind: run.ByToken, At: coretest.Clock("03:00")}}}, false},
	} {
		if got := trigger.Superseded(old, run.WaitApproval, c.others); got != c.want {
			t.Errorf("%s: superseded %t", name, got)
		}
	}
}

func TestALabelRunSaysWhatBecameOfItsLabel(t *testing.T) {
	r := pending(labelRequest())
	for want, labels := range map[string]map[string]trigger.TargetLabel{
		"its label was removed before its first step":             nil,
		"its label has another value now, which is a new request": {r.Request.Label: {Value: r.Request.Value + "2"}},
	} {
		s := standing("02:00")
		s.Target = &trigger.Target{UID: r.Request.TargetUID, Labels: labels}
		if a := trigger.Admit(r, s); a.Reason != run.ReasonAborted || a.Message != want {
			t.Errorf("%s: %q, want %q", a.Reason, a.Message, want)
		}
	}
}

// Who ends a run before it begins is kept with its end.
func TestWhoEndsARunBeforeItBegins(t *testing.T) {
	jane := &intent.Actor{Name: "jane", Reason: "no"}
	r := run.Run{Name: "r", Spec: plan.Spec{RequiresApproval: true}, Request: run.Request{Kind: run.ByToken, At: coretest.Clock("02:00")}}
	for name, facts := range map[string]trigger.AdmissionFacts{
		"rejected": {EntryOpen: true, Now: coretest.Clock("02:00"), Reject: jane},
		"aborted":  {EntryOpen: true, Now: coretest.Clock("02:00"), Abort: &run.End{Phase: run.Aborted, By: jane}},
	} {
		if got := trigger.Admit(r, facts); got.By != jane || got.Reason != name {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
