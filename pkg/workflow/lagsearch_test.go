package workflow_test

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// lagSignals are what every leader knows: each node that a rollout may take is granted.
func lagSignals(leader string) workflow.Signals {
	granted := map[string]workflow.NodeState{"n0": {Granted: true}, "n1": {Granted: true}}
	return workflow.Signals{Leader: leader, Nodes: map[string]map[string]workflow.NodeState{"roll": granted}}
}

// history is every state of a run's journal that one leader writes, from its start to
// its end. What it does side by side ends one after the other.
func history(t *testing.T, r run.Run, now time.Time) []run.Journal {
	t.Helper()
	var out []run.Journal
	j := workflow.NewJournal(r).Start(now)
	for range 100 {
		next, m := workflow.Advance(r, j, now, lagSignals("a"))
		if len(out) == 0 || !same(next, out[len(out)-1]) {
			out = append(out, document.Clone(next))
		}
		j = next
		acted := false
		for _, m := range m.All() {
			switch m.Act {
			case workflow.ActClose:
				return out
			case workflow.ActPass:
				j = workflow.Note(r, j, m.Path, lagReport(m, coretest.Record(j, m.Path)), now)
			case workflow.ActStop:
				j = workflow.NoteStop(j, m.Path, nil)
			case workflow.ActRestore:
				j = workflow.NoteRestore(j, m.Path, run.RestoreDone, "", nil)
			default:
				continue
			}
			acted = true
			if !same(j, out[len(out)-1]) { // the outcome may be written before the next one comes
				out = append(out, document.Clone(j))
			}
		}
		if !acted {
			now = now.Add(time.Hour)
		}
	}
	t.Fatalf("the run does not end: %s", phases(j))
	return nil
}

// lagReport is what comes of a pass: first what is to be remembered, then the end.
func lagReport(m workflow.Action, rec run.Record) workflow.StepResult {
	switch {
	case m.Step.Type == plan.TypeForEach && !rec.Listed:
		return workflow.StepResult{Items: workflow.ItemList{Listed: true, List: []run.Item{{Name: "x", UID: "ux"}, {Name: "y", UID: "uy"}}, APIVersion: "v1", Kind: "ConfigMap"}}
	case m.Step.Type == plan.TypeForEachNode && !rec.Listed:
		return workflow.StepResult{Items: workflow.ItemList{Listed: true, List: []run.Item{{Name: "n0", UID: "u0"}, {Name: "n1", UID: "u1"}}, APIVersion: "v1", Kind: "Node"}}
	case m.Step.Properties["restoreAfter"] == true && rec.Before == nil:
		return workflow.StepResult{Before: []byte(`{"uid":"u"}`)}
	}
	return workflow.StepResult{Done: true}
}

// staleActs counts what a leader does that goes by an old state of a run, while the
// API server refuses what is written on an old version.
func staleActs(r run.Run, states []run.Journal, now time.Time, leader string) int {
	n := 0
	for truth := range states {
		for cached := range truth + 1 {
			next, m := workflow.Advance(r, states[cached], now, lagSignals(leader))
			if !same(next, states[cached]) && cached != truth { // the write is a conflict, and the state is read anew
				continue
			}
			for _, m := range m.All() {
				if m.Act != workflow.ActWait && cached != truth && overFor(m, coretest.Record(states[truth], m.Path)) {
					n++
				}
			}
		}
	}
	return n
}

// overFor says whether what a move does had been done when the record was written.
func overFor(m workflow.Action, rec run.Record) bool {
	if m.Act == workflow.ActRestore {
		return rec.Restored != ""
	}
	return rec.Phase.Ended()
}

func TestANewLeaderOnAnOldStateDoesNothingOfAStepThatHasEnded(t *testing.T) {
	now := coretest.Clock("10:00")
	seen := 0
	for _, kind := range plan.StepTypes() {
		if kind.Structure || kind.Name == plan.TypeForEach || kind.Name == plan.TypeForEachNode {
			continue
		}
		r := run.Run{Name: "r", Plan: "p", Namespace: "ns", PlanUID: "u", Spec: plan.Spec{
			Steps:   []plan.Step{{Name: "a", Type: kind.Name}, {Name: "b", Type: "webhook"}},
			Finally: []plan.Step{{Name: "c", Type: kind.Name}},
		}.Defaulted()}
		states := history(t, r, now)
		if n := staleActs(r, states, now, "b"); n > 0 {
			t.Errorf("%s: %d acts on steps that had ended", kind.Name, n)
		}
		seen += staleActs(r, states, now, "") // nobody writes itself down
	}
	const scale = "{name: s, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0, restoreAfter: true}}"
	for name, spec := range map[string]string{
		"restores":           "steps: [" + scale + ", " + coretest.Hook("b") + "]\nfinally: [" + coretest.Hook("f") + "]",
		"group":              "steps: [{name: g, type: step-group, properties: {steps: [" + scale + ", " + coretest.Hook("b") + "]}}, " + coretest.Hook("c") + "]",
		"side by side":       "steps: [" + parallel(0, scale, coretest.Hook("b"), coretest.Hook("c", "dependsOn: [b]")) + "]",
		"loop":               "steps: [" + loopOf("", scale, coretest.Hook("b")) + ", " + coretest.Hook("c") + "]",
		"loop, side by side": "steps: [" + loopOf(", maxConcurrency: 2", scale, coretest.Hook("b")) + "]",
		"rollout":            "steps: [{name: roll, type: for-each-node, properties: {selector: {matchLabels: {a: b}}, steps: [{name: d, type: drain}, " + coretest.Hook("b") + "]}}]",
	} {
		r := coretest.RunOf(t, spec)
		states := history(t, r, now)
		if n := staleActs(r, states, now, "b"); n > 0 {
			t.Errorf("%s: %d acts on what had ended", name, n)
		}
		if staleActs(r, states, now, "") == 0 {
			t.Errorf("%s: the search sees nothing", name)
		}
	}
	if seen == 0 {
		t.Error("the search sees nothing: without the write, steps that have ended are done again")
	}
}
