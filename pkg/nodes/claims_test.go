package nodes_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func TestWhatARunHasAndWantsOfNodes(t *testing.T) {
	const who = "plan:shop/p"
	drain := func(path string, targets ...plan.DrainTarget) plan.Record {
		memory, err := json.Marshal(plan.DrainMemory{Attempt: 1, Nodes: targets})
		if err != nil {
			t.Fatal(err)
		}
		return plan.Record{Path: path, Type: plan.TypeDrain, Phase: plan.StepRunning, Memory: memory}
	}
	rollout := func(items ...plan.Item) plan.Record {
		return plan.Record{Path: "roll", Type: plan.TypeForEachNode, Phase: plan.StepRunning, Listed: true, Items: items}
	}
	group := func(path string) plan.Record { return plan.Record{Path: path, Phase: plan.StepRunning} }
	item := func(name string, phase plan.StepPhase) plan.Item { return plan.Item{Name: name, Phase: phase} }
	ended := drain("drain", plan.DrainTarget{Name: "a", Cordoned: true})
	ended.Phase = plan.StepFailed
	for _, c := range []struct {
		name  string
		steps []plan.Record
		holds []nodes.Hold
		wants []nodes.Want
	}{
		{"nothing", nil, nil, nil},
		{
			"a rollout at work",
			[]plan.Record{rollout(item("a", plan.StepSucceeded), item("b", plan.StepRunning), item("c", plan.StepFailed), item("d", ""))},
			[]nodes.Hold{{Node: "b", Claimant: who, Path: "roll"}, {Node: "c", Claimant: who, Path: "roll", Failed: true}},
			[]nodes.Want{{Node: "d", Claimant: who, Path: "roll"}},
		},
		{
			"a rollout with nobody at work",
			[]plan.Record{rollout(item("a", plan.StepSucceeded), item("b", ""), item("c", ""))},
			nil,
			[]nodes.Want{{Node: "b", Claimant: who, Path: "roll", Next: true}, {Node: "c", Claimant: who, Path: "roll"}},
		},
		{
			"a drain alone",
			[]plan.Record{drain("drain", plan.DrainTarget{Name: "a", Cordoned: true}, plan.DrainTarget{Name: "b", Cordoned: true, Drained: true}, plan.DrainTarget{Name: "c"})},
			[]nodes.Hold{{Node: "a", Claimant: who, Path: "drain", Drain: "drain"}},
			[]nodes.Want{{Node: "c", Claimant: who, Path: "drain", Next: true}},
		},
		{
			"a rollout's drain that yielded",
			[]plan.Record{rollout(item("a", plan.StepRunning)), drain("roll/a/drain", plan.DrainTarget{Name: "a", Cordoned: true, Yielded: true})},
			[]nodes.Hold{{Node: "a", Claimant: who, Path: "roll", Drain: "roll/a/drain", Yielded: true}, {Node: "a", Claimant: who, Path: "roll/a/drain", Drain: "roll/a/drain", Yielded: true}},
			nil,
		},
		{
			"and other work beside it",
			[]plan.Record{rollout(item("a", plan.StepRunning)), group("roll/a/both"), drain("roll/a/both/drain", plan.DrainTarget{Name: "a", Cordoned: true, Yielded: true}), group("roll/a/both/copy")},
			[]nodes.Hold{{Node: "a", Claimant: who, Path: "roll"}, {Node: "a", Claimant: who, Path: "roll/a/both/drain", Drain: "roll/a/both/drain", Yielded: true}},
			nil,
		},
		{
			"a drain of a rollout in a group of its own",
			[]plan.Record{rollout(item("a", plan.StepRunning)), group("roll/a/both"), drain("roll/a/both/drain", plan.DrainTarget{Name: "a", Cordoned: true})},
			[]nodes.Hold{{Node: "a", Claimant: who, Path: "roll", Drain: "roll/a/both/drain"}, {Node: "a", Claimant: who, Path: "roll/a/both/drain", Drain: "roll/a/both/drain"}},
			nil,
		},
		{"a drain that has ended", []plan.Record{ended}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, j := plan.Run{Name: "r", Namespace: "shop", Plan: "p"}, plan.Journal{Phase: plan.RunRunning, Steps: c.steps}
			holds, wants := nodes.NodeClaims(run, j)
			if diff := cmp.Diff(c.holds, holds); diff != "" {
				t.Errorf("holds: %s", diff)
			}
			if diff := cmp.Diff(c.wants, wants); diff != "" {
				t.Errorf("wants: %s", diff)
			}
			j.Phase = plan.RunPending
			if holds, wants := nodes.NodeClaims(run, j); holds != nil || wants != nil {
				t.Errorf("a run that has not begun: %v %v", holds, wants)
			}
		})
	}
}
