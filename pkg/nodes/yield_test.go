package nodes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// queue is some nodes with their requests, and an agent that looks at all of them.
type queue struct {
	t      *testing.T
	world  nodes.ClusterState
	stuck  map[string]bool // nodes with a pod that never leaves
	block  nodes.Block     // what is said of it
	early  bool            // that is seen before the cordon too
	events []string
}

func newQueue(t *testing.T, limits nodes.Limits, list ...nodes.Node) *queue {
	return &queue{t: t, stuck: map[string]bool{}, block: web(), world: nodes.ClusterState{Now: noon, Limits: limits, Nodes: list}}
}

// settle looks until nothing is written any more.
func (q *queue) settle() *queue {
	q.t.Helper()
	for i := 0; q.look(); i++ {
		if i > 50 {
			q.t.Fatalf("writes for ever: %s", q)
		}
	}
	return q
}

func (q *queue) look() (wrote bool) {
	for i := range q.world.Nodes {
		q.preview(&q.world.Nodes[i])
	}
	ranking := nodes.Rank(q.world)
	for i, n := range q.world.Nodes {
		step := nodes.Advance(n, ranking.Turns(n.Name), q.world.Limits, q.world.Now)
		for _, e := range step.Events {
			q.events = append(q.events, n.Name+" "+e.Reason)
		}
		if step.Drain != nil && slices.ContainsFunc(n.Asked, func(a nodes.Asked) bool { return a.Status != nil && a.Status.Yielded != nil }) {
			q.t.Errorf("%s drains before it is written that it goes on", n.Name)
		}
		n = step.Apply(n)
		session := n.Drain
		n.Drain = nodes.Session{}
		if step.Drain != nil {
			n.Drain = nodes.Session{State: nodes.SessionDone, Key: step.Drain.Key}
			if q.stuck[n.Name] {
				n.Drain = nodes.Session{State: nodes.SessionRunning, Key: step.Drain.Key, Left: 1, Total: 3, Block: q.block}
			}
		}
		wrote = wrote || step.Writes() || n.Drain != session
		q.world.Nodes[i] = n
	}
	return wrote
}

func web() nodes.Block { return nodes.Block{Permanent: true, Text: "budget web allows none"} }

// preview is what a look at the pods finds: of a node that drains, or did.
func (q *queue) preview(n *nodes.Node) {
	n.Asked = slices.Clone(n.Asked)
	for i := range n.Asked {
		n.Asked[i].Preview = nodes.Block{}
		if q.stuck[n.Name] && (q.early || n.Cordon != nil) {
			n.Asked[i].Preview = q.block
		}
	}
}

// String is "a: gpu Draining yielded; b: net Ready".
func (q *queue) String() string {
	var out []string
	for _, n := range q.world.Nodes {
		var on []string
		for _, a := range n.Asked {
			text := a.Request.Requestor
			if a.Status != nil {
				text += " " + string(a.Status.Phase)
				if a.Status.Yielded != nil {
					text += " yielded"
				}
			}
			on = append(on, text)
		}
		text := n.Name + ": " + strings.Join(on, ", ")
		if n.Unschedulable {
			text += " |"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func (q *queue) is(want string) *queue {
	q.t.Helper()
	if got := q.settle().String(); got != want {
		q.t.Fatalf("now %q, want %q", got, want)
	}
	return q
}

func (q *queue) node(name string) *nodes.Node {
	return &q.world.Nodes[slices.IndexFunc(q.world.Nodes, func(n nodes.Node) bool { return n.Name == name })]
}

// ask puts another request on a node.
func (q *queue) ask(name, requestor, value string) *queue {
	n := q.node(name)
	r, err := nodes.Parse(requestor, value)
	if err != nil {
		q.t.Fatal(err)
	}
	n.Asked = append(slices.Clone(n.Asked), nodes.Asked{Request: r})
	return q
}

func (q *queue) release(name, requestor string) *queue {
	*q.node(name) = leaving(*q.node(name), requestor)
	return q
}

func (q *queue) reason(name string) string { return q.node(name).Asked[0].Status.Reason }

func yields() nodes.Limits { return nodes.Limits{Parallel: document.Share{N: 1}, Yield: true} }

func TestABlockedDrainGivesItsSlotToWhoeverWaitsAndComesBackFirst(t *testing.T) {
	q := newQueue(t, yields(), one("a", "gpu"), one("b"), one("c"))
	q.stuck["a"] = true
	q.is("a: gpu Draining |; b: ; c: ")
	q.ask("b", "net", "").is("a: gpu Draining yielded |; b: net Ready |; c: ")
	if got := q.reason("a"); !strings.Contains(got, "Blocked for good: budget web allows none; others have its turn meanwhile: the node stays cordoned") {
		t.Errorf("the reason is %q", got)
	}
	q.ask("c", "sky", `{"priority":1000}`).is("a: gpu Draining yielded |; b: net Ready |; c: sky Pending")
	q.stuck["a"] = false
	q.is("a: gpu Draining yielded |; b: net Ready |; c: sky Pending")
	if got := q.reason("a"); !strings.Contains(got, "waits its turn") {
		t.Errorf("the reason is %q", got)
	}
	q.release("b", "net").is("a: gpu Ready |; b: ; c: sky Pending")
	q.release("a", "gpu").is("a: ; b: ; c: sky Ready |")
	got := strings.Join(q.events, ", ")
	if strings.Count(got, "DrainYielded") != 1 || strings.Count(got, "DrainResumed") != 1 || strings.Count(got, "a DrainBlocked") != 1 {
		t.Errorf("the events are %s", got)
	}
}

func TestWhoDoesNotYield(t *testing.T) {
	short := yields()
	short.Unavailable = &document.Share{N: 1}
	zoned := yields()
	zoned.Zone = 1
	never := yields()
	never.Yield = false
	for name, c := range map[string]struct {
		limits nodes.Limits
		asks   string // of the node that is blocked
		other  nodes.Node
	}{
		"one that may not":                             {never, "gpu", one("b", "net")},
		"one for whom nobody waits":                    {yields(), "gpu", one("b")},
		"one whose slot is not all that is short":      {short, "gpu", one("b", "net")},
		"one in whose zone there is no place":          {zoned, "gpu", zone("x", one("b", "net"))},
		"one for another that could not go":            {yields(), "gpu", shut(one("b", "net"))},
		"one for another whose drain could not end":    {yields(), "gpu", hindered(one("b", "net"))},
		"one that goes on without those pods":          {yields(), `gpu Pending {"drain":{"onTimeout":"skip"}}`, one("b", "net")},
		"one that deletes them":                        {yields(), `gpu Pending {"drain":{"onTimeout":"force"}}`, one("b", "net")},
		"one whose node is not cordoned for its drain": {yields(), `gpu Pending {"cordon":false}`, one("b", "net")},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t, c.limits, zone("x", one("a", c.asks)), one("b"))
			q.stuck["a"] = true
			q.settle()
			q.world.Nodes[1] = c.other
			q.stuck["b"], q.early = c.other.Asked != nil && c.other.Asked[0].Preview.Permanent, true
			if got := q.settle().String(); strings.Contains(got, "yielded") || !strings.Contains(got, "gpu Draining") {
				t.Errorf("now %s", got)
			}
		})
	}
}

func TestADrainWhoseNodeIsCordonedForOthersAloneDoesNotYield(t *testing.T) {
	q := newQueue(t, yields(), one("a", `gpu Pending {"cordon":false}`), one("b"))
	q.stuck["a"] = true
	q.is("a: gpu Draining; b: ")
	*q.node("a") = keptFor(thePlan, *q.node("a"))
	q.ask("b", "net", "").is("a: gpu Draining |; b: net Pending")
}

// Force gets past budgets, not past a refusal: such a drain gives its slot away, and
// does not take its node over.
func TestADrainThatForcesYieldsToOthersWhileAPodIsRefused(t *testing.T) {
	q := newQueue(t, yields(), one("a", `gpu Pending {"drain":{"onTimeout":"force"}}`), one("b", "net"))
	q.stuck["a"], q.block = true, nodes.Block{Permanent: true, Refused: true, Text: "shop/odd may not leave"}
	q.is("a: gpu Draining yielded |; b: net Ready |")
	if s := q.node("a").Asked[0].Status; s.Blocked == nil || *s.Blocked != q.block {
		t.Errorf("its status is %s", s)
	}
	q.world.Now = q.world.Now.Add(time.Hour)
	q.is("a: gpu Draining yielded |; b: net Ready |")
}

// Two that are blocked do not hand one slot back and forth.
func TestTwoBlockedDrainsLeaveTheSlotToOthers(t *testing.T) {
	q := newQueue(t, yields(), one("a", "gpu"), one("b", "net"), one("c"))
	q.stuck["a"], q.stuck["b"] = true, true
	q.is("a: gpu Draining yielded |; b: net Draining |; c: ")
	q.ask("c", "sky", "").is("a: gpu Draining yielded |; b: net Draining yielded |; c: sky Ready |")
	q.stuck["b"] = false
	q.is("a: gpu Draining yielded |; b: net Draining yielded |; c: sky Ready |")
	q.release("c", "sky").is("a: gpu Draining yielded |; b: net Ready |; c: ")
	q.release("b", "net").is("a: gpu Draining yielded |; b: ; c: ")
	q.stuck["a"] = false
	q.is("a: gpu Ready |; b: ; c: ")
}

// A node that is away already needs no place among the unavailable ones.
func TestABlockedDrainYieldsToANodeThatIsAwayAlready(t *testing.T) {
	limits := yields()
	limits.Unavailable = &document.Share{N: 1}
	q := newQueue(t, limits, one("a", "gpu"), one("b"))
	q.stuck["a"] = true
	q.settle()
	q.world.Nodes[1] = cordoned(one("b", "net"))
	q.is("a: gpu Draining yielded |; b: net Ready |")
}

// One slot is what is short.
func TestOfTwoBlockedDrainsOneYieldsToOneThatWaits(t *testing.T) {
	limits := yields()
	limits.Parallel = document.Share{N: 2}
	q := newQueue(t, limits, one("a", "gpu"), one("b", "net"), one("c"))
	q.stuck["a"], q.stuck["b"] = true, true
	q.is("a: gpu Draining |; b: net Draining |; c: ")
	q.ask("c", "sky", "")
	if r := nodes.Rank(q.world); !slices.Equal(r.Yields, []string{"a"}) {
		t.Errorf("%v yield", r.Yields)
	}
}

// A mate whose drain is another waits for a pass of its own, also once its value has changed to one
// that could have gone along.
func TestABlockedDrainYieldsAlsoWhereAMateWaitsForAPassOfItsOwn(t *testing.T) {
	q := newQueue(t, yields(), one("a", `gpu Pending {"shared":true,"priority":1,"drain":{"evictionFilters":[{"byResourceNameRegex":"gpu"}]}}`, `net Pending {"shared":true,"drain":{"force":true,"timeout":"1m"}}`), one("b"))
	q.stuck["a"] = true
	q.is("a: gpu Draining, net Cordoning |; b: ")
	r, err := nodes.Parse("net", `{"shared":true,"drain":{"evictionFilters":[{"byResourceNameRegex":"net"}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	q.node("a").Asked[1].Request = r
	q.is("a: gpu Draining, net Cordoning |; b: ")
	q.ask("b", "sky", "").is("a: gpu Draining yielded, net Cordoning yielded |; b: sky Ready |")
}

// More are in maintenance than the limit allows now.
func TestAsManyBlockedDrainsYieldAsSlotsAreShort(t *testing.T) {
	limits := yields()
	limits.Parallel = document.Share{N: 2}
	q := newQueue(t, limits, one("a", "gpu"), one("b", "net"), one("c"))
	q.stuck["a"], q.stuck["b"] = true, true
	q.is("a: gpu Draining |; b: net Draining |; c: ")
	q.world.Limits.Parallel = document.Share{N: 1}
	q.ask("c", "sky", "")
	if r := nodes.Rank(q.world); !slices.Equal(r.Yields, []string{"a", "b"}) {
		t.Errorf("%v yield", r.Yields)
	}
	q.is("a: gpu Draining yielded |; b: net Draining yielded |; c: sky Ready |")
}

func TestADrainYieldsOnlyByTheWordOfItsOwnSession(t *testing.T) {
	q := newQueue(t, yields(), one("a", "gpu"), one("b"))
	q.stuck["a"] = true
	q.settle().ask("b", "net", "")
	for name, c := range map[string]struct {
		change func(*nodes.Session)
		yields []string
	}{
		"it is blocked":               {func(*nodes.Session) {}, []string{"a"}},
		"that is of another order":    {func(s *nodes.Session) { s.Key = "another" }, nil},
		"it has ended":                {func(s *nodes.Session) { s.State = nodes.SessionDone }, nil},
		"it is blocked only for now":  {func(s *nodes.Session) { s.Block.Permanent = false }, nil},
		"there is none after a crash": {func(s *nodes.Session) { *s = nodes.Session{} }, nil},
	} {
		world := q.world
		world.Nodes = slices.Clone(q.world.Nodes)
		c.change(&world.Nodes[0].Drain)
		if r := nodes.Rank(world); !slices.Equal(r.Yields, c.yields) {
			t.Errorf("%s: %v yield", name, r.Yields)
		}
	}
}

// What a session finds in the way and no look at the pods does, is not given way for:
// the look would send the node back at once.
func TestADrainThatALookFindsNothingInTheWayOfKeepsItsSlot(t *testing.T) {
	q := newQueue(t, yields(), one("a", "gpu"), one("b", "net"))
	q.stuck["a"] = true
	for range 10 {
		q.look()
		for i := range q.world.Nodes[0].Asked {
			q.world.Nodes[0].Asked[i].Preview = nodes.Block{}
		}
		if r := nodes.Rank(q.world); len(r.Yields) > 0 {
			t.Fatalf("%v yields", r.Yields)
		}
	}
}

func TestAYieldedNode(t *testing.T) {
	blocked := func(t *testing.T, value string) *queue {
		q := newQueue(t, yields(), one("a", "gpu Pending "+value), one("b"))
		q.stuck["a"] = true
		q.settle()
		return q.ask("b", "net", "").is("a: gpu Draining yielded |; b: net Ready |")
	}
	t.Run("is given back when its request goes", func(t *testing.T) {
		blocked(t, "").release("a", "gpu").is("a: ; b: net Ready |")
	})
	t.Run("goes on at once where the request asks for less", func(t *testing.T) {
		q := blocked(t, "")
		r, _ := nodes.Parse("gpu", `{"drain":false}`)
		q.node("a").Asked[0].Request = r
		q.release("b", "net").is("a: gpu Ready |; b: ")
	})
	t.Run("is not joined by those who share", func(t *testing.T) {
		q := blocked(t, `{"shared":true}`).ask("a", "kernel", `{"shared":true}`)
		q.is("a: gpu Draining yielded, kernel Pending |; b: net Ready |")
		q.stuck["a"] = false
		q.release("b", "net").is("a: gpu Ready, kernel Ready |; b: ")
	})
	t.Run("aborts in time without a slot", func(t *testing.T) {
		q := blocked(t, `{"drain":{"timeout":"5m","onTimeout":"abort"}}`)
		q.world.Now = noon.Add(4 * time.Minute)
		q.is("a: gpu Draining yielded |; b: net Ready |")
		q.world.Now = noon.Add(6 * time.Minute)
		q.is("a: gpu Pending; b: net Ready |")
		if got := q.reason("a"); !strings.Contains(got, "aborted after 5m") || !strings.Contains(got, "budget web") {
			t.Errorf("the reason is %q", got)
		}
	})
	for name, value := range map[string]string{
		"does not abort without a limit":         `{"drain":{"timeout":"0s","onTimeout":"abort"}}`,
		"does not abort where that is not asked": `{"drain":{"timeout":"5m","onTimeout":"retry"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			q := blocked(t, value)
			q.world.Now = noon.Add(time.Hour)
			q.is("a: gpu Draining yielded |; b: net Ready |")
			if since := q.node("a").Asked[0].Status.Since; !since.Equal(noon) {
				t.Errorf("its drain begins anew at %s", since)
			}
		})
	}
	t.Run("goes on when nobody may yield any more", func(t *testing.T) {
		q := blocked(t, "")
		q.world.Limits.Yield = false
		q.release("b", "net").is("a: gpu Draining |; b: ")
	})
	t.Run("that somebody uncordons is left so", func(t *testing.T) {
		q := blocked(t, "")
		q.node("a").Unschedulable = false
		q.stuck["a"] = false
		q.release("b", "net").is("a: gpu Draining yielded; b: ")
		q.node("a").Unschedulable = true
		q.is("a: gpu Ready |; b: ")
	})
	t.Run("counts as unavailable and in its zone", func(t *testing.T) {
		q := blocked(t, "")
		q.world.Limits.Unavailable = &document.Share{N: 2}
		q.world.Nodes = append(q.world.Nodes, one("c", "sky"))
		q.release("b", "net").is("a: gpu Draining yielded |; b: ; c: sky Ready |")
		q.world.Limits.Unavailable = &document.Share{N: 1}
		q.release("c", "sky").ask("b", "kernel", "").is("a: gpu Draining yielded |; b: kernel Pending; c: ")
	})
	t.Run("has its mark in its status", func(t *testing.T) {
		q := blocked(t, "")
		s, ok := nodes.ParseStatus(q.node("a").Asked[0].Status.String())
		if !ok || s.Yielded == nil || !s.Yielded.Equal(noon) || s.Blocked == nil {
			t.Errorf("the status is %s", s)
		}
	})
}

// gaveWay is a node whose requests yielded their slot.
func gaveWay(n nodes.Node) nodes.Node {
	for i := range n.Asked {
		n.Asked[i].Status.Yielded = &noon
	}
	return n
}

// others is what another plan wants of the same node, by a step of the same name.
func others(w nodes.Candidate) nodes.Candidate {
	w.Claimant, w.Permitted = nodes.PlanClaimant("infra", "other"), true
	return w
}

// The ranker may see an uncordon before anybody wrote it down.
func TestADrainWhoseNodeWasUncordonedJustNowKeepsItsSlot(t *testing.T) {
	q := newQueue(t, yields(), one("a", "gpu"), one("b"))
	q.stuck["a"] = true
	q.is("a: gpu Draining |; b: ")
	q.ask("b", "net", "")
	if r := nodes.Rank(q.world); !slices.Equal(r.Yields, []string{"a"}) {
		t.Fatalf("%v yields", r.Yields)
	}
	q.node("a").Unschedulable = false
	if r := nodes.Rank(q.world); len(r.Yields) > 0 {
		t.Errorf("%v yields", r.Yields)
	}
}

func TestARolloutYieldsItsSlotAndComesBackFirst(t *testing.T) {
	step := func(h nodes.Hold) nodes.Hold { h.Node, h.Claimant, h.Step = "a", thePlan, "one/roll/a/drain"; return h }
	item := func(h nodes.Hold) nodes.Hold { h.Node, h.Claimant, h.Step = "a", thePlan, "one/roll"; return h }
	back := nodes.Candidate{Node: "a", Claimant: thePlan, Step: "one/roll/a/drain"}
	busy := nodes.Hold{Node: "b", Claimant: nodes.PlanClaimant("infra", "other"), Step: "two/roll"}
	for name, c := range map[string]struct {
		holds                 []nodes.Hold
		wants                 []nodes.Candidate
		nodes                 []nodes.Node
		grants, yields, waits string
	}{
		"a stalled drain yields":          {holds: []nodes.Hold{step(nodes.Hold{Stalled: true}), item(nodes.Hold{Stalled: true})}, nodes: []nodes.Node{cordoned(one("a")), one("b", "net")}, yields: "a", waits: "b/net Turn"},
		"not beside other work":           {holds: []nodes.Hold{step(nodes.Hold{Stalled: true}), item(nodes.Hold{})}, nodes: []nodes.Node{cordoned(one("a")), one("b", "net")}, waits: "b/net Turn"},
		"its slot is another's":           {holds: []nodes.Hold{step(nodes.Hold{Yielded: true}), item(nodes.Hold{Yielded: true})}, nodes: []nodes.Node{cordoned(one("a")), one("b", "net")}, grants: "b/net"},
		"its node is not":                 {holds: []nodes.Hold{step(nodes.Hold{Yielded: true}), item(nodes.Hold{Yielded: true})}, nodes: []nodes.Node{cordoned(one("a", "net"))}, waits: "a/net NodeHeld"},
		"it stays away while it is stuck": {holds: []nodes.Hold{step(nodes.Hold{Yielded: true}), item(nodes.Hold{Yielded: true})}, wants: []nodes.Candidate{blocked(back)}, nodes: []nodes.Node{cordoned(one("a")), one("b")}, waits: "a/plan:infra/roll Blocked"},
		"it comes back first":             {holds: []nodes.Hold{step(nodes.Hold{Yielded: true}), item(nodes.Hold{Yielded: true})}, wants: []nodes.Candidate{back}, nodes: []nodes.Node{cordoned(one("a")), one("b", `net Pending {"priority":9}`)}, grants: "a/plan:infra/roll", waits: "b/net Turn"},
		"another step of it comes after":  {holds: []nodes.Hold{step(nodes.Hold{Yielded: true}), item(nodes.Hold{Yielded: true})}, wants: []nodes.Candidate{wanted("a", "two/roll", 0)}, nodes: []nodes.Node{cordoned(one("a")), one("b")}, waits: "a/plan:infra/roll NodeHeld"},
		"a step of another plan, too":     {holds: []nodes.Hold{step(nodes.Hold{Yielded: true}), item(nodes.Hold{Yielded: true})}, wants: []nodes.Candidate{others(back)}, nodes: []nodes.Node{cordoned(one("a")), one("b")}, waits: "a/plan:infra/other NodeHeld"},
		"it waits for a slot":             {holds: []nodes.Hold{step(nodes.Hold{Yielded: true}), item(nodes.Hold{Yielded: true}), busy}, wants: []nodes.Candidate{back}, nodes: []nodes.Node{cordoned(one("a")), one("b")}, waits: "a/plan:infra/roll Turn"},
		"it and a request that yielded":   {holds: []nodes.Hold{step(nodes.Hold{Yielded: true})}, nodes: []nodes.Node{gaveWay(hindered(cordoned(one("a", "gpu Draining")))), one("b", "net")}, grants: "b/net", waits: "a/gpu Blocked"},
		"what it was given counts":        {holds: []nodes.Hold{step(nodes.Hold{Yielded: true}), item(nodes.Hold{Yielded: true}), step(nodes.Hold{})}, nodes: []nodes.Node{cordoned(one("a")), one("b", "net")}, waits: "b/net Turn"},
	} {
		t.Run(name, func(t *testing.T) {
			r := nodes.Rank(nodes.ClusterState{Now: noon, Limits: yields(), Nodes: c.nodes, Holds: c.holds, Wants: c.wants})
			var grants, waits []string
			for _, g := range r.Grants {
				grants = append(grants, g.Node+"/"+g.Claimant)
			}
			for _, w := range r.Waits {
				waits = append(waits, fmt.Sprintf("%s/%s %s", w.Node, w.Claimant, w.Reason))
			}
			got := fmt.Sprintf("%s; %s; %s", strings.Join(grants, " "), strings.Join(r.Yields, " "), strings.Join(waits, " "))
			if want := fmt.Sprintf("%s; %s; %s", c.grants, c.yields, c.waits); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
