package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
	file := &icalFile{zones: map[string]*zone{}}
	root := file.tree(unfold(text))
	for _, child := range root.find("VTIMEZONE") {
		file.addZone(child)
	}
	var parts []icalEvent
	for _, child := range root.find("VEVENT") {
		if part, ok := file.event(child); ok {
			parts = append(parts, part)
		}
	}
	slices.SortStableFunc(file.faults, func(a, b *LineError) int { return a.Line - b.Line })
	errs := make([]error, len(file.faults))
	for i, fault := range file.faults {
		errs[i] = fault
	}
	return &Calendar{events: joinOverrides(parts)}, errors.Join(errs...)
}

type icalFile struct {
	zones  map[string]*zone // from VTIMEZONE
	faults []*LineError
}

func (f *icalFile) fault(line icalLine, format string, args ...any) {
	text := line.text
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	f.faults = append(f.faults, &LineError{Line: line.number, Text: text, Message: fmt.Sprintf(format, args...)})
}

// icalLine is one unfolded line, taken apart.
type icalLine struct {
	number int
	text   string
	name   string
	params map[string]string
	value  string
}

// unfold joins continued lines and numbers them.
func unfold(text string) []icalLine {
	var lines []icalLine
	var joined strings.Builder // the line that may go on
	number := 0
	end := func() {
		if number > 0 {
			lines = append(lines, icalLine{number: number, text: joined.String()})
		}
		joined.Reset()
	}
	text = strings.TrimPrefix(text, "\ufeff")
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if number > 0 && line != "" && (line[0] == ' ' || line[0] == '\t') {
			joined.WriteString(line[1:])
			continue
		}
		end()
		number = i + 1
		joined.WriteString(line)
	}
	end()
	return slices.DeleteFunc(lines, func(line icalLine) bool { return strings.TrimSpace(line.text) == "" })
}

// split takes NAME;PARAM=VALUE;PARAM="VALUE":VALUE apart.
func (l *icalLine) split() bool {
	quoted, colon := false, -1
	var ends []int
	for i := 0; i < len(l.text) && colon < 0; i++ {
		switch c := l.text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ';':
			ends = append(ends, i)
		case c == ':':
			colon = i
		}
	}
	if colon < 1 {
		return false
	}
	l.value = strings.TrimSpace(l.text[colon+1:])
	ends = append(ends, colon)
	l.name = strings.ToUpper(strings.TrimSpace(l.text[:ends[0]]))
	l.params = map[string]string{}
	for i := range ends[1:] {
		name, value, ok := strings.Cut(l.text[ends[i]+1:ends[i+1]], "=")
		if !ok {
			return false
		}
		l.params[strings.ToUpper(name)] = strings.Trim(value, `"`)
	}
	return l.name != "" && strings.Trim(l.name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == ""
}

// icalNode is a component with its lines and the components inside.
type icalNode struct {
	begin    icalLine
	name     string
	lines    []icalLine
	children []*icalNode
}

// find lists the components of a name, at any depth, in order.
func (n *icalNode) find(name string) []*icalNode {
	var found []*icalNode
	for _, child := range n.children {
		if child.name == name {
			found = append(found, child)
		}
		found = append(found, child.find(name)...)
	}
	return found
}

func (n *icalNode) line(name string) (icalLine, bool) {
	for _, line := range n.lines {
		if line.name == name {
			return line, true
		}
	}
	return icalLine{}, false
}

// tree nests the components. A component that is not ended is ended by the next
// thing that is, or by the file, and told.
// maxNesting is how deep components may stand in each other (RFC 5545 has three levels; a guess).
const maxNesting = 10

func (f *icalFile) tree(lines []icalLine) *icalNode {
	stack := []*icalNode{{}}
	for _, line := range lines {
		top := stack[len(stack)-1]
		if !line.split() {
			f.fault(line, "is not NAME:VALUE; write one property a line, and begin continued lines with a space")
			continue
		}
		switch line.name {
		case "BEGIN":
			if len(stack) > maxNesting {
				f.fault(line, "stands in more than %d others", maxNesting)
				return stack[0]
			}
			node := &icalNode{begin: line, name: strings.ToUpper(line.value)}
			top.children = append(top.children, node)
			stack = append(stack, node)
		case "END":
			stack = f.end(stack, line)
		default:
			if len(stack) == 1 {
				f.fault(line, "is outside of BEGIN:VCALENDAR and END:VCALENDAR")
			}
			top.lines = append(top.lines, line)
		}
	}
	for _, open := range stack[1:] {
		f.fault(open.begin, "is never ended; write END:%s", open.name)
	}
	return stack[0]
}

func (f *icalFile) end(stack []*icalNode, line icalLine) []*icalNode {
	name := strings.ToUpper(line.value)
	for i := len(stack) - 1; i > 0; i-- {
		if stack[i].name != name {
			continue
		}
		for _, open := range stack[i+1:] {
			f.fault(open.begin, "is not ended before END:%s in line %d", name, line.number)
		}
		return stack[:i]
	}
	f.fault(line, "ends what was not begun")
	return stack
}

// icalEvent is a VEVENT: an event, or with instead the change of one instance.
type icalEvent struct {
	event
	uid     string
	instead *moment
	free    bool // takes no time
}

// event reads a VEVENT. Without a start that can be read there is none.
func (f *icalFile) event(node *icalNode) (icalEvent, bool) {
	e := icalEvent{}
	start, ok := node.line("DTSTART")
	if !ok {
		f.fault(node.begin, "has no DTSTART")
		return e, false
	}
	if e.start, ok = f.moment(start, start.value); !ok {
		return e, false
	}
	e.end = e.start
	e.end.second += daySeconds
	for _, line := range node.lines {
		f.property(&e, line)
	}
	f.checkEnd(node, &e)
	return e, true
}

func (f *icalFile) property(e *icalEvent, line icalLine) {
	switch line.name {
	case "UID":
		e.uid = line.value
	case "SUMMARY":
		e.reason = unescape(line.value)
	case "STATUS":
		e.free = e.free || strings.EqualFold(line.value, "CANCELLED")
	case "TRANSP":
		e.free = e.free || strings.EqualFold(line.value, "TRANSPARENT")
	case "DTEND":
		if end, ok := f.moment(line, line.value); ok {
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
		if line.params["RANGE"] != "" {
			f.fault(line, "RANGE is not supported: only this instance is changed; split the series in two events")
		}
		if at, ok := f.moment(line, line.value); ok {
			e.instead = &at
		}
	}
}

func (f *icalFile) rule(e *icalEvent, line icalLine) {
	rule, err := parseRRule(line.value)
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
func (f *icalFile) checkEnd(node *icalNode, e *icalEvent) {
	same := e.start.zone == e.end.zone && e.start.zoned == e.end.zoned
	line, ok := node.line("DTEND")
	switch {
	case !same || e.end.second+e.extra > e.start.second:
	case ok && e.end.second == e.start.second && !e.start.wholeDay:
		// an event without length takes no time
	default:
		if !ok {
			line, _ = node.line("DURATION")
		}
		f.fault(line, "the event does not end after it starts; one day is taken")
		e.end, e.extra = e.start, 0
		e.end.second += daySeconds
	}
}

func (f *icalFile) moments(line icalLine) []moment {
	var list []moment
	for _, value := range strings.Split(line.value, ",") {
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
func (f *icalFile) moment(line icalLine, value string) (moment, bool) {
	at, fault := parseStamp(value)
	if fault != "" {
		f.fault(line, "%q %s", value, "is not a date or time; write it like 20261224, 20261224T180000 or 20261224T180000Z")
		return moment{}, false
	}
	m := moment{stamp: at}
	if at.zoned {
		m.zone = mustUTC()
	} else if name := line.params["TZID"]; name != "" && !at.wholeDay {
		m.zone = f.zone(line, name)
	}
	return m, true
}

// zone finds a zone by its IANA name, by the IANA name at the end of a path, or
// in the file.
func (f *icalFile) zone(line icalLine, name string) *zone {
	for rest := strings.TrimPrefix(name, "/"); ; {
		if z, err := loadZone(rest); err == nil {
			return z
		}
		_, after, ok := strings.Cut(rest, "/")
		if !ok {
			break
		}
		rest = after
	}
	if z := f.zones[name]; z != nil {
		return z
	}
	f.fault(line, "time zone %q is neither an IANA name nor described by a VTIMEZONE; its times count in the zone of the policy", name)
	return nil
}

// duration reads an RFC 5545 duration such as P1W, P2D or P1DT12H: days are
// wall-clock days, the rest is elapsed time.
func (f *icalFile) duration(e *icalEvent, line icalLine) {
	days, seconds, ok := parseICalDuration(line.value)
	if !ok {
		f.fault(line, "is not a duration; write it like P1D or PT8H")
		return
	}
	e.end, e.extra = e.start, seconds
	e.end.second += days * daySeconds
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
			seconds += int64(n) * hourSeconds
		case c == 'M' && inTime:
			seconds += int64(n) * minuteSeconds
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

// joinOverrides takes changed instances out of the series they belong to, and
// leaves out what takes no time.
func joinOverrides(parts []icalEvent) []event {
	changed := map[string][]moment{}
	for _, part := range parts {
		if part.instead != nil {
			changed[part.uid] = append(changed[part.uid], *part.instead)
		}
	}
	var events []event
	for _, part := range parts {
		if part.free {
			continue
		}
		if part.instead == nil && part.uid != "" {
			part.skip = append(part.skip, changed[part.uid]...)
		}
		if part.instead != nil {
			part.rule = nil
		}
		events = append(events, part.event)
	}
	return events
}
