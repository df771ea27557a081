package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func drawInstant(t *rapid.T, label string) time.Time {
	return time.Unix(rapid.Int64Range(1577836800, 2240611200).Draw(t, label), 0).UTC() // 2020 to 2040
}

// drawWindows draws windows that mean something; what they mean is drawn from a
// seed, as the oracle draws it.
func drawWindows(t *rapid.T, label string) []schedule.Window {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, label), 1))
	var list []schedule.Window
	for range 1 + r.IntN(4) {
		w := drawWindow(r).spec
		if r.IntN(3) == 0 {
			w.Timezone = oracleZones[r.IntN(len(oracleZones))]
		}
		if _, err := schedule.ParseMaintenanceSchedule(&schedule.MaintenanceSchedule{Windows: []schedule.Window{w}}, nil); err == nil {
			list = append(list, w) // else it can never fire
		}
	}
	if len(list) == 0 {
		list = []schedule.Window{{Start: "22:00", End: "02:00"}}
	}
	return list
}

func drawExclusions(t *rapid.T, label string, near time.Time) []schedule.Exclusion {
	var list []schedule.Exclusion
	for i := range rapid.IntRange(0, 6).Draw(t, label) {
		from := near.AddDate(0, 0, rapid.IntRange(-20, 20).Draw(t, fmt.Sprint(label, i)))
		until := from.AddDate(0, 0, rapid.IntRange(1, 5).Draw(t, fmt.Sprint(label, i, "days")))
		list = append(list, schedule.Exclusion{FromDate: from.Format(time.DateOnly), UntilDate: until.Format(time.DateOnly)})
	}
	return list
}

func timelineOf(t *rapid.T, zone string, windows []schedule.Window, exclude []schedule.Exclusion) *schedule.Timeline {
	timeline, err := schedule.ParseMaintenanceSchedule(&schedule.MaintenanceSchedule{Timezone: zone, Windows: windows, Exclude: exclude}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return timeline
}

func TestOpenIfAndOnlyIfSomeWindowContainsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := drawInstant(t, "now")
		zone := rapid.SampledFrom(oracleZones).Draw(t, "zone")
		windows, exclude := drawWindows(t, "windows"), drawExclusions(t, "exclusions", now)
		contained := false
		for _, w := range windows {
			for interval := range timelineOf(t, zone, []schedule.Window{w}, nil).Intervals(now) {
				contained = contained || interval.Start == nil || !interval.Start.After(now)
				break // the first is the one around now, if there is any
			}
		}
		for _, e := range exclude {
			contained = contained && timelineOf(t, zone, nil, []schedule.Exclusion{e}).At(now).Open
		}
		if open := timelineOf(t, zone, windows, exclude).At(now).Open; open != contained {
			t.Fatalf("%s: open is %v, contained is %v", now, open, contained)
		}
	})
}

func TestUntilIsTheFirstChangeAndSinceTheLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := drawInstant(t, "now")
		zone := rapid.SampledFrom(oracleZones).Draw(t, "zone")
		windows, exclude := drawWindows(t, "windows"), drawExclusions(t, "exclusions", now)
		fresh := func() *schedule.Timeline { return timelineOf(t, zone, windows, exclude) } // without memory
		state := fresh().At(now)
		from, to := now.Add(-40*24*time.Hour), now.Add(40*24*time.Hour)
		if state.HasSince {
			from = state.Since
			if before := fresh().At(from.Add(-time.Second)); before.Open == state.Open || !before.Until.Equal(from) {
				t.Fatalf("%s: since %s, but before it %+v", now, from, before)
			}
		}
		if state.HasUntil {
			to = state.Until
			if then := fresh().At(to); then.Open == state.Open || !then.Since.Equal(to) {
				t.Fatalf("%s: until %s, but then %+v", now, to, then)
			}
		}
		for range 20 {
			between := time.Unix(rapid.Int64Range(from.Unix(), to.Unix()-1).Draw(t, "between"), 0)
			if got := fresh().At(between); got.Open != state.Open || got.HasUntil != state.HasUntil || !got.Until.Equal(state.Until) || !got.Since.Equal(state.Since) {
				t.Fatalf("%s: %+v, but at %s %+v", now, state, between, got)
			}
		}
	})
}

func TestUnionAndSubtractionAreThoseOfSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := drawInstant(t, "now")
		zone := rapid.SampledFrom(oracleZones).Draw(t, "zone")
		a, b := drawWindows(t, "a"), drawWindows(t, "b")
		x, y := drawExclusions(t, "x", now), drawExclusions(t, "y", now)
		open := func(windows []schedule.Window, exclude []schedule.Exclusion) bool {
			return timelineOf(t, zone, windows, exclude).At(now).Open
		}
		both, all := append(append([]schedule.Window{}, a...), b...), append(append([]schedule.Exclusion{}, x...), y...)
		reversed := append(append([]schedule.Window{}, b...), a...)
		switch {
		case open(both, nil) != (open(a, nil) || open(b, nil)):
			t.Fatal("the union is not open where either is")
		case open(both, x) != (open(a, x) || open(b, x)):
			t.Fatal("subtraction does not distribute over the union")
		case open(a, all) != (open(a, x) && open(a, y)):
			t.Fatal("two exclusions are not both subtracted")
		case open(a, append(x, x...)) != open(a, x):
			t.Fatal("subtracting twice is not subtracting once")
		case open(reversed, all) != open(both, all):
			t.Fatal("the order matters")
		}
	})
}

// What is asked before or after, by whom and how often, changes no answer.
func TestMemoryChangesNoVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := drawInstant(t, "now")
		windows, exclude := drawWindows(t, "windows"), drawExclusions(t, "exclusions", start)
		parse := func() *schedule.Policy {
			policy, err := schedule.ParsePolicy("p", schedule.PolicySpec{
				Strategy:            schedule.MaintenanceScheduled,
				MaintenanceSchedule: &schedule.MaintenanceSchedule{Timezone: "Europe/Berlin", Windows: windows, Exclude: exclude},
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return policy
		}
		old := parse()
		for range 10 {
			now := start.Add(time.Duration(rapid.Int64Range(-1e6, 1e6).Draw(t, "seconds")) * time.Second)
			if got, want := fmt.Sprint(plain(old.Verdict(now))), fmt.Sprint(plain(parse().Verdict(now))); got != want {
				t.Fatalf("%s: got %s, want %s", now, got, want)
			}
		}
	})
}

// plain writes out what a verdict points to.
func plain(v schedule.Verdict) []any {
	list := []any{v.Permitted, v.Ready, v.Reason, v.NextChangeETA, v.PermissiveRemaining, v.Next != nil}
	for _, at := range []*time.Time{v.Since, v.Until} {
		if at != nil {
			list = append(list, *at)
		}
	}
	if v.Next != nil && v.Next.End != nil {
		list = append(list, v.Next.Start, *v.Next.End)
	}
	return list
}

func TestASetFiresWheneverOneOfItsSchedulesDoesAndOnceWhereTheyMeet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		var set schedule.Set
		for range 1 + r.IntN(4) {
			d := drawCron(r)
			d.spec.Timezone = oracleZones[r.IntN(len(oracleZones))]
			if s, err := schedule.Parse(d.spec); err == nil {
				set = append(set, s)
			}
		}
		after := drawInstant(t, "after")
		for range 10 {
			slot, ok := set.Next(after)
			for i, s := range set {
				one, fires := s.Next(after)
				if fires && (!ok || one.At.Before(slot.At) || i < slot.Index && one.At.Equal(slot.At)) {
					t.Fatalf("after %s: %+v, but schedule %d has %+v", after, slot, i, one)
				}
			}
			if !ok {
				return
			}
			if one, _ := set[slot.Index].Next(after); one.Identity() != slot.Identity() || !slot.At.After(after) {
				t.Fatalf("after %s: %+v is not %+v", after, slot, one)
			}
			if last, ok := set.Last(slot.At); !ok || last != slot {
				t.Fatalf("the last at %s is %+v, not %+v", slot.At, last, slot)
			}
			if last, ok := set.Last(slot.At.Add(-time.Second)); ok && last.At.After(after) {
				t.Fatalf("%+v comes between %s and %s", last, after, slot.At)
			}
			after = slot.At
		}
	})
}
