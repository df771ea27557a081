package run_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func stays(string) bool { return false }

func TestTurnsOfARun(t *testing.T) {
	through, now := time.Unix(1000, 0), time.Unix(2000, 0)
	j := run.Journal{Steps: []run.Record{
		{Path: "roll", Type: plan.TypeForEachNode, Items: []run.Item{
			{Name: "done", UID: "12345678-9abc", Phase: run.StepSucceeded, At: &through},
			{Name: "failed", Phase: run.StepFailed, At: &through},
			{Name: "cut-off", Phase: run.StepRunning},
			{Name: "tried-again", Phase: run.StepRunning, At: &through},
			{Name: "idle", Phase: run.StepSucceeded},
			{Name: "not-begun"},
		}},
		{Path: "each", Type: plan.TypeForEach, Items: []run.Item{{Name: "no-node", Phase: run.StepSucceeded, At: &through}}},
	}}
	want := run.NodeTurns{
		"done": {UID: "12345678", Last: 1000, Success: 1000}, "failed": {Last: 1000, Failed: 1000}, "cut-off": {Last: 2000, Failed: 2000}, "tried-again": {Last: 1000, Failed: 1000},
	}
	if diff := cmp.Diff(want, j.Turns(now)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTurnsAreRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		was, more run.NodeTurns
		gone      string
		want      run.NodeTurns
	}{
		"the first turn":               {nil, run.NodeTurns{"a": {Last: 5, Success: 5}}, "", run.NodeTurns{"a": {Last: 5, Success: 5}}},
		"a failure keeps the success":  {run.NodeTurns{"a": {Last: 5, Success: 5}}, run.NodeTurns{"a": {Last: 9, Failed: 9}}, "", run.NodeTurns{"a": {Last: 9, Success: 5, Failed: 9}}},
		"the same twice":               {run.NodeTurns{"a": {Last: 9, Success: 5, Failed: 9}}, run.NodeTurns{"a": {Last: 9, Failed: 9}}, "", run.NodeTurns{"a": {Last: 9, Success: 5, Failed: 9}}},
		"the first failure is kept":    {run.NodeTurns{"a": {Last: 7, Success: 5, Failed: 7}}, run.NodeTurns{"a": {Last: 9, Failed: 9}}, "", run.NodeTurns{"a": {Last: 9, Success: 5, Failed: 7}}},
		"a success ends the failures":  {run.NodeTurns{"a": {Last: 7, Success: 5, Failed: 6}}, run.NodeTurns{"a": {Last: 9, Success: 9}}, "", run.NodeTurns{"a": {Last: 9, Success: 9}}},
		"an older run ends later":      {run.NodeTurns{"a": {Last: 9, Failed: 9}}, run.NodeTurns{"a": {Last: 5, Success: 5}}, "", run.NodeTurns{"a": {Last: 9, Success: 5, Failed: 9}}},
		"an older agent's failure":     {run.NodeTurns{"a": {Last: 7, Success: 5}}, run.NodeTurns{"a": {Last: 9, Failed: 9}}, "", run.NodeTurns{"a": {Last: 9, Success: 5, Failed: 7}}},
		"and where none succeeded":     {run.NodeTurns{"a": {Last: 7}}, run.NodeTurns{"a": {Last: 9, Failed: 9}}, "", run.NodeTurns{"a": {Last: 9, Failed: 7}}},
		"one in the second of it":      {run.NodeTurns{"a": {Last: 5, Success: 5}}, run.NodeTurns{"a": {Last: 5, Failed: 5}}, "", run.NodeTurns{"a": {Last: 5, Success: 5}}},
		"another node under the name":  {run.NodeTurns{"a": {UID: "1", Last: 9, Success: 9}}, run.NodeTurns{"a": {UID: "2", Last: 8}}, "", run.NodeTurns{"a": {UID: "2", Last: 8}}},
		"a node that is gone is not":   {run.NodeTurns{"a": {Last: 9}, "b": {Last: 9}}, run.NodeTurns{"c": {Last: 9}}, "b", run.NodeTurns{"a": {Last: 9}, "c": {Last: 9}}},
		"what others had stays theirs": {run.NodeTurns{"b": {Last: 3}}, run.NodeTurns{"a": {Last: 9}}, "", run.NodeTurns{"a": {Last: 9}, "b": {Last: 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.was.With(c.more, func(name string) bool { return name == c.gone })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhoseTurnItWas(t *testing.T) {
	for _, c := range []struct {
		name, turn, node string
		want             bool
	}{
		{"this node's", "12345678", "12345678-9abc", true},
		{"another's under its name", "12345678", "abcdefgh-9abc", false},
		{"nobody says whose", "", "12345678-9abc", true},
		{"nobody says which node it is", "12345678", "", true},
		{"nobody says either", "", "", true},
	} {
		if got := (run.NodeTurn{UID: c.turn}).Of(c.node); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestTurnsAreBounded(t *testing.T) {
	many := run.NodeTurns{}
	for i := range run.MaxNodeTurns + 100 {
		many[fmt.Sprint("n", i)] = run.NodeTurn{Last: int64(i)}
	}
	got := run.NodeTurns(nil).With(many, stays)
	if _, oldest := got["n99"]; len(got) != run.MaxNodeTurns || oldest {
		t.Errorf("%d are kept, the oldest too: %t", len(got), oldest)
	}
}

func TestWhoseTurnIsOldest(t *testing.T) {
	for name, c := range map[string]struct{ first, second run.NodeTurn }{
		"who never had one comes first":                       {run.NodeTurn{}, run.NodeTurn{Last: 5, Success: 5}},
		"the older success":                                   {run.NodeTurn{Last: 4, Success: 4}, run.NodeTurn{Last: 5, Success: 5}},
		"one that never succeeded, though its turn was later": {run.NodeTurn{Last: 9, Failed: 9}, run.NodeTurn{Last: 5, Success: 5}},
		"one that failed since keeps its place":               {run.NodeTurn{Last: 9, Success: 4, Failed: 9}, run.NodeTurn{Last: 5, Success: 5}},
		"so says an older agent's record":                     {run.NodeTurn{Last: 9, Success: 4}, run.NodeTurn{Last: 5, Success: 5}},
		"who never had one, before who failed":                {run.NodeTurn{}, run.NodeTurn{Last: 1, Failed: 1}},
		"one that failed twice is behind its second failure":  {run.NodeTurn{Last: 5, Success: 5}, run.NodeTurn{Last: 9, Success: 4, Failed: 7}},
		"and before who had a turn after that":                {run.NodeTurn{Last: 9, Success: 4, Failed: 7}, run.NodeTurn{Last: 10, Success: 10}},
	} {
		if c.first.Compare(c.second) >= 0 || c.second.Compare(c.first) <= 0 {
			t.Errorf("%s: %+v is not before %+v", name, c.first, c.second)
		}
	}
}

// Whatever fails, and however many a run gets through before it stops: those that succeed have as many
// turns as each other, and one that fails has no more than one beside each of theirs.
func TestEveryNodeHasItsTurn(t *testing.T) {
	for _, failing := range [][]string{{}, {"n0"}, {"n1"}, {"n3"}, {"n0", "n1"}, {"n0", "n2", "n3"}} {
		turns, had, now := run.NodeTurns{}, map[string]int{}, time.Unix(0, 0)
		for range 60 { // runs, each of which ends at its first failure, or after two nodes
			order := []string{"n0", "n1", "n2", "n3"}
			slices.SortStableFunc(order, func(a, b string) int { return turns[a].Compare(turns[b]) })
			for _, name := range order[:2] {
				now = now.Add(time.Minute)
				had[name]++
				turn := run.NodeTurn{Last: now.Unix(), Success: now.Unix()}
				fails := slices.Contains(failing, name)
				if fails {
					turn = run.NodeTurn{Last: now.Unix(), Failed: now.Unix()}
				}
				turns = turns.With(run.NodeTurns{name: turn}, stays)
				if fails {
					break
				}
			}
		}
		least, most := 1000, 0
		for _, name := range []string{"n0", "n1", "n2", "n3"} {
			if !slices.Contains(failing, name) {
				least, most = min(least, had[name]), max(most, had[name])
			}
		}
		for _, name := range failing {
			if had[name] < least-1 || had[name] > 2*least+2 {
				t.Errorf("with %q failing, turns: %v (%s)", failing, had, name)
			}
		}
		if most-least > 1 || least < 10 {
			t.Errorf("with %q failing, turns: %v", failing, had)
		}
	}
}
