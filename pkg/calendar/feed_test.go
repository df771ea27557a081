package calendar

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// wholeFeed is the feed of a page, of which nothing is left out.
func wholeFeed(t *testing.T, p Page) string {
	t.Helper()
	text, short := p.ICS()
	if short != "" {
		t.Errorf("of the feed is missing: %s", short)
	}
	return text
}

// hourly is a page of so many weeks with so many plans, each with a slot an hour, of which note says
// something of its own.
func hourly(weeks, plans, namespaces int, note func(i int) string) Page {
	p := Page{Title: "Hourly", Zone: "UTC", From: utc("2026-03-23 00:00"), Now: utc("2026-03-25 09:30")}
	p.To = p.From.AddDate(0, 0, 7*weeks)
	for i := range plans {
		o := Owner{"plan", fmt.Sprintf("team-%03d", i%namespaces), fmt.Sprintf("plan-%04d", i)}
		p.Owners = append(p.Owners, o)
		for at := p.From; at.Before(p.To); at = at.Add(time.Hour) {
			p.Entries = append(p.Entries, Entry{Kind: Slot, Owner: o, Start: at, End: at, Note: note(len(p.Entries)), Key: at.Format(time.RFC3339)})
		}
	}
	return p
}

func TestAFeedHasAtMostFiveMegabytes(t *testing.T) {
	const most = 5_000_000 // bytes
	same := func(int) string { return "" }
	apart := func(i int) string { return fmt.Sprintf("starts %ds later (jitter)", i) }
	days := func(p Page, days int) Page { // of a year and more, each plan in a namespace of its own
		p.To = p.From.AddDate(0, 0, days)
		p.Entries = nil
		for i, o := range p.Owners {
			for at := p.From; at.Before(p.To); at = at.AddDate(0, 0, 1) {
				for range 1 + (i+at.Day())%crowdedDay {
					at := at.Add(time.Duration(len(p.Entries)%1440) * time.Minute)
					p.Entries = append(p.Entries, Entry{Kind: Slot, Owner: o, Start: at, End: at, Note: apart(len(p.Entries)), Key: at.Format(time.RFC3339)})
				}
			}
		}
		return p
	}
	for name, c := range map[string]struct {
		page  func() Page
		short string // what is missing begins so
		has   []string
	}{
		"many plans each hour": {
			func() Page { return hourly(1, 2000, 20, same) }, "2000 plans: one event a day for each namespace, choose a namespace with -n, or plans with -l",
			[]string{"SUMMARY:team-007/100 plans: 2400 slots\r\n", "RRULE:", "DTSTART:20260323T000000Z\r\nDTEND:20260323T230000Z\r\n"},
		},
		"many plans in many namespaces": {
			func() Page { return hourly(5, mostLanes+1, mostLanes+1, apart) }, "201 plans: one event a day for all, choose a namespace with -n, or plans with -l",
			[]string{"SUMMARY:201 plans in 201 namespaces: 4824 slots\r\n"},
		},
		"as many plans as are shown one by one, each hour alike": {func() Page { return hourly(5, mostLanes, 2, same) }, "", []string{"SUMMARY:team-001/plan-0199\r\n", "RRULE:"}},
		"as many, and no two slots alike": {
			func() Page { return hourly(5, mostLanes, 2, apart) }, "200 plans: the slots of a crowded day are one event, choose a namespace with -n, or plans with -l",
			[]string{"SUMMARY:team-001/plan-0199: 24 slots\r\n"},
		},
		"a year of days that are not crowded": {
			func() Page { return days(hourly(1, mostLanes, 2, same), 400) }, "200 plans: the slots of a crowded day are one event, choose a namespace with -n, or plans with -l; the feed has more than 4 MB: events that begin at 2026-0",
			[]string{"SUMMARY:team-000/plan-0000\r\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, short := c.page().ICS()
			t.Logf("%d KiB", len(text)>>10)
			if len(text) > most {
				t.Errorf("the feed has %d KiB", len(text)>>10)
			}
			if !strings.HasPrefix(short, c.short) || c.short == "" && short != "" {
				t.Errorf("missing is %q, want %q", short, c.short)
			}
			lines := strings.ReplaceAll(text, "\r\n ", "")
			if told := strings.Contains(lines, "\r\nX-WR-CALDESC:"); told != (short != "") {
				t.Errorf("the feed says what is missing: %t", told)
			}
			for _, want := range append(c.has, "END:VEVENT\r\nEND:VCALENDAR\r\n") {
				if !strings.Contains(lines, want) {
					t.Errorf("no %q in it", want)
				}
			}
			if strings.Count(text, "BEGIN:VEVENT") != strings.Count(text, "END:VEVENT") {
				t.Error("an event is cut in two")
			}
			uidsOf(t, text)
		})
	}
}
