package executors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// ran is what a command did in a container of a test.
type ran struct {
	stdout, stderr string
	code           int
	refused        string // the runtime could not even begin
	dies           bool   // the node goes away instead of an end
}

// kubelet is the streaming half of one, on a node of its own: the API server
// opens exec streams to it as to any other.
type kubelet struct {
	node string
	run  func(container string, command []string) ran
	runs atomic.Int64
}

// kubelet joins a node whose pods the test runs.
func (h *house) kubelet(t *testing.T, run func(container string, command []string) ran) *kubelet {
	t.Helper()
	k := &kubelet{node: fmt.Sprintf("%s-%d", h.ns, h.worlds.Add(1)), run: run}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", k.exec)
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.CloseClientConnections)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.node}}
	if _, err := h.kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.kube.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), k.node, metav1.DeleteOptions{})
	})
	th := &thing{h: h, name: k.node, in: h.dynamic.Resource(nodesGVR())}
	th.merge(fmt.Sprintf(`{status: {addresses: [{type: InternalIP, address: 127.0.0.1}], daemonEndpoints: {kubeletEndpoint: {Port: %d}}}}`, port), "status")(t)
	return k
}

// pod is one that runs on the kubelet's node and is Ready.
func (k *kubelet) pod(t *testing.T, h *house, name string, labels, annotations map[string]string) *corev1.Pod {
	t.Helper()
	pod, err := h.kube.CoreV1().Pods(h.ns).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations},
		Spec:       corev1.PodSpec{NodeName: k.node, Containers: []corev1.Container{{Name: "web", Image: "example.org/web:1"}, {Name: "db", Image: "example.org/db:1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.removePod(t, name) })
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	if pod, err = h.kube.CoreV1().Pods(h.ns).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return pod
}

func (h *house) removePod(t *testing.T, name string) {
	t.Helper()
	now := int64(0)
	err := h.kube.CoreV1().Pods(h.ns).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// exec speaks the stream protocol as a kubelet does.
func (k *kubelet) exec(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, remotecommand.SupportedStreamingProtocols); err != nil {
		return
	}
	const wanted = 3 // error, stdout, stderr
	created := make(chan httpstream.Stream, wanted)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		created <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	streams := map[string]httpstream.Stream{}
	for range wanted {
		select {
		case s := <-created:
			streams[s.Headers().Get(corev1.StreamType)] = s
		case <-conn.CloseChan():
			return
		}
	}
	k.runs.Add(1)
	k.answer(streams, k.run(r.PathValue("container"), r.URL.Query()["command"]))
}

func (k *kubelet) answer(streams map[string]httpstream.Stream, result ran) {
	if result.dies {
		return
	}
	_, _ = streams[corev1.StreamTypeStdout].Write([]byte(result.stdout))
	_, _ = streams[corev1.StreamTypeStderr].Write([]byte(result.stderr))
	status := metav1.Status{Status: metav1.StatusSuccess}
	switch {
	case result.refused != "":
		status = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: result.refused}
	case result.code != 0:
		status = metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(result.code)}}},
		}
	}
	b, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	_, _ = streams[corev1.StreamTypeError].Write(b)
	for _, s := range streams {
		_ = s.Close()
	}
}
