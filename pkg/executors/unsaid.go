package executors

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Unsaid is the error of a request for Secrets without the API server's text, which may repeat the
// whole object: that of a patch that does not fit does. What the error is remains: errors.As finds
// the answer. Text of the authorizer stays, as it holds nothing of an object. Errors of other
// resources stay as they are.
func Unsaid(resource schema.GroupResource, err error) error {
	var answer apierrors.APIStatus
	if resource != (schema.GroupResource{Resource: "secrets"}) || !errors.As(err, &answer) {
		return err
	}
	if whom := RefusalOf(err, UnknownUser); whom == RefusedAccount || whom == RefusedNoAccount {
		return err
	}
	return &unsaid{err: err, status: answer.Status()}
}

type unsaid struct {
	err    error
	status metav1.Status
}

func (u *unsaid) Error() string {
	reason := string(u.status.Reason)
	if reason == "" {
		reason = fmt.Sprintf("status %d", u.status.Code)
	}
	return reason + " (the API server's text is not shown, as it may repeat what the Secret holds)"
}

// Unwrap is the answer.
func (u *unsaid) Unwrap() error { return u.err }
