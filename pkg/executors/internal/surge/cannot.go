package surge

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// NoSurge is the remedy of whoever can do without a replacement.
const NoSurge = "take the annotation maint.dev/drain=surge away"

// Cannot is why there is no surge, and what would help.
type Cannot struct {
	Why, Remedy string
	Refused     bool // for want of a right, or by an API server that has just begun
	Behind      bool // until another drain has replaced its pod
}

// Error is error's.
func (c *Cannot) Error() string { return c.Why }

// Denied turns a missing right, and any other refusal that stays, into a failure that waiting does
// not fix.
func Denied(err error, right string) error {
	switch {
	case apierrors.IsForbidden(err):
		return &Cannot{Why: "not allowed: " + document.Cut(err.Error(), 200), Remedy: "grant " + right + ", or " + NoSurge, Refused: true}
	case Final(err) && !apierrors.IsNotFound(err): // the pod of what is gone goes soon
		return &Cannot{Why: "the API server refuses: " + document.Cut(err.Error(), 200), Remedy: "change what it objects to, or " + NoSurge}
	}
	return err
}
