package instant

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Forms describes the times that a command line accepts, for messages.
const Forms = `write it like 2026-12-24T18:00:00Z, 2h, 30d, 08:00, "tomorrow 08:00", "sat 02:00" or "2026-12-24 18:00"`

// Parse parses a time as people write it. A time of day is in the zone; one that a clock change
// skips is the first instant after it, one that occurs twice is the first of the two. A weekday or
// a bare time of day is the next one to come.
func Parse(text string, now time.Time, zone string) (time.Time, error) {
	return parse(text, now, zone, firstAfter)
}

// Past is Parse where only what was makes sense: a duration is before now, and a weekday or a bare
// time of day is the last one that has come. What is given with its date, or as tomorrow, may be in
// the future all the same.
func Past(text string, now time.Time, zone string) (time.Time, error) {
	if d, err := document.ParseDuration(text); err == nil {
		return now.Add(-d.Abs()), nil
	}
	return parse(text, now, zone, lastUntil)
}

// nearest is one of the times of day that recur after some days: date has the first that may be to
// come.
type nearest func(now, date time.Time, days int, on func(date time.Time) (time.Time, error)) (time.Time, error)

func parse(text string, now time.Time, zone string, near nearest) (time.Time, error) {
	text = strings.TrimSpace(text)
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	word := strings.ToLower(text)
	if word == "now" {
		return now, nil
	}
	if d, err := document.ParseDuration(strings.TrimPrefix(word, "in ")); err == nil {
		return now.Add(d.Duration), nil
	}
	loc, err := schedule.LoadZone(zone)
	if err != nil {
		return time.Time{}, err
	}
	day, clock, ok := splitDay(word)
	if !ok {
		return time.Time{}, notUnderstood(text)
	}
	hour, minute, ok := parseClock(clock)
	if !ok {
		return time.Time{}, notUnderstood(text)
	}
	return parseDay(text, day, now.In(loc), near, func(date time.Time) (time.Time, error) { return wallTime(date, hour, minute, zone) })
}

// Future parses the time of a flag that must not be over. Its error is one of the command line.
func Future(flag, text string, now time.Time, zone string) (time.Time, error) {
	at, err := Parse(text, now, zone)
	if err != nil {
		return at, exit.Errorf(exit.CodeUsage, "%s: %w", flag, err)
	}
	if !at.After(now) {
		return at, exit.Errorf(exit.CodeUsage, "%s: %s has passed", flag, Both(at, zone))
	}
	return at, nil
}

// Understood checks the time of a flag where the zone in which it counts is not known yet: that of
// an object that has not been read.
func Understood(flag, text string, now time.Time) error {
	if _, err := Parse(text, now, time.UTC.String()); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// NotPassed is the same for a time that has to lie ahead: whether it does is known of one that is the
// same in all zones, and told as in a zone.
func NotPassed(flag, text string, now time.Time, zone string) error {
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		_, err := Future(flag, text, now, zone)
		return err
	}
	return Understood(flag, text, now)
}

// KnownZone checks the zone of the flag --timezone; empty: it was not given.
func KnownZone(name string) error {
	if _, err := schedule.LoadZone(name); err != nil {
		return fmt.Errorf("--timezone: %w", err)
	}
	return nil
}

// UnknownZone says what is wrong with the user's own zone, which shows times in UTC; empty: nothing.
func UnknownZone(name string) string {
	_, err := schedule.LoadZone(name)
	if unknown := (*schedule.FieldError)(nil); errors.As(err, &unknown) {
		return fmt.Sprintf("times are shown in UTC: your time zone %q %s", unknown.Value, unknown.Message)
	}
	return ""
}

func notUnderstood(text string) error {
	return fmt.Errorf("%q is no time: %s", text, Forms)
}

// splitDay splits "tomorrow 08:00" and the like. A bare day is its first moment.
func splitDay(word string) (day, clock string, ok bool) {
	fields := strings.Fields(word)
	switch {
	case len(fields) == 1 && strings.Contains(word, ":"):
		return "", fields[0], true
	case len(fields) == 1:
		return fields[0], "00:00", true
	case len(fields) == 2:
		return fields[0], fields[1], true
	}
	return "", "", false
}

func parseClock(s string) (hour, minute int, ok bool) {
	m := regexp.MustCompile(`^([0-9]{1,2}):([0-9]{2})$`).FindStringSubmatch(s)
	if m == nil {
		return 0, 0, false
	}
	hour, _ = strconv.Atoi(m[1])
	minute, _ = strconv.Atoi(m[2])
	return hour, minute, hour < 24 && minute < 60
}

// parseDay finds the date of a word and adds the time of day; now is in the zone of both.
func parseDay(text, day string, now time.Time, near nearest, on func(date time.Time) (time.Time, error)) (time.Time, error) {
	y, m, d := now.Date()
	today := time.Date(y, m, d, 0, 0, 0, 0, time.UTC) // a date, not an instant
	switch day {
	case "today":
		return on(today)
	case "tomorrow":
		return on(today.AddDate(0, 0, 1))
	case "":
		return near(now, today, 1, on)
	}
	if date, err := time.Parse(time.DateOnly, day); err == nil {
		return on(date)
	}
	weekday, ok := parseWeekday(day)
	if !ok {
		return time.Time{}, notUnderstood(text)
	}
	return near(now, today.AddDate(0, 0, (weekday-int(today.Weekday())+7)%7), 7, on)
}

// firstAfter is the time of day on a date, or some days later if that is over.
func firstAfter(now, date time.Time, days int, on func(time.Time) (time.Time, error)) (time.Time, error) {
	at, err := on(date)
	if err != nil || at.After(now) {
		return at, err
	}
	return on(date.AddDate(0, 0, days))
}

// lastUntil is the time of day on a date, or some days earlier if that is to come.
func lastUntil(now, date time.Time, days int, on func(time.Time) (time.Time, error)) (time.Time, error) {
	at, err := on(date)
	if err != nil || !at.After(now) {
		return at, err
	}
	return on(date.AddDate(0, 0, -days))
}

func parseWeekday(s string) (int, bool) {
	if len(s) < 3 {
		return 0, false
	}
	i := slices.IndexFunc([]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}, func(name string) bool {
		return s == name || s == name[:3]
	})
	return i, i >= 0
}

// wallTime is a time of day on a date in a zone, by the rules of a schedule.
func wallTime(date time.Time, hour, minute int, zone string) (time.Time, error) {
	s, err := schedule.Parse(schedule.Spec{Cron: fmt.Sprintf("%d %d %d %d *", minute, hour, date.Day(), date.Month()), Timezone: zone})
	if err != nil {
		return time.Time{}, err
	}
	slot, ok := s.Next(date.Add(-36 * time.Hour)) // no zone is more than 14 hours from UTC
	if !ok {
		return time.Time{}, fmt.Errorf("%s has no %02d:%02d in %s", date.Format(time.DateOnly), hour, minute, zone)
	}
	return slot.At, nil
}

// Both formats an instant for a zone and for UTC.
func Both(at time.Time, zone string) string {
	return fmt.Sprintf("%s (%s)", Local(at, zone), at.UTC().Format(time.RFC3339))
}

// Local formats an instant for a zone; for UTC if the zone is unknown.
func Local(at time.Time, zone string) string {
	loc, err := schedule.LoadZone(zone)
	if err != nil {
		loc = time.UTC
	}
	local := at.In(loc)
	if local.Second() != 0 {
		return local.Format("Mon 2006-01-02 15:04:05 MST")
	}
	return local.Format("Mon 2006-01-02 15:04 MST")
}

// InText replaces instants in a text that are written for machines (RFC 3339) by the time in a
// zone. An instant that is followed by a zone's name is shown in that zone. The agent writes its
// messages in this way: it does not know the reader's zone. The text takes one line, since it stands
// in lists.
func InText(text, zone string) string {
	words := strings.Split(document.OneLine(text), " ")
	out := words[:0]
	for i := 0; i < len(words); i++ {
		at, before, after, ok := stamped(words[i])
		if !ok || i > 0 && strings.HasPrefix(words[i-1], "--") { // command lines have to stay as they can be pasted
			out = append(out, words[i])
			continue
		}
		in := zone
		if i+1 < len(words) && after == "" {
			if name := strings.TrimRight(words[i+1], ",;:.)"); namesZone(name) {
				in, after = name, words[i+1][len(name):]
				i++
			}
		}
		out = append(out, before+Local(at, in)+after)
	}
	return strings.Join(out, " ")
}

// stamped is the instant of a word, without the punctuation around it.
func stamped(word string) (at time.Time, before, after string, ok bool) {
	bare := strings.TrimLeft(word, "(")
	before = word[:len(word)-len(bare)]
	stamp := strings.TrimRight(bare, ",;:.)")
	if len(stamp) < len("2006-01-02T15:04:05Z") {
		return time.Time{}, "", "", false
	}
	at, err := time.Parse(time.RFC3339, stamp)
	return at, before, bare[len(stamp):], err == nil
}

// namesZone says whether a word is the name of a zone and not some other word: nearly all zones
// look like Europe/Berlin.
func namesZone(word string) bool {
	if word != "UTC" && !strings.Contains(word, "/") {
		return false
	}
	_, err := schedule.LoadZone(word)
	return err == nil
}

// LocalOr is Local, with a text for nil.
func LocalOr(at *time.Time, zone, none string) string {
	if at == nil {
		return none
	}
	return Local(*at, zone)
}

// Approximate formats a duration as people say it, rounded to seconds as in ledgers.
func Approximate(d time.Duration) string {
	d = d.Abs().Round(time.Second)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

// UTC formats an instant for machines; empty for zero.
func UTC(at *time.Time) string {
	if at == nil {
		return ""
	}
	return InUTC(*at)
}

// InUTC formats an instant for scripts.
func InUTC(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// LocalStamp formats the slot's instant in its own zone.
func LocalStamp(s schedule.Slot) string {
	loc, err := schedule.LoadZone(s.Zone)
	if err != nil { // the zone was loaded when the slot was found
		loc = time.UTC
	}
	return s.At.In(loc).Format(time.RFC3339)
}

// NoteWords say what a clock change did to a slot.
func NoteWords(note string) string {
	of, rest, more := strings.Cut(note, ", ")
	switch of {
	case "gap":
		of = "clocks go forward over it: the first instant after the gap"
	case "overlap":
		of = "clocks go back: they show this hour twice"
	}
	if more {
		of += ", " + rest
	}
	return of
}
