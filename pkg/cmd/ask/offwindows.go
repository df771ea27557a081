package ask

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// slots are what can be skipped: the slots of a plan, or the off-windows of a HibernatePlan by
// their starts.
type slots interface {
	Next(after time.Time) (schedule.Slot, bool)
}

// skippable is a plan of either kind, as skip and unskip see it.
type skippable struct {
	kind   string // written before the name
	what   string // what is skipped: slot, off-window
	zone   string // of the plan's times; empty: the user's zone
	slots  slots  // nil: it has no slots
	begins time.Time
	woken  string // what skipping an off-window that has begun means
	faults document.Faults
}

// skippableOf reads a plan of either kind. user is the user's zone.
func skippableOf(cm *corev1.ConfigMap, user string, now time.Time, env factory.Env) skippable {
	if cm.Labels[annotations.LabelKind] == annotations.KindHibernatePlan {
		return sleepSkippable(cm, now, env)
	}
	spec, faults := annotations.Plan(cm)
	p := skippable{kind: annotations.KindPlan, what: "slot", zone: view.PlanZone(spec, user), begins: now, faults: faults}
	if set, err := plan.ParseSchedules(spec.Triggers.Schedules); err == nil && len(spec.Triggers.Schedules) > 0 {
		p.slots = set
	}
	return p
}

// sleepSkippable counts the present off-window as a coming one: skipping it means waking.
func sleepSkippable(cm *corev1.ConfigMap, now time.Time, env factory.Env) skippable {
	s := view.NewSleeper(cm, nil, nil)
	p := skippable{kind: annotations.KindHibernatePlan, what: "off-window", zone: s.Zone(), begins: now, faults: s.Faults}
	if s.Table == nil {
		return p
	}
	p.faults, p.slots = nil, view.OffWindows{Table: s.Table}
	p.woken = ", which has begun: what sleeps wakes"
	switch {
	case s.Hold.Holds(now) && s.Hold.Asleep:
		p.woken = ", which has begun; it is held asleep all the same until " + env.Suggest().ReleaseHold(cm.Name)
	case s.Intent.Pause.Holds(now):
		p.woken = ", which has begun: what sleeps wakes after " + env.Suggest().Resume(cm.Name)
	}
	if l := s.Table.At(now); l.Asleep && !l.Since.IsZero() {
		p.begins = l.Since.Add(-time.Nanosecond)
	}
	return p
}

// begun says of an off-window that has begun whether skipping it wakes the plan, or why not.
func (p skippable) begun(s schedule.Slot, now time.Time) string {
	if s.At.After(now) {
		return ""
	}
	return p.woken
}
