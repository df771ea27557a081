package workflow_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// flight is an act that was begun: what it does in the world is done, and what it
// came to is not in the journal yet.
type flight struct {
	path    string
	attempt int
	note    func(run.Journal) run.Journal
}

// rest is a step that waits, as long as its record stays as it is.
type rest struct {
	until  time.Time
	record run.Record
}

// ranger drives a run of nested steps through an agent that does several acts at
// once and dies wherever it can, among people who ask for everything.
type ranger struct {
	t       *rapid.T
	g       grove
	durable run.Journal
	begun   bool
	now     time.Time
	since   time.Time
	looks   int
	quiet   bool

	abort   *run.End
	replace bool
	paused  bool
	gate    *run.ClosedGate
	binds   bool // it is the namespace that is closed
	resume  bool
	approve *workflow.Answer
	reject  *workflow.Answer

	crashes int // left
	died    int
	flying  []flight
	resting map[string]rest

	effects map[string]int    // by path and attempt
	top     map[string]int    // the last attempt that began, by path
	tries   map[string]int    // attempts that began, by path
	world   map[string]string // what restoring steps changed: empty is how it was
	leases  map[string]time.Time
	holds   map[string]int  // batches of which until said that they hold, by path and attempt
	at      map[string]bool // what was cut off at work and is to be stopped
	passed  map[string]bool

	held   time.Duration // time that is not to count, as seen from here
	before bool          // the run was held when it was last looked at
	last   time.Time
	slack  time.Duration
}

func newRanger(t *rapid.T) *ranger {
	g := growRun(t)
	return &ranger{
		t: t, g: g, durable: workflow.NewJournal(g.run), now: coretest.Clock("02:00"), since: coretest.Clock("02:00"), last: coretest.Clock("02:00"), crashes: oneOf(t, 7, "crashes"),
		resting: map[string]rest{}, effects: map[string]int{}, top: map[string]int{}, tries: map[string]int{}, world: map[string]string{},
		leases: map[string]time.Time{}, holds: map[string]int{}, at: map[string]bool{}, passed: map[string]bool{},
	}
}

func (w *ranger) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s: %s\nsteps: %s\n%s", w.now.Format("15:04:05"), fmt.Sprintf(format, args...), shape(w.g), phases(w.durable))
}

func shape(g grove) string {
	b, err := json.Marshal(map[string]any{"spec": g.run.Spec, "templates": g.run.Templates})
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (w *ranger) draw(n int, of string) int { return oneOf(w.t, n, of) }

func (w *ranger) dies(where string) bool {
	if w.crashes == 0 || w.quiet || w.draw(8, "dies "+where) != 1 {
		return false
	}
	w.crashes--
	w.died++
	away := []time.Duration{0, time.Second, 10 * time.Minute, 3 * time.Hour}[w.draw(4, "is away")]
	w.now = w.now.Add(away)
	w.since = w.now
	w.flying, w.resting = nil, map[string]rest{}
	if where == "before a write" { // whether it was held then is not known
		w.slack += away
	}
	if w.gate != nil && !w.gate.Until.IsZero() && !w.now.Before(w.gate.Until) {
		w.gate = nil
		w.slack += away
	}
	return true
}

func (w *ranger) signals() workflow.Signals {
	sig := workflow.Signals{Abort: w.abort, Replace: w.replace, LeadingSince: w.since, Hold: w.gate, Approve: w.approve, Reject: w.reject}
	if w.binds {
		sig.Namespace = w.gate
	}
	if w.paused {
		sig.Held = "paused"
	}
	if w.resume {
		sig.Resume = &workflow.Answer{Actor: intent.Actor{Name: "jane"}}
	}
	return sig
}

// through is the whole run, through all lives of its agent.
func (w *ranger) through() {
	w.people()
	for range 60 {
		if w.live() {
			w.judge()
			return
		}
	}
	w.fail("the run does not end")
}

func (w *ranger) live() bool {
	j := w.durable
	if !w.begun {
		j = j.Start(w.now)
		w.last, w.before, w.held, w.slack = w.now, false, 0, 0
	}
	for {
		if w.looks++; w.looks > 150 {
			w.settleDown()
		}
		if w.looks > 1500 {
			w.fail("the run does not end")
		}
		w.tick()
		next, m := w.look(w.landed(j))
		if !same(next, w.durable) {
			if w.dies("before a write") {
				return false
			}
			w.written(next, m)
			if w.dies("after a write") {
				return false
			}
		}
		j = document.Clone(w.durable)
		if m.Act == workflow.ActClose {
			w.closes()
			return true
		}
		if !w.acts(j, m) {
			return false
		}
		w.people()
	}
}

// settleDown is the end of all mischief: what runs succeeds, and nobody asks for
// anything but that it goes on.
func (w *ranger) settleDown() { w.quiet, w.paused, w.gate, w.resume = true, false, nil, true }

// tick counts the time since the last look, if the run was held then.
func (w *ranger) tick() {
	if w.before {
		w.held += w.now.Sub(w.last)
	}
	vague := func(r run.Record) bool {
		return r.Stopping || r.NotBefore != nil && plan.SectionOf(r.Path) == plan.SectionSteps
	}
	if w.durable.RetryAt != nil || slices.ContainsFunc(w.durable.Steps, vague) {
		w.slack += w.now.Sub(w.last) // nothing is at work: whether a gate held the run is known at the next look
	}
	w.last = w.now
}

// landed is the journal with what came of some of the acts under way.
func (w *ranger) landed(j run.Journal) run.Journal {
	var still []flight
	for i, f := range w.flying {
		if i > 0 && !w.quiet && w.draw(3, "is still under way") == 1 {
			still = append(still, f)
			continue
		}
		if rec := j.Record(f.path); rec != nil && rec.Attempt == f.attempt {
			j = f.note(j)
		}
	}
	w.flying = still
	return j
}

// look asks what is next, twice, and judges that it asks for nothing strange.
func (w *ranger) look(j run.Journal) (run.Journal, workflow.Action) {
	was := document.Clone(j)
	sig := w.signals()
	next, m := workflow.Advance(w.g.run, j, w.now, sig)
	if !same(was, j) {
		w.fail("Advance changed the journal that it was given")
	}
	sig.Approve, sig.Reject, sig.Resume = nil, nil, nil // those count once the question was written
	again, n := workflow.Advance(w.g.run, document.Clone(next), w.now, sig)
	if !same(again, next) {
		w.fail("asked twice, it moves on:\n%s\n%s", text(next), text(again))
	}
	if !reflect.DeepEqual(timeless(m), timeless(n)) {
		w.fail("asked twice, it says another thing:\n%s\n%s", moves(m), moves(n))
	}
	w.wakes(m)
	return next, m
}

func text(j run.Journal) string {
	b, _ := json.Marshal(j)
	return string(b)
}

func moves(m workflow.Action) string {
	var out []string
	for _, m := range m.All() {
		out = append(out, fmt.Sprintf("%d %s until %s", m.Act, m.Path, stampOf(m.WakeAt)))
	}
	return strings.Join(out, ", ")
}

// timeless are a move's acts and waits. The instants are compared as text: those
// of a fresh journal and of one that was read differ in nothing else.
func timeless(m workflow.Action) []string {
	var out []string
	for _, m := range m.All() {
		out = append(out, fmt.Sprintf("%d %s until %s", m.Act, m.Path, m.WakeAt.UTC()))
	}
	return out
}

// wakes judges that a run which does nothing is looked at again, and not at once.
func (w *ranger) wakes(m workflow.Action) {
	var wake time.Time
	acts := map[string]bool{}
	for _, m := range m.All() {
		if m.Act != workflow.ActWait && acts[m.Path] {
			w.fail("two acts on %s at once", m.Path)
		}
		acts[m.Path] = acts[m.Path] || m.Act != workflow.ActWait
	}
	for _, m := range m.All() {
		if m.Act != workflow.ActWait && m.Act != workflow.ActCheckDrift {
			return
		}
		if !m.WakeAt.IsZero() && (wake.IsZero() || m.WakeAt.Before(wake)) {
			wake = m.WakeAt
		}
	}
	if wake.IsZero() && !w.paused && (w.gate == nil || !w.gate.Until.IsZero()) {
		w.fail("waits for ever")
	}
	if !wake.IsZero() && !wake.After(w.now) {
		w.fail("wakes at %s, and it is %s", wake, w.now)
	}
}

// people ask for things at any time.
func (w *ranger) people() {
	w.approve, w.reject = nil, nil
	if w.quiet {
		w.answer(&w.approve)
		return
	}
	switch w.draw(60, "people") {
	case 1:
		w.abort = &run.End{Phase: run.Aborted, Reason: "Aborted", Message: "by jane"}
	case 2:
		w.replace = true
	case 3, 4, 5:
		w.paused = !w.paused
	case 6, 7, 8:
		w.resume = !w.resume
	case 9, 10, 11, 12, 13:
		w.turnGate()
	case 14, 15, 16, 17, 18, 19:
		w.answer(&w.approve)
	case 20, 21:
		w.answer(&w.reject)
	}
}

func (w *ranger) turnGate() {
	if w.gate != nil {
		w.gate = nil
		return
	}
	since := w.now
	w.gate = &run.ClosedGate{Reason: "closed", Since: &since}
	w.binds = w.draw(3, "is the namespace's") == 1
	if w.draw(2, "opens by itself") == 1 {
		w.gate.Until = w.now.Add(8 * time.Hour)
	}
}

// answer is said to the first question that is open.
func (w *ranger) answer(to **workflow.Answer) {
	for _, rec := range w.durable.Steps {
		if rec.Type == plan.TypeApproval && rec.Phase == run.StepRunning && rec.Approval == nil {
			*to = &workflow.Answer{Step: rec.Path, Actor: intent.Actor{Name: "jane"}}
			return
		}
	}
}

// acts does some of what a look asked for, in any order; where there was nothing
// to do, time goes by.
func (w *ranger) acts(j run.Journal, m workflow.Action) bool {
	all := m.All()
	if len(all) > 1 && w.draw(2, "order") == 1 {
		slices.Reverse(all)
	}
	wake := w.now.Add(time.Hour)
	did := false
	for i, m := range all {
		if m.Act == workflow.ActCheckDrift { // drift has tests of its own
			continue
		}
		if until := w.rests(j, m); until.After(w.now) || m.Act == workflow.ActWait {
			for _, t := range []time.Time{until, m.WakeAt} {
				if t.After(w.now) && t.Before(wake) {
					wake = t
				}
			}
			continue
		}
		under := slices.ContainsFunc(w.flying, func(f flight) bool { return f.path == m.Path })
		if under || did && !w.quiet && i > 0 && w.draw(4, "not now") == 1 {
			continue
		}
		did = true
		if !w.act(j, m) {
			return false
		}
	}
	if !did && len(w.flying) == 0 {
		if w.gate != nil && !w.gate.Until.IsZero() && w.gate.Until.Before(wake) {
			wake = w.gate.Until
		}
		w.now = wake
		if w.gate != nil && !w.gate.Until.IsZero() && !w.now.Before(w.gate.Until) {
			w.tick()
			w.gate = nil
		}
	} else if !w.quiet && w.draw(6, "it takes time") == 1 {
		w.now = w.now.Add(time.Duration(w.draw(10, "minutes")) * time.Minute)
	}
	return true
}

// rests is until when a step is left alone.
func (w *ranger) rests(j run.Journal, m workflow.Action) time.Time {
	r, ok := w.resting[m.Path]
	rec := j.Record(m.Path)
	if !ok || rec == nil || !sameState(r.record, *rec) {
		delete(w.resting, m.Path)
		return time.Time{}
	}
	return r.until
}

func sameState(a, b run.Record) bool {
	a.Message, b.Message = "", ""
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// act does one act in the world. What it came to is noted when it lands.
func (w *ranger) act(j run.Journal, m workflow.Action) bool {
	rec := *j.Record(m.Path)
	for cut := range w.at {
		if m.Act == workflow.ActRestore || m.Act == workflow.ActPass && plan.SectionOf(cut) != plan.SectionOf(m.Path) {
			w.fail("%s is next, and %s is still at work", m.Path, cut)
		}
	}
	if w.dies("before an act") {
		return false
	}
	lands := func(note func(run.Journal) run.Journal) {
		w.flying = append(w.flying, flight{path: m.Path, attempt: rec.Attempt, note: note})
	}
	switch m.Act {
	case workflow.ActPass:
		rep := w.pass(m, rec)
		if rep == nil {
			break
		}
		lands(func(j run.Journal) run.Journal { return workflow.Note(w.g.run, j, m.Path, *rep, w.now) })
	case workflow.ActStop:
		delete(w.at, m.Path)
		delete(w.leases, leaseOf(m.Path, rec))
		lands(func(j run.Journal) run.Journal { return workflow.NoteStop(j, m.Path, nil) })
	case workflow.ActRestore:
		lands(w.putBack(m, rec))
	case workflow.ActKeep:
		next := w.now.Add(leaseTime / 2)
		w.leases[string(rec.Memory)] = next
		lands(func(j run.Journal) run.Journal { return workflow.NoteKeep(j, m.Path, nil, next, "") })
	case workflow.ActRelease:
		delete(w.leases, string(rec.Memory))
		lands(func(j run.Journal) run.Journal { return workflow.NoteRelease(j, m.Path, "") })
	default:
		w.fail("unknown act %d", m.Act)
	}
	return !w.dies("after an act")
}

func asText(b json.RawMessage) string {
	var out string
	if json.Unmarshal(b, &out) != nil {
		return "?"
	}
	return out
}

// leaseOf is what a silence is known by: one of each step, whatever its attempts.
func leaseOf(path string, _ run.Record) string { return `"` + path + `"` }

// pass is what executors do; nil is that there is nothing to note yet.
func (w *ranger) pass(m workflow.Action, rec run.Record) *workflow.StepResult {
	w.mayPass(m)
	w.passed[m.Path] = true
	now := w.now
	switch m.Step.Type {
	case "suspend":
		return w.suspend(m, rec)
	case plan.TypeApproval:
		return w.approval(m, rec)
	case plan.TypeForEach:
		return w.list(m, rec)
	case "scale":
		if rec.Before == nil && m.Step.Properties["restoreAfter"] == true {
			b, _ := json.Marshal(w.world[m.Path])
			return &workflow.StepResult{Before: b}
		}
	}
	outcome := 0
	if !w.quiet {
		outcome = w.draw(10, "outcome of "+m.Path)
	}
	if outcome == 1 {
		return w.later(m, rec, now.Add(7*time.Minute))
	}
	w.effects[fmt.Sprintf("%s#%d", m.Path, rec.Attempt)]++
	rep := workflow.StepResult{Done: true}
	switch {
	case outcome < 4 && outcome > 1:
		rep = failed("Boom")
		delete(w.leases, leaseOf(m.Path, rec))
	case outcome == 4:
		rep = permanent("Boom")
		delete(w.leases, leaseOf(m.Path, rec))
	case m.Step.Type == "silence":
		next := now.Add(leaseTime / 2)
		w.leases[leaseOf(m.Path, rec)] = next
		rep.KeepAt, rep.Memory = &next, json.RawMessage(leaseOf(m.Path, rec))
	}
	if m.Step.Type == "scale" {
		w.world[m.Path] = fmt.Sprint(rec.Attempt)
	}
	return &rep
}

// mayPass: no step is called unless it is written that it runs.
func (w *ranger) mayPass(m workflow.Action) {
	rec := w.durable.Record(m.Path)
	if rec == nil || rec.Phase != run.StepRunning || rec.Attempt < 1 {
		w.fail("%s is passed, and written is %+v", m.Path, rec)
	}
	if rec.NotBefore != nil && w.now.Before(*rec.NotBefore) {
		w.fail("%s is tried again before its time", m.Path)
	}
	if rec.NotBefore != nil && !rec.Holds() && plan.SectionOf(m.Path) == plan.SectionSteps {
		w.fail("%s is passed, and it is not written that its attempt began", m.Path)
	}
	for _, s := range w.g.way(m.Path) {
		if holder := w.durable.Record(s.path); holder == nil || holder.Phase != run.StepRunning {
			w.fail("%s is passed while %s is %+v", m.Path, s.path, holder)
		}
	}
}

func (w *ranger) later(m workflow.Action, rec run.Record, until time.Time) *workflow.StepResult {
	if m.WakeAt.IsZero() && rec.Type != plan.TypeApproval && plan.SectionOf(m.Path) != plan.SectionSteps {
		w.fail("%s may hang for ever", m.Path)
	}
	w.resting[m.Path] = rest{until: until, record: rec}
	return nil
}

func (w *ranger) suspend(m workflow.Action, rec run.Record) *workflow.StepResult {
	switch {
	case rec.ResumeAt == nil:
		until := w.now.Add(20 * time.Minute)
		return &workflow.StepResult{ResumeAt: &until}
	case rec.Resumed != nil || !w.now.Before(*rec.ResumeAt):
		return &workflow.StepResult{Done: true}
	}
	return w.later(m, rec, *rec.ResumeAt)
}

func (w *ranger) approval(m workflow.Action, rec run.Record) *workflow.StepResult {
	switch {
	case rec.Approval != nil && rec.Approval.Approved:
		return &workflow.StepResult{Done: true}
	case rec.Approval != nil:
		rep := permanent("Rejected")
		return &rep
	case rec.ResumeAt == nil:
		until := w.now.Add(9 * time.Hour)
		return &workflow.StepResult{ResumeAt: &until}
	case !w.now.Before(*rec.ResumeAt):
		rep := permanent("ApprovalExpired")
		return &rep
	}
	return w.later(m, rec, *rec.ResumeAt)
}

// list is a pass of a for-each: it lists once, and from then on says whether what
// was done holds.
func (w *ranger) list(m workflow.Action, rec run.Record) *workflow.StepResult {
	fate := 9
	if !w.quiet {
		fate = w.draw(10, "list")
	}
	switch {
	case fate == 0:
		rep := failed("Unreadable")
		return &rep
	case fate == 1:
		return w.later(m, rec, w.now.Add(7*time.Minute))
	case rec.Listed:
		w.holds[m.Path] = rec.Batch + 1
		return &workflow.StepResult{Done: true}
	}
	rep := workflow.StepResult{Items: workflow.ItemList{Listed: true, List: []run.Item{}}}
	names := []run.Item{{Name: "a.b"}, {Name: "c:d"}, {Name: "d", Namespace: "c"}, {Name: "e"}}
	rep.Items.List = append(rep.Items.List, names[w.draw(2, "first"):w.draw(4, "items")+1]...)
	return &rep
}

// Whatever a plan holds, and whatever dies or is asked in between: its run ends,
// and what it promised is done.
func TestTheWalkOfTrees(t *testing.T) {
	for range 3 { // trees are many: more of them than rapid draws by default
		rapid.Check(t, func(t *rapid.T) { newRanger(t).through() })
	}
}
