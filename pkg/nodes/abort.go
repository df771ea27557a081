package nodes

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// A drain that something keeps from its cordon for good has no clock of its own. Where it aborts, its
// timeout counts all the same: from when it could have begun, but for that. It is written into the
// status, so that no restart begins it anew, and ends with the block.

// blockedSince is from when the timeout counts of a request that waits, aborts, and is blocked; zero:
// it does not count.
func (w *work) blockedSince(s *requestState) time.Time {
	if s.next.Phase != Pending || s.next.Ended != nil || !w.node.blocked(s.Asked) || s.Request.Drain.OnTimeout != drain.TimeoutAbort {
		return time.Time{}
	}
	if b := s.next.Blocked; b != nil && !b.Since.IsZero() {
		return b.Since
	}
	if !w.node.Gate.Permitted || len(w.holding()) > 0 || w.turns[s.name()].Held { // it could not have begun
		return time.Time{}
	}
	return w.now
}

// abortBlocked gives up the requests that were blocked for as long as their drains may take.
func (w *work) abortBlocked() {
	for _, s := range w.states {
		since := w.blockedSince(s)
		if since.IsZero() {
			continue
		}
		if at, ends := drain.Deadline(*s.Request.Drain, since); ends && !w.soon.add(at) {
			w.abort(s, s.Request.Drain.Timeout, s.Preview.Text)
		}
	}
}

// blockedReason is what is said of a request that is blocked before its cordon.
func (w *work) blockedReason(s *requestState) word {
	said := word{reason: w.node.blockedText(s.Asked), blocked: s.Preview}
	if said.blocked.Since = w.blockedSince(s); said.blocked.Since.IsZero() {
		return said
	}
	if at, ends := drain.Deadline(*s.Request.Drain, said.blocked.Since); ends {
		said.reason += "; given up at " + at.UTC().Format(time.RFC3339)
	}
	return said
}
