package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientstream "k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// heard is what came back from a command.
type heard struct {
	stdout, stderr ending
	begun          bool // the API server opened the stream, so that the command may have run
	err            error
}

// run runs the command to its end. From here on the attempt counts as started, unless the API
// server says that it did not start it.
func (e *Execs) run(ctx context.Context, call executors.Call, p *plan.ExecProperties, at place, token string) executors.Outcome {
	e.disarm(call)
	h := stream(ctx, call, p, at)
	out := api.Done("%s ran in %s", shownCommand(p), at)
	var code exec.CodeExitError
	switch {
	case h.err == nil:
	case errors.As(h.err, &code):
		out = executors.Fail("ExitCode", "%s in %s ended with exit code %d%s", shownCommand(p), at, code.Code, said(h.stderr.String()))
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && h.begun: // it may go on in the container, and must not run twice at once
		return executors.Refuse("TooLong", "%s in %s did not end within the time that the agent holds a stream open; run it as a job", shownCommand(p), at)
	case ctx.Err() != nil:
		return api.Outcome(ctx, call, h.err)
	case !h.begun && neverBegan(h.err):
		e.setArmed(call, token)
		return api.Outcome(ctx, call, api.Failed(streamAction("create", at.pod), refusal(h.err)))
	case again(call) && (!h.begun || cut(h.err)):
		return api.Outcome(ctx, call, h.err) // NotYet: the next pass starts anew
	default:
		out = executors.Fail("Interrupted", "%s in %s: %s; whether the command did its work is not known", shownCommand(p), at, h.err)
		out.Permanent = !again(call)
	}
	out.Outputs = map[string]any{"pod": at.pod.Name, "container": at.container, "stdout": h.stdout.String(), "stderr": h.stderr.String()}
	if h.err == nil || code.Err != nil {
		out.Outputs["exitCode"] = int64(code.Code)
	}
	return out
}

// stream uses the WebSocket protocol only. With SPDY, the older one, a broken connection looks like
// a command that succeeded. Without input, version four does as well as version five, for API
// servers that lack that.
func stream(ctx context.Context, call executors.Call, p *plan.ExecProperties, at place) *heard {
	h := &heard{stdout: ending{n: keptLog}, stderr: ending{n: keptLog}}
	url := call.Clients.Kube.CoreV1().RESTClient().Get().
		Resource("pods").Namespace(at.pod.Namespace).Name(at.pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: at.container, Command: p.Command, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	config := rest.CopyConfig(call.Clients.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &upgrade{next: next, done: &h.begun} })
	executor, err := clientstream.NewWebSocketExecutorForProtocols(config, http.MethodGet, url.String(), remotecommand.StreamProtocolV5Name, remotecommand.StreamProtocolV4Name)
	if err != nil {
		h.err = &httpstream.UpgradeFailureError{Cause: err}
		return h
	}
	h.err = executor.StreamWithContext(ctx, clientstream.StreamOptions{Stdout: &h.stdout, Stderr: &h.stderr})
	return h
}

// upgrade accepts nothing but an opened stream, and notes that it was opened. A proxy between us
// and the API server may answer in its place.
type upgrade struct {
	next http.RoundTripper
	done *bool
}

func (u *upgrade) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := u.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		*u.done = true
		return response, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, longestStatus)) // as much as there is of it
	return nil, &httpstream.UpgradeFailureError{Cause: answered(r, response.StatusCode, text)}
}

// longestStatus is how much of an answer is read that opens no stream, and longestOther how much of
// one is said that is no Status (guesses).
const (
	longestStatus = 64 << 10
	longestOther  = 1 << 10
)

// answered is an answer that opens no stream as an error. A Status keeps its causes: that the account
// does not exist is such an answer, which the agent gives itself.
func answered(r *http.Request, code int, text []byte) error {
	var said metav1.Status
	if json.Unmarshal(text, &said) == nil && said.Kind == "Status" && said.Status == metav1.StatusFailure {
		return &apierrors.StatusError{ErrStatus: said}
	}
	return apierrors.NewGenericServerResponse(code, r.Method, corev1.Resource("pods"), "", string(text[:min(len(text), longestOther)]), 0, true)
}

// neverBegan says that the request for a stream was refused, or never sent.
func neverBegan(err error) bool {
	var dial *net.OpError
	return httpstream.IsUpgradeFailure(err) || errors.As(err, &dial) && dial.Op == "dial"
}

// refusal is what the API server said of a request for a stream.
func refusal(err error) error {
	var refused *httpstream.UpgradeFailureError
	if errors.As(err, &refused) {
		return fmt.Errorf("open the stream: %w", refused.Cause)
	}
	return err
}

// cut says that a stream broke off, without a result of the command.
func cut(err error) bool {
	var closed *websocket.CloseError
	var network net.Error
	return errors.As(err, &closed) || errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF)
}
