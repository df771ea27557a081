// Package backup holds the executor that has others make a backup: the CSI
// snapshot controller, Velero, or a cloud.
package backup

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// Backups executes the step type backup, and is done when the backup can be used. The name of what
// it creates is derived from run, step and attempt, so that a pass after a crash finds it. When a
// run ends early, a backup that was begun goes on and stays: that is better than the doubt whether
// there is one.
type Backups struct {
	// Databases executes method rds-snapshot, in a package of its own; nil: nothing does.
	Databases executors.Executor
}

// Pass begins the backup, or checks its progress.
func (b Backups) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	if p, err := api.PropertiesAs[plan.BackupProperties](call); err == nil && p.Method == plan.MethodRDSSnapshot && b.Databases != nil {
		return b.Databases.Pass(ctx, call)
	}
	out, err := pass(ctx, call)
	return api.Finish(ctx, call, out, err)
}

func pass(ctx context.Context, call executors.Call) (executors.Outcome, error) {
	p, err := api.PropertiesAs[plan.BackupProperties](call)
	if err != nil {
		return executors.Outcome{}, err
	}
	switch p.Method {
	case plan.MethodVolumeSnapshot:
		return snapshots(ctx, call, p)
	case plan.MethodVelero:
		return velero(ctx, call, p)
	}
	return executors.Outcome{}, api.Refuse(executors.ReasonInvalid, "this agent has no backup by method %q", p.Method)
}

// stays is the end of messages about a backup under way.
const stays = "; what is begun stays when the run ends before it"

// identity is the whole identity behind the name of one object of a backup.
func identity(call executors.Call, subject string) string {
	return api.Identity(call) + "/" + subject
}

// stepOf identifies the step across runs and attempts, for retention.
func stepOf(call executors.Call) string {
	return call.Plan.Namespace + "/" + call.Plan.Name + "/" + call.Path
}

// marked puts the labels and annotations of its step on an object.
func marked(call executors.Call, u *unstructured.Unstructured, subject string) *unstructured.Unstructured {
	u.SetLabels(map[string]string{annotations.LabelPlan: call.Plan.Name, annotations.LabelStep: api.StepName(call)})
	u.SetAnnotations(map[string]string{annotations.BackupOf: identity(call, subject), annotations.BackupStep: stepOf(call)})
	return u
}

// ofStep selects what this step made in any run. Labels are too short for the whole identity, so
// each object is compared again.
func ofStep(call executors.Call) string {
	return selector.Text(map[string]string{annotations.LabelPlan: call.Plan.Name, annotations.LabelStep: api.StepName(call)})
}

// ours checks that this attempt made an object.
func ours(call executors.Call, o api.Object, u *unstructured.Unstructured, subject string) error {
	if u.GetAnnotations()[annotations.BackupOf] == identity(call, subject) {
		return nil
	}
	return notOurs(o)
}

func notOurs(o api.Object) error {
	return api.Refuse("NotOurs", "%s in namespace %s was not created by this step; delete or rename it", o, o.Namespace)
}

// selectorOf is a selector as the spec of an object has it.
func selectorOf(s selector.LabelSelector) map[string]any {
	out := map[string]any{}
	if len(s.MatchLabels) > 0 {
		wanted := map[string]any{}
		for key, value := range s.MatchLabels {
			wanted[key] = value
		}
		out["matchLabels"] = wanted
	}
	var expressions []any
	for _, e := range s.MatchExpressions {
		expression := map[string]any{"key": e.Key, "operator": e.Operator}
		if len(e.Values) > 0 {
			values := make([]any, len(e.Values))
			for i, v := range e.Values {
				values[i] = v
			}
			expression["values"] = values
		}
		expressions = append(expressions, expression)
	}
	if len(expressions) > 0 {
		out["matchExpressions"] = expressions
	}
	return out
}
