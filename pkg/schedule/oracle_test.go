package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// The oracle shares no code with the evaluator: it walks minute by minute over
// instants, looks at what a clock on the wall shows (package time), and keeps
// the latest time that the clock has shown so far. A time that is passed over
// fires when it is passed; one that is shown again does not fire again. It does
// not read schedules either: they are drawn as predicates and written as text.
//
// By default it walks the two days around every change of clocks from 2020 to
// 2040, and some months between; MAINT_ORACLE=full walks every minute.

var oracleZones = []string{
	"UTC", "America/New_York", "America/Santiago", "America/St_Johns", "America/Sao_Paulo", "America/Asuncion",
	"America/Havana", "America/Nuuk", "Europe/Berlin", "Europe/London", "Europe/Dublin", "Africa/Cairo", "Africa/Casablanca",
	"Asia/Kolkata", "Asia/Kathmandu", "Asia/Gaza", "Asia/Beirut", "Asia/Jakarta", "Antarctica/Troll", "Australia/Lord_Howe",
	"Australia/Adelaide", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Apia", "Pacific/Norfolk",
}

const minute = int64(60)

// wallAt is the wall clock at an instant, in minutes of a calendar without
// zones.
func wallAt(at int64, location *time.Location) int64 {
	t := time.Unix(at, 0).In(location)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC).Unix() / 60
}

// walked is every minute of a stretch: what the clock shows, and the latest it
// has shown before.
type walked struct {
	from, to     int64
	wall, before []int64
}

func walkOver(from, to int64, location *time.Location) walked {
	w := walked{from: from, to: to}
	latest := wallAt(from-minute, location)
	for at := from; at < to; at += minute {
		wall := wallAt(at, location)
		w.wall, w.before = append(w.wall, wall), append(w.before, latest)
		latest = max(latest, wall)
	}
	return w
}

// visit shows every minute: the instant, what the clock shows, and the first of
// the times that have come to pass just now (none in a second pass).
func (w walked) visit(see func(at, wall, passedFrom int64)) {
	for i, wall := range w.wall {
		see(w.from+int64(i)*minute, wall, w.before[i]+1)
	}
}

// drawn is a schedule as a predicate on wall-clock minutes.
type drawn struct {
	spec     schedule.Spec
	realTime bool
	match    func(time.Time) bool
}

// slots are the instants at which the oracle fires.
func (d drawn) slots(over walked) []int64 {
	var fires []int64
	over.visit(func(at, wall, passedFrom int64) {
		if d.realTime {
			if d.match(time.Unix(wall*60, 0).UTC()) {
				fires = append(fires, at)
			}
			return
		}
		for passed := passedFrom; passed <= wall; passed++ {
			gone := wall-passedFrom >= 24*60 && passed/(24*60) != wall/(24*60) // a whole day that clocks jump over
			if !gone && d.match(time.Unix(passed*60, 0).UTC()) {
				fires = append(fires, at)
				break
			}
		}
	})
	return fires
}

// choose draws some of low..high; nil is all.
func choose(r *rand.Rand, low, high, most int) []int {
	if r.IntN(3) == 0 {
		return nil
	}
	var list []int
	for range 1 + r.IntN(most) {
		list = append(list, low+r.IntN(high-low+1))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func has(list []int, n int) bool { return list == nil || slices.Contains(list, n) }

func join(list []int, all string) string {
	if list == nil {
		return all
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

func drawCron(r *rand.Rand) drawn {
	minutes, hours := choose(r, 0, 59, 3), choose(r, 0, 4, 3)
	monthdays, months, weekdays := choose(r, 1, 31, 20), choose(r, 1, 12, 9), choose(r, 0, 6, 4)
	if r.IntN(4) > 0 {
		monthdays, months = nil, nil
	}
	return drawn{
		spec: schedule.Spec{Cron: strings.Join([]string{
			join(minutes, "*"), join(hours, "*"), join(monthdays, "*"), join(months, "*"), join(weekdays, "*"),
		}, " ")},
		realTime: hours == nil,
		match: func(t time.Time) bool {
			day := has(monthdays, t.Day()) && has(weekdays, int(t.Weekday()))
			if monthdays != nil && weekdays != nil {
				day = has(monthdays, t.Day()) || has(weekdays, int(t.Weekday()))
			}
			return day && has(months, int(t.Month())) && has(hours, t.Hour()) && has(minutes, t.Minute())
		},
	}
}

var icalDays = []string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"}

// drawRRule draws the frequencies with an interval; what else a rule can say is
// compared with rrule-go where no clocks change.
func drawRRule(r *rand.Rand) drawn {
	interval := 1 + r.IntN(5)
	minutes, hours, weekdays := choose(r, 0, 59, 3), choose(r, 0, 4, 3), choose(r, 0, 6, 4)
	if minutes == nil {
		minutes = []int{0}
	}
	if hours == nil {
		hours = []int{0}
	}
	byDay := func() string {
		var names []string
		for _, day := range weekdays {
			names = append(names, icalDays[day])
		}
		return strings.Join(names, ",")
	}
	rule := fmt.Sprintf(";INTERVAL=%d;BYMINUTE=%s", interval, join(minutes, ""))
	atHours := rule + ";BYHOUR=" + join(hours, "")
	day := func(t time.Time) int { return int(t.Unix() / 86400) }
	time0 := func(t time.Time) bool { return has(hours, t.Hour()) && has(minutes, t.Minute()) }
	switch r.IntN(5) {
	case 0:
		return drawn{spec: schedule.Spec{RRule: "FREQ=DAILY" + atHours}, match: func(t time.Time) bool { return time0(t) && day(t)%interval == 0 }}
	case 1:
		if weekdays == nil {
			weekdays = []int{3}
		}
		return drawn{spec: schedule.Spec{RRule: "FREQ=WEEKLY" + atHours + ";BYDAY=" + byDay()}, match: func(t time.Time) bool {
			return time0(t) && has(weekdays, int(t.Weekday())) && (day(t)+3)/7%interval == 0
		}}
	case 2:
		monthday := 1 + r.IntN(31)
		return drawn{spec: schedule.Spec{RRule: "FREQ=MONTHLY" + atHours + fmt.Sprintf(";BYMONTHDAY=%d", monthday)}, match: func(t time.Time) bool {
			return time0(t) && t.Day() == monthday && ((t.Year()-1970)*12+int(t.Month())-1)%interval == 0
		}}
	case 3:
		n, weekday := 1+r.IntN(5), r.IntN(7)
		return drawn{spec: schedule.Spec{RRule: "FREQ=MONTHLY" + atHours + fmt.Sprintf(";BYDAY=%d%s", n, icalDays[weekday])}, match: func(t time.Time) bool {
			return time0(t) && int(t.Weekday()) == weekday && (t.Day()+6)/7 == n && ((t.Year()-1970)*12+int(t.Month())-1)%interval == 0
		}}
	}
	return drawn{spec: schedule.Spec{RRule: "FREQ=HOURLY" + rule}, realTime: true, match: func(t time.Time) bool {
		return has(minutes, t.Minute()) && int(t.Unix()/3600)%interval == 0
	}}
}

// stretches are the parts of 2020 to 2040 that are walked.
func stretches(t *testing.T, r *rand.Rand, location *time.Location) []walked {
	t.Helper()
	var list []walked
	for _, part := range parts(r, location) {
		list = append(list, walkOver(part[0], part[1], location))
	}
	return list
}

func parts(r *rand.Rand, location *time.Location) [][2]int64 {
	from, to := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2041, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	apia := [2]int64{time.Date(2011, 12, 28, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2012, 1, 3, 0, 0, 0, 0, time.UTC).Unix()}
	if os.Getenv("MAINT_ORACLE") == "full" {
		return [][2]int64{apia, {from, to}}
	}
	list := [][2]int64{apia}
	for at := from; at < to; at += 3600 {
		_, before := time.Unix(at-3600, 0).In(location).Zone()
		if _, now := time.Unix(at, 0).In(location).Zone(); now != before {
			list = append(list, [2]int64{at - 60*3600, at + 48*3600})
		}
	}
	start := from + r.Int64N((to-from-40*86400)/86400)*86400
	list = append(list, [2]int64{start, start + 31*86400})
	return list
}

func TestSlotsAgreeWithAClockThatIsWatchedMinuteByMinute(t *testing.T) {
	everyZone(t, 2026, func(t *testing.T, name string, r *rand.Rand, list []walked) (checked int) {
		for range draws(1, 2) {
			for _, d := range []drawn{drawCron(r), drawRRule(r)} {
				d.spec.Timezone = name
				s, err := schedule.Parse(d.spec)
				if err != nil {
					if strings.Contains(err.Error(), "can never fire") {
						continue // as 31 2,4: rightly so, see the tests of Parse
					}
					t.Fatal(err)
				}
				for _, part := range list {
					want := d.slots(part)
					got := slotsOf(s, part.from, part.to)
					if !slices.Equal(got, want) {
						t.Fatalf("%s %+v: %s", name, d.spec, cmp.Diff(readable(want), readable(got)))
					}
					checked += len(want)
				}
			}
		}
		return checked
	})
}

// everyZone runs a test in all zones at once and says how much it has seen.
func everyZone(t *testing.T, seed uint64, test func(t *testing.T, zone string, r *rand.Rand, list []walked) int) {
	t.Helper()
	var checked atomic.Int64
	t.Cleanup(func() { t.Logf("%d zones, %d instants agree", len(oracleZones), checked.Load()) })
	for i, name := range oracleZones {
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(i), seed))
			location, err := schedule.LoadZone(name)
			if err != nil {
				t.Fatal(err)
			}
			checked.Add(int64(test(t, name, r, stretches(t, r, location))))
		})
	}
}

// draws is how often to draw by default, and with MAINT_ORACLE=full; -short, which make mutants
// tries first, draws an eighth.
func draws(some, many int) int {
	switch {
	case os.Getenv("MAINT_ORACLE") == "full":
		return many
	case testing.Short():
		return max(1, some/8)
	}
	return some
}

func slotsOf(s *schedule.Schedule, from, to int64) []int64 {
	var list []int64
	for at, ok := s.NextTime(time.Unix(from-1, 0)); ok && at.Unix() < to; at, ok = s.NextTime(at) {
		list = append(list, at.Unix())
	}
	return list
}

func readable(list []int64) []string {
	var words []string
	for _, at := range list {
		words = append(words, time.Unix(at, 0).UTC().Format(time.RFC3339))
	}
	return words
}

// drawnWindow opens at wall-clock times, for an elapsed time or up to a
// wall-clock time.
type drawnWindow struct {
	spec    schedule.Window
	opens   drawn
	length  int64 // minutes
	elapsed bool
}

// drawDense draws windows that touch for hours on end.
func drawDense(r *rand.Rand) drawnWindow {
	step, low, high := []int{1, 5, 15, 30}[r.IntN(4)], 0, 23
	if r.IntN(2) == 0 {
		low, high = r.IntN(8), 12+r.IntN(12)
	}
	length := int64(step + r.IntN(step*2))
	return drawnWindow{
		spec: schedule.Window{Cron: fmt.Sprintf("*/%d %d-%d * * *", step, low, high), Duration: fmt.Sprintf("%dm", length)},
		opens: drawn{realTime: low == 0 && high == 23, match: func(t time.Time) bool {
			return t.Minute()%step == 0 && t.Hour() >= low && t.Hour() <= high
		}},
		length: length, elapsed: true,
	}
}

func drawWindow(r *rand.Rand) drawnWindow {
	if r.IntN(5) == 0 {
		return drawDense(r)
	}
	if r.IntN(3) == 0 {
		length := int64(10 + r.IntN(60*r.IntN(30)+50)) // under 31 hours
		opens := drawCron(r)
		if r.IntN(2) == 0 {
			opens = drawRRule(r)
		}
		return drawnWindow{
			opens: opens, length: length, elapsed: true,
			spec: schedule.Window{Cron: opens.spec.Cron, RRule: opens.spec.RRule, Duration: fmt.Sprintf("%dm", length)},
		}
	}
	days := choose(r, 0, 6, 5)
	var names []string
	for _, day := range days {
		names = append(names, time.Weekday(day).String()[:3])
	}
	start, end := r.IntN(24*60), r.IntN(24*60)
	if r.IntN(2) == 0 {
		start, end = r.IntN(4*60), r.IntN(4*60) // where clocks change
	}
	length := int64(end - start)
	if length <= 0 {
		length += 24 * 60
	}
	hhmm := func(m int) string { return fmt.Sprintf("%02d:%02d", m/60, m%60) }
	return drawnWindow{
		spec:   schedule.Window{Days: names, Start: hhmm(start), End: hhmm(end)},
		length: length,
		opens:  drawn{match: func(t time.Time) bool { return t.Hour()*60+t.Minute() == start && has(days, int(t.Weekday())) }},
	}
}

// changes are the instants at which the oracle sees the windows, less some
// whole days, open and close. It has to look back over the longest window.
func changes(over walked, from int64, list []drawnWindow, excluded [][2]int64) []int64 {
	var flips []int64
	untilInstant, untilWall := int64(0), make([]int64, len(list))
	latest, first, was := int64(0), true, false
	over.visit(func(at, wall, passedFrom int64) {
		latest = max(latest, wall)
		for i, w := range list {
			for passed := passedFrom; passed <= wall; passed++ {
				gone := wall-passedFrom >= 24*60 && passed/(24*60) != wall/(24*60)
				if gone || w.opens.realTime || !w.opens.match(time.Unix(passed*60, 0).UTC()) {
					continue
				}
				if w.elapsed {
					untilInstant = max(untilInstant, at+w.length*minute)
				} else {
					untilWall[i] = max(untilWall[i], passed+w.length)
				}
			}
			if w.opens.realTime && w.opens.match(time.Unix(wall*60, 0).UTC()) {
				untilInstant = max(untilInstant, at+w.length*minute)
			}
		}
		open := at < untilInstant
		for _, until := range untilWall {
			open = open || latest < until
		}
		for _, days := range excluded {
			open = open && (latest < days[0]*24*60 || latest >= days[1]*24*60)
		}
		if at >= from {
			if !first && open != was {
				flips = append(flips, at)
			}
			was, first = open, false
		}
	})
	return flips
}

func TestWindowsAgreeWithAClockThatIsWatchedMinuteByMinute(t *testing.T) {
	everyZone(t, 40, func(t *testing.T, name string, r *rand.Rand, list []walked) (checked int) {
		for range draws(1, 2) {
			spec := schedule.MaintenanceSchedule{Timezone: name}
			var windows []drawnWindow
			for range 1 + r.IntN(3) {
				w := drawWindow(r)
				windows = append(windows, w)
				spec.Windows = append(spec.Windows, w.spec)
			}
			var excluded [][2]int64
			for _, part := range list {
				day := part.from/86400 + 1 + r.Int64N(4)
				days := [2]int64{day, day + 1 + r.Int64N(2)}
				excluded = append(excluded, days)
				spec.Exclude = append(spec.Exclude, schedule.Exclusion{FromDate: dateOf(days[0]), UntilDate: dateOf(days[1])})
			}
			timeline, err := schedule.ParseMaintenanceSchedule(&spec, nil)
			if err != nil {
				if strings.Contains(err.Error(), "can never fire") {
					continue
				}
				t.Fatal(err)
			}
			for _, part := range list {
				from := part.from + 36*3600 // the longest window was opened on the way
				want := changes(part, from, windows, excluded)
				var got []int64
				for at, _, ok := timeline.Next(time.Unix(from, 0)); ok && at.Unix() < part.to; at, _, ok = timeline.Next(at) {
					got = append(got, at.Unix())
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s %+v: %s", name, spec, cmp.Diff(readable(want), readable(got)))
				}
				checkSince(t, timeline, want)
				checked += len(want)
			}
		}
		return checked
	})
}

func dateOf(day int64) string { return time.Unix(day*86400, 0).UTC().Format(time.DateOnly) }

// checkSince looks back from between two changes.
func checkSince(t *testing.T, timeline *schedule.Timeline, flips []int64) {
	t.Helper()
	for i := 1; i < len(flips); i++ {
		state := timeline.At(time.Unix((flips[i-1]+flips[i])/2, 0))
		if !state.HasSince || state.Since.Unix() != flips[i-1] || !state.HasUntil || state.Until.Unix() != flips[i] {
			t.Fatalf("between %s: got since %v, until %v", readable(flips[i-1:i+1]), state.Since, state.Until)
		}
	}
}
