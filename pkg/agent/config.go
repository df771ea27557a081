package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// config is the AgentConfig in force. A broken one leaves the one before it in
// force; an agent that starts with a broken one does nothing.
type config struct {
	namespace string
	level     *slog.LevelVar
	log       *slog.Logger
	dial      func(plan.Outbound) *http.Client
	dialer    func(plan.Outbound) func(ctx context.Context, network, address string) (net.Conn, error)
	fence     *client.Fence
	metrics   *metrics
	kube      kubernetes.Interface // the agent's own; nil until it is connected

	mu      sync.Mutex
	inForce plan.AgentConfig
	http    *http.Client
	broken  plan.Faults
	mended  chan struct{} // closed when a broken one gives way to a good one
	read    string        // annotations.Observed of what was last read: status of ours on it is no news
	// limits are the conditions that follow from it and the nodes; limitsKnown is
	// false until the nodes were looked at.
	limits      []metav1.Condition
	limitsKnown bool
}

func newConfig(o Options, m *metrics, f *client.Fence) *config {
	c := &config{namespace: o.Namespace, level: o.LogLevel, log: o.Log, dial: o.HTTPClient, dialer: o.Dialer, metrics: m, fence: f}
	c.use(plan.AgentConfig{})
	return c
}

func (c *config) use(spec plan.AgentConfig) {
	c.inForce, c.http = spec, c.fence.Client(c.dial(spec.Outbound))
	var level slog.Level
	if spec.LogLevel != "" && level.UnmarshalText([]byte(spec.LogLevel)) == nil && c.level != nil {
		c.level.Set(level)
	}
}

func (c *config) ours(cm *corev1.ConfigMap) bool {
	if cm.Namespace == c.namespace && cm.Name == annotations.AgentConfigName {
		return true
	}
	c.log.Warn("this agent configuration is not used", "configmap", cm.Namespace+"/"+cm.Name, "used", c.namespace+"/"+annotations.AgentConfigName)
	return false
}

func (c *config) saw(cm *corev1.ConfigMap) {
	if !c.ours(cm) || !c.news(annotations.Observed(cm)) {
		return
	}
	text, fault := annotations.DocumentText(cm)
	var spec plan.AgentConfig
	var faults plan.Faults
	if fault != nil {
		faults = plan.Faults{*fault}
	} else {
		spec, faults = plan.ParseAgentConfig([]byte(text))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metrics.config(len(faults) == 0)
	if len(faults) > 0 {
		if len(c.broken) == 0 {
			c.mended = make(chan struct{})
		}
		c.broken = faults
		c.log.Error("the agent's configuration is broken; what was in force stays so", "faults", faults.Error())
		return
	}
	if len(c.broken) > 0 {
		close(c.mended)
	}
	c.broken = nil
	c.use(spec)
	c.log.Info("took up the agent's configuration", "version", cm.ResourceVersion)
}

// news says whether a text differs from the one that was read last.
func (c *config) news(observed string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.read
	c.read = observed
	return was != observed
}

func (c *config) lost(cm *corev1.ConfigMap) {
	if c.ours(cm) {
		c.news("")
		c.log.Warn("the agent's configuration is gone; what was in force stays so")
	}
}

// broke says why there is nothing to begin with, and what to wait for.
func (c *config) broke() (<-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.broken) == 0 {
		return nil, nil
	}
	return c.mended, fmt.Errorf("the agent's configuration %s/%s is broken, so nothing starts: %w", c.namespace, annotations.AgentConfigName, c.broken)
}

// sink is the URL of a sink of the configuration in force, read anew each time: a
// Secret may be replaced, and is kept nowhere. What an admin has to mend is a
// *plan.SinkError.
func (c *config) sink(ctx context.Context, name string) (string, error) {
	if err := c.fence.Check(); err != nil {
		return "", err
	}
	s, err := c.spec().Notifications.Sink(name)
	if err != nil {
		return "", err
	}
	ref, at := s.URLSecretRef, c.namespace+"/"+s.URLSecretRef.Name
	secret, err := c.kube.CoreV1().Secrets(c.namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", &plan.SinkError{Name: name, Why: "its Secret " + at + " is not there"}
	case apierrors.IsForbidden(err):
		return "", &plan.SinkError{Name: name, Why: "the agent may not read its Secret " + at + ": grant it get on secrets there", Err: err}
	case err != nil:
		return "", fmt.Errorf("read Secret %s: %w", at, err)
	}
	url := strings.TrimSpace(string(secret.Data[ref.Key]))
	if url == "" {
		return "", &plan.SinkError{Name: name, Why: fmt.Sprintf("its Secret %s holds no URL under the key %q", at, ref.Key)}
	}
	return url, nil
}

// connect dials outside by the rules in force.
func (c *config) connect(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	rules := c.inForce.Outbound
	c.mu.Unlock()
	if c.dialer == nil {
		return nil, errors.New("this agent has nothing to dial with")
	}
	return c.fence.Dialer(c.dialer(rules))(ctx, network, address)
}

func (c *config) client() *http.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.http
}

func (c *config) spec() plan.AgentConfig {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inForce
}
