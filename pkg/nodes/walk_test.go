package nodes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// machine is a node as the cluster has it: only this outlives the agent.
type machine struct {
	name, uid, zone         string
	requests, statuses      map[string]string
	cordoned, progress      string
	unschedulable, notReady bool
	version                 int

	closed  bool   // its gate
	blocked bool   // its pods never leave
	lastBy  string // who set unschedulable last
	pods    int
	guard   map[string]bool // requests that had the node when a human uncordoned it
}

func (m *machine) copy() *machine {
	c := *m
	c.requests, c.statuses = maps.Clone(m.requests), maps.Clone(m.statuses)
	return &c
}

type session struct {
	key  string
	opts drain.Options
	from time.Time
	s    nodes.Session
}

type rollout struct {
	node   string
	failed bool
}

// walk is a cluster with an agent, and what may happen to both.
type walk struct {
	t        *rapid.T
	now      time.Time
	limits   nodes.Limits
	machines map[string]*machine
	views    map[string]*machine // what the agent sees
	sessions map[string]*session // in the agent's memory
	assumed  map[nodes.Hold]int  // grants written and not seen yet: version of the write
	rollouts []rollout
	wants    []string
	slow     bool // plans do not take what they were given
}

var thePlan = nodes.PlanClaimant("infra", "roll")

var requestors = []string{"gpu-operator", "kernel", "net-op"}

var values = []string{
	``, `{}`, `{"shared":true}`, `{"shared":true,"priority":3}`, `{"drain":false}`, `{"cordon":false}`, `{"priority":7}`,
	`{"drain":{"force":true,"timeout":"1m","onTimeout":"abort"}}`, `{"shared":true,"drain":{"onTimeout":"skip","timeout":"30s"}}`,
	`{"shared":true,"drain":{"evictionFilters":[{"byResourceNameRegex":"gpu"}]}}`,
	`{"shared":true,"waitFor":{"podSelector":"app=a","timeout":"1m"}}`, `{"waitFor":{}}`, `{"failed":true}`, `{"shared":true,"failed":true}`,
	`{"shared":true,"drain":{"deleteEmptyDir":true,"timeout":"2m","onTimeout":"abort"}}`, `{"cordon":false,"shared":true,"drain":{"podSelector":"a=b"}}`,
	`{"drain":`, `{"prio":1}`,
}

func newWalk(t *rapid.T) *walk {
	w := &walk{
		t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), machines: map[string]*machine{},
		limits: nodes.Limits{Parallel: document.Share{N: rapid.IntRange(1, 3).Draw(t, "parallel")}, Zone: rapid.IntRange(0, 2).Draw(t, "zone")},
	}
	if rapid.Bool().Draw(t, "budgeted") {
		w.limits.Unavailable = &document.Share{N: rapid.IntRange(1, 3).Draw(t, "unavailable")}
	}
	w.limits.Yield = rapid.Bool().Draw(t, "yields")
	if rapid.Bool().Draw(t, "expires") {
		w.limits.MaxTime, w.limits.ReleaseExpired = 10*time.Minute, rapid.Bool().Draw(t, "releaseExpired")
	}
	for i := range rapid.IntRange(2, 5).Draw(t, "nodes") {
		name := fmt.Sprintf("worker-%d", i)
		w.machines[name] = &machine{
			name: name, uid: "u" + name, zone: fmt.Sprintf("z%d", i%2), version: 1, pods: 3,
			requests: map[string]string{}, statuses: map[string]string{}, guard: map[string]bool{},
		}
	}
	w.restart()
	return w
}

func (w *walk) restart() {
	w.views, w.sessions, w.assumed = map[string]*machine{}, map[string]*session{}, map[nodes.Hold]int{}
	w.see(slices.Sorted(maps.Keys(w.machines))...)
}

func (w *walk) see(names ...string) {
	for _, name := range names {
		if m, ok := w.machines[name]; ok {
			w.views[name] = m.copy()
			continue
		}
		delete(w.views, name)
		delete(w.sessions, name)
	}
	for hold, version := range w.assumed {
		if v, ok := w.views[hold.Node]; !ok || v.version >= version {
			delete(w.assumed, hold)
		}
	}
}

func (w *walk) any(label string) *machine {
	if len(w.machines) == 0 {
		w.t.Skip("no node is left")
	}
	return w.machines[rapid.SampledFrom(slices.Sorted(maps.Keys(w.machines))).Draw(w.t, label)]
}

// fact is a node as the agent knows it.
func (w *walk) fact(m *machine) nodes.Node {
	n := nodes.Node{
		Name: m.name, UID: m.uid, Zone: m.zone, Unschedulable: m.unschedulable, NotReady: m.notReady, Progress: m.progress,
		Gate: nodes.Gate{Permitted: !m.closed, Reason: "window closed"},
	}
	n.ReadCurrent(m.requests, m.statuses, m.cordoned)
	if n.Cordon != nil && n.Unschedulable && !n.Cordon.Before && m.lastBy == "human" {
		n.Taken = nodes.CordonTakeover{By: "kubectl-cordon", Opened: true}
	}
	for i := range n.Asked {
		n.Asked[i].Pods = nodes.Pods{Known: true, Left: m.pods}
		n.Asked[i].Preview = nodes.Block{Permanent: m.blocked && m.pods > 0}
	}
	if s := w.sessions[m.name]; s != nil {
		n.Drain = s.s
	}
	return n
}

func (w *walk) world() nodes.ClusterState {
	world := nodes.ClusterState{Now: w.now, Limits: w.limits}
	for _, name := range slices.Sorted(maps.Keys(w.views)) {
		world.Nodes = append(world.Nodes, w.fact(w.views[name]))
	}
	for hold := range w.assumed {
		world.Holds = append(world.Holds, hold)
	}
	for _, r := range w.rollouts {
		world.Holds = append(world.Holds, nodes.Hold{Node: r.node, Claimant: thePlan, Failed: r.failed})
	}
	for _, name := range w.wants {
		world.Wants = append(world.Wants, nodes.Candidate{Node: name, Claimant: thePlan, Permitted: true})
	}
	return world
}

// pass is one pass of the agent: rank all, then advance some.
func (w *walk) pass(some func(string) bool, crash func() bool) (wrote int) {
	world := w.world()
	ranking := nodes.Rank(world)
	w.checkRanking(world, ranking)
	for _, g := range ranking.Grants {
		if g.Claimant == thePlan && some(g.Node) && !w.slow {
			w.rollOnto(g.Node)
		}
	}
	for _, n := range world.Nodes {
		if !some(n.Name) {
			continue
		}
		step := nodes.Advance(n, ranking.Turns(n.Name), w.limits, w.now)
		if crash() {
			w.restart()
			return wrote
		}
		if step.Writes() && w.write(n.Name, step) {
			wrote++
		}
		w.drive(n, step)
	}
	return wrote
}

func (w *walk) write(name string, step nodes.Step) bool {
	m, view := w.machines[name], w.views[name]
	if m == nil || m.version != view.version {
		return false // 404, or 409
	}
	before := w.maintained(m)
	for requestor, status := range step.Statuses {
		was, _ := nodes.ParseStatus(m.statuses[requestor])
		if was.Yielded != nil && status.Yielded == nil && status.Phase.Holds() {
			w.assumed[nodes.Hold{Node: name, Claimant: requestor}] = m.version + 1
		}
		m.statuses[requestor] = status.String()
	}
	for _, requestor := range step.Remove {
		delete(m.statuses, requestor)
	}
	if step.CordonChanged {
		m.cordoned = ""
		if step.Cordon != nil {
			m.cordoned = step.Cordon.String()
		}
	}
	if step.Unschedulable != nil {
		w.checkCordon(m, *step.Unschedulable)
		m.unschedulable, m.lastBy = *step.Unschedulable, "agent"
		if !m.unschedulable {
			m.pods = 3
		}
	}
	if step.Progress != nil {
		m.progress = *step.Progress
	}
	m.version++
	for requestor, status := range step.Statuses {
		if status.Phase == nodes.Scheduled {
			w.assumed[nodes.Hold{Node: name, Claimant: requestor}] = m.version
		}
	}
	if !before && w.maintained(m) {
		w.checkLimits(m)
	}
	return true
}

// drive carries out the drain that is wanted.
func (w *walk) drive(n nodes.Node, step nodes.Step) {
	m := w.machines[n.Name]
	if step.Drain == nil || m == nil {
		delete(w.sessions, n.Name)
		return
	}
	if v := w.views[n.Name]; v.unschedulable != m.unschedulable && v.version == m.version {
		w.t.Fatalf("%s: the view is wrong", n.Name)
	}
	for _, r := range step.Drain.Requestors {
		if s, ok := nodes.ParseStatus(w.views[n.Name].statuses[r]); !ok || s.Phase != nodes.Draining || s.Yielded != nil {
			w.t.Fatalf("%s: a drain for %s before its intent was written: %s", n.Name, r, w.views[n.Name].statuses[r])
		}
	}
	if s := w.sessions[n.Name]; s == nil || s.key != step.Drain.Key {
		w.sessions[n.Name] = &session{key: step.Drain.Key, opts: step.Drain.Options, from: step.Drain.Since}
	}
}

// drains lets the drain of a node go on a little.
func (w *walk) drains(name string) {
	s, m := w.sessions[name], w.machines[name]
	if s == nil || m == nil || s.s.State == nodes.SessionDone {
		return
	}
	if !m.blocked && m.pods > 0 {
		m.pods--
	}
	s.s = nodes.Session{State: nodes.SessionRunning, Key: s.key, Left: m.pods, Total: 3, Block: nodes.Block{Permanent: m.blocked}}
	over := s.opts.Timeout.Duration > 0 && !w.now.Before(s.from.Add(s.opts.Timeout.Duration))
	switch {
	case m.pods == 0:
		s.s.State = nodes.SessionDone
	case over && s.opts.OnTimeout == drain.TimeoutSkip:
		s.s.State = nodes.SessionDone
	case over && s.opts.OnTimeout == drain.TimeoutAbort:
		s.s.State = nodes.SessionAborted
	case over && s.opts.OnTimeout == drain.TimeoutForce:
		m.pods, s.s.Left, s.s.State = 0, 0, nodes.SessionDone
	}
}

// rollOnto is a plan's item: it writes with the plan's own account.
func (w *walk) rollOnto(name string) {
	m := w.machines[name]
	w.wants = slices.DeleteFunc(w.wants, func(n string) bool { return n == name })
	if m == nil {
		return
	}
	before := w.maintained(m)
	w.rollouts = slices.DeleteFunc(w.rollouts, func(r rollout) bool { return r.node == name })
	w.rollouts = append(w.rollouts, rollout{node: name})
	record, _ := nodes.ParseCordon(m.cordoned)
	m.cordoned = record.With(thePlan, m.unschedulable, w.now).String()
	if !m.unschedulable {
		m.unschedulable, m.lastBy = true, "plan"
	}
	m.version++
	if !before {
		w.checkLimits(m)
	}
	for _, a := range w.fact(m).Asked {
		if a.Status != nil && a.Status.Phase.Holds() && !a.Gone {
			w.t.Fatalf("%s: a rollout and %s have it at once", name, a.Request.Requestor)
		}
	}
}

func (w *walk) rollOff(i int, failed bool) {
	r := w.rollouts[i]
	m := w.machines[r.node]
	if failed {
		w.rollouts[i].failed = true
		return
	}
	w.rollouts = slices.Delete(w.rollouts, i, i+1)
	if m == nil {
		return
	}
	record, _ := nodes.ParseCordon(m.cordoned)
	next, uncordon := record.Without(thePlan)
	m.cordoned = ""
	if next != nil {
		m.cordoned = next.String()
	}
	if uncordon && m.unschedulable && m.lastBy != "human" {
		m.unschedulable, m.lastBy = false, "plan"
	}
	m.version++
}

func (w *walk) maintained(m *machine) bool {
	for _, s := range m.statuses {
		if status, ok := nodes.ParseStatus(s); ok && status.Phase.Holds() && status.Yielded == nil {
			return true
		}
	}
	return slices.Contains(w.rollouts, rollout{node: m.name})
}

// stall has drains begin, whose pods refuse to leave from then on, and then others ask.
func (w *walk) stall(requestor func() string, n int) {
	for range n {
		m := w.any("stalled")
		m.closed = false
		w.ask(m, requestor())
		for range 6 {
			w.see(w.all()...)
			w.pass(always, never)
		}
		m.blocked = m.unschedulable
		w.drains(m.name)
	}
	w.ask(w.any("waiting"), requestor())
}

func (w *walk) ask(m *machine, requestor string) {
	if !m.guard[requestor] {
		m.requests[requestor] = ""
		m.version++
	}
}

// holds says whether requests have a node, also where they yielded its slot.
func (w *walk) holds(m *machine) bool {
	return w.maintained(m) || slices.ContainsFunc(slices.Collect(maps.Values(m.statuses)), func(s string) bool {
		status, ok := nodes.ParseStatus(s)
		return ok && status.Phase.Holds()
	})
}

func (w *walk) checkLimits(m *machine) {
	var all, zone []string
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		if other := w.machines[name]; w.maintained(other) {
			all = append(all, name)
			if other.zone == m.zone {
				zone = append(zone, name)
			}
		}
	}
	if len(all) > w.limits.Parallel.N {
		w.t.Fatalf("%d nodes at once, %s allowed: %v", len(all), w.limits.Parallel, all)
	}
	if w.limits.Zone > 0 && len(zone) > w.limits.Zone {
		w.t.Fatalf("%d nodes of zone %s at once, %d allowed: %v", len(zone), m.zone, w.limits.Zone, zone)
	}
}

// checkRanking asks of a ranking what it promises of its own world: budget, every
// claimant has an answer, and no grant of what is closed.
func (w *walk) checkRanking(world nodes.ClusterState, r nodes.Ranking) {
	answered := map[nodes.Grant]int{}
	newly := map[string]bool{}
	for _, g := range r.Grants {
		answered[g]++
		newly[g.Node] = true
	}
	for _, wait := range r.Waits {
		answered[nodes.Grant{Node: wait.Node, Claimant: wait.Claimant}]++
		if wait.Message == "" || wait.Reason == "" {
			w.t.Fatalf("waits without a reason: %+v", wait)
		}
	}
	unavailable, taken := 0, 0
	for _, n := range world.Nodes {
		held := slices.ContainsFunc(world.Holds, func(h nodes.Hold) bool { return h.Node == n.Name })
		for _, a := range n.Asked {
			if a.Status != nil && a.Status.Phase.Holds() {
				held = true
				continue
			}
			g := nodes.Grant{Node: n.Name, Claimant: a.Request.Requestor}
			assumed := slices.Contains(world.Holds, nodes.Hold{Node: n.Name, Claimant: a.Request.Requestor})
			inRecord := n.Cordon != nil && slices.Contains(n.Cordon.By, a.Request.Requestor)
			if want := 1; !a.Gone && !assumed && !inRecord && answered[g] != want {
				w.t.Fatalf("%v has %d answers", g, answered[g])
			}
			if slices.Contains(r.Grants, g) && !n.Gate.Permitted {
				w.t.Fatalf("%v is granted while its gate is closed", g)
			}
		}
		out := n.Unschedulable || n.NotReady || held
		if out {
			unavailable++
		} else if newly[n.Name] {
			taken++
		}
	}
	if l := world.Limits.Unavailable; l != nil && taken > 0 && unavailable+taken > l.Down(len(world.Nodes)) {
		w.t.Fatalf("%d are unavailable and %d more are taken, maxUnavailable is %s", unavailable, taken, l)
	}
}

func (w *walk) checkCordon(m *machine, to bool) {
	if to == m.unschedulable {
		w.t.Fatalf("%s: writes unschedulable %t, which it is", m.name, to)
	}
	if !to && m.lastBy == "human" {
		w.t.Fatalf("%s: undoes a human's cordon", m.name)
	}
	for requestor := range m.guard {
		if s, ok := nodes.ParseStatus(m.statuses[requestor]); to && ok && s.Phase.Holds() {
			w.t.Fatalf("%s: undoes a human's uncordon for %s", m.name, requestor)
		}
	}
}

func (w *walk) human(m *machine, unschedulable bool) {
	if m.unschedulable == unschedulable {
		return
	}
	m.unschedulable, m.lastBy = unschedulable, "human"
	m.guard = map[string]bool{}
	if !unschedulable {
		m.pods = 3
		n := w.fact(m)
		for _, a := range n.Asked {
			if n.Cordon != nil && slices.Contains(n.Cordon.By, a.Request.Requestor) && !a.Gone {
				m.guard[a.Request.Requestor] = true
			}
		}
	}
	m.version++
}

func (w *walk) unask(m *machine, requestor string) {
	delete(m.requests, requestor)
	delete(m.guard, requestor)
	m.version++
}

// settle checks that no node writes for ever while nothing happens.
func (w *walk) settle() {
	for _, name := range slices.Sorted(maps.Keys(w.views)) {
		n := w.fact(w.views[name])
		turns := nodes.Granted()
		for i := 0; ; i++ {
			step := nodes.Advance(n, turns, w.limits, w.now)
			if !step.Writes() {
				break
			}
			if i > 8 {
				w.t.Fatalf("%s writes for ever: %+v", name, step)
			}
			n = step.Apply(n)
		}
	}
}

// rest checks that the agent comes to rest while nothing happens: who gives and
// takes back in turns never does.
func (w *walk) rest() {
	world := w.world()
	for i := 0; ; i++ {
		ranking, wrote := nodes.Rank(world), false
		for j, n := range world.Nodes {
			step := nodes.Advance(n, ranking.Turns(n.Name), w.limits, w.now)
			world.Nodes[j], wrote = step.Apply(n), wrote || step.Writes()
		}
		if !wrote {
			return
		}
		if i > 20*len(world.Nodes)+20 {
			w.t.Fatalf("writes for ever: %+v", world.Nodes)
		}
	}
}

// work has the agent and its drains go on for long, while nothing else happens: they
// come to rest, also where drains are blocked and yield to each other.
func (w *walk) work() {
	for i, quiet := 0, 0; quiet < 3; i++ {
		w.see(w.all()...)
		quiet++
		if w.pass(always, never) > 0 {
			quiet = 0
		}
		for _, name := range w.all() {
			w.drains(name)
		}
		if i > 100*len(w.machines)+100 {
			w.t.Fatalf("works for ever: %+v", w.world().Nodes)
		}
	}
}

func always(string) bool { return true }
func never() bool        { return false }

func TestWhateverHappensTheRulesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWalk(t)
		requestor := func() string { return rapid.SampledFrom(requestors).Draw(t, "requestor") }
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { w.settle() },
			"a request comes or changes": func(t *rapid.T) {
				m := w.any("node")
				r, value := requestor(), rapid.SampledFrom(values).Draw(t, "value")
				if m.requests[r] = value; strings.Contains(value, `"cordon":false`) {
					delete(m.guard, r) // if it wants a cordon again, it asks anew
				}
				m.version++
			},
			"a request goes": func(*rapid.T) { w.unask(w.any("node"), requestor()) },
			"a human cordons or uncordons": func(*rapid.T) {
				m := w.any("node")
				w.human(m, !m.unschedulable)
			},
			"a window opens or closes": func(*rapid.T) { m := w.any("node"); m.closed = !m.closed; m.version++ },
			"a node fails or is back":  func(*rapid.T) { m := w.any("node"); m.notReady = !m.notReady; m.version++ },
			"pods refuse to leave":     func(*rapid.T) { m := w.any("node"); m.blocked = !m.blocked },
			"pods leave":               func(*rapid.T) { w.drains(w.any("node").name) },
			"time passes": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{1, 11, 45, 130, 4000}).Draw(t, "seconds")) * time.Second)
			},
			"a node is deleted": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					delete(w.machines, w.any("node").name)
				}
			},
			"a plan wants a node": func(*rapid.T) {
				if name := w.any("node").name; !slices.Contains(w.wants, name) && !slices.Contains(w.rollouts, rollout{node: name}) {
					w.wants = append(w.wants, name)
				}
			},
			"a plan is done with a node": func(t *rapid.T) {
				if len(w.rollouts) > 0 {
					w.rollOff(rapid.IntRange(0, len(w.rollouts)-1).Draw(t, "rollout"), rapid.Bool().Draw(t, "failed"))
				}
			},
			"the agent sees something": func(*rapid.T) { w.see(w.any("node").name) },
			"the agent sees all":       func(*rapid.T) { w.see(w.all()...) },
			"the agent works":          func(*rapid.T) { w.see(w.all()...); w.pass(always, never) },
			"the agent works on what it saw": func(*rapid.T) {
				only := w.any("node").name
				w.pass(func(name string) bool { return name == only }, never)
			},
			"the agent crashes at work": func(*rapid.T) {
				at := rapid.IntRange(0, 3).Draw(t, "at")
				w.pass(always, func() bool { at--; return at < 0 })
			},
			"plans are slow or quick": func(*rapid.T) { w.slow = !w.slow },
			"nothing happens":         func(*rapid.T) { w.rest() },
			"the agent works on":      func(*rapid.T) { w.work() },
			"drains are blocked after their cordon": func(t *rapid.T) {
				w.stall(requestor, rapid.IntRange(1, 3).Draw(t, "drains"))
			},
			"the agent restarts": func(*rapid.T) { w.restart() },
		})
		w.heal()
	})
}

func (w *walk) all() []string {
	return slices.Sorted(maps.Keys(func() map[string]bool {
		names := map[string]bool{}
		for name := range w.machines {
			names[name] = true
		}
		for name := range w.views {
			names[name] = true
		}
		return names
	}()))
}

// heal ends all trouble, lets requestors do their work, and asks that every
// request had its node and that nothing is left behind.
func (w *walk) heal() {
	for len(w.rollouts) > 0 {
		w.rollOff(0, false)
	}
	w.wants = nil
	for _, m := range w.machines {
		m.closed, m.blocked, m.notReady = false, false, false
	}
	w.restart()
	for range 300 {
		w.now = w.now.Add(5 * time.Second)
		wrote := w.pass(always, never)
		for _, name := range slices.Sorted(maps.Keys(w.machines)) {
			w.drains(name)
			m := w.machines[name]
			w.finish(m)
			if m.unschedulable && m.lastBy == "human" && !w.holds(m) {
				w.human(m, false)
			}
		}
		w.see(w.all()...)
		if wrote == 0 && w.idle() {
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		m := w.machines[name]
		if len(m.requests) > 0 || len(m.statuses) > 0 {
			w.t.Fatalf("%s: lost: %v %v cordoned %s unschedulable %t", name, m.requests, m.statuses, m.cordoned, m.unschedulable)
		}
		if m.cordoned != "" || m.unschedulable && m.lastBy != "human" {
			w.t.Fatalf("%s: left behind: cordoned %q, unschedulable %t by %s", name, m.cordoned, m.unschedulable, m.lastBy)
		}
	}
}

func (w *walk) idle() bool {
	for _, m := range w.machines {
		if len(m.requests)+len(m.statuses) > 0 || m.cordoned != "" {
			return false
		}
	}
	return true
}

// finish is what requestors do: those who have the node give it back, and those
// who cannot get it withdraw.
func (w *walk) finish(m *machine) {
	n := w.fact(m)
	for _, a := range n.Asked {
		r := a.Request.Requestor
		switch {
		case a.Gone:
		case a.Fault != "", a.Status != nil && a.Status.Ended != nil, m.guard[r]:
			w.unask(m, r)
		case a.Status != nil && (a.Status.Phase == nodes.Ready || a.Status.Phase == nodes.RequestorFailed):
			w.unask(m, r)
		case a.Request.WaitFor != nil && a.Request.WaitFor.Timeout == 0 && m.pods > 0:
			m.pods = 0
		case n.Cordon != nil && n.Cordon.Undone:
			w.unask(m, r)
		}
	}
}
