package write

import (
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/gitops"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// crossCheck checks valid documents together. Faults are wrong uses of templates and connectors;
// warnings are a plan whose slots never meet its windows, plans with the same target, those whose
// changes a GitOps tool would undo, and templates and connectors that are not in the files.
func crossCheck(w source.Set, c *factory.Factory, g gitops.Tools) (faults, warnings []source.Fault) {
	now := c.Now()
	targets := map[string]source.Plan{}
	for _, p := range w.Plans {
		used := w.Use(p, c.OfflineAgent())
		faults, warnings = append(faults, used.Faults...), append(warnings, used.Missing...)
		d := p.Source
		at := func(path string) source.Fault {
			lines, _ := document.Decode([]byte(d.Text), &plan.Document{})
			return source.Fault{File: d.File, Line: d.LineOf(document.Fault{Line: lines.Line(path)}), Path: path}
		}
		if message := undoneByGitOps(g, p, used.Templates); message != "" {
			f := at("spec.target")
			f.Message = message
			warnings = append(warnings, f)
		}
		if message := neverMeets(w, p, now); message != "" {
			f := at("spec.triggers.schedules")
			f.Message = message
			warnings = append(warnings, f)
		}
		if p.Spec.Target == nil {
			continue
		}
		key := p.Namespace + "/" + p.Spec.Target.APIVersion + "/" + p.Spec.TargetSaid()
		if other, taken := targets[key]; taken {
			f := at("spec.target")
			f.Message = fmt.Sprintf("%s is the target of plan %s in %s, too: their runs wait for each other", p.Spec.TargetSaid(), other.Name, other.Source.File)
			warnings = append(warnings, f)
			continue
		}
		targets[key] = p
	}
	for _, p := range w.Sleepers {
		used := w.UseConnectors(p)
		faults, warnings = append(faults, used.Faults...), append(warnings, used.Missing...)
	}
	return faults, warnings
}

// How far lint looks for a slot that meets its window: two years, and so many slots (guesses:
// windows recur at least once a year).
const (
	lintYears = 2
	lintSlots = 2000
)

// neverMeets says that every coming slot is Missed before its window opens. It says nothing if the
// policies are not in the files.
func neverMeets(w source.Set, p source.Plan, now time.Time) string {
	set, err := plan.ParseSchedules(p.Spec.Triggers.Schedules)
	if err != nil || len(set) == 0 || !w.Resolver.Gated(p.Query()) {
		return ""
	}
	gate := w.Resolver.Gate(p.Query())
	from, end, seen := now, now.AddDate(lintYears, 0, 0), 0
	for range lintSlots {
		slot, ok := set.Next(from)
		if !ok || slot.At.After(end) {
			break
		}
		from = slot.At
		seen++
		start := trigger.StartsAt(p.Spec, p.Namespace, p.Name, slot.At, slot.Index)
		v := gate.Verdict(start)
		deadline := start.Add(p.Spec.StartDeadline.Or(plan.DefaultStartDeadline))
		if !v.Ready || v.Permitted || v.Until != nil && !v.Until.After(deadline) {
			return ""
		}
	}
	if seen == 0 {
		return ""
	}
	return fmt.Sprintf("each of the next %s is Missed: no window opens within startDeadline %s of it", view.Counted(seen, "slot"), p.Spec.StartDeadline.Or(plan.DefaultStartDeadline))
}
