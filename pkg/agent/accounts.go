package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/transport"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// known is how long an answer about an account is believed (a guess: long
// enough that a thousand plans of one account ask once, short enough that a
// person who mends a Role need not wait).
const known = 20 * time.Second

// accounts hands out clients that act as the plans' ServiceAccounts. The
// agent's own rights are never among them.
type accounts struct {
	config *rest.Config // the agent's own, without impersonation
	base   http.RoundTripper
	kube   kubernetes.Interface
	mapper meta.ResettableRESTMapper
	http   func() *http.Client
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	sink   func(ctx context.Context, name string) (string, error)
	fence  func() error
	now    func() time.Time
	own    func(w who, run string, next http.RoundTripper) http.RoundTripper // listens to what is written for plans

	mu    sync.Mutex
	seen  map[string]answer
	pools map[string]executors.Clients
	asked time.Time // when the kinds were last asked for anew
}

// askKinds is how often the kinds are asked for anew at most (a guess: it is a
// hundred requests where a kind is served that the list of kinds lacks).
const askKinds = 10 * time.Second

type answer struct {
	message string // empty: yes
	at      time.Time
}

// who is an account in its namespace.
type who struct{ namespace, name string }

func (w who) user() string { return "system:serviceaccount:" + w.namespace + ":" + w.name }

// clients act as an account; with a run, requests are marked as that run's.
func (a *accounts) clients(w who, run string) (executors.Clients, error) {
	cacheKey := w.user()
	if run == "" {
		a.mu.Lock()
		c, have := a.pools[cacheKey]
		a.mu.Unlock()
		if have {
			return c, nil
		}
	}
	c, err := a.build(w, run)
	if err == nil && run == "" {
		a.mu.Lock()
		a.pools[cacheKey] = c
		a.mu.Unlock()
	}
	return c, err
}

func (a *accounts) build(w who, run string) (executors.Clients, error) {
	as := transport.ImpersonationConfig{UserName: w.user()}
	if run != "" {
		as.Extra = map[string][]string{annotations.RunExtra: {run}}
	}
	client := &http.Client{Transport: transport.NewImpersonatingRoundTripper(as, a.own(w, run, a.base))}
	kube, err := kubernetes.NewForConfigAndClient(a.config, client)
	if err != nil {
		return executors.Clients{}, fmt.Errorf("client of %s: %w", w.user(), err)
	}
	dyn, err := dynamic.NewForConfigAndClient(a.config, client)
	if err != nil {
		return executors.Clients{}, fmt.Errorf("client of %s: %w", w.user(), err)
	}
	mapper := liveMapper{a.mapper, a.kube}
	return executors.Clients{Kube: kube, Dynamic: dyn, Mapper: mapper, HTTP: a.http(), Dial: a.dial, Sink: a.sink, Fence: a.fence, Config: a.acting(as)}, nil
}

// acting is the configuration of clients that act as an account, for what streams.
func (a *accounts) acting(as transport.ImpersonationConfig) *rest.Config {
	config := rest.CopyConfig(a.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: as.UserName, Extra: as.Extra}
	config.ContentType, config.AcceptContentTypes = "", ""
	return config
}

// exists says whether an account is there. Impersonating one that is not
// succeeds, so it is looked up first.
func (a *accounts) exists(ctx context.Context, w who) (string, error) {
	return a.ask("exists "+w.user(), func() (string, error) {
		_, err := a.kube.CoreV1().ServiceAccounts(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return noAccount(w), nil
		}
		return "", err
	})
}

func noAccount(w who) string {
	return fmt.Sprintf("the ServiceAccount %s does not exist in namespace %s: create it and grant it what the steps need (kubectl create serviceaccount %s -n %s)", w.name, w.namespace, w.name, w.namespace)
}

// may says whether an account has a right, by asking as that account.
func (a *accounts) may(ctx context.Context, w who, verb string, gvr schema.GroupVersionResource, name string) (string, error) {
	question := fmt.Sprintf("%s may %s %s %s", w.user(), verb, gvr.GroupResource(), name)
	return a.ask(question, func() (string, error) {
		c, err := a.clients(w, "")
		if err != nil {
			return "", err
		}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: w.namespace, Verb: verb, Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource, Name: name,
		}}}
		got, err := c.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return fmt.Sprintf("the agent may not act as the ServiceAccount %s: its ClusterRole names the accounts it may impersonate (%s)", w.name, err), nil
		}
		if err != nil || got.Status.Allowed {
			return "", err
		}
		return fmt.Sprintf("the ServiceAccount %s may not %s %s %q in namespace %s, so its trigger label could not be taken away: grant it that right", w.name, verb, gvr.GroupResource(), name, w.namespace), nil
	})
}

// mapping finds a kind for what the agent looks at again and again, so that the
// kinds are not asked for anew each time.
func (a *accounts) mapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return liveMapper{a.mapper, a.kube}.find(kind, versions, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		again := a.now().Sub(a.asked) >= askKinds
		if again {
			a.asked = a.now()
		}
		return again
	})
}

// liveMapper finds kinds. One that is not known may have been installed since the
// kinds were last asked for, or the API server could not tell of its group then:
// only its answer for that very group and version says that a kind is gone. That
// costs one small request, and only where it is served are all kinds asked for anew.
type liveMapper struct {
	meta.ResettableRESTMapper
	kube kubernetes.Interface
}

// errKinds says that a kind is served, and that the kinds could not be read.
var errKinds = errors.New("it is served, but the API server does not list all kinds now") //nolint:gochecknoglobals // a sentinel for errors.Is

// RESTMapping is meta.RESTMapper's.
func (m liveMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.find(kind, versions, func() bool { return true })
}

func (m liveMapper) find(kind schema.GroupKind, versions []string, mayReset func() bool) (*meta.RESTMapping, error) {
	found, err := m.ResettableRESTMapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) {
		return found, err
	}
	if len(versions) == 0 && mayReset() { // there is no one version to ask for
		m.Reset()
		return m.ResettableRESTMapper.RESTMapping(kind)
	}
	for _, version := range versions {
		served, asked := m.serves(kind.WithVersion(version))
		switch {
		case asked != nil:
			return nil, asked
		case !served:
			continue
		case !mayReset():
			return nil, fmt.Errorf("kind %s: %w", kind, errKinds)
		}
		m.Reset()
		found, err = m.ResettableRESTMapper.RESTMapping(kind, versions...)
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("kind %s: %w", kind, errKinds)
		}
		return found, err
	}
	return nil, err
}

// gone says whether the API server serves a kind no more, and an error where it
// does not say.
func (a *accounts) gone(kind schema.GroupVersionKind) (bool, error) {
	served, err := liveMapper{a.mapper, a.kube}.serves(kind)
	return err == nil && !served, err
}

func (m liveMapper) serves(kind schema.GroupVersionKind) (bool, error) {
	list, err := m.kube.Discovery().ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask whether %s is served: %w", kind, err)
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }), nil
}

func (a *accounts) ask(question string, live func() (string, error)) (string, error) {
	a.mu.Lock()
	got, have := a.seen[question]
	a.mu.Unlock()
	if have && got.message == "" && a.now().Sub(got.at) < known {
		return "", nil
	}
	message, err := live()
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.seen) > 20000 { // bounded by forgetting: what is asked again is looked up again
		a.seen = map[string]answer{}
	}
	a.seen[question] = answer{message: message, at: a.now()}
	return message, nil
}

// newAccounts prepares discovery with the agent's own account: every
// authenticated user may read it.
func newAccounts(config *rest.Config, base http.RoundTripper, kube kubernetes.Interface, disco discovery.CachedDiscoveryInterface, client func() *http.Client, now func() time.Time) *accounts {
	return &accounts{
		config: config, base: base, kube: kube, http: client, now: now,
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(disco),
		seen:   map[string]answer{}, pools: map[string]executors.Clients{},
	}
}
