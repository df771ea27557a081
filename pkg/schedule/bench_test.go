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

// tenWindows is a policy of ten windows of all kinds and fifty exclusions.
func tenWindows() schedule.PolicySpec {
	stanza := &schedule.MaintenanceSchedule{
		Timezone: "Europe/Berlin",
		Permit:   &schedule.Permit{Recurrence: weekly("Saturday"), StartTime: "01:00", Duration: "4h"},
		Windows: []schedule.Window{
			{Days: []string{"Fri"}, Start: "22:00", End: "02:00"},
			{Days: []string{"Sun"}, Start: "22:00", End: "06:00"},
			{Days: []string{"Mon", "Wed"}, Start: "03:00", End: "04:00"},
			{Start: "05:00", End: "05:30"},
			{Cron: "0 2 * * 2", Duration: "2h"},
			{Cron: "30 4 1 * *", Duration: "90m"},
			{Cron: "0 1 * * 4", Duration: "1h", Timezone: "America/New_York"},
			{RRule: "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=20", Duration: "6h"},
			{RRule: "FREQ=WEEKLY;INTERVAL=2;BYDAY=TH;BYHOUR=2", Duration: "2h"},
		},
	}
	for i := range 50 {
		day := time.Date(2026, 1, 1+7*i, 0, 0, 0, 0, time.UTC)
		stanza.Exclude = append(stanza.Exclude, schedule.Exclusion{FromDate: day.Format(time.DateOnly), Reason: "freeze"})
	}
	return schedule.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: stanza}
}

func BenchmarkVerdict(b *testing.B) {
	now := time.Date(2026, 8, 4, 10, 30, 0, 0, time.UTC)
	policy := mustPolicy(b, "p", tenWindows())
	gate := schedule.NewGate(schedule.GateSpec{Policies: []*schedule.Policy{policy}})
	b.Run("steady", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			gate.Verdict(now)
		}
	})
	b.Run("never asked before", func(b *testing.B) { // since, until and the end of the next stretch
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			gate.Verdict(now.Add(time.Duration(i%1000*60) * time.Hour))
		}
	})
}

// BenchmarkNeverCloses is the worst case of a change: there is none, and no
// single window says so.
func BenchmarkNeverCloses(b *testing.B) {
	now := time.Date(2026, 8, 4, 10, 30, 0, 0, time.UTC)
	for b.Loop() {
		b.StopTimer()
		timeline := mustTimeline(b, schedule.MaintenanceSchedule{Timezone: "America/New_York", Windows: []schedule.Window{
			{Days: []string{"Mon", "Tue", "Wed", "Thu", "Fri"}, Start: "00:00", End: "24:00"}, {Days: []string{"Sat", "Sun"}, Start: "00:00", End: "24:00"},
		}})
		b.StartTimer()
		timeline.At(now)
	}
}

// The promise is a number, so it is a test.
func TestASteadyVerdictAndTheNextInstantDoNotAllocate(t *testing.T) {
	now := time.Date(2026, 8, 4, 10, 30, 0, 0, time.UTC)
	policy := mustPolicy(t, "p", tenWindows())
	if n := testing.AllocsPerRun(100, func() { policy.Verdict(now) }); n != 0 {
		t.Errorf("a verdict allocates %v times", n)
	}
	for _, spec := range []schedule.Spec{{Cron: "0 2 * * 6"}, {RRule: "FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1"}, {RRule: "FREQ=HOURLY;INTERVAL=7"}} {
		s := mustParse(t, spec)
		if n := testing.AllocsPerRun(100, func() { s.NextTime(now) }); n != 0 {
			t.Errorf("the next instant of %+v allocates %v times", spec, n)
		}
	}
}
