package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"sync"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// Budget limits the memory of all answers together while they are read, and of those of one tenant.
// The first 64 KiB of an answer are free, so that small answers do not wait for large ones. An answer
// that finds nothing left waits for one of the few places where it may be as large as answers get. It
// needs nothing more then, so it waits for nobody who waits for it.
type Budget struct {
	bytes *executors.Shares
	large *executors.Shares // answers
}

// Sizes of the budget (guesses: the agent's limit is 256 MiB, and most answers have 1 MiB at most).
const (
	budgetBytes   = 16 << 20
	tenantBytes   = 4 << 20
	freeBytes     = 64 << 10
	budgetChunk   = 64 << 10
	largestAnswer = 4 << 20          // of one, beyond what is free: those of AWS have no other limit
	largeAtOnce   = 2                // answers that need more than is left; a namespace has one of them
	largeTimeout  = 30 * time.Second // for the rest of such an answer: a place is not kept for a server that sends nothing
)

// errTooLarge is why an answer is read no further.
var errTooLarge = fmt.Errorf("the answer has more than %d MiB", largestAnswer>>20) //nolint:gochecknoglobals // a sentinel for errors.Is

// noRoomError is why an answer that came was not read to its end in time.
type noRoomError struct {
	why string
	err error // of the context
}

// Error is error's.
func (e *noRoomError) Error() string { return e.why }

// Unwrap is errors.Is's.
func (e *noRoomError) Unwrap() error { return e.err }

// NewBudget is one for all clients of a process.
func NewBudget() *Budget {
	return &Budget{bytes: executors.NewShares(budgetBytes, tenantBytes), large: executors.NewShares(largeAtOnce, 1)}
}

// budgeted sends requests, and reads their answers within a budget.
type budgeted struct {
	nethttp.RoundTripper
	budget *Budget
}

// RoundTrip is http.RoundTripper's.
func (b budgeted) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	ctx, stop := context.WithCancel(r.Context())
	response, err := b.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil || response.Body == nil {
		stop()
		return response, err
	}
	namespace := executors.ReservationOf(ctx).Namespace()
	response.Body = &budgetedBody{
		ReadCloser: response.Body, ctx: ctx, stop: stop, budget: b.budget, namespace: namespace, own: b.budget.bytes.Open(namespace),
		left: freeBytes + 1, // one byte more finds the end
	}
	return response, nil
}

// CloseIdleConnections is what http.Client calls.
func (b budgeted) CloseIdleConnections() {
	if c, is := b.RoundTripper.(interface{ CloseIdleConnections() }); is {
		c.CloseIdleConnections()
	}
}

type budgetedBody struct {
	io.ReadCloser
	ctx       context.Context //nolint:containedctx // of the request whose body this is
	stop      context.CancelFunc
	budget    *Budget
	namespace string
	own       *executors.Share
	left      int64 // bytes that may be read before more is taken

	mu           sync.Mutex
	taken        int64
	leave        func() // gives the place of a large answer back; nil: it has none
	limit        *time.Timer
	slow, closed bool
}

// Read is io.Reader's. It waits for room, at most until the request times out.
func (b *budgetedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		if err := b.more(); err != nil {
			return 0, err
		}
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) && b.gaveUp() {
		err = &noRoomError{fmt.Sprintf("its answer is large, and did not arrive within %s", largeTimeout), context.DeadlineExceeded}
	}
	return n, err
}

// more takes a part of the budget, or else waits for a place for a large answer. What it took of the
// budget is for others then.
func (b *budgetedBody) more() error {
	if fits, err := b.take(); fits || err != nil {
		return err
	}
	leave, ok := b.budget.large.Wait(b.ctx, b.namespace)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed && ok:
		leave()
		return nethttp.ErrBodyReadAfterClose
	case b.closed:
		return nethttp.ErrBodyReadAfterClose
	case !ok:
		return &noRoomError{"its answer is large, and there was no room for it in time beside those of other steps", b.ctx.Err()}
	}
	b.own.Release(b.taken)
	b.leave, b.left, b.taken = leave, largestAnswer-b.taken, 0
	b.limit = time.AfterFunc(largeTimeout, b.giveUp)
	return nil
}

// take takes what is free, and says whether there is any.
func (b *budgetedBody) take() (fits bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return false, nethttp.ErrBodyReadAfterClose
	case b.leave != nil || b.taken >= largestAnswer:
		return false, errTooLarge
	case !b.own.TryAcquire(budgetChunk):
		return false, nil
	}
	b.taken, b.left = b.taken+budgetChunk, budgetChunk
	return true, nil
}

func (b *budgetedBody) giveUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slow = !b.closed
	b.stop()
}

func (b *budgetedBody) gaveUp() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.slow
}

// Close is io.Closer's.
func (b *budgetedBody) Close() error {
	defer b.stop()
	b.release()
	return b.ReadCloser.Close()
}

func (b *budgetedBody) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	if b.leave != nil {
		b.limit.Stop()
		b.leave()
	}
	b.own.Release(b.taken)
	b.own.Close()
}
