package workflow_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

func TestWhatARunHasAndWantsOfNodes(t *testing.T) {
	const who = "plan:shop/p"
	began := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	drain := func(path string, targets ...run.DrainTarget) run.Record {
		memory, err := json.Marshal(run.DrainMemory{Attempt: 1, Since: began, Nodes: targets})
		if err != nil {
			t.Fatal(err)
		}
		return run.Record{Path: path, Type: plan.TypeDrain, Phase: run.StepRunning, Memory: memory}
	}
	rollout := func(items ...run.Item) run.Record {
		return run.Record{Path: "roll", Type: plan.TypeForEachNode, Phase: run.StepRunning, Listed: true, Items: items}
	}
	group := func(path string) run.Record { return run.Record{Path: path, Phase: run.StepRunning} }
	item := func(name string, phase run.StepPhase) run.Item { return run.Item{Name: name, Phase: phase} }
	since := func(rec run.Record) run.Record {
		rec.AttemptAt = &began
		return rec
	}
	through := func(name string, after time.Duration) run.Item {
		return run.Item{Name: name, Phase: run.StepSucceeded, At: new(began.Add(after))}
	}
	ended := drain("empty", run.DrainTarget{Name: "a", Cordoned: true})
	ended.Phase = run.StepFailed
	r := coretest.RunOf(t, "steps: [{name: roll, type: for-each-node, properties: {steps: [{name: drain, type: drain}, {name: both, type: step-group, properties: {mode: parallel, steps: ["+
		"{name: leave, type: drain}, "+coretest.Hook("copy")+"]}}]}}, {name: empty, type: drain, properties: {node: a}}]")
	r.Name, r.Namespace, r.Plan = "r", "shop", "p"
	for _, c := range []struct {
		name  string
		steps []run.Record
		holds []nodes.Hold
		wants []nodes.Candidate
	}{
		{"nothing", nil, nil, nil},
		{
			"a rollout at work",
			[]run.Record{rollout(item("a", run.StepSucceeded), item("b", run.StepRunning), item("c", run.StepFailed), item("d", ""))},
			[]nodes.Hold{{Node: "b", Claimant: who, Path: "roll"}, {Node: "c", Claimant: who, Path: "roll", Cordoned: true, Failed: true}},
			[]nodes.Candidate{{Node: "d", Claimant: who, Path: "roll"}},
		},
		{
			"a rollout with nobody at work",
			[]run.Record{rollout(item("a", run.StepSucceeded), item("b", ""), item("c", ""))},
			nil,
			[]nodes.Candidate{{Node: "b", Claimant: who, Path: "roll", Next: true}, {Node: "c", Claimant: who, Path: "roll"}},
		},
		{
			"a rollout that waits since it began",
			[]run.Record{since(rollout(item("a", ""), item("b", "")))},
			nil,
			[]nodes.Candidate{{Node: "a", Claimant: who, Path: "roll", Next: true, Since: began}, {Node: "b", Claimant: who, Path: "roll", Since: began}},
		},
		{
			"a rollout that waits since its last node was through",
			[]run.Record{since(rollout(through("a", 2*time.Hour), through("b", time.Hour), item("c", "")))},
			nil,
			[]nodes.Candidate{{Node: "c", Claimant: who, Path: "roll", Next: true, Since: began.Add(2 * time.Hour)}},
		},
		{
			"a rollout that is tried again waits since then",
			[]run.Record{since(rollout(through("a", -time.Hour), item("b", "")))},
			nil,
			[]nodes.Candidate{{Node: "b", Claimant: who, Path: "roll", Next: true, Since: began}},
		},
		{
			"a drain alone",
			[]run.Record{drain("empty", run.DrainTarget{Name: "a", Cordoned: true}, run.DrainTarget{Name: "b", Cordoned: true, Drained: true}, run.DrainTarget{Name: "c"})},
			[]nodes.Hold{{Node: "a", Claimant: who, Path: "empty", Drain: "empty", Cordoned: true}},
			[]nodes.Candidate{{Node: "c", Claimant: who, Path: "empty", Next: true, Since: began}},
		},
		{
			"a drain that was looked at before its cordon",
			[]run.Record{drain("empty", run.DrainTarget{Name: "a", Blocked: true, Why: "shop/db-0 cannot leave"}, run.DrainTarget{Name: "b", Blocked: true})},
			nil,
			[]nodes.Candidate{{Node: "a", Claimant: who, Path: "empty", Next: true, Since: began, Blocked: nodes.Block{Permanent: true, Text: "shop/db-0 cannot leave"}}, {Node: "b", Claimant: who, Path: "empty", Next: true, Since: began}},
		},
		{
			"a rollout's drain that yielded",
			[]run.Record{rollout(item("a", run.StepRunning)), drain("roll/a/drain", run.DrainTarget{Name: "a", Cordoned: true, Yielded: true})},
			[]nodes.Hold{{Node: "a", Claimant: who, Path: "roll", Drain: "roll/a/drain", Yielded: true}, {Node: "a", Claimant: who, Path: "roll/a/drain", Drain: "roll/a/drain", Yielded: true, Cordoned: true}},
			nil,
		},
		{
			"and other work beside the rollout",
			[]run.Record{rollout(item("a", run.StepRunning)), drain("roll/a/drain", run.DrainTarget{Name: "a", Cordoned: true}), group("copy")},
			[]nodes.Hold{{Node: "a", Claimant: who, Path: "roll", Drain: "roll/a/drain"}, {Node: "a", Claimant: who, Path: "roll/a/drain", Drain: "roll/a/drain", Cordoned: true}},
			nil,
		},
		{
			"and other work beside it",
			[]run.Record{rollout(item("a", run.StepRunning)), group("roll/a/both"), drain("roll/a/both/leave", run.DrainTarget{Name: "a", Cordoned: true, Yielded: true}), group("roll/a/both/copy")},
			[]nodes.Hold{{Node: "a", Claimant: who, Path: "roll"}, {Node: "a", Claimant: who, Path: "roll/a/both/leave", Drain: "roll/a/both/leave", Yielded: true, Cordoned: true}},
			nil,
		},
		{
			"a drain of a rollout in a group of its own",
			[]run.Record{rollout(item("a", run.StepRunning)), group("roll/a/both"), drain("roll/a/both/leave", run.DrainTarget{Name: "a", Cordoned: true})},
			[]nodes.Hold{{Node: "a", Claimant: who, Path: "roll", Drain: "roll/a/both/leave"}, {Node: "a", Claimant: who, Path: "roll/a/both/leave", Drain: "roll/a/both/leave", Cordoned: true}},
			nil,
		},
		{"a drain that has ended", []run.Record{ended}, nil, nil},
		{
			"a rollout's drain that has not closed its only node yet",
			[]run.Record{rollout(item("a", run.StepRunning)), drain("roll/a/drain", run.DrainTarget{Name: "a"})},
			[]nodes.Hold{{Node: "a", Claimant: who, Path: "roll", Drain: "roll/a/drain"}},
			nil,
		},
		{
			"a rollout's drain whose pods have left",
			[]run.Record{rollout(item("a", run.StepRunning)), drain("roll/a/drain", run.DrainTarget{Name: "a", Cordoned: true, Drained: true})},
			[]nodes.Hold{{Node: "a", Claimant: who, Path: "roll"}},
			nil,
		},
		{
			"a rollout's drain of other nodes, too: of its own, once it is closed",
			[]run.Record{rollout(item("a", run.StepRunning)), drain("roll/a/drain", run.DrainTarget{Name: "b", Cordoned: true}, run.DrainTarget{Name: "a", Cordoned: true})},
			[]nodes.Hold{{Node: "a", Claimant: who, Path: "roll", Drain: "roll/a/drain"}, {Node: "b", Claimant: who, Path: "roll/a/drain", Drain: "roll/a/drain", Cordoned: true}, {Node: "a", Claimant: who, Path: "roll/a/drain", Drain: "roll/a/drain", Cordoned: true}},
			nil,
		},
		{
			"a rollout's drain of other nodes, too: not before",
			[]run.Record{rollout(item("a", run.StepRunning)), drain("roll/a/drain", run.DrainTarget{Name: "b", Drained: true}, run.DrainTarget{Name: "a"})},
			[]nodes.Hold{{Node: "a", Claimant: who, Path: "roll"}},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := run.Journal{Phase: run.Running, Steps: c.steps}
			holds, wants := workflow.NodeClaims(r, j, r.Cordons)
			if diff := cmp.Diff(c.holds, holds); diff != "" {
				t.Errorf("holds: %s", diff)
			}
			if diff := cmp.Diff(c.wants, wants); diff != "" {
				t.Errorf("wants: %s", diff)
			}
			j.Phase = run.Pending
			if holds, wants := workflow.NodeClaims(r, j, r.Cordons); holds != nil || wants != nil {
				t.Errorf("a run that has not begun: %v %v", holds, wants)
			}
		})
	}
}

// What is left cordoned of a failed node counts only where the node says so, too: of a rollout
// that cordons. One that does not leaves its failed nodes as they are, and they count.
func TestWhetherARolloutLeavesItsFailedNodesCordoned(t *testing.T) {
	for steps, want := range map[string]bool{
		coretest.Hook("reboot"):                                  false,
		"{name: leave, type: drain}, " + coretest.Hook("reboot"): true,
		"{name: shut, type: cordon}":                             true,
		"{name: all, type: step-group, properties: {steps: [" + coretest.Hook("a") + ", {name: leave, type: drain}]}}":   true,
		"{name: all, type: step-group, properties: {steps: [" + coretest.Hook("a") + "]}}, {name: open, type: uncordon}": false,
	} {
		r := coretest.RunOf(t, "steps: [{name: roll, type: for-each-node, properties: {steps: ["+steps+"]}}]")
		j := run.Journal{Phase: run.Running, Steps: []run.Record{{Path: "roll", Type: plan.TypeForEachNode, Phase: run.StepRunning, Listed: true, Items: []run.Item{{Name: "a", Phase: run.StepFailed}, {Name: "b", Phase: run.StepRunning}}}}}
		holds, _ := workflow.NodeClaims(r, j, r.Cordons)
		if len(holds) != 2 || holds[0].Cordoned != want || !holds[0].Failed || holds[1].Cordoned {
			t.Errorf("%s: %+v", steps, holds)
		}
	}
}
