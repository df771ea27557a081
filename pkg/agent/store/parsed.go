package store

import (
	lru "github.com/hashicorp/golang-lru/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// ParsedPlan is a plan's text as it was understood.
type ParsedPlan struct {
	Text   string
	Spec   plan.Spec // with defaults
	Faults document.Faults
}

func parsePlan(cm *corev1.ConfigMap) *ParsedPlan {
	spec, faults := annotations.Plan(cm)
	return &ParsedPlan{Text: cm.Data[annotations.DataPlan], Spec: spec.Defaulted(), Faults: faults}
}

// What is kept of plans as they were understood (guesses). A plan takes several times the
// memory of its text so, and a tenth of a millisecond to be understood again; most are
// looked at once a day. One that is as heavy as a hundred others is not kept, and is
// understood while no other such one is.
const (
	maxParsed       = 2000
	maxParsedWeight = 24 << 20
	maxParsedOne    = 512 << 10
	perMark         = 100 // bytes that a value takes, its line and its path among them
)

// weightOf is about how much memory a plan takes as it was understood.
func weightOf(text string) int { return len(text) + perMark*document.Weight(text) }

// parsedPlans are the plans that were looked at last.
type parsedPlans struct {
	*lru.Cache[types.NamespacedName, *ParsedPlan]
	weight, most int
}

func newParsedPlans(limit, most int) *parsedPlans {
	p := &parsedPlans{most: most}
	p.Cache, _ = lru.NewWithEvict(limit, func(_ types.NamespacedName, gone *ParsedPlan) { p.weight -= weightOf(gone.Text) }) // its error is for limits below one
	return p
}

// keep keeps a plan in place of what it was before, and lets others go for it.
func (p *parsedPlans) keep(k types.NamespacedName, parsed *ParsedPlan) {
	p.Remove(k)
	weight := weightOf(parsed.Text)
	if weight > maxParsedOne {
		return
	}
	p.weight += weight
	p.Add(k, parsed)
	for p.weight > p.most {
		p.RemoveOldest()
	}
}
