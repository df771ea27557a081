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

// maxParsed is how many plans are kept as they were understood (a guess). A plan
// takes several times the memory of its text so, and a tenth of a millisecond to be
// understood again; most are looked at once a day.
const maxParsed = 2000

// parsedPlans are the plans that were looked at last.
type parsedPlans = lru.Cache[types.NamespacedName, *ParsedPlan]

func newParsedPlans(limit int) *parsedPlans {
	cache, _ := lru.New[types.NamespacedName, *ParsedPlan](limit) // its error is for limits below one
	return cache
}
