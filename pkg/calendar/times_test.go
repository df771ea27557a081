package calendar

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnOwnerIsCalledWithItsNamespaceWhereThereAreSeveral(t *testing.T) {
	night, orders, space := Owner{"policy", "shop", "night"}, Owner{"plan", "shop", "orders"}, Owner{"namespace", "", "shop"}
	far := Owner{"policy", "maint-system", "night"}
	for _, c := range []struct {
		name   string
		owners []Owner
		of     Owner
		want   string
	}{
		{"of one namespace", []Owner{night, orders}, night, "night"},
		{"of two", []Owner{night, orders, far}, night, "shop/night"},
		{"a namespace is no second one", []Owner{space, night}, night, "night"},
		{"a namespace itself", []Owner{space, night, far}, space, "namespace shop"},
	} {
		if got := (Page{Owners: c.owners}).label(c.of); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := (Page{Owners: c.owners}).spreadOut().label(c.of); got != c.want {
			t.Errorf("%s, spread out: %q, want %q", c.name, got, c.want)
		}
	}
	if got := night.String() + ", " + space.String(); got != "policy shop/night, namespace shop" {
		t.Error(got)
	}
}

func TestWhatIsOnAPageIsCounted(t *testing.T) {
	for want, n := range map[string][3]int{
		"nothing in this time": {}, "1 window": {1}, "2 windows, 1 slot": {2, 0, 1}, "1 window, 1 freeze, 3 slots": {1, 1, 3}, "2 freezes": {0, 2},
	} {
		var p Page
		for i, kind := range []Kind{Window, Freeze, Slot} {
			for range n[i] {
				p.Entries = append(p.Entries, Entry{Kind: kind})
			}
		}
		if got := p.counts(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestThePageSaysItsRangeAndItsClocks(t *testing.T) {
	for _, c := range []struct{ name, zone, from, to, span, clocks string }{
		{"within a year", "UTC", "2026-03-23 00:00", "2026-03-30 00:00", "Mon 23 March – Sun 29 March 2026", "Times of UTC, UTC"},
		{"over a year's end", "UTC", "2026-12-28 00:00", "2027-01-04 00:00", "Mon 28 December 2026 – Sun 3 January 2027", "Times of UTC, UTC"},
		{"clocks change", "Europe/Berlin", "2026-03-22 23:00", "2026-03-29 22:00", "Mon 23 March – Sun 29 March 2026", "Times of Europe/Berlin, CET (UTC+01:00); from Sun 29 Mar 03:00 CEST (UTC+02:00)"},
		{"they change at its end", "Europe/Berlin", "2026-03-22 23:00", "2026-03-29 01:00", "Mon 23 March – Sun 29 March 2026", "Times of Europe/Berlin, CET (UTC+01:00)"},
		{"clocks change twice", "Europe/Berlin", "2026-03-22 23:00", "2026-10-31 23:00", "Mon 23 March – Sat 31 October 2026", "Times of Europe/Berlin, CET (UTC+01:00); from Sun 29 Mar 03:00 CEST (UTC+02:00); from Sun 25 Oct 02:00 CET (UTC+01:00)"},
		{"west of Greenwich", "America/New_York", "2026-07-01 04:00", "2026-07-02 04:00", "Wed 1 July – Wed 1 July 2026", "Times of America/New_York, EDT (UTC−04:00)"},
		{"a zone whose name is its offset", "Asia/Dubai", "2026-07-01 04:00", "2026-07-02 04:00", "Wed 1 July – Thu 2 July 2026", "Times of Asia/Dubai, UTC+04:00"},
		{"a zone of a negative offset without letters", "America/Sao_Paulo", "2026-07-01 04:00", "2026-07-02 03:00", "Wed 1 July – Wed 1 July 2026", "Times of America/Sao_Paulo, UTC−03:00"},
		{"a zone that nobody knows", "Nowhere/Else", "2026-07-01 00:00", "2026-07-02 00:00", "Wed 1 July – Wed 1 July 2026", "Times of UTC, UTC"},
	} {
		p := Page{Zone: c.zone, From: utc(c.from), To: utc(c.to)}
		if got := p.span(); got != c.span {
			t.Errorf("%s: %q, want %q", c.name, got, c.span)
		}
		if got := p.clocks(); got != c.clocks {
			t.Errorf("%s: %q, want %q", c.name, got, c.clocks)
		}
	}
}

func TestSecondsAreSaidWhereThereAreAny(t *testing.T) {
	at := utc("2026-03-24 09:00").Add(5 * time.Second)
	for want, e := range map[string]Entry{
		"Tue 2026-03-24 09:00:05 UTC":       {Kind: Slot, Start: at},
		"Tue 2026-03-24 09:00–09:00:05 UTC": {Start: utc("2026-03-24 09:00"), End: at},
		"Tue 2026-03-24 09:00:05–10:00 UTC": {Start: at, End: utc("2026-03-24 10:00")},
	} {
		if got := e.local(time.UTC); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPeopleReadTimesInUTCAsTheyReadLocalOnes(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	night := Entry{Start: utc("2026-03-24 23:30"), End: utc("2026-03-25 01:00")}
	for _, c := range []struct {
		name, utc, both string
		entry           Entry
	}{
		{"a window", "Tue 2026-03-24 23:30 – Wed 2026-03-25 01:00 UTC", "Wed 2026-03-25 00:30–02:00 CET · Tue 2026-03-24 23:30 – Wed 2026-03-25 01:00 UTC", night},
		{"one without an end", "Tue 2026-03-24 23:30 UTC – …", "Wed 2026-03-25 00:30 CET – … · Tue 2026-03-24 23:30 UTC – …", Entry{Start: night.Start, Unending: true}},
		{"one that is always there", "-", "all the time", Entry{Unbegun: true, Unending: true}},
	} {
		if got := c.entry.utcForPeople(); got != c.utc {
			t.Errorf("%s in UTC: %q, want %q", c.name, got, c.utc)
		}
		if got := c.entry.onBothClocks(berlin); got != c.both {
			t.Errorf("%s on both clocks: %q, want %q", c.name, got, c.both)
		}
	}
	if got := night.onBothClocks(time.UTC); got != night.utcForPeople() {
		t.Errorf("where both clocks are alike: %q", got)
	}
}

func TestWordsAreCutToTheirRoom(t *testing.T) {
	for _, c := range []struct {
		text           string
		letters        int
		end, middleCut string
	}{
		{"größer", 6, "größer", "größer"},
		{"größer", 5, "größ…", "gr…er"},
		{"a, bcdefg", 4, "a…", "a…fg"},
		{"abc", 2, "a…", "…c"},
		{"abc", 1, "", "…"},
	} {
		if got := cut(c.text, c.letters); got != c.end {
			t.Errorf("%q cut to %d: %q, want %q", c.text, c.letters, got, c.end)
		}
		if got := cutMiddle(c.text, c.letters); got != c.middleCut {
			t.Errorf("%q cut to %d in its middle: %q, want %q", c.text, c.letters, got, c.middleCut)
		}
	}
}

func TestHowAnOwnerStandsAndWhatComesNext(t *testing.T) {
	policy, orders, space := Owner{"policy", "shop", "night"}, Owner{"plan", "shop", "orders"}, Owner{"namespace", "", "shop"}
	dev := Owner{"hibernate-plan", "shop", "dev"}
	now := utc("2026-03-25 09:00")
	span := func(kind Kind, o Owner, from, to string, edits ...func(*Entry)) Entry {
		e := Entry{Kind: kind, Owner: o, Start: utc("2026-03-25 " + from), End: utc("2026-03-25 " + to)}
		for _, edit := range edits {
			edit(&e)
		}
		return e
	}
	unending := func(e *Entry) { e.Unending = true }
	sale := func(e *Entry) { e.Note = "sale" }
	idle := func(e *Entry) { e.Idle = true }
	for _, c := range []struct {
		name    string
		owner   Owner
		entries []Entry
		want    []string // class, now, next
	}{
		{"a policy without a window", policy, nil, []string{"closed", "closed", "–"}},
		{"one in its window", policy, []Entry{span(Window, policy, "08:00", "10:00")}, []string{"open", "open until Wed 2026-03-25 10:00 UTC", "–"}},
		{"at the instant at which it opens", policy, []Entry{span(Window, policy, "09:00", "10:00")}, []string{"open", "open until Wed 2026-03-25 10:00 UTC", "–"}},
		{"at the instant at which it closes", policy, []Entry{span(Window, policy, "08:00", "09:00")}, []string{"closed", "closed", "–"}},
		{"before its window", policy, []Entry{span(Window, policy, "10:00", "11:00"), span(Window, policy, "12:00", "13:00")}, []string{"closed", "closed", "Wed 2026-03-25 10:00–11:00 UTC"}},
		{"always open", policy, []Entry{span(Window, policy, "08:00", "10:00", unending)}, []string{"open", "open, no end known", "–"}},
		{"frozen", policy, []Entry{span(Freeze, policy, "08:00", "10:00", sale)}, []string{"frozen", "frozen until Wed 2026-03-25 10:00 UTC: sale", "–"}},
		{"frozen in its window", policy, []Entry{span(Freeze, policy, "08:00", "10:00"), span(Window, policy, "08:30", "11:00")}, []string{"frozen", "frozen until Wed 2026-03-25 10:00 UTC", "–"}},
		{"a freeze is nothing that is waited for", policy, []Entry{span(Freeze, policy, "10:00", "11:00")}, []string{"closed", "closed", "–"}},
		{"a plan", orders, []Entry{span(Slot, orders, "08:00", "08:00"), span(Slot, orders, "10:00", "10:00"), span(Slot, orders, "11:00", "11:00")}, []string{"", "–", "Wed 2026-03-25 10:00 UTC"}},
		{"a plan at its slot", orders, []Entry{span(Slot, orders, "09:00", "09:00")}, []string{"", "–", "Wed 2026-03-25 09:00 UTC"}},
		{"a slot at which nothing starts", orders, []Entry{span(Slot, orders, "10:00", "10:00", idle)}, []string{"", "–", "–"}},
		{"a window of its own is nothing that a plan waits for", orders, []Entry{span(Window, orders, "10:00", "11:00")}, []string{"", "–", "–"}},
		{"a plan of sleep that sleeps", dev, []Entry{span(Sleep, dev, "08:00", "10:00"), span(Sleep, dev, "18:00", "19:00")}, []string{"asleep", "asleep until Wed 2026-03-25 10:00 UTC", "Wed 2026-03-25 18:00–19:00 UTC"}},
		{"one that is kept awake", dev, []Entry{span(Sleep, dev, "08:00", "10:00", idle), span(Sleep, dev, "18:00", "19:00")}, []string{"", "–", "Wed 2026-03-25 18:00–19:00 UTC"}},
		{"one that will be kept awake", dev, []Entry{span(Sleep, dev, "18:00", "19:00", idle)}, []string{"", "–", "–"}},
		{"a closed namespace", space, []Entry{span(Freeze, space, "08:00", "10:00")}, []string{"frozen", "frozen until Wed 2026-03-25 10:00 UTC", "–"}},
		{"a namespace that closes nothing says nothing", space, []Entry{span(Freeze, space, "10:00", "11:00")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Page{Zone: "UTC", From: utc("2026-03-23 00:00"), To: utc("2026-03-30 00:00"), Now: now, Owners: []Owner{c.owner}, Entries: c.entries}
			var got []string
			for _, s := range p.standings() {
				got = []string{s.class, s.present, s.next}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for at, want := range map[string]bool{"2026-03-22 23:59": false, "2026-03-23 00:00": true, "2026-03-29 23:59": true, "2026-03-30 00:00": false} {
		p := Page{Zone: "UTC", From: utc("2026-03-23 00:00"), To: utc("2026-03-30 00:00"), Now: utc(at), Owners: []Owner{policy}}
		if got := p.standings() != nil; got != want {
			t.Errorf("at %s: %t", at, got)
		}
	}
}

func TestWhatTheFeedSaysOfAnEntry(t *testing.T) {
	night := Owner{"policy", "shop", "night"}
	for _, c := range []struct {
		entry                Entry
		summary, description string
		status               string
	}{
		{Entry{Kind: Window}, "night: change permitted", "Window of policy shop/night", "CONFIRMED"},
		{Entry{Kind: Freeze}, "night: frozen", "Freeze of policy shop/night", "CONFIRMED"},
		{Entry{Kind: Freeze, Note: "sale"}, "night: frozen: sale", "Freeze of policy shop/night\\nsale", "CONFIRMED"},
		{Entry{Kind: Slot}, "night", "Slot of policy shop/night", "CONFIRMED"},
		{Entry{Kind: Slot, Idle: true, Note: "skipped"}, "night (does not start)", "Idle slot of policy shop/night\\nskipped", "TENTATIVE"},
		{Entry{Kind: Slot, Failed: true, Note: "Failed at migrate: exit code 1"}, "night", "Failed slot of policy shop/night\\nFailed at migrate: exit code 1", "CONFIRMED"},
		{Entry{Kind: Slot, Idle: true, Failed: true, Note: "Missed: deadline"}, "night (does not start)", "Missed slot of policy shop/night\\nMissed: deadline", "TENTATIVE"},
		{Entry{Kind: Sleep}, "night: asleep", "Sleep of policy shop/night", "CONFIRMED"},
		{Entry{Kind: Sleep, Idle: true}, "night (does not sleep)", "Idle sleep of policy shop/night", "TENTATIVE"},
		{Entry{Kind: Window, Unbegun: true, Unending: true}, "night: change permitted", "Window of policy shop/night\\nIt began before this calendar does.\\nIt goes on after this calendar ends.", "CONFIRMED"},
	} {
		c.entry.Owner, c.entry.Start, c.entry.End = night, utc("2026-03-25 09:00"), utc("2026-03-25 10:00")
		feed := strings.ReplaceAll(wholeFeed(t, Page{Owners: []Owner{night}, Entries: []Entry{c.entry}}), "\r\n ", "")
		for _, want := range []string{"SUMMARY:" + c.summary, "DESCRIPTION:" + c.description, "STATUS:" + c.status, "DTSTART:20260325T090000Z"} {
			if !strings.Contains(feed, want+"\r\n") {
				t.Errorf("no %q in\n%s", want, feed)
			}
		}
		if got, want := strings.Contains(feed, "DTEND:20260325T100000Z\r\n"), c.entry.Kind != Slot; got != want {
			t.Errorf("%s has an end: %t", c.entry.Kind, got)
		}
	}
}

func TestALineOfTheFeedHasAtMost75Octets(t *testing.T) {
	for n, want := range map[int]int{75 - len("A:"): 1, 76 - len("A:"): 2, 75 - len("A:") + 74: 2, 75 - len("A:") + 75: 3} {
		var f feed
		f.line("A", strings.Repeat("x", n))
		if got := strings.Count(f.String(), "\r\n"); got != want {
			t.Errorf("%d octets are on %d lines, want %d", n+2, got, want)
		}
	}
}

func TestOfACrowdedDayTheTableSaysOneLine(t *testing.T) {
	orders := Owner{"plan", "shop", "orders"}
	for n, want := range map[int]string{crowdedDay: "6 lines, slot", crowdedDay + 1: "1 lines, 7 slots"} {
		p := Page{Zone: "UTC", Owners: []Owner{orders}}
		for i := range n {
			at := utc("2026-03-25 09:00").Add(time.Duration(i) * time.Minute)
			p.Entries = append(p.Entries, Entry{Kind: Slot, Owner: orders, Start: at, End: at})
		}
		rows := p.rows(time.UTC)
		if got := fmt.Sprintf("%d lines, %s", len(rows), rows[0].What); got != want {
			t.Errorf("%d slots: %s, want %s", n, got, want)
		}
	}
	folded := Owner{KindPlans, "shop", "201 plans"}
	p := Page{Zone: "UTC", Owners: []Owner{folded}}
	for _, at := range []string{"2026-03-25 09:00", "2026-03-25 10:00", "2026-03-26 09:00"} {
		p.Entries = append(p.Entries, Entry{Kind: Slot, Owner: folded, Start: utc(at), End: utc(at)})
	}
	if rows := p.rows(time.UTC); len(rows) != 2 || rows[0].What != "2 slots" || rows[1].What != "slot" {
		t.Errorf("of many plans: %+v", rows)
	}
}
