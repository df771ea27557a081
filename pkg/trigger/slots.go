package trigger

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// slots gives every slot up to now its end, or its claim, in order. The
// watermark follows and never goes back. A slot that has to wait stops the walk:
// what comes after it is looked at when it has passed. After a long outage it goes on in
// another look, so that one plan does not keep the others waiting.
func (d *decider) slots() {
	if d.behind {
		return // with those of a schedule that the plan had before
	}
	newest, looked := d.newestRunnable(), 0
	for slot := range slotsBetween(d.set, d.out.Ledger.Watermark, d.f.Now) {
		if looked++; looked > maxSlots {
			d.behind = true
			d.wakeAt(d.f.Now.Add(time.Second))
			return
		}
		end, reason, claim, wait := d.verdict(slot, slot.At.Before(newest))
		if wait {
			d.behind = true
			d.rememberLook()
			d.wakeAt(d.tooLateAt(slot))
			d.out.Status.Due = &DueSlot{Slot: slot, Missed: d.tooLateAt(slot)}
			if ready := d.out.Status.Ready; !ready.OK {
				d.out.Status.Due.Why = ready.Message
			}
			d.acts = d.acts || !d.f.Plan.Spec.DryRun
			if d.waiting == "" {
				d.waiting = "the slot " + slot.Wall + " waits"
				if why := d.out.Status.Due.Why; why != "" {
					d.waiting += ": " + why
				}
			}
			return
		}
		d.write(d.out.Ledger.Passed(slot.At))
		if claim {
			d.supersedePending()
			d.supersedeRefused(d.request(slot))
			d.claim(d.request(slot))
			continue
		}
		d.write(d.out.Ledger.End(d.request(slot), end, reason, d.causeOf(slot.At, reason), d.f.Now))
	}
}

// verdict is what becomes of one due slot: an end with its reason, a claim, or
// a wait. older says that a newer one could still start. The order of the questions is
// the contract's.
func (d *decider) verdict(slot schedule.Slot, older bool) (end run.Result, reason string, claim, wait bool) {
	late := !d.f.Now.Before(d.tooLateAt(slot))
	doubted := d.f.Doubted.Covers(d.tooLateAt(slot))
	switch {
	case !d.f.Ready.OK && late && doubted:
		return run.Missed, run.ReasonClock, false, false
	case !d.f.Ready.OK && late:
		return run.Missed, d.f.Ready.Reason, false, false
	case !d.f.Ready.OK && older && d.f.Plan.Spec.CatchUp == plan.CatchUpLatest:
		return run.Missed, run.ReasonSuperseded, false, false
	case !d.f.Ready.OK:
		return "", "", false, true
	case d.pausedSlot(slot.At):
		return run.Skipped, run.ReasonPaused, false, false
	case d.busyAt(slot.At):
		return run.Skipped, run.ReasonBusy, false, false
	case d.skips(slot.At):
		d.useNext()
		return run.Skipped, run.ReasonSkip, false, false
	case d.f.Plan.Spec.CatchUp == plan.CatchUpNone && !d.seen(slot.At):
		return run.Missed, run.ReasonCatchUp, false, false
	case d.f.Plan.Spec.CatchUp != plan.CatchUpAll && older && !d.queued(slot):
		return run.Missed, run.ReasonSuperseded, false, false
	case late && doubted:
		return run.Missed, run.ReasonClock, false, false
	case late && d.full():
		return run.Missed, run.ReasonNotReady, false, false
	case late:
		return run.Missed, run.ReasonDeadline, false, false
	case d.mustQueue(slot), !d.isWithinQuota("the slot "+slot.Wall, d.f.Plan.Spec.DryRun):
		return "", "", false, true
	}
	return "", "", true, false
}

// newestRunnable is the instant of the last due slot that could still start; the ones
// before it are superseded under catchUp: latest. Zero: none could. It goes back from now,
// to where all that came before is too late, or paused, or skipped. It passes no more than the
// minutes of the longest jitter, the slots that a skip names, and one for each run.
func (d *decider) newestRunnable() time.Time {
	tooOld := d.f.Now.Add(-d.f.Plan.Spec.StartDeadline.Or(plan.DefaultStartDeadline) - maxJitter - time.Second)
	slot, due := d.set.Last(d.f.Now)
	for {
		if !due || !slot.At.After(d.out.Ledger.Watermark) || slot.At.Before(tooOld) || d.nothingBefore(slot.At) {
			return time.Time{}
		}
		since, busy := d.busySince(slot.At)
		switch {
		case busy: // so was every slot since the run began
			slot, due = d.set.Last(since.Add(-time.Nanosecond))
		case d.f.Now.Before(d.tooLateAt(slot)) && (d.f.Plan.Intent.Skip.Next || !d.skips(slot.At)):
			return slot.At
		default:
			slot, due = d.set.Last(slot.At.Add(-time.Second))
		}
	}
}

// nothingBefore says whether neither the slot at an instant nor any before it could start: of a
// pause and of a skip until a time nobody knows when they began.
func (d *decider) nothingBefore(slot time.Time) bool {
	skip := d.skip()
	skipped := skip.All || skip.Until != nil && slot.Before(*skip.Until)
	return d.pausedSlot(slot) || skipped && !d.f.Plan.Intent.Skip.Next
}

// maxSlots is how many due slots one look passes, and maxJitter the longest jitter that a
// schedule may have.
const (
	maxSlots  = 10_000 // a guess: a week of minutes, in some milliseconds
	maxJitter = 24 * time.Hour
)

// skips says whether a slot is skipped. `next` is used up by the first it meets.
func (d *decider) skips(slot time.Time) bool { return d.skip().Covers(slot) }

// skip is what is left of the skip so far.
func (d *decider) skip() intent.Skip {
	if d.out.Skip != nil {
		return *d.out.Skip
	}
	return d.f.Plan.Intent.Skip
}

// useNext takes a skip of the next slot away: it has met its slot.
func (d *decider) useNext() {
	if d.f.Plan.Intent.Skip.Next && d.out.Skip == nil {
		left := d.f.Plan.Intent.Skip
		left.Next = false
		d.out.Skip = &left
		l := d.out.Ledger
		l.NextUsed = true
		d.write(l)
	}
}

// busySince says whether, under Forbid, a run lived when the slot fell due, one that still
// does or one that has ended since, and since when it did. A dry run keeps no slot from changing
// something.
func (d *decider) busySince(slot time.Time) (since time.Time, busy bool) {
	if d.f.Plan.Spec.ConcurrencyPolicy != plan.Forbid && d.f.Plan.Spec.ConcurrencyPolicy != "" {
		return time.Time{}, false
	}
	for _, l := range d.f.Live {
		if l.busy() && !l.since().After(slot) && !d.passes(l.Request.DryRun) {
			return l.since(), true
		}
	}
	for _, e := range d.out.Ledger.Recent {
		if e.Result == run.Ran && e.StartedAt != nil && !e.StartedAt.After(slot) && slot.Before(e.At) && !d.passes(e.DryRun) {
			return *e.StartedAt, true
		}
	}
	return time.Time{}, false
}

// passes says whether the plan's slots pass a run: one that is dry, where they are not.
func (d *decider) passes(dry bool) bool { return dry && !d.f.Plan.Spec.DryRun }

func (d *decider) busyAt(slot time.Time) bool {
	_, busy := d.busySince(slot)
	return busy
}

// queued says whether a slot fell due before our eyes under Queue: then it waits
// its turn, and no newer one takes its place.
func (d *decider) queued(slot schedule.Slot) bool {
	return d.f.Plan.Spec.ConcurrencyPolicy == plan.Queue && d.seen(slot.At)
}

// seen says whether a slot fell due before our eyes, or those of an agent before us.
func (d *decider) seen(slot time.Time) bool {
	return !slot.Before(d.f.LeadingSince) || d.out.Ledger.Saw(slot)
}

// rememberLook notes that the slots that wait fell due before our eyes, where that decides what
// becomes of them after a restart: one write for each slot, which one that does not wait costs, too.
func (d *decider) rememberLook() {
	queues := d.f.Plan.Spec.ConcurrencyPolicy == plan.Queue && d.f.Plan.Spec.CatchUp != plan.CatchUpAll
	if !queues && d.f.Plan.Spec.CatchUp != plan.CatchUpNone {
		return
	}
	l := d.out.Ledger
	newest, due := d.set.Last(d.f.Now)
	if !due || newest.At.Before(d.f.LeadingSince) || l.Saw(newest.At) {
		return
	}
	to, looked := l.LookedTo()
	next, more := d.set.Next(to)
	joins := looked && (!more || !next.At.Before(d.f.LeadingSince))
	d.write(l.WithLook(d.f.LeadingSince.UTC(), newest.At.UTC(), joins))
}

// mustQueue says whether an overdue slot has to wait for the run before it. What
// began before the slot fell due gives way under Replace; overdue slots come one
// after the other all the same.
func (d *decider) mustQueue(slot schedule.Slot) bool {
	after := time.Time{}
	switch d.f.Plan.Spec.ConcurrencyPolicy {
	case plan.Allow:
		return d.occupying() >= ledger.MaxOpen
	case plan.Replace:
		if d.occupying() >= ledger.MaxOpen { // those that wait for their jitter give way to none
			return true
		}
		after = slot.At
	}
	by, busy := d.busyWith(after, d.passes)
	if busy {
		d.waitFor("the next slot", by, d.f.Plan.Spec.DryRun)
	}
	return busy
}

// supersedePending gives up runs that still wait for their window when a newer
// slot falls due.
func (d *decider) supersedePending() {
	for _, l := range d.f.Live {
		if l.Phase == run.Pending && !l.busy() && !l.Over && l.Request.Kind == run.BySchedule {
			d.out.Supersede = including(d.out.Supersede, l.Name)
		}
	}
}

// tooLateAt is the first instant at which a slot may no longer start.
func (d *decider) tooLateAt(slot schedule.Slot) time.Time {
	return StartsAt(d.f.Plan.Spec, d.f.Plan.Namespace, d.f.Plan.Name, slot.At, slot.Index).Add(d.f.Plan.Spec.StartDeadline.Or(plan.DefaultStartDeadline) + time.Nanosecond)
}

// StartsAt is when the run of a slot starts: the slot and its jitter, which is
// the same in every preview and after every restart.
func StartsAt(s plan.Spec, namespace, name string, slot time.Time, index int) time.Time {
	if index < 0 || index >= len(s.Triggers.Schedules) || s.Triggers.Schedules[index].Jitter == nil {
		return slot
	}
	return slot.Add(Jitter(namespace, name, s.Triggers.Schedules[index].Jitter.Duration))
}

// finish works out what is left of a skip, the next slot, the plan's phase and
// when to look again.
func (d *decider) finish() {
	d.useUpSkip()
	d.rememberPause()
	d.nextSlot()
	if until := d.f.Plan.Intent.Skip.Until; until != nil {
		d.wakeAt(*until)
	}
	d.wakeAt(d.f.Ready.Again)
	if d.f.Unwatched != "" {
		d.wakeAt(d.f.Now.Add(30 * time.Second))
	}
	d.sayRefused()
	d.out.Status.Waiting = d.waiting
	if d.f.Plan.Intent.Token != "" && !d.out.Ledger.KnowsToken(d.f.Plan.Intent.Token) && d.out.Status.Waiting == "" {
		d.out.Status.Waiting = "the trigger waits: " + d.f.Ready.Message
		d.acts = d.acts || !d.asksDry()
	}
	d.out.Status.WaitsToAct = d.acts
	d.out.Status.Phase, d.out.Status.Message = d.phase()
}

func (d *decider) phase() (Phase, string) {
	behind := "" // what was asked for meanwhile
	if d.out.Status.WaitsFor != "" || d.out.Status.Due != nil || d.out.Status.OverQuota {
		behind = "; " + d.waiting
	}
	for _, l := range d.f.Live {
		switch {
		case l.Phase == run.Running && l.Held:
			return PhaseWaiting, l.named() + " is held: " + l.Message + behind
		case l.Phase == run.Running && l.Waits:
			return PhaseRunning, l.named() + " is at work: " + l.Message + behind
		case l.Phase == run.Running:
			return PhaseRunning, l.named() + " is at work" + behind
		}
	}
	switch {
	case len(d.out.Claims) > 0:
		return PhaseRunning, "a run begins (" + d.out.Claims[0].Why() + ")"
	case d.out.Status.Paused != "":
		return PhasePaused, d.out.Status.Paused
	case len(d.f.Live) > 0:
		return PhaseWaiting, Waits(d.f.Live[0].named(), cmp.Or(cmp.Or(d.f.Live[0].Message, d.f.Live[0].Waiting), "starting")) + behind
	case d.waiting != "":
		return PhaseWaiting, d.waiting
	case !d.f.Ready.OK:
		return PhaseWaiting, d.f.Ready.Message
	case d.f.Unwatched != "":
		return PhaseWaiting, d.f.Unwatched
	case d.out.Status.Next != nil:
		return PhaseIdle, d.nextRun()
	case len(d.f.Plan.Spec.Triggers.Labels) > 0:
		return PhaseIdle, "waits for a trigger label on " + d.f.Plan.Spec.TargetSaid()
	case len(d.f.Plan.Spec.Triggers.Watch) > 0:
		return PhaseIdle, "waits for a change of " + d.f.Plan.Spec.Triggers.Watch[0].String()
	}
	return PhaseIdle, "waits to be triggered: " + intent.Command(d.f.Plan.Namespace, "trigger", d.f.Plan.Name)
}

// NextRun begins the message of a plan that waits for a slot.
const NextRun = "next run "

func (d *decider) nextRun() string {
	text := NextRun + d.out.Status.Next.Wall + " " + d.out.Status.Next.Zone
	if d.out.Status.NextGate != nil {
		text += ", " + cut(d.out.Status.NextGate.Then(func(t time.Time) string { return t.UTC().Format(time.RFC3339) }))
	}
	return text
}

// pause says which pause holds, and looks again when one ends. Of several it is the one that lasts
// longest: nobody is promised an instant at which another one still holds.
func (d *decider) pause() {
	own := d.f.Plan.Intent.Pause
	switch longest := schedule.LongestPause(append(slices.Clone(d.f.Pauses), own)...); {
	case own.Holds(d.f.Now) && own.Until == nil:
		d.out.Status.Paused = "paused" + cut(own.By) + "; " + intent.Command(d.f.Plan.Namespace, "resume", d.f.Plan.Name) + " ends it"
	case longest.Holds(d.f.Now):
		d.out.Status.Paused = cut(longest.Said())
	}
	for _, s := range d.switches() {
		if s.On && s.Until != nil {
			d.wakeAt(*s.Until)
		}
	}
}

func cut(text string) string { return document.Cut(text, document.MaxMessage/2) }

// useUpSkip takes away what the watermark has passed.
func (d *decider) useUpSkip() {
	skip := d.skip()
	if skip.All || len(skip.Slots) == 0 && skip.Until == nil {
		return
	}
	left := skip
	left.Slots = slices.DeleteFunc(slices.Clone(skip.Slots), func(t time.Time) bool {
		return !t.After(d.out.Ledger.Watermark) || !t.After(d.f.Now) && len(d.set) == 0
	})
	if skip.Until != nil && !d.f.Now.Before(*skip.Until) && !d.behind { // a slot that waits may still be one to skip
		left.Until = nil
	}
	if len(left.Slots) != len(skip.Slots) || left.Until != skip.Until {
		d.out.Skip = &left
	}
}

// nextSlot is the next slot that is not to be skipped; the agent wakes for the
// very next one all the same, since that one needs its record.
func (d *decider) nextSlot() {
	from := d.f.Now
	if d.out.Ledger.Watermark.After(from) {
		from = d.out.Ledger.Watermark
	}
	next := d.f.Plan.Intent.Skip.Next && d.out.Skip == nil
	for i := range 1000 { // bounded: each slot that is held is named, or the last of one skip or pause
		slot, ok := d.set.Next(from)
		if !ok {
			return
		}
		if i == 0 {
			d.wakeAt(slot.At)
		}
		if !d.pausedAt(slot.At) && !d.skipsLater(slot.At, &next) { // a paused one does not use up next
			d.out.Status.Next = &slot
			d.out.Status.NextGate = run.ClosedFor(d.f.Gate, "", intent.Bypass{}, StartsAt(d.f.Plan.Spec, d.f.Plan.Namespace, d.f.Plan.Name, slot.At, slot.Index))
			if d.out.Status.NextGate != nil {
				d.out.Status.NextGate.Deadline = d.tooLateAt(slot)
			}
			return
		}
		if from, ok = d.heldTo(slot.At); !ok {
			return
		}
	}
}

// heldTo is an instant from which to look for the slot after one that is skipped or paused: it, or
// right before the end of what holds it; false: that has no end.
func (d *decider) heldTo(slot time.Time) (time.Time, bool) {
	to := slot
	later := func(end *time.Time) {
		if last := end.Add(-time.Nanosecond); last.After(to) {
			to = last
		}
	}
	for _, s := range d.switches() {
		switch {
		case !s.Holds(slot):
		case s.Until == nil:
			return to, false
		default:
			later(s.Until)
		}
	}
	skip := d.f.Plan.Intent.Skip
	if skip.Until != nil {
		later(skip.Until)
	}
	return to, !skip.All
}

func (d *decider) skipsLater(slot time.Time, next *bool) bool {
	skip := d.f.Plan.Intent.Skip
	skip.Next = false
	if skip.Covers(slot) {
		return true
	}
	used := *next
	*next = false
	return used
}

// Waits says who waits, and for what. Most of a run's messages say "waits for …" by themselves.
func Waits(who, why string) string {
	if strings.HasPrefix(why, "waits ") {
		return who + " " + why
	}
	return who + " waits: " + why
}
