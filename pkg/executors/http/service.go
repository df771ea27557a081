package http

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	nethttp "net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/mask"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// service is the HTTP API of a step: Prometheus or Alertmanager.
type service struct {
	base   *url.URL
	header nethttp.Header
	mask   mask.Mask
}

// newService finds the service of a step. field is where the plan has its URL.
func newService(ctx context.Context, call executors.Call, field, raw string, headers map[string]plan.HeaderValue) (*service, error) {
	base, err := parseURL(field, raw)
	if err != nil {
		return nil, err
	}
	s := &service{base: base, header: nethttp.Header{"User-Agent": {userAgent}, "Accept": {"application/json"}}}
	secrets, err := fillHeaders(ctx, call, headers, s.header)
	s.mask = mask.New(secrets)
	return s, err
}

// question is one request to a service.
type question struct {
	method string
	path   string // below the service's URL, escaped
	query  url.Values
	kind   string // Content-Type of the body
	body   []byte
}

// answer is the answer of a service.
type answer struct {
	what    string // POST https://example.org/api/v1/query, without the query
	status  int
	body    []byte
	tooLong bool   // the body is more than MaxBody, and cut
	text    string // the beginning of the body, for people, without secrets
	wait    string // Retry-After, as it came
}

// ask makes one request. An error means that there is no answer at all.
func (s *service) ask(ctx context.Context, call executors.Call, q question) (answer, error) {
	u := s.base.JoinPath(q.path)
	if len(q.query) > 0 { // the query of the service's own URL, such as a tenant, is kept
		u.RawQuery = strings.Trim(u.RawQuery+"&"+q.query.Encode(), "&")
	}
	place := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath} // the text of a URL with a host always has a path
	a := answer{what: q.method + " " + place.String()}
	request, err := nethttp.NewRequestWithContext(ctx, q.method, u.String(), bytes.NewReader(q.body))
	if err != nil {
		return a, err
	}
	request.Header = s.header.Clone()
	if q.kind != "" {
		request.Header.Set("Content-Type", q.kind)
	}
	response, err := call.Clients.HTTP.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a.status, a.wait = response.StatusCode, response.Header.Get("Retry-After")
	if a.body, err = io.ReadAll(io.LimitReader(response.Body, MaxBody+1)); err != nil {
		return a, err
	}
	a.tooLong = len(a.body) > MaxBody
	a.text = s.begins(a.body)
	return a, nil
}

// begins masks before it cuts: a cut could leave half of a secret.
func (s *service) begins(body []byte) string {
	head := body[:min(len(body), 4096+s.mask.Longest())]
	text := s.mask.Text(strings.ToValidUTF8(string(head), "\uFFFD"))
	if len(body) > len(head) {
		text = text[:max(0, len(text)-s.mask.Longest())]
	}
	return document.Cut(strings.Join(strings.Fields(text), " "), 300)
}

// why is the text of an error of ask, without secrets.
func (s *service) why(err error) string {
	var slow net.Error
	var large *noRoomError
	if !errors.As(err, &large) && errors.As(err, &slow) && slow.Timeout() {
		return "no answer in time"
	}
	return s.mask.Text(inner(err))
}

// says is the status of an answer and the beginning of its body, for people.
func (a answer) says() string {
	text := fmt.Sprintf("%s answered %d", a.what, a.status)
	if a.status >= 300 && a.status < 400 {
		text += ", a redirect, which is not followed: write the URL that it leads to"
	}
	if a.text != "" {
		text += ": " + a.text
	}
	return text
}

// after delays the next attempt for as long as the answer asks.
func (a answer) after(call executors.Call, out executors.Outcome) executors.Outcome {
	wait, asked := retryAfter(a.wait, call.Now)
	if asked && mayMend(a.status) {
		out.Message = fmt.Sprintf("%s; it asks to wait %s", document.Cut(out.Message, document.MaxMessage-64), wait)
		out.WakeAt = call.Now.Add(wait)
	}
	return out
}

// mayMend says whether the same request may succeed later.
func mayMend(status int) bool {
	return status >= 500 || slices.Contains([]int{nethttp.StatusRequestTimeout, nethttp.StatusTooEarly, nethttp.StatusTooManyRequests}, status)
}

// refusal is the outcome of a request that the outbound rules refuse.
func refusal(what string, err error) (executors.Outcome, bool) {
	var r *Refusal
	if !errors.As(err, &r) {
		return executors.Outcome{}, false
	}
	return executors.Refuse("Outbound", "%s: %s", what, r), true
}

// parseURL reads the URL of a step.
func parseURL(field, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, api.Refuse(executors.ReasonInvalid, "%s: %q is no http or https URL", field, plan.PublicURL(raw))
	}
	if u.User != nil {
		return nil, api.Refuse(executors.ReasonInvalid, "%s: must not hold a password; use headers with a secretKeyRef", field)
	}
	return u, nil
}

// Limits of the headers of a step (guesses: many servers accept 8 KiB in all). Those from Secrets are
// masked, for which each is kept in dozens of forms.
const (
	MaxHeader   = 16 << 10 // bytes of a value
	MaxHeaders  = 64 << 10 // of all values
	leastHeader = 256      // what a value counts at least: each has as many forms, however short it is
)

// fillHeaders sets the headers of a step, those from Secrets included, and returns what must stay
// hidden. Nothing else of the Secrets is kept.
func fillHeaders(ctx context.Context, call executors.Call, headers map[string]plan.HeaderValue, into nethttp.Header) ([]string, error) {
	var secrets []string
	left := MaxHeaders
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if !isToken(name) {
			return nil, api.Refuse(executors.ReasonInvalid, "headers: %q is no name of a header", document.Cut(name, 80))
		}
		text, err := headerText(ctx, call, name, headers[name])
		if err != nil {
			return nil, err
		}
		if left -= max(leastHeader, len(text)); left < 0 {
			return nil, api.Refuse(executors.ReasonTooLarge, "headers.%s: with it the headers have more than %d bytes in all (each value counts as at least %d); let the step send less", name, MaxHeaders, leastHeader)
		}
		if headers[name].SecretKeyRef != nil {
			secrets = append(secrets, text)
		}
		into.Set(name, text)
	}
	executors.ReservationOf(ctx).Release() // of the Secrets: the server may take long
	return secrets, nil
}

// headerText is the value of a header.
func headerText(ctx context.Context, call executors.Call, name string, value plan.HeaderValue) (string, error) {
	text := value.Value
	if ref := value.SecretKeyRef; ref != nil {
		var err error
		if text, err = readSecret(ctx, call, name, *ref); err != nil {
			return "", err
		}
	}
	if len(text) > MaxHeader {
		return "", api.Refuse(executors.ReasonTooLarge, "headers.%s: has %d bytes; a header may have at most %d", name, len(text), MaxHeader)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return "", api.Refuse(executors.ReasonInvalid, "headers.%s: holds a line break or another control character", name)
	}
	return text, nil
}
