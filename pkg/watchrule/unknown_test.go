package watchrule_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
)

// What is said of a rule or of an object that is not watched any more changes nothing:
// the plan may have been edited, and the object may be gone, while it was on its way.
func TestWhatIsSaidOfWhatIsNotWatchedChangesNothing(t *testing.T) {
	for name, say := range map[string]func(w *field, tr *watchrule.Tracker, id string){
		"a change, of another rule": func(w *field, tr *watchrule.Tracker, _ string) { tr.Observe("unknown", w.sighting("a")) },
		"an end, of another rule": func(w *field, tr *watchrule.Tracker, _ string) {
			tr.NoteMissing("unknown", w.objects["a"].uid, nil)
		},
		"an end, of another object": func(_ *field, tr *watchrule.Tracker, id string) { tr.NoteMissing(id, "unknown", nil) },
		"a list, of another rule": func(_ *field, tr *watchrule.Tracker, _ string) {
			tr.NoteListed("unknown", func(string) bool { return false })
		},
		"that it is there, of another rule": func(w *field, tr *watchrule.Tracker, _ string) {
			tr.Confirm(watchrule.ObjectKey{Rule: "unknown", UID: w.objects["a"].uid}, false)
		},
		"that another object is not there": func(_ *field, tr *watchrule.Tracker, id string) {
			tr.Confirm(watchrule.ObjectKey{Rule: id, UID: "unknown"}, false)
		},
		"that one is not there which nobody asked about": func(w *field, tr *watchrule.Tracker, id string) {
			tr.Confirm(watchrule.ObjectKey{Rule: id, UID: w.objects["a"].uid}, false)
		},
		"the start of another rule":     func(_ *field, tr *watchrule.Tracker, _ string) { tr.Started("unknown", true) },
		"the start of one that goes on": func(_ *field, tr *watchrule.Tracker, id string) { tr.Started(id, false) },
		"a claim by a slot": func(w *field, tr *watchrule.Tracker, id string) {
			tr.Decided([]run.Request{{Kind: run.BySchedule, Rule: id, UID: w.objects["a"].uid, Ordinal: 999}}, nil)
		},
		"a claim of another rule": func(w *field, tr *watchrule.Tracker, _ string) {
			tr.Decided([]run.Request{{Kind: run.ByWatch, Rule: "unknown", UID: w.objects["a"].uid, Ordinal: 999}}, nil)
		},
		"a claim of another object": func(_ *field, tr *watchrule.Tracker, id string) {
			tr.Decided([]run.Request{{Kind: run.ByWatch, Rule: id, UID: "unknown", Ordinal: 999}}, nil)
		},
		"a claim that nobody proposed": func(w *field, tr *watchrule.Tracker, id string) {
			tr.Decided([]run.Request{{Kind: run.ByWatch, Rule: id, UID: w.objects["a"].uid, Ordinal: 999, Event: plan.EventUpdate}}, nil)
		},
		"the end of one that is there": func(w *field, tr *watchrule.Tracker, id string) {
			tr.Decided([]run.Request{{Kind: run.ByWatch, Rule: id, UID: w.objects["a"].uid, Ordinal: 999, Event: plan.EventDelete}}, nil)
		},
		"a write of another kind": func(w *field, tr *watchrule.Tracker, _ string) {
			s := w.sighting("a")
			s.Version += 50
			tr.NoteWrite("example.org/v1", "Other", s)
		},
		"a write of another version": func(w *field, tr *watchrule.Tracker, _ string) {
			s := w.sighting("a")
			s.Version += 50
			tr.NoteWrite("example.org/v2", "App", s)
		},
		"a write of another object": func(w *field, tr *watchrule.Tracker, _ string) {
			s := w.sighting("a")
			s.UID = "unknown"
			tr.NoteWrite("example.org/v1", "App", s)
		},
		"marks of another rule": func(w *field, tr *watchrule.Tracker, _ string) {
			tr.Written([]ledger.ObjectCheckpoint{{Rule: "unknown", UID: w.objects["a"].uid}})
		},
		"marks of another object": func(_ *field, tr *watchrule.Tracker, id string) {
			tr.Written([]ledger.ObjectCheckpoint{{Rule: id, UID: "unknown"}})
		},
		"a claim in the ledger, of another rule": func(w *field, tr *watchrule.Tracker, _ string) {
			tr.Overlay([]ledger.ObjectCheckpoint{{Rule: "unknown", UID: w.objects["a"].uid, Checkpoint: ledger.Checkpoint{Ordinal: 999}}})
		},
		"a claim in the ledger, of another object": func(_ *field, tr *watchrule.Tracker, id string) {
			tr.Overlay([]ledger.ObjectCheckpoint{{Rule: id, UID: "unknown", Checkpoint: ledger.Checkpoint{Ordinal: 999}}})
		},
		"an older claim in the ledger": func(w *field, tr *watchrule.Tracker, id string) {
			tr.Overlay([]ledger.ObjectCheckpoint{{Rule: id, UID: w.objects["a"].uid}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newField(plan.Watch{})
			w.create("a", 1)
			w.begin()
			watching, kept := w.tracker.Watching(), w.tracker.Kept()
			say(w, w.tracker, w.ids()[0])
			if got := candidates(w.tracker); len(got) != 0 {
				t.Errorf("it asks for a run: %+v", got)
			}
			if got := w.tracker.Unwritten(false); len(got) != 0 {
				t.Errorf("something is to be written: %+v", got)
			}
			if w.tracker.Watching() != watching || w.tracker.Kept() != kept || len(w.tracker.Unconfirmed()) != 0 {
				t.Errorf("%d are watched, were %d", w.tracker.Watching(), watching)
			}
			w.size(foreigner, "a", 2)
			w.look()
			w.expect(t, "update a")
		})
	}
}

func TestNothingWaitsForTheAnswerToAWriteWhereNothingChanged(t *testing.T) {
	w := newField(plan.Watch{})
	w.create("a", 1)
	w.begin()
	w.tracker.BeginWrite()
	if w.tracker.EndWrite() {
		t.Error("something waited")
	}
	w.tracker.BeginWrite()
	w.tracker.BeginWrite()
	w.quietly(foreigner, "a", sized(2))
	if got := w.tracker.Observe(w.ids()[0], w.sighting("a")); got != watchrule.UrgencyNone {
		t.Errorf("a look is asked for while a write is under way: %v", got)
	}
	if got := candidates(w.tracker); len(got) != 0 {
		t.Errorf("a run is: %+v", got)
	}
	if w.tracker.EndWrite() {
		t.Error("the second write is under way still")
	}
	if !w.tracker.EndWrite() {
		t.Error("the change does not wait any more")
	}
}

func TestMarksStandBesideTheHeadWhileThereIsRoom(t *testing.T) {
	for n, want := range map[int]int{plan.MaxSeen: plan.MaxSeen, plan.MaxSeen + 1: 0} {
		w := newField(plan.Watch{Fields: []string{"spec.size"}})
		for i := range n {
			w.create(string(rune('a'+i/26))+string(rune('a'+i%26)), 1)
		}
		w.begin()
		w.patient = true
		for _, name := range w.names() {
			w.size(planner, name, 2) // the plan's own writes: nothing runs, the marks move
		}
		b := w.tracker.Update(w.stored, *w.stored, false, false, true)
		if got := len(b.Ledger.Seen); got != want || len(b.Shards) != n-want {
			t.Errorf("of %d marks %d stand beside the head, %d go to the shards", n, got, len(b.Shards))
		}
	}
}
