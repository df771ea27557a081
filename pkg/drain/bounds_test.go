package drain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

func TestHowLargeAPodIsThatIsKept(t *testing.T) {
	for size, large := range map[int]bool{16 << 10: false, 16<<10 + 1: true} {
		p := drain.Pod{Labels: map[string]string{"app": strings.Repeat("x", size-10)}, Claims: []string{"data"}, Resources: []string{"cpu"}}
		if got := p.Bounded(); got.TooLarge != large || (got.Labels == nil) != large {
			t.Errorf("%d bytes: too large: %t", size, got.TooLarge)
		}
	}
	part := strings.Repeat("x", 4097)
	if p := (drain.Pod{Controller: &drain.Owner{APIVersion: part, Kind: part, Name: part, UID: part}}).Bounded(); !p.TooLarge {
		t.Error("what names its owner does not count")
	}
}

// A pod that is too large to be kept is refused, whatever else is said of it.
func TestAPodThatIsTooLargeIsRefused(t *testing.T) {
	labels := map[string]string{}
	for i := range 300 {
		labels[fmt.Sprint("example.org/", i)] = strings.Repeat("x", 63)
	}
	names := make([]string, 1000)
	for i := range names {
		names[i] = strings.Repeat("n", 60)
	}
	for what, p := range map[string]drain.Pod{
		"labels":    {Labels: labels, Controller: &drain.Owner{Kind: "ReplicaSet"}},
		"claims":    {Claims: names, Controller: &drain.Owner{Kind: "ReplicaSet"}},
		"resources": {Resources: names, Controller: &drain.Owner{Kind: "ReplicaSet"}},
		"its owner": {Controller: &drain.Owner{Kind: "ReplicaSet", Name: strings.Repeat("n", 20_000)}},
	} {
		p.Namespace, p.Name, p.Phase = "shop", "web-1", "Running"
		kept := p.Bounded()
		if diff := cmp.Diff(drain.Pod{Namespace: "shop", Name: "web-1", Phase: "Running", TooLarge: true}, kept); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		v := drain.NewJudge(drain.Options{PodSelector: "app=web", Force: true}, nil).Of(kept)
		if v.Do != drain.Refuse || v.Why != "its labels, claims, resources and owner take more than 16 KiB, and are not read" {
			t.Errorf("%s: %+v", what, v)
		}
	}
	long := drain.Pod{How: strings.Repeat("x", 200_000), OrderFault: strings.Repeat("y", 200_000)}.Bounded()
	if len(long.How) > 200 || len(long.OrderFault) > 200 || long.TooLarge {
		t.Errorf("words of %d and %d letters are kept", len(long.How), len(long.OrderFault))
	}
	small := drain.Pod{Labels: map[string]string{"app": "web"}, Claims: []string{"data"}}
	if diff := cmp.Diff(small, small.Bounded()); diff != "" {
		t.Errorf("of a small pod (-want +got):\n%s", diff)
	}
}

// A budget whose selector is too large to be kept lets no pod of its namespace go, and says why.
func TestABudgetWithATooLargeSelectorCoversItsNamespace(t *testing.T) {
	values := make([]string, 2000)
	for i := range values {
		values[i] = fmt.Sprint("v", i)
	}
	big := drain.Budget{
		Namespace: "shop", Name: "big", Version: 7, Current: true, Allowed: 5, AlwaysAllow: true, MinAvailable: "1", ExpectedPods: 6, CurrentHealthy: 6, DesiredHealthy: 1,
		Selector: &selector.LabelSelector{MatchExpressions: []selector.SelectorRequirement{{Key: "k", Operator: "In", Values: values}}},
	}.Bounded()
	if diff := cmp.Diff(drain.Budget{Namespace: "shop", Name: "big", Version: 7, Current: true, TooLarge: true}, big); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	pod := func(namespace string, ready bool) drain.Judged {
		return drain.Judged{Pod: drain.Pod{Namespace: namespace, Name: "web-1", UID: namespace, Phase: "Running", Ready: ready}, Verdict: drain.Verdict{Do: drain.Evict}}
	}
	other := drain.Budget{Namespace: "shop", Name: "all", Selector: &selector.LabelSelector{}, Current: true, Allowed: 1}
	now := time.Unix(0, 0)
	for _, budgets := range [][]drain.Budget{{big}, {other, big}} {
		for _, ready := range []bool{true, false} {
			blocks := drain.Blocks([]drain.Judged{pod("shop", ready), pod("ops", ready)}, budgets, false, now)
			if len(blocks) != 1 || !blocks[0].Permanent || blocks[0].Refused || blocks[0].Count != 1 || !strings.Contains(blocks[0].String(), "the selector of the budget takes more than 16 KiB, and is not read") || !cmp.Equal(blocks[0].Budgets, []string{"shop/big"}) {
				t.Errorf("%+v", blocks)
			}
		}
	}
	if drain.Remaining(big, nil) != 0 || drain.NeedOf(pod("shop", false).Pod, big) != drain.NeedRoom {
		t.Error("it has room")
	}
	small := drain.Budget{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Allowed: 1}
	if diff := cmp.Diff(small, small.Bounded()); diff != "" {
		t.Errorf("of a small budget (-want +got):\n%s", diff)
	}
}
