package schedule

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/ics"
)

// onset is when an offset described by a VTIMEZONE begins.
type onset struct{ at, before, offset int64 }

// Onsets of one zone, and of all zones of a file (guesses: one of two changes a year has some 500).
const maxOnsets, maxOnsetsOfFile = 4_000, 20_000

// addZone reads a VTIMEZONE, which Outlook needs: its zone names are its own.
func (f *icalFile) addZone(node *ics.Component) {
	id, ok := node.Line("TZID")
	if !ok {
		f.fault(node.Begin, "has no TZID")
		return
	}
	if _, err := zoneByName(id.Value); err == nil {
		return // known better
	}
	var onsets []onset
	for _, child := range node.Children {
		if f.onsetsRead <= maxOnsetsOfFile {
			onsets = append(onsets, f.onsets(child)...)
		}
		if len(onsets) > maxOnsets || f.onsetsRead > maxOnsetsOfFile {
			f.fault(node.Begin, "changes the clock too often: more than %d times, or %d in all zones of the file", maxOnsets, maxOnsetsOfFile)
			return
		}
	}
	if len(onsets) == 0 {
		f.fault(id, "describes no offset")
		return
	}
	slices.SortStableFunc(onsets, func(a, b onset) int { return cmp.Compare(a.at, b.at) })
	f.zones[id.Value] = newZoneOf(id.Value, onsets)
}

func newZoneOf(name string, onsets []onset) *zone {
	z := &zone{name: name}
	start, offset := int64(civil.Beginning), onsets[0].before
	for _, next := range onsets {
		if start != civil.Beginning && next.at-start < 2*civil.DaySeconds {
			continue // no clock changes twice in two days; what is looked up here relies on it
		}
		z.add(start, next.at, offset)
		start, offset = next.at, next.offset
	}
	z.add(start, civil.Never, offset)
	return z
}

// onsets of a STANDARD or DAYLIGHT part, from 1900 as far as zones are tabled.
func (f *icalFile) onsets(node *ics.Component) []onset {
	start, hasStart := node.Line("DTSTART")
	from, okFrom := f.offset(node, "TZOFFSETFROM")
	to, okTo := f.offset(node, "TZOFFSETTO")
	if !hasStart || !okFrom || !okTo {
		f.fault(node.Begin, "needs DTSTART, TZOFFSETFROM and TZOFFSETTO")
		return nil
	}
	first, ok := f.moment(start, start.Value)
	if !ok {
		return nil
	}
	e := icalEvent{event: event{start: first}}
	for _, line := range node.Lines {
		if line.Name == "RRULE" {
			f.rule(&e, line)
		}
		if line.Name == "RDATE" {
			e.more = append(e.more, f.moments(line)...)
		}
	}
	list := []onset{{first.second - from, from, to}}
	for _, more := range e.more {
		list = append(list, onset{more.second - from, from, to})
	}
	if e.rule == nil {
		return list
	}
	fixed := &Schedule{zone: newZoneOf("", []onset{{0, from, from}}), until: civil.Never}
	fixed.expand(e.rule, first.second, true)
	for fires, ok := fixed.next(max(first.second, -70*366*civil.DaySeconds)); ok && fires.at < tableEnd+civil.DaySeconds*366 && len(list) <= maxOnsets; fires, ok = fixed.next(fires.at) {
		list = append(list, onset{fires.at, from, to})
	}
	f.onsetsRead += len(list)
	return list
}

// offset reads +HHMM or +HHMMSS.
func (f *icalFile) offset(node *ics.Component, name string) (int64, bool) {
	line, ok := node.Line(name)
	if !ok {
		return 0, false
	}
	digits := strings.TrimLeft(line.Value, "+-")
	n, err := decimal(digits)
	if err != nil || len(digits) != 4 && len(digits) != 6 || len(line.Value) != len(digits)+1 {
		f.fault(line, "is not an offset from UTC; write it like +0100")
		return 0, false
	}
	if len(digits) == 4 {
		n *= 100
	}
	seconds := int64(n/10000)*civil.HourSeconds + int64(n/100%100)*civil.MinuteSeconds + int64(n%100)
	if seconds >= civil.DaySeconds {
		f.fault(line, "is more than a day from UTC; write it like +0100")
		return 0, false
	}
	if line.Value[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}
