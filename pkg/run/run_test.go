package run_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestWhichPhasesAreEnds(t *testing.T) {
	for phase, want := range map[run.Phase]bool{
		run.Pending: false, run.Running: false, "": false,
		run.Succeeded: true, run.Failed: true, run.Aborted: true, run.Replaced: true,
	} {
		if got := phase.Ended(); got != want {
			t.Errorf("a run that is %q has ended: %t", phase, got)
		}
	}
	for phase, want := range map[run.StepPhase]bool{
		run.StepPending: false, run.StepRunning: false, "": false,
		run.StepSucceeded: true, run.StepFailed: true, run.StepSkipped: true,
	} {
		if got := phase.Ended(); got != want {
			t.Errorf("a step that is %q has ended: %t", phase, got)
		}
	}
}

func TestARequestIsTheSameOneByItsIdentityAlone(t *testing.T) {
	for _, c := range []struct {
		name          string
		request       run.Request
		identity, why string
	}{
		{"a slot", coretest.SlotAt("02:00"), "uid|schedule|2026-12-05T02:00:00Z[UTC]", "schedule"},
		{"a slot with a reason, which only people give", run.Request{Kind: run.BySchedule, Local: "l", Reason: "x"}, "uid|schedule|l", "schedule"},
		{"a label", run.Request{Kind: run.ByLabel, TargetUID: "t", Label: "run-me", Ordinal: 2, Value: "v"}, "uid|label|t|run-me|2", "label:run-me"},
		{"a watched change", run.Request{Kind: run.ByWatch, Rule: "rule", UID: "o", Ordinal: 3, ObjectKind: "Node", Name: "n0"}, "uid|watch|rule|o|3", "watch:Node/n0"},
		{"a token", run.Request{Kind: run.ByToken, Token: "tok", Actor: "jane", DryRun: true}, "uid|manual|tok", "manual"},
		{"a token with a reason", run.Request{Kind: run.ByToken, Token: "tok", Reason: "fire"}, "uid|manual|tok", "fire"},
		{"the creation of the plan", run.Request{Kind: run.ByCreation}, "uid|create", "create"},
	} {
		if got := c.request.Identity("uid"); got != c.identity {
			t.Errorf("%s: identity %q, want %q", c.name, got, c.identity)
		}
		if got := c.request.Why(); got != c.why {
			t.Errorf("%s: why %q, want %q", c.name, got, c.why)
		}
	}
}

func TestTheReasonOfARunForPeople(t *testing.T) {
	for want, request := range map[string]run.Request{
		"schedule":                         {Kind: run.BySchedule},
		"schedule, dry run":                {Kind: run.BySchedule, DryRun: true},
		"rollback, as of run r-1":          {Kind: run.ByToken, AsOf: "r-1"},
		"fire, as of run r-1":              {Kind: run.ByToken, Reason: "fire", AsOf: "r-1"},
		"fire":                             {Kind: run.ByToken, Reason: "fire"},
		"rollback, as of run r-1, dry run": {Kind: run.ByToken, AsOf: "r-1", DryRun: true},
	} {
		if got := request.Said(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTwoRequestsForTheSameLabel(t *testing.T) {
	first := run.Request{Kind: run.ByLabel, TargetUID: "t", Label: "run-me", Value: "v", Ordinal: 1}
	for _, c := range []struct {
		name string
		edit func(*run.Request)
		want bool
	}{
		{"under another number", func(r *run.Request) { r.Ordinal = 2 }, true},
		{"another value", func(r *run.Request) { r.Value = "w" }, false},
		{"another label", func(r *run.Request) { r.Label = "run-you" }, false},
		{"another object", func(r *run.Request) { r.TargetUID = "u" }, false},
		{"a request of another kind", func(r *run.Request) { r.Kind = run.ByToken }, false},
	} {
		other := first
		c.edit(&other)
		if first.SameLabel(other) != c.want || other.SameLabel(first) != c.want {
			t.Errorf("%s: want %t", c.name, c.want)
		}
	}
	if slot := coretest.SlotAt("02:00"); slot.SameLabel(slot) {
		t.Error("a slot is for a label")
	}
}

func TestARunIsScheduledAtItsSlotElseWhenItWasAskedFor(t *testing.T) {
	r := run.Request{At: coretest.Clock("03:00")}
	if got := r.ScheduledAt(); !got.Equal(coretest.Clock("03:00")) {
		t.Errorf("without a slot: %s", got)
	}
	r.Slot = coretest.On("02:00")
	if got := r.ScheduledAt(); !got.Equal(coretest.Clock("02:00")) {
		t.Errorf("with a slot: %s", got)
	}
}

func TestWhatIsSaidOfARunIsWhatItWaitsForFirst(t *testing.T) {
	waits := run.Record{Path: "scale", Waits: "for the right to patch"}
	drift := []run.Record{{Path: "a", Drift: new(wrote("flux", "b", "3"))}}
	for _, c := range []struct {
		name    string
		journal run.Journal
		want    string
	}{
		{"nothing", run.Journal{Phase: run.Running}, ""},
		{"its message", run.Journal{Phase: run.Running, Message: "at work"}, "at work"},
		{"a step that waits", run.Journal{Phase: run.Running, Message: "at work", Steps: []run.Record{{Path: "a"}, waits, {Path: "b", Waits: "too"}}}, "step scale waits: for the right to patch"},
		{"the run itself waits", run.Journal{Phase: run.Running, Waits: "for its label", Steps: []run.Record{waits}}, "for its label"},
		{"what somebody changed", run.Journal{Phase: run.Running, Message: "at work", Steps: drift}, "after step a " + fluxSaid("b")},
		{"a step that waits before that", run.Journal{Phase: run.Running, Steps: append(slices.Clone(drift), waits)}, "step scale waits: for the right to patch"},
		{"what holds it says so itself", run.Journal{Phase: run.Running, Message: "is paused", HeldSince: coretest.On("02:00"), Steps: drift}, "is paused"},
		{"so does its end", run.Journal{Phase: run.Running, Message: "step b failed", End: &run.End{}, Steps: drift}, "step b failed"},
		{"one that has ended waits no more", run.Journal{Phase: run.Failed, Message: "over", Waits: "for its label", Steps: []run.Record{waits}}, "over"},
		{"a long wait is cut", run.Journal{Steps: []run.Record{{Path: "a", Waits: strings.Repeat("w", document.MaxMessage)}}}, document.Cut("step a waits: "+strings.Repeat("w", document.MaxMessage), document.MaxMessage)},
	} {
		if got := c.journal.Notice(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTheAttemptsOfALoopAreThoseOfItsItems(t *testing.T) {
	for name, c := range map[string]struct {
		record run.Record
		want   int
	}{
		"not begun":                    {run.Record{}, 0},
		"at its second attempt":        {run.Record{Attempt: 2}, 2},
		"before its second round":      {run.Record{Base: 3}, 3},
		"its items tried before that":  {run.Record{Attempt: 1, ItemBase: 4}, 4},
		"an item tried more than all":  {run.Record{Attempt: 1, Items: []run.Item{{Attempts: 5}, {Attempts: 2}}}, 5},
		"an item tried less than that": {run.Record{Attempt: 3, Items: []run.Item{{Attempts: 2}}}, 3},
	} {
		if got := c.record.Attempts(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestAnItemsPartOfAPathTellsItFromOthers(t *testing.T) {
	for _, c := range []struct {
		item run.Item
		want string
	}{
		{run.Item{Name: "n0"}, "n0"},
		{run.Item{Name: "web", Namespace: "shop"}, "shop:web"},
		{run.Item{Name: "system:web"}, ":system:web"},
		{run.Item{Name: "system:web", Namespace: "shop"}, "shop:system:web"},
		{run.Item{Name: "zażółć $(x)"}, "zażółć $(x)"},
		{run.Item{Name: "a\nb\x1b[0m\u2028"}, "a%0Ab%1B[0m%E2%80%A8"},
		{run.Item{Name: "a%0Ab"}, "a%250Ab"},
	} {
		if got := c.item.Segment(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.item, got, c.want)
		}
	}
}

func TestNumbersInOutputsAreTheSameAfterACrash(t *testing.T) {
	rec := run.Record{Path: "a", Outputs: map[string]any{"id": int64(9007199254740993), "share": 0.5}}
	text, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	var again run.Record
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rec, again); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`{"path":"b","attempt":"x"}`), &again); err == nil {
		t.Error("a number that is none is read")
	}
	var body run.Body
	if err := json.Unmarshal([]byte(`{"spec":{"n":9007199254740993}}`), &body); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run.Body{"spec": map[string]any{"n": int64(9007199254740993)}}, body); diff != "" {
		t.Errorf("of an object: %s", diff)
	}
	if err := json.Unmarshal([]byte(`[1]`), &body); err == nil {
		t.Error("a list is read as an object")
	}
}

func TestProgressCountsWhatDoesTheWork(t *testing.T) {
	done, works, fails := run.StepSucceeded, run.StepRunning, run.StepFailed
	for _, c := range []struct {
		name  string
		steps []run.Record
		want  run.Progress
	}{
		{"no steps", nil, run.Progress{}},
		{"none begun", []run.Record{{Path: "a"}, {Path: "b"}}, run.Progress{Total: 2}},
		{"one of two at work", []run.Record{{Path: "a", Phase: done}, {Path: "b", Phase: works}}, run.Progress{Step: "b", Done: 1, Total: 2, Percent: 50}},
		{"a failed step is done", []run.Record{{Path: "a", Phase: fails}, {Path: "b", Phase: run.StepSkipped}}, run.Progress{Done: 2, Total: 2, Percent: 100}},
		{"of a group its steps", []run.Record{{Path: "g", Type: plan.TypeGroup, Phase: works}, {Path: "g/a", Phase: done}, {Path: "g/b", Phase: works}, {Path: "c"}}, run.Progress{Step: "g/b", Done: 1, Total: 3, Percent: 33}},
		{"of two at work the first", []run.Record{{Path: "a", Phase: works}, {Path: "b", Phase: works}}, run.Progress{Step: "a", Total: 2}},
		{
			"a loop is one step, its items are shares",
			[]run.Record{{Path: "l", Type: plan.TypeForEach, Phase: works, Items: []run.Item{{Name: "x", Phase: done}, {Name: "y", Phase: works}, {Name: "z"}, {Name: "w", Phase: fails}}}, {Path: "l/y/a", Phase: works}, {Path: "b"}},
			run.Progress{Step: "l/y/a", Total: 2, Percent: 25},
		},
		{"a loop without items yet", []run.Record{{Path: "l", Type: plan.TypeForEach, Phase: works}}, run.Progress{Step: "l", Total: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, run.ProgressOf(run.Journal{Steps: c.steps})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADrainStepSaysWhichNodesAreBlocked(t *testing.T) {
	memory := func(targets ...run.DrainTarget) json.RawMessage {
		b, err := json.Marshal(run.DrainMemory{Attempt: 1, Since: time.Unix(0, 0).UTC(), Nodes: targets})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	free, stuck := run.DrainTarget{Name: "a"}, run.DrainTarget{Name: "b", Blocked: true}
	stuckToo := run.DrainTarget{Name: "a", Blocked: true}
	for _, c := range []struct {
		name        string
		before, now json.RawMessage
		want        []string
	}{
		{"none", nil, memory(free), nil},
		{"one at the first pass", nil, memory(free, stuck), []string{"b"}},
		{"one that was blocked before is no news", memory(free, stuck), memory(free, stuck), nil},
		{"a second one", memory(free, stuck), memory(stuckToo, stuck), []string{"a"}},
		{"one that was free between", memory(run.DrainTarget{Name: "b"}), memory(stuck), []string{"b"}},
		{"what was before cannot be read", json.RawMessage("x"), memory(stuck), []string{"b"}},
		{"what is now cannot be read", memory(free), json.RawMessage("x"), nil},
	} {
		if diff := cmp.Diff(c.want, run.NewlyBlocked(c.before, c.now)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	works := run.Record{Type: plan.TypeDrain, Phase: run.StepRunning, Memory: memory(free, stuck)}
	if diff := cmp.Diff([]run.DrainTarget{free, stuck}, works.Drains()); diff != "" {
		t.Errorf("a drain at work: %s", diff)
	}
	for name, edit := range map[string]func(*run.Record){
		"a cordon":              func(r *run.Record) { r.Type = plan.TypeCordon },
		"one that has ended":    func(r *run.Record) { r.Phase = run.StepSucceeded },
		"one without a memory":  func(r *run.Record) { r.Memory = nil },
		"one that is corrupted": func(r *run.Record) { r.Memory = json.RawMessage("{") },
	} {
		rec := works
		edit(&rec)
		if got := rec.Drains(); got != nil {
			t.Errorf("%s drains %v", name, got)
		}
	}
}

func TestWhenADrainThatSomethingKeepsFromItsCordonIsGivenUp(t *testing.T) {
	blocked := run.DrainTarget{Name: "a", BlockedAt: coretest.Clock("02:00")}
	hour := &document.Duration{Duration: time.Hour}
	gives := drain.Options{Timeout: hour, OnTimeout: drain.TimeoutAbort}
	for _, c := range []struct {
		name    string
		target  run.DrainTarget
		options drain.Options
		want    string
	}{
		{"its time counts from there", blocked, gives, "03:00"},
		{"a requestor has its node", run.DrainTarget{Name: "a", BlockedAt: coretest.Clock("02:00"), HeldAt: coretest.Clock("02:10")}, gives, ""},
		{"nothing is in its way", run.DrainTarget{Name: "a"}, gives, ""},
		{"it tries again", blocked, drain.Options{Timeout: hour, OnTimeout: drain.TimeoutRetry}, ""},
		{"it has no limit", blocked, drain.Options{Timeout: &document.Duration{}, OnTimeout: drain.TimeoutAbort}, ""},
		{"it has none, and nothing is in its way", run.DrainTarget{Name: "a"}, drain.Options{Timeout: &document.Duration{}, OnTimeout: drain.TimeoutAbort}, ""},
	} {
		at, ends := c.target.GivenUpAt(c.options)
		if ends != (c.want != "") || ends && !at.Equal(coretest.Clock(c.want)) {
			t.Errorf("%s: %t, at %s", c.name, ends, at)
		}
	}
	later := run.DrainTarget{Name: "b", BlockedAt: coretest.Clock("02:10")}
	free := run.DrainTarget{Name: "c"} // a deadline that counts from no time is none
	for by, want := range map[string]string{"02:30": "02:30", "04:00": "03:00"} {
		if got := (run.DrainMemory{Nodes: []run.DrainTarget{later, blocked, free}}).GivenUpBefore(coretest.Clock(by), gives); !got.Equal(coretest.Clock(want)) {
			t.Errorf("before %s: %s", by, got)
		}
	}
}

func TestRunsThatWaitForOnePlaceAreLookedAtInTheOrderOfTheirRequests(t *testing.T) {
	at := func(minute int, namespace, name string) run.Run {
		return run.Run{Namespace: namespace, Name: name, Request: run.Request{At: time.Date(2026, 3, 1, 2, minute, 0, 0, time.UTC)}}
	}
	want := []run.Run{at(0, "b", "z"), at(1, "b", "a"), at(1, "a", "b"), at(1, "b", "b")}
	for i := range 10 {
		got := slices.Clone(want)
		random := rand.New(rand.NewPCG(uint64(i), 0))
		random.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, run.Compare)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seed %d (-want +got):\n%s", i, diff)
		}
	}
}
