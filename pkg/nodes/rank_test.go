package nodes_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// one makes a node that is open and fine; its requests are "name", or
// "name phase", or "name phase {value}".
func one(name string, requests ...string) nodes.Node {
	n := nodes.Node{Name: name, UID: "u-" + name, Gate: nodes.Gate{Permitted: true}}
	values, statuses := map[string]string{}, map[string]string{}
	for _, r := range requests {
		parts := append(strings.SplitN(r, " ", 3), "", "")
		values[parts[0]] = parts[2]
		if parts[1] != "" {
			s := nodes.Status{Phase: nodes.Phase(parts[1]), Since: noon, Asked: noon, Started: &noon}
			if s.Phase == nodes.Pending {
				s.Started = nil
			}
			statuses[parts[0]] = s.String()
		}
	}
	n.Asked, n.Cordon = nodes.Read(values, statuses, "")
	return n
}

func with(n nodes.Node, change func(*nodes.Node)) nodes.Node {
	change(&n)
	return n
}

func cordoned(n nodes.Node) nodes.Node { n.Unschedulable = true; return n }

// keptFor is a node that is cordoned for somebody.
func keptFor(claimant string, n nodes.Node) nodes.Node {
	n.Unschedulable, n.Cordon = true, &nodes.Cordon{By: []string{claimant}}
	return n
}

func unready(n nodes.Node) nodes.Node { n.NotReady = true; return n }
func shut(n nodes.Node) nodes.Node {
	n.Gate = nodes.Gate{Reason: "window closed until 22:00"}
	return n
}

func zone(z string, n nodes.Node) nodes.Node { n.Zone = z; return n }

// aged is a node whose first request was first seen so long ago.
func aged(by time.Duration, n nodes.Node) nodes.Node {
	n.Asked = slices.Clone(n.Asked)
	for i := range n.Asked {
		if n.Asked[i].Status != nil {
			s := *n.Asked[i].Status
			s.Asked = s.Asked.Add(-by)
			n.Asked[i].Status = &s
		}
	}
	return n
}

// begun gives those that have the node the instant when they got it.
func begun(ago time.Duration, n nodes.Node) nodes.Node {
	n.Asked = slices.Clone(n.Asked)
	for i := range n.Asked {
		if s := n.Asked[i].Status; s != nil && s.Phase.Holds() {
			c, at := *s, noon.Add(-ago)
			c.Started = &at
			n.Asked[i].Status = &c
		}
	}
	return n
}

// limits reads "parallel 2", "unavailable 20%", "zone 1".
func limits(t testing.TB, words ...string) nodes.Limits {
	var l nodes.NodeLimits
	for _, w := range words {
		key, value, _ := strings.Cut(w, " ")
		switch key {
		case "parallel":
			l.MaxParallelOperations = value
		case "unavailable":
			l.MaxUnavailable = value
		case "withoutDrain":
			l.MaxWithoutDrain = &document.Duration{}
			if err := l.MaxWithoutDrain.UnmarshalText([]byte(value)); err != nil {
				t.Fatal(err)
			}
		case "zone":
			l.ZoneLimit, _ = strconv.Atoi(value)
		}
	}
	out, err := nodes.LimitsOf(l)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhoIsNext(t *testing.T) {
	list := func(n ...nodes.Node) []nodes.Node { return n }
	spare := func(n int, first ...nodes.Node) []nodes.Node {
		for len(first) < n {
			first = append(first, one(fmt.Sprintf("spare-%d", len(first))))
		}
		return first
	}
	for name, c := range map[string]struct {
		limits []string
		nodes  []nodes.Node
		holds  []nodes.Hold
		wants  []nodes.Candidate
		grants string // "node/claimant …"
		waits  []string
	}{
		"one request, one node": {nodes: list(one("a", "gpu")), grants: "a/gpu"},
		"by default one node at once": {
			nodes: list(one("a", "gpu"), one("b", "gpu"), one("c", "gpu")), grants: "a/gpu",
			waits: []string{"b/gpu Turn: waits its turn: 0 before it (maxParallelOperations 1)", "c/gpu Turn: waits its turn: 1 before it (maxParallelOperations 1)"},
		},
		"what is in maintenance takes a slot": {
			nodes: list(one("a", "gpu Ready"), one("b", "gpu")),
			waits: []string{"b/gpu Turn: waits its turn: 0 before it (maxParallelOperations 1); in maintenance: a"},
		},
		"a requestor that failed holds its slot": {
			nodes: list(one("a", "gpu RequestorFailed"), one("b", "net")),
			waits: []string{"b/net Turn: waits its turn: 0 before it (maxParallelOperations 1); in maintenance: a"},
		},
		"parallel shares are rounded up":           {limits: []string{"parallel 10%"}, nodes: spare(11, one("a", "gpu"), one("b", "gpu"), one("c", "gpu")), grants: "a/gpu b/gpu", waits: []string{"c/gpu Turn: waits its turn: 0 before it (maxParallelOperations 10% of 11 nodes is 2)"}},
		"parallel 0 is none":                       {limits: []string{"parallel 0"}, nodes: list(one("a", "gpu")), waits: []string{"a/gpu NoParallel: maxParallelOperations is 0: no maintenance of nodes begins"}},
		"parallel 0% is none":                      {limits: []string{"parallel 0%"}, nodes: list(one("a", "gpu")), waits: []string{"a/gpu NoParallel: maxParallelOperations is 0: no maintenance of nodes begins"}},
		"unavailable shares are rounded down":      {limits: []string{"parallel 9", "unavailable 20%"}, nodes: spare(9, one("a", "gpu"), one("b", "gpu")), grants: "a/gpu", waits: []string{"b/gpu UnavailableLimit: maxUnavailable 20% of 9 nodes is 1, and 1 are unavailable or about to be"}},
		"a share that rounds to nothing":           {limits: []string{"unavailable 20%"}, nodes: spare(4, one("a", "gpu")), waits: []string{"a/gpu UnavailableLimit: the limit maxUnavailable 20% of 4 nodes is 0"}},
		"a node that is out costs no budget":       {limits: []string{"parallel 9", "unavailable 0"}, nodes: list(cordoned(one("a", "gpu")), unready(one("b", "gpu")), one("c", "gpu")), grants: "a/gpu b/gpu", waits: []string{"c/gpu UnavailableLimit: the limit maxUnavailable is 0"}},
		"a node that is out eats the budget":       {limits: []string{"parallel 9", "unavailable 1"}, nodes: list(one("a", "gpu"), unready(one("b"))), waits: []string{"a/gpu UnavailableLimit: maxUnavailable is 1, and 1 are unavailable or about to be"}},
		"cordoned and failed counts once":          {limits: []string{"parallel 9", "unavailable 2"}, nodes: list(one("a", "gpu"), cordoned(unready(one("b")))), grants: "a/gpu"},
		"a zone has its limit":                     {limits: []string{"parallel 9", "zone 1"}, nodes: list(zone("eu-1", one("a", "gpu Draining")), zone("eu-1", one("b", "gpu")), zone("eu-2", one("c", "gpu")), zone("eu-2", one("d", "gpu"))), grants: "c/gpu", waits: []string{"b/gpu ZoneLimit: zone eu-1 already has 1 of 1: a", "d/gpu ZoneLimit: zone eu-2 already has 1 of 1: c"}},
		"nodes without a zone are in none":         {limits: []string{"parallel 9", "zone 1"}, nodes: list(one("a", "gpu"), one("b", "gpu")), grants: "a/gpu b/gpu"},
		"a later one that fits is taken":           {limits: []string{"parallel 2", "zone 1", "unavailable 2"}, nodes: list(zone("x", one("a", "gpu")), zone("x", one("b", "gpu")), zone("y", one("c", "gpu"))), grants: "a/gpu c/gpu", waits: []string{"b/gpu ZoneLimit: zone x already has 1 of 1: a"}},
		"a closed window passes its turn on":       {nodes: list(shut(one("a", "gpu")), one("b", "gpu")), grants: "b/gpu", waits: []string{"a/gpu WindowClosed: window closed until 22:00"}},
		"so does a node that goes away":            {nodes: list(with(one("a", "gpu"), func(n *nodes.Node) { n.Deleting = true }), one("b", "gpu")), grants: "b/gpu", waits: []string{"a/gpu NodeDeleting: the node is being deleted"}},
		"whose fault takes one line":               {nodes: list(with(one("a", "gpu Pending {"), func(n *nodes.Node) { n.Asked[0].Fault = "no\tJSON\r\nrun x: Succeeded\rand more" }), one("b", "gpu")), grants: "b/gpu", waits: []string{"a/gpu Invalid: the request cannot be read: no JSON; run x: Succeeded; and more"}},
		"so does a value that cannot be read":      {nodes: list(one("a", "gpu Pending {"), one("b", "gpu")), grants: "b/gpu", waits: []string{"a/gpu Invalid: the request cannot be read: this is no JSON: unexpected EOF"}},
		"so does a drain that could not end":       {nodes: list(hindered(one("a", "gpu")), one("b", "gpu")), grants: "b/gpu", waits: []string{"a/gpu Blocked: Blocked: budget web allows none; the node is not cordoned, and others have their turn"}},
		"one that would skip them is not held":     {nodes: list(hindered(one("a", `gpu Pending {"drain":{"onTimeout":"skip"}}`))), grants: "a/gpu"},
		"nor one that would delete them":           {nodes: list(hindered(one("a", `gpu Pending {"drain":{"onTimeout":"force"}}`))), grants: "a/gpu"},
		"but it does not delete what is refused":   {nodes: list(refused(one("a", `gpu Pending {"drain":{"onTimeout":"force"}}`)), one("b", "gpu")), grants: "b/gpu", waits: []string{"a/gpu Blocked: Blocked: shop/odd may not leave; the node is not cordoned, and others have their turn"}},
		"one that would skip what is refused goes": {nodes: list(refused(one("a", `gpu Pending {"drain":{"onTimeout":"skip"}}`))), grants: "a/gpu"},
		"one that would not drain neither":         {nodes: list(hindered(one("a", `gpu Pending {"drain":false}`))), grants: "a/gpu"},
		"without a drain a slot is kept for hours": {nodes: list(begun(4*time.Hour-time.Second, one("a", `gpu Ready {"drain":false}`)), one("b", "gpu")), waits: []string{"b/gpu Turn: waits its turn: 0 before it (maxParallelOperations 1); in maintenance: a"}},
		"and then it goes to others":               {nodes: list(begun(4*time.Hour, one("a", `gpu Ready {"drain":false}`)), one("b", "gpu")), grants: "b/gpu"},
		"a failed requestor's too":                 {nodes: list(begun(4*time.Hour, one("a", `gpu RequestorFailed {"drain":false,"failed":true}`)), one("b", "gpu")), grants: "b/gpu"},
		"not one's that drains":                    {nodes: list(begun(9*time.Hour, one("a", "gpu Ready")), one("b", "gpu")), waits: []string{"b/gpu Turn: waits its turn: 0 before it (maxParallelOperations 1); in maintenance: a"}},
		"the node counts as unavailable":           {limits: []string{"unavailable 1"}, nodes: list(begun(4*time.Hour, one("a", `gpu Ready {"drain":false}`)), one("b", "gpu")), waits: []string{"b/gpu UnavailableLimit: maxUnavailable is 1, and 1 are unavailable or about to be"}},
		"and nobody joins it without a slot":       {nodes: list(begun(4*time.Hour, one("a", `gpu Ready {"shared":true,"drain":false}`, `net Pending {"shared":true}`))), waits: []string{"a/net NodeHeld: the node is gpu's; waits until it is released"}},
		"the limit is the admin's":                 {limits: []string{"withoutDrain 10m"}, nodes: list(begun(10*time.Minute, one("a", `gpu Ready {"drain":false}`)), one("b", "gpu")), grants: "b/gpu"},
		"who may take it away":                     {limits: []string{"withoutDrain 0s"}, nodes: list(begun(100*time.Hour, one("a", `gpu Ready {"drain":false}`)), one("b", "gpu")), waits: []string{"b/gpu Turn: waits its turn: 0 before it (maxParallelOperations 1); in maintenance: a"}},
		"higher priority first":                    {nodes: list(one("a", "gpu"), one("b", `net Pending {"priority":1}`)), grants: "b/net", waits: []string{"a/gpu Turn: waits its turn: 0 before it (maxParallelOperations 1)"}},
		"an hour is worth a rank":                  {nodes: list(aged(2*time.Hour, one("a", "gpu Pending")), one("b", `net Pending {"priority":1}`)), grants: "a/gpu", waits: []string{"b/net Turn: waits its turn: 0 before it (maxParallelOperations 1)"}},
		"who is at work goes on first":             {limits: []string{"parallel 2"}, nodes: list(one("a", "gpu"), one("b", "net"), one("c", "net Draining")), grants: "b/net", waits: []string{"a/gpu Turn: waits its turn: 0 before it (maxParallelOperations 2); in maintenance: c"}},
		"then who waits for fewer":                 {nodes: list(one("a", "gpu"), one("b", "gpu"), one("c", "net")), grants: "c/net", waits: []string{"a/gpu Turn: waits its turn: 0 before it (maxParallelOperations 1)", "b/gpu Turn: waits its turn: 1 before it (maxParallelOperations 1)"}},
		"then who is older":                        {nodes: list(one("a", "gpu Pending"), aged(time.Minute, one("b", "net Pending"))), grants: "b/net", waits: []string{"a/gpu Turn: waits its turn: 0 before it (maxParallelOperations 1)"}},
		"a node has one requestor at once":         {limits: []string{"parallel 9"}, nodes: list(one("a", "gpu", "net")), grants: "a/gpu", waits: []string{"a/net NodeHeld: the node is gpu's; waits until it is released"}},
		"shared requests come together":            {nodes: list(one("a", `gpu Pending {"shared":true}`, `net Pending {"shared":true}`)), grants: "a/gpu a/net"},
		"who does not share is not passed by":      {nodes: list(one("a", `gpu Pending {"shared":true}`, `kernel Pending {}`, `net Pending {"shared":true}`)), grants: "a/gpu", waits: []string{"a/kernel NodeHeld: the node is gpu's; waits until it is released", "a/net NodeHeld: kernel waits for the node before it, and does not share it"}},
		"a shared one joins at no cost":            {nodes: list(one("a", `gpu Cordoning {"shared":true}`, `net Pending {"shared":true}`)), grants: "a/net"},
		"it joins one that works":                  {nodes: list(one("a", `gpu Ready {"shared":true}`, `net Pending {"shared":true,"waitFor":{}}`)), grants: "a/net"},
		"it joins a drain that serves it":          {nodes: list(one("a", `gpu Draining {"shared":true}`, `net Pending {"shared":true}`)), grants: "a/net"},
		"it does not prolong a drain":              {nodes: list(one("a", `gpu Draining {"shared":true}`, `net Pending {"shared":true,"drain":{"force":true}}`)), waits: []string{"a/net NodeHeld: the node is gpu's; waits until it is released"}},
		"it joins where another waits for a pass":  {nodes: list(one("a", `gpu Draining {"shared":true,"drain":{"podSelector":"app=b"}}`, `dpu Cordoning {"shared":true,"drain":{"podSelector":"app=a"}}`, `net Pending {"shared":true,"drain":{"podSelector":"app=b"}}`)), grants: "a/net"},
		"it passes by one that cannot join":        {nodes: list(one("a", `gpu Draining {"shared":true}`, `net Pending {"shared":true,"drain":{"force":true}}`, `sky Pending {"shared":true}`)), grants: "a/sky", waits: []string{"a/net NodeHeld: the node is gpu's; waits until it is released"}},
		"it is behind the first of others":         {nodes: list(one("a", `gpu Ready {"shared":true}`, "kernel Pending", "net Pending", `sky Pending {"shared":true}`)), waits: []string{"a/kernel NodeHeld: the node is gpu's; waits until it is released", "a/net NodeHeld: the node is gpu's; waits until it is released", "a/sky NodeHeld: kernel waits for the node before it, and does not share it"}},
		"nor a wait":                               {nodes: list(one("a", `gpu WaitingForPods {"shared":true,"waitFor":{}}`, `net Pending {"shared":true,"waitFor":{}}`)), waits: []string{"a/net NodeHeld: the node is gpu's; waits until it is released"}},
		"it does not join where it is alone":       {nodes: list(one("a", `gpu Ready {}`, `net Pending {"shared":true}`)), waits: []string{"a/net NodeHeld: the node is gpu's; waits until it is released"}},
		"a released node goes on at no cost":       {limits: []string{"unavailable 0"}, nodes: list(leaving(one("a", "gpu Ready", "net Pending"), "gpu"), one("b", "gpu")), grants: "a/net", waits: []string{"b/gpu UnavailableLimit: the limit maxUnavailable is 0"}},
		"but not past a lowered limit":             {nodes: list(leaving(one("a", "gpu Ready", "net Pending"), "gpu"), one("b", "gpu Ready")), waits: []string{"a/net Turn: waits its turn: more nodes are in maintenance than maxParallelOperations 1"}},
		"a rollout holds its node and a slot":      {nodes: list(one("a", "gpu"), one("b", "gpu")), holds: []nodes.Hold{{Node: "a", Claimant: thePlan}}, waits: []string{"a/gpu NodeHeld: the node is plan:infra/roll's; waits until it is released", "b/gpu Turn: waits its turn: 0 before it (maxParallelOperations 1); in maintenance: a"}},
		"one that failed holds no slot":            {limits: []string{"unavailable 2"}, nodes: list(one("b", "gpu"), keptFor(thePlan, one("a"))), holds: []nodes.Hold{{Node: "a", Claimant: thePlan, Cordoned: true, Failed: true}}, grants: "b/gpu"},
		"but counts as unavailable":                {limits: []string{"unavailable 1"}, nodes: list(one("b", "gpu"), keptFor(thePlan, one("a"))), holds: []nodes.Hold{{Node: "a", Claimant: thePlan, Cordoned: true, Failed: true}}, waits: []string{"b/gpu UnavailableLimit: maxUnavailable is 1, and 1 are unavailable or about to be"}},
		"also where no step of it cordons":         {limits: []string{"unavailable 1"}, nodes: list(one("b", "gpu"), one("a")), holds: []nodes.Hold{{Node: "a", Claimant: thePlan, Failed: true}}, waits: []string{"b/gpu UnavailableLimit: maxUnavailable is 1, and 1 are unavailable or about to be"}},
		"and in its zone":                          {limits: []string{"zone 1"}, nodes: list(zone("x", one("b", "gpu")), zone("x", one("a"))), holds: []nodes.Hold{{Node: "a", Claimant: thePlan, Failed: true}}, waits: []string{"b/gpu ZoneLimit: zone x already has 1 of 1: a"}},
		"one that cordons, of a node that is not cordoned for it, costs nobody anything": {limits: []string{"unavailable 1", "zone 1"}, nodes: list(zone("x", one("b", "gpu")), zone("x", one("a"))), holds: []nodes.Hold{{Node: "a", Claimant: thePlan, Cordoned: true, Failed: true}}, grants: "b/gpu"},
		"a drain has its node and a slot":                                                {nodes: list(one("b", "gpu"), keptFor(thePlan, one("a"))), holds: []nodes.Hold{{Node: "a", Claimant: thePlan, Cordoned: true}}, waits: []string{"b/gpu Turn: waits its turn: 0 before it (maxParallelOperations 1); in maintenance: a"}},
		"a drain that only a journal knows takes nobody's slot":                          {nodes: list(one("b", "gpu"), one("a")), holds: []nodes.Hold{{Node: "a", Claimant: thePlan, Cordoned: true}}, grants: "b/gpu"},
		"nor where the node is cordoned for another":                                     {limits: []string{"parallel 2", "unavailable 2"}, nodes: list(one("b", "gpu"), one("c", "gpu"), keptFor("plan:shop/p", one("a"))), holds: []nodes.Hold{{Node: "a", Claimant: thePlan, Cordoned: true}}, grants: "b/gpu", waits: []string{"c/gpu UnavailableLimit: maxUnavailable is 2, and 2 are unavailable or about to be"}},
		"nor keeps others from the node":                                                 {nodes: list(one("a", "gpu")), holds: []nodes.Hold{{Node: "a", Claimant: thePlan, Cordoned: true}}, grants: "a/gpu"},
		"nor by a slot that it yielded":                                                  {nodes: list(zone("x", one("b", "gpu")), zone("x", one("a"))), limits: []string{"zone 1"}, holds: []nodes.Hold{{Node: "a", Claimant: thePlan, Cordoned: true, Yielded: true}}, grants: "b/gpu"},
		"and may be tried again":                                                         {limits: []string{"unavailable 1", "zone 1"}, nodes: list(zone("x", one("a"))), holds: []nodes.Hold{{Node: "a", Claimant: thePlan, Failed: true}}, wants: []nodes.Candidate{{Node: "a", Claimant: thePlan, Permitted: true}}, grants: "a/plan:infra/roll"},
		"a rollout waits for a request":                                                  {limits: []string{"parallel 9"}, nodes: list(one("a", "gpu Ready")), wants: []nodes.Candidate{{Node: "a", Claimant: thePlan, Permitted: true}}, waits: []string{"a/plan:infra/roll NodeHeld: the node is gpu's; waits until it is released"}},
		"it is next for one that is just released":                                       {limits: []string{"unavailable 0"}, nodes: list(leaving(one("a", "gpu Ready"), "gpu")), wants: []nodes.Candidate{{Node: "a", Claimant: thePlan, Permitted: true}}, waits: []string{"a/plan:infra/roll NodeHeld: the node is being released"}},
		"a node that was kept for it is its first":                                       {nodes: list(with(cordoned(one("a")), func(n *nodes.Node) { n.Cordon = &nodes.Cordon{By: []string{thePlan}, Handed: &noon} }), one("b", `gpu Pending {"priority":9}`)), wants: []nodes.Candidate{{Node: "a", Claimant: thePlan, Permitted: true}}, grants: "a/plan:infra/roll", waits: []string{"b/gpu Turn: waits its turn: 0 before it (maxParallelOperations 1)"}},
		"one that it left cordoned is not":                                               {nodes: list(keptFor(thePlan, one("a")), one("b", `gpu Pending {"priority":9}`)), wants: []nodes.Candidate{{Node: "a", Claimant: thePlan, Permitted: true}}, grants: "b/gpu", waits: []string{"a/plan:infra/roll Turn: waits its turn: 0 before it (maxParallelOperations 1)"}},
		"but not past a lowered limit either":                                            {nodes: list(leaving(one("a", "gpu Ready"), "gpu"), one("b", "gpu Ready")), wants: []nodes.Candidate{{Node: "a", Claimant: thePlan, Permitted: true}}, waits: []string{"a/plan:infra/roll Turn: waits its turn: more nodes are in maintenance than maxParallelOperations 1"}},
		"the older of request and rollout":                                               {limits: []string{"parallel 9"}, nodes: list(one("a", "gpu Pending")), wants: []nodes.Candidate{{Node: "a", Claimant: thePlan, Permitted: true, Since: noon.Add(-time.Minute)}}, grants: "a/plan:infra/roll", waits: []string{"a/gpu NodeHeld: the node is plan:infra/roll's; waits until it is released"}},
		"a rollout's own order holds":                                                    {limits: []string{"parallel 2"}, nodes: list(one("a"), one("b"), one("c")), wants: []nodes.Candidate{wanted("c", "one/roll", 0), wanted("a", "one/roll", 1), wanted("b", "one/roll", 2)}, grants: "c/plan:infra/roll a/plan:infra/roll", waits: []string{"b/plan:infra/roll Turn: waits its turn: 0 before it (maxParallelOperations 2)"}},
		"also where a later one waits for longer":                                        {nodes: list(one("a"), one("b")), wants: []nodes.Candidate{wanted("b", "one/roll", 0), older(wanted("a", "one/roll", 1), noon.Add(-2*time.Hour))}, grants: "b/plan:infra/roll", waits: []string{"a/plan:infra/roll Turn: waits its turn: 0 before it (maxParallelOperations 1)"}},
		"a drain of a rollout that could not end":                                        {nodes: list(one("a"), one("b")), wants: []nodes.Candidate{blocked(wanted("a", "one/x", 0)), wanted("b", "one/x", 1)}, grants: "b/plan:infra/roll", waits: []string{"a/plan:infra/roll Blocked: Blocked: budget web allows none; the node is not cordoned, and others have their turn"}},
		"one that could not end takes nothing over":                                      {nodes: list(leaving(held(hindered(one("a", "gpu Ready", "net Pending"))), "gpu"), one("b", "sky Pending")), waits: []string{"b/sky Turn: waits its turn: 0 before it (maxParallelOperations 1); in maintenance: a", "a/net Blocked: Blocked: budget web allows none; it does not take the node over, and others have their turn"}},
		"two steps of a run never share a node":                                          {limits: []string{"parallel 9"}, nodes: list(one("a"), one("b")), wants: []nodes.Candidate{wanted("a", "one/x", 0), wanted("b", "one/x", 1), wanted("a", "one/y", 0)}, grants: "a/plan:infra/roll b/plan:infra/roll", waits: []string{"a/plan:infra/roll NodeHeld: the node is plan:infra/roll's; waits until it is released"}},
		"nor does one join what the other has":                                           {limits: []string{"parallel 9"}, nodes: list(one("a")), holds: []nodes.Hold{{Node: "a", Claimant: thePlan, Step: "one/x"}}, wants: []nodes.Candidate{wanted("a", "one/y", 0)}, waits: []string{"a/plan:infra/roll NodeHeld: the node is plan:infra/roll's; waits until it is released"}},
		"a rollout that may not":                                                         {nodes: list(one("a"), one("b")), wants: []nodes.Candidate{{Node: "a", Claimant: thePlan, Reason: "window closed"}, {Node: "c", Claimant: thePlan, Permitted: true}}, waits: []string{"a/plan:infra/roll WindowClosed: window closed", "c/plan:infra/roll NodeUnknown: there is no node c"}},
		"a grant that is not seen yet":                                                   {nodes: list(one("a", "gpu Pending"), one("b", "gpu Pending")), holds: []nodes.Hold{{Node: "a", Claimant: "gpu"}}, waits: []string{"b/gpu Turn: waits its turn: 0 before it (maxParallelOperations 1); in maintenance: a"}},
		"one that joins, and is not seen yet":                                            {nodes: list(one("a", `gpu Ready {"shared":true}`, `net Pending {"shared":true}`)), holds: []nodes.Hold{{Node: "a", Claimant: "net"}}},
		"a grant that is seen":                                                           {nodes: list(one("a", `gpu Ready {"shared":true}`, `net Pending {"shared":true}`)), holds: []nodes.Hold{{Node: "a", Claimant: "gpu"}}, grants: "a/net"},
		"a rollout that waits gets a released node":                                      {limits: []string{"parallel 9"}, nodes: list(leaving(one("a", "gpu Ready", "net Pending"), "gpu")), wants: []nodes.Candidate{{Node: "a", Claimant: thePlan, Permitted: true, Since: noon.Add(-time.Minute)}}, waits: []string{"a/plan:infra/roll NodeHeld: the node is being released", "a/net NodeHeld: plan:infra/roll waits for the node before it, and does not share it"}},
		"one that was given up and changed is fresh":                                     {nodes: list(aged(48*time.Hour, givenUp(one("a", "gpu Pending"), "another")), aged(time.Minute, one("b", "net Pending"))), grants: "b/net", waits: []string{"a/gpu Turn: waits its turn: 0 before it (maxParallelOperations 1)"}},
		"one that was given up and not changed waits":                                    {nodes: list(func() nodes.Node { n := one("a", "gpu Pending"); return givenUp(n, n.Asked[0].Request.Identity) }()), waits: []string{"a/gpu GivenUp: the drain was aborted"}},
		"an uncordoned node is passed on":                                                {nodes: list(with(leaving(one("a", "gpu Ready", "net Pending"), "gpu"), func(n *nodes.Node) { n.Cordon = &nodes.Cordon{By: []string{"gpu"}} })), waits: []string{"a/net Uncordoned: somebody uncordoned the node while it was held; it is free again when the present request is removed"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := nodes.Rank(nodes.ClusterState{Now: noon, Limits: limits(t, c.limits...), Nodes: c.nodes, Holds: c.holds, Wants: c.wants})
			var grants, waits []string
			for _, g := range r.Grants {
				grants = append(grants, g.Node+"/"+g.Claimant)
				if !r.Turns(g.Node)[g.Claimant].Granted {
					t.Errorf("the turn of %v does not say so", g)
				}
			}
			for _, w := range r.Waits {
				waits = append(waits, fmt.Sprintf("%s/%s %s: %s", w.Node, w.Claimant, w.Reason, w.Message))
				another := slices.ContainsFunc(r.Grants, func(g nodes.Grant) bool { return g.Node == w.Node && g.Claimant == w.Claimant && g.Step != w.Step })
				if turn := r.Turns(w.Node)[w.Claimant]; !another && (turn.Granted || turn.Wait == "") {
					t.Errorf("the turn of %v is %+v", w, turn)
				}
			}
			if got := strings.Join(grants, " "); got != c.grants {
				t.Errorf("grants %q, want %q", got, c.grants)
			}
			if diff := cmp.Diff(c.waits, waits); diff != "" {
				t.Errorf("waits, -want +got:\n%s", diff)
			}
		})
	}
}

// wanted is a node that a step of the plan would take, at its place in the step's order.
func wanted(node, step string, order int) nodes.Candidate {
	return nodes.Candidate{Node: node, Claimant: thePlan, Step: step, Order: order, Permitted: true}
}

func blocked(w nodes.Candidate) nodes.Candidate {
	w.Blocked = nodes.Block{Permanent: true, Text: "budget web allows none"}
	return w
}

// held is a node that is cordoned for its first requestor.
func held(n nodes.Node) nodes.Node {
	n.Unschedulable, n.Cordon = true, &nodes.Cordon{By: []string{n.Asked[0].Request.Requestor}}
	return n
}

func older(w nodes.Candidate, since time.Time) nodes.Candidate { w.Since = since; return w }

func hindered(n nodes.Node) nodes.Node {
	n.Asked = slices.Clone(n.Asked)
	for i := range n.Asked {
		n.Asked[i].Preview = nodes.Block{Permanent: true, Text: "budget web allows none"}
	}
	return n
}

// refused is a node with a pod that its drain may not evict.
func refused(n nodes.Node) nodes.Node {
	n.Asked = slices.Clone(n.Asked)
	for i := range n.Asked {
		n.Asked[i].Preview = nodes.Block{Permanent: true, Refused: true, Text: "shop/odd may not leave"}
	}
	return n
}

func givenUp(n nodes.Node, value string) nodes.Node {
	n.Asked[0].Status.Ended = &nodes.End{Why: nodes.EndAborted, Value: value}
	n.Asked[0].Status.Reason = "the drain was aborted"
	return n
}

// leaving is a node from which a request was just removed.
func leaving(n nodes.Node, requestor string) nodes.Node {
	n.Asked = slices.Clone(n.Asked)
	for i := range n.Asked {
		if n.Asked[i].Request.Requestor == requestor {
			n.Asked[i] = nodes.Asked{Request: nodes.Request{Requestor: requestor}, Gone: true, Status: n.Asked[i].Status}
		}
	}
	return n
}

func TestWhatOfTheConfigurationHoldsBackAll(t *testing.T) {
	for words, want := range map[string][]nodes.Condition{
		"parallel 1":      nil,
		"parallel 0":      {{Type: nodes.ConditionNoParallel, Message: "maxParallelOperations is 0: no maintenance of nodes begins"}},
		"unavailable 20%": {{Type: nodes.ConditionNoUnavailable, Message: "maxUnavailable 20% of 4 nodes is 0: no node that is available begins maintenance; allow at least 1"}},
		"unavailable 0":   {{Type: nodes.ConditionNoUnavailable, Message: "maxUnavailable is 0: no node that is available begins maintenance; allow at least 1"}},
		"unavailable 25%": nil,
	} {
		r := nodes.Rank(nodes.ClusterState{Now: noon, Limits: limits(t, words), Nodes: []nodes.Node{one("a"), one("b"), one("c"), one("d")}})
		if diff := cmp.Diff(want, r.Conditions); diff != "" {
			t.Errorf("%s: -want +got:\n%s", words, diff)
		}
	}
}

func TestLimitsAreRead(t *testing.T) {
	got, err := nodes.LimitsOf(nodes.NodeLimits{MaxUnavailable: 3, MaxNodeMaintenance: span(time.Hour), ReleaseExpired: true, ZoneLimit: 2})
	want := nodes.Limits{Parallel: document.Share{N: 1}, Unavailable: &document.Share{N: 3}, Zone: 2, MaxTime: time.Hour, WithoutDrain: nodes.DefaultWithoutDrain, ReleaseExpired: true, Yield: true}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	for _, l := range []nodes.NodeLimits{{MaxUnavailable: "many"}, {MaxParallelOperations: "-1"}} {
		if _, err := nodes.LimitsOf(l); err == nil {
			t.Errorf("%+v is taken", l)
		}
	}
}

// Who has a node at work elsewhere comes first; who only left one behind does not.
func TestARolloutThatIsAtWorkElsewhereComesFirst(t *testing.T) {
	other := wanted("a", "two/roll", 0)
	other.Claimant = nodes.PlanClaimant("infra", "a-plan")
	for name, c := range map[string]struct {
		hold nodes.Hold
		want string
	}{
		"at work":     {nodes.Hold{Node: "c", Claimant: thePlan, Step: "one/roll"}, "b"},
		"left behind": {nodes.Hold{Node: "c", Claimant: thePlan, Step: "one/roll", Failed: true}, "a"},
	} {
		w := nodes.ClusterState{
			Now: noon, Limits: nodes.Limits{Parallel: document.Share{N: 2}}, Nodes: []nodes.Node{one("a"), one("b"), one("c")},
			Holds: []nodes.Hold{c.hold}, Wants: []nodes.Candidate{other, wanted("b", "one/roll", 0)},
		}
		if r := nodes.Rank(w); len(r.Grants) == 0 || r.Grants[0].Node != c.want {
			t.Errorf("%s: %+v", name, r.Grants)
		}
	}
}

func TestHowManyNodesAreUnavailableIsSaid(t *testing.T) {
	w := nodes.ClusterState{
		Now: noon, Limits: nodes.Limits{Parallel: document.Share{N: 2}, Unavailable: &document.Share{N: 2}},
		Nodes: []nodes.Node{one("a", "gpu"), unready(one("b")), unready(one("c")), unready(one("d"))},
	}
	r := nodes.Rank(w)
	if want := "maxUnavailable is 2, and 3 are unavailable or about to be"; len(r.Waits) != 1 || r.Waits[0].Message != want {
		t.Errorf("%+v, want %q", r.Waits, want)
	}
}

// Else its cordon would be undone as that of a plan which does not take its node.
func TestARolloutHasTheNodeThatWasKeptForItWhileItWorksOnIt(t *testing.T) {
	handed := func(to *time.Time) nodes.Node {
		return with(keptFor(thePlan, one("a")), func(n *nodes.Node) { n.Cordon.Handed = to })
	}
	for name, c := range map[string]struct {
		node  nodes.Node
		holds []nodes.Hold
		want  bool
	}{
		"at work":                       {handed(&noon), []nodes.Hold{{Node: "a", Claimant: thePlan}}, true},
		"not yet":                       {handed(&noon), nil, false},
		"at work where it was not kept": {handed(nil), []nodes.Hold{{Node: "a", Claimant: thePlan}}, false},
	} {
		r := nodes.Rank(nodes.ClusterState{Now: noon, Limits: limits(t), Nodes: []nodes.Node{c.node, one("b")}, Holds: c.holds})
		if got := r.Turns("a")[thePlan].Granted; got != c.want {
			t.Errorf("%s: granted %t", name, got)
		}
	}
}

// A request of low priority is overtaken by fresh ones of a higher one, but not
// for ever.
func TestNoRequestWaitsForEver(t *testing.T) {
	old := one("old", `low Pending {"priority":-10}`)
	for hours := range 30 {
		now := noon.Add(time.Duration(hours) * time.Hour)
		fresh := one(fmt.Sprintf("fresh-%d", hours), `high Pending {"priority":10}`)
		fresh.Asked[0].Status.Asked = now
		r := nodes.Rank(nodes.ClusterState{Now: now, Limits: limits(t), Nodes: []nodes.Node{old, fresh}})
		if r.Grants[0].Node == "old" {
			if hours != 20 && hours != 21 {
				t.Errorf("after %d hours", hours)
			}
			return
		}
	}
	t.Error("it still waits after 30 hours")
}

func BenchmarkRank(b *testing.B) {
	w := nodes.ClusterState{Now: noon, Limits: limits(b, "parallel 10%", "unavailable 5%", "zone 20")}
	for i := range 5000 {
		n := zone(fmt.Sprintf("z%d", i%10), one(fmt.Sprintf("worker-%04d", i)))
		if i%10 == 0 {
			n = zone(n.Zone, one(n.Name, fmt.Sprintf(`req-%d Pending {"priority":%d,"shared":true}`, i%7, i%3)))
		}
		w.Nodes = append(w.Nodes, n)
	}
	for b.Loop() {
		nodes.Rank(w)
	}
}
