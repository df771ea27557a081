package lifecycle_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/lifecycle"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestWhatARunHasToDoWithNodes(t *testing.T) {
	drain := func(phase run.StepPhase, targets ...run.DrainTarget) run.Record {
		memory, err := json.Marshal(run.DrainMemory{Nodes: targets})
		if err != nil {
			t.Fatal(err)
		}
		return run.Record{Path: "drain", Type: "drain", Phase: phase, Memory: memory}
	}
	at := func(path string, rec run.Record) run.Record { rec.Path = path; return rec }
	of := func(path, drain string) []nodes.Hold { return []nodes.Hold{{Node: "a", Path: path, Drain: drain}} }
	opens := noon().Add(time.Hour)
	type list = []lifecycle.Work
	for name, c := range map[string]struct {
		holds []nodes.Hold
		wants []nodes.Candidate
		step  run.Record
		more  []run.Record
		want  list
	}{
		"nothing":                          {},
		"a node that it wants":             {wants: []nodes.Candidate{{Node: "a"}}, want: list{{Node: "a", Claimant: shop, Planned: true}}},
		"a node that it works on":          {holds: []nodes.Hold{{Node: "a"}}, want: list{{Node: "a", Claimant: shop, AtWork: true}}},
		"a node whose steps failed":        {holds: []nodes.Hold{{Node: "a", Failed: true}}},
		"a drain before its cordon":        {holds: of("roll", "roll/a/drain"), step: at("roll/a/drain", drain(run.StepRunning, run.DrainTarget{Name: "a"})), want: list{{Node: "a", Claimant: shop, Planned: true, Begun: true}}},
		"one in a group":                   {holds: of("roll", "roll/a/all/drain"), step: at("roll/a/all/drain", drain(run.StepRunning, run.DrainTarget{Name: "a"})), more: []run.Record{{Path: "roll/a/all", Type: plan.TypeGroup, Phase: run.StepRunning}}, want: list{{Node: "a", Claimant: shop, Planned: true, Begun: true}}},
		"one behind another step":          {holds: of("roll", "roll/a/drain"), step: at("roll/a/drain", drain(run.StepRunning, run.DrainTarget{Name: "a"})), more: []run.Record{{Path: "roll/a/copy", Type: "job", Phase: run.StepSucceeded}, {Path: "roll/a/reboot", Type: "job", Phase: run.StepPending}}, want: list{{Node: "a", Claimant: shop, AtWork: true}}},
		"a drain of a rollout":             {holds: of("roll", "roll/a/drain"), step: at("roll/a/drain", drain(run.StepRunning, run.DrainTarget{Name: "a", Cordoned: true, Since: noon()})), want: list{{Node: "a", Claimant: shop, AtWork: true}, {Node: "a", Claimant: shop, Draining: true, Since: noon()}}},
		"a drain":                          {holds: of("drain", "drain"), step: drain(run.StepRunning, run.DrainTarget{Name: "a", Cordoned: true, Since: noon()}), want: list{{Node: "a", Claimant: shop, Draining: true, Since: noon()}}},
		"one that is blocked for now":      {step: drain(run.StepRunning, run.DrainTarget{Name: "a", Cordoned: true, Why: "budget"}), want: list{{Node: "a", Claimant: shop, Draining: true, Blocked: true, Why: "budget"}}},
		"a rollout whose window is closed": {wants: []nodes.Candidate{{Node: "b", Path: "roll"}}, step: run.Record{Path: "roll", Type: "for-each-node", Phase: run.StepRunning, Window: &run.WindowWait{Why: "outside of the windows", Opens: &opens}}, want: list{{Node: "b", Claimant: shop, Planned: true, Opens: &opens, Closed: "outside of the windows"}}},
		"one that is blocked":              {step: drain(run.StepRunning, run.DrainTarget{Name: "a", Cordoned: true, Blocked: true, Why: "budget"}), want: list{{Node: "a", Claimant: shop, Draining: true, Blocked: true, Why: "budget"}}},
		"one that yielded its slot":        {step: drain(run.StepRunning, run.DrainTarget{Name: "a", Cordoned: true, Yielded: true}), want: list{{Node: "a", Claimant: shop, Draining: true, Blocked: true}}},
		"one node of two is through":       {step: drain(run.StepRunning, run.DrainTarget{Name: "a", Cordoned: true, Drained: true}, run.DrainTarget{Name: "b", Cordoned: true}), want: list{{Node: "a", Claimant: shop, Drained: true}, {Node: "b", Claimant: shop, Draining: true}}},
		"a drain that has ended":           {step: drain(run.StepSucceeded, run.DrainTarget{Name: "a", Cordoned: true, Drained: true, Since: noon()}), want: list{{Node: "a", Claimant: shop, Drained: true, Since: noon()}}},
		"one that left pods":               {step: drain(run.StepSucceeded, run.DrainTarget{Name: "a", Cordoned: true, Drained: true, Left: true}), want: list{{Node: "a", Claimant: shop, Incomplete: true}}},
		"an older agent's, that has ended": {step: drain(run.StepSucceeded, run.DrainTarget{Name: "a", Cordoned: true})},
		"one that failed":                  {step: drain(run.StepFailed, run.DrainTarget{Name: "a", Cordoned: true, Drained: true})},
		"a step that remembers otherwise":  {step: run.Record{Type: "drain", Phase: run.StepRunning, Memory: json.RawMessage(`"x"`)}},
		"a cordon":                         {step: run.Record{Type: "cordon", Phase: run.StepSucceeded, Memory: json.RawMessage(`{"nodes":[{"name":"a","cordoned":true,"drained":true}]}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			got := lifecycle.OfRun(shop, run.Journal{Phase: run.Running, Steps: append(c.more, c.step)}, c.holds, c.wants)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
