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

func TestWhomTheGuardLetsThrough(t *testing.T) {
	table := map[string][]string{
		"example.org": {"203.0.113.7"}, "api.example.org": {"203.0.113.8"}, "elsewhere.net": {"198.51.100.9"},
		"evil.net": {"169.254.169.254"}, "half.net": {"127.0.0.1", "203.0.113.9"}, "mapped.net": {"::ffff:127.0.0.1"},
		"svc.shop.svc": {"10.96.0.10"},
		// What a C resolver makes of decimal, octal and hexadecimal addresses.
		"2130706433": {"127.0.0.1"}, "0x7f000001": {"127.0.0.1"}, "127.1": {"127.0.0.1"}, "localhost": {"127.0.0.1", "::1"},
	}
	strict := Rules{Deny: []string{"10.0.0.0/8"}}
	for name, c := range map[string]struct {
		rules Rules
		host  string
		want  string // the addresses, or why it is refused
	}{
		"a public name":                                         {host: "example.org", want: "203.0.113.7"},
		"a private address, such as a Service":                  {host: "svc.shop.svc", want: "10.96.0.10"},
		"a name that means the metadata service":                {host: "evil.net", want: "metadata"},
		"the metadata service by address":                       {host: "169.254.169.254", want: "metadata"},
		"the metadata service over IPv6":                        {host: "fd00:ec2::254", want: "metadata"},
		"Alibaba's metadata service":                            {host: "100.100.100.200", want: "metadata"},
		"Azure's wire server":                                   {host: "168.63.129.16", want: "metadata"},
		"another link-local address":                            {host: "169.254.1.1", want: "link-local"},
		"a link-local IPv6 address with a zone":                 {host: "fe80::1%eth0", want: "link-local"},
		"localhost":                                             {host: "localhost", want: "loopback"},
		"all of 127/8":                                          {host: "127.9.9.9", want: "loopback"},
		"IPv6 loopback":                                         {host: "::1", want: "loopback"},
		"loopback mapped into IPv6":                             {host: "::ffff:127.0.0.1", want: "loopback"},
		"a name that resolves to a mapped loopback":             {host: "mapped.net", want: "loopback"},
		"the metadata service mapped into IPv6":                 {host: "::ffff:a9fe:a9fe", want: "metadata"},
		"loopback behind NAT64":                                 {host: "64:ff9b::7f00:1", want: "loopback"},
		"the metadata service behind 6to4":                      {host: "2002:a9fe:a9fe::1", want: "metadata"},
		"loopback in the old compatible form":                   {host: "::7f00:1", want: "loopback"},
		"a public address behind NAT64":                         {host: "64:ff9b::cb00:7107", want: "64:ff9b::cb00:7107"},
		"a denied address behind NAT64":                         {rules: strict, host: "64:ff9b::a60:a", want: "deny names it"},
		"one behind a NAT64 of the network's own":               {rules: strict, host: "64:ff9b:1:fffe::a60:a", want: "deny names it"},
		"one whose prefix there has 48 bits":                    {rules: strict, host: "64:ff9b:1:a60:0:a00::", want: "deny names it"},
		"one whose prefix there has 56 bits":                    {rules: strict, host: "64:ff9b:1:aa0a:60:a::", want: "deny names it"},
		"one whose prefix there has 64 bits":                    {rules: strict, host: "64:ff9b:1:aabb:a:6000:a00:0", want: "deny names it"},
		"a public address behind a NAT64 of the network's own":  {rules: strict, host: "64:ff9b:1:fffe::cb00:7107", want: "64:ff9b:1:fffe::cb00:7107"},
		"a denied address behind 6to4":                          {rules: strict, host: "2002:a60:a::1", want: "deny names it"},
		"one translated without state":                          {rules: strict, host: "::ffff:0:10.96.0.10", want: "deny names it"},
		"the metadata service translated without state":         {host: "::ffff:0:a9fe:a9fe", want: "metadata"},
		"a denied address as a client of Teredo":                {rules: strict, host: "2001:0:cb00:7107:8000:63bf:f59f:fff5", want: "deny names it"},
		"one as a server of Teredo":                             {rules: strict, host: "2001:0:a60:a:8000:63bf:34ff:8ef8", want: "deny names it"},
		"a public client of a public server of Teredo":          {rules: strict, host: "2001:0:cb00:7107:8000:63bf:34ff:8ef8", want: "2001:0:cb00:7107:8000:63bf:34ff:8ef8"},
		"a denied address behind ISATAP":                        {rules: strict, host: "2001:db8:1:2:0:5efe:a60:a", want: "deny names it"},
		"one behind ISATAP that says it is unique":              {rules: strict, host: "2001:db8:1:2:200:5efe:a60:a", want: "deny names it"},
		"an ordinary IPv6 address":                              {rules: strict, host: "2001:db8::a60:a", want: "2001:db8::a60:a"},
		"unspecified":                                           {host: "0.0.0.0", want: "unspecified"},
		"unspecified IPv6":                                      {host: "::", want: "unspecified"},
		"broadcast":                                             {host: "255.255.255.255", want: "multicast"},
		"a decimal address":                                     {host: "2130706433", want: "loopback"},
		"a hexadecimal address":                                 {host: "0x7f000001", want: "loopback"},
		"a short address":                                       {host: "127.1", want: "loopback"},
		"only the permitted ones of a name's addresses":         {host: "half.net", want: "203.0.113.9"},
		"loopback that allow names exactly":                     {rules: Rules{Allow: []string{"127.0.0.1/32"}}, host: "127.0.0.1", want: "127.0.0.1"},
		"loopback by its name when the address is allowed":      {rules: Rules{Allow: []string{"127.0.0.1"}}, host: "localhost", want: "127.0.0.1"},
		"the mapped form of an allowed address":                 {rules: Rules{Allow: []string{"127.0.0.1/32"}}, host: "::ffff:127.0.0.1", want: "::ffff:127.0.0.1"},
		"another loopback address than the allowed one":         {rules: Rules{Allow: []string{"127.0.0.1/32"}}, host: "127.0.0.2", want: "loopback"},
		"the whole range when allow names it":                   {rules: Rules{Allow: []string{"127.0.0.0/8"}}, host: "127.0.0.2", want: "127.0.0.2"},
		"nothing reserved by an allow of everything":            {rules: Rules{Allow: []string{"0.0.0.0/0", "::/0"}}, host: "127.0.0.1", want: "loopback"},
		"no metadata service by an allow of its range":          {rules: Rules{Allow: []string{"169.254.0.0/16"}}, host: "169.254.169.254", want: "metadata"},
		"the metadata service when allow names it":              {rules: Rules{Allow: []string{"169.254.169.254"}}, host: "evil.net", want: "169.254.169.254"},
		"a name below an allowed one":                           {rules: Rules{Allow: []string{"*.example.org"}}, host: "api.example.org", want: "203.0.113.8"},
		"a name below an allowed one, however it is spelled":    {rules: Rules{Allow: []string{"*.Example.org."}}, host: "API.example.org.", want: "no such host"},
		"not the name above the star":                           {rules: Rules{Allow: []string{"*.example.org"}}, host: "example.org", want: "does not name it"},
		"not a name that merely ends so":                        {rules: Rules{Allow: []string{"*.example.org"}}, host: "badexample.org", want: "does not name it"},
		"no other name where names are allowed":                 {rules: Rules{Allow: []string{"example.org"}}, host: "elsewhere.net", want: "does not name it"},
		"no address in place of a name where names are allowed": {rules: Rules{Allow: []string{"example.org"}}, host: "203.0.113.7", want: "not among its entries"},
		"an allowed address beside allowed names":               {rules: Rules{Allow: []string{"example.org", "203.0.113.0/24"}}, host: "203.0.113.7", want: "203.0.113.7"},
		"an allowed name does not open reserved addresses":      {rules: Rules{Allow: []string{"evil.net"}}, host: "evil.net", want: "metadata"},
		"no denied name":                                        {rules: Rules{Deny: []string{"*.example.org"}}, host: "api.example.org", want: "deny names it"},
		"no denied address, under whatever name":                {rules: Rules{Deny: []string{"203.0.113.0/24"}}, host: "example.org", want: "deny names it"},
		"no denied address in its mapped form":                  {rules: Rules{Deny: []string{"203.0.113.0/24"}}, host: "::ffff:203.0.113.7", want: "deny names it"},
		"nothing that is both allowed and denied":               {rules: Rules{Allow: []string{"example.org"}, Deny: []string{"example.org"}}, host: "example.org", want: "deny names it"},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := newGuard(c.rules)
			if err != nil {
				t.Fatal(err)
			}
			g.lookup = names(table)
			got, err := g.resolve(t.Context(), c.host)
			text := strings.Trim(fmt.Sprint(got), "[]")
			if err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, c.want) || (err == nil) != (text == c.want) {
				t.Errorf("%s gives %q, want %q", c.host, text, c.want)
			}
		})
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
