package ask

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// slots are what can be skipped: the slots of a plan, or the off-windows of a HibernatePlan
// by their starts.
type slots interface {
	Next(after time.Time) (schedule.Slot, bool)
}

// skippable is a plan of either kind, as far as skipping goes.
type skippable struct {
	kind   string // as it stands before the name
	what   string // what is skipped: slot, off-window
	zone   string // in which people think of its times; empty: the user's own
	slots  slots  // nil: it has none
	begins time.Time
	woken  string // what it means to skip an off-window that has begun
	faults document.Faults
}

// skippableOf reads a plan of either kind. user is the zone of whoever asks.
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

// sleepSkippable has the off-window that it is in counted as one to come: to skip it is to
// wake.
func sleepSkippable(cm *corev1.ConfigMap, now time.Time, env factory.Env) skippable {
	s := view.NewSleeper(cm, nil, nil)
	p := skippable{kind: annotations.KindHibernatePlan, what: "off-window", zone: s.Zone(), begins: now, faults: s.Faults}
	if s.Table == nil {
		return p
	}
	p.faults, p.slots = nil, offWindows{s.Table}
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

// begun says whether a slot has begun: of an off-window that it wakes, or why it does not.
func (p skippable) begun(s schedule.Slot, now time.Time) string {
	if s.At.After(now) {
		return ""
	}
	return p.woken
}

type offWindows struct{ table *hibernate.Timetable }

// Next is the first off-window that starts after an instant.
func (o offWindows) Next(after time.Time) (schedule.Slot, bool) {
	for w := range o.table.Windows(after) {
		if w.Start.After(after) {
			return schedule.Slot{At: w.Start, Zone: o.table.Zone()}, true
		}
	}
	return schedule.Slot{}, false
}
