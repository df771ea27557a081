package simulate_test

import (
	"fmt"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/simulate"
)

// A year of a hundred plans that run every night, half of them in a window.
func BenchmarkAYearOfAHundredPlans(b *testing.B) {
	s := simulate.Scenario{Resolver: windows("22:00", "04:00"), NameOf: nameOf, Span: simulate.Span{From: at("2026-01-01 00:00"), To: at("2027-01-01 00:00")}}
	for i := range 100 {
		p := nightly(named(fmt.Sprintf("p%02d", i)), cron(fmt.Sprintf("%d %d * * *", i%60, i%6)))
		if i%2 == 0 {
			inWindow(&p)
		}
		s.Plans = append(s.Plans, p)
	}
	b.ReportAllocs()
	for b.Loop() {
		out, err := simulate.Run(s)
		if err != nil || len(out.Entries) != 36500 {
			b.Fatalf("%d entries, %v", len(out.Entries), err)
		}
	}
}

func BenchmarkAYearOfOneHourlyPlan(b *testing.B) {
	s := simulate.Scenario{NameOf: nameOf, Span: simulate.Span{From: at("2026-01-01 00:00"), To: at("2027-01-01 00:00")}, Plans: []simulate.Plan{nightly(cron("0 * * * *"), holds("10m"))}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := simulate.Run(s); err != nil {
			b.Fatal(err)
		}
	}
}
