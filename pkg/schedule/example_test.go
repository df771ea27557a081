package schedule_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// show prints slots after an instant, in UTC, as the clocks show them, and as
// they are named.
func show(spec schedule.Spec, after string, count int) {
	s, err := schedule.Parse(spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	from, _ := time.Parse(time.RFC3339, after)
	for range count {
		slot, ok := s.Next(from)
		if !ok {
			fmt.Println("no more")
			return
		}
		fmt.Println(strings.TrimSpace(fmt.Sprintln(slot.At.Format(time.RFC3339), slot.Local().Format("15:04-07:00"), slot.Identity(), slot.Note)))
		from = slot.At
	}
}

// A time that clocks jump over fires at the first valid instant after it.
func ExampleSchedule_Next_gap() {
	show(schedule.Spec{Cron: "30 2 * * *", Timezone: "America/New_York"}, "2026-03-07T12:00:00Z", 2)
	// Output:
	// 2026-03-08T07:00:00Z 03:00-04:00 2026-03-08T02:30:00-05:00[America/New_York] gap
	// 2026-03-09T06:30:00Z 02:30-04:00 2026-03-09T02:30:00-04:00[America/New_York]
}

// A time that clocks show twice fires once, at the first.
func ExampleSchedule_Next_overlap() {
	show(schedule.Spec{Cron: "30 1 * * *", Timezone: "America/New_York"}, "2026-10-31T12:00:00Z", 2)
	// Output:
	// 2026-11-01T05:30:00Z 01:30-04:00 2026-11-01T01:30:00-04:00[America/New_York] overlap
	// 2026-11-02T06:30:00Z 01:30-05:00 2026-11-02T01:30:00-05:00[America/New_York]
}

// Hours that cover all 24 follow real time: both passes of an overlap.
func ExampleSchedule_Next_realTime() {
	show(schedule.Spec{Cron: "15 * * * *", Timezone: "America/New_York"}, "2026-11-01T05:00:00Z", 3)
	// Output:
	// 2026-11-01T05:15:00Z 01:15-04:00 2026-11-01T01:15:00-04:00[America/New_York] overlap
	// 2026-11-01T06:15:00Z 01:15-05:00 2026-11-01T01:15:00-05:00[America/New_York] overlap
	// 2026-11-01T07:15:00Z 02:15-05:00 2026-11-01T02:15:00-05:00[America/New_York]
}

// Lord Howe's clocks move by half an hour.
func ExampleSchedule_Next_lordHowe() {
	show(schedule.Spec{Cron: "15 2 * * *", Timezone: "Australia/Lord_Howe"}, "2026-10-03T00:00:00Z", 2)
	show(schedule.Spec{Cron: "45 1 * * *", Timezone: "Australia/Lord_Howe"}, "2026-04-03T20:00:00Z", 2)
	// Output:
	// 2026-10-03T15:30:00Z 02:30+11:00 2026-10-04T02:15:00+10:30[Australia/Lord_Howe] gap
	// 2026-10-04T15:15:00Z 02:15+11:00 2026-10-05T02:15:00+11:00[Australia/Lord_Howe]
	// 2026-04-04T14:45:00Z 01:45+11:00 2026-04-05T01:45:00+11:00[Australia/Lord_Howe] overlap
	// 2026-04-05T15:15:00Z 01:45+10:30 2026-04-06T01:45:00+10:30[Australia/Lord_Howe]
}

// Cairo's and Santiago's clocks jump over midnight.
func ExampleSchedule_Next_midnight() {
	show(schedule.Spec{Cron: "0 0 * * *", Timezone: "Africa/Cairo"}, "2026-04-23T00:00:00Z", 1)
	show(schedule.Spec{RRule: "FREQ=DAILY", Timezone: "America/Santiago"}, "2026-09-05T12:00:00Z", 1)
	// Output:
	// 2026-04-23T22:00:00Z 01:00+03:00 2026-04-24T00:00:00+02:00[Africa/Cairo] gap
	// 2026-09-06T04:00:00Z 01:00-03:00 2026-09-06T00:00:00-04:00[America/Santiago] gap
}

// Apia had no 30 December 2011, and so no slot on it.
func ExampleSchedule_Next_apia() {
	show(schedule.Spec{Cron: "0 12 * * *", Timezone: "Pacific/Apia"}, "2011-12-29T00:00:00Z", 2)
	// Output:
	// 2011-12-29T22:00:00Z 12:00-10:00 2011-12-29T12:00:00-10:00[Pacific/Apia]
	// 2011-12-30T22:00:00Z 12:00+14:00 2011-12-31T12:00:00+14:00[Pacific/Apia]
}

// Eight hours are eight hours, and six o'clock is six o'clock.
func ExampleTimeline_Intervals() {
	timeline, err := schedule.ParseMaintenanceSchedule(&schedule.MaintenanceSchedule{
		Timezone: "Europe/Berlin",
		Windows: []schedule.Window{
			{Days: []string{"Sat"}, Start: "22:00", End: "06:00"},
			{Cron: "0 22 * * 1", Duration: "8h"},
		},
		Exclude: []schedule.Exclusion{{FromDate: "2026-03-31", Reason: "quarter end"}},
	}, nil)
	if err != nil {
		fmt.Println(err)
	}
	shown := 0
	for interval := range timeline.Intervals(time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)) {
		fmt.Println(strings.TrimSpace(fmt.Sprintln(interval.Start.Format(time.RFC3339), interval.End.Format(time.RFC3339), interval.Note)))
		if shown++; shown == 3 {
			break
		}
	}
	// Output:
	// 2026-03-28T21:00:00Z 2026-03-29T04:00:00Z clock change
	// 2026-03-30T20:00:00Z 2026-03-30T22:00:00Z excluded: quarter end
	// 2026-04-04T20:00:00Z 2026-04-05T04:00:00Z
}

// Permissive until 21:00, over a window that stays open to 04:00, is permissive
// to 04:00.
func ExampleGate_Verdict() {
	policy, err := schedule.ParsePolicy("nightly", schedule.PolicySpec{
		Strategy:            schedule.MaintenanceScheduled,
		MaintenanceSchedule: &schedule.MaintenanceSchedule{Windows: []schedule.Window{{Start: "20:00", End: "04:00"}}},
	}, nil)
	if err != nil {
		fmt.Println(err)
	}
	until := time.Date(2026, 8, 3, 21, 0, 0, 0, time.UTC)
	gate := schedule.NewGate(schedule.GateSpec{
		Own: schedule.Stanza{Strategy: schedule.PermissiveUntil, Until: &until, Policies: []*schedule.Policy{policy}},
	})
	verdict := gate.Verdict(time.Date(2026, 8, 3, 18, 0, 0, 0, time.UTC))
	fmt.Println(verdict.Permitted, verdict.Until.Format(time.RFC3339), verdict.PermissiveRemaining, verdict.Reason)
	// Output:
	// true 2026-08-04T04:00:00Z 36000 PermissiveUntil 2026-08-03T21:00:00Z
}
