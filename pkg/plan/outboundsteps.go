package plan

import (
	"net"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// PrometheusProperties hold a run until a query's result meets a condition.
// Condition is CEL over `value` (a number: the result, or that of its first
// series) and `series` (a list of {labels, value}); one that begins with a
// comparison, like >= 3, speaks of value. A server that does not answer has not
// met it.
type PrometheusProperties struct {
	URL       string                 `json:"url"`
	Query     string                 `json:"query"`
	Condition string                 `json:"condition"`
	For       *document.Duration     `json:"for,omitempty"`       // the condition must hold that long, default 0s
	FailAfter *document.Duration     `json:"failAfter,omitempty"` // fails once the condition was not met for that long; default: never by itself
	Interval  *document.Duration     `json:"interval,omitempty"`  // between two queries, default 15s
	Headers   map[string]HeaderValue `json:"headers,omitempty"`
}

// SilenceProperties silence alerts while the run lives: a short lease in
// Alertmanager, renewed until the run ends.
type SilenceProperties struct {
	Alertmanager string                 `json:"alertmanager"` // its URL
	Matchers     []SilenceMatcher       `json:"matchers"`
	Comment      string                 `json:"comment,omitempty"`
	Headers      map[string]HeaderValue `json:"headers,omitempty"`
}

// SilenceMatcher picks alerts by one label.
type SilenceMatcher struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	IsRegex bool   `json:"isRegex,omitempty"`
	IsEqual *bool  `json:"isEqual,omitempty"` // default true
}

// NotificationProperties tell people, through the sinks of the agent's
// configuration.
type NotificationProperties struct {
	Message string   `json:"message"`
	Title   string   `json:"title,omitempty"`
	Sinks   []string `json:"sinks,omitempty"` // names; default: the sink named default, else the only one that the namespace may use
}

// FunctionProperties call a function of Crossplane's protocol v1.
type FunctionProperties struct {
	Endpoint    string               `json:"endpoint"` // host:port
	Input       map[string]any       `json:"input,omitempty"`
	Credentials []FunctionCredential `json:"credentials,omitempty"`
	TLS         *FunctionTLS         `json:"tls,omitempty"`     // default: verified by the system's authorities
	Force       bool                 `json:"force,omitempty"`   // take fields of desired objects from their owners
	Timeout     *document.Duration   `json:"timeout,omitempty"` // of one call, default 20s
}

// FunctionCredential hands a function the data of a Secret of the plan's namespace.
type FunctionCredential struct {
	Name       string `json:"name"`
	SecretName string `json:"secretName"`
}

// FunctionTLS says how to speak with a function: with the ca.crt, tls.crt and
// tls.key of a Secret of the plan's namespace, or in plaintext.
type FunctionTLS struct {
	SecretName string `json:"secretName,omitempty"`
	ServerName string `json:"serverName,omitempty"` // default: the endpoint's host
	Insecure   bool   `json:"insecure,omitempty"`   // plaintext
}

// PrometheusCondition is a condition as CEL: ">= 3" is "value >= 3".
func PrometheusCondition(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "<") || strings.HasPrefix(text, ">") || strings.HasPrefix(text, "==") || strings.HasPrefix(text, "!=") {
		return "value " + text
	}
	return text
}

func checkPrometheus(p any, at document.Reporter) {
	props := p.(*PrometheusProperties)
	checkURL(props.URL, at)
	checkHeaders(props.Headers, at)
	if c := props.Condition; c != "" && !expr.IsTemplate(c) {
		if err := expr.CheckBool(PrometheusCondition(c), "value", "series"); err != nil {
			at("condition", "%s", err)
		}
	}
	document.CheckSpan("for", props.For, 0, document.Longest, at)
	document.CheckSpan("failAfter", props.FailAfter, 0, document.Longest, at)
	document.CheckSpan("interval", props.Interval, time.Second, 24*time.Hour, at)
}

func checkSilence(p any, at document.Reporter) {
	props := p.(*SilenceProperties)
	checkURL(props.Alertmanager, func(_, format string, args ...any) { at("alertmanager", format, args...) })
	checkHeaders(props.Headers, at)
	if len(props.Matchers) == 0 {
		at("matchers", "is empty: a silence of everything is not meant")
	}
	for _, m := range props.Matchers {
		if m.Name == "" || m.Value == "" {
			at("matchers", "each needs a name and a value")
		}
	}
}

func checkNotification(p any, at document.Reporter) {
	props := p.(*NotificationProperties)
	if props.Message == "" {
		at("message", "is empty")
	}
	if props.Sinks != nil && len(props.Sinks) == 0 {
		at("sinks", "is empty: name sinks of the agent's configuration, or leave it out for its default")
	}
}

func checkFunction(p any, at document.Reporter) {
	props := p.(*FunctionProperties)
	if e := props.Endpoint; !expr.IsTemplate(e) {
		if host, port, err := net.SplitHostPort(e); err != nil || host == "" || port == "" {
			at("endpoint", "%q is no host and port; write it like fn.example.org:9443", document.Cut(e, 200))
		}
	}
	seen := map[string]bool{}
	for _, c := range props.Credentials {
		if c.Name == "" || c.SecretName == "" {
			at("credentials", "each needs a name and a secretName")
		}
		if seen[c.Name] {
			at("credentials", "%q appears twice", document.Cut(c.Name, 100))
		}
		seen[c.Name] = true
	}
	if t := props.TLS; t != nil && t.Insecure && (t.SecretName != "" || t.ServerName != "") {
		at("tls", "insecure is plaintext: it goes with neither secretName nor serverName")
	}
	document.CheckSpan("timeout", props.Timeout, time.Second, 10*time.Minute, at)
}
