package schedule

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// cronField is one of the five fields: what it is called, what it may hold.
type cronField struct {
	name      string
	low, high int
	names     []string // names[0] stands for low
}

func cronFields() [5]cronField {
	return [5]cronField{
		{name: "minute", low: 0, high: 59},
		{name: "hour", low: 0, high: 23},
		{name: "day of month", low: 1, high: 31},
		{name: "month", low: 1, high: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		{name: "day of week", low: 0, high: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

const (
	cronMinute = iota
	cronHour
	cronMonthday
	cronMonth
	cronWeekday
)

// parseCron reads five fields or a descriptor the way CronJob does, with Sunday
// as 0 or 7, and says what to write instead of what it refuses.
func parseCron(text string) (*civil.Wall, error) {
	expression, err := cronExpression(strings.TrimSpace(text))
	if err != nil {
		return nil, &FieldError{Field: "cron", Value: text, Message: err.Error()}
	}
	parts := strings.Fields(expression)
	if len(parts) != 5 {
		return nil, &FieldError{Field: "cron", Value: text, Message: fmt.Sprintf(
			"has %d fields; write five: minute hour day-of-month month day-of-week, such as \"0 2 * * 6\"", len(parts))}
	}
	var sets [5]uint64
	var all faults
	for i, field := range cronFields() {
		set, err := field.parse(parts[i])
		if err != nil {
			all.add("cron", text, "%s", err)
		}
		sets[i] = set
	}
	if err := all.err(); err != nil {
		return nil, err
	}
	return cronClock(sets), nil
}

// cronExpression takes descriptors apart and refuses the forms that hide a zone
// or an interval in a cron line.
func cronExpression(text string) (string, error) {
	switch {
	case text == "":
		return "", fmt.Errorf("is empty; write five fields such as \"0 2 * * 6\"")
	case strings.HasPrefix(text, "TZ="), strings.HasPrefix(text, "CRON_TZ="):
		_, rest, _ := strings.Cut(text, "=")
		zone, rest, _ := strings.Cut(rest, " ")
		return "", fmt.Errorf("a zone inside cron is not read; write timezone: %q and cron: %q", zone, strings.TrimSpace(rest))
	case strings.HasPrefix(text, "@every"):
		return "", fmt.Errorf("@every counts from the start of a program; write %s", insteadOfEvery(text))
	case !strings.HasPrefix(text, "@"):
		return text, nil
	}
	switch text {
	case "@yearly", "@annually":
		return "0 0 1 1 *", nil
	case "@monthly":
		return "0 0 1 * *", nil
	case "@weekly":
		return "0 0 * * 0", nil
	case "@daily", "@midnight":
		return "0 0 * * *", nil
	case "@hourly":
		return "0 * * * *", nil
	}
	return "", fmt.Errorf("is not known; write @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually or five fields")
}

func insteadOfEvery(text string) string {
	every, err := parseDuration(strings.TrimSpace(strings.TrimPrefix(text, "@every")))
	minutes := int(every.Minutes())
	switch {
	case err != nil || minutes < 1:
		return `cron: "*/15 * * * *" or rrule: "FREQ=MINUTELY;INTERVAL=15"`
	case minutes < 60 && 60%minutes == 0:
		return fmt.Sprintf(`cron: "*/%d * * * *" or rrule: "FREQ=MINUTELY;INTERVAL=%d"`, minutes, minutes)
	case minutes%1440 == 0:
		return fmt.Sprintf(`rrule: "FREQ=DAILY;INTERVAL=%d"`, minutes/1440)
	case minutes%60 == 0:
		return fmt.Sprintf(`rrule: "FREQ=HOURLY;INTERVAL=%d"`, minutes/60)
	}
	return fmt.Sprintf(`rrule: "FREQ=MINUTELY;INTERVAL=%d"`, minutes)
}

// starBit marks a field that was left open with "*", as opposed to one that
// lists every value: it decides whether day of month and day of week mean
// either or both.
const starBit = uint64(1) << 63

func (f cronField) parse(text string) (uint64, error) {
	var set uint64
	for _, item := range strings.Split(text, ",") {
		if item == "" {
			return 0, fmt.Errorf("%s %q has an empty item; write %q", f.name, text, strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ',' }), ","))
		}
		bits, err := f.item(item)
		if err != nil {
			return 0, err
		}
		set |= bits
	}
	return set, nil
}

// item reads a value, a range, or "*", each with an optional step.
func (f cronField) item(text string) (uint64, error) {
	span, stepText, stepped := strings.Cut(text, "/")
	step, err := f.step(text, stepText, stepped)
	if err != nil {
		return 0, err
	}
	if span == "*" || span == "?" {
		set := everyStep(f.low, f.top(), step)
		if step == 1 {
			set |= starBit
		}
		return f.fold(set), nil
	}
	lowText, highText, ranged := strings.Cut(span, "-")
	low, err := f.value(text, lowText)
	if err != nil {
		return 0, err
	}
	high := low
	switch {
	case ranged:
		high, err = f.value(text, highText)
	case stepped:
		high = max(low, f.top())
	}
	if err != nil {
		return 0, err
	}
	if f.isWeekday() && high == 0 && low > 0 {
		high = 7 // sun at the end of a range
	}
	if low > high {
		return 0, fmt.Errorf("%s %q runs backwards; write %s", f.name, text, f.forwards(low, high))
	}
	return f.fold(everyStep(low, high, step)), nil
}

func (f cronField) isWeekday() bool { return f.high == 7 }

// top is the last value that "*" stands for: 7 is another name for Sunday.
func (f cronField) top() int {
	if f.isWeekday() {
		return 6
	}
	return f.high
}

func (f cronField) fold(set uint64) uint64 {
	if f.isWeekday() && set>>7&1 != 0 {
		set = set&^(1<<7) | 1
	}
	return set
}

func (f cronField) forwards(low, high int) string {
	if f.isWeekday() && low == 7 {
		return fmt.Sprintf("\"0-%d\"", high)
	}
	if low == f.top() {
		return fmt.Sprintf("\"%d,%d-%d\"", low, f.low, high)
	}
	return fmt.Sprintf("\"%d-%d,%d-%d\"", low, f.top(), f.low, high)
}

func (f cronField) step(text, stepText string, stepped bool) (int, error) {
	if !stepped {
		return 1, nil
	}
	step, err := decimal(stepText)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s %q: the step is not a number; write one from 1 to %d", f.name, text, f.high)
	case step < 1:
		return 0, fmt.Errorf("%s %q: a step is at least 1", f.name, text)
	case step > f.high:
		return 0, fmt.Errorf("%s %q: the step is beyond the field's range and would match once; steps go from 1 to %d%s", f.name, text, f.high, f.coarser(step))
	}
	return step, nil
}

// coarser says how to write an interval that does not fit the field.
func (f cronField) coarser(step int) string {
	switch f.name {
	case "minute":
		return fmt.Sprintf(`; for every %d minutes write rrule: "FREQ=MINUTELY;INTERVAL=%d"`, step, step)
	case "hour":
		return fmt.Sprintf(`; for every %d hours write rrule: "FREQ=HOURLY;INTERVAL=%d"`, step, step)
	case "day of month", "day of week":
		return fmt.Sprintf(`; for every %d days write rrule: "FREQ=DAILY;INTERVAL=%d"`, step, step)
	}
	return fmt.Sprintf(`; for every %d months write rrule: "FREQ=MONTHLY;INTERVAL=%d"`, step, step)
}

func (f cronField) value(text, value string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(name, value) {
			return f.low + i, nil
		}
	}
	n, err := decimal(value)
	if err != nil {
		return 0, fmt.Errorf("%s %q: %q is not a value; %s", f.name, text, value, f.allowed(value))
	}
	if n < f.low || n > f.high {
		return 0, fmt.Errorf("%s %q: %d is out of range; %s", f.name, text, n, f.allowed(value))
	}
	return n, nil
}

func (f cronField) allowed(value string) string {
	for _, name := range f.names {
		if len(value) > 3 && strings.EqualFold(value[:3], name) {
			return fmt.Sprintf("write %q", strings.ToUpper(name))
		}
	}
	if len(f.names) > 0 {
		return fmt.Sprintf("write %d to %d or %s to %s", f.low, f.high, strings.ToUpper(f.names[0]), strings.ToUpper(f.names[len(f.names)-1]))
	}
	return fmt.Sprintf("write %d to %d", f.low, f.high)
}

func everyStep(low, high, step int) uint64 {
	var set uint64
	for i := low; i <= high; i += step {
		set |= 1 << i
	}
	return set
}

// decimal reads digits only: strconv also takes signs and underscores.
func decimal(text string) (int, error) {
	if text == "" || len(text) > 9 || strings.Trim(text, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return strconv.Atoi(text)
}

// cronClock combines the five sets. A field with a star leaves the other of day
// of month and day of week to decide; without any star, either will do.
func cronClock(sets [5]uint64) *civil.Wall {
	clock := &civil.Wall{
		Days:  civil.Days{Months: uint16(sets[cronMonth]) & civil.EveryMonth, Either: true},
		Times: civil.Daytimes{Hours: uint32(sets[cronHour]) & civil.EveryHour, Minutes: sets[cronMinute] & civil.EveryMinute, Seconds: 1},
	}
	if sets[cronMonthday]&starBit == 0 {
		clock.Days.Monthdays = uint32(sets[cronMonthday])
	}
	if sets[cronWeekday]&starBit == 0 {
		clock.Days.Weekdays = uint8(sets[cronWeekday])
	}
	if clock.Days.Monthdays == civil.EveryMonthday || clock.Days.Weekdays == civil.EveryWeekday {
		clock.Days.Monthdays, clock.Days.Weekdays = 0, 0 // all of either is every day
	}
	if clock.Days.Months == civil.EveryMonth {
		clock.Days.Months = 0
	}
	return clock
}
