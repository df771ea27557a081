package view

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/stuck"
)

// LeftAlone says why the agent leaves a run alone, and what helps, by the condition RunStuck of its
// plan; empty: it does not. One that waits for another run, or that the API server refuses to have
// written, is not left alone: the agent still follows it.
func LeftAlone(plan *corev1.ConfigMap, name string) string { return AllLeftAlone(plan)[name] }

// AllLeftAlone are the runs of a plan that the agent leaves alone, and of each LeftAlone.
func AllLeftAlone(plan *corev1.ConfigMap) map[string]string {
	said, is := FindCondition(Conditions(plan), "RunStuck", metav1.ConditionTrue)
	if !is {
		return nil
	}
	return stuck.LeftAlone(said)
}

// AsCounted is a live run as the agent counts it, by its plan and the ledger of that: it may leave
// the run alone, or have it begin nothing.
func (r Run) AsCounted(plan *corev1.ConfigMap, kept Ledger) (counted Run, counts bool) {
	known := kept.Head != nil && kept.Unread == nil && kept.Doubt == nil && string(plan.UID) == r.Run.PlanUID
	r.Unclaimed = known && r.Journal.Phase == run.Running && r.Journal.End == nil && !kept.Claimed(r.Run.Name)
	return r, LeftAlone(plan, r.Run.Name) == ""
}

// CountRuns are live runs as the agent counts them, and of each that it leaves alone its name, by its plan as
// a claimant. read is asked for each plan once; those of a plan that it does not have count.
func CountRuns(live []Run, read func(plan types.NamespacedName) (*corev1.ConfigMap, Ledger)) (runs []Run, alone map[string]string) {
	type kept struct {
		plan   *corev1.ConfigMap
		ledger Ledger
	}
	known := map[types.NamespacedName]kept{}
	alone = map[string]string{}
	for _, r := range live {
		name := types.NamespacedName{Namespace: r.Run.Namespace, Name: r.Run.Plan}
		of, is := known[name]
		if !is {
			of.plan, of.ledger = read(name)
			known[name] = of
		}
		counted, counts := r, true
		if of.plan != nil {
			counted, counts = r.AsCounted(of.plan, of.ledger)
		}
		if counts {
			runs = append(runs, counted)
		} else {
			alone[nodes.PlanClaimant(r.Run.Namespace, r.Run.Plan)] = r.Run.Name
		}
	}
	return runs, alone
}

// Unclaimed says whether a run is at work that has no open entry in its plan's ledger, by the condition RunStuck
// of its plan: it begins nothing, whatever somebody tells it, and only an abort ends it.
func Unclaimed(plan *corev1.ConfigMap, run string) bool {
	if plan == nil { // it is described without its object
		return false
	}
	said, _ := FindCondition(Conditions(plan), "RunStuck", metav1.ConditionTrue)
	return stuck.HasNoOpenEntry(said, run)
}

// Responsive says whether a run does what somebody asks of it, by the condition RunStuck of its plan: the agent
// does not leave it alone, and its plan's ledger has it open.
func Responsive(plan *corev1.ConfigMap, run string) bool {
	return plan == nil || LeftAlone(plan, run) == "" && !Unclaimed(plan, run)
}

// ResponsiveRuns are the live runs that do what somebody asks of them: of the others, nobody is asked for anything.
func (p Plan) ResponsiveRuns() (out []Run) {
	for _, r := range p.Active {
		if Responsive(p.Object, r.Run.Name) {
			out = append(out, r)
		}
	}
	return out
}

// Adopted says whether a run that its plan still says is left alone for its signature has been signed
// since, with a key: the agent has not looked at it again.
func Adopted(cm *corev1.ConfigMap, why, key string) bool {
	return cm != nil && key != "" && annotations.SignedWith(cm) == key && annotations.CheckForm(cm) == nil && !annotations.Recreated(cm) &&
		stuck.ToAdopt(why) && !strings.Contains(why, "its signature is false")
}
