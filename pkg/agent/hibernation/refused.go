package hibernation

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// said is what went wrong with a target, for its plan. An API server that forbids something
// says which right is missing, and to whom; what gives it is said here.
func said(call executors.SleepCall, text string, faults ...error) string {
	hint := ""
	if slices.ContainsFunc(faults, apierrors.IsForbidden) {
		hint = grantIt(call)
	}
	return document.Cut(text, document.MaxMessage-len(hint)) + hint
}

// grantIt is what gives an account a right that it lacks.
func grantIt(call executors.SleepCall) string {
	if call.Clients.Connection != "" { // the rights of another cluster are granted there, to whom its connector names
		return fmt.Sprintf("; grant that in the other cluster to the account of the target's connector: %s names all rights that it needs there", intent.Command(call.Namespace, "doctor", call.Plan))
	}
	return fmt.Sprintf("; if ServiceAccount %s/%s lacks that right, 'kubectl maint rbac -f FILE | kubectl apply -f -', with the plan's file, grants all that it needs, and %s checks it", call.Namespace, call.Account, intent.Command(call.Namespace, "doctor", call.Plan))
}

// untouched is the record of a step that failed, with a mark at those of which for certain
// nothing was done.
func untouched(before hibernate.Record, step hibernate.Step, results []executors.SleepResult) hibernate.Record {
	var ids []string
	for _, r := range results {
		if r.Untouched {
			ids = append(ids, r.ID)
		}
	}
	return step.Untouched(before, ids)
}
