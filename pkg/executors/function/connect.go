package function

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// DefaultTimeout is the limit for one call of the function.
const DefaultTimeout = 20 * time.Second

// heavyTimeout is the limit for one call for which much was read: meanwhile the agent reads as much
// for no step of another namespace.
const heavyTimeout = 30 * time.Second

// methods are what is called: that of v1, and that of older functions, whose messages are the same on
// the wire.
func methods() []string {
	return []string{"/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction", "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction"}
}

// line is a connection to the function.
type line struct {
	conn    *grpc.ClientConn
	trouble *trouble
	method  string // the one that it serves; empty: not known yet
}

func (l *line) close() { _ = l.conn.Close() }

// connect prepares the connection. Only Clients.Dial resolves names and dials: gRPC gets no name to
// look up, no proxy and no service config.
func (c *conversation) connect(ctx context.Context) (*line, error) {
	if _, _, err := net.SplitHostPort(c.props.Endpoint); err != nil {
		return nil, api.Refuse(executors.ReasonInvalid, "endpoint: %q is no host and port; write it like fn.example.org:9443", document.Cut(c.props.Endpoint, 200))
	}
	if c.call.Clients.Dial == nil {
		return nil, api.Refuse("Outbound", "%s cannot be called: this agent has nothing that dials by its outbound rules", c)
	}
	l := &line{trouble: &trouble{}}
	security, named, err := c.security(ctx)
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{
		grpc.WithContextDialer(func(dialing context.Context, _ string) (net.Conn, error) {
			conn, err := c.call.Clients.Dial(dialing, "tcp", c.props.Endpoint)
			l.trouble.note("dial", err)
			if err != nil {
				return nil, err
			}
			return c.room.count(ctx, conn), nil
		}),
		grpc.WithTransportCredentials(&watchedHandshake{TransportCredentials: security, trouble: l.trouble}),
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithMaxHeaderListSize(64 << 10), grpc.WithUserAgent("kubectl-maint"),
	}
	if !named {
		options = append(options, grpc.WithAuthority(c.props.Endpoint))
	}
	if l.conn, err = grpc.NewClient("passthrough:///function", options...); err != nil {
		return nil, api.Refuse(executors.ReasonInvalid, "%s cannot be called: %s", c, err)
	}
	return l, nil
}

// security is how the connection is secured, and whether that already fixes the server name.
func (c *conversation) security(ctx context.Context) (credentials.TransportCredentials, bool, error) {
	t := c.props.TLS
	if t == nil {
		t = &plan.FunctionTLS{}
	}
	if t.Insecure {
		return insecure.NewCredentials(), false, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, VerifyConnection: func(s tls.ConnectionState) error {
		c.seen(executors.ServerSide, s.PeerCertificates)
		return nil
	}}
	switch {
	case t.SecretName != "":
		secret, err := api.ReadSecret(ctx, c.call, t.SecretName)
		if err != nil {
			return nil, false, err
		}
		if err := c.boundTLS(secret); err != nil {
			return nil, false, err
		}
		if problem := useSecret(config, secret.Data); problem != "" {
			return nil, false, api.Refuse(executors.ReasonInvalid, "tls.secretName: secret %s/%s %s", c.call.Plan.Namespace, t.SecretName, problem)
		}
	case c.props.FunctionRef != nil:
		data, err := c.installedTLS(ctx)
		if err != nil {
			return nil, false, err
		}
		if problem := useSecret(config, data); problem != "" {
			problem, _, _ = strings.Cut(problem, "; its keys are") // the agent's Secret is none of the plan's business
			return nil, false, api.Refuse("NoCertificate", "%s: the Secret of spec.functions.tlsSecretRef %s", c, problem)
		}
	}
	for _, pair := range config.Certificates {
		c.seen(executors.ClientSide, []*x509.Certificate{pair.Leaf})
	}
	return credentials.NewTLS(config), t.ServerName != "", nil
}

// seen reports when the first certificate of a chain ends: from then on it is not trusted.
func (c *conversation) seen(side string, chain []*x509.Certificate) {
	if c.call.Clients.Certificate == nil || len(chain) == 0 {
		return
	}
	first := slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	endpoint := document.Cut(c.props.Endpoint, document.MaxNameLength)
	c.call.Clients.Certificate(executors.Certificate{Namespace: c.call.Plan.Namespace, Endpoint: endpoint, Side: side}, first.NotAfter)
}

// authorityKey is where a Secret for TLS has the authorities that are trusted.
const authorityKey = "ca.crt"

// useSecret takes the CAs and the client certificate from a Secret, or reports what is wrong with
// them.
func useSecret(config *tls.Config, data map[string][]byte) string {
	authorities, hasCA := data[authorityKey]
	certificate, hasCertificate := data[corev1.TLSCertKey]
	key, hasKey := data[corev1.TLSPrivateKeyKey]
	switch {
	case !hasCA && !hasCertificate && !hasKey:
		return "has none of ca.crt, tls.crt and tls.key; its keys are: " + strings.Join(slices.Sorted(maps.Keys(data)), ", ")
	case hasCertificate != hasKey:
		return "has only one of tls.crt and tls.key; a client's certificate needs both"
	}
	if hasCA {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return "holds no certificate in ca.crt; it has to be PEM"
		}
	}
	if hasKey {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return "holds no certificate with its key in tls.crt and tls.key: " + err.Error()
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return ""
}

// trouble is the error of the last connection. gRPC passes on only its text, but its kind decides
// what becomes of the step.
type trouble struct {
	mu  sync.Mutex
	at  string // dial or TLS
	err error
}

func (t *trouble) note(at string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.err = at, err
}

func (t *trouble) last() (at string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at, t.err
}

// watchedHandshake notes the result of a handshake.
type watchedHandshake struct {
	credentials.TransportCredentials
	trouble *trouble
}

func (w *watchedHandshake) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	w.trouble.note("TLS", err)
	return conn, info, err
}

func (w *watchedHandshake) Clone() credentials.TransportCredentials {
	return &watchedHandshake{TransportCredentials: w.TransportCredentials.Clone(), trouble: w.trouble}
}

// once calls the function once.
func (c *conversation) once(ctx context.Context, l *line) (*fnv1.RunFunctionResponse, error) {
	if err := c.seal(); err != nil {
		return nil, err
	}
	if exhausted(ctx) {
		return nil, &api.Refused{Outcome: executors.Fail("Timeout", "%s: no time is left to call it: what came before took all that a step may take at once", c)}
	}
	limit := c.timeout(ctx)
	one, cancel := context.WithTimeout(ctx, limit.Duration)
	defer cancel()
	c.room.begin(cancel)
	defer c.room.end()
	header, response, err := c.invoke(one, l)
	if err == nil {
		return response, nil
	}
	if ctx.Err() != nil { // the agent is stopping: no failure
		return nil, c.interrupted()
	}
	return nil, &api.Refused{Outcome: c.failed(l, err, len(header) > 0, limit)}
}

func (c *conversation) interrupted() error {
	return &api.Refused{Outcome: api.Again(c.call, "Interrupted", "%s: interrupted before its answer", c)}
}

// invoke sends the request once, or twice to a function that does not serve v1. What it serves is
// remembered for this connection alone: another version may answer tomorrow.
func (c *conversation) invoke(ctx context.Context, l *line) (header metadata.MD, response *fnv1.RunFunctionResponse, err error) {
	for _, method := range methods() {
		if l.method != "" && l.method != method {
			continue
		}
		var head metadata.MD
		answer := &fnv1.RunFunctionResponse{}
		said := l.conn.Invoke(ctx, method, c.request, answer, grpc.Header(&head), grpc.MaxCallRecvMsgSize(MaxSize), grpc.ForceCodec(boundedCodec{func(n int64) error { return c.room.spend(ctx, n) }}))
		if status.Code(said) != codes.Unimplemented {
			l.method = method
			return head, answer, said
		}
		if err == nil { // what v1 says is the better reason
			header, err = head, said
		}
	}
	return header, nil, err
}

// limit is how long a call may take, and why no longer where its timeout is.
type limit struct {
	time.Duration
	why string
}

// String is fmt.Stringer's.
func (l limit) String() string {
	if l.why == "" {
		return l.Duration.String()
	}
	return l.Duration.String() + " (a call may take no longer here: " + l.why + ")"
}

// timeout is the limit for one call. It ends a moment before the pass does: a function that is too
// slow then fails the attempt, and does not begin the same pass forever.
func (c *conversation) timeout(ctx context.Context) limit {
	out := limit{Duration: c.props.Timeout.Or(DefaultTimeout)}
	if why := c.heavy(ctx); why != "" && out.Duration > heavyTimeout {
		out = limit{heavyTimeout, why}
	}
	if end, bounded := ctx.Deadline(); bounded {
		if left := time.Until(end) - time.Second; left > 0 && left < out.Duration {
			return limit{Duration: left.Round(time.Millisecond)}
		}
	}
	return out
}

// heavy says why others wait for what this pass holds; empty: they do not.
func (c *conversation) heavy(ctx context.Context) string {
	switch {
	case executors.ReservationOf(ctx).Holds(), c.room.hasFetched():
		return "much was read for this step"
	case c.room.holds():
		return "an answer before was large"
	}
	return ""
}

// failed is the outcome of a call without an answer. A server that runs out of something says so
// before it answers; once an answer has begun, ResourceExhausted is our own code for an answer that
// is too large.
func (c *conversation) failed(l *line, err error, begun bool, timeout limit) executors.Outcome {
	answered := status.Convert(err)
	code, text := answered.Code(), c.mask.Text(answered.Message())
	at, trouble := l.trouble.last()
	crowded, slow := c.room.state()
	var refusal interface{ Refused() string }
	switch {
	case errors.As(trouble, &refusal):
		return executors.Refuse("Outbound", "%s: %s", c, refusal.Refused())
	case crowded:
		return executors.Fail("Timeout", "%s: its answer is large, and within %s there was no room for it beside those of other steps", c, timeout)
	case slow:
		return executors.Fail("Timeout", "%s: its answer is large, and did not arrive within %s", c, heavyTimeout)
	case code == codes.DeadlineExceeded:
		return executors.Fail("Timeout", "%s: no answer within %s", c, timeout)
	case code == codes.Unavailable && trouble != nil && at == "TLS":
		return executors.Fail("TLS", "%s: no secure connection: %s%s", c, trouble, c.adviceOnTLS(trouble))
	case code == codes.Unavailable && trouble != nil:
		return executors.Fail("Network", "%s: %s", c, trouble)
	case code == codes.ResourceExhausted && begun:
		return executors.Refuse(executors.ReasonTooLarge, "%s: its answer is larger than %d bytes (%s); let it answer with less", c, MaxSize, text)
	case code == codes.Internal && strings.Contains(text, errManyFields.Error()):
		return executors.Refuse(executors.ReasonTooLarge, "%s: %s; let it answer with less", c, errManyFields)
	case code == codes.Unimplemented:
		return executors.Refuse(code.String(), "%s: serves no FunctionRunnerService, neither v1 nor v1beta1: %s", c, text)
	case slices.Contains(final(), code):
		return executors.Refuse(code.String(), "%s: %s", c, text)
	}
	return executors.Fail(code.String(), "%s: %s", c, text)
}

// final are the codes that are about the request itself: it would be refused again.
func final() []codes.Code {
	return []codes.Code{
		codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.NotFound,
		codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange,
	}
}

// adviceOnTLS is what helps when the signer of a certificate is unknown.
func (c *conversation) adviceOnTLS(err error) string {
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		return ""
	}
	if c.props.TLS != nil && c.props.TLS.SecretName != "" {
		return "; ca.crt in secret " + c.call.Plan.Namespace + "/" + c.props.TLS.SecretName + " has to hold the authority of that certificate"
	}
	if c.props.FunctionRef != nil {
		return "; ca.crt in the Secret of spec.functions.tlsSecretRef has to hold the authority of that certificate"
	}
	return "; put the authority of that certificate as ca.crt into a secret and name it in tls.secretName"
}
