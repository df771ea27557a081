package function

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// begun are passes of a namespace that have begun a call, and what each is given up by.
func begun(t *testing.T, a *Answers, namespace string, n int) []*room {
	t.Helper()
	var out []*room
	for range n {
		r := a.open(namespace)
		t.Cleanup(r.close)
		r.begin(func() {})
		if err := r.spend(t.Context(), freeBytes); err != nil {
			t.Fatalf("the first bytes have to wait: %s", err)
		}
		out = append(out, r)
	}
	return out
}

// spent says whether a pass has room for so much within a second.
func spent(t *testing.T, r *room, n int64) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := r.spend(ctx, n)
	if err != nil && !errors.Is(err, errCrowded) {
		t.Errorf("it says %s", err)
	}
	return err == nil
}

// isEmpty says whether everything was given back.
func isEmpty(t *testing.T, a *Answers) {
	t.Helper()
	if a.room.Len() > 0 || a.large.Len() > 0 || !a.room.Open("").TryAcquire(roomBytes) || !a.large.Open("").TryAcquire(largeAtOnce) {
		t.Errorf("something was not given back: %d and %d namespaces have something", a.room.Len(), a.large.Len())
	}
}

func TestTheAnswersOfANamespaceLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAnswers()
		const fit = tenantBytes / roomChunk
		greedy := begun(t, a, "greedy", fit+3)
		for i, r := range greedy {
			if got := spent(t, r, 1); got != (i <= fit) { // the last of these has the place of a large one
				t.Errorf("answer %d has room: %t", i, got)
			}
			if crowded, _ := r.state(); crowded != (i > fit) || r.holds() != (i == fit) {
				t.Errorf("answer %d found no room: %t", i, crowded)
			}
		}
		for _, other := range begun(t, a, "fair", 2) {
			if !spent(t, other, tenantBytes/2) {
				t.Error("another namespace has to wait")
			}
			other.close()
		}
		waits := greedy[fit+1]
		go func() { time.Sleep(time.Second / 2); greedy[fit].close() }()
		if !spent(t, waits, MaxSize) {
			t.Error("the place of the one that ended is nobody's")
		}
		if crowded, _ := waits.state(); crowded {
			t.Error("it found no room")
		}
		for _, r := range greedy {
			r.close()
			r.close() // twice is once
		}
		if err := waits.spend(t.Context(), roomChunk); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after its end it may read: %v", err)
		}
		isEmpty(t, a)
	})
}

// A pass that has the place of a large one waits for nothing more, so it does not wait for those who wait
// for it.
func TestAPassWithLargeAnswersWaitsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAnswers()
		first, second, third := begun(t, a, "a", 1)[0], begun(t, a, "b", 1)[0], begun(t, a, "c", 1)[0]
		for range 3 {
			for _, r := range []*room{first, second} {
				if !spent(t, r, tenantBytes+1) {
					t.Error("it waits")
				}
				r.end()
				r.begin(func() {})
			}
		}
		if spent(t, third, tenantBytes+1) {
			t.Error("more of them have a place than there are")
		}
		first.close()
		if !spent(t, third, tenantBytes+1) {
			t.Error("a place that was given back is nobody's")
		}
		second.close()
		third.close()
		isEmpty(t, a)
	})
}

// An answer takes room until the next one is there, as the next request may hold it.
func TestAnAnswerTakesRoomUntilTheNextIsThere(t *testing.T) {
	a := NewAnswers()
	r := a.open("shop")
	for i, c := range []struct{ answer, keeps int64 }{{freeBytes + 3*roomChunk, 3 * roomChunk}, {freeBytes + 1, roomChunk}, {freeBytes, 0}} {
		before := r.before
		r.begin(func() {})
		if err := r.spend(t.Context(), c.answer); err != nil {
			t.Fatal(err)
		}
		if r.before != before {
			t.Errorf("answer %d: the one before is forgotten too soon", i)
		}
		if r.end(); r.before != c.keeps || r.taken != 0 {
			t.Errorf("answer %d: %d bytes are taken, want %d", i, r.before, c.keeps)
		}
	}
	r.close()
	isEmpty(t, a)
}

// What a function requires takes room until the answer to it is forgotten.
func TestWhatWasFetchedTakesRoomWithTheNextAnswer(t *testing.T) {
	a := NewAnswers()
	r := a.open("shop")
	for i, c := range []struct{ fetches, keeps int64 }{{0, 0}, {freeBytes + 2*roomChunk, 2 * roomChunk}, {0, 0}, {tenantBytes + roomChunk, tenantBytes}} {
		if err := r.fetch(t.Context(), c.fetches); err != nil {
			t.Fatal(err)
		}
		r.begin(func() {})
		if r.end(); r.before != c.keeps || r.taken != 0 {
			t.Errorf("call %d: %d bytes are taken, want %d", i, r.before, c.keeps)
		}
	}
	r.close()
	isEmpty(t, a)
}

func TestRoomIsNotKeptForAnAnswerThatDoesNotArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAnswers()
		r := a.open("shop")
		defer r.close()
		call := func(n int64) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			r.begin(cancel)
			if err := r.spend(ctx, n); err != nil {
				t.Fatal(err)
			}
			return ctx
		}
		for _, n := range []int64{freeBytes, freeBytes + 1, tenantBytes * 2} { // the last has the place of a large one from then on
			ctx, want := call(n), n > freeBytes
			time.Sleep(heavyTimeout + time.Second)
			synctest.Wait()
			if _, slow := r.state(); slow != want || (ctx.Err() != nil) != want {
				t.Errorf("an answer of %d bytes is given up: %t", n, slow)
			}
			r.end()
		}
		r = a.open("shop")
		defer r.close()
		ctx := call(freeBytes + 1)
		time.Sleep(heavyTimeout - time.Second)
		r.end()
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, slow := r.state(); slow || ctx.Err() != nil {
			t.Error("one that arrived is given up")
		}
	})
}
