package calendar

import (
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// day is a date on the clocks of the page; where clocks change it has 23 hours,
// or 25.
type day struct {
	start, end time.Time
	date       time.Time // its midnight as if in UTC: a date, not an instant
	column     int       // 0 is Monday
}

func (d day) contains(t time.Time) bool { return !t.Before(d.start) && t.Before(d.end) }

// week is the days of one row of the picture.
type week []day

func (w week) start() time.Time { return w[0].start }
func (w week) end() time.Time   { return w[len(w)-1].end }

func (w week) contains(t time.Time) bool { return !t.Before(w.start()) && t.Before(w.end()) }

// overlaps tells whether an entry is seen in the week.
func (w week) overlaps(e Entry) bool {
	if e.Kind == Slot {
		return w.contains(e.Start)
	}
	return e.Start.Before(w.end()) && e.End.After(w.start())
}

// at is where in the week an instant lies, in days from its Monday. A day of 23
// hours is as wide as the others.
func (w week) at(t time.Time) float64 {
	for _, d := range w {
		if t.Before(d.start) {
			return float64(d.column)
		}
		if t.Before(d.end) {
			return float64(d.column) + float64(t.Sub(d.start))/float64(d.end.Sub(d.start))
		}
	}
	return float64(w[len(w)-1].column + 1)
}

// number is the week's name as ISO 8601 counts.
func (w week) number() string {
	_, n := w[0].date.ISOWeek()
	return fmt.Sprintf("Week %d", n)
}

// everyDay finds a time of day by the rules of the house: in a gap the first
// instant after it, where it comes twice the first.
func everyDay(cron, zone string) *schedule.Schedule {
	s, err := schedule.Parse(schedule.Spec{Cron: cron, Timezone: zone})
	if err != nil {
		s, _ = schedule.Parse(schedule.Spec{Cron: cron}) // as clock does
	}
	return s
}

// weeks are the whole weeks that the page touches, from Monday.
func (p Page) weeks() []week {
	midnights := everyDay("0 0 * * *", p.Zone)
	start, ok := everyDay("0 0 * * 1", p.Zone).Last(p.From)
	var out []week
	for ok {
		next, more := midnights.Next(start.At)
		if !more {
			return out
		}
		d := newDay(start, next.At)
		if d.column == 0 && !d.start.Before(p.To) {
			return out
		}
		if last := len(out) - 1; last < 0 || d.column <= out[last][len(out[last])-1].column {
			out = append(out, week{d})
		} else {
			out[last] = append(out[last], d)
		}
		start = next
	}
	return out
}

func newDay(midnight schedule.Slot, end time.Time) day {
	date, _ := time.Parse(time.DateOnly, midnight.Wall[:len(time.DateOnly)])
	return day{start: midnight.At, end: end, date: date, column: (int(date.Weekday()) + 6) % 7}
}

// hour is a mark on an axis.
type hour struct {
	at   time.Time
	text string
}

// marks are the instants of the day at which a clock shows full quarters of a
// day, its first instant among them.
func (d day) marks(zone string) []hour {
	var out []hour
	clock := everyDay("0 */6 * * *", zone)
	for slot, ok := clock.Next(d.start.Add(-time.Second)); ok && slot.At.Before(d.end); slot, ok = clock.Next(slot.At) {
		out = append(out, hour{slot.At, slot.Local().Format("15")})
	}
	return out
}

// ThisWeek is the first instant of the Monday at or before an instant, on the
// clocks of a zone, and of the Monday so many weeks later.
func ThisWeek(now time.Time, zone string, weeks int) (from, to time.Time) {
	mondays := everyDay("0 0 * * 1", zone)
	slot, _ := mondays.Last(now)
	from, to = slot.At, slot.At
	for range weeks {
		slot, _ = mondays.Next(to)
		to = slot.At
	}
	return from, to
}
