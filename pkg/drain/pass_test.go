package drain_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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

// Of passes that cover the same, the one that says most is kept: one after which nothing was left.
func TestWhichPassesAreRemembered(t *testing.T) {
	some := drain.PassOf(drain.Options{PodSelector: "app=a"}, false)
	all, left := drain.PassOf(drain.Options{}, false), drain.PassOf(drain.Options{OnTimeout: drain.TimeoutSkip}, true)
	for name, c := range map[string]struct{ before, after []drain.Pass }{
		"the first":         {[]drain.Pass{some}, []drain.Pass{some}},
		"the same again":    {[]drain.Pass{some, some}, []drain.Pass{some}},
		"one of more pods":  {[]drain.Pass{some, all}, []drain.Pass{all}},
		"one of fewer pods": {[]drain.Pass{all, some}, []drain.Pass{all}},
		"one that left some, after one that left none": {[]drain.Pass{all, left}, []drain.Pass{all}},
		"one that left none, after one that left some": {[]drain.Pass{left, all}, []drain.Pass{all}},
		"one that left some of more pods":              {[]drain.Pass{some, left}, []drain.Pass{some, left}},
	} {
		var got []drain.Pass
		for _, p := range c.before {
			got = drain.Remember(got, p)
		}
		if diff := cmp.Diff(c.after, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
