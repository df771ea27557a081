package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// The first and the last slot of a rule with bounds are found from the very second before
// and after them: who looks at that second would lose a run, or make up one.
func TestTheFirstAndTheLastSlotOfARule(t *testing.T) {
	for _, c := range []struct {
		name        string
		spec        schedule.Spec
		first, last string // empty: there is no such bound
	}{
		{"a beginning", schedule.Spec{RRule: "FREQ=DAILY;BYHOUR=9;BYMINUTE=0", DTStart: "2026-11-20T09:00:00"}, "2026-11-20T09:00:00Z", ""},
		{"an end on the wall", schedule.Spec{RRule: "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;UNTIL=20261125T090000"}, "", "2026-11-25T09:00:00Z"},
		{"an end that is an instant", schedule.Spec{RRule: "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;UNTIL=20261125T080000Z", Timezone: "Europe/Berlin"}, "", "2026-11-25T08:00:00Z"},
		{"both, on the wall of a zone", schedule.Spec{RRule: "FREQ=DAILY;UNTIL=20261125T090000", DTStart: "2026-11-20T09:00:00", Timezone: "Europe/Berlin"}, "2026-11-20T08:00:00Z", "2026-11-25T08:00:00Z"},
		{"an end between two slots", schedule.Spec{RRule: "FREQ=DAILY;UNTIL=20261125T085959", DTStart: "2026-11-20T09:00:00"}, "2026-11-20T09:00:00Z", "2026-11-24T09:00:00Z"},
		{"a count", schedule.Spec{RRule: "FREQ=DAILY;COUNT=3", DTStart: "2026-11-20T09:00:00"}, "2026-11-20T09:00:00Z", "2026-11-22T09:00:00Z"},
		{"a count of times within hours, begun at the second of them", schedule.Spec{RRule: "FREQ=DAILY;BYHOUR=9,10;BYMINUTE=0,30;COUNT=3", DTStart: "2026-11-20T09:30:00"}, "2026-11-20T09:30:00Z", "2026-11-20T10:30:00Z"},
		{"a count over days, begun at the last time of one", schedule.Spec{RRule: "FREQ=DAILY;BYHOUR=9,10;BYMINUTE=0,30;COUNT=6", DTStart: "2026-11-20T10:30:00"}, "2026-11-20T10:30:00Z", "2026-11-22T09:00:00Z"},
		{"a count begun between two times", schedule.Spec{RRule: "FREQ=DAILY;BYHOUR=9,10;BYMINUTE=0,30;COUNT=2", DTStart: "2026-11-20T09:31:00"}, "2026-11-20T10:00:00Z", "2026-11-20T10:30:00Z"},
		{"a count of every ninety minutes", schedule.Spec{RRule: "FREQ=MINUTELY;INTERVAL=90;COUNT=3", DTStart: "2026-11-20T09:00:00"}, "2026-11-20T09:00:00Z", "2026-11-20T12:00:00Z"},
		{"hours from a beginning", schedule.Spec{RRule: "FREQ=HOURLY", DTStart: "2026-11-20T09:30:00"}, "2026-11-20T09:30:00Z", ""},
		{"hours up to an end", schedule.Spec{RRule: "FREQ=HOURLY;UNTIL=20261120T123000", DTStart: "2026-11-20T09:30:00"}, "2026-11-20T09:30:00Z", "2026-11-20T12:30:00Z"},
		{"a count of hours", schedule.Spec{RRule: "FREQ=HOURLY;COUNT=3", DTStart: "2026-11-20T09:30:00"}, "2026-11-20T09:30:00Z", "2026-11-20T11:30:00Z"},
		{"a count of last days", schedule.Spec{RRule: "FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1;COUNT=2", DTStart: "2026-11-01T00:00:00"}, "2026-11-30T00:00:00Z", "2026-12-29T00:00:00Z"},
		{"a count of one", schedule.Spec{RRule: "FREQ=DAILY;COUNT=1", DTStart: "2026-11-20T09:00:00"}, "2026-11-20T09:00:00Z", "2026-11-20T09:00:00Z"},
		{"once", schedule.Spec{At: "2026-11-20T09:00:00Z"}, "2026-11-20T09:00:00Z", "2026-11-20T09:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := schedule.Parse(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if c.first != "" {
				first := instantOf(t, c.first)
				found(t, "the next one a second before the first", first, true)(s.Next(first.Add(-time.Second)))
				found(t, "the next one long before", first, true)(s.Next(first.AddDate(-3, 0, 0)))
				found(t, "the last one at the first", first, true)(s.Last(first))
				found(t, "the last one a second before the first", time.Time{}, false)(s.Last(first.Add(-time.Second)))
			}
			if c.last != "" {
				last := instantOf(t, c.last)
				found(t, "the next one a second before the last", last, true)(s.Next(last.Add(-time.Second)))
				found(t, "the next one at the last", time.Time{}, false)(s.Next(last))
				found(t, "the last one at the last", last, true)(s.Last(last))
				found(t, "the last one long after", last, true)(s.Last(last.AddDate(3, 0, 0)))
			}
		})
	}
}

func instantOf(t *testing.T, text string) time.Time {
	t.Helper()
	instant, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return instant
}

func found(t *testing.T, what string, want time.Time, ok bool) func(schedule.Slot, bool) {
	t.Helper()
	return func(got schedule.Slot, is bool) {
		t.Helper()
		if is != ok || ok && !got.At.Equal(want) {
			t.Errorf("%s: %s, %t; want %s", what, got.At, is, want)
		}
	}
}

// A duration that is none would freeze a cluster for days, or not at all.
func TestADurationOfAnEventIsReadStrictly(t *testing.T) {
	for text, want := range map[string]string{
		"PT90M": "2026-12-24 12:00 to 2026-12-24 13:30", "P1DT1H": "2026-12-24 12:00 to 2026-12-25 13:00", "P1W": "2026-12-24 12:00 to 2026-12-31 12:00", "PT30S": "2026-12-24 12:00 to 2026-12-24 12:00",
		"P5H": "", "PT5D": "", "PT1W": "", "P1M": "", "P5S": "", "P1": "", "PT": "", "P": "", "P1DT": "2026-12-24 12:00 to 2026-12-25 12:00", "PT1T1H": "", "P0D": "",
	} {
		calendar, err := schedule.ParseICalendar(vevent("DTSTART:20261224T120000", "DURATION:"+text))
		switch frozen := excludedBy(t, calendar, "2026-01-01T00:00Z", 1); {
		case want == "" && err == nil:
			t.Errorf("%s is taken for %s", text, frozen)
		case want != "" && (err != nil || !strings.HasPrefix(frozen, want)):
			t.Errorf("%s: %q %v, want %s", text, frozen, err, want)
		}
	}
}

func TestAZoneThatIsNoneSuggestsWhatIsNear(t *testing.T) {
	for zone, want := range map[string]string{
		"Europe/Berln": `did you mean Europe/Berlin?`,
		"Qqqqqqqqqqqq": `write an IANA name such as "Europe/Berlin" or "UTC"`,
	} {
		_, err := schedule.LoadZone(zone)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want … %s", zone, err, want)
		}
	}
}

func TestComponentsAreNestedTenDeepAndNoDeeper(t *testing.T) {
	nested := func(deep int) string {
		return "BEGIN:VCALENDAR\n" + strings.Repeat("BEGIN:X-A\n", deep-1) + strings.Repeat("END:X-A\n", deep-1) + "END:VCALENDAR\n"
	}
	if _, err := schedule.ParseICalendar(nested(10)); err != nil {
		t.Error(err)
	}
	if _, err := schedule.ParseICalendar(nested(11)); err == nil || !strings.Contains(err.Error(), "line 11: \"BEGIN:X-A\": stands in more than 10 others") {
		t.Error(err)
	}
}

// A line that is folded sixty thousand times is joined in one pass: no copy of it for each fold.
func TestAFoldedLineIsJoinedInOnePass(t *testing.T) {
	text := "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:a\r\nDTSTART:20000101T000000Z\r\nSUMMARY:Z" + strings.Repeat("\r\n x", 60_000) + "\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	if n := testing.AllocsPerRun(1, func() {
		if _, err := schedule.ParseICalendar(text); err != nil {
			t.Fatal(err)
		}
	}); n > 1000 {
		t.Errorf("%.0f allocations", n)
	}
}
