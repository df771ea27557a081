package factory

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Cluster is the API server of the kubeconfig, and the namespace of the command line.
type Cluster struct {
	Kube      kube.Basic
	Metadata  metadata.Interface // reads metadata only
	Namespace string
	clock     *serverClock // nil: its clock is taken to be ours
	suggest   remedy.Commands
	actors    *actorsOf
	Warn      func(string)    // prints a warning; nil: nobody listens
	seen      *seenNamespaces // nil: they are read each time
	Cached    *kube.Cached    // nil: Metadata has all of it

	// As makes clients that impersonate somebody; nil: they are made from the kubeconfig.
	As func(user string) *Cluster
	// Broken is told why a watch is interrupted; nil: nobody listens.
	Broken func(error)
}

// In is the same cluster with another namespace.
func (k *Cluster) In(namespace string) *Cluster {
	out := *k
	if namespace != "" {
		out.Namespace = namespace
	}
	return &out
}

// Whole is the same cluster with all namespaces (empty), where they are meant.
func (k *Cluster) Whole(all bool) *Cluster {
	out := *k
	if all {
		out.Namespace = metav1.NamespaceAll
	}
	return &out
}

// commands are the commands that messages suggest.
func (k *Cluster) commands() remedy.Commands {
	if k.suggest.Name == "" { // clients were given
		return remedy.Commands{Name: "kubectl maint"}
	}
	return k.suggest
}

// Names are those of objects with some labels, as the API server's cache has them: of thousands a small
// answer.
func (k *Cluster) Names(ctx context.Context, resource, namespace, selector string) ([]string, error) {
	if k.Cached != nil {
		return k.Cached.Names(ctx, resource, namespace, selector)
	}
	list, err := k.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	out := make([]string, len(list.Items))
	for i := range list.Items {
		out[i] = list.Items[i].Name
	}
	return out, nil
}

// serverClock is the difference between the API server's clock and ours, by its answers, and
// whether and since when it answers.
type serverClock struct {
	ahead atomic.Int64

	mu      sync.Mutex // guards what follows
	reached bool       // it has answered once
	down    time.Time  // since when it does not answer, by our clock; zero: it answers
	why     error
	back    time.Time // when it answered again; zero: it always has
}

// RoundTripper notes the time of each answer.
func (s *serverClock) RoundTripper(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err != nil {
			if r.Context().Err() == nil { // nobody cancelled it
				s.failed(err)
			}
			return answer, err
		}
		s.answered(answer.StatusCode)
		if at, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
			s.ahead.Store(int64(time.Until(at)))
		}
		return answer, nil
	})
}

func (s *serverClock) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why = err; s.down.IsZero() {
		s.down = time.Now()
	}
}

// answered notes an answer. That of a proxy without an API server behind it does not count.
func (s *serverClock) answered(status int) {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		s.failed(errors.New(http.StatusText(status)))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached = true
	if !s.down.IsZero() {
		s.down, s.back = time.Time{}, time.Now()
	}
}

// Reached says whether the API server has answered this command once, whatever it does now.
func (k *Cluster) Reached() bool {
	if k.clock == nil {
		return false
	}
	k.clock.mu.Lock()
	defer k.clock.mu.Unlock()
	return k.clock.reached
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Skew is how far the API server's clock is ahead of ours. Less than two seconds count as zero: it
// reports whole seconds.
func (k *Cluster) Skew() time.Duration {
	if k.clock == nil {
		return 0
	}
	ahead := time.Duration(k.clock.ahead.Load())
	if ahead.Abs() < 2*time.Second {
		return 0
	}
	return ahead
}

// answering is for how long the API server has been answering since its last outage; the longest
// time if there was none.
func (k *Cluster) answering() time.Duration {
	if k.clock == nil {
		return math.MaxInt64
	}
	k.clock.mu.Lock()
	defer k.clock.mu.Unlock()
	if k.clock.back.IsZero() {
		return math.MaxInt64
	}
	return time.Since(k.clock.back)
}

// outage is since when the API server does not answer, and why; nil: it answers.
func (k *Cluster) outage() (time.Time, error) {
	if k.clock == nil {
		return time.Time{}, nil
	}
	k.clock.mu.Lock()
	defer k.clock.mu.Unlock()
	if k.clock.down.IsZero() {
		return time.Time{}, nil
	}
	return k.clock.down, k.clock.why
}

// ConfigMaps is the client for a namespace, or for all where it is empty.
func (k *Cluster) ConfigMaps(namespace string) typedcorev1.ConfigMapInterface {
	return k.Kube.CoreV1().ConfigMaps(namespace)
}

// Actor is the user name by which the API server knows us; empty where it does not say.
func (k *Cluster) Actor(ctx context.Context) string {
	review, err := k.Kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "" // a missing actor is shown as unverified, like a false one
	}
	return review.Status.UserInfo.Username
}

// Explain adds what a person can do to an error of the API server.
func (k *Cluster) Explain(doing string, err error) error { return k.commands().Explain(doing, err) }

// ReadError is Explain for reading documents, in a namespace or, where it is empty, in all. Where a
// right is missing, it says what to ask for, or where to look instead.
func (k *Cluster) ReadError(doing, namespace string, err error) error {
	out := k.Explain(doing, err)
	switch {
	case !apierrors.IsForbidden(err):
		return out
	case namespace == "":
		return exit.WithHelp(out, "-n NAMESPACE asks for one namespace alone")
	}
	return exit.WithHelp(out, exit.RightBy("the ClusterRole view", namespace, k.canI(namespace)))
}

// WriteError is Explain for a write, or for what only who writes reads, in a namespace or, where it is
// empty, in the whole cluster. Where a right is missing, it says which role has it.
func (k *Cluster) WriteError(doing, verb, namespace string, err error) error {
	return exit.NeedsRight(k.Explain(doing, err), verb, namespace, k.canI(namespace))
}

// canI lists what somebody may do in a namespace, or, where it is empty, in that of the context.
func (k *Cluster) canI(namespace string) string { return k.commands().In(namespace).CanI() }

// unconfigured is client-go's address of the API server without any configuration.
const unconfigured = "http://localhost:8080"
