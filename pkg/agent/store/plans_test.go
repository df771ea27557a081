package store

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

func aPlan(name, steps string) *corev1.ConfigMap {
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  serviceAccountName: of-" + name + "\n  triggers: {onCreate: true}\n  steps:\n" + steps
	cm := annotations.NewPlan("shop", name, text, "of-"+name)
	cm.UID = "u"
	return cm
}

func TestOfPlansLookedAtLongAgoOnlyWhatIsAskedOfAllIsKept(t *testing.T) {
	p := NewPlans()
	p.parsed = newParsedPlans(2, maxParsedWeight)
	suspend, drain := "  - {name: a, type: suspend, properties: {duration: 1s}}\n", "  - {name: a, type: drain, properties: {node: n0}}\n"
	p.Of(aPlan("drains", drain)).Readiness.Failures = 7
	for i := range 3 {
		p.Of(aPlan(fmt.Sprint("other-", i), suspend))
	}
	if n := p.parsed.Len(); n != 2 {
		t.Errorf("%d plans are kept as they were understood, want 2", n)
	}
	at := types.NamespacedName{Namespace: "shop", Name: "drains"}
	if p.parsed.Contains(at) {
		t.Error("the plan looked at first is still kept")
	}
	if got := p.Draining(); len(got) != 1 || got[at] != (client.Account{Namespace: "shop", Name: "of-drains"}) {
		t.Errorf("the plans that drain are %v", got)
	}
	if known := p.Of(aPlan("drains", drain)); known.Readiness.Failures != 7 || len(known.Spec.Steps) != 1 || known.Faults != nil {
		t.Errorf("understood anew it is not what it was: %+v %v", known.PlanMemory, known.Faults)
	}
	p.Of(aPlan("other-1", suspend))
	p.Of(aPlan("other-0", suspend))
	if !p.parsed.Contains(types.NamespacedName{Namespace: "shop", Name: "other-1"}) || p.parsed.Contains(at) {
		t.Error("the one used last does not stay longest")
	}
	p.Drop(at)
	if len(p.Draining()) != 0 {
		t.Error("a plan that is gone is still there")
	}
}

// Plans are kept by what they take, and not only by how many they are.
func TestHeavyPlansPushOutNoMoreThanTheirWeight(t *testing.T) {
	p := NewPlans()
	p.parsed = newParsedPlans(100, 200_000)
	step := "  - {name: a, type: webhook, properties: {url: 'https://example.org', body: [" + strings.Repeat("0,", 500) + "0]}}\n" // some 52,000
	for i := range 10 {
		p.Of(aPlan(fmt.Sprint("heavy-", i), step))
		p.Of(aPlan(fmt.Sprint("heavy-", i), step)) // twice is once
	}
	if n := p.parsed.Len(); n != 3 || p.parsed.weight > 200_000 {
		t.Errorf("%d plans are kept, which weigh %d", n, p.parsed.weight)
	}
	p.Of(aPlan("heavy-9", "  - {name: a, type: webhook, properties: {url: 'https://example.org', body: ["+strings.Repeat("0,", 10_000)+"0]}}\n"))
	if p.parsed.Contains(types.NamespacedName{Namespace: "shop", Name: "heavy-9"}) {
		t.Error("one that weighs more than a hundred others is kept")
	}
	for i := range 10 {
		p.Drop(types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("heavy-", i)})
	}
	if p.parsed.weight != 0 {
		t.Errorf("none are kept, and they weigh %d", p.parsed.weight)
	}
}
