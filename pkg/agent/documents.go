package agent

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/metrics"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// countDocuments counts the documents whose validity the agent publishes: plans as they are held,
// the others, of which there are few, by their condition. One that was not looked at yet counts
// as valid.
func (a *Agent) countDocuments() []metrics.Documents {
	out := []metrics.Documents{{Kind: annotations.KindPlan}, {Kind: annotations.KindHibernatePlan}, {Kind: annotations.KindPolicy}, {Kind: annotations.KindCalendar}}
	out[0].Valid, out[0].Broken = a.memory.plans.Count()
	for _, cm := range a.memory.documents.All() {
		for i := range out[1:] {
			of := &out[1+i]
			switch {
			case cm.Labels[annotations.LabelKind] != of.Kind:
			case meta.IsStatusConditionFalse(status.Read(cm.Annotations[annotations.StatusConditions]), "Valid"):
				of.Broken++
			default:
				of.Valid++
			}
		}
	}
	return out
}
