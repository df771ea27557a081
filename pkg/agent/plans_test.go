package agent

import (
	"fmt"
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
	p := newPlans()
	p.parsed = newParsedPlans(2)
	suspend, drain := "  - {name: a, type: suspend, properties: {duration: 1s}}\n", "  - {name: a, type: drain, properties: {node: n0}}\n"
	p.of(aPlan("drains", drain)).looked.looks = 7
	for i := range 3 {
		p.of(aPlan(fmt.Sprint("other-", i), suspend))
	}
	if n := p.parsed.Len(); n != 2 {
		t.Errorf("%d plans are kept as they were understood, want 2", n)
	}
	at := types.NamespacedName{Namespace: "shop", Name: "drains"}
	if p.parsed.Contains(at) {
		t.Error("the plan looked at first is still kept")
	}
	if got := p.draining(); len(got) != 1 || got[at] != (client.Account{Namespace: "shop", Name: "of-drains"}) {
		t.Errorf("the plans that drain are %v", got)
	}
	if known := p.of(aPlan("drains", drain)); known.looked.looks != 7 || len(known.spec.Steps) != 1 || known.faults != nil {
		t.Errorf("understood anew it is not what it was: %+v %v", known.planMemory, known.faults)
	}
	p.of(aPlan("other-1", suspend))
	p.of(aPlan("other-0", suspend))
	if !p.parsed.Contains(types.NamespacedName{Namespace: "shop", Name: "other-1"}) || p.parsed.Contains(at) {
		t.Error("the one used last does not stay longest")
	}
	p.drop(at)
	if len(p.draining()) != 0 {
		t.Error("a plan that is gone is still there")
	}
}
