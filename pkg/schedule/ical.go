package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/ics"
)

// LineError is a line of an iCalendar file that was not understood. Line counts
// from 1; a folded line has the number of its first part.
type LineError struct {
	Line    int
	Text    string
	Message string
}

func (e *LineError) Error() string {
	return fmt.Sprintf("line %d: %q: %s", e.Line, e.Text, e.Message)
}

// ParseICalendar reads the events of an RFC 5545 file. Lines may end in LF. The
// error joins a *LineError for every line that was not understood; the rest
// works, so the Calendar is good beside an error. CANCELLED and TRANSPARENT
// events take no time; an event without an end takes one day. A zone is looked
// up in the embedded data, and only if it is not there, as with the names that
// Outlook writes, taken from the file.
func ParseICalendar(text string) (*Calendar, error) {
	file := &icalFile{zones: map[string]*zone{}, named: map[string]*zone{}}
	root, faults := ics.Parse(text)
	for _, f := range faults {
		file.fault(f.Line, "%s", f.Message)
	}
	for _, child := range root.Find("VTIMEZONE") {
		file.addZone(child)
	}
	clear(file.named)
	var parts []icalEvent
	for _, child := range root.Find("VEVENT") {
		if part, ok := file.event(child); ok {
			parts = append(parts, part)
		}
	}
	events := file.joinOverrides(parts)
	slices.SortStableFunc(file.faults, func(a, b *LineError) int { return a.Line - b.Line })
	errs := make([]error, len(file.faults))
	for i, fault := range file.faults {
		errs[i] = fault
	}
	return &Calendar{events: events}, errors.Join(errs...)
}

type icalFile struct {
	zones      map[string]*zone // from VTIMEZONE
	onsetsRead int              // in all of them
	named      map[string]*zone // what each TZID means; nil: nothing
	faults     []*LineError
}

// mostLines is how many lines of a file are told.
const mostLines = 1000

func (f *icalFile) fault(line ics.Line, format string, args ...any) {
	if len(f.faults) == mostLines {
		return
	}
	text := line.Text
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	f.faults = append(f.faults, &LineError{Line: line.Number, Text: text, Message: fmt.Sprintf(format, args...)})
}

// icalEvent is a VEVENT: an event, or with instead the change of one instance.
type icalEvent struct {
	event
	uid     string
	begin   ics.Line
	instead *moment
	free    bool // takes no time
}

// event reads a VEVENT. Without a start that can be read there is none.
func (f *icalFile) event(node *ics.Component) (icalEvent, bool) {
	e := icalEvent{begin: node.Begin}
	start, ok := node.Line("DTSTART")
	if !ok {
		f.fault(node.Begin, "has no DTSTART")
		return e, false
	}
	if e.start, ok = f.moment(start, start.Value); !ok {
		return e, false
	}
	e.end = e.start
	e.end.second += civil.DaySeconds
	for _, line := range node.Lines {
		f.property(&e, line)
	}
	f.checkEnd(node, &e)
	return e, true
}

func (f *icalFile) property(e *icalEvent, line ics.Line) {
	switch line.Name {
	case "UID":
		e.uid = line.Value
	case "SUMMARY":
		e.reason = unescape(line.Value)
	case "STATUS":
		e.free = e.free || strings.EqualFold(line.Value, "CANCELLED")
	case "TRANSP":
		e.free = e.free || strings.EqualFold(line.Value, "TRANSPARENT")
	case "DTEND":
		if end, ok := f.moment(line, line.Value); ok {
			e.end = end
		}
	case "DURATION":
		f.duration(e, line)
	case "RRULE":
		f.rule(e, line)
	case "EXDATE":
		e.skip = append(e.skip, f.moments(line)...)
	case "RDATE":
		e.more = append(e.more, f.moments(line)...)
	case "RECURRENCE-ID":
		if line.Params["RANGE"] != "" {
			f.fault(line, "RANGE is not supported: only this instance is changed; split the series in two events")
		}
		if at, ok := f.moment(line, line.Value); ok {
			e.instead = &at
		}
	}
}

func (f *icalFile) rule(e *icalEvent, line ics.Line) {
	rule, err := parseRRule(line.Value)
	if err != nil {
		for _, fault := range Faults(err) {
			f.fault(line, "%s; only the first instance counts", fault.Message)
		}
		return
	}
	if e.rule != nil {
		f.fault(line, "is a second RRULE, and only the first counts; write an event of its own")
		return
	}
	e.rule = rule
}

// checkEnd drops an end that does not come after the start.
func (f *icalFile) checkEnd(node *ics.Component, e *icalEvent) {
	same := e.start.zone == e.end.zone && e.start.zoned == e.end.zoned
	line, ok := node.Line("DTEND")
	switch {
	case !same || e.end.second+e.extra > e.start.second:
	case ok && e.end.second == e.start.second && !e.start.wholeDay:
		// an event without length takes no time
	default:
		if !ok {
			line, _ = node.Line("DURATION")
		}
		f.fault(line, "the event does not end after it starts; one day is taken")
		e.end, e.extra = e.start, 0
		e.end.second += civil.DaySeconds
	}
}

func (f *icalFile) moments(line ics.Line) []moment {
	var list []moment
	for _, value := range strings.Split(line.Value, ",") {
		if start, _, isPeriod := strings.Cut(value, "/"); isPeriod {
			f.fault(line, "periods are not supported: the length of the event is taken; write starts alone")
			value = start
		}
		if at, ok := f.moment(line, value); ok {
			list = append(list, at)
		}
	}
	return list
}

// moment reads a DATE or DATE-TIME with the zone that the line names.
func (f *icalFile) moment(line ics.Line, value string) (moment, bool) {
	at, fault := parseStamp(value)
	if fault != "" {
		f.fault(line, "%q %s", value, "is not a date or time; write it like 20261224, 20261224T180000 or 20261224T180000Z")
		return moment{}, false
	}
	m := moment{stamp: at}
	if at.zoned {
		m.zone = mustUTC()
	} else if name := line.Params["TZID"]; name != "" && !at.wholeDay {
		m.zone = f.zone(line, name)
	}
	return m, true
}

// zone is what a TZID means. A line is reported once, however many times it has.
func (f *icalFile) zone(line ics.Line, name string) *zone {
	z, known := f.named[name]
	if !known {
		z = f.findZone(name)
		f.named[name] = z
	}
	if last := len(f.faults) - 1; z == nil && (last < 0 || f.faults[last].Line != line.Number) {
		f.fault(line, "time zone %q is neither an IANA name nor described by a VTIMEZONE; its times count in the zone of the policy", name)
	}
	return z
}

// findZone finds a zone by its IANA name, by the IANA name at the end of a path, or
// in the file.
func (f *icalFile) findZone(name string) *zone {
	for rest := strings.TrimPrefix(name, "/"); len(rest) > 0; {
		if z, err := zoneByName(rest); err == nil {
			return z
		}
		_, rest, _ = strings.Cut(rest, "/")
	}
	return f.zones[name]
}

// duration reads an RFC 5545 duration such as P1W, P2D or P1DT12H: days are
// wall-clock days, the rest is elapsed time.
func (f *icalFile) duration(e *icalEvent, line ics.Line) {
	days, seconds, ok := parseICalDuration(line.Value)
	if !ok {
		f.fault(line, "is not a duration; write it like P1D or PT8H")
		return
	}
	e.end, e.extra = e.start, seconds
	e.end.second += days * civil.DaySeconds
}

func parseICalDuration(text string) (days, seconds int64, ok bool) {
	rest, found := strings.CutPrefix(strings.TrimPrefix(strings.ToUpper(text), "+"), "P")
	if !found || rest == "" {
		return 0, 0, false
	}
	inTime, digits := false, ""
	for _, c := range rest {
		n, err := decimal(digits)
		switch {
		case c >= '0' && c <= '9':
			digits += string(c)
			continue
		case c == 'T' && !inTime && digits == "":
			inTime = true
			continue
		case err != nil:
			return 0, 0, false
		case c == 'W' && !inTime:
			days += 7 * int64(n)
		case c == 'D' && !inTime:
			days += int64(n)
		case c == 'H' && inTime:
			seconds += int64(n) * civil.HourSeconds
		case c == 'M' && inTime:
			seconds += int64(n) * civil.MinuteSeconds
		case c == 'S' && inTime:
			seconds += int64(n)
		default:
			return 0, 0, false
		}
		digits = ""
	}
	return days, seconds, digits == "" && days+seconds > 0
}

func unescape(text string) string {
	return strings.NewReplacer(`\n`, " ", `\N`, " ", `\,`, ",", `\;`, ";", `\\`, `\`).Replace(text)
}

const maxOverrides = 10_000 // changed instances, once for each series of their UID (a guess: it has one)

// joinOverrides takes changed instances out of the series they belong to, and
// leaves out what takes no time.
func (f *icalFile) joinOverrides(parts []icalEvent) []event {
	changed := map[string][]moment{}
	for _, part := range parts {
		if part.instead != nil {
			changed[part.uid] = append(changed[part.uid], *part.instead)
		}
	}
	events, joined := []event(nil), 0
	for _, part := range parts {
		if part.free {
			continue
		}
		if part.instead == nil && part.uid != "" {
			if joined += len(changed[part.uid]); joined > maxOverrides {
				f.fault(part.begin, "has a UID that other series and too many changed instances have: %d of them at most are taken out of series", maxOverrides)
				return events
			}
			part.skip = append(part.skip, changed[part.uid]...)
		}
		if part.instead != nil {
			part.rule = nil
		}
		events = append(events, part.event)
	}
	return events
}
