package schedule_test

import (
	"math/bits"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// mustAdvance follows a schedule for a few slots, each after the last.
func mustAdvance(t *testing.T, s *schedule.Schedule) {
	t.Helper()
	after := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 5 {
		slot, ok := s.Next(after)
		if !ok {
			return
		}
		if !slot.At.After(after) {
			t.Fatalf("%s comes after %s", slot.At, after)
		}
		after = slot.At
	}
}

func FuzzParseCron(f *testing.F) {
	for _, text := range []string{"0 2 * * 6", "*/15 8-17 * * MON-FRI", "@daily", "0 0 29 2 *", "TZ=UTC", "0 0 * * 5-7", ",", "1-2-3 * * * *", "@every 1h", "0 2 ? * sun"} {
		f.Add(text, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, text, zone string) {
		s, err := schedule.Parse(schedule.Spec{Cron: text, Timezone: zone})
		if err == nil {
			mustAdvance(t, s)
		} else if len(schedule.Faults(err)) == 0 {
			t.Fatal("an error without a fault")
		}
		agreeWithRobfig(t, text)
	})
}

// agreeWithRobfig compares the first slot with robfig/cron, where clocks do not
// change and both understand the text.
func agreeWithRobfig(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "=") || strings.HasPrefix(strings.TrimSpace(text), "@") {
		return // it panics, or counts from the start of the program
	}
	theirs, err := cron.ParseStandard(text)
	ours, err2 := schedule.Parse(schedule.Spec{Cron: text})
	if err != nil || err2 != nil {
		return
	}
	spec := theirs.(*cron.SpecSchedule)
	spec.Location = time.UTC
	after := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 3 {
		want := spec.Next(after)
		got, ok := ours.NextTime(after)
		if want.IsZero() || bits.OnesCount64(spec.Dow) == 0 {
			return // it gives up after five years
		}
		if !ok || !got.Equal(want) {
			t.Fatalf("%q after %s: got %s, want %s", text, after, got, want)
		}
		after = want
	}
}

func FuzzParseRRule(f *testing.F) {
	for _, text := range []string{"FREQ=WEEKLY;BYDAY=SA;BYHOUR=2", "FREQ=MONTHLY;BYDAY=-1FR;BYSETPOS=1", "FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO", "FREQ=MINUTELY;INTERVAL=7;BYHOUR=3;BYMINUTE=1", "FREQ=DAILY;COUNT=3;UNTIL=20300101T000000Z", "RRULE:FREQ=YEARLY;BYYEARDAY=-366"} {
		f.Add(text, "2026-01-01T02:30:00", "2026-02-01", "America/New_York")
		f.Add(text, "", "", "")
	}
	f.Fuzz(func(t *testing.T, text, start, except, zone string) {
		spec := schedule.Spec{RRule: text, DTStart: start, Timezone: zone}
		if except != "" {
			spec.ExDate = strings.Split(except, " ")
		}
		if s, err := schedule.Parse(spec); err == nil {
			mustAdvance(t, s)
		}
	})
}

func FuzzParseAt(f *testing.F) {
	f.Add("2026-03-08T02:00:00-05:00", "America/New_York")
	f.Add("9999-12-31T23:59:59Z", "Pacific/Apia")
	f.Fuzz(func(t *testing.T, text, zone string) {
		if s, err := schedule.Parse(schedule.Spec{At: text, Timezone: zone}); err == nil {
			mustAdvance(t, s)
		}
	})
}

func FuzzLoadZone(f *testing.F) {
	for _, name := range []string{"", "UTC", "Europe/Berlin", "../../etc/passwd", "Europe/Berln", "Local"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if location, err := schedule.LoadZone(name); (location == nil) == (err == nil) {
			t.Fatalf("%q: %v, %v", name, location, err)
		}
	})
}

func FuzzParseWindow(f *testing.F) {
	f.Add("Fri", "22:00", "02:00", "", "", "", "Europe/Berlin", "2026-12-24", "")
	f.Add("", "", "", "0 2 * * *", "", "8h", "", "2026-12-24", "2026-12-27")
	f.Add("", "", "", "", "FREQ=MONTHLY;BYDAY=2TU", "2h30m", "", "", "")
	f.Fuzz(func(t *testing.T, day, start, end, cron, rule, duration, zone, from, until string) {
		w := schedule.Window{Start: start, End: end, Cron: cron, RRule: rule, Duration: duration, Timezone: zone}
		if day != "" {
			w.Days = strings.Split(day, ",")
		}
		spec := schedule.MaintenanceSchedule{Timezone: zone, Windows: []schedule.Window{w}}
		if from+until != "" {
			spec.Exclude = []schedule.Exclusion{{FromDate: from, UntilDate: until}}
		}
		if timeline, err := schedule.ParseMaintenanceSchedule(&spec, nil); err == nil {
			mustChange(t, timeline)
		}
	})
}

// mustChange follows a timeline for a few changes, each the other way.
func mustChange(t *testing.T, timeline *schedule.Timeline) {
	t.Helper()
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for range 4 {
		was := timeline.At(now)
		next, open, ok := timeline.Next(now)
		if !ok {
			return
		}
		if open == was.Open || !next.After(now) || !timeline.At(next).Since.Equal(next) {
			t.Fatalf("at %s: %+v, and then %v at %s", now, was, open, next)
		}
		now = next
	}
}

func FuzzParseICalendar(f *testing.F) {
	f.Add("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20261224\nRRULE:FREQ=YEARLY\nEND:VEVENT\nEND:VCALENDAR\n")
	f.Add("BEGIN:VCALENDAR\r\nBEGIN:VTIMEZONE\r\nTZID:X\r\nBEGIN:STANDARD\r\nDTSTART:19701025T030000\r\nTZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\nRRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\nBEGIN:VEVENT\r\nDTSTART;TZID=X:20261224T100000\r\nDURATION:PT1H\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n")
	f.Add("BEGIN:VEVENT\nUID:1\nDTSTART:20261224T100000Z\nDTEND:20261224T110000Z\nRRULE:FREQ=DAILY;COUNT=9\nEXDATE:20261225T100000Z\nEND:VEVENT\nBEGIN:VEVENT\nUID:1\nRECURRENCE-ID:20261226T100000Z\nDTSTART:20261226T120000Z\nEND:VEVENT")
	f.Fuzz(func(t *testing.T, text string) {
		calendar, _ := schedule.ParseICalendar(text)
		spec := schedule.MaintenanceSchedule{Timezone: "Europe/Berlin", Exclude: []schedule.Exclusion{{Calendar: &schedule.CalendarRef{Name: "c"}}}}
		timeline, err := schedule.ParseMaintenanceSchedule(&spec, func(_, _ string) (*schedule.Calendar, bool) { return calendar, true })
		if err != nil {
			t.Fatal(err)
		}
		mustChange(t, timeline)
	})
}
