package executors_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

const (
	agentUser  = "system:serviceaccount:maint-system:maint-agent"
	runnerUser = "system:serviceaccount:shop:maint-runner"
)

func answer(code int32, message string) error {
	return fmt.Errorf("read: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}})
}

func cannot(user string) error {
	return answer(http.StatusForbidden, `pods is forbidden: User "`+user+`" cannot list resource "pods" in API group "" in the namespace "shop"`)
}

// What a refusal means for a step is asked for a second time: a role that is not read yet,
// or an agent that may not impersonate, are no missing right of the account.
func TestWhatARefusalMeansForAStep(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	const missing, denied = "runner may not list pods: grant list on pods to it", "list pods was denied to runner"
	credentials := &executors.CredentialsError{Outcome: executors.Refuse(executors.ReasonNoConnection, "the Secret is gone")}
	notYet := func(reason string, err error) executors.Outcome {
		return executors.Outcome{Reason: reason, Message: denied + ": " + err.Error(), WakeAt: now.Add(2 * time.Second)}
	}
	forGood := func(message string) executors.Outcome {
		return executors.Outcome{State: executors.Failed, Permanent: true, Reason: executors.ReasonForbidden, Message: message}
	}
	quota := answer(http.StatusForbidden, `pods "a" is forbidden: exceeded quota: few`)
	for _, c := range []struct {
		name     string
		as       string
		err      error
		allowed  bool
		reviewed error // what became of the review
		want     executors.Outcome
		refused  bool
	}{
		{"no refusal at all", runnerUser, answer(http.StatusNotFound, "not found"), false, nil, executors.Outcome{}, false},
		{"an API server that does not answer", runnerUser, io.ErrUnexpectedEOF, false, nil, executors.Outcome{}, false},
		{"the right is missing, says a review, too", runnerUser, cannot(runnerUser), false, nil, forGood(missing), true},
		{"the account has the right by now", runnerUser, cannot(runnerUser), true, nil, notYet(executors.ReasonDenied, cannot(runnerUser)), true},
		{"the review is refused to the account: it lacks that right, too", runnerUser, cannot(runnerUser), false, cannot(runnerUser), forGood(missing), true},
		{"the account went between the two", runnerUser, cannot(runnerUser), false, &apierrors.StatusError{ErrStatus: executors.NoAccount("it is gone")}, executors.Refuse(executors.ReasonNoAccount, "it is gone"), true},
		{"the review is refused to the agent", runnerUser, cannot(runnerUser), false, cannot(agentUser), notYet(executors.ReasonForbidden, cannot(runnerUser)), true},
		{"the review is not answered", runnerUser, cannot(runnerUser), false, io.ErrUnexpectedEOF, notYet(executors.ReasonForbidden, cannot(runnerUser)), true},
		{"the agent may not impersonate", runnerUser, cannot(agentUser), false, nil, notYet(executors.ReasonForbidden, cannot(agentUser)), true},
		{"a quota is used up: another attempt may do", runnerUser, quota, false, nil, executors.Outcome{State: executors.Failed, Reason: executors.ReasonDenied, Message: denied + ": " + quota.Error()}, true},
		{"credentials of another cluster: its name is in the words", executors.UnknownUser, cannot("somebody"), false, nil, forGood(missing + ": " + cannot("somebody").Error()), true},
		{"credentials of another cluster, whose review is refused as well", executors.UnknownUser, cannot("somebody"), false, cannot("somebody"), forGood(missing + ": " + cannot("somebody").Error()), true},
		{"credentials of another cluster that may by now", executors.UnknownUser, cannot("somebody"), true, nil, notYet(executors.ReasonDenied, cannot("somebody")), true},
		{"credentials of another cluster, and the review is not answered", executors.UnknownUser, cannot("somebody"), false, io.ErrUnexpectedEOF, notYet(executors.ReasonForbidden, cannot("somebody")), true},
		{"credentials that cannot be had say what is wrong with them", runnerUser, fmt.Errorf("list: %w", credentials), false, nil, credentials.Outcome, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			kube := fake.NewClientset()
			kube.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
				if got := review.Spec.ResourceAttributes; got.Verb != "list" || got.Resource != "pods" || got.Namespace != "shop" {
					t.Errorf("asked for %+v", got)
				}
				if c.reviewed != nil {
					return true, nil, c.reviewed
				}
				return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: c.allowed}}, nil
			})
			asked := executors.Asked{As: c.as, Right: authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "shop"}, Missing: missing, Denied: denied}
			got, refused := executors.Refused(t.Context(), kube, now, asked, c.err)
			if diff := cmp.Diff(c.want, got); diff != "" || refused != c.refused {
				t.Errorf("refused %t (-want +got):\n%s", refused, diff)
			}
		})
	}
}

// Words of the authorizer without both of their parts are somebody else's.
func TestARefusalWithHalfOfTheAuthorizersWords(t *testing.T) {
	for message, want := range map[string]executors.Refusal{
		`User "` + runnerUser + `" cannot list`:                                          executors.RefusedAccount,
		`User "` + runnerUser + `" may not list`:                                         executors.RefusedByAdmission,
		`the quota cannot be met`:                                                        executors.RefusedByAdmission,
		`ValidatingAdmissionPolicy 'p' says: User "` + agentUser + `" cannot do this`:    executors.RefusedAgent,
		`admission webhook "h.example.org" is slow: User "` + runnerUser + `" cannot do`: executors.RefusedAccount,
	} {
		if got := executors.RefusalOf(answer(http.StatusForbidden, message), runnerUser); got != want {
			t.Errorf("%s: %d, want %d", message, got, want)
		}
	}
}

func TestHowLongAnAPIServerIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want time.Duration
	}{
		"it does not say":            {answer(http.StatusTooManyRequests, "busy"), 0},
		"no answer":                  {io.EOF, 0},
		"a few seconds":              {apierrors.NewTooManyRequests("busy", 7), 7 * time.Second},
		"an hour is not waited for":  {apierrors.NewTooManyRequests("busy", 3600), time.Minute},
		"a minute is":                {apierrors.NewTooManyRequests("busy", 60), time.Minute},
		"an answer of another cause": {apierrors.NewInternalError(io.EOF), 0},
	} {
		if got := executors.RetryAfter(c.err); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWhenALookThatFailedIsMadeAgain(t *testing.T) {
	banner := schema.GroupResource{Resource: "configmaps"}
	for name, c := range map[string]struct {
		err  error
		want time.Duration
	}{
		"somebody wrote between read and dry run": {fmt.Errorf("patch: %w", apierrors.NewConflict(banner, "banner", errors.New("the object has been modified"))), 2 * time.Second},
		"no answer":                        {io.EOF, 10 * time.Second},
		"the API server is at fault":       {apierrors.NewInternalError(io.EOF), 10 * time.Second},
		"the API server is busy":           {answer(http.StatusTooManyRequests, "busy"), 10 * time.Second},
		"the API server says for how long": {apierrors.NewTooManyRequests("busy", 45), 45 * time.Second},
		"its account may not look":         {cannot(runnerUser), time.Minute},
		"there is no such kind":            {apierrors.NewNotFound(banner, ""), time.Minute},
	} {
		if got := executors.RecheckAfter(c.err); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWhetherAnErrorLeavesOpenWhatWasDone(t *testing.T) {
	node := schema.GroupResource{Resource: "nodes"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"a connection that broke": {errors.New("broken"), true},
		"a server's own error":    {apierrors.NewInternalError(errors.New("x")), true},
		"a conflict":              {apierrors.NewConflict(node, "a", nil), false},
		"a refusal":               {apierrors.NewForbidden(node, "a", nil), false},
	} {
		if got := executors.Unanswered(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// As whom a step acts: its account, or whoever the credentials of another cluster are of.
func TestAsWhomAStepActs(t *testing.T) {
	here := executors.Call{Plan: executors.PlanRef{Namespace: "shop", Account: "maint-runner"}}
	far := here
	far.Clients.Cluster = "edge"
	for _, c := range []struct {
		call        executors.Call
		user, actor string
	}{
		{here, runnerUser, "serviceaccount shop/maint-runner"},
		{far, executors.UnknownUser, "the account of K8SCluster edge"},
	} {
		if c.call.User() != c.user || c.call.Actor() != c.actor {
			t.Errorf("%q %q", c.call.User(), c.call.Actor())
		}
	}
	if got := (executors.Call{Run: "r", Path: "finally/up", Attempt: 3}).IdempotencyKey(); got != "r/finally/up" {
		t.Errorf("another attempt is another delivery: %q", got)
	}
}

// A uid of another API server is another object's, whatever it says.
func TestTheMarkOfAnObject(t *testing.T) {
	for _, c := range []struct{ uid, server, want string }{{"u", "", "u"}, {"u", "s", "u@s"}, {"", "s", ""}, {"", "", ""}} {
		if got := executors.ObjectID(c.uid, c.server); got != c.want {
			t.Errorf("%q of %q is %q, want %q", c.uid, c.server, got, c.want)
		}
	}
}

// A failure may be tried again, a refusal not; neither says more than a journal keeps.
func TestFailuresAndRefusals(t *testing.T) {
	long := strings.Repeat("x", document.MaxMessage+1)
	for name, c := range map[string]struct {
		out       executors.Outcome
		permanent bool
		message   string
	}{
		"a failure":           {executors.Fail("Timeout", "after %d s", 5), false, "after 5 s"},
		"a refusal":           {executors.Refuse("Invalid", "%q", "x"), true, `"x"`},
		"one with many words": {executors.Refuse("Invalid", "%s", long), true, document.Cut(long, document.MaxMessage)},
	} {
		if c.out.State != executors.Failed || c.out.Permanent != c.permanent || c.out.Message != c.message {
			t.Errorf("%s: %+v", name, c.out)
		}
	}
}

// An answer that is too large is no reason to ask again.
func TestAnAnswerThatIsTooLarge(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		message string
	}{
		"of a list":           {&executors.TooLargeError{What: "the answer has more than 1 MiB"}, "the answer has more than 1 MiB"},
		"of one object":       {fmt.Errorf("get: %w", &executors.TooLargeError{What: "more than 1 MiB", Object: "shop/big"}), "more than 1 MiB: it is shop/big"},
		"every other error":   {io.EOF, ""},
		"and no error at all": {nil, ""},
	} {
		out, is := executors.TooLarge(c.err)
		if is != (c.message != "") || out.Message != c.message || is && (!out.Permanent || out.Reason != executors.ReasonTooLarge) {
			t.Errorf("%s: %t %+v", name, is, out)
		}
	}
}

func TestTheRegionOfACall(t *testing.T) {
	if got := (executors.SleepCall{}).Region(); got != "" {
		t.Errorf("without a cloud: %q", got)
	}
	if got := (executors.SleepCall{Cloud: &executors.Cloud{AWS: connector.AWS{Region: "eu-central-1"}}}).Region(); got != "eu-central-1" {
		t.Errorf("of its connector: %q", got)
	}
}

func TestASelectorAsAListTakesIt(t *testing.T) {
	for name, c := range map[string]struct {
		selector   selector.LabelSelector
		want, says string
	}{
		"an empty one picks all": {selector.LabelSelector{}, "", ""},
		"labels":                 {selector.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, "app=web", ""},
		"one that is wrong":      {selector.LabelSelector{MatchExpressions: []selector.SelectorRequirement{{Key: "app", Operator: "Near"}}}, "", "selector: "},
	} {
		got, err := executors.Selector(c.selector)
		if got != c.want || (err != nil) != (c.says != "") || err != nil && !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

type guest struct {
	executors.Reservation
	out bool
}

func (g *guest) Holds() bool { return !g.out }
func (g *guest) Release()    { g.out = true }

// A pass that holds no room may let go of it all the same.
func TestTheRoomOfAPass(t *testing.T) {
	nobody := executors.ReservationOf(t.Context())
	if nobody.Release(); nobody.Holds() || nobody.Namespace() != "" {
		t.Error("of a pass without one")
	}
	if of := executors.ReservationOf(executors.WithNamespace(t.Context(), "shop")); of.Holds() || of.Namespace() != "shop" {
		t.Errorf("of work for a namespace: %v", of)
	}
	g := &guest{}
	executors.ReservationOf(executors.WithReservation(t.Context(), g)).Release()
	if !g.out {
		t.Error("it is still held")
	}
}

type passes struct{ executors.Executor }

func TestTheExecutorOfAType(t *testing.T) {
	byType := map[string]executors.Executor{"noop": passes{}}
	set := executors.NewSet(byType)
	delete(byType, "noop")
	if _, has := set.For("noop"); !has {
		t.Error("a set follows the map that it was made of")
	}
	if _, has := set.For("ghost"); has {
		t.Error("a set has what nobody gave it")
	}
	if _, has := (executors.Set{}).For("noop"); has {
		t.Error("an empty set has something")
	}
}

// What a step asks of its cloud is what a target that sleeps asks.
func TestAStepAsksItsCloudAsATargetDoes(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	cloud := &executors.Cloud{Credentials: "x"}
	call := executors.Call{Plan: executors.PlanRef{Name: "p", Namespace: "n", Account: "a", Manager: "m"}, DryRun: true, Now: now, Cloud: cloud, Clients: executors.Clients{Cluster: "edge"}, Target: executors.Target{Object: &plan.ObjectRef{}}}
	got := call.InCloud()
	if got.Plan.Name != "p" || got.Plan.Namespace != "n" || got.Plan.Account != "a" || got.Plan.Manager != "m" || !got.DryRun || !got.Now.Equal(now) || got.Cloud != cloud || got.Clients.Cluster != "edge" {
		t.Errorf("%+v", got)
	}
}

func TestErrorsOfAnAccountSayWhatTheyAre(t *testing.T) {
	passing := &executors.TransientError{Err: io.EOF}
	if passing.Error() != "EOF" || !errors.Is(passing, io.EOF) {
		t.Errorf("%v", passing)
	}
	if got := (&executors.CredentialsError{Outcome: executors.Refuse("x", "no Secret")}).Error(); got != "no Secret" {
		t.Error(got)
	}
}
