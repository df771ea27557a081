package hibernation

import (
	"context"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// doubtPause is after how long a clock that is in doubt is asked about again.
const doubtPause = 30 * time.Second

// otherClock is what the API server's clock shows, where the local one is in doubt, else the same.
func (c *Controller) otherClock(v *view, now time.Time) time.Time {
	if v.doubt = c.Clock.ClockDoubt(); v.doubt == "" {
		return now
	}
	v.again = queue.Soonest(v.again, now.Add(doubtPause))
	return now.Add(c.Clock.Ahead())
}

// doubtful has a clock that is in doubt keep a sleep from beginning, and keep nothing asleep:
// what is to be awake by the API server's clock wakes.
func (v *view) doubtful(there hibernate.DesiredState) {
	switch {
	case !v.facts.Sleep:
	case len(v.facts.Records) > 0 && !there.Asleep:
		v.facts.Sleep, v.facts.Until = false, nil
		v.why = "by the clock of the API server: " + there.Why
	default:
		v.facts.Forbidden = v.doubt
	}
}

// followClock looks at what sleeps when the clock comes into doubt, or out of it: nothing else
// tells. It asks nobody.
func (c *Controller) followClock(ctx context.Context) {
	ticks := time.NewTicker(doubtPause)
	defer ticks.Stop()
	for was := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if is := c.Clock.ClockDoubt() != ""; is != was {
			was = is
			c.EnqueueAll()
		}
	}
}
