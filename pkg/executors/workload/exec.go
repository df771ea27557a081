package workload

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Execs executes the step type exec: a command in a container of an existing pod, with the exec
// subresource. It needs get on pods for a pod by name, list for one by labels, and create and get
// on pods/exec: the stream is a WebSocket, which begins with a GET.
//
// What a command did cannot be asked afterwards. So its start is recorded before it, and an attempt
// that was started by an agent which did not see its end is Interrupted, unless the step says
// onRestart: retry.
//
// One case cannot be detected: when the connection between the API server and the node breaks, the
// API server itself reports success.
type Execs struct {
	mu    sync.Mutex
	armed map[string]string // step of a run → the token of the attempt that is recorded and not started yet
}

// NewExecs executes only attempts that it recorded itself: those that another process recorded
// count as interrupted.
func NewExecs() *Execs { return &Execs{armed: map[string]string{}} }

// attempt is what is remembered before the command starts. Only the process that wrote it knows the
// token, and only until the command starts.
type attempt struct {
	Attempt   int    `json:"attempt"`
	Token     string `json:"token"`
	UID       string `json:"uid"`
	Container string `json:"container"`
}

// place is where a command runs.
type place struct {
	pod       *corev1.Pod
	container string
}

func (p place) String() string { return "Pod/" + p.pod.Name + " container " + p.container }

// Pass records the attempt, or runs the command to its end.
func (e *Execs) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	out, err := e.pass(ctx, call)
	return api.Finish(ctx, call, out, err)
}

func (e *Execs) pass(ctx context.Context, call executors.Call) (executors.Outcome, error) {
	p, err := api.PropertiesAs[plan.ExecProperties](call)
	if err != nil {
		return executors.Outcome{}, err
	}
	if len(p.Command) == 0 || call.Clients.Config == nil {
		return executors.Outcome{}, api.Refuse(executors.ReasonInvalid, "command is empty, or this program cannot stream into containers (configured: %t)", call.Clients.Config != nil)
	}
	was := attemptBefore(call)
	armed := was != nil && e.isArmed(call, was.Token)
	if was != nil && !armed && !again(call) {
		return executors.Outcome{}, api.Refuse("Interrupted", "attempt %d began and nobody saw its end: whether the command did its work is not known; write onRestart: retry if it may run twice", call.Attempt)
	}
	at, err := pick(ctx, call, p)
	if err != nil {
		return executors.Outcome{}, err
	}
	if call.DryRun {
		return api.Done("dry run: would run %s in %s", shownCommand(p), at), nil
	}
	if !armed || was.UID != string(at.pod.UID) || was.Container != at.container {
		return e.arm(ctx, call, at)
	}
	executors.ReservationOf(ctx).Release() // of the pods that it was picked from: the command may take long
	return e.run(ctx, call, p, at, was.Token), nil
}

// again says that an attempt may run a second time.
func again(call executors.Call) bool { return call.OnRestart == "retry" }

// attemptBefore is what an earlier pass of this attempt recorded, if there is one.
func attemptBefore(call executors.Call) *attempt {
	var a attempt
	if json.Unmarshal(call.Recorded.Memory, &a) != nil || a.Attempt != call.Attempt {
		return nil
	}
	return &a
}

// arm checks whether the command can run at all, and has the attempt recorded.
func (e *Execs) arm(ctx context.Context, call executors.Call, at place) (executors.Outcome, error) {
	if err := api.Need(ctx, call, streamAction("create", at.pod), streamAction("get", at.pod)); err != nil {
		return executors.Outcome{}, err
	}
	a := attempt{Attempt: call.Attempt, Token: rand.Text(), UID: string(at.pod.UID), Container: at.container}
	b, err := json.Marshal(a)
	if err != nil {
		return executors.Outcome{}, api.Refuse(executors.ReasonInvalid, "remember the attempt in %s: %s", at, err)
	}
	e.setArmed(call, a.Token)
	return executors.Outcome{State: executors.Record, Memory: b, Message: "about to run a command in " + at.String()}, nil
}

func (e *Execs) setArmed(call executors.Call, token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.armed[armKey(call)] = token
}

func (e *Execs) isArmed(call executors.Call, token string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.armed[armKey(call)] == token
}

func (e *Execs) disarm(call executors.Call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.armed, armKey(call))
}

// armKey includes the namespace: runs of two namespaces may share a name.
func armKey(call executors.Call) string { return call.Plan.Namespace + "/" + call.IdempotencyKey() }

func streamAction(verb string, pod *corev1.Pod) api.Action {
	a := podAction(verb, pod.Namespace, pod.Name)
	a.Subresource = "exec"
	return a
}

func podAction(verb, namespace, name string) api.Action {
	return api.Action{Verb: verb, Resource: corev1.SchemeGroupVersion.WithResource("pods"), Namespace: namespace, Name: name}
}

func shownCommand(p *plan.ExecProperties) string {
	return document.Cut(fmt.Sprintf("%q", p.Command), 300)
}

// said is the last line of a command's output, for a message.
func said(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return ": " + document.Cut(last, 300)
	}
	return ""
}
