package object

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Deleter executes the step type delete-object, and is done when the object is really gone. It
// needs get, list, watch and delete on the object's kind.
//
// The uid of the object is recorded before the deletion: an object that was created under the same
// name while no agent looked is another one, and stays.
type Deleter struct{}

// doomed is the object that a step is about to delete.
type doomed struct {
	UID string `json:"uid"`
}

// Pass deletes the object, or checks whether it is gone.
func (Deleter) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	out, err := deletePass(ctx, call)
	return api.Finish(ctx, call, out, err)
}

func deletePass(ctx context.Context, call executors.Call) (executors.Outcome, error) {
	p, err := api.PropertiesAs[plan.DeleteProperties](call)
	if err != nil {
		return executors.Outcome{}, err
	}
	o, err := api.Resolve(call, p.Resource)
	if err != nil {
		return executors.Outcome{}, err
	}
	was, err := doomedBefore(call)
	if err != nil {
		return executors.Outcome{}, err
	}
	live, err := o.Get(ctx, "")
	if api.IsMissing(err) {
		return vanished(o, was), nil
	}
	if err != nil {
		return executors.Outcome{}, err
	}
	return deleteLive(ctx, call, p, o, live, was)
}

func deleteLive(ctx context.Context, call executors.Call, p *plan.DeleteProperties, o api.Object, live *unstructured.Unstructured, was *doomed) (executors.Outcome, error) {
	if was != nil && was.UID != string(live.GetUID()) {
		return changed(o, "deleted", "%s is gone; another one of that name was created since, which stays", o), nil
	}
	if err := meant(p.Preconditions, o, live); err != nil {
		return executors.Outcome{}, err
	}
	switch {
	case call.DryRun:
		err := o.Delete(ctx, deletion(p, live, true))
		return api.Done("dry run: would delete %s", o), err
	case was == nil:
		return toDoom(ctx, call, o, live)
	case live.GetDeletionTimestamp() == nil:
		return deleteNow(ctx, call, p, o, live)
	}
	return api.Waiting(o.Watch(""), "%s is being deleted%s", o, heldBy(live)), nil
}

// toDoom checks first that the end of the object can be seen at all.
func toDoom(ctx context.Context, call executors.Call, o api.Object, live *unstructured.Unstructured) (executors.Outcome, error) {
	err := api.MayWatch(ctx, call, o.Action("watch", ""))
	uid := doomed{UID: string(live.GetUID())}
	return executors.Outcome{State: executors.Record, Before: raw(uid, true), Message: "about to delete " + o.String()}, err
}

func deleteNow(ctx context.Context, call executors.Call, p *plan.DeleteProperties, o api.Object, live *unstructured.Unstructured) (executors.Outcome, error) {
	err := o.Delete(ctx, deletion(p, live, false))
	if err != nil && !api.IsMissing(err) {
		return executors.Outcome{}, err
	}
	return api.Again(call, "Deleting", "%s is being deleted", o), nil
}

func doomedBefore(call executors.Call) (*doomed, error) {
	if len(call.Recorded.Before) == 0 {
		return nil, nil //nolint:nilnil // not found is an answer
	}
	var d doomed
	if err := json.Unmarshal(call.Recorded.Before, &d); err != nil {
		return nil, api.Refuse(executors.ReasonInvalid, "step %s: what it recorded is not readable: %s", call.Path, err)
	}
	return &d, nil
}

// vanished is the outcome where no object has the name.
func vanished(o api.Object, was *doomed) executors.Outcome {
	if was != nil {
		return changed(o, "deleted", "%s is deleted", o)
	}
	out := api.Done("%s was not there", o)
	out.Reason = executors.ReasonNotFound
	return out
}

// meant refuses an object that does not meet the preconditions. The resourceVersion is not compared
// during deletion, which itself changes it.
func meant(p *plan.DeletePreconditions, o api.Object, live *unstructured.Unstructured) error {
	switch {
	case p == nil:
		return nil
	case p.UID != "" && p.UID != string(live.GetUID()):
		return api.Refuse(executors.ReasonReplaced, "%s has the uid %s and not %s, as preconditions.uid wants it: it stays", o, live.GetUID(), p.UID)
	case p.ResourceVersion != "" && p.ResourceVersion != live.GetResourceVersion() && live.GetDeletionTimestamp() == nil:
		return api.Refuse(executors.ReasonChangedMeanwhile, "%s is at resourceVersion %s and not %s, as preconditions.resourceVersion wants it: it stays", o, live.GetResourceVersion(), p.ResourceVersion)
	}
	return nil
}

func deletion(p *plan.DeleteProperties, live *unstructured.Unstructured, dryRun bool) metav1.DeleteOptions {
	uid, policy := live.GetUID(), metav1.DeletionPropagation(p.PropagationPolicy)
	if policy == "" {
		policy = metav1.DeletePropagationBackground
	}
	options := metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid}}
	if p.Preconditions != nil && p.Preconditions.ResourceVersion != "" {
		options.Preconditions.ResourceVersion = &p.Preconditions.ResourceVersion
	}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
}

// heldBy is what the deletion of an object waits for.
func heldBy(live *unstructured.Unstructured) string {
	if names := live.GetFinalizers(); len(names) > 0 {
		return fmt.Sprintf(", held by its finalizers %s", strings.Join(names, ", "))
	}
	return ""
}
