// Package admissionread judges what an API server answers when the agent reads admission policies.
package admissionread

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// ReadAccess is whether the API server lets a policy be read, by its answers. An older one does not serve
// the kind, and an agent may lack the right; but one that starts refuses everybody for a while, and
// what a policy enforces stays enforced meanwhile.
type ReadAccess struct {
	Now func() time.Time

	refused  workflow.Refusal
	withheld bool // as was last said
	served   bool // it was read once
}

// Change is what an answer changes.
type Change int

// What an answer can change.
const (
	Unchanged Change = iota
	Denied           // it cannot be read: it enforces nothing, as far as can be known
	Restored         // it can be read again
)

// Observe takes in an answer; an error that says neither is an API server that is away.
func (a *ReadAccess) Observe(err error) Change {
	was := a.withheld
	switch {
	case err == nil:
		a.refused, a.withheld, a.served = workflow.Refusal{}, false, true
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		next, final := a.refused.Again(a.Now())
		unserved := apierrors.IsNotFound(err) && !a.served // an API server that starts says 503 until it knows its kinds
		a.refused, a.withheld = next, was || final || unserved
	}
	switch {
	case a.withheld && !was:
		return Denied
	case was && !a.withheld:
		return Restored
	}
	return Unchanged
}
