package http

import (
	"encoding/json"
	"fmt"
	"io"
	nethttp "net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// call is one by the plan's account, to loopback.
func callWith(properties any) executors.Call {
	call := callTo(nil)
	call.Properties, call.Plan.Name = properties, "orders"
	return call
}

func span(d time.Duration) *document.Duration { return &document.Duration{Duration: d} }

// vector is an answer with series, each {labels}=value.
func vector(series ...string) string {
	var out []string
	for _, s := range series {
		labels, value, _ := strings.Cut(s, "=>")
		out = append(out, fmt.Sprintf(`{"metric":{%s},"value":[1772330400.123,%q]}`, labels, value))
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(out, ",") + `]}}`
}

func TestWhenAConditionIsMet(t *testing.T) {
	scalar := `{"status":"success","data":{"resultType":"scalar","result":[1772330400,"7.5"]}}`
	two := vector(`"job":"b"=>2`, `"job":"a"=>1`)
	for name, c := range map[string]struct {
		condition, answer string
		met               bool
		says              string
		outputs           map[string]any
	}{
		"a comparison speaks of the value":       {"< 3", vector(`"job":"a"=>2.5`), true, "the value is 2.5", map[string]any{"value": 2.5, "series": int64(1)}},
		"a whole number is one":                  {"== 2", vector(`=>2`), true, "the value is 2", map[string]any{"value": int64(2), "series": int64(1)}},
		"a scalar":                               {"value > 7.0", scalar, true, "7.5", map[string]any{"value": 7.5, "series": int64(1)}},
		"the first series by its labels":         {"== 1", two, true, "the value is 1, the first of 2 series", map[string]any{"value": int64(1), "series": int64(2)}},
		"all series":                             {"series.all(s, s.value < 3.0 && s.labels.job in ['a', 'b'])", two, true, "", map[string]any{"value": int64(1), "series": int64(2)}},
		"no series where none is wanted":         {"size(series) == 0", vector(), true, "no series", map[string]any{"series": int64(0)}},
		"infinity is more than any number":       {"> 1000000", vector(`=>+Inf`), true, "+Inf", map[string]any{"value": "+Inf", "series": int64(1)}},
		"no series where a value is wanted":      {"< 3", vector(), false, "no series", nil},
		"no series where series are wanted":      {"series.exists(s, s.value < 3.0)", vector(), false, "no series", nil},
		"another value":                          {"< 3", vector(`=>3`), false, "the condition is not met", nil},
		"NaN is less than nothing":               {"< 3", vector(`=>NaN`), false, "the value of {} is NaN", nil},
		"NaN is not another number":              {"!= 0", vector(`=>NaN`), false, "is NaN", nil},
		"NaN among the series":                   {"!series.exists(s, s.value > 3.0)", vector(`"job":"a"=>1`, `"job":"b"=>NaN`), false, `{job="b"} is NaN`, nil},
		"NaN in a series that nobody asks about": {"== 1", vector(`"job":"a"=>1`, `"job":"b"=>NaN`), true, "", map[string]any{"value": int64(1), "series": int64(2)}},
		"a condition that fails on this value":   {"value + 'a' == 'b'", vector(`=>1`), false, "no such overload", nil},
		"a label that is not there":              {"series[0].labels.pod == 'a'", vector(`=>1`), false, "no such key", nil},
		"a histogram has no value":               {"< 3", `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"job":"a"},"histogram":[1,{}]}]}}`, false, `{job="a"} is a histogram`, nil},
		"a value that is no number":              {"< 3", vector(`=>many`), false, `"many", which is no number`, nil},
		"a result of another shape":              {"< 3", `{"status":"success","data":{"resultType":"vector","result":{"a":1}}}`, false, "is no vector", nil},
		"JSON of somebody else":                  {"< 3", `{"ok":true}`, false, `answered 200: {"ok":true}`, nil},
		"no JSON":                                {"< 3", `<html>please sign in</html>`, false, "please sign in", nil},
		"an error that wears 200":                {"< 3", `{"status":"error","errorType":"timeout","error":"query timed out"}`, false, "query timed out", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, c.answer) })
			out := Prometheus{}.Pass(t.Context(), callWith(&plan.PrometheusProperties{URL: s.URL, Query: "up", Condition: c.condition}))
			if (out.State == executors.Done) != c.met || out.State == executors.Failed || !strings.Contains(out.Message, c.says) {
				t.Errorf("%+v, want met %t and %q", out, c.met, c.says)
			}
			if diff := cmp.Diff(c.outputs, out.Outputs); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAQueryCarries(t *testing.T) {
	s := newServer(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		got := strings.Join([]string{r.Method, r.URL.String(), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.PostFormValue("query")}, " ")
		if want := "POST /tenants/a/api/v1/query?dedup=true application/x-www-form-urlencoded Bearer " + token + " sum(up{a=\"é&b\"})"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		_, _ = io.WriteString(w, vector("=>1"))
	})
	headers := map[string]plan.HeaderValue{"Authorization": {SecretKeyRef: &document.SecretKeyRef{Name: "hook", Key: "token"}}}
	out := Prometheus{}.Pass(t.Context(), callWith(&plan.PrometheusProperties{URL: s.URL + "/tenants/a/?dedup=true", Query: `sum(up{a="é&b"})`, Condition: "== 1", Headers: headers}))
	if out.State != executors.Done {
		t.Errorf("%+v", out)
	}
}

// hangs takes a request and never answers. What was sent has to be read, or the
// server does not see the other side leave.
func hangs(_ nethttp.ResponseWriter, r *nethttp.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestQueriesThatGetNoAnswer(t *testing.T) {
	hang := newServer(t, hangs)
	closed := newServer(t, nil)
	closed.Close()
	answers := func(status int, body string) string {
		return newServer(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			sent, _ := json.Marshal(r.Header.Get("Authorization"))
			_, _ = io.WriteString(w, strings.ReplaceAll(body, "ECHO", strings.Trim(string(sent), `"`)))
		}).URL
	}
	refusal := `{"status":"error","errorType":"bad_data","error":"1:5: parse error, ECHO"}`
	for name, c := range map[string]struct {
		url       string
		condition string
		want      executors.State
		final     bool
		reason    string
		says      string
	}{
		"no answer in time":              {url: hang.URL, says: "no answer in time"},
		"nobody listens":                 {url: closed.URL, says: "connection refused"},
		"503":                            {url: answers(503, "down ECHO"), says: "/api/v1/query answered 503: down ***"},
		"503 below a path":               {url: answers(503, "down") + "/tenants/shop/", says: "/tenants/shop/api/v1/query answered 503: down"},
		"503 by Prometheus":              {url: answers(503, `{"status":"error","errorType":"timeout","error":"slow"}`), says: "slow"},
		"429":                            {url: answers(429, refusal), says: "429"},
		"401 by a proxy":                 {url: answers(401, "who are you?"), says: "who are you?"},
		"a redirect":                     {url: answers(302, ""), says: "a redirect, which is not followed"},
		"a bad query":                    {url: answers(400, refusal), want: executors.Failed, final: true, reason: "BadQuery", says: "bad_data: 1:5: parse error, ***"},
		"a query that cannot be run":     {url: answers(422, `{"status":"error","errorType":"execution","error":"many-to-many"}`), want: executors.Failed, final: true, reason: "BadQuery", says: "many-to-many"},
		"a matrix":                       {url: answers(200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`), want: executors.Failed, final: true, reason: "BadQuery", says: "gives a matrix"},
		"an answer without end":          {url: answers(200, strings.Repeat("x", MaxBody+1)), want: executors.Failed, reason: "TooLarge", says: "narrow the query"},
		"an answer of too many values":   {url: answers(200, `{"status":"success","data":{"resultType":"vector","result":[`+strings.Repeat("0,", MaxValues)+`0]}}`), want: executors.Failed, reason: "TooLarge", says: fmt.Sprintf("more than %d values; narrow the query", MaxValues)},
		"an address that is not called":  {url: "http://169.254.169.254", want: executors.Failed, final: true, reason: "Outbound", says: "metadata"},
		"a template that made no URL":    {url: "orders", want: executors.Failed, final: true, reason: "Invalid", says: `url: "orders" is no http`},
		"a template that made no CEL":    {url: hang.URL, condition: ">= three", want: executors.Failed, final: true, reason: "BadCondition", says: "three"},
		"a condition that says no truth": {url: hang.URL, condition: "1 + 1", want: executors.Failed, final: true, reason: "BadCondition", says: "must give bool"},
	} {
		t.Run(name, func(t *testing.T) {
			condition := c.condition
			if condition == "" {
				condition = "< 3"
			}
			headers := map[string]plan.HeaderValue{"Authorization": {SecretKeyRef: &document.SecretKeyRef{Name: "hook", Key: "token"}}}
			call := callWith(&plan.PrometheusProperties{URL: c.url, Query: "up", Condition: condition, Headers: headers})
			call.Clients.HTTP.Timeout = 200 * time.Millisecond
			out := Prometheus{}.Pass(t.Context(), call)
			if out.State != c.want || out.Permanent != c.final || out.Reason != c.reason || !strings.Contains(out.Message, c.says) || strings.Contains(fmt.Sprintf("%+v", out), token) {
				t.Errorf("%+v, want %q", out, c.says)
			}
			if c.want == executors.NotYet && !out.WakeAt.Equal(call.Now.Add(15*time.Second)) {
				t.Errorf("looks again at %s", out.WakeAt)
			}
		})
	}
}

// look is one pass at an instant: what the world says then, and what follows.
type look struct {
	at     time.Duration
	answer string
	want   executors.State
	wake   time.Duration
	writes bool
}

func TestHowLongAConditionHolds(t *testing.T) {
	const good, bad = "1", "9"
	for name, c := range map[string]struct {
		properties plan.PrometheusProperties
		looks      []look
	}{
		"it has to hold all the time": {plan.PrometheusProperties{For: span(time.Minute)}, []look{
			{0, good, executors.NotYet, 15 * time.Second, true},
			{15 * time.Second, good, executors.NotYet, 30 * time.Second, false},
			{30 * time.Second, bad, executors.NotYet, 45 * time.Second, true},
			{45 * time.Second, good, executors.NotYet, time.Minute, true},
			{100 * time.Second, good, executors.NotYet, 105 * time.Second, false},
			{105 * time.Second, good, executors.Done, 0, false},
		}},
		"a server that is away breaks it": {plan.PrometheusProperties{For: span(time.Minute)}, []look{
			{0, good, executors.NotYet, 15 * time.Second, true}, {15 * time.Second, "", executors.NotYet, 30 * time.Second, true}, {65 * time.Second, good, executors.NotYet, 80 * time.Second, true},
		}},
		"it fails when it was not met for long": {plan.PrometheusProperties{FailAfter: span(time.Minute)}, []look{
			{0, bad, executors.NotYet, 15 * time.Second, true}, {50 * time.Second, "", executors.NotYet, time.Minute, false}, {time.Minute, bad, executors.Failed, 0, false},
		}},
		"what is met begins the patience anew": {plan.PrometheusProperties{For: span(time.Hour), FailAfter: span(time.Minute)}, []look{
			{0, bad, executors.NotYet, 15 * time.Second, true},
			{50 * time.Second, good, executors.NotYet, 65 * time.Second, true},
			{65 * time.Second, bad, executors.NotYet, 80 * time.Second, true},
			{70 * time.Second, bad, executors.NotYet, 85 * time.Second, false},
			{125 * time.Second, bad, executors.Failed, 0, false},
		}},
		"without times nothing is written": {plan.PrometheusProperties{Interval: span(time.Second)}, []look{
			{0, bad, executors.NotYet, time.Second, false}, {time.Second, "", executors.NotYet, 2 * time.Second, false}, {2 * time.Second, good, executors.Done, 0, false},
		}},
		"a patience of nothing": {plan.PrometheusProperties{FailAfter: span(0)}, []look{{0, bad, executors.Failed, 0, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := ""
			s := newServer(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
				if answer == "" {
					w.WriteHeader(nethttp.StatusBadGateway)
					return
				}
				_, _ = io.WriteString(w, vector("=>"+answer))
			})
			c.properties.URL, c.properties.Query, c.properties.Condition = s.URL, "up", "< 3"
			call := callWith(&c.properties)
			begin := call.Now
			for _, l := range c.looks {
				answer, call.Now = l.answer, begin.Add(l.at)
				out := Prometheus{}.Pass(t.Context(), call)
				if out.State != l.want || out.Permanent || (out.Memory != nil) != l.writes || l.wake > 0 && !out.WakeAt.Equal(begin.Add(l.wake)) {
					t.Fatalf("at %s: %+v (%s), want %+v", l.at, out, out.Memory, l)
				}
				if l.want == executors.Failed && out.Reason != "ConditionNotMet" {
					t.Errorf("reason %s", out.Reason)
				}
				if out.Memory != nil {
					call.Recorded.Memory = out.Memory
				}
			}
		})
	}
}

func TestAnotherAttemptHasItsOwnPatience(t *testing.T) {
	s := newServer(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, vector("=>9")) })
	call := callWith(&plan.PrometheusProperties{URL: s.URL, Query: "up", Condition: "< 3", FailAfter: span(time.Minute)})
	call.Recorded.Memory = Prometheus{}.Pass(t.Context(), call).Memory
	call.Now, call.Attempt = call.Now.Add(time.Hour), call.Attempt+1
	if out := (Prometheus{}).Pass(t.Context(), call); out.State != executors.NotYet || out.Memory == nil {
		t.Errorf("%+v", out)
	}
	call.Recorded.Memory = []byte(`"somebody else's"`)
	if out := (Prometheus{}).Pass(t.Context(), call); out.State != executors.NotYet || out.Memory == nil {
		t.Errorf("with a memory that is none of ours: %+v", out)
	}
}

func TestARehearsalAsksNobody(t *testing.T) {
	s := newServer(t, nil)
	for name, e := range map[string]struct {
		executor   executors.Executor
		properties any
	}{
		"prometheus": {Prometheus{}, &plan.PrometheusProperties{URL: s.URL, Query: "up", Condition: "< 3"}},
		"silence":    {Silence{}, &plan.SilenceProperties{Alertmanager: s.URL, Matchers: []plan.SilenceMatcher{{Name: "job", Value: "orders"}}}},
	} {
		call := callWith(e.properties)
		call.DryRun = true
		outs := []executors.Outcome{e.executor.Pass(t.Context(), call)}
		if k, ok := e.executor.(executors.Keeper); ok {
			outs = append(outs, k.Keep(t.Context(), call), k.Release(t.Context(), call))
		}
		for _, out := range outs {
			if out.State != executors.Done || !strings.Contains(out.Message, "dry run") || out.Memory != nil || s.calls.Load() > 0 {
				t.Errorf("%s: %+v", name, out)
			}
		}
	}
}
