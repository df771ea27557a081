package hibernate

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// Jakarta is seven hours ahead of UTC all year; 2026-03-02 is a Monday.
func TestWhatIsWanted(t *testing.T) {
	monday, tuesday := at(t, "2026-03-02T13:00:00Z"), at(t, "2026-03-03T13:00:00Z") // when their off-hours begin
	until := func(text string) *time.Time { return new(at(t, text)) }
	for name, c := range map[string]struct {
		plan   string
		at     string
		wishes Overrides
		says   string // asleep or awake, by what, until when
		why    string
	}{
		"by day it is awake": {nights, "2026-03-02T05:00:00Z", Overrides{}, "awake by schedule until 2026-03-02T20:00", Outside},
		"at night it sleeps": {nights, "2026-03-02T15:00:00Z", Overrides{}, "asleep by schedule until 2026-03-03T06:00", InOffHours},
		"a night that is skipped is awake, until the next":      {nights, "2026-03-02T15:00:00Z", Overrides{Skip: intent.Skip{Slots: []time.Time{monday}}}, "awake by skip until 2026-03-03T20:00", "these off-hours are skipped"},
		"nights that are skipped are passed over":               {nights, "2026-03-02T05:00:00Z", Overrides{Skip: intent.Skip{Slots: []time.Time{monday, tuesday}}}, "awake by schedule until 2026-03-04T20:00", Outside},
		"of all that are skipped none comes":                    {nights, "2026-03-02T05:00:00Z", Overrides{Skip: intent.Skip{All: true}}, "awake by schedule until ever", Outside},
		"a night that begins before the end of a skip is awake": {nights, "2026-03-02T15:00:00Z", Overrides{Skip: intent.Skip{Until: until("2026-03-02T14:00:00Z")}}, "awake by skip until 2026-03-03T20:00", "these off-hours are skipped"},
		"held awake at night, until it is released":             {nights, "2026-03-02T15:00:00Z", Overrides{Hold: Hold{On: true}}, "awake by hold until ever", "it is held awake"},
		"held awake for two hours, it sleeps after that":        {nights, "2026-03-02T15:00:00Z", Overrides{Hold: Hold{On: true, Until: until("2026-03-02T17:00:00Z")}}, "awake by hold until 2026-03-03T00:00", "it is held awake until 2026-03-02T17:00:00Z"},
		"held awake till morning, it sleeps next in the evening": {
			nights, "2026-03-02T15:00:00Z", Overrides{Hold: Hold{On: true, Until: until("2026-03-02T23:00:00Z")}}, "awake by hold until 2026-03-03T20:00", "it is held awake until 2026-03-02T23:00:00Z",
		},
		"held asleep into the night, it wakes in the morning": {nights, "2026-03-02T05:00:00Z", Overrides{Hold: Hold{On: true, Asleep: true, Until: until("2026-03-02T14:00:00Z")}}, "asleep by hold until 2026-03-03T06:00", "it is held asleep until 2026-03-02T14:00:00Z"},
		"held asleep by day for an hour":                      {nights, "2026-03-02T05:00:00Z", Overrides{Hold: Hold{On: true, Asleep: true, Until: until("2026-03-02T06:00:00Z")}}, "asleep by hold until 2026-03-02T13:00", "it is held asleep until 2026-03-02T06:00:00Z"},
		"a hold that is over holds nothing":                   {nights, "2026-03-02T15:00:00Z", Overrides{Hold: Hold{On: true, Until: until("2026-03-02T15:00:00Z")}}, "asleep by schedule until 2026-03-03T06:00", InOffHours},
		"of the next alone that it is in":                     {nights, "2026-03-02T15:00:00Z", Overrides{Skip: intent.Skip{Next: true}}, "awake by skip until 2026-03-03T20:00", "these off-hours are skipped"},
		"of the next alone by day":                            {nights, "2026-03-02T05:00:00Z", Overrides{Skip: intent.Skip{Next: true}}, "awake by schedule until 2026-03-03T20:00", Outside},
		"a hold counts before a skip":                         {nights, "2026-03-02T15:00:00Z", Overrides{Hold: Hold{On: true, Asleep: true}, Skip: intent.Skip{All: true}}, "asleep by hold until ever", "it is held asleep"},
		"a suspend that comes soon forbids a sleep": {
			nights + "\nexceptions: [{type: suspend, validFrom: \"2026-03-02T15:30:00Z\", validUntil: \"2026-03-02T20:00:00Z\", leadTime: 1h, reason: tests}]", "2026-03-02T15:00:00Z",
			Overrides{},
			"asleep by schedule until 2026-03-02T22:30, forbidden: soon suspended by an exception: tests, from Mon 2026-03-02 22:30 WIB on", InOffHours,
		},
		"and not one that somebody holds": {
			nights + "\nexceptions: [{type: suspend, validFrom: \"2026-03-02T15:30:00Z\", validUntil: \"2026-03-02T20:00:00Z\", leadTime: 1h, reason: tests}]", "2026-03-02T15:00:00Z",
			Overrides{Hold: Hold{On: true, Asleep: true}},
			"asleep by hold until ever", "it is held asleep",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt := timetableOf(t, c.plan)
			w := tt.DesiredState(at(t, c.at), c.wishes)
			got := "awake by "
			if w.Asleep {
				got = "asleep by "
			}
			got += string(w.By) + " until "
			if w.Until == nil {
				got += "ever"
			} else {
				got += wall(tt, *w.Until)
			}
			if w.Forbidden != "" {
				got += ", forbidden: " + w.Forbidden
			}
			if got != c.says || w.Why != c.why {
				t.Errorf("got %s (%s)\nwant %s (%s)", got, w.Why, c.says, c.why)
			}
		})
	}
}

// What a want says of its end is what it is at that end, and just before it.
func TestAWantHoldsUntilItsEnd(t *testing.T) {
	tt := timetableOf(t, nights)
	monday := at(t, "2026-03-02T13:00:00Z")
	for _, w := range []Overrides{
		{},
		{Skip: intent.Skip{Slots: []time.Time{monday}}},
		{Hold: Hold{On: true, Until: new(monday.Add(3 * time.Hour))}},
		{Hold: Hold{On: true, Asleep: true, Until: new(monday.Add(-time.Hour))}, Skip: intent.Skip{Until: new(monday.AddDate(0, 0, 3))}},
	} {
		for now := monday.Add(-13 * time.Hour); now.Before(monday.AddDate(0, 0, 8)); now = now.Add(47 * time.Minute) {
			want := tt.DesiredState(now, w)
			if want.Until == nil {
				t.Fatalf("%v: %+v never ends", now, w)
			}
			if before := tt.DesiredState(want.Until.Add(-time.Second), w); before.Asleep != want.Asleep {
				t.Errorf("%v: %+v is another before %v", now, w, want.Until)
			}
			if then := tt.DesiredState(*want.Until, w); then.Asleep == want.Asleep {
				t.Errorf("%v: %+v is the same at %v", now, w, want.Until)
			}
		}
	}
}

func TestAWindowSaysWhyItEnds(t *testing.T) {
	tt := timetableOf(t, "schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}], exclude: [{fromDate: \"2026-03-03\", reason: launch}]}")
	var got []string
	for w := range tt.Windows(at(t, "2026-03-01T12:00:00Z")) {
		if got = append(got, w.Ends); len(got) == 3 {
			break
		}
	}
	if got[0] != Outside || got[1] != "excluded: launch" || got[2] != Outside {
		t.Errorf("%q", got)
	}
}

// The end of a hold may change what is wanted before the schedule does.
func TestWhenAWantIsLookedAtAgain(t *testing.T) {
	tt := timetableOf(t, nights)
	for until, again := range map[string]string{"2026-03-02T17:00:00Z": "2026-03-02T17:00:00Z", "2026-03-03T17:00:00Z": "2026-03-02T23:00:00Z"} {
		w := tt.DesiredState(at(t, "2026-03-02T15:00:00Z"), Overrides{Hold: Hold{On: true, Until: new(at(t, until))}})
		if !w.Again.Equal(at(t, again)) {
			t.Errorf("held until %s it is looked at again at %s, want %s", until, w.Again.UTC(), again)
		}
	}
}
