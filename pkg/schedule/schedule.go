// Package schedule says when, about time alone: slots of cron, RRULE and at;
// windows, exclusions and calendars; timelines that are permissive or
// restrictive at every instant; and the verdicts that follow from them.
//
// It is plain Go: instants are passed in, nothing is read but the zone data it
// carries, and one answer follows from the same values every time.
package schedule

import (
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/rfc3339"
)

// Spec is one schedule as written in a document: exactly one of Cron, RRule and
// At. DTStart and ExDate belong to RRule. Timezone defaults to UTC. Jitter is a
// duration such as "10m".
type Spec struct {
	Cron     string   `json:"cron,omitempty"`
	RRule    string   `json:"rrule,omitempty"`
	At       string   `json:"at,omitempty"`
	Timezone string   `json:"timezone,omitempty"`
	DTStart  string   `json:"dtstart,omitempty"`
	ExDate   []string `json:"exdate,omitempty"`
	Jitter   string   `json:"jitter,omitempty"`
}

// Schedule is a Spec that was understood. It is immutable and safe for
// concurrent use.
type Schedule struct {
	zone     *zone
	clock    clock // nil for a schedule that runs once
	once     int64 // at this instant
	realTime bool  // hours cover all 24: fires by instants, see nextRealTime
	dense    bool  // a rule that names several seconds of a minute
	skip     exceptions
	until    int64 // last instant at which it may fire
	jitter   time.Duration
}

// clock says at which wall-clock times something happens, in any zone.
type clock interface {
	Next(local int64) (int64, bool)     // the first at or after local
	Previous(local int64) (int64, bool) // the last at or before local
	Steps() int                         // see civil.Wall
}

// Parse reads a schedule. The error joins one *FieldError for every fault; a
// schedule that can never fire is one.
func Parse(s Spec) (*Schedule, error) {
	var all faults
	schedule := &Schedule{until: civil.Never}
	zone, err := loadZone(s.Timezone)
	all.join("", err)
	schedule.zone = zone
	schedule.jitter, err = parseJitter(s.Jitter)
	all.join("", err)
	all.join("", s.form())
	if all.err() == nil {
		all.join("", schedule.read(s))
	} else if s.form() == nil { // tell the other faults too
		all.join("", (&Schedule{zone: mustUTC(), until: civil.Never}).read(s))
	}
	if err := all.err(); err != nil {
		return nil, err
	}
	return schedule, nil
}

func mustUTC() *zone {
	utc, err := loadZone("UTC")
	if err != nil {
		panic(err) // the embedded archive has UTC, as the tests show
	}
	return utc
}

// form checks which fields are there.
func (s Spec) form() error {
	var all faults
	var given []string
	for _, field := range []struct{ name, value string }{{"cron", s.Cron}, {"rrule", s.RRule}, {"at", s.At}} {
		if field.value != "" {
			given = append(given, field.name)
		}
	}
	switch len(given) {
	case 0:
		all.add("cron", "", "is missing; write one of cron, rrule and at")
	case 1:
	default:
		all.add(given[1], "", "stands beside %s; write one of cron, rrule and at, and further schedules as entries of their own", given[0])
	}
	if s.RRule == "" && s.DTStart != "" {
		all.add("dtstart", s.DTStart, "belongs to rrule; take it away, or write the schedule as an rrule")
	}
	if s.RRule == "" && len(s.ExDate) > 0 {
		all.add("exdate", s.ExDate[0], "belongs to rrule; take it away, or write the schedule as an rrule")
	}
	return all.err()
}

func (s *Schedule) read(spec Spec) error {
	switch {
	case spec.Cron != "":
		return s.readCron(spec.Cron)
	case spec.At != "":
		return s.readAt(spec.At)
	}
	return s.readRRule(spec)
}

func (s *Schedule) readCron(text string) error {
	cron, err := parseCron(text)
	if err != nil {
		return err
	}
	s.clock, s.realTime = cron, cron.Times.Hours == civil.EveryHour
	if _, ok := s.next(beginningOfSearch); !ok {
		return &FieldError{Field: "cron", Value: text, Message: "can never fire: no month it names has such a day"}
	}
	return nil
}

func (s *Schedule) readAt(text string) error {
	at, fault := rfc3339.Parse(text)
	if fault != "" {
		return &FieldError{Field: "at", Value: text, Message: fault}
	}
	s.once = at
	return nil
}

// beginningOfSearch is 1969-12-31T00:00Z, from where validation looks whether a
// schedule without a beginning ever fires.
const beginningOfSearch = -civil.DaySeconds

func parseJitter(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	jitter, err := parseDuration(text)
	if err != nil || jitter < 0 {
		return 0, &FieldError{Field: "jitter", Value: text, Message: `is not a duration of zero or more; write it like "90s", "10m" or "1h30m"`}
	}
	return jitter, nil
}

func parseDuration(text string) (time.Duration, error) {
	return time.ParseDuration(strings.TrimSpace(text))
}

// Jitter is the bound below which the start of a slot is delayed; see the
// function of that name for a plan's own delay.
func (s *Schedule) Jitter() time.Duration { return s.jitter }

// Zone is the IANA name of the schedule's time zone.
func (s *Schedule) Zone() string { return s.zone.name }

// Location is the schedule's time zone.
func (s *Schedule) Location() *time.Location { return s.zone.location }

// WithinMinute says whether two of its slots may lie nearer together than a minute.
func (s *Schedule) WithinMinute() bool { return s.dense }

// Next is the first slot strictly after an instant; false when there is none
// ever.
func (s *Schedule) Next(after time.Time) (Slot, bool) {
	fires, ok := s.next(after.Unix())
	if !ok {
		return Slot{}, false
	}
	return s.slot(fires), true
}

// Last is the last slot at or before an instant; false when there is none.
func (s *Schedule) Last(until time.Time) (Slot, bool) {
	fired, ok := s.last(until.Unix())
	if !ok {
		return Slot{}, false
	}
	return s.slot(fired), true
}

// last is the last firing. Of several wall-clock times that one gap moves to the
// same instant it is the first, as for next.
func (s *Schedule) last(until int64) (firing, bool) {
	fired, ok := s.previous(until)
	if !ok {
		return firing{}, false
	}
	if first, ok := s.next(fired.at - 1); ok && first.at == fired.at {
		return first, true
	}
	return fired, true
}

// NextTime is the instant of Next, without the words; it does not allocate.
func (s *Schedule) NextTime(after time.Time) (time.Time, bool) {
	fires, ok := s.next(after.Unix())
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(fires.at, 0).UTC(), true
}

func (s *Schedule) slot(fires firing) Slot {
	var wall [len("2006-01-02T15:04:05-07:00")]byte
	return Slot{
		At:   time.Unix(fires.at, 0).UTC(),
		Wall: string(appendWall(wall[:0], fires.wall, fires.offset)),
		Zone: s.zone.name,
		Note: fires.note,
	}
}

// next works in whole seconds: what is after a fraction of a second is after
// the second too.
func (s *Schedule) next(after int64) (firing, bool) {
	if after >= civil.LastSecond {
		return firing{}, false
	}
	after = max(after, civil.FirstSecond)
	var fires firing
	var ok bool
	switch {
	case s.clock == nil:
		fires, ok = s.nextOnce(after)
	case s.realTime:
		fires, ok = s.nextRealTime(after)
	default:
		fires, ok = s.nextOnWall(after)
	}
	return fires, ok && fires.at <= s.until
}

func (s *Schedule) nextOnce(after int64) (firing, bool) {
	p := s.zone.at(s.once)
	return firing{at: s.once, wall: s.once + p.offset, offset: p.offset}, s.once > after
}

// nextOnWall fires at wall-clock times: those that clocks skip at the end of
// the gap, those that clocks show twice at the first.
func (s *Schedule) nextOnWall(after int64) (firing, bool) {
	return s.nextFromWall(s.zone.firstWallAfter(after))
}

func (s *Schedule) nextFromWall(from int64) (firing, bool) {
	for {
		wall, ok := s.clock.Next(from)
		if !ok {
			return firing{}, false
		}
		p := s.zone.showing(wall)
		if !p.dropsDay(wall) && !s.skip.has(wall, p.instant(wall)) {
			return p.firing(wall), true
		}
		from = wall + 1
	}
}

func (p period) firing(wall int64) firing {
	fires := firing{at: p.instant(wall), wall: wall, offset: p.offset}
	switch {
	case p.skips(wall):
		fires.offset, fires.note = p.before, NoteGap
	case p.twice(fires.at):
		fires.note = NoteOverlap
	}
	return fires
}

// nextRealTime fires whenever clocks show a time: twice in an overlap, never in
// a gap.
func (s *Schedule) nextRealTime(after int64) (firing, bool) {
	for from := after + 1; ; {
		p := s.zone.at(from)
		wall, ok := s.clock.Next(from + p.offset)
		switch {
		case ok && (p.end == civil.Never || wall-p.offset < p.end):
			if s.skip.has(wall, wall-p.offset) {
				from = wall - p.offset + 1
				continue
			}
			return p.firing(wall), true
		case p.end == civil.Never, !ok && p.after >= p.offset:
			return firing{}, false
		}
		from = p.end
	}
}

// previous is the last slot at or before an instant.
func (s *Schedule) previous(until int64) (firing, bool) {
	until = min(until, s.until, civil.LastSecond)
	if until < civil.FirstSecond {
		return firing{}, false
	}
	switch {
	case s.clock == nil:
		fires, _ := s.nextOnce(until)
		return fires, s.once <= until
	case s.realTime:
		return s.previousRealTime(until)
	}
	return s.previousFromWall(s.zone.firstWallAfter(until) - 1)
}

func (s *Schedule) previousFromWall(until int64) (firing, bool) {
	if s.until < civil.LastSecond {
		until = min(until, s.zone.firstWallAfter(s.until)-1)
	}
	for {
		wall, ok := s.clock.Previous(until)
		if !ok {
			return firing{}, false
		}
		p := s.zone.showing(wall)
		if !p.dropsDay(wall) && !s.skip.has(wall, p.instant(wall)) {
			return p.firing(wall), true
		}
		until = wall - 1
	}
}

func (s *Schedule) previousRealTime(until int64) (firing, bool) {
	for {
		p := s.zone.at(until)
		wall, ok := s.clock.Previous(until + p.offset)
		switch {
		case ok && (p.start == civil.Beginning || wall-p.offset >= p.start):
			if !s.skip.has(wall, wall-p.offset) {
				return p.firing(wall), true
			}
			until = wall - p.offset - 1
		case p.start == civil.Beginning:
			return firing{}, false
		default:
			until = p.start - 1
		}
	}
}
