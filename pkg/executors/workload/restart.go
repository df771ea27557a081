package workload

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Restarter executes the step type restart: a rolling restart of a Deployment, StatefulSet or
// DaemonSet, done when the rollout is complete. It needs get, list, watch and patch on the kind.
//
// The pod template gets an annotation with the name of this attempt. A pass after a crash finds it
// there and does not restart again.
type Restarter struct{}

// restarted is what is remembered of a restart: without it, a controller that removes the
// annotation would cause restarts forever.
type restarted struct {
	By  string `json:"by"`
	UID string `json:"uid"`
}

// Pass restarts, or checks the progress of the rollout.
func (Restarter) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	out, err := restartPass(ctx, call)
	return api.Finish(ctx, call, out, err)
}

func restartPass(ctx context.Context, call executors.Call) (executors.Outcome, error) {
	p, err := api.PropertiesAs[plan.RestartProperties](call)
	if err != nil {
		return executors.Outcome{}, err
	}
	o, err := api.Resolve(call, p.Resource)
	if err != nil {
		return executors.Outcome{}, err
	}
	standing, rolls := rollouts()[o.Kind.GroupKind()]
	if !rolls {
		return executors.Outcome{}, api.Refuse(executors.ReasonInvalid, "resource: %s of %s cannot be restarted; write a Deployment, StatefulSet or DaemonSet of apps/v1", o, o.Kind.GroupVersion())
	}
	live, err := o.Get(ctx, "")
	if err != nil {
		return executors.Outcome{}, err
	}
	if podTemplate(live).Annotations[annotations.RestartedBy] == api.Identity(call) {
		return restarting(call, o, live, standing(live)), nil
	}
	return restart(ctx, call, o, live)
}

// restarting is the progress of a restart.
func restarting(call executors.Call, o api.Object, live *unstructured.Unstructured, v verdict) executors.Outcome {
	var out executors.Outcome
	switch {
	case v.Failed != "":
		out = executors.Fail(v.Failed, "%s %s", o, v.Why)
	case !v.Well:
		out = api.Waiting(o.Watch(""), "%s: %s", o, v.Why)
		out.Memory = memoryOf(call, live)
		return out
	default:
		out = api.Done("restarted %s: %s%s", o, v.Why, untouched(live))
	}
	out.Changed = []run.Change{o.Change("restarted")}
	return out
}

func restart(ctx context.Context, call executors.Call, o api.Object, live *unstructured.Unstructured) (executors.Outcome, error) {
	if err := restartable(call, o, live); err != nil {
		return executors.Outcome{}, err
	}
	mark := map[string]any{annotations.RestartedBy: api.Identity(call)}
	patch := api.Patch{Type: types.MergePatchType, DryRun: call.DryRun, Body: map[string]any{
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": mark}}},
	}}
	if call.DryRun {
		_, err := o.Patch(ctx, live, patch)
		return api.Done("dry run: would restart %s and wait until it is rolled out", o), err
	}
	if err := api.MayWatch(ctx, call, o.Action("watch", "")); err != nil {
		return executors.Outcome{}, err
	}
	_, err := o.Patch(ctx, live, patch)
	out := api.Again(call, "Restarting", "%s is being restarted", o)
	out.Memory = memoryOf(call, live)
	return out, err
}

// memoryOf is what to remember, or nil if that is remembered already.
func memoryOf(call executors.Call, live *unstructured.Unstructured) json.RawMessage {
	if _, begun := begunBefore(call); begun {
		return nil
	}
	b, err := json.Marshal(restarted{By: api.Identity(call), UID: string(live.GetUID())})
	if err != nil {
		panic("workload.memoryOf: " + err.Error()) // two strings always marshal
	}
	return b
}

func begunBefore(call executors.Call) (restarted, bool) {
	var was restarted
	err := json.Unmarshal(call.Recorded.Memory, &was)
	return was, err == nil && was.By == api.Identity(call)
}

// restartable refuses what would wait forever, and a second restart.
func restartable(call executors.Call, o api.Object, live *unstructured.Unstructured) error {
	if was, begun := begunBefore(call); begun {
		if was.UID != string(live.GetUID()) {
			return api.Refuse(executors.ReasonReplaced, "%s was deleted and created again while it was being restarted; the new one is left alone", o)
		}
		return &api.Refused{Outcome: executors.Fail("Reverted", "%s: somebody took the annotation %s off its pod template, and with it the restart; does another controller own the template?", o, annotations.RestartedBy)}
	}
	switch o.Kind.Kind {
	case "Deployment":
		if read[appsv1.Deployment](live).Spec.Paused {
			return api.Refuse("Paused", "%s is paused and would restart no pod; resume it first: kubectl rollout resume deployment/%s -n %s", o, intent.Word(o.Name), intent.Word(o.Namespace))
		}
	case "DaemonSet":
		if d := read[appsv1.DaemonSet](live); d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			return onDelete(o)
		}
	case "StatefulSet":
		s := read[appsv1.StatefulSet](live)
		if s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
			return onDelete(o)
		}
		if n := replicas(s.Spec.Replicas); n > 0 && partition(s) >= n {
			return api.Refuse("Partitioned", "%s has %d replicas and the partition %d, which keeps all of them as they are; lower spec.updateStrategy.rollingUpdate.partition", o, n, partition(s))
		}
	}
	return nil
}

func onDelete(o api.Object) error {
	return api.Refuse("OnDelete", "%s has the update strategy OnDelete: its pods are replaced only when somebody deletes them; set spec.updateStrategy.type to RollingUpdate", o)
}

// untouched says which pods a partition kept from the restart.
func untouched(live *unstructured.Unstructured) string {
	if live.GetKind() != "StatefulSet" {
		return ""
	}
	if n := partition(read[appsv1.StatefulSet](live)); n > 0 {
		return fmt.Sprintf("; its partition keeps those below ordinal %d as they were", n)
	}
	return ""
}
