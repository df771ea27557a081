package schedule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func number(n int) *int { return &n }

func weekly(days ...string) *schedule.Recurrence {
	return &schedule.Recurrence{Frequency: "Weekly", Weekly: &schedule.WeeklyRecurrence{DaysOfWeek: days}}
}

func mustTimeline(tb testing.TB, spec schedule.MaintenanceSchedule) *schedule.Timeline {
	tb.Helper()
	timeline, err := schedule.ParseMaintenanceSchedule(&spec, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return timeline
}

// intervals writes the first open stretches from an instant on, as local times.
func intervals(t *testing.T, timeline *schedule.Timeline, zone, from string, most int) string {
	t.Helper()
	location, err := schedule.LoadZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	word := func(at *time.Time) string {
		if at == nil {
			return "ever"
		}
		return at.In(location).Format("Mon 2006-01-02 15:04")
	}
	for interval := range timeline.Intervals(instant(t, from)) {
		list = append(list, word(interval.Start)+" to "+word(interval.End))
		if len(list) == most {
			break
		}
	}
	return strings.Join(list, ", ")
}

func TestWindows(t *testing.T) {
	permit := func(p schedule.Permit) schedule.MaintenanceSchedule { return schedule.MaintenanceSchedule{Permit: &p} }
	in := func(zone string, list ...schedule.Window) schedule.MaintenanceSchedule {
		return schedule.MaintenanceSchedule{Timezone: zone, Windows: list}
	}
	monthlyDay := func(interval *int, week, day string) *schedule.Recurrence {
		return &schedule.Recurrence{Frequency: "Monthly", Monthly: &schedule.MonthlyRecurrence{By: "Day", Day: &schedule.MonthlyDays{
			Interval: interval, Days: []schedule.WeekdayOfMonth{{WeekOfMonth: week, DayOfWeek: day}},
		}}}
	}
	monthlyDate := func(interval *int, dates ...int) *schedule.Recurrence {
		return &schedule.Recurrence{Frequency: "Monthly", Monthly: &schedule.MonthlyRecurrence{By: "Date", Date: &schedule.MonthlyDates{Interval: interval, DatesOfMonth: dates}}}
	}
	for _, c := range []struct {
		name, from, want string
		spec             schedule.MaintenanceSchedule
	}{
		{
			"a window over midnight belongs to the day on which it opens", "2026-08-03T00:00Z",
			"Fri 2026-08-07 22:00 to Sat 2026-08-08 02:00, Fri 2026-08-14 22:00 to Sat 2026-08-15 02:00",
			in("UTC", schedule.Window{Days: []string{"Fri"}, Start: "22:00", End: "02:00"}),
		},
		{
			"an open window comes first, with its true start", "2026-08-08T01:00Z",
			"Fri 2026-08-07 22:00 to Sat 2026-08-08 02:00, Fri 2026-08-14 22:00 to Sat 2026-08-15 02:00",
			in("UTC", schedule.Window{Days: []string{"friday"}, Start: "22:00", End: "02:00"}),
		},
		{
			"equal start and end are 24 hours", "2026-08-03T00:00Z", "Fri 2026-08-07 22:00 to Sat 2026-08-08 22:00, Fri 2026-08-14 22:00 to Sat 2026-08-15 22:00",
			in("UTC", schedule.Window{Days: []string{"FRI"}, Start: "22:00", End: "22:00"}),
		},
		{
			"24:00 is the end of the day", "2026-08-03T12:00Z", "Fri 2026-08-07 22:00 to Sat 2026-08-08 00:00, Fri 2026-08-14 22:00 to Sat 2026-08-15 00:00",
			in("UTC", schedule.Window{Days: []string{"Fri"}, Start: "22:00", End: "24:00"}),
		},
		{
			"no days means every day", "2026-08-03T12:00Z", "Mon 2026-08-03 22:00 to Mon 2026-08-03 23:00, Tue 2026-08-04 22:00 to Tue 2026-08-04 23:00",
			in("UTC", schedule.Window{Start: "22:00", End: "23:00"}),
		},
		{
			"windows that touch merge", "2026-08-03T12:00Z", "Fri 2026-08-07 22:00 to Mon 2026-08-10 04:00, Fri 2026-08-14 22:00 to Mon 2026-08-17 04:00",
			in("UTC", schedule.Window{Days: []string{"Fri"}, Start: "22:00", End: "24:00"}, schedule.Window{Days: []string{"Sat", "Sun"}, Start: "00:00", End: "24:00"},
				schedule.Window{Cron: "0 0 * * 1", Duration: "4h"}),
		},
		{
			"every day from midnight to midnight never closes", "2026-08-03T12:00Z", "ever to ever",
			in("Europe/Berlin", schedule.Window{Start: "00:00", End: "24:00"}),
		},
		{
			"halves of a week that add up never close", "2026-08-03T12:00Z", "ever to ever",
			in("America/New_York", schedule.Window{Days: []string{"Mon", "Tue", "Wed", "Thu", "Fri"}, Start: "00:00", End: "24:00"},
				schedule.Window{Days: []string{"Sat", "Sun"}, Start: "00:00", End: "12:00"}, schedule.Window{Days: []string{"Sat", "Sun"}, Start: "12:00", End: "00:00"}),
		},
		{
			"a window a minute never closes where clocks stay", "2026-08-03T12:00Z", "ever to ever",
			in("Asia/Kolkata", schedule.Window{Cron: "* * * * *", Duration: "1m"}),
		},
		{
			"24 elapsed hours close for one when clocks go back", "2026-08-03T12:00Z", "Mon 2025-11-03 00:00 to Sun 2026-11-01 23:00, Mon 2026-11-02 00:00 to Sun 2027-11-07 23:00",
			in("America/New_York", schedule.Window{Cron: "0 0 * * *", Duration: "24h"}),
		},
		{
			"a window every two minutes is closed in the second pass of an overlap, where its hours are not all", "2026-08-03T12:00Z",
			"Sun 2025-10-26 03:00 to Sun 2026-10-25 02:00, Sun 2026-10-25 03:00 to Sun 2027-10-31 02:00",
			in("Europe/Berlin", schedule.Window{Cron: "* 9-17 * * *", Duration: "1m"}, schedule.Window{Cron: "*/2 0-8 * * *", Duration: "2m"},
				schedule.Window{Cron: "*/2 18-23 * * *", Duration: "2m"}),
		},
		{"every date is every day", "2026-08-03T12:00Z", "ever to ever", permit(schedule.Permit{Recurrence: monthlyDate(nil,
			1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31)})},
		{
			"a duration is elapsed time, an end a wall-clock time", "2026-03-28T12:00Z", "Sat 2026-03-28 22:00 to Sun 2026-03-29 07:00, Sun 2026-03-29 22:00 to Mon 2026-03-30 06:00",
			in("Europe/Berlin", schedule.Window{Cron: "0 22 * * *", Duration: "8h"}),
		},
		{
			"the same as a pair", "2026-03-28T12:00Z", "Sat 2026-03-28 22:00 to Sun 2026-03-29 06:00, Sun 2026-03-29 22:00 to Mon 2026-03-30 06:00",
			in("Europe/Berlin", schedule.Window{Start: "22:00", End: "06:00"}),
		},
		{
			"a start in a gap is the first instant after it", "2026-03-28T12:00Z", "Sun 2026-03-29 03:00 to Sun 2026-03-29 03:30, Mon 2026-03-30 02:15 to Mon 2026-03-30 03:30",
			in("Europe/Berlin", schedule.Window{Start: "02:15", End: "03:30"}),
		},
		{
			"a window that is all in a gap is not there", "2026-03-28T12:00Z", "Mon 2026-03-30 02:15 to Mon 2026-03-30 02:45, Tue 2026-03-31 02:15 to Tue 2026-03-31 02:45",
			in("Europe/Berlin", schedule.Window{Start: "02:15", End: "02:45"}),
		},
		{
			"an end in an overlap is the first of the two", "2026-10-24T12:00Z", "Sun 2026-10-25 01:00 to Sun 2026-10-25 02:30, Mon 2026-10-26 01:00 to Mon 2026-10-26 02:30",
			in("Europe/Berlin", schedule.Window{Start: "01:00", End: "02:30"}),
		},
		{
			"a window may have a zone of its own", "2026-08-03T00:00Z", "Mon 2026-08-03 15:00 to Mon 2026-08-03 16:00, Tue 2026-08-04 15:00 to Tue 2026-08-04 16:00",
			in("UTC", schedule.Window{Start: "00:00", End: "01:00", Timezone: "Asia/Tokyo"}),
		},
		{
			"an rrule opens windows", "2026-08-03T00:00Z", "Tue 2026-08-11 02:00 to Tue 2026-08-11 04:00, Tue 2026-09-08 02:00 to Tue 2026-09-08 04:00",
			in("UTC", schedule.Window{RRule: "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=2", Duration: "2h"}),
		},
		{"an empty permit is always open", "2026-08-03T00:00Z", "ever to ever", permit(schedule.Permit{})},
		{
			"a permit without recurrence is every day", "2026-08-03T00:00Z", "Mon 2026-08-03 01:30 to Mon 2026-08-03 02:30, Tue 2026-08-04 01:30 to Tue 2026-08-04 02:30",
			permit(schedule.Permit{StartTime: "01:30", Duration: "1h"}),
		},
		{
			"without a duration it lasts up to 24:00", "2026-08-03T00:00Z", "Mon 2026-08-03 18:00 to Tue 2026-08-04 00:00, Tue 2026-08-04 18:00 to Wed 2026-08-05 00:00",
			permit(schedule.Permit{StartTime: "18:00"}),
		},
		{
			"every third day is counted from 1970", "1970-01-01T00:00Z", "Thu 1970-01-01 00:00 to Fri 1970-01-02 00:00, Sun 1970-01-04 00:00 to Mon 1970-01-05 00:00",
			permit(schedule.Permit{Recurrence: &schedule.Recurrence{Frequency: "Daily", Daily: &schedule.DailyRecurrence{Interval: number(3)}}}),
		},
		{
			"every second week is counted from 1970 and starts on Monday", "1970-01-01T00:00Z", "Sun 1970-01-04 00:00 to Mon 1970-01-05 00:00, Mon 1970-01-12 00:00 to Tue 1970-01-13 00:00, Sun 1970-01-18 00:00 to Mon 1970-01-19 00:00",
			permit(schedule.Permit{Recurrence: &schedule.Recurrence{Frequency: "Weekly", Weekly: &schedule.WeeklyRecurrence{DaysOfWeek: []string{"Monday", "Sunday"}, Interval: number(2)}}}),
		},
		{
			"a month without the date is skipped", "2026-01-01T00:00Z", "Sat 2026-01-31 00:00 to Sun 2026-02-01 00:00, Tue 2026-03-31 00:00 to Wed 2026-04-01 00:00",
			permit(schedule.Permit{Recurrence: monthlyDate(nil, 31)}),
		},
		{
			"every fifth month is counted from January 1970", "2026-01-01T00:00Z", "Wed 2026-04-01 00:00 to Thu 2026-04-02 00:00, Tue 2026-09-01 00:00 to Wed 2026-09-02 00:00",
			permit(schedule.Permit{Recurrence: monthlyDate(number(5), 1)}),
		},
		{
			"the last Saturday", "2026-01-01T00:00Z", "Sat 2026-01-31 00:00 to Sun 2026-02-01 00:00, Sat 2026-02-28 00:00 to Sun 2026-03-01 00:00",
			permit(schedule.Permit{Recurrence: monthlyDay(nil, "Last", "Saturday")}),
		},
		{
			"a fifth Saturday is not in every month", "2026-01-01T00:00Z", "Sat 2026-01-31 00:00 to Sun 2026-02-01 00:00, Sat 2026-05-30 00:00 to Sun 2026-05-31 00:00",
			permit(schedule.Permit{Recurrence: monthlyDay(nil, "Fifth", "sat")}),
		},
		{
			"a day of one month of every year", "2026-01-01T00:00Z", "Sun 2026-03-01 00:00 to Mon 2026-03-02 00:00, Sun 2027-03-07 00:00 to Mon 2027-03-08 00:00",
			permit(schedule.Permit{Recurrence: &schedule.Recurrence{Frequency: "Yearly", Yearly: &schedule.YearlyRecurrence{By: "Day", Day: &schedule.YearlyDays{
				Month: "mar",
				Days:  []schedule.WeekdayOfMonth{{WeekOfMonth: "First", DaysOfWeek: "Sunday"}},
			}}}}),
		},
		{
			"29 February comes in leap years", "2097-01-01T00:00Z", "Fri 2104-02-29 00:00 to Sat 2104-03-01 00:00, Wed 2108-02-29 00:00 to Thu 2108-03-01 00:00",
			permit(schedule.Permit{Recurrence: &schedule.Recurrence{Frequency: "Yearly", Yearly: &schedule.YearlyRecurrence{By: "Date", Date: &schedule.YearlyDates{Month: "February", DatesOfMonth: []int{29}}}}}),
		},
		{
			"exclusion subtracts time: what spills over stays", "2026-08-03T00:00Z", "Sat 2026-08-08 00:00 to Sat 2026-08-08 02:00, Fri 2026-08-14 22:00 to Sat 2026-08-15 02:00",
			schedule.MaintenanceSchedule{Windows: []schedule.Window{{Days: []string{"Fri"}, Start: "22:00", End: "02:00"}}, Exclude: []schedule.Exclusion{{FromDate: "2026-08-07"}}},
		},
		{
			"nothing but exclusions is open beside them", "2026-08-03T00:00Z", "ever to Fri 2026-12-18 00:00, Mon 2027-01-04 00:00 to ever",
			schedule.MaintenanceSchedule{Exclude: []schedule.Exclusion{{FromDate: "2026-12-18", UntilDate: "2027-01-04"}}},
		},
		{
			"a day that is missing from the calendar opens nothing", "2011-12-29T13:00Z", "Thu 2011-12-29 22:00 to Sat 2011-12-31 00:00, Sat 2011-12-31 22:00 to Sun 2012-01-01 02:00",
			in("Pacific/Apia", schedule.Window{Start: "22:00", End: "02:00"}),
		},
		{"nothing at all is never open", "2026-08-03T00:00Z", "", schedule.MaintenanceSchedule{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := intervals(t, mustTimeline(t, c.spec), c.spec.Timezone, c.from, strings.Count(c.want, ",")+1)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryBoundOfAMaintenanceScheduleIsToldWithItsPath(t *testing.T) {
	recur := func(r schedule.Recurrence) schedule.MaintenanceSchedule {
		return schedule.MaintenanceSchedule{Permit: &schedule.Permit{Recurrence: &r}}
	}
	monthly := func(m schedule.MonthlyRecurrence) schedule.MaintenanceSchedule {
		return recur(schedule.Recurrence{Frequency: "Monthly", Monthly: &m})
	}
	yearly := func(y schedule.YearlyRecurrence) schedule.MaintenanceSchedule {
		return recur(schedule.Recurrence{Frequency: "Yearly", Yearly: &y})
	}
	window := func(w schedule.Window) schedule.MaintenanceSchedule {
		return schedule.MaintenanceSchedule{Windows: []schedule.Window{{Start: "00:00", End: "01:00"}, w}}
	}
	exclude := func(e ...schedule.Exclusion) schedule.MaintenanceSchedule {
		return schedule.MaintenanceSchedule{Exclude: e}
	}
	for _, c := range []struct {
		spec schedule.MaintenanceSchedule
		want []string
	}{
		{schedule.MaintenanceSchedule{Timezone: "Europe/Paries"}, []string{`timezone: "Europe/Paries": is not a time zone of the IANA database ` + schedule.ZoneVersion() + `; did you mean Europe/Paris?`}},
		{schedule.MaintenanceSchedule{Windows: []schedule.Window{}}, []string{"windows: is an empty list; write a window, or leave the field out"}},
		{recur(schedule.Recurrence{Frequency: "Hourly"}), []string{`permit.recurrence.frequency: "Hourly": write one of Daily, Weekly, Monthly, Yearly`}},
		{recur(schedule.Recurrence{Frequency: "Daily", Daily: &schedule.DailyRecurrence{Interval: number(731)}}), []string{`permit.recurrence.daily.interval: "731": write 1 to 730 days`}},
		{recur(schedule.Recurrence{Frequency: "Daily", Daily: &schedule.DailyRecurrence{Interval: number(0)}}), []string{`permit.recurrence.daily.interval: "0": write 1 to 730 days`}},
		{recur(schedule.Recurrence{Frequency: "Daily", Weekly: &schedule.WeeklyRecurrence{}}), []string{`permit.recurrence.weekly: belongs to frequency Weekly, and this one is "Daily"; take it away`}},
		{recur(schedule.Recurrence{Frequency: "Weekly"}), []string{`permit.recurrence.weekly: is missing; write weekly: {daysOfWeek: [Saturday]}`}},
		{recur(schedule.Recurrence{Frequency: "Weekly", Weekly: &schedule.WeeklyRecurrence{DaysOfWeek: []string{"Caturday"}, Interval: number(27)}}), []string{
			`permit.recurrence.weekly.interval: "27": write 1 to 26 weeks`, `permit.recurrence.weekly.daysOfWeek[0]: "Caturday": write a day, Monday to Sunday or Mon to Sun`,
		}},
		{recur(schedule.Recurrence{Frequency: "Weekly", Weekly: &schedule.WeeklyRecurrence{}}), []string{`permit.recurrence.weekly.daysOfWeek: is empty; write the days, such as [Saturday, Sunday]`}},
		{monthly(schedule.MonthlyRecurrence{By: "Week"}), []string{`permit.recurrence.monthly.by: "Week": write Date or Day`}},
		{monthly(schedule.MonthlyRecurrence{By: "Date"}), []string{`permit.recurrence.monthly.date: is missing; write date: {datesOfMonth: [1]}`}},
		{monthly(schedule.MonthlyRecurrence{By: "Date", Date: &schedule.MonthlyDates{DatesOfMonth: []int{1, 32, 0}, Interval: number(12)}}), []string{
			`permit.recurrence.monthly.date.interval: "12": write 1 to 11 months`,
			`permit.recurrence.monthly.date.datesOfMonth[1]: "32": write 1 to 31`, `permit.recurrence.monthly.date.datesOfMonth[2]: "0": write 1 to 31`,
		}},
		{monthly(schedule.MonthlyRecurrence{By: "Day", Day: &schedule.MonthlyDays{Days: []schedule.WeekdayOfMonth{{WeekOfMonth: "Sixth", DayOfWeek: "Mo"}}, Interval: number(-1)}}), []string{
			`permit.recurrence.monthly.day.interval: "-1": write 1 to 11 months`,
			`permit.recurrence.monthly.day.days[0].dayOfWeek: "Mo": write a day, Monday to Sunday or Mon to Sun`,
			`permit.recurrence.monthly.day.days[0].weekOfMonth: "Sixth": write First, Second, Third, Fourth, Fifth or Last`,
		}},
		{yearly(schedule.YearlyRecurrence{By: "Date", Date: &schedule.YearlyDates{DatesOfMonth: []int{1}, Month: "Foo"}}), []string{
			`permit.recurrence.yearly.date.month: "Foo": write a month, January to December or Jan to Dec`,
		}},
		{yearly(schedule.YearlyRecurrence{By: "Date", Date: &schedule.YearlyDates{DatesOfMonth: []int{30}, Month: "February"}}), []string{
			`permit.recurrence: can never fire: no month it names has such a day`,
		}},
		{schedule.MaintenanceSchedule{Permit: &schedule.Permit{StartTime: "24:00", Duration: "0s"}}, []string{
			`permit.startTime: "24:00": write a time of day as HH:MM in quotes, from "00:00" to "23:59"`,
			`permit.duration: "0s": is not a duration of whole seconds above zero; write it like "8h", "90m" or "1h30m"`,
		}},
		{window(schedule.Window{}), []string{`windows[1]: says no time; write {days, start, end}, {cron, duration} or {rrule, duration}`}},
		{window(schedule.Window{Start: "7:00", End: "24:01"}), []string{
			`windows[1].start: "7:00": write a time of day as HH:MM in quotes, from "00:00" to "23:59"`, `windows[1].end: "24:01": write a time of day as HH:MM in quotes, from "00:00" to "24:00"`,
		}},
		{window(schedule.Window{Start: "07:00"}), []string{`windows[1].end: is missing; write a time of day such as "02:00"`}},
		{window(schedule.Window{Cron: "0 0 30 2 *", Duration: "1h"}), []string{`windows[1].cron: "0 0 30 2 *": can never fire: no month it names has such a day`}},
		{window(schedule.Window{Cron: "0 0 * * *"}), []string{`windows[1].duration: is missing; write how long the window stays open, such as 8h`}},
		{window(schedule.Window{Cron: "0 0 * * *", Start: "07:00"}), []string{`windows[1]: has both days, start or end and a cron or rrule; write {days, start, end}, {cron, duration} or {rrule, duration}`}},
		{window(schedule.Window{Start: "00:00", End: "01:00", Timezone: "UCT+1"}), []string{`windows[1].timezone: "UCT+1": is not a time zone of the IANA database ` + schedule.ZoneVersion() + `; did you mean `}},
		{exclude(schedule.Exclusion{FromDate: "2026-12-24", UntilDate: "2026-12-24"}), []string{`exclude[0].untilDate: "2026-12-24": is not after fromDate 2026-12-24, and is itself not excluded any more; write a later one, or leave it out for one day`}},
		{exclude(schedule.Exclusion{FromDate: "24.12.2026"}, schedule.Exclusion{UntilDate: "2026-02-30"}), []string{
			`exclude[0].fromDate: "24.12.2026": is not a date; write it like 2026-12-24`,
			`exclude[1].fromDate: is missing; write a date like 2026-12-24`, `exclude[1].untilDate: "2026-02-30": is not a date; write it like 2026-12-24`,
		}},
		{exclude(schedule.Exclusion{Calendar: &schedule.CalendarRef{Name: "holidays", Namespace: "ops"}}), []string{`exclude[0].calendar: "ops/holidays": there is no such Calendar document`}},
	} {
		_, err := schedule.ParseMaintenanceSchedule(&c.spec, nil)
		var got []string
		for i, fault := range schedule.Faults(err) {
			text := fault.Error()
			if i < len(c.want) && strings.HasSuffix(c.want[i], "did you mean ") {
				text = text[:min(len(text), len(c.want[i]))]
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestACalendarThatIsMissingIsFoundByItsCause(t *testing.T) {
	_, err := schedule.ParseMaintenanceSchedule(&schedule.MaintenanceSchedule{Exclude: []schedule.Exclusion{{Calendar: &schedule.CalendarRef{Name: "x"}}}}, nil)
	if !slices.ContainsFunc(schedule.Faults(err), func(f *schedule.FieldError) bool { return f.Cause == schedule.ErrCalendarMissing }) {
		t.Error(err)
	}
}

func TestReasonsNameWhatIsExcluded(t *testing.T) {
	timeline := mustTimeline(t, schedule.MaintenanceSchedule{
		Windows: []schedule.Window{{Days: []string{"Sat"}, Start: "00:00", End: "24:00"}},
		Exclude: []schedule.Exclusion{{FromDate: "2026-12-18", UntilDate: "2027-01-04", Reason: "year-end freeze"}, {FromDate: "2026-12-20", Reason: "audit"}, {FromDate: "2027-02-01"}},
	})
	for _, c := range []struct{ at, want string }{
		{"2026-12-12T10:00Z", "in a window"},
		{"2026-12-14T10:00Z", "outside of the windows"},
		{"2026-12-19T10:00Z", "excluded: year-end freeze"},
		{"2026-12-20T10:00Z", "excluded: audit"},
		{"2026-12-22T10:00Z", "excluded: year-end freeze"},
		{"2027-02-01T10:00Z", "excluded"},
	} {
		if got := timeline.At(instant(t, c.at)).Reason; got != c.want {
			t.Errorf("%s: got %q, want %q", c.at, got, c.want)
		}
	}
}
