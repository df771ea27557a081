package calendar

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// everything is two weeks and a half in which clocks change, with a mark of each kind
// and all that may stand in a note.
func everything() Page {
	night, always := Owner{"policy", "shop", "night"}, Owner{"policy", "maint-system", "a-policy-with-quite-a-long-name"}
	orders, often := Owner{"plan", "shop", "orders"}, Owner{"plan", "shop", "often"}
	space := Owner{"namespace", "", "shop"}
	span := func(kind Kind, o Owner, from, to, note string) Entry {
		return Entry{Kind: kind, Owner: o, Start: utc(from), End: utc(to), Note: note}
	}
	slot := func(o Owner, at string, edits ...func(*Entry)) Entry {
		e := span(Slot, o, at, at, "")
		for _, edit := range edits {
			edit(&e)
		}
		return e
	}
	idle := func(e *Entry) { e.Idle, e.Note = true, "skipped" }
	failed := func(e *Entry) { e.Failed, e.Note = true, "Failed at migrate: exit code 1" }
	missed := func(e *Entry) { e.Failed, e.Idle, e.Note = true, true, "Missed: deadline" }
	p := Page{
		Title: "Shop & more", Zone: "Europe/Berlin", From: utc("2026-03-18 06:00"), To: utc("2026-04-02 18:00"), Now: utc("2026-03-25 09:30"),
		Owners: []Owner{space, night, always, orders, often},
		Entries: []Entry{
			span(Window, night, "2026-03-27 19:00", "2026-03-28 03:00", ""),
			span(Window, night, "2026-03-29 00:00", "2026-03-29 04:00", ""),
			span(Window, night, "2026-03-20 10:00", "2026-03-21 16:00", "longer than a day"),
			span(Window, night, "2026-03-23 01:00", "2026-03-23 01:20", ""),
			span(Freeze, night, "2026-03-24 23:00", "2026-03-25 23:00", "sale"),
			span(Freeze, night, "2026-03-31 08:00", "2026-04-01 20:00", "a change of the database that nobody wants to be disturbed, "+strings.Repeat("really ", 12)),
			span(Freeze, night, "2026-03-31 09:00", "2026-03-31 21:00", "on top of it"),
			span(Freeze, night, "2026-03-23 06:00", "2026-03-23 07:00", "too long for an hour"),
			span(Freeze, space, "2026-03-26 00:00", "2026-03-26 12:00", ""),
			slot(orders, "2026-03-23 01:30", failed), slot(orders, "2026-03-24 01:30", missed),
			slot(orders, "2026-03-26 01:30"), slot(orders, "2026-03-27 01:30", idle), slot(orders, "2026-03-28 01:30"),
			slot(orders, "2026-03-29 00:30"), slot(orders, "2026-03-29 21:45"), slot(orders, "2026-03-31 22:30", idle),
			slot(orders, "2026-03-30 03:00"), slot(orders, "2026-03-30 04:30"),
		},
	}
	whole := span(Window, always, "2026-03-18 06:00", "2026-04-02 18:00", "")
	whole.Unbegun, whole.Unending = true, true
	until := span(Freeze, always, "2026-03-18 06:00", "2026-03-19 10:00", "paused")
	until.Unbegun = true
	from := span(Freeze, space, "2026-04-01 10:00", "2026-04-02 18:00", "closed")
	from.Unending = true
	p.Entries = append(p.Entries, whole, until, from)
	for i := range 40 {
		at := utc("2026-03-24 10:00").Add(time.Duration(i) * 15 * time.Minute)
		p.Entries = append(p.Entries, Entry{Kind: Slot, Owner: often, Start: at, End: at})
	}
	return p
}

// What a page looks like is a matter of looking at it: run with UPDATE_GOLDEN=1, open
// what changed under testdata, and keep it if it is right.
func TestAPageLooksAsItDidWhenSomebodyLookedAtIt(t *testing.T) {
	plain := everything()
	plain.Zone, plain.From, plain.To, plain.Now = "UTC", utc("2026-03-23 00:00"), utc("2026-03-30 00:00"), utc("2026-05-01 00:00")
	plain.Owners = plain.Owners[1:2]
	empty := Page{Title: "Nothing", Zone: "Europe/Berlin", From: utc("2026-03-22 23:00"), To: utc("2026-03-29 22:00"), Now: utc("2026-03-25 09:00")}
	for name, text := range map[string]string{
		"everything.svg": everything().SVG(), "everything.html": everything().HTML(), "everything.ics": wholeFeed(t, everything()), "everything.txt": everything().Table(),
		"plain.svg": plain.SVG(), "empty.svg": empty.SVG(),
	} {
		t.Run(name, func(t *testing.T) {
			text = regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(text, "<style/>")
			text = strings.ReplaceAll(text, "\r\n", "\n")
			file := filepath.Join("testdata", name)
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text, "\n")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Somebody whose clocks are those of UTC sees no column twice.
func TestTheTableOfUTCHasOneColumnOfTimes(t *testing.T) {
	p := everything()
	p.Zone = "UTC"
	table := p.Table()
	if !strings.HasPrefix(table, "UTC  ") || strings.Contains(table, "LOCAL") || strings.Count(strings.SplitN(table, "\n", 3)[1], " UTC") != 1 {
		t.Error(table)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(table, "\n"), "\n") {
		if strings.HasPrefix(line, "-") {
			t.Errorf("a line without its time: %s", line)
		}
	}
}

// The colours of slots that needed somebody are there where there is one, and nowhere else.
func TestWhatFailedHasItsStyleWhereSomethingFailed(t *testing.T) {
	calm := everything()
	calm.Entries = slices.DeleteFunc(calm.Entries, func(e Entry) bool { return e.Failed })
	for format, c := range map[string]struct {
		draw  func(Page) string
		style string
	}{"svg": {Page.SVG, svgFailedStyle}, "html": {Page.HTML, pageFailedStyle}} {
		if !strings.Contains(c.draw(everything()), c.style) || strings.Contains(c.draw(calm), c.style) {
			t.Errorf("%s: the style is not where something failed alone", format)
		}
	}
}
