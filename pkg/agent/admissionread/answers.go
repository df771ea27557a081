// Package admissionread judges what an API server answers when the agent reads admission policies.
package admissionread

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Answers are what the API server says when it is asked for a policy. An older one does not serve
// the kind, and an agent may lack the right; but one that starts refuses everybody for a while, and
// what a policy enforces stays enforced meanwhile.
type Answers struct {
	Now func() time.Time

	refused  workflow.Refusal
	withheld bool // as was last said
	served   bool // it was read once
}

// News is what an answer changes.
type News int

// What an answer can change.
const (
	AsBefore News = iota
	Withheld      // it cannot be read: it enforces nothing, as far as can be known
	Back          // it can be read again
)

// Heard takes in an answer; an error that says neither is an API server that is away.
func (a *Answers) Heard(err error) News {
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
		return Withheld
	case was && !a.withheld:
		return Back
	}
	return AsBefore
}
