package agent

import (
	"container/list"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// parsedPlan is a plan's text as it was understood.
type parsedPlan struct {
	text   string
	spec   plan.Spec // with defaults
	faults plan.Faults
}

func parsePlan(cm *corev1.ConfigMap) *parsedPlan {
	spec, faults := annotations.Plan(cm)
	return &parsedPlan{text: cm.Data[annotations.DataPlan], spec: spec.Defaulted(), faults: faults}
}

// mostParsed is how many plans are kept as they were understood (a guess). A plan
// takes several times the memory of its text so, and a tenth of a millisecond to be
// understood again; most are looked at once a day.
const mostParsed = 2000

// parsedPlans are the plans that were looked at last.
type parsedPlans struct {
	limit  int
	recent *list.List // of *parsedEntry, the newest first
	byKey  map[types.NamespacedName]*list.Element
}

type parsedEntry struct {
	key  types.NamespacedName
	plan *parsedPlan
}

func newParsedPlans(limit int) *parsedPlans {
	return &parsedPlans{limit: limit, recent: list.New(), byKey: map[types.NamespacedName]*list.Element{}}
}

// get is a plan as it was understood; nil where that is not kept.
func (p *parsedPlans) get(k types.NamespacedName) *parsedPlan {
	e := p.byKey[k]
	if e == nil {
		return nil
	}
	p.recent.MoveToFront(e)
	return e.Value.(*parsedEntry).plan
}

func (p *parsedPlans) put(k types.NamespacedName, parsed *parsedPlan) {
	p.drop(k)
	p.byKey[k] = p.recent.PushFront(&parsedEntry{k, parsed})
	if last := p.recent.Back(); p.recent.Len() > p.limit {
		p.drop(last.Value.(*parsedEntry).key)
	}
}

func (p *parsedPlans) drop(k types.NamespacedName) {
	if e := p.byKey[k]; e != nil {
		p.recent.Remove(e)
		delete(p.byKey, k)
	}
}
