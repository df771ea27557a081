package ledger

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
