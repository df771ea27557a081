package client

import (
	"fmt"
	"net/http"
	"sync"
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

	mu           sync.Mutex
	doubted      bool      // the last answer left doubt
	since, until time.Time // the last time in which there was doubt
}

// wrap reads the Date header of each answer.
func (c *Clock) wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil {
			return resp, err
		}
		if date, parseErr := http.ParseTime(resp.Header.Get("Date")); parseErr == nil {
			c.compare(date, c.now())
		}
		return resp, nil
	})
}

// compare takes in what the API server's clock said when the local one said something. Nobody knows
// which of them was wrong: the time of doubt is what was in doubt by either.
func (c *Clock) compare(server, local time.Time) {
	skew := server.Sub(local)
	c.skew.Store(int64(skew))
	c.mu.Lock()
	defer c.mu.Unlock()
	first, last := server, local
	if skew > 0 {
		first, last = local, server
	}
	switch doubt := skew.Abs() > maxSkew; {
	case doubt && !c.doubted:
		c.doubted, c.since, c.until = true, first, time.Time{}
	case !doubt && c.doubted:
		c.doubted, c.until = false, last
	}
}

// Doubted is the last time in which the clock was in doubt, as far as this process knows: until is
// not a part of it, and zero while it lasts. Without a doubt both are zero.
func (c *Clock) Doubted() (from, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since, c.until
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
