package write

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// hibernateWarnings are about what is valid in a HibernatePlan and probably not meant.
func hibernateWarnings(d source.Document) []source.Fault {
	spec, _ := hibernate.Parse([]byte(d.Text))
	lines, _ := document.Decode([]byte(d.Text), &hibernate.Document{})
	var out []source.Fault
	warn := func(path, message string) {
		out = append(out, source.Fault{File: d.File, Line: d.LineOf(document.Fault{Line: lines.Line(path)}), Path: path, Message: message})
	}
	if spec.Behavior.FailFast != nil {
		warn("spec.behavior.failFast", "is accepted and has no effect: behavior.mode decides; Strict (the default) begins nothing more after a failure, BestEffort goes on with targets that do not depend on the failed one")
	}
	for i, one := range spec.Schedule.OffHours {
		path := fmt.Sprintf("spec.schedule.offHours[%d]", i)
		if wakes := wakesOnAnotherDay(one, spec.Schedule.OffHours); wakes != "" {
			warn(path+".daysOfWeek", wakes)
		}
		if endsBeforeMidnight(one) {
			warn(path+".end", beforeMidnight)
		}
	}
	for i, e := range spec.Exceptions {
		for j, one := range e.OffHours {
			if endsBeforeMidnight(one) {
				warn(fmt.Sprintf("spec.exceptions[%d].offHours[%d].end", i, j), beforeMidnight)
			}
		}
	}
	return out
}

const beforeMidnight = "23:59 leaves one minute awake at midnight; write 00:00, with the next day if a day is named"

func endsBeforeMidnight(o schedule.OffHours) bool {
	return o.End[strings.LastIndex(o.End, " ")+1:] == "23:59"
}

// inWeek are the intervals that begin in the week from a Monday on.
func inWeek(hours *schedule.Timeline, monday time.Time) []schedule.Interval {
	var out []schedule.Interval
	for w := range hours.Intervals(monday) {
		if w.Start == nil || w.End == nil || !w.Start.Before(monday.AddDate(0, 0, 7)) {
			break
		}
		out = append(out, w)
	}
	return out
}

// wakesOnAnotherDay names a day outside of daysOfWeek on which off-hours end, unless others
// continue there or begin on that day; empty: none. Clock changes do not matter here: it looks at
// an ordinary week in UTC.
func wakesOnAnotherDay(one schedule.OffHours, all []schedule.OffHours) string {
	if len(one.DaysOfWeek) == 0 {
		return ""
	}
	own, err := schedule.ParseOffHours("", []schedule.OffHours{one}, nil, nil)
	if err != nil {
		return ""
	}
	union, err := schedule.ParseOffHours("", all, nil, nil)
	if err != nil {
		return ""
	}
	monday := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	begins := map[time.Weekday]bool{} // days on whose evening it falls asleep again
	for _, w := range inWeek(union, monday) {
		begins[w.Start.Weekday()] = true
	}
	for _, w := range inWeek(own, monday) {
		end := *w.End
		midnight := end.Equal(end.Truncate(24 * time.Hour))
		if begins[end.Weekday()] || midnight || union.At(end).Open {
			continue
		}
		message := fmt.Sprintf("wakes on %s, which is none of these days: off-hours belong to the day on which they start", end.Format("Monday 15:04"))
		if end.Weekday() == time.Saturday {
			message += fmt.Sprintf("; to sleep through the weekend, add {start: \"Fri %s\", end: \"Mon %s\"}", one.Start, one.End)
		}
		return message
	}
	return ""
}
