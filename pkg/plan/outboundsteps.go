package plan

import (
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
