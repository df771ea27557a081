// Package api is how executors use the API server: the object that is meant, the request, and what
// an answer means for a step.
package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// RetryDelay is how long a step waits for an API server that does not answer (a guess: short
// compared with a step, long compared with a request).
const RetryDelay = 2 * time.Second

// Action is one request in the terms of RBAC.
type Action struct {
	Verb        string
	Resource    schema.GroupVersionResource
	Subresource string
	Namespace   string // empty for cluster-scoped objects
	Name        string
}

// Rights describes the right that an action needs, for people: patch deployments.apps/scale.
func (a Action) Rights() string { return a.Verb + " on " + a.resource() }

func (a Action) resource() string {
	s := a.Resource.GroupResource().String()
	if a.Subresource != "" {
		s += "/" + a.Subresource
	}
	return s
}

func (a Action) String() string {
	s := a.Verb + " " + a.resource()
	if a.Name != "" {
		s += fmt.Sprintf(" %q", a.Name)
	}
	if a.Namespace != "" {
		s += " in namespace " + a.Namespace
	}
	return s
}

// Error is the error of an action.
type Error struct {
	Action Action
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Action, e.Err) }

// Unwrap is the API server's answer.
func (e *Error) Unwrap() error { return e.Err }

// Failed wraps an error with its action, of Secrets without the API server's text; nil stays nil.
func Failed(a Action, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Action: a, Err: executors.Unsaid(a.Resource.GroupResource(), err)}
}

// Refused is an error that already has the outcome of the step.
type Refused struct{ Outcome executors.Outcome }

func (r *Refused) Error() string { return r.Outcome.Message }

// Refuse is the error of a step that no other attempt can mend.
func Refuse(reason, format string, args ...any) error {
	return &Refused{Outcome: executors.Refuse(reason, format, args...)}
}

// IsUnknownKind says that the cluster has no such kind.
func IsUnknownKind(err error) bool {
	var refused *Refused
	return errors.As(err, &refused) && refused.Outcome.Reason == executors.ReasonUnknownKind
}

// Outcome is what an error means for the step. Only answers about the request itself are failures:
// when the API server is away, busy or broken, after a conflict, and when the agent stops, the step
// is NotYet.
func Outcome(ctx context.Context, call executors.Call, err error) executors.Outcome {
	var refused *Refused
	var request *Error
	var credentials *executors.CredentialsError
	var late *executors.LateError
	large, isTooLarge := executors.TooLarge(err)
	switch {
	case errors.As(err, &late):
		out := Waiting(nil, "%s", late)
		out.WakeAt = late.Until
		return out
	case errors.As(err, &refused):
		return refused.Outcome
	case errors.As(err, &credentials) && ctx.Err() == nil:
		return credentials.Outcome
	case isTooLarge:
		if errors.As(err, &request) {
			large.Message = document.Cut(request.Action.String()+": "+large.Message, document.MaxMessage)
		}
		return large
	case notAllowed(err) != "":
		return executors.Refuse(executors.ReasonNoConnection, "%s", notAllowed(err))
	case ctx.Err() != nil || !errors.As(err, &request):
		return unavailable(call, err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return executors.Refuse("NamespaceTerminating", "%s: the namespace is being deleted", request.Action)
	}
	if out, is := executors.Refused(ctx, call.Clients.Kube, call.Now, asked(call, request.Action), request.Err); is {
		return out
	}
	switch {
	case transient(err):
		return unavailable(call, err)
	case apierrors.IsConflict(err):
		return Again(call, executors.ReasonConflict, "%s: somebody wrote it meanwhile; looking again", request.Action)
	case IsUnserved(err):
		return executors.Refuse(executors.ReasonUnknownKind, "%s: the API server serves nothing of that kind", request.Action)
	case apierrors.IsNotFound(err):
		return executors.Refuse(executors.ReasonNotFound, "%s: there is no such object", request.Action)
	}
	return executors.Refuse(reasonOf(err), "%s", err)
}

// notAllowed is the outcome where the outbound rules refuse an address: waiting does not help.
func notAllowed(err error) string {
	var refusal interface{ Refused() string }
	if errors.As(err, &refusal) {
		return "the agent's configuration does not allow the address: " + refusal.Refused()
	}
	return ""
}

// Again is NotYet, to be called again at once.
func Again(call executors.Call, reason, format string, args ...any) executors.Outcome {
	o := executors.Fail(reason, format, args...)
	o.State, o.WakeAt = executors.NotYet, call.Now
	return o
}

func unavailable(call executors.Call, err error) executors.Outcome {
	o := Again(call, executors.ReasonUnavailable, "the API server does not answer as it should: %s", err)
	o.WakeAt = call.Now.Add(max(RetryDelay, executors.RetryAfter(err)))
	return o
}

// transient says that the same request may succeed later. An error without a status means that the
// request never reached the API server, or that its answer was lost.
func transient(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests ||
		code == http.StatusRequestTimeout
}

func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return executors.ReasonInvalid
}

// asked is the action of a refusal, for the review of the right.
func asked(call executors.Call, a Action) executors.Asked {
	return executors.Asked{
		As: call.User(), Right: a.right(),
		Missing: missing(call, a).Outcome.Message,
		Denied:  fmt.Sprintf("%s was denied to %s", a, call.Actor()),
	}
}

func (a Action) right() authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Verb: a.Verb, Group: a.Resource.Group, Version: a.Resource.Version, Resource: a.Resource.Resource,
		Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name,
	}
}

func missing(call executors.Call, a Action) *Refused {
	return &Refused{Outcome: executors.Refuse(executors.ReasonForbidden,
		"%s may not %s: grant %s to it", call.Actor(), a, a.Rights())}
}

// May asks the API server, as the plan's account, whether it has a right. Everybody may ask that
// about themselves.
func May(ctx context.Context, call executors.Call, a Action) (bool, error) {
	may, err := executors.Allowed(ctx, call.Clients.Kube, a.right())
	if err != nil {
		return false, Failed(Action{Verb: "create", Resource: authorizationv1.SchemeGroupVersion.WithResource("selfsubjectaccessreviews")}, err)
	}
	return may, nil
}

// MayWatch is nil when the account may list and watch one object, else the refusal that names the
// missing right. Ask before handing a Watch to the agent: a watch that is refused would wake
// nobody.
func MayWatch(ctx context.Context, call executors.Call, a Action) error {
	list, watch := a, a
	list.Verb, watch.Verb = "list", "watch"
	return Need(ctx, call, list, watch)
}

// Need is nil when the account has all of these rights, else the refusal that names the first that
// is missing.
func Need(ctx context.Context, call executors.Call, actions ...Action) error {
	for _, a := range actions {
		may, err := May(ctx, call, a)
		if err != nil {
			return err
		}
		if !may {
			return missing(call, a)
		}
	}
	return nil
}

// NeedNodes is nil when the account may change nodes of these names, else the refusal. A step asks
// before it waits for its turn: otherwise an account that may only read nodes would take turns for
// nothing.
func NeedNodes(ctx context.Context, call executors.Call, names []string) error {
	if call.DryRun || len(names) == 0 {
		return nil
	}
	change := Action{Verb: "patch", Resource: corev1.SchemeGroupVersion.WithResource("nodes")}
	if all, err := May(ctx, call, change); all || err != nil {
		return err
	}
	for _, name := range names {
		change.Name = name
		if err := Need(ctx, call, change); err != nil {
			return err
		}
	}
	return nil
}

// PropertiesAs is a call's properties as the type of its step type.
func PropertiesAs[T any](call executors.Call) (*T, error) {
	if props, ok := call.Properties.(*T); ok && props != nil {
		return props, nil
	}
	return nil, Refuse(executors.ReasonInvalid, "step %s: properties are %T, not %T", call.Path, call.Properties, new(T))
}

// Change is an entry of the run's list of changed resources.
func (o Object) Change(what string) run.Change {
	return run.Change{
		APIVersion: o.Kind.GroupVersion().String(), Kind: o.Kind.Kind,
		Namespace: o.Namespace, Name: o.Name, What: document.Cut(what, 256),
	}
}
