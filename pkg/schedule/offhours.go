package schedule

import (
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// OffHours is when something sleeps: from Start to End on the wall clock, on
// DaysOfWeek or every day, or once a week with the days in Start and End
// ("Fri 20:00" to "Mon 06:00"). It belongs to the day on which it starts.
type OffHours struct {
	Start      string   `json:"start"`                // a time of day, or with its day once a week
	End        string   `json:"end"`                  // the same; before the start, it is on the next day
	DaysOfWeek []string `json:"daysOfWeek,omitempty"` // on which it starts; default every day
}

// ParseOffHours reads a schedule of sleep, which is asleep where the timeline is
// open: the union of list less exclude. Paths of faults begin with timezone,
// offHours or exclude.
func ParseOffHours(timezone string, list []OffHours, exclude []Exclusion, calendars Calendars) (*Timeline, error) {
	timeline := &Timeline{zone: mustUTC(), inside: "off-hours", outside: "outside of the off-hours"}
	var all faults
	z, err := loadZone(timezone)
	all.join("", err)
	if err == nil {
		timeline.zone = z
	}
	if len(list) == 0 {
		all.add("offHours", "", "is empty; write for instance [{start: \"20:00\", end: \"06:00\"}]")
	}
	var open []source
	for i, one := range list {
		s, err := one.source(timeline.zone)
		all.join(fmt.Sprintf("offHours[%d]", i), err)
		if err == nil {
			open = append(open, s)
		}
	}
	timeline.permit = newUnion(open...)
	all.join("", timeline.readExclude("", exclude, calendars))
	if err := all.err(); err != nil {
		return nil, err
	}
	return timeline, nil
}

func (o OffHours) source(z *zone) (*windows, error) {
	var all faults
	weekdays, err := readWeekdays("daysOfWeek", o.DaysOfWeek)
	all.join("", err)
	from, start := all.dayAndTime("start", o.Start, false)
	to, end := all.dayAndTime("end", o.End, true)
	switch {
	case all.err() != nil:
	case (from < 0) != (to < 0):
		all.add("end", o.End, "start and end both have a day, or neither has; write {start: \"Fri 20:00\", end: \"Mon 06:00\"} or daysOfWeek")
	case from >= 0 && len(o.DaysOfWeek) > 0:
		all.add("daysOfWeek", "", "stands beside days in start and end; write one of them")
	case start == end && from == to:
		all.add("end", o.End, "is the same as start; write another time")
	}
	if err := all.err(); err != nil {
		return nil, err
	}
	length, cycle := end-start, civil.DaySeconds
	if from >= 0 {
		weekdays, cycle = 1<<from, civil.WeekSeconds
		length += int64(to-from) * civil.DaySeconds
	}
	if length <= 0 {
		length += cycle
	}
	return newWindows(daily(z, civil.Days{Unit: civil.PerWeek, Wkst: 1, Weekdays: weekdays}, start), length, true), nil
}

// dayAndTime reads "20:00" or "Fri 20:00"; the day is −1 where there is none.
func (f *faults) dayAndTime(field, text string, end bool) (day int, second int64) {
	name, clock, ok := strings.Cut(text, " ")
	day = -1
	if !ok {
		clock = text
	} else if day, ok = weekdayNumber(name); !ok {
		f.add(field, text, "write a time of day such as \"20:00\", or with a day such as \"Fri 20:00\"")
		return -1, 0
	}
	second, err := readTimeOfDay(clock, end)
	if err != nil {
		f.add(field, text, "%s", err)
	}
	return day, second
}
