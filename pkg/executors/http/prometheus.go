package http

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	nethttp "net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const (
	// queryInterval is the default pause between two queries (a guess: most servers scrape that
	// often).
	queryInterval = 15 * time.Second
	// queryTimeout is the limit for one query (a guess: a dashboard would give up).
	queryTimeout = 20 * time.Second
)

// Prometheus executes the step type prometheus. It needs get on the Secrets of its headers, as the
// plan's account. Whatever is not clearly true does not meet the condition: no answer, no series,
// no number. The condition counts as true between two looks that both found it true.
type Prometheus struct{}

// Pass queries once, and says for how long the result has been so.
func (Prometheus) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.PrometheusProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	condition, err := newCondition(p.Condition)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if call.DryRun {
		if _, err := parseURL("url", p.URL); err != nil {
			return api.Outcome(ctx, call, err)
		}
		return executors.Outcome{State: executors.Done, Message: "dry run: would query until " + condition.text + "; nobody was asked"}
	}
	s, err := newService(ctx, call, "url", p.URL, p.Headers)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	found, ended := s.query(ctx, call, p.Query)
	if ended != nil {
		return *ended
	}
	var v verdict
	if err := executors.Evaluate(ctx, func() { v = condition.judge(found) }); err != nil {
		return api.Outcome(ctx, call, err)
	}
	return v.outcome(call, p)
}

// condition is CEL over value and series.
type condition struct {
	text              string
	ofValue, ofSeries bool
}

func newCondition(text string) (condition, error) {
	c := condition{text: plan.PrometheusCondition(text)}
	if err := expr.CheckBool(c.text, "value", "series"); err != nil {
		return c, api.Refuse("BadCondition", "condition: %s", err)
	}
	c.ofValue = expr.CheckBool(c.text, "series") != nil
	c.ofSeries = expr.CheckBool(c.text, "value") != nil
	return c, nil
}

// verdict is the result of one look.
type verdict struct {
	met    bool
	why    string // why there is no number
	value  any    // of the first series; nil without one
	series int
	wait   time.Duration // for which nobody is to ask again
}

// judge evaluates the condition. NaN is handled here: in CEL it differs from every number, so any
// NaN would meet value != 0.
func (c condition) judge(f findings) verdict {
	v := verdict{series: len(f.series), why: f.trouble, wait: f.wait}
	if f.trouble != "" {
		return v
	}
	vars := map[string]any{"series": list(f.series)}
	if len(f.series) > 0 {
		vars["value"] = f.series[0].value
		v.value = number(f.series[0].value)
	}
	isNaN := func(s sample) bool { return math.IsNaN(s.value) }
	nan := slices.IndexFunc(f.series, isNaN)
	switch {
	case c.ofValue && len(f.series) == 0:
		v.why = "no series"
		return v
	case c.ofSeries && nan >= 0, c.ofValue && nan == 0:
		v.why = "the value of " + f.series[nan].name + " is NaN"
		return v
	}
	met, err := expr.Bool(c.text, vars)
	v.met = met && err == nil
	switch {
	case err != nil:
		v.why = err.Error()
	case len(f.series) == 0:
		v.why = "no series"
	}
	return v
}

// sees describes the data behind the verdict, for the last message of a step.
func (v verdict) sees() string {
	switch {
	case v.why != "":
		return v.why
	case v.series == 1:
		return fmt.Sprintf("the value is %v", v.value)
	}
	return fmt.Sprintf("the value is %v, the first of %d series", v.value, v.series)
}

// standing is remembered between passes: since when the condition is met, or is not. A new attempt
// begins anew.
type standing struct {
	Attempt int       `json:"attempt"`
	Met     bool      `json:"met"`
	Since   time.Time `json:"since"`
}

// outcome compares a verdict with the step's times. The memory is written only when the verdict
// changes, and only where a time is counted.
func (v verdict) outcome(call executors.Call, p *plan.PrometheusProperties) executors.Outcome {
	now := standing{Attempt: call.Attempt, Met: v.met, Since: call.Now.UTC()}
	was, known := recall[standing](call.Recorded.Memory)
	if known && was.Attempt == now.Attempt && was.Met == now.Met {
		now = was
	}
	lasted := call.Now.Sub(now.Since)
	limit := p.FailAfter
	if v.met {
		limit = p.For
	}
	wake := call.Now.Add(max(p.Interval.Or(queryInterval), v.wait))
	if limit != nil && now.Since.Add(limit.Duration).Before(wake) {
		wake = now.Since.Add(limit.Duration)
	}
	switch {
	case v.met && lasted >= limit.Or(0):
		return executors.Outcome{State: executors.Done, Message: "the condition is met: " + v.sees(), Outputs: v.outputs()}
	case !v.met && limit != nil && lasted >= limit.Duration:
		return executors.Fail("ConditionNotMet", "the condition was not met for %s: %s", limit, v.sees())
	}
	out := executors.Outcome{State: executors.NotYet, WakeAt: wake, Message: v.waits(now.Since, limit)}
	if now != was && (known || v.met || limit != nil) {
		out.Memory = remember(now)
	}
	return out
}

// waits is the message of a pass that goes on. It contains no number of the query: each new message
// is a write.
func (v verdict) waits(since time.Time, limit *document.Duration) string {
	switch {
	case v.met:
		return fmt.Sprintf("the condition is met since %s and has to hold for %s", since.Format(time.RFC3339), limit)
	case v.why != "":
		return document.Cut("the condition is not met: "+v.why, document.MaxMessage)
	}
	return "the condition is not met"
}

func (v verdict) outputs() map[string]any {
	out := map[string]any{"series": int64(v.series)}
	if v.value != nil {
		out["value"] = v.value
	}
	return out
}

// recall reads what an earlier pass remembered, if it has this shape.
func recall[T any](memory json.RawMessage) (T, bool) {
	var v T
	if len(memory) == 0 || json.Unmarshal(memory, &v) != nil {
		var none T
		return none, false
	}
	return v, true
}

// remember marshals a plain struct of ours, which always works.
func remember(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

// sample is one series of an instant vector.
type sample struct {
	name   string // its labels as Prometheus writes them: {job="orders"}
	labels map[string]string
	value  float64
}

// findings are the result of a query, or why there is none.
type findings struct {
	series  []sample // by labels; a scalar is one without labels
	trouble string
	wait    time.Duration // for which the server asks not to be asked again
}

func list(series []sample) []any {
	out := make([]any, len(series))
	for i, s := range series {
		labels := make(map[string]any, len(s.labels))
		for name, value := range s.labels {
			labels[name] = value
		}
		out[i] = map[string]any{"labels": labels, "value": s.value}
	}
	return out
}

// number is a value for JSON, where infinity needs a text.
func number(f float64) any {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return expr.Whole(f)
}

// query asks Prometheus by POST, so that a long query fits. It ends the step where repeating the
// query cannot help.
func (s *service) query(ctx context.Context, call executors.Call, query string) (findings, *executors.Outcome) {
	limit, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	form := url.Values{"query": {query}, "timeout": {queryTimeout.String()}}
	a, err := s.ask(limit, call, question{
		method: nethttp.MethodPost, path: "/api/v1/query", kind: "application/x-www-form-urlencoded", body: []byte(form.Encode()),
	})
	var out executors.Outcome
	switch refused, is := refusal(a.what, err); {
	case is:
		return findings{}, &refused
	case err != nil && ctx.Err() != nil:
		out = api.Again(call, "Interrupted", "%s: interrupted before its answer", a.what)
		return findings{}, &out
	case err != nil:
		return findings{trouble: a.what + ": " + s.why(err)}, nil
	case a.tooLong:
		out = executors.Fail(executors.ReasonTooLarge, "%s: the answer has more than %d bytes; narrow the query, as with sum or topk", a.what, MaxBody)
		return findings{}, &out
	case values(a.body) > MaxValues:
		out = executors.Fail(executors.ReasonTooLarge, "%s: the answer has more than %d values; narrow the query, as with sum or topk", a.what, MaxValues)
		return findings{}, &out
	}
	return s.read(call, a)
}

// reply is an answer of Prometheus' HTTP API v1.
type reply struct {
	Status    string `json:"status"`
	ErrorType string `json:"errorType"`
	Error     string `json:"error"`
	Data      struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

func (s *service) read(call executors.Call, a answer) (findings, *executors.Outcome) {
	var r reply
	understood := json.Unmarshal(a.body, &r) == nil && r.Status != ""
	wrong := r.Status == "error" && a.status >= 400 && !mayMend(a.status)
	switch {
	case understood && wrong:
		return s.bad("%s: %s: %s", a.what, r.ErrorType, r.Error)
	case a.status != nethttp.StatusOK || !understood:
		wait, _ := retryAfter(a.wait, call.Now)
		return findings{trouble: a.says(), wait: wait}, nil
	case r.Status != "success":
		return findings{trouble: s.mask.Text(fmt.Sprintf("%s: %s: %s", a.what, r.ErrorType, r.Error))}, nil
	case r.Data.ResultType != "vector" && r.Data.ResultType != "scalar":
		return s.bad("%s: the query gives a %s; it has to give a vector or a scalar", a.what, r.Data.ResultType)
	}
	series, err := samples(r.Data.ResultType, r.Data.Result)
	if err != nil {
		return findings{trouble: s.mask.Text(fmt.Sprintf("%s: %s", a.what, err))}, nil
	}
	return findings{series: series}, nil
}

func (s *service) bad(format string, args ...any) (findings, *executors.Outcome) {
	out := executors.Refuse("BadQuery", "%s", s.mask.Text(fmt.Sprintf(format, args...)))
	return findings{}, &out
}

// samples are the series of a result, sorted, so that the first is always the same.
func samples(kind string, result json.RawMessage) ([]sample, error) {
	type point [2]any // instant and value; the value is text, since JSON has no NaN
	var vector []struct {
		Metric map[string]string `json:"metric"`
		Value  *point            `json:"value"`
	}
	if kind == "scalar" {
		result = slices.Concat([]byte(`[{"value":`), bytes.TrimSpace(result), []byte(`}]`))
	}
	if err := json.Unmarshal(result, &vector); err != nil {
		return nil, fmt.Errorf("the result is no %s: %w", kind, err)
	}
	out := make([]sample, 0, len(vector))
	for _, v := range vector {
		name := labelsOf(v.Metric)
		if v.Value == nil {
			return nil, fmt.Errorf("%s is a histogram, which has no one value; use histogram_quantile or histogram_count", name)
		}
		text, _ := v.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("the value of %s is %q, which is no number", name, document.Cut(text, 80))
		}
		out = append(out, sample{name: name, labels: v.Metric, value: value})
	}
	slices.SortFunc(out, func(a, b sample) int { return cmp.Compare(a.name, b.name) })
	return out, nil
}

func labelsOf(metric map[string]string) string {
	pairs := make([]string, 0, len(metric))
	for name, value := range metric {
		pairs = append(pairs, fmt.Sprintf("%s=%q", name, value))
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, ", ") + "}"
}
