package runquota_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/runquota"
)

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

const mib = 1 << 20

func TestHowManyRunsANamespaceMayStillClaim(t *testing.T) {
	own, total := func(runs int) runquota.Room { return runquota.Room{Runs: runs} }, func(runs int) runquota.Room { return runquota.Room{Runs: runs, OfTotal: true} }
	for _, c := range []struct {
		name               string
		used, others, size int
		left               runquota.Room
	}{
		{"with nothing used", 0, 0, mib, own(24)},
		{"with almost nothing left the last one passes the bound", runquota.Max - 1, 0, mib, own(1)},
		{"a part of a run left is a run", runquota.Max - mib - 1, 0, mib, own(2)},
		{"at the bound", runquota.Max, 0, 1, own(0)},
		{"beyond the bound", runquota.Max + mib, 0, 1, own(0)},
		{"a run larger than the bound has room where nothing is used", 0, 0, 2 * runquota.Max, own(1)},
		{"as much as all others leave", 2 * mib, runquota.MaxTotal - 6*mib, mib, total(4)},
		{"where all others leave as much as the own bound does", 22 * mib, runquota.MaxTotal - 24*mib, mib, own(2)},
		{"what is reserved, with the others at the bound of all", 0, runquota.MaxTotal, mib / 4, total(4)},
		{"what is left of the reserved", mib / 2, runquota.MaxTotal - mib/2, mib / 4, total(2)},
		{"what is reserved, where all others leave less", mib / 2, runquota.MaxTotal - mib/2 - 1, mib / 4, total(2)},
		{"with the reserved used", mib, runquota.MaxTotal - mib, 1, total(0)},
		{"at both bounds", runquota.Max, runquota.MaxTotal - runquota.Max, 1, own(0)},
		{"a run larger than what is reserved", 0, runquota.MaxTotal, 2 * mib, total(1)},
	} {
		q := runquota.New()
		q.Set(named("a"), c.used)
		q.Set(types.NamespacedName{Namespace: "other", Name: "a"}, c.others)
		if got := q.Left("shop", c.size); got != c.left {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.left)
		}
		if q.Claim(named("p"), c.left.Runs+1, c.size, false) || !q.Claim(named("p"), c.left.Runs, c.size, false) {
			t.Errorf("%s: a plan may not claim what is left, or more", c.name)
		}
	}
}

// What waits for the bound of all is woken in every namespace once there is room again, one plan of each.
func TestWhoWaitsForTheOthersIsWoken(t *testing.T) {
	woken := map[string]int{}
	q := runquota.New()
	q.OnFree(func(plan types.NamespacedName) { woken[plan.String()]++ })
	run := func(namespace string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: "a"}
	}
	q.Set(run("large"), runquota.MaxTotal-4*mib)
	q.Set(run("one"), 2*mib)
	q.Set(run("two"), 2*mib)
	q.Set(run("three"), mib/2)
	for _, namespace := range []string{"one", "two"} {
		for _, plan := range []string{"first", "second"} {
			q.Claim(types.NamespacedName{Namespace: namespace, Name: plan}, 0, mib, true)
		}
	}
	q.Claim(types.NamespacedName{Namespace: "large", Name: "p"}, 0, mib, true) // beyond its own bound
	for _, c := range []struct {
		large int
		want  map[string]int
	}{
		{runquota.MaxTotal - 4*mib - mib/2, map[string]int{}},
		{runquota.MaxTotal - 5*mib, map[string]int{"one/first": 1, "two/first": 1}},
		{runquota.MaxTotal - 6*mib, map[string]int{}}, // who was woken passes it on by Next
	} {
		q.Set(run("large"), c.large)
		if diff := cmp.Diff(c.want, woken); diff != "" {
			t.Errorf("with %d MiB used by another: %s", c.large/mib, diff)
		}
		clear(woken)
	}
	q.Next("one")
	if diff := cmp.Diff(map[string]int{"one/second": 1}, woken); diff != "" {
		t.Error(diff)
	}
}

// Each row is what happens one after another; what is woken is told after each.
func TestWhatIsCountedAndWhoIsWoken(t *testing.T) {
	type step struct {
		do    func(q *runquota.Quota)
		used  int // in MiB
		woken string
	}
	set := func(run string, size int) func(q *runquota.Quota) {
		return func(q *runquota.Quota) { q.Set(named(run), size*mib) }
	}
	gone := func(run string) func(q *runquota.Quota) {
		return func(q *runquota.Quota) { q.Remove(named(run)) }
	}
	claim := func(plan string, runs, size int, waits, want bool) func(q *runquota.Quota) {
		return func(q *runquota.Quota) {
			if got := q.Claim(named(plan), runs, size*mib, waits); got != want {
				t.Errorf("%s claims %d runs: %t", plan, runs, got)
			}
		}
	}
	pending := func(plan string, size int) func(q *runquota.Quota) {
		return func(q *runquota.Quota) { q.Pending(named(plan), size*mib) }
	}
	forget := func(plan string) func(q *runquota.Quota) {
		return func(q *runquota.Quota) { q.Forget(named(plan)) }
	}
	next := func(q *runquota.Quota) { q.Next("shop") }
	for name, steps := range map[string][]step{
		"a run counts as it was seen last, and no longer once it is gone": {
			{do: set("a", 2), used: 2}, {do: set("a", 5), used: 5}, {do: set("b", 1), used: 6}, {do: set("a", 1), used: 2}, {do: gone("a"), used: 1}, {do: gone("a"), used: 1}, {do: gone("b"), used: 0},
		},
		"a claim counts until its run does": {
			{do: claim("p", 2, 3, false, true), used: 6}, {do: set("a", 4), used: 10}, {do: pending("p", 3), used: 7}, {do: pending("p", 0), used: 4},
		},
		"a claim whose room was taken meanwhile counts nothing": {
			{do: claim("p", 2, 12, false, true), used: 24}, {do: claim("q", 1, 1, false, false), used: 24},
		},
		"nobody is woken while there is no room": {
			{do: set("a", 12), used: 12}, {do: set("b", 13), used: 25}, {do: claim("p", 0, 1, true, true), used: 25}, {do: next, used: 25}, {do: set("b", 12), used: 24},
		},
		"who waits longest is woken first, and passes on what it leaves": {
			{do: set("a", 12), used: 12},
			{do: set("b", 12), used: 24},
			{do: claim("p", 0, 1, true, true), used: 24},
			{do: claim("q", 0, 1, true, true), used: 24},
			{do: claim("p", 0, 1, true, true), used: 24},
			{do: gone("a"), used: 12, woken: "p"},
			{do: next, used: 12, woken: "q"},
			{do: next, used: 12},
		},
		"a run that shrinks makes room, too": {
			{do: set("a", 24), used: 24}, {do: claim("p", 0, 1, true, true), used: 24}, {do: set("a", 23), used: 23, woken: "p"},
		},
		"so does a claim that comes to nothing": {
			{do: claim("p", 1, 24, false, true), used: 24}, {do: claim("q", 0, 1, true, true), used: 24}, {do: pending("p", 0), used: 0, woken: "q"},
		},
		"a plan that is gone is not woken, and leaves its room": {
			{do: claim("p", 1, 24, false, true), used: 24}, {do: claim("q", 0, 1, true, true), used: 24}, {do: claim("r", 0, 1, true, true), used: 24}, {do: forget("q"), used: 24}, {do: forget("p"), used: 0, woken: "r"}, {do: next},
		},
		"a plan that asks for nothing any more is not woken": {
			{do: set("a", 24), used: 24}, {do: claim("p", 0, 1, true, true), used: 24}, {do: claim("p", 0, 1, false, true), used: 24}, {do: gone("a")},
		},
		"room that comes between a look and its claim wakes at once": {
			{do: set("a", 23), used: 23}, {do: claim("p", 0, 1, true, true), used: 23, woken: "p"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			woken := ""
			q := runquota.New()
			q.OnFree(func(plan types.NamespacedName) { woken += plan.Name })
			q.Set(types.NamespacedName{Namespace: "other", Name: "a"}, runquota.Max)
			var got, want []string
			for _, s := range steps {
				woken = ""
				s.do(q)
				got, want = append(got, fmt.Sprint(q.Used("shop")/mib, woken)), append(want, fmt.Sprint(s.used, s.woken))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if q.Used("other") != runquota.Max {
				t.Errorf("another namespace uses %d", q.Used("other"))
			}
		})
	}
}
