package workflow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// player runs a plan to its end and dies once, at the n-th point where it can. What
// its steps come to depends on their path and attempt alone.
type player struct {
	run      run.Run
	items    map[string][]string
	fails    map[string]bool // by path and attempt
	dieAt    int
	points   int
	died     bool
	durable  run.Journal
	now      time.Time
	effects  map[string]int
	restored map[string]int
	waits    map[string]bool // what cannot be put back, by path
	together []string        // what was put back at once, look by look
}

func (p *player) dies() bool {
	p.points++
	if p.points == p.dieAt {
		p.died = true
	}
	return p.points == p.dieAt
}

// play is the run to its end, in as many lives as it takes.
func (p *player) play(t *testing.T) string {
	t.Helper()
	p.durable, p.now = workflow.NewJournal(p.run), coretest.Clock("02:00")
	begun := false
	for range 3 {
		j := p.durable
		if !begun {
			j = j.Start(p.now)
		}
		if p.live(t, j, &begun) {
			return phases(p.durable) + " " + end(p.durable)
		}
	}
	t.Fatal("the run does not end")
	return ""
}

func (p *player) live(t *testing.T, j run.Journal, begun *bool) bool {
	t.Helper()
	for range 500 {
		var sig workflow.Signals
		for _, rec := range p.durable.Steps {
			if rec.Type == plan.TypeApproval && rec.Phase == run.StepRunning {
				sig.Approve = &workflow.Answer{Step: rec.Path}
			}
		}
		next, m := workflow.Advance(p.run, j, p.now, sig)
		if !same(next, p.durable) {
			if p.dies() {
				return false
			}
			p.durable, *begun = document.Clone(next), true
			if p.dies() {
				return false
			}
		}
		j = document.Clone(p.durable)
		wake, did := time.Time{}, false
		p.putBack(m)
		for _, m := range m.All() {
			switch {
			case m.Act == workflow.ActClose:
				p.durable = j.Finish(p.now)
				return true
			case m.Act == workflow.ActCheckDrift: // drift has tests of its own
				continue
			case m.Act == workflow.ActWait:
				if wake.IsZero() || m.WakeAt.Before(wake) {
					wake = m.WakeAt
				}
				continue
			case p.dies():
				return false
			}
			if m.Act == workflow.ActRestore && p.waits[m.Path] { // it was written down, and is tried again later
				if wake.IsZero() || m.WakeAt.Before(wake) {
					wake = m.WakeAt
				}
				did = did || j.Record(m.Path).Waits == ""
				j = workflow.NoteWaits(j, m.Path, "Forbidden")
				continue
			}
			did = true
			if j = p.act(j, m); p.dies() {
				return false
			}
		}
		if !did {
			p.now = wake
		}
	}
	t.Fatalf("the run does not end: %s", phases(p.durable))
	return false
}

// putBack notes what a move puts back at once.
func (p *player) putBack(m workflow.Action) {
	var paths []string
	for _, m := range m.All() {
		if m.Act == workflow.ActRestore {
			paths = append(paths, m.Path)
		}
	}
	if len(paths) > 0 {
		p.together = append(p.together, strings.Join(paths, " "))
	}
}

func (p *player) act(j run.Journal, m workflow.Action) run.Journal {
	switch m.Act {
	case workflow.ActRestore:
		p.restored[m.Path]++
		return workflow.NoteRestore(j, m.Path, run.RestoreDone, "", nil)
	case workflow.ActKeep:
		return workflow.NoteKeep(j, m.Path, nil, p.now.Add(5*time.Minute), "")
	case workflow.ActRelease:
		return workflow.NoteRelease(j, m.Path, "")
	case workflow.ActStop:
		return workflow.NoteStop(j, m.Path, nil)
	}
	return workflow.Note(p.run, j, m.Path, p.pass(*j.Record(m.Path), m), p.now)
}

func (p *player) pass(rec run.Record, m workflow.Action) workflow.StepResult {
	key := fmt.Sprintf("%s#%d", m.Path, rec.Attempt)
	rep := workflow.StepResult{Done: true}
	switch {
	case m.Step.Type == plan.TypeForEach && !rec.Listed:
		return picks(p.items[m.Path]...)
	case m.Step.Type == plan.TypeForEach:
		return rep
	case m.Step.Type == "suspend" && rec.ResumeAt == nil:
		until := p.now.Add(time.Minute)
		return workflow.StepResult{ResumeAt: &until}
	case m.Step.Type == "suspend" && p.now.Before(*rec.ResumeAt):
		p.now = *rec.ResumeAt
		return workflow.StepResult{}
	case m.Step.Type == "scale" && rec.Before == nil:
		return before(`"first"`)
	case m.Step.Type == plan.TypeApproval && rec.Approval == nil:
		return workflow.StepResult{}
	case m.Step.Type == "silence":
		next := p.now.Add(5 * time.Minute)
		rep.KeepAt = &next
	}
	p.effects[key]++
	if p.fails[key] {
		return failed("Boom")
	}
	return rep
}

// Without anybody's doing, a crash at any one point changes nothing about how a
// run of nested steps ends, nor under which attempts it does what. Every point is
// tried.
func TestOneCrashAtEveryPointOfATree(t *testing.T) {
	scale := "{name: x, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: d}, replicas: 0, restoreAfter: true}}"
	inner := "{name: in, type: for-each, properties: {apiVersion: v1, kind: Pod, steps: [" + coretest.Hook("ix", "retry: {limit: 1, backoff: 1s}") + "]}}"
	silence := "{name: quiet, type: silence, properties: {alertmanager: 'https://am.example.org', matchers: [{name: a, value: b}]}}"
	for name, c := range map[string]struct {
		spec  string
		items map[string][]string
		fails []string
	}{
		"a loop in a group side by side, tried again by the run": {
			spec:  "retryLimit: 1\nsteps: [" + parallel(2, coretest.Hook("a"), loopOf(", batches: [1], until: 'true', maxConcurrency: 2", scale, coretest.Hook("y")), coretest.Hook("c", "dependsOn: [a, roll]")) + "]\nfinally: [{name: f, type: step-group, properties: {steps: [" + coretest.Hook("f1") + ", " + coretest.Hook("f2") + "]}}]",
			items: map[string][]string{"g/roll": {"i", "j", "k"}},
			fails: []string{"g/roll/j/y#1"},
		},
		"what a group and a loop within it found comes back side by side": {
			spec:  "steps: [" + parallel(0, strings.Replace(scale, "x", "a", 1), loopOf(", batches: [1], maxConcurrency: 2", scale, strings.Replace(scale, "x", "y", 1)), strings.Replace(scale, "{name: x", "{name: c, dependsOn: [a]", 1)) + "]",
			items: map[string][]string{"g/roll": {"i", "j", "k"}},
		},
		"loops in loops, where one fails for good": {
			spec:  "retryLimit: 1\nsteps: [" + loopOf(", onError: continue", inner, coretest.Hook("y")) + "]\nonFailure: [" + coretest.Hook("of") + "]",
			items: map[string][]string{"roll": {"n", "o"}, "roll/n/in": {"p", "q"}, "roll/o/in": {"p"}},
			fails: []string{"roll/n/in/q/ix#1", "roll/o/in/p/ix#1", "roll/o/in/p/ix#2", "roll/o/in/p/ix#3", "roll/o/in/p/ix#4", "roll/o/in/p/ix#5"},
		},
		"a lease, a question and a nap": {
			spec:  "steps: [" + silence + ", {name: g, type: step-group, retry: {limit: 1, backoff: 6m}, properties: {mode: parallel, steps: [{name: ask, type: approval}, {name: nap, type: suspend, properties: {duration: 1m}}, " + coretest.Hook("a", "dependsOn: [ask]") + ", " + coretest.Hook("b", "dependsOn: [nap]") + "]}}]\nfinally: [{name: bye, type: step-group, properties: {mode: parallel, steps: [" + coretest.Hook("f1") + ", " + coretest.Hook("f2") + "]}}]",
			fails: []string{"g/b#1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := coretest.RunOf(t, c.spec)
			fails := map[string]bool{}
			for _, key := range c.fails {
				fails[key] = true
			}
			var first *player
			want := ""
			for point := 0; ; point++ {
				p := &player{run: r, items: c.items, fails: fails, dieAt: point, effects: map[string]int{}, restored: map[string]int{}}
				got := p.play(t)
				if point == 0 { // point 0 never comes: nobody dies
					want, first = got, p
					t.Logf("%d points; %s", p.points, got)
				}
				if got != want {
					t.Fatalf("dying at point %d: %s, not %s", point, got, want)
				}
				p.likes(t, first)
				if point > 0 && !p.died {
					return
				}
			}
		})
	}
}

// likes: the same was done under the same attempts, and what was cut off in
// between once more at most.
func (p *player) likes(t *testing.T, first *player) {
	t.Helper()
	for key, n := range p.effects {
		if n > first.effects[key]+1 || first.effects[key] == 0 {
			t.Fatalf("dying at point %d: %s took effect %d times, and %d times without", p.dieAt, key, n, first.effects[key])
		}
	}
	if len(p.effects) != len(first.effects) || len(p.restored) != len(first.restored) {
		t.Fatalf("dying at point %d: did %v, restored %v", p.dieAt, p.effects, p.restored)
	}
}
