package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// What repeats every week is not followed day by day. What does not must be, or it would stay
// open for years.
func TestWindowsOfMoreThanAWeekEndWhereTheirRuleSays(t *testing.T) {
	numbers := func(format string) string {
		var list []string
		for n := range 20 {
			list = append(list, fmt.Sprintf(format, n+1))
		}
		return strings.Join(list, ",")
	}
	weekdays := func(numbers ...string) string {
		var list []string
		for _, n := range numbers {
			for _, day := range icalDays {
				list = append(list, n+day)
			}
		}
		return strings.Join(list, ",")
	}
	for name, c := range map[string]struct {
		rule, duration string
		want           string // from 20 January on, which is in the first
	}{
		"dates":                  {"FREQ=MONTHLY;BYMONTHDAY=" + numbers("%d"), "24h", "Thu 2026-01-01 00:00 to Wed 2026-01-21 00:00, Sun 2026-02-01 00:00 to Sat 2026-02-21 00:00"},
		"dates from the end":     {"FREQ=MONTHLY;BYMONTHDAY=" + numbers("-%d"), "24h", "Mon 2026-01-12 00:00 to Sun 2026-02-01 00:00, Mon 2026-02-09 00:00 to Sun 2026-03-01 00:00"},
		"days of a year":         {"FREQ=YEARLY;BYYEARDAY=" + numbers("%d"), "24h", "Thu 2026-01-01 00:00 to Wed 2026-01-21 00:00, Fri 2027-01-01 00:00 to Thu 2027-01-21 00:00"},
		"a month":                {"FREQ=DAILY;BYMONTH=1", "24h", "Thu 2026-01-01 00:00 to Sun 2026-02-01 00:00, Fri 2027-01-01 00:00 to Mon 2027-02-01 00:00"},
		"the first weekdays":     {"FREQ=MONTHLY;BYDAY=" + weekdays("1", "2", "3"), "24h", "Thu 2026-01-01 00:00 to Thu 2026-01-22 00:00, Sun 2026-02-01 00:00 to Sun 2026-02-22 00:00"},
		"the last weekdays":      {"FREQ=MONTHLY;BYDAY=" + weekdays("-1", "-2"), "24h", "Sun 2026-01-18 00:00 to Sun 2026-02-01 00:00, Sun 2026-02-15 00:00 to Sun 2026-03-01 00:00"},
		"every other week":       {"FREQ=WEEKLY;INTERVAL=2;BYDAY=" + weekdays(""), "72h", "Mon 2026-01-12 00:00 to Wed 2026-01-21 00:00, Mon 2026-01-26 00:00 to Wed 2026-02-04 00:00"},
		"every hour of dates":    {"FREQ=HOURLY;BYMONTHDAY=" + numbers("%d"), "1h", "Thu 2026-01-01 00:00 to Wed 2026-01-21 00:00, Sun 2026-02-01 00:00 to Sat 2026-02-21 00:00"},
		"other hours of dates":   {"FREQ=HOURLY;INTERVAL=2;BYMONTHDAY=" + numbers("%d"), "2h", "Thu 2026-01-01 00:00 to Wed 2026-01-21 00:00, Sun 2026-02-01 00:00 to Sat 2026-02-21 00:00"},
		"days up to an instant":  {"FREQ=DAILY;BYHOUR=0;UNTIL=20260131T000000Z", "24h", "ever to Sun 2026-02-01 00:00"},
		"hours up to an instant": {"FREQ=HOURLY;INTERVAL=2;UNTIL=20260131T120000Z", "2h", "ever to Sat 2026-01-31 14:00"},
		"minutes of dates":       {"FREQ=MINUTELY;INTERVAL=30;BYMONTHDAY=" + numbers("%d"), "30m", "Thu 2026-01-01 00:00 to Wed 2026-01-21 00:00, Sun 2026-02-01 00:00 to Sat 2026-02-21 00:00"},
	} {
		timeline := mustTimeline(t, schedule.MaintenanceSchedule{Windows: []schedule.Window{{RRule: c.rule, Duration: c.duration}}})
		if diff := cmp.Diff(c.want, intervals(t, timeline, "UTC", "2026-01-20T00:00Z", 2)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAFreezeOfMoreThanAWeekEndsWhereItsRuleSays(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"until a day":                     {[]string{"DTSTART;VALUE=DATE:20260401", "RRULE:FREQ=DAILY;UNTIL=20260430"}, "2026-04-01 00:00 to 2026-05-01 00:00 excluded: calendar c"},
		"so many days":                    {[]string{"DTSTART;VALUE=DATE:20260401", "RRULE:FREQ=DAILY;COUNT=30"}, "2026-04-01 00:00 to 2026-05-01 00:00 excluded: calendar c"},
		"all days but one":                {[]string{"DTSTART;VALUE=DATE:20260401", "RRULE:FREQ=DAILY;UNTIL=20260430", "EXDATE;VALUE=DATE:20260420"}, "2026-04-01 00:00 to 2026-04-20 00:00 excluded: calendar c\n2026-04-21 00:00 to 2026-05-01 00:00 excluded: calendar c"},
		"half hours of days, until noon":  {[]string{"DTSTART:20260401T000000", "DURATION:PT30M", "RRULE:FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23;BYMINUTE=0,30;UNTIL=20260402T120000"}, "2026-04-01 00:00 to 2026-04-02 12:30 excluded: calendar c"},
		"hours, until noon":               {[]string{"DTSTART:20260401T000000", "DURATION:PT1H", "RRULE:FREQ=HOURLY;UNTIL=20260402T120000"}, "2026-04-01 00:00 to 2026-04-02 13:00 excluded: calendar c"},
		"from noon on, every ten minutes": {[]string{"DTSTART:20260401T120000", "DURATION:PT10M", "RRULE:FREQ=MINUTELY;INTERVAL=10;COUNT=145"}, "2026-04-01 12:00 to 2026-04-02 12:10 excluded: calendar c"},
		"all hours until one":             {[]string{"DTSTART:20260401T000000", "DURATION:PT2H", "RRULE:FREQ=HOURLY;INTERVAL=2;UNTIL=20260430T220000"}, "2026-04-01 00:00 to 2026-05-01 00:00 excluded: calendar c"},
	} {
		calendar, err := schedule.ParseICalendar(vevent(c.lines...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, excludedBy(t, calendar, "2026-01-01T00:00Z", 10)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Of windows by the hour those that touch are one, and no others.
func TestWindowsByTheHourAreJoinedWhereTheyTouch(t *testing.T) {
	for name, c := range map[string]struct{ rule, duration, want string }{
		"those that do not":               {"FREQ=HOURLY;INTERVAL=2", "1h", "Tue 2026-01-20 00:00 to Tue 2026-01-20 01:00, Tue 2026-01-20 02:00 to Tue 2026-01-20 03:00"},
		"those of some hours":             {"FREQ=HOURLY;INTERVAL=2;BYHOUR=0,2,20", "2h", "Tue 2026-01-20 00:00 to Tue 2026-01-20 04:00, Tue 2026-01-20 20:00 to Tue 2026-01-20 22:00"},
		"those of one minute of an hour":  {"FREQ=MINUTELY;INTERVAL=30;BYMINUTE=0", "30m", "Tue 2026-01-20 00:00 to Tue 2026-01-20 00:30, Tue 2026-01-20 01:00 to Tue 2026-01-20 01:30"},
		"those that overlap on some days": {"FREQ=HOURLY;INTERVAL=2;BYDAY=TU,FR", "3h", "Tue 2026-01-20 00:00 to Wed 2026-01-21 01:00, Fri 2026-01-23 00:00 to Sat 2026-01-24 01:00"},
	} {
		timeline := mustTimeline(t, schedule.MaintenanceSchedule{Windows: []schedule.Window{{RRule: c.rule, Duration: c.duration}}})
		if diff := cmp.Diff(c.want, intervals(t, timeline, "UTC", "2026-01-20T00:00Z", 2)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A run of windows that touch is one, also where clocks change in it.
func TestWindowsThatTouchAreOneWhereClocksChange(t *testing.T) {
	for name, c := range map[string]struct {
		window schedule.Window
		at     string
		want   string
	}{
		"over a gap":                   {schedule.Window{Cron: "*/10 1-5 * * *", Duration: "10m"}, "2026-03-29T01:05Z", "Sun 2026-03-29 01:00 to Sun 2026-03-29 06:00"},
		"over a gap, asked before":     {schedule.Window{Cron: "*/10 1-5 * * *", Duration: "10m"}, "2026-03-29T00:30Z", "Sun 2026-03-29 01:00 to Sun 2026-03-29 06:00"},
		"over a gap, asked at the end": {schedule.Window{Cron: "*/10 1-5 * * *", Duration: "10m"}, "2026-03-29T03:59Z", "Sun 2026-03-29 01:00 to Sun 2026-03-29 06:00"},
		"of a gap alone":               {schedule.Window{Cron: "*/2 2 * * *", Duration: "2m"}, "2026-03-29T01:01Z", "Sun 2026-03-29 03:00 to Sun 2026-03-29 03:02"},
		"all day, on the day of a gap": {schedule.Window{RRule: "FREQ=MINUTELY;INTERVAL=30;BYDAY=SU", Duration: "30m"}, "2026-03-29T12:00Z", "Sun 2026-03-29 00:00 to Mon 2026-03-30 00:00"},
	} {
		timeline := mustTimeline(t, schedule.MaintenanceSchedule{Timezone: "Europe/Berlin", Windows: []schedule.Window{c.window}})
		if diff := cmp.Diff(c.want, intervals(t, timeline, "Europe/Berlin", c.at, 1)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A year has four digits, and the first is 1.
func TestAYearIsOneOfTheCalendar(t *testing.T) {
	for date, want := range map[string]bool{"0001-01-01": true, "0000-12-31": false, "9999-12-31": true} {
		_, err := schedule.ParseCalendarEntries([]schedule.CalendarEntry{{From: date}})
		if (err == nil) != want {
			t.Errorf("%s: %v", date, err)
		}
	}
}

// An interval says what begins and ends it, where that is no window's own bound.
func TestWhatPeopleAreToldOfAnInterval(t *testing.T) {
	frozen := schedule.MaintenanceSchedule{Timezone: "Europe/Berlin", Permit: &schedule.Permit{}, Exclude: []schedule.Exclusion{
		{FromDate: "2026-03-02", Reason: "freeze"}, {FromDate: "2026-03-10", Reason: "audit"}, {FromDate: "2026-04-01", Reason: "audit"},
	}}
	sundays := schedule.MaintenanceSchedule{Timezone: "Europe/Berlin", Windows: []schedule.Window{{Days: []string{"Sun"}, Start: "00:00", End: "02:00"}}}
	longer := schedule.MaintenanceSchedule{Timezone: "Europe/Berlin", Windows: []schedule.Window{{Days: []string{"Sun"}, Start: "00:00", End: "03:01"}}}
	for name, c := range map[string]struct {
		spec schedule.MaintenanceSchedule
		from string
		want []string
	}{
		"between exclusions":                    {frozen, "2026-02-01T00:00Z", []string{"excluded: freeze", "excluded: freeze; excluded: audit", "clock change; excluded: audit", "excluded: audit"}},
		"up to the instant that clocks change":  {sundays, "2026-03-28T12:00Z", []string{"", ""}},
		"over the instant that clocks change":   {longer, "2026-03-28T12:00Z", []string{"clock change", ""}},
		"over the hour that clocks show twice":  {longer, "2026-10-24T12:00Z", []string{"clock change", ""}},
		"from the instant that clocks changed":  {schedule.MaintenanceSchedule{Timezone: "Europe/Berlin", Windows: []schedule.Window{{Start: "03:00", End: "04:00"}}}, "2026-03-28T12:00Z", []string{"", ""}},
		"an exclusion that does not touch them": {schedule.MaintenanceSchedule{Windows: []schedule.Window{{Start: "03:00", End: "04:00"}}, Exclude: []schedule.Exclusion{{FromDate: "2026-03-29", Reason: "freeze"}}}, "2026-03-28T12:00Z", []string{"", ""}},
	} {
		var got []string
		for interval := range mustTimeline(t, c.spec).Intervals(instant(t, c.from)) {
			if got = append(got, interval.Note); len(got) == len(c.want) {
				break
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A window keeps its notes below what holds until an instant, and beside other policies.
func TestWhatPeopleAreToldOfAnIntervalBelowOthers(t *testing.T) {
	sundays := schedule.MaintenanceSchedule{Timezone: "Europe/Berlin", Windows: []schedule.Window{{Days: []string{"Sun"}, Start: "00:00", End: "04:00"}}, Exclude: []schedule.Exclusion{{FromDate: "2026-04-12", Reason: "audit"}}}
	holidays := schedule.MaintenanceSchedule{Exclude: []schedule.Exclusion{{FromDate: "2026-12-20", UntilDate: "2027-01-03", Reason: "holidays"}}}
	until := func(text string) *time.Time { return new(instant(t, text)) }
	stanza := func(s schedule.Strategy, text string) func(*schedule.Policy) *schedule.Policy {
		return func(p *schedule.Policy) *schedule.Policy {
			return p.Overridden(schedule.Stanza{Strategy: s, Until: until(text)})
		}
	}
	for name, c := range map[string]struct {
		spec schedule.MaintenanceSchedule
		by   func(*schedule.Policy) *schedule.Policy
		from string
		want []string
	}{
		"excluded and else always permitted":          {holidays, nil, "2026-02-01T00:00Z", []string{"policy p: excluded: holidays", "policy p: excluded: holidays"}},
		"an allowance that was over":                  {sundays, stanza(schedule.PermissiveUntil, "2026-03-01T00:00Z"), "2026-03-28T00:00Z", []string{"clock change", ""}},
		"a freeze that was over":                      {sundays, stanza(schedule.RestrictiveUntil, "2026-03-01T00:00Z"), "2026-03-28T00:00Z", []string{"clock change", ""}},
		"a freeze that ends inside, after the change": {sundays, stanza(schedule.RestrictiveUntil, "2026-03-29T01:30Z"), "2026-03-28T00:00Z", []string{"", ""}},
		"a pause that ends with the exclusion": {holidays, func(p *schedule.Policy) *schedule.Policy {
			return p.Paused(schedule.Pause{On: true, Until: until("2027-01-03T00:00Z")})
		}, "2026-12-01T00:00Z", []string{"policy p: excluded: holidays"}},
		"permitted until an exclusion begins": {holidays, stanza(schedule.PermissiveUntil, "2026-12-20T00:00Z"), "2026-12-01T00:00Z", []string{"policy p: excluded: holidays", "policy p: excluded: holidays"}},
		"beside another policy": {sundays, func(p *schedule.Policy) *schedule.Policy {
			return p.Overridden(schedule.Stanza{Policies: []*schedule.Policy{p, mustPolicy(t, "other", schedule.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: &holidays})}})
		}, "2026-03-28T00:00Z", []string{"clock change", ""}},
	} {
		p := mustPolicy(t, "p", schedule.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: &c.spec})
		if c.by != nil {
			p = c.by(p)
		}
		var got []string
		for interval := range p.Intervals(instant(t, c.from)) {
			if got = append(got, interval.Note); len(got) == len(c.want) {
				break
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What holds until an instant holds in the second before it, and at the instant what follows
// does; a fraction of a second is rounded up.
func TestWhatHoldsUntilAnInstantEndsThere(t *testing.T) {
	end := instant(t, "2026-12-01T10:00Z")
	missing := []*schedule.Policy{schedule.PolicyNotReady("p", "there is no such policy")}
	open := []*schedule.Policy{mustPolicy(t, "p", schedule.PolicySpec{Strategy: schedule.Permissive})}
	closed := []*schedule.Policy{mustPolicy(t, "p", schedule.PolicySpec{Strategy: schedule.Restrictive})}
	until := func(s schedule.Strategy, policies []*schedule.Policy) schedule.GateSpec {
		return schedule.GateSpec{Own: schedule.Stanza{Strategy: s, Until: &end, Policies: policies}}
	}
	for name, c := range map[string]struct {
		spec         schedule.GateSpec
		before, then string
	}{
		"permissive, and nobody knows then":  {until(schedule.PermissiveUntil, missing), "permitted 1", "not ready -2"},
		"permissive, and restrictive then":   {until(schedule.PermissiveUntil, closed), "permitted 1", "restricted -1"},
		"permissive, and permissive then":    {until(schedule.PermissiveUntil, open), "permitted -1", "permitted -1"},
		"permissive, and nothing else":       {until(schedule.PermissiveUntil, nil), "permitted 1", "restricted -1"},
		"restrictive, and nobody knows then": {until(schedule.RestrictiveUntil, missing), "restricted -1", "not ready -2"},
		"restrictive, and permissive then":   {until(schedule.RestrictiveUntil, open), "restricted 1", "permitted -1"},
		"restrictive, and restrictive then":  {until(schedule.RestrictiveUntil, closed), "restricted -1", "restricted -1"},
		"a bypass of what is restrictive":    {schedule.GateSpec{Policies: closed, Bypass: &end}, "permitted 1", "restricted -1"},
		"a bypass of what nobody knows":      {schedule.GateSpec{Policies: missing, Bypass: &end}, "permitted 1", "not ready -2"},
	} {
		gate := schedule.NewGate(c.spec)
		said := func(at time.Time) string {
			v := gate.Verdict(at)
			switch {
			case !v.Ready:
				return fmt.Sprint("not ready ", v.NextChangeETA)
			case v.Permitted:
				return fmt.Sprint("permitted ", v.PermissiveRemaining)
			}
			return fmt.Sprint("restricted ", v.NextChangeETA)
		}
		if before, then := said(end.Add(-time.Second)), said(end); before != c.before || then != c.then {
			t.Errorf("%s: %q and then %q, want %q and %q", name, before, then, c.before, c.then)
		}
	}
	later := end.Add(time.Millisecond)
	gate := schedule.NewGate(schedule.GateSpec{Policies: closed, Bypass: &later})
	if !gate.Verdict(end).Permitted || gate.Verdict(end.Add(time.Second)).Permitted {
		t.Error("a bypass until a fraction of a second is not rounded up")
	}
}
