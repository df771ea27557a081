package hibernation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
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

func entries(l ledger.Ledger) []string {
	var out []string
	for _, e := range l.Recent {
		line := fmt.Sprintf("%s %s", e.Slot.Format("2 15:04"), e.Result)
		if e.Reason != "" {
			line += " " + e.Reason
		}
		if e.StartedAt != nil {
			line += e.StartedAt.Format(" since 2 15:04")
		}
		if e.Count > 1 {
			line += fmt.Sprintf(" x%d", e.Count)
		}
		if e.DryRun {
			line += " dry"
		}
		out = append(out, line)
	}
	return out
}

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
				f := slotFacts{now: l.now, uid: "uid", created: created, digest: "nights" + l.digest, table: nights(t), skip: l.skip, begun: l.begun, seen: l.seen, reason: l.reason}
				got, changed := passSlots(stored, f)
				if again, more := passSlots(&got, f); more {
					t.Errorf("at %s it changes again: %s", l.now, cmp.Diff(got, again))
				}
				if !changed && cmp.Diff(*stored, got) != "" {
					t.Errorf("at %s it changed and does not say so: %s", l.now, cmp.Diff(*stored, got))
				}
				stored = &got
			}
			if diff := cmp.Diff(c.want, entries(*stored)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnOffWindowInWhichNothingSleptSaysByWhom(t *testing.T) {
	held := ledger.Cause{Said: "hold by joe", Actor: intent.Actor{Name: "joe"}}
	for want, f := range map[string]slotFacts{
		"hold by joe": {now: at(3, 6), seen: at(2, 20), reason: run.ReasonHold, cause: held},
		"skip by ann": {now: at(3, 12), skip: intent.Skip{Slots: []time.Time{at(2, 20)}}, skipBy: intent.Actor{Name: "ann", Verified: true}},
		"skip":        {now: at(3, 12), skip: intent.Skip{Slots: []time.Time{at(2, 20)}}},
	} {
		f.uid, f.created, f.digest, f.table = "uid", at(2, 8), "nights", nights(t)
		l, _ := passSlots(&ledger.Ledger{PlanUID: "uid", Watermark: at(2, 8), Timetable: "nights"}, f)
		if len(l.Recent) != 1 || l.Recent[0].Said != want {
			t.Errorf("%q: %+v", want, l.Recent)
		}
	}
}

func TestWhichOffWindowIsSkipped(t *testing.T) {
	next := intent.Skip{Next: true}
	met := &ledger.Ledger{NextSlot: new(at(2, 20))}
	for name, c := range map[string]struct {
		stored *ledger.Ledger
		skip   intent.Skip
		want   bool
	}{
		"nothing":                         {nil, intent.Skip{}, false},
		"the next, without a ledger":      {nil, next, true},
		"the next, not met yet":           {&ledger.Ledger{}, next, true},
		"the next is this one":            {met, next, true},
		"the next was another":            {&ledger.Ledger{NextSlot: new(at(1, 20))}, next, false},
		"the next was another, this, too": {&ledger.Ledger{NextSlot: new(at(1, 20))}, intent.Skip{Next: true, Slots: []time.Time{at(2, 20)}}, true},
		"all":                             {met, intent.Skip{All: true}, true},
	} {
		if got := c.stored.NamedSkip(c.skip).Covers(at(2, 20)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
