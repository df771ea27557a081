package watchrules

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func bodyOf(size int) *ruleObject {
	return &ruleObject{body: run.Body{"data": map[string]any{"a": strings.Repeat("x", size)}}}
}

// What waits to be told has so much room and no more, and gives it back.
func TestBodiesThatWaitHaveSoMuchRoomAndNoMore(t *testing.T) {
	b := newBacklog()
	var kept []*ruleObject
	for range 40 {
		kept = append(kept, b.keep(bodyOf(1<<20)).(*ruleObject))
	}
	if whole, late := kept[30], kept[31]; whole.later || whole.body == nil || !late.later || late.body != nil {
		t.Errorf("the 31st waits with its body: %t; the 32nd without: %t", whole.body != nil, late.later)
	}
	for _, o := range kept {
		o.told()
		o.told() // twice is once
	}
	if left := b.taken.Load(); left != 0 {
		t.Errorf("%d bytes were not given back", left)
	}
	if o := b.keep(bodyOf(1 << 20)).(*ruleObject); o.later {
		t.Error("there is no room after all were told")
	}
	if b.keep("a name") != "a name" {
		t.Error("what is no object is another")
	}
}

func TestWhatAllRulesKeepIsBounded(t *testing.T) {
	k := memoryBudget{byNamespace: map[string]int{}}
	for _, c := range []struct {
		namespace string
		by        int
		want      string
	}{
		{"eve", maxKeptOfNamespace, ""},
		{"eve", 1, "the plans of a namespace"},
		{"eve", -1, ""},
		{"shop", maxKept - maxKeptOfNamespace, ""},
		{"bank", 1, "all plans"},
		{"bank", -1, ""},
		{"eve", -maxKeptOfNamespace, ""},
		{"bank", 1, ""},
	} {
		if got, _ := k.change(c.namespace, c.by); got != c.want {
			t.Errorf("%s %d: %q, want %q", c.namespace, c.by, got, c.want)
		}
	}
	if len(k.byNamespace) != 2 {
		t.Errorf("it remembers %v", k.byNamespace)
	}
}

// Plans that each stay within their own bound are too much together: the one that makes it
// so is closed and says why, and what it kept is given back.
func TestARuleThatIsTooMuchBesideOthersIsClosed(t *testing.T) {
	const rule = "{apiVersion: v1, kind: ConfigMap, selector: {matchLabels: {app: shop}}, when: 'object.data.a != oldObject.data.a'}"
	inWorld(t, func(w *world) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			w.object(name, strings.Repeat(name, 1<<20))
		}
		names := []string{"p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8"} // 5 MiB each
		for _, name := range names {
			w.plan(name, rule)
		}
		w.begins(names...)
		closed := 0
		for _, why := range w.unwatched {
			if strings.Contains(why, "than the plans of a namespace may together, 32 MiB") {
				closed++
			}
		}
		if kept := w.rules.budget.all; closed != 2 || kept > maxKeptOfNamespace || kept < maxKeptOfNamespace/2 {
			t.Errorf("%d are closed, %d bytes are kept; %q", closed, kept, w.unwatched)
		}
		w.stop()
		w.stop = nil
		if w.rules.budget.all != 0 || len(w.rules.budget.byNamespace) != 0 {
			t.Errorf("after their end %d bytes count", w.rules.budget.all)
		}
	})
}
