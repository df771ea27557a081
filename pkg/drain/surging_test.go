package drain_test

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// While nothing changes, what could not be is tried less and less often.
func TestWhenASurgeThatCouldNotBeIsTriedAgain(t *testing.T) {
	for failed, want := range map[int]time.Duration{
		0: 5 * time.Minute, 1: 5 * time.Minute, 2: 10 * time.Minute, 3: 20 * time.Minute, 4: 40 * time.Minute, 5: time.Hour, 1000: time.Hour,
	} {
		if got := drain.SurgeAgain(failed); got != want {
			t.Errorf("after %d: %s, want %s", failed, got, want)
		}
	}
}
