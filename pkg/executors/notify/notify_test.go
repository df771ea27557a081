package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// desk is a server that takes messages, and what it got.
type desk struct {
	*httptest.Server
	mu  sync.Mutex
	got []string
}

func newDesk(t *testing.T, answer func(nethttp.ResponseWriter, *nethttp.Request)) *desk {
	t.Helper()
	d := &desk{}
	d.Server = httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		body, _ := io.ReadAll(r.Body)
		d.mu.Lock()
		d.got = append(d.got, r.URL.Path+" "+string(body))
		d.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(func() {
		d.CloseClientConnections() // what was given up on still hangs
		d.Close()
	})
	return d
}

func (d *desk) received() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.got...)
}

// sink is the URL of a path of the desk, as an admin writes it.
func (d *desk) sink(path string) string { return "generic+" + d.URL + path }

func callFor(p *plan.NotificationProperties, urls map[string]string) executors.Call {
	return executors.Call{
		Run: "maint-run-orders-abc", Plan: executors.PlanRef{Name: "orders", Namespace: "shop"}, Path: "tell", Attempt: 1, Properties: p,
		Now: time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC),
		Clients: executors.Clients{Sinks: executors.Sinks{URL: func(_ context.Context, name string) (string, error) {
			if u, ok := urls[name]; ok {
				return u, nil
			}
			return "", &agentconfig.SinkError{Name: name, Why: "not among spec.notifications.sinks of the AgentConfig, which names ops"}
		}}},
	}
}

// run passes as the agent does: what is remembered is handed back.
func run(t *testing.T, n Notifier, call *executors.Call) executors.Outcome {
	t.Helper()
	for range 20 {
		out := n.Pass(t.Context(), *call)
		if out.Memory != nil {
			call.Recorded.Memory = out.Memory
		}
		if out.State != executors.Record {
			return out
		}
		if out.Memory == nil {
			t.Fatal("asks to record nothing")
		}
	}
	t.Fatal("not done after 20 passes")
	return executors.Outcome{}
}

func TestEachSinkIsToldOnce(t *testing.T) {
	broken := true
	d := newDesk(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.URL.Path == "/b" && broken {
			w.WriteHeader(nethttp.StatusBadGateway)
		}
	})
	n := New()
	call := callFor(&plan.NotificationProperties{Title: "Upgrade", Message: "it begins", Sinks: []string{"a", "b", "c", "a"}},
		map[string]string{"a": d.sink("/a"), "b": d.sink("/b"), "c": d.sink("/c?template=json")})
	out := run(t, n, &call)
	if out.State != executors.Failed || out.Permanent || out.Reason != "Sink" || !strings.Contains(out.Message, "sink b: ") || !strings.Contains(out.Message, "502") || out.Memory == nil {
		t.Fatalf("%+v", out)
	}
	broken, call.Attempt = false, 2
	if out = run(t, n, &call); out.State != executors.Done || out.Message != "told a, c, b" {
		t.Fatalf("%+v", out)
	}
	if out = run(t, n, &call); out.State != executors.Done {
		t.Fatalf("once more: %+v", out)
	}
	want := []string{
		"/a plan shop/orders: Upgrade\nit begins", "/b plan shop/orders: Upgrade\nit begins",
		`/c {"message":"it begins","origin":"plan shop/orders","title":"plan shop/orders: Upgrade"}`, "/b plan shop/orders: Upgrade\nit begins",
	}
	if diff := cmp.Diff(want, d.received()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The configuration may change between two passes.
func TestAStepThatNamesNoSinkTellsTheDefaultOnce(t *testing.T) {
	d := newDesk(t, nil)
	call := callFor(&plan.NotificationProperties{Message: "hello"}, map[string]string{"ops": d.sink("/ops"), "dba": d.sink("/dba")})
	if out := New().Pass(t.Context(), call); out.Reason != "NoSinks" || !out.Permanent {
		t.Errorf("without any sink: %+v", out)
	}
	name, fault := "ops", error(nil)
	call.Clients.Sinks.Default = func() (string, error) { return name, fault }
	for range 2 {
		if out := run(t, New(), &call); out.State != executors.Done || out.Message != "told ops" {
			t.Fatalf("%+v", out)
		}
		name = "dba"
	}
	call.Recorded.Memory, fault = nil, &agentconfig.SinkError{Name: "default", Why: "several others: ops, dba"}
	if out := run(t, New(), &call); out.Reason != "Sink" || !out.Permanent || out.Message != `sinks: "default": several others: ops, dba` {
		t.Errorf("without a default: %+v", out)
	}
	if diff := cmp.Diff([]string{"/ops plan shop/orders\nhello"}, d.received()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsSent(t *testing.T) {
	d := newDesk(t, nil)
	for name, c := range map[string]struct {
		title, message string
		own            bool
		want           string
	}{
		"without a title the plan is named": {"", "hello", false, "/ plan shop/orders\nhello"},
		"a title is one line":               {"a\r\nBcc: b", "hello", false, "/ plan shop/orders: a Bcc: b\nhello"},
		"a long message is cut with a mark": {"t", strings.Repeat("é", MaxText), false, "/ plan shop/orders: t\n" + strings.Repeat("é", (MaxText-len("plan shop/orders: t\n…"))/2) + "…"},
		"a long title is cut, too":          {strings.Repeat("t", 300), "m", false, "/ plan shop/orders: " + strings.Repeat("t", 179) + "…\nm"},
		"a message as people write it":      {"t", "a \"b\"\n{{.c}} <d>", false, "/ plan shop/orders: t\na \"b\"\n{{.c}} <d>"},
		"no step speaks as the agent does":  {"Plan payments/db succeeded", "Run x succeeded", false, "/ plan shop/orders: Plan payments/db succeeded\nRun x succeeded"},
		"the agent's own words":             {"Plan payments/db succeeded", "Run x succeeded", true, "/ Plan payments/db succeeded\nRun x succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(d.received())
			call := callFor(&plan.NotificationProperties{Title: c.title, Message: c.message, Sinks: []string{"a"}}, map[string]string{"a": d.sink("/")})
			call.Own = c.own
			if out := run(t, New(), &call); out.State != executors.Done {
				t.Fatalf("%+v", out)
			}
			if diff := cmp.Diff([]string{c.want}, d.received()[before:]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsSaidBeforeAnybodyIsTold(t *testing.T) {
	d := newDesk(t, nil)
	away := errors.New("connection refused")
	for name, c := range map[string]struct {
		sinks  []string
		lookup func(context.Context, string) (string, error)
		dryRun bool
		want   executors.State
		reason string
		says   string
	}{
		"no sinks at all":               {sinks: []string{"ops"}, want: executors.Failed, reason: "NoSinks", says: "no sinks are configured"},
		"a sink that nobody configured": {sinks: []string{"ops", "opps"}, lookup: callFor(nil, map[string]string{"ops": d.sink("/")}).Clients.Sinks.URL, want: executors.Failed, reason: "Sink", says: `"opps": not among spec.notifications.sinks of the AgentConfig, which names ops`},
		"an API server that is away":    {sinks: []string{"ops"}, lookup: func(context.Context, string) (string, error) { return "", away }, want: executors.NotYet, reason: "Unavailable", says: "connection refused"},
		"a rehearsal":                   {sinks: []string{"ops", "opps"}, dryRun: true, want: executors.Done, says: "dry run: would tell ops, opps"},
	} {
		t.Run(name, func(t *testing.T) {
			call := callFor(&plan.NotificationProperties{Message: "hello", Sinks: c.sinks}, nil)
			call.Clients.Sinks.URL, call.DryRun = c.lookup, c.dryRun
			out := New().Pass(t.Context(), call)
			if out.State != c.want || out.Permanent != (c.want == executors.Failed) || out.Reason != c.reason || !strings.Contains(out.Message, c.says) || len(d.received()) > 0 {
				t.Errorf("%+v, want %q", out, c.says)
			}
		})
	}
}

// secrets are the parts of a sink's URL that somebody could use.
const host, path, user, password, query = "127.0.0.1", "Zq81xTok", "u5er", "pa+ss", "n0t4you"

func TestASinkThatDoesNotTakeIt(t *testing.T) {
	hang := newDesk(t, func(_ nethttp.ResponseWriter, r *nethttp.Request) { <-r.Context().Done() })
	closed := newDesk(t, nil)
	closed.Close()
	answers := func(status int) string {
		d := newDesk(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
			w.Header().Set("Location", "http://"+r.Host+r.URL.String()+"/more")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, r.URL.String())
		})
		return d.URL
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	secret := func(base string) string {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		u.User, u.Path = url.UserPassword(user, password), "/services/"+path
		u.RawQuery = url.Values{"token": {query}}.Encode()
		return u.String()
	}
	for name, c := range map[string]struct{ url, says string }{
		"no answer in time":           {"generic+" + secret(hang.URL), "no answer within 300ms"},
		"nobody listens":              {"generic+" + secret(closed.URL), "connection refused"},
		"an answer that says no":      {"generic+" + secret(answers(403)), "403"},
		"an answer in trouble":        {"generic+" + secret(answers(500)), "500"},
		"redirects without end":       {"generic+" + secret(answers(307)), "stopped after 10 redirects"},
		"a mail server without words": {"smtp://" + user + ":" + url.QueryEscape(password) + "@" + silent.Addr().String() + "/?from=" + query + "@example.org&to=" + path + "@example.org", "no answer within 300ms"},
		"no mail server":              {strings.Replace(secret(closed.URL), "http", "smtp", 1) + "&from=a@example.org&to=b@example.org", ""},
		"a kind that nobody knows":    {strings.Replace(secret(closed.URL), "http", "smoke", 1), "its URL cannot be used"},
		"a URL that is none":          {"://" + password + path + user + query, "its URL cannot be used"},
		"a token that is none":        {"slack://" + path + ":" + query + "@" + user, "its URL cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			n := New()
			n.sender.timeout = 300 * time.Millisecond
			call := callFor(&plan.NotificationProperties{Message: "hello", Sinks: []string{"ops"}}, map[string]string{"ops": c.url})
			out := run(t, n, &call)
			if out.State != executors.Failed || out.Permanent || !strings.Contains(out.Message, "sink ops: ") || !strings.Contains(out.Message, c.says) {
				t.Errorf("%+v, want %q", out, c.says)
			}
			all := fmt.Sprintf("%+v %s", out, out.Memory)
			for _, part := range []string{host, path, user, password, url.QueryEscape(password), query} {
				if strings.Contains(strings.ToLower(all), strings.ToLower(part)) {
					t.Errorf("%q is shown in %s", part, all)
				}
			}
		})
	}
}

func TestASinkThatNeverAnswersKeepsNobodyElseWaiting(t *testing.T) {
	hang := newDesk(t, func(_ nethttp.ResponseWriter, r *nethttp.Request) { <-r.Context().Done() })
	well := newDesk(t, nil)
	n := New()
	n.sender.timeout = 50 * time.Millisecond
	for i := range atOnce + 2 {
		call := callFor(&plan.NotificationProperties{Message: "hello", Sinks: []string{"bad", "good"}}, map[string]string{"bad": hang.sink("/"), "good": well.sink("/")})
		out := run(t, n, &call)
		if want := "no answer within"; i < atOnce && !strings.Contains(out.Message, want) {
			t.Errorf("%+v, want %q", out, want)
		}
		if want := "has not answered 4 earlier messages"; i >= atOnce && !strings.Contains(out.Message, want) {
			t.Errorf("%+v, want %q", out, want)
		}
	}
	if got := len(well.received()); got != atOnce+2 {
		t.Errorf("the good one was told %d times", got)
	}
}

// The agent's own messages have places of their own at a sink, and no more than steps have.
func TestNoStepTakesThePlacesOfTheAgentsOwnMessages(t *testing.T) {
	var hangs atomic.Bool
	desk := newDesk(t, func(_ nethttp.ResponseWriter, r *nethttp.Request) {
		if hangs.Load() {
			<-r.Context().Done()
		}
	})
	n := New()
	timeout := n.sender.timeout
	send := func(own bool) executors.Outcome {
		call := callFor(&plan.NotificationProperties{Message: "hello", Sinks: []string{"ops"}}, map[string]string{"ops": desk.sink("/")})
		call.Own = own
		return n.Pass(t.Context(), call)
	}
	fillsUp := func(own bool) {
		t.Helper()
		hangs.Store(true)
		n.sender.timeout = 100 * time.Millisecond
		for i := range atOnce + 1 {
			want := map[bool]string{true: "no answer within", false: "has not answered 4 earlier messages"}[i < atOnce]
			if out := send(own); out.State != executors.Failed || !strings.Contains(out.Message, want) {
				t.Fatalf("message %d: %+v, want %q", i, out, want)
			}
		}
		hangs.Store(false)
		n.sender.timeout = timeout
	}
	fillsUp(false)
	for range 2 * atOnce {
		if out := send(true); out.State != executors.Done {
			t.Fatalf("the agent's own waits behind those of steps: %+v", out)
		}
	}
	fillsUp(true)
}

// Many messages at once wait for one another: those of one tenant make nobody else's fail.
func TestManyMessagesToASinkThatAnswersAllArrive(t *testing.T) {
	slow := newDesk(t, func(nethttp.ResponseWriter, *nethttp.Request) { time.Sleep(20 * time.Millisecond) })
	n := New()
	var all sync.WaitGroup
	for range 3 * atOnce {
		all.Go(func() {
			call := callFor(&plan.NotificationProperties{Message: "hello", Sinks: []string{"ops"}}, map[string]string{"ops": slow.sink("/")})
			if out := n.Pass(t.Context(), call); out.State != executors.Done {
				t.Errorf("%+v", out)
			}
		})
	}
	all.Wait()
	if got := len(slow.received()); got != 3*atOnce {
		t.Errorf("it was told %d times", got)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		n.sender.mu.Lock()
		left := len(n.sender.lines)
		n.sender.mu.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d lines are kept that nobody uses", left)
		}
	}
}

func TestAStoppingAgentFailsNobody(t *testing.T) {
	hang := newDesk(t, func(_ nethttp.ResponseWriter, r *nethttp.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	out := New().Pass(ctx, callFor(&plan.NotificationProperties{Message: "hello", Sinks: []string{"ops"}}, map[string]string{"ops": hang.sink("/")}))
	if out.State != executors.NotYet || out.Reason != "Interrupted" || out.Memory != nil {
		t.Errorf("%+v", out)
	}
}

func TestAPanicOfTheLibraryIsAFailedSink(t *testing.T) {
	if err := guarded(func() error { panic("at the disco") }); err == nil || !strings.Contains(err.Error(), "broke: at the disco") {
		t.Error(err)
	}
}
