package cmd

import (
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// together are warnings about documents that are valid one by one: a plan whose
// slots never meet its windows, and plans that want the same target.
func together(docs []sourced, c *cli) []fileFault {
	namespace, now := c.offlineNamespace(), c.Now()
	w := world{book: plan.NewBook(c.offlineAgent()), pauses: map[string]plan.Switch{}}
	for _, d := range docs {
		w.take(d, namespace)
	}
	var out []fileFault
	targets := map[string]filePlan{}
	for _, p := range w.plans {
		d := p.source
		at := func(path string) fileFault {
			lines, _ := plan.Decode([]byte(d.text), &plan.Document{})
			return fileFault{File: d.file, Line: d.lineOf(plan.Fault{Line: lines.Line(path)}), Path: path}
		}
		if message := neverMeets(w, p, now); message != "" {
			f := at("spec.triggers.schedules")
			f.Message = message
			out = append(out, f)
		}
		if p.spec.Target == nil {
			continue
		}
		key := p.namespace + "/" + p.spec.Target.APIVersion + "/" + p.spec.Target.String()
		if other, taken := targets[key]; taken {
			f := at("spec.target")
			f.Message = fmt.Sprintf("%s is the target of plan %s in %s, too: their runs wait for each other", p.spec.Target, other.name, other.source.file)
			out = append(out, f)
			continue
		}
		targets[key] = p
	}
	return out
}

// How far lint looks for a slot that meets its window: two years, and so many
// slots (guesses: windows recur at least once a year).
const (
	lintYears = 2
	lintSlots = 2000
)

// neverMeets says that every coming slot is Missed before its window opens. It
// says nothing where the policies are not in the files.
func neverMeets(w world, p filePlan, now time.Time) string {
	set, err := plan.ParseSchedules(p.spec.Triggers.Schedules)
	if err != nil || len(set) == 0 || !w.book.Gated(p.question()) {
		return ""
	}
	gate := w.book.Gate(p.question())
	from, end, seen := now, now.AddDate(lintYears, 0, 0), 0
	for range lintSlots {
		slot, ok := set.Next(from)
		if !ok || slot.At.After(end) {
			break
		}
		from = slot.At
		seen++
		start := plan.StartsAt(p.spec, p.namespace, p.name, slot.At, slot.Index)
		v := gate.Verdict(start)
		deadline := start.Add(p.spec.StartDeadline.Or(plan.DefaultStartDeadline))
		if !v.Ready || v.Permitted || v.Until != nil && !v.Until.After(deadline) {
			return ""
		}
	}
	if seen == 0 {
		return ""
	}
	return fmt.Sprintf("each of the next %s is Missed: no window opens within startDeadline %s of it", counted(seen, "slot"), p.spec.StartDeadline.Or(plan.DefaultStartDeadline))
}
