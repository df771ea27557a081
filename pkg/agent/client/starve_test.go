package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// holding is how somebody keeps a place: their server sends so much at once, and then a byte
// in each pause; without a pause it sends nothing more.
type holding struct {
	query      string
	pause      time.Duration
	passes     bool          // steps read
	namespaces int           // of those who hold
	each       int           // how many of them read in a namespace
	longest    time.Duration // that anybody else waits for a place
}

// Several namespaces have servers of their own that keep their answers back; one reads a few
// heavy lists of its own server at a time, in passes of half a minute like those of hibernation.
func TestWhoSendsNothingKeepsNobodyFromReading(t *testing.T) {
	const stalled, dribbles = stalledAnswer + lookWaiting, slowAnswer + lookWaiting
	for name, c := range map[string]holding{
		"ten lists of one namespace":                         {query: "?limit=500", namespaces: 1, each: 10},
		"ten lists of one namespace that dribble":            {query: "?limit=500", pause: 3 * time.Second, namespaces: 1, each: 10},
		"ten objects of one namespace":                       {namespaces: 1, each: 10},
		"ten watches of one namespace":                       {query: "?watch=true", namespaces: 1, each: 10},
		"ten steps of one namespace":                         {query: "?limit=500", passes: true, namespaces: 1, each: 10},
		"lists of six namespaces":                            {query: "?limit=500", namespaces: 6, each: 10, longest: stalled},
		"watches of six namespaces":                          {query: "?watch=true", namespaces: 6, each: 10, longest: stalled},
		"steps of six namespaces":                            {query: "?limit=500", passes: true, namespaces: 6, each: 10, longest: stalled},
		"lists of six namespaces that dribble":               {query: "?limit=500", pause: 3 * time.Second, namespaces: 6, each: 10, longest: dribbles},
		"of sixty namespaces one list each, again and again": {query: "?limit=500", namespaces: 60, each: 1, longest: stalled},
	} {
		for lists := 1; lists <= 3; lists++ {
			t.Run(fmt.Sprintf("%s, beside %d lists", name, lists), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { c.play(t, lists) })
			})
		}
	}
}

func (c holding) play(t *testing.T, lists int) {
	a := newAnswers(true)
	all, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for i := range c.namespaces * c.each {
		tenant := fmt.Sprintf("theirs-%d", i%c.namespaces)
		from := a.bounded(says("application/json", func(r *http.Request) io.ReadCloser {
			return &dribble{ctx: r.Context(), first: lightAnswer/perByte + 1, pause: c.pause, closed: make(chan struct{})}
		}), tenant)
		limit := []time.Duration{30 * time.Second, time.Hour}[i/c.namespaces%2]
		group.Go(func() {
			for pause := time.Duration(i) * 700 * time.Millisecond; all.Err() == nil; pause = 2 * time.Second {
				time.Sleep(pause)
				_, _ = c.once(all, t, from, tenant, limit, 1) // an attacker that is cut off comes again
			}
		})
	}
	time.Sleep(2 * time.Minute)
	ours := a.bounded(says("application/json", text(`{"a":"`+strings.Repeat("x", lightAnswer/perByte)+`"}`)), "ours")
	ok, tried, longest := 0, 0, time.Duration(0)
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); tried++ {
		took, err := c.once(all, t, ours, "ours", 30*time.Second, lists)
		longest = max(longest, took)
		if err == nil {
			ok++
		}
		time.Sleep(7 * time.Second)
	}
	stop()
	group.Wait()
	if ok != tried || longest > c.longest {
		t.Errorf("%d of %d passes read everything, one waited %s for a list, want at most %s", ok, tried, longest, c.longest)
	}
	for name, p := range map[string]*tenantSemaphore{"passes": a.passes, "others": a.others, "events": a.events} {
		if p.free != heavyAbroad || len(p.waiting) != 0 || len(p.bodies) != 0 {
			t.Errorf("%s: %d are free afterwards, %d wait, %d read", name, p.free, len(p.waiting), len(p.bodies))
		}
	}
}

// once is one pass, and how long its longest answer took.
func (c holding) once(ctx context.Context, t *testing.T, from http.RoundTripper, tenant string, limit time.Duration, lists int) (longest time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if c.passes {
		inner, end := WithPass(ctx, tenant)
		defer end()
		ctx = inner
	}
	for range lists {
		began := time.Now()
		_, err = read(ctx, t, from, aList+c.query)
		longest = max(longest, time.Since(began))
		if err != nil {
			return longest, err
		}
	}
	return longest, nil
}

// Who waits takes a place from nobody whose server sends what it has.
func TestAnAnswerThatComesInItsTimeIsReadWhoeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(true)
		var group sync.WaitGroup
		for _, tenant := range []string{"a", "b", "c", "d"} {
			from := a.bounded(says("application/json", func(r *http.Request) io.ReadCloser {
				return &dribble{ctx: r.Context(), first: lightAnswer/perByte + 1, pause: stalledAnswer - lookWaiting, last: 1, closed: make(chan struct{})}
			}), tenant)
			group.Go(func() {
				if _, err := read(t.Context(), t, from, aList); err != nil {
					t.Errorf("%s: %v", tenant, err)
				}
			})
		}
		group.Wait()
	})
}

// The place comes when nobody reads any more.
func TestABodyThatWasClosedWhileItWaitedKeepsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(false)
		leave, err := a.events.acquire(t.Context(), "theirs")
		if err != nil {
			t.Fatal(err)
		}
		answer, err := get(t.Context(), t, a.bounded(says("application/json", text(strings.Repeat("x", lightAnswer))), "ours"), aList+"?watch=true")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			_, err := io.Copy(io.Discard, answer.Body)
			ended <- err
		}()
		synctest.Wait()
		_ = answer.Body.Close()
		leave()
		if err := <-ended; !errors.Is(err, http.ErrBodyReadAfterClose) || a.events.free != heavyEvents {
			t.Errorf("%d places are free, %v", a.events.free, err)
		}
	})
}
