package schedule

import (
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// Recurrence says on which days a window opens, counted from 1970-01-01 in the
// zone of the policy. Frequency decides which of the other fields is read.
type Recurrence struct {
	Frequency string             `json:"frequency,omitempty"` // Daily, Weekly, Monthly, Yearly
	Daily     *DailyRecurrence   `json:"daily,omitempty"`
	Weekly    *WeeklyRecurrence  `json:"weekly,omitempty"`
	Monthly   *MonthlyRecurrence `json:"monthly,omitempty"`
	Yearly    *YearlyRecurrence  `json:"yearly,omitempty"`
}

// DailyRecurrence is every Interval days, 1 to 730, by default 1.
type DailyRecurrence struct {
	Interval *int `json:"interval,omitempty"`
}

// WeeklyRecurrence is some days of every Interval weeks, 1 to 26, by default 1.
// Weeks start on Monday.
type WeeklyRecurrence struct {
	DaysOfWeek []string `json:"daysOfWeek,omitempty"`
	Interval   *int     `json:"interval,omitempty"`
}

// MonthlyRecurrence is by Date or by Day.
type MonthlyRecurrence struct {
	By   string        `json:"by,omitempty"`
	Date *MonthlyDates `json:"date,omitempty"`
	Day  *MonthlyDays  `json:"day,omitempty"`
}

// MonthlyDates are dates of every Interval months, 1 to 11, by default 1. A
// month that lacks a date is skipped.
type MonthlyDates struct {
	DatesOfMonth []int `json:"datesOfMonth,omitempty"`
	Interval     *int  `json:"interval,omitempty"`
}

// MonthlyDays are numbered weekdays of every Interval months, 1 to 11, by
// default 1.
type MonthlyDays struct {
	Days     []WeekdayOfMonth `json:"days,omitempty"`
	Interval *int             `json:"interval,omitempty"`
}

// WeekdayOfMonth is for instance the First Saturday. DaysOfWeek is another
// spelling of DayOfWeek.
type WeekdayOfMonth struct {
	WeekOfMonth string `json:"weekOfMonth,omitempty"`
	DayOfWeek   string `json:"dayOfWeek,omitempty"`
	DaysOfWeek  string `json:"daysOfWeek,omitempty"`
}

// YearlyRecurrence is by Date or by Day.
type YearlyRecurrence struct {
	By   string       `json:"by,omitempty"`
	Date *YearlyDates `json:"date,omitempty"`
	Day  *YearlyDays  `json:"day,omitempty"`
}

// YearlyDates are dates of one month of every year.
type YearlyDates struct {
	DatesOfMonth []int `json:"datesOfMonth,omitempty"`
	Month        Month `json:"month,omitempty"`
}

// YearlyDays are numbered weekdays of one month of every year.
type YearlyDays struct {
	Days  []WeekdayOfMonth `json:"days,omitempty"`
	Month Month            `json:"month,omitempty"`
}

// days reads the recurrence; every fault is told with its path below it.
func (r *Recurrence) days() (civil.Days, error) {
	var all faults
	var set civil.Days
	blocks := []struct {
		frequency, field string
		given            bool
		read             func() (civil.Days, error)
	}{
		{"Daily", "daily", r.Daily != nil, func() (civil.Days, error) { return r.Daily.days() }},
		{"Weekly", "weekly", r.Weekly != nil, func() (civil.Days, error) { return r.Weekly.days() }},
		{"Monthly", "monthly", r.Monthly != nil, func() (civil.Days, error) { return r.Monthly.days() }},
		{"Yearly", "yearly", r.Yearly != nil, func() (civil.Days, error) { return r.Yearly.days() }},
	}
	known := false
	for _, block := range blocks {
		if block.frequency == r.Frequency {
			read, err := block.read()
			all.join(block.field, err)
			set, known = read, true
		} else if block.given && r.Frequency != "" {
			all.add(block.field, "", "belongs to frequency %s, and this one is %q; take it away", block.frequency, r.Frequency)
		}
	}
	if !known {
		all.add("frequency", r.Frequency, "write one of Daily, Weekly, Monthly, Yearly")
	}
	if err := all.err(); err != nil {
		return civil.Days{}, err
	}
	if _, ok := set.Next(0); !ok {
		all.add("", "", "can never fire: no month it names has such a day")
	}
	return set, all.err()
}

func (d *DailyRecurrence) days() (civil.Days, error) {
	if d == nil {
		return civil.Days{Unit: civil.PerDay}, nil
	}
	interval, err := readInterval(d.Interval, 730, "days")
	return civil.Days{Unit: civil.PerDay, Interval: interval}, err
}

func (w *WeeklyRecurrence) days() (civil.Days, error) {
	if w == nil {
		return civil.Days{}, &FieldError{Message: "is missing; write weekly: {daysOfWeek: [Saturday]}"}
	}
	var all faults
	interval, err := readInterval(w.Interval, 26, "weeks")
	all.join("", err)
	weekdays, err := readWeekdays("daysOfWeek", w.DaysOfWeek)
	all.join("", err)
	if len(w.DaysOfWeek) == 0 {
		all.add("daysOfWeek", "", "is empty; write the days, such as [Saturday, Sunday]")
	}
	return civil.Days{Unit: civil.PerWeek, Interval: interval, Wkst: 1, Weekdays: weekdays}, all.err()
}

func (m *MonthlyRecurrence) days() (civil.Days, error) {
	if m == nil {
		return civil.Days{}, &FieldError{Message: "is missing; write monthly: {by: Date, date: {datesOfMonth: [1]}} or monthly: {by: Day, day: {days: [{weekOfMonth: First, dayOfWeek: Saturday}]}}"}
	}
	var all faults
	set := civil.Days{Unit: civil.PerMonth}
	byDate, byDay := all.by(m.By, m.Date != nil, m.Day != nil)
	if byDate {
		var err error
		set.Interval, err = readInterval(m.Date.Interval, 11, "months")
		all.join("date", err)
		set.Monthdays = all.dates("date", m.Date.DatesOfMonth)
	}
	if byDay {
		var err error
		set.Interval, err = readInterval(m.Day.Interval, 11, "months")
		all.join("day", err)
		all.weekdaysOfMonth("day", m.Day.Days, &set)
	}
	return set, all.err()
}

func (y *YearlyRecurrence) days() (civil.Days, error) {
	if y == nil {
		return civil.Days{}, &FieldError{Message: "is missing; write yearly: {by: Date, date: {datesOfMonth: [1], month: January}}"}
	}
	var all faults
	set := civil.Days{Unit: civil.PerYear}
	byDate, byDay := all.by(y.By, y.Date != nil, y.Day != nil)
	if byDate {
		set.Monthdays = all.dates("date", y.Date.DatesOfMonth)
		set.Months = all.month("date", y.Date.Month)
	}
	if byDay {
		all.weekdaysOfMonth("day", y.Day.Days, &set)
		set.Months = all.month("day", y.Day.Month)
	}
	return set, all.err()
}

// by checks which of date and day is to be read.
func (f *faults) by(by string, date, day bool) (byDate, byDay bool) {
	switch by {
	case "Date":
		if day {
			f.add("day", "", "belongs to by: Day, and this one is by: Date; take it away")
		}
		if !date {
			f.add("date", "", "is missing; write date: {datesOfMonth: [1]}")
		}
		return date, false
	case "Day":
		if date {
			f.add("date", "", "belongs to by: Date, and this one is by: Day; take it away")
		}
		if !day {
			f.add("day", "", "is missing; write day: {days: [{weekOfMonth: First, dayOfWeek: Saturday}]}")
		}
		return false, day
	}
	f.add("by", by, "write Date or Day")
	return false, false
}

func readInterval(interval *int, high int, unit string) (int64, error) {
	switch {
	case interval == nil:
		return 1, nil
	case *interval < 1 || *interval > high:
		return 0, &FieldError{Field: "interval", Value: fmt.Sprint(*interval), Message: fmt.Sprintf("write 1 to %d %s", high, unit)}
	}
	return int64(*interval), nil
}

func (f *faults) dates(path string, dates []int) uint32 {
	var set uint32
	for i, date := range dates {
		if date < 1 || date > 31 {
			f.add(fmt.Sprintf("%s.datesOfMonth[%d]", path, i), fmt.Sprint(date), "write 1 to 31")
			continue
		}
		set |= 1 << date
	}
	if set == civil.EveryMonthday {
		return 0 // no restriction
	}
	if len(dates) == 0 {
		f.add(path+".datesOfMonth", "", "is empty; write the dates, 1 to 31")
	}
	return set
}

func (f *faults) month(path string, month Month) uint16 {
	number, ok := monthNumber(string(month))
	if !ok {
		f.add(path+".month", string(month), "write a month, January to December or Jan to Dec")
	}
	return 1 << number
}

func (f *faults) weekdaysOfMonth(path string, list []WeekdayOfMonth, set *civil.Days) {
	for i, one := range list {
		at := fmt.Sprintf("%s.days[%d]", path, i)
		weekday, fault := one.weekday()
		if fault != nil {
			f.join(at, fault)
		}
		n, ok := weekNumber(one.WeekOfMonth)
		switch {
		case !ok:
			f.add(at+".weekOfMonth", one.WeekOfMonth, "write First, Second, Third, Fourth, Fifth or Last")
		case n < 0:
			set.FromLast[-n] |= 1 << weekday
		default:
			set.Numbered[n] |= 1 << weekday
		}
	}
	if len(list) == 0 {
		f.add(path+".days", "", "is empty; write for instance [{weekOfMonth: First, dayOfWeek: Saturday}]")
	}
}

func (w WeekdayOfMonth) weekday() (int, error) {
	field, name := "dayOfWeek", w.DayOfWeek
	if w.DaysOfWeek != "" {
		if w.DayOfWeek != "" {
			return 0, &FieldError{Field: "daysOfWeek", Value: w.DaysOfWeek, Message: "stands beside dayOfWeek; write one of them"}
		}
		field, name = "daysOfWeek", w.DaysOfWeek
	}
	weekday, ok := weekdayNumber(name)
	if !ok {
		return 0, &FieldError{Field: field, Value: name, Message: "write a day, Monday to Sunday or Mon to Sun"}
	}
	return weekday, nil
}

func weekNumber(name string) (int, bool) {
	for i, known := range []string{"First", "Second", "Third", "Fourth", "Fifth"} {
		if strings.EqualFold(known, name) {
			return i + 1, true
		}
	}
	return -1, strings.EqualFold(name, "Last")
}
