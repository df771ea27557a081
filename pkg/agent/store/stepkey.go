package store

import (
	"k8s.io/apimachinery/pkg/types"
)

// StepKey is one step of one run.
type StepKey struct {
	Run  types.NamespacedName
	Path string
	Look bool // a look at what the step did, beside the step itself
}

// String names a step as the ranking does: two steps of a plan are two holders.
func (s StepKey) String() string { return s.Run.String() + "/" + s.Path }
