package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// answers gives every request a body of a size.
type answers int

func (a answers) RoundTrip(*nethttp.Request) (*nethttp.Response, error) {
	return &nethttp.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", int(a))))}, nil
}

// room is that of a tenant's pass.
type room string

func (r room) Namespace() string { return string(r) }
func (room) Release()            {}
func (room) Holds() bool         { return false }

func open(t *testing.T, b *Budget, tenant string, size int, limit time.Duration) *nethttp.Response {
	t.Helper()
	return openFrom(t, b, tenant, answers(size), limit)
}

func openFrom(t *testing.T, b *Budget, tenant string, from nethttp.RoundTripper, limit time.Duration) *nethttp.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(executors.WithReservation(t.Context(), room(tenant)), limit)
	t.Cleanup(cancel)
	request, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodGet, "http://example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := budgeted{from, b}.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// whole says whether an answer is read to its end.
func whole(t *testing.T, r *nethttp.Response, size int) bool {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	var large *noRoomError
	if err != nil && (!errors.As(err, &large) || !errors.Is(err, context.DeadlineExceeded)) {
		t.Errorf("it says %v", err)
	}
	return err == nil && len(text) == size
}

// isEmpty says whether everything was given back.
func isEmpty(t *testing.T, b *Budget) {
	t.Helper()
	if b.bytes.Len() > 0 || b.large.Len() > 0 || !b.bytes.Open("").TryAcquire(budgetBytes) || !b.large.Open("").TryAcquire(largeAtOnce) {
		t.Errorf("something was not given back: %d and %d namespaces have something", b.bytes.Len(), b.large.Len())
	}
}

func TestLargeAnswersShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget()
		rest, left := b.bytes.Open(""), int64(budgetBytes-tenantBytes)
		if !rest.TryAcquire(left) {
			t.Fatal("it is taken")
		}
		var held []*nethttp.Response
		for i := range tenantBytes/MaxBody + largeAtOnce + 1 { // each is read and not closed
			r := open(t, b, fmt.Sprint("tenant-", i), MaxBody, time.Second)
			held = append(held, r)
			if want := i < tenantBytes/MaxBody+largeAtOnce; whole(t, r, MaxBody) != want {
				t.Errorf("answer %d is read whole: %t", i, !want)
			}
		}
		small := open(t, b, "late", freeBytes, time.Second)
		if !whole(t, small, freeBytes) {
			t.Error("a small one has to wait")
		}
		rest.Release(left)
		rest.Close()
		for _, r := range append(held, held[0], small) { // twice is once
			_ = r.Body.Close()
		}
		isEmpty(t, b)
	})
}

// Servers that never end their answers take from their own tenant alone: a quarter, and one answer more,
// however many of them are read at once.
func TestTheLargeAnswersOfOneTenantLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget()
		var held []*nethttp.Response
		for range 32 {
			held = append(held, open(t, b, "greedy", MaxBody, time.Second))
		}
		var inFlight atomic.Int64
		var reading sync.WaitGroup
		for _, r := range held {
			reading.Go(func() {
				text, err := io.ReadAll(r.Body)
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				inFlight.Add(max(0, int64(len(text))-freeBytes-1))
			})
		}
		reading.Wait()
		if n := inFlight.Load(); n > tenantBytes+MaxBody {
			t.Errorf("one tenant has %d bytes of %d in flight", n, budgetBytes)
		}
		rest := b.bytes.Open("")
		if left := int64(budgetBytes * 3 / 4); !rest.TryAcquire(left) {
			t.Errorf("others do not have the other %d bytes", left)
		} else {
			rest.Release(left)
		}
		rest.Close()
		other := open(t, b, "fair", MaxBody, time.Second)
		if !whole(t, other, MaxBody) {
			t.Error("another has to wait")
		}
		for _, r := range append(held, other) {
			_ = r.Body.Close()
		}
		isEmpty(t, b)
	})
}

// trickle gives every request a body whose bytes come one piece at a time, so that all are under way at once.
type trickle struct {
	size, piece int
	every       time.Duration
}

func (a trickle) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	return &nethttp.Response{StatusCode: 200, Body: &trickling{trickle: a, ctx: r.Context()}}, nil
}

type trickling struct {
	trickle
	ctx context.Context //nolint:containedctx // of the request whose body this is
}

func (b *trickling) Read(p []byte) (int, error) {
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(b.every):
	}
	n := min(len(p), b.piece, b.size)
	if b.size -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (*trickling) Close() error { return nil }

// Answers that together need more than there is do not wait for each other: they end one after another.
func TestLargeAnswersThatEndAreAllReadToTheirEnd(t *testing.T) {
	for name, tenants := range map[string]int{"of one namespace": 1, "of as many as fill the budget": 4, "of more": 12} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBudget()
				var reading sync.WaitGroup
				for i := range max(32, 4*tenants) {
					reading.Go(func() {
						r := openFrom(t, b, fmt.Sprint("tenant-", i%tenants), trickle{MaxBody, 16 << 10, time.Millisecond}, 20*time.Second)
						if !whole(t, r, MaxBody) {
							t.Errorf("answer %d is not whole", i)
						}
						_ = r.Body.Close()
					})
				}
				reading.Wait()
				isEmpty(t, b)
			})
		})
	}
}

func TestAPlaceIsNotKeptForAnAnswerThatDoesNotArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget()
		all := b.bytes.Open("")
		if !all.TryAcquire(budgetBytes) {
			t.Fatal("it is taken")
		}
		slow := openFrom(t, b, "slow", trickle{MaxBody, 32 << 10, 10 * time.Second}, 10*time.Minute)
		ended := make(chan error, 1)
		go func() {
			_, err := io.ReadAll(slow.Body)
			_ = slow.Body.Close()
			ended <- err
		}()
		time.Sleep(21 * time.Second) // it has read what is free, and has the place
		next := openFrom(t, b, "slow", trickle{MaxBody, 32 << 10, time.Millisecond}, time.Minute)
		if !whole(t, next, MaxBody) {
			t.Error("the next one waits for it")
		}
		_ = next.Body.Close()
		time.Sleep(time.Hour)
		var large *noRoomError
		if err := <-ended; !errors.As(err, &large) || large.why != "its answer is large, and did not arrive within 30s" {
			t.Errorf("it ends with %v", err)
		}
		all.Release(budgetBytes)
		all.Close()
		isEmpty(t, b)
	})
}

func TestAnAnswerHasAnEnd(t *testing.T) {
	const most = freeBytes + 1 + largestAnswer
	for name, c := range map[string]struct {
		tenant      string
		size, taken int
		want        error
	}{
		"the largest":                           {tenant: "shop", size: most - 1},
		"a larger one":                          {tenant: "shop", size: most + 1, want: errTooLarge},
		"the largest, where nothing is left":    {tenant: "shop", size: most - 1, taken: budgetBytes},
		"a larger one, where nothing is left":   {tenant: "shop", size: most + 1, taken: budgetBytes, want: errTooLarge},
		"a larger one, where a part is left":    {tenant: "shop", size: most + 1, taken: budgetBytes - tenantBytes/2, want: errTooLarge},
		"a larger one that is of no namespace":  {size: most + 1, want: errTooLarge},
		"the largest that is of no namespace":   {size: most - 1, taken: budgetBytes - budgetChunk},
		"the largest, and little more was left": {tenant: "shop", size: most - 1, taken: budgetBytes - largestAnswer - budgetChunk},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBudget()
			others := b.bytes.Open("")
			if !others.TryAcquire(int64(c.taken)) {
				t.Fatal("it is taken")
			}
			r := open(t, b, c.tenant, c.size, time.Minute)
			if text, err := io.ReadAll(r.Body); !errors.Is(err, c.want) || len(text) != min(c.size, most) {
				t.Errorf("it reads %d bytes, %v", len(text), err)
			}
			_ = r.Body.Close()
			others.Release(int64(c.taken))
			others.Close()
			isEmpty(t, b)
		})
	}
}

// A step says that its answer came and was too large for what was left, and not that nobody answered.
func TestAStepSaysThatThereWasNoRoomForItsAnswer(t *testing.T) {
	s := newServer(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", MaxBody))
	})
	b := NewBudget()
	if !b.bytes.Open("").TryAcquire(budgetBytes) || !b.large.Open("").TryAcquire(largeAtOnce) {
		t.Fatal("it is taken")
	}
	client := NewClient(Rules{Allow: []string{"127.0.0.1/32"}, Budget: b})
	const why = "its answer is large, and there was no room for it in time beside those of other steps"

	hook := callTo(&plan.WebhookProperties{URL: s.URL + "/hook", Timeout: &document.Duration{Duration: time.Second}})
	hook.Clients.HTTP = client
	if out := (Webhook{}).Pass(t.Context(), hook); out.Reason != "Timeout" || !strings.HasSuffix(out.Message, "/hook: "+why) {
		t.Errorf("a webhook says %s: %s", out.Reason, out.Message)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	service, err := newService(ctx, hook, "prometheus", s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = service.ask(ctx, hook, question{method: nethttp.MethodGet, path: "/"}); err == nil || service.why(err) != why {
		t.Errorf("a service says %v", err)
	}
}

func TestWhoIsClosedGivesBackWhatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget()
		r := open(t, b, "shop", MaxBody, time.Minute)
		if _, err := io.CopyN(io.Discard, r.Body, freeBytes+1); err != nil {
			t.Fatal(err)
		}
		all, place := b.bytes.Open(""), b.large.Open("")
		if !all.TryAcquire(budgetBytes) || !place.TryAcquire(largeAtOnce) {
			t.Fatal("it is taken")
		}
		ended := make(chan error, 1)
		go func() { _, err := r.Body.Read(make([]byte, 1)); ended <- err }()
		synctest.Wait() // it waits for a place
		_ = r.Body.Close()
		if err := <-ended; !errors.Is(err, nethttp.ErrBodyReadAfterClose) {
			t.Errorf("while it waits it ends with %v", err)
		}
		if _, err := r.Body.Read(make([]byte, 1)); !errors.Is(err, nethttp.ErrBodyReadAfterClose) {
			t.Errorf("after its end it reads: %v", err)
		}
		all.Release(budgetBytes)
		all.Close()
		place.Release(largeAtOnce)
		place.Close()
		isEmpty(t, b)
	})
}

func TestTheValuesOfAnAnswerAreCountedBeforeItIsRead(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 1, `"a,b:[{"`: 1, `"a\",b"`: 1, `{"a": 1, "b": [1, 2]}`: 7, `[[],[]]`: 5, ``: 1, `"\\",1`: 2,
	} {
		if got := values([]byte(text)); got != want {
			t.Errorf("%s has %d, want %d", text, got, want)
		}
	}
	many := []byte("[" + strings.Repeat("0,", MaxValues) + "0]")
	if _, ok := parse(many); ok {
		t.Error("it is read")
	}
	if v, ok := parse([]byte("[" + strings.Repeat("0,", MaxValues-3) + "0]")); !ok || len(v.([]any)) != MaxValues-2 {
		t.Error("one that is not too many is not read")
	}
}
