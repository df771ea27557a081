package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// calendarOf reads events, each a few lines of a VEVENT.
func calendarOf(t *testing.T, events ...string) *Calendar {
	t.Helper()
	var b strings.Builder
	b.WriteString("BEGIN:VCALENDAR\nVERSION:2.0\n")
	for _, event := range events {
		b.WriteString("BEGIN:VEVENT\n" + event + "\nEND:VEVENT\n")
	}
	b.WriteString("END:VCALENDAR\n")
	c, err := ParseICalendar(b.String())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// touching are events of every second day that follow one another without a gap.
func touching(count int, until string) []string {
	var events []string
	length := 2 * 1440 / count
	for i := range count {
		m := i * length
		events = append(events, fmt.Sprintf("DTSTART:200001%02dT%02d%02d00Z\nDURATION:PT%dM\nRRULE:FREQ=DAILY;INTERVAL=2%s", 1+m/1440, m/60%24, m%60, length, until))
	}
	return events
}

func excluding(t *testing.T, c *Calendar, windows ...Window) *Timeline {
	t.Helper()
	tl, err := ParseMaintenanceSchedule(&MaintenanceSchedule{Windows: windows, Exclude: []Exclusion{{Calendar: &CalendarRef{Name: "c"}}}}, func(string, string) (*Calendar, bool) { return c, true })
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// asked is what both searches of a timeline cost at an instant.
func asked(tl *Timeline, at time.Time) int {
	return tl.stretch(at.Unix(), newEffort(courseEffort)).asked
}

// TestASearchThatNeverEndsIsGivenUp is about events that touch for ever: each of the 400
// years would be gone through event by event.
func TestASearchThatNeverEndsIsGivenUp(t *testing.T) {
	at := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	tl := excluding(t, calendarOf(t, touching(48, "")...))
	state := tl.At(at)
	if state.Open || state.HasUntil || state.Reason != "excluded: calendar c" {
		t.Fatalf("got %+v", state)
	}
	if cost := asked(tl, at); cost > 2*timelineEffort+1000 {
		t.Fatalf("asked %d sources", cost)
	}
}

// TestWhatASearchDidNotReachIsFoundLater is about exclusions that touch for years, and end.
func TestWhatASearchDidNotReachIsFoundLater(t *testing.T) {
	tl := excluding(t, calendarOf(t, touching(480, ";UNTIL=20360101T000000Z")...))
	if state := tl.At(time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)); state.Open || state.HasUntil {
		t.Fatalf("got %+v", state)
	}
	if state := tl.At(time.Date(2035, 12, 30, 0, 0, 0, 0, time.UTC)); state.Open || !state.HasUntil || state.Until.Year() != 2036 {
		t.Fatalf("got %+v", state)
	}
	if state := tl.At(time.Date(2036, 1, 2, 12, 0, 0, 0, time.UTC)); !state.Open {
		t.Fatalf("got %+v", state)
	}
}

// TestASearchThatEndsBeyondAnExclusionLeavesItClosed is about windows that touch for ever, of
// which no search finds the start, and what is excluded out of them.
func TestASearchThatEndsBeyondAnExclusionLeavesItClosed(t *testing.T) {
	policy, err := ParsePolicy("p", PolicySpec{
		Strategy: MaintenanceScheduled,
		MaintenanceSchedule: &MaintenanceSchedule{
			Timezone: "Europe/Berlin",
			Windows: []Window{
				{Start: "00:13", End: "03:41"},
				{Cron: "10 * * * 2,4", Duration: "1326m"},
				{Start: "19:27", End: "00:41", Timezone: "Antarctica/Troll"},
				{Cron: "*/1 0-23 * * *", Duration: "1m"},
			},
			Exclude: []Exclusion{{FromDate: "2034-01-20", UntilDate: "2034-01-27"}},
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{
		time.Date(2034, 1, 24, 11, 40, 6, 0, time.UTC), time.Date(2034, 1, 26, 23, 0, 0, 0, time.UTC), time.Date(2034, 1, 24, 11, 40, 8, 0, time.UTC),
	} {
		open, reason := at.Day() == 26, "policy p: excluded"
		if open {
			reason = "policy p: in a window"
		}
		if v := policy.Verdict(at); v.Permitted != open || v.Reason != reason || open && !v.Since.Equal(at) {
			t.Errorf("%s: got %+v", at, v)
		}
	}
}

// inTurns are two policies of which one permits change in even minutes and the other in odd ones, in
// the first half of a month, and the other way round in the second.
func inTurns(t testing.TB) every {
	t.Helper()
	var both every
	for _, cron := range [][2]string{{"*/2 * 1-15 * *", "1-59/2 * 16-31 * *"}, {"1-59/2 * 1-15 * *", "*/2 * 16-31 * *"}} {
		both = append(both, windowsOf(t, "UTC", Window{Cron: cron[0], Duration: "1m"}, Window{Cron: cron[1], Duration: "1m"}))
	}
	return both
}

func windowsOf(t testing.TB, zone string, list ...Window) *Timeline {
	t.Helper()
	tl, err := ParseMaintenanceSchedule(&MaintenanceSchedule{Timezone: zone, Windows: list}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// TestPoliciesThatNeverMeetAreGivenUp is about two that are permissive in turns, as no week says.
func TestPoliciesThatNeverMeetAreGivenUp(t *testing.T) {
	both := inTurns(t)
	at := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	found := stretchOf(both, at.Unix(), courseEffort)
	if found.open || found.end != civil.Never || found.start != civil.Beginning {
		t.Fatalf("got %+v", found)
	}
	if found.known.end == civil.Never || found.known.end <= at.Unix() || found.known.start >= at.Unix() || found.known.start == civil.Beginning {
		t.Fatalf("known in %+v", found.known)
	}
	if most := 2 * (courseEffort + 2*timelineEffort); found.asked > most {
		t.Fatalf("asked %d sources, more than %d", found.asked, most)
	}
}

// TestACalendarCountsOnce is about a policy that names one again and again, and one that names too much.
func TestACalendarCountsOnce(t *testing.T) {
	c := calendarOf(t, touching(480, "")...)
	list := make([]Exclusion, 600)
	for i := range list {
		list[i] = Exclusion{Calendar: &CalendarRef{Name: "c"}}
	}
	find := func(string, string) (*Calendar, bool) { return c, true }
	tl, err := ParseMaintenanceSchedule(&MaintenanceSchedule{Exclude: list}, find)
	if err != nil {
		t.Fatal(err)
	}
	if cost := tl.exclude.union.cost; cost > 481 {
		t.Fatalf("one question asks %d sources", cost)
	}
	again, err := ParseMaintenanceSchedule(&MaintenanceSchedule{Exclude: list[:1]}, find)
	if err != nil || again.exclude.parts[1].dated != tl.exclude.parts[1].dated {
		t.Fatalf("two policies of one zone do not share a calendar (%v)", err)
	}
	for name, many := range map[string][]Exclusion{
		"calendars": manyCalendars(mostCalendars + 1),
		"recurring": manyCalendars(9),
	} {
		if _, err := ParseMaintenanceSchedule(&MaintenanceSchedule{Exclude: many}, find); err == nil || !strings.Contains(err.Error(), "at most 20, 4000 and 40000 are allowed") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	dates := calendarOf(t, "DTSTART:20000101\nRDATE;VALUE=DATE:"+strings.Repeat("20000102,", mostDates)+"20000102")
	if _, err := ParseMaintenanceSchedule(&MaintenanceSchedule{Exclude: manyCalendars(1)}, func(string, string) (*Calendar, bool) { return dates, true }); err == nil {
		t.Error("too many dates are taken")
	}
	if _, err := ParseMaintenanceSchedule(&MaintenanceSchedule{Windows: make([]Window, mostWindows+1)}, nil); err == nil || !strings.Contains(err.Error(), "at most 500 are allowed") {
		t.Errorf("windows: got %v", err)
	}
}

func manyCalendars(count int) []Exclusion {
	var list []Exclusion
	for i := range count {
		list = append(list, Exclusion{Calendar: &CalendarRef{Name: fmt.Sprintf("c%d", i)}})
	}
	return list
}

// TestAnUnknownZoneIsLookedUpOnce is about a file that names it thousands of times: a line of
// dates is one fault, and no name like it is looked for.
func TestAnUnknownZoneIsLookedUpOnce(t *testing.T) {
	name := strings.Repeat("q/", 32) + "q"
	text := "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20000101T000000Z\nEXDATE;TZID=" + name + ":" + strings.Repeat("20000101T000000,", 9_999) + "20000101T000000\nEND:VEVENT\nEND:VCALENDAR\n"
	file := &icalFile{zones: map[string]*zone{}, named: map[string]*zone{}}
	_, err := ParseICalendar(text)
	if err == nil || strings.Count(err.Error(), "neither an IANA name") != 1 {
		t.Fatalf("got %d faults", strings.Count(err.Error(), "neither an IANA name"))
	}
	if allocs := testing.AllocsPerRun(3, func() { file.findZone(name) }); allocs > 100 {
		t.Fatalf("one look allocates %v times", allocs)
	}
}

// TestListsOfARuleAreSets is about rules that say the same position a hundred thousand times.
func TestListsOfARuleAreSets(t *testing.T) {
	for part, want := range map[string]func(*rrule) int{
		"BYSETPOS=1,+1,-1": func(r *rrule) int { return len(r.setpos) },
		"BYYEARDAY=1,-1":   func(r *rrule) int { return len(r.yearday) },
		"BYDAY=1MO,-1MO":   func(r *rrule) int { return len(r.nth) },
	} {
		name, list, _ := strings.Cut(part, "=")
		text := "FREQ=YEARLY;BYHOUR=1;" + name + "=" + strings.Repeat(list+",", 5_000) + list
		rule, err := parseRRule(text)
		if err != nil || want(rule) != 2 {
			t.Errorf("%s: got %d of them, %v", part, want(rule), err)
		}
	}
	if _, err := parseRRule("FREQ=DAILY;BYHOUR=1;BYSETPOS=1;COUNT=1001"); err == nil || !strings.Contains(err.Error(), "write 1 to 1000") {
		t.Errorf("got %v", err)
	}
}

// TestFaultsOfARuleAreFewAndShort is about a rule of semicolons alone.
func TestFaultsOfARuleAreFewAndShort(t *testing.T) {
	_, err := parseRRule(strings.Repeat(";", 200_000))
	if got := len(Faults(err)); got != mostFaults+1 || len(err.Error()) > 20_000 {
		t.Fatalf("%d faults in %d letters", got, len(err.Error()))
	}
	var calendar strings.Builder
	calendar.WriteString("BEGIN:VCALENDAR\n")
	for range 2 * mostLines {
		calendar.WriteString("BEGIN:VEVENT\nDTSTART:x\nEND:VEVENT\n")
	}
	calendar.WriteString("END:VCALENDAR\n")
	if _, err := ParseICalendar(calendar.String()); len(err.(interface{ Unwrap() []error }).Unwrap()) != mostLines {
		t.Fatal("all lines are told")
	}
}
