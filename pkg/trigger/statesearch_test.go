package trigger_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// The search walks through all interleavings of a few writes, crashes and user
// acts, breadth first, over the pure core and a model of the cluster and of the
// edge around the core (pkg/agent), and judges every state. -search=1000000
// looks further than the few seconds of every day.
var searchStates = flag.Int("search", 2500, "how many states each search looks at") //nolint:gochecknoglobals // a flag of the test binary

// scene is what may happen in one search.
type scene struct {
	plans    int
	schedule bool // the plans have a slot, which falls due by a tick
	policy   plan.ConcurrencyPolicy
	sets     []string // values that the user sets the label to, in order
	removes  int      // how often the user takes it away
	git      int      // how often Git puts the first value back
	tokens   []string // values of the manual trigger, in order
	deletes  int      // how often somebody deletes a live run
	prunes   int      // how often an ended run is deleted
	ticks    int      // how often an hour goes by
	crashes  int
	fault    string // a fault put into the edge, to see that it is found
}

// sLabel is the trigger label on the target. act numbers the user's acts: it is
// what a request is, whatever we number.
type sLabel struct {
	on    bool
	value string
	owner string
	act   int
}

type sTarget struct {
	rv      int
	label   sLabel
	handled int64
}

func (t sTarget) facts() *trigger.Target {
	out := &trigger.Target{UID: "t", Labels: map[string]trigger.TargetLabel{}, Handled: map[string]int64{}}
	if t.label.on {
		out.Labels["k"] = trigger.TargetLabel{Value: t.label.value, Owner: t.label.owner}
	}
	if t.handled > 0 {
		out.Handled["k"] = t.handled
	}
	out.Version = uint64(t.rv)
	return out
}

type sRun struct {
	rv       int
	plan     int
	run      run.Run
	j        run.Journal
	deleting bool
	act      int // the user's act that it answers, known when it starts
}

func (r *sRun) ended() bool { return r.j.Phase.Ended() }

type sLedger struct {
	rv int
	l  *ledger.Ledger
}

// request is one that is on its way to the API server, or beyond it.
type request struct {
	kind    string // ledger, create, update, label, hook
	plan    int
	rv      int
	ledger  *ledger.Ledger
	name    string
	entry   ledger.Entry
	journal run.Journal
	act     int
	remove  bool
	number  int64
}

// thread is one worker of the agent: the planner of a plan, or a run's.
type thread struct {
	sent *request
	todo []ledger.Entry // planner: entries whose runs are to be created
	at   string         // run: label, ledger, retire (where it stands in its close)
}

// sAgent is the leader's memory; all of it is lost with the process.
type sAgent struct {
	view    sTarget // the target as the watch last showed it
	wrote   int     // version that our own patch gave it
	ledgers map[int]sLedger
	runs    map[string]*sRun // live runs as last seen or written
	threads map[string]*thread
}

type state struct {
	now     int // hours since midnight
	since   int // when the present agent began to look
	target  sTarget
	before  sTarget // the target one write ago: what a lagging watch shows
	ledgers map[int]sLedger
	runs    map[string]*sRun
	token   string
	ghosts  []*request // of agents that are gone: still on their way
	agent   *sAgent

	acts, made                                                  int
	sets, tokens, removes, git, deletes, prunes, ticks, crashes int

	// What has happened, to be judged.
	started map[string]int // run → act it answered
	closed  map[string]run.Result
}

func (s *state) clone() *state {
	out := *s
	out.ledgers, out.runs, out.started, out.closed = maps.Clone(s.ledgers), maps.Clone(s.runs), maps.Clone(s.started), maps.Clone(s.closed)
	out.ghosts = slices.Clone(s.ghosts)
	a := *s.agent
	a.ledgers, a.runs = maps.Clone(a.ledgers), maps.Clone(a.runs)
	a.threads = make(map[string]*thread, len(s.agent.threads))
	for k, t := range s.agent.threads {
		c := *t
		a.threads[k] = &c
	}
	out.agent = &a
	return &out
}

// key is a state as a text: what is not in it does not matter to what follows.
func (s *state) key(b *strings.Builder) {
	fmt.Fprintf(b, "%d %d %d %v %v %s|%d %d %d %d %d %d %d %d|", s.made, s.now, s.since, s.target, s.before, s.token, s.sets, s.tokens, s.removes, s.git, s.deletes, s.prunes, s.ticks, s.crashes)
	ledgersKey(b, s.ledgers)
	runsKey(b, s.runs)
	for _, g := range s.ghosts {
		requestKey(b, g)
	}
	fmt.Fprintf(b, "|%v %d|", s.agent.view, s.agent.wrote)
	ledgersKey(b, s.agent.ledgers)
	runsKey(b, s.agent.runs)
	for _, k := range slices.Sorted(maps.Keys(s.agent.threads)) {
		t := s.agent.threads[k]
		fmt.Fprintf(b, "%s %s ", k, t.at)
		requestKey(b, t.sent)
		for _, e := range t.todo {
			b.WriteString(e.Run + " ")
		}
	}
	fmt.Fprintf(b, "|%v %v", s.started, s.closed)
}

func requestKey(b *strings.Builder, r *request) {
	if r == nil {
		b.WriteString("-")
		return
	}
	fmt.Fprintf(b, "{%s %d %d %s %s %d %v %d ", r.kind, r.plan, r.rv, r.name, r.entry.Run, r.act, r.remove, r.number)
	if r.kind == "update" {
		b.WriteString(journalKey(r.journal))
	}
	ledgerKey(b, r.ledger)
}

func ledgersKey(b *strings.Builder, ls map[int]sLedger) {
	for i := range 2 {
		if l, ok := ls[i]; ok {
			fmt.Fprintf(b, "L%d %d ", i, l.rv)
			ledgerKey(b, l.l)
		}
	}
}

func ledgerKey(b *strings.Builder, l *ledger.Ledger) {
	if l == nil {
		return
	}
	fmt.Fprintf(b, "%d %v %v %v", l.Watermark.Unix(), l.Tokens, l.Labels, l.Looks)
	for _, e := range l.Open {
		b.WriteString(e.Run + e.Request.Value + ",")
	}
	for _, e := range l.Recent {
		fmt.Fprintf(b, "%s%s%s%v,", e.Run, e.Result, e.Reason, e.Slot)
	}
}

func runsKey(b *strings.Builder, rs map[string]*sRun) {
	for _, k := range slices.Sorted(maps.Keys(rs)) {
		r := rs[k]
		fmt.Fprintf(b, "R%s %d %v %d %s;", k, r.rv, r.deleting, r.act, journalKey(r.j))
	}
}

func journalKey(j run.Journal) string {
	out := string(j.Phase) + string(j.Section)
	if j.End != nil {
		out += string(j.End.Phase) + j.End.Reason
	}
	for _, r := range j.Steps {
		out += string(r.Phase[0]) + fmt.Sprint(r.Attempt)
	}
	return out
}

// searcher looks for histories that break a promise.
type searcher struct {
	t     *testing.T
	scene scene
	spec  plan.Spec
	seed  maphash.Seed
	// Races that the design lives with are counted.
	counts map[string]int
}

// node is a state and how it was reached.
type node struct {
	s    *state
	from *node
	by   string
}

func (n *node) history() string {
	var out []string
	for ; n.from != nil; n = n.from {
		out = append(out, n.by)
	}
	slices.Reverse(out)
	return strings.Join(out, "\n  ")
}

func newSearcher(t *testing.T, sc scene) *searcher {
	s := &searcher{t: t, scene: sc, seed: maphash.MakeSeed(), counts: map[string]int{}}
	s.spec = plan.Spec{Steps: []plan.Step{{Name: "a", Type: "webhook"}}, Target: &plan.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Name: "x"}, ConcurrencyPolicy: sc.policy}
	s.spec.Triggers.Labels = []string{"k"}
	if sc.schedule {
		s.spec.Triggers.Schedules = []plan.Schedule{{Cron: "0 * * * *"}}
	}
	s.spec = s.spec.Defaulted()
	return s
}

func (x *searcher) first() *state {
	s := &state{
		target: sTarget{rv: 1}, before: sTarget{rv: 1}, ledgers: map[int]sLedger{}, runs: map[string]*sRun{}, started: map[string]int{}, closed: map[string]run.Result{},
	}
	for p := range x.scene.plans { // the plan has been seen: what follows is news
		l := ledger.Ledger{PlanUID: uidOf(p), Watermark: hour(0), Schedules: x.spec.Triggers.Schedules, Created: true}
		s.ledgers[p] = sLedger{rv: 1, l: &l}
	}
	s.agent = newLeader(s, false, false)
	return s
}

func hour(n int) time.Time { return coretest.Clock("00:00").Add(time.Duration(n) * time.Hour) }

func uidOf(p int) string { return fmt.Sprintf("p%d", p) }

// newLeader is an agent that has just begun: it holds no ledger, and its watches
// may lag behind.
func newLeader(s *state, oldTarget, noRuns bool) *sAgent {
	a := &sAgent{view: s.target, ledgers: map[int]sLedger{}, runs: map[string]*sRun{}, threads: map[string]*thread{}}
	if oldTarget {
		a.view = s.before
	}
	for name, r := range s.runs {
		if !r.ended() && !noRuns {
			a.runs[name] = r
		}
	}
	return a
}

// search looks at states breadth first and returns the first broken promise.
func (x *searcher) search(limit int) (seen int, broken string) {
	start := &node{s: x.first()}
	known := map[uint64]bool{}
	queue := []*node{start}
	for len(queue) > 0 && seen < limit {
		n := queue[0]
		queue = queue[1:]
		seen++
		moves := 0
		wrong := ""
		x.moves(n.s, func(by string, agent bool, next *state, violation string) {
			if wrong != "" {
				return
			}
			child := &node{s: next, from: n, by: by}
			if violation != "" {
				wrong = violation + "\n  " + child.history()
				return
			}
			if agent {
				moves++
			}
			var b strings.Builder
			next.key(&b)
			h := maphash.String(x.seed, b.String())
			if !known[h] {
				known[h] = true
				queue = append(queue, child)
			}
		})
		if wrong != "" {
			return seen, wrong
		}
		if moves == 0 {
			if v := x.quiet(n.s); v != "" {
				return seen, "at rest: " + v + "\n  " + n.history()
			}
		}
		if seen%101 == 0 {
			if v := x.drain(n.s); v != "" {
				return seen, v + "\n  " + n.history()
			}
		}
	}
	return seen, ""
}

// drain lets the agent alone work until nothing is left to do, with one new
// leader at the end, and judges what is there then.
func (x *searcher) drain(s *state) string {
	for range 3 {
		for i := 0; ; i++ {
			if i > 300 {
				return "does not come to rest"
			}
			var next *state
			violation := ""
			x.moves(s, func(_ string, agent bool, n *state, v string) {
				if agent && next == nil && violation == "" {
					next, violation = n, v
				}
			})
			if violation != "" {
				return "working on alone: " + violation
			}
			if next == nil {
				break
			}
			s = next
		}
		s = s.clone()
		s.agent = newLeader(s, false, false)
	}
	return x.quiet(s)
}

// quiet judges a state in which the agent has nothing left to do.
func (x *searcher) quiet(s *state) string {
	if len(s.ghosts) > 0 {
		return ""
	}
	for p := range x.scene.plans {
		l := s.ledgers[p].l
		known := s.agent.ledgers[p]
		if known.l != nil && known.rv != s.ledgers[p].rv {
			return "" // a ghost wrote the ledger: it is found at the next look
		}
		if len(l.Open) > 0 {
			return fmt.Sprintf("plan %d has open entries: %s", p, l.Open[0].Run)
		}
		if s.token != "" && !l.KnowsToken(s.token) {
			return "the token " + s.token + " was never answered"
		}
		if at := hour(s.now); x.scene.schedule && l.Watermark.Before(at) {
			return fmt.Sprintf("the slot %s has no end", at.Format("15:04"))
		}
	}
	for name, r := range s.runs {
		if !r.ended() {
			return "run " + name + " lives on: " + journalKey(r.j)
		}
		if _, closed := s.closed[name]; !closed {
			return "run " + name + " ended without an entry"
		}
	}
	if s.target.label.on && s.target.label.owner == "" {
		return fmt.Sprintf("the label of act %d stands, and nobody answers it", s.target.label.act)
	}
	return ""
}

// happens is one thing that can happen: what, whether the agent does it, the state
// after it and the promise that it breaks, if it does.
type happens = func(by string, agent bool, next *state, violation string)

func (x *searcher) moves(s *state, yield happens) {
	x.watchMoves(s, yield) // first, so that drain is fair: a watch that lags for ever ends nothing
	x.agentMoves(s, yield)
	x.userMoves(s, yield)
	x.deaths(s, yield)
}

// userMoves are what people, Git and time do.
func (x *searcher) userMoves(s *state, yield happens) {
	sc := x.scene
	if s.sets < len(sc.sets) {
		n := s.clone()
		n.sets++
		n.acts++
		n.setTarget(func(t *sTarget) {
			t.label = sLabel{on: true, value: sc.sets[s.sets], act: n.acts}
		})
		yield("user sets the label to "+sc.sets[s.sets], false, n, "")
	}
	if s.removes < sc.removes && s.target.label.on {
		n := s.clone()
		n.removes++
		n.setTarget(func(t *sTarget) { t.label = sLabel{} })
		yield("user takes the label away", false, n, "")
	}
	if s.git < sc.git && !s.target.label.on {
		n := s.clone()
		n.git++
		n.acts++
		n.setTarget(func(t *sTarget) { t.label = sLabel{on: true, value: "git", owner: "argocd", act: n.acts} })
		yield("Git puts the label there", false, n, "")
	}
	if s.tokens < len(sc.tokens) {
		n := s.clone()
		n.token = sc.tokens[s.tokens]
		n.tokens++
		yield("user sets the token "+n.token, false, n, "")
	}
	if s.ticks < sc.ticks {
		n := s.clone()
		n.ticks++
		n.now++
		yield("an hour goes by", false, n, "")
	}
	for _, name := range slices.Sorted(maps.Keys(s.runs)) {
		r := s.runs[name]
		if s.deletes < sc.deletes && !r.ended() && !r.deleting {
			n := s.clone()
			n.deletes++
			c := *r
			c.deleting, c.rv = true, r.rv+1
			n.runs[name] = &c
			yield("user deletes run "+name, false, n, "")
		}
		if s.prunes < sc.prunes && r.ended() {
			n := s.clone()
			n.prunes++
			delete(n.runs, name)
			yield("ended run "+name+" is deleted", false, n, "")
		}
	}
}

func (s *state) setTarget(edit func(*sTarget)) {
	s.before = s.target
	edit(&s.target)
	s.target.rv++
}

// deaths end the leader: what it held is lost; what it had sent is lost, or
// arrives later, when another leads already.
func (x *searcher) deaths(s *state, yield happens) {
	for i, g := range s.ghosts {
		n := s.clone()
		n.ghosts = slices.Delete(n.ghosts, i, i+1)
		_, v := x.deliver(n, g)
		yield("the dead one's request arrives: "+g.kind+" "+g.name, false, n, v)
	}
	if s.crashes >= x.scene.crashes {
		return
	}
	var sent []*request
	for _, k := range slices.Sorted(maps.Keys(s.agent.threads)) {
		if t := s.agent.threads[k]; t.sent != nil {
			sent = append(sent, t.sent)
		}
	}
	for lag := range 4 {
		if lag&1 != 0 && s.before == s.target || lag&2 != 0 && len(s.runs) == 0 {
			continue
		}
		for i := -1; i < len(sent); i++ { // at most one is still on its way
			n := s.clone()
			n.crashes++
			n.since = n.now
			if i >= 0 {
				n.ghosts = append(n.ghosts, sent[i])
			}
			n.agent = newLeader(n, lag&1 != 0, lag&2 != 0)
			yield(fmt.Sprintf("the leader stops (on its way %d of %d); the next sees old target %v, no runs %v", i+1, len(sent), lag&1 != 0, lag&2 != 0), false, n, "")
		}
	}
}

// watchMoves bring the leader's views up to date.
func (x *searcher) watchMoves(s *state, yield happens) {
	if s.agent.view != s.target {
		n := s.clone()
		n.agent.view = n.target
		yield("the watch shows the target", true, n, "")
	}
	for _, name := range slices.Sorted(maps.Keys(s.runs)) {
		r, have := s.runs[name], s.agent.runs[name]
		if busy := s.agent.threads[name]; busy != nil && busy.sent != nil {
			continue
		}
		switch {
		case !r.ended() && (have == nil || have.rv < r.rv):
			n := s.clone()
			n.agent.runs[name] = r
			delete(n.agent.threads, name)
			yield("the watch shows run "+name, true, n, "")
		case r.ended() && have != nil:
			n := s.clone()
			delete(n.agent.runs, name)
			delete(n.agent.threads, name)
			yield("the watch shows that run "+name+" has ended", true, n, "")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.agent.runs)) {
		if s.runs[name] == nil && (s.agent.threads[name] == nil || s.agent.threads[name].sent == nil) {
			n := s.clone()
			delete(n.agent.runs, name)
			delete(n.agent.threads, name)
			yield("the watch shows that run "+name+" is gone", true, n, "")
		}
	}
}

// agentMoves are the leader's own: each thread sends its next request, or takes
// in the reply to the one it sent.
func (x *searcher) agentMoves(s *state, yield happens) {
	for p := range x.scene.plans {
		x.planner(s, p, yield)
	}
	for _, name := range slices.Sorted(maps.Keys(s.agent.runs)) {
		x.runner(s, name, yield)
	}
}

func (a *sAgent) thread(k string) *thread {
	if a.threads[k] == nil {
		a.threads[k] = &thread{}
	}
	return a.threads[k]
}

// ledgerBusy says whether a write of a plan's ledger is on its way: its lock is
// held meanwhile.
func (a *sAgent) ledgerBusy(p int) bool {
	for _, t := range a.threads {
		if t.sent != nil && t.sent.kind == "ledger" && t.sent.plan == p {
			return true
		}
	}
	return false
}

// held is the plan's ledger as the agent has it, read when it has none.
func (s *state) held(p int) sLedger {
	l, ok := s.agent.ledgers[p]
	if !ok {
		l = s.ledgers[p]
		s.agent.ledgers[p] = l
	}
	return l
}

// planner is syncPlan: decide, write the ledger, create the runs of open entries.
func (x *searcher) planner(s *state, p int, yield happens) {
	k := "plan " + uidOf(p)
	if t := s.agent.threads[k]; t != nil && t.sent != nil {
		x.plannerReply(s, p, k, yield)
		return
	}
	if t := s.agent.threads[k]; t != nil && len(t.todo) > 0 {
		n := s.clone()
		t := n.agent.thread(k)
		t.sent = &request{kind: "create", plan: p, name: t.todo[0].Run, entry: t.todo[0]}
		t.todo = t.todo[1:]
		yield("planner creates run "+t.sent.name, true, n, "")
		return
	}
	if s.agent.ledgerBusy(p) {
		return
	}
	n := s.clone()
	base := n.held(p)
	f := x.facts(n, p, base.l)
	d := trigger.Decide(f)
	var todo []ledger.Entry
	for _, e := range d.Ledger.Open {
		if !slices.ContainsFunc(f.Live, func(l trigger.ActiveRun) bool { return l.Name == e.Run }) {
			todo = append(todo, e)
		}
	}
	if !d.Changed && len(todo) == 0 {
		return
	}
	t := n.agent.thread(k)
	t.todo = todo
	if d.Changed {
		l := d.Ledger
		t.sent = &request{kind: "ledger", plan: p, rv: base.rv, ledger: &l, name: strings.Join(claimNames(d), " ")}
		if x.scene.fault == "the ledger is written whatever its version" {
			t.sent.rv = -1
		}
	}
	yield(fmt.Sprintf("planner decides: %s", strings.Join(told(f, d), ", ")), true, n, "")
}

func claimNames(d trigger.Decision) (out []string) {
	for _, c := range d.Claims {
		out = append(out, short(c))
	}
	return out
}

func (x *searcher) facts(s *state, p int, l *ledger.Ledger) trigger.Facts {
	view := s.agent.view
	if view.rv < s.agent.wrote {
		view = s.target // our own patch is newer than what the watch shows: read it
	}
	seen := view.facts()
	if x.scene.fault == "the decision is not told which version of the target it sees" {
		seen.Version = 0
	}
	f := trigger.Facts{
		Now: hour(s.now), LeadingSince: hour(s.since), Plan: trigger.Plan{Namespace: "shop", Name: uidOf(p), UID: uidOf(p), CreatedAt: hour(0), EditedAt: hour(0), Spec: x.spec, Intent: intent.Intent{Token: s.token}},
		Ready: trigger.Readiness{OK: true}, Target: seen, State: trigger.State{Ledger: l},
		NameOf: func(r run.Request) string { return r.Identity(uidOf(p)) },
	}
	for _, name := range slices.Sorted(maps.Keys(s.agent.runs)) {
		if r := s.agent.runs[name]; r.plan == p && !r.ended() {
			f.Live = append(f.Live, trigger.ActiveRun{Name: name, Phase: r.j.Phase, Waiting: r.j.Waiting, Request: r.run.Request, StartedAt: r.j.StartedAt, TargetUID: "t"})
		}
	}
	return f
}

func (x *searcher) plannerReply(s *state, p int, k string, yield happens) {
	n := s.clone()
	t := n.agent.threads[k]
	sent := t.sent
	t.sent = nil
	ok, v := x.deliver(n, sent)
	switch {
	case sent.kind == "ledger" && !ok:
		delete(n.agent.ledgers, p)
		delete(n.agent.threads, k)
	case sent.kind == "ledger":
		n.agent.ledgers[p] = n.ledgers[p]
	default: // created, or there already: go on with it
		r := n.runs[sent.name]
		if !r.ended() {
			if have := n.agent.runs[sent.name]; have == nil || have.rv < r.rv {
				n.agent.runs[sent.name] = r
			}
		} else if l := n.held(p); !n.agent.ledgerBusy(p) { // it has ended: only its entry is to be closed
			closed := closeEntry(*l.l, r, hour(n.now))
			t.todo = nil
			if len(closed.Open) != len(l.l.Open) {
				t.sent = &request{kind: "ledger", plan: p, rv: l.rv, ledger: &closed, name: "close " + sent.name}
			}
		}
	}
	if t.sent == nil && len(t.todo) == 0 {
		delete(n.agent.threads, k)
	}
	yield(fmt.Sprintf("%s %s: %v", sent.kind, sent.name, ok), true, n, v)
}

// closeEntry is the agent's.
func closeEntry(l ledger.Ledger, r *sRun, now time.Time) ledger.Ledger {
	if r.j.StartedAt != nil {
		return l.Finish(r.run, r.j, now)
	}
	result, reason := run.Skipped, run.ReasonAborted
	if r.j.End != nil && r.j.End.Result != "" {
		result, reason = r.j.End.Result, r.j.End.Reason
	}
	return l.Close(r.run.Name, result, reason, nil, now)
}

// runner is syncRun: admit and start, pass, close.
func (x *searcher) runner(s *state, name string, yield happens) {
	if t := s.agent.threads[name]; t != nil && t.sent != nil {
		x.runnerReply(s, name, yield)
		return
	}
	r := s.agent.runs[name]
	if r.j.Phase == run.Pending && r.j.Section != plan.SectionClosing {
		x.admit(s, r, yield)
		return
	}
	n := s.clone()
	x.move(n, r, r.j, r.act)
	if t := n.agent.threads[name]; t == nil || t.sent == nil {
		return
	}
	yield(fmt.Sprintf("run %s: %s", name, n.agent.threads[name].sent.kind), true, n, "")
}

func (x *searcher) signals(r *sRun) workflow.Signals {
	if r.deleting {
		return workflow.Signals{Abort: &run.End{Phase: run.Aborted, Reason: "Deleted", Message: "the run was deleted"}}
	}
	return workflow.Signals{}
}

func (x *searcher) admit(s *state, r *sRun, yield happens) {
	if s.agent.ledgerBusy(r.plan) {
		return
	}
	n := s.clone()
	st := trigger.AdmissionFacts{Now: hour(n.now), Abort: x.signals(r).Abort}
	_, st.EntryOpen = n.held(r.plan).l.OpenEntry(r.run.Name)
	if x.scene.fault == "a run starts whether its entry is open or not" {
		st.EntryOpen = true
	}
	for name, other := range n.agent.runs {
		starting := false // its start is on its way: it has the locks
		if t := n.agent.threads[name]; t != nil && t.sent != nil && t.sent.kind == "update" {
			starting = t.sent.journal.Phase == run.Running
		}
		if other.j.Phase != run.Running && !starting || name == r.run.Name {
			continue
		}
		if other.plan == r.plan && x.spec.ConcurrencyPolicy != plan.Allow {
			st.PlanBusy = other.run.Name
		}
		st.LockedBy = other.run.Name
	}
	st.Target = n.target.facts() // read live
	if x.scene.fault == "a run starts by what the watch shows of its target" {
		st.Target = n.agent.view.facts()
	}
	a := trigger.Admit(r.run, st)
	t := n.agent.thread(r.run.Name)
	what := ""
	switch {
	case a.Void:
		j := r.j.EndUnstarted(run.End{Phase: run.Aborted, Reason: "Void"}, hour(n.now)).Finish(hour(n.now))
		t.sent, what = &request{kind: "update", name: r.run.Name, rv: r.rv, journal: j}, "is void"
	case a.Ends():
		end := run.End{Phase: run.Aborted, Result: a.Result, Reason: a.Reason, Message: a.Message}
		t.sent, what = &request{kind: "update", name: r.run.Name, rv: r.rv, journal: r.j.EndUnstarted(end, hour(n.now))}, "ends before its start: "+a.Message
	case a.Start:
		j, _ := workflow.Advance(r.run, r.j.Start(hour(n.now)), hour(n.now), x.signals(r))
		t.sent, what = &request{kind: "update", name: r.run.Name, rv: r.rv, journal: j, act: n.target.label.act}, "starts"
	default:
		return
	}
	yield("run "+r.run.Name+" "+what, true, n, "")
}

// move is what a started or closing run does next: write its journal, act, or
// one of the three writes of its close.
func (x *searcher) move(s *state, r *sRun, j run.Journal, act int) {
	now := hour(s.now)
	next, m := workflow.Advance(r.run, j, now, x.signals(r))
	t := s.agent.thread(r.run.Name)
	t.sent = nil
	if journalKey(next) != journalKey(r.j) {
		t.at = ""
		t.sent = &request{kind: "update", name: r.run.Name, rv: r.rv, journal: next, act: act}
		return
	}
	switch m.Act {
	case workflow.ActPass:
		if rec := coretest.Record(r.j, m.Path); rec.Phase != run.StepRunning || rec.Attempt < 1 {
			panic("a webhook is sent before its attempt was written")
		}
		t.sent = &request{kind: "hook", name: r.run.Name}
	case workflow.ActStop:
		t.sent = &request{kind: "update", name: r.run.Name, rv: r.rv, journal: workflow.NoteStop(next, m.Path, nil), act: act}
	case workflow.ActClose:
		x.close(s, r, t)
	default:
		panic(fmt.Sprintf("unexpected act %d", m.Act))
	}
}

// close sends the next write of the close: label, ledger, run.
func (x *searcher) close(s *state, r *sRun, t *thread) {
	if t.at == "" || t.at == "label" {
		if r.run.Request.Kind == run.ByLabel {
			for p := range x.scene.plans {
				if p != r.plan && s.agent.ledgerBusy(p) {
					return
				}
			}
			end := trigger.EndLabel(r.run, s.target.facts(), x.sharers(s, r))
			if end.Write {
				t.at = "label"
				t.sent = &request{kind: "label", name: r.run.Name, rv: s.target.rv, remove: end.Remove, number: end.Number}
				if x.scene.fault == "the label is taken away whatever its version" {
					t.sent.rv = -1
				}
				return
			}
		}
		t.at = "ledger"
		if r.run.Request.Kind == run.ByLabel && x.sharers(s, r).Need {
			t.at = "ledger, label stays"
		}
	}
	if strings.HasPrefix(t.at, "ledger") {
		if s.agent.ledgerBusy(r.plan) {
			return
		}
		base := s.held(r.plan)
		l := closeEntry(*base.l, r, hour(s.now))
		if r.run.Request.Kind == run.ByLabel && t.at == "ledger" {
			l = l.LabelTaken(r.run.Request)
		}
		t.sent = &request{kind: "ledger", plan: r.plan, rv: base.rv, ledger: &l, name: "close " + r.run.Name}
		return
	}
	t.sent = &request{kind: "update", name: r.run.Name, rv: r.rv, journal: r.j.Finish(hour(s.now))}
}

func (x *searcher) sharers(s *state, r *sRun) (out trigger.LabelSharers) {
	for _, o := range s.agent.runs {
		if o.plan != r.plan && o.run.Request.SameLabel(r.run.Request) && !o.ended() {
			out.Need = out.Need || o.j.Section != plan.SectionClosing
			out.Highest = max(out.Highest, o.run.Request.Ordinal)
		}
	}
	for p := range x.scene.plans {
		if p == r.plan {
			continue
		}
		led := s.held(p).l
		out.Highest = max(out.Highest, led.NumberOf(r.run.Request))
		out.Need = out.Need || slices.ContainsFunc(led.OpenFor(r.run.Request), func(e ledger.Entry) bool { return s.agent.runs[e.Run] == nil })
	}
	return out
}

func (x *searcher) runnerReply(s *state, name string, yield happens) {
	n := s.clone()
	t := n.agent.threads[name]
	sent, r := t.sent, n.agent.runs[name]
	t.sent = nil
	ok, v := x.deliver(n, sent)
	switch sent.kind {
	case "hook":
		j := workflow.Note(r.run, r.j, "a", workflow.StepResult{Done: true}, hour(n.now))
		x.move(n, r, j, r.act)
	case "label":
		if ok {
			n.agent.wrote = n.target.rv
			t.at = "ledger"
		}
	case "ledger":
		if ok {
			n.agent.ledgers[r.plan] = n.ledgers[r.plan]
			t.at = "retire"
		} else {
			delete(n.agent.ledgers, r.plan)
		}
	case "update":
		t.at = ""
		now, there := n.runs[name]
		switch {
		case !there || now.ended():
			delete(n.agent.runs, name)
			delete(n.agent.threads, name)
		default: // ours, or what somebody else wrote
			n.agent.runs[name] = now
		}
	}
	yield(fmt.Sprintf("%s of run %s: %v", sent.kind, name, ok), true, n, v)
}

// deliver is the API server, and what watches over its promises.
func (x *searcher) deliver(s *state, r *request) (ok bool, violation string) {
	switch r.kind {
	case "ledger":
		return x.writeLedger(s, r)
	case "create":
		if s.runs[r.name] != nil {
			return false, ""
		}
		one := run.Run{Name: r.name, Namespace: "shop", Plan: uidOf(r.plan), PlanUID: uidOf(r.plan), Request: *r.entry.Request, TargetUID: "t", Spec: x.spec}
		s.made++ // no two objects share a version, whatever their name
		s.runs[r.name] = &sRun{rv: 100 * s.made, plan: r.plan, run: one, j: workflow.NewJournal(one)}
		return true, ""
	case "update":
		return x.updateRun(s, r)
	case "label":
		if r.rv >= 0 && r.rv != s.target.rv {
			return false, ""
		}
		s.setTarget(func(t *sTarget) {
			t.handled = r.number
			if r.remove {
				t.label = sLabel{}
			}
		})
		return true, x.tookAway(s, r)
	case "hook":
		if _, started := s.started[r.name]; !started {
			return true, "a webhook is sent for " + r.name + ", which never started"
		}
		return true, ""
	}
	panic(r.kind)
}

// tookAway judges a label that went: it must be the one that was answered.
func (x *searcher) tookAway(s *state, r *request) string {
	was := s.before.label
	if !r.remove || !was.on || x.scene.plans > 1 {
		return ""
	}
	answered := s.runs[r.name]
	if answered == nil {
		return ""
	}
	if answered.run.Request.Value != was.value {
		return fmt.Sprintf("run %s for %s takes the label %s away", r.name, answered.run.Request.Value, was.value)
	}
	return ""
}

func (x *searcher) writeLedger(s *state, r *request) (ok bool, violation string) {
	was := s.ledgers[r.plan]
	if r.rv >= 0 && r.rv != was.rv {
		return false, ""
	}
	l := *r.ledger
	for _, e := range l.Recent {
		if e.Run == "" {
			continue
		}
		before, closed := s.closed[e.Run]
		had := slices.ContainsFunc(was.l.Recent, func(o ledger.Entry) bool { return o.Run == e.Run })
		switch {
		case closed && !had:
			return true, fmt.Sprintf("%s ends twice, %s and %s", e.Run, before, e.Result)
		case !closed:
			s.closed[e.Run] = e.Result
			_, started := s.started[e.Run]
			if (e.Result == run.Ran) != started {
				return true, fmt.Sprintf("%s is entered as %s; started: %v", e.Run, e.Result, started)
			}
		}
	}
	for _, e := range l.Open {
		if _, closed := s.closed[e.Run]; closed {
			return true, e.Run + " is claimed again"
		}
	}
	if l.Watermark.Before(was.l.Watermark) {
		return true, "the watermark goes back"
	}
	if x.scene.schedule {
		if v := slotsTwice(l); v != "" {
			return true, v
		}
	}
	s.ledgers[r.plan] = sLedger{rv: was.rv + 1, l: &l}
	return true, ""
}

// slotsTwice finds a slot that has two ends, or an end and a claim.
func slotsTwice(l ledger.Ledger) string {
	seen := map[int64]bool{}
	for _, e := range slices.Concat(l.Recent, l.Open) {
		if e.Slot == nil {
			continue
		}
		from, to := *e.Slot, *e.Slot
		if e.Last != nil {
			to = *e.Last
		}
		for at := from; !at.After(to); at = at.Add(time.Hour) {
			if seen[at.Unix()] {
				return "the slot " + at.Format("15:04") + " has two ends"
			}
			seen[at.Unix()] = true
		}
	}
	return ""
}

func (x *searcher) updateRun(s *state, r *request) (ok bool, violation string) {
	have := s.runs[r.name]
	if have == nil || have.rv != r.rv || have.ended() {
		return false, ""
	}
	c := *have
	c.rv, c.j = have.rv+1, r.journal
	starts := have.j.Phase == run.Pending && r.journal.Phase == run.Running
	if starts && r.journal.StartedAt == nil {
		starts = false // asked to end before its first step
	}
	if starts {
		c.act = r.act
		if v := x.start(s, &c, r); v != "" {
			return true, v
		}
	}
	s.runs[r.name] = &c
	if c.ended() {
		if _, open := s.ledgers[c.plan].l.OpenEntry(r.name); open && r.journal.End.Reason != "Void" {
			return true, "run " + r.name + " loses its finalizer on an open entry"
		}
		if c.run.Request.Kind == run.ByLabel && x.scene.plans == 1 && s.target.label.on && s.target.label.act == c.act && s.target.label.value == c.run.Request.Value && c.act != 0 {
			return true, "run " + r.name + " ended, and its label stands"
		}
		if c.deleting {
			delete(s.runs, r.name)
		}
	}
	return true, ""
}

// start judges a start: on an open entry, of a request that no other run answered.
func (x *searcher) start(s *state, c *sRun, r *request) string {
	name := c.run.Name
	if _, twice := s.started[name]; twice {
		return name + " starts twice"
	}
	if _, open := s.ledgers[c.plan].l.OpenEntry(name); !open {
		return name + " starts without an open entry"
	}
	if c.run.Request.Kind == run.ByLabel {
		if r.act == 0 {
			return name + " starts, and its label was gone when it was admitted"
		}
		for other, act := range s.started {
			if act == r.act && strings.HasPrefix(other, uidOf(c.plan)+"|label") {
				return fmt.Sprintf("%s and %s both answer the user's act %d", other, name, act)
			}
		}
	} else {
		r.act = 0
		c.act = 0
	}
	for _, o := range s.runs {
		if o.run.Name != name && o.j.Phase == run.Running && o.j.Section != plan.SectionClosing {
			x.counts["two runs at work on one target"]++
		}
	}
	s.started[name] = c.act
	return ""
}

func scenes() map[string]scene {
	return map[string]scene{
		"a label, set and set again":                     {plans: 1, policy: plan.Forbid, sets: []string{"v", "v"}, removes: 1, crashes: 1},
		"a label, set to another value":                  {plans: 1, policy: plan.Forbid, sets: []string{"v", "w", "v"}, crashes: 1},
		"a label and deaths":                             {plans: 1, policy: plan.Forbid, sets: []string{"v"}, removes: 1, crashes: 2},
		"a label that Git puts back":                     {plans: 1, policy: plan.Forbid, git: 3, sets: []string{"v"}, crashes: 1},
		"a run deleted by hand":                          {plans: 1, policy: plan.Forbid, sets: []string{"v", "v"}, deletes: 2, prunes: 1, crashes: 1},
		"an ended run deleted while a ghost may make it": {plans: 1, policy: plan.Forbid, sets: []string{"v"}, prunes: 2, crashes: 2},
		"tokens":             {plans: 1, policy: plan.Forbid, tokens: []string{"1", "2", "1"}, deletes: 1, prunes: 1, crashes: 2},
		"tokens and a label": {plans: 1, policy: plan.Forbid, tokens: []string{"1"}, sets: []string{"v", "w"}, crashes: 1},
		"tokens and a label, where runs may overlap": {plans: 1, policy: plan.Allow, tokens: []string{"1"}, sets: []string{"v", "w"}, crashes: 1},
		"slots":                             {plans: 1, policy: plan.Forbid, schedule: true, ticks: 3, crashes: 2},
		"slots in a queue":                  {plans: 1, policy: plan.Queue, schedule: true, ticks: 3, crashes: 1, prunes: 1},
		"slots and a label":                 {plans: 1, policy: plan.Forbid, schedule: true, ticks: 2, sets: []string{"v"}, deletes: 1, crashes: 1},
		"two plans on one label":            {plans: 2, policy: plan.Forbid, sets: []string{"v"}, crashes: 1},
		"two plans on one label, set again": {plans: 2, policy: plan.Forbid, sets: []string{"v", "w"}, removes: 1},
		"two plans on one label, set to another value": {plans: 2, policy: plan.Forbid, sets: []string{"v", "w", "w"}, crashes: 1},
	}
}

func TestStateSearch(t *testing.T) {
	total := 0
	for name, sc := range scenes() {
		t.Run(name, func(t *testing.T) {
			x := newSearcher(t, sc)
			limit := *searchStates
			if testing.Short() {
				limit /= 10
			}
			seen, broken := x.search(limit)
			total += seen
			if broken != "" {
				t.Errorf("after %d states: %s", seen, broken)
			}
			if b, err := json.Marshal(x.counts); err == nil && len(x.counts) > 0 {
				t.Logf("%d states, %s", seen, b)
			}
			if seen < limit {
				t.Logf("all %d states", seen)
			}
		})
	}
	t.Logf("%d states in all", total)
}

// A search that finds nothing proves nothing unless it would have: each of these
// faults in the edge is found.
func TestStateSearchFindsFaults(t *testing.T) {
	for fault, sc := range map[string]scene{
		"the ledger is written whatever its version":                   {plans: 1, policy: plan.Forbid, tokens: []string{"1", "2"}, crashes: 1},
		"a run starts whether its entry is open or not":                {plans: 1, policy: plan.Forbid, tokens: []string{"1"}, deletes: 1, crashes: 1},
		"a run starts by what the watch shows of its target":           {plans: 1, policy: plan.Forbid, sets: []string{"v"}, removes: 1},
		"the label is taken away whatever its version":                 {plans: 1, policy: plan.Forbid, sets: []string{"v", "w"}},
		"the decision is not told which version of the target it sees": {plans: 2, policy: plan.Forbid, sets: []string{"v"}, crashes: 1},
	} {
		t.Run(fault, func(t *testing.T) {
			sc.fault = fault
			seen, broken := newSearcher(t, sc).search(400000)
			if broken == "" {
				t.Errorf("not found in %d states", seen)
			} else {
				t.Logf("found after %d states: %s", seen, broken)
			}
		})
	}
}
