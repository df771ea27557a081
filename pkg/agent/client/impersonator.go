package client

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/transport"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/rights"
)

// answerTTL is how long an answer about an account is believed (a guess: long
// enough that a thousand plans of one account ask once, short enough that a
// person who mends a Role need not wait).
const answerTTL = 20 * time.Second

// Impersonator hands out clients that act as the plans' ServiceAccounts. The
// agent's own rights are never among them.
type Impersonator struct {
	config   *rest.Config // the agent's own, without impersonation
	base     http.RoundTripper
	kube     kube.Interface
	kinds    kinds
	external External
	fence    func() error
	now      func() time.Time
	listen   func(w Account, run string, next http.RoundTripper) http.RoundTripper // listens to what is written for plans; nil: nobody does

	answers   *lru.Cache[string, reply]
	pools     *lru.Cache[string, executors.Clients]
	remotes   *remotes
	distances *remoteClusters

	home, abroad *answers // of the agent's own API server, and of all others
}

// kinds are the kinds that the API server serves.
type kinds struct {
	mapper meta.ResettableRESTMapper
	mu     sync.Mutex
	asked  time.Time // when they were last asked for anew
}

// kindsInterval is how often the kinds are asked for anew at most (a guess: it is a
// hundred requests where a kind is served that the list of kinds lacks).
const kindsInterval = 10 * time.Second

// What is forgotten is asked for, or built, again (both numbers are guesses).
const (
	maxAnswers = 20000
	maxClients = 2000
)

type reply struct {
	message string // empty: yes
	at      time.Time
}

// Account is an account in its namespace.
type Account struct{ Namespace, Name string }

// User is an account as the API server names it.
func (w Account) User() string { return "system:serviceaccount:" + w.Namespace + ":" + w.Name }

// WatchKey is a watch that a step or a target asks for, as this account's.
func (w Account) WatchKey(of executors.Watch) informer.Key {
	k := informer.Key{As: types.NamespacedName(w), Resource: of.Resource, Namespace: of.Namespace, Labels: of.Selector}
	if of.Name != "" {
		k.Fields = fields.OneTermEqualSelector("metadata.name", of.Name).String()
	}
	return k
}

// Clients act as an account; with a run, requests are marked as that run's.
func (a *Impersonator) Clients(w Account, run string) (executors.Clients, error) {
	if run == "" {
		return a.pooled(w, "")
	}
	return a.build(w, run, run)
}

// SleepClients act as an account for what sleeps. A waking is marked: as the step of a run, it passes
// a freeze, since it puts back what was. What falls asleep does not.
func (a *Impersonator) SleepClients(w Account, wakes bool) (executors.Clients, error) {
	if wakes {
		return a.pooled(w, annotations.WakingExtra)
	}
	return a.pooled(w, "")
}

func (a *Impersonator) pooled(w Account, mark string) (executors.Clients, error) {
	cacheKey := w.User() + " " + mark
	if c, have := a.pools.Get(cacheKey); have {
		return c, nil
	}
	c, err := a.build(w, "", mark)
	if err == nil {
		a.pools.Add(cacheKey, c)
	}
	return c, err
}

func (a *Impersonator) build(w Account, run, mark string) (executors.Clients, error) {
	as := transport.ImpersonationConfig{UserName: w.User()}
	if mark != "" {
		as.Extra = map[string][]string{annotations.RunExtra: {mark}}
	}
	client := &http.Client{Transport: transport.NewImpersonatingRoundTripper(as, a.below(w, run))}
	kube, err := kube.NewForConfigAndClient(a.config, client)
	if err != nil {
		return executors.Clients{}, fmt.Errorf("client of %s: %w", w.User(), err)
	}
	dyn, err := dynamic.NewForConfigAndClient(a.config, client)
	if err != nil {
		return executors.Clients{}, fmt.Errorf("client of %s: %w", w.User(), err)
	}
	mapper := liveMapper{a.kinds.mapper, a.kube}
	var sinks executors.Sinks
	if a.external.Sink != nil {
		sinks.URL = func(ctx context.Context, name string) (string, error) { return a.external.Sink(ctx, w.Namespace, name) }
	}
	if a.external.DefaultSink != nil {
		sinks.Default = func() (string, error) { return a.external.DefaultSink(w.Namespace) }
	}
	return executors.Clients{Kube: kube, Dynamic: dyn, Mapper: mapper, HTTP: a.external.HTTP(), Dial: a.external.Dial, Sinks: sinks, FunctionTLS: a.external.FunctionTLS, Fence: a.fence, Config: a.acting(w, as), Certificate: a.external.Certificate}, nil
}

// OnWrite has somebody listen to what is written for plans, before the first client is
// made.
func (a *Impersonator) OnWrite(wrap func(w Account, run string, next http.RoundTripper) http.RoundTripper) {
	a.listen = wrap
}

func (a *Impersonator) below(w Account, run string) http.RoundTripper {
	below := a.home.bounded(a.base, w.Namespace)
	if a.listen != nil {
		below = a.listen(w, run, below)
	}
	return a.existing(w, below)
}

// acting is the configuration of clients that act as an account, for what streams.
func (a *Impersonator) acting(w Account, as transport.ImpersonationConfig) *rest.Config {
	config := rest.CopyConfig(a.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: as.UserName, Extra: as.Extra}
	config.ContentType, config.AcceptContentTypes = "", ""
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return a.existing(w, rt) })
	return config
}

// Missing says whether an account is there. Impersonating one that is not
// succeeds, so it is looked up first.
func (a *Impersonator) Missing(ctx context.Context, w Account) (string, error) {
	return a.ask("exists "+w.User(), func() (string, error) {
		_, err := a.kube.CoreV1().ServiceAccounts(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return MissingMessage(w), nil
		}
		return "", err
	})
}

// MissingMessage says that an account is not there.
func MissingMessage(w Account) string {
	return fmt.Sprintf("the ServiceAccount %s does not exist in namespace %s: create it and grant it what the steps need ('kubectl maint rbac -f FILE' prints both)", w.Name, w.Namespace)
}

// Refused says whether an account has a right, by asking as that account.
func (a *Impersonator) Refused(ctx context.Context, w Account, verb string, gvr schema.GroupVersionResource, name string) (string, error) {
	question := fmt.Sprintf("%s may %s %s %s", w.User(), verb, gvr.GroupResource(), name)
	return a.ask(question, func() (string, error) {
		c, err := a.Clients(w, "")
		if err != nil {
			return "", err
		}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: w.Namespace, Verb: verb, Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource, Name: name,
		}}}
		got, err := c.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		switch {
		case executors.RefusalOf(err, w.User()) == executors.RefusedNoAccount:
			return err.Error(), nil
		case apierrors.IsForbidden(err):
			return mayNotAct(w, err).Error(), nil
		}
		if err != nil || got.Status.Allowed {
			return "", err
		}
		return fmt.Sprintf("the ServiceAccount %s may not %s %s %q in namespace %s, so its trigger label could not be taken away: grant it that right", w.Name, verb, gvr.GroupResource(), name, w.Namespace), nil
	})
}

// mayNotAct says that the agent may not act as an account, and what lets it.
func mayNotAct(w Account, refusal error) error {
	return fmt.Errorf("the agent may not act as the ServiceAccount %s; 'kubectl maint install %s --apply' lets it (%w)", w.Name, rights.ImpersonateOption(w.Name), refusal)
}

func (a *Impersonator) ask(question string, live func() (string, error)) (string, error) {
	got, have := a.answers.Get(question)
	if have && got.message == "" && a.now().Sub(got.at) < answerTTL {
		return "", nil
	}
	message, err := live()
	if err != nil {
		return "", err
	}
	a.answers.Add(question, reply{message: message, at: a.now()})
	return message, nil
}

// newImpersonator prepares discovery with the agent's own account: every
// authenticated user may read it.
func newImpersonator(config *rest.Config, base http.RoundTripper, kube kube.Interface, disco discovery.CachedDiscoveryInterface, external External, now func() time.Time) *Impersonator {
	answers, _ := lru.New[string, reply](maxAnswers) // the error of both is for limits below one
	pools, _ := lru.New[string, executors.Clients](maxClients)
	return &Impersonator{
		config: config, base: base, kube: kube, external: external, now: now,
		kinds:   kinds{mapper: restmapper.NewDeferredDiscoveryRESTMapper(disco)},
		answers: answers, pools: pools, remotes: newRemotes(), distances: newDistances(), home: newAnswers(false), abroad: newAnswers(true),
	}
}
