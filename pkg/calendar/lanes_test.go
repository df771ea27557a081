package calendar

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// drawn are the marks of the page's owner in its first week: how many entries each has,
// and its words.
func drawn(p Page) []string {
	var out []string
	for _, l := range p.lanes(p.weeks()[0], p.Sorted()) {
		for _, m := range l.marks {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %s", len(m.entries), m.first().what(), m.text)))
		}
	}
	return out
}

func TestWhatIsDrawnOfAnOwner(t *testing.T) {
	owner := Owner{"policy", "shop", "night"}
	span := func(kind Kind, from, to string, edits ...func(*Entry)) Entry {
		e := Entry{Kind: kind, Start: utc("2026-03-" + from), End: utc("2026-03-" + to)}
		for _, edit := range edits {
			edit(&e)
		}
		return e
	}
	slot := func(at string, edits ...func(*Entry)) Entry { return span(Slot, at, at, edits...) }
	idle := func(e *Entry) { e.Idle = true }
	unbegun := func(e *Entry) { e.Unbegun = true }
	unending := func(e *Entry) { e.Unending = true }
	note := func(text string) func(*Entry) { return func(e *Entry) { e.Note = text } }
	for _, c := range []struct {
		name    string
		entries []Entry
		want    []string
	}{
		{"slots near each other are one mark", []Entry{slot("25 09:00"), slot("25 10:00"), slot("25 12:00")}, []string{"3 slot 3×"}},
		{"slots with room for their words are not", []Entry{slot("25 09:00"), slot("25 18:00")}, []string{"1 slot 09:00", "1 slot 18:00"}},
		{"slots at which nothing starts are joined among themselves", []Entry{slot("25 09:00"), slot("25 09:30", idle), slot("25 10:00"), slot("25 10:30", idle), slot("25 11:00", idle)}, []string{"2 slot 2×", "3 idle slot"}},
		{"a sleep beneath a slot", []Entry{slot("25 09:00"), span(Sleep, "24 12:00", "25 06:00")}, []string{"1 sleep 12:00–06:00", "1 slot 09:00"}},
		{"a sleep in which nothing sleeps", []Entry{span(Sleep, "24 18:00", "25 06:00", idle)}, []string{"1 idle sleep 18:00–06:00"}},
		{"always asleep", []Entry{span(Sleep, "23 00:00", "30 00:00", unbegun, unending)}, []string{"1 sleep always asleep"}},
		{"asleep, nobody knows since when", []Entry{span(Sleep, "23 00:00", "25 06:00", unbegun)}, []string{"1 sleep until 06:00"}},
		{"asleep, nobody knows until when", []Entry{span(Sleep, "25 06:00", "30 00:00", unending)}, []string{"1 sleep from 06:00"}},
		{"always open", []Entry{span(Window, "23 00:00", "30 00:00", unbegun, unending)}, []string{"1 window always open"}},
		{"open, nobody knows since when", []Entry{span(Window, "23 00:00", "25 06:00", unbegun)}, []string{"1 window until 06:00"}},
		{"open, nobody knows until when", []Entry{span(Window, "25 06:00", "30 00:00", unending)}, []string{"1 window from 06:00"}},
		{"a whole day", []Entry{span(Window, "24 00:00", "25 00:00")}, []string{"1 window 00:00–00:00"}},
		{"longer than a day", []Entry{span(Window, "24 00:00", "25 00:01")}, []string{"1 window Tue 00:00–Wed 00:01"}},
		{"a freeze with a short word", []Entry{span(Freeze, "24 00:00", "25 00:00", note("eol"))}, []string{"1 freeze eol"}},
		{"a freeze with hardly room for its words", []Entry{span(Freeze, "24 00:00", "24 06:10", note("sale of the year"))}, []string{"1 freeze sal…"}},
		{"a freeze with room for nothing that says anything", []Entry{span(Freeze, "24 00:00", "24 05:30", note("sale of the year"))}, []string{"1 freeze"}},
		{"two freezes at once have one line of words", []Entry{span(Freeze, "24 00:00", "25 00:00", note("first")), span(Freeze, "24 00:00", "25 00:00", note("second"))}, []string{"1 freeze first", "1 freeze"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Page{Zone: "UTC", From: utc("2026-03-23 00:00"), To: utc("2026-03-30 00:00"), Owners: []Owner{owner}, Entries: c.entries}
			for i := range p.Entries {
				p.Entries[i].Owner = owner
			}
			if diff := cmp.Diff(c.want, drawn(p)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A week is drawn whole, and of what lies in it only what lies on the page.
func TestOnlyWhatLiesOnThePageIsDrawn(t *testing.T) {
	for _, c := range []struct {
		name     string
		kind     Kind
		from, to string
		want     bool
	}{
		{"a window that ended before", Window, "24 06:00", "24 11:00", false},
		{"one that ends as the page begins", Window, "24 06:00", "24 12:00", false},
		{"one that ends on it", Window, "24 06:00", "24 12:01", true},
		{"one that begins as the page ends", Window, "26 12:00", "26 18:00", false},
		{"one that begins on it", Window, "26 11:59", "26 18:00", true},
		{"a slot before", Slot, "24 11:59", "24 11:59", false},
		{"a slot at its begin", Slot, "24 12:00", "24 12:00", true},
		{"a slot at its end", Slot, "26 12:00", "26 12:00", false},
		{"a slot just before its end", Slot, "26 11:59", "26 11:59", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			owner := Owner{"policy", "shop", "night"}
			p := Page{
				Zone: "UTC", From: utc("2026-03-24 12:00"), To: utc("2026-03-26 12:00"), Owners: []Owner{owner},
				Entries: []Entry{{Kind: c.kind, Owner: owner, Start: utc("2026-03-" + c.from), End: utc("2026-03-" + c.to)}},
			}
			if got := len(drawn(p)) == 1; got != c.want {
				t.Errorf("it is drawn: %t", got)
			}
		})
	}
}

// Where now is not on the page, no day is today and no line stands for it, though its
// week may be drawn.
func TestTodayIsMarkedWhereNowIsOnThePage(t *testing.T) {
	for now, want := range map[string]bool{"24 11:59": false, "24 12:00": true, "26 11:59": true, "26 12:00": false} {
		p := Page{Zone: "UTC", From: utc("2026-03-24 12:00"), To: utc("2026-03-26 12:00"), Now: utc("2026-03-" + now)}
		svg := p.SVG()
		for _, sign := range []string{"· today", `class="now-head"`, ">now<"} {
			if got := strings.Contains(svg, sign); got != want {
				t.Errorf("at %s the picture has %s: %t", now, sign, got)
			}
		}
	}
}

// The clocks of these zones show a quarter of a UTC day an hour beside midnight.
func TestNoHourIsCutAtTheEdgesOfThePicture(t *testing.T) {
	for _, zone := range []string{"Asia/Tashkent", "Asia/Bangkok", "Asia/Kolkata", "UTC"} {
		p := Page{Zone: zone, From: utc("2026-03-24 12:00"), To: utc("2026-03-26 12:00")}
		found := regexp.MustCompile(`class="axis" x="([\d.]+)"`).FindAllStringSubmatch(p.SVG(), -1)
		for _, hour := range found {
			if x, err := strconv.ParseFloat(hour[1], 64); err != nil || x-gutter < 8 || gridRight-x < 8 {
				t.Errorf("%s: an hour stands at %s", zone, hour[1])
			}
		}
		if len(found) < 20 {
			t.Errorf("%s: %d hours", zone, len(found))
		}
	}
}

// The legend explains what is on the page, and no word of it stands on another.
func TestTheLegendExplainsSleepWhereThereIsAny(t *testing.T) {
	owner := Owner{"hibernate-plan", "shop", "dev"}
	p := page(nil)
	if svg := p.SVG(); strings.Contains(svg, "hibernated") {
		t.Error("a page without sleep explains it")
	}
	p.Owners, p.Entries = append(p.Owners, owner), append(p.Entries, Entry{Kind: Sleep, Owner: owner, Start: p.From, End: p.From.Add(time.Hour)})
	svg := p.SVG()
	end := 0.0
	for _, word := range regexp.MustCompile(`<text class="muted" x="([\d.]+)" y="106">([^<]+)</text>`).FindAllStringSubmatch(svg, -1) {
		x, err := strconv.ParseFloat(word[1], 64)
		if err != nil || x < end {
			t.Errorf("%q stands at %s, and the one before it ends at %.1f", word[2], word[1], end)
		}
		end = x + float64(len(word[2]))*letterWide
	}
	box := regexp.MustCompile(`<rect class="sleep" x="[\d.]+" y="([\d.]+)" width="26"`).FindStringSubmatch(svg)
	window := regexp.MustCompile(`<rect class="window" x="[\d.]+" y="([\d.]+)" width="26"`).FindStringSubmatch(svg)
	if end == 0 || box == nil || window == nil || box[1] != window[1] {
		t.Errorf("sleep stands at %v, a window at %v", box, window)
	}
}
