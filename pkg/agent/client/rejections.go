package client

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// IsRejected says whether the API server refuses an object, for now or as it is.
func IsRejected(err error) bool {
	return executors.RefusalOf(err, "") != executors.NotRefused && !apierrors.IsUnauthorized(err) || IsRejectedForGood(err)
}

// IsRejectedForGood says whether the same object would be refused for ever.
func IsRejectedForGood(err error) bool {
	if executors.RefusalOf(err, "") != executors.NotRefused {
		return false
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// IsRefusedByAdmission says whether a quota, a policy or a webhook refuses an object.
func IsRefusedByAdmission(err error) bool {
	return executors.RefusalOf(err, "") == executors.RefusedByAdmission
}
