package nodes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func TestAGateLetsChangeStartOnlyWhereItIsReady(t *testing.T) {
	next := time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)
	for _, c := range []struct{ permitted, ready, want bool }{{true, true, true}, {true, false, false}, {false, true, false}, {false, false, false}} {
		got := nodes.GateOf(schedule.Verdict{Permitted: c.permitted, Ready: c.ready, Reason: "why", Until: &next})
		if got.Permitted != c.want || got.Reason != "why" || got.Next != &next {
			t.Errorf("permitted %t, ready %t: %+v", c.permitted, c.ready, got)
		}
		if opens := c.ready && !c.permitted; (got.Opens == &next) != opens || (got.Opens == nil) == opens {
			t.Errorf("permitted %t, ready %t: it opens at %v", c.permitted, c.ready, got.Opens)
		}
	}
}

func TestAGateForARun(t *testing.T) {
	next, until := noon.Add(time.Hour), noon.Add(2*time.Hour)
	open := func(time.Time) schedule.Verdict { return schedule.Verdict{Permitted: true, Ready: true, Until: &next} }
	closed := func(time.Time) schedule.Verdict {
		return schedule.Verdict{Ready: true, Reason: "window closed", Until: &next}
	}
	paused, over := schedule.Pause{On: true, Until: &until}, schedule.Pause{On: true, Until: &noon}
	shut := nodes.Gate{Reason: "window closed", Next: &next, Opens: &next}
	inPause := nodes.Gate{Reason: "the node is paused", Next: &until, Opens: &until, Cause: schedule.Cause{Kind: schedule.CausePause}}
	for name, c := range map[string]struct {
		pause   schedule.Pause
		named   bool
		verdict func(time.Time) schedule.Verdict
		want    nodes.Gate
		passes  bool
	}{
		"an open window":                          {verdict: open, want: nodes.Gate{Permitted: true, Next: &next}},
		"an open window, and a bypass":            {named: true, verdict: open, want: nodes.Gate{Permitted: true, Next: &next}},
		"a closed window":                         {verdict: closed, want: shut},
		"a closed window, and a bypass":           {named: true, verdict: closed, want: nodes.Gate{Permitted: true, Next: &next}, passes: true},
		"a pause":                                 {pause: paused, verdict: open, want: inPause},
		"a pause, and a bypass":                   {pause: paused, named: true, verdict: closed, want: inPause},
		"a pause that is over":                    {pause: over, verdict: closed, want: shut},
		"a pause that is over, and a bypass":      {pause: over, named: true, verdict: closed, want: nodes.Gate{Permitted: true, Next: &next}, passes: true},
		"a pause that is over, of an open window": {pause: over, named: true, verdict: open, want: nodes.Gate{Permitted: true, Next: &next}},
	} {
		t.Run(name, func(t *testing.T) {
			got, passes := nodes.GateForRun(c.pause, c.named, c.verdict, noon)
			if diff := cmp.Diff(c.want, got); diff != "" || passes != c.passes {
				t.Errorf("passes %t, want %t; -want +got:\n%s", passes, c.passes, diff)
			}
		})
	}
}

func TestWhatAnAdminMayLimit(t *testing.T) {
	wait := func(d time.Duration) *document.Duration { return &document.Duration{Duration: d} }
	for _, c := range []struct {
		name   string
		limits nodes.NodeLimits
		want   string // one fault that begins so; empty: none
	}{
		{"nothing", nodes.NodeLimits{}, ""},
		{"no node at all", nodes.NodeLimits{MaxParallelOperations: int64(0), MaxUnavailable: "0%", MaxNodeMaintenance: wait(0)}, ""},
		{"numbers and shares", nodes.NodeLimits{MaxParallelOperations: "10%", MaxUnavailable: int64(3), ZoneLimit: 1, MaxNodeMaintenance: wait(time.Hour)}, ""},
		{"operations that are no number", nodes.NodeLimits{MaxParallelOperations: "many"}, `maxParallelOperations: "many" is neither a number nor a share`},
		{"nodes that are no number", nodes.NodeLimits{MaxUnavailable: "110%"}, `maxUnavailable: "110%" is neither a number nor a share`},
		{"a zone's limit below none", nodes.NodeLimits{ZoneLimit: -1}, "zoneLimit: must be a number of nodes, is -1"},
		{"a negative time", nodes.NodeLimits{MaxNodeMaintenance: wait(-time.Second)}, "maxNodeMaintenanceTime: must not be negative, is -1s"},
		{"a slot without an end", nodes.NodeLimits{MaxWithoutDrain: wait(0)}, ""},
		{"a negative time of a slot", nodes.NodeLimits{MaxWithoutDrain: wait(-time.Second)}, "maxTimeWithoutDrain: must not be negative, is -1s"},
		{"what this version does not do, which a condition says", nodes.NodeLimits{PauseMachineConfig: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			c.limits.Check(func(path, format string, args ...any) { got = append(got, path+": "+fmt.Sprintf(format, args...)) })
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The first fault stands in a condition, which must not be another at each look.
func TestFaultsOfLimitsHaveAnOrder(t *testing.T) {
	for range 50 {
		var got []string
		nodes.NodeLimits{MaxParallelOperations: "few", MaxUnavailable: "many"}.Check(func(path, _ string, _ ...any) { got = append(got, path) })
		if want := []string{"maxParallelOperations", "maxUnavailable"}; !slices.Equal(got, want) {
			t.Fatalf("faults of %q, want %q", got, want)
		}
	}
}

func TestWhatALookFoundIsRememberedWhileItMayHold(t *testing.T) {
	block := &nodes.Block{Permanent: true, Text: "budget"}
	yielded := time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		status *nodes.Status
		want   nodes.Block
	}{
		"no status":                      {nil, nodes.Block{}},
		"nothing was found":              {&nodes.Status{Phase: nodes.Pending}, nodes.Block{}},
		"before its node was cordoned":   {&nodes.Status{Phase: nodes.Pending, Blocked: block}, *block},
		"while it drains":                {&nodes.Status{Phase: nodes.Draining, Blocked: block}, nodes.Block{}},
		"while it has yielded its slot":  {&nodes.Status{Phase: nodes.Draining, Blocked: block, Yielded: &yielded}, *block},
		"it yielded and nothing is left": {&nodes.Status{Phase: nodes.Draining, Yielded: &yielded}, nodes.Block{}},
	} {
		if got := (nodes.Asked{Status: c.status}).Remembered(); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
