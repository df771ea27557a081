package schedule

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// apart are pairs of windows that never meet.
func apart() map[string][2]Window {
	return map[string][2]Window{
		"hours of every day":        {{Start: "01:00", End: "02:00"}, {Start: "05:00", End: "06:00"}},
		"days of the week":          {{Days: []string{"Mon"}, Start: "01:00", End: "05:00"}, {Days: []string{"Tue"}, Start: "01:00", End: "05:00"}},
		"minutes in turns":          {{Cron: "*/2 * * * *", Duration: "1m"}, {Cron: "1-59/2 * * * *", Duration: "1m"}},
		"hours of other zones":      {{Start: "01:00", End: "02:00", Timezone: "Europe/Berlin"}, {Start: "01:00", End: "02:00", Timezone: "Asia/Tokyo"}},
		"hours of every other day":  {{RRule: "FREQ=DAILY;INTERVAL=2;BYHOUR=1", Duration: "1h"}, {RRule: "FREQ=DAILY;INTERVAL=3;BYHOUR=7", Duration: "1h"}},
		"dates, at other hours":     {{Cron: "0 2 1 * *", Duration: "2h"}, {Cron: "0 4 15 * *", Duration: "2h"}},
		"the last workday, by hour": {{RRule: "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=3", Duration: "1h"}, {Start: "05:00", End: "06:00"}},
	}
}

// TestPoliciesThatNeverMeetInAWeekCostAWeek is about plans that name two policies of which each
// permits change while the other does not: whoever edits them pays for a week, and not for 400 years.
func TestPoliciesThatNeverMeetInAWeekCostAWeek(t *testing.T) {
	at := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC).Unix()
	for name, pair := range apart() {
		for _, zone := range []string{"UTC", "America/New_York"} {
			found := stretchOf(every{windowsOf(t, zone, pair[0]), windowsOf(t, zone, pair[1])}, at, courseEffort)
			if found.open || found.end != civil.Never || found.start != civil.Beginning || found.known != found.span {
				t.Errorf("%s in %s: got %+v", name, zone, found)
			}
			if found.asked > 200_000 {
				t.Errorf("%s in %s: asked %d sources", name, zone, found.asked)
			}
		}
	}
}

// plainly is every without what a week says.
func plainly(all every, t int64, back bool) int64 {
	for range 400 {
		var next int64
		if back {
			if next = all.lastClosing(t, newEffort(courseEffort)); next == civil.Beginning || all.open(next-1) {
				return next
			}
			next--
		} else if next = all.nextOpening(t, newEffort(courseEffort)); next == civil.Never || all.open(next) {
			return next
		}
		t = next
	}
	return 0 // not found so soon
}

// TestTheWeekSaysWhatTheWindowsSay compares both searches with ones that follow each window, where
// clocks change and windows cross midnight.
func TestTheWeekSaysWhatTheWindowsSay(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	zones := []string{"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Tokyo"}
	days := []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
	window := func() Window {
		start, end := random.IntN(48), random.IntN(48)
		switch random.IntN(4) {
		case 0:
			return Window{Cron: fmt.Sprintf("%d %d %d * *", start%2*30, start/2, 1+random.IntN(28)), Duration: fmt.Sprintf("%dm", 30*(1+random.IntN(60)))}
		case 1:
			return Window{RRule: fmt.Sprintf("FREQ=WEEKLY;INTERVAL=%d;BYDAY=SA;BYHOUR=%d", 1+random.IntN(3), start/2), Duration: "90m"}
		case 2:
			return Window{Start: fmt.Sprintf("%02d:%02d", start/2, start%2*30), End: fmt.Sprintf("%02d:%02d", end/2, end%2*30), Timezone: zones[random.IntN(len(zones))]}
		}
		return Window{Days: days[random.IntN(7):], Start: fmt.Sprintf("%02d:%02d", start/2, start%2*30), End: fmt.Sprintf("%02d:%02d", end/2, end%2*30)}
	}
	for i := range 3000 {
		zone := zones[random.IntN(len(zones))]
		both := every{windowsOf(t, zone, window()), windowsOf(t, zone, window())}
		at := time.Date(2025, 1, 1, random.IntN(10000), 0, 0, 0, time.UTC).Unix()
		if both.open(at) {
			continue
		}
		if want, got := plainly(both, at, false), changeOf(both, at); want != 0 && got != want {
			t.Fatalf("case %d in %s at %d: opens at %d, want %d", i, zone, at, got, want)
		}
		if want, got := plainly(both, at, true), sinceOf(both, at); want != 0 && got != want && want > civil.DaySeconds {
			t.Fatalf("case %d in %s at %d: closed since %d, want %d", i, zone, at, got, want)
		}
	}
}

// fixedBudget is a budget that does not refill.
type fixedBudget int

func (b *fixedBudget) Left() int   { return int(*b) }
func (b *fixedBudget) Spend(n int) { *b -= fixedBudget(n) }

// TestASearchWithinASpentBudgetIsNotKnownYet is about what a gate says that may search no more, and
// when it may again.
func TestASearchWithinASpentBudgetIsNotKnownYet(t *testing.T) {
	now := time.Date(2026, 11, 14, 0, 0, 0, 0, time.UTC)
	both := every{windowsOf(t, "UTC", Window{Cron: "0 2 1 * *", Duration: "2h"}), windowsOf(t, "UTC", Window{RRule: "FREQ=MONTHLY;INTERVAL=5;BYMONTHDAY=1;BYDAY=MO;BYHOUR=3", Duration: "2h"})}
	whole := (&Gate{course: both}).Verdict(now)
	if whole.Until == nil || whole.Why() != whole.Reason {
		t.Fatalf("got %+v", whole)
	}
	left := fixedBudget(2000)
	gate := (&Gate{course: inTurns(t)}).Within(&left)
	if v := gate.Verdict(now); v.Permitted || !v.Ready || v.Until != nil || v.NextChangeETA != NotReady || !v.Unfinished || v.Why() != v.Reason+lookedForLater {
		t.Fatalf("got %+v", v)
	}
	for _, c := range []struct {
		after time.Duration
		left  fixedBudget
		asks  bool
	}{
		{59 * time.Second, 10 * courseEffort, false},
		{61 * time.Second, -1, false},
		{2 * time.Minute, 3999, false},
		{3 * time.Minute, 4000, true},
		{4 * time.Minute, 7999, false},
		{5 * time.Minute, courseEffort/2 - 1, true},
		{5*time.Minute + 59*time.Second, courseEffort, false},
		{6 * time.Minute, courseEffort/2 - 1, false},
	} {
		left = c.left
		if v := gate.Verdict(now.Add(c.after)); v.Until != nil || v.Later == "" || v.Permitted {
			t.Fatalf("after %s with %d left: %+v", c.after, c.left, v)
		}
		if (left != c.left) != c.asks {
			t.Fatalf("after %s with %d left, it asked %d", c.after, c.left, c.left-left)
		}
	}
	left = courseEffort / 2
	if v := gate.Verdict(now.Add(7 * time.Minute)); v.NextChangeETA != ForEver || v.Later != "" || v.Unfinished {
		t.Fatalf("got %+v with enough left", v)
	}
	again, month := (&Gate{course: inTurns(t)}).Within(&left), now.AddDate(0, 1, 0)
	left = 2000
	again.Verdict(now)
	for _, at := range []time.Time{month, month.Add(2 * time.Minute)} { // what was tried counts, too, where nothing is known of it
		left = 3999
		if v := again.Verdict(at); v.Later == "" || left != 3999 {
			t.Fatalf("at %s with %d left: %+v", at, left, v)
		}
	}
	left = courseEffort
	if v := again.Verdict(month.Add(-time.Minute)); v.Later != "" {
		t.Fatalf("before an instant that was asked for: %+v", v)
	}
	plain := (&Gate{course: both}).Within(new(fixedBudget))
	for at := now; at.Before(*whole.Until); at = at.Add(97 * time.Hour) {
		if v := plain.Verdict(at); v.Permitted || v.Until != nil && !v.Until.Equal(*whole.Until) {
			t.Fatalf("at %s: %+v", at, v)
		}
	}
	if v := plain.Verdict(*whole.Until); !v.Permitted || v.Until == nil {
		t.Fatalf("got %+v", v)
	}
}

func TestWhatASearchMayAsk(t *testing.T) {
	const half = courseEffort / 2
	for _, c := range []struct{ left, tried, want int }{
		{-1, 0, leastEffort},
		{0, 0, leastEffort},
		{100, 0, leastEffort},
		{leastEffort + 1, 0, leastEffort + 1},
		{half - 1, 0, half - 1},
		{half, 0, courseEffort},
		{2*leastEffort - 1, leastEffort, leastEffort},
		{2 * leastEffort, leastEffort, 2 * leastEffort},
		{half - 1, half, leastEffort},
		{half, half, courseEffort},
	} {
		if got := searchOf(c.left, c.tried); got != c.want {
			t.Errorf("with %d left after %d: %d, not %d", c.left, c.tried, got, c.want)
		}
	}
}

// TestABudgetThatIsSpentRecovers is about policies of which one look alone costs more than the least
// that is always searched: who asks again and again gets the same answer for a minute, and charges nothing.
func TestABudgetThatIsSpentRecovers(t *testing.T) {
	now := time.Date(2026, 11, 14, 12, 0, 0, 0, time.UTC)
	heavy := make([]Window, 500)
	for i := range heavy {
		heavy[i] = Window{Start: fmt.Sprintf("01:%02d", i%60), End: fmt.Sprintf("02:%02d", i%60)}
	}
	gate := func(b Budget) *Gate {
		return (&Gate{course: every{windowsOf(t, "UTC", heavy...), inTurns(t)}}).Within(b)
	}
	var spent fixedBudget
	asks := gate(&spent)
	for second := range 50 {
		if v := asks.Verdict(now.Add(time.Duration(second) * time.Second)); v.Permitted || v.Later == "" || v.Until != nil {
			t.Fatalf("after %d s: %+v", second, v)
		}
	}
	if spent != 0 {
		t.Errorf("charged %d with nothing left", -spent)
	}
	if little := fixedBudget(leastEffort); gate(&little).Verdict(now).Later == "" || little != leastEffort {
		t.Errorf("of the least were left %d", little)
	}
	for _, left := range []fixedBudget{courseEffort - 1, courseEffort/2 - 1, 100_000, 2000, 0, -courseEffort} {
		asks, found := (&Gate{course: inTurns(t)}).Within(&left), 0
		for minute := range 30 {
			if v := asks.Verdict(now.Add(time.Duration(minute) * time.Minute)); v.NextChangeETA == ForEver {
				found++
			}
			left = min(courseEffort, left+60*courseEffort/100)
		}
		if found < 20 || left != courseEffort {
			t.Errorf("it is known in %d of 30 minutes, and %d are left", found, left)
		}
	}
}

// unsure is open and closed in turns, for as long. A search that may not ask as much as any does not find
// the past, or what comes after what is closed; one that may ask less than it needs finds no change.
type unsure struct {
	constant
	long       int64
	past, then bool
	needs      int
}

func (u unsure) open(t int64) bool { return civil.FloorMod(t, 2*u.long) < u.long }

func (u unsure) since(t int64, e *effort) int64 {
	if u.past && e.most < courseEffort {
		e.notBefore(t)
		return civil.Beginning
	}
	return t - civil.FloorMod(t, u.long)
}

func (u unsure) change(t int64, e *effort) int64 {
	if u.then && !u.open(t) && e.most < courseEffort || e.most < u.needs {
		e.notBeyond(t)
		return civil.Never
	}
	return t - civil.FloorMod(t, u.long) + u.long
}

// TestWhatASearchDidNotFindIsSaid is about searches that find when it changes, and not all else.
func TestWhatASearchDidNotFindIsSaid(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		course            unsure
		since, then, more bool
	}{
		"all is found":                {unsure{long: 10}, true, true, false},
		"since when is not":           {unsure{long: 10, past: true}, false, true, true},
		"how long the next is is not": {unsure{long: 10, then: true}, true, false, true},
	} {
		var spent fixedBudget
		v := (&Gate{course: &c.course}).Within(&spent).Verdict(now)
		if !v.Permitted || v.Until == nil || v.PermissiveRemaining != 10 || v.Later != "" || v.Next == nil {
			t.Errorf("%s: %+v", name, v)
		}
		if (v.Since != nil) != c.since || (v.Next.End != nil) != c.then || v.Next.Later == c.then || v.Unfinished != c.more {
			t.Errorf("%s: %+v, next %+v", name, v, v.Next)
		}
	}
	var spent fixedBudget
	gate := (&Gate{course: &unsure{long: 10, past: true}}).Within(&spent)
	for second := range 60 { // it changes while nothing is searched again
		at := now.Add(time.Duration(second) * time.Second)
		if v := gate.Verdict(at); v.Permitted != (second%20 < 10) || v.Until.Unix() != at.Unix()+int64(10-second%10) {
			t.Fatalf("after %d s: %+v", second, v)
		}
	}
	enough := fixedBudget(1000)
	gate = (&Gate{course: &unsure{long: 3600, past: true, needs: 1000}}).Within(&enough)
	for minute := 0; minute < 60; minute += 2 { // what was found stays known, though no more may be searched
		if v := gate.Verdict(now.Add(time.Duration(minute) * time.Minute)); v.Until == nil || v.Until.Unix() != now.Unix()+3600 || !v.Unfinished {
			t.Fatalf("after %d minutes: %+v", minute, v)
		}
		enough = 0
	}
	enough = courseEffort / 2
	gate = (&Gate{course: &unsure{long: 3600, needs: 1000}}).Within(&enough)
	for _, at := range []time.Time{now, now.Add(2 * time.Hour)} { // what a search might ask that came to its end does not count
		if v := gate.Verdict(at); v.Until == nil || v.Unfinished {
			t.Fatalf("at %s: %+v", at, v)
		}
		enough = 2000
	}
	always := every{&constant{permits: true}, &unsurePast{}}
	if v := (&Gate{course: always}).Within(&spent).Verdict(now); v.Until != nil || v.PermissiveRemaining != ForEver || v.Later != "" || !v.Unfinished {
		t.Errorf("of one that never changes: %+v", v)
	}
}

// unsurePast is always open, which a search of the past does not find.
type unsurePast struct{ constant }

func (unsurePast) open(int64) bool { return true }

func (unsurePast) since(t int64, e *effort) int64 { return unsure{long: 1, past: true}.since(t, e) }

// TestAnUnfinishedSearchHidesNoChange is about windows that open and close within the minute after
// which they are searched again.
func TestAnUnfinishedSearchHidesNoChange(t *testing.T) {
	now := time.Date(2026, 11, 14, 12, 0, 0, 0, time.UTC)
	gate := (&Gate{course: every{windowsOf(t, "UTC", Window{Cron: "0 12 * * *", Duration: "1m"}), windowsOf(t, "UTC", Window{Cron: "0 12 14 11 *", Duration: "1m"})}}).Within(new(fixedBudget))
	for second := -40; second < 100; second++ {
		at := now.Add(time.Duration(second) * time.Second)
		if v := gate.Verdict(at); v.Permitted != (second >= 0 && second < 60) || v.Until != nil && !v.Until.After(at) {
			t.Fatalf("at %s: %+v", at, v)
		}
	}
}

// TestAGateOfTheSamePoliciesKeepsWhatItFound is about edits of other policies of a namespace.
func TestAGateOfTheSamePoliciesKeepsWhatItFound(t *testing.T) {
	policy := func(start string) *Policy {
		p, err := ParsePolicy("p", PolicySpec{Strategy: MaintenanceScheduled, MaintenanceSchedule: &MaintenanceSchedule{Windows: []Window{{Start: start, End: "12:00"}}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, b, until := policy("10:00"), policy("11:00"), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	gate := func(own Strategy, p ...*Policy) *Gate {
		return NewGate(GateSpec{Own: Stanza{Strategy: own, Until: &until}, Policies: p})
	}
	first := gate(RestrictiveUntil, a, b)
	if first.Kept(gate(RestrictiveUntil, a, b)) != first {
		t.Error("the same policies make another gate")
	}
	for name, other := range map[string]*Gate{"another policy": gate(RestrictiveUntil, a, policy("11:00")), "one less": gate(RestrictiveUntil, a), "another strategy": gate(PermissiveUntil, a, b), "none": nil} {
		if first.Kept(other) != other {
			t.Errorf("%s: the gate is kept", name)
		}
	}
	if g := (*Gate)(nil); g.Kept(first) != first {
		t.Error("there was none")
	}
}

// BenchmarkPoliciesThatNeverMeet is what a plan's two policies cost after an edit of one.
func BenchmarkPoliciesThatNeverMeet(b *testing.B) {
	at := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC).Unix()
	pairs := apart()
	pairs["dates of a month"] = [2]Window{{Cron: "0 2 1 * *", Duration: "2h"}, {Cron: "0 2 15 * *", Duration: "2h"}}
	for name, pair := range pairs {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				stretchOf(every{windowsOf(b, "America/New_York", pair[0]), windowsOf(b, "America/New_York", pair[1])}, at, courseEffort)
			}
		})
	}
	b.Run("in turns", func(b *testing.B) {
		for b.Loop() {
			stretchOf(inTurns(b), at, courseEffort)
		}
	})
}
