package executors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const bearer = "Bearer s3cret"

// secret is what the headers of steps here name.
func (h *house) secret(t *testing.T) map[string]plan.HeaderValue {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "outbound"}, StringData: map[string]string{"token": bearer}}
	if _, err := h.kube.CoreV1().Secrets(h.ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return map[string]plan.HeaderValue{"Authorization": {SecretKeyRef: &document.SecretKeyRef{Name: "outbound", Key: "token"}}}
}

// serve is a server that knows the token.
func serve(t *testing.T, answer nethttp.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.Header.Get("Authorization") != bearer {
			w.WriteHeader(nethttp.StatusUnauthorized)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestPrometheusConforms(t *testing.T) {
	h := newHouse(t)
	headers := h.secret(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "prometheus"), Rights: rights("", "secrets", "get"), Idle: true,
		New: func(t *testing.T) conformance.Backend {
			value := &atomic.Int64{}
			value.Store(9)
			server := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
				_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"job":"orders"},"value":[1,"%d"]}]}}`, value.Load())
			})
			minute := &document.Duration{Duration: time.Minute}
			return conformance.Backend{
				Call:    h.call(&plan.PrometheusProperties{URL: server.URL, Query: "errors", Condition: "< 3", For: minute, FailAfter: &document.Duration{Duration: time.Hour}, Headers: headers}),
				Connect: h.connect, Settle: func(*testing.T, *executors.Call) { value.Store(1) },
			}
		},
	})
}

// silences is an Alertmanager as far as silences go.
type silences struct {
	mu  sync.Mutex
	all []map[string]any
}

func (s *silences) serve(w nethttp.ResponseWriter, r *nethttp.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == nethttp.MethodGet {
		_ = json.NewEncoder(w).Encode(s.all)
		return
	}
	var one map[string]any
	if r.Method != nethttp.MethodPost || json.NewDecoder(r.Body).Decode(&one) != nil || one["id"] != nil {
		w.WriteHeader(nethttp.StatusBadRequest)
		return
	}
	one["id"], one["status"] = fmt.Sprintf("id-%d", len(s.all)), map[string]any{"state": "active"}
	s.all = append(s.all, one)
	_ = json.NewEncoder(w).Encode(map[string]any{"silenceID": one["id"]})
}

func (s *silences) count(*testing.T) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

func TestSilenceConforms(t *testing.T) {
	h := newHouse(t)
	headers := h.secret(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "silence"), Rights: rights("", "secrets", "get"), Idle: true,
		New: func(t *testing.T) conformance.Backend {
			s := &silences{all: []map[string]any{}}
			server := serve(t, s.serve)
			return conformance.Backend{
				Call:    h.call(&plan.SilenceProperties{Alertmanager: server.URL, Matchers: []plan.SilenceMatcher{{Name: "namespace", Value: h.ns}}, Headers: headers}),
				Connect: h.connect, Effects: s.count,
			}
		},
	})
}

// desk is where notifications arrive, and a way to find it.
func (h *house) desk(t *testing.T, answer nethttp.HandlerFunc) (*atomic.Int64, func(*testing.T, []conformance.Right, conformance.Wrap) (executors.Clients, string)) {
	t.Helper()
	told := &atomic.Int64{}
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		told.Add(1)
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return told, func(t *testing.T, rights []conformance.Right, wrap conformance.Wrap) (executors.Clients, string) {
		clients, account := h.connect(t, rights, wrap)
		clients.Sinks.URL = func(_ context.Context, name string) (string, error) {
			if name == "nobody" {
				return "", &agentconfig.SinkError{Name: name, Why: "not among spec.notifications.sinks of the AgentConfig, which names ops, dba"}
			}
			return "generic+" + server.URL + "/s3cret/" + name, nil
		}
		return clients, account
	}
}

func TestNotificationConforms(t *testing.T) {
	h := newHouse(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "notification"), Idle: true, Repeats: true,
		New: func(t *testing.T) conformance.Backend {
			told, connect := h.desk(t, nil)
			return conformance.Backend{
				Call:    h.call(&plan.NotificationProperties{Message: "it begins", Sinks: []string{"ops", "dba"}}),
				Connect: connect, Effects: func(*testing.T) int { return int(told.Load()) },
			}
		},
	})
}

func TestNotificationsThatCannotBeSent(t *testing.T) {
	h := newHouse(t)
	told, connect := h.desk(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		switch r.URL.Path {
		case "/s3cret/no":
			w.WriteHeader(nethttp.StatusForbidden)
		case "/s3cret/away":
			nethttp.Redirect(w, r, r.URL.String(), nethttp.StatusTemporaryRedirect)
		}
		_, _ = io.WriteString(w, "thanks for "+r.URL.Path)
	})
	for name, c := range map[string]struct {
		sinks     []string
		permanent bool
		words     []string
		told      int64
	}{
		"a sink that nobody configured":        {[]string{"ops", "nobody"}, true, []string{`"nobody"`, "spec.notifications.sinks", "which names ops, dba"}, 0},
		"a sink that says no":                  {[]string{"no", "ops"}, false, []string{"sink no: ", "403"}, 2},
		"a sink that sends us round and round": {[]string{"away", "ops"}, false, []string{"sink away: ", "redirects"}, 11},
	} {
		t.Run(name, func(t *testing.T) {
			before := told.Load()
			call := h.call(&plan.NotificationProperties{Message: "it begins", Sinks: c.sinks})
			call.Clients, call.Plan.Account = connect(t, nil, unwrapped)
			out := executor(t, "notification").Pass(t.Context(), call)
			for out.State == executors.Record {
				call.Recorded.Memory = out.Memory
				out = executor(t, "notification").Pass(t.Context(), call)
			}
			refused(t, out, c.permanent, "Sink", c.words...)
			if strings.Contains(fmt.Sprintf("%+v", out), "s3cret") || told.Load()-before != c.told {
				t.Errorf("%+v, %d requests, want %d", out, told.Load()-before, c.told)
			}
		})
	}
}

func TestOutboundStepsAgainstServersThatMisbehave(t *testing.T) {
	h := newHouse(t)
	headers := h.secret(t)
	answers := map[string]nethttp.HandlerFunc{
		"a huge body": func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 2<<20))
		},
		"no JSON":     func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, "<html>") },
		"500":         func(w nethttp.ResponseWriter, _ *nethttp.Request) { w.WriteHeader(nethttp.StatusInternalServerError) },
		"404":         func(w nethttp.ResponseWriter, _ *nethttp.Request) { w.WriteHeader(nethttp.StatusNotFound) },
		"a redirect":  func(w nethttp.ResponseWriter, r *nethttp.Request) { nethttp.Redirect(w, r, "/", nethttp.StatusFound) },
		"a hang-up":   func(nethttp.ResponseWriter, *nethttp.Request) { panic(nethttp.ErrAbortHandler) },
		"half a line": func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, `{"status":"succ`) },
		"an echo": func(w nethttp.ResponseWriter, r *nethttp.Request) {
			w.WriteHeader(nethttp.StatusBadGateway)
			_, _ = io.WriteString(w, r.Header.Get("Authorization"))
		},
		"another JSON": func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, `[1, "two"]`) },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			server := serve(t, answer)
			for stepType, properties := range map[string]any{
				"prometheus": &plan.PrometheusProperties{URL: server.URL, Query: "up", Condition: "== 1", Headers: headers},
				"silence":    &plan.SilenceProperties{Alertmanager: server.URL, Matchers: []plan.SilenceMatcher{{Name: "a", Value: "b"}}, Headers: headers},
			} {
				call := h.as(t, h.call(properties), rights("", "secrets", "get"))
				out := executor(t, stepType).Pass(t.Context(), call)
				if out.State == executors.Done || out.Message == "" || strings.Contains(fmt.Sprintf("%+v", out), "s3cret") {
					t.Errorf("%s: %+v", stepType, out)
				}
			}
		})
	}
}
