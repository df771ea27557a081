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
	settings configSettings

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

// configSettings are what the configuration is read with.
type configSettings struct {
	Namespace string // the agent's own
	Level     *slog.LevelVar
	Log       *slog.Logger
	HTTP      func(plan.Outbound) *http.Client
	Dialer    func(plan.Outbound) func(ctx context.Context, network, address string) (net.Conn, error)
	Fence     *client.Fence
	Kube      kubernetes.Interface // the agent's own
	OnRead    func(valid bool)     // hears of each configuration that was read
}

// newConfig has nothing but the defaults in force.
func newConfig(settings configSettings) *config {
	c := &config{settings: settings}
	c.use(plan.AgentConfig{})
	return c
}

func (c *config) use(spec plan.AgentConfig) {
	c.inForce, c.http = spec, c.settings.Fence.Client(c.settings.HTTP(spec.Outbound))
	var level slog.Level
	if spec.LogLevel != "" && level.UnmarshalText([]byte(spec.LogLevel)) == nil && c.settings.Level != nil {
		c.settings.Level.Set(level)
	}
}

func (c *config) ours(cm *corev1.ConfigMap) bool {
	if cm.Namespace == c.settings.Namespace && cm.Name == annotations.AgentConfigName {
		return true
	}
	c.settings.Log.Warn("this agent configuration is not used", "configmap", cm.Namespace+"/"+cm.Name, "used", c.settings.Namespace+"/"+annotations.AgentConfigName)
	return false
}

// saw takes in a configuration as the watch shows it.
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
	c.settings.OnRead(len(faults) == 0)
	if len(faults) > 0 {
		if len(c.broken) == 0 {
			c.mended = make(chan struct{})
		}
		c.broken = faults
		c.settings.Log.Error("the agent's configuration is broken; what was in force stays so", "faults", faults.Error())
		return
	}
	if len(c.broken) > 0 {
		close(c.mended)
	}
	c.broken = nil
	c.use(spec)
	c.settings.Log.Info("took up the agent's configuration", "version", cm.ResourceVersion)
}

// news says whether a text differs from the one that was read last.
func (c *config) news(observed string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.read
	c.read = observed
	return was != observed
}

// lost hears that a configuration is gone.
func (c *config) lost(cm *corev1.ConfigMap) {
	if c.ours(cm) {
		c.news("")
		c.settings.Log.Warn("the agent's configuration is gone; what was in force stays so")
	}
}

// broke says why there is nothing to begin with, and what to wait for.
func (c *config) broke() (<-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.broken) == 0 {
		return nil, nil
	}
	return c.mended, fmt.Errorf("the agent's configuration %s/%s is broken, so nothing starts: %w", c.settings.Namespace, annotations.AgentConfigName, c.broken)
}

// sink is the URL of a sink of the configuration in force, read anew each time: a
// Secret may be replaced, and is kept nowhere. What an admin has to mend is a
// *plan.SinkError.
func (c *config) sink(ctx context.Context, name string) (string, error) {
	if err := c.settings.Fence.Check(); err != nil {
		return "", err
	}
	s, err := c.spec().Notifications.Sink(name)
	if err != nil {
		return "", err
	}
	ref, at := s.URLSecretRef, c.settings.Namespace+"/"+s.URLSecretRef.Name
	secret, err := c.settings.Kube.CoreV1().Secrets(c.settings.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
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
	if c.settings.Dialer == nil {
		return nil, errors.New("this agent has nothing to dial with")
	}
	return c.settings.Fence.Dialer(c.settings.Dialer(rules))(ctx, network, address)
}

// client makes requests outside by the rules in force.
func (c *config) client() *http.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.http
}

// spec is what is in force.
func (c *config) spec() plan.AgentConfig {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inForce
}
