package follow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
				if o.SendInitialEvents != nil {
					return nil, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
				}
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

// An API server that streams lists is asked once: what there is, and what changes meanwhile and later.
func TestAListIsStreamedWhereTheAPIServerCan(t *testing.T) {
	budget := func(name string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: "5"}}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		opened := []*watch.FakeWatcher{watch.NewFake(), watch.NewFake(), watch.NewFake()}
		asked, version := 0, ""
		var heard []error
		from := Source[*policyv1.PodDisruptionBudgetList]{
			List: func(context.Context, metav1.ListOptions) (*policyv1.PodDisruptionBudgetList, error) {
				t.Error("it lists")
				return &policyv1.PodDisruptionBudgetList{}, nil
			},
			Watch: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
				if o.SendInitialEvents == nil || !*o.SendInitialEvents || o.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan || o.ResourceVersion != "" || !o.AllowWatchBookmarks {
					t.Errorf("it asks %+v", o)
				}
				asked++
				return opened[asked-1], nil
			},
			Trim: func(*metav1.ListOptions) {}, Heard: func(err error) { heard = append(heard, err) },
		}
		kept := map[string]drain.Budget{}
		go Keep(ctx, false, from, Kept[*policyv1.PodDisruptionBudget, drain.Budget]{
			Turn: annotations.DrainBudget, Key: drain.Budget.Key,
			Set:  func(b drain.Budget) { kept[b.Key()] = b },
			Gone: func(b drain.Budget) { delete(kept, b.Key()) },
			Replaced: func(all []drain.Budget, v string) {
				version = v
				clear(kept)
				for _, b := range all {
					kept[b.Key()] = b
				}
			},
		})
		is := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			if got := slices.Sorted(maps.Keys(kept)); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		end := budget("")
		end.ResourceVersion, end.Annotations = "9", map[string]string{metav1.InitialEventsAnnotationKey: "true"}

		opened[0].Add(budget("a"))
		opened[0].Stop()
		time.Sleep(5 * time.Second)
		is("it is cut off")
		if asked != 2 || len(heard) != 1 || !errors.Is(heard[0], errCutOff) {
			t.Fatalf("asked %d times, heard %v", asked, heard)
		}
		for _, name := range []string{"a", "b", "c"} {
			opened[1].Add(budget(name))
		}
		opened[1].Modify(budget("b"))
		opened[1].Delete(budget("c"))
		is("not all has come")
		opened[1].Action(watch.Bookmark, end)
		is("all has come", "shop/a", "shop/b")
		opened[1].Delete(budget("a"))
		opened[1].Add(budget("d"))
		is("it changes", "shop/b", "shop/d")
		opened[1].Stop()
		time.Sleep(5 * time.Second)
		opened[2].Add(budget("e"))
		opened[2].Action(watch.Bookmark, end)
		is("the watch ended", "shop/e")
		if version != "9" || asked != 3 || errors.Join(heard[1:]...) != nil {
			t.Errorf("version %s, asked %d times, heard %v", version, asked, heard)
		}
		stop()
		synctest.Wait()
	})
}
