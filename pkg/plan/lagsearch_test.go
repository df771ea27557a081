package plan_test

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// history is every state of a run's journal that one leader writes, from its start to
// its end.
func history(t *testing.T, r plan.Run, now time.Time) []plan.Journal {
	t.Helper()
	var out []plan.Journal
	j := plan.NewJournal(r).Start(now)
	for range 50 {
		next, m := plan.Advance(r, j, now, plan.Signals{Leader: "a"})
		if len(out) == 0 || !same(next, out[len(out)-1]) {
			out = append(out, plan.Clone(next))
		}
		switch m.Act {
		case plan.ActClose:
			return out
		case plan.ActPass:
			j = plan.Note(r, next, m.Path, plan.Report{Done: true}, now)
		case plan.ActStop:
			j = plan.NoteStop(next, m.Path, nil)
		case plan.ActRestore:
			j = plan.NoteRestore(next, m.Path, plan.RestoreDone, "", nil)
		default:
			j = next
			now = now.Add(time.Hour)
		}
	}
	t.Fatalf("the run does not end: %s", phases(j))
	return nil
}

// staleActs counts what a leader does that goes by an old state of a run, while the
// API server refuses what is written on an old version.
func staleActs(r plan.Run, states []plan.Journal, now time.Time, leader string) int {
	n := 0
	for truth := range states {
		for cached := range truth + 1 {
			next, m := plan.Advance(r, states[cached], now, plan.Signals{Leader: leader})
			if !same(next, states[cached]) && cached != truth { // the write is a conflict, and the state is read anew
				continue
			}
			for _, m := range m.All() {
				if rec := record(states[truth], m.Path); m.Act != plan.ActWait && cached != truth && rec.Phase.Ended() {
					n++
				}
			}
		}
	}
	return n
}

func TestANewLeaderOnAnOldStateDoesNothingOfAStepThatHasEnded(t *testing.T) {
	now := clock("10:00")
	seen := 0
	for _, kind := range plan.StepTypes() {
		if kind.Structure || kind.Name == plan.TypeForEach || kind.Name == plan.TypeForEachNode {
			continue
		}
		r := plan.Run{Name: "r", Plan: "p", Namespace: "ns", PlanUID: "u", Spec: plan.Spec{
			Steps:   []plan.Step{{Name: "a", Type: kind.Name}, {Name: "b", Type: "webhook"}},
			Finally: []plan.Step{{Name: "c", Type: kind.Name}},
		}.Defaulted()}
		states := history(t, r, now)
		if n := staleActs(r, states, now, "b"); n > 0 {
			t.Errorf("%s: %d acts on steps that had ended", kind.Name, n)
		}
		seen += staleActs(r, states, now, "") // nobody writes itself down
	}
	if seen == 0 {
		t.Error("the search sees nothing: without the write, steps that have ended are done again")
	}
}
