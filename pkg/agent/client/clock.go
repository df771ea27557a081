package client

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// maxSkew is how far the local clock may be from the API server's before
// nothing starts any more, fixed by the contract.
const maxSkew = 5 * time.Minute

// RecoveredAt is when an object was put back from a backup: it was made so long after what it
// tells of had begun that no clock explains it. Zero: it was not.
func RecoveredAt(made, began time.Time) time.Time {
	if made.Sub(began) <= maxSkew {
		return time.Time{}
	}
	return made
}

// Clock is the agent's time, compared with the API server's at every answer.
type Clock struct {
	now  func() time.Time
	skew atomic.Int64 // nanoseconds that the API server is ahead
}

// wrap reads the Date header of each answer.
func (c *Clock) wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil {
			return resp, err
		}
		if date, parseErr := http.ParseTime(resp.Header.Get("Date")); parseErr == nil {
			c.skew.Store(int64(date.Sub(c.now())))
		}
		return resp, nil
	})
}

// Ahead is how far the API server's clock is ahead of the local one; less than zero: behind.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.skew.Load()) }

// SkewReason says why the clock is not to be trusted; empty when it is. It stands in the
// status of every plan, so it does not say by how much: that is another second by second.
func (c *Clock) SkewReason() string {
	skew := time.Duration(c.skew.Load())
	if skew.Abs() <= maxSkew {
		return ""
	}
	return fmt.Sprintf("the clock of this machine and the API server's are more than %s apart; nothing starts until that is corrected", maxSkew)
}
