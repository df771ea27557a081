package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/mask"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Headers of every delivery.
const (
	headerKey     = "Idempotency-Key"
	headerAttempt = "Maint-Attempt"
)

// userAgent is who we say we are.
const userAgent = "kubectl-maint"

// DefaultTimeout is the limit for one delivery, from the first byte sent to the last received.
const DefaultTimeout = 30 * time.Second

// MaxBody is how much of an answer is read; run.MaxStepOutput of it is kept.
const MaxBody = 1 << 20

// maxRetryAfter bounds what a server may ask for.
const maxRetryAfter = 5 * time.Minute

// Webhook executes the step type webhook. It needs get on the Secrets of its headers, as the plan's
// account. A delivery whose outcome was lost is sent again with the same Idempotency-Key, by which
// the receiver can tell.
type Webhook struct{}

// Pass delivers once and judges the answer.
func (Webhook) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.WebhookProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	d, err := newDelivery(p)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if call.DryRun {
		return executors.Outcome{State: executors.Done, Message: "dry run: would send " + d.what + "; nothing was sent"}
	}
	secrets, err := d.fill(ctx, call, p)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	d.mask = mask.New(secrets)
	return d.send(ctx, call, p)
}

// delivery is one request on its way.
type delivery struct {
	what   string // POST https://example.org/hook, without the query
	method string
	url    *url.URL
	header nethttp.Header
	body   []byte
	mask   mask.Mask
}

func newDelivery(p *plan.WebhookProperties) (*delivery, error) {
	u, err := parseURL("url", p.URL)
	if err != nil {
		return nil, err
	}
	d := &delivery{method: p.Method, url: u, header: nethttp.Header{}}
	if d.method == "" {
		d.method = nethttp.MethodPost
	}
	// The query may hold a token from a template.
	d.what = fmt.Sprintf("%s %s://%s%s", d.method, u.Scheme, u.Host, u.EscapedPath())
	d.header.Set("User-Agent", userAgent)
	switch body := p.Body.(type) {
	case nil:
	case string:
		d.body = []byte(body)
		d.header.Set("Content-Type", "text/plain; charset=utf-8")
	default:
		if d.body, err = json.Marshal(body); err != nil {
			return nil, api.Refuse(executors.ReasonInvalid, "body: %s", err)
		}
		d.header.Set("Content-Type", "application/json")
	}
	return d, nil
}

// fill sets the headers, those from Secrets included, and returns what must stay hidden. Our own
// two headers come last, so that nothing replaces them.
func (d *delivery) fill(ctx context.Context, call executors.Call, p *plan.WebhookProperties) ([]string, error) {
	secrets, err := fillHeaders(ctx, call, p.Headers, d.header)
	if err != nil {
		return nil, err
	}
	d.header.Set(headerKey, call.IdempotencyKey())
	d.header.Set(headerAttempt, strconv.Itoa(call.Attempt))
	return secrets, nil
}

// isToken says whether RFC 9110 lets s name a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// readSecret reads one key as the plan's account. A line break at the end, which editors and echo
// leave, is not part of a header.
func readSecret(ctx context.Context, call executors.Call, header string, ref document.SecretKeyRef) (string, error) {
	o, err := api.ReadSecret(ctx, call, ref.Name)
	if err != nil {
		return "", err
	}
	value, ok := o.Data[ref.Key]
	if !ok {
		return "", api.Refuse(executors.ReasonNotFound, "headers.%s: secret %s/%s has no key %q; it has %s", header, call.Plan.Namespace, ref.Name, ref.Key, keysOf(o))
	}
	value = bytes.TrimRight(value, "\r\n") // before it is copied: what is kept is then no longer than what it weighs
	if len(value) > MaxHeader {
		return "", api.Refuse(executors.ReasonTooLarge, "headers.%s: the key %q of secret %s/%s has %d bytes; a header may have at most %d", header, ref.Key, call.Plan.Namespace, ref.Name, len(value), MaxHeader)
	}
	return string(value), nil
}

func keysOf(s *corev1.Secret) string {
	keys := make([]string, 0, len(s.Data))
	for key := range s.Data {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if len(keys) == 0 {
		return "none"
	}
	return strings.Join(keys, ", ")
}

func (d *delivery) send(ctx context.Context, call executors.Call, p *plan.WebhookProperties) executors.Outcome {
	limit := p.Timeout.Or(DefaultTimeout)
	one, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := nethttp.NewRequestWithContext(one, d.method, d.url.String(), bytes.NewReader(d.body))
	if err != nil {
		return executors.Refuse(executors.ReasonInvalid, "%s: %s", d.what, d.mask.Text(inner(err)))
	}
	request.Header = d.header
	response, err := call.Clients.HTTP.Do(request)
	if err != nil {
		return d.failed(ctx, call, limit, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxBody+1))
	if err != nil {
		return d.failed(ctx, call, limit, err)
	}
	return d.judge(call, p, response, body)
}

// failed is the outcome of a delivery without an answer. When the agent itself is stopping, that is
// no failure; the next agent delivers again under the same key.
func (d *delivery) failed(ctx context.Context, call executors.Call, limit time.Duration, err error) executors.Outcome {
	var refusal *Refusal
	var slow net.Error
	var large *noRoomError
	switch {
	case ctx.Err() != nil:
		return api.Again(call, "Interrupted", "%s: interrupted before its answer", d.what)
	case errors.As(err, &large):
		return executors.Fail("Timeout", "%s: %s", d.what, large)
	case errors.As(err, &refusal):
		return executors.Refuse("Outbound", "%s: %s", d.what, d.mask.Text(refusal.Error()))
	case errors.Is(err, errTooManyRedirects):
		return executors.Refuse("Redirects", "%s: %s", d.what, err)
	case errors.As(err, &slow) && slow.Timeout():
		return executors.Fail("Timeout", "%s: no answer within %s", d.what, limit)
	}
	return executors.Fail("Network", "%s: %s", d.what, d.mask.Text(inner(err)))
}

// inner is an error without the URL that net/http puts before it: its query may be secret.
func inner(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}

func (d *delivery) judge(call executors.Call, p *plan.WebhookProperties, r *nethttp.Response, body []byte) executors.Outcome {
	outputs, answer := d.keep(r.StatusCode, body)
	out := executors.Outcome{State: executors.Done, Message: fmt.Sprintf("%s answered %d", d.what, r.StatusCode)}
	switch expect := p.Expect; {
	case !expected(expect, r.StatusCode):
		out = d.unexpected(call, r, outputs)
	case expect != nil && expect.JSON != nil && answer == nil && values(body) > MaxValues:
		out = executors.Refuse(executors.ReasonTooLarge, "%s answered %d with more than %d values, which are not looked at: let it answer with less", d.what, r.StatusCode, MaxValues)
	case expect != nil && expect.JSON != nil && !contains(answer, normal(expect.JSON)):
		out = executors.Refuse("Unexpected", "%s answered %d, and its body does not contain what expect.json says: %s", d.what, r.StatusCode, excerpt(outputs))
	}
	out.Outputs = outputs
	return out
}

func expected(expect *plan.WebhookExpect, status int) bool {
	if expect != nil && len(expect.Status) > 0 {
		return slices.Contains(expect.Status, status)
	}
	return status >= 200 && status < 300
}

// unexpected is the outcome of an unexpected status: some may differ at the next attempt, others,
// such as 400, are final.
func (d *delivery) unexpected(call executors.Call, r *nethttp.Response, outputs map[string]any) executors.Outcome {
	message := fmt.Sprintf("%s answered %d", d.what, r.StatusCode)
	if r.StatusCode >= 300 && r.StatusCode < 400 && d.method != nethttp.MethodGet {
		message += ", a redirect, which only GET follows"
	}
	if text := excerpt(outputs); text != "" {
		message += ": " + text
	}
	if !mayMend(r.StatusCode) {
		return executors.Refuse("Status", "%s", message)
	}
	wait, asked := retryAfter(r.Header.Get("Retry-After"), call.Now)
	if !asked {
		return executors.Fail("Status", "%s", message)
	}
	out := executors.Fail("Status", "%s; it asks to wait %s", document.Cut(message, document.MaxMessage-64), wait)
	out.WakeAt = call.Now.Add(wait)
	return out
}

// retryAfter reads RFC 9110's Retry-After, in seconds or as a date, and limits it.
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter), true
	}
	if at, err := nethttp.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter), true
	}
	return 0, false
}

// keep is the part of an answer that may be journaled, and its JSON as received. Secrets are masked
// before anything is cut: a cut could leave half of one.
func (d *delivery) keep(status int, body []byte) (outputs map[string]any, answer any) {
	outputs = map[string]any{"status": int64(status)}
	if len(body) > MaxBody {
		body = body[:MaxBody-min(d.mask.Longest(), MaxBody)]
		outputs["truncated"] = true
	} else if parsed, ok := parse(body); ok {
		answer = normal(parsed)
		outputs["json"] = expr.Whole(d.mask.Value(parsed))
		if b, err := json.Marshal(outputs); err == nil && len(b) <= run.MaxStepOutput {
			return outputs, answer
		}
		delete(outputs, "json")
	}
	text := d.mask.Text(strings.ToValidUTF8(string(body), "\uFFFD"))
	room := run.MaxStepOutput
	if empty, err := json.Marshal(map[string]any{"body": "", "status": outputs["status"], "truncated": true}); err == nil {
		room -= len(empty)
	}
	kept := document.Cut(text, fits(text, room))
	if kept != text {
		outputs["truncated"] = true
	}
	outputs["body"] = kept
	return outputs, answer
}

// fits is how many bytes of a text fit into so many of JSON, in which some letters are longer.
func fits(text string, room int) int {
	for i, r := range text {
		if room -= quoted(r); room < 0 {
			return i
		}
	}
	return len(text)
}

// quoted is how long encoding/json makes a letter.
func quoted(r rune) int {
	switch {
	case strings.ContainsRune("\"\\\b\f\n\r\t", r):
		return 2
	case r < ' ', strings.ContainsRune("<>&\u2028\u2029", r):
		return 6
	}
	return utf8.RuneLen(r)
}

// parse reads a body that is one JSON object or list within MaxValues.
func parse(body []byte) (any, bool) {
	if values(body) > MaxValues {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return nil, false
	}
	switch v.(type) {
	case map[string]any, []any:
		return v, true
	}
	return nil, false
}

func excerpt(outputs map[string]any) string {
	if text, ok := outputs["body"].(string); ok {
		return document.Cut(strings.Join(strings.Fields(text), " "), 300)
	}
	b, err := json.Marshal(outputs["json"])
	if err != nil {
		return ""
	}
	return document.Cut(string(b), 300)
}

// contains says whether an answer has everything that is wanted: objects may have more fields,
// everything else has to be equal.
func contains(answer, want any) bool {
	wanted, ok := want.(map[string]any)
	if !ok {
		a, errA := json.Marshal(answer)
		w, errW := json.Marshal(want)
		return errA == nil && errW == nil && bytes.Equal(a, w)
	}
	has, ok := answer.(map[string]any)
	if !ok {
		return false
	}
	for key, value := range wanted {
		if found, there := has[key]; !there || !contains(found, value) {
			return false
		}
	}
	return true
}

// normal converts a value of a document to what decoding JSON would give.
func normal(v any) any {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return nil
	}
	return expr.Whole(out)
}
