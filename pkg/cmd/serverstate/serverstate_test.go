package serverstate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/serverstate"
)

// request is one that begins at a second and ends after some more: with an answer, unless it says otherwise.
type request struct {
	at, takes int
	target    string // "/" where it is empty
	method    string // GET where it is empty
	status    int    // 200 where it is zero
	err       error
	deadline  int // of whoever asks; 0: none
	leaves    int // when whoever asks gives up; 0: never
}

// Each row is requests; said is what is known at each change of it, by the second.
func TestWhenTheAPIServerAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		requests []request
		said     []string
	}{
		"it always does":                {[]request{{at: 1}, {at: 5, takes: 2}}, []string{"0: ", "1: reached"}},
		"a connection is refused":       {[]request{{at: 1}, {at: 5, err: errors.New("connection refused")}, {at: 7, err: errors.New("connection refused")}, {at: 9}}, []string{"0: ", "1: reached", "5: reached, since 5: connection refused", "9: reached, back at 9"}},
		"a proxy stands before it":      {[]request{{at: 1, status: 503}, {at: 3, status: 404}}, []string{"0: ", "1: since 1: Service Unavailable", "3: reached, back at 3"}},
		"a read has no answer for long": {[]request{{at: 1}, {at: 5, takes: 40}}, []string{"0: ", "1: reached", "15: reached, since 5: no answer to requests", "45: reached, back at 45"}},
		"reads are given up, and asked again": {
			[]request{{at: 1}, {at: 5, takes: 100, deadline: 10}, {at: 16, takes: 100, deadline: 10}, {at: 28, takes: 1}},
			[]string{"0: ", "1: reached", "15: reached, since 5: no answer to requests", "29: reached, back at 29"},
		},
		"somebody leaves":                         {[]request{{at: 1}, {at: 5, takes: 100, leaves: 3}, {at: 30}}, []string{"0: ", "1: reached"}},
		"somebody leaves, and another waits":      {[]request{{at: 1}, {at: 5, takes: 100, leaves: 3}, {at: 6, takes: 20}}, []string{"0: ", "1: reached", "15: reached, since 5: no answer to requests", "26: reached, back at 26"}},
		"one of two is answered meanwhile":        {[]request{{at: 1}, {at: 5, takes: 9}, {at: 7}}, []string{"0: ", "1: reached"}},
		"a watch begins late":                     {[]request{{at: 1}, {at: 5, takes: 40, target: "/?watch=true"}}, []string{"0: ", "1: reached"}},
		"nothing is printed to a log":             {[]request{{at: 1}, {at: 5, takes: 40, target: "/log?follow=true"}}, []string{"0: ", "1: reached"}},
		"admission holds a write":                 {[]request{{at: 1}, {at: 5, takes: 40, method: http.MethodPatch}}, []string{"0: ", "1: reached"}},
		"nothing is known before it has answered": {[]request{{at: 1, takes: 40}}, []string{"0: ", "41: reached, back at 41"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, c.requests, c.said) })
		})
	}
}

func play(t *testing.T, requests []request, want []string) {
	t.Helper()
	begun := time.Now()
	state := &serverstate.State{}
	for _, r := range requests {
		go func() {
			time.Sleep(time.Duration(r.at) * time.Second)
			r.send(t.Context(), state)
		}()
	}
	var got []string
	last := ""
	for second := range 60 {
		synctest.Wait()
		if said := describe(state, begun); said != last || second == 0 {
			got, last = append(got, fmt.Sprintf("%d: %s", second, said)), said
		}
		time.Sleep(time.Second)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func (r request) send(ctx context.Context, state *serverstate.State) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.deadline > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.deadline)*time.Second)
		defer cancel()
	}
	if r.leaves > 0 {
		time.AfterFunc(time.Duration(r.leaves)*time.Second, cancel)
	}
	server := state.RoundTripper(serverstate.RoundTripFunc(func(sent *http.Request) (*http.Response, error) {
		select {
		case <-sent.Context().Done():
			return nil, sent.Context().Err()
		case <-time.After(time.Duration(r.takes) * time.Second):
		}
		if r.err != nil {
			return nil, r.err
		}
		return &http.Response{StatusCode: max(r.status, 200)}, nil
	}))
	target, method := r.target, r.method
	if target == "" {
		target = "/"
	}
	if method == "" {
		method = http.MethodGet
	}
	_, _ = server.RoundTrip(httptest.NewRequestWithContext(ctx, method, target, nil)) //nolint:bodyclose // there is none
}

func describe(s *serverstate.State, begun time.Time) (out string) {
	if s.Reached() {
		out = "reached"
	}
	if since, why := s.Outage(); why != nil {
		if out != "" {
			out += ", "
		}
		return out + fmt.Sprintf("since %.0f: %s", since.Sub(begun).Seconds(), why)
	}
	if answering := s.Answering(); answering != math.MaxInt64 {
		out += fmt.Sprintf(", back at %.0f", (time.Since(begun) - answering).Seconds())
	}
	return out
}

func TestTheClockOfTheAPIServer(t *testing.T) {
	for ahead, want := range map[time.Duration]time.Duration{0: 0, time.Second: 0, -90 * time.Second: -90 * time.Second, time.Hour: time.Hour} {
		state := &serverstate.State{}
		server := state.RoundTripper(serverstate.RoundTripFunc(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Date": {time.Now().Add(ahead).UTC().Format(http.TimeFormat)}}}, nil
		}))
		if _, err := server.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil)); err != nil { //nolint:bodyclose // there is none
			t.Fatal(err)
		}
		if got := state.Skew(); (got - want).Abs() > 2*time.Second {
			t.Errorf("%s ahead: %s", ahead, got)
		}
	}
}
