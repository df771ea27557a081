package watchrule_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
)

// started is a field whose rule has recorded the objects a and b.
func started(rule plan.Watch) *field {
	w := newField(rule)
	w.create("a", 1)
	w.create("b", 1)
	w.begin()
	return w
}

// unwritten are the objects whose marks the ledger lacks.
func (w *field) unwritten(aged bool) []string {
	var out []string
	for _, s := range w.tracker.Unwritten(aged) {
		out = append(out, w.stored.Checkpoints(s.Rule, w.shards)[s.UID].Name)
	}
	slices.Sort(out)
	return out
}

// The times of a mark alone are of use only where who wrote later is to be read off
// them; nothing is written for their sake.
func TestMarksThatDifferByTheirTimesAloneGoAlongWithOthers(t *testing.T) {
	for name, c := range map[string]struct {
		write func(*field)
		want  []string
	}{
		"a person wrote the same again": {func(w *field) { w.size(foreigner, "a", 1) }, []string{"shop/a"}},
		"a run wrote the same again":    {func(w *field) { w.size(planner, "a", 1) }, []string{"shop/a"}},
		"nobody wrote":                  {func(w *field) { w.traceless("a", sized(1)) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(plan.Watch{})
			c.write(w)
			if got := w.unwritten(false); len(got) > 0 {
				t.Errorf("%v are to be written for themselves", got)
			}
			if diff := cmp.Diff(c.want, w.unwritten(true)); diff != "" {
				t.Errorf("what goes along:\n%s", diff)
			}
			w.tracker.Written(w.tracker.Unwritten(true))
			if got := w.unwritten(true); len(got) > 0 {
				t.Errorf("%v are to be written once more", got)
			}
		})
	}
}

// Between reading what is to be written and the answer to the write more may happen.
func TestWhatChangesWhileMarksAreWrittenIsWrittenAfterIt(t *testing.T) {
	for name, c := range map[string]struct {
		before, during func(*field)
		gone           bool
	}{
		"another write of the run":         {func(w *field) { w.size(planner, "a", 2) }, func(w *field) { w.size(planner, "a", 3) }, false},
		"the object leaves the selection":  {func(w *field) { w.size(planner, "a", 2) }, func(w *field) { w.leaves("a") }, true},
		"it has left, and nobody wrote it": {func(w *field) { w.leaves("a") }, func(w *field) { w.size(planner, "b", 2) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(selected(plan.Watch{}))
			c.before(w)
			written := w.tracker.Unwritten(false)
			c.during(w)
			w.tracker.Written(written)
			if got := w.tracker.Unwritten(false); len(got) != 1 || got[0].Gone != c.gone {
				t.Errorf("to be written: %+v", got)
			}
			w.tracker.Written(w.tracker.Unwritten(false))
			if got := w.tracker.Unwritten(false); len(got) > 0 {
				t.Errorf("to be written once more: %+v", got)
			}
		})
	}
}

// leaves takes an object out of the selection, which is confirmed.
func (w *field) leaves(name string) {
	w.leave(name)
	for _, u := range w.tracker.Unconfirmed() {
		w.tracker.Confirm(u, true)
	}
}

// A closed rule lets go of everything but what a run of the plan has settled.
func TestARuleThatIsClosedKeepsWhatIsToBeWritten(t *testing.T) {
	w := newField(plan.Watch{})
	for _, name := range []string{"still", "settled", "aged"} {
		w.create(name, 1)
	}
	w.begin()
	w.size(planner, "settled", 2)
	w.size(foreigner, "aged", 1)
	for i := range plan.MaxWatched {
		w.tracker.Observe(w.ids()[0], watchrule.Observation{UID: string(rune(0x4e00 + i)), Name: "p", Version: uint64(i + 1000), Body: run.Body{}})
	}
	if w.tracker.Full(w.ids()[0]) == "" {
		t.Fatal("it is open")
	}
	if diff := cmp.Diff([]string{"shop/settled"}, w.unwritten(false)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"shop/aged", "shop/settled"}, w.unwritten(true)); diff != "" {
		t.Error(diff)
	}
}

func (w *field) claims(seen []watchrule.Observed) []run.Request {
	var out []run.Request
	for _, o := range seen {
		out = append(out, run.Request{Kind: run.ByWatch, Rule: o.Rule, UID: o.UID, Event: o.Event, Ordinal: o.Checkpoint.Ordinal})
	}
	return out
}

// A claim counts from the write that holds it, also before the ledger is read again.
func TestWhatWasClaimedAsksForNoOtherRun(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*field)
		want    int64 // what the ledger says of earned runs, and what is kept of that
		objects int
	}{
		"an update": {func(w *field) { w.size(foreigner, "a", 2) }, 7, 2},
		"a create":  {func(w *field) { w.create("c", 2) }, 7, 3},
		"a delete":  {func(w *field) { w.remove("a") }, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(plan.Watch{})
			c.change(w)
			seen := candidates(w.tracker)
			if len(seen) != 1 {
				t.Fatalf("%+v ask for a run", seen)
			}
			mark := seen[0].Checkpoint
			mark.Earned = 7
			w.tracker.Decided(w.claims(seen), []ledger.ObjectCheckpoint{{Rule: seen[0].Rule, UID: seen[0].UID, Checkpoint: mark}})
			if again := candidates(w.tracker); len(again) > 0 {
				t.Errorf("it asks again: %+v", again)
			}
			if got := w.tracker.Unwritten(true); len(got) > 0 {
				t.Errorf("it is to be written again: %+v", got)
			}
			if got := w.tracker.Watching(); got != c.objects {
				t.Errorf("%d objects are watched", got)
			}
			if c.want == 0 {
				return
			}
			w.size(foreigner, seen[0].Name, 9)
			if next := candidates(w.tracker); len(next) != 1 || next[0].Checkpoint.Earned != c.want {
				t.Errorf("of its next change: %+v", next)
			}
		})
	}
}

// A change that waits was looked at: only another one asks for another look, else the
// plan would be looked at without end.
func TestWhatWaitsAsksForALookOnlyWhenMoreCame(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*field)
		want      watchrule.Urgency
	}{
		"nothing came":   {func(*field) {}, watchrule.UrgencyNone},
		"another change": {func(w *field) { w.size(foreigner, "a", 3) }, watchrule.UrgencyNow},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(plan.Watch{})
			w.size(foreigner, "a", 2)
			candidates(w.tracker)
			c.meanwhile(w)
			if got := w.tracker.Decided(nil, nil); got != c.want {
				t.Errorf("urgency %v, want %v", got, c.want)
			}
		})
	}
}

// Objects are asked about one by one, so nobody asks about those that need it not.
func TestOnlyObjectsThatMayBeGoneAreAskedAbout(t *testing.T) {
	w := started(selected(plan.Watch{}))
	w.size(foreigner, "b", 2)
	if got := w.tracker.Unconfirmed(); len(got) > 0 {
		t.Errorf("of one that changed: %+v", got)
	}
	w.leave("a")
	want := []watchrule.ObjectKey{{Rule: w.ids()[0], UID: w.objects["a"].uid, Namespace: "shop", Name: "a"}}
	if diff := cmp.Diff(want, w.tracker.Unconfirmed()); diff != "" {
		t.Error(diff)
	}
	w.tracker.Confirm(want[0], true)
	if got := w.tracker.Unconfirmed(); len(got) > 0 {
		t.Errorf("of one that has left: %+v", got)
	}
	w.tracker.Confirm(want[0], false)
	for _, o := range candidates(w.tracker) {
		if o.Event == plan.EventDelete {
			t.Errorf("it has left and is told to be gone: %+v", o)
		}
	}
}

// An object may go while the start of its rule is being written.
func TestAnObjectThatGoesWhileItsRuleStarts(t *testing.T) {
	for name, c := range map[string]struct {
		rule        plan.Watch
		asked, told int
	}{
		"of all objects it is gone":                 {plan.Watch{}, 0, 1},
		"of a selection it may have left it":        {selected(plan.Watch{}), 1, 0},
		"where nobody wants to know, nothing is to": {plan.Watch{Events: []string{"update"}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newField(c.rule)
			w.create("a", 1)
			w.tracker = watchrule.NewTracker("uid", planner, agent)
			w.takeUp()
			b := w.tracker.Update(nil, ledger.Ledger{}, false, false, true)
			w.tracker.UpdateStart(&b, w.ids()[0])
			w.remove("a")
			if got := w.tracker.Unconfirmed(); len(got) > 0 {
				t.Errorf("it is asked about before the start is written: %+v", got)
			}
			w.tracker.Recorded(b, nil, true)
			if asked, told := len(w.tracker.Unconfirmed()), len(candidates(w.tracker)); asked != c.asked || told != c.told {
				t.Errorf("%d are asked about, %d are gone", asked, told)
			}
		})
	}
}

func TestAStartThatWasNotWrittenIsGivenAgain(t *testing.T) {
	w := newField(plan.Watch{})
	w.create("a", 1)
	w.tracker = watchrule.NewTracker("uid", planner, agent)
	w.takeUp()
	first, _ := w.tracker.Start(w.ids()[0])
	w.tracker.Started(w.ids()[0], false)
	again, starts := w.tracker.Start(w.ids()[0])
	if diff := cmp.Diff(first, again); diff != "" || !starts || len(first) != 1 {
		t.Errorf("%t, %s", starts, diff)
	}
}

// Some API servers' versions are no numbers: what comes later is newer.
func TestVersionsThatAreNoNumbersCountInTheirOrder(t *testing.T) {
	for name, c := range map[string]struct {
		sizes []int
		want  int
	}{
		"there":           {[]int{2, 3}, 1},
		"there and back":  {[]int{2, 1}, 0},
		"there and there": {[]int{2, 1, 2}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newField(plan.Watch{Fields: []string{"spec.size"}})
			w.create("a", 1)
			w.objects["a"].version = 0
			w.begin()
			w.tracker.BeginWrite() // so that all of them are held
			for _, size := range c.sizes {
				w.quietly(foreigner, "a", sized(size))
				w.objects["a"].version = 0
				w.show("a")
			}
			w.tracker.EndWrite()
			if got := candidates(w.tracker); len(got) != c.want {
				t.Errorf("%+v ask for a run", got)
			}
		})
	}
}

// What controllers write to the status tells nothing of who wrote the fields that a rule
// compares, unless it compares the status.
func TestWhoWroteTheStatusCountsWhereTheStatusDoes(t *testing.T) {
	for name, c := range map[string]struct {
		fields []string
		want   int
	}{
		"the object as a whole": {nil, 0},
		"a field of the spec":   {[]string{"spec.size"}, 0},
		"a field of the status": {[]string{"spec.size", "status.ready"}, 1},
		"every field":           {[]string{"[*]"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(plan.Watch{Fields: c.fields})
			w.tracker.SetUncertainty(watchrule.DoubtLost)
			w.quietly(planner, "a", sized(2))
			s := w.sighting("a")
			s.Writers = append(s.Writers, watchrule.Writer{Manager: "controller", Subresource: "status", At: w.now.Unix() + 5})
			w.tracker.Observe(w.ids()[0], s)
			if got := candidates(w.tracker); len(got) != c.want {
				t.Errorf("%+v ask for a run", got)
			}
		})
	}
}

// A condition on the object alone needs it once, and not of what is there at first.
func TestWhatIsThereAtFirstIsNotKeptForAConditionOnItAlone(t *testing.T) {
	w := newField(plan.Watch{When: "object.spec.size > 1", Events: []string{"create", "update"}})
	w.create("a", 1)
	w.tracker = watchrule.NewTracker("uid", planner, agent)
	w.takeUp()
	if kept := w.tracker.Kept(); kept != 0 {
		t.Errorf("%d bytes are kept", kept)
	}
	w.look()
	w.size(foreigner, "a", 2)
	if w.tracker.Kept() == 0 {
		t.Error("nothing is kept for the condition")
	}
	w.expect(t, "update a")
}

func TestTheNewestBodyThatIsKept(t *testing.T) {
	w := started(onlyWhen("object.spec.size > oldObject.spec.size"))
	id, uid := w.ids()[0], w.objects["a"].uid
	size := func(want any) {
		t.Helper()
		spec, _ := w.tracker.Body(id, uid)["spec"].(map[string]any)
		if diff := cmp.Diff(want, spec["size"]); diff != "" {
			t.Error(diff)
		}
	}
	size(int64(1)) // as it was handled
	w.size(foreigner, "a", 2)
	size(int64(2)) // as it waits
	w.tracker.BeginWrite()
	w.size(foreigner, "a", 3)
	w.size(foreigner, "a", 4)
	size(int64(4)) // as it came while a run writes
	if w.tracker.Body("unknown", uid) != nil || w.tracker.Body(id, "unknown") != nil {
		t.Error("of what is not watched there is a body")
	}
	if got := started(plan.Watch{}); got.tracker.Body(got.ids()[0], got.objects["a"].uid) != nil {
		t.Error("a rule without a condition keeps one")
	}
}

// The shards are read and written only where something may stand there.
func TestWhenTheShardsAreWritten(t *testing.T) {
	rule := plan.Watch{Fields: []string{"spec.size"}}
	for shards, want := range map[int]bool{0: false, 1: true} {
		w := started(rule)
		w.stored.Shards = shards
		w.tracker.SetRules(nil, w.spec.MirrorPrefix)
		if b := w.tracker.Update(w.stored, *w.stored, false, false, true); b.Prune != want || !b.Changed {
			t.Errorf("with %d shards: a rule went, they are to be written: %t", shards, b.Prune)
		}
	}
	for n, want := range map[int]int{plan.MaxSeen: 0, plan.MaxSeen + 1: plan.MaxSeen + 1} {
		w := started(rule)
		for i := range n {
			*w.stored = w.stored.WithCheckpoints(ledger.ObjectCheckpoint{Rule: w.ids()[0], UID: string(rune('A' + i))})
		}
		if b := w.tracker.Update(w.stored, *w.stored, false, false, true); len(b.Shards) != want || len(b.Ledger.Seen) != n-want {
			t.Errorf("of %d marks beside the head %d go to the shards", n, len(b.Shards))
		}
	}
}
