package schedule_test

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/teambition/rrule-go"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Run side by side with what others use: go test -bench . ./pkg/schedule

func mustParse(tb testing.TB, spec schedule.Spec) *schedule.Schedule {
	tb.Helper()
	s, err := schedule.Parse(spec)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func BenchmarkCronNext(b *testing.B) {
	after := time.Date(2026, 8, 4, 10, 30, 0, 0, time.UTC)
	for _, c := range []struct{ name, cron string }{
		{"daily", "30 2 * * *"}, {"weekly", "0 2 * * 6"}, {"29 February", "0 2 29 2 *"}, {"quarter hourly", "*/15 * * * *"},
	} {
		ours := mustParse(b, schedule.Spec{Cron: c.cron, Timezone: "America/New_York"})
		b.Run(c.name+"/instant", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ours.NextTime(after)
			}
		})
		b.Run(c.name+"/slot", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ours.Next(after)
			}
		})
		theirs, err := cron.ParseStandard("CRON_TZ=America/New_York " + c.cron)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name+"/robfig", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				theirs.Next(after)
			}
		})
	}
}

func BenchmarkRRuleNext(b *testing.B) {
	after := time.Date(2026, 8, 4, 10, 30, 0, 0, time.UTC)
	location, err := schedule.LoadZone("America/New_York")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, rule string }{
		{"daily", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30"},
		{"second Tuesdays", "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=2"},
		{"every third week", "FREQ=WEEKLY;INTERVAL=3;BYDAY=SA,SU;BYHOUR=2"},
		{"last workday", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=2"},
		{"yearly", "FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU;BYHOUR=2"},
		{"every 7 hours", "FREQ=HOURLY;INTERVAL=7"},
	} {
		ours := mustParse(b, schedule.Spec{RRule: c.rule, Timezone: "America/New_York"})
		b.Run(c.name+"/instant", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ours.NextTime(after)
			}
		})
		option, err := rrule.StrToROption(c.rule + ";BYMINUTE=0;BYSECOND=0")
		if err != nil {
			option, err = rrule.StrToROption(c.rule + ";BYSECOND=0")
		}
		if err != nil {
			b.Fatal(err)
		}
		option.Dtstart = time.Date(1970, 1, 1, 0, 0, 0, 0, location)
		theirs, err := rrule.NewRRule(*option)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name+"/rrule-go", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				theirs.After(after, false)
			}
		})
	}
}

// BenchmarkTenThousandPlans finds the next slot of as many plans as one agent
// is made for.
func BenchmarkTenThousandPlans(b *testing.B) {
	zones := []string{"UTC", "America/New_York", "Europe/Berlin", "Asia/Jakarta", "Australia/Lord_Howe"}
	specs := []schedule.Spec{{Cron: "30 2 * * *"}, {Cron: "0 2 * * 6"}, {RRule: "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=2"}, {Cron: "*/15 8-17 * * 1-5"}}
	var plans []schedule.Set
	for i := range 10_000 {
		spec := specs[i%len(specs)]
		spec.Timezone = zones[i%len(zones)]
		plans = append(plans, schedule.Set{mustParse(b, spec)})
	}
	after := time.Date(2026, 8, 4, 10, 30, 0, 0, time.UTC)
	for b.Loop() {
		for _, plan := range plans {
			plan.Next(after)
		}
	}
}
