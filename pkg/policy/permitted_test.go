package policy_test

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func TestHowMuchTimeAPolicyPermits(t *testing.T) {
	const day = 24 * time.Hour
	from := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC) // a Monday
	window := func(w ...schedule.Window) schedule.PolicySpec {
		return schedule.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: &schedule.MaintenanceSchedule{Windows: w}}
	}
	frozen := window(schedule.Window{Days: []string{"Sat"}, Start: "01:00", End: "03:00"})
	frozen.MaintenanceSchedule.Exclude = []schedule.Exclusion{{FromDate: "2026-03-07", UntilDate: "2026-03-22"}}
	for name, c := range map[string]struct {
		spec   schedule.PolicySpec
		span   time.Duration
		enough time.Duration
		want   time.Duration
		known  bool
	}{
		"always":                             {spec: schedule.PolicySpec{Strategy: schedule.Permissive}, span: 30 * day, enough: 8 * time.Hour, want: 8 * time.Hour, known: true},
		"never":                              {spec: schedule.PolicySpec{Strategy: schedule.Restrictive}, span: 30 * day, enough: 8 * time.Hour, want: 0, known: true},
		"two hours a week":                   {spec: window(schedule.Window{Days: []string{"Sat"}, Start: "01:00", End: "03:00"}), span: 28 * day, enough: 100 * time.Hour, want: 8 * time.Hour, known: true},
		"no more than is enough":             {spec: window(schedule.Window{Days: []string{"Sat"}, Start: "01:00", End: "03:00"}), span: 28 * day, enough: 5 * time.Hour, want: 5 * time.Hour, known: true},
		"less what is excluded":              {spec: frozen, span: 28 * day, enough: 100 * time.Hour, want: 2 * time.Hour, known: true},
		"a window that is open at the start": {spec: window(schedule.Window{Days: []string{"Sun"}, Start: "22:00", End: "02:00"}), span: day, enough: day, want: 2 * time.Hour, known: true},
		"a window that the end cuts":         {spec: window(schedule.Window{Days: []string{"Mon"}, Start: "22:00", End: "02:00"}), span: day, enough: day, want: 2 * time.Hour, known: true},
		"more windows than are added up":     {spec: window(schedule.Window{Cron: "* * * * *", Duration: "30s"}), span: 30 * day, enough: 700 * time.Hour, want: 5000 * 30 * time.Second, known: false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := schedule.ParsePolicy("p", c.spec, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, known := policy.PermittedWithin(p, from, c.span, c.enough); got != c.want || known != c.known {
				t.Errorf("%s, known %t; want %s, %t", got, known, c.want, c.known)
			}
		})
	}
}
