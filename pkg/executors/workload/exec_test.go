package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// console is a cluster in whose pods commands run: their streams alone go over a socket.
type console struct {
	*shop
	socket *httptest.Server
	mu     sync.Mutex
	ran    []string // container and command of each stream that was asked for
	next   func(http.ResponseWriter, *http.Request)
}

func newConsole(t *testing.T, objects ...string) *console {
	c := &console{next: ends("hello\n", "", nil)}
	c.shop = newShop(t, NewExecs(), &plan.ExecProperties{Pod: plan.PodSelector{Name: "web"}, Command: []string{"flush", "--all"}}, objects...)
	c.socket = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.socket.Close)
	var err error
	if c.call.Clients.Kube, err = kube.NewForConfig(&rest.Config{Host: c.socket.URL, Transport: c.Cluster, QPS: -1}); err != nil {
		t.Fatal(err)
	}
	c.call.Clients.Config, c.call.Path = &rest.Config{Host: c.socket.URL}, "flush"
	return c
}

func (c *console) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c.mu.Lock()
	next := c.next
	c.ran = append(c.ran, fmt.Sprintf("%s %s in %s: %q stdout=%s stderr=%s stdin=%s", r.Method, r.URL.Path, q.Get("container"), q["command"], q.Get("stdout"), q.Get("stderr"), q.Get("stdin")))
	c.mu.Unlock()
	next(w, r)
}

// streams are those that were asked for.
func (c *console) streams() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ran)
}

// runs has a command end in another way.
func (c *console) runs(next func(http.ResponseWriter, *http.Request)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = next
}

func opened(w http.ResponseWriter, r *http.Request) *websocket.Conn {
	upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return conn
}

// ends is a command that says something and ends as a status tells; nil is without a fault.
func ends(stdout, stderr string, status *metav1.Status) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		conn := opened(w, r)
		defer conn.Close()
		if status == nil {
			status = &metav1.Status{Status: metav1.StatusSuccess}
		}
		text, _ := json.Marshal(status)
		for channel, said := range map[byte]string{1: stdout, 2: stderr, 3: string(text)} {
			_ = conn.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, said...))
		}
		_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		_, _, _ = conn.ReadMessage() // until the client has closed, too
	}
}

// breaks is a stream whose connection breaks off in the middle.
func breaks(w http.ResponseWriter, r *http.Request) {
	conn := opened(w, r)
	_ = conn.WriteMessage(websocket.BinaryMessage, []byte("\x01half"))
	_ = conn.UnderlyingConn().Close()
}

// refuses is an API server that opens no stream.
func refuses(code int, text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, code) }
}

func exitCode(n string) *metav1.Status {
	return &metav1.Status{
		Status: metav1.StatusFailure, Reason: "NonZeroExitCode", Message: "command terminated with exit code " + n,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: n}}},
	}
}

const podWeb = `{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: web, uid: uid-web}, spec: {containers: [{name: app}, {name: side}]}, status: {phase: Running}}`

const (
	aboutTo     = "record : about to run a command in Pod/web container app"
	interrupted = "failed for good Interrupted: attempt 1 began and nobody saw its end: whether the command did its work is not known; write onRestart: retry if it may run twice"
)

// outputs are those of a command in the container app of the pod web.
func outputs(stdout, stderr string, code any) map[string]any {
	out := map[string]any{"pod": "web", "container": "app", "stdout": stdout, "stderr": stderr}
	if code != nil {
		out["exitCode"] = code
	}
	return out
}

// That a command begins is written down before it does.
func TestACommandRunsOnceAfterItWasWrittenDown(t *testing.T) {
	c := newConsole(t, podWeb)
	c.says(aboutTo)
	var was attempt
	if err := json.Unmarshal(c.call.Recorded.Memory, &was); err != nil || was.Token == "" {
		t.Fatalf("remembered %s", c.call.Recorded.Memory)
	}
	if diff := cmp.Diff(attempt{Attempt: 1, Token: was.Token, UID: "uid-web", Container: "app"}, was); diff != "" || len(c.streams()) != 0 {
		t.Errorf("ran %q, remembered (-want +got):\n%s", c.streams(), diff)
	}
	out := c.pass()
	want := executors.Outcome{State: executors.Done, Message: `["flush" "--all"] ran in Pod/web container app`, Outputs: outputs("hello\n", "", int64(0))}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`GET /api/v1/namespaces/shop/pods/web/exec in app: ["flush" "--all"] stdout=true stderr=true stdin=`}, c.streams()); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	c.says(interrupted) // its outcome was lost
	if len(c.streams()) != 1 {
		t.Errorf("ran %q", c.streams())
	}
}

// Whose attempt it is decides whether a command may run that was written down.
func TestAnAttemptThatSomebodyBegan(t *testing.T) {
	for _, c := range []struct {
		name  string
		then  func(*console)
		wants []string // of the passes that follow
		ran   int
	}{
		{"by this program", func(*console) {}, []string{`done : ["flush" "--all"] ran in Pod/web container app`}, 1},
		{"by another program", func(c *console) { c.executor = NewExecs() }, []string{interrupted}, 0},
		{"by another program, and it may run twice", func(c *console) { c.executor, c.call.OnRestart = NewExecs(), "retry" }, []string{aboutTo, `done : ["flush" "--all"] ran in Pod/web container app`}, 1},
		{"of a run of its name in another namespace", func(c *console) {
			c.call.Plan.Namespace = "mall"
			c.Put(agenttest.Object(c.T, strings.Replace(podWeb, "namespace: shop", "namespace: mall", 1)))
		}, []string{interrupted}, 0},
		{"of the attempt before", func(c *console) { c.call.Attempt = 2 }, []string{aboutTo, `done : ["flush" "--all"] ran in Pod/web container app`}, 1},
		{"and it is not readable any more", func(c *console) { c.call.Recorded.Memory = []byte("[") }, []string{aboutTo, `done : ["flush" "--all"] ran in Pod/web container app`}, 1},
		{"in a pod that was replaced before it ran", func(c *console) {
			c.DeleteAtOnce("pods", "shop", "web")
			c.Put(agenttest.Object(c.T, strings.Replace(podWeb, "uid-web", "uid-other", 1)))
		}, []string{aboutTo, `done : ["flush" "--all"] ran in Pod/web container app`}, 1},
		{"in another container", func(c *console) {
			c.call.Properties = &plan.ExecProperties{Pod: plan.PodSelector{Name: "web"}, Container: "side", Command: []string{"x"}}
		}, []string{"record : about to run a command in Pod/web container side", `done : ["x"] ran in Pod/web container side`}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newConsole(t, podWeb)
			s.says(aboutTo)
			c.then(s)
			for _, want := range c.wants {
				s.says(want)
			}
			if len(s.streams()) != c.ran {
				t.Errorf("ran %q", s.streams())
			}
		})
	}
}

// How a command ended, and what may happen after that.
func TestHowACommandEnds(t *testing.T) {
	const (
		unknown = "; whether the command did its work is not known"
		ran     = `["flush" "--all"] in Pod/web container app`
		done    = `done : ["flush" "--all"] ran in Pod/web container app`
	)
	gone := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
	for _, c := range []struct {
		name    string
		next    func(http.ResponseWriter, *http.Request)
		restart string
		want    string // the beginning
		ending  string
		outputs map[string]any
		after   string // the next pass, with a cluster that is well
	}{
		{"with an exit code", ends("a", "first\nno disk\n", exitCode("3")), "", "failed ExitCode: " + ran + " ended with exit code 3: no disk", "", outputs("a", "first\nno disk\n", int64(3)), interrupted},
		{"with an exit code and nothing said", ends("", "", exitCode("1")), "", "failed ExitCode: " + ran + " ended with exit code 1", "1", outputs("", "", int64(1)), interrupted},
		{"it could not be started", ends("", "", &metav1.Status{Status: metav1.StatusFailure, Message: "no such file"}), "", "failed for good Interrupted: " + ran + ": ", "no such file" + unknown, outputs("", "", nil), interrupted},
		{"it could not be started, and may run twice", ends("", "", &metav1.Status{Status: metav1.StatusFailure, Message: "no such file"}), "retry", "failed Interrupted: " + ran + ": ", "no such file" + unknown, outputs("", "", nil), aboutTo},
		{"its stream breaks off", breaks, "", "failed for good Interrupted: " + ran + ": ", unknown, outputs("half", "", nil), interrupted},
		{"its stream breaks off, and it may run twice", breaks, "retry", "not yet Unavailable: the API server does not answer as it should: ", "", nil, aboutTo},
		{"nobody answers the request for a stream", gone, "", "failed for good Interrupted: " + ran + ": ", unknown, outputs("", "", nil), interrupted},
		{"nobody answers the request for a stream, and it may run twice", gone, "retry", "not yet Unavailable: the API server does not answer as it should: ", "", nil, aboutTo},
		{"a webhook says no: it did not begin", refuses(http.StatusForbidden, `{"kind": "Status", "apiVersion": "v1", "code": 403, "message": "admission webhook \"quiet\" denied the request: no"}`), "", `failed Denied: create pods/exec "web" in namespace shop was denied to serviceaccount shop/maint-runner: open the stream: admission webhook "quiet" denied the request: no`, "", nil, done},
		{"the API server is busy: it did not begin", refuses(http.StatusServiceUnavailable, "busy"), "", "not yet Unavailable: the API server does not answer as it should: create pods/exec \"web\" in namespace shop: open the stream: ", "busy", nil, done},
		{"somebody else answers: it did not begin", refuses(http.StatusOK, "hello"), "", "not yet Unavailable: the API server does not answer as it should: create pods/exec \"web\" in namespace shop: open the stream: ", "hello", nil, done},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newConsole(t, podWeb)
			s.call.OnRestart = c.restart
			s.says(aboutTo)
			s.runs(c.next)
			out := s.pass()
			if got := inShort(out); !strings.HasPrefix(got, c.want) || !strings.HasSuffix(got, c.ending) || c.ending == "" && c.outputs != nil && got != c.want {
				t.Errorf("%s\nwant %s%s", got, c.want, c.ending)
			}
			if diff := cmp.Diff(c.outputs, out.Outputs); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
			s.runs(ends("", "", nil))
			s.says(c.after)
		})
	}
}

// The agent itself answers a request as an account that went after the attempt was recorded.
func TestAStreamAsAnAccountThatIsGone(t *testing.T) {
	c := newConsole(t, podWeb)
	c.says(aboutTo)
	status, err := json.Marshal(executors.NoAccount("the ServiceAccount maint-runner does not exist in namespace shop"))
	if err != nil {
		t.Fatal(err)
	}
	there := c.call.Clients.Config
	c.call.Clients.Config = rest.CopyConfig(there)
	c.call.Clients.Config.Wrap(func(http.RoundTripper) http.RoundTripper { return always{http.StatusForbidden, string(status)} })
	c.says("failed for good NoServiceAccount: open the stream: the ServiceAccount maint-runner does not exist in namespace shop")
	c.call.Clients.Config = rest.CopyConfig(there)
	c.call.Clients.Config.Wrap(func(http.RoundTripper) http.RoundTripper {
		return always{http.StatusBadGateway, strings.Repeat("x", 2<<10)}
	})
	if got := inShort(c.pass()); !strings.HasPrefix(got, "not yet Unavailable: ") || strings.Count(got, "x") > longestOther+10 {
		t.Errorf("%s", got)
	}
	c.call.Clients.Config = there
	c.says(`done : ["flush" "--all"] ran in Pod/web container app`) // it is there again
	if len(c.streams()) != 1 {
		t.Errorf("ran %q", c.streams())
	}
}

// always is an answer to every request.
type always struct {
	code int
	text string
}

func (a always) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.code, Request: r, Body: io.NopCloser(strings.NewReader(a.text))}, nil
}

// A request that never left began nothing: the attempt goes on when the API server is
// back.
func TestAStreamThatCannotBeDialled(t *testing.T) {
	c := newConsole(t, podWeb)
	c.says(aboutTo)
	c.socket.Close()
	if got := inShort(c.pass()); !strings.HasPrefix(got, `not yet Unavailable: the API server does not answer as it should: create pods/exec "web" in namespace shop: `) {
		t.Error(got)
	}
	execs := c.executor.(*Execs)
	if was := attemptBefore(c.call); was == nil || !execs.isArmed(c.call, was.Token) {
		t.Error("the attempt counts as begun")
	}
}

// Whoever holds a stream holds it for so long: a command that goes on may still do its work.
func TestACommandThatIsNotWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name string
		why  error
		want string
	}{
		{"the time of a stream is over", context.DeadlineExceeded, `failed for good TooLong: ["flush" "--all"] in Pod/web container app did not end within the time that the agent holds a stream open; run it as a job`},
		{"the agent stops", context.Canceled, "not yet Unavailable: the API server does not answer as it should: context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newConsole(t, podWeb)
			s.says(aboutTo)
			ctx := endsWhen{Context: t.Context(), over: make(chan struct{}), why: c.why}
			s.runs(func(w http.ResponseWriter, r *http.Request) {
				conn := opened(w, r)
				defer conn.Close()
				close(ctx.over)
				_, _, _ = conn.ReadMessage()
			})
			if got := inShort(s.executor.Pass(ctx, s.call)); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			s.says(interrupted)
		})
	}
}

// endsWhen is a context that ends when a test says so.
type endsWhen struct {
	context.Context
	over chan struct{}
	why  error
}

func (e endsWhen) Done() <-chan struct{} { return e.over }

func (e endsWhen) Err() error {
	select {
	case <-e.over:
		return e.why
	default:
		return nil
	}
}

// What is not begun.
func TestACommandThatIsNotBegun(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*console)
		want string
	}{
		{"in a dry run", func(c *console) { c.call.DryRun = true }, `done : dry run: would run ["flush" "--all"] in Pod/web container app`},
		{"without a command", func(c *console) { c.call.Properties = &plan.ExecProperties{Pod: plan.PodSelector{Name: "web"}} }, "failed for good Invalid: command is empty, or this program cannot stream into containers (configured: true)"},
		{"by a program that cannot stream", func(c *console) { c.call.Clients.Config = nil }, "failed for good Invalid: command is empty, or this program cannot stream into containers (configured: false)"},
		{"with properties of another type", func(c *console) { c.call.Properties = &plan.ScaleProperties{} }, "failed for good Invalid: step flush: properties are *plan.ScaleProperties, not *plan.ExecProperties"},
		{"without the right to create a stream", func(c *console) { c.Deny("", "create", "pods") }, `failed for good Forbidden: serviceaccount shop/maint-runner may not create pods/exec "web" in namespace shop: grant create on pods/exec to it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newConsole(t, podWeb)
			c.edit(s)
			s.says(c.want)
			if len(s.streams()) != 0 || s.call.Recorded.Memory != nil {
				t.Errorf("ran %q, remembered %s", s.streams(), s.call.Recorded.Memory)
			}
		})
	}
}

// Which pod and which of its containers a command is for.
func TestWhereACommandRuns(t *testing.T) {
	pod := func(name, metadata, status string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: %s, labels: {app: web}%s}, spec: {containers: [{name: app}, {name: side}], initContainers: [{name: init}], ephemeralContainers: [{name: debug}]}, status: {%s}}`, name, metadata, status)
	}
	const (
		ready    = `phase: Running, conditions: [{type: Ready, status: "True"}]`
		notReady = `phase: Running, conditions: [{type: Ready, status: "False"}]`
		halfway  = `phase: Running, conditions: [{type: Initialized, status: "True"}]`
		deleted  = `, finalizers: [x], deletionTimestamp: "2026-01-01T00:00:00Z"`
		about    = "record : about to run a command in "
	)
	web := plan.PodSelector{MatchLabels: map[string]string{"app": "web"}}
	for _, c := range []struct {
		name      string
		pods      []string
		pick      plan.PodSelector
		container string
		want      string
	}{
		{"the first by name of those that are ready", []string{pod("c", "", ready), pod("b", "", ready), pod("a", "", notReady), pod("aa", "", halfway), pod("ab", deleted, ready)}, web, "", about + "Pod/b container app"},
		{"none is ready", []string{pod("a", "", notReady)}, web, "", "failed NotReady: of the pods in namespace shop with the labels app=web none is ready"},
		{"none has the labels", nil, web, "", "failed for good NotFound: no pod in namespace shop has the labels app=web"},
		{"neither a name nor labels", nil, plan.PodSelector{}, "", "failed for good Invalid: pod: needs a name or labels"},
		{"a name: that it is not ready does not matter", []string{pod("a", "", notReady)}, plan.PodSelector{Name: "a"}, "", about + "Pod/a container app"},
		{"a name of one that does not run", []string{pod("a", "", "phase: Pending")}, plan.PodSelector{Name: "a"}, "", "failed NotReady: Pod/a is Pending and runs no command"},
		{"a name of one that is being deleted", []string{pod("a", deleted, ready)}, plan.PodSelector{Name: "a"}, "", "failed NotReady: Pod/a is being deleted and runs no command"},
		{"a name of none", nil, plan.PodSelector{Name: "a"}, "", `failed for good NotFound: get pods "a" in namespace shop: there is no such object`},
		{"a container by name", []string{pod("a", "", ready)}, web, "side", about + "Pod/a container side"},
		{"one that initializes", []string{pod("a", "", ready)}, web, "init", about + "Pod/a container init"},
		{"one for debugging", []string{pod("a", "", ready)}, web, "debug", about + "Pod/a container debug"},
		{"one that it does not have", []string{pod("a", "", ready)}, web, "cache", `failed for good Invalid: container: Pod/a has none named "cache"; it has app, side, init, debug`},
		{"the one that kubectl means", []string{pod("a", ", annotations: {kubectl.kubernetes.io/default-container: side}", ready)}, web, "", about + "Pod/a container side"},
		{"not the one that kubectl means, but that is named", []string{pod("a", ", annotations: {kubectl.kubernetes.io/default-container: side}", ready)}, web, "app", about + "Pod/a container app"},
		{"kubectl means one that it does not have", []string{pod("a", ", annotations: {kubectl.kubernetes.io/default-container: cache}", ready)}, web, "", about + "Pod/a container app"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newConsole(t, c.pods...)
			s.call.Properties = &plan.ExecProperties{Pod: c.pick, Container: c.container, Command: []string{"x"}}
			s.says(c.want)
		})
	}
}

func TestTheLastLineOfWhatACommandSaid(t *testing.T) {
	for text, want := range map[string]string{"": "", " \n": "", "one": ": one", "one\ntwo\n\n": ": two"} {
		if got := said(text); got != want {
			t.Errorf("of %q it is %q", text, got)
		}
	}
}

// answers is what stands between the agent and the API server.
type answers struct {
	code int
	err  error
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.code, Body: io.NopCloser(strings.NewReader("a page"))}, nil
}

// Only a stream that was opened is handed on as one.
func TestWhatIsNoStreamIsARefusal(t *testing.T) {
	for _, c := range []struct {
		answers
		begun bool
		want  string
		never bool // it never began
	}{
		{answers{code: http.StatusSwitchingProtocols}, true, "", false},
		{answers{code: http.StatusOK}, false, "open the stream: the server responded with the status code 200 but did not return more information (get pods)", true},
		{answers{code: http.StatusBadGateway}, false, "open the stream: an error on the server (\"a page\") has prevented the request from succeeding (get pods)", true},
		{answers{err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, false, "dial: refused", true},
		{answers{err: &net.OpError{Op: "read", Err: errors.New("reset")}}, false, "read: reset", false},
		{answers{err: errors.New("broken")}, false, "broken", false},
	} {
		begun := false
		u := &upgrade{next: c.answers, done: &begun}
		response, err := u.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
		got := ""
		if err != nil {
			got = refusal(err).Error()
		}
		if got != c.want || begun != c.begun || (response != nil) != c.begun || neverBegan(err) != c.never {
			t.Errorf("%+v: %q, begun %t, never began %t", c.answers, got, begun, neverBegan(err))
		}
	}
}

// A stream that broke off is told from one that ended with a word.
func TestAStreamThatBrokeOff(t *testing.T) {
	for err, want := range map[error]bool{
		&websocket.CloseError{Code: 1006}:                     true,
		fmt.Errorf("read: %w", &net.OpError{Op: "read"}):      true,
		fmt.Errorf("read: %w", io.ErrUnexpectedEOF):           true,
		errors.New("error executing command in container: x"): false,
	} {
		if got := cut(err); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}
