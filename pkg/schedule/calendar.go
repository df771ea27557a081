package schedule

import (
	"fmt"
	"maps"
	"sync"
	"weak"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// Calendar is a Calendar document that was understood: events that are put on
// the clock only where a policy uses it, since whole days and floating times
// count in the policy's zone.
type Calendar struct {
	events []event

	mu    sync.Mutex
	clock map[*zone]weak.Pointer[dated] // for whom it was put on the clock, as long as a policy holds it
}

// Load is how much of a calendar is kept for each zone in which policies use it: events that recur,
// with what they leave out, and dates.
func (c *Calendar) Load() (recurring, dates int) {
	held := load{}
	held.add(c)
	return held.recurring, held.dates
}

// in is the calendar on the clock of a zone. Policies of one zone share it.
func (c *Calendar) in(z *zone) *dated {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.clock[z].Value(); known != nil {
		return known
	}
	d := &dated{}
	for i := range c.events {
		d.add(&c.events[i], z)
	}
	d.seal()
	maps.DeleteFunc(c.clock, func(_ *zone, held weak.Pointer[dated]) bool { return held.Value() == nil })
	if c.clock == nil {
		c.clock = map[*zone]weak.Pointer[dated]{}
	}
	c.clock[z] = weak.Make(d)
	return d
}

// CalendarEntry is one line of a Calendar written as a YAML list. From and
// Until are dates, or instants in RFC 3339; Until is exclusive, by default the
// day after From.
type CalendarEntry struct {
	From   string `json:"from"`            // the first day, or an instant in RFC 3339
	Until  string `json:"until,omitempty"` // the day after the last one, or the instant at which it is over; default the day after from
	Reason string `json:"reason,omitempty"`
}

// CalendarRef names a Calendar document. Namespace defaults to that of the
// policy.
type CalendarRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// Exclusion takes time out of a policy: whole days from FromDate up to, but
// without, UntilDate (by default the day after), or the events of a Calendar.
type Exclusion struct {
	FromDate  string       `json:"fromDate,omitempty"`  // the first day
	UntilDate string       `json:"untilDate,omitempty"` // the day after the last one; default the day after fromDate
	Reason    string       `json:"reason,omitempty"`
	Calendar  *CalendarRef `json:"calendar,omitempty"`
}

// moment is a time on the clocks of a zone, or of any where zone is nil.
type moment struct {
	stamp
	zone *zone
}

func (m moment) in(policy *zone) *zone {
	if m.zone != nil {
		return m.zone
	}
	return policy
}

// event is something that takes time, once or by a rule.
type event struct {
	start, end moment
	extra      int64 // seconds to add to end, elapsed
	rule       *rrule
	more, skip []moment
	reason     string
}

// ParseCalendarEntries reads a Calendar written as a list. A faulty entry is
// told with its place, and the rest works: the Calendar is good beside an
// error.
func ParseCalendarEntries(list []CalendarEntry) (*Calendar, error) {
	var all faults
	calendar := &Calendar{}
	for i, entry := range list {
		e, err := entry.event()
		all.join(fmt.Sprintf("[%d]", i), err)
		if err == nil {
			calendar.events = append(calendar.events, e)
		}
	}
	return calendar, all.err()
}

func (c CalendarEntry) event() (event, error) {
	return datedEvent("from", c.From, "until", c.Until, c.Reason, parseStamp)
}

// parseDate reads a date alone.
func parseDate(text string) (stamp, string) {
	date, fault := parseStamp(text)
	if fault != "" || !date.wholeDay {
		return stamp{}, "is not a date; write it like 2026-12-24"
	}
	return date, ""
}

func datedEvent(fromField, from, untilField, until, reason string, parse func(string) (stamp, string)) (event, error) {
	var all faults
	start, fault := parse(from)
	if from == "" {
		all.add(fromField, "", "is missing; write a date like 2026-12-24")
	} else if fault != "" {
		all.add(fromField, from, "%s", fault)
	}
	end := stamp{second: start.second + civil.DaySeconds, zoned: start.zoned, wholeDay: start.wholeDay}
	if until != "" {
		end, fault = parse(until)
		switch {
		case fault != "":
			all.add(untilField, until, "%s", fault)
		case all.err() == nil && start.zoned == end.zoned && end.second <= start.second:
			all.add(untilField, until, "is not after %s %s, and is itself not excluded any more; write a later one, or leave it out for one day", fromField, from)
		}
	}
	return event{start: moment{stamp: start}, end: moment{stamp: end}, reason: reason}, all.err()
}

func (e Exclusion) event() (event, error) {
	return datedEvent("fromDate", e.FromDate, "untilDate", e.UntilDate, e.Reason, parseDate)
}

// sources are the times of the event in the zone of a policy: what is given,
// and what the rule makes, nil where nothing recurs.
func (e *event) sources(policy *zone) (given []span, made source) {
	z := e.start.in(policy)
	start, end := e.start.instant(z), e.end.instant(e.end.in(policy))+e.extra
	skip := e.exceptions(policy)
	if first := e.start.local(z); !skip.has(first, start) {
		given = append(given, span{start, end})
	}
	for _, more := range e.more {
		z := more.in(policy)
		if at := more.instant(z); !skip.has(more.local(z), at) {
			given = append(given, span{at, e.shifted(more, z, end-start)})
		}
	}
	if opening := e.opening(z, skip); opening != nil && end > start {
		if e.start.wholeDay {
			return given, newWindows(opening, e.end.second-e.start.second, true)
		}
		return given, newWindows(opening, end-start, false)
	}
	return given, nil
}

// opening is the schedule by which the event recurs, nil if it never does.
func (e *event) opening(z *zone, skip exceptions) *Schedule {
	start := e.start.local(z)
	if e.rule == nil {
		return nil
	}
	opening := &Schedule{zone: z, until: civil.Never}
	opening.expand(e.rule, start, true)
	opening.skip = skip
	if _, ok := opening.next(opening.beforeFirst(start)); !ok {
		return nil
	}
	return opening
}

// shifted is the end of the event if it began at another time.
func (e *event) shifted(start moment, z *zone, elapsed int64) int64 {
	if e.start.wholeDay && start.wholeDay {
		return z.instant(start.second + e.end.second - e.start.second)
	}
	return start.instant(z) + elapsed
}

func (e *event) exceptions(policy *zone) exceptions {
	var skip exceptions
	for _, one := range e.skip {
		at := one.stamp
		if !at.wholeDay && !at.zoned && one.zone != nil {
			at = stamp{second: at.instant(one.zone), zoned: true}
		}
		skip.add(at)
	}
	skip.sort()
	return skip
}
