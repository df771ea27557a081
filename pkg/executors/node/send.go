package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Limits of requests (guesses).
const (
	perNode        = 10               // requests in flight for one node
	overall        = 50               // requests in flight for all nodes
	perBudget      = 8                // of them evictions under one budget: docs/benchmarks.md, "Draining"
	requestTimeout = 30 * time.Second // longer than the API server's own tries on conflicts
	firstRetry     = 500 * time.Millisecond
	lastRetry      = 30 * time.Second
	mostRetryAfter = time.Minute // of what a server asks for
)

// deleteOptions are the delete options for one pod and no other of its name.
func deleteOptions(p drain.Pod, grace *document.Duration) *metav1.DeleteOptions {
	uid := types.UID(p.UID)
	o := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if grace != nil {
		seconds := int64(grace.Duration / time.Second)
		o.GracePeriodSeconds = &seconds
	}
	return o
}

// evict asks once: the client's own retries, which follow Retry-After unseen, are switched off.
func evict(ctx context.Context, kube kube.Interface, p drain.Pod, grace *document.Duration) error {
	body := &policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: deleteOptions(p, grace),
	}
	return kube.CoreV1().RESTClient().Post().Namespace(p.Namespace).Resource("pods").Name(p.Name).SubResource("eviction").
		Body(body).MaxRetries(0).Do(ctx).Error()
}

// deletePod deletes regardless of budgets.
func deletePod(ctx context.Context, kube kube.Interface, p drain.Pod, grace *document.Duration) error {
	return kube.CoreV1().RESTClient().Delete().Namespace(p.Namespace).Resource("pods").Name(p.Name).
		Body(deleteOptions(p, grace)).MaxRetries(0).Do(ctx).Error()
}

// answer is what the answer to a request means for its pod.
type answer struct {
	drain.Answer
	why       string
	forbidden bool
	unclear   bool // it may have been accepted
	after     time.Duration
}

// notSentError says that a request was not made.
type notSentError struct{}

// Error is error's.
func (notSentError) Error() string { return "not asked: the time of the drain is over" }

// answerOf reads an answer. Without a status, the request may have been accepted and its answer
// lost.
func answerOf(err error, p drain.Pod, verb string, tries int) answer {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return answer{Answer: drain.Accepted}
	case errors.Is(err, notSentError{}):
		return failed(err, tries, answer{why: err.Error()})
	case !errors.As(err, &status):
		return failed(err, tries, answer{unclear: true, why: "the API server does not answer: " + document.Cut(err.Error(), 200)})
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		a := failed(err, tries, answer{why: document.Cut(err.Error(), 200)})
		a.Answer = drain.OverBudget
		return a
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return failed(err, tries, answer{why: "the namespace " + p.Namespace + " is being deleted"})
	case apierrors.IsForbidden(err):
		return failed(err, tries+4, answer{
			forbidden: true,
			why:       fmt.Sprintf("not allowed to %s in namespace %s: %s", verb, p.Namespace, document.Cut(err.Error(), 200)),
		})
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return failed(err, tries, answer{why: "it is gone, or another pod has its name"})
	}
	code := status.Status().Code
	return failed(err, tries, answer{unclear: code >= http.StatusInternalServerError, why: fmt.Sprintf("the API server said %d: %s", code, document.Cut(err.Error(), 200))})
}

// rightOf is the right for a request, for an access review.
func rightOf(verb, namespace string) *authorizationv1.ResourceAttributes {
	verb, resource, _ := strings.Cut(verb, " ")
	resource, subresource, _ := strings.Cut(resource, "/")
	return &authorizationv1.ResourceAttributes{Verb: verb, Resource: resource, Subresource: subresource, Namespace: namespace}
}

// failed says when to ask again: with growing, jittered pauses, and not before the server allows
// it.
func failed(err error, tries int, a answer) answer {
	a.Answer = drain.Failed
	wait := min(firstRetry<<min(tries, 10), lastRetry)
	a.after = wait/2 + rand.N(wait)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		a.after = max(a.after, min(time.Duration(seconds)*time.Second, mostRetryAfter))
	}
	return a
}
