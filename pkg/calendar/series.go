package calendar

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// series are entries that differ by nothing but their day: one event of a feed, with a rule.
type series []Entry

// leastOfSeries is how many entries are worth a rule (a guess).
const leastOfSeries = 3

// event is what an event of a feed says, but for its day. Days are those of UTC, which has no
// clock changes: where clocks change, a series ends and another one begins.
type event struct {
	owner             Owner
	clock, length     time.Duration
	summary, describe string
	idle              bool
}

// seriesOf brings together what is told of each day in the same words; every other entry is a
// series of itself. They are in order of their first entries. few is false, and the series are
// worth nothing, if there are more than most.
func (p Page) seriesOf(sorted []Entry, most int) (out []series, few bool) {
	at := map[event]int{} // where in out
	for _, e := range sorted {
		if len(out) > most {
			return nil, false
		}
		named := e.Key != "" && e.Kind != Slot // the name of a slot is its start, as its document has it
		if named || e.Unbegun || e.Unending || e.Kind == Freeze {
			out = append(out, series{e})
			continue
		}
		start := e.Start.UTC()
		k := event{e.Owner, start.Sub(start.Truncate(24 * time.Hour)), e.End.Sub(e.Start), p.summary(e), e.description(), e.Idle}
		i, known := at[k]
		switch {
		case !known:
			at[k] = len(out)
			out = append(out, series{e})
		case out[i][len(out[i])-1].Start.Equal(e.Start): // a rule gives each day once
			out = append(out, series{e})
		default:
			out[i] = append(out[i], e)
		}
	}
	return out, true
}

// rule is the RRULE of a series, and what it would add and is to leave out. ok: it is worth it.
func (s series) rule() (rule string, except []time.Time, ok bool) {
	if len(s) < leastOfSeries {
		return "", nil, false
	}
	starts, weekdays := map[time.Time]bool{}, map[time.Weekday]bool{}
	for _, e := range s {
		starts[e.Start.UTC()], weekdays[e.Start.UTC().Weekday()] = true, true
	}
	count := 0
	for at := s[0].Start.UTC(); !at.After(s[len(s)-1].Start); at = at.AddDate(0, 0, 1) {
		if !weekdays[at.Weekday()] {
			continue
		}
		if count++; !starts[at] {
			except = append(except, at)
		}
	}
	if len(except) > len(s) {
		return "", nil, false
	}
	var names []string
	for d := range weekdays {
		names = append(names, strings.ToUpper(d.String()[:2]))
	}
	slices.Sort(names)
	return fmt.Sprintf("FREQ=WEEKLY;BYDAY=%s;COUNT=%d", strings.Join(names, ","), count), except, true
}
