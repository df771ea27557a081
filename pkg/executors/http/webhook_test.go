package http

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const token = `s3cr+t/"é&token`

func callTo(p *plan.WebhookProperties) executors.Call {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook"}, Data: map[string][]byte{"token": []byte("Bearer " + token + "\n"), "broken": []byte("a\nb")}}
	return executors.Call{
		Run: "maint-run-orders-abc", Plan: executors.PlanRef{Namespace: "shop", Account: "maint-runner"}, Path: "finally/tell", Attempt: 2,
		Now: time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC), Properties: p,
		Clients: executors.Clients{HTTP: NewClient(Rules{Allow: []string{"127.0.0.1/32"}}), Kube: fake.NewSimpleClientset(secret)},
	}
}

func TestWhatADeliveryCarries(t *testing.T) {
	type request struct{ method, key, attempt, kind, authorization, body string }
	for name, c := range map[string]struct {
		properties plan.WebhookProperties
		want       request
	}{
		"a POST without a body": {plan.WebhookProperties{}, request{method: "POST"}},
		"a JSON body":           {plan.WebhookProperties{Body: map[string]any{"n": int64(1)}}, request{method: "POST", kind: "application/json", body: `{"n":1}`}},
		"a text body":           {plan.WebhookProperties{Method: "PUT", Body: "hello"}, request{method: "PUT", kind: "text/plain; charset=utf-8", body: "hello"}},
		"a kind of its own":     {plan.WebhookProperties{Body: "<a/>", Headers: map[string]plan.HeaderValue{"content-type": {Value: "text/xml"}}}, request{method: "POST", kind: "text/xml", body: "<a/>"}},
		"a header from a Secret, without the line break at its end": {
			plan.WebhookProperties{Headers: map[string]plan.HeaderValue{"Authorization": {SecretKeyRef: &document.SecretKeyRef{Name: "hook", Key: "token"}}}},
			request{method: "POST", authorization: "Bearer " + token},
		},
		"no replacement for the headers of ours": {plan.WebhookProperties{Headers: map[string]plan.HeaderValue{"idempotency-key": {Value: "mine"}}}, request{method: "POST"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got request
			s := newServer(t, func(_ nethttp.ResponseWriter, r *nethttp.Request) {
				body, _ := io.ReadAll(r.Body)
				got = request{r.Method, r.Header.Get("Idempotency-Key"), r.Header.Get("Maint-Attempt"), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), string(body)}
			})
			c.properties.URL = s.URL + "/hook?token=query"
			out := Webhook{}.Pass(t.Context(), callTo(&c.properties))
			c.want.key, c.want.attempt = "maint-run-orders-abc/finally/tell", "2"
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(request{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if out.State != executors.Done || strings.Contains(out.Message, "query") {
				t.Errorf("outcome: %+v", out)
			}
		})
	}
}

func TestHowAnswersAreJudged(t *testing.T) {
	subset := &plan.WebhookExpect{JSON: map[string]any{"state": "ok", "n": int64(3), "deep": map[string]any{"a": []any{int64(1)}}}}
	for name, c := range map[string]struct {
		status int
		body   string
		after  string // Retry-After
		expect *plan.WebhookExpect
		want   executors.State
		final  bool
		wait   time.Duration
	}{
		"200":                                   {status: 200, want: executors.Done},
		"204 without a body":                    {status: 204, want: executors.Done},
		"a redirect of a POST":                  {status: 302, want: executors.Failed, final: true},
		"400 is a no":                           {status: 400, want: executors.Failed, final: true},
		"401":                                   {status: 401, want: executors.Failed, final: true},
		"404":                                   {status: 404, want: executors.Failed, final: true},
		"408 may be another later":              {status: 408, want: executors.Failed},
		"425":                                   {status: 425, want: executors.Failed},
		"429":                                   {status: 429, want: executors.Failed},
		"500":                                   {status: 500, want: executors.Failed},
		"503 with a wish":                       {status: 503, after: "30", want: executors.Failed, wait: 30 * time.Second},
		"a wish as a date":                      {status: 503, after: "Sun, 01 Mar 2026 02:01:00 GMT", want: executors.Failed, wait: time.Minute},
		"a wish that is too great":              {status: 429, after: "86400", want: executors.Failed, wait: 5 * time.Minute},
		"a wish that is none":                   {status: 429, after: "soon", want: executors.Failed},
		"an expected status that is no success": {status: 409, expect: &plan.WebhookExpect{Status: []int{200, 409}}, want: executors.Done},
		"a success that was not expected":       {status: 202, expect: &plan.WebhookExpect{Status: []int{200}}, want: executors.Failed, final: true},
		"JSON with more than was expected":      {status: 200, body: `{"state":"ok","n":3,"deep":{"a":[1],"b":2},"more":1}`, expect: subset, want: executors.Done},
		"JSON with another value":               {status: 200, body: `{"state":"ok","n":4,"deep":{"a":[1]}}`, expect: subset, want: executors.Failed, final: true},
		"JSON with a longer list":               {status: 200, body: `{"state":"ok","n":3,"deep":{"a":[1,2]}}`, expect: subset, want: executors.Failed, final: true},
		"no JSON where some was expected":       {status: 200, body: `ok`, expect: subset, want: executors.Failed, final: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
				w.Header().Set("Retry-After", c.after)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				if c.body != "" {
					_, _ = io.WriteString(w, c.body)
				}
			})
			call := callTo(&plan.WebhookProperties{URL: s.URL, Expect: c.expect})
			out := Webhook{}.Pass(t.Context(), call)
			if out.State != c.want || out.Permanent != c.final {
				t.Errorf("state %v permanent %t, want %v %t (%s)", out.State, out.Permanent, c.want, c.final, out.Message)
			}
			if out.Outputs["status"] != int64(c.status) {
				t.Errorf("outputs: %v", out.Outputs)
			}
			if got := out.WakeAt; c.wait > 0 && !got.Equal(call.Now.Add(c.wait)) || c.wait == 0 && !got.IsZero() {
				t.Errorf("next attempt not before %s, want %s from now", got, c.wait)
			}
			if s.calls.Load() != 1 {
				t.Errorf("delivered %d times", s.calls.Load())
			}
		})
	}
}

func TestSecretsAreShownNowhere(t *testing.T) {
	echo := map[string]func(string) string{
		"as text": func(s string) string { return "you sent " + s },
		"as JSON": func(s string) string { b, _ := json.Marshal(map[string]any{"sent": s, s: 1}); return string(b) },
		"as JSON in JSON": func(s string) string {
			b, _ := json.Marshal(s)
			b, _ = json.Marshal(map[string]any{"raw": string(b)})
			return string(b)
		},
		"without the scheme": func(s string) string { return strings.TrimPrefix(s, "Bearer ") },
		"in base64": func(s string) string {
			return base64.StdEncoding.EncodeToString([]byte(strings.TrimPrefix(s, "Bearer ")))
		},
		"at the edge of a cut":  func(s string) string { return strings.Repeat("x", run.MaxStepOutput-len(s)/2) + s },
		"at the edge of a read": func(s string) string { return strings.Repeat("x", MaxBody-len(s)/2) + s },
	}
	for name, answer := range echo {
		for _, status := range []int{200, 400, 500} {
			t.Run(fmt.Sprintf("%s with status %d", name, status), func(t *testing.T) {
				s := newServer(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
					w.WriteHeader(status)
					_, _ = io.WriteString(w, answer(r.Header.Get("Authorization")))
				})
				headers := map[string]plan.HeaderValue{"Authorization": {SecretKeyRef: &document.SecretKeyRef{Name: "hook", Key: "token"}}}
				out := Webhook{}.Pass(t.Context(), callTo(&plan.WebhookProperties{URL: s.URL, Headers: headers}))
				all := fmt.Sprintf("%+v", out)
				for _, part := range []string{token, token[:6], base64.StdEncoding.EncodeToString([]byte(token))[:12]} {
					if strings.Contains(all, part) {
						t.Errorf("%q is shown in %s", part, document.Cut(all, 2000))
					}
				}
				if b, err := json.Marshal(out.Outputs); err != nil || len(b) > run.MaxStepOutput {
					t.Errorf("outputs of %d bytes (%v)", len(b), err)
				}
			})
		}
	}
}

// What a step may keep is counted as the journal has it, in JSON: of an answer that is longer, its
// beginning is kept, and its status with it.
func TestALongAnswerIsKeptInPart(t *testing.T) {
	jsonOf := func(bytes int) string { return `{"a":"` + strings.Repeat("x", bytes-len(`{"a":""}`)) + `"}` }
	for name, c := range map[string]struct {
		answer string
		whole  bool
	}{
		"a text that fits":                       {strings.Repeat("x", run.MaxStepOutput-60), true},
		"one as long as a step may keep":         {strings.Repeat("x", run.MaxStepOutput), false},
		"a text without an end":                  {strings.Repeat("x", 2*MaxBody), false},
		"quotes":                                 {strings.Repeat(`"`, run.MaxStepOutput-60), false},
		"markup":                                 {strings.Repeat("<&>", run.MaxStepOutput/3-20), false},
		"control characters":                     {strings.Repeat("\x01", run.MaxStepOutput-60), false},
		"line breaks":                            {strings.Repeat("\n", run.MaxStepOutput-60), false},
		"separators of lines":                    {strings.Repeat("\u2028", run.MaxStepOutput/3-20), false},
		"what is no text":                        {strings.Repeat("\xff\x00", run.MaxStepOutput/2), false},
		"letters of four bytes":                  {strings.Repeat("\U0001F680", run.MaxStepOutput/4), false},
		"JSON that fits":                         {jsonOf(run.MaxStepOutput - 60), true},
		"JSON that does not, beside its status":  {jsonOf(run.MaxStepOutput - 10), false},
		"JSON that does not":                     {jsonOf(run.MaxStepOutput + 1), false},
		"JSON that is longer than it was, by &s": {`{"a":"` + strings.Repeat("&", run.MaxStepOutput/2) + `"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, c.answer) })
			out := Webhook{}.Pass(t.Context(), callTo(&plan.WebhookProperties{URL: s.URL}))
			j := run.Journal{Steps: []run.Record{{Path: "call", Outputs: out.Outputs}}}
			run.CapOutputs(&j)
			kept := j.Steps[0].Outputs
			body, _ := kept["body"].(string)
			if kept["status"] != int64(200) || (kept["truncated"] != true) != c.whole || kept["json"] == nil && body == "" {
				t.Fatalf("it keeps %s", document.Cut(fmt.Sprint(kept), 200))
			}
			if b, err := json.Marshal(kept); err != nil || len(b) < run.MaxStepOutput-100 {
				t.Errorf("it keeps %d bytes (%v), and may keep %d", len(b), err, run.MaxStepOutput)
			}
		})
	}
}

func TestDeliveriesThatGetNoAnswer(t *testing.T) {
	hang := newServer(t, func(_ nethttp.ResponseWriter, r *nethttp.Request) { <-r.Context().Done() })
	closed := newServer(t, nil)
	closed.Close()
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("the agent stops"))
	short := &document.Duration{Duration: 50 * time.Millisecond}
	secretHeader := func(name, key string) map[string]plan.HeaderValue {
		return map[string]plan.HeaderValue{"Authorization": {SecretKeyRef: &document.SecretKeyRef{Name: name, Key: key}}}
	}
	for name, c := range map[string]struct {
		ctx        context.Context
		properties plan.WebhookProperties
		dryRun     bool
		want       executors.State
		final      bool
		reason     string
		message    string
	}{
		"no answer in time":              {properties: plan.WebhookProperties{URL: hang.URL, Timeout: short}, want: executors.Failed, reason: "Timeout", message: "within 50ms"},
		"nobody listens":                 {properties: plan.WebhookProperties{URL: closed.URL + "/a?token=query"}, want: executors.Failed, reason: "Network", message: "refused"},
		"the agent stops":                {ctx: stopped, properties: plan.WebhookProperties{URL: hang.URL}, want: executors.NotYet, reason: "Interrupted", message: "interrupted"},
		"an address that is not called":  {properties: plan.WebhookProperties{URL: "http://169.254.169.254/latest?token=query"}, want: executors.Failed, final: true, reason: "Outbound", message: "metadata"},
		"no Secret":                      {properties: plan.WebhookProperties{URL: hang.URL, Headers: secretHeader("none", "token")}, want: executors.Failed, final: true, reason: "NotFound", message: `get secrets "none" in namespace shop`},
		"no such key":                    {properties: plan.WebhookProperties{URL: hang.URL, Headers: secretHeader("hook", "tokem")}, want: executors.Failed, final: true, reason: "NotFound", message: `no key "tokem"; it has broken, token`},
		"a Secret that breaks the line":  {properties: plan.WebhookProperties{URL: hang.URL, Headers: secretHeader("hook", "broken")}, want: executors.Failed, final: true, reason: "Invalid", message: "headers.Authorization"},
		"a header that has no such name": {properties: plan.WebhookProperties{URL: hang.URL, Headers: map[string]plan.HeaderValue{"a b": {Value: "x"}}}, want: executors.Failed, final: true, reason: "Invalid", message: `"a b"`},
		"a template that made no URL":    {properties: plan.WebhookProperties{URL: "orders"}, want: executors.Failed, final: true, reason: "Invalid", message: `"orders" is no http`},
		"a dry run":                      {properties: plan.WebhookProperties{URL: hang.URL}, dryRun: true, want: executors.Done, message: "nothing was sent"},
	} {
		t.Run(name, func(t *testing.T) {
			before := hang.calls.Load()
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			call := callTo(&c.properties)
			call.DryRun = c.dryRun
			out := Webhook{}.Pass(ctx, call)
			if out.State != c.want || out.Permanent != c.final || out.Reason != c.reason || !strings.Contains(out.Message, c.message) || strings.Contains(out.Message, "query") {
				t.Errorf("%+v, want %q", out, c.message)
			}
			if c.reason != "Timeout" && c.reason != "Interrupted" && hang.calls.Load() != before {
				t.Error("something was sent")
			}
		})
	}
}

// A Secret may have 1 MiB, and the forms in which it is masked are dozens of times as long.
func TestTheHeadersOfAStepAreBounded(t *testing.T) {
	s := newServer(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	})
	large := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "large"}, Data: map[string][]byte{
		"most": []byte(strings.Repeat("<", MaxHeader) + "\n"), "more": []byte(strings.Repeat("<", MaxHeader+1)), "long": []byte("x" + strings.Repeat("\n", 1<<20-1)),
	}}
	from := func(key string, times int) map[string]plan.HeaderValue {
		all := map[string]plan.HeaderValue{}
		for i := range times {
			all[fmt.Sprintf("X-%03d", i)] = plan.HeaderValue{SecretKeyRef: &document.SecretKeyRef{Name: "large", Key: key}}
		}
		return all
	}
	for name, c := range map[string]struct {
		headers map[string]plan.HeaderValue
		message string // "": it is sent
	}{
		"as long as one may be":              {headers: from("most", 4)},
		"line breaks at the end":             {headers: from("long", 256)},
		"longer":                             {from("more", 1), `headers.X-000: the key "more" of secret shop/large has 16385 bytes; a header may have at most 16384`},
		"longer, in the plan":                {map[string]plan.HeaderValue{"A": {Value: strings.Repeat("x", MaxHeader+1)}}, "headers.A: has 16385 bytes; a header may have at most 16384"},
		"long ones, too many of them":        {from("most", 5), "headers.X-004: with it the headers have more than 65536 bytes in all (each value counts as at least 256)"},
		"short ones, more than anyone needs": {from("long", 257), "headers.X-256: with it"},
	} {
		for kind, pass := range map[string]func(executors.Call) executors.Outcome{
			"webhook": func(call executors.Call) executors.Outcome {
				call.Properties = &plan.WebhookProperties{URL: s.URL, Headers: c.headers}
				return Webhook{}.Pass(t.Context(), call)
			},
			"prometheus": func(call executors.Call) executors.Outcome {
				call.Properties = &plan.PrometheusProperties{URL: s.URL, Query: "up", Condition: "value > 0", Headers: c.headers}
				return Prometheus{}.Pass(t.Context(), call)
			},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				before, call := s.calls.Load(), callTo(nil)
				call.Clients.Kube = fake.NewSimpleClientset(large)
				out := pass(call)
				if refused := out.Permanent && out.Reason == "TooLarge"; refused != (c.message != "") || !strings.Contains(out.Message, c.message) || (s.calls.Load() == before) != refused {
					t.Errorf("%+v, want %q", out, c.message)
				}
			})
		}
	}
}

// reserved is the reservation of a pass.
type reserved struct{ held bool }

func (r *reserved) Namespace() string { return "shop" }
func (r *reserved) Release()          { r.held = false }
func (r *reserved) Holds() bool       { return r.held }

// A Secret may be a large response of the API server, and a server may take minutes to answer.
func TestNothingIsReservedForASecretWhileAServerIsWaitedFor(t *testing.T) {
	headers := map[string]plan.HeaderValue{"Authorization": {SecretKeyRef: &document.SecretKeyRef{Name: "hook", Key: "token"}}}
	for name, pass := range map[string]func(context.Context, string, executors.Call){
		"webhook": func(ctx context.Context, url string, call executors.Call) {
			call.Properties = &plan.WebhookProperties{URL: url, Headers: headers}
			Webhook{}.Pass(ctx, call)
		},
		"prometheus": func(ctx context.Context, url string, call executors.Call) {
			call.Properties = &plan.PrometheusProperties{URL: url, Query: "up", Condition: "value > 0", Headers: headers}
			Prometheus{}.Pass(ctx, call)
		},
		"silence": func(ctx context.Context, url string, call executors.Call) {
			call.Properties = &plan.SilenceProperties{Alertmanager: url, Matchers: []plan.SilenceMatcher{{Name: "a", Value: "b"}}, Headers: headers}
			Silence{}.Pass(ctx, call)
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := &reserved{held: true}
			s := newServer(t, func(nethttp.ResponseWriter, *nethttp.Request) {
				if of.Holds() {
					t.Error("the memory for the Secret is reserved while the server is waited for")
				}
			})
			pass(executors.WithReservation(t.Context(), of), s.URL, callTo(nil))
			if s.calls.Load() == 0 {
				t.Error("nothing was sent")
			}
		})
	}
}
