package executors_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func execRights(pods string) []conformance.Right {
	return append(rights("", "pods", pods), rights("", "pods/exec", "create", "get")...)
}

func TestExecConforms(t *testing.T) {
	h := newHouse(t)
	for name, c := range map[string]struct{ verb, selector string }{"in a pod by name": {"get", "name: %s"}, "in a pod by labels": {"list", "matchLabels: {world: %s}"}} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, conformance.Case{
				Executor: executor(t, "exec"), Rights: execRights(c.verb), Idle: true, Repeats: true,
				New: func(t *testing.T) conformance.Backend {
					k := h.kubelet(t, func(string, []string) ran { return ran{stdout: "done\n"} })
					k.pod(t, h, k.node, map[string]string{"world": k.node}, nil)
					call := h.call(properties[plan.ExecProperties](t, fmt.Sprintf(`{pod: {`+c.selector+`}, command: [flush, "--all"]}`, k.node)))
					call.OnRestart = "retry"
					return conformance.Backend{
						Call: call, Connect: h.connect, Remove: func(t *testing.T) { h.removePod(t, k.node) },
						Effects: func(*testing.T) int { return int(k.runs.Load()) },
					}
				},
			})
		})
	}
}

// execute runs a command as the agent would, with one executor.
func execute(t *testing.T, e executors.Executor, call *executors.Call) executors.Outcome {
	t.Helper()
	for range 20 {
		out := e.Pass(t.Context(), *call)
		if out.Memory != nil {
			call.Recorded.Memory = out.Memory
		}
		if out.State != executors.Record {
			return out
		}
	}
	t.Fatal("nothing but records")
	return executors.Outcome{}
}

func TestWhatACommandReports(t *testing.T) {
	h := newHouse(t)
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		ran    ran
		reason string
		code   any
		words  []string
	}{
		"one that succeeds":         {ran{stdout: "fine\n"}, "", int64(0), []string{`["flush" "--all"] ran in Pod/`, "container db"}},
		"one that fails":            {ran{stdout: "a", stderr: "first\nno disk\n", code: 3}, "ExitCode", int64(3), []string{"exit code 3", "no disk"}},
		"one that says much":        {ran{stdout: long + "end", stderr: long}, "", int64(0), nil},
		"one that is not there":     {ran{refused: "executable file not found"}, "Interrupted", nil, []string{"executable file not found", "not known"}},
		"one of the highest number": {ran{code: 255}, "ExitCode", int64(255), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var container string
			var command []string
			k := h.kubelet(t, func(in string, run []string) ran { container, command = in, run; return c.ran })
			k.pod(t, h, k.node, nil, map[string]string{"kubectl.kubernetes.io/default-container": "db"})
			call := h.as(t, h.call(&plan.ExecProperties{Pod: plan.PodSelector{Name: k.node}, Command: []string{"flush", "--all"}}), execRights("get"))
			out := execute(t, executor(t, "exec"), &call)
			if out.Reason != c.reason || (out.State == executors.Done) != (c.reason == "") || out.Outputs["exitCode"] != c.code {
				t.Fatalf("%+v", out)
			}
			if container != "db" || fmt.Sprint(command) != "[flush --all]" || out.Outputs["pod"] != k.node || out.Outputs["container"] != "db" {
				t.Errorf("ran %v in %s: %+v", command, container, out.Outputs)
			}
			for key, all := range map[string]string{"stdout": c.ran.stdout, "stderr": c.ran.stderr} {
				if got := out.Outputs[key]; got != all[max(0, len(all)-4096):] {
					t.Errorf("%s is %q", key, got)
				}
			}
			for _, word := range c.words {
				if !strings.Contains(out.Message, word) {
					t.Errorf("%q does not say %q", out.Message, word)
				}
			}
		})
	}
}

func TestAnAttemptThatNobodySawEndIsInterrupted(t *testing.T) {
	h := newHouse(t)
	k := h.kubelet(t, func(string, []string) ran { return ran{} })
	k.pod(t, h, k.node, nil, nil)
	props := &plan.ExecProperties{Pod: plan.PodSelector{Name: k.node}, Command: []string{"flush"}}
	before, after := executor(t, "exec"), executor(t, "exec") // two programs
	call := h.as(t, h.call(props), execRights("get"))
	out := before.Pass(t.Context(), call)
	if out.State != executors.Record || out.Memory == nil || k.runs.Load() != 0 {
		t.Fatalf("%+v after %d runs, want the attempt written down first", out, k.runs.Load())
	}
	call.Recorded.Memory = out.Memory
	refused(t, after.Pass(t.Context(), call), true, "Interrupted", "onRestart: retry")
	if out := before.Pass(t.Context(), call); out.State != executors.Done {
		t.Fatalf("%+v", out)
	}
	// Its outcome was lost: even the program that ran it does not run it again.
	refused(t, before.Pass(t.Context(), call), true, "Interrupted")
	if n := k.runs.Load(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
	again := call
	again.Attempt = 2
	if out := execute(t, after, &again); out.State != executors.Done || k.runs.Load() != 2 {
		t.Errorf("another attempt ends as %+v after %d runs", out, k.runs.Load())
	}
	call.OnRestart = "retry"
	if out := execute(t, after, &call); out.State != executors.Done || k.runs.Load() != 3 {
		t.Errorf("with onRestart: retry it ends as %+v after %d runs", out, k.runs.Load())
	}
}

func TestACommandThatIsCutOff(t *testing.T) {
	h := newHouse(t)
	begun, release := make(chan struct{}, 1), make(chan struct{})
	defer close(release)
	k := h.kubelet(t, func(string, []string) ran { begun <- struct{}{}; <-release; return ran{} })
	k.pod(t, h, k.node, nil, nil)
	call := h.as(t, h.call(&plan.ExecProperties{Pod: plan.PodSelector{Name: k.node}, Command: []string{"sleep"}}), execRights("get"))
	e := executor(t, "exec")
	call.Recorded.Memory = e.Pass(t.Context(), call).Memory
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	go func() { <-begun; cancel() }()
	if out := e.Pass(ctx, call); out.State != executors.NotYet {
		t.Errorf("a pass that is cut off is %+v", out)
	}
	refused(t, e.Pass(t.Context(), call), true, "Interrupted")
}

func TestThePodThatIsPicked(t *testing.T) {
	h := newHouse(t)
	k := h.kubelet(t, func(string, []string) ran { return ran{} })
	labels := map[string]string{"app": "orders"}
	for _, name := range []string{"orders-b", "orders-c", "orders-a"} {
		k.pod(t, h, name, labels, nil)
	}
	a, err := h.kube.CoreV1().Pods(h.ns).Get(t.Context(), "orders-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.Status.Conditions[0].Status = corev1.ConditionFalse
	if _, err := h.kube.CoreV1().Pods(h.ns).UpdateStatus(t.Context(), a, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	granted := append(execRights("list"), rights("", "pods", "get")...)
	run := func(text string) executors.Outcome {
		call := h.as(t, h.call(properties[plan.ExecProperties](t, text)), granted)
		return execute(t, executor(t, "exec"), &call)
	}
	if out := run(`{pod: {matchLabels: {app: orders}}, command: [x]}`); out.Outputs["pod"] != "orders-b" || out.Outputs["container"] != "web" {
		t.Errorf("picked %+v", out)
	}
	if out := run(`{pod: {name: orders-a}, container: db, command: [x]}`); out.State != executors.Done || out.Outputs["container"] != "db" {
		t.Errorf("a pod by name that is not ready: %+v", out)
	}
	refused(t, run(`{pod: {matchLabels: {app: nobody}}, command: [x]}`), true, executors.ReasonNotFound, "app=nobody")
	refused(t, run(`{pod: {matchLabels: {app: orders}, matchExpressions: [{key: app, operator: DoesNotExist}]}, command: [x]}`), true, executors.ReasonNotFound)
	refused(t, run(`{pod: {name: orders-b}, container: cache, command: [x]}`), true, executors.ReasonInvalid, `"cache"`, "web, db")
	a.Status.Phase = corev1.PodFailed
	h.removePod(t, "orders-b")
	h.removePod(t, "orders-c")
	refused(t, run(`{pod: {matchLabels: {app: orders}}, command: [x]}`), false, "NotReady", "none is ready")
}

func TestExecWithoutStreamsSaysSo(t *testing.T) {
	h := newHouse(t)
	call := h.as(t, h.call(&plan.ExecProperties{Pod: plan.PodSelector{Name: "x"}, Command: []string{"x"}}), nil)
	call.Clients.Config = nil
	refused(t, executor(t, "exec").Pass(t.Context(), call), true, executors.ReasonInvalid, "cannot stream")
}

// A break between the API server and a node is no break for us: the API server
// itself takes a stream that ends without a word for success. Nothing that a
// client can see tells it apart; this test will say when that changes.
func TestANodeThatDiesLooksLikeSuccess(t *testing.T) {
	h := newHouse(t)
	k := h.kubelet(t, func(string, []string) ran { return ran{dies: true} })
	k.pod(t, h, k.node, nil, nil)
	call := h.as(t, h.call(&plan.ExecProperties{Pod: plan.PodSelector{Name: k.node}, Command: []string{"x"}}), execRights("get"))
	if out := execute(t, executor(t, "exec"), &call); out.State != executors.Done {
		t.Errorf("%+v", out)
	}
}

func TestAnAPIServerThatGoesAwayUnderACommand(t *testing.T) {
	h := newHouse(t)
	begun, release := make(chan struct{}, 8), make(chan struct{})
	defer close(release)
	k := h.kubelet(t, func(string, []string) ran { begun <- struct{}{}; <-release; return ran{} })
	k.pod(t, h, k.node, nil, nil)
	for onRestart, want := range map[string]executors.State{"": executors.Failed, "retry": executors.NotYet} {
		t.Run("onRestart "+onRestart, func(t *testing.T) {
			call := h.as(t, h.call(&plan.ExecProperties{Pod: plan.PodSelector{Name: k.node}, Command: []string{"x"}}), execRights("get"))
			call.OnRestart = onRestart
			hang := h.throughProxy(t, &call)
			go func() { <-begun; hang() }()
			out := execute(t, executor(t, "exec"), &call)
			if out.State != want || want == executors.Failed && (!out.Permanent || out.Reason != "Interrupted") {
				t.Errorf("%+v", out)
			}
		})
	}
}

// throughProxy leads a call's streams through a proxy, whose connections are
// cut when the returned function is called.
func (h *house) throughProxy(t *testing.T, call *executors.Call) (cut func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	behind := strings.TrimPrefix(h.config.Host, "https://")
	conns := make(chan net.Conn, 8)
	go func() {
		for {
			front, err := listener.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", behind)
			if err != nil {
				_ = front.Close()
				continue
			}
			conns <- front
			go func() { _, _ = io.Copy(back, front); _ = back.Close() }()
			go func() { _, _ = io.Copy(front, back); _ = front.Close() }()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	config := rest.CopyConfig(call.Clients.Config)
	config.Host = "https://" + listener.Addr().String()
	if call.Clients.Kube, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	call.Clients.Config = config
	return func() {
		for {
			select {
			case c := <-conns:
				_ = c.Close()
			default:
				return
			}
		}
	}
}
