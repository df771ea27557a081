package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// dearly is what no policy takes to be read and asked once, however it is written: an alarm, not a
// benchmark. The dearest takes a quarter of a second of a core.
const dearly = 5 * time.Second

// dearRules are rules of which a calendar may be full. What some of them cost to follow makes them
// count as several events.
func dearRules() map[string]string {
	return map[string]string{
		"every day":                                 "FREQ=DAILY",
		"minutes of nearly a day":                   "FREQ=MINUTELY;INTERVAL=1439",
		"minutes of nearly a day, at one time":      "FREQ=MINUTELY;INTERVAL=1439;BYHOUR=0;BYMINUTE=0",
		"minutes of nearly a day, on a seldom date": "FREQ=MINUTELY;INTERVAL=1439;BYHOUR=0;BYMINUTE=0;BYMONTHDAY=13;BYDAY=FR",
		"minutes of nearly a day, never":            "FREQ=MINUTELY;INTERVAL=1439;BYHOUR=0;BYMINUTE=0;BYMONTHDAY=31;BYMONTH=2,4",
		"minutes of nearly a day, in half of all":   "FREQ=MINUTELY;INTERVAL=1439;BYHOUR=0;BYMINUTE=0;BYMONTHDAY=1,3,5,7,9,11,13,15;BYDAY=MO,TU,WE,TH;BYMONTH=1,3,5,7,9,11",
		"minutes of nearly a week":                  "FREQ=MINUTELY;INTERVAL=10079;BYHOUR=0;BYMINUTE=0;BYDAY=MO,TU",
		"a week that never comes to its day":        "FREQ=MINUTELY;INTERVAL=10080;BYDAY=MO",
		"minutes of nearly a month":                 "FREQ=MINUTELY;INTERVAL=43829;BYMONTHDAY=16,18,20",
		"hours of nearly a day":                     "FREQ=HOURLY;INTERVAL=23;BYHOUR=0",
		"hours of over a day, on a seldom date":     "FREQ=HOURLY;INTERVAL=25;BYHOUR=0;BYMONTHDAY=13;BYDAY=FR",
		"hours that never come to a month":          "FREQ=HOURLY;INTERVAL=5;BYMONTHDAY=31;BYMONTH=2",
		"a second time of a day of one":             "FREQ=DAILY;BYHOUR=1;BYSETPOS=2",
		"a second time of a week of one":            "FREQ=WEEKLY;BYDAY=MO;BYHOUR=1;BYSETPOS=2",
		"the 23rd workday":                          "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=23",
		"a position that no month has":              "FREQ=MONTHLY;BYMONTHDAY=1,2,3,4,5,6,7;BYDAY=MO;BYSETPOS=2",
		"the 366th day, by position":                "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=366",
		"friday 13":                                 "FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR",
		"a friday 13 of every other week":           "FREQ=DAILY;INTERVAL=14;BYMONTHDAY=13;BYDAY=FR",
		"a sunday in february that is the 29th":     "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU",
		"a day that no month has":                   "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
		"a day that no short month has":             "FREQ=DAILY;BYMONTHDAY=31;BYMONTH=2,4,6,9,11",
		"a month that no interval comes to":         "FREQ=MONTHLY;INTERVAL=12;BYMONTHDAY=1;BYMONTH=3",
		"a month that an interval seldom comes to":  "FREQ=MONTHLY;INTERVAL=11;BYMONTHDAY=31;BYDAY=MO;BYMONTH=1",
		"the last week of a long year":              "FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO;BYMONTH=1",
		"the last day of a leap year":               "FREQ=YEARLY;BYYEARDAY=366;BYDAY=SU",
		"long lists":                                "FREQ=YEARLY;BYDAY=SU;BYMONTH=12;BYYEARDAY=366" + listed(-360, -300),
		"weekdays of a year":                        "FREQ=YEARLY;BYDAY=53MO,53TU,-53WE;BYMONTHDAY=30",
		"days far apart":                            "FREQ=DAILY;INTERVAL=5000",
		"weeks apart":                               "FREQ=WEEKLY;INTERVAL=9;BYDAY=MO",
		"a date that no month of an interval has":   "FREQ=MONTHLY;INTERVAL=12;BYMONTHDAY=31",
		"fifth mondays":                             "FREQ=MONTHLY;BYDAY=5MO",
		"counted hours":                             "FREQ=MINUTELY;INTERVAL=1439;COUNT=999;BYHOUR=0;BYMINUTE=0",
		"counted positions":                         "FREQ=YEARLY;COUNT=19;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=366",
	}
}

func listed(from, to int) string {
	var list strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&list, ",%d", i)
	}
	return list.String()
}

// dearCalendars are calendars of as many events as a policy may use, and fit in its documents.
func dearCalendars(t *testing.T, event func(i int) string) []*Calendar {
	t.Helper()
	const room = 250 << 10
	each, _ := calendarOf(t, event(1)).Load()
	var calendars []*Calendar
	var events []string
	size := 0
	for i := range mostRecurring / max(each, 1) {
		events = append(events, event(i))
		if size += len(events[len(events)-1]) + 30; size > room {
			calendars, events, size = append(calendars, calendarOf(t, events...)), nil, 0
		}
		if len(calendars) == mostCalendars {
			return calendars
		}
	}
	return append(calendars, calendarOf(t, events...))
}

// readAndAsked is about a policy that is read and asked once.
func readAndAsked(t *testing.T, spec *MaintenanceSchedule, calendars []*Calendar) {
	t.Helper()
	byName := map[string]*Calendar{}
	spec.Timezone = "Europe/Berlin"
	for i, c := range calendars {
		name := fmt.Sprint("c", i)
		byName[name] = c
		spec.Exclude = append(spec.Exclude, Exclusion{Calendar: &CalendarRef{Name: name}})
	}
	began := time.Now()
	policy, err := ParsePolicy("p", PolicySpec{Strategy: MaintenanceScheduled, MaintenanceSchedule: spec}, func(_, name string) (*Calendar, bool) { return byName[name], true })
	if err != nil {
		t.Fatal(err)
	}
	v := policy.Verdict(time.Date(2026, 11, 30, 10, 30, 0, 0, time.UTC))
	if took := time.Since(began); took > dearly {
		t.Errorf("it took %s", took)
	} else {
		t.Logf("%s up to %v", took.Round(time.Millisecond), v.Until)
	}
}

// TestCalendarsOfDearRulesCostLittle is about policies whose calendars hold as much as they may, of rules
// that take long to follow: every step of an INTERVAL, every month in which there is no such day.
func TestCalendarsOfDearRulesCostLittle(t *testing.T) {
	begin := func(i int) string {
		return time.Date(2000, 1, 1, 0, i, 0, 0, time.UTC).Format("20060102T150405")
	}
	touching := func(i int) string {
		m := i * 3
		return fmt.Sprintf("DTSTART:200001%02dT%02d%02d00Z\nDURATION:PT3M\nRRULE:FREQ=DAILY;INTERVAL=2", 1+m/1440, m/60%24, m%60)
	}
	for name, rule := range dearRules() {
		event := func(i int) string { return "DTSTART:" + begin(i) + "\nDURATION:PT1M\nRRULE:" + rule }
		t.Run(name, func(t *testing.T) { readAndAsked(t, &MaintenanceSchedule{}, dearCalendars(t, event)) })
		t.Run(name+", beside events that touch", func(t *testing.T) {
			calendars := dearCalendars(t, func(i int) string { return event(i) + "\nEXDATE:" + begin(i) })
			calendars = calendars[:max(1, len(calendars)/2)]
			held := load{}
			for _, c := range calendars {
				held.add(c)
			}
			var events []string
			for i := range min(960, mostRecurring-held.recurring) {
				events = append(events, touching(i))
			}
			readAndAsked(t, &MaintenanceSchedule{}, append(calendars, calendarOf(t, events...)))
		})
	}
}

// TestWindowsOfDearRulesCostLittle is the same of windows.
func TestWindowsOfDearRulesCostLittle(t *testing.T) {
	zones := []string{"Europe/Berlin", "America/New_York", "Africa/Casablanca", "Australia/Lord_Howe", "Asia/Gaza", "America/Santiago"}
	for name, window := range map[string]func(i int) Window{
		"overlapping": func(i int) Window {
			return Window{Start: fmt.Sprintf("%02d:%02d", i*3/60%24, i*3%60), End: fmt.Sprintf("%02d:%02d", (i*3+5)/60%24, (i*3+5)%60)}
		},
		"in zones": func(i int) Window {
			return Window{Cron: fmt.Sprintf("%d %d */2 * *", i%60, i/60), Duration: "61m", Timezone: zones[i%6]}
		},
		"on a seldom day": func(i int) Window {
			return Window{Cron: "0 0 29 2 *", Duration: fmt.Sprintf("%dm", 1+i), Timezone: zones[i%6]}
		},
		"by minutes of half a month": func(i int) Window {
			return Window{RRule: fmt.Sprintf("FREQ=MINUTELY;INTERVAL=%d;BYMONTHDAY=8,9,24", 21914+i%2), Duration: fmt.Sprintf("%dm", 10+i), Timezone: zones[i%6]}
		},
		"by minutes of nearly a day, on a date": func(i int) Window {
			return Window{RRule: fmt.Sprintf("FREQ=MINUTELY;INTERVAL=1439;BYHOUR=0,1,2;BYMINUTE=%d;BYMONTHDAY=13;BYDAY=FR", i%60), Duration: "10m", Timezone: zones[i%6]}
		},
		"by position": func(i int) Window {
			return Window{RRule: fmt.Sprintf("FREQ=MONTHLY;BYMONTHDAY=1,2,3,4,5,6,7,8;BYDAY=MO;BYSETPOS=2;BYHOUR=%d", i%24), Duration: "9m", Timezone: zones[i%6]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var windows []Window
			held := 0
			for i := 0; held < mostWindows; i++ {
				w := window(i)
				s, _, err := w.source(mustUTC())
				if err != nil || i > 10*mostWindows {
					break // never
				}
				if held += s.load(); held <= mostWindows {
					windows = append(windows, w)
				}
			}
			readAndAsked(t, &MaintenanceSchedule{Windows: windows}, nil)
		})
	}
}

// TestRulesThatTakeLongToFollowCountSeveralTimes, and those that calendars are full of count once.
func TestRulesThatTakeLongToFollowCountSeveralTimes(t *testing.T) {
	for rule, want := range map[string]int{
		"FREQ=DAILY": 1, "FREQ=DAILY;INTERVAL=2": 1, "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR": 1, "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO": 1,
		"FREQ=MONTHLY;BYDAY=1MO": 1, "FREQ=MONTHLY;BYDAY=-1FR": 1, "FREQ=MONTHLY;BYMONTHDAY=31": 1, "FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=15": 1,
		"FREQ=MONTHLY;INTERVAL=3;BYDAY=2TU": 1, "FREQ=MONTHLY;BYDAY=TU;BYSETPOS=2": 1, "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1": 1,
		"FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=25": 1, "FREQ=YEARLY;BYMONTH=11;BYDAY=4TH": 1, "FREQ=YEARLY": 1, "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29": 1,
		"FREQ=YEARLY;BYDAY=MO,TU,WE;BYMONTH=1,2,3": 1, "FREQ=MONTHLY;BYMONTH=1,2,3,9,10,11;BYDAY=1MO": 1, "FREQ=MONTHLY;BYMONTH=4,5,6,7;BYMONTHDAY=10": 1,
		"FREQ=HOURLY": 1, "FREQ=HOURLY;INTERVAL=6": 1, "FREQ=HOURLY;INTERVAL=5;BYDAY=MO": 1, "FREQ=MINUTELY;INTERVAL=90": 1, "FREQ=MINUTELY;INTERVAL=1439": 1,
		"FREQ=DAILY;COUNT=100": 1, "FREQ=WEEKLY;BYDAY=MO;UNTIL=20301231T000000": 1,
		"FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR": 10, "FREQ=MINUTELY;INTERVAL=1439;BYHOUR=0;BYMINUTE=0;BYMONTHDAY=13;BYDAY=FR": 204, "FREQ=DAILY;COUNT=100000": 101,
	} {
		if got, _ := calendarOf(t, "DTSTART:20260105T000000\nRRULE:"+rule).Load(); got != want {
			t.Errorf("%s counts as %d, not %d", rule, got, want)
		}
	}
	many := make([]Window, 300)
	for i := range many {
		many[i] = Window{RRule: "FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR", Duration: "1h"}
	}
	if _, err := ParseMaintenanceSchedule(&MaintenanceSchedule{Windows: many}, nil); err == nil || !strings.Contains(err.Error(), "has at least 502 windows, those of a rule that takes long to follow counted several times; at most 500 are allowed") {
		t.Errorf("got %v", err)
	}
}
