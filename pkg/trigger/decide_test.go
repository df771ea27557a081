package trigger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

type edit = coretest.Edit

func scheduled(crons ...string) edit {
	return func(f *trigger.Facts) {
		for _, c := range crons {
			f.Plan.Spec.Triggers.Schedules = append(f.Plan.Spec.Triggers.Schedules, plan.Schedule{Cron: c})
		}
	}
}

func policy(p plan.ConcurrencyPolicy) edit {
	return func(f *trigger.Facts) { f.Plan.Spec.ConcurrencyPolicy = p }
}

func catchUp(c plan.CatchUp) edit { return func(f *trigger.Facts) { f.Plan.Spec.CatchUp = c } }

func deadline(d string) edit {
	return func(f *trigger.Facts) { f.Plan.Spec.StartDeadline = coretest.Duration(d) }
}

func lookingSince(t string) edit {
	return func(f *trigger.Facts) { f.LeadingSince = coretest.Clock(t) }
}

func token(t string) edit { return func(f *trigger.Facts) { f.Plan.Intent.Token = t } }

func ledgerWith(edit func(*ledger.Ledger)) edit {
	return func(f *trigger.Facts) { edit(f.State.Ledger) }
}

// at is a ledger whose slots have ended up to a time.
func at(t string) edit {
	return ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock(t) })
}

// was is a pause that stood when the plan was last looked at.
func was(until *time.Time) edit {
	return ledgerWith(func(l *ledger.Ledger) { l.Paused = &schedule.Pause{On: true, Until: until} })
}

// wasBy is who asked for that pause.
func wasBy(by intent.Actor) edit {
	return ledgerWith(func(l *ledger.Ledger) { l.PausedBy = &ledger.Cause{Said: by.Said("paused"), Actor: by} })
}

// above is a pause of the plan's namespace or of the cluster.
func above(s schedule.Pause) edit {
	return func(f *trigger.Facts) { f.Pauses = []schedule.Pause{{}, s} }
}

func first(f *trigger.Facts) { f.State.Ledger = nil }

// live is a run that has not ended, and its claim.
func live(l trigger.ActiveRun) edit {
	return func(f *trigger.Facts) {
		if l.Name == "" {
			l.Name = coretest.NameOf(l.Request)
		}
		f.Live = append(f.Live, l)
		*f.State.Ledger = f.State.Ledger.Claim(l.Name, l.Request, "")
	}
}

func running(t string) edit {
	return live(trigger.ActiveRun{Request: coretest.SlotAt(t), Phase: run.Running, StartedAt: coretest.On(t)})
}

// told is a decision in short: what was claimed, what ended and how, and what is
// left to do, a line each.
func told(f trigger.Facts, d trigger.Decision) []string {
	out := []string{}
	for _, c := range d.Claims {
		out = append(out, "claim "+short(c))
	}
	had := 0
	if f.State.Ledger != nil {
		had = len(f.State.Ledger.Recent)
		if had > 0 && len(d.Ledger.Recent) >= had && d.Ledger.Recent[had-1].Count != f.State.Ledger.Recent[had-1].Count {
			had--
		}
	}
	for _, e := range d.Ledger.Recent[min(had, len(d.Ledger.Recent)):] {
		line := fmt.Sprintf("%s %s(%s)", e.Kind, e.Result, e.Reason)
		if e.Slot != nil {
			line = fmt.Sprintf("%s %s(%s)", e.Slot.UTC().Format("15:04"), e.Result, e.Reason)
		}
		if e.Count > 0 {
			line += fmt.Sprintf(" ×%d to %s", e.Count, e.Last.UTC().Format("15:04"))
		}
		out = append(out, line)
	}
	for _, r := range d.Replace {
		out = append(out, "replace "+r)
	}
	for _, r := range d.Supersede {
		out = append(out, "supersede "+r)
	}
	for _, k := range d.Returned {
		out = append(out, "returned "+k)
	}
	if d.Skip != nil {
		out = append(out, "skip left: "+skipLeft(*d.Skip))
	}
	return out
}

func short(r run.Request) string {
	switch r.Kind {
	case run.BySchedule:
		return "slot " + r.Slot.UTC().Format("15:04")
	case run.ByLabel:
		return fmt.Sprintf("label %s=%s #%d", r.Label, r.Value, r.Ordinal)
	case run.ByToken:
		return "token " + r.Token
	}
	return string(r.Kind)
}

func skipLeft(s intent.Skip) string {
	switch {
	case s.All:
		return "all"
	case s.Next:
		return "next"
	case s.Until != nil:
		return "until " + s.Until.Format("15:04")
	case len(s.Slots) > 0:
		var out []string
		for _, t := range s.Slots {
			out = append(out, t.Format("15:04"))
		}
		return strings.Join(out, " ")
	}
	return "nothing"
}

type decideCase struct {
	name string
	f    trigger.Facts
	want []string
}

func check(t *testing.T, cases []decideCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Helper()
			before := document.Clone(c.f.State.Ledger)
			d := trigger.Decide(c.f)
			if c.want == nil {
				c.want = []string{}
			}
			if diff := cmp.Diff(c.want, told(c.f, d)); diff != "" {
				t.Errorf("(-want +got)\n%s\n%s: %s", diff, d.Status.Phase, d.Status.Message)
			}
			if diff := cmp.Diff(before, c.f.State.Ledger, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the ledger that was given has changed: %s", diff)
			}
			lawful(t, c.f, d)
		})
	}
}

// lawful is what every decision promises.
func lawful(t *testing.T, f trigger.Facts, d trigger.Decision) {
	t.Helper()
	if f.State.Ledger != nil && d.Ledger.Watermark.Before(f.State.Ledger.Watermark) {
		t.Errorf("the watermark goes back from %s to %s", f.State.Ledger.Watermark, d.Ledger.Watermark)
	}
	if f.State.Ledger != nil && d.Ledger.Watermark.After(f.Now) && !d.Ledger.Watermark.Equal(f.State.Ledger.Watermark) {
		t.Errorf("the watermark passes now: %s", d.Ledger.Watermark)
	}
	if !d.Wake.IsZero() && !d.Wake.After(f.Now) {
		t.Errorf("wakes at once, for ever: %s", d.Wake)
	}
	if f.State.Ledger != nil && !d.Changed && cmp.Diff(*f.State.Ledger, d.Ledger, cmpopts.EquateEmpty()) != "" {
		t.Error("the ledger changed, and nobody is told")
	}
	if d.Status.Phase == "" || d.Status.Message == "" {
		t.Errorf("nothing to say: %q %q", d.Status.Phase, d.Status.Message)
	}
	if len(d.Claims) > 0 && len(d.Ledger.Open) < len(d.Claims) {
		t.Error("a claim without its entry")
	}
	for r, n := range d.Ledger.Totals {
		if f.State.Ledger != nil && n < f.State.Ledger.Totals[r] {
			t.Errorf("the total of %s shrinks", r)
		}
	}
	// Deciding again on what was written decides nothing more.
	if !d.Changed || f.State.Ledger == nil {
		return
	}
	again := f
	again.State.Ledger = &d.Ledger
	for _, c := range d.Claims {
		again.Live = append(slices.Clone(again.Live), trigger.ActiveRun{Name: coretest.NameOf(c), Phase: run.Pending, Request: c})
	}
	if twice := trigger.Decide(again); len(twice.Claims) > 0 && f.Plan.Spec.ConcurrencyPolicy != plan.Allow && f.Plan.Spec.ConcurrencyPolicy != plan.Replace {
		t.Errorf("claims more when asked again: %v", told(again, twice))
	}
}

func TestOrderOfTheQuestions(t *testing.T) {
	at2 := scheduled("0 2 * * *")
	invalid := func(f *trigger.Facts) { f.Plan.Faults = document.Faults{{Path: "spec", Message: "is wrong"}} }
	all := []edit{at2, token("t"), labelled("k", "v")}
	more := func(edits ...edit) []edit { return append(slices.Clone(all), edits...) }
	pause := coretest.Paused(schedule.Pause{On: true})
	busy := live(trigger.ActiveRun{Name: "old", Phase: run.Running, StartedAt: coretest.On("01:00"), Request: run.Request{Kind: run.ByToken, Token: "old", At: coretest.Clock("01:00")}})
	check(t, []decideCase{
		{"everything asks: labels come first", coretest.Facts("02:00", all...), []string{"claim label k=v #1"}},
		{"a token comes before a slot", coretest.Facts("02:00", at2, token("t")), []string{"claim token t"}},
		{"a slot alone", coretest.Facts("02:00", at2), []string{"claim slot 02:00"}},
		{"invalid: nothing, whatever else", coretest.Facts("02:00", more(invalid, pause)...), nil},
		{"clock in doubt: nothing, whatever else", coretest.Facts("02:00", more(pause, func(f *trigger.Facts) { f.ClockDoubt = "clocks differ" })...), nil},
		{"not ready: all wait", coretest.Facts("02:00", more(coretest.NotReady(run.ReasonTarget))...), nil},
		{"not ready comes before paused", coretest.Facts("02:00", more(coretest.NotReady(run.ReasonTarget), pause)...), nil},
		{"not ready for too long, also when paused: Missed for that reason", coretest.Facts("03:01", more(coretest.NotReady(run.ReasonTarget), pause)...), []string{"02:00 Missed(target)"}},
		{"paused: the slot passes, the others wait", coretest.Facts("02:00", more(pause)...), []string{"02:00 Skipped(paused)"}},
		{"paused comes before busy", coretest.Facts("02:00", at2, pause, busy), []string{"02:00 Skipped(paused)"}},
		{"busy comes before skip", coretest.Facts("02:00", at2, busy, coretest.Skip(intent.Skip{Next: true})), []string{"02:00 Skipped(busy)"}},
		{"busy: the others wait", coretest.Facts("02:00", more(busy)...), []string{"02:00 Skipped(busy)"}},
		{"skip holds labels and slots, a token passes", coretest.Facts("02:00", more(coretest.Skip(intent.Skip{All: true}))...), []string{"claim token t", "02:00 Skipped(skip)"}},
		{"skip next holds no label", coretest.Facts("02:00", labelled("k", "v"), coretest.Skip(intent.Skip{Next: true})), []string{"claim label k=v #1"}},
		{"a token does not pass a pause", coretest.Facts("01:00", token("t"), pause), nil},
		{"skip comes before the deadline", coretest.Facts("05:00", at2, coretest.Skip(intent.Skip{All: true})), []string{"02:00 Skipped(skip)"}},
	})
}

func TestSlotsAtTheirTime(t *testing.T) {
	at2 := scheduled("0 2 * * *")
	check(t, []decideCase{
		{"not before", coretest.Facts("01:59:59", at2), nil},
		{"at the instant", coretest.Facts("02:00", at2), []string{"claim slot 02:00"}},
		{"a little late", coretest.Facts("02:00:01", at2), []string{"claim slot 02:00"}},
		{"at the deadline still", coretest.Facts("03:00", at2), []string{"claim slot 02:00"}},
		{"after the deadline never", coretest.Facts("03:00:01", at2), []string{"02:00 Missed(deadline)"}},
		{"one that is passed is passed", coretest.Facts("02:01", at2, ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock("02:00") })), nil},
		{"a deadline of its own", coretest.Facts("02:06", at2, deadline("5m")), []string{"02:00 Missed(deadline)"}},
		{"at most once for two schedules on one instant", coretest.Facts("02:00", scheduled("0 2 * * *", "0 */2 * * *")), []string{"claim slot 02:00"}},
		{"no schedule, no slot", coretest.Facts("02:00"), nil},
		{"a clock that went back", coretest.Facts("01:00", at2, ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock("02:00") })), nil},
		{"a plan's first look starts at its creation", coretest.Facts("02:00", at2, first, func(f *trigger.Facts) {
			f.Plan.CreatedAt, f.Plan.EditedAt = coretest.Clock("02:00"), coretest.Clock("02:00")
		}), nil},
		{"and sees what fell due since", coretest.Facts("02:30", at2, first), []string{"claim slot 02:00"}},
		{"dry run", coretest.Facts("02:00", at2, func(f *trigger.Facts) { f.Plan.Spec.DryRun = true }), []string{"claim slot 02:00"}},
	})
	d := trigger.Decide(coretest.Facts("02:00", at2, func(f *trigger.Facts) { f.Plan.Spec.DryRun = true }))
	if !d.Claims[0].DryRun || !d.Ledger.Open[0].DryRun {
		t.Error("a dry run is not marked")
	}
	d = trigger.Decide(coretest.Facts("09:00", at2, func(f *trigger.Facts) { f.Plan.Spec.DryRun = true }))
	if !d.Ledger.Recent[0].DryRun {
		t.Error("a missed slot of a dry run is not marked")
	}
}

func TestJitterDelaysTheStartAndNotTheSlot(t *testing.T) {
	jittered := func(f *trigger.Facts) {
		f.Plan.Spec.Triggers.Schedules = []plan.Schedule{{Cron: "0 2 * * *", Jitter: coretest.Duration("30m")}}
	}
	start := trigger.StartsAt(coretest.Facts("02:00", jittered).Plan.Spec, "shop", "orders", coretest.Clock("02:00"), 0)
	if !start.After(coretest.Clock("02:00")) || !start.Before(coretest.Clock("02:30")) {
		t.Fatal(start)
	}
	late := start.Add(time.Hour).Format("15:04:05")
	check(t, []decideCase{
		{"the slot is claimed at its instant", coretest.Facts("02:00", jittered), []string{"claim slot 02:00"}},
		{"the deadline counts from slot and jitter", coretest.Facts(late, jittered), []string{"claim slot 02:00"}},
		{"and not a second longer", coretest.Facts(start.Add(time.Hour+time.Second).Format("15:04:05"), jittered), []string{"02:00 Missed(deadline)"}},
		{
			"a run that waits for its jitter is not busy, and gives way", coretest.Facts("02:00", scheduled("0 2 * * *"), live(trigger.ActiveRun{Phase: run.Pending, Waiting: run.WaitJitter, Request: coretest.SlotAt("01:00")})),
			[]string{"claim slot 02:00", "supersede " + coretest.NameOf(coretest.SlotAt("01:00"))},
		},
	})
}

func TestConcurrency(t *testing.T) {
	hourly := scheduled("0 * * * *")
	known := ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock("01:00") })
	byToken := func(phase run.Phase, waiting string) edit {
		return live(trigger.ActiveRun{Name: "old", Phase: phase, Waiting: waiting, Request: run.Request{Kind: run.ByToken, Token: "old", At: coretest.Clock("01:30")}})
	}
	claimed := func(f *trigger.Facts) {
		*f.State.Ledger = f.State.Ledger.Claim("lost", run.Request{Kind: run.ByToken, Token: "lost", At: coretest.Clock("01:30")}, "")
	}
	ended := func(from, to string) edit {
		return ledgerWith(func(l *ledger.Ledger) {
			*l = l.Claim("old", run.Request{Kind: run.ByToken, At: coretest.Clock(from)}, "").Close("old", run.Ran, "", coretest.On(from), coretest.Clock(to))
		})
	}
	dry := func(f *trigger.Facts) { f.Plan.Spec.DryRun = true }
	dryOption := func(token string) edit {
		return func(f *trigger.Facts) { f.Plan.Intent.Asked = intent.TriggerOptions{Token: token, DryRun: true} }
	}
	dryRun := func(from, waiting string) trigger.ActiveRun {
		return trigger.ActiveRun{Name: "dry", Phase: run.Running, Waiting: waiting, StartedAt: coretest.On(from), Request: run.Request{Kind: run.ByToken, Token: "dry", At: coretest.Clock(from), DryRun: true}}
	}
	claimedDry := func(f *trigger.Facts) {
		*f.State.Ledger = f.State.Ledger.Claim("dry", dryRun("01:30", "").Request, "")
	}
	endedDry := func(from, to string) edit {
		return ledgerWith(func(l *ledger.Ledger) {
			*l = l.Claim("dry", dryRun(from, "").Request, "").Close("dry", run.Ran, "", coretest.On(from), coretest.Clock(to))
		})
	}
	check(t, []decideCase{
		{"Forbid: a slot that falls due while a run lives is skipped, at its time", coretest.Facts("02:00", hourly, known, running("01:00")), []string{"02:00 Skipped(busy)"}},
		{"Forbid: also while that run only waits", coretest.Facts("02:00", hourly, known, byToken(run.Pending, run.WaitLock)), []string{"02:00 Skipped(busy)"}},
		{
			"Forbid: a run that waits for its window is not busy", coretest.Facts("02:00", hourly, known, live(trigger.ActiveRun{Request: coretest.SlotAt("01:00"), Phase: run.Pending, Waiting: run.WaitWindow})),
			[]string{"claim slot 02:00", "supersede " + coretest.NameOf(coretest.SlotAt("01:00"))},
		},
		{"Forbid: also when that run has ended since", coretest.Facts("02:30", hourly, known, ended("01:30", "02:10")), []string{"02:00 Skipped(busy)"}},
		{"Forbid: a run that ended before is no obstacle", coretest.Facts("02:00", hourly, known, ended("01:30", "01:59")), []string{"claim slot 02:00"}},
		{"Forbid: a run that began after the slot makes it wait", coretest.Facts("02:30", hourly, known, live(trigger.ActiveRun{Name: "new", Phase: run.Running, StartedAt: coretest.On("02:10"), Request: run.Request{Kind: run.ByToken, At: coretest.Clock("02:10")}})), nil},
		{"Forbid: until that run has ended", coretest.Facts("02:30", hourly, known, ended("02:10", "02:20")), []string{"claim slot 02:00"}},
		{"Forbid: a run asked for before the slot and started after it was there first", coretest.Facts("02:00", hourly, known, live(trigger.ActiveRun{Name: "new", Phase: run.Running, StartedAt: coretest.On("02:00:01"), Request: run.Request{Kind: run.ByToken, At: coretest.Clock("01:59:59")}})), []string{"02:00 Skipped(busy)"}},
		{"Forbid: a claim whose run is not there yet makes it wait", coretest.Facts("02:00", hourly, known, claimed), nil},
		{"Forbid: tokens wait", coretest.Facts("01:30", token("t"), running("01:00")), nil},
		{"Allow: at once", coretest.Facts("02:00", hourly, known, policy(plan.Allow), running("01:00")), []string{"claim slot 02:00"}},
		{"Allow: tokens too", coretest.Facts("01:30", policy(plan.Allow), token("t"), running("01:00")), []string{"claim token t"}},
		{"Replace: the old one gives way", coretest.Facts("02:00", hourly, known, policy(plan.Replace), running("01:00")), []string{"claim slot 02:00", "replace " + coretest.NameOf(coretest.SlotAt("01:00"))}},
		{
			"Replace: so does one that only waits", coretest.Facts("02:00", hourly, known, policy(plan.Replace), live(trigger.ActiveRun{Request: coretest.SlotAt("01:00"), Phase: run.Pending, Waiting: run.WaitLock})),
			[]string{"claim slot 02:00", "supersede " + coretest.NameOf(coretest.SlotAt("01:00"))},
		},
		{"Replace: a request without a slot is never dropped", coretest.Facts("02:00", hourly, known, policy(plan.Replace), byToken(run.Pending, run.WaitLock)), []string{"claim slot 02:00"}},
		{"Replace: an overdue slot does not replace what began after it", coretest.Facts("02:30", hourly, known, policy(plan.Replace), live(trigger.ActiveRun{Name: "new", Phase: run.Running, StartedAt: coretest.On("02:10"), Request: run.Request{Kind: run.ByToken, At: coretest.Clock("02:10")}})), nil},
		{"Replace: a dry run ends nothing", coretest.Facts("01:30", policy(plan.Replace), token("t"), dryOption("t"), running("01:00")), []string{"claim token t"}},
		{"Replace: but another dry run", coretest.Facts("01:30", policy(plan.Replace), token("t"), dryOption("t"), live(dryRun("01:00", ""))), []string{"claim token t", "replace dry"}},
		{"Replace: nor a slot that waits", coretest.Facts("02:00", hourly, known, policy(plan.Replace), dry, live(trigger.ActiveRun{Request: coretest.SlotAt("01:00"), Phase: run.Pending, Waiting: run.WaitLock})), []string{"claim slot 02:00"}},
		{"Replace: a request without a slot takes no slot's place", coretest.Facts("01:30", policy(plan.Replace), token("t"), live(trigger.ActiveRun{Request: coretest.SlotAt("01:00"), Phase: run.Pending, Waiting: run.WaitLock})), []string{"claim token t"}},
		{"Forbid: a dry run keeps no slot busy", coretest.Facts("02:00", hourly, known, live(dryRun("01:00", ""))), []string{"claim slot 02:00"}},
		{"Forbid: nor does one that has ended since", coretest.Facts("02:30", hourly, known, endedDry("01:30", "02:10")), []string{"claim slot 02:00"}},
		{"Forbid: nor one that is claimed", coretest.Facts("02:00", hourly, known, claimedDry), []string{"claim slot 02:00"}},
		{"Forbid: of a plan that only runs dry it does", coretest.Facts("02:00", hourly, known, dry, live(dryRun("01:00", ""))), []string{"02:00 Skipped(busy)"}},
		{"Queue: a slot does not wait for a dry run", coretest.Facts("02:00", hourly, known, policy(plan.Queue), live(dryRun("01:00", ""))), []string{"claim slot 02:00"}},
		{"Queue: waits", coretest.Facts("02:00", hourly, known, policy(plan.Queue), running("01:00")), nil},
		{"Queue: after the run, one after the other, not the newest alone", coretest.Facts("03:10", hourly, known, policy(plan.Queue), deadline("3h"), ended("01:00", "03:05")), []string{"claim slot 02:00"}},
		{"Queue: too late in the queue", coretest.Facts("03:01", hourly, known, policy(plan.Queue), running("01:00"), catchUp(plan.CatchUpAll)), []string{"02:00 Missed(deadline)"}},
	})
}

func TestCatchUpAfterAnOutage(t *testing.T) {
	out := []edit{scheduled("0,20,40 * * * *"), lookingSince("02:50"), ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock("01:20") })}
	with := func(edits ...edit) []edit { return append(slices.Clone(out), edits...) }
	check(t, []decideCase{
		{"latest: the newest runs, the others are superseded", coretest.Facts("02:50", out...), []string{"claim slot 02:40", "01:40 Missed(superseded) ×3 to 02:20"}},
		{"latest: all too late", coretest.Facts("02:50", with(deadline("5m"))...), []string{"01:40 Missed(deadline) ×4 to 02:40"}},
		{
			"latest: the newest is skipped, so the one before is the newest", coretest.Facts("02:50", with(coretest.Skip(intent.Skip{Slots: []time.Time{coretest.Clock("02:40")}}))...),
			[]string{"claim slot 02:20", "01:40 Missed(superseded) ×2 to 02:00", "02:40 Skipped(skip)", "skip left: nothing"},
		},
		{"latest: the newest fell into a pause that is over", coretest.Facts("02:50", with(coretest.Paused(schedule.Pause{On: true, Until: coretest.On("02:45")}))...), []string{"01:40 Skipped(paused) ×4 to 02:40"}},
		{"all: in order, one at a time", coretest.Facts("02:50", with(catchUp(plan.CatchUpAll), deadline("2h"))...), []string{"claim slot 01:40"}},
		{"all: each by its own deadline", coretest.Facts("02:50", with(catchUp(plan.CatchUpAll))...), []string{"claim slot 02:00", "01:40 Missed(deadline)"}},
		{"all with Allow: all at once", coretest.Facts("02:50", with(catchUp(plan.CatchUpAll), policy(plan.Allow))...), []string{"claim slot 02:00", "claim slot 02:20", "claim slot 02:40", "01:40 Missed(deadline)"}},
		{"all with Replace: one after the other too", coretest.Facts("02:50", with(catchUp(plan.CatchUpAll), policy(plan.Replace))...), []string{"claim slot 02:00", "01:40 Missed(deadline)"}},
		{"all with Replace: the next waits for the one before", coretest.Facts("02:51", with(catchUp(plan.CatchUpAll), policy(plan.Replace), ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock("02:00") }),
			live(trigger.ActiveRun{Request: run.Request{Kind: run.BySchedule, Slot: coretest.On("02:00"), Local: "x", At: coretest.Clock("02:50")}, Phase: run.Running, StartedAt: coretest.On("02:50")}))...), nil},
		{"none: nothing from before", coretest.Facts("02:50", with(catchUp(plan.CatchUpNone))...), []string{"01:40 Missed(catch-up) ×4 to 02:40"}},
		{"none: what falls due before our eyes runs", coretest.Facts("03:00", with(catchUp(plan.CatchUpNone))...), []string{"claim slot 03:00", "01:40 Missed(catch-up) ×4 to 02:40"}},
		{"Queue, latest: what fell due while nobody looked is superseded", coretest.Facts("02:50", with(policy(plan.Queue))...), []string{"claim slot 02:40", "01:40 Missed(superseded) ×3 to 02:20"}},
	})
}

// What was seen to fall due keeps its turn, whoever looks when it comes.
func TestASlotThatWaitsOutlivesTheAgent(t *testing.T) {
	type look struct{ now, since string }
	tens := []edit{scheduled("*/10 * * * *"), at("01:00"), deadline("3h")}
	queue, busy := policy(plan.Queue), running("01:00")
	for name, c := range map[string]struct {
		given  []edit
		looks  []look // before the one that counts
		writes int    // of the ledger, in these
		then   look   // when nothing is at work any more
		passed string // up to which slot all have ended by then; empty: none
		want   []string
	}{
		"Queue: an agent that comes between two slots":             {[]edit{queue, busy}, []look{{"01:10", "00:00"}, {"01:20", "00:00"}}, 2, look{"01:26", "01:25"}, "", []string{"claim slot 01:10"}},
		"Queue: one that comes after an outage":                    {[]edit{queue, busy}, []look{{"01:10", "00:00"}}, 1, look{"01:45", "01:35"}, "", []string{"claim slot 01:10", "01:20 Missed(superseded) ×2 to 01:30"}},
		"Queue: what fell due in the outage is superseded":         {[]edit{queue, busy}, []look{{"01:10", "00:00"}, {"01:40", "01:35"}}, 2, look{"01:45", "01:42"}, "01:10", []string{"claim slot 01:40", "01:20 Missed(superseded) ×2 to 01:30"}},
		"Queue: an agent in between saw nothing new":               {[]edit{queue, busy}, []look{{"01:10", "00:00"}, {"01:15", "01:14"}, {"01:20", "01:18"}}, 2, look{"01:26", "01:25"}, "01:10", []string{"claim slot 01:20"}},
		"Queue: each slot is written once":                         {[]edit{queue, busy}, []look{{"01:10", "00:00"}, {"01:11", "00:00"}, {"01:12", "01:12"}, {"01:20", "01:12"}, {"01:21", "01:12"}}, 2, look{"01:29", "01:28"}, "01:10", []string{"claim slot 01:20"}},
		"Queue, all: nothing has to be known":                      {[]edit{queue, busy, catchUp(plan.CatchUpAll)}, []look{{"01:10", "00:00"}}, 0, look{"01:26", "01:25"}, "", []string{"claim slot 01:10"}},
		"Queue, none: it runs":                                     {[]edit{queue, busy, catchUp(plan.CatchUpNone)}, []look{{"01:10", "00:00"}}, 1, look{"01:35", "01:25"}, "", []string{"claim slot 01:10", "01:20 Missed(catch-up)"}},
		"Queue, none: what nobody saw is missed":                   {[]edit{queue, busy, catchUp(plan.CatchUpNone)}, []look{{"01:10", "00:00"}}, 1, look{"01:29", "01:25"}, "01:10", []string{"01:20 Missed(catch-up)"}},
		"none: one that waits for its plan to be ready":            {[]edit{catchUp(plan.CatchUpNone), coretest.NotReady("target")}, []look{{"01:10", "00:00"}}, 1, look{"01:15", "01:14"}, "", []string{"claim slot 01:10"}},
		"latest: one that waits for its plan needs nothing noted":  {[]edit{coretest.NotReady("target")}, []look{{"01:10", "00:00"}}, 0, look{"01:15", "01:14"}, "", []string{"claim slot 01:10"}},
		"Forbid, latest: the newest of what nobody saw":            {nil, nil, 0, look{"01:35", "01:35"}, "", []string{"claim slot 01:30", "01:10 Missed(superseded) ×2 to 01:20"}},
		"Queue: a ledger in which an older agent noted nothing of": {[]edit{queue}, nil, 0, look{"01:35", "01:35"}, "", []string{"claim slot 01:30", "01:10 Missed(superseded) ×2 to 01:20"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := coretest.Facts("01:00", append(slices.Clone(tens), c.given...)...)
			writes := 0
			for _, o := range c.looks {
				f.Now, f.LeadingSince = coretest.Clock(o.now), coretest.Clock(o.since)
				d := trigger.Decide(f)
				if f.State.Ledger = &d.Ledger; d.Changed {
					writes++
				}
			}
			if writes != c.writes {
				t.Errorf("%d writes of the ledger, want %d", writes, c.writes)
			}
			f.Now, f.LeadingSince, f.Ready, f.Live = coretest.Clock(c.then.now), coretest.Clock(c.then.since), trigger.Readiness{OK: true}, nil
			l := f.State.Ledger.Close(coretest.NameOf(coretest.SlotAt("01:00")), run.Ran, "", coretest.On("01:00"), coretest.Clock("01:05"))
			if c.passed != "" {
				l = l.Passed(coretest.Clock(c.passed))
			}
			f.State.Ledger = &l
			if diff := cmp.Diff(c.want, told(f, trigger.Decide(f))); diff != "" {
				t.Error(diff)
			}
		})
	}
	passed := ledger.Ledger{}.WithLook(coretest.Clock("01:00"), coretest.Clock("01:10"), false).WithLook(coretest.Clock("02:00"), coretest.Clock("02:10"), false)
	if l := passed.Passed(coretest.Clock("01:10")); len(l.Looks) != 1 || l.Passed(coretest.Clock("02:10")).Looks != nil || len(passed.Looks) != 2 {
		t.Errorf("kept %v", l.Looks)
	}
}

func TestSkipAndWhatIsLeftOfIt(t *testing.T) {
	hourly := scheduled("0 * * * *")
	used := ledgerWith(func(l *ledger.Ledger) { l.NextUsed = true })
	check(t, []decideCase{
		{"true stays", coretest.Facts("02:00", hourly, at("01:00"), coretest.Skip(intent.Skip{All: true})), []string{"02:00 Skipped(skip)"}},
		{"next before its slot stays", coretest.Facts("01:30", hourly, at("01:00"), coretest.Skip(intent.Skip{Next: true})), nil},
		{"next is used up by its slot", coretest.Facts("02:00", hourly, at("01:00"), coretest.Skip(intent.Skip{Next: true})), []string{"02:00 Skipped(skip)", "skip left: nothing"}},
		{"next skips one of two, and the newest runs", coretest.Facts("03:00", hourly, at("01:00"), coretest.Skip(intent.Skip{Next: true})), []string{"claim slot 03:00", "02:00 Skipped(skip)", "skip left: nothing"}},
		{"a pause does not use up next", coretest.Facts("02:00", hourly, at("01:00"), coretest.Skip(intent.Skip{Next: true}), coretest.Paused(schedule.Pause{On: true})), []string{"02:00 Skipped(paused)"}},
		{"next that was used before a crash skips no second slot", coretest.Facts("03:00", hourly, at("02:00"), coretest.Skip(intent.Skip{Next: true}), used), []string{"claim slot 03:00", "skip left: nothing"}},
		{"next that was used and is gone is forgotten", coretest.Facts("02:30", hourly, at("02:00"), used), nil},
		{"until in the future", coretest.Facts("02:00", hourly, at("01:00"), coretest.Skip(intent.Skip{Until: coretest.On("02:30")})), []string{"02:00 Skipped(skip)"}},
		{"until excludes its end", coretest.Facts("02:00", hourly, at("01:00"), coretest.Skip(intent.Skip{Until: coretest.On("02:00")})), []string{"claim slot 02:00", "skip left: nothing"}},
		{"until is used up by its instant", coretest.Facts("02:31", hourly, at("02:00"), coretest.Skip(intent.Skip{Until: coretest.On("02:30")})), []string{"skip left: nothing"}},
		{"until counts for slots that are looked at later", coretest.Facts("02:40", hourly, at("01:00"), coretest.Skip(intent.Skip{Until: coretest.On("02:30")})), []string{"02:00 Skipped(skip)", "skip left: nothing"}},
		{"until stays while a slot before it waits", coretest.Facts("02:40", hourly, at("01:00"), coretest.Skip(intent.Skip{Until: coretest.On("02:30")}), coretest.NotReady("target")), nil},
		{"slots, one by one", coretest.Facts("02:00", hourly, at("01:00"), coretest.Skip(intent.Skip{Slots: []time.Time{coretest.Clock("02:00"), coretest.Clock("04:00")}})), []string{"02:00 Skipped(skip)", "skip left: 04:00"}},
		{"slots that were passed otherwise", coretest.Facts("03:00", hourly, at("01:00"), coretest.Skip(intent.Skip{Slots: []time.Time{coretest.Clock("02:00")}})), []string{"claim slot 03:00", "02:00 Skipped(skip)", "skip left: nothing"}},
		{"the last slot leaves nothing", coretest.Facts("02:00", hourly, at("01:00"), coretest.Skip(intent.Skip{Slots: []time.Time{coretest.Clock("02:00")}})), []string{"02:00 Skipped(skip)", "skip left: nothing"}},
		{"an instant that is no slot passes with the next one", coretest.Facts("02:00", hourly, at("01:00"), coretest.Skip(intent.Skip{Slots: []time.Time{coretest.Clock("01:30")}})), []string{"claim slot 02:00", "skip left: nothing"}},
		{"an instant on a plan without schedules passes with time", coretest.Facts("02:00", coretest.Skip(intent.Skip{Slots: []time.Time{coretest.Clock("01:30")}})), []string{"skip left: nothing"}},
	})
	d := trigger.Decide(coretest.Facts("02:00", hourly, at("01:00"), coretest.Skip(intent.Skip{Next: true})))
	if !d.Ledger.NextUsed {
		t.Error("the ledger does not know that next was used")
	}
}

func TestPause(t *testing.T) {
	hourly := scheduled("0 * * * *")
	check(t, []decideCase{
		{"paused", coretest.Facts("02:00", hourly, at("01:00"), coretest.Paused(schedule.Pause{On: true})), []string{"02:00 Skipped(paused)"}},
		{"paused for the namespace or the cluster", coretest.Facts("02:00", hourly, at("01:00"), above(schedule.Pause{On: true})), []string{"02:00 Skipped(paused)"}},
		{"until an instant that is over", coretest.Facts("02:00", hourly, at("01:00"), coretest.Paused(schedule.Pause{On: true, Until: coretest.On("02:00")})), []string{"claim slot 02:00"}},
		{"slots in a pause are skipped also when seen later", coretest.Facts("03:10", hourly, at("01:00"), coretest.Paused(schedule.Pause{On: true, Until: coretest.On("02:30")})), []string{"claim slot 03:00", "02:00 Skipped(paused)"}},
		{"a pause that was taken away while nobody looked starts nothing retroactively", coretest.Facts("03:10", hourly, at("01:00"), lookingSince("03:05"), was(nil)), []string{"02:00 Skipped(paused) ×2 to 03:00"}},
		{"where it had an end, what came after is no part of it", coretest.Facts("03:10", hourly, at("01:00"), was(coretest.On("02:30"))), []string{"claim slot 03:00", "02:00 Skipped(paused)"}},
		{"a pause that stands says itself what it holds", coretest.Facts("03:10", hourly, at("01:00"), was(nil), coretest.Paused(schedule.Pause{On: true, Until: coretest.On("02:30")})), []string{"claim slot 03:00", "02:00 Skipped(paused)"}},
	})
	d := trigger.Decide(coretest.Facts("01:30", hourly, at("01:00"), coretest.Paused(schedule.Pause{On: true, Until: coretest.On("05:00")}), above(schedule.Pause{On: true, Until: coretest.On("04:00")})))
	if d.Status.Phase != trigger.PhasePaused || !d.Changed || d.Ledger.Paused == nil || !d.Ledger.Paused.Until.Equal(coretest.Clock("05:00")) || !d.Wake.Equal(coretest.Clock("02:00")) {
		t.Errorf("%s %v %s", d.Status.Phase, d.Ledger.Paused, d.Wake)
	}
	if d.Status.Next == nil || !d.Status.Next.At.Equal(coretest.Clock("05:00")) {
		t.Errorf("the next run of a plan paused until 05:00 is %v", d.Status.Next)
	}
	d = trigger.Decide(coretest.Facts("01:30", hourly, at("01:00"), coretest.Paused(schedule.Pause{On: true, Until: coretest.On("05:00")}), coretest.Skip(intent.Skip{Next: true})))
	if d.Status.Next == nil || !d.Status.Next.At.Equal(coretest.Clock("06:00")) {
		t.Errorf("the next run of a plan paused until 05:00 that skips the next one is %v", d.Status.Next)
	}
	minutely, later := scheduled("* * * * *"), coretest.Clock("01:30").Add(48*time.Hour)
	skipped := func(f *trigger.Facts) { f.Plan.Intent.Skip.Until = &later }
	for name, hold := range map[string]edit{"paused": coretest.Paused(schedule.Pause{On: true, Until: &later}), "paused from above": above(schedule.Pause{On: true, Until: &later}), "skipped": skipped} {
		d := trigger.Decide(coretest.Facts("01:30", minutely, at("01:30"), hold))
		if d.Status.Next == nil || !d.Status.Next.At.Equal(later) || !d.Wake.Equal(coretest.Clock("01:31")) {
			t.Errorf("the next run of a plan that is %s for two days is %v; it is looked at again at %s", name, d.Status.Next, d.Wake)
		}
	}
	again := trigger.Decide(coretest.Facts("01:30", hourly, func(f *trigger.Facts) { l := d.Ledger; f.State.Ledger = &l }, coretest.Paused(schedule.Pause{On: true, Until: coretest.On("05:00")}), above(schedule.Pause{On: true, Until: coretest.On("04:00")})))
	if again.Changed {
		t.Error("a pause is written more than once")
	}
	if by := d.Ledger.PausedBy; by == nil || by.Actor.Name != "" || again.Ledger.PausedBy == nil {
		t.Errorf("paused by %v, and looked at again by %v", by, again.Ledger.PausedBy)
	}
	resumed := trigger.Decide(coretest.Facts("01:30", hourly, func(f *trigger.Facts) { l := d.Ledger; f.State.Ledger = &l }))
	if resumed.Ledger.Paused != nil || resumed.Ledger.PausedBy != nil || !resumed.Changed {
		t.Error("a pause that is over is remembered")
	}
}

func TestNotReady(t *testing.T) {
	hourly := scheduled("0 * * * *")
	check(t, []decideCase{
		{"a slot waits", coretest.Facts("01:00", hourly, coretest.NotReady("target")), nil},
		{"until its deadline", coretest.Facts("02:00:01", hourly, coretest.NotReady("target")), []string{"01:00 Missed(target)"}},
		{"a newer one takes its place", coretest.Facts("02:00", hourly, deadline("3h"), coretest.NotReady("not-ready")), []string{"01:00 Missed(superseded)"}},
		{"under all none does", coretest.Facts("02:00", hourly, deadline("3h"), catchUp(plan.CatchUpAll), coretest.NotReady("not-ready")), nil},
		{"labels wait", coretest.Facts("01:00", labelled("k", "v"), coretest.NotReady("target")), nil},
		{"creation waits", coretest.Facts("01:00", coretest.NotReady("target"), func(f *trigger.Facts) { f.Plan.Spec.Triggers.OnCreate, f.State.Ledger.Created = true, false }), nil},
	})
	f := coretest.Facts("01:00", hourly, coretest.NotReady("target"))
	f.Ready.Again = coretest.Clock("01:00:30")
	if d := trigger.Decide(f); !d.Wake.Equal(coretest.Clock("01:00:30")) || d.Status.Phase != trigger.PhaseWaiting || !strings.Contains(d.Status.Message, "not yet") {
		t.Errorf("%s %s %s", d.Wake, d.Status.Phase, d.Status.Message)
	}
}

func TestEdits(t *testing.T) {
	old := ledgerWith(func(l *ledger.Ledger) { l.Schedules = []plan.Schedule{{Cron: "0 * * * *"}} })
	edited := func(t string) edit { return func(f *trigger.Facts) { f.Plan.EditedAt = coretest.Clock(t) } }
	check(t, []decideCase{
		{"the old schedule's slots up to the edit are Missed, also when nobody looked", coretest.Facts("03:45", scheduled("30 * * * *"), old, at("01:00"), edited("03:15")), []string{"claim slot 03:30", "02:00 Missed(edited) ×2 to 03:00"}},
		{"the new one's slots before the edit never were", coretest.Facts("03:45", scheduled("0,30 * * * *"), old, at("03:00"), edited("03:40")), nil},
		{"an edit that takes all schedules away", coretest.Facts("03:45", old, at("01:00"), edited("03:40"), ledgerWith(func(l *ledger.Ledger) {})), []string{"02:00 Missed(edited) ×2 to 03:00"}},
		{"a schedule for a plan that had none", coretest.Facts("03:45", scheduled("30 * * * *"), at("01:00"), edited("03:15"), ledgerWith(func(l *ledger.Ledger) { l.Schedules = []plan.Schedule{} })), []string{"claim slot 03:30"}},
		{"an edit of something else changes nothing", coretest.Facts("02:30", scheduled("0 * * * *"), at("01:00"), edited("02:10")), []string{"claim slot 02:00"}},
		{"an edit of the jitter alone is none", coretest.Facts("02:10", at("01:00"), edited("02:05"), func(f *trigger.Facts) {
			f.Plan.Spec.Triggers.Schedules = []plan.Schedule{{Cron: "0 * * * *", Jitter: coretest.Duration("1s")}}
			f.State.Ledger.Schedules = []plan.Schedule{{Cron: "0 * * * *"}}
		}), []string{"claim slot 02:00"}},
		{"an edit from the future is one from now", coretest.Facts("02:10", scheduled("5 * * * *"), old, at("01:00"), edited("09:00")), []string{"02:00 Missed(edited)"}},
		{"an edit seen after the watermark had passed it", coretest.Facts("02:10", scheduled("5 * * * *"), old, at("02:00"), edited("01:50")), []string{"claim slot 02:05"}},
		{"a plan that was edited before it was first seen owes nothing", coretest.Facts("02:30", scheduled("0 * * * *"), first, edited("02:10")), []string{"01:00 Missed(edited) ×2 to 02:00"}},
		{"a schedule of an older version that can no longer be read", coretest.Facts("02:10", scheduled("5 * * * *"), at("01:00"), edited("02:00"), ledgerWith(func(l *ledger.Ledger) { l.Schedules = []plan.Schedule{{Cron: "nonsense"}} })), []string{"claim slot 02:05"}},
		{"edited while paused", coretest.Facts("02:10", scheduled("5 * * * *"), old, at("01:00"), edited("02:01"), coretest.Paused(schedule.Pause{On: true})), []string{"02:00 Missed(edited)", "02:05 Skipped(paused)"}},
		{"edited while not ready", coretest.Facts("02:10", scheduled("5 * * * *"), old, at("01:00"), edited("02:01"), coretest.NotReady("target")), []string{"02:00 Missed(edited)"}},
	})
}

func TestALostLedgerStartsNothing(t *testing.T) {
	lost := func(f *trigger.Facts) { f.State.Ledger, f.State.LedgerLost = nil, true }
	handled := func(token string) edit { return func(f *trigger.Facts) { f.State.Handled = token } }
	check(t, []decideCase{
		{"neither slots, nor creation, nor a token that was handled", coretest.Facts("05:30", scheduled("0 * * * *"), lost, token("t"), handled("t"), func(f *trigger.Facts) { f.Plan.Spec.Triggers.OnCreate = true }), nil},
		{"a token that came after the one that was handled is new", coretest.Facts("05:30", lost, token("u"), handled("t")), []string{"claim token u"}},
		{"so is one on a plan that had none when it was seen", coretest.Facts("05:30", lost, token("u")), []string{"claim token u"}},
		{"where none is lost the plan is seen for the first time, and its token is recorded", coretest.Facts("05:30", first, token("u"), handled("t")), nil},
	})
	if d := trigger.Decide(coretest.Facts("05:30", lost, token("u"), handled("t"))); !d.Ledger.KnowsToken("t") || !d.Ledger.KnowsToken("u") {
		t.Errorf("%+v", d.Ledger)
	}
	d := trigger.Decide(coretest.Facts("05:30", scheduled("0 * * * *"), lost, token("t"), handled("t")))
	if !d.Changed || !d.Ledger.Watermark.Equal(coretest.Clock("05:30")) || !d.Ledger.Created || !d.Ledger.KnowsToken("t") || d.Ledger.BegunAnew == nil || !d.Ledger.BegunAnew.Equal(coretest.Clock("05:30")) {
		t.Errorf("%+v", d.Ledger)
	}
	for what, e := range map[string]edit{"first": first, "copied": func(f *trigger.Facts) { lost(f); f.State.Copied = true }} {
		if d := trigger.Decide(coretest.Facts("05:30", e)); d.Ledger.BegunAnew != nil {
			t.Errorf("%s: it says that one is lost: %+v", what, d.Ledger)
		}
	}
}

// With a ledger what it knew of labels is lost, but for what live runs and the target say.
func TestALostLedgerMakesUpNoRequestByALabel(t *testing.T) {
	lost := func(f *trigger.Facts) { f.State.Ledger, f.State.LedgerLost = nil, true }
	target := func(value, owner string, handled int64) edit {
		return func(f *trigger.Facts) {
			labelled("k", value)(f)
			f.Target.Labels["k"] = trigger.TargetLabel{Value: value, Owner: owner}
			if f.Target.Handled["k"] = handled; handled == 0 {
				delete(f.Target.Handled, "k")
			}
		}
	}
	lives := func(value string) edit {
		return func(f *trigger.Facts) {
			r := run.Request{Kind: run.ByLabel, Label: "k", Value: value, Owner: "argocd", TargetUID: "t", Ordinal: 3, At: coretest.Clock("00:30")}
			f.Live = append(f.Live, trigger.ActiveRun{Name: coretest.NameOf(r), Phase: run.Running, Request: r, TargetUID: "t"})
		}
	}
	const argo = "argocd"
	check(t, []decideCase{
		{"what a tool declares and was handled before has come back", coretest.Facts("05:30", lost, target("v", argo, 2)), []string{"returned k"}},
		{"what a tool declares and was never handled is a request", coretest.Facts("05:30", lost, target("v", argo, 0)), []string{"claim label k=v #1"}},
		{"what a person set is one", coretest.Facts("05:30", lost, target("v", "", 2)), []string{"claim label k=v #3"}},
		{"where none is lost, and the plan is new, it is one", coretest.Facts("05:30", first, target("v", argo, 2)), []string{"claim label k=v #3"}},
		{"what a live run answers is none", coretest.Facts("05:30", lost, target("v", argo, 2), policy(plan.Allow), lives("v")), nil},
		{"nor is another value before that has ended", coretest.Facts("05:30", lost, target("w", "", 2), policy(plan.Allow), lives("v")), nil},
	})
	unseen := func(f *trigger.Facts) {
		target("v", argo, 2)(f)
		f.Target = nil
		coretest.NotReady("target")(f)
	}
	gone := func(f *trigger.Facts) { f.Target.Labels = nil }
	for name, c := range map[string]struct {
		first []edit // what is seen when the ledger is lost
		then  []edit // and what later
		ends  bool   // the run that lives has ended meanwhile
		want  []string
	}{
		"its target is seen later, and what a tool declares has come back": {first: []edit{unseen}, then: []edit{target("v", argo, 2)}, want: []string{"returned k"}},
		"its target is seen later, with what a person set":                 {first: []edit{unseen}, then: []edit{target("v", "", 2)}, want: []string{"claim label k=v #3"}},
		"its target is seen later, without the label":                      {first: []edit{unseen}, then: []edit{target("v", argo, 2), gone}},
		"it comes back again":                                            {first: []edit{target("v", argo, 2)}, then: []edit{target("v", argo, 2)}, want: []string{"returned k"}},
		"the tool declares another value":                                {first: []edit{target("v", argo, 2)}, then: []edit{target("w", argo, 2)}, want: []string{"claim label k=w #3"}},
		"a value that came while a run was live has a number of its own": {first: []edit{target("v", argo, 2), lives("v")}, then: []edit{target("w", argo, 2)}, ends: true, want: []string{"claim label k=w #4"}},
		"what that run answered has come back":                           {first: []edit{target("v", argo, 2), lives("v")}, then: []edit{target("v", argo, 3)}, ends: true, want: []string{"returned k"}},
	} {
		t.Run(name, func(t *testing.T) {
			led := trigger.Decide(coretest.Facts("05:30", append([]edit{lost}, c.first...)...)).Ledger
			if c.ends {
				r := *led.Open[0].Request
				led = led.Close(led.Open[0].Run, run.Ran, "", nil, coretest.Clock("05:31")).LabelTaken(r)
			}
			f := coretest.Facts("05:31", append([]edit{func(f *trigger.Facts) { f.State.Ledger = &led }}, c.then...)...)
			if diff := cmp.Diff(c.want, told(f, trigger.Decide(f)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestALostLedgerKnowsTheLastOfSeveralLiveRequestsByALabel(t *testing.T) {
	for _, ordinals := range [][]int64{{2, 3}, {3, 2}} {
		f := coretest.Facts("05:30", policy(plan.Allow), func(f *trigger.Facts) { f.State.Ledger, f.State.LedgerLost = nil, true })
		for _, n := range ordinals {
			r := run.Request{Kind: run.ByLabel, Label: "k", Value: fmt.Sprintf("v%d", n), TargetUID: "t", Ordinal: n, At: coretest.Clock("00:30")}
			f.Live = append(f.Live, trigger.ActiveRun{Name: coretest.NameOf(r), Phase: run.Running, Request: r, TargetUID: "t"})
		}
		if got := trigger.Decide(f).Ledger.Labels["k"]; got.Claimed != 3 || got.Value != "v3" {
			t.Errorf("of %v: %+v", ordinals, got)
		}
	}
}

// An agent of an earlier version did not write down who paused.
func TestAPauseThatIsOverIsForgottenWhoeverAskedForIt(t *testing.T) {
	for name, by := range map[string][]edit{"nobody knows who": nil, "jane": {wasBy(intent.Actor{Name: "jane"})}} {
		f := coretest.Facts("05:30", append([]edit{at("05:00"), was(nil)}, by...)...)
		if l := trigger.Decide(f).Ledger; l.Paused != nil || l.PausedBy != nil {
			t.Errorf("%s: still %+v by %+v", name, l.Paused, l.PausedBy)
		}
	}
}

func TestWhetherALabelStillAsksForARun(t *testing.T) {
	for name, c := range map[string]struct {
		state  *ledger.LabelState // nil: the ledger knows nothing
		absent bool
		owner  string
		want   bool
	}{
		"nothing is known":                        {want: true},
		"it is not there":                         {absent: true},
		"it was claimed, and is still there":      {state: &ledger.LabelState{TargetUID: "t", Claimed: 3, Value: "v"}},
		"another value was claimed":               {state: &ledger.LabelState{TargetUID: "t", Claimed: 3, Value: "u"}, want: true},
		"it was taken away, and is set again":     {state: &ledger.LabelState{TargetUID: "t", Claimed: 3, Value: "v", Removed: true}, want: true},
		"it was taken away, and its tool has it":  {state: &ledger.LabelState{TargetUID: "t", Claimed: 2, Value: "v", Owner: "argocd", Removed: true}, owner: "argocd"},
		"it was claimed on another object":        {state: &ledger.LabelState{TargetUID: "t2", Claimed: 3, Value: "v"}, want: true},
		"a lost ledger may have known it":         {state: &ledger.LabelState{Lost: true}, owner: "argocd"},
		"a lost ledger, and a person has set it":  {state: &ledger.LabelState{Lost: true}, want: true},
		"it was handled under a number from here": {state: &ledger.LabelState{TargetUID: "t", Claimed: 2, Value: "v"}, want: true},
	} {
		led := ledger.Ledger{}
		if c.state != nil {
			led.Labels = map[string]ledger.LabelState{"k": *c.state}
		}
		target := &trigger.Target{UID: "t", Handled: map[string]int64{"k": 2}, Labels: map[string]trigger.TargetLabel{"k": {Value: "v", Owner: c.owner}}}
		if c.absent {
			target.Labels = nil
		}
		if got := trigger.AsksByLabel(led, "k", target); got != c.want {
			t.Errorf("%s: it asks: %t, want %t", name, got, c.want)
		}
	}
}

// A plan that is first seen while the clock is in doubt has its ledger from then on: later, what was
// published of it would call the ledger lost, and its token be taken for a new one.
func TestAPlanFirstSeenInDoubtHasItsLedger(t *testing.T) {
	doubt := func(f *trigger.Facts) { f.ClockDoubt = "clocks differ" }
	d := trigger.Decide(coretest.Facts("05:30", scheduled("0 * * * *"), first, token("t"), doubt))
	if !d.Changed || !d.Ledger.KnowsToken("t") || !d.Ledger.Watermark.Equal(coretest.Facts("05:30", first).Plan.CreatedAt) || len(d.Claims) > 0 || d.Status.Phase != trigger.PhaseWaiting {
		t.Errorf("%+v", d)
	}
	lost := func(f *trigger.Facts) { f.State.Ledger, f.State.LedgerLost = nil, true }
	if d := trigger.Decide(coretest.Facts("05:30", lost, doubt)); d.Changed {
		t.Errorf("a lost ledger begins at an instant that is in doubt: %+v", d.Ledger)
	}
}

// What a plan is said to have handled is a token that somebody wrote, no retry.
func TestTheTokenThatWasHandledLast(t *testing.T) {
	for name, c := range map[string]struct {
		tokens    []string
		now, want string
	}{
		"none":                                 {},
		"the last":                             {tokens: []string{"a", "b"}, now: "b", want: "b"},
		"not the one that is not handled":      {tokens: []string{"a", "b"}, now: "c", want: "b"},
		"no retry":                             {tokens: []string{"a", "retry/maint-run-x"}, now: "a", want: "a"},
		"retries alone":                        {tokens: []string{"retry/maint-run-x"}},
		"a token that reads like a retry's is": {tokens: []string{"a", "retry/me"}, now: "retry/me", want: "retry/me"},
	} {
		if got := trigger.HandledToken(ledger.Ledger{Tokens: c.tokens}, c.now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// over is a run whose wait ended without a start; it is about to be closed.
func over(r run.Request) edit {
	j := run.Journal{Phase: run.Pending, Waiting: run.WaitWindow}.EndUnstarted(run.End{Phase: run.Aborted, Result: run.Missed, Reason: run.ReasonDeadline}, coretest.Clock("02:00"))
	return live(trigger.ActiveRunOf(run.Run{Name: coretest.NameOf(r), Request: r}, j))
}

// Who decides just before it is closed, as after an outage, must not take it for one at work.
func TestARunThatEndsWithoutAStartKeepsNobodyWaiting(t *testing.T) {
	at := ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock("01:00") })
	slots := scheduled("0,30 * * * *")
	check(t, []decideCase{
		{"a slot under Forbid", coretest.Facts("02:00", slots, policy(plan.Forbid), catchUp(plan.CatchUpAll), deadline("45m"), at, over(coretest.SlotAt("01:00"))), []string{"claim slot 01:30"}},
		{"under Queue", coretest.Facts("01:30", slots, policy(plan.Queue), at, over(coretest.SlotAt("01:00"))), []string{"claim slot 01:30"}},
		{"what somebody asks for", coretest.Facts("01:10", slots, at, token("t"), over(coretest.SlotAt("01:00"))), []string{"claim token t"}},
		{"one that ends after its steps does", coretest.Facts("01:30", slots, policy(plan.Forbid), at, live(trigger.ActiveRun{Request: coretest.SlotAt("01:00"), Phase: run.Failed, StartedAt: coretest.On("01:00")})), []string{"01:30 Skipped(busy)"}},
	})
}

// A newer slot takes the place of what waits for its window alone, and of slots alone.
func TestWhatANewerSlotSupersedes(t *testing.T) {
	hourly := scheduled("0 * * * *")
	at := ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock("01:00") })
	pending := func(r run.Request, waiting string) edit {
		return live(trigger.ActiveRun{Request: r, Phase: run.Pending, Waiting: waiting})
	}
	slot, asked := coretest.SlotAt("01:00"), run.Request{Kind: run.ByToken, Token: "a", At: coretest.Clock("00:30")}
	check(t, []decideCase{
		{"a slot that waits for its window", coretest.Facts("02:00", hourly, policy(plan.Allow), at, pending(slot, run.WaitWindow)), []string{"claim slot 02:00", "supersede " + coretest.NameOf(slot)}},
		{"not one that waits for a lock", coretest.Facts("02:00", hourly, policy(plan.Allow), at, pending(slot, run.WaitLock)), []string{"claim slot 02:00"}},
		{"nor one that ends without a start", coretest.Facts("02:00", hourly, policy(plan.Allow), at, over(slot)), []string{"claim slot 02:00"}},
		{"nor one at work", coretest.Facts("02:00", hourly, policy(plan.Allow), at, running("01:00")), []string{"claim slot 02:00"}},
		{"nor what somebody asked for", coretest.Facts("02:00", hourly, policy(plan.Allow), at, pending(asked, run.WaitWindow)), []string{"claim slot 02:00"}},
	})
}

func TestAClaimWhoseRunIsRefusedWaitsWithoutThePlan(t *testing.T) {
	claimed := func(r run.Request) edit {
		return ledgerWith(func(l *ledger.Ledger) {
			name := coretest.NameOf(r)
			*l = l.Claim(name, r, r.TargetUID)
			*l = l.Refuse(name, "exceeded quota: few")
		})
	}
	asked := run.Request{Kind: run.ByToken, Token: "a", At: coretest.Clock("00:30")}
	label := run.Request{Kind: run.ByLabel, Label: "k", Value: "v", TargetUID: "t", Ordinal: 1, At: coretest.Clock("00:30")}
	hourly := scheduled("0 * * * *")
	at := func(watermark string) edit {
		return ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock(watermark) })
	}
	check(t, []decideCase{
		{"a slot falls due beside it", coretest.Facts("02:00", hourly, at("01:00"), claimed(asked)), []string{"claim slot 02:00"}},
		{"and under Queue", coretest.Facts("02:00", hourly, policy(plan.Queue), at("01:00"), claimed(asked)), []string{"claim slot 02:00"}},
		{"a slot that only runs dry takes no slot's place", coretest.Facts("02:00", hourly, at("01:00"), claimed(coretest.SlotAt("01:00")), deadline("2h"), func(f *trigger.Facts) { f.Plan.Spec.DryRun = true }), []string{"claim slot 02:00"}},
		{"another token asks beside it", coretest.Facts("02:00", claimed(asked), token("b")), []string{"claim token b"}},
		{"a slot waits until its deadline", coretest.Facts("02:04", hourly, deadline("5m"), at("02:00"), claimed(coretest.SlotAt("02:00"))), nil},
		{"and is then Missed", coretest.Facts("02:06", hourly, deadline("5m"), at("02:00"), claimed(coretest.SlotAt("02:00"))), []string{"02:00 Missed(refused)"}},
		{"a newer slot takes its place", coretest.Facts("03:00", hourly, deadline("2h"), at("02:00"), claimed(coretest.SlotAt("02:00"))), []string{"claim slot 03:00", "02:00 Missed(superseded)"}},
		{"a label waits without end", coretest.Facts("20:00", labelled("k", "v"), claimed(label)), nil},
		{"until it is taken away", coretest.Facts("20:00", labelled("k", "v"), func(f *trigger.Facts) { f.Target.Labels = nil }, claimed(label)), []string{"label Skipped(aborted)"}},
		{"also on a target whose version is known", coretest.Facts("20:00", labelled("k", "v"), func(f *trigger.Facts) { f.Target.Labels, f.Target.Version = nil, 5 }, claimed(label)), []string{"label Skipped(aborted)"}},
		{"a token waits without end", coretest.Facts("20:00", claimed(asked)), nil},
		{"however many are refused, a slot falls due beside them", coretest.Facts("02:00", hourly, policy(plan.Allow), at("01:00"), func(f *trigger.Facts) {
			for i := range ledger.MaxOpen {
				claimed(run.Request{Kind: run.ByToken, Token: fmt.Sprint(i), At: coretest.Clock("00:30")})(f)
			}
		}), []string{"claim slot 02:00"}},
		{"a run that was made after all is none of them", coretest.Facts("02:30", hourly, deadline("5m"), at("02:00"), claimed(coretest.SlotAt("02:00")), live(trigger.ActiveRun{Name: coretest.NameOf(coretest.SlotAt("02:00")), Request: coretest.SlotAt("02:00"), Phase: run.Running, StartedAt: coretest.On("02:01")})), nil},
	})
	d := trigger.Decide(coretest.Facts("20:00", claimed(asked)))
	if want := "the trigger waits: the API server refuses its run: exceeded quota: few"; d.Status.Refused != want || d.Status.Waiting != want || d.Status.Message != want || d.Status.Phase != trigger.PhaseWaiting {
		t.Errorf("%s: %q, %q", d.Status.Phase, d.Status.Message, d.Status.Refused)
	}
	if d = trigger.Decide(coretest.Facts("02:04", hourly, deadline("5m"), at("02:00"), claimed(coretest.SlotAt("02:00")))); !d.Wake.Equal(coretest.Clock("02:05").Add(time.Nanosecond)) {
		t.Errorf("looks again at %s", d.Wake)
	}
}

func TestCreation(t *testing.T) {
	onCreate := func(f *trigger.Facts) { f.Plan.Spec.Triggers.OnCreate = true }
	pending := func(f *trigger.Facts) { f.State.Ledger.Created = false }
	check(t, []decideCase{
		{"once, when first seen", coretest.Facts("01:00", first, onCreate), []string{"claim create"}},
		{"not twice", coretest.Facts("01:00", onCreate), nil},
		{"not for a plan that asks later", coretest.Facts("01:00", onCreate, ledgerWith(func(l *ledger.Ledger) { l.Created = true })), nil},
		{"waits while paused", coretest.Facts("01:00", onCreate, pending, coretest.Paused(schedule.Pause{On: true})), nil},
		{"waits while skipped", coretest.Facts("01:00", onCreate, pending, coretest.Skip(intent.Skip{All: true})), nil},
		{"comes after", coretest.Facts("01:00", onCreate, pending), []string{"claim create"}},
		{"not once it is no longer asked for", coretest.Facts("01:00", pending), nil},
	})
	d := trigger.Decide(coretest.Facts("01:00", first))
	if !d.Ledger.Created || !d.Changed {
		t.Error("a plan that did not ask at its creation might still")
	}
	d = trigger.Decide(coretest.Facts("01:00", pending))
	if !d.Ledger.Created {
		t.Error("a plan that gave it up might still")
	}
}

func TestTokens(t *testing.T) {
	knows := func(tokens ...string) edit {
		return ledgerWith(func(l *ledger.Ledger) {
			for _, t := range tokens {
				*l = l.WithToken(t)
			}
		})
	}
	hundred := coretest.Repeat(func(i int) string { return fmt.Sprint("t", i) }, 100)
	check(t, []decideCase{
		{"a new one asks", coretest.Facts("01:00", token("a")), []string{"claim token a"}},
		{"one found when the plan is first seen is recorded, not run", coretest.Facts("01:00", first, token("a")), nil},
		{"the same one asks nothing", coretest.Facts("01:00", token("a"), knows("a", "b")), nil},
		{"the 100th before asks nothing", coretest.Facts("01:00", token("t0"), knows(hundred...)), nil},
		{"the 101st before is forgotten, and asks", coretest.Facts("01:00", token("a"), knows(append([]string{"a"}, hundred...)...)), []string{"claim token a"}},
		{"skip does not hold it", coretest.Facts("01:00", token("a"), coretest.Skip(intent.Skip{All: true})), []string{"claim token a"}},
		{"options that cannot be read hold it: they may say dry run", coretest.Facts("01:00", token("a"), func(f *trigger.Facts) { f.Plan.Intent.Unclear = true }), nil},
	})
	f := coretest.Facts("01:00", token("a"))
	f.Plan.Intent.Asked = intent.TriggerOptions{Token: "a", Reason: "why", DryRun: true, OutsideWindow: true, Parameters: map[string]string{"x": "y"}}
	f.Plan.Intent.Actors = map[string]intent.Actor{"trigger": {Name: "jane"}}
	want := run.Request{Kind: run.ByToken, Token: "a", At: coretest.Clock("01:00"), Reason: "why", DryRun: true, OutsideWindow: true, Parameters: map[string]string{"x": "y"}, Actor: "jane"}
	if diff := cmp.Diff(want, trigger.Decide(f).Claims[0]); diff != "" {
		t.Error(diff)
	}
	f.Plan.Intent.Asked.Token = "b"
	want = run.Request{Kind: run.ByToken, Token: "a", At: coretest.Clock("01:00"), Actor: "jane"}
	if diff := cmp.Diff(want, trigger.Decide(f).Claims[0]); diff != "" {
		t.Errorf("options of another token: %s", diff)
	}
	if d := trigger.Decide(coretest.Facts("01:00", first, token("a"))); !d.Ledger.KnowsToken("a") {
		t.Error("a token found at first sight is not recorded")
	}
	answered := ledgerWith(func(l *ledger.Ledger) { *l = l.WithToken("a") })
	if d := trigger.Decide(coretest.Facts("01:00", token("a"), answered, coretest.NotReady("target"))); d.Status.Waiting != "" {
		t.Errorf("a trigger that was answered waits: %s", d.Status.Waiting)
	}
	if d := trigger.Decide(coretest.Facts("01:00", token("b"), answered, coretest.NotReady("target"))); d.Status.Waiting != "the trigger waits: not yet" {
		t.Errorf("a trigger that nobody answered waits: %q", d.Status.Waiting)
	}
}

// labelled puts a label on a target of the plan.
func labelled(key, value string) edit {
	return func(f *trigger.Facts) {
		onTarget("t")(f)
		f.Plan.Spec.Triggers.Labels = append(f.Plan.Spec.Triggers.Labels, key)
		f.Target.Labels[key] = trigger.TargetLabel{Value: value}
	}
}

func onTarget(uid string) edit {
	return func(f *trigger.Facts) {
		f.Plan.Spec.Target = &plan.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "orders"}
		if f.Target == nil {
			f.Target = &trigger.Target{Labels: map[string]trigger.TargetLabel{}, Handled: map[string]int64{}}
		}
		f.Target.UID = uid
	}
}

func TestLabels(t *testing.T) {
	handled := func(n int64) edit { return func(f *trigger.Facts) { f.Target.Handled["k"] = n } }
	knows := func(s ledger.LabelState) edit {
		return ledgerWith(func(l *ledger.Ledger) {
			if s.TargetUID == "" {
				s.TargetUID = "t"
			}
			l.Labels = map[string]ledger.LabelState{"k": s}
		})
	}
	declared := func(owner string) edit {
		return func(f *trigger.Facts) { f.Target.Labels["k"] = trigger.TargetLabel{Value: "v", Owner: owner} }
	}
	absent := func(f *trigger.Facts) {
		onTarget("t")(f)
		f.Plan.Spec.Triggers.Labels = []string{"k"}
	}
	versioned := func(v uint64) edit { return func(f *trigger.Facts) { f.Target.Version = v } }
	open := func(ordinal int64) edit {
		return live(trigger.ActiveRun{Name: "old", Phase: run.Running, Request: run.Request{Kind: run.ByLabel, Label: "k", Value: "v", TargetUID: "t", Ordinal: ordinal, At: coretest.Clock("00:30")}})
	}
	check(t, []decideCase{
		{"a label is a request", coretest.Facts("01:00", labelled("k", "v")), []string{"claim label k=v #1"}},
		{"also one without a value", coretest.Facts("01:00", labelled("k", "")), []string{"claim label k= #1"}},
		{"another label is none", coretest.Facts("01:00", labelled("k", "v"), func(f *trigger.Facts) { f.Plan.Spec.Triggers.Labels = []string{"other"} }), nil},
		{"two labels, one after the other", coretest.Facts("01:00", labelled("k", "v"), labelled("j", "w")), []string{"claim label k=v #1"}},
		{"two labels, both where runs may overlap", coretest.Facts("01:00", policy(plan.Allow), labelled("k", "v"), labelled("j", "w")), []string{"claim label k=v #1", "claim label j=w #1"}},
		{"the number goes on from the target's", coretest.Facts("01:00", labelled("k", "v"), handled(7)), []string{"claim label k=v #8"}},
		{"or from the ledger's, if that is higher", coretest.Facts("01:00", labelled("k", "v"), handled(7), knows(ledger.LabelState{Claimed: 9, Removed: true})), []string{"claim label k=v #10"}},
		{"one that is being answered is no second request", coretest.Facts("01:00", policy(plan.Allow), labelled("k", "v"), knows(ledger.LabelState{Claimed: 1, Value: "v"}), open(1)), nil},
		{"one that was answered, and waits for another plan's run to take it away, is none", coretest.Facts("01:00", labelled("k", "v"), knows(ledger.LabelState{Claimed: 1, Value: "v"})), nil},
		{"set again after it was taken away", coretest.Facts("01:00", labelled("k", "v"), handled(1), knows(ledger.LabelState{Claimed: 1, Value: "v"})), []string{"claim label k=v #2"}},
		{"set again after somebody else took it away", coretest.Facts("01:00", labelled("k", "v"), knows(ledger.LabelState{Claimed: 1, Value: "v", Removed: true})), []string{"claim label k=v #2"}},
		{"a changed value is a new request", coretest.Facts("01:00", labelled("k", "w"), handled(1), knows(ledger.LabelState{Claimed: 1, Value: "v"})), []string{"claim label k=w #2"}},
		{"also where the first was never numbered on the target", coretest.Facts("01:00", labelled("k", "w"), knows(ledger.LabelState{Claimed: 1, Value: "v"})), []string{"claim label k=w #2"}},
		{"but not before its run has ended", coretest.Facts("01:00", policy(plan.Allow), labelled("k", "w"), knows(ledger.LabelState{Claimed: 1, Value: "v"}), open(1)), nil},
		{"brought back by the tool that declares it", coretest.Facts("01:00", labelled("k", "v"), declared("argocd"), handled(1), knows(ledger.LabelState{Claimed: 1, Value: "v", Owner: "argocd"})), []string{"returned k"}},
		{"brought back with another value", coretest.Facts("01:00", labelled("k", "v"), declared("argocd"), handled(1), knows(ledger.LabelState{Claimed: 1, Value: "u", Owner: "argocd"})), []string{"claim label k=v #2"}},
		{"set by a person where the tool had it", coretest.Facts("01:00", labelled("k", "v"), handled(1), knows(ledger.LabelState{Claimed: 1, Value: "v", Owner: "argocd"})), []string{"claim label k=v #2"}},
		{"declared by a tool where a person had it", coretest.Facts("01:00", labelled("k", "v"), declared("argocd"), handled(1), knows(ledger.LabelState{Claimed: 1, Value: "v"})), []string{"claim label k=v #2"}},
		{"declared by a tool for the first time", coretest.Facts("01:00", labelled("k", "v"), declared("argocd")), []string{"claim label k=v #1"}},
		{"on another object of the same name", coretest.Facts("01:00", labelled("k", "v"), onTarget("t2"), knows(ledger.LabelState{Claimed: 5, Value: "v"})), []string{"claim label k=v #1"}},
		{"also one that a tool declares there", coretest.Facts("01:00", labelled("k", "v"), declared("argocd"), onTarget("t2"), knows(ledger.LabelState{Claimed: 5, Value: "v", Owner: "argocd"})), []string{"claim label k=v #1"}},
		{"a watch that lags behind what an earlier agent saw", coretest.Facts("01:00", labelled("k", "w"), versioned(6), knows(ledger.LabelState{Claimed: 1, Value: "v", Version: 7})), nil},
		{"a watch that has seen as much", coretest.Facts("01:00", labelled("k", "w"), versioned(7), knows(ledger.LabelState{Claimed: 1, Value: "v", Version: 7})), []string{"claim label k=w #2"}},
		{"a target whose version is no number", coretest.Facts("01:00", labelled("k", "w"), versioned(0), knows(ledger.LabelState{Claimed: 1, Value: "v", Version: 7})), []string{"claim label k=w #2"}},
		{"gone", coretest.Facts("01:00", absent, knows(ledger.LabelState{Claimed: 1, Value: "v"})), nil},
		{"no target is seen", coretest.Facts("01:00", func(f *trigger.Facts) {
			f.Plan.Spec.Triggers.Labels = []string{"k"}
			f.Plan.Spec.Target = &plan.ObjectRef{}
		}), nil},
		{"skipped until: waits", coretest.Facts("01:00", labelled("k", "v"), coretest.Skip(intent.Skip{Until: coretest.On("02:00")})), nil},
		{"skipped until: comes after", coretest.Facts("02:00", labelled("k", "v"), coretest.Skip(intent.Skip{Until: coretest.On("02:00")})), []string{"claim label k=v #1", "skip left: nothing"}},
		{"paused: waits", coretest.Facts("01:00", labelled("k", "v"), coretest.Paused(schedule.Pause{On: true, Until: coretest.On("02:00")})), nil},
		{"paused until: comes after, however late", coretest.Facts("+1 02:00", labelled("k", "v"), coretest.Paused(schedule.Pause{On: true, Until: coretest.On("02:00")})), []string{"claim label k=v #1"}},
	})
	d := trigger.Decide(coretest.Facts("01:00", absent, knows(ledger.LabelState{Claimed: 1, Value: "v"})))
	if !d.Changed || !d.Ledger.Labels["k"].Removed {
		t.Error("that a label was taken away is not noted")
	}
	d = trigger.Decide(coretest.Facts("01:00", absent, policy(plan.Allow), knows(ledger.LabelState{Claimed: 1, Value: "v"}), open(1)))
	if d.Ledger.Labels["k"].Removed {
		t.Error("a label that goes while its run lives is the run's affair")
	}
	d = trigger.Decide(coretest.Facts("01:00", labelled("k", "v"), declared("argocd")))
	want := run.Request{Kind: run.ByLabel, Label: "k", Value: "v", Owner: "argocd", TargetUID: "t", Ordinal: 1, At: coretest.Clock("01:00")}
	if diff := cmp.Diff(want, d.Claims[0]); diff != "" || d.Ledger.Open[0].TargetUID != "t" {
		t.Error(diff)
	}
}

// What sets a label and what takes it away may answer each other for ever, as fast as they can:
// the runs slow down to what is earned, and the plan says why.
func TestALabelThatComesAndGoesComesToRest(t *testing.T) {
	const minutes = 20
	for name, change := range map[string]func(f *trigger.Facts, second int){
		"its value changes": func(f *trigger.Facts, second int) { labelled("k", fmt.Sprint(second))(f) },
		"it comes and goes": func(f *trigger.Facts, second int) {
			if labelled("k", "v")(f); second%2 == 0 {
				delete(f.Target.Labels, "k")
			}
		},
		"its target is made anew": func(f *trigger.Facts, second int) {
			labelled("k", "v")(f)
			f.Target.UID = fmt.Sprint("t", second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			led, runs, said, wakes := coretest.Facts("01:00").State.Ledger, 0, "", true
			for second := range minutes * 60 {
				f := coretest.Facts("01:00", policy(plan.Allow), func(f *trigger.Facts) { change(f, second) })
				f.Now, f.State.Ledger = f.Now.Add(time.Duration(second)*time.Second), led
				d := trigger.Decide(f)
				runs += len(d.Claims)
				if d.Status.Waiting != "" {
					said, wakes = d.Status.Waiting, wakes && d.Wake.After(f.Now)
				}
				d.Ledger.Open = nil // each run ends at once
				led = &d.Ledger
			}
			if most := ledger.WatchBurst + minutes; runs > most || runs < most-1 {
				t.Errorf("%d runs in %d minutes, at most %d", runs, minutes, most)
			}
			if !strings.Contains(said, "label k waits until ") || !strings.Contains(said, "it comes again and again") || !wakes {
				t.Errorf("it says %q, and is looked at again: %t", said, wakes)
			}
		})
	}
}

// Many labels on one target share what the plan may have.
func TestManyLabelsOfAPlanComeToRest(t *testing.T) {
	led, runs, said := coretest.Facts("01:00").State.Ledger, 0, ""
	for second := range 60 {
		f := coretest.Facts("01:00", policy(plan.Allow))
		for i := range 30 {
			labelled(fmt.Sprint("k", i), fmt.Sprint(second))(&f)
		}
		f.Now, f.State.Ledger = f.Now.Add(time.Duration(second)*time.Second), led
		d := trigger.Decide(f)
		runs += len(d.Claims)
		if d.Status.Waiting != "" {
			said = d.Status.Waiting
		}
		d.Ledger.Open = nil
		led = &d.Ledger
	}
	if most := ledger.PlanBurst + 6; runs > most || runs < ledger.PlanBurst || !strings.Contains(said, "labels and watched changes of this plan have had 300 runs one after another; from here on they have one in 10s") || strings.Contains(said, "Plans that watch") {
		t.Errorf("%d runs in a minute, at most %d; it says %q", runs, most, said)
	}
}

func TestRetry(t *testing.T) {
	last := func(name string, phase run.Phase) edit {
		return ledgerWith(func(l *ledger.Ledger) {
			l.Last = &ledger.LastRun{Name: name, Phase: phase, Request: run.Request{Parameters: map[string]string{"a": "b"}, DryRun: true}}
		})
	}
	retry := func(name string) edit {
		return func(f *trigger.Facts) { f.Plan.Intent.Retry = intent.RunRef{Run: name} }
	}
	check(t, []decideCase{
		{"of the newest failed run", coretest.Facts("01:00", last("r", run.Failed), retry("r")), []string{"claim token retry/r"}},
		{"of the newest aborted run", coretest.Facts("01:00", last("r", run.Aborted), retry("r")), []string{"claim token retry/r"}},
		{"not of one that succeeded", coretest.Facts("01:00", last("r", run.Succeeded), retry("r")), nil},
		{"not of another", coretest.Facts("01:00", last("r2", run.Failed), retry("r")), nil},
		{"not of none", coretest.Facts("01:00", retry("r")), nil},
		{"not twice", coretest.Facts("01:00", last("r", run.Failed), retry("r"), ledgerWith(func(l *ledger.Ledger) { *l = l.WithToken("retry/r") })), nil},
		{"waits while a run lives", coretest.Facts("01:00", last("r", run.Failed), retry("r"), running("00:30")), nil},
		{"also where runs may overlap", coretest.Facts("01:00", policy(plan.Allow), last("r", run.Failed), retry("r"), running("00:30")), nil},
		{"waits while paused", coretest.Facts("01:00", last("r", run.Failed), retry("r"), coretest.Paused(schedule.Pause{On: true})), nil},
	})
	d := trigger.Decide(coretest.Facts("01:00", last("r", run.Failed), retry("r")))
	if c := d.Claims[0]; c.Parameters["a"] != "b" || !c.DryRun || c.Reason != "retry of r" {
		t.Errorf("%+v", c)
	}
	for name, c := range map[string]struct {
		f    trigger.Facts
		want bool
	}{
		"taken up": {func() trigger.Facts {
			f := coretest.Facts("01:00", retry("r"))
			l := d.Ledger
			f.State.Ledger = &l
			return f
		}(), true},
		"means nothing":    {coretest.Facts("01:00", last("r", run.Succeeded), retry("r")), true},
		"still to be done": {coretest.Facts("01:00", last("r", run.Failed), retry("r")), false},
		"not asked":        {coretest.Facts("01:00", last("r", run.Failed)), false},
	} {
		if got := trigger.RetryHandled(*c.f.State.Ledger, c.f.Plan.Intent.Retry); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWakesWhenTheAnswerMayDiffer(t *testing.T) {
	hourly := scheduled("0 * * * *")
	at1 := ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock("01:00") })
	for name, c := range map[string]struct {
		f    trigger.Facts
		want string
	}{
		"the next slot":                       {coretest.Facts("01:30", hourly, at1), "02:00"},
		"the next slot, also one to skip":     {coretest.Facts("01:30", hourly, at1, coretest.Skip(intent.Skip{All: true})), "02:00"},
		"the end of a pause":                  {coretest.Facts("01:30", coretest.Paused(schedule.Pause{On: true, Until: coretest.On("01:45")})), "01:45"},
		"the end of a skip":                   {coretest.Facts("01:30", coretest.Skip(intent.Skip{Until: coretest.On("01:45")})), "01:45"},
		"the deadline of a slot that waits":   {coretest.Facts("01:30", hourly, deadline("40m"), coretest.NotReady("target")), "01:40:00.000000001"},
		"the deadline of a slot in the queue": {coretest.Facts("02:30", hourly, at1, policy(plan.Queue), running("01:00"), deadline("40m")), "02:40:00.000000001"},
		"nothing":                             {coretest.Facts("01:30"), ""},
		"in doubt, soon":                      {coretest.Facts("01:30", hourly, func(f *trigger.Facts) { f.ClockDoubt = "x" }), "01:30:30"},
	} {
		got := ""
		if d := trigger.Decide(c.f); !d.Wake.IsZero() {
			got = d.Wake.Format("15:04:05.999999999")
		}
		if strings.TrimSuffix(got, ":00") != c.want {
			t.Errorf("%s: wakes at %q, not at %s", name, got, c.want)
		}
	}
}

// gated puts a policy named night before the plan.
func gated(t *testing.T, spec schedule.PolicySpec) edit {
	t.Helper()
	p, err := schedule.ParsePolicy("night", spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(f *trigger.Facts) { f.Gate = schedule.NewGate(schedule.GateSpec{Policies: []*schedule.Policy{p}}) }
}

func TestPhases(t *testing.T) {
	hourly := scheduled("0 * * * *")
	night := schedule.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: &schedule.MaintenanceSchedule{Windows: []schedule.Window{{Start: "22:00", End: "00:00"}}}}
	at1 := ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock("01:00") })
	at2 := ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock("22:00") })
	for want, f := range map[string]trigger.Facts{
		"Idle: next run 2026-12-05T02:00:00Z UTC":                                               coretest.Facts("01:30", hourly, at1),
		"Idle: waits to be triggered: 'kubectl maint -n shop trigger orders'":                   coretest.Facts("01:30"),
		"Idle: waits for a trigger label on Deployment/orders":                                  coretest.Facts("01:30", onTarget("t"), func(f *trigger.Facts) { f.Plan.Spec.Triggers.Labels = []string{"k"} }),
		"Running: a run begins (schedule)":                                                      coretest.Facts("01:00", hourly),
		"Running: a run begins (label:k)":                                                       coretest.Facts("01:00", labelled("k", "v")),
		"Running: run x is at work":                                                             coretest.Facts("01:00", live(trigger.ActiveRun{Name: "x", Phase: run.Running})),
		"Running: run x is at work: step a waits: a Secret":                                     coretest.Facts("01:00", live(trigger.ActiveRun{Name: "x", Phase: run.Running, Waits: true, Message: "step a waits: a Secret"})),
		"Waiting: run x is held: the window is shut":                                            coretest.Facts("01:00", live(trigger.ActiveRun{Name: "x", Phase: run.Running, Held: true, Message: "the window is shut"})),
		"Running: run x is at work; the trigger waits for run x":                                coretest.Facts("01:00", live(trigger.ActiveRun{Name: "x", Phase: run.Running, Request: run.Request{At: coretest.Clock("00:30")}}), token("a")),
		"Running: dry run x is at work; the trigger waits for dry run x":                        coretest.Facts("01:00", live(trigger.ActiveRun{Name: "x", Phase: run.Running, Request: run.Request{At: coretest.Clock("00:30"), DryRun: true}}), token("a")),
		"Waiting: dry run x waits for its window; the slot 2026-12-05T01:00:00Z waits: not yet": coretest.Facts("01:00", hourly, coretest.NotReady("target"), live(trigger.ActiveRun{Name: "x", Phase: run.Pending, Waiting: run.WaitWindow, Message: "waits for its window", Request: run.Request{DryRun: true}})),
		"Waiting: run x waits: lock; the trigger waits for run x":                               coretest.Facts("01:00", live(trigger.ActiveRun{Name: "x", Phase: run.Pending, Waiting: run.WaitLock, Request: run.Request{At: coretest.Clock("00:30")}}), token("a")),
		"Waiting: run x waits: lock":                                                            coretest.Facts("01:00", live(trigger.ActiveRun{Name: "x", Phase: run.Pending, Waiting: run.WaitLock})),
		"Waiting: run x waits for its window":                                                   coretest.Facts("01:00", live(trigger.ActiveRun{Name: "x", Phase: run.Pending, Waiting: run.WaitWindow, Message: "waits for its window"})),
		"Waiting: the trigger waits: maint.dev/trigger-options is not understood":               coretest.Facts("01:00", token("a"), func(f *trigger.Facts) { f.Plan.Intent.Unclear = true }),
		"Paused: paused; 'kubectl maint -n shop resume orders' ends it":                         coretest.Facts("01:00", coretest.Paused(schedule.Pause{On: true})),
		"Paused: paused until 2026-12-05T02:00:00Z":                                             coretest.Facts("01:00", coretest.Paused(schedule.Pause{On: true, Until: coretest.On("02:00")})),
		"Paused: namespace shop is paused by jane: CHG-1": coretest.Facts("01:00", func(f *trigger.Facts) {
			f.Pauses = []schedule.Pause{{On: true, Of: "namespace shop", By: " by jane: CHG-1"}}
		}),
		"Invalid: line 3: spec: is wrong":                       coretest.Facts("01:00", func(f *trigger.Facts) { f.Plan.Faults = document.Faults{{Line: 3, Path: "spec", Message: "is wrong"}} }),
		"Waiting: clocks differ":                                coretest.Facts("01:00", func(f *trigger.Facts) { f.ClockDoubt = "clocks differ" }),
		"Waiting: the slot 2026-12-05T01:00:00Z waits: not yet": coretest.Facts("01:00", hourly, coretest.NotReady("target")),
		"Idle: next run 2026-12-05T02:00:00Z UTC, outside of its window, which opens at 2026-12-05T22:00:00Z, too late: its slot is Missed at 2026-12-05T03:00:00Z (policy night: outside of the windows)": coretest.Facts("01:30", hourly, at1, gated(t, night)),
		"Idle: next run 2026-12-05T02:00:00Z UTC, outside of its window, which does not open by itself (policy night: Restrictive)":                                                                        coretest.Facts("01:30", hourly, at1, gated(t, schedule.PolicySpec{Strategy: schedule.Restrictive})),
		"Idle: next run 2026-12-05T23:00:00Z UTC": coretest.Facts("22:30", hourly, at2, gated(t, night)),
		"Waiting: not yet":                        coretest.Facts("00:30", hourly, coretest.NotReady("target")),
	} {
		d := trigger.Decide(f)
		if got := string(d.Status.Phase) + ": " + d.Status.Message; got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// A slot that waits is known with what it waits for, and up to when.
func TestASlotThatIsDueAndWaits(t *testing.T) {
	hourly := scheduled("0 * * * *")
	for name, c := range map[string]struct {
		facts trigger.Facts
		why   string
	}{
		"until the plan is ready":   {coretest.Facts("01:10", hourly, deadline("30m"), coretest.NotReady("target")), "not yet"},
		"for its turn":              {coretest.Facts("01:10", hourly, deadline("30m"), policy(plan.Queue), running("00:00")), ""},
		"beside a run that is live": {coretest.Facts("01:10", hourly, deadline("30m"), coretest.NotReady("target"), live(trigger.ActiveRun{Name: "x", Phase: run.Pending, Waiting: run.WaitWindow})), "not yet"},
	} {
		due := trigger.Decide(c.facts).Status.Due
		if due == nil || !due.At.Equal(coretest.Clock("01:00")) || due.Why != c.why || due.Missed.Truncate(time.Second) != coretest.Clock("01:30") {
			t.Errorf("%s: %+v", name, due)
		}
	}
	if due := trigger.Decide(coretest.Facts("01:10", hourly)).Status.Due; due != nil {
		t.Errorf("one that is claimed: %+v", due)
	}
}

// What asks for more runs than anybody could want waits, and stalls nothing.
func TestClaimsAreBounded(t *testing.T) {
	f := coretest.Facts("05:00", scheduled("* * * * *"), policy(plan.Allow), catchUp(plan.CatchUpAll), deadline("30d"), token("t"))
	d := trigger.Decide(f)
	if len(d.Ledger.Open) != ledger.MaxOpen || d.Claims[0].Kind != run.ByToken || d.Wake.IsZero() {
		t.Errorf("%d claims, wakes at %s", len(d.Ledger.Open), d.Wake)
	}
	f.State.Ledger, f.Plan.Intent.Token = &d.Ledger, "t2"
	again := trigger.Decide(f)
	if len(again.Claims) != 0 || again.Ledger.KnowsToken("t2") {
		t.Errorf("%d more", len(again.Claims))
	}
	policy(plan.Replace)(&f)
	f.Live, f.Now = nil, f.Now.Add(time.Minute)
	for _, e := range d.Ledger.Open { // none gives way to the next
		f.Live = append(f.Live, trigger.ActiveRun{Name: e.Run, Phase: run.Pending, Waiting: run.WaitJitter, Request: *e.Request})
	}
	if again := trigger.Decide(f); len(again.Claims) != 0 {
		t.Errorf("under Replace %d more", len(again.Claims))
	}
}

// Whoever may write ConfigMaps may put a watermark back: a plan owes nothing from
// before it was there.
func TestALedgerFromBeforeThePlanOwesNothing(t *testing.T) {
	f := coretest.Facts("02:30", scheduled("0 * * * *"), lookingSince("02:30"), catchUp(plan.CatchUpAll), ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock("00:00").AddDate(-1, 0, 0) }))
	d := trigger.Decide(f)
	if first := d.Ledger.Watermark; first.Before(f.Plan.CreatedAt) {
		t.Errorf("the watermark stays at %s", first)
	}
	slots := 0
	for _, n := range d.Ledger.Totals {
		slots += int(n)
	}
	if slots += len(d.Ledger.Open); slots > 2 {
		t.Errorf("%d slots of a plan that had two", slots)
	}
}

// After a long outage a look passes so many slots and no more, and another follows soon; in
// the end each slot has its entry, and the newest has its run.
func TestALookPassesSoManySlotsAndNoMore(t *testing.T) {
	const most, month = 10_000, 30 * 24 * 60
	f := coretest.Facts("02:30", scheduled("* * * * *"), lookingSince("02:30"), catchUp(plan.CatchUpLatest), ledgerWith(func(l *ledger.Ledger) {
		l.Watermark = coretest.Clock("02:30").Add(-month * time.Minute)
	}))
	f.Plan.CreatedAt = f.State.Ledger.Watermark
	f.Plan.EditedAt = f.Plan.CreatedAt
	for look := 1; ; look++ {
		before := f.State.Ledger.Watermark
		d := trigger.Decide(f)
		passed := int(d.Ledger.Watermark.Sub(before) / time.Minute)
		if over := d.Ledger.Watermark.Equal(coretest.Clock("02:30")); over {
			if len(d.Ledger.Open) != 1 || !d.Ledger.Open[0].Slot.Equal(coretest.Clock("02:30")) {
				t.Errorf("claimed: %+v", d.Ledger.Open)
			}
			total := len(d.Ledger.Open)
			for _, n := range d.Ledger.Totals {
				total += int(n)
			}
			if look != month/most+1 || total != month {
				t.Errorf("%d slots in %d looks", total, look)
			}
			return
		}
		if passed != most || d.Wake.IsZero() || d.Wake.Sub(f.Now) > time.Second || len(d.Ledger.Open) > 0 || look > month {
			t.Fatalf("look %d passed %d slots, the next is at %s, claimed %d", look, passed, d.Wake, len(d.Ledger.Open))
		}
		f.State.Ledger = &d.Ledger
		f.Now = d.Wake
	}
}

// An edit after a long outage ends what the former schedule owed, so many slots in a look; until
// all have their entry nothing of the new schedule is counted.
func TestAnEditAfterALongOutageEndsSoManySlotsInALook(t *testing.T) {
	const most, month = 10_000, 30 * 24 * 60
	f := coretest.Facts("02:30", scheduled("0 * * * *"), lookingSince("02:30"), catchUp(plan.CatchUpAll), ledgerWith(func(l *ledger.Ledger) {
		l.Watermark, l.Schedules = coretest.Clock("02:30").Add(-month*time.Minute), []plan.Schedule{{Cron: "* * * * *"}}
	}))
	f.Plan.CreatedAt, f.Plan.EditedAt = f.State.Ledger.Watermark, coretest.Clock("02:30")
	for look := 1; ; look++ {
		before := f.State.Ledger.Watermark
		d := trigger.Decide(f)
		if len(d.Claims) > 0 {
			t.Fatalf("look %d claims %+v", look, d.Claims)
		}
		if len(d.Ledger.Schedules) == 1 && d.Ledger.Schedules[0].Cron == "0 * * * *" {
			if n := d.Ledger.Totals[run.Missed]; look != month/most+1 || n != month || !d.Ledger.Watermark.Equal(f.Plan.EditedAt) || len(d.Ledger.Recent) != 1 || d.Ledger.Recent[0].Reason != run.ReasonEdited {
				t.Errorf("%d slots in %d looks up to %s: %+v", n, look, d.Ledger.Watermark, d.Ledger.Recent)
			}
			return
		}
		if passed := int(d.Ledger.Watermark.Sub(before) / time.Minute); passed != most || d.Wake.IsZero() || d.Wake.Sub(f.Now) > time.Second || look > month {
			t.Fatalf("look %d passed %d slots, the next is at %s", look, passed, d.Wake)
		}
		f.State.Ledger, f.Now = &d.Ledger, d.Wake
	}
}

// A plan that was edited before anybody saw it has an entry for each of its slots, like one that was
// not edited; none of those before the edit runs. A look passes so many and no more, and the others
// are passed in the next ones, whatever becomes of the plan meanwhile.
func TestAPlanThatIsSeenLateCountsEachSlotBeforeItsEdit(t *testing.T) {
	const most, days, hour = 10_000, 29, 60
	hourly := []plan.Schedule{{Cron: "0 * * * *"}}
	for name, c := range map[string]struct {
		then   edit // after the first look
		missed int64
		edited int64
	}{
		"nothing comes between":         {func(*trigger.Facts) {}, days*24*60 - 1, days*24*60 - hour},
		"its managedFields are gone":    {func(f *trigger.Facts) { f.Plan.EditedAt = f.Plan.CreatedAt }, days*24*60 - 1, days*24*60 - hour},
		"something else is edited":      {func(f *trigger.Facts) { f.Plan.EditedAt = f.Now }, days*24*60 - 1, days*24*60 - hour},
		"its schedules are edited then": {func(f *trigger.Facts) { f.Plan.EditedAt, f.Plan.Spec.Triggers.Schedules = f.Now, hourly }, days * 24 * 60, days * 24 * 60},
		"a ledger that somebody wrote":  {func(f *trigger.Facts) { f.State.Ledger.EditedUntil = new(f.Now.AddDate(1, 0, 0)) }, days * 24 * 60, days * 24 * 60},
	} {
		t.Run(name, func(t *testing.T) {
			f := coretest.Facts("02:30", scheduled("* * * * *"), lookingSince("02:30"), first)
			f.Plan.CreatedAt, f.Plan.EditedAt = f.Now.AddDate(0, 0, -days), f.Now.Add(-hour*time.Minute)
			end, claims, last := f.Now, 0, f.Plan.CreatedAt
			var d trigger.Decision
			for look := 1; last.Before(end); look++ {
				d = trigger.Decide(f)
				passed := int(d.Ledger.Watermark.Sub(last) / time.Minute)
				if passed > 2*most || look > 10 {
					t.Fatalf("look %d passed %d slots", look, passed)
				}
				if d.Ledger.Watermark.Before(end) && (d.Wake.IsZero() || d.Wake.Sub(f.Now) > time.Second) {
					t.Fatalf("look %d is at %s, and the next at %s", look, d.Ledger.Watermark, d.Wake)
				}
				last, claims = d.Ledger.Watermark, claims+len(d.Claims)
				f.State.Ledger, f.Now = &d.Ledger, d.Wake
				if look == 1 {
					if passed != most {
						t.Fatalf("the first look passed %d slots", passed)
					}
					c.then(&f)
				}
			}
			var edited int64
			for _, e := range d.Ledger.Recent {
				if e.Reason == run.ReasonEdited {
					edited += e.Count
				}
			}
			if got := d.Ledger.Totals[run.Missed]; got != c.missed || edited != c.edited || int64(claims) != days*24*60-c.missed || d.Ledger.EditedUntil != nil {
				t.Errorf("%d missed, %d of them edited, %d claimed, edited until %v: %+v", got, edited, claims, d.Ledger.EditedUntil, d.Ledger.Recent)
			}
		})
	}
}

// A run of ten days is more slots than a look passes: what runs is the newest before it, and
// not the first of all.
func TestTheNewestRunnableSlotIsFoundBehindManyThatAreNot(t *testing.T) {
	now := coretest.Clock("02:30").Add(30 * time.Second)
	began, middle, over := now.Add(-10*24*time.Hour-30*time.Second), now.AddDate(0, 0, -5), now.Add(-time.Second)
	ran := func(entries ...ledger.Entry) edit {
		return ledgerWith(func(l *ledger.Ledger) { l.Recent = entries })
	}
	for name, c := range map[string]struct {
		in   edit
		want time.Time // zero: none
	}{
		"a run that has ended":      {ran(ledger.Entry{Run: "old", Result: run.Ran, StartedAt: &began, At: over}), began.Add(-time.Minute)},
		"two runs after each other": {ran(ledger.Entry{Run: "a", Result: run.Ran, StartedAt: &began, At: middle}, ledger.Entry{Run: "b", Result: run.Ran, StartedAt: &middle, At: over}), began.Add(-time.Minute)},
		"a run of long ago":         {ran(ledger.Entry{Run: "old", Result: run.Ran, StartedAt: &began, At: middle}), coretest.Clock("02:30")},
		"nobody knows since when":   {ran(ledger.Entry{Run: "old", Result: run.Ran, At: over}), coretest.Clock("02:30")},
		"a pause of long ago":       {coretest.Paused(schedule.Pause{On: true, Until: &began}), coretest.Clock("02:30")},
		"a pause until just now":    {coretest.Paused(schedule.Pause{On: true, Until: &over}), time.Time{}},
		"a skip until just now":     {coretest.Skip(intent.Skip{Until: &over}), time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := coretest.Facts("02:30", scheduled("* * * * *"), deadline("720h"), catchUp(plan.CatchUpLatest), c.in)
			f.Now, f.LeadingSince = now, now
			f.Plan.CreatedAt = now.AddDate(0, 0, -20)
			f.Plan.EditedAt, f.State.Ledger.Watermark = f.Plan.CreatedAt, f.Plan.CreatedAt
			var got time.Time
			claims := 0
			for range 3 { // looks, each of which passes so many slots
				d := trigger.Decide(f)
				if claims += len(d.Claims); len(d.Claims) > 0 {
					got = *d.Claims[0].Slot
				}
				f.State.Ledger = &d.Ledger
			}
			if !got.Equal(c.want) || claims > 1 {
				t.Errorf("%d runs, of %s, want that of %s", claims, got, c.want)
			}
		})
	}
}

// Where a skip names more slots than a look passes, what runs is the newest that it does not name.
func TestTheNewestRunnableSlotIsFoundBehindManyThatASkipNames(t *testing.T) {
	const named = 10_001
	skip := intent.Skip{}
	for i := range named {
		skip.Slots = append(skip.Slots, coretest.Clock("02:30").Add(-time.Duration(i)*time.Minute))
	}
	f := coretest.Facts("02:30", scheduled("* * * * *"), deadline("720h"), lookingSince("02:30"), catchUp(plan.CatchUpLatest), coretest.Skip(skip))
	f.Plan.CreatedAt = f.Now.Add(-(named + 2) * time.Minute)
	f.Plan.EditedAt, f.State.Ledger.Watermark = f.Plan.CreatedAt, f.Plan.CreatedAt
	d := trigger.Decide(f)
	if want := f.Now.Add(-named * time.Minute); len(d.Claims) != 1 || !d.Claims[0].Slot.Equal(want) || d.Ledger.Recent[0].Reason != run.ReasonSuperseded || d.Ledger.Recent[0].Count > 1 {
		t.Errorf("claimed %+v, want the slot of %s: %+v", d.Claims, want, d.Ledger.Recent)
	}
}

// A plan that does not say when it was created owes nothing of the past, and costs no walk
// through all slots since the year 1.
func TestAPlanWithoutACreationBeginsNow(t *testing.T) {
	unborn := func(f *trigger.Facts) {
		f.Plan.CreatedAt, f.LeadingSince, f.Plan.EditedAt = time.Time{}, time.Time{}, time.Time{}
	}
	for name, edits := range map[string][]edit{
		"that is seen for the first time":     {scheduled("* * * * *"), first, unborn},
		"whose ledger does not say it either": {scheduled("* * * * *"), ledgerWith(func(l *ledger.Ledger) { l.Watermark = time.Time{} }), unborn},
	} {
		t.Run(name, func(t *testing.T) {
			f := coretest.Facts("03:00", edits...)
			d := trigger.Decide(f)
			if !d.Ledger.Watermark.Equal(f.Now) || len(told(f, d)) > 0 || d.Status.Next == nil || !d.Status.Next.At.Equal(f.Now.Add(time.Minute)) {
				t.Errorf("watermark %s, %q, next %v", d.Ledger.Watermark, told(f, d), d.Status.Next)
			}
		})
	}
	f := coretest.Facts("03:00", scheduled("0 * * * *"), ledgerWith(func(l *ledger.Ledger) { l.Watermark = coretest.Clock("02:30") }), unborn)
	if got := told(f, trigger.Decide(f)); len(got) != 1 || got[0] != "claim slot 03:00" {
		t.Errorf("a ledger that knows how far it is counts on: %q", got)
	}
}

// What kept a slot from running is remembered with who said so, also of a pause above the plan.
func TestASlotThatDidNotRunSaysByWhom(t *testing.T) {
	hourly := scheduled("0 * * * *")
	jane := intent.Actor{Name: "jane", Verified: true, Reason: "CHG-1"}
	by := func(what string) edit {
		return func(f *trigger.Facts) { f.Plan.Intent.Actors = map[string]intent.Actor{what: jane} }
	}
	for name, c := range map[string]struct {
		facts trigger.Facts
		said  string
		actor string
	}{
		"skipped": {coretest.Facts("02:00", hourly, at("01:00"), coretest.Skip(intent.Skip{Next: true}), by("skip")), "skip by jane: CHG-1", "jane"},
		"paused":  {coretest.Facts("02:00", hourly, at("01:00"), coretest.Paused(schedule.Pause{On: true, By: " by jane: CHG-1"}), by("pause")), "paused by jane: CHG-1", "jane"},
		"paused above": {
			coretest.Facts("02:00", hourly, at("01:00"), above(schedule.Pause{On: true, Of: "namespace shop", By: " by joe: CHG-2"})), "namespace shop is paused by joe: CHG-2", "",
		},
		"paused and resumed":                           {coretest.Facts("02:10", hourly, at("01:00"), was(nil)), "paused, and resumed since", ""},
		"paused and resumed, by whom the ledger knows": {coretest.Facts("02:10", hourly, at("01:00"), was(nil), wasBy(jane)), "paused by jane: CHG-1, and resumed since", "jane"},
		"a pause that was found later":                 {coretest.Facts("02:10", hourly, at("01:00"), lookingSince("02:05"), coretest.Paused(schedule.Pause{On: true, By: " by jane: CHG-1"}), by("pause")), "paused by jane: CHG-1, as it was found later", "jane"},
		"a pause that an agent before saw":             {coretest.Facts("02:10", hourly, at("01:00"), lookingSince("02:05"), was(nil), wasBy(jane), coretest.Paused(schedule.Pause{On: true, By: " by jane: CHG-1"}), by("pause")), "paused by jane: CHG-1", "jane"},
		"a pause that a ledger of an older agent saw":  {coretest.Facts("02:10", hourly, at("01:00"), lookingSince("02:05"), was(nil), coretest.Paused(schedule.Pause{On: true, By: " by jane: CHG-1"}), by("pause")), "paused by jane: CHG-1", "jane"},
		"two pauses, the longer of which an agent saw": {coretest.Facts("02:10", hourly, at("01:00"), lookingSince("02:05"), was(nil), ledgerWith(func(l *ledger.Ledger) {
			l.PausedBy = &ledger.Cause{Said: schedule.Pause{On: true, By: " by ops"}.Said()}
		}), coretest.Paused(schedule.Pause{On: true, By: " by jane: CHG-1"}), above(schedule.Pause{On: true, By: " by ops"}), by("pause")), "paused by ops", ""},
		"a long reason":                            {coretest.Facts("02:10", hourly, at("01:00"), lookingSince("02:05"), coretest.Paused(schedule.Pause{On: true, By: " by " + strings.Repeat("x", 400)}), by("pause")), document.Cut("paused by "+strings.Repeat("x", 400), 256-len(", as it was found later")) + ", as it was found later", "jane"},
		"a skip that was found later":              {coretest.Facts("02:10", hourly, at("01:00"), lookingSince("02:05"), coretest.Skip(intent.Skip{Slots: []time.Time{coretest.Clock("02:00")}}), by("skip")), "skip by jane: CHG-1", "jane"},
		"a skip of the next that was found later":  {coretest.Facts("02:10", hourly, at("01:00"), lookingSince("02:05"), coretest.Skip(intent.Skip{Next: true}), by("skip")), "skip by jane: CHG-1", "jane"},
		"a skip until a time that was found later": {coretest.Facts("02:10", hourly, at("01:00"), lookingSince("02:05"), coretest.Skip(intent.Skip{Until: new(coretest.Clock("02:30"))}), by("skip")), "skip by jane: CHG-1", "jane"},
		"too late": {coretest.Facts("04:50", hourly, at("03:00"), deadline("10m")), "", ""},
	} {
		recent := trigger.Decide(c.facts).Ledger.Recent
		if len(recent) != 1 || recent[0].Said != c.said || recent[0].Actor != c.actor {
			t.Errorf("%s: %+v", name, recent)
		}
	}
}

// A dry run changes nothing: metrics do not call it a change that waits.
func TestWhetherWhatWaitsIsToChangeSomething(t *testing.T) {
	dry := func(f *trigger.Facts) {
		f.Plan.Intent.Asked = intent.TriggerOptions{Token: f.Plan.Intent.Token, DryRun: true}
	}
	paused := above(schedule.Pause{On: true})
	notReady := func(f *trigger.Facts) { f.Ready = trigger.Readiness{Message: "no account"} }
	for name, c := range map[string]struct {
		facts     trigger.Facts
		waits, to bool
	}{
		"nothing waits": {coretest.Facts("01:00", at("00:00")), false, false},
		"a trigger":     {coretest.Facts("01:00", at("00:00"), token("a"), paused), true, true},
		"a dry trigger": {coretest.Facts("01:00", at("00:00"), token("a"), dry, paused), true, false},
		"a dry trigger of a plan that is not ready":   {coretest.Facts("01:00", at("00:00"), token("a"), dry, notReady), true, false},
		"a trigger of a plan that is not ready":       {coretest.Facts("01:00", at("00:00"), token("a"), notReady), true, true},
		"options of another token":                    {coretest.Facts("01:00", at("00:00"), dry, token("a"), paused), true, true},
		"a trigger of a plan that changes nothing":    {coretest.Facts("01:00", at("00:00"), token("a"), paused, func(f *trigger.Facts) { f.Plan.Spec.DryRun = true }), true, false},
		"a dry trigger, and a slot that waits beside": {coretest.Facts("01:00", scheduled("0 1 * * *"), at("00:30"), token("a"), dry, notReady), true, true},
	} {
		if got := trigger.Decide(c.facts).Status; (got.Waiting != "") != c.waits || got.WaitsToAct != c.to {
			t.Errorf("%s: %q, to change something: %t", name, got.Waiting, got.WaitsToAct)
		}
	}
}
