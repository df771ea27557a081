package config

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// sinksOf are a configuration with sinks.
func sinksOf(on ...agentconfig.NotifyFor) agentconfig.AgentConfig {
	return agentconfig.AgentConfig{Notifications: agentconfig.Notifications{On: on, Sinks: []agentconfig.Sink{
		{Name: "ops", URLSecretRef: document.SecretKeyRef{Name: "sinks", Key: "ops"}}, {Name: "dba", URLSecretRef: document.SecretKeyRef{Name: "others", Key: "dba"}},
	}}}
}

func TestWhereASinkHasItsURL(t *testing.T) {
	const secretURL = "slack://t0ken@channel"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: "sinks"}, Data: map[string][]byte{"ops": []byte(secretURL + "\n"), "blank": []byte(" \n")}}
	for name, c := range map[string]struct {
		sink   string
		config agentconfig.AgentConfig
		answer error // of the API server
		want   string
		fault  string // of the admin's
	}{
		"a URL and the line break behind it": {sink: "ops", config: sinksOf(), want: secretURL},
		"a name that is not configured":      {sink: "opps", config: sinksOf(), fault: `"opps": not among spec.notifications.sinks of the AgentConfig, which names ops, dba`},
		"no configuration":                   {sink: "ops", fault: "which names none"},
		"no Secret":                          {sink: "dba", config: sinksOf(), fault: `"dba": its Secret maint-system/others is not there`},
		"no right": {
			sink: "ops", config: sinksOf(), answer: apierrors.NewForbidden(corev1.Resource("secrets"), "sinks", nil), fault: "lets it read what the configuration names",
		},
		"a Secret without its key": {
			sink: "ops", fault: `holds no URL under the key "blank"`,
			config: agentconfig.AgentConfig{Notifications: agentconfig.Notifications{Sinks: []agentconfig.Sink{{Name: "ops", URLSecretRef: document.SecretKeyRef{Name: "sinks", Key: "blank"}}}}},
		},
		"an API server that is away": {sink: "ops", config: sinksOf(), answer: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset(secret)
			if c.answer != nil {
				kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.answer })
			}
			held := New(Config{
				Namespace: "maint-system", Log: slog.New(slog.DiscardHandler), HTTP: func(agentconfig.Outbound) *http.Client { return nil },
				Fence: client.NewFence(time.Minute, time.Now), Kube: kube, OnRead: func(bool) {},
			})
			held.use(c.config)
			got, err := held.Sink(t.Context(), "shop", c.sink)
			var fault *agentconfig.SinkError
			if got != c.want || (err == nil) != (c.want != "") || errors.As(err, &fault) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%q, %v, want %q %q", got, err, c.want, c.fault)
			}
		})
	}
}

// The client certificate for installed functions stands in the agent's namespace, as the admin says.
func TestWhereTheCertificateForFunctionsIs(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: "fn-tls"}, Data: map[string][]byte{"tls.crt": []byte("c")}}
	for name, c := range map[string]struct {
		spec   string
		answer error // of the API server
		found  bool
		fault  string // of the admin's
		fails  bool
	}{
		"it is there":                {spec: "{functions: {tlsSecretRef: {name: fn-tls}}}", found: true},
		"none is named":              {spec: "{}"},
		"it is not there":            {spec: "{functions: {tlsSecretRef: {name: gone}}}", fault: "Secret maint-system/gone is not there"},
		"no right":                   {spec: "{functions: {tlsSecretRef: {name: fn-tls}}}", answer: apierrors.NewForbidden(corev1.Resource("secrets"), "fn-tls", nil), fault: "lets it read what the configuration names"},
		"an API server that is away": {spec: "{functions: {tlsSecretRef: {name: fn-tls}}}", answer: errors.New("connection refused"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset(secret)
			if c.answer != nil {
				kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.answer })
			}
			held := New(Config{
				Namespace: "maint-system", Log: slog.New(slog.DiscardHandler), HTTP: func(agentconfig.Outbound) *http.Client { return nil },
				Fence: client.NewFence(time.Minute, time.Now), Kube: kube, OnRead: func(bool) {},
			})
			held.Observe(ours(c.spec))
			got, err := held.FunctionTLS(t.Context())
			var fault *agentconfig.SecretError
			if (got != nil) != c.found || (err != nil) != (c.fault != "" || c.fails) || errors.As(err, &fault) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
