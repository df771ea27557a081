package executors

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Refusal is whom a refusal of an API server is about.
type Refusal int

// The kinds of refusals.
const (
	// NotRefused: it is no refusal.
	NotRefused Refusal = iota
	// RefusedAgent: the API server does not know the agent, or does not let it impersonate the
	// account. That says nothing about the account's rights: NotYet.
	RefusedAgent
	// RefusedAccount: the impersonated account lacks a right, or the API server has not read its
	// roles yet.
	RefusedAccount
	// RefusedByAdmission: a quota, a policy or a webhook refuses the request.
	RefusedByAdmission
	// RefusedNoAccount: the account to impersonate does not exist, so nothing was sent.
	RefusedNoAccount
)

// causeNoAccount marks refusals of the agent itself.
const causeNoAccount metav1.CauseType = "maint.dev/NoAccount"

// NoAccount is the answer to a request as an account that does not exist.
func NoAccount(message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: message, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: causeNoAccount}}},
	}
}

// UnknownUser stands for the user of credentials whose name is not known here. Nobody else is
// impersonated with them, so that every refusal is about their own account.
const UnknownUser = "*"

// RefusalOf reads the error of a request that impersonated a user. The API server has one status
// for all refusals, and admission may use others, so the text decides: that of the authorizer
// begins with the user in question.
func RefusalOf(err error, user string) Refusal {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return NotRefused
	}
	status := answer.Status()
	switch {
	case apierrors.HasStatusCause(err, causeNoAccount):
		return RefusedNoAccount
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
	case whom != user && user != UnknownUser:
		return RefusedAgent
	}
	return RefusedAccount
}

// MayNotImpersonate says that an API server does not let the caller impersonate a ServiceAccount.
func MayNotImpersonate(err error) bool {
	return apierrors.IsForbidden(err) && !deniedByAdmission(err.Error()) && strings.Contains(err.Error(), `" cannot impersonate resource "serviceaccounts"`)
}

// deniedByAdmission recognises refusals of policies and webhooks, which may have any status: a
// ValidatingAdmissionPolicy uses 422.
func deniedByAdmission(message string) bool {
	policy := strings.Contains(message, "ValidatingAdmissionPolicy '") && strings.Contains(message, " denied request: ")
	webhook := strings.Contains(message, `admission webhook "`) && strings.Contains(message, " denied the request")
	return policy || webhook
}

// Asked is a request that the API server refused, with the messages for it.
type Asked struct {
	As      string // name of the impersonated user
	Right   authorizationv1.ResourceAttributes
	Missing string // the message where that user lacks the right
	Denied  string // the message where it has the right, without the API server's text
}

// Refused is what a refused request means for its step: ReasonForbidden where the right is missing
// (its caller decides whether that is final), ReasonDenied where the account has it, and NotYet
// with either reason where that is not known yet. ok is false for every other error.
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
	case RefusedNoAccount:
		return Refuse(ReasonNoAccount, "%s", err), true
	}
	may, reviewed := Allowed(ctx, kube, asked.Right)
	switch {
	case RefusalOf(reviewed, asked.As) == RefusedNoAccount: // it went between the two
		return Refuse(ReasonNoAccount, "%s", reviewed), true
	case reviewed == nil && may: // its roles were read in between, or its authorizers disagree
		return later(ReasonDenied), true
	case asked.As == UnknownUser && (reviewed == nil || RefusalOf(reviewed, asked.As) == RefusedAccount): // the API server knows its name
		return Refuse(ReasonForbidden, "%s: %s", asked.Missing, err), true
	case reviewed == nil, RefusalOf(reviewed, asked.As) == RefusedAccount:
		return Refuse(ReasonForbidden, "%s", asked.Missing), true
	}
	return later(ReasonForbidden), true
}

// again is the pause before the next request to an API server that does not know its roles yet.
const again = 2 * time.Second

// Allowed asks the API server whether the user of the client has a right. Everybody may ask that
// about themselves.
func Allowed(ctx context.Context, kube kube.Interface, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
	answer, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// Guesses. When a look at the effect of a step that failed is made again: after a conflict, after a
// request that the API server did not carry out, and after any other error.
const (
	conflictLook   = 2 * time.Second
	unansweredLook = 10 * time.Second
	refusedLook    = time.Minute
)

// RecheckAfter is how long after a look of a [Drifter] that failed the next one is to be made. Nothing is
// seen meanwhile, as no watch may stand yet. A conflict is a change between the look's read and its
// dry run: what it looks for.
func RecheckAfter(err error) time.Duration {
	switch {
	case apierrors.IsConflict(err):
		return conflictLook
	case apierrors.IsTooManyRequests(err), Unanswered(err):
		return max(RetryAfter(err), unansweredLook)
	}
	return refusedLook
}

// PassesByItself says whether an error is of the network, or the API server's about a conflict, haste
// or its own trouble.
func PassesByItself(err error) bool {
	var status apierrors.APIStatus
	var connection *url.Error
	switch {
	case errors.As(err, &status):
		return apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || Unanswered(err)
	case errors.As(err, &connection):
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Unanswered says whether an error leaves open if the request was carried out.
func Unanswered(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}

// maxRetryAfter limits Retry-After (a guess: API servers ask for seconds).
const maxRetryAfter = time.Minute

// RetryAfter is for how long an API server asks not to be called; zero: it does not say.
func RetryAfter(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}
