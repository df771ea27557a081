package calendar

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// mostFeed is how many bytes a feed may have (a guess: calendars refuse larger ones, or give up on them).
const mostFeed = 4 << 20

// leastEvent is how many bytes an event has at least.
const leastEvent = 200

// ICS is the page as an iCalendar feed (RFC 5545): an event for every entry, in
// UTC, with CRLF and folded lines. An event keeps its UID for as long as it
// begins at the same instant, so that a calendar that reads the feed again
// moves its end and does not show it twice. Nothing in it blocks anybody's time
// (TRANSP), and no Calendar document of ours would exclude it.
//
// Where there are more plans than a picture draws one by one, or more entries than a feed may have, what
// is the same on several days is one event with a rule. Where that is too much as well, the slots of a
// crowded day are one event, and plans are folded as in a picture. What remains too much is cut. short
// says which of it is not there; empty: all is.
func (p Page) ICS() (text, short string) {
	p = p.spreadOut()
	sorted := p.Sorted()
	if p.plans() <= mostLanes {
		if f := p.singles(sorted); f.cut.IsZero() {
			return p.wrapFeed(f.String(), ""), ""
		}
	}
	if all, few := p.seriesOf(sorted, mostFeed/leastEvent); few {
		if f := p.bySeries(all); f.cut.IsZero() {
			return p.wrapFeed(f.String(), ""), ""
		}
	}
	few := p.crowdedFolded()
	all, _ := few.seriesOf(few.Sorted(), len(few.Entries))
	f := few.bySeries(all)
	short = few.lead
	if !f.cut.IsZero() {
		short += fmt.Sprintf("; the feed has more than %d MB: events that begin at %s or later are left out, ask for a shorter time with --to", mostFeed>>20, stamp(f.cut))
	}
	return p.wrapFeed(f.String(), short), short
}

// wrapFeed is a calendar with these events; about says what is to be known of all of them.
func (p Page) wrapFeed(events, about string) string {
	var f feed
	f.line("BEGIN", "VCALENDAR")
	f.line("VERSION", "2.0")
	f.line("PRODID", "-//kubectl-maint//calendar//EN")
	f.line("CALSCALE", "GREGORIAN")
	f.text("NAME", p.Title)         // RFC 7986
	f.text("X-WR-CALNAME", p.Title) // for those that do not know NAME
	if about != "" {
		f.text("DESCRIPTION", about)  // RFC 7986
		f.text("X-WR-CALDESC", about) // for those that do not know DESCRIPTION
	}
	f.WriteString(events)
	f.line("END", "VCALENDAR")
	return f.String()
}

// singles are the events of entries, one each, as far as there is room.
func (p Page) singles(sorted []Entry) *feed {
	var f feed
	for _, e := range sorted {
		if p.event(&f, e, e.uid()); f.full(e.Start) {
			break
		}
	}
	return &f
}

// bySeries are the events of series, as far as there is room.
func (p Page) bySeries(all []series) *feed {
	var f feed
	for _, s := range all {
		if p.events(&f, s); f.full(s[0].Start) {
			break
		}
	}
	return &f
}

// events writes a series, as one event if it can.
func (p Page) events(f *feed, s series) {
	rule, except, ok := s.rule()
	if !ok {
		for _, e := range s {
			p.event(f, e, e.uid())
		}
		return
	}
	// Whoever reads the feed again in a week finds the same series, one week on. Nights and weekends
	// of one plan differ by their length alone.
	named := s[0]
	named.Key = strings.Join([]string{"each day at " + s[0].Start.UTC().Format(time.TimeOnly), p.summary(named), named.description(), s[0].End.Sub(s[0].Start).String()}, "\x00")
	lines := []property{{"RRULE", rule}}
	for _, at := range except {
		lines = append(lines, property{"EXDATE", instant(at)})
	}
	p.event(f, s[0], named.uid(), lines...)
}

// property is a line of an event.
type property struct{ name, value string }

// event writes an entry; more are lines that only a series has.
func (p Page) event(f *feed, e Entry, uid string, more ...property) {
	f.line("BEGIN", "VEVENT")
	f.line("UID", uid)
	// When the event was written would change with every reading; its own start
	// does not.
	f.line("DTSTAMP", instant(e.Start))
	f.line("DTSTART", instant(e.Start))
	if e.Kind != Slot || e.Slots > 0 { // without DTEND an event is as long as an instant
		f.line("DTEND", instant(e.End))
	}
	for _, line := range more {
		f.line(line.name, line.value)
	}
	f.text("SUMMARY", p.summary(e))
	f.text("DESCRIPTION", e.description())
	f.line("CATEGORIES", strings.ToUpper(string(e.Kind)))
	if e.Idle {
		f.line("STATUS", "TENTATIVE")
	} else {
		f.line("STATUS", "CONFIRMED")
	}
	f.line("TRANSP", "TRANSPARENT")
	f.line("END", "VEVENT")
}

// uid names the event for ever. RFC 7986 asks for no names of hosts in it.
func (e Entry) uid() string {
	key := e.Key
	switch {
	case key != "":
	case e.Unbegun:
		key = "since ever"
	default:
		key = stamp(e.Start)
	}
	if e.Kind == Freeze {
		key += "\x00" + e.Note // one policy may be frozen twice at once
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{string(e.Kind), e.Owner.Kind, e.Owner.Namespace, e.Owner.Name, key}, "\x00")))
	return hex.EncodeToString(sum[:16]) + "@maint.dev"
}

func (p Page) summary(e Entry) string {
	name := p.label(e.Owner)
	switch {
	case e.Kind == Window:
		return name + ": change permitted"
	case e.Kind == Freeze && e.Note != "":
		return name + ": frozen: " + e.Note
	case e.Kind == Freeze:
		return name + ": frozen"
	case e.Kind == Sleep && e.Idle:
		return name + " (does not sleep)"
	case e.Kind == Sleep:
		return name + ": asleep"
	case e.Slots > 0:
		name += ": " + countOf(e.Slots, string(Slot))
	}
	if e.Idle {
		name += " (does not start)"
	}
	return name
}

func (e Entry) description() string {
	lines := []string{strings.ToUpper(e.what()[:1]) + e.what()[1:] + " of " + e.Owner.String()}
	if e.Slots > 0 {
		lines[0] = countOf(e.Slots, e.what()) + " of " + e.Owner.String()
	}
	if e.Note != "" {
		lines = append(lines, e.Note)
	}
	if e.Unbegun {
		lines = append(lines, "It began before this calendar does.")
	}
	if e.Unending {
		lines = append(lines, "It goes on after this calendar ends.")
	}
	return strings.Join(lines, "\n")
}

func instant(t time.Time) string { return t.UTC().Format("20060102T150405Z") }

// feed is iCalendar text in the making.
type feed struct {
	bytes.Buffer

	whole int       // how long it was before the event that is being written
	cut   time.Time // the start of the first event for which there was no room; zero: there was for all
}

// full says whether what was just written is too much, and takes it away then; at is its start.
func (f *feed) full(at time.Time) bool {
	if f.Len() <= mostFeed {
		f.whole = f.Len()
		return false
	}
	f.Truncate(f.whole)
	f.cut = at
	return true
}

// text writes a property of free text, escaped.
func (f *feed) text(name, value string) {
	value = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return -1 // control characters are not allowed, escaped or not
		}
		return r
	}, strings.ToValidUTF8(value, "\uFFFD"))
	f.line(name, strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\n", `\n`).Replace(value))
}

// line writes a property, folded so that no line has more than 75 octets and no
// letter is cut in two.
func (f *feed) line(name, value string) {
	rest, room := name+":"+value, 75
	for len(rest) > room {
		end := room
		for !utf8.RuneStart(rest[end]) {
			end--
		}
		fmt.Fprintf(f, "%s\r\n ", rest[:end])
		rest, room = rest[end:], 74 // the space counts
	}
	fmt.Fprintf(f, "%s\r\n", rest)
}
