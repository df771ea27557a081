package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
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
			Trim: func(*metav1.ListOptions) {}, OnAnswer: func(err error) {
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
			Replaced: func(all []drain.Budget) {
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
// The end of a watch loses nothing: the next one goes on from there, and so does one after an outage.
// A version that the API server does not have any more is listed anew.
func TestAListIsStreamedWhereTheAPIServerCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		p := &played{T: t, kept: map[string]drain.Budget{}}
		go Keep(ctx, false, p.source(), p.keeps())

		for _, name := range []string{"a", "b", "c"} {
			p.watch(0).Add(budget(name, "5"))
		}
		p.watch(0).Modify(budget("b", "6"))
		p.watch(0).Delete(budget("c", "7"))
		p.is("not all has come")
		p.watch(0).Action(watch.Bookmark, endOfList())
		p.is("all has come", "shop/a", "shop/b")
		p.watch(0).Delete(budget("a", "10"))
		p.watch(0).Add(budget("d", "11"))
		p.watch(0).Action(watch.Bookmark, budget("", "12"))
		p.is("it changes", "shop/b", "shop/d")
		p.watch(0).Stop()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		p.away.Store(true)
		p.watch(1).Stop()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		p.away.Store(false)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := len(p.heard); p.heard[n-1] != nil || p.heard[n-2] == nil {
			t.Errorf("after an outage it was heard %v", p.heard)
		}
		p.watch(2).Add(budget("e", "13"))
		p.is("watches ended", "shop/b", "shop/d", "shop/e")
		p.watch(2).Error(&apierrors.NewResourceExpired("too old").ErrStatus)
		time.Sleep(5 * time.Second)
		p.watch(3).Add(budget("f", "20"))
		p.watch(3).Action(watch.Bookmark, endOfList())
		p.is("the version is too old", "shop/f")
		if want := []string{"all", "12", "12", "all"}; !slices.Equal(p.asked, want) {
			t.Errorf("asked for %q, want %q", p.asked, want)
		}
		stop()
		synctest.Wait()
	})
}

// What is not streamed to its end is listed, whatever the API server says, and streamed again the next
// time.
func TestAListThatIsNotStreamedToItsEndIsListed(t *testing.T) {
	tooNew := apierrors.NewTimeoutError("Too large resource version", 1)
	for name, c := range map[string]struct {
		refusal error                  // of the request
		sent    *apierrors.StatusError // after the first object
	}{
		"the API server streams no lists": {refusal: apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)},
		"it has no answer":                {refusal: io.ErrUnexpectedEOF},
		"it is busy":                      {refusal: apierrors.NewTooManyRequests("busy", 1)},
		"its etcd reports no progress":    {sent: apierrors.NewInternalError(errors.New("progress notifications are not supported"))},
		"its cache is behind":             {sent: tooNew},
		"the stream is cut off":           {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				p := &played{T: t, kept: map[string]drain.Budget{}, streamed: c.refusal}
				p.there = []policyv1.PodDisruptionBudget{*budget("a", "4"), *budget("b", "5")}
				go Keep(ctx, false, p.source(), p.keeps())
				if c.refusal == nil {
					p.watch(0).Add(budget("x", "4"))
				}
				if c.sent != nil {
					p.watch(0).Error(&c.sent.ErrStatus)
				} else if c.refusal == nil {
					p.watch(0).Stop()
				}
				p.is("it is listed", "shop/a", "shop/b")
				p.last().Add(budget("c", "10"))
				p.is("it changes", "shop/a", "shop/b", "shop/c")
				if slices.ContainsFunc(p.heard, func(err error) bool { return err != nil }) {
					t.Errorf("heard %v", p.heard)
				}
				p.streamed = nil
				p.last().Error(&apierrors.NewResourceExpired("too old").ErrStatus)
				time.Sleep(5 * time.Second)
				p.last().Add(budget("d", "20"))
				p.last().Action(watch.Bookmark, endOfList())
				p.is("the next time", "shop/d")
				if want := []string{"all", "9", "all"}; !slices.Equal(p.asked, want) || p.lists != 1 {
					t.Errorf("asked for %q, want %q; %d lists", p.asked, want, p.lists)
				}
				stop()
				synctest.Wait()
			})
		})
	}
}

// What may be listed and not watched is listed again and again, and not as fast as that may be.
func TestWhatMayNotBeWatchedIsListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		forbidden := apierrors.NewForbidden(policyv1.Resource("poddisruptionbudgets"), "", errors.New("no"))
		p := &played{T: t, kept: map[string]drain.Budget{}, streamed: forbidden, watched: forbidden}
		p.there = []policyv1.PodDisruptionBudget{*budget("a", "4")}
		go Keep(ctx, false, p.source(), p.keeps())
		p.is("it is listed", "shop/a")
		p.offer(*budget("b", "12"))
		time.Sleep(5 * time.Second)
		p.is("a little later", "shop/b")
		time.Sleep(55 * time.Second)
		synctest.Wait()
		p.Lock()
		if p.lists < 20 || p.lists > 32 {
			t.Errorf("%d lists in a minute", p.lists)
		}
		if n := len(p.heard); p.heard[n-2] != nil || !apierrors.IsForbidden(p.heard[n-1]) {
			t.Errorf("heard %v", p.heard[n-2:])
		}
		p.Unlock()
		stop()
		synctest.Wait()
	})
}

func budget(name, version string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: version}}
}

func endOfList() *policyv1.PodDisruptionBudget {
	end := budget("", "9")
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return end
}

// played is an API server that streams lists, as a test has it, and what was kept of it.
type played struct {
	*testing.T
	sync.Mutex // a sleep in a bubble orders nothing for the race detector
	opened     []*watch.FakeWatcher
	asked      []string // the versions that were watched from
	away       atomic.Bool
	heard      []error
	kept       map[string]drain.Budget

	there             []policyv1.PodDisruptionBudget // for lists; nil: nobody may ask
	lists             int
	streamed, watched error // why lists are not streamed, and why nothing is watched
}

// last is the watch that was opened last.
func (p *played) last() *watch.FakeWatcher {
	p.Helper()
	synctest.Wait()
	p.Lock()
	opened := len(p.opened)
	p.Unlock()
	if opened == 0 {
		p.Fatal("no watch was opened")
	}
	return p.watch(opened - 1)
}

func (p *played) watch(i int) *watch.FakeWatcher {
	p.Helper()
	synctest.Wait()
	p.Lock()
	defer p.Unlock()
	if i != len(p.opened)-1 {
		p.Fatalf("%d watches were opened", len(p.opened))
	}
	return p.opened[i]
}

func (p *played) is(when string, want ...string) {
	p.Helper()
	synctest.Wait()
	p.Lock()
	defer p.Unlock()
	if got := slices.Sorted(maps.Keys(p.kept)); !slices.Equal(got, want) {
		p.Errorf("%s: %q, want %q", when, got, want)
	}
}

func (p *played) source() Source[*policyv1.PodDisruptionBudgetList] {
	return Source[*policyv1.PodDisruptionBudgetList]{
		List: func(context.Context, metav1.ListOptions) (*policyv1.PodDisruptionBudgetList, error) {
			p.Lock()
			defer p.Unlock()
			if p.lists++; p.there == nil {
				p.Error("it lists")
			}
			return &policyv1.PodDisruptionBudgetList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: p.there}, nil
		},
		Watch: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			p.Lock()
			defer p.Unlock()
			if p.away.Load() {
				return nil, io.ErrUnexpectedEOF
			}
			streams := o.SendInitialEvents != nil && *o.SendInitialEvents && o.ResourceVersionMatch == metav1.ResourceVersionMatchNotOlderThan
			if streams != (o.ResourceVersion == "") || !o.AllowWatchBookmarks {
				p.Errorf("it asks %+v", o)
			}
			p.asked = append(p.asked, cmp.Or(o.ResourceVersion, "all"))
			if refusal := cmp.Or(p.watched, p.streamed); refusal != nil && (streams || p.watched != nil) {
				return nil, refusal
			}
			p.opened = append(p.opened, watch.NewFake())
			return p.opened[len(p.opened)-1], nil
		},
		Trim: func(*metav1.ListOptions) {}, OnAnswer: p.hear,
	}
}

func (p *played) keeps() Kept[*policyv1.PodDisruptionBudget, drain.Budget] {
	return Kept[*policyv1.PodDisruptionBudget, drain.Budget]{
		Turn: annotations.DrainBudget, Key: drain.Budget.Key,
		Set: func(b drain.Budget) { p.keep(b) },
		Gone: func(b drain.Budget) {
			p.Lock()
			defer p.Unlock()
			delete(p.kept, b.Key())
		},
		Replaced: func(all []drain.Budget) {
			p.Lock()
			clear(p.kept)
			p.Unlock()
			p.keep(all...)
		},
	}
}

func (p *played) keep(budgets ...drain.Budget) {
	p.Lock()
	defer p.Unlock()
	for _, b := range budgets {
		p.kept[b.Key()] = b
	}
}

func (p *played) hear(err error) {
	p.Lock()
	defer p.Unlock()
	p.heard = append(p.heard, err)
}

// offer is what lists have from now on.
func (p *played) offer(there ...policyv1.PodDisruptionBudget) {
	p.Lock()
	defer p.Unlock()
	p.there = there
}

// An error of an API server that answers says that what was seen may not be what is there.
func TestAfterWhichErrorsAllIsListedAnew(t *testing.T) {
	what := policyv1.Resource("poddisruptionbudgets")
	tooNew := apierrors.NewTimeoutError("Too large resource version", 1)
	tooNew.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	unread := apierrors.NewInternalError(io.EOF)
	unread.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: cannotDecode}}
	for name, c := range map[string]struct {
		err  error
		away bool
	}{
		"no answer":                        {io.ErrUnexpectedEOF, true},
		"an API server that is busy":       {apierrors.NewTooManyRequests("busy", 1), true},
		"one that begins":                  {apierrors.NewServiceUnavailable("not yet"), true},
		"a version that is too old":        {apierrors.NewResourceExpired("too old"), false},
		"a version that was not there yet": {tooNew, false},
		"an event that cannot be read":     {unread, false},
		"a missing right":                  {apierrors.NewForbidden(what, "", errors.New("no")), false},
		"too much of another cluster":      {fmt.Errorf("%w: 1 KiB", ErrTooMuch), false},
	} {
		if got := away(c.err); got != c.away {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The volumes that are attached are small, and no tenant writes them.
func TestHowManyObjectsAPageHas(t *testing.T) {
	for name, c := range map[string]struct {
		small, elsewhere bool
		want             int64
	}{
		"objects of tenants":            {want: kube.FewObjects},
		"objects that no tenant writes": {small: true, want: 500},
		"objects of another cluster":    {elsewhere: true, want: 500},
	} {
		from := Source[*policyv1.PodDisruptionBudgetList]{Small: c.small, Trim: func(*metav1.ListOptions) {}}
		f := follower[*policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudgetList, drain.Budget]{from: from, elsewhere: c.elsewhere}
		err := f.each(t.Context(), func(_ context.Context, o metav1.ListOptions) (*policyv1.PodDisruptionBudgetList, error) {
			if o.Limit != c.want {
				t.Errorf("%s: a page of %d, want %d", name, o.Limit, c.want)
			}
			return &policyv1.PodDisruptionBudgetList{}, nil
		}, func(*policyv1.PodDisruptionBudget) error { return nil })
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
