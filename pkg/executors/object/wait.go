package object

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Waiter executes the step type wait: until a condition of an object is True, or a CEL expression
// over `object` is. It needs get, list and watch on the object's kind. It also waits for an object
// that does not exist yet. It changes nothing; in a dry run it looks once and ends.
type Waiter struct{}

// Pass reads the object live.
func (Waiter) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.WaitProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	o, err := api.Resolve(call, p.Resource)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	live, err := o.Get(ctx, "")
	if api.IsMissing(err) {
		return waitFor(ctx, call, o, o.String()+" is not there yet")
	}
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	met, why := met(ctx, p, live)
	if err := ctx.Err(); err != nil {
		return api.Outcome(ctx, call, err)
	}
	if met {
		return api.Done("%s: %s", o, why)
	}
	return waitFor(ctx, call, o, fmt.Sprintf("%s: %s", o, why))
}

func waitFor(ctx context.Context, call executors.Call, o api.Object, why string) executors.Outcome {
	if call.DryRun {
		return api.Done("dry run: not waited for: %s", why)
	}
	if err := api.MayWatch(ctx, call, o.Action("watch", "")); err != nil {
		return api.Outcome(ctx, call, err)
	}
	return executors.Outcome{
		State: executors.NotYet, Reason: "Waiting", Message: document.Cut(why, document.MaxMessage),
		Watch: &executors.Watch{Resource: o.Resource, Namespace: o.Namespace, Name: o.Name},
	}
}

// met says whether the object meets the step's condition, and describes what was found. An
// expression that cannot be evaluated refers to a field that is not there yet.
func met(ctx context.Context, p *plan.WaitProperties, live *unstructured.Unstructured) (bool, string) {
	if p.Until == "" {
		return api.Condition(live, p.Condition)
	}
	ok, err := executors.Holds(ctx, p.Until, map[string]any{"object": run.WithoutSecrets(live.Object)})
	switch {
	case err != nil:
		return false, err.Error()
	case !ok:
		return false, p.Until + " does not hold yet"
	}
	return true, p.Until + " holds"
}
