package hibernation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// notTaken says whether the API server does not take an object of the agent's, for a quota, a
// policy, a webhook that nobody answers, or as it is. An API server that has just started
// refuses everybody; that is none of these.
func notTaken(err error) bool {
	return executors.RefusalOf(err, "") == executors.RefusedByAdmission || client.IsRejectedForGood(err) ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}

// sayUnwritten has a plan say that its restore data cannot be written, so that nothing of it falls
// asleep.
func (c *Controller) sayUnwritten(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *cachedPlan, v view, d hibernate.Decision, err error) error {
	if !notTaken(err) && !errors.Is(err, errTaken) {
		return err
	}
	d.Phase, d.Closed = hibernate.InError, nil
	d.Message = "its restore data cannot be written: " + err.Error()
	return errors.Join(err, c.publish(ctx, k, cm, known, v, d))
}

// write stores a record. On waking, one that the API server does not take is held in memory
// instead: nothing stays asleep for it. An agent that dies meanwhile leaves what is awake by
// then as it is, since somebody else seems to have woken it.
func (c *Controller) write(ctx context.Context, k types.NamespacedName, from *stored, r hibernate.Record) (*stored, error) {
	written, err := c.records.write(ctx, k.Namespace, from, r)
	if r.Operation != hibernate.Wake || from == nil || !notTaken(err) {
		return written, err
	}
	held, stale := c.records.hold(ctx, from, r)
	if stale != nil {
		return nil, errors.Join(err, stale)
	}
	c.Telemetry.Log.Warn("wakes what its restore data names, though that cannot be written", "plan", k.String(), "target", r.Target, "error", err.Error())
	if cm := c.Stores.Documents.Any(k); cm != nil {
		c.Telemetry.Events.Eventf(cm, corev1.EventTypeWarning, "RestoreDataRefused", "Target %s wakes, though its restore data cannot be written: %s", r.Target, document.Cut(err.Error(), document.MaxMessage))
	}
	return held, nil
}

// said is what went wrong with a target, for its plan. An API server that forbids something
// says which right is missing, and to whom; what gives it is said here.
func said(call executors.SleepCall, text string, faults ...error) string {
	hint := ""
	if slices.ContainsFunc(faults, apierrors.IsForbidden) {
		hint = grantIt(call)
	}
	return document.Cut(text, document.MaxMessage-len(hint)) + hint
}

// Bounds of what is said of resources that were refused (guesses).
const (
	refusalsSaid = 3  // with their causes
	refusedNamed = 10 // of one cause, and of those whose causes are left out
)

// refusals says what was refused, and why: each cause once, with the resources that it is about.
func refusals(results []executors.SleepResult) (text string, faults []error) {
	var causes []string
	of := map[string][]string{}
	for _, r := range results {
		if r.Err == nil {
			continue
		}
		why := r.Err.Error()
		if _, known := of[why]; !known {
			causes = append(causes, why)
		}
		of[why], faults = append(of[why], r.ID), append(faults, r.Err)
	}
	var said, rest []string
	for i, why := range causes {
		switch ids := of[why]; {
		case i >= refusalsSaid:
			rest = append(rest, ids...)
		case len(ids) > 1:
			said = append(said, namesOf(ids)+": "+why)
		default: // which names it
			said = append(said, why)
		}
	}
	if len(rest) > 0 {
		said = append(said, fmt.Sprintf("and %d more: %s", len(rest), namesOf(rest)))
	}
	return strings.Join(said, "; "), faults
}

func namesOf(ids []string) string {
	return document.Few(slices.Sorted(slices.Values(ids)), refusedNamed)
}

// grantIt is what gives an account a right that it lacks.
func grantIt(call executors.SleepCall) string {
	if call.Clients.Connection != "" { // the rights of another cluster are granted there, to whom its connector names
		return fmt.Sprintf("; grant that in the other cluster to the account of the target's connector: %s names all rights that it needs there", intent.Command(call.Plan.Namespace, "doctor", call.Plan.Name))
	}
	return fmt.Sprintf("; if ServiceAccount %s/%s lacks that right, 'kubectl maint rbac -f FILE | kubectl apply -f -', with the plan's file, grants all that it needs, and %s checks it", call.Plan.Namespace, call.Plan.Account, intent.Command(call.Plan.Namespace, "doctor", call.Plan.Name))
}

// untouched is the record of a step that failed, with a mark at those of which for certain
// nothing was done.
func untouched(before hibernate.Record, step hibernate.Step, results []executors.SleepResult) hibernate.Record {
	var ids []string
	for _, r := range results {
		switch {
		case r.Untouched && r.ID == "":
			ids = append(ids, idsOf(step.Due)...)
		case r.Untouched:
			ids = append(ids, r.ID)
		}
	}
	return step.Untouched(before, ids)
}

// inTurn is a step with what is to be put to sleep now, and a mark at what comes later: nothing
// was done of that, and its owner may stop it meanwhile.
func inTurn(sleeper executors.Sleeper, call executors.SleepCall, before hibernate.Record, step hibernate.Step) hibernate.Step {
	turns, has := sleeper.(executors.SleepTurns)
	if !has || call.Operation != hibernate.Shutdown {
		return step
	}
	now := turns.Turn(call, step.Due)
	if len(now) == 0 || len(now) == len(step.Due) {
		return step
	}
	later := slices.DeleteFunc(idsOf(step.Due), func(id string) bool {
		return slices.ContainsFunc(now, func(d hibernate.Due) bool { return d.ID == id })
	})
	step.Record = step.Untouched(before, later)
	step.Due = now
	return step
}

func idsOf(due []hibernate.Due) []string {
	var ids []string
	for _, d := range due {
		ids = append(ids, d.ID)
	}
	return ids
}
