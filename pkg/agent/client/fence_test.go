package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestAFenceLetsReadsThroughAndStopsWritesAfterTheLease(t *testing.T) {
	now := time.Now()
	f := &Fence{lease: 15 * time.Second, now: func() time.Time { return now }}
	passed := 0
	rt := f.wrap(RoundTripper(func(*http.Request) (*http.Response, error) {
		passed++
		return &http.Response{StatusCode: http.StatusOK}, nil
	}))
	send := func(method string) error {
		req, err := http.NewRequest(method, "http://example.org", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = rt.RoundTrip(req)
		return err
	}
	if err := send(http.MethodPost); err != nil {
		t.Errorf("before it ever led, a write: %v", err)
	}
	f.Renew(now, 7)
	now = now.Add(14 * time.Second)
	if err := send(http.MethodPatch); err != nil {
		t.Errorf("within the lease: %v", err)
	}
	now = now.Add(time.Second)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if err := send(method); !errors.Is(err, ErrFenced) {
			t.Errorf("%s after the lease: %v", method, err)
		}
	}
	if err := send(http.MethodGet); err != nil {
		t.Errorf("a read after the lease: %v", err)
	}
	f.Renew(now, 7)
	if err := send(http.MethodPut); err != nil {
		t.Errorf("after a renewal of a lease that nobody else had meanwhile: %v", err)
	}
	now = now.Add(time.Minute)
	f.Renew(now, 9)
	if err := send(http.MethodPut); !errors.Is(err, ErrFenced) {
		t.Errorf("after a renewal of a lease that another had meanwhile: %v", err)
	}
	if passed != 4 {
		t.Errorf("%d requests passed, want 4", passed)
	}
	f = &Fence{lease: 15 * time.Second, now: func() time.Time { return now }}
	f.Renew(now, 7)
	f.Close()
	f.Renew(now, 7)
	if f.Valid() {
		t.Error("a fence that was shut for good went up again")
	}
}

func TestALeaseIsRenewedBehindTheFence(t *testing.T) {
	f := &Fence{lease: time.Second, now: time.Now}
	f.Renew(time.Now().Add(-time.Minute), 1)
	rt := f.wrap(RoundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: http.StatusOK}, nil }))
	for as, want := range map[string]error{"": nil, "system:serviceaccount:a:maint-runner": ErrFenced} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://example.org/apis/coordination.k8s.io/v1/namespaces/maint-system/leases/maint-agent", nil)
		if err != nil {
			t.Fatal(err)
		}
		if as != "" {
			req.Header.Set("Impersonate-User", as)
		}
		if _, err := rt.RoundTrip(req); !errors.Is(err, want) {
			t.Errorf("as %q: %v, want %v", as, err, want)
		}
	}
}

func TestAFenceStandsBeforeEveryWayOut(t *testing.T) {
	now := time.Now()
	f := &Fence{lease: 15 * time.Second, now: func() time.Time { return now }}
	f.Renew(now, 1)
	passed := 0
	client := f.Client(&http.Client{Transport: RoundTripper(func(*http.Request) (*http.Response, error) {
		passed++
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})})
	here, there := net.Pipe()
	defer there.Close()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	dial := f.Dialer(func(context.Context, string, string) (net.Conn, error) { return here, nil })
	conn, err := dial(t.Context(), "tcp", "example.org:443")
	if err != nil {
		t.Fatal(err)
	}
	api := f.wrap(RoundTripper(func(*http.Request) (*http.Response, error) {
		passed++
		return &http.Response{StatusCode: http.StatusOK}, nil
	}))
	request := func(method, url string) *http.Request {
		req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		return req
	}
	ways := map[string]func() error{
		"a GET to the outside": func() error { _, err := client.Do(request(http.MethodGet, "http://example.org")); return err },
		"a webhook":            func() error { _, err := client.Do(request(http.MethodPost, "http://example.org")); return err },
		"a write on a connection that stays open": func() error { _, err := conn.Write([]byte("x")); return err },
		"a stream into a container": func() error {
			_, err := api.RoundTrip(request(http.MethodGet, "http://example.org/api/v1/namespaces/a/pods/b/exec"))
			return err
		},
		"what a library sends": f.Check,
	}
	for what, way := range ways {
		if err := way(); err != nil {
			t.Errorf("within the lease, %s: %v", what, err)
		}
	}
	now = now.Add(15 * time.Second)
	ways["a dial"] = func() error { _, err := dial(t.Context(), "tcp", "example.org:443"); return err }
	for what, way := range ways {
		if err := way(); !errors.Is(err, ErrFenced) {
			t.Errorf("after the lease, %s: %v", what, err)
		}
	}
	if passed != 3 {
		t.Errorf("%d requests passed, want 3", passed)
	}
}

func TestAClockThatIsMinutesApartIsDoubted(t *testing.T) {
	now := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	c := &Clock{now: func() time.Time { return now }}
	for _, test := range []struct {
		server time.Duration
		doubt  bool
	}{{0, false}, {4 * time.Minute, false}, {-4 * time.Minute, false}, {6 * time.Minute, true}, {-6 * time.Minute, true}, {time.Second, false}} {
		rt := c.wrap(RoundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{Header: http.Header{"Date": {now.Add(test.server).Format(http.TimeFormat)}}}, nil
		}))
		req, err := http.NewRequest(http.MethodGet, "http://example.org", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.RoundTrip(req); err != nil {
			t.Fatal(err)
		}
		if got := c.SkewReason() != ""; got != test.doubt {
			t.Errorf("server %s apart: doubt %t (%s), want %t", test.server, got, c.SkewReason(), test.doubt)
		}
	}
}

// The time of a doubt is all that was in doubt by either clock: nobody knows which of them was wrong.
func TestWhenTheClockWasInDoubt(t *testing.T) {
	at := func(minutes int) time.Time {
		return time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC).Add(time.Duration(minutes) * time.Minute)
	}
	type look struct{ server, local int } // minutes
	for name, c := range map[string]struct {
		looks       []look
		from, until time.Time
	}{
		"never":                                {looks: []look{{0, 0}, {4, 0}}},
		"the local clock was behind":           {[]look{{0, 0}, {60, 0}, {70, 10}, {71, 71}, {90, 90}}, at(0), at(71)},
		"the local clock was ahead":            {[]look{{0, 60}, {10, 70}, {11, 11}}, at(0), at(11)},
		"it lasts":                             {[]look{{60, 0}, {70, 10}}, at(0), time.Time{}},
		"the last one counts":                  {[]look{{60, 0}, {61, 61}, {120, 100}, {121, 121}}, at(100), at(121)},
		"an answer that was late ends nothing": {[]look{{60, 0}, {60, 1}, {61, 61}}, at(0), at(61)},
	} {
		clock := &Clock{}
		for _, l := range c.looks {
			clock.compare(at(l.server), at(l.local))
		}
		if from, until := clock.Doubted(); !from.Equal(c.from) || !until.Equal(c.until) {
			t.Errorf("%s: from %s to %s", name, from, until)
		}
	}
}
