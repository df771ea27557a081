package follow

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// largeBudget is a budget as large as a tenant may make it.
func largeBudget(i int) policyv1.PodDisruptionBudget {
	values := make([]string, 70_000)
	for v := range values {
		values[v] = strconv.Itoa(v)
	}
	return policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("b", i), ResourceVersion: "5"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "In", Values: values}}}},
	}
}

// Tenants make their budgets as large as the API server takes them: a drain lists them in small pages,
// and keeps none of their selectors.
func TestLargeBudgetsOfATenantTakeTheMemoryOfAPage(t *testing.T) {
	const all = 60
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var before, now runtime.MemStats
		var most uint64
		runtime.GC()
		runtime.ReadMemStats(&before)
		changes := watch.NewFake()
		from := Source[*policyv1.PodDisruptionBudgetList]{
			List: func(_ context.Context, o metav1.ListOptions) (*policyv1.PodDisruptionBudgetList, error) {
				runtime.GC()
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc)
				if o.Limit <= 0 || o.Limit > 16 {
					t.Fatalf("a page of %d", o.Limit)
				}
				first, _ := strconv.Atoi(o.Continue)
				page := &policyv1.PodDisruptionBudgetList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
				for i := first; i < min(first+int(o.Limit), all); i++ {
					page.Items = append(page.Items, largeBudget(i))
				}
				if next := first + len(page.Items); next < all {
					page.Continue = strconv.Itoa(next)
				}
				return page, nil
			},
			Watch: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
				if o.ResourceVersion != "9" {
					t.Errorf("it watches from %s", o.ResourceVersion)
				}
				return changes, nil
			},
			Trim: func(*metav1.ListOptions) {}, Heard: func(err error) {
				if err != nil {
					t.Error(err)
				}
			},
		}
		kept := map[string]drain.Budget{}
		to := Kept[*policyv1.PodDisruptionBudget, drain.Budget]{
			Turn: annotations.DrainBudget, Key: drain.Budget.Key,
			Set:  func(b drain.Budget) { kept[b.Key()] = b },
			Gone: func(b drain.Budget) { delete(kept, b.Key()) },
			Replaced: func(all []drain.Budget, _ string) {
				for _, b := range all {
					kept[b.Key()] = b
				}
			},
		}
		go Keep(ctx, false, from, to)
		synctest.Wait()
		late, first := largeBudget(all), largeBudget(0)
		changes.Add(&late)
		changes.Delete(&first)
		synctest.Wait()
		stop()
		synctest.Wait()
		if len(kept) != all || !kept["shop/b60"].TooLarge || kept["shop/b60"].Selector != nil {
			t.Errorf("%d are kept", len(kept))
		}
		if grew := (int64(most) - int64(before.HeapAlloc)) >> 20; grew > 64 {
			t.Errorf("it takes %d MiB", grew)
		}
	})
}
