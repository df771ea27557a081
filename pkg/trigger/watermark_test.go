package trigger_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// world is a plan, its ledger and its runs, with everything that random people
// and failures do to them.
type world struct {
	t      *rapid.T
	now    time.Time
	began  time.Time
	f      trigger.Facts
	ledger *ledger.Ledger
	live   map[string]*trigger.ActiveRun
	starts map[string]int       // run → how often it was started
	slots  map[time.Time]string // slot → how it ended, or that it is claimed
	due    map[time.Time]bool   // slots that the schedules of their time asked for
	passed time.Time            // up to where due was filled
}

// The watermark passes each slot exactly once, whatever happens: each slot in
// the interval has exactly one end, and nothing starts twice.
func TestEverySlotHasExactlyOneEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(5, 40).Draw(t, "acts") {
			w.act()
		}
		w.settle()
		w.judge()
	})
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, now: coretest.Clock("00:00"), began: coretest.Clock("00:00"), live: map[string]*trigger.ActiveRun{}, starts: map[string]int{}, slots: map[time.Time]string{}, due: map[time.Time]bool{}}
	w.f = coretest.Facts("00:00")
	w.f.Plan.Spec.Triggers.Schedules = w.schedules()
	w.f.Plan.Spec.ConcurrencyPolicy = rapid.SampledFrom([]plan.ConcurrencyPolicy{plan.Forbid, plan.Allow, plan.Replace, plan.Queue}).Draw(t, "policy")
	w.f.Plan.Spec.CatchUp = rapid.SampledFrom([]plan.CatchUp{plan.CatchUpLatest, plan.CatchUpAll, plan.CatchUpNone}).Draw(t, "catchUp")
	w.f.Plan.Spec.StartDeadline = rapid.SampledFrom([]*document.Duration{coretest.Duration("1m"), coretest.Duration("20m"), coretest.Duration("5h")}).Draw(t, "deadline")
	w.passed = w.now
	w.decide() // the plan is seen when it is made: what it asks for is known from then on
	return w
}

func (w *world) schedules() []plan.Schedule {
	crons := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"*/10 * * * *", "0 * * * *", "30 * * * *", "7 */2 * * *"}), 0, 3, rapid.ID).Draw(w.t, "schedules")
	out := []plan.Schedule{}
	for _, c := range crons {
		s := plan.Schedule{Cron: c}
		if rapid.Bool().Draw(w.t, "jitter") {
			s.Jitter = coretest.Duration("15m")
		}
		out = append(out, s)
	}
	return out
}

// pass lets time go by, and notes which slots the present schedules ask for.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.note()
}

func (w *world) note() {
	set, err := plan.ParseSchedules(w.f.Plan.Spec.Triggers.Schedules)
	if err != nil {
		w.t.Fatal(err)
	}
	for {
		slot, ok := set.Next(w.passed)
		if !ok || slot.At.After(w.now) {
			break
		}
		w.due[slot.At], w.passed = true, slot.At
	}
	w.passed = w.now
}

func (w *world) act() {
	switch rapid.SampledFrom([]string{"wait", "wait", "decide", "decide", "decide", "outage", "pause", "resume", "skip", "edit", "token", "start", "end", "end", "ready", "die"}).Draw(w.t, "act") {
	case "wait":
		w.pass(time.Duration(rapid.IntRange(1, 40).Draw(w.t, "minutes")) * time.Minute)
	case "outage":
		w.pass(time.Duration(rapid.IntRange(1, 300).Draw(w.t, "minutes")) * time.Minute)
		w.f.LeadingSince = w.now
	case "decide":
		w.decide()
	case "pause":
		w.f.Plan.Intent.Pause = schedule.Pause{On: true}
		if rapid.Bool().Draw(w.t, "until") {
			until := w.now.Add(time.Duration(rapid.IntRange(-30, 90).Draw(w.t, "minutes")) * time.Minute)
			w.f.Plan.Intent.Pause.Until = &until
		}
	case "resume":
		w.f.Plan.Intent.Pause = schedule.Pause{}
	case "skip":
		until := w.now.Add(30 * time.Minute)
		w.f.Plan.Intent.Skip = rapid.SampledFrom([]intent.Skip{{}, {All: true}, {Next: true}, {Until: &until}, {Slots: []time.Time{until.Truncate(10 * time.Minute)}}}).Draw(w.t, "skip")
	case "edit":
		if !slices.EqualFunc(w.ledger.Schedules, w.f.Plan.Spec.Triggers.Schedules, func(a, b plan.Schedule) bool { return a.Cron == b.Cron }) {
			return // of an edit that was edited again before anybody looked nothing can be known
		}
		w.note()
		w.f.Plan.Spec.Triggers.Schedules, w.f.Plan.EditedAt = w.schedules(), w.now
	case "token":
		w.f.Plan.Intent.Token = fmt.Sprint(rapid.IntRange(1, 4).Draw(w.t, "token"))
	case "ready":
		w.f.Ready = rapid.SampledFrom([]trigger.Readiness{{OK: true}, {Reason: run.ReasonTarget, Message: "x"}}).Draw(w.t, "ready")
	case "start":
		w.start()
	case "end":
		w.end()
	case "die":
		w.decideAnd(false)
	}
}

func (w *world) decide() { w.decideAnd(true) }

// decideAnd decides and writes, or dies before its write. Runs are created late
// or soon; a skip that was used up is taken away late or soon.
func (w *world) decideAnd(writes bool) {
	f := w.f
	f.Now, f.State.Ledger, f.Live = w.now, w.ledger, nil
	for _, name := range slices.Sorted(maps.Keys(w.live)) {
		f.Live = append(f.Live, *w.live[name])
	}
	d := trigger.Decide(f)
	if f.State.Ledger != nil && d.Ledger.Watermark.Before(f.State.Ledger.Watermark) {
		w.t.Fatalf("the watermark goes back from %s to %s", f.State.Ledger.Watermark, d.Ledger.Watermark)
	}
	if d.Ledger.Watermark.After(w.now) {
		w.t.Fatalf("the watermark %s is ahead of now %s", d.Ledger.Watermark, w.now)
	}
	if !writes || !d.Changed {
		return
	}
	w.record(d)
	l := d.Ledger
	w.ledger = &l
	if d.Skip != nil && rapid.Bool().Draw(w.t, "takes the skip away") {
		w.f.Plan.Intent.Skip = *d.Skip
	}
	if rapid.Bool().Draw(w.t, "creates its runs") {
		w.create()
	}
}

// record reads the ends off the difference of two ledgers: an end once given
// must stand, and none may be given twice.
func (w *world) record(d trigger.Decision) {
	had := map[string]bool{}
	if w.ledger != nil {
		for _, e := range w.ledger.Open {
			had[e.Run] = true
		}
	}
	for _, e := range d.Ledger.Open {
		if e.Slot != nil && !had[e.Run] {
			w.give(*e.Slot, "claimed")
		}
	}
	// Folded entries say only their first and last: the slots between come from
	// the totals, so each slot's end is followed by deciding slot by slot.
	old := map[run.Result]int64{}
	if w.ledger != nil {
		old = w.ledger.Totals
	}
	var grown int64
	for r, n := range d.Ledger.Totals {
		grown += n - old[r]
	}
	from := w.began
	if w.ledger != nil {
		from = w.ledger.Watermark
	}
	passed := []time.Time{}
	for at := range w.due {
		if at.After(from) && !at.After(d.Ledger.Watermark) && w.slots[at] == "" {
			passed = append(passed, at)
		}
	}
	if int64(len(passed)) != grown {
		w.t.Fatalf("the watermark went from %s to %s over %d slots without a run, and %d ends were given\n%+v", from, d.Ledger.Watermark, len(passed), grown, d.Ledger.Recent)
	}
	for _, at := range passed {
		w.give(at, "ended")
	}
}

func (w *world) give(slot time.Time, end string) {
	if !w.due[slot] {
		w.t.Fatalf("no schedule asked for the slot %s, which is %s", slot, end)
	}
	if w.slots[slot] != "" {
		w.t.Fatalf("the slot %s is %s, and was %s before", slot, end, w.slots[slot])
	}
	w.slots[slot] = end
}

func (w *world) create() {
	for _, e := range w.ledger.Open {
		if w.live[e.Run] == nil {
			w.live[e.Run] = &trigger.ActiveRun{Name: e.Run, Phase: run.Pending, Request: *e.Request}
		}
	}
}

// start starts a pending run as the agent would: alone, unless they may overlap.
func (w *world) start() {
	for _, name := range slices.Sorted(maps.Keys(w.live)) {
		l := w.live[name]
		if l.Phase != run.Pending {
			if w.f.Plan.Spec.ConcurrencyPolicy != plan.Allow {
				return
			}
			continue
		}
		_, open := w.ledger.OpenEntry(name)
		a := trigger.Admit(run.Run{Name: name, Namespace: "shop", Plan: "orders", Request: l.Request, Spec: w.f.Plan.Spec}, trigger.AdmissionFacts{Now: w.now, EntryOpen: open})
		if a.Start {
			w.starts[name]++
			at := w.now
			l.Phase, l.StartedAt = run.Running, &at
			return
		}
	}
}

func (w *world) end() {
	for i, name := range slices.Sorted(maps.Keys(w.live)) {
		if i > 0 {
			break
		}
		l := w.live[name]
		closed := w.ledger.Close(name, run.Ran, "", l.StartedAt, w.now)
		if l.StartedAt == nil {
			closed = w.ledger.Close(name, run.Missed, run.ReasonDeadline, nil, w.now)
		}
		w.ledger = &closed
		delete(w.live, name)
	}
}

// settle lets everything come to rest: all are ready, nobody pauses, runs end.
func (w *world) settle() {
	w.f.Ready, w.f.Plan.Intent.Pause, w.f.Plan.Intent.Skip = trigger.Readiness{OK: true}, schedule.Pause{}, intent.Skip{}
	for range 500 {
		before := w.ledger
		w.decide()
		if len(w.ledger.Open) == 0 && len(w.live) == 0 && w.ledger == before {
			return
		}
		w.create()
		w.start()
		w.end()
	}
	w.t.Fatalf("does not come to rest: %d open, %d live", len(w.ledger.Open), len(w.live))
}

func (w *world) judge() {
	for at := range w.due {
		if w.slots[at] == "" && !at.After(w.now) {
			f := w.f
			f.Now, f.State.Ledger = w.now, w.ledger
			d := trigger.Decide(f)
			w.t.Fatalf("the slot %s has no end; the watermark is %s, now %s: %s %s %v", at, w.ledger.Watermark, w.now, d.Status.Phase, d.Status.Message, told(f, d))
		}
	}
	for name, n := range w.starts {
		if n > 1 {
			w.t.Fatalf("%s started %d times", name, n)
		}
	}
	var claimed, ended, total int64
	for _, end := range w.slots {
		if end == "claimed" {
			claimed++
		} else {
			ended++
		}
	}
	for _, n := range w.ledger.Totals {
		total += n
	}
	tokens := int64(len(w.ledger.Tokens))
	if total < claimed+ended || total > claimed+ended+tokens {
		w.t.Fatalf("the totals say %d; %d slots were claimed, %d ended otherwise, %d tokens are known", total, claimed, ended, tokens)
	}
}

// After half a year without an agent every slot of a minutely plan has its end: the newest
// runs, the others are one entry.
func TestHalfAYearOfSlotsIsOneEntry(t *testing.T) {
	const days = 180
	f := coretest.Facts("03:00", scheduled("* * * * *"), ledgerWith(func(l *ledger.Ledger) {
		l.Watermark = coretest.Clock("03:00").AddDate(0, 0, -days)
	}))
	f.Plan.CreatedAt, f.Plan.EditedAt, f.State.Ledger.Schedules = f.State.Ledger.Watermark, f.State.Ledger.Watermark, f.Plan.Spec.Triggers.Schedules
	d := trigger.Decide(f)
	for look := 0; d.Ledger.Watermark.Before(coretest.Clock("03:00")) && look < days; look++ { // each passes so many and no more
		f.State.Ledger, f.Now = &d.Ledger, d.Wake
		d = trigger.Decide(f)
	}
	recent := d.Ledger.Recent
	if len(d.Claims) != 1 || len(recent) != 1 || recent[0].Reason != run.ReasonSuperseded || recent[0].Count != days*24*60-1 {
		t.Errorf("claims %+v, entries %+v", d.Claims, recent)
	}
}
