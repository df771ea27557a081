package schedule

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// rrule is an RFC 5545 recurrence rule as written. Lists are empty where the
// part is absent.
type rrule struct {
	frequency string
	interval  int64
	count     int
	until     *stamp
	wkst      int

	month, monthday, yearday, weekno []int
	hour, minute, second, setpos     []int
	weekdays                         uint8              // BYDAY without a number
	nth                              []civil.NthWeekday // BYDAY with a number
}

// maxCount bounds COUNT, which is counted off when a rule is read. A guess: a
// hundred thousand days are 274 years.
const maxCount = 100_000

// maxCountOfPositions bounds COUNT beside BYSETPOS, of which each step goes over a whole year.
const maxCountOfPositions = 1000

// mostFaults is how many faults of one rule are told.
const mostFaults = 10

// rulePart says how one list part is bounded.
type rulePart struct {
	list      func(*rrule) *[]int
	low, high int
	fromEnd   bool // negative numbers count from the end
}

func ruleParts() map[string]rulePart {
	return map[string]rulePart{
		"BYMONTH":    {func(r *rrule) *[]int { return &r.month }, 1, 12, false},
		"BYMONTHDAY": {func(r *rrule) *[]int { return &r.monthday }, 1, 31, true},
		"BYYEARDAY":  {func(r *rrule) *[]int { return &r.yearday }, 1, 366, true},
		"BYWEEKNO":   {func(r *rrule) *[]int { return &r.weekno }, 1, 53, true},
		"BYHOUR":     {func(r *rrule) *[]int { return &r.hour }, 0, 23, false},
		"BYMINUTE":   {func(r *rrule) *[]int { return &r.minute }, 0, 59, false},
		"BYSECOND":   {func(r *rrule) *[]int { return &r.second }, 0, 59, false},
		"BYSETPOS":   {func(r *rrule) *[]int { return &r.setpos }, 1, 366, true},
	}
}

// parseRRule reads the text of a rule and checks its parts one by one and
// against each other.
func parseRRule(text string) (*rrule, error) {
	var all faults
	rule := &rrule{interval: 1, wkst: 1}
	body := strings.ToUpper(strings.TrimSpace(text))
	body = strings.TrimPrefix(body, "RRULE:")
	if strings.ContainsAny(body, "\n\r") || strings.HasPrefix(body, "DTSTART") {
		return nil, &FieldError{Field: "rrule", Value: text, Message: "is more than a rule; write one line, with DTSTART and EXDATE in the fields dtstart and exdate"}
	}
	shown := text
	if len(shown) > 500 {
		shown = shown[:500] + "…"
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(body, ";") {
		if len(all) == mostFaults {
			break
		}
		name, value, ok := strings.Cut(part, "=")
		switch {
		case !ok || value == "":
			all.add("rrule", shown, "part %q is not NAME=VALUE; write it like FREQ=WEEKLY;BYDAY=SA;BYHOUR=2", part)
		case seen[name]:
			all.add("rrule", shown, "%s is there twice; write it once, with a list", name)
		default:
			if fault := rule.readPart(name, value); fault != "" {
				all.add("rrule", shown, "%s", fault)
			}
		}
		seen[name] = true
	}
	if !seen["FREQ"] {
		all.add("rrule", shown, "FREQ is missing; write one of %s", frequencies)
	}
	if all.err() == nil {
		for _, fault := range rule.conflicts() {
			all.add("rrule", shown, "%s", fault)
		}
	}
	return rule, all.err()
}

const frequencies = "MINUTELY, HOURLY, DAILY, WEEKLY, MONTHLY, YEARLY"

func (r *rrule) readPart(name, value string) string {
	if part, ok := ruleParts()[name]; ok {
		list, fault := part.read(name, value)
		*part.list(r) = list
		return fault
	}
	switch name {
	case "FREQ":
		return r.readFrequency(value)
	case "INTERVAL":
		return r.readInterval(value)
	case "COUNT":
		n, err := decimal(value)
		if err != nil || n < 1 || n > maxCount {
			return fmt.Sprintf("COUNT=%s: write 1 to %d, or UNTIL", value, maxCount)
		}
		r.count = n
	case "UNTIL":
		until, fault := parseStamp(value)
		if fault != "" {
			return "UNTIL=" + value + ": " + fault
		}
		r.until = &until
	case "WKST":
		day, ok := icalWeekday(value)
		if !ok {
			return fmt.Sprintf("WKST=%s: write one of MO, TU, WE, TH, FR, SA, SU", value)
		}
		r.wkst = day
	case "BYDAY":
		return r.readWeekdays(value)
	default:
		return unsupportedPart(name)
	}
	return ""
}

func unsupportedPart(name string) string {
	switch name {
	case "BYEASTER":
		return "BYEASTER is not part of RFC 5545 and not supported; write the dates, as rrules with BYMONTH and BYMONTHDAY or as a Calendar"
	case "RSCALE", "SKIP":
		return name + " is not supported: dates are Gregorian, and a month without the date is skipped; leave it out"
	case "DTSTART", "EXDATE", "RDATE", "TZID":
		return name + " is not part of a rule; write it in the field " + strings.ToLower(strings.Replace(name, "TZID", "timezone", 1))
	}
	return fmt.Sprintf("%s is not a part of a rule; write FREQ, INTERVAL, COUNT, UNTIL, WKST, BYMONTH, BYWEEKNO, BYYEARDAY, BYMONTHDAY, BYDAY, BYHOUR, BYMINUTE, BYSECOND or BYSETPOS", name)
}

func (r *rrule) readFrequency(value string) string {
	switch value {
	case "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY":
		r.frequency = value
		return ""
	case "SECONDLY":
		return "FREQ=SECONDLY is not supported; write FREQ=MINUTELY, the shortest there is"
	}
	return fmt.Sprintf("FREQ=%s: write one of %s", value, frequencies)
}

func (r *rrule) readInterval(value string) string {
	n, err := decimal(value)
	if err != nil || n < 1 {
		return fmt.Sprintf("INTERVAL=%s: write 1 or more; without INTERVAL it is 1", value)
	}
	r.interval = int64(n)
	return ""
}

func (p rulePart) read(name, value string) ([]int, string) {
	var list []int
	taken := map[int]bool{}
	for item := range strings.SplitSeq(value, ",") {
		sign, digits := 1, strings.TrimPrefix(item, "+")
		if p.fromEnd && strings.HasPrefix(item, "-") {
			sign, digits = -1, item[1:]
		}
		n, err := decimal(digits)
		if err != nil || n < p.low || n > p.high {
			return nil, fmt.Sprintf("%s=%s: write %s", name, item, p.allowed())
		}
		if !taken[sign*n] {
			taken[sign*n] = true
			list = append(list, sign*n)
		}
	}
	return list, ""
}

func (p rulePart) allowed() string {
	if p.fromEnd {
		return fmt.Sprintf("%d to %d, or -%d to -%d counted from the end", p.low, p.high, p.low, p.high)
	}
	return fmt.Sprintf("%d to %d", p.low, p.high)
}

func icalWeekday(text string) (int, bool) {
	for i, name := range [7]string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"} {
		if name == text {
			return i, true
		}
	}
	return 0, false
}

func (r *rrule) readWeekdays(value string) string {
	for item := range strings.SplitSeq(value, ",") {
		day, ok := icalWeekday(item[max(0, len(item)-2):])
		if !ok {
			return fmt.Sprintf("BYDAY=%s: write MO, TU, WE, TH, FR, SA, SU, in MONTHLY and YEARLY also numbered, such as 1MO or -1FR", item)
		}
		number := strings.TrimPrefix(item[:len(item)-2], "+")
		if number == "" {
			r.weekdays |= 1 << day
			continue
		}
		n, err := decimal(strings.TrimPrefix(number, "-"))
		if err != nil || n < 1 || n > 53 {
			return fmt.Sprintf("BYDAY=%s: number weekdays 1 to 53, or -1 to -53 counted from the end", item)
		}
		if strings.HasPrefix(number, "-") {
			n = -n
		}
		if one := (civil.NthWeekday{N: n, Weekday: day}); !slices.Contains(r.nth, one) { // at most 742
			r.nth = append(r.nth, one)
		}
	}
	return ""
}

// conflicts checks the parts against each other, by the table in RFC 5545,
// 3.3.10.
func (r *rrule) conflicts() []string {
	var found []string
	refuse := func(when bool, format string, args ...any) {
		if when {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	yearly, monthly := r.frequency == "YEARLY", r.frequency == "MONTHLY"
	numbered := len(r.nth) > 0
	refuse(r.count > maxCountOfPositions && len(r.setpos) > 0, "COUNT=%d is too much beside BYSETPOS; write 1 to %d, or UNTIL", r.count, maxCountOfPositions)
	refuse(r.count > 0 && r.until != nil, "COUNT and UNTIL are both there; write one")
	refuse(numbered && !yearly && !monthly, "a numbered weekday needs a month or a year to count in; write FREQ=MONTHLY, or BYDAY without the number")
	refuse(numbered && len(r.weekno) > 0, "a numbered weekday cannot be combined with BYWEEKNO; write BYDAY without the number")
	refuse(len(r.weekno) > 0 && !yearly, "BYWEEKNO counts weeks of a year; write FREQ=YEARLY")
	refuse(len(r.weekno) > 0 && yearly && r.weekdays == 0 && !numbered, "BYWEEKNO needs BYDAY: say which days of the week")
	refuse(len(r.yearday) > 0 && (monthly || r.frequency == "WEEKLY" || r.frequency == "DAILY"), "BYYEARDAY cannot be combined with FREQ=%s; write FREQ=YEARLY", r.frequency)
	refuse(len(r.monthday) > 0 && r.frequency == "WEEKLY", "BYMONTHDAY cannot be combined with FREQ=WEEKLY; write FREQ=MONTHLY")
	refuse(len(r.setpos) > 0 && r.subDaily(), "BYSETPOS cannot be combined with FREQ=%s; write the minutes and hours in BYMINUTE and BYHOUR", r.frequency)
	refuse(len(r.setpos) > 0 && !r.hasByPart(), "BYSETPOS picks from other BY parts, and there are none; write for instance BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1")
	if monthly || yearly && len(r.month) > 0 {
		for _, day := range r.nth {
			refuse(day.N > 5 || day.N < -5, "a month has no weekday number %d; write 1 to 5, or -1 to -5 counted from the end", day.N)
		}
	}
	return found
}

func (r *rrule) subDaily() bool { return r.frequency == "HOURLY" || r.frequency == "MINUTELY" }

func (r *rrule) hasByPart() bool {
	return len(r.month)+len(r.monthday)+len(r.yearday)+len(r.weekno)+len(r.hour)+len(r.minute)+len(r.second)+len(r.nth) > 0 || r.weekdays != 0
}

// followsRealTime tells whether the hours of the rule cover all 24. An INTERVAL
// of hours or minutes does, by the letter of the contract; a BYHOUR that leaves
// hours out does not.
func (r *rrule) followsRealTime() bool {
	if len(r.hour) == 0 {
		return r.subDaily()
	}
	return uint32(bitset(r.hour)) == civil.EveryHour
}

func bitset(list []int) uint64 {
	var set uint64
	for _, n := range list {
		set |= 1 << n
	}
	return set
}

// clockFrom expands the rule from a wall-clock beginning, without its bounds.
func (r *rrule) clockFrom(start int64) clock {
	day, second := civil.SplitLocal(start)
	days, times := r.days(day), r.times(second)
	switch {
	case r.subDaily() && r.interval > 1:
		unit := civil.HourSeconds
		if r.frequency == "MINUTELY" {
			unit = civil.MinuteSeconds
		}
		return &civil.Stride{Days: days, Times: times, Unit: unit, Step: unit * r.interval, Anchor: civil.FloorDiv(start, unit) * unit}
	case len(r.setpos) > 0:
		return civil.NewSetpos(days, times, r.setpos)
	}
	return &civil.Wall{Days: days, Times: times}
}

// times fills in from the beginning what the rule does not say.
func (r *rrule) times(start int) civil.Daytimes {
	pick := func(list []int, absent uint64) uint64 {
		if len(list) > 0 {
			return bitset(list)
		}
		return absent
	}
	hours, minutes := uint64(1)<<(start/3600), uint64(1)<<(start/60%60)
	if r.subDaily() {
		hours = uint64(civil.EveryHour)
	}
	if r.frequency == "MINUTELY" {
		minutes = civil.EveryMinute
	}
	return civil.Daytimes{
		Hours:   uint32(pick(r.hour, hours)),
		Minutes: pick(r.minute, minutes),
		Seconds: pick(r.second, 1<<(start%60)),
	}
}

func (r *rrule) days(start int64) civil.Days {
	_, month, dayOfMonth := civil.DateOf(start)
	set := civil.Days{Interval: r.interval, Anchor: start, Wkst: r.wkst, Months: uint16(bitset(r.month)), Weekdays: r.weekdays}
	for _, n := range r.monthday {
		if n > 0 {
			set.Monthdays |= 1 << n
		} else {
			set.FromEnd |= 1 << -n
		}
	}
	dayless := len(r.monthday)+len(r.yearday)+len(r.weekno)+len(r.nth) == 0 && r.weekdays == 0
	switch r.frequency {
	case "YEARLY":
		set.Unit = civil.PerYear
		if dayless {
			set.Monthdays = 1 << dayOfMonth
			if set.Months == 0 {
				set.Months = 1 << month
			}
		}
	case "MONTHLY":
		set.Unit = civil.PerMonth
		if dayless {
			set.Monthdays = 1 << dayOfMonth
		}
	case "WEEKLY":
		set.Unit = civil.PerWeek
		if dayless {
			set.Weekdays = 1 << civil.WeekdayOf(start)
		}
	case "DAILY":
		set.Unit = civil.PerDay
	default:
		set.Interval = 1 // hours and minutes are counted by stride
	}
	r.countInYear(&set)
	return set
}

func (r *rrule) countInYear(set *civil.Days) {
	numberedInYear := r.frequency == "YEARLY" && len(r.month) == 0 && len(r.nth) > 0
	if len(r.yearday)+len(r.weekno) > 0 || numberedInYear {
		numbered := r.nth
		if !numberedInYear {
			numbered = nil
		}
		set.Yearly = civil.NewYearDays(r.yearday, r.weekno, numbered, r.weekdays)
	}
	if numberedInYear {
		set.Weekdays = 0
		return
	}
	for _, day := range r.nth {
		if day.N > 0 {
			set.Numbered[day.N] |= 1 << day.Weekday
		} else {
			set.FromLast[-day.N] |= 1 << day.Weekday
		}
	}
}

// bounded is a clock within a first and a last wall-clock time.
type bounded struct {
	clock       clock
	first, last int64
}

func (b *bounded) Next(local int64) (int64, bool) {
	if local > b.last {
		return 0, false
	}
	found, ok := b.clock.Next(max(local, b.first))
	return found, ok && found <= b.last
}

func (b *bounded) Previous(local int64) (int64, bool) {
	if local < b.first {
		return 0, false
	}
	found, ok := b.clock.Previous(min(local, b.last))
	return found, ok && found >= b.first
}

func (b *bounded) Steps() int { return b.clock.Steps() }

func (s *Schedule) readRRule(spec Spec) error {
	var all faults
	rule, err := parseRRule(spec.RRule)
	all.join("", err)
	start, fault := s.start(spec.DTStart)
	if fault != "" {
		all.add("dtstart", spec.DTStart, "%s", fault)
	}
	skip, err := s.readExDates(spec.ExDate)
	all.join("", err)
	if all.err() == nil && spec.DTStart == "" {
		for _, fault := range rule.needsStart() {
			all.add("rrule", spec.RRule, "%s", fault)
		}
	}
	if err := all.err(); err != nil {
		return err
	}
	s.dense = len(rule.second) > 1
	s.expand(rule, start, spec.DTStart != "")
	s.skip = skip
	if _, ok := s.next(s.beforeFirst(start)); !ok {
		return &FieldError{Field: "rrule", Value: spec.RRule, Message: rule.whyNever(spec)}
	}
	return nil
}

func (s *Schedule) start(text string) (int64, string) {
	if text == "" {
		return 0, ""
	}
	start, fault := parseStamp(text)
	return start.local(s.zone), fault
}

// needsStart says what a rule may not hold when it is counted from 1970.
func (r *rrule) needsStart() []string {
	var found []string
	if r.frequency == "WEEKLY" && r.weekdays == 0 {
		found = append(found, "FREQ=WEEKLY without dtstart needs BYDAY; write for instance BYDAY=SA")
	}
	if r.count > 0 {
		found = append(found, "COUNT without dtstart would count from 1970; write dtstart, or UNTIL")
	}
	return found
}

func (r *rrule) whyNever(spec Spec) string {
	switch {
	case len(spec.ExDate) > 0:
		return "can never fire: there is no such time that exdate leaves"
	case r.until != nil && spec.DTStart != "":
		return "can never fire: there is no such time from dtstart to UNTIL"
	}
	return "can never fire: there is no such time in the 400 years after which the calendar repeats"
}

// expand makes the schedule follow the rule from a wall-clock time, before
// which it is silent if the beginning was given.
func (s *Schedule) expand(rule *rrule, start int64, given bool) {
	limits := &bounded{clock: rule.clockFrom(start), first: civil.Beginning, last: civil.Never}
	if given {
		limits.first = start
	}
	if rule.until != nil {
		if rule.until.zoned {
			s.until = rule.until.second
		} else {
			limits.last = rule.until.lastLocal()
		}
	}
	s.clock, s.realTime = limits, rule.followsRealTime()
	switch {
	case limits.first == civil.Beginning && limits.last == civil.Never:
		s.clock = limits.clock
	case rule.count > 0 && s.realTime:
		s.until = s.countOff(rule.count, s.beforeFirst(start))
	case rule.count > 0:
		limits.last = countOffWall(limits.clock, start, rule.count)
	}
}

// beforeFirst is an instant before anything a rule from start can fire at.
func (s *Schedule) beforeFirst(start int64) int64 {
	return s.zone.instant(start) - civil.DaySeconds
}

// countOff is the instant of the n-th slot after an instant.
func (s *Schedule) countOff(n int, after int64) int64 {
	for ; n > 0; n-- {
		fires, ok := s.next(after)
		if !ok {
			return civil.Never
		}
		after = fires.at
	}
	return after
}

// countOffWall is the n-th time that a clock asks for from a beginning on. COUNT
// counts these, so those that a gap merges are counted one by one.
func countOffWall(c clock, start int64, n int) int64 {
	if wall, ok := c.(*civil.Wall); ok {
		if last, ok := wall.Nth(start, n-1); ok {
			return last
		}
		return civil.Never
	}
	last := start - 1
	for ; n > 0; n-- {
		found, ok := c.Next(last + 1)
		if !ok {
			return civil.Never
		}
		last = found
	}
	return last
}

// exceptions are the EXDATEs: whole days, wall-clock times, instants.
type exceptions struct {
	days, walls, instants []int64
}

func (e *exceptions) has(wall, instant int64) bool {
	return len(e.walls) > 0 && contains(e.walls, wall) ||
		len(e.instants) > 0 && contains(e.instants, instant) ||
		len(e.days) > 0 && contains(e.days, civil.FloorDiv(wall, civil.DaySeconds))
}

func contains(sorted []int64, want int64) bool {
	i := sort.Search(len(sorted), func(i int) bool { return sorted[i] >= want })
	return i < len(sorted) && sorted[i] == want
}

func (s *Schedule) readExDates(list []string) (exceptions, error) {
	var all faults
	var skip exceptions
	for i, text := range list {
		at, fault := parseStamp(text)
		if fault != "" {
			all.add(fmt.Sprintf("exdate[%d]", i), text, "%s", fault)
			continue
		}
		skip.add(at)
	}
	skip.sort()
	return skip, all.err()
}

func (e *exceptions) add(at stamp) {
	switch {
	case at.zoned:
		e.instants = append(e.instants, at.second)
	case at.wholeDay:
		e.days = append(e.days, at.second/civil.DaySeconds)
	default:
		e.walls = append(e.walls, at.second)
	}
}

func (e *exceptions) sort() {
	for _, list := range [][]int64{e.days, e.walls, e.instants} {
		sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	}
}
