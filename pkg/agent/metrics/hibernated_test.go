package metrics

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
)

func TestHowLongResourcesSleep(t *testing.T) {
	now := time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC)
	h := newHibernated(func() time.Time { return now })
	h.set(map[string]int{"workload": 3, "rds": 1})
	now = now.Add(time.Minute)
	h.set(map[string]int{"workload": 1, "rds": 0})
	now = now.Add(30 * time.Second)
	m := New("v0")
	m.hibernated.now, m.hibernated.count, m.hibernated.slept, m.hibernated.until = h.now, h.count, h.slept, h.until
	got := scrape(t, m)
	for series, want := range map[string]string{
		`maint_hibernated_resources{executor="rds"}`: "0", `maint_hibernated_resources{executor="workload"}`: "1",
		`maint_hibernated_seconds_total{executor="rds"}`: "60", `maint_hibernated_seconds_total{executor="workload"}`: "210",
	} {
		if got[series] != want {
			t.Errorf("%s is %q, want %s", series, got[series], want)
		}
	}
	now = now.Add(-time.Hour) // a clock that was set back takes nothing away
	h.set(nil)
	if got := h.slept["workload"]; got != 210 {
		t.Errorf("%v seconds", got)
	}
}

func TestHowLongTheResourcesOfATargetSleep(t *testing.T) {
	m, all := New("v0"), troubled(true)
	all.Slept = func() []savings.Sleep {
		return []savings.Sleep{{Namespace: "shop", Plan: "nights", Slept: []ledger.Slept{
			{Target: "apps", Executor: "workload", Kind: "Deployment", Resources: 2, Hours: 3},
			{Target: "apps", Executor: "workload", Kind: "CronJob", Resources: 1, Hours: 0.5},
		}}}
	}
	m.CountTroubles(all)
	got := scrape(t, m)
	for series, want := range map[string]string{
		`maint_target_hibernated_seconds{executor="workload",namespace="shop",object="nights",resource="Deployment",target="apps"}`: "10800",
		`maint_target_hibernated_seconds{executor="workload",namespace="shop",object="nights",resource="CronJob",target="apps"}`:    "1800",
	} {
		if got[series] != want {
			t.Errorf("%s is %q, want %s", series, got[series], want)
		}
	}
}
