package ledger

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Caps of a ledger.
const (
	MaxTokens        = 100
	MaxRecent        = 40  // closed entries beside the head, before a batch goes to the archive
	ArchiveBatch     = 20  // entries that go to the archive at once
	MaxOpen          = 50  // claims that stand at once (a guess); what asks beyond them waits
	MaxLedgerEntries = 200 // closed entries kept in all
	// MaxArchived are the closed entries of the archive: with those that the head keeps after it
	// has grown too large, which are more than a batch, at least as many as are kept in all.
	MaxArchived = MaxLedgerEntries - ArchiveBatch
)

// maxArchiveBytes is what the entries of an archive may take as JSON, well below what an object can
// hold. Entries of some hundred bytes come nowhere near it; a ledger that the API server refuses
// would hold its plan up for good.
const maxArchiveBytes = 900 << 10

// Entry is one slot, or one run without a slot, and its end. Adjacent entries
// of equal result, reason and cause fold into one with First, Last and Count; Run and Outcome are
// then those of the newest that had a run, which never started.
type Entry struct {
	Slot      *time.Time      `json:"slot,omitempty"`
	Local     string          `json:"local,omitempty"`
	Kind      run.TriggerKind `json:"kind"`
	Result    run.Result      `json:"result"`
	Reason    string          `json:"reason,omitempty"`
	Run       string          `json:"run,omitempty"`
	Actor     string          `json:"actor,omitempty"`
	Verified  bool            `json:"verified,omitempty"` // somebody checked the actor's name
	DryRun    bool            `json:"dryRun,omitempty"`
	StartedAt *time.Time      `json:"startedAt,omitempty"`
	At        time.Time       `json:"at"`
	First     *time.Time      `json:"first,omitempty"`
	Last      *time.Time      `json:"last,omitempty"`
	Count     int64           `json:"count,omitempty"`
	Request   *run.Request    `json:"request,omitempty"` // while open: all that the run needs to be created
	Spec      *plan.Spec      `json:"spec,omitempty"`    // while open and the plan was edited or deleted since: the snapshot
	TargetUID string          `json:"targetUID,omitempty"`
	Refused   string          `json:"refused,omitempty"` // while open: why the API server refuses its run
	Slept     []Slept         `json:"slept,omitempty"`   // of off-hours that are over: what slept in them
	EndedAt   *time.Time      `json:"endedAt,omitempty"` // of off-hours that are over: when all was awake
	Outcome   *Outcome        `json:"outcome,omitempty"` // of an entry that had a run: how that ended; of a trigger that was refused: why
	AsOf      string          `json:"asOf,omitempty"`    // the earlier run that a rollback goes back to
	// Said is what kept a slot from running, as people are told: paused by jane: CHG-1. The actor is
	// who said so, where that is known.
	Said string `json:"said,omitempty"`
}

// Who is the actor, marked where nobody has checked the name: jane (unverified).
func (e Entry) Who() string { return intent.Actor{Name: e.Actor, Verified: e.Verified}.Who() }

// LabelState is what the ledger knows of the requests by one label.
type LabelState struct {
	TargetUID string `json:"targetUID"`
	Claimed   int64  `json:"claimed"`           // number of the last request that was claimed
	Value     string `json:"value,omitempty"`   // its value
	Owner     string `json:"owner,omitempty"`   // who applied it declaratively, if somebody did
	Removed   bool   `json:"removed,omitempty"` // handled: the label was taken away, or given up
	Version   uint64 `json:"version,omitempty"` // of the target on which this was seen
	Earned    int64  `json:"earned,omitempty"`  // the second by which the runs are earned that the label had
	Lost      bool   `json:"lost,omitempty"`    // an earlier ledger is lost, and nobody has looked at the target since
}

// Ledger is the durable memory of a plan: which slots have ended and how, what
// is claimed, and what has been seen. The head is rewritten at every claim and
// stays small; closed entries move to the archive in batches.
type Ledger struct {
	PlanUID   string                `json:"planUID"`
	Watermark time.Time             `json:"watermark"`        // every slot up to here has an entry
	Writes    int64                 `json:"writes,omitempty"` // how often it was written: a backup of it has fewer
	Schedules []plan.Schedule       `json:"schedules,omitempty"`
	Tokens    []string              `json:"tokens,omitempty"`  // newest last
	Created   bool                  `json:"created,omitempty"` // triggers.onCreate has had its run, or was not asked for
	Labels    map[string]LabelState `json:"labels,omitempty"`
	Open      []Entry               `json:"open,omitempty"`
	Recent    []Entry               `json:"recent,omitempty"`
	Totals    map[run.Result]int64  `json:"totals,omitempty"`
	Outcomes  map[run.Phase]int64   `json:"outcomes,omitempty"` // of the runs that started, by how they ended
	Last      *LastRun              `json:"last,omitempty"`
	// EditedUntil is an edit that was made before the plan was first seen, as long as slots up to
	// then have no entry: they end as Missed(edited), not all in one look.
	EditedUntil *time.Time `json:"editedUntil,omitempty"`
	// Looks are when somebody looked at slots that wait: those that fell due then keep their turn,
	// whoever looks later.
	Looks []Look `json:"looks,omitempty"`
	// Paused is the pause that stood when the plan was last looked at: while
	// nobody looks it may end, and resuming starts nothing retroactively.
	Paused *schedule.Pause `json:"paused,omitempty"`
	// PausedBy is that pause in words, and who asked for it; nil: none stood, or an older agent wrote this.
	PausedBy *Cause `json:"pausedBy,omitempty"`
	// NextUsed says that a skip of the next slot has met its slot, and that its
	// annotation may still be there.
	NextUsed bool `json:"nextUsed,omitempty"`
	// TargetReady is the uid of the target that was once seen Ready.
	TargetReady string `json:"targetReady,omitempty"`
	// Rules are the watch rules that have started; Seen and the shards hold what
	// they saw.
	Rules  map[string]RuleState `json:"rules,omitempty"`
	Seen   []ObjectCheckpoint   `json:"seen,omitempty"`
	Shards int                  `json:"shards,omitempty"`
	// Earned is the second by which the runs are earned that labels and changes of watched
	// objects had.
	Earned int64 `json:"earned,omitempty"`
	// Left is what ended runs did not put back, or clean up, and nobody has acknowledged.
	Left []Leftover `json:"left,omitempty"`
	// Timetable tells apart when a HibernatePlan sleeps, and NextSlot is the off-window
	// that a skip of the next one has met.
	Timetable string     `json:"timetable,omitempty"`
	NextSlot  *time.Time `json:"nextSlot,omitempty"`
	// LastSleep is the newest sleep of a HibernatePlan; nil: it had none, or an older agent wrote this.
	LastSleep *LastSleep `json:"lastSleep,omitempty"`
	// Awake is why nothing slept in the off-window that a HibernatePlan was seen in last; nil: it slept,
	// or an older agent wrote this.
	Awake *Awake `json:"awake,omitempty"`
	// BegunAnew is when this ledger was begun in place of one that is lost: what was before is not known.
	// nil: it is the first, or an older agent wrote this.
	BegunAnew *time.Time `json:"begunAnew,omitempty"`
}

// Unwritten is what a plan says of its ledger that the API server does not take.
const Unwritten = "its ledger cannot be written"

// ErrGone is a ledger that a plan had, and that is not there any more.
var ErrGone = errors.New("the ledger of the plan is gone: somebody deleted it")

// LastRun is the newest run that ended after it had started.
type LastRun struct {
	Name      string      `json:"name"`
	Phase     run.Phase   `json:"phase"`
	StartedAt *time.Time  `json:"startedAt,omitempty"`
	EndedAt   time.Time   `json:"endedAt"`
	SuccessAt *time.Time  `json:"successAt,omitempty"` // when a run last ended Succeeded
	Request   run.Request `json:"request"`
	// Failures are those since the last success; nil: none, or an older agent wrote this.
	Failures *Failures `json:"failures,omitempty"`
}

// Failures are runs that failed without a success after them.
type Failures struct {
	Count   int64  `json:"count"`
	Run     string `json:"run"` // the newest
	Step    string `json:"step,omitempty"`
	Message string `json:"message,omitempty"`
}

// FailuresSinceSuccess are those of the plan; without a run, none. What an older agent did not
// count is counted as far as the head has it.
func (l Ledger) FailuresSinceSuccess() Failures {
	var out Failures
	for _, e := range slices.Backward(l.Recent) {
		if e.DryRun || e.Outcome == nil {
			continue
		}
		if e.Outcome.Phase == run.Succeeded {
			return out
		}
		if e.Outcome.Phase != run.Failed {
			continue
		}
		if out.Count++; out.Run == "" {
			out.Run, out.Step, out.Message = e.Run, e.Outcome.Step, e.Outcome.Message
		}
	}
	if l.Last == nil || l.Last.Failures == nil {
		return out
	}
	kept := *l.Last.Failures
	kept.Count = max(kept.Count, out.Count)
	return kept
}

// LastSaid is what is kept of the plan's last run besides its phase: in which step it failed, and why,
// or what others did while one ran that succeeded. Empty: nothing is.
func (l Ledger) LastSaid() string {
	if l.Last == nil {
		return ""
	}
	if failed := l.FailuresSinceSuccess(); failed.Run == l.Last.Name {
		said := failed.Message
		if failed.Step != "" {
			said = strings.TrimSuffix("in step "+failed.Step+": "+failed.Message, ": ")
		}
		return said
	}
	for _, e := range slices.Backward(l.Recent) {
		if e.Run == l.Last.Name && e.Outcome != nil {
			return e.Outcome.Message
		}
	}
	return ""
}

// Finish closes the claim of a run that started, and remembers it as the last. A dry
// run is no last run: nothing was done.
func (l Ledger) Finish(r run.Run, j run.Journal, now time.Time) Ledger {
	if _, open := l.OpenEntry(r.Name); !open {
		return l
	}
	before, outcome := l.FailuresSinceSuccess(), outcomeOf(r, j, now)
	l = l.closeWith(r.Name, run.Ran, "", j.StartedAt, outcome, now)
	if r.Request.DryRun {
		return l
	}
	phase := j.Phase
	if j.End != nil {
		phase = j.End.Phase
	}
	last := LastRun{Name: r.Name, Phase: phase, StartedAt: j.StartedAt, EndedAt: now.UTC(), Request: r.Request}
	if l.Last != nil {
		last.SuccessAt = l.Last.SuccessAt
	}
	switch {
	case last.Phase == run.Succeeded:
		last.SuccessAt = new(now.UTC())
		l = l.withoutCleanup(func(o Leftover) bool { return j.StartedAt == nil || o.At.Before(*j.StartedAt) })
	case last.Phase == run.Failed:
		last.Failures = &Failures{before.Count + 1, r.Name, outcome.Step, outcome.Message}
	case before.Count > 0:
		last.Failures = &before
	}
	l.Last = &last
	return l.withLeftovers(leftovers(r, j, now))
}

// LabelTaken notes that the label of a handled request is gone. A run that is
// closed twice, after a crash between its last writes, says nothing about the
// request that came after it.
func (l Ledger) LabelTaken(r run.Request) Ledger {
	key := r.Label
	state, known := l.Labels[key]
	if !known || state.Removed || state.TargetUID != r.TargetUID || state.Claimed != r.Ordinal {
		return l
	}
	labels := make(map[string]LabelState, len(l.Labels))
	for k, v := range l.Labels {
		labels[k] = v
	}
	state.Removed = true
	labels[key] = state
	l.Labels = labels
	return l
}

// TakeBack takes back a claim by a label under a number that another value of it had before an earlier
// ledger was lost: had is that request, which is done with.
func (l Ledger) TakeBack(one string, had run.Request) Ledger {
	l.Open = slices.DeleteFunc(slices.Clone(l.Open), func(e Entry) bool { return e.Run == one })
	l.Labels = maps.Clone(l.Labels)
	if l.Labels == nil {
		l.Labels = map[string]LabelState{}
	}
	state := l.Labels[had.Label]
	state.TargetUID, state.Claimed, state.Value, state.Owner, state.Removed = had.TargetUID, had.Ordinal, had.Value, had.Owner, true
	l.Labels[had.Label] = state
	return l
}

// OpenFor are the open claims for the same value of a label on the same object as a request of
// another plan.
func (l Ledger) OpenFor(r run.Request) (out []Entry) {
	for _, e := range l.Open {
		if e.Request != nil && e.Request.SameLabel(r) {
			out = append(out, e)
		}
	}
	return out
}

// NumberOf is the number that such a request has here; 0: none.
func (l Ledger) NumberOf(r run.Request) int64 {
	state := l.Labels[r.Label]
	if r.Kind != run.ByLabel || state.TargetUID != r.TargetUID || state.Value != r.Value {
		return 0
	}
	return state.Claimed
}

// OpenEntry is the claim that the named run rests on.
func (l Ledger) OpenEntry(run string) (Entry, bool) {
	i := slices.IndexFunc(l.Open, func(e Entry) bool { return e.Run == run })
	if i < 0 {
		return Entry{}, false
	}
	return l.Open[i], true
}

// IsOpen says whether a run has an open entry; none has one in a ledger that is not there.
func (l *Ledger) IsOpen(run string) bool {
	if l == nil {
		return false
	}
	_, open := l.OpenEntry(run)
	return open
}

// KnowsToken says whether a trigger token was already handled.
func (l Ledger) KnowsToken(token string) bool { return slices.Contains(l.Tokens, token) }

// WithToken remembers a token as handled.
func (l Ledger) WithToken(token string) Ledger {
	l.Tokens = append(slices.Clone(l.Tokens), token)
	l.Tokens = l.Tokens[max(len(l.Tokens)-MaxTokens, 0):]
	return l
}

// Claim opens an entry for a request; the run's name is its key.
func (l Ledger) Claim(one string, r run.Request, targetUID string) Ledger {
	if _, open := l.OpenEntry(one); open {
		return l
	}
	e := Entry{Slot: r.Slot, Local: r.Local, Kind: r.Kind, Result: run.Open, Reason: r.Why(), Run: one, Actor: r.Actor, Verified: r.Verified, DryRun: r.DryRun, At: r.At, Request: &r, TargetUID: targetUID, AsOf: r.AsOf}
	l.Open = append(slices.Clone(l.Open), e)
	return l
}

// Close ends the claim of a run that does not exist. Closing what is not open changes
// nothing, so that it can be done twice.
func (l Ledger) Close(r string, result run.Result, reason string, startedAt *time.Time, now time.Time) Ledger {
	return l.closeWith(r, result, reason, startedAt, nil, now)
}

func (l Ledger) closeWith(r string, result run.Result, reason string, startedAt *time.Time, outcome *Outcome, now time.Time) Ledger {
	e, open := l.OpenEntry(r)
	if !open {
		return l
	}
	l.Open = slices.DeleteFunc(slices.Clone(l.Open), func(e Entry) bool { return e.Run == r })
	e.Result, e.StartedAt, e.At, e.Request, e.Spec, e.TargetUID, e.Refused = result, startedAt, now, nil, nil, "", ""
	e.Outcome = outcome
	if result != run.Ran {
		e.Reason, e.StartedAt = reason, nil
	}
	return l.add(e)
}

// CloseRun gives the claim of a run its end: what its journal says, or, of one that
// never started, what kept it from that.
func (l Ledger) CloseRun(r run.Run, j run.Journal, now time.Time) Ledger {
	if j.StartedAt != nil {
		return l.Finish(r, j, now)
	}
	result, reason := NotStarted(j)
	if j.End != nil { // what kept it from starting
		l = l.noting(r.Name, func(e *Entry) { e.Said = document.Cut(j.End.Said, maxOutcomeMessage) })
	}
	return l.closeWith(r.Name, result, reason, nil, outcomeOf(r, j, now), now)
}

// noting notes something on the open claim of a run.
func (l Ledger) noting(one string, note func(*Entry)) Ledger {
	l.Open = slices.Clone(l.Open)
	for i := range l.Open {
		if l.Open[i].Run == one {
			note(&l.Open[i])
		}
	}
	return l
}

// NotStarted is what the request of a run comes to that ended before it began, and why.
func NotStarted(j run.Journal) (result run.Result, reason string) {
	if j.End != nil && j.End.Result != "" {
		return j.End.Result, j.End.Reason
	}
	return run.Skipped, run.ReasonAborted
}

// End records a slot that never had a run, and who or what kept it from that.
func (l Ledger) End(r run.Request, result run.Result, reason string, by Cause, now time.Time) Ledger {
	e := Entry{Slot: r.Slot, Local: r.Local, Kind: r.Kind, Result: result, Reason: reason, DryRun: r.DryRun, At: now}
	return l.add(e.By(by))
}

// By is the entry with what kept its slot from running.
func (e Entry) By(c Cause) Entry {
	e.Said, e.Actor, e.Verified = document.Cut(c.Said, maxOutcomeMessage), document.Cut(c.Actor.Name, maxOutcomeWords), c.Actor.Verified
	return e
}

// Cause is what kept a slot from running, in words, and who said so, where that is known.
type Cause struct {
	Said  string       `json:"said"`
	Actor intent.Actor `json:"actor"`
}

// Same says whether two causes are one, also where only one of them has the name checked.
func (c *Cause) Same(o *Cause) bool {
	if c == nil || o == nil {
		return c == o
	}
	return c.Actor.Name == o.Actor.Name && bare(c.Said) == bare(o.Said)
}

// CauseBy is what somebody did, as skip by jane: CHG-1.
func CauseBy(actor intent.Actor, what string) Cause {
	return Cause{Said: actor.Said(what), Actor: actor}
}

// But is a cause with what qualifies it, which no long reason pushes out.
func (c Cause) But(what string) Cause {
	what = ", " + what
	return Cause{Said: document.Cut(c.Said, maxOutcomeMessage-len(what)) + what, Actor: c.Actor}
}

// NotRun records a request without a slot that no run will answer, and why. It has the
// name that its run would have had, so that whoever waits for that hears of it.
func (l Ledger) NotRun(one string, r run.Request, reason, message string, now time.Time) Ledger {
	return l.Claim(one, r, "").Abandon(one, reason, message, now)
}

// Abandon ends the claim of a run that will not be made, and says why.
func (l Ledger) Abandon(one, reason, message string, now time.Time) Ledger {
	why := &Outcome{Phase: run.Aborted, Message: document.Cut(message, maxOutcomeMessage)}
	return l.closeWith(one, run.Skipped, reason, nil, why, now)
}

// add appends a closed entry and counts it. What a dry run says counts nowhere.
func (l Ledger) add(e Entry) Ledger {
	if !e.DryRun {
		l.Totals = counted(l.Totals, e.Result)
		if e.Result == run.Ran && e.Outcome != nil {
			l.Outcomes = counted(l.Outcomes, e.Outcome.Phase)
		}
	}
	l.Recent = slices.Clone(l.Recent)
	if n := len(l.Recent); n > 0 && folds(l.Recent[n-1], e) && !l.hasBetween(l.Recent[n-1].due(), *e.Slot) {
		l.Recent[n-1] = fold(l.Recent[n-1], e)
		return l
	}
	l.Recent = append(l.Recent, e)
	return l
}

// counted is a copy of the counts with one more of a key.
func counted[K comparable](counts map[K]int64, key K) map[K]int64 {
	out := make(map[K]int64, len(counts)+1)
	maps.Copy(out, counts)
	out[key]++
	return out
}

// folds says whether two neighbours say the same of two slots, the later one second. What ran
// always stands alone, and so does what somebody decided.
func folds(a, b Entry) bool {
	return alike(a, b) && a.Result != run.Ran && !a.decided() && !b.decided() && a.Slot != nil && b.Slot != nil && b.Slot.After(a.due()) && a.DryRun == b.DryRun
}

// decided says whether people had a part in how the run of an entry ended.
func (e Entry) decided() bool { return e.Outcome != nil && len(e.Outcome.Overrides) > 0 }

// hasBetween says whether a slot between two others is still open, or has ended: runs end in
// another order than their slots.
func (l Ledger) hasBetween(from, to time.Time) bool {
	between := func(e Entry) bool { return e.Slot != nil && e.Slot.After(from) && e.Slot.Before(to) }
	return slices.ContainsFunc(l.Open, between) || slices.ContainsFunc(l.Recent, between)
}

// alike says whether two entries ended in the same way, for the same cause.
func alike(a, b Entry) bool {
	return a.Result == b.Result && a.Reason == b.Reason && a.Actor == b.Actor && bare(a.Said) == bare(b.Said)
}

// bare is a cause without the mark that nobody has checked the name: that depends on who looks.
func bare(said string) string { return strings.ReplaceAll(said, intent.Unverified, "") }

func fold(a, b Entry) Entry {
	if a.Count == 0 {
		first := *a.Slot
		a.First, a.Count = &first, 1
	}
	last := *b.Slot
	a.Last, a.At = &last, b.At
	a.Count++
	if b.Run != "" {
		a.Run, a.Outcome = b.Run, b.Outcome
	}
	return a
}

// Overflow cuts the batches of oldest closed entries that should go to the
// archive, if the head has grown too large.
func (l Ledger) Overflow() (Ledger, []Entry) {
	n := l.beyondHours()
	if len(l.Recent) > MaxRecent {
		n = max(n, (len(l.Recent)-MaxRecent+ArchiveBatch-1)/ArchiveBatch*ArchiveBatch)
	}
	if n == 0 {
		return l, nil
	}
	batch := slices.Clone(l.Recent[:n])
	l.Recent = slices.Clone(l.Recent[n:])
	return l, batch
}

// AppendArchive adds a batch to archived entries, and drops the oldest beyond what an archive holds.
func AppendArchive(old, batch []Entry) []Entry {
	out := joined(old, batch)
	out = out[max(len(out)-MaxArchived, 0):]
	size := 0
	for i, e := range slices.Backward(out) {
		b, err := json.Marshal(e)
		if size += len(b) + 1; err != nil || size > maxArchiveBytes {
			return out[i+1:]
		}
	}
	return out
}

// Kept are the closed entries of a plan: the newest of those in its archive and its head.
func Kept(archive, head []Entry) []Entry {
	out := joined(archive, head)
	return out[max(len(out)-MaxLedgerEntries, 0):]
}

// joined are entries after older ones, without those that a crash between two writes left among
// the older ones, too.
func joined(old, batch []Entry) []Entry {
	out := slices.Clone(old)
	for _, e := range batch {
		if !slices.ContainsFunc(old, func(o Entry) bool { return o.At.Equal(e.At) && o.Run == e.Run && schedule.SameInstant(o.Slot, e.Slot) }) {
			out = append(out, e)
		}
	}
	return out
}

// maxRefused bounds what a ledger keeps of the API server's words.
const maxRefused = 256

// Refuse notes on an open claim why the API server refuses its run now;
// empty words take the note away.
func (l Ledger) Refuse(run, why string) Ledger {
	return l.noting(run, func(e *Entry) { e.Refused = document.Cut(why, maxRefused) })
}
