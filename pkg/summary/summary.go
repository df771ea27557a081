// Package summary counts what ledgers remember over a time: runs and how they ended, how
// late they were, slots without a run and why, windows and who overrode what. It is
// pure: entries in, a report out, which it writes as Markdown, CSV and HTML.
package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Plan is what is known of a plan: the closed entries of its ledger, oldest first.
type Plan struct {
	Namespace, Name string
	Created         time.Time // zero: long ago
	Entries         []ledger.Entry
	// Since is the instant from which on the entries are complete; nil: the ledger
	// never dropped any.
	Since *time.Time
	// BegunAnew is when the ledger was begun in place of one that is lost; nil: none was.
	BegunAnew *time.Time
	// Windows are those of its policies that touch the report's time; nil where it has
	// no policy.
	Windows []Window
	// MoreWindows says that there are more than these.
	MoreWindows bool
	// LedgerFault says, after "its ledger", what is wrong with that; empty: nothing is known to be.
	LedgerFault string
	// Hidden says that there is a ledger that cannot be read: what ran is not known.
	Hidden bool
}

func (p Plan) key() string { return p.Namespace + "/" + p.Name }

// Window is a time in which change was permitted; a nil bound is open.
type Window struct{ Start, End *time.Time }

func (w Window) holds(t time.Time) bool {
	return (w.Start == nil || !t.Before(*w.Start)) && (w.End == nil || t.Before(*w.End))
}

// Row is what is told of one plan.
type Row struct {
	Plan      string `json:"plan"` // namespace/name
	Runs      int64  `json:"runs"` // started, dry runs aside
	Succeeded int64  `json:"succeeded"`
	Failed    int64  `json:"failed"`
	Aborted   int64  `json:"aborted"`
	Replaced  int64  `json:"replaced"`
	Unknown   int64  `json:"unknown,omitempty"` // their entries are older than outcomes are kept
	// Asleep and NothingSlept are sleeps among Runs: those that go on, and those in which nothing fell asleep.
	Asleep       int64 `json:"asleep,omitempty"`
	NothingSlept int64 `json:"nothingSlept,omitempty"`
	DryRuns      int64 `json:"dryRuns,omitempty"`
	Skipped      int64 `json:"skipped"` // slots, and requests that never started
	Missed       int64 `json:"missed"`
	// Requests are those of Skipped and Missed that had no slot: somebody, or a label, asked for a run
	// that never began.
	Requests int64 `json:"requests,omitempty"`
	// Reasons say why slots had no run: Missed(deadline), Skipped(paused).
	Reasons map[string]int64 `json:"reasons,omitempty"`
	// LateMedian and LateMost are in seconds from slot to first step.
	LateMedian  int64 `json:"lateMedian"`
	LateMost    int64 `json:"lateMost"`
	Seconds     int64 `json:"seconds"` // of work, all runs together
	Nodes       int64 `json:"nodes"`   // that rollouts went through with success
	Windows     int   `json:"windows"` // of its policies as they stand now, in this time
	WindowsUsed int   `json:"windowsUsed"`
	// MoreWindows says that there are more windows than are counted.
	MoreWindows bool `json:"moreWindows,omitempty"`
	// Straddling are the slots of folded entries that begin or end outside of the time: such an entry
	// is counted whole where its last slot lies in it, else not at all.
	Straddling int64      `json:"straddling,omitempty"`
	Since      *time.Time `json:"since,omitempty"` // nothing older is remembered of it
	// BegunAnew is when its ledger was begun in place of one that is lost: what was before is not known.
	BegunAnew *time.Time `json:"begunAnew,omitempty"`
	// Unread says that its ledger cannot be read: what ran is not known, and not counted.
	Unread bool `json:"unread,omitempty"`
	// LedgerFault says, after "its ledger", what is wrong with that.
	LedgerFault string `json:"ledgerFault,omitempty"`

	late           []int64
	created        time.Time // of the plan
	missedRequests int64     // of Requests
}

// Ending is a run that did not succeed, or slots without a run.
type Ending struct {
	Plan    string    `json:"plan"`
	At      time.Time `json:"at"`
	Result  string    `json:"result"` // Failed, Aborted, Replaced, Missed, Skipped
	Reason  string    `json:"reason,omitempty"`
	Run     string    `json:"run,omitempty"`
	Step    string    `json:"step,omitempty"`
	Message string    `json:"message,omitempty"`
	Slots   int64     `json:"slots,omitempty"` // of folded entries
}

// Decision is what somebody decided about a run.
type Decision struct {
	Plan string    `json:"plan"`
	At   time.Time `json:"at"` // of the run, where the ledger does not say when it was
	Run  string    `json:"run"`
	ledger.Override
}

// Report is what was in [From, To).
type Report struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Rows    []Row     `json:"plans"`
	Endings []Ending  `json:"endings"` // what did not succeed, oldest first
	// Notes are the runs that succeeded, and of which there is something to know: what others changed
	// while they ran, and what was not put back therefore.
	Notes     []Ending   `json:"notes,omitempty"`
	Decisions []Decision `json:"overrides"`

	runs []entryOf
}

type entryOf struct {
	plan    string
	created time.Time // of the plan
	entry   ledger.Entry
}

// Of is the report of plans over a time. Folded entries count whole where the
// last of their slots lies in it.
func Of(plans []Plan, from, to time.Time) Report {
	r := Report{From: from.UTC(), To: to.UTC(), Rows: []Row{}, Endings: []Ending{}, Decisions: []Decision{}}
	for _, p := range plans {
		row := Row{Plan: p.key(), created: p.Created, Unread: p.Hidden, LedgerFault: p.LedgerFault}
		if p.Since != nil && p.Since.After(from) {
			row.Since = p.Since
		}
		if p.BegunAnew != nil && p.BegunAnew.After(from) {
			row.BegunAnew = p.BegunAnew
		}
		var starts []time.Time
		row.MoreWindows = p.MoreWindows
		sleeps := sleepsOf(p.Entries)
		for i, e := range p.Entries {
			if !e.DryRun && straddles(e, from, to) {
				row.Straddling += slotsOf(e)
			}
			if at := instantOf(e); at.Before(from) || !at.Before(to) {
				continue
			}
			r.runs = append(r.runs, entryOf{p.key(), p.Created, e})
			if ended, is := sleeps[i]; is && !e.DryRun {
				row.countSleep(e, ended)
			} else {
				row.count(e)
			}
			r.addEnding(p.key(), e)
			if e.Result == run.Ran && e.StartedAt != nil && !e.DryRun {
				starts = append(starts, *e.StartedAt)
			}
		}
		row.Windows, row.WindowsUsed = len(p.Windows), used(p.Windows, starts)
		row.LateMedian, row.LateMost = spread(row.late)
		if row.any() || row.Windows > 0 || row.LedgerFault != "" || row.BegunAnew != nil {
			r.Rows = append(r.Rows, row)
		}
	}
	slices.SortFunc(r.Rows, func(a, b Row) int { return cmp.Compare(a.Plan, b.Plan) })
	slices.SortStableFunc(r.Endings, func(a, b Ending) int { return a.At.Compare(b.At) })
	slices.SortStableFunc(r.Notes, func(a, b Ending) int { return a.At.Compare(b.At) })
	slices.SortStableFunc(r.Decisions, func(a, b Decision) int { return a.At.Compare(b.At) })
	slices.SortStableFunc(r.runs, func(a, b entryOf) int { return instantOf(a.entry).Compare(instantOf(b.entry)) })
	return r
}

func (r Row) any() bool { return r.Runs+r.DryRuns+r.Skipped+r.Missed+r.Straddling > 0 }

// straddles says whether a folded entry has slots on both sides of a begin or an end of a time.
func straddles(e ledger.Entry, from, to time.Time) bool {
	if e.Count < 2 || e.First == nil || e.Last == nil {
		return false
	}
	before, after := e.First.Before(from), !e.Last.Before(to)
	return e.First.Before(to) && !e.Last.Before(from) && (before || after)
}

// instantOf is the instant by which an entry belongs to a time.
func instantOf(e ledger.Entry) time.Time {
	switch {
	case e.Last != nil:
		return *e.Last
	case e.Slot != nil:
		return *e.Slot
	case e.StartedAt != nil:
		return *e.StartedAt
	}
	return e.At
}

func slotsOf(e ledger.Entry) int64 { return max(e.Count, 1) }

// isRequest says whether an entry is of no slot: somebody, or a label, asked for it.
func isRequest(e ledger.Entry) bool { return e.Slot == nil }

func (r *Row) count(e ledger.Entry) {
	if e.DryRun {
		r.DryRuns++
		return
	}
	switch e.Result {
	case run.Skipped:
		r.Skipped += slotsOf(e)
	case run.Missed:
		r.Missed += slotsOf(e)
	case run.Ran:
		r.countRun(e)
		return
	}
	r.countRequest(e)
	if r.Reasons == nil {
		r.Reasons = map[string]int64{}
	}
	r.Reasons[fmt.Sprintf("%s(%s)", e.Result, e.Reason)] += slotsOf(e)
}

// countRequest counts a request that never began.
func (r *Row) countRequest(e ledger.Entry) {
	if !isRequest(e) {
		return
	}
	r.Requests += slotsOf(e)
	if e.Result == run.Missed {
		r.missedRequests += slotsOf(e)
	}
}

func (r *Row) lateBy(e ledger.Entry) {
	if e.Slot != nil && e.StartedAt != nil {
		r.late = append(r.late, secondsLate(e, r.created))
	}
}

// secondsLate is how late an entry that has a slot began. Off-hours that began before their plan was
// created could not be kept from their start.
func secondsLate(e ledger.Entry, created time.Time) int64 {
	due := *e.Slot
	if created.After(due) {
		due = created
	}
	return max(int64(e.StartedAt.Sub(due).Seconds()), 0)
}

func (r *Row) countRun(e ledger.Entry) {
	r.Runs++
	r.lateBy(e)
	if e.Outcome == nil {
		r.Unknown++
		return
	}
	r.Seconds += int64(e.Outcome.Duration.Seconds())
	r.Nodes += e.Outcome.Nodes
	switch e.Outcome.Phase {
	case run.Succeeded:
		r.Succeeded++
	case run.Failed:
		r.Failed++
	case run.Replaced:
		r.Replaced++
	case run.Aborted:
		r.Aborted++
	default:
		r.Unknown++
	}
}

// notKept says of decisions that there were so many more.
const notKept = " more, which the ledger does not keep"

// addEnding notes of an entry what did not succeed, or what else is to be known, and who decided what.
func (r *Report) addEnding(plan string, e ledger.Entry) {
	if e.DryRun {
		return
	}
	out := Ending{Plan: plan, At: instantOf(e).UTC(), Result: string(e.Result), Reason: e.Reason, Run: e.Run, Message: e.Said}
	if e.Count > 1 {
		out.Slots = e.Count
	}
	if o := e.Outcome; o != nil {
		out.Step, out.Message = o.Step, o.Message
		if e.Result == run.Ran {
			out.Result, out.Reason = string(o.Phase), o.Reason
		}
		for _, d := range o.Overrides {
			decision := Decision{Plan: plan, At: out.At, Run: e.Run, Override: d}
			if d.At != nil {
				decision.At = *d.At
			}
			r.Decisions = append(r.Decisions, decision)
		}
		if o.MoreOverrides > 0 {
			more := ledger.Override{What: fmt.Sprintf("%d%s", o.MoreOverrides, notKept)}
			r.Decisions = append(r.Decisions, Decision{Plan: plan, At: out.At, Run: e.Run, Override: more})
		}
	}
	switch {
	case e.Result != run.Ran || e.Outcome != nil && e.Outcome.Phase != run.Succeeded:
		r.Endings = append(r.Endings, out)
	case out.Message != "":
		r.Notes = append(r.Notes, out)
	}
}

// used is in how many windows something started.
func used(windows []Window, starts []time.Time) (n int) {
	for _, w := range windows {
		if slices.ContainsFunc(starts, w.holds) {
			n++
		}
	}
	return n
}

// spread is the median and the most of some seconds.
func spread(seconds []int64) (median, most int64) {
	if len(seconds) == 0 {
		return 0, 0
	}
	slices.Sort(seconds)
	return seconds[(len(seconds)-1)/2], seconds[len(seconds)-1]
}

// Total is what is told of all plans together; the median is over all their runs.
func (r Report) Total() Row {
	var t Row
	for _, row := range r.Rows {
		t.Runs += row.Runs
		t.Succeeded += row.Succeeded
		t.Failed += row.Failed
		t.Aborted += row.Aborted
		t.Replaced += row.Replaced
		t.Unknown += row.Unknown
		t.Asleep += row.Asleep
		t.NothingSlept += row.NothingSlept
		t.DryRuns += row.DryRuns
		t.Skipped += row.Skipped
		t.Missed += row.Missed
		t.Requests += row.Requests
		t.missedRequests += row.missedRequests
		t.Seconds += row.Seconds
		t.Nodes += row.Nodes
		t.Windows += row.Windows
		t.WindowsUsed += row.WindowsUsed
		t.late = append(t.late, row.late...)
	}
	t.LateMedian, t.LateMost = spread(t.late)
	return t
}

// Sentence is the report in one line: for the end of a table.
func (r Report) Sentence() string {
	t := r.Total()
	parts := []string{Number(t.Runs, "run")}
	for _, p := range []struct {
		n    int64
		word string
	}{{t.Succeeded, "Succeeded"}, {t.Failed, "Failed"}, {t.Aborted, "Aborted"}, {t.Replaced, "Replaced"}, {t.Asleep, "asleep now"}, {t.NothingSlept, "in which nothing slept"}, {t.Unknown, "of unknown outcome"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	said := strings.Join(parts, ", ") + fmt.Sprintf("; %s skipped, %d missed", Number(t.Skipped-(t.Requests-t.missedRequests), "slot"), t.Missed-t.missedRequests)
	if t.Requests > 0 {
		said += "; " + Number(t.Requests, "request") + " never began"
	}
	if n := r.unread(); n > 0 {
		said += "; of " + Number(n, "plan") + " it is not known, since the ledger cannot be read"
	}
	return said
}

// unread is of how many plans the ledger cannot be read.
func (r Report) unread() (n int64) {
	for _, row := range r.Rows {
		if row.Unread {
			n++
		}
	}
	return n
}

// Number is a count and its noun.
func Number(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
