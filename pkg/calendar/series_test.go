package calendar

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/teambition/rrule-go"
)

// told are the events of a feed, each with its text and every start that its rule gives.
func told(t *testing.T, feed string) []string {
	t.Helper()
	var out []string
	for _, event := range strings.Split(strings.ReplaceAll(feed, "\r\n ", ""), "BEGIN:VEVENT\r\n")[1:] {
		var rule, summary, length string
		var begin, end time.Time
		for line := range strings.SplitSeq(event, "\r\n") {
			name, value, _ := strings.Cut(line, ":")
			at, _ := time.Parse("20060102T150405Z", value) // of what is a time
			switch name {
			case "DTSTART":
				begin, rule = at, rule+line+"\n"
			case "DTEND":
				end = at
			case "RRULE", "EXDATE":
				rule += line + "\n"
			case "SUMMARY":
				summary = value
			}
		}
		if !end.IsZero() {
			length = end.Sub(begin).String()
		}
		starts := []time.Time{begin}
		if strings.Contains(rule, "RRULE") {
			set, err := rrule.StrToRRuleSet(rule)
			if err != nil {
				t.Fatalf("%v in\n%s", err, event)
			}
			starts = set.All()
		}
		for _, at := range starts {
			out = append(out, fmt.Sprint(stamp(at), " ", summary, " ", length))
		}
	}
	slices.Sort(out)
	return out
}

func TestAFeedOfManyPlansIsSmallAndSaysTheSame(t *testing.T) {
	const most = 2 << 20 // bytes
	p := manyPlans(twoThousand(), 20)
	nights := Owner{"hibernate-plan", "team-00", "nights"}
	p.Owners = append(p.Owners, nights)
	for at := p.From; at.Before(p.To); at = at.AddDate(0, 0, 1) { // nights and weekends begin at the same time of day
		night := Entry{Kind: Sleep, Owner: nights, Start: at.Add(20 * time.Hour), End: at.Add(32 * time.Hour)}
		switch at.Weekday() {
		case time.Friday:
			night.End = at.Add(80 * time.Hour)
		case time.Saturday, time.Sunday:
			continue
		}
		p.Entries = append(p.Entries, night)
	}
	p.Entries = append(p.Entries, Entry{Kind: Sleep, Owner: nights, Start: p.Now, End: p.Now.Add(time.Hour), Key: "held"})
	text := wholeFeed(t, p)
	t.Logf("the feed has %d KiB", len(text)>>10)
	if len(text) > most {
		t.Errorf("the feed has %d KiB", len(text)>>10)
	}
	var single feed
	for _, e := range p.Sorted() {
		p.event(&single, e, e.uid())
	}
	if diff := cmp.Diff(told(t, single.String()), told(t, text)); diff != "" {
		t.Errorf("(-single events +rules):\n%.2000s", diff)
	}
	uids := uidsOf(t, text)
	later := p
	later.From = p.From.AddDate(0, 0, 7)
	later.Entries = slices.DeleteFunc(slices.Clone(p.Entries), func(e Entry) bool { return e.Start.Before(later.From) })
	for uid := range uidsOf(t, wholeFeed(t, later)) {
		if !uids[uid] {
			t.Fatalf("a week later an event has another UID: %s", uid)
		}
	}
}

// uidsOf are those of a feed, which has none twice.
func uidsOf(t *testing.T, feed string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for line := range strings.SplitSeq(feed, "\r\n") {
		if strings.HasPrefix(line, "UID:") {
			if out[line] {
				t.Fatalf("twice: %s", line)
			}
			out[line] = true
		}
	}
	return out
}

func TestOfFewPlansEachEntryIsAnEvent(t *testing.T) {
	p := manyPlans(mostLanes, 2)
	if got := strings.Count(wholeFeed(t, p), "BEGIN:VEVENT"); got != len(p.Entries) {
		t.Errorf("%d entries are %d events", len(p.Entries), got)
	}
}

// Delays that differ from day to day are told on each of them.
func TestSlotsThatDifferStaySingle(t *testing.T) {
	p := manyPlans(mostLanes+1, 2)
	before := strings.Count(wholeFeed(t, p), "BEGIN:VEVENT")
	if before != mostLanes+2 { // each plan, and the policy
		t.Errorf("what is the same each day is %d events", before)
	}
	jittered, days := p.Owners[1], 0
	for i := range p.Entries {
		if p.Entries[i].Owner == jittered {
			days++
			p.Entries[i].Note = fmt.Sprintf("starts %ds later (jitter)", days)
		}
	}
	if got := strings.Count(wholeFeed(t, p), "BEGIN:VEVENT"); got != before-1+days {
		t.Errorf("%d events, were %d with one for %d slots", got, before, days)
	}
}

func TestSeriesOfDays(t *testing.T) {
	of := func(days ...string) (s series) {
		for _, date := range days {
			s = append(s, Entry{Kind: Slot, Start: utc("2026-03-" + date + " 02:00"), End: utc("2026-03-" + date + " 02:00")})
		}
		return s
	}
	for name, c := range map[string]struct {
		s          series
		rule, left string
	}{
		"each day":                            {of("01", "02", "03", "04", "05", "06", "07", "08"), "FREQ=WEEKLY;BYDAY=FR,MO,SA,SU,TH,TU,WE;COUNT=8", ""},
		"workdays":                            {of("02", "03", "04", "05", "06", "09", "10"), "FREQ=WEEKLY;BYDAY=FR,MO,TH,TU,WE;COUNT=7", ""},
		"one day of a week":                   {of("01", "08", "15"), "FREQ=WEEKLY;BYDAY=SU;COUNT=3", ""},
		"a day that is left out":              {of("01", "08", "22"), "FREQ=WEEKLY;BYDAY=SU;COUNT=4", "20260315T020000Z"},
		"two are told apart":                  {of("01", "08"), "", ""},
		"as many are left out as are told":    {of("01", "02", "16"), "FREQ=WEEKLY;BYDAY=MO,SU;COUNT=6", "20260308T020000Z 20260309T020000Z 20260315T020000Z"},
		"more would be left out than is told": {of("01", "02", "31"), "", ""},
	} {
		rule, except, _ := c.s.rule()
		var left []string
		for _, at := range except {
			left = append(left, instant(at))
		}
		if got := strings.Join(left, " "); rule != c.rule || got != c.left {
			t.Errorf("%s: %s without %q", name, rule, got)
		}
	}
}
