package cmd

import (
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// together are what is to be said of documents that are valid one by one. Faults
// are wrong uses of templates; warnings are a plan whose slots never meet its
// windows, plans that want the same target, and templates that are not there.
func together(docs []sourced, c *cli) (faults, warnings []fileFault) {
	w, now := c.worldOf(docs), c.Now()
	targets := map[string]filePlan{}
	for _, p := range w.plans {
		used := w.use(p, c.offlineAgent())
		faults, warnings = append(faults, used.faults...), append(warnings, used.missing...)
		d := p.source
		at := func(path string) fileFault {
			lines, _ := plan.Decode([]byte(d.text), &plan.Document{})
			return fileFault{File: d.file, Line: d.lineOf(plan.Fault{Line: lines.Line(path)}), Path: path}
		}
		if message := neverMeets(w, p, now); message != "" {
			f := at("spec.triggers.schedules")
			f.Message = message
			warnings = append(warnings, f)
		}
		if p.spec.Target == nil {
			continue
		}
		key := p.namespace + "/" + p.spec.Target.APIVersion + "/" + p.spec.Target.String()
		if other, taken := targets[key]; taken {
			f := at("spec.target")
			f.Message = fmt.Sprintf("%s is the target of plan %s in %s, too: their runs wait for each other", p.spec.Target, other.name, other.source.file)
			warnings = append(warnings, f)
			continue
		}
		targets[key] = p
	}
	return faults, warnings
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
