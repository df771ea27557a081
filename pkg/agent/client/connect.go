// Package client reaches the API server, as the agent itself and as the accounts of plans
// and policies. Below every transport stand the fence, which lets an agent that may have
// lost its lease change nothing, and the clock.
package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Config is what a connection to the API server is told.
type Config struct {
	Rest     *rest.Config
	Version  string // of the agent
	Lease    time.Duration
	Now      func() time.Time
	OnAnswer func(method, code string) // hears of each request; code "error" is one that was not answered
}

// Connection are the agent's own clients. The fence and the clock stand below every
// transport that it or its executors have.
type Connection struct {
	Kube  kube.Interface
	Meta  metadata.Interface
	Fence *Fence
	Clock *Clock

	config *rest.Config
	base   http.RoundTripper
	now    func() time.Time
}

// Connect builds the agent's own clients, and the shared transport below the
// impersonating ones. There is no client-side rate limit: the API server's own
// priority and fairness knows better what it can bear.
func Connect(c Config) (*Connection, error) {
	out := &Connection{Fence: NewFence(c.Lease, c.Now), Clock: &Clock{now: c.Now}, config: rest.CopyConfig(c.Rest), now: c.Now}
	out.config.QPS, out.config.UserAgent = -1, "kubectl-maint-agent/"+c.Version
	out.config.ContentType, out.config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	out.config.Wrap(transport.WrapperFunc(func(rt http.RoundTripper) http.RoundTripper {
		boundUnread(rt)
		return kube.LimitAnswers(countRequests(c.OnAnswer, out.Fence.wrap(out.Clock.wrap(rt))), kube.AnswerWithin)
	}))
	var err error
	if out.base, err = rest.TransportFor(out.config); err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	client := &http.Client{Transport: out.base}
	if out.Kube, err = kube.NewForConfigAndClient(out.config, client); err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	if out.Meta, err = metadata.NewForConfigAndClient(out.config, client); err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return out, nil
}

// boundUnread bounds what a connection to the API server keeps of answers that nobody reads yet: of
// the watches of a tenant's plans, most wait while one of them reads a large event. Below stands
// what client-go keeps for all clients of one configuration, so it is set before the first request.
func boundUnread(rt http.RoundTripper) {
	for rt != http.DefaultTransport {
		switch t := rt.(type) {
		case *http.Transport:
			if t.HTTP2 == nil {
				t.HTTP2 = executors.HTTP2()
			}
			return
		case utilnet.RoundTripperWrapper:
			rt = t.WrappedRoundTripper()
		default:
			return
		}
	}
}

// countRequests tells of each request to the API server.
func countRequests(tell func(method, code string), next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		code := "error"
		if err == nil {
			code = strconv.Itoa(resp.StatusCode)
		}
		tell(req.Method, code)
		return resp, err
	})
}

// External is how clients of accounts reach what is not the API server.
type External struct {
	HTTP func() *http.Client
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Sink func(ctx context.Context, namespace, name string) (string, error)
	// DefaultSink is the name of the sink to which steps of a namespace send that name none.
	DefaultSink func(namespace string) (string, error)
	// FunctionTLS is the Secret with the client certificate for installed functions; nil without one.
	FunctionTLS func(ctx context.Context) (*corev1.Secret, error)
	// Certificate hears of certificates by which functions are reached; nil: nobody listens.
	Certificate func(c executors.Certificate, ends time.Time)
	// Rules is a text that changes when the outbound rules do; nil: they never do.
	Rules func() string
	// Remote stands in for what dials other clusters by Dial; nil: nothing does.
	Remote func(*rest.Config) (http.RoundTripper, error)
	// AWSEndpoint stands in for AWS; empty: nothing does.
	AWSEndpoint string
	// EKS says how clusters of EKS are reached; nil: none is.
	EKS EKS
}

// Impersonate hands out clients that act as accounts, over the same connection.
func (c *Connection) Impersonate(o External) *Impersonator {
	a := newImpersonator(c.config, c.base, c.Kube, memory.NewMemCacheClient(c.Kube.Discovery()), o, c.now)
	a.fence = c.Fence.Check
	return a
}
