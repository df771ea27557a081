package overlap_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/overlap"
)

const hour, week = civil.HourSeconds, civil.WeekSeconds

// stretch is how far the clocks of a source are ahead, from an instant on.
type stretch struct{ from, offset int64 }

// weekly is a source with spans of whole hours of each week, on clocks that change.
type weekly struct {
	open     []bool // by hour of the week
	clocks   []stretch
	unsteady int64 // for how long after a change of clocks it does not say that it repeats
}

// always is a source whose clocks never change, with spans in some hours of the week.
func always(hours ...int64) *weekly {
	w := &weekly{open: make([]bool, week/hour), clocks: []stretch{{from: civil.Beginning}}}
	for _, h := range hours {
		w.open[h] = true
	}
	return w
}

// changing lets clocks change once.
func (w *weekly) changing(at, offset, unsteady int64) *weekly {
	w.clocks, w.unsteady = append(w.clocks, stretch{from: at, offset: offset}), unsteady
	return w
}

func (w *weekly) now(t int64) int {
	i := len(w.clocks) - 1
	for t < w.clocks[i].from {
		i--
	}
	return i
}

func (w *weekly) Contains(t int64) bool {
	return w.open[civil.FloorMod(t+w.clocks[w.now(t)].offset, week)/hour]
}

// far is how far a source looks: a change of clocks may put off the next span of a week.
const far = 3 * week

func (w *weekly) Opens(t int64) int64 {
	for at := civil.FloorDiv(t, hour)*hour + hour; at < t+far; at += hour {
		if w.Contains(at) && !w.Contains(at-1) {
			return at
		}
	}
	return civil.Never
}

func (w *weekly) Closed(t int64) int64 {
	for at := civil.FloorDiv(t, hour) * hour; at > t-far; at -= hour {
		if !w.Contains(at) && w.Contains(at-1) {
			return at
		}
	}
	return civil.Beginning
}

func (w *weekly) Repeats(t int64) (start, end int64) {
	i := w.now(t)
	if start, end = w.clocks[i].from, civil.Never; start != civil.Beginning {
		start += w.unsteady
	}
	if i+1 < len(w.clocks) {
		end = w.clocks[i+1].from
	}
	return start, end
}

func (w *weekly) Offsets(to []int64, at int64) []int64 {
	return append(to, w.clocks[w.now(at)].offset)
}

// asked counts how many sources were asked, up to a limit.
type asked struct{ n, limit int }

func (a *asked) spend(n int) bool {
	if a.n+n > a.limit {
		return false
	}
	a.n += n
	return true
}

func finder(limit int, sources ...*weekly) (*overlap.Finder, *asked) {
	a := &asked{limit: limit}
	var list []overlap.Source
	for _, s := range sources {
		list = append(list, s)
	}
	return overlap.Of(list, a.spend), a
}

func all(sources []*weekly, t int64) bool {
	return !slices.ContainsFunc(sources, func(w *weekly) bool { return !w.Contains(t) })
}

func drawSource(r *rand.Rand) *weekly {
	w := always()
	w.unsteady = r.Int64N(3) * 12 * hour
	for range 1 + r.IntN(3) {
		start := r.IntN(168)
		for h := range 1 + r.IntN(6) {
			w.open[(start+h)%168] = true
		}
	}
	for at := r.Int64N(300) * hour; r.IntN(5) > 0; at += 3*24*hour + r.Int64N(500)*hour {
		w.clocks = append(w.clocks, stretch{at, r.Int64N(4) * hour})
	}
	return w
}

// TestInstantsInAllSourcesAreThoseOfEachHour compares with a walk over all hours.
func TestInstantsInAllSourcesAreThoseOfEachHour(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	const start, end = -400 * hour, 2400 * hour
	for range 100 {
		var sources []*weekly
		for range 2 + r.IntN(2) {
			sources = append(sources, drawSource(r))
		}
		one, _ := finder(1<<30, sources...) // remembers what it has found
		for range 20 {
			from := start + r.Int64N(end-start)
			next, last := from, from
			for ; next < end && !all(sources, next); next = civil.FloorDiv(next, hour)*hour + hour {
			}
			for ; last >= start && !all(sources, last); last = civil.FloorDiv(last, hour)*hour - 1 {
			}
			fresh, _ := finder(1<<30, sources...)
			for _, f := range []*overlap.Finder{one, fresh} {
				if got := f.Next(from, end); next < end && got != next || next >= end && got < end {
					t.Fatalf("the first from %d on is %d, not %d, of %+v", from, got, next, sources)
				}
				if got := f.Last(from, start); last >= start && got != last || last < start && got >= start {
					t.Fatalf("the last up to %d is %d, not %d, of %+v", from, got, last, sources)
				}
			}
			limited, _ := finder(r.IntN(40), sources...)
			if got := limited.Next(from, end); got < from || got > next && got < end {
				t.Fatalf("where no more may be asked, from %d on %d is reached, beyond %d, of %+v", from, got, next, sources)
			}
			if got := limited.Last(from, start); got > from || got < last && got >= start {
				t.Fatalf("where no more may be asked, up to %d %d is reached, beyond %d, of %+v", from, got, last, sources)
			}
		}
	}
}

func TestASearchHasAHorizon(t *testing.T) {
	f, _ := finder(1<<30, always(5), always(5))
	for name, c := range map[string]struct{ got, want int64 }{
		"the horizon is looked at":               {f.Next(5*hour, 5*hour), 5 * hour},
		"nothing behind it is":                   {f.Next(5*hour, 5*hour-1), civil.Never},
		"the horizon is looked at, backwards":    {f.Last(6*hour-1, 6*hour-1), 6*hour - 1},
		"nothing behind it is, backwards":        {f.Last(6*hour-1, 6*hour), civil.Beginning},
		"the last instant of a span":             {f.Last(7*hour, 0), 6*hour - 1},
		"a week that ends as a span begins":      {f.Next(5*hour-week, 100*week), 5*hour - week},
		"a week that begins as a span ends":      {f.Next(6*hour, 100*week), 5*hour + week},
		"a week that begins a second after that": {f.Last(5*hour-1, -100*week), 6*hour - 1 - week},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, not %d", name, c.got, c.want)
		}
	}
	for name, sources := range map[string][]*weekly{
		"a source without a span":    {always(5), always()},
		"spans of other hours":       {always(5), always(6)},
		"spans of hours that change": {always(5), always(7).changing(0, hour, 0)},
	} {
		f, a := finder(1<<30, sources...)
		if next, last := f.Next(-10*week, 20_000*week), f.Last(10*week, -20_000*week); next != civil.Never || last != civil.Beginning {
			t.Errorf("%s: %d, %d", name, next, last)
		}
		if a.n > 60 {
			t.Errorf("%s: %d sources were asked", name, a.n)
		}
	}
}

// TestWhatNeverMeetsInAWeekIsAskedOnce is about clocks that change to and fro: a week says it for
// all weeks with the same offsets.
func TestWhatNeverMeetsInAWeekIsAskedOnce(t *testing.T) {
	summer := always(5)
	for year := range int64(400) {
		summer.clocks = append(summer.clocks, stretch{(52*year + 1) * week, hour}, stretch{(52*year + 27) * week, 0})
	}
	f, a := finder(1<<30, summer, always(100))
	if got := f.Next(0, 400*52*week); got != civil.Never {
		t.Errorf("next %d", got)
	}
	ahead := a.n
	if got := f.Last(400*52*week, 0); got >= 0 {
		t.Errorf("last %d", got)
	}
	if ahead > 30 || a.n > ahead {
		t.Errorf("%d sources were asked ahead, and %d back, where the weeks were known", ahead, a.n-ahead)
	}
	f, a = finder(1<<30, summer, always(100))
	if got := f.Last(400*52*week, 0); got >= 0 || a.n > 30 {
		t.Errorf("last %d, asked %d", got, a.n)
	}
}

// TestAStretchOfExactlyAWeekSaysIt is about the shortest stretch of which the finder remembers
// that nothing meets in it.
func TestAStretchOfExactlyAWeekSaysIt(t *testing.T) {
	short := always(5)
	for i := range int64(200) {
		short.clocks = append(short.clocks, stretch{i * week, i % 2 * hour})
	}
	f, a := finder(1<<30, short, always(100))
	if got := f.Next(0, 200*week-1); got != civil.Never || a.n > 30 {
		t.Errorf("next %d, asked %d", got, a.n)
	}
	f, a = finder(1<<30, always(5).changing(0, hour, 0), always(100))
	_ = f.Last(week, -100*week)
	first := a.n
	if got := f.Last(week, -100*week); got != civil.Beginning || a.n != first {
		t.Errorf("last %d, asked %d more", got, a.n-first)
	}
}

func TestWhatAFinderRemembersHasABound(t *testing.T) {
	for offsets, again := range map[int64]bool{16: false, 17: true} {
		moving := always(5)
		for i := range offsets {
			moving.clocks = append(moving.clocks, stretch{2 * i * week, i * hour})
		}
		f, a := finder(1<<30, moving, always(100))
		_ = f.Next(0, 100*week)
		first := a.n
		if got := f.Next(0, 100*week); got != civil.Never || a.n > first != again {
			t.Errorf("%d offsets: next %d, asked %d, and %d more", offsets, got, first, a.n-first)
		}
	}
}

// TestAPartOfAWeekSaysNothingOfOthers is about clocks that change within the week that is looked
// at: what does not meet in it may meet once they are back.
func TestAPartOfAWeekSaysNothingOfOthers(t *testing.T) {
	there := always(5).changing(140*hour, 2*hour, 0).changing(10*week, 0, 0)
	f, _ := finder(1<<30, there, always(5))
	if got, want := f.Next(100*hour, 100*week), 10*week+5*hour; got != want {
		t.Errorf("next %d, not %d", got, want)
	}
	if got, want := f.Last(10*week+5*hour-1, -100*week), 6*hour-1; got != want {
		t.Errorf("last %d, not %d", got, want)
	}
}

// TestAWeekIsAskedNoFurtherThanItsEnd is about spans at the very end of the week that is looked at.
func TestAWeekIsAskedNoFurtherThanItsEnd(t *testing.T) {
	f, a := finder(1<<30, always(5), always(6))
	if got := f.Next(5*hour, 100*week); got != civil.Never || a.n != 4 {
		t.Errorf("next %d, asked %d", got, a.n)
	}
	f, a = finder(1<<30, always(5), always(4))
	if got := f.Last(6*hour-1, -100*week); got != civil.Beginning || a.n != 4 {
		t.Errorf("last %d, asked %d", got, a.n)
	}
}
