package nodes_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

func TestWhatTheRequestsOnANodeHaveOfIt(t *testing.T) {
	in := func(phase nodes.Phase) nodes.Asked { return nodes.Asked{Status: &nodes.Status{Phase: phase}} }
	blocked := func(phase nodes.Phase, permanent bool) nodes.Asked {
		a := in(phase)
		a.Status.Blocked = &nodes.Block{Permanent: permanent, Text: "a budget"}
		return a
	}
	gone, givenUp := in(nodes.Draining), in(nodes.Pending)
	gone.Gone = true
	givenUp.Status.Ended = &nodes.End{Why: nodes.EndAborted}
	for name, c := range map[string]struct {
		asked         []nodes.Asked
		atWork, waits bool
	}{
		"no request":                             {},
		"one that was not looked at yet waits":   {asked: []nodes.Asked{{}}, waits: true},
		"one that cannot be read, and never was": {asked: []nodes.Asked{{Fault: "no JSON"}}},
		"one that cannot be read":                {asked: []nodes.Asked{in(nodes.Invalid)}},
		"one that waits for its turn":            {asked: []nodes.Asked{in(nodes.Pending)}, waits: true},
		"one whose turn has come":                {asked: []nodes.Asked{in(nodes.Scheduled)}, atWork: true},
		"one whose node is cordoned":             {asked: []nodes.Asked{in(nodes.Cordoning)}, atWork: true},
		"one that waits for pods":                {asked: []nodes.Asked{in(nodes.WaitingForPods)}, atWork: true},
		"one that drains":                        {asked: []nodes.Asked{in(nodes.Draining)}, atWork: true},
		"a drain that a budget holds for now":    {asked: []nodes.Asked{blocked(nodes.Draining, false)}, atWork: true},
		"a drain that no waiting ends":           {asked: []nodes.Asked{blocked(nodes.Draining, true)}, waits: true},
		"the same, seen before its cordon":       {asked: []nodes.Asked{blocked(nodes.Pending, true)}, waits: true},
		"one that has the node":                  {asked: []nodes.Asked{in(nodes.Ready)}, atWork: true},
		"one that somebody uncordoned beneath":   {asked: []nodes.Asked{in(nodes.Uncordoned)}, atWork: true},
		"one whose requestor failed":             {asked: []nodes.Asked{in(nodes.RequestorFailed)}},
		"one that was given up":                  {asked: []nodes.Asked{givenUp}},
		"one that was taken back":                {asked: []nodes.Asked{gone}},
		"one that has the node, and one behind":  {asked: []nodes.Asked{in(nodes.Ready), in(nodes.Pending)}, atWork: true, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodes.Node{Asked: c.asked}
			if atWork, waits := n.Demand(); atWork != c.atWork || waits != c.waits {
				t.Errorf("at work %t, waits %t; want %t, %t", atWork, waits, c.atWork, c.waits)
			}
		})
	}
}
