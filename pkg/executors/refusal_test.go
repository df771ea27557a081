package executors_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

func TestARefusalIsToldByWhomItSpeaksOf(t *testing.T) {
	const agent, runner = "system:serviceaccount:maint-system:maint-agent", "system:serviceaccount:shop:maint-runner"
	said := func(code int32, message string) error {
		return fmt.Errorf("read: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}})
	}
	for name, c := range map[string]struct {
		err  error
		want executors.Refusal
	}{
		"no error at all":               {nil, executors.NotRefused},
		"no answer":                     {errors.New("connection refused"), executors.NotRefused},
		"something that is not there":   {said(http.StatusNotFound, `pods "a" not found`), executors.NotRefused},
		"a wrong field":                 {said(http.StatusUnprocessableEntity, `Deployment.apps "a" is invalid: spec.replicas: Invalid value: -1`), executors.NotRefused},
		"nobody":                        {said(http.StatusUnauthorized, "Unauthorized"), executors.RefusedAgent},
		"the agent itself":              {said(http.StatusForbidden, `configmaps is forbidden: User "`+agent+`" cannot list resource "configmaps" in API group "" in the namespace "shop"`), executors.RefusedAgent},
		"impersonation":                 {said(http.StatusForbidden, `serviceaccounts "maint-runner" is forbidden: User "`+agent+`" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop"`), executors.RefusedAgent},
		"the account":                   {said(http.StatusForbidden, `pods is forbidden: User "`+runner+`" cannot list resource "pods" in API group "" in the namespace "shop"`), executors.RefusedAccount},
		"roles that are not read yet":   {said(http.StatusForbidden, `pods is forbidden: User "`+runner+`" cannot list resource "pods" in API group "" in the namespace "shop": RBAC: clusterrole.rbac.authorization.k8s.io "view" not found`), executors.RefusedAccount},
		"a quota":                       {said(http.StatusForbidden, `pods "a" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1`), executors.RefusedByAdmission},
		"a policy's 422":                {said(http.StatusUnprocessableEntity, `deployments.apps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`), executors.RefusedByAdmission},
		"a policy that says who may":    {said(http.StatusUnauthorized, `deployments.apps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: User "x" cannot`), executors.RefusedByAdmission},
		"a webhook":                     {said(http.StatusBadRequest, `admission webhook "h.example.org" denied the request: no`), executors.RefusedByAdmission},
		"a webhook that gives no words": {said(http.StatusBadRequest, `admission webhook "h.example.org" denied the request without explanation`), executors.RefusedByAdmission},
	} {
		t.Run(name, func(t *testing.T) {
			if got := executors.RefusalOf(c.err, runner); got != c.want {
				t.Errorf("%d, not %d", got, c.want)
			}
		})
	}
}

// What passes by itself is no reason to say that something cannot be checked.
func TestWhatPassesByItself(t *testing.T) {
	status := func(code int32, reason metav1.StatusReason) error {
		return fmt.Errorf("read: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason}})
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"a conflict":               {status(http.StatusConflict, metav1.StatusReasonConflict), true},
		"haste":                    {status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), true},
		"its own trouble":          {status(http.StatusInternalServerError, metav1.StatusReasonInternalError), true},
		"no connection":            {&url.Error{Op: "Get", URL: "https://h.example", Err: errors.New("connection refused")}, true},
		"no answer in time":        {fmt.Errorf("read: %w", context.DeadlineExceeded), true},
		"a missing right":          {status(http.StatusForbidden, metav1.StatusReasonForbidden), false},
		"something that is gone":   {status(http.StatusNotFound, metav1.StatusReasonNotFound), false},
		"a kind that is not there": {errors.New("the cluster serves no kind Widget"), false},
	} {
		if got := executors.PassesByItself(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
