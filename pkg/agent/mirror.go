package agent

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// mirrored is what was last told to the users of a plan's target, on the target.
type mirrored struct {
	text    string // the annotations as they were written; empty: nothing was looked at yet
	problem string // why they could not be written
}

// mirror writes on a plan's target, as the plan's account, how its last run
// stands and when the next one is. It comes before the plan's own status, so that
// what was published was mirrored: an agent that begins writes nothing again.
func (a *Agent) mirror(ctx context.Context, k key, known *knownPlan, have map[string]string, f plan.Facts, d plan.Decision) error {
	if known.spec.Target == nil || len(f.Faults) > 0 || f.ClockDoubt != "" || !d.Ready.OK {
		return nil
	}
	want := map[string]string{}
	a.lastRun(want, f, d)
	values := map[string]any{}
	for suffix, value := range map[string]string{
		"status": mirrorWord(plan.RunPhase(want[annotations.StatusLastResult])), "last-run": want[annotations.StatusLastRun], "next-run": nextRun(d),
	} {
		if value != "" || have[annotations.StatusLastRun] != "" || have[annotations.StatusNextRun] != "" { // what was never there need not be taken away
			values[annotations.Mirror(known.spec.MirrorPrefix, k.name, suffix)] = orNull(value)
		}
	}
	b, err := json.Marshal(values)
	if err != nil {
		return err
	}
	if known.mirrored.text == "" && have[annotations.StatusLastRun] == want[annotations.StatusLastRun] && have[annotations.StatusLastResult] == want[annotations.StatusLastResult] && have[annotations.StatusNextRun] == nextRun(d) {
		known.mirrored.text = string(b)
	}
	if known.mirrored.text == string(b) || len(values) == 0 {
		return nil
	}
	known.mirrored.problem, err = a.patchMirror(ctx, who{k.namespace, plan.Account(known.spec)}, *known.spec.Target, values)
	if err == nil {
		known.mirrored.text = string(b)
	}
	return err
}

// patchMirror says why it may not write, where that is so; the plan goes on.
func (a *Agent) patchMirror(ctx context.Context, w who, ref plan.ObjectRef, values map[string]any) (problem string, err error) {
	to, err := a.targetClient(w, "", ref)
	if err != nil {
		return err.Error(), nil //nolint:nilerr // the plan's readiness tells it, too
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": values}})
	if err != nil {
		return "", err
	}
	got, err := to.Patch(ctx, ref.Name, types.MergePatchType, patch, patchOptions())
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		return fmt.Sprintf("the mirror on %s cannot be written: %s", ref, err), nil
	case err != nil:
		return "", fmt.Errorf("write the mirror on %s: %w", ref, err)
	}
	a.targets.patched(got.GetUID(), got.GetResourceVersion())
	return "", nil
}

func mirrorWord(p plan.RunPhase) string {
	switch p {
	case plan.RunRunning:
		return "running"
	case plan.RunSucceeded:
		return "completed"
	case plan.RunFailed, plan.RunAborted, plan.RunReplaced:
		return "failed"
	}
	return ""
}

func orNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}

// mirrorCondition says that a target could not be written to; absent where it
// could.
func mirrorCondition(known *knownPlan) []metav1.Condition {
	if known.mirrored.problem == "" {
		return nil
	}
	return []metav1.Condition{{Type: "Mirrored", Status: metav1.ConditionFalse, Reason: "Refused", Message: plan.Cut(known.mirrored.problem, plan.MaxMessage)}}
}

// targetClient reaches a plan's target as its account.
func (a *Agent) targetClient(w who, run string, ref plan.ObjectRef) (dynamic.ResourceInterface, error) {
	mapping, err := a.resolve(ref.APIVersion, ref.Kind)
	if err != nil {
		return nil, err
	}
	c, err := a.accounts.clients(w, run)
	if err != nil {
		return nil, err
	}
	resource := c.Dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return resource.Namespace(w.namespace), nil
	}
	return resource, nil
}
