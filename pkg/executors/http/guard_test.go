package http

import (
	"context"
	"errors"
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

// names resolves what a test says, each time with the next list of addresses.
func names(table map[string][]string) lookupFunc {
	return func(_ context.Context, _, host string) ([]netip.Addr, error) {
		list, ok := table[host]
		if !ok {
			return nil, fmt.Errorf("no such host %q", host)
		}
		var out []netip.Addr
		for _, a := range list {
			out = append(out, netip.MustParseAddr(a))
		}
		return out, nil
	}
}

func TestRulesThatCannotBeReadLetNobodyThrough(t *testing.T) {
	for _, entry := range []string{"10.0.0.0/33", "1.2.3", "https://example.org", "exa mple.org", "", "*", "a..b", "*.*.example.org"} {
		rules := Rules{Deny: []string{entry}}
		if err := rules.Check(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", entry)) {
			t.Errorf("%q gives %v, want it named", entry, err)
		}
		server := newServer(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {})
		rules.Allow = []string{"127.0.0.1"}
		if _, err := get(t, NewClient(rules), server.URL); err == nil || server.calls.Load() > 0 {
			t.Errorf("with the rule %q a request went through", entry)
		}
	}
}

type server struct {
	*httptest.Server
	calls atomic.Int32
}

func newServer(t *testing.T, h nethttp.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		s.calls.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, c *nethttp.Client, url string) (*nethttp.Response, error) {
	t.Helper()
	request, err := nethttp.NewRequestWithContext(t.Context(), nethttp.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err == nil {
		t.Cleanup(func() { _ = response.Body.Close() })
	}
	return response, err
}

func TestTheClientDialsWhatWasCheckedAndNothingElse(t *testing.T) {
	s := newServer(t, func(nethttp.ResponseWriter, *nethttp.Request) {})
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	asked := 0
	rebinding := func(context.Context, string, string) ([]netip.Addr, error) {
		asked++
		if asked == 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("169.254.169.254")}, nil
	}
	if _, err := get(t, newClient(Rules{Allow: []string{"127.0.0.1/32"}}, rebinding), "http://rebinding.net"+port); err != nil {
		t.Fatal(err)
	}
	if asked != 1 || s.calls.Load() != 1 {
		t.Errorf("the name was looked up %d times and the server called %d times, want once each", asked, s.calls.Load())
	}
	var refusal *Refusal
	if _, err := get(t, newClient(Rules{}, rebinding), "http://rebinding.net"+port); !errors.As(err, &refusal) {
		t.Errorf("a name of the metadata service gives %v, want a refusal", err)
	}
}

func TestAProxyInTheEnvironmentIsNotUsed(t *testing.T) {
	proxy := newServer(t, func(nethttp.ResponseWriter, *nethttp.Request) {})
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	_, err := get(t, newClient(Rules{Allow: []string{"127.0.0.1"}}, names(map[string][]string{"target.net": {"127.0.0.2"}})), "http://target.net/")
	if err == nil || proxy.calls.Load() > 0 {
		t.Errorf("the proxy was called %d times, err %v", proxy.calls.Load(), err)
	}
}

func TestRedirects(t *testing.T) {
	other := newServer(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		fmt.Fprintf(w, "%s|%s|%s", r.Header.Get("X-Token"), r.Header.Get("Referer"), r.Header.Get(headerKey))
	})
	s := newServer(t, nil)
	s.Config.Handler = nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		s.calls.Add(1)
		switch r.URL.Path {
		case "/metadata":
			nethttp.Redirect(w, r, "http://169.254.169.254/latest/", nethttp.StatusFound)
		case "/other":
			nethttp.Redirect(w, r, other.URL, nethttp.StatusFound)
		case "/loop":
			nethttp.Redirect(w, r, "/loop", nethttp.StatusFound)
		case "/same":
			nethttp.Redirect(w, r, "/end", nethttp.StatusFound)
		case "/end":
			fmt.Fprint(w, r.Header.Get("X-Token"))
		}
	})
	client := NewClient(Rules{Allow: []string{"127.0.0.1/32"}})
	do := func(method, path string) (string, int, error) {
		request, err := nethttp.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Token", "secret")
		request.Header.Set(headerKey, "run/step")
		response, err := client.Do(request)
		if err != nil {
			return "", 0, err
		}
		defer response.Body.Close()
		var b [256]byte
		n, _ := response.Body.Read(b[:])
		return string(b[:n]), response.StatusCode, nil
	}
	var refusal *Refusal
	if _, _, err := do("GET", "/metadata"); !errors.As(err, &refusal) {
		t.Errorf("a redirect to the metadata service gives %v, want a refusal", err)
	}
	if text, _, err := do("GET", "/same"); err != nil || text != "secret" {
		t.Errorf("a redirect within the origin gives %q (%v), want the header kept", text, err)
	}
	if text, _, err := do("GET", "/other?token=x"); err != nil || text != "||run/step" {
		t.Errorf("a redirect elsewhere gives %q (%v), want no header meant for the first", text, err)
	}
	s.calls.Store(0)
	if _, _, err := do("GET", "/loop"); !errors.Is(err, errTooManyRedirects) || s.calls.Load() != MaxRedirects+1 {
		t.Errorf("a loop gives %v after %d calls", err, s.calls.Load())
	}
	if _, status, err := do("POST", "/same"); err != nil || status != nethttp.StatusFound {
		t.Errorf("a redirected POST gives %d (%v), want the redirect itself", status, err)
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	s := httptest.NewTLSServer(nethttp.HandlerFunc(func(nethttp.ResponseWriter, *nethttp.Request) {}))
	t.Cleanup(s.Close)
	if _, err := get(t, NewClient(Rules{Allow: []string{"127.0.0.1"}}), s.URL); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server nobody vouches for gives %v", err)
	}
}

func TestADialerObeysTheRulesToo(t *testing.T) {
	server := httptest.NewServer(nethttp.NotFoundHandler())
	defer server.Close()
	address := server.Listener.Addr().String()
	conn, err := NewDialer(Rules{Allow: []string{"127.0.0.1/32"}})(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	for name, rules := range map[string]Rules{
		"by default": {}, "when denied": {Allow: []string{"127.0.0.1"}, Deny: []string{"127.0.0.0/8"}}, "when misspelled": {Allow: []string{"127.0.0.1", "10.0.0.0/33"}},
	} {
		var refusal interface{ Refused() string }
		if _, err := NewDialer(rules)(t.Context(), "tcp", address); !errors.As(err, &refusal) || !strings.Contains(refusal.Refused(), "127.0.0.1") {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	rebinding := newDialer(Rules{}, names(map[string][]string{"rebinding.net": {"127.0.0.1"}}))
	if _, err := rebinding(t.Context(), "tcp", "rebinding.net:80"); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("a name that means loopback: %v, want a refusal", err)
	}
}
