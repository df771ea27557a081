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
