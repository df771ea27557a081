package calendar

import (
	"fmt"
	"strings"
	"time"
)

// local is an entry's time on the clocks of a zone: a day is named twice only
// where it changes.
func (e Entry) local(loc *time.Location) string {
	start, end := e.Start.In(loc), e.End.In(loc)
	if e.Kind == Slot {
		return start.Format("Mon 2006-01-02 " + hours(start) + " MST")
	}
	from := start.Format("Mon 2006-01-02 " + hours(start))
	if e.Unbegun {
		from = "…"
	}
	switch {
	case e.Unbegun && e.Unending:
		return "all the time"
	case e.Unending:
		return from + start.Format(" MST") + " – …"
	case !e.Unbegun && sameZone(start, end) && sameDay(start, end):
		return from + end.Format("–"+hours(end)+" MST")
	case !e.Unbegun && !sameZone(start, end):
		from += start.Format(" MST")
	}
	return from + " – " + end.Format("Mon 2006-01-02 "+hours(end)+" MST")
}

// utcForPeople is an entry's time in UTC, written as the local one is.
func (e Entry) utcForPeople() string {
	if e.Unbegun && e.Unending {
		return "-"
	}
	return e.local(time.UTC)
}

// onBothClocks is an entry's time on the clocks of a zone and in UTC, once where they are alike.
func (e Entry) onBothClocks(loc *time.Location) string {
	return onceWhereAlike(e.local(loc), e.utcForPeople())
}

func onceWhereAlike(local, utc string) string {
	if utc == "-" || utc == local {
		return local
	}
	return local + " · " + utc
}

// utc is an entry's time for machines, as ISO 8601 writes intervals; ".." is no bound.
func (e Entry) utc() string {
	if e.Kind == Slot {
		return stamp(e.Start)
	}
	start, end := stamp(e.Start), stamp(e.End)
	if e.Unbegun {
		start = ".."
	}
	if e.Unending {
		end = ".."
	}
	return start + "/" + end
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// hours is the layout of a time of day, with seconds only where there are any.
func hours(t time.Time) string {
	if t.Second() != 0 {
		return "15:04:05"
	}
	return "15:04"
}

func sameDay(a, b time.Time) bool { return a.Format(time.DateOnly) == b.Format(time.DateOnly) }

func sameZone(a, b time.Time) bool { return a.Format("MST-07:00") == b.Format("MST-07:00") }

// what says the kind in words.
func (e Entry) what() string {
	switch {
	case e.Idle && e.Failed:
		return "missed " + string(e.Kind)
	case e.Failed:
		return "failed " + string(e.Kind)
	case e.Idle:
		return "idle " + string(e.Kind)
	}
	return string(e.Kind)
}

// span is the range of the page in words.
func (p Page) span() string {
	loc := p.clock()
	from, last := p.From.In(loc), p.To.Add(-time.Second).In(loc)
	if from.Year() == last.Year() {
		return from.Format("Mon 2 January") + " – " + last.Format("Mon 2 January 2006")
	}
	return from.Format("Mon 2 January 2006") + " – " + last.Format("Mon 2 January 2006")
}

// clocks says in which zone the page is, and when clocks change on it.
func (p Page) clocks() string {
	loc := p.clock()
	from, last := p.From.In(loc), p.To.Add(-time.Second).In(loc)
	text := fmt.Sprintf("Times of %s, %s", loc, offset(from))
	for from.Before(last) {
		_, change := from.ZoneBounds()
		if change.IsZero() || change.After(last) {
			break
		}
		if before, after := offset(from), offset(change.In(loc)); before != after {
			text += fmt.Sprintf("; from %s %s", change.In(loc).Format("Mon 2 Jan "+hours(change)), after)
		}
		from = change.In(loc)
	}
	return text
}

func offset(t time.Time) string {
	name, seconds := t.Zone()
	if seconds == 0 {
		return "UTC"
	}
	text := "UTC" + strings.Replace(t.Format("-07:00"), "-", "−", 1)
	if strings.HasPrefix(name, "+") || strings.HasPrefix(name, "-") {
		return text // zones without letters of their own
	}
	return name + " (" + text + ")"
}

// cut shortens to so many letters.
func cut(text string, letters int) string {
	runes := []rune(text)
	if len(runes) <= letters {
		return text
	}
	if letters < 2 {
		return ""
	}
	return strings.TrimRight(string(runes[:letters-1]), " .,:;–-") + "…"
}

// cutMiddle shortens to so many letters and keeps the end, by which names that
// begin alike differ.
func cutMiddle(text string, letters int) string {
	runes := []rune(text)
	if len(runes) <= letters {
		return text
	}
	tail := letters / 2
	return string(runes[:letters-tail-1]) + "…" + string(runes[len(runes)-tail:])
}
