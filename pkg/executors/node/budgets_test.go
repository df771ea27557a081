package node

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

func lined(names ...string) []*session {
	out := make([]*session, len(names))
	for i, n := range names {
		out[i] = &session{order: executors.DrainOrder{Node: n}}
	}
	return out
}

func nodesOfAll(sessions []*session) string {
	var out []string
	for _, s := range sessions {
		out = append(out, s.order.Node)
	}
	return strings.Join(out, " ")
}

func TestTurnsUnderABudgetAreGivenInOrder(t *testing.T) {
	l, s := newBudgetCache(), lined("a", "b", "c")
	web := drain.Budget{Namespace: "shop", Name: "web"}
	key, budgets := web.Key(), []drain.Budget{web}
	wants := map[string]bool{key: true}
	turns := func(i, want int) {
		t.Helper()
		if got := l.turns(s[i], budgets)[key]; got != want {
			t.Errorf("%s has %d turns, want %d", s[i].order.Node, got, want)
		}
	}
	next := func(got []*session, want string) {
		t.Helper()
		if nodesOfAll(got) != want {
			t.Errorf("next is %q, want %q", nodesOfAll(got), want)
		}
	}
	turns(0, perBudget)
	l.flying[key] = perBudget - 1
	turns(0, 1)
	l.flying[key] = perBudget
	turns(0, 0)
	next(l.line(s[1], wants), "")
	next(l.line(s[2], wants), "")
	next(l.line(s[1], wants), "") // keeps its place
	next(l.landed(key), "b")
	turns(0, 0) // who comes now stands behind them
	turns(1, 1)
	turns(2, 0)
	next(l.line(s[1], nil), "c") // wants it no more
	turns(2, 1)
	next(l.line(s[2], nil), "")
	turns(0, 1)
	l.flying[key] = 1
	l.landed(key)
	if len(l.flying)+len(l.lines) != 0 {
		t.Errorf("left behind: %v %v", l.flying, l.lines)
	}
}

// Whatever sessions come, go and are answered: where a turn is free and somebody
// stands in line, the first of them has been woken since, and is not woken in vain.
func TestNobodyWaitsInLineForATurnThatIsFree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var names []string
		for i := range 12 {
			names = append(names, fmt.Sprint(i))
		}
		l, all := newBudgetCache(), lined(names...)
		budgets := []drain.Budget{{Namespace: "a", Name: "a"}, {Namespace: "b", Name: "b"}}
		left, awake := map[*session]map[string]int{}, map[*session]bool{}
		for _, s := range all {
			left[s] = map[string]int{budgets[0].Key(): rapid.IntRange(0, 9).Draw(rt, "pods"), budgets[1].Key(): rapid.IntRange(0, 9).Draw(rt, "pods")}
			awake[s] = true
		}
		wake := func(sessions []*session) {
			for _, s := range sessions {
				awake[s] = true
			}
		}
		decide := func(s *session) {
			delete(awake, s)
			wants := map[string]bool{}
			for key, n := range l.turns(s, budgets) {
				taken := min(n, left[s][key])
				if l.flying[key] += taken; l.flying[key] == 0 {
					delete(l.flying, key)
				}
				if l.flying[key] > perBudget {
					rt.Fatalf("%d in flight under %s", l.flying[key], key)
				}
				if left[s][key] -= taken; left[s][key] > 0 {
					wants[key] = true
				}
			}
			wake(l.line(s, wants))
		}
		for range 1000 {
			s := rapid.SampledFrom(all).Draw(rt, "session")
			key := rapid.SampledFrom(budgets).Draw(rt, "budget").Key()
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				decide(s)
			case 1: // its pods went by themselves
				left[s][key] = 0
				decide(s)
			default:
				if l.flying[key] > 0 {
					wake(l.landed(key))
				}
			}
		}
		for over := false; !over; {
			over = true
			for _, s := range all {
				if awake[s] {
					decide(s)
					over = false
				}
			}
			for _, b := range budgets {
				if l.flying[b.Key()] > 0 {
					wake(l.landed(b.Key()))
					over = false
				}
			}
		}
		for s, pods := range left {
			for key, n := range pods {
				if n > 0 {
					rt.Fatalf("%s waits with %d pods under %s, and nobody wakes it: %v in flight", s.order.Node, n, key, l.flying)
				}
			}
		}
	})
}
