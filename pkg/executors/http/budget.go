package http

import (
	"context"
	"io"
	nethttp "net/http"
	"sync"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// Budget limits the memory of all answers together while they are read, and of those of one tenant.
// The first 64 KiB of an answer are free, so that small answers do not wait for large ones.
type Budget struct{ bytes *executors.Shares }

// Sizes of the budget (guesses: the agent's limit is 256 MiB, and one answer 1 MiB).
const (
	budgetBytes = 16 << 20
	tenantBytes = 4 << 20
	freeBytes   = 64 << 10
	budgetChunk = 64 << 10
)

// NewBudget is one for all clients of a process.
func NewBudget() *Budget { return &Budget{executors.NewShares(budgetBytes, tenantBytes)} }

// budgeted sends requests, and reads their answers within a budget.
type budgeted struct {
	nethttp.RoundTripper
	budget *Budget
}

// RoundTrip is http.RoundTripper's.
func (b budgeted) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err != nil || response.Body == nil {
		return response, err
	}
	tenant := executors.ReservationOf(r.Context()).Namespace()
	response.Body = &budgetedBody{ReadCloser: response.Body, ctx: r.Context(), own: b.budget.bytes.Open(tenant), left: freeBytes + 1} // one byte more finds the end
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
	ctx    context.Context //nolint:containedctx // of the request whose body this is
	own    *executors.Share
	left   int // bytes that may be read before more is acquired
	mu     sync.Mutex
	taken  int64
	closed bool
}

// Read is io.Reader's. It waits for its share of the budget, at most until the request times out.
func (b *budgetedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		if err := b.take(); err != nil {
			return 0, err
		}
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (b *budgetedBody) take() error {
	if err := b.own.Acquire(b.ctx, budgetChunk); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		b.own.Release(budgetChunk)
		return nethttp.ErrBodyReadAfterClose
	}
	b.taken, b.left = b.taken+budgetChunk, budgetChunk
	return nil
}

// Close is io.Closer's.
func (b *budgetedBody) Close() error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		b.own.Release(b.taken)
		b.own.Close()
	}
	b.mu.Unlock()
	return b.ReadCloser.Close()
}
