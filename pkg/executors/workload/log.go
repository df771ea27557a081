package workload

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
)

// How much of a log is read and kept, and how long a kubelet may take: the log is optional, and
// must not hold up the run.
const (
	keptLog    = 4 << 10
	readLog    = 1 << 20
	readLines  = int64(500)
	logTimeout = 5 * time.Second
)

var errNoPod = errors.New("its pods are gone") //nolint:gochecknoglobals // a sentinel

// logTail is the end of the newest pod's log.
func logTail(ctx context.Context, call executors.Call, job *batchv1.Job) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	pods := call.Clients.Kube.CoreV1().Pods(job.Namespace)
	podAction := api.Action{Verb: "list", Resource: corev1.SchemeGroupVersion.WithResource("pods"), Namespace: job.Namespace}
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + string(job.UID)})
	if err != nil {
		return "", api.Failed(podAction, err)
	}
	if len(list.Items) == 0 {
		return "", errNoPod
	}
	pod := newest(list.Items)
	podAction.Verb, podAction.Subresource, podAction.Name = "get", "log", pod.Name
	lines := readLines
	stream, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{Container: spoke(pod), TailLines: &lines}).Stream(ctx)
	if err != nil {
		return "", api.Failed(podAction, err)
	}
	defer stream.Close()
	text, err := tail(io.LimitReader(stream, readLog), keptLog)
	return text, api.Failed(podAction, err)
}

func newest(pods []corev1.Pod) corev1.Pod {
	return slices.MaxFunc(pods, func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
}

// spoke is the container whose log is kept: the first that failed, else the first.
func spoke(pod corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Terminated != nil && s.State.Terminated.ExitCode != 0 {
			return s.Name
		}
	}
	if len(pod.Spec.Containers) == 0 { // as another cluster may send it
		return ""
	}
	return pod.Spec.Containers[0].Name
}

// tail are the last n bytes of a reader.
func tail(r io.Reader, n int) (string, error) {
	e := ending{n: n}
	_, err := io.Copy(&e, r)
	return e.String(), err
}

// ending keeps the last n bytes that are written to it. It is safe for concurrent use.
type ending struct {
	n    int
	mu   sync.Mutex
	kept []byte
}

// Write never fails.
func (e *ending) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept = append(e.kept, p...)
	if over := len(e.kept) - e.n; over > 0 {
		e.kept = slices.Clone(e.kept[over:])
	}
	return len(p), nil
}

// String is what was kept, with a mark in place of a character that was cut.
func (e *ending) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.ToValidUTF8(string(e.kept), "\uFFFD")
}
