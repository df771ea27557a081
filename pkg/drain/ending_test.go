package drain_test

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

func TestUntilWhenADrainTriesAndWhatItDoesThen(t *testing.T) {
	since := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	const until = "2026-11-27T03:05:00Z"
	for _, c := range []struct {
		name            string
		options         drain.Options
		after           time.Duration
		ending, howLong string
	}{
		{"retry goes on", drain.Options{OnTimeout: drain.TimeoutRetry}, time.Minute, "", "for good"},
		{"nothing said is retry", drain.Options{}, time.Minute, "", "for good"},
		{"skip", drain.Options{OnTimeout: drain.TimeoutSkip}, time.Minute, "tries until " + until + ", then leaves the pods that are still there and is Ready", "until " + until},
		{"force", drain.Options{OnTimeout: drain.TimeoutForce}, time.Minute, "tries until " + until + ", then deletes the pods that may be evicted", "until " + until},
		{"abort", drain.Options{OnTimeout: drain.TimeoutAbort}, time.Minute, "tries until " + until + ", then is given up and undoes its cordon", "for good"},
		{"a second before its time is over", drain.Options{OnTimeout: drain.TimeoutSkip}, 5*time.Minute - time.Second, "tries until " + until + ", then leaves the pods that are still there and is Ready", "until " + until},
		{"its time is over", drain.Options{OnTimeout: drain.TimeoutSkip}, 5 * time.Minute, "", "for good"},
		{"no limit", drain.Options{OnTimeout: drain.TimeoutSkip, Timeout: &document.Duration{}}, time.Minute, "", "for good"},
	} {
		now := since.Add(c.after)
		if got := c.options.Ending(since, now); got != c.ending {
			t.Errorf("%s: %q, want %q", c.name, got, c.ending)
		}
		if got := c.options.HowLong(true, false, since, now); got != c.howLong {
			t.Errorf("%s: blocked %q, want %q", c.name, got, c.howLong)
		}
		if got := c.options.HowLong(false, false, since, now); got != "for now" {
			t.Errorf("%s: a block that waiting ends: %q", c.name, got)
		}
	}
	if got := (drain.Options{OnTimeout: drain.TimeoutForce}).HowLong(true, true, since, since); got != "for good" {
		t.Errorf("pods that may not be evicted, by force: %q", got)
	}
}
