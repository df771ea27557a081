package schedule

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// MaintenanceSchedule says when a policy is permissive: in the windows of Permit and Windows, less what
// Exclude takes out. With neither Permit nor Windows it is always but for Exclude, and without that never.
type MaintenanceSchedule struct {
	Timezone string      `json:"timezone,omitempty"` // IANA, default UTC
	Permit   *Permit     `json:"permit,omitempty"`
	Windows  []Window    `json:"windows,omitempty"`
	Exclude  []Exclusion `json:"exclude,omitempty"`
}

// Calendars finds a Calendar document; namespace is empty for the policy's own.
type Calendars func(namespace, name string) (*Calendar, bool)

// mostWindows bounds the windows of a policy.
const mostWindows = 500

// ErrCalendarMissing is the Cause of a FieldError that names a Calendar which is
// not there.
var ErrCalendarMissing = errors.New("calendar not found")

// Timeline is permissive (open) or restrictive at every instant. It is
// immutable and safe for concurrent use.
type Timeline struct {
	zone    *zone
	always  bool // permissive but for what is excluded
	permit  union
	exclude exclusions

	inside, outside string // reasons
	cause           Cause
	memo            memo
}

// ParseMaintenanceSchedule reads a stanza; nil is restrictive for ever. The
// error joins one *FieldError for every fault, with its path below the stanza.
func ParseMaintenanceSchedule(spec *MaintenanceSchedule, calendars Calendars) (*Timeline, error) {
	return parseTimeline(Cause{}, spec, calendars)
}

// parseTimeline puts whose schedule it is before every reason, so that none is put together
// when it is asked for.
func parseTimeline(of Cause, spec *MaintenanceSchedule, calendars Calendars) (*Timeline, error) {
	about := of.prefix()
	timeline := &Timeline{zone: mustUTC(), cause: of, inside: about + "in a window", outside: about + "outside of the windows"}
	if spec == nil {
		timeline.outside = about + "no maintenance schedule"
		return timeline, nil
	}
	var all faults
	z, err := loadZone(spec.Timezone)
	all.join("", err)
	if err == nil {
		timeline.zone = z
	}
	all.join("", timeline.readPermit(about, spec))
	all.join("", timeline.readExclude(about, spec.Exclude, calendars))
	if err := all.err(); err != nil {
		return nil, err
	}
	return timeline, nil
}

func (tl *Timeline) readPermit(about string, spec *MaintenanceSchedule) error {
	var all faults
	var open []source
	if spec.Windows != nil && len(spec.Windows) == 0 {
		all.add("windows", "", "is an empty list; write a window, or leave the field out")
	}
	if len(spec.Windows) > mostWindows {
		all.add("windows", "", "has %d windows; at most %d are allowed", len(spec.Windows), mostWindows)
		return all.err()
	}
	switch {
	case spec.Permit != nil && *spec.Permit == Permit{}:
		tl.always, tl.inside = true, about+"always permitted"
	case spec.Permit != nil:
		s, always, err := spec.Permit.source(tl.zone)
		all.join("permit", err)
		tl.always = tl.always || always
		if s != nil {
			open = append(open, s)
		}
	case len(spec.Windows) == 0 && len(spec.Exclude) > 0:
		tl.always, tl.inside = true, about+"not excluded"
	case len(spec.Windows) == 0:
		tl.outside = about + "no windows"
	}
	more, always, err := readWindows(spec.Windows, tl.zone)
	all.join("", err)
	tl.always = tl.always || always
	tl.permit = newUnion(append(open, more...)...)
	return all.err()
}

func (tl *Timeline) readExclude(about string, list []Exclusion, calendars Calendars) error {
	var all faults
	own, taken, held := &dated{}, map[CalendarRef]bool{}, load{}
	tl.exclude = exclusions{about: about, parts: []part{{dated: own}}}
	for i, exclusion := range list {
		path := fmt.Sprintf("exclude[%d]", i)
		if exclusion.Calendar == nil {
			e, err := exclusion.event()
			all.join(path, err)
			if err == nil {
				own.add(&e, tl.zone)
			}
			continue
		}
		calendar, err := exclusion.find(calendars)
		all.join(path, err)
		if calendar == nil || taken[*exclusion.Calendar] {
			continue
		}
		taken[*exclusion.Calendar] = true
		if !held.add(calendar) {
			all.add(path, "", "%s", held.refusal())
			break
		}
		tl.exclude.parts = append(tl.exclude.parts, part{dated: calendar.in(tl.zone), otherwise: exclusion.calendarReason()})
	}
	own.seal()
	tl.exclude.seal()
	return all.err()
}

func (e Exclusion) calendarReason() string {
	if e.Reason != "" {
		return e.Reason
	}
	return "calendar " + e.Calendar.Name
}

func (e Exclusion) find(calendars Calendars) (*Calendar, error) {
	if e.FromDate != "" || e.UntilDate != "" {
		return nil, &FieldError{Field: "calendar", Value: e.Calendar.Name, Message: "stands beside fromDate or untilDate; write two exclusions"}
	}
	if e.Calendar.Name == "" {
		return nil, &FieldError{Field: "calendar.name", Message: "is missing; write the name of a Calendar document"}
	}
	if calendars != nil {
		if calendar, ok := calendars(e.Calendar.Namespace, e.Calendar.Name); ok && calendar != nil {
			return calendar, nil
		}
	}
	name := strings.TrimPrefix(e.Calendar.Namespace+"/"+e.Calendar.Name, "/")
	return nil, &FieldError{Field: "calendar", Value: name, Message: "there is no such Calendar document", Cause: ErrCalendarMissing}
}

// State is what a timeline is at an instant. Since and Until are the changes
// around it; they are absent if it always was so, or never changes.
type State struct {
	Open               bool
	Since, Until       time.Time
	HasSince, HasUntil bool
	Reason             string
	Cause              Cause
}

// At is the state at an instant.
func (tl *Timeline) At(t time.Time) State { return stateOf(tl, t) }

// Next is the first change strictly after an instant, and whether the timeline
// is open from there on; false when it never changes.
func (tl *Timeline) Next(after time.Time) (at time.Time, open bool, ok bool) {
	change := changeOf(tl, after.Unix())
	if change == civil.Never {
		return time.Time{}, false, false
	}
	return time.Unix(change, 0).UTC(), tl.open(change), true
}

// Interval is a merged stretch in which a timeline is open. Start is nil where it always was, End where it
// does not close. Note says what people should know of it: that clocks change inside, or what cuts it short.
type Interval struct {
	Start, End    *time.Time
	Note          string
	ClockChange   bool   // the three are the Note
	Before, After string // what is excluded up to its start, and from its end on
}

// Intervals are the open stretches from an instant on, in order; one that is
// open at the instant comes first, with its true start.
func (tl *Timeline) Intervals(from time.Time) iter.Seq[Interval] { return intervalsOf(tl, from) }

func intervalsOf(c course, from time.Time) iter.Seq[Interval] {
	return func(yield func(Interval) bool) {
		t := from.Unix()
		if !c.open(t) {
			t = changeOf(c, t)
		}
		for t != civil.Never && c.open(t) { // what is not known permits nothing
			start, end := sinceOf(c, t), changeOf(c, t)
			if !yield(intervalOf(c, start, end)) || end == civil.Never {
				return
			}
			t = changeOf(c, end)
		}
	}
}

// intervalOf is a stretch with its notes. A side without a bound has none.
func intervalOf(c course, start, end int64) Interval {
	i, clocks := Interval{Start: instantOf(start), End: instantOf(end)}, ""
	for _, tl := range timelinesIn(c) {
		if i.Start != nil && i.Before == "" {
			i.Before = tl.exclude.reason(start - 1)
		}
		if i.End != nil && i.After == "" {
			i.After = tl.exclude.reason(end)
		}
		if i.Start != nil && i.End != nil && tl.zone.at(start).offset != tl.zone.at(end-1).offset {
			i.ClockChange, clocks = true, "clock change"
		}
	}
	notes := slices.DeleteFunc([]string{clocks, i.Before, i.After}, func(note string) bool { return note == "" })
	i.Note = strings.Join(slices.Compact(notes), "; ")
	return i
}

// timelinesIn are those that have a say in a course, also where something else holds it until an instant.
func timelinesIn(c course) (list []*Timeline) {
	switch c := c.(type) {
	case *Timeline:
		list = append(list, c)
	case *prefix:
		return timelinesIn(c.then)
	case every:
		for _, one := range c {
			list = append(list, timelinesIn(one)...)
		}
	}
	return list
}

// instantOf is a time, or nothing where a stretch has no bound.
func instantOf(second int64) *time.Time {
	if second == civil.Beginning || second == civil.Never {
		return nil
	}
	at := time.Unix(second, 0).UTC()
	return &at
}

func (tl *Timeline) permits(t int64) bool { return tl.always || tl.permit.contains(t) }

func (tl *Timeline) open(t int64) bool {
	return tl.permits(t) && !tl.exclude.union.contains(t)
}

func (tl *Timeline) ready(int64) bool { return true }

func (tl *Timeline) explain(t int64) explanation {
	if tl.open(t) {
		return explanation{tl.inside, tl.cause}
	}
	if why := tl.exclude.reason(t); why != "" {
		return explanation{why, tl.cause}
	}
	return explanation{tl.outside, tl.cause}
}

// change is the first instant after t at which the timeline is not as it is at
// t, or never.
func (tl *Timeline) change(t int64, e *effort) int64 {
	found := tl.stretch(t, e)
	if found.known.end != found.end {
		e.notBeyond(found.known.end)
	}
	return found.end
}

// since is the instant from which on the timeline has been as it is at t, or
// the beginning.
func (tl *Timeline) since(t int64, e *effort) int64 {
	found := tl.stretch(t, e)
	if found.known.start != found.start {
		e.notBefore(found.known.start)
	}
	return found.start
}

// stretch remembers the last permissive and the last restrictive stretch, so
// that those who share a policy do not work them out one by one.
func (tl *Timeline) stretch(t int64, e *effort) *steadySpan {
	if known := tl.memo.find(t); known != nil {
		e.spent++
		return known
	}
	open, most := tl.open(t), timelineEffort
	if !open { // what is open may be closed soon, and that is to be known
		most = min(most, e.left())
	}
	back, ahead := newEffort(most), newEffort(most)
	found := &steadySpan{span: span{tl.lookBack(t, open, back), tl.lookAhead(t, open, ahead)}, open: open}
	e.spent += found.searched(back, ahead).asked
	if most < timelineEffort && found.known != found.span {
		return found // another search may come further
	}
	return tl.memo.keep(found)
}

func (tl *Timeline) lookAhead(t int64, open bool, e *effort) int64 {
	if open {
		return tl.permitUntil(t, tl.exclude.union.opens(t), e)
	}
	for horizon := t + civil.CycleSeconds; t <= horizon && e.spend(tl.cost()); {
		switch {
		case tl.exclude.union.contains(t):
			t = tl.exclude.union.until(t, civil.Never, e)
		case tl.always:
			return t // not reached: what is always permitted is closed only by exclusions
		default:
			t = tl.permit.opens(t)
		}
		if t == civil.Never || tl.open(t) {
			return t
		}
	}
	e.endAhead(t)
	return civil.Never
}

func (tl *Timeline) cost() int { return 1 + tl.permit.cost + tl.exclude.union.cost }

func (tl *Timeline) permitUntil(t, limit int64, e *effort) int64 {
	if tl.always {
		return limit
	}
	return tl.permit.until(t, limit, e)
}

func (tl *Timeline) lookBack(t int64, open bool, e *effort) int64 {
	if open {
		return max(tl.permitSince(t, e), tl.exclude.union.closed(t))
	}
	for horizon := longAgo(t); t >= horizon && e.spend(tl.cost()); {
		start := int64(civil.Beginning)
		switch {
		case tl.exclude.union.contains(t):
			start = tl.exclude.union.since(t, e)
		case !tl.always:
			start = tl.permit.closed(t)
		}
		if start == civil.Beginning || tl.open(start-1) {
			return start
		}
		t = start - 1
	}
	e.endBack(t)
	return civil.Beginning
}

func (tl *Timeline) permitSince(t int64, e *effort) int64 {
	if tl.always {
		return civil.Beginning
	}
	return tl.permit.since(t, e)
}
