package schedule_test

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Antarctica/Troll goes from 01:00 to 03:00: both times of the schedule fall on
// the first instant after the gap, as one slot.
func TestLastAndNextNameTheSameSlotWhereAGapMovesTwoTimesToOneInstant(t *testing.T) {
	s, err := schedule.Parse(schedule.Spec{Cron: "14,33 2 * * *", Timezone: "Antarctica/Troll"})
	if err != nil {
		t.Fatal(err)
	}
	gap := time.Date(2025, 3, 30, 1, 0, 0, 0, time.UTC)
	next, _ := s.Next(gap.Add(-time.Hour))
	last, _ := s.Last(gap)
	if !next.At.Equal(gap) || last != next {
		t.Errorf("next %+v, last %+v", next, last)
	}
}

// Of schedules that meet, the slot is that of the first, looked at from before and from after.
func TestTheSlotOfSchedulesThatMeetIsThatOfTheFirst(t *testing.T) {
	var set schedule.Set
	for _, text := range []string{"", "0 1 * * *", "0 2 * * *", "0 2 * * *", "0 3 * * 6"} {
		if text == "" {
			set = append(set, nil) // one that could not be read
			continue
		}
		s, err := schedule.Parse(schedule.Spec{Cron: text})
		if err != nil {
			t.Fatal(err)
		}
		set = append(set, s)
	}
	two := time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)
	next, _ := set.Next(two.Add(-time.Minute))
	last, _ := set.Last(two)
	if next.Index != 2 || !next.At.Equal(two) || last != next {
		t.Errorf("next %+v, last %+v", next, last)
	}
	if slot, ok := (schedule.Set{nil}).Last(two); ok {
		t.Errorf("of nothing it is %+v", slot)
	}
}
