package gates

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
)

// A person's attempt is answered at once; two controllers that undo each other
// are answered later and later, and after a quiet time it begins anew.
func TestWhatIsOpenedAgainAndAgainIsClosedLaterAndLater(t *testing.T) {
	w := &gateWatch{backoffs: map[types.UID]backoff{}}
	o := &gateObject{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	again := knob.Verdict{Action: knob.ClosesAgain}
	if !w.backoffUntil(o, knob.Verdict{Action: knob.Closing}, now).IsZero() {
		t.Error("the first closing waits")
	}
	var waits []time.Duration
	for range 12 {
		next := w.backoffUntil(o, again, now)
		if next.IsZero() {
			waits = append(waits, 0)
			continue
		}
		waits = append(waits, next.Sub(now))
		now = next
		if !w.backoffUntil(o, again, now).IsZero() {
			t.Fatal("it waits longer than it said")
		}
	}
	if waits[0] != 0 || waits[1] != 0 || waits[2] != 4*time.Second || waits[11] != maxBackoff {
		t.Errorf("waits %v", waits)
	}
	if now = now.Add(backoffReset + time.Second); !w.backoffUntil(o, again, now).IsZero() {
		t.Error("it is never forgiven")
	}
}
