package function

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// Sizes of the room for answers (guesses: the agent's limit is 256 MiB, and one answer has at most
// MaxSize).
const (
	roomBytes   = 16 << 20 // of all answers together
	tenantBytes = 4 << 20  // of those for one namespace
	freeBytes   = 64 << 10 // of an answer that do not count, so that small ones do not wait
	roomChunk   = 64 << 10 // what is taken at once while an answer is read
	fieldBytes  = 200      // of a field, once it is read
	largeAtOnce = 2        // passes that need more than is left of the room; a namespace has one of them
)

// Answers is the room that the answers of all functions take in memory, from their first byte to the
// end of the pass that they are for. A pass that finds no room waits for one of the few places where
// its answers may be as large as MaxSize allows. It needs nothing more then, so it waits for nobody
// who waits for it.
type Answers struct {
	room  *executors.Shares // bytes
	large *executors.Shares // passes
}

// NewAnswers is the room of a process, or of a part of it that must not wait for the others.
func NewAnswers() *Answers {
	return &Answers{room: executors.NewShares(roomBytes, tenantBytes), large: executors.NewShares(largeAtOnce, 1)}
}

// open is the room of one pass. Without Answers it is nil, and has no limit.
func (a *Answers) open(namespace string) *room {
	if a == nil {
		return nil
	}
	return &room{of: a, namespace: namespace, own: a.room.Open(namespace), turn: semaphore.NewWeighted(1)}
}

// room is what the answers of one pass take. Nil: they are not counted.
type room struct {
	of        *Answers
	namespace string
	own       *executors.Share
	turn      *semaphore.Weighted // of those who take more: one place is enough for the pass

	mu                    sync.Mutex
	left                  int64  // may be used before more is taken
	taken, before         int64  // for the present answer, and for the one before, which the next request may hold
	leave                 func() // gives the place of a large pass back; nil: it has none
	crowded, slow, closed bool
	fetched               bool               // the place is for what functions required
	cancel                context.CancelFunc // of the present call
	limit                 *time.Timer
}

// errCrowded is why an answer is read no further.
var errCrowded = errors.New("there is no room for the answer") //nolint:gochecknoglobals // a sentinel for errors.Is

// begin begins a call.
func (r *room) begin(cancel context.CancelFunc) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expect(0)
	r.left, r.cancel, r.crowded, r.slow = freeBytes, cancel, false, false
}

// end ends a call. What was asked with the answer before it is asked no more, and so that answer is
// forgotten.
func (r *room) end() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expect(0)
	r.own.Release(r.before)
	r.before, r.taken = r.taken, 0
}

// close gives everything back.
func (r *room) close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.expect(0)
	r.own.Release(r.before + r.taken)
	if r.leave != nil {
		r.leave()
	}
	r.before, r.taken, r.leave, r.closed = 0, 0, nil, true
	r.own.Close()
}

// holds says whether the pass has one of the places for large answers.
func (r *room) holds() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leave != nil
}

// state is why the present call was given up, if it was: nobody made room, or the answer took too
// long to arrive.
func (r *room) state() (crowded, slow bool) {
	if r == nil {
		return false, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.crowded, r.slow
}

// need waits until n bytes more may be used.
func (r *room) need(ctx context.Context, n int64) error {
	if r == nil {
		return nil
	}
	if err := r.turn.Acquire(ctx, 1); err != nil {
		return errCrowded
	}
	defer r.turn.Release(1)
	if fits, err := r.take(n); fits || err != nil {
		return err
	}
	leave, ok := r.of.large.Wait(ctx, r.namespace)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !ok:
		return errCrowded
	case r.closed:
		leave()
		return net.ErrClosed
	}
	r.leave, r.left, r.crowded = leave, max(r.left, n), false
	r.expect(heavyTimeout)
	return nil
}

// take takes what is free, and says whether that is enough. Whoever has to wait is not slow.
func (r *room) take(n int64) (fits bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	more := (n - r.left + roomChunk - 1) / roomChunk * roomChunk
	switch {
	case r.closed:
		return false, net.ErrClosed
	case more <= 0:
	case r.leave != nil:
		r.left += more
	case r.own.TryAcquire(more):
		r.left, r.taken = r.left+more, r.taken+more
		if r.limit == nil {
			r.expect(heavyTimeout)
		}
	default:
		r.crowded = true
		r.expect(0)
		return false, nil
	}
	return true, nil
}

// spend waits for n bytes and uses them.
func (r *room) spend(ctx context.Context, n int64) error {
	if err := r.need(ctx, n); err != nil {
		return err
	}
	r.use(n)
	return nil
}

// use notes what was used.
func (r *room) use(n int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left -= n
}

// fetch waits for n bytes of objects that a function requires. They count as part of the answer that
// follows, so for one call longer than they are held.
func (r *room) fetch(ctx context.Context, n int64) error {
	had := r.holds()
	err := r.spend(ctx, n)
	if !had && r.holds() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.fetched = true
	}
	return err
}

// hasFetched says whether the pass has one of the places for large answers for what it has fetched.
func (r *room) hasFetched() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fetched
}

// expect has the rest of an answer come within a time, or else its call is given up: room is not kept
// for a server that sends nothing. Zero: nothing is expected. The caller holds the lock.
func (r *room) expect(within time.Duration) {
	if r.limit != nil {
		r.limit.Stop()
		r.limit = nil
	}
	if within == 0 {
		return
	}
	cancel := r.cancel
	var limit *time.Timer
	limit = time.AfterFunc(within, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.limit == limit {
			r.slow = true
			cancel()
		}
	})
	r.limit = limit
}

// counted is a connection whose bytes take room before they are read.
type counted struct {
	net.Conn
	ctx  context.Context //nolint:containedctx // of the connection: whoever waits for room stops when it is closed
	stop context.CancelFunc
	room *room
}

// count counts what is read of a connection.
func (r *room) count(ctx context.Context, conn net.Conn) net.Conn {
	if r == nil {
		return conn
	}
	ctx, stop := context.WithCancel(ctx)
	return &counted{Conn: conn, ctx: ctx, stop: stop, room: r}
}

// Read is net.Conn's.
func (c *counted) Read(p []byte) (int, error) {
	if err := c.room.need(c.ctx, 1); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	c.room.use(int64(n))
	return n, err
}

// Close is net.Conn's.
func (c *counted) Close() error {
	c.stop()
	return c.Conn.Close()
}
