package preview

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// worlds is how many drawn worlds are tried. Each is drawn by its number alone.
const worlds = 8

// span is the time in which something happens.
const span = 2 * time.Hour

func drawn[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// names are the plans that there may be.
const names = "abcdefgh"

// draw puts plans into a cluster, up to as many as said, whose time and order may go wrong. Those
// that are together have one target, and may run when they are created: where several runs wait
// for the same, any may be next.
func draw(w *world, r *rand.Rand, most int, together bool) []string {
	night := func() string {
		return evening().Add(time.Duration(r.IntN(int(span/time.Minute))) * time.Minute).Format(time.RFC3339)
	}
	w.namespace(drawn(r, nil, nil, map[string]string{annotations.Pause: night()}, map[string]string{annotations.ChangeStrategy: "RestrictiveUntil", annotations.RestrictiveUntil: night()}))
	w.policy("night", "strategy: MaintenanceSchedule\nmaintenanceSchedule: {timezone: Europe/Berlin, windows: [{start: '01:00', end: '03:30'}]}")
	var out []string
	for _, name := range strings.Split(names[:1+r.IntN(most)], "") {
		out = append(out, name)
		target := "orders"
		if !together {
			target += "-" + name
		}
		w.deployment(target)
		w.plan(name, drawSpec(r, target, together), drawNotes(r, night))
	}
	return out
}

// drawSpec draws no two times that end at one instant: what comes first there is nobody's promise.
func drawSpec(r *rand.Rand, target string, together bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("triggers:\n  onCreate: %t\n  schedules:", r.IntN(4) == 0 && together)
	for range 1 + r.IntN(2) {
		line("  - cron: '%s'\n    timezone: %s", drawn(r, "*/30 * * * *", "10,50 * * * *", "0 * * * *", "15 1-5 * * *", "0 2 * * *"), drawn(r, "UTC", "Europe/Berlin"))
		if jitter := drawn(r, "", "", "1m", "15m"); jitter != "" {
			line("    jitter: %s", jitter)
		}
	}
	line("catchUp: %s", drawn(r, plan.CatchUpLatest, plan.CatchUpAll, plan.CatchUpNone))
	policy := drawn(r, plan.Forbid, plan.Allow, plan.Replace, plan.Queue)
	if policy == plan.Replace && !together { // two of its runs may wait for the one that gives way
		policy = plan.Forbid
	}
	line("concurrencyPolicy: %s", policy)
	line("startDeadline: %s", drawn(r, "1m1s", "15m11s", "30m17s"))
	line("maxDuration: %s", drawn(r, "10m3s", "30m5s"))
	line("onWindowClose: %s", drawn(r, plan.CloseFinish, plan.CloseWait, plan.CloseAbort))
	line("successfulRunsHistoryLimit: 100\nfailedRunsHistoryLimit: 100")
	if r.IntN(2) == 0 {
		line("policies: [{name: night}]")
	}
	if r.IntN(3) == 0 && policy != plan.Allow {
		line("target: {apiVersion: apps/v1, kind: Deployment, name: %s}", target)
	}
	line("steps:")
	for _, name := range []string{"one", "two"} {
		line("- {name: %s, type: suspend, properties: {%s}}", name, drawn(r, "duration: 1s", "duration: 5m7s", "duration: 20m13s", ""))
	}
	if r.IntN(2) == 0 {
		line("finally:\n- {name: after, type: suspend, properties: {duration: 5m19s}}")
	}
	return b.String()
}

// drawNotes are what somebody asked of a plan.
func drawNotes(r *rand.Rand, night func() string) map[string]string {
	switch r.IntN(7) {
	case 0:
		return map[string]string{annotations.Pause: night()}
	case 1:
		return map[string]string{annotations.Skip: "next"}
	case 2:
		return map[string]string{annotations.Skip: "until:" + night()}
	case 3:
		return map[string]string{annotations.ChangeStrategy: "PermissiveUntil", annotations.PermissiveUntil: night()}
	case 4:
		return map[string]string{annotations.ChangeStrategy: "RestrictiveUntil", annotations.RestrictiveUntil: night()}
	}
	return nil
}

// documents are those of a world that failed.
func documents(w *world) string {
	var b strings.Builder
	for _, at := range w.Names("configmaps") {
		if o := w.ConfigMap(shop, strings.TrimPrefix(at, shop+"/")); o != nil && o.Data[annotations.DataPlan] != "" {
			fmt.Fprintf(&b, "%s %v\n%s", o.Name, o.Annotations, o.Data[annotations.DataPlan])
		}
	}
	return b.String()
}
