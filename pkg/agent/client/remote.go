package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Bounds of other clusters (guesses). Their API servers may be anybody's: what they answer
// is bounded (see answers), and none is waited for without end.
const (
	maxRemotes       = 64               // whose clients are kept
	remoteIdle       = 15 * time.Minute // after which unused ones are not
	remoteQPS        = 20
	remoteBurst      = 40
	remoteHeaders    = 30 * time.Second // until an answer begins
	maxRemoteHeaders = 64 << 10         // bytes of an answer's headers, which no budget counts
)

// Cluster is another cluster, as the documents of a plan's namespace name it.
type Cluster struct {
	Name     string // of its connector
	Spec     connector.ClusterSpec
	Provider *connector.AWS // of a cluster of EKS: the account that it is in
}

// ClusterOf is the cluster of a reference among connectors, by connector.Reference.Key; nil
// without a reference.
func ClusterOf(ref *connector.Reference, among map[string]connector.Connector) *Cluster {
	if ref == nil {
		return nil
	}
	out := Cluster{Name: ref.Name}
	if one := among[ref.Key()].Cluster; one != nil { // without it nothing is reached
		out.Spec = *one
		if provider, is := one.Provider(); is && among[provider.Key()].Cloud != nil {
			out.Provider = among[provider.Key()].Cloud.AWS
		}
	}
	return &out
}

// remotes are the clients of other clusters that were used last.
type remotes struct {
	mu   sync.Mutex
	kept *lru.Cache[string, *remote]
}

// remote is a connection to another cluster.
type remote struct {
	clients executors.Clients
	used    time.Time
	close   func()
}

func newRemotes() *remotes {
	kept, _ := lru.NewWithEvict(maxRemotes, func(_ string, r *remote) { r.close() }) // the error is for limits below one
	return &remotes{kept: kept}
}

// get is what is kept under a key, and forgets what nobody has used for long.
func (r *remotes) get(key string, now time.Time) (*remote, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		oldest, one, any := r.kept.GetOldest()
		if !any || now.Sub(one.used) < remoteIdle {
			break
		}
		r.kept.Remove(oldest)
	}
	one, have := r.kept.Get(key)
	if have {
		one.used = now
	}
	return one, have
}

func (r *remotes) add(key string, one *remote) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept.Add(key, one)
}

// Remotes is how many other clusters have clients that are kept.
func (a *Impersonator) Remotes() int { return a.remotes.kept.Len() }

// Remote are clients for another cluster, with the rights that its credentials have there
// and no others: neither the agent's nor the account's. What the credentials are is read
// each time, as the account, so that a right that was taken away and a Secret that was
// replaced count at once. failure says what keeps the cluster from being reached.
func (a *Impersonator) Remote(ctx context.Context, w Account, c Cluster) (clients executors.Clients, failure *executors.Outcome) {
	home, err := a.Clients(w, "")
	if err != nil {
		return clients, a.noConnection(c, err)
	}
	switch missing, err := a.Missing(ctx, w); {
	case missing != "":
		return clients, new(executors.Refuse(executors.ReasonNoAccount, "%s", missing))
	case err != nil:
		return clients, a.unread(err, "look for the ServiceAccount %s by which K8SCluster %s is reached", w.Name, c.Name)
	}
	config, digest, failure := a.credentials(ctx, home, w, c)
	if failure != nil {
		return clients, failure
	}
	key := digestOf(w.User(), c.Name, digest, a.rules())
	if have, is := a.remotes.get(key, a.now()); is {
		return have.clients, nil
	}
	one, err := a.connect(home, config, w, c)
	if err != nil {
		return clients, a.noConnection(c, err)
	}
	one.clients.Connection = key
	a.remotes.add(key, one)
	return one.clients, nil
}

// credentials are how the account reaches another cluster now; digest changes when that does.
func (a *Impersonator) credentials(ctx context.Context, home executors.Clients, w Account, c Cluster) (config *rest.Config, digest string, failure *executors.Outcome) {
	switch {
	case c.Spec.EKS != nil:
		return a.eksConfig(ctx, home, w, c)
	case c.Spec.K8S == nil:
		return nil, "", a.noConnection(c, errors.New("its connector does not say how its cluster is reached"))
	}
	data, failure := a.kubeconfig(ctx, home, w, c)
	if failure != nil {
		return nil, "", failure
	}
	config, err := readKubeconfig(data)
	if err != nil {
		ref := c.Spec.K8S.KubeconfigRef
		return nil, "", a.noConnection(c, fmt.Errorf("the kubeconfig under the key %s of the Secret %s cannot be used: %w", ref.DataKey(), ref.Name, err))
	}
	return config, digestOf(string(data)), nil
}

// kubeconfig reads the Secret of a connector as the account, which has to have the right to.
func (a *Impersonator) kubeconfig(ctx context.Context, home executors.Clients, w Account, c Cluster) ([]byte, *executors.Outcome) {
	ref := c.Spec.K8S.KubeconfigRef
	secret, err := home.Kube.CoreV1().Secrets(w.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err == nil {
		data := secret.Data[ref.DataKey()]
		if len(data) == 0 {
			return nil, a.noConnection(c, fmt.Errorf("the Secret %s has nothing under the key %s", ref.Name, ref.DataKey()))
		}
		return data, nil
	}
	asked := executors.Asked{
		As: w.User(), Right: authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "secrets", Namespace: w.Namespace, Name: ref.Name},
		Missing: fmt.Sprintf("serviceaccount %s/%s may not get secrets %q, which holds the kubeconfig of K8SCluster %s: grant get on secrets to it", w.Namespace, w.Name, ref.Name, c.Name),
		Denied:  fmt.Sprintf("the Secret %s, which holds the kubeconfig of K8SCluster %s, was not given to serviceaccount %s/%s", ref.Name, c.Name, w.Namespace, w.Name),
	}
	if out, is := executors.Refused(ctx, home.Kube, a.now(), asked, err); is {
		return nil, &out
	}
	if apierrors.IsNotFound(err) {
		return nil, a.noConnection(c, fmt.Errorf("the Secret %s, which holds its kubeconfig, does not exist in namespace %s", ref.Name, w.Namespace))
	}
	return nil, a.unread(err, "read the Secret %s, which holds the kubeconfig of K8SCluster %s", ref.Name, c.Name)
}

// unread is what the API server has not answered; it is asked again.
func (a *Impersonator) unread(err error, what string, args ...any) *executors.Outcome {
	out := executors.Fail(executors.ReasonUnavailable, "%s: %s", fmt.Sprintf(what, args...), err)
	out.State, out.WakeAt = executors.NotYet, a.now().Add(max(2*time.Second, executors.RetryAfter(err)))
	return &out
}

// noConnection is a cluster that cannot be reached until somebody mends what is said.
func (a *Impersonator) noConnection(c Cluster, err error) *executors.Outcome {
	return new(executors.Refuse(executors.ReasonNoConnection, "K8SCluster %s: %s", c.Name, err))
}

// rules is what the outbound rules in force are: a connection that others allowed is not
// used any more.
func (a *Impersonator) rules() string {
	if a.external.Rules == nil {
		return ""
	}
	return a.external.Rules()
}

// digestOf is the same for the same parts only.
func digestOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil))
}

// connect makes the clients of another cluster. Nothing is sent yet.
func (a *Impersonator) connect(home executors.Clients, config *rest.Config, w Account, c Cluster) (*remote, error) {
	config.UserAgent = fmt.Sprintf("%s (%s/%s)", cmp.Or(a.config.UserAgent, "kubectl-maint-agent"), w.Namespace, w.Name)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON // see answers.bounded
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(remoteQPS, remoteBurst)
	base, err := a.transport(config)
	if err != nil {
		return nil, err
	}
	through, err := rest.HTTPWrappersForConfig(config, a.fenced(a.abroad.bounded(base, w.Namespace)))
	if err != nil {
		return nil, err
	}
	// A redirect would carry the credentials to wherever the other cluster says.
	client := &http.Client{Transport: through, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	kube, errKube := kube.NewForConfigAndClient(config, client)
	dyn, errDynamic := dynamic.NewForConfigAndClient(config, client)
	meta, errMeta := metadata.NewForConfigAndClient(config, client)
	if err := errors.Join(errKube, errDynamic, errMeta); err != nil {
		return nil, err
	}
	clients := executors.Clients{
		Cluster: c.Name, Address: digestOf(config.Host, string(config.CAData)), Server: digestOf(config.Host)[:20], Kube: kube, Dynamic: dyn, Metadata: meta, Mapper: newRemoteKinds(kube.Discovery()),
		HTTP: home.HTTP, Dial: home.Dial, Sinks: home.Sinks, Fence: home.Fence, Certificate: home.Certificate,
	}
	return &remote{clients: clients, used: a.now(), close: func() { utilnet.CloseIdleConnectionsFor(base) }}, nil
}

// transport dials by the outbound rules: an API server's address is a tenant's word, like a
// webhook's. No proxy stands between, whatever the agent's environment says.
func (a *Impersonator) transport(config *rest.Config) (http.RoundTripper, error) {
	if a.external.Remote != nil {
		return a.external.Remote(config)
	}
	if a.external.Dial == nil {
		return nil, errors.New("this agent has nothing to dial with")
	}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }, DialContext: a.external.Dial, TLSClientConfig: tls,
		ResponseHeaderTimeout: remoteHeaders, MaxResponseHeaderBytes: maxRemoteHeaders, MaxIdleConnsPerHost: 2, HTTP2: executors.HTTP2(),
	}), nil
}

// fenced lets nothing be changed by an agent that may lead no more.
func (a *Impersonator) fenced(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method != http.MethodGet && a.fence != nil {
			if err := a.fence(); err != nil {
				return nil, err
			}
		}
		return next.RoundTrip(req)
	})
}
