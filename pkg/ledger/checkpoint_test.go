package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func mark(digest string) ledger.Checkpoint { return ledger.Checkpoint{Digest: digest, Ordinal: 1} }

func seen(rule, uid, digest string) ledger.ObjectCheckpoint {
	return ledger.ObjectCheckpoint{Rule: rule, UID: uid, Checkpoint: mark(digest)}
}

func gone(rule, uid string) ledger.ObjectCheckpoint {
	return ledger.ObjectCheckpoint{Rule: rule, UID: uid, Gone: true}
}

// marked is what is kept of one rule, by uid.
func marked(l ledger.Ledger, rule string, shards ...ledger.Shard) string {
	var out []string
	marks := l.Checkpoints(rule, shards)
	for _, uid := range []string{"a", "b", "c"} {
		if m, there := marks[uid]; there {
			out = append(out, uid+"="+m.Digest)
		}
	}
	return strings.Join(out, " ")
}

func TestTheNewestMarkOfAnObjectCounts(t *testing.T) {
	l := ledger.Ledger{}.WithCheckpoints(seen("r", "a", "1"), seen("s", "a", "2"), seen("r", "b", "3"))
	again := l.WithCheckpoints(seen("r", "a", "4"), gone("r", "b"), seen("r", "c", "5"))
	if got := len(again.Seen); got != 4 {
		t.Errorf("%d marks stand beside the head, want one of each object and rule: %+v", got, again.Seen)
	}
	shard := ledger.Shard{"r": {"a": mark("old"), "b": mark("old")}, "other": {"c": mark("x")}}
	for _, c := range []struct{ name, got, want string }{
		{"of the head before those of the shards", marked(again, "r", shard), "a=4 c=5"},
		{"of another rule", marked(again, "s", shard), "a=2"},
		{"of the shards alone", marked(ledger.Ledger{}, "r", shard, ledger.Shard{"r": {"c": mark("y")}}), "a=old b=old c=y"},
		{"the one that was given is as it was", marked(l, "r"), "a=1 b=3"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}

func TestWhatBelongsToNoRuleOfThePlanIsForgotten(t *testing.T) {
	l := ledger.Ledger{}.WithStarted("r").WithStarted("s").WithCheckpoints(seen("r", "a", "1"), seen("s", "a", "2"))
	for _, c := range []struct {
		name    string
		ledger  ledger.Ledger
		rules   []string
		changed bool
		left    string
	}{
		{"all are the plan's", l, []string{"r", "s", "new"}, false, "r s | r s"},
		{"one is not", l, []string{"r"}, true, "r | r"},
		{"none is", l, nil, true, " | "},
		{"only a mark is left of one", ledger.Ledger{}.WithCheckpoints(seen("s", "a", "2")), []string{"r"}, true, " | "},
		{"only its start is", ledger.Ledger{}.WithStarted("s"), []string{"r"}, true, " | "},
	} {
		got, changed := c.ledger.PruneRules(c.rules)
		var rules, marks []string
		for _, rule := range []string{"r", "s"} {
			if got.Kept(rule) {
				rules = append(rules, rule)
			}
		}
		for _, s := range got.Seen {
			marks = append(marks, s.Rule)
		}
		if left := strings.Join(rules, " ") + " | " + strings.Join(marks, " "); left != c.left || changed != c.changed {
			t.Errorf("%s: left %q, changed %t", c.name, left, changed)
		}
	}
	if !l.Kept("r") || l.Kept("new") || len(l.Seen) != 2 {
		t.Error("the ledger that was given has changed")
	}
}

func TestOnlyWhatIsStoredGoesToTheShards(t *testing.T) {
	stored := ledger.Ledger{}.WithCheckpoints(seen("r", "a", "1"), seen("r", "b", "2"))
	now := stored.WithCheckpoints(seen("r", "b", "3"), seen("r", "c", "4"))
	left, out := now.Flushed(stored)
	if diff := cmp.Diff([]ledger.ObjectCheckpoint{seen("r", "a", "1")}, out); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]ledger.ObjectCheckpoint{seen("r", "b", "3"), seen("r", "c", "4")}, left.Seen); diff != "" {
		t.Error(diff)
	}
}

func TestMarksGoIntoTheShards(t *testing.T) {
	all := func(string) bool { return true }
	two := func() []ledger.Shard {
		return []ledger.Shard{{"r": {"a": mark("1")}, "s": {"a": mark("2")}}, {"r": {"b": mark("3")}}}
	}
	for _, c := range []struct {
		name    string
		given   []ledger.ObjectCheckpoint
		kept    func(string) bool
		anew    []string
		want    []ledger.Shard
		changed []bool
	}{
		{"nothing", nil, all, nil, two(), []bool{false, false}},
		{"the same again", []ledger.ObjectCheckpoint{seen("r", "a", "1")}, all, nil, two(), []bool{false, false}},
		{"another state, in its place", []ledger.ObjectCheckpoint{seen("r", "b", "9")}, all, nil, []ledger.Shard{two()[0], {"r": {"b": mark("9")}}}, []bool{false, true}},
		{"a new object, where there is room", []ledger.ObjectCheckpoint{seen("r", "c", "9")}, all, nil, []ledger.Shard{{"r": {"a": mark("1"), "c": mark("9")}, "s": {"a": mark("2")}}, two()[1]}, []bool{true, false}},
		{"a new rule", []ledger.ObjectCheckpoint{seen("t", "a", "9")}, all, nil, []ledger.Shard{{"r": {"a": mark("1")}, "s": {"a": mark("2")}, "t": {"a": mark("9")}}, two()[1]}, []bool{true, false}},
		{"an object that is gone", []ledger.ObjectCheckpoint{gone("r", "b")}, all, nil, []ledger.Shard{two()[0], {"r": {}}}, []bool{false, true}},
		{"one that was never there is gone", []ledger.ObjectCheckpoint{gone("r", "c")}, all, nil, two(), []bool{false, false}},
		{"a rule that is not kept", []ledger.ObjectCheckpoint{seen("s", "b", "9")}, func(rule string) bool { return rule == "r" }, nil, []ledger.Shard{{"r": {"a": mark("1")}}, two()[1]}, []bool{true, false}},
		{"a rule that begins anew", []ledger.ObjectCheckpoint{seen("r", "c", "9")}, all, []string{"r"}, []ledger.Shard{{"s": {"a": mark("2")}, "r": {"c": mark("9")}}, {}}, []bool{true, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := two()
			got, changed := ledger.MergeCheckpoints(before, c.given, c.kept, c.anew)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.changed, changed); diff != "" {
				t.Errorf("changed: %s", diff)
			}
			if diff := cmp.Diff(two(), before); diff != "" {
				t.Errorf("the shards that were given have changed: %s", diff)
			}
		})
	}
}

func TestAShardThatIsFullIsFollowedByAnother(t *testing.T) {
	all := func(string) bool { return true }
	const each = 1000
	big := func(i int) ledger.ObjectCheckpoint {
		uid := fmt.Sprintf("%03d", i)
		return ledger.ObjectCheckpoint{Rule: "r", UID: uid, Checkpoint: ledger.Checkpoint{Digest: strings.Repeat("d", 500), Name: strings.Repeat("n", each-500-len(uid)-110)}}
	}
	full := plan.MaxShard / each
	var marks []ledger.ObjectCheckpoint
	for i := range full {
		marks = append(marks, big(i))
	}
	for n, want := range map[int]int{full - 1: 1, full: 2} {
		left := plan.MaxShard - n*each // exactly what is left, if there is any
		last := ledger.ObjectCheckpoint{Rule: "r", UID: "last", Checkpoint: ledger.Checkpoint{Digest: strings.Repeat("d", max(left, each)-len("last")-110)}}
		shards, changed := ledger.MergeCheckpoints(nil, append(marks[:n:n], last), all, nil)
		if len(shards) != want || len(changed) != want {
			t.Errorf("%d marks and one that just fits: %d shards, want %d", n, len(shards), want)
		}
	}
	shards, _ := ledger.MergeCheckpoints(nil, marks, all, nil) // 204 marks of 1,000 bytes in 204,800
	more, changed := ledger.MergeCheckpoints(shards, []ledger.ObjectCheckpoint{big(999)}, all, nil)
	if len(more) != 2 || changed[0] || !changed[1] {
		t.Errorf("what a shard holds already counts: %d shards, changed %v", len(more), changed)
	}
	freed, changed := ledger.MergeCheckpoints(more, []ledger.ObjectCheckpoint{gone("r", "000"), big(998)}, all, nil)
	if len(freed) != 2 || len(freed[0]["r"]) != full || changed[1] {
		t.Errorf("the room of what is gone is used again: %d shards, %d in the first", len(freed), len(freed[0]["r"]))
	}
	fresh, _ := ledger.MergeCheckpoints(more, []ledger.ObjectCheckpoint{big(997)}, all, nil)
	if len(fresh) != 2 || len(fresh[1]["r"]) != 2 {
		t.Errorf("the first shard with room is taken: %d shards", len(fresh))
	}
}

// An object has a burst of runs, and then one in each period; who is quiet earns them back.
func TestPace(t *testing.T) {
	now := time.Date(2026, 11, 21, 3, 0, 0, 500_000_000, time.UTC)
	var c ledger.Checkpoint
	claim := func(at time.Time) (time.Time, bool) {
		after, again, may := c.Pace(at)
		c = after
		return again, may
	}
	for i := range ledger.WatchBurst {
		if _, may := claim(now); !may {
			t.Fatalf("run %d of a burst has to wait", i+1)
		}
	}
	again, may := claim(now)
	if wait := again.Sub(now); may || wait <= 0 || wait > ledger.WatchPeriod {
		t.Fatalf("after a burst it may %v, at %s", may, again)
	}
	if _, may := claim(again.Add(-time.Second)); may {
		t.Error("it may before that")
	}
	if _, may := claim(again); !may {
		t.Error("it may not then")
	}
	if next, may := claim(again); may || next.Sub(again) != ledger.WatchPeriod {
		t.Errorf("and the one after it may %v, at %s", may, next)
	}
	quiet := again.Add(ledger.WatchBurst * ledger.WatchPeriod)
	for range ledger.WatchBurst {
		if _, may := claim(quiet); !may {
			t.Fatal("what was quiet has no burst again")
		}
	}
	if _, may := claim(quiet); may {
		t.Error("it has earned more than a burst")
	}
}
