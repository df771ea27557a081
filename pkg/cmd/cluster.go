package cmd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// cluster is the API server that the kubeconfig points at, and the namespace
// that the command line speaks of.
type cluster struct {
	kube      kubernetes.Interface
	meta      metadata.Interface // of objects without the rest of them
	namespace string
}

// connect reads the kubeconfig; nothing is sent yet.
func (c *cli) connect() (*cluster, error) {
	if c.fixed != nil {
		return c.fixed, nil
	}
	config, err := c.config.ToRESTConfig()
	if err != nil {
		return nil, noCluster(err)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 300 // as kubectl
	config.UserAgent = "kubectl-maint/" + c.Version
	config.WarningHandler = rest.NewWarningWriter(c.ErrOut, rest.WarningWriterOptions{Deduplicate: true, Color: c.Color})
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	namespace, _, err := c.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, noCluster(err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &cluster{kube: kube, meta: meta, namespace: namespace}, nil
}

func noCluster(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return errors.New("no cluster is configured: set KUBECONFIG or give --kubeconfig")
	}
	return fmt.Errorf("read kubeconfig: %w", err)
}

func (k *cluster) maps(namespace string) configMaps {
	return k.kube.CoreV1().ConfigMaps(namespace)
}

// actor is who the API server takes us for; empty where it does not say.
func (k *cluster) actor(ctx context.Context) string {
	review, err := k.kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "" // an unnamed actor is shown as unverified, like a false one would be
	}
	return review.Status.UserInfo.Username
}

// plain tells an error of the API server so that the person can act on it.
func plain(doing string, err error) error {
	var out *url.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &out) && !out.Timeout() && !errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: the API server at %s cannot be reached: %w", doing, serverOf(out.URL), out.Err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: you may not: %w", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// serverOf is the API server's address alone.
func serverOf(request string) string {
	u, err := url.Parse(request)
	if err != nil {
		return request
	}
	return u.Scheme + "://" + u.Host
}

// Agent is what the heartbeat says about the agent.
type agentState struct {
	Namespace string    `json:"namespace"`
	Version   string    `json:"version"`
	Identity  string    `json:"identity,omitempty"`
	Pod       string    `json:"pod,omitempty"`
	Heartbeat time.Time `json:"heartbeat"`
	missing   string    // why there is none that could be counted on
}

// staleAfter is how old a heartbeat may be: the leader writes one every 30 s.
const staleAfter = 90 * time.Second

// errUnknownAgent says that whether an agent runs could not be found out.
var errUnknownAgent = errors.New("could not look whether the agent runs") //nolint:gochecknoglobals // a sentinel for errors.Is

// agent reads the heartbeat, from the namespace that was named, from the usual
// one, or from wherever one is found.
func (c *cli) agent(ctx context.Context, k *cluster) (agentState, error) {
	if c.agentNamespace != "" {
		return c.agentIn(ctx, k, c.agentNamespace)
	}
	state, err := c.agentIn(ctx, k, annotations.DefaultNamespace)
	if err == nil && state.Heartbeat.IsZero() {
		found, listErr := k.maps("").List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindHeartbeat})
		if listErr == nil && len(found.Items) > 0 { // forbidden is no news: the usual place had none
			return c.readBeat(&found.Items[0]), nil
		}
	}
	return state, err
}

func (c *cli) agentIn(ctx context.Context, k *cluster, namespace string) (agentState, error) {
	cm, err := k.maps(namespace).Get(ctx, annotations.HeartbeatName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return agentState{Namespace: namespace, missing: fmt.Sprintf("no agent runs in namespace %s: install it with '%s install --apply'", namespace, c.Name)}, nil
	case err != nil:
		return agentState{Namespace: namespace}, fmt.Errorf("%w: %w", errUnknownAgent, err)
	}
	return c.readBeat(cm), nil
}

func (c *cli) readBeat(cm *corev1.ConfigMap) agentState {
	s := agentState{Namespace: cm.Namespace, Version: cm.Data["version"], Identity: cm.Data["identity"], Pod: cm.Data["pod"]}
	at, err := time.Parse(time.RFC3339, cm.Data["heartbeat"])
	if err != nil {
		s.missing = fmt.Sprintf("the heartbeat of the agent in namespace %s cannot be read", cm.Namespace)
		return s
	}
	s.Heartbeat = at
	if age := c.Now().Sub(at); age > staleAfter {
		s.missing = fmt.Sprintf("the agent in namespace %s last showed itself %s ago (%s): see 'kubectl -n %s get pods'", cm.Namespace, age.Round(time.Second), at.UTC().Format(time.RFC3339), cm.Namespace)
	}
	return s
}

// needAgent refuses to go on where nobody would act on what is asked. Whoever
// may not look gets a word of doubt instead.
func (c *cli) needAgent(ctx context.Context, k *cluster) error {
	s, err := c.agent(ctx, k)
	switch {
	case errors.Is(err, errUnknownAgent):
		fmt.Fprintf(c.ErrOut, "warning: %v\n", err)
		return nil
	case err != nil:
		return err
	case s.missing != "":
		return exit(CodeNoAgent, "%s", s.missing)
	}
	return nil
}
