package run_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestARunThatBeginsWaitsNoMore(t *testing.T) {
	j := run.Journal{Phase: run.Pending, Waiting: run.WaitWindow, Message: "waits for its window", Steps: []run.Record{{Path: "a"}}}
	want := run.Journal{Phase: run.Running, Section: plan.SectionSteps, StartedAt: coretest.On("02:00"), Steps: []run.Record{{Path: "a"}}}
	if diff := cmp.Diff(want, j.Start(coretest.Clock("02:00"))); diff != "" {
		t.Error(diff)
	}
}

func TestARunThatNeverBeganSkipsItsSteps(t *testing.T) {
	j := run.Journal{Phase: run.Pending, Waiting: run.WaitQueue, Steps: []run.Record{{Path: "a", Phase: run.StepPending, Attempt: 1}}}
	end := run.End{Phase: run.Aborted, Reason: "Aborted", Message: "aborted by jane"}
	want := run.Journal{
		Phase: run.Pending, Section: plan.SectionClosing, Message: "aborted by jane", End: &end,
		Steps: []run.Record{{Path: "a", Phase: run.StepSkipped}},
	}
	if diff := cmp.Diff(want, j.EndUnstarted(end, coretest.Clock("02:00"))); diff != "" {
		t.Error(diff)
	}
	if j.Steps[0].Phase != run.StepPending {
		t.Error("the journal that was given has changed")
	}
}

func TestARunThatIsOverSaysHowItEnded(t *testing.T) {
	succeeded := &run.End{Phase: run.Succeeded}
	empty := run.Record{Path: "roll", Type: plan.TypeForEachNode, Phase: run.StepSucceeded, Message: run.NoNodesMessage}
	for _, c := range []struct {
		name    string
		journal run.Journal
		phase   run.Phase
		message string
	}{
		{"all steps done", run.Journal{End: succeeded, Waits: "for its label"}, run.Succeeded, "all steps are done"},
		{"with a message of its own", run.Journal{End: &run.End{Phase: run.Succeeded, Message: "early"}}, run.Succeeded, "early"},
		{"failed", run.Journal{End: &run.End{Phase: run.Failed, Message: "step a failed"}}, run.Failed, "step a failed"},
		{"failed without a word", run.Journal{Message: "old", End: &run.End{Phase: run.Failed}}, run.Failed, ""},
		{"no end was decided", run.Journal{Message: "at work"}, run.Failed, "at work"},
		{"a rollout had no nodes", run.Journal{End: succeeded, Steps: []run.Record{empty}}, run.Succeeded, "all steps are done; roll: " + run.NoNodesMessage},
		{"a rollout had nodes", run.Journal{End: succeeded, Steps: []run.Record{{Path: "roll", Type: plan.TypeForEachNode, Phase: run.StepSucceeded, Message: "3 nodes"}}}, run.Succeeded, "all steps are done"},
		{"a rollout without nodes was skipped", run.Journal{End: succeeded, Steps: []run.Record{{Path: "roll", Type: plan.TypeForEachNode, Phase: run.StepSkipped, Message: run.NoNodesMessage}}}, run.Succeeded, "all steps are done"},
		{"another step says so", run.Journal{End: succeeded, Steps: []run.Record{{Path: "x", Type: plan.TypeDrain, Phase: run.StepSucceeded, Message: run.NoNodesMessage}}}, run.Succeeded, "all steps are done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.journal.Finish(coretest.Clock("03:00"))
			if got.Phase != c.phase || got.Message != c.message || got.Waits != "" || !got.FinishedAt.Equal(coretest.Clock("03:00")) {
				t.Errorf("%s, %q at %v, waits %q; want %s, %q", got.Phase, got.Message, got.FinishedAt, got.Waits, c.phase, c.message)
			}
		})
	}
}

func TestTheLastWordsOfARun(t *testing.T) {
	done, failed := &run.End{Phase: run.Succeeded}, &run.End{Phase: run.Failed, Message: "step a failed"}
	drift := []run.Record{{Path: "a", Drift: new(wrote("flux", "spec.replicas", "3"))}}
	for _, c := range []struct {
		name    string
		dry     bool
		journal run.Journal
		want    string
	}{
		{"it succeeded", false, run.Journal{End: done}, "all steps are done"},
		{"somebody changed something meanwhile", false, run.Journal{End: done, Steps: drift}, "all steps are done; while it ran " + fluxSaid("spec.replicas")},
		{"so it was where it failed", false, run.Journal{End: failed, Steps: drift}, "step a failed; while it ran " + fluxSaid("spec.replicas")},
		{"a dry run", true, run.Journal{End: done}, "dry run, nothing was changed: all steps are done"},
		{"a dry run that failed", true, run.Journal{End: failed}, "dry run: step a failed"},
	} {
		r := run.Run{Request: run.Request{DryRun: c.dry}}
		if got := r.Finished(c.journal, coretest.Clock("03:00")).Message; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWhatARunStillHasToDoAtItsEnd(t *testing.T) {
	spec := coretest.NewRun().Spec
	for _, c := range []struct {
		name  string
		edit  func(*run.Run)
		steps []run.Record
		want  bool
	}{
		{"nothing", func(*run.Run) {}, []run.Record{{Path: "a", Type: "webhook"}}, false},
		{"its text is not known", func(r *run.Run) { r.Spec.Steps = nil }, nil, true},
		{"a cordon to be undone", func(*run.Run) {}, []run.Record{{Path: "a", Type: plan.TypeCordon}}, true},
		{"a drain to be undone", func(*run.Run) {}, []run.Record{{Path: "a", Type: "webhook"}, {Path: "b", Type: plan.TypeDrain}}, true},
		{"an uncordon leaves nothing", func(*run.Run) {}, []run.Record{{Path: "a", Type: plan.TypeUncordon}}, false},
		{"finally", func(r *run.Run) { r.Spec.Finally = spec.Steps }, nil, true},
		{"onFailure", func(r *run.Run) { r.Spec.OnFailure = spec.Steps }, nil, true},
	} {
		r := coretest.NewRun()
		c.edit(&r)
		if got := r.EndsWithWork(run.Journal{Steps: c.steps}); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestWhichStepsPutBackWhatTheyFound(t *testing.T) {
	r := coretest.RunOf(t, "steps: [{name: zero, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: web}, replicas: 0, restoreAfter: true}}, "+coretest.Hook("hook")+"]")
	for path, want := range map[string]bool{"zero": true, "hook": false, "absent": false} {
		if got := r.RestoresAt(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

func outputs(bytes int) map[string]any {
	return map[string]any{"text": strings.Repeat("x", bytes-len(`{"text":""}`))}
}

func cut() map[string]any { return map[string]any{"truncated": true} }

func TestAJournalThatOutgrowsItsPlaceLosesItsLargestOutputsFirst(t *testing.T) {
	full := func() run.Journal {
		return run.Journal{Steps: []run.Record{
			{Path: "small", Phase: run.StepSucceeded, Outputs: outputs(64), Message: "m", Changed: []run.Change{{Name: "x"}}},
			{Path: "large", Phase: run.StepSucceeded, Outputs: outputs(1000), Message: "m"},
			{Path: "middle", Phase: run.StepRunning, Outputs: outputs(500), Message: "at work", Changed: []run.Change{{Name: "y"}}},
			{Path: "none", Phase: run.StepFailed, Message: "why it failed"},
		}}
	}
	for _, c := range []struct {
		name                 string
		bytes                int
		large, middle, words bool // what went
	}{
		{"nothing to save", 0, false, false, false},
		{"one byte", 1, true, false, false},
		{"as many as the largest holds", 980, true, false, false},
		{"one more", 981, true, true, false},
		{"as many as both hold", 980 + 480, true, true, false},
		{"more than the outputs hold", 980 + 480 + 1, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := full()
			if c.large {
				want.Steps[1].Outputs, want.Truncated = cut(), true
			}
			if c.middle {
				want.Steps[2].Outputs = cut()
			}
			if c.words {
				want.Steps[0].Message, want.Steps[0].Changed = "", nil
			}
			before := full()
			if diff := cmp.Diff(want, before.WithoutOutputs(c.bytes)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(full(), before); diff != "" {
				t.Errorf("the journal that was given has changed:\n%s", diff)
			}
		})
	}
	words := full().WithoutOutputs(1 << 20)
	if words.Steps[3].Message != "" || words.Steps[2].Message != "at work" || len(words.Steps[2].Changed) != 1 {
		t.Errorf("of a step at work the words stay, of others they go: %+v", words.Steps)
	}
	first := run.Journal{Steps: []run.Record{{Path: "large", Outputs: outputs(1000)}, {Path: "small", Outputs: outputs(100)}}}.WithoutOutputs(100)
	if !cmp.Equal(first.Steps[0].Outputs, cut()) || cmp.Equal(first.Steps[1].Outputs, cut()) {
		t.Errorf("the largest stands first: %+v", first.Steps)
	}
	enough := full().WithoutOutputs(980 + 480 + 1 + 100) // the words of the first step hold 101
	if enough.Steps[0].Message != "" || enough.Steps[1].Message != "m" {
		t.Errorf("no more goes than has to: %+v", enough.Steps)
	}
}

func TestOutputsAreCappedByStepAndByRun(t *testing.T) {
	sizes := func(bytes ...int) run.Journal {
		j := run.Journal{}
		for _, n := range bytes {
			rec := run.Record{}
			if n > 0 {
				rec.Outputs = outputs(n)
			}
			j.Steps = append(j.Steps, rec)
		}
		return j
	}
	const most = run.MaxStepOutput
	for _, c := range []struct {
		name string
		j    run.Journal
		cut  []int // which are
	}{
		{"none", sizes(0, 0), nil},
		{"as many as a step may", sizes(most), nil},
		{"one byte more", sizes(most+1, 20), []int{0}},
		{"as many as a run may", sizes(most, most, most, most, most, most, 0, most, most), nil},
		{"one more output", sizes(most, most, most, most, most, most, most, most-20, 21, 20), []int{8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run.CapOutputs(&c.j)
			var got []int
			for i, rec := range c.j.Steps {
				if cmp.Equal(rec.Outputs, cut()) {
					got = append(got, i)
				}
			}
			if diff := cmp.Diff(c.cut, got); diff != "" || c.j.Truncated != (len(c.cut) > 0) {
				t.Errorf("truncated %t; -want +got:\n%s", c.j.Truncated, diff)
			}
		})
	}
	unwritable := run.Journal{Steps: []run.Record{{Outputs: map[string]any{"f": func() {}}}}}
	if run.CapOutputs(&unwritable); !cmp.Equal(unwritable.Steps[0].Outputs, cut()) {
		t.Errorf("what JSON cannot hold stays: %v", unwritable.Steps[0].Outputs)
	}
}

func TestWhetherAnAttemptIsToBegin(t *testing.T) {
	at := func(attempt int) run.Record {
		return run.Record{Path: "a", Phase: run.StepRunning, Attempt: attempt}
	}
	waiting := at(2)
	waiting.NotBefore = new(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for _, c := range []struct {
		name    string
		was, is run.Journal
		want    bool
	}{
		{"nothing is at work", run.Journal{}, run.Journal{Steps: []run.Record{{Path: "a", Phase: run.StepPending}}}, false},
		{"the first attempt", run.Journal{}, run.Journal{Steps: []run.Record{at(1)}}, true},
		{"the same attempt goes on", run.Journal{Steps: []run.Record{at(1)}}, run.Journal{Steps: []run.Record{at(1)}}, false},
		{"the next attempt", run.Journal{Steps: []run.Record{at(1)}}, run.Journal{Steps: []run.Record{at(2)}}, true},
		{"one that was not at work goes on", run.Journal{Steps: []run.Record{{Path: "a", Phase: run.StepPending, Attempt: 1}}}, run.Journal{Steps: []run.Record{at(1)}}, true},
		{"the next attempt, after its wait", run.Journal{Steps: []run.Record{waiting}}, run.Journal{Steps: []run.Record{at(2)}}, true},
		{"it waits on", run.Journal{Steps: []run.Record{waiting}}, run.Journal{Steps: []run.Record{waiting}}, false},
		{"in the steps", run.Journal{}, run.Journal{Section: plan.SectionSteps, Steps: []run.Record{at(1)}}, true},
		{"what cleans up waits for nobody", run.Journal{}, run.Journal{Section: plan.SectionFinally, Steps: []run.Record{at(1)}}, false},
	} {
		if got := c.is.BeginsStep(c.was); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestTheItemsOfALoopThatAreDone(t *testing.T) {
	loop := func(properties string) run.Run {
		return coretest.RunOf(t, "steps: [{name: each, type: for-each, properties: {apiVersion: v1, kind: Node"+properties+", steps: ["+coretest.Hook("work")+"]}}]")
	}
	items := []run.Item{{Name: "a", Phase: run.StepSucceeded}, {Name: "b", Phase: run.StepFailed}, {Name: "c"}, {Name: "d"}}
	names := func(items []run.Item) (out []string) {
		for _, i := range items {
			out = append(out, i.Name)
		}
		return out
	}
	for _, c := range []struct {
		name, properties string
		record           run.Record
		want             []string
	}{
		{"not listed", "", run.Record{Items: items}, nil},
		{"all in one batch", "", run.Record{Listed: true, Items: items}, []string{"a", "c", "d"}},
		{"the first batch", ", batches: [1, 3]", run.Record{Listed: true, Items: items}, []string{"a"}},
		{"the second batch", ", batches: [1, 3]", run.Record{Listed: true, Items: items, Batch: 1}, []string{"a", "c"}},
		{"the last batch", ", batches: [1, 3]", run.Record{Listed: true, Items: items, Batch: 2}, []string{"a", "c", "d"}},
		{"all batches are through", ", batches: [1, 3]", run.Record{Listed: true, Items: items, Batch: 3}, []string{"a", "c", "d"}},
		{"a loop without items", "", run.Record{Listed: true}, nil},
	} {
		c.record.Path = "each"
		j := run.Journal{Steps: []run.Record{c.record}}
		if diff := cmp.Diff(c.want, names(loop(c.properties).ItemsDone(j, "each"))); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	if got := loop("").ItemsDone(run.Journal{}, "each"); got != nil {
		t.Errorf("of a loop without a record: %v", got)
	}
	if items[1].Name != "b" {
		t.Errorf("the items of the record have changed: %v", items)
	}
}

func TestTheItemThatAPathLiesIn(t *testing.T) {
	r := coretest.RunOf(t, "steps: [{name: each, type: for-each, properties: {apiVersion: v1, kind: Node, steps: ["+coretest.Hook("work")+", {name: inner, type: for-each, properties: {apiVersion: v1, kind: Pod, steps: ["+coretest.Hook("deep")+"]}}]}}, "+coretest.Hook("after")+"]")
	j := run.Journal{Steps: []run.Record{
		{Path: "each", Type: plan.TypeForEach, ItemVersion: "v1", ItemKind: "Node", Items: []run.Item{{Name: "a"}, {Name: "b"}}},
		{Path: "each/b/inner", Type: plan.TypeForEach, ItemVersion: "v1", ItemKind: "Pod", Items: []run.Item{{Name: "p", Namespace: "shop"}}},
	}}
	for _, c := range []struct {
		path, item, kind string
		ok               bool
	}{
		{"each/b/work", "b", "Node", true},
		{"each/a/work", "a", "Node", true},
		{"each/b/inner", "b", "Node", true},
		{"each/b/inner/shop:p/deep", "p", "Pod", true},
		{"each/a/inner/shop:p/deep", "", "", false}, // the loop has no record there
		{"each/c/work", "", "", false},
		{"each", "", "", false},
		{"after", "", "", false},
		{"absent", "", "", false},
	} {
		item, of, ok := r.ItemOf(j, c.path)
		if item.Name != c.item || of.Kind != c.kind || ok != c.ok {
			t.Errorf("%s: %q of %q, %t", c.path, item.Name, of.Kind, ok)
		}
	}
	for _, c := range []struct{ loop, path, want string }{
		{"each", "each/b/work", "b"}, {"each", "each/b", "b"}, {"each", "each", ""}, {"each", "each2/b/work", ""}, {"each", "other", ""},
	} {
		if got := run.SegmentIn(c.loop, c.path); got != c.want {
			t.Errorf("%s in %s: %q, want %q", c.path, c.loop, got, c.want)
		}
	}
}

func TestWhatARolloutHasComeTo(t *testing.T) {
	items := []run.Item{{Name: "n0", Phase: run.StepSucceeded}, {Name: "n1", Phase: run.StepRunning}, {Name: "n2", Phase: run.StepFailed}, {Name: "n3"}, {Name: "n4"}}
	roll := run.Record{Path: "roll", Type: plan.TypeForEachNode, Phase: run.StepRunning, Listed: true, Items: items}
	want := run.Rollout{Path: "roll", Running: []string{"n1"}, Failed: []string{"n2"}, Left: 2}
	if diff := cmp.Diff([]run.Rollout{want}, run.Journal{Steps: []run.Record{{Path: "a"}, roll}}.Rollouts()); diff != "" {
		t.Error(diff)
	}
	for name, edit := range map[string]func(*run.Record){
		"another loop":       func(r *run.Record) { r.Type = plan.TypeForEach },
		"not listed yet":     func(r *run.Record) { r.Listed = false },
		"one that has ended": func(r *run.Record) { r.Phase = run.StepFailed },
	} {
		rec := roll
		edit(&rec)
		if got := (run.Journal{Steps: []run.Record{rec}}).Rollouts(); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	r := coretest.RunOf(t, "steps: [{name: roll, type: for-each-node, properties: {steps: [{name: drain, type: drain}, {name: g, type: step-group, properties: {steps: ["+coretest.Hook("work")+"]}}]}}, {name: each, type: for-each, properties: {apiVersion: v1, kind: Node, steps: ["+coretest.Hook("note")+"]}}]")
	j := run.Journal{Steps: []run.Record{roll, {Path: "each", Type: plan.TypeForEach, Items: []run.Item{{Name: "n1"}}}}}
	for path, want := range map[string]string{"roll/n1/drain": "n1", "roll/n2/g/work": "n2", "roll/n9/drain": "", "roll": "", "each/n1/note": "", "absent": ""} {
		if got, ok := r.RolloutNode(j, path); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %t", path, got, ok)
		}
	}
	if got, ok := r.RolloutNode(run.Journal{}, "roll/n1/drain"); ok {
		t.Errorf("without a record: %q", got)
	}
}

func TestARecordsMemoryIsKeptAsItWasWritten(t *testing.T) {
	text := `{"path":"a","type":"drain","phase":"Running","memory":{"n":9007199254740993}}`
	var rec run.Record
	if err := json.Unmarshal([]byte(text), &rec); err != nil {
		t.Fatal(err)
	}
	if string(rec.Memory) != `{"n":9007199254740993}` {
		t.Errorf("%s", rec.Memory)
	}
}
