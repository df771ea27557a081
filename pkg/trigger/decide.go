package trigger

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
)

// Facts are everything that Decide may look at: the documents, the objects
// seen, the ledger and the instant. Whoever previews fills in the same struct.
type Facts struct {
	Now          time.Time
	LeadingSince time.Time // since when the one who decides has been looking

	Plan  Plan
	State State
	// Pauses are the switches above the plan: its namespace's, the cluster's.
	Pauses []schedule.Pause
	Ready  Readiness
	// Quota bounds how many runs may be claimed; nil: nothing does.
	Quota *RunQuota
	// Gate says when change is permitted; nil: always.
	Gate       *schedule.Gate
	ClockDoubt string // why the clock is not to be trusted; empty: it is
	// Doubted is when the clock was in doubt the last time.
	Doubted Doubt
	Target  *Target
	Live    []ActiveRun
	// Watched are the changes that ask for a run by a watch rule, in order.
	Watched []watchrule.Observed
	// Unwatched says why a watch rule sees nothing; the other triggers go on.
	Unwatched string
	// NameOf names the run that answers a request.
	NameOf func(run.Request) string
}

// Plan is the plan that is decided on, as its object says.
type Plan struct {
	Namespace, Name, UID string
	CreatedAt, EditedAt  time.Time
	Spec                 plan.Spec
	Templates            map[string]plan.TemplateSpec // that its steps stand for
	Faults               document.Faults
	Intent               intent.Intent
}

// State is what the agent has kept of a plan.
type State struct {
	// ResumeSeen is when the intent to resume a run was first seen.
	ResumeSeen time.Time
	Ledger     *ledger.Ledger // nil: the plan is seen for the first time
	LedgerLost bool           // it was seen before, and its ledger is gone
	Copied     bool           // it was seen elsewhere: its status came with it, and here it had no ledger
	Handled    string         // the last token that its status calls handled
	// Earlier is the run that AsOf names; nil: there is none, or nobody has looked.
	Earlier *Earlier
}

// Readiness says whether a run could start, apart from its time.
type Readiness struct {
	OK      bool
	Reason  string // the ledger's reason for a slot missed by it: not-ready or target
	Message string
	Again   time.Time // when to look again, where nothing will say so
	// ByPolicy says that nothing but a policy is not ready: a trigger outside of
	// the window passes it.
	ByPolicy bool
}

// RunQuota is how many runs may be claimed beside the active ones of the namespace.
type RunQuota struct {
	Runs int
	Full string // why no more
}

// Target is what is seen of the plan's target.
type Target struct {
	UID     string
	Version uint64 // its resourceVersion, as a number; 0: unknown
	Labels  map[string]TargetLabel
	Handled map[string]int64 // number of the last handled request, by label key
}

// TargetLabel is one trigger label as it stands on the target.
type TargetLabel struct {
	Value string
	Owner string // the manager that applies it declaratively, if one does
}

// ActiveRun is a run that has not ended.
type ActiveRun struct {
	Name      string
	Phase     run.Phase
	Waiting   string
	Message   string // why it waits
	Over      bool   // its wait ended without a start: it is only to be closed
	Held      bool   // it began, and waits between two steps for its window
	Stays     string // it ends, and why its trigger label stays
	Waits     bool   // it began, and a step waits for what somebody has to give
	Suspended bool   // it began, and a suspend, an approval, a pause or its window holds it
	Step      string // of a plan with a target: the step at work, as people are told: backup 2/5
	Request   run.Request
	StartedAt *time.Time
	TargetUID string
	Label     string
	Ordinal   int64
}

// SaysOther says whether a plan's status says something else of a run than before. Its step stands on the
// target, if there is one.
func (l ActiveRun) SaysOther(was ActiveRun, target bool) bool {
	if target && (was.Step != l.Step || was.Suspended != l.Suspended) {
		return true
	}
	if !was.Waits && !l.Waits && !was.Held && !l.Held {
		return was.Stays != l.Stays
	}
	return was.Waits != l.Waits || was.Held != l.Held || was.Message != l.Message || was.Stays != l.Stays
}

// ActiveRunOf is a run as Decide looks at it.
func ActiveRunOf(r run.Run, j run.Journal) ActiveRun {
	step := ""
	if j.Waiting == run.WaitClock && unapproved(r, j.Approved != nil) {
		j.Waiting = run.WaitApproval
	}
	if r.Spec.Target != nil { // it is told there
		step = run.ProgressOf(j).AtWork()
	}
	return ActiveRun{
		Name: r.Name, Phase: j.Phase, Waiting: j.Waiting, Over: j.StartedAt == nil && j.Section == plan.SectionClosing, Message: j.Notice(), Waits: j.Notice() != j.Message, Stays: j.Waits, Held: j.HeldSince != nil, Suspended: j.Suspended(), Step: step, Request: r.Request, StartedAt: j.StartedAt,
		TargetUID: r.TargetUID, Label: r.Request.Label, Ordinal: r.Request.Ordinal,
	}
}

// named is the run in a sentence.
func (l ActiveRun) named() string {
	if l.Request.DryRun {
		return "dry run " + l.Name
	}
	return "run " + l.Name
}

// since is from when on the run occupies its plan: its claim, or, for a slot's
// run, which may have waited for its jitter, its start.
func (l ActiveRun) since() time.Time {
	if l.StartedAt != nil && l.Request.Slot != nil {
		return *l.StartedAt
	}
	return l.Request.At
}

// busy says whether the run occupies its plan. One that only waits for a
// window, or for its jitter, does not, nor does one that will never start.
func (l ActiveRun) busy() bool {
	return !l.Over && (l.Phase != run.Pending || l.Waiting != run.WaitWindow && l.Waiting != run.WaitJitter)
}

// mayYield says whether a run may have to make room for a request: a dry run has no effect on
// one that changes something.
func mayYield(r, to run.Request) bool { return r.DryRun || !to.DryRun }

// Passes says whether a request need not wait for a run: what changes something does not wait for a
// dry run.
func Passes(r, other run.Request) bool { return other.DryRun && !r.DryRun }

// Phase is a plan's phase.
type Phase string

// The phases of a plan.
const (
	PhaseIdle    Phase = "Idle"
	PhaseWaiting Phase = "Waiting"
	PhaseRunning Phase = "Running"
	PhasePaused  Phase = "Paused"
	PhaseInvalid Phase = "Invalid"
)

// Decision is what follows from Facts. The ledger is written first, then the
// runs are created, then everything else.
type Decision struct {
	Ledger    ledger.Ledger
	Changed   bool          // the ledger has to be written
	Claims    []run.Request // newly claimed, in order
	Replace   []string      // live runs that must give way
	Supersede []string      // pending runs whose slot is superseded by a newer one
	Skip      *intent.Skip  // what is left of the skip, when some of it was used up
	Status    Status
	Returned  []string  // label keys that came back from the hands that applied them
	Wake      time.Time // the next instant at which the answer may differ; zero: only on change
}

// Status is what is shown of a plan.
type Status struct {
	Phase       Phase
	Message     string
	Paused      string // the pause that lasts longest, as people are told; empty: none holds
	Next        *schedule.Slot
	NextGate    *run.ClosedGate   // closed when the next slot is to start; nil: it is open, or there is none
	Window      *schedule.Verdict // what the gate says; nil without one
	Waiting     string            // what was asked for and cannot be claimed yet, and why
	WaitsToAct  bool              // some of what waits is no dry run
	WaitsFor    string            // the run that this waits for; empty: none
	WaitsForDry bool              // it is a dry run
	Due         *DueSlot          // a slot that is due and waits until a run can be made for it; nil: none
	Refused     string            // what was claimed and has no run yet, since the API server does not take it, and why
	NotRun      string            // why a trigger was given up just now, which no run will answer
	Ready       Readiness         // with what the gate and the lack of room add
	OverQuota   bool              // something that asked would have been claimed, but for the room
}

// DueSlot is a slot whose time has come and that waits. From an instant on it is Missed.
type DueSlot struct {
	schedule.Slot
	Why    string // empty: for its turn
	Missed time.Time
}

// Decide says which requests become runs, which slots end without one, and when
// to look again.
func Decide(f Facts) Decision {
	d := decider{f: f, out: Decision{Status: Status{Phase: PhaseIdle, Ready: f.Ready}}}
	if f.State.Ledger != nil {
		d.out.Ledger = *f.State.Ledger
	}
	d.pause()
	if len(f.Plan.Faults) > 0 {
		d.out.Status.Phase, d.out.Status.Message = PhaseInvalid, f.Plan.Faults[0].String()
		return d.out
	}
	if f.ClockDoubt != "" {
		d.out.Status.Phase, d.out.Status.Message, d.out.Wake = PhaseWaiting, f.ClockDoubt, f.Now.Add(30*time.Second)
		if f.State.Ledger == nil && !f.State.LedgerLost { // by the API server's clock alone; later it would seem to be lost
			d.begin()
		}
		return d.out
	}
	set, err := plan.ParseSchedules(f.Plan.Spec.Triggers.Schedules)
	if err != nil { // a valid spec parses; this is the validator's fault, and doubt stops
		d.out.Status.Phase, d.out.Status.Message = PhaseInvalid, err.Error()
		return d.out
	}
	d.set = set
	d.f.Live = d.behindTheirGate()
	d.gate()
	d.begin()
	d.edited()
	d.usedNext()
	d.giveUpRefused()
	d.acknowledged()
	switch {
	case d.f.Ready.OK:
		d.creation()
		d.labels()
		d.watched()
		d.token()
		d.retry()
	case d.f.Ready.ByPolicy && d.f.Plan.Intent.Asked.OutsideWindow && d.f.Plan.Intent.Asked.Token == d.f.Plan.Intent.Token:
		d.token()
	}
	d.slots()
	d.finish()
	return d.out
}

type decider struct {
	f       Facts
	set     schedule.Set
	out     Decision
	waiting string // why something that asked does not start
	acts    bool   // something that waits is no dry run
	behind  bool   // a due slot still waits for its end
}

// gate asks whether the policies can be relied on. Whether they permit a start is
// asked when a run wants to start: until then it waits as a pending one.
func (d *decider) gate() {
	if d.f.Gate == nil {
		return
	}
	v := d.f.Gate.Verdict(d.f.Now)
	d.out.Status.Window = &v
	for _, t := range []*time.Time{policy.AskAgain(v, d.f.Now), d.f.Plan.Intent.Stanza.Until, d.f.Plan.Intent.Bypass.Until} { // its reason changes, too
		if t != nil {
			d.wakeAt(*t)
		}
	}
	if !v.Ready && d.f.Ready.OK {
		d.f.Ready = Readiness{Reason: run.ReasonNotReady, Message: v.Reason, ByPolicy: true}
		d.out.Status.Ready = d.f.Ready
	}
}

// behindTheirGate are the live runs, where what a pause or a doubt of the clock held back waits for
// its jitter or its window: nobody may have looked at it since that is over.
func (d *decider) behindTheirGate() []ActiveRun {
	out := slices.Clone(d.f.Live)
	for i, l := range out {
		switch {
		case l.Phase != run.Pending || l.Waiting != run.WaitPause && l.Waiting != run.WaitClock:
		case l.Request.Slot != nil && d.f.Now.Before(StartsAt(d.f.Plan.Spec, d.f.Plan.Namespace, d.f.Plan.Name, *l.Request.Slot, l.Request.Schedule)):
			out[i].Waiting = run.WaitJitter
		case !l.Request.OutsideWindow && run.ClosedFor(d.f.Gate, l.Name, d.f.Plan.Intent.Bypass, d.f.Now) != nil:
			out[i].Waiting = run.WaitWindow
		}
	}
	return out
}

func (d *decider) write(l ledger.Ledger) { d.out.Ledger, d.out.Changed = l, true }

func (d *decider) wakeAt(t time.Time) {
	if t.After(d.f.Now) {
		d.out.Wake = schedule.Earliest(d.out.Wake, t)
	}
}

// begin opens the ledger of a plan that is seen for the first time. A token
// that is already there is recorded, not run: a rebuilt cluster would fire them
// all. Where an earlier ledger is lost nothing before now is made up: doubt
// stops maintenance. Of tokens, the status knows the last that was handled.
func (d *decider) begin() {
	if d.f.State.Ledger != nil {
		d.notBeforeCreation()
		return
	}
	l := ledger.Ledger{PlanUID: d.f.Plan.UID, Watermark: d.created().UTC(), Schedules: d.f.Plan.Spec.Triggers.Schedules, Created: !d.f.Plan.Spec.Triggers.OnCreate}
	if d.f.State.LedgerLost {
		l.Watermark, l.Created = d.f.Now.UTC(), true
		if !d.f.State.Copied {
			l.BegunAnew = new(d.f.Now.UTC())
		}
	}
	switch token := d.f.Plan.Intent.Token; {
	case d.f.State.LedgerLost && d.f.State.Handled != "": // another one came after the plan was seen: it is new
		l = l.WithToken(d.f.State.Handled)
	case !d.f.State.LedgerLost && token != "":
		l = l.WithToken(token)
	}
	for _, live := range d.f.Live { // they were claimed in the ledger that is lost
		l = l.Claim(live.Name, live.Request, live.TargetUID)
	}
	l.Labels = d.labelsBefore()
	if edit := d.lastEdit().UTC(); edit.After(l.Watermark) {
		l.EditedUntil = &edit
	}
	d.write(l)
}

// labelsBefore is what is known of requests by labels where an earlier ledger is lost: those of live
// runs, and of the other keys that they have yet to be looked at.
func (d *decider) labelsBefore() map[string]ledger.LabelState {
	var out map[string]ledger.LabelState
	note := func(key string, s ledger.LabelState) {
		if out == nil {
			out = map[string]ledger.LabelState{}
		}
		out[key] = s
	}
	if d.f.State.LedgerLost {
		for _, key := range d.f.Plan.Spec.Triggers.Labels {
			note(key, ledger.LabelState{Lost: true})
		}
	}
	for _, live := range d.f.Live {
		if r := live.Request; r.Kind == run.ByLabel && r.Ordinal > out[r.Label].Claimed {
			note(r.Label, ledger.LabelState{TargetUID: r.TargetUID, Claimed: r.Ordinal, Value: r.Value, Owner: r.Owner})
		}
	}
	return out
}

// notBeforeCreation keeps a ledger that somebody wrote from making up for slots that
// the plan cannot have had.
func (d *decider) notBeforeCreation() {
	l := d.out.Ledger
	switch {
	case l.Watermark.Before(d.f.Plan.CreatedAt):
		l.Watermark = d.f.Plan.CreatedAt.UTC()
	case l.Watermark.IsZero():
		l.Watermark = d.created().UTC()
	default:
		return
	}
	d.write(l)
}

// created is when the plan came to be. Of one that does not say, as of a manifest that was never
// written to a cluster, it is now: its slots would be counted from the year 1 on otherwise.
func (d *decider) created() time.Time {
	if d.f.Plan.CreatedAt.IsZero() {
		return d.f.Now
	}
	return d.f.Plan.CreatedAt
}

// edited ends the slots from before the last edit of the schedules, and lets the new ones begin
// there: an edit starts nothing retroactively. Of a plan that was edited before it was first seen
// nobody knows the old schedules; the present ones stand for them.
func (d *decider) edited() {
	l, until := d.out.Ledger, d.lastEdit()
	switch same := sameSchedules(l.Schedules, d.f.Plan.Spec.Triggers.Schedules); {
	case same && l.EditedUntil == nil:
		return
	case same: // what was edited since is something else
		until = d.past(*l.EditedUntil)
	}
	old, err := plan.ParseSchedules(l.Schedules)
	if err != nil {
		old = nil // of a version that read more; its slots cannot be told
	}
	if d.behind = !d.endEdited(old, until); d.behind {
		d.wakeAt(d.f.Now.Add(time.Second)) // until then the ledger speaks of the old schedules
		return
	}
	l = d.out.Ledger
	l.Schedules, l.EditedUntil = d.f.Plan.Spec.Triggers.Schedules, nil
	d.write(l)
}

// endEdited ends the slots of a schedule up to an edit, so many of them in one look, and says
// whether those were all.
func (d *decider) endEdited(old schedule.Set, until time.Time) bool {
	l := d.out.Ledger
	if !until.After(l.Watermark) {
		return true
	}
	ended := 0
	for slot := range slotsBetween(old, l.Watermark, until) {
		if ended++; ended > maxSlots {
			d.write(l)
			return false
		}
		l = l.End(d.request(slot), run.Missed, run.ReasonEdited, ledger.Cause{}, d.f.Now)
		l.Watermark = slot.At.UTC()
	}
	l.Watermark = until.UTC()
	d.write(l)
	return true
}

func (d *decider) lastEdit() time.Time { return d.past(d.f.Plan.EditedAt) }

// past is an instant that is no time to come, whatever clock it was written by.
func (d *decider) past(t time.Time) time.Time {
	if t.After(d.f.Now) {
		return d.f.Now
	}
	return t
}

// usedNext takes a skip of the next slot for used when it was: a crash between
// the ledger and the annotation must not make it skip two.
func (d *decider) usedNext() {
	l := d.out.Ledger
	if !l.NextUsed {
		return
	}
	if !d.f.Plan.Intent.Skip.Next {
		l.NextUsed = false
		d.write(l)
		return
	}
	d.f.Plan.Intent.Skip.Next = false
	d.out.Skip = &d.f.Plan.Intent.Skip
}

// acknowledged forgets what an ended run, or a step of it, left, where somebody resumes that run since:
// they know of it. Who resumed it before meant its suspend.
func (d *decider) acknowledged() {
	if of := d.f.Plan.Intent.Resume; d.out.Ledger.LeftBy(of.Run, of.Step, d.f.State.ResumeSeen) {
		d.write(d.out.Ledger.Acknowledge(of.Run, of.Step))
	}
}

func sameSchedules(a, b []plan.Schedule) bool {
	return slices.EqualFunc(a, b, func(x, y plan.Schedule) bool {
		return x.Cron == y.Cron && x.RRule == y.RRule && x.At == y.At && x.Timezone == y.Timezone && x.DTStart == y.DTStart && slices.Equal(x.ExDate, y.ExDate)
	})
}

// slotsBetween are the slots in (from, to], one after another: after a long outage there
// may be hundreds of thousands, of which none is held.
func slotsBetween(set schedule.Set, from, to time.Time) iter.Seq[schedule.Slot] {
	return func(yield func(schedule.Slot) bool) {
		for at := from; ; {
			slot, ok := set.Next(at)
			if !ok || slot.At.After(to) || !yield(slot) {
				return
			}
			at = slot.At
		}
	}
}

func (d *decider) request(s schedule.Slot) run.Request {
	slot := s.At.UTC()
	return run.Request{Kind: run.BySchedule, Slot: &slot, Local: s.Identity(), Schedule: s.Index, At: d.f.Now.UTC(), DryRun: d.f.Plan.Spec.DryRun}
}

// pausedAt says whether any switch holds at an instant.
func (d *decider) pausedAt(t time.Time) bool {
	return slices.ContainsFunc(d.switches(), func(s schedule.Pause) bool { return s.Holds(t) })
}

// causeOf is who kept a slot from running, of those reasons that somebody gave.
func (d *decider) causeOf(slot time.Time, reason string) ledger.Cause {
	switch reason {
	case run.ReasonSkip: // whoever wrote it when: it is what has the slot skipped
		return ledger.CauseBy(d.f.Plan.Intent.Actors["skip"], "skip")
	case run.ReasonPaused:
		return d.pausedBy(slot)
	}
	return ledger.Cause{}
}

// pausedBy is who paused a slot. Of one from before anybody looked, nobody knows whether a pause that
// was found later stood at its time already.
func (d *decider) pausedBy(slot time.Time) ledger.Cause {
	l := d.out.Ledger
	unseen := slot.Before(d.f.LeadingSince)
	var holds []ledger.Cause
	for i, s := range d.switches() {
		if !s.Holds(slot) {
			continue
		}
		by := d.pauseBy(i, s)
		if unseen && by.Same(l.PausedBy) {
			return by
		}
		holds = append(holds, by)
	}
	switch known := l.PausedBy != nil || l.Paused == nil || !l.Paused.Holds(slot); {
	case len(holds) > 0 && unseen && known: // a ledger of an older agent does not say who paused
		return holds[0].But("as it was found later")
	case len(holds) > 0:
		return holds[0]
	case l.PausedBy == nil:
		return ledger.Cause{Said: "paused, and resumed since"}
	}
	return l.PausedBy.But("and resumed since")
}

// pauseBy is who paused, of the switch that is the so many-th.
func (d *decider) pauseBy(i int, s schedule.Pause) ledger.Cause {
	by := ledger.Cause{Said: cut(s.Said())}
	if i == 0 { // of the plan itself
		by.Actor = d.f.Plan.Intent.Actors["pause"]
	}
	return by
}

// pausedSlot says besides whether a pause that has been taken away since the
// plan was last looked at may have held.
func (d *decider) pausedSlot(t time.Time) bool {
	if d.pausedAt(t) {
		return true
	}
	was := d.out.Ledger.Paused
	gone := !slices.ContainsFunc(d.switches(), func(s schedule.Pause) bool { return s.On })
	return was != nil && gone && was.Holds(t) && !t.After(d.f.Now)
}

// rememberPause notes the pause that stands, once no slot from before waits.
func (d *decider) rememberPause() {
	var stands *schedule.Pause
	var by *ledger.Cause
	all := d.switches()
	if longest := schedule.LongestPause(all...); longest.Holds(d.f.Now) {
		stands = &schedule.Pause{On: true, Until: longest.Until}
		by = new(d.pauseBy(slices.Index(all, longest), longest))
	}
	l := d.out.Ledger
	same := stands == nil && l.Paused == nil || stands != nil && l.Paused != nil && schedule.SameInstant(stands.Until, l.Paused.Until)
	if d.behind || same && by.Same(l.PausedBy) {
		return
	}
	l.Paused, l.PausedBy = stands, by
	d.write(l)
}

func (d *decider) switches() []schedule.Pause {
	return append([]schedule.Pause{d.f.Plan.Intent.Pause}, d.f.Pauses...)
}

// wait notes why something that asked does not start, and whether it asked for a dry run.
func (d *decider) wait(dry bool, format string, args ...any) {
	d.waiting, d.acts = fmt.Sprintf(format, args...), d.acts || !dry
}

// mayClaim says whether a request other than a slot may become a run now; when
// not, it waits.
func (d *decider) mayClaim(what string, dry bool) bool {
	if d.pausedAt(d.f.Now) {
		d.wait(dry, "%s waits: paused", what)
		return false
	}
	if len(d.out.Ledger.Open) >= ledger.MaxOpen {
		d.wait(dry, "%s waits: %d runs are claimed", what, ledger.MaxOpen)
		return false
	}
	if d.f.Plan.Spec.ConcurrencyPolicy == plan.Allow || d.f.Plan.Spec.ConcurrencyPolicy == plan.Replace {
		return d.isWithinQuota(what, dry)
	}
	if by, busy := d.busyWith(time.Time{}, func(bool) bool { return false }); busy {
		d.waitFor(what, by, dry)
		return false
	}
	return d.isWithinQuota(what, dry)
}

func (d *decider) waitFor(what string, by ActiveRun, dry bool) {
	d.wait(dry, "%s waits for %s", what, by.named())
	d.out.Status.WaitsFor, d.out.Status.WaitsForDry = by.Name, by.Request.DryRun
}

// busyWith is a live or claimed run that occupies the plan, and that began to after an instant. Of
// one that is claimed no more is known than its name, and whether it is a dry run. passed are runs
// that are in nobody's way.
func (d *decider) busyWith(after time.Time, passed func(dry bool) bool) (ActiveRun, bool) {
	for _, l := range d.f.Live {
		if l.busy() && l.since().After(after) && !passed(l.Request.DryRun) {
			return l, true
		}
	}
	for _, e := range d.out.Ledger.Open {
		if e.Refused == "" && e.At.After(after) && !passed(e.DryRun) && !slices.ContainsFunc(d.f.Live, func(l ActiveRun) bool { return l.Name == e.Run }) {
			return ActiveRun{Name: e.Run, Request: run.Request{DryRun: e.DryRun}}, true
		}
	}
	return ActiveRun{}, false
}

// claim writes a request's open entry. Under Replace, whoever is live gives way:
// what runs, and to a slot the earlier slots that wait. Other requests wait their turn.
func (d *decider) claim(r run.Request) {
	if d.f.Plan.Spec.ConcurrencyPolicy == plan.Replace {
		for _, l := range d.f.Live {
			switch {
			case !mayYield(l.Request, r):
			case l.Phase == run.Running:
				d.out.Replace = including(d.out.Replace, l.Name)
			case r.Slot != nil && l.Request.Slot != nil:
				d.out.Supersede = including(d.out.Supersede, l.Name)
			}
		}
	}
	uid := ""
	if d.f.Target != nil {
		uid = d.f.Target.UID
	}
	d.write(d.out.Ledger.Claim(d.f.NameOf(r), r, uid))
	d.out.Claims = append(d.out.Claims, r)
}

func including(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// creation claims the run of a plan that was just made, once. Where it is no
// longer asked for before it came to it, it never comes.
func (d *decider) creation() {
	if l := d.out.Ledger; !l.Created && !d.f.Plan.Spec.Triggers.OnCreate {
		l.Created = true
		d.write(l)
	}
	if d.out.Ledger.Created || d.f.Plan.Intent.Skip.HoldsLabels(d.f.Now) || !d.mayClaim("the run at creation", d.f.Plan.Spec.DryRun) {
		return
	}
	l := d.out.Ledger
	l.Created = true
	d.write(l)
	d.claim(run.Request{Kind: run.ByCreation, At: d.f.Now.UTC(), DryRun: d.f.Plan.Spec.DryRun})
}

// labels claims each label on the target that is a request not yet claimed.
func (d *decider) labels() {
	if d.f.Target == nil {
		return
	}
	for _, key := range d.f.Plan.Spec.Triggers.Labels {
		d.label(key)
	}
}

func (d *decider) label(key string) {
	have, present := d.f.Target.Labels[key]
	state, known := knownLabel(d.out.Ledger, key, d.f.Target)
	if d.out.Ledger.Labels[key].Lost {
		d.setLabel(key, state)
	}
	if known && d.f.Target.Version != 0 && d.f.Target.Version < state.Version {
		return // the watch lags behind what an earlier agent has seen: it will catch up
	}
	if !present {
		d.labelGone(key, state, known)
		return
	}
	number, asked := nextRequest(state, known, have.Value, d.f.Target.Handled[key])
	if !asked || d.openLabel(key) {
		return
	}
	if known && cameBack(state, have) {
		d.out.Returned = append(d.out.Returned, key)
		return
	}
	if d.f.Plan.Intent.Skip.HoldsLabels(d.f.Now) {
		d.wait(d.f.Plan.Spec.DryRun, "label %s waits: skipped", key)
		return
	}
	if !d.mayClaim("label "+key, d.f.Plan.Spec.DryRun) {
		return
	}
	earned, may := d.pacedLabel(key, state)
	if !may {
		return
	}
	r := run.Request{Kind: run.ByLabel, Label: key, Value: have.Value, Owner: have.Owner, TargetUID: d.f.Target.UID, Ordinal: number, At: d.f.Now.UTC(), DryRun: d.f.Plan.Spec.DryRun}
	d.setLabel(key, ledger.LabelState{TargetUID: r.TargetUID, Claimed: number, Value: have.Value, Owner: have.Owner, Version: d.f.Target.Version, Earned: earned})
	d.claim(r)
}

// knownLabel is what a ledger knows of a label of a target. Where an earlier ledger is lost, a label
// whose requests were handled before, and that a manager applies, has come back, for all that is known.
func knownLabel(l ledger.Ledger, key string, t *Target) (state ledger.LabelState, known bool) {
	state, known = l.Labels[key]
	switch have, n := t.Labels[key], t.Handled[key]; {
	case state.Lost && have.Owner != "" && n > 0:
		state = ledger.LabelState{TargetUID: t.UID, Claimed: n, Value: have.Value, Owner: have.Owner, Removed: true, Version: t.Version}
	case state.Lost:
		state = ledger.LabelState{TargetUID: t.UID, Version: t.Version}
	case known && state.TargetUID != t.UID: // another object under the same name begins anew
		return ledger.LabelState{TargetUID: t.UID, Earned: state.Earned}, false
	}
	return state, known
}

// cameBack says whether a label is the one that was handled, applied again by the same manager.
func cameBack(was ledger.LabelState, have TargetLabel) bool {
	return was.Owner != "" && was.Owner == have.Owner && was.Value == have.Value
}

// AsksByLabel says whether a label of a target asks a plan with a ledger for a run that it has still
// to claim.
func AsksByLabel(l ledger.Ledger, key string, t *Target) bool {
	have, present := t.Labels[key]
	state, known := knownLabel(l, key, t)
	_, asked := nextRequest(state, known, have.Value, t.Handled[key])
	return present && asked && (!known || !cameBack(state, have))
}

// pacedLabel says whether the label may have a run now, by the bounds of changes that are
// watched: what sets it and what takes it away may answer each other for ever.
func (d *decider) pacedLabel(key string, state ledger.LabelState) (earned int64, may bool) {
	what := "label " + key
	earned, again, may := state.Pace(d.f.Now)
	if !may {
		d.wait(d.f.Plan.Spec.DryRun, "%s waits until %s: it comes again and again, and has had %d runs one after another; from here on it has one in %s", what, again.UTC().Format(time.RFC3339), ledger.WatchBurst, ledger.WatchPeriod)
		d.wakeAt(again)
		return 0, false
	}
	return earned, d.pacedPlan(what)
}

// MaxOrdinal is above every number of a request: one a nanosecond would reach it in
// three months. A larger one was written by somebody else.
const MaxOrdinal = 1 << 53

// nextRequest is the number of the request that a present label makes. A claim
// whose label has not been taken away yet (another plan's run still needs it)
// makes none, unless its value has changed.
func nextRequest(state ledger.LabelState, known bool, value string, handled int64) (int64, bool) {
	if known && state.Claimed > handled && !state.Removed && state.Value == value {
		return 0, false
	}
	return max(handled, state.Claimed) + 1, true
}

// labelGone notes that a claimed label is no longer there, so that its return
// is a new request even where nobody numbered the removal.
func (d *decider) labelGone(key string, state ledger.LabelState, known bool) {
	if known && !state.Removed && !d.openLabel(key) {
		state.Removed, state.Version = true, d.f.Target.Version
		d.setLabel(key, state)
	}
}

func (d *decider) openLabel(key string) bool {
	return slices.ContainsFunc(d.out.Ledger.Open, func(e ledger.Entry) bool { return e.Request != nil && e.Request.Label == key })
}

func (d *decider) setLabel(key string, s ledger.LabelState) {
	l := d.out.Ledger
	labels := make(map[string]ledger.LabelState, len(l.Labels)+1)
	for k, v := range l.Labels {
		labels[k] = v
	}
	labels[key] = s
	l.Labels = labels
	d.write(l)
}

// token claims a manual trigger whose token is new. It overrides skip, not pause.
func (d *decider) token() {
	token := d.f.Plan.Intent.Token
	if token == "" || d.out.Ledger.KnowsToken(token) || !d.mayClaim("the trigger", d.asksDry()) {
		return
	}
	if d.f.Plan.Intent.Unclear {
		d.wait(d.asksDry(), "the trigger waits: maint.dev/trigger-options is not understood")
		return
	}
	r := run.Request{Kind: run.ByToken, Token: token, At: d.f.Now.UTC(), DryRun: d.asksDry(), Actor: d.f.Plan.Intent.Actors["trigger"].Name, Verified: d.f.Plan.Intent.Actors["trigger"].Verified}
	if o := d.f.Plan.Intent.Asked; o.Token == token {
		r.Reason, r.Parameters, r.OutsideWindow, r.AsOf = o.Reason, o.Parameters, o.OutsideWindow, o.AsOf
	}
	if r.AsOf != "" && !d.goBack(&r) {
		return
	}
	d.write(d.out.Ledger.WithToken(token))
	d.claim(r)
}

// asksDry says whether the manual trigger asks for a dry run.
func (d *decider) asksDry() bool {
	asked := d.f.Plan.Intent.Asked
	return d.f.Plan.Spec.DryRun || asked.DryRun && asked.Token == d.f.Plan.Intent.Token
}

// retry claims a new run of what the newest run failed at, when none lives. The
// steps run anew from the first: what the failed run had done it has undone.
func (d *decider) retry() {
	name, last := d.f.Plan.Intent.Retry.Run, d.out.Ledger.Last
	if name == "" || d.f.Plan.Intent.Retry.Step != "" || last == nil || last.Name != name || last.Phase != run.Failed && last.Phase != run.Aborted {
		return
	}
	token := retryToken(name)
	if d.out.Ledger.KnowsToken(token) || !d.mayClaim("the retry of "+name, last.Request.DryRun) {
		return
	}
	if len(d.f.Live)+d.occupying() > 0 { // also where runs may overlap: a retry is of the newest
		d.wait(last.Request.DryRun, "the retry of %s waits until no run is active", name)
		return
	}
	r := run.Request{
		Kind: run.ByToken, Token: token, At: d.f.Now.UTC(), Reason: "retry of " + name, DryRun: last.Request.DryRun,
		Parameters: last.Request.Parameters, Actor: d.f.Plan.Intent.Actors["retry"].Name, Verified: d.f.Plan.Intent.Actors["retry"].Verified, AsOf: last.Request.AsOf,
	}
	if r.AsOf != "" && !d.goBack(&r) { // what failed was a rollback: so is its retry
		return
	}
	d.write(d.out.Ledger.WithToken(token))
	d.claim(r)
}

// retryToken stands in a ledger for the retry of a run.
func retryToken(name string) string { return retryPrefix + name }

const retryPrefix = "retry/"

// HandledToken is the last token of a plan's trigger that a ledger knows; empty: none. Of its
// tokens those that stand for retries are none that anybody wrote, unless now is one of them.
func HandledToken(l ledger.Ledger, now string) string {
	for _, token := range slices.Backward(l.Tokens) {
		if token == now || !strings.HasPrefix(token, retryPrefix) {
			return token
		}
	}
	return ""
}

// RetryHandled says whether a retry intent needs no more looking at: it was
// claimed, or there is nothing that it could mean: no step is tried again by itself.
func RetryHandled(l ledger.Ledger, ask intent.RunRef) bool {
	return ask.Run != "" && (ask.Step != "" || l.KnowsToken(retryToken(ask.Run)) || l.Last == nil || l.Last.Name != ask.Run ||
		l.Last.Phase != run.Failed && l.Last.Phase != run.Aborted)
}
