package drain_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// How long each pod may take and what happens then does not count once it is gone; where
// some were left, only who would have left them too is served.
func TestWhatWasDrainedCoversNoMore(t *testing.T) {
	some := drain.Options{PodSelector: "app=a", OnTimeout: drain.TimeoutForce}
	skips := drain.Options{PodSelector: "app=a", OnTimeout: drain.TimeoutSkip}
	for name, c := range map[string]struct {
		done drain.Options
		left bool
		asks drain.Options
		want bool
	}{
		"the same pods":                            {some, false, some, true},
		"the same pods under other rules":          {some, false, skips, true},
		"all pods, where some are asked for":       {drain.Options{}, false, some, true},
		"some pods, where all are asked for":       {some, false, drain.Options{}, false},
		"some were left, and nobody may be":        {some, true, some, false},
		"some were left, and some may be":          {some, true, skips, true},
		"some were left of pods that do not count": {some, true, drain.Options{OnTimeout: drain.TimeoutSkip}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := drain.PassOf(c.done, c.left).Covers(c.asks); got != c.want {
				t.Errorf("it covers it: %t", got)
			}
		})
	}
}
