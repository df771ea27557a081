package nodes

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// combinations are options that differ in all that decides who is drained with whom.
func combinations() []drain.Options {
	var out []drain.Options
	filters := func(names ...string) (f []drain.EvictionFilter) {
		for _, n := range names {
			f = append(f, drain.EvictionFilter{ByResourceNameRegex: n})
		}
		return f
	}
	for _, selector := range []string{"", "app=a", "app=b"} {
		for _, f := range [][]drain.EvictionFilter{nil, filters("gpu"), filters("net"), filters("net", "gpu")} {
			for bits := range 16 {
				o := drain.Options{
					PodSelector: selector, EvictionFilters: f, Force: bits&1 > 0, DeleteEmptyDir: bits&2 > 0,
					WaitForVolumes: bits&4 > 0, Timeout: &document.Duration{Duration: time.Minute}, OnTimeout: drain.TimeoutRetry,
				}
				if bits&8 > 0 {
					o.OnTimeout = drain.TimeoutForce
				}
				out = append(out, o)
			}
		}
	}
	return out
}

func TestOneDrainForTwoDoesNothingThatNobodyAsked(t *testing.T) {
	all, merged := combinations(), 0
	for _, a := range all {
		for _, b := range all {
			m, ok := merge(a, b)
			if !ok {
				continue
			}
			merged++
			switch {
			case !wider(m, a) || !wider(m, b):
				t.Fatalf("%s is not all of %s and %s", compact(m), compact(a), compact(b))
			case m.OnTimeout != a.OnTimeout:
				t.Fatalf("%s does not go by the rules of %s", compact(m), compact(a))
			case m.Force && !a.Force && !b.Force, m.DeleteEmptyDir && !a.DeleteEmptyDir && !b.DeleteEmptyDir:
				t.Fatalf("%s is more than %s and %s", compact(m), compact(a), compact(b))
			case !wider(a, m) && !wider(b, m) && (a.Force != b.Force || a.PodSelector != b.PodSelector):
				t.Fatalf("%s does to pods of one what the other asked: %s and %s", compact(m), compact(a), compact(b))
			}
		}
	}
	if merged < len(all) {
		t.Errorf("only %d pairs of %d options go together", merged, len(all))
	}
}

func TestWhatWasDrainedCoversNoMore(t *testing.T) {
	for _, a := range combinations() {
		for _, b := range combinations() {
			if passOf(a, false).covers(b) != wider(a, b) {
				t.Fatalf("%s covers %s", compact(a), compact(b))
			}
			if passOf(a, true).covers(b) {
				t.Fatalf("%s left some, and covers %s, which would not", compact(a), compact(b))
			}
		}
	}
}
