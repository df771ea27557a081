package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestWhatSleptStandsWithItsSlot(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 3, 2, hour, 0, 0, 0, time.UTC) }
	slept := []Slept{{Target: "apps", Executor: "workload", Kind: "Deployment", Resources: 1, Hours: 2}}
	l := Ledger{}.Record(Entry{Kind: run.BySchedule, Slot: new(at(1)), Result: run.Ran, StartedAt: new(at(1)), At: at(1)}).
		Record(Entry{Kind: run.BySchedule, Slot: new(at(5)), Result: run.Ran, StartedAt: new(at(5)), At: at(5)}).
		Record(Entry{Kind: run.BySchedule, Slot: new(at(7)), Result: run.Missed, Reason: run.ReasonWindow, At: at(8)}).
		Record(Entry{Kind: run.BySchedule, Slot: new(at(9)), Result: run.Missed, Reason: run.ReasonWindow, At: at(10)})
	before := len(l.Recent)
	got := l.RecordSlept(at(5), slept, at(12))
	if diff := cmp.Diff(slept, got.Recent[1].Slept); diff != "" || got.Recent[0].Slept != nil || !got.Recent[1].EndedAt.Equal(at(12)) {
		t.Errorf("%s %+v", diff, got.Recent)
	}
	if again := got.RecordSlept(at(5), slept, at(12)); !cmp.Equal(got, again) || len(again.Recent) != before {
		t.Error("the second time is another entry")
	}
	if l.Recent[1].Slept != nil {
		t.Error("the ledger that was given has changed")
	}
	own := got.RecordSlept(at(11), slept, at(12)) // held asleep by somebody
	if last := own.Recent[len(own.Recent)-1]; last.Kind != run.ByToken || last.Slot != nil || !last.StartedAt.Equal(at(11)) || own.Totals[run.Ran] != 3 {
		t.Errorf("%+v", own)
	}
	odd := Ledger{Recent: append(slices.Clone(l.Recent[:2]), Entry{Result: run.Ran, At: at(6)}, Entry{Result: run.Missed, StartedAt: new(at(6)), At: at(6)})}
	if got := odd.RecordSlept(at(5), slept, at(12)); len(got.Recent) != 4 || got.Recent[1].Slept == nil || got.Recent[2].Slept != nil || got.Recent[3].Slept != nil {
		t.Errorf("nobody slept where nothing ran, or nobody says when: %+v", got.Recent)
	}
	for slot, want := range map[int]bool{1: true, 5: true, 7: true, 8: true, 9: true, 2: false, 12: false} { // between the first and the last of a fold
		if got.HasSlot(at(slot)) != want {
			t.Errorf("slot %d: %t", slot, !want)
		}
	}
}

// A plan may have a thousand targets, and its head holds forty nights: it stays within what an object
// can hold, and the sleep that has just begun stays in it.
func TestTheHoursOfManyTargetsFillNoHead(t *testing.T) {
	night := func(n int) time.Time { return time.Date(2026, 3, 1, 20, 0, 0, 0, time.UTC).AddDate(0, 0, n) }
	var slept []Slept
	for i := range 1000 {
		slept = append(slept, Slept{Target: fmt.Sprint("t", i), Executor: "ec2", Kind: "m5.large", Resources: 3, Hours: 30.123456789, UnitHours: map[string]float64{"m5.large": 30.123456789}})
	}
	var l Ledger
	archived := 0
	for n := range 12 {
		at := night(n)
		var batch []Entry
		l, batch = l.Record(Entry{Kind: run.BySchedule, Slot: &at, Result: run.Ran, StartedAt: &at, At: at}).Overflow()
		archived += len(batch)
		if newest := l.Recent[len(l.Recent)-1]; !newest.Slot.Equal(at) {
			t.Fatalf("the newest is of %s", newest.Slot)
		}
		l, batch = l.RecordSlept(at, slept, at.Add(10*time.Hour)).Overflow()
		archived += len(batch)
		if text, err := json.Marshal(l); err != nil || len(text) > 900<<10 {
			t.Fatalf("after %d nights the head has %d KiB: %v", n+1, len(text)>>10, err)
		}
		if again, none := l.Overflow(); none != nil || len(again.Recent) != len(l.Recent) {
			t.Fatalf("%d more go", len(none))
		}
		if len(l.Recent)+archived != n+1 {
			t.Fatalf("of %d nights %d stay and %d went", n+1, len(l.Recent), archived)
		}
	}
}

// The newest two nights stay whatever they take; of the others as many as fit.
func TestWhichNightsFitBesideTheNewer(t *testing.T) {
	units := map[string]float64{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}
	const kib = 400
	for name, one := range map[string]Slept{
		"of 100 bytes":             {},
		"with a target of 100":     {Target: strings.Repeat("x", 100)},
		"with an executor of 100":  {Executor: strings.Repeat("x", 100)},
		"with a kind of 100":       {Kind: strings.Repeat("x", 100)},
		"with five units, and 100": {Target: strings.Repeat("x", 100), UnitHours: units},
	} {
		bytes := 100 + len(one.Target) + len(one.Executor) + len(one.Kind) + 40*len(one.UnitHours)
		fits := kib << 10 / bytes
		head := func(slept ...int) (l Ledger) {
			for _, n := range slept {
				l.Recent = append(l.Recent, Entry{Slept: slices.Repeat([]Slept{one}, n)})
			}
			return l
		}
		for _, c := range []struct {
			of   Ledger
			want int
		}{
			{head(1, fits-2, 1), 0},
			{head(1, 0, fits-2, 1), 0},
			{head(0, 2, 0, fits-2, 1), 2},
			{head(1, 1, fits, fits), 2},
			{head(1, fits, fits), 1},
			{head(fits, fits), 0},
			{head(3 * fits), 0},
		} {
			if got := c.of.beyondHours(); got != c.want {
				t.Errorf("%s: of %d nights %d go, want %d", name, len(c.of.Recent), got, c.want)
			}
		}
	}
}

func TestASkipOfTheNextOffWindowIsUsedUpByTheOneThatItMet(t *testing.T) {
	met, other := time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC), time.Date(2026, 3, 9, 20, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		l    *Ledger
		skip intent.Skip
		want intent.Skip
	}{
		{"it has met one", &Ledger{NextSlot: &met}, intent.Skip{Next: true}, intent.Skip{Slots: []time.Time{met}}},
		{"besides others by name", &Ledger{NextSlot: &met}, intent.Skip{Next: true, Slots: []time.Time{other}}, intent.Skip{Slots: []time.Time{other, met}}},
		{"it has met none", &Ledger{}, intent.Skip{Next: true}, intent.Skip{Next: true}},
		{"there is no ledger yet", nil, intent.Skip{Next: true}, intent.Skip{Next: true}},
		{"another skip", &Ledger{NextSlot: &met}, intent.Skip{Slots: []time.Time{other}}, intent.Skip{Slots: []time.Time{other}}},
	} {
		if diff := cmp.Diff(c.want, c.l.NamedSkip(c.skip)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestWhichSleepsHaveEnded(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 3, 2, hour, 0, 0, 0, time.UTC) }
	open, over := &LastSleep{BeganAt: at(5)}, &LastSleep{BeganAt: at(5), EndedAt: new(at(8))}
	for _, c := range []struct {
		name  string
		s     *LastSleep
		began int
		ended bool
		next  time.Time // that begins then
	}{
		{"none is known", nil, 5, false, at(5)},
		{"one before the one that is open", open, 4, true, at(5)},
		{"the one that is open", open, 5, false, at(5)},
		{"one after it", open, 6, false, at(6)},
		{"one before the one that is over", over, 4, true, at(8).Add(time.Nanosecond)},
		{"the one that is over", over, 5, true, at(8).Add(time.Nanosecond)},
		{"one before its end", over, 7, true, at(8).Add(time.Nanosecond)},
		{"one at its end", over, 8, true, at(8).Add(time.Nanosecond)},
		{"one after its end", over, 9, false, at(9)},
	} {
		if got := c.s.HasEnded(at(c.began)); got != c.ended {
			t.Errorf("%s: it has ended: %t", c.name, got)
		}
		if got := c.s.Next(at(c.began)); !got.Equal(c.next) {
			t.Errorf("%s: the next begins at %s, want %s", c.name, got, c.next)
		}
		noted, is := Ledger{LastSleep: c.s}.SleepBegan(at(c.began))
		if want := !c.ended && (c.s == nil || c.began != 5); is != want || want && !cmp.Equal(noted.LastSleep, &LastSleep{BeganAt: at(c.began)}) || !want && noted.LastSleep != c.s {
			t.Errorf("%s: that it began is noted: %t, %+v", c.name, is, noted.LastSleep)
		}
	}
}

func TestWhichOfTwoSaysMoreOfTheSleeps(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 3, 2, hour, 0, 0, 0, time.UTC) }
	open, over, later := &LastSleep{BeganAt: at(5)}, &LastSleep{BeganAt: at(5), EndedAt: new(at(8))}, &LastSleep{BeganAt: at(6)}
	for _, c := range []struct {
		name       string
		s, o, want *LastSleep
	}{
		{"neither is known", nil, nil, nil},
		{"the first alone", open, nil, open},
		{"the second alone", nil, open, open},
		{"the first is over", over, open, over},
		{"the second is over", open, over, over},
		{"the first began later", later, over, later},
		{"the second began later", over, later, later},
	} {
		if got := c.s.Newer(c.o); got != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestWhyNothingSleepsIsNotedOnce(t *testing.T) {
	night := func(day int) time.Time { return time.Date(2026, 3, day, 20, 0, 0, 0, time.UTC) }
	by := func(name, said string) Cause { return Cause{Said: said, Actor: intent.Actor{Name: name}} }
	was := Awake{Slot: night(2), Reason: run.ReasonSkip, By: by("jane", "skip by jane")}
	is := func(edit func(*Awake)) *Awake {
		a := was
		edit(&a)
		return &a
	}
	slept := Ledger{Recent: []Entry{{Slot: new(night(3)), Result: run.Ran}}}
	for _, c := range []struct {
		name string
		l    Ledger
		a    *Awake
		want bool
	}{
		{"something sleeps", Ledger{Awake: &was}, nil, false},
		{"the first night", Ledger{}, is(func(*Awake) {}), true},
		{"it is noted", Ledger{Awake: &was}, is(func(*Awake) {}), false},
		{"in other words", Ledger{Awake: &was}, is(func(a *Awake) { a.By.Said = "skipped" }), false},
		{"by somebody else", Ledger{Awake: &was}, is(func(a *Awake) { a.By = by("joe", "skip by jane") }), true},
		{"for another reason", Ledger{Awake: &was}, is(func(a *Awake) { a.Reason = run.ReasonPaused }), true},
		{"on another night", Ledger{Awake: &was}, is(func(a *Awake) { a.Slot = night(3) }), true},
		{"on a night that has its entry", slept, is(func(a *Awake) { a.Slot = night(3) }), false},
	} {
		got, noted := c.l.StaysAwake(c.a)
		if noted != c.want {
			t.Errorf("%s: noted %t", c.name, noted)
		}
		want := c.l.Awake
		if c.want {
			want = c.a
		}
		if diff := cmp.Diff(want, got.Awake); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if long, _ := (Ledger{}).StaysAwake(is(func(a *Awake) { a.By.Said = strings.Repeat("x", 9999) })); len(long.Awake.By.Said) != 256 {
		t.Errorf("its words take %d bytes", len(long.Awake.By.Said))
	}
}
