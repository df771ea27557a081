package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// noAddress is what the outbound rules of a configuration say.
type noAddress struct{}

func (noAddress) Error() string   { return "dial tcp: refused" }
func (noAddress) Refused() string { return "10.0.0.1 is no public address" }

var now = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// calling is a call of plan ops/roll as account maint-runner, who may do what is said.
func calling(may ...string) executors.Call {
	kube := fake.NewClientset()
	kube.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		right := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).Spec.ResourceAttributes
		allowed := false
		for _, verb := range may {
			allowed = allowed || verb == right.Verb
		}
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: allowed}}, nil
	})
	return executors.Call{Run: "run-a", Path: "batch/take", Attempt: 2, Plan: executors.PlanRef{Namespace: "ops", Account: "maint-runner", Manager: "maint-plan-x"}, Now: now, Clients: executors.Clients{Kube: kube}}
}

// What an answer of an API server means for a step: whether it is over, may be tried again,
// or says nothing yet.
func TestWhatAnErrorMeansForAStep(t *testing.T) {
	scale := api.Action{Verb: "patch", Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Subresource: "scale", Namespace: "shop", Name: "web"}
	const asked = `patch deployments.apps/scale "web" in namespace shop`
	status := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
	}
	away := func(message string, after time.Duration) executors.Outcome {
		return executors.Outcome{Reason: executors.ReasonUnavailable, WakeAt: now.Add(after), Message: "the API server does not answer as it should: " + message}
	}
	refused := func(reason, message string) executors.Outcome {
		return executors.Outcome{State: executors.Failed, Permanent: true, Reason: reason, Message: message}
	}
	gone := apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web")
	terminating := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("it ends"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New(`User "system:serviceaccount:ops:maint-runner" cannot patch resource "deployments"`)) //nolint:staticcheck // as the API server says it
	credentials := &executors.CredentialsError{Outcome: refused(executors.ReasonNoConnection, "the Secret is gone")}
	for _, c := range []struct {
		name string
		err  error
		may  []string
		want executors.Outcome
	}{
		{"a step that says itself how it ends", api.Refuse("Odd", "it is %s", "odd"), nil, refused("Odd", "it is odd")},
		{"the same behind other words", fmt.Errorf("look: %w", api.Refuse("Odd", "it is odd")), nil, refused("Odd", "it is odd")},
		{"no answer", api.Failed(scale, io.ErrUnexpectedEOF), nil, away(asked+": unexpected EOF", 2*time.Second)},
		{"an error that is of no request", io.ErrUnexpectedEOF, nil, away("unexpected EOF", 2*time.Second)},
		{"500", api.Failed(scale, status(500, "etcd is away")), nil, away(asked+": etcd is away", 2*time.Second)},
		{"503", api.Failed(scale, status(503, "no leader")), nil, away(asked+": no leader", 2*time.Second)},
		{"408", api.Failed(scale, status(408, "slow")), nil, away(asked+": slow", 2*time.Second)},
		{"499 is an answer like another", api.Failed(scale, status(499, "closed")), nil, refused(executors.ReasonInvalid, asked+": closed")},
		{"429: no sooner than it wants", api.Failed(scale, apierrors.NewTooManyRequests("busy", 9)), nil, away(asked+": busy", 9*time.Second)},
		{"429: no sooner than we want", api.Failed(scale, apierrors.NewTooManyRequests("busy", 1)), nil, away(asked+": busy", 2*time.Second)},
		{"somebody was faster", api.Failed(scale, apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("modified"))), nil, executors.Outcome{Reason: executors.ReasonConflict, WakeAt: now, Message: asked + ": somebody wrote it meanwhile; looking again"}},
		{"no such object", api.Failed(scale, gone), nil, refused(executors.ReasonNotFound, asked+": there is no such object")},
		{"no such path", api.Failed(scale, status(404, "not found")), nil, refused(executors.ReasonUnknownKind, asked+": the API server serves nothing of that kind")},
		{"no such kind", api.Failed(scale, apierrors.NewGenericServerResponse(404, "patch", schema.GroupResource{}, "", "not found", 0, false)), nil, refused(executors.ReasonUnknownKind, asked+": the API server serves nothing of that kind")},
		{"a wrong field: it can never be right", api.Failed(scale, apierrors.NewInvalid(schema.GroupKind{Kind: "Scale"}, "web", nil)), nil, refused("Invalid", asked+`: Scale "web" is invalid`)},
		{"a request that it does not understand", api.Failed(scale, status(400, "what?")), nil, refused(executors.ReasonInvalid, asked+": what?")},
		{"a namespace that is being deleted is no missing right", api.Failed(scale, terminating), nil, refused("NamespaceTerminating", asked+": the namespace is being deleted")},
		{"a missing right", api.Failed(scale, forbidden), nil, refused(executors.ReasonForbidden, "serviceaccount ops/maint-runner may not "+asked+": grant patch on deployments.apps/scale to it")},
		{"a right that came meanwhile", api.Failed(scale, forbidden), []string{"patch"}, executors.Outcome{Reason: executors.ReasonDenied, WakeAt: now.Add(2 * time.Second), Message: asked + " was denied to serviceaccount ops/maint-runner: " + forbidden.Error()}},
		{"an address that is not allowed", fmt.Errorf("get: %w", noAddress{}), nil, refused(executors.ReasonNoConnection, "the agent's configuration does not allow the address: 10.0.0.1 is no public address")},
		{"credentials that cannot be had", fmt.Errorf("get: %w", credentials), nil, credentials.Outcome},
		{"an answer that is too large names what was asked for", api.Failed(scale, &executors.TooLargeError{What: "more than 1 MiB"}), nil, refused(executors.ReasonTooLarge, asked+": more than 1 MiB")},
		{"the same of no request", &executors.TooLargeError{What: "more than 1 MiB"}, nil, refused(executors.ReasonTooLarge, "more than 1 MiB")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, api.Outcome(t.Context(), calling(c.may...), c.err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, api.Finish(t.Context(), calling(c.may...), api.Done("all of it"), c.err)); diff != "" {
				t.Errorf("at the end (-want +got):\n%s", diff)
			}
		})
	}
	if out := api.Finish(t.Context(), calling(), api.Done("all of it"), nil); out.State != executors.Done || out.Message != "all of it" {
		t.Errorf("without an error: %+v", out)
	}
}

// A pass whose agent stops says nothing of its step, whatever the request's error was.
func TestAnAgentThatStopsFailsNoStep(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for name, err := range map[string]error{
		"a request that was cut off":     api.Failed(api.Action{Verb: "get"}, context.Canceled),
		"a wrong request":                api.Failed(api.Action{Verb: "get"}, apierrors.NewBadRequest("what?")),
		"credentials that cannot be had": &executors.CredentialsError{Outcome: executors.Refuse("x", "y")},
	} {
		if out := api.Outcome(ctx, calling(), err); out.State != executors.NotYet || out.Reason != executors.ReasonUnavailable {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// How people read what was asked for, and which right it takes.
func TestTheWordsOfAnAction(t *testing.T) {
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	for _, c := range []struct {
		action       api.Action
		says, rights string
	}{
		{api.Action{Verb: "list", Resource: pods}, "list pods", "list on pods"},
		{api.Action{Verb: "get", Resource: pods, Name: "a"}, `get pods "a"`, "get on pods"},
		{api.Action{Verb: "create", Resource: pods, Subresource: "eviction", Namespace: "shop", Name: "a"}, `create pods/eviction "a" in namespace shop`, "create on pods/eviction"},
		{api.Action{Verb: "get", Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: "shop"}, "get deployments.apps in namespace shop", "get on deployments.apps"},
	} {
		if c.action.String() != c.says || c.action.Rights() != c.rights {
			t.Errorf("%q %q", c.action, c.action.Rights())
		}
	}
	if api.Failed(api.Action{}, nil) != nil {
		t.Error("no error became one")
	}
	if err := api.Failed(api.Action{Verb: "get", Resource: pods}, io.EOF); !errors.Is(err, io.EOF) || err.Error() != "get pods: EOF" {
		t.Errorf("%v", err)
	}
}

// Of several rights the first that is missing is named.
func TestWhichRightIsMissing(t *testing.T) {
	jobs := api.Action{Verb: "create", Resource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, Namespace: "ops", Name: "x"}
	const named = `serviceaccount ops/maint-runner may not %s jobs.batch "x" in namespace ops: grant %s on jobs.batch to it`
	for _, c := range []struct {
		name string
		may  []string
		err  string
	}{
		{"none", []string{"list", "watch"}, ""},
		{"to list", []string{"watch"}, fmt.Sprintf(named, "list", "list")},
		{"to watch", []string{"list"}, fmt.Sprintf(named, "watch", "watch")},
		{"both: that which comes first", nil, fmt.Sprintf(named, "list", "list")},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := api.MayWatch(t.Context(), calling(c.may...), jobs)
			if said(err) != c.err {
				t.Errorf("%v", err)
			}
		})
	}
	call := calling()
	kube := fake.NewClientset()
	kube.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(io.EOF)
	})
	call.Clients.Kube = kube
	if out := api.Outcome(t.Context(), call, api.MayWatch(t.Context(), call, jobs)); out.State != executors.NotYet || out.Reason != executors.ReasonUnavailable {
		t.Errorf("a review that is not answered says nothing of the right: %+v", out)
	}
	if err := api.NeedNodes(t.Context(), call, []string{"a"}); !apierrors.IsInternalError(err) {
		t.Errorf("of nodes: %v", err)
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestPropertiesOfAnotherType(t *testing.T) {
	call := calling()
	call.Properties = &plan.ScaleProperties{}
	if p, err := api.PropertiesAs[plan.ScaleProperties](call); err != nil || p != call.Properties {
		t.Errorf("%v %v", p, err)
	}
	if _, err := api.PropertiesAs[plan.DrainProperties](call); said(err) != "step batch/take: properties are *plan.ScaleProperties, not *plan.DrainProperties" {
		t.Errorf("%v", err)
	}
	call.Properties = (*plan.ScaleProperties)(nil)
	if _, err := api.PropertiesAs[plan.ScaleProperties](call); err == nil {
		t.Error("none are some")
	}
}

// The names that an attempt derives are the same after a crash, another attempt's are
// others, and each is a label.
func TestNamesThatAnAttemptDerives(t *testing.T) {
	call := calling()
	if got := api.Identity(call); got != "run-a/batch/take#2" {
		t.Errorf("%q", got)
	}
	if got := api.StepName(call); got != "take" {
		t.Errorf("%q", got)
	}
	call.Path = "take"
	if got := api.StepName(call); got != "take" {
		t.Errorf("%q", got)
	}
	long := "a-subject-that-is-so-long-that-it-cannot-stand-in-a-name"
	for name, c := range map[string]struct{ subject, want string }{
		"a short subject stands in the name": {"take", "maint-take-"},
		"a long one is cut":                  {long, "maint-" + long[:46] + "-"},
		"not behind a hyphen":                {long[:45] + "--tail", "maint-" + long[:45] + "-"},
	} {
		got := api.DerivedName(c.subject, "run-a/take#1")
		if len(got) > 63 || got[:len(got)-10] != c.want {
			t.Errorf("%s: %q", name, got)
		}
		if got == api.DerivedName(c.subject, "run-a/take#2") || got != api.DerivedName(c.subject, "run-a/take#1") {
			t.Errorf("%s: %q is of no attempt", name, got)
		}
	}
}

func TestReadingASecret(t *testing.T) {
	call := calling()
	_, err := api.ReadSecret(t.Context(), call, "token")
	out := api.Outcome(t.Context(), call, err)
	if out.Reason != executors.ReasonNotFound || out.Message != `get secrets "token" in namespace ops: there is no such object` {
		t.Errorf("%+v", out)
	}
	call.Clients.Kube = fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "token"}, Data: map[string][]byte{"k": []byte("v")}})
	if s, err := api.ReadSecret(t.Context(), call, "token"); err != nil || string(s.Data["k"]) != "v" {
		t.Errorf("%v %v", s, err)
	}
}

// The API server repeats the whole object where a patch of it does not fit.
func TestErrorsOfSecretsAreToldWithoutTheAPIServersText(t *testing.T) {
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	on := func(r schema.GroupVersionResource) api.Action {
		return api.Action{Verb: "patch", Resource: r, Namespace: "ops", Name: "token"}
	}
	answer := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
	}
	const hidden = " (the API server's text is not shown, as it may repeat what the Secret holds)"
	for name, c := range map[string]struct {
		err  error
		of   schema.GroupVersionResource
		want string
	}{
		"a patch that does not fit":   {answer(422, metav1.StatusReasonInvalid, `patch: Invalid value: "{"data":{"pw":"aHVzaA=="}}"`), secrets, `Invalid patch secrets "token" in namespace ops: Invalid` + hidden},
		"a policy that refuses":       {answer(422, metav1.StatusReasonInvalid, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: aHVzaA=="), secrets, `Denied patch secrets "token" in namespace ops was denied to serviceaccount ops/maint-runner: Invalid` + hidden},
		"an API server in trouble":    {answer(500, metav1.StatusReasonInternalError, "aHVzaA=="), secrets, `Unavailable the API server does not answer as it should: patch secrets "token" in namespace ops: InternalError` + hidden},
		"no reason":                   {answer(400, "", "aHVzaA=="), secrets, `Invalid patch secrets "token" in namespace ops: status 400` + hidden},
		"a conflict stays one":        {answer(409, metav1.StatusReasonConflict, "aHVzaA=="), secrets, `Conflict patch secrets "token" in namespace ops: somebody wrote it meanwhile; looking again`},
		"of other kinds all is told":  {answer(422, metav1.StatusReasonInvalid, "spec.replicas: Invalid value: -1"), schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, `Invalid patch deployments.apps "token" in namespace ops: spec.replicas: Invalid value: -1`},
		"Secrets of other API groups": {answer(422, metav1.StatusReasonInvalid, "spec.a: is wrong"), schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "secrets"}, `Invalid patch secrets.example.org "token" in namespace ops: spec.a: is wrong`},
	} {
		t.Run(name, func(t *testing.T) {
			out := api.Outcome(t.Context(), calling(), api.Failed(on(c.of), c.err))
			if got := out.Reason + " " + out.Message; got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
