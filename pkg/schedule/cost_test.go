package schedule_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// explosion is what nothing takes that a tenant may write: an alarm, not a benchmark. None of
// these takes a second alone.
const explosion = 20 * time.Second

// Rules that fire as seldom, or leave as much out, as rules can.
func TestRulesThatAreDearAreBounded(t *testing.T) {
	all := func(n int) string {
		out := make([]string, 0, n)
		for i := range n {
			out = append(out, fmt.Sprint(i))
		}
		return strings.Join(out, ",")
	}
	var except []string
	for i := range 4000 {
		except = append(except, time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC).Format("2006-01-02T15:04:05"))
	}
	for name, spec := range map[string]schedule.Spec{
		"every second that hardly is":         {RRule: "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU;BYHOUR=0;BYMINUTE=0;BYSECOND=59"},
		"every second but at a step":          {RRule: "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3;BYMINUTE=7;BYSECOND=11"},
		"steps that never meet a day":         {RRule: "FREQ=MINUTELY;INTERVAL=1440;BYHOUR=5;BYMINUTE=1", DTStart: "2026-01-01T02:30:00"},
		"a day that no month has":             {RRule: "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"},
		"the last week of a year, long steps": {RRule: "FREQ=YEARLY;INTERVAL=399;BYWEEKNO=53;BYDAY=MO;BYMONTH=1;BYHOUR=1"},
		"every second of an hour, by place":   {RRule: "FREQ=YEARLY;BYHOUR=" + all(24) + ";BYMINUTE=" + all(60) + ";BYSECOND=" + all(60) + ";BYSETPOS=-1"},
		"every second of a year, by place":    {RRule: "FREQ=YEARLY;BYMONTH=1,2,3,4,5,6,7,8,9,10,11,12;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR=" + all(24) + ";BYMINUTE=" + all(60) + ";BYSECOND=" + all(60) + ";BYSETPOS=1,-1,366"},
		"a hundred thousand times":            {RRule: "FREQ=DAILY;COUNT=100000"},
		"a hundred thousand seldom times":     {RRule: "FREQ=YEARLY;COUNT=100000;BYMONTH=2;BYMONTHDAY=29", DTStart: "1600-01-01T00:00:00"},
		"a start long ago, every second":      {RRule: "FREQ=SECONDLY;INTERVAL=7", DTStart: "1600-01-01T00:00:00"},
		"thousands of exceptions in a row":    {RRule: "FREQ=MINUTELY", DTStart: "2026-01-01T00:00:00", ExDate: except},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			if s, err := schedule.Parse(spec); err == nil {
				mustAdvance(t, s)
			}
			if took := time.Since(began); took > explosion {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// Calendars as large as a document may be.
func TestCalendarsThatAreDearAreBounded(t *testing.T) {
	const room = 256 << 10
	fill := func(event func(i int) string) string {
		var out strings.Builder
		out.WriteString("BEGIN:VCALENDAR\n")
		for i := 0; ; i++ {
			one := "BEGIN:VEVENT\n" + event(i) + "\nEND:VEVENT\n"
			if out.Len()+len(one) > room {
				return out.String() + "END:VCALENDAR\n"
			}
			out.WriteString(one)
		}
	}
	at := func(i int) string { return time.Date(2026, 1, 1, i, 0, 0, 0, time.UTC).Format("20060102T150405") }
	for name, text := range map[string]string{
		"events that follow one another": fill(func(i int) string { return "DTSTART:" + at(i) + "Z\nDURATION:PT1H" }),
		"events that all recur":          fill(func(i int) string { return "DTSTART:" + at(i) + "\nDURATION:PT1S\nRRULE:FREQ=DAILY" }),
		"that hardly do": fill(func(i int) string {
			return "DTSTART:" + at(i) + "\nDURATION:PT1S\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU"
		}),
		"every second": fill(func(i int) string { return "DTSTART:" + at(i) + "\nDURATION:PT1S\nRRULE:FREQ=SECONDLY;INTERVAL=3" }),
		"in zones of their own": "BEGIN:VCALENDAR\n" + strings.Repeat("BEGIN:VTIMEZONE\nTZID:X\nBEGIN:STANDARD\nDTSTART:16010101T030000\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\nRRULE:FREQ=SECONDLY\nEND:STANDARD\nEND:VTIMEZONE\n", 1500) +
			"BEGIN:VEVENT\nDTSTART;TZID=X:20260101T000000\nDURATION:PT1H\nEND:VEVENT\nEND:VCALENDAR\n",
		"one with thousands of exceptions": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260101T000000Z\nDURATION:PT1H\nRRULE:FREQ=HOURLY\n" +
			strings.Join(lines(12_000, func(i int) string { return "EXDATE:" + at(i) + "Z" }), "\n") + "\nEND:VEVENT\nEND:VCALENDAR\n",
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			calendar, _ := schedule.ParseICalendar(text)
			spec := schedule.MaintenanceSchedule{Timezone: "Europe/Berlin", Exclude: []schedule.Exclusion{{Calendar: &schedule.CalendarRef{Name: "c"}}}}
			timeline, err := schedule.ParseMaintenanceSchedule(&spec, func(_, _ string) (*schedule.Calendar, bool) { return calendar, true })
			if err != nil {
				t.Fatal(err)
			}
			mustChange(t, timeline)
			if took := time.Since(began); took > explosion {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// Some hundred kilobytes that describe millions of instants are not put on the clock.
func TestACalendarThatDescribesMillionsOfInstantsIsRefusedAtLittleCost(t *testing.T) {
	part := "BEGIN:STANDARD\nDTSTART:19000101T000000\nTZOFFSETFROM:+0000\nTZOFFSETTO:+0100\nRRULE:FREQ=DAILY\nEND:STANDARD\n"
	yearly := func(parts int) func(i int) string {
		return func(i int) string {
			return fmt.Sprintf("BEGIN:VTIMEZONE\nTZID:z%d\n", i) + strings.Repeat(strings.Replace(part, "FREQ=DAILY", "FREQ=YEARLY", 1), parts) + "END:VTIMEZONE"
		}
	}
	for name, c := range map[string]struct{ text, says string }{
		"a zone of many parts that recur daily": {"BEGIN:VTIMEZONE\nTZID:zz\n" + strings.Repeat(part, 2000) + "END:VTIMEZONE", "changes the clock too often"},
		"many zones":                            {strings.Join(lines(100, yearly(7)), "\n"), "changes the clock too often"},
		"many series of one UID and many changed instances of it": {strings.Repeat("BEGIN:VEVENT\nUID:a\nDTSTART:20000101\nRRULE:FREQ=DAILY\nEND:VEVENT\n", 1900) +
			strings.Repeat("BEGIN:VEVENT\nUID:a\nDTSTART:20000101\nRECURRENCE-ID:20000101\nEND:VEVENT\n", 1700), "too many changed instances"},
		"a series with many changed instances": {"BEGIN:VEVENT\nUID:a\nDTSTART:20000101\nRRULE:FREQ=DAILY\nEND:VEVENT\n" +
			strings.Repeat("BEGIN:VEVENT\nUID:a\nDTSTART:20000101\nRECURRENCE-ID:20000101\nEND:VEVENT\n", 3000), ""},
		"a dozen zones that change once a year": {strings.Join(lines(12, yearly(2)), "\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := schedule.ParseICalendar("BEGIN:VCALENDAR\n" + c.text + "\nEND:VCALENDAR\n")
			runtime.ReadMemStats(&after)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v, want %q", err, c.says)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 350<<20 { // most of it garbage at once
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}

func lines(n int, line func(i int) string) []string {
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, line(i))
	}
	return out
}
