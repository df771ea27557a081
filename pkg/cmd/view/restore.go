package view

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Restore is the restore data of one target.
type Restore struct {
	Object *corev1.ConfigMap
	Record hibernate.Record // zero if Fault says that it cannot be read
	Fault  string           // why it does not count, as far as that is visible without the agent's key
	Copy   bool             // from a namespace that was deleted
}

// rescued is the fault of a copy of restore data.
const rescued = "its namespace was deleted while this slept: nothing wakes from this copy, and it can be deleted when nobody needs it"

// NewRestore reads restore data, or a copy from a deleted namespace.
func NewRestore(cm *corev1.ConfigMap) Restore {
	if record, err := annotations.ReadRescued(cm); err == nil {
		return Restore{Object: cm, Record: record, Fault: rescued, Copy: true}
	}
	record, err := annotations.ReadRestore(cm)
	switch {
	case errors.Is(err, annotations.ErrForeign):
		return Restore{Object: cm, Fault: "it " + err.Error()}
	case err != nil:
		return Restore{Object: cm, Fault: err.Error()}
	}
	r := Restore{Object: cm, Record: record}
	if refused := new(annotations.SignatureError); errors.As(annotations.CheckForm(cm), &refused) {
		r.Fault = refused.Why
	}
	return r
}

// Of is the plan of the restore data.
func (r Restore) Of() string { return cmp.Or(r.Object.Labels[annotations.LabelPlan], r.Record.Plan) }

// Trouble says why its target failed the last time; empty: it did not.
func (r Restore) Trouble() string {
	if r.Record.NotBefore == nil {
		return ""
	}
	return r.Record.Message
}

// Count is how many of its resources sleep or are in transition, and how many are left as they are.
// Resources that somebody or something woke do not sleep.
func (r Restore) Count() (sleeping, left int) {
	sleeping = r.Record.Sleeping()
	for _, res := range r.Record.Resources {
		switch {
		case res.Left != "":
			left++
		case res.RevivedNow():
			sleeping--
		}
	}
	return sleeping, left
}

// Orphans are the restore data whose HibernatePlan is not among some plans. A copy belongs to none.
func Orphans(all []Restore, plans []*corev1.ConfigMap) []Restore {
	return slices.DeleteFunc(slices.Clone(all), func(r Restore) bool {
		return r.Copy || r.Of() == "" || slices.ContainsFunc(plans, func(p *corev1.ConfigMap) bool {
			return p.Namespace == r.Object.Namespace && p.Name == r.Of()
		})
	})
}

// PlanGone says what happens to restore data whose HibernatePlan is gone.
func (r Restore) PlanGone() string {
	switch trouble := r.Trouble(); {
	case r.Fault != "":
		return "its plan is gone, and nothing wakes by it: " + r.Fault
	case trouble != "":
		return "its plan is gone, and the agent tries again and again to wake what sleeps: " + trouble
	}
	return "its plan is gone, and the agent wakes what sleeps"
}
