package policies

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/gates"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Changes writes the change_management metrics. Their values follow
// from the clock, so they are worked out when they are asked for.
type Changes struct {
	gates *store.Gates
	runs  *store.Runs
	held  func() []*gates.HeldObject // by gates
	now   func() time.Time
	// leading: those who wait for the lease see nodes, too, and would tell them twice.
	leading func() bool
}

// changeFamily is one of the change_management metrics: its name, what it says, and
// its value of an object. Where it has words the object has a line for each.
type changeFamily struct {
	name, help string
	value      func(changeRow) float64
	words      []schedule.Strategy
}

// changeRow is one object as the metrics show it.
type changeRow struct {
	kind, namespace, object, system string
	pending                         int
	verdict                         schedule.Verdict
	last                            float64
	strategy                        schedule.Strategy
}

func changeFamilies() []changeFamily {
	return []changeFamily{
		{"change_pending", "Whether change is wanted: 0 no, 1 it is being initiated, 2 it is blocked.", func(r changeRow) float64 { return float64(r.pending) }, nil},
		{"last_change", "Seconds since change was last permitted or initiated: 0 it is permitted, -1 unknown.", func(r changeRow) float64 { return r.last }, nil},
		{"next_change_eta", "Seconds until change is permitted: 0 it is, -1 never, -2 not ready, or not known yet.", func(r changeRow) float64 { return float64(r.verdict.NextChangeETA) }, nil},
		{"permissive_remaining", "Seconds for which change is still permitted: 0 it is not, -1 for ever, -2 not ready, or not known yet.", func(r changeRow) float64 { return float64(r.verdict.PermissiveRemaining) }, nil},
		{"strategy_enabled", "1 for the strategy in force, 0 for the others.", nil, []schedule.Strategy{schedule.Permissive, schedule.Restrictive, schedule.MaintenanceScheduled, schedule.ByPolicy}},
	}
}

// Write writes the metrics as text, a line at a time: there are eight for each plan,
// and as a registry gathers them those of 10,000 plans take 70 MiB at every scrape.
func (c *Changes) Write(w *bufio.Writer) {
	if !c.leading() {
		return
	}
	rows := c.rows()
	for _, f := range changeFamilies() {
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "# HELP change_management_%s %s\n# TYPE change_management_%s gauge\n", f.name, f.help, f.name)
		for _, r := range rows {
			f.write(w, r)
		}
	}
}

func (f changeFamily) write(w *bufio.Writer, r changeRow) {
	if f.words == nil {
		writeChange(w, f.name, r, "", f.value(r))
	}
	for _, s := range f.words {
		enabled := 0.0
		if s == r.strategy {
			enabled = 1
		}
		writeChange(w, f.name, r, string(s), enabled)
	}
}

func writeChange(w *bufio.Writer, name string, r changeRow, strategy string, value float64) {
	_, _ = w.WriteString("change_management_")
	_, _ = w.WriteString(name)
	writeLabel(w, "{kind", r.kind)
	writeLabel(w, ",namespace", r.namespace)
	writeLabel(w, ",object", r.object)
	if strategy != "" {
		writeLabel(w, ",strategy", strategy)
	}
	writeLabel(w, ",system", r.system)
	_, _ = w.WriteString("} ")
	_, _ = w.Write(strconv.AppendFloat(w.AvailableBuffer(), value, 'g', -1, 64))
	_ = w.WriteByte('\n')
}

// writeLabel writes a label as the exposition format has it. Names of objects and
// label values of Kubernetes need no escaping; what else may stand there is made
// safe.
func writeLabel(w *bufio.Writer, name, value string) {
	_, _ = w.WriteString(name)
	_, _ = w.WriteString(`="`)
	if strings.ContainsAny(value, "\\\"\n") {
		value = strings.NewReplacer("\\", `\\`, "\"", `\"`, "\n", `\n`).Replace(value)
	}
	_, _ = w.WriteString(value)
	_ = w.WriteByte('"')
}

// rows are the objects that the metrics tell of.
func (c *Changes) rows() []changeRow {
	now := c.now()
	pending, started := map[types.NamespacedName]int{}, map[types.NamespacedName]time.Time{}
	objects := c.gates.Subjects()
	for k, o := range objects {
		if o.Kind != "Plan" && o.Kind != "Node" {
			continue
		}
		p, last := c.pendingOf(k, o), queue.Latest(o.LastStart, lastStart(c.runs.OfPlan(k)))
		pending[k], started[k] = p, last
		for _, ref := range o.Uses { // a policy has pending, and began, what its plans and nodes have
			policy := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
			pending[policy], started[policy] = max(pending[policy], p), queue.Latest(started[policy], last)
		}
	}
	held := c.held()
	for _, h := range held {
		for _, ref := range h.Uses { // and what its gated objects have
			policy := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
			pending[policy] = max(pending[policy], h.Pending())
		}
	}
	out := make([]changeRow, 0, len(objects)+len(held))
	for k, o := range objects {
		out = append(out, c.row(k, o, pending[k], started[k], now))
	}
	for _, h := range held {
		k := types.NamespacedName{Namespace: h.Namespace, Name: h.Name}
		if o := objects[k]; o == nil || o.Kind != h.Kind { // a gated object may be called Plan, too
			out = append(out, c.row(k, &h.Subject, h.Pending(), h.LastStart, now))
		}
	}
	return out
}

func (c *Changes) pendingOf(k types.NamespacedName, o *store.Subject) int {
	switch {
	case o.Kind == "Node":
		return o.Pending
	case o.Waits:
		return store.PendingBlocked
	}
	return pendingOf(c.runs.OfPlan(k))
}

func (c *Changes) row(k types.NamespacedName, o *store.Subject, pending int, started, now time.Time) changeRow {
	v := o.Verdict(now)
	return changeRow{
		kind: o.Kind, namespace: k.Namespace, object: k.Name, system: o.System, pending: pending, verdict: v,
		last: lastChange(v, started, now), strategy: o.Strategy(now),
	}
}

// lastChange is 0 while change is permitted, else the seconds since it last was,
// or since a run last began.
func lastChange(v schedule.Verdict, lastStart, now time.Time) float64 {
	if v.Permitted {
		return 0
	}
	last := lastStart
	if v.Since != nil && v.Since.After(last) {
		last = *v.Since
	}
	if last.IsZero() {
		return -1
	}
	return max(float64(int64(now.Sub(last).Seconds())), 1)
}

// lastStart is when the last of a plan's live runs began; a dry run changes nothing.
func lastStart(live []*store.LiveRun) time.Time {
	var out time.Time
	for _, l := range live {
		if l.Broken == nil && !l.Head.Request.DryRun && l.Journal.StartedAt != nil {
			out = queue.Latest(out, *l.Journal.StartedAt)
		}
	}
	return out
}

// pendingOf is what a plan's live runs say of change: one that waits is blocked,
// one at work or about to begin is initiated. A dry run changes nothing.
func pendingOf(live []*store.LiveRun) int {
	out := store.PendingNone
	for _, l := range live {
		switch {
		case l.Broken != nil, l.Head.Request.DryRun:
		case l.Journal.HeldSince != nil, l.Journal.Phase == run.Pending && l.Journal.Waiting != "" && l.Journal.Waiting != run.WaitJitter:
			return store.PendingBlocked
		default:
			out = store.PendingInitiated
		}
	}
	return out
}

// NewChanges tells of plans, policies, nodes, and what gates hold.
func NewChanges(known *store.Gates, runs *store.Runs, controller *gates.Controller, now func() time.Time, leading func() bool) *Changes {
	return &Changes{gates: known, runs: runs, held: controller.Objects, now: now, leading: leading}
}
