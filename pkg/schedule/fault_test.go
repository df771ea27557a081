package schedule_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func TestFaultsSayWhatToWriteInstead(t *testing.T) {
	for _, c := range []struct {
		name string
		spec schedule.Spec
		want []string // parts of the message of each fault
	}{
		{"no schedule at all", schedule.Spec{}, []string{"cron: is missing; write one of cron, rrule and at"}},
		{"two schedules in one", schedule.Spec{Cron: "0 2 * * *", RRule: "FREQ=DAILY"}, []string{"rrule: stands beside cron"}},
		{"a zone inside cron", schedule.Spec{Cron: "TZ=Europe/Berlin 0 2 * * *"}, []string{`write timezone: "Europe/Berlin" and cron: "0 2 * * *"`}},
		{"a zone and nothing else", schedule.Spec{Cron: "CRON_TZ=UTC"}, []string{`write timezone: "UTC"`}},
		{"an interval in cron", schedule.Spec{Cron: "@every 90m"}, []string{`write rrule: "FREQ=MINUTELY;INTERVAL=90"`}},
		{"an interval that cron can say", schedule.Spec{Cron: "@every 15m"}, []string{`write cron: "*/15 * * * *"`}},
		{"a descriptor nobody knows", schedule.Spec{Cron: "@reboot"}, []string{"write @hourly"}},
		{"four fields", schedule.Spec{Cron: "0 2 * *"}, []string{"has 4 fields; write five"}},
		{"six fields", schedule.Spec{Cron: "0 0 2 * * *"}, []string{"has 6 fields; write five"}},
		{"several fields out of range", schedule.Spec{Cron: "60 24 0 13 8"}, []string{
			`minute "60": 60 is out of range; write 0 to 59`, `hour "24": 24 is out of range; write 0 to 23`,
			`day of month "0": 0 is out of range; write 1 to 31`, `month "13": 13 is out of range; write 1 to 12 or JAN to DEC`,
			`day of week "8": 8 is out of range; write 0 to 7 or SUN to SAT`,
		}},
		{"a step beyond the range", schedule.Spec{Cron: "*/90 * * * *"}, []string{`for every 90 minutes write rrule: "FREQ=MINUTELY;INTERVAL=90"`}},
		{"a step of none", schedule.Spec{Cron: "*/0 * * * *"}, []string{"a step is at least 1"}},
		{"a trailing comma", schedule.Spec{Cron: "0,30, 2 * * *"}, []string{`write "0,30"`}},
		{"a range that runs backwards", schedule.Spec{Cron: "0 22-4 * * *"}, []string{`write "22-23,0-4"`}},
		{"a range of days that runs over Sunday", schedule.Spec{Cron: "0 2 * * 5-1"}, []string{`write "5-6,0-1"`}},
		{"a day's full name", schedule.Spec{Cron: "0 2 * * Monday"}, []string{`write "MON"`}},
		{"a month nobody knows", schedule.Spec{Cron: "0 2 * Foo *"}, []string{`"Foo" is not a value; write 1 to 12 or JAN to DEC`}},
		{"a date that is never", schedule.Spec{Cron: "0 2 30 2 *"}, []string{"can never fire"}},
		{"dates that are never", schedule.Spec{Cron: "0 2 31 2,4,6,9,11 *"}, []string{"can never fire"}},
		{"a zone with a typo", schedule.Spec{Cron: "0 2 * * *", Timezone: "Europe/Berln"}, []string{"did you mean Europe/Berlin?"}},
		{"a zone without its region", schedule.Spec{Cron: "0 2 * * *", Timezone: "new york"}, []string{"did you mean America/New_York?"}},
		{"the machine's zone", schedule.Spec{Cron: "0 2 * * *", Timezone: "Local"}, []string{`timezone: "Local": is not a time zone`}},
		{"all faults at once", schedule.Spec{Cron: "60 2 * * *", Timezone: "Mars/Base", Jitter: "soon"}, []string{"timezone", "jitter", "minute"}},
		{"a negative jitter", schedule.Spec{Cron: "0 2 * * *", Jitter: "-5m"}, []string{`write it like "90s"`}},
		{"seconds", schedule.Spec{RRule: "FREQ=SECONDLY"}, []string{"write FREQ=MINUTELY"}},
		{"no frequency", schedule.Spec{RRule: "INTERVAL=2"}, []string{"FREQ is missing"}},
		{"an interval of none", schedule.Spec{RRule: "FREQ=DAILY;INTERVAL=0"}, []string{"INTERVAL=0: write 1 or more"}},
		{"Easter", schedule.Spec{RRule: "FREQ=YEARLY;BYEASTER=0"}, []string{"BYEASTER is not part of RFC 5545"}},
		{"a number in a week", schedule.Spec{RRule: "FREQ=WEEKLY;BYDAY=1MO"}, []string{"write FREQ=MONTHLY, or BYDAY without the number"}},
		{"the sixth Monday of a month", schedule.Spec{RRule: "FREQ=MONTHLY;BYDAY=6MO"}, []string{"write 1 to 5, or -1 to -5"}},
		{"a week without a day", schedule.Spec{RRule: "FREQ=WEEKLY"}, []string{"needs BYDAY"}},
		{"a count from nowhere", schedule.Spec{RRule: "FREQ=DAILY;COUNT=3"}, []string{"write dtstart, or UNTIL"}},
		{"a count and an end", schedule.Spec{RRule: "FREQ=DAILY;COUNT=3;UNTIL=20300101"}, []string{"COUNT and UNTIL are both there"}},
		{"an end before the beginning", schedule.Spec{RRule: "FREQ=DAILY;UNTIL=20200101", DTStart: "2026-01-01"}, []string{"can never fire: there is no such time from dtstart to UNTIL"}},
		{"30 February in a rule", schedule.Spec{RRule: "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}, []string{"can never fire"}},
		{"29 February in years that never leap", schedule.Spec{RRule: "FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29"}, []string{"can never fire"}},
		{"odd minutes from an even one", schedule.Spec{RRule: "FREQ=MINUTELY;INTERVAL=2;BYMINUTE=1"}, []string{"can never fire"}},
		{"parts nobody knows", schedule.Spec{RRule: "FREQ=DAILY;FOO=1;BYHOUR=25"}, []string{"FOO is not a part of a rule", "BYHOUR=25: write 0 to 23"}},
		{"a part twice", schedule.Spec{RRule: "FREQ=DAILY;FREQ=DAILY"}, []string{"FREQ is there twice"}},
		{"DTSTART inside the rule", schedule.Spec{RRule: "DTSTART:20260101T000000\nRRULE:FREQ=DAILY"}, []string{"with DTSTART and EXDATE in the fields"}},
		{"an exception without a rule", schedule.Spec{Cron: "0 2 * * *", ExDate: []string{"2026-01-01"}}, []string{"exdate", "belongs to rrule"}[1:]},
		{"exceptions that are no times", schedule.Spec{RRule: "FREQ=DAILY", ExDate: []string{"2026-01-01", "soon"}}, []string{`exdate[1]: "soon": is not a time`}},
		{"all exceptions", schedule.Spec{RRule: "FREQ=DAILY;COUNT=1", DTStart: "2026-01-01", ExDate: []string{"2026-01-01"}}, []string{"can never fire"}},
		{"an instant without an offset", schedule.Spec{At: "2026-03-08 02:00"}, []string{"write 2026-03-08T02:00:00Z"}},
		{"no instant at all", schedule.Spec{At: "tomorrow"}, []string{"is not an RFC 3339 instant"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := schedule.Parse(c.spec)
			faults := schedule.Faults(err)
			if len(faults) != len(c.want) {
				t.Fatalf("got %d faults, want %d: %v", len(faults), len(c.want), err)
			}
			for i, want := range c.want {
				if !strings.Contains(faults[i].Error(), want) {
					t.Errorf("fault %d: %q does not say %q", i, faults[i], want)
				}
			}
		})
	}
}

func TestAFaultGetsThePathOfTheDocument(t *testing.T) {
	_, err := schedule.Parse(schedule.Spec{RRule: "FREQ=DAILY", ExDate: []string{"soon"}})
	var got []string
	for _, fault := range schedule.Faults(schedule.Under("spec.triggers.schedules[2]", err)) {
		got = append(got, fault.Field)
	}
	if diff := cmp.Diff([]string{"spec.triggers.schedules[2].exdate[0]"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCronReadsWhatCronJobReadsAndSundayAsSeven(t *testing.T) {
	for _, c := range []struct{ one, other string }{
		{"0 2 * * 7", "0 2 * * 0"},
		{"0 2 * * 5-7", "0 2 * * 0,5,6"},
		{"0 2 * * fri-sun", "0 2 * * 0,5,6"},
		{"0 2 * * 0-7", "0 2 * * 0,1,2,3,4,5,6"},
		{"0 2 * * 1-7/2", "0 2 * * 1,3,5,0"},
		{"0 2 * * SUN", "0 2 * * 0"},
		{"0 2 * JAN-mar *", "0 2 * 1,2,3 *"},
		{"5/20 2 * * *", "5,25,45 2 * * *"},
		{"? 2 ? * ?", "* 2 * * *"},
		{"@weekly", "0 0 * * 0"},
		{"@midnight", "0 0 * * *"},
		{"@annually", "0 0 1 1 *"},
		{"0 2 13 * 5", "0 2 13 * fri"},
	} {
		one, other := mustParse(t, schedule.Spec{Cron: c.one}), mustParse(t, schedule.Spec{Cron: c.other})
		at := instant(t, "2026-01-01T00:00Z")
		for range 50 {
			got, _ := one.NextTime(at)
			want, _ := other.NextTime(at)
			if !got.Equal(want) {
				t.Errorf("%q after %s: got %s, want %s as %q", c.one, at, got, want, c.other)
				break
			}
			at = want
		}
	}
}

func TestDayOfMonthAndDayOfWeekBothRestrictedMeansEither(t *testing.T) {
	for _, c := range []struct{ cron, want string }{
		{"0 0 13 * 5", "2026-01-02T00:00Z 2026-01-09T00:00Z 2026-01-13T00:00Z"},
		{"0 0 */10 * 1", "2026-01-05T00:00Z 2026-01-11T00:00Z 2026-01-12T00:00Z"}, // a step counts as restricted
		{"0 0 13 * *", "2026-01-13T00:00Z 2026-02-13T00:00Z 2026-03-13T00:00Z"},
		{"0 0 * * 5", "2026-01-02T00:00Z 2026-01-09T00:00Z 2026-01-16T00:00Z"},
		{"0 0 */1 * 5", "2026-01-02T00:00Z 2026-01-09T00:00Z 2026-01-16T00:00Z"},
	} {
		s, at := mustParse(t, schedule.Spec{Cron: c.cron}), instant(t, "2026-01-01T00:00Z")
		var got []string
		for range 3 {
			at, _ = s.NextTime(at)
			got = append(got, describe(schedule.Slot{At: at}, true))
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", c.cron, diff)
		}
	}
}

// What RFC 5545 refuses is told, and what stands beside it is taken.
func TestWhichPartsOfARuleGoTogether(t *testing.T) {
	for rule, want := range map[string]string{
		"FREQ=DAILY;COUNT=1":       "",
		"FREQ=DAILY;COUNT=100000":  "",
		"FREQ=DAILY;COUNT=0":       "COUNT=0: write 1 to 100000, or UNTIL",
		"FREQ=DAILY;COUNT=100001":  "COUNT=100001: write 1 to 100000, or UNTIL",
		"FREQ=DAILY;UNTIL=soon":    "UNTIL=SOON: ",
		"FREQ=DAILY;WKST=XX":       "WKST=XX: write one of MO",
		"FREQ=DAILY;BYHOUR=0,23":   "",
		"FREQ=DAILY;BYHOUR=-1":     "BYHOUR=-1: write 0 to 23",
		"FREQ=DAILY;BYMONTHDAY=0":  "BYMONTHDAY=0: write 1 to 31, or -1 to -31 counted from the end",
		"FREQ=DAILY;BYMONTHDAY=31": "", "FREQ=DAILY;BYMONTHDAY=-31": "",
		"FREQ=DAILY;BYMONTHDAY=-32": "BYMONTHDAY=-32: write 1 to 31",
		"FREQ=DAILY;BYMONTHDAY":     `part "BYMONTHDAY" is not NAME=VALUE`,
		"FREQ=DAILY;BYMONTHDAY=":    `part "BYMONTHDAY=" is not NAME=VALUE`,

		"FREQ=YEARLY;BYDAY=53MO": "", "FREQ=YEARLY;BYDAY=-53MO": "", "FREQ=YEARLY;BYDAY=+1MO": "",
		"FREQ=YEARLY;BYDAY=54MO":  "number weekdays 1 to 53",
		"FREQ=YEARLY;BYDAY=0MO":   "number weekdays 1 to 53",
		"FREQ=YEARLY;BYDAY=1":     "BYDAY=1: write MO",
		"FREQ=HOURLY;BYDAY=1MO":   "a numbered weekday needs a month or a year",
		"FREQ=MONTHLY;BYDAY=5MO":  "",
		"FREQ=MONTHLY;BYDAY=-5MO": "",
		"FREQ=MONTHLY;BYDAY=-6MO": "a month has no weekday number -6",

		"FREQ=YEARLY;BYMONTH=1;BYDAY=5MO":  "",
		"FREQ=YEARLY;BYMONTH=1;BYDAY=6MO":  "a month has no weekday number 6",
		"FREQ=YEARLY;BYDAY=6MO":            "",
		"FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO":  "",
		"FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO": "a numbered weekday cannot be combined with BYWEEKNO",
		"FREQ=YEARLY;BYWEEKNO=1":           "BYWEEKNO needs BYDAY",
		"FREQ=DAILY;BYWEEKNO=1;BYDAY=MO":   "BYWEEKNO counts weeks of a year",

		"FREQ=YEARLY;BYYEARDAY=1": "", "FREQ=HOURLY;BYYEARDAY=1": "", "FREQ=MINUTELY;BYYEARDAY=1": "",
		"FREQ=MONTHLY;BYYEARDAY=1":           "BYYEARDAY cannot be combined with FREQ=MONTHLY",
		"FREQ=WEEKLY;BYDAY=MO;BYYEARDAY=1":   "BYYEARDAY cannot be combined with FREQ=WEEKLY",
		"FREQ=DAILY;BYYEARDAY=1":             "BYYEARDAY cannot be combined with FREQ=DAILY",
		"FREQ=WEEKLY;BYDAY=MO;BYMONTHDAY=1":  "BYMONTHDAY cannot be combined with FREQ=WEEKLY",
		"FREQ=HOURLY;BYMINUTE=1;BYSETPOS=1":  "BYSETPOS cannot be combined with FREQ=HOURLY",
		"FREQ=MINUTELY;BYHOUR=1;BYSETPOS=1":  "BYSETPOS cannot be combined with FREQ=MINUTELY",
		"FREQ=MONTHLY;BYSETPOS=1":            "BYSETPOS picks from other BY parts, and there are none",
		"FREQ=YEARLY;BYMONTH=1;BYSETPOS=1":   "",
		"FREQ=YEARLY;BYYEARDAY=1;BYSETPOS=1": "", "FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO;BYSETPOS=1": "",
		"FREQ=MONTHLY;BYMONTHDAY=1;BYSETPOS=1": "", "FREQ=MONTHLY;BYDAY=1MO;BYSETPOS=1": "", "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=1": "",
		"FREQ=DAILY;BYHOUR=1;BYSETPOS=1": "", "FREQ=DAILY;BYMINUTE=1;BYSETPOS=1": "", "FREQ=DAILY;BYSECOND=1;BYSETPOS=1": "",
	} {
		_, err := schedule.Parse(schedule.Spec{RRule: rule, DTStart: "2026-01-05"})
		faults := schedule.Faults(err)
		if want == "" && err != nil || want != "" && (len(faults) != 1 || !strings.Contains(faults[0].Error(), want)) {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
}
