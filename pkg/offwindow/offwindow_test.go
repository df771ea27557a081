package offwindow_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/offwindow"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// nights are 20:00 to 06:00 UTC.
func nights(t *testing.T) *hibernate.Timetable {
	t.Helper()
	table, err := hibernate.NewTimetable(hibernate.Spec{Schedule: hibernate.Schedule{OffHours: []schedule.OffHours{{Start: "20:00", End: "06:00"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func at(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC) }

// diff compares values; an empty list is none.
func diff(want, got any) string { return gocmp.Diff(want, got, cmpopts.EquateEmpty()) }

func TestWhatBecomesOfOffWindows(t *testing.T) {
	type look struct {
		now    time.Time
		begun  time.Time
		skip   intent.Skip
		digest string
		seen   time.Time
		reason string
	}
	for name, c := range map[string]struct {
		looks []look
		want  []string
	}{
		"before the first": {[]look{{now: at(2, 12)}}, nil},
		"a sleep begins, once": {
			[]look{{now: at(2, 20)}, {now: at(2, 21), begun: at(2, 20).Add(time.Second)}, {now: at(2, 22), begun: at(2, 20).Add(time.Second)}, {now: at(3, 7)}},
			[]string{"2 20:00 Ran since 2 20:00"},
		},
		"a sleep that somebody began before": {[]look{{now: at(2, 21), begun: at(2, 12)}}, []string{"2 20:00 Ran since 2 20:00"}},
		"a sleep over two windows is both":   {[]look{{now: at(2, 21), begun: at(2, 20)}, {now: at(3, 21), begun: at(2, 20)}}, []string{"2 20:00 Ran since 2 20:00", "3 20:00 Ran since 3 20:00"}},
		"found after the window": {
			[]look{{now: at(3, 7), begun: at(2, 22)}}, []string{"2 20:00 Ran since 2 22:00"},
		},
		"nobody was there":               {[]look{{now: at(5, 12)}}, []string{"2 20:00 Missed catch-up x3"}},
		"nobody was there, and is again": {[]look{{now: at(4, 21), begun: at(4, 21)}}, []string{"2 20:00 Missed catch-up x2", "4 20:00 Ran since 4 21:00"}},
		"forbidden to its end": {
			[]look{{now: at(2, 21)}, {now: at(3, 6), seen: at(2, 20), reason: run.ReasonWindow}}, []string{"2 20:00 Missed window"},
		},
		"held awake": {[]look{{now: at(3, 6), seen: at(2, 20), reason: run.ReasonHold}}, []string{"2 20:00 Skipped hold"}},
		"the next is skipped, and only that": {
			[]look{
				{now: at(2, 12), skip: intent.Skip{Next: true}},
				{now: at(2, 20), skip: intent.Skip{Next: true}},
				{now: at(3, 6), skip: intent.Skip{Next: true}, seen: at(2, 20), reason: run.ReasonSkip},
				{now: at(3, 7)},
				{now: at(3, 20), begun: at(3, 20)},
			},
			[]string{"2 20:00 Skipped skip", "3 20:00 Ran since 3 20:00"},
		},
		"the next is skipped, and nobody noted why nothing slept": {
			[]look{{now: at(2, 20), skip: intent.Skip{Next: true}}, {now: at(3, 6), skip: intent.Skip{Next: true}}, {now: at(4, 6), skip: intent.Skip{Next: true}}},
			[]string{"2 20:00 Skipped skip", "3 20:00 Missed catch-up"},
		},
		"a slot is skipped while nobody looked": {[]look{{now: at(4, 12), skip: intent.Skip{Slots: []time.Time{at(2, 20)}}}}, []string{"2 20:00 Skipped skip", "3 20:00 Missed catch-up"}},
		"edited: what another schedule owed is nothing": {
			[]look{{now: at(2, 12)}, {now: at(5, 12), digest: "other"}, {now: at(5, 21), digest: "other", begun: at(5, 20)}}, []string{"5 20:00 Ran since 5 20:00"},
		},
		"made in the middle of one": {[]look{{now: at(2, 1)}, {now: at(2, 7)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			created := at(2, 8)
			if strings.HasPrefix(name, "made") {
				created = at(2, 0)
			}
			var stored *ledger.Ledger
			for _, l := range c.looks {
				if !l.seen.IsZero() { // by the look before
					was, _ := cmp.Or(stored, &ledger.Ledger{PlanUID: "uid", Watermark: created, Timetable: "nights"}).StaysAwake(&ledger.Awake{Slot: l.seen, Reason: l.reason})
					stored = &was
				}
				f := offwindow.Facts{Now: l.now, UID: "uid", Created: created, Timetable: "nights" + l.digest, Table: nights(t), Skip: l.skip, Begun: l.begun}
				got, changed := offwindow.Pass(stored, f)
				if again, more := offwindow.Pass(&got, f); more {
					t.Errorf("at %s it changes again: %s", l.now, diff(got, again))
				}
				if !changed && diff(*stored, got) != "" {
					t.Errorf("at %s it changed and does not say so: %s", l.now, diff(*stored, got))
				}
				stored = &got
			}
			if diff := diff(c.want, coretest.Entries(*stored)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Why nothing sleeps is in the ledger from the first look on: whoever looks after the end knows it.
func TestAnOffWindowInWhichNothingSleptSaysByWhom(t *testing.T) {
	for want, c := range map[string]struct {
		before, after offwindow.Facts
	}{
		"hold by joe": {offwindow.Facts{Awake: &ledger.Awake{Slot: at(2, 20), Reason: run.ReasonHold, By: ledger.Cause{Said: "hold by joe", Actor: intent.Actor{Name: "joe"}}}}, offwindow.Facts{Now: at(3, 6)}},
		"paused":      {offwindow.Facts{Awake: &ledger.Awake{Slot: at(2, 20), Reason: run.ReasonPaused, By: ledger.Cause{Said: "paused"}}}, offwindow.Facts{Now: at(3, 6)}},
		"skip by ann": {offwindow.Facts{}, offwindow.Facts{Now: at(3, 12), Skip: intent.Skip{Slots: []time.Time{at(2, 20)}}, SkipBy: intent.Actor{Name: "ann", Verified: true}}},
		"skip":        {offwindow.Facts{}, offwindow.Facts{Now: at(3, 12), Skip: intent.Skip{Slots: []time.Time{at(2, 20)}}}},
	} {
		l := &ledger.Ledger{PlanUID: "uid", Watermark: at(2, 8), Timetable: "nights"}
		for _, f := range []offwindow.Facts{c.before, c.after} {
			f.UID, f.Created, f.Timetable, f.Table = "uid", at(2, 8), "nights", nights(t)
			if f.Now.IsZero() {
				f.Now = at(2, 21)
			}
			got, _ := offwindow.Pass(l, f)
			l = &got
		}
		if len(l.Recent) != 1 || l.Recent[0].Said != want || l.Recent[0].Result != run.Skipped {
			t.Errorf("%q: %+v", want, l.Recent)
		}
	}
}

// A dry run counts as a sleep where it would have slept, and as nothing else.
func TestWhatBecomesOfAnOffWindowOfADryRun(t *testing.T) {
	for name, c := range map[string]struct {
		awake *ledger.Awake
		want  string
	}{
		"it would have slept":           {&ledger.Awake{Slot: at(2, 20)}, "2 20:00 Ran since 2 20:00"},
		"a policy kept it awake":        {&ledger.Awake{Slot: at(2, 20), Reason: run.ReasonWindow}, "2 20:00 Missed window"},
		"nobody was there":              {nil, "2 20:00 Missed catch-up"},
		"it would have, the day before": {&ledger.Awake{Slot: at(1, 20)}, "2 20:00 Missed catch-up"},
	} {
		l := &ledger.Ledger{PlanUID: "uid", Watermark: at(2, 8), Timetable: "nights", Awake: c.awake}
		got, _ := offwindow.Pass(l, offwindow.Facts{Now: at(3, 7), UID: "uid", Created: at(2, 8), Timetable: "nights", Table: nights(t), DryRun: true})
		if diff := diff([]string{c.want + " dry"}, coretest.Entries(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// An off-window in which it sleeps needs no note, and words that change are not written.
func TestWhyNothingSleepsIsNotedOnce(t *testing.T) {
	facts := func(said string, begun time.Time) offwindow.Facts {
		return offwindow.Facts{Now: at(2, 21), UID: "uid", Created: at(2, 8), Timetable: "nights", Table: nights(t), Begun: begun, Awake: &ledger.Awake{Slot: at(2, 20), Reason: run.ReasonWindow, By: ledger.Cause{Said: said}}}
	}
	l, _ := offwindow.Pass(nil, facts("closed", time.Time{}))
	if _, changed := offwindow.Pass(&l, facts("still closed", time.Time{})); changed || !l.Awake.In(at(2, 20)) {
		t.Errorf("%+v, and it changes: %t", l.Awake, changed)
	}
	if l, _ := offwindow.Pass(nil, facts("", at(2, 20))); l.Awake != nil {
		t.Errorf("it sleeps, and there is noted %+v", l.Awake)
	}
}

// A ledger that was put back to before its plan was there owes nothing from then, however long that
// is, and what comes after is recorded.
func TestALedgerFromBeforeThePlanOwesNothing(t *testing.T) {
	for name, watermark := range map[string]time.Time{"ten years before": at(2, 8).AddDate(-10, 0, 0), "never": {}} {
		stored := ledger.Ledger{PlanUID: "uid", Watermark: watermark, Timetable: "nights"}
		got, changed := offwindow.Pass(&stored, offwindow.Facts{Now: at(3, 7), UID: "uid", Created: at(2, 8), Timetable: "nights", Table: nights(t)})
		if diff := diff([]string{"2 20:00 Missed catch-up"}, coretest.Entries(got)); diff != "" || !changed || got.Watermark.Before(at(2, 8)) {
			t.Errorf("%s: changed %t, watermark %s, %s", name, changed, got.Watermark, diff)
		}
	}
}

func TestWhatIsLeftOfASkip(t *testing.T) {
	slots := func(days ...int) intent.Skip {
		var s intent.Skip
		for _, day := range days {
			s.Slots = append(s.Slots, at(day, 20))
		}
		return s
	}
	until := func(day, hour int) intent.Skip { return intent.Skip{Until: new(at(day, hour))} }
	recorded := ledger.Ledger{PlanUID: "uid", Timetable: "nights", Watermark: at(2, 20), Recent: []ledger.Entry{{Slot: new(at(2, 20))}}}
	met := recorded
	met.NextSlot = new(at(2, 20))
	for name, c := range map[string]struct {
		l    ledger.Ledger
		now  time.Time
		skip intent.Skip
		left intent.Skip
		used bool
	}{
		"none":                                      {recorded, at(3, 7), intent.Skip{}, intent.Skip{}, false},
		"all of them":                               {recorded, at(3, 7), intent.Skip{All: true}, intent.Skip{All: true}, false},
		"one that is to come":                       {recorded, at(2, 12), slots(2), slots(2), false},
		"one that it is in":                         {recorded, at(2, 23), slots(2), slots(2), false},
		"one that is over":                          {recorded, at(3, 7), slots(2), slots(), true},
		"one that is over, and one to come":         {recorded, at(3, 7), slots(2, 4), slots(4), true},
		"an instant at which none begins":           {recorded, at(3, 7), intent.Skip{Slots: []time.Time{at(2, 19)}}, slots(), true},
		"one that is over and not recorded yet":     {recorded, at(4, 7), slots(3), slots(3), false},
		"until an instant to come":                  {recorded, at(3, 7), until(3, 12), until(3, 12), false},
		"until an instant that is past":             {recorded, at(3, 7), until(3, 6), slots(), true},
		"until an instant of the one that it is in": {recorded, at(2, 23), until(2, 22), until(2, 22), false},
		"until the beginning of that":               {recorded, at(2, 23), until(2, 20), slots(), true},
		"the next, not met yet":                     {recorded, at(3, 7), intent.Skip{Next: true}, intent.Skip{Next: true}, false},
		"the next, which it is in":                  {met, at(2, 23), intent.Skip{Next: true}, intent.Skip{Next: true}, false},
		"the next, which is over":                   {met, at(3, 7), intent.Skip{Next: true}, intent.Skip{}, true},
		"the next, when another has begun":          {met, at(3, 21), intent.Skip{Next: true}, intent.Skip{}, true},
	} {
		left, used := offwindow.UsedUp(c.l, offwindow.Facts{Now: c.now, UID: "uid", Created: at(2, 8), Timetable: "nights", Table: nights(t), Skip: c.skip})
		if used != c.used || diff(c.left, left) != "" {
			t.Errorf("%s: used up %t, left %s", name, used, diff(c.left, left))
		}
	}
}

// In place of a lost ledger nothing from before is made up, and it says that there was one.
func TestTheLedgerInPlaceOfALostOne(t *testing.T) {
	f := offwindow.Facts{Now: at(5, 12), UID: "u", Created: at(2, 12)}
	if l := offwindow.First(f); !l.Watermark.Equal(f.Created) || l.BegunAnew != nil {
		t.Errorf("the first is %+v", l)
	}
	f.Lost = true
	if l := offwindow.First(f); !l.Watermark.Equal(f.Now) || l.BegunAnew == nil || !l.BegunAnew.Equal(f.Now) {
		t.Errorf("the one after it is %+v", l)
	}
}
