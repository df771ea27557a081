package run_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestWhatExpressionsMaySpeakOf(t *testing.T) {
	size := "5"
	r := coretest.NewRun(func(s *plan.Spec) {
		s.Description = "restarts orders"
		s.Parameters = []plan.Parameter{{Name: "size", Default: &size}, {Name: "who"}, {Name: "zone", Default: &size}}
	})
	r.Request = run.Request{Kind: run.ByToken, Token: "tok", At: coretest.Clock("02:30"), Actor: "jane", Reason: "fire", DryRun: true, Parameters: map[string]string{"zone": "a", "more": "b"}}
	j := run.Journal{Phase: run.Running, StartedAt: coretest.On("02:31"), Steps: []run.Record{
		{Path: "a", Phase: run.StepSucceeded, Attempt: 2, Reason: "Done", Message: "m", Outputs: map[string]any{"n": int64(3)}, StartedAt: coretest.On("02:31"), FinishedAt: coretest.On("02:32")},
		{Path: "b", Phase: run.StepPending},
	}}
	want := map[string]any{
		"run": map[string]any{
			"name": "r", "namespace": "shop", "reason": "fire", "scheduledTime": "2026-12-05T02:30:00Z", "dryRun": true, "actor": "jane (unverified)", "trigger": "manual",
			"startedAt": "2026-12-05T02:31:00Z", "phase": "Running", "parameters": map[string]any{"size": "5", "zone": "a", "more": "b"},
		},
		"plan":   map[string]any{"name": "orders", "namespace": "shop", "uid": "uid", "description": "restarts orders"},
		"target": map[string]any{"kind": "Deployment"},
		"steps": map[string]any{
			"a": map[string]any{"phase": "Succeeded", "attempt": int64(2), "reason": "Done", "message": "m", "outputs": map[string]any{"n": int64(3)}, "startedAt": "2026-12-05T02:31:00Z", "finishedAt": "2026-12-05T02:32:00Z"},
			"b": map[string]any{"phase": "Pending", "attempt": int64(0), "reason": "", "message": "", "outputs": map[string]any{}, "startedAt": "", "finishedAt": ""},
		},
		"trigger_reason": "fire", "context": map[string]any{"scheduledTime": "2026-12-05T02:30:00Z"},
		"required": map[string]any{}, "watched": nil, "each": nil, "params": map[string]any{}, "node": nil,
	}
	got := run.Vars(r, j, map[string]any{"kind": "Deployment"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	names := expr.Names()
	slices.Sort(names)
	var roots []string
	for name := range got {
		roots = append(roots, name)
	}
	slices.Sort(roots)
	if diff := cmp.Diff(names, roots); diff != "" {
		t.Errorf("the validator knows other roots than a run has:\n%s", diff)
	}
	j.End = &run.End{Phase: run.Failed, Message: "step a failed"}
	if ended := run.Vars(r, j, nil); ended["run"].(map[string]any)["phase"] != "Failed" || ended["run"].(map[string]any)["message"] != "step a failed" || ended["target"] != nil {
		t.Errorf("what cleans up knows how it ends: %v", ended["run"])
	}
	required := run.VarsAt(r, j, "a", run.Inputs{Required: map[string][]map[string]any{"pods": {{"n": 1}, {"n": 2}}, "none": {}}, Params: map[string]any{"p": "v"}})
	if diff := cmp.Diff(map[string]any{"pods": []any{map[string]any{"n": 1}, map[string]any{"n": 2}}, "none": []any{}}, required["required"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"p": "v"}, required["params"]); diff != "" {
		t.Error(diff)
	}
}

// nested is a run with steps in the items of a loop and of a rollout, and in a template,
// whose step has the name of one outside.
func nested(t *testing.T) (run.Run, run.Journal) {
	t.Helper()
	r := coretest.RunOf(t, "steps: ["+coretest.Hook("first")+", "+coretest.Hook("work")+
		", {name: each, type: for-each, properties: {apiVersion: v1, kind: Pod, steps: ["+coretest.Hook("restart")+", "+coretest.Hook("check")+"]}}"+
		", {name: roll, type: for-each-node, properties: {steps: ["+coretest.Hook("reboot")+"]}}"+
		", {name: box, type: template/tidy}]")
	inner := coretest.RunOf(t, "steps: ["+coretest.Hook("work")+"]").Spec.Steps
	r.Templates = map[string]plan.TemplateSpec{"tidy": {Steps: inner}}
	j := run.Journal{}
	for path, kind := range map[string]string{
		"first": "webhook", "work": "webhook", "each": plan.TypeForEach, "each/shop:p/restart": "webhook", "each/shop:q/restart": "webhook", "each/shop:p/check": "webhook",
		"roll": plan.TypeForEachNode, "roll/n0/reboot": "webhook", "box": "template/tidy", "box/work": "webhook",
	} {
		rec := run.Record{Path: path, Type: kind, Phase: run.StepSucceeded, Message: "of " + path}
		switch path {
		case "each":
			rec.ItemVersion, rec.ItemKind = "v1", "Pod"
			rec.Items = []run.Item{{Name: "p", Namespace: "shop", UID: "up"}, {Name: "q", Namespace: "shop", UID: "uq"}}
		case "roll":
			rec.ItemVersion, rec.ItemKind = "v1", "Node"
			rec.Items = []run.Item{{Name: "n0", UID: "u0"}}
		}
		j.Steps = append(j.Steps, rec)
	}
	return r, j
}

func TestAStepSpeaksOfThoseOfItsOwnItemAndOfThoseOutside(t *testing.T) {
	for _, c := range []struct {
		at   string
		want map[string]string // the steps that it may speak of, and which is meant
	}{
		{"first", map[string]string{"first": "first", "work": "work", "each": "each", "roll": "roll", "box": "box"}},
		{"each/shop:p/check", map[string]string{"first": "first", "work": "work", "restart": "each/shop:p/restart", "check": "each/shop:p/check", "each": "each", "roll": "roll", "box": "box"}},
		{"each/shop:q/check", map[string]string{"first": "first", "work": "work", "restart": "each/shop:q/restart", "each": "each", "roll": "roll", "box": "box"}},
		{"roll/n0/reboot", map[string]string{"first": "first", "work": "work", "reboot": "roll/n0/reboot", "each": "each", "roll": "roll", "box": "box"}},
		{"box/work", map[string]string{"first": "first", "work": "box/work", "each": "each", "roll": "roll", "box": "box"}},
	} {
		t.Run(c.at, func(t *testing.T) {
			r, j := nested(t)
			slices.SortFunc(j.Steps, func(a, b run.Record) int { return len(a.Path) - len(b.Path) })
			for range 2 { // whichever stands first in the journal
				got := map[string]string{}
				for name, step := range run.VarsAt(r, j, c.at, run.Inputs{})["steps"].(map[string]any) {
					got[name] = step.(map[string]any)["message"].(string)[len("of "):]
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
				slices.Reverse(j.Steps)
			}
		})
	}
}

func TestWhatEachAndNodeMean(t *testing.T) {
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "namespace": "shop", "uid": "up"}}
	node := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n0", "uid": "u0"}}
	foreign := map[string]any{"apiVersion": "example.org/v1", "kind": "Node"}
	for _, c := range []struct {
		name, at   string
		read       map[string]any
		each, node any
	}{
		{"outside of a loop", "first", nil, nil, nil},
		{"in an item: what the journal knows of it", "each/shop:p/restart", nil, pod, nil},
		{"in an item that is gone", "each/shop:x/restart", nil, nil, nil},
		{"in an item that was read", "each/shop:p/restart", map[string]any{"kind": "Pod", "status": "x"}, map[string]any{"kind": "Pod", "status": "x"}, nil},
		{"in a rollout", "roll/n0/reboot", nil, node, node},
		{"a node that was read", "each/shop:p/restart", node, node, node},
		{"a Node of another group", "each/shop:p/restart", foreign, foreign, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, j := nested(t)
			got := run.VarsAt(r, j, c.at, run.Inputs{Each: c.read})
			if diff := cmp.Diff([]any{c.each, c.node}, []any{got["each"], got["node"]}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatAStepYieldedIsNotChangedByWhoReadsIt(t *testing.T) {
	r, j := nested(t)
	j.Steps = append(j.Steps, run.Record{Path: "last", Outputs: map[string]any{"list": []any{int64(1)}}})
	steps := run.Vars(r, j, nil)["steps"].(map[string]any)
	steps["last"].(map[string]any)["outputs"].(map[string]any)["list"].([]any)[0] = int64(2)
	if diff := cmp.Diff([]any{int64(1)}, j.Record("last").Outputs["list"]); diff != "" {
		t.Error(diff)
	}
}

func TestAnActorThatTheAPIServerVouchesForIsGivenByTheBareName(t *testing.T) {
	r := coretest.NewRun(func(*plan.Spec) {})
	for want, request := range map[string]run.Request{
		"jane":              {Kind: run.ByToken, Actor: "jane", Verified: true},
		"jane (unverified)": {Kind: run.ByToken, Actor: "jane"},
		"":                  {Kind: run.BySchedule},
	} {
		r.Request = request
		if got := run.VarsAt(r, run.Journal{}, "a", run.Inputs{})["run"].(map[string]any)["actor"]; got != want {
			t.Errorf("actor %q, want %q", got, want)
		}
	}
}

func TestWhoAskedForARun(t *testing.T) {
	for want, request := range map[string]run.Request{
		"jane (unverified)":                            {Kind: run.ByToken, Actor: "jane"},
		"jane (unverified; reason: fire)":              {Kind: run.ByToken, Actor: "jane", Reason: "fire"},
		"jane (reason: fire), as of run maint-run-p-1": {Kind: run.ByToken, Actor: "jane", Verified: true, Reason: "fire", AsOf: "maint-run-p-1"},
		"jane":                  {Kind: run.ByToken, Actor: "jane", Verified: true},
		"manual (reason: fire)": {Kind: run.ByToken, Reason: "fire"},
		"schedule":              {Kind: run.BySchedule},
	} {
		if got := request.AskedBy(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
