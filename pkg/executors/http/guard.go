// Package http holds the executors that speak HTTP, and the guard that decides which hosts they may
// call. Every outbound request of the agent, from this package or another, goes through NewClient
// or NewDialer.
package http

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	nethttp "net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/outbound"
)

// Rules say which hosts the agent may call. The zero value permits every name, and every address
// except link-local, loopback, metadata, multicast and unspecified ones.
//
// An entry is an address, a CIDR, or a name; *.example.org is every name below example.org, but not
// example.org itself.
type Rules struct {
	// Allow: its addresses and CIDRs permit what is refused by default. A CIDR permits only
	// default refusals that are no larger than itself: 127.0.0.0/8 permits loopback, 0.0.0.0/0
	// permits nothing, and the metadata address has to be named itself. If Allow has names, only
	// those may be called.
	Allow []string
	// Deny wins over Allow: for names before resolution, for addresses after it.
	Deny []string
	// Budget is shared by the answers of all clients; nil: no limit.
	Budget *Budget
}

// Refusal is the error of a request that the rules do not permit.
type Refusal = outbound.Refusal

// Check reports the entries that are neither address, CIDR nor name. Rules with such an entry
// permit nothing: a misspelled Deny must not permit what it was meant to deny.
func (r Rules) Check() error {
	_, err := outbound.New(r.Allow, r.Deny)
	return err
}

// MaxRedirects is how many redirects a GET follows. Other methods follow none: a POST that turns
// into a GET, or goes to another place than the plan names, is not what was asked for.
const MaxRedirects = 5

// NewClient is a client that obeys the rules. A name is resolved first; then its address is
// checked, and that very address is dialed, so that a name which resolves differently a moment
// later gains nothing. Redirects are dialed in the same way. Certificates are verified. Proxies and
// their environment variables are not used: behind a proxy no address could be checked.
func NewClient(r Rules) *nethttp.Client { return newClient(r, net.DefaultResolver.LookupNetIP) }

// NewDialer is a dial function that obeys the rules, for protocols other than HTTP. Names and
// addresses are checked as those of a client are, and the address that was checked is dialed.
func NewDialer(r Rules) func(ctx context.Context, network, address string) (net.Conn, error) {
	return newDialer(r, net.DefaultResolver.LookupNetIP)
}

type lookupFunc func(ctx context.Context, network, host string) ([]netip.Addr, error)

func newDialer(r Rules, lookup lookupFunc) func(ctx context.Context, network, address string) (net.Conn, error) {
	rules, err := outbound.New(r.Allow, r.Deny)
	g := &guard{rules: rules, broken: err, lookup: lookup, dialer: net.Dialer{Timeout: 10 * time.Second}}
	return g.dial
}

func newClient(r Rules, lookup lookupFunc) *nethttp.Client {
	var transport nethttp.RoundTripper = &nethttp.Transport{
		Proxy:                  nil,
		DialContext:            newDialer(r, lookup),
		ForceAttemptHTTP2:      true,
		HTTP2:                  executors.HTTP2(),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        60 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if r.Budget != nil {
		transport = budgeted{transport, r.Budget}
	}
	return &nethttp.Client{CheckRedirect: checkRedirect, Transport: transport}
}

var errTooManyRedirects = fmt.Errorf("more than %d redirects", MaxRedirects) //nolint:gochecknoglobals // a sentinel for errors.Is

// checkRedirect follows redirects of a GET, to another origin only without the headers that were
// meant for the first.
func checkRedirect(next *nethttp.Request, via []*nethttp.Request) error {
	if via[0].Method != nethttp.MethodGet && via[0].Method != nethttp.MethodHead {
		return nethttp.ErrUseLastResponse
	}
	if len(via) > MaxRedirects {
		return errTooManyRedirects
	}
	if origin(next.URL) == origin(via[0].URL) {
		return nil
	}
	for name := range next.Header {
		switch name {
		case "Accept", "User-Agent", headerKey, headerAttempt:
		default:
			next.Header.Del(name)
		}
	}
	return nil
}

func origin(u *url.URL) string { return u.Scheme + "://" + strings.ToLower(u.Host) }

// guard is the compiled form of Rules.
type guard struct {
	rules  outbound.Rules
	broken error
	lookup lookupFunc
	dialer net.Dialer
}

func (g *guard) dial(ctx context.Context, network, hostport string) (net.Conn, error) {
	if g.broken != nil {
		return nil, &Refusal{Host: hostport, Why: "the outbound rules are not readable: " + g.broken.Error()}
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", hostport, err)
	}
	addresses, err := g.rules.Resolve(host, func(host string) ([]netip.Addr, error) { return g.lookup(ctx, "ip", host) })
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, a := range addresses {
		conn, err := g.dialer.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}
