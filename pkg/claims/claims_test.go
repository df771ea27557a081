package claims_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/claims"
	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func TestWhichGateStandsBeforeARunThatWantsANode(t *testing.T) {
	now := coretest.Clock("02:00")
	closes := now.Add(20 * time.Minute)
	open := func(time.Time) schedule.Verdict {
		return schedule.Verdict{Permitted: true, Ready: true, Until: &closes}
	}
	shut := func(time.Time) schedule.Verdict {
		return schedule.Verdict{Ready: true, Reason: "outside", Until: &closes}
	}
	late := "it would take about 21m0s, and the node's window closes at " + closes.UTC().Format(time.RFC3339)
	bypass := intent.Intent{Bypass: intent.Bypass{Run: "r"}}
	paused := intent.Intent{Bypass: intent.Bypass{Run: "r"}, Pause: schedule.Pause{On: true}}
	everywhere := []schedule.Pause{{On: true, By: "cluster"}}
	for name, c := range map[string]struct {
		doubt  string
		pauses []schedule.Pause
		node   claims.Node
		needs  time.Duration
		want   nodes.Gate
		passes bool
	}{
		"an open window":                        {"", nil, claims.Node{Verdict: open}, 0, nodes.Gate{Permitted: true, Next: &closes}, false},
		"the work fits":                         {"", nil, claims.Node{Verdict: open}, 20 * time.Minute, nodes.Gate{Permitted: true, Next: &closes}, false},
		"the work would be through later":       {"", nil, claims.Node{Verdict: open}, 21 * time.Minute, nodes.Gate{Reason: late, Next: &closes}, false},
		"a closed window":                       {"", nil, claims.Node{Verdict: shut}, 0, nodes.Gate{Reason: "outside", Next: &closes, Opens: &closes}, false},
		"a closed window tells its own reason":  {"", nil, claims.Node{Verdict: shut}, 21 * time.Minute, nodes.Gate{Reason: "outside", Next: &closes, Opens: &closes}, false},
		"a bypass names the run":                {"", nil, claims.Node{bypass, shut}, time.Hour, nodes.Gate{Permitted: true, Next: &closes}, true},
		"the bypass is not needed":              {"", nil, claims.Node{bypass, open}, 21 * time.Minute, nodes.Gate{Reason: late, Next: &closes}, false},
		"no bypass passes a pause of the node":  {"", nil, claims.Node{paused, shut}, 0, nodes.GateWith(paused.Pause, shut, now), false},
		"nor one of the cluster":                {"", everywhere, claims.Node{bypass, shut}, 0, *nodes.ClosedBy(everywhere, now), false},
		"nor a doubt about the clock":           {"the clocks differ", nil, claims.Node{bypass, shut}, 0, nodes.Gate{Reason: "the clocks differ", Next: new(now.Add(30 * time.Second))}, false},
		"a doubt is told before a pause is":     {"the clocks differ", everywhere, claims.Node{Verdict: open}, 0, nodes.Gate{Reason: "the clocks differ", Next: new(now.Add(30 * time.Second))}, false},
		"a window that never closes fits all":   {"", nil, claims.Node{Verdict: func(time.Time) schedule.Verdict { return schedule.Verdict{Permitted: true, Ready: true} }}, time.Hour, nodes.Gate{Permitted: true}, false},
		"a bypass that names another run shuts": {"", nil, claims.Node{intent.Intent{Bypass: intent.Bypass{Run: "q"}}, shut}, 0, nodes.Gate{Reason: "outside", Next: &closes, Opens: &closes}, false},
	} {
		t.Run(name, func(t *testing.T) {
			gate, passes := claims.GateForRun(claims.ClusterGate(c.doubt, c.pauses, now), c.node, claims.Work{Run: "r", Needs: c.needs}, now)
			if diff := cmp.Diff(c.want, gate); diff != "" || passes != c.passes {
				t.Errorf("it passes: %t; -want +got:\n%s", passes, diff)
			}
			if c.needs > 0 || c.passes {
				return
			}
			if diff := cmp.Diff(c.want, claims.Gate(claims.ClusterGate(c.doubt, c.pauses, now), c.node, now)); diff != "" {
				t.Errorf("for a request: -want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatCountsAsAClaim(t *testing.T) {
	asked := nodes.Node{Asked: []nodes.Asked{{Request: nodes.Request{Requestor: "gpu"}}}}
	if got := claims.Asked(asked, false); len(got) != 1 {
		t.Errorf("a request: %v", got)
	}
	if got := claims.Asked(asked, true); len(got) != 0 {
		t.Errorf("a request that is withheld: %v", got)
	}
	holds := []nodes.Hold{{Node: "a"}, {Node: "b", Cordoned: true}}
	if got := claims.ActualHolds(holds, false); len(got) != 2 {
		t.Errorf("of a run that the ledger knows: %v", got)
	}
	if got := claims.ActualHolds(holds, true); len(got) != 1 || got[0].Node != "b" || len(holds) != 2 {
		t.Errorf("of one that it does not know: %v", got)
	}
}

func TestHowLongARolloutNeedsForANode(t *testing.T) {
	one := run.Run{Spec: plan.Spec{Steps: []plan.Step{
		{Name: "roll", Type: plan.TypeForEachNode, Properties: map[string]any{"estimate": "20m"}},
		{Name: "drain", Type: plan.TypeDrain, Properties: map[string]any{"estimate": "20m"}},
	}}}
	for path, want := range map[string]time.Duration{"roll": 20 * time.Minute, "drain": 0, "else": 0} {
		if got := claims.EstimatedDuration(one, path); got != want {
			t.Errorf("%s: %s, not %s", path, got, want)
		}
	}
}
