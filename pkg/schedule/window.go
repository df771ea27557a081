package schedule

import (
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// Permit is the structured form of a window: on the days of Recurrence, every
// day without one, from StartTime for Duration. A Permit without any field is
// always open.
type Permit struct {
	Recurrence *Recurrence `json:"recurrence,omitempty"`
	StartTime  string      `json:"startTime,omitempty"` // HH:MM, default 00:00
	Duration   string      `json:"duration,omitempty"`  // elapsed, such as 8h; default up to 24:00 of the day
}

// Window is one of three forms: weekly (Days, Start, End), Cron with Duration,
// or RRule with Duration. Start and End are wall-clock times; an End that is
// not after Start is on the next day; no Days means every day. A Duration is
// elapsed time. Timezone defaults to the policy's.
type Window struct {
	Days     []string `json:"days,omitempty"`
	Start    string   `json:"start,omitempty"`
	End      string   `json:"end,omitempty"`
	Cron     string   `json:"cron,omitempty"`
	RRule    string   `json:"rrule,omitempty"`
	Duration string   `json:"duration,omitempty"`
	Timezone string   `json:"timezone,omitempty"`
}

// source is what the permit opens; all is true when that is always.
func (p *Permit) source(z *zone) (w *windows, all bool, err error) {
	var found faults
	var on civil.Days
	if p.Recurrence != nil {
		on, err = p.Recurrence.days()
		found.join("recurrence", err)
	}
	var start int64
	if p.StartTime != "" {
		if start, err = readTimeOfDay(p.StartTime, false); err != nil {
			found.add("startTime", p.StartTime, "%s", err)
		}
	}
	length, onWall := civil.DaySeconds-start, true
	if p.Duration != "" {
		length, err = readDuration(p.Duration)
		found.join("", err)
		onWall = false
	}
	if err := found.err(); err != nil {
		return nil, false, err
	}
	if onWall && length == civil.DaySeconds && everyDay(&on) {
		return nil, true, nil
	}
	return newWindows(daily(z, on, start), length, onWall), false, nil
}

// everyDay tells whether days is plainly every day.
func everyDay(r *civil.Days) bool {
	return weekly(r) && (r.Weekdays == 0 || r.Weekdays == civil.EveryWeekday)
}

// daily opens at a second of the day on some days.
func daily(z *zone, on civil.Days, second int64) *Schedule {
	return &Schedule{
		zone:  z,
		until: civil.Never,
		clock: &civil.Wall{Days: on, Times: civil.Daytimes{
			Hours: 1 << (second / civil.HourSeconds), Minutes: 1 << (second / civil.MinuteSeconds % 60), Seconds: 1 << (second % 60),
		}},
	}
}

func readDuration(text string) (int64, error) {
	length, err := parseDuration(text)
	if err != nil || length < time.Second || length%time.Second != 0 {
		return 0, &FieldError{Field: "duration", Value: text, Message: `is not a duration of whole seconds above zero; write it like "8h", "90m" or "1h30m"`}
	}
	return int64(length / time.Second), nil
}

// source is what the window opens; all is true when that is always.
func (w *Window) source(policy *zone) (s *windows, all bool, err error) {
	z := policy
	var found faults
	if w.Timezone != "" {
		if z, err = loadZone(w.Timezone); err != nil {
			found.join("", err)
			z = policy // tell the other faults too
		}
	}
	found.join("", w.form())
	if err := found.err(); err != nil {
		return nil, false, err
	}
	if w.Cron != "" || w.RRule != "" {
		s, err = w.recurring(z)
		return s, false, err
	}
	return w.daysOfWeek(z)
}

// form checks that the fields are those of one of the three forms.
func (w *Window) form() error {
	var all faults
	weekly := len(w.Days) > 0 || w.Start != "" || w.End != ""
	switch {
	case w.Cron != "" && w.RRule != "":
		all.add("rrule", w.RRule, "stands beside cron; write two windows")
	case weekly && (w.Cron != "" || w.RRule != ""):
		all.add("", "", "has both days, start or end and a cron or rrule; write {days, start, end}, {cron, duration} or {rrule, duration}")
	case weekly && w.Duration != "":
		all.add("duration", w.Duration, "belongs to cron and rrule; write end")
	case w.Cron == "" && w.RRule == "" && !weekly:
		all.add("", "", "says no time; write {days, start, end}, {cron, duration} or {rrule, duration}")
	case !weekly && w.Duration == "":
		all.add("duration", "", "is missing; write how long the window stays open, such as 8h")
	case weekly && w.Start == "":
		all.add("start", "", "is missing; write a time of day such as \"22:00\"")
	case weekly && w.End == "":
		all.add("end", "", "is missing; write a time of day such as \"02:00\"")
	}
	return all.err()
}

func (w *Window) recurring(z *zone) (*windows, error) {
	var all faults
	opening := &Schedule{zone: z, until: civil.Never}
	all.join("", opening.read(Spec{Cron: w.Cron, RRule: w.RRule}))
	length, err := readDuration(w.Duration)
	all.join("", err)
	if err := all.err(); err != nil {
		return nil, err
	}
	return newWindows(opening, length, false), nil
}

func (w *Window) daysOfWeek(z *zone) (s *windows, all bool, err error) {
	var found faults
	weekdays, err := readWeekdays("days", w.Days)
	found.join("", err)
	start, err := readTimeOfDay(w.Start, false)
	if err != nil {
		found.add("start", w.Start, "%s", err)
	}
	end, err := readTimeOfDay(w.End, true)
	if err != nil {
		found.add("end", w.End, "%s", err)
	}
	if err := found.err(); err != nil {
		return nil, false, err
	}
	length := end - start
	if length <= 0 {
		length += civil.DaySeconds
	}
	on := civil.Days{Unit: civil.PerWeek, Wkst: 1, Weekdays: weekdays}
	if length == civil.DaySeconds && everyDay(&on) {
		return nil, true, nil
	}
	return newWindows(daily(z, on, start), length, true), false, nil
}

// stepsOfWindow are as many steps of a rule as cost as much as a window: as much of what a policy
// may hold as those of an event.
const stepsOfWindow = stepsAtOnce * mostRecurring / mostWindows

// load is as how many windows they count.
func (w *windows) load() int { return 1 + w.opening.clock.Steps()/stepsOfWindow }

// readWindows reads all windows; the error has the path of each fault.
func readWindows(list []Window, z *zone) (open []source, always bool, err error) {
	var found faults
	held := 0
	for i := range list {
		if held > mostWindows {
			found.add("windows", "", "has at least %d windows, those of a rule that takes long to follow counted several times; at most %d are allowed", held, mostWindows)
			break
		}
		s, all, err := list[i].source(z)
		found.join(fmt.Sprintf("windows[%d]", i), err)
		always = always || all
		if s != nil {
			open = append(open, s)
			held += s.load()
		}
	}
	return open, always, found.err()
}
