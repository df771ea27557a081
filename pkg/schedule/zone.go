package schedule

import (
	"archive/zip"
	_ "embed" // the zone archive
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"
	"time"
)

//go:generate go run ./internal/zonegen

//go:embed zoneinfo.zip
var zoneArchive string

// zones is the embedded archive, indexed on first use, with the zones that were
// asked for. It is a memo of constant data: nothing that is put into it can
// change what anybody reads.
var zones = sync.OnceValue(openArchive) //nolint:gochecknoglobals // memo of embedded constant data

// ZoneVersion is the IANA release of the embedded zone data, such as "2025c".
func ZoneVersion() string { return zoneVersion }

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
func ZoneNames() []string {
	return append([]string(nil), zones().names...)
}

type archive struct {
	names  []string
	files  map[string]*zip.File
	loaded sync.Map // name → *zone
}

func openArchive() *archive {
	reader, err := zip.NewReader(strings.NewReader(zoneArchive), int64(len(zoneArchive)))
	if err != nil {
		panic(fmt.Sprintf("the embedded zone archive is unreadable: %v", err)) // cannot happen in a build that passed its tests
	}
	a := &archive{files: make(map[string]*zip.File, len(reader.File))}
	for _, file := range reader.File {
		if isZoneName(file.Name) {
			a.files[file.Name] = file
			a.names = append(a.names, file.Name)
		}
	}
	sort.Strings(a.names)
	return a
}

// isZoneName leaves out what is in some archives without being a place: a
// schedule in Factory time or in leap-second time is a mistake.
func isZoneName(name string) bool {
	switch name {
	case "Factory", "Local", "localtime", "posixrules":
		return false
	}
	return !strings.HasSuffix(name, "/") && !strings.HasPrefix(name, "posix/") && !strings.HasPrefix(name, "right/")
}

func loadZone(name string) (*zone, error) {
	if name == "" {
		name = "UTC"
	}
	a := zones()
	if known, ok := a.loaded.Load(name); ok {
		return known.(*zone), nil
	}
	z, err := a.read(name)
	if err != nil {
		return nil, err
	}
	kept, _ := a.loaded.LoadOrStore(name, z)
	return kept.(*zone), nil
}

func (a *archive) read(name string) (*zone, error) {
	file, ok := a.files[name]
	if !ok {
		return nil, a.unknown(name)
	}
	reader, err := file.Open()
	if err != nil {
		return nil, fmt.Errorf("open zone %s: %w", name, err)
	}
	data, err := io.ReadAll(reader)
	if err := errors.Join(err, reader.Close()); err != nil {
		return nil, fmt.Errorf("read zone %s: %w", name, err)
	}
	location, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		return nil, fmt.Errorf("decode zone %s: %w", name, err)
	}
	if name == "UTC" {
		location = time.UTC
	}
	return newZone(name, location), nil
}

func (a *archive) unknown(name string) error {
	message := "is not a time zone of the IANA database " + zoneVersion
	if near := a.nearest(name); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, " or ") + "?"
	} else {
		message += `; write an IANA name such as "Europe/Berlin" or "UTC"`
	}
	return &FieldError{Field: "timezone", Value: name, Message: message}
}

// nearest finds up to three names that differ from name by case, by a missing
// region, or by few letters.
func (a *archive) nearest(name string) []string {
	type candidate struct {
		name string
		far  int
	}
	wanted := plainZoneName(name)
	if wanted == "" || len(wanted) > 64 {
		return nil
	}
	var near []candidate
	for _, known := range a.names {
		far := editDistance(wanted, plainZoneName(known))
		if city := plainZoneName(known[strings.LastIndexByte(known, '/')+1:]); city != plainZoneName(known) {
			far = min(far, 1+editDistance(wanted, city))
		}
		if far <= 1+len(wanted)/5 {
			near = append(near, candidate{known, far})
		}
	}
	sort.SliceStable(near, func(i, j int) bool { return near[i].far < near[j].far })
	var names []string
	for _, c := range near {
		if len(names) == 3 || c.far > near[0].far {
			break
		}
		names = append(names, c.name)
	}
	return names
}

func plainZoneName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' {
			return '_'
		}
		return r
	}, strings.ToLower(strings.TrimSpace(name)))
}

// editDistance counts the letters to insert, delete, replace or swap with the
// neighbour.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
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
	start := int64(beginning)
	for {
		_, offset := at.Zone()
		_, end := at.ZoneBounds()
		if end.IsZero() || start >= tableEnd {
			z.add(start, never, int64(offset))
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
	local := int64(never)
	if end != never {
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
		shift := ((instant-tableEnd)/cycleSeconds + 1) * cycleSeconds
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
		shift := ((local-tableEnd)/cycleSeconds + 1) * cycleSeconds
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
	p := period{start: z.starts[i], end: never, offset: z.offsets[i], before: z.offsets[i], after: z.offsets[i]}
	if i > 0 {
		p.before = z.offsets[i-1]
	}
	if i+1 < len(z.starts) {
		p.end, p.after = z.starts[i+1], z.offsets[i+1]
	}
	return p
}

func (p period) later(shift int64) period {
	if p.start != beginning {
		p.start += shift
	}
	if p.end != never {
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
	if p.start != beginning && local-p.offset < p.start {
		return p.start
	}
	return local - p.offset
}

// skips tells whether clocks jump over local when the period begins.
func (p period) skips(local int64) bool {
	return p.start != beginning && local-p.offset < p.start
}

// dropsDay tells whether the whole day of local is missing from the calendar,
// as 2011-12-30 is in Apia.
func (p period) dropsDay(local int64) bool {
	if p.start == beginning || p.offset-p.before < daySeconds {
		return false
	}
	midnight := floorDiv(local, daySeconds) * daySeconds
	return midnight >= p.start+p.before && midnight+daySeconds <= p.start+p.offset
}

// twice tells whether clocks show the time of an instant of this period again
// after it, or have shown it before.
func (p period) twice(instant int64) bool {
	local := instant + p.offset
	return p.end != never && local >= p.end+p.after || p.start != beginning && local < p.start+p.before
}

// unambiguousFrom is when clocks begin to show what they have not shown before the
// period.
func (p period) unambiguousFrom() int64 {
	if p.start == beginning {
		return p.start
	}
	return p.start + max(0, p.before-p.offset)
}

// firstWallAfter is the earliest wall-clock time whose instant is after the
// given one.
func (z *zone) firstWallAfter(instant int64) int64 {
	p := z.at(instant + 1)
	local := instant + 1 + p.offset
	if p.start == beginning {
		return local
	}
	if p.start == instant+1 {
		return p.start + p.before // all of a gap fires at its end
	}
	return max(local, p.start+p.before) // the second pass was fired in the first
}
