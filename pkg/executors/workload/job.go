// Package workload holds the executors that run something in the cluster and wait for its end,
// restart workloads, and check their health.
package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Jobs executes the step type job: a Job in the plan's namespace with a name derived from run, step
// and attempt. It needs create, get, list, watch and delete on jobs.batch; with list on pods and
// get on pods/log it keeps the end of the log, too.
type Jobs struct{}

// created is journaled once the Job exists. Without it, a Job that somebody deleted, or that was
// cleaned up after its TTL while no agent looked, would run a second time.
type created struct {
	Job string `json:"job"`
	UID string `json:"uid"`
}

// Pass finds the Job, or creates it, and reports its state.
func (j Jobs) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.JobProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	want, err := jobOf(call, p)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if call.DryRun {
		return executors.Outcome{State: executors.Done, Message: "dry run: would run a Job; none was created"}
	}
	seen, err := createdBefore(call, want.Name)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	job, err := find(ctx, call, want)
	switch {
	case err == nil && seen != nil && string(job.UID) != seen.UID, apierrors.IsNotFound(err) && seen != nil:
		return executors.Fail("Deleted", "Job/%s was deleted before its end was seen; whether it did its work is not known", want.Name)
	case apierrors.IsNotFound(err):
		job, err = create(ctx, call, want)
	}
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if len(call.Recorded.Before) == 0 {
		return toRecord(job)
	}
	return standing(ctx, call, job)
}

// Stop deletes the Job and, in the background, its pods.
func (Jobs) Stop(ctx context.Context, call executors.Call) error {
	job, err := find(ctx, call, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: jobName(call)}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop step %s: %w", call.Path, err)
	}
	policy := metav1.DeletePropagationBackground
	err = call.Clients.Kube.BatchV1().Jobs(call.Plan.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &job.UID},
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("stop step %s: %w", call.Path, api.Failed(action(call, "delete", job.Name), err))
}

func action(call executors.Call, verb, name string) api.Action {
	return api.Action{Verb: verb, Resource: batchv1.SchemeGroupVersion.WithResource("jobs"), Namespace: call.Plan.Namespace, Name: name}
}

// createdBefore is what an earlier pass of this attempt recorded. Another attempt's Job has another
// name, and only the first record is kept: from the second attempt on, a Job that somebody deletes
// is created again.
func createdBefore(call executors.Call, name string) (*created, error) {
	if len(call.Recorded.Before) == 0 {
		return nil, nil //nolint:nilnil // no record is an answer
	}
	var c created
	if err := json.Unmarshal(call.Recorded.Before, &c); err != nil {
		return nil, api.Refuse(executors.ReasonInvalid, "step %s: what it recorded is not readable: %s", call.Path, err)
	}
	if c.Job != name {
		return nil, nil //nolint:nilnil // see above
	}
	return &c, nil
}

func toRecord(job *batchv1.Job) executors.Outcome {
	b, err := json.Marshal(created{Job: job.Name, UID: string(job.UID)})
	if err != nil {
		return executors.Refuse(executors.ReasonInvalid, "record Job/%s: %s", job.Name, err)
	}
	return executors.Outcome{State: executors.Record, Before: b, Message: "Job/" + job.Name + " is created", Changed: changes(job)}
}

func changes(job *batchv1.Job) []run.Change {
	return []run.Change{{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name, What: "created"}}
}

// find reads the Job of this attempt and checks that it is ours.
func find(ctx context.Context, call executors.Call, want *batchv1.Job) (*batchv1.Job, error) {
	job, err := call.Clients.Kube.BatchV1().Jobs(call.Plan.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil {
		return nil, api.Failed(action(call, "get", want.Name), err)
	}
	if job.Annotations[annotations.JobOf] != api.Identity(call) {
		return nil, api.Refuse("NotOurs", "Job/%s in namespace %s was not created by this step; delete or rename it", job.Name, job.Namespace)
	}
	return job, nil
}

// create checks first that the Job's end can be seen at all. When a Job of the name exists already,
// it is that of a pass whose reply was lost, or somebody else's: the next look decides.
func create(ctx context.Context, call executors.Call, want *batchv1.Job) (*batchv1.Job, error) {
	if err := api.MayWatch(ctx, call, action(call, "watch", want.Name)); err != nil {
		return nil, err
	}
	job, err := call.Clients.Kube.BatchV1().Jobs(call.Plan.Namespace).Create(ctx, want, metav1.CreateOptions{FieldManager: call.Plan.Manager})
	if apierrors.IsAlreadyExists(err) {
		return find(ctx, call, want)
	}
	return job, api.Failed(action(call, "create", ""), err)
}

// standing reads the Job's conditions. Complete and Failed come when its last
// pod has ended.
func standing(ctx context.Context, call executors.Call, job *batchv1.Job) executors.Outcome {
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			return ended(ctx, call, job, executors.Outcome{State: executors.Done, Message: fmt.Sprintf("Job/%s succeeded", job.Name)})
		case batchv1.JobFailed:
			return ended(ctx, call, job, executors.Fail("JobFailed", "Job/%s failed: %s: %s", job.Name, c.Reason, c.Message))
		}
	}
	if job.DeletionTimestamp != nil {
		return executors.Fail("Deleted", "Job/%s is being deleted before its end", job.Name)
	}
	return executors.Outcome{
		State: executors.NotYet, Reason: "Running", Watch: &executors.Watch{Resource: action(call, "", "").Resource, Namespace: job.Namespace, Name: job.Name},
		Message: fmt.Sprintf("Job/%s: %d active, %d succeeded, %d failed", job.Name, job.Status.Active, job.Status.Succeeded, job.Status.Failed),
	}
}

func ended(ctx context.Context, call executors.Call, job *batchv1.Job, out executors.Outcome) executors.Outcome {
	out.Changed = changes(job)
	out.Outputs = map[string]any{"job": job.Name, "succeeded": int64(job.Status.Succeeded), "failed": int64(job.Status.Failed)}
	text, err := logTail(ctx, call, job)
	var request *api.Error
	switch {
	case err == nil:
		out.Outputs["log"] = text
	case errors.As(err, &request) && unsettled(ctx, call, job, request):
		later := executors.Fail(executors.ReasonUnavailable, "%s; its log cannot be read yet: %s", out.Message, err)
		later.State, later.WakeAt = executors.NotYet, call.Now.Add(api.RetryDelay)
		return later
	case errors.As(err, &request) && apierrors.IsForbidden(request.Err):
		out.Message += fmt.Sprintf("; its log is not kept: grant %s to %s", request.Action.Rights(), call.Actor())
	default:
		out.Message += fmt.Sprintf("; its log is not kept: %s", err)
	}
	out.Message = document.Cut(out.Message, document.MaxMessage)
	return out
}

// unsettled says whether a refusal to read a log may pass soon: an API server that has just started
// refuses everything for a while, although it has just shown the Job. The log is optional, so that
// is the limit of the wait.
func unsettled(ctx context.Context, call executors.Call, job *batchv1.Job, request *api.Error) bool {
	ended := job.CreationTimestamp.Time
	for _, c := range job.Status.Conditions {
		if c.LastTransitionTime.After(ended) {
			ended = c.LastTransitionTime.Time
		}
	}
	limit := workflow.RefusalTimeout
	if ttl := job.Spec.TTLSecondsAfterFinished; ttl != nil { // before the Job is cleaned up
		limit = min(limit, time.Duration(*ttl)*time.Second/2)
	}
	if call.Now.Sub(ended) > limit {
		return false
	}
	switch executors.RefusalOf(request.Err, call.User()) {
	case executors.RefusedAgent:
		return true
	case executors.RefusedAccount:
		may, err := api.May(ctx, call, request.Action)
		if err != nil || may {
			return true
		}
		reads, err := api.May(ctx, call, action(call, "get", job.Name))
		return err != nil || !reads
	}
	return false
}

// jobName is derived, so that a pass after a crash finds the Job of the one before.
func jobName(call executors.Call) string {
	return api.DerivedName(api.StepName(call), api.Identity(call))
}
