package calendar

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func utc(text string) time.Time {
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return at
}

// page is one week of Berlin with a window and a slot; edit changes what a case
// is about.
func page(edit func(*Page)) Page {
	night := Owner{"policy", "shop", "night"}
	orders := Owner{"plan", "shop", "orders"}
	p := Page{
		Title: "Maintenance calendar", From: utc("2026-03-22 23:00"), To: utc("2026-03-29 22:00"), Now: utc("2026-03-25 09:00"), Zone: "Europe/Berlin",
		Owners: []Owner{night, orders},
		Entries: []Entry{
			{Kind: Window, Owner: night, Start: utc("2026-03-27 19:00"), End: utc("2026-03-28 03:00")},
			{Kind: Slot, Owner: orders, Start: utc("2026-03-26 01:30"), End: utc("2026-03-26 01:30"), Key: "2026-03-26T02:30:00+01:00[Europe/Berlin]"},
		},
	}
	if edit != nil {
		edit(&p)
	}
	return p
}

func TestTimesInWords(t *testing.T) {
	berlin := page(nil).clock()
	for _, c := range []struct {
		name       string
		entry      Entry
		local, utc string
	}{
		{"within a day", Entry{Start: utc("2026-03-24 09:00"), End: utc("2026-03-24 11:00")}, "Tue 2026-03-24 10:00–12:00 CET", "2026-03-24T09:00:00Z/2026-03-24T11:00:00Z"},
		{"over midnight", Entry{Start: utc("2026-03-24 21:00"), End: utc("2026-03-25 03:00")}, "Tue 2026-03-24 22:00 – Wed 2026-03-25 04:00 CET", "2026-03-24T21:00:00Z/2026-03-25T03:00:00Z"},
		{"over a change of clocks", Entry{Start: utc("2026-03-29 00:00"), End: utc("2026-03-29 04:00")}, "Sun 2026-03-29 01:00 CET – Sun 2026-03-29 06:00 CEST", "2026-03-29T00:00:00Z/2026-03-29T04:00:00Z"},
		{"up to midnight", Entry{Start: utc("2026-03-24 21:00"), End: utc("2026-03-24 23:00")}, "Tue 2026-03-24 22:00 – Wed 2026-03-25 00:00 CET", "2026-03-24T21:00:00Z/2026-03-24T23:00:00Z"},
		{"without a beginning", Entry{Start: utc("2026-03-24 21:00"), End: utc("2026-03-25 03:00"), Unbegun: true}, "… – Wed 2026-03-25 04:00 CET", "../2026-03-25T03:00:00Z"},
		{"without an end", Entry{Start: utc("2026-03-24 21:00"), End: utc("2026-03-25 03:00"), Unending: true}, "Tue 2026-03-24 22:00 CET – …", "2026-03-24T21:00:00Z/.."},
		{"always", Entry{Start: utc("2026-03-24 21:00"), End: utc("2026-03-25 03:00"), Unbegun: true, Unending: true}, "all the time", "../.."},
		{"a slot", Entry{Kind: Slot, Start: utc("2026-03-29 01:00")}, "Sun 2026-03-29 03:00 CEST", "2026-03-29T01:00:00Z"},
	} {
		if got := c.entry.local(berlin); got != c.local {
			t.Errorf("%s: local is %q, want %q", c.name, got, c.local)
		}
		if got := c.entry.utc(); got != c.utc {
			t.Errorf("%s: UTC is %q, want %q", c.name, got, c.utc)
		}
	}
}

func TestWeeksAreThoseOfTheClocks(t *testing.T) {
	for _, c := range []struct {
		name, zone, from, to string
		want                 []string // of each day: column, date, hours
	}{
		{"clocks go forward", "Europe/Berlin", "2026-03-28 00:00", "2026-03-29 10:00", []string{"0 03-23 24", "1 03-24 24", "2 03-25 24", "3 03-26 24", "4 03-27 24", "5 03-28 24", "6 03-29 23"}},
		{"clocks go back", "America/New_York", "2026-11-01 12:00", "2026-11-01 13:00", []string{"0 10-26 24", "1 10-27 24", "2 10-28 24", "3 10-29 24", "4 10-30 24", "5 10-31 24", "6 11-01 25"}},
		{"midnight is skipped", "America/Havana", "2026-03-08 12:00", "2026-03-08 13:00", []string{"0 03-02 24", "1 03-03 24", "2 03-04 24", "3 03-05 24", "4 03-06 24", "5 03-07 24", "6 03-08 23"}},
		{"a day is missing", "Pacific/Apia", "2011-12-29 12:00", "2011-12-29 13:00", []string{"0 12-26 24", "1 12-27 24", "2 12-28 24", "3 12-29 24", "5 12-31 24", "6 01-01 24"}},
	} {
		var got []string
		for _, w := range page(func(p *Page) { p.Zone, p.From, p.To = c.zone, utc(c.from), utc(c.to) }).weeks() {
			for _, d := range w {
				got = append(got, fmt.Sprintf("%d %s %v", d.column, d.date.Format("01-02"), d.end.Sub(d.start).Hours()))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestThisWeekBeginsOnItsMonday(t *testing.T) {
	for _, c := range []struct{ now, zone, from, to string }{
		{"2026-03-25 09:00", "Europe/Berlin", "2026-03-22 23:00", "2026-04-26 22:00"},
		{"2026-03-23 00:00", "UTC", "2026-03-23 00:00", "2026-04-27 00:00"},
		{"2026-03-22 23:30", "Europe/Berlin", "2026-03-22 23:00", "2026-04-26 22:00"},
		{"2026-03-23 01:00", "America/New_York", "2026-03-16 04:00", "2026-04-20 04:00"},
	} {
		from, to := ThisWeek(utc(c.now), c.zone, 5)
		if !from.Equal(utc(c.from)) || !to.Equal(utc(c.to)) {
			t.Errorf("%s in %s: %s to %s", c.now, c.zone, stamp(from), stamp(to))
		}
	}
}

func TestLinesOfTheFeedAreFoldedAndEscaped(t *testing.T) {
	note := strings.Repeat("Größe; 東京, \\ ", 20) + "\nsecond\r\x00 line \xff"
	feed := wholeFeed(t, page(func(p *Page) { p.Entries[0].Note = note }))
	for line := range strings.SplitSeq(strings.TrimSuffix(feed, "\r\n"), "\r\n") {
		if len(line) > 75 || !utf8.ValidString(line) || strings.ContainsAny(line, "\r\n\x00") {
			t.Errorf("%d octets: %q", len(line), line)
		}
	}
	unfolded := strings.ReplaceAll(feed, "\r\n ", "")
	want := "DESCRIPTION:Window of policy shop/night\\n" + strings.Repeat("Größe\\; 東京\\, \\\\ ", 20) + "\\nsecond line \uFFFD\r\n"
	if !strings.Contains(unfolded, want) {
		t.Errorf("want %q in\n%s", want, unfolded)
	}
}

func TestUIDsStayWhileAnEndMoves(t *testing.T) {
	uids := func(p Page) []string { return regexp.MustCompile(`UID:\S+`).FindAllString(wholeFeed(t, p), -1) }
	was := uids(page(nil))
	if diff := cmp.Diff(was, uids(page(func(p *Page) { p.Entries[0].End = utc("2026-03-28 04:00"); p.Now = utc("2026-03-26 09:00") }))); diff != "" {
		t.Errorf("an end moved the UIDs:\n%s", diff)
	}
	endless := Entry{Kind: Freeze, Owner: Owner{"policy", "shop", "night"}, Start: utc("2026-03-22 23:00"), End: utc("2026-03-29 22:00"), Unbegun: true, Unending: true, Note: "paused"}
	later := endless
	later.Start, later.End = utc("2026-03-29 22:00"), utc("2026-04-05 22:00")
	if endless.uid() != later.uid() {
		t.Error("a pause has another UID a week later")
	}
	reopened := endless
	reopened.Note = "sale"
	if endless.uid() == reopened.uid() {
		t.Error("two freezes of a policy at once share a UID")
	}
	other := page(func(p *Page) { p.Entries[0].Owner.Namespace = "else" })
	if uids(other)[1] == was[1] {
		t.Error("policies of one name in two namespaces share a UID")
	}
}

// wellFormed reads all of a text as XML and counts its elements and @attributes.
func wellFormed(t *testing.T, text string) map[string]int {
	t.Helper()
	names := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatalf("not well formed: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			names[e.Name.Local]++
			for _, a := range e.Attr {
				names["@"+a.Name.Local]++
			}
		}
	}
}

func TestPicturesNeedNothingElse(t *testing.T) {
	p := page(func(p *Page) {
		p.Owners[0].Name = `<script>alert("&")</script>`
		p.Entries[0].Owner, p.Entries[0].Note = p.Owners[0], `</title><script src="https://example.org/">`
		p.Title = `"Shop" & <b>`
	})
	for what, text := range map[string]string{"svg": p.SVG(), "html": p.HTML()} {
		names := wellFormed(t, text)
		for _, name := range []string{"script", "link", "img", "image", "foreignObject", "b", "@src", "@href", "@onload"} {
			if names[name] > 0 {
				t.Errorf("%s holds %s", what, name)
			}
		}
		if found := regexp.MustCompile(`@import|url\([^#]`).FindString(text); found != "" {
			t.Errorf("%s holds %s", what, found)
		}
	}
}

func TestTheSameEntriesGiveTheSameText(t *testing.T) {
	turned := page(func(p *Page) { p.Entries[0], p.Entries[1] = p.Entries[1], p.Entries[0] })
	for what, draw := range map[string]func(Page) string{"table": Page.Table, "ics": func(p Page) string { return wholeFeed(t, p) }, "svg": Page.SVG, "html": Page.HTML} {
		if draw(page(nil)) != draw(turned) {
			t.Errorf("%s depends on the order of entries", what)
		}
	}
}

// Whatever comes, no words stand on other words or beyond the grid.
func TestWordsDoNotMeet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	kinds := []Kind{Window, Freeze, Slot}
	for range 300 {
		p := page(func(p *Page) { p.Entries = nil })
		for range random.IntN(60) {
			e := Entry{Kind: kinds[random.IntN(3)], Owner: p.Owners[random.IntN(2)], Note: strings.Repeat("W", random.IntN(80))}
			e.Start = p.From.Add(time.Duration(random.IntN(8*24*60)-24*60) * time.Minute)
			e.End = e.Start
			if e.Kind != Slot {
				e.End = e.Start.Add(time.Duration(1+random.IntN(3000)) * time.Minute)
			}
			p.Entries = append(p.Entries, e)
		}
		for _, w := range p.weeks() {
			for _, l := range p.lanes(w, p.Sorted()) {
				checkWords(t, l)
			}
		}
	}
}

func wide(m mark) float64 { return float64(utf8.RuneCountInString(m.text)) * letterWide }

func checkWords(t *testing.T, l lane) {
	t.Helper()
	var said []mark
	for _, m := range l.marks {
		if m.x < gutter-0.01 || m.x+m.w > gridRight+2 {
			t.Errorf("a mark from %.1f to %.1f", m.x, m.x+m.w)
		}
		if m.text == "" {
			continue
		}
		if m.textX+wide(m) > gridRight {
			t.Errorf("%q ends at %.1f", m.text, m.textX+wide(m))
		}
		for _, o := range said {
			if m.textX < o.textX+wide(o) && o.textX < m.textX+wide(m) {
				t.Errorf("%q at %.1f stands on %q at %.1f", m.text, m.textX, o.text, o.textX)
			}
		}
		said = append(said, m)
	}
}

func TestSlotsThatWouldTouchAreOne(t *testing.T) {
	p := page(func(p *Page) {
		p.Entries = nil
		for i := range 288 {
			at := utc("2026-03-25 23:00").Add(time.Duration(i) * 5 * time.Minute)
			p.Entries = append(p.Entries, Entry{Kind: Slot, Owner: p.Owners[1], Start: at, End: at})
		}
	})
	marks := p.lanes(p.weeks()[0], p.Sorted())[1].marks
	if len(marks) != 1 || len(marks[0].entries) != 288 || marks[0].text != "288×" {
		t.Errorf("%d marks, the first of %d slots, %q", len(marks), len(marks[0].entries), marks[0].text)
	}
	if rows := p.rows(p.clock()); len(rows) != 1 || rows[0].What != "288 slots" {
		t.Errorf("%d lines in the table of the page", len(rows))
	}
}

func TestNowAndNext(t *testing.T) {
	p := page(func(p *Page) {
		p.Entries = append(p.Entries, Entry{Kind: Freeze, Owner: p.Owners[0], Start: utc("2026-03-24 23:00"), End: utc("2026-03-25 23:00"), Note: "sale"})
	})
	want := []standing{
		{p.Owners[0], "frozen", "frozen until Thu 2026-03-26 00:00 CET: sale", "Fri 2026-03-27 20:00 – Sat 2026-03-28 04:00 CET"},
		{p.Owners[1], "", "–", "Thu 2026-03-26 02:30 CET"},
	}
	if diff := cmp.Diff(want, p.standings(), cmp.AllowUnexported(standing{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p.Now = utc("2027-01-01 00:00")
	if got := p.standings(); got != nil {
		t.Errorf("of a time that is not on the page: %v", got)
	}
}

// The contrast of WCAG 2.2: 4.5 for text, 3 for what is drawn.
func TestColoursCanBeToldApart(t *testing.T) {
	light, dark, _ := strings.Cut(svgStyle, "@media")
	for name, css := range map[string]string{"light": light, "dark": dark} {
		grounds := []string{"paper", "today", "weekend"}
		for _, c := range []struct {
			class   string
			grounds []string
			least   float64
		}{
			{"text", grounds, 4.5},
			{"muted", grounds, 4.5},
			{"clock", grounds, 4.5},
			{"is-today", []string{"today"}, 4.5},
			{"in-window", []string{"window"}, 4.5},
			{"in-freeze", []string{"freeze-base"}, 4.5},
			{"window", grounds, 3},
			{"slot", grounds, 3},
			{"freeze", grounds, 3},
			{"now", grounds, 3},
		} {
			for _, ground := range c.grounds {
				if got := contrast(colour(t, css, c.class), colour(t, css, ground)); got < c.least {
					t.Errorf("%s: %s on %s has a contrast of %.1f", name, c.class, ground, got)
				}
			}
		}
	}
}

// colour is the luminance of a class: its fill, else its stroke.
func colour(t *testing.T, css, class string) float64 {
	t.Helper()
	for _, property := range []string{"fill", "stroke"} {
		found := regexp.MustCompile(`[ .]` + class + `\b[^-{]*\{[^}]*\b` + property + `:#([0-9a-f]{6})`).FindStringSubmatch(css)
		if found == nil {
			continue
		}
		n, _ := strconv.ParseUint(found[1], 16, 32)
		return 0.2126*linear(n>>16) + 0.7152*linear(n>>8&0xff) + 0.0722*linear(n&0xff)
	}
	t.Fatalf("no colour of %s", class)
	return 0
}

func linear(channel uint64) float64 {
	c := float64(channel) / 255
	if c <= 0.04045 {
		return c / 12.92
	}
	return math.Pow((c+0.055)/1.055, 2.4)
}

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }
