package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// client-go pauses after an error that nobody handles, by a clock that is of no bubble.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// host is a cluster in memory that evicts as an API server does: it compares uids, asks
// the budgets, and lets pods shut down before they are gone. It stands in a bubble.
type host struct {
	*agenttest.Cluster
	*testing.T
	kube *kubernetes.Clientset

	mu       sync.Mutex
	shutdown time.Duration         // how long pods take to end
	answers  map[string][]answered // to the next requests, by "evict shop/web-1"
	asked    []string              // "evict shop/web-1", "delete shop/web-1 grace 5"
	at       []time.Time           // of each
	hidden   string                // namespace whose pods may not be listed
	unwatch  bool                  // no pods may be watched
}

// answered is what becomes of one request: a refusal, or done and not heard.
type answered struct {
	refusal *apierrors.StatusError
	lost    bool // the answer, after it was done
	away    bool // nothing was done
}

func newHost(t *testing.T, objects ...metav1.Object) *host {
	h := &host{Cluster: agenttest.New(t), T: t, shutdown: 2 * time.Second, answers: map[string][]answered{}}
	h.Serve(
		agenttest.Kind{Group: "apps", Version: "v1", Kind: "ReplicaSet", Resource: "replicasets", Namespaced: true},
		agenttest.Kind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler", Resource: "horizontalpodautoscalers", Namespaced: true},
		agenttest.Kind{Version: "v1", Kind: "PersistentVolumeClaim", Resource: "persistentvolumeclaims", Namespaced: true},
		agenttest.Kind{Group: "storage.k8s.io", Version: "v1", Kind: "VolumeAttachment", Resource: "volumeattachments"},
	)
	h.put(objects...)
	var err error
	h.kube, err = kubernetes.NewForConfig(&rest.Config{Host: "http://cluster.test", Transport: h, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// RoundTrip answers evictions and deletions of pods, and hands on all else.
func (h *host) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.unwatch && r.URL.Query().Has("watch") && strings.HasSuffix(r.URL.Path, "/pods") {
		return h.status(forbids("watch", "pods")), nil
	}
	if r.URL.Query().Get("sendInitialEvents") != "" {
		return h.status(apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)), nil
	}
	if h.hidden != "" && strings.HasSuffix(r.URL.Path, "/namespaces/"+h.hidden+"/pods") {
		return h.status(forbids("list", "pods")), nil
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // api v1 namespaces shop pods web-1 eviction
	evicts, deletes := len(path) == 7 && path[6] == "eviction", len(path) == 6 && path[4] == "pods" && r.Method == http.MethodDelete
	if !evicts && !deletes {
		return h.Cluster.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var options metav1.DeleteOptions
	verb := "delete"
	if evicts {
		var e policyv1.Eviction
		if err := json.Unmarshal(body, &e); err != nil {
			return nil, err
		}
		verb, options = "evict", *e.DeleteOptions
	} else if err := json.Unmarshal(body, &options); err != nil {
		return nil, err
	}
	return h.answer(verb, path[3], path[5], options)
}

func (h *host) answer(verb, namespace, name string, options metav1.DeleteOptions) (*http.Response, error) {
	said := verb + " " + namespace + "/" + name
	a := h.next(said, options)
	switch {
	case a.away:
		return nil, io.ErrUnexpectedEOF
	case a.refusal != nil:
		return h.status(a.refusal), nil
	}
	if refusal := h.remove(verb, namespace, name, options); refusal != nil {
		return h.status(refusal), nil
	}
	if a.lost {
		return nil, io.ErrUnexpectedEOF
	}
	return h.status(&apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated}}), nil
}

// next notes a request, and takes what a test has in store for it.
func (h *host) next(said string, options metav1.DeleteOptions) (a answered) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if left := h.answers[said]; len(left) > 0 {
		a, h.answers[said] = left[0], left[1:]
	}
	if g := options.GracePeriodSeconds; g != nil {
		said += fmt.Sprintf(" grace %d", *g)
	}
	h.asked, h.at = append(h.asked, said), append(h.at, time.Now())
	return a
}

// remove has a pod go, if its uid and its budget let it.
func (h *host) remove(verb, namespace, name string, options metav1.DeleteOptions) *apierrors.StatusError {
	pod := h.Get("pods", namespace, name)
	if pod == nil {
		return apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	if options.Preconditions == nil || options.Preconditions.UID == nil || *options.Preconditions.UID != pod.GetUID() {
		return apierrors.NewConflict(corev1.Resource("pods"), name, errors.New("the UID in the precondition does not match"))
	}
	if verb == "evict" {
		if refusal := h.spend(namespace, pod); refusal != nil {
			return refusal
		}
	}
	h.end(namespace, name)
	return nil
}

// end marks a pod as deleted, and takes it away when it has shut down.
func (h *host) end(namespace, name string) {
	h.Delete("pods", namespace, name)
	time.AfterFunc(h.shutdown, func() { h.DeleteAtOnce("pods", namespace, name) })
}

// spend takes of the budget that covers a pod.
func (h *host) spend(namespace string, pod *unstructured.Unstructured) *apierrors.StatusError {
	if phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase"); phase == string(corev1.PodPending) {
		return nil
	}
	for _, key := range h.Names("poddisruptionbudgets") {
		ns, name, _ := strings.Cut(key, "/")
		budget := h.Get("poddisruptionbudgets", ns, name)
		app, _, _ := unstructured.NestedString(budget.Object, "spec", "selector", "matchLabels", "app")
		if ns != namespace || app != pod.GetLabels()["app"] {
			continue
		}
		allowed, _, _ := unstructured.NestedInt64(budget.Object, "status", "disruptionsAllowed")
		if allowed <= 0 {
			return overBudget()
		}
		h.Edit("poddisruptionbudgets", ns, name, func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, allowed-1, "status", "disruptionsAllowed")
			_ = unstructured.SetNestedField(u.Object, time.Now().UTC().Format(time.RFC3339), "status", "disruptedPods", pod.GetName())
		})
	}
	return nil
}

func overBudget() *apierrors.StatusError {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget needs 1 healthy pods"}}
	return err
}

func forbids(verb, resource string) *apierrors.StatusError {
	return apierrors.NewForbidden(corev1.Resource(resource), "web-1", fmt.Errorf("User %q cannot %s resource %q", "system:serviceaccount:ops:maint-runner", verb, resource)) //nolint:staticcheck // as the API server says it
}

func (h *host) status(err *apierrors.StatusError) *http.Response {
	s := err.ErrStatus
	s.Kind, s.APIVersion = "Status", "v1"
	body, failed := json.Marshal(s)
	if failed != nil {
		h.Error(failed)
	}
	return &http.Response{
		StatusCode: int(s.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

func (h *host) put(objects ...metav1.Object) {
	h.T.Helper()
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Pod:
			h.Put(o)
		case *policyv1.PodDisruptionBudget:
			h.Put(o)
		case *appsv1.DaemonSet:
			h.Put(o)
		case *appsv1.ReplicaSet:
			h.Put(o)
		case *appsv1.Deployment:
			h.Put(o)
		default:
			h.Fatalf("a host of %T", o)
		}
	}
}

// requests are those of evictions and deletions so far.
func (h *host) requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

// drainer is one whose clock is the bubble's.
func (h *host) drainer(edits ...func(*Config)) *Drainer {
	c := Config{Reads: h.kube}
	for _, edit := range edits {
		edit(&c)
	}
	return New(h.Context(), c)
}

// order asks for node a.
func (h *host) order(o drain.Options) executors.DrainOrder {
	return executors.DrainOrder{Node: "a", NodeUID: "uid-a", By: mine, Options: o, Since: time.Now(), Manager: "maint-plan-x", Clients: executors.Clients{Kube: h.kube}}
}

// inBubble runs a test on the clock of a bubble.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// podNamed is a Ready pod of ReplicaSet web on node a, in namespace shop.
func podNamed(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"}, Annotations: map[string]string{},
			Finalizers: []string{"test/kubelet"}, OwnerReferences: []metav1.OwnerReference{ownedBy("ReplicaSet", "web")},
		},
		Spec:   corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func ownedBy(kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: new(true)}
}

func of(kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{ownedBy(kind, name)} }
}

func alone(p *corev1.Pod) { p.OwnerReferences = nil }

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func drained(how string) func(*corev1.Pod) { return annotated(annotations.DrainHow, how) }

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func withVolume(v corev1.Volume) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, v) }
}

func scratch() func(*corev1.Pod) {
	return withVolume(corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
}

// budget covers the pods with label app=web; so many may go.
func budget(allowed int32, edits ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, MinAvailable: new(intstr.FromInt32(1)),
		},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: allowed, CurrentHealthy: 1 + allowed, DesiredHealthy: 1, ExpectedPods: 3},
	}
	for _, edit := range edits {
		edit(b)
	}
	return b
}

// allow is what the disruption controller writes when so many more pods are healthy.
func (h *host) allow(n int64) {
	h.Edit("poddisruptionbudgets", "shop", "web", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, n, "status", "disruptionsAllowed")
		_ = unstructured.SetNestedField(u.Object, n+1, "status", "currentHealthy")
		unstructured.RemoveNestedField(u.Object, "status", "disruptedPods")
	})
}

func daemonSet(name string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}
