package nodes

import (
	"cmp"
	"slices"
	"time"
)

// Rank says who gets which node now.
//
// A claimant's rank is its priority and one more for each whole AgeRank since it
// was first seen, so that none waits for ever behind fresh ones. Within a rank
// come first those who have something in progress elsewhere, then those with
// fewer nodes pending, then the older. The wants of one rollout are as old as its
// oldest, so that among them its own order holds; the node's and the claimant's
// name make the order total.
//
// A node that nobody has costs a slot, a place in its zone and, where it is
// available, budget; one that does not fit is passed over. A node that its last
// requestor leaves goes to the next one on it at no cost (a plan gets it only once the
// release is written: the request may have come back), unless more nodes are in
// maintenance than the limits allow, and shared requests join at no cost those
// that are shared too, while nobody who ranks before them waits for the node
// alone. With maxParallelOperations 0 nothing begins at all.
func Rank(w ClusterState) Ranking {
	r := survey(w)
	for _, e := range r.entries() {
		r.judge(e)
	}
	r.keepHanded()
	r.out.Waits = append(r.out.Waits, r.fixed...)
	return r.out
}

// keepHanded says of nodes that were kept cordoned for a plan whether it has them.
func (r *ranker) keepHanded() {
	for _, s := range r.sites {
		if s.Cordon == nil || s.Cordon.Handed == nil {
			continue
		}
		for _, h := range s.holds {
			r.turns(s.Name)[h.Claimant] = Turn{Granted: true}
		}
	}
}

// site is a node as the ranker sees it.
type site struct {
	*Node
	standing []*Asked // requests that have it
	leaving  bool     // one has it that is about to be released
	holds    []Hold   // at work
	failed   bool     // a rollout failed here and left it cordoned
	winner   *entry   // who gets it in this ranking
	barred   string   // who waits for it and cannot share it
	queued   bool     // is counted among those that wait for a slot
	yielded  bool     // its drain gave up the slot
	resuming bool     // and is about to have one again
	over     bool     // who has it does not drain, and had the slot long enough
}

// maintained says whether the node takes a slot.
func (s *site) maintained() bool {
	return !s.yielded && !s.over && (len(s.standing) > 0 || s.leaving || len(s.holds) > 0)
}

// away says whether the node counts in its zone.
func (s *site) away() bool { return s.maintained() || s.yielded || s.over || s.failed }

func (s *site) unavailable() bool { return s.Unschedulable || s.NotReady || s.away() }

func (s *site) held(claimant, step string) bool {
	return slices.ContainsFunc(s.holds, func(h Hold) bool { return h.Claimant == claimant && h.Step == step })
}

// entry is a claimant that may get a node now, as far as the node is concerned.
type entry struct {
	*site
	claimant string
	step     string // of a rollout
	order    int    // within its step
	asked    *Asked // nil: a rollout
	rank     int
	busy     bool // the claimant has something in progress
	next     bool // a rollout, which gets the node once its last request is released
	resumes  bool // it yielded its slot, and its drain could go on
	pending  int  // nodes that it waits for
	since    time.Time
}

// handed says whether the node was kept cordoned for the claimant, which is next.
func (e *entry) handed() bool {
	return e.asked == nil && e.Cordon != nil && e.Cordon.Handed != nil && e.cordonedBy(e.claimant)
}

func (e *entry) shared() bool { return e.asked != nil && e.asked.Request.Shared }

// before is the order of rule 4.
func before(a, b *entry) int {
	return cmp.Or(
		first(a.resumes, b.resumes), first(a.handed(), b.handed()),
		cmp.Compare(b.rank, a.rank), first(a.busy, b.busy), cmp.Compare(a.pending, b.pending),
		a.since.Compare(b.since), cmp.Compare(a.order, b.order), cmp.Compare(a.Name, b.Name), cmp.Compare(a.claimant, b.claimant), cmp.Compare(a.step, b.step),
	)
}

func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

type ranker struct {
	world    ClusterState
	out      Ranking
	sites    []*site
	byName   map[string]*site
	zones    map[string][]string // nodes in maintenance, or left cordoned, by zone
	parallel int                 // nodes at once
	limit    int                 // unavailable nodes at once
	budget   int                 // what is left of it
	slots    int
	queue    int // nodes that wait for a slot, so far
	busy     map[string]bool
	pending  map[string]int
	fixed    []Wait // of those that do not depend on others
}

func survey(w ClusterState) *ranker {
	r := &ranker{
		world: w, byName: make(map[string]*site, len(w.Nodes)), zones: map[string][]string{},
		busy: map[string]bool{}, pending: map[string]int{}, parallel: w.Limits.Parallel.Up(len(w.Nodes)),
	}
	r.out.turns = map[string]Turns{}
	for i := range w.Nodes {
		s := &site{Node: &w.Nodes[i]}
		s.standing, s.leaving = s.holders()
		for _, a := range s.standing {
			r.busy[a.Request.Requestor] = true
		}
		r.sites = append(r.sites, s)
		r.byName[s.Name] = s
	}
	for _, h := range w.Holds {
		if s := r.byName[h.Node]; s != nil && (!h.Cordoned || s.cordonedBy(h.Claimant)) { // what a journal says of a cordon counts only with the node's own record
			s.take(h)
			r.busy[h.Claimant] = r.busy[h.Claimant] || !h.Failed
		}
	}
	for _, s := range r.sites {
		s.noteYield()
		s.noteSlots(w.Limits, w.Now)
	}
	r.count()
	return r
}

func (s *site) take(h Hold) {
	switch {
	case h.Failed:
		s.failed = true
	case !slices.ContainsFunc(s.standing, func(a *Asked) bool { return a.Request.Requestor == h.Claimant }):
		s.holds = append(s.holds, h)
	case !h.Yielded: // a write that is not seen yet
		s.resuming = true
	}
}

// count computes rules 1 and 2, and what of the configuration holds back all.
func (r *ranker) count() {
	unavailable := 0
	for _, s := range r.sites {
		if s.maintained() {
			r.out.Maintenance = append(r.out.Maintenance, s.Name)
		}
		if s.unavailable() {
			unavailable++
		}
		if s.Zone != "" && s.away() {
			r.zones[s.Zone] = append(r.zones[s.Zone], s.Name)
		}
	}
	slices.Sort(r.out.Maintenance)
	r.slots = r.parallel - len(r.out.Maintenance)
	r.out.Slots = r.slots
	if r.world.Limits.Unavailable != nil {
		r.limit = r.world.Limits.Unavailable.Down(len(r.world.Nodes))
		r.budget = r.limit - unavailable
		left := r.budget
		r.out.Budget = &left
	}
	r.configuration()
}

// entries are all that may get a node now, in their order.
func (r *ranker) entries() []*entry {
	var out []*entry
	for _, s := range r.sites {
		if e := r.resumption(s); e != nil {
			out = append(out, e)
		}
		for i := range s.Asked {
			if e := r.request(s, &s.Asked[i]); e != nil {
				out = append(out, e)
			}
		}
	}
	oldest := r.oldest()
	for i := range r.world.Wants {
		if e := r.want(&r.world.Wants[i], oldest); e != nil {
			out = append(out, e)
		}
	}
	for _, e := range out {
		e.busy, e.pending = r.busy[e.claimant], r.pending[e.claimant]
	}
	slices.SortFunc(out, before)
	return out
}

func (r *ranker) request(s *site, a *Asked) *entry {
	claimant := a.Request.Requestor
	if a.Gone || s.phase(a).Holds() || s.held(claimant, "") {
		return nil
	}
	if s.waits(a) {
		r.pending[claimant]++
	}
	if wait, stuck := r.stuck(s, a); stuck {
		r.fix(s.Name, claimant, "", wait)
		r.turns(s.Name)[claimant] = Turn{Wait: wait.Lasting, Held: len(s.holds) > 0}
		return nil
	}
	since := a.since(r.world.Now)
	return &entry{site: s, claimant: claimant, asked: a, since: since, rank: a.Request.Priority + aged(since, r.world.Now)}
}

// stepOf names one step of one claimant.
type stepOf struct{ claimant, step string }

// oldest is since when each step waits for any of its nodes.
func (r *ranker) oldest() map[stepOf]time.Time {
	out := map[stepOf]time.Time{}
	for _, w := range r.world.Wants {
		since, key := w.Since, stepOf{w.Claimant, w.Step}
		if since.IsZero() {
			since = r.world.Now
		}
		if was, known := out[key]; !known || since.Before(was) {
			out[key] = since
		}
	}
	return out
}

func (r *ranker) want(w *Candidate, oldest map[stepOf]time.Time) *entry {
	s := r.byName[w.Node]
	resumes := s != nil && s.yieldedBy(w.Claimant, w.Step)
	if s != nil && !resumes && s.held(w.Claimant, w.Step) {
		return nil
	}
	r.pending[w.Claimant]++
	switch {
	case s == nil:
		r.fix(w.Node, w.Claimant, w.Step, said(WaitUnknown, "there is no node "+w.Node))
		return nil
	case s.Deleting:
		r.fix(w.Node, w.Claimant, w.Step, said(WaitDeleting, "the node is being deleted"))
		return nil
	case resumes && w.Blocked.Permanent && r.world.Limits.Yield:
		r.fix(w.Node, w.Claimant, w.Step, said(WaitBlocked, YieldedText(w.Blocked)))
		return nil
	case resumes: // what has begun goes on, whether or not change is permitted
		return &entry{site: s, claimant: w.Claimant, step: w.Step, resumes: true, since: r.world.Now}
	case w.Blocked.Permanent:
		r.fix(w.Node, w.Claimant, w.Step, said(WaitBlocked, BlockedText(w.Blocked)))
		return nil
	case !w.Permitted:
		r.fix(w.Node, w.Claimant, w.Step, said(WaitClosed, cmp.Or(w.Reason, "no change is permitted now")))
		return nil
	}
	since := oldest[stepOf{w.Claimant, w.Step}]
	return &entry{site: s, claimant: w.Claimant, step: w.Step, order: w.Order, since: since, rank: w.Priority + aged(since, r.world.Now)}
}

func aged(since, now time.Time) int { return int(max(now.Sub(since), 0) / AgeRank) }

// judge gives the node to a claimant, or says why not.
func (r *ranker) judge(e *entry) {
	if e.resumes {
		r.resume(e)
		return
	}
	wait, held := r.holder(e)
	switch {
	case held:
	case e.winner != nil || len(e.standing) > 0: // it joins
		wait, held = r.none()
	case e.leaving:
		wait, held = r.handover()
		if e.next = !held && e.asked == nil; e.next {
			wait, held = releasing()
		}
	default:
		if wait, held = r.afford(e); !held {
			r.pay(e)
		}
	}
	if !held {
		r.grant(e)
		return
	}
	if !e.shared() && e.barred == "" {
		e.barred = e.claimant
	}
	r.wait(e, wait)
}

// holder says who else has the node, or gets it first, and cannot share it with e.
func (r *ranker) holder(e *entry) (Wait, bool) {
	occupied := len(e.standing) > 0 || e.leaving
	switch {
	case len(e.holds) > 0:
		return held(e.holds[0].Claimant), true
	case occupied && e.uncordonedByOthers():
		return said(WaitUncordoned, "somebody uncordoned the node while it was held; it is free again when the present request is removed"), true
	case len(e.standing) > 0 && e.asked == nil:
		return held(e.present()), true
	case len(e.standing) > 0 && (e.yielded || e.over):
		return held(e.present()), true
	case len(e.standing) > 0 && !e.joins(e.asked, e.standing, e.phase):
		return held(e.present()), true
	case e.winner != nil && (!e.winner.shared() || !e.shared()):
		return held(e.winner.claimant), true
	case e.barred != "" && (e.winner != nil || occupied):
		return behind(e.barred), true
	}
	return Wait{}, false
}

// present names one of those who have the node.
func (s *site) present() string { return s.standing[0].Request.Requestor }

func (r *ranker) afford(e *entry) (Wait, bool) {
	costs := r.world.Limits.Unavailable != nil && !e.unavailable()
	if wait, none := r.none(); none {
		return wait, true
	}
	zone := r.others(e.site)
	zoneFull := r.world.Limits.Zone > 0 && len(zone) >= r.world.Limits.Zone
	switch {
	case costs && r.limit == 0:
		return r.overBudget(), true
	case r.slots <= 0:
		if !zoneFull && (!costs || r.budget > 0) {
			r.makeRoom(e)
		}
		return r.turn(e), true
	case zoneFull:
		return r.zoneFull(e.Zone, zone), true
	case costs && r.budget <= 0:
		return r.overBudget(), true
	}
	return Wait{}, false
}

// others are the nodes of the same zone that count against its limit; none where there is no limit,
// or the zone is not known.
func (r *ranker) others(s *site) []string {
	if r.world.Limits.Zone == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.zones[s.Zone]), func(name string) bool { return name == s.Name })
}

func (r *ranker) pay(e *entry) {
	r.slots--
	if !e.unavailable() {
		r.budget--
	}
	if e.Zone != "" {
		r.zones[e.Zone] = append(r.zones[e.Zone], e.Name)
	}
}

func (r *ranker) grant(e *entry) {
	if e.winner == nil {
		e.winner = e
	}
	r.out.Grants = append(r.out.Grants, Grant{Node: e.Name, Claimant: e.claimant, Step: e.step})
	r.turns(e.Name)[e.claimant] = Turn{Granted: true}
}

func (r *ranker) turns(node string) Turns {
	if r.out.turns[node] == nil {
		r.out.turns[node] = Turns{}
	}
	return r.out.turns[node]
}

// joins says whether a shared request may come to those that have the node: all
// of them are shared, and none of them is kept from being Ready for longer.
func (n *Node) joins(a *Asked, standing []*Asked, phase func(*Asked) Phase) bool {
	if !a.Request.Shared {
		return false
	}
	begun := Phase("")
	for _, s := range standing {
		if !s.Request.Shared || s.Fault != "" {
			return false
		}
		if p := phase(s); p == WaitingForPods && begun == "" || p == Draining {
			begun = p
		}
	}
	switch {
	case begun == "":
		return true
	case a.Request.WaitFor != nil:
		return false
	case begun == WaitingForPods || a.Request.Drain == nil || n.Cordon.covers(*a.Request.Drain):
		return true
	}
	var members []member
	for _, s := range standing {
		if phase(s) == Draining && !n.fulfilled(s) {
			members = append(members, member{Asked: s, since: s.Status.Since})
		}
	}
	p, ok := passing(members)
	return ok && p.options.Includes(*a.Request.Drain)
}

// fulfilled says whether what a request asks to leave has left.
func (n *Node) fulfilled(a *Asked) bool {
	drained := ""
	if a.Status != nil {
		drained = a.Status.Drained
	}
	return n.Cordon.fulfills(a.Request.Drain, drained)
}
