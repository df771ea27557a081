package agent

import (
	"context"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// What a step watches may move at any point of a look at it.
func TestAStepWhoseObjectMovesIsLookedAtAgain(t *testing.T) {
	s, rec := spot{key{"shop", "run"}, "wait"}, &plan.Record{Path: "wait", Phase: plan.StepRunning, Attempt: 1}
	for name, c := range map[string]struct {
		at   string
		want bool // it rests
	}{
		"it does not move":                               {"", true},
		"it moves before the look begins":                {"before", true}, // which sees it
		"it moves while the look is under way":           {"during", false},
		"it moves before the answer of the look is used": {"after", false},
		"it moves while the step rests":                  {"resting", false},
	} {
		t.Run(name, func(t *testing.T) {
			rung := 0
			p := newPasses(func(key) { rung++ })
			moves := func(now string) {
				if now == c.at {
					p.moved(s)
				}
			}
			moves("before")
			_, end := p.begin(context.Background(), s, plan.ActPass, 1)
			moves("during")
			end()
			moves("after")
			p.came(outcome{spot: s, lull: &lull{record: *rec}})
			moves("resting")
			if _, rests := p.rests(s, rec, time.Now()); rests != c.want {
				t.Errorf("rests: %t, want %t", rests, c.want)
			}
			if told := c.at != ""; told != (rung == 1) {
				t.Errorf("the run was rung %d times", rung)
			}
			p.forget(s.run)
			if len(p.resting)+len(p.stirred) > 0 {
				t.Errorf("keeps %v %v of a run that is over", p.resting, p.stirred)
			}
		})
	}
}
