package client

import (
	"errors"
	"io"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Unreachable says whether the API server did not answer, or could not.
func Unreachable(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		var dial net.Error
		return errors.As(err, &dial) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err)
}
