package api

import (
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// Identity is one attempt of a step: run/path#attempt.
func Identity(call executors.Call) string {
	return fmt.Sprintf("%s/%s#%d", call.Run, call.Path, call.Attempt)
}

// StepName is the step's own name, without the path before it.
func StepName(call executors.Call) string { return call.Path[strings.LastIndex(call.Path, "/")+1:] }

// DerivedName is the name of an object that an attempt creates: a pass after a crash derives the
// same one. It has at most 63 characters, since pods and others carry such names as labels; a
// longer subject is cut, and the hash of the identity keeps the name unique.
func DerivedName(subject, identity string) string {
	const longest = 63 - len("maint--") - 10
	subject = strings.TrimRight(subject[:min(len(subject), longest)], "-.")
	return "maint-" + subject + "-" + annotations.Hash10(identity)
}
