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
	const most = 5 << 20 // bytes
	p := manyPlans(2000, 20)
	text := p.ICS()
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
	uids := map[string]bool{}
	for line := range strings.SplitSeq(text, "\r\n") {
		if strings.HasPrefix(line, "UID:") {
			if uids[line] {
				t.Fatalf("twice: %s", line)
			}
			uids[line] = true
		}
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
