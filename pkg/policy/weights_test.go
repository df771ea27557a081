package policy_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// yearly is a calendar of so many events of a floating time that recur.
func yearly(t *testing.T, events int) *schedule.Calendar {
	t.Helper()
	var b strings.Builder
	b.WriteString("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\n")
	for i := range events {
		fmt.Fprintf(&b, "BEGIN:VEVENT\nUID:%d\nDTSTAMP:20200101T000000Z\nDTSTART:20200101T%02d%02d00\nDURATION:PT1M\nRRULE:FREQ=YEARLY;BYDAY=MO,TU,WE;BYMONTH=1,2,3\nEND:VEVENT\n", i, i/60%24, i%60)
	}
	b.WriteString("END:VCALENDAR\n")
	c, faults := policy.ParseCalendarICS([]byte(b.String()))
	if c == nil || len(faults) > 0 {
		t.Fatal(faults)
	}
	return c
}

func excluding(namespace, name, zone string) policy.State {
	return policy.State{Namespace: namespace, Name: name, Spec: policy.PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: &schedule.MaintenanceSchedule{
		Timezone: zone, Exclude: []schedule.Exclusion{{Calendar: &schedule.CalendarRef{Name: "busy"}}},
	}}}
}

func zones() []string {
	var out []string
	for i := 1; i <= 12; i++ {
		out = append(out, fmt.Sprintf("Etc/GMT+%d", i), fmt.Sprintf("Etc/GMT-%d", i))
	}
	return append(out, "Europe/Berlin", "Europe/Paris", "Europe/Rome", "Europe/Madrid", "Europe/Vienna", "Asia/Tokyo", "Asia/Seoul", "America/Lima")
}

// A calendar is on the clock once for each zone that uses it. What that takes together is bounded for
// each namespace, whoever comes first, and other namespaces notice nothing.
func TestPoliciesOfManyZonesTakeTheMemoryOfTheirBound(t *testing.T) {
	b := policy.NewResolver("maint-system")
	for _, namespace := range []string{"hostile", "shop", "maint-system"} {
		b.PutCalendar(namespace, "busy", yearly(t, 1300))
	}
	b.PutPolicy(excluding("shop", "p", "Europe/Berlin"))
	b.PutPolicy(policy.State{Namespace: "hostile", Name: "open", Spec: policy.PolicySpec{Strategy: schedule.Permissive}})
	reason := func(namespace, name string) string {
		p := b.Policy(namespace, name)
		if p.Ready(time.Unix(1e9, 0)) {
			return ""
		}
		return p.Verdict(time.Unix(1e9, 0)).Reason
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i, zone := range zones() {
		b.PutPolicy(excluding("hostile", fmt.Sprintf("p%d", i), zone))
		b.PutPolicy(excluding("maint-system", fmt.Sprintf("p%d", i), zone))
		for j := range i + 1 {
			why, tooMuch := reason("hostile", fmt.Sprintf("p%d", j)), i >= 15
			if strings.Contains(why, "the policies of namespace hostile hold together") != tooMuch {
				t.Fatalf("of %d zones, the %d.: %q", i+1, j+1, why)
			}
		}
		if got := reason("maint-system", fmt.Sprintf("p%d", i)) + reason("shop", "p") + reason("hostile", "open"); got != "" {
			t.Fatalf("of %d zones: %s", i+1, got)
		}
	}
	for i := range zones() {
		b.DropPolicy("maint-system", fmt.Sprintf("p%d", i))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grew := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; grew > 4 {
		t.Errorf("%d MiB are held for what is not ready", grew)
	}
	for i := 15; i < len(zones()); i++ {
		b.DropPolicy("hostile", fmt.Sprintf("p%d", i))
	}
	if got := reason("hostile", "p0"); got != "" {
		t.Errorf("after the others are gone: %s", got)
	}
	runtime.KeepAlive(b)
}

// Policies of one zone share what they hold of a calendar, in whatever order zones come.
func TestPoliciesOfOneZoneShareACalendarAmongManyZones(t *testing.T) {
	b := policy.NewResolver("maint-system")
	b.PutCalendar("maint-system", "busy", yearly(t, 300))
	var before, after runtime.MemStats
	grown := func(rounds int) int64 {
		runtime.GC()
		runtime.ReadMemStats(&before)
		for round := range rounds {
			for i, zone := range zones() {
				b.PutPolicy(excluding("maint-system", fmt.Sprintf("p%d-%d", i, round), zone))
				b.Policy("maint-system", fmt.Sprintf("p%d-%d", i, round))
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		return int64(after.HeapAlloc) - int64(before.HeapAlloc)
	}
	if one, more := grown(1), grown(4); more > 2*one {
		t.Errorf("four more policies of each zone take %d KiB, the first ones %d", more>>10, one>>10)
	}
	runtime.KeepAlive(b)
}
