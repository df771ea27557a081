package executors

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Refusal is of whom an API server's no speaks.
type Refusal int

// The kinds of refusals.
const (
	// NotRefused: it is no refusal.
	NotRefused Refusal = iota
	// RefusedAgent: the API server does not know the agent, or does not let it act
	// as the account. It says nothing of the account's rights: not yet.
	RefusedAgent
	// RefusedAccount: whoever was acted as lacks a right, or the API server has not
	// read its roles yet.
	RefusedAccount
	// RefusedByAdmission: a quota, a policy or a webhook does not take the request.
	RefusedByAdmission
)

// Whoever is asked as by credentials of which nobody here knows whose they are: nobody else
// is impersonated with them, so that every refusal is of their own account.
const Whoever = "*"

// RefusalOf reads an error of a request that acted as a user. The API server wears
// one status for all of them, and admission wears others besides, so its words
// have to tell: the authorizer's begin with the user whom they mean.
func RefusalOf(err error, user string) Refusal {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return NotRefused
	}
	status := answer.Status()
	switch {
	case deniedByAdmission(status.Message):
		return RefusedByAdmission
	case status.Code == http.StatusUnauthorized:
		return RefusedAgent
	case status.Code != http.StatusForbidden:
		return NotRefused
	}
	_, said, byAuthorizer := strings.Cut(status.Message, `User "`)
	whom, _, cannot := strings.Cut(said, `" cannot `)
	switch {
	case !byAuthorizer || !cannot:
		return RefusedByAdmission
	case whom != user && user != Whoever:
		return RefusedAgent
	}
	return RefusedAccount
}

// MayNotImpersonate says whether an API server does not let whoever asked act as a
// ServiceAccount.
func MayNotImpersonate(err error) bool {
	return apierrors.IsForbidden(err) && !deniedByAdmission(err.Error()) && strings.Contains(err.Error(), `" cannot impersonate resource "serviceaccounts"`)
}

// deniedByAdmission knows the words of policies and webhooks, whose refusals may
// carry any status: 422 is a ValidatingAdmissionPolicy's own.
func deniedByAdmission(message string) bool {
	policy := strings.Contains(message, "ValidatingAdmissionPolicy '") && strings.Contains(message, " denied request: ")
	webhook := strings.Contains(message, `admission webhook "`) && strings.Contains(message, " denied the request")
	return policy || webhook
}

// Asked is a request that the API server answered with an error.
type Asked struct {
	As      string // name of the user whom it acted as
	Right   authorizationv1.ResourceAttributes
	Missing string // what is said where that user lacks the right
	Denied  string // and where it has it, without the API server's words
}

// Refused is what a refused request means for its step: ReasonForbidden where the
// right is missing (whether that is so for good is for the caller to ask a second
// time), ReasonDenied where the account may, and NotYet with one of these where it
// cannot be told yet. ok is false for every other error.
func Refused(ctx context.Context, kube kube.Interface, now time.Time, asked Asked, err error) (out Outcome, ok bool) {
	var credentials *CredentialsError
	if errors.As(err, &credentials) {
		return credentials.Outcome, true
	}
	later := func(reason string) Outcome {
		o := Fail(reason, "%s: %s", asked.Denied, err)
		o.State, o.WakeAt = NotYet, now.Add(again)
		return o
	}
	switch RefusalOf(err, asked.As) {
	case NotRefused:
		return Outcome{}, false
	case RefusedByAdmission:
		return Fail(ReasonDenied, "%s: %s", asked.Denied, err), true
	case RefusedAgent:
		return later(ReasonForbidden), true
	}
	may, reviewed := Allowed(ctx, kube, asked.Right)
	switch {
	case reviewed == nil && may: // its roles were read in between, or its authorizers disagree
		return later(ReasonDenied), true
	case asked.As == Whoever && (reviewed == nil || RefusalOf(reviewed, asked.As) == RefusedAccount): // the API server knows its name
		return Refuse(ReasonForbidden, "%s: %s", asked.Missing, err), true
	case reviewed == nil, RefusalOf(reviewed, asked.As) == RefusedAccount:
		return Refuse(ReasonForbidden, "%s", asked.Missing), true
	}
	return later(ReasonForbidden), true
}

// again is when to ask an API server anew that cannot be believed yet.
const again = 2 * time.Second

// Allowed asks the API server whether whoever the client acts as may do something.
// Everybody may ask that of themselves.
func Allowed(ctx context.Context, kube kube.Interface, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
	answer, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// maxRetryAfter bounds what an API server may ask for (a guess: it asks for seconds).
const maxRetryAfter = time.Minute

// RetryAfter is how long an API server wants to be left alone; zero where it does
// not say.
func RetryAfter(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}
