package preview

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// The agent ends each off-window of HibernatePlans as simulate says of the same documents, also those
// in which nobody looks.
func TestTheAgentSleepsAsIsSimulated(t *testing.T) {
	const spec = "schedule: {offHours: [{start: '23:45', end: '00:15'}, {start: '00:30', end: '00:40'}, {start: '00:45', end: '01:00'}, {start: '01:10', end: '01:20'}]}\ntargets: [{name: a, type: noop}, {name: b, type: noop}]\n"
	clock := func(text string) string { return "2000-03-26T" + text + ":00Z" }
	held := func(state, until string) map[string]string {
		return map[string]string{annotations.HoldState: state, annotations.HoldUntil: clock(until)}
	}
	notes := map[string]map[string]string{
		"plain":                nil,
		"skips-one":            {annotations.Skip: clock("00:30")},
		"skips-until":          {annotations.Skip: "until:" + clock("00:35")},
		"skips-what-has-begun": {annotations.Skip: "2000-03-25T23:45:00Z"},
		"paused":               {annotations.Pause: clock("00:50")},
		"paused-into-one":      {annotations.Pause: clock("00:05")},
		"held-awake":           held("awake", "00:20"),
		"held-awake-into-one":  held("awake", "00:05"),
		"held-asleep":          held("asleep", "00:20"),
		"gated":                nil,
	}
	play(t, func(w *world) {
		w.namespace(nil)
		w.policy("night", "strategy: MaintenanceSchedule\nmaintenanceSchedule: {timezone: Europe/Berlin, windows: [{start: '01:00', end: '01:30'}]}")
		for name, said := range notes {
			text := spec
			if name == "gated" {
				text += "policies: [{name: night}]\n"
			}
			w.hibernatePlan(name, text, said)
		}
		away := outage{evening().Add(50 * time.Minute), evening().Add(101 * time.Minute)} // from 00:21 to 01:12
		want := w.simulated(away)
		maps.DeleteFunc(want, func(key string, _ ending) bool { return strings.HasSuffix(key, " ") }) // held asleep beside off-windows
		w.through(away)
		got := map[string]ending{}
		for name := range notes {
			maps.Copy(got, w.slept(name))
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			w.Errorf("simulated and not done (-), done and not simulated (+):\n%s", diff)
		}
		for _, e := range []ending{{string(run.Skipped), run.ReasonSkip, ""}, {string(run.Skipped), run.ReasonHold, ""}, {string(run.Skipped), run.ReasonPaused, ""}, {string(run.Missed), run.ReasonCatchUp, ""}} {
			if !slices.Contains(slices.Collect(maps.Values(got)), e) {
				w.Errorf("no off-window is %v", e)
			}
		}
	})
}

// slept is what the ledger of a HibernatePlan says of the off-windows of the span.
func (w *world) slept(name string) map[string]ending {
	w.Helper()
	cm := w.ConfigMap(shop, name)
	parsed, faults := annotations.HibernatePlan(cm)
	table, err := hibernate.NewTimetable(parsed)
	if err != nil || len(faults) > 0 {
		w.Fatal(err, faults)
	}
	out := map[string]ending{}
	for window := range table.Windows(evening()) {
		if !window.Start.Before(evening().Add(span)) {
			break
		}
		for _, e := range w.ledger(cm).Recent {
			if first, last := cmp.Or(e.First, e.Slot), cmp.Or(e.Last, e.Slot); first != nil && !window.Start.Before(*first) && !window.Start.After(*last) {
				out[name+" "+window.Start.UTC().Format(time.RFC3339)] = ending{string(e.Result), cmp.Or(e.Reason, string(e.Kind)), minute(e.StartedAt)}
			}
		}
	}
	return out
}
