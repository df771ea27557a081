// Package config holds the AgentConfig in force, and what follows from it for the outside.
package config

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

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Store is the AgentConfig in force. A broken one leaves the one before it in
// force; an agent that starts with a broken one does nothing.
type Store struct {
	config Config
	level  slog.Level // of the log where the configuration names none: the flag's

	mu      sync.Mutex
	inForce agentconfig.AgentConfig
	http    *http.Client // by the rules in force
	broken  document.Faults
	mended  chan struct{} // closed when a broken one gives way to a good one
	read    string        // annotations.Observed of what was last read: status of ours on it is no news
	stands  string        // how it stands, as annotations.HeartbeatConfiguration
	// limits are the conditions that follow from it and the nodes; limitsKnown is
	// false until the nodes were looked at.
	limits      []metav1.Condition
	limitsKnown bool
}

// Config are what the configuration is read with.
type Config struct {
	Namespace string // the agent's own
	Level     *slog.LevelVar
	Log       *slog.Logger
	HTTP      func(agentconfig.Outbound) *http.Client
	Dialer    func(agentconfig.Outbound) func(ctx context.Context, network, address string) (net.Conn, error)
	Fence     *client.Fence
	Kube      kube.Interface   // the agent's own
	OnRead    func(valid bool) // hears of each configuration that was read
}

// New has nothing but the defaults in force.
func New(settings Config) *Store {
	c := &Store{config: settings}
	if settings.Level != nil {
		c.level = settings.Level.Level()
	}
	c.use(agentconfig.AgentConfig{})
	return c
}

func (c *Store) use(spec agentconfig.AgentConfig) {
	c.inForce, c.http = spec, c.config.Fence.Client(c.config.HTTP(spec.Outbound))
	if c.config.Level == nil {
		return
	}
	level := c.level
	if spec.LogLevel == "" || level.UnmarshalText([]byte(spec.LogLevel)) != nil {
		level = c.level
	}
	c.config.Level.Set(level)
}

func (c *Store) ours(cm *corev1.ConfigMap) bool {
	if cm.Namespace == c.config.Namespace && cm.Name == annotations.AgentConfigName {
		return true
	}
	level := slog.LevelWarn
	if cm.Namespace != c.config.Namespace { // a tenant's: its conditions say so
		level = slog.LevelDebug
	}
	c.config.Log.Log(context.Background(), level, "this agent configuration is not used", "configmap", cm.Namespace+"/"+cm.Name, "used", c.config.Namespace+"/"+annotations.AgentConfigName)
	return false
}

// Observe takes in a configuration as the watch shows it.
func (c *Store) Observe(cm *corev1.ConfigMap) {
	if !c.ours(cm) || !c.news(annotations.Observed(cm)) {
		return
	}
	text, fault := annotations.DocumentText(cm)
	var spec agentconfig.AgentConfig
	var faults document.Faults
	if fault != nil {
		faults = document.Faults{*fault}
	} else {
		spec, faults = agentconfig.Parse([]byte(text))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stands = annotations.ConfigurationPresent
	c.config.OnRead(len(faults) == 0)
	if len(faults) > 0 {
		if len(c.broken) == 0 {
			c.mended = make(chan struct{})
		}
		c.broken = faults
		c.config.Log.Error("the agent's configuration is invalid; the previous one stays in force", "faults", faults.Error())
		return
	}
	c.mend()
	c.use(spec)
	c.config.Log.Info("took up the agent's configuration", "version", cm.ResourceVersion)
}

// news says whether a text differs from the one that was read last.
func (c *Store) news(observed string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.read
	c.read = observed
	return was != observed
}

// mend forgets what was wrong with a configuration that no longer is.
func (c *Store) mend() {
	if len(c.broken) > 0 {
		close(c.mended)
	}
	c.broken = nil
}

// Removed hears that a configuration is gone. What was in force stays so: the defaults, where an
// agent found a broken one when it began. It counts as not valid: the next agent has nothing but
// the defaults.
func (c *Store) Removed(cm *corev1.ConfigMap) {
	if !c.ours(cm) {
		return
	}
	c.news("")
	c.config.Log.Error("the agent's configuration was deleted; the previous one stays in force until the agent restarts, and after a restart the defaults hold")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stands = annotations.ConfigurationDeleted
	c.config.OnRead(false)
	c.mend()
}

// Stands says for the heartbeat how the configuration stands. before is what the heartbeat said: an
// agent that has seen none knows by it alone that there was one.
func (c *Store) Stands(before string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stands == "" && before != "" {
		c.stands = annotations.ConfigurationLost
		c.config.OnRead(false)
		c.config.Log.Error("the agent's configuration is gone, and the defaults are in force", "configmap", c.config.Namespace+"/"+annotations.AgentConfigName)
	}
	return c.stands
}

// Broken says why there is nothing to begin with, and what to wait for.
func (c *Store) Broken() (<-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.broken) == 0 {
		return nil, nil
	}
	return c.mended, fmt.Errorf("the agent's configuration %s/%s is broken, so nothing starts: %w", c.config.Namespace, annotations.AgentConfigName, c.broken)
}

// Sink is the URL of a sink of the configuration in force to which a namespace may send,
// read anew each time: a Secret may be replaced, and is kept nowhere. What an admin has to mend is a
// *agentconfig.SinkError.
func (c *Store) Sink(ctx context.Context, namespace, name string) (string, error) {
	if err := c.config.Fence.Check(); err != nil {
		return "", err
	}
	s, err := c.Spec().Notifications.Sink(namespace, name)
	if err != nil {
		return "", err
	}
	ref, at := s.URLSecretRef, c.config.Namespace+"/"+s.URLSecretRef.Name
	secret, err := c.secret(ctx, ref.Name)
	var fault *agentconfig.SecretError
	switch {
	case errors.As(err, &fault):
		return "", &agentconfig.SinkError{Name: name, Why: "its " + fault.Why, Err: fault.Err}
	case err != nil:
		return "", err
	}
	url := strings.TrimSpace(string(secret.Data[ref.Key]))
	if url == "" {
		return "", &agentconfig.SinkError{Name: name, Why: fmt.Sprintf("its Secret %s holds no URL under the key %q", at, ref.Key)}
	}
	return url, nil
}

// DefaultSink is the name of the sink of the configuration in force to which steps of a namespace
// send that name none. Where there is none it is a *agentconfig.SinkError.
func (c *Store) DefaultSink(namespace string) (string, error) {
	s, err := c.Spec().Notifications.Default(namespace)
	return s.Name, err
}

// secret reads a Secret of the agent's own namespace that the configuration names.
func (c *Store) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	at := c.config.Namespace + "/" + name
	secret, err := c.config.Kube.CoreV1().Secrets(c.config.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, &agentconfig.SecretError{Why: "Secret " + at + " is not there"}
	case apierrors.IsForbidden(err):
		return nil, &agentconfig.SecretError{Why: "Secret " + at + " may not be read by the agent: 'kubectl maint install --apply' lets it read what the configuration names", Err: err}
	case err != nil:
		return nil, fmt.Errorf("read Secret %s: %w", at, err)
	}
	return secret, nil
}

// FunctionTLS is the Secret with the client certificate for installed functions, read anew each time
// as those of sinks are; nil where the configuration in force names none. What an admin has to mend
// is a *agentconfig.SecretError.
func (c *Store) FunctionTLS(ctx context.Context) (*corev1.Secret, error) {
	if err := c.config.Fence.Check(); err != nil {
		return nil, err
	}
	ref := c.Spec().Functions.TLSSecretRef
	if ref == nil {
		return nil, nil
	}
	return c.secret(ctx, ref.Name)
}

// Dial dials outside by the rules in force.
func (c *Store) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	rules := c.inForce.Outbound
	c.mu.Unlock()
	if c.config.Dialer == nil {
		return nil, errors.New("this agent has nothing to dial with")
	}
	return c.config.Fence.Dialer(c.config.Dialer(rules))(ctx, network, address)
}

// HTTPClient makes requests outside, each by the rules that are in force then: whoever keeps the client
// is kept to rules that come later. Nil: there is nothing to make them with.
func (c *Store) HTTPClient() *http.Client {
	now := c.outside()
	if now == nil {
		return nil
	}
	return &http.Client{
		Transport:     client.RoundTripper(func(r *http.Request) (*http.Response, error) { return c.outside().Transport.RoundTrip(r) }),
		CheckRedirect: now.CheckRedirect, // the same by all rules
	}
}

func (c *Store) outside() *http.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.http
}

// Spec is what is in force.
func (c *Store) Spec() agentconfig.AgentConfig {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inForce
}
