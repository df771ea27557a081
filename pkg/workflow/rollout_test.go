package workflow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

// fleet plays a rollout over nodes: what the ranker would grant, and how the work
// on each node ends.
type fleet struct {
	t       *testing.T
	run     run.Run
	journal run.Journal
	now     time.Time
	sig     workflow.Signals
	fails   map[string]bool
	last    workflow.Action
}

func fleetOf(t *testing.T, properties string, n int) *fleet {
	t.Helper()
	f := &fleet{t: t, now: time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC), fails: map[string]bool{}, sig: workflow.Signals{Nodes: map[string]map[string]workflow.NodeState{"roll": {}}}}
	f.run = coretest.RunOf(t, "steps: [{name: roll, type: for-each-node, properties: {"+properties+"steps: ["+coretest.Hook("work")+"]}}]")
	f.journal = workflow.NewJournal(f.run).Start(f.now)
	f.look()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
		f.sig.Nodes["roll"][names[i]] = workflow.NodeState{Granted: true}
	}
	listed := picks(names...)
	listed.Items.APIVersion, listed.Items.Kind = "v1", "Node"
	f.journal = workflow.Note(f.run, f.journal, "roll", listed, f.now)
	f.look()
	return f
}

func (f *fleet) look() { f.journal, f.last = workflow.Advance(f.run, f.journal, f.now, f.sig) }

// atWork are the nodes whose step may be passed now.
func (f *fleet) atWork() []string {
	var out []string
	for _, m := range f.last.All() {
		if m.Act == workflow.ActPass {
			out = append(out, strings.Split(m.Path, "/")[1])
		}
	}
	return out
}

// end ends the work on nodes, and looks again.
func (f *fleet) end(names ...string) {
	for _, name := range names {
		rep := workflow.StepResult{Done: true}
		if f.fails[name] {
			rep = workflow.StepResult{Failed: true, Permanent: true, Reason: "Boom", Message: "boom"}
			f.report(name, func(s *workflow.NodeState) { s.Unavailable = true })
		}
		f.journal = workflow.Note(f.run, f.journal, "roll/"+name+"/work", rep, f.now)
	}
	f.look()
}

func (f *fleet) report(name string, edit func(*workflow.NodeState)) {
	s := f.sig.Nodes["roll"][name]
	edit(&s)
	f.sig.Nodes["roll"][name] = s
}

func (f *fleet) after(d time.Duration) {
	f.now = f.now.Add(d)
	f.look()
}

func (f *fleet) message() string { return f.journal.Record("roll").Message }

func (f *fleet) works(want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.atWork()); diff != "" {
		f.t.Fatalf("at work (-want +got):\n%s\nand it says %q", diff, f.message())
	}
}

func (f *fleet) ended(want string) {
	f.t.Helper()
	if f.last.Act != workflow.ActClose || string(f.journal.End.Phase) != want {
		f.t.Fatalf("did not end %s: %+v, it says %q", want, f.journal.End, f.message())
	}
}

func TestRolloutTakesTheCanaryFirst(t *testing.T) {
	f := fleetOf(t, "maxUnavailable: 50%, ", 6)
	f.works("n0")
	f.end("n0")
	f.works("n1", "n2", "n3")
	f.end("n2")
	f.works("n1", "n3", "n4")
	f.end("n1", "n3", "n4")
	f.works("n5")
	f.end("n5")
	f.ended("Succeeded")
}

func TestRolloutWithoutCanaryBeginsWithAll(t *testing.T) {
	f := fleetOf(t, "canary: 0, maxUnavailable: 2, ", 3)
	f.works("n0", "n1")
}

func TestRolloutStopsAtAFailure(t *testing.T) {
	f := fleetOf(t, "canary: 0, maxUnavailable: 2, ", 4)
	f.fails["n0"] = true
	f.end("n0")
	f.works("n1")
	f.end("n1")
	f.ended("Failed")
	if got := f.journal.End.Message; !strings.Contains(got, "n0 stays as its steps left it") {
		t.Errorf("who failed is not named: %q", got)
	}
}

// The message of the step alone would read as if it were the rollout's.
func TestANodeSaysWhichOfItsStepsFailed(t *testing.T) {
	f := fleetOf(t, "canary: 0, maxUnavailable: 2, ", 2)
	f.fails["n0"] = true
	f.end("n0")
	for _, item := range f.journal.Record("roll").Items {
		if want := map[string]string{"n0": "step work: boom"}[item.Name]; item.Message != want {
			t.Errorf("node %s says %q, want %q", item.Name, item.Message, want)
		}
	}
}

func TestRolloutGoesOnPastFailuresWithinItsLimit(t *testing.T) {
	f := fleetOf(t, "canary: 0, maxUnavailable: 2, onError: continue, ", 5)
	f.fails["n0"], f.fails["n2"] = true, true
	f.end("n0")
	f.works("n1") // n0 is cordoned and takes one of two places
	f.end("n1")
	f.works("n2")
	f.end("n2")
	f.ended("Failed") // both places are taken by nodes that nothing here will free
}

func TestRolloutStopsPastMaxFailures(t *testing.T) {
	f := fleetOf(t, "canary: 0, maxUnavailable: 4, onError: continue, maxFailures: 1, ", 8)
	f.fails["n0"], f.fails["n1"] = true, true
	f.end("n0")
	f.works("n1", "n2", "n3")
	f.end("n1")
	f.works("n2", "n3")
	f.end("n2", "n3")
	f.ended("Failed")
}

func TestRolloutSoaksBeforeTheNext(t *testing.T) {
	f := fleetOf(t, "soak: 2m, ", 2)
	f.end("n0")
	f.works()
	if want := f.now.Add(2 * time.Minute); !f.last.WakeAt.Equal(want) {
		t.Errorf("wakes at %s, not when the soak is over at %s", f.last.WakeAt, want)
	}
	f.after(time.Minute)
	f.works()
	f.after(time.Minute)
	f.works("n1")
	f.end("n1")
	f.ended("Succeeded") // nothing comes after the last
}

// A canary that soaks has not succeeded yet: a second place changes nothing.
func TestTheOthersWaitUntilTheCanaryHasSoaked(t *testing.T) {
	f := fleetOf(t, "canary: 1, maxUnavailable: 2, soak: 2m, ", 4)
	f.end("n0")
	f.works()
	f.after(2 * time.Minute)
	f.works("n1", "n2")
	f.end("n1") // what soaks later costs its own place alone
	f.works("n2")
	f.after(2 * time.Minute)
	f.works("n2", "n3")
}

func TestRolloutDoesNotBeginWhatWouldNotFit(t *testing.T) {
	f := fleetOf(t, "estimate: 20m, ", 2)
	f.sig.ClosesAt = f.now.Add(19 * time.Minute)
	f.end("n0")
	f.works()
	if want := "1 of 2 are done, 1 left; the next would take about 20m0s, and the window closes at 2026-05-01T02:19:00Z"; f.message() != want {
		t.Errorf("it says %q, want %q", f.message(), want)
	}
	f.sig.ClosesAt = f.now.Add(20 * time.Minute)
	f.look()
	f.works("n1")
}

func TestRolloutSpansWindows(t *testing.T) {
	f := fleetOf(t, "", 3)
	f.sig.Hold = &run.ClosedGate{Reason: "closed", Until: f.now.Add(24 * time.Hour)}
	f.end("n0")
	f.works()
	if f.journal.HeldSince == nil {
		t.Error("the time outside its window counts")
	}
	f.now = f.now.Add(24 * time.Hour)
	f.sig.Hold = nil
	f.look()
	f.works("n1")
	f.end("n1")
	f.end("n2")
	f.ended("Succeeded")
}

func TestWhatARolloutSaysWhenTheWindowClosesOnNodesAtWork(t *testing.T) {
	for name, c := range map[string]struct {
		onClose plan.OnWindowClose
		closed  bool
		want    string
	}{
		"the run ends with it":   {plan.CloseAbort, true, "1 of 4 are done, 2 left; nodes at work finish, then the run ends: "},
		"the run waits for it":   {plan.CloseWait, true, "1 of 4 are done, 2 left; the rest waits: "},
		"the window stands open": {plan.CloseAbort, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleetOf(t, "canary: 0, maxUnavailable: 2, ", 4)
			f.run.Spec.OnWindowClose = c.onClose
			if c.closed {
				f.sig.Hold = &run.ClosedGate{Reason: "closed", Until: f.now.Add(time.Hour)}
			}
			f.end("n0")
			if c.closed {
				f.works("n1")
			} else {
				f.works("n1", "n2")
			}
			if got := f.message(); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}

func TestARolloutThatHasNoNodeAtWorkEndsWithItsWindow(t *testing.T) {
	f := fleetOf(t, "", 3)
	f.run.Spec.OnWindowClose = plan.CloseAbort
	f.sig.Hold = &run.ClosedGate{Reason: "closed", Until: f.now.Add(time.Hour)}
	f.end("n0")
	f.works()
	f.ended("Aborted")
}

// What is away already costs no room; what is begun costs some, and a place.
func TestNodesThatAreAwayAlreadyAreTakenWhereThereIsNoRoom(t *testing.T) {
	f := fleetOf(t, "canary: 0, maxUnavailable: 3, onError: continue, ", 6)
	f.works("n0", "n1", "n2")
	f.report("n4", func(s *workflow.NodeState) { s.Unavailable = true })
	f.report("n3", func(s *workflow.NodeState) { s.Granted, s.Why = false, "waits: zone b" })
	f.end("n0", "n1")
	// One place is n2's, one is taken up by n4, which is away: there is room for one more,
	// which n3 does not get; n4 costs none, and n5 gets it.
	f.works("n2", "n4", "n5")
	if diff := cmp.Diff([]workflow.NodeDemand(nil), f.last.Wants); diff != "" {
		t.Errorf("all places are taken, and it wants (-want +got):\n%s", diff)
	}
}

func TestRolloutTakesWhatIsGrantedAndSaysWhatIsNot(t *testing.T) {
	f := fleetOf(t, "canary: 0, maxUnavailable: 2, ", 4)
	f.report("n2", func(s *workflow.NodeState) { s.Granted, s.Why = false, "waits: zone b already has 1 of 1" })
	f.end("n0", "n1")
	f.works("n3")
	want := []workflow.NodeDemand{{Path: "roll", Nodes: []string{"n2"}, Most: 1}}
	if diff := cmp.Diff(want, f.last.Wants); diff != "" {
		t.Errorf("wants (-want +got):\n%s", diff)
	}
	if want := "2 of 4 are done, 1 left; waits: n2 waits: zone b already has 1 of 1"; f.message() != want {
		t.Errorf("it says %q, want %q", f.message(), want)
	}
}

// A node's own window counts as that of the run: what would not be through before it closes does not begin.
func TestARolloutSaysHowLongItsNextNodeTakes(t *testing.T) {
	f := fleetOf(t, "estimate: 20m, ", 2)
	f.report("n1", func(s *workflow.NodeState) { s.Granted = false })
	f.end("n0")
	if len(f.last.Wants) != 1 || f.last.Wants[0].Needs != 20*time.Minute {
		t.Errorf("wants %+v", f.last.Wants)
	}
}

// Who lets a run have a node whose gate is closed is written down before the node's steps begin.
func TestWhoLetsARunHaveANodeIsWrittenDown(t *testing.T) {
	f := fleetOf(t, "", 2)
	jane := &intent.Actor{Name: "jane", Reason: "urgent"}
	f.report("n1", func(s *workflow.NodeState) { s.Passed = jane })
	f.end("n0")
	f.works("n1")
	if diff := cmp.Diff(jane, f.journal.Passed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	f.report("n1", func(s *workflow.NodeState) { s.Passed = &intent.Actor{Name: "joe"} })
	f.look()
	if diff := cmp.Diff(jane, f.journal.Passed); diff != "" {
		t.Errorf("the first stays, -want +got:\n%s", diff)
	}
}

func TestOfSeveralWhoLetARunHaveNodesTheOneOfTheFirstNodeIsWrittenDown(t *testing.T) {
	for range 20 { // whatever the order of a map
		f := fleetOf(t, "", 10)
		f.report("n5", func(s *workflow.NodeState) { s.Passed = &intent.Actor{Name: "joe"} })
		f.report("n9", func(s *workflow.NodeState) { s.Passed = &intent.Actor{Name: "jane"} })
		if f.look(); f.journal.Passed == nil || f.journal.Passed.Name != "joe" {
			t.Fatalf("written down is %+v", f.journal.Passed)
		}
	}
}

func TestWhetherARolloutHasNoPlaceForAnotherNode(t *testing.T) {
	now := coretest.Clock("02:00")
	at := func(ago time.Duration) *time.Time { return new(now.Add(-ago)) }
	away := workflow.NodeState{Unavailable: true}
	for name, c := range map[string]struct {
		properties string
		items      []run.Item
		states     map[string]workflow.NodeState
		want       bool
	}{
		"no node is away":                             {items: []run.Item{{Name: "a"}, {Name: "b"}}},
		"one that is away takes the only place":       {items: []run.Item{{Name: "a"}, {Name: "b"}}, states: map[string]workflow.NodeState{"b": away}, want: true},
		"one of two places is free":                   {properties: "maxUnavailable: 2, ", items: []run.Item{{Name: "a"}, {Name: "b"}}, states: map[string]workflow.NodeState{"b": away}},
		"a node that failed takes it":                 {items: []run.Item{{Name: "a"}, {Name: "b", Phase: run.StepFailed}}, states: map[string]workflow.NodeState{"b": away}, want: true},
		"only nodes that are away wait":               {items: []run.Item{{Name: "a"}, {Name: "b"}}, states: map[string]workflow.NodeState{"a": away, "b": away}},
		"only a node that is gone waits":              {items: []run.Item{{Name: "a"}, {Name: "b", Phase: run.StepFailed}}, states: map[string]workflow.NodeState{"a": {Gone: true}, "b": away}},
		"no node waits":                               {items: []run.Item{{Name: "a", Phase: run.StepFailed}}, states: map[string]workflow.NodeState{"a": away}},
		"one is at work, and frees its place":         {items: []run.Item{{Name: "a"}, {Name: "b", Phase: run.StepRunning}}},
		"one soaks, and frees its place":              {properties: "soak: 2m, ", items: []run.Item{{Name: "a"}, {Name: "b", Phase: run.StepSucceeded, At: at(time.Minute)}}},
		"one is at work and one soaks":                {properties: "soak: 2m, ", items: []run.Item{{Name: "a"}, {Name: "b", Phase: run.StepRunning}, {Name: "c", Phase: run.StepSucceeded, At: at(time.Minute)}}},
		"one that has soaked and is away takes it":    {properties: "soak: 2m, ", items: []run.Item{{Name: "a"}, {Name: "b", Phase: run.StepSucceeded, At: at(time.Hour)}}, states: map[string]workflow.NodeState{"b": away}, want: true},
		"one that an earlier run left takes no place": {items: []run.Item{{Name: "a"}, {Name: "b"}}, states: map[string]workflow.NodeState{"b": {Unavailable: true, Abandoned: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := coretest.RunOf(t, "steps: [{name: roll, type: for-each-node, properties: {"+c.properties+"steps: ["+coretest.Hook("work")+"]}}]")
			rec := run.Record{Path: "roll", Type: plan.TypeForEachNode, Phase: run.StepRunning, Listed: true, Items: c.items}
			if got := workflow.BlockedByUnavailable(r.Spec.Steps[0], rec, c.states, now); got != c.want {
				t.Errorf("no place: %t", got)
			}
		})
	}
}

func TestANodeThatIsAwayAlreadyCostsNothingOfTheLimit(t *testing.T) {
	f := fleetOf(t, "canary: 0, ", 3)
	f.report("n2", func(s *workflow.NodeState) { s.Unavailable = true })
	f.end("n0")
	f.works("n2")
	f.report("n2", func(s *workflow.NodeState) { s.Unavailable = false })
	f.end("n2")
	f.works("n1")
}

func TestNodesThatAnEarlierRunLeftCordonedKeepNobodyFromTheirTurn(t *testing.T) {
	left := func(f *fleet, names ...string) {
		for _, name := range names {
			f.report(name, func(s *workflow.NodeState) { s.Unavailable, s.Abandoned = true, true })
		}
	}
	t.Run("one of them leaves the only place", func(t *testing.T) {
		f := fleetOf(t, "canary: 0, ", 3)
		f.end("n0")
		left(f, "n2")
		f.end("n1")
		f.works("n2")
		f.end("n2")
		f.ended("Succeeded")
	})
	t.Run("many of them leave one place", func(t *testing.T) {
		f := fleetOf(t, "canary: 1, maxUnavailable: 2, ", 6)
		left(f, "n3", "n4", "n5")
		f.end("n0")
		f.works("n1", "n3") // n3 is away already and costs nothing
		f.end("n1")
		f.works("n3", "n4") // with one at work and one abandoned there is no place for n2
	})
	t.Run("a node that somebody else has closed does not", func(t *testing.T) {
		f := fleetOf(t, "canary: 0, ", 3)
		f.report("n1", func(s *workflow.NodeState) { s.Unavailable, s.Granted = true, false })
		f.end("n0")
		f.works()
		if want := "1 of 3 are done, 2 left; waits: enough of its nodes are away already: n1 (cordoned or not Ready); 'kubectl uncordon n1' frees its place, if somebody cordoned it"; f.message() != want {
			t.Errorf("it says %q, want %q", f.message(), want)
		}
	})
}

// Two rollouts side by side: what one of them was given is not the other's.
func TestRolloutsSideBySideHaveNodesOfTheirOwn(t *testing.T) {
	r := coretest.RunOf(t, "steps: [{name: both, type: step-group, properties: {mode: parallel, steps: ["+
		"{name: x, type: for-each-node, properties: {canary: 0, steps: ["+coretest.Hook("work")+"]}},"+
		"{name: y, type: for-each-node, properties: {canary: 0, steps: ["+coretest.Hook("more")+"]}}]}}]")
	now := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)
	j := workflow.NewJournal(r).Start(now)
	j, _ = workflow.Advance(r, j, now, workflow.Signals{})
	for _, path := range []string{"both/x", "both/y"} {
		listed := picks("n0")
		listed.Items.APIVersion, listed.Items.Kind = "v1", "Node"
		j = workflow.Note(r, j, path, listed, now)
	}
	sig := workflow.Signals{Nodes: map[string]map[string]workflow.NodeState{"both/x": {"n0": {Granted: true}}, "both/y": {"n0": {Why: "waits: the node is another's"}}}}
	j, m := workflow.Advance(r, j, now, sig)
	var work []string
	for _, one := range m.All() {
		if one.Act == workflow.ActPass {
			work = append(work, one.Path)
		}
	}
	if diff := cmp.Diff([]string{"both/x/n0/work"}, work); diff != "" {
		t.Errorf("at work (-want +got):\n%s", diff)
	}
	if want := []workflow.NodeDemand{{Path: "both/y", Nodes: []string{"n0"}, Most: 1}}; cmp.Diff(want, m.Wants) != "" {
		t.Errorf("wants %+v", m.Wants)
	}
	if got := j.Record("both/y").Message; !strings.Contains(got, "the node is another's") {
		t.Errorf("y says %q", got)
	}
}

func TestWhatARolloutSaysAtItsEnd(t *testing.T) {
	f := fleetOf(t, "", 2)
	f.end("n0")
	f.end("n1")
	f.ended("Succeeded")
	if want := "2 of 2 are done"; f.message() != want {
		t.Errorf("it says %q, want %q", f.message(), want)
	}
	f = fleetOf(t, "", 0)
	f.ended("Succeeded")
	if f.message() != run.NoNodesMessage {
		t.Errorf("it says %q, want %q", f.message(), run.NoNodesMessage)
	}
}

func TestWhoUsesUpTheLimitOfARolloutIsNamed(t *testing.T) {
	f := fleetOf(t, "canary: 0, maxUnavailable: 3, soak: 2m, onError: continue, ", 5)
	f.fails["n1"] = true
	f.end("n0", "n1")
	if want := "1 of 5 are done, 2 left; waits: enough of its nodes are away already: n0 (soaks), n1 (failed here), n2 (at work)"; f.message() != want {
		t.Errorf("it says %q, want %q", f.message(), want)
	}
}

// What is known of a node may be older than its uncordon: nobody is asked to do what the run has just done.
func TestANodeThatTheRunIsJustThroughWithIsNotToBeUncordoned(t *testing.T) {
	f := fleetOf(t, "canary: 0, ", 3)
	f.report("n0", func(s *workflow.NodeState) { s.Unavailable = true })
	f.end("n0")
	const before = "1 of 3 are done, 2 left; waits: enough of its nodes are away already: n0 "
	if want := before + "(just done here)"; f.message() != want {
		t.Errorf("it says %q, want %q", f.message(), want)
	}
	f.after(10 * time.Second)
	if want := before + "(cordoned or not Ready); 'kubectl uncordon n0' frees its place, if somebody cordoned it"; f.message() != want {
		t.Errorf("later it says %q, want %q", f.message(), want)
	}
}

func TestANodeThatIsGoneIsDone(t *testing.T) {
	f := fleetOf(t, "", 2)
	f.report("n1", func(s *workflow.NodeState) { s.Gone = true })
	f.end("n0")
	f.ended("Succeeded")
}

func TestARolloutHasNoTimeLimitOfItsOwn(t *testing.T) {
	f := fleetOf(t, "", 2)
	f.after(30 * 24 * time.Hour)
	f.works("n0")
	f.run.Spec.MaxDuration = &document.Duration{Duration: time.Hour}
	f.look()
	if f.journal.End == nil || f.journal.End.Reason != "Timeout" {
		t.Errorf("maxDuration that is given does not count: %+v", f.journal.End)
	}
}

// TestRolloutsKeepTheirLimits plays fleets at random: nodes that come and go,
// fail and are refused, in any order.
func TestRolloutsKeepTheirLimits(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { playFleet(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func playFleet(t *testing.T, dice *rand.Rand) {
	n, most, canary := 1+dice.IntN(12), 1+dice.IntN(4), dice.IntN(3)
	onError := []string{"stop", "continue"}[dice.IntN(2)]
	f := fleetOf(t, fmt.Sprintf("maxUnavailable: %d, canary: %d, onError: %s, soak: %dm, ", most, canary, onError, dice.IntN(3)), n)
	for i := range n {
		f.fails[fmt.Sprint("n", i)] = dice.IntN(8) == 0
	}
	was := f.atWork()
	for range 2000 {
		if f.last.Act == workflow.ActClose {
			return
		}
		work := f.atWork()
		if len(work) > most {
			t.Fatalf("%v are at work, the limit is %d", work, most)
		}
		away, abandoned := 0, 0
		for name, s := range f.sig.Nodes["roll"] {
			switch {
			case s.Unavailable && s.Abandoned && !slices.Contains(work, name):
				abandoned++
			case s.Unavailable || slices.Contains(work, name):
				away++
			}
		}
		away += min(abandoned, most-1)
		for _, name := range work {
			if !slices.Contains(was, name) && !f.sig.Nodes["roll"][name].Unavailable && away > most {
				t.Fatalf("%s was begun although %d are away and the limit is %d", name, away, most)
			}
		}
		was = work
		name := fmt.Sprint("n", dice.IntN(n))
		switch at := slices.Contains(work, name); {
		case dice.IntN(3) == 0 && len(work) > 0:
			f.end(work[dice.IntN(len(work))])
		case dice.IntN(3) == 0 && !at && !f.fails[name]:
			f.report(name, func(s *workflow.NodeState) { s.Unavailable, s.Abandoned = dice.IntN(6) == 0, dice.IntN(2) == 0 })
			f.look()
		case dice.IntN(2) == 0:
			f.report(name, func(s *workflow.NodeState) { s.Granted = dice.IntN(4) > 0 })
			f.look()
		default:
			f.after(time.Minute)
		}
	}
	t.Fatalf("never ends: %q, %+v", f.message(), f.sig.Nodes["roll"])
}

// A drain that comes first, or behind what moves no pods, can be looked at before its node is taken.
func TestWhichDrainIsLookedAtBeforeANodeIsTaken(t *testing.T) {
	now := coretest.Clock("02:00")
	const leave = "{name: leave, type: drain, properties: {timeout: 7m}}"
	for steps, want := range map[string]bool{
		leave:                                  true,
		"{name: shut, type: cordon}, " + leave: true,
		"{name: ask, type: approval}, {name: hold, type: suspend}, " + leave:        true,
		coretest.Hook("move") + ", " + leave:                                        false,
		"{name: leave, type: drain, if: always}":                                    false,
		"{name: leave, type: drain, properties: {node: other}}":                     false,
		"{name: leave, type: drain, properties: {selector: {matchLabels: {a: b}}}}": false,
		"{name: leave, type: drain, properties: {onTimeout: skip}}":                 false,
		"{name: leave, type: drain, properties: {onTimeout: abort}}":                false, // it begins, and is given up in time
		"{name: leave, type: drain, properties: {onTimeout: abort, timeout: 0s}}":   true,
		coretest.Hook("work"): false,
	} {
		t.Run(steps, func(t *testing.T) {
			r := coretest.RunOf(t, "steps: [{name: roll, type: for-each-node, properties: {steps: ["+steps+"]}}]")
			for _, r.Request.DryRun = range []bool{false, true} {
				sig := workflow.Signals{Nodes: map[string]map[string]workflow.NodeState{"roll": {"n0": {}}}}
				j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(now), now, sig)
				listed := picks("n0")
				listed.Items.APIVersion, listed.Items.Kind = "v1", "Node"
				_, m := workflow.Advance(r, workflow.Note(r, j, "roll", listed, now), now, sig)
				if len(m.Wants) != 1 || (m.Wants[0].Drain != nil) != (want && !r.Request.DryRun) {
					t.Errorf("dry run %t: %+v", r.Request.DryRun, m.Wants)
				}
			}
		})
	}
}
