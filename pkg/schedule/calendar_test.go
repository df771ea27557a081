package schedule_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// excludedBy is what a calendar takes out of a policy in Berlin.
func excludedBy(t *testing.T, calendar *schedule.Calendar, from string, most int) string {
	t.Helper()
	spec := schedule.MaintenanceSchedule{Timezone: "Europe/Berlin", Exclude: []schedule.Exclusion{{Calendar: &schedule.CalendarRef{Name: "c"}}}}
	timeline, err := schedule.ParseMaintenanceSchedule(&spec, func(_, _ string) (*schedule.Calendar, bool) { return calendar, true })
	if err != nil {
		t.Fatal(err)
	}
	location, _ := schedule.LoadZone("Europe/Berlin")
	var list []string
	when := instant(t, from)
	for len(list) < most {
		start, open, ok := timeline.Next(when)
		if !ok {
			break
		}
		if when = start; open {
			continue
		}
		end, _, ok := timeline.Next(start)
		if !ok {
			list = append(list, start.In(location).Format("2006-01-02 15:04")+" for ever")
			break
		}
		list = append(list, start.In(location).Format("2006-01-02 15:04")+" to "+end.In(location).Format("2006-01-02 15:04")+" "+timeline.At(start).Reason)
	}
	return strings.Join(list, "\n")
}

func vevent(lines ...string) string {
	return "BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + strings.Join(lines, "\n") + "\nEND:VEVENT\nEND:VCALENDAR\n"
}

func TestICalendarEvents(t *testing.T) {
	outlook := "BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nTZID:W. Europe Standard Time\n" +
		"BEGIN:STANDARD\nDTSTART:16010101T030000\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\nEND:STANDARD\n" +
		"BEGIN:DAYLIGHT\nDTSTART:16010101T020000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\nEND:DAYLIGHT\nEND:VTIMEZONE\n" +
		"BEGIN:VEVENT\nSUMMARY:Board meeting\nDTSTART;TZID=W. Europe Standard Time:20260701T090000\nDTEND;TZID=W. Europe Standard Time:20260701T100000\nEND:VEVENT\n" +
		"BEGIN:VEVENT\nDTSTART;TZID=\"W. Europe Standard Time\":20261201T090000\nDTEND;TZID=\"W. Europe Standard Time\":20261201T100000\nEND:VEVENT\nEND:VCALENDAR\n"
	for _, c := range []struct{ name, text, want string }{
		{"a whole day, without an end, is one day", vevent("DTSTART;VALUE=DATE:20261224", "SUMMARY:Christmas\\, early"), "2026-12-24 00:00 to 2026-12-25 00:00 excluded: Christmas, early"},
		{"an end is exclusive", vevent("DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261227"), "2026-12-24 00:00 to 2026-12-27 00:00 excluded: calendar c"},
		{"a timed event takes only its hours", vevent("DTSTART:20261224T120000Z", "DTEND:20261224T140000Z"), "2026-12-24 13:00 to 2026-12-24 15:00 excluded: calendar c"},
		{"a floating time counts in the zone of the policy", vevent("DTSTART:20261224T120000", "DURATION:PT90M"), "2026-12-24 12:00 to 2026-12-24 13:30 excluded: calendar c"},
		{"a time in a zone counts there", vevent("DTSTART;TZID=America/New_York:20261224T120000", "DURATION:PT1H"), "2026-12-24 18:00 to 2026-12-24 19:00 excluded: calendar c"},
		{"a zone may have a path before it", vevent("DTSTART;TZID=/example.org/20070129/America/New_York:20261224T120000", "DURATION:PT1H"), "2026-12-24 18:00 to 2026-12-24 19:00 excluded: calendar c"},
		{"Outlook describes its zones", outlook, "2026-07-01 09:00 to 2026-07-01 10:00 excluded: Board meeting\n2026-12-01 09:00 to 2026-12-01 10:00 excluded: calendar c"},
		{"cancelled and transparent events take no time", strings.ReplaceAll(vevent("DTSTART;VALUE=DATE:20261224", "STATUS:CANCELLED", "END:VEVENT", "BEGIN:VEVENT", "DTSTART;VALUE=DATE:20261225", "TRANSP:TRANSPARENT"), "\n", "\r\n"), ""},
		{"lines may be folded and end in CRLF", strings.ReplaceAll(vevent("DTSTART;VALUE=DA", " TE:20261224", "SUMMARY:Chri", "\tstmas"), "\n", "\r\n"), "2026-12-24 00:00 to 2026-12-25 00:00 excluded: Christmas"},
		{"an alarm inside is not the event", vevent("DTSTART;VALUE=DATE:20261224", "BEGIN:VALARM", "TRIGGER:-PT15M", "DURATION:PT5M", "SUMMARY:Beep", "END:VALARM"), "2026-12-24 00:00 to 2026-12-25 00:00 excluded: calendar c"},
		{"days recur", vevent("DTSTART;VALUE=DATE:20261224", "RRULE:FREQ=YEARLY;COUNT=2"), "2026-12-24 00:00 to 2026-12-25 00:00 excluded: calendar c\n2027-12-24 00:00 to 2027-12-25 00:00 excluded: calendar c"},
		{
			"hours recur by the clocks of their zone", vevent("DTSTART;TZID=Europe/Berlin:20261018T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;UNTIL=20261025T235959Z"),
			"2026-10-18 10:00 to 2026-10-18 11:00 excluded: calendar c\n2026-10-25 10:00 to 2026-10-25 11:00 excluded: calendar c",
		},
		{
			"exceptions and additions count", vevent("DTSTART;TZID=Europe/Berlin:20261018T100000", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=3", "EXDATE;TZID=Europe/Berlin:20261019T100000", "RDATE;TZID=Europe/Berlin:20261101T120000"),
			"2026-10-18 10:00 to 2026-10-18 11:00 excluded: calendar c\n2026-10-20 10:00 to 2026-10-20 11:00 excluded: calendar c\n2026-11-01 12:00 to 2026-11-01 13:00 excluded: calendar c",
		},
		{
			"a changed instance takes the place of its own", vevent("UID:1", "DTSTART:20261018T100000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=3",
				"END:VEVENT", "BEGIN:VEVENT", "UID:1", "RECURRENCE-ID:20261019T100000Z", "DTSTART:20261019T150000Z", "DURATION:PT2H",
				"END:VEVENT", "BEGIN:VEVENT", "UID:1", "RECURRENCE-ID:20261020T100000Z", "DTSTART:20261020T100000Z", "STATUS:CANCELLED"),
			"2026-10-18 12:00 to 2026-10-18 13:00 excluded: calendar c\n2026-10-19 17:00 to 2026-10-19 19:00 excluded: calendar c",
		},
		{"a recurring event without length takes no time", vevent("DTSTART:20261018T100000Z", "DTEND:20261018T100000Z", "RRULE:FREQ=MINUTELY"), ""},
		{"a rule that never fires leaves the event", vevent("DTSTART:20261018T100000Z", "DURATION:PT1H", "RRULE:FREQ=MINUTELY;INTERVAL=2;BYMINUTE=1"), "2026-10-18 12:00 to 2026-10-18 13:00 excluded: calendar c"},
		{"a whole day can be long or short", vevent("DTSTART;VALUE=DATE:20261024", "DURATION:P1W"), "2026-10-24 00:00 to 2026-10-31 00:00 excluded: calendar c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			calendar, err := schedule.ParseICalendar(c.text)
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(c.want, excludedBy(t, calendar, "2026-01-01T00:00Z", 10)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAMalformedLineIsToldWithItsNumberAndTheRestWorks(t *testing.T) {
	calendar, err := schedule.ParseICalendar(strings.Join([]string{
		"BEGIN:VCALENDAR", "what is this", "BEGIN:VEVENT", "DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:soon", "END:VEVENT",
		"BEGIN:VEVENT", "DTSTART;VALUE=DATE:20261399", "END:VEVENT", "BEGIN:VEVENT", "SUMMARY:no start", "END:VEVENT",
		"BEGIN:VEVENT", "DTSTART;TZID=Mars/Base:20261226T100000", "DURATION:1h", "RRULE:FREQ=SECONDLY", "END:VEVENT",
		"BEGIN:VEVENT", "DTSTART;VALUE=DATE:20261231", "END:VCALENDAR",
	}, "\n"))
	var got []int
	for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
		var fault *schedule.LineError
		if !errors.As(one, &fault) {
			t.Fatalf("%v is no LineError", one)
		}
		got = append(got, fault.Line)
	}
	if diff := cmp.Diff([]int{2, 5, 8, 10, 14, 15, 16, 18}, got); diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	want := "2026-12-24 00:00 to 2026-12-25 00:00 excluded: calendar c\n2026-12-26 10:00 to 2026-12-27 10:00 excluded: calendar c\n2026-12-31 00:00 to 2027-01-01 00:00 excluded: calendar c"
	if diff := cmp.Diff(want, excludedBy(t, calendar, "2026-01-01T00:00Z", 10)); diff != "" {
		t.Error(diff)
	}
}

func TestACalendarMayBeAList(t *testing.T) {
	calendar, err := schedule.ParseCalendarEntries([]schedule.CalendarEntry{
		{From: "2026-12-24", Until: "2026-12-27", Reason: "Christmas"}, {From: "2026-13-01"}, {From: "2026-12-31T12:00:00Z", Until: "2026-12-31T14:00:00Z"}, {From: "2027-01-02", Until: "2027-01-01"},
	})
	var got []string
	for _, fault := range schedule.Faults(err) {
		got = append(got, fault.Field)
	}
	if diff := cmp.Diff([]string{"[1].from", "[3].until"}, got); diff != "" {
		t.Error(diff)
	}
	want := "2026-12-24 00:00 to 2026-12-27 00:00 excluded: Christmas\n2026-12-31 13:00 to 2026-12-31 15:00 excluded: calendar c"
	if diff := cmp.Diff(want, excludedBy(t, calendar, "2026-01-01T00:00Z", 10)); diff != "" {
		t.Error(diff)
	}
}
