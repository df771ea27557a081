package watchrule

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Observation is one state of an object, as a watch showed it, or as the answer to
// a write gave it. Its body is without managedFields.
type Observation struct {
	UID, Namespace, Name string
	Version              uint64 // its resourceVersion, as a number
	Body                 run.Body
	Writers              []Writer
}

// Writer is an entry of managedFields without its fields.
type Writer struct {
	Manager, Subresource string
	At                   int64 // in seconds
}

// Observed is a change that asks for a run, as Decide looks at it.
type Observed struct {
	Rule, APIVersion, Kind string
	Namespace, Name, UID   string
	Event                  string
	Checkpoint             ledger.Checkpoint // what the ledger keeps once it is claimed
	Body                   json.RawMessage   // of an object that is gone
}

// ObjectKey names an object of a rule.
type ObjectKey struct{ Rule, UID, Namespace, Name string }

// Failure is a condition that could not be evaluated: its change does not run.
type Failure struct {
	ObjectKey
	Kind, Event string
	Err         error
}

// Urgency says whether an observation asks for a look at the plan.
type Urgency int

// The answers.
const (
	UrgencyNone  Urgency = iota
	UrgencyLater         // there is something to write down, without hurry
	UrgencyNow           // there may be a run to start
)

// Tracker follows what the watch rules of one plan see, and says which changes
// ask for a run. What it says is judged against the marks of the ledger: it can
// be thrown away at any time and be made again from those. It is not safe for
// concurrent use.
type Tracker struct {
	planUID     string
	mine, agent string // the field managers of the plan and of the agent
	rules       []*ruleTrack
	own         map[ownWrite]bool
	ownOrder    []ownWrite
	flights     int // writes of the plan's runs whose answer is still to come
	doubt       Uncertainty
	removing    map[string]bool // what a run deleted, or not: the answer was lost
	queue       int64
	failures    []Failure
}

// Uncertainty says why writes of the plan's runs may come to light whose answers the
// tracker was not told. Then who wrote a state is read off the object.
type Uncertainty int

// The kinds of doubt.
const (
	NoDoubt    Uncertainty = iota
	DoubtEarly             // an earlier agent, or a write begun before the tracker was there
	DoubtLost              // the answer to a write was lost
)

// ownWrite is a state that a run made; version 0 is the object's end.
type ownWrite struct {
	uid     string
	version uint64
}

// maxOwn is how many own writes are remembered (a guess: a watch lags behind by
// far fewer).
const maxOwn = 10_000

type ruleTrack struct {
	id       string
	watch    plan.Watch
	digest   digester
	started  bool
	starting bool
	keeps    bool   // objects have to be kept
	full     string // why it watches nothing
	bytes    int    // that it keeps
	objects  map[string]*trackedObject
	busy     map[*trackedObject]bool // those with something to judge or to write
}

type goneness int

const (
	here  goneness = iota
	maybe          // no longer in the watch: deleted, or out of the selection
	gone
)

type trackedObject struct {
	uid, namespace, name string

	handling handling
	handled  packed // as it was then, where that is kept and this agent saw it
	last     packed // as it was at its end, for the run
	bytes    int    // that it keeps
	shown    uint64
	held     []state // not judged yet, by version
	pending  *state  // the newest that asks for a run, or would
	offered  *state  // pending as it was given to Decide
	order    int64
	gone     goneness
}

// handling is how far an object has been handled, and what of that is to be written.
type handling struct {
	known  bool // mark says how it was last handled
	mark   ledger.Checkpoint
	fresh  bool // known from the ledger alone
	dirty  bool // mark is newer than the ledger's
	aged   bool // by its time alone
	forget bool // dirty, and nothing is to be kept
}

type state struct {
	version       uint64
	digest        string
	foreign, mine int64
	body          packed // where the rule has a condition
	judged, holds bool
	since         uint64 // the newest state folded into it that no run of the plan wrote
}

// NewTracker follows nothing yet. The managers are the field managers under which
// the plan's runs and the agent write.
func NewTracker(planUID, planManager, agentManager string) *Tracker {
	return &Tracker{planUID: planUID, mine: planManager, agent: agentManager, own: map[ownWrite]bool{}, removing: map[string]bool{}}
}

// SetRules takes up a plan's rules. What belongs to others is forgotten.
func (t *Tracker) SetRules(rules []plan.Watch, mirrorPrefix string) {
	var out []*ruleTrack
	for _, w := range rules {
		id := plan.RuleID(w, mirrorPrefix)
		r := t.rule(id)
		if r == nil {
			r = &ruleTrack{id: id, watch: w, keeps: w.Keeps(), digest: newDigester(w, t.planUID, mirrorPrefix), objects: map[string]*trackedObject{}, busy: map[*trackedObject]bool{}}
		}
		out = append(out, r)
	}
	t.rules = out
}

func (t *Tracker) rule(id string) *ruleTrack {
	for _, r := range t.rules {
		if r.id == id {
			return r
		}
	}
	return nil
}

// Load takes in what the ledger knows of a started rule.
func (t *Tracker) Load(id string, marks map[string]ledger.Checkpoint) {
	r := t.rule(id)
	if r == nil {
		return
	}
	r.started = true
	for uid, mark := range marks {
		o := r.object(uid)
		o.handling.known, o.handling.fresh, o.handling.mark = true, true, mark
		o.namespace, o.name, _ = strings.Cut(mark.Name, "/")
	}
}

// Forget lets a rule begin anew, as Use takes it up.
func (t *Tracker) Forget(id string) {
	t.rules = slices.DeleteFunc(t.rules, func(r *ruleTrack) bool { return r.id == id })
}

func (r *ruleTrack) object(uid string) *trackedObject {
	if r.objects[uid] == nil {
		r.objects[uid] = &trackedObject{uid: uid}
	}
	return r.objects[uid]
}

// Observe takes in what a rule's watch shows.
func (t *Tracker) Observe(id string, s Observation) Urgency {
	r := t.rule(id)
	if r == nil || r.full != "" {
		return UrgencyNone
	}
	o := r.object(s.UID)
	o.last = nil
	if o.handling.forget { // it left, and is back: to the rule it is new
		o.handling.known, o.handled, o.handling.forget, o.handling.dirty = false, nil, false, false
	}
	o.gone, o.namespace, o.name = here, s.Namespace, s.Name
	if s.Version != 0 && (s.Version <= o.shown || s.Version < o.handling.mark.Version) { // an echo, or a watch that lags behind an earlier agent's
		r.weigh(o)
		return r.urgency(t, o)
	}
	o.shown = s.Version
	o.hold(r.state(t, s))
	r.busy[o] = true
	t.fold(r, o)
	r.weigh(o)
	if t.shut(r) {
		return UrgencyNow
	}
	return r.urgency(t, o)
}

func (r *ruleTrack) state(t *Tracker, s Observation) state {
	out := state{version: s.Version, digest: r.digest.of(s.UID, s.Body)}
	if r.watch.When != "" {
		out.body = pack(run.WithoutSecrets(s.Body)) // the digest alone knows of a Secret's data
	}
	for _, w := range s.Writers {
		switch {
		case w.Manager == t.mine:
			out.mine = max(out.mine, w.At)
		case w.Manager != t.agent && (w.Subresource != "status" || r.digest.status):
			out.foreign = max(out.foreign, w.At)
		}
	}
	return out
}

// hold keeps a state in its place; one of the same version is the same. Those whose
// versions are no numbers stand in the order in which they came.
func (o *trackedObject) hold(s state) {
	i := sort.Search(len(o.held), func(i int) bool { return o.held[i].version > s.version })
	if i > 0 && o.held[i-1].version == s.version && s.version != 0 {
		o.held[i-1] = s
		return
	}
	o.held = slices.Insert(o.held, i, s)
}

// weigh lets go of what an object need not keep, and counts the rest.
func (r *ruleTrack) weigh(o *trackedObject) {
	if !r.keeps {
		o.handled = nil
		if p := o.pending; p != nil && (p.judged || !r.started) { // what is there at first is not judged
			p.body = nil
		}
	}
	bytes := len(o.handled) + len(o.last)
	if o.pending != nil {
		bytes += len(o.pending.body)
	}
	for _, s := range o.held {
		bytes += len(s.body)
	}
	if r.objects[o.uid] != o {
		bytes = 0
	}
	r.bytes += bytes - o.bytes
	o.bytes = bytes
}

// shut ends a rule that is beyond a limit, and says so: of what it knows, only
// the marks that the ledger does not have yet are left.
func (t *Tracker) shut(r *ruleTrack) bool {
	objects, bytes := t.size()
	const mend = "it is closed until the plan is edited; narrow its selector or namespace%s, or split the plan"
	switch {
	case objects > plan.MaxWatched:
		r.full = fmt.Sprintf("the watch of %s finds more objects than a plan may watch with all its rules, %d: "+mend, r.watch, plan.MaxWatched, "")
	case bytes > plan.MaxWatchedBytes:
		r.full = fmt.Sprintf("the watch of %s keeps more of its objects for `when` than a plan may with all its rules, %d MiB: "+mend, r.watch, plan.MaxWatchedBytes>>20, ", ask for neither oldObject nor the event delete")
	default:
		return false
	}
	r.empty()
	return true
}

// StopRule ends a rule whose objects are too much beside those of other plans: together they
// keep more than so many bytes.
func (t *Tracker) StopRule(id, whose string, most int) {
	r := t.rule(id)
	if r == nil || r.full != "" {
		return
	}
	r.full = fmt.Sprintf("the watch of %s keeps more of its objects for `when` than %s may together, %d MiB: it is closed until the plan is edited; narrow its selector or namespace, or ask for neither oldObject nor the event delete", r.watch, whose, most>>20)
	r.empty()
}

// empty lets go of what a closed rule keeps.
func (r *ruleTrack) empty() {
	for _, o := range r.objects {
		o.handled, o.last, o.held, o.pending, o.offered = nil, nil, nil, nil, nil
		if !o.handling.dirty && !o.handling.aged {
			r.drop(o)
		}
		r.weigh(o)
	}
}

// size is how many objects the rules watch, and how many bytes they keep of them.
func (t *Tracker) size() (objects, bytes int) {
	for _, r := range t.rules {
		if r.full == "" {
			objects, bytes = objects+len(r.objects), bytes+r.bytes
		}
	}
	return objects, bytes
}

// Kept is how many bytes of objects are kept.
func (t *Tracker) Kept() int {
	_, bytes := t.size()
	return bytes
}

// urgency says what an observation calls for, and lets go what needs no more looking at.
func (r *ruleTrack) urgency(t *Tracker, o *trackedObject) Urgency {
	switch {
	case !r.started || t.flights > 0:
		return UrgencyNone
	case o.gone != here || o.pending != nil && r.watch.Asks(o.event()):
		return UrgencyNow
	case o.pending != nil || o.handling.dirty:
		return UrgencyLater
	}
	if len(o.held) == 0 && !o.handling.aged && o.offered == nil {
		delete(r.busy, o)
	}
	return UrgencyNone
}

func (o *trackedObject) event() string {
	switch {
	case o.gone == gone:
		return plan.EventDelete
	case o.handling.known:
		return plan.EventUpdate
	}
	return plan.EventCreate
}

// fold judges what was shown, in the order in which it came to be. What equals
// the last handled state is no change; what a run of the plan itself wrote, with
// nobody's change before it, is handled by that. Of the rest the newest counts.
// While a write is under way nothing is judged: a watch may show it before its
// answer says whose it is.
func (t *Tracker) fold(r *ruleTrack, o *trackedObject) {
	if r.starting || o.offered != nil || r.started && t.flights > 0 {
		return
	}
	for len(o.held) > 0 && o.held[0].version <= o.shown {
		s := o.held[0]
		o.held = o.held[1:]
		switch {
		case r.started && o.handling.known && s.digest == o.handling.mark.Digest:
			o.same(s)
		case r.started && o.pending == nil && t.isOwn(o, s):
			o.acknowledge(s)
		default:
			o.pend(t, s)
		}
		o.handling.fresh = false
	}
	if r.started && o.pending != nil && o.gone == here && !r.watch.Asks(o.event()) { // at once, so that its end is one that was known
		o.acknowledge(*o.pending)
	}
}

// isOwn says whether a run of the plan made a state. Where nobody was told so, it
// takes a trace of a write by the plan since the mark, and none of anybody else's.
// What that cannot see: a removal of fields leaves no trace, and times are in
// seconds. Without a trace of ours a state counts as somebody's change.
func (t *Tracker) isOwn(o *trackedObject, s state) bool {
	switch {
	case t.own[ownWrite{o.uid, s.version}]:
		return true
	case !o.handling.known: // nobody but the plan ever wrote it
		return s.foreign == 0 && s.mine > 0
	}
	if !o.handling.fresh && t.doubt == NoDoubt || s.foreign > o.handling.mark.Foreign {
		return false // an older time is that of somebody else whose fields the run took over
	}
	again := t.doubt == DoubtLost // a run may write twice in one second
	return s.mine > 0 && s.mine >= o.handling.mark.Foreign && (again || s.mine > o.handling.mark.Mine)
}

func (o *trackedObject) same(s state) {
	o.pending, o.handled = nil, s.body
	if o.handling.mark.Foreign != s.foreign || o.handling.mark.Mine != s.mine {
		o.handling.mark.Foreign, o.handling.mark.Mine, o.handling.aged = s.foreign, s.mine, true
	}
}

// acknowledge takes a state for handled without a run.
func (o *trackedObject) acknowledge(s state) {
	ordinal := o.handling.mark.Ordinal
	if !o.handling.known {
		ordinal = max(ordinal, int64(s.version)) //nolint:gosec // versions stay far below
	}
	o.handling.known, o.handling.mark, o.handled, o.pending, o.handling.dirty = true, o.marked(s, ordinal), s.body, nil, true
}

func (o *trackedObject) marked(s state, ordinal int64) ledger.Checkpoint {
	return ledger.Checkpoint{Digest: s.digest, Ordinal: ordinal, Version: s.version, Foreign: s.foreign, Mine: s.mine, Name: o.namespace + "/" + o.name, Earned: o.handling.mark.Earned}
}

func (o *trackedObject) pend(t *Tracker, s state) {
	s.since = s.version
	if o.pending == nil {
		t.queue++
		o.order = t.queue
	} else if t.own[ownWrite{o.uid, s.version}] {
		s.since = o.pending.since
	}
	o.pending = &s
}

// NoteMissing notes that a rule's watch no longer shows an object, and what it was last,
// where that is known. Whether it is gone, or has left the selection, has to be
// asked, where it matters.
func (t *Tracker) NoteMissing(id, uid string, last run.Body) Urgency {
	r := t.rule(id)
	if r == nil || r.full != "" || r.objects[uid] == nil {
		return UrgencyNone
	}
	o := r.objects[uid]
	if !r.keeps && r.watch.Asks(plan.EventDelete) {
		o.last = pack(run.WatchedObject(last, plan.MaxWatchedClaim))
	}
	urgency := t.lose(r, o, r.watch.Selector == nil)
	r.weigh(o)
	if t.Kept() > plan.MaxWatchedBytes { // of many that are gone at once some are told of by name
		o.last = nil
		r.weigh(o)
	}
	return urgency
}

func (t *Tracker) lose(r *ruleTrack, o *trackedObject, sure bool) Urgency {
	if !o.handling.known && !r.starting {
		r.drop(o)
		return UrgencyNone
	}
	t.queue++
	o.gone, o.order, r.busy[o] = maybe, t.queue, true
	if sure || !r.watch.Asks(plan.EventDelete) {
		o.gone = gone
	}
	if r.started && !r.watch.Asks(plan.EventDelete) {
		o.leave()
		return UrgencyLater
	}
	return UrgencyNow
}

func (r *ruleTrack) drop(o *trackedObject) {
	delete(r.objects, o.uid)
	delete(r.busy, o)
	r.weigh(o)
}

// leave forgets an object without a run.
func (o *trackedObject) leave() {
	o.handling.forget, o.handling.dirty, o.pending, o.held, o.handled = true, true, nil, nil, nil
}

// NoteListed compares what is known of a rule with what its watch lists: what is
// not there was deleted, or left, while nobody looked.
func (t *Tracker) NoteListed(id string, listed func(uid string) bool) {
	r := t.rule(id)
	if r == nil {
		return
	}
	for _, uid := range slices.Sorted(maps.Keys(r.objects)) {
		if o := r.objects[uid]; o.gone == here && !listed(uid) {
			t.lose(r, o, false)
		}
	}
}

// Unconfirmed are objects that may be gone: whoever can ask says so by Confirm.
func (t *Tracker) Unconfirmed() []ObjectKey {
	var out []ObjectKey
	for _, r := range t.rules {
		for o := range r.busy {
			if r.started && o.gone == maybe && !o.handling.forget {
				out = append(out, ObjectKey{r.id, o.uid, o.namespace, o.name})
			}
		}
	}
	return out
}

// Confirm says whether an object is still there. One that is has left the
// selection, which is no event.
func (t *Tracker) Confirm(w ObjectKey, there bool) {
	r := t.rule(w.Rule)
	if r == nil || r.objects[w.UID] == nil || r.objects[w.UID].gone != maybe {
		return
	}
	o := r.objects[w.UID]
	switch {
	case !there:
		o.gone = gone
	case r.watch.Selector != nil:
		o.leave()
	default: // the watch will show it
		o.gone = here
	}
	r.weigh(o)
}

// BeginWrite notes that a write of one of the plan's runs is under way.
func (t *Tracker) BeginWrite() { t.flights++ }

// EndWrite notes that its answer was taken in, and says whether something waited for it.
func (t *Tracker) EndWrite() bool {
	t.flights--
	waits := false
	for _, r := range t.rules {
		waits = waits || len(r.busy) > 0
	}
	return t.flights == 0 && waits
}

// SetUncertainty says whether writes whose answers nobody knows may still come to light.
func (t *Tracker) SetUncertainty(d Uncertainty) {
	t.doubt = d
	if d != DoubtLost {
		clear(t.removing)
	}
}

// NoteWrite takes in the answer to a write of one of the plan's runs. Where the body
// is that of the object itself, it stands in for a state that the watch may pass
// over.
func (t *Tracker) NoteWrite(apiVersion, kind string, s Observation) {
	t.remember(ownWrite{s.UID, s.Version})
	if s.Body == nil {
		return
	}
	for _, r := range t.rules {
		o := r.objects[s.UID]
		if o == nil || r.watch.APIVersion != apiVersion || r.watch.Kind != kind || s.Version <= o.shown {
			continue
		}
		o.hold(r.state(t, s))
		r.busy[o] = true
		r.weigh(o)
	}
}

// Removed notes that a run of the plan deleted an object.
func (t *Tracker) Removed(uid string) { t.remember(ownWrite{uid: uid}) }

// Removing notes that the answer to such a deletion was lost: an object that goes
// while that is in doubt was deleted by the run.
func (t *Tracker) Removing(uid string) { t.removing[uid] = true }

func (t *Tracker) remember(w ownWrite) {
	if t.own[w] {
		return
	}
	t.own[w] = true
	t.ownOrder = append(t.ownOrder, w)
	if len(t.ownOrder) > maxOwn {
		delete(t.own, t.ownOrder[0])
		t.ownOrder = t.ownOrder[1:]
	}
}

// Start gives what is to be recorded when a rule starts: everything that is
// there. Until Started says that it was written, what comes is held.
func (t *Tracker) Start(id string) ([]ledger.ObjectCheckpoint, bool) {
	r := t.rule(id)
	if r == nil || r.started || t.flights > 0 || t.Full(id) != "" {
		return nil, false
	}
	r.starting = true
	out := []ledger.ObjectCheckpoint{}
	for _, uid := range slices.Sorted(maps.Keys(r.objects)) {
		if o := r.objects[uid]; o.pending != nil {
			s := *o.pending
			out = append(out, ledger.ObjectCheckpoint{Rule: id, UID: uid, Checkpoint: o.marked(s, int64(s.version))}) //nolint:gosec // versions stay far below
		}
	}
	return out, true
}

// Started notes that a rule's first sight was written, or, with false, that it
// was not. What was held meanwhile may ask for a look at the plan.
func (t *Tracker) Started(id string, written bool) Urgency {
	r := t.rule(id)
	if r == nil || !r.starting {
		return UrgencyNone
	}
	r.starting, r.started = false, written
	all := UrgencyNone
	for _, o := range r.objects {
		if written && o.pending != nil {
			o.acknowledge(*o.pending)
			o.handling.dirty = false
		}
		if written && o.gone != here {
			t.lose(r, o, r.watch.Selector == nil)
		}
		t.fold(r, o)
		r.weigh(o)
		all = max(all, r.urgency(t, o))
	}
	return all
}

// Full says why a rule that was beyond a limit watches nothing.
func (t *Tracker) Full(id string) string {
	if r := t.rule(id); r != nil {
		return r.full
	}
	return ""
}

// Watching is how many objects are watched.
func (t *Tracker) Watching() int {
	n := 0
	for _, r := range t.rules {
		if r.full != "" {
			continue
		}
		n += len(r.objects)
		for o := range r.busy {
			if o.gone != here {
				n--
			}
		}
	}
	return n
}

// Overlay takes in claims that the ledger has and the tracker does not know of:
// they were written, and the reply was lost.
func (t *Tracker) Overlay(seen []ledger.ObjectCheckpoint) {
	for _, s := range seen {
		r := t.rule(s.Rule)
		if r == nil || !r.started {
			continue
		}
		switch o := r.objects[s.UID]; {
		case o == nil || o.handling.forget || s.Ordinal <= o.handling.mark.Ordinal:
		case s.Gone && o.gone != here && o.handling.known:
			r.drop(o)
		case !s.Gone:
			o.claimed(s.Checkpoint)
			r.weigh(o)
		}
	}
}

// claimed moves an object's base to the state that a run was claimed for.
func (o *trackedObject) claimed(m ledger.Checkpoint) {
	for _, s := range []*state{o.offered, o.pending} {
		if s != nil && s.version <= m.Version {
			o.handled = s.body
		}
	}
	o.handling.known, o.handling.mark, o.handling.dirty, o.handling.aged, o.handling.fresh = true, m, false, false, false
	switch p := o.pending; {
	case p == nil:
	case p.version <= m.Version:
		o.pending = nil
	case p.since <= m.Version: // all that came after the claimed state is the plan's own
		o.acknowledge(*p)
	}
}

// Evaluator evaluates the conditions of rules.
type Evaluator interface {
	// Left says whether anything may be evaluated now.
	Left() bool
	// Evaluate evaluates a condition.
	Evaluate(condition func())
}

// Candidates are the changes that ask for a run, the longest waiting first. What
// asks for none is settled by the way, and shows in Unwritten. all is false if conditions are left that by
// may not evaluate now: those changes are judged another time.
func (t *Tracker) Candidates(by Evaluator) (candidates []Observed, all bool) {
	all = true
	type candidate struct {
		order int64
		Observed
	}
	var found []candidate
	for _, r := range t.rules {
		if !r.started || r.full != "" {
			continue
		}
		for _, o := range r.sortedBusy() {
			o.offered = nil
			t.fold(r, o)
			if r.evaluates(o) && !by.Left() {
				all = false
				continue
			}
			if seen, asks := t.judge(r, o, by); asks {
				found = append(found, candidate{o.order, seen})
			}
			r.weigh(o)
			r.urgency(t, o)
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Compare(a.order, b.order) })
	out := make([]Observed, len(found))
	for i, c := range found {
		out[i] = c.Observed
	}
	return out, all
}

// evaluates says whether a condition is to be evaluated to judge an object.
func (r *ruleTrack) evaluates(o *trackedObject) bool {
	return r.watch.When != "" && (o.gone == gone || o.pending != nil && !o.pending.judged)
}

func (r *ruleTrack) sortedBusy() []*trackedObject {
	return slices.SortedFunc(maps.Keys(r.busy), func(a, b *trackedObject) int { return strings.Compare(a.uid, b.uid) })
}

func (t *Tracker) judge(r *ruleTrack, o *trackedObject, by Evaluator) (Observed, bool) {
	switch {
	case o.handling.forget || o.gone == maybe || t.flights > 0:
		return Observed{}, false
	case o.gone == gone:
		return t.judgeGone(r, o, by)
	case o.pending == nil:
		return Observed{}, false
	}
	event, s := o.event(), o.pending
	if !s.judged {
		old := o.handled
		if !o.handling.known {
			old = nil
		}
		s.judged, s.holds = true, r.watch.Asks(event) && t.holds(r, o, by, event, s.body, old)
	}
	if !s.holds {
		o.acknowledge(*s)
		return Observed{}, false
	}
	o.offered = s
	ordinal := o.handling.mark.Ordinal + 1
	if !o.handling.known {
		ordinal = max(ordinal, int64(s.version)) //nolint:gosec // versions stay far below
	}
	return r.observed(o, event, o.marked(*s, ordinal)), true
}

func (t *Tracker) judgeGone(r *ruleTrack, o *trackedObject, by Evaluator) (Observed, bool) {
	body := o.handled
	if o.pending != nil {
		body = o.pending.body
	}
	last := o.last
	if last == nil {
		last = pack(run.WatchedObject(body.body(), plan.MaxWatchedClaim))
	}
	if body == nil {
		body = pack(run.ObjectStub(r.watch.APIVersion, r.watch.Kind, o.namespace, o.name, o.uid))
	}
	if t.own[ownWrite{uid: o.uid}] || t.removing[o.uid] || !t.holds(r, o, by, plan.EventDelete, body, body) {
		o.leave()
		return Observed{}, false
	}
	m := o.handling.mark
	m.Ordinal++
	out := r.observed(o, plan.EventDelete, m)
	if last != nil {
		out.Body = json.RawMessage(last)
	}
	return out, true
}

func (t *Tracker) holds(r *ruleTrack, o *trackedObject, by Evaluator, event string, object, old packed) bool {
	if r.watch.When == "" {
		return true
	}
	var holds bool
	var err error
	by.Evaluate(func() { holds, err = r.watch.Holds(object.body(), old.body()) })
	if err != nil {
		t.failures = append(t.failures, Failure{ObjectKey{r.id, o.uid, o.namespace, o.name}, r.watch.Kind, event, err})
	}
	return holds && err == nil
}

func (r *ruleTrack) observed(o *trackedObject, event string, m ledger.Checkpoint) Observed {
	return Observed{
		Rule: r.id, APIVersion: r.watch.APIVersion, Kind: r.watch.Kind, Namespace: o.namespace, Name: o.name, UID: o.uid, Event: event, Checkpoint: m,
	}
}

// Failures are the conditions that failed since this was last asked.
func (t *Tracker) Failures() []Failure {
	out := t.failures
	t.failures = nil
	return out
}

// Decided notes which of the candidates were claimed, once that is written with the
// marks seen, and says whether what came meanwhile asks for another look.
func (t *Tracker) Decided(claims []run.Request, seen []ledger.ObjectCheckpoint) Urgency {
	for _, c := range claims {
		r := t.rule(c.Rule)
		if c.Kind != run.ByWatch || r == nil || r.objects[c.UID] == nil {
			continue
		}
		o := r.objects[c.UID]
		switch {
		case c.Event != plan.EventDelete && o.offered != nil:
			mark := o.marked(*o.offered, c.Ordinal)
			if i := slices.IndexFunc(seen, (ledger.ObjectCheckpoint{Rule: c.Rule, UID: c.UID}).SamePlace); i >= 0 {
				mark.Earned = seen[i].Earned
			}
			o.claimed(mark)
		case c.Event == plan.EventDelete && o.gone != here:
			r.drop(o)
		}
	}
	all := UrgencyNone
	for _, r := range t.rules {
		for o := range r.busy {
			held := len(o.held) > 0
			o.offered = nil
			t.fold(r, o)
			r.weigh(o)
			if s := r.urgency(t, o); held {
				all = max(all, s)
			}
		}
	}
	return all
}

// Unwritten are marks that the ledger does not have yet; with aged also those
// that differ by their time alone, which matters only where something is written
// anyway.
func (t *Tracker) Unwritten(aged bool) []ledger.ObjectCheckpoint {
	var out []ledger.ObjectCheckpoint
	for _, r := range t.rules {
		for _, o := range r.sortedBusy() {
			if r.started && (o.handling.dirty || aged && o.handling.aged) {
				out = append(out, ledger.ObjectCheckpoint{Rule: r.id, UID: o.uid, Checkpoint: o.handling.mark, Gone: o.handling.forget})
			}
		}
	}
	return out
}

// Written notes that marks are in the ledger.
func (t *Tracker) Written(seen []ledger.ObjectCheckpoint) {
	for _, s := range seen {
		r := t.rule(s.Rule)
		if r == nil || r.objects[s.UID] == nil {
			continue
		}
		o := r.objects[s.UID]
		switch {
		case o.handling.forget && s.Gone:
			r.drop(o)
		case o.handling.mark == s.Checkpoint && !o.handling.forget:
			o.handling.dirty, o.handling.aged = false, false
			r.urgency(t, o)
		}
	}
}

// Body is an object's newest body, where it is kept.
func (t *Tracker) Body(id, uid string) run.Body {
	r := t.rule(id)
	if r == nil || r.objects[uid] == nil {
		return nil
	}
	o := r.objects[uid]
	switch {
	case len(o.held) > 0:
		return o.held[len(o.held)-1].body.body()
	case o.pending != nil:
		return o.pending.body.body()
	}
	return o.handled.body()
}
