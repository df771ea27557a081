package schedule

import (
	"errors"
	"sync"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/zones"
)

// tables are the zones that were asked for, by name. They are a memo of constant data: nothing
// that is put into it can change what anybody reads.
var tables sync.Map //nolint:gochecknoglobals // memo of embedded constant data

// ZoneVersion is the IANA release of the embedded zone data, such as "2025c".
func ZoneVersion() string { return zones.Version }

// LoadZone returns the location of an IANA zone name from the embedded data
// alone; what the machine has in /usr/share/zoneinfo or $ZONEINFO is never
// read. The empty name is UTC. An unknown name is a *FieldError of the field
// "timezone" that suggests the nearest names; Local, Factory, posix/… and
// right/… are unknown.
func LoadZone(name string) (*time.Location, error) {
	z, err := loadZone(name)
	if err != nil {
		return nil, err
	}
	return z.location, nil
}

// ZoneNames lists the names that LoadZone knows, sorted.
func ZoneNames() []string { return zones.Names() }

func loadZone(name string) (*zone, error) {
	if name == "" {
		name = "UTC"
	}
	z, err := zoneByName(name)
	if unknown := (*zones.UnknownError)(nil); errors.As(err, &unknown) {
		return nil, &FieldError{Field: "timezone", Value: name, Message: unknown.Error()}
	}
	return z, err
}

// zoneByName is a zone, or an error that costs nothing until it is printed.
func zoneByName(name string) (*zone, error) {
	if known, ok := tables.Load(name); ok {
		return known.(*zone), nil
	}
	location, err := zones.Load(name)
	if err != nil {
		return nil, err
	}
	kept, _ := tables.LoadOrStore(name, newZone(name, location))
	return kept.(*zone), nil
}

// zone maps wall clocks to instants and back. It holds every change of a zone's
// offset up to the year 2500; the last 400 years of that follow the zone's rule
// for the future, which repeats with the calendar, so later instants are looked
// up 400 years earlier.
type zone struct {
	name     string
	location *time.Location
	starts   []int64 // instants at which an offset begins; starts[0] is the beginning
	ends     []int64 // wall clock at which it ends, read before the change
	offsets  []int64 // seconds east of UTC
}

// tableEnd is 2500-01-01T00:00Z. No zone has a hand-made change after 2100, as
// a test checks, so [2100, 2500) is one full cycle of every zone's rule.
const tableEnd = int64(16725225600)

func newZone(name string, location *time.Location) *zone {
	z := &zone{name: name, location: location}
	at := time.Unix(-1<<40, 0).In(location)
	start := int64(civil.Beginning)
	for {
		_, offset := at.Zone()
		_, end := at.ZoneBounds()
		if end.IsZero() || start >= tableEnd {
			z.add(start, civil.Never, int64(offset))
			return z
		}
		if !end.After(at) { // go's ZoneBounds ends a leap year's last stretch after 365 days
			end = at.Add(24 * time.Hour)
		}
		z.add(start, end.Unix(), int64(offset))
		start, at = end.Unix(), end
	}
}

// add appends a period, or lengthens the last one where only the abbreviation
// or the daylight-saving flag changes.
func (z *zone) add(start, end, offset int64) {
	local := int64(civil.Never)
	if end != civil.Never {
		local = end + offset
	}
	if last := len(z.offsets) - 1; last >= 0 && z.offsets[last] == offset {
		z.ends[last] = local
		return
	}
	z.starts = append(z.starts, start)
	z.offsets = append(z.offsets, offset)
	z.ends = append(z.ends, local)
}

// period is a stretch of time with one offset. start is the beginning and end
// is never where there is no change; before and after are the offsets beyond.
type period struct {
	start, end            int64
	offset, before, after int64
}

// at is the period that contains an instant.
func (z *zone) at(instant int64) period {
	if instant >= tableEnd {
		shift := ((instant-tableEnd)/civil.CycleSeconds + 1) * civil.CycleSeconds
		return z.at(instant - shift).later(shift)
	}
	low, high := 0, len(z.starts)
	for high-low > 1 {
		middle := int(uint(low+high) >> 1)
		if z.starts[middle] <= instant {
			low = middle
		} else {
			high = middle
		}
	}
	return z.period(low)
}

// showing is the first period whose clock still shows local or anything later:
// the period of the first pass in an overlap, the one after it in a gap.
func (z *zone) showing(local int64) period {
	if local >= tableEnd {
		shift := ((local-tableEnd)/civil.CycleSeconds + 1) * civil.CycleSeconds
		return z.showing(local - shift).later(shift)
	}
	low, high := -1, len(z.ends)-1
	for high-low > 1 {
		middle := (low + high) >> 1
		if z.ends[middle] > local {
			high = middle
		} else {
			low = middle
		}
	}
	return z.period(high)
}

func (z *zone) period(i int) period {
	p := period{start: z.starts[i], end: civil.Never, offset: z.offsets[i], before: z.offsets[i], after: z.offsets[i]}
	if i > 0 {
		p.before = z.offsets[i-1]
	}
	if i+1 < len(z.starts) {
		p.end, p.after = z.starts[i+1], z.offsets[i+1]
	}
	return p
}

func (p period) later(shift int64) period {
	if p.start != civil.Beginning {
		p.start += shift
	}
	if p.end != civil.Never {
		p.end += shift
	}
	return p
}

// instant is when a wall clock first shows local, or the first instant after
// the gap when it never does.
func (z *zone) instant(local int64) int64 {
	return z.showing(local).instant(local)
}

func (p period) instant(local int64) int64 {
	if p.start != civil.Beginning && local-p.offset < p.start {
		return p.start
	}
	return local - p.offset
}

// skips tells whether clocks jump over local when the period begins.
func (p period) skips(local int64) bool {
	return p.start != civil.Beginning && local-p.offset < p.start
}

// dropsDay tells whether the whole day of local is missing from the calendar,
// as 2011-12-30 is in Apia.
func (p period) dropsDay(local int64) bool {
	if p.start == civil.Beginning || p.offset-p.before < civil.DaySeconds {
		return false
	}
	midnight := civil.FloorDiv(local, civil.DaySeconds) * civil.DaySeconds
	return midnight >= p.start+p.before && midnight+civil.DaySeconds <= p.start+p.offset
}

// twice tells whether clocks show the time of an instant of this period again
// after it, or have shown it before.
func (p period) twice(instant int64) bool {
	local := instant + p.offset
	return p.end != civil.Never && local >= p.end+p.after || p.start != civil.Beginning && local < p.start+p.before
}

// unambiguousFrom is when clocks begin to show what they have not shown before the
// period.
func (p period) unambiguousFrom() int64 {
	if p.start == civil.Beginning {
		return p.start
	}
	return p.start + max(0, p.before-p.offset)
}

// firstWallAfter is the earliest wall-clock time whose instant is after the
// given one.
func (z *zone) firstWallAfter(instant int64) int64 {
	p := z.at(instant + 1)
	local := instant + 1 + p.offset
	if p.start == civil.Beginning {
		return local
	}
	if p.start == instant+1 {
		return p.start + p.before // all of a gap fires at its end
	}
	return max(local, p.start+p.before) // the second pass was fired in the first
}
