package trigger_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

func TestJitterIsTheSameEveryTimeAndBelowItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		namespace, name := rapid.String().Draw(t, "namespace"), rapid.String().Draw(t, "name")
		bound := time.Duration(rapid.Int64Range(1, int64(48*time.Hour)).Draw(t, "bound"))
		got := trigger.Jitter(namespace, name, bound)
		if got < 0 || got >= bound || got != trigger.Jitter(namespace, name, bound) {
			t.Fatalf("%s of %s", got, bound)
		}
	})
	seen := map[time.Duration]bool{}
	for i := range 100 {
		seen[trigger.Jitter("ops", fmt.Sprint("plan-", i), time.Hour)] = true
	}
	if len(seen) < 90 {
		t.Errorf("100 plans start at only %d different seconds of an hour", len(seen))
	}
	if trigger.Jitter("ops", "plan", 0) != 0 {
		t.Error("no jitter delays")
	}
}
