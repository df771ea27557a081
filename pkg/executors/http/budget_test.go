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

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
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
	ctx, cancel := context.WithTimeout(executors.WithReservation(t.Context(), room(tenant)), limit)
	t.Cleanup(cancel)
	request, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodGet, "http://example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := budgeted{answers(size), b}.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func TestLargeAnswersShareABudget(t *testing.T) {
	b := NewBudget()
	var held []*nethttp.Response
	for i := range budgetBytes / MaxBody { // each is read whole and not closed
		r := open(t, b, fmt.Sprint("tenant-", i%4), MaxBody, time.Minute)
		if text, err := io.ReadAll(r.Body); err != nil || len(text) != MaxBody {
			t.Fatalf("read %d bytes, %v", len(text), err)
		}
		held = append(held, r)
	}
	rest, left := b.bytes.Open(""), int64(0)
	for ; rest.TryAcquire(budgetChunk); left += budgetChunk {
	}
	late := open(t, b, "late", MaxBody, 20*time.Millisecond)
	if text, err := io.ReadAll(late.Body); !errors.Is(err, context.DeadlineExceeded) || len(text) <= freeBytes {
		t.Errorf("beyond the budget it reads %d bytes, %v", len(text), err)
	}
	small := open(t, b, "late", freeBytes, 20*time.Millisecond)
	if text, err := io.ReadAll(small.Body); err != nil || len(text) != freeBytes {
		t.Errorf("a small one has to wait: %d bytes, %v", len(text), err)
	}
	rest.Release(left)
	rest.Close()
	for _, r := range append(held, late, late, small) { // twice is once
		_ = r.Body.Close()
	}
	if n := b.bytes.Len(); n > 0 || !b.bytes.Open("").TryAcquire(budgetBytes) {
		t.Errorf("something was not given back: %d namespaces use a part", n)
	}
}

// Servers that never end their answers take from their own tenant alone: a quarter, however many of
// them are read at once.
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
		if n := inFlight.Load(); n > budgetBytes/4 || n < budgetBytes/4-int64(len(held)) { // of a whole answer one byte less than was taken
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
		if text, err := io.ReadAll(other.Body); err != nil || len(text) != MaxBody {
			t.Errorf("another read %d bytes, %v", len(text), err)
		}
		for _, r := range append(held, other) {
			_ = r.Body.Close()
		}
		if n := b.bytes.Len(); n > 0 || !b.bytes.Open("").TryAcquire(budgetBytes) {
			t.Errorf("something was not given back: %d namespaces use a part", n)
		}
	})
}

func TestWhoIsClosedGivesBackWhatComesLate(t *testing.T) {
	b := NewBudget()
	r := open(t, b, "shop", MaxBody, time.Minute)
	if _, err := io.CopyN(io.Discard, r.Body, freeBytes+1); err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if _, err := r.Body.Read(make([]byte, 1)); !errors.Is(err, nethttp.ErrBodyReadAfterClose) {
		t.Errorf("after its end it reads: %v", err)
	}
	if n := b.bytes.Len(); n > 0 || !b.bytes.Open("").TryAcquire(budgetBytes) {
		t.Error("something was not given back")
	}
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
